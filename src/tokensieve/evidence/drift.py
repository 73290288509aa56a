"""How the frequency of each token type changed between two sets of documents.

With μ the mean share x = c/T in a set, label by label, and ω_k the fraction of label k in both sets
together, the difference is Σ_k ω_k (μ_after,k − μ_before,k). A change in the mix of labels alone,
which moves every token that predicts a label, is therefore no drift. The test relabels "before" and
"after" within each label (`tokensieve.evidence.intervals`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from tokensieve.errors import InputError
from tokensieve.evidence.intervals import (
    GroupSums,
    agreeing,
    combined,
    false_discovery,
    permutation_p,
)
from tokensieve.evidence.sums import Sums, TokenSums, blocks_of_types
from tokensieve.text.counts import Counts


def drift(
    before: Counts,
    after: Counts,
    n_formatting: int = 0,
    sums: tuple[Sums, Sums] | None = None,
) -> pl.DataFrame:
    """Compares two sets of documents over the same types and classes, in O(nonzeros + |S| K).

    Args:
        before, after: the two sets.
        n_formatting: so many types at the end are formatting: presences, in units of one token of a
            document of mean length.
        sums: `TokenSums.of_counts` of both sets, if these are larger than what is here of them.

    Returns:
        A row per type: token; documents_before and documents_after that contain it; share_before
        and share_after, mean c/T at the common mix of labels; difference with its 95% interval;
        p_value; q_value (Benjamini–Hochberg).

    Raises:
        InputError: types or classes differ, or no label occurs in both sets.
    """
    if before.matrix.shape[1] != after.matrix.shape[1] or before.classes != after.classes:
        raise InputError(
            "drift needs two sets of documents over the same types and classes: count both with "
            "one vocabulary"
        )
    if sums is None:
        sums = (
            TokenSums.of_counts(before, n_formatting),
            TokenSums.of_counts(after, n_formatting),
        )
    words = _strata(sums[0][0], sums[1][0], before.n_classes)
    table = _compare(words, unit=1.0)
    if n_formatting:
        formatting = _strata(sums[0][1], sums[1][1], before.n_classes)
        table = table.vstack(_compare(formatting, unit=_mean_length(words)))
    tokens = pl.Series("token", [str(token) for token in before.tokens], dtype=pl.String)
    q_values = false_discovery(table["p_value"].to_numpy()[:, None])[:, 0]
    return pl.DataFrame([tokens, *table, pl.Series("q_value", q_values)])


def _mean_length(strata: Sequence[TokenSums]) -> float:
    """Mean number of tokens in a document; at least 1."""
    n_tokens = sum(stratum.count.sum() for stratum in strata)
    n_documents = sum(stratum.sizes.sum() for stratum in strata)
    return max(float(n_tokens / n_documents), 1.0)


def _strata(before: TokenSums, after: TokenSums, n_classes: int) -> list[TokenSums]:
    """For each label that occurs in both sets, add up the counts of its documents before and
    after."""
    strata = [TokenSums.of_label(label, (before, after)) for label in range(n_classes)]
    strata = [stratum for stratum in strata if (stratum.class_sizes > 0).all()]
    if not strata:
        raise InputError("no label occurs in both sets of documents, so they cannot be compared")
    return strata


def _compare(strata: Sequence[TokenSums], unit: float) -> pl.DataFrame:
    """The difference of each type over all labels, with its interval and its test.

    `unit` is what shares are divided by.
    """
    blocks = blocks_of_types(len(strata[0].count))
    return pl.concat(
        [_compare_types([stratum.of_types(some) for stratum in strata], unit) for some in blocks]
    )


def _compare_types(strata: Sequence[TokenSums], unit: float) -> pl.DataFrame:
    """Compare the rates of some token types, few enough for memory (see `_compare`)."""
    # groups: the documents before and after of each label in turn
    sizes = np.concatenate([stratum.sizes for stratum in strata])
    mix = np.array([stratum.documents for stratum in strata]) / sizes.sum()
    groups = GroupSums.concatenate([GroupSums.of_classes(stratum) for stratum in strata])
    documents = np.sum([stratum.present for stratum in strata], axis=0)
    means = groups.mean_interval(documents.sum(axis=1))
    difference = combined(np.kron(mix, [-1.0, 1.0])[:, None], means)
    # the difference of means per unit of the sum over "after"
    scales = [
        fraction * stratum.documents / stratum.sizes.prod()
        for stratum, fraction in zip(strata, mix, strict=True)
    ]
    p = permutation_p(strata, np.array([1]), scales)
    difference = agreeing(difference, p)
    return pl.DataFrame(
        {
            "documents_before": documents[:, 0],
            "documents_after": documents[:, 1],
            "share_before": means.estimate[:, ::2] @ mix / unit,
            "share_after": means.estimate[:, 1::2] @ mix / unit,
            "difference": difference.estimate[:, 0] / unit,
            "difference_low": difference.low[:, 0] / unit,
            "difference_high": difference.high[:, 0] / unit,
            "p_value": p[:, 0],
        }
    )
