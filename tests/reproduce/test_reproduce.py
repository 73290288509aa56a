"""The parts of `reproduce`: criteria, the paper's tables, data, verdicts, and what is kept between runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tokensieve.errors import InputError
from tokensieve.report.reproduce import draw_result
from tokensieve.reproduce import beyond, frozen, multi_class, paper, shape
from tokensieve.reproduce.data import Data, data_folder
from tokensieve.reproduce.registry import EXPERIMENTS, select
from tokensieve.reproduce.result import Bench, Check, Experiment, Finding, Result, View
from tokensieve.reproduce.runner import run_all
from tokensieve.text.counts import Counts

WORDS = {"positive": ["good", "fine", "superb"], "negative": ["bad", "poor", "awful"]}
PLAIN = [f"word{k}" for k in range(12)]


def reviews(n: int, seed: int, labels: list[str]) -> list[str]:
    rng = np.random.default_rng(seed)
    return [
        " ".join(
            [*rng.choice(PLAIN, 8), *rng.choice(WORDS[label], 2), *rng.choice(WORDS["positive"] + WORDS["negative"], 1)]
        )
        for label in labels[:n]
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small data files of the right form; sorted by label, as the real ones are."""
    home = tmp_path_factory.mktemp("data")
    for part, seed in (("train", 0), ("test", 1)):
        labels = ["negative"] * 150 + ["positive"] * 150
        frame = pl.DataFrame({"text": reviews(300, seed, labels), "label": labels, "rating": [1] * 150 + [9] * 150})
        frame.write_parquet(home / f"imdb_{part}.parquet")
    stars = np.repeat([1, 2, 3, 4, 5], [60, 40, 50, 70, 180])
    labels = ["negative" if star < 3 else "positive" for star in stars]
    pl.DataFrame({"text": reviews(400, 2, labels), "stars": stars}).write_parquet(home / "yelp.parquet")
    return home


# ---- criteria


def test_checks_against_their_bounds() -> None:
    assert Check("x", 1.0, 0.5, 1.0).passed
    assert not Check("x", 1.01, 0.5, 1.0).passed
    assert not Check("x", 0.4, 0.5).passed
    assert not Check("x", float("nan"), high=1.0).passed
    assert (Check("x", 1, 0.5).asked, Check("x", 1, high=2).asked, Check("x", 1, 1, 2).asked) == (
        "at least 0.5",
        "at most 2",
        "1 to 2",
    )
    assert str(Check("size", 1.23456, 1, paper=2)) == "size 1.23 (at least 1; paper 2)"


@given(st.lists(st.tuples(st.floats(-1, 1), st.floats(-5, 5)), min_size=5, max_size=60), st.floats(0.5, 3))
@settings(deadline=None, derandomize=True)
def test_bins_are_plain_means(points: list[tuple[float, float]], stretch: float) -> None:
    tokens = pl.DataFrame({"x": [a * stretch for a, _ in points], "value": [b for _, b in points]})
    table = shape.bins(tokens, "x", -stretch, stretch)
    assert table["types"].sum() == len(points)
    x = tokens["x"].to_numpy()
    bin_of = np.minimum(((x / stretch + 1) / 2 * 20).astype(int), 19)
    centre_of = np.rint(((table["x"].to_numpy() / stretch + 1) / 2 * 20) - 0.5).astype(int)
    for row, k in zip(table.to_dicts(), centre_of, strict=True):
        inside = tokens["value"].to_numpy()[bin_of == k]
        if len(inside) == row["types"]:  # a point on an edge may be rounded to either side
            assert row["value_mean"] == pytest.approx(inside.mean(), abs=1e-9)
            assert row["value_sd"] == pytest.approx(inside.std(), abs=1e-6)


def test_token_table_has_the_posterior_difference() -> None:
    counts = Counts.from_matrix([[2, 1, 0], [0, 1, 1]], [1, 0])
    table = shape.token_table(counts, np.arange(3.0), np.ones((3, 1)))
    assert table["posterior_difference"].to_list() == [1.0, 0.0, -1.0]
    assert table["score"].to_list() == [0.0, 1.0, 2.0] and table["value"].to_list() == [1.0] * 3


def table_of(value: Any, score: Any, types: int = 9) -> pl.DataFrame:
    x = np.linspace(-0.95, 0.95, 20)
    return pl.DataFrame(
        {"x": x, "types": [types] * 20, "value_mean": value(x), "value_sd": 1.0 + 0 * x,
         "score_mean": score(x), "score_sd": 2.0 + 0 * x}
    )  # fmt: skip


def test_shape_criteria_tell_the_shapes_apart() -> None:
    good = shape.shape_checks(table_of(np.tanh, np.abs), "here")
    assert [check.passed for check in good] == [True, True]
    assert [check.passed for check in shape.shape_checks(table_of(np.abs, np.tanh), "here")] == [False, False]
    assert not any(check.passed for check in shape.shape_checks(table_of(np.tanh, np.abs, types=2), "too few types"))
    assert shape.mean_spread(table_of(np.tanh, np.abs), "score") == 2.0
    assert shape.reach(table_of(np.tanh, np.abs), "value") == pytest.approx(2 * np.tanh(0.95))


def test_papers_tables_pass_their_own_criteria() -> None:
    assert all(table.height == 20 for table in (paper.KEY_QUERY, paper.MLP))
    assert all(table.height == 19 for table in paper.MULTI_CLASS.values())
    for table, of in ((paper.KEY_QUERY, "score"), (paper.KEY_QUERY, "value"), (paper.MLP, "score")):
        ours = table.select("x", types=pl.lit(9), **{f"{of}_mean": pl.col(of)})
        assert shape.paper_check(ours, of, table, "").value == pytest.approx(1)
        turned = ours.with_columns(-pl.col(f"{of}_mean"))
        assert shape.paper_check(turned, of, table, "").value == pytest.approx(-1)
    a, b = paper.KEY_QUERY, paper.MLP
    assert shape.spearman(a["x"].abs(), a["score"]) > shape.V_SHAPED
    assert shape.spearman(b["x"].abs(), b["score"]) > shape.V_SHAPED
    assert shape.spearman(b["x"], b["value"]) < shape.spearman(a["x"], a["value"]), "less monotone with an MLP layer"
    assert (a["score"][0], a["score"].min(), b["value"][-1], b["score"].min()) == (15.47, -3.92, 1.4, 0.59)


def test_multi_class_rows_of_the_paper_agree_with_themselves() -> None:
    for theirs in paper.MULTI_CLASS.values():
        ours = theirs.select(x=pl.col("x") / 30, value_mean="value")
        assert multi_class._correlation(ours, theirs) == pytest.approx(1)


def test_spearman_against_ranks_by_hand() -> None:
    x, y = np.array([3.0, 1, 2, 4]), np.array([1.0, 2, 3, 9])
    rank = [stats.rankdata(v) for v in (x, y)]
    assert shape.spearman(x, y) == pytest.approx(np.corrcoef(*rank)[0, 1])
    assert np.isnan(shape.spearman([1, 1, 1], [1, 2, 3])) and np.isnan(shape.spearman([1, 2], [1, 2]))


# ---- data


def test_imdb_parts_are_balanced_and_apart(folder: Path) -> None:
    split = Data(folder).imdb(types=16, seed=3)
    assert [part.n_documents for part in split] == [270, 30, 300]
    assert all(abs(np.diff(part.class_sizes)[0]) <= 2 for part in split)
    assert split.train.n_types == 16
    every = Data(folder).imdb(types=10_000)
    assert every.train.n_types == 18, "only types seen in training"
    kept = every.train.matrix[:, [t in split.train.tokens for t in every.train.tokens]]
    assert kept.sum() >= split.train.matrix.sum() - 1e-9, "the most frequent types are the ones kept"
    first = Data(folder).imdb(types=16, documents=100, seed=3)
    assert [part.n_documents for part in first] == [90, 10, 100]
    assert abs(first.test.rows(np.arange(40)).labels.mean() - 0.5) < 0.05, "the first documents are a sample"


def test_yelp_classes(folder: Path) -> None:
    two, four = Data(folder).yelp(types=30), Data(folder).yelp(types=30, four=True)
    assert sum(part.n_documents for part in two) == 200 and two.train.classes == ("negative", "positive")
    assert sum(part.n_documents for part in four) == 4 * 60 and four.train.n_classes == 4
    total = sum(part.class_sizes for part in four)
    assert total.tolist() == [60] * 4
    assert Data(folder, limit=100).yelp(types=30).train.n_documents == 72


def test_counts_of_a_split_are_those_of_the_texts(folder: Path) -> None:
    split = Data(folder).imdb(types=10_000, seed=1)
    texts = pl.read_parquet(folder / "imdb_train.parquet")["text"].to_list()
    ours = sorted(map(tuple, np.vstack([split.train.matrix.toarray(), split.validation.matrix.toarray()]).tolist()))
    tokens = split.train.tokens.tolist()
    assert ours == sorted(tuple(float(text.split().count(token)) for token in tokens) for text in texts)


def test_missing_data_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no data folder is named" in Data(None).missing("imdb") and "--data" in Data(None).missing("imdb")
    assert "there is no imdb_train.parquet in" in Data(tmp_path).missing("imdb")
    monkeypatch.delenv("TOKENSIEVE_DATA", raising=False)
    assert data_folder(None) is None
    monkeypatch.setenv("TOKENSIEVE_DATA", str(tmp_path))
    assert data_folder(None) == tmp_path
    with pytest.raises(InputError, match="there is no data folder"):
        data_folder(tmp_path / "none")


# ---- the registry


def test_registry_is_the_designs_table() -> None:
    ids = "synthetic one-layer two-layer key-query mlp multi-class frozen one-step-only diagnosis dimension beyond"
    assert list(EXPERIMENTS) == ids.split()
    for experiment in EXPERIMENTS.values():
        assert experiment.claim and experiment.paper and experiment.criterion
        assert set(experiment.settings) == set(experiment.seconds) == {"quick", "paper"}
        json.dumps(experiment.settings)
    assert sum(experiment.seconds["quick"] for experiment in EXPERIMENTS.values()) <= 600
    assert sum(experiment.seconds["paper"] for experiment in EXPERIMENTS.values()) <= 7200


def test_names_are_chosen_in_order_or_refused() -> None:
    assert [e.id for e in select(["mlp", "synthetic"])] == ["synthetic", "mlp"]
    assert len(select([])) == len(EXPERIMENTS)
    with pytest.raises(InputError, match="'one-leyer': did you mean 'one-layer'"):
        select(["one-leyer"])
    with pytest.raises(InputError, match="there are: synthetic"):
        select(["zzz"])


# ---- the runner

VIEW = View("first", "title", "tokens", "x", x="x", by="token")


def experiment(calls: list[str], name: str = "first", value: float = 1.0, **changes: Any) -> Experiment:
    def run(bench: Bench) -> Finding:
        calls.append(name)
        bench.tell("half", 0.5)
        assert bench.folder.is_dir() and not list(bench.folder.iterdir())
        table = pl.DataFrame({"token": ["=cmd()", "'quoted'", "plain", "1"], "x": [0.5, None, 2.0, -1.0]})
        return Finding("ours", (Check("one", value, 0.5),), {"tokens": table}, (VIEW,), ("a note",))

    wanted = {"quick": {"d": 4}, "paper": {"d": 8}}
    made = Experiment(name, "claim", "paper", "criterion", wanted, {"quick": 1, "paper": 2}, run)
    return replace(made, **changes)


def go(out: Path, *these: Experiment, scale: str = "quick", seed: int = 0) -> list[Result]:
    return run_all(these, Data(None), scale, seed, out, lambda stage, share: None)


def test_results_are_taken_over_exactly_and_only_where_they_fit(tmp_path: Path) -> None:
    calls: list[str] = []
    [first] = go(tmp_path, experiment(calls))
    [again] = go(tmp_path, experiment(calls))
    assert calls == ["first"]
    assert first.verdict == "reproduced"
    assert replace(again, tables={}) == replace(first, tables={})
    assert again.tables["tokens"].equals(first.tables["tokens"]), "texts that look like formulas come back as they were"
    names = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert names == {"experiments/first.json", "tables/first-tokens.csv"}
    for other in ({"seed": 1}, {"scale": "paper"}):
        go(tmp_path, experiment(calls), **other)  # type: ignore[arg-type]
    go(tmp_path, experiment(calls, settings={"quick": {"d": 5}, "paper": {"d": 8}}))
    assert calls == ["first"] * 4
    (tmp_path / "experiments/first.json").write_text("{damaged")
    go(tmp_path, experiment(calls))
    assert calls == ["first"] * 5


def test_one_failed_check_is_not_reproduced(tmp_path: Path) -> None:
    [result] = go(tmp_path, experiment([], value=0.1))
    assert result.verdict == "not reproduced"
    row = result.to_dict()
    assert {"id", "claim", "paper", "ours", "verdict", "seconds"} <= set(row)
    assert row["checks"] == [{"name": "one", "value": 0.1, "asked": "at least 0.5", "paper": None, "passed": False}]
    assert go(tmp_path / "b", experiment([], value=float("nan")))[0].to_dict()["checks"][0]["value"] is None


def test_an_interruption_keeps_what_is_finished(tmp_path: Path) -> None:
    calls: list[str] = []

    def stop(bench: Bench) -> Finding:
        (bench.folder / "state.npz").write_bytes(b"half")
        raise KeyboardInterrupt

    first, second = experiment(calls), experiment(calls, "second", run=stop)
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path, first, second)
    assert [path.read_bytes() for path in tmp_path.glob("unfinished/second-*/state.npz")] == [b"half"]

    def proceed(bench: Bench) -> Finding:
        assert (bench.folder / "state.npz").read_bytes() == b"half"
        return Finding("ours", (Check("one", 1.0, 0.5),))

    results = go(tmp_path, first, replace(second, run=proceed))
    assert [r.verdict for r in results] == ["reproduced"] * 2 and calls == ["first"]
    assert not (tmp_path / "unfinished").exists()


def test_experiments_that_cannot_run_say_why_and_the_others_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(bench: Bench) -> Finding:
        raise InputError("row 3 is damaged")

    monkeypatch.setattr("tokensieve.reproduce.runner.importlib.util.find_spec", lambda name: None)
    calls: list[str] = []
    results = go(
        tmp_path, experiment(calls, "data", needs=("imdb",)), experiment(calls, "deep", torch=True),
        experiment(calls, "bad", run=refuse), experiment(calls, "good"),
    )  # fmt: skip
    assert [r.verdict for r in results] == ["not run"] * 3 + ["reproduced"] and calls == ["good"]
    assert "--data" in results[0].notes[0] and "tokensieve[torch]" in results[1].notes[0]
    assert results[2].notes == ("row 3 is damaged",)
    monkeypatch.undo()
    go(tmp_path, experiment(calls, "deep", torch=True, run=experiment(calls, "deep").run))
    assert calls[-1] == "deep", "what was not run is tried again"


def test_time_left_is_told(tmp_path: Path) -> None:
    said: list[str] = []
    run_all(
        [experiment([]), experiment([], "second", seconds={"quick": 300, "paper": 1})], Data(None), "quick", 0, tmp_path,
        lambda stage, share: said.append(stage),
    )  # fmt: skip
    assert said[0].startswith("1 of 2 first: half, about 5 min left") and said[1].startswith(
        "2 of 2 second: half, about"
    )


# ---- pictures and parts of experiments


def test_pictures_hold_our_numbers_and_the_papers() -> None:
    bins, tokens = (
        table_of(np.tanh, np.abs),
        pl.DataFrame({"posterior_difference": [0.1, -0.2], "value": [1.0, 2], "score": [0.0, 1]}),
    )
    lines = pl.DataFrame({"d": [1, 2, 4, 8], "y": [0.1, 0.2, 0.3, 0.4], "by": ["a", "a", "b", "b"]})
    tables = {"bins": bins, "tokens": tokens, "paper": paper.KEY_QUERY, "lines": lines}
    views = (
        View("name", "Title", "bins", "value", points="tokens", paper="paper"),
        View("other", "Lines", "lines", "y", x="d", by="by", log_x=True),
    )
    made = Result("a", "", "", "", "reproduced", 0.0, "", {}, (), tables, views)
    picture, other = draw_result(made)
    assert other.description == "Lines. a: 0.1 to 0.2, b: 0.3 to 0.4."
    assert [row["y"] for row in other.spec["datasets"]["lines"]] == lines["y"].to_list()
    data = picture.spec["datasets"]
    assert [row["y"] for row in data["paper"]] == paper.KEY_QUERY["value"].to_list()
    for drawn, row in zip(data["bins"], bins.to_dicts(), strict=True):
        assert drawn["mean"] == row["value_mean"] and drawn["high"] - drawn["low"] == pytest.approx(2 * row["value_sd"])
    assert "Title" in picture.svg() and picture.png().startswith(b"\x89PNG")
    assert "-0.74 at -0.95 to 0.74 at 0.95" in picture.description


def test_pairs_are_products_of_counts() -> None:
    rng = np.random.default_rng(0)
    dense = rng.integers(0, 3, (7, 4))
    counts = Counts.from_matrix(dense, [0, 1] * 3 + [0], tokens=["a", "b", "c", "d"])
    paired = beyond.with_pairs(counts)
    assert paired.n_types == 4 + 6 and np.array_equal(paired.matrix.toarray()[:, :4], dense)
    names = paired.tokens.tolist()
    for i in range(4):
        for j in range(i):
            np.testing.assert_array_equal(
                paired.matrix.toarray()[:, names.index(f"{'abcd'[j]} {'abcd'[i]}")], dense[:, i] * dense[:, j]
            )


def test_no_linear_sign_gets_four_combinations() -> None:
    """The ceilings of xor and negation by brute force over signs of linear functions of two bits."""
    rng = np.random.default_rng(0)
    ab = np.array([[1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1]])  # one of two tokens of each of two groups
    negated = np.array([[1, 0, 0], [0, 1, 0], [1, 0, 1], [0, 1, 1]])  # good, bad, negator
    weights = rng.standard_normal((20_000, 4))
    xor = ((ab @ weights.T > 0) == (np.array([1, 0, 0, 1])[:, None] > 0)).mean(axis=0).max()
    share = np.array([3, 3, 1, 1]) / 8
    right = (negated @ weights[:, :3].T > 0) == (np.array([1, 0, 0, 1])[:, None] > 0)
    assert xor == beyond.CEILING["xor"] and (share @ right).max() == beyond.CEILING["negation"]


def test_frozen_takes_the_nearer_data_set() -> None:
    rows = [
        {"data": data, "embeddings": kind, "when": "best", "test_accuracy": a, "test_loss": loss}
        for data, kind, a, loss in (
            ("A", "frozen", 0.5, 0.9), ("A", "trained", 0.93, 0.5), ("B", "frozen", 0.71, 0.58), ("B", "trained", 0.8, 0.15),
        )
    ]  # fmt: skip
    checks = frozen._checks(pl.DataFrame(rows))
    assert [check.value for check in checks[:4]] == [0.71, 0.58, 0.93, 0.15]
    assert checks[4].value == pytest.approx(0.09) and not checks[4].passed
