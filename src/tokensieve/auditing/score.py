"""How well labelled documents are answered: accuracy, log loss, and who is taken for whom."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from tokensieve.blocks import Block, Column, Format, Section, Table, Text
from tokensieve.escape import shown
from tokensieve.evidence.shares import Share
from tokensieve.model.attention import Model, decide, loss_and_slope, probabilities
from tokensieve.model.fit import refit
from tokensieve.model.settings import TrainSettings
from tokensieve.text.counts import Counts, Floats, Ints
from tokensieve.wording import percent, plain


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


BINS = 10
LENGTHS = 5  # groups of documents of about equal size
CURVE = (1 / 8, 1 / 4, 1 / 2)  # of the training documents; all of them is the model itself
CHEAP = 1_500_000  # stored counts: about ten seconds for the three trainings


@dataclass(frozen=True)
class ModelCard:
    """The classifier on its test documents.

    Attributes:
        confusion: documents by class (rows) and answer (columns), shape (K, K).
        precision: of each class, the share of its answers that are right.
        recall: of each class, the share of its documents that are answered right.
        log_loss: mean of −log of the probability given to the right class, in nats.
        base_log_loss: the same of the class frequencies of the training documents.
        calibration: bins of the answered class's probability (low, high): documents, its mean (confidence), accuracy with its
            95 % interval (accuracy_low, accuracy_high); bins without documents are left out.
        calibration_error: mean distance of confidence and accuracy over these bins, weighted by documents.
        lengths: groups by tokens that the model knows (low to high): documents, accuracy with its 95 % interval.
        curve: training documents, accuracy with its 95 % interval of models trained on a part of them; empty where not asked for.
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

    def to_dict(self) -> dict[str, Any]:
        """All of it, as JSON values."""
        frames = {name: getattr(self, name).to_dicts() for name in ("calibration", "lengths", "curve")}
        shares = {name: [asdict(share) for share in getattr(self, name)] for name in ("precision", "recall")}
        losses = {name: getattr(self, name) for name in ("log_loss", "base_log_loss", "calibration_error")}
        return {"confusion": self.confusion.tolist()} | shares | losses | frames


def model_card(f: Floats, test: Counts, train_sizes: Ints, curve: pl.DataFrame | None = None) -> ModelCard:
    """The card of a classifier from its answers.

    Args:
        f: decision values of the test documents, shape (n,) for two classes, (n, K) otherwise.
        test: these documents.
        train_sizes: training documents of each class, shape (K,).
        curve: `learning_curve`, where wanted.
    """
    k, n = len(test.classes), test.n_documents
    p, answers = probabilities(f), decide(f)
    right = answers == test.labels
    matrix = confusion(test.labels, answers, k)
    hits = matrix.diagonal()
    shares = [
        tuple(Share.count(int(a), int(b)) for a, b in zip(hits, matrix.sum(axis), strict=True)) for axis in (0, 1)
    ]
    prior = np.log(train_sizes / train_sizes.sum())
    loss = float(loss_and_slope(f.reshape(n, -1), test.labels)[0].mean()) if n else math.nan
    base = float(-prior[test.labels].mean()) if n else math.nan
    calibration = _calibration(p[np.arange(n), answers], right, k)
    gap = (calibration["confidence"] - calibration["accuracy"]).abs() * calibration["documents"]
    return ModelCard(
        confusion=matrix,
        precision=shares[0],
        recall=shares[1],
        log_loss=loss,
        base_log_loss=base,
        calibration=calibration,
        calibration_error=float(gap.sum()) / n if n else math.nan,
        lengths=_lengths(test.matrix.sum(axis=1), right),
        curve=_curve_frame([]) if curve is None else curve,
    )


def learning_curve(
    train: Counts, test: Counts, model: Model, settings: TrainSettings, always: bool = False
) -> pl.DataFrame:
    """Test accuracy of models trained on an eighth, a quarter, half and all of the training documents, as many passes each.

    Args:
        train, test: counts of the same types.
        model: trained on all of `train`.
        settings: with which it was.
        always: also where it takes long; otherwise the curve of large data is empty.
    """
    if not always and train.matrix.nnz > CHEAP:
        return _curve_frame([])
    order, rows = np.random.default_rng(settings.seed).permutation(train.n_documents), []
    for share in CURVE:
        some = np.sort(order[: round(share * train.n_documents)])
        part = train.rows(some)
        if len(np.unique(part.labels)) < len(train.classes):
            continue
        smaller = refit(part, model, train.n_documents, settings)
        rows.append((len(some), np.count_nonzero(decide(smaller.decide(test.matrix)) == test.labels)))
    rows.append((train.n_documents, np.count_nonzero(decide(model.decide(test.matrix)) == test.labels)))
    return _curve_frame([(size, Share.count(int(hits), test.n_documents)) for size, hits in rows])


def _curve_frame(rows: list[tuple[int, Share]]) -> pl.DataFrame:
    return pl.DataFrame(
        [(size, share.value, share.low, share.high) for size, share in rows],
        schema={"documents": pl.Int64, "accuracy": pl.Float64, "accuracy_low": pl.Float64, "accuracy_high": pl.Float64},
        orient="row",
    )


def _grouped(which: Ints, groups: int, right: Ints) -> list[dict[str, float]]:
    """Documents, accuracy and its interval of each group."""
    sizes, hits = np.bincount(which, minlength=groups), np.bincount(which, right, groups)
    out = []
    for size, hit in zip(sizes.tolist(), hits.tolist(), strict=True):
        share = Share.count(int(hit), size)
        row = {"accuracy": share.value, "accuracy_low": share.low, "accuracy_high": share.high}
        out.append({"documents": size} | row)
    return out


def _calibration(confidence: Floats, right: Ints, classes: int) -> pl.DataFrame:
    """Ten equal bins between 1/K, below which no answer's probability lies, and 1."""
    edges = np.linspace(1 / classes, 1, BINS + 1)
    which = np.digitize(confidence, edges[1:-1])
    sums = np.bincount(which, confidence, BINS)
    rows = [
        {"low": edges[i], "high": edges[i + 1], "confidence": sums[i] / max(row["documents"], 1)} | row
        for i, row in enumerate(_grouped(which, BINS, right))
    ]
    return pl.DataFrame(rows).filter(pl.col("documents") > 0)


def _lengths(tokens: Floats, right: Ints) -> pl.DataFrame:
    """Groups of documents by their length, of about equal size."""
    edges = np.unique(np.quantile(tokens, np.linspace(0, 1, LENGTHS + 1)[1:-1])) if len(tokens) else np.zeros(0)
    which = np.searchsorted(edges, tokens, side="left")
    rows = _grouped(which, len(edges) + 1, right)
    ends = [
        (tokens[which == i].min(), tokens[which == i].max()) if row["documents"] else (0, 0)
        for i, row in enumerate(rows)
    ]
    frame = [{"low": int(low), "high": int(high)} | row for (low, high), row in zip(ends, rows, strict=True)]
    return pl.DataFrame(frame).filter(pl.col("documents") > 0)


def card_blocks(card: ModelCard, names: tuple[str, ...]) -> list[Block]:
    """Precision and recall, confusion, calibration, length and learning curve."""
    if not card.confusion.sum():
        return []
    order = sorted(range(len(names)), key=lambda k: card.recall[k].value if card.recall[k].of else 2.0)[:12]
    rate = [Column(name, "rate", bar=name == "Recall") for name in ("Recall", "Precision")]
    cells = [
        (
            shown(names[k], 40),
            *((s.value, s.low, s.high) if s.of else None for s in (card.recall[k], card.precision[k])),
            card.recall[k].of,
        )
        for k in order
    ]
    out: list[Block] = [
        Table(
            "By class, lowest recall first", (Column("Class", "text"), *rate, Column("Test documents", "count")), cells
        )
    ]
    wrong = [
        (int(card.confusion[i, j]), names[i], names[j])
        for i in range(len(names))
        for j in range(len(names))
        if i != j and card.confusion[i, j]
    ]
    most = sorted(wrong, key=lambda row: -row[0])[:10]
    columns = (Column("Label", "text"), Column("Predicted", "text"), Column("Test documents", "count"))
    details: list[Block] = [
        Table("Most frequent confusions", columns, [(shown(a, 40), shown(b, 40), n) for n, a, b in most])
    ]
    loss = f"Log loss {plain(card.log_loss, 3)} ({plain(card.base_log_loss, 3)} from class frequencies alone); "
    details.append(Text(f"{loss}calibration error {percent(card.calibration_error)}."))
    for title, name, frame, key in (
        ("Calibration: accuracy by predicted probability", "Predicted probability", card.calibration, "confidence"),
        ("Accuracy by length", "Known tokens", card.lengths, "low"),
        ("Accuracy by number of training documents", "Training documents", card.curve, "documents"),
    ):
        if frame.height:
            rows = [
                (row[key], (row["accuracy"], row["accuracy_low"], row["accuracy_high"]))
                for row in frame.iter_rows(named=True)
            ]
            kind: Format = "percent" if key == "confidence" else "count"
            head = f"{name} from" if key == "low" else name
            details.append(Table(title, (Column(head, kind), Column("Accuracy", "rate", bar=True)), rows))
    return [*out, Section("Confusions, calibration, length, learning curve", tuple(details), folded=True)]
