"""The max-margin solver: closed forms, independent solvers, published set-ups, certificates, and what cannot be separated."""

from __future__ import annotations

import math

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import null_space
from scipy.optimize import linprog, minimize, nnls

from tokensieve.errors import InputError
from tokensieve.text.counts import Counts
from tokensieve.theory.embeddings import initialise
from tokensieve.theory.flow.face import Face
from tokensieve.theory.generators import single_token
from tokensieve.theory.limit import margin as margin_module
from tokensieve.theory.limit.margin import Margin, max_margin
from tokensieve.theory.one_step import one_step


def selection_of(counts: Counts, types: dict[int, list[int]]) -> np.ndarray:
    """Which entries of the counts are selected, from {document: its selected types}."""
    m = counts.matrix
    documents = np.repeat(np.arange(counts.n_documents), np.diff(m.indptr))
    entries = zip(documents.tolist(), m.indices.tolist(), strict=True)
    return np.array([s in types.get(k, []) for k, s in entries])


def all_pairs(counts: Counts, mask: np.ndarray) -> np.ndarray:
    """Every distinct (selected, other) pair, by the definition."""
    m = counts.matrix
    pairs = set()
    for k in range(counts.n_documents):
        entries = range(m.indptr[k], m.indptr[k + 1])
        pairs |= {
            (m.indices[i], m.indices[j])
            for i in entries
            for j in entries
            if mask[i] and not mask[j]
        }
    return np.array(sorted(pairs)).reshape(-1, 2)


def all_ties(counts: Counts, mask: np.ndarray) -> np.ndarray:
    """Every pair of types selected in one document."""
    m = counts.matrix
    pairs = set()
    for k in range(counts.n_documents):
        held = m.indices[m.indptr[k] : m.indptr[k + 1]][mask[m.indptr[k] : m.indptr[k + 1]]]
        pairs |= {(held[0], s) for s in held[1:]}
    return np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)


def least_norm(D: np.ndarray) -> np.ndarray:
    """Lawson & Hanson's least distance programming: min ‖z‖ with D z ≥ 1, through non-negative least squares."""
    A = np.vstack([D.T, np.ones(len(D))])
    target = np.zeros(D.shape[1] + 1)
    target[-1] = 1
    x, _ = nnls(A, target)
    r = A @ x - target
    return -r[:-1] / r[-1]


def check_certificate(result: Margin, counts: Counts, E: np.ndarray, mask: np.ndarray) -> None:
    """Recompute every figure over all pairs, written down one by one."""
    pairs = all_pairs(counts, mask)
    gaps = (E[pairs[:, 0]] - E[pairs[:, 1]]) @ result.p
    assert result.smallest_margin == pytest.approx(gaps.min(), rel=1e-9)
    assert gaps.min() >= 1 - 1e-8
    D = E[result.pairs[:, 0]] - E[result.pairs[:, 1]]
    equal = all_ties(counts, mask)
    free = null_space(E[equal[:, 0]] - E[equal[:, 1]]) if len(equal) else np.eye(E.shape[1])
    shadow = free @ (free.T @ (D.T @ result.multipliers))
    np.testing.assert_allclose(shadow, result.p, atol=1e-8 * np.linalg.norm(result.p))
    assert result.multipliers.min() >= 0
    assert {tuple(pair) for pair in result.pairs} <= {tuple(pair) for pair in pairs}
    np.testing.assert_allclose(D @ result.p, 1, atol=1e-6)
    assert result.duality_gap <= 1e-8 and result.kkt_residual <= 1e-8
    assert result.primal == pytest.approx(result.p @ result.p / 2, rel=1e-7)


@settings(deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10**6),
    d=st.sampled_from([2, 3, 6, 30]),
    n=st.integers(1, 12),
    types=st.integers(3, 9),
)
def test_any_feasible_problem_agrees_with_least_distance_programming(
    seed: int, d: int, n: int, types: int
) -> None:
    rng = np.random.default_rng(seed)
    matrix = rng.integers(0, 3, size=(n, types))
    matrix[:, 0] += 1
    counts = Counts.from_matrix(matrix, rng.integers(2, size=n))
    E = rng.standard_normal((types, d))
    E[:, 0] = rng.integers(0, 3, types)
    mask = counts.top_mask(E[:, 0])
    result = max_margin(counts, E, mask)
    pairs, equal = all_pairs(counts, mask), all_ties(counts, mask)
    if not len(pairs):
        assert result.status == "nothing to separate" and math.isinf(result.margin)
        return
    assert result.status == "solved"
    check_certificate(result, counts, E, mask)
    free = null_space(E[equal[:, 0]] - E[equal[:, 1]]) if len(equal) else np.eye(d)
    assert result.ties == d - free.shape[1]
    D = (E[pairs[:, 0]] - E[pairs[:, 1]]) @ free
    np.testing.assert_allclose(result.p, free @ least_norm(D), rtol=1e-5, atol=1e-6)
    other = interior_point(E, pairs, equal)  # which ends at a tolerance of its own
    np.testing.assert_allclose(result.p, other, rtol=1e-4, atol=1e-5)


def interior_point(E: np.ndarray, pairs: np.ndarray, equal: np.ndarray) -> np.ndarray:
    """Clarabel on the problem as it is written, equalities and all."""
    options = clarabel.DefaultSettings()
    options.verbose = False
    D = np.vstack([E[equal[:, 0]] - E[equal[:, 1]], E[pairs[:, 1]] - E[pairs[:, 0]]])
    bound = np.concatenate([np.zeros(len(equal)), -np.ones(len(pairs))])
    cones = [clarabel.ZeroConeT(len(equal)), clarabel.NonnegativeConeT(len(pairs))]
    d = E.shape[1]
    solver = clarabel.DefaultSolver(
        sp.eye_array(d, format="csc"), np.zeros(d), sp.csc_array(D), bound, cones, options
    )
    return np.asarray(solver.solve().x)


def test_contradicting_documents_keep_their_types_equal() -> None:
    """Assumption 1, n = 40, and one document once more with the opposite label: its relevant token is tied to its best other.

    Without the equality the direction is far from the one that has it.
    """
    counts, relevance = single_token(40, 20, 5, 6, seed=0)
    E = one_step(counts, *initialise(20, 64, seed=0), eta=400.0).embeddings()
    mask = (relevance != 0)[counts.matrix.indices]
    free = max_margin(counts, E, mask)
    m = counts.matrix
    mask[m.indptr[0] + 3] = True
    mask = Face.of(counts, E, mask).mask
    tied = max_margin(counts, E, mask)
    held = m.indices[m.indptr[0] : m.indptr[1]][mask[m.indptr[0] : m.indptr[1]]]
    assert (
        np.ptp(E[held] @ tied.p) < 1e-12 and tied.ties == len(held) - 1 and tied.status == "solved"
    )
    assert tied.margin < free.margin
    cosine = tied.p @ free.p / np.linalg.norm(tied.p) / np.linalg.norm(free.p)
    assert np.arccos(cosine) > 0.1


def test_equal_embeddings_are_never_solved_by_a_huge_p() -> None:
    """All ones but one column: two types of one document are equal, or differ by rounding only."""
    rng = np.random.default_rng(0)
    outcomes = set()
    for _ in range(60):
        types = int(rng.integers(3, 8))
        E = np.ones((types, 3))
        E[:, 1] = rng.integers(0, 3, types) * 0.1
        E = E @ np.linalg.qr(rng.standard_normal((3, 3)))[0]
        matrix = rng.integers(0, 2, (5, types))
        counts = Counts.from_matrix(matrix, rng.integers(2, size=5))
        mask = np.zeros(counts.matrix.nnz, bool)
        mask[counts.matrix.indptr[:-1][np.diff(counts.matrix.indptr) > 0]] = True
        result = max_margin(counts, E, mask)
        outcomes.add(result.status)
        assert result.status != "stopped early" and np.linalg.norm(result.p) < 1e6
        assert result.status != "infeasible" or result.farkas <= 1e-12
    assert outcomes == {"solved", "infeasible"}


def test_infeasible_needs_a_combination_that_is_zero_to_rounding() -> None:
    """Rows that differ by 1e-8 can be separated, by a long p: a short convex combination of them is no proof that they cannot."""
    counts = Counts.from_matrix([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]], [1, 1, 1])
    E = np.array([[1.0, 0.0, 1e-8], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    result = max_margin(counts, E, selection_of(counts, {0: [0], 1: [1], 2: [2]}))
    assert result.status == "solved"
    np.testing.assert_allclose(result.p, [2.0, 1.0, 1e8], rtol=1e-6)


def test_two_orthogonal_types_by_hand() -> None:
    counts = Counts.from_matrix([[2, 1]], [1])
    result = max_margin(counts, np.array([[3.0, 0.0], [0.0, 4.0]]), selection_of(counts, {0: [0]}))
    np.testing.assert_allclose(result.p, np.array([3.0, -4.0]) / 25, rtol=1e-12)
    assert result.margin == pytest.approx(5.0) and result.primal == pytest.approx(1 / 50)
    np.testing.assert_array_equal(result.pairs, [[0, 1]])
    np.testing.assert_allclose(result.multipliers, [1 / 25])


@pytest.mark.parametrize("types", [3, 6])
def test_orthonormal_embeddings_in_closed_form(types: int) -> None:
    """One selected type against m others of orthonormal embeddings: p = (m E_0 − Σ E_r)/(m + 1), margin √((m+1)/m)."""
    m = types - 1
    counts = Counts.from_matrix(np.ones((1, types)), [1])
    result = max_margin(counts, np.eye(types, 10), selection_of(counts, {0: [0]}))
    expected = np.zeros(10)
    expected[:types] = np.array([m] + [-1.0] * m) / (m + 1)
    np.testing.assert_allclose(result.p, expected, atol=1e-12)
    assert result.margin == pytest.approx(math.sqrt((m + 1) / m))


@pytest.mark.parametrize(("n", "d"), [(1, 2), (1, 3), (4, 2), (4, 3), (6, 3)])
def test_the_predecessors_set_up(n: int, d: int) -> None:
    """Tarzanagh et al. (2023): n sequences of their own Gaussian tokens, one token of each to be selected, d = 2 and 3.

    Selections are read off a random direction, so that they are feasible; the independent solver is SLSQP on all pairs.
    """
    rng = np.random.default_rng(10 * n + d)
    T = 4
    E = rng.standard_normal((n * T, d))
    counts = Counts.from_matrix(np.kron(np.eye(n), np.ones(T)), rng.integers(2, size=n))
    u = E @ rng.standard_normal(d)
    mask = selection_of(
        counts, {k: [k * T + int(np.argmax(u[k * T : (k + 1) * T]))] for k in range(n)}
    )
    result = max_margin(counts, E, mask)
    check_certificate(result, counts, E, mask)
    pairs = all_pairs(counts, mask)
    D = E[pairs[:, 0]] - E[pairs[:, 1]]
    start = result.p * 3 + rng.standard_normal(d) * 0.1
    other = minimize(
        lambda z: z @ z / 2, start, jac=lambda z: z, method="SLSQP", options={"ftol": 1e-15, "maxiter": 500},
        constraints={"type": "ineq", "fun": lambda z: D @ z - 1, "jac": lambda _: D},
    )  # fmt: skip
    np.testing.assert_allclose(result.p, other.x, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("d", [30, 1024])
def test_assumption_one_at_both_sides_of_the_number_of_types(d: int) -> None:
    counts, relevance = single_token(200, 70, 8, 20, seed=0)
    E = one_step(counts, *initialise(70, d, seed=1), eta=2000.0).embeddings()
    mask = (relevance != 0)[counts.matrix.indices]
    result = max_margin(counts, E, mask)
    assert result.status == "solved"
    check_certificate(result, counts, E, mask)
    for near in (result.p + 0.01 * E[0], E[3]):
        np.testing.assert_allclose(
            max_margin(counts, E, mask, near=near).p, result.p, rtol=1e-7, atol=1e-9
        )


def test_infeasible_selections_come_with_a_proof() -> None:
    counts = Counts.from_matrix([[1, 1], [1, 1]], [1, 0])
    mask = selection_of(counts, {0: [0], 1: [1]})
    result = max_margin(counts, np.random.default_rng(0).standard_normal((2, 5)), mask)
    assert result.status == "infeasible" and result.margin == 0 and result.farkas <= 1e-8
    assert result.multipliers.sum() == pytest.approx(1) and result.multipliers.min() >= 0
    figures = result.to_dict()
    assert figures["duality_gap"] is None and figures["status"] == "infeasible"


def test_a_point_inside_the_hull_of_the_others_cannot_be_selected() -> None:
    rng = np.random.default_rng(4)
    others = rng.standard_normal((6, 3))
    E = np.vstack([others.mean(axis=0), others])
    counts = Counts.from_matrix(np.ones((1, 7)), [1])
    result = max_margin(counts, E, selection_of(counts, {0: [0]}))
    assert result.status == "infeasible"
    D = E[result.pairs[:, 0]] - E[result.pairs[:, 1]]
    assert np.linalg.norm(D.T @ result.multipliers) <= 1e-7


def test_types_with_one_embedding_cannot_be_told_apart() -> None:
    counts = Counts.from_matrix([[1, 1, 1]], [1])
    E = np.array([[1.0, 2.0], [1.0, 2.0], [0.0, 1.0]])
    result = max_margin(counts, E, selection_of(counts, {0: [0]}))
    assert result.status == "infeasible" and result.farkas == 0


def test_repeated_and_lonely_types_constrain_nothing() -> None:
    counts = Counts.from_matrix([[3, 0, 0], [0, 2, 0], [0, 0, 0]], [1, 0, 1])
    result = max_margin(counts, np.eye(3), selection_of(counts, {0: [0], 1: [1]}))
    assert result.status == "nothing to separate" and result.constraints == 0
    np.testing.assert_array_equal(result.p, 0)


@settings(deadline=None, derandomize=True, max_examples=15)
@given(seed=st.integers(0, 10**6), factor=st.floats(1e-3, 1e3))
def test_scaling_rotating_and_repeating(seed: int, factor: float) -> None:
    counts, relevance = single_token(24, 16, 4, 4, seed=seed)
    rng = np.random.default_rng(seed)
    E = rng.standard_normal((16, 20))
    mask = (relevance != 0)[counts.matrix.indices]
    base = max_margin(counts, E, mask)
    rotation = np.linalg.qr(rng.standard_normal((20, 20)))[0]
    turned = max_margin(counts, factor * E @ rotation, mask)
    np.testing.assert_allclose(turned.p * factor, base.p @ rotation, rtol=1e-7, atol=1e-9)
    twice = np.repeat(np.arange(24), 2)
    doubled = counts.rows(twice)
    again = max_margin(doubled, E, (relevance != 0)[doubled.matrix.indices])
    np.testing.assert_allclose(again.p, base.p, rtol=1e-9, atol=1e-12)


@settings(deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10**6),
    types=st.integers(2, 9),
    d=st.integers(1, 8),
    m=st.integers(1, 12),
    whole=st.booleans(),
)
def test_any_problem_is_solved_or_proved_infeasible(
    seed: int, types: int, d: int, m: int, whole: bool
) -> None:
    """Small integers make ties, dependent and repeated differences the rule; linear programming says which can be solved."""
    rng = np.random.default_rng(seed)
    E = rng.integers(-2, 3, (types, d)).astype(float) if whole else rng.standard_normal((types, d))
    held = np.array([rng.permutation(types)[:2] for _ in range(m)])
    matrix = np.zeros((m, types))
    matrix[np.arange(m)[:, None], held] = 1
    counts = Counts.from_matrix(matrix, [1] * m)
    found = max_margin(
        counts, E, selection_of(counts, {k: [s] for k, (s, _) in enumerate(held.tolist())})
    )
    D = E[held[:, 0]] - E[held[:, 1]]
    feasible = linprog(np.zeros(d), A_ub=-D, b_ub=-np.ones(m), bounds=(None, None)).status == 0
    multiplied = (E[found.pairs[:, 0]] - E[found.pairs[:, 1]]).T @ found.multipliers
    assert (
        found.status == ("solved" if feasible else "infeasible") and (found.multipliers > 0).all()
    )
    if feasible:
        assert (D @ found.p).min() >= 1 - 1e-9
        np.testing.assert_allclose(multiplied, found.p, atol=1e-9 * max(1, np.linalg.norm(found.p)))
    else:
        assert found.multipliers.sum() == pytest.approx(1) and np.linalg.norm(multiplied) < 1e-9


def test_too_few_steps_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    counts, relevance = single_token(40, 20, 5, 6, seed=1)
    E = np.random.default_rng(0).standard_normal((20, 30))
    monkeypatch.setattr(margin_module, "STEPS", 1)
    assert max_margin(counts, E, (relevance != 0)[counts.matrix.indices]).status == "stopped early"


def test_a_solver_that_stops_early_says_so() -> None:
    counts, relevance = single_token(200, 70, 8, 20, seed=3)
    E = np.random.default_rng(0).standard_normal((70, 30))
    result = max_margin(counts, E, (relevance != 0)[counts.matrix.indices], max_seconds=0.0)
    assert result.status == "stopped early" and result.smallest_margin < 1


def test_bad_input_is_named() -> None:
    counts = Counts.from_matrix([[1, 1, 0]], [1])
    with pytest.raises(InputError, match="do not fit"):
        max_margin(counts, np.eye(3), np.ones(3, bool))
    with pytest.raises(InputError, match="not finite"):
        max_margin(counts, np.full((3, 2), np.nan), np.ones(2, bool))
