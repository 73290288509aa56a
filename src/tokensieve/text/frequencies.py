"""Document frequencies that do not fit into memory, in files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from tokensieve.arrays import Ints
from tokensieve.files import Folder

MAX_ROWS_IN_MEMORY = 20_000_000  # document frequencies: 320 MB of numbers, and as much of words
N_PARTITIONS = 64  # of the frequencies in files, so that each fits into memory at the end


@dataclass(frozen=True)
class _PartitionFile:
    """A file with the frequencies of one partition of the keys; `folder` keeps it from being
    removed."""

    folder: Folder
    partition: int
    path: Path


class Frequencies:
    """In how many documents of a corpus, or of a chunk of it, each key (all String or all Int64)
    occurs.

    `a + b` is that of both. Frames wait in memory until they have MAX_ROWS_IN_MEMORY rows; then
    equal keys are added up, and if that does not halve them, all go to files, divided by a hash of
    the key.
    """

    def __init__(self, keys: pl.Series, documents: Ints) -> None:
        columns = {"key": keys, "documents": documents}
        frame = pl.DataFrame(columns, schema_overrides={"documents": pl.Int64})
        self._waiting = [frame]
        self._n_rows = len(keys)
        self._files: list[_PartitionFile] = []

    def __add__(self, other: Frequencies) -> Frequencies:
        total = Frequencies.__new__(Frequencies)
        total._waiting = self._waiting + other._waiting
        total._n_rows = self._n_rows + other._n_rows
        total._files = self._files + other._files
        if total._n_rows > MAX_ROWS_IN_MEMORY:
            total._shrink()
        return total

    def _shrink(self) -> None:
        total = _total(self._waiting)
        if len(total) > MAX_ROWS_IN_MEMORY // 2:
            self._files = self._files + self._write(total)
            total = total.clear()
        self._waiting = [total]
        self._n_rows = len(total)

    def frequent(self, minimum: int) -> pl.Series:
        """The keys that occur in at least `minimum` documents, sorted."""
        is_frequent = pl.col("documents") >= minimum
        return pl.concat([total.filter(is_frequent)["key"] for total in self._totals()]).sort()

    def _totals(self) -> Iterator[pl.DataFrame]:
        """The sums, every key in one of the frames."""
        if not self._files:
            yield self._waiting[0] if len(self._waiting) == 1 else _total(self._waiting)
            return
        files = self._files + self._write(pl.concat(self._waiting))
        yield self._waiting[0].clear()
        for partition in range(N_PARTITIONS):
            paths = [file.path for file in files if file.partition == partition]
            if paths:
                yield _total([pl.read_ipc(path) for path in paths])

    def _write(self, frame: pl.DataFrame) -> list[_PartitionFile]:
        """Write the rows of each partition into a file of its own."""
        folder = self._files[0].folder if self._files else Folder()
        partitions = frame.with_columns(partition=pl.col("key").hash() % N_PARTITIONS).partition_by(
            "partition", as_dict=True, include_key=False
        )
        files = []
        with Folder.storing():
            for (partition,), rows in partitions.items():
                file = _PartitionFile(folder, int(partition), folder.new())
                rows.write_ipc(file.path)
                files.append(file)
        return files

    def __reduce__(self) -> tuple[type, tuple[pl.Series, Ints]]:
        total = pl.concat(self._totals())
        return Frequencies, (total["key"], total["documents"].to_numpy())


def _total(frames: list[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat(frames).lazy().group_by("key").agg(pl.col("documents").sum()).collect()
