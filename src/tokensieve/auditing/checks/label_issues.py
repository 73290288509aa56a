"""Documents that may carry the wrong label: predictions of models that never saw them, and confident learning.

With out-of-fold probabilities p_i(k) and labels y_i, the threshold of class k is the mean of p_i(k) over the documents labelled k.
A document is an issue if some other class reaches its threshold, the largest such class being what it looks like; issues are ranked
by their margin p_i(looks like) − p_i(y_i)  (Northcutt, Jiang, Chuang 2021, section 3.1: the off-diagonal of the confident joint).

A pair is one document twice over, its preferred answer of class "chosen" and the other of class "rejected"; by symmetry both have
the same probability and the same threshold, the mean of σ(m) over the pairs, m being the margin given by a model that never saw
the pair's group. As only differences are seen, the scale of m, which a model of half the pairs has not settled, is that of least
loss over all of them: one number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tokensieve.arrays import Floats, Ints
from tokensieve.auditing.checks.api import (
    AuditContext,
    Check,
    Findings,
    Labels,
    Preferences,
    Share,
    computed_once,
)
from tokensieve.evidence.sums import Sums
from tokensieve.model.attention import Model
from tokensieve.read.corpus import Corpus
from tokensieve.task.tasks import Task
from tokensieve.text.vocabulary import CountedCorpus
from tokensieve.wording import percent, plural

LISTED = 1000  # rows of label-issues.csv
Folds = Callable[[CountedCorpus], Floats]


class _Clearest:
    """The issues of largest margin, as a table; `a + b` has those of both."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame = frame

    def __add__(self, other: _Clearest) -> _Clearest:
        both = pl.concat([self.frame, other.frame])
        return _Clearest(both.sort("margin", descending=True, maintain_order=True).head(LISTED))


class LabelIssues(Check):
    """Training documents whose label the others contradict."""

    name = "labels"
    title = "Labels to check"
    about = (
        "Training documents for which cross-validated models confidently predict another class: its probability is at least 0.8 "
        "higher than that of the label (confident learning)."
    )
    action = "Read the rows in label-issues.csv from the top and correct those that are wrong."
    tasks: ClassVar[tuple[type[Task], ...]] = (Labels,)
    thorough = True
    clear = 0.8  # margin of an issue that is counted; the others are only documents that are hard to predict
    weight = 0.3  # of a document whose prediction is in doubt
    noun, problem = "document", "may have the wrong label"
    reason = "models trained without {} give another class a probability at least 0.8 higher than that of the given label"

    def find(self, data: AuditContext) -> Findings:
        corpus, task = data.train.corpus, data.task
        (documents, looks_like, margin), n, listed = label_issues(data)
        if not n:
            return
        sure = self._sure(margin, documents, corpus)
        documents, looks_like = documents[sure], looks_like[sure]
        share = Share.count(n, int(data.class_sizes.sum()))
        if not task.classifies:
            share = Share.over(
                np.isin(task.items(len(corpus.labels)), documents), task.units(corpus)
            )
        action = self.action
        # else ties are among them, or not all are listed
        if n == int((listed["margin"] >= self.clear).sum()) < listed.height:
            these = f"These are the first {n:,}" if n > 1 else "This is the first"
            action += f" {these} of its {listed.height:,} rows; the others are less certain."
        first = zip(documents[:5].tolist(), looks_like.tolist(), strict=False)
        yield self.finding(
            data,
            self.weight * share.value,
            f"{plural(n, f'training {self.noun}')} ({percent(share.value)}) {self.problem}",
            documents,
            n_documents=n,
            evidence={f"{self.noun}s": share},
            action=action,
            details=(
                self.reason.format(f"these {n:,} {self.noun}s" if n > 1 else f"this {self.noun}"),
            ),
            examples=tuple(
                data.excerpt(i, looks_like=corpus.classes[k], characters=210) for i, k in first
            ),
        )

    @classmethod
    def of(cls, data: AuditContext) -> tuple[tuple[Ints, Ints, Floats], int, pl.DataFrame]:
        """`label_issues`."""
        task, model, train = data.task, data.learned.model, data.train
        folds = task.folds(train, model, data.learned.settings)
        if folds is None:
            return (
                (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0)),
                0,
                pl.DataFrame(),
            )
        sums = task.total(
            train, lambda part, folds: cls._sums(folds(part), part.counts.labels), folds
        )
        n, listed = task.total(
            train, cls._listed, folds, sums, task, replace(model, vocabulary=None)
        )
        here = cls.issues(folds(train), train.counts.labels, sums, task.size)
        return here, n, listed.frame.with_columns(pl.col("margin").round(4))

    @staticmethod
    def _sums(p: Floats, labels: Ints) -> Floats:
        """For each class, the sum of the probabilities that its documents have of it, and their number, shape (2, K)."""
        return np.array(
            [[x.sum(), len(x)] for x in (p[labels == j, j] for j in range(p.shape[1]))]
        ).T

    @classmethod
    def _listed(
        cls, part: CountedCorpus, folds: Folds, sums: Floats, task: Task, model: Model
    ) -> Sums:
        """The number of clear issues, and a table of the clearest."""
        counts = replace(part.counts, tokens=model.tokens)
        every, looks_like, margin = cls.issues(folds(part), counts.labels, sums, task.size)
        documents, looks = every[:LISTED], looks_like[:LISTED]
        table = part.corpus.rows_of(documents).select(
            "row",
            "label",
            looks_like=pl.Series(list(map(str, counts.classes)), dtype=pl.String).gather(looks),
            margin=margin[:LISTED],
            against=pl.Series(
                task.opposing_tokens(counts, model, documents, looks), dtype=pl.String
            ),
        )
        return Sums((int(cls._sure(margin, every, part.corpus).sum()), _Clearest(table)))

    @classmethod
    def _sure(cls, margin: Floats, documents: Ints, corpus: Corpus) -> NDArray[np.bool_]:
        """Which issues are clear; with ties, either order is right."""
        return (margin >= cls.clear) & ~corpus.tied[documents]

    @classmethod
    def issues(
        cls, p: Floats, labels: Ints, sums: Floats | None = None, size: int = 1
    ) -> tuple[Ints, Ints, Floats]:
        """The issues among documents (module formula), clearest first: documents, the class each looks like, margin; from their
        out-of-fold probabilities p, shape (n, K). `sums` are those of `_sums`, of these documents if None; of the `size`
        documents of an item the first stands for it."""
        k = p.shape[1]
        own, n = cls._sums(p, labels) if sums is None else sums
        threshold = np.divide(own, n, out=np.full(k, np.inf), where=n > 0)
        others = np.where((p >= threshold) & (np.arange(k) != labels[:, None]), p, -1.0)
        looks_like = others.argmax(axis=1)
        margin = others.max(axis=1) - p[np.arange(len(p)), labels]
        found = np.flatnonzero(
            (others.max(axis=1) >= 0) & (margin > 0) & (np.arange(len(p)) % size == 0)
        )
        order = found[np.argsort(-margin[found], kind="stable")]
        return order, looks_like[order], margin[order]


class ReversedPairs(LabelIssues):
    """Training pairs that look as if the rejected answer were the better one."""

    title = "Preferences to check"
    about = (
        "Training pairs in which a model trained without the pairs of their prompt prefers the rejected answer with a probability "
        "of at least 0.9."
    )
    action = "Read the rows in label-issues.csv from the top, and reverse or remove those that are wrong."
    tasks = (Preferences,)
    noun, problem = "pair", "may have the preference reversed"
    reason = (
        "for {}, models trained without the pairs of their prompt prefer the rejected answer with a probability of at least "
        "0.9"
    )


@computed_once
def label_issues(
    audit: AuditContext,
) -> tuple[tuple[Ints, Ints, Floats], int, pl.DataFrame]:
    """Training documents that may have the wrong label: those at hand, clearest first (document, the class it looks like,
    margin); the number of clear ones among all; and a table of the first thousand of all: row, label, looks_like, margin,
    against (the tokens that speak most against the label)."""
    return LabelIssues.of(audit)
