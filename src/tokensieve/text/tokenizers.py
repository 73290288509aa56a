"""Text → tokens: words and emoji by Unicode rules, or the pieces of a Hugging Face tokenizer."""

from __future__ import annotations

import base64
import html
import json
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import wait
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

import msgspec
import numpy as np
import polars as pl

from tokensieve.errors import InputError, one_line
from tokensieve.files import read_regular
from tokensieve.progress import in_background
from tokensieve.read.fields import ColumnKind, split_fields
from tokensieve.read.plain import PlainText
from tokensieve.read.settings import SourceSettings
from tokensieve.read.values import SURROGATE, text_series

UNSPACED = r"[\p{Han}\p{Hiragana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
_W = rf"[\w--{UNSPACED}]"
# Tried in this order at each place. The page has the same rule in JavaScript (report/live/words.js).
WORD = "|".join(
    (
        r"(?:https?://|www\.)[^\s<>\x22]*[^\s<>\x22'.,;:!?)\]}…”’]",  # an address, without the sign behind it
        rf"{_W}[\w.+\-]*@{_W}+(?:[.\-]{_W}+)*\.\p{{L}}\p{{L}}+",  # an e-mail address
        rf"(?:[\p{{L}}--{UNSPACED}]\.){{2,}}",  # e.g. and U.S.
        rf"[$€£¥]?\p{{Nd}}{_W}*(?:[.,:/]\p{{Nd}}{_W}*)*(?:['’]{_W}+)*[%‰€]?",  # $20, 4/10, 50%, 10:30, 3.11, 1,000
        r"v\p{Nd}+(?:\.\p{Nd}+)+",  # v1.2
        rf"{_W}+\+\+",  # C++
        rf"{_W}+(?:['’]{_W}+)*",  # words
        rf"{UNSPACED}[\p{{M}}\x{{200C}}\x{{200D}}]*",
        r"\p{Extended_Pictographic}(?:\p{Emoji_Modifier}|\x{FE0F}|\x{200D}\p{Extended_Pictographic})*",  # emoji
        r"\p{Regional_Indicator}{2}",  # flags
    )
)
LINE_BREAK = r"(?i)<br\s*/?>"
MARKUP = r"(?is)<!--.*?-->|<script\b.*?</script\s*>|<style\b.*?</style\s*>|</?[a-z][^<>]*>"
_TAGS = (
    "a abbr b big blockquote body br button center code dd div dl dt em font form h1 h2 h3 h4 h5 h6 head hr html i iframe img "
    "input li link meta ol option p pre s section small span strike strong style sub sup table tbody td th thead title tr tt u ul "
    "video"
)
# tags of HTML (other words in angle brackets are placeholders), character references, and what is left of them without "&"
SKIPPED = (
    r"(?is)<!--.*?-->|<script[ >].*?</script *>|<style[ >].*?</style *>|"
    rf"</?(?:{_TAGS.replace(' ', '|')})(?:[ \t\r\n/][^<>]*)?>|"
    r"&(?:[a-z][a-z0-9]{1,30}|#[0-9]{1,7}|#x[0-9a-f]{1,6});|#[0-9]{2,5};|quot;|nbsp;"
)
APOSTROPHE = r"(?i)&(?:#0?39|#x27|apos|rsquo|#8217);|#39;"
# what WORD, and WORD or any sign, find in ASCII, without a call of Polars for each text
_ASCII_WORD = {
    WORD + sign: re.compile(
        r"(?:https?://|www\.)[^\s<>\"]*[^\s<>\"'.,;:!?)\]}]|\w[\w.+\-]*@\w+(?:[.\-]\w+)*\.[A-Za-z]{2,}|(?:[A-Za-z]\.){2,}"
        r"|\$?\d\w*(?:[.,:/]\d\w*)*(?:'\w+)*%?|v\d+(?:\.\d+)+|\w+\+\+|\w+(?:'\w+)*" + sign,
        re.ASCII,
    )
    for sign in ("", r"|[^\w\s\x1f]")
}
# the same for markup, which is the same in ASCII for both libraries; longer texts could keep Python's searching for minutes
_ASCII_MARKUP = {
    pattern: re.compile(pattern, re.ASCII) for pattern in (SKIPPED, APOSTROPHE, MARKUP, LINE_BREAK)
}
_ENTITY = re.compile(r"&(?:[A-Za-z][A-Za-z0-9]*|#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6});")
_SHORT = 10_000  # characters
# how the values of a column become words: by month, by quarter (where the first three end), or each as it is
Html = Literal["skip", "keep", "strip"]
E = TypeVar("E", pl.Series, pl.Expr)


@runtime_checkable
class Tokenizer(Protocol):
    """The interface that the rest of the package requires of a tokenizer."""

    def split(self, texts: pl.Series) -> pl.Series:
        """Each text's tokens in order, as a series of lists of strings."""

    def spans(self, text: str) -> list[tuple[int, int, str]]:
        """One text's tokens with their place: (start, end, token), in characters of `text`."""

    def to_dict(self) -> dict[str, Any]:
        """Everything needed to build the same tokenizer again, as JSON values."""


@dataclass(frozen=True)
class WordTokenizer:
    """Words and emoji of a text, Unicode-aware.

    The rule is that of Unicode's word boundaries (UAX 29) with a few additions and one exception. A word is a run of letters,
    marks, digits and underscores, with apostrophes inside it (`don't`). Each of these is one token: numbers with `. , : /` between
    digits and with a currency or percent sign (`4/10`, `10:30`, `$20`, `50%`), versions (`v1.2`), abbreviations (`e.g.`), web and
    e-mail addresses, and `C++`. The exception: a full stop between letters ends a word, as reviews often lack the space after it
    (`film.It`). In scripts that are written without spaces (Han, Hiragana, Thai, Lao, Khmer, Myanmar) each character, with the
    marks on it, is a token of its own: n-grams of two or three then take the place of words. Runs of Katakana are words.

    A space joins the words of an n-gram, so no token contains one. White space matched by a custom pattern is trimmed at both ends
    and becomes `_` inside (`[^,]+` reads `deep learning` as `deep_learning`).

    Attributes:
        lowercase: convert to Unicode lower case first.
        line_breaks: read HTML's `<br>` as white space.
        pattern: regular expression of a token, in the syntax of Rust's `regex`; an `InputError` if invalid or empty text matches.
        html: "skip" reads HTML's tags and character references as white space (`&#39;` as an apostrophe), since they are
            formatting; "strip" decodes character references and reads everything in angle brackets as white space;
            "keep" splits both into words like any text.
        stop_words: tokens that are dropped before n-grams are formed; in lower case if `lowercase` is set.
    """

    lowercase: bool = True
    line_breaks: bool = True
    pattern: str = field(default=WORD, repr=False)
    html: Html | bool = "skip"
    stop_words: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.html, bool):  # as in 0.2
            object.__setattr__(self, "html", "strip" if self.html else "keep")
        try:
            found = pl.Series(["", "a b"]).str.extract_all(self.pattern)
        except pl.exceptions.PolarsError as problem:
            said = re.search(r"(?m)^error: (.*)$", str(problem))
            reason = said[1] if said else "it cannot be read"
            raise InputError(
                f"the pattern {self.pattern[:80]!r} is not a valid regular expression: {reason}; check --pattern"
            ) from None
        if "" in found.explode().to_list():
            raise InputError(
                f"the pattern {self.pattern[:80]!r} matches empty text; it must match a character"
            )

    def split(self, texts: pl.Series) -> pl.Series:
        """Each text's tokens in order; Polars' threads share the texts."""
        column = pl.col("text")
        if self.html == "skip":
            column = column.str.replace_all(APOSTROPHE, "'").str.replace_all(SKIPPED, " ")
        if self.html == "strip":
            texts = texts.str.replace_all(MARKUP, " ")
            if texts.str.contains("&", literal=True).any():
                said = (_ENTITY.sub(lambda found: _meaning(found[0]), text) for text in texts)
                texts = pl.Series(texts.name, said, dtype=pl.String)
        if self.line_breaks and self.html == "keep":
            column = column.str.replace_all(LINE_BREAK, " ")
        if self.lowercase:
            column = column.str.to_lowercase()
        column = column.str.extract_all(self.pattern)
        if self.pattern not in _ASCII_WORD:
            column = column.list.eval(_without_space(pl.element())).list.filter(pl.element() != "")
        if self.stop_words:
            column = column.list.filter(~pl.element().is_in(list(self.stop_words)))
        frame, share = pl.LazyFrame({"text": texts}), -(-len(texts) // pl.thread_pool_size()) or 1
        parts = [frame.slice(i, share) for i in range(0, max(len(texts), 1), share)]
        return pl.concat([part.select(column) for part in parts]).collect()["text"]

    def spans(self, text: str) -> list[tuple[int, int, str]]:
        """One text's tokens with their place; the tokens are those of `split`."""
        text = SURROGATE.sub("\ufffd", text)
        place: Sequence[int] = range(
            len(text)
        )  # where each character begins and ends in the text as given
        ends: Sequence[int] = range(1, len(text) + 1)
        blanks = {"skip": [(APOSTROPHE, "'"), (SKIPPED, " ")], "strip": [(MARKUP, " ")]}
        for pattern, put in blanks.get(str(self.html), [(LINE_BREAK, " ")] * self.line_breaks):
            if "<" in text or ";" in text:  # every match holds one of them
                text, place, ends = _replaced(text, place, ends, _matches(text, pattern), put)
        if self.html == "strip":
            entities = [found.span() for found in _ENTITY.finditer(text)]
            text, place, ends = _replaced(text, place, ends, entities, _meaning)
        if self.lowercase:
            if len(text.lower()) > len(text):
                times = [len(character.lower()) for character in text]
                place, ends = np.repeat(place, times).tolist(), np.repeat(ends, times).tolist()
            text = text.lower() if _in_ascii(text) else pl.Series([text]).str.to_lowercase()[0]
        found = _matches(text, self.pattern)
        words = [text[a:z] for a, z in found]
        if self.pattern not in _ASCII_WORD:
            matched = pl.Series(words, dtype=pl.String)
            before, behind = (
                matched.str.extract(space).str.len_chars() for space in (r"^(\s*)", r"(\s*)$")
            )
            found = [(a + i, z - j) for (a, z), i, j in zip(found, before, behind, strict=True)]
            words = _without_space(matched).to_list()
        left_out = {"", *self.stop_words}
        return [
            (place[a], ends[z - 1], word)
            for (a, z), word in zip(found, words, strict=True)
            if word not in left_out
        ]

    def to_dict(self) -> dict[str, Any]:
        """Settings as JSON values."""
        return {"kind": "words", **asdict(self), "stop_words": list(self.stop_words)}


def read_stop_words(path: Path, lowercase: bool = True) -> tuple[str, ...]:
    """Read stop words from a UTF-8 file, one a line; blank lines and lines that start with # are skipped."""
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


def _replaced(
    text: str,
    place: Sequence[int],
    ends: Sequence[int],
    spans: Sequence[tuple[int, int]],
    put: str | Callable[[str], str],
) -> tuple[str, list[int], list[int]]:
    """The text with something put for each span, and where each of its characters begins and ends in the text as given."""
    parts, first, last, at = list[str](), list[int](), list[int](), 0
    for start, end in [*spans, (len(text), len(text))]:
        new = "" if start == end else put if isinstance(put, str) else put(text[start:end])
        parts += text[at:start], new
        first += *place[at:start], *([*place[start : start + 1]] * len(new))
        last += *ends[at:start], *([*ends[end - 1 : end]] * len(new))
        at = end
    return "".join(parts), first, last


def _meaning(entity: str) -> str:
    """What a character reference of HTML stands for."""
    return SURROGATE.sub("\ufffd", html.unescape(entity))


@cache
def _alike() -> dict[int, str]:
    """Characters of European texts → one of ASCII that is the same to `WORD`; of these no lower case depends on its neighbours."""
    same = {"’": "'", "£": "$", "¥": "$", "‰": "%", "…": "!", "”": "!"}
    out = {code: chr(code) for code in range(128)}
    for code in {*range(128, 0x530), *range(0x2010, 0x2060)} - set(map(ord, "©®‼⁉İſΣσς")):
        character, kind = chr(code), unicodedata.category(chr(code))
        by_kind = {"Nd": "0", "Pc": "_", "Cn": "\x80"}.get(
            kind, {"L": "a", "M": "_"}.get(kind[0], "\x7f")
        )
        out[code] = same.get(character, " " if character.isspace() else by_kind)
    return out


def _in_ascii(text: str) -> str:
    """The text in ASCII characters that are the same to `WORD`, one for each of it; "" where some have none."""
    alike = text if text.isascii() else text.translate(_alike())
    return alike if alike.isascii() else ""


def _matches(text: str, pattern: str) -> list[tuple[int, int]]:
    """Start and end, in characters, of every match that Polars' regular expressions find."""
    alike = _in_ascii(text)
    if pattern in _ASCII_WORD and alike:
        return [found.span() for found in _ASCII_WORD[pattern].finditer(alike)]
    # the other patterns look for white space
    if (
        alike
        and pattern in (_ASCII_MARKUP if text.isascii() else (APOSTROPHE, SKIPPED))
        and len(text) <= _SHORT
    ):
        return [found.span() for found in _ASCII_MARKUP[pattern].finditer(text)]
    mark = next(c for c in map(chr, range(0xE000, 0x110000)) if c not in text)
    cut = pl.Series([text]).str.replace_all(pattern, mark + "${0}" + mark)[0].split(mark)
    ends = np.cumsum([len(part) for part in cut]).tolist()
    return list(zip(ends[0::2], ends[1::2], strict=False))


@dataclass(frozen=True)
class FieldTokenizer:
    """Tokens that know their field, written `field:token`; no n-gram crosses from one field into another.

    White space and colons in the name of a field become `_`, because a space joins the words of an n-gram. If there is one text and
    the other fields are values of columns, its words are written without a field.

    Attributes:
        base: splits the text of a field.
        fields: their names.
        columns: those that are values of other columns, and how these become words (`tokensieve.read.documents.ColumnTokens`).
    """

    base: WordTokenizer | PieceTokenizer
    fields: tuple[str, ...]
    columns: tuple[tuple[str, ColumnKind], ...] = ()

    def split(self, texts: pl.Series) -> pl.Series:
        """Each text's tokens in order."""
        parts = [
            (k, self.prefixes[name], text[start:end])
            for k, text in enumerate(texts)
            for name, start, end in split_fields(self.fields, text)
        ]
        parted = pl.DataFrame(
            parts, {"document": pl.Int64, "prefix": pl.String, "text": pl.String}, orient="row"
        )
        flat = (
            parted.with_columns(token=self.base.split(parted["text"]))
            .explode("token")
            .drop_nulls("token")
        )
        each = flat.group_by("document", maintain_order=True).agg(
            token=pl.col("prefix") + pl.col("token")
        )
        every = pl.DataFrame({"document": np.arange(len(texts))})
        found = every.join(each, on="document", how="left", maintain_order="left")["token"]
        return found.fill_null(pl.Series([[]], dtype=pl.List(pl.String))).alias(texts.name)

    def spans(self, text: str) -> list[tuple[int, int, str]]:
        """One text's tokens with their place."""
        text = text_series([text])[0]
        return [
            (start + first, start + last, self.prefixes[name] + token)
            for name, start, end in split_fields(self.fields, text)
            for first, last, token in self.base.spans(text[start:end])
        ]

    def field_of(self, token: str) -> str:
        """The field of a token; "" if it belongs to none."""
        found = [name for name, begin in self.prefixes.items() if token.startswith(begin)]
        return max(found, key=lambda name: len(self.prefixes[name]), default="")

    def is_value(self, token: str) -> bool:
        """Whether a token represents a value of another column."""
        return self.field_of(token) in dict(self.columns)

    @cached_property
    def prefixes(self) -> dict[str, str]:
        """Field → what its tokens begin with: its name, with `_` for white space and colons, and a colon."""
        found: dict[str, str] = {}  # the other way round
        for name in self.fields:
            prefix = re.sub(r"[\s:]", "_", name)
            while f"{prefix}:" in found:
                prefix += "_"
            found[f"{prefix}:"] = name
        texts = [name for name in self.fields if name not in dict(self.columns)]
        return {name: prefix for prefix, name in found.items()} | {
            name: "" for name in texts if len(texts) == 1
        }

    def to_dict(self) -> dict[str, Any]:
        """Settings as JSON values."""
        kinds = {
            name: list(kind) if isinstance(kind, tuple) else kind for name, kind in self.columns
        }
        settings = {"kind": "fields", "fields": list(self.fields), "base": self.base.to_dict()}
        return settings | ({"columns": kinds} if kinds else {})

    @staticmethod
    def over(
        tokenizer: Tokenizer,
        fields: tuple[str, ...],
        columns: Mapping[str, ColumnKind] | None = None,
    ) -> Tokenizer:
        """The tokenizer for texts of these fields; itself where there are none."""
        if not fields or isinstance(tokenizer, FieldTokenizer):
            return tokenizer
        if not isinstance(tokenizer, WordTokenizer | PieceTokenizer):
            raise InputError(f"a {type(tokenizer).__name__} cannot split texts of several fields")
        return FieldTokenizer(tokenizer, fields, tuple((columns or {}).items()))


def tokenizer_from_dict(settings: dict[str, Any]) -> Tokenizer:
    """The inverse of `Tokenizer.to_dict`; a ValueError if these are not the settings of a tokenizer."""
    kind = settings["kind"]
    if kind == "pieces":
        return PieceTokenizer(settings["json"])
    if kind == "fields":
        base, fields = tokenizer_from_dict(settings["base"]), settings["fields"]
        named = 0 < len(fields) <= 1_000 and all(isinstance(x, str) for x in fields)
        if not (named and isinstance(base, WordTokenizer | PieceTokenizer)):
            raise ValueError("no fields, or no tokenizer for them")
        columns = msgspec.convert(settings.get("columns", {}), dict[str, ColumnKind])
        if not set(columns) <= set(fields):
            raise ValueError("columns that are not fields")
        return FieldTokenizer(base, tuple(fields), tuple(columns.items()))
    if kind != "words":
        raise ValueError(f"unknown tokenizer kind {kind!r:.40}")
    try:
        return msgspec.convert({"html": False} | settings, WordTokenizer)
    except msgspec.ValidationError as problem:
        raise ValueError(f"invalid tokenizer settings: {problem}") from None


_COMPONENTS = {
    "normalizer": "BertNormalizer ByteLevel Lowercase NFC NFD NFKC NFKD Nmt Precompiled Prepend Replace Sequence Strip "
    "StripAccents".split(),
    "pre_tokenizer": "BertPreTokenizer ByteLevel CharDelimiterSplit Digits FixedLength Metaspace Punctuation Sequence Split "
    "UnicodeScripts Whitespace WhitespaceSplit".split(),
}
# each known to make some broken tokenizer panic, hang or grow
_SENTENCES = (
    *(
        "",
        " ",
        "A plain sentence, with words.",
        "<s></s>[CLS][SEP]<pad>",
        "這是一個句子",
        "\U0010ffff\ue000",
    ),
    *(
        "a" * 3000,
        "ab" * 1000,
        "1" * 1000,
        " " * 1000,
        "\n" * 100,
        "aA1 ,." * 300,
        "!?" * 500,
        "aaaa b aaaa c" * 100,
    ),
    *(
        "e\u0301" * 200,
        "\u0000\u0001\ufffd\u200b\ufeff",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467" * 50,
    ),
    *("\u0628\u0650" * 100, "ﬁ½℃㈱ŉǆ" * 20),
)


class PieceTokenizer:
    """Any Hugging Face `tokenizers` tokenizer (word pieces, BPE, unigram); special tokens are left out.

    It is given as a `tokenizers.Tokenizer`, the path of its `tokenizer.json`, or that file's JSON text. An `InputError` if there is
    none, or if it fails on a trial sentence.
    """

    def __init__(self, source: Any) -> None:
        from tokenizers import Tokenizer as Pieces

        name, content = "the tokenizer", source.to_str() if isinstance(source, Pieces) else source
        if not (isinstance(content, str) and content.lstrip().startswith("{")):
            name = str(source)[:200]
            try:
                content = read_regular(Path(source), links=True).decode()
            except (OSError, ValueError) as problem:
                raise InputError(
                    f"{name} is not a tokenizers file (tokenizer.json): {str(problem)[:200]}"
                ) from None
        with one_line(f"{name} is not a tokenizers file (tokenizer.json)"):
            self._pieces = Pieces.from_str(
                json.dumps(_checked(json.loads(content)), ensure_ascii=False)
            )
            self._pieces.no_padding()
            self._pieces.no_truncation()
        self._encoded(_SENTENCES, 8, f"{name} fails on ordinary text")

    def _encoded(
        self, texts: Sequence[str], seconds: float = 60, what: str = "the tokenizer fails on a text"
    ) -> list[Any]:
        """The library's encodings, made in a thread: a pattern may backtrack for hours, and an interrupt would wait for it."""
        seconds += sum(map(len, texts)) / 10_000  # tokenizers read a hundred times as fast
        with one_line(what):
            encoded = in_background(
                lambda: self._pieces.encode_batch(texts, add_special_tokens=False)
            )
            if not wait([encoded], seconds).done:
                raise ValueError(
                    f"it needs more than {seconds:,.0f} seconds for {len(texts):,} texts"
                )
            return list(encoded.result())

    def split(self, texts: pl.Series) -> pl.Series:
        """Each text's pieces in order."""
        encoded = self._encoded(texts.to_list())
        pieces = pl.Series([e.tokens for e in encoded], dtype=pl.List(pl.String))
        return pieces.list.eval(
            pl.element().str.replace_all(r"\s", "_")
        )  # a space joins the words of an n-gram

    def spans(self, text: str) -> list[tuple[int, int, str]]:
        """One text's pieces with their place."""
        text = text_series([text])[0]
        (e,) = self._encoded([text])
        tokens = pl.Series(e.tokens, dtype=pl.String).str.replace_all(r"\s", "_")
        return [(start, end, token) for (start, end), token in zip(e.offsets, tokens, strict=True)]

    def to_dict(self) -> dict[str, Any]:
        """The tokenizer itself, as JSON text."""
        return {"kind": "pieces", "json": self._pieces.to_str()}


def _checked(description: Any) -> Any:
    """The description with known components only, and without what is not needed to split texts; else a ValueError."""
    model = description.get("model") if isinstance(description, dict) else None
    if not isinstance(model, dict) or model.get("type", "BPE") not in (
        "BPE",
        "WordPiece",
        "WordLevel",
        "Unigram",
    ):
        raise ValueError("its model is not BPE, Unigram, WordLevel or WordPiece")
    if not model.get("vocab"):
        raise ValueError("it has no vocabulary")
    if model.get("dropout"):
        raise ValueError("its dropout makes pieces random; set it to null")
    most = model.get("max_input_chars_per_word")
    if (
        isinstance(most, int) and most > 1_000
    ):  # the time for a word grows with the cube of its length
        raise ValueError("its max_input_chars_per_word is over 1000")
    # the library cuts the prefix off the second piece by its length, and a cut within a character ends the whole process
    if prefix := model.get("continuing_subword_prefix"):
        merges = model.get("merges") or []
        pieces = [
            one.split(" ") if isinstance(one, str) else one
            for one in merges
            if isinstance(merges, list)
        ]
        if not all(
            isinstance(one, list) and str(one[-1]).startswith(str(prefix)) for one in pieces if one
        ):
            raise ValueError(
                f"a merge continues a word with a piece that does not begin with {str(prefix)[:20]!r}"
            )
    growth, depth = 1, 0
    for kind, known in _COMPONENTS.items():
        parts = [] if description.get(kind) is None else [description[kind]]
        while parts:
            part, depth = parts.pop(), depth + 1
            if not isinstance(part, dict) or depth > 200 or part.get("type") not in known:
                name = part.get("type") if isinstance(part, dict) else part
                raise ValueError(
                    f"its {kind} {str(name)[:40]!r} is not supported, or there are over 200 of them"
                )
            parts += part.get("normalizers") or part.get("pretokenizers") or []
            growth *= _growth(part) if kind == "normalizer" else 1
    if growth > 64:
        raise ValueError("its normalizer can make a text over 64 times as long")
    return description | {"post_processor": None, "padding": None, "truncation": None}


def _growth(part: Mapping[str, Any]) -> int:
    """How many times as long a normalizer can make a text, at most."""
    if (
        part["type"] == "Precompiled"
    ):  # the length of a trie, the trie, and the texts that it leads to
        charsmap = base64.b64decode(str(part.get("precompiled_charsmap") or ""))
        return (
            max(
                map(len, charsmap[4 + int.from_bytes(charsmap[:4], "little") :].split(b"\0")),
                default=1,
            )
            or 1
        )
    written = part.get("content", part.get("prepend"))
    return (
        2
        if part["type"] == "ByteLevel"
        else max(len(written), 1)
        if isinstance(written, str)
        else 1
    )
