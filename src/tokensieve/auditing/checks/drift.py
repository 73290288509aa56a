"""Tokens that are far more frequent on one side of a given split than on the other."""

from __future__ import annotations

import numpy as np
import polars as pl

from tokensieve.auditing.checks.base import AuditData, Check, Findings, Share
from tokensieve.auditing.findings import quoted
from tokensieve.evidence.drift import drift
from tokensieve.evidence.intervals import LEVEL
from tokensieve.wording import percent


class Drift(Check):
    """Of a split drawn at random it could find nothing but chance, so that it looks at given test documents only."""

    name = "drift"
    title = "Drift"
    about = (
        "Tokens at least twice as frequent in the training documents as in the given test documents, or vice versa, that occur in "
        "at least 1% of either (q < 0.05)."
    )
    action = "Find out what changed between the two sides before you trust the test accuracy."
    common, ratio = 0.01, 2.0

    def find(self, data: AuditData) -> Findings:
        if not data.test_given:
            return
        whole = data.train.counts, data.test.counts
        groups = [data.task.document_units(part.corpus) for part in (data.train, data.test)]
        sides = [c if of is None else c.merged(of)[0] for c, of in zip(whole, groups, strict=True)]
        table = drift(sides[0], sides[1], data.train.n_formatting).filter(pl.col("q_value") < LEVEL)
        frequent = pl.col("documents_before") >= self.common * sides[0].n_documents
        frequent |= pl.col("documents_after") >= self.common * sides[1].n_documents
        shares = ["share_before", "share_after"]
        apart = pl.max_horizontal(shares) >= self.ratio * pl.min_horizontal(shares)
        table = table.filter(frequent, apart).sort(pl.col("difference").abs(), descending=True)
        if table.is_empty():
            return
        first = str(table["token"][0])
        at = int(np.flatnonzero(whole[0].tokens == first)[0])
        held = [c.holders(np.array([at]))[0] for c in whole]
        before, after = (
            Share.over(np.isin(np.arange(c.n_documents), rows), of)
            for c, rows, of in zip(whole, held, groups, strict=True)
        )
        rates = f"{percent(before.value)} of training documents and {percent(after.value)} of test documents"
        others = table.height - 1
        more = f"; {others:,} more token{'s' * (others > 1)} changed as much" if others else ""
        yield self.finding(
            data,
            min(0.05, 0.1 * max(before.value, after.value)),
            f"{quoted([first])} appears in {rates}{more}",
            tokens=tuple(table["token"].head(50)),
            evidence={"before": before, "after": after},
            total=sum(map(len, held)),
            details=(f"it is in {before.counted} training documents and in {after.counted} test documents",),
        )
