"""A budget for shortcuts: its written form, what exceeds it, rows to review, and texts without the
tokens."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calls import Run, fast_first
from tokensieve.auditing.demo import demo_reviews
from tokensieve.auditing.masking import mask_texts
from tokensieve.auditing.run import audit
from tokensieve.auditing.settings import Budget, Limit, Settings
from tokensieve.errors import InputError
from tokensieve.read.reader import read_corpus
from tokensieve.read.split import split_corpus
from tokensieve.text.tokenizers import WordTokenizer
from tokensieve.text.vocabulary import tokenize


@pytest.mark.parametrize(
    ("written", "difference", "share"),
    [("0.9@1%", 0.9, 0.01), ("0.8", 0.8, 0.01), (".5@0.2", 0.5, 0.2), ("0@0", 0, 0)],
)
def test_the_written_form(written: str, difference: float, share: float) -> None:
    budget = Budget.parse(written)
    assert (budget.difference, budget.share) == (difference, pytest.approx(share))
    assert Budget.parse(str(budget)) == budget


@pytest.mark.parametrize("written", ["", "1@1%", "0.9@", "0.9@1%%", "0.9@2", "-0.5", "0.9@1% ;x"])
def test_other_forms_are_refused(written: str) -> None:
    with pytest.raises(InputError, match=r"0\.9@1%"):
        Budget.parse(written)


def test_a_kind_of_finding_alone_allows_none_of_it() -> None:
    assert Budget.parse("leak, labels=1%,position") == Budget.parse("leak=0,labels=1%,position=0")
    assert Budget.parse("shortcut,leak") == Budget.parse("shortcut=0,leak=0")
    assert Budget.parse("shortcut=2%").limits == {"shortcut": Limit(0.02, is_fraction=True)}
    for written in ("shortcut=0.9", "shortcut=0.9@3%"):  # a limit on every token
        assert Budget.parse(written).difference == 0.9 and not Budget.parse(written).limits


def test_what_exceeds_and_where() -> None:
    reviews = demo_reviews(800, seed=4)
    labels = ["bad" if label == 0 else "good" for label in reviews.labels]
    found = audit(
        read_corpus((reviews.texts.to_list(), labels)),
        Settings(baseline=False, thorough=False, validation_share=0.0, budget=Budget(0.85, 0.05)),
    )
    assert found.over_budget["token"].to_list() == [reviews.shortcut]  # of this draw
    words = tokenize(reviews.texts, WordTokenizer())
    held = {
        k
        for k, text in enumerate(WordTokenizer().split(reviews.texts), 1)
        if reviews.shortcut in text
    }
    assert words.n_documents == len(labels)
    review = found.to_review
    assert set(review["row"].to_list()) == held and set(review["part"]) == {"train", "test"}
    for row in review.iter_rows(named=True):
        assert row["label"] == labels[row["row"] - 1]
    assert found.to_dict()["over_budget"][0]["token"] == reviews.shortcut
    for written, over in (
        ("shortcut=0", ("shortcut",)),
        ("shortcut=100%", ()),
        ("shortcut=800", ()),
    ):
        limited = replace(found, settings=replace(found.settings, budget=Budget.parse(written)))
        assert (
            limited.exceeded == over
            and limited.fails == bool(over)
            and limited.over_budget.is_empty()
        )


@pytest.mark.slow
def test_a_budget_that_nothing_exceeds() -> None:
    reviews = demo_reviews(100, seed=3)
    how = Settings(baseline=False, thorough=False, validation_share=0.0, budget=Budget(0.9999, 0.5))
    calm = audit(read_corpus((reviews.texts.to_list(), reviews.labels.tolist())), how)
    assert (
        calm.over_budget.is_empty()
        and calm.to_review.is_empty()
        and calm.to_dict()["over_budget"] == []
    )


@pytest.mark.slow
@settings(deadline=None, derandomize=True)
@given(
    texts=st.lists(
        st.lists(st.sampled_from(["a", "B", "c", "don't", "<br>", ",", "😀", "İ"]), max_size=12),
        max_size=5,
    ),
    wanted=st.sets(
        st.sampled_from(["a", "a b", "b c", "c", "a a", "don't a"]), min_size=1, max_size=3
    ),
)
def test_masked_texts_hold_none_of_the_tokens_and_all_else(
    texts: list[list[str]], wanted: set[str]
) -> None:
    series = pl.Series([" ".join(text) for text in texts], dtype=pl.String)
    masked, changed = mask_texts(series, sorted(wanted), WordTokenizer())
    assert changed == sum(a != b for a, b in zip(series, masked, strict=True))
    for before, after in zip(series, masked, strict=True):
        words = [word for _, _, word in WordTokenizer().spans(after)]
        grams = {" ".join(words[i : i + n]) for n in (1, 2) for i in range(len(words))}
        assert not grams & wanted
        letters = iter(before)
        assert all(letter in letters for letter in after if letter != " ")
        if not {word for gram in wanted for word in gram.split()} & set(
            WordTokenizer().split(pl.Series([before]))[0]
        ):
            assert after == before


def test_bad_tokens_are_named() -> None:
    with pytest.raises(InputError, match="no tokens to mask"):
        mask_texts(pl.Series(["a"]), [], WordTokenizer())
    with pytest.raises(InputError, match="never produces the word 'Good'"):
        mask_texts(pl.Series(["a"]), ["Good"], WordTokenizer())


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("suffix", fast_first(["jsonl", "csv", "tsv", "parquet"]))
def test_fail_review_mask_and_audit_again(run: Run, tmp_path: Path, suffix: str) -> None:
    reviews = demo_reviews(800, seed=4)
    data = pl.DataFrame(
        {"id": np.arange(len(reviews.texts)), "body": reviews.texts, "y": reviews.labels}
    )
    data.write_csv(tmp_path / "a.csv")
    asked = ["--label", "y", "--no-baseline", "--no-pictures", "--fail-on", "0.85@5%", "--out"]
    status, out, _ = run("audit", "a.csv", *asked, "first")
    assert status == 3 and "1 token exceeds the limit 0.85@5%." in out
    assert "tokensieve mask a.csv --audit first --out first-within-limit.csv" in out
    assert not (tmp_path / "first/pictures").exists()
    over = json.loads((tmp_path / "first/summary.json").read_text())["over_budget"]
    assert [row["token"] for row in over] == [reviews.shortcut]
    assert pl.read_csv(tmp_path / "first/over-budget.csv").columns == [
        "token",
        "part",
        "row",
        "label",
    ]
    status, _, said = run("mask", "a.csv", "--audit", "first", "--out", f"masked.{suffix}")
    assert status == 0 and "documents changed" in said
    assert run("audit", f"masked.{suffix}", *asked, "second")[0] == 0
    tokens = pl.read_csv(tmp_path / "second/tokens.csv")["token"].to_list()
    assert reviews.shortcut not in tokens
    if suffix == "csv":
        assert pl.read_csv(tmp_path / "masked.csv")["id"].to_list() == data["id"].to_list()


def test_masking_keeps_other_columns_and_the_split(run: Run, tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "text": ["good film", "foo\U0001f600bar", None],
            "n": pl.Series([1, 2, 3], dtype=pl.Int8),
            "x": [0.5, None, 1.5],
        }
    )
    frame.write_parquet(tmp_path / "a.parquet")
    assert (
        run("mask", "a.parquet", "--token", "good", "--token", "\U0001f600", "--out", "b.parquet")[
            0
        ]
        == 0
    )
    back = pl.read_parquet(tmp_path / "b.parquet")
    assert back.schema == frame.schema and back["text"].to_list() == ["film", "foo bar", None]
    status, _, said = run(
        "mask", "a.parquet", "--token", "good", "--text", "n", "--out", "c.parquet"
    )
    assert (
        status == 2
        and "row 1: 'n' is 1, not text" in said
        and not (tmp_path / "c.parquet").exists()
    )
    lines = [
        '{"text": "good film"}',
        '{"text": "bad film", "late": [1, {"a": null}]}',
        '{"other": 1}',
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    assert run("mask", "a.jsonl", "--token", "good", "--out", "b.jsonl", "--text", "text")[0] == 0
    assert [json.loads(line) for line in (tmp_path / "b.jsonl").read_text().splitlines()] == [
        {"text": "film"}, {"text": "bad film", "late": [1, {"a": None}]}, {"other": 1}
    ]  # fmt: skip
    reviews = demo_reviews(500, seed=2)
    masked, _ = mask_texts(reviews.texts, [reviews.shortcut], WordTokenizer())
    labels = reviews.labels.tolist()
    rows = [
        split_corpus(read_corpus((texts.to_list(), labels))).rows
        for texts in (reviews.texts, masked)
    ]
    assert np.mean(np.isin(rows[0], rows[1])) > 0.98


def test_mask_says_what_is_wrong(run: Run, tmp_path: Path) -> None:
    pl.DataFrame({"text": ["good film", "bad film"], "label": [1, 0]}).write_csv(tmp_path / "a.csv")
    for arguments, expected in (
        (["--out", "b.txt", "--token", "good"], "must end in .csv"),
        (["--out", "b.csv"], "no tokens to mask"),
        (["--out", "b.csv", "--token", "good", "--text", "txet"], "txet"),
        (["--out", "b.csv", "--audit", "."], "is not an audit folder"),
    ):
        status, _, said = run("mask", "a.csv", *arguments)
        assert status == 2 and expected in said and not (tmp_path / "b.csv").exists()
