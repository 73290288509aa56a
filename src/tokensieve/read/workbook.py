"""A separate process that reads a sheet of a workbook.

A small file may require any amount of memory and time, so the process has limits of both.

`python -P workbook.py PATH OUT BYTES SECONDS` writes the first sheet to OUT as Arrow and prints
JSON: the names of all sheets, or what is wrong with the workbook.
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


def _main(path: str, out: str, memory: int, seconds: int) -> object:
    _limit("RLIMIT_AS", memory)
    _limit("RLIMIT_CPU", seconds)
    try:
        import fastexcel
        import polars as pl

        sheet = pl.read_excel(path, engine="calamine", sheet_id=1, infer_schema_length=None)
        sheet.write_ipc(out)
        return fastexcel.read_excel(path).sheet_names
    except BaseException as problem:  # a panic is no Exception
        return " ".join(str(problem).split()) or type(problem).__name__


if __name__ == "__main__":
    path, out, memory, seconds = sys.argv[1:]
    sys.stdout.write(json.dumps(_main(path, out, int(memory), int(seconds))))
