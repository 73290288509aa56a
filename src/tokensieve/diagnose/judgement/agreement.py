"""Does what the model does with each word agree with what the data says about it? And has it learned to predict the label?

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
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy import stats

from tokensieve.arrays import Floats, Ints
from tokensieve.diagnose.effects.measuring import Measured
from tokensieve.diagnose.judgement.status import Status
from tokensieve.evidence.intervals import Z95
from tokensieve.model.attention import decide
from tokensieve.text.counts import Counts

Parts = dict[str, tuple[Floats, list[Floats]]]
"""How a model uses each word, by measure: the mean over all documents, and the means with each of G groups left out; nan if nothing
was measured, no entry if nothing could be. `value` (prediction for the word alone), `gradient` (integrated gradients; with K > 2
classes an input counts towards its predicted class) and `deletion` (effect of removing the word) have shape (|S|, H), `attention`
(rollout) and `attention_layer_<l>` shape (|S|,)."""


@dataclass(frozen=True)
class Correlation:
    """Pearson's ρ (nan where one side is constant) with its 95 % interval, and the standard error of artanh ρ."""

    rho: float
    low: float
    high: float
    error: float

    @classmethod
    def of(
        cls, whole: Floats, left: Sequence[Floats], measure: Floats, measures: Sequence[Floats]
    ) -> Correlation:
        """Of importance, (|S|, H), and a measure, (|S|, H), or (|S|,) without a sign; of all documents, and without each group."""
        there = np.isfinite(measure)
        rho, types = _pearson(whole, measure, there), int(there.sum())
        parts = zip(
            left, measures, strict=True
        )  # a word of one group alone has no number without it
        z = np.array([_fisher(_pearson(i, m, there & np.isfinite(m))) for i, m in parts])
        if types < 5 or not np.isfinite(rho) or not np.isfinite(z).all():
            return cls(rho, math.nan, math.nan, math.nan)
        variance = 1 / (types - 3) + (len(z) - 1) / len(z) * float(np.sum((z - z.mean()) ** 2))
        error, centre = math.sqrt(variance), _fisher(rho)
        return cls(rho, math.tanh(centre - Z95 * error), math.tanh(centre + Z95 * error), error)

    def stands_out(
        self, by_chance: tuple[float, float] | None, untrained: Correlation | None
    ) -> bool:
        """Whether it is above zero, above what shuffled labels reach, and above the untrained model's (two-sided, 5 % level)."""
        if self.low <= 0 or self.rho <= (by_chance or (0.0, 0.0))[1]:
            return False
        if untrained is None or not math.isfinite(untrained.rho):
            return True
        return _fisher(self.rho) - _fisher(untrained.rho) > Z95 * math.hypot(
            self.error, untrained.error
        )


class Evidence:
    """What n documents say of |S| words: `whole` is I_{s,k} of the module's formula, shape (|S|, H) (the second class for K = 2,
    every class for K > 2), `left` the same without each of G groups of documents (values 0 … G−1, shape (n,))."""

    def __init__(self, counts: Counts, groups: Ints, n_groups: int) -> None:
        K = counts.n_classes
        cell = groups * K + counts.labels
        one_hot = sp.csr_array(
            (np.ones(len(cell)), (np.arange(len(cell)), cell)), shape=(len(cell), n_groups * K)
        )
        squared = counts.matrix.copy()
        squared.data = squared.data**2
        held, squares = (
            np.asarray((one_hot.T @ x).todense()).reshape(n_groups, K, -1).astype(np.float64)
            for x in (counts.matrix, squared)
        )
        held, squares = held.transpose(0, 2, 1), squares.sum(axis=1)
        sizes = np.bincount(cell, minlength=n_groups * K).reshape(n_groups, K).astype(np.float64)
        self._counts, self._sums = counts, [part.sum(axis=0) for part in (held, squares, sizes)]
        self.whole = _importance(*self._sums)
        parts = zip(held, squares, sizes, strict=True)
        self.left = [
            _importance(*(x - y for x, y in zip(self._sums, part, strict=True))) for part in parts
        ]

    def parts(
        self, measured: Measured, groups: Ints, chosen: Ints, lost: Floats, some: Ints
    ) -> Parts:
        """Means over documents, by groups of inputs, shape (W,), and pairs of which the word was removed, shape (D,), with what the
        answers lost, shape (D, H). `some` words have no measures here: rare ones, picked by what the model does with them."""
        (S, H), n_groups = measured.value.shape, len(self.left)
        cell = groups[measured.windows] * S + measured.types

        def sums(x: Floats, at: Ints, *shape: int) -> Floats:
            size = n_groups * S * math.prod(shape)
            return np.bincount(at, x, size).reshape(n_groups, S, *shape).astype(np.float64)

        def means(top: Floats, bottom: Floats) -> tuple[Floats, list[Floats]]:
            """Of sums and how many values are in each, by group; nan where there are none."""
            left = [
                (top.sum(axis=0) - x, bottom.sum(axis=0) - n)
                for x, n in zip(top, bottom, strict=True)
            ]
            every = [(top.sum(axis=0), bottom.sum(axis=0)), *left]
            out = [
                np.divide(
                    x, n, out=np.full(x.shape, np.nan), where=np.broadcast_to(n, x.shape) > 0.5
                )
                for x, n in every
            ]
            return out[0], out[1:]

        known = np.isfinite(measured.effect) & ~np.isin(measured.types, some)
        e = measured.effect[known]
        by_head = cell[known] * H + measured.heads[measured.windows[known]]
        removed, value = cell[chosen], measured.value.copy()
        value[some] = np.nan
        parts = {"value": (value, [value] * n_groups)}
        if measured.method == "integrated gradients":
            parts["gradient"] = means(sums(e, by_head, H), sums(np.ones(len(e)), by_head, H))
        deletion = np.stack([sums(column, removed) for column in lost.T], axis=-1)
        parts["deletion"] = means(deletion, sums(np.ones(len(removed)), removed)[..., None])
        if measured.attention is not None:
            frequent = ~np.isin(measured.types, some)
            held = sums(np.ones(int(frequent.sum())), cell[frequent])
            received = [
                means(sums(layer[frequent].astype(np.float64), cell[frequent]), held)
                for layer in measured.attention
            ]
            parts["attention"] = received[-1]
            parts |= {f"attention_layer_{i + 1}": layer for i, layer in enumerate(received[:-1])}
        return parts

    def correlations(self, parts: Parts) -> dict[str, Correlation]:
        """Every measure against importance: value, gradient, deletion, attention (rolled out) and attention of each layer."""
        return {
            f"{name}_importance": Correlation.of(self.whole, self.left, whole, left)
            for name, (whole, left) in parts.items()
            if np.isfinite(whole).any()
        }

    def shuffled(self, parts: Parts, seed: int) -> dict[str, tuple[float, float]]:
        """Middle 95 % of the correlations with the importance of 200 random orders of the labels."""
        rng, counts, eye = np.random.default_rng(seed), self._counts, np.eye(self._counts.n_classes)
        sides = {
            name: x
            for name, (x, _) in parts.items()
            if np.isfinite(x).any() and "layer" not in name
        }
        found: dict[str, list[float]] = {name: [] for name in sides}
        for _ in range(200):
            labels = rng.permutation(counts.labels)
            drawn = _importance(np.asarray(counts.matrix.T @ eye[labels]), *self._sums[1:])
            for name, measure in sides.items():
                found[name].append(_pearson(drawn, measure, np.isfinite(measure)))
        out = {}
        for name, rhos in found.items():
            ends = (
                np.nanquantile(rhos, [0.025, 0.975]) if np.isfinite(rhos).any() else [math.nan] * 2
            )
            out[f"{name}_importance"] = float(ends[0]), float(ends[1])
        return out

    def of_frequency(self, documents: Ints) -> dict[str, Correlation]:
        """The correlation that document frequency alone would reach, the same for every measure of a kind."""
        flat = documents.astype(np.float64)
        kinds = {"value": np.repeat(flat[:, None], self.whole.shape[1], axis=1), "attention": flat}
        n = len(self.left)
        return {
            f"{name}_importance": Correlation.of(self.whole, self.left, x, [x] * n)
            for name, x in kinds.items()
        }


def _importance(class_count: Floats, squares: Floats, class_documents: Floats) -> Floats:
    """The module's formula, from N_{s,k}, shape (|S|, K), Σ_X c_{X,s}², shape (|S|,), and n_k, shape (K,)."""
    count = class_count.sum(axis=1, keepdims=True)
    inside = class_count / np.maximum(class_documents, 1)
    outside = (count - class_count) / np.maximum(class_documents.sum() - class_documents, 1)
    both = inside + outside
    balanced = (inside - outside) / np.where(both > 0, both, 1.0)
    effective = (count[:, 0] ** 2 / np.where(squares > 0, squares, 1.0))[:, None]
    out = balanced * effective / (effective + Z95**2)
    return np.asarray(out[:, 1:] if class_count.shape[1] == 2 else out)


def _pearson(importance: Floats, measure: Floats, there: NDArray[np.bool_]) -> float:
    """Pearson's ρ; without signs a type's importance is its largest size over classes, and the measure is taken in logs."""
    x, y = importance[there], measure[there]
    if measure.ndim == 1:
        x, y = np.abs(x).max(axis=1, initial=0.0), np.log(np.maximum(y, 1e-12))
    x, y = x - x.mean(), y - y.mean()
    size = math.sqrt(float(x @ x) * float(y @ y))
    return float(x @ y) / size if size > 0 else math.nan


def _fisher(rho: float) -> float:
    return math.atanh(max(min(rho, 1 - 1e-9), -1 + 1e-9)) if math.isfinite(rho) else math.nan


@dataclass(frozen=True)
class Skill:
    """How well the model predicts, with 95 % intervals (accuracy: Wilson's; AUC, the mean over classes: jackknife over groups).

    `majority` is the fraction of the largest class, `auc_random` what random weights of the words reach; `documents` counts pairs
    once, `confusion` has true classes as rows, `removal` is the mean loss of the true class's margin without a word that matters.
    """

    accuracy: float
    accuracy_low: float
    accuracy_high: float
    majority: float
    auc: float
    auc_low: float
    auc_high: float
    auc_random: float
    documents: int
    confusion: Ints
    removal: tuple[float, float, float]

    @property
    def above_chance(self) -> bool:
        """Accuracy above the largest class's share, or AUC above one half, at the 5 % level."""
        return self.accuracy_low > self.majority or self.auc_low > 0.5

    @classmethod
    def of(
        cls,
        answers: Floats,
        labels: Ints,
        groups: Ints,
        pairs: bool,
        auc_random: float,
        removal: tuple[float, float, float] = (math.nan,) * 3,
    ) -> Skill:
        """Accuracy, AUC and confusion of answers to documents less their offset, shape (n, H), with true class and group of each,
        shape (n,); `pairs` if documents are the sides of preference pairs, one of which is correct."""
        K, n, predicted = max(2, answers.shape[1]), len(labels), decide(answers)
        confusion = np.zeros((K, K), dtype=np.int64)
        np.add.at(confusion, (labels, predicted), 1)
        right, majority = int(np.trace(confusion)), float(np.bincount(labels).max() / n)
        columns = [(answers, labels == 1)] if answers.shape[1] == 1 else []
        columns = columns or [(answers[:, [k]], labels == k) for k in range(K)]

        def area(kept: NDArray[np.bool_]) -> float:
            found = [float(_auc(f[kept], inside[kept])[0]) for f, inside in columns]
            known = [x for x in found if math.isfinite(x)]
            return float(np.mean(known)) if known else math.nan

        G = int(groups.max()) + 1
        auc, left = area(labels >= 0), np.array([area(groups != g) for g in range(G)])
        error = math.sqrt((G - 1) / G * float(np.sum((left - left.mean()) ** 2)))
        half = Z95 * max(error, 0.5 / n)
        if pairs:
            right, n = int(np.sum((predicted == labels)[labels == 1])), n // 2
        ends = stats.binomtest(right, max(n, 1)).proportion_ci(method="wilson")
        rate = right / max(n, 1), float(ends.low), float(ends.high)
        return cls(
            *rate,
            majority,
            auc,
            max(auc - half, 0.0),
            min(auc + half, 1.0),
            auc_random,
            n,
            confusion,
            removal,
        )

    @staticmethod
    def random_auc(counts: Counts, read: Ints, partner: Ints | None, seed: int) -> float:
        """The AUC that 97.5 % of 200 random scorers stay below, f = Σ_s c_s r_s/Σ_s c_s with r_s ~ N(0, 1) (one r for each class):
        a model that has learned nothing weighs words at random, as these do. Of preference data, `partner` is the place among the
        documents read of each one's partner, shape (n,)."""
        rng, x, labels = (
            np.random.default_rng(seed),
            counts.matrix[read].astype(np.float64),
            counts.labels[read],
        )
        length, found = np.maximum(np.asarray(x.sum(axis=1)).reshape(-1, 1), 1.0), []
        for k in range(1, 2) if counts.n_classes == 2 else range(counts.n_classes):
            scores = x @ rng.standard_normal((x.shape[1], 200)) / length
            found.append(_auc(scores if partner is None else scores - scores[partner], labels == k))
        return float(np.quantile(np.nanmean(found, axis=0), 0.975))


def _auc(scores: Floats, inside: NDArray[np.bool_]) -> Floats:
    """Area under the ROC curve of each column of scores, shape (n, m) → (m,); nan without documents of both kinds."""
    n1, n0 = int(inside.sum()), int((~inside).sum())
    if not (n1 and n0):
        return np.full(scores.shape[1], np.nan)
    return np.asarray(
        (stats.rankdata(scores, axis=0)[inside].sum(axis=0) - n1 * (n1 + 1) / 2) / (n1 * n0)
    )


class Learning(StrEnum):
    """Whether a model has learned to predict the label; the values are those of `learning` in summary.json."""

    LEARNED = "learned"
    BARELY = "barely learned, if at all"
    NOT_SHOWN = "not shown to have learned"
    OPEN = "cannot be said"

    @classmethod
    def of(
        cls,
        correlation: dict[str, Correlation],
        untrained: dict[str, Correlation],
        by_chance: dict[str, tuple[float, float]],
        skill: Skill,
        uses: pl.DataFrame,
    ) -> Learning:
        """It has learned if it predicts better than chance (accuracy or AUC), ranks documents better than random word weights,
        *and* its words matter: removing words lowers the logit of the true class, or a word is used that predicts the label or
        helps, or what it does with a word agrees with importance (`Correlation.stands_out`). Barely if all hold but the second."""
        measures = "value_importance", "gradient_importance", "deletion_importance"
        known = [
            name
            for name in measures
            if name in correlation and math.isfinite(correlation[name].low)
        ]
        if skill.above_chance and not known and not math.isfinite(skill.removal[0]):
            return cls.OPEN
        passed = any(
            correlation[name].stands_out(by_chance.get(name), untrained.get(name)) for name in known
        )
        helps = uses["status"].is_in([str(Status.CARRIES), str(Status.CONTEXT)]).any()
        if not skill.above_chance or not (passed or skill.removal[1] > 0 or helps):
            return cls.NOT_SHOWN
        return cls.LEARNED if skill.auc > skill.auc_random else cls.BARELY
