"""Corpus → split, counts, trained model and its test accuracy: all that `train` does, and the first half of an audit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tokensieve import __version__
from tokensieve.model.decision import accuracy, decide
from tokensieve.model.settings import TrainSettings
from tokensieve.model.trained import Model
from tokensieve.progress import Clock, Progress, silent
from tokensieve.task.interface import Part, Task
from tokensieve.text.corpus import Corpus
from tokensieve.text.counts import Counts, Floats
from tokensieve.text.tokenizers import Tokenizer
from tokensieve.text.vocabulary import Vocabulary, count_corpus

FEW = 20  # test documents of a class, below which accuracy says little


def task_of(corpus: Corpus) -> Task:
    """What is learned from a corpus: the only place that asks."""
    if corpus.pairs is not None:
        from tokensieve.task.preferences import Preferences

        return Preferences()
    from tokensieve.task.labels import Labels

    return Labels()


@dataclass(frozen=True, repr=False)
class CorpusModel:
    """A model trained on one side of a corpus, and tested on the other.

    Attributes:
        model: the model.
        train, test: the two sides.
        f: decision values of the test documents, shape (n, H); of pairs each less that of the other side.
        notes: what was counted on the way in, in plain words.
        settings: as given.
        task: what was learned.
        seconds: of each stage.
    """

    model: Model
    train: Part
    test: Part
    f: Floats
    notes: list[str]
    settings: TrainSettings
    task: Task
    seconds: dict[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"CorpusModel({self.train.corpus.name!r}, {self.train.counts.n_types:,} token types)"

    def to_dict(self) -> dict[str, Any]:
        """The content of summary.json."""
        train, test, classes = self.train.counts, self.test.counts, self.train.counts.classes
        sizes, predicted = train.class_sizes, decide(self.f)
        right = np.bincount(test.labels[predicted == test.labels], minlength=len(classes))
        intake = self.train.corpus.intake
        return {
            "name": self.train.corpus.name,
            "classes": classes,
            "documents": {"train": train.n_documents, "test": test.n_documents},
            "class_documents": dict(zip(classes, sizes.tolist(), strict=True)),
            "token_types": train.n_types,
            "test_accuracy": accuracy(self.f, test.labels),
            "majority_accuracy": float(np.mean(test.labels == sizes.argmax())),
            "class_recall": {
                name: float(hits / size) if size else None
                for name, hits, size in zip(classes, right, test.class_sizes, strict=True)
            },
            "unknown_share": float(self.test.unknown.sum() / max(self.test.words, 1)),
            "seconds": self.seconds,
            "seed": self.settings.seed,
            "settings": self.settings.to_dict() | {"columns": list(intake.columns)},
            "version": __version__,
            "notes": self.notes,
        } | self.task.summary(self.train.corpus, self.test.corpus)


def train_corpus(
    corpus: Corpus,
    settings: TrainSettings | None = None,
    tokenizer: Tokenizer | None = None,
    progress: Progress | None = None,
    clock: Clock | None = None,
) -> CorpusModel:
    """Split, count, learn and test.

    Args:
        corpus: with its test set, or without: then a seeded, stratified share is set aside.
        settings: `TrainSettings()` if None.
        tokenizer: words if None.
        progress: called with (stage, share done).
        clock: keeps the seconds of the stages; a new one if None.

    Raises:
        InputError: the corpus cannot be split, or no token is frequent enough.
    """
    settings, tell, clock = settings or TrainSettings(), progress or silent, clock or Clock()
    task, notes = task_of(corpus), corpus.intake.lines()
    if corpus.test is not None:
        notes += [f"of the test documents: {line}" for line in corpus.test.intake.lines()]
    else:
        corpus = task.split(corpus, settings.test_share, settings.seed)
    notes += _group_notes(corpus) + _weight_notes(corpus)
    settings = settings.of_documents(len(corpus.texts))
    train, test, vocabulary = _count(corpus, settings, tokenizer, tell)
    clock.lap("tokenizing")
    model = task.fit(train, settings, vocabulary, tell)
    f = task.decide(model, test.counts.matrix)
    clock.lap("training")
    return CorpusModel(model, train, test, f, notes + _few(test.counts), settings, task, clock.seconds)


def _count(
    corpus: Corpus, settings: TrainSettings, tokenizer: Tokenizer | None, tell: Progress
) -> tuple[Part, Part, Vocabulary]:
    assert corpus.test is not None
    done, total = len(corpus.texts), len(corpus.texts) + len(corpus.test.texts)
    train = count_corpus(
        corpus,
        tokenizer=tokenizer,
        ngrams=settings.ngrams,
        min_documents=settings.min_documents or 1,
        formatting=settings.formatting,
        progress=lambda read: tell("tokenizing", read / total),
    )
    test = count_corpus(corpus.test, train.vocabulary, progress=lambda read: tell("tokenizing", (done + read) / total))
    features = len(train.vocabulary.formatting)
    parts = [Part(part, x.counts, x.unknown, x.words, features) for part, x in ((corpus, train), (corpus.test, test))]
    return parts[0], parts[1], train.vocabulary


def _group_notes(corpus: Corpus) -> list[str]:
    """How many units there are, and whether some are on both sides of the split."""
    if corpus.by is None:
        return []
    notes = [f"training documents belong to {corpus.by.n_unique():,} units, which are what is independent"]
    if corpus.test is not None and corpus.test.by is not None:
        both = int(corpus.test.by.is_in(corpus.by.unique().implode()).sum())
        notes += [f"test documents whose unit is in training, too: {both:,}"] if both else []
    return notes


def _weight_notes(corpus: Corpus) -> list[str]:
    """What weighs in what, where documents have weights."""
    if corpus.weights is None:
        return []
    low, high = float(corpus.weights.min()), float(corpus.weights.max())
    return [f"the model weighs documents ({low:g} to {high:g}); importance, findings and accuracy count them all alike"]


def _few(test: Counts) -> list[str]:
    """What the numbers of test documents do not allow to be judged."""
    few = [f"{name!r} ({size})" for name, size in zip(test.classes, test.class_sizes, strict=True) if size < FEW]
    return [f"fewer than {FEW} test documents, so accuracy says little: {', '.join(few)}"] if few else []
