"""Every face of tiny data sets, one by one, by the definitions and SciPy alone: where the flow ends must be one that is certified.

Nothing here is shared with the code under test but the data: L_S is written out per document, its minima are SciPy's, the
max-margin problem with equalities is solved by SLSQP, and the signs of the pairs come from the formula of docs/theory.md.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.linalg import null_space, orth
from scipy.optimize import minimize

from tokensieve.text.counts import Counts
from tokensieve.theory.claims import Attended
from tokensieve.theory.flow.solve import gradient_flow
from tokensieve.theory.limit.certify import FlowLimit
from tokensieve.theory.settings import VerifySettings

Face = tuple[tuple[int, ...], ...]


class Tiny:
    """Three documents over five types in d dimensions, drawn from a seed; with odd ones the second contradicts the first."""

    def __init__(self, seed: int, d: int) -> None:
        rng = np.random.default_rng(seed)
        held = [rng.choice(5, rng.integers(2, 4), replace=False) for _ in range(3)]
        self.matrix = np.zeros((3, 5))
        for k, types in enumerate(held):
            self.matrix[k, types] = rng.integers(1, 3, len(types))
        self.y = rng.choice([-1.0, 1.0], 3)
        if seed % 2:
            self.matrix[1], self.y[1] = self.matrix[0] > 0, -self.y[0]
        self.E, self.w = rng.standard_normal((5, d)), 2 * rng.standard_normal(5)
        self.p = 0.3 * rng.standard_normal(d)
        self.counts = Counts.from_matrix(self.matrix, ((self.y + 1) / 2).astype(int).tolist())

    def faces(self) -> list[Face]:
        """Every choice of types, closed: what is equal on V^⊥ to a chosen type is chosen too."""
        parts = [
            [c for k in range(1, len(held) + 1) for c in itertools.combinations(held.tolist(), k)]
            for held in map(np.flatnonzero, self.matrix)
        ]
        return [face for face in itertools.product(*parts) if self.closed(face)]

    def spaces(self, face: Face) -> tuple[np.ndarray, np.ndarray]:
        """Orthonormal bases of V and of V^⊥."""
        rows = [self.E[s] - self.E[chosen[0]] for chosen in face for s in chosen[1:]]
        if not rows:
            return np.zeros((self.E.shape[1], 0)), np.eye(self.E.shape[1])
        return orth(np.array(rows).T), null_space(np.array(rows))

    def closed(self, face: Face) -> bool:
        apart = self.E @ self.spaces(face)[1]
        return not any(
            np.linalg.norm(apart[r] - apart[chosen[0]]) < 1e-9
            for k, chosen in enumerate(face) for r in np.flatnonzero(self.matrix[k]) if r not in chosen
        )  # fmt: skip

    def loss(self, face: Face, z: np.ndarray) -> tuple[float, np.ndarray]:
        """L_S and its gradient."""
        total, slope = 0.0, np.zeros_like(z)
        for k, chosen in enumerate(face):
            held = list(chosen)
            u, w = self.E[held] @ z, self.w[held]
            q = self.matrix[k, held] * np.exp(u - u.max())
            q /= q.sum()
            margin = self.y[k] * (q @ w)
            total += np.logaddexp(0.0, -margin)
            slope -= (
                self.y[k] * np.exp(-np.logaddexp(0.0, margin)) * (q * (w - q @ w)) @ self.E[held]
            )
        return total / len(face), slope / len(face)

    def minima(self, face: Face) -> list[np.ndarray]:
        """(F1): strict local minima of L_S on V, from several starts."""
        V, _ = self.spaces(face)
        if not V.shape[1]:
            return [np.zeros(len(V))]
        found: list[np.ndarray] = []
        for start in np.random.default_rng(0).normal(0, 2, (4, V.shape[1])):
            end = minimize(
                lambda x: self.along(face, V, x),
                start,
                jac=True,
                method="BFGS",
                options={"gtol": 1e-8},
            ).x
            strict = (
                np.abs(end).max() < 25 and np.linalg.eigvalsh(self.bend(face, V, end))[0] > 1e-7
            )
            if strict and all(np.linalg.norm(V @ end - other) > 1e-3 for other in found):
                found.append(V @ end)
        return found

    def along(self, face: Face, V: np.ndarray, x: np.ndarray) -> tuple[float, np.ndarray]:
        """L_S on V."""
        value, slope = self.loss(face, V @ x)
        return value, V.T @ slope

    def bend(self, face: Face, V: np.ndarray, x: np.ndarray, h: float = 1e-4) -> np.ndarray:
        """Hessian of L_S on V, by differences of the gradient."""
        rows = [
            (self.along(face, V, x + s)[1] - self.along(face, V, x - s)[1]) / (2 * h)
            for s in h * np.eye(len(x))
        ]
        return (np.array(rows) + np.array(rows).T) / 2

    def certified(self, face: Face) -> str:
        """ "point", "direction" or "" for a face without (F1) to (F3); "pulled" where a sign decides that is not checked here."""
        minima = self.minima(face)
        pairs = [
            (k, c[0], r)
            for k, c in enumerate(face)
            for r in np.flatnonzero(self.matrix[k])
            if r not in c
        ]
        if not minima:
            return ""
        if not pairs:
            return "point"
        _, outside = self.spaces(face)
        D = np.array([(self.E[s] - self.E[r]) @ outside for _, s, r in pairs])
        bound = {"type": "ineq", "fun": lambda q: D @ q - 1, "jac": lambda q: D}
        found = minimize(
            lambda q: q @ q / 2, D.sum(axis=0), jac=lambda q: q, constraints=[bound], method="SLSQP"
        )
        if not found.success or (D @ found.x).min() < 1 - 1e-6:
            return ""
        tight = D @ found.x < 1 + 1e-4
        _, same = np.unique(
            D.round(9), axis=0, return_inverse=True
        )  # pairs with the same D are one pair
        for z in minima:
            K = np.bincount(same.ravel(), [self.force(face, z, *pair) for pair in pairs])
            if (K[same.ravel()[tight]] > 0).all():
                return "direction"
        return "pulled"

    def force(self, face: Face, z: np.ndarray, k: int, s: int, r: int) -> float:
        """K_{X,r} = σ(−y f*_X) y (f*_X − w_r) c_r e^{E_r·z} / (n Z_X)."""
        chosen = list(face[k])
        weights = self.matrix[k, chosen] * np.exp(self.E[chosen] @ z)
        f, y = (weights @ self.w[chosen]) / weights.sum(), self.y[k]
        share = self.matrix[k, r] * np.exp(self.E[r] @ z) / weights.sum()
        return float(y * (f - self.w[r]) * share / (1 + np.exp(y * f)) / len(face))


@pytest.mark.slow
@pytest.mark.parametrize(("d", "seed"), list(itertools.product((2, 3), range(10))))
def test_the_flow_ends_on_a_face_that_brute_force_certifies(d: int, seed: int) -> None:
    tiny = Tiny(seed, d)
    limit = FlowLimit.find(
        tiny.counts, tiny.E, tiny.w,
        gradient_flow(tiny.counts, tiny.E, tiny.w, tiny.p, VerifySettings(max_norm=1e4)),
    )  # fmt: skip
    assert limit.fate != "not settled" and limit.face is not None
    m = tiny.counts.matrix
    rows = [slice(*m.indptr[k : k + 2]) for k in range(3)]
    reached = tuple(tuple(sorted(m.indices[row][limit.face.mask[row]].tolist())) for row in rows)
    every = {face: tiny.certified(face) for face in tiny.faces()}
    expected = (
        "point"
        if limit.fate == "converges to a point"
        else "direction"
        if not limit.balance.pulling
        else "pulled"
    )
    assert every[reached] == expected, limit.reason
    assert "" in every.values()


def test_the_gradient_that_brute_force_uses() -> None:
    tiny, z = Tiny(3, 3), np.array([0.3, -0.2, 0.5])
    face = max(tiny.faces(), key=lambda one: sum(map(len, one)))
    there = [
        (tiny.loss(face, z + h)[0] - tiny.loss(face, z - h)[0]) / 2e-6 for h in 1e-6 * np.eye(3)
    ]
    assert tiny.loss(face, z)[1] == pytest.approx(there, abs=1e-8)


def test_the_selection_is_final_where_the_last_document_changes_its_highest_type() -> None:
    tiny = Tiny(0, 3)
    flow = gradient_flow(tiny.counts, tiny.E, tiny.w, tiny.p, VerifySettings(max_norm=1e3))
    limit = FlowLimit.find(tiny.counts, tiny.E, tiny.w, flow)
    assert limit.face is not None
    mask, held = limit.face.mask, tiny.matrix > 0
    chosen = np.zeros_like(held)
    chosen[np.repeat(range(3), np.diff(tiny.counts.matrix.indptr)), tiny.counts.matrix.indices] = (
        mask
    )
    right = []
    for row in range(len(flow.log_time)):
        top = np.argmax(np.where(held, tiny.E @ flow.at(row), -np.inf), axis=1)
        right.append(chosen[np.arange(3), top].all())
    last_wrong = max([k for k, good in enumerate(right) if not good], default=-1)
    assert right[-1]
    found = Attended.of(tiny.counts, tiny.E, tiny.w, flow, mask, np.ones(5, bool))
    assert found.final_from == flow.log_time[last_wrong + 1]
