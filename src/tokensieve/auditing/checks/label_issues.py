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

from collections.abc import Iterator

import numpy as np
import polars as pl

from tokensieve.auditing.checks.base import AuditData, Check
from tokensieve.auditing.findings import Finding, plural, rows_of
from tokensieve.evidence.shares import Share
from tokensieve.task.tasks import CorpusModel, Labels, Preferences
from tokensieve.text.counts import Floats, Ints
from tokensieve.wording import percent

LISTED = 1_000
CLEAR = 0.8  # margin of an issue that is counted; the others are only documents that are hard to predict
Issues = tuple[Ints, Ints, Floats]  # documents, the class each looks like, margin; clearest first


class LabelIssues(Check):
    """Training documents whose label the others contradict."""

    name = "labels"
    title = "Labels to check"
    about = (
        "Training documents to which models that never saw them assign another class, with a margin of at least 0.8 in "
        "probability (confident learning)."
    )
    action = "Read the rows in label-issues.csv from the top and correct those that are wrong."
    tasks = (Labels,)
    thorough = True
    weight = 0.3  # of a document whose prediction is in doubt
    shown = 5

    def find(self, data: AuditData) -> Iterator[Finding]:
        (documents, looks_like, margin), _ = data.label_issues
        clear = int(np.count_nonzero(margin >= CLEAR))
        if not clear:
            return
        corpus = data.train.corpus
        share = Share.count(clear, len(corpus.labels))
        first = zip(documents[: min(self.shown, clear)].tolist(), looks_like.tolist(), strict=False)
        yield self.finding(
            data,
            self.weight * share.value,
            f"{plural(clear, 'training document')} ({percent(share.value)}) may have the wrong label",
            documents[:clear],
            evidence={"documents": share},
            details=("models that never saw them predict another class, with a margin of at least 0.8",),
            examples=tuple(data.start_of(i, looks_like=corpus.classes[k], most=210) for i, k in first),
        )


class ReversedPairs(Check):
    """Training pairs that look as if the rejected answer were the better one."""

    name = "labels"
    title = "Preferences to check"
    about = (
        "Training pairs in which a model that saw no pair of the same prompt prefers the rejected answer with a probability of at "
        "least 0.9."
    )
    action = "Read the rows in label-issues.csv from the top, and reverse or remove those that are wrong."
    tasks = (Preferences,)
    thorough = True
    weight = 0.3
    shown = 5

    def find(self, data: AuditData) -> Iterator[Finding]:
        (documents, _, margin), _ = data.label_issues
        corpus = data.train.corpus
        if corpus.pairs is not None and corpus.pairs.position is not None:  # of a tie neither order is wrong
            decided = corpus.pairs.position[documents // 2] != 2
            documents, margin = documents[decided], margin[decided]
        clear = int(np.count_nonzero(margin >= CLEAR))
        if not clear:
            return
        items = data.task.items(len(corpus.labels))
        share = Share.over(np.isin(items, documents[:clear]), data.task.units(corpus))
        first = documents[: min(self.shown, clear)].tolist()
        yield self.finding(
            data,
            self.weight * share.value,
            f"{plural(clear, 'training pair')} ({percent(share.value)}) may have the preference reversed",
            documents[:clear],
            evidence={"pairs": share},
            details=(
                "a model that saw no pair of the same prompt gives the rejected answer a probability of at least 0.9",
            ),
            examples=tuple(data.start_of(i, looks_like=corpus.classes[0], most=210) for i in first),
        )


def label_issues(learned: CorpusModel) -> tuple[Issues, pl.DataFrame]:
    """The issues, and a table of the thousand clearest: row, label, looks_like, margin, against (the tokens that speak most against
    the label, of a pair against the preference)."""
    task, train = learned.task, learned.train
    corpus, counts = train.corpus, train.counts
    p = task.out_of_fold(train, learned.model, learned.settings)
    if p is None:
        return (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0)), pl.DataFrame()
    issues = confident_issues(p, counts.labels)
    stands = np.isin(issues[0], task.items(counts.n_documents))  # one document for each pair
    documents, looks, margin = issues[0][stands], issues[1][stands], issues[2][stands]
    listed, others = documents[:LISTED], looks[:LISTED]
    names = pl.Series([str(name) for name in corpus.classes], dtype=pl.String)
    table = rows_of(listed, corpus).select(
        "row",
        "label",
        looks_like=names.gather(others),
        margin=pl.Series(margin[:LISTED]).round(4),
        against=pl.Series(task.against(counts, learned.model, listed, others), dtype=pl.String),
    )
    return (documents, looks, margin), table


def confident_issues(p: Floats, labels: Ints) -> Issues:
    """The issues among documents (module formula).

    Args:
        p: out-of-fold probabilities, shape (n, K).
        labels: class indices, shape (n,); every class has a document.
    """
    k = p.shape[1]
    threshold = np.array([p[labels == j, j].mean() if (labels == j).any() else np.inf for j in range(k)])
    others = np.where((p >= threshold) & (np.arange(k) != labels[:, None]), p, -1.0)
    looks_like = others.argmax(axis=1)
    margin = others.max(axis=1) - p[np.arange(len(p)), labels]
    found = np.flatnonzero((others.max(axis=1) >= 0) & (margin > 0))
    order = found[np.argsort(-margin[found], kind="stable")]
    return order, looks_like[order], margin[order]
