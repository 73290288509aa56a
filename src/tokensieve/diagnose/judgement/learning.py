"""Has the model learned where the label is? What it answers, what leaving words out does, and what chance would do."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import polars as pl
from scipy import stats

from tokensieve.diagnose.judgement.agreement import Correlation
from tokensieve.diagnose.judgement.status import Status
from tokensieve.evidence.intervals import Z95
from tokensieve.model.attention import decide
from tokensieve.text.counts import Counts, Floats, Ints

MEASURES = {
    "value_importance": "its prediction for a word alone",
    "gradient_importance": "the effect of a word in its document (integrated gradients)",
    "deletion_importance": "the effect of removing a word from its document",
}


class Learning(StrEnum):
    """Whether a model has learned where the label is; the values are those of `learning` in summary.json."""

    LEARNED = "learned"
    BARELY = "barely learned, if at all"
    NOT_SHOWN = "not shown to have learned"
    OPEN = "cannot be said"


@dataclass(frozen=True)
class Skill:
    """How well the model answers, with 95 % intervals.

    Attributes:
        accuracy, accuracy_low, accuracy_high: share of documents (pairs) answered right; Wilson's interval.
        majority: share of the largest class (of pairs: one half).
        auc, auc_low, auc_high: area under the ROC curve, mean over classes against the rest; jackknife over groups.
        auc_random: what random weights of the words reach (`random_auc`).
        documents: n (of pairs: their number).
        confusion: documents by true class (row) and prediction (column), shape (K, K).
        removal: mean loss of the true class's margin when a word that matters is removed, with its 95 % interval.
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

    @property
    def above_random_weights(self) -> bool:
        """AUC above what random weights of the words reach: any fixed function of texts differs from chance a little."""
        return self.auc > self.auc_random

    @property
    def reversed(self) -> bool:
        """AUC as far below one half as random weights do not get."""
        return self.auc < 1 - self.auc_random


def skill_of(
    answers: Floats,
    labels: Ints,
    groups: Ints,
    n_groups: int,
    pairs: bool,
    auc_random: float,
    removal: tuple[float, float, float] = (math.nan,) * 3,
) -> Skill:
    """Accuracy, AUC and confusion of answers.

    Args:
        answers: of the documents, less their offset, shape (n, H).
        labels: true classes, shape (n,).
        groups: group of each document, shape (n,).
        n_groups: G.
        pairs: whether documents are the sides of preference pairs, of which one is right.
        auc_random: what random weights of the words reach.
        removal: as in `Skill`.
    """
    K = max(2, answers.shape[1])
    predicted = decide(answers)
    confusion = np.zeros((K, K), dtype=np.int64)
    np.add.at(confusion, (labels, predicted), 1)
    right, n = int(np.trace(confusion)), len(labels)
    majority = float(np.bincount(labels).max() / n)
    if pairs:
        right, n = int(np.sum((predicted == labels)[labels == 1])), n // 2
    ends = stats.binomtest(right, max(n, 1)).proportion_ci(method="wilson")
    auc, low, high = _auc(answers, labels, groups, n_groups)
    return Skill(
        accuracy=right / max(n, 1),
        accuracy_low=float(ends.low),
        accuracy_high=float(ends.high),
        majority=majority,
        auc=auc,
        auc_low=low,
        auc_high=high,
        auc_random=auc_random,
        documents=n,
        confusion=confusion,
        removal=removal,
    )


def random_auc(counts: Counts, read: Ints, partner: Ints | None, seed: int) -> float:
    """The AUC that 97.5 % of 200 random scorers stay below, f = Σ_s c_s r_s/Σ_s c_s with r_s ~ N(0, 1) (one r for each class).

    A model that has learned nothing is a fixed function of the texts, and ranks the classes of few texts better or worse than
    at random: so does this one, which weighs words as an untrained model does, by luck.

    Args:
        counts: all documents over |S| types.
        read: those that the model reads, shape (n,).
        partner: of preference data, the place among those read of each one's partner, shape (n,); else None.
        seed: of the draws.
    """
    rng, x, labels = np.random.default_rng(seed), counts.matrix[read].astype(np.float64), counts.labels[read]
    length = np.maximum(np.asarray(x.sum(axis=1)).reshape(-1, 1), 1.0)
    found = []
    for k in range(1, counts.n_classes) if counts.n_classes == 2 else range(counts.n_classes):
        scores, inside = x @ rng.standard_normal((x.shape[1], 200)) / length, labels == k
        ranks = stats.rankdata(scores if partner is None else scores - scores[partner], axis=0)
        n1, n0 = int(inside.sum()), int((~inside).sum())
        if n1 and n0:
            found.append((ranks[inside].sum(axis=0) - n1 * (n1 + 1) / 2) / (n1 * n0))
    return float(np.quantile(np.mean(found, axis=0), 0.975))


def _auc(answers: Floats, labels: Ints, groups: Ints, n_groups: int) -> tuple[float, float, float]:
    if answers.shape[1] == 1:
        columns = [(answers[:, 0], labels == 1)]
    else:
        columns = [(answers[:, k], labels == k) for k in range(answers.shape[1])]

    def area(kept: Any) -> float:
        found = []
        for f, mine in columns:
            inside, n1 = mine[kept], int(mine[kept].sum())
            n0 = len(inside) - n1
            if n1 and n0:
                found.append((stats.rankdata(f[kept])[inside].sum() - n1 * (n1 + 1) / 2) / (n1 * n0))
        return float(np.mean(found)) if found else math.nan

    whole = area(slice(None))
    left = np.array([area(groups != g) for g in range(n_groups)])
    error = math.sqrt((n_groups - 1) / n_groups * float(np.sum((left - left.mean()) ** 2)))
    error = max(error, 0.5 / len(labels))
    return whole, max(whole - Z95 * error, 0.0), min(whole + Z95 * error, 1.0)


def removal_effect(lost: Floats, labels: Ints, documents: Ints) -> tuple[float, float, float]:
    """Mean over documents of what the true class's answer loses when a confirmed word is left out.

    Args:
        lost: answers − answers without the word, shape (D, H).
        labels: true class of the document of each, shape (D,).
        documents: that document, shape (D,).
    """
    there = np.isfinite(lost).all(axis=1)
    lost, labels, documents = lost[there], labels[there], documents[there]
    if not len(lost):
        return math.nan, math.nan, math.nan
    mine = np.where(labels == 1, 1, -1) * lost[:, 0] if lost.shape[1] == 1 else lost[np.arange(len(lost)), labels]
    _, at = np.unique(documents, return_inverse=True)
    means = np.bincount(at, mine) / np.bincount(at)
    half = float(stats.t.isf(0.025, max(len(means) - 1, 1))) * float(means.std(ddof=1 if len(means) > 1 else 0))
    half /= math.sqrt(len(means))
    middle = float(means.mean())
    return middle, middle - half, middle + half


def behaves(answers: Floats, untrained: Floats | None) -> bool:
    """Whether answers differ from document to document by three times as much as those of an untrained model do."""
    spread = float(answers.std(axis=0).mean())
    # answers (log-odds) of an untrained model are taken to differ by 0.005 at least
    usual = 0.05 if untrained is None else max(0.005, float(untrained.std(axis=0).mean()))
    return spread > 3.0 * usual


def learning_of(
    correlation: dict[str, Correlation],
    untrained: dict[str, Correlation],
    by_chance: dict[str, tuple[float, float]],
    skill: Skill,
    uses: pl.DataFrame,
) -> Learning:
    """Whether the model has learned where the label is.

    It has where it answers better than chance (accuracy or AUC), ranks documents better than random weights of their words do,
    *and* its words matter: leaving words out takes from the right answer, or a word is used that carries the label or helps, or
    what it does with a word agrees with importance (interval above zero, above what shuffled labels reach, and above the untrained
    model). Barely where all hold but the random weights.

    Args:
        correlation: of the model.
        untrained: of its untrained twin, or empty.
        by_chance: middle 95 % under shuffled labels.
        skill: how well it answers.
        uses: the words confirmed.
    """
    known = {
        name: correlation[name] for name in MEASURES if name in correlation and math.isfinite(correlation[name].low)
    }
    if skill.above_chance and not known and not math.isfinite(skill.removal[0]):
        return Learning.OPEN
    passed = any(stands_out(name, one, untrained, by_chance) for name, one in known.items())
    helps = uses["status"].is_in([str(Status.CARRIES), str(Status.CONTEXT)]).any()
    if not skill.above_chance or not (passed or skill.removal[1] > 0 or helps):
        return Learning.NOT_SHOWN
    return Learning.LEARNED if skill.above_random_weights else Learning.BARELY


def without_claims(uses: pl.DataFrame) -> pl.DataFrame:
    """The same without what a word is used for: nothing is said of that if nothing was learned."""
    shown = pl.col("status") != str(Status.NOT_SHOWN)
    return uses.with_columns(status=pl.when(shown).then(pl.lit(str(Status.OTHER))).otherwise(pl.col("status")))


def stands_out(
    name: str, found: Correlation, untrained: dict[str, Correlation], by_chance: dict[str, tuple[float, float]]
) -> bool:
    """Whether a correlation is above zero, above what shuffled labels reach, and above the untrained model's."""
    beyond = found.low > 0 and found.rho > by_chance.get(name, (0.0, 0.0))[1]
    return beyond and (name not in untrained or not math.isfinite(untrained[name].rho) or found.above(untrained[name]))
