"""Tokens that are far more frequent on one side of a given split than on the other."""

from __future__ import annotations

import numpy as np
import polars as pl

from tokensieve.auditing.checks.api import AuditContext, Check, Findings, Share
from tokensieve.auditing.phrases import quoted
from tokensieve.errors import InputError
from tokensieve.evidence.intervals import (
    LEVEL,
    GroupSums,
    agreeing,
    combined,
    false_discovery,
    permutation_p,
)
from tokensieve.evidence.sums import Sums, TokenSums
from tokensieve.text.counts import Counts
from tokensieve.text.vocabulary import CountedCorpus
from tokensieve.wording import percent


class Drift(Check):
    """In a random split, any difference is chance, so only given test documents are compared."""

    name = "drift"
    title = "Drift"
    about = (
        "Tokens at least twice as frequent in the training documents as in the given test documents, or vice versa, that occur in "
        "at least 1% of either (q < 0.05)."
    )
    action = "Find out why training and test documents differ before you trust the test accuracy."
    descriptive = True
    common, ratio = 0.01, 2.0

    def find(self, data: AuditContext) -> Findings:
        if not data.test_given:
            return
        parts, task, features = (data.train, data.test), data.task, data.train.n_formatting

        def sums_of(part: CountedCorpus) -> Sums:
            return TokenSums.of_counts(
                part.counts, part.n_formatting, task.document_units(part.corpus)
            )

        before, after = (task.total(part, sums_of) for part in parts)
        table = drift(parts[0].counts, parts[1].counts, features, (before, after)).filter(
            pl.col("q_value") < LEVEL
        )
        sizes = [int(sums[0].documents) for sums in (before, after)]
        frequent = pl.col("documents_before") >= self.common * sizes[0]
        frequent |= pl.col("documents_after") >= self.common * sizes[1]
        means = "share_before", "share_after"
        apart = pl.max_horizontal(means) >= self.ratio * pl.min_horizontal(means)
        table = table.filter(frequent, apart).sort(pl.col("difference").abs(), descending=True)
        if table.is_empty():
            return
        first = str(table["token"][0])
        at = int(np.flatnonzero(data.train.counts.tokens == first)[0])
        held = [int(table[f"documents_{side}"][0]) for side in ("before", "after")]
        shares = [Share.count(n, size) for n, size in zip(held, sizes, strict=True)]
        for i, part in enumerate(parts):
            if (of := task.document_units(part.corpus)) is not None:
                shares[i] = Share.over(part.counts.matrix[:, [at]].toarray()[:, 0] > 0, of)
        rates = f"{percent(shares[0].value)} of training documents and {percent(shares[1].value)} of test documents"
        others = table.height - 1
        more = (
            f"; {others:,} more token{'s differ' if others > 1 else ' differs'} significantly"
            if others
            else ""
        )
        yield self.finding(
            data,
            min(0.05, 0.1 * max(share.value for share in shares)),
            f"{quoted([first])} appears in {rates}{more}",
            tokens=tuple(table["token"].head(50)),
            evidence={"before": shares[0], "after": shares[1]},
            n_documents=sum(held),
            details=(
                f"it occurs in {shares[0].as_counts} training documents and in {shares[1].as_counts} test documents",
            ),
        )


def drift(
    before: Counts, after: Counts, features: int = 0, sums: tuple[Sums, Sums] | None = None
) -> pl.DataFrame:
    """How the share of each type changed between two sets of documents over the same types and classes, in O(nonzeros + |S| K).

    With μ the mean share x = c/T in a set, label by label, and ω_k the share of label k in both sets together, the difference is
    Σ_k ω_k (μ_after,k − μ_before,k), so that a change in the mix of labels alone, which moves every token that predicts a label,
    is not drift. The test relabels "before" and "after" within each label (`tokensieve.evidence.intervals`).

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
    kinds = list(
        zip(*(sums or (TokenSums.of_counts(c, features) for c in (before, after))), strict=True)
    )
    for sides in kinds[: 2 if features else 1]:  # words, then formatting
        strata = [TokenSums.of_label(label, sides) for label in range(before.n_classes)]
        strata = [one for one in strata if (one.class_sizes > 0).all()]
        if not strata:
            raise InputError(
                "no label occurs in both sets of documents, so they cannot be compared"
            )
        # groups: the documents before and after of each label in turn
        sizes = np.concatenate([one.sizes for one in strata])
        mix = np.array([one.documents for one in strata]) / sizes.sum()
        groups = GroupSums.concatenate([GroupSums.of_classes(one) for one in strata])
        documents = np.sum([s.present for s in strata], axis=0)
        means = groups.mean_interval(documents.sum(axis=1))
        difference = combined(np.kron(mix, [-1.0, 1.0])[:, None], means)
        # the difference of means per unit of the sum over "after"
        scales = [
            share * s.documents / s.sizes.prod() for s, share in zip(strata, mix, strict=True)
        ]
        p = permutation_p(strata, np.array([1]), scales)
        difference = agreeing(difference, p)
        columns = {
            "share_before": means.estimate[:, ::2] @ mix,
            "share_after": means.estimate[:, 1::2] @ mix,
            "difference": difference.estimate[:, 0],
            "difference_low": difference.low[:, 0],
            "difference_high": difference.high[:, 0],
        }
        names = {"documents_before": documents[:, 0], "documents_after": documents[:, 1]}
        columns = {name: values / length for name, values in columns.items()}
        tables.append(pl.DataFrame(names | columns | {"p_value": p[:, 0]}))
        length = max(float(sum(s.count.sum() for s in strata) / sizes.sum()), 1.0)
    table = pl.concat(tables)
    tokens = pl.Series("token", [str(token) for token in before.tokens], dtype=pl.String)
    q = pl.Series("q_value", false_discovery(table["p_value"].to_numpy()[:, None])[:, 0])
    return pl.DataFrame([tokens, *table, q])
