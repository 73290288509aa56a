"""Gradient flow: its gradient and Hessian, the curve against other methods, its clock, its verdicts, stopping and resuming."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import BDF, solve_ivp

from tokensieve.errors import InputError
from tokensieve.model.attention import gradient
from tokensieve.text.counts import Counts
from tokensieve.theory.embeddings import initialise
from tokensieve.theory.flow import integrator
from tokensieve.theory.flow.landscape import Landscape
from tokensieve.theory.flow.solve import LEG, gradient_flow
from tokensieve.theory.generators import single_token
from tokensieve.theory.geometry import coordinates
from tokensieve.theory.limit.margin import max_margin
from tokensieve.theory.one_step import one_step
from tokensieve.theory.settings import VerifySettings


def one_step_problem(d: int = 64, eta: float = 800.0, seed: int = 0):
    counts, _ = single_token(60, 24, 5, 6, seed=seed)
    step = one_step(counts, *initialise(24, d, seed=seed), eta)
    E = step.embeddings()
    return counts, E, E @ step.start.v, step.start.p


def random_problem(seed: int, scale: float, d: int = 5):
    rng = np.random.default_rng(seed)
    matrix = rng.poisson(0.7, size=(25, 9))
    matrix[0] = 0
    matrix[1] = 0
    matrix[1, 3] = 4
    counts = Counts.from_matrix(matrix, rng.integers(2, size=25))
    return (
        counts,
        rng.standard_normal((9, d)),
        rng.standard_normal(9),
        scale * rng.standard_normal(d),
    )


@settings(max_examples=settings.default.max_examples // 2)
@given(seed=st.integers(0, 10**6), scale=st.floats(0.0, 30.0))
def test_gradient_hessian_and_decay_agree_with_the_plain_gradient(seed: int, scale: float) -> None:
    counts, E, w, p = random_problem(seed, scale)
    plain = gradient(counts, E @ p, w)
    slope = E.T @ plain.a
    size = np.linalg.norm(slope)
    land = Landscape(counts, E, w)
    loss, log_gradient, _ = land.point(p)
    assert loss == pytest.approx(plain.loss, rel=1e-14)
    assert log_gradient == pytest.approx(math.log(size), abs=1e-7)
    H, downhill, log_size = land.hessian(p)
    assert log_size == log_gradient
    np.testing.assert_allclose(downhill, -slope / size, atol=1e-7)
    np.testing.assert_array_equal(downhill, land.slope(p)[0])
    h = 1e-5
    numeric = np.array(
        [
            E.T @ (gradient(counts, E @ (p + h * e), w).a - gradient(counts, E @ (p - h * e), w).a)
            for e in np.eye(5)
        ]
    ) / (2 * h * size)
    np.testing.assert_allclose(H, numeric, atol=2e-6 * max(1.0, np.abs(numeric).max()))
    nothing = 1e-2 * math.exp(min(-14.0 - log_size, 700.0))  # moves nothing by log t = 14
    np.testing.assert_allclose(land.hessian(p, 14.0)[0], H, atol=1e-5 * np.abs(H).max() + nothing)


@pytest.mark.parametrize("labels", [[1, 0], [0, 1]])
def test_nothing_underflows_at_any_norm_and_the_decay_has_its_sign(labels: list[int]) -> None:
    """Two types, one document of each class: log‖∇L‖ has a closed form far beyond the smallest double.

    The document that holds the other type twice wins. With labels +, − it closes the score gap, so that the gradient grows along
    the curve; with the labels exchanged it widens the gap, and the gradient falls by √2 per unit of length: p diverges.
    """
    counts = Counts.from_matrix([[1, 1], [1, 2]], labels)
    E, w = np.eye(2), np.array([1.0, 0.0])
    land = Landscape(counts, E, w)
    sigma = 1 / (1 + math.exp(-1.0))
    for size in (5.0, 50.0, 5e3, 5e6):
        p = np.array([size, -size])
        # a_1 = mean g q_1 q_2 with q_2/q_1 = c e^{−2 size} and g = −σ(−1), +σ(1): the gradient is a (1, −1).
        share = 2 * sigma - (1 - sigma) if labels[0] else 2 * (1 - sigma) - sigma
        expected = math.log(math.sqrt(2) / 2 * abs(share)) - 2 * size
        assert land.point(p)[1] == pytest.approx(
            expected, rel=1e-12, abs=1e-3 if size == 5.0 else 1e-12
        )
        closing = share > 0 if labels[0] else share < 0
        H, downhill, _ = land.hessian(p)
        assert downhill @ H @ downhill == pytest.approx(
            -math.sqrt(2) if closing else math.sqrt(2), rel=1e-3
        )
        assert np.sign(downhill[0]) == (-1 if closing else 1)


@pytest.mark.slow
def test_the_curve_is_the_ordinary_time_flow_and_the_limit_of_gradient_descent() -> None:
    counts, E, w, p = one_step_problem(eta=100.0)
    flow = gradient_flow(counts, E, w, p, VerifySettings(max_norm=3.0, tolerance=1e-8))

    def slope(_: float, x: np.ndarray) -> np.ndarray:
        return np.asarray(-E.T @ gradient(counts, E @ x, w).a)

    for row in (len(flow.log_time) // 3, len(flow.log_time) // 2, len(flow.log_time) - 1):
        t = math.exp(flow.log_time[row])
        assert np.linalg.norm(stiff_at(slope, p, t) - flow.at(row)) < 1e-5
    t, errors = math.exp(flow.log_time[-1]) / 10, []
    exact = stiff_at(slope, p, t)
    for steps in (250, 500):
        x = p.copy()
        for _ in range(steps):
            x += t / steps * slope(0, x)
        errors.append(np.linalg.norm(x - exact))
    assert errors[1] == pytest.approx(errors[0] / 2, rel=0.1) and errors[1] < 0.05


def stiff_at(slope, p: np.ndarray, t: float) -> np.ndarray:
    return solve_ivp(slope, (0, t), p, method="LSODA", rtol=1e-11, atol=1e-13).y[:, -1]


@pytest.mark.slow
def test_the_curve_moves_in_proportion_to_the_tolerance() -> None:
    counts, E, w, p = one_step_problem(seed=2)
    reference = gradient_flow(counts, E, w, p, VerifySettings(max_norm=30.0, tolerance=1e-10))
    tolerances = np.array([1e-4, 1e-5, 1e-6, 1e-7])
    errors = []
    for tolerance in tolerances:
        flow = gradient_flow(
            counts, E, w, p, VerifySettings(max_norm=30.0, tolerance=float(tolerance))
        )
        errors.append(np.linalg.norm(flow.p - reference.p))
    order = np.polyfit(np.log(tolerances), np.log(errors), 1)[0]
    assert 0.7 < order < 1.3
    assert errors[-1] < 1e-4


def test_under_assumption_one_p_diverges_along_the_max_margin_direction() -> None:
    counts, E, w, p = one_step_problem(eta=800.0)
    flow = gradient_flow(counts, E, w, p, VerifySettings(max_norm=2000.0))
    assert (
        flow.verdict == "undecided at the budget"
        and "maximum norm" in flow.reason
        and flow.limit is None
    )
    assert flow.norm[-1] == pytest.approx(2000.0, rel=1e-12)
    assert flow.to_dict()["rises"] == 0 and np.all(np.diff(flow.loss) <= 1e-13)
    target = max_margin(counts, E, (np.arange(24) < 6)[counts.matrix.indices])
    angle = flow.angle(target.p)
    assert angle[-1] < 0.01
    fall = -np.diff(flow.log_gradient)[-1] / np.diff(flow.arc)[-1]
    assert fall == pytest.approx(target.margin, rel=1e-3)
    # log t grows as log‖∇L‖ falls: t ‖∇L‖ tends to 1/margin.
    assert flow.log_time[-1] + flow.log_gradient[-1] == pytest.approx(
        -math.log(target.margin), abs=0.01
    )
    np.testing.assert_allclose(flow.at(0), p, atol=1e-12)


def test_conflicting_labels_give_a_finite_limit_with_zero_gradient() -> None:
    """Documents of the same two types with both labels pull on the same score gap: the loss has a minimum at a finite gap."""
    matrix = [[1, 1, 0]] * 5 + [[0, 1, 1]] * 5
    counts = Counts.from_matrix(matrix, [1, 1, 1, 0, 0, 1, 0, 0, 0, 1])
    rng = np.random.default_rng(5)
    E, w, p = rng.standard_normal((3, 4)), np.array([2.0, -1.5, 2.5]), rng.standard_normal(4)
    flow = gradient_flow(counts, E, w, p)
    assert (
        flow.verdict == "finite limit" and flow.limit is not None and "finite point" in flow.reason
    )
    end = gradient(counts, E @ flow.limit, w)
    assert np.linalg.norm(E.T @ end.a) < 1e-12
    assert end.loss <= flow.loss[-1] and flow.to_dict()["limit_norm"] == pytest.approx(
        np.linalg.norm(flow.limit)
    )
    late = stiff_at(lambda _, x: -E.T @ gradient(counts, E @ x, w).a, p, 1e5)
    np.testing.assert_allclose(late, flow.limit, atol=1e-7)


@pytest.mark.parametrize("matrix", [[[3, 0], [0, 2]], [[1, 0], [5, 0]]])
def test_documents_with_one_type_leave_p_where_it_is(matrix: list[list[int]]) -> None:
    counts = Counts.from_matrix(matrix, [1, 0])
    flow = gradient_flow(counts, np.eye(2, 3), np.array([1.0, -1.0]), np.ones(3))
    assert flow.verdict == "finite limit" and "no score can change the loss" in flow.reason
    np.testing.assert_array_equal(flow.p, np.ones(3))


def test_balanced_scores_beside_growing_ones_are_followed_beyond_double_precision() -> None:
    """One pair of documents settles at a finite gap while another grows: its rounding error does not end the curve."""
    matrix = np.zeros((5, 4))
    matrix[:3, :2] = 1
    matrix[3:, 2:] = [[1, 1], [1, 1]]
    counts = Counts.from_matrix(matrix, [1, 1, 0, 1, 1])
    w = np.array([1.5, -1.0, 1.0, -1.0])
    flow = gradient_flow(
        counts, np.eye(4), w, np.zeros(4), VerifySettings(max_norm=1e4, max_steps=2000)
    )
    assert (
        flow.verdict == "undecided at the budget"
        and "have settled" in flow.reason
        and flow.log_time[-1] >= 40
    )
    assert flow.to_dict()["rises"] == 0
    share = (math.log(2) + 1.0) / 2.5
    assert flow.p[0] - flow.p[1] == pytest.approx(math.log(share / (1 - share)), abs=1e-6)
    # d gap/dt = 2 · 2/5 σ(−f) (w₂ − w₃) e^{−gap} to first order, with f → 1
    growing = flow.log_time[-1] + math.log(2 * 2 / 5 * 2 / (1 + math.e))
    assert flow.p[2] - flow.p[3] == pytest.approx(growing, abs=1e-3)


def test_a_budget_that_ends_is_undecided() -> None:
    counts, E, w, p = one_step_problem()
    flow = gradient_flow(counts, E, w, p, VerifySettings(max_steps=5))
    assert flow.verdict == "undecided at the budget" and flow.to_dict()["steps"] == 5
    flow = gradient_flow(counts, E, w, p, VerifySettings(max_seconds=1e-9))
    assert flow.verdict == "undecided at the budget" and flow.to_dict()["log_time"] is None


@pytest.mark.slow
def test_a_stopped_curve_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    counts, E, w, p = one_step_problem()
    settings_ = VerifySettings(max_norm=300.0, tolerance=1e-8)
    whole = gradient_flow(counts, E, w, p, settings_)
    path = tmp_path / "flow.safetensors"
    stopped = gradient_flow(
        counts, E, w, p, replace(settings_, max_steps=LEG + 20), checkpoint=path
    )
    assert stopped.verdict == "undecided at the budget" and len(stopped.log_time) == LEG + 21
    seen: list[float] = []
    resumed = gradient_flow(counts, E, w, p, settings_, path, lambda _, share: seen.append(share))
    np.testing.assert_array_equal(resumed.coordinates[: LEG + 21], stopped.coordinates)
    assert resumed.verdict == whole.verdict and resumed.seconds > stopped.seconds
    assert np.linalg.norm(resumed.p - whole.p) < 1e-4 and max(seen) == seen[-1] == pytest.approx(
        1.0, abs=1e-3
    )
    again = gradient_flow(counts, E, w, p, settings_, path)
    np.testing.assert_array_equal(again.coordinates, resumed.coordinates)
    shorter = gradient_flow(counts, E, w, p, replace(settings_, max_norm=20.0), path)
    assert shorter.norm[-1] == pytest.approx(20.0) and len(shorter.log_time) < len(resumed.log_time)


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    counts, E, w, p = one_step_problem()
    path, settings_ = tmp_path / "flow.safetensors", VerifySettings(max_norm=50.0)
    gradient_flow(counts, E, w, p, settings_, path)
    for other, values in ((replace(settings_, tolerance=1e-6), w), (settings_, w * 1.01)):
        with pytest.raises(InputError, match="data, settings or"):
            gradient_flow(counts, E, values, p, other, path)
    path.write_bytes(b"nothing")
    with pytest.raises(InputError, match="cannot be read as a checkpoint"):
        gradient_flow(counts, E, w, p, settings_, path)


def test_a_trial_step_that_is_too_long_is_tried_again_as_a_short_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """SciPy's BDF keeps the Jacobian of its first trial, e^τ times too large, and fails with every shorter step."""
    failed: list[float] = []

    class Impatient(BDF):
        def _step_impl(self) -> tuple[bool, str | None]:
            if self.h_abs > 5.0:
                failed.append(self.h_abs)
                return False, self.TOO_SMALL_STEP
            return super()._step_impl()

    monkeypatch.setattr(integrator, "BDF", Impatient)
    counts, E, w, p = one_step_problem()
    land = Landscape(counts, coordinates(E)[0], w)
    flow = integrator.Integrator(
        land.live, coordinates(E)[1].T @ p, -math.inf, -math.inf, (1e-4, 1e-4), step=50.0
    )
    assert all(flow.step() for _ in range(40))
    assert failed and max(failed) == 50.0
    # A short step that fails is a fault of the flow, which the caller has to see.
    monkeypatch.setattr(Impatient, "_step_impl", lambda self: (False, self.TOO_SMALL_STEP))
    before = flow.p.copy()
    assert not flow.step()
    np.testing.assert_array_equal(flow.p, before)


@pytest.mark.slow
def test_dimensions_outside_the_span_stay_still_and_change_nothing() -> None:
    counts, E, w, p = one_step_problem(d=64)
    settings_ = VerifySettings(max_norm=50.0, tolerance=1e-8)
    flow = gradient_flow(counts, E, w, p, settings_)
    reduced, basis = coordinates(E)
    assert basis is not None and flow.coordinates.shape[1] == 24
    np.testing.assert_allclose(reduced @ reduced.T, E @ E.T, atol=1e-12 * np.abs(E @ E.T).max())
    inside = gradient_flow(
        counts,
        reduced,
        w,
        basis.T @ p,
        replace(settings_, max_norm=float(np.linalg.norm(basis.T @ flow.p))),
    )
    assert np.linalg.norm(basis @ inside.p + flow.rest - flow.p) < 1e-3
    assert np.abs(E @ flow.rest).max() < 1e-12


@pytest.mark.parametrize("seed", [0, 1])
def test_flipping_labels_and_values_or_permuting_types_leaves_the_curve(seed: int) -> None:
    counts, E, w, p = one_step_problem(d=30, eta=200.0, seed=seed)
    settings_ = VerifySettings(max_norm=4.0, tolerance=1e-7)
    flow = gradient_flow(counts, E, w, p, settings_)
    flipped = Counts(counts.matrix, 1 - counts.labels, counts.classes, counts.tokens)
    np.testing.assert_allclose(gradient_flow(flipped, E, -w, p, settings_).p, flow.p, atol=1e-4)
    order = np.random.default_rng(seed).permutation(24)
    shuffled = Counts.from_matrix(
        counts.matrix.toarray()[::-1][:, order], counts.labels[::-1].tolist()
    )
    np.testing.assert_allclose(
        gradient_flow(shuffled, E[order], w[order], p, settings_).p, flow.p, atol=1e-4
    )


def test_bad_input_is_named() -> None:
    counts, E, w, p = one_step_problem()
    with pytest.raises(InputError, match="do not fit"):
        gradient_flow(counts, E[1:], w, p)
    with pytest.raises(InputError, match="not finite"):
        gradient_flow(counts, E, w * math.inf, p)
    with pytest.raises(InputError, match="must be positive"):
        gradient_flow(counts, E, w, p, VerifySettings(max_norm=-1.0))
    three = Counts(counts.matrix, counts.labels, ("a", "b", "c"), counts.tokens)
    with pytest.raises(InputError, match="two classes"):
        gradient_flow(three, E, w, p)


def test_values_too_large_to_follow_are_refused() -> None:
    counts, _ = single_token(20, 12, 4, 4, seed=0)
    E = np.eye(12)
    with pytest.raises(InputError, match="smaller step size"):
        gradient_flow(counts, E, np.full(12, 301.0), np.zeros(12))


def test_entries_without_influence_are_left_out_and_change_no_slope() -> None:
    """Where gaps are long most entries weigh next to nothing; what is left out is reported once it matters."""
    counts, E, w, p = random_problem(3, 30.0)
    land = Landscape(counts, E, w)
    few = land.live(p, 0.0, 25.0)
    assert (
        few.counts.matrix.nnz < 0.8 * counts.matrix.nnz
        and few.counts.n_documents == counts.n_documents
    )
    for whole, part in zip(land.slope(p), few.slope(p), strict=True):
        np.testing.assert_allclose(part, whole, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(few.hessian(p)[0], land.hessian(p)[0], rtol=1e-7, atol=1e-7)
    for clock in (0.0, 16.0, 30.0):  # as a Jacobian: what it leaves out moves nothing in that time
        whole, _, log_size = land.hessian(p)
        least = max(1.0, float(np.abs(whole).max()) * math.exp(clock + log_size))
        difference = np.abs(land.hessian(p, clock)[0] - whole).max() * math.exp(clock + log_size)
        assert difference < 0.02 * (1 if clock > 15 else least)
    assert few.left_out_force(p, -20.0) < -24 < few.left_out_force(p / 4, -20.0)
    for point in np.linspace(1.0, 0.2, 9)[:, None] * p + np.random.default_rng(0).standard_normal(
        (9, len(p))
    ):
        # Cheap bounds and sharp ones are both above the force of every entry that is left out.
        forces = land.logarithms(land.at(point))[~land.strong(p, 0.0, 25.0)]
        assert all(
            few.left_out_force(point, enough) >= forces.max() for enough in (math.inf, -math.inf)
        )
    assert land.live(p / 100, 0.0, 25.0) is land and land.left_out_force(p, 0.0) == -math.inf
