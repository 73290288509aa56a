"""Figures with their bounds, bins of token types, and the paper's tables."""

from __future__ import annotations

import math
import tomllib
from importlib.resources import files
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import ArrayLike
from scipy import stats

from tokensieve.arrays import Floats, Ints
from tokensieve.evidence.importance import token_importance
from tokensieve.text.counts import Counts

SYMBOLS = {"value": "E_sᵀv", "score": "E_sᵀp"}

# Criteria, fixed with the experiments (`FIXED` in experiment.py) before the runs.
MIN_TYPES = 3  # a bin of fewer types counts for no criterion
MIN_VALUE_SPEARMAN = 0.95  # of the values with the posterior difference
MIN_SCORE_SPEARMAN = 0.85  # of the scores with its size: how V-shaped they are
MIN_FRACTION_OF_CEILING = 0.9  # of the best correlation that a noisy row of the paper allows

ROUNDING = 1e-9  # rank correlations are fractions; equal ones may differ in their last digits


def _read_tables() -> dict[str, pl.DataFrame]:
    """The paper's tables A to C by name: x (the bin's centre), value and score."""
    text = files("tokensieve.theory.experiments").joinpath("paper.toml").read_text("utf-8")
    return {name: pl.DataFrame(columns) for name, columns in tomllib.loads(text).items()}


PAPER = _read_tables()


class Measurement(NamedTuple):
    """One measured figure, and the bounds that its experiment declares for it.

    Attributes:
        name: what is measured.
        value: the figure; nan fails every bound.
        low, high: bounds; a figure without bounds is reported and decides nothing.
        paper: the paper's own figure, where it gives one.
        ceiling: the most that it can reach, as the best smooth curve with the paper's row does.
        prominent: whether the report names it although it decides nothing.
    """

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    paper: float | None = None
    ceiling: float | None = None
    prominent: bool = False

    @property
    def has_bounds(self) -> bool:
        """Whether the figure has bounds."""
        return self.low is not None or self.high is not None

    @property
    def is_shown(self) -> bool:
        """Whether the sentence of an experiment may name the figure."""
        return self.has_bounds or self.prominent

    @property
    def passed(self) -> bool:
        """Whether the figure lies within its bounds; true without bounds."""
        is_high_enough = self.low is None or self.value >= self.low - ROUNDING
        is_low_enough = self.high is None or self.value <= self.high + ROUNDING
        return is_high_enough and is_low_enough

    @property
    def bounds(self) -> str:
        """The bounds in words."""
        if self.low is not None and self.high is not None:
            return f"{self.low:.3g} to {self.high:.3g}"
        if self.low is not None:
            return f"at least {self.low:.3g}"
        if self.high is not None:
            return f"at most {self.high:.3g}"
        return "stated"


class Spread(NamedTuple):
    """How far token types scatter within bins, and how far the bins lie apart."""

    within_bins: float  # mean over bins of the standard deviation within a bin
    between_bins: float  # the largest less the smallest bin mean

    @property
    def relative(self) -> float:
        """The spread within bins as a fraction of the range of their means; nan without a range."""
        if self.between_bins == 0:
            return math.nan
        return self.within_bins / self.between_bins


def shapes(table: pl.DataFrame, where: str, *, judged: bool = True) -> list[Measurement]:
    """Whether values rise with the posterior difference, and whether scores are V-shaped in it.

    Unless `judged`, the figures are only reported.
    """
    rows = table.filter(pl.col("types") >= MIN_TYPES)
    value = spearman(rows["x"], rows["value_mean"])
    score = spearman(rows["x"].abs(), rows["score_mean"])
    return [
        Measurement(
            f"{where}: Spearman of E_sᵀv with the posterior difference",
            value,
            low=MIN_VALUE_SPEARMAN if judged else None,
        ),
        Measurement(
            f"{where}: Spearman of E_sᵀp with its size",
            score,
            low=MIN_SCORE_SPEARMAN if judged else None,
        ),
    ]


def spreads(table: pl.DataFrame, where: str) -> list[Measurement]:
    """Standard deviations within bins, absolute and relative to the range of the bin means."""
    measured = []
    for quantity, symbol in SYMBOLS.items():
        spread = spread_and_range(table, quantity)
        name = f"{where}: mean standard deviation of {symbol} within bins"
        measured.append(Measurement(name, spread.within_bins))
        name = f"{name}, as a fraction of the range of the means"
        measured.append(Measurement(name, spread.relative))
    return measured


def beside_the_paper(
    table: pl.DataFrame,
    quantity: str,
    row: str,
    *,
    min_types: int = MIN_TYPES,
    judged: bool = True,
) -> list[Measurement]:
    """Our bin means beside the paper's: their correlation, and the ratio of their scales.

    Args:
        table: bins with the columns {quantity}_mean and paper_{quantity}.
        quantity: "value" or "score".
        row: how the report names the paper's row.
        min_types: bins of fewer types are left out.
        judged: whether the correlation must come close to what the best smooth curve reaches.
    """
    rows = table.filter(pl.col("types") >= min_types)
    ours = rows[f"{quantity}_mean"].to_numpy()
    theirs = rows[f"paper_{quantity}"].to_numpy()
    ceiling = max(attainable_correlations(rows["x"].to_numpy(), theirs, quantity).values())
    ratio = math.nan
    if len(ours):
        ratio = float(np.ptp(ours) / np.ptp(theirs))
    return [
        Measurement(
            f"correlation of {row}",
            _correlation(ours, theirs),
            low=MIN_FRACTION_OF_CEILING * ceiling if judged else None,
            ceiling=ceiling,
        ),
        Measurement(
            f"range of our bin means over the paper's, {row}", ratio, paper=1.0, prominent=True
        ),
    ]


def token_table(counts: Counts, score: Floats, value: Floats) -> pl.DataFrame:
    """One row per type: token, documents, posterior_difference P(1|s) − P(0|s), score and value."""
    importance = token_importance(counts)
    return pl.DataFrame(
        {
            "token": pl.Series([str(token) for token in counts.tokens], dtype=pl.String),
            "documents": importance.documents,
            "posterior_difference": importance.posterior_difference[:, 1],
            "score": score,
            "value": np.ravel(value),
        }
    )


class _Bins(NamedTuple):
    """Bins by their centres, shape (B,), and edges, shape (B + 1,)."""

    centres: Floats
    edges: Floats


def _equal_bins() -> _Bins:
    """Twenty bins of equal width over [−1, 1]."""
    edges = np.linspace(-1, 1, 21)
    return _Bins((edges[:-1] + edges[1:]) / 2, edges)


def _bins_around(centres: Floats) -> _Bins:
    """Bins with edges halfway between the centres, and as far beyond the outer ones."""
    between = (centres[1:] + centres[:-1]) / 2
    first = 2 * centres[0] - between[0]
    last = 2 * centres[-1] - between[-1]
    return _Bins(centres, np.array([first, *between, last]))


def bins(
    tokens: pl.DataFrame,
    x: str = "posterior_difference",
    theirs: pl.DataFrame | None = None,
    *,
    beyond: bool = True,
) -> pl.DataFrame:
    """Mean and standard deviation over token types in bins of one of their columns.

    Args:
        tokens: a row per type, with x and at least one of value and score.
        x: the column whose bins are taken.
        theirs: a table of `PAPER` whose own bins are taken; without one, 20 equal bins of [−1, 1].
        beyond: whether types beyond the outer edges count in the outer bins.

    Returns:
        A row per bin that is not empty: x (centre), types, few (fewer than `MIN_TYPES`), {of}_mean
        and {of}_sd of value and score where `tokens` has them, and paper_{of} where `theirs` does.
    """
    grid = _equal_bins() if theirs is None else _bins_around(theirs["x"].to_numpy())
    if not beyond:
        tokens = tokens.filter(pl.col(x).is_between(grid.edges[0], grid.edges[-1]))
    n_bins = len(grid.centres)
    bin_of_type = np.digitize(tokens[x].to_numpy(), grid.edges[1:-1])
    n_types = np.bincount(bin_of_type, minlength=n_bins)
    is_filled = n_types > 0

    columns = {
        "x": grid.centres[is_filled],
        "types": n_types[is_filled],
        "few": n_types[is_filled] < MIN_TYPES,
    }
    for quantity in SYMBOLS:
        if quantity not in tokens.columns:
            continue
        mean, deviation = _mean_and_deviation(bin_of_type, tokens[quantity].to_numpy(), n_bins)
        columns[f"{quantity}_mean"] = mean[is_filled]
        columns[f"{quantity}_sd"] = deviation[is_filled]
        if theirs is not None and quantity in theirs.columns:
            columns[f"paper_{quantity}"] = theirs[quantity].to_numpy()[is_filled]
    return pl.DataFrame(columns)


def _mean_and_deviation(bin_of_type: Ints, y: Floats, n_bins: int) -> tuple[Floats, Floats]:
    """Mean and standard deviation of y in each bin, shapes (n_bins,); 0 in empty bins."""
    divisor = np.maximum(np.bincount(bin_of_type, minlength=n_bins), 1)
    mean = np.bincount(bin_of_type, y, n_bins) / divisor
    squares = np.bincount(bin_of_type, (y - mean[bin_of_type]) ** 2, n_bins)
    return mean, np.sqrt(squares / divisor)


def spread_and_range(table: pl.DataFrame, quantity: str) -> Spread:
    """The spread of value or score within bins, and the range of the bin means."""
    rows = table.filter(pl.col("types") >= MIN_TYPES)
    return Spread(
        within_bins=float(np.mean(rows[f"{quantity}_sd"].to_numpy())),
        between_bins=float(np.ptp(rows[f"{quantity}_mean"].to_numpy())),
    )


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    """Rank correlation; nan for fewer than three pairs or constant numbers."""
    return _correlation(stats.rankdata(x), stats.rankdata(y))


def attainable_correlations(x: Floats, y: Floats, quantity: str) -> dict[str, float]:
    """The best correlation of each smooth curve with a row of the paper: curve → correlation.

    Values rise: a line, sign(x), and tanh(x/s) at its best s. Scores are V-shaped: |x|, and
    |x − c|^γ at its best c and γ. The paper's rows are noisy, and no model with such a shape can
    agree better with them. `x` are the centres of the bins, `y` the paper's means.
    """
    size = float(np.abs(x).max())
    if quantity == "value":
        # from a step to nearly a line; a finer grid changes no digit that is shown
        scales = size * np.geomspace(0.02, 3, 60)
        curves = {"line": [x], "sign": [np.sign(x)], "tanh": [np.tanh(x / s) for s in scales]}
    else:
        curves = {"|x|": [np.abs(x)], "|x − c|^γ": _bent_curves(x, size)}
    return {
        name: max(_correlation(curve, y) for curve in variants) for name, variants in curves.items()
    }


def _bent_curves(x: Floats, size: float) -> list[Floats]:
    """|x − c|^γ for c within a fifth of the range and γ from 0.3 (a cusp) to 4 (flat)."""
    curves = []
    for c in size * np.linspace(-0.2, 0.2, 41):
        curves += [np.abs(x - c) ** gamma for gamma in np.linspace(0.3, 4, 38)]
    return curves


def _correlation(x: ArrayLike, y: ArrayLike) -> float:
    """Pearson's correlation; nan for fewer than three pairs or constant numbers."""
    x = np.asarray(x, dtype=np.float64)
    y = np.asarray(y, dtype=np.float64)
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return math.nan
    return float(np.corrcoef(x, y)[0, 1])
