"""Words and word pieces of the same text, joined through character offsets, in windows that the model can take.

A piece belongs to the first word that it reaches into. Pieces of words outside the vocabulary and of punctuation are REST,
the model's own tokens (`[CLS]`, `</s>`, …) are SPECIAL; neither ever counts as a word. A pair of texts is one document, with
SEPARATOR between its parts.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tokensieve.arrays import Floats, Ints
from tokensieve.errors import InputError
from tokensieve.progress import Progress, silent
from tokensieve.text.tokenizers import WORD, Tokenizer, WordTokenizer

REST, SPECIAL = -1, -2
SEPARATOR = "\x1f"
LENGTHS = ("truncated_documents", "long_documents", "lost_pieces", "all_pieces")
# punctuation too: a model may rely on it
SPLITTER = WordTokenizer(line_breaks=False, html="keep", pattern=WORD + r"|[^\w\s\x1f]")

_Pieces = NDArray[np.int32]
_Spans = list[tuple[int, int, str]]


class Input(NamedTuple):
    """One input: piece ids, special tokens included, and the segment of each (None if the model has no segments), both (T,)."""

    ids: _Pieces
    segments: _Pieces | None = None


@dataclass(frozen=True)
class Frame:
    """The special tokens around a text (`before`, `after`), and between the two of a pair (`middle`; None for single texts).

    `segmented`: whether the model is given the segment of each piece; `prompted`: whether the first text is a prompt, read but
    never measured.
    """

    before: list[int]
    after: list[int]
    middle: list[int] | None = None
    segmented: bool = False
    prompted: bool = False

    @classmethod
    def of(cls, tokenizer: Any, paired: bool = False) -> Frame:
        """The special tokens around a text, or around and between two; an InputError if the tokenizer has no offsets."""
        if not getattr(tokenizer, "is_fast", False):
            raise InputError(
                f"the tokenizer {type(tokenizer).__name__} returns no character offsets: save a fast one (tokenizer.json) "
                "beside the model"
            )
        probe = tokenizer(
            *["a"] * (1 + paired), return_special_tokens_mask=True, return_token_type_ids=paired
        )
        ids, special = list(probe["input_ids"]), probe["special_tokens_mask"]
        text = [i for i, mark in enumerate(special) if not mark]
        first, last = (text[0], text[-1] + 1) if text else (len(ids), len(ids))
        if not paired:
            return cls(ids[:first], ids[last:])
        single = tokenizer("a", add_special_tokens=False)["input_ids"]
        inner = slice(first + len(single), last - len(single))
        return cls(
            ids[:first], ids[last:], ids[inner], "token_type_ids" in tokenizer.model_input_names
        )

    @property
    def size(self) -> int:
        """Special tokens of one input."""
        return len(self.before) + len(self.after) + len(self.middle or [])

    def limit(self, model: Any, tokenizer: Any, asked: int | None) -> int | None:
        """Pieces that one input may have, special tokens included: the smallest of what was asked, the tokenizer's
        `model_max_length` and the model's `max_position_embeddings` (without a padding row, behind which RoBERTa counts); None if
        nothing limits them; an InputError if less than two are left for text.
        """
        limits = [asked] if asked is not None else []
        if (
            tokenizer.model_max_length < 10**6
        ):  # a tokenizer without a limit names a larger number than any model has
            limits.append(tokenizer.model_max_length)
        positions = getattr(model.config, "max_position_embeddings", None)
        if isinstance(positions, int) and positions > 0:
            modules: list[tuple[str, object]] = getattr(model, "named_modules", list)()
            rows = [
                getattr(table, "padding_idx", None)
                for name, table in modules
                if name.endswith("position_embeddings")
            ]
            limits.append(positions - max((row + 1 for row in rows if row is not None), default=0))
        limit = min(limits, default=None)
        if limit is not None and limit < self.size + 2:
            raise InputError(
                f"inputs of {limit} tokens leave no room for text after {self.size} special tokens: use a larger --max-length"
            )
        return limit

    def around(self, inner: Sequence[int]) -> Input:
        """Some pieces as an input of their own."""
        between = self.middle or []
        sides = [*between, *inner] if self.prompted else [*inner, *between]
        ids = [*self.before, *sides, *self.after]
        return Input(
            np.array(ids, dtype=np.int32),
            np.zeros(len(ids), dtype=np.int32) if self.segmented else None,
        )


class Windows:
    """n documents (pairs with SEPARATOR between their texts) as W ≥ n runs of pieces, each a whole input of the model.

    A word's type is its place among `words`. With `cut`, one window is kept of a document with more than `limit` pieces, special
    tokens included (the side that the tokenizer keeps; pairs are always cut, the longer text first).

    Attributes:
        pieces, types, segments: ids of all pieces, special tokens included, their word type, REST or SPECIAL, and their segment
            where documents are pairs of texts (else None), shape (P,).
        starts, documents: where each window begins, shape (W+1,), and its document, ascending, shape (W,).
        inner, forms: for each word type the pieces that it is most often written with; these with special tokens around them.
        lost_pieces, all_pieces: pieces cut off, and pieces of the documents, special tokens apart.
    """

    def __init__(
        self,
        tokenizer: Any,
        texts: pl.Series,
        splitter: Tokenizer,
        words: tuple[str, ...],
        frame: Frame,
        limit: int | None,
        cut: bool,
        progress: Progress,
    ) -> None:
        room = None if limit is None else limit - frame.size
        self._given = tokenizer, splitter, frame, limit
        self._keep_end = getattr(tokenizer, "truncation_side", "right") == "left"
        place = {word: i for i, word in enumerate(words)}
        written: list[Counter[tuple[int, ...]]] = [Counter() for _ in words]
        made: list[tuple[_Pieces, _Pieces, _Pieces]] = []
        documents: list[int] = []
        # of each window the pieces that follow it in its document and their types, nearest first; those before it where the
        # tokenizer keeps the end. They move up when a word is removed. None where documents are pairs of texts.
        self._spare: list[tuple[_Pieces, _Pieces]] = []
        self.long_documents = self.lost_pieces = self.all_pieces = 0
        nothing = np.empty(0, dtype=np.int32)
        chunk_size = 256
        for start in range(0, len(texts), chunk_size):
            chunk = texts[start : start + chunk_size].to_list()
            encoded = _encoded(tokenizer, chunk, frame.middle is not None)
            for k, (text, (ids, offsets, seconds)) in enumerate(zip(chunk, encoded, strict=True)):
                types = _types(offsets, splitter.spans(text) if words else [], place, ids, written)
                n = len(ids)
                self.all_pieces += n
                if frame.middle is not None:
                    types[: seconds * frame.prompted] = SPECIAL
                    first, second = seconds, n - seconds
                    if (
                        room is not None and n > room
                    ):  # the longer is cut, both if both are longer than half
                        first = min(first, max(room - second, room // 2))
                        second = min(second, room - first)
                    self.long_documents += first + second < n
                    self.lost_pieces += n - first - second
                    b = slice(seconds, seconds + second)
                    runs = [
                        (frame.before, ids[:first], types[:first], 0),
                        (frame.middle, nothing, nothing, 0),
                    ]
                    made.append(
                        _joined(
                            [*runs, ([], ids[b], types[b], 1), (frame.after, nothing, nothing, 1)]
                        )
                    )
                    documents.append(start + k)
                    continue
                parts = (
                    [(0, n)]
                    if room is None or n <= room
                    else [(a, min(a + room, n)) for a in range(0, n, room)]
                )
                self.long_documents += len(parts) > 1
                if cut and len(parts) > 1:
                    parts = [(n - (room or 0), n) if self._keep_end else parts[0]]
                    self.lost_pieces += n - (parts[0][1] - parts[0][0])
                for a, z in parts:
                    runs = [
                        (frame.before, ids[a:z], types[a:z], 0),
                        (frame.after, nothing, nothing, 0),
                    ]
                    made.append(_joined(runs))
                    documents.append(start + k)
                    # so many move up at most
                    near = (
                        np.arange(a - 1, max(a - 65, -1), -1)
                        if self._keep_end
                        else np.arange(z, min(z + 64, n))
                    )
                    self._spare.append((ids[near], types[near]))
            progress("encoding", min(start + chunk_size, len(texts)) / len(texts))
        self.truncated_documents = self.long_documents if cut or frame.middle is not None else 0
        # of equally frequent spellings the first seen; a passage leaves space for a piece beside it
        self.inner = [
            seen.most_common(1)[0][0][: room and room - 1] if seen else () for seen in written
        ]
        self.forms = [frame.around(one) for one in self.inner]
        self.pieces, self.types, segments = (
            np.concatenate([one[i] for one in made]) for i in range(3)
        )
        self.segments = segments if frame.segmented else None
        self.starts = np.cumsum([0, *(len(one[0]) for one in made)])
        self.documents = np.asarray(documents)

    def __len__(self) -> int:
        return len(self.documents)

    def of_texts(self, texts: list[str]) -> Windows:
        """Other texts, cut to one window each, without any words."""
        tokenizer, splitter, frame, limit = self._given
        return Windows(
            tokenizer, pl.Series(texts, dtype=pl.String), splitter, (), frame, limit, True, silent
        )

    def pieces_of(self, text: str) -> list[int]:
        """The pieces of a whole text, without special tokens."""
        return list(self._given[0](text, add_special_tokens=False, verbose=False)["input_ids"])

    def at(self, window: int) -> slice:
        """The pieces of one window."""
        return slice(self.starts[window], self.starts[window + 1])

    def input(self, window: int) -> Input:
        """One window."""
        at = self.at(window)
        return Input(self.pieces[at], None if self.segments is None else self.segments[at])

    def of_documents(self, documents: Ints) -> Windows:
        """The windows of some documents."""
        out, kept = copy.copy(self), np.isin(self.documents, documents)
        lengths = np.diff(self.starts)
        pieces = np.repeat(kept, lengths)
        out.pieces, out.types, out.documents = (
            self.pieces[pieces],
            self.types[pieces],
            self.documents[kept],
        )
        out.starts = np.r_[0, np.cumsum(lengths[kept])]
        out.segments = None if self.segments is None else self.segments[pieces]
        out._spare = [one for one, there in zip(self._spare, kept, strict=False) if there]
        return out

    def of_words(self, words: Ints) -> Windows:
        """The same with a smaller vocabulary: some of the word types, ascending; the pieces of others become REST."""
        out, place = copy.copy(self), np.full(len(self.inner), REST, dtype=np.int32)
        place[words] = np.arange(len(words))

        def renamed(types: _Pieces) -> _Pieces:
            return np.where(types >= 0, place[np.maximum(types, 0)], types).astype(np.int32)

        out.types, out._spare = (
            renamed(self.types),
            [(ids, renamed(types)) for ids, types in self._spare],
        )
        out.inner, out.forms = [self.inner[s] for s in words], [self.forms[s] for s in words]
        return out

    def without(self, window: int, words: Ints) -> Input:
        """One window without some word types; what follows in a longer document moves up, so that it stays as long as it was."""
        at = self.at(window)
        types = self.types[at]
        kept = ~np.isin(types, words)
        left = self.pieces[at][kept]
        if self.segments is not None:
            return Input(left, self.segments[at][kept])
        missing, text = len(types) - len(left), np.flatnonzero(types != SPECIAL)
        if not missing or not self._spare:
            return Input(left)
        pieces, kinds = self._spare[window]
        more = pieces[~np.isin(kinds, words)][:missing]
        place = kept[: text[0] if self._keep_end else text[-1] + 1].sum()
        return Input(np.insert(left, place, more[::-1] if self._keep_end else more))

    def having(self, window: int, words: Ints, place: float) -> Input:
        """One window with a word, or the words of a phrase, put before the word at a share `place` of its words. What no longer
        fits into the longest window falls away before the last piece, from which some models read, or at the beginning."""
        at = self.at(window)
        pieces, types = self.pieces[at], self.types[at]
        segments = (
            np.zeros(len(pieces), dtype=np.int32) if self.segments is None else self.segments[at]
        )
        places = np.flatnonzero((types >= 0) & (types != np.r_[SPECIAL, types[:-1]]))
        if not len(places):
            return self.input(window)
        new, where = (
            [piece for word in words for piece in self.inner[word]],
            int(places[int(place * len(places))]),
        )
        pieces, types = (
            np.insert(pieces, where, new),
            np.insert(types, where, np.full(len(new), words[0])),
        )
        segments = np.insert(segments, where, np.full(len(new), segments[where]))
        over = max(len(pieces) - int(np.diff(self.starts).max()), 0)
        old = np.flatnonzero((types != SPECIAL) & (types != words[0]))
        gone = old[:over] if self._keep_end else old[max(len(old) - 1 - over, 0) : -1]
        return Input(
            np.delete(pieces, gone), None if self.segments is None else np.delete(segments, gone)
        )


def _joined(
    runs: Sequence[tuple[list[int], _Pieces, _Pieces, int]],
) -> tuple[_Pieces, _Pieces, _Pieces]:
    """Ids, types and segments of a window, from runs of special tokens with the ids, types and segment of what follows."""
    ids = np.concatenate(
        [np.array([*special, *ids], dtype=np.int32) for special, ids, _, _ in runs]
    )
    types = np.concatenate(
        [np.r_[np.full(len(special), SPECIAL), types] for special, _, types, _ in runs]
    )
    segments = np.concatenate([np.full(len(special) + len(ids), s) for special, ids, _, s in runs])
    return ids, types.astype(np.int32), segments.astype(np.int32)


def _encoded(
    tokenizer: Any, chunk: list[str], paired: bool
) -> Iterator[tuple[_Pieces, list[tuple[int, int]], int]]:
    """For each text its piece ids, their offsets, and where the pieces of the second of two texts begin."""
    sides = (
        [text.partition(SEPARATOR)[::2] for text in chunk]
        if paired
        else [(text, "") for text in chunk]
    )
    ask = partial(
        tokenizer,
        add_special_tokens=False,
        return_offsets_mapping=True,
        truncation=False,
        verbose=False,
    )
    found = [ask([side[i] for side in sides]) for i in range(1 + paired)]
    for k in range(len(chunk)):
        ids, offsets = list(found[0]["input_ids"][k]), list(found[0]["offset_mapping"][k])
        seconds, shift = len(ids), len(sides[k][0]) + 1
        if paired:
            ids += found[1]["input_ids"][k]
            offsets += [(a + shift, z + shift) for a, z in found[1]["offset_mapping"][k]]
        yield np.asarray(ids, dtype=np.int32), offsets, seconds


def _types(
    offsets: list[tuple[int, int]],
    spans: _Spans,
    place: dict[str, int],
    ids: _Pieces,
    written: list[Counter[tuple[int, ...]]],
) -> _Pieces:
    """Word type of each piece, shape (pieces,); counts how each word is written on the way."""
    out = np.full(len(ids), REST, dtype=np.int32)
    if not spans or not len(ids):
        return out
    begin, end = np.asarray(offsets, dtype=np.int64).reshape(-1, 2).T
    word_begin, word_end = (np.array([span[i] for span in spans], dtype=np.int64) for i in (0, 1))
    which = np.searchsorted(word_end, begin, side="right")
    inside = (which < len(spans)) & (word_begin[np.minimum(which, len(spans) - 1)] < end)
    known = np.array([place.get(span[2], REST) for span in spans], dtype=np.int32)
    out[inside] = known[which[inside]]
    at = np.flatnonzero(out >= 0)
    cuts = [0, *(np.flatnonzero(np.diff(which[at])) + 1).tolist(), len(at)]
    mine, types = ids[at].tolist(), out[at].tolist()
    for a, z in pairwise(cuts if len(at) else []):
        written[types[a]][tuple(mine[a:z])] += 1
    return out


class PieceSubject:
    """A model on its inputs: W windows, |S| word types, m distinct (word type, input) pairs ordered by input, then by type.

    `reader` is a `Reader`, or another with `logits`; `width` is M. `documents` (ascending) and `lengths` are those of the inputs,
    (W,), `word_lengths` those of each word alone, (|S|,), `types` and `windows` the word type and input of each pair, (m,).
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
        self._share = np.where(
            self._pair >= 0, rng.random(len(key) + 1)[self._pair], rng.random(len(self._pair))
        )

    def of_words(self, kept: Ints) -> PieceSubject:
        """The same with some of the words."""
        return PieceSubject(self._reader, self._windows.of_words(kept), self._width)

    @property
    def lengths_read(self) -> dict[str, int]:
        """How much of the documents is read, for `Diagnosis.reading`."""
        return {name: int(getattr(self._windows, name)) for name in LENGTHS}

    def of_texts(self, texts: list[str]) -> PieceSubject:
        """The same model on other texts, without any words."""
        return PieceSubject(self._reader, self._windows.of_texts(texts), self._width)

    def pieces_of(self, text: str) -> object:
        """The part of a text that the model sees: the same for texts that it cannot tell apart."""
        return self._windows.pieces_of(text)

    def look(self, at: Ints, attention: Floats | None) -> Floats:
        """Logits of some inputs, shape (n, M); fills what their pairs receive of attention, shape (L+1, m + 1), relative to an
        equal share for every piece of text, and in the last column adds the share that goes to special tokens."""
        batch = [self._windows.input(w) for w in at]
        if attention is None:
            return np.asarray(self._reader.logits(batch))
        logits, received = self._reader.look(batch)
        for w, one in zip(at, received, strict=True):
            here = self._windows.at(w)
            text = self._windows.types[here] >= REST
            pair, first, last = self._pair[here], self._first[w], self._first[w + 1]
            mine, fair = pair >= 0, self._pieces[first:last] / max(int(text.sum()), 1)
            on_text = one[:, text].astype(np.float64).sum(axis=1)
            attention[:, -1] += 1.0 - on_text
            for layer, row in enumerate(one):
                share = np.bincount(pair[mine] - first, row[mine].astype(np.float64), last - first)
                attention[layer, first:last] = share / max(on_text[layer], 1e-30) / fair
        return np.asarray(logits)

    def in_order(self, words: Ints, window: int) -> Ints:
        """Some words in the order in which they first occur in an input that contains them."""
        types = self._windows.types[self._windows.at(window)].tolist()
        return np.array(sorted(words.tolist(), key=types.index))

    def alone(self, at: Ints) -> Floats:
        """Logits of some words as whole inputs, shape (n, M)."""
        return np.asarray(self._reader.logits([self._windows.forms[s] for s in at]))

    def integrate(self, at: Ints, heads: Ints, effect: Floats, draws: int = 1) -> None:
        """Fill in the effect of each pair of some inputs on one answer of each: the mean over this many evenly spaced draws."""
        here = [self._windows.at(w) for w in at]
        batch = [self._windows.input(w) for w in at]
        for draw in range(draws):
            moved = [(self._share[one] + draw / draws) % 1 for one in here]
            share = [
                np.where(self._windows.types[one] >= REST, t, np.nan)
                for one, t in zip(here, moved, strict=True)
            ]
            for w, one, pieces in zip(
                at, here, self._reader.integrate(batch, share, heads), strict=True
            ):
                first, last = self._first[w], self._first[w + 1]
                mine = self._pair[one] >= 0
                found = (
                    np.bincount(self._pair[one][mine] - first, pieces[mine], last - first) / draws
                )
                effect[first:last] = found + (effect[first:last] if draw else 0.0)

    def without(self, words: Sequence[Ints], windows: Ints) -> Floats:
        """Logits of inputs without some words each, shape (n, M); nan if nothing else is in them. Padding takes their place if
        the model reads its answer from a piece of the text, since cutting would move another piece there."""
        out = np.full((len(windows), self._width), np.nan)
        if getattr(self._reader, "reads_text", False):
            gone = [
                np.isin(self._windows.types[self._windows.at(w)], s)
                for w, s in zip(windows, words, strict=True)
            ]
            out[:] = self._reader.logits([self._windows.input(w) for w in windows], gone)
            out[[bool(one.all()) for one in gone]] = np.nan
            return out
        batch = [self._windows.without(w, some) for some, w in zip(words, windows, strict=True)]
        whole = np.array([len(one.ids) > 0 for one in batch], dtype=bool)
        if whole.any():
            out[whole] = self._reader.logits([one for one in batch if len(one.ids)])
        return out

    def having(self, words: Sequence[Ints], windows: Ints, places: Floats) -> Floats:
        """Logits of inputs into each of which some words were inserted, at that fraction of its words, shape (n, M)."""
        batch = [
            self._windows.having(w, some, x)
            for some, w, x in zip(words, windows, places, strict=True)
        ]
        return np.asarray(self._reader.logits(batch), dtype=np.float64)
