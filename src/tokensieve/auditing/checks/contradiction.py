"""The same text with two labels."""

from __future__ import annotations

import numpy as np
import polars as pl

from tokensieve.arrays import Ints
from tokensieve.auditing.checks.api import (
    AuditContext,
    Check,
    ConcernedDocuments,
    Findings,
    Labels,
    Preferences,
    Share,
)
from tokensieve.wording import percent, plural, verb

MAX_EXAMPLES = 4  # two pairs of copies


class Contradiction(Check):
    """Documents whose exact text occurs with another label too."""

    name = "contradiction"
    title = "Same text, different labels"
    about = "Training or test documents whose exact text also occurs with another label."
    action = "Decide on one label for each of these texts, or remove them."
    tasks = (Labels,)

    def find(self, audit: AuditContext) -> Findings:
        train, test = audit.train.corpus, audit.test.corpus
        documents = _with_another_label(audit)
        total = audit.total("contradicting", len(documents))
        if not total:
            return
        share = Share.count(total, sum(audit.totals["documents"].values()))
        n_train = len(train.texts)
        in_test = documents[documents >= n_train] - n_train
        examples = [
            audit.excerpt(i) if i < n_train else audit.excerpt(i - n_train, "test")
            for i in documents[:MAX_EXAMPLES].tolist()
        ]
        rows = [train.rows_of(documents[documents < n_train]), test.rows_of(in_test, "test")]
        have = verb(total, "have", "has")
        yield self.finding(
            audit,
            severity=share.value,
            headline=(
                f"{plural(total, 'document')} ({percent(share.value)}) {have} the same text as a "
                "document with a different label"
            ),
            evidence={"documents": share},
            documents=ConcernedDocuments(total=total, rows=pl.concat(rows), examples=examples),
            details=(
                f"{share.as_counts} training and test documents have a copy with another label",
            ),
        )


def _with_another_label(audit: AuditContext) -> Ints:
    """Documents of both sides, numbered training first, with a copy of another label; copies follow
    each other."""
    train, test = audit.train.corpus, audit.test.corpus
    frame = pl.DataFrame(
        {
            "key": pl.concat([train.keys, test.keys]),
            "label": np.concatenate([train.labels, test.labels]),
        }
    ).with_row_index("document")
    has_other_label = pl.col("label").n_unique().over("key") > 1
    ordered = frame.filter(has_other_label).sort("key", "document")
    return ordered["document"].to_numpy().astype(np.int64)


class OpposedPairs(Check):
    """Training pairs that also occur with the other answer preferred."""

    name = "contradiction"
    title = "Same pair, opposite preference"
    about = "Training pairs that also occur with the other answer preferred."
    action = "Decide which answer is better, or remove these pairs."
    tasks = (Preferences,)

    def find(self, audit: AuditContext) -> Findings:
        corpus = audit.train.corpus
        answers = pl.DataFrame(
            {"preferred": corpus.keys.gather_every(2), "other": corpus.keys.gather_every(2, 1)}
        ).with_row_index("pair")
        decided = answers.filter(~corpus.tied[::2])  # a tie stands in both orders by intention
        opposed = decided.join(
            decided, left_on=["preferred", "other"], right_on=["other", "preferred"], how="semi"
        )
        pairs = opposed["pair"].sort().to_numpy().astype(np.int64)
        if not len(pairs):
            return
        share = Share.count(len(pairs), decided.height)
        occur = verb(len(pairs), "occur")
        have = verb(len(pairs), "have", "has")
        yield self.finding(
            audit,
            severity=share.value,
            headline=(
                f"{plural(len(pairs), 'pair')} ({percent(share.value)}) also {occur} with the "
                "other answer preferred"
            ),
            documents=ConcernedDocuments(2 * pairs, examples=()),
            evidence={"pairs": share},
            details=(f"{share.as_counts} pairs {have} a copy with the other answer preferred",),
        )
