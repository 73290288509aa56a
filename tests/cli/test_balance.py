"""balance: every row and field stays, and the weights do what the summary says."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from calls import Run
from tokensieve import demo_pairs

NAMES = ("posted by", "a “label”, one")  # of columns, awkward in a shell and in a table


@pytest.fixture
def marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pl.DataFrame:
    """Texts of three classes in which "zebra" stands far more often in one of them."""
    rng = np.random.default_rng(0)
    words = np.array("river stone garden window market paper silver engine bridge".split())
    labels = rng.choice(["a", "b", "c"], 600)
    has_mark = rng.random(600) < np.where(labels == "a", 0.4, 0.05)
    texts = [
        " ".join([*rng.choice(words, rng.integers(3, 9)), *["zebra"][: int(marked)]])
        for marked in has_mark
    ]
    frame = pl.DataFrame({NAMES[0]: texts, NAMES[1]: labels, "id": range(600)})
    monkeypatch.chdir(tmp_path)
    frame.write_csv("it's here.csv")
    return frame


def rate_by_class(frame: pl.DataFrame, token: str) -> pl.Series:
    weight = pl.col("weight")
    has_token = pl.col(NAMES[0]).str.contains(token)
    by_class = frame.group_by(NAMES[1]).agg((weight * has_token).sum() / weight.sum())
    return by_class.to_series(1)


def test_every_class_contains_the_token_equally_often(run: Run, marked: pl.DataFrame) -> None:
    options = ("--text", NAMES[0], "--label", NAMES[1], "--token", "zebra", "--out", "b.csv")
    status, _, message = run("balance", "it's here.csv", *options)
    assert status == 0
    written = pl.read_csv("b.csv")
    assert written.drop("weight").equals(marked)
    rates = rate_by_class(written, "zebra")
    assert rates.max() - rates.min() < 1e-5
    assert (
        f"the evidence of {written['weight'].sum() ** 2 / (written['weight'] ** 2).sum():,.0f}"
        in message
    )


def test_a_token_may_be_named_in_capitals(run: Run, marked: pl.DataFrame) -> None:
    options = ("--text", NAMES[0], "--label", NAMES[1], "--token", "Zebra", "--out", "b.csv")
    assert run("balance", "it's here.csv", *options)[0] == 0
    rates = rate_by_class(pl.read_csv("b.csv"), "zebra")
    assert rates.max() - rates.min() < 1e-5


def test_of_several_labels_each_is_balanced(run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    has_toxic = rng.random(800) < 0.4
    has_spam = rng.random(800) < 0.3
    has_mark = rng.random(800) < 0.1 + 0.4 * has_toxic + 0.2 * has_spam
    texts = rng.choice(["a stone", "the river", "some glass"], 800)
    frame = pl.DataFrame({"text": texts, "toxic": has_toxic, "spam": has_spam}).with_columns(
        text=pl.when(pl.Series(has_mark)).then(pl.col("text") + " zebra").otherwise("text"),
        tags=pl.concat_list(
            *(
                pl.when(pl.col(name)).then(pl.lit(name)).otherwise(pl.lit("plain"))
                for name in ("toxic", "spam")
            )
        ),
    )
    frame.select("text", "tags").write_ndjson(tmp_path / "lists.jsonl")
    frame.select("text", "toxic", "spam").write_csv(tmp_path / "columns.csv")
    for source, labels in (
        ("lists.jsonl", ("--label", "tags")),
        ("columns.csv", ("--label", "toxic", "--label", "spam")),
    ):
        options = ("--text", "text", "--token", "zebra", "--out", f"balanced-{source}")
        status, _, message = run("balance", source, *labels, *options)
        assert status == 0, message
    written = [pl.read_csv("balanced-columns.csv"), pl.read_ndjson("balanced-lists.jsonl")]
    for weights in (table["weight"] for table in written):
        weighted = frame.with_columns(weight=weights, has_mark=pl.Series(has_mark))
        for name in ("toxic", "spam"):
            rates = weighted.group_by(name).agg(
                (pl.col("has_mark") * pl.col("weight")).sum() / pl.col("weight").sum()
            )
            assert rates["has_mark"].max() - rates["has_mark"].min() < 1e-5


def test_a_folder_also_receives_a_summary_and_the_rates(run: Run, marked: pl.DataFrame) -> None:
    options = ("--text", NAMES[0], "--label", NAMES[1], "--length", "--token", "zebra")
    assert run("balance", "it's here.csv", *options, "--out", "there")[0] == 0
    summary = json.loads(Path("there/summary.json").read_text())
    assert "zebra" in summary["balanced"]
    assert any("length" in name for name in summary["balanced"])
    rates = pl.read_csv("there/rates.csv")
    after = rates.group_by("feature").agg(spread=pl.col("after").max() - pl.col("after").min())
    balanced = after.filter(pl.col("feature").is_in(summary["balanced"]))
    assert balanced["spread"].max() < 1e-5


def test_what_a_class_lacks_is_named_and_left(run: Run, marked: pl.DataFrame) -> None:
    alone = marked.filter((pl.col(NAMES[1]) == "a") | ~pl.col(NAMES[0]).str.contains("zebra"))
    alone.write_csv("alone.csv")
    options = ("--text", NAMES[0], "--label", NAMES[1], "--token", "zebra", "--out", "b.csv")
    status, _, message = run("balance", "alone.csv", *options)
    assert status == 0
    assert "'zebra'" in message and "tokensieve mask" in message
    assert (pl.read_csv("b.csv")["weight"] == 1).all()


def test_rows_that_no_model_learns_from_weigh_nothing(run: Run, marked: pl.DataFrame) -> None:
    options = ("--text", NAMES[0], "--label", NAMES[1], "--token", "zebra", "--drop", "c")
    assert run("balance", "it's here.csv", *options, "--out", "b.csv")[0] == 0
    written = pl.read_csv("b.csv")
    is_dropped = written[NAMES[1]] == "c"
    assert (written.filter(is_dropped)["weight"] == 0).all()
    assert (written.filter(~is_dropped)["weight"] > 0).all()


def test_of_pairs_the_longer_answer_and_a_form_win_half(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    answers = [
        [
            f"**yes** {'word ' * n}" if bold else "word " * n
            for n, bold in zip(sizes, bolds, strict=True)
        ]
        for sizes, bolds in zip(
            rng.integers(3, 40, (400, 2)), rng.random((400, 2)) < 0.3, strict=True
        )
    ]
    utility = [
        [np.log(len(text)) + ("**" in text) + rng.normal() for text in pair] for pair in answers
    ]
    pairs = [
        (p[int(np.argmax(u))], p[int(np.argmin(u))]) for p, u in zip(answers, utility, strict=True)
    ]
    monkeypatch.chdir(tmp_path)
    pl.DataFrame(pairs, ["chosen", "rejected"], orient="row").write_ndjson("pairs.jsonl")
    options = ("--pairs", "chosen,rejected", "--length", "--token", "⟨**bold**⟩")
    assert run("balance", "pairs.jsonl", *options, "--out", "b.jsonl")[0] == 0
    written = pl.read_ndjson("b.jsonl")
    for value in (
        pl.col("chosen", "rejected").str.len_chars(),
        pl.col("chosen", "rejected").str.contains("**", literal=True).cast(pl.Int32),
    ):
        sides = written.select(value.cast(pl.Int64))
        difference = np.sign((sides["chosen"] - sides["rejected"]).to_numpy())
        assert abs(written["weight"].to_numpy() @ difference) / written["weight"].sum() < 1e-5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "nothing to balance"),
        (("--token", "giraffe"), "'giraffe' occurs in no document"),
        (("--audit", "nowhere", "--token", "zebra"), "is not an audit folder"),
        (("--token", "zebra", "--out", "it's here.csv"), "is the source itself"),
    ],
)
def test_what_cannot_be_balanced_is_one_line(
    run: Run, marked: pl.DataFrame, options: tuple[str, ...], message: str
) -> None:
    source = ("balance", "it's here.csv", "--text", NAMES[0], "--label", NAMES[1])
    status, out, error = run(*source, *options)
    assert status == 2 and out == ""
    assert message in error and error.count("\n") == 1
    assert not Path("tokensieve-balance").exists()


def test_of_pairs_length_alone_can_be_balanced(run: Run, tmp_path: Path) -> None:
    """Without a token beside it, the command ended with an error of NumPy."""
    demo_pairs(400, seed=2).write_csv(tmp_path / "pairs.csv")
    command = ("balance", "pairs.csv", "--pairs", "chosen,rejected", "--length", "--out", "w.csv")
    assert run(*command)[0] == 0
    assert (pl.read_csv(tmp_path / "w.csv")["weight"] > 0).any()


def test_a_source_that_has_weights_keeps_them(run: Run, marked: pl.DataFrame) -> None:
    marked.with_columns(weight=2.0).write_csv("weighted.csv")
    options = ("--text", NAMES[0], "--label", NAMES[1], "--token", "zebra")
    status, _, error = run("balance", "weighted.csv", *options)
    assert status == 2
    assert "column 'weight' already" in error
