"""What comes through standard input; its kind is recognised by how it begins."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from tokensieve.errors import InputError
from tokensieve.files import Folder
from tokensieve.read.addresses import limited
from tokensieve.read.formats import KINDS, file_table
from tokensieve.read.plain import PACKINGS, PlainText
from tokensieve.read.settings import SourceSettings
from tokensieve.read.table import SourceTable

BLOCK_BYTES = 2**22  # read at a time
NAME = "standard input"
BEGINNING_BYTES = 2**16  # by which the kind is recognised


def standard_input_table(
    settings: SourceSettings, labelled: bool, columns: Sequence[str]
) -> SourceTable:
    """Read standard input as a table.

    Text whose first line names one of `columns`, or that must have labels, is CSV (TSV, where a tab
    separates the names); any other text is one document per line, in a column named text.
    """
    folder = Folder()
    blocks = iter(lambda: sys.stdin.buffer.read(BLOCK_BYTES), b"")
    endings = _endings()
    packed_path = folder.save(limited(blocks, NAME, settings.limits, tuple(endings)))
    start = _beginning(packed_path)
    if not start.strip():
        raise InputError("standard input is empty: pipe texts into the command, or name a file")
    packed_path = packed_path.rename(f"{packed_path}{_ending(start)}")
    path, unpacked = PlainText.unpacked(packed_path, NAME, settings.limits)
    ending = _kind_ending(_beginning(path), settings, labelled, columns)
    path = path.rename(path.with_suffix(ending or ".txt"))
    table = file_table(path, settings, NAME) if ending else _lines_table(path, settings)
    table.keep_alive += (folder, unpacked)
    return table


def _endings() -> dict[bytes, str]:
    """First bytes of packed and binary files → the ending of their kind."""
    endings = {packing.begins: ending for ending, packing in PACKINGS.items()}
    for ending, kind in reversed(KINDS.items()):
        if kind.begins:
            endings[kind.begins] = ending
    return endings


def _ending(start: bytes) -> str:
    for begins, ending in _endings().items():
        if start.startswith(begins):
            return ending
    return ""


def _kind_ending(
    start: bytes, settings: SourceSettings, labelled: bool, columns: Sequence[str]
) -> str:
    """The ending of a file with this beginning; "" for lines of text."""
    ending = _ending(start)
    if ending:
        return ending
    text = start.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text.startswith(b"{"):
        return ".jsonl"
    if text.startswith(b"["):
        return ".json"
    if text.startswith(b"__"):  # of fastText
        return ".txt"
    first_line = text.partition(b"\n")[0].decode(errors="replace").strip()
    separators = re.escape(settings.separator or ",;|") + "\t"
    names = {name.strip().strip('"') for name in re.split(f"[{separators}]", first_line)}
    is_named = not names.isdisjoint(columns)
    if is_named or labelled or settings.separator or not settings.header:
        return ".tsv" if "\t" in first_line else ".csv"
    return ""


def _lines_table(path: Path, settings: SourceSettings) -> SourceTable:
    """One document per line."""
    text = PlainText(path, NAME, settings)
    lines = text.full_text().removesuffix("\n").split("\n")
    texts = pl.Series([line.removesuffix("\r") for line in lines], dtype=pl.String)
    return SourceTable(
        NAME, ("text",), lambda names: iter([dict.fromkeys(names, texts)]), notes=text.notes
    )


def _beginning(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(BEGINNING_BYTES)
