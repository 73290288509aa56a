"""Seeded test sets: documents sampled within each class, or whole groups (prompts, authors).

scikit-learn draws the same rows, but its import takes longer than reading 2,000 reviews.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from tokensieve.arrays import Floats, Ints
from tokensieve.errors import InputError
from tokensieve.read.corpus import Corpus

TIE_BREAK = 1e-9  # of two parts with as little of a unit's classes, the smaller one is filled


class Split(NamedTuple):
    """Positions that stay, and positions that are drawn."""

    kept: Ints
    drawn: Ints


def split_corpus(corpus: Corpus, *, share: float = 0.2, seed: int = 0) -> Corpus:
    """Set a fraction of the documents aside for testing, at random within each class.

    A class with one distinct text stays in training. If documents belong to groups, whole groups
    are drawn, and for pairs whole prompts.

    Args:
        corpus: documents without a test set.
        share: fraction of the distinct texts, between 0 and 1; identical texts are never on both
            sides.
        seed: of the random draw.

    Raises:
        InputError: no class has two different texts, or a class would have no training documents.
    """
    if corpus.test is not None:
        raise InputError(f"{corpus.name} already has a test set")
    if not 0 < share < 1:
        raise InputError(f"the test fraction must lie between 0 and 1, not {share}")
    texts = corpus.keys.rank("dense").to_numpy().astype(np.int64) - 1
    if corpus.pairs is not None:
        is_test = np.repeat(draw_units(corpus.pairs.units, share, seed), 2)
    elif corpus.units is not None:
        is_test = split_units(_linked_by_text(corpus.units, texts), corpus.labels, share, seed)
    else:
        is_test = _draw_texts(corpus, texts, share, seed)
    sizes_left = np.bincount(corpus.labels[~is_test], minlength=len(corpus.classes))
    if not sizes_left.all():
        name = corpus.classes[int(sizes_left.argmin())]
        raise InputError(
            f"a test fraction of {share} leaves no training document of class {name!r}; "
            "use a smaller one"
        )
    return replace(corpus.filter(~is_test), test=corpus.filter(is_test))


def _linked_by_text(units: Ints, texts: Ints) -> Ints:
    """Units that share a text are one, shape (n,).

    Both are vertices of a graph, in which each document is an edge.
    """
    n_units = int(units.max(initial=-1)) + 1
    n_vertices = n_units + int(texts.max(initial=-1)) + 1
    edges = (units, n_units + texts)
    graph = sp.coo_array((np.ones(len(texts), np.int8), edges), shape=(n_vertices, n_vertices))
    _, component = connected_components(graph, directed=False)
    _, linked = np.unique(component[units], return_inverse=True)
    return linked.astype(np.int64)


def _draw_texts(corpus: Corpus, texts: Ints, share: float, seed: int) -> NDArray[np.bool_]:
    """Draw the documents for testing: a fraction of the texts of each class, shape (n,)."""
    # Texts are numbered by first appearance: other words in the same rows leave the split as it is.
    _, first = np.unique(texts, return_index=True)
    number = np.argsort(np.argsort(first))[texts]
    class_of_text = corpus.labels[np.sort(first)]
    texts_per_class = np.bincount(class_of_text, minlength=len(corpus.classes))
    candidates = np.flatnonzero(texts_per_class[class_of_text] > 1)
    if not candidates.size:
        raise InputError(
            f"{corpus.name}: {len(texts):,} documents, but within each class all texts are the "
            "same, so none can be held out for testing; check that --text names the column of the "
            "texts, or pass --test SOURCE"
        )
    strata = class_of_text[candidates]
    n_classes = len(np.unique(strata))
    n_wanted = max(math.ceil(share * candidates.size), n_classes)
    n_test = min(n_wanted, candidates.size - n_classes)
    return np.isin(number, candidates[stratified(strata, n_test, seed).drawn])


def stratified(labels: Ints, n_drawn: int, seed: int) -> Split:
    """Draw positions, in random order, so that both sides have nearly the same proportions.

    Each class occurs at least twice. The same rows as scikit-learn's `train_test_split`.
    """
    rng = np.random.RandomState(seed)
    _, index = np.unique(labels, return_inverse=True)
    sizes = np.bincount(index)
    members = np.split(np.argsort(index, kind="stable"), np.cumsum(sizes)[:-1])
    n_kept_of_class = _in_proportion(sizes, len(labels) - n_drawn, rng)
    n_drawn_of_class = _in_proportion(sizes - n_kept_of_class, n_drawn, rng)
    training = []
    drawn = []
    for of_class, n_stay, n_leave in zip(members, n_kept_of_class, n_drawn_of_class, strict=True):
        order = of_class[rng.permutation(len(of_class))]
        training.append(order[:n_stay])
        drawn.append(order[n_stay : n_stay + n_leave])
    return Split(rng.permutation(np.concatenate(training)), rng.permutation(np.concatenate(drawn)))


def _in_proportion(sizes: Ints, n_draws: int, rng: np.random.RandomState) -> Ints:
    """The number of documents to draw of each class, in proportion to its size and rounded down.

    The rest goes to the largest remainders, among equal ones by chance.
    """
    exact: Floats = sizes / sizes.sum() * n_draws
    draws = np.floor(exact)
    remainder = exact - draws
    n_left = int(n_draws - draws.sum())
    for value in np.unique(remainder)[::-1]:
        if n_left == 0:
            break
        tied = np.flatnonzero(remainder == value)
        chosen = rng.choice(tied, size=min(len(tied), n_left), replace=False)
        draws[chosen] += 1
        n_left -= len(chosen)
    return draws.astype(np.int64)


def folds(labels: Ints, k: int, seed: int, units: Ints | None = None) -> list[tuple[Ints, Ints]]:
    """k splits whose drawn parts hold each item once, and the classes in nearly equal proportion.

    Args:
        labels: class index of each item, shape (n,).
        k: the number of parts; at most as many as there are units.
        seed: of the random order.
        units: what each item belongs to, shape (n,), if anything; each unit stays whole.
    """
    rng = np.random.default_rng(seed)
    if units is None:
        order = rng.permutation(len(labels))
        order = order[np.argsort(labels[order], kind="stable")]
        part = np.empty(len(labels), dtype=np.int64)
        part[order] = np.arange(len(labels)) % k
    else:
        counts = _class_counts(units, labels)
        k = max(min(k, int(np.count_nonzero(counts.sum(axis=1)))), 1)
        part = _parts_of_units(counts, k, rng)[units]
    return [Split(np.flatnonzero(part != i), np.flatnonzero(part == i)) for i in range(k)]


def _parts_of_units(counts: Floats, k: int, rng: np.random.Generator) -> Ints:
    """The part of each unit: larger units first, each to the part with least of its classes."""
    fractions = counts / np.maximum(counts.sum(axis=0), 1)
    filled = np.zeros((k, counts.shape[1]))
    part = np.zeros(len(counts), dtype=np.int64)
    order = rng.permutation(len(counts))
    for unit in order[np.argsort(-counts[order].sum(axis=1), kind="stable")]:
        overlap = filled @ fractions[unit] + TIE_BREAK * filled.sum(axis=1)
        part[unit] = np.argmin(overlap)
        filled[part[unit]] += fractions[unit]
    return part


def split_units(units: Ints, labels: Ints, share: float = 0.2, seed: int = 0) -> NDArray[np.bool_]:
    """Draw the items for testing: about `share` of each class, in whole units, shape (n,).

    Units come in a random order, larger ones first (by powers of two), and each goes to the test
    side if that brings the class counts there closer to their targets:
    Σ_k (have_k − share n_k)²/n_k falls.

    Raises:
        InputError: there are fewer than two units, or one side would be empty.
    """
    counts = _class_counts(units, labels)
    unit_sizes = counts.sum(axis=1)
    if np.count_nonzero(unit_sizes) < 2:
        raise InputError("a split by groups needs documents of at least two groups; check --by")
    class_sizes = counts.sum(axis=0)
    weights = 1 / np.maximum(class_sizes, 1)
    missing = share * class_sizes
    is_chosen = np.zeros(len(counts), dtype=np.bool_)
    magnitude = np.floor(np.log2(np.maximum(unit_sizes, 1)))
    order = np.random.default_rng(seed).permutation(len(counts))
    for unit in order[np.argsort(-magnitude[order], kind="stable")]:
        gain = float((counts[unit] * weights) @ (2 * missing - counts[unit]))
        if gain > 0:
            is_chosen[unit] = True
            missing = missing - counts[unit]
    is_test = is_chosen[units]
    if not is_test.any() or is_test.all():
        raise InputError(
            "one group contains nearly all documents, so they cannot be split by groups; check --by"
        )
    return is_test


def draw_units(units: Ints, share: float, seed: int) -> NDArray[np.bool_]:
    """Draw units at random until their pairs are `share` of all; mark these pairs, shape (n,).

    At least one unit is drawn, and one stays.
    """
    names, sizes = np.unique(units, return_counts=True)
    order = np.random.default_rng(seed).permutation(len(names))
    middles = np.cumsum(sizes[order]) - sizes[order] / 2
    n_wanted = int(np.searchsorted(middles, share * len(units)))
    n_drawn = max(1, min(n_wanted, len(names) - 1))
    return np.isin(units, names[order[:n_drawn]])


def _class_counts(units: Ints, labels: Ints) -> Floats:
    """Items of each class in each unit, shape (units, classes)."""
    n_units = int(units.max(initial=-1)) + 1
    n_classes = int(labels.max(initial=0)) + 1
    counts = np.zeros((n_units, n_classes))
    np.add.at(counts, (units, labels), 1)
    return counts
