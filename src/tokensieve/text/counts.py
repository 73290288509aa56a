"""Counts of documents × token types, the structure that everything else is computed from, and the code that fills it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numba
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tokensieve.arrays import (
    Floats,
    Ints,
    Positions,
    in_ranges,
    in_threads,
    select,
    sum_by_group,
)
from tokensieve.errors import InputError

T = TypeVar("T")

GOLDEN = np.uint64(
    0x9E3779B97F4A7C15
)  # 2⁶⁴ / golden ratio: its products spread neighbouring keys (Knuth 1973, 6.4)


@dataclass(frozen=True)
class Counts:
    """How often each token type occurs in each document, with the documents' labels.

    The model does not see word order, so the model, its gradients and all token statistics need nothing else.

    Attributes:
        matrix: c, shape (n, |S|), CSR with sorted indices and no stored zeros; c[k, s] ≥ 0 is how often type s
            occurs in document k.
        labels: class index of each document, shape (n,), values 0 … K−1.
        classes: the K class names, in index order. With two classes, index 1 is y = +1.
        tokens: the |S| token types as text, shape (|S|,).
        weights: the training weight of each document, shape (n,), or None if all are equal. Importance and tests count every
            document once.
    """

    matrix: sp.csr_array
    labels: Ints
    classes: tuple[str, ...]
    tokens: NDArray[np.str_] | NDArray[np.object_]
    weights: Floats | None = None

    @classmethod
    def from_matrix(
        cls,
        matrix: sp.sparray | sp.spmatrix | NDArray[np.generic],
        labels: Sequence[int] | NDArray[np.generic],
        classes: Sequence[str] = ("-1", "+1"),
        tokens: Sequence[str] | None = None,
    ) -> Counts:
        """Build from any SciPy sparse or dense matrix of non-negative counts; an `InputError` if shapes do not agree."""
        csr = sp.csr_array(matrix, dtype=np.float64, copy=True)
        csr.sum_duplicates()
        csr.eliminate_zeros()
        if csr.nnz and not (np.isfinite(csr.data).all() and csr.data.min() > 0):
            raise InputError("counts must be finite and not negative")
        y = np.asarray(labels, dtype=np.int64)
        names = np.asarray(
            [str(s) for s in range(csr.shape[1])] if tokens is None else tokens, dtype=object
        )
        if y.shape != (csr.shape[0],) or names.shape != (csr.shape[1],):
            raise InputError(
                f"{csr.shape[0]} documents, {csr.shape[1]} types, but {y.size} labels and {names.size} names"
            )
        if y.size and (y.min() < 0 or y.max() >= len(classes)):
            raise InputError(f"labels must be class indices 0 … {len(classes) - 1}")
        return cls(csr, y, tuple(classes), names)

    @property
    def identity(self) -> tuple[object, ...]:
        """The content, for `tokensieve.checkpoint.fingerprint`."""
        m = self.matrix
        arrays = (x.astype(np.int64) for x in (m.indptr, m.indices, self.labels))
        weights = () if self.weights is None else (self.weights,)
        return (
            *arrays,
            m.data,
            m.shape,
            self.classes,
            [str(token) for token in self.tokens],
            *weights,
        )

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
        """y^k = ±1, shape (n,); +1 for class index 1. An `InputError` unless there are exactly two classes."""
        if self.n_classes != 2:
            raise InputError(f"labels ±1 need two classes, but this data has {self.n_classes}")
        return np.where(self.labels == 1, 1.0, -1.0)

    @cached_property
    def class_sizes(self) -> Ints:
        """Documents in each class, shape (K,)."""
        return np.bincount(self.labels, minlength=self.n_classes).astype(np.int64)

    @cached_property
    def entry_documents(self) -> Ints:
        """The document of each stored entry, shape (nnz,)."""
        return np.repeat(np.arange(self.n_documents), np.diff(self.matrix.indptr))

    @cached_property
    def equal_documents(self) -> Ints:
        """A number for each document, the same for documents with the same counts, shape (n,)."""
        views = np.random.default_rng(0).random(
            self.n_types
        )  # equal rows have equal sums, to the last bit
        return np.asarray(np.unique(self.matrix @ views, return_inverse=True)[1], dtype=np.int64)

    def largest_per_document(self, level: Floats) -> Floats:
        """The largest of the numbers of each document's stored entries, shape (n,); −∞ for a document without types."""
        out, starts = np.full(self.n_documents, -np.inf), self.matrix.indptr
        some = starts[1:] > starts[:-1]
        if level.size:
            out[some] = np.maximum.reduceat(level, starts[:-1][some])
        return out

    def top_mask(self, u: Floats) -> NDArray[np.bool_]:
        """For each stored entry, whether its type has the highest score of its document, shape (nnz,)."""
        level = u[self.matrix.indices]
        return np.asarray(level == self.largest_per_document(level)[self.entry_documents])

    @property
    def one_sided(self) -> Ints:
        """+1 for types that occur in class 1 only (completely positive), −1 for class 0 only, else 0; shape (|S|,)."""
        absent = (self.present == 0).astype(np.int64)
        return np.asarray(absent[:, 0] - absent[:, 1])

    def signed_frequency(self, outputs: int = 1) -> Floats:
        """Average signed frequency α of each type, on which the first gradient step depends.

        Args:
            outputs: 1 for α_s = mean_k y^k c_{k,s}/T_k, shape (|S|,); K for α_{s,j} = mean_k (1[y^k = j] − 1/K) c_{k,s}/T_k, shape
                (|S|, K). Documents without any known token count in n and contribute nothing.
        """
        targets = (
            self.signs[:, None]
            if outputs == 1
            else np.eye(self.n_classes)[self.labels] - 1.0 / self.n_classes
        )
        alpha = self.matrix.T @ (
            targets / (np.maximum(self.lengths, 1.0) * max(self.n_documents, 1))[:, None]
        )
        return np.asarray(alpha[:, 0] if outputs == 1 else alpha)

    def merge_groups(self, units: Ints) -> tuple[Counts, Ints]:
        """One document for each combination of group and label, in that order, with summed counts; and the number of documents
        behind each. `units` has the group of each document, shape (n,)."""
        if units.shape != (self.n_documents,):
            raise InputError(
                f"{self.n_documents} documents, but {units.size} groups: one is needed for each document"
            )
        cells = units * np.int64(self.n_classes) + self.labels
        matrix = sum_by_group(self.matrix, cells)
        matrix.sort_indices()
        kinds, sizes = np.unique(cells, return_counts=True)
        return Counts(matrix, kinds % self.n_classes, self.classes, self.tokens), sizes.astype(
            np.int64
        )

    @cached_property
    def present(self) -> Ints:
        """Documents of each class that contain each type, shape (|S|, K)."""
        return self._documents_by_class(None).astype(np.int64)

    @cached_property
    def weighted_present(self) -> tuple[Ints | Floats, Ints | Floats]:
        """`present` and `class_sizes` with weighted documents: shapes (|S|, K) and (K,)."""
        if self.weights is None:
            return self.present, self.class_sizes
        return self._documents_by_class(self.weights), np.bincount(
            self.labels, self.weights, self.n_classes
        )

    def _documents_by_class(self, weights: Floats | None) -> Floats:
        """Documents of each class that contain each type, or the sums of their weights, shape (|S|, K)."""
        out, m = np.zeros((self.n_types, self.n_classes)), self.matrix
        weights = np.ones(self.n_documents) if weights is None else weights
        _add_documents(m.indptr.astype(np.int64), m.indices, self.labels.copy(), weights, out)
        return out

    def of_positive_weight(self) -> tuple[Counts, Ints]:
        """The documents of positive weight, with weights of mean 1 (None if all are equal), and their indices."""
        if self.weights is None:
            return self, np.arange(self.n_documents)
        kept = np.flatnonzero(self.weights)
        part = self if len(kept) == self.n_documents else self.rows(kept)
        weights = np.asarray(part.weights)
        return replace(
            part, weights=None if np.ptp(weights) == 0 else weights / weights.mean()
        ), kept

    def holders(self, types: Ints) -> list[Ints]:
        """The documents containing each type."""
        columns = self.matrix[:, types].tocsc()
        return [
            columns.indices[columns.indptr[t] : columns.indptr[t + 1]].astype("int64")
            for t in range(len(types))
        ]

    def rows(self, which: NDArray[np.generic] | slice) -> Counts:
        """The same types, some of the documents (index, mask or slice)."""
        weights = None if self.weights is None else self.weights[which]
        return Counts(
            select(self.matrix, which), self.labels[which], self.classes, self.tokens, weights
        )

    @staticmethod
    def tally(
        types: Positions, starts: Ints, n_types: int, others: NDArray[np.bool_] | None = None
    ) -> sp.csr_array:
        """Count the types of each document: CSR (n, |S|), indices sorted, O(tokens · levels + n + |S|).

        Documents are listed under each type first; going through the types then fills each document's row without sorting.

        Args:
            types: type of what ends at each token, shape (tokens, levels); −1 for none.
            starts: where each document begins among the tokens, shape (n+1,).
            n_types: how many types there are in `types`; |S| if there are no others.
            others: further types, behind these, that each document has once or not at all, shape (n, |S| − n_types).
        """
        types, n = np.ascontiguousarray(types, dtype=np.int32), len(starts) - 1
        sizes = np.zeros(n + 1, np.int64)  # of the documents, behind a 0

        def by_type(part: slice) -> tuple[slice, Ints, Positions]:
            inside = starts[part.start : part.stop + 1]
            listed = types[inside[0] : inside[-1]].ravel()
            of_type, documents = np.zeros(n_types + 2, np.int64), np.empty(len(listed), np.int32)
            _by_type(listed, (inside - inside[0]) * types.shape[1], of_type, documents)
            of_type = of_type[:-1]
            sizes[part.start + 1 : part.stop + 1] = Counts.list_frequencies(
                documents, of_type, part.stop - part.start
            )
            return part, of_type, documents

        parts = in_threads(by_type, n, types.size)
        others = np.zeros((n, 0), np.bool_) if others is None else others
        sizes[1:] += (more := others.sum(axis=1))
        ends = np.cumsum(sizes)
        indices, data = np.empty(ends[-1], np.int32), np.empty(ends[-1])

        def fill(which: slice) -> None:
            for part, of_type, documents in parts[which]:
                _fill_rows(of_type, documents, ends[part].copy(), indices, data)

        in_threads(fill, len(parts), types.size)
        rows, columns = np.nonzero(others)
        at = (ends[1:] - np.cumsum(more))[rows] + np.arange(len(rows))
        indices[at], data[at] = n_types + columns, 1.0
        kind = np.int32 if types.size < 2**31 else np.int64
        arrays = data, indices.astype(kind, copy=False), ends.astype(kind)
        matrix = sp.csr_array(arrays, shape=(n, max(n_types + others.shape[1], 1)))
        matrix.has_canonical_format = True
        return matrix

    @staticmethod
    def list_frequencies(ids: Positions, starts: Ints, n: int) -> Ints:
        """In how many lists each of n ids occurs; list k is ids[starts[k] : starts[k + 1]]."""
        out = np.zeros(n, np.int64)
        _count_lists(ids, starts, np.full(n, -1, np.int64), out)
        return out

    @staticmethod
    def grams(
        types: Positions, level: int, starts: Ints, first: Ints, known: Ints | None = None
    ) -> Ints:
        """Key of the n-gram of level + 2 words that ends at each token, shape (tokens,); −1 if there is none. If some are known,
        column level + 1 of `types` is filled with the types of those instead.

        The key is (place of the n-gram without the last word among those of its length) · (number of words) + (the last word).
        Types are found in a hash table with linear probing: six times as fast as a sorted search, twice as a join by Polars.

        Args:
            types: column n has the type of the n-gram of n + 1 words that ends at each token; −1 for unknown ones.
            level: the last column that is there already.
            starts: where each document begins among the tokens, shape (n+1,).
            first: where the types of each column begin; first[1] is the number of words.
            known: distinct keys.
        """
        out = np.empty(len(types) if known is None else 0, np.int64)
        known = (
            np.empty(0, np.int64) if known is None else known.copy()
        )  # writable, so one compilation
        bits = max(4, (2 * len(known)).bit_length())
        _fill_slots(known, bits, slots := np.full(1 << bits, -1, np.int32))

        def fill(part: slice) -> None:
            _grams(types, level, starts[part.start : part.stop + 1], first, known, slots, bits, out)

        in_threads(fill, len(starts) - 1, len(types))
        return out

    @staticmethod
    def document_frequencies(keys: Ints, starts: Ints) -> tuple[Ints, Ints]:
        """Distinct non-negative keys of tokens, sorted, and how many documents each occurs in; document k is the tokens from
        starts[k] to starts[k + 1]."""
        n, distinct = len(starts) - 1, None
        if (
            len(keys) and int(keys.max()) >= (2**63 - 1) // max(n, 1) - 1
        ):  # too large to join with the document
            distinct, place = np.unique(keys, return_inverse=True)
            keys = place - np.searchsorted(distinct, 0)
            distinct = distinct[distinct >= 0]

        def count(low: int, high: int) -> tuple[Ints, Ints]:
            pairs, sizes = np.empty(
                (2, len(keys)), np.int64
            )  # of which only what is written takes memory
            pairs = pairs[: _key_documents(keys, starts, max(low, 0), high, pairs)]
            pairs.sort()  # several times as fast as hashing
            kept = slice(_count_runs(pairs, max(n, 1), sizes))
            return pairs[kept].copy(), sizes[kept].copy()

        found, sizes = map(np.concatenate, zip(*in_ranges(count, keys), strict=True))
        return found if distinct is None else distinct[found], sizes


# Arrays are made outside of compiled code: what makes one there doubles the time of compiling.
@numba.njit(cache=True, nogil=True)
def _count_lists(ids: Positions, starts: Ints, last: Ints, out: Ints) -> None:
    """Count lists; `last`, at first −1, has the last list of each id."""
    for k in range(len(starts) - 1):
        for s in ids[starts[k] : starts[k + 1]]:
            out[s] += last[s] != k
            last[s] = k


@numba.njit(cache=True, nogil=True)
def _key_documents(keys: Ints, starts: Ints, low: int, high: int, out: Ints) -> int:
    """Write key · n + document for each key from low to high − 1, in order of tokens, and return how many there are."""
    n, at = len(starts) - 1, 0
    for k in range(n):
        for i in range(starts[k], starts[k + 1]):
            if low <= keys[i] < high:
                out[at] = keys[i] * n + k
                at += 1
    return at


@numba.njit(cache=True, nogil=True)
def _count_runs(pairs: Ints, n: int, sizes: Ints) -> int:
    """Replace sorted pairs, key · n + document, by their keys, write how many different documents each has, and return how many
    keys there are."""
    before, size, end = -1, 0, 0
    for pair in pairs:
        if pair == before:
            continue
        before = pair
        if pair >= end:
            pairs[size], sizes[size], size = pair // n, 0, size + 1
            end = (pair // n + 1) * n
        sizes[size - 1] += 1
    return size


@numba.njit(cache=True, nogil=True)
def _add_documents(
    starts: Ints, types: Positions, labels: Ints, weights: Floats, out: Floats
) -> None:
    """Add each document's weight to `out` for each of its types and its class."""
    for k in range(len(labels)):
        for s in types[starts[k] : starts[k + 1]]:
            out[s, labels[k]] += weights[k]


@numba.njit(cache=True, nogil=True)
def _by_type(rows: Positions, starts: Ints, first: Ints, documents: Positions) -> None:
    """Write the document of every occurrence, types in order, documents in order, and where those of each type begin. `first` has
    one place more, at first 0, than that."""
    for s in rows:
        if s >= 0:
            first[s + 2] += 1
    for s in range(len(first) - 1):
        first[s + 1] += first[s]
    for k in range(len(starts) - 1):
        for s in rows[starts[k] : starts[k + 1]]:
            if (
                s >= 0
            ):  # the next one of type s goes to first[s + 1], in the end where those of type s + 1 begin
                documents[first[s + 1]] = k
                first[s + 1] += 1


@numba.njit(cache=True, nogil=True)
def _fill_rows(
    first: Ints, documents: Positions, at: Ints, indices: Positions, data: Floats
) -> None:
    """Fill in types and their counts, document by document; document k begins at at[k], and ends there afterwards."""
    for s in range(len(first) - 1):
        before = -1
        for k in documents[first[s] : first[s + 1]]:
            if k == before:
                data[at[k] - 1] += 1.0
                continue
            indices[at[k]], data[at[k]], before = s, 1.0, k
            at[k] += 1


@numba.njit(cache=True, nogil=True)
def _fill_slots(keys: Ints, bits: int, slots: Positions) -> None:
    """Fill the hash table, at first −1: position of a key at the slot of its hash, or at the next free one."""
    mask, shift = (1 << bits) - 1, np.uint64(64 - bits)
    for i in range(len(keys)):
        at = np.int64((np.uint64(keys[i]) * GOLDEN) >> shift)
        while slots[at] >= 0:
            at = (at + 1) & mask
        slots[at] = i


@numba.njit(cache=True, nogil=True)
def _grams(
    types: Positions,
    level: int,
    starts: Ints,
    first: Ints,
    keys: Ints,
    slots: Positions,
    bits: int,
    out: Ints,
) -> None:
    """Fill `out` with keys or, if it is empty, the next column of `types`."""
    mask, shift = (1 << bits) - 1, np.uint64(64 - bits)
    for k in range(len(starts) - 1):
        before = np.int64(-1)  # position of the shorter n-gram that ends one token earlier
        for i in range(starts[k], starts[k + 1]):
            key = (
                before * first[1] + types[i, 0]
                if before >= 0 and types[i, 0] >= 0
                else np.int64(-1)
            )
            before = types[i, level] - first[level]
            if len(out):
                out[i] = key
                continue
            types[i, level + 1] = -1
            at = np.int64((np.uint64(key) * GOLDEN) >> shift)
            while key >= 0 and slots[at] >= 0:
                if keys[slots[at]] == key:
                    types[i, level + 1] = first[level + 1] + slots[at]
                    break
                at = (at + 1) & mask
