"""Document frequencies added up over the parts of a corpus, in memory that does not grow with it."""

from __future__ import annotations

from typing import Any

import polars as pl

from tokensieve.text.counts import Ints
from tokensieve.text.spill import Folder

ROWS = 20_000_000
PARTITIONS = 64


class Frequencies:
    """In how many documents each key stands, part by part.

    Keys wait in memory until there are ROWS of them; then equal ones are added up, and if that does not halve them, all go to
    files, divided among PARTITIONS by a hash of the key, so that at the end one partition after the other fits into memory.

    Args:
        kind: Polars type of the keys.
    """

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self._waiting: list[pl.DataFrame] = []
        self._rows = 0
        self._folder: Folder | None = None
        self._spills = 0

    def add(self, keys: pl.Series, documents: Ints) -> None:
        """Distinct keys of one part, and the number of its documents that contain each."""
        self._waiting.append(pl.DataFrame({"key": keys.cast(self._kind), "documents": documents}))
        self._rows += len(keys)
        if self._rows > ROWS:
            total = _total(pl.concat(self._waiting).lazy()).collect()
            self._waiting, self._rows = [total], len(total)
            if self._rows > ROWS // 2:
                self._spill(total)

    def frequent(self, minimum: int) -> pl.Series:
        """The keys that stand in at least `minimum` documents, sorted."""
        enough = pl.col("documents") >= minimum
        if self._folder is None:
            waiting = self._waiting or [pl.DataFrame(schema={"key": self._kind, "documents": pl.Int64})]
            whole = waiting[0].lazy() if len(waiting) == 1 else _total(pl.concat(waiting).lazy())
            return whole.filter(enough).select("key").collect()["key"].sort()
        if self._waiting:
            self._spill(pl.concat(self._waiting))
        kept = []
        for partition in sorted(self._folder.path.iterdir()):
            frame = pl.concat([pl.read_ipc(path) for path in sorted(partition.iterdir())])
            kept.append(_total(frame.lazy()).filter(enough).select("key").collect()["key"])
        return pl.concat(kept).sort()

    def _spill(self, frame: pl.DataFrame) -> None:
        if self._folder is None:
            self._folder = Folder()
        divided = frame.with_columns(at=pl.col("key").hash() % PARTITIONS).partition_by(
            "at", as_dict=True, include_key=False
        )
        for (at,), part in divided.items():
            partition = self._folder.path / f"{at:03d}"
            partition.mkdir(exist_ok=True)
            part.write_ipc(partition / f"{self._spills:06d}")
        self._spills += 1
        self._waiting, self._rows = [], 0


def _total(frame: pl.LazyFrame) -> pl.LazyFrame:
    return frame.group_by("key").agg(pl.col("documents").sum())
