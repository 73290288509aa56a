"""Tables, pictures and page of a verification: the right numbers, and nothing of the data taken for markup."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from calls import undrawn
from pages import HOSTILE, Page, check_specifications
from tokensieve.files import csv_table
from tokensieve.report.charts import drawn
from tokensieve.report.theory import PICTURES, draw, render_theory
from tokensieve.text.counts import Counts
from tokensieve.theory.curve import FlowSettings
from tokensieve.theory.generators import single_token
from tokensieve.theory.study import Study
from tokensieve.theory.verify import verify


def study_of(counts: Counts, name: str = "some documents", **options: object) -> Study:
    found = verify(counts, **options)  # type: ignore[arg-type]
    rows = np.arange(counts.n_documents) + 101
    return Study(name, counts, rows, found, ["a note"], {"d": 64}, 3, "9.9", {"total": 1.5})


@pytest.fixture(scope="module")
def exact() -> Study:
    return study_of(single_token(60, 24, 5, 6, seed=2).counts, d=256, settings=FlowSettings(max_norm=500.0))


@pytest.fixture(scope="module")
def finite() -> Study:
    counts = Counts.from_matrix([[1, 1, 0]] * 5 + [[0, 1, 1]] * 5, [1, 1, 1, 0, 0, 1, 0, 0, 0, 1])
    return study_of(counts, d=8, eta=20.0, seed=5)


@pytest.fixture(scope="module")
def hostile() -> Study:
    rng = np.random.default_rng(0)
    matrix, tokens = rng.integers(0, 3, (40, len(HOSTILE))), HOSTILE
    counts = Counts.from_matrix(matrix, rng.integers(0, 2, 40).tolist(), (HOSTILE[0], HOSTILE[1]), tokens)
    study = study_of(counts, HOSTILE[1], d=32, settings=FlowSettings(max_norm=50.0, max_steps=60))
    return replace(study, notes=HOSTILE, settings=dict.fromkeys(HOSTILE, HOSTILE[0]))


def test_token_table_against_direct_sums(exact: Study) -> None:
    table, counts, found = exact.tokens(), exact.counts, exact.found
    dense = counts.matrix.toarray()
    assert table["documents"].to_list() == (dense > 0).sum(axis=0).tolist()
    alpha = (counts.signs / counts.lengths) @ dense / counts.n_documents
    np.testing.assert_allclose(table["alpha"], alpha, atol=1e-15)
    moved = (found.embeddings - found.step.start.E) @ found.step.start.v
    np.testing.assert_allclose(table["alignment"], moved, atol=1e-9)
    np.testing.assert_allclose(table["score_before"], found.embeddings @ found.step.start.p, atol=1e-9)
    np.testing.assert_allclose(table["value"], found.embeddings @ found.step.start.v, atol=1e-12)
    u = table["score_after"].to_numpy()
    chosen = [int(np.argmax(np.where(row > 0, u, -np.inf))) for row in dense]
    assert table["selected_in"].to_list() == np.bincount(chosen, minlength=counts.n_types).tolist()
    kinds = table.group_by(pl.col("token").str.split("_").list.first(), "category").len()
    assert set(kinds.iter_rows()) == {
        ("positive", "completely positive", 3), ("negative", "completely negative", 3), ("irrelevant", "irrelevant", 18),
    }  # fmt: skip


def test_curve_and_support_agree_with_the_certificate(exact: Study) -> None:
    curve, support, found = exact.curve(), exact.support(), exact.found
    assert found.margin is not None and found.agreement is not None
    assert curve["log_time"].null_count() == 1 and curve["log_time"][0] is None
    assert curve["angle"][-1] == pytest.approx(found.agreement.angle)
    np.testing.assert_allclose(np.cos(curve["angle"]), curve["cosine"], atol=1e-9)
    place = {token: i for i, token in enumerate(exact.counts.tokens)}
    pairs = [(place[s], place[r]) for s, r in support.select("selected", "other").iter_rows()]
    E = found.embeddings
    rebuilt = sum(m * (E[s] - E[r]) for m, (s, r) in zip(support["multiplier"], pairs, strict=True))
    np.testing.assert_allclose(rebuilt, found.margin.p, atol=1e-8)
    assert support["multiplier"].is_sorted(descending=True)


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_without_a_direction_its_columns_are_missing(finite: Study) -> None:
    assert finite.curve()["angle"].null_count() == finite.curve().height
    assert finite.support().is_empty() and finite.support().columns == ["selected", "other", "multiplier"]
    assert {picture.name for picture in draw(finite)} == set(PICTURES) - {"angle", "gaps"}
    page = Page(render_theory(finite))
    assert "the max-margin statement does not apply" in page.text and "✗ fails" in page.text


@pytest.mark.slow
def test_pictures_draw_what_the_tables_hold(exact: Study) -> None:
    drawn = draw(exact)
    check_specifications(drawn)
    found = {picture.name: picture.spec["datasets"] for picture in drawn}
    assert tuple(found) == PICTURES
    eta, tokens = exact.found.step.eta, exact.tokens()
    for point in found["alignment"]["line"]:
        assert point["y"] == pytest.approx(eta / 2 * point["x"])
    drawn = sorted((row["x"], row["y"]) for row in found["alignment"]["points"])
    assert drawn == sorted(tokens.select("alpha", "alignment").iter_rows())
    curve = exact.curve()
    assert [row["y"] for row in found["norm"]["curve"]] == curve["norm"].to_list()[1:]
    shown, loss = [row["y"] for row in found["loss"]["curve"]], curve["loss"].to_list()[1:]
    assert shown == loss[: len(shown)]
    assert loss[0] - shown[-1] >= 0.999 * (loss[0] - loss[-1])
    near, far = found["angle"]["fit"]
    assert exact.found.agreement is not None
    assert np.log(far["y"] / near["y"]) / np.log(far["x"] / near["x"]) == pytest.approx(exact.found.agreement.exponent)
    assert far["y"] == pytest.approx(exact.found.agreement.angle)
    assert sum(bar["chosen"] for bar in found["selected"]["bars"]) == exact.counts.n_documents
    written = {row["text"] for row in found["score-after"]["names"]}
    assert "18 irrelevant types" in written  # named together
    for row in found["score-after"]["names"]:
        if row["text"] == "18 irrelevant types":
            irrelevant = tokens.filter(pl.col("category") == "irrelevant")
            assert irrelevant.height == 18 and row["y"] in irrelevant["score_after"]
            continue
        token = tokens.filter(pl.col("token") == row["text"])
        assert row["y"] == token["score_after"][0] and row["x"] == pytest.approx(token["alpha"][0], abs=1e-15)
    assert len(written) >= 3


@pytest.mark.slow
def test_picture_files(exact: Study) -> None:
    files = drawn(draw(exact), for_print=True)
    assert set(files) == {f"{name}.{kind}" for name in PICTURES for kind in ("svg", "png", "pdf", "csv")}
    begins = {"png": b"\x89PNG", "svg": b"<svg", "pdf": b"%PDF", "csv": b"part,"}
    assert all(content.startswith(begins[name[-3:]]) for name, content in files.items())
    assert all(b"<script" not in content for content in files.values())


def test_the_data_of_a_picture_are_what_it_draws(exact: Study) -> None:
    curve = exact.curve()
    table = next(picture for picture in draw(exact) if picture.name == "norm").data()
    assert table.filter(pl.col("part") == "curve")["y"].to_list() == curve["norm"].to_list()[1:]
    assert curve.height == table.height + 1


@pytest.mark.slow
def test_page_states_every_claim_and_hypothesis(exact: Study) -> None:
    html = render_theory(exact)
    page = Page(html)
    assert not page.open
    for claim in exact.found.claims:
        assert claim.name in page.text and claim.verdict in page.text
    for item in exact.found.assumptions:
        assert item.name in page.text and item.detail in page.text
    assert page.text.count("✓ holds") == len(exact.found.claims) + len(exact.found.assumptions)
    assert "All 5 claims hold; p diverges, Theorem 4.3" in page.text
    assert "Attention with Trained Embeddings Provably Selects Important Tokens" in page.text
    policy = [a["content"] for tag, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy == [
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    ]
    sources = [a["src"] or "" for tag, a in page.elements if tag == "img"]
    assert len(sources) == len(PICTURES) and all(s.startswith("data:image/svg+xml;base64,") for s in sources)
    assert not re.search(r"https?://", page.text)


@pytest.mark.usefixtures("undrawn")
def test_hypotheses_that_fail_name_rows_and_tokens(hostile: Study) -> None:
    page = Page(render_theory(hostile))
    item = next(x for x in hostile.found.assumptions if x.name.startswith("all documents have the same length"))
    rows = ", ".join(str(101 + k) for k in item.documents)
    assert f"rows {rows}" in page.text
    summary = hostile.to_dict()
    assert next(x for x in summary["assumptions"] if x["name"] == item.name)["rows"] == [
        101 + k for k in item.documents
    ]


@pytest.mark.slow
def test_hostile_text_stays_text(hostile: Study) -> None:
    html = render_theory(hostile)
    page = Page(html)
    assert not page.open
    assert not {"script", "iframe", "object", "link", "base"} & {tag for tag, _ in page.elements}
    assert HOSTILE[0] in page.text and "{{7*7}}" in page.text
    tame = replace(hostile, name="n", notes=["n"] * len(HOSTILE), settings={f"s{i}": "v" for i in range(len(HOSTILE))})
    names = [(tag, sorted(attributes)) for tag, attributes in page.elements]
    with undrawn():
        assert names == [(tag, sorted(attributes)) for tag, attributes in Page(render_theory(tame)).elements]
    assert all(
        not re.search(rb"<script|\x00", content) for name, content in drawn(draw(hostile)).items() if "svg" in name
    )
    table = pl.read_csv(io.BytesIO(csv_table(hostile.tokens().filter(pl.col("token") == "=cmd()"))))
    assert table["token"].to_list() == ["'=cmd()"]


@pytest.mark.parametrize("which", ["exact", "finite", "hostile"])
def test_summary_is_strict_json_with_the_agreed_keys(which: str, request: pytest.FixtureRequest) -> None:
    study: Study = request.getfixturevalue(which)
    summary = json.loads(json.dumps(study.to_dict(), allow_nan=False))
    assert set(summary["one_step"]) >= {"slope", "expected_slope", "r2", "relative_remainder", "bound"}
    assert set(summary["flow"]) >= {"norm", "log_time", "cosine", "angle", "important_selected"}
    assert set(summary["margin"]) >= {"status", "duality_gap", "kkt_residual", "smallest_margin", "support_pairs"}
    assert all(set(item) >= {"name", "holds", "detail", "rows"} for item in summary["assumptions"])
    assert summary["seed"] == 3 and summary["version"] == "9.9" and summary["source"] == study.name
