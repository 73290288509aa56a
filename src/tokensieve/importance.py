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
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import stats

from tokensieve.counts import Counts, Floats, Ints
from tokensieve.errors import InputError

Z95 = float(stats.norm.ppf(0.975))


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


def token_importance(counts: Counts) -> Importance:
    """All statistics of every type and class, in O(nonzeros · K).

    Raises:
        InputError: fewer than two classes have documents.
    """
    n, sizes = counts.n_documents, counts.class_sizes.astype(np.float64)
    if np.count_nonzero(sizes) < 2:
        raise InputError("token importance needs documents of at least two classes")
    m, member = counts.matrix, np.eye(counts.n_classes)[counts.labels]
    share = m.copy()
    share.data = m.data / np.repeat(np.maximum(counts.lengths, 1.0), np.diff(m.indptr))
    powers = [_power(share, e) for e in (1, 2, 3)]
    in_class = [np.asarray(x.T @ member) for x in powers[:2]]
    total = [np.asarray(x.sum(axis=0)).ravel()[:, None] for x in powers]
    n_k = np.asarray(m.T @ member)
    count = n_k.sum(axis=1)
    squares = np.asarray(_power(m, 2).sum(axis=0)).ravel()
    posterior = (2 * n_k - count[:, None]) / np.where(count > 0, count, 1.0)[:, None]
    low, high = _wilson(posterior, count**2 / np.where(count > 0, squares, 1.0))
    alpha, alpha_half = _alpha(in_class, sizes, n)
    effect, effect_half = _effect(in_class, total, sizes, n)
    p = _permutation_p(in_class[0], total, sizes, n)
    present = np.asarray(_power(m, 0).T @ member)
    return Importance(
        counts.tokens, counts.classes, np.rint(present.sum(axis=1)).astype(np.int64), count, np.rint(present).astype(np.int64),
        2 * n_k - count[:, None], posterior, low, high, 2 * sizes / n - 1,
        alpha, alpha - alpha_half, alpha + alpha_half, effect, effect - effect_half, effect + effect_half,
        p, stats.false_discovery_control(p, axis=0) if len(p) else p,
    )  # fmt: skip


def _power(matrix: Any, exponent: int) -> Any:
    out = matrix.copy()
    out.data = matrix.data**exponent
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
