"""Words and word pieces of the same text, joined through character offsets, in windows.

A window is a run of pieces that the model can take as one input. A piece belongs to the first word
that it reaches into. Pieces of words outside the vocabulary and of punctuation are REST, the
model's own tokens (`[CLS]`, `</s>`, …) are SPECIAL; neither ever counts as a word. A pair of texts
is one document, with SEPARATOR between its parts.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import polars as pl

from tokensieve.arrays import Ints
from tokensieve.diagnose.subjects.frame import Frame, Input, Pieces
from tokensieve.diagnose.subjects.passages import SEPARATOR, kind_of
from tokensieve.progress import Progress, silent
from tokensieve.text.matches import TokenSpan
from tokensieve.text.tokenizers import Tokenizer

T = TypeVar("T")
REST, SPECIAL = -1, -2
# how much of the documents is read: names in `Diagnosis.reading`
LENGTHS = ("truncated_documents", "long_documents", "lost_pieces", "all_pieces")
CHUNK = 256  # texts that are encoded together: progress is reported between chunks
MAX_MOVED_UP = 64  # pieces that can take the place of a removed word; no word has more
MAX_SPELLINGS = 256  # of a pattern, as many as a word is inserted into inputs and more


@dataclass(frozen=True)
class Encoded:
    """A text as the tokenizer splits it, without special tokens.

    Attributes:
        ids: piece ids, shape (T,).
        offsets: first and last character of each piece.
        second: where the pieces of the second of two texts begin.
    """

    ids: Pieces
    offsets: list[tuple[int, int]]
    second: int


@dataclass(frozen=True)
class Part:
    """A run of pieces with their word types and segment."""

    ids: Pieces
    types: Pieces
    segment: int = 0

    @classmethod
    def special(cls, ids: Sequence[int], segment: int = 0) -> Part:
        """Special tokens."""
        pieces = np.array(ids, dtype=np.int32)
        return cls(pieces, np.full(len(pieces), SPECIAL, dtype=np.int32), segment)

    def cut(self, start: int, end: int) -> Part:
        """Some of the pieces."""
        return Part(self.ids[start:end], self.types[start:end], self.segment)


@dataclass
class Spare:
    """Pieces outside a window that may move into it, nearest first, and their types."""

    ids: Pieces
    types: Pieces


class Windows:
    """n documents (pairs with SEPARATOR between their texts) as W ≥ n whole inputs of the model.

    A word's type is its place among `words`. With `cut`, one window is kept of a document with more
    than `limit` pieces, special tokens included: the side that the tokenizer keeps. Pairs are
    always cut, the longer text first.

    Attributes:
        pieces, types, segments: ids of all pieces, special tokens included, their word type, REST
            or SPECIAL, and their segment where documents are pairs of texts (else None), (P,).
        starts, documents: where each window begins, shape (W+1,), and its document, ascending,
            shape (W,).
        inner, forms: for each word type the pieces that it is most often written with; these with
            special tokens around them.
        spellings: for each word type the pieces that it is inserted with: those of occurrences of a
            pattern, else those of `inner` only.
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
        self._tokenizer = tokenizer
        self._splitter = splitter
        self._frame = frame
        self._limit = limit
        self._cut = cut
        self._room = None if limit is None else limit - frame.size
        self._keeps_end = getattr(tokenizer, "truncation_side", "right") == "left"
        self.long_documents = 0
        self.lost_pieces = 0
        self.all_pieces = 0
        # of each window, what lies beyond it in its document; none where documents are pairs
        self._spare: list[Spare] = []
        self._documents: list[int] = []
        self._made: list[list[Part]] = []
        self._encode_all(texts, words, progress)

        is_cut = cut or frame.middle is not None
        self.truncated_documents = self.long_documents if is_cut else 0
        parts = [part for window in self._made for part in window]
        self.pieces = np.concatenate([part.ids for part in parts])
        self.types = np.concatenate([part.types for part in parts])
        self.segments = None
        if frame.segmented:
            segments = [np.full(len(part.ids), part.segment, dtype=np.int32) for part in parts]
            self.segments = np.concatenate(segments)
        lengths = [sum(len(part.ids) for part in window) for window in self._made]
        self.starts = np.cumsum([0, *lengths])
        self.documents = np.asarray(self._documents)
        del self._made, self._documents

    def _encode_all(self, texts: pl.Series, words: tuple[str, ...], progress: Progress) -> None:
        """Make the windows of every text, and choose how each word is written."""
        word_type = {word: s for s, word in enumerate(words)}
        spellings: list[Counter[tuple[int, ...]]] = [Counter() for _ in words]
        for start in range(0, len(texts), CHUNK):
            chunk = texts[start : start + CHUNK].to_list()
            encoded = encode(self._tokenizer, chunk, self._frame.middle is not None)
            for document, (text, encoded_text) in enumerate(
                zip(chunk, encoded, strict=True), start
            ):
                spans = self._splitter.spans(text) if words else []
                span_of_piece = spans_of_pieces(encoded_text, spans)
                types = word_types(span_of_piece, spans, word_type)
                count_spellings(encoded_text.ids, types, span_of_piece, spellings)
                self.all_pieces += len(encoded_text.ids)
                if self._frame.middle is not None:
                    self._add_pair(document, encoded_text, types)
                else:
                    self._add_text(document, encoded_text, types)
            progress("encoding", min(start + CHUNK, len(texts)) / len(texts))
        # of equally frequent spellings the first seen; a passage leaves space for a piece beside it
        longest = self._room and self._room - 1
        self.inner: list[tuple[int, ...]] = [
            seen.most_common(1)[0][0][:longest] if seen else () for seen in spellings
        ]
        self.forms = [self._frame.around(pieces) for pieces in self.inner]
        self.spellings: list[list[tuple[int, ...]]] = [
            [pieces] if kind_of(word) != "pattern" else evenly_spaced(list(seen.elements()))
            for word, pieces, seen in zip(words, self.inner, spellings, strict=True)
        ]

    def _add_text(self, document: int, encoded: Encoded, types: Pieces) -> None:
        """The windows of a document that is one text."""
        n = len(encoded.ids)
        room = n if self._room is None else self._room
        bounds = [(0, n)]
        if n > room:
            self.long_documents += 1
            bounds = [(start, min(start + room, n)) for start in range(0, n, room)]
            if self._cut:
                bounds = [(n - room, n) if self._keeps_end else bounds[0]]
                self.lost_pieces += n - room
        text = Part(encoded.ids, types)
        before = Part.special(self._frame.before)
        after = Part.special(self._frame.after)
        for start, end in bounds:
            self._made.append([before, text.cut(start, end), after])
            self._documents.append(document)
            if self._keeps_end:
                near = np.arange(start - 1, max(start - 1 - MAX_MOVED_UP, -1), -1)
            else:
                near = np.arange(end, min(end + MAX_MOVED_UP, n))
            self._spare.append(Spare(encoded.ids[near], types[near]))

    def _add_pair(self, document: int, encoded: Encoded, types: Pieces) -> None:
        """The window of a document that is two texts; the longer is cut first.

        If both exceed half of the room, the longer keeps the odd piece, as in the library's
        "longest_first".
        """
        n = len(encoded.ids)
        if self._frame.prompted:
            types[: encoded.second] = SPECIAL
        n_first = encoded.second
        n_second = n - encoded.second
        if self._room is not None and n > self._room:
            n_shorter = min(n_first, n_second, self._room // 2)
            if n_first > n_second:
                n_first = self._room - n_shorter
                n_second = n_shorter
            else:
                n_first = n_shorter
                n_second = self._room - n_shorter
            self.long_documents += 1
            self.lost_pieces += n - n_first - n_second
        text = Part(encoded.ids, types)
        second = text.cut(encoded.second, encoded.second + n_second)
        self._made.append(
            [
                Part.special(self._frame.before),
                text.cut(0, n_first),
                Part.special(self._frame.middle or []),
                Part(second.ids, second.types, segment=1),
                Part.special(self._frame.after, segment=1),
            ]
        )
        self._documents.append(document)

    def __len__(self) -> int:
        return len(self.documents)

    def of_texts(self, texts: list[str]) -> Windows:
        """Other texts, cut to one window each, without any words."""
        series = pl.Series(texts, dtype=pl.String)
        return Windows(
            self._tokenizer, series, self._splitter, (), self._frame, self._limit, True, silent
        )

    def pieces_of(self, text: str) -> list[int]:
        """The pieces of a whole text, without special tokens."""
        return list(self._tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])

    def at(self, window: int) -> slice:
        """The pieces of one window."""
        return slice(self.starts[window], self.starts[window + 1])

    def input(self, window: int) -> Input:
        """One window."""
        at = self.at(window)
        return Input(self.pieces[at], self._segments_at(at))

    def _segments_at(self, at: slice) -> Pieces | None:
        return None if self.segments is None else self.segments[at]

    def of_documents(self, documents: Ints) -> Windows:
        """The windows of some documents."""
        smaller = copy.copy(self)
        is_kept = np.isin(self.documents, documents)
        lengths = np.diff(self.starts)
        pieces_kept = np.repeat(is_kept, lengths)
        smaller.pieces = self.pieces[pieces_kept]
        smaller.types = self.types[pieces_kept]
        smaller.documents = self.documents[is_kept]
        smaller.starts = np.r_[0, np.cumsum(lengths[is_kept])]
        if self.segments is not None:
            smaller.segments = self.segments[pieces_kept]
        if self._spare:
            smaller._spare = [self._spare[w] for w in np.flatnonzero(is_kept)]
        return smaller

    def of_words(self, words: Ints) -> Windows:
        """The same with a smaller vocabulary: some word types, ascending; others become REST."""
        smaller = copy.copy(self)
        new_type = np.full(len(self.inner), REST, dtype=np.int32)
        new_type[words] = np.arange(len(words))

        def renamed(types: Pieces) -> Pieces:
            return np.where(types >= 0, new_type[np.maximum(types, 0)], types).astype(np.int32)

        smaller.types = renamed(self.types)
        smaller._spare = [Spare(spare.ids, renamed(spare.types)) for spare in self._spare]
        smaller.inner = [self.inner[s] for s in words]
        smaller.forms = [self.forms[s] for s in words]
        smaller.spellings = [self.spellings[s] for s in words]
        return smaller

    def without(self, window: int, words: Ints) -> Input:
        """One window without some word types.

        What follows in a longer document moves up, so that the input stays as long as it was.
        """
        at = self.at(window)
        types = self.types[at]
        is_kept = ~np.isin(types, words)
        ids = self.pieces[at][is_kept]
        if self.segments is not None:
            return Input(ids, self.segments[at][is_kept])
        n_missing = len(types) - len(ids)
        if not n_missing or not self._spare:
            return Input(ids)
        spare = self._spare[window]
        moved_up = spare.ids[~np.isin(spare.types, words)][:n_missing]
        text = np.flatnonzero(types != SPECIAL)
        if self._keeps_end:
            place = is_kept[: text[0]].sum()
            return Input(np.insert(ids, place, moved_up[::-1]))
        place = is_kept[: text[-1] + 1].sum()
        return Input(np.insert(ids, place, moved_up))

    def word_starts(self, window: int) -> Ints:
        """Places of the first pieces of the known words of one window."""
        types = self.types[self.at(window)]
        before = np.r_[SPECIAL, types[:-1]]
        return np.flatnonzero((types >= 0) & (types != before))

    def having(self, window: int, words: Ints, place: float, spelling: float = 0.0) -> Input:
        """One window with a word, or the words of a phrase, put in.

        `place` is the fraction of the window's known words that stand before it: of 0 it is put
        before the first, of 1 behind the text. `spelling`, in [0, 1), says how a pattern is
        written. What no longer fits into the longest window falls away before the last piece, from
        which some models read, or at the beginning.
        """
        at = self.at(window)
        types = self.types[at]
        starts = self.word_starts(window)
        if not len(starts):
            return self.input(window)
        behind_text = int(np.flatnonzero(types != SPECIAL)[-1]) + 1
        slots = [*starts.tolist(), behind_text]
        where = slots[int(place * len(starts) + 0.5)]
        new_ids = self._written(words, spelling)
        ids = np.insert(self.pieces[at], where, new_ids)
        is_old_text = np.insert(types != SPECIAL, where, np.zeros(len(new_ids), dtype=bool))
        dropped = self._dropped(np.flatnonzero(is_old_text), len(ids) - self.longest)
        segments = self._segments_at(at)
        if segments is not None:
            neighbour_segment = segments[min(where, behind_text - 1)]
            segments = np.insert(segments, where, np.full(len(new_ids), neighbour_segment))
            segments = np.delete(segments, dropped)
        return Input(np.delete(ids, dropped), segments)

    def _written(self, words: Ints, spelling: float) -> list[int]:
        """The pieces of some words, one after the other; a piece of text has space beside each."""
        longest = self._room and self._room - 1
        ids: list[int] = []
        for word in words:
            spellings = self.spellings[word]
            ids += spellings[int(spelling * len(spellings))][:longest]
        return ids

    def swapped(self, window: int, first: int, second: int) -> Input:
        """One window in which the first occurrences of two words change places."""
        at = self.at(window)
        types = self.types[at]
        ids = self.pieces[at]
        runs = sorted(_first_run(types, word) for word in (first, second))
        (a, a_end), (b, b_end) = runs
        order = np.r_[0:a, b:b_end, a_end:b, a:a_end, b_end : len(ids)]
        segments = self._segments_at(at)
        return Input(ids[order], segments)

    def _dropped(self, text: Ints, n_over: int) -> Ints:
        """Which pieces of the text fall away if an input has some too many."""
        if n_over <= 0:
            return text[:0]
        if self._keeps_end:
            return text[:n_over]
        return text[max(len(text) - 1 - n_over, 0) : -1]

    @property
    def longest(self) -> int:
        """Pieces of the longest window."""
        return int(np.diff(self.starts).max())


def evenly_spaced(spellings: list[T]) -> list[T]:
    """At most MAX_SPELLINGS of a list, evenly spaced."""
    step = -(-len(spellings) // MAX_SPELLINGS)
    return spellings[:: max(step, 1)]


def _first_run(types: Pieces, word: int) -> tuple[int, int]:
    """First and last place of the pieces of a word's first occurrence."""
    pieces = np.flatnonzero(types == word)
    gaps = np.flatnonzero(np.diff(pieces) > 1)
    n_pieces = int(gaps[0]) + 1 if len(gaps) else len(pieces)
    start = int(pieces[0])
    return start, start + n_pieces


def encode(tokenizer: Any, texts: list[str], paired: bool) -> Iterator[Encoded]:
    """Split texts, or pairs of texts, into pieces without special tokens."""
    if not paired:
        yield from _encode_sides(tokenizer, texts)
        return
    sides = [text.partition(SEPARATOR) for text in texts]
    firsts = _encode_sides(tokenizer, [first for first, _, _ in sides])
    seconds = _encode_sides(tokenizer, [second for _, _, second in sides])
    for (text, separator, _), first, second in zip(sides, firsts, seconds, strict=True):
        shift = len(text) + len(separator)
        shifted = [(start + shift, end + shift) for start, end in second.offsets]
        ids = np.concatenate([first.ids, second.ids])
        yield Encoded(ids, first.offsets + shifted, len(first.ids))


def _encode_sides(tokenizer: Any, texts: list[str]) -> Iterator[Encoded]:
    encoding = tokenizer(
        texts,
        add_special_tokens=False,
        return_offsets_mapping=True,
        truncation=False,
        verbose=False,
    )
    for ids, offsets in zip(encoding["input_ids"], encoding["offset_mapping"], strict=True):
        yield Encoded(np.asarray(ids, dtype=np.int32), list(offsets), len(ids))


def spans_of_pieces(encoded: Encoded, spans: list[TokenSpan]) -> Ints:
    """Which word each piece first reaches into, by its place among the spans; −1 if none, (T,)."""
    span_of_piece = np.full(len(encoded.ids), -1, dtype=np.int64)
    if not spans or not len(encoded.ids):
        return span_of_piece
    begin, end = np.asarray(encoded.offsets, dtype=np.int64).reshape(-1, 2).T
    word_begin = np.array([span.start for span in spans], dtype=np.int64)
    word_end = np.array([span.end for span in spans], dtype=np.int64)
    span = np.searchsorted(word_end, begin, side="right")
    last = len(spans) - 1
    is_inside = (span <= last) & (word_begin[np.minimum(span, last)] < end)
    span_of_piece[is_inside] = span[is_inside]
    return span_of_piece


def word_types(span_of_piece: Ints, spans: list[TokenSpan], word_type: dict[str, int]) -> Pieces:
    """Word type of each piece, shape (T,)."""
    of_spans = [word_type.get(span.token, REST) for span in spans]
    # the last entry is that of pieces outside any word, whose span is −1
    return np.array([*of_spans, REST], dtype=np.int32)[span_of_piece]


def count_spellings(
    ids: Pieces, types: Pieces, span_of_piece: Ints, spellings: list[Counter[tuple[int, ...]]]
) -> None:
    """Count with which pieces each word of a text is written."""
    word_pieces = np.flatnonzero(types >= 0)
    if not len(word_pieces):
        return
    known_types = types[word_pieces].tolist()
    known_ids = ids[word_pieces].tolist()
    next_word = np.flatnonzero(np.diff(span_of_piece[word_pieces])) + 1
    for start, end in pairwise([0, *next_word.tolist(), len(word_pieces)]):
        spellings[known_types[start]][tuple(known_ids[start:end])] += 1
