"""Figure 1: two layers of attention, the first without weights, on IMDB and Yelp."""

from __future__ import annotations

from functools import partial

from tokensieve.reproduce.joint import OURS, TRIED, fit_kind, on_both
from tokensieve.reproduce.paper import DIMENSION, TYPES
from tokensieve.reproduce.result import Bench, Experiment, Finding, Reading

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


READINGS = (
    Reading("residual", "a residual connection around the first layer", {"residual": True}),
    Reading("scaled", "logits of the first layer over √d, as transformers have it", {"scaled": True}),
    Reading("smaller-steps", "Adam with a third of the step size", {"learning_rate": 0.003}),
    Reading("one-start", "seeds draw the documents only: is it they that make seeds differ?", {"start_seed": 0}),
    Reading("one-draw", "seeds draw the random start and the order only: is it they?", {"data_seed": 0}),
)


def run(bench: Bench) -> Finding:
    """Train on each data set and look at both shapes."""
    return on_both(bench, partial(fit_kind, bench, "two-layer"), "two-layer", "Two layers", (OURS, TRIED))


EXPERIMENT = Experiment(
    "two-layer",
    "Fig. 1, two layers, IMDB and Yelp: E_sᵀv increases with the posterior difference, E_sᵀp is V-shaped",
    "a figure without numbers",
    "on both data sets Spearman of the bin means at least 0.95 (E_sᵀv) and 0.85 (E_sᵀp); bins of at least 3 types",
    SETTINGS,
    {"quick": 60, "paper": 1400},
    run,
    needs=("imdb", "yelp"),
    torch=True,
    readings=READINGS,
)
