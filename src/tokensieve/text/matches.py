"""Where regular expressions match in one text, in characters, and texts that remember where their
characters stood.

Polars has regular expressions for whole columns and compiles them anew for each call, which takes
20 ms for `WORD`. For one text at a time there are twins in Python for texts of ASCII, and for those
that look like ASCII to the pattern: of 2,000 reviews, `spans` takes 3.4 s with both kinds of twins,
8.4 s without those of markup, and 41 s without any. A test compares each with Polars
(tests/text/test_vocabulary.py).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import polars as pl

from tokensieve.text.patterns import APOSTROPHE, DOTTED_I, LINE_BREAK, MARKUP, SKIPPED, WORD

Span = tuple[int, int]


class TokenSpan(NamedTuple):
    """A token with its place, in characters of the text."""

    start: int
    end: int
    token: str


ANY_SIGN = r"|[^\w\s\x1f]"  # a word, or else any sign: the pattern of the checks for signs
_ASCII_WORD = (
    r"(?:https?://|www\.)[^\s<>\"]*[^\s<>\"'.,;:!?)\]}]"
    r"|\w[\w.+\-]*@\w+(?:[.\-]\w+)*\.[A-Za-z]{2,}"
    r"|(?:[A-Za-z]\.){2,}"
    r"|\$?\d\w*(?:[.,:/]\d\w*)*(?:'\w+)*%?"
    r"|v\d+(?:\.\d+)+"
    r"|\w+\+\+"
    r"|\w+(?:'\w+)*"
)
# `WORD`, alone and with any sign, for texts in ASCII or its stand-ins
WORD_TWINS = {
    WORD: re.compile(_ASCII_WORD, re.ASCII),
    WORD + ANY_SIGN: re.compile(_ASCII_WORD + ANY_SIGN, re.ASCII),
}
# patterns of markup mean the same in ASCII to both libraries
MARKUP_TWINS = {
    pattern: re.compile(pattern, re.ASCII) for pattern in (SKIPPED, APOSTROPHE, MARKUP, LINE_BREAK)
}
# these look for no white space but that of ASCII, so that other characters do not matter
_WITHOUT_WHITE_SPACE = (APOSTROPHE, SKIPPED)
MAX_TWIN_LENGTH = 10_000  # characters; Python's engine could search longer texts for minutes
# characters outside ASCII that differ from their category's stand-in
_SAME_AS = {"’": "'", "£": "$", "¥": "$", "‰": "%", "…": "!", "”": "!"}
_SAME_AS_CATEGORY = {"Nd": "0", "Pc": "_", "Cn": "\x80"}
_SAME_AS_KIND = {"L": "a", "M": "_"}
_OTHER_SIGN = "\x7f"
# pictographs, and letters whose lower case has another length or depends on its neighbours
_WITHOUT_STAND_IN = "©®‼⁉İſΣσς"
_EUROPEAN_BLOCKS = (range(128, 0x530), range(0x2010, 0x2060))
_PRIVATE_USE = range(0xE000, 0x110000)


@dataclass
class PlacedText:
    """A text that may have been changed, and where each of its characters begins and ends in the
    text as given."""

    text: str
    starts: Sequence[int]
    ends: Sequence[int]

    @classmethod
    def of(cls, text: str) -> PlacedText:
        """The text as given."""
        return cls(text, range(len(text)), range(1, len(text) + 1))

    def replaced(self, spans: Sequence[Span], replacement: Callable[[str], str]) -> PlacedText:
        """The text with something else in each span, all of which begins and ends where the span
        does."""
        parts = []
        starts: list[int] = []
        ends: list[int] = []
        done = 0
        for start, end in spans:
            parts.append(self.text[done:start])
            starts += self.starts[done:start]
            ends += self.ends[done:start]
            put_in = replacement(self.text[start:end])
            parts.append(put_in)
            starts += [self.starts[start]] * len(put_in)
            ends += [self.ends[end - 1]] * len(put_in)
            done = end
        parts.append(self.text[done:])
        starts += self.starts[done:]
        ends += self.ends[done:]
        return PlacedText("".join(parts), starts, ends)

    def lowercased(self) -> PlacedText:
        """The text in Unicode lower case, as Polars writes it, with i for `DOTTED_I`."""
        if in_ascii(self.text):
            lower = self.text.lower()
        else:
            lower = pl.Series([self.text]).str.to_lowercase()[0]
        starts = self.starts
        ends = self.ends
        if len(lower) > len(self.text):
            sizes = [len(character.lower()) for character in self.text]
            starts = np.repeat(starts, sizes).tolist()
            ends = np.repeat(ends, sizes).tolist()
        placed = PlacedText(lower, starts, ends)
        if DOTTED_I not in lower:
            return placed
        dotted = [match.span() for match in re.finditer(DOTTED_I, lower)]
        return placed.replaced(dotted, lambda _: "i")


@cache
def _stand_ins() -> dict[int, str]:
    """Characters of European texts → one of ASCII that is the same to `WORD`; no lower case depends
    on neighbours."""
    stand_ins = {code: chr(code) for code in range(128)}
    for block in _EUROPEAN_BLOCKS:
        for code in block:
            character = chr(code)
            if character in _WITHOUT_STAND_IN:
                continue
            category = unicodedata.category(character)
            by_category = _SAME_AS_CATEGORY.get(
                category, _SAME_AS_KIND.get(category[0], _OTHER_SIGN)
            )
            stand_in = " " if character.isspace() else by_category
            stand_ins[code] = _SAME_AS.get(character, stand_in)
    return stand_ins


def in_ascii(text: str) -> str:
    """The text in ASCII characters that are the same to `WORD`, one for each of it; "" if some have
    none."""
    if text.isascii():
        return text
    stand_in = text.translate(_stand_ins())
    return stand_in if stand_in.isascii() else ""


def find_matches(text: str, pattern: str) -> list[Span]:
    """Start and end, in characters, of every match that Polars' regular expressions find."""
    if not text:  # as fields of a document often are; no pattern of ours matches nothing
        return []
    stand_in = in_ascii(text)
    if stand_in and pattern in WORD_TWINS:
        return [match.span() for match in WORD_TWINS[pattern].finditer(stand_in)]
    has_twin = pattern in MARKUP_TWINS if text.isascii() else pattern in _WITHOUT_WHITE_SPACE
    if stand_in and has_twin and len(text) <= MAX_TWIN_LENGTH:
        return [match.span() for match in MARKUP_TWINS[pattern].finditer(text)]
    return _find_with_polars(text, pattern)


def _find_with_polars(text: str, pattern: str) -> list[Span]:
    """Put a mark that the text does not contain around every match, and cut the text there."""
    mark = next(character for character in map(chr, _PRIVATE_USE) if character not in text)
    marked = pl.Series([text]).str.replace_all(pattern, mark + "${0}" + mark)[0]
    sizes = [len(part) for part in marked.split(mark)]
    boundaries = np.cumsum(sizes).tolist()
    return list(zip(boundaries[0::2], boundaries[1::2], strict=False))
