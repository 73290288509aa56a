"""What preference pairs show about a token type, without any model: differences within pairs, tested by swapping sides.

Pair i has sides A (preferred) and B; x = c/T is a type's share of an answer's tokens, and of formatting, which is there or not,
1/T̄ where it is there. Under the hypothesis that the type has no part in the preference, each pair might as well be the other way
round; pairs of one unit (prompt) are turned together:

    D_u = Σ_{i∈u} (x_A − x_B)        Σ_u ±D_u  has mean 0, variance Σ D_u², fourth moment 3 (Σ D_u²)² − 2 Σ D_u⁴

Importance is that of `tokensieve.evidence.importance` for "rejected" and "chosen": effect = α = ½ mean (x_A − x_B).

**What wins** (`win_rates`): of the pairs in which one side alone contains the type, how often does that side win, P = σ(θ), and
how often would it, if both were equally long? The second is a Bradley–Terry model with length as covariate (compare Dubois et al.
2024):

    P(A preferred) = σ(h(Δ log length) + θ_s δ_s),    δ_s = 1[s in A] − 1[s in B],    h odd, piecewise linear: h = B β

with β estimated once without any type, and θ_s for each type alone, half a win and half a loss added so that it is finite. The
test is the score test of θ_s = 0, corrected for the estimate of β, turned by units as above. The interval of P is Wilson's, of as
many pairs as have the information I of that test, n = 4 I (their number, where lengths are equal), over the design effect of units.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp
from scipy.special import betaincc, expit, ndtr, stdtrit

from tokensieve.arrays import Floats, Ints, pair_differences, sum_by_group
from tokensieve.evidence.importance import Importance
from tokensieve.evidence.intervals import (
    LEVEL,
    Z95,
    agreeing,
    false_discovery,
    quantile,
    share_interval,
)
from tokensieve.text.counts import Counts

NEWTON = 25


def pair_importance(counts: Counts, units: Ints, presences: int = 0) -> Importance:
    """Importance of every type for "rejected" and "chosen" (module docstring), in O(nonzeros).

    Takes 2n documents, preferred side first, and the unit of each pair, shape (n,); the last `presences` types are formatting.
    """
    words, n = counts.n_types - presences, counts.n_documents // 2
    lengths = (
        np.asarray(counts.matrix[:, :words].sum(axis=1)).ravel() if presences else counts.lengths
    )
    scale = np.repeat(1 / np.maximum(lengths, 1.0), np.diff(counts.matrix.indptr))
    if presences:
        scale = np.where(counts.matrix.indices < words, scale, 1 / max(float(lengths.mean()), 1.0))
    shares = sp.csr_array(
        (counts.matrix.data * scale, counts.matrix.indices, counts.matrix.indptr),
        counts.matrix.shape,
    )
    flips = sum_by_group(pair_differences(shares), units)
    total, reach, second, fourth, m = _moments(flips)
    p = _flipped_p(total, reach, second, fourth, m)
    t = quantile(m)
    # the square of one typical unit is added, so that few units of one sign still have a variance
    half = t * np.sqrt(
        np.maximum(second - total**2 / max(flips.shape[0], 1), 0.0) + second / np.maximum(m, 1)
    )
    mean, ends = total / (2 * n), ((total - half) / (2 * n), (total + half) / (2 * n))
    low, high = agreeing(mean, *ends, p)
    effect = mean[:, None], low[:, None], high[:, None]
    sides = [sum_by_group(sp.csr_array(counts.matrix[i::2]), units) for i in (0, 1)]
    inside, outside = (_column(side.sum(axis=0)) for side in sides)
    squares = _column(sides[0].power(2).sum(axis=0)), _column(sides[1].power(2).sum(axis=0))
    shared = _column(sides[0].multiply(sides[1]).sum(axis=0))
    return Importance.of_columns(
        [share_interval(inside, outside, squares, t[:, None], shared), effect, effect],
        reach=_column(shares.sum(axis=0)) / (2 * n),
        p_value=p[:, None],
        tokens=counts.tokens,
        classes=counts.classes,
        neutral=np.zeros(2),
        class_documents=counts.present,
        class_count=np.concatenate([outside, inside], axis=1),
    )


def win_rates(
    counts: Counts, units: Ints, log_ratio: Floats, weights: Floats | None = None
) -> pl.DataFrame:
    """How often the side that alone contains a type wins, and how often at equal length (module docstring), given 2n documents,
    preferred side first, and of each pair the unit, Δ log length and weight (½ for each of the two orders of a tie), shape (n,).

    A row per type that some pair has on one side alone: token, pairs, wins (pairs where that is the preferred side),
    win_rate = σ(θ) with its 95 % interval low and high, p_value of "it has no part in the preference" and q_value; the last
    five again at equal length, with the prefix "equal_length_"."""
    present = sp.csr_array(
        (np.ones(counts.matrix.nnz), counts.matrix.indices, counts.matrix.indptr),
        counts.matrix.shape,
    )
    delta = pair_differences(present)
    if weights is not None:
        delta.data = delta.data * np.repeat(weights, np.diff(delta.indptr))
    parts = np.abs(delta.data), np.maximum(delta.data, 0)
    pairs, wins = (np.bincount(delta.indices, x, counts.n_types) for x in parts)
    columns = {
        "token": pl.Series(counts.tokens.tolist(), dtype=pl.String),
        "pairs": pairs.astype(np.int64),
        "wins": wins if (wins % 1).any() else wins.astype(np.int64),
    }
    for prefix, x in (
        ("", np.zeros((len(units), 0))),
        ("equal_length_", _length_features(log_ratio)),
    ):
        names = ("win_rate", "low", "high", "p_value", "q_value")
        columns |= {
            prefix + name: found for name, found in zip(names, _rates(delta, units, x), strict=True)
        }
    frame = pl.DataFrame(columns).filter(pl.col("pairs") > 0)
    return frame.sort("equal_length_low", "token", descending=[True, False])


def _length_features(log_ratio: Floats) -> Floats:
    """B of the module docstring: the parts of Δ log length within ±½, from there to ±1, and beyond, where longer wins hardly more
    often; shape (n, 3)."""
    inner, middle = np.clip(log_ratio, -0.5, 0.5), np.clip(log_ratio, -1.0, 1.0)
    return np.column_stack([inner, middle - inner, log_ratio - middle])


def _length_weights(features: Floats) -> Floats:
    """β of P(A preferred) = σ(B β), B of shape (n, r), with half a win and half a loss of each feature added: finite for any
    data."""
    n, r = features.shape
    x, weights = (
        np.vstack([features, np.eye(r), -np.eye(r)]),
        np.append(np.ones(n), np.full(2 * r, 0.5)),
    )
    beta = np.zeros(r)
    for _ in range(NEWTON):
        miss = expit(-(x @ beta))
        curve = (x * (weights * miss * (1 - miss))[:, None]).T @ x
        beta += np.clip(
            np.linalg.solve(curve + 1e-9 * np.eye(r), x.T @ (weights * miss)), -1.0, 1.0
        )
    return np.asarray(beta)


def _rates(
    delta: sp.csr_array, units: Ints, x: Floats
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """σ(θ) of each type, its interval, p and q, shape (|S|,), given B = x, shape (n, r); without columns, rates as they are."""
    n, n_types = delta.shape
    offset = x @ _length_weights(x)
    pair, types, sign = np.repeat(np.arange(n), np.diff(delta.indptr)), delta.indices, delta.data
    weight = np.abs(sign)
    theta = np.zeros(n_types)  # Σ δ σ(−(offset + θ δ)) + ½ − σ(θ) = 0 of each type, by Newton
    for _ in range(NEWTON):
        wrong, half = expit(-(offset[pair] + theta[types] * np.sign(sign))), expit(theta)
        slope = np.bincount(types, sign * wrong, n_types) + 0.5 - half
        curve = np.bincount(types, weight * wrong * (1 - wrong), n_types) + half * (1 - half)
        step = np.clip(slope / curve, -1.0, 1.0)
        theta += step
        if float(np.abs(step).max(initial=0.0)) < 1e-9:
            break
    miss = expit(-offset)
    spread = miss * (1 - miss)
    lean = np.asarray(
        sp.csr_array((sign * spread[pair], types, delta.indptr), shape=delta.shape).T @ x
    )
    k = np.linalg.solve((x * spread[:, None]).T @ x + 1e-9 * np.eye(x.shape[1]), lean.T).T
    information = np.bincount(types, weight * spread[pair], n_types) - (k * lean).sum(axis=1)
    scores = sum_by_group(
        sp.csr_array((sign * miss[pair], types, delta.indptr), shape=delta.shape), units
    )
    common = np.zeros((scores.shape[0], x.shape[1]))
    np.add.at(common, np.unique(units, return_inverse=True)[1], x * miss[:, None])
    total, reach, plain, fourth, units_with = _moments(scores)
    second = (
        plain
        - 2 * (k * (scores.T @ common)).sum(axis=1)
        + ((k @ (common.T @ common)) * k).sum(axis=1)
    )
    second = np.maximum(second, 1e-9 * plain)
    p = _flipped_p(total, reach, second, fourth, units_with)
    pairs, q = np.bincount(types, weight, n_types), np.ones(n_types)
    q[pairs > 0] = false_discovery(p[pairs > 0][:, None])[:, 0]
    # Kish's design effect of the units, as in `Share.over`, from what is left of each pair at the estimate
    left = sign * expit(-(offset[pair] + theta[types] * np.sign(sign)))
    of_units = sum_by_group(sp.csr_array((left, types, delta.indptr), shape=delta.shape), units)
    grouped, degrees = (
        units_with < np.bincount(types, minlength=n_types),
        np.maximum(units_with - 1, 1),
    )
    together, alone = (
        np.bincount(of_units.indices, of_units.data**2, n_types),
        np.bincount(types, left**2, n_types),
    )
    design = np.maximum(together / np.maximum(alone, 1e-300) * units_with / degrees, 1.0)
    design = np.where(grouped, design, 1.0)
    size, t = (
        np.maximum(4 * information / design, 1e-3),
        np.where(grouped, stdtrit(degrees, 1 - LEVEL / 2), Z95),
    )
    rate = np.clip(
        (expit(theta) * (pairs + 1) - 0.5) / np.maximum(pairs, 1), 0.0, 1.0
    )  # wins of the pairs
    middle, spare = rate + t**2 / (2 * size), 1 + t**2 / size
    half = t * np.sqrt(rate * (1 - rate) / size + t**2 / (4 * size**2))
    low, high = agreeing(
        expit(theta) - 0.5, (middle - half) / spare - 0.5, (middle + half) / spare - 0.5, p
    )
    return expit(theta), 0.5 + low, 0.5 + high, p, q


def _flipped_p(total: Floats, reach: Floats, second: Floats, fourth: Floats, units: Ints) -> Floats:
    """Two-sided p of Σ D_u when every D_u may as well have the other sign, shape (|S|,).

    The symmetric curve on a bounded range (Pearson II) with the moments above; where that range is shorter than ±Σ |D_u|, as where
    one unit outweighs the others, the normal curve, which bounds the tail but for a factor (Hoeffding 1963); and never less than
    2^{1−m}, the smallest p that m units can give.
    """
    flat = second <= 0
    var = np.where(flat, 1.0, second)
    crowd = np.clip(np.where(flat, 1.0, fourth / var**2), 1e-12, 0.99)
    shape, end = (3 / crowd - 3) / 2, np.sqrt(var * (3 / crowd - 2))
    normal = 2 * ndtr(-np.abs(total) / np.sqrt(var))
    curve = 2 * betaincc(shape, shape, (np.minimum(np.abs(total) / end, 1.0) + 1) / 2)
    p = np.where((crowd < 1e-5) | (end < reach), normal, curve)
    least = np.exp2(1.0 - np.minimum(units, 1000))
    return np.asarray(np.where(flat, 1.0, np.clip(np.maximum(p, least), 0.0, 1.0)))


def _moments(flips: sp.csr_array) -> tuple[Floats, Floats, Floats, Floats, Ints]:
    """Σ D, Σ |D|, Σ D², Σ D⁴ of each type, shape (|S|,), and how many D_u are not zero."""
    flips.eliminate_zeros()
    d, n = flips.data, flips.shape[1]
    columns = (
        np.bincount(flips.indices, x, n).astype(np.float64) for x in (d, np.abs(d), d**2, d**4)
    )
    first, size, second, fourth = columns
    return first, size, second, fourth, np.bincount(flips.indices, minlength=n).astype(np.int64)


def _column(x: Any) -> Floats:
    return np.asarray(x, dtype=np.float64).reshape(-1, 1)
