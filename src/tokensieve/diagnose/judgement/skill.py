"""How well a model predicts, and whether it has learned to predict the label."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import stats

from tokensieve.arrays import Floats, Ints
from tokensieve.diagnose.effects.confirming import MeanInterval
from tokensieve.diagnose.judgement.agreement import Correlation
from tokensieve.diagnose.judgement.status import Status
from tokensieve.evidence.intervals import Z95
from tokensieve.model.attention import decide
from tokensieve.text.counts import Counts

N_RANDOM_SCORERS = 200
NOT_MEASURED = MeanInterval(math.nan, math.nan, math.nan)
# measures whose agreement with the data shows that words matter as they should
SIGNED_MEASURES = ("value_importance", "gradient_importance", "deletion_importance")


@dataclass(frozen=True)
class Skill:
    """How well the model predicts, with 95 % intervals.

    That of accuracy is Wilson's, that of the AUC, the mean over classes, a jackknife over groups.

    Attributes:
        majority: fraction of the largest class.
        auc_random: what random weights of the words reach.
        documents: those read; preference pairs count once.
        confusion: true classes as rows.
        removal: mean loss of the true class's margin without a word that matters.
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
    removal: MeanInterval

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
        in_pairs: bool,
        auc_random: float,
        removal: MeanInterval = NOT_MEASURED,
    ) -> Skill:
        """Of answers to documents less their offset, shape (n, H).

        Args:
            answers: as above.
            labels, groups: true class and group of each document, shape (n,).
            in_pairs: documents are the sides of preference pairs, one of which is correct.
            auc_random, removal: as the attributes.
        """
        predicted = decide(answers)
        n_classes = max(2, answers.shape[1])
        confusion = np.zeros((n_classes, n_classes), dtype=np.int64)
        np.add.at(confusion, (labels, predicted), 1)
        n = len(labels)
        n_right = int(np.trace(confusion))
        if in_pairs:
            n = n // 2
            n_right = int(np.sum((predicted == labels)[labels == 1]))
        rate = stats.binomtest(n_right, max(n, 1)).proportion_ci(method="wilson")

        auc = mean_auc(answers, labels)
        half = Z95 * max(_auc_error(answers, labels, groups), 0.5 / len(labels))
        return cls(
            accuracy=n_right / max(n, 1),
            accuracy_low=float(rate.low),
            accuracy_high=float(rate.high),
            majority=float(np.bincount(labels).max() / len(labels)),
            auc=auc,
            auc_low=max(auc - half, 0.0),
            auc_high=min(auc + half, 1.0),
            auc_random=auc_random,
            documents=n,
            confusion=confusion,
            removal=removal,
        )


def _auc_error(answers: Floats, labels: Ints, groups: Ints) -> float:
    """Standard error of the mean AUC, by a jackknife over the groups."""
    n_groups = int(groups.max()) + 1
    without_group = np.array(
        [mean_auc(answers[groups != g], labels[groups != g]) for g in range(n_groups)]
    )
    variance = float(np.sum((without_group - without_group.mean()) ** 2))
    return math.sqrt((n_groups - 1) / n_groups * variance)


def mean_auc(answers: Floats, labels: Ints) -> float:
    """Mean over the classes of the area under the ROC curve; nan if no class has both kinds."""
    if answers.shape[1] == 1:
        return float(aucs(answers, labels == 1)[0])
    areas = [float(aucs(answers[:, [k]], labels == k)[0]) for k in range(answers.shape[1])]
    known_values = [area for area in areas if math.isfinite(area)]
    return float(np.mean(known_values)) if known_values else math.nan


def random_auc(counts: Counts, read: Ints, partner: Ints | None, seed: int) -> float:
    """The AUC that 97.5 % of random scorers stay below.

    They score f = Σ_s c_s r_s/Σ_s c_s with r_s ~ N(0, 1) (one r for each class): a model that has
    learned nothing weighs words at random, as these do.

    Args:
        counts: of all documents.
        read: those read.
        partner: of preference data, the place among the documents read of each one's partner.
        seed: of the draws.
    """
    rng = np.random.default_rng(seed)
    matrix = counts.matrix[read].astype(np.float64)
    labels = counts.labels[read]
    length = np.maximum(np.asarray(matrix.sum(axis=1)).reshape(-1, 1), 1.0)
    classes = [1] if counts.n_classes == 2 else list(range(counts.n_classes))
    areas = []
    for k in classes:
        scores = matrix @ rng.standard_normal((matrix.shape[1], N_RANDOM_SCORERS)) / length
        if partner is not None:
            scores = scores - scores[partner]
        areas.append(aucs(scores, labels == k))
    return float(np.quantile(np.nanmean(areas, axis=0), 0.975))


def aucs(scores: Floats, inside: NDArray[np.bool_]) -> Floats:
    """Area under the ROC curve of each column of scores, (n, m) → (m,).

    nan without documents of both kinds.
    """
    n_inside = int(inside.sum())
    n_outside = int((~inside).sum())
    if not n_inside or not n_outside:
        return np.full(scores.shape[1], np.nan)
    ranks = stats.rankdata(scores, axis=0)[inside].sum(axis=0)
    return np.asarray((ranks - n_inside * (n_inside + 1) / 2) / (n_inside * n_outside))


class Learning(StrEnum):
    """Whether a model has learned to predict the label: `learning` in summary.json."""

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
        """Judge by three conditions.

        The model predicts better than chance (accuracy or AUC); it ranks documents better than
        random word weights; *and* its words matter: removing words lowers the logit of the true
        class, or a word that it uses predicts the label or helps, or what it does with a word
        agrees with importance (`Correlation.stands_out`). Barely if all hold but the second.
        """
        known_values = [
            name
            for name in SIGNED_MEASURES
            if name in correlation and math.isfinite(correlation[name].low)
        ]
        if skill.above_chance and not known_values and not math.isfinite(skill.removal.mean):
            return cls.OPEN
        agrees = any(
            correlation[name].stands_out(by_chance.get(name), untrained.get(name))
            for name in known_values
        )
        is_supported = bool((uses["status"] == str(Status.SUPPORTED)).any())
        words_matter = agrees or skill.removal.low > 0 or is_supported
        if not skill.above_chance or not words_matter:
            return cls.NOT_SHOWN
        return cls.LEARNED if skill.auc > skill.auc_random else cls.BARELY
