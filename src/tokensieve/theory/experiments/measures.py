"""Bins of token types, figures with their bounds, the paper's tables, and what a correlation with its noisy rows can reach."""

from __future__ import annotations

import math
import tomllib
from importlib.resources import files
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import ArrayLike
from scipy import stats

from tokensieve.arrays import Floats
from tokensieve.evidence.importance import token_importance
from tokensieve.text.counts import Counts

PAPER = {  # its tables
    name: pl.DataFrame(columns)
    for name, columns in tomllib.loads(
        files("tokensieve.theory.experiments").joinpath("paper.toml").read_text("utf-8")
    ).items()
}
FEWEST = 3  # types that a bin needs to count for a criterion
V_SHAPED = 0.85  # least rank correlation of scores with the size of the posterior difference
SYMBOLS = {"value": "E_sᵀv", "score": "E_sᵀp"}


class Measurement(NamedTuple):
    """One measured figure, and the bounds that its experiment declares for it."""

    name: str  # what is measured
    value: float  # the figure; nan fails
    low: float | None = (
        None  # bounds, if it has any; a figure without bounds is reported and decides nothing
    )
    high: float | None = None
    paper: float | None = None  # the paper's own figure, where it gives one
    ceiling: float | None = (
        None  # the most that it can reach: that of the best smooth curve with the paper's row
    )
    prominent: bool = False  # whether the report names it although it decides nothing

    @property
    def has_bounds(self) -> bool:
        """Whether the figure has bounds."""
        return self.low is not None or self.high is not None

    @property
    def passed(self) -> bool:
        """Whether the figure lies within its bounds."""
        # rank correlations are fractions: two that are equal may differ in their last digit
        above = self.low is None or self.value >= self.low - 1e-9
        return above and (self.high is None or self.value <= self.high + 1e-9)

    @property
    def bounds(self) -> str:
        """The bounds in words."""
        if self.low is None:
            return "stated" if self.high is None else f"at most {self.high:.3g}"
        return (
            f"at least {self.low:.3g}"
            if self.high is None
            else f"{self.low:.3g} to {self.high:.3g}"
        )

    @staticmethod
    def shapes(table: pl.DataFrame, where: str, judged: bool = True) -> list[Measurement]:
        """Values rise with the posterior difference; scores are V-shaped in it. Unless judged, figures are only reported."""
        rows = table.filter(pl.col("types") >= FEWEST)
        value, score = (
            spearman(rows["x"], rows["value_mean"]),
            spearman(rows["x"].abs(), rows["score_mean"]),
        )
        return [
            Measurement(
                f"{where}: Spearman of E_sᵀv with the posterior difference",
                value,
                0.95 if judged else None,
            ),
            Measurement(
                f"{where}: Spearman of E_sᵀp with its size", score, V_SHAPED if judged else None
            ),
        ]

    @staticmethod
    def spreads(table: pl.DataFrame, where: str) -> list[Measurement]:
        """Standard deviations within bins, absolute and relative to the range of the bin means; reported, not judged."""
        out = []
        for of, symbol in SYMBOLS.items():
            spread, width = spread_and_range(table, of)
            name = f"{where}: mean standard deviation of {symbol} within bins"
            relative = spread / width if width else math.nan
            out += [
                Measurement(name, spread),
                Measurement(f"{name}, as a fraction of the range of the means", relative),
            ]
        return out

    @staticmethod
    def beside_the_paper(
        table: pl.DataFrame, of: str, row: str, fewest: int = FEWEST, judged: bool = True
    ) -> list[Measurement]:
        """Our bin means beside the paper's, in its own bins of `fewest` types and more: correlation, judged against its ceiling,
        and the ratio of scales. `table` has {of}_mean and paper_{of}; `row` names the paper's row."""
        rows = table.filter(pl.col("types") >= fewest)
        ours, theirs = rows[f"{of}_mean"].to_numpy(), rows[f"paper_{of}"].to_numpy()
        top = max(_attainable_correlations(rows["x"].to_numpy(), theirs, of).values())
        ratio = float(np.ptp(ours) / np.ptp(theirs)) if len(ours) else math.nan
        least = 0.9 * top if judged else None
        return [
            Measurement(f"correlation of {row}", _correlation(ours, theirs), least, ceiling=top),
            Measurement(
                f"range of our bin means over the paper's, {row}", ratio, paper=1.0, prominent=True
            ),
        ]


def token_table(counts: Counts, score: Floats, value: Floats) -> pl.DataFrame:
    """One row per type: token, documents, posterior_difference P(1|s) − P(0|s), score E_sᵀp and value E_sᵀv."""
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


def bins(
    tokens: pl.DataFrame,
    x: str = "posterior_difference",
    theirs: pl.DataFrame | None = None,
    beyond: bool = True,
) -> pl.DataFrame:
    """Mean and standard deviation over types in bins of `x`, a column of `tokens` beside value or score.

    The bins are 20 equal ones of [−1, 1], or with `theirs`, a table of `PAPER`, its own: halfway between its centres, and as far
    beyond the outer ones. With `beyond`, types beyond the outer edges count in the outer bins. Returns x (centre), types, few
    (fewer than three types, which no criterion counts), {of}_mean and {of}_sd for each of value and score that `tokens` has, and
    paper_{of} for each that `theirs` has; empty bins have no row.
    """
    edges = np.linspace(-1, 1, 21)
    centres = (edges[:-1] + edges[1:]) / 2
    if theirs is not None:
        centres = theirs["x"].to_numpy()
        middle = (centres[1:] + centres[:-1]) / 2
        edges = np.array([2 * centres[0] - middle[0], *middle, 2 * centres[-1] - middle[-1]])
    tokens = tokens if beyond else tokens.filter(pl.col(x).is_between(edges[0], edges[-1]))
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


def spread_and_range(table: pl.DataFrame, of: str) -> tuple[float, float]:
    """The mean over bins of the standard deviation within a bin, and the largest less the smallest bin mean."""
    rows = table.filter(pl.col("types") >= FEWEST)
    return float(np.mean(rows[f"{of}_sd"].to_numpy())), float(np.ptp(rows[f"{of}_mean"].to_numpy()))


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    """Rank correlation; nan for fewer than three pairs or constant numbers."""
    return _correlation(stats.rankdata(x), stats.rankdata(y))


def _attainable_correlations(x: Floats, y: Floats, of: str) -> dict[str, float]:
    """What smooth shapes without noise correlate with the paper's row (centres x, means y): curve → correlation. For values, which
    rise: a line, sign(x), and tanh(x/s) at its best s. For scores, which are V-shaped: |x|, and |x − c|^γ at its best c and γ. No
    model that gives such a shape can agree better with a row that is noisy itself."""
    size = float(np.abs(x).max())
    if of == "value":
        curves = {
            "line": [x],
            "sign": [np.sign(x)],
            "tanh": [np.tanh(x / s) for s in size * np.geomspace(0.02, 3, 60)],
        }
    else:
        bent = [
            np.abs(x - c) ** g
            for c in size * np.linspace(-0.2, 0.2, 41)
            for g in np.linspace(0.3, 4, 38)
        ]
        curves = {"|x|": [np.abs(x)], "|x − c|^γ": bent}
    return {
        name: max(_correlation(shape, y) for shape in shapes) for name, shapes in curves.items()
    }


def _correlation(x: ArrayLike, y: ArrayLike) -> float:
    """Pearson's correlation; nan for fewer than three pairs or constant numbers."""
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    return (
        math.nan
        if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0
        else float(np.corrcoef(x, y)[0, 1])
    )
