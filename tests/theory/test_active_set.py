"""The dual active set: against least distance programming, however the pairs arrive."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, nnls

from tokensieve.theory.limit.margin import ActiveSet


def least_norm(D: np.ndarray) -> np.ndarray:
    """Lawson & Hanson: min ‖z‖ with D z ≥ 1 through non-negative least squares."""
    target = np.append(np.zeros(D.shape[1]), 1.0)
    A = np.vstack([D.T, np.ones(len(D))])
    r = A @ nnls(A, target)[0] - target
    return np.asarray(-r[:-1] / r[-1])


def feasible(D: np.ndarray) -> bool:
    """Whether D z ≥ 1 has a solution, by linear programming."""
    answer = linprog(np.zeros(D.shape[1]), A_ub=-D, b_ub=-np.ones(len(D)), bounds=(None, None))
    return bool(answer.status == 0)


@settings(deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10**6), types=st.integers(2, 9), d=st.integers(1, 8), m=st.integers(1, 25), whole=st.booleans()
)
def test_any_problem_solved_or_proved_infeasible(seed: int, types: int, d: int, m: int, whole: bool) -> None:
    """Small integers make ties, dependent and repeated differences the rule."""
    rng = np.random.default_rng(seed)
    E = rng.integers(-2, 3, (types, d)).astype(float) if whole else rng.standard_normal((types, d))
    every = np.array([(s, r) for s in range(types) for r in range(types) if s != r])
    pairs = every[rng.permutation(len(every))[:m]]
    D = E[pairs[:, 0]] - E[pairs[:, 1]]
    problem = ActiveSet(E)
    z, status = problem.add(pairs[: m // 2], 1000) if m > 1 else (np.zeros(d), "solved")
    if status == "solved":
        z, status = problem.add(pairs[m // 2 :] if m > 1 else pairs, 1000)
    D = E[problem.pairs[:, 0]] - E[problem.pairs[:, 1]]
    lam = problem.multipliers
    assert lam.min() >= 0
    if status == "infeasible":
        assert not feasible(D)
        assert lam.sum() == pytest.approx(1) and np.linalg.norm(D.T @ lam) < 1e-9
    else:
        assert status == "solved" and feasible(D)
        assert (D @ z).min() >= 1 - 1e-9
        np.testing.assert_allclose(D.T @ lam, z, atol=1e-9 * max(1, np.linalg.norm(z)))
        np.testing.assert_allclose(z, least_norm(D), rtol=1e-5, atol=1e-6)


def test_active_pairs_are_a_forest_of_the_types() -> None:
    """Every pair of 4 selected and 30 other types of one score: 120 tight pairs, of which at most 33 are active."""
    rng = np.random.default_rng(0)
    E = rng.standard_normal((34, 60))
    pairs = np.array([(s, r) for s in range(4) for r in range(4, 34)])
    problem = ActiveSet(E)
    z, status = problem.add(pairs, 10_000)
    gaps = (E[pairs[:, 0]] - E[pairs[:, 1]]) @ z
    assert status == "solved" and np.sum(gaps < 1 + 1e-9) > 33 >= np.sum(problem.multipliers > 0)
    np.testing.assert_allclose(z, least_norm(E[pairs[:, 0]] - E[pairs[:, 1]]), rtol=1e-6, atol=1e-8)


def test_too_few_steps_are_told() -> None:
    E = np.random.default_rng(1).standard_normal((6, 9))
    pairs = np.array([(0, r) for r in range(1, 6)])
    problem = ActiveSet(E)
    assert problem.add(pairs, 1)[1] == "stopped early"
    assert problem.add(np.zeros((0, 2), np.int64), 100)[1] == "solved"
