"""Formatting as token types: what a text looks like, beside the words that it holds.

A word tokenizer drops punctuation, white space, case and length, and with them shortcuts that a model or a judge may live on:
trailing spaces in one class, a final "...", lists and bold type, sheer length. Each feature here is a presence: it holds for a text
or it does not, and its name is written ⟨so⟩. In texts of several fields each field has its own, `title:⟨number⟩`.

A feature is data, so that any language can look for it: a pattern (syntax of Rust's regex crate, without what JavaScript lacks)
that is found, or not found, in the text or in its end, or a range of its number of words. The end of a text is its last 200
characters without the white space at their end, of which the last 8.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_lowercase
from typing import Any, Literal

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray

from tokensieve.text.counts import Ints
from tokensieve.text.spill import StoredTexts

LENGTHS = (0, 5, 10, 20, 50, 100, 200, 400, 800, 1600)  # words, separated by white space
CHUNK = 4096
REACH, END = 200, 8  # characters at the end of a text that are looked at, and what is left of them without white space
Bits = NDArray[np.uint8]
_STARTS, _STOPS = "(^|\n)", "($|\n)"  # of a line: \n alone ends one, in every language
_CLOSING = "[\"')\\]»”’*_]*$"


@dataclass(frozen=True)
class Feature:
    """One feature.

    Attributes:
        name: without brackets.
        pattern: found somewhere in what it is looked for in; "" for a range of words.
        where: the whole text, or its end.
        absent: whether the feature holds where the pattern is *not* found.
        words: least number of words, and one more than the most (None: no most), where it is a range.
    """

    name: str
    pattern: str = ""
    where: Literal["text", "end"] = "text"
    absent: bool = False
    words: tuple[int, int | None] | None = None

    @property
    def token(self) -> str:
        """The name as a token type."""
        return f"⟨{self.name}⟩"

    def to_expr(self) -> pl.Expr:
        """Whether it holds, over columns "text", "end" and "words"."""
        if self.words is not None:
            least, below = self.words
            enough = pl.col("words") >= least
            return enough if below is None else enough & (pl.col("words") < below)
        found = pl.col(self.where).str.contains(self.pattern)
        return ~found if self.absent else found

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON values."""
        if self.words is not None:
            return {"token": self.token, "words": list(self.words)}
        return {"token": self.token, "pattern": self.pattern, "where": self.where, "absent": self.absent}


def _lengths() -> list[Feature]:
    ranges = zip(LENGTHS, (*LENGTHS[1:], None), strict=True)
    return [
        Feature(f"length {least}–{below}" if below else f"length {least}+", words=(least, below))
        for least, below in ranges
    ]


FEATURES: tuple[Feature, ...] = (
    *_lengths(),
    Feature('ends "..."', r"(\.\.\.|…)" + _CLOSING, "end"),
    Feature('ends "."', r"(^|[^.])\.$", "end"),
    Feature('ends "!"', "!$", "end"),
    Feature('ends "?"', r"\?$", "end"),
    Feature('ends ":"', ":$", "end"),
    Feature('ends ","', ",$", "end"),
    Feature("ends with a quote", "[\"'”’»]$", "end"),
    Feature("ends with a digit", r"\d$", "end"),
    Feature("no final stop", "[.!?…。！？‽]" + _CLOSING, "end", absent=True),
    Feature("trailing spaces", "[ \t\u00a0]$"),
    Feature("ends with a line break", "\n$"),
    Feature("leading spaces", r"^\s"),
    Feature("starts in lower case", r"^\s*\p{Ll}"),
    Feature("starts with a quote", "^\\s*[\"'“‘«]"),
    Feature("starts with a digit", r"^\s*\d"),
    Feature("ALL CAPS", "[A-Z]{4}[A-Z]*([^0-9A-Za-z_]|$)"),
    Feature("no capitals", r"\p{Lu}", absent=True),
    Feature("2 spaces", "(^|[^ ])  ([^ ]|$)"),
    Feature("3+ spaces", "   "),
    Feature("tab", "\t"),
    Feature("line break", "\n"),
    Feature("blank line", "\n[ \t\r]*\n"),
    Feature("no-break space", "\u00a0"),
    Feature("invisible character", "[\u200b\u200c\u200d\u2060\ufeff\u00ad]"),
    Feature("HTML tag", r"<(!--|/?[A-Za-z][A-Za-z0-9]{0,9}([ \t\r\n/][^<>]*)?>)"),
    Feature("HTML entity", r"&([A-Za-z][A-Za-z0-9]{1,30}|#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6});|#[0-9]{2,5};|quot;|nbsp;"),
    Feature("**bold**", r"\*\*[^*\s][^*\n]*\*\*|__[^_\s][^_\n]*__"),
    Feature("bullet list", _STARTS + r"[ \t]*[-*•‣◦][ \t]+\S"),
    Feature("numbered list", _STARTS + r"[ \t]*\d{1,2}[.)][ \t]+\S"),
    Feature("heading", _STARTS + r"#{1,6}[ \t]+\S"),
    Feature("table", _STARTS + r"[ \t]*\|[^\n]*\|[ \t\r]*" + _STOPS),
    Feature("code", "`[^`\n]+`|```"),
    Feature("[link](…)", r"\]\([^)\s]+\)"),
    Feature("URL", r"https?://|www\."),
    Feature("e-mail address", r"[A-Za-z0-9._+\-]+@[A-Za-z0-9\-]+\.[A-Za-z]"),
    Feature("HTML", r"</?[A-Za-z][A-Za-z0-9]*(\s[^<>]*)?/?>|&(amp|lt|gt|quot|nbsp|#\d+);"),
    Feature("@name", r"(^|[\s(])@\w"),
    Feature("#tag", r"(^|\s)#[\p{L}_]"),
    Feature("number", r"\d"),
    Feature("n/10 rating", r"(^|[^\d/.,])\d{1,2}([.,]\d)?\s?(/|out of)\s?(10|5|100)([^\d/]|$)"),
    Feature("percentage", r"\d\s?%"),
    Feature("sum of money", r"[$€£¥]\s?\d|\d\s?[€£¥]"),
    Feature("emoji", "[\U0001f300-\U0001faff\u2600-\u27bf]"),
    Feature("emoticon", r"(^|\s)[:;=]['\-]?[)(DPp/|](\s|$|[.,!?])"),
    Feature("mojibake", "Ã[\u0080-\u00bf]|â€|â\u0080|Â[\u00a0-\u00bf]|\ufffd"),
    Feature("!!", "!!"),
    Feature("??", r"\?\?"),
    Feature("?!", r"\?!|!\?"),
    Feature("...", r"\.\.\.|…"),
    Feature("— dash", "—|–| -- "),
    Feature("; semicolon", ";"),
    Feature(": colon", r":(\s|$)"),
    Feature("(parentheses)", r"\([^)]*\)"),
    Feature('"quotes"', '["“”„«»]'),
    Feature("curly quotes", "[“”‘’]"),
    Feature("repeated letters", "|".join(letter * 3 for letter in ascii_lowercase if letter != "w")),
    Feature("*asterisks*", r"(^|[^*])\*\w[^*\n]*\w\*([^*]|$)"),
)
FORMATTING: tuple[str, ...] = tuple(feature.token for feature in FEATURES)
_KNOWN = frozenset(FORMATTING)


def formatting_names(fields: Sequence[str] = ()) -> tuple[str, ...]:
    """The features of texts of these fields, one field after the other."""
    return tuple(f"{field}:{name}" for field in fields for name in FORMATTING) if fields else FORMATTING


def formatting_features(names: Sequence[str]) -> list[dict[str, Any]]:
    """Features, given by their names, as JSON values: how to look for each (`Feature.to_dict`), and in which field."""
    known = {feature.token: feature.to_dict() for feature in FEATURES}
    out = []
    for name in names:
        field, _, token = name.rpartition(":⟨") if not name.startswith("⟨") else ("", "", name[1:])
        out.append(known["⟨" + token] | ({"token": name, "field": field} if field else {}))
    return out


def is_formatting(token: str) -> bool:
    """Whether a token type is one of the features, such as ⟨length 200–400⟩ or title:⟨number⟩."""
    return token.endswith("⟩") and (token in _KNOWN or token[token.find(":⟨") + 1 :] in _KNOWN)


def formatting_bits(texts: pl.Series | StoredTexts, fields: Sequence[str] = ()) -> Bits:
    """Which features hold for each text, eight to a byte (`np.packbits`), shape (n, ⌈features/8⌉).

    A text of white space only has its length and its spaces, and no end.

    Args:
        texts: n texts, in memory or in files.
        fields: that the texts were joined from (`tokensieve.text.formatting`), if any.
    """
    if isinstance(texts, StoredTexts):
        return np.concatenate(
            [formatting_bits(texts[:0], fields), *(formatting_bits(t, fields) for t in texts.batches())]
        )
    blocks = [np.empty((0, -(-len(formatting_names(fields)) // 8)), np.uint8)]
    for start in range(0, len(texts), CHUNK):
        chunk = texts[start : start + CHUNK]
        parts = [_holds(part) for part in (_parts(chunk, fields) if fields else [chunk])]
        blocks.append(np.packbits(np.hstack(parts), axis=1))
    return np.concatenate(blocks)


def chosen(bits: Bits, features: Sequence[int] | Ints) -> sp.csr_array:
    """Some of the features of `formatting_bits`, CSR (n, len(features)), float64 ones."""
    picked = np.asarray(features, dtype=np.int64)
    shift = (7 - picked % 8).astype(np.uint8)
    return sp.csr_array(((bits[:, picked // 8] >> shift) & 1).astype(np.float64))


def formatting(texts: pl.Series | StoredTexts, fields: Sequence[str] = ()) -> sp.csr_array:
    """Which of `formatting_names(fields)` hold for each text, CSR (n, features), float64 ones."""
    return chosen(formatting_bits(texts, fields), range(len(formatting_names(fields))))


def frequent_formatting(bits: Bits, names: Sequence[str], min_documents: int) -> tuple[str, ...]:
    """The features that hold for at least `min_documents` texts, and not for all.

    Args:
        bits: of the texts.
        names: of all features.
        min_documents: least number of texts.
    """
    found = np.unpackbits(bits, axis=1, count=len(names)).sum(axis=0, dtype=np.int64)
    return tuple(name for name, n in zip(names, found, strict=True) if min_documents <= n < len(bits))


def _holds(texts: pl.Series) -> NDArray[np.bool_]:
    text = pl.col("text")
    frame = pl.LazyFrame({"text": texts}).with_columns(
        end=text.str.tail(REACH).str.strip_chars_end().str.tail(END),
        words=text.str.count_matches(r"\S+"),
    )
    found = frame.select(feature.to_expr().alias(feature.token) for feature in FEATURES)
    return found.collect().to_numpy()


def _parts(texts: pl.Series, fields: Sequence[str]) -> list[pl.Series]:
    """The text of each field, without the mark and the white space that joining put around it."""
    out: dict[str, list[str]] = {name: [] for name in fields}
    for text in texts:
        found = {name: text[start:end] for name, start, end in split_fields(fields, text) if end > start}
        for name in fields:
            part = found.get(name, "").removeprefix(" ")
            out[name].append(part if name == fields[-1] else part.removesuffix("\n"))
    return [pl.Series("text", parts, dtype=pl.String) for parts in out.values()]


BLANK = r"^[\s\x1c-\x1f]*$"  # what Python's isspace takes for white space


def mark(field: str) -> str:
    """What precedes a part of this field."""
    return f"⟦{field}⟧"


def join_fields(fields: Sequence[str], parts: Sequence[pl.Series]) -> pl.Series:
    """One text of all parts, row by row; null where all are missing, and white space only where all are that.

    A mark inside a part is no mark: its brackets become [ and ].

    Args:
        fields: the names.
        parts: the texts of each, with nulls.
    """
    columns = [pl.col(str(i)) for i in range(len(parts))]
    whole = pl.concat_str([column.fill_null("") for column in columns])
    marked = []
    for name, column in zip(fields, columns, strict=True):
        part = column.fill_null("")
        for field in fields:
            part = part.str.replace_all(mark(field), f"[{field}]", literal=True)
        marked.append(pl.lit(mark(name) + " ") + part)
    text = pl.when(whole.str.contains(BLANK)).then(whole).otherwise(pl.concat_str(marked, separator="\n"))
    absent = pl.all_horizontal(column.is_null() for column in columns)
    frame = pl.DataFrame({str(i): part for i, part in enumerate(parts)})
    return frame.select(pl.when(~absent).then(text).alias("text"))["text"]


def split_fields(fields: Sequence[str], text: str) -> list[tuple[str, int, int]]:
    """The parts of a text: (field, start, end). What precedes the first mark belongs to the first field."""
    marks = re.compile("⟦(" + "|".join(map(re.escape, fields)) + ")⟧")
    found = [(fields[0], 0, 0), *((m[1], m.start(), m.end()) for m in marks.finditer(text))]
    ends = [*(start for _, start, _ in found[1:]), len(text)]
    return [(name, end, stop) for (name, _, end), stop in zip(found, ends, strict=True)]
