"""Which classes a word points to: the best split of the classes into two groups.

A word may point to one class, or to several that share a source. With a_j documents of class j
containing the word out of n_j, classes are sorted by their rate a_j/n_j. The split that fits best
puts the m classes of the highest rates on one side (for two groups it is one of these, whatever the
criterion; Breiman et al. 1984, theorem 4.5). G² is compared for every m up to half of the classes.

The choice is paid for: of K classes, C(K, m) groups have m classes, and K − 1 sizes were possible,
so p is that of the group found, times C(K, m)·(K − 1). By the union bound, it holds for the best
group.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, gammaln, rel_entr, xlogy

from tokensieve.arrays import Bools, Floats, Ints

BLOCK_ENTRIES = 2_000_000  # words × classes at a time


@dataclass(frozen=True)
class Splits:
    """The best split of the classes for each of |S| words.

    Attributes:
        is_inside: whether each class is of the group with the higher rate, shape (|S|, K).
        n_inside: documents of this group that contain the word, shape (|S|,).
        n_documents: all documents that contain it, shape (|S|,).
        group_sizes: documents of the group, shape (|S|,).
        g_squared: twice the log-likelihood ratio of the split, shape (|S|,).
        p_value: that so many of the word's documents are of the group, corrected for the choice.
    """

    is_inside: Bools
    n_inside: Ints
    n_documents: Ints
    group_sizes: Ints
    g_squared: Floats
    p_value: Floats


def best_splits(present: Ints, class_sizes: Ints) -> Splits:
    """The best split for each word.

    Args:
        present: documents of each class that contain each word, shape (|S|, K).
        class_sizes: documents of each class, shape (K,).
    """
    n_words, n_classes = present.shape
    rows = max(1, BLOCK_ENTRIES // n_classes)
    blocks = [_splits(present[i : i + rows], class_sizes) for i in range(0, max(n_words, 1), rows)]
    names = Splits.__dataclass_fields__
    return Splits(**{name: np.concatenate([getattr(b, name) for b in blocks]) for name in names})


def _splits(present: Ints, class_sizes: Ints) -> Splits:
    """The best group of classes of each word, as in the module docstring.

    Only the classes with the largest shares of a word, up to half of all, are tried as its group.

    Args:
        present: documents with the word, by class, shape (words, K).
        class_sizes: documents of each class, shape (K,).
    """
    order = np.argsort(-(present / np.maximum(class_sizes, 1)), axis=1, kind="stable")
    max_classes = max(1, len(class_sizes) // 2)
    n_inside_first = np.cumsum(np.take_along_axis(present, order, axis=1), axis=1)[:, :max_classes]
    group_sizes = np.cumsum(class_sizes[order], axis=1)[:, :max_classes]
    n_documents = present.sum(axis=1)
    g_squared = likelihood_ratio(
        n_inside_first, n_documents[:, None], group_sizes, class_sizes.sum()
    )
    log_choices = log_number_of_groups(np.arange(1, max_classes + 1), len(class_sizes))
    best = np.argmax(g_squared - 2 * log_choices, axis=1)

    at = np.arange(len(present))
    n_inside = n_inside_first[at, best]
    share = group_sizes[at, best] / class_sizes.sum()
    tail = betainc(np.maximum(n_inside, 1), n_documents - n_inside + 1, share)
    return Splits(
        is_inside=np.argsort(order, axis=1, kind="stable") <= best[:, None],
        n_inside=n_inside,
        n_documents=n_documents,
        group_sizes=group_sizes[at, best],
        g_squared=g_squared[at, best],
        p_value=np.minimum(1.0, tail * np.exp(log_choices[best])),
    )


def log_number_of_groups(m: Ints, n_classes: int) -> Floats:
    """The logarithm of C(K, m)·(K − 1), shape of m."""
    log_choose = gammaln(n_classes + 1) - gammaln(m + 1) - gammaln(n_classes - m + 1)
    return np.asarray(log_choose + np.log(n_classes - 1))


def likelihood_ratio(inside: Ints, n_documents: Ints, group_size: Ints, n_all: int) -> Floats:
    """G² of the table "contains the word" × "is of the group"."""
    cells = (
        inside,
        n_documents - inside,
        group_size - inside,
        n_all - n_documents - group_size + inside,
    )
    margins = (n_documents, n_all - n_documents, group_size, n_all - group_size)
    total: Floats = np.asarray(0.0)
    for cell in cells:
        total = total + xlogy(cell, cell)
    for margin in margins:
        total = total - xlogy(margin, margin)
    return np.asarray(2 * np.maximum(total + xlogy(n_all, n_all), 0.0))


def information(present: Ints, class_sizes: Ints) -> Floats:
    """Mutual information, in bits, between "a document contains the word" and its class, shape
    (|S|,).

    The arguments are those of `best_splits`.
    """
    joint = np.stack([present, class_sizes - present]) / class_sizes.sum()  # contain it, or not
    expected = joint.sum(axis=2, keepdims=True) * class_sizes / class_sizes.sum()
    return np.asarray(rel_entr(joint, expected).sum(axis=(0, 2)) / np.log(2))
