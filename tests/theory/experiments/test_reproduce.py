"""The parts of `reproduce`: criteria, the paper's tables, data, verdicts, and what is kept between runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tokensieve.errors import InputError
from tokensieve.text.counts import Counts
from tokensieve.theory.experiments import asked, measures, paper
from tokensieve.theory.experiments.catalogue import select_experiments
from tokensieve.theory.experiments.data import Data
from tokensieve.theory.experiments.measures import PAPER, Measurement
from tokensieve.theory.experiments.settings import ReproduceSettings

WORDS = {"positive": ["good", "fine", "superb"], "negative": ["bad", "poor", "awful"]}
PLAIN = [f"word{k}" for k in range(12)]


def texts_of(n: int, seed: int, labels: list[str]) -> list[str]:
    rng = np.random.default_rng(seed)
    return [
        " ".join(
            [
                *rng.choice(PLAIN, 8),
                *rng.choice(WORDS[label], 2),
                *rng.choice(WORDS["positive"] + WORDS["negative"], 1),
            ]
        )
        for label in labels[:n]
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small data files of the right form; sorted by label, as the real ones are."""
    home = tmp_path_factory.mktemp("data")
    for part, seed in (("train", 0), ("test", 1)):
        labels = ["negative"] * 150 + ["positive"] * 150
        frame = pl.DataFrame(
            {"text": texts_of(300, seed, labels), "label": labels, "rating": [1] * 150 + [9] * 150}
        )
        frame.write_parquet(home / f"imdb_{part}.parquet")
    stars = np.repeat([1, 2, 3, 4, 5], [60, 40, 50, 70, 180])
    labels = ["negative" if star < 3 else "positive" for star in stars]
    pl.DataFrame({"text": texts_of(400, 2, labels), "stars": stars}).write_parquet(
        home / "yelp.parquet"
    )
    return home


# ---- criteria


def test_checks_against_their_bounds() -> None:
    assert Measurement("x", 1.0, 0.5, 1.0).passed
    assert not Measurement("x", 1.01, 0.5, 1.0).passed
    assert not Measurement("x", 0.4, 0.5).passed
    assert not Measurement("x", float("nan"), high=1.0).passed
    asked = [Measurement("x", 1, *bounds).bounds for bounds in ((0.5,), (None, 2), (1, 2), ())]
    assert asked == ["at least 0.5", "at most 2", "1 to 2", "stated"]
    assert Measurement("x", float("nan")).passed and not Measurement("x", 1.0).has_bounds, (
        "what is only stated decides nothing"
    )


INSIDE = st.integers(-199, 199).map(
    lambda k: k / 200 + 0.0013
)  # a point on an edge could be rounded to either side


@given(st.lists(st.tuples(INSIDE, st.floats(-5, 5)), min_size=5, max_size=60), st.booleans())
@settings(deadline=None, derandomize=True)
def test_bins_are_plain_means(points: list[tuple[float, float]], papers: bool) -> None:
    tokens = pl.DataFrame({"x": [a for a, _ in points], "value": [b for _, b in points]})
    theirs = PAPER["key-query"] if papers else None
    table = measures.bins(tokens, "x", theirs)
    assert table["types"].sum() == len(points)
    centres = PAPER["key-query"]["x"].to_numpy() if papers else np.linspace(-0.95, 0.95, 20)
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
            assert row["paper_value"] == PAPER["key-query"]["value"][k]


def test_the_papers_bins_are_twenty_of_its_own_range() -> None:
    x = PAPER["key-query"]["x"].to_numpy()
    assert len(x) == 20 and x[0] == pytest.approx(-1 + 1.84 / 38, abs=0.02)
    np.testing.assert_allclose(np.diff(x), 1.84 / 19, atol=0.011)
    tokens = pl.DataFrame({"x": [-1.02, -0.98, 0.92, 0.96], "value": [1.0] * 4})
    for beyond in (True, False):  # the outer edges are at -1 and 0.94
        assert (
            measures.bins(tokens, "x", PAPER["key-query"], beyond=beyond)["types"].to_list()
            == [1 + beyond] * 2
        )


def test_token_table_has_the_posterior_difference() -> None:
    counts = Counts.from_matrix([[2, 1, 0], [0, 1, 1]], [1, 0])
    table = measures.token_table(counts, np.arange(3.0), np.ones((3, 1)))
    assert table["posterior_difference"].to_list() == [1.0, 0.0, -1.0]
    assert table["score"].to_list() == [0.0, 1.0, 2.0] and table["value"].to_list() == [1.0] * 3


def table_of(
    value: Any, score: Any, types: int = 9, theirs: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Bins with given means; with `theirs`, in the paper's bins and with its numbers beside."""
    x = np.linspace(-0.95, 0.95, 20) if theirs is None else theirs["x"].to_numpy()
    beside = {} if theirs is None else {f"paper_{of}": theirs[of] for of in theirs.columns[1:]}
    return pl.DataFrame(
        {"x": x, "types": [types] * len(x), "few": [types < 3] * len(x), "value_mean": value(x), "value_sd": 1.0 + 0 * x,
         "score_mean": score(x), "score_sd": 2.0 + 0 * x, **beside}
    )  # fmt: skip


def test_shape_criteria_tell_the_shapes_apart() -> None:
    good = measures.shapes(table_of(np.tanh, np.abs), "here")
    assert [check.passed for check in good] == [True, True]
    assert [check.passed for check in measures.shapes(table_of(np.abs, np.tanh), "here")] == [
        False,
        False,
    ]
    assert not any(
        check.passed
        for check in measures.shapes(table_of(np.tanh, np.abs, types=2), "too few types")
    )
    assert not any(
        check.has_bounds
        for check in measures.shapes(table_of(np.abs, np.tanh), "here", judged=False)
    )
    assert measures.spread_and_range(table_of(np.tanh, np.abs), "score").within_bins == 2.0
    assert measures.spread_and_range(table_of(np.tanh, np.abs), "value")[1] == pytest.approx(
        2 * np.tanh(0.95)
    )
    spreads = [check.value for check in measures.spreads(table_of(np.tanh, np.abs), "here")]
    assert spreads == pytest.approx([1.0, 1 / (2 * np.tanh(0.95)), 2.0, 2 / 0.9])


def test_papers_tables_pass_their_own_criteria() -> None:
    assert all(table.height == 20 for table in (PAPER["key-query"], PAPER["mlp"]))
    assert all(table.height == 19 for table in (PAPER["multi-class-2"], PAPER["multi-class-4"]))
    for table, of in (
        (PAPER["key-query"], "score"),
        (PAPER["key-query"], "value"),
        (PAPER["mlp"], "score"),
    ):
        ours = table_of(np.tanh, np.abs, theirs=table).with_columns(
            (-3 * table[of]).alias(f"{of}_mean")
        )
        beside, scale = measures.beside_the_paper(ours, of, "row")
        assert beside.value == pytest.approx(-1) and not beside.passed
        assert scale.value == pytest.approx(3) and scale.paper == 1 and not scale.has_bounds
        assert beside.low == pytest.approx(0.9 * (beside.ceiling or 0))
    a, b = PAPER["key-query"], PAPER["mlp"]
    assert measures.spearman(a["x"].abs(), a["score"]) > measures.MIN_SCORE_SPEARMAN
    assert measures.spearman(b["x"].abs(), b["score"]) > measures.MIN_SCORE_SPEARMAN
    assert measures.spearman(b["x"], b["value"]) < measures.spearman(a["x"], a["value"]), (
        "less monotone with an MLP layer"
    )
    assert (a["score"][0], a["score"].min(), b["value"][-1], b["score"].min()) == (
        15.47,
        -3.92,
        1.4,
        0.59,
    )


def test_ceilings_are_what_smooth_curves_reach() -> None:
    theirs = PAPER["multi-class-2"]
    x, y = theirs["x"].to_numpy(), theirs["value"].to_numpy()
    found = measures.attainable_correlations(x, y, "value")
    assert (
        found["line"]
        == pytest.approx(stats.pearsonr(x, y).statistic)
        == pytest.approx(0.902, abs=5e-4)
    )
    assert (
        found["sign"]
        == pytest.approx(np.corrcoef(np.sign(x), y)[0, 1])
        == pytest.approx(0.943, abs=5e-4)
    )
    steepest = max(np.corrcoef(np.tanh(k * x), y)[0, 1] for k in np.linspace(1, 1000, 3000))
    assert steepest - 1e-3 < found["tanh"] <= steepest + 1e-3 < 0.96
    grid = np.linspace(-1, 1, 21)
    assert (
        measures.attainable_correlations(grid, 7 - 2 * np.abs(grid) ** 2, "score")["|x − c|^γ"] < 0
    ), "an inverted V has no ceiling above"
    assert measures.attainable_correlations(grid, 3 * np.abs(grid) ** 2 - 1, "score")[
        "|x − c|^γ"
    ] == pytest.approx(1, abs=1e-3)


@pytest.mark.slow
def test_rank_under_noise_is_one_without_noise_and_falls_with_it() -> None:
    quiet = table_of(np.tanh, np.abs, types=50).with_columns(value_sd=pl.lit(1e-9))
    quiet = quiet.with_columns(
        types=pl.when(pl.col("x").abs() < 0.1).then(60).otherwise(pl.col("types"))
    )
    assert paper.rank_under_noise(quiet) == (pytest.approx(1), pytest.approx(1))
    low, middle = paper.rank_under_noise(quiet.with_columns(value_sd=pl.lit(3.0)))
    assert 0.5 < low < middle < 0.98
    rng, x = np.random.default_rng(9), quiet["x"].to_numpy()
    error = (
        rng.standard_normal((2000, 20)) * 3 * np.sqrt(50 / 49) / np.sqrt(quiet["types"].to_numpy())
    )
    assert np.median(
        [stats.spearmanr(x, np.tanh(x) + e).statistic for e in error]
    ) == pytest.approx(middle, abs=0.02)
    assert np.isnan(paper.rank_under_noise(table_of(np.tanh, np.abs, types=2))[0])


def test_multi_class_bins_are_relative_to_the_largest_importance() -> None:
    relative = paper.relative_importance(np.array([-0.5, 0.0, 2.0, 4.0]))
    assert relative.tolist() == [-1.0, 0.0, 0.5, 1.0]
    counts = Counts.from_matrix(
        np.eye(4)[[0, 1, 2, 3, 0, 1, 2, 3]], [0, 1, 2, 3, 0, 1, 2, 2], classes=list("abcd")
    )
    tokens = paper.importance_table(counts, 2, np.arange(4.0), "relative")
    table = paper.importance_bins(tokens, PAPER["multi-class-2"], "relative")
    assert tokens["importance"].max() == 1 and table["x"].max() == pytest.approx(1)
    assert table["paper_value"][-1] == PAPER["multi-class-2"]["value"][-1]
    assert table.row(-1, named=True)["value_mean"] == 1.0, (
        "type 1 is the one of class b, the second"
    )


def test_the_sign_of_mlp_values_follows_our_own_types() -> None:
    tokens = pl.DataFrame({"posterior_difference": [-1.0, 0.0, 1.0], "value": [3.0, 1.0, 0.0]})
    assert paper.with_sign(tokens)["value"].to_list() == [-3.0, -1.0, 0.0]
    assert paper.with_sign(paper.with_sign(tokens)).equals(paper.with_sign(tokens))


def test_an_equal_correlation_is_not_a_lower_one() -> None:
    order = np.arange(20.0)
    swapped = measures.spearman(order, np.r_[1.0, 0.0, order[2:]])
    assert paper.less_monotone(-swapped, 1.0).passed and paper.less_monotone(0.5, -0.6).passed
    assert not paper.less_monotone(1.0, 1.0).passed and not paper.less_monotone(-0.7, 0.6).passed


def test_spearman_against_ranks_by_hand() -> None:
    x, y = np.array([3.0, 1, 2, 4]), np.array([1.0, 2, 3, 9])
    assert measures.spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic)
    assert np.isnan(measures.spearman([1, 1, 1], [1, 2, 3])) and np.isnan(
        measures.spearman([1, 2], [1, 2])
    )


# ---- data


def test_imdb_parts_are_balanced_and_apart(folder: Path) -> None:
    split = Data(folder).imdb(types=16, seed=3)
    assert [part.n_documents for part in split] == [270, 30, 300]
    assert all(abs(np.diff(part.class_sizes)[0]) <= 2 for part in split)
    assert split[0].n_types == 16
    every = Data(folder).imdb(types=10_000)
    assert every[0].n_types == 18, "only types seen in training"
    kept = every[0].matrix[:, [t in split[0].tokens for t in every[0].tokens]]
    assert kept.sum() >= split[0].matrix.sum() - 1e-9, "the most frequent types are the ones kept"
    first = Data(folder).imdb(types=16, documents=100, seed=3)
    assert [part.n_documents for part in first] == [90, 10, 100]
    assert abs(first[2].rows(np.arange(40)).labels.mean() - 0.5) < 0.05, (
        "the first documents are a sample"
    )


def test_yelp_classes(folder: Path) -> None:
    two, four = Data(folder).yelp(types=30), Data(folder).yelp(types=30, groups="joined 2-3")
    assert sum(part.n_documents for part in two) == 200 and two[0].classes == (
        "negative",
        "positive",
    )
    assert sum(part.n_documents for part in four) == 4 * 60 and four[0].n_classes == 4
    total = sum(part.class_sizes for part in four)
    assert total.tolist() == [60] * 4
    without = Data(folder).yelp(types=30, groups="without 3")
    assert without[0].classes == ("1 star", "2 stars", "4 stars", "5 stars")
    assert sum(part.n_documents for part in without) == 4 * 40
    assert Data(folder, limit=100).yelp(types=30)[0].n_documents == 72


def test_counts_of_a_split_are_those_of_the_texts(folder: Path) -> None:
    split = Data(folder).imdb(types=10_000, seed=1)
    texts = pl.read_parquet(folder / "imdb_train.parquet")["text"].to_list()
    ours = sorted(
        map(tuple, np.vstack([split[0].matrix.toarray(), split[1].matrix.toarray()]).tolist())
    )
    tokens = split[0].tokens.tolist()
    assert ours == sorted(
        tuple(float(text.split().count(token)) for token in tokens) for text in texts
    )


def test_missing_data_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no data folder is named" in Data(None).missing("imdb") and "--data" in Data(
        None
    ).missing("imdb")
    assert "there is no imdb_train.parquet in" in Data(tmp_path).missing("imdb")
    monkeypatch.delenv("TOKENSIEVE_DATA", raising=False)
    assert ReproduceSettings().data_folder is None
    monkeypatch.setenv("TOKENSIEVE_DATA", str(tmp_path))
    assert ReproduceSettings().data_folder == tmp_path
    with pytest.raises(InputError, match="there is no data folder"):
        ReproduceSettings(data=tmp_path / "none")


# ---- the registry


def test_registry_is_the_designs_table() -> None:
    ids = "two-layer synthetic one-layer key-query mlp multi-class frozen one-step-only diagnosis dimension beyond"
    assert [experiment.id for experiment in select_experiments()] == ids.split()
    deep_names = {"optimizer", "scaled", "residual", "start_std", "start_seed", "data_seed"}
    for experiment in select_experiments():
        assert experiment.claim and experiment.paper and experiment.criterion
        assert set(experiment.settings) == set(experiment.seconds) == {"quick", "paper"}
        json.dumps(experiment.settings)
        assert experiment.sees and all(len(note) < 500 for note in experiment.notes)
        names = [reading.name for reading in experiment.readings]
        assert len(set(names)) == len(names) and not {"all", "default"} & set(names)
        for reading in experiment.readings:
            assert reading.why and (deep_names | set(experiment.settings["quick"])) >= set(
                reading.settings
            )
    assert sum(experiment.seconds["quick"] for experiment in select_experiments()) <= 300
    assert sum(experiment.seconds["paper"] for experiment in select_experiments()) <= 7200


def test_names_are_chosen_in_order_or_refused() -> None:
    assert [e.id for e in select_experiments(["mlp", "synthetic"])] == ["synthetic", "mlp"]
    assert len(select_experiments([])) == 11
    with pytest.raises(InputError, match="'one-leyer'; did you mean 'one-layer'"):
        select_experiments(["one-leyer"])
    with pytest.raises(InputError, match="available: two-layer, synthetic"):
        select_experiments(["zzz"])


def test_pairs_are_products_of_counts() -> None:
    rng = np.random.default_rng(0)
    dense = rng.integers(0, 3, (7, 4))
    counts = Counts.from_matrix(dense, [0, 1] * 3 + [0], tokens=["a", "b", "c", "d"])
    paired = asked.with_pairs(counts)
    assert paired.n_types == 4 + 6 and np.array_equal(paired.matrix.toarray()[:, :4], dense)
    names = paired.tokens.tolist()
    for i in range(4):
        for j in range(i):
            np.testing.assert_array_equal(
                paired.matrix.toarray()[:, names.index(f"{'abcd'[j]} {'abcd'[i]}")],
                dense[:, i] * dense[:, j],
            )


def test_no_linear_sign_gets_four_combinations() -> None:
    """The ceilings of xor and negation by brute force over signs of linear functions of two bits."""
    rng = np.random.default_rng(0)
    ab = np.array(
        [[1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1]]
    )  # one of two tokens of each of two groups
    negated = np.array([[1, 0, 0], [0, 1, 0], [1, 0, 1], [0, 1, 1]])  # good, bad, negator
    weights = rng.standard_normal((20_000, 4))
    xor = ((ab @ weights.T > 0) == (np.array([1, 0, 0, 1])[:, None] > 0)).mean(axis=0).max()
    share = np.array([3, 3, 1, 1]) / 8
    right = (negated @ weights[:, :3].T > 0) == (np.array([1, 0, 0, 1])[:, None] > 0)
    assert (
        xor == asked.LINEAR_CEILING["xor"]
        and (share @ right).max() == asked.LINEAR_CEILING["negation"]
    )


def test_frozen_takes_the_nearer_data_set() -> None:
    rows = [
        {"data": data, "embeddings": kind, "when": when, "test_accuracy": a, "test_loss": loss, "train_accuracy": a + 0.1,
         "train_loss": loss / 2}
        for data, kind, when, a, loss in (
            ("A", "frozen", "best", 0.5, 0.9), ("A", "trained", "best", 0.8, 0.5),
            ("B", "frozen", "best", 0.77, 0.58), ("B", "trained", "best", 0.87, 0.22),
            ("A", "frozen", "test loss nearest to 0.6", 0.6, 0.65), ("B", "frozen", "test loss nearest to 0.6", 0.73, 0.61),
        )
    ]  # fmt: skip
    test = asked.nearer_data_set(pl.DataFrame(rows), "test")
    assert [check.value for check in test[:4]] == [0.77, 0.58, 0.87, 0.22]
    assert test[4].value == pytest.approx(0.1) and not test[0].passed
    training = asked.nearer_data_set(pl.DataFrame(rows), "training")
    assert [check.value for check in training[:4]] == [0.73, 0.61, 0.97, 0.11]
    assert training[4].value == pytest.approx(0.14) and all(check.passed for check in training)
    stopped = pl.DataFrame(
        [
            row
            | {"when": row["when"].replace("test loss nearest to 0.6", "nearest to 72% and 0.6")}
            for row in rows
        ]
    )
    assert asked.nearer_data_set(stopped, "training, stopped") == training
    both = [
        row | {"when": row["when"].replace("best", "training nearest to 95% and 0.1")}
        for row in stopped.to_dicts()
        if row["embeddings"] == "trained"
    ]
    assert (
        asked.nearer_data_set(
            pl.concat([stopped.filter(embeddings="frozen"), pl.DataFrame(both)]),
            "training, both stopped",
        )
        == training
    )
    near = pl.DataFrame(
        {"test_accuracy": [None, 0.68, 0.70, 0.76], "test_loss": [None, 0.6, 0.57, 0.55]}
    )
    assert (
        near.select(
            asked.distance_from_paper("test", asked.PAPER_FIGURES["frozen"]).arg_min()
        ).item()
        == 2
    )
