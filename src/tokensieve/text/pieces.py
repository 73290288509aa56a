"""Hugging Face tokenizers: checked before they are used, since a file may hold anything.

The library is written in Rust, where a broken tokenizer panics: a backtrace on standard error, and an exception that `except
Exception` does not catch. So a tokenizer is built of known components, tries adversarial sentences when it is loaded, and
whatever it raises is one line.
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from tokensieve.errors import InputError
from tokensieve.files import read_regular

_MODELS = {"BPE", "WordPiece", "WordLevel", "Unigram"}
_NORMALIZERS = set(
    "BertNormalizer ByteLevel Lowercase NFC NFD NFKC NFKD Nmt Precompiled Prepend Replace Sequence Strip StripAccents".split()
)
_PRE_TOKENIZERS = set(
    "BertPreTokenizer ByteLevel CharDelimiterSplit Digits FixedLength Metaspace Punctuation Sequence Split UnicodeScripts "
    "Whitespace WhitespaceSplit".split()
)
_GROWTH = 64  # a text may become so many times as long
_SECONDS = 20  # for all sentences
_SENTENCES = (
    *("", " ", "A plain sentence, with words.", "<s></s>[CLS][SEP]<pad>", "這是一個句子", "\U0010ffff\ue000"),
    *("a" * 3000, "ab" * 1000, "1" * 1000, " " * 1000, "\n" * 100, "aA1 ,." * 300, "!?" * 500, "aaaa b aaaa c" * 100),
    *("e\u0301" * 200, "\u0000\u0001\ufffd\u200b\ufeff", "\U0001f468\u200d\U0001f469\u200d\U0001f467" * 50),
    *("\u0628\u0650" * 100, "ﬁ½℃㈱ŉǆ" * 20),
)


class PieceTokenizer:
    """Any Hugging Face `tokenizers` tokenizer (word pieces, BPE, unigram); special tokens are left out.

    Args:
        source: a `tokenizers.Tokenizer`, the path of its `tokenizer.json`, or that file's JSON text.

    Raises:
        InputError: the file is missing or is no tokenizer, or it fails on one of the sentences that it is tried on.
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
                raise InputError(f"{name} is no tokenizers file (tokenizer.json): {str(problem)[:200]}") from None
        with _one_line(f"{name} is no tokenizers file (tokenizer.json)"):
            self._pieces = Pieces.from_str(json.dumps(_checked(json.loads(content)), ensure_ascii=False))
            self._pieces.no_padding()
            self._pieces.no_truncation()
        with _one_line(f"{name} fails on ordinary text"):
            _in_time(lambda: self._pieces.encode_batch(list(_SENTENCES), add_special_tokens=False))

    def split(self, texts: pl.Series) -> pl.Series:
        """Each text's pieces in order."""
        with _one_line("the tokenizer fails on a text"):
            encoded = self._pieces.encode_batch(texts.to_list(), add_special_tokens=False)
        return pl.Series([e.tokens for e in encoded], dtype=pl.List(pl.String))

    def spans(self, text: str) -> list[tuple[int, int, str]]:
        """One text's pieces with their place."""
        clean = re.sub("[\ud800-\udfff]", "\ufffd", text)  # as in every text that is read
        with _one_line("the tokenizer fails on a text"):
            e = self._pieces.encode(clean, add_special_tokens=False)
        return [(start, end, token) for (start, end), token in zip(e.offsets, e.tokens, strict=True)]

    def to_dict(self) -> dict[str, Any]:
        """The tokenizer itself, as JSON text."""
        return {"kind": "pieces", "json": self._pieces.to_str()}


def _checked(description: Any) -> Any:
    """The description with known components only, and without what is not needed to split texts.

    Raises:
        ValueError: a component is unknown, or its parameters are known to fail.
    """
    if not isinstance(description, dict) or not isinstance(description.get("model"), dict):
        raise ValueError("it has no model")
    model = description["model"]
    if model.get("type", "BPE") not in _MODELS:
        raise ValueError(f"its model {str(model.get('type'))[:40]!r} is none of {', '.join(sorted(_MODELS))}")
    if model.get("dropout"):
        raise ValueError("its dropout makes pieces random; set it to null")
    vocabulary = model.get("vocab")
    if not isinstance(vocabulary, dict | list) or not vocabulary:
        raise ValueError("it has no vocabulary")
    unknown = model.get("unk_token")
    if unknown is not None and isinstance(vocabulary, dict) and unknown not in vocabulary:
        raise ValueError(f"its unk_token {str(unknown)[:40]!r} is not in the vocabulary")
    if isinstance(vocabulary, list) and not (
        isinstance(model.get("unk_id"), int) and 0 <= model["unk_id"] < len(vocabulary)
    ):
        raise ValueError("its unk_id is no piece of the vocabulary")
    growth = 1
    for kind, known in (("normalizer", _NORMALIZERS), ("pre_tokenizer", _PRE_TOKENIZERS)):
        for part in _components(description.get(kind), kind):
            if part.get("type") not in known:
                raise ValueError(f"its {kind} {str(part.get('type'))[:40]!r} is unknown")
            written = part.get("content", part.get("prepend")) if kind == "normalizer" else None
            growth *= max(len(written), 1) if isinstance(written, str) else 1
            if part.get("type") == "FixedLength" and not (isinstance(part.get("length"), int) and part["length"] > 0):
                raise ValueError("its FixedLength has no positive length")
    if growth > _GROWTH:
        raise ValueError(f"its normalizer can make a text over {_GROWTH} times as long")
    return description | {"post_processor": None, "padding": None, "truncation": None}


def _components(part: Any, kind: str, depth: int = 0) -> Iterator[dict[str, Any]]:
    """A component, or all those of a sequence."""
    if part is None:
        return
    if not isinstance(part, dict) or depth > 20:
        raise ValueError(f"its {kind} is no component")
    inner = part.get("normalizers", part.get("pretokenizers"))
    if part.get("type") == "Sequence" and isinstance(inner, list):
        for one in inner:
            yield from _components(one, kind, depth + 1)
    else:
        yield part


@contextmanager
def _one_line(what: str) -> Iterator[None]:
    """Whatever the library raises becomes one line, and what a panic writes to standard error is left out.

    Raises:
        InputError: something was raised.
    """
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit, InputError):
        raise
    except BaseException as problem:  # a panic is no Exception
        reason = " ".join(str(problem).split())[:200] or type(problem).__name__
        raise InputError(f"{what}: {reason}") from None
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _in_time(run: Callable[[], Any]) -> None:
    """Run in a thread, which is given up where it does not end: its pattern may backtrack for hours.

    Raises:
        ValueError: it did not end.
    """
    failed: list[BaseException] = []

    def attempt() -> None:
        try:
            run()
        except BaseException as problem:
            failed.append(problem)

    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(_SECONDS)
    if thread.is_alive():
        raise ValueError(f"it needs more than {_SECONDS} seconds for a few sentences")
    if failed:
        raise failed[0]
