"""Documents × token types: the one structure that everything else reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tokensieve.errors import InputError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BLOCK = 2**22


@dataclass(frozen=True)
class Counts:
    """How often each token type stands in each document, with the documents' labels.

    The model does not see word order, so this is all that it, its gradients and every token statistic need.

    Attributes:
        matrix: c, shape (n, |S|), CSR with sorted indices and no stored zeros; c[k, s] ≥ 0 is how often type s
            stands in document k.
        labels: class index of each document, shape (n,), values 0 … K−1.
        classes: the K class names, in index order. With two classes, index 1 is y = +1.
        tokens: the |S| token types as text, shape (|S|,).
    """

    matrix: sp.csr_array
    labels: Ints
    classes: tuple[str, ...]
    tokens: NDArray[np.str_] | NDArray[np.object_]

    @classmethod
    def from_matrix(
        cls,
        matrix: Any,
        labels: Sequence[Any],
        classes: Sequence[str] = ("-1", "+1"),
        tokens: Sequence[str] | None = None,
    ) -> Counts:
        """Build from any SciPy sparse or dense matrix of non-negative counts.

        Raises:
            InputError: a negative or non-finite count, or shapes that do not agree.
        """
        csr = sp.csr_array(matrix, dtype=np.float64, copy=True)
        csr.sum_duplicates()
        csr.eliminate_zeros()
        if csr.nnz and not (np.isfinite(csr.data).all() and csr.data.min() > 0):
            raise InputError("counts must be finite and not negative")
        y = np.asarray(labels, dtype=np.int64)
        names = np.asarray([str(s) for s in range(csr.shape[1])] if tokens is None else tokens, dtype=object)
        if y.shape != (csr.shape[0],) or names.shape != (csr.shape[1],):
            raise InputError(
                f"{csr.shape[0]} documents of {csr.shape[1]} types, but {y.size} labels and {names.size} token names"
            )
        if y.size and (y.min() < 0 or y.max() >= len(classes)):
            raise InputError(f"labels must be class indices 0 … {len(classes) - 1}")
        return cls(csr, y, tuple(classes), names)

    @property
    def identity(self) -> tuple[Any, ...]:
        """All that it holds, for `tokensieve.checkpoint.fingerprint`."""
        m = self.matrix
        arrays = (x.astype(np.int64) for x in (m.indptr, m.indices, self.labels))
        return (*arrays, m.data, m.shape, self.classes, [str(token) for token in self.tokens])

    @property
    def n_documents(self) -> int:
        """n."""
        return int(self.matrix.shape[0])

    @property
    def n_types(self) -> int:
        """|S|."""
        return int(self.matrix.shape[1])

    @property
    def n_classes(self) -> int:
        """K."""
        return len(self.classes)

    @cached_property
    def lengths(self) -> Floats:
        """T_k = Σ_s c_{k,s}: tokens of the vocabulary in each document, shape (n,)."""
        return np.asarray(self.matrix.sum(axis=1), dtype=np.float64).ravel()

    @cached_property
    def signs(self) -> Floats:
        """y^k = ±1, shape (n,); +1 for class index 1.

        Raises:
            InputError: there are not exactly two classes.
        """
        if self.n_classes != 2:
            raise InputError(f"labels ±1 need two classes, this data has {self.n_classes}")
        return np.where(self.labels == 1, 1.0, -1.0)

    @cached_property
    def class_sizes(self) -> Ints:
        """Documents in each class, shape (K,)."""
        return np.bincount(self.labels, minlength=self.n_classes).astype(np.int64)

    @cached_property
    def present(self) -> Ints:
        """Documents of each class that contain each type, shape (|S|, K)."""
        out = np.zeros((self.n_types, self.n_classes), dtype=np.int64)
        for part in self.blocks():
            labels = np.repeat(part.labels, np.diff(part.matrix.indptr))
            out += np.bincount(part.matrix.indices * np.int64(self.n_classes) + labels, minlength=out.size).reshape(
                out.shape
            )
        return out

    def blocks(self) -> Iterator[Counts]:
        """The documents in order, a few million stored entries at a time, so that what is made per entry stays small."""
        for rows in row_blocks(self.matrix):
            yield self if rows == slice(0, self.n_documents) else self.rows(rows)

    def rows(self, which: NDArray[Any] | slice) -> Counts:
        """The same types, some of the documents (index, mask or slice)."""
        return Counts(sp.csr_array(self.matrix[which]), self.labels[which], self.classes, self.tokens)


def row_blocks(matrix: sp.csr_array) -> Iterator[slice]:
    """Runs of rows that hold a few million stored entries each, or are one row."""
    starts, n = matrix.indptr, int(matrix.shape[0])
    first = 0
    while first < n:
        limit = min(int(starts[first]) + BLOCK, int(starts[-1]))
        last = int(np.searchsorted(starts, starts.dtype.type(limit), side="right")) - 1
        last = max(last, first + 1)
        yield slice(first, last)
        first = last
