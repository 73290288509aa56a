"""The max-margin problem of a token selection, with a certificate.

Theorem 4.3 of Wu, Shevchenko, Oymak, Mondelli (NeurIPS 2025): if p_t/‖p_t‖ converges, its limit is
the direction of

    p_∞ = argmin ½‖p‖²   s.t.  pᵀ(E_s − E_r) ≥ 1  for all s ∈ S_X, r ∈ X ∖ S_X, all documents X,

over distinct token types. S_X is what p_∞ itself selects, so that the types of one S_X have equal
scores; the problem is therefore solved on V^⊥, V the span of their differences, where these are
exactly zero. Dual: maximise Σ_i λ_i − ½‖Dᵀλ‖² over λ ≥ 0, with D_i the part of E_s − E_r in V^⊥; at
the optimum p_∞ = Dᵀλ.

Only pairs that a solution violated are ever written down, and those without a multiplier are
dropped again: the dual value only rises. The certificate is recomputed from scratch over all
constraints. "Infeasible" is a verdict
only with a convex combination of the D_i that is zero to rounding: a merely short one proves no
more than a large ‖p‖.
"""

from __future__ import annotations

import contextlib
import math
import time
from dataclasses import dataclass

import numba
import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray
from scipy.optimize import nnls

from tokensieve.arrays import Floats, Ints
from tokensieve.errors import InputError
from tokensieve.text.counts import Counts
from tokensieve.theory.flow.face import Face
from tokensieve.theory.geometry import coordinates, span_of

# A pair is taken in when its margin falls short of one by more than this.
_VIOLATION = 1e-10
# Changes of the set of positive multipliers before it gives up.
STEPS = 200_000
# Rounding, relative to the longest embedding: of ‖Dᵀλ‖ with Σλ = 1 (a proof of infeasibility), and
# of D_i (equal embeddings).
_PROOF = 1e-13


@dataclass(frozen=True)
class Margin:
    """Solution and certificate of a max-margin problem.

    Attributes:
        status: "solved"; "infeasible" (no p separates the selection: `farkas` proves it); "nothing
            to separate" (every document selects all of its types, so p_∞ = 0); "stopped early"
            (figures are of the last iterate).
        p, margin: p_∞, shape (d,), and 1/‖p_∞‖; zeros and 0 when infeasible, zeros and inf with
            nothing to separate.
        pairs, multipliers: types (s, r), shape (m, 2), and λ ≥ 0 of the pairs that carry a
            multiplier; of an infeasible problem these are the Farkas multipliers, which sum to one.
        primal, dual: ½‖p‖² after scaling p up until every constraint holds, an upper bound on the
            optimum; and (Σλ)²/(2‖Dᵀλ‖²), a lower bound on it for any λ ≥ 0. duality_gap is (primal
            − dual)/primal.
        kkt_residual: largest of ‖p − Dᵀλ‖/‖p‖, the shortfall max(0, 1 − smallest margin), Σ λ_i
            |D_i p − 1| / Σ λ_i.
        smallest_margin: min of pᵀ(E_s − E_r) over every constraint of every document.
        farkas: for an infeasible problem ‖Dᵀλ‖ / max‖E_s‖ with Σλ = 1, λ ≥ 0: zero up to rounding,
            while every p would need pᵀDᵀλ ≥ 1; nan otherwise.
        constraints: pairs that were written down; ties: dim V.
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
    ties: int

    def to_dict(self) -> dict[str, str | float | int | None]:
        """The certificate, ready for JSON (undefined figures are None)."""
        out: dict[str, str | float | int | None] = {
            "status": self.status,
            "support_pairs": len(self.pairs),
        }
        out |= {"constraints": self.constraints, "ties": self.ties}
        names = (
            "margin",
            "primal",
            "dual",
            "duality_gap",
            "kkt_residual",
            "smallest_margin",
            "farkas",
        )
        figures = {name: float(getattr(self, name)) for name in names}
        return out | {
            name: value if math.isfinite(value) else None for name, value in figures.items()
        }


def max_margin(
    counts: Counts,
    E: Floats,
    selected: NDArray[np.bool_],
    near: Floats | None = None,
    max_seconds: float = math.inf,
) -> Margin:
    """Solve the max-margin problem of a selection.

    Args:
        counts, E: n documents over |S| types, and embeddings, shape (|S|, d); any d.
        selected: for each stored entry of counts.matrix, whether its type is selected in its
            document, shape (nnz,); types selected together have equal scores. Documents with
            nothing selected constrain nothing.
        near: a direction to begin with, shape (d,), such as the end of a flow; it saves rounds and
            changes no result.
        max_seconds: wall time after which no further round is begun; the status is then "stopped
            early".

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
    pairs, lam, status, rounds = np.zeros((0, 2), np.int64), np.zeros(0), "nothing to separate", 0
    fresh, written = problem.most_violated_pairs(z), 0
    while len(fresh):
        rounds, written = rounds + 1, written + len(fresh)
        pairs = np.concatenate([pairs[lam > 0], fresh])
        z, lam, status = _solve(problem.E, pairs)
        fresh = problem.most_violated_pairs(z) if status == "solved" else fresh[:0]
        if len(fresh) and (time.monotonic() - started > max_seconds or rounds == 200):
            status = "stopped early"
            break
    return _certify(problem, (pairs, z, lam), status, written)


def selection_of(counts: Counts, types: dict[int, list[int]]) -> NDArray[np.bool_]:
    """The mask that `max_margin` requires, from a selection written by hand: {document: its
    selected types}.

    Raises:
        InputError: a document or a type that does not exist.
    """
    m = counts.matrix
    mask = np.zeros(m.nnz, bool)
    for k, chosen in types.items():
        if not 0 <= k < counts.n_documents:
            raise InputError(f"document {k} does not exist: there are {counts.n_documents}")
        held = m.indices[m.indptr[k] : m.indptr[k + 1]]
        absent = sorted(set(chosen) - set(held.tolist()))
        if absent:
            raise InputError(
                f"document {k} does not contain type {absent[0]}: select only types that occur in it"
            )
        mask[m.indptr[k] : m.indptr[k + 1]] = np.isin(held, chosen)
    return mask


class _Problem:
    """All constraints, implicit, on V^⊥, where types selected together have one embedding: E, shape
    (|S|, r − k)."""

    def __init__(self, counts: Counts, E: Floats, selected: NDArray[np.bool_]) -> None:
        reduced, basis = coordinates(E)
        self._lead = Face.ties(counts, selected)
        inside = span_of(reduced, np.stack([np.arange(len(E)), self._lead], axis=1))
        outside = np.ascontiguousarray(
            np.linalg.qr(inside, mode="complete")[0][:, inside.shape[1] :]
        )
        self.E = np.asarray((reduced @ outside)[self._lead])
        self.basis = outside if basis is None else basis @ outside
        self.ties = inside.shape[1]
        self._documents = (counts.matrix.indptr, counts.matrix.indices, selected)

    def closest_types(self, z: Floats) -> tuple[Ints, Floats]:
        """Each document's lowest selected and highest other type, shape (j, 2), where it has both;
        and zᵀ(E_s − E_r)."""
        u = self.E @ z
        low, high = _extremes(*self._documents, u)
        both = (low >= 0) & (high >= 0)
        return np.stack([low[both], high[both]], axis=1), u[low[both]] - u[high[both]]

    def most_violated_pairs(self, z: Floats) -> Ints:
        """Up to 2,000 of these pairs whose margin is smallest, as long as it is below 1 −
        _VIOLATION; none twice."""
        pairs, gaps = self.closest_types(z)
        once = np.unique(self._lead[pairs], axis=0, return_index=True)[1]
        worst = once[np.argsort(gaps[once], kind="stable")[:2_000]]
        return pairs[worst[gaps[worst] < 1 - _VIOLATION]]


@numba.njit(cache=True)
def _extremes(
    indptr: Ints, indices: Ints, selected: NDArray[np.bool_], u: Floats
) -> tuple[Ints, Ints]:
    """For each document, the selected type of lowest score and the unselected type of highest; −1
    where there is none."""
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


def _solve(E: Floats, pairs: Ints) -> tuple[Floats, Floats, str]:
    """Shortest z over some pairs: (z, λ, status); λ that proves infeasibility sums to one.

    Least distance programming (Lawson & Hanson, Solving Least Squares Problems, 1974, ch. 23): λ ≥
    0 of min ½‖z‖² s.t. D z ≥ 1, z = Dᵀλ, by non-negative least squares. Its support has independent
    rows, for which λ is then solved to rounding.
    """
    longest, D = float(np.linalg.norm(E, axis=1).max()), E[pairs[:, 0]] - E[pairs[:, 1]]
    lengths = np.linalg.norm(D, axis=1)
    equal = lengths <= _PROOF * longest
    if equal.any():
        return np.zeros(E.shape[1]), equal / equal.sum(), "infeasible"
    A = np.vstack([(D / lengths[:, None]).T, lengths.min() / lengths])  # rows of unit length
    try:
        x, _ = nnls(A, np.append(np.zeros(len(A) - 1), 1.0), maxiter=STEPS)
    except RuntimeError:
        return np.zeros(E.shape[1]), np.zeros(len(D)), "stopped early"
    lam = x / max(float(1 - A[-1] @ x), 1e-100) / lengths.min() / lengths  # very long if infeasible
    if (proof := _infeasibility_proof(D, lam, longest)) is not None:
        return np.zeros(E.shape[1]), proof, "infeasible"
    held = np.flatnonzero(lam > 0)
    with contextlib.suppress(la.LinAlgError):
        factor = la.cho_factor(D[held] @ D[held].T, lower=True)
        polished = la.cho_solve(factor, np.ones(len(held)))
        for _ in range(2):
            polished += la.cho_solve(factor, 1 - D[held] @ (D[held].T @ polished))
        if polished.min() >= 0:
            lam[held] = polished
    return D.T @ lam, lam, "solved"


def _infeasibility_proof(D: Floats, lam: Floats, longest: float) -> Floats | None:
    """A convex combination of some D_i that is zero to rounding, from multipliers that are nearly
    one; None if there is none."""
    if not np.isfinite(lam).all() or lam.sum() <= 0:
        return None
    held = np.flatnonzero(lam > 1e-9 * lam.max())  # less is rounding
    rows = D[held]
    left, _, _ = np.linalg.svd(rows, full_matrices=True)
    polished = left[:, min(len(held), D.shape[1]) - (len(held) <= D.shape[1]) :]
    for weights in (lam[held], polished @ (polished.T @ lam[held])):
        weights = np.maximum(weights, 0.0)
        if (
            weights.sum() > 0
            and np.linalg.norm(rows.T @ (weights / weights.sum())) <= _PROOF * longest
        ):
            out = np.zeros(len(lam))
            out[held] = weights / weights.sum()
            return out
    return None


def _certify(
    problem: _Problem, found: tuple[Ints, Floats, Floats], status: str, written: int
) -> Margin:
    """Figures of the certificate, from (pairs, z, λ) and all constraints, whatever produced them;
    `written`: pairs written down."""
    pairs, z, lam = found
    support, weights = pairs[lam > 0], lam[lam > 0]
    D = problem.E[support[:, 0]] - problem.E[support[:, 1]]
    shadow = D.T @ weights
    margin, primal, dual, gap, residual, smallest, farkas = (
        0.0,
        math.inf,
        math.inf,
        *(4 * [math.nan]),
    )
    if not written:
        margin, primal, dual, gap, residual, smallest = math.inf, 0.0, 0.0, 0.0, 0.0, math.inf
    elif status == "infeasible" or not len(support) or not z.any():
        z = np.zeros_like(z)
        farkas = float(np.linalg.norm(shadow)) / (
            float(np.linalg.norm(problem.E, axis=1).max()) or 1.0
        )
    else:
        norm, total, smallest = (
            float(np.linalg.norm(z)),
            float(weights.sum()),
            float(problem.closest_types(z)[1].min()),
        )
        margin = 1 / norm
        primal = (norm / smallest) ** 2 / 2 if smallest > 0 else math.inf
        dual = (total / float(np.linalg.norm(shadow))) ** 2 / 2
        off = float(weights @ np.abs(D @ z - 1)) / total
        residual = max(float(np.linalg.norm(z - shadow)) / norm, max(0.0, 1 - smallest), off)
        gap = (primal - dual) / primal if math.isfinite(primal) else math.inf
        if status == "solved" and max(gap, residual) > 1e-6:
            status = "stopped early"
    figures = (margin, support, weights, primal, dual, gap, residual, smallest, farkas)
    return Margin(status, problem.basis @ z, *figures, constraints=written, ties=problem.ties)
