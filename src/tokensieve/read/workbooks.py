"""Workbooks, read in a separate process with limits of memory and time."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import polars as pl

from tokensieve.errors import InputError
from tokensieve.escape import option
from tokensieve.files import Folder
from tokensieve.read.settings import SourceSettings
from tokensieve.read.table import SourceTable
from tokensieve.read.values import listed

MAX_MEMORY = 4_000_000_000  # bytes of address space; a million rows of prose took 0.5 GB
MAX_SECONDS = 60  # of the processor; a million rows of prose took 2
_READER = Path(__file__).with_name("workbook.py")


def workbook_table(path: Path, name: str, settings: SourceSettings) -> SourceTable:
    """A sheet of a workbook: the one that the settings name, or the first."""
    if find_spec("fastexcel") is None:
        raise InputError(
            f"reading the workbook {name} needs fastexcel: pip install 'tokensieve[excel]'; "
            "or export the sheet as CSV"
        )
    folder = Folder()
    arrow_file = folder.new()
    limits = [MAX_MEMORY, MAX_SECONDS] if settings.limits else [0, 0]
    arguments = [str(path), str(arrow_file), *map(str, limits)]
    if settings.sheet is not None:
        arguments.append(settings.sheet)
    process = subprocess.run(
        [sys.executable, "-P", str(_READER), *arguments], capture_output=True, check=False
    )
    if process.returncode:  # Rust ends the process if it gets no memory
        raise InputError(
            f"reading {name} takes over 4 GB or over a minute; "
            "export it as CSV, or pass --no-limits"
        )
    sheets = json.loads(process.stdout)
    if isinstance(sheets, str):
        raise InputError(f"{name} is not a readable workbook: {sheets[:200]}")
    sheet = settings.sheet or sheets[0]
    if sheet not in sheets:
        raise InputError(f"{name} has no sheet {sheet!r}; its sheets are {listed(sheets)}")
    if len(sheets) > 1:
        name = f"{name}, sheet {sheet!r}"
    table = SourceTable.of_frame(pl.scan_ipc(arrow_file, glob=False), name)
    assert table is not None, "a lazy frame is a table"
    table.first_line = True
    table.header_hint = "give the columns names in the first row of the sheet"
    table.keep_alive.append(folder)
    further_sheets = [sheet_name for sheet_name in sheets if sheet_name != sheet]
    if further_sheets:
        note = f"sheet {sheet!r} is read; the others are {listed(further_sheets)}"
        table.notes = (f"{note} (--sheet)",)
        table.cause = f"; {note}: choose one with {option('--sheet', further_sheets[0])}"
    return table
