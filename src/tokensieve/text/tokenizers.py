"""Text → tokens: words and emoji by Unicode rules, or the pieces of a Hugging Face tokenizer."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tokensieve.errors import InputError
from tokensieve.text.fields import split_fields
from tokensieve.text.formats import check_regular
from tokensieve.text.settings import SourceSettings
from tokensieve.text.sources import whole_text

EMOJI = (
    r"\p{Extended_Pictographic}(?:\p{Emoji_Modifier}|\x{FE0F}|\x{200D}\p{Extended_Pictographic})*"
    r"|\p{Regional_Indicator}{2}"
)
UNSPACED = r"[\p{Han}\p{Hiragana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
_LETTER = rf"[\w--{UNSPACED}]"
WORD = rf"{_LETTER}+(?:['’]{_LETTER}+)*|{UNSPACED}[\p{{M}}\x{{200C}}\x{{200D}}]*|" + EMOJI
LINE_BREAK = r"(?i)<br\s*/?>"
MARKUP = r"(?is)<!--.*?-->|<script\b.*?</script\s*>|<style\b.*?</style\s*>|</?[a-z][^<>]*>"
_ENTITY = re.compile(r"&(?:[A-Za-z][A-Za-z0-9]*|#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6});")
_SURROGATE = re.compile("[\ud800-\udfff]")
_ASCII_WORD = re.compile(r"\w+(?:'\w+)*", re.ASCII)  # what WORD finds in ASCII, without a call of Polars for each text


def text_series(texts: Any) -> pl.Series:
    """Any sequence of strings (None: a missing one) as a Polars series; lone surrogates, which UTF-8 cannot hold, become U+FFFD."""
    if isinstance(texts, pl.Series):
        return texts
    return pl.Series([text and _SURROGATE.sub("\ufffd", text) for text in texts], dtype=pl.String)


@runtime_checkable
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

    A word is a run of letters, marks, digits and underscores, with apostrophes inside it (`don't` is one word). In scripts that are
    written without spaces (Han, Hiragana, Thai, Lao, Khmer, Myanmar) each character, with the marks on it, is a token of its
    own, as BERT's pre-tokeniser does it for Han: n-grams of two or three then take the place of words. Runs of Katakana are words.

    Attributes:
        lowercase: fold case first (Unicode lower case).
        line_breaks: read HTML's `<br>` as white space.
        pattern: regular expression of a token, in the syntax of Rust's `regex`.
        html: read HTML's tags, comments, scripts and styles as white space, and its character references as what they mean.
        stop_words: tokens that are left out, before n-grams are formed; in lower case where case is folded.

    Raises:
        InputError: the pattern is no regular expression, or matches nothing at all between two characters.
    """

    lowercase: bool = True
    line_breaks: bool = True
    pattern: str = field(default=WORD, repr=False)
    html: bool = False
    stop_words: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        try:
            found = pl.Series(["", "a b"]).str.extract_all(self.pattern)
        except pl.exceptions.PolarsError as problem:
            said = re.search(r"(?m)^error: (.*)$", str(problem))
            reason = said[1] if said else "it cannot be read"
            raise InputError(
                f"the pattern {self.pattern[:80]!r} is no regular expression of Rust's regex: {reason}; check --pattern"
            ) from None
        if "" in found.explode().to_list():
            raise InputError(
                f"the pattern {self.pattern[:80]!r} matches empty text: let it match one character at least"
            )

    def split(self, texts: pl.Series) -> pl.Series:
        """Each text's tokens in order; a share of the texts for every thread of Polars' pool."""
        column = pl.col("text")
        if self.html:
            texts = texts.str.replace_all(MARKUP, " ")
            if texts.str.contains("&", literal=True).any():
                texts = pl.Series(texts.name, [_unescaped(text)[0] for text in texts], dtype=pl.String)
        if self.line_breaks:
            column = column.str.replace_all(LINE_BREAK, " ")
        if self.lowercase:
            column = column.str.to_lowercase()
        column = column.str.extract_all(self.pattern)
        if self.stop_words:
            column = column.list.filter(~pl.element().is_in(list(self.stop_words)))
        frame, share = pl.LazyFrame({"text": texts}), -(-len(texts) // pl.thread_pool_size()) or 1
        parts = [frame.slice(i, share) for i in range(0, max(len(texts), 1), share)]
        return pl.concat([part.select(column) for part in parts]).collect()["text"]

    def spans(self, text: str) -> list[tuple[int, int, str]]:
        """One text's tokens with their place; the tokens are those of `split`."""
        text = text_series([text])[0]
        place = np.arange(len(text))  # of each character in the text as given
        ends = place + 1
        if self.html:
            text, kept = _blanked(text, MARKUP)
            place, ends = place[kept], ends[kept]
            text, source, stop = _unescaped(text)
            place, ends = place[source], ends[stop]
        if self.line_breaks:
            text, kept = _blanked(text, LINE_BREAK)
            place, ends = place[kept], ends[kept]
        if self.lowercase:
            if len(text.lower()) > len(text):
                times = [len(character.lower()) for character in text]
                place, ends = np.repeat(place, times), np.repeat(ends, times)
            text = text.lower() if text.isascii() else pl.Series([text]).str.to_lowercase()[0]
        left_out = set(self.stop_words)
        found = [(a, z) for a, z in _matches(text, self.pattern) if text[a:z] not in left_out]
        first, last = np.array(found, dtype=np.int64).reshape(-1, 2).T
        words = [text[a:z] for a, z in found]
        return list(zip(place[first].tolist(), ends[last - 1].tolist(), words, strict=True))

    def to_dict(self) -> dict[str, Any]:
        """Settings as JSON values."""
        return {
            "kind": "words", "lowercase": self.lowercase, "line_breaks": self.line_breaks, "pattern": self.pattern,
            "html": self.html, "stop_words": list(self.stop_words),
        }  # fmt: skip


def _blanked(text: str, pattern: str) -> tuple[str, NDArray[np.int64]]:
    """The text with a space for each match, and which of its characters are kept (of a match the first)."""
    kept = np.ones(len(text), dtype=bool)
    if "<" not in text:  # both begin with it
        return text, np.flatnonzero(kept)
    for start, end in _matches(text, pattern):
        kept[start + 1 : end] = False
    return pl.Series([text]).str.replace_all(pattern, " ")[0], np.flatnonzero(kept)


def _unescaped(text: str) -> tuple[str, NDArray[np.int64], NDArray[np.int64]]:
    """The text with HTML's character references replaced, and the first and last character that each of its characters is from."""
    out: list[str] = []
    first: list[int] = []
    last: list[int] = []
    at = 0
    for found in [*_ENTITY.finditer(text), None]:
        start, end = found.span() if found else (len(text), len(text))
        out.append(text[at:start])
        first += range(at, start)
        last += range(at, start)
        if found:
            meant = _SURROGATE.sub("\ufffd", html.unescape(found[0]))
            out.append(meant)
            first += [start] * len(meant)
            last += [end - 1] * len(meant)
        at = end
    return "".join(out), np.array(first, dtype=np.int64), np.array(last, dtype=np.int64)


def _matches(text: str, pattern: str) -> list[tuple[int, int]]:
    """Start and end, in characters, of every match that Polars' regular expressions find."""
    if pattern == WORD and text.isascii():
        return [found.span() for found in _ASCII_WORD.finditer(text)]
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
                check_regular(Path(source))
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


@dataclass(frozen=True)
class FieldTokenizer:
    """Tokens that know their field, written `field:token`; no n-gram crosses from one field into another.

    Attributes:
        base: how each part is split.
        fields: the names, as in `tokensieve.text.fields`.
    """

    base: WordTokenizer | PieceTokenizer
    fields: tuple[str, ...]

    def split(self, texts: pl.Series) -> pl.Series:
        """Each text's tokens in order."""
        parts: list[str] = []
        names: list[str] = []
        documents: list[int] = []
        for k, text in enumerate(texts):
            for name, start, end in split_fields(self.fields, text):
                parts.append(text[start:end])
                names.append(name)
                documents.append(k)
        tokens = self.base.split(pl.Series("text", parts, dtype=pl.String))
        flat = (
            pl.DataFrame({"document": documents, "field": names, "token": tokens}).explode("token").drop_nulls("token")
        )
        flat = flat.select("document", token=pl.col("field") + ":" + pl.col("token"))
        each = flat.group_by("document", maintain_order=True).agg("token")
        every = pl.DataFrame({"document": np.arange(len(texts))})
        found = every.join(each, on="document", how="left", maintain_order="left")["token"]
        return found.fill_null(pl.Series([[]], dtype=pl.List(pl.String))).alias(texts.name)

    def spans(self, text: str) -> list[tuple[int, int, str]]:
        """One text's tokens with their place."""
        text = text_series([text])[0]
        return [
            (start + first, start + last, f"{name}:{token}")
            for name, start, end in split_fields(self.fields, text)
            for first, last, token in self.base.spans(text[start:end])
        ]

    def field_of(self, token: str) -> str:
        """The field of a token."""
        return next((name for name in self.fields if token.startswith(name + ":")), "")

    def to_dict(self) -> dict[str, Any]:
        """Settings as JSON values."""
        return {"kind": "fields", "fields": list(self.fields), "base": self.base.to_dict()}


def with_fields(tokenizer: Tokenizer, fields: tuple[str, ...]) -> Tokenizer:
    """The tokenizer for texts of these fields; itself where there are none."""
    if not fields or isinstance(tokenizer, FieldTokenizer):
        return tokenizer
    if not isinstance(tokenizer, WordTokenizer | PieceTokenizer):
        raise InputError(f"texts of several fields are split into words or pieces, not by a {type(tokenizer).__name__}")
    return FieldTokenizer(tokenizer, fields)


def tokenizer_from_dict(settings: dict[str, Any]) -> Tokenizer:
    """The inverse of `Tokenizer.to_dict`.

    Raises:
        ValueError: these are no settings of a tokenizer.
    """
    kind = settings["kind"]
    if kind == "pieces":
        return PieceTokenizer(settings["json"])
    if kind == "fields":
        base, fields = tokenizer_from_dict(settings["base"]), settings["fields"]
        if not isinstance(base, WordTokenizer | PieceTokenizer) or not fields or not _all_text(fields):
            raise ValueError("no fields, or no tokenizer for them")
        return FieldTokenizer(base, tuple(fields))
    flags = settings["lowercase"], settings["line_breaks"], settings.get("html", False)
    left_out = settings.get("stop_words", [])
    if kind != "words" or not all(isinstance(flag, bool) for flag in flags) or not _all_text(left_out):
        raise ValueError(f"no settings of a tokenizer of the kind {kind!r:.40}")
    if not isinstance(settings["pattern"], str):
        raise ValueError("the pattern is no text")
    return WordTokenizer(flags[0], flags[1], settings["pattern"], flags[2], tuple(left_out))


def _all_text(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def read_stop_words(path: Path, lowercase: bool = True) -> tuple[str, ...]:
    """Stop words from a UTF-8 file: one a line, blank lines and those that start with # aside.

    Args:
        path: the file.
        lowercase: fold case, as the tokenizer does.

    Raises:
        InputError: the file cannot be read, or names no word.
    """
    check_regular(path)
    lines = [line.strip() for line in whole_text(path, SourceSettings(encoding="utf-8")).splitlines()]
    words = {line.lower() if lowercase else line for line in lines if line and not line.startswith("#")}
    if not words:
        raise InputError(f"{path.name}: holds no stop words; write one a line")
    return tuple(sorted(words))
