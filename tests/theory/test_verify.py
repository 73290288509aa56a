"""The whole chain: claims on exact data, honest verdicts elsewhere, and sweeps that resume."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from threadpoolctl import threadpool_limits

from theory_docs.sweep import Case, grid, run_case, run_sweep
from tokensieve.errors import InputError
from tokensieve.model.attention import gradient
from tokensieve.read.corpus import Corpus
from tokensieve.text.counts import Counts
from tokensieve.text.vocabulary import count_corpus
from tokensieve.theory.generators import independent_tokens, single_token
from tokensieve.theory.one_step import OneStep
from tokensieve.theory.settings import VerifySettings
from tokensieve.theory.verify import verify


def test_every_claim_holds_on_exact_data() -> None:
    counts, _ = single_token(100, 40, 6, 10, seed=1)
    stages: list[str] = []
    settings = VerifySettings(d=512, seed=1, max_norm=4000.0)
    found = verify(counts, settings, progress=lambda name, _: stages.append(name))
    assert [claim.holds for claim in found.claims] == [True] * 5
    assert all(item.holds for item in found.assumptions)
    assert found.flow.verdict == "diverges" and found.attended is not None
    assert found.attended.all_share == 1.0 and found.attended.important_documents == 100
    assert (
        found.margin is not None
        and found.margin.duality_gap <= 1e-8
        and found.margin.kkt_residual <= 1e-8
    )
    assert found.agreement is not None and found.agreement[0] < 0.01
    assert found.agreement[1] == pytest.approx(-1, abs=0.02)
    assert found.attended.limit_error < 1e-12
    assert list(dict.fromkeys(stages)) == [
        "counting",
        "one step",
        "flow",
        "faces",
        "selection",
        "assumptions",
        "done",
    ]
    assert (
        found.limit.fate == "diverges, Theorem 4.3"
        and found.limit.balance is not None
        and found.limit.balance.pulling == 0
    )
    assert found.agreement[0] * found.flow.norm[-1] == pytest.approx(
        found.limit.angle_constant, rel=0.01
    )
    figures = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert set(figures["one_step"]) >= {
        "slope",
        "expected_slope",
        "r2",
        "relative_remainder",
        "bound",
    }
    assert set(figures["flow"]) >= {"norm", "log_time", "cosine", "angle", "important_selected"}
    assert set(figures["margin"]) >= {
        "status",
        "duality_gap",
        "kkt_residual",
        "smallest_margin",
        "support_pairs",
    }
    assert set(figures["assumptions"][0]) >= {"name", "holds", "detail"}


def test_a_finite_limit_is_said_and_the_max_margin_statement_left_out() -> None:
    matrix = [[1, 1, 0]] * 5 + [[0, 1, 1]] * 5
    counts = Counts.from_matrix(matrix, [1, 1, 1, 0, 0, 1, 0, 0, 0, 1])
    found = verify(counts, VerifySettings(d=8, eta=20.0, seed=5))
    assert found.flow.verdict == "finite limit" and found.margin is None and found.agreement is None
    outcome = {claim.name.split(" (")[1]: claim for claim in found.claims}
    assert (
        outcome["Lemma 4.2)"].outcome == "hypothesis not met"
        and "converges" in outcome["Lemma 4.2)"].verdict
    )
    assert (
        outcome["Theorem 4.3)"].outcome == "hypothesis not met"
        and "does not apply" in outcome["Theorem 4.3)"].verdict
    )
    assert (
        found.limit.fate == "converges to a point"
        and found.limit.finite is not None
        and found.limit.finite.curvature > 0
    )
    assert (
        json.loads(json.dumps(found.to_dict(), allow_nan=False))["margin"]["status"]
        == "not applicable"
    )


def test_a_short_budget_is_undecided() -> None:
    found = verify(independent_tokens(60, 20, 8, 6)[0], VerifySettings(d=64, max_steps=3))
    assert [claim.outcome for claim in found.claims[1:]] == ["needs a longer run"] * 4
    assert found.attended is None and found.to_dict()["selection"] is None


def test_a_source_is_read_as_the_command_reads_it() -> None:
    texts, labels = (
        ["good film here", "bad film here", "good end", "bad end"] * 6,
        ["yes", "no"] * 12,
    )
    settings = VerifySettings(d=32, min_documents=1, max_steps=3, text="body", label="mark")
    expected = verify(
        Corpus.of(texts, [label == "yes" for label in labels], ("no", "yes")), settings
    )
    for source in (pl.DataFrame({"body": texts, "mark": labels}), {"body": texts, "mark": labels}):
        found = verify(source, settings)
        np.testing.assert_array_equal(
            found.counts.matrix.toarray(), expected.counts.matrix.toarray()
        )
        assert found.counts.classes == ("no", "yes")


def test_a_flow_kept_on_disk_is_resumed(tmp_path: Path) -> None:
    counts, _ = single_token(60, 24, 5, 6)
    path = tmp_path / "flow.safetensors"
    settings = VerifySettings(d=64, max_norm=500.0, resume=path)
    first = verify(counts, settings)
    assert path.exists()
    again = verify(counts, settings)
    np.testing.assert_array_equal(again.flow.coordinates, first.flow.coordinates)
    with pytest.raises(InputError, match="data, settings or"):
        verify(counts, replace(settings, eta=10.0))


def test_the_default_step_answers_documents_by_one() -> None:
    counts = single_token(200, 70, 8, 20)[0]
    eta = OneStep.default_size(counts)
    alpha = (counts.signs / counts.lengths) @ counts.matrix.toarray() / 200
    typical = np.mean(np.abs(counts.matrix.toarray() @ alpha / 8)) * eta / 2
    assert typical == pytest.approx(1.0)
    with pytest.raises(InputError, match="no signal"):
        OneStep.default_size(Counts.from_matrix([[1, 1], [1, 1]], [1, 0]))


def test_a_sweep_resumes_and_counts_failures(tmp_path: Path) -> None:
    small = {"n": [40], "n_types": [20], "length": [4], "n_relevant": [6], "max_norm": [200.0]}
    cases = [*grid(small | {"seed": [0, 1], "d": [64]}), Case(n=4, seed=5)]
    shares: list[float] = []
    first = run_sweep(cases[:1], tmp_path)
    whole = run_sweep(cases, tmp_path, progress=lambda _, share: shares.append(share))
    assert shares == [pytest.approx(2 / 3), 1.0]
    assert whole.rows[0] == first.rows[0]
    assert (
        whole.outcomes == {"diverges": 2, "failed": 1}
        and "cannot use all" in whole.rows[2]["error"]
    )
    assert [row["seed"] for row in whole.rows] == [0, 1, 5]
    assert len(list(tmp_path.glob("*.json"))) == 3


@pytest.mark.slow
def test_parallel_sweeps_give_the_same_rows(tmp_path: Path) -> None:
    cases = grid(
        {
            "n": [40],
            "n_types": [20],
            "length": [4],
            "n_relevant": [6],
            "max_norm": [200.0],
            "seed": [0, 1],
            "d": [64],
        }
    )
    alone = run_sweep(cases, tmp_path / "alone").rows
    together = run_sweep(cases, tmp_path / "together", jobs=2).rows
    for one, two in zip(alone, together, strict=True):
        assert one["angle"] == pytest.approx(two["angle"], rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["negation", "xor"])
def test_pair_labels_run_to_a_verdict(rule: str) -> None:
    row = run_case(
        Case(
            n=80,
            n_types=31,
            length=6,
            n_relevant=8,
            label_rule=rule,
            d=256,
            max_norm=500.0,
            max_steps=400,
        )
    )
    assert row["error"] is None and row["verdict"] in (
        "diverges",
        "finite limit",
        "undecided at the budget",
    )


@pytest.mark.slow
def test_the_flow_on_real_reviews_can_end_at_a_finite_point() -> None:
    """300 reviews in 8 dimensions: no direction separates their selections, and the gradient vanishes at a finite ‖p‖."""
    folder = Path(
        os.environ.get("TOKENSIEVE_DATA") or Path(__file__).parents[3] / "shared" / "data"
    )
    if not (folder / "imdb_train.parquet").exists():
        pytest.skip(f"no IMDB reviews in {folder}; set TOKENSIEVE_DATA")
    reviews = pl.read_parquet(folder / "imdb_train.parquet").sample(300, shuffle=True, seed=0)
    labels = (reviews["label"] == "positive").to_numpy().astype(np.int64)
    counts = count_corpus(
        Corpus.of(reviews["text"], labels, ("negative", "positive")), min_documents=20
    ).counts
    found = verify(counts, VerifySettings(d=8))
    assert found.flow.verdict == "finite limit" and found.flow.limit is not None
    assert (
        found.claims[-1].outcome == "hypothesis not met"
        and found.limit.fate == "converges to a point"
    )
    at_limit = gradient(counts, found.embeddings @ found.flow.limit, found.values)
    along = gradient(counts, found.embeddings @ found.flow.at(0), found.values)
    assert np.linalg.norm(found.embeddings.T @ at_limit.a) < 1e-9 * np.linalg.norm(
        found.embeddings.T @ along.a
    )


def test_the_number_of_threads_changes_no_bit() -> None:
    # With these sizes OpenBLAS splits the sums of E v among its threads.
    counts, runs = independent_tokens(300, 1500, 8, 6)[0], []
    for threads in (1, 2):
        with threadpool_limits(threads):
            runs.append(verify(counts, VerifySettings(d=512, max_steps=3)))
    assert np.array_equal(runs[0].embeddings, runs[1].embeddings)
    assert np.array_equal(runs[0].flow.coordinates, runs[1].flow.coordinates)
