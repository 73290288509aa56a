"""Intervals and tests for what a token type does in one class against another, from sums over
documents.

Documents are the independent units.

**Mean share of a class** (`GroupSums.mean_interval`). The variance of a document's share is φ μ,
with the dispersion φ = variance/mean, and the interval inverts the score test (Wilson 1927; for
Poisson totals Rao 1948), as Wald's is far too short for few documents:

    { μ : |m − μ| ≤ t √(φ μ/n) }  =  m + t²φ/2n ± t √(φ m/n + t²φ²/4n²)

A class lends its own φ as far as it has events; one event from all classes together, in units of
the class's mean of 1/T, is added, so that a class without any has an upper limit of about t² events
and one of shorter documents a wider one.

**Differences** (`combined`): "method of variance estimates recovery", MOVER (Newcombe 1998, method
10; Zou & Donner 2008). **Shares of occurrences** (`share_interval`): Wilson's interval on an
effective number of documents. **Test** (`permutation_p`): the exact first three moments under
relabelling, a Pearson III tail, corrected for lengths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammainc, gammaincc, ndtr, ndtri, stdtrit

from tokensieve.arrays import Floats, Ints
from tokensieve.evidence.sums import TokenSums
from tokensieve.wording import percent

LEVEL = 0.05  # of p- and q-values; intervals hold with probability 1 − LEVEL
Z95 = float(ndtri(1 - LEVEL / 2))
# Degrees of freedom that a type has beyond its documents, because its dispersion is estimated with
# an event of all groups. benchmarks/intervals.py: coverage is then 94 to 99 %, and up to 100 % in
# fewer than five documents.
EXTRA_DEGREES = 3.0
MIN_WEIGHT = 0.05  # of what documents of one class alone weigh; units of both classes lower it
ROUNDING = 1e-12  # of Σx²: a smaller M_2 is a type with the same x in every document
MIN_SKEWNESS = 1e-5  # below it a Pearson III curve is the normal curve to double precision
MIN_Z = 0.2  # in a test-based limit; a smaller z, p > 0.84, would put it far beyond any interval


@dataclass(frozen=True)
class Interval:
    """An estimate with the ends of its 95 % interval, three arrays of one shape."""

    estimate: Floats
    low: Floats
    high: Floats

    def __neg__(self) -> Interval:
        return Interval(-self.estimate, -self.high, -self.low)

    @staticmethod
    def concatenate(parts: Sequence[Interval], axis: int) -> Interval:
        """Several intervals behind one another along an axis."""
        return Interval(
            np.concatenate([part.estimate for part in parts], axis=axis),
            np.concatenate([part.low for part in parts], axis=axis),
            np.concatenate([part.high for part in parts], axis=axis),
        )


@dataclass(frozen=True)
class GroupSums:
    """Sums over the documents of G groups, of the shares x = c/T of |S| types.

    Attributes:
        shares, squared_shares: Σ x and Σ x², shape (types, G).
        n_documents: shape (G,).
        inverse_lengths: Σ 1/T, shape (G,); its mean is the weight of one occurrence.
    """

    shares: Floats
    squared_shares: Floats
    n_documents: Floats
    inverse_lengths: Floats

    @classmethod
    def of_classes(cls, sums: TokenSums) -> GroupSums:
        """The classes of some documents as groups."""
        return cls(sums.first, sums.second, sums.sizes, sums.inverse)

    @staticmethod
    def concatenate(parts: Sequence[GroupSums]) -> GroupSums:
        """The groups of several sums over the same types, one after the other."""
        return GroupSums(
            np.concatenate([part.shares for part in parts], axis=1),
            np.concatenate([part.squared_shares for part in parts], axis=1),
            np.concatenate([part.n_documents for part in parts]),
            np.concatenate([part.inverse_lengths for part in parts]),
        )

    def against_rest(self, group: int) -> GroupSums:
        """Two groups: all others together, and this one."""

        def split(sums: Floats) -> Floats:
            return np.stack([sums.sum(axis=-1) - sums[..., group], sums[..., group]], axis=-1)

        return GroupSums(
            split(self.shares),
            split(self.squared_shares),
            split(self.n_documents),
            split(self.inverse_lengths),
        )

    def dispersion(self) -> Floats:
        """φ = variance/mean of a document's share in each group, shape (types, G)."""
        n = np.maximum(self.n_documents, 1.0)
        mean_inverse_length = self.inverse_lengths / n
        squares = np.maximum(self.squared_shares - self.shares**2 / n, 0.0)
        squares = squares * n / np.maximum(n - 1, 1.0)

        # one event from all groups together, in units of the group's mean of 1/T
        weight = (self.shares * mean_inverse_length).sum(axis=1, keepdims=True)
        weight[weight == 0] = 1.0
        event = self.squared_shares.sum(axis=1, keepdims=True) / weight * mean_inverse_length
        event_dispersion = squares.sum(axis=1, keepdims=True) / weight * mean_inverse_length

        total = self.shares + event
        return np.asarray((squares + event * event_dispersion) / np.where(total > 0, total, 1.0))

    def mean_interval(self, documents: Ints) -> Interval:
        """Mean share of each group with its score interval (module docstring), shape (types, G).

        `documents` of all groups contain each type, shape (types,).
        """
        n = np.maximum(self.n_documents, 1.0)
        mean = self.shares / n
        t = quantile(documents[:, None], self.n_documents)
        step = t**2 * self.dispersion() / (2 * n)
        half = np.sqrt(step * (2 * mean + step))
        return Interval(mean, np.maximum(mean + step - half, 0.0), mean + step + half)


@dataclass(frozen=True)
class Occurrences:
    """Occurrences of |S| types inside and outside C classes, each array of shape (types, C).

    Attributes:
        inside, outside: Σ c over the documents of the class and over the others.
        squares_inside, squares_outside: Σ c² over the same.
        shared: Σ_u c_in c_out where documents inside and outside belong together in units u.
    """

    inside: Floats
    outside: Floats
    squares_inside: Floats
    squares_outside: Floats
    shared: Floats | float = 0.0


def quantile(documents: Ints, sizes: Floats | None = None) -> Floats:
    """Student's two-sided 95 % quantile t for each type.

    Degrees of freedom are counted by the documents that contain the type, because only they show
    its dispersion: `documents` + EXTRA_DEGREES, but below the size of the group, and at least one.

    Args:
        documents: how many contain each type.
        sizes: documents of each group, of a shape that broadcasts with `documents`; without
            limit if None.
    """
    degrees = documents + EXTRA_DEGREES
    if sizes is not None:
        degrees = np.minimum(degrees, sizes - 1)
    values, positions = np.unique(np.maximum(degrees, 1.0), return_inverse=True)
    quantiles: Floats = stdtrit(values, 1 - LEVEL / 2)[positions].reshape(degrees.shape)
    return quantiles


def combined(weights: Floats, means: Interval) -> Interval:
    """Σ_j a_j μ_j with its MOVER interval, shape (types, C), from independent means (types, G).

    Each end uses the distances to those ends of the means' intervals that lie on its side; weights
    a have shape (G, C).
    """
    positive = np.maximum(weights, 0.0) ** 2
    negative = np.minimum(weights, 0.0) ** 2
    below = (means.estimate - means.low) ** 2
    above = (means.high - means.estimate) ** 2
    estimate = means.estimate @ weights
    return Interval(
        estimate,
        estimate - np.sqrt(below @ positive + above @ negative),
        estimate + np.sqrt(above @ positive + below @ negative),
    )


def agreeing(interval: Interval, p: Floats) -> Interval:
    """The interval, with zero excluded exactly where p < LEVEL.

    Where interval and test disagree about zero, the end next to it becomes the test-based limit,
    estimate · (1 − z_0.975/z_p) (Miettinen 1976), which lies beyond zero exactly where p ≥ LEVEL.
    All arrays have the same shape.
    """
    estimate = interval.estimate
    excludes_zero = p < LEVEL
    tiny = 1e-300  # p of 0 has no finite z
    z = np.maximum(-ndtri(np.maximum(p, tiny) / 2), MIN_Z)
    limit = estimate * (1 - Z95 / z)
    move_low = (estimate > 0) & ((interval.low > 0) != excludes_zero)
    move_high = (estimate < 0) & ((interval.high < 0) != excludes_zero)
    low = np.where(move_low, limit, interval.low)
    high = np.where(move_high, limit, interval.high)
    return Interval(estimate, np.minimum(low, estimate), np.maximum(high, estimate))


def share_interval(occurrences: Occurrences, t: Floats) -> Interval:
    """2P − 1 for the share P of a type's occurrences that fall into a class, between −1 and 1.

    With A occurrences inside, B outside and N = A + B, P = A/N. The interval is Wilson's, with N
    replaced by N/w; for a type in no document it is 0, −1 and 1. To first order

        Var P̂ = ((1−P)² Σ_in c² + P² Σ_out c²)/N² = P(1−P) w/N,   w = (1−P) Σ_in c²/A + P Σ_out
        c²/B

    where P and each ratio are taken with one typical document more. Where documents inside and
    outside belong together in units, c is the sum over a unit, and w is less by 2 Σ_u c_in c_out/N.
    Quantiles t are broadcast against the occurrences.
    """
    total = occurrences.inside + occurrences.outside
    occurs = total > 0
    share = np.where(occurs, occurrences.inside / np.where(occurs, total, 1.0), 0.5)
    n = total / _mean_weight(occurrences)
    centre = (n * share + t**2 / 2) / (n + t**2)
    half = t / (n + t**2) * np.sqrt(n * share * (1 - share) + t**2 / 4)
    return Interval(
        2 * share - 1,
        np.clip(2 * (centre - half) - 1, -1, 1),
        np.clip(2 * (centre + half) - 1, -1, 1),
    )


def _mean_weight(occurrences: Occurrences) -> Floats:
    """w of `share_interval`: how many occurrences weigh as much as one independent document.

    A type that occurs once a document has w = 1. One typical document, with Σc²/Σc occurrences, is
    added to each sum, half of it on either side for P, so that no ratio is 0/0.
    """
    in_class = occurrences.inside
    in_others = occurrences.outside
    total = in_class + in_others
    squares = occurrences.squares_inside + occurrences.squares_outside
    typical = np.where(total > 0, squares / np.where(total > 0, total, 1.0), 1.0)
    p = (in_class + typical / 2) / (total + typical)
    ratio_inside = (occurrences.squares_inside + typical**2) / (in_class + typical)
    ratio_outside = (occurrences.squares_outside + typical**2) / (in_others + typical)
    weight = (1 - p) * ratio_inside + p * ratio_outside
    shared = 2 * occurrences.shared / (total + typical)
    return np.asarray(np.maximum(weight - shared, MIN_WEIGHT * weight))


@dataclass(frozen=True)
class RelabelledSum:
    """Sums over the documents of a class, and moments if labels are exchanged, shape (types, C).

    Those of independent strata add up.

    Attributes:
        deviation: the sum less its mean.
        room_below, room_above: from the mean to the smallest and the largest sum.
        variance, third: second and third central moment.
        corrected_variance: for classes whose documents differ in length.
    """

    deviation: Floats
    room_below: Floats
    room_above: Floats
    variance: Floats
    third: Floats
    corrected_variance: Floats

    def __add__(self, other: RelabelledSum) -> RelabelledSum:
        return RelabelledSum(
            self.deviation + other.deviation,
            self.room_below + other.room_below,
            self.room_above + other.room_above,
            self.variance + other.variance,
            self.third + other.third,
            self.corrected_variance + other.corrected_variance,
        )

    @classmethod
    def of_stratum(cls, sums: TokenSums, columns: Ints, weight: float) -> RelabelledSum:
        """weight · Σ x over the documents of each wanted class, in one set of documents.

        With M_j = Σ(x − x̄)^j and m of the n documents drawn:

            Var = m(n−m)/(n(n−1)) M_2,     third central moment = m(n−m)(n−2m)/(n(n−1)(n−2)) M_3
        """
        n = sums.documents
        m = sums.sizes[columns]
        power_sums = sums.powers
        s1 = power_sums.first
        s2 = power_sums.second
        second_moment = np.maximum(s2 - s1**2 / n, 0.0)
        second_moment = np.where(second_moment > ROUNDING * s2, second_moment, 0.0)
        third_moment = power_sums.third - 3 * s1 * s2 / n + 2 * s1**3 / n**2

        mean = s1 * m / n
        drawn = m * (n - m) / (n * max(n - 1, 1))
        variance = weight**2 * drawn * second_moment
        return cls(
            deviation=weight * (sums.first[:, columns] - mean),
            room_below=weight * mean,
            room_above=weight * (s1 - mean),
            variance=variance,
            third=weight**3 * drawn * (n - 2 * m) / max(n - 2, 1) * third_moment,
            corrected_variance=variance * np.maximum(_excess_variance(sums, columns), 1.0),
        )

    def p_value(self) -> Floats:
        """Two-sided p of the deviation: a Pearson III curve with these moments.

        The curve ends at 2/|skewness| standard deviations on its thin side, which a few documents
        with a very large x can move inside the sums that relabelling reaches. There |skewness| is
        held to that of a Poisson count whose zero lies at the end of the reachable sums.
        """
        is_constant = ~(self.variance > 0)
        deviation = np.where(is_constant, 1.0, np.sqrt(self.variance))
        z = self.deviation / np.where(is_constant, np.inf, np.sqrt(self.corrected_variance))
        skewness = np.where(is_constant, 0.0, self.third / deviation**3)
        with np.errstate(divide="ignore"):
            skewness_below = np.minimum(skewness, deviation / self.room_below)
            skewness_above = np.maximum(skewness, -deviation / self.room_above)
        upper = _upper_tail(z, skewness_above)
        lower = _upper_tail(-z, -skewness_below)
        p = np.clip(2 * np.minimum(upper, lower), 0.0, 1.0)
        return np.asarray(np.where(is_constant, 1.0, p))


def permutation_p(
    strata: Sequence[TokenSums], columns: Ints, weights: Sequence[float] = (1.0,)
) -> Floats:
    """Two-sided p of Σ_strata weight · Σ_{X of class k} x_X under random relabelling, shape (|S|,
    C).

    Class sizes stay as they are. A stratum is a set of documents within which labels are exchanged;
    `columns` are the classes that are wanted, shape (C,).
    """
    parts = [
        RelabelledSum.of_stratum(sums, columns, weight)
        for sums, weight in zip(strata, weights, strict=True)
    ]
    return reduce(add, parts).p_value()


def _excess_variance(sums: TokenSums, columns: Ints) -> Floats:
    """The variance of a sum beyond that under relabelling, where classes differ in length, shape
    (C,).

    The share of a type with rate r varies as r/T. Relabelling sees Σ 1/T · r/(m(n − m)) where the
    truth is Σ_in 1/T · r/m² + Σ_out 1/T · r/(n − m)²: a rare class of short documents varies more.
    Without this excess, such a class gives p < 0.05 to every fifth type of equal rates. Callers
    hold it to at least 1, so that p only grows.
    """
    m = sums.sizes[columns]
    inverse_inside = sums.inverse[columns]
    inverse_total = sums.inverse.sum()
    n_inside = np.maximum(m, 1.0)
    n_outside = np.maximum(sums.documents - m, 1.0)
    inverse_outside = inverse_total - inverse_inside
    weighted = inverse_inside * n_outside / n_inside + inverse_outside * n_inside / n_outside
    return np.asarray(weighted / (inverse_total or 1.0))


def _upper_tail(z: Floats, skewness: Floats) -> Floats:
    """P(Z > z) of the Pearson III curve with mean 0, variance 1 and the given skewness.

    It is a gamma curve of shape 4/skewness².
    """
    is_normal = np.abs(skewness) < MIN_SKEWNESS
    divisor = np.where(is_normal, 1.0, skewness)
    shape = 4 / divisor**2
    x = np.maximum(shape + 2 * z / divisor, 0.0)
    tail = np.where(skewness > 0, gammaincc(shape, x), gammainc(shape, x))
    return np.asarray(np.where(is_normal, ndtr(-z), tail))


def false_discovery(p: Floats, n_tests: int | None = None) -> Floats:
    """Benjamini–Hochberg q-values of each column of p, shape (m, C).

    Those of `scipy.stats.false_discovery_control`, to the bit; importing scipy.stats takes 0.7 s of
    processor time, which every command would pay.

    Args:
        p: p-values.
        n_tests: the number of tests, of which these are the smallest; m if None.
    """
    n_tests = len(p) if n_tests is None else n_tests
    largest_first = np.argsort(p, axis=0)[::-1]
    n_as_small = np.arange(len(p), 0, -1.0)[:, None]
    q = np.take_along_axis(p, largest_first, axis=0) * (n_tests / n_as_small)
    q = np.clip(np.minimum.accumulate(q, axis=0), 0, 1)
    in_order = np.empty_like(q)
    np.put_along_axis(in_order, largest_first, q, axis=0)
    return in_order


@dataclass(frozen=True)
class Share:
    """A fraction of documents with its 95 % interval (Wilson's, over groups if they are known).

    Attributes:
        found, of: the documents counted, and out of how many.
        value, low, high: between 0 and 1.
    """

    found: int
    of: int
    value: float
    low: float
    high: float

    @classmethod
    def count(cls, found: int, of: int) -> Share:
        """`found` of `of` documents."""
        found = int(found)  # as files can hold them, not as NumPy counts
        of = int(of)
        if of == 0:
            return cls(0, 0, 0.0, 0.0, 1.0)
        return cls(found, of, found / of, *_wilson(found / of, of, Z95))

    @classmethod
    def over(cls, correct: ArrayLike, units: Ints | None) -> Share:
        """Fraction of documents (or pairs) that are correct; those of one group are not
        independent.

            V = U/(U − 1) Σ_u (Σ_{i∈u} (x_i − x̄))² / n²      D = max(n V / (x̄ (1 − x̄)), 1)

        The interval is Wilson's with n/D. V is the cluster-robust variance of a mean (Liang & Zeger
        1986; as a ratio of unit sums, Cochran 1977, section 9A.3), D Kish's design effect (Korn &
        Graubard 1998), the quantile Student's with U − 1 degrees. Where all are 0, or all 1, no
        variance can be seen, and the groups are counted: n/D = U.

        Args:
            correct: 1, 0 or ½ for each.
            units: the group of each, or None.
        """
        x = np.asarray(correct, dtype=np.float64)
        n = len(x)
        total = round(float(x.sum()))
        if units is None or not n:
            return cls.count(total, n)
        mean = float(np.mean(x))
        unit_of_each = np.unique(units, return_inverse=True)[1]
        unit_sums = np.asarray(np.bincount(unit_of_each, x - mean), dtype=np.float64)
        n_units = len(unit_sums)
        if n_units == n:
            return cls(total, n, mean, *_wilson(mean, n, Z95))
        design = _design_effect(unit_sums, mean, n)
        t = float(stdtrit(max(n_units - 1, 1), 1 - LEVEL / 2))
        return cls(total, n, mean, *_wilson(mean, n / design, t))

    def __str__(self) -> str:
        return f"{percent(self.value)} (95% CI {percent(self.low)} to {percent(self.high)})"

    @property
    def as_counts(self) -> str:
        """The fraction as counts, such as "107 of 1,110"."""
        return f"{self.found:,} of {self.of:,}"

    def to_dict(self) -> dict[str, float]:
        """All of it, as JSON values."""
        return asdict(self)


def _design_effect(unit_sums: Floats, mean: float, n: int) -> float:
    """D of `Share.over`, from the sums of x − x̄ over each unit."""
    n_units = len(unit_sums)
    chance_variance = mean * (1 - mean) * n
    if chance_variance <= 0:
        return n / n_units
    variance = n_units / max(n_units - 1, 1) * float(unit_sums @ unit_sums)
    return max(variance / chance_variance, 1.0)


def wilson(share: Floats, n: Floats, t: float | Floats = Z95) -> Interval:
    """Wilson's 95% interval of each share, or one at another quantile.

    Args:
        share: fractions from 0 to 1, of any shape.
        n: how many independent documents each share is of (not necessarily whole), broadcast to it.
        t: the quantile of the normal distribution, or of Student's t for few groups.
    """
    centre = share + t**2 / (2 * n)
    half = t * np.sqrt(share * (1 - share) / n + t**2 / (4 * n**2))
    shrink = 1 + t**2 / n
    return Interval(share, (centre - half) / shrink, (centre + half) / shrink)


def _wilson(share: float, n: float, t: float) -> tuple[float, float]:
    """The interval of one share, which rounding must not push out of [0, 1] or off the share."""
    interval = wilson(np.asarray(share), np.asarray(n), t)
    low = np.clip(interval.low, 0.0, share)
    high = np.clip(interval.high, share, 1.0)
    return float(low), float(high)
