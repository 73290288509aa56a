"""Table B: an MLP layer after the softmax."""

from __future__ import annotations

import numpy as np
import polars as pl

from tokensieve.reproduce.bench import Bench
from tokensieve.reproduce.measures import (
    PAPER,
    V_SHAPED,
    Measurement,
    beside_the_paper,
    bins,
    shape_measurements,
    spearman,
    spread_measurements,
)
from tokensieve.reproduce.result import SeedRun


def run(bench: Bench) -> SeedRun:
    """Train on IMDB, set the bin means beside table B, and compare with the same model without the MLP layer."""
    plain_split, without = bench.fit_deep("one-layer", "imdb", bench.part(0, 0.4))
    split, found = bench.fit_deep("mlp", "imdb", bench.part(0.4, 1))
    tokens = _with_sign(bench.read(split, found)[0])
    table = bins(tokens, theirs=PAPER["mlp"])
    _, plain = bench.read(plain_split, without)
    straight = shape_measurements(plain, "without", judged=False)[0].value
    theirs = spearman(PAPER["mlp"]["x"], PAPER["mlp"]["value"])
    value, score = shape_measurements(table, "IMDB", judged=False)
    beside = beside_the_paper(table, "score", "E_sᵀp with table B")
    not_claimed = beside_the_paper(table, "value", "E_sᵀv with table B (no shape is claimed)", judged=False)
    less = _less_monotone(value.value, straight, theirs - 1)
    measured = (score._replace(low=V_SHAPED), *beside, less, value, *not_claimed, *spread_measurements(table, "IMDB"))
    ours = (
        f"correlation of E_sᵀp with table B {beside[0].value:.3f}, Spearman {score.value:.3f}; Spearman of E_sᵀv "
        f"{value.value:.3f} with the MLP layer (paper {theirs:.3f}) and {straight:.3f} without, correlation with table B "
        f"{not_claimed[0].value:.3f}; {bench.accuracy_in_words(found)}"
    )
    tables = {"bins": table, "bins-without": plain, "tokens": tokens}
    return SeedRun(ours, measured, tables, tuple(bench.accuracies(found, "IMDB")))


def _less_monotone(value: float, without: float, theirs: float | None = None) -> Measurement:
    """Of |Spearman| of E_sᵀv, which must be lower than without the MLP layer; a step of ranks is more than 0.001."""
    falls = abs(value) - abs(without)
    return Measurement("|Spearman| of E_sᵀv, less that without the MLP layer", falls, high=-0.001, paper=theirs)


def _with_sign(tokens: pl.DataFrame) -> pl.DataFrame:
    """Values with the sign that correlates positively with the posterior difference over our own token types.

    With an MLP layer between, nothing ties the sign of E_sᵀv to the label.
    """
    along = np.corrcoef(tokens["posterior_difference"], tokens["value"])[0, 1]
    return tokens.with_columns(-pl.col("value")) if along < 0 else tokens
