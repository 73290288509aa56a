"""The paper's data sets, read from a folder and split as the experiments need them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from tokensieve.arrays import Ints
from tokensieve.checkpoint import fingerprint
from tokensieve.errors import InputError
from tokensieve.read.reader import read_corpus
from tokensieve.text.counts import Counts
from tokensieve.text.tokenizers import WordTokenizer
from tokensieve.text.vocabulary import learn_vocabulary, tokenize

TITLES = {"imdb": "IMDB", "yelp": "Yelp"}
TEST_FRACTION = 0.2  # of Yelp, which the paper gives without a split
VALIDATION_FRACTION = 0.1  # of the documents that remain for training

_FILES = {"imdb": ("imdb_train.parquet", "imdb_test.parquet"), "yelp": ("yelp.parquet",)}
_HOW_TO_GET = {
    "imdb": (
        "get the Large Movie Review Dataset (ai.stanford.edu/~amaas/data/sentiment), "
        "write imdb_train.parquet and imdb_test.parquet with the columns text and label "
        "(positive or negative)"
    ),
    "yelp": (
        "get a sample of the Yelp Open Dataset (business.yelp.com/data/resources/open-dataset), "
        "write yelp.parquet with the columns text and stars (1 to 5)"
    ),
}
# Name → class → the stars in it. The paper does not say how five ratings became four classes.
_YELP_CLASSES = {
    "polarity": {"negative": "12", "positive": "45"},
    "joined 2-3": {"1 star": "1", "2-3 stars": "23", "4 stars": "4", "5 stars": "5"},
    "joined 3-4": {"1 star": "1", "2 stars": "2", "3-4 stars": "34", "5 stars": "5"},
    "without 3": {"1 star": "1", "2 stars": "2", "4 stars": "4", "5 stars": "5"},
}


class Split(NamedTuple):
    """Documents to learn from, to choose with and to test on, over the types seen in training."""

    train: Counts
    validation: Counts
    test: Counts


class Data:
    """A folder of data files, with a cache of their counts.

    Attributes:
        folder: where the files are; None if the user named no folder.
        limit: at most this many documents of each data set, for trials.
    """

    def __init__(self, folder: Path | None, limit: int | None = None) -> None:
        self.folder = folder
        self.limit = limit
        self._counted: dict[str, list[Counts]] = {}

    def _paths(self, name: str) -> list[Path]:
        folder = self.folder or Path()
        return [folder / file for file in _FILES[name]]

    def missing(self, name: str) -> str:
        """Why a data set cannot be read and how to get it; empty if it can be read."""
        if self.folder is None:
            reason = "no data folder is named"
        else:
            absent = [path.name for path in self._paths(name) if not path.is_file()]
            if not absent:
                return ""
            reason = f"there is no {absent[0]} in {str(self.folder)!r}"
        advice = "name the folder with --data or TOKENSIEVE_DATA"
        return f"{reason}; {_HOW_TO_GET[name]}, and {advice}"

    def digest(self, name: str) -> str:
        """A digest of a data set's files, which changes when they do; empty if there are none."""
        if self.missing(name):
            return ""
        return fingerprint(*(np.fromfile(path, np.uint8) for path in self._paths(name)))

    def imdb(self, types: int, documents: int | None = None, seed: int = 0) -> Split:
        """IMDB as it is split: 25,000 reviews to learn from and 25,000 to test.

        Args:
            types: the number of types, those that occur in most training documents.
            documents: at most this many documents of each part, drawn by the seed.
            seed: of the draw; a tenth of the training part is for validation.
        """
        rng = np.random.default_rng(seed)
        train, test = (
            counts.rows(self._draw(counts.labels, documents, rng))
            for counts in self._counts("imdb", "label")
        )
        n_validation = round(train.n_documents * VALIDATION_FRACTION)
        split = Split(
            train=train.rows(slice(n_validation, None)),
            validation=train.rows(slice(n_validation)),
            test=test,
        )
        return _most_frequent(types, split)

    def yelp(
        self, types: int, documents: int | None = None, groups: str = "polarity", seed: int = 0
    ) -> Split:
        """Yelp with equally large classes: larger ones are sampled.

        Args:
            types: the number of types, those that occur in most training documents.
            documents: at most this many documents in all.
            groups: which stars make a class, a name in `_YELP_CLASSES`.
            seed: of the draw.
        """
        [counts] = self._counts("yelp", "stars")
        classes = _YELP_CLASSES[groups]
        labels = _classes_of_stars(counts, classes)
        rows = self._draw(labels, documents, np.random.default_rng(seed), len(classes))
        # documents of ratings that are left out have the label −1 and are not drawn
        relabelled = replace(counts, labels=np.maximum(labels, 0), classes=tuple(classes))
        drawn = relabelled.rows(rows)
        n_test = round(len(rows) * TEST_FRACTION)
        train_start = n_test + round((len(rows) - n_test) * VALIDATION_FRACTION)
        split = Split(
            train=drawn.rows(slice(train_start, None)),
            validation=drawn.rows(slice(n_test, train_start)),
            test=drawn.rows(slice(n_test)),
        )
        return _most_frequent(types, split)

    def _draw(
        self, labels: Ints, documents: int | None, rng: np.random.Generator, n_classes: int = 2
    ) -> Ints:
        """Equally many documents of each class; every stretch of the rows is a random sample."""
        members = [rng.permutation(np.flatnonzero(labels == k)) for k in range(n_classes)]
        limits = [limit // n_classes for limit in (documents, self.limit) if limit is not None]
        n_each = min([*map(len, members), *limits])
        return np.stack([rows[:n_each] for rows in members], axis=1).ravel()

    def _counts(self, name: str, label: str) -> list[Counts]:
        """Each file of a data set, counted over all words of the first."""
        if name in self._counted:
            return self._counted[name]
        if problem := self.missing(name):
            raise InputError(problem)
        frames = [pl.read_parquet(path, columns=["text", label]) for path in self._paths(name)]
        corpora = [read_corpus(frame, text="text", label=label) for frame in frames]
        streams = [tokenize(corpus.texts, WordTokenizer()) for corpus in corpora]
        words = learn_vocabulary(streams[0], WordTokenizer())
        self._counted[name] = [
            Counts(words.count(stream)[0], corpus.labels, corpora[0].classes, words.tokens)
            for corpus, stream in zip(corpora, streams, strict=True)
        ]
        return self._counted[name]


def _classes_of_stars(counts: Counts, classes: Mapping[str, str]) -> Ints:
    """The class of each document by its stars, shape (n,); −1 for stars of no class.

    `classes` are names with the stars of each: {"negative": "12", …} joins one and two stars.
    """
    class_of_star = {star: k for k, stars in enumerate(classes.values()) for star in stars}
    class_of_label = [class_of_star.get(star, -1) for star in counts.classes]
    return np.array(class_of_label, np.int64)[counts.labels]


def _most_frequent(n_types: int, split: Split) -> Split:
    """The same documents over the types that occur in most of the training documents."""
    frequency = np.bincount(split.train.matrix.indices, minlength=split.train.n_types)
    n_types = min(n_types, int(np.count_nonzero(frequency)))
    by_frequency = np.argsort(-frequency, kind="stable")
    types = np.sort(by_frequency[:n_types])
    parts = []
    for part in split:
        matrix = part.matrix[:, types]
        parts.append(
            replace(
                split.train, matrix=matrix, tokens=split.train.tokens[types], labels=part.labels
            )
        )
    return Split(*parts)
