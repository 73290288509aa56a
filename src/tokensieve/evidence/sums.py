"""The sums over documents from which importance is computed; they merge exactly.

However a corpus is divided, on any number of machines, the sum over the parts has the same bits as the sum over the whole. Streams
and clusters rely on that, so real numbers are summed in fixed point here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numba
import numpy as np
import scipy.sparse as sp

from tokensieve.arrays import Floats, Ints, in_ranges, matrix_blocks
from tokensieve.text.counts import Counts

WORD, WORDS = (
    31,
    3,
)  # bits of each part of a fixed-point number, and parts: 93 bits behind the point


class Sums(tuple[Any, ...]):
    """Numbers, arrays or other sums that are added elementwise."""

    def __add__(self, other: Any) -> Sums:
        return Sums(a + b for a, b in zip(self, other, strict=True))


@dataclass(frozen=True)
class TokenSums:
    """Sums over documents X with counts c, lengths T and shares x = c/T, for |S| types and K classes; `a + b` merges exactly.

    Σx, Σx², Σx³ and Σ1/T are fixed-point numbers Σ_i word_i 2^(−31 (i+1)), i = 0, 1, 2, their words summed as 64-bit integers:
    sums are not rounded, so their order does not matter, and there is room for 2³² documents. What a term loses after 93 bits is
    below its own rounding for documents of up to 5,000 tokens, and below 10⁻¹² of it for up to 200,000.

    Attributes:
        class_sizes: documents of each class, shape (K,).
        inverse_lengths: words of Σ 1/T in each class, over documents that are not empty, shape (K, 3).
        present: documents of the class that contain the type, shape (|S|, K).
        count: Σ c in the class, shape (|S|, K): whole numbers, hence exact.
        squares: Σ c² in the class, shape (|S|, K).
        shares: words of Σ x, Σ x² and Σ x³ in each class, shape (|S|, K, 3, 3).
    """

    class_sizes: Ints
    inverse_lengths: Ints
    present: Ints
    count: Floats
    squares: Floats
    shares: Ints

    @classmethod
    def zero(cls, types: int, classes: int) -> TokenSums:
        """The sums over no documents."""
        count, squares = np.zeros((2, types, classes))
        shapes = (classes,), (classes, WORDS), (types, classes), (types, classes, 3, WORDS)
        sizes, inverse, present, shares = (np.zeros(shape, np.int64) for shape in shapes)
        return cls(sizes, inverse, present, count, squares, shares)

    @classmethod
    def of(
        cls, matrix: Any, labels: Ints, classes: int, lengths: Floats | None = None
    ) -> TokenSums:
        """The sums over documents, the rows of a matrix of counts c (CSR, float64), with their class indices, in O(nonzeros).

        `lengths` are T in tokens, shape (n,), at least every c of the row; the row sums if None."""
        out = cls.zero(matrix.shape[1], classes)
        if lengths is None:
            lengths = np.asarray(matrix.sum(axis=1), dtype=np.float64).ravel()
        out.class_sizes[:] = np.bincount(labels, minlength=classes)
        # writable: one compilation
        places = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32, copy=False)
        rows = *places, matrix.data, np.array(labels, np.int64), lengths
        sums = (out.inverse_lengths, out.present, out.shares), (out.count, out.squares)
        in_ranges(
            lambda low, high: _add_up(rows, *sums, low, high), places[1]
        )  # threads share the types
        return out

    @staticmethod
    def of_counts(counts: Counts, features: int = 0, units: Ints | None = None) -> Sums:
        """Sums over the words of documents, or of their groups (`units`), and over their formatting, the last `features`
        columns, of which a document has lengths of one and a group the share of its documents; a block of documents at a
        time."""
        words, k = counts.n_types - features, counts.n_classes
        sums, marks = TokenSums.zero(words, k), TokenSums.zero(features, k)
        whole, sizes = (
            (counts, np.ones(counts.n_documents, np.int64))
            if units is None
            else counts.merge_groups(units)
        )
        for rows, m in matrix_blocks(whole.matrix):
            labels, lengths = whole.labels[rows], sizes[rows].astype(np.float64)
            sums += TokenSums.of(sp.csr_array(m[:, :words]) if features else m, labels, k)
            if features:
                marks += TokenSums.of(sp.csr_array(m[:, words:]), labels, k, lengths)
        return Sums((sums, marks))

    @staticmethod
    def of_label(label: int, sides: Sequence[TokenSums]) -> TokenSums:
        """The documents of one label in several sums over the same types: those of the first are class 0, of the next class 1, …"""
        axes = {
            "class_sizes": 0,
            "inverse_lengths": 0,
            "present": 1,
            "count": 1,
            "squares": 1,
            "shares": 1,
        }
        return TokenSums(
            *(
                np.stack([getattr(side, name).take(label, axis) for side in sides], axis)
                for name, axis in axes.items()
            )
        )

    def __add__(self, other: TokenSums) -> TokenSums:
        return TokenSums(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    @property
    def documents(self) -> int:
        """n."""
        return int(self.class_sizes.sum())

    @property
    def sizes(self) -> Floats:
        """Documents of each class, as floats, shape (K,)."""
        return self.class_sizes.astype(np.float64)

    @property
    def first(self) -> Floats:
        """Σ x in each class, shape (|S|, K)."""
        return _as_floats(self.shares[:, :, 0])

    @property
    def second(self) -> Floats:
        """Σ x² in each class, shape (|S|, K)."""
        return _as_floats(self.shares[:, :, 1])

    @property
    def powers(self) -> tuple[Floats, Floats, Floats]:
        """Σ x, Σ x² and Σ x³ over all classes, each of shape (|S|, 1)."""
        first, second, third = _as_floats(self.shares.sum(axis=1)).T[:, :, None]
        return first, second, third

    @property
    def inverse(self) -> Floats:
        """Σ 1/T in each class, shape (K,)."""
        return _as_floats(self.inverse_lengths)


def _as_floats(words: Ints) -> Floats:
    """Fixed-point numbers, words along the last axis, as floats."""
    out = np.zeros(words.shape[:-1])
    for i in reversed(range(WORDS)):
        out = (out + words[..., i]) * 2.0**-WORD
    return out


@numba.njit(cache=True, nogil=True)
def _add_up(
    rows: tuple[Ints, Ints, Floats, Ints, Floats],
    whole: tuple[Ints, Ints, Ints],
    real: tuple[Floats, Floats],
    low: int,
    high: int,
) -> None:
    """Add documents (indptr, indices, counts, labels, lengths) to the sums of the types from `low` to `high` − 1, and their 1/T,
    which belong to no type, if `low` is −1."""
    indptr, indices, data, labels, lengths = rows
    inverse, present, shares = whole
    count, squares = real
    for k in range(len(labels)):
        y, length = labels[k], lengths[k]
        if length > 0 and low < 0:
            _add_words(inverse[y], 1.0 / length)
        for i in range(indptr[k], indptr[k + 1]):
            s, c = indices[i], data[i]
            if s < low or s >= high:
                continue
            x = c / length
            present[s, y] += 1
            count[s, y] += c
            squares[s, y] += c * c
            _add_words(shares[s, y, 0], x)
            _add_words(shares[s, y, 1], x * x)
            _add_words(shares[s, y, 2], x * x * x)


@numba.njit()
def _add_words(words: Ints, x: float) -> None:
    """Add x in [0, 1] to a fixed-point number; every step but the last is exact."""
    for i in range(WORDS - 1):
        x *= 2.0**WORD
        whole = np.int64(x)
        words[i] += whole
        x -= whole
    words[WORDS - 1] += np.int64(x * 2.0**WORD + 0.5)
