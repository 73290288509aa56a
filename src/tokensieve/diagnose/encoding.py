"""Words and word pieces of the same text, joined through character offsets, in windows that the model can take.

A piece belongs to the first word that it reaches into. Pieces of words outside the vocabulary and of punctuation are REST,
the model's own tokens (`[CLS]`, `</s>`, …) are SPECIAL; neither ever counts as a word. A pair of texts is one document, with
SEPARATOR between its parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
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
SPLITTER = WordTokenizer(
    line_breaks=False, html="keep", pattern=WORD + r"|[^\w\s\x1f]"
)  # punctuation too: a model may lean on it
CHUNK = 256
SPARE = 64  # pieces kept of those behind a window, which move up where a word is left out
VERY_LARGE = 10**6  # a tokenizer without a limit names a larger number than any model has


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

    @property
    def size(self) -> int:
        """Special tokens of one input."""
        return len(self.before) + len(self.after) + len(self.middle or [])


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

    def some(self, documents: Ints) -> Windows:
        """The windows of some documents."""
        kept = np.isin(self.documents, documents)
        pieces = np.repeat(kept, np.diff(self.starts))
        return replace(
            self, pieces=self.pieces[pieces], types=self.types[pieces], documents=self.documents[kept],
            starts=np.r_[0, np.cumsum(np.diff(self.starts)[kept])],
            segments=None if self.segments is None else self.segments[pieces],
            spare=tuple(one for one, there in zip(self.spare, kept, strict=False) if there),
        )  # fmt: skip

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


def frame_of(tokenizer: Any, paired: bool = False) -> Frame:
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
        return Frame(ids[:first], ids[last:])
    single = tokenizer("a", add_special_tokens=False)["input_ids"]
    inner = slice(first + len(single), last - len(single))
    return Frame(ids[:first], ids[last:], ids[inner], "token_type_ids" in tokenizer.model_input_names)


def length_limit(model: Any, tokenizer: Any, asked: int | None, frame: Frame) -> int | None:
    """Pieces that one input may have, special tokens included; None where nothing limits them.

    The smallest of what was asked, the tokenizer's `model_max_length` and the model's `max_position_embeddings`. A table
    of positions with a padding row starts counting behind that row (RoBERTa), which shortens it.

    Args:
        model: a transformer.
        tokenizer: its tokenizer.
        asked: a limit of the caller's, or None.
        frame: the special tokens of one input.

    Raises:
        InputError: less than two pieces beside the special tokens would be left.
    """
    limits = [asked] if asked is not None else []
    if tokenizer.model_max_length < VERY_LARGE:
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
    if limit is not None and limit < frame.size + 2:
        raise InputError(
            f"inputs of {limit} pieces leave no room for text beside {frame.size} special tokens: use a larger --max-length"
        )
    return limit


@dataclass
class _Growing:
    """Windows while they are made."""

    pieces: list[NDArray[np.int32]] = field(default_factory=list)
    types: list[NDArray[np.int32]] = field(default_factory=list)
    segments: list[NDArray[np.int32]] = field(default_factory=list)
    documents: list[int] = field(default_factory=list)
    spare: list[tuple[NDArray[np.int32], NDArray[np.int32]]] = field(default_factory=list)
    long: int = 0
    lost: int = 0
    total: int = 0

    def add(self, document: int, runs: list[tuple[list[int], NDArray[np.int32], NDArray[np.int32], int]]) -> None:
        """One window: (special tokens before, ids, types, segment) of each run, the last with no ids of text."""
        self.pieces.append(np.concatenate([np.array([*special, *ids], dtype=np.int32) for special, ids, _, _ in runs]))
        marks = [np.r_[np.full(len(special), SPECIAL), types] for special, _, types, _ in runs]
        self.types.append(np.concatenate(marks).astype(np.int32))
        self.segments.append(
            np.concatenate([np.full(len(special) + len(ids), s, dtype=np.int32) for special, ids, _, s in runs])
        )
        self.documents.append(document)


def encode(
    tokenizer: Any, texts: pl.Series, splitter: Tokenizer, words: tuple[str, ...], frame: Frame, limit: int | None, cut: bool,
    progress: Progress,
) -> Windows:  # fmt: skip
    """Encode every text, with the word type of every piece.

    Args:
        tokenizer: a fast Hugging Face tokenizer.
        texts: n documents; pairs with SEPARATOR between their texts.
        splitter: what a word is.
        words: the vocabulary; a word's type is its place there.
        frame: the special tokens of one input.
        limit: pieces of an input, special tokens included; None for no limit.
        cut: keep one window of a longer document (the side that the tokenizer keeps) instead of all of them. Pairs are always
            cut, the longer text first.
        progress: called with (stage, share done).
    """
    room = None if limit is None else limit - frame.size
    keep_end = getattr(tokenizer, "truncation_side", "right") == "left"
    place = {word: i for i, word in enumerate(words)}
    forms: list[Counter[tuple[int, ...]]] = [Counter() for _ in words]
    out, empty = _Growing(), np.empty(0, dtype=np.int32)
    for start in range(0, len(texts), CHUNK):
        chunk = texts[start : start + CHUNK].to_list()
        spans = _spans(splitter, chunk)
        for k, (ids, offsets, seconds) in enumerate(_encoded(tokenizer, chunk, frame.middle is not None)):
            kinds = _types(offsets, spans[k], place, ids, forms)
            out.total += len(ids)
            if frame.middle is not None:
                kinds[: seconds * frame.prompted] = SPECIAL
                first, second = _shorten(seconds, len(ids) - seconds, room)
                out.long += first + second < len(ids)
                out.lost += len(ids) - first - second
                b = slice(seconds, seconds + second)
                runs = [(frame.before, ids[:first], kinds[:first], 0), (frame.middle, empty, empty, 0),
                        ([], ids[b], kinds[b], 1), (frame.after, empty, empty, 1)]  # fmt: skip
                out.add(start + k, runs)
                continue
            parts = _parts(len(ids), room)
            out.long += len(parts) > 1
            if cut and len(parts) > 1:
                parts = [(len(ids) - (room or 0), len(ids)) if keep_end else parts[0]]
                out.lost += len(ids) - (parts[0][1] - parts[0][0])
            for a, z in parts:
                out.add(start + k, [(frame.before, ids[a:z], kinds[a:z], 0), (frame.after, empty, empty, 0)])
                near = (
                    np.arange(a - 1, max(a - 1 - SPARE, -1), -1) if keep_end else np.arange(z, min(z + SPARE, len(ids)))
                )
                out.spare.append((ids[near], kinds[near]))
        progress("encoding", min(start + CHUNK, len(texts)) / len(texts))
    # of equally frequent spellings the first seen
    inner = [seen.most_common(1)[0][0] if seen else () for seen in forms]
    return Windows(
        np.concatenate(out.pieces), np.concatenate(out.types), np.cumsum([0, *map(len, out.pieces)]),
        np.asarray(out.documents), inner, [_form(pieces, frame) for pieces in inner], out.long, out.lost, out.total,
        np.concatenate(out.segments) if frame.segmented else None, tuple(out.spare), keep_end,
    )  # fmt: skip


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


def _form(inner: tuple[int, ...], frame: Frame) -> Input:
    """A word as an input of its own."""
    between = frame.middle or []
    sides = [*between, *inner] if frame.prompted else [*inner, *between]
    ids = [*frame.before, *sides, *frame.after]
    return Input(np.array(ids, dtype=np.int32), np.zeros(len(ids), dtype=np.int32) if frame.segmented else None)
