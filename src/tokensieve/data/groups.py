"""Units: documents that belong together (one source sentence, author, thread, template) are one piece of evidence.

Parts of one sentence share words and label; counted one by one they make chance look like evidence. Here the documents of a unit
with the same label are merged into one before anything is computed: c and T are sums over the unit, x = c/T is its share, and every
statistic, interval and q-value of `tokensieve.data.importance` is then over units. A unit whose documents have different labels
is one merged document in each of its classes; these share what the unit shares, which makes the test cautious, never bold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tokensieve.data.importance import Importance, token_importance
from tokensieve.errors import InputError
from tokensieve.text.counts import Counts, Ints


def unit_index(units: Sequence[Any] | NDArray[Any]) -> Ints:
    """0 … U−1 for the distinct values of `units`, in order of first appearance, shape (n,)."""
    names: dict[Any, int] = {}
    return np.fromiter((names.setdefault(unit, len(names)) for unit in units), dtype=np.int64, count=len(units))


def merge_units(counts: Counts, units: Ints) -> Counts:
    """One document for every unit and label that occur together, in order of unit and label; its counts are sums.

    Args:
        counts: n documents.
        units: the unit of each document, shape (n,), not negative.

    Raises:
        InputError: there is not one unit for each document.
    """
    cells, where = np.unique(_cells(counts, units), return_inverse=True)
    member = sp.csr_array((np.ones(len(where)), (where, np.arange(len(where)))), shape=(len(cells), len(where)))
    matrix = sp.csr_array(member @ counts.matrix)
    matrix.sort_indices()
    return Counts(matrix, cells % counts.n_classes, counts.classes, counts.tokens)


def unit_importance(counts: Counts, units: Ints) -> Importance:
    """Importance with units as the independent units: `documents` and `class_documents` count merged documents.

    Args:
        counts: n documents.
        units: the unit of each document, shape (n,), not negative.

    Raises:
        InputError: there is not one unit for each document, or fewer than two classes have documents.
    """
    return token_importance(merge_units(counts, units))


def split_units(units: Ints, labels: Ints, share: float = 0.2, seed: int = 0) -> NDArray[np.bool_]:
    """Whole units for testing: about `share` of the documents of each class, no unit on both sides, shape (n,).

    Units come in a random order, larger ones first (by powers of two), and each goes to the test side if
    that brings the class counts there closer to their targets: Σ_k (have_k − share n_k)²/n_k falls.

    Args:
        units: the unit of each document, shape (n,), not negative.
        labels: class index of each document, shape (n,).
        share: of the documents, between 0 and 1.
        seed: of the order.

    Raises:
        InputError: there are fewer than two units, or one side would be empty.
    """
    table = np.zeros((int(units.max(initial=-1)) + 1, int(labels.max(initial=0)) + 1))
    np.add.at(table, (units, labels), 1)
    if np.count_nonzero(table.sum(axis=1)) < 2:
        raise InputError("a split by units needs documents of at least two units; check --by")
    total = table.sum(axis=0)
    target, have, weights = share * total, np.zeros(len(total)), 1 / np.maximum(total, 1)
    chosen = np.zeros(len(table), dtype=bool)
    sizes = np.floor(np.log2(np.maximum(table.sum(axis=1), 1)))
    order = np.random.default_rng(seed).permutation(len(table))
    for unit in order[np.argsort(-sizes[order], kind="stable")]:
        gain = float((table[unit] * weights) @ (2 * (target - have) - table[unit]))
        if gain > 0:
            chosen[unit], have = True, have + table[unit]
    mask = chosen[units]
    if not mask.any() or mask.all():
        raise InputError("one unit holds nearly all documents, so that they cannot be split by units; check --by")
    return mask


def _cells(counts: Counts, units: Ints) -> Ints:
    if units.shape != (counts.n_documents,):
        raise InputError(f"{counts.n_documents} documents, but {units.size} units: one is needed for each document")
    return units * np.int64(counts.n_classes) + counts.labels
