"""Figure 1: two layers of attention, the first without weights, on IMDB and Yelp."""

from __future__ import annotations

import polars as pl

from tokensieve.reproduce.joint import OURS, TRIED, fit_kind, read, said_accuracy, views
from tokensieve.reproduce.one_layer import TITLES
from tokensieve.reproduce.paper import DIMENSION, TYPES
from tokensieve.reproduce.result import Bench, Experiment, Finding, View
from tokensieve.reproduce.shape import shape_checks

SETTINGS = {
    "quick": {
        "d": 64, "epochs": 15, "learning_rate": 0.01, "batch_size": 256, "test_documents": 1000,
        "imdb": {"types": 5000, "documents": 3000}, "yelp": {"types": TYPES["yelp"], "documents": 4000},
    },
    "paper": {
        "d": DIMENSION, "epochs": 15, "learning_rate": 0.01, "batch_size": 256, "test_documents": 2000,
        "imdb": {"types": TYPES["imdb"], "documents": 10_000}, "yelp": {"types": TYPES["yelp"]},
    },
}  # fmt: skip


def run(bench: Bench) -> Finding:
    """Train on each data set and look at both shapes."""
    checks, said = [], []
    tables: dict[str, pl.DataFrame] = {}
    shown: list[View] = []
    for k, (name, title) in enumerate(TITLES.items()):
        split, found = fit_kind(bench, "two-layer", name, bench.part(k / 2, (k + 1) / 2))
        tokens, table = read(split, found)
        shapes = shape_checks(table, title)
        checks += shapes
        tables |= {f"bins-{name}": table, f"tokens-{name}": tokens}
        shown += views(f"two-layer-{name}", f"Two layers, {title}", f"-{name}")
        said.append(f"{title} {shapes[0].value:.3f} and {shapes[1].value:.3f}, {said_accuracy(found)}")
    ours = "Spearman of E_sᵀv and of E_sᵀp: " + "; ".join(said)
    return Finding(ours, tuple(checks), tables, tuple(shown), (OURS, TRIED))


EXPERIMENT = Experiment(
    "two-layer",
    "Fig. 1, two layers, IMDB and Yelp: E_sᵀv increases with the posterior difference, E_sᵀp is V-shaped",
    "a figure without numbers",
    "on both data sets Spearman of the bin means at least 0.95 (E_sᵀv) and 0.85 (E_sᵀp); bins of at least 3 types",
    SETTINGS,
    {"quick": 60, "paper": 1800},
    run,
    needs=("imdb", "yelp"),
    torch=True,
)
