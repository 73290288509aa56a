"""Drift: tokens whose share of the text differs between two sets of documents (training and test, two months, two collections).

With μ the mean share x = c/T in a set, label by label, and ω_k the share of label k in both sets together:

    difference = Σ_k ω_k (μ_after,k − μ_before,k)

so that a change in the mix of labels alone, which moves every token that carries a label, is no drift. The interval is MOVER's on
score intervals of the means; the test relabels "before" and "after" within each label, its first three moments exact
(`tokensieve.evidence.intervals`). Documents are the independent units.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import scipy.sparse as sp

from tokensieve.errors import InputError
from tokensieve.evidence.intervals import (
    agreeing,
    combined,
    dispersion,
    false_discovery,
    length_excess,
    mean_interval,
    quantile,
    relabelled,
    tail_p,
)
from tokensieve.evidence.sums import TokenSums, as_floats
from tokensieve.text.counts import Counts, Floats


def drift(before: Counts, after: Counts, features: int = 0) -> pl.DataFrame:
    """How the share of each type changed, in O(nonzeros + |S| K), one row per type in the order of the vocabulary.

    Args:
        before, after: two sets of documents over the same |S| types and K classes; without labels, all of class 0.
        features: how many of the types, the last ones, are formatting: presences, in units of one token of a document of mean
            length (`tokensieve.evidence.importance`).

    Returns:
        Columns: token; documents_before, documents_after, that contain it; share_before, share_after, mean c/T at the common mix of
        labels; difference with its 95 % interval (difference_low, difference_high); p_value; q_value (Benjamini–Hochberg).

    Raises:
        InputError: types or classes differ, or no label occurs in both sets.
    """
    if before.matrix.shape[1] != after.matrix.shape[1] or before.classes != after.classes:
        raise InputError(
            "drift compares two sets of documents over the same types and classes; count both with one vocabulary"
        )
    words = before.n_types - features
    table, length = _drift(before, after, slice(0, words), False)
    if not features:
        return table
    marks, _ = _drift(before, after, slice(words, before.n_types), True)
    scaled = "share_before share_after difference difference_low difference_high".split()
    both = pl.concat([table, marks.with_columns(pl.col(scaled) / max(length, 1.0))])
    return both.with_columns(q_value=false_discovery(both["p_value"].to_numpy()[:, None])[:, 0])


def _drift(before: Counts, after: Counts, types: slice, presences: bool) -> tuple[pl.DataFrame, float]:
    """The table of some types, and the mean length of a document in them."""
    strata = [_both(before, after, k, types, presences) for k in range(before.n_classes)]
    strata = [sums for sums in strata if (sums.class_sizes > 0).all()]
    if not strata:
        raise InputError("no label occurs in both sets of documents, so that they cannot be compared")
    sizes = np.concatenate([sums.class_sizes for sums in strata]).astype(
        np.float64
    )  # before, after of each label in turn
    mix = np.array([sums.documents for sums in strata]) / sizes.sum()
    first, second = (np.concatenate([as_floats(s.shares[:, :, i]) for s in strata], axis=1) for i in (0, 1))
    inverse = np.concatenate([as_floats(s.inverse_lengths) for s in strata])
    documents = np.stack([sum(s.present[:, i] for s in strata) for i in (0, 1)], axis=1)
    phi = dispersion(first, second, sizes, inverse / sizes)
    means = mean_interval(first, phi, sizes, quantile(documents.sum(axis=1)[:, None], sizes))
    difference, low, high = combined(np.kron(mix, [-1.0, 1.0])[:, None], *means)
    p = _p(strata, mix)
    low, high = agreeing(difference, low, high, p)
    share = [means[0][:, i::2] @ mix for i in (0, 1)]
    table = pl.DataFrame(
        {
            "token": pl.Series([str(token) for token in before.tokens[types]], dtype=pl.String),
            "documents_before": documents[:, 0],
            "documents_after": documents[:, 1],
            "share_before": share[0],
            "share_after": share[1],
            "difference": difference[:, 0],
            "difference_low": low[:, 0],
            "difference_high": high[:, 0],
            "p_value": p[:, 0],
            "q_value": false_discovery(p)[:, 0],
        }
    )
    return table, float(sum(s.count.sum() for s in strata) / sizes.sum())


def _both(before: Counts, after: Counts, label: int, types: slice, presences: bool) -> TokenSums:
    """Sums over the documents of one label, those before as class 0 and those after as class 1; of presences all lengths are 1."""
    total = TokenSums.zero(len(range(*types.indices(before.n_types))), 2)
    for side, counts in enumerate((before, after)):
        for part in counts.blocks():
            matrix = sp.csr_array(part.matrix[part.labels == label][:, types])
            n = matrix.shape[0]
            total += TokenSums.of(matrix, np.full(n, side), 2, np.ones(n) if presences else None)
    return total


def _p(strata: list[TokenSums], mix: Floats) -> Floats:
    """p of the difference, shape (|S|, 1): sums of independent sums, hence their cumulants add up."""
    types = strata[0].present.shape[0]
    deviation, below, above, variance, third, corrected = (np.zeros((types, 1)) for _ in range(6))
    for sums, share in zip(strata, mix, strict=True):
        n, sizes = sums.documents, sums.class_sizes.astype(np.float64)
        total = tuple(as_floats(w)[:, None] for w in (*np.moveaxis(sums.shares.sum(axis=1), 1, 0), sums.cubes))
        scale = share * n / (sizes[0] * sizes[1])  # difference of means per unit of the sum over "after"
        mean, spread, skewed = relabelled((total[0], total[1], total[2]), sizes[1], n)
        deviation += scale * (as_floats(sums.shares[:, 1:, 0]) - mean)
        below, above = below + scale * mean, above + scale * (total[0] - mean)
        variance, third = variance + scale**2 * spread, third + scale**3 * skewed
        corrected += scale**2 * spread * length_excess(as_floats(sums.inverse_lengths), sizes)[1]
    excess = np.where(variance > 0, corrected / np.where(variance > 0, variance, 1.0), 1.0)
    return tail_p(deviation, (below, above), variance, third, excess)
