"""Tokenizer files that panic, grow or are random: refused in one line when they are loaded."""

from __future__ import annotations

import json
import threading
import time
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from tokenizers import Tokenizer, models

from tokensieve.errors import InputError
from tokensieve.text.pieces import PieceTokenizer

Change = Callable[[dict[str, Any]], None]


def description() -> dict[str, Any]:
    model = models.BPE({"a": 0, "b": 1, "ab": 2, "?": 3}, [("a", "b")], unk_token="?")
    whole: dict[str, Any] = json.loads(Tokenizer(model).to_str())
    return whole


def normalizers(*parts: dict[str, Any]) -> Change:
    return lambda d: d.update(normalizer={"type": "Sequence", "normalizers": list(parts)})


def charsmap(written: str) -> dict[str, Any]:
    """A normalizer whose trie, which is empty here, leads to one text."""
    content = (4).to_bytes(4, "little") + bytes(4) + written.encode() + b"\0"
    return {"type": "Precompiled", "precompiled_charsmap": b64encode(content).decode()}


DOUBLING = {"type": "Replace", "pattern": {"String": "a"}, "content": "aaaaaaaa"}
CASES: dict[str, Change] = {
    "a charsmap that is none": normalizers({"type": "Precompiled", "precompiled_charsmap": "AAAA"}),
    "pieces of length 0": lambda d: d.update(pre_tokenizer={"type": "FixedLength", "length": 0}),
    "a merge without its product": lambda d: d["model"].update(merges=[["b", "a"]]),
    "an unknown token outside the vocabulary": lambda d: d["model"].update(unk_token="zz"),
    "dropout": lambda d: d["model"].update(dropout=0.5),
    "long words": lambda d: d["model"].update(type="WordPiece", max_input_chars_per_word=2**40),
    "a charsmap that writes long texts": normalizers(*[charsmap("a" * 10)] * 2),
    "a pattern that backtracks": lambda d: d.update(
        pre_tokenizer={
            "type": "Split",
            "pattern": {"Regex": "(a+a+)+b"},
            "behavior": "Isolated",
            "invert": False,
        }
    ),
    "a unigram model without unk_id": lambda d: d.update(
        model={"type": "Unigram", "unk_id": None, "vocab": [["a", -1.0]], "byte_fallback": False}
    ),
    "a prefix that cuts a character": lambda d: d["model"].update(
        continuing_subword_prefix=" ", merges=[["a", "▁"]]
    ),
    "an over-long prefix": lambda d: d["model"].update(
        continuing_subword_prefix="#" * 100, merges=[["a", "b"]]
    ),
    "an unknown component": lambda d: d.update(pre_tokenizer={"type": "Shell", "command": "x"}),
    "no model": lambda d: d.update(model=None),
    "no vocabulary": lambda d: d["model"].update(vocab={}),
    "deep nesting": lambda d: d.update(normalizer=nested(300)),
}


def nested(depth: int) -> dict[str, Any]:
    return (
        {"type": "Sequence", "normalizers": [nested(depth - 1)]} if depth else {"type": "Lowercase"}
    )


@pytest.mark.parametrize("case", CASES)
def test_a_tokenizer_that_fails_is_one_line(case: str, capfd: pytest.CaptureFixture[str]) -> None:
    whole = description()
    CASES[case](whole)
    with pytest.raises(InputError) as caught:
        PieceTokenizer(json.dumps(whole))
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 500
    assert capfd.readouterr().err == ""


def test_a_sound_tokenizer_is_left_as_it_is() -> None:
    tokenizer = PieceTokenizer(json.dumps(description()))
    assert tokenizer.split(pl.Series(["abba", "c"])).to_list() == [["ab", "b", "a"], ["?"]]
    assert tokenizer.spans("ab b") == [(0, 2, "ab"), (2, 3, "?"), (3, 4, "b")]
    assert PieceTokenizer(tokenizer.to_dict()["json"]).to_dict() == tokenizer.to_dict()


def test_a_tokenizer_that_does_not_end_is_given_up_and_can_be_interrupted() -> None:
    pieces, threads = PieceTokenizer(json.dumps(description())), []

    class Endless:
        def encode_batch(self, texts: list[str], add_special_tokens: bool) -> None:
            threads.append(threading.current_thread())
            time.sleep(0.5)

    pieces._pieces = Endless()
    with pytest.raises(ValueError, match="more than 0 seconds for 2 texts"):
        pieces._encode(["a", "b"], 0.01)
    assert threads != [threading.main_thread()]  # which hears interrupts
