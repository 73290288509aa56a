"""Counts → trained scores and values: the start, the length of training by held-out documents, and training on all of them."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from tokensieve.errors import InputError
from tokensieve.model.adam import Schedule, train
from tokensieve.model.attention import loss_and_slope
from tokensieve.model.start import initial_table, prior_of
from tokensieve.model.trained import Model
from tokensieve.progress import Progress, silent
from tokensieve.text.counts import Counts, Floats
from tokensieve.text.split import stratified
from tokensieve.text.vocabulary import Vocabulary

CHECKS = 8
PATIENCE = 3
LEAST_STEPS = 500
LEAST_PER_CLASS = 10
HELD_OUT = 50_000  # more documents than that add nothing to the choice of when to stop


@dataclass(frozen=True)
class FitSettings:
    """How a table of scores and values is trained.

    Attributes:
        batch_size: documents per step.
        score_rate: initial step size of Adam for the scores u.
        value_rate: initial step size of Adam for the values w.
        max_epochs: longest training, in passes over the data (at least 500 steps are allowed on small data).
        validation_share: share of the documents on which the length of training is chosen; the model is then trained on all
            of them for that long. With fewer than 10 documents in a class the full length is used.
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
) -> Model:
    """Learn scores and values; the same seed gives the same bits.

    Args:
        counts: n labelled documents over |S| types, of at least two classes.
        settings: `FitSettings()` if None.
        vocabulary: how text becomes these counts, for a model that reads texts.
        progress: called with (stage, share done).
    """
    settings, tell = settings or FitSettings(), progress or silent
    prior = prior_of(counts.class_sizes)
    steps = max(settings.max_epochs * math.ceil(counts.n_documents / settings.batch_size), LEAST_STEPS)
    schedule = Schedule(steps, settings.batch_size, settings.score_rate, settings.value_rate, settings.seed)
    model = Model(
        np.asarray(counts.classes),
        np.empty(0),
        np.empty(0),
        prior,
        counts.tokens,
        vocabulary,
        settings=settings.parameters(),
    )
    tell("choosing the length of training", 0.0)
    stop, checks = _choose_length(counts, model, schedule, settings.validation_share)
    tell("training", 0.0)
    taken, u, w = next(train(counts, *initial_table(counts, prior), schedule, stop))
    return replace(model, scores=u, values=w, steps=taken, validation=checks)


def _choose_length(counts: Counts, model: Model, schedule: Schedule, share: float) -> tuple[int, Floats]:
    """Steps with the smallest loss on held-out documents, out of CHECKS lengths; and (steps, loss) of each, shape (checks, 2)."""
    if share <= 0 or counts.class_sizes.min() < LEAST_PER_CLASS:
        return schedule.steps, np.empty((0, 2))
    n, checks = counts.n_documents, []
    size = math.ceil(max(min(share, HELD_OUT / n), counts.n_classes / n) * n)
    inside, outside = stratified(counts.labels, size, schedule.seed)
    held_out = counts.rows(outside)
    start = initial_table(counts, model.prior, held_out)
    for steps, u, w in train(counts, *start, schedule, math.ceil(schedule.steps / CHECKS), inside):
        f = replace(model, scores=u, values=w).decide(held_out.matrix)
        checks.append((steps, float(np.mean(loss_and_slope(f, held_out.labels)[0]))))
        best = min(checks, key=lambda c: c[1])
        if len(checks) - checks.index(best) > PATIENCE:
            break
    return best[0], np.array(checks)
