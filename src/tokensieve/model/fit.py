"""From counts to trained scores and values: start, choices by held-out documents, and training.

Held-out documents decide how long to train, of few documents how strong the start is, of many short
ones how fast attention moves away from the start, and the scale of the values
(`tokensieve.model.choice`). The model is then trained on all documents in that way.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from tokensieve.arrays import Floats, Ints
from tokensieve.errors import InputError
from tokensieve.model.adam import Schedule, train
from tokensieve.model.attention import Model
from tokensieve.model.choice import Choice, choice_without_held_out, choose
from tokensieve.model.held_out import held_out_documents, held_out_pairs
from tokensieve.model.order import OrderedDocuments, in_canonical_order
from tokensieve.model.settings import TrainSettings
from tokensieve.model.start import Table, prior_of, table_with_sink
from tokensieve.progress import Progress, silent
from tokensieve.text.counts import Counts
from tokensieve.text.vocabulary import Vocabulary

MIN_STEPS = 500  # of the longest training; small data needs several hundred to converge
VALUE_RATE_OF_PAIRS = 2.0  # f of a difference has twice the range; chosen on held-out prompts


def fit(
    counts: Counts,
    settings: TrainSettings | None = None,
    vocabulary: Vocabulary | None = None,
    progress: Progress | None = None,
    units: Ints | None = None,
    pairs: bool = False,
) -> Model:
    """Learn scores and values.

    The same seed gives bit-identical results, whatever the number of threads and the order of the
    documents.

    Args:
        counts: n labelled documents over |S| types, of at least two classes. Weights, if any, apply
            to the loss in training, in validation and at the start. Only ratios matter; a document
            of weight 0 is left out.
        settings: `TrainSettings()` if None; for pairs `batch_size` counts pairs, and an epoch is as
            many pairs as there are documents.
        vocabulary: how text becomes these counts, for a model that reads texts.
        progress: called with (stage, share done).
        units: the group of each document (or pair), shape (n,); no group is both trained on and
            held out.
        pairs: rows 2i (preferred) and 2i + 1 are a pair (`tokensieve.model.attention`).
    """
    settings = (settings or TrainSettings()).of_documents(counts.n_documents)
    progress = progress or silent
    counts, groups = _usable(counts, units, pairs)
    scale_of_scores = ScoreScale.of(counts)
    counts = scale_of_scores.standardised(counts)
    prior = _prior(counts, pairs)
    schedule = _schedule(counts.n_documents, settings, pairs)
    if pairs:
        parts = held_out_pairs(counts, settings, groups)
    else:
        parts = held_out_documents(counts, settings, groups)
    if parts:
        choice = choose(counts, prior, schedule, parts, progress)
    else:
        choice = choice_without_held_out(counts, schedule, settings.validation_share > 0)
    progress("training", 0.0)
    u, w = choice.table or _train_as_chosen(counts, prior, schedule, choice)
    model = Model(
        classes=np.asarray(counts.classes),
        scores=u[:-1],
        values=prior + choice.scale * (w[:-1] - prior),
        prior=prior,
        tokens=counts.tokens,
        vocabulary=vocabulary,
        steps=choice.steps,
        score_rate=choice.score_rate,
        strength=choice.strength,
        scale=choice.scale,
        validation=np.array(choice.checks).reshape(-1, 2),
        sink=float(u[-1]),
        settings=settings.parameters(),
        pairs=pairs,
        predicts_scores=counts.numbers is not None,
    )
    return scale_of_scores.in_units_of_the_labels(model)


@dataclass(frozen=True)
class ScoreScale:
    """Mean and standard deviation of the scores that are the labels, each as often as it weighs.

    Training is on standardised scores, so that the step sizes suit any unit. As attention adds up
    to one, values in units of the labels give predictions in units of the labels.
    """

    mean: float
    deviation: float

    @classmethod
    def of(cls, counts: Counts) -> ScoreScale:
        """Mean and standard deviation of the documents' scores; 0 and 1, which change nothing,
        without scores."""
        if counts.numbers is None:
            return cls(0.0, 1.0)
        mean = float(np.average(counts.numbers, weights=counts.weights))
        variance = float(np.average((counts.numbers - mean) ** 2, weights=counts.weights))
        return cls(mean, math.sqrt(variance) or 1.0)

    def standardised(self, counts: Counts) -> Counts:
        """The same documents with scores of mean 0 and variance 1."""
        if counts.numbers is None:
            return counts
        return replace(counts, numbers=(counts.numbers - self.mean) / self.deviation)

    def in_units_of_the_labels(self, model: Model) -> Model:
        """A model of standardised scores as one of the scores themselves."""
        if not model.predicts_scores:
            return model
        return replace(
            model,
            values=self.mean + self.deviation * model.values,
            prior=self.mean + self.deviation * model.prior,
        )


def _prior(counts: Counts, pairs: bool) -> Floats:
    """The prediction for a document without known tokens: 0 for pairs and for standardised
    scores."""
    if pairs or counts.numbers is not None:
        return np.zeros(1)
    return prior_of(counts.weighted_class_sizes)


def _train_as_chosen(counts: Counts, prior: Floats, schedule: Schedule, choice: Choice) -> Table:
    """Scores and values of a training on all documents."""
    start = table_with_sink(counts, prior, choice.strength, schedule.pairs)
    rated = replace(schedule, score_rate=choice.score_rate)
    _, u, w = next(train(counts, *start, rated, choice.steps))
    return u, w


def _usable(counts: Counts, groups: Ints | None, pairs: bool) -> OrderedDocuments:
    """The documents of positive weight in canonical order, and their groups.

    Raises:
        InputError: there is not one group for each, or a class has no positive weight.
    """
    per_example = 2 if pairs else 1
    if groups is not None and groups.shape != (counts.n_documents // per_example,):
        raise InputError(
            f"{counts.n_documents} documents, but {groups.size} groups: "
            "one is needed for each document"
        )
    if counts.weights is not None and not counts.weights.all():
        part, used_rows = counts.of_positive_weight()
        if counts.numbers is None:
            _check_every_class_weighs(counts, part)
        if groups is not None:  # both sides of a pair weigh the same
            groups = groups[used_rows[::per_example] // per_example]
        counts = replace(part, weights=counts.weights[used_rows])
    ordered = in_canonical_order(counts, groups, pairs)
    # sums of weights are rounded, so they are formed in that order
    weighted, _ = ordered.counts.of_positive_weight()
    return OrderedDocuments(weighted, ordered.groups)


def _check_every_class_weighs(counts: Counts, part: Counts) -> None:
    """Raise an InputError if a class has no document in the part of positive weight."""
    sizes = zip(counts.classes, counts.class_sizes, part.class_sizes, strict=True)
    for name, size_before, size_after in sizes:
        if size_before and not size_after:
            raise InputError(
                f"every document of class {name!r} has weight 0: "
                "set a weight for one, or leave the class out"
            )


def refit(counts: Counts, model: Model, n_learned: int, settings: TrainSettings) -> Model:
    """Train again on other documents or types as `model` was trained, without choosing anything.

    Args:
        counts: documents over any token types.
        model: trained on other documents with these settings; its rate, its strength of the start
            and its scale are taken, and as many passes. With the same documents and types the
            result is the same model.
        n_learned: the number of those documents.
        settings: of that training.
    """
    counts, _ = _usable(counts, None, model.pairs)
    scale_of_scores = ScoreScale.of(counts)
    counts = scale_of_scores.standardised(counts)
    prior = model.prior if model.pairs else _prior(counts, pairs=False)
    schedule = _schedule(counts.n_documents, settings, model.pairs)
    if model.score_rate is not None:
        schedule = replace(schedule, score_rate=model.score_rate)
    # the shortest trainings count steps, not passes
    passes = counts.n_documents / n_learned if model.steps > MIN_STEPS else 1
    stop = min(schedule.steps, max(1, round(model.steps * passes)))
    start = table_with_sink(counts, prior, model.strength, model.pairs)
    steps, u, w = next(train(counts, *start, schedule, stop))
    refitted = replace(
        model,
        scores=u[:-1],
        values=prior + model.scale * (w[:-1] - prior),
        sink=float(u[-1]),
        prior=prior,
        tokens=counts.tokens,
        vocabulary=None,
        steps=steps,
    )
    return scale_of_scores.in_units_of_the_labels(refitted)


def _schedule(n_documents: int, settings: TrainSettings, pairs: bool) -> Schedule:
    """The length and step sizes of training on n documents (or pairs): `max_epochs` passes, but at
    least `MIN_STEPS` steps."""
    epoch = math.ceil(n_documents / settings.batch_size)
    return Schedule(
        steps=max(settings.max_epochs * epoch, MIN_STEPS),
        batch_size=settings.batch_size,
        score_rate=settings.score_rate,
        value_rate=settings.value_rate * (VALUE_RATE_OF_PAIRS if pairs else 1),
        seed=settings.seed,
        pairs=pairs,
    )
