"""Formatting as token types: what a text looks like, apart from its words.

A word tokenizer drops punctuation, white space, case and length, and with them shortcuts that a
model or a judge may use. Each feature here is present in a text or absent, and its name is written
in angle brackets: ⟨emoji⟩. In texts of several fields each field has its own, `title:⟨number⟩`.

A feature is data, so that any language can look for it: a pattern (syntax of Rust's regex crate,
without what JavaScript lacks) that is found, or not found, in the text or in its end, or a range of
its number of words. The end of a text is its last 200 characters without the white space at their
end, of which the last 8.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from string import ascii_lowercase
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tokensieve.read.fields import split_fields
from tokensieve.read.stored_texts import StoredTexts
from tokensieve.text.tokenizers import FieldTokenizer, Tokenizer

Bits = NDArray[np.uint8]
# characters of a text's end that are looked at: room for a mark and closing quotes
LENGTH_OF_END = 8
_STARTS = "(^|\n)"  # of a line: \n alone ends one, in every language
_CLOSING = "[\"')\\]»”’*_]*$"
# Unicode's default ignorable characters, as ranges because JavaScript cannot subtract from a
# property. Variation selectors and the joiner of emoji are invisible only where no emoji stands
# before them.
_IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200c\u200e\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_AFTER_EMOJI = "\ufe0e\ufe0f\u200d"
_INVISIBLE = rf"(^|[^\p{{Emoji}}\ufe0f])[{_AFTER_EMOJI}]|[{_IGNORABLE}]"
_ENDS = {  # looked for in the end of a text
    'ends "..."': r"(\.\.\.|…)" + _CLOSING,
    'ends "."': r"(^|[^.])\.$",
    'ends "!"': "!$",
    'ends "?"': r"\?$",
    'ends ":"': ":$",
    'ends ","': ",$",
    "ends with a quote": "[\"'”’»]$",
    "ends with a digit": r"\d$",
    "ends with a symbol": "[^\\p{L}\\p{M}\\p{N}\\s.!?…。！？‽,:\"')\\]»”’]$",
    "no final stop": "[.!?…。！？‽]" + _CLOSING,
}
_PATTERNS = {  # looked for in the whole text
    "trailing spaces": "[ \t\u00a0]$",
    "ends with a line break": "\n$",
    "leading spaces": r"^\s",
    "starts in lower case": r"^\s*\p{Ll}",
    "starts with a quote": "^\\s*[\"'“‘«]",
    "starts with a digit": r"^\s*\d",
    "starts with a symbol": "^\\s*[^\\p{L}\\p{M}\\p{N}\\s\"'“‘«¿¡]",
    "ALL CAPS": r"\p{Lu}{4}\p{Lu}*([^\p{L}\p{N}_]|$)",
    # one way to match it, as the page runs it in an engine that backtracks
    "nothing but capitals": r"^([^\p{Ll}\p{Lu}]*\p{Lu}){5}[^\p{Ll}]*$",
    "Every Word Capitalized": r"^[^\p{L}]*(\p{Lu}[\p{L}\p{M}'’]*([^\p{L}\p{M}'’]+|$)){3,}$",
    "no capitals": r"\p{Lu}",
    "2 spaces": "(^|[^ ])  ([^ ]|$)",
    "3+ spaces": "   ",
    "tab": "\t",
    "line break": "\n",
    "blank line": "\n[ \t\r]*\n",
    "no-break space": "[\u00a0\u202f]",
    "invisible character": _INVISIBLE,
    "HTML tag": r"<(!--|/?[A-Za-z][A-Za-z0-9]{0,9}([ \t\r\n/][^<>]*)?>)",
    "HTML entity": r"&([A-Za-z][A-Za-z0-9]{1,30}|#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6});"
    r"|#[0-9]{2,5};|quot;|nbsp;",
    "**bold**": r"\*\*[^*\s][^*\n]*\*\*|__[^_\s][^_\n]*__",
    "bullet list": _STARTS + r"[ \t]*[-*•‣◦][ \t]+\S",
    "numbered list": _STARTS + r"[ \t]*\d{1,2}[.)][ \t]+\S",
    "heading": _STARTS + r"#{1,6}[ \t]+\S",
    "table": _STARTS + r"[ \t]*\|[^\n]*\|[ \t\r]*" + "($|\n)",
    "code": "`[^`\n]+`|```",
    "[link](…)": r"\]\([^)\s]+\)",
    "URL": r"https?://|www\.",
    "e-mail address": r"[A-Za-z0-9._+\-]+@[A-Za-z0-9\-]+\.[A-Za-z]",
    "HTML": r"</?[A-Za-z][A-Za-z0-9]*(\s[^<>]*)?/?>|&(amp|lt|gt|quot|nbsp|#\d+);",
    "@name": r"(^|[\s(])@\w",
    "#tag": r"(^|\s)#[\p{L}_]",
    "number": r"\d",
    "n/10 rating": r"(^|[^\d/.,])\d{1,2}([.,]\d)?\s?(/|out of)\s?(10|5|100)([^\d/]|$)",
    "percentage": r"\d\s?%",
    "sum of money": r"[$€£¥]\s?\d|\d\s?[€£¥]",
    "emoji": "[\U0001f300-\U0001faff\u2600-\u27bf]",
    "emoticon": r"(^|\s)[:;=]['\-]?[)(DPp/|](\s|$|[.,!?])",
    "mojibake": "Ã[\u0080-\u00bf]|â€|â\u0080|Â[\u00a0-\u00bf]|\ufffd",
    "!!": "!!",
    "??": r"\?\?",
    "?!": r"\?!|!\?",
    "...": r"\.\.\.|…",
    "… character": "…",
    "symbol": r"[~^|\\{}=<>§¶•·†‡¤¦©®™]",
    "row of signs": r"[-=_*~#+]{3}",
    "— dash": "—|–| -- ",
    "; semicolon": ";",
    ": colon": r":(\s|$)",
    "(parentheses)": r"\([^)]*\)",
    '"quotes"': '["“”„«»]',
    "curly quotes": "[“”‘’]",
    "repeated letters": "|".join(letter * 3 for letter in ascii_lowercase if letter != "w"),
    "*asterisks*": r"(^|[^*])\*\w[^*\n]*\w\*([^*]|$)",
}


# of texts in words: twice as long each, in round numbers
LENGTH_BOUNDARIES = (0, 5, 10, 20, 50, 100, 200, 400, 800, 1600)
_ABSENT = ("no final stop", "no capitals")  # features of texts in which the pattern is not found
# characters at the end of a text that are looked through for its last ones
LONGEST_TRAILING_SPACE = 200
TEXTS_PER_BATCH = 4096  # of which all features are in memory, a byte each


def _features() -> dict[str, dict[str, Any]]:
    """Token type → how to look for it: lengths, then patterns of ends and of whole texts."""
    features: dict[str, dict[str, Any]] = {}
    for minimum, below in pairwise(LENGTH_BOUNDARIES):
        features[f"⟨length {minimum}–{below}⟩"] = {"words": [minimum, below]}
    longest = LENGTH_BOUNDARIES[-1]
    features[f"⟨length {longest}+⟩"] = {"words": [longest, None]}
    for where, patterns in (("end", _ENDS), ("text", _PATTERNS)):
        for name, pattern in patterns.items():
            absent = name in _ABSENT
            features[f"⟨{name}⟩"] = {"pattern": pattern, "where": where, "absent": absent}
    return features


FEATURES = _features()  # token type → how to look for it, as JSON values
FORMATTING = tuple(FEATURES)


class Formatting:
    """The formatting features of texts, for each field of their tokenizer, or for one column."""

    def __init__(self, tokenizer: Tokenizer | None = None) -> None:
        self.prefixes = {"": ""}
        self.fields: tuple[str, ...] = ()
        if isinstance(tokenizer, FieldTokenizer):
            self.prefixes = tokenizer.prefixes
            self.fields = tuple(self.prefixes)

    @property
    def names(self) -> tuple[str, ...]:
        """The features as token types, one field after the other."""
        return tuple(prefix + name for prefix in self.prefixes.values() for name in FORMATTING)

    def bits(self, texts: pl.Series | StoredTexts) -> Bits:
        """Find out which of `names` hold for each text, eight to a byte (`np.packbits`), shape (n,
        ⌈features/8⌉).

        A text of white space only has its length and its spaces, and no end.
        """
        n_bytes = math.ceil(len(self.names) / 8)
        blocks = [np.empty((0, n_bytes), np.uint8)]
        for batch in [texts] if isinstance(texts, pl.Series) else texts.batches():
            for first in range(0, len(batch), TEXTS_PER_BATCH):
                chunk = batch[first : first + TEXTS_PER_BATCH]
                fields = _texts_by_field(chunk, self.fields) if self.fields else [chunk]
                has_feature = np.hstack([_has_features(field) for field in fields])
                blocks.append(np.packbits(has_feature, axis=1))
        return np.concatenate(blocks)


def _has_features(texts: pl.Series) -> NDArray[np.bool_]:
    """Whether each text has each of `FORMATTING`, shape (n, features)."""
    text = pl.col("text")
    ends = text.str.tail(LONGEST_TRAILING_SPACE).str.strip_chars_end().str.tail(LENGTH_OF_END)
    n_words = text.str.count_matches(r"\S+")
    frame = pl.LazyFrame({"text": texts}).with_columns(end=ends, words=n_words)
    columns = [_expression(kind).alias(name) for name, kind in FEATURES.items()]
    return frame.select(columns).collect().to_numpy()


def _expression(kind: dict[str, Any]) -> pl.Expr:
    """Whether a text has a feature, in terms of its columns `text`, `end` and `words`."""
    if "words" in kind:
        minimum, below = kind["words"]
        highest = below or 2**31
        return pl.col("words").is_between(minimum, highest, closed="left")
    is_found: pl.Expr = pl.col(kind["where"]).str.contains(kind["pattern"])
    return ~is_found if kind["absent"] else is_found


def _texts_by_field(texts: pl.Series, fields: Sequence[str]) -> list[pl.Series]:
    """The text of each field, without the mark and the white space that joining put around it."""
    by_field: dict[str, list[str]] = {name: [] for name in fields}
    for text in texts:
        spans = {
            name: (start, end) for name, start, end in split_fields(fields, text) if end > start
        }
        for name in fields:
            start, end = spans.get(name, (0, 0))
            part = text[start:end].removeprefix(" ")
            if name != fields[-1]:
                part = part.removesuffix("\n")
            by_field[name].append(part)
    return [pl.Series("text", parts, dtype=pl.String) for parts in by_field.values()]


def is_formatting(token: str) -> bool:
    """Whether a token type is a feature of formatting, such as ⟨length 200–400⟩ or title:⟨number⟩.

    So is a fixed passage at an edge of texts, such as ⟨ends "sent by"⟩, of an audit that version
    0.3 wrote.
    """
    if not token.endswith("⟩"):
        return False
    if token.startswith(('⟨ends "', '⟨starts "')):
        return True
    without_field = token[token.find(":⟨") + 1 :]
    return token in FEATURES or without_field in FEATURES


def describe_features(names: Sequence[str]) -> list[dict[str, Any]]:
    """For the features with these names, the patterns that detect them and their field, as JSON
    values."""
    descriptions = []
    for name in names:
        field = ""
        feature = name
        if not name.startswith("⟨"):
            field, _, feature_name = name.rpartition(":⟨")
            feature = "⟨" + feature_name
        description: dict[str, Any] = {"token": name, **FEATURES[feature]}
        if field:
            description["field"] = field
        descriptions.append(description)
    return descriptions


def find_feature(text: str, token: str) -> tuple[int, int] | None:
    """Start and end of the part of a text that shows a feature.

    None if nothing shows it: a length, what is absent, or a feature that the text does not have.
    """
    return find_features([text], token)[0]


def find_features(texts: Sequence[str], token: str) -> list[tuple[int, int] | None]:
    """`find_feature` of several texts, for which Polars is asked once."""
    kind = FEATURES.get(token, {})
    if kind.get("absent", True):
        return [None] * len(texts)
    starts = [0] * len(texts)
    ends = list(map(len, texts))
    if kind["where"] == "end":
        ends = [len(text.rstrip()) for text in texts]
        starts = [max(0, end - LENGTH_OF_END) for end in ends]
    parts = [text[start:end] for text, start, end in zip(texts, starts, ends, strict=True)]
    pattern = str(kind["pattern"])
    part = pl.col("part")
    matches = pl.DataFrame({"part": parts}, {"part": pl.String}).select(
        position=part.str.find(pattern),
        match=part.str.extract(pattern, 0),
        group=part.str.extract(pattern, 1),
    )
    # what stands before the feature is not part of it
    has_context = pattern.startswith("(^|")
    places: list[tuple[int, int] | None] = []
    for text, start, (n_bytes_before, match, first_group) in zip(
        texts, starts, matches.iter_rows(), strict=True
    ):
        if not match:
            places.append(None)
            continue
        first = start + len(text[start:].encode()[:n_bytes_before].decode())
        context = len(first_group or "") if has_context else 0
        places.append((first + context, first + len(match)))
    return places
