"""How well labelled documents are answered: accuracy, log loss, and who is taken for whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from tokensieve.evidence.shares import Share
from tokensieve.model.attention import loss_and_slope
from tokensieve.model.decision import decide
from tokensieve.text.counts import Floats, Ints


@dataclass(frozen=True)
class Score:
    """Answers against labels.

    Attributes:
        classes: the K class names.
        accuracy: share of documents answered right, with its interval.
        log_loss: mean of −log P(label), in nats; log K is what equal chances give.
        majority: share of the largest class: what always naming it would give.
        confusion: documents by label (rows) and answer (columns), shape (K, K).
        unlabelled: documents without a label, left out.
        unknown: label → documents with a label that the model does not know, left out.
    """

    classes: tuple[str, ...]
    accuracy: Share
    log_loss: float
    majority: float
    confusion: Ints
    unlabelled: int
    unknown: dict[str, int]

    def to_dict(self) -> dict[str, Any]:
        """All of it, as JSON values."""
        return {
            "classes": list(self.classes),
            "accuracy": self.accuracy.to_dict(),
            "log_loss": self.log_loss,
            "majority_accuracy": self.majority,
            "confusion": self.confusion.tolist(),
            "unlabelled": self.unlabelled,
            "unknown_labels": self.unknown,
        }


def score(f: Floats, labels: pl.Series, classes: Sequence[str]) -> Score | None:
    """Score decision values; None where no document has a label of the model's.

        log loss = −(1/n) Σ_X log P(label of X | X)

    Args:
        f: decision values, shape (n, H).
        labels: the label of each document as text, null where it has none.
        classes: the K class names, in the model's order.
    """
    place = {name: k for k, name in enumerate(classes)}
    index = np.array([-2 if name is None else place.get(name, -1) for name in labels], dtype=np.int64)
    strange = labels.filter(pl.Series(index == -1)).value_counts(sort=True)
    known = np.flatnonzero(index >= 0)
    if not known.size:
        return None
    true, found, k = index[known], decide(f[known]), len(classes)
    matrix = confusion(true, found, k)
    return Score(
        tuple(classes),
        Share.count(int(np.trace(matrix)), known.size),
        float(loss_and_slope(f[known], true)[0].mean()),
        float(matrix.sum(axis=1).max() / known.size),
        matrix,
        int((index == -2).sum()),
        dict(strange.iter_rows()),
    )


def confusion(labels: Ints, answers: Ints, classes: int) -> Ints:
    """Documents by label (rows) and answer (columns), shape (K, K)."""
    return np.bincount(labels * classes + answers, minlength=classes**2).reshape(classes, classes)
