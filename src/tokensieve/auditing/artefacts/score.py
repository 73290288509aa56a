"""The score: how likely a candidate is an artefact, and why.

One additive model, for words and phrases alike: logit p = b + Σ_j w_j (x_j − m_j)/s_j over the
traits x (`traits`). Weights, means and scales are in coefficients.json, which
benchmarks/artefacts.py fits by logistic regression on many sets with planted marks; the file says
on which. Each term of the sum is what one trait adds to the log-odds, so that the largest are the
reasons.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np
from scipy.special import expit

from tokensieve.arrays import Floats
from tokensieve.auditing.artefacts.candidates import Candidate
from tokensieve.auditing.artefacts.traits import TRAITS, Observed, Traits, as_matrix

ACCUSED = 0.5  # more likely an artefact than not
DIGITS = 6  # of a probability: the same whatever the order of sums


@dataclass(frozen=True)
class ScoreModel:
    """A fitted additive model.

    Attributes:
        intercept: b.
        weights, means, scales: of each of `TRAITS`, shape (traits,).
    """

    intercept: float
    weights: Floats
    means: Floats
    scales: Floats

    @classmethod
    def from_dict(cls, stored: dict[str, object]) -> ScoreModel:
        """The model of a coefficients file."""
        traits = stored["traits"]
        assert isinstance(traits, dict)
        columns = [[traits[name][key] for name in TRAITS] for key in ("weight", "mean", "scale")]
        return cls(float(str(stored["intercept"])), *(np.array(column) for column in columns))

    def terms(self, traits: Sequence[Traits]) -> Floats:
        """What each trait adds to the log-odds, shape (candidates, traits)."""
        return np.asarray(self.weights * (as_matrix(traits) - self.means) / self.scales)

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

    @property
    def is_accused(self) -> bool:
        """Whether it is more likely an artefact than not."""
        return self.probability >= ACCUSED


def scored(observed: Sequence[Observed]) -> list[Scored]:
    """The candidates with their scores, in the same order."""
    model = fitted_model()
    traits = [one.traits for one in observed]
    probabilities = model.probabilities(traits).tolist()
    terms = model.terms(traits).tolist()
    return [
        Scored(one, probability, dict(zip(TRAITS, row, strict=True)))
        for one, probability, row in zip(observed, probabilities, terms, strict=True)
    ]
