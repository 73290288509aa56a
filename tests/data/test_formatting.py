"""Formatting as token types: each feature on texts made for it, planted ones found, words left as they are."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokensieve.data.formatting import FORMATTING, beside, formatting, formatting_importance, with_formatting
from tokensieve.data.importance import token_importance
from tokensieve.text.counts import Counts
from tokensieve.text.spill import TextWriter


def names_of(text: str) -> set[str]:
    row = formatting(pl.Series("text", [text], dtype=pl.String)).toarray()[0]
    return {name for name, there in zip(FORMATTING, row, strict=True) if there}


@pytest.mark.parametrize(
    ("text", "expected", "unexpected"),
    [
        ("a fine film   ", {"trailing spaces", "3+ spaces", "no final stop", "length 0–5"}, {'ends "."'}),
        ("A fine film.", {'ends "."'}, {"no final stop", "trailing spaces", 'ends "..."', "no capitals"}),
        ("A fine film...", {'ends "..."', "..."}, {'ends "."', "no final stop"}),
        ('He said "never."', {'"quotes"', "ends with a quote"}, {"no final stop"}),
        ("Well  then", {"2 spaces", "no final stop"}, {"3+ spaces"}),
        ("This is **very** good", {"**bold**"}, {"*asterisks*", "bullet list"}),
        ("Points:\n\n- one\n- two", {"bullet list", "line break", "blank line", ": colon"}, {"numbered list", "tab"}),
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


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=60))
@settings(deadline=None, derandomize=True, max_examples=60)
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
    texts = pl.Series("text", [["plain words", "with 1 number", "END!!"][i % 3] for i in range(9000)])
    found = formatting(texts)
    assert found.shape == (9000, len(FORMATTING))
    np.testing.assert_array_equal(found[:3].toarray(), found[8997:].toarray())
    assert formatting(texts[:0]).shape == (0, len(FORMATTING))


def test_texts_in_files_have_the_formatting_of_those_in_memory() -> None:
    texts, writer = ["One.", "two  ", "3!!", "A **b** c"] * 5, TextWriter()
    for text in texts:
        writer.append(text)
    stored, _ = writer.finish()
    np.testing.assert_array_equal(formatting(stored).toarray(), formatting(pl.Series("text", texts)).toarray())


def planted() -> tuple[Counts, pl.Series]:
    """Random words; three trailing spaces in 10 % of the positives, a final "..." in 10 % of the negatives."""
    rng = np.random.default_rng(1)
    labels = np.arange(600) % 2
    words = rng.integers(0, 30, size=(600, 12))
    texts = []
    for k in range(600):
        text = "A " + " ".join(f"w{w}" for w in words[k]) + "."
        if k % 20 == 1:
            text += "   "
        if k % 20 == 2:
            text += ".."
        texts.append(text)
    matrix = np.stack([np.bincount(row, minlength=30) for row in words])
    return Counts.from_matrix(matrix, labels, ("neg", "pos"), [f"w{i}" for i in range(30)]), pl.Series("text", texts)


def test_planted_formatting_is_found_and_words_keep_their_numbers() -> None:
    counts, texts = planted()
    words = token_importance(counts)
    marks = formatting_importance(formatting(texts), counts.labels, counts.classes, float(counts.lengths.mean()))
    table = beside(words, marks)
    found = {str(t) for t, q in zip(table.tokens, table.q_value[:, 1], strict=True) if q < 0.05}
    assert found == {"⟨trailing spaces⟩", "⟨3+ spaces⟩", '⟨ends "..."⟩', "⟨...⟩", '⟨ends "."⟩'}
    n = counts.n_types
    for name in ("alpha", "effect", "effect_low", "posterior_difference", "p_value"):
        np.testing.assert_array_equal(getattr(table, name)[:n], getattr(words, name))
    at = table.tokens.tolist().index("⟨trailing spaces⟩")
    assert table.documents[at] == 30
    assert table.posterior_difference[at, 1] == 1
    assert table.effect[at, 1] == pytest.approx(30 / 300 / 2 / counts.lengths.mean())
    assert table.to_frame().height == 2 * len(table.tokens)


def test_features_enter_the_model_as_tokens_that_occur_once() -> None:
    counts, texts = planted()
    present = formatting(texts)
    more, kept = with_formatting(counts, present, min_documents=10)
    assert more.n_types == counts.n_types + len(kept)
    assert (np.asarray(present.sum(axis=0)).ravel()[kept] >= 10).all()
    np.testing.assert_array_equal(more.matrix[:, : counts.n_types].toarray(), counts.matrix.toarray())
    np.testing.assert_array_equal(more.matrix[:, counts.n_types :].toarray(), present[:, kept].toarray())
    assert more.matrix.has_sorted_indices
    assert [str(t) for t in more.tokens[counts.n_types :]] == [FORMATTING[i] for i in kept]
