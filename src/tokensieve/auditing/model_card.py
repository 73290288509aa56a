"""How well labelled documents are predicted: accuracy, log loss, confusions, calibration, and
accuracy by length and by data."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tokensieve.arrays import Floats, Ints
from tokensieve.escape import IN_SENTENCE, for_display
from tokensieve.evidence.intervals import LEVEL, Share
from tokensieve.evidence.paired import PairedDifference
from tokensieve.model.attention import Model, decide, loss_and_slope, probabilities
from tokensieve.model.fit import refit
from tokensieve.model.settings import TrainSettings
from tokensieve.report.blocks import Block, Column, Section, Table, Text, ValueAndInterval
from tokensieve.task.score import confusion_matrix
from tokensieve.text.counts import Counts
from tokensieve.wording import percent, plain, signed

_STEP_COLUMNS = ("change", "change_low", "change_high", "p_value")
BINS = 10  # of calibration
LENGTH_GROUPS = 5
MAX_CLASSES = 12  # listed
MAX_CONFUSIONS = 10  # listed
MAX_COUNTS_FOR_CURVE = 1_500_000  # stored ones: about ten seconds for the three trainings


@dataclass(frozen=True)
class ModelCard:
    """The classifier on its test documents.

    Attributes:
        confusion: documents by class (rows) and prediction (columns), shape (K, K).
        precision: of each class, the fraction of its predictions that are correct.
        recall: of each class, the fraction of its documents that are predicted correctly.
        log_loss: mean of −log of the probability given to the label, in nats.
        base_log_loss: the same for predicting the class frequencies of the training documents.
        calibration: bins of the predicted class's probability (low, high): documents, its mean
            (confidence), accuracy with its 95 % interval (accuracy_low, accuracy_high); bins
            without documents are left out.
        calibration_error: mean distance of confidence and accuracy over these bins, weighted by
            documents.
        lengths: groups by tokens that the model knows (low to high): documents, accuracy with its
            95 % interval.
        curve: training documents, accuracy with its 95 % interval of models trained on a part of
            them; empty if not requested.
    """

    confusion: Ints
    precision: tuple[Share, ...]
    recall: tuple[Share, ...]
    log_loss: float
    base_log_loss: float
    calibration: pl.DataFrame
    calibration_error: float
    lengths: pl.DataFrame
    curve: pl.DataFrame

    @classmethod
    def of(
        cls, f: Floats, test: Counts, train_sizes: Ints, curve: pl.DataFrame | None = None
    ) -> ModelCard:
        """The card of a classifier from its decision values of the test documents, shape (n,) for
        two classes, else (n, K)."""
        n = test.n_documents
        p = probabilities(f)
        predicted = decide(f)
        is_right = predicted == test.labels
        matrix = confusion_matrix(test.labels, predicted, len(test.classes))
        confidence = p[np.arange(n), predicted]
        calibration = _calibration(confidence, is_right, len(test.classes))
        log_loss = base_log_loss = calibration_error = math.nan
        if n:
            prior = np.log(train_sizes / train_sizes.sum())
            log_loss = float(loss_and_slope(f.reshape(n, -1), test.labels)[0].mean())
            base_log_loss = float(-prior[test.labels].mean())
            calibration_error = _calibration_error(calibration)
        return cls(
            confusion=matrix,
            precision=_shares(matrix.diagonal(), matrix.sum(axis=0)),
            recall=_shares(matrix.diagonal(), matrix.sum(axis=1)),
            log_loss=log_loss,
            base_log_loss=base_log_loss,
            calibration=calibration,
            calibration_error=calibration_error,
            lengths=_groups_by_length(test.matrix.sum(axis=1), is_right),
            curve=_accuracies([], []) if curve is None else curve,
        )

    def to_dict(self) -> dict[str, object]:
        """All of it, as JSON values."""
        return {
            "confusion": self.confusion.tolist(),
            "precision": [asdict(share) for share in self.precision],
            "recall": [asdict(share) for share in self.recall],
            "log_loss": self.log_loss,
            "base_log_loss": self.base_log_loss,
            "calibration_error": self.calibration_error,
            "calibration": self.calibration.to_dicts(),
            "lengths": self.lengths.to_dicts(),
            "curve": self.curve.to_dicts(),
        }

    def blocks(self, names: tuple[str, ...]) -> list[Block]:
        """Precision and recall, confusions, calibration, length and learning curve, as blocks of a
        report."""
        if not self.confusion.sum():
            return []
        loss = f"Log loss {plain(self.log_loss, 3)}"
        base_loss = f"{plain(self.base_log_loss, 3)} from class frequencies alone"
        error = f"calibration error {percent(self.calibration_error)}"
        details: list[Block] = [
            self._confusions(names),
            Text(f"{loss} ({base_loss}); {error}."),
            *_accuracy_table(
                "Calibration: accuracy by predicted probability",
                Column("Predicted probability", "percent"),
                self.calibration,
                "confidence",
            ),
            *_accuracy_table(
                "Accuracy by length", Column("Known tokens, at least", "count"), self.lengths, "low"
            ),
            *_accuracy_table(
                "Accuracy by number of training documents",
                Column("Training documents", "count"),
                self.curve,
                "documents",
            ),
        ]
        if self.curve.height > 1:
            details.append(Text(_last_step(self.curve)))
        title = "Confusions, calibration, length, learning curve"
        return [self._by_class(names), Section(title, tuple(details), folded=True)]

    def _by_class(self, names: tuple[str, ...]) -> Table:
        """Recall and precision of the classes, lowest recall first."""

        def order(k: int) -> float:
            recall = self.recall[k]
            return recall.value if recall.of else 2.0  # classes without test documents come last

        rows = []
        for k in sorted(range(len(names)), key=order)[:MAX_CLASSES]:
            recall = self.recall[k]
            rows.append(
                (
                    for_display(names[k], IN_SENTENCE),
                    _rate(recall),
                    _rate(self.precision[k]),
                    recall.of,
                )
            )
        columns = (
            Column("Class", "text"),
            Column("Recall", "rate", bar=True),
            Column("Precision", "rate"),
            Column("Test documents", "count"),
        )
        return Table("By class, lowest recall first", columns, rows)

    def _confusions(self, names: tuple[str, ...]) -> Table:
        """The most frequent confusions of two classes."""
        n_of_confusion = {
            (label, predicted): int(self.confusion[label, predicted])
            for label, predicted in np.argwhere(self.confusion).tolist()
            if label != predicted
        }
        most_frequent = sorted(n_of_confusion, key=lambda pair: -n_of_confusion[pair])
        rows = []
        for pair in most_frequent[:MAX_CONFUSIONS]:
            label, predicted = (for_display(names[k], IN_SENTENCE) for k in pair)
            rows.append((label, predicted, n_of_confusion[pair]))
        columns = (
            Column("Label", "text"),
            Column("Predicted", "text"),
            Column("Test documents", "count"),
        )
        return Table("Most frequent confusions", columns, rows)


def _rate(share: Share) -> ValueAndInterval | None:
    """A fraction and its interval, for a column of rates; None without documents."""
    return ValueAndInterval(share.value, share.low, share.high) if share.of else None


def _accuracy_table(title: str, column: Column, frame: pl.DataFrame, key: str) -> list[Table]:
    """A table of accuracy by another column; none if it would be empty."""
    if frame.is_empty():
        return []
    rows = [
        (row[key], (row["accuracy"], row["accuracy_low"], row["accuracy_high"]))
        for row in frame.iter_rows(named=True)
    ]
    return [Table(title, (column, Column("Accuracy", "rate", bar=True)), rows)]


def _shares(hits: Ints, sizes: Ints) -> tuple[Share, ...]:
    return tuple(map(Share.count, hits.tolist(), sizes.tolist()))


def _calibration(confidence: Floats, is_right: NDArray[np.bool_], n_classes: int) -> pl.DataFrame:
    """Accuracy by the predicted class's probability; see `ModelCard.calibration`."""
    # equal bins between 1/K, below which no prediction's probability lies, and 1
    edges = np.linspace(1 / n_classes, 1, BINS + 1)
    bin_of_document = np.digitize(confidence, edges[1:-1])
    sizes = np.bincount(bin_of_document, minlength=BINS)
    n_right = np.bincount(bin_of_document, is_right, BINS)
    total_confidence = np.bincount(bin_of_document, confidence, BINS)
    mean_confidence = total_confidence / np.maximum(sizes, 1)
    bins = pl.DataFrame({"low": edges[:-1], "high": edges[1:], "confidence": mean_confidence})
    return bins.hstack(_accuracies(sizes, n_right)).filter(pl.col("documents") > 0)


def _calibration_error(calibration: pl.DataFrame) -> float:
    gap = (calibration["confidence"] - calibration["accuracy"]).abs()
    documents = calibration["documents"]
    return float((gap * documents).sum()) / int(documents.sum())


def learning_curve(
    train: Counts,
    test: Counts,
    model: Model,
    settings: TrainSettings,
    units: Ints | None = None,
) -> pl.DataFrame:
    """Test accuracy of models trained on an eighth, a quarter, half and all of the documents.

    Each makes as many passes as `model`, which was trained on all of them. `units` are the groups
    of the test documents. The columns change, change_low, change_high and p_value compare each
    model with the next smaller one, document by document. Empty where that would take long.
    """
    if train.matrix.nnz > MAX_COUNTS_FOR_CURVE:
        return _accuracies([], [])
    models = {train.n_documents: model} | _smaller_models(train, model, settings)
    sizes = sorted(models)
    is_right = [
        (decide(models[size].logits(test.matrix)) == test.labels).astype(np.float64)
        for size in sizes
    ]
    curve = _accuracies([test.n_documents] * len(sizes), [int(right.sum()) for right in is_right])
    return curve.with_columns(documents=pl.Series(sizes)).hstack(_steps(is_right, units))


def _smaller_models(train: Counts, model: Model, settings: TrainSettings) -> dict[int, Model]:
    """Number of documents → a model of a half, a quarter and an eighth, each within the former.

    Parts without a document of some class are left out.
    """
    order = np.random.default_rng(settings.seed).permutation(train.n_documents)
    models = {}
    for fraction in (1 / 2, 1 / 4, 1 / 8):
        chosen = np.sort(order[: round(fraction * train.n_documents)])
        part = train.rows(chosen)
        if len(np.unique(part.labels)) == len(train.classes):
            models[part.n_documents] = refit(part, model, train.n_documents, settings)
    return models


def _steps(is_right: Sequence[Floats], units: Ints | None) -> pl.DataFrame:
    """A table of what each model gains in accuracy over the next smaller one; missing for the
    smallest."""
    steps: list[dict[str, float | None]] = [dict.fromkeys(_STEP_COLUMNS)]
    for smaller, larger in itertools.pairwise(is_right):
        difference = PairedDifference.of(smaller, larger, units)
        steps.append(
            {
                "change": difference.change,
                "change_low": difference.low,
                "change_high": difference.high,
                "p_value": difference.p_value,
            }
        )
    return pl.DataFrame(steps, dict.fromkeys(_STEP_COLUMNS, pl.Float64))


def _last_step(curve: pl.DataFrame) -> str:
    """A sentence on the accuracy gained from the second half of the training documents."""
    step = curve.row(-1, named=True)
    smaller = curve["documents"][-2]
    change = signed(100 * step["change"], 1)
    low = signed(100 * step["change_low"], 1)
    high = signed(100 * step["change_high"], 1)
    sentence = (
        f"From {smaller:,} to {step['documents']:,} training documents, accuracy changes by "
        f"{change} points (95% CI {low} to {high}, on the same test documents)"
    )
    if step["p_value"] >= LEVEL:
        return f"{sentence}; the difference is within chance."
    return f"{sentence}."


def _accuracies(sizes: Iterable[int], hits: Iterable[float]) -> pl.DataFrame:
    """Documents, accuracy and its interval of each group."""
    shares = [Share.count(int(hit), int(size)) for size, hit in zip(sizes, hits, strict=True)]
    names = {
        "documents": pl.Int64,
        "accuracy": pl.Float64,
        "accuracy_low": pl.Float64,
        "accuracy_high": pl.Float64,
    }
    return pl.DataFrame(
        [(x.of, x.value, x.low, x.high) for x in shares], schema=names, orient="row"
    )


def _groups_by_length(tokens: Floats, right: NDArray[np.bool_]) -> pl.DataFrame:
    """Divide documents by their length into up to five groups of about equal size."""
    edges = np.zeros(0)
    if len(tokens):
        edges = np.unique(np.quantile(tokens, np.linspace(0, 1, LENGTH_GROUPS + 1)[1:-1]))
    n_groups = len(edges) + 1
    group_of_document = np.searchsorted(edges, tokens, side="left")
    rows = []
    for group in range(n_groups):
        lengths = tokens[group_of_document == group]
        rows.append((int(lengths.min()), int(lengths.max())) if len(lengths) else (0, 0))
    ends = pl.DataFrame(rows, schema=["low", "high"], orient="row")
    sizes = np.bincount(group_of_document, minlength=n_groups)
    accuracies = _accuracies(sizes, np.bincount(group_of_document, right, n_groups))
    return ends.hstack(accuracies).filter(pl.col("documents") > 0)
