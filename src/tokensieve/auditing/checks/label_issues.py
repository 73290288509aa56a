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

from typing import ClassVar

import numpy as np

from tokensieve.auditing.checks.base import AuditData, Check, Findings, Labels, Preferences, Share
from tokensieve.task.tasks import Task
from tokensieve.text.counts import Floats, Ints
from tokensieve.wording import count, percent


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
    reason = "models that never saw these {} confidently predict another class, by at least 0.8 in probability"

    def find(self, data: AuditData) -> Findings:
        corpus, task = data.train.corpus, data.task
        (documents, looks_like, margin), _ = data.label_issues
        sure = margin >= self.clear
        sure &= ~corpus.tied[documents]  # of a tie neither order is wrong
        documents, looks_like = documents[sure], looks_like[sure]
        if not len(documents):
            return
        found = np.isin(task.items(len(corpus.labels)), documents)
        share = Share.over(found, None if task.classifies else task.units(corpus))
        first = zip(documents[:5].tolist(), looks_like.tolist(), strict=False)
        yield self.finding(
            data,
            self.weight * share.value,
            f"{count(len(documents), f'training {self.noun}')} ({percent(share.value)}) {self.problem}",
            documents,
            evidence={f"{self.noun}s": share},
            details=(self.reason.format(count(len(documents), self.noun)),),
            examples=tuple(data.start_of(i, looks_like=corpus.classes[k], most=210) for i, k in first),
        )

    @staticmethod
    def issues(p: Floats, labels: Ints) -> tuple[Ints, Ints, Floats]:
        """The issues among documents (module formula), clearest first: documents, the class each looks like, margin.

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


class ReversedPairs(LabelIssues):
    """Training pairs that look as if the rejected answer were the better one."""

    title = "Preferences to check"
    about = (
        "Training pairs in which a model that saw no pair of the same prompt prefers the rejected answer with a probability of at "
        "least 0.9."
    )
    action = "Read the rows in label-issues.csv from the top, and reverse or remove those that are wrong."
    tasks = (Preferences,)
    noun, problem = "pair", "may have the preference reversed"
    reason = "for these {}, models that saw no pair of the prompt prefer the rejected answer with a probability of at least 0.9"
