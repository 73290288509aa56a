"""Does what the model does with each word agree with what the data says about it?

**Importance** of type s for class k, from occurrences N and class sizes n_k in documents, with
r_k = N_{s,k}/n_k:

    I_{s,k} = (r_k − r_rest)/(r_k + r_rest) · m_s/(m_s + z²),
    m_s = (Σ_X c_{X,s})²/Σ_X c_{X,s}²,  z = 1.96

The first factor is the posterior difference under equal classes; the second is the shrinkage of
Wilson's interval (its centre), so that a word seen in few documents, whose difference is mostly
noise, does not count as important.

**Correlation**: Pearson's ρ over the |S| types, of I with signed measures, and of |I| with the
logarithm of attention (attention is the softmax of scores, so its logarithm is a score up to a
constant). With K > 2 classes the classes' columns are stacked. **Interval**: Fisher's z = artanh ρ
with variance

    1/(|S| − 3)  +  (G−1)/G Σ_g (z_(g) − z̄)²

the first for the types as a sample, the second for the documents: the jackknife that leaves out one
of G groups of documents at a time, in importance and measure alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tokensieve.arrays import Floats, Ints
from tokensieve.diagnose.effects.measuring import Measured, Removals
from tokensieve.evidence.intervals import Z95
from tokensieve.text.counts import Counts

MIN_TYPES = 5  # of fewer, a correlation has no interval
SMALLEST_ATTENTION = 1e-12  # attention of zero would have an infinite logarithm
N_SHUFFLES = 200  # random orders of the labels; 95 % of them lie inside the 5th and the 195th


@dataclass(frozen=True)
class Jackknifed:
    """A number per type of all documents, and the same without each of G groups of documents."""

    of_all: Floats
    without_group: list[Floats]

    def first_column(self) -> Jackknifed:
        """The first of several numbers per type."""
        return Jackknifed(self.of_all[:, 0], [part[:, 0] for part in self.without_group])

    @classmethod
    def constant(cls, values: Floats, n_groups: int) -> Jackknifed:
        """Numbers that do not depend on the documents."""
        return cls(values, [values] * n_groups)


Measures = dict[str, Jackknifed]
"""How a model uses each word, by measure; nan if not measured, no entry if it could not be.

`value` (prediction for the word alone), `gradient` (integrated gradients; with K > 2 classes an
input counts towards its predicted class) and `deletion` (effect of removing the word) have shape
(|S|, H), `attention` (rolled out over the layers) shape (|S|,)."""


@dataclass(frozen=True)
class Correlation:
    """Pearson's ρ (nan where one side is constant) with its 95 % interval.

    `error` is the standard error of artanh ρ.
    """

    rho: float
    low: float
    high: float
    error: float

    @classmethod
    def of(cls, importance: Jackknifed, measure: Jackknifed) -> Correlation:
        """Of importance, (|S|, H), and a measure, (|S|, H), or (|S|,) without a sign."""
        is_known = np.isfinite(measure.of_all)
        n_types = int(is_known.sum())
        rho = _pearson(importance.of_all, measure.of_all, is_known)
        z = np.array(
            [
                _fisher(
                    _pearson(importance_left, measure_left, is_known & np.isfinite(measure_left))
                )
                for importance_left, measure_left in zip(
                    importance.without_group, measure.without_group, strict=True
                )
            ]
        )
        if n_types < MIN_TYPES or not np.isfinite(rho) or not np.isfinite(z).all():
            return cls(rho, math.nan, math.nan, math.nan)
        of_documents = (len(z) - 1) / len(z) * float(np.sum((z - z.mean()) ** 2))
        error = math.sqrt(1 / (n_types - 3) + of_documents)
        centre = _fisher(rho)
        low = math.tanh(centre - Z95 * error)
        high = math.tanh(centre + Z95 * error)
        return cls(rho, low, high, error)

    def stands_out(
        self, by_chance: tuple[float, float] | None, untrained: Correlation | None
    ) -> bool:
        """Whether it is above zero, what shuffled labels reach, and the untrained model's.

        Two-sided, at the 5 % level.
        """
        highest_by_chance = by_chance[1] if by_chance else 0.0
        if self.low <= 0 or self.rho <= highest_by_chance:
            return False
        if untrained is None or not math.isfinite(untrained.rho):
            return True
        difference = _fisher(self.rho) - _fisher(untrained.rho)
        return difference > Z95 * math.hypot(self.error, untrained.error)


@dataclass(frozen=True)
class _Sums:
    """What importance is computed from: N_{s,k} (|S|, K), Σ_X c² (|S|,) and n_k (K,)."""

    class_count: Floats
    squares: Floats
    class_documents: Floats

    def _shrinkage(self) -> Floats:
        """The formula's second factor, (|S|, 1): near 1 for words of many documents."""
        squares = np.where(self.squares > 0, self.squares, 1.0)
        n_effective = self.class_count.sum(axis=1) ** 2 / squares
        return np.asarray(n_effective / (n_effective + Z95**2))[:, None]

    def minus(self, measure_left: _Sums) -> _Sums:
        return _Sums(
            self.class_count - measure_left.class_count,
            self.squares - measure_left.squares,
            self.class_documents - measure_left.class_documents,
        )

    def importance(self) -> Floats:
        """The module's formula, (|S|, H): the second class for K = 2, every class for K > 2."""
        count = self.class_count.sum(axis=1, keepdims=True)
        other_documents = self.class_documents.sum() - self.class_documents
        rate_inside = self.class_count / np.maximum(self.class_documents, 1)
        rate_outside = (count - self.class_count) / np.maximum(other_documents, 1)
        sum_of_rates = rate_inside + rate_outside
        difference = (rate_inside - rate_outside) / np.where(sum_of_rates > 0, sum_of_rates, 1.0)
        importance = difference * self._shrinkage()
        is_binary = self.class_count.shape[1] == 2
        return np.asarray(importance[:, 1:] if is_binary else importance)


class Evidence:
    """What n documents say of |S| words.

    Args:
        counts: of the documents.
        groups: group of each document, 0 … G − 1, shape (n,).
        n_groups: G.

    Attributes:
        importance: I_{s,k} of the module's formula, also without each group.
    """

    def __init__(self, counts: Counts, groups: Ints, n_groups: int) -> None:
        self._counts = counts
        self._n_groups = n_groups
        n_classes = counts.n_classes
        cell = groups * n_classes + counts.labels
        parts = _sums_by_group(counts, cell, n_groups)
        self._sums = _Sums(
            np.sum([part.class_count for part in parts], axis=0),
            np.sum([part.squares for part in parts], axis=0),
            np.sum([part.class_documents for part in parts], axis=0),
        )
        without_group = [self._sums.minus(part).importance() for part in parts]
        self.importance = Jackknifed(self._sums.importance(), without_group)

    def measures(
        self, measured: Measured, groups: Ints, removals: Removals, excluded: Ints
    ) -> Measures:
        """How a model uses each word.

        Args:
            measured: the model.
            groups: group of each of its inputs, shape (W,).
            removals: what the answers lost.
            excluded: rare words, picked by what the model does with them; they have no measures.
        """
        n_types = measured.n_types
        grouped = _GroupedMeans(self._n_groups, n_types)
        group_of_pair = groups[measured.windows]
        is_included = ~np.isin(measured.types, excluded)
        is_excluded_type = np.isin(np.arange(n_types), excluded)

        value = np.where(is_excluded_type[:, None], np.nan, measured.value)
        measures = {"value": Jackknifed.constant(value, self._n_groups)}
        if measured.method == "integrated gradients":
            measures["gradient"] = _gradient(measured, grouped, group_of_pair, is_included)
        measures["deletion"] = grouped.means(
            group_of_pair[removals.pairs], measured.types[removals.pairs], removals.lost
        )
        if measured.attention is not None:
            measures["attention"] = _attention(measured, grouped, group_of_pair, is_included)
        return measures

    def correlations(self, measures: Measures) -> dict[str, Correlation]:
        """Every measure against importance."""
        return {
            f"{name}_importance": Correlation.of(self.importance, measure)
            for name, measure in measures.items()
            if np.isfinite(measure.of_all).any()
        }

    def shuffled(self, measures: Measures, seed: int) -> dict[str, tuple[float, float]]:
        """Middle 95 % of the correlations with the importance of random orders of the labels."""
        shuffled = self._shuffled_importance(np.random.default_rng(seed))
        middle = {}
        for name, measure in measures.items():
            is_known = np.isfinite(measure.of_all)
            if not is_known.any():
                continue
            rhos = [_pearson(importance, measure.of_all, is_known) for importance in shuffled]
            low = high = math.nan
            if np.isfinite(rhos).any():
                low, high = np.nanquantile(rhos, [0.025, 0.975])
            middle[f"{name}_importance"] = (float(low), float(high))
        return middle

    def _shuffled_importance(self, rng: np.random.Generator) -> list[Floats]:
        """Importance under random orders of the labels."""
        one_hot = np.eye(self._counts.n_classes)
        importance = []
        for _ in range(N_SHUFFLES):
            labels = rng.permutation(self._counts.labels)
            class_count = np.asarray(self._counts.matrix.T @ one_hot[labels])
            sums = _Sums(class_count, self._sums.squares, self._sums.class_documents)
            importance.append(sums.importance())
        return importance


def _sums_by_group(counts: Counts, cell: Ints, n_groups: int) -> list[_Sums]:
    """The sums over the documents of each group; `cell` is group × K + class of each document."""
    n_classes = counts.n_classes
    n_cells = n_groups * n_classes
    rows = np.arange(len(cell))
    one_hot = sp.csr_array((np.ones(len(cell)), (rows, cell)), shape=(len(cell), n_cells))
    squared = counts.matrix.copy()
    squared.data = squared.data**2

    def by_group(matrix: sp.csr_array) -> Floats:
        """Sums over the documents of each group and class, (G, K, |S|)."""
        sums = np.asarray((one_hot.T @ matrix).todense(), dtype=np.float64)
        return sums.reshape(n_groups, n_classes, -1)

    class_counts = by_group(counts.matrix).transpose(0, 2, 1)
    squares = by_group(squared).sum(axis=1)
    sizes = np.bincount(cell, minlength=n_cells).reshape(n_groups, n_classes).astype(float)
    return [_Sums(class_counts[g], squares[g], sizes[g]) for g in range(n_groups)]


@dataclass(frozen=True)
class _GroupedMeans:
    """Means over documents by type, of all and without each group."""

    n_groups: int
    n_types: int

    def means(
        self, groups: Ints, types: Ints, rows: Floats, weights: Floats | None = None
    ) -> Jackknifed:
        """Of rows, (D, H), with the group and type of each; weights 1 if None.

        nan where there are none.
        """
        if weights is None:
            weights = np.ones((len(rows), 1))
        total = self._sums(groups, types, rows)
        n = np.broadcast_to(self._sums(groups, types, weights), total.shape)
        of_all = _divided(total.sum(axis=0), n.sum(axis=0))
        parts = [
            _divided(total.sum(axis=0) - total[g], n.sum(axis=0) - n[g])
            for g in range(self.n_groups)
        ]
        return Jackknifed(of_all, parts)

    def _sums(self, groups: Ints, types: Ints, rows: Floats) -> Floats:
        """Sums by group and type, (G, |S|, H)."""
        cell = groups * self.n_types + types
        n_cells = self.n_groups * self.n_types
        columns = [np.bincount(cell, column, n_cells) for column in rows.T]
        return np.stack(columns, axis=-1).reshape(self.n_groups, self.n_types, -1).astype(float)


def _gradient(
    measured: Measured,
    grouped: _GroupedMeans,
    group_of_pair: Ints,
    is_included: NDArray[np.bool_],
) -> Jackknifed:
    """Mean effect of each word by integrated gradients, on the answers that are predicted."""
    pairs = np.flatnonzero(np.isfinite(measured.effect) & is_included)
    is_predicted = np.eye(measured.outputs.heads)[measured.heads[measured.windows[pairs]]]
    effects = is_predicted * measured.effect[pairs, None]
    return grouped.means(group_of_pair[pairs], measured.types[pairs], effects, is_predicted)


def _attention(
    measured: Measured,
    grouped: _GroupedMeans,
    group_of_pair: Ints,
    is_included: NDArray[np.bool_],
) -> Jackknifed:
    """Mean attention that each word receives."""
    assert measured.attention is not None
    pairs = np.flatnonzero(is_included)
    received = measured.attention[pairs, None].astype(np.float64)
    return grouped.means(group_of_pair[pairs], measured.types[pairs], received).first_column()


def _divided(total: Floats, n: Floats) -> Floats:
    """Means; nan where n, a count, is zero."""
    return np.asarray(np.divide(total, n, out=np.full(total.shape, np.nan), where=n > 0.5))


def _pearson(importance: Floats, measure: Floats, is_known: NDArray[np.bool_]) -> float:
    """Pearson's ρ over the known types.

    Without signs, a type's importance is its largest size over classes, and the measure is taken in
    logarithms.
    """
    x = importance[is_known]
    y = measure[is_known]
    if measure.ndim == 1:
        x = np.abs(x).max(axis=1, initial=0.0)
        y = np.log(np.maximum(y, SMALLEST_ATTENTION))
    x = x - x.mean()
    y = y - y.mean()
    size = math.sqrt(float(x @ x) * float(y @ y))
    return float(x @ y) / size if size > 0 else math.nan


def _fisher(rho: float) -> float:
    """artanh ρ; finite for ρ = ±1."""
    if not math.isfinite(rho):
        return math.nan
    return math.atanh(max(min(rho, 1 - 1e-9), -1 + 1e-9))
