"""Workbooks, read in a separate process with limits of memory and time."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import polars as pl

from tokensieve.errors import InputError
from tokensieve.escape import option
from tokensieve.files import Folder
from tokensieve.read.settings import SourceSettings
from tokensieve.read.table import SourceTable
from tokensieve.read.values import listed
from tokensieve.read.workbook import ALL_SHEETS
from tokensieve.wording import verb

MAX_MEMORY = 4_000_000_000  # bytes of address space; a million rows of prose took 0.5 GB
MAX_SECONDS = 60  # of the processor; a million rows of prose took 2
MAX_CLOCK_SECONDS = 5 * MAX_SECONDS  # a busy machine does not give a process all of its time
ZIP_BEGINS = b"PK\x03\x04"
_READER = Path(__file__).with_name("workbook.py")


@dataclass(frozen=True)
class _Sheets:
    """What the reading process found.

    Attributes:
        all: the names of all sheets.
        read: those that were read as one table.
        columns: the columns of each sheet that was looked at.
        title: a line above the header of the first sheet that was read, or "".
    """

    all: Sequence[str]
    read: Sequence[str]
    columns: Mapping[str, Sequence[str]]
    title: str

    @property
    def others(self) -> list[str]:
        """The sheets that were not read."""
        return [sheet for sheet in self.all if sheet not in self.read]

    def notes(self) -> Iterator[str]:
        """Sentences on which sheets were read, and which were not."""
        if self.title:
            yield f"lines before the header, skipped: {self.title[:80]!r}"
        if len(self.all) < 2:
            return
        are_read = f"sheet {self.read[0]!r} is read"
        if len(self.read) > 1:
            are_read = f"sheets {listed(self.read)} are read, with their names in column 'sheet'"
        if self.others:
            are_read += f"; the {verb(len(self.others), 'others are', 'other is')} "
            are_read += listed(self.others)
        yield f"{are_read} (--sheet)"


def workbook_table(path: Path, name: str, settings: SourceSettings) -> SourceTable:
    """A sheet of a workbook: the one that the settings name, or the first; for `*`, all alike."""
    if find_spec("fastexcel") is None:
        raise InputError(
            f"reading the workbook {name} needs fastexcel: pip install 'tokensieve[excel]'; "
            "or export the sheet as CSV"
        )
    _check_complete(path, name)
    folder = Folder()
    arrow_file = folder.new()
    sheets = _read(path, arrow_file, name, settings.sheet, settings.limits)
    if not sheets.read:
        raise InputError(
            f"{name} has no sheet {settings.sheet!r}; its sheets are {listed(sheets.all)}"
        )
    if len(sheets.all) > 1:
        name = f"{name}, sheet {sheets.read[0]!r}" if len(sheets.read) == 1 else name
    cause = "".join(f"; {note}" for note in sheets.notes())
    if not sheets.columns[sheets.read[0]]:
        hint = _other_sheet(path, name, sheets, settings)
        raise InputError(f"{name} is empty; it has no rows{cause}{hint}")
    table = SourceTable.of_frame(pl.scan_ipc(arrow_file, glob=False), name)
    assert table is not None, "a lazy frame is a table"
    table.first_line = True
    table.header_hint = "give the columns names in the first row of the sheet"
    table.keep_alive.append(folder)
    table.notes = tuple(sheets.notes())
    if sheets.others:
        table.cause = lambda: f"{cause}{_other_sheet(path, name, sheets, settings)}"
    return table


def _check_complete(path: Path, name: str) -> None:
    """Refuse a ZIP file whose table of contents, which stands at its end, is missing.

    It was cut short, or padded; the reader would search all of it for the table, however large.
    """
    with path.open("rb") as file:
        is_zip = file.read(len(ZIP_BEGINS)) == ZIP_BEGINS
    if is_zip and not zipfile.is_zipfile(path):
        raise InputError(
            f"{name} is not a readable workbook: its end is missing; create or download it again"
        )


def _read(path: Path, out: Path, name: str, sheet: str | None, limits: bool) -> _Sheets:
    """Read a sheet in another process.

    Raises:
        InputError: the workbook cannot be read, or takes too much memory or time.
    """
    arguments = [sys.executable, "-P", str(_READER), str(path), str(out)]
    clock_seconds = None
    if limits:
        arguments += [str(MAX_MEMORY), str(MAX_SECONDS)]
        clock_seconds = MAX_CLOCK_SECONDS
    else:
        arguments += ["0", "0"]
    if sheet is not None:
        arguments.append(sheet)
    too_large = InputError(
        f"reading {name} takes over 4 GB or over a minute; export it as CSV, or pass --no-limits"
    )
    try:
        process = subprocess.run(arguments, capture_output=True, check=False, timeout=clock_seconds)
    except subprocess.TimeoutExpired:
        raise too_large from None
    if process.returncode:  # Rust ends the process if it gets no memory
        raise too_large
    found = json.loads(process.stdout)
    if isinstance(found, str):
        raise InputError(f"{name} is not a readable workbook: {found[:200]}")
    return _Sheets(found["sheets"], found["read"], found["columns"], found["title"])


def _other_sheet(path: Path, name: str, sheets: _Sheets, settings: SourceSettings) -> str:
    """The option that reads a sheet with texts and labels, if another one is meant.

    If all sheets have one and the same column, their names may be the labels.
    """
    folder = Folder()
    found = _read(path, folder.new(), name, ALL_SHEETS, settings.limits)
    tables = [sheet for sheet in sheets.others if len(found.columns[sheet]) > 1]
    if tables:
        return f": choose one with {option('--sheet', tables[0])}"
    if len(found.read) > 1:
        return (
            f": if their names are the labels, pass {option('--sheet', ALL_SHEETS)} --label sheet"
        )
    return ""
