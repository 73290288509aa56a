"""Token importance: what the data alone says about each token type, with document-level uncertainty.

For class k and type s, with x_{X,s} = c_{X,s}/T_X, n_k documents and K classes:

    average signed frequency   α_{s,k} = mean_X t_k(y_X) x_{X,s},   t_k(y) = 1[y=k] − 1/K;   K = 2: t = ±1, so that
                               α_s = mean_X y x_{X,s}   (Wu et al. 2025, section 4.1; K classes: their reply to reviewer E1M4)
    posterior difference       P(k|s) − P(not k|s) = (N_k − N_rest)/(N_k + N_rest), N = occurrences (x axis of their figures)
    effect                     (K−1)/K² · (m_k − m_rest);  K = 2: (m_k − m_rest)/2, with m = mean of x over the class's
                               documents. It equals α when all classes are equally large, and is zero for a type whose
                               frequency does not depend on the class, however unequal they are.

Documents are the independent units, not occurrences: a word used nine times in one review is one piece of evidence (compare
the token-level z-test of Gardner et al. 2021). Intervals and the test are those of `tokensieve.evidence.intervals`; q-values are
Benjamini–Hochberg over all types of a class. docs/statistics.md explains each in words and shows how often they hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tokensieve.errors import InputError
from tokensieve.evidence.intervals import (
    LEVEL,
    Z95,
    agreeing,
    combined,
    dispersion,
    false_discovery,
    length_excess,
    mean_interval,
    permutation_p,
    quantile,
    share_interval,
)
from tokensieve.evidence.sums import TokenSums, as_floats
from tokensieve.text.counts import Counts, Floats, Ints

__all__ = ["LEVEL", "Z95", "Category", "Importance", "importance_of", "signed_frequency", "token_importance"]

TIGHT = 0.2  # of the reach: a frequency in one class of at most (1 + 0.2)/(1 − 0.2) = 1.5 times that in the others
PER_CLASS = (
    "class_documents count_difference posterior_difference posterior_low posterior_high alpha alpha_low alpha_high "
    "effect effect_low effect_high p_value q_value"
).split()


class Category(StrEnum):
    """What a type is for a class, given the evidence of these documents."""

    ONLY = "only in class"
    FOR = "for class"
    IRRELEVANT = "irrelevant"
    AGAINST = "against class"
    NEVER = "never in class"
    RARE = "too rare to tell"

    def of(self, label: str) -> str:
        """With the name of the class: "only in spam"."""
        return self.value.replace("class", label)


@dataclass(frozen=True)
class Importance:
    """Every statistic of section "importance" for each of |S| types and K classes; all arrays have shape (|S|, K).

    With two classes the columns mirror each other: column 1 is the paper's y = +1.

    Attributes:
        tokens: the types as text, shape (|S|,).
        classes: the K class names.
        documents: documents that contain the type, shape (|S|,).
        count: its occurrences, shape (|S|,).
        class_documents: documents of the class that contain the type.
        count_difference: N_k − N_rest.
        posterior_difference, posterior_low, posterior_high: in [−1, 1], with the 95 % interval for documents drawn at random
            together with their labels. A type in no document has difference 0 and the interval [−1, 1].
        neutral: posterior difference of a type spread evenly over documents, 2 n_k/n − 1, shape (K,).
        alpha, alpha_low, alpha_high: average signed frequency; 95 % interval for classes as large as they are.
        effect, effect_low, effect_high: the same corrected for unequal classes; the interval excludes zero exactly where
            p < 0.05.
        reach: the effect that a type as frequent as this one would have if it occurred in the class only (half of one's
            m_k + m_rest for two classes): |effect| ≤ reach.
        p_value: two-sided, against "the type's frequency does not depend on the class".
        q_value: Benjamini–Hochberg over the types of each class.
        units: units that contain the type, shape (|S|,), where these, not documents, are independent
            (`tokensieve.evidence.groups`); else None.
    """

    tokens: NDArray[Any]
    classes: tuple[str, ...]
    documents: Ints
    count: Floats
    class_documents: Ints
    count_difference: Floats
    posterior_difference: Floats
    posterior_low: Floats
    posterior_high: Floats
    neutral: Floats
    alpha: Floats
    alpha_low: Floats
    alpha_high: Floats
    effect: Floats
    effect_low: Floats
    effect_high: Floats
    reach: Floats
    p_value: Floats
    q_value: Floats
    units: Ints | None = None

    def category(self, level: float = LEVEL) -> NDArray[np.object_]:
        """The `Category` of each type for each class, as text, shape (|S|, K).

        Where q < level the sign of the effect decides: `FOR`, or `ONLY` where every document that contains the type is of the
        class; `AGAINST`, or `NEVER` where none is. Elsewhere a type is `IRRELEVANT` if its 95 % interval shows that it is at
        most 1.5 times as frequent in the class as in the others, and at least 1/1.5 times (effect within TIGHT · reach of
        zero), and otherwise `RARE`: these documents cannot tell.
        """
        tight = (np.maximum(-self.effect_low, self.effect_high) <= TIGHT * self.reach) & (self.documents > 0)[:, None]
        names = np.where(tight, Category.IRRELEVANT.value, Category.RARE.value).astype(object)
        found, up = self.q_value < level, self.effect > 0
        names[found & up] = Category.FOR.value
        names[found & ~up] = Category.AGAINST.value
        names[found & up & (self.class_documents == self.documents[:, None])] = Category.ONLY.value
        names[found & ~up & (self.class_documents == 0)] = Category.NEVER.value
        return names

    def to_frame(self) -> pl.DataFrame:
        """One row per type and class: all types of class 0, then of class 1, …"""
        k, s = len(self.classes), len(self.tokens)
        columns: dict[str, Any] = {
            "token": pl.Series(np.tile(np.arange(s), k)).cast(pl.UInt32),
            "class": np.repeat(np.arange(k), s),
            "documents": np.tile(self.documents, k),
            "count": np.tile(self.count, k),
        }
        columns |= {name: getattr(self, name).T.ravel() for name in PER_CLASS}
        if self.units is not None:
            columns["units"] = np.tile(self.units, k)
        columns["category"] = pl.Series(self.category().T.ravel().astype(str), dtype=pl.String)
        frame = pl.DataFrame(columns)
        tokens = pl.Series(self.tokens.astype(object), dtype=pl.String)
        return frame.with_columns(
            pl.Series("token", tokens.gather(frame["token"])),
            pl.Series("class", pl.Series(self.classes, dtype=pl.String).gather(frame["class"])),
        )


def signed_frequency(counts: Counts, outputs: int = 1) -> Floats:
    """Average signed frequency α: what the first gradient step sees of each type (module formula).

    Args:
        counts: n documents; those without any known token count in n and contribute nothing.
        outputs: 1 for α_s with y = ±1, shape (|S|,); K for α_{s,k}, shape (|S|, K), whose rows sum to zero.
    """
    if outputs == 1:
        targets = counts.signs[:, None]
    else:
        targets = np.eye(counts.n_classes)[counts.labels] - 1.0 / counts.n_classes
    weights = targets / (np.maximum(counts.lengths, 1.0) * max(counts.n_documents, 1))[:, None]
    alpha = np.asarray(counts.matrix.T @ weights)
    return alpha[:, 0] if outputs == 1 else alpha


def token_importance(counts: Counts) -> Importance:
    """All statistics of every type and class, in O(nonzeros + |S| K).

    Raises:
        InputError: fewer than two classes have documents.
    """
    sums = TokenSums.of(counts.matrix, counts.labels, counts.n_classes)
    return importance_of(sums, counts.tokens, counts.classes)


def importance_of(sums: TokenSums, tokens: NDArray[Any], classes: tuple[str, ...]) -> Importance:
    """All statistics of every type and class, from sums over documents.

    Args:
        sums: of |S| types and K classes.
        tokens: the types as text, shape (|S|,).
        classes: the K class names.

    Raises:
        InputError: fewer than two classes have documents.
    """
    sizes, n, k = sums.class_sizes.astype(np.float64), sums.documents, len(classes)
    if np.count_nonzero(sizes) < 2:
        raise InputError("token importance needs documents of at least two classes")
    documents, count = sums.present.sum(axis=1), sums.count.sum(axis=1)
    columns = np.array([1]) if k == 2 else np.arange(k)  # of two classes, the first mirrors the second
    first, second = as_floats(sums.shares[:, :, 0]), as_floats(sums.shares[:, :, 1])
    powers = tuple(as_floats(w)[:, None] for w in (*np.moveaxis(sums.shares.sum(axis=1), 1, 0), sums.cubes))
    total = powers[0], powers[1], powers[2]
    excess = length_excess(as_floats(sums.inverse_lengths), sizes)
    p = permutation_p(first[:, columns], total, sizes[columns], n, excess[columns])
    inside = sums.count[:, columns]
    posterior = share_interval(
        inside,
        count[:, None] - inside,
        (sums.squares[:, columns], sums.squares.sum(axis=1, keepdims=True) - sums.squares[:, columns]),
        quantile(documents)[:, None],
    )
    alpha, effect, reach = _differences(first, second, sums, documents, columns)
    bounds = agreeing(*effect, p)
    q = false_discovery(p)
    if k == 2:
        posterior, alpha = _mirrored(*posterior), _mirrored(*alpha)
        effect = _mirrored(effect[0], *bounds)
        reach, p, q = (np.repeat(x, 2, axis=1) for x in (reach, p, q))
    else:
        effect = effect[0], *bounds
    return Importance(
        tokens, classes, documents, count, sums.present, 2 * sums.count - count[:, None], *posterior, 2 * sizes / n - 1,
        *alpha, *effect, reach, p, q,
    )  # fmt: skip


Interval = tuple[Floats, Floats, Floats]


def _differences(
    first: Floats, second: Floats, sums: TokenSums, documents: Ints, columns: Ints
) -> tuple[Interval, Interval, Floats]:
    """α and effect of some classes with their intervals, and the reach of the effect.

    Args:
        first, second: Σx and Σx² in each class, shape (|S|, K).
        sums: where they come from.
        documents: documents that contain each type, shape (|S|,).
        columns: the classes that are wanted, shape (C,).
    """
    sizes, n, k = sums.class_sizes.astype(np.float64), sums.documents, len(sums.class_sizes)
    inverse = as_floats(sums.inverse_lengths)

    def means(f: Floats, s: Floats, m: Floats, inv: Floats) -> Interval:
        phi = dispersion(f, s, m, inv / np.maximum(m, 1.0))
        return mean_interval(f, phi, m, quantile(documents[:, None], m))

    by_class = means(first, second, sizes, inverse)
    targets = 2 * np.eye(2) - 1 if k == 2 else np.eye(k) - 1 / k  # t_k(j)
    alpha = combined((targets * sizes / n).T[:, columns], *by_class)
    scale = 0.5 if k == 2 else (k - 1) / k**2
    if k == 2:
        effect = combined(np.array([[-scale], [scale]]), *by_class)
        return alpha, effect, scale * by_class[0].sum(axis=1, keepdims=True)
    pairs = []
    for j in columns:
        rest = [np.stack([x[..., j], x.sum(axis=-1) - x[..., j]], axis=-1) for x in (first, second, sizes, inverse)]
        mean, low, high = means(*rest)
        pairs.append(
            (*combined(np.array([[scale], [-scale]]), mean, low, high), scale * mean.sum(axis=1, keepdims=True))
        )
    middle, low, high, reach = (np.concatenate(parts, axis=1) for parts in zip(*pairs, strict=True))
    return alpha, (middle, low, high), reach


def _mirrored(middle: Floats, low: Floats, high: Floats) -> Interval:
    """Both columns of two classes from that of the second, each of shape (|S|, 1)."""
    return (
        np.concatenate([-middle, middle], axis=1),
        np.concatenate([-high, low], axis=1),
        np.concatenate([-low, high], axis=1),
    )
