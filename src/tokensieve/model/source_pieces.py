"""Files and addresses in pieces, which the workers of a cluster read themselves."""

from __future__ import annotations

import glob
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import polars as pl

from tokensieve.errors import InputError
from tokensieve.escape import public_address
from tokensieve.files import Folder
from tokensieve.read.formats import KINDS, file_table, kind_of
from tokensieve.read.plain import PACKINGS, reading
from tokensieve.read.settings import ReadSettings
from tokensieve.read.sources import open_source
from tokensieve.read.table import SourceTable

BYTES_PER_PIECE = 2**24  # of a file; a task needs about eight times as much memory
MIN_BYTES_PER_PIECE = 2**20  # if more pieces are asked for than BYTES_PER_PIECE gives
ROWS_PER_PIECE = 100_000  # of a file at an address, whose size is not known
MAX_PIECES_UNCUT = 4  # size of a file that cannot be cut, in pieces
QUOTED_FORMATS = (".csv", ".tsv")  # in which a line break inside quotes ends no record
FORMATS_BY_LINE = (*QUOTED_FORMATS, ".jsonl", ".ndjson")
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")  # such files have line breaks of two bytes


@dataclass(frozen=True)
class Piece:
    """Part of a source, read on a worker by the functions that read a whole file.

    So a row means the same in a piece as in the file.

    Attributes:
        path: a path or an address that all workers reach.
        unit: what start and stop count: rows, or bytes (of whole records); "file" for a whole file.
        start, stop: where it begins and ends; 0 and 0 for a whole file.
    """

    path: str
    unit: Literal["file", "rows", "bytes"] = "file"
    start: int = 0
    stop: int = 0

    @property
    def _is_at_address(self) -> bool:
        return "://" in self.path

    def table(self, settings: ReadSettings) -> SourceTable:
        """Read its rows; an InputError if they cannot be read."""
        if self.unit == "file":
            return open_source(self.path, settings).train
        name = public_address(self.path) if self._is_at_address else Path(self.path).name
        if self.start:
            name += f", from {self.unit[:-1]} {self.start + 1:,} on"
        if self.unit == "bytes":
            return self._table_of_bytes(settings, name)
        if not self._is_at_address:
            return file_table(Path(self.path), settings, name, slice(self.start, self.stop))
        with reading(name):
            rows = pl.scan_parquet(self.path).slice(self.start, self.stop - self.start).collect()
        return open_source(rows).train

    def _table_of_bytes(self, settings: ReadSettings, name: str) -> SourceTable:
        """Copy its records into a file of their own, behind the names of the columns."""
        kind = kind_of(self.path)
        has_names = self.start > 0 and settings.header and kind in QUOTED_FORMATS
        folder = Folder()
        copy = folder.path / f"piece{kind}"
        with open(self.path, "rb") as file:
            head = file.read(_record_end(self.path, 0, 0)) if has_names else b""
            file.seek(self.start)
            copy.write_bytes(head + file.read(self.stop - self.start))
        table = file_table(copy, settings, name)
        table.keep_alive.append(folder)
        return table

    def n_quotes(self) -> int:
        """Quotation marks in its range of a .csv or .tsv file; 0 for others."""
        if self.unit != "bytes" or kind_of(self.path) not in QUOTED_FORMATS:
            return 0
        with open(self.path, "rb") as file:
            file.seek(self.start)
            return file.read(self.stop - self.start).count(b'"')


def source_paths(source: Any) -> list[str]:
    """The paths, globs and addresses that a source consists of; empty for data on the cluster."""
    paths = [source] if isinstance(source, str | Path) else source
    if not isinstance(paths, list | tuple):
        return []
    if not all(isinstance(path, str | Path) for path in paths):
        return []
    return [str(path) for path in paths]


def cut_source(
    sources: Sequence[str | Path],
    min_pieces: int = 1,
    map_pieces: Callable[..., Iterable[int]] = map,
) -> list[Piece]:
    """Paths, globs and addresses in pieces of some ten megabytes.

    Args:
        sources: at least one.
        min_pieces: how many pieces there are at least, if the files allow it.
        map_pieces: calls a function of every piece; a cluster does so where the pieces are read.

    Raises:
        InputError: there is no file, or a large one cannot be cut; the message has the command that
            converts it.
    """
    paths: list[str] = []
    for source in map(str, sources):
        is_pattern = "://" not in source and re.search(r"[*?\[]", source)
        paths += sorted(glob.glob(source)) if is_pattern and not Path(source).exists() else [source]
    if not paths:
        raise InputError(f"there is no file {str(sources[0])[:80]!r}; check the path")
    min_per_path = math.ceil(min_pieces / len(paths))
    ranges = [piece for path in paths for piece in _cut(path, min_per_path)]
    return _with_whole_records(ranges, map_pieces(Piece.n_quotes, ranges))


def _with_whole_records(ranges: list[Piece], n_quotes: Iterable[int]) -> list[Piece]:
    """Move the ends of ranges of bytes to the ends of records; ranges without a record go.

    Args:
        ranges: equal ranges of each file, in order.
        n_quotes: quotation marks in each.
    """
    pieces: list[Piece] = []
    end_before = 0
    quotes_before = 0
    for piece, n in zip(ranges, n_quotes, strict=True):
        if piece.unit == "bytes":
            if piece.start == 0:
                end_before = 0
                quotes_before = 0
            quotes_before += n
            stop = _record_end(piece.path, piece.stop, quotes_before)
            piece = replace(piece, start=end_before, stop=stop)
        if piece.start < piece.stop or not piece.start:  # a record may be longer than a piece
            pieces.append(piece)
            end_before = piece.stop
    return pieces


def _record_end(path: str, at: int, n_quotes: int) -> int:
    """The end of the record that contains the byte before `at`.

    Args:
        path: a file of records.
        at: number of bytes.
        n_quotes: quotation marks among them; if they are odd, `at` is inside quotes.
    """
    has_quotes = kind_of(path) in QUOTED_FORMATS
    is_quoted = n_quotes % 2 == 1
    last_byte = max(at - 1, 0)
    with open(path, "rb") as file:
        # the line that is read next contains that byte, whose quotation mark counts twice then
        file.seek(last_byte)
        if has_quotes and at and file.read(1) == b'"':
            is_quoted = not is_quoted
        file.seek(last_byte)
        while line := file.readline():
            if has_quotes and line.count(b'"') % 2 == 1:
                is_quoted = not is_quoted
            if not is_quoted:
                break
        return file.tell()


def _cut(path: str, min_pieces: int) -> list[Piece]:
    """A file in equal ranges of rows or bytes, or whole."""
    kind = kind_of(path.partition("?")[0])
    is_at_address = "://" in path
    size = 0
    if not is_at_address:
        size = _local_size(path)
        path = str(Path(path).resolve())  # workers may run elsewhere in the file system
    packing = PACKINGS.get(Path(path).suffix.lower())
    if packing is None and kind == ".parquet":
        with reading(Path(path).name):
            n_rows = int(pl.scan_parquet(path).select(pl.len()).collect().item())
        n = math.ceil(n_rows / ROWS_PER_PIECE if is_at_address else size / BYTES_PER_PIECE)
        return _equal_ranges(path, "rows", n_rows, max(n, min(min_pieces, n_rows)))
    if packing is None and kind in FORMATS_BY_LINE and not is_at_address and not _is_utf16(path):
        n = math.ceil(size / BYTES_PER_PIECE)
        n_possible = size // MIN_BYTES_PER_PIECE
        return _equal_ranges(path, "bytes", size, max(n, min(min_pieces, n_possible)))
    if size > MAX_PIECES_UNCUT * BYTES_PER_PIECE:
        raise InputError(
            f"{path}: this format cannot be split among workers; {_how_to_convert(path, kind)}"
        )
    return [Piece(path)]


def _equal_ranges(path: str, unit: Literal["rows", "bytes"], whole: int, n: int) -> list[Piece]:
    n = max(n, 1)
    return [Piece(path, unit, whole * i // n, whole * (i + 1) // n) for i in range(n)]


def _local_size(path: str) -> int:
    """Bytes of a file of this machine; an InputError if it is none."""
    if not Path(path).is_file():
        reason = "there is no such file"
        if Path(path).is_dir():
            reason = "workers cannot read a folder of texts"
        raise InputError(
            "--cluster needs files that every worker can read, "
            f"but {path!r} is not one ({reason}); pass .parquet files or a glob"
        )
    return Path(path).stat().st_size


def _is_utf16(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(2) in UTF16_MARKS


def _how_to_convert(path: str, kind: str) -> str:
    """A command that converts a file to one that can be cut, if Python's libraries can read it."""
    is_packed = Path(path).suffix.lower() in PACKINGS
    if kind and not KINDS[kind].polars_method and not is_packed:
        return "convert it to Parquet"
    return f'convert it: python -c "{_conversion(path, kind)}"'


def _conversion(path: str, kind: str) -> str:
    """Python code that converts a file to one that can be cut."""
    packing = PACKINGS.get(Path(path).suffix.lower())
    if packing is not None:
        module = packing.module
        unpacked = str(Path(path).with_suffix(""))
        return (
            f"import {module}, shutil; "
            f"shutil.copyfileobj({module}.open({path!r}), open({unpacked!r}, 'wb'))"
        )
    method = KINDS[kind].polars_method if kind else "read_csv"
    arguments = repr(path)
    if method == "read_csv":  # only in UTF-16 it cannot be cut
        separator = "," if kind == ".csv" else "\t"
        arguments += f", encoding='utf-16', separator={separator!r}"
    return f"import polars; polars.{method}({arguments}).write_parquet('converted.parquet')"
