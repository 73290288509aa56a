"""The rule of `benchmarks/fresh.py`: which token is what, when a mark is found, and what is excused. No set is downloaded."""

from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl
import pytest

import fresh
from fresh_sets import NATURAL, SETS
from later_sets import LATER
from tokensieve.auditing.findings import Finding
from tokensieve.text.formatting import FORMATTING, Formatting
from tokensieve.text.tokenizers import WordTokenizer

HOLM = frozenset({"ingrid", "holm"})
NONE: frozenset[str] = frozenset()


def finding(*tokens: str, kind: str = "shortcut", label: str = "a") -> Finding:
    return Finding(kind, 0.1, label, tokens)


@pytest.mark.parametrize(
    ("token", "mark", "natural", "kind"),
    [
        ("holm", HOLM, NONE, "mark"),
        ("by ingrid", HOLM, NONE, "mark"),
        ('⟨ends "translated by Ingrid Holm"⟩', HOLM, NONE, "mark"),
        ("by", HOLM, NONE, "subject"),
        ("qx1234", frozenset({"qx*"}), NONE, "mark"),
        ("qx1234", NONE, NONE, "form"),
        ("⟨URL⟩", NONE, NONE, "form"),
        ("4/10", NONE, NONE, "form"),
        ("narrated", NONE, frozenset({"narrated"}), "natural"),
        ("narrated", NONE, NONE, "subject"),
    ],
)
def test_kinds_of_tokens(
    token: str, mark: frozenset[str], natural: frozenset[str], kind: str
) -> None:
    assert fresh.token_kind(token, mark, natural) == kind


def test_a_finding_names_a_mark_with_its_first_three_tokens_and_its_class() -> None:
    assert fresh.names_mark(finding("x", "y", "holm"), HOLM, "a")
    assert not fresh.names_mark(finding("x", "y", "z", "holm"), HOLM, "a")
    assert not fresh.names_mark(finding("holm"), HOLM, "b")
    assert fresh.names_mark(finding("holm", kind="association"), HOLM, "a")
    assert not fresh.names_mark(finding("holm", kind="alone"), HOLM, "a")


def test_only_a_shortcut_with_a_subject_word_accuses() -> None:
    assert fresh.accuses(finding("⟨URL⟩", "zeus"), NONE)
    assert not fresh.accuses(finding("⟨URL⟩", "4", "x5", "zeus"), NONE)
    assert not fresh.accuses(finding("zeus", kind="association"), NONE)
    assert not fresh.accuses(finding("clue"), NATURAL["trivia"])
    assert not fresh.accuses(finding("holm", "zeus"), NONE, HOLM, "a")


def test_where_a_mark_stands() -> None:
    clean = [
        finding("⟨URL⟩", "www"),
        finding("zeus"),
        finding(kind="imbalance", label="c"),
        finding("4/10", label="b"),
    ]

    def of(*findings: Finding) -> tuple[object, ...]:
        row = fresh.judged(list(findings), clean, HOLM, "a", NONE)
        return tuple(row[key] for key in ("rank", "first", "first apart", "first new", "found"))

    mark = finding("holm")
    assert of(mark, finding("zeus")) == (1, True, True, True, True)
    assert of(finding("⟨URL⟩"), finding(kind="imbalance", label="c"), mark) == (
        3,
        False,
        True,
        True,
        True,
    )
    assert of(finding("zeus"), mark) == (2, False, False, True, True)  # an accusation is no excuse
    assert of(finding("⟨emoji⟩"), mark) == (2, False, False, False, True)  # the clean draw has none
    assert of(finding(kind="imbalance", label="b"), mark) == (2, False, False, False, True)
    assert of(finding("zeus")) == (0, False, False, False, False)
    judged = fresh.judged([finding("zeus"), mark], clean, HOLM, "a", NONE)
    assert judged["accused"] == 1 and judged["before"] == [["shortcut", "zeus"]]


@pytest.mark.parametrize("name", list(fresh.MARKS))
def test_every_mark_puts_its_tokens_into_a_text(name: str) -> None:
    mark, text = fresh.MARKS[name], "The old bridge was closed. Nobody knows why."
    put = [mark.change(text, np.random.default_rng(seed)) for seed in range(2)]
    words = WordTokenizer()
    for changed in put:
        bits = np.unpackbits(Formatting().bits(pl.Series([changed])), axis=1)[0, : len(FORMATTING)]
        before = np.unpackbits(Formatting().bits(pl.Series([text])), axis=1)[0, : len(FORMATTING)]
        added = [
            token for token, new, old in zip(FORMATTING, bits, before, strict=True) if new > old
        ]
        tokens = [token for _, _, token in words.spans(changed)]
        assert "mark" in {fresh.token_kind(token, mark.tokens) for token in [*added, *tokens]}, (
            changed
        )
    assert "mark" not in {fresh.token_kind(token, mark.tokens) for _, _, token in words.spans(text)}


def test_marks_are_planted_about_equally_often_in_a_tenth_of_a_class() -> None:
    assert not set(SETS) & set(LATER) and set(NATURAL) <= {*SETS, *LATER}
    times = Counter(mark for name in SETS + LATER for mark in fresh.marks_of(name, 0))
    assert set(times) == set(fresh.MARKS) and max(times.values()) - min(times.values()) <= 1
    frame = pl.DataFrame(
        {"text": [f"text {i}" for i in range(500)], "label": ["a"] * 300 + ["b"] * 150 + ["c"] * 50}
    )
    for seed in range(5):
        changed, label, n = fresh.planted(
            frame, fresh.MARKS["a word anywhere"], np.random.default_rng(seed)
        )
        there = changed.filter(pl.col("text").str.contains("marmalade"))
        assert n == {"a": 30, "b": 15}[label] == there.height and set(there["label"]) == {label}
