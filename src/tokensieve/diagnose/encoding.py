"""Words and word pieces of the same text, joined through character offsets, in windows that the model can take.

A piece belongs to the first word that it reaches into. Pieces of words outside the vocabulary and of punctuation are REST,
the model's own tokens (`[CLS]`, `</s>`, …) are SPECIAL; neither ever counts as a word.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tokensieve.errors import InputError
from tokensieve.progress import Progress
from tokensieve.text.counts import Ints
from tokensieve.text.tokenizers import Tokenizer

REST, SPECIAL = -1, -2
CHUNK = 256
VERY_LARGE = 10**6  # a tokenizer without a limit names a larger number than any model has


@dataclass(frozen=True)
class Windows:
    """n documents as W ≥ n runs of pieces, each a whole input of the model.

    Attributes:
        pieces: piece ids of all windows, one after the other, special tokens included, shape (P,).
        types: word type of each piece, or REST or SPECIAL, shape (P,).
        starts: where each window begins, shape (W+1,).
        documents: document of each window, ascending, shape (W,).
        forms: for each word type the pieces that it is most often written with, special tokens around them.
        long_documents: documents longer than one window.
        lost_pieces, all_pieces: pieces cut off, and pieces of the documents, special tokens apart.
    """

    pieces: NDArray[np.int32]
    types: NDArray[np.int32]
    starts: Ints
    documents: Ints
    forms: list[NDArray[np.int32]]
    long_documents: int
    lost_pieces: int
    all_pieces: int

    def __len__(self) -> int:
        return len(self.documents)

    def ids(self, window: int) -> NDArray[np.int32]:
        """Piece ids of one window."""
        return np.asarray(self.pieces[self.starts[window] : self.starts[window + 1]])

    def without(self, window: int, word: int) -> NDArray[np.int32]:
        """Piece ids of one window after deleting every occurrence of one word type."""
        at = slice(self.starts[window], self.starts[window + 1])
        return np.asarray(self.pieces[at][self.types[at] != word])

    def held(self) -> tuple[Ints, Ints]:
        """Distinct (word type, window) pairs, ordered by window, shapes (m,)."""
        windows = np.repeat(np.arange(len(self)), np.diff(self.starts))
        there = self.types >= 0
        n_types = len(self.forms)
        pairs = np.unique(windows[there] * n_types + self.types[there])
        return pairs % n_types, pairs // n_types


def frame_of(tokenizer: Any) -> tuple[list[int], list[int]]:
    """The special tokens that the tokenizer puts before and after a text.

    Raises:
        InputError: the tokenizer gives no offsets.
    """
    if not getattr(tokenizer, "is_fast", False):
        raise InputError(
            f"the tokenizer {type(tokenizer).__name__} gives no character offsets: save a fast one (tokenizer.json) "
            "beside the model"
        )
    probe = tokenizer("a", return_special_tokens_mask=True)
    ids, special = probe["input_ids"], probe["special_tokens_mask"]
    text = [i for i, mark in enumerate(special) if not mark]
    first, last = (text[0], text[-1] + 1) if text else (len(ids), len(ids))
    return list(ids[:first]), list(ids[last:])


def length_limit(model: Any, tokenizer: Any, asked: int | None) -> int | None:
    """Pieces that one input may have, special tokens included; None where nothing limits them.

    The smallest of what was asked, the tokenizer's `model_max_length` and the model's `max_position_embeddings`. A table
    of positions with a padding row starts counting behind that row (RoBERTa), which shortens it.

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
    frame = sum(map(len, frame_of(tokenizer)))
    if limit is not None and limit < frame + 2:
        raise InputError(
            f"inputs of {limit} pieces leave no room for text beside {frame} special tokens: use a larger --max-length"
        )
    return limit


def encode(
    tokenizer: Any, texts: pl.Series, splitter: Tokenizer, words: tuple[str, ...], limit: int | None, cut: bool,
    progress: Progress,
) -> Windows:  # fmt: skip
    """Encode every text, with the word type of every piece.

    Args:
        tokenizer: a fast Hugging Face tokenizer.
        texts: n documents.
        splitter: what a word is.
        words: the vocabulary; a word's type is its place there.
        limit: pieces of an input, special tokens included; None for no limit.
        cut: keep one window of a longer document (the side that the tokenizer keeps) instead of all of them.
        progress: called with (stage, share done).

    Raises:
        InputError: the tokenizer gives no offsets.
    """
    before, after = frame_of(tokenizer)
    room = None if limit is None else limit - len(before) - len(after)
    keep_end = getattr(tokenizer, "truncation_side", "right") == "left"
    place = {word: i for i, word in enumerate(words)}
    forms: list[Counter[tuple[int, ...]]] = [Counter() for _ in words]
    pieces, types, lengths, documents = [], [], [], []
    long_documents = lost = total = 0
    for start in range(0, len(texts), CHUNK):
        chunk = texts[start : start + CHUNK].to_list()
        encoded = tokenizer(
            chunk, add_special_tokens=False, return_offsets_mapping=True, truncation=False, verbose=False
        )
        for k, text in enumerate(chunk):
            ids = np.asarray(encoded["input_ids"][k], dtype=np.int32)
            kinds = _types(encoded["offset_mapping"][k], splitter.spans(text), place, ids, forms)
            parts = _parts(len(ids), room)
            total += len(ids)
            long_documents += len(parts) > 1
            if cut and len(parts) > 1:
                parts = [(len(ids) - (room or 0), len(ids)) if keep_end else parts[0]]
                lost += len(ids) - (parts[0][1] - parts[0][0])
            for a, b in parts:
                pieces.append(np.concatenate([before, ids[a:b], after]).astype(np.int32))
                types.append(np.pad(kinds[a:b], (len(before), len(after)), constant_values=SPECIAL))
                lengths.append(len(pieces[-1]))
                documents.append(start + k)
        progress("encoding", min(start + CHUNK, len(texts)) / len(texts))
    return Windows(
        np.concatenate(pieces), np.concatenate(types).astype(np.int32), np.cumsum([0, *lengths]),
        np.asarray(documents), [_form(c, before, after) for c in forms], long_documents, lost, total,
    )  # fmt: skip


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
    for group in np.split(at, np.flatnonzero(np.diff(which[at])) + 1):
        if len(group):
            forms[out[group[0]]][tuple(ids[group].tolist())] += 1
    return out


def _parts(length: int, room: int | None) -> list[tuple[int, int]]:
    """Consecutive windows of at most `room` pieces; one, empty, for an empty text."""
    if room is None or length <= room:
        return [(0, length)]
    return [(a, min(a + room, length)) for a in range(0, length, room)]


def _form(seen: Counter[tuple[int, ...]], before: list[int], after: list[int]) -> NDArray[np.int32]:
    """The most frequent spelling (of equally frequent ones the first seen) as an input of its own."""
    inner = seen.most_common(1)[0][0] if seen else ()
    return np.array([*before, *inner, *after], dtype=np.int32)
