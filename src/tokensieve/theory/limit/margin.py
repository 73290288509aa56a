"""The max-margin problem of a token selection, with a certificate.

Theorem 4.3 of Wu, Shevchenko, Oymak, Mondelli (NeurIPS 2025): if p_t/‖p_t‖ converges, its limit is the direction of

    p_∞ = argmin ½‖p‖²   s.t.  pᵀ(E_s − E_r) ≥ 1  for all s ∈ S_X, r ∈ X ∖ S_X, all documents X,

over distinct token types. S_X is what p_∞ itself selects, so that the types of one S_X have equal scores; the problem is therefore
solved on V^⊥, V the span of their differences, where these are exactly zero. Dual: maximise Σ_i λ_i − ½‖Dᵀλ‖² over λ ≥ 0, with
D_i the part of E_s − E_r in V^⊥; at the optimum p_∞ = Dᵀλ.

Only pairs that a solution violated are ever written down. They go to a dual active set; what it cannot solve or prove to rounding
goes to least distance programming. The certificate is recomputed from scratch over all constraints. "Infeasible" is a verdict only
with a convex combination of the D_i that is zero to rounding: a merely short one proves no more than a large ‖p‖.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numba
import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray
from scipy.optimize import nnls

from tokensieve.errors import InputError
from tokensieve.text.counts import Counts, Floats, Ints
from tokensieve.theory.flow.split import Face
from tokensieve.theory.geometry import coordinates

# A pair is taken in when its margin falls short of one by more than this.
_VIOLATION = 1e-10
# Changes of the active set before it gives up.
STEPS = 200_000
# Rounding, relative to the longest embedding: of ‖Dᵀλ‖ with Σλ = 1 (a proof of infeasibility), and of D_i (equal embeddings).
_PROOF = 1e-13
_SOLVED, _INFEASIBLE, _STOPPED = 0, 1, 2


@dataclass(frozen=True)
class Margin:
    """Solution and certificate of a max-margin problem.

    Attributes:
        status: "solved"; "infeasible" (no p separates the selection: `farkas` proves it); "nothing to separate" (every
            document selects all of its types, so p_∞ = 0); "stopped early" (figures are of the last iterate).
        p: p_∞, shape (d,); zeros unless status is "solved" or "stopped early".
        margin: 1/‖p_∞‖; 0 when infeasible, inf with nothing to separate.
        pairs, multipliers: types (s, r), shape (m, 2), and λ ≥ 0 of the pairs that carry a multiplier; of an infeasible problem
            these are the Farkas multipliers, which sum to one.
        primal: ½‖p‖² after scaling p up until every constraint holds: an upper bound on the optimum.
        dual: (Σλ)²/(2‖Dᵀλ‖²): a lower bound on it for any λ ≥ 0.
        duality_gap: (primal − dual)/primal.
        kkt_residual: largest of ‖p − Dᵀλ‖/‖p‖, the shortfall max(0, 1 − smallest margin), Σ λ_i |D_i p − 1| / Σ λ_i.
        smallest_margin: min of pᵀ(E_s − E_r) over every constraint of every document.
        farkas: for an infeasible problem ‖Dᵀλ‖ / max‖E_s‖ with Σλ = 1, λ ≥ 0: zero up to rounding, while every p would need
            pᵀDᵀλ ≥ 1; nan otherwise.
        constraints, rounds: pairs that were ever written down, and rounds of that; ties: dim V.
    """

    status: str
    p: Floats
    margin: float
    pairs: Ints
    multipliers: Floats
    primal: float
    dual: float
    duality_gap: float
    kkt_residual: float
    smallest_margin: float
    farkas: float
    constraints: int
    rounds: int
    ties: int

    def to_dict(self) -> dict[str, str | float | int | None]:
        """The certificate, ready for JSON (undefined figures are None)."""
        out: dict[str, str | float | int | None] = {
            "status": self.status,
            "support_pairs": len(self.pairs),
            "constraints": self.constraints,
            "ties": self.ties,
        }
        names = ("margin", "primal", "dual", "duality_gap", "kkt_residual", "smallest_margin", "farkas")
        figures = {name: float(getattr(self, name)) for name in names}
        return out | {name: value if math.isfinite(value) else None for name, value in figures.items()}


def max_margin(
    counts: Counts, E: Floats, selected: NDArray[np.bool_], near: Floats | None = None, max_seconds: float = math.inf
) -> Margin:
    """Solve the max-margin problem of a selection.

    Args:
        counts: n documents over |S| types.
        E: embeddings, shape (|S|, d); any d.
        selected: for each stored entry of counts.matrix, whether its type is selected in its document, shape (nnz,);
            types selected together have equal scores. Documents with nothing selected constrain nothing.
        near: a direction to begin with, shape (d,), such as the end of a flow; it saves rounds and changes no result.
        max_seconds: wall time after which no further round is begun; the status is then "stopped early".

    Raises:
        InputError: shapes that do not agree, or embeddings that are not finite.
    """
    m, started = counts.matrix, time.monotonic()
    if selected.shape != (m.nnz,) or E.shape[0] != counts.n_types:
        shapes = f"selection {selected.shape} and embeddings {E.shape}"
        raise InputError(f"{shapes} do not fit {m.nnz} entries of {counts.n_types} types")
    if not np.isfinite(E).all():
        raise InputError("embeddings are not finite: use a smaller step size")
    problem = _Problem(counts, E, np.ascontiguousarray(selected, dtype=np.bool_))
    z = np.zeros(problem.E.shape[1]) if near is None else problem.basis.T @ near
    # So short that every margin is below one.
    z = z / max(4 * float(np.abs(problem.E @ z).max(initial=0.0)), np.finfo(float).tiny)
    active, lam, status, rounds = ActiveSet(problem.E), np.zeros(0), "nothing to separate", 0
    fresh = problem.violated(z)
    while len(fresh):
        rounds += 1
        z, lam, status = _solve(active, problem.E, fresh)
        fresh = problem.violated(z) if status == "solved" else fresh[:0]
        if len(fresh) and (time.monotonic() - started > max_seconds or rounds == 200):
            status = "stopped early"
            break
    return _certify(problem, (active.pairs, z, lam), status, rounds)


def selection_of(counts: Counts, types: dict[int, list[int]]) -> NDArray[np.bool_]:
    """A selection written by hand: {document: its selected types} → the mask that `max_margin` reads.

    Raises:
        InputError: a document or a type that is not there.
    """
    m = counts.matrix
    mask = np.zeros(m.nnz, bool)
    for k, chosen in types.items():
        if not 0 <= k < counts.n_documents:
            raise InputError(f"document {k} does not exist: there are {counts.n_documents}")
        held = m.indices[m.indptr[k] : m.indptr[k + 1]]
        absent = sorted(set(chosen) - set(held.tolist()))
        if absent:
            raise InputError(f"document {k} does not contain type {absent[0]}: select only types that occur in it")
        mask[m.indptr[k] : m.indptr[k + 1]] = np.isin(held, chosen)
    return mask


class _Problem:
    """All constraints, implicit, on V^⊥, where types selected together have one embedding: E, shape (|S|, r − k)."""

    def __init__(self, counts: Counts, E: Floats, selected: NDArray[np.bool_]) -> None:
        reduced, basis = coordinates(E)
        group, inside = Face.ties(counts, reduced, selected)
        outside = np.ascontiguousarray(np.linalg.qr(inside, mode="complete")[0][:, inside.shape[1] :])
        _, first, where = np.unique(group, return_index=True, return_inverse=True)
        self._lead = first[where]
        self.E = np.asarray((reduced @ outside)[self._lead])
        self.basis = outside if basis is None else basis @ outside
        self.ties = inside.shape[1]
        self._documents = (counts.matrix.indptr, counts.matrix.indices, selected)

    def closest(self, z: Floats) -> tuple[Ints, Floats]:
        """Each document's lowest selected and highest other type, shape (j, 2), where it has both; and zᵀ(E_s − E_r)."""
        u = self.E @ z
        low, high = _extremes(*self._documents, u)
        both = (low >= 0) & (high >= 0)
        return np.stack([low[both], high[both]], axis=1), u[low[both]] - u[high[both]]

    def violated(self, z: Floats) -> Ints:
        """Of these pairs, up to 20,000 whose margin is smallest, as long as it is below 1 − _VIOLATION; none twice."""
        pairs, gaps = self.closest(z)
        once = np.unique(self._lead[pairs], axis=0, return_index=True)[1]
        worst = once[np.argsort(gaps[once], kind="stable")[:20_000]]
        return pairs[worst[gaps[worst] < 1 - _VIOLATION]]


@numba.njit(cache=True)
def _extremes(indptr: Ints, indices: Ints, selected: NDArray[np.bool_], u: Floats) -> tuple[Ints, Ints]:
    """Of each document, the selected type of lowest score and the unselected type of highest; −1 where there is none."""
    n = len(indptr) - 1
    low = np.full(n, -1, np.int64)
    high = np.full(n, -1, np.int64)
    for k in range(n):
        for i in range(indptr[k], indptr[k + 1]):
            s = indices[i]
            if selected[i]:
                if low[k] < 0 or u[s] < u[low[k]]:
                    low[k] = s
            elif high[k] < 0 or u[s] > u[high[k]]:
                high[k] = s
    return low, high


def _solve(active: ActiveSet, E: Floats, fresh: Ints) -> tuple[Floats, Floats, str]:
    """Shortest z over the pairs of the active set and fresh ones: (z, λ, status); λ that proves infeasibility sums to one."""
    longest = float(np.linalg.norm(E, axis=1).max())
    equal = np.linalg.norm(E[fresh[:, 0]] - E[fresh[:, 1]], axis=1) <= _PROOF * longest
    if equal.any():
        active.pairs = np.concatenate([active.pairs, fresh])
        lam = np.concatenate([np.zeros(len(active.pairs) - len(fresh)), equal / equal.sum()])
        return np.zeros(E.shape[1]), lam, "infeasible"
    z, status = active.add(fresh, STEPS)
    lam, D = active.multipliers, E[active.pairs[:, 0]] - E[active.pairs[:, 1]]
    if status == "solved" and (D @ z).min() >= 1 - 2 * _VIOLATION:
        return z, lam, status
    if status == "infeasible" and (proof := _proof(D, lam, longest)) is not None:
        return z, proof, status
    if len(D) > 3_000:  # least distance programming would take too long
        return z, lam, "stopped early"
    # λ ≥ 0 of min ½‖z‖² s.t. D z ≥ 1, z = Dᵀλ (Lawson & Hanson 1974, ch. 23), rows of unit length; very long if infeasible.
    lengths = np.linalg.norm(D, axis=1)
    A = np.vstack([(D / lengths[:, None]).T, lengths.min() / lengths])
    try:
        x, _ = nnls(A, np.append(np.zeros(len(A) - 1), 1.0), maxiter=50 * len(D))
    except RuntimeError:
        return z, lam, "stopped early"
    lam = x / max(float(1 - A[-1] @ x), np.finfo(float).tiny) / lengths.min() / lengths
    proof = _proof(D, lam, longest)
    return (D.T @ lam, lam, "solved") if proof is None else (np.zeros(E.shape[1]), proof, "infeasible")


def _proof(D: Floats, lam: Floats, longest: float) -> Floats | None:
    """A convex combination of some D_i that is zero to rounding, from multipliers that are nearly one; None if there is none."""
    if not np.isfinite(lam).all() or lam.sum() <= 0:
        return None
    held = np.flatnonzero(lam > 1e-9 * lam.max())  # less is rounding
    rows = D[held]
    left, _, _ = np.linalg.svd(rows, full_matrices=True)
    polished = left[:, min(len(held), D.shape[1]) - (len(held) <= D.shape[1]) :]
    for weights in (lam[held], polished @ (polished.T @ lam[held])):
        weights = np.maximum(weights, 0.0)
        if weights.sum() > 0 and np.linalg.norm(rows.T @ (weights / weights.sum())) <= _PROOF * longest:
            out = np.zeros(len(lam))
            out[held] = weights / weights.sum()
            return out
    return None


def _certify(problem: _Problem, found: tuple[Ints, Floats, Floats], status: str, rounds: int) -> Margin:
    """Figures of the certificate, from (pairs, z, λ) and all constraints, whatever produced them."""
    pairs, z, lam = found
    support, weights = pairs[lam > 0], lam[lam > 0]
    D = problem.E[support[:, 0]] - problem.E[support[:, 1]]
    shadow = D.T @ weights
    margin, primal, dual, gap, residual, smallest, farkas = 0.0, math.inf, math.inf, *(4 * [math.nan])
    if not rounds:
        margin, primal, dual, gap, residual, smallest = math.inf, 0.0, 0.0, 0.0, 0.0, math.inf
    elif status == "infeasible" or not len(support) or not z.any():
        z = np.zeros_like(z)
        farkas = float(np.linalg.norm(shadow)) / (float(np.linalg.norm(problem.E, axis=1).max()) or 1.0)
    else:
        norm, total, smallest = float(np.linalg.norm(z)), float(weights.sum()), float(problem.closest(z)[1].min())
        margin = 1 / norm
        primal = (norm / smallest) ** 2 / 2 if smallest > 0 else math.inf
        dual = (total / float(np.linalg.norm(shadow))) ** 2 / 2
        off = float(weights @ np.abs(D @ z - 1)) / total
        residual = max(float(np.linalg.norm(z - shadow)) / norm, max(0.0, 1 - smallest), off)
        gap = (primal - dual) / primal if math.isfinite(primal) else math.inf
        if status == "solved" and max(gap, residual) > 1e-6:
            status = "stopped early"
    return Margin(
        status=status,
        p=problem.basis @ z,
        margin=margin,
        pairs=support,
        multipliers=weights,
        primal=primal,
        dual=dual,
        duality_gap=gap,
        kkt_residual=residual,
        smallest_margin=smallest,
        farkas=farkas,
        constraints=len(pairs),
        rounds=rounds,
        ties=problem.ties,
    )


class ActiveSet:
    """The shortest z with z·(E_s − E_r) ≥ 1 for a growing list of pairs (s, r): the dual active set of Goldfarb & Idnani.

    D. Goldfarb, A. Idnani, "A numerically stable dual method for solving strictly convex quadratic programs", Mathematical
    Programming 27 (1983), for min ½‖z‖² s.t. D z ≥ 1, D_i = E_s − E_r. The active pairs A always have independent D_A, with
    D_A z = 1 and z = D_Aᵀλ, λ ≥ 0; each step takes in the most violated pair, and lets pairs go whose λ would turn negative. The
    dual value never falls, so adding pairs goes on from where the last ones ended.

    Independence keeps a forest of tight pairs, at most one fewer than the types. All products are entries of the types' Gram matrix
    K = E Eᵀ, so that no step costs more than (types of the pairs)², whatever d. E has shape (|S|, d).
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
        """Take in more pairs (s, r), none twice, and solve: (z, status).

        The status is "solved", "infeasible" (then `multipliers` sum to one and Dᵀλ = 0), or "stopped early" after so many steps.
        """
        self.pairs = np.concatenate([self.pairs, pairs])
        types = np.setdiff1d(pairs, self._nodes)
        if len(types):  # their rows of the Gram matrix
            self._node_of[types] = len(self._nodes) + np.arange(len(types))
            corner = self._E[types] @ self._E[self._nodes].T
            self._K = np.block([[self._K, corner.T], [corner, self._E[types] @ self._E[types].T]])
            self._nodes = np.concatenate([self._nodes, types])
        ends = self._node_of[self.pairs]
        try:
            active, lam, status = _run(self._K, ends[:, 0].copy(), ends[:, 1].copy(), self._active, steps)
        except ZeroDivisionError:  # embeddings so close that their Gram matrix does not tell them apart
            self.multipliers = np.zeros(len(self.pairs))
            return np.zeros(self._E.shape[1]), "stopped early"
        if status == _SOLVED:
            lam = self._polished(ends[active], lam)
        self._active = active
        self.multipliers = np.zeros(len(self.pairs))
        np.add.at(self.multipliers, active, np.maximum(lam, 0.0))
        if status == _INFEASIBLE:
            self.multipliers /= self.multipliers.sum()
            return np.zeros(self._E.shape[1]), "infeasible"
        flow = np.bincount(ends[active, 0], lam, len(self._nodes)) - np.bincount(ends[active, 1], lam, len(self._nodes))
        return np.asarray(flow @ self._E[self._nodes]), "solved" if status == _SOLVED else "stopped early"

    def _polished(self, ends: Ints, lam: Floats) -> Floats:
        """λ of D_A D_Aᵀλ = 1 to rounding; as it was where nearly equal embeddings leave no factor."""
        D = self._E[self._nodes[ends[:, 0]]] - self._E[self._nodes[ends[:, 1]]]
        try:
            factor = la.cho_factor(D @ D.T, lower=True)
        except la.LinAlgError:
            return lam
        lam = la.cho_solve(factor, np.ones(len(D)))
        for _ in range(2):
            lam += la.cho_solve(factor, 1 - D @ (D.T @ lam))
        return np.asarray(lam)


@numba.njit(cache=True)
def _run(K: Floats, first: Ints, second: Ints, warm: Ints, steps: int) -> tuple[Ints, Floats, int]:
    """Active pairs, their λ (of an infeasible problem the Farkas multipliers), and the status."""
    m, room = len(first), min(len(first), len(K)) + 1
    active, lam, L = np.zeros(room, np.int64), np.zeros(room), np.zeros((room, room))
    inside, q = np.zeros(m, np.bool_), 0
    for e in warm:
        apart = K[first[e]] - K[second[e]]
        y = _forward(L, q, apart[first[active[:q]]] - apart[second[active[:q]]])
        curvature = apart[first[e]] - apart[second[e]] - y @ y
        L[q, :q], L[q, q] = y, np.sqrt(curvature)
        active[q], inside[e], q = e, True, q + 1
    lam[:q] = _backward(L, q, _forward(L, q, np.ones(q)))
    u = _scores(K, first[active[:q]], second[active[:q]], lam[:q])
    for _ in range(steps):
        worst, lowest = -1, 1 - _VIOLATION / 2
        for e in range(m):
            if not inside[e] and u[first[e]] - u[second[e]] < lowest:
                worst, lowest = e, u[first[e]] - u[second[e]]
        if worst < 0:
            return active[:q], lam[:q], _SOLVED
        s, r = first[worst], second[worst]
        apart = K[s] - K[r]
        length, weight = apart[s] - apart[r], 0.0
        while True:
            y = _forward(L, q, apart[first[active[:q]]] - apart[second[active[:q]]])
            fall = _backward(L, q, y)
            curvature = length - y @ y
            # Independent of the active pairs: more than rounding of the squared length lies outside their span.
            independent = curvature > 1e-11 * length
            step, leaver = np.inf, -1
            for j in range(q):
                if fall[j] > 0 and lam[j] < step * fall[j]:
                    step, leaver = lam[j] / fall[j], j
            enters = False
            if independent:
                full = (1 - (u[s] - u[r])) / curvature
                if full <= step:
                    step, enters = full, True
            elif leaver < 0:
                lam[:q] = -fall
                active[q], lam[q] = worst, 1.0
                return active[: q + 1], lam[: q + 1], _INFEASIBLE
            if independent:
                u += step * (apart - _scores(K, first[active[:q]], second[active[:q]], fall))
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
    return active[:q], lam[:q], _STOPPED


@numba.njit(cache=True)
def _scores(K: Floats, first: Ints, second: Ints, weights: Floats) -> Floats:
    """Scores of all types under z = Dᵀ weights, over some pairs."""
    flow = np.zeros(len(K))
    for j in range(len(first)):
        flow[first[j]] += weights[j]
        flow[second[j]] -= weights[j]
    out = np.zeros(len(K))
    for i in range(len(K)):  # in one order, whatever the threads
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
