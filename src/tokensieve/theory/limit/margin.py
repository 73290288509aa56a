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

import math
import time
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray
from scipy.optimize import nnls

from tokensieve.arrays import Floats, Ints
from tokensieve.errors import InputError
from tokensieve.kernels import compiled
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
# A solution counts if its duality gap and its residual are no larger than this.
ACCURATE = 1e-6
# So many pairs are taken in at a time, in so many rounds.
PAIRS_AT_ONCE = 2_000
MAX_ROUNDS = 200
# The numbers of a certificate in summary.json.
FIGURES = "margin primal dual duality_gap kkt_residual smallest_margin farkas".split()


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
    pairs: Ints
    multipliers: Floats
    constraints: int
    ties: int
    margin: float = math.inf
    primal: float = 0.0
    dual: float = 0.0
    duality_gap: float = 0.0
    kkt_residual: float = 0.0
    smallest_margin: float = math.inf
    farkas: float = math.nan

    def to_dict(self) -> dict[str, str | float | int | None]:
        """The certificate, ready for JSON (undefined figures are None)."""
        figures: dict[str, str | float | int | None] = {
            "status": self.status,
            "support_pairs": len(self.pairs),
            "constraints": self.constraints,
            "ties": self.ties,
        }
        for name in FIGURES:
            value = float(getattr(self, name))
            figures[name] = value if math.isfinite(value) else None
        return figures


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
    started = time.monotonic()
    _check_problem(counts, E, selected)
    problem = _Problem(counts, E, np.ascontiguousarray(selected, dtype=np.bool_))
    z = np.zeros(problem.E.shape[1]) if near is None else problem.basis.T @ near
    # So short that every margin is below one.
    z = z / max(4 * float(np.abs(problem.E @ z).max(initial=0.0)), np.finfo(float).tiny)
    solution = _Solution("nothing to separate", np.zeros((0, 2), np.int64), np.zeros(0), z)
    fresh = problem.most_violated_pairs(z)
    n_rounds = n_written = 0
    while len(fresh):
        n_rounds += 1
        n_written += len(fresh)
        support = solution.pairs[solution.multipliers > 0]
        solution = _solve(problem.E, np.concatenate([support, fresh]))
        if solution.status != "solved":
            break
        fresh = problem.most_violated_pairs(solution.z)
        is_late = time.monotonic() - started > max_seconds or n_rounds == MAX_ROUNDS
        if len(fresh) and is_late:
            solution = replace(solution, status="stopped early")
            break
    return _certify(problem, solution, n_written)


def _check_problem(counts: Counts, E: Floats, selected: NDArray[np.bool_]) -> None:
    """Raise an `InputError` for shapes that do not agree, and numbers that are not finite."""
    n_entries = counts.matrix.nnz
    if selected.shape != (n_entries,) or E.shape[0] != counts.n_types:
        shapes = f"selection {selected.shape} and embeddings {E.shape}"
        raise InputError(f"{shapes} do not fit {n_entries} entries of {counts.n_types} types")
    if not np.isfinite(E).all():
        raise InputError("embeddings are not finite: use a smaller step size")


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
        is_allowed = (low >= 0) & (high >= 0)
        return np.stack([low[is_allowed], high[is_allowed]], axis=1), u[low[is_allowed]] - u[
            high[is_allowed]
        ]

    def most_violated_pairs(self, z: Floats) -> Ints:
        """The first pairs of these whose margin is smallest, as long as it is below 1 −
        _VIOLATION; none twice."""
        pairs, gaps = self.closest_types(z)
        distinct = np.unique(self._lead[pairs], axis=0, return_index=True)[1]
        worst = distinct[np.argsort(gaps[distinct], kind="stable")[:PAIRS_AT_ONCE]]
        return pairs[worst[gaps[worst] < 1 - _VIOLATION]]


@compiled()
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


@dataclass(frozen=True)
class _Solution:
    """The shortest z over some pairs and its multipliers; those of an infeasible problem prove that
    it is, and sum to one."""

    status: str
    pairs: Ints
    multipliers: Floats
    z: Floats


def _solve(E: Floats, pairs: Ints) -> _Solution:
    """The shortest z with a margin of at least 1 over some pairs of types (s, r), shape (m, 2).

    Least distance programming (Lawson & Hanson, Solving Least Squares Problems, 1974, ch. 23): the
    λ ≥ 0 of min ½‖z‖² s.t. D z ≥ 1, z = Dᵀλ, by non-negative least squares. Its support has
    independent rows, for which λ is then solved to rounding.
    """
    D = E[pairs[:, 0]] - E[pairs[:, 1]]
    origin = np.zeros(E.shape[1])
    longest = float(np.linalg.norm(E, axis=1).max())
    lengths = np.linalg.norm(D, axis=1)
    equal = lengths <= _PROOF * longest
    if equal.any():
        return _Solution("infeasible", pairs, equal / equal.sum(), origin)
    A = np.vstack([(D / lengths[:, None]).T, lengths.min() / lengths])  # rows of unit length
    try:
        x, _ = nnls(A, np.append(np.zeros(len(A) - 1), 1.0), maxiter=STEPS)
    except RuntimeError:
        return _Solution("stopped early", pairs, np.zeros(len(D)), origin)
    missing = max(float(1 - A[-1] @ x), 1e-100)  # next to nothing if infeasible
    multipliers = x / missing / lengths.min() / lengths
    proof = _infeasibility_proof(D, multipliers, longest)
    if proof is not None:
        return _Solution("infeasible", pairs, proof, origin)
    multipliers = _polished(D, multipliers)
    return _Solution("solved", pairs, multipliers, D.T @ multipliers)


def _polished(D: Floats, multipliers: Floats) -> Floats:
    """Multipliers of the same support, solved to rounding; as they were if that makes one
    negative."""
    support = np.flatnonzero(multipliers > 0)
    rows = D[support]
    try:
        factor = la.cho_factor(rows @ rows.T, lower=True)
    except la.LinAlgError:
        return multipliers
    polished = la.cho_solve(factor, np.ones(len(support)))
    for _ in range(2):
        polished += la.cho_solve(factor, 1 - rows @ (rows.T @ polished))
    if polished.min() >= 0:
        multipliers[support] = polished
    return multipliers


def _infeasibility_proof(D: Floats, lam: Floats, longest: float) -> Floats | None:
    """A convex combination of some D_i that is zero to rounding, from multipliers that are nearly
    one; None if there is none."""
    if not np.isfinite(lam).all() or lam.sum() <= 0:
        return None
    positive = np.flatnonzero(lam > 1e-9 * lam.max())  # less is rounding
    rows = D[positive]
    for weights in (lam[positive], without_sum(rows, lam[positive])):
        weights = np.maximum(weights, 0.0)
        if weights.sum() <= 0:
            continue
        combination = weights / weights.sum()
        if np.linalg.norm(rows.T @ combination) <= _PROOF * longest:
            of_all_rows = np.zeros(len(lam))
            of_all_rows[positive] = combination
            return of_all_rows
    return None


def without_sum(rows: Floats, weights: Floats) -> Floats:
    """The weights nearest to the given ones with Σ weight row = 0.

    If the rows may be independent, the direction of their smallest singular value is taken for a
    dependence.
    """
    n_rows, dimension = rows.shape
    left, _, _ = np.linalg.svd(rows, full_matrices=True)
    n_nonzero = n_rows - 1 if n_rows <= dimension else dimension
    dependences = left[:, n_nonzero:]
    return np.asarray(dependences @ (dependences.T @ weights))


def _certify(problem: _Problem, solution: _Solution, n_written: int) -> Margin:
    """The certificate, from all constraints, whatever produced the solution."""
    is_support = solution.multipliers > 0
    certificate = Margin(
        status=solution.status,
        p=np.zeros(len(problem.basis)),
        pairs=solution.pairs[is_support],
        multipliers=solution.multipliers[is_support],
        constraints=n_written,
        ties=problem.ties,
    )
    if not n_written:
        return certificate
    D = problem.E[certificate.pairs[:, 0]] - problem.E[certificate.pairs[:, 1]]
    if solution.status == "infeasible" or not len(D) or not solution.z.any():
        longest = float(np.linalg.norm(problem.E, axis=1).max()) or 1.0
        return replace(
            certificate,
            margin=0.0,
            primal=math.inf,
            dual=math.inf,
            duality_gap=math.nan,
            kkt_residual=math.nan,
            smallest_margin=math.nan,
            farkas=float(np.linalg.norm(D.T @ certificate.multipliers)) / longest,
        )
    return _of_solution(problem, certificate, solution.z, D)


def _of_solution(problem: _Problem, certificate: Margin, z: Floats, D: Floats) -> Margin:
    """The certificate of a z that is not zero, with the differences D of its support."""
    multipliers = certificate.multipliers
    shadow = D.T @ multipliers
    norm = float(np.linalg.norm(z))
    total = float(multipliers.sum())
    smallest = float(problem.closest_types(z)[1].min())
    primal = (norm / smallest) ** 2 / 2 if smallest > 0 else math.inf
    dual = (total / float(np.linalg.norm(shadow))) ** 2 / 2
    gap = (primal - dual) / primal if math.isfinite(primal) else math.inf
    slack = float(multipliers @ np.abs(D @ z - 1)) / total
    residual = max(float(np.linalg.norm(z - shadow)) / norm, 1 - smallest, slack)
    is_accurate = max(gap, residual) <= ACCURATE
    return replace(
        certificate,
        status=certificate.status if is_accurate else "stopped early",
        p=problem.basis @ z,
        margin=1 / norm,
        primal=primal,
        dual=dual,
        duality_gap=gap,
        kkt_residual=residual,
        smallest_margin=smallest,
    )
