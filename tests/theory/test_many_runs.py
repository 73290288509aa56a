"""Many runs through joblib: the same results in one process, in several, on a Dask cluster, and where only lists come back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from joblib.parallel import ThreadingBackend
from sklearn.model_selection import GridSearchCV

from theory_docs.sweep import Case, Sweep, grid, run_sweep
from tokensieve.auditing.demo import demo_reviews
from tokensieve.model.classifier import AttentionClassifier

OPTIONS = {"random_state": range(2), "value_rate": [0.1, 0.2]}
DASK = pytest.mark.filterwarnings("default")  # of Dask and its event loop


class Lists(ThreadingBackend):  # type: ignore[misc]
    """A backend that returns all results at once, as Ray's does."""

    supports_return_generator = False


@pytest.fixture
def lists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(joblib.parallel.BACKENDS, "lists", Lists)


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    options = {
        "n_workers": 2,
        "threads_per_worker": 1,
        "dashboard_address": None,
        "memory_limit": 0,
    }
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield client


def small_cases() -> list[Case]:
    sizes = {
        "n": [40],
        "n_types": [20],
        "length": [4],
        "n_relevant": [6],
        "d": [64],
        "max_norm": [200.0],
    }
    return grid(sizes | {"seed": [0, 1], "eta": [None, 8.0]})


def rows(sweep: Sweep) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "seconds"} for row in sweep.rows]


def searched(backend: str, jobs: int, **options: Any) -> dict[str, Any]:
    reviews = demo_reviews(60)
    search = GridSearchCV(
        AttentionClassifier(min_documents=2, batch_size=8), OPTIONS, cv=3, scoring="neg_log_loss"
    )
    with joblib.parallel_config(backend=backend, n_jobs=jobs, **options):
        search.fit(reviews.texts.to_list(), np.where(reviews.labels > 0, "good", "bad"))
    return {name: value for name, value in search.cv_results_.items() if not name.endswith("_time")}


def same_search(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found.keys() == expected.keys() and found["params"] == expected["params"]
    scores = [name for name in expected if "test_score" in name]
    assert len(scores) == 6  # three folds, mean, spread and rank
    for name in scores:
        assert found[name].tobytes() == expected[name].tobytes(), name


@pytest.mark.slow
def test_a_grid_search_in_threads_gives_the_scores_of_one_process() -> None:
    alone = searched("sequential", 1)
    same_search(searched("threading", 2), alone)
    assert len(np.unique(alone["mean_test_score"])) == len(alone["params"]) == 4
    assert alone["mean_test_score"].max() > np.log(0.5)


@pytest.mark.slow
def test_a_grid_search_in_processes_gives_the_scores_of_one_process() -> None:
    same_search(searched("loky", 2), searched("sequential", 1))


@DASK
@pytest.mark.slow
def test_a_grid_search_on_a_cluster_gives_the_scores_of_one_process(client: Any) -> None:
    before = done(client)
    there = searched("dask", -1, wait_for_workers_timeout=30)
    assert done(client) > before
    same_search(there, searched("sequential", 1))


@pytest.mark.slow
@pytest.mark.usefixtures("lists")
def test_a_sweep_runs_where_results_come_all_at_once(tmp_path: Path) -> None:
    shares: list[float] = []
    alone = run_sweep(small_cases(), tmp_path / "alone")
    with joblib.parallel_config(backend="lists", n_jobs=2):
        listed = run_sweep(
            small_cases(), tmp_path / "lists", progress=lambda _, share: shares.append(share)
        )
    assert rows(listed) == rows(alone) and "failed" not in alone.outcomes
    assert shares == [0.25, 0.5, 0.75, 1.0]


@DASK
@pytest.mark.slow
def test_a_sweep_runs_on_a_cluster_with_the_workers_of_the_configuration(
    client: Any, tmp_path: Path
) -> None:
    alone = run_sweep(small_cases(), tmp_path / "alone")
    for name, jobs in (("configured", None), ("told", -1)):
        before = done(client)
        with joblib.parallel_config(backend="dask", n_jobs=-1, wait_for_workers_timeout=30):
            there = run_sweep(small_cases(), tmp_path / name, jobs=jobs)
        assert done(client) > before
        assert there.outcomes == alone.outcomes and "failed" not in alone.outcomes
        assert rows(there) == rows(alone)


def done(client: Any) -> int:
    """Steps that the scheduler has taken: they grow while work is on the cluster."""
    return int(client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.transition_counter))
