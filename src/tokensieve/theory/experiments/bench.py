"""What an experiment works with: the data, its settings, and the models it trains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from tokensieve.progress import Progress, part
from tokensieve.text.counts import Counts
from tokensieve.theory.embeddings import (
    Start,
    Training,
    TrainingSettings,
    initialise,
    train_embeddings,
)
from tokensieve.theory.experiments import measures
from tokensieve.theory.experiments.data import Data, Split
from tokensieve.theory.experiments.measures import PAPER, Measurement

if TYPE_CHECKING:
    from tokensieve.theory.experiments.deep import DeepTraining

    Trained = Training | DeepTraining

Values = Mapping[str, Any]  # settings by name, as in experiments.toml
N_RECORDS = 20  # of a training run, beside its start: enough for a curve, few to store


class Bench:
    """One run of an experiment, with everything it may use.

    Attributes:
        data: the data sets.
        settings: the experiment's settings, at its scale and under its reading.
        seed: of every draw.
        progress: receives what is being done.
        folder: for intermediate states, so that an interrupted run can continue.
        start_seed: of the model's random start; the same, unless a reading fixes it.
    """

    def __init__(
        self, data: Data, settings: Values, seed: int, progress: Progress, folder: Path
    ) -> None:
        self.data = data
        self.settings = settings
        self.seed = seed
        self.progress = progress
        self.folder = folder
        self.start_seed = int(settings.get("start_seed", seed))

    def part(self, low: float, high: float) -> Progress:
        """A progress function for one part of the experiment: its 0 … 1 is shown as low … high."""
        return part(self.progress, low, high)

    def load(self, name: str) -> Split:
        """The split of a data set, with as many types and documents as the settings say."""
        seed = int(self.settings.get("data_seed", self.seed))
        if name == "imdb":
            return self.data.imdb(seed=seed, **self.settings[name])
        return self.data.yelp(seed=seed, **self.settings[name])

    def start(self, counts: Counts, d: int | None = None) -> Start:
        """The paper's random start, of the settings' dimension unless another is given."""
        n_outputs = 1 if counts.n_classes == 2 else counts.n_classes
        return initialise(counts.n_types, d or self.settings["d"], n_outputs, self.start_seed)

    def fit(
        self,
        split: Split,
        label: str,
        progress: Progress,
        start: Start | None = None,
        **changes: Any,
    ) -> Training:
        """Train the one-layer model, resumable under its label.

        Args:
            split: trained on its first part; the trajectory measures the others, too.
            label: names the run in its folder and in the progress.
            progress: receives what is being done.
            start: of the embeddings; the settings' random one by default.
            changes: to the `TrainingSettings`.
        """
        n_steps = self.settings["steps"]
        defaults = {
            "learning_rate": self.settings["learning_rate"],
            "steps": n_steps,
            "seed": self.seed,
            "record_every": max(1, n_steps // N_RECORDS),
        }
        return train_embeddings(
            split.train,
            start or self.start(split.train),
            TrainingSettings(**(defaults | changes)),
            {"validation": split.validation, "test": split.test},
            self.folder / f"{label}.safetensors",
            lambda stage, fraction: progress(f"{label}: {stage}", fraction),
        )

    def fit_deep(self, split: Split, kind: str, name: str, progress: Progress) -> DeepTraining:
        """Train one kind of deep model on the data set of a name.

        At most `test_documents` of the test documents are used, as the settings say.
        """
        from tokensieve.theory.experiments.deep import DeepSettings, DeepTraining

        own_fields = {field.name for field in fields(DeepSettings)} - {"seed"}
        given = {key: value for key, value in self.settings.items() if key in own_fields}
        n_test = min(self.settings["test_documents"], split.test.n_documents)
        return DeepTraining.fit(
            split.train,
            DeepSettings(kind, seed=self.start_seed, **given),
            {"validation": split.validation, "test": split.test.rows(np.arange(n_test))},
            lambda stage, fraction: progress(f"{name}: {stage}", fraction),
            self.folder / f"{kind}-{name}.safetensors",
        )

    def accuracies(self, run: Trained, where: str) -> tuple[Measurement, Measurement]:
        """Test accuracy at the lowest validation loss, and at the end."""
        accuracy = run.trajectory["test_accuracy"]
        name = f"{where}: test accuracy at the"
        return (
            Measurement(f"{name} lowest validation loss", accuracy[run.best()]),
            Measurement(f"{name} end", accuracy[-1]),
        )


def tokens_at(split: Split, run: Trained, record: int = -1) -> pl.DataFrame:
    """The tokens' values and scores at a record of a run with two classes; by default the end."""
    return measures.token_table(split.train, run.scores[record], run.values[record][:, 0])


def paper_bins(tokens: pl.DataFrame) -> pl.DataFrame:
    """The tokens in the bins of the paper's table A, without its numbers."""
    return measures.bins(tokens, theirs=PAPER["key-query"].select("x"))


def judged_shapes(table: pl.DataFrame, split: Split, run: Trained, where: str) -> list[Measurement]:
    """Both shapes at the end of training, which are judged, and what is reported beside them.

    These are the shapes at the lowest validation loss and the spread within bins.
    """
    early = paper_bins(tokens_at(split, run, run.best()))
    where_early = f"{where}, at the lowest validation loss"
    return [
        *measures.shapes(table, where),
        *measures.shapes(early, where_early, judged=False),
        *measures.spreads(table, where),
    ]


def halves(counts: Counts, n: int) -> Split:
    """n documents to learn from, and the rest in halves."""
    middle = n + (counts.n_documents - n) // 2
    return Split(
        train=counts.rows(slice(n)),
        validation=counts.rows(slice(n, middle)),
        test=counts.rows(slice(middle, None)),
    )
