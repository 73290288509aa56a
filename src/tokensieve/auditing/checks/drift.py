"""Tokens that are far more frequent on one side of a given split than on the other."""

from __future__ import annotations

import numpy as np
import polars as pl

from tokensieve.auditing.checks.base import AuditData, Check, Findings, Share
from tokensieve.auditing.findings import quoted
from tokensieve.evidence.drift import drift
from tokensieve.evidence.intervals import LEVEL
from tokensieve.evidence.sums import Sums, TokenSums
from tokensieve.task.tasks import Task
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
    common, ratio = 0.01, 2.0

    def find(self, data: AuditData) -> Findings:
        if not data.test_given:
            return
        parts, task, features = (data.train, data.test), data.task, data.train.n_formatting
        before, after = (task.total(part, _sums, task) for part in parts)
        table = drift(parts[0].counts, parts[1].counts, features, (before, after)).filter(pl.col("q_value") < LEVEL)
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
        more = f"; {others:,} more token{'s differ' if others > 1 else ' differs'} significantly" if others else ""
        yield self.finding(
            data,
            min(0.05, 0.1 * max(share.value for share in shares)),
            f"{quoted([first])} appears in {rates}{more}",
            tokens=tuple(table["token"].head(50)),
            evidence={"before": shares[0], "after": shares[1]},
            total=sum(held),
            details=(
                f"it occurs in {shares[0].as_counts} training documents and in {shares[1].as_counts} test documents",
            ),
        )


def _sums(part: CountedCorpus, task: Task) -> Sums:
    """The sums over some documents, or their groups, from which drift is computed."""
    of = task.document_units(part.corpus)
    return TokenSums.of_counts(part.counts if of is None else part.counts.merge_groups(of)[0], part.n_formatting)
