"""The same loss in coordinates that split what has settled from what still moves: p = V ζ + W q.

V spans the differences of tied types (`ties`), W its complement. On V^⊥ all types of one selection have the same embedding F, so
that the part of the gradient along V^⊥ is a sum over *unselected* types alone,

    Wᵀ∇L = Σ_X g_X Σ_{r ∉ S_X} t_{X,r} (F_r − F_X),        F_X the common embedding of S_X,

because Σ_s t_{X,s} = 0. Ties cancel exactly instead of in the last digits, so that the true flow, not a reduction of it, can be
followed long after rounding would have drowned the gradient. The Hessian is assembled the same way: its blocks along V^⊥ hold
unselected types only.

Few pairs of a group and an unselected type push or pull with a force that matters yet. W is an orthonormal basis of the span of
these live pairs; the rest of q stands still until another pair becomes live.
"""

from __future__ import annotations

import math

import numba
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tokensieve.text.counts import Counts, Floats, Ints
from tokensieve.theory.flow.landscape import Landscape, LossTerms
from tokensieve.theory.flow.log_time import Integrator
from tokensieve.theory.flow.ties import Face, settled_face
from tokensieve.theory.geometry import documents_of, laplacian_form, span_of

# The clock's time between two looks at which ties have settled.
LOOK = 1.5
# Forces below this share of the largest do not reach the last bit of a Hessian along V^⊥.
NEGLIGIBLE = 1e-18


@numba.njit(cache=True, parallel=True)
def _project(
    indptr: Ints,
    indices: Ints,
    q: Floats,
    t: Floats,
    g: Floats,
    bend: Floats,
    live: NDArray[np.bool_],
    own: Ints,
    group: Ints,
    A: Floats,
    F: Floats,
) -> tuple[Floats, Floats]:
    """Rows Σ t G and Σ (½ bend t − g q) G of each document, G = (A_s, F_s − F_X): along V^⊥ over live unselected types only."""
    n, k, r = len(indptr) - 1, A.shape[1], F.shape[1]
    left, right = np.zeros((n, k + r)), np.zeros((n, k + r))
    for x in numba.prange(n):
        if g[x] == 0.0:
            continue
        for i in range(indptr[x], indptr[x + 1]):
            mixed = 0.5 * bend[x] * t[i] - g[x] * q[i]
            row = A[indices[i]]
            for c in range(k):
                left[x, c] += t[i] * row[c]
                right[x, c] += mixed * row[c]
            if live[i]:
                one, other = F[group[indices[i]]], F[own[x]]
                for c in range(r):
                    apart = one[c] - other[c]
                    left[x, k + c] += t[i] * apart
                    right[x, k + c] += mixed * apart
    return left, right


class _SplitLandscape:
    """L in the coordinates (ζ, q) of a face and its live pairs, with the interface of `Landscape`.

    Args:
        land: the loss.
        face: the ties.
        p: the point at which pairs are found to be live, shape (r,).
        clock: log of the time that has passed there.
        margin: how many nats weaker than those that move something a force may be to be left out.
    """

    def __init__(self, land: Landscape, face: Face, p: Floats, clock: float, margin: float) -> None:
        counts = land.counts
        self.land, self.face = land, face
        _, lead = np.unique(face.group, return_index=True)
        self._own = own_groups(counts, face)
        self._open = np.flatnonzero(~face.mask)
        self._open_documents = documents_of(counts)[self._open]
        self._ends = np.stack([self._own[self._open_documents], face.group[counts.matrix.indices[self._open]]], axis=1)
        self._A, F = land.E @ face.inside, land.E[lead] @ face.outside
        q = face.outside.T @ p
        terms = land.terms(self._A @ (face.inside.T @ p) + (F @ q)[face.group])
        level = self._levels(terms)
        self._live = level > min(-max(clock, 0.0), float(level.max(initial=-math.inf))) - margin
        pairs = np.unique(self._ends[self._live], axis=0)
        inside = span_of(F[pairs[:, 0]] - F[pairs[:, 1]])
        self._W = face.outside @ inside
        self._rest = face.outside @ (q - inside @ (inside.T @ q))
        self._F = np.ascontiguousarray(F @ inside)
        self._base = (land.E[lead] @ self._rest)[face.group]

    def split(self, p: Floats) -> Floats:
        """(ζ, q) of p."""
        return np.concatenate([self.face.inside.T @ p, self._W.T @ p])

    def joined(self, x: Floats) -> Floats:
        """p of (ζ, q)."""
        k = self.face.dimension
        return np.asarray(self.face.inside @ x[:k] + self._W @ x[k:] + self._rest)

    def overlooked(self, x: Floats) -> float:
        """Logarithm of the largest force that is not live."""
        return float(self._levels(self._terms(x))[~self._live].max(initial=-math.inf))

    def slope(self, x: Floats) -> tuple[Floats, float]:
        """−∇L/‖∇L‖ and log‖∇L‖."""
        terms = self._terms(x)
        return self._unit(terms, self._downhill(terms, self._forces(terms)))

    def outside(self, x: Floats) -> tuple[float, float]:
        """Of the gradient along V^⊥: the logarithm of its norm, and that norm over the sum of the sizes of its terms."""
        terms = self._terms(x)
        force = self._forces(terms)
        size = float(np.linalg.norm(self._downhill(terms, force)[self.face.dimension :]))
        if size == 0:
            return -math.inf, 1.0
        return math.log(size / self.land.counts.n_documents) + terms.shift, size / float(np.abs(force).sum())

    def hessian(self, x: Floats) -> tuple[Floats, Floats, float]:
        """∇²L/‖∇L‖, −∇L/‖∇L‖ and log‖∇L‖."""
        terms = self._terms(x)
        force = self._forces(terms)
        slope = self._downhill(terms, force)
        size = float(np.linalg.norm(slope))
        downhill, log_size = self._unit(terms, slope)
        m, k = self.land.counts.matrix, self.face.dimension
        strong = np.abs(force) > NEGLIGIBLE * float(np.abs(force).max(initial=0.0))
        live = np.zeros(m.nnz, bool)
        live[self._open[strong]] = True
        left, right = _project(
            m.indptr,
            m.indices,
            terms.q,
            terms.t,
            terms.g,
            terms.bend,
            live,
            self._own,
            self.face.group,
            self._A,
            self._F,
        )
        half = left.T @ right
        H = half + half.T
        moved = np.flatnonzero(terms.a)
        H[:k, :k] += (self._A[moved] * terms.a[moved, None]).T @ self._A[moved]
        ends, f, types = self._ends[strong], force[strong], m.indices[self._open[strong]]
        H[k:, k:] += laplacian_form(self._F, ends, f)
        columns = np.concatenate([ends[:, 1], ends[:, 0]])
        across = sp.csr_array(
            (np.concatenate([f, -f]), (np.tile(types, 2), columns)), shape=(len(self._A), len(self._F))
        )
        used = np.unique(columns)
        mixed = (self._A.T @ across[:, used]) @ self._F[used]
        H[:k, k:] += mixed
        H[k:, :k] += mixed.T
        return np.asarray((H + H.T) / (2 * (size or 1.0))), downhill, log_size

    def _terms(self, x: Floats) -> LossTerms:
        k = self.face.dimension
        return self.land.terms(self._base + self._A @ x[:k] + (self._F @ x[k:])[self.face.group])

    def _levels(self, terms: LossTerms) -> Floats:
        """log of the force of each unselected entry."""
        with np.errstate(divide="ignore"):
            return np.asarray(
                np.log(np.abs(self._forces(terms))) + terms.shift - math.log(self.land.counts.n_documents)
            )

    def _forces(self, terms: LossTerms) -> Floats:
        """n ∂L/∂u e^{−shift} of each unselected entry."""
        return np.asarray(terms.g[self._open_documents] * terms.t[self._open])

    def _downhill(self, terms: LossTerms, force: Floats) -> Floats:
        """−n ∇L e^{−shift}."""
        m = len(self._F)
        node = np.bincount(self._ends[:, 0], force, m) - np.bincount(self._ends[:, 1], force, m)
        return np.concatenate([-(self._A.T @ terms.a), node @ self._F])

    def _unit(self, terms: LossTerms, slope: Floats) -> tuple[Floats, float]:
        size = float(np.linalg.norm(slope))
        if size == 0:
            return slope, -math.inf
        return slope / size, math.log(size / self.land.counts.n_documents) + terms.shift


class SplitFlow:
    """The true flow from a point, in coordinates that are chosen anew whenever ties settle or pairs become live.

    Args:
        land: the loss.
        p: the point, shape (r,).
        clock: log t there, counted from where the clock was last set back; −∞ to set it back here.
        log_time: log t there, counted from the start of the whole curve.
        tolerance: local error of a step.
        face: the ties to begin with; found from the clock if None.
    """

    def __init__(
        self, land: Landscape, p: Floats, clock: float, log_time: float, tolerance: float, face: Face | None = None
    ) -> None:
        self._land, self._tolerance, self.looked = land, tolerance, clock
        self.face = face or settled_face(land.counts, land.E, land.w, p, clock)
        self.solver = self._begin(p, clock, log_time, 0.1)

    def step(self) -> bool:
        """One step, in local time where the clock does not resolve it; False where that fails too."""
        solver = self.solver
        if not (solver.step() or (solver.restart() and solver.step())):
            return False
        if abs(solver.clock - self.looked) >= LOOK and solver.clock > 0:
            self.look()
        return True

    def look(self) -> bool:
        """Find the ties anew; whether they changed."""
        solver = self.solver
        self.looked = solver.clock
        face = settled_face(self._land.counts, self._land.E, self._land.w, solver.p, solver.clock)
        if np.array_equal(face.mask, self.face.mask):
            return False
        self.face = face
        self.solver = self._begin(solver.p, solver.clock, solver.log_time, solver.last_step)
        return True

    def outside(self) -> tuple[float, float]:
        """Of the gradient along V^⊥: the logarithm of its norm, and that norm over the sum of the sizes of its terms."""
        split = self.solver.here
        assert isinstance(split, _SplitLandscape)
        return split.outside(split.split(self.solver.p))

    def _begin(self, p: Floats, clock: float, log_time: float, step: float) -> Integrator:
        face = self.face
        return Integrator(
            lambda p, clock, margin: _SplitLandscape(self._land, face, p, clock, margin),
            p,
            clock,
            log_time,
            (self._tolerance, self._tolerance),
            step,
        )


def own_groups(counts: Counts, face: Face) -> Ints:
    """The group that each document selects, shape (n,); 0 for a document without types."""
    own = np.zeros(counts.n_documents, np.int64)
    own[documents_of(counts)[face.mask]] = face.group[counts.matrix.indices[face.mask]]
    return own
