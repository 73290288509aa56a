"""Preference pairs on the command line, from train to mask."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import polars as pl
import pytest

from calls import Run
from tokensieve.auditing.demo import demo_pairs

pytestmark = pytest.mark.usefixtures("undrawn", "quick_training")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of pairs, and a model trained on it."""
    from tokensieve.cli import app

    folder = tmp_path_factory.mktemp("pairs")
    demo_pairs(300).with_columns(id=pl.int_range(300)).write_csv(folder / "pairs.csv")
    arguments = [
        "train",
        str(folder / "pairs.csv"),
        "--pairs",
        "chosen,rejected",
        "--out",
        str(folder / "model"),
        "-q",
    ]
    app(args=arguments, standalone_mode=False)
    return folder


@pytest.mark.slow
def test_a_model_remembers_that_it_knows_pairs(home: Path) -> None:
    summary = json.loads((home / "model" / "summary.json").read_text())
    assert summary["pairs"]["columns"] == ["chosen", "rejected"]
    assert summary["pairs"]["by"] == "prompt"
    assert summary["settings"]["formatting"] is True
    model = json.loads((home / "model" / "model.json").read_text())
    assert model["kind"] == "tokensieve.PairModel"
    assert "⟨**bold**⟩" in model["formatting"]


def test_predict_names_the_preferred_answer_whichever_comes_first(home: Path, run: Run) -> None:
    status, out, err = run("predict", str(home / "model"), str(home / "pairs.csv"))
    assert status == 0, err
    rows = list(csv.DictReader(io.StringIO(out)))
    assert list(rows[0]) == ["row", "id", "preferred", "probability", "answer", "unknown_words"]
    assert "chosen is predicted to win " in err
    assert "of 300 pairs" in err
    turned = list(csv.DictReader(io.StringIO(
        run("predict", str(home / "model"), str(home / "pairs.csv"), "--pairs", "rejected,chosen")[1]
    )))  # fmt: skip
    for a, b in zip(rows, turned, strict=True):
        assert a["preferred"] == b["preferred"]
        assert float(a["probability"]) == pytest.approx(1 - float(b["probability"]))


def test_predict_leaves_pairs_with_one_answer_open_and_writes_files(home: Path, run: Run) -> None:
    Path("some.csv").write_text(
        "chosen,rejected\nThe plot was red.,\nTapestry!,The plot was red.\n"
    )
    status, _, err = run("predict", str(home / "model"), "some.csv", "--out", "answers")
    assert status == 0
    assert "no prediction for 1 pair with" in err
    rows = pl.read_csv("answers/predictions.csv")
    assert rows["preferred"].to_list() == [None, "chosen"]
    assert json.loads(Path("answers/summary.json").read_text())["score"]["without_two_answers"] == 1


def test_explain_shows_both_sums(home: Path, run: Run) -> None:
    status, out, _ = run(
        "explain",
        str(home / "model"),
        "Tapestry! The plot was red.",
        "--against",
        "The plot was red.",
        "--json",
    )
    assert status == 0
    found = json.loads(out)
    sums = [
        sum(token["contribution"] for token in found[side]["tokens"])
        for side in ("first", "second")
    ]
    assert found["answer"] == pytest.approx(sums[0] - sums[1], abs=1e-9)
    assert found["probability"] > 0.5
    status, out, _ = run(
        "explain", str(home / "model"), "Tapestry!", "--against", "The plot was red."
    )
    assert "first − second = +" in out
    assert "the first is preferred with probability" in out
    assert "compare it with another answer" in run("explain", str(home / "model"), "Tapestry!")[1]


def test_mask_cuts_from_both_answers(home: Path, run: Run) -> None:
    arguments = ("--pairs", "chosen,rejected", "--token", "tapestry", "--out", "masked.csv")
    status, _, err = run("mask", str(home / "pairs.csv"), *arguments)
    assert status == 0, err
    before, after = pl.read_csv(home / "pairs.csv"), pl.read_csv("masked.csv")
    assert before["chosen"].str.contains("Tapestry").any()
    for side in ("chosen", "rejected"):
        assert not after[side].str.contains("Tapestry").any()
    assert after["prompt"].equals(before["prompt"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("train", "pairs.csv", "--pairs", "chosen"), "must name two different columns"),
        (("train", "pairs.csv", "--pairs", "chosen,refused"), "no column 'refused' for the pairs"),
        (
            ("train", "pairs.csv", "--pairs", "chosen,rejected", "--label", "id"),
            "--label is for labelled documents",
        ),
        (
            ("train", "pairs.csv", "--pairs", "chosen,rejected", "--cluster", "tcp://x:1"),
            "leave out --cluster, and use --stream",
        ),
        (("predict", "model", "pairs.csv", "--pairs", "chosen,other"), "no column 'other'"),
        (
            (
                "mask",
                "pairs.csv",
                "--pairs",
                "chosen,chosen",
                "--token",
                "tapestry",
                "--out",
                "x.csv",
            ),
            "must name different columns",
        ),
    ],
)
def test_what_is_wrong_is_named_in_one_line(
    home: Path, run: Run, arguments: tuple[str, ...], message: str
) -> None:
    full = [str(home / x) if x in ("pairs.csv", "model") else x for x in arguments]
    status, _, err = run(*full)
    assert status == 2
    assert message in err
    assert len(err.strip().splitlines()) == 1
