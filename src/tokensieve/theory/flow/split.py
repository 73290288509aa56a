"""Which types stay tied, the minimum that their scores settle at, and the true flow in coordinates that split ties off.

In the clock log t a score gap of the flow grows at rate zero (a *tie*) or at rate one and more. Let S_X be the types of document X
that stay tied at its top, closed under ties of other documents, and V = span{E_s − E_{s'} : s, s' ∈ S_X, all X}. On V^⊥ all types
of one S_X have the same score, so that L_S, the loss with every softmax restricted to S_X, depends on the part of p in V only.

The flow itself is followed in p = V ζ + W q, W a basis of V^⊥. All types of one selection have the same embedding F there, so that
the part of the gradient along V^⊥ is a sum over *unselected* types alone,

    Wᵀ∇L = Σ_X g_X Σ_{r ∉ S_X} t_{X,r} (F_r − F_X),        F_X the common embedding of S_X,

because Σ_s t_{X,s} = 0. Ties cancel exactly instead of in the last digits, so that the true flow, not a reduction of it, can be
followed long after rounding would have drowned the gradient. The Hessian is assembled the same way: its blocks along V^⊥ hold
unselected types only. Few pairs of a group and an unselected type push or pull with a force that matters yet. W is an orthonormal
basis of the span of these live pairs; the rest of q stands still until another pair becomes live.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tokensieve.text.counts import Counts, Floats, Ints
from tokensieve.theory.flow.landscape import Integrator, Landscape, SplitLandscape
from tokensieve.theory.geometry import (
    documents_of,
    highest,
    tied_groups,
    top_types,
)

# A direction of V has settled where t times its curvature exceeds e^{this}; where a gap diverges the product is about one.
SETTLED = 5.0


@dataclass(frozen=True)
class Face:
    """A selection with ties, and the space that the ties span.

    Attributes:
        mask: for each stored entry of counts.matrix, whether its type is in S_X, shape (nnz,).
        group: number of the set of types that ties link, shape (|S|,); a type without ties is alone in its own.
        own: the group that each document selects, shape (n,); 0 for a document without types.
        inside: orthonormal basis of V, shape (r, k).
    """

    mask: NDArray[np.bool_]
    group: Ints
    own: Ints
    inside: Floats

    @classmethod
    def of(cls, counts: Counts, E: Floats, mask: NDArray[np.bool_]) -> Face:
        """A selection, shape (nnz,), closed under ties; it holds at least one type of each document with any."""
        m, document = counts.matrix, documents_of(counts)
        group, inside = tied_groups(counts, E, mask)
        # Types that coincide outside V are tied there, even where no document links them. Three random views show whether they
        # do, up to 1e-9 of the longest embedding.
        lead = np.zeros(counts.n_documents, np.int64)
        lead[document[mask]] = m.indices[mask]
        directions = np.random.default_rng(0).standard_normal((E.shape[1], 3))
        views = E @ (directions - inside @ (inside.T @ directions))
        apart = np.abs(views[m.indices] - views[lead[document]]).max(axis=1)
        same = (apart <= 1e-9 * float(np.linalg.norm(E, axis=1).max())) | (group[m.indices] == group[lead[document]])
        if (same & ~mask).any():
            group = tied_groups(counts, E, same)[0]
        group = np.unique(group, return_inverse=True)[1]
        own = np.zeros(counts.n_documents, np.int64)
        own[document[same]] = group[m.indices[same]]
        return cls(same, group, own, inside)

    @classmethod
    def settled(cls, land: Landscape, z: Floats, log_time: float) -> Face:
        """The ties that have settled at a point: those that are near enough, less every direction of V in which time times
        curvature is below e^{SETTLED}. A gap that grows like log t has a product of about one at any time."""
        counts, E = land.counts, land.E
        m, document, u = counts.matrix, documents_of(counts), E @ z
        top = top_types(counts, u)[document]
        # A weight that is behind the largest of its document by less than half of log t may be tied.
        level = u[m.indices] + np.log(m.data)
        mask = (level > highest(counts, level)[document] - 0.5 * log_time) | (m.indices == top)
        for _ in range(50):
            face = cls.of(counts, E, mask)
            if face.dimension == 0:
                return face
            inner = face.restricted(counts)
            H, _, log_size = Landscape(inner, E @ face.inside, land.w).hessian(face.inside.T @ z)
            curvature, axes = np.linalg.eigh(H)
            log_size = log_time + max(log_size, -1e3) + math.log(inner.n_documents / counts.n_documents)
            loose = np.log(np.maximum(curvature, 1e-300)) + log_size < SETTLED
            if not loose.any():
                return face
            tied = np.flatnonzero(face.mask)
            pairs, where = np.unique(np.stack([m.indices[tied], top[tied]], axis=1), axis=0, return_inverse=True)
            # A tie is none where a share of 1e-4 of its difference lies along loose directions; less is rounding.
            stays = np.ones(len(pairs), bool)
            for first in range(0, len(pairs), 20_000):  # as many embeddings are held at once
                part = slice(first, first + 20_000)
                apart = E[pairs[part, 0]] - E[pairs[part, 1]]
                along = np.linalg.norm(apart @ (face.inside @ axes[:, loose]), axis=1)
                stays[part] = along <= 1e-4 * np.linalg.norm(apart, axis=1)
            if stays.all():
                return face
            mask = face.mask.copy()
            mask[tied[~stays[where.ravel()]]] = False
        return face

    @cached_property
    def outside(self) -> Floats:
        """Orthonormal basis of V^⊥, shape (r, r − k)."""
        return np.ascontiguousarray(np.linalg.qr(self.inside, mode="complete")[0][:, self.dimension :])

    @cached_property
    def lead(self) -> Ints:
        """The first type of each group, shape (groups,)."""
        return np.unique(self.group, return_index=True)[1]

    @property
    def dimension(self) -> int:
        """dim V."""
        return int(self.inside.shape[1])

    def restricted(self, counts: Counts) -> Counts:
        """The documents with two or more types of the selection, with these types alone."""
        m = counts.matrix
        kept = sp.csr_array((m.data * self.mask, m.indices.copy(), m.indptr.copy()), shape=m.shape)  # zeros go in place
        kept.eliminate_zeros()
        tied = Counts(kept, counts.labels, counts.classes, counts.tokens)
        return tied.rows(np.flatnonzero(np.diff(kept.indptr) > 1))


@dataclass(frozen=True)
class Equilibrium:
    """The minimum z* of L_S on V, with its certificate (F1).

    Attributes:
        z: shape (r,), in V.
        answers: f*_X, shape (n,).
        log_total: log Σ_{s ∈ S_X} c_s e^{E_s·z*} of each document, shape (n,); zero for a document without types.
        curvature: smallest curvature of L_S on V; inf where V = 0.
        spread: the same relative to the largest curvature.
        moved: largest change of a score gap on the way from the curve to z*, in nats.
        documents: how many select two or more types.
    """

    z: Floats
    answers: Floats
    log_total: Floats
    curvature: float
    spread: float
    moved: float
    documents: int

    @classmethod
    def near(cls, land: Landscape, face: Face, z: Floats) -> Equilibrium | None:
        """The strict local minimum that Newton's method reaches from a point, moving no gap by more than a nat; or None."""
        counts, E, m, document = land.counts, land.E, land.counts.matrix, documents_of(land.counts)
        V, found, curvature, moved, tied = face.inside, np.zeros(E.shape[1]), np.ones(1), 0.0, 0
        log_least = math.inf
        if face.dimension:
            inner = face.restricted(counts)
            tied = inner.n_documents
            inner_land, x = Landscape(inner, E @ V, land.w), V.T @ z
            ends, scores = inner.matrix.indptr[:-1], inner_land.E @ x
            for _ in range(30):
                H, downhill, log_size = inner_land.hessian(x)
                curvature, axes = np.linalg.eigh(H)
                if curvature[0] <= 1e-13 * curvature[-1]:
                    return None
                log_least = log_size + math.log(curvature[0])
                step = axes @ ((axes.T @ downhill) / curvature)
                x = x + step
                shift = (inner_land.E @ x - scores)[inner.matrix.indices]
                moved = float(np.max(np.maximum.reduceat(shift, ends) - np.minimum.reduceat(shift, ends)))
                if moved > 1.0:
                    return None
                size = float(np.linalg.norm(step)) / (1 + float(np.linalg.norm(x)))
                if size <= 1e-11:
                    break
            else:
                if size > 1e-7:
                    return None
            found = V @ x
            log_least += math.log(tied / counts.n_documents)
        u = np.where(face.mask, (E @ found)[m.indices], -np.inf)
        peak = np.maximum(highest(counts, u), -1e300)  # a document without types has none
        weight = m.data * np.exp(u - peak[document])
        total = np.bincount(document, weight, counts.n_documents)
        some = np.where(total > 0, total, 1.0)
        return cls(
            z=found,
            answers=np.bincount(document, weight * land.w[m.indices], counts.n_documents) / some,
            log_total=np.where(total > 0, peak + np.log(some), 0.0),
            curvature=math.exp(log_least) if face.dimension else math.inf,
            spread=float(curvature[0] / curvature[-1]),
            moved=moved,
            documents=tied,
        )


class SplitFlow:
    """The true flow from a point, in coordinates that are chosen anew whenever ties settle or pairs become live.

    Arguments as those of `Integrator`; the ties to begin with are found from the clock if `face` is None.
    """

    def __init__(
        self, land: Landscape, p: Floats, clock: float, log_time: float, tolerance: float, face: Face | None = None
    ) -> None:
        self._land, self._tolerance, self.looked = land, tolerance, clock
        self.face = face or Face.settled(land, p, clock)
        self.solver = self._begin(p, clock, log_time, 0.1)

    def step(self) -> bool:
        """One step, in local time where the clock does not resolve it; False where that fails too."""
        solver = self.solver
        if not (solver.step() or (solver.restart() and solver.step())):
            return False
        if abs(solver.clock - self.looked) >= 1.5 and solver.clock > 0:
            self.look()
        return True

    def look(self) -> bool:
        """Find the ties anew; whether they changed."""
        solver = self.solver
        self.looked = solver.clock
        face = Face.settled(self._land, solver.p, solver.clock)
        if np.array_equal(face.mask, self.face.mask):
            return False
        self.face = face
        self.solver = self._begin(solver.p, solver.clock, solver.log_time, solver.last_step)
        return True

    def outside(self) -> tuple[float, float]:
        """Of the gradient along V^⊥: the logarithm of its norm, and that norm over the sum of the sizes of its terms."""
        split = self.solver.here
        assert isinstance(split, SplitLandscape)
        return split.outside(split.split(self.solver.p))

    def _begin(self, p: Floats, clock: float, log_time: float, step: float) -> Integrator:
        face, tolerance = self.face, (self._tolerance, self._tolerance)

        def coordinates(p: Floats, clock: float, margin: float) -> SplitLandscape:
            return SplitLandscape(self._land, face, p, clock, margin)

        return Integrator(coordinates, p, clock, log_time, tolerance, step)
