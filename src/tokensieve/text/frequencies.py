"""Document frequencies that do not fit into memory, in files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from tokensieve.arrays import Ints
from tokensieve.files import Folder

ROWS = 20_000_000  # most document frequencies in memory


class Frequencies:
    """In how many documents of a corpus, or of a chunk of it, each key (all String or all Int64) occurs: `a + b` is that of both.

    Sums wait in memory until there are ROWS of them; then equal keys are added up, and if that does not halve them, all go to
    files, divided among 64 by a hash of the key, so that at the end one partition after the other fits into memory.
    """

    def __init__(self, keys: pl.Series, documents: Ints) -> None:
        self._waiting = [
            pl.DataFrame(
                {"key": keys, "documents": documents}, schema_overrides={"documents": pl.Int64}
            )
        ]
        self._rows = len(keys)
        self._files: list[tuple[Folder, int, Path]] = []  # (what keeps it alive, partition, file)

    def __add__(self, other: Frequencies) -> Frequencies:
        out = Frequencies.__new__(Frequencies)
        out._waiting, out._files = self._waiting + other._waiting, self._files + other._files
        out._rows = self._rows + other._rows
        if out._rows > ROWS:
            total = _total(out._waiting)
            out._waiting, out._rows = [total], len(total)
            if len(total) > ROWS // 2:
                out._files, out._waiting, out._rows = (
                    out._files + out._spilled(total),
                    [total.clear()],
                    0,
                )
        return out

    def frequent(self, minimum: int) -> pl.Series:
        """The keys that occur in at least `minimum` documents, sorted."""
        enough = pl.col("documents") >= minimum
        return pl.concat([total.filter(enough)["key"] for total in self._totals()]).sort()

    def _totals(self) -> Iterator[pl.DataFrame]:
        """The sums, every key in one of the frames."""
        if not self._files:
            yield self._waiting[0] if len(self._waiting) == 1 else _total(self._waiting)
            return
        files = self._files + self._spilled(pl.concat(self._waiting))
        yield self._waiting[0].clear()
        for partition in range(64):
            paths = [path for _, at, path in files if at == partition]
            if paths:
                yield _total([pl.read_ipc(path) for path in paths])

    def _spilled(self, frame: pl.DataFrame) -> list[tuple[Folder, int, Path]]:
        folder = self._files[0][0] if self._files else Folder()
        divided = frame.with_columns(at=pl.col("key").hash() % 64).partition_by(
            "at", as_dict=True, include_key=False
        )
        files = [(folder, int(at), folder.new()) for (at,) in divided]
        with Folder.storing():
            for part, (_, _, path) in zip(divided.values(), files, strict=True):
                part.write_ipc(path)
        return files

    def __reduce__(self) -> tuple[type, tuple[pl.Series, Ints]]:
        total = pl.concat(self._totals())
        return Frequencies, (total["key"], total["documents"].to_numpy())


def _total(frames: list[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat(frames).lazy().group_by("key").agg(pl.col("documents").sum()).collect()
