"""Tokens that are far more frequent on one side of a given split than on the other."""

from __future__ import annotations

import numpy as np
import polars as pl

from tokensieve.auditing.checks.api import AuditContext, Check, ConcernedDocuments, Findings, Share
from tokensieve.auditing.phrases import quoted
from tokensieve.evidence.drift import drift
from tokensieve.evidence.intervals import LEVEL
from tokensieve.evidence.sums import Sums, TokenSums
from tokensieve.task.tasks import Task
from tokensieve.text.vocabulary import CountedCorpus
from tokensieve.wording import percent

MIN_FREQUENCY = 0.01  # of the documents of either side
MIN_RATIO = 2.0  # of the token's mean shares on the two sides
MAX_TOKENS = 50
SEVERITY_PER_FREQUENCY = 0.1  # most tokens that drift do not decide the label
MAX_SEVERITY = 0.05  # where "high" begins


class Drift(Check):
    """In a random split, any difference is chance, so only given test documents are compared."""

    name = "drift"
    title = "Drift"
    about = (
        "Tokens at least twice as frequent in the training documents as in the given test "
        "documents, or vice versa, that occur in at least 1% of either (q < 0.05)."
    )
    action = "Find out why training and test documents differ before you trust the test accuracy."
    descriptive = True

    def find(self, audit: AuditContext) -> Findings:
        if not audit.test_given:
            return
        before = audit.task.total(audit.train, _token_sums, audit.task)
        after = audit.task.total(audit.test, _token_sums, audit.task)
        sizes = [int(sums[0].documents) for sums in (before, after)]
        table = drift(
            audit.train.counts, audit.test.counts, audit.train.n_formatting, (before, after)
        )
        table = _clear_differences(table, sizes)
        if table.is_empty():
            return
        first = table.row(0, named=True)
        token = first["token"]
        n_before = first["documents_before"]
        n_after = first["documents_after"]
        in_training = _share(audit, audit.train, token, n_before, sizes[0])
        in_test = _share(audit, audit.test, token, n_after, sizes[1])
        frequency = max(in_training.value, in_test.value)
        yield self.finding(
            audit,
            severity=min(MAX_SEVERITY, SEVERITY_PER_FREQUENCY * frequency),
            headline=_headline(token, in_training, in_test, n_more=table.height - 1),
            tokens=table["token"].head(MAX_TOKENS).to_list(),
            evidence={"before": in_training, "after": in_test},
            documents=ConcernedDocuments(total=n_before + n_after),
            details=(
                f"it occurs in {in_training.as_counts} training documents and in "
                f"{in_test.as_counts} test documents",
            ),
        )


def _headline(token: str, in_training: Share, in_test: Share, n_more: int) -> str:
    """A sentence that compares the rates of a token on both sides; `n_more` other tokens differ
    too."""
    headline = (
        f"{quoted([token])} appears in {percent(in_training.value)} of training documents and "
        f"{percent(in_test.value)} of test documents"
    )
    if not n_more:
        return headline
    tokens_differ = "tokens differ" if n_more > 1 else "token differs"
    return f"{headline}; {n_more:,} more {tokens_differ} significantly"


def _token_sums(part: CountedCorpus, task: Task) -> Sums:
    """The sums of one side's documents, over their groups if there are any."""
    units = task.document_units(part.corpus)
    return TokenSums.of_counts(part.counts, part.n_formatting, units)


def _clear_differences(table: pl.DataFrame, sizes: list[int]) -> pl.DataFrame:
    """The rows of `drift` that are significant, frequent and large, largest difference first."""
    is_frequent = (pl.col("documents_before") >= MIN_FREQUENCY * sizes[0]) | (
        pl.col("documents_after") >= MIN_FREQUENCY * sizes[1]
    )
    shares = ("share_before", "share_after")
    is_large = pl.max_horizontal(shares) >= MIN_RATIO * pl.min_horizontal(shares)
    clear = table.filter(pl.col("q_value") < LEVEL, is_frequent, is_large)
    return clear.sort(pl.col("difference").abs(), descending=True)


def _share(
    audit: AuditContext, part: CountedCorpus, token: str, n_with_token: int, n_documents: int
) -> Share:
    """The fraction of one side's documents that contain a token, with an interval over groups."""
    units = audit.task.document_units(part.corpus)
    if units is None:
        return Share.count(n_with_token, n_documents)
    token_type = int(np.flatnonzero(part.counts.tokens == token)[0])
    has_token = part.counts.matrix[:, [token_type]].toarray()[:, 0] > 0
    return Share.over(has_token, units)
