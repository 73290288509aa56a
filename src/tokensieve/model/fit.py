"""Counts → trained scores and values: the start, what held-out documents decide, and training on all documents."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from tokensieve.errors import InputError
from tokensieve.model.adam import Schedule, train
from tokensieve.model.attention import loss_and_slope
from tokensieve.model.choice import FEW, FOLDS, HELD_OUT, STRENGTHS, Choice, Table, best_scale, choose, held_out_values
from tokensieve.model.settings import TrainSettings
from tokensieve.model.start import initial_table, prior_of
from tokensieve.model.trained import Model
from tokensieve.progress import Progress, silent
from tokensieve.text.counts import Counts, Floats, Ints
from tokensieve.text.split import folds, split_units, stratified, unit_folds
from tokensieve.text.vocabulary import Vocabulary

LEAST_STEPS = 500
FASTER = 2.0  # step size of the values of pairs, as f of a difference has twice the range; chosen on held-out prompts
LEAST_PER_CLASS = (
    10  # of many documents, of which a share is held out once; of few a part of each class is in every fold
)


def fit(
    counts: Counts,
    settings: TrainSettings | None = None,
    vocabulary: Vocabulary | None = None,
    progress: Progress | None = None,
    units: Ints | None = None,
) -> Model:
    """Learn scores and values; the same seed gives the same bits.

    Args:
        counts: n labelled documents over |S| types, of at least two classes. Their weights, if any, weigh the loss: of training,
            of the choice by held-out documents, and of the start. Only ratios matter; a document of weight 0 is left out.
        settings: `TrainSettings()` if None.
        vocabulary: how text becomes these counts, for a model that reads texts.
        progress: called with (stage, share done).
        units: the unit of each document, where documents belong together: none is both learned from and held out, shape (n,).

    Raises:
        InputError: the weights leave no document of a class.
    """
    settings, tell = settings or TrainSettings(), progress or silent
    if counts.weights is not None:
        counts, units = _weighed(counts, units)
    prior = prior_of(counts.weighed[1])
    schedule = schedule_of(counts.n_documents, settings)
    choice = _choose(counts, prior, schedule, _held_out(counts, settings, units), tell)
    tell("training", 0.0)
    u, w = choice.table or next(train(counts, *first_table(counts, prior, choice.strength), schedule, choice.steps))[1:]
    return Model(
        np.asarray(counts.classes), u[:-1], prior + choice.scale * (w[:-1] - prior), prior, counts.tokens, vocabulary, choice.steps,
        choice.validation, float(u[-1]), settings.parameters(),
    )  # fmt: skip


def refit(counts: Counts, model: Model, of: int, settings: TrainSettings) -> Model:
    """Scores and values learned from `counts`, in as many passes over them as `model` took over its documents.

    Args:
        counts: documents over any token types, of the same classes.
        model: whose length of training is taken over, so that none has to be chosen again.
        of: documents that it was trained on.
        settings: with which it was.
    """
    if counts.weights is not None:
        counts = counts.weighing()[0]
    prior = prior_of(counts.weighed[1])
    schedule = schedule_of(counts.n_documents, settings)
    stop = length_of(counts.n_documents, schedule, model, of)
    taken, u, w = next(train(counts, *first_table(counts, prior, 1.0), schedule, stop))
    return with_table(model, counts, taken, u, w, prior)


def schedule_of(documents: int, settings: TrainSettings, pairs: bool = False) -> Schedule:
    """How a table is trained on so many documents; of pairs the values take larger steps (`tokensieve.model.pairs`)."""
    steps = max(settings.max_epochs * math.ceil(documents / settings.batch_size), LEAST_STEPS)
    value_rate = settings.value_rate * (FASTER if pairs else 1)
    return Schedule(steps, settings.batch_size, settings.score_rate, value_rate, settings.seed, pairs)


def length_of(documents: int, schedule: Schedule, model: Model, of: int) -> int:
    """The step at which a training on so many documents has taken as many passes as that of `model` on `of` of them."""
    return min(schedule.steps, max(1, round(model.steps * (documents / of if model.steps > LEAST_STEPS else 1))))


def with_table(model: Model, counts: Counts, taken: int, u: Floats, w: Floats, prior: Floats) -> Model:
    """The model with other numbers, the sink's in the last place, for other token types."""
    return replace(
        model,
        scores=u[:-1],
        values=w[:-1],
        sink=float(u[-1]),
        prior=prior,
        tokens=counts.tokens,
        vocabulary=None,
        steps=taken,
    )


def _weighed(counts: Counts, units: Ints | None) -> tuple[Counts, Ints | None]:
    """The documents that weigh anything, and their units."""
    part, kept = counts.weighing()
    for name, before, after in zip(counts.classes, counts.class_sizes, part.class_sizes, strict=True):
        if before and not after:
            raise InputError(
                f"every document of class {name!r} has weight 0: give one a weight, or leave the class out"
            )
    return part, None if units is None else units[kept]


def _held_out(counts: Counts, settings: TrainSettings, units: Ints | None) -> list[tuple[Ints, Ints]]:
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

    def judged(strength: float) -> Iterator[tuple[int, float, float, Table | None]]:
        start = partial(first_table, counts, prior, strength)
        for steps, f, table in held_out_values(counts, start, schedule, held):
            scale = best_scale(f, prior, labels, weights)
            losses = loss_and_slope(prior + scale * (f - prior), labels)[0]
            yield (
                steps,
                float(np.mean(losses) if weights is None else np.average(losses, weights=weights)),
                scale,
                table,
            )

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
