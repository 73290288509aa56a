"""The shortest z with z·(E_s − E_r) ≥ 1 for a growing list of pairs (s, r): the dual active set of Goldfarb & Idnani.

D. Goldfarb, A. Idnani, "A numerically stable dual method for solving strictly convex quadratic programs", Mathematical
Programming 27 (1983), for min ½‖z‖² s.t. D z ≥ 1, D_i = E_s − E_r. The active pairs A always have independent D_A, with
D_A z = 1 and z = D_Aᵀλ, λ ≥ 0; each step takes in the most violated pair, and lets pairs go whose λ would turn negative. The
dual value never falls, so adding pairs goes on from where the last ones ended.

Tight pairs are far more numerous than tight types: hundreds of types with a score of either m or m + 1 are tied by every pair
among them. Independence keeps a forest of these pairs, at most one fewer than the types. All products are entries of the
types' Gram matrix K = E Eᵀ, so that no step costs more than (types of the pairs)², whatever d.
"""

from __future__ import annotations

import numba
import numpy as np
import scipy.linalg as la

from tokensieve.text.counts import Floats, Ints

# A pair is taken in when its margin falls short of one by more than this.
VIOLATION = 1e-10
# D_e is independent of the active ones when its part outside their span has more than this share of its squared length.
INDEPENDENT = 1e-11

SOLVED, INFEASIBLE, STOPPED = 0, 1, 2


class ActiveSet:
    """The problem and its state: pairs taken in so far, which of them are active, and their multipliers.

    Args:
        E: embeddings, shape (|S|, d).
    """

    def __init__(self, E: Floats) -> None:
        self._E = E
        self._node_of = np.full(len(E), -1, np.int64)
        self._nodes = np.zeros(0, np.int64)
        self._K = np.zeros((0, 0))
        self.pairs = np.zeros((0, 2), np.int64)
        self.multipliers = np.zeros(0)
        self._active = np.zeros(0, np.int64)

    def add(self, pairs: Ints, steps: int) -> tuple[Floats, str]:
        """Take in more pairs and solve: (z, status).

        Args:
            pairs: types (s, r), shape (m, 2); no pair twice.
            steps: changes of the active set after which the status is "stopped early".

        Returns:
            z, shape (d,), and "solved", or "infeasible" (then `multipliers` sum to one and Dᵀλ = 0), or "stopped early".
        """
        self.pairs = np.concatenate([self.pairs, pairs])
        self._take_in(np.setdiff1d(pairs, self._nodes))
        ends = self._node_of[self.pairs]
        try:
            active, lam, status = _run(self._K, ends[:, 0].copy(), ends[:, 1].copy(), self._active, steps)
        except ZeroDivisionError:  # embeddings so close that their Gram matrix does not tell them apart
            self.multipliers = np.zeros(len(self.pairs))
            return np.zeros(self._E.shape[1]), "stopped early"
        if status == SOLVED:
            lam = self._polished(ends[active], lam)
        self._active = active
        self.multipliers = np.zeros(len(self.pairs))
        np.add.at(self.multipliers, active, np.maximum(lam, 0.0))
        if status == INFEASIBLE:
            self.multipliers /= self.multipliers.sum()
            return np.zeros(self._E.shape[1]), "infeasible"
        flow = np.bincount(ends[active, 0], lam, len(self._nodes)) - np.bincount(ends[active, 1], lam, len(self._nodes))
        return np.asarray(flow @ self._E[self._nodes]), "solved" if status == SOLVED else "stopped early"

    def _take_in(self, types: Ints) -> None:
        """New types: their rows of the Gram matrix."""
        if not len(types):
            return
        self._node_of[types] = len(self._nodes) + np.arange(len(types))
        corner = self._E[types] @ self._E[self._nodes].T
        self._K = np.block([[self._K, corner.T], [corner, self._E[types] @ self._E[types].T]])
        self._nodes = np.concatenate([self._nodes, types])

    def _polished(self, ends: Ints, lam: Floats) -> Floats:
        """λ of D_A D_Aᵀλ = 1 to rounding: solved afresh, with two steps of refinement in the space of z; as it was where nearly
        equal embeddings leave no factor."""
        D = self._E[self._nodes[ends[:, 0]]] - self._E[self._nodes[ends[:, 1]]]
        try:
            factor = la.cho_factor(_gram(self._K, ends[:, 0].copy(), ends[:, 1].copy()), lower=True)
        except la.LinAlgError:
            return lam
        lam = la.cho_solve(factor, np.ones(len(D)))
        for _ in range(2):
            lam += la.cho_solve(factor, 1 - D @ (D.T @ lam))
        return np.asarray(lam)


@numba.njit(cache=True)
def _run(K: Floats, first: Ints, second: Ints, warm: Ints, steps: int) -> tuple[Ints, Floats, int]:
    """Active pairs, their λ (of an infeasible problem the Farkas multipliers), and the status."""
    m, size = len(first), len(K)
    room = min(m, size) + 1
    active, lam, L = np.zeros(room, np.int64), np.zeros(room), np.zeros((room, room))
    inside, q = np.zeros(m, np.bool_), 0
    for e in warm:
        h = _products(K, first, second, active[:q], first[e], second[e])
        y = _forward(L, q, h)
        curvature = K[first[e], first[e]] - 2 * K[first[e], second[e]] + K[second[e], second[e]] - y @ y
        L[q, :q], L[q, q] = y, np.sqrt(curvature)
        active[q], inside[e], q = e, True, q + 1
    lam[:q] = _backward(L, q, _forward(L, q, np.ones(q)))
    u = _scores(K, first, second, active[:q], lam[:q])
    for _ in range(steps):
        worst, lowest = -1, 1 - VIOLATION / 2
        for e in range(m):
            if not inside[e] and u[first[e]] - u[second[e]] < lowest:
                worst, lowest = e, u[first[e]] - u[second[e]]
        if worst < 0:
            return active[:q], lam[:q], SOLVED
        s, r = first[worst], second[worst]
        length, weight = K[s, s] - 2 * K[s, r] + K[r, r], 0.0
        while True:
            y = _forward(L, q, _products(K, first, second, active[:q], s, r))
            fall = _backward(L, q, y)
            curvature = length - y @ y
            step, leaver = np.inf, -1
            for j in range(q):
                if fall[j] > 0 and lam[j] < step * fall[j]:
                    step, leaver = lam[j] / fall[j], j
            enters = False
            if curvature > INDEPENDENT * length:
                full = (1 - (u[s] - u[r])) / curvature
                if full <= step:
                    step, enters = full, True
            elif leaver < 0:
                lam[:q] = -fall
                active[q], lam[q] = worst, 1.0
                return active[: q + 1], lam[: q + 1], INFEASIBLE
            if curvature > INDEPENDENT * length:
                for i in range(size):
                    u[i] += step * (K[s, i] - K[r, i])
                u -= step * _scores(K, first, second, active[:q], fall)
            lam[:q] -= step * fall
            weight += step
            if enters:
                L[q, :q], L[q, q] = y, np.sqrt(curvature)
                active[q], lam[q], inside[worst], q = worst, weight, True, q + 1
                break
            inside[active[leaver]] = False
            _remove(L, q, leaver)
            active[leaver : q - 1], lam[leaver : q - 1] = active[leaver + 1 : q].copy(), lam[leaver + 1 : q].copy()
            q -= 1
    return active[:q], lam[:q], STOPPED


@numba.njit(cache=True)
def _products(K: Floats, first: Ints, second: Ints, active: Ints, s: int, r: int) -> Floats:
    """D_A (E_s − E_r)."""
    out = np.empty(len(active))
    for j in range(len(active)):
        a, b = first[active[j]], second[active[j]]
        out[j] = K[s, a] - K[s, b] - K[r, a] + K[r, b]
    return out


@numba.njit(cache=True)
def _gram(K: Floats, first: Ints, second: Ints) -> Floats:
    """D Dᵀ of all pairs."""
    out, every = np.empty((len(first), len(first))), np.arange(len(first))
    for j in range(len(first)):
        out[j] = _products(K, first, second, every, first[j], second[j])
    return out


@numba.njit(cache=True)
def _scores(K: Floats, first: Ints, second: Ints, active: Ints, weights: Floats) -> Floats:
    """Scores of all types under z = D_Aᵀ weights."""
    flow = np.zeros(len(K))
    for j in range(len(active)):
        flow[first[active[j]]] += weights[j]
        flow[second[active[j]]] -= weights[j]
    out = np.zeros(len(K))
    for i in range(len(K)):
        if flow[i] != 0.0:
            out += flow[i] * K[i]
    return out


@numba.njit(cache=True)
def _forward(L: Floats, q: int, b: Floats) -> Floats:
    """x of L x = b."""
    x = np.empty(q)
    for i in range(q):
        total = b[i]
        for j in range(i):
            total -= L[i, j] * x[j]
        x[i] = total / L[i, i]
    return x


@numba.njit(cache=True)
def _backward(L: Floats, q: int, b: Floats) -> Floats:
    """x of Lᵀ x = b."""
    x = b[:q].copy()
    for i in range(q - 1, -1, -1):
        x[i] /= L[i, i]
        for j in range(i):
            x[j] -= L[i, j] * x[i]
    return x


@numba.njit(cache=True)
def _remove(L: Floats, q: int, gone: int) -> None:
    """L of the same Gram matrix without one row and column: shift up, rotate the rest back to a triangle."""
    for i in range(gone, q - 1):
        for j in range(i + 2):
            L[i, j] = L[i + 1, j]
    for k in range(gone, q - 1):
        a, b = L[k, k], L[k, k + 1]
        radius = np.hypot(a, b)
        c, s = a / radius, b / radius
        for i in range(k, q - 1):
            x, y = L[i, k], L[i, k + 1]
            L[i, k], L[i, k + 1] = c * x + s * y, c * y - s * x
