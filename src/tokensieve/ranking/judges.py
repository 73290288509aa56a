"""Judges: how they agree with each other and with people, and what they reward that people do not.

With people's judgements h of some battles and a judge's j of all, the win rate of a model is
estimated by prediction-powered inference (Angelopoulos et al. 2023; tuned as in PPI++):

    W = mean_labelled(h) + λ (mean_all(j) − mean_labelled(j)),      λ = cov(h, j)/var(j) in [0, 1]

It is unbiased for people's win rate whatever the judge does, if the labelled battles are a random
sample, and its interval is shorter than that of the labelled battles alone where the judge agrees
with people.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from tokensieve.arrays import Floats, Ints
from tokensieve.evidence.intervals import Share
from tokensieve.ranking.battles import Battles
from tokensieve.ranking.bradley_terry import Components, Estimate, fit, t_quantile
from tokensieve.ranking.outcomes import winner

MIN_SHARED = 10  # battles that two judges have in common
MIN_LABELLED = 20  # battles of a model that people judged


@dataclass(frozen=True)
class JudgeAgreement:
    """How often two judges prefer the same answer, over battles that they share; ties are half."""

    first: str
    second: str
    agreement: Share


@dataclass(frozen=True)
class PoweredWinRate:
    """A model's win rate according to people.

    Attributes:
        model: its name.
        judge: the win rate that the judge gives it over all battles.
        people: over the battles that people judged, alone.
        corrected: prediction-powered.
        n_labelled: battles of the model that people judged.
    """

    model: str
    judge: float
    people: Estimate
    corrected: Estimate
    n_labelled: int


@dataclass(frozen=True)
class EffectDifference:
    """What a feature is worth to the judge and to people, on the battles that both judged."""

    feature: str
    judge: float
    people: float
    difference: Estimate


def agreements(battles: Battles) -> list[JudgeAgreement]:
    """Agreement of each two judges that share at least `MIN_SHARED` battles."""
    by_judge = [_verdicts(battles, k) for k in range(len(battles.judges))]
    results = []
    for judge, second_judge in combinations(range(len(battles.judges)), 2):
        shared = sorted(by_judge[judge].keys() & by_judge[second_judge].keys())
        if len(shared) < MIN_SHARED:
            continue
        same = [_same_side(by_judge[judge][pair], by_judge[second_judge][pair]) for pair in shared]
        prompts = np.array([pair.prompt for pair in shared])
        share = Share.over(same, prompts)
        results.append(JudgeAgreement(battles.judges[judge], battles.judges[second_judge], share))
    return results


class _Pair(NamedTuple):
    """Two answers to a prompt, numbered, whichever was shown first."""

    prompt: int
    smaller_text: int
    larger_text: int


def _verdicts(battles: Battles, judge: int) -> dict[_Pair, float]:
    """Pair → the fraction of a win of its first text."""
    rows = np.flatnonzero(battles.judge == judge)
    first = battles.first_text[rows]
    second = battles.second_text[rows]
    outcome = np.where(first < second, battles.outcome[rows], 1 - battles.outcome[rows])
    pairs = map(
        _Pair,
        battles.prompt[rows].tolist(),
        np.minimum(first, second).tolist(),
        np.maximum(first, second).tolist(),
    )
    return dict(zip(pairs, outcome.tolist(), strict=True))


def _same_side(fraction: float, second_fraction: float) -> float:
    """Score an agreement: 1 if both prefer the same answer, ½ if either sees a tie, else 0."""
    agreement = winner(np.array([fraction, second_fraction])).prod()
    return float((agreement + 1) / 2)


def family(name: str) -> str:
    """The family of a model: "openai/GPT-4o-mini" and "gpt-3.5" are "gpt"."""
    letters = re.match(r"[a-z]*", name.rpartition("/")[2].strip().lower())
    return letters[0] if letters else ""


def self_preference_differences(battles: Battles) -> Floats | None:
    """+1 where only the first model is of the judge's family, −1 where only the second is.

    None unless there are several judges, of which one has a model of its family: with one judge,
    its own models' strength cannot be told from its taste.
    """
    if len(battles.judges) < 2:
        return None
    of_model = np.array([family(name) for name in battles.models])
    of_judge = np.array([family(name) for name in battles.judges])
    judge = of_judge[battles.judge]
    is_first = (of_model[battles.first] == judge) & (judge != "")
    is_second = (of_model[battles.second] == judge) & (judge != "")
    differences = is_first.astype(float) - is_second.astype(float)
    return differences if differences.any() else None


def agreement_with_people(battles: Battles) -> Share | None:
    """The fraction of battles in which the judge and people prefer the same answer."""
    labelled = _labelled(battles)
    if battles.human is None or len(labelled) < MIN_SHARED:
        return None
    pairs = zip(battles.outcome[labelled].tolist(), battles.human[labelled].tolist(), strict=True)
    same = [_same_side(judge, human) for judge, human in pairs]
    return Share.over(same, battles.prompt[labelled])


def _labelled(battles: Battles) -> Ints:
    if battles.human is None:
        return np.zeros(0, np.int64)
    return np.flatnonzero(~np.isnan(battles.human))


def powered_win_rates(battles: Battles) -> list[PoweredWinRate]:
    """Win rates by people, corrected with the judge, of models with enough labelled battles."""
    if battles.human is None:
        return []
    rates = []
    for k, name in enumerate(battles.models):
        is_first = battles.first == k
        rows = np.flatnonzero(is_first | (battles.second == k))
        judge = np.where(is_first, battles.outcome, 1 - battles.outcome)[rows]
        human = np.where(is_first, battles.human, 1 - battles.human)[rows]
        n_labelled = int((~np.isnan(human)).sum())
        if n_labelled < MIN_LABELLED:
            continue
        rates.append(
            PoweredWinRate(
                model=name,
                judge=float(judge.mean()),
                people=powered_mean(judge, human, battles.prompt[rows], power=0.0),
                corrected=powered_mean(judge, human, battles.prompt[rows]),
                n_labelled=n_labelled,
            )
        )
    return rates


def powered_mean(
    judge: Floats, human: Floats, prompt: Ints, power: float | None = None
) -> Estimate:
    """The mean of what people say, by prediction-powered inference with prompts as clusters.

    Args:
        judge: of every battle.
        human: nan where people were not asked.
        prompt: of every battle.
        power: λ; None for its best value, 0 for the labelled battles alone.
    """
    is_labelled = ~np.isnan(human)
    h = human[is_labelled]
    j = judge[is_labelled]
    if power is None:
        power = _best_power(h, j)
    mean = float(h.mean() + power * (judge.mean() - j.mean()))

    influence = power * (judge - judge.mean()) / len(judge)
    remainder = h - power * j
    influence[is_labelled] += (remainder - remainder.mean()) / len(h)
    error = _clustered_error(influence, prompt)
    # the quantile counts the prompts that people saw: they bear most of the variance
    half = t_quantile(len(np.unique(prompt[is_labelled]))) * error
    return Estimate(mean, max(mean - half, 0.0), min(mean + half, 1.0))


def _clustered_error(influence: Floats, cluster: Ints) -> float:
    """The standard error of a mean, from each row's influence on it."""
    _, place = np.unique(cluster, return_inverse=True)
    by_cluster = np.bincount(place, influence)
    correction = len(by_cluster) / max(len(by_cluster) - 1, 1)
    return float(np.sqrt(correction * by_cluster @ by_cluster))


def _best_power(human: Floats, judge: Floats) -> float:
    """λ = cov(h, j)/var(j), between 0 and 1; 0 for a judge that always says the same."""
    variance = float(np.var(judge))
    if variance == 0:
        return 0.0
    covariance = float(np.mean((human - human.mean()) * (judge - judge.mean())))
    return min(max(covariance / variance, 0.0), 1.0)


def effect_differences(
    battles: Battles, features: Floats, names: Sequence[str], components: Components
) -> list[EffectDifference]:
    """The effect of each feature on the judge minus its effect on people.

    Both are measured on the battles that people judged, jointly with the models and all features.
    """
    rows = _labelled(battles)
    if battles.human is None or len(rows) < MIN_LABELLED:
        return []
    judge = fit(battles, features, components, rows=rows)
    people = fit(battles, features, components, outcome=battles.human, rows=rows)
    features_only = slice(judge.n_models, None)
    influence = judge.influence(features_only) - people.influence(features_only)
    n_prompts = len(judge.prompts)
    errors = np.sqrt(n_prompts / max(n_prompts - 1, 1) * (influence**2).sum(axis=0))
    half = judge.quantile * errors
    differences = []
    for k, name in enumerate(names):
        difference = float(judge.effects[k] - people.effects[k])
        interval = Estimate(difference, difference - half[k], difference + half[k])
        differences.append(
            EffectDifference(name, float(judge.effects[k]), float(people.effects[k]), interval)
        )
    return differences
