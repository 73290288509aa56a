"""Words and word pieces of the same text, joined through character offsets, in windows that the model can take.

A piece belongs to the first word that it reaches into. Pieces of words outside the vocabulary and of punctuation are REST,
the model's own tokens (`[CLS]`, `</s>`, …) are SPECIAL; neither ever counts as a word. A pair of texts is one document, with
SEPARATOR between its parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tokensieve.errors import InputError
from tokensieve.progress import Progress
from tokensieve.text.counts import Ints
from tokensieve.text.tokenizers import WORD, Tokenizer, WordTokenizer

REST, SPECIAL = -1, -2
SEPARATOR = "\x1f"
# punctuation too: a model may rely on it
SPLITTER = WordTokenizer(line_breaks=False, html="keep", pattern=WORD + r"|[^\w\s\x1f]")
_SPARE = 64  # pieces kept of those behind a window, which move up when a word is removed

Run = tuple[list[int], NDArray[np.int32], NDArray[np.int32], int]  # special tokens before, ids, types, segment


class Input(NamedTuple):
    """One input of the model.

    Attributes:
        ids: piece ids, special tokens included, shape (T,).
        segments: segment of each piece (0, or 1 for the second of two texts), shape (T,); None where the model knows none.
    """

    ids: NDArray[np.int32]
    segments: NDArray[np.int32] | None = None


@dataclass(frozen=True)
class Frame:
    """The special tokens around a text, or around and between the two of a pair.

    Attributes:
        before, middle, after: piece ids; middle is None for single texts.
        segmented: whether the model is given the segment of each piece.
        prompted: whether the first of two texts is a prompt: read, but never measured.
    """

    before: list[int]
    after: list[int]
    middle: list[int] | None = None
    segmented: bool = False
    prompted: bool = False

    @classmethod
    def of(cls, tokenizer: Any, paired: bool = False) -> Frame:
        """The special tokens that the tokenizer puts around a text, or around and between two.

        Raises:
            InputError: the tokenizer gives no offsets.
        """
        if not getattr(tokenizer, "is_fast", False):
            raise InputError(
                f"the tokenizer {type(tokenizer).__name__} gives no character offsets: save a fast one (tokenizer.json) "
                "beside the model"
            )
        probe = tokenizer(*["a"] * (1 + paired), return_special_tokens_mask=True, return_token_type_ids=paired)
        ids, special = list(probe["input_ids"]), probe["special_tokens_mask"]
        text = [i for i, mark in enumerate(special) if not mark]
        first, last = (text[0], text[-1] + 1) if text else (len(ids), len(ids))
        if not paired:
            return cls(ids[:first], ids[last:])
        single = tokenizer("a", add_special_tokens=False)["input_ids"]
        inner = slice(first + len(single), last - len(single))
        return cls(ids[:first], ids[last:], ids[inner], "token_type_ids" in tokenizer.model_input_names)

    @property
    def size(self) -> int:
        """Special tokens of one input."""
        return len(self.before) + len(self.after) + len(self.middle or [])

    def limit(self, model: Any, tokenizer: Any, asked: int | None) -> int | None:
        """Pieces that one input may have, special tokens included; None if nothing limits them.

        The smallest of what was asked, the tokenizer's `model_max_length` and the model's `max_position_embeddings`. A table
        of positions with a padding row starts counting behind that row (RoBERTa), which shortens it.

        Raises:
            InputError: less than two pieces beside the special tokens would be left.
        """
        limits = [asked] if asked is not None else []
        if tokenizer.model_max_length < 10**6:  # a tokenizer without a limit names a larger number than any model has
            limits.append(tokenizer.model_max_length)
        positions = getattr(model.config, "max_position_embeddings", None)
        if isinstance(positions, int) and positions > 0:
            offset = 0
            for name, module in model.named_modules():
                padding = getattr(module, "padding_idx", None)
                if name.endswith("position_embeddings") and padding is not None:
                    offset = padding + 1
            limits.append(positions - offset)
        limit = min(limits, default=None)
        if limit is not None and limit < self.size + 2:
            raise InputError(
                f"inputs of {limit} pieces leave no room for text beside {self.size} special tokens: use a larger --max-length"
            )
        return limit

    def around(self, inner: tuple[int, ...]) -> Input:
        """A word as an input of its own."""
        between = self.middle or []
        sides = [*between, *inner] if self.prompted else [*inner, *between]
        ids = [*self.before, *sides, *self.after]
        return Input(np.array(ids, dtype=np.int32), np.zeros(len(ids), dtype=np.int32) if self.segmented else None)


@dataclass(frozen=True)
class Windows:
    """n documents as W ≥ n runs of pieces, each a whole input of the model.

    Attributes:
        pieces: piece ids of all windows, one after the other, special tokens included, shape (P,).
        types: word type of each piece, or REST or SPECIAL, shape (P,).
        starts: where each window begins, shape (W+1,).
        documents: document of each window, ascending, shape (W,).
        segments: segment of each piece where documents are pairs of texts, shape (P,), or None.
        spare: of each window the pieces that follow it in its document and their types, nearest first, at most SPARE; those
            before it where the tokenizer keeps the end. Empty where documents are pairs of texts.
        keep_end: whether it does.
        inner: for each word type the pieces that it is most often written with.
        forms: these with special tokens around them.
        long_documents: documents longer than one window.
        lost_pieces, all_pieces: pieces cut off, and pieces of the documents, special tokens apart.
    """

    pieces: NDArray[np.int32]
    types: NDArray[np.int32]
    starts: Ints
    documents: Ints
    inner: list[tuple[int, ...]]
    forms: list[Input]
    long_documents: int
    lost_pieces: int
    all_pieces: int
    segments: NDArray[np.int32] | None = None
    spare: tuple[tuple[NDArray[np.int32], NDArray[np.int32]], ...] = ()
    keep_end: bool = False

    def __len__(self) -> int:
        return len(self.documents)

    def input(self, window: int) -> Input:
        """One window."""
        at = slice(self.starts[window], self.starts[window + 1])
        return Input(self.pieces[at], None if self.segments is None else self.segments[at])

    def of_documents(self, documents: Ints) -> Windows:
        """The windows of some documents."""
        kept = np.isin(self.documents, documents)
        pieces = np.repeat(kept, np.diff(self.starts))
        return replace(
            self,
            pieces=self.pieces[pieces],
            types=self.types[pieces],
            documents=self.documents[kept],
            starts=np.r_[0, np.cumsum(np.diff(self.starts)[kept])],
            segments=None if self.segments is None else self.segments[pieces],
            spare=tuple(one for one, there in zip(self.spare, kept, strict=False) if there),
        )

    def of_words(self, words: Ints) -> Windows:
        """The same with a smaller vocabulary: some of the word types, ascending; the pieces of others become REST."""
        place = np.full(len(self.inner), REST, dtype=np.int32)
        place[words] = np.arange(len(words))

        def renamed(types: NDArray[np.int32]) -> NDArray[np.int32]:
            return np.where(types >= 0, place[np.maximum(types, 0)], types).astype(np.int32)

        return replace(
            self,
            types=renamed(self.types),
            inner=[self.inner[s] for s in words],
            forms=[self.forms[s] for s in words],
            spare=tuple((ids, renamed(types)) for ids, types in self.spare),
        )

    def without(self, window: int, words: Ints) -> Input:
        """One window after leaving out every occurrence of some word types; what follows in a longer document moves up, as it
        would if the words were cut out of the text, so that the input stays as long as it was."""
        at = slice(self.starts[window], self.starts[window + 1])
        types = self.types[at]
        kept = ~np.isin(types, words)
        left = self.pieces[at][kept]
        if self.segments is not None:
            return Input(left, self.segments[at][kept])
        missing, text = len(types) - len(left), np.flatnonzero(types != SPECIAL)
        if not missing or not self.spare:
            return Input(left)
        pieces, kinds = self.spare[window]
        more = pieces[~np.isin(kinds, words)][:missing]
        place = kept[: text[0] if self.keep_end else text[-1] + 1].sum()
        return Input(np.insert(left, place, more[::-1] if self.keep_end else more))

    def having(self, window: int, word: int, place: float) -> Input:
        """One window after putting a word before another, the one at a share `place` of its words. What no longer fits into the
        longest window falls away: in front of the last piece, from which some models read, or at the beginning."""
        at = slice(self.starts[window], self.starts[window + 1])
        pieces, types = self.pieces[at], self.types[at]
        segments = np.zeros(len(pieces), dtype=np.int32) if self.segments is None else self.segments[at]
        words = np.flatnonzero((types >= 0) & (types != np.r_[SPECIAL, types[:-1]]))
        if not len(words):
            return self.input(window)
        new, where = self.inner[word], int(words[int(place * len(words))])
        pieces, types = np.insert(pieces, where, new), np.insert(types, where, np.full(len(new), word))
        segments = np.insert(segments, where, np.full(len(new), segments[where]))
        over = max(len(pieces) - int(np.diff(self.starts).max()), 0)
        old = np.flatnonzero((types != SPECIAL) & (types != word))
        gone = old[:over] if self.keep_end else old[max(len(old) - 1 - over, 0) : -1]
        left = np.delete(pieces, gone)
        return Input(left, None if self.segments is None else np.delete(segments, gone))

    @classmethod
    def encode(
        cls,
        tokenizer: Any,
        texts: pl.Series,
        splitter: Tokenizer,
        words: tuple[str, ...],
        frame: Frame,
        limit: int | None,
        cut: bool,
        progress: Progress,
    ) -> Windows:
        """Encode every text, with the word type of every piece.

        Args:
            tokenizer: a fast Hugging Face tokenizer.
            texts: n documents; pairs with SEPARATOR between their texts.
            splitter: what a word is.
            words: the vocabulary; a word's type is its place there.
            frame: the special tokens of one input.
            limit: pieces of an input, special tokens included; None for no limit.
            cut: keep one window of a longer document (the side that the tokenizer keeps) instead of all of them. Pairs are
                always cut, the longer text first.
            progress: called with (stage, fraction done).
        """
        room = None if limit is None else limit - frame.size
        keep_end = getattr(tokenizer, "truncation_side", "right") == "left"
        place = {word: i for i, word in enumerate(words)}
        forms: list[Counter[tuple[int, ...]]] = [Counter() for _ in words]
        made: list[list[Run]] = []
        documents, spare = [], []
        long = lost = total = 0
        empty = np.empty(0, dtype=np.int32)
        chunk_size = 256
        for start in range(0, len(texts), chunk_size):
            chunk = texts[start : start + chunk_size].to_list()
            spans = _spans(splitter, chunk)
            for k, (ids, offsets, seconds) in enumerate(_encoded(tokenizer, chunk, frame.middle is not None)):
                types = _types(offsets, spans[k], place, ids, forms)
                total += len(ids)
                if frame.middle is not None:
                    types[: seconds * frame.prompted] = SPECIAL
                    first, second = _shorten(seconds, len(ids) - seconds, room)
                    long += first + second < len(ids)
                    lost += len(ids) - first - second
                    b = slice(seconds, seconds + second)
                    left = [(frame.before, ids[:first], types[:first], 0), (frame.middle, empty, empty, 0)]
                    made.append([*left, ([], ids[b], types[b], 1), (frame.after, empty, empty, 1)])
                    documents.append(start + k)
                    continue
                parts = _parts(len(ids), room)
                long += len(parts) > 1
                if cut and len(parts) > 1:
                    parts = [(len(ids) - (room or 0), len(ids)) if keep_end else parts[0]]
                    lost += len(ids) - (parts[0][1] - parts[0][0])
                for a, z in parts:
                    made.append([(frame.before, ids[a:z], types[a:z], 0), (frame.after, empty, empty, 0)])
                    documents.append(start + k)
                    after = np.arange(z, min(z + _SPARE, len(ids)))
                    near = np.arange(a - 1, max(a - 1 - _SPARE, -1), -1) if keep_end else after
                    spare.append((ids[near], types[near]))
            progress("encoding", min(start + chunk_size, len(texts)) / len(texts))
        # of equally frequent spellings the first seen
        inner = [seen.most_common(1)[0][0] if seen else () for seen in forms]
        pieces, types, segments = (np.concatenate([one[i] for one in map(_joined, made)]) for i in range(3))
        lengths = [sum(len(special) + len(ids) for special, ids, _, _ in runs) for runs in made]
        return cls(
            pieces=pieces,
            types=types,
            starts=np.cumsum([0, *lengths]),
            documents=np.asarray(documents),
            inner=inner,
            forms=[frame.around(one) for one in inner],
            long_documents=long,
            lost_pieces=lost,
            all_pieces=total,
            segments=segments if frame.segmented else None,
            spare=tuple(spare),
            keep_end=keep_end,
        )


def _joined(runs: list[Run]) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Ids, types and segments of one window, special tokens included."""
    ids = np.concatenate([np.array([*special, *ids], dtype=np.int32) for special, ids, _, _ in runs])
    types = np.concatenate([np.r_[np.full(len(special), SPECIAL), types] for special, _, types, _ in runs])
    segments = np.concatenate([np.full(len(special) + len(ids), s) for special, ids, _, s in runs])
    return ids, types.astype(np.int32), segments.astype(np.int32)


def _encoded(
    tokenizer: Any, chunk: list[str], paired: bool
) -> Iterator[tuple[NDArray[np.int32], list[tuple[int, int]], int]]:
    """Of each text its piece ids, their offsets, and where the pieces of the second of two texts begin."""
    sides = [text.partition(SEPARATOR)[::2] for text in chunk] if paired else [(text, "") for text in chunk]
    ask = partial(tokenizer, add_special_tokens=False, return_offsets_mapping=True, truncation=False, verbose=False)
    found = [ask([side[i] for side in sides]) for i in range(1 + paired)]
    for k in range(len(chunk)):
        ids, offsets = list(found[0]["input_ids"][k]), list(found[0]["offset_mapping"][k])
        seconds, shift = len(ids), len(sides[k][0]) + 1
        if paired:
            ids += found[1]["input_ids"][k]
            offsets += [(a + shift, z + shift) for a, z in found[1]["offset_mapping"][k]]
        yield np.asarray(ids, dtype=np.int32), offsets, seconds


def _spans(splitter: Tokenizer, texts: list[str]) -> list[list[tuple[int, int, str]]]:
    """Each text's words with their place; all texts in one call where no word reaches across lines."""
    if splitter != SPLITTER:
        return [splitter.spans(text) for text in texts]
    out: list[list[tuple[int, int, str]]] = []
    found, at = iter([*splitter.spans("\n".join(texts)), (sum(map(len, texts)) + len(texts), 0, "")]), 0
    start, end, word = next(found)
    for text in texts:
        out.append([])
        while start < at + len(text):
            out[-1].append((start - at, end - at, word))
            start, end, word = next(found)
        at += len(text) + 1
    return out


def _shorten(first: int, second: int, room: int | None) -> tuple[int, int]:
    """Lengths of two texts that fit, cut from the longer."""
    over = 0 if room is None else max(first + second - room, 0)
    while over:
        step = max(1, min(over, abs(first - second)))
        first, second = (first - step, second) if first >= second else (first, second - step)
        over -= step
    return first, second


def _types(
    offsets: list[tuple[int, int]],
    spans: list[tuple[int, int, str]],
    place: dict[str, int],
    ids: NDArray[np.int32],
    forms: list[Counter[tuple[int, ...]]],
) -> NDArray[np.int32]:
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
        forms[types[a]][tuple(mine[a:z])] += 1
    return out


def _parts(length: int, room: int | None) -> list[tuple[int, int]]:
    """Consecutive windows of at most `room` pieces; one, empty, for an empty text."""
    if room is None or length <= room:
        return [(0, length)]
    return [(a, min(a + room, length)) for a in range(0, length, room)]
