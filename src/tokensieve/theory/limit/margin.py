"""The max-margin problem of a token selection, with a certificate.

Theorem 4.3 of Wu, Shevchenko, Oymak, Mondelli (NeurIPS 2025): if p_t/‖p_t‖ converges, its limit is the direction of

    p_∞ = argmin ½‖p‖²   s.t.  pᵀ(E_s − E_r) ≥ 1  for all s ∈ S_X, r ∈ X ∖ S_X, all documents X,

over distinct token types, so that a type that occurs in a document twice never constrains against itself. S_X is what p_∞ itself
selects, so that the types of one S_X have equal scores: pᵀ(E_s − E_{s'}) = 0 for all s, s' ∈ S_X. The problem is therefore solved
on V^⊥, V the span of these differences, where they are exactly zero. Dual: maximise Σ_i λ_i − ½‖Dᵀλ‖² over λ ≥ 0, with D_i the
part of E_s − E_r in V^⊥; at the optimum p_∞ = Dᵀλ.

Constraints are generated: only pairs that a solution violated are ever written down. They go to a dual active set, which takes
them in where the last ones left it; what it cannot solve or prove to rounding goes to Lawson & Hanson's least distance programming
(few pairs) or to Clarabel's interior point. The certificate is recomputed from scratch over all constraints. "Infeasible" is a
verdict only with a convex combination of the D_i that is zero to rounding: a merely short one proves no more than a large ‖p‖.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import clarabel
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import nnls

from tokensieve.errors import InputError
from tokensieve.text.counts import Counts, Floats, Ints
from tokensieve.theory.geometry import complement, coordinates, differences, extremes, linked, span_of
from tokensieve.theory.limit.active_set import VIOLATION, ActiveSet

# Pairs taken in per round, the worst first; and changes of the active set before it gives up.
PAIRS, STEPS = 20_000, 200_000
# Rounding, relative to the longest embedding: of ‖Dᵀλ‖ with Σλ = 1 (a proof of infeasibility), and of D_i (equal embeddings).
PROOF = 1e-13
# Up to this many pairs least distance programming takes over from the active set.
FEW = 3_000
# "Solved" means a duality gap and a KKT residual of at most this.
SOLVED = 1e-6
# An interior point leaves every multiplier positive; below this share of the largest they mean zero.
FAINT = 1e-9


@dataclass(frozen=True)
class Margin:
    """Solution and certificate of a max-margin problem.

    Attributes:
        status: "solved"; "infeasible" (no p separates the selection: `farkas` proves it); "nothing to separate" (every
            document selects all of its types, so p_∞ = 0); "stopped early" (figures are of the last iterate).
        p: p_∞, shape (d,); zeros unless status is "solved" or "stopped early".
        margin: 1/‖p_∞‖, the smallest score gap of the unit direction; 0 when infeasible, inf with nothing to separate.
        pairs: types (s, r) of the pairs that carry a multiplier, shape (m, 2).
        multipliers: λ ≥ 0 of these pairs, shape (m,); of an infeasible problem the Farkas multipliers, which sum to one.
        primal: ½‖p‖² after scaling p up until every constraint holds: an upper bound on the optimum.
        dual: (Σλ)²/(2‖Dᵀλ‖²): a lower bound on it for any λ ≥ 0.
        duality_gap: (primal − dual)/primal.
        kkt_residual: largest of ‖p − Dᵀλ‖/‖p‖, the shortfall max(0, 1 − smallest margin), Σ λ_i |D_i p − 1| / Σ λ_i.
        smallest_margin: min of pᵀ(E_s − E_r) over every constraint of every document.
        farkas: for an infeasible problem ‖Dᵀλ‖ / max‖E_s‖ with Σλ = 1, λ ≥ 0: zero up to rounding, while every p would need
            pᵀDᵀλ ≥ 1; nan otherwise.
        constraints: pairs that were ever written down.
        rounds: rounds of constraint generation.
        ties: dimension of V, the number of independent equalities.
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
        names = ("margin", "primal", "dual", "duality_gap", "kkt_residual", "smallest_margin", "farkas")
        whole: dict[str, str | float | int | None]
        whole = {
            "status": self.status,
            "support_pairs": len(self.pairs),
            "constraints": self.constraints,
            "ties": self.ties,
        }
        for name in names:
            value = float(getattr(self, name))
            whole[name] = value if math.isfinite(value) else None
        return whole


def max_margin(
    counts: Counts,
    E: Floats,
    selected: NDArray[np.bool_],
    near: Floats | None = None,
    max_rounds: int = 200,
    max_seconds: float = math.inf,
) -> Margin:
    """Solve the max-margin problem of a selection.

    Args:
        counts: n documents over |S| types.
        E: embeddings, shape (|S|, d); any d, larger or smaller than |S|.
        selected: for each stored entry of counts.matrix, whether its type is selected in its document, shape (nnz,);
            types selected together have equal scores. Documents with nothing selected constrain nothing.
        near: a direction to begin with, shape (d,), such as the end of a flow; it saves rounds and changes no result.
        max_rounds: rounds of constraint generation before the status is "stopped early".
        max_seconds: wall time after which no further round is begun; the status is then "stopped early".

    Raises:
        InputError: shapes that do not agree, or embeddings that are not finite.
    """
    m = counts.matrix
    if selected.shape != (m.nnz,) or E.shape[0] != counts.n_types:
        raise InputError(
            f"selection {selected.shape} and embeddings {E.shape} do not fit {m.nnz} entries of {counts.n_types} types"
        )
    if not np.isfinite(E).all():
        raise InputError("embeddings are not finite: use a smaller step size")
    problem, basis = _outside_ties(counts, E, np.ascontiguousarray(selected, dtype=np.bool_))
    ties = min(E.shape) - basis.shape[1]
    guess = problem.first_guess() if near is None else basis.T @ near
    fresh = problem.violated(problem.short(guess))
    if fresh is None:
        return _empty(E.shape[1], ties)
    active, started = ActiveSet(problem.E), time.monotonic()
    for rounds in range(1, max_rounds + 1):
        z, lam, status = _solve(active, problem.E, fresh, max_seconds - (time.monotonic() - started))
        fresh = problem.violated(z)
        if status == "solved" and fresh is not None and len(fresh):
            if time.monotonic() - started <= max_seconds and rounds < max_rounds:
                continue
            status = "stopped early"
        return _certify(problem, (active.pairs, z, lam), status, basis, (rounds, ties))
    raise InputError(f"max_rounds = {max_rounds}: use at least one round")


def _outside_ties(counts: Counts, E: Floats, selected: NDArray[np.bool_]) -> tuple[_Problem, Floats]:
    """The problem on V^⊥, where types selected together have one embedding, and the orthonormal basis of V^⊥, shape (d, r − k)."""
    reduced, basis = coordinates(E)
    group = linked(counts, selected)
    outside = complement(span_of(differences(reduced, group)))
    _, first, where = np.unique(group, return_index=True, return_inverse=True)
    m = counts.matrix
    problem = _Problem(m.indptr, m.indices, selected, (reduced @ outside)[first[where]], first[where])
    return problem, outside if basis is None else basis @ outside


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
            raise InputError(f"document {k} does not hold type {absent[0]}: select only types that stand in it")
        mask[m.indptr[k] : m.indptr[k + 1]] = np.isin(held, chosen)
    return mask


@dataclass(frozen=True)
class _Problem:
    """All constraints, implicit: documents, who is selected, embeddings on V^⊥, the first type of the same ones."""

    indptr: Ints
    indices: Ints
    selected: NDArray[np.bool_]
    E: Floats
    lead: Ints

    def first_guess(self) -> Floats:
        """Sum over documents of mean selected minus mean unselected embedding."""
        n = len(self.indptr) - 1
        document = np.repeat(np.arange(n), np.diff(self.indptr))
        inside = np.bincount(document, self.selected, n)
        outside = np.bincount(document, ~self.selected, n)
        both = (inside > 0) & (outside > 0)
        share = np.where(self.selected, 1 / np.maximum(inside, 1)[document], -1 / np.maximum(outside, 1)[document])
        return np.asarray(np.bincount(self.indices, share * both[document], len(self.E)) @ self.E)

    def short(self, z: Floats) -> Floats:
        """The same direction, so short that every margin is below one."""
        return np.asarray(z / max(4 * float(np.abs(self.E @ z).max(initial=0.0)), np.finfo(float).tiny))

    def violated(self, z: Floats) -> Ints | None:
        """The worst pair of each document whose margin is below 1 − VIOLATION; None if no document has any pair."""
        low, high = extremes(self.indptr, self.indices, self.selected, self.E @ z)
        both = (low >= 0) & (high >= 0)
        if not both.any():
            return None
        pairs = np.stack([low[both], high[both]], axis=1)
        pairs = pairs[np.unique(self.lead[pairs], axis=0, return_index=True)[1]]
        gaps = _gaps(self.E, pairs, z)
        worst = np.argsort(gaps, kind="stable")[:PAIRS]
        return np.asarray(pairs[worst[gaps[worst] < 1 - VIOLATION]])

    def smallest_margin(self, z: Floats) -> float:
        """min of zᵀ(E_s − E_r) over every constraint, through each document's lowest selected and highest other type."""
        u = self.E @ z
        low, high = extremes(self.indptr, self.indices, self.selected, u)
        both = (low >= 0) & (high >= 0)
        return float(np.min(u[low[both]] - u[high[both]]))


def _differences(E: Floats, pairs: Ints) -> Floats:
    return np.asarray(E[pairs[:, 0]] - E[pairs[:, 1]])


def _gaps(E: Floats, pairs: Ints, z: Floats) -> Floats:
    u = E @ z
    return np.asarray(u[pairs[:, 0]] - u[pairs[:, 1]])


def _solve(active: ActiveSet, E: Floats, fresh: Ints, seconds: float) -> tuple[Floats, Floats, str]:
    """Shortest z over the pairs of the active set and fresh ones: (z, λ, status); λ that proves infeasibility sums to one."""
    longest = float(np.linalg.norm(E, axis=1).max())
    equal = np.linalg.norm(_differences(E, fresh), axis=1) <= PROOF * longest
    if equal.any():
        active.pairs = np.concatenate([active.pairs, fresh])
        lam = np.concatenate([np.zeros(len(active.pairs) - len(fresh)), equal / equal.sum()])
        return np.zeros(E.shape[1]), lam, "infeasible"
    z, status = active.add(fresh, STEPS)
    lam, D = active.multipliers, _differences(E, active.pairs)
    if status == "solved" and (D @ z).min() >= 1 - 2 * VIOLATION:
        return z, lam, status
    if status == "infeasible" and (proof := _proof(D, lam, longest)) is not None:
        return z, proof, status
    lengths = np.linalg.norm(D, axis=1)
    unit = D / lengths[:, None]
    if len(D) <= FEW:
        lam, status = _least_distance(unit, lengths.min() / lengths), "solved"
        lam = lam / lengths.min() / lengths
    else:
        scale = float(lengths.max())
        lam, status = _clarabel(D / scale, seconds)
        lam = np.where(lam < FAINT * lam.max(), 0.0, lam) / scale**2
    proof = _proof(D, lam, longest)
    if proof is not None:
        return np.zeros(E.shape[1]), proof, "infeasible"
    return D.T @ lam, lam, "stopped early" if status == "infeasible" else status


def _proof(D: Floats, lam: Floats, longest: float) -> Floats | None:
    """A convex combination of some D_i that is zero to rounding, from multipliers that are nearly one; None if there is none."""
    if not np.isfinite(lam).all() or lam.sum() <= 0:
        return None
    held = np.flatnonzero(lam > FAINT * lam.max())
    rows = D[held]
    left, _, _ = np.linalg.svd(rows, full_matrices=True)
    polished = left[:, min(len(held), D.shape[1]) - (len(held) <= D.shape[1]) :]
    for weights in (lam[held], polished @ (polished.T @ lam[held])):
        weights = np.maximum(weights, 0.0)
        if weights.sum() > 0 and np.linalg.norm(rows.T @ (weights / weights.sum())) <= PROOF * longest:
            out = np.zeros(len(lam))
            out[held] = weights / weights.sum()
            return out
    return None


def _least_distance(rows: Floats, reach: Floats) -> Floats:
    """λ ≥ 0 of min ½‖z‖² s.t. rows z ≥ reach, z = rowsᵀλ (Lawson & Hanson 1974, ch. 23); of an infeasible problem very long."""
    A = np.vstack([rows.T, reach])
    target = np.zeros(len(A))
    target[-1] = 1.0
    try:
        x, _ = nnls(A, target, maxiter=50 * len(rows))
    except RuntimeError:
        return np.full(len(rows), np.nan)
    residual = max(float(1 - reach @ x), np.finfo(float).tiny)
    return np.asarray(x / residual)


def _clarabel(D: Floats, seconds: float) -> tuple[Floats, str]:
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.time_limit = max(seconds, 1.0)
    settings.tol_gap_rel = settings.tol_gap_abs = settings.tol_feas = 1e-10
    rows, r = D.shape
    solver = clarabel.DefaultSolver(
        sp.eye_array(r, format="csc"),
        np.zeros(r),
        sp.csc_array(-D),
        -np.ones(rows),
        [clarabel.NonnegativeConeT(rows)],
        settings,
    )
    answer = solver.solve()
    name = str(answer.status)
    lam = np.maximum(np.asarray(answer.z), 0.0)
    if name in ("PrimalInfeasible", "AlmostPrimalInfeasible"):
        return lam, "infeasible"
    return lam, "solved" if name == "Solved" else "stopped early"


def _certify(
    problem: _Problem, found: tuple[Ints, Floats, Floats], status: str, basis: Floats, spent: tuple[int, int]
) -> Margin:
    """Figures of the certificate, from (pairs, z, λ) and all constraints, whatever produced them; spent: rounds and ties."""
    pairs, z, lam = found
    held = lam > 0
    support, weights = pairs[held], lam[held]
    D = _differences(problem.E, support)
    shadow = D.T @ weights
    p = basis @ z
    if status == "infeasible" or not len(support) or not z.any():
        farkas = float(np.linalg.norm(shadow)) / (float(np.linalg.norm(problem.E, axis=1).max()) or 1.0)
        return Margin(
            status,
            np.zeros_like(p),
            0.0,
            support,
            weights,
            math.inf,
            math.inf,
            math.nan,
            math.nan,
            math.nan,
            farkas,
            len(pairs),
            *spent,
        )
    norm, smallest, total = float(np.linalg.norm(z)), problem.smallest_margin(z), float(weights.sum())
    primal = (norm / smallest) ** 2 / 2 if smallest > 0 else math.inf
    dual = (total / float(np.linalg.norm(shadow))) ** 2 / 2
    residual = max(
        float(np.linalg.norm(z - shadow)) / norm,
        max(0.0, 1 - smallest),
        float(weights @ np.abs(D @ z - 1)) / total,
    )
    gap = (primal - dual) / primal if math.isfinite(primal) else math.inf
    status = "stopped early" if status == "solved" and not (gap <= SOLVED and residual <= SOLVED) else status
    return Margin(
        status, p, 1 / norm, support, weights, primal, dual, gap, residual, smallest, math.nan, len(pairs), *spent
    )


def _empty(d: int, ties: int) -> Margin:
    return Margin(
        "nothing to separate",
        np.zeros(d),
        math.inf,
        np.zeros((0, 2), np.int64),
        np.zeros(0),
        0.0,
        0.0,
        0.0,
        0.0,
        math.inf,
        math.nan,
        0,
        0,
        ties,
    )
