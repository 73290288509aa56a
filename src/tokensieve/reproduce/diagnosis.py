"""Correlations of E_sᵀv and E_sᵀp with importance as a test of whether a model has learned."""

from __future__ import annotations

import numpy as np
import polars as pl

from tokensieve.model.embeddings import Training, evaluate
from tokensieve.reproduce import paper
from tokensieve.reproduce.data import Split
from tokensieve.reproduce.joint import fit, load
from tokensieve.reproduce.result import Bench, Check, Experiment, Finding, View
from tokensieve.reproduce.shape import bins, reach, spearman, token_table
from tokensieve.text.counts import Floats

SMALL = 0.1  # of a rank correlation over thousands of types, or of the trained model's reach
SETTINGS = {
    "quick": {
        "d": 256, "steps": 100, "learning_rate": 0.01, "frozen_rate": 0.1, "frozen_steps": 200,
        "imdb": {"types": paper.TYPES["imdb"], "documents": 8000},
    },
    "paper": {
        "d": paper.DIMENSION, "steps": 200, "learning_rate": 0.01, "frozen_rate": 0.1, "frozen_steps": 400,
        "imdb": {"types": paper.TYPES["imdb"]},
    },
}  # fmt: skip
NOTES = (
    "The paper's answer speaks of the products being always small, whatever the importance; two readings are measured: rank "
    "correlations over token types, and the reach of the bin means against the trained model's.",
    "“Start” is the random start; “frozen” has trained p and v on embeddings that stay at it: the case the paper names.",
)


def run(bench: Bench) -> Finding:
    """Correlations at the start, with frozen embeddings, and with all trained."""
    split = load(bench, "imdb")
    changes = {"learning_rate": bench.settings["frozen_rate"], "steps": bench.settings["frozen_steps"]}
    frozen = fit(bench, split, "frozen", bench.part(0, 0.5), frozen=("E",), **changes)
    trained = fit(bench, split, "trained", bench.part(0.5, 1), frozen=())
    models: dict[str, tuple[Training, int]] = {"start": (trained, 0), "frozen": (frozen, -1), "trained": (trained, -1)}
    rows = []
    tables: dict[str, pl.DataFrame] = {}
    shown: list[View] = []
    for name, (training, at) in models.items():
        row, tokens, table = _measure(split, training.scores[at], training.values[at][:, 0])
        rows.append(row)
        tables |= {f"bins-{name}": table, f"tokens-{name}": tokens}
        shown.append(View(f"diagnosis-{name}", f"Embeddings: {name}", f"bins-{name}", "value", points=f"tokens-{name}"))
    found = pl.DataFrame(rows).insert_column(0, pl.Series("embeddings", list(models)))
    start, left, all_of = rows
    checks = (
        Check("start: |rank correlation| of E_sᵀv", abs(start["value_correlation"]), high=SMALL),
        Check("start: |rank correlation| of E_sᵀp", abs(start["score_correlation"]), high=SMALL),
        Check(
            "frozen: |rank correlation| of E_sᵀv, of the trained one",
            _share(left, all_of, "value_correlation"),
            high=0.5,
        ),
        Check(
            "frozen: |rank correlation| of E_sᵀp, of the trained one",
            _share(left, all_of, "score_correlation"),
            high=0.5,
        ),
        Check("frozen: reach of E_sᵀv, of the trained one", _share(left, all_of, "value_reach"), high=0.5),
        Check("frozen: reach of E_sᵀp, of the trained one", _share(left, all_of, "score_reach"), high=0.5),
    )
    ours = "rank correlations of E_sᵀv, E_sᵀp: " + "; ".join(
        f"{name} {r['value_correlation']:.2f}, {r['score_correlation']:.2f} (test accuracy {r['test_accuracy']:.1%})"
        for name, r in zip(models, rows, strict=True)
    )
    return Finding(ours, checks, {"correlations": found, **tables}, tuple(shown), NOTES)


def _measure(split: Split, u: Floats, w: Floats) -> tuple[dict[str, float], pl.DataFrame, pl.DataFrame]:
    """Rank correlations over types and reach over bins of one model."""
    tokens = token_table(split.train, u, w)
    table, x = bins(tokens, theirs=paper.AXIS), tokens["posterior_difference"].to_numpy()
    row = {
        "value_correlation": spearman(x, w), "score_correlation": spearman(np.abs(x), u),
        "value_reach": reach(table, "value"), "score_reach": reach(table, "score"),
        "test_accuracy": evaluate(split.test, u, w)[1],
    }  # fmt: skip
    return row, tokens, table


def _share(part: dict[str, float], whole: dict[str, float], of: str) -> float:
    return abs(part[of]) / abs(whole[of])


EXPERIMENT = Experiment(
    "diagnosis",
    "The correlations E_sᵀv and E_sᵀp tell whether a model has learned: always small where embeddings are untrained",
    "no figures",
    "at the start rank correlations with importance within 0.1 of zero; with frozen embeddings correlations and reach at most "
    "half of those with trained ones",
    SETTINGS,
    {"quick": 40, "paper": 400},
    run,
    needs=("imdb",),
)
