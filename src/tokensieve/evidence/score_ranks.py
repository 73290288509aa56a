"""What the data alone says about each token type where labels are scores: a rank statistic.

With m documents that contain type s, n that do not, and scores Y,

    effect_s = P(Y_with > Y_without) − P(Y_with < Y_without) = 2 U/(m n) − 1

where a document is drawn from each side and U is the statistic of Mann and Whitney (1947), ties
counted half. It is Cliff's δ (1993): 1 if every document with the type has a higher score than
every document without it, 0 if the type says nothing, and the same for every increasing function of
the scores.

- **p** is that of the sum of the ranks of the m documents, drawn at random without replacement, by
  a Pearson III curve with the exact mean, variance and third moment of that sum, ties included. A
  normal curve would give p far too small where most scores are equal and few are high, as of
  toxicity.
- **The interval** is Newcombe's (2006, method 5) for U/(m n), whose standard error is that of
  Hanley and McNeil (1982); it agrees with p about zero. It ignores that ties make the estimate
  less variable, so it is wide where many scores are equal: with the tie correction of the test it
  held the truth in as few as 73% of draws where nine of ten scores are 0 (benchmarks/scores.py).
- **q** is Benjamini and Hochberg's over all types.

With groups, the documents of a group are one: its score is their mean, and it contains what any of
them contains.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray

from tokensieve.arrays import Floats, Ints, sum_by_group
from tokensieve.errors import InputError
from tokensieve.evidence.importance import Tokens
from tokensieve.evidence.intervals import (
    LEVEL,
    Z95,
    Interval,
    RelabelledSum,
    agreeing,
    false_discovery,
)
from tokensieve.text.counts import Counts

HALVINGS = 50  # of [0, 1], until the ends of an interval are exact to rounding
# |effect| whose interval lies within it says nothing about the score: a document with the type is
# the higher one in 45 to 55% of the comparisons
MAX_IRRELEVANT_EFFECT = 0.1


@dataclass(frozen=True)
class ScoreImportance:
    """Statistics of |S| types; all arrays have shape (types,).

    Attributes:
        tokens: the types as text.
        documents: documents (with groups, groups) that contain the type.
        mean_with, mean_without: mean score of the documents that contain the type, and of the
            others; NaN if there are none.
        effect: P(higher with the type) − P(lower with it), in [−1, 1]; 0 where nothing can be
            compared.
        effect_interval: its 95% interval; it excludes zero if and only if p < 0.05.
        p_value: two-sided, against "scores do not depend on the type".
        q_value: Benjamini–Hochberg over all types.
    """

    tokens: Tokens
    documents: Ints
    mean_with: Floats
    mean_without: Floats
    effect: Floats
    effect_interval: tuple[Floats, Floats]
    p_value: Floats
    q_value: Floats

    def category(self, level: float = LEVEL) -> NDArray[np.object_]:
        """ "higher" or "lower" where q < level, "irrelevant" where the interval lies within ±0.1,
        and otherwise "too rare"."""
        low, high = self.effect_interval
        names = np.full(len(self.effect), "too rare", dtype=object)
        names[np.maximum(-low, high) <= MAX_IRRELEVANT_EFFECT] = "irrelevant"
        names[(self.q_value < level) & (self.effect > 0)] = "higher"
        names[(self.q_value < level) & (self.effect < 0)] = "lower"
        return names

    def to_frame(self) -> pl.DataFrame:
        """One row per type."""
        return pl.DataFrame(
            {
                "token": pl.Series(self.tokens.astype(object), dtype=pl.String),
                "documents": self.documents,
                "mean_with": self.mean_with,
                "mean_without": self.mean_without,
                "effect": self.effect,
                "effect_low": self.effect_interval[0],
                "effect_high": self.effect_interval[1],
                "p_value": self.p_value,
                "q_value": self.q_value,
                "category": pl.Series(self.category().astype(str), dtype=pl.String),
            }
        ).with_columns(pl.col("mean_with", "mean_without").fill_nan(None))


def score_importance(counts: Counts, units: Ints | None = None) -> ScoreImportance:
    """The rank statistic of every type, in O(nonzeros + n log n).

    Args:
        counts: documents with scores (`numbers`).
        units: the group of each document, shape (n,); every number is then over groups.

    Raises:
        InputError: there are no scores, or fewer than two documents.
    """
    if counts.numbers is None or len(counts.numbers) < 2:
        raise InputError("importance for scores needs at least two documents with a score")
    scored = _ScoredDocuments.of(counts.matrix, counts.numbers, units)
    n_all = len(scored.scores)
    n_with = np.bincount(scored.presence.indices, minlength=counts.n_types).astype(np.int64)
    sum_with = np.asarray(scored.presence.T @ scored.scores)
    ranks = middle_ranks(scored.scores)
    rank_sum = np.asarray(scored.presence.T @ ranks)
    p_value = _rank_sum_of_random_documents(ranks, rank_sum, n_with).p_value()[:, 0]
    effect = _effect(rank_sum, n_with, n_all)
    interval = agreeing(effect_interval(effect, n_with, n_all), p_value)
    is_comparable = (n_with > 0) & (n_with < n_all)
    with np.errstate(invalid="ignore", divide="ignore"):
        return ScoreImportance(
            tokens=counts.tokens,
            documents=n_with,
            mean_with=sum_with / n_with,
            mean_without=(scored.scores.sum() - sum_with) / (n_all - n_with),
            effect=effect,
            effect_interval=(
                np.where(is_comparable, interval.low, -1.0),
                np.where(is_comparable, interval.high, 1.0),
            ),
            p_value=p_value,
            q_value=false_discovery(p_value[:, None])[:, 0],
        )


@dataclass(frozen=True)
class _ScoredDocuments:
    """Which types the documents (or groups) contain, shape (n, types), and their scores, (n,)."""

    presence: sp.csr_array
    scores: Floats

    @classmethod
    def of(cls, matrix: sp.csr_array, scores: Floats, units: Ints | None) -> _ScoredDocuments:
        """Documents of one unit become one, with the mean of their scores; only presence counts.

        Args:
            matrix: counts, shape (n, types).
            scores: shape (n,).
            units: shape (n,), if documents belong together.
        """
        if units is not None:
            _, units = np.unique(units, return_inverse=True)
            matrix = sum_by_group(matrix, units)
            scores = np.bincount(units, scores) / np.bincount(units)
        ones = np.ones(matrix.nnz)
        presence = sp.csr_array((ones, matrix.indices, matrix.indptr), shape=matrix.shape)
        return cls(presence, scores)


def middle_ranks(scores: Floats) -> Floats:
    """Ranks from 1, equal scores sharing the mean of theirs, shape (n,).

    `scipy.stats.rankdata` gives the same; importing scipy.stats takes 0.7 s.
    """
    _, level, sizes = np.unique(scores, return_inverse=True, return_counts=True)
    last = np.cumsum(sizes)
    return np.asarray((last - (sizes - 1) / 2)[level])


def _effect(rank_sum: Floats, n_with: Ints, n_all: int) -> Floats:
    """Cliff's δ = 2 U/(m n) − 1 of each type, from −1 to 1, or 0 if all documents are on one side.

    Args:
        rank_sum: the ranks of the documents with the type added up, shape (types,).
        n_with: how many these are, shape (types,).
        n_all: how many documents there are.
    """
    n_comparisons = n_with * (n_all - n_with)
    u = rank_sum - n_with * (n_with + 1) / 2
    return np.where(n_comparisons > 0, 2 * u / np.maximum(n_comparisons, 1) - 1, 0.0)


def _rank_sum_of_random_documents(ranks: Floats, rank_sum: Floats, n_with: Ints) -> RelabelledSum:
    """The rank sums beside those of as many documents drawn at random, shape (types, 1)."""
    n = len(ranks)
    m = n_with[:, None].astype(np.float64)
    in_order = np.sort(ranks)
    smallest = np.concatenate([[0.0], np.cumsum(in_order)])[n_with][:, None]
    largest = np.concatenate([[0.0], np.cumsum(in_order[::-1])])[n_with][:, None]
    deviations = ranks - ranks.mean()
    mean = m * ranks.mean()
    drawn = m * (n - m) / (n * max(n - 1, 1))
    variance = drawn * (deviations @ deviations)
    return RelabelledSum(
        deviation=rank_sum[:, None] - mean,
        room_below=mean - smallest,
        room_above=largest - mean,
        variance=variance,
        third=drawn * (n - 2 * m) / max(n - 2, 1) * float((deviations**3).sum()),
        corrected_variance=variance,
    )


def effect_interval(effect: Floats, n_with: Ints, n_all: int) -> Interval:
    """Newcombe's 95% interval (2006, method 5) of 2 U/(m n) − 1, shape (types,).

    The ends are the values θ of U/(m n) that are z standard errors from the estimate, where

        SE(θ)² = θ(1−θ) (1 + (N−1)((1−θ)/(2−θ) + θ/(1+θ)))/(m n),     N = (m + n)/2
    """
    m = np.maximum(n_with, 1)
    n = np.maximum(n_all - n_with, 1)
    mean_size = (m + n) / 2
    estimate = (effect + 1) / 2

    def distance(theta: Floats) -> Floats:
        spread = (1 - theta) / (2 - theta) + theta / (1 + theta)
        variance = theta * (1 - theta) * (1 + (mean_size - 1) * spread) / (m * n)
        return np.asarray(np.abs(theta - estimate) - Z95 * np.sqrt(variance))

    ends = []
    for outermost in (0.0, 1.0):
        inside = estimate.copy()
        outside = np.full(len(estimate), outermost)
        for _ in range(HALVINGS):
            middle = (inside + outside) / 2
            is_inside = distance(middle) <= 0
            inside = np.where(is_inside, middle, inside)
            outside = np.where(is_inside, outside, middle)
        ends.append(2 * inside - 1)
    return Interval(effect, ends[0], ends[1])
