"""Fractions of documents with their intervals."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from tokensieve.evidence.intervals import LEVEL, Z95
from tokensieve.text.counts import Ints
from tokensieve.wording import percent


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
        return cls(found, n, mean, *_wilson(mean, n / design, float(stdtrit(max(u - 1, 1), 1 - LEVEL / 2))))

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
