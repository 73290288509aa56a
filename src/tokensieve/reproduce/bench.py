"""What an experiment works with: its data, its settings, and the models it trains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from tokensieve.model.embeddings import Start, Training, TrainingSettings, initialise, train_embeddings
from tokensieve.progress import Progress, part
from tokensieve.reproduce.data import Data, Split
from tokensieve.reproduce.experiment import Values
from tokensieve.reproduce.measures import (
    PAPER,
    Measurement,
    bins,
    shape_measurements,
    spread_measurements,
    token_table,
)
from tokensieve.reproduce.result import SeedRun

if TYPE_CHECKING:
    from tokensieve.reproduce.deep import DeepTraining

    Trained = Training | DeepTraining

TITLES = {"imdb": "IMDB", "yelp": "Yelp"}


class Bench:
    """One run of an experiment: everything it may ask for.

    Attributes:
        data: the real data sets.
        settings: the experiment's settings at its scale, under its reading.
        seed: of every draw.
        tell: receives what is being done and the fraction of this experiment that is done.
        folder: keeps states on the way, so that an interrupted run goes on; an empty or fitting one.
        start_seed: of the model's random start; the seed, unless a reading holds it fixed.
    """

    def __init__(self, data: Data, settings: Values, seed: int, tell: Progress, folder: Path) -> None:
        self.data, self.settings, self.seed, self.tell, self.folder = data, settings, seed, tell, folder
        self.start_seed = int(settings.get("start_seed", seed))

    def part(self, low: float, high: float) -> Progress:
        """A receiver for one part of the experiment: its 0 … 1 is shown as low … high."""
        return part(self.tell, low, high)

    def load(self, name: str) -> Split:
        """The split of a data set that the settings name: its `types`, and `documents` where they are limited."""
        seed = int(self.settings.get("data_seed", self.seed))
        return (self.data.imdb if name == "imdb" else self.data.yelp)(seed=seed, **self.settings[name])

    def fit(self, split: Split, label: str, tell: Progress, start: Start | None = None, **changes: Any) -> Training:
        """Train the one-layer model, resumable; the trajectory measures validation and test too.

        Args:
            split: documents.
            label: distinguishes this run of the experiment from its others.
            tell: receives the fraction done.
            start: where it starts; by default the paper's random start.
            changes: to the `TrainingSettings`.
        """
        counts, steps = split[0], self.settings["steps"]
        outputs = 1 if counts.n_classes == 2 else counts.n_classes
        start = start or initialise(counts.n_types, self.settings["d"], outputs, self.start_seed)
        how: dict[str, Any] = {"learning_rate": self.settings["learning_rate"], "steps": steps, "seed": self.seed}
        how |= {"record_every": max(1, steps // 20)} | changes
        others = {"validation": split[1], "test": split[2]}
        shown = _labelled(tell, label)
        return train_embeddings(
            counts, start, TrainingSettings(**how), others, self.folder / f"{label}.safetensors", shown
        )

    def fit_deep(self, kind: str, name: str, tell: Progress) -> tuple[Split, DeepTraining]:
        """Train one kind of deep model on one data set; test documents at most as many as `test_documents`."""
        from tokensieve.reproduce.deep import DeepSettings, fit_deep

        split = self.load(name)
        test = split[2].rows(np.arange(min(self.settings["test_documents"], split[2].n_documents)))
        given = ({field.name for field in fields(DeepSettings)} - {"seed"}) & set(self.settings)
        settings = DeepSettings(kind, seed=self.start_seed, **{name: self.settings[name] for name in given})
        others = {"validation": split[1], "test": test}
        checkpoint = self.folder / f"{kind}-{name}.safetensors"
        return split, fit_deep(split[0], settings, others, _labelled(tell, name), checkpoint)

    def shapes_on_both(self, train: Callable[[str, Progress], tuple[Split, Trained]]) -> SeedRun:
        """Train on IMDB and on Yelp, and measure both shapes.

        Args:
            train: a data set's name and a progress → its documents and what was trained on them.
        """
        measured: list[Measurement] = []
        accuracy: list[Measurement] = []
        said: list[str] = []
        tables: dict[str, pl.DataFrame] = {}
        for k, (name, title) in enumerate(TITLES.items()):
            split, found = train(name, self.part(k / 2, (k + 1) / 2))
            tokens, table = self.read(split, found)
            these = self.shapes(table, split, found, title)
            measured += these
            accuracy += self.accuracies(found, title)
            tables |= {f"bins-{name}": table, f"tokens-{name}": tokens, f"trajectory-{name}": found.trajectory}
            said.append(f"{title} {these[0].value:.3f} and {these[1].value:.3f}, {self.accuracy_in_words(found)}")
        ours = "Spearman of E_sᵀv and of E_sᵀp: " + "; ".join(said)
        return SeedRun(ours, tuple(measured), tables, tuple(accuracy))

    def read(self, split: Split, run: Trained, at: int = -1) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Tokens, and bins of the paper's own edges, of one record of a run with two classes; by default the end."""
        tokens = token_table(split[0], run.scores[at], run.values[at][:, 0])
        return tokens, bins(tokens, theirs=PAPER["key-query"].select("x"))

    def shapes(self, table: pl.DataFrame, split: Split, run: Trained, where: str) -> list[Measurement]:
        """Both shapes at the end of training, judged; those at the least validation loss and the spread within bins, not."""
        _, early = self.read(split, run, run.best())
        at_best = shape_measurements(early, f"{where}, at the least validation loss", judged=False)
        return [*shape_measurements(table, where), *at_best, *spread_measurements(table, where)]

    def accuracies(self, run: Trained, where: str) -> list[Measurement]:
        """Test accuracy where the validation loss is least, and at the end."""
        best, end = (run.trajectory["test_accuracy"][at] for at in (run.best(), -1))
        names = ("test accuracy at the least validation loss", "test accuracy at the end")
        return [Measurement(f"{where}: {name}", value) for name, value in zip(names, (best, end), strict=True)]

    def accuracy_in_words(self, run: Trained) -> str:
        """Test accuracy where the validation loss is least and at the end, and the training accuracy and loss."""
        best, end = (run.trajectory.row(at, named=True) for at in (run.best(), -1))
        return (
            f"test accuracy {best['test_accuracy']:.1%} at step {best['step']} (least validation loss), "
            f"{end['test_accuracy']:.1%} at the end (step {end['step']}); training {end['train_accuracy']:.1%}, "
            f"loss {end['train_loss']:.3f}"
        )


def _labelled(tell: Progress, label: str) -> Progress:
    def shown(stage: str, share: float) -> None:
        tell(f"{label}: {stage}", share)

    return shown
