"""A separate process that reads sheets of a workbook.

A small file may require any amount of memory and time, so the process has limits of both.

`python -P workbook.py PATH OUT BYTES SECONDS [SHEET]` writes the sheet, the first one, or for `*`
all sheets with the same columns, to OUT as Arrow, and prints JSON: what it read, or what is wrong
with the workbook.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from contextlib import suppress
from typing import Any

ALL_SHEETS = "*"  # no sheet can have this name
MAX_TITLE_ROWS = 5  # above the header
UNNAMED = "__UNNAMED__"  # how Polars begins the name of a column without one


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

        sheets = fastexcel.read_excel(path).sheet_names
        chosen = sheets if sheet == ALL_SHEETS else [sheet or sheets[0]]
        if not set(chosen) <= set(sheets):
            return {"sheets": sheets, "read": [], "columns": {}, "title": ""}
        frames: dict[str, Any] = {}
        titles: list[str] = []
        for name in chosen:
            frames[name], title = _without_title(_frame(path, sheets.index(name) + 1))
            titles.append(title)
        alike = _alike(frames)
        _one_table({name: frames[name] for name in alike}, sheet == ALL_SHEETS).write_ipc(out)
        columns = {name: frame.columns for name, frame in frames.items()}
        return {"sheets": sheets, "read": alike, "columns": columns, "title": titles[0]}
    except BaseException as problem:  # a panic is no Exception
        return " ".join(str(problem).split()) or type(problem).__name__


def _frame(path: str, number: int) -> Any:
    import polars as pl

    return pl.read_excel(
        path, engine="calamine", sheet_id=number, infer_schema_length=None, raise_if_empty=False
    )


def _without_title(frame: Any) -> tuple[Any, str]:
    """The sheet, and the title above its header, if it has one.

    A title is a single cell, such as a merged one, above a row whose cells are all different texts.
    """
    title = [name for name in frame.columns if not name.startswith(UNNAMED)]
    if frame.width < 2 or len(title) > 1:
        return frame, ""
    for number, row in enumerate(frame.head(MAX_TITLE_ROWS).iter_rows()):
        texts = {cell for cell in row if isinstance(cell, str) and cell.strip()}
        if len(texts) == frame.width:
            below = frame.slice(number + 1)
            below.columns = list(row)
            return below, " / ".join(title)
        if sum(cell is not None for cell in row) > 1:
            break
    return frame, ""


def _alike(frames: dict[str, Any]) -> list[str]:
    """The sheets with the most frequent columns; of equally frequent ones, with the most."""
    kinds = Counter(tuple(frame.columns) for frame in frames.values() if frame.width)
    if not kinds:
        return list(frames)[:1]
    columns = max(kinds, key=lambda columns: (kinds[columns], len(columns)))
    return [name for name, frame in frames.items() if tuple(frame.columns) == columns]


def _one_table(frames: dict[str, Any], with_names: bool) -> Any:
    """The sheets as one table; with their names in a column `sheet` if there is none yet."""
    import polars as pl

    parts = list(frames.values())
    if any(part.schema != parts[0].schema for part in parts):
        parts = [part.cast(pl.String) for part in parts]
    if with_names and "sheet" not in parts[0].columns:
        parts = [
            part.with_columns(sheet=pl.lit(name)) for name, part in zip(frames, parts, strict=True)
        ]
    return pl.concat(parts)


if __name__ == "__main__":
    path, out, memory, seconds, *sheet = sys.argv[1:]
    result = _main(path, out, int(memory), int(seconds), sheet[0] if sheet else None)
    sys.stdout.write(json.dumps(result))
