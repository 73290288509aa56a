"""A separate process that reads the first sheet of a workbook, since a small file may require any amount of memory and time.

`python -P workbook.py PATH OUT BYTES SECONDS` writes the sheet to OUT as Arrow and prints JSON: the names of all sheets, or what
is wrong with the workbook.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress


def _main(path: str, out: str, memory: int, seconds: int) -> object:
    for kind, most in {"RLIMIT_AS": memory, "RLIMIT_CPU": seconds}.items():
        with suppress(ImportError, ValueError):  # on Windows; where there is a lower limit already
            import resource

            if most:
                resource.setrlimit(getattr(resource, kind), (most, most))
    try:
        import fastexcel
        import polars as pl

        pl.read_excel(path, engine="calamine", sheet_id=1, infer_schema_length=None).write_ipc(out)
        return fastexcel.read_excel(path).sheet_names
    except BaseException as problem:  # a panic is no Exception
        return " ".join(str(problem).split()) or type(problem).__name__


if __name__ == "__main__":
    sys.stdout.write(
        json.dumps(_main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
    )
