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

from pages import check_specifications
from tokensieve.errors import InputError
from tokensieve.progress import silent
from tokensieve.report.reproduce_pictures import draw_result, figures_of_the_paper
from tokensieve.reproduce import beyond, frozen, mlp, multi_class, paper, shape, synthetic
from tokensieve.reproduce.data import Data, data_folder
from tokensieve.reproduce.registry import EXPERIMENTS, check_readings, select
from tokensieve.reproduce.result import Bench, Check, Experiment, Finding, Reading, View
from tokensieve.reproduce.runner import Plan, run_all
from tokensieve.reproduce.seeds import Result, over_seeds
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
    asked = [Check("x", 1, *bounds).asked for bounds in ((0.5,), (None, 2), (1, 2), ())]
    assert asked == ["at least 0.5", "at most 2", "1 to 2", "stated"]
    assert Check("x", float("nan")).passed and not Check("x", 1.0).judged, "what is only stated decides nothing"
    assert str(Check("size", 1.23456, 1, paper=2)) == "size 1.23 (at least 1; paper 2)"


INSIDE = st.integers(-199, 199).map(lambda k: k / 200 + 0.0013)  # a point on an edge could be rounded to either side


@given(st.lists(st.tuples(INSIDE, st.floats(-5, 5)), min_size=5, max_size=60), st.booleans())
@settings(deadline=None, derandomize=True)
def test_bins_are_plain_means(points: list[tuple[float, float]], papers: bool) -> None:
    tokens = pl.DataFrame({"x": [a for a, _ in points], "value": [b for _, b in points]})
    theirs = paper.KEY_QUERY if papers else None
    table = shape.bins(tokens, "x", theirs)
    assert table["types"].sum() == len(points)
    centres = paper.KEY_QUERY["x"].to_numpy() if papers else np.linspace(-0.95, 0.95, 20)
    assert set(table["x"].round(9)) <= set(np.round(centres, 9))
    nearest = np.abs(tokens["x"].to_numpy()[:, None] - centres).argmin(axis=1)
    for row in table.to_dicts():
        k = int(np.abs(centres - row["x"]).argmin())
        inside = tokens["value"].to_numpy()[nearest == k]
        assert len(inside) == row["types"]
        assert row["value_mean"] == pytest.approx(inside.mean(), abs=1e-9)
        assert row["value_sd"] == pytest.approx(inside.std(), abs=1e-6)
        assert row["few"] == (row["types"] < 3)
        if papers:
            assert row["paper_value"] == paper.KEY_QUERY["value"][k]


def test_the_papers_bins_are_twenty_of_its_own_range() -> None:
    edges = shape.edges_of(paper.AXIS["x"].to_numpy())
    assert len(edges) == 21 and edges[0] == pytest.approx(-1, abs=0.005) and edges[-1] == pytest.approx(0.94, abs=0.005)
    np.testing.assert_allclose(np.diff(edges), 1.84 / 19, atol=0.011)
    np.testing.assert_allclose(edges, np.linspace(edges[0], edges[-1], 21), atol=0.011)


def test_token_table_has_the_posterior_difference() -> None:
    counts = Counts.from_matrix([[2, 1, 0], [0, 1, 1]], [1, 0])
    table = shape.token_table(counts, np.arange(3.0), np.ones((3, 1)))
    assert table["posterior_difference"].to_list() == [1.0, 0.0, -1.0]
    assert table["score"].to_list() == [0.0, 1.0, 2.0] and table["value"].to_list() == [1.0] * 3


def table_of(value: Any, score: Any, types: int = 9, theirs: pl.DataFrame | None = None) -> pl.DataFrame:
    """Bins with given means; with `theirs`, in the paper's bins and with its numbers beside."""
    x = np.linspace(-0.95, 0.95, 20) if theirs is None else theirs["x"].to_numpy()
    beside = {} if theirs is None else {f"paper_{of}": theirs[of] for of in theirs.columns[1:]}
    return pl.DataFrame(
        {"x": x, "types": [types] * len(x), "few": [types < 3] * len(x), "value_mean": value(x), "value_sd": 1.0 + 0 * x,
         "score_mean": score(x), "score_sd": 2.0 + 0 * x, **beside}
    )  # fmt: skip


def test_shape_criteria_tell_the_shapes_apart() -> None:
    good = shape.shape_checks(table_of(np.tanh, np.abs), "here")
    assert [check.passed for check in good] == [True, True]
    assert [check.passed for check in shape.shape_checks(table_of(np.abs, np.tanh), "here")] == [False, False]
    assert not any(check.passed for check in shape.shape_checks(table_of(np.tanh, np.abs, types=2), "too few types"))
    assert not any(check.judged for check in shape.shape_checks(table_of(np.abs, np.tanh), "here", judged=False))
    assert shape.mean_spread(table_of(np.tanh, np.abs), "score") == 2.0
    assert shape.reach(table_of(np.tanh, np.abs), "value") == pytest.approx(2 * np.tanh(0.95))
    spreads = [check.value for check in shape.spread_checks(table_of(np.tanh, np.abs), "here")]
    assert spreads == pytest.approx([1.0, 1 / (2 * np.tanh(0.95)), 2.0, 2 / 0.9])


def test_papers_tables_pass_their_own_criteria() -> None:
    assert all(table.height == 20 for table in (paper.KEY_QUERY, paper.MLP))
    assert all(table.height == 19 for table in paper.MULTI_CLASS.values())
    for table, of in ((paper.KEY_QUERY, "score"), (paper.KEY_QUERY, "value"), (paper.MLP, "score")):
        ours = table_of(np.tanh, np.abs, theirs=table).with_columns((-3 * table[of]).alias(f"{of}_mean"))
        beside, scale = shape.paper_checks(ours, of, "row")
        assert beside.value == pytest.approx(-1) and not beside.passed
        assert scale.value == pytest.approx(3) and scale.paper == 1 and not scale.judged
        assert beside.low == pytest.approx(0.9 * (beside.ceiling or 0))
    a, b = paper.KEY_QUERY, paper.MLP
    assert shape.spearman(a["x"].abs(), a["score"]) > shape.V_SHAPED
    assert shape.spearman(b["x"].abs(), b["score"]) > shape.V_SHAPED
    assert shape.spearman(b["x"], b["value"]) < shape.spearman(a["x"], a["value"]), "less monotone with an MLP layer"
    assert (a["score"][0], a["score"].min(), b["value"][-1], b["score"].min()) == (15.47, -3.92, 1.4, 0.59)


def test_ceilings_are_what_smooth_curves_reach() -> None:
    theirs = paper.MULTI_CLASS[2]
    x, y = theirs["x"].to_numpy(), theirs["value"].to_numpy()
    found = shape.ceilings(x, y, "value")
    assert found["line"] == pytest.approx(stats.pearsonr(x, y).statistic) == pytest.approx(0.902, abs=5e-4)
    assert found["sign"] == pytest.approx(np.corrcoef(np.sign(x), y)[0, 1]) == pytest.approx(0.943, abs=5e-4)
    steepest = max(np.corrcoef(np.tanh(k * x), y)[0, 1] for k in np.linspace(1, 1000, 3000))
    assert steepest - 1e-3 < found["tanh"] <= steepest + 1e-3 < 0.96
    grid = np.linspace(-1, 1, 21)
    assert shape.ceilings(grid, 7 - 2 * np.abs(grid) ** 2, "score")["|x − c|^γ"] < 0, (
        "an inverted V has no ceiling above"
    )
    assert shape.ceilings(grid, 3 * np.abs(grid) ** 2 - 1, "score")["|x − c|^γ"] == pytest.approx(1, abs=1e-3)


def test_rank_under_noise_is_one_without_noise_and_falls_with_it() -> None:
    quiet = table_of(np.tanh, np.abs, types=50).with_columns(value_sd=pl.lit(1e-9))
    quiet = quiet.with_columns(types=pl.when(pl.col("x").abs() < 0.1).then(60).otherwise(pl.col("types")))
    assert shape.rank_under_noise(quiet, "value") == (pytest.approx(1), pytest.approx(1))
    low, middle = shape.rank_under_noise(quiet.with_columns(value_sd=pl.lit(3.0)), "value")
    assert 0.5 < low < middle < 0.98
    rng, x = np.random.default_rng(9), quiet["x"].to_numpy()
    error = rng.standard_normal((2000, 20)) * 3 * np.sqrt(50 / 49) / np.sqrt(quiet["types"].to_numpy())
    assert np.median([stats.spearmanr(x, np.tanh(x) + e).statistic for e in error]) == pytest.approx(middle, abs=0.02)
    assert np.isnan(shape.rank_under_noise(table_of(np.tanh, np.abs, types=2), "value")[0])


def test_multi_class_bins_are_relative_to_the_largest_importance() -> None:
    relative = multi_class._relative(np.array([-0.5, 0.0, 2.0, 4.0]))
    assert relative.tolist() == [-1.0, 0.0, 0.5, 1.0]
    counts = Counts.from_matrix(np.eye(4)[[0, 1, 2, 3, 0, 1, 2, 3]], [0, 1, 2, 3, 0, 1, 2, 2], classes=list("abcd"))
    tokens, table = multi_class._measure(counts, 2, np.arange(4.0), paper.MULTI_CLASS[2], multi_class.RELATIVE)
    assert tokens["importance"].max() == 1 and table["x"].max() == pytest.approx(1)
    assert table["paper_value"][-1] == paper.MULTI_CLASS[2]["value"][-1]
    assert table.row(-1, named=True)["value_mean"] == 1.0, "type 1 is the one of class b, the second"


def test_the_sign_of_mlp_values_follows_our_own_types() -> None:
    tokens = pl.DataFrame({"posterior_difference": [-1.0, 0.0, 1.0], "value": [3.0, 1.0, 0.0]})
    assert mlp.with_sign(tokens)["value"].to_list() == [-3.0, -1.0, 0.0]
    assert mlp.with_sign(mlp.with_sign(tokens)).equals(mlp.with_sign(tokens))


def test_spearman_against_ranks_by_hand() -> None:
    x, y = np.array([3.0, 1, 2, 4]), np.array([1.0, 2, 3, 9])
    assert shape.spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic)
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
    two, four = Data(folder).yelp(types=30), Data(folder).yelp(types=30, groups="joined 2-3")
    assert sum(part.n_documents for part in two) == 200 and two.train.classes == ("negative", "positive")
    assert sum(part.n_documents for part in four) == 4 * 60 and four.train.n_classes == 4
    total = sum(part.class_sizes for part in four)
    assert total.tolist() == [60] * 4
    without = Data(folder).yelp(types=30, groups="without 3")
    assert without.train.classes == ("1 star", "2 stars", "4 stars", "5 stars")
    assert sum(part.n_documents for part in without) == 4 * 40
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
    deep_names = {"optimizer", "scaled", "residual", "unit_start", "start_seed", "data_seed"}
    for experiment in EXPERIMENTS.values():
        assert experiment.claim and experiment.paper and experiment.criterion
        assert set(experiment.settings) == set(experiment.seconds) == {"quick", "paper"}
        json.dumps(experiment.settings)
        names = [reading.name for reading in experiment.readings]
        assert len(set(names)) == len(names) and not {"all", "default"} & set(names)
        for reading in experiment.readings:
            assert reading.why and (deep_names | set(experiment.settings["quick"])) >= set(reading.settings)
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

VIEW = View("first", "title", "lines", "y", x="d", by="by")


def experiment(calls: list[Any], name: str = "first", value: float = 1.0, **changes: Any) -> Experiment:
    def run(bench: Bench) -> Finding:
        calls.append((name, bench.seed))
        bench.tell("half", 0.5)
        assert bench.folder.is_dir() and not list(bench.folder.iterdir())
        tokens = pl.DataFrame({"token": ["=cmd()", "'quoted'", "plain", "1"], "x": [0.5, None, 2.0, -1.0]})
        lines = pl.DataFrame({"d": [1, 2], "y": [0.1 * bench.seed, 0.2], "by": ["=a", "=a"]})
        checks = (Check("one", value + bench.settings.get("more", 0.0), 0.5), Check("stated", 7.0 * bench.seed))
        accuracy = (Check("test accuracy", 0.8 + bench.seed / 100),)
        return Finding("ours", checks, {"tokens": tokens, "lines": lines}, (VIEW,), ("a note",), accuracy)

    wanted = {"quick": {"d": 4}, "paper": {"d": 8}}
    made = Experiment(name, "claim", "paper", "criterion", wanted, {"quick": 1, "paper": 2}, run)
    return replace(made, **changes)


def go(out: Path, *these: Experiment, scale: str = "quick", seeds: Any = (0,), readings: Any = ()) -> list[Result]:
    plan = Plan(these, scale, seeds, readings, None, None, out)
    return run_all(plan, silent, lambda id, run, taken_over: None)


def test_runs_are_taken_over_exactly_and_only_where_they_fit(tmp_path: Path) -> None:
    calls: list[Any] = []
    [first] = go(tmp_path, experiment(calls))
    [again] = go(tmp_path, experiment(calls))
    assert calls == [("first", 0)]
    assert first.verdict == "reproduced" and first.default and again.default
    (one,), (other,) = first.default.findings, again.default.findings
    assert replace(other, tables={}) == replace(one, tables={})
    assert other.tables["tokens"].equals(one.tables["tokens"]), "texts that look like formulas come back as they were"
    names = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert names == {f"runs/first/default/0/{name}" for name in ("finding.json", "tokens.csv", "lines.csv")}
    go(tmp_path, experiment(calls), seeds=(0, 1))
    assert calls == [("first", 0), ("first", 1)], "only the seed that is missing"
    go(tmp_path, experiment(calls), scale="paper")
    go(tmp_path, experiment(calls, settings={"quick": {"d": 5}, "paper": {"d": 8}}))
    assert calls[2:] == [("first", 0)] * 2
    (tmp_path / "runs/first/default/0/finding.json").write_text("{damaged")
    go(tmp_path, experiment(calls))
    assert calls[4:] == [("first", 0)]


def test_verdicts_are_shares_of_seeds_with_wilsons_interval(tmp_path: Path) -> None:
    def by_seed(bench: Bench) -> Finding:
        return Finding("ours", (Check("one", float(bench.seed), high=2.0), Check("two", 1.0, 0.5)))

    [result] = go(tmp_path, experiment([], run=by_seed), seeds=range(5))
    assert result.verdict == "reproduced" and result.default and result.default.met == 3
    n, p, z = 5, 3 / 5, 1.959964
    centre, half = (
        (p + z * z / 2 / n) / (1 + z * z / n),
        z * (p * (1 - p) / n + z * z / 4 / n**2) ** 0.5 / (1 + z * z / n),
    )
    assert result.default.interval == pytest.approx((centre - half, centre + half), abs=1e-6)
    assert result.verdict_in_words == "reproduced in 3 of 5 seeds (95 % interval 23% to 88%)"
    one, two = result.default.figures
    assert (one.passed, two.passed, one.middle, one.values) == (3, 5, 2.0, (0, 1, 2, 3, 4))
    row = result.to_dict()
    assert {"id", "claim", "paper", "ours", "verdict", "seconds", "criterion", "checks", "notes", "settings"} <= set(
        row
    )
    assert row["checks"][0] == {"name": "one", "value": 2.0, "asked": "at most 2", "paper": None, "ceiling": None, "passed": False,
                                "values": [0, 1, 2, 3, 4], "passed_seeds": 3}  # fmt: skip
    assert result.ours == "one 2.000 [0.000, 4.000]; two 1.000 [1.000, 1.000]"
    assert [seed["passed"] for seed in row["readings"][0]["seeds"]] == [True] * 3 + [False] * 2
    [even] = go(tmp_path / "even", experiment([], run=by_seed), seeds=(2, 3))
    assert even.verdict == "not reproduced", "half of the seeds are not most"
    [bad] = go(tmp_path / "bad", experiment([], value=float("nan")))
    assert bad.verdict == "not reproduced" and bad.to_dict()["checks"][0]["value"] is None


def test_another_reading_explains_and_never_reproduces(tmp_path: Path) -> None:
    calls: list[Any] = []
    readings = (Reading("worse", "why", {"more": -1.0}), Reading("better", "why", {"more": 1.0, "d": 9}))
    made = experiment(calls, value=0.0, readings=readings)
    [plain] = go(tmp_path, made)
    assert plain.verdict == "not reproduced" and len(calls) == 1
    [named] = go(tmp_path, made, readings=("worse",))
    assert named.verdict == "not reproduced" and [one.reading for one in named.outcomes] == ["default", "worse"]
    [every] = go(tmp_path, made, readings=("all",), seeds=(0, 1))
    assert every.verdict == "explained" and every.explained_by is every.outcomes[2]
    assert every.outcomes[2].runs[0].settings["d"] == 9 and every.to_dict()["settings"]["d"] == 4
    assert every.verdict_in_words.startswith("not reproduced: in 0 of 2 seeds")
    assert "explained: reading “better” in 2 of 2 seeds" in every.verdict_in_words
    [good] = go(tmp_path / "good", experiment(calls, readings=readings), readings=("all",))
    assert good.verdict == "reproduced"
    check_readings([made], ["all", "better"])
    with pytest.raises(InputError, match=r"no reading 'best' of these experiments: .there are: all, worse, better"):
        check_readings([made], ["best"])


@given(st.lists(st.lists(st.floats(-9, 9), min_size=4, max_size=4), min_size=1, max_size=4))
@settings(deadline=None, derandomize=True)
def test_tables_over_seeds_have_bands(rows: list[list[float]]) -> None:
    tables = [
        (
            seed,
            pl.DataFrame(
                {"x": [0.1, 0.2, 0.3, 0.4], "types": [seed, 2, 3, 4], "few": [seed < 3] * 4, "value_mean": row}
            ),
        )
        for seed, row in enumerate(rows)
    ]
    found = over_seeds(tables, "bins-imdb")
    assert found["x"].to_list() == [0.1, 0.2, 0.3, 0.4] and set(found["seeds"]) == {len(rows)}
    np.testing.assert_allclose(found["value_mean"], np.mean(rows, axis=0), atol=1e-12)
    assert found["value_low"].to_list() == np.min(rows, axis=0).tolist()
    assert found["value_high"].to_list() == np.max(rows, axis=0).tolist()
    assert over_seeds(tables, "curves")["seed"].to_list() == np.repeat(range(len(rows)), 4).tolist()
    assert over_seeds([(0, tables[0][1][:2]), (1, tables[0][1])], "bins")["seeds"].to_list() == [2, 2, 1, 1]


def test_an_interruption_keeps_what_is_finished(tmp_path: Path) -> None:
    calls: list[Any] = []

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
    assert [r.verdict for r in results] == ["reproduced"] * 2 and calls == [("first", 0)]
    assert not (tmp_path / "unfinished").exists()


def test_experiments_that_cannot_run_say_why_and_the_others_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(bench: Bench) -> Finding:
        if bench.seed in (0, 1):
            raise InputError("row 3 is damaged")
        return Finding("ours", (Check("one", 1.0, 0.5),))

    monkeypatch.setattr("tokensieve.reproduce.runner.importlib.util.find_spec", lambda name: None)
    calls: list[Any] = []
    results = go(
        tmp_path, experiment(calls, "data", needs=("imdb",)), experiment(calls, "deep", torch=True),
        experiment(calls, "bad", run=refuse), experiment(calls, "good"),
    )  # fmt: skip
    assert [r.verdict for r in results] == ["not run"] * 3 + ["reproduced"] and calls == [("good", 0)]
    assert "--data" in results[0].notes[0] and "tokensieve[torch]" in results[1].notes[0]
    assert results[2].notes == ("row 3 is damaged",)
    assert [r.to_dict()["verdict"] for r in results[:3]] == ["not run"] * 3
    monkeypatch.undo()
    go(tmp_path, experiment(calls, "deep", torch=True, run=experiment(calls, "deep").run))
    assert calls[-1] == ("deep", 0), "what was not run is tried again"
    [partly] = go(tmp_path, experiment(calls, "bad", run=refuse), seeds=(0, 1, 2))
    assert partly.verdict == "not reproduced" and partly.default and partly.default.met == 1, "failures are counted"


def test_time_left_is_told(tmp_path: Path) -> None:
    said: list[tuple[str, float]] = []
    these = [experiment([]), experiment([], "second", seconds={"quick": 300, "paper": 1})]
    plan = Plan(these, "quick", (4,), (), None, None, tmp_path)
    run_all(plan, lambda *shown: said.append(shown), lambda id, run, taken_over: None)
    texts, shares = [stage for stage, _ in said], [share for _, share in said]
    assert texts[0].startswith("1 of 2 first, seed 4: half, about 5 min left")
    assert texts[1].startswith("1 of 2 runs done") and texts[2].startswith("2 of 2 second, seed 4: half, about")
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
    made = replace(synthetic.EXPERIMENT, settings={"quick": small, "paper": small})
    found = [
        run_all(Plan([made], "quick", (0, 1), (), None, None, tmp_path / str(jobs), jobs), silent, lambda *_: None)[0]
        for jobs in (1, 2)
    ]
    one, other = (result.default for result in found)
    assert one and other and one.figures == other.figures
    assert one.tables["bins"].equals(other.tables["bins"])


# ---- pictures and parts of experiments


def test_pictures_hold_our_numbers_and_the_papers(tmp_path: Path) -> None:
    def run(bench: Bench) -> Finding:
        bins = table_of(lambda x: np.tanh(x) + bench.seed, np.abs, theirs=paper.KEY_QUERY)
        tokens = pl.DataFrame(
            {"token": ["a", "b"], "posterior_difference": [0.1, -0.2], "value": [1.0, 2], "score": [0.0, 1]}
        )
        lines = pl.DataFrame({"d": [1, 2, 4, 8], "y": [0.1, 0.2, 0.3, 0.4], "by": ["a", "a", "b", "b"]})
        views = (
            View("left", "Title: score", "bins", "score", points="tokens"),
            View("right", "Title: value", "bins", "value", points="tokens"),
            View("other", "Lines", "lines", "y", x="d", by="by", log_x=True),
        )
        return Finding("ours", (Check("one", 1.0, 0.5),), {"bins": bins, "tokens": tokens, "lines": lines}, views)

    [result] = go(tmp_path, experiment([], "one-layer", run=run), seeds=(0, 2))
    _, picture, other = draw_result(result)
    assert other.description == "Lines. a: 0.1 to 0.2, b: 0.3 to 0.4."
    data = picture.spec["datasets"]
    assert [row["y"] for row in data["paper"]] == paper.KEY_QUERY["value"].to_list()
    for drawn, x in zip(data["bins"], paper.KEY_QUERY["x"], strict=True):
        ends = np.tanh(x) + np.array([0, 2])
        assert [drawn["least"], drawn["most"], drawn["mean"]] == pytest.approx([*ends, ends.mean()])
        assert drawn["high"] - drawn["low"] == pytest.approx(2)
    assert "Title" in picture.svg() and picture.png().startswith(b"\x89PNG")
    assert "0.26 at -0.95" in picture.description and "range of the bin means over 2 seeds" in picture.caption
    [sheet] = figures_of_the_paper([result])
    check_specifications([picture, other, sheet])
    [row] = sheet.spec["vconcat"]
    assert [panel["title"]["text"] for panel in row["hconcat"]] == ["Title: E_sᵀp", "Title: E_sᵀv"]
    assert sheet.name == "figure-3" and "p (left) and with v (right)" in sheet.svg().replace("\n", " ")


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
        {"data": data, "embeddings": kind, "when": when, "test_accuracy": a, "test_loss": loss, "train_accuracy": a + 0.1,
         "train_loss": loss / 2}
        for data, kind, when, a, loss in (
            ("A", "frozen", "best", 0.5, 0.9), ("A", "trained", "best", 0.8, 0.5),
            ("B", "frozen", "best", 0.77, 0.58), ("B", "trained", "best", 0.87, 0.22),
            ("A", "frozen", frozen.AT_LOSS, 0.6, 0.65), ("B", "frozen", frozen.AT_LOSS, 0.73, 0.61),
        )
    ]  # fmt: skip
    test = frozen._checks(pl.DataFrame(rows), "test")
    assert [check.value for check in test[:4]] == [0.77, 0.58, 0.87, 0.22]
    assert test[4].value == pytest.approx(0.1) and not test[0].passed
    training = frozen._checks(pl.DataFrame(rows), frozen.TRAINING)
    assert [check.value for check in training[:4]] == [0.73, 0.61, 0.97, 0.11]
    assert training[4].value == pytest.approx(0.14) and all(check.passed for check in training)
    stopped = pl.DataFrame([row | {"when": row["when"].replace(frozen.AT_LOSS, frozen.AT_BOTH)} for row in rows])
    assert frozen._checks(stopped, frozen.STOPPED) == training
    near = [{"test_accuracy": a, "test_loss": loss} for a, loss in ((0.68, 0.6), (0.70, 0.57), (0.76, 0.55))]
    assert min(near, key=frozen._distance) == near[1]
