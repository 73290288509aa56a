"""Text → tokens: words and emoji by Unicode rules, and tokens that know the field they stand in."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

import msgspec
import numpy as np
import polars as pl

from tokensieve.errors import InputError
from tokensieve.read.fields import ColumnKind, split_fields
from tokensieve.read.plain import PlainText
from tokensieve.read.settings import SourceSettings
from tokensieve.read.values import SURROGATE, text_series
from tokensieve.text.matches import WORD_TWINS, PlacedText, Span, TokenSpan, find_matches
from tokensieve.text.patterns import (
    APOSTROPHE,
    DOTTED_I,
    LINE_BREAK,
    MARKUP,
    SKIPPED,
    WORD,
    WORD_OR_RUN,
)
from tokensieve.text.pieces import PieceTokenizer
from tokensieve.text.unspaced import Lexicon, is_unspaced_word

Html = Literal["skip", "keep", "strip"]
UnspacedWords = Literal["data", "segmenter", "characters"]
E = TypeVar("E", pl.Series, pl.Expr)
_ENTITY = re.compile(r"&(?:[A-Za-z][A-Za-z0-9]*|#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6});")
MAX_FIELDS = 1_000  # of a tokenizer that is read from a file


@runtime_checkable
class Tokenizer(Protocol):
    """The interface that the rest of the package requires of a tokenizer."""

    def split(self, texts: pl.Series) -> pl.Series:
        """Split each text into tokens, in order; a series of lists of strings."""

    def spans(self, text: str) -> list[TokenSpan]:
        """One text's tokens with their place."""

    def to_dict(self) -> dict[str, Any]:
        """Everything needed to build the same tokenizer again, as JSON values."""


@dataclass(frozen=True)
class WordTokenizer:
    """Words and emoji of a text, Unicode-aware.

    The rule is that of Unicode's word boundaries (UAX 29) with a few additions and one exception. A
    word is a run of letters, marks, digits and underscores, with apostrophes inside it (`don't`).
    Each of these is one token: numbers with `. , : /` between digits and with a currency or percent
    sign (`4/10`, `10:30`, `$20`, `50%`), versions (`v1.2`), abbreviations (`e.g.`), web and e-mail
    addresses, and `C++`. The exception: a full stop between letters ends a word, as reviews often
    lack the space after it (`film.It`).

    Chinese, Japanese, Thai, Lao, Khmer and Burmese are written without spaces. Their words are
    those of a lexicon, which training learns from its texts (`tokensieve.text.lexicon`): the
    longest word that begins at a place is a token, and a character that begins none is a token of
    its own. Without a lexicon, each character is one, with the marks on it. Runs of Katakana are
    words.

    A space joins the words of an n-gram, so no token contains one. White space matched by a custom
    pattern is trimmed at both ends and becomes `_` inside (`[^,]+` reads `deep learning` as
    `deep_learning`).

    Attributes:
        lowercase: convert to Unicode lower case first, in which İ becomes i.
        line_breaks: read HTML's `<br>` as white space.
        pattern: regular expression of a token, in the syntax of Rust's `regex`; an `InputError` if
            invalid or empty text matches.
        html: "skip" reads HTML's tags and character references as white space (`&#39;` as an
            apostrophe), since they are formatting; "strip" decodes character references and reads
            everything in angle brackets as white space; "keep" splits both into words like any
            text.
        stop_words: tokens that are dropped before n-grams are formed; in lower case if `lowercase`
            is set.
        words: where the words of scripts without spaces come from: "data" learns them from the
            training texts, "segmenter" lets ICU divide these (package icu4py), and "characters"
            splits into characters.
        lexicon: these words; None until they are learned.
    """

    lowercase: bool = True
    line_breaks: bool = True
    pattern: str = field(default=WORD, repr=False)
    html: Html | bool = "skip"
    stop_words: tuple[str, ...] = ()
    words: UnspacedWords = "data"
    lexicon: tuple[str, ...] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.html, bool):  # as in 0.2
            object.__setattr__(self, "html", "strip" if self.html else "keep")
        try:
            tokens = pl.Series(["", "a b"]).str.extract_all(self.pattern)
        except pl.exceptions.PolarsError as problem:
            explanation = re.search(r"(?m)^error: (.*)$", str(problem))
            reason = explanation[1] if explanation else "it cannot be read"
            raise InputError(
                f"the pattern {self.pattern[:80]!r} is not a valid regular expression: {reason}; "
                "check --pattern"
            ) from None
        if "" in tokens.explode().to_list():
            raise InputError(
                f"the pattern {self.pattern[:80]!r} matches empty text; it must match a character"
            )
        if self.lexicon and self.pattern not in WORD_TWINS:
            raise InputError("a lexicon cannot be combined with a pattern of your own (--pattern)")
        self._lexicon.check()

    @cached_property
    def _lexicon(self) -> Lexicon:
        return Lexicon(self.lexicon or ())

    @property
    def _matches_white_space(self) -> bool:
        return self.pattern not in WORD_TWINS and self.pattern != WORD_OR_RUN

    def split(self, texts: pl.Series) -> pl.Series:
        """Split each text into tokens, in order; Polars' threads share the texts."""
        column = pl.col("text")
        if self.html == "skip":
            column = column.str.replace_all(APOSTROPHE, "'").str.replace_all(SKIPPED, " ")
        elif self.html == "strip":
            texts = _decode_references(texts.str.replace_all(MARKUP, " "))
        elif self.line_breaks:
            column = column.str.replace_all(LINE_BREAK, " ")
        if self.lowercase:
            column = column.str.to_lowercase().str.replace_all(DOTTED_I, "i", literal=True)
        if self._lexicon.words:
            sign = self.pattern.removeprefix(WORD)
            column = self._lexicon.words_of_runs(column.str.extract_all(WORD_OR_RUN + sign))
        else:
            column = column.str.extract_all(self.pattern)
        if self._matches_white_space:
            column = column.list.eval(_without_space(pl.element()))
            column = column.list.filter(pl.element() != "")
        if self.stop_words:
            column = column.list.filter(~pl.element().is_in(list(self.stop_words)))
        frame = pl.LazyFrame({"text": texts})
        n_per_thread = max(-(-len(texts) // pl.thread_pool_size()), 1)
        firsts = range(0, max(len(texts), 1), n_per_thread)
        parts = [frame.slice(first, n_per_thread).select(column) for first in firsts]
        return pl.concat(parts).collect()["text"]

    def spans(self, text: str) -> list[TokenSpan]:
        """One text's tokens with their place; the tokens are those of `split`."""
        placed = self._without_markup(PlacedText.of(SURROGATE.sub("\ufffd", text)))
        if self.lowercase:
            placed = placed.lowercased()
        matches = find_matches(placed.text, self.pattern)
        if self._lexicon.words:
            matches = self._lexicon.joined(placed.text, matches)
        words = [placed.text[start:end] for start, end in matches]
        if self._matches_white_space:
            matches = _trimmed(matches, words)
            words = _without_space(pl.Series(words, dtype=pl.String)).to_list()
        skipped = {"", *self.stop_words}
        return [
            TokenSpan(placed.starts[start], placed.ends[end - 1], word)
            for (start, end), word in zip(matches, words, strict=True)
            if word not in skipped
        ]

    def _without_markup(self, placed: PlacedText) -> PlacedText:
        """The text as `split` reads it, before it is converted to lower case."""
        replacements: list[tuple[str, str]] = []
        if self.html == "skip":
            replacements = [(APOSTROPHE, "'"), (SKIPPED, " ")]
        elif self.html == "strip":
            replacements = [(MARKUP, " ")]
        elif self.line_breaks:
            replacements = [(LINE_BREAK, " ")]
        for pattern, replacement in replacements:
            if "<" in placed.text or ";" in placed.text:  # every match contains one of them
                matches = find_matches(placed.text, pattern)
                placed = placed.replaced(matches, lambda _, put_in=replacement: put_in)  # type: ignore[misc]
        if self.html == "strip":
            references = [match.span() for match in _ENTITY.finditer(placed.text)]
            placed = placed.replaced(references, _decode_reference)
        return placed

    def to_dict(self) -> dict[str, Any]:
        """Settings as JSON values; what only matters to scripts without spaces is left out without
        them."""
        settings = {"kind": "words", **asdict(self), "stop_words": list(self.stop_words)}
        settings["lexicon"] = list(self.lexicon or ())
        for name, usual in (("words", "data"), ("lexicon", [])):
            if settings[name] == usual:
                del settings[name]
        return settings

    def with_words(self, words: Iterable[str]) -> WordTokenizer:
        """The tokenizer that also reads these as words, if they are of scripts without spaces."""
        if self.pattern != WORD:
            return self
        new = {word for word in words if not word.isascii() and is_unspaced_word(word)}
        if not new:
            return self
        return replace(self, lexicon=tuple(sorted(new.union(self.lexicon or ()))))


def read_stop_words(path: Path, lowercase: bool = True) -> tuple[str, ...]:
    """Read stop words from a UTF-8 file, one a line; blank lines and lines that start with # are
    skipped."""
    content = PlainText(path, str(path), SourceSettings(encoding="utf-8")).full_text()
    words = set()
    for line in content.splitlines():
        word = line.strip()
        if word and not word.startswith("#"):
            words.add(word.lower() if lowercase else word)
    if not words:
        raise InputError(f"{path.name} contains no stop words; write one per line")
    return tuple(sorted(words))


def _without_space(words: E) -> E:
    """The words without white space around them, and with `_` for that inside."""
    return words.str.replace_all(r"^\s+|\s+$", "").str.replace_all(r"\s+", "_")


def _trimmed(matches: list[Span], words: list[str]) -> list[Span]:
    """The places of the words without the white space around them."""
    column = pl.Series(words, dtype=pl.String)
    n_before = column.str.extract(r"^(\s*)").str.len_chars()
    n_behind = column.str.extract(r"(\s*)$").str.len_chars()
    places = zip(matches, n_before, n_behind, strict=True)
    return [(start + before, end - behind) for (start, end), before, behind in places]


def _decode_references(texts: pl.Series) -> pl.Series:
    """The texts with characters in place of HTML's references to them."""
    if not texts.str.contains("&", literal=True).any():
        return texts
    decoded = (_ENTITY.sub(lambda match: _decode_reference(match[0]), text) for text in texts)
    return pl.Series(texts.name, decoded, dtype=pl.String)


def _decode_reference(reference: str) -> str:
    """The character that a character reference of HTML (&amp;, &#233;) stands for."""
    return SURROGATE.sub("\ufffd", html.unescape(reference))


@dataclass(frozen=True)
class FieldTokenizer:
    """Tokens that know their field, written `field:token`; no n-gram crosses from one field into
    another.

    White space and colons in the name of a field become `_`, because a space joins the words of an
    n-gram. If there is one text and the other fields are values of columns, its words are written
    without a field.

    Attributes:
        base: splits the text of a field.
        fields: their names.
        columns: those that are values of other columns, and how these become words
            (`tokensieve.read.column_tokens.ColumnTokens`).
    """

    base: WordTokenizer | PieceTokenizer
    fields: tuple[str, ...]
    columns: tuple[tuple[str, ColumnKind], ...] = ()

    def split(self, texts: pl.Series) -> pl.Series:
        """Split each text into tokens, in order."""
        documents: list[int] = []
        prefixes: list[str] = []
        parts: list[str] = []
        for document, text in enumerate(texts):
            for name, start, end in split_fields(self.fields, text):
                documents.append(document)
                prefixes.append(self.prefixes[name])
                parts.append(text[start:end])
        columns = {"document": documents, "prefix": prefixes, "text": parts}
        schema = {"document": pl.Int64, "prefix": pl.String, "text": pl.String}
        frame = pl.DataFrame(columns, schema)
        tokens = (
            frame.with_columns(token=self.base.split(frame["text"]))
            .explode("token")
            .drop_nulls("token")
            .group_by("document", maintain_order=True)
            .agg(token=pl.col("prefix") + pl.col("token"))
        )
        every_document = pl.DataFrame({"document": np.arange(len(texts))})
        lists = every_document.join(tokens, on="document", how="left", maintain_order="left")[
            "token"
        ]
        return lists.fill_null(pl.Series([[]], dtype=pl.List(pl.String))).alias(texts.name)

    def spans(self, text: str) -> list[TokenSpan]:
        """One text's tokens with their place."""
        text = text_series([text])[0]
        tokens = []
        for name, start, end in split_fields(self.fields, text):
            for first, last, token in self.base.spans(text[start:end]):
                token = self.prefixes[name] + token
                tokens.append(TokenSpan(start + first, start + last, token))
        return tokens

    def written_texts(self, texts: pl.Series) -> pl.Series:
        """The texts of all documents' fields, each without its name, but not values of columns."""
        of_columns = dict(self.columns)
        parts = [
            " ".join(
                text[start:end]
                for name, start, end in split_fields(self.fields, text)
                if name not in of_columns
            )
            for text in texts
        ]
        return pl.Series(texts.name, parts, dtype=pl.String)

    def field_of(self, token: str) -> str:
        """The field of a token; "" if it belongs to none."""
        fields = [name for name, prefix in self.prefixes.items() if token.startswith(prefix)]
        return max(fields, key=lambda name: len(self.prefixes[name]), default="")

    def is_value(self, token: str) -> bool:
        """Whether a token represents a value of another column."""
        return self.field_of(token) in dict(self.columns)

    @cached_property
    def prefixes(self) -> dict[str, str]:
        """Field → what its tokens begin with: its name, with `_` for white space and colons, and a
        colon.

        A single text has the prefix "".
        """
        prefixes: dict[str, str] = {}
        for name in self.fields:
            prefix = re.sub(r"[\s:]", "_", name)
            while f"{prefix}:" in prefixes.values():
                prefix += "_"
            prefixes[name] = f"{prefix}:"
        texts = [name for name in self.fields if name not in dict(self.columns)]
        if len(texts) == 1:
            prefixes[texts[0]] = ""
        return prefixes

    def to_dict(self) -> dict[str, Any]:
        """Settings as JSON values."""
        settings = {"kind": "fields", "fields": list(self.fields), "base": self.base.to_dict()}
        if self.columns:
            settings["columns"] = {
                name: list(kind) if isinstance(kind, tuple) else kind for name, kind in self.columns
            }
        return settings


def with_named_words(tokenizer: Tokenizer, tokens: Iterable[str]) -> Tokenizer:
    """The tokenizer that also reads as words those that someone names.

    Only phrases of scripts without spaces change anything: without a lexicon, the tokenizer would
    never produce them. `tokens` are words, n-grams, or both behind the name of their field.
    """
    if isinstance(tokenizer, FieldTokenizer):
        base = with_named_words(tokenizer.base, tokens)
        assert isinstance(base, WordTokenizer | PieceTokenizer)
        return replace(tokenizer, base=base)
    if not isinstance(tokenizer, WordTokenizer):
        return tokenizer
    words = [word.rpartition(":")[2] for token in tokens for word in token.split(" ")]
    return tokenizer.with_words(words)


def tokenizer_of_fields(
    tokenizer: Tokenizer,
    fields: tuple[str, ...],
    columns: Mapping[str, ColumnKind] | None = None,
) -> Tokenizer:
    """The tokenizer for texts of these fields; itself if there are none, or if it is one
    already."""
    if not fields or isinstance(tokenizer, FieldTokenizer):
        return tokenizer
    if not isinstance(tokenizer, WordTokenizer | PieceTokenizer):
        raise InputError(f"a {type(tokenizer).__name__} cannot split texts of several fields")
    return FieldTokenizer(tokenizer, fields, tuple((columns or {}).items()))


def tokenizer_from_dict(settings: dict[str, Any]) -> Tokenizer:
    """The inverse of `Tokenizer.to_dict`; a ValueError if these are not the settings of a
    tokenizer."""
    kind = settings["kind"]
    if kind == "pieces":
        return PieceTokenizer(settings["json"])
    if kind == "fields":
        return _field_tokenizer_from_dict(settings)
    if kind != "words":
        raise ValueError(f"unknown tokenizer kind {kind!r:.40}")
    try:
        # models of 0.1 have no "html" and keep it; none without a lexicon learns one later
        return msgspec.convert({"html": False, "lexicon": ()} | settings, WordTokenizer)
    except msgspec.ValidationError as problem:
        raise ValueError(f"invalid tokenizer settings: {problem}") from None


def _field_tokenizer_from_dict(settings: dict[str, Any]) -> FieldTokenizer:
    """The tokenizer of documents with several fields that stored settings describe.

    Raises:
        ValueError: there are no fields, too many, or columns that are none of them.
    """
    base = tokenizer_from_dict(settings["base"])
    fields = settings["fields"]
    has_names = 0 < len(fields) <= MAX_FIELDS and all(isinstance(name, str) for name in fields)
    if not has_names or not isinstance(base, WordTokenizer | PieceTokenizer):
        raise ValueError("no fields, or no tokenizer for them")
    columns = msgspec.convert(settings.get("columns", {}), dict[str, ColumnKind])
    if not set(columns) <= set(fields):
        raise ValueError("columns that are not fields")
    return FieldTokenizer(base, tuple(fields), tuple(columns.items()))
