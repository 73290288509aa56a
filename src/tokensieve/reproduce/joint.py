"""The models trained on the documents of an experiment, and the tables that are read from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from tokensieve.model.embeddings import Training, TrainingSettings, train_embeddings
from tokensieve.model.start import Start, initialise
from tokensieve.progress import Progress
from tokensieve.reproduce.data import Split
from tokensieve.reproduce.paper import AXIS
from tokensieve.reproduce.result import Bench, Check, Finding, View
from tokensieve.reproduce.shape import bins, shape_checks, spread_checks, token_table

if TYPE_CHECKING:
    from tokensieve.reproduce.deep import DeepTraining

TITLES = {"imdb": "IMDB", "yelp": "Yelp"}
TRIED = (
    "Tried on 2,700 IMDB reviews: two layers in batches of 32 were V-shaped with one seed and one-sided with another (attention "
    "on negative words only), at step sizes 0.003 and 0.01, with and without early stopping; larger batches keep both sides."
)
OURS = (
    "Ours, because the paper does not say: Adam in batches of 256, everything trained for a fixed number of epochs, by which "
    "the training loss is near zero (the paper trains until convergence); no 1/√d and no residual connection; lower-cased "
    "words."
)


def load(bench: Bench, name: str, **options: Any) -> Split:
    """The split of a data set that an experiment's settings name: its `types`, and `documents` where they are limited."""
    wanted = dict(bench.settings[name]) | options
    return (bench.data.imdb if name == "imdb" else bench.data.yelp)(seed=bench.data_seed, **wanted)


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
    start = start or initialise(split.train.n_types, wanted["d"], outputs, bench.start_seed)
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
    given = ({f.name for f in fields(DeepSettings)} - {"seed"}) & set(bench.settings)
    settings = DeepSettings(kind, seed=bench.start_seed, **{name: bench.settings[name] for name in given})
    shown: Progress = lambda stage, share: tell(f"{name}: {stage}", share)  # noqa: E731
    others = {"validation": split.validation, "test": test}
    return split, fit_deep(split.train, settings, others, shown, bench.folder / f"{kind}-{name}.safetensors")


def read(
    split: Split, run: Training | DeepTraining, at: int = -1, theirs: pl.DataFrame | None = None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Tokens and bins of one record of a run with two classes.

    Args:
        split: the documents.
        run: what was trained on them.
        at: which record; by default the end.
        theirs: the paper's row, whose bins are used; by default its axis alone.
    """
    tokens = token_table(split.train, run.scores[at], run.values[at][:, 0])
    return tokens, bins(tokens, theirs=AXIS if theirs is None else theirs)


def shapes(table: pl.DataFrame, split: Split, run: Training | DeepTraining, where: str) -> list[Check]:
    """Both shapes at the end of training, judged; the same at the least validation loss, and the spread within bins, stated."""
    _, early = read(split, run, run.best())
    at_best = shape_checks(early, f"{where}, at the least validation loss", judged=False)
    return [*shape_checks(table, where), *at_best, *spread_checks(table, where)]


def accuracies(run: Training | DeepTraining, where: str) -> tuple[Check, Check]:
    """Test accuracy where the validation loss is least, and at the end."""
    end = run.trajectory.row(-1, named=True)
    return (
        Check(f"{where}: test accuracy at the least validation loss", at_best(run)["test_accuracy"]),
        Check(f"{where}: test accuracy at the end", end["test_accuracy"]),
    )


def views(label: str, title: str, part: str = "") -> tuple[View, View]:
    """Score and value in bins, over the token types, in the order of the paper's figures.

    Args:
        label: how the file names begin.
        title: what was trained.
        part: what follows "bins" and "tokens" in the names of the tables, for example "-imdb".
    """
    score, value = (
        View(f"{label}-{of}", f"{title}: {of}", f"bins{part}", of, points=f"tokens{part}") for of in ("score", "value")
    )
    return score, value


def on_both(
    bench: Bench,
    train: Callable[[str, Progress], tuple[Split, Training | DeepTraining]],
    label: str,
    title: str,
    notes: tuple[str, ...],
) -> Finding:
    """Train on IMDB and on Yelp, and look at both shapes.

    Args:
        bench: settings, data, progress.
        train: a data set's name and a progress → its documents and what was trained on them.
        label, title: how the views' names and titles begin.
        notes: of the finding.
    """
    checks: list[Check] = []
    accuracy: list[Check] = []
    said: list[str] = []
    tables: dict[str, pl.DataFrame] = {}
    shown: list[View] = []
    for k, (name, data) in enumerate(TITLES.items()):
        split, found = train(name, bench.part(k / 2, (k + 1) / 2))
        tokens, table = read(split, found)
        figures = shapes(table, split, found, data)
        checks += figures
        accuracy += accuracies(found, data)
        tables |= {f"bins-{name}": table, f"tokens-{name}": tokens, f"trajectory-{name}": found.trajectory}
        shown += views(f"{label}-{name}", f"{title}, {data}", f"-{name}")
        said.append(f"{data} {figures[0].value:.3f} and {figures[1].value:.3f}, {said_accuracy(found)}")
    ours = "Spearman of E_sᵀv and of E_sᵀp: " + "; ".join(said)
    return Finding(ours, tuple(checks), tables, tuple(shown), notes, tuple(accuracy))


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
