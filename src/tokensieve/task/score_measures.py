"""How well predicted scores match the scores of documents, with intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tokensieve.arrays import Floats, Ints
from tokensieve.evidence.intervals import Z95
from tokensieve.evidence.score_ranks import middle_ranks

# of the bootstrap; the ends of a 95% interval are then its 25th smallest and largest
RESAMPLES = 1000
LOWEST, HIGHEST = 2.5, 97.5  # percentiles
# columns of `_unit_sums`
DOCUMENTS, ABSOLUTE_ERROR, SQUARED_ERROR, SCORE, SQUARED_SCORE = range(5)


@dataclass(frozen=True)
class Measure:
    """A number with its 95% interval."""

    value: float
    low: float
    high: float

    def to_dict(self) -> dict[str, float]:
        """The three numbers, for summary.json."""
        return {"value": self.value, "low": self.low, "high": self.high}


@dataclass(frozen=True)
class ScoreMeasures:
    """Predictions against scores, on documents that the model was not trained on.

    Attributes:
        r2: 1 − mean squared error / variance of the scores.
        mae: mean absolute error, in units of the scores.
        spearman: rank correlation of prediction and score; 0 if either is constant.
        n_documents: how many.
    """

    r2: Measure
    mae: Measure
    spearman: Measure
    n_documents: int

    @classmethod
    def of(
        cls, predicted: Floats, scores: Floats, seed: int, units: Ints | None = None
    ) -> ScoreMeasures:
        """Measure predictions, both of shape (n,).

        R² and mae have a percentile interval of a bootstrap over documents (or groups), and
        Spearman's ρ that of Fisher's z with the standard error of Bonett and Wright (2000),
        √((1 + ρ²/2)/(n − 3)), n being the groups if there are any.

        Args:
            seed: of the bootstrap.
            units: the group of each document, shape (n,).
        """
        sums = _unit_sums(predicted, scores, units)
        drawn = _resampled(sums, seed)
        n_units = len(sums)
        return cls(
            r2=_measure(_r2(sums.sum(axis=0)), _r2(drawn)),
            mae=_measure(_mae(sums.sum(axis=0)), _mae(drawn)),
            spearman=_spearman_measure(spearman(predicted, scores), n_units),
            n_documents=len(scores),
        )

    def to_dict(self) -> dict[str, object]:
        """The numbers, for summary.json."""
        return {
            "r2": self.r2.to_dict(),
            "mae": self.mae.to_dict(),
            "spearman": self.spearman.to_dict(),
        }


def mae_difference(
    predicted: Floats, baseline: Floats, scores: Floats, seed: int, units: Ints | None = None
) -> Measure:
    """The mean absolute error of the predictions minus that of a baseline, on the same documents.

    Both are resampled together (paired bootstrap), in whole units if documents are grouped. Below
    zero the predictions are better.

    Args:
        predicted, baseline, scores: in units of the labels, shape (n,).
        seed: of the resampling.
        units: the group of each document, shape (n,); None if documents are independent.
    """
    sums = _unit_sums(predicted, scores, units)
    others = _unit_sums(baseline, scores, units)
    drawn = _mae(_resampled(sums, seed)) - _mae(_resampled(others, seed))
    return _measure(_mae(sums.sum(axis=0)) - _mae(others.sum(axis=0)), drawn)


def spearman(x: Floats, y: Floats) -> float:
    """Spearman's ρ of two arrays of shape (n,), from −1 to 1; 0 if one of them is constant.

    It is Pearson's correlation of the ranks, ties sharing their mean.
    """
    x_ranks = middle_ranks(x) - (len(x) + 1) / 2
    y_ranks = middle_ranks(y) - (len(y) + 1) / 2
    scale = math.sqrt(float(x_ranks @ x_ranks) * float(y_ranks @ y_ranks))
    return float(x_ranks @ y_ranks) / scale if scale else 0.0


def _unit_sums(predicted: Floats, scores: Floats, units: Ints | None) -> Floats:
    """Documents, |error|, error², score and score², summed over each group, shape (groups, 5).

    Every measure is a function of such sums, so a resampled one needs no documents. The columns are
    DOCUMENTS, …, SQUARED_SCORE.
    """
    error = predicted - scores
    centred = scores - scores.mean()  # so that its square loses no digits
    ones = np.ones(len(scores))
    columns = np.column_stack([ones, np.abs(error), error**2, centred, centred**2])
    if units is None:
        return columns
    _, index = np.unique(units, return_inverse=True)
    sums = np.zeros((int(index.max()) + 1, columns.shape[1]))
    np.add.at(sums, index, columns)
    return sums


def _resampled(sums: Floats, seed: int) -> Floats:
    """The sums of as many groups, drawn with replacement, shape (RESAMPLES, 5)."""
    rng = np.random.default_rng(seed)
    n = len(sums)
    drawn = np.empty((RESAMPLES, sums.shape[1]))
    for i in range(RESAMPLES):
        drawn[i] = np.bincount(rng.integers(n, size=n), minlength=n) @ sums
    return drawn


def _r2(sums: Floats) -> Floats:
    """R² of sums, shape (…,); 0 where all scores are equal."""
    total = sums[..., SQUARED_SCORE] - sums[..., SCORE] ** 2 / sums[..., DOCUMENTS]
    varies = total > 0
    unexplained = sums[..., SQUARED_ERROR] / np.where(varies, total, 1.0)
    return np.where(varies, 1 - unexplained, 0.0)


def _mae(sums: Floats) -> Floats:
    """The mean absolute error of sums, shape (…,)."""
    return np.asarray(sums[..., ABSOLUTE_ERROR] / sums[..., DOCUMENTS])


def _measure(value: Floats, drawn: Floats) -> Measure:
    """A number with the percentile interval of its bootstrap draws, shape (RESAMPLES,)."""
    low, high = np.percentile(drawn, [LOWEST, HIGHEST])
    return Measure(float(value), float(low), float(high))


def _spearman_measure(rho: float, n: int) -> Measure:
    """ρ of n documents (or groups) with the interval of Fisher's z, which needs four of them."""
    if n <= 3:
        return Measure(rho, -1.0, 1.0)
    if abs(rho) >= 1:
        return Measure(rho, rho, rho)
    half = Z95 * math.sqrt((1 + rho**2 / 2) / (n - 3))
    z = math.atanh(rho)
    return Measure(rho, math.tanh(z - half), math.tanh(z + half))
