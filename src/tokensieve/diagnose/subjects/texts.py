"""A model that reads whole texts, on its documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np
import polars as pl

from tokensieve.arrays import Floats, Ints
from tokensieve.diagnose.subjects.passages import kind_of
from tokensieve.diagnose.subjects.pieces import MAX_LOOKED_AT, relative_places
from tokensieve.diagnose.subjects.recognise import Answer
from tokensieve.diagnose.subjects.windows import LENGTHS, evenly_spaced
from tokensieve.errors import InputError
from tokensieve.text.tokenizers import Tokenizer


class Occurrence(NamedTuple):
    """A known word in a text: its first and last character, and its type."""

    start: int
    end: int
    word: int


class TextSubject:
    """A classifier on whole documents, with the interface of `PieceSubject`.

    A word is removed by cutting all its occurrences out of the text.
    """

    layers = 0
    differentiable = False
    lengths_read: ClassVar[dict[str, int]] = dict.fromkeys(LENGTHS, 0)

    def __init__(
        self,
        answer: Answer,
        width: int,
        texts: pl.Series,
        words: tuple[str, ...],
        splitter: Tokenizer,
    ) -> None:
        self._answer = answer
        self._width = width
        self._words = list(words)
        self._splitter = splitter
        self._texts: list[str] = texts.to_list()
        self.documents = np.arange(len(texts))
        self.lengths = np.array([len(text) for text in self._texts], dtype=np.int64)
        self.word_lengths = np.array([len(word) for word in words], dtype=np.int64)

        word_type = {word: s for s, word in enumerate(words)}
        self._occurrences = [self._find_words(text, word_type) for text in self._texts]
        self._spellings = self._find_spellings()
        pairs = []
        for document, occurrences in enumerate(self._occurrences):
            pairs += [
                (s, document) for s in sorted({occurrence.word for occurrence in occurrences})
            ]
        self.types, self.windows = np.array(pairs, dtype=np.int64).reshape(-1, 2).T

    def _find_words(self, text: str, word_type: dict[str, int]) -> list[Occurrence]:
        if not word_type:
            return []
        spans = self._splitter.spans(text)
        return [
            Occurrence(start, end, word_type[word])
            for start, end, word in spans
            if word in word_type
        ]

    def _find_spellings(self) -> list[list[str]]:
        """How each word is written alone (the first) or inserted: a pattern as it occurs."""
        occurring: dict[int, list[str]] = {
            s: [] for s, word in enumerate(self._words) if kind_of(word) == "pattern"
        }
        for text, occurrences in zip(self._texts, self._occurrences, strict=True):
            for occurrence in occurrences:
                if occurrence.word in occurring:
                    occurring[occurrence.word].append(text[occurrence.start : occurrence.end])
        return [evenly_spaced(occurring.get(s) or [word]) for s, word in enumerate(self._words)]

    def of_words(self, kept: Ints) -> TextSubject:
        """The same with some of the words."""
        words = tuple(self._words[s] for s in kept)
        return self._like(self._texts, words)

    def of_texts(self, texts: list[str]) -> TextSubject:
        """The same model on other texts, without any words."""
        return self._like(texts, ())

    def _like(self, texts: list[str], words: tuple[str, ...]) -> TextSubject:
        series = pl.Series(texts, dtype=pl.String)
        return TextSubject(self._answer, self._width, series, words, self._splitter)

    def pieces_of(self, text: str) -> object:
        """What the model sees of a text."""
        return text

    def in_order(self, words: Ints, window: int) -> Ints:
        """Some words in the order in which they first occur in a document that contains them."""
        types = [occurrence.word for occurrence in self._occurrences[window]]
        return np.array(sorted(words.tolist(), key=types.index))

    def look(self, at: Ints, attention: object) -> Floats:
        """Logits of some documents."""
        return self._logits([self._texts[k] for k in at])

    def alone(self, at: Ints) -> Floats:
        """Logits of words alone."""
        return self._logits([self._spellings[s][0] for s in at])

    def integrate(self, at: Ints, heads: Ints, effect: Floats, draws: int = 1) -> None:
        raise NotImplementedError

    def emptied(self, at: Ints) -> Floats:
        raise NotImplementedError

    def without(self, words: Sequence[Ints], windows: Ints) -> Floats:
        """Logits of documents without some words each."""
        texts = [
            self._text_without(int(k), set(removed.tolist()))
            for removed, k in zip(words, windows, strict=True)
        ]
        return self._logits(texts)

    def _text_without(self, document: int, removed: set[int]) -> str:
        text = self._texts[document]
        parts = []
        place = 0
        for occurrence in self._occurrences[document]:
            if occurrence.word in removed:
                parts.append(text[place : occurrence.start])
                place = occurrence.end
        return "".join([*parts, text[place:]])

    def having(
        self, words: Sequence[Ints], windows: Ints, places: Floats, spellings: Floats
    ) -> Floats:
        """Logits of documents into each of which some words were inserted."""
        texts = []
        for new, k, place, spelling in zip(words, windows, places, spellings, strict=True):
            written = [self._spellings[s] for s in new]
            inserted = " ".join(of_word[int(spelling * len(of_word))] for of_word in written)
            texts.append(self._text_having(int(k), inserted, float(place)))
        return self._logits(texts)

    def _text_having(self, document: int, inserted: str, place: float) -> str:
        text = self._texts[document]
        occurrences = self._occurrences[document]
        slot = int(place * len(occurrences) + 0.5)
        if slot == len(occurrences):
            return f"{text} {inserted}"
        at = occurrences[slot].start
        return _with_inserted(text[:at], inserted, text[at:])

    def swapped(self, first: Ints, second: Ints, windows: Ints) -> Floats:
        """Logits of documents in each of which two words change places."""
        texts = [
            self._text_swapped(int(k), int(a), int(b))
            for a, b, k in zip(first, second, windows, strict=True)
        ]
        return self._logits(texts)

    def _text_swapped(self, document: int, first: int, second: int) -> str:
        text = self._texts[document]
        firsts = [
            next(
                occurrence for occurrence in self._occurrences[document] if occurrence.word == word
            )
            for word in (first, second)
        ]
        a, b = sorted(firsts)
        middle = text[a.end : b.start]
        return (
            text[: a.start] + text[b.start : b.end] + middle + text[a.start : a.end] + text[b.end :]
        )

    def usual_places(self, word: int) -> Floats:
        """Where a word stands: the fraction of the other words before it, of its occurrences."""
        places: list[float] = []
        for k in self.windows[self.types == word][:MAX_LOOKED_AT]:
            places += relative_places(self.word_order(int(k)), word)
        return np.array(places)

    def word_order(self, window: int) -> Ints:
        """The word types of a document in the order of its words."""
        return np.array(
            [occurrence.word for occurrence in self._occurrences[window]], dtype=np.int64
        )

    def _logits(self, texts: list[str]) -> Floats:
        logits = self._answer(texts)
        if logits.shape != (len(texts), self._width) or not np.isfinite(logits).all():
            raise InputError(
                f"the model returned {logits.shape} for {len(texts)} texts, or numbers that are "
                f"not finite: it must return one row of {self._width} probabilities or scores each"
            )
        return logits


def _with_inserted(before: str, inserted: str, after: str) -> str:
    """A text with words put in, apart from the words at either side; "phone." → "phone tablet."."""
    if not before or before[-1].isspace():
        return f"{before}{inserted} {after}"
    space_after = ""
    if after[:1].isalnum():
        space_after = " "
    return f"{before} {inserted}{space_after}{after}"
