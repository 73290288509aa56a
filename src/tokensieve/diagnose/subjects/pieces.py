"""A model that reads word pieces, on its documents: every way in which it is asked about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tokensieve.arrays import Floats, Ints
from tokensieve.diagnose.subjects.windows import LENGTHS, REST, Windows

MAX_LOOKED_AT = 64  # inputs in which the usual places of a word are looked up


class PieceSubject:
    """A model on its inputs: W windows, |S| word types, m distinct (word type, input) pairs.

    Pairs are ordered by input, then by type.

    Args:
        reader: a `Reader`, or another object with `logits`.
        windows: the inputs.
        width: M, the number of the model's outputs.

    Attributes:
        documents, lengths: document (ascending) and pieces of each input, (W,).
        word_lengths: pieces of each word alone, (|S|,).
        types, windows: word type and input of each pair, (m,).
        layers: 0 without attention. differentiable: whether effects can be integrated.
    """

    def __init__(self, reader: Any, windows: Windows, width: int) -> None:
        self._reader = reader
        self._windows = windows
        self._width = width
        self.documents = windows.documents
        self.lengths = np.diff(windows.starts)
        self.word_lengths = np.array([len(form.ids) for form in windows.forms], dtype=np.int64)
        self.layers = int(reader.layers)
        self.differentiable = bool(reader.differentiable)

        is_word = windows.types >= 0
        n_types = max(len(windows.forms), 1)
        window_of_piece = np.repeat(np.arange(len(windows)), self.lengths)
        keys = window_of_piece[is_word] * n_types + windows.types[is_word]
        keys, pair_of_word, self._n_pieces = np.unique(
            keys, return_inverse=True, return_counts=True
        )
        self.types = keys % n_types
        self.windows = keys // n_types
        self._first_pair = np.searchsorted(self.windows, np.arange(len(windows) + 1))
        self._pair = np.full(len(windows.types), -1, dtype=np.int64)  # of each piece; -1 if none
        self._pair[is_word] = pair_of_word
        # a place on the path for every word of a document, whatever the batches
        rng = np.random.default_rng(0)
        of_pair = rng.random(len(keys) + 1)
        of_piece = rng.random(len(self._pair))
        self._path_place = np.where(is_word, of_pair[self._pair], of_piece)

    def of_words(self, kept: Ints) -> PieceSubject:
        """The same with some of the words."""
        return PieceSubject(self._reader, self._windows.of_words(kept), self._width)

    def of_texts(self, texts: list[str]) -> PieceSubject:
        """The same model on other texts, without any words."""
        return PieceSubject(self._reader, self._windows.of_texts(texts), self._width)

    @property
    def lengths_read(self) -> dict[str, int]:
        """How much of the documents is read, for `Diagnosis.reading`."""
        return {name: int(getattr(self._windows, name)) for name in LENGTHS}

    def pieces_of(self, text: str) -> object:
        """What the model sees of a text: the same for texts that it cannot tell apart."""
        return self._windows.pieces_of(text)

    def in_order(self, words: Ints, window: int) -> Ints:
        """Some words in the order in which they first occur in an input that contains them."""
        types = self._windows.types[self._windows.at(window)].tolist()
        return np.array(sorted(words.tolist(), key=types.index))

    def look(self, at: Ints, attention: Floats | None) -> Floats:
        """Logits of some inputs, shape (n, M).

        If `attention`, shape (m,), is given, it is filled with what the inputs' pairs receive,
        relative to an equal share for every piece of text.
        """
        batch = [self._windows.input(w) for w in at]
        if attention is None:
            return np.asarray(self._reader.logits(batch))
        logits, received = self._reader.look(batch)
        for w, of_pieces in zip(at, received, strict=True):
            self._add_attention(int(w), of_pieces, attention)
        return np.asarray(logits)

    def _add_attention(self, window: int, received: Floats, attention: Floats) -> None:
        """Sum what the pieces of one input receive, shape (T,), over its pairs."""
        first, end = self._first_pair[window], self._first_pair[window + 1]
        is_text = self._windows.types[self._windows.at(window)] >= REST
        equal_share = self._n_pieces[first:end] / max(int(is_text.sum()), 1)
        on_text = float(received[is_text].astype(np.float64).sum())
        of_pairs = self._by_pair(window, received)
        attention[first:end] = of_pairs / max(on_text, 1e-30) / equal_share

    def alone(self, at: Ints) -> Floats:
        """Logits of some words as whole inputs, shape (n, M)."""
        return np.asarray(self._reader.logits([self._windows.forms[s] for s in at]))

    def integrate(self, at: Ints, heads: Ints, effect: Floats, draws: int = 1) -> None:
        """Fill in the effect of each pair of some inputs on one answer of each.

        It is the mean over this many evenly spaced draws of the places on the path.
        """
        slices = [self._windows.at(w) for w in at]
        batch = [self._windows.input(w) for w in at]
        for w in at:
            effect[self._first_pair[w] : self._first_pair[w + 1]] = 0.0
        for draw in range(draws):
            shares = [self._path_shares(piece_slice, draw / draws) for piece_slice in slices]
            effects = self._reader.integrate(batch, shares, heads)
            for w, of_pieces in zip(at, effects, strict=True):
                first, end = self._first_pair[w], self._first_pair[w + 1]
                effect[first:end] += self._by_pair(int(w), of_pieces) / draws

    def _path_shares(self, piece_slice: slice, shift: float) -> Floats:
        """The place on the path of each piece of an input; nan where no text is."""
        place = (self._path_place[piece_slice] + shift) % 1
        is_text = self._windows.types[piece_slice] >= REST
        return np.where(is_text, place, np.nan)

    def _by_pair(self, window: int, of_pieces: Floats) -> Floats:
        """Sums over the pieces of each of an input's pairs."""
        first, end = self._first_pair[window], self._first_pair[window + 1]
        pair = self._pair[self._windows.at(window)]
        is_word = pair >= 0
        weights = of_pieces[is_word].astype(np.float64)
        sums = np.bincount(pair[is_word] - first, weights, end - first)
        return np.asarray(sums, dtype=np.float64)

    def without(self, words: Sequence[Ints], windows: Ints) -> Floats:
        """Logits of inputs without some words each, shape (n, M); nan if nothing else is in them.

        Padding takes their place if the model reads its answer from a piece of the text, since
        cutting would move another piece there.
        """
        if getattr(self._reader, "reads_text", False):
            return self._blanked(words, windows)
        logits = np.full((len(windows), self._width), np.nan)
        batch = [
            self._windows.without(w, removed) for removed, w in zip(words, windows, strict=True)
        ]
        has_pieces = np.array([len(item.ids) > 0 for item in batch], dtype=bool)
        if has_pieces.any():
            logits[has_pieces] = self._reader.logits([item for item in batch if len(item.ids)])
        return logits

    def _blanked(self, words: Sequence[Ints], windows: Ints) -> Floats:
        """As `without`, with padding in the place of the words."""
        is_gone = [
            np.isin(self._windows.types[self._windows.at(w)], removed)
            for w, removed in zip(windows, words, strict=True)
        ]
        batch = [self._windows.input(w) for w in windows]
        logits = np.array(self._reader.logits(batch, is_gone))
        logits[[bool(removed.all()) for removed in is_gone]] = np.nan
        return logits

    def emptied(self, at: Ints) -> Floats:
        """Logits of some inputs with padding in the place of all their text, shape (n, M)."""
        is_text = [self._windows.types[self._windows.at(w)] >= REST for w in at]
        batch = [self._windows.input(w) for w in at]
        return np.asarray(self._reader.logits(batch, is_text))

    def having(
        self, words: Sequence[Ints], windows: Ints, places: Floats, spellings: Floats
    ) -> Floats:
        """Logits of inputs into each of which some words were inserted, shape (n, M).

        Each place is the fraction of the input's words that stand before them; each spelling is a
        number in [0, 1) by which one of those of a pattern is taken.
        """
        batch = [
            self._windows.having(int(w), new, float(place), float(spelling))
            for new, w, place, spelling in zip(words, windows, places, spellings, strict=True)
        ]
        return np.asarray(self._reader.logits(batch), dtype=np.float64)

    def swapped(self, first: Ints, second: Ints, windows: Ints) -> Floats:
        """Logits of inputs in each of which two words change places, shape (n, M)."""
        batch = [
            self._windows.swapped(int(w), int(a), int(b))
            for a, b, w in zip(first, second, windows, strict=True)
        ]
        return np.asarray(self._reader.logits(batch), dtype=np.float64)

    def usual_places(self, word: int) -> Floats:
        """Where a word stands: the fraction of the other words before it, of its occurrences."""
        places: list[float] = []
        for w in self.windows[self.types == word][:MAX_LOOKED_AT]:
            order = self.word_order(int(w))
            places += relative_places(order, word)
        return np.array(places)

    def word_order(self, window: int) -> Ints:
        """The word types of an input in the order of its words."""
        starts = self._windows.word_starts(window)
        return self._windows.types[self._windows.at(window)][starts].astype(np.int64)


def relative_places(order: Ints, word: int) -> list[float]:
    """For each occurrence of a word, the fraction of the input's other words before it."""
    if len(order) < 2:
        return []
    places: list[float] = (np.flatnonzero(order == word) / (len(order) - 1)).tolist()
    return places
