"""A model that reads word pieces, on the windows of the documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokensieve.diagnose.encoding import REST, Windows
from tokensieve.diagnose.measuring import Pairs
from tokensieve.text.counts import Floats, Ints

TINY = 1e-30
SEED = 0


class PieceSubject:
    """Windows of pieces and the model that reads them.

    Args:
        reader: the model (`tokensieve.diagnose.reading.Reader`, or another with `logits`).
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
        key, place, times = np.unique(
            of_piece[there] * S + windows.types[there], return_inverse=True, return_counts=True
        )
        self.pairs = Pairs.of(key % S, key // S, len(windows))
        self._pair = np.full(len(windows.types), -1, dtype=np.int64)
        self._pair[there] = place
        self._pieces = times
        rng = np.random.default_rng(SEED)  # a share for every word of a document, whatever the batches
        self._share = np.where(self._pair >= 0, rng.random(len(times) + 1)[self._pair], rng.random(len(self._pair)))

    def look(self, at: Ints, attention: NDArray[np.float32] | None) -> Floats:
        """Logits and attention (`tokensieve.diagnose.measuring.Subject`)."""
        if attention is None:
            return np.asarray(self._reader.logits([self._windows.input(w) for w in at]))
        look = self._reader.look([self._windows.input(w) for w in at])
        for w, received in zip(at, look.attention, strict=True):
            here = slice(self._windows.starts[w], self._windows.starts[w + 1])
            text = self._windows.types[here] >= REST
            pair, first, last = self._pair[here], self.pairs.starts[w], self.pairs.starts[w + 1]
            mine, fair = pair >= 0, self._pieces[first:last] / max(int(text.sum()), 1)
            on_text = received[:, text].astype(np.float64).sum(axis=1)
            attention[:, -1] += 1.0 - on_text
            for layer, one in enumerate(received):
                share = np.bincount(pair[mine] - first, one[mine].astype(np.float64), last - first)
                attention[layer, first:last] = share / max(on_text[layer], TINY) / fair
        return np.asarray(look.logits)

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
                first, last = self.pairs.starts[w], self.pairs.starts[w + 1]
                mine = self._pair[one] >= 0
                found = np.bincount(self._pair[one][mine] - first, pieces[mine], last - first) / draws
                effect[first:last] = found + (effect[first:last] if draw else 0.0)

    def without(self, words: Sequence[Ints], windows: Ints) -> Floats:
        """Logits of windows without some words each: with padding in their place where the model reads its answer from a piece of
        the text, since cutting would move another piece there."""
        if getattr(self._reader, "reads_text", False):
            return self._blanked(words, windows)
        batch = [self._windows.without(w, some) for some, w in zip(words, windows, strict=True)]
        whole = np.array([len(one.ids) > 0 for one in batch], dtype=bool)
        out = np.full((len(batch), self._width), np.nan)
        if whole.any():
            out[whole] = self._reader.logits([one for one, there in zip(batch, whole, strict=True) if there])
        return out

    def having(self, words: Ints, windows: Ints, places: Floats) -> Floats:
        """Logits of windows into each of which one word was put."""
        batch = [self._windows.having(w, int(s), x) for s, w, x in zip(words, windows, places, strict=True)]
        return np.asarray(self._reader.logits(batch), dtype=np.float64)

    def _blanked(self, words: Sequence[Ints], windows: Ints) -> Floats:
        """Logits of windows with padding in place of some words each; nan where nothing else is in them."""
        batch = [self._windows.input(w) for w in windows]
        types = [self._windows.types[self._windows.starts[w] : self._windows.starts[w + 1]] for w in windows]
        gone = [np.isin(kinds, some) for kinds, some in zip(types, words, strict=True)]
        out = np.asarray(self._reader.blanked(batch, gone), dtype=np.float64)
        out[[bool(one.all()) for one in gone]] = np.nan
        return out
