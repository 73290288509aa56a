"""The flow with K classes, or with v trained: against the flow of two classes, plain time, and the max-margin direction."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from theory_docs.joint import joint_flow, own_margin
from tokensieve.arrays import Floats
from tokensieve.errors import InputError
from tokensieve.text.counts import Counts
from tokensieve.theory.embeddings import initialise
from tokensieve.theory.flow.solve import gradient_flow
from tokensieve.theory.generators import single_token
from tokensieve.theory.one_step import one_step
from tokensieve.theory.settings import VerifySettings


def binary(d: int = 40) -> tuple[Counts, Floats, Floats, Floats]:
    counts = single_token(24, 14, 5, 6, seed=1)[0]
    step = one_step(counts, *initialise(counts.n_types, d, seed=1), eta=40.0)
    return counts, step.embeddings(), step.start.v, step.start.p


def classes(K: int = 3, n: int = 24, seed: int = 0) -> Counts:
    """One relevant type of the document's class, two for each, and four of six others."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % K
    matrix = np.zeros((n, 2 * K + 6))
    matrix[np.arange(n), 2 * labels + rng.integers(2, size=n)] = 1
    for row in matrix:
        row[2 * K + rng.choice(6, 4, replace=False)] = 1
    return Counts.from_matrix(matrix, labels.tolist(), [str(k) for k in range(K)])


def loss(counts: Counts, E: Floats, v: Floats, p: Floats) -> float:
    """From the definition, document by document; v of shape (d, 1) or (d, K)."""
    total = 0.0
    for row, label in zip(counts.matrix.toarray(), counts.labels, strict=True):
        weights = row * np.exp(E @ p)
        f = (weights @ E @ v) / weights.sum()
        f = np.array([-f[0] / 2, f[0] / 2]) if len(f) == 1 else f
        total += np.log(np.exp(f).sum()) - f[label]
    return float(total / counts.n_documents)


@pytest.mark.slow
def test_two_classes_are_the_flow_of_two_classes_with_one_output_or_two() -> None:
    counts, E, v, p = binary()
    flow = gradient_flow(counts, E, E @ v, p, VerifySettings(max_norm=30.0, tolerance=1e-6))
    last = float(flow.log_time[-1])
    one = joint_flow(counts, E, v, p, log_time=last)
    two = joint_flow(counts, E, np.stack([-v / 2, v / 2], axis=1), p, log_time=last)
    for found in (one, two):
        assert found.log_time[-1] == pytest.approx(last)
        assert np.linalg.norm(found.scores[-1] - E @ flow.p) < 2e-4 * np.linalg.norm(E @ flow.p)
        assert found.loss[-1] == pytest.approx(flow.loss[-1], rel=1e-4)
        assert (np.diff(found.loss) < 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("train_v", [False, True])
def test_three_classes_against_plain_time_and_finite_differences(train_v: bool) -> None:
    counts, d = classes(n=6), 4
    rng = np.random.default_rng(3)
    E, v, p = (
        rng.normal(size=(counts.n_types, d)),
        rng.normal(size=(d, 3)) / 2,
        rng.normal(size=d) / 2,
    )

    def down(_: float, x: Floats) -> Floats:
        def at(y: Floats) -> float:
            return loss(counts, E, y[d:].reshape(d, 3), y[:d])

        slope = np.array([at(x + h) - at(x - h) for h in 1e-5 * np.eye(len(x))]) / 2e-5
        slope[d:] *= train_v
        return -slope

    there = solve_ivp(down, (0, 6.0), np.concatenate([p, v.ravel()]), rtol=1e-6, atol=1e-8).y[:, -1]
    found = joint_flow(counts, E, v, p, train_v, log_time=np.log(6.0), tolerance=1e-8)
    assert found.scores[-1] == pytest.approx(E @ there[:d], abs=2e-5)
    assert found.values[-1] == pytest.approx(E @ there[d:].reshape(d, 3), abs=2e-5)
    assert found.loss[-1] == pytest.approx(
        loss(counts, E, there[d:].reshape(d, 3), there[:d]), rel=1e-5
    )


@pytest.mark.slow
def test_p_turns_to_the_max_margin_direction_of_what_it_selects_with_three_classes_too() -> None:
    counts = classes()
    step = one_step(counts, *initialise(counts.n_types, 64, 3, seed=0), eta=60.0)
    E, start = step.embeddings(), step.start
    found = joint_flow(counts, E, start.v, start.p, log_time=20.0)
    margin, angle = own_margin(counts, E, found)
    top = np.argmax(np.where(counts.matrix.toarray() > 0, found.scores[-1], -np.inf), axis=1)
    assert (top // 2 == counts.labels).all()
    early = joint_flow(counts, E, start.v, start.p, log_time=14.0)
    assert margin.duality_gap < 1e-9
    assert angle < 0.1
    assert angle * found.norm[-1] == pytest.approx(
        own_margin(counts, E, early)[1] * early.norm[-1], rel=0.25
    )


@pytest.mark.slow
def test_with_v_trained_the_values_grow_and_p_slower_than_beside_fixed_ones() -> None:
    """The loss then falls to zero, so that little is left to move p: it is no run of Theorem 4.3."""
    counts = classes()
    step = one_step(counts, *initialise(counts.n_types, 64, 3, seed=0), eta=60.0)
    E, start = step.embeddings(), step.start
    fixed, moved = (
        joint_flow(counts, E, start.v, start.p, v, log_time=12.0) for v in (False, True)
    )
    assert (fixed.values == fixed.values[0]).all()
    assert moved.norm[-1] < fixed.norm[-1] / 1.5
    assert moved.loss[-1] < 1e-4 < fixed.loss[-1]
    late = moved.log_time > 8
    assert (np.diff(np.abs(moved.values[late]).max(axis=(1, 2))) > 0).all()


def test_repeats_and_refuses() -> None:
    counts, E, v, p = binary(8)
    one, two = (joint_flow(counts, E, v, p, True, log_time=4.0) for _ in range(2))
    assert (one.scores == two.scores).all() and (one.values == two.values).all()
    assert "JointFlow(to log t = 4" in repr(one)
    with pytest.raises(InputError, match="do not fit 14 types of 2 classes"):
        joint_flow(counts, E, np.ones((8, 3)), p)
    with pytest.raises(InputError, match="not finite"):
        joint_flow(counts, E, v, p * np.nan)
    with pytest.raises(InputError, match="nothing moves"):
        joint_flow(counts, E, 0 * v, p)
