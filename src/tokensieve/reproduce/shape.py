"""Bins of token types, and the criteria on their means."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from scipy import stats

from tokensieve.data.importance import token_importance
from tokensieve.reproduce.result import Check
from tokensieve.text.counts import Counts, Floats

BINS = 20
FEWEST = 3  # types that a bin needs to count for a criterion
INCREASING, V_SHAPED, LIKE_THE_PAPER = 0.95, 0.85, 0.9


def token_table(counts: Counts, score: Floats, value: Floats) -> pl.DataFrame:
    """One row per type: token, documents, posterior_difference P(1|s) − P(0|s), score E_sᵀp and value E_sᵀv.

    Args:
        counts: training documents of two classes.
        score, value: shape (|S|,).
    """
    found = token_importance(counts)
    return pl.DataFrame(
        {
            "token": pl.Series([str(token) for token in counts.tokens], dtype=pl.String),
            "documents": found.documents,
            "posterior_difference": found.posterior_difference[:, 1],
            "score": score,
            "value": np.ravel(value),
        }
    )


def bins(tokens: pl.DataFrame, x: str = "posterior_difference", low: float = -1.0, high: float = 1.0) -> pl.DataFrame:
    """Mean and standard deviation over types in 20 equal bins of x from `low` to `high`; empty bins have no row.

    Columns: x (centre), types, and value_mean, value_sd, score_mean, score_sd where `tokens` has value and score.
    """
    edges = np.linspace(low, high, BINS + 1)
    where = np.digitize(tokens[x].to_numpy(), edges[1:-1])
    types = np.bincount(where, minlength=BINS)
    full, inside = types > 0, np.maximum(types, 1)
    columns = {"x": ((edges[:-1] + edges[1:]) / 2)[full], "types": types[full]}
    for of in (name for name in ("value", "score") if name in tokens.columns):
        y = tokens[of].to_numpy()
        mean = np.bincount(where, y, BINS) / inside
        deviation = np.sqrt(np.bincount(where, (y - mean[where]) ** 2, BINS) / inside)
        columns |= {f"{of}_mean": mean[full], f"{of}_sd": deviation[full]}
    return pl.DataFrame(columns)


def counted(table: pl.DataFrame) -> pl.DataFrame:
    """The bins with enough types to count for a criterion."""
    return table.filter(pl.col("types") >= FEWEST)


def spearman(x: Any, y: Any) -> float:
    """Rank correlation; nan for fewer than three pairs or constant numbers."""
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    return float(stats.spearmanr(x, y).statistic)


def shape_checks(table: pl.DataFrame, where: str) -> list[Check]:
    """Values increase with the posterior difference; scores are V-shaped in it."""
    rows = counted(table)
    return [
        Check(f"{where}: Spearman of E_sᵀv with the posterior difference", spearman(rows["x"], rows["value_mean"]), INCREASING),
        Check(f"{where}: Spearman of E_sᵀp with its size", spearman(rows["x"].abs(), rows["score_mean"]), V_SHAPED),
    ]  # fmt: skip


def paper_check(table: pl.DataFrame, of: str, theirs: pl.DataFrame, name: str) -> Check:
    """Pearson correlation of our bin means with the paper's, ours interpolated at the paper's bin centres."""
    rows = counted(table)
    ours = np.interp(theirs["x"].to_numpy(), rows["x"].to_numpy(), rows[f"{of}_mean"].to_numpy())
    return Check(name, float(np.corrcoef(ours, theirs[of].to_numpy())[0, 1]), LIKE_THE_PAPER)


def mean_spread(table: pl.DataFrame, of: str) -> float:
    """Mean over bins of the standard deviation within a bin."""
    return float(np.mean(counted(table)[f"{of}_sd"].to_numpy()))


def reach(table: pl.DataFrame, of: str) -> float:
    """Largest less smallest bin mean."""
    return float(np.ptp(counted(table)[f"{of}_mean"].to_numpy()))
