"""Corpus → split, counts, trained model and its test accuracy: all that `train` does, and the first half of an audit."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from tokensieve import __version__
from tokensieve.model.decision import accuracy, decide
from tokensieve.model.fit import FitSettings, fit
from tokensieve.model.pairs import against_other, fit_pairs
from tokensieve.model.trained import Model
from tokensieve.progress import Clock, Progress, silent
from tokensieve.text.corpus import Corpus, split_corpus
from tokensieve.text.counts import Counts, Floats, Ints
from tokensieve.text.pairs import split_pairs
from tokensieve.text.tokenizers import Tokenizer
from tokensieve.text.vocabulary import Vocabulary, count_corpus

FEW = 20  # test documents of a class


@dataclass(frozen=True)
class TrainSettings:
    """How a corpus is split, counted and learned.

    Attributes:
        ngrams: longest run of words that is a token type.
        min_documents: a type must occur in that many training documents.
        seed: of the split and of training.
        value_rate: initial step size of the values.
        test_share: share of the documents set aside for testing where the corpus has no test set.
        formatting: what a text looks like is a token type, too (`tokensieve.text.formatting`).
    """

    ngrams: int = 1
    min_documents: int = 3
    seed: int = 0
    value_rate: float = 0.1
    test_share: float = 0.2
    formatting: bool = False


@dataclass(frozen=True)
class Part:
    """One side of the split.

    Attributes:
        corpus: its texts and labels.
        counts: as the model reads them.
        unknown: words of each document that are no token type, shape (n,).
        words: of all documents.
        features: how many types, the last ones, are formatting.
    """

    corpus: Corpus
    counts: Counts
    unknown: Ints
    words: int
    features: int = 0

    @property
    def plain(self) -> Counts:
        """The counts without formatting."""
        c = self.counts
        size = c.n_types - self.features
        matrix = sp.csr_array(c.matrix[:, :size])
        return replace(c, matrix=matrix, tokens=c.tokens[:size]) if self.features else c


@dataclass(frozen=True, repr=False)
class CorpusModel:
    """A model trained on one side of a corpus, and tested on the other.

    Attributes:
        model: the model.
        train, test: the two sides.
        f: decision values of the test documents, shape (n, H); of pairs each less that of the other side.
        notes: what was counted on the way in, in plain words.
        settings: as given.
        seconds: of each stage.
    """

    model: Model
    train: Part
    test: Part
    f: Floats
    notes: list[str]
    settings: TrainSettings
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
            "settings": asdict(self.settings) | {"columns": [intake.text_column, intake.label_column]},
            "version": __version__,
            "notes": self.notes,
        } | pairs_entry(self.train.corpus, self.test.corpus)


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
    notes = corpus.intake.lines()
    if corpus.test is not None:
        notes += [f"of the test documents: {line}" for line in corpus.test.intake.lines()]
    else:
        split = split_corpus if corpus.pairs is None else split_pairs
        corpus = split(corpus, share=settings.test_share, seed=settings.seed)
    notes += unit_notes(corpus) + weight_notes(corpus)
    train, test, vocabulary = _count(corpus, settings, tokenizer, tell)
    clock.lap("tokenizing")
    how = FitSettings(value_rate=settings.value_rate, seed=settings.seed)
    if corpus.pairs is None:
        model = fit(train.counts, how, vocabulary, tell, train.corpus.units)
        f = model.decide(test.counts.matrix)
    else:
        model = fit_pairs(train.counts, corpus.pairs.units, how, vocabulary, tell)
        f = against_other(model.decide(test.counts.matrix))
    clock.lap("training")
    own = {name: getattr(settings, name) for name in ("ngrams", "min_documents", "formatting")}
    model = replace(model, settings=own | model.settings)
    return CorpusModel(model, train, test, f, notes + _few(test.counts), settings, clock.seconds)


def pairs_entry(train: Corpus, test: Corpus) -> dict[str, Any]:
    """The entry `pairs` of summary.json for a corpus of pairs; nothing for any other."""
    if train.pairs is None or test.pairs is None:
        return {}
    sizes = {"train": len(train.pairs.units), "test": len(test.pairs.units)}
    return {"pairs": {"columns": list(train.pairs.columns), "by": train.pairs.by, **sizes}}


def _count(
    corpus: Corpus, settings: TrainSettings, tokenizer: Tokenizer | None, tell: Progress
) -> tuple[Part, Part, Vocabulary]:
    assert corpus.test is not None
    done, total = len(corpus.texts), len(corpus.texts) + len(corpus.test.texts)
    train = count_corpus(
        corpus, tokenizer=tokenizer, ngrams=settings.ngrams, min_documents=settings.min_documents,
        formatting=settings.formatting, progress=lambda read: tell("tokenizing", read / total),
    )  # fmt: skip
    test = count_corpus(corpus.test, train.vocabulary, progress=lambda read: tell("tokenizing", (done + read) / total))
    features = len(train.vocabulary.formatting)
    parts = [Part(part, x.counts, x.unknown, x.words, features) for part, x in ((corpus, train), (corpus.test, test))]
    return parts[0], parts[1], train.vocabulary


def unit_notes(corpus: Corpus) -> list[str]:
    """How many units there are, and whether some are on both sides of the split."""
    if corpus.by is None:
        return []
    notes = [f"training documents belong to {corpus.by.n_unique():,} units, which are what is independent"]
    if corpus.test is not None and corpus.test.by is not None:
        both = int(corpus.test.by.is_in(corpus.by.unique().implode()).sum())
        notes += [f"test documents whose unit is in training, too: {both:,}"] if both else []
    return notes


def weight_notes(corpus: Corpus) -> list[str]:
    """What weighs in what, where documents have weights."""
    if corpus.weights is None:
        return []
    low, high = float(corpus.weights.min()), float(corpus.weights.max())
    return [f"the model weighs documents ({low:g} to {high:g}); importance, findings and accuracy count them all alike"]


def _few(test: Counts) -> list[str]:
    """What the numbers of test documents do not allow to be judged."""
    few = [f"{name!r} ({size})" for name, size in zip(test.classes, test.class_sizes, strict=True) if size < FEW]
    return [f"fewer than {FEW} test documents, so accuracy says little: {', '.join(few)}"] if few else []
