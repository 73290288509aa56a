"""Text → tokens: words and emoji by Unicode rules, or the pieces of a Hugging Face tokenizer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import polars as pl

from tokensieve.errors import InputError

EMOJI = (
    r"\p{Extended_Pictographic}(?:\p{Emoji_Modifier}|\x{FE0F}|\x{200D}\p{Extended_Pictographic})*"
    r"|\p{Regional_Indicator}{2}"
)
WORD = r"\w+(?:['’]\w+)*|" + EMOJI
LINE_BREAK = r"(?i)<br\s*/?>"
_SURROGATE = re.compile("[\ud800-\udfff]")


def text_series(texts: Any) -> pl.Series:
    """Any sequence of strings as a Polars series; lone surrogates, which UTF-8 cannot hold, become U+FFFD."""
    if isinstance(texts, pl.Series):
        return texts
    return pl.Series([_SURROGATE.sub("\ufffd", text) for text in texts], dtype=pl.String)


class Tokenizer(Protocol):
    """What the rest of the package asks of a tokenizer."""

    def split(self, texts: pl.Series) -> pl.Series:
        """Each text's tokens in order, as a series of lists of strings."""
        ...

    def spans(self, text: str) -> list[tuple[int, int, str]]:
        """One text's tokens with their place: (start, end, token), in characters of `text`."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Everything needed to build the same tokenizer again, as JSON values."""
        ...


@dataclass(frozen=True)
class WordTokenizer:
    """Words and emoji of a text, Unicode-aware.

    A word is a run of letters, marks, digits and underscores, with apostrophes inside it (`don't` is one word).
    Languages written without spaces come out as long runs: use a tokenizer file for those.

    Attributes:
        lowercase: fold case first (Unicode lower case).
        line_breaks: read HTML's `<br>` as white space.
        pattern: regular expression of a token, in the syntax of Rust's `regex`.
    """

    lowercase: bool = True
    line_breaks: bool = True
    pattern: str = WORD

    def split(self, texts: pl.Series) -> pl.Series:
        """Each text's tokens in order; a share of the texts for every thread of Polars' pool."""
        column = pl.col("text")
        if self.line_breaks:
            column = column.str.replace_all(LINE_BREAK, " ")
        if self.lowercase:
            column = column.str.to_lowercase()
        frame, share = pl.LazyFrame({"text": texts}), -(-len(texts) // pl.thread_pool_size()) or 1
        parts = [frame.slice(i, share) for i in range(0, max(len(texts), 1), share)]
        return pl.concat([part.select(column.str.extract_all(self.pattern)) for part in parts]).collect()["text"]

    def spans(self, text: str) -> list[tuple[int, int, str]]:
        """One text's tokens with their place; the tokens are those of `split`."""
        text = text_series([text])[0]
        place = np.arange(len(text))
        if self.line_breaks:
            kept = np.ones(len(text), dtype=bool)
            for start, end in _matches(text, LINE_BREAK):
                kept[start + 1 : end] = False
            place, text = place[kept], pl.Series([text]).str.replace_all(LINE_BREAK, " ")[0]
        if self.lowercase:
            place = np.repeat(place, [len(character.lower()) for character in text])
            text = pl.Series([text]).str.to_lowercase()[0]
        found = _matches(text, self.pattern)
        return [(int(place[start]), int(place[end - 1]) + 1, text[start:end]) for start, end in found]

    def to_dict(self) -> dict[str, Any]:
        """Settings as JSON values."""
        return {"kind": "words", "lowercase": self.lowercase, "line_breaks": self.line_breaks, "pattern": self.pattern}


def _matches(text: str, pattern: str) -> list[tuple[int, int]]:
    """Start and end, in characters, of every match that Polars' regular expressions find."""
    mark = next(c for c in map(chr, range(0xE000, 0x110000)) if c not in text)
    cut = pl.Series([text]).str.replace_all(pattern, mark + "${0}" + mark)[0].split(mark)
    ends = np.cumsum([len(part) for part in cut]).tolist()
    return list(zip(ends[0::2], ends[1::2], strict=False))


class PieceTokenizer:
    """Any Hugging Face `tokenizers` tokenizer (word pieces, BPE, unigram); special tokens are left out.

    Args:
        source: a `tokenizers.Tokenizer`, the path of its `tokenizer.json`, or that file's JSON text.

    Raises:
        InputError: the file is missing or is no tokenizer.
    """

    def __init__(self, source: Any) -> None:
        from tokenizers import Tokenizer as Pieces

        try:
            if isinstance(source, str) and source.lstrip().startswith("{"):
                source = Pieces.from_str(source)
            elif not isinstance(source, Pieces):
                if not Path(source).is_file():  # a FIFO would be waited for, a device read without end
                    raise InputError("there is no such file")
                source = Pieces.from_file(str(source))
        except Exception as error:  # the library raises bare Exception for every kind of bad file
            raise InputError(
                f"{str(source)[:200]} is no tokenizers file (tokenizer.json): {str(error)[:200]}"
            ) from None
        self._pieces = Pieces.from_str(source.to_str())
        self._pieces.no_padding()
        self._pieces.no_truncation()

    def split(self, texts: pl.Series) -> pl.Series:
        """Each text's pieces in order."""
        encoded = self._pieces.encode_batch(texts.to_list(), add_special_tokens=False)
        return pl.Series([e.tokens for e in encoded], dtype=pl.List(pl.String))

    def spans(self, text: str) -> list[tuple[int, int, str]]:
        """One text's pieces with their place."""
        e = self._pieces.encode(text_series([text])[0], add_special_tokens=False)
        return [(start, end, token) for (start, end), token in zip(e.offsets, e.tokens, strict=True)]

    def to_dict(self) -> dict[str, Any]:
        """The tokenizer itself, as JSON text."""
        return {"kind": "pieces", "json": self._pieces.to_str()}


def tokenizer_from_dict(settings: dict[str, Any]) -> Tokenizer:
    """The inverse of `Tokenizer.to_dict`."""
    if settings["kind"] == "pieces":
        return PieceTokenizer(settings["json"])
    return WordTokenizer(settings["lowercase"], settings["line_breaks"], settings["pattern"])
