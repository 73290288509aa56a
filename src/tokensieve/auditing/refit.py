"""The same model again, on other documents or other token types: as long a training as was chosen for the first."""

from __future__ import annotations

import math
from dataclasses import replace

from tokensieve.model.adam import Schedule, train
from tokensieve.model.fit import LEAST_STEPS, FitSettings
from tokensieve.model.start import initial_table, prior_of
from tokensieve.model.trained import Model
from tokensieve.text.counts import Counts


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
    n, prior = counts.n_documents, prior_of(counts.weighed[1])
    steps = max(settings.max_epochs * math.ceil(n / settings.batch_size), LEAST_STEPS)
    stop = min(steps, max(1, round(model.steps * (n / of if model.steps > LEAST_STEPS else 1))))
    schedule = Schedule(steps, settings.batch_size, settings.score_rate, settings.value_rate, settings.seed)
    taken, u, w = next(train(counts, *initial_table(counts, prior), schedule, stop))
    return replace(model, scores=u, values=w, prior=prior, tokens=counts.tokens, vocabulary=None, steps=taken)
