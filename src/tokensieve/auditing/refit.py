"""The same model again, on other documents or other token types: as long a training as was chosen for the first."""

from __future__ import annotations

import math
from dataclasses import replace

from tokensieve.model.adam import Schedule, train
from tokensieve.model.fit import LEAST_STEPS, FitSettings, first_table
from tokensieve.model.pairs import FASTER, first_pairs
from tokensieve.model.start import prior_of
from tokensieve.model.trained import Model
from tokensieve.text.counts import Counts, Floats


def refit(counts: Counts, model: Model, of: int, settings: FitSettings) -> Model:
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
    steps, stop = _length(counts.n_documents, model, of, settings)
    schedule = Schedule(steps, settings.batch_size, settings.score_rate, settings.value_rate, settings.seed)
    taken, u, w = next(train(counts, *first_table(counts, prior, 1.0), schedule, stop))
    return _like(model, counts, taken, u, w, prior)


def refit_pairs(counts: Counts, model: Model, of: int, settings: FitSettings) -> Model:
    """The same of pairs.

    Args:
        counts: 2n documents over any token types.
        model: of pairs, whose length of training is taken over.
        of: documents that it was trained on.
        settings: with which it was.
    """
    steps, stop = _length(counts.n_documents, model, of, settings)
    rates = settings.score_rate, FASTER * settings.value_rate
    schedule = Schedule(steps, settings.batch_size, *rates, settings.seed, pairs=True)
    taken, u, w = next(train(counts, *first_pairs(counts, 1.0), schedule, stop))
    return _like(model, counts, taken, u, w, model.prior)


def _like(model: Model, counts: Counts, taken: int, u: Floats, w: Floats, prior: Floats) -> Model:
    """The model with other numbers, the sink's in the last place."""
    return replace(
        model,
        scores=u[:-1],
        values=w[:-1],
        prior=prior,
        tokens=counts.tokens,
        vocabulary=None,
        steps=taken,
        sink=float(u[-1]),
    )


def _length(n: int, model: Model, of: int, settings: FitSettings) -> tuple[int, int]:
    """Steps of the schedule for n documents, and the step to stop at."""
    steps = max(settings.max_epochs * math.ceil(n / settings.batch_size), LEAST_STEPS)
    return steps, min(steps, max(1, round(model.steps * (n / of if model.steps > LEAST_STEPS else 1))))
