"""Fractions of documents with their intervals."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tokensieve.evidence.intervals import clustered_share
from tokensieve.text.counts import Ints
from tokensieve.wording import percent


@dataclass(frozen=True)
class Share:
    """A fraction of documents with its 95 % interval (Wilson's; over groups where they are known).

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
        if of == 0:
            return cls(0, 0, 0.0, 0.0, 1.0)
        from scipy.stats import binomtest  # takes half a second to import

        ends = binomtest(found, of).proportion_ci(method="wilson")
        return cls(found, of, found / of, float(ends.low), float(ends.high))

    @classmethod
    def over(cls, correct: Any, units: Ints | None) -> Share:
        """Fraction of documents (or pairs) that are correct, the interval over groups if there are any (`clustered_share`).

        Args:
            correct: 1, 0 or ½ for each, shape (n,).
            units: the group of each, shape (n,), or None.
        """
        x = np.asarray(correct, dtype=np.float64)
        if units is None or not len(x):
            return cls.count(round(float(x.sum())), len(x))
        return cls(round(float(x.sum())), len(x), *clustered_share(x, units))

    def __str__(self) -> str:
        return f"{percent(self.value)} (95% CI {percent(self.low)} to {percent(self.high)})"

    @property
    def counted(self) -> str:
        """Such as 107 of 1,110."""
        return f"{self.found:,} of {self.of:,}"

    def to_dict(self) -> dict[str, float]:
        """All of it, as JSON values."""
        return asdict(self)
