"""Spellings of one thing: 7/10 and 10/10, two dates, two amounts have one shape.

In the shape of a word every run of digits is 0, and so is a number word in a rating ("ten out of
ten"). A family is what words of one shape have in common: it is asked about as if it were one word.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from tokensieve.arrays import Ints
from tokensieve.text.vocabulary import TokenStream

NUMBER_WORDS = frozenset("zero one two three four five six seven eight nine ten".split())
DIGITS = re.compile(r"\d+")
# the scale is not part of what differs; a shape has itself as its shape
RATING = re.compile(r"(?:\d+(?:[.,]\d+)?|n)/(5|10|100)")
WEB_ADDRESS = re.compile(r"(?:https?://|www\.)\S+")
ANY_NUMBER = "0"
COUNTS = (ANY_NUMBER, "0.0", "0,0")  # shapes of the first number of a rating
SCALES = {"5": ("5", "five"), "10": ("10", "ten"), "100": ("100", "hundred")}
LETTER = re.compile(r"[^\W\d_]")


def without_field(token: str) -> str:
    """A word without the name of its field, which may have digits of its own.

    The field stands before the first colon, as in title:word or 1:word; 13:45 and https:// have
    none. The time is linear in the length, as a token may be a megabyte long.
    """
    name, colon, word = token.partition(":")
    if not colon:
        return token
    is_named = LETTER.search(name) is not None and not word.startswith("/")
    is_numbered = name != "" and LETTER.match(word) is not None
    return word if is_named or is_numbered else token


def shape_of(word: str) -> str:
    """The shape of a word: n/10 of 7/10, 0 of 2031, $0 of $20, v0.0 of v1.2, the word itself of
    others. The field of a word keeps its name.
    """
    if word.isalpha():  # as most are: no digit, no sign, no field
        return ANY_NUMBER if word in NUMBER_WORDS else word
    return _shape_of_mixed(word)


@lru_cache(maxsize=100_000)  # the words of a large vocabulary, asked for in every text
def _shape_of_mixed(word: str) -> str:
    bare = without_field(word)
    return word.removesuffix(bare) + _shape_of_bare(bare)


def _is_e_mail_address(word: str) -> bool:
    """Whether a word has a sign @ and, behind it and something else, a dot before its last sign.

    A pattern that says so takes quadratic time for a word of many "@".
    """
    at = word.find("@", 1)
    has_dot = at > 0 and word.find(".", at + 2, len(word) - 1) > 0
    return has_dot and not any(map(str.isspace, word))


def _shape_of_bare(word: str) -> str:
    """The shape of a word without the marks around it: "8/10" is "n/10", "b2b" is "b0b"."""
    rating = RATING.fullmatch(word)
    if rating:
        return f"n/{rating[1]}"
    if _is_e_mail_address(word):
        return "e-mail-address"
    if WEB_ADDRESS.fullmatch(word):
        return "e-mail-address" if "@" in word else "web-address"
    if word in NUMBER_WORDS:
        return ANY_NUMBER
    return DIGITS.sub("0", word)


def shaped(stream: TokenStream) -> TokenStream:
    """The same texts with the shapes of their words; the 7 of "7 out of 10" has that of 7/10."""
    shapes = [shape_of(word) for word in stream.words]
    ratings = [f"n/{scale}" for scale in SCALES]
    words, shape_of_word = np.unique(
        np.array([*shapes, *ratings], dtype=object), return_inverse=True
    )
    ids = shape_of_word[: len(shapes)].astype(np.int32)[stream.ids]
    for scale, rating in zip(SCALES, shape_of_word[len(shapes) :].tolist(), strict=True):
        ids[rated_in_words(stream, shapes, scale)] = rating
    return TokenStream(ids, stream.starts, [str(word) for word in words])


def rated_in_words(stream: TokenStream, shapes: Sequence[str], scale: str) -> Ints:
    """The positions of the numbers in "7 out of 10" or "seven out of ten", for one scale."""
    of_rating = (
        [shape in COUNTS for shape in shapes],
        [word == "out" for word in stream.words],
        [word == "of" for word in stream.words],
        [word in SCALES[scale] for word in stream.words],
    )
    n_begins = max(len(stream.ids) - len(of_rating) + 1, 0)
    begins = np.flatnonzero(np.array(of_rating[0], dtype=bool)[stream.ids[:n_begins]])
    for distance, is_word in enumerate(of_rating[1:], start=1):
        begins = begins[np.array(is_word, dtype=bool)[stream.ids[begins + distance]]]
    document = np.searchsorted(stream.starts, begins, side="right")
    document_at_end = np.searchsorted(stream.starts, begins + len(of_rating) - 1, side="right")
    within_one_document: Ints = begins[document == document_at_end]
    return within_one_document


def is_family(words: tuple[str, ...]) -> bool:
    """Whether a word or run of shapes stands for several spellings; a mere number is ⟨number⟩."""
    bare = tuple(map(without_field, words))
    return bare != (ANY_NUMBER,) and any(
        "0" in word or word.startswith("n/") or word.endswith("-address") for word in bare
    )


def stands_for_several(words: tuple[str, ...]) -> bool:
    """Whether words that a person wrote are shapes of a family: `0:0` is, `10:30` and `10` are
    not."""
    are_shapes = all(shape_of(word) == word for word in words)
    return are_shapes and is_family(words)


def common_beginning(words: Sequence[str]) -> str:
    """What all of some words begin with."""
    first = min(words)
    last = max(words)  # whatever these two share, those between them share
    n_shared = 0
    while n_shared < min(len(first), len(last)) and first[n_shared] == last[n_shared]:
        n_shared += 1
    return first[:n_shared]
