"""Drift: tokens whose share of the text differs between two sets of documents (training and test, two months, two collections).

With μ the mean share x = c/T in a set, label by label, and ω_k the share of label k in both sets together:

    difference = Σ_k ω_k (μ_after,k − μ_before,k)

so that a change in the mix of labels alone, which moves every token that predicts a label, is not drift. The test relabels
"before" and "after" within each label (`tokensieve.evidence.intervals`).
"""

from __future__ import annotations

import numpy as np
import polars as pl

from tokensieve.errors import InputError
from tokensieve.evidence.intervals import agreeing, combined, false_discovery, mean_interval, permutation_p
from tokensieve.evidence.sums import Sums, TokenSums
from tokensieve.text.counts import Counts


def drift(before: Counts, after: Counts, features: int = 0, sums: tuple[Sums, Sums] | None = None) -> pl.DataFrame:
    """How the share of each type changed between two sets of documents over the same types and classes, in O(nonzeros + |S| K).

    The last `features` types are formatting: presences, in units of one token of a document of mean length. `sums` are
    `TokenSums.of_counts` of both, where the sets are larger than what is here of them. A row per type: token; documents_before,
    documents_after, that contain it; share_before, share_after, mean c/T at the common mix of labels; difference with its 95 %
    interval; p_value; q_value (Benjamini–Hochberg). An `InputError` if types or classes differ, or no label occurs in both sets.
    """
    if before.matrix.shape[1] != after.matrix.shape[1] or before.classes != after.classes:
        raise InputError(
            "drift needs two sets of documents over the same types and classes: count both with one vocabulary"
        )
    tables, length = [], 1.0
    kinds = list(zip(*(sums or (TokenSums.of_counts(c, features) for c in (before, after))), strict=True))
    for sides in kinds[: 2 if features else 1]:  # words, then formatting
        strata = [TokenSums.of_label(label, sides) for label in range(before.n_classes)]
        strata = [one for one in strata if (one.class_sizes > 0).all()]
        if not strata:
            raise InputError("no label occurs in both sets of documents, so they cannot be compared")
        # groups: the documents before and after of each label in turn
        sizes = np.concatenate([one.sizes for one in strata])
        mix = np.array([one.documents for one in strata]) / sizes.sum()
        first, second = (np.concatenate([getattr(s, name) for s in strata], axis=1) for name in ("first", "second"))
        inverse = np.concatenate([s.inverse for s in strata])
        documents = np.sum([s.present for s in strata], axis=0)
        means = mean_interval(first, second, sizes, inverse, documents.sum(axis=1))
        difference, low, high = combined(np.kron(mix, [-1.0, 1.0])[:, None], *means)
        # the difference of means per unit of the sum over "after"
        scales = [share * s.documents / s.sizes.prod() for s, share in zip(strata, mix, strict=True)]
        p = permutation_p(strata, np.array([1]), scales)
        low, high = agreeing(difference, low, high, p)
        columns = {
            "share_before": means[0][:, ::2] @ mix,
            "share_after": means[0][:, 1::2] @ mix,
            "difference": difference[:, 0],
            "difference_low": low[:, 0],
            "difference_high": high[:, 0],
        }
        names = {"documents_before": documents[:, 0], "documents_after": documents[:, 1]}
        columns = {name: values / length for name, values in columns.items()}
        tables.append(pl.DataFrame(names | columns | {"p_value": p[:, 0]}))
        length = max(float(sum(s.count.sum() for s in strata) / sizes.sum()), 1.0)
    table = pl.concat(tables)
    tokens = pl.Series("token", [str(token) for token in before.tokens], dtype=pl.String)
    q = pl.Series("q_value", false_discovery(table["p_value"].to_numpy()[:, None])[:, 0])
    return pl.DataFrame([tokens, *table, q])
