"""Tables, pictures, report and page of a verification: the right numbers, and nothing of the data taken for markup."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from pages import HOSTILE, Page
from tokensieve.report.blocks import Picture, walk
from tokensieve.report.html import page
from tokensieve.report.pictures import specification
from tokensieve.text.counts import Counts
from tokensieve.theory.generators import GENERATED, single_token
from tokensieve.theory.settings import VerifySettings
from tokensieve.theory.verify import Verification, verify

PICTURES = ("selected", "alignment", "norm", "angle", "gaps", "score-before", "score-after")


def verified(counts: Counts, name: str = "some documents", **options: object) -> Verification:
    found = verify(counts, VerifySettings(**options))  # type: ignore[arg-type]
    return replace(found, name=name, rows=np.arange(counts.n_documents) + 101, notes=["a note"])


def table(found: Verification, name: str) -> pl.DataFrame:
    content = found.files()[f"{name}.csv"]
    assert isinstance(content, bytes)
    return pl.read_csv(content, infer_schema_length=None)


def pictures_of(found: Verification) -> list[Picture]:
    return [block for block in walk(found.report().blocks) if isinstance(block, Picture)]


@pytest.fixture(scope="module")
def exact() -> Verification:
    return verified(single_token(60, 24, 5, 6, seed=2)[0], d=256, max_norm=500.0, seed=3)


@pytest.fixture(scope="module")
def finite() -> Verification:
    counts = Counts.from_matrix([[1, 1, 0]] * 5 + [[0, 1, 1]] * 5, [1, 1, 1, 0, 0, 1, 0, 0, 0, 1])
    return verified(counts, d=8, eta=20.0, seed=5)


@pytest.fixture(scope="module")
def hostile() -> Verification:
    rng = np.random.default_rng(0)
    matrix, tokens = rng.integers(0, 3, (40, len(HOSTILE))), HOSTILE
    counts = Counts.from_matrix(
        matrix, rng.integers(0, 2, 40).tolist(), (HOSTILE[0], HOSTILE[1]), tokens
    )
    found = verified(counts, HOSTILE[1], d=32, max_norm=50.0, max_steps=60)
    return replace(found, notes=HOSTILE)


def test_token_table_against_direct_sums(exact: Verification) -> None:
    tokens, counts, found = table(exact, "tokens"), exact.counts, exact
    dense = counts.matrix.toarray()
    assert tokens["documents"].to_list() == (dense > 0).sum(axis=0).tolist()
    alpha = (counts.signs / counts.lengths) @ dense / counts.n_documents
    np.testing.assert_allclose(tokens["alpha"], alpha, atol=1e-15)
    moved = (found.embeddings - found.step.start.E) @ found.step.start.v
    np.testing.assert_allclose(tokens["alignment"], moved, atol=1e-9)
    np.testing.assert_allclose(
        tokens["score_before"], found.embeddings @ found.step.start.p, atol=1e-9
    )
    np.testing.assert_allclose(tokens["value"], found.embeddings @ found.step.start.v, atol=1e-12)
    u = tokens["score_after"].to_numpy()
    chosen = [int(np.argmax(np.where(row > 0, u, -np.inf))) for row in dense]
    assert tokens["selected_in"].to_list() == np.bincount(chosen, minlength=counts.n_types).tolist()
    kinds = tokens.group_by(pl.col("token").str.split("_").list.first(), "category").len()
    assert set(kinds.iter_rows()) == {
        ("positive", "completely positive", 3), ("negative", "completely negative", 3), ("irrelevant", "irrelevant", 18),
    }  # fmt: skip


def test_curve_and_support_agree_with_the_certificate(exact: Verification) -> None:
    curve, support, found = table(exact, "flow"), table(exact, "support"), exact
    assert found.margin is not None and found.agreement is not None
    assert curve["log_time"].null_count() == 1 and curve["log_time"][0] is None
    assert curve["angle"][-1] == pytest.approx(found.agreement[0])
    np.testing.assert_allclose(np.cos(curve["angle"]), curve["cosine"], atol=1e-9)
    place = {token: i for i, token in enumerate(exact.counts.tokens)}
    pairs = [(place[s], place[r]) for s, r in support.select("selected", "other").iter_rows()]
    E = found.embeddings
    rebuilt = sum(m * (E[s] - E[r]) for m, (s, r) in zip(support["multiplier"], pairs, strict=True))
    np.testing.assert_allclose(rebuilt, found.margin.p, atol=1e-8)
    assert support["multiplier"].is_sorted(descending=True)


def test_without_a_direction_its_columns_are_missing(finite: Verification) -> None:
    assert table(finite, "flow")["angle"].null_count() == table(finite, "flow").height
    assert table(finite, "support").is_empty() and table(finite, "support").columns == [
        "selected",
        "other",
        "multiplier",
    ]
    assert {picture.name for picture in pictures_of(finite)} == set(PICTURES) - {"angle", "gaps"}
    text = Page(page(finite.report(), {})).text
    assert "the max-margin statement does not apply" in text and "settles at fixed weights" in text


def test_pictures_draw_what_the_tables_hold(exact: Verification) -> None:
    found = {picture.name: specification(picture)["datasets"] for picture in pictures_of(exact)}
    assert tuple(found) == PICTURES
    eta, tokens = exact.step.eta, table(exact, "tokens")
    for point in found["alignment"]["line"]:
        assert point["y"] == pytest.approx(eta / 2 * point["x"])
    drawn = sorted((row["x"], row["y"]) for row in found["alignment"]["points"])
    assert drawn == sorted(tokens.select("alpha", "alignment").iter_rows())
    curve = table(exact, "flow")
    assert [row["y"] for row in found["norm"]["curve"]] == curve["norm"].to_list()[1:]
    near, far = found["angle"]["fit"]
    assert exact.agreement is not None
    assert np.log(far["y"] / near["y"]) / np.log(far["x"] / near["x"]) == pytest.approx(
        exact.agreement[1]
    )
    assert far["y"] == pytest.approx(exact.agreement[0])
    assert sum(bar["chosen"] for bar in found["selected"]["bars"]) == exact.counts.n_documents
    written = {row["text"] for row in found["score-after"]["names"]}
    assert "18 irrelevant types" in written and len(written) >= 3  # named together


def test_pictures_and_settings_name_only_what_they_show(exact: Verification) -> None:
    """Legends named kinds without a mark; the settings had "tolerance 0.00" and options that decided nothing."""
    written = {picture.name: json.dumps(specification(picture)) for picture in pictures_of(exact)}
    assert '["tight"]' in written["gaps"] and '"completely positive"' in written["alignment"]
    assert '"negative"' not in written["alignment"] and '"negative"' not in written["selected"]
    about = exact.report().about
    assert about["tolerance"] == "0.0001" and not {"max_log_time", "types", "length"} & set(about)
    generated = replace(exact, name=GENERATED).report().about
    assert {"types", "length"} <= set(generated) and "min_documents" not in generated


def test_the_report_states_every_claim_and_hypothesis(exact: Verification) -> None:
    report = exact.report()
    assert report.verdict.startswith(
        "With longer training, attention ends up on one selected token"
    ) and report.verdict.endswith("All 5 claims hold.")
    unproved = replace(
        exact, limit=replace(exact.limit, proved="", unproved="it was not tried")
    ).report()
    assert "of each document (computed, not proved). All 5" in unproved.verdict
    text = Page(page(report, {})).text
    for claim in exact.claims:
        assert claim.name in text and claim.verdict in text
    for item in exact.assumptions:
        assert item.name in text and item.verdict in text


def test_hypotheses_that_fail_name_rows(hostile: Verification) -> None:
    item = next(
        x for x in hostile.assumptions if x.name.startswith("all documents have the same length")
    )
    rows = [101 + k for k in item.documents]
    assert f"rows {', '.join(map(str, rows))}" in Page(page(hostile.report(), {})).text
    assert (
        next(x for x in hostile.to_dict()["assumptions"] if x["name"] == item.name)["rows"] == rows
    )


def test_hostile_text_stays_text(hostile: Verification) -> None:
    found = Page(page(hostile.report(), {}))
    assert not found.open and "{{7*7}}" in found.text
    assert not {"iframe", "object", "link", "base"} & {tag for tag, _ in found.elements}
    assert "'=cmd()" in table(hostile, "tokens")["token"].to_list()


@pytest.mark.parametrize("which", ["exact", "finite", "hostile"])
def test_summary_is_strict_json_with_the_agreed_keys(
    which: str, request: pytest.FixtureRequest
) -> None:
    found: Verification = request.getfixturevalue(which)
    summary = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert set(summary["one_step"]) >= {
        "slope",
        "expected_slope",
        "r2",
        "relative_remainder",
        "bound",
    }
    assert set(summary["flow"]) >= {"norm", "log_time", "cosine", "angle", "important_selected"}
    assert set(summary["margin"]) >= {
        "status",
        "duality_gap",
        "kkt_residual",
        "smallest_margin",
        "support_pairs",
    }
    assert all(set(item) >= {"name", "holds", "detail", "rows"} for item in summary["assumptions"])
    assert set(summary["limit"]) >= {
        "verdict",
        "reason",
        "dimension_v",
        "one_sided_selected",
        "finite_gaps",
    }
    assert summary["source"] == found.name


@pytest.mark.slow
def test_the_first_screen_states_the_limit_and_how_much_of_it_is_proved(
    exact: Verification, finite: Verification
) -> None:
    for found in (exact, finite):
        for proved, words in (("from this point on", "Proved"), ("", "not proved")):
            limit = replace(found.limit, proved=proved)
            html = page(replace(found, limit=limit).report())
            assert words in html
            assert ("p̂ log t" in html) == (limit.direction is not None)
