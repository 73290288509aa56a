"""Token importance: what the data alone shows about each token type, with uncertainty over documents.

For class k and type s, with x_{X,s} = c_{X,s}/T_X, n_k documents and K classes:

    average signed frequency   α_{s,k} = mean_X t_k(y_X) x_{X,s},   t_k(y) = 1[y=k] − 1/K;   K = 2: t = ±1, so that
                               α_s = mean_X y x_{X,s}   (Wu et al. 2025, section 4.1; K classes: their reply to reviewer E1M4)
    posterior difference       P(k|s) − P(not k|s) = (N_k − N_rest)/(N_k + N_rest), N = occurrences (x axis of their figures)
    effect                     (K−1)/K² · (m_k − m_rest);  K = 2: (m_k − m_rest)/2, with m = mean of x over the class's
                               documents. It equals α when all classes are equally large, and is zero for a type whose
                               frequency does not depend on the class, however unequal they are.

Documents are the independent units, not occurrences. Intervals and the test are those of `tokensieve.evidence.intervals`;
docs/statistics.md explains each in words and measures how often the intervals contain the truth.

**Formatting** is in the same table, behind the words. A feature enters as a presence: its test, q-value and posterior difference
are those of a type with c = 1 in the documents that have it; its α and effect are its difference in share of documents divided by
the mean length T̄ in words. The lengths T_X, and with them every number of a word but its q-value, do not change.

**Groups**: documents that belong together (one author, thread, template) are one piece of evidence. The documents of a group with
the same label are merged into one first. A group with several labels is one merged document in each of its classes; these are not
independent, which makes the test conservative.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tokensieve.arrays import Floats, Ints
from tokensieve.errors import InputError
from tokensieve.evidence.intervals import (
    LEVEL,
    agreeing,
    combined,
    false_discovery,
    mean_interval,
    permutation_p,
    quantile,
    share_interval,
)
from tokensieve.evidence.sums import TokenSums
from tokensieve.text.counts import Counts

Tokens = NDArray[np.str_] | NDArray[np.object_]  # types as text
Interval = tuple[Floats, Floats, Floats]  # estimate, low, high


class Category(StrEnum):
    """How a token type relates to a class, according to these documents."""

    ONLY = "only in class"
    FOR = "for class"
    IRRELEVANT = "irrelevant"
    AGAINST = "against class"
    NEVER = "never in class"
    RARE = "too rare to tell"

    def of(self, label: str) -> str:
        """The category with the name of the class: "only in spam"."""
        return self.value.replace("class", label)


@dataclass(frozen=True)
class Importance:
    """The statistics of |S| token types for K classes; all arrays have shape (|S|, K).

    With two classes the columns mirror each other: column 1 is the paper's y = +1.

    Attributes:
        tokens: the types as text, shape (|S|,).
        classes: the K class names.
        class_documents: documents of the class containing the type.
        class_count: its occurrences in the class, N_k.
        posterior_difference: in [−1, 1]; 0 for a type in no document.
        posterior_interval: 95 % interval, assuming that documents are drawn together with their labels; [−1, 1] for a type in no
        document.
        neutral: posterior difference of a type spread evenly over documents, 2 n_k/n − 1, shape (K,).
        alpha, alpha_interval: average signed frequency and its 95 % interval, with class sizes fixed.
        effect, effect_interval: the same corrected for unequal classes; the interval excludes zero if and only if p < 0.05.
        reach: the effect that a type as frequent as this one would have if it occurred in the class only (half of one's
            m_k + m_rest for two classes): |effect| ≤ reach.
        p_value: two-sided, against "the type's frequency does not depend on the class".
        q_value: Benjamini–Hochberg over the types of each class.
        units: groups containing the type, shape (|S|,), if groups are the independent units; else None.
    """

    tokens: Tokens
    classes: tuple[str, ...]
    class_documents: Ints
    class_count: Floats
    posterior_difference: Floats
    posterior_interval: tuple[Floats, Floats]
    neutral: Floats
    alpha: Floats
    alpha_interval: tuple[Floats, Floats]
    effect: Floats
    effect_interval: tuple[Floats, Floats]
    reach: Floats
    p_value: Floats
    q_value: Floats
    units: Ints | None = None

    @classmethod
    def of_columns(
        cls, intervals: Sequence[Interval], reach: Floats, p_value: Floats, **others: Any
    ) -> Importance:
        """From the intervals of posterior difference, alpha and effect, reach and p of each class, or of the second of two classes,
        which the first mirrors; and the `others` of the attributes as they are."""
        q_value = false_discovery(p_value)
        if len(others["classes"]) == 2:
            intervals = [
                (np.hstack([-middle, middle]), np.hstack([-high, low]), np.hstack([-low, high]))
                for middle, low, high in intervals
            ]
            reach, p_value, q_value = (np.repeat(x, 2, axis=1) for x in (reach, p_value, q_value))
        for name, (middle, low, high) in zip(
            ("posterior", "alpha", "effect"), intervals, strict=True
        ):
            estimate = "posterior_difference" if name == "posterior" else name
            others |= {estimate: middle, f"{name}_interval": (low, high)}
        return cls(reach=reach, p_value=p_value, q_value=q_value, **others)

    @cached_property
    def documents(self) -> Ints:
        """Documents containing each type, shape (|S|,)."""
        return np.asarray(self.class_documents.sum(axis=1))

    @cached_property
    def count(self) -> Floats:
        """Occurrences of each type, shape (|S|,)."""
        return np.asarray(self.class_count.sum(axis=1))

    @property
    def lean(self) -> Floats:
        """The effect as a fraction of its reach, shape (|S|, K); 0 for a type in no document."""
        return np.asarray(self.effect / np.where(self.reach > 0, self.reach, 1.0))

    def category(self, level: float = LEVEL) -> NDArray[np.object_]:
        """The `Category` of each type for each class, as text, shape (|S|, K).

        Where q < level the sign of the effect decides: `FOR`, or `ONLY` where every document that contains the type is of the
        class; `AGAINST`, or `NEVER` where none is. Elsewhere a type is `IRRELEVANT` if its 95 % interval shows that it is at
        most 1.5 and at least 1/1.5 times as frequent in the class as in the others (effect within 0.2 · reach of zero:
        (1 + 0.2)/(1 − 0.2) = 1.5), and otherwise `RARE`.
        """
        tight = (
            np.maximum(-self.effect_interval[0], self.effect_interval[1]) <= 0.2 * self.reach
        ) & (self.documents > 0)[:, None]
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
        of_classes: dict[str, NDArray[Any]] = {"class_documents": self.class_documents}
        of_classes["count_difference"] = 2 * self.class_count - self.count[:, None]
        for estimate in ("posterior_difference", "alpha", "effect"):
            name = estimate.removesuffix("_difference")
            low, high = getattr(self, f"{name}_interval")
            of_classes |= {
                estimate: getattr(self, estimate),
                f"{name}_low": low,
                f"{name}_high": high,
            }
        of_classes |= {"p_value": self.p_value, "q_value": self.q_value}
        columns = {"documents": np.tile(self.documents, k), "count": np.tile(self.count, k)}
        columns |= {name: x.T.ravel() for name, x in of_classes.items()}
        if self.units is not None:
            columns["units"] = np.tile(self.units, k)
        tokens = pl.Series("token", self.tokens.astype(object), dtype=pl.String).gather(
            np.tile(np.arange(s), k)
        )
        names = pl.Series("class", self.classes, dtype=pl.String).gather(np.repeat(np.arange(k), s))
        category = pl.Series("category", self.category().T.ravel().astype(str), dtype=pl.String)
        return pl.DataFrame([tokens, names]).hstack(pl.DataFrame(columns)).with_columns(category)


def token_importance(counts: Counts, features: int = 0, units: Ints | None = None) -> Importance:
    """All statistics of every type and class, in O(nonzeros + |S| K), a block of documents at a time; an `InputError` if fewer
    than two classes have documents.

    The last `features` columns are formatting. With `units`, the group of each document, every statistic but the numbers of
    documents and occurrences is over groups.
    """
    sums, marks = TokenSums.of_counts(counts, features, units)
    present = None if units is None else counts.present
    return importance_of(sums, counts.tokens, counts.classes, marks, counts.class_sizes, present)


def importance_of(
    sums: TokenSums,
    tokens: Tokens,
    classes: tuple[str, ...],
    marks: TokenSums | None = None,
    sizes: Ints | None = None,
    present: Ints | None = None,
) -> Importance:
    """All statistics of every type and class, from sums over words and over the presences of formatting (`marks`), words first;
    q-values are over both together. An `InputError` where fewer than two classes have documents.

    `sizes` are the documents of each class, shape (K,): α, effect and reach of a presence are divided by the mean length T̄ of a
    document, or by nothing if None. `present`, where the sums are over groups, are documents of each class that contain each type.
    """
    if np.count_nonzero(sums.class_sizes) < 2:
        raise InputError("token importance needs documents of at least two classes")
    parts = [(sums, 1.0)]
    if marks is not None and len(marks.count):
        length = 1.0 if sizes is None else float(sums.count.sum()) / int(sizes.sum())
        parts.append((marks, 1.0 / max(length, 1.0)))
    columns = np.array([1]) if len(classes) == 2 else np.arange(len(classes))
    *intervals, rest = zip(
        *(_statistics(part, columns, scale) for part, scale in parts), strict=True
    )
    reach, p = (np.concatenate(x) for x in zip(*rest, strict=True))
    found = Importance.of_columns(
        [_concatenated(interval, 0) for interval in intervals],
        *(reach, p),
        tokens=tokens,
        classes=classes,
        neutral=2 * sums.sizes / sums.documents - 1,
        class_documents=np.concatenate([part.present for part, _ in parts]),
        class_count=np.concatenate([part.count for part, _ in parts]),
    )
    if sizes is None or present is None:
        return found
    return replace(
        found, class_documents=present, neutral=2 * sizes / sizes.sum() - 1, units=found.documents
    )


def _concatenated(parts: Sequence[Interval], axis: int) -> Interval:
    middle, low, high = (np.concatenate(x, axis=axis) for x in zip(*parts, strict=True))
    return middle, low, high


def _statistics(
    sums: TokenSums, columns: Ints, scale: float
) -> tuple[Interval, Interval, Interval, tuple[Floats, Floats]]:
    """Posterior difference, α and effect with their intervals, reach and p of some classes, each of shape (|S|, C); `scale` is that
    of α, effect and reach."""
    sizes, k = sums.sizes, len(sums.class_sizes)
    documents, count, squares = (
        x.sum(axis=1, keepdims=True) for x in (sums.present, sums.count, sums.squares)
    )
    inside, squares_inside = sums.count[:, columns], sums.squares[:, columns]
    posterior = share_interval(
        inside, count - inside, (squares_inside, squares - squares_inside), quantile(documents)
    )
    p = permutation_p([sums], columns)
    groups = sums.first, sums.second, sizes, sums.inverse
    by_class = mean_interval(*groups, documents[:, 0])
    if k == 2:
        targets, pairs = 2 * np.eye(2) - 1, [by_class]  # t_k(j)
        weights = scale * np.array([[-0.5], [0.5]])
    else:
        targets, weights = np.eye(k) - 1 / k, scale * (k - 1) / k**2 * np.array([[-1.0], [1.0]])
        pairs = []
        for j in columns:
            a, b, m, inv = (
                np.stack([x.sum(axis=-1) - x[..., j], x[..., j]], axis=-1) for x in groups
            )
            pairs.append(mean_interval(a, b, m, inv, documents[:, 0]))
    alpha = combined(scale * (targets * sizes / sums.documents).T[:, columns], *by_class)
    effect = _concatenated([combined(weights, *pair) for pair in pairs], 1)
    reach = np.concatenate([pair[0] @ np.abs(weights) for pair in pairs], axis=1)
    return posterior, alpha, (effect[0], *agreeing(*effect, p)), (reach, p)
