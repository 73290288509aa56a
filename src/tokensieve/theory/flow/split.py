"""The true flow in coordinates that split ties off, so that they cancel exactly.

The flow is followed in p = V ζ + W q, W a basis of V^⊥. Because Σ_s t_{X,s} = 0, its gradient there
is a sum over *unselected* types alone,

    Wᵀ∇L = Σ_X g_X Σ_{r ∉ S_X} t_{X,r} (F_r − F_X),

and ties cancel exactly instead of in the last digits. The Hessian is assembled the same way. W
spans the pairs whose force matters yet; the rest of q stands still until another becomes live.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tokensieve.arrays import Floats
from tokensieve.theory.flow.face import Face
from tokensieve.theory.flow.integrator import Jacobian, Slope
from tokensieve.theory.flow.landscape import (
    LAST_BIT,
    Landscape,
    LiveEntries,
    OpenEntries,
    PointFigures,
    Terms,
    node_forces,
    times_differences,
)
from tokensieve.theory.geometry import laplacian_form, span_of


def moving_entries(
    land: Landscape, face: Face, u: Floats, clock: float, margin: float
) -> NDArray[np.bool_]:
    """The unselected entries whose force could move something by e^{−margin} within e^clock of
    time, at scores u."""
    level = np.where(face.mask, -math.inf, land.logarithms(land.terms(u)))
    strongest = float(level.max(initial=-math.inf))
    return np.asarray(level > min(-max(clock, 0.0), strongest) - margin)


class SplitLandscape:
    """L in the coordinates (ζ, q) of a face and of the pairs that are live at p.

    The interface is that of `Landscape`. Forces `margin` nats weaker than those that move
    something, at e^clock of time, are left out.

    Attributes:
        face: the ties and V.
        land: L with the entries that matter or are selected.
    """

    # A: E in V, shape (|S|, k). F: the embeddings of groups on the span of the live pairs, shape
    # (groups, j). W: that span, shape (r, j). rest: what stands still of q, shape (r,), and base:
    # what it adds to the scores, shape (|S|,). open: the unselected entries of `land`, of which
    # idle ones move nothing yet; ends: of each the group that its document selects and its own.

    def __init__(self, land: Landscape, face: Face, p: Floats, clock: float, margin: float) -> None:
        self.face = face
        self._A = land.E @ face.inside
        F = land.E[face.lead] @ face.outside
        q = face.outside.T @ p
        u = self._A @ (face.inside.T @ p) + (F @ q)[face.group]
        moves = moving_entries(land, face, u, clock, margin)
        is_strong = moves | face.mask | land.strong(p, clock, margin)
        self.land = LiveEntries(land, is_strong, u)
        counts = self.land.counts

        self._is_open = ~face.mask[is_strong]
        self._open = np.flatnonzero(self._is_open)
        self._open_documents = counts.entry_documents[self._open]
        is_moving = moves[is_strong][self._open]
        self._idle = np.flatnonzero(~is_moving)
        selected_group = face.selected_group[self._open_documents]
        types = counts.matrix.indices[self._open]
        self._ends = np.stack([selected_group, face.group[types]], axis=1)
        # Entries of one type with one selected group share a number: their forces are summed first.
        numbers = selected_group * counts.n_types + types
        self._first, self._pair = np.unique(numbers, return_index=True, return_inverse=True)[1:]

        live_pairs = land.distinct(self._ends[is_moving], counts.n_types)[0]
        live_basis = span_of(F, live_pairs)
        self._W = face.outside @ live_basis
        self._rest = face.outside @ (q - live_basis @ (live_basis.T @ q))
        self._F = np.ascontiguousarray(F @ live_basis)
        self._base = (land.E[face.lead] @ self._rest)[face.group]
        self._last_point: Floats = np.zeros(0)
        self._last_terms: Terms | None = None
        self._last_downhill = np.zeros(0)

    def split(self, p: Floats) -> Floats:
        return np.concatenate([self.face.inside.T @ p, self._W.T @ p])

    def joined(self, x: Floats) -> Floats:
        k = self.face.dimension
        return np.asarray(self.face.inside @ x[:k] + self._W @ x[k:] + self._rest)

    def left_out_force(self, x: Floats, enough: float) -> float:
        terms = self._terms(x)
        idle = float(np.abs(self._force(terms)[self._idle]).max(initial=0.0))
        return max(self._log(idle, terms), self.land.left_out(self._scores(x), terms, enough))

    def slope(self, x: Floats) -> Slope:
        """−∇L/‖∇L‖ and log‖∇L‖ in the coordinates x = (ζ, q)."""
        terms = self._terms(x)
        downhill = self._last_downhill
        size = float(np.linalg.norm(downhill))
        if size == 0:
            return Slope(downhill, -math.inf)
        return Slope(downhill / size, self._log(size, terms))

    def outside(self, x: Floats) -> PointFigures:
        """L, and of the gradient along V^⊥ its logarithm and its norm over the sum of its terms'
        sizes."""
        terms = self._terms(x)
        downhill = self._last_downhill
        loss = float(np.mean(np.logaddexp(0.0, -terms.answer)))
        size = float(np.linalg.norm(downhill[self.face.dimension :]))
        if size == 0:
            return PointFigures(loss, -math.inf, 1.0)
        without_cancelling = float(np.abs(self._force(terms)).sum())
        return PointFigures(loss, self._log(size, terms), size / without_cancelling)

    def hessian(self, x: Floats, clock: float | None = None) -> Jacobian:
        """As `Landscape.hessian`, in the coordinates on V and V^⊥."""
        terms = self._terms(x)
        downhill = self._last_downhill
        size = float(np.linalg.norm(downhill)) or 1.0
        force = self._force(terms)
        negligible = self.land.negligible(terms, clock)
        weakest = max(negligible, LAST_BIT * float(np.abs(force).max(initial=0.0)))
        is_strong = np.abs(force) > weakest
        entries = OpenEntries(self._open[is_strong], self._ends[is_strong], self._F)
        H = self.land.curvature(terms, self._A, negligible, entries)
        # Forces of equal documents cancel exactly where they are summed first.
        summed = np.bincount(self._pair[is_strong], force[is_strong], len(self._first))
        self._add_outside(H, np.asarray(summed, np.float64))
        H = np.asarray((H + H.T) / (2 * size))  # exactly symmetric
        return Jacobian(H, downhill / size, self._log(size, terms))

    def _add_outside(self, H: Floats, force: Floats) -> None:
        """Add Σ f D Dᵀ to the block of V^⊥ and Σ f A_r (−D)ᵀ to the mixed ones, D = F_a − F_b.

        Args:
            H: changed, shape (k + j, k + j).
            force: f of each number, that is of one type r with one selected group, shape (m,).
        """
        k = self.face.dimension
        first = self._first[force != 0]
        force = force[force != 0]
        pairs = self._ends[first]
        types = self.land.counts.matrix.indices[self._open[first]]
        H[k:, k:] += laplacian_form(self._F, pairs, force)
        mixed = self._A.T @ times_differences(types, pairs, force, self._F, len(self._A))
        H[:k, k:] += mixed
        H[k:, :k] += mixed.T

    def _terms(self, x: Floats) -> Terms:
        """The terms at a point; −∇L relative to e^{shift}/n is kept beside them until the next
        point."""
        if self._last_terms is None or not np.array_equal(self._last_point, x):
            m = self.land.counts.matrix
            face = self.face
            terms = self.land.terms(self._scores(x))
            node = node_forces(
                m.indptr,
                m.indices,
                self._is_open,
                face.selected_group,
                face.group,
                terms.g,
                terms.t,
                len(self._F),
            )
            self._last_point = x.copy()
            self._last_terms = terms
            self._last_downhill = np.concatenate([-(self._A.T @ terms.a), node @ self._F])
        return self._last_terms

    def _scores(self, x: Floats) -> Floats:
        """u of each type; those of one group agree to the last digit beyond V."""
        k = self.face.dimension
        return np.asarray(self._base + self._A @ x[:k] + (self._F @ x[k:])[self.face.group])

    def _force(self, terms: Terms) -> Floats:
        """The force on each open entry, relative to e^{shift}/n."""
        return terms.g[self._open_documents] * terms.t[self._open]

    def _log(self, size: float, terms: Terms) -> float:
        if size <= 0:
            return -math.inf
        return math.log(size / self.land.counts.n_documents) + terms.shift
