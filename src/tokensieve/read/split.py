"""Seeded test sets: documents sampled within each class, or whole groups (prompts, authors)."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from tokensieve.arrays import Floats, Ints
from tokensieve.errors import InputError

if TYPE_CHECKING:
    from tokensieve.read.corpus import Corpus


def split_corpus(corpus: Corpus, *, share: float = 0.2, seed: int = 0) -> Corpus:
    """Set a fraction of the documents aside for testing, at random within each class (scikit-learn's stratified split).

    `share`, between 0 and 1, is a fraction of the distinct texts, so identical texts are never on both sides. A class with one
    distinct text stays in training. If documents belong to groups, whole groups are drawn, and for pairs whole prompts. An
    `InputError` if no class has two different texts, or a class would have no training documents.
    """
    if corpus.test is not None:
        raise InputError(f"{corpus.name} already has a test set")
    if not 0 < share < 1:
        raise InputError(f"the test fraction must lie between 0 and 1, not {share}")
    texts = corpus.keys.rank("dense").to_numpy().astype(np.int64) - 1
    if corpus.pairs is not None:
        in_test = np.repeat(draw_units(corpus.pairs.units, share, seed), 2)
    elif corpus.units is not None:
        # units that share a text are one: both are vertices of a graph, and each document an edge
        size = int(corpus.units.max(initial=-1)) + 1
        edges = corpus.units, size + texts
        graph = sp.coo_array(
            (np.ones(len(texts), np.int8), edges),
            shape=(size + int(texts.max(initial=-1)) + 1,) * 2,
        )
        linked = np.unique(
            connected_components(graph, directed=False)[1][corpus.units], return_inverse=True
        )[1]
        in_test = split_units(linked.astype(np.int64), corpus.labels, share, seed)
    else:
        # Distinct texts are numbered by first appearance: other words in the same rows leave the split as it is.
        _, first = np.unique(texts, return_index=True)
        which = np.argsort(np.argsort(first))[texts]
        strata = corpus.labels[np.sort(first)]
        candidates = np.flatnonzero(np.bincount(strata, minlength=len(corpus.classes))[strata] > 1)
        if not candidates.size:
            raise InputError(
                f"{corpus.name}: {len(texts):,} documents, but within each class all texts are the same, so none can be held "
                "out for testing; check that --text names the column of the texts, or pass --test SOURCE"
            )
        strata = strata[candidates]
        n_classes = len(np.unique(strata))
        size = min(max(math.ceil(share * candidates.size), n_classes), candidates.size - n_classes)
        in_test = np.isin(which, candidates[stratified(strata, size, seed)[1]])
    left = np.bincount(corpus.labels[~in_test], minlength=len(corpus.classes))
    if not left.all():
        name = corpus.classes[int(left.argmin())]
        raise InputError(
            f"a test fraction of {share} leaves no training document of class {name!r}; use a smaller one"
        )
    return replace(corpus.filter(~in_test), test=corpus.filter(in_test))


def stratified(labels: Ints, size: int, seed: int) -> tuple[Ints, Ints]:
    """Positions that stay and `size` positions that are drawn, the classes in both in nearly the same proportion, in random order.

    Each class occurs at least twice. The same rows as scikit-learn's `train_test_split`, without its second of imports.
    """
    rng = np.random.RandomState(seed)

    def shares(sizes: Ints, draws: int) -> Ints:
        """How many of each class: in proportion, rounded down; the rest to the largest remainders, ties by chance."""
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

    index = np.unique(labels, return_inverse=True)[1]
    of_class = np.split(np.argsort(index, kind="stable"), np.cumsum(np.bincount(index))[:-1])
    sizes = np.array([len(members) for members in of_class])
    stay = shares(sizes, len(labels) - size)
    drawn = shares(sizes - stay, size)
    orders = [members[rng.permutation(len(members))] for members in of_class]
    kept = [order[:first] for order, first in zip(orders, stay, strict=True)]
    taken = [order[first : first + n] for order, first, n in zip(orders, stay, drawn, strict=True)]
    return rng.permutation(np.concatenate(kept)), rng.permutation(np.concatenate(taken))


def folds(labels: Ints, k: int, seed: int, units: Ints | None = None) -> list[tuple[Ints, Ints]]:
    """k pairs of positions, (all others, one part): the parts hold each item once, and the classes in nearly equal proportion.

    Where items belong to units, shape (n,), there are at most as many parts as units, and each unit stays whole: larger ones come
    first, and each goes to the part that has least of its classes.
    """
    rng = np.random.default_rng(seed)
    if units is None:
        order = rng.permutation(len(labels))
        order = order[np.argsort(labels[order], kind="stable")]
        part = np.empty(len(labels), dtype=np.int64)
        part[order] = np.arange(len(labels)) % k
    else:
        table = _class_counts(units, labels)
        k = max(min(k, int(np.count_nonzero(table.sum(axis=1)))), 1)
        share = table / np.maximum(table.sum(axis=0), 1)
        have, of_unit = np.zeros((k, table.shape[1])), np.zeros(len(table), dtype=np.int64)
        order = rng.permutation(len(table))
        for unit in order[np.argsort(-table[order].sum(axis=1), kind="stable")]:
            of_unit[unit] = np.argmin(have @ share[unit] + 1e-9 * have.sum(axis=1))
            have[of_unit[unit]] += share[unit]
        part = of_unit[units]
    return [(np.flatnonzero(part != i), np.flatnonzero(part == i)) for i in range(k)]


def split_units(units: Ints, labels: Ints, share: float = 0.2, seed: int = 0) -> NDArray[np.bool_]:
    """Whole units for testing: about `share` of the documents of each class, no unit on both sides, shape (n,).
    An `InputError` if there are fewer than two units, or one side would be empty.

    Units come in a random order, larger ones first (by powers of two), and each goes to the test side if
    that brings the class counts there closer to their targets: Σ_k (have_k − share n_k)²/n_k falls.
    """
    table = _class_counts(units, labels)
    if np.count_nonzero(table.sum(axis=1)) < 2:
        raise InputError("a split by groups needs documents of at least two groups; check --by")
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
        raise InputError(
            "one group contains nearly all documents, so they cannot be split by groups; check --by"
        )
    return mask


def draw_units(units: Ints, share: float, seed: int) -> NDArray[np.bool_]:
    """Pairs of units drawn at random until they are `share` of all, at least one unit and not the last one, shape (n,)."""
    names, sizes = np.unique(units, return_counts=True)
    order = np.random.default_rng(seed).permutation(len(names))
    before = np.cumsum(sizes[order]) - sizes[order] / 2
    most = max(1, min(int(np.searchsorted(before, share * len(units))), len(names) - 1))
    return np.isin(units, names[order[:most]])


def _class_counts(units: Ints, labels: Ints) -> Floats:
    """Documents of each class in each unit, shape (units, classes)."""
    table = np.zeros((int(units.max(initial=-1)) + 1, int(labels.max(initial=0)) + 1))
    np.add.at(table, (units, labels), 1)
    return table
