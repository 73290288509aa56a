"""Is what moves predictions an artefact? A small additive score, as a probability.

A score s_i over what a diagnosis measures of each candidate i. At most one of a model's candidates
is an artefact:

    P(i is) = e^{s_i} / (1 + Σ_j e^{s_j}),    P(none is) = 1 / (1 + Σ_j e^{s_j})

This likelihood fits the coefficients. The probability that is used, 1 / (1 + e^{−s_i}), compares a
candidate with none only, so that two artefacts of one model do not hide each other.

The coefficients lie in `score.json` beside this file. `benchmarks/planted.py fit` writes them, from
models of the families, kinds of marks and data sets that are for choosing; how often the score is
right is measured on the others (`docs/tutorials/transformer.md`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files

import numpy as np

from tokensieve.arrays import Floats
from tokensieve.diagnose.judgement.context import NO_INFORMATION

# A probability above it is named in the first sentence. To name something honest is taken to cost
# as much as to miss an artefact; then what is more likely one than not is named.
SUSPECTED = 0.5
RARE = 1 / 400  # of the documents; what is rarer counts like what does not occur
SMALLEST_MOVE = 0.05  # log-odds; logarithms of smaller changes would be of noise


@dataclass(frozen=True)
class Features:
    """What the score looks at, of each of C candidates, shape (C,) each.

    Attributes:
        both: logarithm of how far it moves predictions when inserted and when removed, whichever is
            less, in log-odds.
        lead: logarithm of the larger of the two, relative to the largest of any other candidate
            that occurs in the documents.
        consistency: how far it always pushes the same way, 0 to 1.
        company: how far other words tell where it occurs, 0 (not at all) to 1.
        coverage: logarithm of the fraction of documents that contain it, plus RARE.
    """

    both: Floats
    lead: Floats
    consistency: Floats
    company: Floats
    coverage: Floats

    def matrix(self) -> Floats:
        """A row per candidate, a column per feature in the order above."""
        return np.column_stack([getattr(self, field.name) for field in fields(self)])


@dataclass(frozen=True)
class Candidates:
    """What is known of C candidates, shape (C,) each.

    Attributes:
        inserted, removed: how far each moves predictions, in log-odds; nan if not measured.
        consistency: as `Features`.
        coverage: fraction of the documents that contain it.
        context_auc: as `Company.auc`.
        thing: candidates with the same number are parts of one thing, such as a phrase.
    """

    inserted: Floats
    removed: Floats
    consistency: Floats
    coverage: Floats
    context_auc: Floats
    thing: Floats

    def features(self) -> Features:
        """The features of the score.

        What a model relies on moves it both ways: inserted into a document it acts by itself, and
        documents that contain it owe their predictions to it. What acts by itself alone may be
        something that the model has never seen; what is missed alone may stand for other words.
        """
        inserted = _log_of_move(self.inserted)
        removed = _log_of_move(self.removed)
        return Features(
            both=np.minimum(inserted, removed),
            lead=self._lead(np.maximum(inserted, removed)),
            consistency=np.clip(np.nan_to_num(self.consistency), 0.0, 1.0),
            # below one half it is chance: words that tell nothing separate no better than that
            company=2 * np.maximum(self.context_auc - NO_INFORMATION, 0.0),
            coverage=np.log(self.coverage + RARE),
        )

    def _lead(self, size: Floats) -> Floats:
        """Sizes relative to the largest of a rival, in logarithms.

        A rival is no part of the same thing, and occurs in the documents: how far a form moves
        predictions that no document has says nothing about what the model relies on.
        """
        largest = np.full(len(size), np.log(SMALLEST_MOVE))
        is_present = self.coverage > 0
        for i in range(len(size)):
            of_rivals = size[is_present & (self.thing != self.thing[i])]
            largest[i] = of_rivals.max(initial=largest[i])
        return np.asarray(size - largest)


def _log_of_move(move: Floats) -> Floats:
    """Logarithms of changes of log-odds; what was not measured counts as the smallest."""
    return np.log(np.maximum(np.nan_to_num(move), SMALLEST_MOVE))


@dataclass(frozen=True)
class Coefficients:
    """Of the score: an intercept and a weight per feature."""

    intercept: float
    weights: Floats

    def probability(self, features: Features) -> Floats:
        """Of each candidate, shape (C,)."""
        log_odds = self.intercept + features.matrix() @ self.weights
        return 1 / (1 + np.exp(-log_odds))


@cache
def coefficients() -> Coefficients:
    """Those in `score.json`."""
    text = files("tokensieve.diagnose.judgement").joinpath("score.json").read_text("utf-8")
    content = json.loads(text)
    weights = [content["weights"][field.name] for field in fields(Features)]
    return Coefficients(content["intercept"], np.array(weights))


def artefact_probability(candidates: Candidates) -> Floats:
    """How likely each candidate is an artefact, shape (C,)."""
    if not len(candidates.inserted):
        return np.empty(0)
    return coefficients().probability(candidates.features())
