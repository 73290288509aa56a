"""Intervals and tests for what a token type does in one class against another, from sums over documents.

Documents are the independent units.

**Mean share of a class** (`mean_interval`). The variance of a document's share is φ μ, with the dispersion φ = variance/mean,
and the interval inverts the score test (Wilson 1927; for Poisson totals Rao 1948), as Wald's is far too short for few documents:

    { μ : |m − μ| ≤ t √(φ μ/n) }  =  m + t²φ/2n ± t √(φ m/n + t²φ²/4n²)

A class lends its own φ as far as it has events; one event from all classes together, in units of the class's mean of 1/T, is
added, so that a class without any has an upper limit of about t² events and one of shorter documents a wider one.

**Differences** (`combined`): "method of variance estimates recovery", MOVER (Newcombe 1998, method 10; Zou & Donner 2008).
**Shares of occurrences** (`share_interval`): Wilson's interval on an effective number of documents.
**Test** (`permutation_p`): the exact first three moments under relabelling, a Pearson III tail, corrected for lengths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammainc, gammaincc, ndtr, ndtri, stdtrit

from tokensieve.arrays import Floats, Ints
from tokensieve.evidence.sums import TokenSums
from tokensieve.wording import percent

LEVEL = 0.05  # of p- and q-values; intervals hold with probability 1 − LEVEL
Z95 = float(ndtri(1 - LEVEL / 2))


def quantile(documents: Ints, sizes: Floats | None = None) -> Floats:
    """Student's two-sided 95 % quantile for types in this many documents, the only ones that show their dispersion.

    Three degrees of freedom are added: chosen in `benchmarks/intervals.py`, where coverage is 94 to 99 %, and up to 100 % where
    fewer than five documents contain the type. They stay below `sizes`, the documents of the group, broadcast.
    """
    degrees = documents + 3.0
    if sizes is not None:
        degrees = np.minimum(degrees, sizes - 1)
    values, which = np.unique(np.maximum(degrees, 1.0), return_inverse=True)
    out: Floats = stdtrit(values, 1 - LEVEL / 2)[which].reshape(degrees.shape)
    return out


def dispersion(first: Floats, second: Floats, sizes: Floats, inverse: Floats) -> Floats:
    """φ = variance/mean of a document's share in each group, shape (|S|, G), from Σx and Σx² over its documents, shape (|S|, G),
    their number and the mean of 1/T over them, the weight of one occurrence, shape (G,)."""
    n = np.maximum(sizes, 1.0)
    squares = np.maximum(second - first**2 / n, 0.0) * n / np.maximum(n - 1, 1.0)
    weight = (first * inverse).sum(axis=1, keepdims=True)
    weight[weight == 0] = 1.0
    event = second.sum(axis=1, keepdims=True) / weight * inverse
    pooled = squares.sum(axis=1, keepdims=True) / weight * inverse
    held = first + event
    return np.asarray((squares + event * pooled) / np.where(held > 0, held, 1.0))


def mean_interval(
    first: Floats, second: Floats, sizes: Floats, inverse: Floats, documents: Ints
) -> tuple[Floats, Floats, Floats]:
    """Mean share of each group and its score interval (module docstring), each of shape (|S|, G).

    The arguments are as for `dispersion`, but `inverse` is Σ 1/T; `documents` in all groups contain each type, shape (|S|,).
    """
    n = np.maximum(sizes, 1.0)
    phi = dispersion(first, second, sizes, inverse / n)
    mean, step = first / n, quantile(documents[:, None], sizes) ** 2 * phi / (2 * n)
    half = np.sqrt(step * (2 * mean + step))
    return mean, np.maximum(mean + step - half, 0.0), mean + step + half


def combined(
    weights: Floats, mean: Floats, low: Floats, high: Floats
) -> tuple[Floats, Floats, Floats]:
    """Σ_j a_j μ_j with its MOVER interval, each of shape (|S|, C), from independent means with theirs (`mean_interval`), (|S|, G).

    Each end uses the distances to those ends of the means' intervals that lie on its side; weights a have shape (G, C).
    """
    positive, negative = np.maximum(weights, 0.0) ** 2, np.minimum(weights, 0.0) ** 2
    below, above = (mean - low) ** 2, (high - mean) ** 2
    under, over = (
        np.sqrt(below @ positive + above @ negative),
        np.sqrt(above @ positive + below @ negative),
    )
    return mean @ weights, mean @ weights - under, mean @ weights + over


def agreeing(estimate: Floats, low: Floats, high: Floats, p: Floats) -> tuple[Floats, Floats]:
    """The interval, with zero excluded exactly where p < LEVEL.

    Where interval and test disagree about zero, the end next to it becomes the test-based limit, estimate · (1 − z_0.975/z_p)
    (Miettinen 1976), which lies beyond zero exactly where p ≥ LEVEL. All arrays have the same shape.
    """
    needed = p < LEVEL
    z = np.maximum(-ndtri(np.maximum(p, 1e-300) / 2), 0.2)
    limit = estimate * (1 - Z95 / z)
    up, down = estimate > 0, estimate < 0
    low = np.where(up & ((low > 0) != needed), limit, low)
    high = np.where(down & ((high < 0) != needed), limit, high)
    return np.minimum(low, estimate), np.maximum(high, estimate)


def share_interval(
    inside: Floats,
    outside: Floats,
    squares: tuple[Floats, Floats],
    t: Floats,
    shared: Floats | float = 0.0,
) -> tuple[Floats, Floats, Floats]:
    """2P − 1 for the share P = A/N of a type's occurrences, N = A + B, that fall into a class, with its 95 % interval in [−1,
    1]; for a type in no document 0, −1 and 1.

    Wilson's, with N replaced by N/w. To first order Var P̂ = ((1−P)² Σ_in c² + P² Σ_out c²)/N², which is P(1−P) w/N with w =
    (1−P) Σ_in c²/A + P Σ_out c²/B; P and each ratio are taken with one typical document more. Where documents inside and
    outside belong together in units, c is the sum over a unit, and w is less by 2 Σ_u c_in c_out/N (`shared`). `inside`,
    `outside` are A and B, and `squares` Σc² of both, shape (|S|, C); quantiles t are broadcast against them."""
    total = inside + outside
    seen = np.where(total > 0, total, 1.0)
    typical = np.where(total > 0, (squares[0] + squares[1]) / seen, 1.0)
    p = (inside + typical / 2) / (total + typical)
    ratios = [
        (sq + typical**2) / (n + typical) for sq, n in zip(squares, (inside, outside), strict=True)
    ]
    weight = (1 - p) * ratios[0] + p * ratios[1]
    n = total / np.maximum(weight - 2 * shared / (total + typical), 0.05 * weight)
    share = np.where(total > 0, inside / seen, 0.5)
    centre = (n * share + t**2 / 2) / (n + t**2)
    half = t / (n + t**2) * np.sqrt(n * share * (1 - share) + t**2 / 4)
    return (
        2 * share - 1,
        np.clip(2 * (centre - half) - 1, -1, 1),
        np.clip(2 * (centre + half) - 1, -1, 1),
    )


def permutation_p(
    strata: Sequence[TokenSums], columns: Ints, weights: Sequence[float] = (1.0,)
) -> Floats:
    """Two-sided p of Σ_strata weight · Σ_{X of class k} x_X under random relabelling with fixed class sizes, shape (|S|, C).

    With M_j = Σ(x − x̄)^j and m of a stratum's n documents drawn:  Var = m(n−m)/(n(n−1)) M_2,
    third central moment = m(n−m)(n−2m)/(n(n−1)(n−2)) M_3. Strata are independent, so their cumulants add up.

    A Pearson III curve ends at 2/|skewness| standard deviations on its thin side, which a few documents with a very large x
    can move inside the sums that relabelling reaches. There |skewness| is held to that of a Poisson count whose zero lies at
    the end of the reachable sums: sd/mean below (sum 0), sd/(Σx − mean) above (sum Σx).

    Documents differ in length, and the share of a type with rate r varies as r/T. Relabelling sees Σ 1/T · r/(m(n − m)) where the
    truth is Σ_in 1/T · r/m² + Σ_out 1/T · r/(n − m)²: a rare class of short documents varies more. Without this excess, such a
    class gives p < 0.05 to every fifth type of equal rates. It is never below 1, so that p only grows.

    A stratum is a set of documents within which labels are exchanged; `columns` are the classes that are wanted, shape (C,).
    """
    shape = len(strata[0].count), len(columns)
    deviation, below, above, variance, third, corrected = np.zeros((6, *shape))
    for sums, weight in zip(strata, weights, strict=True):
        n, m, inverse = sums.documents, sums.sizes[columns], sums.inverse[columns]
        s1, s2, s3 = sums.powers
        m2 = np.maximum(s2 - s1**2 / n, 0.0)
        m2 = np.where(
            m2 > 1e-12 * s2, m2, 0.0
        )  # exactly 0 for a type with the same x in every document
        m3 = s3 - 3 * s1 * s2 / n + 2 * s1**3 / n**2
        drawn = m * (n - m) / (n * max(n - 1, 1))
        mean, spread = s1 * m / n, weight**2 * drawn * m2
        deviation += weight * (sums.first[:, columns] - mean)
        below += weight * mean
        above += weight * (s1 - mean)
        variance += spread
        third += weight**3 * drawn * (n - 2 * m) / max(n - 2, 1) * m3
        inside, outside, whole = np.maximum(m, 1.0), np.maximum(n - m, 1.0), sums.inverse.sum()
        excess = (inverse * outside / inside + (whole - inverse) * inside / outside) / (
            whole or 1.0
        )
        corrected += spread * np.maximum(excess, 1.0)
    flat = ~(variance > 0)
    sd = np.where(flat, 1.0, np.sqrt(variance))
    z = deviation / np.where(flat, np.inf, np.sqrt(corrected))
    skew = np.where(flat, 0.0, third / sd**3)
    with np.errstate(divide="ignore"):
        ends = np.minimum(skew, sd / below), np.maximum(skew, -sd / above)
    p = 2 * np.minimum(_upper_tail(z, ends[1]), _upper_tail(-z, -ends[0]))
    return np.asarray(np.where(flat, 1.0, np.clip(p, 0.0, 1.0)))


def _upper_tail(z: Floats, skew: Floats) -> Floats:
    """P(Z > z) of the Pearson III curve with mean 0, variance 1 and the given skewness: a gamma curve of shape 4/skew²."""
    normal = np.abs(skew) < 1e-5
    safe = np.where(normal, 1.0, skew)
    shape = 4 / safe**2
    x = np.maximum(shape + 2 * z / safe, 0.0)
    out = np.where(skew > 0, gammaincc(shape, x), gammainc(shape, x))
    return np.asarray(np.where(normal, ndtr(-z), out))


def false_discovery(p: Floats) -> Floats:
    """Benjamini–Hochberg q-values of each column of p, shape (m, C)."""
    order = np.argsort(p, axis=0)[::-1]  # largest first
    q = np.take_along_axis(p, order, axis=0) * (len(p) / np.arange(len(p), 0, -1.0)[:, None])
    out = np.empty_like(q)
    np.put_along_axis(out, order, np.clip(np.minimum.accumulate(q, axis=0), 0, 1), axis=0)
    return out


@dataclass(frozen=True)
class Share:
    """A fraction of documents with its 95 % interval (Wilson's, computed over groups if they are known).

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
        found, of = int(found), int(of)  # as files can hold them, not as NumPy counts
        if of == 0:
            return cls(0, 0, 0.0, 0.0, 1.0)
        return cls(found, of, found / of, *_wilson(found / of, of, Z95))

    @classmethod
    def over(cls, correct: ArrayLike, units: Ints | None) -> Share:
        """Fraction of documents (or pairs) that are correct; with groups, those of one group are not independent of each other:

            V = U/(U − 1) Σ_u (Σ_{i∈u} (x_i − x̄))² / n²      D = max(n V / (x̄ (1 − x̄)), 1)      Wilson's interval with n/D

        V is the cluster-robust variance of a mean (Liang & Zeger 1986; as a ratio of unit sums, Cochran 1977, section 9A.3), D
        Kish's design effect (Korn & Graubard 1998), the quantile Student's with U − 1 degrees. Where all are 0, or all 1, no
        variance can be seen, and the groups are counted: n/D = U. `correct` is 1, 0 or ½ for each, `units` its group.
        """
        x = np.asarray(correct, dtype=np.float64)
        n, found = len(x), round(float(x.sum()))
        if units is None or not n:
            return cls.count(found, n)
        mean = float(np.mean(x))
        sums = np.bincount(np.unique(units, return_inverse=True)[1], x - mean)
        u = len(sums)
        if u == n:
            return cls(found, n, mean, *_wilson(mean, n, Z95))
        chance = mean * (1 - mean) * n
        design = max(u / max(u - 1, 1) * float(sums @ sums) / chance, 1.0) if chance > 0 else n / u
        return cls(
            found, n, mean, *_wilson(mean, n / design, float(stdtrit(max(u - 1, 1), 1 - LEVEL / 2)))
        )

    def __str__(self) -> str:
        return f"{percent(self.value)} (95% CI {percent(self.low)} to {percent(self.high)})"

    @property
    def as_counts(self) -> str:
        """Such as 107 of 1,110."""
        return f"{self.found:,} of {self.of:,}"

    def to_dict(self) -> dict[str, float]:
        """All of it, as JSON values."""
        return asdict(self)


def _wilson(share: float, n: float, t: float) -> tuple[float, float]:
    """Wilson's interval of a share among n independent documents, t the quantile."""
    centre, half = share + t**2 / (2 * n), t * np.sqrt(share * (1 - share) / n + t**2 / (4 * n**2))
    low, high = (centre - half) / (1 + t**2 / n), (centre + half) / (1 + t**2 / n)
    return float(np.clip(low, 0.0, share)), float(np.clip(high, share, 1.0))
