"""Runs over readings and seeds: taken over, counted, interrupted, drawn."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_reproduce import table_of

from tokensieve.errors import InputError
from tokensieve.report.blocks import Table, Text
from tokensieve.report.pictures import draw
from tokensieve.theory.experiments.bench import Bench
from tokensieve.theory.experiments.catalogue import select_experiments
from tokensieve.theory.experiments.experiment import Experiment, Reading, SeedRun
from tokensieve.theory.experiments.measures import PAPER, Measurement
from tokensieve.theory.experiments.reproduction import Reproduction
from tokensieve.theory.experiments.result import (
    ExperimentResult,
    join_seeds,
)
from tokensieve.theory.experiments.run import reproduce
from tokensieve.theory.experiments.section import experiment_section, pictures
from tokensieve.theory.experiments.settings import ReproduceSettings


def experiment(
    calls: list[Any], name: str = "first", value: float = 1.0, **changes: Any
) -> Experiment:
    def run(bench: Bench) -> SeedRun:
        calls.append((name, bench.seed))
        bench.progress("half", 0.5)
        assert bench.folder.is_dir() and not list(bench.folder.iterdir())
        tokens = pl.DataFrame(
            {"token": ["=cmd()", "'quoted'", "plain", "1"], "x": [0.5, None, 2.0, -1.0]}
        )
        lines = pl.DataFrame({"d": [1, 2], "value": [0.1 * bench.seed, 0.2], "by": ["=a", "=a"]})
        checks = (
            Measurement("one", value + bench.settings.get("more", 0.0), 0.5),
            Measurement("stated", 7.0 * bench.seed),
        )
        accuracy = (Measurement("test accuracy", 0.8 + bench.seed / 100),)
        return SeedRun(checks, {"tokens": tokens, "lines": lines}, accuracy)

    wanted = {"quick": {"d": 4}, "paper": {"d": 8}}
    made = Experiment(
        name, "title", "claim", "paper", "{0}", "criterion", wanted, {"quick": 1, "paper": 2}, run
    )
    return replace(made, **changes)


def go(
    out: Path,
    *these: Experiment,
    scale: Any = "quick",
    seed: int = 0,
    seeds: int = 1,
    readings: tuple[str, ...] = (),
) -> list[ExperimentResult]:
    how = ReproduceSettings(scale=scale, seed=seed, seeds=seeds, readings=readings, jobs=1)
    return list(reproduce(these, how, out).results)


def test_runs_are_taken_over_exactly_and_only_where_they_fit(tmp_path: Path) -> None:
    calls: list[Any] = []
    [first] = go(tmp_path, experiment(calls))
    [again] = go(tmp_path, experiment(calls))
    assert calls == [("first", 0)]
    assert first.verdict == "reproduced"
    (one,), (other,) = first.finished(), again.finished()
    assert replace(other, tables={}) == replace(one, tables={})
    assert other.tables["tokens"].equals(one.tables["tokens"]), (
        "texts that look like formulas come back as they were"
    )
    names = {
        path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()
    }
    assert names == {
        f"runs/first/default/0/{name}"
        for name in ("SHA256SUMS", "finding.json", "tokens.csv", "lines.csv")
    }
    go(tmp_path, experiment(calls), seeds=2)
    assert calls == [("first", 0), ("first", 1)], "only the seed that is missing"
    go(tmp_path, experiment(calls), scale="paper")
    go(tmp_path, experiment(calls, settings={"quick": {"d": 5}, "paper": {"d": 8}}))
    assert calls[2:] == [("first", 0)] * 2
    (tmp_path / "runs/first/default/0/finding.json").write_text("{damaged")
    go(tmp_path, experiment(calls))
    assert calls[4:] == [("first", 0)]


@pytest.mark.parametrize("change", ["seconds", "row", "name", "pipe", "table"])
def test_a_run_whose_files_have_changed_is_run_again(tmp_path: Path, change: str) -> None:
    calls: list[Any] = []
    go(tmp_path, experiment(calls))
    place = tmp_path / "runs/first/default/0"
    kept = json.loads((place / "finding.json").read_text())
    if change == "table":
        (place / "tokens.csv").write_text("other\n1\n")
    elif change == "pipe":
        (place / "SHA256SUMS").unlink()
        (place / "tokens.csv").unlink()
        os.mkfifo(place / "tokens.csv")
    else:
        (place / "SHA256SUMS").unlink()
        changes = {
            "seconds": {"seconds": "x"},
            "row": {"measurements": [["one", "x"]]},
            "name": {"tables": ["../a"]},
        }
        kept |= changes[change]
        (place / "finding.json").write_text(json.dumps(kept))
    go(tmp_path, experiment(calls))
    assert calls == [("first", 0)] * 2


def test_verdicts_are_shares_of_seeds_with_wilsons_interval(tmp_path: Path) -> None:
    def by_seed(bench: Bench) -> SeedRun:
        return SeedRun(
            (Measurement("one", float(bench.seed), high=2.0), Measurement("two", 1.0, 0.5))
        )

    [result] = go(tmp_path, experiment([], run=by_seed), seeds=5)
    assert result.verdict == "reproduced" and result.met().found == 3
    n, p, z = 5, 3 / 5, 1.959964
    centre, half = (
        (p + z * z / 2 / n) / (1 + z * z / n),
        z * (p * (1 - p) / n + z * z / 4 / n**2) ** 0.5 / (1 + z * z / n),
    )
    row = result.to_dict()
    assert row["readings"][0]["interval"] == pytest.approx((centre - half, centre + half), abs=1e-6)
    assert result.verdict_in_words == "reproduced in 3 of 5 seeds (95% CI 23% to 88%)"
    one, two = result.over_seeds()
    assert (one.n_passed, two.n_passed, one.values) == (3, 5, (0, 1, 2, 3, 4))
    assert {
        "id",
        "claim",
        "paper",
        "ours",
        "verdict",
        "seconds",
        "criterion",
        "checks",
        "notes",
        "settings",
    } <= set(row)
    assert row["checks"][0] == {"name": "one", "value": 2.0, "asked": "at most 2", "paper": None, "ceiling": None, "passed": False,
                                "values": [0, 1, 2, 3, 4], "passed_seeds": 3}  # fmt: skip
    assert (
        replace(result, experiment=replace(result.experiment, sees="{9}")).in_words()
        == "one 2.000 [0.000, 4.000]; two 1.000 [1.000, 1.000]"
    )
    assert [seed["passed"] for seed in row["readings"][0]["seeds"]] == [True] * 3 + [False] * 2
    [even] = go(tmp_path / "even", experiment([], run=by_seed), seed=2, seeds=2)
    assert even.verdict == "not reproduced", "half of the seeds are not most"
    [bad] = go(tmp_path / "bad", experiment([], value=float("nan")))
    assert bad.verdict == "not reproduced" and bad.to_dict()["checks"][0]["value"] is None


def test_another_reading_explains_and_never_reproduces(tmp_path: Path) -> None:
    calls: list[Any] = []
    readings = (
        Reading("worse", "why", {"more": -1.0}),
        Reading("better", "why", {"more": 1.0, "d": 9}),
    )
    made = experiment(calls, value=0.0, readings=readings)
    [plain] = go(tmp_path, made)
    assert plain.verdict == "not reproduced" and len(calls) == 1
    [named] = go(tmp_path, made, readings=("worse",))
    assert named.verdict == "not reproduced" and list(named.runs) == ["default", "worse"]
    [every] = go(tmp_path, made, readings=("all",), seeds=2)
    assert every.verdict == "explained" and every.explained_by == "better"
    assert every.runs["better"][0].settings["d"] == 9 and every.to_dict()["settings"]["d"] == 4
    assert every.verdict_in_words.startswith(
        "reproduced under interpretation “better” (why) in 2 of 2 seeds"
    )
    assert "under the default in 0 of 2 seeds" in every.verdict_in_words
    [good] = go(tmp_path / "good", experiment(calls, readings=readings), readings=("all",))
    assert good.verdict == "reproduced"
    with pytest.raises(
        InputError,
        match=r"no interpretation 'best' of these experiments .available: all, longer, narrow, wide",
    ):
        select_experiments(["mlp"], ["best"])


@pytest.mark.slow
@given(st.lists(st.lists(st.floats(-9, 9), min_size=4, max_size=4), min_size=1, max_size=4))
@settings(deadline=None, derandomize=True)
def test_tables_over_seeds_have_bands(rows: list[list[float]]) -> None:
    tables = {
        seed: pl.DataFrame(
            {
                "x": [0.1, 0.2, 0.3, 0.4],
                "types": [seed, 2, 3, 4],
                "few": [seed < 3] * 4,
                "value_mean": row,
            }
        )
        for seed, row in enumerate(rows)
    }
    found = join_seeds(tables, "bins-imdb")
    assert found["x"].to_list() == [0.1, 0.2, 0.3, 0.4] and set(found["seeds"]) == {len(rows)}
    np.testing.assert_allclose(found["value_mean"], np.mean(rows, axis=0), atol=1e-12)
    assert found["value_low"].to_list() == np.min(rows, axis=0).tolist()
    assert found["value_high"].to_list() == np.max(rows, axis=0).tolist()
    assert join_seeds(tables, "curves")["seed"].to_list() == np.repeat(range(len(rows)), 4).tolist()
    assert join_seeds({0: tables[0][:2], 1: tables[0]}, "bins")["seeds"].to_list() == [
        2,
        2,
        1,
        1,
    ]


def test_an_interruption_keeps_what_is_finished(tmp_path: Path) -> None:
    calls: list[Any] = []

    def stop(bench: Bench) -> SeedRun:
        (bench.folder / "state.npz").write_bytes(b"half")
        raise KeyboardInterrupt

    first, second = experiment(calls), experiment(calls, "second", run=stop)
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path, first, second)
    assert [path.read_bytes() for path in tmp_path.glob("unfinished/second-*/state.npz")] == [
        b"half"
    ]

    def proceed(bench: Bench) -> SeedRun:
        assert (bench.folder / "state.npz").read_bytes() == b"half"
        return SeedRun((Measurement("one", 1.0, 0.5),))

    results = go(tmp_path, first, replace(second, run=proceed))
    assert [r.verdict for r in results] == ["reproduced"] * 2 and calls == [("first", 0)]
    assert not (tmp_path / "unfinished").exists()


def test_experiments_that_cannot_run_say_why_and_the_others_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(bench: Bench) -> SeedRun:
        if bench.seed in (0, 1):
            raise InputError("row 3 is damaged")
        return SeedRun((Measurement("one", 1.0, 0.5),))

    monkeypatch.setattr(
        "tokensieve.theory.experiments.run.importlib.util.find_spec", lambda name: None
    )
    monkeypatch.delenv("TOKENSIEVE_DATA", raising=False)
    calls: list[Any] = []
    results = go(
        tmp_path, experiment(calls, "data", needs=("imdb",)), experiment(calls, "deep", torch=True),
        experiment(calls, "bad", run=refuse), experiment(calls, "good"),
    )  # fmt: skip
    assert [r.verdict for r in results] == ["not run"] * 3 + ["reproduced"] and calls == [
        ("good", 0)
    ]
    assert "--data" in results[0].problem and "tokensieve[torch]" in results[1].problem
    assert results[2].problem == "row 3 is damaged" and results[2].to_dict()["notes"] == [
        "row 3 is damaged"
    ]
    assert [r.to_dict()["verdict"] for r in results[:3]] == ["not run"] * 3
    monkeypatch.undo()
    go(tmp_path, experiment(calls, "deep", torch=True, run=experiment(calls, "deep").run))
    assert calls[-1] == ("deep", 0), "what was not run is tried again"
    [partly] = go(tmp_path, experiment(calls, "bad", run=refuse), seeds=3)
    assert partly.verdict == "not reproduced" and partly.met().found == 1, "failures are counted"


def test_time_left_is_told(tmp_path: Path) -> None:
    said: list[tuple[str, float]] = []
    these = [experiment([]), experiment([], "second", seconds={"quick": 300, "paper": 1})]
    reproduce(
        these,
        ReproduceSettings(seed=4, seeds=1, jobs=1),
        tmp_path,
        lambda *shown: said.append(shown),
    )
    texts, shares = [stage for stage, _ in said], [share for _, share in said]
    assert texts[0].startswith("1 of 2 first, seed 4: half, about 5 min left")
    assert texts[1].startswith("1 of 2 runs done") and texts[2].startswith(
        "2 of 2 second, seed 4: half, about"
    )
    assert shares == pytest.approx([0.5 / 301, 1 / 301, 151 / 301, 1.0])


@pytest.mark.slow
def test_several_at_a_time_give_what_one_at_a_time_gives(tmp_path: Path) -> None:
    small = {
        "d": 8,
        "steps": 20,
        "learning_rate": 0.05,
        "documents": 300,
        "n_types": 40,
        "length": 20,
        "n_irrelevant": 10,
    }
    made = replace(select_experiments(["synthetic"])[0], settings={"quick": small, "paper": small})
    one, other = (
        reproduce([made], ReproduceSettings(seeds=2, jobs=jobs), tmp_path / str(jobs)).results[0]
        for jobs in (1, 2)
    )
    assert one.over_seeds() == other.over_seeds()
    assert one.tables["bins"].equals(other.tables["bins"])


# ---- the report and its pictures


def bins_and_lines(bench: Bench) -> SeedRun:
    bins = table_of(lambda x: np.tanh(x) + bench.seed, np.abs, theirs=PAPER["key-query"])
    tokens = pl.DataFrame(
        {
            "token": ["a", "b"],
            "posterior_difference": [0.1, -0.2],
            "value": [1.0, 2],
            "score": [0.0, 1],
        }
    )
    return SeedRun((Measurement("one", 1.0, 0.5),), {"bins-imdb": bins, "tokens-imdb": tokens})


@pytest.mark.slow
def test_pictures_hold_our_numbers_and_the_papers(tmp_path: Path) -> None:
    [result] = go(tmp_path, experiment([], "one-layer", run=bins_and_lines), seeds=3)
    [picture] = pictures(result)
    [[score, value]] = picture.data["rows"]
    assert score["title"] == value["title"] == "IMDB" and value["y"] == "E_sᵀv"
    assert [row["y"] for row in value["paper"]] == pytest.approx(
        PAPER["key-query"]["value"].to_list()
    )
    for drawn, x in zip(value["bins"], PAPER["key-query"]["x"], strict=True):
        ends = np.tanh(x) + np.array([0, 1, 2])
        assert [drawn["least"], drawn["most"], drawn["mean"]] == pytest.approx(
            [*ends[::2], ends[1]]
        )
        assert drawn["high"] - drawn["low"] == pytest.approx(2)
    assert (
        "range of the means over 3 seeds" in picture.caption
        and "the paper's means" in picture.caption
    )
    [lines] = pictures(go(tmp_path / "lines", experiment([]), seeds=2)[0])
    [[panel]] = lines.data["rows"]
    assert panel["lines"][0] == pytest.approx(
        {"mean": 0.05, "least": 0.0, "most": 0.1, "x": 1, "by": "=a"}
    )
    drawn = draw([picture, lines], "pdf")
    assert b"rising" in drawn["one-layer"]["svg"] or b"ours: E" in drawn["one-layer"]["svg"]
    assert all(files["pdf"].startswith(b"%PDF") for files in drawn.values())


def test_a_section_of_the_real_experiments_has_at_most_200_words(tmp_path: Path) -> None:
    for real in select_experiments():
        run = experiment([], value=0.0).run
        [result] = go(
            tmp_path / real.id, replace(real, run=run, needs=(), torch=False), readings=("all",)
        )
        section = experiment_section(result)
        texts = [block for block in section.blocks if isinstance(block, Text)]
        assert sum(len(block.text.split()) for block in texts) <= 200, real.id
        assert section.anchor == real.id and "not reproduced" in texts[1].text.lower()


def test_every_question_of_the_reviewers_is_answered(tmp_path: Path) -> None:
    results = [
        go(tmp_path / e.id, replace(e, run=experiment([]).run, needs=(), torch=False))[0]
        for e in select_experiments()
    ]
    section = Reproduction(tuple(results), {}, "0", "", {}).reviewers()
    [table] = section.blocks
    assert isinstance(table, Table) and len(table.rows) == 19
    assert {row[0] for row in table.rows} == {"first reviewer", "q6jg", "E1M4", "vwUg"}
    assert all(row[2] and row[4] for row in table.rows)
