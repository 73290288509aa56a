"""Correlations of E_sᵀv and E_sᵀp with importance as a test of whether a model has learned."""

from __future__ import annotations

import numpy as np
import polars as pl

from tokensieve.model.embeddings import evaluate
from tokensieve.reproduce.bench import Bench
from tokensieve.reproduce.measures import SYMBOLS, Measurement, spearman, spread_and_range
from tokensieve.reproduce.result import SeedRun


def run(bench: Bench) -> SeedRun:
    """Correlations at the start, with frozen embeddings, and with all trained."""
    split = bench.load("imdb")
    changes = {"learning_rate": bench.settings["frozen_rate"], "steps": bench.settings["frozen_steps"]}
    frozen = bench.fit(split, "frozen", bench.part(0, 0.5), frozen=("E",), **changes)
    trained = bench.fit(split, "trained", bench.part(0.5, 1), frozen=())
    rows: dict[str, dict[str, float]] = {}
    tables: dict[str, pl.DataFrame] = {}
    for name, training, at in (("start", trained, 0), ("frozen", frozen, -1), ("trained", trained, -1)):
        tokens, table = bench.read(split, training, at)
        x, u, w = (tokens[column].to_numpy() for column in ("posterior_difference", "score", "value"))
        rows[name] = {
            "value_correlation": spearman(x, w),
            "score_correlation": spearman(np.abs(x), u),
            "value_range": spread_and_range(table, "value")[1],
            "score_range": spread_and_range(table, "score")[1],
            "test_accuracy": evaluate(split[2], u, w)[1],
        }
        tables |= {f"bins-{name}": table, f"tokens-{name}": tokens}
    found = pl.DataFrame(list(rows.values())).insert_column(0, pl.Series("embeddings", list(rows)))
    measured = []
    for of, symbol in SYMBOLS.items():
        size = abs(rows["start"][f"{of}_correlation"])
        measured.append(Measurement(f"start: |rank correlation| of {symbol}", size, high=0.1))
    for figure in ("correlation", "range"):
        for of, symbol in SYMBOLS.items():
            ratio = abs(rows["frozen"][f"{of}_{figure}"]) / abs(rows["trained"][f"{of}_{figure}"])
            name = f"frozen: {'|rank correlation|' if figure == 'correlation' else figure} of {symbol} over the trained one"
            measured.append(Measurement(name, ratio, high=0.5))
    ours = "rank correlations of E_sᵀv, E_sᵀp: " + "; ".join(
        f"{name} {r['value_correlation']:.2f}, {r['score_correlation']:.2f} (test accuracy {r['test_accuracy']:.1%})"
        for name, r in rows.items()
    )
    return SeedRun(ours, tuple(measured), {"correlations": found, **tables})
