"""The sums over documents from which importance is computed; they merge exactly.

However a corpus is divided, on any number of machines, the sum over the parts has the same bits as
the sum over the whole. Streams and clusters rely on that, so real numbers are summed in fixed point
here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numba
import numpy as np
import scipy.sparse as sp

from tokensieve.arrays import Floats, Ints, Positions, in_ranges, matrix_blocks
from tokensieve.kernels import compiled
from tokensieve.text.counts import Counts

# a fixed-point number is three words of 31 bits: 93 bits behind the point
BITS_PER_WORD = 31
WORDS_PER_NUMBER = 3
TYPES_AT_ONCE = 2**15  # whose statistics are computed together: 5 MB for each class of two
N_POWERS = 3  # Σ x, Σ x² and Σ x³ are kept


class Sums(tuple[Any, ...]):
    """Numbers, arrays or other sums that are added elementwise."""

    def __add__(self, other: Any) -> Sums:
        return Sums(a + b for a, b in zip(self, other, strict=True))


@dataclass(frozen=True)
class PowerSums:
    """Σ x, Σ x² and Σ x³ over the documents of all classes, each of shape (types, 1)."""

    first: Floats
    second: Floats
    third: Floats


@dataclass(frozen=True)
class TokenSums:
    """Sums over documents X with counts c, lengths T and shares x = c/T; `a + b` merges exactly.

    There are |S| types and K classes. Σx, Σx², Σx³ and Σ1/T are fixed-point numbers Σ_i word_i
    2^(−31 (i+1)), i = 0, 1, 2, their words summed as 64-bit integers: sums are not rounded, so
    their order does not matter, and there is room for 2³² documents. What a term loses after 93
    bits is below its own rounding for documents of up to 5,000 tokens, and below 10⁻¹² of it for up
    to 200,000.

    Attributes:
        class_sizes: documents of each class, shape (K,).
        inverse_lengths: words of Σ 1/T in each class, over documents with tokens, shape (K, 3).
        present: documents of the class that contain the type, shape (types, K).
        count: Σ c in the class, shape (types, K): whole numbers, hence exact.
        squares: Σ c² in the class, shape (types, K).
        shares: words of Σ x, Σ x² and Σ x³ in each class, shape (|S|, K, 3, 3).
    """

    class_sizes: Ints
    inverse_lengths: Ints
    present: Ints
    count: Floats
    squares: Floats
    shares: Ints

    @classmethod
    def zero(cls, n_types: int, n_classes: int) -> TokenSums:
        """The sums over no documents."""
        return cls(
            class_sizes=np.zeros(n_classes, np.int64),
            inverse_lengths=np.zeros((n_classes, WORDS_PER_NUMBER), np.int64),
            present=np.zeros((n_types, n_classes), np.int64),
            count=np.zeros((n_types, n_classes)),
            squares=np.zeros((n_types, n_classes)),
            shares=np.zeros((n_types, n_classes, N_POWERS, WORDS_PER_NUMBER), np.int64),
        )

    @classmethod
    def of(
        cls, matrix: Any, labels: Ints, n_classes: int, lengths: Floats | None = None
    ) -> TokenSums:
        """The sums over the rows of a matrix of counts (CSR, float64), in O(nonzeros).

        Args:
            labels: class index of each row.
            lengths: T in tokens, shape (n,), at least every c of the row; the row sums if None.
        """
        sums = cls.zero(matrix.shape[1], n_classes)
        sums.add_documents(matrix, labels, lengths)
        return sums

    def add_documents(self, matrix: Any, labels: Ints, lengths: Floats | None = None) -> None:
        """Add the rows of a matrix of counts in place; the arguments are those of `of`."""
        if lengths is None:
            lengths = np.asarray(matrix.sum(axis=1), dtype=np.float64).ravel()
        self.class_sizes[:] += np.bincount(labels, minlength=len(self.class_sizes))
        documents = _Documents(
            matrix.indptr.astype(np.int64),
            matrix.indices.astype(np.int32, copy=False),
            matrix.data,
            np.array(labels, np.int64),  # a copy is writable, so that the kernel is compiled once
            lengths,
        )
        totals = _Totals(self.inverse_lengths, self.present, self.count, self.squares, self.shares)
        # each thread has some of the types
        in_ranges(lambda low, high: _add_up(documents, totals, low, high), documents.types)

    @staticmethod
    def of_counts(counts: Counts, n_formatting: int = 0, units: Ints | None = None) -> Sums:
        """(sums over words, sums over formatting) of documents, a block of documents at a time.

        Formatting is in the last `n_formatting` columns; a document has a length of one there. With
        `units`, the group of each document, the sums are over groups, of which formatting has the
        share of its documents.
        """
        n_words = counts.n_types - n_formatting
        n_classes = counts.n_classes
        words = TokenSums.zero(n_words, n_classes)
        formatting = TokenSums.zero(n_formatting, n_classes)
        if units is None:
            documents_behind = np.ones(counts.n_documents, np.int64)
        else:
            counts, documents_behind = counts.merge_groups(units)
        for rows, matrix in matrix_blocks(counts.matrix):
            labels = counts.labels[rows]
            if not n_formatting:
                words.add_documents(matrix, labels)
                continue
            words.add_documents(sp.csr_array(matrix[:, :n_words]), labels)
            n_behind = documents_behind[rows].astype(np.float64)
            formatting.add_documents(sp.csr_array(matrix[:, n_words:]), labels, n_behind)
        return Sums((words, formatting))

    @staticmethod
    def of_label(label: int, sides: Sequence[TokenSums]) -> TokenSums:
        """The documents of one label in several sums over the same types.

        Those of the first sum are class 0, of the next class 1, and so on.
        """

        def stack(name: str, axis: int) -> Any:
            return np.stack([getattr(side, name).take(label, axis) for side in sides], axis)

        return TokenSums(
            class_sizes=stack("class_sizes", 0),
            inverse_lengths=stack("inverse_lengths", 0),
            present=stack("present", 1),
            count=stack("count", 1),
            squares=stack("squares", 1),
            shares=stack("shares", 1),
        )

    def of_types(self, some: slice) -> TokenSums:
        """The sums of some of the types, as views."""
        return replace(
            self,
            present=self.present[some],
            count=self.count[some],
            squares=self.squares[some],
            shares=self.shares[some],
        )

    def __add__(self, other: TokenSums) -> TokenSums:
        return TokenSums(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    @property
    def documents(self) -> int:
        """The number of documents, n."""
        return int(self.class_sizes.sum())

    @property
    def sizes(self) -> Floats:
        """Documents of each class, as floats, shape (K,)."""
        return self.class_sizes.astype(np.float64)

    @property
    def first(self) -> Floats:
        """Σ x in each class, shape (types, K)."""
        return _as_floats(self.shares[:, :, 0])

    @property
    def second(self) -> Floats:
        """Σ x² in each class, shape (types, K)."""
        return _as_floats(self.shares[:, :, 1])

    @property
    def powers(self) -> PowerSums:
        """Over all classes."""
        first, second, third = _as_floats(self.shares.sum(axis=1)).T[:, :, None]
        return PowerSums(first, second, third)

    @property
    def inverse(self) -> Floats:
        """Σ 1/T in each class, shape (K,)."""
        return _as_floats(self.inverse_lengths)


def blocks_of_types(n_types: int) -> list[slice]:
    """Runs of types whose statistics are computed together, so that what is in between is small."""
    starts = range(0, max(n_types, 1), TYPES_AT_ONCE)
    return [slice(start, start + TYPES_AT_ONCE) for start in starts]


def _as_floats(words: Ints) -> Floats:
    """Fixed-point numbers, words along the last axis, as floats."""
    numbers = np.zeros(words.shape[:-1])
    for i in reversed(range(WORDS_PER_NUMBER)):
        # shift by one word: a power of two is exact
        numbers = (numbers + words[..., i]) * 2.0**-BITS_PER_WORD
    return numbers


class _Documents(NamedTuple):
    """The rows of a CSR matrix of counts, with their labels and lengths."""

    starts: Ints
    types: Positions
    entries: Floats
    labels: Ints
    lengths: Floats


class _Totals(NamedTuple):
    """The arrays of `TokenSums` that the kernel adds to."""

    inverse_lengths: Ints
    present: Ints
    occurrences: Floats
    squares: Floats
    shares: Ints


@compiled(nogil=True)
def _add_up(documents: _Documents, totals: _Totals, low: int, high: int) -> None:
    """Add documents to the sums of the types from `low` to `high` − 1.

    Their 1/T, which belong to no type, are added if `low` is −1.
    """
    for k in range(len(documents.labels)):
        y = documents.labels[k]
        length = documents.lengths[k]
        if length > 0 and low < 0:
            _add_words(totals.inverse_lengths[y], 1.0 / length)
        for i in range(documents.starts[k], documents.starts[k + 1]):
            s = documents.types[i]
            if s < low or s >= high:
                continue
            c = documents.entries[i]
            x = c / length
            totals.present[s, y] += 1
            totals.occurrences[s, y] += c
            totals.squares[s, y] += c * c
            _add_words(totals.shares[s, y, 0], x)
            _add_words(totals.shares[s, y, 1], x * x)
            _add_words(totals.shares[s, y, 2], x * x * x)


@numba.njit()
def _add_words(words: Ints, x: float) -> None:
    """Add x in [0, 1] to a fixed-point number; every step but the last is exact."""
    for i in range(WORDS_PER_NUMBER - 1):
        x *= 2.0**BITS_PER_WORD
        word = np.int64(x)
        words[i] += word
        x -= word
    words[WORDS_PER_NUMBER - 1] += np.int64(x * 2.0**BITS_PER_WORD + 0.5)
