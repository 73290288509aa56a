"""Two predictions of the same items compared: was the difference in accuracy more than chance?

Both models see the same test items, so their accuracies rise and fall together, and intervals of
each say little about the difference. What tells are the items that only one of them predicts
correctly.

**Test** (`sign_flip_p`). If neither model is better, each unit's difference d_u (a unit is an item,
or a group of items that belong together) is as likely −d_u. The p-value is the exact probability
that the sum of randomly signed |d_u| is as far from zero as the observed one. With single items it
is McNemar's exact test (1947), a binomial; with groups, the exact form of Obuchowski's (1998).

**Interval** (`difference_interval`). Tango's score interval (1998) of the difference of two paired
proportions from n items, b correct only before and c only after. With groups, all three are divided
by the design effect, the variance of the difference over groups in units of that over single items.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from tokensieve.arrays import Floats, Ints
from tokensieve.evidence.intervals import LEVEL, Z95

HALVES = 2  # a tie counts ½, hence differences are whole numbers of halves
MAX_ABS_DIFFERENCE = 1 - 1e-9  # the score is not defined at ±1
N_HALVINGS = 50  # of an interval of length 2: to 2e-15


@dataclass(frozen=True)
class PairedDifference:
    """How the accuracy on the same items changed.

    Attributes:
        n: items.
        before, after: fraction predicted correctly by each model.
        only_before, only_after: items that only one of them predicts correctly (a tie is half).
        low, high: 95% interval of after − before; it contains 0 exactly where p ≥ 0.05.
        p_value: of no difference.
    """

    n: int
    before: float
    after: float
    only_before: float
    only_after: float
    low: float
    high: float
    p_value: float

    @property
    def change(self) -> float:
        """after − before."""
        return self.after - self.before

    @property
    def is_significant(self) -> bool:
        """Whether the change is more than chance (p < 0.05)."""
        return self.p_value < LEVEL

    @classmethod
    def of(
        cls, right_before: Floats, right_after: Floats, units: Ints | None = None
    ) -> PairedDifference:
        """Compares two models item by item.

        Args:
            right_before, right_after: 1 for each item predicted correctly, ½ for a tie, else 0.
            units: the group of each item; None if items are independent.
        """
        n = len(right_before)
        if n == 0:
            return cls(0, np.nan, np.nan, 0, 0, -1.0, 1.0, 1.0)
        difference = np.asarray(right_after - right_before, dtype=np.float64)
        if units is None:
            unit_sums = difference
            design_effect = 1.0
            quantile = Z95
        else:
            _, places = np.unique(units, return_inverse=True)
            unit_sums = np.asarray(np.bincount(places, difference), dtype=np.float64)
            design_effect = _design_effect(difference, unit_sums, np.bincount(places))
            quantile = float(stdtrit(max(len(unit_sums) - 1, 1), 1 - LEVEL / 2))
        return cls._from_sums(
            n=n,
            before=float(np.mean(right_before)),
            after=float(np.mean(right_after)),
            only_before=float(-difference[difference < 0].sum()),
            only_after=float(difference[difference > 0].sum()),
            p_value=sign_flip_p(unit_sums),
            interval=difference_interval(
                n / design_effect,
                float(-difference[difference < 0].sum()) / design_effect,
                float(difference[difference > 0].sum()) / design_effect,
                quantile,
            ),
        )

    @classmethod
    def of_counts(
        cls, n: int, n_before: float, only_before: int, only_after: int
    ) -> PairedDifference:
        """Compares two models by how many of n independent items each predicts correctly."""
        if n == 0:
            return cls.of(np.zeros(0), np.zeros(0))
        before = n_before / n
        differences = np.repeat([-1.0, 1.0], [only_before, only_after])
        return cls._from_sums(
            n=n,
            before=before,
            after=before + (only_after - only_before) / n,
            only_before=only_before,
            only_after=only_after,
            p_value=sign_flip_p(differences),
            interval=difference_interval(n, only_before, only_after),
        )

    @classmethod
    def _from_sums(
        cls,
        n: int,
        before: float,
        after: float,
        only_before: float,
        only_after: float,
        p_value: float,
        interval: tuple[float, float],
    ) -> PairedDifference:
        """The comparison, its interval moved where it contradicts the exact test about zero."""
        low, high = interval
        # the test is exact and the interval is not: where they disagree about 0, the test decides
        if p_value >= LEVEL:
            low, high = min(low, 0.0), max(high, 0.0)
        elif after > before:
            low = max(low, np.nextafter(0.0, 1.0))
        else:
            high = min(high, np.nextafter(0.0, -1.0))
        return cls(n, before, after, only_before, only_after, float(low), float(high), p_value)

    def to_dict(self) -> dict[str, float]:
        """An entry of summary.json."""
        return {
            "items": self.n,
            "before": self.before,
            "after": self.after,
            "only_before": self.only_before,
            "only_after": self.only_after,
            "change": self.change,
            "low": self.low,
            "high": self.high,
            "p_value": self.p_value,
        }


def sign_flip_p(unit_sums: Floats) -> float:
    """The exact two-sided p-value of Σ d_u under random signs of the d_u, which are multiples of ½.

    The distribution of the sum is a convolution of one binomial for each size |d_u|.
    """
    halves = np.rint(HALVES * np.asarray(unit_sums)).astype(np.int64)
    sizes, counts = np.unique(np.abs(halves[halves != 0]), return_counts=True)
    observed = abs(int(halves.sum()))
    # of the sum shifted to start at 0 and in steps of 2: Σ (size · number of positive signs)
    distribution = np.ones(1)
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        stretched = np.zeros(size * count + 1)
        stretched[::size] = coin_tosses(count)
        distribution = np.convolve(distribution, stretched)
    total = int((sizes * counts).sum())
    sums = 2 * np.arange(len(distribution)) - total
    return min(1.0, float(distribution[np.abs(sums) >= observed].sum()))


def coin_tosses(n: int) -> Floats:
    """P(k heads in n tosses) of a fair coin for k = 0, …, n.

    From the most frequent number outward each probability is the one before it times
    (n − k)/(k + 1). `scipy.stats.binom.pmf` agrees to eleven digits; importing scipy.stats takes
    0.7 s.
    """
    k = np.arange(n // 2, n)
    upper = np.cumprod(np.concatenate([[1.0], (n - k) / (k + 1)]))  # k = n // 2, …, n
    weights = np.concatenate([upper[::-1][: n // 2], upper])
    return np.asarray(weights / weights.sum())


def difference_interval(
    n: float, only_before: float, only_after: float, quantile: float = Z95
) -> tuple[float, float]:
    """Tango's interval of the difference after − before of two paired proportions.

    The numbers may be fractions, as those that a design effect leaves; `quantile` is the normal
    distribution's, or Student's where there are few groups.
    """
    estimate = (only_after - only_before) / n

    def excess(difference: float) -> float:
        return _score(difference, n, only_before, only_after) - quantile

    def shortfall(difference: float) -> float:
        return _score(difference, n, only_before, only_after) + quantile

    low, high = -1.0, 1.0
    if excess(-MAX_ABS_DIFFERENCE) > 0 and excess(estimate) < 0:
        low = _root(excess, -MAX_ABS_DIFFERENCE, estimate)
    if shortfall(MAX_ABS_DIFFERENCE) < 0 and shortfall(estimate) > 0:
        high = _root(shortfall, estimate, MAX_ABS_DIFFERENCE)
    return float(low), float(high)


def _root(falling: Callable[[float], float], low: float, high: float) -> float:
    """Where a function that is positive at `low` and negative at `high` is zero, by bisection.

    `scipy.optimize.brentq` would find it, too; its import takes longer than the bisection.
    """
    for _ in range(N_HALVINGS):
        middle = (low + high) / 2
        if falling(middle) > 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _score(difference: float, n: float, only_before: float, only_after: float) -> float:
    """(estimate − difference) in standard errors, with the likeliest variance at that difference.

    With b and c the items that only the model before, or only the one after, predicts correctly, δ
    the difference and q the likeliest probability of the first kind given δ (that of the second is
    q + δ; Tango 1998):

        (c − b − nδ) / √(n (2q + δ(1 − δ)))     2n q² + ((2n + b − c)δ − b − c) q − bδ(1 − δ) = 0
    """
    linear = (2 * n + only_before - only_after) * difference - only_before - only_after
    constant = -only_before * difference * (1 - difference)
    root = np.sqrt(max(linear**2 - 8 * n * constant, 0.0))
    q = (root - linear) / (4 * n)
    variance = n * (2 * q + difference * (1 - difference))
    distance = only_after - only_before - n * difference
    if variance <= 0:
        return 0.0 if distance == 0 else float(np.copysign(np.inf, distance))
    return float(distance / np.sqrt(variance))


def _design_effect(difference: Floats, unit_sums: Floats, unit_sizes: Ints) -> float:
    """The variance of the mean difference over units, relative to that over independent items.

    At least 1: a smaller one would be chance, and the interval too short.

    Args:
        difference: after minus before for each item, shape (items,).
        unit_sums: the differences of each unit added up, shape (units,).
        unit_sizes: how many items each unit has, shape (units,).
    """
    n, n_units = len(difference), len(unit_sums)
    mean = difference.mean()
    variance_of_items = (np.square(difference).mean() - mean**2) / n
    if n_units < 2 or variance_of_items <= 0:
        return n / n_units
    residuals = unit_sums - mean * unit_sizes
    variance_of_units = n_units / (n_units - 1) * np.square(residuals).sum() / n**2
    return float(max(variance_of_units / variance_of_items, 1.0))
