"""Spellings of one thing: 7/10 and 10/10, two dates, two amounts have one shape.

In the shape of a word every run of digits is 0, and so is a number word in a rating ("ten out of
ten"). A family is what words of one shape have in common: it is asked about as if it were one word.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from tokensieve.text.vocabulary import TokenStream

NUMBER_WORDS = "zero one two three four five six seven eight nine ten".split()
DIGITS = re.compile(r"\d+")
RATING = re.compile(r"\d+(?:[.,]\d+)?/(5|10|100)")  # the scale is not part of what differs
ADDRESS = re.compile(r"(?:https?://|www\.)\S+|\S+@\S+\.\S+")
ANY_NUMBER = "0"


def shape_of(word: str) -> str:
    """The shape of a word: n/10 of 7/10, 0 of 2031, $0 of $20, v0.0 of v1.2, the word itself of
    others.
    """
    rating = RATING.fullmatch(word)
    if rating:
        return f"n/{rating[1]}"
    if ADDRESS.fullmatch(word):
        return "e-mail-address" if "@" in word else "web-address"
    if word in NUMBER_WORDS:
        return ANY_NUMBER
    return DIGITS.sub("0", word)


def shaped(stream: TokenStream) -> TokenStream:
    """The same texts with the shapes of their words."""
    shapes = [shape_of(word) for word in stream.words]
    words, shape_of_word = np.unique(np.array(shapes, dtype=object), return_inverse=True)
    ids = shape_of_word[stream.ids].astype(np.int32)
    return TokenStream(ids, stream.starts, [str(word) for word in words])


def is_family(words: tuple[str, ...]) -> bool:
    """Whether a word or run of shapes stands for several spellings; a mere number is ⟨number⟩."""
    return words != (ANY_NUMBER,) and any(
        "0" in word or word.startswith("n/") or word.endswith("-address") for word in words
    )


def stands_for_several(words: tuple[str, ...]) -> bool:
    """Whether words that a person wrote are shapes of a family: `0:0` is, `10:30` and `10` are
    not."""
    are_shapes = all(
        shape_of(word) == word or word.startswith("n/") or word.endswith("-address")
        for word in words
    )
    return are_shapes and is_family(words)


def common_beginning(words: Sequence[str]) -> str:
    """What all of some words begin with."""
    first = min(words)
    last = max(words)  # whatever these two share, those between them share
    n_shared = 0
    while n_shared < min(len(first), len(last)) and first[n_shared] == last[n_shared]:
        n_shared += 1
    return first[:n_shared]
