"""Has the model learned where the label is? What it answers, what leaving words out does, and what chance would do."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import polars as pl
from scipy import stats

from tokensieve.diagnose.agreement import Correlation
from tokensieve.diagnose.judging import Status
from tokensieve.escape import shown
from tokensieve.evidence.intervals import Z95
from tokensieve.model.decision import decide
from tokensieve.text.counts import Counts, Floats, Ints

MEASURES = {
    "value_importance": "its answer to a word alone",
    "gradient_importance": "the effect of a word in its document (integrated gradients)",
    "deletion_importance": "the effect of leaving a word out of its document",
}
NAMED = 5
APART = 3.0  # a trained model's answers are spread at least this many times as far as an untrained one's
STILL = 0.005  # an untrained model's answers (log-odds) are taken to be spread at least so far
DRAWS = 200


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
        confusion: documents by true class (row) and answer (column), shape (K, K).
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
    answers: Floats, labels: Ints, groups: Ints, n_groups: int, pairs: bool, auc_random: float
) -> Skill:  # fmt: skip
    """Accuracy, AUC and confusion of answers.

    Args:
        answers: of the documents, less their offset, shape (n, H).
        labels: true classes, shape (n,).
        groups: group of each document, shape (n,).
        n_groups: G.
        pairs: whether documents are the sides of preference pairs, of which one is right.
        auc_random: what random weights of the words reach.
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
        right / max(n, 1), float(ends.low), float(ends.high), majority, auc, low, high, auc_random, n, confusion
    )  # fmt: skip


def random_auc(counts: Counts, read: Ints, partner: Ints | None, seed: int) -> float:
    """The AUC that 97.5 % of DRAWS random scorers stay below, f = Σ_s c_s r_s/Σ_s c_s with r_s ~ N(0, 1) (one r for each class).

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
        scores, inside = x @ rng.standard_normal((x.shape[1], DRAWS)) / length, labels == k
        ranks = stats.rankdata(scores if partner is None else scores - scores[partner], axis=0)
        n1, n0 = int(inside.sum()), int((~inside).sum())
        if n1 and n0:
            found.append((ranks[inside].sum(axis=0) - n1 * (n1 + 1) / 2) / (n1 * n0))
    return float(np.quantile(np.mean(found, axis=0), 0.975))


def _auc(answers: Floats, labels: Ints, groups: Ints, n_groups: int) -> tuple[float, float, float]:
    columns = [(answers[:, 0], labels == 1)] if answers.shape[1] == 1 else [
        (answers[:, k], labels == k) for k in range(answers.shape[1])
    ]  # fmt: skip

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


@dataclass(frozen=True)
class Effect:
    """What leaving out the words that matter does to the right answer: mean loss of the true class's margin, 95 % interval."""

    mean: float
    low: float
    high: float


def effect_of(lost: Floats, labels: Ints, documents: Ints) -> Effect:
    """Mean over documents of what the true class's answer loses when a confirmed word is left out.

    Args:
        lost: answers − answers without the word, shape (D, H).
        labels: true class of the document of each, shape (D,).
        documents: that document, shape (D,).
    """
    there = np.isfinite(lost).all(axis=1)
    lost, labels, documents = lost[there], labels[there], documents[there]
    if not len(lost):
        return Effect(math.nan, math.nan, math.nan)
    mine = np.where(labels == 1, 1, -1) * lost[:, 0] if lost.shape[1] == 1 else lost[np.arange(len(lost)), labels]
    _, at = np.unique(documents, return_inverse=True)
    means = np.bincount(at, mine) / np.bincount(at)
    half = float(stats.t.isf(0.025, max(len(means) - 1, 1))) * float(means.std(ddof=1 if len(means) > 1 else 0))
    half /= math.sqrt(len(means))
    return Effect(float(means.mean()), float(means.mean()) - half, float(means.mean()) + half)


def behaves(answers: Floats, untrained: Floats | None) -> bool:
    """Whether answers differ from document to document by more than those of an untrained model do."""
    spread = float(answers.std(axis=0).mean())
    usual = 0.05 if untrained is None else max(STILL, float(untrained.std(axis=0).mean()))
    return spread > APART * usual


def learning_of(
    correlation: dict[str, Correlation], untrained: dict[str, Correlation], by_chance: dict[str, tuple[float, float]],
    skill: Skill, effect: Effect, uses: pl.DataFrame,
) -> Learning:  # fmt: skip
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
        effect: of leaving words out.
        uses: the words confirmed.
    """
    known = _known(correlation)
    if skill.above_chance and not known and not math.isfinite(effect.mean):
        return Learning.OPEN
    passed = any(_real(name, one, untrained, by_chance) for name, one in known.items())
    helps = uses["status"].is_in([str(Status.CARRIES), str(Status.CONTEXT)]).any()
    if not skill.above_chance or not (passed or effect.low > 0 or helps):
        return Learning.NOT_SHOWN
    return Learning.LEARNED if skill.above_random_weights else Learning.BARELY


def accuse_nobody(uses: pl.DataFrame) -> pl.DataFrame:
    """The same without a word that is used without support: nothing is accused where nothing was learned."""
    unsupported = pl.col("status") == str(Status.UNSUPPORTED)
    return uses.with_columns(status=pl.when(unsupported).then(pl.lit(str(Status.OTHER))).otherwise(pl.col("status")))


def sentences(
    learning: Learning, correlation: dict[str, Correlation], untrained: dict[str, Correlation],
    by_chance: dict[str, tuple[float, float]], skill: Skill, effect: Effect, uses: pl.DataFrame,
) -> list[str]:  # fmt: skip
    """The verdict: whether it has learned and why, where its attention goes, what it uses most, what without support.

    Args:
        learning: as `learning_of` found.
        correlation, untrained, by_chance, skill, effect: as there.
        uses: the words confirmed.
    """
    if learning is Learning.OPEN:
        return ["Whether this model has learned where the label is cannot be said: too few words could be measured."]
    known = _known(correlation)
    passed = {name: one for name, one in known.items() if _real(name, one, untrained, by_chance)}
    return [
        _first(learning, skill, effect, passed or known, untrained, by_chance),
        _most(uses),
        *([_leaning(uses)] if learning is Learning.LEARNED else []),
        *_attention(correlation, untrained, by_chance),
    ]


def _known(correlation: dict[str, Correlation]) -> dict[str, Correlation]:
    return {
        name: correlation[name] for name in MEASURES if name in correlation and math.isfinite(correlation[name].low)
    }


def _first(
    learning: Learning, skill: Skill, effect: Effect, known: dict[str, Correlation], untrained: dict[str, Correlation],
    by_chance: dict[str, tuple[float, float]],
) -> str:  # fmt: skip
    right = (
        f"{skill.accuracy:.1%} of {skill.documents:,} answers are right [{skill.accuracy_low:.1%}, {skill.accuracy_high:.1%}], "
        f"the largest class is {skill.majority:.1%}, AUC {skill.auc:.2f} [{skill.auc_low:.2f}, {skill.auc_high:.2f}] where random "
        f"weights of the words reach {skill.auc_random:.2f}"
    )
    loss = f"{signed(effect.mean)} [{signed(effect.low)}, {signed(effect.high)}]"
    out = f"leaving out a word that it uses takes {loss} from the right answer"
    parts = [right] + ([out] if math.isfinite(effect.mean) else [])
    if known:
        best = max(known, key=lambda name: known[name].rho)
        against = _against(best, untrained, by_chance)
        beside = f"; {against}" if against else ""
        parts.append(f"{MEASURES[best]} agrees with the data by {said(known[best])}{beside}")
    numbers = "; ".join(parts)
    if learning is Learning.LEARNED:
        return f"This model has learned where the label is: {numbers}."
    if learning is Learning.BARELY:
        return (
            "This model has barely learned where the label is, if at all: it ranks these documents better than chance, but no "
            f"better than random weights of their words may ({numbers})."
        )
    why = "of no word could it be shown that its answers are the better for it"
    if skill.reversed:
        why = "it answers against the labels (is each output matched with the right class?)"
    elif not skill.above_chance:
        why = "it answers no better than chance"
    return f"Nothing here shows that this model has learned where the label is: {why} ({numbers})."


def _real(
    name: str, found: Correlation, untrained: dict[str, Correlation], by_chance: dict[str, tuple[float, float]]
) -> bool:  # fmt: skip
    beyond = found.low > 0 and found.rho > by_chance.get(name, (0.0, 0.0))[1]
    return beyond and (name not in untrained or not math.isfinite(untrained[name].rho) or found.above(untrained[name]))


def _attention(
    correlation: dict[str, Correlation], untrained: dict[str, Correlation], by_chance: dict[str, tuple[float, float]]
) -> list[str]:  # fmt: skip
    found = correlation.get("attention_importance")
    if found is None or not math.isfinite(found.low):
        return []
    numbers = f"(correlation {said(found)}; {_against('attention_importance', untrained, by_chance)})"
    if _real("attention_importance", found, untrained, by_chance):
        return [f"Its attention goes to the words that carry the label {numbers}."]
    return [f"Its attention, rolled out over the layers, does not single out the words that carry the label {numbers}."]


def _most(uses: pl.DataFrame) -> str:
    used = uses.filter(pl.col("status") != str(Status.NOT_SHOWN))
    if used.is_empty():
        return "No single word could be shown that it uses."
    names = ", ".join(
        f"{shown(token, 30)} ({use:.2f})" for token, use in used.select("token", "use").head(NAMED).iter_rows()
    )
    sentence = f"It uses most: {names}."
    if used.height == 1 or used["use_low"][0] > 3 * used["use_high"][1]:
        rest = f"the next has {used['use'][1]:.2f}" if used.height > 1 else "of no other word is the use shown"
        sentence += f" One word dominates: {shown(used['token'][0], 30)}; {rest}."
    return sentence


def _leaning(uses: pl.DataFrame) -> str:
    leaning = uses.filter(pl.col("status") == str(Status.UNSUPPORTED))
    if leaning.is_empty():
        return (
            "No word could be shown that it leans on without support in these documents. A shortcut that they share with its "
            "training data looks supported: read what it uses most."
        )
    names = ", ".join(shown(token, 30) for token in leaning["token"][:NAMED])
    more = f" and {leaning.height - NAMED} more" if leaning.height > NAMED else ""
    return (
        f"It leans on {leaning.height} word{'s' * (leaning.height > 1)} that these documents do not support: {names}{more}. Ask "
        f"whether {'it' if leaning.height == 1 else 'each'} is a shortcut of the data that the model was trained on."
    )


def _against(name: str, untrained: dict[str, Correlation], by_chance: dict[str, tuple[float, float]]) -> str:
    parts = [f"untrained {signed(untrained[name].rho)}"] if name in untrained else []
    if name in by_chance:
        parts.append(f"shuffled labels {signed(by_chance[name][0])} to {signed(by_chance[name][1])}")
    return ", ".join(parts)


def said(one: Correlation) -> str:
    """ρ with its interval."""
    return f"{signed(one.rho)} [{signed(one.low)}, {signed(one.high)}]"


def signed(x: float) -> str:
    """+0.71, −0.02; – where there is no number."""
    if not math.isfinite(x):
        return "–"
    text = f"{x:+.2f}"
    return text[1:] if not text.strip("+-0.") else text.replace("-", "−")
