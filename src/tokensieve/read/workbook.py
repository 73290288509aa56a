"""A separate process that reads a sheet of a workbook.

A small file may require any amount of memory and time, so the process has limits of both.

`python -P workbook.py PATH OUT BYTES SECONDS [SHEET]` writes the sheet, or the first one, to OUT as
Arrow and prints JSON: the names of all sheets, or what is wrong with the workbook.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress


def _limit(name: str, most: int) -> None:
    """Set a limit of this process; 0 sets none."""
    with suppress(ImportError, ValueError):  # on Windows; if there is a lower limit already
        import resource

        if most:
            resource.setrlimit(getattr(resource, name), (most, most))


def _main(path: str, out: str, memory: int, seconds: int, sheet: str | None) -> object:
    _limit("RLIMIT_AS", memory)
    _limit("RLIMIT_CPU", seconds)
    try:
        import fastexcel
        import polars as pl

        sheets = fastexcel.read_excel(path).sheet_names
        if sheet is None or sheet in sheets:
            number = 1 if sheet is None else sheets.index(sheet) + 1
            frame = pl.read_excel(
                path, engine="calamine", sheet_id=number, infer_schema_length=None
            )
            frame.write_ipc(out)
        return sheets
    except BaseException as problem:  # a panic is no Exception
        return " ".join(str(problem).split()) or type(problem).__name__


if __name__ == "__main__":
    path, out, memory, seconds, *sheet = sys.argv[1:]
    result = _main(path, out, int(memory), int(seconds), sheet[0] if sheet else None)
    sys.stdout.write(json.dumps(result))
