"""Texts and document frequencies that do not fit into memory, in files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from functools import cached_property
from typing import overload

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tokensieve.arrays import Ints, row_blocks
from tokensieve.files import Folder

DOCUMENTS, BYTES = 2**16, 2**26  # most of a batch


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
            return pl.Series(
                "text", [self._text(i) for i in self._which[at].tolist()], dtype=pl.String
            )
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
        return pl.Series(
            "text", [self._text(i) for i in self._which[which].tolist()], dtype=pl.String
        )

    def to_list(self) -> list[str]:
        """All of them, in memory."""
        return self[:].to_list()

    def batches(self) -> Iterator[pl.Series]:
        """The texts in order, up to DOCUMENTS or about BYTES at a time."""
        sizes = self._ends[self._which + 1] - self._ends[self._which]
        for rows in row_blocks(np.append(0, np.cumsum(sizes)), BYTES, DOCUMENTS):
            yield self[rows]
