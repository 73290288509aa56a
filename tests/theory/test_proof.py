"""The proof that the flow stays near its limit from the last computed point on."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
from test_faces import contradicted

from tokensieve.theory.flow.landscape import Landscape
from tokensieve.theory.limit.inequality import Basin, Inequality
from tokensieve.theory.limit.proof import Attempt, prove, with_point
from tokensieve.theory.settings import VerifySettings
from tokensieve.theory.verify import Verification, verify


@pytest.fixture(scope="module")
def exact() -> Verification:
    return verify(
        None, VerifySettings(documents=40, types=20, relevant=6, length=4, d=64, max_norm=4000.0)
    )


def test_the_limit_is_proved_where_the_hypotheses_of_theorem_4_3_hold(exact: Verification) -> None:
    limit = exact.limit
    assert limit.grade == "proved from this point on" and limit.unproved == ""
    figures = json.loads(exact.files()["summary.json"])["limit"]  # type: ignore[arg-type]
    assert figures["grade"] == limit.grade and figures["proof"]["left"] < figures["proof"]["right"]
    assert json.loads(exact.files()["certificate.json"])["grade"] == limit.grade  # type: ignore[arg-type]


def test_what_is_proved_of_an_earlier_point_is_true_of_all_later_ones(exact: Verification) -> None:
    """|R| < r from there on, so that no point is further than 2 r from where the line through that one leads."""
    flow, direction = exact.flow, exact.limit.direction
    row = int(np.searchsorted(flow.log_time, 60.0))
    kept = {
        name: getattr(flow, name)[: row + 1]
        for name in ("coordinates", "arc", "log_time", "loss", "log_gradient")
    }
    early = prove(
        replace(exact.limit, flow=replace(flow, **kept)),
        exact.counts,
        exact.embeddings,
        exact.values,
    )
    assert early.grade == "proved from this point on" and direction is not None
    moved = [
        flow.at(k) - flow.at(row) - direction * (flow.log_time[k] - flow.log_time[row])
        for k in range(row, len(flow.arc))
    ]
    assert np.linalg.norm(moved, axis=1).max() < 2 * early.proof["radius"]


def test_a_point_far_from_the_line_is_not_proved_and_the_inequality_says_by_how_much(
    exact: Verification,
) -> None:
    flow = exact.flow
    noise = np.random.default_rng(0).standard_normal(flow.coordinates.shape[1])
    away = replace(flow, coordinates=flow.coordinates + 1e4 * noise)
    far = prove(replace(exact.limit, flow=away), exact.counts, exact.embeddings, exact.values)
    assert far.grade == "proved attractor"
    assert "the inequality fails" in far.unproved or "too much weight" in far.unproved


def test_the_search_takes_nothing_for_proved_within_a_wide_radius_that_the_checker_refuses(
    exact: Verification,
) -> None:
    """An earlier search cut e^{|D| r} at e^100."""
    limit = exact.limit
    assert limit.face is not None and limit.finite is not None and limit.balance is not None
    basis = limit.flow.basis
    E = exact.embeddings if basis is None else exact.embeddings @ basis
    land = Landscape(exact.counts, E, exact.values)
    basin = Basin.of(land, limit.face, limit.finite)
    inequality = Inequality(land, limit.face, limit.finite, limit.balance, basin)
    outcomes = set()
    for log_time, radius in itertools.product((50.0, 200.0, 1000.0), (10.0, 40.0, 100.0)):
        place = inequality.on_line(log_time)
        found = Attempt(place, radius, inequality.left(place, radius), radius**2 / 2)
        is_proved = not with_point(limit, found.arrays(limit.flow)).unproved
        assert is_proved or not found.holds
        outcomes.add(found.holds)
    assert outcomes == {True, False}


def test_a_value_of_another_document_breaks_the_proof(exact: Verification) -> None:
    """With the values of selected and unselected tokens exchanged, tight pairs pull."""
    wrong = prove(exact.limit, exact.counts, exact.embeddings, -exact.values)
    assert wrong.grade == "numerically certified attractor"


def test_a_limit_with_finite_score_gaps_is_proved() -> None:
    found = verify(contradicted()[0], VerifySettings(d=64, eta=400.0))
    assert found.limit.face is not None
    assert found.limit.finite is not None
    assert found.limit.face.dimension >= 1
    assert found.limit.grade == "proved from this point on"
    figures = found.limit.proof
    assert 0 < figures["left"] < figures["right"]
    assert 0 < figures["curvature"] <= found.limit.finite.curvature


def test_a_curve_that_is_too_short_has_no_grade() -> None:
    short = verify(contradicted()[0], VerifySettings(d=64, eta=400.0, max_steps=3))
    assert short.limit.grade == "not settled"
    assert json.loads(short.files()["summary.json"])["limit"]["grade"] == "not settled"  # type: ignore[arg-type]
