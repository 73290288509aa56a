"""The one-layer model trained on the documents of an experiment, and its figures."""

from __future__ import annotations

from typing import Any

import polars as pl

from tokensieve.model.embeddings import Training, TrainingSettings, train_embeddings
from tokensieve.model.start import Start, initialise
from tokensieve.progress import Progress
from tokensieve.report.charts import Picture
from tokensieve.reproduce.data import Split
from tokensieve.reproduce.pictures import bin_picture
from tokensieve.reproduce.result import Bench
from tokensieve.reproduce.shape import bins, token_table


def load(bench: Bench, name: str, **options: Any) -> Split:
    """The split of a data set that an experiment's settings ask for: its `types`, and `documents` where they are limited."""
    wanted = dict(bench.settings[name]) | options
    return (bench.data.imdb if name == "imdb" else bench.data.yelp)(seed=bench.seed, **wanted)


def fit(bench: Bench, split: Split, label: str, tell: Progress, start: Start | None = None, **changes: Any) -> Training:
    """Train from the paper's random start (or another), resumable; the trajectory measures validation and test too.

    Args:
        bench: settings d, learning_rate, steps.
        split: documents.
        label: tells this run of the experiment from its others.
        tell: receives the share done.
        start: another start.
        changes: to the `TrainingSettings`.
    """
    wanted = bench.settings
    heads = 1 if split.train.n_classes == 2 else split.train.n_classes
    start = start or initialise(split.train.n_types, wanted["d"], heads, bench.seed)
    how: dict[str, Any] = {"learning_rate": wanted["learning_rate"], "steps": wanted["steps"], "seed": bench.seed}
    how["record_every"] = max(1, wanted["steps"] // 20)
    others = {"validation": split.validation, "test": split.test}
    checkpoint = bench.folder / f"{label}.npz"
    shown: Progress = lambda stage, share: tell(f"{label}: {stage}", share)  # noqa: E731
    return train_embeddings(split.train, start, TrainingSettings(**(how | changes)), others, checkpoint, shown)


def figures(
    split: Split, run: Training, label: str, title: str
) -> tuple[pl.DataFrame, pl.DataFrame, tuple[Picture, Picture]]:
    """Tokens, bins and the two pictures at the end of a run with two classes."""
    tokens = token_table(split.train, run.scores[-1], run.values[-1][:, 0])
    table = bins(tokens)
    return tokens, table, (
        bin_picture(f"{label}-value", f"{title}: value", "value", table, tokens),
        bin_picture(f"{label}-score", f"{title}: score", "score", table, tokens),
    )  # fmt: skip


def at_best(run: Training) -> dict[str, Any]:
    """The row of the trajectory with the smallest validation loss."""
    return run.trajectory.row(run.best(), named=True)


def said_accuracy(run: Training) -> str:
    """Test accuracy and loss where the validation loss is least, and at the end."""
    best, end = at_best(run), run.trajectory.row(-1, named=True)
    return (
        f"test accuracy {best['test_accuracy']:.1%} at step {best['step']} (least validation loss), "
        f"{end['test_accuracy']:.1%} at the end; training {end['train_accuracy']:.1%}, loss {end['train_loss']:.2f}"
    )
