"""Which document each copy repeats itself, without another copy between the two.

Near duplicates are joined by chains: if B differs from A in one word, and C from B in another, all
three are one group, although C and A differ in two. What a page says of a pair must hold of it, so
the documents of a group are compared here one by one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import polars as pl

from tokensieve.arrays import Ints
from tokensieve.evidence.duplicates import MIN_JACCARD, SHINGLE
from tokensieve.evidence.word_edits import MAX_WORDS, MIN_WORDS_ADDED, MIN_WORDS_MOVED

NO_ORIGINAL = -1
MAX_COMPARED = 200  # documents of a group, so that a million copies of one text stay quick

Words = tuple[str, ...]


def direct_originals(first: Ints, words: pl.Series, n_training: int) -> Ints:
    """Find for each document the first one that it repeats itself, or `NO_ORIGINAL`, shape (n,).

    Args:
        first: the first document of each one's group (`near_duplicates`), training documents first.
        words: the words of the documents that are in a group with others, in their order.
        n_training: number of training documents. A training document repeats earlier ones; a test
            document repeats training documents.
    """
    originals = np.full(len(first), NO_ORIGINAL, dtype=np.int64)
    sizes = np.bincount(first, minlength=len(first))
    grouped = np.flatnonzero(sizes[first] > 1).tolist()
    earlier_of_group: dict[int, list[tuple[int, Words]]] = defaultdict(list)
    for document, listed in zip(grouped, words.to_list(), strict=True):
        own = tuple(listed)
        earlier = earlier_of_group[int(first[document])]
        for original, other in earlier[:MAX_COMPARED]:
            if nearly_same(own, other):
                originals[document] = original
                break
        if document < n_training:
            earlier.append((document, own))
    return originals


def nearly_same(a: Words, b: Words) -> bool:
    """Whether two texts have the same words but for one, or most of their word sequences."""
    if a == b:
        return True
    return differ_in_one_word(a, b) or shared_fraction(a, b) >= MIN_JACCARD


def differ_in_one_word(a: Words, b: Words) -> bool:
    """Whether a word was added or removed, or in longer texts replaced or moved.

    The lengths from which that counts are those of `word_edits`.
    """
    short, long = sorted((a, b), key=len)
    if not MIN_WORDS_ADDED <= len(long) <= MAX_WORDS or len(long) - len(short) > 1:
        return False
    start = _n_common(short, long)
    end = _n_common(short[start:][::-1], long[start:][::-1])
    if len(short) < len(long):
        return start + end == len(short)
    if len(long) < MIN_WORDS_MOVED:
        return False
    left = short[start : len(short) - end]
    right = long[start : len(long) - end]
    is_moved = left[1:] + left[:1] == right or left[-1:] + left[:-1] == right
    return len(left) == 1 or is_moved


def shared_fraction(a: Words, b: Words) -> float:
    """The Jaccard index of the three-word sequences of two texts."""
    in_a = _sequences(a)
    in_b = _sequences(b)
    return len(in_a & in_b) / max(len(in_a | in_b), 1)


def _sequences(words: Words) -> set[Words]:
    n_sequences = max(len(words) - SHINGLE + 1, 1)
    return {words[start : start + SHINGLE] for start in range(n_sequences)}


def _n_common(a: Sequence[str], b: Sequence[str]) -> int:
    """The number of words that both texts begin with."""
    for place, (left, right) in enumerate(zip(a, b, strict=False)):
        if left != right:
            return place
    return min(len(a), len(b))
