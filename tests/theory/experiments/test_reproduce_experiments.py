"""Every experiment at toy size: it runs, measures what it says, and gives the same figures for the same seed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tokensieve.theory.experiments.bench import Bench
from tokensieve.theory.experiments.catalogue import select_experiments
from tokensieve.theory.experiments.data import Data
from tokensieve.theory.experiments.experiment import SeedRun
from tokensieve.theory.experiments.measures import SYMBOLS, spread_and_range

EXPERIMENTS = {one.id: one for one in select_experiments()}

D = {"d": 8, "steps": 30, "learning_rate": 0.05}
IMDB, YELP = {"imdb": {"types": 18}}, {"yelp": {"types": 18}}
DEEP = {"d": 8, "epochs": 3, "learning_rate": 0.05, "batch_size": 32, "test_documents": 100}
TOY: dict[str, dict[str, Any]] = {
    "synthetic": {**D, "documents": 400, "n_types": 60, "length": 20, "n_irrelevant": 20},
    "one-layer": {**D, **IMDB, **YELP},
    "two-layer": {**DEEP, **IMDB, **YELP},
    "key-query": {**DEEP, **IMDB},
    "mlp": {**DEEP, **IMDB},
    "multi-class": {**D, "yelp": {"types": 18, "groups": "joined 2-3"}, "step_d": 4096, "importance": "relative", "rank": "paper"},
    "frozen": {**D, **IMDB, **YELP, "larger_rate": 0.1, "figures": "test"},
    "one-step-only": {**D, **IMDB, "etas": [1.0, 100.0]},
    "diagnosis": {**D, **IMDB, "frozen_rate": 0.1, "frozen_steps": 30},
    "dimension": {**D, **IMDB, "dimensions": [8, 32, 128], "from": 32},
    "beyond": {**D, "documents": 200, "independent_documents": 200, "epochs": 3, "dimensions": [8], "least_dimension": 0,
               "n_types": 30, "length": 5, "n_relevant": 8},
}  # fmt: skip
MEASURED = {
    "one-layer": {
        "bins-imdb",
        "tokens-imdb",
        "trajectory-imdb",
        "bins-yelp",
        "tokens-yelp",
        "trajectory-yelp",
    },
    "mlp": {"bins", "bins-without", "tokens"},
    "multi-class": {"bins-class-2", "tokens-class-2", "bins-class-4", "tokens-class-4"},
    "frozen": {"accuracy", "curves"},
    "beyond": {"rules", "dimensions"},
}
WORDS = {"positive": ["good", "fine", "superb"], "negative": ["bad", "poor", "awful"]}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Data:
    home, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(0)
    plain = [f"word{k}" for k in range(12)]

    def review(label: str) -> str:
        mixed = WORDS["positive"] + WORDS["negative"]
        return " ".join(
            [*rng.choice(plain, 8), *rng.choice(WORDS[label], 2), *rng.choice(mixed, 1)]
        )

    labels = ["negative", "positive"] * 150
    for part in ("train", "test"):
        frame = pl.DataFrame({"text": [review(label) for label in labels], "label": labels})
        frame.write_parquet(home / f"imdb_{part}.parquet")
    stars = np.repeat([1, 2, 3, 4, 5], 60)
    texts = [review("negative" if star < 3 else "positive") + f" star{star}" for star in stars]
    pl.DataFrame({"text": texts, "stars": stars}).write_parquet(home / "yelp.parquet")
    return Data(home)


@pytest.fixture(scope="module")
def measured(data: Data, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], SeedRun]:
    """The finding of an experiment at seed 0, measured once."""

    @cache
    def measure(id: str) -> SeedRun:
        return run(id, data, tmp_path_factory.mktemp(id))

    return measure


def run(id: str, data: Data, folder: Path, seed: int = 0) -> SeedRun:
    if EXPERIMENTS[id].torch:
        pytest.importorskip("torch", reason="PyTorch is not installed").set_num_threads(1)
    shares: list[float] = []
    found = EXPERIMENTS[id].run(
        Bench(data, TOY[id], seed, lambda stage, share: shares.append(share), folder)
    )
    assert shares and all(0 <= share <= 1 + 1e-9 for share in shares)
    assert shares == sorted(shares), "progress never goes back"
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "id", [pytest.param(id, marks=pytest.mark.slow if id == "beyond" else ()) for id in TOY]
)
def test_runs_at_toy_size(id: str, measured: Callable[[str], SeedRun]) -> None:
    found = measured(id)
    assert found.measurements
    shown = [one.value for one in found.measurements if one.has_bounds or one.prominent]
    assert EXPERIMENTS[id].sees.format(*shown)
    names = {check.name for check in found.measurements}
    assert len(names) == len(found.measurements)
    assert set(found.tables) >= MEASURED.get(id, set())
    for name, table in found.tables.items():
        assert table.height, name
        if name.startswith("bins") and "tokens" + name.removeprefix("bins") in found.tables:
            tokens = found.tables["tokens" + name.removeprefix("bins")]
            assert table["types"].sum() == tokens.height == tokens["token"].n_unique()
            weighted = (table["types"] * table["value_mean"]).sum() / tokens.height
            assert weighted == pytest.approx(tokens["value"].mean(), abs=1e-9)


def test_same_seed_same_figures(
    data: Data, measured: Callable[[str], SeedRun], tmp_path: Path
) -> None:
    again, other = (run("diagnosis", data, tmp_path, seed) for seed in (0, 1))
    one = measured("diagnosis")
    assert repr(one.measurements) == repr(again.measurements)  # nan is no equal of itself
    assert one.tables["bins-trained"].equals(again.tables["bins-trained"])
    assert not one.tables["bins-trained"].equals(other.tables["bins-trained"])


def test_words_of_the_label_are_found(measured: Callable[[str], SeedRun]) -> None:
    for id in ("one-layer", "two-layer"):
        tokens = measured(id).tables["tokens-imdb"]
        value = dict(tokens.select("token", "value").iter_rows())
        assert min(value[word] for word in WORDS["positive"]) > max(
            value[word] for word in WORDS["negative"]
        )


def test_one_step_has_the_formulas_slope(measured: Callable[[str], SeedRun]) -> None:
    [slope] = [check for check in measured("multi-class").measurements if "slope" in check.name]
    assert slope.value == pytest.approx(1, abs=0.05)


def test_one_step_states_the_relative_spread_beside_the_absolute(
    measured: Callable[[str], SeedRun],
) -> None:
    found = measured("one-step-only")
    both = dict.fromkeys(("value", "score"), (found.tables["bins-full"], found.tables["bins"]))
    for of, (full, one) in both.items():
        (before, before_range), (after, after_range) = (
            spread_and_range(table, of) for table in (full, one)
        )
        falls, rises = before / after, after / after_range / (before / before_range)
        values = [check.value for check in found.measurements if SYMBOLS[of] in check.name]
        assert values == pytest.approx([falls, rises])
    stated = [check for check in found.measurements if not check.has_bounds]
    assert len(stated) == 2 and all("rises" in check.name and check.prominent for check in stated)


def test_frozen_rows_are_measured_on_test_documents(measured: Callable[[str], SeedRun]) -> None:
    table = measured("frozen").tables["accuracy"]
    kinds = {"frozen", "frozen, larger steps", "trained"}
    assert set(table["embeddings"]) == kinds and table.height == 2 * 3 * 5
    best = table.filter(pl.col("when") == "best")
    trained, frozen = (
        best.filter(pl.col("embeddings") == kind)["test_loss"].to_list()
        for kind in ("trained", "frozen")
    )
    assert all(a < b for a, b in zip(trained, frozen, strict=True)), (
        "training embeddings lowers the loss"
    )
