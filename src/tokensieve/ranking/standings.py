"""The standings: the models' ranks with and without style, and what each feature is worth."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import polars as pl

from tokensieve.arrays import Floats
from tokensieve.ranking.battles import Battles
from tokensieve.ranking.bradley_terry import Components, Estimate, Fit

# A model is compared at equal length if at least a tenth of its battles are between answers of
# which the longer one is at most twice as long. Fewer say next to nothing about equal length.
MIN_COMPARABLE = 0.1
SIMILAR_LENGTH = 1.0  # at most, of the length feature: one unit is an answer twice as long


@dataclass(frozen=True)
class Strength:
    """A model's strength in one fit, in log-odds against the anchor, and its rank.

    Attributes:
        estimate: with a 95% interval.
        rank: from 1; None if the model cannot be ranked.
        best_rank, worst_rank: models that are significantly stronger, and those that are not
            significantly weaker, bound the rank.
    """

    estimate: Estimate
    rank: int | None
    best_rank: int | None = None
    worst_rank: int | None = None


@dataclass(frozen=True)
class ModelStanding:
    """One model.

    Attributes:
        model: its name.
        games: its battles.
        win_rate: the mean of its outcomes.
        raw: by results alone.
        style: with style held fixed; None if it was not asked for.
        rank_before: by results, among the models that have a rank with style held fixed.
        is_extrapolated: whether hardly any of its battles are between answers of similar length, so
            that `style` has no rank.
        is_connected: whether battles connect it with the main group of models.
    """

    model: str
    games: int
    win_rate: float
    raw: Strength
    style: Strength | None
    rank_before: int | None
    is_extrapolated: bool
    is_connected: bool

    @property
    def move(self) -> int:
        """The number of ranks that style moves the model up (or down, if negative), among the
        models that have both."""
        if self.style is None or self.rank_before is None or self.style.rank is None:
            return 0
        return self.rank_before - self.style.rank

    @property
    def has_moved(self) -> bool:
        """Whether the move is larger than the intervals leave open: its two ranges are apart."""
        if self.style is None or self.style.best_rank is None or self.style.worst_rank is None:
            return False
        assert self.raw.best_rank is not None and self.raw.worst_rank is not None
        is_better = self.style.worst_rank < self.raw.best_rank
        is_worse = self.style.best_rank > self.raw.worst_rank
        return self.move != 0 and (is_better or is_worse)


@dataclass(frozen=True)
class FeatureEffect:
    """What a feature is worth: log-odds of winning for one unit of difference.

    Attributes:
        feature: its name.
        unit: what one unit is, in words.
        alone, joint: beside the models only, and beside all other features, too; each with its 95%
            interval.
        is_controlled: whether it is held fixed in the ranks with style.
        is_found: whether it was found in the data, and measured on the other half of the prompts.
    """

    feature: str
    unit: str
    alone: Estimate
    joint: Estimate
    is_controlled: bool = True
    is_found: bool = False


def standings(
    battles: Battles, components: Components, raw: Fit, style: Fit | None, length: Floats | None
) -> list[ModelStanding]:
    """Rank all models, the strongest by results first.

    Args:
        battles: all.
        components: which models are connected.
        raw: the fit without features.
        style: the fit with style held fixed; None if it was not asked for.
        length: the difference of length of each battle, one for an answer twice as long.
    """
    is_connected = components.of_model == components.main
    is_extrapolated = np.zeros(len(battles.models), dtype=bool)
    if length is not None:
        is_extrapolated = comparable_fraction(battles, length) < MIN_COMPARABLE
    raw_strengths = strengths(raw, is_connected)
    before: list[int | None] = [None] * len(battles.models)
    style_strengths: list[Strength | None] = [None] * len(battles.models)
    if style is not None:
        is_comparable = is_connected & ~is_extrapolated
        before = [strength.rank for strength in strengths(raw, is_comparable)]
        style_strengths = [*strengths(style, is_comparable)]
    games = battles.games()
    wins = win_rates(battles)
    rows = [
        ModelStanding(
            model=name,
            games=int(games[k]),
            win_rate=float(wins[k]),
            raw=raw_strengths[k],
            style=style_strengths[k],
            rank_before=before[k],
            is_extrapolated=bool(is_extrapolated[k]),
            is_connected=bool(is_connected[k]),
        )
        for k, name in enumerate(battles.models)
    ]
    return sorted(rows, key=lambda row: (not row.is_connected, -row.raw.estimate.value, row.model))


def win_rates(battles: Battles) -> Floats:
    """The weighted mean of each model's outcomes; nan for weights of zero."""
    n_models = len(battles.models)
    weight = battles.weight
    won = np.bincount(battles.first, weight * battles.outcome, n_models)
    won += np.bincount(battles.second, weight * (1 - battles.outcome), n_models)
    played = np.bincount(battles.first, weight, n_models)
    played += np.bincount(battles.second, weight, n_models)
    rates: Floats = np.full(n_models, math.nan)
    np.divide(won, played, out=rates, where=played > 0)
    return rates


def comparable_fraction(battles: Battles, length: Floats) -> Floats:
    """For each model, the fraction of its battles in which neither answer is over twice as long."""
    is_similar = np.abs(length) <= SIMILAR_LENGTH
    n_similar = np.bincount(battles.first, is_similar, len(battles.models))
    n_similar += np.bincount(battles.second, is_similar, len(battles.models))
    return n_similar / np.maximum(battles.games(), 1)


def strengths(found: Fit, is_ranked: np.ndarray) -> list[Strength]:
    """Strengths with intervals, and the ranks of the models that can be ranked."""
    ranked = np.flatnonzero(is_ranked)
    theta = found.strengths
    bounds = _rank_bounds(found, ranked)
    result = []
    for k in range(found.n_models):
        rank = best = worst = None
        if is_ranked[k]:
            rank = 1 + int((theta[ranked] > theta[k]).sum())
            best, worst = bounds[k]
        result.append(Strength(found.estimate(k), rank, best, worst))
    return result


def _rank_bounds(found: Fit, ranked: np.ndarray) -> dict[int, tuple[int, int]]:
    """The best and the worst rank of each model that pairwise 95% intervals leave possible."""
    n = found.n_models
    V = found.covariance[:n, :n]
    theta = found.strengths
    variance = np.diag(V)[:, None] + np.diag(V)[None, :] - 2 * V
    margin = found.quantile * np.sqrt(np.maximum(variance, 0.0))
    is_stronger = theta[:, None] - theta[None, :] > margin
    bounds = {}
    for k in ranked.tolist():
        n_above = int(is_stronger[ranked, k].sum())
        n_below = int(is_stronger[k, ranked].sum())
        bounds[k] = (1 + n_above, len(ranked) - n_below)
    return bounds


def ranks_table(rows: list[ModelStanding]) -> pl.DataFrame:
    """ranks.csv: strengths in log-odds against the anchor, which has zero.

    Cells are empty where no rank can be given, and without style where it was not held fixed.
    """
    table = []
    for row in rows:
        cells: dict[str, object] = {"model": row.model, "games": row.games}
        for kind, strength in (("raw", row.raw), ("style", row.style)):
            if strength is not None:
                cells[f"{kind}_strength"] = strength.estimate.value
                cells[f"{kind}_low"] = strength.estimate.low
                cells[f"{kind}_high"] = strength.estimate.high
                cells[f"{kind}_rank"] = strength.rank
        table.append(cells)
    schema: dict[str, type[pl.DataType]] = {"model": pl.String, "games": pl.Int64}
    for kind in ("raw", "style"):
        schema |= {f"{kind}_{name}": pl.Float64 for name in ("strength", "low", "high")}
        schema[f"{kind}_rank"] = pl.Int64
    return pl.DataFrame(table, schema=schema)


def features_table(effects: list[FeatureEffect]) -> pl.DataFrame:
    """features.csv: log-odds of winning for one unit of each feature."""
    table = [
        {
            "feature": effect.feature,
            "effect": effect.alone.value,
            "low": effect.alone.low,
            "high": effect.alone.high,
            "joint_effect": effect.joint.value,
            "joint_low": effect.joint.low,
            "joint_high": effect.joint.high,
        }
        for effect in effects
    ]
    columns = ("effect", "low", "high", "joint_effect", "joint_low", "joint_high")
    schema = {"feature": pl.String, **dict.fromkeys(columns, pl.Float64)}
    return pl.DataFrame(table, schema=schema)
