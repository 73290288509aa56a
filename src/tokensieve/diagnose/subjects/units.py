"""What is one thing although it is written with signs inside: dates, times, versions, prices, …

A **pattern** stands for things that are written differently each time: addresses, dates, times,
amounts of money, percentages, versions, codes, numbers. Each of them alone is too rare to matter,
and a model that relies on there being a date relies on none of them. One that is frequent itself
stays a word ("10" in reviews).

Our splitter divides "2024-03-15", "10:30 pm" and "49.90 EUR" at their signs and spaces, and a
model's tokenizer divides them elsewhere. For a diagnosis each is one **unit**, whatever divides it:
a run of tokens that one of the expressions below matches as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

MONTHS = (
    *("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec"),
    *("january", "february", "march", "april", "june", "july", "august"),
    *("september", "october", "november", "december"),
)
MONEY_SIGNS = "$€£¥₹"
CURRENCIES = ("eur", "usd", "gbp", "chf", "inr", "jpy", "cny", "euro", "euros", "dollar", "dollars")
HALVES_OF_A_DAY = ("am", "pm", "a.m.", "p.m.")

_MONTH = f"(?:{'|'.join(MONTHS)})"
_CURRENCY = f"(?:[{MONEY_SIGNS}]|{'|'.join(CURRENCIES)})"
_HALF_DAY = f"(?:{'|'.join(map(re.escape, HALVES_OF_A_DAY))})"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_AMOUNT = r"\d[\d.,]*"

# what a unit is called, by the first expression that matches its tokens as a whole, in lower case
# and with a space between two tokens
PATTERNS = {
    "[an address]": (
        r"[\w.+-]+@[\w.-]+|(?:https?://|www\.)\S+"
        r"|[\w-]+(?:\.[\w-]+)*\.(?:com|org|net|io|edu|gov|de|co\.uk)|\d{1,3}(?:\.\d{1,3}){3}"
    ),
    "[a date]": (
        r"\d{1,4}[./]\d{1,2}[./]\d{2,4}|\d{1,4} - \d{1,2} - \d{1,4}(?:t\d[\d:.]*z?)?"
        rf"|{_MONTH}(?: \.)? {_DAY}(?: ,)? \d{{4}}|{_DAY}(?: \.)?(?: of)? {_MONTH}(?: ,)? \d{{4}}"
    ),
    "[a time]": (
        rf"\d{{1,2}}:\d{{2}}(?::\d{{2}}(?:\.\d+)?)?(?: ?{_HALF_DAY})?|\d{{1,2}} ?{_HALF_DAY}"
    ),
    "[an amount of money]": rf"{_CURRENCY} ?{_AMOUNT}|{_AMOUNT} ?{_CURRENCY}",
    "[a percentage]": rf"{_AMOUNT} ?(?:%|percent)",
    "[a version]": r"v\d+(?:\.\d+)*|\d+(?:\.\d+){2,}(?: - [a-z]+\d*)?",
    "[a number]": r"(?:\+ )?\d[\d.,/:]*(?: - \d[\d.,/:]*)*(?:st|nd|rd|th|s)?",
    "[a code]": r"# \d{2,}|[a-z]{1,6} - \d{3,}|(?=\w*[a-z])(?=\w*\d\w*\d)[a-z0-9]+",
}
_PATTERN = re.compile("|".join(f"({expression})" for expression in PATTERNS.values()))
# what may stand second in a unit of several tokens, behind a number
_AFTER_NUMBER = frozenset((*MONTHS, *CURRENCIES, *HALVES_OF_A_DAY, "percent", "of"))
_SIGNS_AFTER_NUMBER = frozenset(f"-.%{MONEY_SIGNS}")
# and what may stand before the number of one that begins otherwise
_BEFORE_NUMBER = frozenset((*MONTHS, *CURRENCIES, *MONEY_SIGNS, "#", "+"))
MAX_TOKENS = 9  # of a unit; numbers of telephones have no more
MAX_LETTERS_OF_CODE = 6  # before its number, as in "ref-8841"


@lru_cache(maxsize=100_000)  # a corpus repeats its tokens
def pattern_of(unit: str) -> str | None:
    """The name of the pattern that a unit belongs to, its tokens apart by spaces; or None."""
    match = _PATTERN.fullmatch(unit)
    if match is None:
        return None
    return list(PATTERNS)[int(match.lastindex or 1) - 1]


class Unit(NamedTuple):
    """Tokens of a text that are one thing.

    Attributes:
        first, end: places of the tokens in the list of all.
        token: how it is written, without the spaces between its tokens.
        pattern: the name of the pattern that it belongs to; None if it is a word or a sign.
    """

    first: int
    end: int
    token: str
    pattern: str | None


def units_of(tokens: Sequence[str]) -> list[Unit]:
    """Divide the tokens of a text into units; most are one token each."""
    units = []
    place = 0
    while place < len(tokens):
        unit = _unit_at(tokens, place)
        units.append(unit)
        place = unit.end
    return units


def _unit_at(tokens: Sequence[str], place: int) -> Unit:
    """The longest unit that begins at a token."""
    first_token = tokens[place]
    following = tokens[place + 1 : place + MAX_TOKENS]
    if following and _may_be_joined(first_token, following[0]):
        for n_following in range(len(following), 0, -1):
            joined = [first_token, *following[:n_following]]
            pattern = pattern_of(" ".join(joined))
            if pattern is not None:
                return Unit(place, place + len(joined), "".join(joined), pattern)
    return Unit(place, place + 1, first_token, pattern_of(first_token))


def _may_be_joined(first: str, second: str) -> bool:
    """Whether two tokens may begin a unit; a quick answer, since most tokens begin none."""
    if first[0].isdigit():
        return second[0] in _SIGNS_AFTER_NUMBER or second in _AFTER_NUMBER
    if second[0].isdigit():
        return first in _BEFORE_NUMBER
    if second == "-":
        return len(first) <= MAX_LETTERS_OF_CODE and first.isalpha()
    return second == "." and first in MONTHS
