"""The slow flow: what p does once the finite gaps of a face have settled at z*.

To first order in the weights of unselected types the loss is then L_S(z*) + Φ(q), q ∈ V^⊥, with

    Φ(q) = Σ_{(a,b)} K_{ab} e^{−(F_a − F_b)·q},   K_{ab} = Σ σ(−y f*) y (f* − w_r) c_r e^{E_r·z*} /
    (n Z_X(z*)),

summed over the documents X whose selected types are group a and their unselected types r of group
b. A pair with K > 0 pushes its gap open, one with K < 0 *pulls*. No settled term is subtracted from
another: dq/dt = −∇Φ can be followed to any norm.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tokensieve.arrays import Floats, Ints
from tokensieve.theory.flow.equilibrium import Equilibrium
from tokensieve.theory.flow.face import SETTLED, Face
from tokensieve.theory.flow.integrator import Integrator, Jacobian, Slope
from tokensieve.theory.flow.landscape import Landscape
from tokensieve.theory.geometry import laplacian_form, span_of

# Forces whose sum is this much smaller than they are cancel: equal documents are predicted at the
# frequency of their labels.
CANCELS = 1e-9
# An unselected type whose weight in its document rises to e^{−NEAR} ends the face.
NEAR = 8.0
# A type without a force counts as this many nats further away: nothing pulls it in.
FORCELESS_DISTANCE = 5.0
# Relative and absolute local error of a step, finer than the curve's: this path may be very long.
TOLERANCE = (1e-9, 1e-5)
# A path of more steps is given up.
MAX_STEPS = 20_000
# Less than this fraction of the largest force does not reach the last bit.
LAST_BIT = 1e-17
# At rest, the remaining motion per unit of log t is below this.
AT_REST = 1e-3
# Forces this many nats weaker than the largest do not matter while a gap is pulled shut.
MATTERS = 40.0

# Why the slow flow was left: an unselected type comes near, log t is as far as was wanted, nothing
# moves, or the budget of steps or time ended.
End = Literal["near", "far", "still", "steps", "time"]


@dataclass(frozen=True)
class SlowPath:
    """A path of the slow flow.

    Attributes:
        end: why it was left.
        points: shape (m, r − k); log_time: log t at them, shape (m,).
        clock: the integrator's clock at the last point.
    """

    end: End
    points: Floats
    log_time: Floats
    clock: float


@dataclass(frozen=True)
class Forces:
    """K e^{−gap} of each pair and −∇Φ, both relative to the largest force e^{log_scale}."""

    of_pairs: Floats
    downhill: Floats
    log_scale: float


@dataclass(frozen=True)
class UnselectedEntries:
    """The entries (X, r) of a document and an unselected type.

    Attributes:
        pairs: distinct pairs (a, b) of the group that X selects and the group of r, shape (j, 2).
        document, pair: number of X, and the row of `pairs`, of each entry.
        log_share: log of c_r e^{E_r·z*}/Z_X(z*).
        gain: y (f* − w_r).
    """

    pairs: Ints
    document: Ints
    pair: Ints
    log_share: Floats
    gain: Floats

    @classmethod
    def of(cls, land: Landscape, face: Face, at: Equilibrium) -> UnselectedEntries:
        """The entries of unselected types, with the numbers of their pair of tied groups.

        Args:
            land: documents as counts c of types, with the types' embeddings E and outputs w.
            face: which entries attention selects in the end, and the groups of types that tie.
            at: z*, the minimum of the loss on V, with the output f* and log Z_X of each document.
        """
        counts = land.counts
        unselected = np.flatnonzero(~face.mask)
        document = counts.entry_documents[unselected]
        types = counts.matrix.indices[unselected]
        ends = np.stack([face.selected_group[document], face.group[types]], axis=1)
        pairs, pair = Landscape.distinct(ends, len(face.lead))
        log_weight = np.log(counts.matrix.data[unselected]) + (land.E @ at.z)[types]
        return cls(
            pairs=pairs,
            document=document,
            pair=pair,
            log_share=log_weight - at.log_total[document],
            gain=counts.signs[document] * (at.answers[document] - land.w[types]),
        )


@dataclass(frozen=True)
class Exponentials:
    """Φ, with the interface of `Landscape`.

    Attributes:
        F: embeddings of the groups on V^⊥, shape (m, r − k).
        pairs: groups (a, b), shape (j, 2).
        log_k: log|K|, shape (j,); −∞ where the K of its documents cancel, so that no force moves
            the pair.
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
        """Φ of a face, at the minimum of L_S on V.

        An unselected type r of document X adds σ(−y f*)/n · c_r e^{E_r·z*}/Z_X · y (f* − w_r) to
        the K of its pair of groups. Sums are taken of logarithms, because shares may underflow.
        """
        entries = UnselectedEntries.of(land, face, at)
        n_pairs = len(entries.pairs)
        signed_answer = land.counts.signs[entries.document] * at.answers[entries.document]
        with np.errstate(divide="ignore"):  # a gain of exactly zero is no force
            log_force = np.log(np.abs(entries.gain)) - np.logaddexp(0.0, signed_answer)
            log_force += entries.log_share - math.log(land.counts.n_documents)
            log_k, sign = signed_sum(log_force, np.sign(entries.gain), entries.pair, n_pairs)
        return cls(
            F=land.E[face.lead] @ face.outside,
            pairs=entries.pairs,
            log_k=log_k,
            sign=sign,
            log_weight=largest_of_each(entries.log_share, entries.pair, n_pairs),
        )

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

    def log_weights(self, q: Floats) -> Floats:
        """How much attention the group b of each pair gets at most, as a logarithm, shape (j,).

        It is the largest softmax weight of b, relative to the selected types, over the documents
        that have the pair. Φ describes the loss only while all of these are small. A group that no
        force moves counts as further away than it is, because nothing draws it nearer.
        """
        discount = FORCELESS_DISTANCE * self.without_force
        return np.asarray(self.log_weight - self.gaps(q) - discount)

    def log_forces(self, q: Floats) -> Floats:
        """log |K e^{−D·q}|, the logarithm of the force of each pair, shape (j,)."""
        return np.asarray(self.log_k - self.gaps(q))

    def slope(self, q: Floats) -> Slope:
        """−∇Φ/‖∇Φ‖ and log‖∇Φ‖."""
        forces = self._forces(q)
        size = float(np.linalg.norm(forces.downhill))
        if size == 0:
            return Slope(forces.downhill, -math.inf)
        return Slope(forces.downhill / size, math.log(size) + forces.log_scale)

    def hessian(self, q: Floats, clock: float | None = None) -> Jacobian:
        """∇²Φ/‖∇Φ‖, −∇Φ/‖∇Φ‖ and log‖∇Φ‖."""
        forces = self._forces(q)
        size = float(np.linalg.norm(forces.downhill)) or 1.0
        is_live = np.abs(forces.of_pairs) > LAST_BIT
        H = laplacian_form(self.F, self.pairs[is_live], forces.of_pairs[is_live])
        return Jacobian(H / size, forces.downhill / size, math.log(size) + forces.log_scale)

    def _forces(self, q: Floats) -> Forces:
        """K e^{−D·q} of each pair and −∇Φ = Σ K e^{−D·q} D; relative to the strongest, as all may
        underflow."""
        level = self.log_forces(q)
        n_groups = len(self.F)
        top = float(level.max(initial=-math.inf))
        if top == -math.inf:
            force = np.zeros(len(level))
        else:
            force = self.sign * np.exp(level - top)
        pushed = np.bincount(self.pairs[:, 0], force, n_groups)
        pushed_back = np.bincount(self.pairs[:, 1], force, n_groups)
        return Forces(force, (pushed - pushed_back) @ self.F, top)

    def follow(
        self, q: Floats, clock: float, log_time: float, far: float, deadline: float = math.inf
    ) -> SlowPath:
        """Follow dq/dt = −∇Φ until the face changes, nothing moves, or log t is far enough.

        The face changes where an unselected group comes near: its weight in some document has risen
        to e^{−NEAR}. The path then ends at that very point of the last step.

        Args:
            q: where to begin on V^⊥, shape (r − k,).
            clock, log_time: log t there, as in `Integrator`.
            far: log t at which to stop.
            deadline: no step begins later, by time.monotonic().
        """
        solver = Integrator(
            lambda q, clock, margin: LivePairs(self, q, clock, margin),
            q,
            clock,
            log_time,
            TOLERANCE,
        )
        track = Track([q], [log_time])
        before = self.log_weights(q)
        for _ in range(MAX_STEPS):
            if time.monotonic() > deadline:
                return track.ended("time", solver.clock)
            if self.slope(solver.p).log_size == -math.inf:
                return track.ended("still", solver.clock)
            if not solver.step():
                # A gap closes faster than this clock can show, or has just been let go.
                if not solver.restart(*pulled_shut(self, solver.p)):
                    break
                before = self.log_weights(solver.p)
                continue

            after = self.log_weights(solver.p)
            is_near = (after > -NEAR) & (after > before)
            self._back_to_crossing(solver, is_near & (before <= -NEAR))
            before = after
            track.add(solver)
            if is_near.any():
                return track.ended("near", solver.clock)
            if at_rest(self, solver.p, solver.clock):
                return track.ended("still", solver.clock)
            if solver.log_time >= far:
                return track.ended("far", solver.clock)
        return track.ended("steps", solver.clock)

    def _back_to_crossing(self, solver: Integrator, has_crossed: NDArray[np.bool_]) -> None:
        """Return to where the first of some pairs reached e^{−NEAR} within the last step."""
        if has_crossed.any():
            solver.back_to(lambda q: float(self.log_weights(q)[has_crossed].max()) + NEAR)


@dataclass(frozen=True)
class Track:
    """The points of a slow path so far, and log t at them."""

    points: list[Floats]
    times: list[float]

    def add(self, solver: Integrator) -> None:
        self.points.append(solver.p)
        self.times.append(solver.log_time)

    def ended(self, end: End, clock: float) -> SlowPath:
        return SlowPath(end, np.array(self.points), np.array(self.times), clock)


def largest_of_each(values: Floats, owner: Ints, n_owners: int) -> Floats:
    """The largest value of each owner, all of which have one, shape (n_owners,)."""
    if not n_owners:
        return values
    order = np.argsort(owner, kind="stable")
    first = np.searchsorted(owner[order], np.arange(n_owners))
    return np.asarray(np.maximum.reduceat(values[order], first))


def signed_sum(logs: Floats, signs: Floats, owner: Ints, n_owners: int) -> tuple[Floats, Floats]:
    """log|Σ sign e^{log}| of each owner, and the sign of the sum; sums that cancel are zero.

    Terms are taken relative to the largest of their owner, so that none overflows.

    Args:
        logs, signs, owner: of each term, shape (terms,); signs are ±1.
        n_owners: how many owners there are; both results have the shape (n_owners,).
    """
    largest = largest_of_each(logs, owner, n_owners)
    largest = np.where(np.isneginf(largest), 0.0, largest)
    relative = np.exp(logs - largest[owner])
    total = np.bincount(owner, signs * relative, n_owners)
    size = np.bincount(owner, relative, n_owners)
    cancels = np.abs(total) <= CANCELS * size
    total[cancels] = 0.0
    return largest + np.log(np.abs(total)), np.sign(total)


class LivePairs:
    """Φ on the span of the pairs whose force matters yet; the rest of q stands still."""

    def __init__(self, phi: Exponentials, q: Floats, clock: float, margin: float) -> None:
        level = phi.log_forces(q)
        strongest = float(level.max(initial=-math.inf))
        self._all = phi
        self._live = level > min(-max(clock, 0.0), strongest) - margin
        self._basis = span_of(phi.F, phi.pairs[self._live])
        self._rest = q - self._basis @ (self._basis.T @ q)
        # The live pairs alone, between the groups that occur in them.
        nodes, ends = np.unique(phi.pairs[self._live], return_inverse=True)
        live = Exponentials(
            F=phi.F[nodes] @ self._basis,
            pairs=ends.reshape(-1, 2),
            log_k=(phi.log_k - phi.gaps(self._rest))[self._live],
            sign=phi.sign[self._live],
            log_weight=phi.log_weight[self._live],
        )
        self.slope = live.slope
        self.hessian = live.hessian

    def split(self, q: Floats) -> Floats:
        return np.asarray(self._basis.T @ q)

    def joined(self, x: Floats) -> Floats:
        return np.asarray(self._rest + self._basis @ x)

    def left_out_force(self, x: Floats, enough: float) -> float:
        level = self._all.log_forces(self.joined(x))
        return float(level[~self._live].max(initial=-math.inf))


class ShutGap(NamedTuple):
    """Where q is once a gap has been pulled shut, and the logarithm of the time that passed."""

    q: Floats | None = None
    log_passed: float = -math.inf


def pulled_shut(phi: Exponentials, q: Floats) -> ShutGap:
    """The closing of a gap that is pulled shut, as far as no other force matters and no type is
    near.

    Without q where no such force moves it.

    With K < 0 alone, d gap/dt = −|K| ‖D‖² e^{−gap} has a pole at t = e^{gap}/(|K| ‖D‖²): all but
    the first nats of a long gap close in no time, along D, and every other gap moves in proportion.
    """
    level = phi.log_forces(q)
    strongest = int(np.argmax(level))
    D = phi.F[phi.pairs[strongest, 0]] - phi.F[phi.pairs[strongest, 1]]
    square = float(D @ D)
    if phi.sign[strongest] > 0 or square == 0:
        return ShutGap()
    others_behind = np.delete(level[strongest] - MATTERS - level, strongest)
    if others_behind.min(initial=0.0) < 0:
        return ShutGap()
    moves = phi.gaps(D) / square  # nats by which each gap closes per nat of this one
    until_other_force = _until(others_behind, np.delete(moves, strongest) - 1)
    until_near_type = _until(-NEAR - 1 - phi.log_weights(q), moves)
    closes_by = min(until_other_force, until_near_type)
    if closes_by <= 1:
        return ShutGap()
    log_passed = math.log(-math.expm1(-closes_by)) - float(level[strongest]) - math.log(square)
    return ShutGap(np.asarray(q - D * (closes_by / square)), log_passed)


def _until(distances: Floats, speeds: Floats) -> float:
    """When the first of some distances is covered; infinite if nothing moves towards its end."""
    is_moving = speeds > 0
    return float((distances[is_moving] / speeds[is_moving]).min(initial=math.inf))


def at_rest(phi: Exponentials, q: Floats, clock: float) -> bool:
    """Whether q hardly moves, and t · curvature is large wherever a gap can move: a strict
    minimum."""
    if phi.slope(q).log_size + clock > math.log(AT_REST):
        return False
    jacobian = phi.hessian(q)
    curvature = np.linalg.eigvalsh(phi.span.T @ jacobian.H @ phi.span)
    if curvature[0] <= 0:
        return False
    return bool(clock + jacobian.log_size + math.log(curvature[0]) > SETTLED)
