"""Bins of token types, the criteria on their means, and what a correlation with the paper's noisy rows can reach."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from scipy import stats
from scipy.optimize import isotonic_regression

from tokensieve.evidence.importance import token_importance
from tokensieve.reproduce.result import Check
from tokensieve.text.counts import Counts, Floats

BINS = 20
FEWEST = 3  # types that a bin needs to count for a criterion
INCREASING, V_SHAPED, LIKE_THE_PAPER = 0.95, 0.85, 0.9
SYMBOLS = {"value": "E_sᵀv", "score": "E_sᵀp"}


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


def bins(tokens: pl.DataFrame, x: str = "posterior_difference", theirs: pl.DataFrame | None = None) -> pl.DataFrame:
    """Mean and standard deviation over types in bins of x; empty bins have no row.

    Columns: x (centre), types, few (fewer than three types, which no criterion counts), for each of value and score that
    `tokens` has {of}_mean and {of}_sd, and paper_{of} for each of them that `theirs` has.

    Args:
        tokens: column x, and value or score.
        x: what the bins are bins of.
        theirs: a row of the paper (see `tokensieve.reproduce.paper`), whose own bins are then used; else 20 equal bins of
            [−1, 1]. Types beyond the outer edges count in the outer bins.
    """
    edges = np.linspace(-1, 1, BINS + 1) if theirs is None else edges_of(theirs["x"].to_numpy())
    centres = (edges[:-1] + edges[1:]) / 2 if theirs is None else theirs["x"].to_numpy()
    where = np.digitize(tokens[x].to_numpy(), edges[1:-1])
    types = np.bincount(where, minlength=len(centres))
    full, inside = types > 0, np.maximum(types, 1)
    columns = {"x": centres[full], "types": types[full], "few": types[full] < FEWEST}
    for of in (name for name in SYMBOLS if name in tokens.columns):
        y = tokens[of].to_numpy()
        mean = np.bincount(where, y, len(centres)) / inside
        deviation = np.sqrt(np.bincount(where, (y - mean[where]) ** 2, len(centres)) / inside)
        columns |= {f"{of}_mean": mean[full], f"{of}_sd": deviation[full]}
        if theirs is not None and of in theirs.columns:
            columns[f"paper_{of}"] = theirs[of].to_numpy()[full]
    return pl.DataFrame(columns)


def edges_of(centres: Floats) -> Floats:
    """Edges of neighbouring bins with these centres: halfway between them, and as far beyond the outer ones."""
    middle = (centres[1:] + centres[:-1]) / 2
    return np.array([2 * centres[0] - middle[0], *middle, 2 * centres[-1] - middle[-1]])


def counted(table: pl.DataFrame) -> pl.DataFrame:
    """The bins with enough types to count for a criterion."""
    return table.filter(pl.col("types") >= FEWEST)


def correlation(x: Any, y: Any) -> float:
    """Pearson's correlation; nan for fewer than three pairs or constant numbers."""
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    return float("nan") if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0 else float(np.corrcoef(x, y)[0, 1])


def spearman(x: Any, y: Any) -> float:
    """Rank correlation; nan for fewer than three pairs or constant numbers."""
    return correlation(stats.rankdata(x), stats.rankdata(y))


def shape_checks(table: pl.DataFrame, where: str, judged: bool = True) -> list[Check]:
    """Values increase with the posterior difference; scores are V-shaped in it.

    Args:
        table: bins with value_mean and score_mean.
        where: what was measured, for the name of the figure.
        judged: whether the criteria decide; otherwise the figures are only stated.
    """
    rows = counted(table)
    value, score = spearman(rows["x"], rows["value_mean"]), spearman(rows["x"].abs(), rows["score_mean"])
    return [
        Check(f"{where}: Spearman of E_sᵀv with the posterior difference", value, INCREASING if judged else None),
        Check(f"{where}: Spearman of E_sᵀp with its size", score, V_SHAPED if judged else None),
    ]


def paper_checks(table: pl.DataFrame, of: str, row: str, fewest: int = FEWEST, judged: bool = True) -> list[Check]:
    """Our bin means beside the paper's, in its own bins: correlation, judged against its ceiling, and the ratio of scales.

    Args:
        table: bins with {of}_mean and paper_{of}.
        of: "value" or "score".
        row: the paper's row, for the name of the figure.
        fewest: types that a bin needs to count.
        judged: whether the correlation decides.
    """
    rows = table.filter(pl.col("types") >= fewest)
    ours, theirs = rows[f"{of}_mean"].to_numpy(), rows[f"paper_{of}"].to_numpy()
    top = max(ceilings(rows["x"].to_numpy(), theirs, of).values())
    ratio = float(np.ptp(ours) / np.ptp(theirs)) if len(ours) else float("nan")
    least = LIKE_THE_PAPER * top if judged else None
    return [
        Check(f"correlation of {row}", correlation(ours, theirs), least, ceiling=top),
        Check(f"reach of our bin means over the paper's, {row}", ratio, paper=1.0, prominent=True),
    ]


def ceilings(x: Floats, y: Floats, of: str) -> dict[str, float]:
    """What smooth shapes without any noise correlate with the paper's row: curve → correlation.

    For values, which increase: a line, sign(x), and tanh(x/s) at its best s. For scores, which are V-shaped: |x|, and
    |x − c|^γ at its best c and γ. No model that gives such a shape can agree better with a row that is noisy itself.

    Args:
        x: bin centres.
        y: the paper's means there.
        of: "value" or "score".
    """
    size = float(np.abs(x).max())
    if of == "value":
        curves = {"line": [x], "sign": [np.sign(x)], "tanh": [np.tanh(x / s) for s in size * np.geomspace(0.02, 3, 60)]}
    else:
        bent = [np.abs(x - c) ** g for c in size * np.linspace(-0.2, 0.2, 41) for g in np.linspace(0.3, 4, 38)]
        curves = {"|x|": [np.abs(x)], "|x − c|^γ": bent}
    return {name: max(correlation(shape, y) for shape in shapes) for name, shapes in curves.items()}


def rank_under_noise(table: pl.DataFrame, of: str, draws: int = 500, seed: int = 0) -> tuple[float, float]:
    """Spearman over bins that a curve which truly rises would show, given how far our own types spread within bins.

    The truth is taken to be the rising curve nearest to our bin means (isotonic regression weighted by types); a bin's mean gets
    a normal error of σ/√types, with σ pooled over the bins of at least three types, the fullest one (around zero) left out.

    Args:
        table: bins with types, {of}_mean and {of}_sd.
        of: "value" or "score".
        draws: simulated rows.
        seed: of the draws.

    Returns:
        The 5 % quantile and the median; nan where no bin has three types.
    """
    types, means = table["types"].to_numpy(), table[f"{of}_mean"].to_numpy()
    outer = (types >= FEWEST) & (types < types.max())
    if not outer.any():
        return float("nan"), float("nan")
    variance = (types * table[f"{of}_sd"].to_numpy() ** 2)[outer].sum() / (types[outer] - 1).sum()
    rising = isotonic_regression(means, weights=types).x
    noise = np.random.default_rng(seed).standard_normal((draws, len(types))) * np.sqrt(variance / types)
    ranks = stats.zscore(stats.rankdata(rising + noise, axis=1), axis=1)
    low, middle = np.quantile(ranks @ stats.zscore(stats.rankdata(table["x"])) / len(types), (0.05, 0.5))
    return float(low), float(middle)


def mean_spread(table: pl.DataFrame, of: str) -> float:
    """Mean over bins of the standard deviation within a bin."""
    return float(np.mean(counted(table)[f"{of}_sd"].to_numpy()))


def reach(table: pl.DataFrame, of: str) -> float:
    """Largest less smallest bin mean."""
    return float(np.ptp(counted(table)[f"{of}_mean"].to_numpy()))


def spread_checks(table: pl.DataFrame, where: str) -> list[Check]:
    """Standard deviations within bins, absolute and relative to the reach of the bin means; stated, not judged."""
    out = []
    for of, symbol in SYMBOLS.items():
        spread, width = mean_spread(table, of), reach(table, of)
        name = f"{where}: mean standard deviation of {symbol} within bins"
        out.append(Check(name, spread))
        out.append(Check(f"{name}, as a share of the reach of the means", spread / width if width else float("nan")))
    return out
