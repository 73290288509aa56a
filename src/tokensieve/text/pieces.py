"""Tokenizers of the `tokenizers` library, whose files other people make: what could crash, hang or grow is refused."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from tokensieve.errors import InputError, one_line
from tokensieve.files import read_regular
from tokensieve.text.values import text_series

_COMPONENTS = {
    "normalizer": "BertNormalizer ByteLevel Lowercase NFC NFD NFKC NFKD Nmt Precompiled Prepend Replace Sequence Strip "
    "StripAccents".split(),
    "pre_tokenizer": "BertPreTokenizer ByteLevel CharDelimiterSplit Digits FixedLength Metaspace Punctuation Sequence Split "
    "UnicodeScripts Whitespace WhitespaceSplit".split(),
}
# each known to make some broken tokenizer panic, hang or grow
_SENTENCES = (
    *("", " ", "A plain sentence, with words.", "<s></s>[CLS][SEP]<pad>", "這是一個句子", "\U0010ffff\ue000"),
    *("a" * 3000, "ab" * 1000, "1" * 1000, " " * 1000, "\n" * 100, "aA1 ,." * 300, "!?" * 500, "aaaa b aaaa c" * 100),
    *("e\u0301" * 200, "\u0000\u0001\ufffd\u200b\ufeff", "\U0001f468\u200d\U0001f469\u200d\U0001f467" * 50),
    *("\u0628\u0650" * 100, "ﬁ½℃㈱ŉǆ" * 20),
)


class PieceTokenizer:
    """Any Hugging Face `tokenizers` tokenizer (word pieces, BPE, unigram); special tokens are left out.

    It is given as a `tokenizers.Tokenizer`, the path of its `tokenizer.json`, or that file's JSON text. An `InputError` says that
    there is none, or that it fails on one of the sentences that it is tried on.
    """

    def __init__(self, source: Any) -> None:
        from tokenizers import Tokenizer as Pieces

        name = "the tokenizer"
        if isinstance(source, Pieces):
            content = source.to_str()
        elif isinstance(source, str) and source.lstrip().startswith("{"):
            content = source
        else:
            name = str(source)[:200]
            try:
                content = read_regular(Path(source), links=True).decode()
            except (OSError, ValueError) as problem:
                raise InputError(f"{name} is not a tokenizers file (tokenizer.json): {str(problem)[:200]}") from None
        with one_line(f"{name} is not a tokenizers file (tokenizer.json)"):
            self._pieces = Pieces.from_str(json.dumps(_checked(json.loads(content)), ensure_ascii=False))
            self._pieces.no_padding()
            self._pieces.no_truncation()
        with one_line(f"{name} fails on ordinary text"):
            self._encoded(_SENTENCES, 8)

    def _encoded(self, texts: Sequence[str], seconds: float) -> list[Any]:
        """The library's encodings, made in a thread: a pattern may backtrack for hours, and an interrupt would wait for it."""
        found: list[Any] = []

        def encode() -> None:
            try:
                found.append(self._pieces.encode_batch(texts, add_special_tokens=False))
            except BaseException as problem:  # a panic is no Exception
                found.append(problem)

        thread = threading.Thread(target=encode, daemon=True)
        thread.start()
        thread.join(seconds)
        if not found:
            raise ValueError(f"it needs more than {seconds:,.0f} seconds for {len(texts):,} texts")
        if isinstance(found[0], BaseException):
            raise found[0]
        return list(found[0])

    def split(self, texts: pl.Series) -> pl.Series:
        """Each text's pieces in order."""
        whole = texts.to_list()
        with one_line("the tokenizer fails on a text"):
            encoded = self._encoded(
                whole, 60 + sum(map(len, whole)) / 10_000
            )  # tokenizers read a hundred times as fast
        pieces = pl.Series([e.tokens for e in encoded], dtype=pl.List(pl.String))
        return pieces.list.eval(pl.element().str.replace_all(r"\s", "_"))  # a space joins the words of an n-gram

    def spans(self, text: str) -> list[tuple[int, int, str]]:
        """One text's pieces with their place."""
        text = text_series([text])[0]
        with one_line("the tokenizer fails on a text"):
            (e,) = self._encoded([text], 60 + len(text) / 10_000)
        tokens = pl.Series(e.tokens, dtype=pl.String).str.replace_all(r"\s", "_")
        return [(start, end, token) for (start, end), token in zip(e.offsets, tokens, strict=True)]

    def to_dict(self) -> dict[str, Any]:
        """The tokenizer itself, as JSON text."""
        return {"kind": "pieces", "json": self._pieces.to_str()}


def _checked(description: Any) -> Any:
    """The description with known components only, and without what is not needed to split texts; else a ValueError."""
    model = description.get("model") if isinstance(description, dict) else None
    if not isinstance(model, dict) or model.get("type", "BPE") not in ("BPE", "WordPiece", "WordLevel", "Unigram"):
        raise ValueError("its model is none of BPE, Unigram, WordLevel and WordPiece")
    if not model.get("vocab"):
        raise ValueError("it has no vocabulary")
    if model.get("dropout"):
        raise ValueError("its dropout makes pieces random; set it to null")
    most = model.get("max_input_chars_per_word")
    if isinstance(most, int) and most > 1_000:  # the time for a word grows with the cube of its length
        raise ValueError("its max_input_chars_per_word is over 1000")
    # the library cuts the prefix off the second piece by its length, and a cut within a character ends the whole process
    if prefix := model.get("continuing_subword_prefix"):
        merges = model.get("merges") or []
        pieces = [one.split(" ") if isinstance(one, str) else one for one in merges if isinstance(merges, list)]
        if not all(isinstance(one, list) and str(one[-1]).startswith(str(prefix)) for one in pieces if one):
            raise ValueError(f"a merge continues a word with a piece that does not begin with {str(prefix)[:20]!r}")
    growth, depth = 1, 0
    for kind, known in _COMPONENTS.items():
        parts = [description.get(kind)]
        while parts:
            part, depth = parts.pop(), depth + 1
            if part is None:
                continue
            if not isinstance(part, dict) or depth > 200 or part.get("type") not in known:
                name = part.get("type") if isinstance(part, dict) else part
                raise ValueError(f"its {kind} {str(name)[:40]!r} is unknown, or one of too many")
            parts += part.get("normalizers") or part.get("pretokenizers") or []
            growth *= _growth(part) if kind == "normalizer" else 1
    if growth > 64:
        raise ValueError("its normalizer can make a text over 64 times as long")
    return description | {"post_processor": None, "padding": None, "truncation": None}


def _growth(part: Mapping[str, Any]) -> int:
    """How many times as long a normalizer can make a text, at most."""
    if part["type"] == "Precompiled":  # the length of a trie, the trie, and the texts that it leads to
        charsmap = base64.b64decode(str(part.get("precompiled_charsmap") or ""))
        return max(map(len, charsmap[4 + int.from_bytes(charsmap[:4], "little") :].split(b"\0")), default=1) or 1
    written = part.get("content", part.get("prepend"))
    return 2 if part["type"] == "ByteLevel" else max(len(written), 1) if isinstance(written, str) else 1
