"""Means of sizes with intervals.

Sizes are skewed, and Student's interval for their mean then lies too low: the truth is above it far
more often than below. Ours inverts Hall's transformation of t (1992, section 2), with γ the
skewness of the sample and k = γ/√n:

    g(T) = T + k T²/3 + k² T³/27 + k/6,        g⁻¹(y) = 3/k · (∛(1 + k (y − k/6)) − 1)

    [x̄ − s/√n · g⁻¹(t₀.₉₇₅),  x̄ − s/√n · g⁻¹(t₀.₀₂₅)]

The expansion is in powers of k, and g⁻¹ has a pole near k = 1/2: |k| is limited.

If a model is confident about nearly every input, a word has all of its effect in a few inputs and
none in the others. A sample without one of these has almost no variance, and the interval of its
mean would miss the truth. Its variance is therefore **moderated** by the mean s₀² of those of all
words (Smyth 2004, with d₀ prior degrees of freedom): s̃² = (d₀ s₀² + (n − 1) s²)/(d₀ + n − 1), with
Student's t of d₀ + n − 1 degrees.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from tokensieve.arrays import Floats, Ints
from tokensieve.evidence.intervals import LEVEL

# Both chosen by coverage on small models that no benchmark uses.
PRIOR_DEGREES = 2
# of |k| for STEADY inputs or more: beyond it, intervals widen much and cover 96 to 98 %
MAX_SKEW = 0.45
STEADY = 24  # inputs; with fewer the limit falls with √n

TINY = 1e-200  # variances of zero are no larger
SAME = 1e-9  # values that differ by less than this fraction of their size are equal


@dataclass(frozen=True)
class Interval:
    """Lower and upper ends, each of the shape of the means."""

    low: Floats
    high: Floats


def hall_interval(
    n: Ints,
    mean: Floats,
    spread: Floats,
    skewness: Floats,
    prior_degrees: int = 0,
    level: float = LEVEL,
) -> Interval:
    """Interval of means of n values, by the module's formula, at level 1 − `level`.

    Args:
        n, mean, spread, skewness: of each sample; the standard deviation may be moderated.
        prior_degrees: those that it was moderated with.
        level: chance of missing the truth.
    """
    root = np.sqrt(np.maximum(n, 1))
    largest = MAX_SKEW * np.minimum(root / np.sqrt(STEADY), 1.0)
    y = stats.t.isf(level / 2, prior_degrees + np.maximum(n - 1, 1))
    k = np.clip(skewness / root, -largest, largest)
    is_symmetric = np.abs(k) < 1e-6
    k = np.where(is_symmetric, 1.0, k)

    def end(sign: int) -> Floats:
        t = 3 / k * (np.cbrt(1 + k * (sign * y - k / 6)) - 1)
        t = np.where(is_symmetric, sign * y, t)
        return np.where(n > 1, mean - t * spread / root, -sign * np.inf)

    return Interval(end(1), end(-1))


@dataclass(frozen=True)
class Sizes:
    """Mean sizes of changes, by word: all of shape (|S|,); nan where nothing was measured.

    Attributes:
        n: changes measured.
        mean, low, high: mean size |x| with its 95 % interval.
        signed: mean of x.
    """

    n: Ints
    mean: Floats
    low: Floats
    high: Floats
    signed: Floats


def mean_sizes(words: Ints, changes: Floats, n_words: int) -> Sizes:
    """Mean sizes of the changes of each word; a change that is nan does not count.

    Args:
        words: word of each change, shape (D,).
        changes: with their sign, shape (D,).
        n_words: |S|.
    """
    is_known = np.isfinite(changes)
    words = words[is_known]
    changes = changes[is_known]
    sizes = np.abs(changes)
    n = np.bincount(words, minlength=n_words)
    divisor = np.where(n > 0, n, np.nan)
    mean = np.bincount(words, sizes, n_words) / divisor
    moments = _moments(words, sizes - mean[words], n, np.nan_to_num(mean))
    interval = hall_interval(n, mean, moments.spread, moments.skewness, PRIOR_DEGREES)
    signed = np.bincount(words, changes, n_words) / divisor
    return Sizes(n, mean, np.maximum(interval.low, 0.0), interval.high, signed)


@dataclass(frozen=True)
class _Moments:
    """Moderated standard deviation, and skewness (at least zero: sizes have no other)."""

    spread: Floats
    skewness: Floats


def _moments(words: Ints, deviation: Floats, n: Ints, mean: Floats) -> _Moments:
    """Of the sizes of each word, from their deviations from its mean."""
    degrees = np.maximum(n - 1, 1)
    variance = np.bincount(words, deviation**2, len(n)) / degrees
    third_moment = np.bincount(words, deviation**3, len(n)) / degrees
    third_moment *= n / np.maximum(n - 2, 1)  # as the variance: unbiased for the sample's size
    smallest_variance = (SAME * mean) ** 2 + TINY
    varies = variance > smallest_variance
    skewness = np.divide(third_moment, variance**1.5, out=np.zeros(len(n)), where=varies)
    return _Moments(np.sqrt(_moderated(variance, n)), np.maximum(skewness, 0.0))


def _moderated(variance: Floats, n: Ints) -> Floats:
    """s̃² of each word: its variance drawn towards the mean variance of all words."""
    has_variance = n > 1
    if not has_variance.any():
        return variance
    usual_variance = variance[has_variance].mean()
    degrees = n - 1
    all_degrees = PRIOR_DEGREES + np.maximum(degrees, 1)
    return np.asarray((PRIOR_DEGREES * usual_variance + degrees * variance) / all_degrees)
