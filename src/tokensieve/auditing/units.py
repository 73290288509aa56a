"""Units of several words that are cut whole: time stamps, codes with a number, signatures.

Cutting "2018" out of "2018-03-13 15:43" would leave "03-13 15:43", which gives the label away as
well as the year did.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tokensieve.text.matches import TokenSpan

GLUE = ("-", "_", "/", "#", ":")  # bind the letters and the number of a code
_NUMBER_OF_CODE = re.compile(r"\d{2,}")

_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_WEEKDAY = r"(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?,?[ ]+)?"
_DATE = (
    r"\d{4}(?P<s1>[-/.])\d{1,2}(?P=s1)\d{1,2}"  # 2018-03-13
    r"|\d{1,2}(?P<s2>[-/.])\d{1,2}(?P=s2)(?:\d{4}|\d{2})"  # 13.03.2018, 3/13/18
    rf"|{_WEEKDAY}\d{{1,2}}(?:st|nd|rd|th)?[ ]{_MONTH},?[ ]\d{{4}}"  # Tue, 13 March 2018
    rf"|{_WEEKDAY}{_MONTH}[ ]\d{{1,2}}(?:st|nd|rd|th)?,?[ ]\d{{4}}"  # March 13th, 2018
)
_TIME = (
    r"\d{1,2}:\d{2}(?::\d{2})?(?:[.,]\d{1,6})?(?:[ ]?[ap]\.?m\b\.?)?"  # 15:43:21, 3:43 pm
    r"(?:[ ]?(?:Z|UTC|GMT|CEST|CET|[ECMP][SD]T|[+-]\d{2}:?\d{2})\b)?"
)
TIME_STAMP = re.compile(
    rf"(?<![\w/.])(?:(?:{_DATE})(?:(?:T|,?[ ]+(?:at[ ])?){_TIME})?"
    rf"|{_TIME}(?:,?[ ]+(?:on[ ])?(?:{_DATE.replace('s1', 's3').replace('s2', 's4')}))?)(?![\w/])",
    re.IGNORECASE,
)
# telephone numbers and the like: 030-525869; a longer chain would be searched again from each part
_NUMBER_IN_PARTS = re.compile(r"(?<![\w.])\d{2,}(?:-\d{2,}){1,50}(?!\w)")
# the line above a signature: marks alone on the last line of a text
_SIGNATURE_LINE = re.compile(r"(?:^|\n)[ \t]*[-–—_*=~]{2,}\s*\Z")


@dataclass(frozen=True)
class Cut:
    """A part of a text to leave out: text[start:end]."""

    start: int
    end: int


def widened(text: str, cuts: Sequence[Cut]) -> list[Cut]:
    """The cuts in order, without overlaps, each with the whole date or number that it is in."""
    units = [
        Cut(*match.span())
        for pattern in (TIME_STAMP, _NUMBER_IN_PARTS)
        for match in pattern.finditer(text)
        if any(cut.start < match.end() and match.start() < cut.end for cut in cuts)
    ]
    merged: list[Cut] = []
    for cut in sorted([*cuts, *units], key=lambda cut: (cut.start, -cut.end)):
        if merged and cut.start < merged[-1].end:
            merged[-1] = Cut(merged[-1].start, max(merged[-1].end, cut.end))
        else:
            merged.append(cut)
    return merged


def glued_numbers(text: str, spans: Sequence[TokenSpan], cut: set[int]) -> set[int]:
    """Places of numbers that a dash or the like binds to a cut word, as in INV-38977.

    Args:
        text: the whole text.
        spans: its words, as `Tokenizer.spans` returns them.
        cut: places of the words that are cut.
    """
    glued: set[int] = set()
    for place in cut:
        if not spans[place].token.isalpha():
            continue
        for step in (1, -1):
            neighbour = place + step
            while 0 <= neighbour < len(spans) and _is_glued(text, spans, neighbour, step):
                glued.add(neighbour)
                neighbour += step
    return glued - cut


def _is_glued(text: str, spans: Sequence[TokenSpan], place: int, step: int) -> bool:
    """Whether a word is a number that nothing but a dash or the like parts from the one before."""
    left, right = sorted((place - step, place))
    between = text[spans[left].end : spans[right].start]
    return between in GLUE and _NUMBER_OF_CODE.fullmatch(spans[place].token) is not None


def without_empty_signature(shorter: str, before: str) -> str:
    """The text without the line above a signature, if the signature was cut."""
    if _SIGNATURE_LINE.search(shorter) and not _SIGNATURE_LINE.search(before):
        return _SIGNATURE_LINE.sub("", shorter)
    return shorter
