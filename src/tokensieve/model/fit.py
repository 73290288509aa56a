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
LEAST_PER_CLASS = 10


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
            start is chosen, too. With fewer than 10 documents in a class, or a share of 0, nothing is chosen.
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
        counts: n labelled documents over |S| types, of at least two classes.
        settings: `FitSettings()` if None.
        vocabulary: how text becomes these counts, for a model that reads texts.
        progress: called with (stage, share done).
        units: the unit of each document, where documents belong together: none is both learned from and held out, shape (n,).
    """
    settings, tell = settings or FitSettings(), progress or silent
    prior = prior_of(counts.class_sizes)
    steps = max(settings.max_epochs * math.ceil(counts.n_documents / settings.batch_size), LEAST_STEPS)
    schedule = Schedule(steps, settings.batch_size, settings.score_rate, settings.value_rate, settings.seed)
    choice = _choose(counts, prior, schedule, _held_out(counts, settings, units), tell)
    tell("training", 0.0)
    taken, u, w = next(train(counts, *_first(counts, prior, choice.strength), schedule, choice.steps))
    return Model(
        np.asarray(counts.classes), u[:-1], prior + choice.scale * (w[:-1] - prior), prior, counts.tokens, vocabulary, taken,
        choice.validation, float(u[-1]), settings.parameters(),
    )  # fmt: skip


def _held_out(counts: Counts, settings: FitSettings, units: Ints | None) -> list[tuple[Ints, Ints]]:
    """Pairs of positions, those to learn from and those to choose on: of few documents each is held out once, of many a share."""
    n, labels, seed = counts.n_documents, counts.labels, settings.seed
    if settings.validation_share <= 0 or counts.class_sizes.min() < LEAST_PER_CLASS:
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

    def judged(strength: float) -> Iterator[tuple[int, float, float]]:
        start = partial(_first, counts, prior, strength)
        for steps, f in held_out_values(counts, start, schedule, held):
            scale = best_scale(f, prior, labels)
            yield steps, float(np.mean(loss_and_slope(prior + scale * (f - prior), labels)[0])), scale

    return choose(STRENGTHS if len(parts) > 1 else STRENGTHS[-1:], schedule.steps, judged, tell)


def _first(counts: Counts, prior: Floats, strength: float, without: Counts | None = None) -> tuple[Floats, Floats]:
    """The table that training starts from, and in its last row the sink: as much as a document of median length that says
    nothing, and answered by the prior."""
    u, w = initial_table(counts, prior, without)
    sink = math.log(max(float(np.median(counts.lengths)), 1.0))
    return np.append(strength * u, sink), np.vstack([prior + strength * (w - prior), prior])
