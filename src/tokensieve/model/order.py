"""The order in which documents are learned, which does not depend on the order of the rows.

Training goes through documents in a seeded random order, and what is held out is drawn from them.
Both start from an order by content, so that the same documents in another order give the same
model, to the last bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tokensieve.arrays import Floats, Ints
from tokensieve.kernels import compiled
from tokensieve.text.counts import Counts

# the steps of SplitMix64 (Steele, Lea, Flood 2014)
_INCREMENT = np.uint64(0x9E3779B97F4A7C15)
_FACTOR1 = np.uint64(0xBF58476D1CE4E5B9)
_FACTOR2 = np.uint64(0x94D049BB133111EB)
_SHIFT1 = np.uint64(30)
_SHIFT2 = np.uint64(27)
_SHIFT3 = np.uint64(31)
Hashes = NDArray[np.uint64]


class OrderedDocuments(NamedTuple):
    """Documents in canonical order, and the group of each (or of each pair), if any."""

    counts: Counts
    groups: Ints | None


def in_canonical_order(counts: Counts, groups: Ints | None, pairs: bool) -> OrderedDocuments:
    """Sort documents (or pairs) by a hash of their counts and label, and score if they have one.

    Equal ones are sorted by weight, then by the content of their group; what is still equal is
    interchangeable. Groups are numbered as they come.

    Args:
        counts: n documents; rows 2i and 2i + 1 are a pair if `pairs`.
        groups: the group of each document (or pair).
        pairs: whether documents are pairs.
    """
    hashes = document_hashes(counts)
    weights = np.zeros(len(hashes)) if counts.weights is None else counts.weights
    if pairs:
        hashes = mix(hashes[::2]) + hashes[1::2]  # which of the two is preferred matters
        weights = weights[::2]
    order = np.lexsort((_group_hashes(hashes, groups), weights, hashes))
    rows = np.column_stack([2 * order, 2 * order + 1]).ravel() if pairs else order
    if groups is not None:
        groups = _numbered_as_they_come(groups[order])
    return OrderedDocuments(counts.rows(rows), groups)


def document_hashes(counts: Counts) -> Hashes:
    """A hash of each document's counts and label, shape (n,)."""
    matrix = counts.matrix
    sums = np.empty(counts.n_documents, np.uint64)
    data: Floats = np.ascontiguousarray(matrix.data, dtype=np.float64)
    starts = matrix.indptr.astype(np.int64)
    _sum_entry_hashes(starts, matrix.indices, data.view(np.uint64), sums)
    hashes = mix(sums + mix(counts.labels.astype(np.uint64)))
    if counts.numbers is None:
        return hashes
    # their ranks, so that scores in another unit give the same order
    _, ranks = np.unique(counts.numbers, return_inverse=True)
    return mix(hashes + mix(ranks.astype(np.uint64)))


def mix(numbers: Hashes) -> Hashes:
    """SplitMix64's output function: equal numbers stay equal, others become unrelated."""
    mixed = numbers + _INCREMENT
    mixed = (mixed ^ (mixed >> _SHIFT1)) * _FACTOR1
    mixed = (mixed ^ (mixed >> _SHIFT2)) * _FACTOR2
    return np.asarray(mixed ^ (mixed >> _SHIFT3), dtype=np.uint64)


@compiled(nogil=True)
def _sum_entry_hashes(
    starts: Ints, types: NDArray[np.integer], counts: Hashes, sums: Hashes
) -> None:
    """sums[k] = Σ over the entries of document k of mix(mix(type) + bits of the count), mod 2⁶⁴."""
    for k in range(len(starts) - 1):
        total = np.uint64(0)
        for i in range(starts[k], starts[k + 1]):
            number = np.uint64(types[i])
            for part in range(2):
                number = number + _INCREMENT
                number = (number ^ (number >> _SHIFT1)) * _FACTOR1
                number = (number ^ (number >> _SHIFT2)) * _FACTOR2
                number = number ^ (number >> _SHIFT3)
                if part == 0:
                    number = number + counts[i]
            total = total + number
        sums[k] = total


def _group_hashes(hashes: Hashes, groups: Ints | None) -> Hashes:
    """A hash of the content of the group of each document (or pair), in any order, shape (n,)."""
    if groups is None:
        return np.zeros(len(hashes), np.uint64)
    _, group = np.unique(groups, return_inverse=True)
    sums = np.zeros(int(group.max(initial=-1)) + 1, np.uint64)
    np.add.at(sums, group, mix(hashes))
    return np.asarray(sums[group], dtype=np.uint64)


def _numbered_as_they_come(groups: Ints) -> Ints:
    """The group of each document, shape (n,), numbered 0, 1, … in the order of their first
    document."""
    _, first, group = np.unique(groups, return_index=True, return_inverse=True)
    number_of_group = np.argsort(np.argsort(first))
    return np.asarray(number_of_group[group], dtype=np.int64)
