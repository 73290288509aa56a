"""What of an audit exceeds the limits of `--fail-on`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import polars as pl

from tokensieve.auditing.findings import Finding
from tokensieve.auditing.settings import Budget, Limit


def tokens_over(
    budget: Budget, tokens: pl.DataFrame, class_documents: Mapping[str, int]
) -> pl.DataFrame:
    """The rows of `Audit.tokens` beyond the limit on tokens, largest posterior difference first."""
    if budget.difference is None:
        return tokens.clear()
    if budget.of_class:
        size = pl.col("class").replace_strict(dict(class_documents), return_dtype=pl.Int64)
        is_frequent = pl.col("class_documents") > budget.share * size
    else:
        n_documents = sum(class_documents.values())
        is_frequent = pl.col("documents") > budget.share * n_documents
    exceeds = is_frequent & (pl.col("posterior_difference") > budget.difference)
    order = ["posterior_difference", "documents", "token"]
    return tokens.filter(exceeds).sort(order, descending=[True, True, False])


def kinds_over(budget: Budget, findings: Iterable[Finding]) -> tuple[str, ...]:
    """The kinds of finding, apart from tokens, of which one exceeds its limit."""
    exceeding = set()
    for finding in findings:
        limit = budget.limits.get(finding.kind)
        if limit is not None and _amount_of(finding, limit) > limit.amount:
            exceeding.add(finding.kind)
    return tuple(name for name in budget.limits if name in exceeding)


def _amount_of(finding: Finding, limit: Limit) -> float:
    """The number that a limit is compared with: the largest fraction of a finding, or its
    documents."""
    if limit.is_fraction:
        return max((share.value for share in finding.evidence.values()), default=0.0)
    return finding.documents
