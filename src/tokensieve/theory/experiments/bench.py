"""Everything an experiment uses: the real data, its settings, and the models it trains."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from tokensieve.arrays import Ints
from tokensieve.checkpoint import fingerprint
from tokensieve.errors import InputError
from tokensieve.progress import Progress, part
from tokensieve.read.corpus import read_corpus
from tokensieve.text.counts import Counts
from tokensieve.text.tokenizers import WordTokenizer
from tokensieve.text.vocabulary import learn_vocabulary, tokenize
from tokensieve.theory.embeddings import (
    Start,
    Training,
    TrainingSettings,
    initialise,
    train_embeddings,
)
from tokensieve.theory.experiments.experiment import Values
from tokensieve.theory.experiments.measures import PAPER, Measurement, bins, token_table

if TYPE_CHECKING:
    from tokensieve.theory.experiments.deep import DeepTraining

    Trained = Training | DeepTraining

TITLES = {"imdb": "IMDB", "yelp": "Yelp"}
Split = tuple[
    Counts, Counts, Counts
]  # training, validation, test; all over the types seen in training
_FILES = {"imdb": ("imdb_train.parquet", "imdb_test.parquet"), "yelp": ("yelp.parquet",)}
_HOW_TO_GET = {
    "imdb": "get the Large Movie Review Dataset (ai.stanford.edu/~amaas/data/sentiment), write imdb_train.parquet and "
    "imdb_test.parquet with the columns text and label (positive or negative)",
    "yelp": "get a sample of the Yelp Open Dataset (business.yelp.com/data/resources/open-dataset), write yelp.parquet with the "
    "columns text and stars (1 to 5)",
}
_GROUPS = {
    "polarity": {"negative": "12", "positive": "45"},
    "joined 2-3": {"1 star": "1", "2-3 stars": "23", "4 stars": "4", "5 stars": "5"},
    "joined 3-4": {"1 star": "1", "2 stars": "2", "3-4 stars": "34", "5 stars": "5"},
    "without 3": {"1 star": "1", "2 stars": "2", "4 stars": "4", "5 stars": "5"},
}  # class → the ratings in it


class Data:
    """A folder of data files (None if none was given), with a cache of their counts; `limit` caps the documents of each data set,
    for trials."""

    def __init__(self, folder: Path | None, limit: int | None = None) -> None:
        self.folder, self.limit = folder, limit
        self._counted: dict[str, list[Counts]] = {}

    def missing(self, name: str) -> str:
        """Why a data set cannot be read and how to get it; empty if it can be read."""
        lacking = [
            file
            for file in _FILES[name]
            if self.folder is None or not (self.folder / file).is_file()
        ]
        if not lacking:
            return ""
        where = (
            f"there is no {lacking[0]} in {str(self.folder)!r}"
            if self.folder
            else "no data folder is named"
        )
        return f"{where}; {_HOW_TO_GET[name]}, and name the folder with --data or TOKENSIEVE_DATA"

    def digest(self, name: str) -> str:
        """A digest of a data set's files, which changes when they do; empty if there are none."""
        files = [(self.folder or Path()) / file for file in _FILES[name]]
        return (
            ""
            if self.missing(name)
            else fingerprint(*(np.fromfile(file, np.uint8) for file in files))
        )

    def imdb(self, types: int, documents: int | None = None, seed: int = 0) -> Split:
        """IMDB as it is split: 25,000 reviews to learn from (a tenth of them for validation) and 25,000 to test, or this many
        `documents` of each, drawn by the seed; over the `types` types that occur in most training documents."""
        rng = np.random.default_rng(seed)
        train, test = (
            part.rows(self._draw(part.labels, documents, rng))
            for part in self._counts("imdb", "label")
        )
        cut = round(train.n_documents * 0.1)
        return _most_frequent(types, train.rows(slice(cut, None)), train.rows(slice(cut)), test)

    def yelp(
        self, types: int, documents: int | None = None, groups: str = "polarity", seed: int = 0
    ) -> Split:
        """Yelp with equally large classes (larger ones are sampled): a fifth for testing, a tenth of the rest for validation. Two
        classes are 1–2 against 4–5 stars. For four, two of the five ratings are joined or one is left out; the paper does not say
        how it came to four. `documents` is the total, `groups` a name in `_GROUPS`."""
        [counts], classes = self._counts("yelp", "stars"), tuple(_GROUPS[groups])
        into = {star: k for k, stars in enumerate(_GROUPS[groups].values()) for star in stars}
        labels = np.array([into.get(star, -1) for star in counts.classes], dtype=np.int64)[
            counts.labels
        ]
        chosen = self._draw(labels, documents, np.random.default_rng(seed), len(classes))
        every = replace(counts, labels=np.maximum(labels, 0), classes=classes).rows(chosen)
        test = round(len(chosen) * 0.2)
        cut = test + round((len(chosen) - test) * 0.1)
        return _most_frequent(
            types, *(every.rows(slice(*ends)) for ends in ((cut, None), (test, cut), (0, test)))
        )

    def _draw(
        self, labels: Ints, documents: int | None, rng: np.random.Generator, classes: int = 2
    ) -> Ints:
        """Equally many documents of each class, in random order, so that every stretch of them is a random sample."""
        members = [rng.permutation(np.flatnonzero(labels == k)) for k in range(classes)]
        most = [n // classes for n in (documents, self.limit) if n is not None]
        each = min(*map(len, members), *most)
        return np.stack([m[:each] for m in members], axis=1).ravel()

    def _counts(self, name: str, label: str) -> list[Counts]:
        """Each file of a data set, counted over all words of the first."""
        if name not in self._counted:
            if lacking := self.missing(name):
                raise InputError(lacking)
            frames = [
                pl.read_parquet((self.folder or Path()) / file, columns=["text", label])
                for file in _FILES[name]
            ]
            corpora = [read_corpus(frame, text="text", label=label) for frame in frames]
            streams = [tokenize(corpus.texts, WordTokenizer()) for corpus in corpora]
            words = learn_vocabulary(streams[0], WordTokenizer())
            self._counted[name] = [
                Counts(words.count(stream)[0], corpus.labels, corpora[0].classes, words.tokens)
                for corpus, stream in zip(corpora, streams, strict=True)
            ]
        return self._counted[name]


def _most_frequent(types: int, train: Counts, validation: Counts, test: Counts) -> Split:
    """The same documents over the `types` types that occur in most of the training documents."""
    frequency = np.bincount(train.matrix.indices, minlength=train.n_types)
    kept = np.sort(np.argsort(-frequency, kind="stable")[: min(types, np.count_nonzero(frequency))])
    matrices = (part.matrix[:, kept] for part in (train, validation, test))
    first, second, third = (
        replace(train, matrix=matrix, tokens=train.tokens[kept]) for matrix in matrices
    )
    return first, replace(second, labels=validation.labels), replace(third, labels=test.labels)


class Bench:
    """One run of an experiment, with everything it may use: the data sets, the experiment's settings at its scale and under its
    reading, the seed of every draw, a folder for intermediate states, so that an interrupted run can continue, and the seed of the
    model's random start (`start_seed`; the same, unless a reading fixes it)."""

    def __init__(
        self, data: Data, settings: Values, seed: int, progress: Progress, folder: Path
    ) -> None:
        self.data, self.settings, self.seed, self.progress, self.folder = (
            data,
            settings,
            seed,
            progress,
            folder,
        )
        self.start_seed = int(settings.get("start_seed", seed))

    def part(self, low: float, high: float) -> Progress:
        """A progress function for one part of the experiment: its 0 … 1 is shown as low … high."""
        return part(self.progress, low, high)

    def load(self, name: str) -> Split:
        """The split of a data set that the settings name: its `types`, and `documents` where they are limited."""
        seed = int(self.settings.get("data_seed", self.seed))
        return (self.data.imdb if name == "imdb" else self.data.yelp)(
            seed=seed, **self.settings[name]
        )

    @staticmethod
    def halves(counts: Counts, n: int) -> Split:
        """n documents to learn from, and the rest in halves."""
        middle = n + (counts.n_documents - n) // 2
        return (
            counts.rows(slice(n)),
            counts.rows(slice(n, middle)),
            counts.rows(slice(middle, None)),
        )

    def start(self, counts: Counts, d: int | None = None) -> Start:
        """The paper's random start, of the settings' d unless another is given."""
        outputs = 1 if counts.n_classes == 2 else counts.n_classes
        return initialise(counts.n_types, d or self.settings["d"], outputs, self.start_seed)

    def fit(
        self,
        split: Split,
        label: str,
        progress: Progress,
        start: Start | None = None,
        **changes: Any,
    ) -> Training:
        """Train the one-layer model, resumable under its label; `changes` are to the `TrainingSettings`."""
        steps = self.settings["steps"]
        how = {"learning_rate": self.settings["learning_rate"], "steps": steps, "seed": self.seed}
        how |= {"record_every": max(1, steps // 20)} | changes
        others = {"validation": split[1], "test": split[2]}
        return train_embeddings(
            split[0],
            start or self.start(split[0]),
            TrainingSettings(**how),
            others,
            self.folder / f"{label}.safetensors",
            lambda stage, share: progress(f"{label}: {stage}", share),
        )

    def fit_deep(self, split: Split, kind: str, name: str, progress: Progress) -> DeepTraining:
        """Train one kind of deep model on the data set of a name; test documents at most as many as `test_documents`."""
        from tokensieve.theory.experiments.deep import DeepSettings, DeepTraining

        test = split[2].rows(np.arange(min(self.settings["test_documents"], split[2].n_documents)))
        given = ({field.name for field in fields(DeepSettings)} - {"seed"}) & set(self.settings)
        settings = DeepSettings(
            kind, seed=self.start_seed, **{name: self.settings[name] for name in given}
        )
        others = {"validation": split[1], "test": test}
        checkpoint = self.folder / f"{kind}-{name}.safetensors"
        return DeepTraining.fit(
            split[0], settings, others, lambda *at: progress(f"{name}: {at[0]}", at[1]), checkpoint
        )

    def read(self, split: Split, run: Trained, at: int = -1) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Tokens, and bins of the paper's own edges, of one record of a run with two classes; by default the end."""
        tokens = token_table(split[0], run.scores[at], run.values[at][:, 0])
        return tokens, bins(tokens, theirs=PAPER["key-query"].select("x"))

    def shapes(
        self, table: pl.DataFrame, split: Split, run: Trained, where: str
    ) -> list[Measurement]:
        """Both shapes at the end of training, judged; those at the lowest validation loss and the spread within bins, not."""
        _, early = self.read(split, run, run.best())
        at_best = Measurement.shapes(early, f"{where}, at the lowest validation loss", judged=False)
        return [*Measurement.shapes(table, where), *at_best, *Measurement.spreads(table, where)]

    def accuracies(self, run: Trained, where: str) -> tuple[Measurement, Measurement]:
        """Test accuracy at the lowest validation loss, and at the end."""
        best, end = (run.trajectory["test_accuracy"][at] for at in (run.best(), -1))
        name = f"{where}: test accuracy at the"
        return Measurement(f"{name} lowest validation loss", best), Measurement(f"{name} end", end)
