"""Does what the model does with each word agree with what the data says about it? Correlations with intervals.

**Importance** of type s for class k, from occurrences N and class sizes n_k in documents, r_k = N_{s,k}/n_k:

    I_{s,k} = (r_k − r_rest)/(r_k + r_rest) · m_s/(m_s + z²),    m_s = (Σ_X c_{X,s})²/Σ_X c_{X,s}²,  z = 1.96

The first factor is the posterior difference under equal classes; the second is the shrinkage of Wilson's interval (its centre),
so that a word seen in few documents, whose difference is mostly noise, does not count as important.

**Correlation**: Pearson's ρ over the |S| types, of I with signed measures, and of |I| with the logarithm of attention (attention
is the softmax of scores, so its logarithm is a score up to a constant). With K > 2 classes the classes' columns are stacked.
**Interval**: Fisher's z = artanh ρ with variance

    1/(|S| − 3)  +  (G−1)/G Σ_g (z_(g) − z̄)²

the first for the types as a sample, the second for the documents: the jackknife that leaves out one of G groups of documents
at a time, in importance and measure alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tokensieve.diagnose.effects.measuring import Measured
from tokensieve.evidence.intervals import Z95
from tokensieve.text.counts import Counts, Floats, Ints


@dataclass(frozen=True)
class Correlation:
    """A correlation.

    Attributes:
        rho: Pearson's ρ; nan where one side is constant.
        low, high: 95 % interval.
        error: standard error of artanh ρ.
    """

    rho: float
    low: float
    high: float
    error: float

    def above(self, other: Correlation) -> bool:
        """Whether it is larger at the 5 % level (two-sided), the two taken as independent."""
        gap = _fisher(self.rho) - _fisher(other.rho)
        return bool(gap > Z95 * math.hypot(self.error, other.error))


Evidence = tuple[Floats, Floats, Floats]
"""By group of documents: Σ c in the documents of each class, shape (G, |S|, K); Σ c², (G, |S|); documents of each class, (G, K)."""
Parts = dict[str, Floats]
"""What a model does with each word, as sums over G groups of documents; H answers, L layers:

    value                 its answer to the word alone, shape (|S|, H)
    effect, effects       Σ of the word's effects and their number, (G, |S|, H); not there if they were not integrated. With K > 2
                          classes an input counts for the class predicted
    deletion, deletions   Σ of what removing it took, (G, |S|, H), and how often, (G, |S|, 1)
    held                  how often its effect was measured, (G, |S|)
    attention             Σ of what it received, (L+1, G, |S|); not there if the model gives none
"""


def gather(counts: Counts, groups: Ints, n_groups: int) -> Evidence:
    """Sums of the counts by group and class.

    Args:
        counts: n documents over |S| types.
        groups: group of each document, shape (n,), values 0 … G−1.
        n_groups: G.
    """
    K = counts.n_classes
    cell = groups * K + counts.labels
    one_hot = sp.csr_array((np.ones(len(cell)), (np.arange(len(cell)), cell)), shape=(len(cell), n_groups * K))
    squared = counts.matrix.copy()
    squared.data = squared.data**2
    by_cell = np.asarray((one_hot.T @ counts.matrix).todense()).reshape(n_groups, K, -1)
    squares = np.asarray((one_hot.T @ squared).todense()).reshape(n_groups, K, -1).sum(axis=1)
    sizes = np.bincount(cell, minlength=n_groups * K).reshape(n_groups, K).astype(np.float64)
    return by_cell.transpose(0, 2, 1).astype(np.float64), squares.astype(np.float64), sizes


def importance(class_count: Floats, squares: Floats, class_documents: Floats) -> Floats:
    """I_{s,k} of the module's formula, shape (|S|, H): the second class for K = 2, every class for K > 2.

    Args:
        class_count: N_{s,k}, shape (|S|, K).
        squares: Σ_X c_{X,s}², shape (|S|,).
        class_documents: n_k, shape (K,).
    """
    count = class_count.sum(axis=1, keepdims=True)
    inside = class_count / np.maximum(class_documents, 1)
    outside = (count - class_count) / np.maximum(class_documents.sum() - class_documents, 1)
    both = inside + outside
    balanced = (inside - outside) / np.where(both > 0, both, 1.0)
    effective = (count[:, 0] ** 2 / np.where(squares > 0, squares, 1.0))[:, None]
    out = balanced * effective / (effective + Z95**2)
    return np.asarray(out[:, 1:] if class_count.shape[1] == 2 else out)


def parts_of(measured: Measured, groups: Ints, n_groups: int, chosen: Ints, lost: Floats, some: Ints) -> Parts:
    """Sums over groups.

    Args:
        measured: of the model.
        groups: group of each input, shape (W,).
        n_groups: G.
        chosen: pairs of which the word was removed, shape (D,).
        lost: what the answers lost, shape (D, H).
        some: words that have no measures here: rare ones, which were picked by what the model does with them.
    """
    S, H = measured.value.shape
    cell = groups[measured.windows] * S + measured.types

    def sums(x: Floats, at: Ints, *shape: int) -> Floats:
        return (
            np.bincount(at, x, n_groups * S * (shape[0] if shape else 1))
            .reshape(n_groups, S, *shape)
            .astype(np.float64)
        )

    known = np.isfinite(measured.effect) & ~np.isin(measured.types, some)
    e, where = measured.effect[known], cell[known]
    by_head = where * H + measured.heads[measured.windows[known]]
    there = np.isfinite(lost).all(axis=1) & ~np.isin(measured.types[chosen], some)
    out_cell = cell[chosen[there]]
    value = measured.value.copy()
    value[some] = np.nan
    parts = {
        "value": value,
        "effects": sums(np.ones(len(e)), by_head, H),
        "deletion": np.stack([sums(column, out_cell) for column in lost[there].T], axis=-1),
        "deletions": sums(np.ones(len(out_cell)), out_cell)[..., None],
        "held": sums(np.ones(len(e)), where),
    }
    if measured.method == "integrated gradients":
        parts["effect"] = sums(e, by_head, H)
    if measured.attention is not None:
        parts["attention"] = np.stack([sums(layer[known].astype(np.float64), where) for layer in measured.attention])
    return parts


def correlations(evidence: Evidence, parts: Parts) -> dict[str, Correlation]:
    """Every measure against importance: value, gradient, deletion, attention (rolled out) and attention of each layer.

    Args:
        evidence: of the documents.
        parts: the model's sums over the same groups.
    """
    whole = importance(*(part.sum(axis=0) for part in evidence))
    left = [importance(*(part.sum(axis=0) - part[g] for part in evidence)) for g in range(len(evidence[1]))]
    out = {"value_importance": correlate(whole, left, parts["value"], [parts["value"]] * len(left), True)}
    pairs: dict[str, tuple[Floats | None, Floats]] = {
        "gradient_importance": (parts.get("effect"), parts["effects"]),
        "deletion_importance": (parts["deletion"], parts["deletions"]),
    }
    attention = parts.get("attention")
    if attention is not None:
        last = len(attention) - 1
        pairs["attention_importance"] = (attention[last], parts["held"])
        pairs |= {f"attention_layer_{i + 1}_importance": (attention[i], parts["held"]) for i in range(last)}
    for name, (sums, weights) in pairs.items():
        if sums is not None and weights.any():
            means = [mean(sums, weights, leave=g) for g in range(len(sums))]
            out[name] = correlate(whole, left, mean(sums, weights), means, signed=sums.ndim == 3)
    return out


def mean(sums: Floats, weights: Floats, leave: int | None = None) -> Floats:
    """Σ over groups of sums / Σ of weights, without one group if asked; nan where nothing was measured."""
    top, bottom = sums.sum(axis=0), np.broadcast_to(weights.sum(axis=0), sums.shape[1:])
    if leave is not None:
        top, bottom = top - sums[leave], bottom - weights[leave]
    return np.asarray(np.divide(top, bottom, out=np.full(top.shape, np.nan), where=bottom > 0.5))


def correlate(whole: Floats, left: list[Floats], measure: Floats, measures: list[Floats], signed: bool) -> Correlation:
    """ρ with its interval.

    Args:
        whole: importance, shape (|S|, H).
        left: importance without each group.
        measure: of all documents, shape (|S|, H), or (|S|,) for one that has no sign.
        measures: the measure without each group.
        signed: whether signs are compared, or sizes of importance.
    """
    there = _measured(measure)
    rho = _pearson(whole, measure, there, signed)
    parts = zip(left, measures, strict=True)  # a word of one group alone has no number without it
    z = np.array([_fisher(_pearson(i, m, there & _measured(m), signed)) for i, m in parts])
    types = int(there.sum())
    if types < 5 or not np.isfinite(rho) or not np.isfinite(z).all():
        return Correlation(rho, math.nan, math.nan, math.nan)
    variance = 1 / (types - 3) + (len(z) - 1) / len(z) * float(np.sum((z - z.mean()) ** 2))
    error = math.sqrt(variance)
    centre = _fisher(rho)
    return Correlation(rho, math.tanh(centre - Z95 * error), math.tanh(centre + Z95 * error), error)


def shuffled(counts: Counts, parts: Parts, seed: int) -> dict[str, tuple[float, float]]:
    """Middle 95 % of the correlations with the importance of 200 random orders of the labels."""
    rng = np.random.default_rng(seed)
    whole = gather(counts, np.zeros(counts.n_documents, dtype=np.int64), 1)
    sides = _sides(parts)
    found: dict[str, list[float]] = {name: [] for name in sides}
    eye = np.eye(counts.n_classes)
    for _ in range(200):
        labels = rng.permutation(counts.labels)
        drawn = importance(np.asarray(counts.matrix.T @ eye[labels]), whole[1][0], whole[2][0])
        for name, (measure, signed) in sides.items():
            there = _measured(measure)
            found[name].append(_pearson(drawn, measure, there, signed))
    ends = {
        name: np.nanquantile(rhos, [0.025, 0.975]) if np.isfinite(rhos).any() else [math.nan] * 2
        for name, rhos in found.items()
    }
    return {name: (float(low), float(high)) for name, (low, high) in ends.items()}


def of_frequency(evidence: Evidence, documents: Ints) -> dict[str, Correlation]:
    """What a model that only knew how many documents hold each word would reach: the same for every measure of a kind."""
    whole = importance(*(part.sum(axis=0) for part in evidence))
    left = [importance(*(part.sum(axis=0) - part[g] for part in evidence)) for g in range(len(evidence[1]))]
    flat = documents.astype(np.float64)
    wide = np.repeat(flat[:, None], whole.shape[1], axis=1)
    return {
        "value_importance": correlate(whole, left, wide, [wide] * len(left), True),
        "attention_importance": correlate(whole, left, flat, [flat] * len(left), False),
    }


def _measured(measure: Floats) -> NDArray[np.bool_]:
    """Where there is a number."""
    return np.asarray(np.isfinite(measure))


def _sides(parts: Parts) -> dict[str, tuple[Floats, bool]]:
    out: dict[str, tuple[Floats, bool]] = {"value_importance": (parts["value"], True)}
    if "effect" in parts:
        out["gradient_importance"] = (mean(parts["effect"], parts["effects"]), True)
    if parts["deletions"].any():
        out["deletion_importance"] = (mean(parts["deletion"], parts["deletions"]), True)
    if "attention" in parts:
        out["attention_importance"] = (mean(parts["attention"][-1], parts["held"]), False)
    return out


def _pearson(importance: Floats, measure: Floats, there: NDArray[np.bool_], signed: bool) -> float:
    """Pearson's ρ; without signs a type's importance is its largest size over classes, and the measure is taken in logs."""
    x = importance[there] if signed else np.abs(importance[there]).max(axis=1, initial=0.0)
    y = measure[there]
    y = y if signed else np.log(np.maximum(y, 1e-12))
    x, y = x - x.mean(), y - y.mean()
    size = math.sqrt(float(x @ x) * float(y @ y))
    return float(x @ y) / size if size > 0 else math.nan


def _fisher(rho: float) -> float:
    return math.atanh(max(min(rho, 1 - 1e-9), -1 + 1e-9)) if math.isfinite(rho) else math.nan
