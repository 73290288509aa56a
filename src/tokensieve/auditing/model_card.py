"""How well labelled documents are predicted: accuracy, log loss, confusions, calibration, and
accuracy by length and by data."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass

import numpy as np
import polars as pl

from tokensieve.arrays import Floats, Ints
from tokensieve.escape import for_display
from tokensieve.evidence.intervals import LEVEL, Share
from tokensieve.evidence.paired import PairedDifference
from tokensieve.model.attention import Model, decide, loss_and_slope, probabilities
from tokensieve.model.fit import refit
from tokensieve.model.settings import TrainSettings
from tokensieve.report.blocks import Block, Column, Format, Section, Table, Text
from tokensieve.task.score import confusion_matrix
from tokensieve.text.counts import Counts
from tokensieve.wording import percent, plain, signed

_STEP_COLUMNS = ("change", "change_low", "change_high", "p_value")
BINS = 10  # of calibration
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
        k, n = len(test.classes), test.n_documents
        p, predicted = probabilities(f), decide(f)
        right = predicted == test.labels
        matrix = confusion_matrix(test.labels, predicted, k)
        hits, sums = matrix.diagonal().tolist(), [matrix.sum(axis).tolist() for axis in (0, 1)]
        precision, recall = (tuple(map(Share.count, hits, of)) for of in sums)
        prior = np.log(train_sizes / train_sizes.sum())
        # ten equal bins between 1/K, below which no prediction's probability lies, and 1
        edges = np.linspace(1 / k, 1, BINS + 1)
        confidence = p[np.arange(n), predicted]
        which = np.digitize(confidence, edges[1:-1])
        bins = _accuracies(np.bincount(which, minlength=BINS), np.bincount(which, right, BINS))
        mean = np.bincount(which, confidence, BINS) / np.maximum(bins["documents"].to_numpy(), 1)
        ends = pl.DataFrame({"low": edges[:-1], "high": edges[1:], "confidence": mean})
        calibration = ends.hstack(bins).filter(pl.col("documents") > 0)
        gap = (calibration["confidence"] - calibration["accuracy"]).abs() * calibration["documents"]
        return cls(
            confusion=matrix,
            precision=precision,
            recall=recall,
            log_loss=float(loss_and_slope(f.reshape(n, -1), test.labels)[0].mean())
            if n
            else math.nan,
            base_log_loss=float(-prior[test.labels].mean()) if n else math.nan,
            calibration=calibration,
            calibration_error=float(gap.sum()) / n if n else math.nan,
            lengths=_groups_by_length(test.matrix.sum(axis=1), right),
            curve=_accuracies([], []) if curve is None else curve,
        )

    def to_dict(self) -> dict[str, object]:
        """All of it, as JSON values."""
        frames = {
            name: getattr(self, name).to_dicts() for name in ("calibration", "lengths", "curve")
        }
        shares = {
            name: [asdict(share) for share in getattr(self, name)]
            for name in ("precision", "recall")
        }
        losses = {
            name: getattr(self, name) for name in ("log_loss", "base_log_loss", "calibration_error")
        }
        return {"confusion": self.confusion.tolist()} | shares | losses | frames

    def blocks(self, names: tuple[str, ...]) -> list[Block]:
        """Precision and recall, confusions, calibration, length and learning curve, as blocks of a
        report."""
        if not self.confusion.sum():
            return []
        order = sorted(
            range(len(names)), key=lambda k: self.recall[k].value if self.recall[k].of else 2.0
        )[:12]
        columns: tuple[Column, ...] = (Column("Class", "text"), Column("Recall", "rate", bar=True))
        columns += (Column("Precision", "rate"), Column("Test documents", "count"))
        cells = []
        for k in order:
            both = [
                (s.value, s.low, s.high) if s.of else None
                for s in (self.recall[k], self.precision[k])
            ]
            cells.append((for_display(names[k], 40), *both, self.recall[k].of))
        out: list[Block] = [Table("By class, lowest recall first", columns, cells)]
        wrong = [
            (int(self.confusion[i, j]), i, j)
            for i, j in np.argwhere(self.confusion).tolist()
            if i != j
        ]
        most = sorted(wrong, key=lambda row: -row[0])[:10]
        columns = (
            Column("Label", "text"),
            Column("Predicted", "text"),
            Column("Test documents", "count"),
        )
        rows = [(for_display(names[i], 40), for_display(names[j], 40), n) for n, i, j in most]
        loss = (
            f"Log loss {plain(self.log_loss, 3)} ({plain(self.base_log_loss, 3)} from class "
            "frequencies alone)"
        )
        details: list[Block] = [
            Table("Most frequent confusions", columns, rows),
            Text(f"{loss}; calibration error {percent(self.calibration_error)}."),
        ]
        tables: tuple[tuple[str, str, Format, pl.DataFrame, str], ...] = (
            (
                "predicted probability",
                "Predicted probability",
                "percent",
                self.calibration,
                "confidence",
            ),
            ("length", "Known tokens, at least", "count", self.lengths, "low"),
            (
                "number of training documents",
                "Training documents",
                "count",
                self.curve,
                "documents",
            ),
        )
        for by, name, kind, frame, key in tables:
            columns = (Column(name, kind), Column("Accuracy", "rate", bar=True))
            ends = ("accuracy", "accuracy_low", "accuracy_high")
            points = [(row[key], tuple(map(row.get, ends))) for row in frame.iter_rows(named=True)]
            title = "Calibration: accuracy by" if key == "confidence" else "Accuracy by"
            details += [Table(f"{title} {by}", columns, points)] if points else []
        if self.curve.height > 1:
            details.append(Text(_last_step(self.curve)))
        return [
            *out,
            Section("Confusions, calibration, length, learning curve", tuple(details), folded=True),
        ]


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
    order = np.random.default_rng(settings.seed).permutation(train.n_documents)
    models = {train.n_documents: model}
    for fraction in (1 / 2, 1 / 4, 1 / 8):
        chosen = np.sort(order[: round(fraction * train.n_documents)])
        part = train.rows(chosen)
        has_every_class = len(np.unique(part.labels)) == len(train.classes)
        if has_every_class:
            models[part.n_documents] = refit(part, model, train.n_documents, settings)
    sizes = sorted(models)
    is_right = [
        (decide(models[size].logits(test.matrix)) == test.labels).astype(np.float64)
        for size in sizes
    ]
    curve = _accuracies([test.n_documents] * len(sizes), [int(right.sum()) for right in is_right])
    steps: list[dict[str, float | None]] = [dict.fromkeys(_STEP_COLUMNS)]
    for smaller, larger in itertools.pairwise(is_right):
        step = PairedDifference.of(smaller, larger, units)
        steps.append(
            {
                "change": step.change,
                "change_low": step.low,
                "change_high": step.high,
                "p_value": step.p_value,
            }
        )
    schema = dict.fromkeys(_STEP_COLUMNS, pl.Float64)
    return curve.with_columns(documents=pl.Series(sizes)).hstack(pl.DataFrame(steps, schema))


def _last_step(curve: pl.DataFrame) -> str:
    """What the second half of the training documents adds."""
    step = curve.row(-1, named=True)
    smaller = curve["documents"][-2]
    change = signed(100 * step["change"], 1)
    low, high = signed(100 * step["change_low"], 1), signed(100 * step["change_high"], 1)
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


def _groups_by_length(tokens: Floats, right: Ints) -> pl.DataFrame:
    """Up to five groups of documents by their length, of about equal size."""
    edges = (
        np.unique(np.quantile(tokens, np.linspace(0, 1, 6)[1:-1])) if len(tokens) else np.zeros(0)
    )
    which, n = np.searchsorted(edges, tokens, side="left"), len(edges) + 1
    groups = [tokens[which == i] for i in range(n)]
    ends = {
        name: [int(end(x)) if len(x) else 0 for x in groups]
        for name, end in (("low", np.min), ("high", np.max))
    }
    accuracies = _accuracies(np.bincount(which, minlength=n), np.bincount(which, right, n))
    return pl.DataFrame(ends).hstack(accuracies).filter(pl.col("documents") > 0)
