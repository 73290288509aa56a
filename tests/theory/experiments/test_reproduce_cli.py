"""`tokensieve reproduce`: files, terminal, page, and every bad input in one line."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from calls import Run as Call
from pages import violations
from tokensieve.report.blocks import Picture
from tokensieve.report.html import page
from tokensieve.theory.experiments import catalogue
from tokensieve.theory.experiments.catalogue import select_experiments
from tokensieve.theory.experiments.experiment import Experiment, SeedRun
from tokensieve.theory.experiments.measures import Measurement
from tokensieve.theory.experiments.reproduction import Reproduction
from tokensieve.theory.experiments.result import ExperimentResult

TINY = {
    "d": 8,
    "steps": 20,
    "learning_rate": 0.05,
    "documents": 300,
    "n_types": 40,
    "length": 20,
    "n_irrelevant": 10,
}


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """The synthetic experiment at toy size."""
    real, settings = select_experiments, {"quick": TINY, "paper": TINY}

    def select(*chosen: Any) -> list[Experiment]:
        return [
            replace(one, settings=settings) if one.id == "synthetic" else one
            for one in real(*chosen)
        ]

    monkeypatch.setattr(catalogue, "select_experiments", select)
    monkeypatch.delenv("TOKENSIEVE_DATA", raising=False)
    monkeypatch.setenv("COLUMNS", "500")  # no line of the terminal's table is broken


def test_list_describes_every_experiment(run: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "500")
    status, out, _ = run("reproduce", "--list")
    assert status == 0
    for one in select_experiments():
        assert re.search(rf"^{one.id}: ", out, re.MULTILINE), one.id
    assert "Needs imdb, yelp, PyTorch" in out
    assert run("reproduce", "mlp", "--list")[1].count("Criterion, fixed on") == 1


@pytest.mark.usefixtures("tiny", "undrawn")
def test_files_terminal_and_second_run(run: Call, tmp_path: Path) -> None:
    status, out, err = run(
        "reproduce",
        "synthetic",
        "frozen",
        "--out",
        "there",
        "--seed",
        "3",
        "--seeds",
        "2",
        "--jobs",
        "1",
    )
    assert status == 0, err
    assert (
        "Of 2 experiments, " in out and "1 was not run" in out and "no data folder is named" in out
    )
    assert re.search(
        r"^synthetic, seed 4: (not )?every criterion met \(\d+ s\)$", err, re.MULTILINE
    )
    summary = json.loads((tmp_path / "there/summary.json").read_text())
    rows = {row["id"]: row for row in summary["experiments"]}
    assert set(rows) == {"synthetic", "frozen"} and rows["frozen"]["verdict"] == "not run"
    for row in rows.values():
        assert {"id", "claim", "paper", "ours", "verdict", "seconds"} <= set(row)
    assert summary["seed"] == 3 and rows["synthetic"]["settings"]["seed"] == 3
    names = {
        path.relative_to(tmp_path / "there").as_posix()
        for path in (tmp_path / "there").rglob("*")
        if path.is_file()
    }
    assert {"report.html", "table.md", "tables/synthetic-bins.csv"} <= names
    assert {f"pictures/synthetic.{kind}" for kind in ("svg", "png", "pdf", "csv")} <= names
    bins = pl.read_csv(tmp_path / "there/tables/synthetic-bins.csv")
    assert {
        "x",
        "seeds",
        "types",
        "few",
        "value_mean",
        "value_sd",
        "value_low",
        "value_high",
    } <= set(bins.columns)
    tokens = pl.read_csv(tmp_path / "there/runs/synthetic/default/4/tokens.csv")
    assert tokens.height == 40 and {"token", "posterior_difference", "score", "value"} <= set(
        tokens.columns
    )
    text = (tmp_path / "there/table.md").read_text()
    rows_of_the_table = [line for line in text.splitlines() if line.startswith("| ")]
    assert [line.split("|")[1].strip() for line in rows_of_the_table[2:4]] == [
        "synthetic",
        "frozen",
    ]
    before = (tmp_path / "there/tables/synthetic-bins.csv").read_bytes()
    _, _, err = run(
        "reproduce",
        "synthetic",
        "frozen",
        "--out",
        "there",
        "--seed",
        "3",
        "--seeds",
        "2",
        "--jobs",
        "1",
    )
    assert "synthetic, seed 3: " in err and "from an earlier run" in err
    assert (tmp_path / "there/tables/synthetic-bins.csv").read_bytes() == before
    assert "trial" not in text
    _, _, err = run(
        "reproduce",
        "synthetic",
        "--out",
        "there",
        "--seed",
        "4",
        "--documents",
        "500",
        "--seeds",
        "1",
    )
    assert (
        "taken over" not in err
        and "a trial with at most 500 documents" in (tmp_path / "there/table.md").read_text()
    )
    assert (tmp_path / "there/tables/synthetic-bins.csv").read_bytes() != before


@pytest.mark.usefixtures("tiny", "undrawn")
def test_quiet_says_nothing(run: Call) -> None:
    assert run("reproduce", "synthetic", "--quiet", "--seeds", "1") == (0, "", "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["one-leyer"], "did you mean 'one-layer'"),
        (["--scale", "huge"], "'huge' is not one of 'quick', 'paper'"),
        (["--data", "nowhere"], "there is no data folder 'nowhere'"),
        (["--documents", "10"], "--documents"),
        (["--seed", "-1"], "--seed"),
        (["--seeds", "0"], "--seeds"),
        (
            ["mlp", "--reading", "residual"],
            "there is no interpretation 'residual' of these experiments",
        ),
    ],
)
def test_bad_input_in_one_line(run: Call, arguments: list[str], said: str) -> None:
    status, out, err = run("reproduce", *arguments)
    assert (status, out) == (2, "") and said in err and len(err.splitlines()) == 1


def study() -> Reproduction:
    two_layer, mlp = select_experiments(["two-layer", "mlp"])
    table = pl.DataFrame({"x": [0.5, None], "name": ["a", "b"]})
    measured = (
        Measurement("first", 1.0, 0.5, paper=2.0, ceiling=0.95),
        Measurement("second", float("nan"), high=1.0),
    )
    runs = tuple(
        SeedRun(measured, {"other": table}, (Measurement("a", 0.875),), seed) for seed in (1, 2)
    )
    one = ExperimentResult(
        two_layer, {"default": runs, "residual": (SeedRun((), problem="broke"),)}
    )
    late = ExperimentResult(mlp, problem="needs PyTorch")
    settings = {"scale": "quick", "seeds": "1 2", "seed": 1}
    return Reproduction((one, late), settings, "9.9", "2030-01-01 10:00", {"total": 3.5})


def test_the_page_shows_what_decides() -> None:
    html = page(study().report())
    for said in (
        "Best possible",
        "0.950",
        "at least 0.5",
        "0 of 2 seeds",
        "What the reviewers asked",
        'id="two-layer"',
    ):
        assert said in html, said
    assert "E_s" not in re.sub(r"<svg.*?</svg>", "", html), "formulas have real subscripts"
    [picture] = [block for block in study().report().blocks if isinstance(block, Picture)]
    assert [run["outcome"] for run in picture.data["runs"]] == ["not met", "not met"]
    assert study().tally() == {"reproduced": 0, "explained": 0, "not reproduced": 1, "not run": 1}
    json.dumps(study().to_dict(), allow_nan=False)


@pytest.mark.slow
def test_axe_finds_nothing(browser: Any, tmp_path: Path) -> None:
    assert violations(browser, page(study().report()), tmp_path) == []
