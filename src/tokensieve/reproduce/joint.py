"""The models trained on the documents of an experiment, and the tables that are read from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from tokensieve.model.embeddings import Training, TrainingSettings, train_embeddings
from tokensieve.model.start import Start, initialise
from tokensieve.progress import Progress
from tokensieve.reproduce.data import Split
from tokensieve.reproduce.result import Bench, View
from tokensieve.reproduce.shape import bins, token_table

if TYPE_CHECKING:
    from tokensieve.reproduce.deep import DeepTraining

TRIED = (
    "Tried on 2,700 IMDB reviews: two layers in batches of 32 were V-shaped with one seed and one-sided with another (attention on "
    "negative words only), at step sizes 0.003 and 0.01, with and without early stopping; larger batches keep both sides."
)
OURS = (
    "Ours, because the paper does not say: Adam in batches of 256, everything trained for a fixed number of epochs, by which the "
    "training loss is near zero (the paper trains until convergence); no 1/√d and no residual connection; lower-cased words."
)


def load(bench: Bench, name: str, **options: Any) -> Split:
    """The split of a data set that an experiment's settings name: its `types`, and `documents` where they are limited."""
    wanted = dict(bench.settings[name]) | options
    return (bench.data.imdb if name == "imdb" else bench.data.yelp)(seed=bench.seed, **wanted)


def fit(bench: Bench, split: Split, label: str, tell: Progress, start: Start | None = None, **changes: Any) -> Training:
    """Train from the paper's random start (or another), resumable; the trajectory measures validation and test too.

    Args:
        bench: settings d, learning_rate, steps.
        split: documents.
        label: distinguishes this run of the experiment from its others.
        tell: receives the share done.
        start: another start.
        changes: to the `TrainingSettings`.
    """
    wanted = bench.settings
    outputs = 1 if split.train.n_classes == 2 else split.train.n_classes
    start = start or initialise(split.train.n_types, wanted["d"], outputs, bench.seed)
    how: dict[str, Any] = {"learning_rate": wanted["learning_rate"], "steps": wanted["steps"], "seed": bench.seed}
    how["record_every"] = max(1, wanted["steps"] // 20)
    others = {"validation": split.validation, "test": split.test}
    checkpoint = bench.folder / f"{label}.safetensors"
    shown: Progress = lambda stage, share: tell(f"{label}: {stage}", share)  # noqa: E731
    return train_embeddings(split.train, start, TrainingSettings(**(how | changes)), others, checkpoint, shown)


def fit_kind(bench: Bench, kind: str, name: str, tell: Progress) -> tuple[Split, DeepTraining]:
    """Train one kind of deep model on one data set; test documents at most as many as `test_documents`."""
    from tokensieve.reproduce.deep import DeepSettings, fit_deep

    split = load(bench, name)
    most: int = bench.settings["test_documents"]
    test = split.test.rows(np.arange(min(most, split.test.n_documents)))
    wanted: dict[str, Any] = {k: bench.settings[k] for k in ("d", "epochs", "learning_rate", "batch_size")}
    settings = DeepSettings(kind, seed=bench.seed, **wanted)
    shown: Progress = lambda stage, share: tell(f"{name}: {stage}", share)  # noqa: E731
    others = {"validation": split.validation, "test": test}
    return split, fit_deep(split.train, settings, others, shown, bench.folder / f"{kind}-{name}.safetensors")


def read(split: Split, run: Training | DeepTraining, at: int = -1) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Tokens and bins of one record of a run with two classes, by default the end."""
    tokens = token_table(split.train, run.scores[at], run.values[at][:, 0])
    return tokens, bins(tokens)


def views(label: str, title: str, part: str = "", paper: str = "") -> tuple[View, View]:
    """Value and score in bins, over the token types.

    Args:
        label: how the file names begin.
        title: what was trained.
        part: what follows "bins" and "tokens" in the names of the tables, for example "-imdb".
        paper: table of the paper's means.
    """
    value, score = (
        View(f"{label}-{of}", f"{title}: {of}", f"bins{part}", of, points=f"tokens{part}", paper=paper)
        for of in ("value", "score")
    )
    return value, score


def at_best(run: Training | DeepTraining) -> dict[str, Any]:
    """The row of the trajectory with the smallest validation loss."""
    return run.trajectory.row(run.best(), named=True)


def said_accuracy(run: Training | DeepTraining) -> str:
    """Test accuracy and loss where the validation loss is least, and at the end."""
    best, end = at_best(run), run.trajectory.row(-1, named=True)
    return (
        f"test accuracy {best['test_accuracy']:.1%} at step {best['step']} (least validation loss), "
        f"{end['test_accuracy']:.1%} at the end (step {end['step']}); training {end['train_accuracy']:.1%}, "
        f"loss {end['train_loss']:.3f}"
    )
