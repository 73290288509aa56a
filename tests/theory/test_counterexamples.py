"""Attempts to break the theorem: what the checker accepts is followed by an independent integrator in 200 bits.

Certificates are stated at early points of the curve, where unselected tokens still weigh, and then changed: the point
is moved, a label flipped, or a token repeated. The checker may refuse; what it accepts must be true.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from small_problems import KINDS, HighPrecision, Problem, problem
from tokensieve.text.counts import Counts
from tokensieve.theory.flow.solve import gradient_flow
from tokensieve.theory.limit import checker
from tokensieve.theory.limit.certify import FlowLimit
from tokensieve.theory.limit.proof import prove
from tokensieve.theory.settings import VerifySettings

FOLLOWED = 8.0  # how much log t the accepted point is followed
LIMITS: dict[tuple[str, int], FlowLimit] = {}

Arrays = dict[str, Any]


def limit_of(kind: str, seed: int) -> FlowLimit:
    if (kind, seed) not in LIMITS:
        given_problem = problem(kind, seed)
        counts, E, w = given_problem.counts, given_problem.E, given_problem.w
        flow = gradient_flow(counts, E, w, given_problem.p, VerifySettings(max_norm=200.0))
        LIMITS[kind, seed] = FlowLimit.find(counts, E, w, flow, 60.0)
    return LIMITS[kind, seed]


def early_certificate(kind: str, seed: int, log_time: float) -> Arrays | None:
    """What the package states about the limit from the point of the curve at a log t, if that is proved."""
    limit, given_problem = limit_of(kind, seed), problem(kind, seed)
    flow = limit.flow
    row = min(int(np.searchsorted(flow.log_time, log_time)), len(flow.log_time) - 1)
    early = {
        name: getattr(flow, name)[: row + 1]
        for name in ("coordinates", "arc", "log_time", "loss", "log_gradient")
    }
    earlier = replace(limit, flow=replace(flow, **early))
    proved = prove(earlier, given_problem.counts, given_problem.E, given_problem.w, seconds=0.0)
    if proved.proved != "from this point on" or proved.balance is None:
        return None
    return dict(proved.certificate)


def changed(arrays: Arrays, kind: str, seed: int) -> Arrays:
    rng = np.random.default_rng(seed)
    if kind == "point":
        noise = rng.standard_normal(arrays["point"].shape)
        size = float(arrays["radius"]) * rng.uniform(0.0, 1.5)
        arrays["point"] = arrays["point"] + size * noise / np.linalg.norm(noise)
    elif kind == "label":
        arrays["labels"] = arrays["labels"].copy()
        arrays["labels"][rng.integers(len(arrays["labels"]))] *= -1
    elif kind == "count":
        arrays["counts"] = arrays["counts"].copy()
        arrays["counts"][rng.integers(len(arrays["counts"]))] += 1
    return arrays


def stays_in_the_tube(arrays: Arrays) -> None:
    """|R| < r at both ends, so that p is no further than 2 r from where the line through p₀ leads."""
    n_documents = len(arrays["labels"])
    matrix = np.zeros((n_documents, len(arrays["w"])))
    for k in range(n_documents):
        row = slice(*arrays["indptr"][k : k + 2])
        matrix[k, arrays["indices"][row]] = arrays["counts"][row]
    counts = Counts.from_matrix(matrix, (arrays["labels"] > 0).astype(int))
    stated = Problem(counts, arrays["E"], arrays["w"], arrays["point"])
    begins = float(arrays["log_time"])
    times = [begins + 1.0, begins + 3.0, begins + FOLLOWED]
    basis = np.linalg.qr(arrays["basis"].T)[0]
    points = HighPrecision(stated).followed(stated.p, times, begins)
    assert points is not None
    for time, p in zip(times, points, strict=True):
        moved = p - stated.p - arrays["p_hat"] * (time - begins)
        across = moved - basis @ (basis.T @ moved)
        # The steps of the integrator are accurate to 1e-4 of p.
        allowed = 2 * float(arrays["radius"]) + 1e-3 * (1 + np.linalg.norm(p))
        assert np.linalg.norm(across) <= allowed


def attempt(kind: str, seed: int, log_time: float, change: str, change_seed: int) -> None:
    stated = early_certificate(kind, seed, log_time)
    assume(stated is not None)
    assert stated is not None
    arrays = changed(stated, change, change_seed)
    try:
        checker.check(arrays)
    except checker.Refused:
        assume(False)
    stays_in_the_tube(arrays)


SEEDS = st.integers(0, 10**6)
# Kinds whose limits are settled.
SETTLED_KINDS = [kind for kind in KINDS if kind != "push nearly orthogonal to V"]


@pytest.mark.parametrize(
    ("kind", "seed", "log_time"), [("ties in w", 0, 25.0), ("Assumption 1", 1, 8.0)]
)
def test_what_is_accepted_early_is_true(kind: str, seed: int, log_time: float) -> None:
    arrays = early_certificate(kind, seed, log_time)
    assert arrays is not None
    checker.check(arrays)
    stays_in_the_tube(arrays)


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(
    st.sampled_from(SETTLED_KINDS),
    st.integers(0, 5),
    st.floats(2.0, 30.0),
    st.sampled_from(["none", "point", "label", "count"]),
    SEEDS,
)
def test_what_is_accepted_is_true(
    kind: str, seed: int, log_time: float, change: str, change_seed: int
) -> None:
    attempt(kind, seed, log_time, change, change_seed)
