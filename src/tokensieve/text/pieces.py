"""Pieces of words: the tokens of a Hugging Face `tokenizers` tokenizer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import wait
from pathlib import Path
from typing import Any

import polars as pl

from tokensieve.errors import InputError, one_line
from tokensieve.files import read_regular
from tokensieve.progress import in_background
from tokensieve.read.values import text_series
from tokensieve.text.matches import TokenSpan

# each made some broken tokenizer panic or hang, which is better known before the documents are read
TRIAL_TEXTS = (
    "",
    " ",
    "A plain sentence, with words.",
    "<s></s>[CLS][SEP]<pad>",
    "這是一個句子",
    "\U0010ffff\ue000",
    "a" * 3000,
    "aA1 ,." * 300,
    "!?" * 500,
    "\n" * 100,
    "e\u0301" * 200,
    "\u0000\u0001\ufffd\u200b\ufeff",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467" * 50,
    "ﬁ½℃㈱ŉǆ" * 20,
)
SECONDS_FOR_TRIAL = 8  # tokenizers of real models need some milliseconds
SECONDS_FOR_TEXTS = 60
CHARACTERS_PER_SECOND = 10_000  # a hundredth of what real tokenizers read


class PieceTokenizer:
    """Any Hugging Face `tokenizers` tokenizer (word pieces, BPE, unigram); special tokens are left
    out.

    It is given as a `tokenizers.Tokenizer`, the path of its `tokenizer.json`, or that file's JSON
    text.

    Raises:
        InputError: there is none, or it fails on a trial sentence.
    """

    def __init__(self, source: Any) -> None:
        """Load a tokenizer, without its padding and truncation, and try it on ordinary text.

        Args:
            source: a `tokenizers.Tokenizer`, the JSON of one, or the path of its file.

        Raises:
            InputError: it is none, or fails or takes too long on ordinary text.
        """
        try:
            from tokenizers import Tokenizer
        except ImportError:
            raise InputError(
                "a tokenizer of word pieces needs tokenizers: pip install 'tokensieve[tokenizers]'"
            ) from None
        name = "the tokenizer"
        content = source.to_str() if isinstance(source, Tokenizer) else source
        if not (isinstance(content, str) and content.lstrip().startswith("{")):
            name = str(source)[:200]
            try:
                content = read_regular(Path(source), links=True).decode()
            except (OSError, ValueError) as problem:
                raise InputError(
                    f"{name} is not a tokenizers file (tokenizer.json): {str(problem)[:200]}"
                ) from None
        with one_line(f"{name} is not a tokenizers file (tokenizer.json)"):
            description = _checked_description(json.loads(content))
            self._pieces = Tokenizer.from_str(json.dumps(description, ensure_ascii=False))
            self._pieces.no_padding()
            self._pieces.no_truncation()
        self._encode(TRIAL_TEXTS, SECONDS_FOR_TRIAL, f"{name} fails on ordinary text")

    def _encode(
        self,
        texts: Sequence[str],
        seconds: float = SECONDS_FOR_TEXTS,
        what: str = "the tokenizer fails on a text",
    ) -> list[Any]:
        """Return the library's encodings; an `InputError` if it fails or takes too long.

        They are made in a thread: a pattern may backtrack for hours, and an interrupt would wait
            for it.
        """
        seconds += sum(len(text) for text in texts) / CHARACTERS_PER_SECOND
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
        """Split each text into pieces, in order."""
        encoded = self._encode(texts.to_list())
        pieces = pl.Series([encoding.tokens for encoding in encoded], dtype=pl.List(pl.String))
        # a space joins the words of an n-gram
        return pieces.list.eval(pl.element().str.replace_all(r"\s", "_"))

    def spans(self, text: str) -> list[TokenSpan]:
        """One text's pieces with their place."""
        text = text_series([text])[0]
        (encoded,) = self._encode([text])
        tokens = pl.Series(encoded.tokens, dtype=pl.String).str.replace_all(r"\s", "_")
        places = zip(encoded.offsets, tokens, strict=True)
        return [TokenSpan(start, end, token) for (start, end), token in places]

    def to_dict(self) -> dict[str, Any]:
        """The tokenizer itself, as JSON text."""
        return {"kind": "pieces", "json": self._pieces.to_str()}


def _checked_description(description: Any) -> Any:
    """Return the description without what is not needed to split texts.

    Raises:
        ValueError: its pieces would be random, or it would end the whole process.
    """
    model = description.get("model") if isinstance(description, dict) else None
    if not isinstance(model, dict) or not model.get("vocab"):
        raise ValueError("it has no model with a vocabulary")
    if model.get("dropout"):
        raise ValueError("its dropout makes pieces random; set it to null")
    _check_prefix(model)
    return description | {"post_processor": None, "padding": None, "truncation": None}


def _check_prefix(model: dict[str, Any]) -> None:
    """Raise a ValueError if a merge lacks the prefix of pieces that continue a word.

    The library cuts the prefix off by its length, and a cut within a character ends the whole
    process.
    """
    prefix = model.get("continuing_subword_prefix")
    if not prefix:
        return
    for merge in model.get("merges") or []:
        pieces = merge.split(" ") if isinstance(merge, str) else merge
        if not str(pieces[-1]).startswith(str(prefix)):
            raise ValueError(
                "a merge continues a word with a piece "
                f"that does not begin with {str(prefix)[:20]!r}"
            )
