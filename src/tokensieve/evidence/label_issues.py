"""Documents that may carry the wrong label, from predictions of models that never saw them.

Confident learning (Northcutt, Jiang, Chuang 2021, section 3.1: the off-diagonal of the confident
joint). With out-of-fold probabilities p_i(k) and labels y_i, the threshold of class k is the mean
of p_i(k) over the documents labelled k. A document is an issue if some other class reaches its
threshold, the largest such class being what it looks like. Issues are ranked by their margin,
p_i(looks like) − p_i(y_i). Labels of a class that the models cannot predict are not judged.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tokensieve.arrays import Floats, Ints
from tokensieve.evidence.intervals import Share

# else "most of this class is wrong" would say more of the models than of the labels
MIN_RECALL = 0.5


@dataclass(frozen=True, eq=False)
class LabelIssues:
    """Documents that may have the wrong label, clearest first.

    Attributes:
        documents: their places, shape (m,).
        looks_like: the class that each looks like, shape (m,).
        margin: how much more probable that class is than the label, shape (m,).
    """

    documents: Ints
    looks_like: Ints
    margin: Floats

    @classmethod
    def none(cls) -> LabelIssues:
        """No document."""
        places = np.zeros(0, dtype=np.int64)
        return cls(places, places, np.zeros(0))

    def where(self, mask: NDArray[np.bool_]) -> LabelIssues:
        """The issues for which a mask, shape (m,), is true."""
        return LabelIssues(self.documents[mask], self.looks_like[mask], self.margin[mask])


@dataclass(frozen=True, eq=False)
class OwnProbabilities:
    """How probable its documents find each class, summed; `a + b` are the sums of both sets.

    Attributes:
        total: Σ p_i(k) over the documents labelled k, shape (K,).
        documents: the number of these, shape (K,).
        predicted: how many of these have class k as the most probable one, shape (K,).
        predicted_elsewhere: the same of all other documents, shape (K,).
    """

    total: Floats
    documents: Floats
    predicted: Floats
    predicted_elsewhere: Floats

    @classmethod
    def of(cls, p: Floats, labels: Ints) -> OwnProbabilities:
        """Add up the probabilities of documents' own labels, given out-of-fold probabilities, shape
        (n, K)."""
        n_classes = p.shape[1]
        own_probability = p[np.arange(len(p)), labels]
        total = [own_probability[labels == k].sum() for k in range(n_classes)]
        most_probable = p.argmax(axis=1)
        is_right = most_probable == labels
        predicted = np.bincount(labels[is_right], minlength=n_classes)
        everywhere = np.bincount(most_probable, minlength=n_classes)
        return cls(
            total=np.array(total),
            documents=np.bincount(labels, minlength=n_classes).astype(float),
            predicted=predicted.astype(float),
            predicted_elsewhere=(everywhere - predicted).astype(float),
        )

    def __add__(self, other: OwnProbabilities) -> OwnProbabilities:
        return OwnProbabilities(
            self.total + other.total,
            self.documents + other.documents,
            self.predicted + other.predicted,
            self.predicted_elsewhere + other.predicted_elsewhere,
        )

    @property
    def is_learned(self) -> NDArray[np.bool_]:
        """Whether the models tell each class from the others, shape (K,).

        Of a class that they predict no more often among its own documents than among others, or for
        less than half of its documents, they cannot say which labels are wrong.
        """
        n_documents = self.documents.sum()
        learned = []
        for k, size in enumerate(self.documents):
            recall = Share.count(int(self.predicted[k]), int(size))
            n_others = max(n_documents - size, 1.0)
            is_more_than_chance = recall.low > self.predicted_elsewhere[k] / n_others
            learned.append(is_more_than_chance and recall.value >= MIN_RECALL)
        return np.array(learned, dtype=np.bool_)

    @property
    def thresholds(self) -> Floats:
        """The mean of each class; infinite for a class without documents, which none can look
        like."""
        means: Floats = np.full(len(self.total), np.inf)
        has_documents = self.documents > 0
        np.divide(self.total, self.documents, out=means, where=has_documents)
        return means


def find_label_issues(
    p: Floats, labels: Ints, sums: OwnProbabilities | None = None, item_size: int = 1
) -> LabelIssues:
    """The issues among documents.

    Args:
        p: out-of-fold probabilities, shape (n, K).
        labels: shape (n,).
        sums: over all documents, if these are only some of them.
        item_size: documents of an item (two of a pair), of which the first stands for it.
    """
    n_documents, n_classes = p.shape
    sums = OwnProbabilities.of(p, labels) if sums is None else sums
    is_other = np.arange(n_classes) != labels[:, None]
    candidates = np.where((p >= sums.thresholds) & is_other, p, -1.0)
    looks_like = candidates.argmax(axis=1)
    largest = candidates.max(axis=1)
    margin = largest - p[np.arange(n_documents), labels]

    is_first_of_item = np.arange(n_documents) % item_size == 0
    is_judged = sums.is_learned[labels] & is_first_of_item
    issues = np.flatnonzero((largest >= 0) & (margin > 0) & is_judged)
    order = issues[np.argsort(-margin[issues], kind="stable")]
    return LabelIssues(order, looks_like[order], margin[order])
