"""Token importance: what the data alone shows about each token type, with uncertainty.

For class k and type s, with x_{X,s} = c_{X,s}/T_X, n_k documents and K classes:

- average signed frequency: α_{s,k} = mean_X t_k(y_X) x_{X,s} with t_k(y) = 1[y=k] − 1/K. For K = 2,
  t = ±1, so that α_s = mean_X y x_{X,s} (Wu et al. 2025, section 4.1; K classes: their reply to
  reviewer E1M4);
- posterior difference: P(k|s) − P(not k|s) = (N_k − N_rest)/(N_k + N_rest), N = occurrences (x axis
  of their figures);
- effect: (K−1)/K² · (m_k − m_rest), for K = 2 (m_k − m_rest)/2, with m = mean of x over the class's
  documents. It equals α when all classes are equally large, and is zero for a type whose frequency
  does not depend on the class, however unequal they are.

Documents are the independent units, not occurrences. Intervals and the test are those of
`tokensieve.evidence.intervals`; docs/statistics.md explains each in words and measures how often
the intervals contain the truth.

**Formatting** is in the same table, behind the words. A feature enters as a presence: its test,
q-value and posterior difference are those of a type with c = 1 in the documents that have it; its α
and effect are its difference in share of documents divided by the mean length T̄ in words. The
lengths T_X, and with them every number of a word but its q-value, do not change.

**Groups**: documents that belong together (one author, thread, template) are one piece of evidence.
The documents of a group with the same label are merged into one first. A group with several labels
is one merged document in each of its classes; these are not independent, which makes the test
conservative.
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
    GroupSums,
    Interval,
    Occurrences,
    agreeing,
    combined,
    false_discovery,
    permutation_p,
    quantile,
    share_interval,
)
from tokensieve.evidence.sums import TokenSums, blocks_of_types
from tokensieve.text.counts import Counts

Tokens = NDArray[np.str_] | NDArray[np.object_]  # types as text
# of the reach: (1 + 0.2)/(1 − 0.2) = 1.5 times as frequent in the class as in the others
MAX_IRRELEVANT_LEAN = 0.2


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
    """The statistics of |S| token types for K classes; all arrays have shape (types, K).

    With two classes the columns mirror each other: column 1 is the paper's y = +1.

    Attributes:
        tokens: the types as text, shape (types,).
        classes: the K class names.
        class_documents: documents of the class containing the type.
        class_count: its occurrences in the class, N_k.
        posterior_difference: in [−1, 1]; 0 for a type in no document.
        posterior_interval: 95 % interval, assuming that documents are drawn together with their
            labels; [−1, 1] for a type in no document.
        neutral: posterior difference of a type spread evenly over documents, 2 n_k/n − 1,
            shape (K,).
        alpha, alpha_interval: average signed frequency and its 95 % interval, class sizes fixed.
        effect, effect_interval: the same corrected for unequal classes; the interval excludes zero
            if and only if p < 0.05.
        reach: the effect that a type as frequent as this one would have if it occurred in the class
            only (half of m_k + m_rest for two classes): |effect| ≤ reach.
        p_value: two-sided, against "the type's frequency does not depend on the class".
        q_value: Benjamini–Hochberg over the types of each class.
        units: groups containing the type, shape (types,), if groups are the independent units.
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

    @cached_property
    def documents(self) -> Ints:
        """Documents containing each type, shape (types,)."""
        return np.asarray(self.class_documents.sum(axis=1))

    @cached_property
    def count(self) -> Floats:
        """Occurrences of each type, shape (types,)."""
        return np.asarray(self.class_count.sum(axis=1))

    @property
    def lean(self) -> Floats:
        """The effect as a fraction of its reach, shape (types, K); 0 for a type in no document."""
        return np.asarray(self.effect / np.where(self.reach > 0, self.reach, 1.0))

    def category(self, level: float = LEVEL) -> NDArray[np.object_]:
        """The `Category` of each type for each class, as text, shape (types, K).

        Where q < level the sign of the effect decides: `FOR`, or `ONLY` where every document that
        contains the type is of the class; `AGAINST`, or `NEVER` where none is. Elsewhere a type is
        `IRRELEVANT` if its 95 % interval shows that it is at most 1.5 and at least 1/1.5 times as
        frequent in the class as in the others (effect within 0.2 · reach of zero: (1 + 0.2)/(1 −
        0.2) = 1.5), and otherwise `RARE`.
        """
        largest = np.maximum(-self.effect_interval[0], self.effect_interval[1])
        occurs = (self.documents > 0)[:, None]
        is_irrelevant = (largest <= MAX_IRRELEVANT_LEAN * self.reach) & occurs
        is_for = (self.q_value < level) & (self.effect > 0)
        is_against = (self.q_value < level) & ~(self.effect > 0)
        is_in_all = self.class_documents == self.documents[:, None]
        is_in_none = self.class_documents == 0

        names = np.full(self.effect.shape, Category.RARE.value, dtype=object)
        names[is_irrelevant] = Category.IRRELEVANT.value
        names[is_for] = Category.FOR.value
        names[is_against] = Category.AGAINST.value
        names[is_for & is_in_all] = Category.ONLY.value
        names[is_against & is_in_none] = Category.NEVER.value
        return names

    def to_frame(self) -> pl.DataFrame:
        """One row per type and class: all types of class 0, then of class 1, …"""
        n_classes = len(self.classes)
        n_types = len(self.tokens)
        by_class: dict[str, NDArray[Any]] = {
            "class_documents": self.class_documents,
            "count_difference": 2 * self.class_count - self.count[:, None],
            "posterior_difference": self.posterior_difference,
            "posterior_low": self.posterior_interval[0],
            "posterior_high": self.posterior_interval[1],
            "alpha": self.alpha,
            "alpha_low": self.alpha_interval[0],
            "alpha_high": self.alpha_interval[1],
            "effect": self.effect,
            "effect_low": self.effect_interval[0],
            "effect_high": self.effect_interval[1],
            "p_value": self.p_value,
            "q_value": self.q_value,
        }
        columns = {
            "documents": np.tile(self.documents, n_classes),
            "count": np.tile(self.count, n_classes),
        }
        columns |= {name: values.T.ravel() for name, values in by_class.items()}
        if self.units is not None:
            columns["units"] = np.tile(self.units, n_classes)

        # strings are stored once and gathered: a column of a million texts would be slow to make
        tokens = pl.Series("token", self.tokens.astype(object), dtype=pl.String)
        classes = pl.Series("class", self.classes, dtype=pl.String)
        category = pl.Series("category", self.category().T.ravel().astype(str), dtype=pl.String)
        names = [
            tokens.gather(np.tile(np.arange(n_types), n_classes)),
            classes.gather(np.repeat(np.arange(n_classes), n_types)),
        ]
        return pl.DataFrame(names).hstack(pl.DataFrame(columns)).with_columns(category)


@dataclass(frozen=True)
class Statistics:
    """What sums show about |S| types for C classes; all arrays have shape (types, C)."""

    posterior: Interval
    alpha: Interval
    effect: Interval
    reach: Floats
    p_value: Floats

    @staticmethod
    def concatenate(parts: Sequence[Statistics]) -> Statistics:
        """The types of several parts, one after the other."""
        return Statistics(
            Interval.concatenate([part.posterior for part in parts], axis=0),
            Interval.concatenate([part.alpha for part in parts], axis=0),
            Interval.concatenate([part.effect for part in parts], axis=0),
            np.concatenate([part.reach for part in parts]),
            np.concatenate([part.p_value for part in parts]),
        )

    def importance(self, **others: Any) -> Importance:
        """Convert these statistics into an `Importance`; its other attributes are passed on as they
        are.

        Of two classes these are the statistics of the second, which the first mirrors.
        """
        q_value = false_discovery(self.p_value)
        posterior = self.posterior
        alpha = self.alpha
        effect = self.effect
        copies = 1
        if len(others["classes"]) == 2:
            copies = 2
            posterior = Interval.concatenate([-posterior, posterior], axis=1)
            alpha = Interval.concatenate([-alpha, alpha], axis=1)
            effect = Interval.concatenate([-effect, effect], axis=1)
        return Importance(
            posterior_difference=posterior.estimate,
            posterior_interval=(posterior.low, posterior.high),
            alpha=alpha.estimate,
            alpha_interval=(alpha.low, alpha.high),
            effect=effect.estimate,
            effect_interval=(effect.low, effect.high),
            reach=np.repeat(self.reach, copies, axis=1),
            p_value=np.repeat(self.p_value, copies, axis=1),
            q_value=np.repeat(q_value, copies, axis=1),
            **others,
        )


def token_importance(counts: Counts, features: int = 0, units: Ints | None = None) -> Importance:
    """All statistics of every type and class, in O(nonzeros + |S| K), a block of documents at a
    time.

    Args:
        features: how many of the last columns are formatting.
        units: the group of each document; every statistic but the numbers of documents and
            occurrences is then over groups.

    Raises:
        InputError: fewer than two classes have documents.
    """
    words, formatting = TokenSums.of_counts(counts, features, units)
    present = None if units is None else counts.present
    return importance_of(
        words, counts.tokens, counts.classes, formatting, counts.class_sizes, present
    )


def importance_of(
    words: TokenSums,
    tokens: Tokens,
    classes: tuple[str, ...],
    formatting: TokenSums | None = None,
    class_sizes: Ints | None = None,
    present: Ints | None = None,
) -> Importance:
    """All statistics of every type and class, from sums over words and over formatting.

    Words come first; q-values are over both together.

    Args:
        class_sizes: documents of each class, shape (K,); α, effect and reach of formatting are
            divided by the mean length T̄ of a document, or by nothing if None.
        present: where the sums are over groups, documents of each class that contain each type.

    Raises:
        InputError: fewer than two classes have documents.
    """
    if np.count_nonzero(words.class_sizes) < 2:
        raise InputError("token importance needs documents of at least two classes")
    # of two classes, the first mirrors the second
    columns = np.array([1]) if len(classes) == 2 else np.arange(len(classes))
    kinds = [words]
    statistics = _statistics(words, columns, scale=1.0)
    if formatting is not None and len(formatting.count):
        mean_length = 1.0
        if class_sizes is not None:
            mean_length = float(words.count.sum()) / int(class_sizes.sum())
        kinds.append(formatting)
        statistics += _statistics(formatting, columns, scale=1.0 / max(mean_length, 1.0))
    importance = Statistics.concatenate(statistics).importance(
        tokens=tokens,
        classes=classes,
        neutral=2 * words.sizes / words.documents - 1,
        class_documents=np.concatenate([kind.present for kind in kinds]),
        class_count=np.concatenate([kind.count for kind in kinds]),
    )
    if class_sizes is None or present is None:
        return importance
    return replace(
        importance,
        class_documents=present,
        neutral=2 * class_sizes / class_sizes.sum() - 1,
        units=importance.documents,
    )


def _statistics(sums: TokenSums, columns: Ints, scale: float) -> list[Statistics]:
    """The statistics of some classes, a block of types at a time; `scale` is that of α, effect and
    reach."""
    blocks = blocks_of_types(len(sums.count))
    return [_statistics_of_types(sums.of_types(some), columns, scale) for some in blocks]


def _statistics_of_types(sums: TokenSums, columns: Ints, scale: float) -> Statistics:
    """The statistics of some token types, few enough for memory (see `_statistics`)."""
    documents = sums.present.sum(axis=1, keepdims=True)
    groups = GroupSums.of_classes(sums)
    means = groups.mean_interval(documents[:, 0])
    p_value = permutation_p([sums], columns)

    n_classes = len(sums.class_sizes)
    if n_classes == 2:
        targets = 2 * np.eye(2) - 1  # t_k(j)
        weights = scale * np.array([[-1.0], [1.0]]) / 2
        against_rest = [means]
    else:
        targets = np.eye(n_classes) - 1 / n_classes
        weights = scale * (n_classes - 1) / n_classes**2 * np.array([[-1.0], [1.0]])
        against_rest = [groups.against_rest(k).mean_interval(documents[:, 0]) for k in columns]
    effects = [combined(weights, pair) for pair in against_rest]
    reaches = [pair.estimate @ np.abs(weights) for pair in against_rest]
    return Statistics(
        posterior=share_interval(_occurrences(sums, columns), quantile(documents)),
        alpha=combined(scale * (targets * sums.sizes / sums.documents).T[:, columns], means),
        effect=agreeing(Interval.concatenate(effects, axis=1), p_value),
        reach=np.concatenate(reaches, axis=1),
        p_value=p_value,
    )


def _occurrences(sums: TokenSums, columns: Ints) -> Occurrences:
    """Occurrences inside and outside of some classes."""
    class_counts = sums.count[:, columns]
    squares_inside = sums.squares[:, columns]
    return Occurrences(
        class_counts,
        sums.count.sum(axis=1, keepdims=True) - class_counts,
        squares_inside,
        sums.squares.sum(axis=1, keepdims=True) - squares_inside,
    )
