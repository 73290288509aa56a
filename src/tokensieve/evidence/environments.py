"""Environments: does a token predict the label everywhere, or only on one site, in one month?

A token that predicts the label here but not there looks like a shortcut (Peters et al. 2016; Wang
et al. 2022 for tokens). For each type, with a_e and b_e its shares x = c/T summed over the
documents of the class and of the others in environment e, and m_e and r_e the numbers of those
documents, a common ratio of rates is estimated over all environments (Mantel & Haenszel 1959)

    θ = Σ_e a_e r_e/n_e  /  Σ_e b_e m_e/n_e,     π_e = m_e θ/(m_e θ + r_e)

and Cochran's Q in its score form (Breslow & Day 1980; Tarone 1985) adds the squared deviations from
it, in units of what documents, not tokens, vary by (φ: dispersion = variance/mean, as in
`tokensieve.evidence.intervals`):

    Q = Σ_e (a_e − π_e (a_e + b_e))² / ((a_e + b_e) π_e (1 − π_e) w_e)
    w_e = (1 − π_e) φ_in + π_e φ_out

Under a common ratio Q is about χ² with one degree of freedom less than there are environments that
contain the type. A word twice as frequent on one site, in both classes, is not unstable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import gammaincc

from tokensieve.arrays import Floats, Ints, pair_differences, sum_by_group
from tokensieve.errors import InputError
from tokensieve.evidence.importance import Importance, importance_of
from tokensieve.evidence.intervals import LEVEL, GroupSums, false_discovery
from tokensieve.evidence.pairs import pair_importance
from tokensieve.evidence.sums import Sums, TokenSums
from tokensieve.text.counts import Counts

Within: TypeAlias = tuple[Importance | None, ...]
Bools = NDArray[np.bool_]

MIN_DOCUMENTS = 5  # over all environments; fewer say nothing about stability
MIN_PAIRS = 10  # of an environment; with fewer, hardly any type occurs on one side alone
ONE_ENVIRONMENT = 0.9  # of a type's documents, which make it a type of one environment,
MAX_SIZE_OF_ONE = 0.7  # unless the environment has more than this fraction of all documents


@dataclass(frozen=True)
class Environments:
    """The effect of every type in every environment, and whether it is the same in all of them.

    Attributes:
        names: the E environments.
        within: importance in each environment; None if it has documents of fewer than two classes.
        ratio: θ, how many times as frequent the type is in the class as in the others, over all
            environments, shape (types, K); nan where it cannot be estimated.
        q_statistic: Cochran's Q, shape (types, K).
        degrees: its degrees of freedom, shape (types,).
        p_value, q_value: of "the ratio is the same everywhere", shape (types, K); q over the types
            of each class.
        stability: "stable", "unstable", "one environment" or "unknown", shape (types, K).
    """

    names: tuple[str, ...]
    within: Within
    ratio: Floats
    q_statistic: Floats
    degrees: Ints
    p_value: Floats
    q_value: Floats
    stability: NDArray[np.object_]

    @classmethod
    def of_sums(
        cls, sums: Sequence[Sums], names: tuple[str, ...], overall: Importance
    ) -> Environments:
        """Whether each type's ratio of rates is the same in every environment, in O(|S| K E).

        A type is "unstable" where q < 0.05; "stable" where it is not, its overall q is, at least
        two environments contain it, and it has the same direction in each with enough documents; of
        "one environment" where nine tenths of its documents are in one that has at most seven
        tenths of all; otherwise unknown.

        Args:
            sums: of each environment, `TokenSums.of_counts` and the documents of each class that
                contain each type, shape (types, K).

        Raises:
            InputError: fewer than two environments have documents of two classes.
        """
        within: list[Importance | None] = []
        usable: list[Sums] = []
        for environment in sums:
            words, formatting, present = environment
            if np.count_nonzero(words.class_sizes) < 2:
                within.append(None)
                continue
            usable.append(environment)
            importance = importance_of(words, overall.tokens, overall.classes, formatting)
            within.append(replace(importance, class_documents=present))
        if len(usable) < 2:
            raise InputError(
                "fewer than two environments have documents of two classes; check --environments"
            )
        has_formatting = len(sums[0][1].count) > 0
        result = heterogeneity([words for words, *_ in usable])
        if has_formatting:
            result = result.followed_by(heterogeneity([forms for _, forms, _ in usable]))
        return cls._judge(names, tuple(within), result, overall)

    @classmethod
    def compare_pairs(
        cls,
        counts: Counts,
        document_environments: Ints,
        names: tuple[str, ...],
        overall: Importance,
        features: int,
        units: Ints,
    ) -> Environments:
        """Whether each type wins as often in every environment: do two judges reward the same?

        The ratio is that of wins to losses.

        Args:
            counts: 2n documents, preferred side first.
            document_environments: number of the environment of each document, −1 for none.
            features: how many of the last types are formatting.
            units: of the pairs, shape (n,).

        Raises:
            InputError: fewer than two environments have ten pairs.
        """
        pair_environments = document_environments[::2]
        within: list[Importance | None] = []
        for number in range(len(names)):
            is_inside = pair_environments == number
            if np.count_nonzero(is_inside) < MIN_PAIRS:
                within.append(None)
                continue
            documents = counts.rows(document_environments == number)
            within.append(pair_importance(documents, units[is_inside], features))
        if len(names) - within.count(None) < 2:
            raise InputError("fewer than two environments have ten pairs; check --environments")
        result = heterogeneity_of_wins(counts, pair_environments, len(names), units)
        return cls._judge(names, tuple(within), result, overall)

    @classmethod
    def _judge(
        cls, names: tuple[str, ...], within: Within, result: Heterogeneity, overall: Importance
    ) -> Environments:
        """Judge by Q and its degrees of freedom which types are stable."""
        # fewer documents over all environments say nothing about stability
        is_known = (overall.documents >= MIN_DOCUMENTS) & (result.degrees > 0)
        p_value = result.p_value()
        q_value = np.ones_like(p_value)
        q_value[is_known] = false_discovery(p_value[is_known])

        predicts = overall.q_value < LEVEL
        is_alone = _in_one_environment(within, overall)
        is_stable = (is_known & ~is_alone)[:, None] & predicts & ~_opposed(within, overall)
        stability = np.full(p_value.shape, "unknown", dtype=object)
        stability[is_alone[:, None] & predicts] = "one environment"
        stability[is_stable] = "stable"
        stability[q_value < LEVEL] = "unstable"
        return cls(
            names,
            within,
            result.ratio,
            result.q_statistic,
            result.degrees,
            p_value,
            q_value,
            stability,
        )

    def to_frame(self, overall: Importance) -> pl.DataFrame:
        """One row per type and class.

        Columns: token, class, effect overall, ratio, q_statistic, degrees, p_value, q_value,
        stability, and for each environment its posterior difference less what even spread gives
        there (missing where it has no such class).
        """
        n_types, n_classes = self.ratio.shape
        columns: dict[str, Any] = {
            "token": [str(token) for token in overall.tokens] * n_classes,
            "class": np.repeat(overall.classes, n_types).tolist(),
            "effect": overall.effect.T.ravel(),
            "ratio": self.ratio.T.ravel(),
            "q_statistic": self.q_statistic.T.ravel(),
            "p_value": self.p_value.T.ravel(),
            "q_value": self.q_value.T.ravel(),
            "degrees": np.tile(self.degrees, n_classes),
            "stability": self.stability.T.ravel().tolist(),
        }
        missing = pl.Series([None] * (n_types * n_classes), dtype=pl.Float64)
        for name, importance in zip(self.names, self.within, strict=True):
            lean = missing if importance is None else importance.lean.T.ravel()
            columns[f"lean in {name}"] = lean
        return pl.DataFrame(columns, nan_to_null=False)


@dataclass(frozen=True)
class Heterogeneity:
    """Cochran's Q of each type, and the common ratio that it deviates from.

    Attributes:
        ratio, q_statistic: shape (types, K).
        degrees: of freedom, shape (types,).
    """

    ratio: Floats
    q_statistic: Floats
    degrees: Ints

    def followed_by(self, other: Heterogeneity) -> Heterogeneity:
        """Append the statistics of other types."""
        return Heterogeneity(
            np.concatenate([self.ratio, other.ratio]),
            np.concatenate([self.q_statistic, other.q_statistic]),
            np.concatenate([self.degrees, other.degrees]),
        )

    def p_value(self) -> Floats:
        """p of "the ratio is the same everywhere", shape (types, K); 1 in one environment."""
        degrees = self.degrees[:, None]
        tail = gammaincc(np.maximum(degrees, 1) / 2, self.q_statistic / 2)
        return np.asarray(np.where(degrees > 0, tail, 1.0))


def heterogeneity(environments: list[TokenSums]) -> Heterogeneity:
    """θ and Q of each type and class, by the sums of each environment (module docstring)."""
    by_class = [GroupSums.of_classes(sums) for sums in environments]
    shares = np.stack([groups.shares for groups in by_class])  # (E, types, K)
    n_present = (shares.sum(axis=2) > 0).sum(axis=0)

    ratios = []
    statistics = []
    for k in range(shares.shape[2]):
        sides = [groups.against_rest(k) for groups in by_class]
        ratios.append(_common_ratio(sides))
        statistics.append(_cochran_q(sides, ratios[k]))
    return Heterogeneity(
        np.stack(ratios, axis=-1), np.stack(statistics, axis=-1), np.maximum(n_present - 1, 0)
    )


@dataclass(frozen=True)
class Sides:
    """What E environments have inside and outside of a class.

    Attributes:
        a, b: Σ x inside and outside, shape (E, types).
        m, r: documents inside and outside, shape (E, 1).
    """

    a: Floats
    b: Floats
    m: Floats
    r: Floats

    @classmethod
    def of(cls, sides: Sequence[GroupSums]) -> Sides:
        """Take apart the sums of two groups, outside and in the class, in each environment."""
        return cls(
            a=np.stack([groups.shares[:, 1] for groups in sides]),
            b=np.stack([groups.shares[:, 0] for groups in sides]),
            m=np.array([[groups.n_documents[1]] for groups in sides]),
            r=np.array([[groups.n_documents[0]] for groups in sides]),
        )


def _common_ratio(sides: Sequence[GroupSums]) -> Floats:
    """θ of each type, shape (types,); infinite if it occurs inside only, nan if nowhere."""
    s = Sides.of(sides)
    n = s.m + s.r
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((s.a * (s.r / n)).sum(axis=0) / (s.b * (s.m / n)).sum(axis=0))


def _cochran_q(sides: Sequence[GroupSums], theta: Floats) -> Floats:
    """Q of each type, shape (types,); environments without the type add nothing."""
    s = Sides.of(sides)
    with np.errstate(divide="ignore", invalid="ignore"):
        pi = s.m / (s.m + s.r / theta)
    phi_outside, phi_inside = _total(sides).dispersion().T
    spread = (1 - pi) * phi_inside + pi * phi_outside
    share = s.a + s.b
    variance = share * pi * (1 - pi) * spread
    deviation = s.a - pi * share

    has_variance = variance > 0  # False where θ is 0, infinite or nan
    terms = np.divide(deviation**2, variance, out=np.zeros_like(variance), where=has_variance)
    return np.asarray(terms.sum(axis=0))


def _total(sides: Sequence[GroupSums]) -> GroupSums:
    """The sums of each group over all environments."""
    return GroupSums(
        np.stack([groups.shares for groups in sides]).sum(axis=0),
        np.stack([groups.squared_shares for groups in sides]).sum(axis=0),
        np.stack([groups.n_documents for groups in sides]).sum(axis=0),
        np.stack([groups.inverse_lengths for groups in sides]).sum(axis=0),
    )


def heterogeneity_of_wins(
    counts: Counts, pair_environments: Ints, n_environments: int, units: Ints
) -> Heterogeneity:
    """Q of each type's wins in preference pairs.

    Of N_e pairs of environment e that have a type on one side alone, T_e is wins less losses, and
    μ = Σ T/Σ N:

        Q = Σ_e (T_e − μ N_e)² / (φ N_e (1 − μ²)),     φ ≥ 1: the dispersion within environments

    φ is by units, shape (n,), over all environments.
    """
    differences = pair_differences(sp.csr_array(counts.matrix > 0, dtype=np.float64))
    sides = [differences[pair_environments == e] for e in range(n_environments)]
    n = np.stack([abs(pairs).sum(axis=0) for pairs in sides]).astype(np.float64)
    t = np.stack([pairs.sum(axis=0) for pairs in sides]).astype(np.float64)
    mean = t.sum(axis=0) / np.maximum(n.sum(axis=0), 1.0)
    phi = _dispersion_of_wins(differences, pair_environments, n, t, units)
    variance = phi * n * (1 - mean**2)
    terms = (t - mean * n) ** 2 / np.where(variance > 0, variance, np.inf)
    with np.errstate(divide="ignore"):
        odds_of_winning = (1 + mean) / (1 - mean)
        odds = odds_of_winning[:, None] ** np.array([-1.0, 1.0])  # losing, winning
    return Heterogeneity(
        odds,
        np.repeat(terms.sum(axis=0)[:, None], 2, axis=1),
        np.maximum((n > 0).sum(axis=0) - 1, 0),
    )


def _dispersion_of_wins(
    differences: sp.csr_array, pair_environments: Ints, n: Floats, t: Floats, units: Ints
) -> Floats:
    """φ of each type, from what is left of each pair at the mean of its environment."""
    mean_within = t / np.maximum(n, 1.0)
    is_inside = np.flatnonzero(pair_environments >= 0)
    environments = pair_environments[is_inside]
    class_rows = sp.csr_array(differences[is_inside])
    class_rows.data -= mean_within[
        np.repeat(environments, np.diff(class_rows.indptr)), class_rows.indices
    ]
    cells = units[is_inside] * len(n) + environments
    squares = np.asarray(sum_by_group(class_rows, cells).power(2).sum(axis=0)).ravel()
    chance = (n * (1 - mean_within**2)).sum(axis=0)
    return np.asarray(np.maximum(squares / np.where(chance > 0, chance, np.inf), 1.0))


def _opposed(within: Within, overall: Importance) -> Bools:
    """Whether a type predicts the other classes in one of the environments, shape (types, K)."""
    opposed = np.zeros(overall.effect.shape, dtype=bool)
    for importance in within:
        if importance is not None:
            has_other_sign = np.sign(importance.effect) != np.sign(overall.effect)
            opposed |= (importance.p_value < LEVEL) & has_other_sign
    return opposed


def _in_one_environment(within: Within, overall: Importance) -> Bools:
    """Whether nearly all documents of a type are in one environment that is not the whole."""
    documents = np.stack([x.documents for x in within if x is not None])  # (E, types)
    sizes = documents.max(axis=1)  # the most frequent type stands for all documents
    is_small = sizes <= MAX_SIZE_OF_ONE * sizes.sum()
    largest = documents.argmax(axis=0)
    needed = ONE_ENVIRONMENT * np.maximum(overall.documents, MIN_DOCUMENTS)
    return np.asarray((documents.max(axis=0) >= needed) & is_small[largest])
