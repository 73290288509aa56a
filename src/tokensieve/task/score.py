"""How well predictions match the labels of documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import polars as pl

from tokensieve.arrays import Floats, Ints
from tokensieve.evidence.intervals import Share
from tokensieve.model.attention import decide, loss_and_slope


@dataclass(frozen=True)
class Score:
    """Predictions against labels.

    Attributes:
        classes: the K class names.
        accuracy: fraction of documents predicted correctly, with its interval.
        log_loss: mean of −log P(label), in nats; log K for equal probabilities.
        majority_accuracy: fraction of the largest class: the accuracy of always predicting it.
        confusion: documents by label (rows) and prediction (columns), shape (K, K).
        unlabelled: documents without a label, left out.
        unknown_labels: label → documents with a label that the model does not know, left out.
    """

    classes: tuple[str, ...]
    accuracy: Share
    log_loss: float
    majority_accuracy: float
    confusion: Ints
    unlabelled: int
    unknown_labels: dict[str, int]

    @classmethod
    def of(cls, f: Floats, labels: pl.Series, classes: Sequence[str]) -> Score | None:
        """Compare predictions with labels; None if the model knows none of the labels.

        Args:
            f: logits, shape (n, outputs); one output for two classes.
            labels: as text, null where a document has none.
            classes: those of the model, in its order.
        """
        number_of_class = dict(zip(classes, range(len(classes)), strict=True))
        number = labels.replace_strict(number_of_class, default=None, return_dtype=pl.Int64)
        is_unknown = number.is_null() & labels.is_not_null()
        unknown_labels = labels.filter(is_unknown).value_counts(sort=True)
        scored = np.flatnonzero(number.is_not_null().to_numpy())
        if not scored.size:
            return None
        true = number.drop_nulls().to_numpy().astype(np.int64)
        matrix = confusion_matrix(true, decide(f[scored]), len(classes))
        return cls(
            classes=tuple(classes),
            accuracy=Share.count(int(np.trace(matrix)), scored.size),
            log_loss=float(loss_and_slope(f[scored], true)[0].mean()),
            majority_accuracy=float(matrix.sum(axis=1).max() / scored.size),
            confusion=matrix,
            unlabelled=labels.null_count(),
            unknown_labels=dict(unknown_labels.iter_rows()),
        )

    def to_dict(self) -> dict[str, object]:
        """All of it, as JSON values."""
        return asdict(self) | {"classes": list(self.classes), "confusion": self.confusion.tolist()}


def confusion_matrix(labels: Ints, predicted: Ints, classes: int) -> Ints:
    """Documents by label (rows) and prediction (columns), shape (K, K)."""
    return np.bincount(labels * classes + predicted, minlength=classes**2).reshape(classes, classes)
