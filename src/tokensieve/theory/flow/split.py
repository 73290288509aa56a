"""Which types stay tied, the minimum that their scores settle at, and the true flow in coordinates that split ties off.

In the clock log t a score gap of the flow stays finite (a *tie*) or grows, at rate one or more where a force acts. Let S_X be
the types of document X that stay tied at its top, closed under ties of other documents, and V = span{E_s − E_{s'} : s, s' ∈ S_X,
all X}. On V^⊥ all types of one S_X have one embedding F_X, so that L_S, the loss with every softmax restricted to S_X, depends on
the part of p in V only.

The flow itself is followed in p = V ζ + W q, W a basis of V^⊥. Because Σ_s t_{X,s} = 0, its gradient there is a sum over
*unselected* types alone, Wᵀ∇L = Σ_X g_X Σ_{r ∉ S_X} t_{X,r} (F_r − F_X): ties cancel exactly instead of in the last digits. The
Hessian is assembled the same way. W spans the pairs whose force matters yet; the rest of q stands still until another becomes live.

Once the finite gaps of a face have settled at z*, to first order in the weights of unselected types the loss is L_S(z*) + Φ(q) with

    Φ(q) = Σ_{(a,b)} K_{ab} e^{−(F_a − F_b)·q},     K_{ab} = Σ σ(−y f*) y (f* − w_r) c_r e^{E_r·z*} / (n Z_X(z*)),

summed over the documents X whose selected types are group a and their unselected types r of group b. A pair with K > 0 pushes its
gap open, one with K < 0 *pulls*. No settled term is subtracted from another: dq/dt = −∇Φ can be followed to any norm.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from tokensieve.arrays import Floats, Ints
from tokensieve.text.counts import Counts
from tokensieve.theory.flow.integrator import Integrator
from tokensieve.theory.flow.landscape import Landscape
from tokensieve.theory.geometry import laplacian_form, span_of

# A direction of V has settled where t times its curvature exceeds e^{this}; where a gap diverges the product is about one.
_SETTLED = 5.0
# Forces whose sum is this much smaller than they are cancel: equal documents are predicted at the frequency of their labels.
_CANCELS = 1e-9
# Where curvatures differ by more than this, L_S may be least on a surface.
_FLAT = 1e-6
# An unselected type whose weight in its document rises to e^{−NEAR} ends the face.
NEAR = 8.0
# Why the slow flow was left: an unselected type comes near, log t is as far as was wanted, nothing moves, or the budget ended.
End = Literal["near", "far", "still", "steps", "time"]


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
        """The face of a selection, shape (nnz,), closed under ties; it contains at least one type of every nonempty document."""
        m, document = counts.matrix, counts.entry_documents
        group = cls.ties(counts, mask)
        inside = span_of(E, np.stack([np.arange(len(E)), group], axis=1))
        # Types that coincide outside V are tied there, even where no document links them. Three random views show whether they
        # do, up to 1e-9 of the longest embedding.
        lead = np.zeros(counts.n_documents, np.int64)
        lead[document[mask]] = m.indices[mask]
        directions = np.random.default_rng(0).standard_normal((E.shape[1], 3))
        views, near = (
            E @ (directions - inside @ (inside.T @ directions)),
            1e-9 * float(np.linalg.norm(E, axis=1).max()),
        )
        leads = lead[document]
        same = (group[m.indices] == group[leads]) | (
            np.abs(views[m.indices, 0] - views[leads, 0]) <= near
        )
        seen = np.flatnonzero(same)
        apart = np.abs(views[m.indices[seen]] - views[leads[seen]]).max(axis=1)
        same[seen] = (group[m.indices[seen]] == group[leads[seen]]) | (apart <= near)
        if (same & ~mask).any():
            group = cls.ties(counts, same)
        group = np.unique(group, return_inverse=True)[1]
        own = np.zeros(counts.n_documents, np.int64)
        own[document[same]] = group[m.indices[same]]
        return cls(same, group, own, inside)

    @staticmethod
    def ties(counts: Counts, mask: NDArray[np.bool_]) -> Ints:
        """What a selection, shape (nnz,), ties together: of each type the first one that it is tied to, shape (|S|,)."""
        document, types = counts.entry_documents[mask], counts.matrix.indices[mask]
        last = np.zeros(counts.n_documents, int)
        last[document] = types
        links = sp.csr_array(
            (np.ones(len(types)), (types, last[document])), shape=(counts.n_types, counts.n_types)
        )
        group = connected_components(links, directed=False)[1]
        return np.asarray(np.unique(group, return_index=True)[1][group])

    @classmethod
    def settled(cls, land: Landscape, z: Floats, log_time: float) -> Face:
        """The ties that have settled at a point: those that are near enough, less every direction of V in which time times
        curvature is below e^{_SETTLED}. A gap that grows like log t has a product of about one at any time."""
        counts, E = land.counts, land.E
        m, document, u = counts.matrix, counts.entry_documents, E @ z
        top = land.top_types(z)[document]
        # A weight that is behind the largest of its document by less than half of log t may be tied.
        level = u[m.indices] + np.log(m.data)
        mask = (level > counts.largest_per_document(level)[document] - 0.5 * log_time) | (
            m.indices == top
        )
        before = np.zeros(0, bool)
        for _ in range(50):
            face = cls.of(counts, E, mask)
            if face.dimension == 0:
                return face
            inner, A = face.restricted(counts), E @ face.inside
            H, _, log_size = Landscape(inner, A, land.w).hessian(face.inside.T @ z)
            curvature, axes = np.linalg.eigh(H)
            log_size = (
                log_time + max(log_size, -1e3) + math.log(inner.n_documents / counts.n_documents)
            )
            loose = np.log(np.maximum(curvature, 1e-300)) + log_size < _SETTLED
            if not loose.any():
                return face
            tied, along = np.flatnonzero(face.mask), axes[:, loose]
            pairs, where = Landscape.distinct(
                np.stack([m.indices[tied], top[tied]], axis=1), counts.n_types
            )
            share = np.zeros(len(pairs))
            for first in range(0, len(pairs), 20_000):  # as many differences are held at once
                part = slice(first, first + 20_000)
                apart = A[pairs[part, 0]] - A[pairs[part, 1]]
                lengths = np.maximum(np.linalg.norm(apart, axis=1), 1e-300)
                share[part] = np.linalg.norm(apart @ along, axis=1) / lengths
            # A tie is none where a share of 1e-4 of its difference lies along loose directions; less is rounding. Embeddings are
            # not orthogonal, so that one loose tie gives many others a share: those with the largest go first.
            again, before = np.array_equal(face.mask, before), face.mask
            leaves = share > max(1e-4, 0.0 if again else 0.5 * float(share.max()))
            if not leaves.any():
                return face
            # Where several types of a document are loose, the nearest may be tied without the others: it is tried again, unless
            # the others are tied again through V.
            leaving = tied[leaves[where]]
            leaving = leaving[np.lexsort((level[leaving], document[leaving]))]
            behind = leaving[:-1][document[leaving[:-1]] == document[leaving[1:]]]
            mask = face.mask.copy()
            mask[leaving if again or not len(behind) else behind] = False
        return face

    @cached_property
    def outside(self) -> Floats:
        """Orthonormal basis of V^⊥, shape (r, r − k)."""
        return np.ascontiguousarray(
            np.linalg.qr(self.inside, mode="complete")[0][:, self.dimension :]
        )

    @cached_property
    def lead(self) -> Ints:
        """The first type of each group, shape (groups,)."""
        return np.unique(self.group, return_index=True)[1]

    def entries(self, counts: Counts, pairs: Ints) -> NDArray[np.bool_]:
        """For each stored entry, whether it is unselected and its pair of groups is among the given ones, shape (nnz,)."""
        here = (
            self.own[counts.entry_documents] * len(self.group) + self.group[counts.matrix.indices]
        )
        return ~self.mask & np.isin(here, pairs[:, 0] * len(self.group) + pairs[:, 1])

    @property
    def dimension(self) -> int:
        """dim V."""
        return int(self.inside.shape[1])

    @staticmethod
    def only(counts: Counts, mask: NDArray[np.bool_]) -> Counts:
        """The documents reduced to some of their stored entries, shape (nnz,)."""
        m = counts.matrix
        kept = sp.csr_array(
            (m.data * mask, m.indices.copy(), m.indptr.copy()), shape=m.shape
        )  # zeros go in place
        kept.eliminate_zeros()
        return replace(counts, matrix=kept)

    def restricted(self, counts: Counts) -> Counts:
        """The documents with two or more selected types, reduced to these types."""
        tied = self.only(counts, self.mask)
        return tied.rows(np.flatnonzero(np.diff(tied.matrix.indptr) > 1))


def _label_frequencies(
    counts: Counts, E: Floats, w: Floats, x: Floats
) -> tuple[Floats, Floats, Floats] | None:
    """For each set of equal documents whose logit x can change: ∂f/∂x (m, k), the logit of its label frequency less f (m,), and
    the curvature of the loss in f there (m,); None where such a set has one label, which no finite logit predicts best."""
    m, slopes, misses, bends = counts.matrix, [], [], []
    equal = counts.equal_documents
    first, sizes = np.unique(equal, return_index=True, return_counts=True)[1:]
    shares = np.bincount(equal, counts.labels) / sizes
    for k, share, size in zip(first.tolist(), shares.tolist(), sizes.tolist(), strict=True):
        row = slice(*m.indptr[k : k + 2])
        types = m.indices[row]
        if np.ptp(w[types]) == 0:
            continue
        if share in (0.0, 1.0):
            return None
        u = E[types] @ x + np.log(m.data[row])
        q = np.exp(u - u.max())
        q /= q.sum()
        f = float(q @ w[types])
        slopes.append((q * (w[types] - f)) @ E[types])
        misses.append(math.log(share / (1 - share)) - f)
        bends.append(size / counts.n_documents * share * (1 - share))
    return np.array(slopes).reshape(-1, E.shape[1]), np.array(misses), np.array(bends)


@dataclass(frozen=True)
class Equilibrium:
    """The minimum z* of L_S on V, with its certificate (F1).

    Where equal documents have both labels, L_S may be least on a whole surface: every f_X is the logit of its label frequency.
    L is analytic, so that the flow converges to a point of it nearby (Absil & Kurdyka 2006), though no minimum is strict.

    Attributes:
        z: shape (r,), in V.
        answers: f*_X, shape (n,).
        log_total: log Σ_{s ∈ S_X} c_s e^{E_s·z*} of each document, shape (n,); zero for a document without types.
        curvature: smallest curvature of L_S on V; inf where V = 0.
        spread: the same relative to the largest curvature.
        moved: largest change of a score gap on the way from the curve to z*, in nats.
        documents: how many select two or more types.
        flat: dimension of the surface of minima through z*; 0 where the minimum is strict.
    """

    z: Floats
    answers: Floats
    log_total: Floats
    curvature: float
    spread: float
    moved: float
    documents: int
    flat: int = 0

    @classmethod
    def near(cls, land: Landscape, face: Face, z: Floats) -> Equilibrium | None:
        """The local minimum that Newton's method reaches from a point without moving any gap by more than a nat; else None."""
        counts, E, m, document = (
            land.counts,
            land.E,
            land.counts.matrix,
            land.counts.entry_documents,
        )
        V, found, curvature, moved, tied, flat = (
            face.inside,
            np.zeros(E.shape[1]),
            np.ones(1),
            0.0,
            0,
            0,
        )
        log_least = math.inf
        if face.dimension:
            inner = face.restricted(counts)
            tied = inner.n_documents
            inner_land, x = Landscape(inner, E @ V, land.w), V.T @ z
            ends, scores = inner.matrix.indptr[:-1], inner_land.E @ x
            for _ in range(30):
                H, downhill, log_size = inner_land.hessian(x)
                curvature, axes = np.linalg.eigh(H)
                surface, flat = None, 0
                if curvature[0] <= _FLAT * curvature[-1]:
                    surface = _label_frequencies(inner, inner_land.E, land.w, x)
                if surface is not None and 0 < len(surface[1]) < face.dimension:
                    slopes, misses, bends = surface
                    curvature, axes = np.linalg.eigh(
                        np.sqrt(np.outer(bends, bends)) * (slopes @ slopes.T)
                    )
                    log_size, flat = 0.0, face.dimension - len(misses)
                if curvature[0] <= 1e-13 * curvature[-1]:
                    return None
                step = (
                    np.linalg.pinv(slopes) @ misses
                    if flat
                    else axes @ ((axes.T @ downhill) / curvature)
                )
                log_least = log_size + math.log(curvature[0])
                x = x + step
                shift = (inner_land.E @ x - scores)[inner.matrix.indices]
                moved = float(
                    np.max(np.maximum.reduceat(shift, ends) - np.minimum.reduceat(shift, ends))
                )
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
        peak = np.maximum(
            counts.largest_per_document(u), -1e300
        )  # a document without types has none
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
            flat=flat,
        )


@dataclass(frozen=True)
class Exponentials:
    """Φ, with the interface of `Landscape`.

    Attributes:
        F: embeddings of the groups on V^⊥, shape (m, r − k).
        pairs: groups (a, b), shape (j, 2).
        log_k: log|K|, shape (j,); −∞ where the K of its documents cancel, so that nothing moves the pair but the others.
        sign: sign of K, shape (j,).
        log_weight: largest softmax weight of b over documents at q = 0, as a logarithm, shape (j,).
    """

    F: Floats
    pairs: Ints
    log_k: Floats
    sign: Floats
    log_weight: Floats

    @classmethod
    def of(cls, land: Landscape, face: Face, at: Equilibrium) -> Exponentials:
        """Φ of a face, at the minimum of L_S on V."""
        counts, F = land.counts, land.E[face.lead] @ face.outside
        m, y, rest = counts.matrix, counts.signs, ~face.mask
        d, s = counts.entry_documents[rest], m.indices[rest]
        log_weight = np.log(m.data[rest]) + (land.E @ at.z)[s] - at.log_total[d]
        pull = y[d] * (at.answers[d] - land.w[s])
        pairs, which = Landscape.distinct(np.stack([face.own[d], face.group[s]], axis=1), len(F))
        with np.errstate(divide="ignore"):
            level = np.log(np.abs(pull)) - np.logaddexp(0.0, y[d] * at.answers[d])
            level += log_weight - math.log(counts.n_documents)
            # Σ K of each pair, relative to its largest term.
            order = np.argsort(which, kind="stable")
            first = np.searchsorted(which[order], np.arange(len(pairs)))
            top, nearest = (
                np.maximum.reduceat(x[order], first) if len(pairs) else x
                for x in (level, log_weight)
            )
            top = np.where(np.isneginf(top), 0.0, top)
            share = np.exp(level - top[which])
            total = np.bincount(which, np.sign(pull) * share, len(pairs))
            total[np.abs(total) <= _CANCELS * np.bincount(which, share, len(pairs))] = 0.0
            return cls(F, pairs, top + np.log(np.abs(total)), np.sign(total), nearest)

    @property
    def without_force(self) -> NDArray[np.bool_]:
        """The pairs that feel no force, K = 0, shape (j,)."""
        return np.isneginf(self.log_k)

    @cached_property
    def span(self) -> Floats:
        """Orthonormal basis of the span of F_a − F_b, shape (r − k, l)."""
        return span_of(self.F, self.pairs)

    def gaps(self, q: Floats) -> Floats:
        """(F_a − F_b)·q, shape (j,)."""
        h = self.F @ q
        return np.asarray(h[self.pairs[:, 0]] - h[self.pairs[:, 1]])

    def nearness(self, q: Floats) -> Floats:
        """Logarithm of the largest weight of an unselected group in any document, shape (j,); e^−5 of it where no force acts."""
        return np.asarray(self.log_weight - self.gaps(q) - 5.0 * self.without_force)

    def log_forces(self, q: Floats) -> Floats:
        """Logarithm of the force of each pair, shape (j,)."""
        return np.asarray(self.log_k - self.gaps(q))

    def slope(self, q: Floats) -> tuple[Floats, float]:
        """−∇Φ/‖∇Φ‖ and log‖∇Φ‖."""
        _, downhill, top = self._at(q)
        size = float(np.linalg.norm(downhill))
        return (downhill / size, math.log(size) + top) if size > 0 else (downhill, -math.inf)

    def hessian(self, q: Floats, clock: float | None = None) -> tuple[Floats, Floats, float]:
        """∇²Φ/‖∇Φ‖, −∇Φ/‖∇Φ‖ and log‖∇Φ‖."""
        force, downhill, top = self._at(q)
        size = float(np.linalg.norm(downhill)) or 1.0
        live = np.abs(force) > 1e-17  # less does not reach the last bit
        return (
            laplacian_form(self.F, self.pairs[live], force[live]) / size,
            downhill / size,
            math.log(size) + top,
        )

    def _at(self, q: Floats) -> tuple[Floats, Floats, float]:
        """K e^{−gap} of each pair and −∇Φ, relative to the largest force, and the logarithm of that."""
        level, m = self.log_forces(q), len(self.F)
        top = float(level.max(initial=-math.inf))
        force = self.sign * np.exp(level - top) if top > -math.inf else np.zeros(len(level))
        node = np.bincount(self.pairs[:, 0], force, m) - np.bincount(self.pairs[:, 1], force, m)
        return force, node @ self.F, top

    def follow(
        self, q: Floats, clock: float, log_time: float, far: float, deadline: float = math.inf
    ) -> tuple[End, Floats, Floats, float]:
        """Follow dq/dt = −∇Φ until an unselected type comes near, log t reaches `far`, or nothing moves.

        q, clock and log_time are those of `Integrator`; by time.monotonic(), no step is begun after the deadline.

        Returns:
            Why the slow flow was left; its points, shape (m, r − k); log t at them, shape (m,); and the clock at the last point.
        """
        solver = Integrator(
            lambda q, clock, margin: _LivePairs(self, q, clock, margin),
            q,
            clock,
            log_time,
            (1e-9, 1e-5),
        )
        points, times, before = [q], [log_time], self.nearness(q)
        end: End = "steps"
        fresh = np.zeros(len(self.pairs), bool)

        def too_near(q: Floats) -> float:
            return float(self.nearness(q)[fresh].max()) + NEAR

        for _ in range(20_000):
            if time.monotonic() > deadline:
                end = "time"
            elif self.slope(solver.p)[1] == -math.inf:
                end = "still"
            if end != "steps":
                break
            if not solver.step():
                # A gap closes faster than this clock can show, or has just been let go.
                if not solver.restart(*_pulled_shut(self, solver.p)):
                    break
                before = self.nearness(solver.p)
                continue
            near = self.nearness(solver.p)
            closing = (near > -NEAR) & (near > before)
            fresh = closing & (before <= -NEAR)
            if fresh.any():
                solver.back_to(too_near)
            before = near
            points.append(solver.p)
            times.append(solver.log_time)
            if closing.any():
                end = "near"
            elif _at_rest(self, solver.p, solver.clock):
                end = "still"
            elif solver.log_time >= far:
                end = "far"
        return end, np.array(points), np.array(times), solver.clock


class _LivePairs:
    """Φ on the span of the pairs whose force matters yet; the rest of q stands still."""

    def __init__(self, phi: Exponentials, q: Floats, clock: float, margin: float) -> None:
        level = phi.log_forces(q)
        self._all = phi
        self._live = level > min(-max(clock, 0.0), float(level.max(initial=-math.inf))) - margin
        self._B = span_of(phi.F, phi.pairs[self._live])
        self._rest = q - self._B @ (self._B.T @ q)
        # The live pairs alone, between the groups that occur in them.
        nodes, ends = np.unique(phi.pairs[self._live], return_inverse=True)
        log_k = (phi.log_k - phi.gaps(self._rest))[self._live]
        sign, log_weight = phi.sign[self._live], phi.log_weight[self._live]
        inside = Exponentials(phi.F[nodes] @ self._B, ends.reshape(-1, 2), log_k, sign, log_weight)
        self.slope, self.hessian = inside.slope, inside.hessian

    def split(self, q: Floats) -> Floats:
        return np.asarray(self._B.T @ q)

    def joined(self, x: Floats) -> Floats:
        return np.asarray(self._rest + self._B @ x)

    def left_out_force(self, x: Floats, enough: float) -> float:
        return float(self._all.log_forces(self.joined(x))[~self._live].max(initial=-math.inf))


def _pulled_shut(phi: Exponentials, q: Floats) -> tuple[Floats | None, float]:
    """Where q is once a gap that is pulled shut has closed as far as no other force matters and no type is near, and log t passed.

    With K < 0 alone, d gap/dt = −|K| ‖D‖² e^{−gap} has a pole at t = e^{gap}/(|K| ‖D‖²): all but the first nats of a long gap
    close in no time, along D, and every other gap moves in proportion. (None, −∞) where no such force moves q.
    """
    level = phi.log_forces(q)
    first = int(np.argmax(level))
    D = phi.F[phi.pairs[first, 0]] - phi.F[phi.pairs[first, 1]]
    length = float(D @ D)
    if phi.sign[first] > 0 or length == 0:
        return None, -math.inf
    rise, room = phi.gaps(D) / length, -NEAR - 1 - phi.nearness(q)
    others = np.arange(len(level)) != first
    behind, gain = (level[first] - 40.0 - level)[others], rise[others] - 1
    limits = np.concatenate([behind[gain > 0] / gain[gain > 0], room[rise > 0] / rise[rise > 0]])
    by = float(limits.min())
    if behind.min(initial=0.0) < 0 or by <= 1:
        return None, -math.inf
    passed = math.log(-math.expm1(-by)) - float(level[first]) - math.log(length)
    return np.asarray(q - D * (by / length)), passed


def _at_rest(phi: Exponentials, q: Floats, clock: float) -> bool:
    """Whether q has come to rest at a strict minimum of Φ: it hardly moves, and t · curvature is large wherever a gap can move."""
    if phi.slope(q)[1] + clock > math.log(1e-3):
        return False
    H, _, log_size = phi.hessian(q)
    curvature = np.linalg.eigvalsh(phi.span.T @ H @ phi.span)
    return bool(curvature[0] > 0 and clock + log_size + math.log(curvature[0]) > _SETTLED)
