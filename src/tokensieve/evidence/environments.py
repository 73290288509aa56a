"""Environments: does a token predict the label everywhere, or only on one site, in one month, for one annotator?

A token that predicts the label here but not there looks like a shortcut (Peters et al. 2016; Wang et al. 2022 for tokens). For each
type, with a_e and b_e its shares x = c/T summed over the documents of the class and of the others in environment e, and m_e and r_e
the numbers of those documents, a common ratio of rates is estimated over all environments (Mantel & Haenszel 1959)

    θ = Σ_e a_e r_e/n_e  /  Σ_e b_e m_e/n_e,     π_e = m_e θ/(m_e θ + r_e)

and Cochran's Q in its score form (Breslow & Day 1980; Tarone 1985) adds the squared deviations from it, in units of what documents,
not tokens, vary by (φ: dispersion = variance/mean, as in `tokensieve.evidence.intervals`):

    Q = Σ_e (a_e − π_e (a_e + b_e))² / ((a_e + b_e) π_e (1 − π_e) w_e),     w_e = (1 − π_e) φ_in + π_e φ_out

Under a common ratio Q is about χ² with one degree of freedom less than there are environments that contain the type. A word
twice as frequent on one site, in both classes, is not unstable.
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
from tokensieve.evidence.intervals import LEVEL, dispersion, false_discovery
from tokensieve.evidence.pairs import pair_importance
from tokensieve.evidence.sums import Sums, TokenSums
from tokensieve.text.counts import Counts

Within: TypeAlias = tuple[Importance | None, ...]


@dataclass(frozen=True)
class Environments:
    """The effect of every type in every environment, and whether it is the same in all of them.

    Attributes:
        names: the E environments.
        within: importance in each environment; None if fewer than two classes have documents there.
        ratio: θ, how many times as frequent the type is in the class as in the others, over all environments, shape (|S|, K);
            nan where it cannot be estimated.
        q_statistic: Cochran's Q, shape (|S|, K).
        degrees: its degrees of freedom, shape (|S|,).
        p_value, q_value: of "the ratio is the same everywhere"; q over the types of each class, shape (|S|, K).
        stability: "stable", "unstable", "one environment" or "unknown" for each type and class, shape (|S|, K).
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

        `sums` are, of each environment, `TokenSums.of_counts` and the documents of each class that contain each type, (|S|, K).
        A type is "unstable" where q < 0.05; "stable" where it is not, its overall q is, at least two environments contain it,
        and it has the same direction in each with enough documents to tell; of "one environment" where nine tenths of its
        documents are in one that has at most seven tenths of all; otherwise unknown. An `InputError` if fewer than two
        environments have documents of two classes."""
        usable = [np.count_nonzero(words.class_sizes) >= 2 for words, *_ in sums]
        if sum(usable) < 2:
            raise InputError(
                "fewer than two environments have documents of two classes; check --environments"
            )
        tokens, classes = overall.tokens, overall.classes
        within = tuple(
            replace(importance_of(words, tokens, classes, marks), class_documents=present)
            if ok
            else None
            for (words, marks, present), ok in zip(sums, usable, strict=True)
        )
        kept = [of for of, ok in zip(sums, usable, strict=True) if ok]
        kinds = 2 if len(sums[0][1].count) else 1  # words, and formatting
        parts = [_heterogeneity([of[i] for of in kept]) for i in range(kinds)]
        ratio, statistic, degrees = (np.concatenate(x) for x in zip(*parts, strict=True))
        return cls._judge(names, within, ratio, statistic, degrees, overall)

    @classmethod
    def compare_pairs(
        cls,
        counts: Counts,
        of: Ints,
        names: tuple[str, ...],
        overall: Importance,
        features: int,
        units: Ints | None,
    ) -> Environments:
        """Whether each type wins as often in every environment: do two judges reward the same?

        Of N_e pairs of environment e that have a type on one side alone, T_e is wins less losses, and μ = Σ T/Σ N:

            Q = Σ_e (T_e − μ N_e)² / (φ N_e (1 − μ²)),     φ ≥ 1: the dispersion within environments, by units

        The ratio is that of wins to losses.
        Of 2n documents, preferred side first, `units` are those of the pairs, shape (n,); all else as for `of_sums`.
        """
        assert units is not None
        presence = sp.csr_array(counts.matrix > 0, dtype=np.float64)
        delta, places, size = pair_differences(presence), of[::2], len(names)
        sides = [delta[places == e] for e in range(size)]
        n = np.stack([abs(side).sum(axis=0) for side in sides]).astype(np.float64)
        t = np.stack([side.sum(axis=0) for side in sides]).astype(np.float64)
        usable = [np.count_nonzero(places == e) >= 10 for e in range(size)]
        if sum(usable) < 2:
            raise InputError("fewer than two environments have ten pairs; check --environments")
        own, mean = t / np.maximum(n, 1.0), t.sum(axis=0) / np.maximum(n.sum(axis=0), 1.0)
        kept = np.flatnonzero(places >= 0)
        rows = sp.csr_array(delta[kept])
        rows.data -= own[np.repeat(places[kept], np.diff(rows.indptr)), rows.indices]
        group = units[kept] * size + places[kept]
        spread = np.asarray(sum_by_group(rows, group).power(2).sum(axis=0)).ravel()
        chance = (n * (1 - own**2)).sum(axis=0)
        phi = np.maximum(spread / np.where(chance > 0, chance, np.inf), 1.0)
        variance = phi * n * (1 - mean**2)
        terms = (t - mean * n) ** 2 / np.where(variance > 0, variance, np.inf)
        within = tuple(
            pair_importance(counts.rows(of == e), units[places == e], features)
            if usable[e]
            else None
            for e in range(size)
        )
        with np.errstate(divide="ignore"):
            odds = ((1 + mean) / (1 - mean))[:, None] ** np.array([-1.0, 1.0])
        statistic = np.repeat(terms.sum(axis=0)[:, None], 2, axis=1)
        return cls._judge(
            names, within, odds, statistic, np.maximum((n > 0).sum(axis=0) - 1, 0), overall
        )

    @classmethod
    def _judge(
        cls,
        names: tuple[str, ...],
        within: Within,
        ratio: Floats,
        statistic: Floats,
        degrees: Ints,
        overall: Importance,
    ) -> Environments:
        """Which types are stable, by Q and its degrees of freedom."""
        p = np.where(
            degrees[:, None] > 0, gammaincc(np.maximum(degrees, 1)[:, None] / 2, statistic / 2), 1.0
        )
        # fewer than five documents over all environments say nothing about stability
        known = (overall.documents >= 5) & (degrees > 0)
        q = np.ones_like(p)
        q[known] = false_discovery(p[known])
        opposed = np.zeros(p.shape, dtype=bool)
        for found in within:
            if found is not None:
                opposed |= (found.p_value < LEVEL) & (
                    np.sign(found.effect) != np.sign(overall.effect)
                )
        stability = np.full(p.shape, "unknown", dtype=object)
        present = np.stack([x.documents for x in within if x is not None])  # (E, |S|)
        sizes, first = (
            present.max(axis=1),
            present.argmax(axis=0),
        )  # the most frequent type stands for all documents
        alone = present.max(axis=0) >= 0.9 * np.maximum(overall.documents, 5)
        alone &= (sizes <= 0.7 * sizes.sum())[first]
        stability[alone[:, None] & (overall.q_value < LEVEL)] = "one environment"
        stability[(known & ~alone)[:, None] & (overall.q_value < LEVEL) & ~opposed] = "stable"
        stability[q < LEVEL] = "unstable"
        return cls(names, within, ratio, statistic, degrees, p, q, stability)

    def to_frame(self, overall: Importance) -> pl.DataFrame:
        """One row per type and class: token, class, effect overall, ratio, q_statistic, degrees, p_value, q_value, stability, and
        for each environment its posterior difference less what even spread gives there (missing where it has no such class)."""
        s, k = self.ratio.shape
        columns: dict[str, Any] = {"token": [str(token) for token in overall.tokens] * k}
        columns |= {
            "class": np.repeat(overall.classes, s).tolist(),
            "effect": overall.effect.T.ravel(),
        }
        for name in ("ratio", "q_statistic", "p_value", "q_value"):
            columns[name] = getattr(self, name).T.ravel()
        columns |= {
            "degrees": np.tile(self.degrees, k),
            "stability": self.stability.T.ravel().tolist(),
        }
        for name, x in zip(self.names, self.within, strict=True):
            columns[f"lean in {name}"] = (
                pl.Series([None] * (s * k), dtype=pl.Float64) if x is None else x.lean.T.ravel()
            )
        return pl.DataFrame(columns, nan_to_null=False)


def _heterogeneity(sums: list[TokenSums]) -> tuple[Floats, Floats, Ints]:
    """θ and Q, shape (|S|, K), and the degrees of freedom, shape (|S|,) (module docstring)."""
    groups = [
        np.stack(x)
        for x in zip(*((s.first, s.second, s.sizes, s.inverse) for s in sums), strict=True)
    ]
    every = groups[0]  # (E, |S|, K)
    ratio, statistic = np.full(every.shape[1:], np.nan), np.zeros(every.shape[1:])
    for j in range(every.shape[2]):
        # inside and outside the class: Σx and Σx², shape (E, |S|, 2), documents and Σ 1/T, shape (E, 2)
        first, second, sizes, inverse = (
            np.stack([x[..., j], x.sum(axis=-1) - x[..., j]], axis=-1) for x in groups
        )
        (a, b), (m, r), n = (
            np.moveaxis(first, -1, 0),
            sizes.T[:, :, None],
            sizes.sum(axis=1, keepdims=True),
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            theta = (a * (r / n)).sum(axis=0) / (b * (m / n)).sum(axis=0)
            expected = m / (m + r / theta)  # π_e; all of it where θ is infinite
        total = sizes.sum(axis=0)
        phi = dispersion(
            first.sum(axis=0),
            second.sum(axis=0),
            total,
            inverse.sum(axis=0) / np.maximum(total, 1.0),
        )
        variance = (
            (a + b)
            * expected
            * (1 - expected)
            * ((1 - expected) * phi[:, 0] + expected * phi[:, 1])
        )
        deviation = a - expected * (a + b)
        terms = np.where(variance > 0, deviation**2 / np.where(variance > 0, variance, 1.0), 0.0)
        ratio[:, j], statistic[:, j] = theta, np.nan_to_num(terms).sum(axis=0)
    return ratio, statistic, np.maximum((every.sum(axis=2) > 0).sum(axis=0) - 1, 0)
