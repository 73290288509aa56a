"""The score: how likely a candidate is an artefact, and why.

One additive model, for words and phrases alike: logit p = b + Σ_j f_j(x_j) over the traits x
(`traits`). Every f_j is a broken line through a few points, and constant beyond the outer ones. The
points are in coefficients.json, which benchmarks/artefacts.py fits by logistic regression on many
sets with planted marks; the file says on which. f_j is 0 on average over the candidates of these
sets, so that each term is what one trait adds to the log-odds of an average candidate, and the
largest terms are the reasons.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from scipy.special import expit

from tokensieve.arrays import Floats
from tokensieve.auditing.artefacts.candidates import Candidate
from tokensieve.auditing.artefacts.traits import TRAITS, Observed, Traits, as_matrix

# Probabilities, chosen on the sets and kinds of marks for choosing, each set and kind left out
# (`benchmarks/artefacts.py thresholds`)
POSSIBLE = 0.3  # from here on a word is named at all,
ACCUSED = 0.5  # is called a shortcut,
LIKELY = 0.85  # may be of more than low severity
DIGITS = 6  # of a probability: the same whatever the order of sums


@dataclass(frozen=True)
class Curve:
    """What one trait adds to the log-odds: a broken line, constant beyond its outer points.

    Attributes:
        at: values of the trait, ascending, shape (points,).
        adds: to the log-odds there, shape (points,).
    """

    at: Floats
    adds: Floats

    def __call__(self, values: Floats) -> Floats:
        """What each of some values adds."""
        return np.asarray(np.interp(values, self.at, self.adds))


@dataclass(frozen=True)
class ScoreModel:
    """A fitted additive model.

    Attributes:
        intercept: b.
        curves: f_j, one for each of `TRAITS`.
    """

    intercept: float
    curves: tuple[Curve, ...]

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> ScoreModel:
        """The model of a coefficients file."""
        curves = [stored["traits"][name] for name in TRAITS]
        return cls(
            float(stored["intercept"]),
            tuple(Curve(np.array(curve["at"]), np.array(curve["adds"])) for curve in curves),
        )

    def terms(self, traits: Sequence[Traits]) -> Floats:
        """What each trait adds to the log-odds, shape (candidates, traits)."""
        values = as_matrix(traits)
        columns = [curve(column) for curve, column in zip(self.curves, values.T, strict=True)]
        return np.column_stack(columns)

    def probabilities(self, traits: Sequence[Traits]) -> Floats:
        """How likely each candidate is an artefact, shape (candidates,)."""
        log_odds = self.intercept + self.terms(traits).sum(axis=1)
        return np.asarray(np.round(expit(log_odds), DIGITS))


@cache
def fitted_model() -> ScoreModel:
    """The model that the package comes with."""
    path = resources.files("tokensieve.auditing.artefacts") / "coefficients.json"
    return ScoreModel.from_dict(json.loads(path.read_text(encoding="utf-8")))


@dataclass(frozen=True, eq=False)
class Scored:
    """A candidate with its score.

    Attributes:
        observed: what was seen of it.
        probability: how likely it is an artefact.
        terms: what each of `TRAITS` adds to the log-odds.
    """

    observed: Observed
    probability: float
    terms: dict[str, float]

    @property
    def candidate(self) -> Candidate:
        """The word or phrase."""
        return self.observed.candidate


def scored(observed: Sequence[Observed]) -> list[Scored]:
    """The candidates with their scores, in the same order."""
    model = fitted_model()
    traits = [observation.traits for observation in observed]
    probabilities = model.probabilities(traits).tolist()
    terms = model.terms(traits).tolist()
    return [
        Scored(observation, probability, dict(zip(TRAITS, row, strict=True)))
        for observation, probability, row in zip(observed, probabilities, terms, strict=True)
    ]
