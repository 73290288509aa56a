"""What a picture holds of the token table: the extreme rows and a sample of the rest, and bin means over all of them."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

BINS = 20
EXTREMES = ("effect", "posterior_difference", "documents")


def thin(tokens: pl.DataFrame, limit: int, columns: tuple[str, ...], seed: int) -> pl.DataFrame:
    """At most `limit` rows: those at either end of a column, half of them or fewer, and a sample of the rest.

    Args:
        tokens: the rows to choose from.
        limit: most rows.
        columns: of numbers.
        seed: of the sample.
    """
    if tokens.height <= limit:
        return tokens
    each = limit // (4 * len(columns))
    ends = []
    for column in columns:
        order = np.argsort(tokens[column].to_numpy(), kind="stable")
        ends += [order[:each], order[-each:]]
    extreme = np.unique(np.concatenate(ends))
    rest = np.setdiff1d(np.arange(tokens.height), extreme, assume_unique=True)
    sample = np.random.default_rng(seed).choice(rest, limit - len(extreme), replace=False)
    return tokens[np.sort(np.concatenate([extreme, sample]))]


def bin_means(x: NDArray[np.float64], y: NDArray[np.float64]) -> pl.DataFrame:
    """Mean and standard deviation of y in 20 equal bins of x ∈ [−1, 1]: columns x (centre), mean, low, high, types."""
    edges = np.linspace(-1, 1, BINS + 1)
    where = np.digitize(x, edges[1:-1])
    types = np.bincount(where, minlength=BINS)
    inside = np.maximum(types, 1)
    mean = np.bincount(where, y, BINS) / inside
    deviation = np.sqrt(np.bincount(where, (y - mean[where]) ** 2, BINS) / inside)
    centre = (edges[:-1] + edges[1:]) / 2
    columns = {"x": centre, "mean": mean, "low": mean - deviation, "high": mean + deviation, "types": types}
    return pl.DataFrame(columns).filter(pl.col("types") > 0)


def bins_of(tokens: pl.DataFrame, across: str, up: str, end: float = 1.0) -> pl.DataFrame:
    """Bin means of one column over another, over the rows where both are finite.

    Args:
        tokens: rows of one class.
        across: the column that the bins are of, within ±`end`.
        up: the column whose means they hold.
        end: of the axis.
    """
    pair = tokens.select(across, up).filter(pl.col(across).is_finite() & pl.col(up).is_finite())
    found = bin_means(pair[across].to_numpy() / end, pair[up].to_numpy())
    return found.with_columns(pl.col("x") * end)
