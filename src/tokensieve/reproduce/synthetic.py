"""Figure 2: the one-layer model on independent tokens with positive, negative and irrelevant types."""

from __future__ import annotations

import numpy as np
import polars as pl

from tokensieve.reproduce.bench import Bench
from tokensieve.reproduce.measures import Measurement, bins, shape_measurements, spread_and_range, token_table
from tokensieve.reproduce.result import SeedRun
from tokensieve.theory.generators import independent_tokens


def run(bench: Bench) -> SeedRun:
    """Train on generated documents; half as many more for validation and test."""
    n = bench.settings["documents"]
    sizes = {name: bench.settings[name] for name in ("n_types", "length", "n_irrelevant")}
    data = independent_tokens(2 * n, **sizes, delta_min=0.05, seed=bench.seed)
    train, validation, test = (
        data.counts.rows(np.arange(low, high)) for low, high in ((0, n), (n, n + n // 2), (n + n // 2, 2 * n))
    )
    training = bench.fit((train, validation, test), "synthetic", bench.tell)
    tokens = token_table(train, training.scores[-1], training.values[-1][:, 0])
    tokens = tokens.with_columns(true_difference=pl.Series(data.relevance))
    table = bins(tokens)
    cloud = tokens.filter(pl.col("true_difference") == 0)["value"].abs().to_numpy().mean()
    spread, width = spread_and_range(table, "value")
    size, relative = float(cloud / (width / 2)), spread / width
    measured = (
        *shape_measurements(table, "synthetic"),
        Measurement("mean |E_sᵀv| of irrelevant types, as a fraction of the largest bin mean", size, high=0.2),
        Measurement("standard deviation of E_sᵀv within bins, as a fraction of its range", relative, high=0.1),
    )
    ours = (
        f"Spearman of E_sᵀv {measured[0].value:.3f} and of E_sᵀp {measured[1].value:.3f}; irrelevant types at {size:.2f} of "
        f"the largest value; standard deviation within bins {relative:.3f} of the range"
    )
    tables = {"bins": table, "tokens": tokens}
    return SeedRun(ours, measured, tables, tuple(bench.accuracies(training, "synthetic")))
