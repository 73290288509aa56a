"""Counts → trained scores and values: the start, what held-out documents decide, and training on all documents."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from tokensieve.errors import InputError
from tokensieve.model.adam import Schedule, train
from tokensieve.model.attention import loss_and_slope
from tokensieve.model.choice import FEW, FOLDS, HELD_OUT, STRENGTHS, Choice, best_scale, choose, held_out_values
from tokensieve.model.start import initial_table, prior_of
from tokensieve.model.trained import Model
from tokensieve.progress import Progress, silent
from tokensieve.text.counts import Counts, Floats, Ints
from tokensieve.text.split import folds, split_units, stratified, unit_folds
from tokensieve.text.vocabulary import Vocabulary

LEAST_STEPS = 500
LEAST_PER_CLASS = (
    10  # of many documents, of which a share is held out once; of few a part of each class is in every fold
)


@dataclass(frozen=True)
class FitSettings:
    """How a table of scores and values is trained.

    Attributes:
        batch_size: documents per step.
        score_rate: initial step size of Adam for the scores u.
        value_rate: initial step size of Adam for the values w.
        max_epochs: longest training, in passes over the data (at least 500 steps are allowed on small data).
        validation_share: share of the documents on which the length of training is chosen; the model is then trained on all
            of them for that long. Of at most 2,000 documents each is held out once, in five parts, and the strength of the
            start is chosen, too. With fewer than 5 documents in a class (10 of many documents), or a share of 0, nothing is chosen.
        seed: of the held-out documents and of the order of documents.

    Raises:
        InputError: a value outside its range.
    """

    batch_size: int = 64
    score_rate: float = 0.01
    value_rate: float = 0.1
    max_epochs: int = 4
    validation_share: float = 0.1
    seed: int = 0

    def parameters(self) -> dict[str, Any]:
        """The same as parameters of `AttentionClassifier`."""
        return {("random_state" if name == "seed" else name): value for name, value in asdict(self).items()}

    def __post_init__(self) -> None:
        for name, least in (("batch_size", 1), ("max_epochs", 1), ("score_rate", 0), ("value_rate", 0)):
            if not getattr(self, name) >= least:
                raise InputError(f"{name} must be at least {least}, not {getattr(self, name)!r}")
        if not 0 <= self.validation_share < 1:
            raise InputError(f"validation_share must be at least 0 and below 1, not {self.validation_share!r}")


def fit(
    counts: Counts,
    settings: FitSettings | None = None,
    vocabulary: Vocabulary | None = None,
    progress: Progress | None = None,
    units: Ints | None = None,
) -> Model:
    """Learn scores and values; the same seed gives the same bits.

    Args:
        counts: n labelled documents over |S| types, of at least two classes. Their weights, if any, weigh the loss: of training,
            of the choice by held-out documents, and of the start. Only ratios matter; a document of weight 0 is left out.
        settings: `FitSettings()` if None.
        vocabulary: how text becomes these counts, for a model that reads texts.
        progress: called with (stage, share done).
        units: the unit of each document, where documents belong together: none is both learned from and held out, shape (n,).

    Raises:
        InputError: the weights leave no document of a class.
    """
    settings, tell = settings or FitSettings(), progress or silent
    if counts.weights is not None:
        counts, units = _weighed(counts, units)
    prior = prior_of(counts.weighed[1])
    steps = max(settings.max_epochs * math.ceil(counts.n_documents / settings.batch_size), LEAST_STEPS)
    schedule = Schedule(steps, settings.batch_size, settings.score_rate, settings.value_rate, settings.seed)
    choice = _choose(counts, prior, schedule, _held_out(counts, settings, units), tell)
    tell("training", 0.0)
    taken, u, w = next(train(counts, *first_table(counts, prior, choice.strength), schedule, choice.steps))
    return Model(
        np.asarray(counts.classes), u[:-1], prior + choice.scale * (w[:-1] - prior), prior, counts.tokens, vocabulary, taken,
        choice.validation, float(u[-1]), settings.parameters(),
    )  # fmt: skip


def _weighed(counts: Counts, units: Ints | None) -> tuple[Counts, Ints | None]:
    """The documents that weigh anything, and their units."""
    part, kept = counts.weighing()
    for name, before, after in zip(counts.classes, counts.class_sizes, part.class_sizes, strict=True):
        if before and not after:
            raise InputError(
                f"every document of class {name!r} has weight 0: give one a weight, or leave the class out"
            )
    return part, None if units is None else units[kept]


def _held_out(counts: Counts, settings: FitSettings, units: Ints | None) -> list[tuple[Ints, Ints]]:
    """Pairs of positions, those to learn from and those to choose on: of few documents each is held out once, of many a share."""
    n, labels, seed = counts.n_documents, counts.labels, settings.seed
    if settings.validation_share <= 0 or counts.class_sizes.min() < (FOLDS if n <= FEW else LEAST_PER_CLASS):
        return []
    if units is not None and len(np.unique(units)) < 2:
        return []
    if n <= FEW:
        return folds(labels, FOLDS, seed) if units is None else unit_folds(units, labels, FOLDS, seed)
    share = min(settings.validation_share, HELD_OUT / n)
    if units is None:
        return [stratified(labels, math.ceil(max(share, counts.n_classes / n) * n), seed)]
    chosen = split_units(units, labels, share, seed)
    return [(np.flatnonzero(~chosen), np.flatnonzero(chosen))]


def _choose(
    counts: Counts, prior: Floats, schedule: Schedule, parts: list[tuple[Ints, Ints]], tell: Progress
) -> Choice:
    """Of few documents by cross-validation, each of them held out once; of many on a share of them, and for the full strength
    alone."""
    if not parts:
        return Choice(schedule.steps)
    held = [(inside, counts.rows(outside)) for inside, outside in parts]
    labels = np.concatenate([part.labels for _, part in held])
    weights = None if counts.weights is None else np.concatenate([counts.weights[outside] for _, outside in parts])

    def judged(strength: float) -> Iterator[tuple[int, float, float]]:
        start = partial(first_table, counts, prior, strength)
        for steps, f in held_out_values(counts, start, schedule, held):
            scale = best_scale(f, prior, labels, weights)
            losses = loss_and_slope(prior + scale * (f - prior), labels)[0]
            yield steps, float(np.mean(losses) if weights is None else np.average(losses, weights=weights)), scale

    return choose(STRENGTHS if len(parts) > 1 else STRENGTHS[-1:], schedule.steps, judged, tell)


def middle(x: Floats, weights: Floats | None) -> float:
    """The median of numbers, each counted as often as it weighs: half of the weight lies on either side."""
    if weights is None:
        return float(np.median(x))
    order = np.argsort(x, kind="stable")
    below = np.cumsum(weights[order])
    ends = np.searchsorted(below, below[-1] / 2 * np.array([1 - 1e-12, 1 + 1e-12]))
    return float(x[order][ends].mean())


def first_table(counts: Counts, prior: Floats, strength: float, without: Counts | None = None) -> tuple[Floats, Floats]:
    """The table that training starts from, and in its last row the sink: as much as a document of median length that says
    nothing, and answered by the prior.

    Args:
        counts: the documents.
        prior: answer of the class frequencies, shape (H,).
        strength: of the start (`tokensieve.model.choice`).
        without: documents among them that do not count.
    """
    u, w = initial_table(counts, prior, without)
    sink = math.log(max(middle(counts.lengths, counts.weights), 1.0))
    return np.append(strength * u, sink), np.vstack([prior + strength * (w - prior), prior])
