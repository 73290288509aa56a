"""Formatting as token types: each feature on texts made for it, of fields too, and in a vocabulary
beside words."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calls import joined
from tokensieve.read.stored_texts import StoredTexts
from tokensieve.text.formatting import (
    FEATURES,
    FORMATTING,
    Formatting,
    describe_features,
    find_feature,
    is_formatting,
)
from tokensieve.text.tokenizers import FieldTokenizer, WordTokenizer, tokenizer_of_fields
from tokensieve.text.vocabulary import count_texts


def formatting(texts: pl.Series | StoredTexts, fields: tuple[str, ...] = ()) -> np.ndarray:
    features = Formatting(FieldTokenizer(WordTokenizer(), tuple(fields)) if fields else None)
    return np.unpackbits(features.bits(texts), axis=1, count=len(features.names)).astype(bool)


def names_of(text: str) -> set[str]:
    row = formatting(pl.Series("text", [text], dtype=pl.String))[0]
    return {name for name, there in zip(FORMATTING, row, strict=True) if there}


@pytest.mark.parametrize(
    ("text", "expected", "unexpected"),
    [
        (
            "a fine film   ",
            {"trailing spaces", "3+ spaces", "no final stop", "length 0–5"},
            {'ends "."'},
        ),
        (
            "A fine film.",
            {'ends "."'},
            {"no final stop", "trailing spaces", 'ends "..."', "no capitals"},
        ),
        ("A fine film...", {'ends "..."', "..."}, {'ends "."', "no final stop"}),
        ('He said "never."', {'"quotes"', "ends with a quote"}, {"no final stop"}),
        ("Well  then", {"2 spaces", "no final stop"}, {"3+ spaces"}),
        ("This is **very** good", {"**bold**"}, {"*asterisks*", "bullet list"}),
        (
            "Points:\n\n- one\n- two",
            {"bullet list", "line break", "blank line", ": colon"},
            {"numbered list", "tab"},
        ),
        ("1. one\n2. two", {"numbered list", "number", "starts with a digit"}, {"bullet list"}),
        ("## Title\ntext", {"heading"}, {"#tag"}),
        ("use `x = 1` here", {"code", "number"}, {"**bold**"}),
        ("| a | b |\n|---|---|", {"table"}, {"heading"}),
        ("see https://example.org/x?y=1 now", {"URL"}, {"e-mail address", "[link](…)"}),
        ("see [this](http://example.org)", {"URL", "[link](…)"}, set()),
        ("mail me at jo.x@example.org", {"e-mail address"}, {"@name"}),
        ("thanks @somebody", {"@name"}, {"e-mail address", "#tag"}),
        ("so #happy today", {"#tag"}, {"heading", "@name"}),
        ("good<br />film &amp; more", {"HTML", "no capitals"}, {"URL"}),
        ("a < b and c > d", set(), {"HTML"}),
        ("I give it 9/10!", {"n/10 rating", "number", 'ends "!"'}, {"percentage"}),
        ("It got 3.5 out of 5", {"n/10 rating"}, set()),
        ("on 12/10/2004", {"number"}, {"n/10 rating"}),
        ("50 % off for $20", {"percentage", "sum of money"}, set()),
        ("What a TERRIBLE film", {"ALL CAPS"}, {"no capitals"}),
        ("the USA and a McDonald", set(), {"ALL CAPS"}),
        ("Ein ÄRGER.", {"ALL CAPS"}, {"nothing but capitals"}),
        ("NOTHING BUT NOISE", {"nothing but capitals", "ALL CAPS"}, {"no capitals"}),
        ("Every Word Is Large", {"Every Word Capitalized"}, {"nothing but capitals"}),
        ("Not Every word", set(), {"Every Word Capitalized"}),
        ("tilde ~", {"ends with a symbol", "symbol"}, {"starts with a symbol"}),
        ("[x] said (so)", {"starts with a symbol"}, {"ends with a symbol"}),
        ("and so on…", {"… character", "..."}, {"ends with a symbol"}),
        ("good ***", {"row of signs", "ends with a symbol"}, {"*asterisks*"}),
        ("10\u202f000", {"no-break space"}, {"invisible character"}),
        ("great 😀", {"emoji"}, {"emoticon"}),
        ("great :-) film", {"emoticon"}, {"emoji"}),
        ("cafÃ© and itâ€™s", {"mojibake"}, set()),
        ("café and naïve", set(), {"mojibake"}),
        ("What?? No!!", {"??", "!!", 'ends "!"'}, {"?!"}),
        ("What?!", {"?!"}, {"??", "!!"}),
        ("sooooo good", {"repeated letters"}, set()),
        ("www.example.org", {"URL"}, {"repeated letters"}),
        ("zero\u200bwidth", {"invisible character"}, {"no-break space"}),
        ("   \n ", {"length 0–5", "3+ spaces", "leading spaces"}, {'ends "."'}),
        ("", {"length 0–5"}, {"trailing spaces", "leading spaces"}),
        ("word " * 250, {"length 200–400"}, {"length 100–200", "length 400–800"}),
        ("word " * 5000, {"length 1600+"}, {"length 800–1600"}),
    ],
)
def test_each_feature_holds_for_its_texts_and_not_for_others(
    text: str, expected: set[str], unexpected: set[str]
) -> None:
    found = names_of(text)
    assert {f"⟨{name}⟩" for name in expected} <= found
    assert not {f"⟨{name}⟩" for name in unexpected} & found


@pytest.mark.slow
@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=60))
@settings(deadline=None, derandomize=True)
def test_any_text_has_one_length_and_agrees_with_python(text: str) -> None:
    found = names_of(text)
    assert sum(name.startswith("⟨length ") for name in found) == 1
    assert ("⟨3+ spaces⟩" in found) == ("   " in text)
    assert ("⟨line break⟩" in found) == ("\n" in text)
    assert ("⟨!!⟩" in found) == ("!!" in text)
    assert ("⟨trailing spaces⟩" in found) == text.endswith((" ", "\t", "\u00a0"))


def test_names_are_distinct_and_no_word_can_be_one() -> None:
    assert len(set(FORMATTING)) == len(FORMATTING)
    assert all(name[0] == "⟨" and name[-1] == "⟩" for name in FORMATTING)


def test_texts_in_many_blocks_are_those_of_one_by_one() -> None:
    texts = pl.Series(
        "text", [["plain words", "with 1 number", "END!!"][i % 3] for i in range(9000)]
    )
    found = formatting(texts)
    assert found.shape == (9000, len(FORMATTING))
    np.testing.assert_array_equal(found[:3], found[8997:])
    assert formatting(texts[:0]).shape == (0, len(FORMATTING))


def test_texts_in_files_have_the_formatting_of_those_in_memory() -> None:
    texts, stored = ["One.", "two  ", "3!!", "A **b** c"] * 5, StoredTexts()
    for text in texts:
        stored.extend([text])
    np.testing.assert_array_equal(formatting(stored), formatting(pl.Series("text", texts)))


def test_bits_are_the_features_eight_to_a_byte() -> None:
    texts = pl.Series("text", ["One.", "two  ", "3!!", "A **b** c", ""])
    bits = Formatting().bits(texts)
    assert bits.shape == (5, -(-len(FORMATTING) // 8)) and bits.dtype == np.uint8


def test_each_field_has_its_own_features() -> None:
    rows = [("Why?", "It is.\nYes."), ("", "no"), (None, "A!"), ("Two\nlines", "x")]
    texts = pl.Series("text", [joined(("title", "body"), row) for row in rows])
    found, names = (
        formatting(texts, ("title", "body")),
        Formatting(FieldTokenizer(WordTokenizer(), ("title", "body"))).names,
    )
    assert len(names) == 2 * len(FORMATTING) == found.shape[1]
    for row, (title, body) in zip(found, rows, strict=True):
        there = {name for name, x in zip(names, row, strict=True) if x}
        expected = {f"title:⟨{name}⟩" for name in names_in(title or "")} | {
            f"body:⟨{name}⟩" for name in names_in(body)
        }
        assert there == expected
    described = describe_features(["⟨tab⟩", "a:⟨x:⟩:⟨tab⟩", "body:⟨length 0–5⟩"])
    assert [d.get("field") for d in described] == [None, "a:⟨x:⟩", "body"] and described[2][
        "words"
    ] == [0, 5]


def names_in(text: str) -> set[str]:
    return {name[1:-1] for name in names_of(text)}


TEXTS = ["good film   ", "A bad film...", "good good", "Bad!", "so so", "a b c"] * 3


def test_a_vocabulary_with_formatting_counts_both() -> None:
    plain, both = (
        count_texts(pl.Series(TEXTS), ngrams=2),
        count_texts(pl.Series(TEXTS), ngrams=2, formatting=True),
    )
    vocabulary, n = both.vocabulary, plain.vocabulary.n_types
    assert (
        vocabulary.n_words == n
        and vocabulary.n_types == n + len(vocabulary.formatting) == both.matrix.shape[1]
    )
    np.testing.assert_array_equal(both.matrix[:, :n].toarray(), plain.matrix.toarray())
    assert both.matrix.has_sorted_indices
    for i, text in enumerate(TEXTS):
        held = vocabulary.tokens[both.matrix[[i], n:].indices + n]
        assert set(held) == {f"⟨{name}⟩" for name in names_in(text)} & set(vocabulary.formatting)
    again, unknown = vocabulary.read(TEXTS)
    np.testing.assert_array_equal(again.toarray(), both.matrix.toarray())
    np.testing.assert_array_equal(unknown, both.unknown)
    assert "⟨length 0–5⟩" not in vocabulary.formatting, "what holds for all says nothing"
    assert "⟨3+ spaces⟩" in vocabulary.formatting and "⟨tab⟩" not in vocabulary.formatting


def test_a_word_that_looks_like_a_feature_has_another_name() -> None:
    texts = ["⟨tab⟩ one", "two ⟨2 spaces⟩", "a\tb ⟨tab⟩", "a\tb", "⟨3+ words"] * 2
    found = count_texts(
        pl.Series(texts), tokenizer=WordTokenizer(pattern=r"\S+"), ngrams=2, formatting=True
    ).vocabulary
    tokens = found.tokens.tolist()
    assert len(set(tokens)) == len(tokens)
    assert {"⟨⟨tab⟩", "⟨⟨2 spaces⟩", "⟨tab⟩", "⟨3+ words"} <= set(tokens)
    assert [t for t in tokens if is_formatting(t)] == list(found.formatting)
    assert found.runs.tolist().count("⟨tab⟩") == 1, "in a text it is found as it is written"


@pytest.mark.parametrize("fields", [(), ("title", "body")])
def test_texts_in_files_are_counted_alike(fields: tuple[str, ...]) -> None:
    texts = [joined(fields, (t, t[::-1])) or "" for t in TEXTS] if fields else TEXTS
    stored = StoredTexts()
    for text in texts:
        stored.extend([text])
    tokenizer = tokenizer_of_fields(WordTokenizer(), fields)
    one, other = (
        count_texts(t, tokenizer=tokenizer, ngrams=2, formatting=True)
        for t in (pl.Series(texts), stored)
    )
    assert one.vocabulary.tokens.tolist() == other.vocabulary.tokens.tolist()
    np.testing.assert_array_equal(one.matrix.toarray(), other.matrix.toarray())
    assert bool(fields) == any(":⟨" in token for token in one.vocabulary.formatting)


def test_patterns_use_only_what_other_languages_have() -> None:
    assert not [
        f for f in FEATURES.values() if any(x in f.get("pattern", "") for x in ("(?", "\\b", "\\x"))
    ]


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
def test_no_pattern_backtracks_in_the_page(tmp_path: Path) -> None:
    """The page runs them in JavaScript: each takes at most 0.4 s of the processor for texts on
    which nested repetitions would take years."""
    runs = [
        "A",
        "Ab ",
        " ",
        "*",
        "<a ",
        "**a",
        "1.",
        "\n- ",
        "\n \t",
        "&a",
        "|a",
        "`a",
        "x@",
        '"a',
        "!?",
        "-=",
        "A1 ",
    ]
    script = """
      const [patterns, runs] = JSON.parse(require("fs").readFileSync(0));
      for (const [name, pattern] of Object.entries(patterns)) {
        const compiled = new RegExp(pattern, "u");
        for (const run of runs) {
          const start = process.cpuUsage();
          compiled.test(run.repeat(3000) + "a");
          if (process.cpuUsage(start).user > 400_000) console.log(name, JSON.stringify(run));
        }
      }"""
    patterns = {name: kind["pattern"] for name, kind in FEATURES.items() if "pattern" in kind}
    node = ["node", "-e", script]
    found = subprocess.run(
        node, input=json.dumps([patterns, runs]), capture_output=True, text=True, timeout=60
    )
    assert (found.returncode, found.stdout) == (0, ""), found.stdout + found.stderr


def test_invisible_characters_are_the_default_ignorable_ones_of_unicode() -> None:
    codes = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    texts = pl.Series([f"a{chr(code)}b" for code in codes])
    is_ignorable = texts.str.contains(r"\p{Default_Ignorable_Code_Point}")
    pattern = FEATURES["⟨invisible character⟩"]["pattern"]
    assert texts.str.contains(pattern).equals(is_ignorable)


@pytest.mark.parametrize(
    ("text", "is_invisible"),
    [
        ("what remains of an emoji \ufe0f is seen by nobody", True),
        ("\ufe0f", True),
        ("\u200d left", True),
        ("I \u2764\ufe0f it", False),
        ("\U0001f469\u200d\U0001f680 and \u2764\ufe0f\u200d\U0001f525", False),
        ("1\ufe0f\u20e3", False),
        ("va\u034friant", True),
        ("plain", False),
    ],
)
def test_parts_of_an_emoji_are_not_invisible_but_what_remains_of_one_is(
    text: str, is_invisible: bool
) -> None:
    pattern = FEATURES["⟨invisible character⟩"]["pattern"]
    assert pl.Series([text]).str.contains(pattern)[0] == is_invisible
    place = find_feature(text, "⟨invisible character⟩")
    assert (place is not None) == is_invisible
    if place is not None:
        assert text[slice(*place)] in ("\ufe0f", "\u200d", "\u034f")
