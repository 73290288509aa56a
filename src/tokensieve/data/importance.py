"""Token importance: what the data alone says about each token type, with document-level uncertainty.

For class k and type s, with x_{X,s} = c_{X,s}/T_X, n_k documents and K classes:

    average signed frequency   α_{s,k} = mean_X t_k(y_X) x_{X,s},   t_k(y) = 1[y=k] − 1/K;   K = 2: t = ±1, so that
                               α_s = mean_X y x_{X,s}   (Wu et al. 2025, section 4.1; K classes: their reply to reviewer E1M4)
    posterior difference       P(k|s) − P(not k|s) = (N_k − N_rest)/(N_k + N_rest), N = occurrences (x axis of their figures)
    effect                     (K−1)/K² · (m_k − m_rest);  K = 2: (m_k − m_rest)/2, with m = mean of x over the class's
                               documents. It equals α when all classes are equally large, and is zero for a type that says
                               nothing however unequal they are.

Documents are the independent units, not occurrences: a word used nine times in one review is one piece of evidence (compare
the token-level z-test of Gardner et al. 2021). A type is tested by its permutation distribution over documents: the effect's
mean, variance and skewness under random relabelling are exact, its tail is the Pearson III (shifted gamma) curve with those
moments, and q-values are Benjamini–Hochberg over all types of a class.

All of it comes from `TokenSums`, which add up without rounding: the documents may be cut into parts in any way, on any number of
machines, and the result has the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numba
import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import stats

from tokensieve.errors import InputError
from tokensieve.text.counts import Counts, Floats, Ints

LEVEL = 0.05  # of q-values: the share of false discoveries that is accepted
Z95 = float(stats.norm.ppf(0.975))
WORD, WORDS = 31, 3  # bits of each part of a fixed-point number, and parts: 93 bits behind the point


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
        posterior_difference, posterior_low, posterior_high: in [−1, 1]; Wilson's 95 % interval with the effective number of
            documents (Σc)²/Σc². A type in no document has difference 0 and the interval [−1, 1].
        neutral: posterior difference of a type spread evenly over documents, 2 n_k/n − 1, shape (K,).
        alpha, alpha_low, alpha_high: average signed frequency and its 95 % interval, stratified by class.
        effect, effect_low, effect_high: the same corrected for unequal classes (Welch's interval).
        p_value: two-sided, against "the type's frequency does not depend on the class".
        q_value: Benjamini–Hochberg over the types of each class.
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
    p_value: Floats
    q_value: Floats

    def category(self, level: float = 0.05) -> NDArray[np.object_]:
        """What each type is for each class, shape (|S|, K).

        "irrelevant" where q ≥ level; otherwise "positive" or "negative" by the sign of the effect, "completely positive"
        where every document that contains it is of the class, "completely negative" where none is.
        """
        names = np.where(self.effect > 0, "positive", "negative").astype(object)
        names[self.class_documents == self.documents[:, None]] = "completely positive"
        names[self.class_documents == 0] = "completely negative"
        names[self.q_value >= level] = "irrelevant"
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
        per_class = (
            "class_documents count_difference posterior_difference posterior_low posterior_high alpha alpha_low alpha_high "
            "effect effect_low effect_high p_value q_value"
        )
        columns |= {name: getattr(self, name).T.ravel() for name in per_class.split()}
        columns["category"] = pl.Series(self.category().T.ravel().astype(str))
        frame = pl.DataFrame(columns)
        tokens = pl.Series(self.tokens.astype(object), dtype=pl.String)
        return frame.with_columns(
            pl.Series("token", tokens.gather(frame["token"])),
            pl.Series("class", pl.Series(self.classes, dtype=pl.String).gather(frame["class"])),
        )


def signed_frequency(counts: Counts, heads: int = 1) -> Floats:
    """Average signed frequency α: what the first gradient step sees of each type (module formula).

    Args:
        counts: n documents; those without any known token count in n and contribute nothing.
        heads: 1 for α_s with y = ±1, shape (|S|,); K for α_{s,k}, shape (|S|, K), whose rows sum to zero.
    """
    if heads == 1:
        targets = counts.signs[:, None]
    else:
        targets = np.eye(counts.n_classes)[counts.labels] - 1.0 / counts.n_classes
    weights = targets / (np.maximum(counts.lengths, 1.0) * max(counts.n_documents, 1))[:, None]
    alpha = np.asarray(counts.matrix.T @ weights)
    return alpha[:, 0] if heads == 1 else alpha


@dataclass(frozen=True)
class TokenSums:
    """What importance needs to know of a set of documents, as sums over them that merge exactly: `a + b` is that of both.

    With x = c/T in [0, 1], Σx, Σx² and Σx³ are kept as fixed-point numbers Σ_i word_i 2^(−31 (i+1)), i = 0, 1, 2, their words
    summed as 64-bit integers: there is no rounding in a sum, hence no order, and room for 2³² documents. What each term loses
    behind 93 bits is below its own rounding for documents of up to 5 000 tokens, and below 10⁻¹² of it for up to 200 000.

    Attributes:
        class_sizes: documents of each class, shape (K,).
        present: documents of the class that contain the type, shape (|S|, K).
        count: occurrences in the class, shape (|S|, K): whole numbers, hence exact.
        squares: Σ c², shape (|S|,).
        shares: words of Σ x and Σ x² in each class, shape (|S|, K, 2, 3).
        cubes: words of Σ x³, shape (|S|, 3).
    """

    class_sizes: Ints
    present: Ints
    count: Floats
    squares: Floats
    shares: Ints
    cubes: Ints

    @classmethod
    def zero(cls, types: int, classes: int) -> TokenSums:
        """The sums over no documents."""
        shapes = (classes,), (types, classes), (types, classes), (types,), (types, classes, 2, WORDS), (types, WORDS)
        kinds = (np.int64, np.int64, np.float64, np.float64, np.int64, np.int64)
        return cls(*(np.zeros(shape, kind) for shape, kind in zip(shapes, kinds, strict=True)))

    @classmethod
    def of(cls, counts: Counts) -> TokenSums:
        """The sums over all documents of `counts`."""
        out, m = cls.zero(counts.n_types, counts.n_classes), counts.matrix
        out.class_sizes[:] = counts.class_sizes
        _add_up(m.indptr, m.indices, m.data, counts.labels, out.present, out.count, out.squares, out.shares, out.cubes)
        return out

    def __add__(self, other: TokenSums) -> TokenSums:
        return TokenSums(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def importance(self, tokens: NDArray[Any], classes: tuple[str, ...]) -> Importance:
        """All statistics of every type and class.

        Raises:
            InputError: fewer than two classes have documents.
        """
        sizes, n = self.class_sizes.astype(np.float64), int(self.class_sizes.sum())
        if np.count_nonzero(sizes) < 2:
            raise InputError("token importance needs documents of at least two classes")
        in_class = [_number(self.shares[:, :, power]) for power in (0, 1)]
        total = [_number(self.shares.sum(axis=1)[:, power])[:, None] for power in (0, 1)]
        total.append(_number(self.cubes)[:, None])
        count, held = self.count.sum(axis=1), np.where(self.squares > 0, self.squares, 1.0)
        posterior = (2 * self.count - count[:, None]) / np.where(count > 0, count, 1.0)[:, None]
        low, high = _wilson(posterior, count**2 / held)
        alpha, alpha_half = _alpha(in_class, sizes, n)
        effect, effect_half = _effect(in_class, total, sizes, n)
        p = _permutation_p(in_class[0], total, sizes, n)
        return Importance(
            tokens, classes, self.present.sum(axis=1), count, self.present,
            2 * self.count - count[:, None], posterior, low, high, 2 * sizes / n - 1,
            alpha, alpha - alpha_half, alpha + alpha_half, effect, effect - effect_half, effect + effect_half,
            p, stats.false_discovery_control(p, axis=0) if len(p) else p,
        )  # fmt: skip


def token_importance(counts: Counts) -> Importance:
    """All statistics of every type and class, in O(nonzeros + |S| K).

    Raises:
        InputError: fewer than two classes have documents.
    """
    return TokenSums.of(counts).importance(counts.tokens, counts.classes)


@numba.njit(cache=True)
def _add_up(
    indptr: Any, indices: Any, data: Any, labels: Any, present: Any, count: Any, squares: Any, shares: Any, cubes: Any
) -> None:
    for k in range(len(indptr) - 1):
        start, end, y = indptr[k], indptr[k + 1], labels[k]
        length = 0.0
        for i in range(start, end):
            length += data[i]
        length = max(length, 1.0)
        for i in range(start, end):
            s, c = indices[i], data[i]
            x = c / length
            present[s, y] += 1
            count[s, y] += c
            squares[s] += c * c
            _add_words(shares[s, y, 0], x)
            _add_words(shares[s, y, 1], x * x)
            _add_words(cubes[s], x * x * x)


@numba.njit(cache=True)
def _add_words(words: Any, x: float) -> None:
    """Add x in [0, 1] to a fixed-point number; every step but the last is exact."""
    for i in range(WORDS - 1):
        x *= 2.0**WORD
        whole = np.floor(x)
        words[i] += np.int64(whole)
        x -= whole
    words[WORDS - 1] += np.int64(np.rint(x * 2.0**WORD))


def _number(words: Ints) -> Floats:
    """Fixed-point numbers, words along the last axis, as floats."""
    out = np.zeros(words.shape[:-1])
    for i in reversed(range(WORDS)):
        out = (out + words[..., i]) * 2.0**-WORD
    return out


def _wilson(difference: Floats, documents: Floats) -> tuple[Floats, Floats]:
    """Wilson's interval for the difference 2P − 1 of a share P seen on an effective number of documents."""
    n, p = documents[:, None], (difference + 1) / 2
    centre = (n * p + Z95**2 / 2) / (n + Z95**2)
    half = Z95 / (n + Z95**2) * np.sqrt(n * p * (1 - p) + Z95**2 / 4)
    return np.clip(2 * (centre - half) - 1, -1, 1), np.clip(2 * (centre + half) - 1, -1, 1)


def _variance(first: Floats, second: Floats, n: Floats) -> Floats:
    """Sample variance from Σx and Σx² over n documents (zero for fewer than two)."""
    n = np.maximum(n, 1.0)
    return np.maximum(second - first**2 / n, 0.0) / np.maximum(n - 1, 1.0)


def _alpha(in_class: list[Floats], sizes: Floats, n: int) -> tuple[Floats, Floats]:
    """α and the half width of its 95 % interval: Var α_k = Σ_j t_k(j)² n_j s_j²/n²."""
    k = len(sizes)
    t = 2 * np.eye(2) - 1 if k == 2 else np.eye(k) - 1 / k
    spread = _variance(in_class[0], in_class[1], sizes) * sizes
    return in_class[0] @ t.T / n, Z95 * np.sqrt(spread @ (t.T**2)) / n


def _effect(in_class: list[Floats], total: list[Floats], sizes: Floats, n: int) -> tuple[Floats, Floats]:
    """Effect and the half width of Welch's 95 % interval."""
    k, rest = len(sizes), n - sizes
    scale = 0.5 if k == 2 else (k - 1) / k**2
    inside, outside = np.maximum(sizes, 1), np.maximum(rest, 1)
    difference = in_class[0] / inside - (total[0] - in_class[0]) / outside
    squared = _variance(in_class[0], in_class[1], sizes) / inside
    squared += _variance(total[0] - in_class[0], total[1] - in_class[1], rest) / outside
    return scale * difference, scale * Z95 * np.sqrt(squared)


def _permutation_p(inside: Floats, total: list[Floats], sizes: Floats, n: int) -> Floats:
    """Two-sided p of Σ_{X of class k} x_X under random relabelling with fixed class sizes.

    With M_j = Σ(x − x̄)^j and m of n documents drawn:  Var = m(n−m)/(n(n−1)) M_2,
    third central moment = m(n−m)(n−2m)/(n(n−1)(n−2)) M_3.

    A Pearson III curve ends at 2/|skewness| standard deviations on its thin side, which a few documents with a very large x
    can move inside the sums that relabelling reaches. There |skewness| is held to that of a Poisson count whose zero lies at
    the end of the reachable sums: sd/mean below (sum 0), sd/(Σx − mean) above (sum Σx).
    """
    s1, s2, s3 = total
    m2 = np.maximum(s2 - s1**2 / n, 0.0)
    m3 = s3 - 3 * s1 * s2 / n + 2 * s1**3 / n**2
    variance = sizes * (n - sizes) / (n * max(n - 1, 1)) * m2
    third = sizes * (n - sizes) * (n - 2 * sizes) / (n * max((n - 1) * (n - 2), 1)) * m3
    mean = s1 * sizes / n
    flat = ~(m2 > 1e-12 * s2) | (variance == 0)
    sd = np.where(flat, 1.0, np.sqrt(variance))
    z, skew = np.where(flat, 0.0, (inside - mean) / sd), np.where(flat, 0.0, third / sd**3)
    with np.errstate(divide="ignore"):
        below, above = np.minimum(skew, sd / mean), np.maximum(skew, -sd / (s1 - mean))
    p = 2 * np.minimum(stats.pearson3.sf(z, above), stats.pearson3.cdf(z, below))
    return np.where(flat, 1.0, np.clip(p, 0.0, 1.0))
