"""Documents that lie on a Dask cluster, for code that was written for one machine.

`RemoteMatrix` takes the place of the counts matrix and `RemoteTexts` that of the texts. Rows picked by number are fetched; rows
chosen by a mask, and columns, stay there as another matrix; functions marked `tokensieve.text.counts.in_parts` run there. Every
result is a pure function of the partitions and their order, and nothing is scattered, so that all of it can be computed again
when a worker dies.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import polars as pl
import scipy.sparse as sp

from tokensieve.errors import InputError
from tokensieve.text.counts import Counts, Floats, Ints
from tokensieve.text.spill import StoredTexts
from tokensieve.text.vocabulary import Chunks

Counted = tuple[Counts, Ints | None, int, int]  # documents, their groups, words that are no token type, and all words


class Partitions(Chunks):
    """Chunks that lie on a cluster; what is computed of them is computed there."""

    def __init__(self, client: Any, parts: Sequence[Any]) -> None:
        self.client, self.parts = client, list(parts)

    def run(self, function: Callable[..., object], *arguments: object) -> Any:
        """The result of one task, still on the cluster."""
        if getattr(self.client, "status", "") == "closed":
            raise InputError("the documents lie on a cluster whose client is closed: save the audit before that")
        return self.client.submit(function, *arguments, pure=False)

    def sent(self, value: object) -> Any:
        """A value on the cluster, for the tasks of all partitions."""
        return self.run(lambda value: value, value)

    def each(self, function: Callable[..., object], *common: object, numbered: bool = False) -> Partitions:
        """The results of a function of every partition (and its number), still on the cluster."""
        parts = [(part, i) if numbered else (part,) for i, part in enumerate(self.parts)]
        return Partitions(self.client, [self.run(function, *part, *common) for part in parts])

    def here(self) -> list[Any]:
        """The partitions, brought here."""
        return list(self.client.gather(self.parts))

    def sum(self) -> Any:
        """The sum, pair by pair in a fixed order, still on the cluster."""
        parts = self.parts
        while len(parts) > 1:
            pairs = [self.run(operator.add, *parts[i : i + 2]) for i in range(0, len(parts) - 1, 2)]
            parts = pairs + parts[2 * len(pairs) :]
        return parts[0]

    def total(self, of: Callable[..., Any], *common: Any, then: Callable[[Any], Any] | None = None) -> Any:
        """What `then` makes of the sum of `of(chunk, *common)`, brought here."""
        found = self.each(of, *map(self.sent, common)).sum()
        return (found if then is None else self.run(then, found)).result()

    def regrouped(self, cut: Callable[..., object], column: str, join: Callable[..., object]) -> Partitions:
        """`join` of what `cut(partition, column, number of partitions)` has for each of as many new partitions."""
        n = len(self.parts)
        cuts = self.each(cut, column, n).parts
        return Partitions(
            self.client, [self.run(join, [self.run(operator.getitem, one, i) for one in cuts]) for i in range(n)]
        )

    def pick(self, sizes: Ints, which: Ints, of: Callable[..., object]) -> tuple[list[Any], Ints]:
        """`of(partition, places)` of documents numbered over all partitions, of `sizes` each, partition by partition; and where
        among the results the documents are as asked."""
        ends = np.cumsum(sizes)
        part = np.searchsorted(ends, which, side="right")
        tasks = [self.run(of, self.parts[p], which[part == p] - (ends[p] - sizes[p])) for p in np.unique(part).tolist()]
        return list(self.client.gather(tasks)), np.argsort(np.argsort(part, kind="stable"))


class Sums(tuple[Any, ...]):
    """Numbers that add up one by one."""

    def __add__(self, other: Any) -> Sums:
        return Sums(a + b for a, b in zip(self, other, strict=True))


class RemoteMatrix:
    """Counts of documents on a cluster, with the little of a CSR matrix that an audit asks of it.

    Args:
        parts: `Counted` partitions.
        types: |S|.
    """

    def __init__(self, parts: Partitions, types: int) -> None:
        self.parts, self._types = parts, types

    @cached_property
    def sizes(self) -> Ints:
        """Documents of each partition."""
        return np.array(self.parts.each(lambda part: part[0].n_documents).here())

    @property
    def shape(self) -> tuple[int, int]:
        """n and |S|."""
        return int(self.sizes.sum()), self._types

    def in_parts(self, function: Callable[..., Any], join: Literal["sum", "rows"], bare: bool, *arguments: Any) -> Any:
        """A function of the matrix (`bare`) or of the counts: the sum of its values for the partitions, or one after the other."""
        # groups, of which a partition has its own
        own = [not bare and isinstance(value, np.ndarray) for value in arguments]
        given = [None if mine else self.parts.sent(value) for mine, value in zip(own, arguments, strict=True)]

        def applied(part: Counted, *given: Any) -> Any:
            arguments = [part[1] if mine else value for mine, value in zip(own, given, strict=True)]
            found = function(part[0].matrix if bare else part[0], *arguments)
            return Sums(found) if isinstance(found, tuple) else found

        found = self.parts.each(applied, *given)
        return found.sum().result() if join == "sum" else np.concatenate(found.here())

    @cached_property
    def indptr(self) -> Ints:
        """Where each document's entries would begin, shape (n+1,)."""
        entries = self.parts.each(lambda part: np.diff(part[0].matrix.indptr)).here()
        return np.append(0, np.cumsum(np.concatenate(entries), dtype=np.int64))

    @property
    def nnz(self) -> int:
        """Stored entries."""
        return int(self.indptr[-1])

    def sum(self, axis: Literal[1]) -> Floats:
        """Tokens of each document, shape (n,)."""
        assert axis == 1
        return np.concatenate(self.parts.each(lambda part: part[0].lengths).here())

    def __getitem__(self, which: Any) -> Any:
        """Columns `[:, types]` and rows of a mask as another `RemoteMatrix`, rows by number as a CSR matrix."""
        if isinstance(which, tuple):
            types = np.arange(self._types)[which[1]]
            return RemoteMatrix(self.parts.each(_columns, self.parts.sent(types)), len(types))
        if getattr(which, "dtype", None) == np.bool_:
            masks = np.split(which, np.cumsum(self.sizes)[:-1])
            parts = [
                self.parts.run(RemoteMatrix.rows_of, part, mask)
                for part, mask in zip(self.parts.parts, masks, strict=True)
            ]
            return RemoteMatrix(Partitions(self.parts.client, parts), self._types)
        asked = np.arange(self.shape[0])[which]
        found, order = self.parts.pick(self.sizes, asked, lambda part, places: part[0].matrix[places])
        return sp.csr_array(sp.vstack([sp.csr_array((0, self._types)), *found], format="csr"))[order]

    def tocsc(self) -> sp.csc_array:
        """All of it, brought here: of a few columns."""
        return sp.csc_array(sp.vstack(self.parts.each(lambda part: part[0].matrix).here(), format="csc"))

    @staticmethod
    def rows_of(part: Counted, mask: Any) -> Counted:
        """The documents of a mask."""
        counts, units, unknown, words = part
        return counts.rows(mask), None if units is None else units[mask], unknown, words


class RemoteTexts(StoredTexts):
    """Texts on a cluster, the last entry of each partition, with the documents of each; those that were fetched once stay here."""

    def __init__(self, parts: Partitions, sizes: Ints) -> None:
        self._parts, self._sizes, self._known = parts, sizes, dict[int, str]()

    def __len__(self) -> int:
        return int(np.sum(self._sizes))

    def __getitem__(self, at: Any) -> Any:
        found = self.gather(np.atleast_1d(np.arange(len(self))[at]))
        return found if isinstance(at, slice) else found[0]

    def gather(self, which: Ints) -> pl.Series:
        """Some of the texts, in the order of their places."""
        asked = np.asarray(which, dtype=np.int64)
        new = np.unique([i for i in asked.tolist() if i not in self._known]).astype(np.int64)
        if len(new):
            found, _ = self._parts.pick(self._sizes, new, lambda part, places: part[-1].gather(places))
            self._known |= dict(zip(new.tolist(), pl.concat(found).to_list(), strict=True))
        return pl.Series("text", [self._known[i] for i in asked.tolist()], dtype=pl.String)

    def characters(self) -> Ints:
        """Length of each text in characters, shape (n,)."""
        lengths = self._parts.each(lambda part: part[-1].str.len_chars().to_numpy()).here()
        return np.concatenate(lengths).astype(np.int64)


def _columns(part: Counted, types: Ints) -> Counted:
    return replace(part[0], matrix=part[0].matrix[:, types], tokens=part[0].tokens[types]), *part[1:]
