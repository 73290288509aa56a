"""A source in pieces that workers read themselves: rows of Parquet files, byte ranges of .jsonl, .csv and .tsv files.

The client reads the first rows (which columns there are), the sizes of files, and of Parquet the numbers of rows, never the
documents. A piece is read by the functions that read a whole file (`tokensieve.text`), so that a row means the same.

A byte range holds the records that begin behind its first line break, up to and with the first line break at or behind its end;
the first range begins at the first record. In CSV a line break may be inside quotes, which is so where the number of quotation
marks before it is odd: those of each range are counted by the workers first, and added up.
"""

from __future__ import annotations

import glob
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from tokensieve.errors import InputError
from tokensieve.text.formats import file_table, kind_of
from tokensieve.text.plain_text import reading
from tokensieve.text.settings import ReadSettings
from tokensieve.text.sources import open_source, shown_address
from tokensieve.text.spill import Folder
from tokensieve.text.table import SourceTable, frame_table, list_table

PIECE = 2**26  # bytes of a file to a piece; a worker needs about eight times as much memory
ROWS = 100_000  # rows to a piece of Parquet files at an address, whose size is not known
HEAD = 2**20  # bytes of a file from which columns are recognised
CONVERT = {  # how to make a file that can be cut, by the kind of file
    ".xlsx": "read_excel",
    ".xls": "read_excel",
    ".ods": "read_ods",
    ".json": "read_json",
    ".arrow": "read_ipc",
    ".ipc": "read_ipc",
    ".feather": "read_ipc",
    ".csv": "read_csv",
    ".tsv": "read_csv",
    ".jsonl": "read_ndjson",
    ".ndjson": "read_ndjson",
}


@dataclass(frozen=True)
class Piece:
    """Part of a source.

    Attributes:
        path: a path or an address that all workers reach.
        unit: what start and stop count: rows or bytes; "file" for a whole file.
        start, stop: where it begins and ends; 0 and 0 for a whole file.
        quoted: whether its first byte is inside quotes.
    """

    path: str
    unit: str = "file"
    start: int = 0
    stop: int = 0
    quoted: bool = False

    @property
    def name(self) -> str:
        """For messages."""
        shown = shown_address(self.path) if "://" in self.path else Path(self.path).name
        return shown if not self.start else f"{shown}, from {self.unit[:-1]} {self.start + 1:,} on"

    def table(self, settings: ReadSettings, rows: int | None = None) -> SourceTable:
        """Its rows, or the first of them.

        Raises:
            InputError: it cannot be read.
        """
        if self.unit == "rows":
            with reading(self.name):
                stop = self.stop if rows is None else min(self.start + rows, self.stop)
                frame = pl.scan_parquet(self.path).slice(self.start, stop - self.start).collect()
            table = frame_table(frame, self.name)
            assert table is not None
            return table
        if self.unit == "file":
            return open_source(self.path, settings).train
        folder = Folder()
        copy = folder.path / f"piece{kind_of(self.path)}"
        with open(self.path, "rb") as source, copy.open("wb") as file:
            file.write(self._header(source, settings))
            size = self.stop - self.start if rows is None else min(HEAD, self.stop - self.start)
            for block in self._records(source, self.start + size):
                file.write(block)
        table = file_table(copy, settings, self.name)
        table.kept = folder
        return table

    def quotes(self) -> int:
        """Quotation marks in its range of a .csv or .tsv file."""
        found, at = 0, self.start
        if not self._delimited():
            return 0
        with open(self.path, "rb") as file:
            file.seek(at)
            while at < self.stop and (block := file.read(min(HEAD, self.stop - at))):
                found += block.count(b'"')
                at += len(block)
        return found

    def _delimited(self) -> bool:
        return kind_of(self.path) in (".csv", ".tsv")

    def _header(self, file: Any, settings: ReadSettings) -> bytes:
        """The first record, if it names the columns and is not among the records of this piece."""
        if not self.start or not self._delimited() or not settings.header:
            return b""
        file.seek(0)
        return b"".join(_until_break(file, False, True)[0])

    def _records(self, file: Any, stop: int) -> Any:
        """The records of the range, in blocks."""
        inside, quoting = self.quoted, self._delimited()
        file.seek(self.start)
        if self.start:
            _, inside = _until_break(file, inside, quoting)
        while (left := stop - file.tell()) > 0 and (block := file.read(min(HEAD, left))):
            if quoting:
                inside ^= block.count(b'"') % 2 == 1
            yield block
        if file.tell() == stop:  # behind it, this range holds no record
            yield from _until_break(file, inside, quoting)[0]


def _until_break(file: Any, inside: bool, quoting: bool) -> tuple[list[bytes], bool]:
    """Bytes up to and with the next line break outside quotes, and whether what follows is inside quotes."""
    read: list[bytes] = []
    while line := file.readline():
        read.append(line)
        if quoting:
            inside ^= line.count(b'"') % 2 == 1
        if not inside:
            break
    return read, inside


def pieces_of(source: Any, least: int = 1) -> list[Piece]:
    """A source in pieces of some ten megabytes, at least `least` of them where its files allow it.

    Args:
        source: a path, a glob, an address or a glob of addresses, or several of them.
        least: pieces wanted, such as one for each worker.

    Raises:
        InputError: there is no such file, or it can neither be cut nor is it small; the message has the command that converts it.
    """
    given = [source] if isinstance(source, str | Path) else list(source)
    paths: list[str] = []
    for one in map(str, given):
        if "://" in one or not re.search(r"[*?\[]", one) or Path(one).exists():
            paths.append(one)
        else:
            paths += sorted(glob.glob(one))
    if not paths:
        raise InputError(f"there is no file {str(source)[:80]!r}; check the path")
    return [piece for path in paths for piece in _pieces(path, math.ceil(least / len(paths)))]


def _pieces(path: str, least: int) -> list[Piece]:
    kind, address = kind_of(path.partition("?")[0]), "://" in path
    packed = path.lower().endswith((".gz", ".zst"))
    if not address:
        if not Path(path).is_file():
            what = "a folder of texts is read here only" if Path(path).is_dir() else "there is no such file"
            raise InputError(
                f"--cluster reads files that all workers reach: {path!r}: {what}; give .parquet files or a glob"
            )
        size = Path(path).stat().st_size
        path = str(Path(path).resolve())  # workers may run elsewhere in the file system
    if kind == ".parquet" and not packed:
        with reading(Path(path).name):
            rows = int(pl.scan_parquet(path).select(pl.len()).collect().item())
        n = max(math.ceil(rows / ROWS) if address else math.ceil(size / PIECE), min(least, rows), 1)
        return [Piece(path, "rows", rows * i // n, rows * (i + 1) // n) for i in range(n)]
    if address:
        return [Piece(path)]
    if kind in (".csv", ".tsv", ".jsonl", ".ndjson") and not packed:
        with open(path, "rb") as file:
            if file.read(2) not in (b"\xff\xfe", b"\xfe\xff"):  # UTF-16 has line breaks of two bytes
                n = max(math.ceil(size / PIECE), min(least, size // HEAD), 1)
                return [Piece(path, "bytes", size * i // n, size * (i + 1) // n) for i in range(n)]
    if size > PIECE:
        method = CONVERT.get(kind, "read_csv")
        command = f"import polars; polars.{method}({path!r}).write_parquet('converted.parquet')"
        raise InputError(f'{path}: workers cannot read a part of such a file; convert it: python -c "{command}"')
    return [Piece(path)]


def with_quotes(pieces: Sequence[Piece], quotes: Sequence[int]) -> list[Piece]:
    """The pieces with `quoted` set, from the quotation marks in each."""
    before: dict[str, int] = {}
    out = []
    for piece, found in zip(pieces, quotes, strict=True):
        out.append(replace(piece, quoted=before.get(piece.path, 0) % 2 == 1))
        before[piece.path] = before.get(piece.path, 0) + found
    return out


def table_of(part: Any, name: str, settings: ReadSettings) -> SourceTable:
    """The rows of a partition: a piece, a data frame or (text, label) pairs.

    Raises:
        InputError: it is something else.
    """
    if isinstance(part, Piece):
        return part.table(settings)
    table = frame_table(part, name)
    if table is not None:
        return table
    rows = list(part)
    for row in rows:
        if isinstance(row, str) or not hasattr(row, "__len__") or len(row) != 2:
            raise InputError(f"{name} holds {str(row)[:60]!r}: give (text, label) pairs or data frames")
    return list_table(([row[0] for row in rows], [row[1] for row in rows]), name)
