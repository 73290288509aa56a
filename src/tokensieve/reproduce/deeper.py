"""The deep variants trained on an experiment's documents, and their figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from tokensieve.progress import Progress
from tokensieve.report.charts import Picture
from tokensieve.reproduce.data import Split
from tokensieve.reproduce.joint import load
from tokensieve.reproduce.pictures import bin_picture
from tokensieve.reproduce.result import Bench
from tokensieve.reproduce.shape import bins, token_table
from tokensieve.text.counts import Counts

if TYPE_CHECKING:
    from tokensieve.reproduce.deep import DeepResult

TRIED = (
    "Tried on 2,700 IMDB reviews: two layers in batches of 32 were V-shaped with one seed and one-sided with another (attention on "
    "negative words only), at step sizes 0.003 and 0.01, with and without early stopping; larger batches keep both sides."
)
OURS = (
    "Ours, because the paper does not say: Adam in batches of 256, everything trained for a fixed number of epochs, by "
    "which the "
    "training loss is near zero (the paper trains until convergence); no 1/√d and no residual connection; lower-cased words."
)


def fit_kind(bench: Bench, kind: str, name: str, tell: Progress) -> tuple[Split, DeepResult]:
    """Train one kind of model on one data set; test documents at most as many as `test_documents`."""
    from tokensieve.reproduce.deep import DeepSettings, fit_deep

    split = load(bench, name)
    most: int = bench.settings["test_documents"]
    test: Counts = split.test.rows(np.arange(min(most, split.test.n_documents)))
    wanted: dict[str, Any] = {k: bench.settings[k] for k in ("d", "epochs", "learning_rate", "batch_size")}
    settings = DeepSettings(kind, seed=bench.seed, **wanted)
    shown: Progress = lambda stage, share: tell(f"{name}: {stage}", share)  # noqa: E731
    found = fit_deep(split.train, settings, None, test, shown, bench.folder / f"{kind}-{name}.safetensors")
    return split, found


def deep_figures(
    split: Split, found: DeepResult, label: str, title: str, theirs: pl.DataFrame | None = None
) -> tuple[pl.DataFrame, pl.DataFrame, tuple[Picture, Picture]]:
    """Tokens, bins and the two pictures of a deep model with two classes; the paper's means beside where it gives some."""
    tokens = token_table(split.train, found.score, found.value)
    table = bins(tokens)
    return tokens, table, (
        bin_picture(f"{label}-value", f"{title}: value", "value", table, tokens, theirs),
        bin_picture(f"{label}-score", f"{title}: score", "score", table, tokens, theirs),
    )  # fmt: skip


def said_deep(found: DeepResult) -> str:
    """Accuracies and the training loss at the end."""
    return (
        f"test accuracy {found.accuracy['test']:.1%}, training {found.accuracy['train']:.1%} (loss {found.loss['train']:.3f}) "
        f"after {found.best_epoch} epochs"
    )
