"""Formatting as token types: what a text looks like, beside the words that it holds.

A word tokenizer drops punctuation, white space, case and length, and with them shortcuts that a model or a judge may live on:
trailing spaces in one class, a final "...", lists and bold type, sheer length. Each feature here is a presence: it holds for a text
or it does not, and its name is written ⟨so⟩, which no word can be.

Into importance a feature enters as a presence (`formatting_importance`): its test, q-value and posterior difference are those of a
type with c = 1 in the documents that have it; its α and effect are its difference in share of documents divided by the mean length
T̄, i.e. it weighs as one token of a document of average length, so that one table can hold both. The lengths T_X of documents, and
with them every number of a word, do not change. Into the model it enters as one more column with count 1 (`with_formatting`): a
token like any other, so that an answer is still an exact sum.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from string import ascii_lowercase
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray

from tokensieve.data.importance import Importance, importance_of
from tokensieve.data.intervals import false_discovery
from tokensieve.data.sums import TokenSums
from tokensieve.text.counts import Counts
from tokensieve.text.spill import StoredTexts

LENGTHS = (0, 5, 10, 20, 50, 100, 200, 400, 800, 1600)  # words, separated by white space
CHUNK = 4096


@dataclass(frozen=True)
class _Column:
    """One feature: its name without brackets, and a pattern (Rust's regular expressions) or an expression."""

    name: str
    pattern: str = ""
    literal: bool = False
    expression: pl.Expr | None = None

    def to_expr(self) -> pl.Expr:
        if self.expression is not None:
            return self.expression
        return pl.col("text").str.contains(self.pattern, literal=self.literal)


def _expressions() -> tuple[_Column, ...]:
    text, end, words = pl.col("text"), pl.col("end"), pl.col("words")
    lengths = [
        _Column(
            f"length {low}–{high}" if high else f"length {low}+",
            expression=(words >= low) & (words < high) if high else words >= low,
        )
        for low, high in zip(LENGTHS, (*LENGTHS[1:], 0), strict=True)
    ]
    closing = "[\"')\\]»”’*_]*$"
    ends = [
        _Column('ends "..."', expression=end.str.contains(r"(\.\.\.|…)" + closing)),
        _Column('ends "."', expression=end.str.contains(r"(^|[^.])\.$")),
        _Column('ends "!"', expression=end.str.ends_with("!")),
        _Column('ends "?"', expression=end.str.ends_with("?")),
        _Column('ends ":"', expression=end.str.ends_with(":")),
        _Column('ends ","', expression=end.str.ends_with(",")),
        _Column("ends with a quote", expression=end.str.contains("[\"'”’»]$")),
        _Column("ends with a digit", expression=end.str.contains(r"\d$")),
        _Column("no final stop", expression=~end.str.contains("[.!?…。！？‽]" + closing)),
        _Column("trailing spaces", expression=text.str.contains(r"[ \t\u00a0]$")),
        _Column("ends with a line break", expression=text.str.ends_with("\n")),
        _Column("leading spaces", expression=text.str.contains(r"^\s")),
        _Column("starts in lower case", expression=text.str.contains(r"^\s*\p{Ll}")),
        _Column("starts with a quote", expression=text.str.contains("^\\s*[\"'“‘«]")),
        _Column("starts with a digit", expression=text.str.contains(r"^\s*\d")),
    ]
    case = [
        _Column("ALL CAPS", "[A-Z]{4}[A-Z]*(?-u:\\b)"),
        _Column("no capitals", expression=~text.str.contains(r"\p{Lu}")),
    ]
    return (*lengths, *ends, *case, *_patterns())


def _patterns() -> tuple[_Column, ...]:
    spaces = [
        _Column("2 spaces", "(^|[^ ])  ([^ ]|$)"),
        _Column("3+ spaces", "   ", literal=True),
        _Column("tab", "\t", literal=True),
        _Column("line break", "\n", literal=True),
        _Column("blank line", "\n[ \t\r]*\n"),
        _Column("no-break space", "\u00a0", literal=True),
        _Column("invisible character", "[\u200b\u200c\u200d\u2060\ufeff\u00ad]"),
    ]
    markup = [
        _Column("**bold**", r"\*\*[^*\s][^*\n]*\*\*|__[^_\s][^_\n]*__"),
        _Column("bullet list", r"(?m)^[ \t]*[-*•‣◦][ \t]+\S"),
        _Column("numbered list", r"(?m)^[ \t]*\d{1,2}[.)][ \t]+\S"),
        _Column("heading", r"(?m)^#{1,6}[ \t]+\S"),
        _Column("table", r"(?m)^[ \t]*\|.*\|[ \t\r]*$"),
        _Column("code", "`[^`\n]+`|```"),
        _Column("[link](…)", r"\]\([^)\s]+\)"),
        _Column("URL", r"https?://|www\."),
        _Column("e-mail address", r"[A-Za-z0-9._+-]+@[A-Za-z0-9-]+\.[A-Za-z]"),
        _Column("HTML", r"</?[A-Za-z][A-Za-z0-9]*(\s[^<>]*)?/?>|&(amp|lt|gt|quot|nbsp|#\d+);"),
        _Column("@name", r"(^|[\s(])@\w"),
        _Column("#tag", r"(^|\s)#[\p{L}_]\w*"),
    ]
    content = [
        _Column("number", r"\d"),
        _Column("n/10 rating", r"(^|[^\d/.,])\d{1,2}([.,]\d)?\s?(/|out of)\s?(10|5|100)([^\d/]|$)"),
        _Column("percentage", r"\d\s?%"),
        _Column("sum of money", r"[$€£¥]\s?\d|\d\s?[€£¥]"),
        _Column("emoji", "[\U0001f300-\U0001faff\u2600-\u27bf]"),
        _Column("emoticon", r"(^|\s)[:;=]['-]?[)(DPp/|](\s|$|[.,!?])"),
        _Column("mojibake", "Ã[\u0080-\u00bf]|â€|â\u0080|Â[\u00a0-\u00bf]|\ufffd"),
        _Column("!!", "!!", literal=True),
        _Column("??", "??", literal=True),
        _Column("?!", r"\?!|!\?"),
        _Column("...", r"\.\.\.|…"),
        _Column("— dash", "—|–| -- "),
        _Column("; semicolon", ";", literal=True),
        _Column(": colon", r":(\s|$)"),
        _Column("(parentheses)", r"\([^)]*\)"),
        _Column('"quotes"', '["“”„«»]'),
        _Column("curly quotes", "[“”‘’]"),
        _Column("repeated letters", "|".join(letter * 3 for letter in ascii_lowercase if letter != "w")),
        _Column("*asterisks*", r"(^|[^*])\*\w[^*\n]*\w\*([^*]|$)"),
    ]
    return (*spaces, *markup, *content)


_COLUMNS = _expressions()
FORMATTING: tuple[str, ...] = tuple(f"⟨{column.name}⟩" for column in _COLUMNS)


def formatting(texts: pl.Series | StoredTexts) -> sp.csr_array:
    """Which of `FORMATTING` hold for each text, CSR (n, len(FORMATTING)), float64 ones.

    A text of white space only has its length and its spaces, and no end.
    """
    if isinstance(texts, StoredTexts):
        return sp.csr_array(sp.vstack([formatting(texts[:0]), *map(formatting, texts.batches())], format="csr"))
    blocks = [sp.csr_array((0, len(_COLUMNS)))]
    for start in range(0, len(texts), CHUNK):
        text = pl.col("text")
        frame = pl.LazyFrame({"text": texts[start : start + CHUNK]}).with_columns(
            end=text.str.tail(200).str.strip_chars_end().str.tail(8),
            words=text.str.count_matches(r"\S+"),
        )
        found = frame.select(column.to_expr().alias(name) for column, name in zip(_COLUMNS, FORMATTING, strict=True))
        blocks.append(sp.csr_array(found.collect().to_numpy().astype(np.float64)))
    return sp.csr_array(sp.vstack(blocks, format="csr"))


def with_formatting(counts: Counts, present: sp.csr_array, min_documents: int = 3) -> tuple[Counts, NDArray[np.int64]]:
    """The counts with one more column, count 1, for each feature in at least `min_documents` documents, for the model.

    Args:
        counts: n documents.
        present: from `formatting`, shape (n, len(FORMATTING)).
        min_documents: a feature must hold for that many of them.

    Returns:
        The counts, and which of `FORMATTING` their last columns are (to be taken from the features of new texts).
    """
    kept = np.flatnonzero(np.asarray(present.sum(axis=0)).ravel() >= min_documents)
    matrix = sp.csr_array(sp.hstack([counts.matrix, present[:, kept]], format="csr"))
    tokens = np.concatenate([counts.tokens.astype(object), np.asarray(FORMATTING, dtype=object)[kept]])
    return Counts(matrix, counts.labels, counts.classes, tokens), kept


def formatting_importance(
    present: sp.csr_array, labels: NDArray[np.int64], classes: tuple[str, ...], length: float
) -> Importance:
    """Importance of the features that hold for some documents, as presences (module docstring).

    Args:
        present: from `formatting`, shape (n, len(FORMATTING)).
        labels: class index of each document, shape (n,).
        classes: the K class names.
        length: T̄, tokens of a document in the mean.

    Raises:
        InputError: fewer than two classes have documents.
    """
    kept = np.flatnonzero(np.asarray(present.sum(axis=0)).ravel())
    sums = TokenSums.of(sp.csr_array(present[:, kept]), labels, len(classes), lengths=np.ones(present.shape[0]))
    found = importance_of(sums, np.asarray(FORMATTING, dtype=object)[kept], classes)
    scale = 1.0 / max(length, 1.0)
    scaled: dict[str, Any] = {
        f"{name}{end}": getattr(found, f"{name}{end}") * scale
        for name in ("alpha", "effect")
        for end in ("", "_low", "_high")
    }
    return replace(found, reach=found.reach * scale, **scaled)


def beside(words: Importance, others: Importance) -> Importance:
    """Both tables in one, words first; q-values are over all types of both."""
    both: dict[str, Any] = {
        f.name: np.concatenate([getattr(words, f.name), getattr(others, f.name)])
        for f in fields(Importance)
        if f.name not in ("classes", "neutral")
    }
    both["q_value"] = false_discovery(both["p_value"])
    return replace(words, **both)
