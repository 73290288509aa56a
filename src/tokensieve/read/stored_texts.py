"""Texts that do not fit into memory, in a file."""

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

MAX_BATCH_DOCUMENTS = 2**16  # texts that are in memory together
MAX_BATCH_BYTES = 2**26


class StoredTexts:
    """Texts in a file, with the few methods of `polars.Series` that the package needs.

    `extend` collects them; after the first text is read, none can be added.
    """

    def __init__(self) -> None:
        self.folder = Folder()
        self._path = self.folder.save([])
        self._sizes = [np.zeros(1, np.int64)]

    def extend(self, texts: Sequence[str]) -> None:
        """Add texts, which must not contain lone surrogates."""
        encoded = [text.encode() for text in texts]
        with Folder.storing(), self._path.open("ab") as file:
            file.writelines(encoded)
        self._sizes.append(np.array([len(text) for text in encoded], np.int64))

    @cached_property
    def _ends(self) -> Ints:
        """The places in the file where each text ends, preceded by 0."""
        return np.cumsum(np.concatenate(self._sizes))

    @cached_property
    def _data(self) -> NDArray[np.uint8]:
        is_empty = self._ends[-1] == 0  # an empty file cannot be mapped
        return np.empty(0, np.uint8) if is_empty else np.memmap(self._path, np.uint8, "r")

    @cached_property
    def _places(self) -> Ints:
        """The numbers of these texts in the file, in this order, shape (n,)."""
        return np.arange(len(self._ends) - 1)

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> pl.Series: ...
    def __getitem__(self, at: int | slice) -> str | pl.Series:
        if isinstance(at, slice):
            return self._series(self._places[at])
        return self._text(int(self._places[at]))

    def _text(self, place: int) -> str:
        return self._data[self._ends[place] : self._ends[place + 1]].tobytes().decode()

    def _series(self, places: Ints) -> pl.Series:
        texts = [self._text(place) for place in places.tolist()]
        return pl.Series("text", texts, dtype=pl.String)

    def filter(self, mask: pl.Series) -> StoredTexts:
        """The texts where `mask` is true."""
        subset = copy(self)
        subset._places = self._places[mask.to_numpy()]
        return subset

    def gather(self, positions: Ints) -> pl.Series:
        """The texts at these positions, in their order."""
        return self._series(self._places[positions])

    def to_list(self) -> list[str]:
        """All of them, in memory."""
        return self[:].to_list()

    def batches(self) -> Iterator[pl.Series]:
        """The texts in order, in batches that fit into memory."""
        sizes = self._ends[self._places + 1] - self._ends[self._places]
        starts = np.append(0, np.cumsum(sizes))
        for rows in row_blocks(starts, MAX_BATCH_BYTES, MAX_BATCH_DOCUMENTS):
            yield self[rows]
