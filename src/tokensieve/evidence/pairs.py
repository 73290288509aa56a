"""What preference pairs show about a token type, without any model, tested by swapping sides.

Pair i has sides A (preferred) and B; x = c/T is a type's share of an answer's tokens, and of
formatting, which is there or not, 1/T̄ where it is there. Under the hypothesis that the type has no
part in the preference, each pair might as well be the other way round; pairs of one unit (prompt)
are turned together:

    D_u = Σ_{i∈u} (x_A − x_B)        Σ_u ±D_u  has mean 0, variance Σ D_u²,
                                     fourth moment 3 (Σ D_u²)² − 2 Σ D_u⁴

Importance is that of `tokensieve.evidence.importance` for "rejected" and "chosen": effect = α =
½ mean (x_A − x_B).

**What wins** (`win_rates`): of the pairs in which one side alone contains the type, how often does
that side win, P = σ(θ), and how often would it, if both were equally long? The second is a
Bradley–Terry model with length as covariate (compare Dubois et al. 2024):

    P(A preferred) = σ(h(Δ log length) + θ_s δ_s),    δ_s = 1[s in A] − 1[s in B]

with h odd and piecewise linear, h = B β, and β estimated once without any type; and θ_s for each
type alone, half a win and half a loss added so that it is finite. The test is the score test of θ_s
= 0, corrected for the estimate of β, turned by units as above. The interval of P is Wilson's, of as
many pairs as have the information I of that test, n = 4 I (their number, where lengths are equal),
over the design effect of units.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp
from scipy.special import betaincc, expit, logit, ndtr, stdtrit

from tokensieve.arrays import Floats, Ints, Positions, pair_differences, sum_by_group
from tokensieve.evidence.importance import Importance, Statistics
from tokensieve.evidence.intervals import (
    LEVEL,
    Z95,
    Interval,
    Occurrences,
    agreeing,
    false_discovery,
    quantile,
    share_interval,
    wilson,
)
from tokensieve.text.counts import Counts

MAX_NEWTON_STEPS = 25
MAX_STEP = 1.0  # in log-odds, so that no step overshoots far
CONVERGED = 1e-9  # in log-odds
RIDGE = 1e-9  # added where a matrix of information could be singular
# Δ log length from which on a longer answer wins less and less the more often
LENGTH_KNOTS = (0.5, 1.0)
MIN_INFORMATION = 1e-3  # of a type, in pairs: an interval of width 1 instead of a division by zero
NORMAL_CROWD = 1e-5  # Σ D⁴/(Σ D²)²: so many units that the curve is the normal curve
CROWD_RANGE = (1e-12, 0.99)  # within which the curve of `_flipped_p` has a positive shape
MAX_EXPONENT = 1000  # 2⁻¹⁰⁰⁰ is no underflow, and nobody reads a smaller p


def pair_importance(counts: Counts, units: Ints, n_formatting: int = 0) -> Importance:
    """Importance of every type for "rejected" and "chosen" (module docstring), in O(nonzeros).

    Args:
        counts: 2n documents, preferred side first.
        units: the unit of each pair, shape (n,).
        n_formatting: how many of the last types are formatting.
    """
    n_pairs = counts.n_documents // 2
    shares = _shares(counts, n_formatting)
    flips = sum_by_group(pair_differences(shares), units)
    moments = FlipMoments.of(flips)
    p_value = _flipped_p(moments)

    t = quantile(moments.n_units)
    # the square of one typical unit is added, so that few units of one sign still have a variance
    typical = moments.second / np.maximum(moments.n_units, 1)
    spread = np.maximum(moments.second - moments.total**2 / max(flips.shape[0], 1), 0.0)
    half = t * np.sqrt(spread + typical)
    effect = Interval(
        moments.total / (2 * n_pairs),
        (moments.total - half) / (2 * n_pairs),
        (moments.total + half) / (2 * n_pairs),
    )
    effect = agreeing(effect, p_value)
    effect = Interval(effect.estimate[:, None], effect.low[:, None], effect.high[:, None])

    occurrences = _occurrences(counts, units)
    return Statistics(
        posterior=share_interval(occurrences, t[:, None]),
        alpha=effect,
        effect=effect,
        reach=_column(shares.sum(axis=0)) / (2 * n_pairs),
        p_value=p_value[:, None],
    ).importance(
        tokens=counts.tokens,
        classes=counts.classes,
        neutral=np.zeros(2),
        class_documents=counts.present,
        class_count=np.concatenate([occurrences.outside, occurrences.inside], axis=1),
    )


def _shares(counts: Counts, n_formatting: int) -> sp.csr_array:
    """x = c/T of every answer; formatting, which is there or not, counts 1/T̄."""
    matrix = counts.matrix
    n_words = counts.n_types - n_formatting
    lengths = counts.lengths
    if n_formatting:
        lengths = np.asarray(matrix[:, :n_words].sum(axis=1)).ravel()
    scale = np.repeat(1 / np.maximum(lengths, 1.0), np.diff(matrix.indptr))
    if n_formatting:
        mean_length = max(float(lengths.mean()), 1.0)
        scale = np.where(matrix.indices < n_words, scale, 1 / mean_length)
    return sp.csr_array((matrix.data * scale, matrix.indices, matrix.indptr), matrix.shape)


def _occurrences(counts: Counts, units: Ints) -> Occurrences:
    """Occurrences in preferred answers (inside) and in the others, by units, shape (types, 1)."""
    preferred = sum_by_group(sp.csr_array(counts.matrix[0::2]), units)
    rejected = sum_by_group(sp.csr_array(counts.matrix[1::2]), units)
    return Occurrences(
        inside=_column(preferred.sum(axis=0)),
        outside=_column(rejected.sum(axis=0)),
        squares_inside=_column(preferred.power(2).sum(axis=0)),
        squares_outside=_column(rejected.power(2).sum(axis=0)),
        shared=_column(preferred.multiply(rejected).sum(axis=0)),
    )


def win_rates(
    counts: Counts, units: Ints, log_ratio: Floats, weights: Floats | None = None
) -> pl.DataFrame:
    """A table of how often the side that alone contains a type wins, over all pairs and at equal
    length.

    A row per type that some pair has on one side alone: token, pairs, wins (pairs where that is the
    preferred side), win_rate = σ(θ) with its 95 % interval low and high, p_value of "it has no part
    in the preference" and q_value; the last five again at equal length, with the prefix
    "equal_length_".

    Args:
        counts: 2n documents, preferred side first.
        units: the unit of each pair, shape (n,).
        log_ratio: Δ log length of each pair, shape (n,).
        weights: of each pair, shape (n,): ½ for each of the two orders of a tie; 1 if None.
    """
    matrix = counts.matrix
    present = sp.csr_array((np.ones(matrix.nnz), matrix.indices, matrix.indptr), matrix.shape)
    differences = pair_differences(present)
    if weights is not None:
        differences.data = differences.data * np.repeat(weights, np.diff(differences.indptr))
    types = differences.indices
    pairs = np.bincount(types, np.abs(differences.data), counts.n_types)
    wins = np.bincount(types, np.maximum(differences.data, 0), counts.n_types)
    has_halves = bool((wins % 1).any())
    columns = {
        "token": pl.Series(counts.tokens.tolist(), dtype=pl.String),
        "pairs": pairs.astype(np.int64),
        "wins": wins if has_halves else wins.astype(np.int64),
    }
    no_features = np.zeros((len(units), 0))
    columns |= WinRates.of(differences, units, no_features).columns("")
    columns |= WinRates.of(differences, units, _length_features(log_ratio)).columns("equal_length_")
    frame = pl.DataFrame(columns).filter(pl.col("pairs") > 0)
    return frame.sort("equal_length_low", "token", descending=[True, False])


def _length_features(log_ratio: Floats) -> Floats:
    """B of the module docstring: the parts of Δ log length between the knots, shape (n, 3)."""
    first, second = LENGTH_KNOTS
    inner = np.clip(log_ratio, -first, first)
    middle = np.clip(log_ratio, -second, second)
    return np.column_stack([inner, middle - inner, log_ratio - middle])


def _length_weights(features: Floats) -> Floats:
    """β of P(A preferred) = σ(B β), B of shape (n, r), by Newton's method.

    Half a win and half a loss of each feature are added, so that it is finite for any data.
    """
    n, r = features.shape
    x = np.vstack([features, np.eye(r), -np.eye(r)])
    weights = np.append(np.ones(n), np.full(2 * r, 0.5))
    beta = np.zeros(r)
    for _ in range(MAX_NEWTON_STEPS):
        miss = expit(-(x @ beta))
        curvature = (x * (weights * miss * (1 - miss))[:, None]).T @ x
        slope = x.T @ (weights * miss)
        step = np.linalg.solve(curvature + RIDGE * np.eye(r), slope)
        beta += np.clip(step, -MAX_STEP, MAX_STEP)
    return np.asarray(beta)


@dataclass(frozen=True)
class WinRates:
    """σ(θ) of each type with its interval, p and q, each of shape (types,)."""

    rate: Floats
    low: Floats
    high: Floats
    p_value: Floats
    q_value: Floats

    @classmethod
    def of(cls, differences: sp.csr_array, units: Ints, features: Floats) -> WinRates:
        """Rates given the features B of each pair; without columns, rates as they are.

        Args:
            differences: weighted δ of each pair and type, shape (n, types).
            units: of the pairs, shape (n,).
            features: B, shape (n, r).
        """
        model = PairModel.of(differences, features)
        test = score_test(model, units)
        p_value = _flipped_p(test.moments)
        q_value = np.ones(model.n_types)
        occurs = model.pairs > 0
        q_value[occurs] = false_discovery(p_value[occurs][:, None])[:, 0]
        theta = model.theta()
        interval = agreeing(_rate_interval(model, theta, test, units), p_value)
        return cls(expit(theta), 0.5 + interval.low, 0.5 + interval.high, p_value, q_value)

    def columns(self, prefix: str) -> dict[str, Any]:
        """The rates as columns of a table, their names with a prefix."""
        return {
            f"{prefix}win_rate": self.rate,
            f"{prefix}low": self.low,
            f"{prefix}high": self.high,
            f"{prefix}p_value": self.p_value,
            f"{prefix}q_value": self.q_value,
        }


@dataclass(frozen=True)
class PairModel:
    """P(A preferred) = σ(offset + θ_s δ_s) for each type s alone, and its entries: a δ that is not
    0.

    Attributes:
        differences: weighted δ, shape (n, types); the entries are its stored values, in order.
        pair, types: the pair and the type of each entry.
        features: B, shape (n, r).
        offset: B β, shape (n,).
        pairs: weighted pairs that have the type on one side alone, shape (types,).
    """

    differences: sp.csr_array
    pair: Ints
    types: Positions
    features: Floats
    offset: Floats
    pairs: Floats

    @classmethod
    def of(cls, differences: sp.csr_array, features: Floats) -> PairModel:
        """The model of some pairs, whose effect β of length is estimated once, without any type."""
        n, n_types = differences.shape
        return cls(
            differences,
            np.repeat(np.arange(n), np.diff(differences.indptr)),
            differences.indices,
            features,
            features @ _length_weights(features),
            np.bincount(differences.indices, np.abs(differences.data), n_types).astype(float),
        )

    @property
    def n_types(self) -> int:
        """The number of token types, |S|."""
        return int(self.differences.shape[1])

    @property
    def signed(self) -> Floats:
        """Weighted δ of each entry."""
        return np.asarray(self.differences.data)

    def sum_by_type(self, entries: Floats) -> Floats:
        """The sum of each type's entries, shape (types,)."""
        return np.bincount(self.types, entries, self.n_types).astype(np.float64)

    def with_entries(self, entries: Floats) -> sp.csr_array:
        """A matrix with other values in the places of δ."""
        d = self.differences
        return sp.csr_array((entries, self.types, d.indptr), shape=d.shape)

    @cached_property
    def _signs(self) -> Floats:
        """Whether the preferred side has the type (1) or the other one (−1), of each entry."""
        return np.asarray(np.sign(self.signed))

    @cached_property
    def _offsets(self) -> Floats:
        """The offset of the pair of each entry."""
        return self.offset[self.pair]

    def miss(self, theta: Floats) -> Floats:
        """The probability that the side without the type wins, of each stored entry, shape
        (entries,).

        `theta` is the log-odds of each type, shape (types,).
        """
        logits = theta[self.types]
        logits *= self._signs
        logits += self._offsets
        np.negative(logits, out=logits)
        return np.asarray(expit(logits, out=logits))

    def theta(self) -> Floats:
        """θ of each type: Σ δ σ(−(offset + θ δ)) + ½ − σ(θ) = 0.

        Without offsets, σ(θ) = (wins + ½) / (pairs + 1). From there Newton's method goes on.
        """
        wins = self.sum_by_type(np.maximum(self.signed, 0.0))
        theta = np.asarray(logit((wins + 0.5) / (self.pairs + 1)))
        if not self.offset.any():
            return theta
        weight = np.abs(self.signed)
        for _ in range(MAX_NEWTON_STEPS):
            miss = self.miss(theta)
            half = expit(theta)
            slope = self.sum_by_type(self.signed * miss) + 0.5 - half
            curvature = self.sum_by_type(weight * miss * (1 - miss)) + half * (1 - half)
            step = np.clip(slope / curvature, -MAX_STEP, MAX_STEP)
            theta += step
            if float(np.abs(step).max(initial=0.0)) < CONVERGED:
                break
        return theta


@dataclass(frozen=True)
class FlipMoments:
    """Moments of Σ ±D_u over the units of each type, all of shape (types,).

    Attributes:
        total: Σ D.
        reach: Σ |D|.
        second, fourth: Σ D² and Σ D⁴.
        n_units: how many D_u are not zero.
    """

    total: Floats
    reach: Floats
    second: Floats
    fourth: Floats
    n_units: Ints

    @classmethod
    def of(cls, flips: sp.csr_array) -> FlipMoments:
        """Add up the moments of D, given for each unit (rows) and type."""
        flips.eliminate_zeros()
        d = flips.data
        n_types = flips.shape[1]

        def sum_by_type(entries: Floats) -> Floats:
            return np.bincount(flips.indices, entries, n_types).astype(np.float64)

        return cls(
            sum_by_type(d),
            sum_by_type(np.abs(d)),
            sum_by_type(d**2),
            sum_by_type(d**4),
            np.bincount(flips.indices, minlength=n_types).astype(np.int64),
        )


@dataclass(frozen=True)
class ScoreTest:
    """The score test of θ_s = 0 for each type.

    Attributes:
        moments: of the score, by units, with its variance corrected for the estimate of β.
        information: shape (types,).
    """

    moments: FlipMoments
    information: Floats


def score_test(model: PairModel, units: Ints) -> ScoreTest:
    """The scores at θ = 0, summed over units, and what the estimate of β takes from them."""
    x = model.features
    miss = expit(-model.offset)
    spread = miss * (1 - miss)
    signed_spread = model.signed * spread[model.pair]
    lean = np.asarray(model.with_entries(signed_spread).T @ x)
    k = _movement_of_beta(x, spread, lean)
    information = model.sum_by_type(np.abs(signed_spread)) - (k * lean).sum(axis=1)

    scores = sum_by_group(model.with_entries(model.signed * miss[model.pair]), units)
    moments = FlipMoments.of(scores)

    # Σ D² less what estimating β takes from it, from the slopes of each pair's likelihood in β
    slopes = _sum_rows(x * miss[:, None], units)
    crossed = 2 * (k * (scores.T @ slopes)).sum(axis=1)
    second = moments.second - crossed + ((k @ (slopes.T @ slopes)) * k).sum(axis=1)
    second = np.maximum(second, RIDGE * moments.second)
    return ScoreTest(replace(moments, second=second), information)


def _sum_rows(rows: Floats, units: Ints) -> Floats:
    """The sums of the rows of each unit, in the order of units, shape (units, columns)."""
    unit_of_each = np.unique(units, return_inverse=True)[1]
    sums = np.zeros((unit_of_each.max(initial=-1) + 1, rows.shape[1]))
    np.add.at(sums, unit_of_each, rows)
    return sums


def _movement_of_beta(x: Floats, spread: Floats, lean: Floats) -> Floats:
    """The derivative of β in the score of each type, shape (types, r)."""
    curvature = (x * spread[:, None]).T @ x + RIDGE * np.eye(x.shape[1])
    return np.asarray(np.linalg.solve(curvature, lean.T).T)


def _rate_interval(model: PairModel, theta: Floats, test: ScoreTest, units: Ints) -> Interval:
    """σ(θ) − ½ with Wilson's interval on as many pairs as have the information of the test.

    The design effect of the units is Kish's, as in `Share.over`.
    """
    n_units = test.moments.n_units
    is_grouped = n_units < np.bincount(model.types, minlength=model.n_types)
    design = np.where(is_grouped, _design_effects(model, theta, n_units, units), 1.0)
    n = np.maximum(4 * test.information / design, MIN_INFORMATION)
    quantile_of_units = stdtrit(np.maximum(n_units - 1, 1), 1 - LEVEL / 2)
    t = np.where(is_grouped, quantile_of_units, Z95)

    estimate = expit(theta)
    # wins of the pairs, without the half of each that was added
    wins = estimate * (model.pairs + 1) - 0.5
    rate = np.clip(wins / np.maximum(model.pairs, 1), 0.0, 1.0)
    interval = wilson(rate, n, t)
    return Interval(estimate - 0.5, interval.low - 0.5, interval.high - 0.5)


def _design_effects(model: PairModel, theta: Floats, n_units: Ints, units: Ints) -> Floats:
    """Kish's design effect of each type, from what is left of each pair at the estimate."""
    residuals = model.signed * model.miss(theta)
    by_unit = sum_by_group(model.with_entries(residuals), units)
    by_units = np.bincount(by_unit.indices, by_unit.data**2, model.n_types)
    by_pairs = model.sum_by_type(residuals**2)
    tiny = 1e-300  # a type in no pair has no residuals
    ratio = by_units / np.maximum(by_pairs, tiny) * n_units / np.maximum(n_units - 1, 1)
    return np.asarray(np.maximum(ratio, 1.0))


def _flipped_p(moments: FlipMoments) -> Floats:
    """Two-sided p of Σ D_u when every D_u may as well have the other sign, shape (types,).

    The symmetric curve on a bounded range (Pearson II) with these moments; where that range is
    shorter than ±Σ |D_u|, as where one unit outweighs the others, the normal curve, which bounds
    the tail but for a factor (Hoeffding 1963); and never less than 2^{1−m}, the smallest p that m
    units can give.
    """
    is_constant = moments.second <= 0
    variance = np.where(is_constant, 1.0, moments.second)
    crowd = np.where(is_constant, 1.0, moments.fourth / variance**2)
    crowd = np.clip(crowd, *CROWD_RANGE)
    deviation = np.abs(moments.total)

    normal_p = 2 * ndtr(-deviation / np.sqrt(variance))
    shape = (3 / crowd - 3) / 2
    end = np.sqrt(variance * (3 / crowd - 2))  # of the range of the bounded curve
    place_in_range = (np.minimum(deviation / end, 1.0) + 1) / 2
    bounded_p = 2 * betaincc(shape, shape, place_in_range)

    is_normal = (crowd < NORMAL_CROWD) | (end < moments.reach)
    p = np.where(is_normal, normal_p, bounded_p)
    smallest_p = np.exp2(1.0 - np.minimum(moments.n_units, MAX_EXPONENT))
    p = np.clip(np.maximum(p, smallest_p), 0.0, 1.0)
    return np.asarray(np.where(is_constant, 1.0, p))


def _column(x: Any) -> Floats:
    return np.asarray(x, dtype=np.float64).reshape(-1, 1)
