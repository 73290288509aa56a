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

SUSPECTED = 0.5  # a probability above it is named in the first sentence: more likely than not
RARE = 1 / 400  # of the documents; what is rarer counts like what does not occur
SMALLEST_MOVE = 0.05  # log-odds; logarithms of smaller changes would be of noise


@dataclass(frozen=True)
class Features:
    """What the score looks at, of each of C candidates, shape (C,) each.

    Attributes:
        size: logarithm of how far it moves predictions, in log-odds.
        typical: the same relative to the median candidate of the model.
        lead: the same relative to the largest other candidate that occurs in the documents.
        unsupported: the same relative to what the data supports at most, both plus 1.
        consistency: how far it always pushes the same way, 0 to 1.
        company: how far other words tell where it occurs, 0 (not at all) to 1.
        coverage: logarithm of the fraction of documents that contain it, plus RARE.
    """

    size: Floats
    typical: Floats
    lead: Floats
    unsupported: Floats
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
        move: how far each moves predictions, in log-odds.
        supported: what the data supports at most, in log-odds.
        consistency: as `Features`.
        coverage: fraction of the documents that contain it.
        context_auc: as `Company.auc`.
        thing: candidates with the same number are parts of one thing, such as a phrase.
    """

    move: Floats
    supported: Floats
    consistency: Floats
    coverage: Floats
    context_auc: Floats
    thing: Floats

    def features(self) -> Features:
        """The features of the score."""
        move = np.maximum(np.nan_to_num(self.move), SMALLEST_MOVE)
        size = np.log(move)
        return Features(
            size=size,
            typical=size - np.median(size) if len(size) else size,
            lead=size - self._largest_other(size),
            unsupported=np.log1p(move) - np.log1p(np.maximum(self.supported, 0.0)),
            consistency=np.clip(np.nan_to_num(self.consistency), 0.0, 1.0),
            company=2 * np.abs(self.context_auc - NO_INFORMATION),
            coverage=np.log(self.coverage + RARE),
        )

    def _largest_other(self, size: Floats) -> Floats:
        """Of each candidate, the largest size (a log move) of a rival.

        A rival is no part of the same thing, and occurs in the documents: how far a form moves
        predictions that no document has says nothing about what the model relies on.
        """
        largest = np.full(len(size), np.log(SMALLEST_MOVE))
        is_present = self.coverage > 0
        for i in range(len(size)):
            other_sizes = size[is_present & (self.thing != self.thing[i])]
            largest[i] = max(other_sizes.max(initial=largest[i]), largest[i])
        return largest


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
    if not len(candidates.move):
        return np.empty(0)
    return coefficients().probability(candidates.features())
