"""Seeded, stratified draws of documents, or of the units that they belong to.

Of documents, the same rows as scikit-learn's `train_test_split`, without its second of imports.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from tokensieve.errors import InputError
from tokensieve.text.counts import Floats, Ints


def stratified(labels: Ints, size: int, seed: int) -> tuple[Ints, Ints]:
    """Positions that stay and positions that are drawn, the classes in both in nearly the same proportion, each in random order.

    Args:
        labels: class index of each of n items, shape (n,), each class at least twice.
        size: how many are drawn, at least one per class, and at least one per class fewer than n.
        seed: of the draw.
    """
    rng = np.random.RandomState(seed)
    index = np.unique(labels, return_inverse=True)[1]
    of_class = np.split(np.argsort(index, kind="stable"), np.cumsum(np.bincount(index))[:-1])
    sizes = np.array([len(members) for members in of_class])
    stay = _shares(sizes, len(labels) - size, rng)
    drawn = _shares(sizes - stay, size, rng)
    kept: list[Ints] = []
    taken: list[Ints] = []
    for members, first, second in zip(of_class, stay, drawn, strict=True):
        order = members[rng.permutation(len(members))]
        kept.append(order[:first])
        taken.append(order[first : first + second])
    return rng.permutation(np.concatenate(kept)), rng.permutation(np.concatenate(taken))


def folds(labels: Ints, k: int, seed: int) -> list[tuple[Ints, Ints]]:
    """k pairs of positions, (all others, one part): the parts hold each item once, and the classes in nearly equal proportion.

    Args:
        labels: class index of each of n items, shape (n,).
        k: number of parts.
        seed: of the draw.
    """
    order = np.random.default_rng(seed).permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    part = np.empty(len(labels), dtype=np.int64)
    part[order] = np.arange(len(labels)) % k
    return [(np.flatnonzero(part != i), np.flatnonzero(part == i)) for i in range(k)]


def unit_index(units: Sequence[Any] | NDArray[Any]) -> Ints:
    """0 … U−1 for the distinct values of `units`, in order of first appearance, shape (n,)."""
    names: dict[Any, int] = {}
    return np.fromiter((names.setdefault(unit, len(names)) for unit in units), dtype=np.int64, count=len(units))


def linked(units: Ints, others: Ints) -> Ints:
    """Units joined where they share one of the others (an identical text, say), numbered from 0, shape (n,).

    Args:
        units, others: of n documents, not negative.
    """
    size = int(units.max(initial=-1)) + 1
    pairs = units, size + others
    graph = sp.coo_array((np.ones(len(units), np.int8), pairs), shape=(size + int(others.max(initial=-1)) + 1,) * 2)
    return np.unique(connected_components(graph, directed=False)[1][units], return_inverse=True)[1].astype(np.int64)


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


def unit_folds(units: Ints, labels: Ints, k: int, seed: int) -> list[tuple[Ints, Ints]]:
    """As `folds`, with every unit whole on one side: larger units first, each to the part that has least of its classes.

    Args:
        units: the unit of each document, shape (n,), not negative.
        labels: class index of each document, shape (n,).
        k: most parts; fewer where there are fewer units.
        seed: of the draw.
    """
    table = np.zeros((int(units.max(initial=-1)) + 1, int(labels.max(initial=0)) + 1))
    np.add.at(table, (units, labels), 1)
    k = max(min(k, int(np.count_nonzero(table.sum(axis=1)))), 1)
    share = table / np.maximum(table.sum(axis=0), 1)
    have, part = np.zeros((k, table.shape[1])), np.zeros(len(table), dtype=np.int64)
    order = np.random.default_rng(seed).permutation(len(table))
    for unit in order[np.argsort(-table[order].sum(axis=1), kind="stable")]:
        part[unit] = np.argmin(have @ share[unit] + 1e-9 * have.sum(axis=1))
        have[part[unit]] += share[unit]
    return [(np.flatnonzero(part[units] != i), np.flatnonzero(part[units] == i)) for i in range(k)]


def _shares(sizes: Ints, draws: int, rng: np.random.RandomState) -> Ints:
    """How many of each class: in proportion, rounded down, and what is left to the largest remainders, ties by chance."""
    exact: Floats = sizes / sizes.sum() * draws
    out = np.floor(exact)
    left, remainder = int(draws - out.sum()), exact - out
    for value in np.unique(remainder)[::-1]:
        if left == 0:
            break
        tied = np.flatnonzero(remainder == value)
        chosen = rng.choice(tied, size=min(len(tied), left), replace=False)
        out[chosen] += 1
        left -= len(chosen)
    return out.astype(np.int64)
