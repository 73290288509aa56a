"""What an experiment works with: the real data, its settings, and the models it trains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from tokensieve.checkpoint import fingerprint
from tokensieve.errors import InputError
from tokensieve.model.embeddings import Start, Training, TrainingSettings, initialise, train_embeddings
from tokensieve.progress import Progress, part
from tokensieve.reproduce.experiment import Values
from tokensieve.reproduce.measures import PAPER, Measurement, bins, token_table
from tokensieve.text.corpus import Corpus, read_corpus
from tokensieve.text.counts import Counts, Ints
from tokensieve.text.tokenizers import WordTokenizer
from tokensieve.text.vocabulary import TokenStream, learn_vocabulary

if TYPE_CHECKING:
    from tokensieve.reproduce.deep import DeepTraining

    Trained = Training | DeepTraining

TITLES = {"imdb": "IMDB", "yelp": "Yelp"}
Split = tuple[Counts, Counts, Counts]  # training, validation, test; all over the types seen in training
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
    """A folder of data files, and what was already read from it.

    Attributes:
        folder: where the files lie; None if nobody named one.
        limit: at most this many documents of each data set, for trials; None for all.
    """

    def __init__(self, folder: Path | None, limit: int | None = None) -> None:
        self.folder, self.limit = folder, limit
        self._read: dict[str, tuple[Corpus, TokenStream]] = {}

    def missing(self, name: str) -> str:
        """Why a data set cannot be read and how to get it; empty where it can."""
        lacking = [file for file in _FILES[name] if self.folder is None or not (self.folder / file).is_file()]
        if not lacking:
            return ""
        where = f"there is no {lacking[0]} in {str(self.folder)!r}" if self.folder else "no data folder is named"
        return f"{where}; {_HOW_TO_GET[name]}, and name the folder with --data or TOKENSIEVE_DATA"

    def mark(self, name: str) -> str:
        """A digest of a data set's files: what tells one state of the data from another; empty where there is none."""
        files = [(self.folder or Path()) / file for file in _FILES[name]]
        return "" if self.missing(name) else fingerprint(*(np.fromfile(file, np.uint8) for file in files))

    def imdb(self, types: int, documents: int | None = None, seed: int = 0) -> Split:
        """IMDB as it is split: 25,000 reviews to learn from (a tenth of them for validation) and 25,000 to test, or so many
        `documents` of each, drawn by the seed; over the `types` types that occur in most training documents."""
        (train, learn), (test, held) = (
            self._tokens("imdb", f"imdb_{part}.parquet", "label") for part in ("train", "test")
        )
        rng = np.random.default_rng(seed)
        chosen, held_out = (self._draw(corpus.labels, documents, rng) for corpus in (train, test))
        cut = round(len(chosen) * 0.1)
        count = _counter(learn, chosen[cut:], types, train.classes)
        first, second = (count(learn, train.labels, rows) for rows in (chosen[cut:], chosen[:cut]))
        return first, second, count(held, test.labels, held_out)

    def yelp(self, types: int, documents: int | None = None, groups: str = "polarity", seed: int = 0) -> Split:
        """Yelp with equally large classes: reviews drawn from the larger ones, a fifth to test, a tenth of the rest to validate.

        Two classes: 1–2 stars against 4–5 stars, 3 left out. Four, of five ratings: two are joined or one is left out; the
        paper does not say how it came to four. `documents` counts all of them, and `groups` is a name of `_GROUPS`.
        """
        corpus, stream = self._tokens("yelp", "yelp.parquet", "stars")
        into = {star: k for k, stars in enumerate(_GROUPS[groups].values()) for star in stars}
        labels = np.array([into.get(corpus.classes[y], -1) for y in corpus.labels], dtype=np.int64)
        classes = tuple(_GROUPS[groups])
        chosen = self._draw(labels, documents, np.random.default_rng(seed), len(classes))
        test = round(len(chosen) * 0.2)
        held, validation, train = np.split(chosen, [test, test + round((len(chosen) - test) * 0.1)])
        count = _counter(stream, train, types, classes)
        return count(stream, labels, train), count(stream, labels, validation), count(stream, labels, held)

    def _draw(self, labels: Ints, documents: int | None, rng: np.random.Generator, classes: int = 2) -> Ints:
        """Equally many documents of each class, in random order, so that every stretch of them is a random sample."""
        members = [rng.permutation(np.flatnonzero(labels == k)) for k in range(classes)]
        most = [n // classes for n in (documents, self.limit) if n is not None]
        each = min(*map(len, members), *most)
        return np.stack([m[:each] for m in members], axis=1).ravel()

    def _tokens(self, name: str, file: str, label: str) -> tuple[Corpus, TokenStream]:
        if file not in self._read:
            if lacking := self.missing(name):
                raise InputError(lacking)
            frame = pl.read_parquet((self.folder or Path()) / file, columns=["text", label])
            corpus = read_corpus(frame, text="text", label=label)
            assert isinstance(corpus.texts, pl.Series), "read into memory"
            self._read[file] = corpus, TokenStream.of(corpus.texts, WordTokenizer())
        return self._read[file]


def _counter(
    stream: TokenStream, rows: Ints, types: int, classes: tuple[str, ...]
) -> Callable[[TokenStream, Ints, Ints], Counts]:
    """Counts of documents over the `types` types that occur in most of the training rows."""
    vocabulary = learn_vocabulary(_part(stream, rows), WordTokenizer())
    frequency = np.bincount(vocabulary.count(_part(stream, rows))[0].indices, minlength=vocabulary.n_types)
    kept = np.sort(np.argsort(-frequency, kind="stable")[:types])
    small = replace(vocabulary, words=tuple(np.asarray(vocabulary.words, dtype=object)[kept]))
    return lambda other, labels, which: Counts(
        small.count(_part(other, which))[0], labels[which], classes, small.tokens
    )


def _part(stream: TokenStream, rows: Ints) -> TokenStream:
    """Some documents of a stream."""
    lengths = np.diff(stream.starts)[rows]
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    offsets = np.repeat(stream.starts[rows] - starts[:-1], lengths)
    return TokenStream(stream.ids[offsets + np.arange(starts[-1])], starts, stream.words)


class Bench:
    """One run of an experiment: everything it may ask for.

    Attributes:
        data: the real data sets.
        settings: the experiment's settings at its scale, under its reading.
        seed: of every draw.
        folder: keeps states on the way, so that an interrupted run goes on.
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

    @staticmethod
    def halves(counts: Counts, n: int) -> Split:
        """n documents to learn from, and the rest in halves."""
        middle = n + (counts.n_documents - n) // 2
        return counts.rows(slice(n)), counts.rows(slice(n, middle)), counts.rows(slice(middle, None))

    def start(self, counts: Counts, d: int | None = None) -> Start:
        """The paper's random start, of the settings' d unless another is given."""
        outputs = 1 if counts.n_classes == 2 else counts.n_classes
        return initialise(counts.n_types, d or self.settings["d"], outputs, self.start_seed)

    def fit(self, split: Split, label: str, tell: Progress, start: Start | None = None, **changes: Any) -> Training:
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
            lambda stage, share: tell(f"{label}: {stage}", share),
        )

    def fit_deep(self, kind: str, name: str, tell: Progress) -> tuple[Split, DeepTraining]:
        """Train one kind of deep model on one data set; test documents at most as many as `test_documents`."""
        from tokensieve.reproduce.deep import DeepSettings, DeepTraining

        split = self.load(name)
        test = split[2].rows(np.arange(min(self.settings["test_documents"], split[2].n_documents)))
        given = ({field.name for field in fields(DeepSettings)} - {"seed"}) & set(self.settings)
        settings = DeepSettings(kind, seed=self.start_seed, **{name: self.settings[name] for name in given})
        others = {"validation": split[1], "test": test}
        checkpoint = self.folder / f"{kind}-{name}.safetensors"
        return split, DeepTraining.fit(
            split[0], settings, others, lambda stage, share: tell(f"{name}: {stage}", share), checkpoint
        )

    def read(self, split: Split, run: Trained, at: int = -1) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Tokens, and bins of the paper's own edges, of one record of a run with two classes; by default the end."""
        tokens = token_table(split[0], run.scores[at], run.values[at][:, 0])
        return tokens, bins(tokens, theirs=PAPER["key-query"].select("x"))

    def shapes(self, table: pl.DataFrame, split: Split, run: Trained, where: str) -> list[Measurement]:
        """Both shapes at the end of training, judged; those at the lowest validation loss and the spread within bins, not."""
        _, early = self.read(split, run, run.best())
        at_best = Measurement.shapes(early, f"{where}, at the lowest validation loss", judged=False)
        return [*Measurement.shapes(table, where), *at_best, *Measurement.spreads(table, where)]

    def accuracies(self, run: Trained, where: str) -> tuple[Measurement, Measurement]:
        """Test accuracy where the validation loss is least, and at the end."""
        best, end = (run.trajectory["test_accuracy"][at] for at in (run.best(), -1))
        name = f"{where}: test accuracy at the"
        return Measurement(f"{name} lowest validation loss", best), Measurement(f"{name} end", end)
