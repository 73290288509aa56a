"""Models on their inputs, ready to be measured: those that read word pieces, and those that read whole texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tokensieve.diagnose.subjects.windows import REST, Windows
from tokensieve.text.counts import Floats, Ints


class Subject(Protocol):
    """A model on its inputs: W inputs, |S| word types, m distinct (word type, input) pairs ordered by input, then by type."""

    documents: Ints
    """Document of each input, ascending, shape (W,)."""
    lengths: Ints
    """Length of each input, shape (W,)."""
    word_lengths: Ints
    """Length of each word alone, shape (|S|,)."""
    types: Ints
    """Word type of each pair, shape (m,)."""
    windows: Ints
    """Input of each pair, shape (m,)."""
    layers: int
    differentiable: bool

    def look(self, at: Ints, attention: NDArray[np.float32] | None) -> Floats:
        """Logits of some inputs, shape (n, M); fills what their pairs receive of attention, shape (L+1, m + 1), relative to an
        equal share for every piece of text, and in the last column adds the share that goes to special tokens."""
        ...

    def alone(self, at: Ints) -> Floats:
        """Logits of some words as whole inputs, shape (n, M)."""
        ...

    def integrate(self, at: Ints, heads: Ints, effect: Floats, draws: int = 1) -> None:
        """Fill the effect of each pair of some inputs on one answer of each, the mean over so many draws."""
        ...

    def without(self, words: Sequence[Ints], windows: Ints) -> Floats:
        """Logits of inputs without some words each, shape (n, M); nan if nothing else is in them."""
        ...

    def having(self, words: Ints, windows: Ints, places: Floats) -> Floats:
        """Logits of inputs into each of which one word was inserted, at that fraction of its words, shape (n, M)."""
        ...

    def of_words(self, kept: Ints) -> Subject:
        """The same with some of the words."""
        ...


class PieceSubject:
    """Windows of pieces and the model that reads them.

    Args:
        reader: the model (`tokensieve.diagnose.subjects.reader.Reader`, or another with `logits`).
        windows: its inputs.
        width: M, its outputs.
    """

    def __init__(self, reader: Any, windows: Windows, width: int) -> None:
        self._reader, self._windows, self._width = reader, windows, width
        self.documents, self.lengths = windows.documents, np.diff(windows.starts)
        self.word_lengths = np.array([len(form.ids) for form in windows.forms], dtype=np.int64)
        self.layers, self.differentiable = int(reader.layers), bool(reader.differentiable)
        there, S = windows.types >= 0, max(len(windows.forms), 1)
        of_piece = np.repeat(np.arange(len(windows)), self.lengths)
        key = of_piece[there] * S + windows.types[there]
        key, place, self._pieces = np.unique(key, return_inverse=True, return_counts=True)
        self.types, self.windows = key % S, key // S
        self._first = np.searchsorted(self.windows, np.arange(len(windows) + 1))
        self._pair = np.full(len(windows.types), -1, dtype=np.int64)
        self._pair[there] = place
        rng = np.random.default_rng(0)  # a share for every word of a document, whatever the batches
        self._share = np.where(self._pair >= 0, rng.random(len(key) + 1)[self._pair], rng.random(len(self._pair)))

    def of_words(self, kept: Ints) -> PieceSubject:
        """The same with some of the words."""
        return PieceSubject(self._reader, self._windows.of_words(kept), self._width)

    def look(self, at: Ints, attention: NDArray[np.float32] | None) -> Floats:
        """Logits and attention (`Subject`)."""
        batch = [self._windows.input(w) for w in at]
        if attention is None:
            return np.asarray(self._reader.logits(batch))
        logits, received = self._reader.look(batch)
        for w, one in zip(at, received, strict=True):
            here = slice(self._windows.starts[w], self._windows.starts[w + 1])
            text = self._windows.types[here] >= REST
            pair, first, last = self._pair[here], self._first[w], self._first[w + 1]
            mine, fair = pair >= 0, self._pieces[first:last] / max(int(text.sum()), 1)
            on_text = one[:, text].astype(np.float64).sum(axis=1)
            attention[:, -1] += 1.0 - on_text
            for layer, row in enumerate(one):
                share = np.bincount(pair[mine] - first, row[mine].astype(np.float64), last - first)
                attention[layer, first:last] = share / max(on_text[layer], 1e-30) / fair
        return np.asarray(logits)

    def alone(self, at: Ints) -> Floats:
        """Logits of words as whole inputs."""
        return np.asarray(self._reader.logits([self._windows.forms[s] for s in at]))

    def integrate(self, at: Ints, heads: Ints, effect: Floats, draws: int = 1) -> None:
        """Effects of the pairs of some windows, the mean over so many draws, evenly apart."""
        here = [slice(self._windows.starts[w], self._windows.starts[w + 1]) for w in at]
        batch = [self._windows.input(w) for w in at]
        for draw in range(draws):
            moved = [(self._share[one] + draw / draws) % 1 for one in here]
            share = [np.where(self._windows.types[one] >= REST, t, np.nan) for one, t in zip(here, moved, strict=True)]
            for w, one, pieces in zip(at, here, self._reader.integrate(batch, share, heads), strict=True):
                first, last = self._first[w], self._first[w + 1]
                mine = self._pair[one] >= 0
                found = np.bincount(self._pair[one][mine] - first, pieces[mine], last - first) / draws
                effect[first:last] = found + (effect[first:last] if draw else 0.0)

    def without(self, words: Sequence[Ints], windows: Ints) -> Floats:
        """Logits of windows without some words each: with padding in their place if the model reads its answer from a piece of
        the text, since cutting would move another piece there."""
        out = np.full((len(windows), self._width), np.nan)
        if getattr(self._reader, "reads_text", False):
            types = [self._windows.types[self._windows.starts[w] : self._windows.starts[w + 1]] for w in windows]
            gone = [np.isin(kinds, some) for kinds, some in zip(types, words, strict=True)]
            out[:] = self._reader.blanked([self._windows.input(w) for w in windows], gone)
            out[[bool(one.all()) for one in gone]] = np.nan
            return out
        batch = [self._windows.without(w, some) for some, w in zip(words, windows, strict=True)]
        whole = np.array([len(one.ids) > 0 for one in batch], dtype=bool)
        if whole.any():
            out[whole] = self._reader.logits([one for one, there in zip(batch, whole, strict=True) if there])
        return out

    def having(self, words: Ints, windows: Ints, places: Floats) -> Floats:
        """Logits of windows into each of which one word was inserted."""
        batch = [self._windows.having(w, int(s), x) for s, w, x in zip(words, windows, places, strict=True)]
        return np.asarray(self._reader.logits(batch), dtype=np.float64)
