"""Texts and document frequencies that do not fit into memory, in files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import overload

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tokensieve.files import Folder
from tokensieve.text.counts import Counts, Ints

DOCUMENTS, BYTES = 2**16, 2**26  # most of a batch
ROWS = 20_000_000  # most document frequencies in memory


class StoredTexts:
    """Texts in a file, with the few methods of `polars.Series` that the package needs. First `extend` collects them."""

    def __init__(self) -> None:
        self.folder = Folder()
        self._path, self._sizes = self.folder.save([]), [np.zeros(1, np.int64)]

    def extend(self, texts: Sequence[str]) -> None:
        """More texts, without lone surrogates; only before the first one is read."""
        encoded = [text.encode() for text in texts]
        with Folder.storing(), self._path.open("ab") as file:
            file.writelines(encoded)
        self._sizes.append(np.array([len(text) for text in encoded], np.int64))

    @cached_property
    def _ends(self) -> Ints:
        """Where each text of the file ends, preceded by 0."""
        return np.cumsum(np.concatenate(self._sizes))

    @cached_property
    def _data(self) -> NDArray[np.uint8]:
        return np.memmap(self._path, np.uint8, "r") if self._ends[-1] else np.empty(0, np.uint8)

    @cached_property
    def _which(self) -> Ints:
        """Which texts of the file these are, in this order, shape (n,)."""
        return np.arange(len(self._ends) - 1)

    def __len__(self) -> int:
        return len(self._which)

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> pl.Series: ...
    def __getitem__(self, at: int | slice) -> str | pl.Series:
        if isinstance(at, slice):
            return pl.Series("text", [self._text(i) for i in self._which[at].tolist()], dtype=pl.String)
        return self._text(int(self._which[at]))

    def _text(self, i: int) -> str:
        return self._data[self._ends[i] : self._ends[i + 1]].tobytes().decode()

    def filter(self, mask: pl.Series) -> StoredTexts:
        """The texts where `mask` is true."""
        some = copy(self)
        some._which = self._which[mask.to_numpy()]
        return some

    def gather(self, which: Ints) -> pl.Series:
        """Some of the texts, in the order of their places."""
        return pl.Series("text", [self._text(i) for i in self._which[which].tolist()], dtype=pl.String)

    def to_list(self) -> list[str]:
        """All of them, in memory."""
        return self[:].to_list()

    def batches(self) -> Iterator[pl.Series]:
        """The texts in order, up to DOCUMENTS or about BYTES at a time."""
        sizes = self._ends[self._which + 1] - self._ends[self._which]
        for rows in Counts.row_blocks(np.append(0, np.cumsum(sizes)), BYTES, DOCUMENTS):
            yield self[rows]


class Frequencies:
    """In how many documents of a corpus, or of a chunk of it, each key (all String or all Int64) occurs: `a + b` is that of both.

    Sums wait in memory until there are ROWS of them; then equal keys are added up, and if that does not halve them, all go to
    files, divided among 64 by a hash of the key, so that at the end one partition after the other fits into memory.
    """

    def __init__(self, keys: pl.Series, documents: Ints) -> None:
        self._waiting = [pl.DataFrame({"key": keys, "documents": documents}, schema_overrides={"documents": pl.Int64})]
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
                out._files, out._waiting, out._rows = out._files + out._spilled(total), [total.clear()], 0
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
        divided = frame.with_columns(at=pl.col("key").hash() % 64).partition_by("at", as_dict=True, include_key=False)
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
