"""A source in pieces that the workers of a cluster read themselves."""

from __future__ import annotations

import glob
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

import polars as pl

from tokensieve.errors import InputError
from tokensieve.text.formats import file_table, kind_of, reading
from tokensieve.text.settings import ReadSettings
from tokensieve.text.sources import open_source, shown_address
from tokensieve.text.spill import Folder
from tokensieve.text.table import SourceTable

PIECE = 2**26  # bytes of a file to a piece; a worker needs about eight times as much memory
HEAD = 2**20  # bytes of a file from which columns are recognised, and least of a piece


@dataclass(frozen=True)
class Piece:
    """Part of a source, read on a worker by the functions that read a whole file, so that a row means the same.

    A byte range holds the records that begin behind its first line break, up to and with the first line break at or behind its end;
    the first range begins at the first record.

    Attributes:
        path: a path or an address that all workers reach.
        unit: what start and stop count: rows or bytes; "file" for a whole file.
        start, stop: where it begins and ends; 0 and 0 for a whole file.
        quoted: whether its first byte is inside quotes, where a line break ends no record: the number of quotation marks before
            it is odd.
    """

    path: str
    unit: str = "file"
    start: int = 0
    stop: int = 0
    quoted: bool = False

    def table(self, settings: ReadSettings) -> SourceTable:
        """Its rows; an InputError if it cannot be read."""
        name = shown_address(self.path) if "://" in self.path else Path(self.path).name
        if self.start:
            name += f", from {self.unit[:-1]} {self.start + 1:,} on"
        if self.unit == "file":
            return open_source(self.path, settings).train
        if self.unit == "rows":
            with reading(name):
                table = SourceTable.of_frame(
                    pl.scan_parquet(self.path).slice(self.start, self.stop - self.start).collect(), name
                )
            assert table is not None
            return table
        folder = Folder()
        copy = folder.path / f"piece{kind_of(self.path)}"
        copy.write_bytes(self._records(settings.header))
        table = file_table(copy, settings, name)
        table.kept = folder
        return table

    def quotes(self) -> int:
        """Quotation marks in its range of a .csv or .tsv file."""
        if self.unit != "bytes" or not self._delimited():
            return 0
        with open(self.path, "rb") as file:
            file.seek(self.start)
            return file.read(self.stop - self.start).count(b'"')

    def _delimited(self) -> bool:
        return kind_of(self.path) in (".csv", ".tsv")

    def _records(self, header: bool) -> bytes:
        """The records of a byte range, behind the names of the columns where the file's first record holds them."""
        quoting, inside, names = self._delimited(), self.quoted, b""
        with open(self.path, "rb") as file:
            if self.start and quoting and header:
                names, _ = _until_break(file, False, True)
            file.seek(self.start)
            if self.start:
                _, inside = _until_break(file, inside, quoting)
            found = file.read(max(self.stop - file.tell(), 0))
            if file.tell() == self.stop:  # behind it, the range holds no record
                inside ^= quoting and found.count(b'"') % 2 == 1
                found += _until_break(file, inside, quoting)[0]
        return names + found


def _until_break(file: IO[bytes], inside: bool, quoting: bool) -> tuple[bytes, bool]:
    """Bytes up to and with the next line break outside quotes, and whether what follows is inside quotes."""
    found = b""
    while line := file.readline():
        found += line
        inside ^= quoting and line.count(b'"') % 2 == 1
        if not inside:
            break
    return found, inside


def pieces_of(
    source: str | Path | Sequence[str | Path],
    least: int = 1,
    quotes: Callable[[list[Piece]], Iterable[int]] | None = None,
) -> list[Piece]:
    """A source in pieces of some ten megabytes, at least `least` of them where its files allow it.

    Args:
        source: a path, a glob, an address or a glob of addresses, or several of them.
        least: pieces wanted, such as one for each worker.
        quotes: counts the quotation marks of each piece; a cluster does so where the pieces are read.

    Raises:
        InputError: there is no such file, or it can neither be cut nor is it small; the message has the command that converts it.
    """
    paths: list[str] = []
    for one in [str(source)] if isinstance(source, str | Path) else map(str, source):
        local_glob = "://" not in one and re.search(r"[*?\[]", one) and not Path(one).exists()
        paths += sorted(glob.glob(one)) if local_glob else [one]
    if not paths:
        raise InputError(f"there is no file {str(source)[:80]!r}; check the path")
    pieces = [piece for path in paths for piece in _cut(path, math.ceil(least / len(paths)))]
    before, out = Counter[str](), []
    for piece, found in zip(pieces, quotes(pieces) if quotes else map(Piece.quotes, pieces), strict=True):
        out.append(replace(piece, quoted=before[piece.path] % 2 == 1))
        before[piece.path] += found
    return out


def _cut(path: str, least: int) -> list[Piece]:
    kind, address, size = kind_of(path.partition("?")[0]), "://" in path, 0
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
        # the size of a file at an address is not known
        n = max(math.ceil(rows / 100_000) if address else math.ceil(size / PIECE), min(least, rows), 1)
        return [Piece(path, "rows", rows * i // n, rows * (i + 1) // n) for i in range(n)]
    if not address and kind in (".csv", ".tsv", ".jsonl", ".ndjson") and not packed:
        with open(path, "rb") as file:
            wide = file.read(2) in (b"\xff\xfe", b"\xfe\xff")  # UTF-16 has line breaks of two bytes
        if not wide:
            n = max(math.ceil(size / PIECE), min(least, size // HEAD), 1)
            return [Piece(path, "bytes", size * i // n, size * (i + 1) // n) for i in range(n)]
    if size > PIECE:
        methods = {"read_excel": ".xlsx .xls", "read_ods": ".ods", "read_ipc": ".arrow .ipc .feather"}
        methods |= {"read_json": ".json", "read_ndjson": ".jsonl .ndjson"}
        method = next((method for method, kinds in methods.items() if kind in kinds.split()), "read_csv")
        command = f"import polars; polars.{method}({path!r}).write_parquet('converted.parquet')"
        raise InputError(f'{path}: workers cannot read a part of such a file; convert it: python -c "{command}"')
    return [Piece(path)]
