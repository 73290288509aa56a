"""Counts of documents × token types, the structure that everything else is computed from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tokensieve.arrays import Floats, Ints, select, sum_by_group
from tokensieve.errors import InputError
from tokensieve.text.counting import add_documents


@dataclass(frozen=True)
class Counts:
    """How often each token type occurs in each document, with the documents' labels.

    The model does not see word order, so the model, its gradients and all token statistics need
    nothing else.

    Attributes:
        matrix: c, shape (n, types), CSR with sorted indices and no stored zeros; c[k, s] ≥ 0 is how
            often type s occurs in document k.
        labels: class index of each document, shape (n,), values 0 … K−1.
        classes: the K class names, in index order. With two classes, index 1 is y = +1.
        tokens: the |S| token types as text, shape (types,).
        weights: the training weight of each document, shape (n,), or None if all are equal.
            Importance and tests count every document once.
        numbers: if the labels are scores, the score of each document, shape (n,); `labels` then say
            only whether it is above their mean.
    """

    matrix: sp.csr_array
    labels: Ints
    classes: tuple[str, ...]
    tokens: NDArray[np.str_] | NDArray[np.object_]
    weights: Floats | None = None
    numbers: Floats | None = None

    @classmethod
    def from_matrix(
        cls,
        matrix: sp.sparray | sp.spmatrix | NDArray[np.generic],
        labels: Sequence[int] | NDArray[np.generic],
        classes: Sequence[str] = ("-1", "+1"),
        tokens: Sequence[str] | None = None,
    ) -> Counts:
        """Build from any SciPy sparse or dense matrix of counts.

        Raises:
            InputError: a count is negative or not finite, shapes do not agree, or a label is no
                class index.
        """
        csr = sp.csr_array(matrix, dtype=np.float64, copy=True)
        csr.sum_duplicates()
        csr.eliminate_zeros()
        if csr.nnz and not (np.isfinite(csr.data).all() and csr.data.min() > 0):
            raise InputError("counts must be finite and not negative")
        n, n_types = csr.shape
        class_index = np.asarray(labels, dtype=np.int64)
        if tokens is None:
            tokens = [str(s) for s in range(n_types)]
        names = np.asarray(tokens, dtype=object)
        if class_index.shape != (n,) or names.shape != (n_types,):
            raise InputError(
                f"{n} documents, {n_types} types, "
                f"but {class_index.size} labels and {names.size} names"
            )
        if class_index.size and (class_index.min() < 0 or class_index.max() >= len(classes)):
            raise InputError(f"labels must be class indices 0 … {len(classes) - 1}")
        return cls(csr, class_index, tuple(classes), names)

    @property
    def identity(self) -> tuple[object, ...]:
        """The content, for `tokensieve.checkpoint.fingerprint`."""
        m = self.matrix
        integers = [array.astype(np.int64) for array in (m.indptr, m.indices, self.labels)]
        names = [str(token) for token in self.tokens]
        weights = [] if self.weights is None else [self.weights]
        numbers = [] if self.numbers is None else ["scores", self.numbers]
        return (*integers, m.data, m.shape, self.classes, names, *weights, *numbers)

    @property
    def n_documents(self) -> int:
        """The number of documents, n."""
        return int(self.matrix.shape[0])

    @property
    def n_types(self) -> int:
        """The number of token types, |S|."""
        return int(self.matrix.shape[1])

    @property
    def n_classes(self) -> int:
        """The number of classes, K."""
        return len(self.classes)

    @property
    def targets(self) -> Ints | Floats:
        """The values that a model learns to predict: the scores of documents, or the index of their
        class."""
        return self.labels if self.numbers is None else self.numbers

    @cached_property
    def lengths(self) -> Floats:
        """T_k = Σ_s c_{k,s}: tokens of the vocabulary in each document, shape (n,)."""
        return np.asarray(self.matrix.sum(axis=1), dtype=np.float64).ravel()

    @cached_property
    def signs(self) -> Floats:
        """y^k = ±1, shape (n,); +1 for class index 1. An `InputError` unless there are exactly two
        classes."""
        if self.n_classes != 2:
            raise InputError(f"labels ±1 need two classes, but this data has {self.n_classes}")
        return np.where(self.labels == 1, 1.0, -1.0)

    @cached_property
    def class_sizes(self) -> Ints:
        """Documents in each class, shape (K,)."""
        return np.bincount(self.labels, minlength=self.n_classes).astype(np.int64)

    @cached_property
    def present(self) -> Ints:
        """Documents of each class that contain each type, shape (types, K)."""
        return self._documents_by_class(np.ones(self.n_documents)).astype(np.int64)

    @cached_property
    def weighted_class_sizes(self) -> Ints | Floats:
        """Sum of the weights of the documents of each class, shape (K,); `class_sizes` without
        weights."""
        if self.weights is None:
            return self.class_sizes
        return np.bincount(self.labels, self.weights, self.n_classes)

    @cached_property
    def weighted_present(self) -> Ints | Floats:
        """Sum of the weights of the documents of each class that contain each type; `present`
        without weights."""
        if self.weights is None:
            return self.present
        return self._documents_by_class(self.weights)

    @property
    def sums_of_numbers(self) -> Floats:
        """Sum of the scores, times their weights, of the documents that contain each type,
        shape (types,)."""
        assert self.numbers is not None
        weights = 1.0 if self.weights is None else self.weights
        return np.asarray(self._documents_by_class(self.numbers * weights).sum(axis=1))

    @property
    def document_weights(self) -> Floats:
        """The weight of each document, shape (n,); 1 of every one if they were not weighted."""
        return np.ones(self.n_documents) if self.weights is None else self.weights

    def _documents_by_class(self, weights: Floats) -> Floats:
        """The weights of the documents of each class that contain each type, added up, shape (|S|,
        K)."""
        sums = np.zeros((self.n_types, self.n_classes))
        # integers of one type and writable arrays, so that the loop is compiled once
        starts = self.matrix.indptr.astype(np.int64)
        add_documents(starts, self.matrix.indices, self.labels.copy(), weights, sums)
        return sums

    @property
    def one_sided(self) -> Ints:
        """+1 for types that occur in class 1 only (completely positive), −1 for class 0 only, else
        0; shape (types,)."""
        absent = (self.present == 0).astype(np.int64)
        return np.asarray(absent[:, 0] - absent[:, 1])

    def signed_frequency(self, outputs: int = 1) -> Floats:
        """Average signed frequency α of each type, on which the first gradient step depends.

        Documents without any known token count in n and contribute nothing.

        Args:
            outputs: 1 for α_s = mean_k y^k c_{k,s}/T_k, shape (types,); K for
                α_{s,j} = mean_k (1[y^k = j] − 1/K) c_{k,s}/T_k, shape (types, K).
        """
        if outputs == 1:
            targets = self.signs[:, None]
        else:
            targets = np.eye(self.n_classes)[self.labels] - 1.0 / self.n_classes
        denominators = np.maximum(self.lengths, 1.0) * max(self.n_documents, 1)
        alpha = np.asarray(self.matrix.T @ (targets / denominators[:, None]))
        return alpha[:, 0] if outputs == 1 else alpha

    @cached_property
    def entry_documents(self) -> Ints:
        """The document of each stored entry, shape (nnz,)."""
        return np.repeat(np.arange(self.n_documents), np.diff(self.matrix.indptr))

    @cached_property
    def equal_documents(self) -> Ints:
        """A number for each document, the same for documents with the same counts, shape (n,)."""
        directions = np.random.default_rng(0).random(self.n_types)
        projections = self.matrix @ directions  # equal rows have equal sums, to the last bit
        numbers = np.unique(projections, return_inverse=True)[1]
        return np.asarray(numbers, dtype=np.int64)

    def largest_per_document(self, level: Floats) -> Floats:
        """The largest of the numbers of each document's stored entries, shape (n,); −∞ for a
        document without types."""
        largest = np.full(self.n_documents, -np.inf)
        starts = self.matrix.indptr
        has_types = starts[1:] > starts[:-1]
        if level.size:
            largest[has_types] = np.maximum.reduceat(level, starts[:-1][has_types])
        return largest

    def top_mask(self, u: Floats) -> NDArray[np.bool_]:
        """Mark the stored entries whose type has the highest score of its document, shape
        (nnz,)."""
        level = u[self.matrix.indices]
        return np.asarray(level == self.largest_per_document(level)[self.entry_documents])

    def merge_groups(self, units: Ints) -> tuple[Counts, Ints]:
        """Sum the counts of the documents of each combination of group and label, in that order.

        Args:
            units: the group of each document, shape (n,).

        Returns:
            The sums as documents, and the number of documents behind each.
        """
        if units.shape != (self.n_documents,):
            raise InputError(
                f"{self.n_documents} documents, but {units.size} groups: "
                "one is needed for each document"
            )
        cells = units * np.int64(self.n_classes) + self.labels
        matrix = sum_by_group(self.matrix, cells)
        matrix.sort_indices()
        cell_names, sizes = np.unique(cells, return_counts=True)
        merged = Counts(matrix, cell_names % self.n_classes, self.classes, self.tokens)
        return merged, sizes.astype(np.int64)

    def of_positive_weight(self) -> tuple[Counts, Ints]:
        """The documents of positive weight, with weights of mean 1 (None if all are equal), and
        their indices."""
        if self.weights is None:
            return self, np.arange(self.n_documents)
        rows = np.flatnonzero(self.weights)
        part = self if len(rows) == self.n_documents else self.rows(rows)
        weights = np.asarray(part.weights)
        if np.ptp(weights) == 0:
            return replace(part, weights=None), rows
        return replace(part, weights=weights / weights.mean()), rows

    def rows(self, which: NDArray[np.generic] | slice) -> Counts:
        """The counts of some of the documents (index, mask or slice), over the same types."""
        weights = None if self.weights is None else self.weights[which]
        numbers = None if self.numbers is None else self.numbers[which]
        matrix = select(self.matrix, which)
        return Counts(matrix, self.labels[which], self.classes, self.tokens, weights, numbers)

    def holders(self, types: Ints) -> list[Ints]:
        """The documents that contain each of some types, ascending."""
        if not len(types):
            return []
        columns = self.matrix[:, types].tocsc()
        boundaries = columns.indptr[1:-1]
        return np.split(columns.indices.astype(np.int64), boundaries)


def score_sides(numbers: Floats, weights: Floats | None = None) -> Ints:
    """Mark scores above their (weighted) mean with 1, others with 0, shape (n,).

    These take the place of classes where documents are drawn in proportion.
    """
    return np.asarray(numbers > np.average(numbers, weights=weights), dtype=np.int64)
