"""The real data of the experiments: read once, split and counted as each experiment asks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from tokensieve.checkpoint import fingerprint
from tokensieve.errors import InputError
from tokensieve.text.corpus import Corpus, read_corpus
from tokensieve.text.counts import Counts, Ints
from tokensieve.text.tokenizers import WordTokenizer
from tokensieve.text.vocabulary import TokenStream, learn_vocabulary, tokenize

_FILES = {"imdb": ("imdb_train.parquet", "imdb_test.parquet"), "yelp": ("yelp.parquet",)}
_HOW_TO_GET = {
    "imdb": "get the Large Movie Review Dataset (ai.stanford.edu/~amaas/data/sentiment), write imdb_train.parquet and "
    "imdb_test.parquet with the columns text and label (positive or negative)",
    "yelp": "get a sample of the Yelp Open Dataset (business.yelp.com/data/resources/open-dataset), write yelp.parquet with the "
    "columns text and stars (1 to 5)",
}
_GROUPS: dict[str, dict[str, tuple[str, ...]]] = {
    "polarity": {"negative": ("1", "2"), "positive": ("4", "5")},
    "joined 2-3": {"1 star": ("1",), "2-3 stars": ("2", "3"), "4 stars": ("4",), "5 stars": ("5",)},
    "joined 3-4": {"1 star": ("1",), "2 stars": ("2",), "3-4 stars": ("3", "4"), "5 stars": ("5",)},
    "without 3": {"1 star": ("1",), "2 stars": ("2",), "4 stars": ("4",), "5 stars": ("5",)},
}  # class → the ratings in it


Split = tuple[Counts, Counts, Counts]  # training, validation, test; all over the types seen in training


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
        where = (
            "no data folder is named" if self.folder is None else f"there is no {lacking[0]} in {str(self.folder)!r}"
        )
        return f"{where}; {_HOW_TO_GET[name]}, and name the folder with --data or TOKENSIEVE_DATA"

    def mark(self, name: str) -> str:
        """A digest of a data set's files: what tells one state of the data from another; empty where there is none."""
        files = [(self.folder or Path()) / file for file in _FILES[name]]
        return "" if self.missing(name) else fingerprint(*(np.fromfile(file, np.uint8) for file in files))

    def imdb(self, types: int, documents: int | None = None, seed: int = 0) -> Split:
        """IMDB as it is split: 25,000 reviews to learn from (a tenth of them for validation) and 25,000 to test.

        Args:
            types: how many token types are kept: those that occur in most training documents.
            documents: how many of the learning part, and of the test part, drawn by the seed; None for all.
            seed: of the draw.
        """
        train, learn = self._tokens("imdb_train", self._imdb("train"))
        test, held = self._tokens("imdb_test", self._imdb("test"))
        rng = np.random.default_rng(seed)
        chosen, held_out = (_draw(c.labels, self._most(documents), rng) for c in (train, test))
        cut = round(len(chosen) * 0.1)
        count = _counter(learn, chosen[cut:], types, train.classes)
        parts = ((learn, train, chosen[cut:]), (learn, train, chosen[:cut]), (held, test, held_out))
        first, second, third = (count(stream, corpus.labels, rows) for stream, corpus, rows in parts)
        return first, second, third

    def yelp(self, types: int, documents: int | None = None, groups: str = "polarity", seed: int = 0) -> Split:
        """Yelp with equally large classes: reviews drawn from the larger ones, a fifth to test, a tenth of the rest to validate.

        Two classes: 1–2 stars against 4–5 stars, 3 left out. Four, of five ratings: two are joined or one is left out; the
        paper does not say how it came to four.

        Args:
            types: how many token types are kept: those that occur in most training documents.
            documents: how many in all, drawn by the seed; None for as many as equal classes allow.
            groups: a name of `_GROUPS`.
            seed: of the draw.
        """
        corpus, stream = self._tokens("yelp", lambda: self._open("yelp", "yelp.parquet", "stars"))
        classes = tuple(_GROUPS[groups])
        into = {star: k for k, stars in enumerate(_GROUPS[groups].values()) for star in stars}
        labels = np.array([into.get(corpus.classes[y], -1) for y in corpus.labels], dtype=np.int64)
        chosen = _draw(labels, self._most(documents), np.random.default_rng(seed), len(classes))
        test = round(len(chosen) * 0.2)
        validation = test + round((len(chosen) - test) * 0.1)
        count = _counter(stream, chosen[validation:], types, classes)
        parts = (chosen[validation:], chosen[test:validation], chosen[:test])
        learn, choose, held_out = (count(stream, labels, rows) for rows in parts)
        return learn, choose, held_out

    def _most(self, documents: int | None) -> int | None:
        return min((n for n in (documents, self.limit) if n is not None), default=None)

    def _imdb(self, part: str) -> Callable[[], Corpus]:
        return lambda: self._open("imdb", f"imdb_{part}.parquet", "label")

    def _open(self, name: str, file: str, label: str) -> Corpus:
        if lacking := self.missing(name):
            raise InputError(lacking)
        return read_corpus((self.folder or Path()) / file, text="text", label=label)

    def _tokens(self, key: str, read: Callable[[], Corpus]) -> tuple[Corpus, TokenStream]:
        if key not in self._read:
            corpus = read()
            assert isinstance(corpus.texts, pl.Series), "read into memory"
            self._read[key] = corpus, tokenize(corpus.texts, WordTokenizer())
        return self._read[key]


def _draw(labels: Ints, documents: int | None, rng: np.random.Generator, classes: int = 2) -> Ints:
    """Equally many documents of each class, in random order, so that every stretch of them is a random sample."""
    members = [rng.permutation(np.flatnonzero(labels == k)) for k in range(classes)]
    each = min(len(m) for m in members)
    each = each if documents is None else min(each, documents // classes)
    return np.stack([m[:each] for m in members], axis=1).ravel()


def _counter(
    stream: TokenStream, rows: Ints, types: int, classes: tuple[str, ...]
) -> Callable[[TokenStream, Ints, Ints], Counts]:
    """Counts of documents over the `types` types that occur in most of the training rows."""
    tokenizer = WordTokenizer()
    vocabulary = learn_vocabulary(_part(stream, rows), tokenizer)
    frequency = np.bincount(vocabulary.count(_part(stream, rows))[0].indices, minlength=vocabulary.n_types)
    kept = np.sort(np.argsort(-frequency, kind="stable")[:types])
    small = replace(vocabulary, words=tuple(np.asarray(vocabulary.words, dtype=object)[kept]))

    def count(other: TokenStream, labels: Ints, which: Ints) -> Counts:
        return Counts(small.count(_part(other, which))[0], labels[which], classes, small.tokens)

    return count


def _part(stream: TokenStream, rows: Ints) -> TokenStream:
    """Some documents of a stream."""
    lengths = np.diff(stream.starts)[rows]
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    offsets = np.repeat(stream.starts[rows] - starts[:-1], lengths)
    return TokenStream(stream.ids[offsets + np.arange(starts[-1])], starts, stream.words)
