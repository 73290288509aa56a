"""The max-margin problem of a token selection, with a certificate.

Theorem 4.3 of Wu, Shevchenko, Oymak, Mondelli (NeurIPS 2025): if p_t/‖p_t‖ converges, its limit is the direction of

    p_∞ = argmin ½‖p‖²   s.t.  pᵀ(E_s − E_r) ≥ 1  for all s ∈ S_X, r ∈ X ∖ S_X, all documents X,

over distinct token types, so that a type that stands in a document twice never constrains against itself. Dual: maximise
Σ_i λ_i − ½‖Dᵀλ‖² over λ ≥ 0, with D_i = E_s − E_r; at the optimum p_∞ = Dᵀλ.

Constraints are generated: only pairs that a solution violated are ever written down. Each small problem is solved to rounding
by an active set (D_F D_Fᵀ λ_F = 1: proximal steps in λ, block principal pivoting of Kim & Park 2011); Clarabel's interior point
solves what that cannot, and proves infeasibility. The certificate is recomputed from scratch over all constraints.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import clarabel
import numba
import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from numpy.typing import NDArray

from tokensieve.counts import Counts, Floats, Ints
from tokensieve.errors import InputError
from tokensieve.theory.landscape import coordinates

# A pair is added when its margin falls short of one by more than this.
VIOLATION = 1e-10
# Support pairs may be linearly dependent (cycles of types): proximal steps of weight RIDGE, relative to max‖D_i‖², make each
# active-set problem well-posed and leave the optimum where it is. Past LARGEST the pairs are as good as inseparable.
RIDGE = 1e-7
PROXIMAL_STEPS = 60
LARGEST = 1e6
PIVOTS = 100


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

    def to_dict(self) -> dict[str, str | float | int | None]:
        """The certificate, ready for JSON (undefined figures are None)."""
        names = ("margin", "primal", "dual", "duality_gap", "kkt_residual", "smallest_margin", "farkas")
        whole: dict[str, str | float | int | None]
        whole = {"status": self.status, "support_pairs": len(self.pairs), "constraints": self.constraints}
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
        selected: for each stored entry of counts.matrix, whether its type is selected in its document, shape (nnz,).
            Documents with nothing selected constrain nothing.
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
    reduced, basis = coordinates(E)
    problem = _Problem(m.indptr, m.indices, np.ascontiguousarray(selected, dtype=np.bool_), reduced)
    guess = problem.first_guess() if near is None else near if basis is None else basis.T @ near
    pairs = problem.violated(problem.short(guess), share=4 if near is None else 1)
    if pairs is None:
        return _empty(E.shape[1])
    z, lam = np.zeros(reduced.shape[1]), np.zeros(len(pairs))
    started = time.monotonic()
    for rounds in range(1, max_rounds + 1):
        z, lam, status = _solve(_differences(reduced, pairs), lam > 0)
        fresh = problem.violated(z)
        if status != "solved" or fresh is None or not len(fresh):
            return _certify(problem, pairs, z, lam, status, basis, rounds)
        if time.monotonic() - started > max_seconds or rounds == max_rounds:
            return _certify(problem, pairs, z, lam, "stopped early", basis, rounds)
        pairs, lam = np.concatenate([pairs, fresh]), np.concatenate([lam, np.ones(len(fresh))])
    raise InputError(f"max_rounds = {max_rounds}: use at least one round")


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
    """All constraints, implicit: documents, who is selected, embeddings in r coordinates."""

    indptr: NDArray[Any]
    indices: NDArray[Any]
    selected: NDArray[np.bool_]
    E: Floats

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

    def violated(self, z: Floats, share: int = 4) -> Ints | None:
        """The worst pairs of the documents whose margin is below 1 − VIOLATION; None if no document has any pair."""
        low, high = _extremes(self.indptr, self.indices, self.selected, self.E @ z)
        both = (low >= 0) & (high >= 0)
        if not both.any():
            return None
        pairs = np.unique(np.stack([low[both], high[both]], axis=1), axis=0)
        gaps = _gaps(self.E, pairs, z)
        # The worst few: far more pairs than dimensions can hold with equality would be written down in vain.
        worst = np.argsort(gaps, kind="stable")[: self.E.shape[1] // share + 50]
        return np.asarray(pairs[worst[gaps[worst] < 1 - VIOLATION]])

    def smallest_margin(self, z: Floats) -> float:
        """min of zᵀ(E_s − E_r) over every constraint, through each document's lowest selected and highest other type."""
        u = self.E @ z
        low, high = _extremes(self.indptr, self.indices, self.selected, u)
        both = (low >= 0) & (high >= 0)
        return float(np.min(u[low[both]] - u[high[both]]))


@numba.njit(cache=True)
def _extremes(indptr: Any, indices: Any, selected: Any, u: Any) -> Any:
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


def _differences(E: Floats, pairs: Ints) -> Floats:
    return np.asarray(E[pairs[:, 0]] - E[pairs[:, 1]])


def _gaps(E: Floats, pairs: Ints, z: Floats) -> Floats:
    u = E @ z
    return np.asarray(u[pairs[:, 0]] - u[pairs[:, 1]])


def _solve(D: Floats, guess: NDArray[np.bool_]) -> tuple[Floats, Floats, str]:
    """Min-norm point z of D z ≥ 1: (z, λ, status); λ of an infeasible problem proves it and sums to one."""
    lengths = np.linalg.norm(D, axis=1)
    scale = float(lengths.max())
    if lengths.min() <= 1e-14 * scale:
        # Two types with one embedding: their scores can never differ.
        same = lengths <= 1e-14 * scale
        return np.zeros(D.shape[1]), same / same.sum(), "infeasible"
    unit = D / scale
    lam = _active_set(unit, guess)
    if lam is None:
        lam, status = _clarabel(unit)
        if status == "infeasible":
            return np.zeros(D.shape[1]), lam / lam.sum(), status
        exact = _active_set(unit, lam > 1e-6 * lam.max())
        if exact is None:
            return unit.T @ lam / scale, lam / scale**2, status
        lam = exact
    return unit.T @ lam / scale, lam / scale**2, "solved"


def _active_set(D: Floats, guess: NDArray[np.bool_]) -> Floats | None:
    """λ ≥ 0 with D Dᵀλ ≥ 1 and equality where λ > 0, by proximal steps in λ; None if it does not get there."""
    lam, free = np.zeros(len(D)), guess.copy() if guess.any() else np.ones(len(D), bool)
    for _ in range(PROXIMAL_STEPS):
        step = _pivot(D, lam, free)
        if step is None:
            return None
        lam, free = step, step > 0
        excess = D @ (D.T @ lam) - 1
        if excess.min() > -VIOLATION / 2 and np.abs(excess[free]).max() < VIOLATION / 2:
            return lam
    return None


def _pivot(D: Floats, before: Floats, free: NDArray[np.bool_]) -> Floats | None:
    """λ ≥ 0 with D Dᵀλ + RIDGE (λ − before) ≥ 1 and equality where λ > 0, by block principal pivoting."""
    fewest, patience = len(D) + 1, 3
    target = 1 + RIDGE * before
    for _ in range(PIVOTS):
        rows = D[free]
        if len(rows) > D.shape[1] + 2000:
            return None
        gram = rows @ rows.T
        gram[np.diag_indices_from(gram)] += RIDGE
        part = la.cho_solve(la.cho_factor(gram, lower=True, overwrite_a=True, check_finite=False), target[free])
        if not part.sum() < LARGEST:
            return None
        wrong = D @ (rows.T @ part) < target - VIOLATION / 8
        wrong[free] = part < -1e-11 * part.max()
        if not wrong.any():
            lam = np.zeros(len(D))
            lam[free] = np.maximum(part, 0.0)
            return lam
        if wrong.sum() < fewest:
            fewest, patience = int(wrong.sum()), 3
        elif patience > 0:
            patience -= 1
        else:
            wrong[: np.flatnonzero(wrong)[-1]] = False
        free = free ^ wrong
    return None


def _clarabel(D: Floats) -> tuple[Floats, str]:
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
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
    problem: _Problem, pairs: Ints, z: Floats, lam: Floats, status: str, basis: Floats | None, rounds: int
) -> Margin:
    """Figures of the certificate, from the multipliers and all constraints, whatever produced them."""
    held = lam > 0
    support, weights = pairs[held], lam[held]
    D = _differences(problem.E, support)
    shadow = D.T @ weights
    p = z if basis is None else basis @ z
    if status == "infeasible":
        farkas = float(np.linalg.norm(shadow)) / (float(np.linalg.norm(problem.E, axis=1).max()) or 1.0)
        return Margin(
            status, np.zeros_like(p), 0.0, support, weights, math.inf, math.inf, math.nan, math.nan, math.nan, farkas,
            len(pairs), rounds,
        )  # fmt: skip
    norm, smallest, total = float(np.linalg.norm(z)), problem.smallest_margin(z), float(weights.sum())
    primal = (norm / smallest) ** 2 / 2 if smallest > 0 else math.inf
    dual = (total / float(np.linalg.norm(shadow))) ** 2 / 2
    residual = max(
        float(np.linalg.norm(z - shadow)) / norm,
        max(0.0, 1 - smallest),
        float(weights @ np.abs(D @ z - 1)) / total,
    )
    gap = (primal - dual) / primal if math.isfinite(primal) else math.inf
    return Margin(
        status, p, 1 / norm, support, weights, primal, dual, gap, residual, smallest, math.nan, len(pairs), rounds
    )  # fmt: skip


def _empty(d: int) -> Margin:
    return Margin(
        "nothing to separate", np.zeros(d), math.inf, np.zeros((0, 2), np.int64), np.zeros(0), 0.0, 0.0, 0.0, 0.0, math.inf,
        math.nan, 0, 0,
    )  # fmt: skip
