"""Where the rows of a source stand in its files, for tools that show lines of files."""

from __future__ import annotations

import glob
from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from tokensieve.read.delimited import delimited_row_lines
from tokensieve.read.json_files import json_row_lines
from tokensieve.read.settings import SourceSettings

USUAL_SEPARATORS = {".csv": ",", ".tsv": "\t"}
JSON_LINES = (".jsonl", ".ndjson")


class RowPlace(NamedTuple):
    """A file, and the line in which a row of it begins, from 1; None if rows are not lines."""

    file: str
    line: int | None


def row_places(
    source: str | Sequence[str], settings: SourceSettings, rows: Collection[int]
) -> dict[int, RowPlace]:
    """Row of a source, from 1 → where it stands.

    Rows of several files are counted on from file to file, as they are where these are read. Rows
    of an address, of standard input and of a folder are left out.

    Args:
        source: as it was read: a file, several files, or a glob.
        settings: how it was read.
        rows: those to look for.
    """
    wanted = set(rows)
    files = _files_of(source)
    places: dict[int, RowPlace] = {}
    row = 0
    for file in files:
        lines = _row_lines(Path(file), settings)
        if lines is None:  # how many rows it has is not known
            if len(files) == 1:
                return dict.fromkeys(wanted, RowPlace(file, None))
            break
        for line in lines:
            row += 1
            if row in wanted:
                places[row] = RowPlace(file, line)
                if len(places) == len(wanted):
                    return places
    return places


def _files_of(source: str | Sequence[str]) -> list[str]:
    """The files of a source, in the order in which they are read; none if it is something else."""
    names = [source] if isinstance(source, str) else list(source)
    files: list[str] = []
    for name in names:
        if "://" in name:
            return []
        is_there = Path(name).exists()
        found = [name] if is_there else sorted(glob.glob(name))
        if not found or not all(Path(file).is_file() for file in found):
            return []
        files += found
    return files


def _row_lines(path: Path, settings: SourceSettings) -> Iterator[int] | None:
    """The line of each row; None for a file whose rows are not lines that a reader can see."""
    ending = path.suffix.lower()
    if ending in USUAL_SEPARATORS:
        return delimited_row_lines(USUAL_SEPARATORS[ending], path, settings)
    if ending in JSON_LINES:
        lines = json_row_lines(path, settings)
        first = next(lines, None)
        return None if first is None else chain([first], lines)
    return None
