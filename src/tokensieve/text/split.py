"""A seeded, stratified draw: the same rows as scikit-learn's `train_test_split`, without its second of imports."""

from __future__ import annotations

import numpy as np

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
