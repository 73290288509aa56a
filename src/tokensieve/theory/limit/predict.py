"""What p does after the curve that was computed: the slow flow, and the changes of the selection on its way.

Once the finite gaps of a face have settled at z*, tied types coincide *exactly* on V^⊥, and to first order in the weights of
unselected types the loss is L_S(z*) + Φ(q) with

    Φ(q) = Σ_{(a,b)} K_{ab} e^{−(F_a − F_b)·q},     K_{ab} = Σ σ(−y f*) y (f* − w_r) c_r e^{E_r·z*} / (n Z_X(z*)),

summed over the documents X whose selected types are group a and their unselected types r of group b; F_a are embeddings on V^⊥
(all types of one group have the same). A pair with K > 0 pushes its gap open, one with K < 0 *pulls*. No term is formed but as a
logarithm, and no settled term is subtracted from another: dq/dt = −∇Φ can be followed to any norm.

An unselected type whose weight rises to e^{−8} ends the slow flow: from there the true flow is followed in local time
(`flow.split`), until its ties have settled again.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from tokensieve.progress import Progress
from tokensieve.text.counts import Counts, Floats, Ints
from tokensieve.theory.flow.landscape import Landscape
from tokensieve.theory.flow.log_time import Integrator
from tokensieve.theory.flow.split import SplitFlow, own_groups
from tokensieve.theory.flow.ties import SETTLED, Equilibrium, Face, equilibrium, log_total, settled_face
from tokensieve.theory.geometry import documents_of, laplacian_form, span_of, top_types

# An unselected type whose weight in its document rises to e^{−NEAR} ends the face.
NEAR = 8.0
# Why a prediction that was given up ended.
LATE = "the time limit was reached; allow more with --max-seconds"


class End(StrEnum):
    """Why the slow flow was left."""

    NEAR = "an unselected type comes near"
    FAR = "as far as was wanted"
    STILL = "nothing moves"
    STEPS = "too many steps"
    TIME = "the time for it ended"


@dataclass(frozen=True)
class Exponentials:
    """Φ, with the interface of `Landscape`.

    Attributes:
        F: embeddings of the groups on V^⊥, shape (m, r − k).
        pairs: groups (a, b), shape (j, 2).
        log_k: log|K|, shape (j,).
        sign: sign of K, shape (j,).
        log_weight: largest softmax weight of b over documents at q = 0, as a logarithm, shape (j,).
        certainty: |Σ K| / Σ|K| of each pair: near zero its sign is a matter of rounding.
    """

    F: Floats
    pairs: Ints
    log_k: Floats
    sign: Floats
    log_weight: Floats
    certainty: Floats

    def gaps(self, q: Floats) -> Floats:
        """(F_a − F_b)·q, shape (j,)."""
        h = self.F @ q
        return np.asarray(h[self.pairs[:, 0]] - h[self.pairs[:, 1]])

    def nearness(self, q: Floats) -> Floats:
        """Logarithm of the largest weight of each unselected group in any document, shape (j,)."""
        return np.asarray(self.log_weight - self.gaps(q))

    def levels(self, q: Floats) -> Floats:
        """Logarithm of the force of each pair, shape (j,)."""
        return np.asarray(self.log_k - self.gaps(q))

    def slope(self, q: Floats) -> tuple[Floats, float]:
        """−∇Φ/‖∇Φ‖ and log‖∇Φ‖."""
        force, top = self._forces(q)
        out = self._flow(force) @ self.F
        size = float(np.linalg.norm(out))
        return (out / size, math.log(size) + top) if size > 0 else (out, -math.inf)

    def hessian(self, q: Floats) -> tuple[Floats, Floats, float]:
        """∇²Φ/‖∇Φ‖, −∇Φ/‖∇Φ‖ and log‖∇Φ‖."""
        force, top = self._forces(q)
        out = self._flow(force) @ self.F
        size = float(np.linalg.norm(out)) or 1.0
        live = np.abs(force) > 1e-17  # less does not reach the last bit
        H = laplacian_form(self.F, self.pairs[live], force[live])
        return H / size, out / size, math.log(size) + top

    def _forces(self, q: Floats) -> tuple[Floats, float]:
        """K e^{−gap} of each pair relative to the largest, and the logarithm of that."""
        level = self.levels(q)
        top = float(level.max(initial=-math.inf))
        return (self.sign * np.exp(level - top), top) if top > -math.inf else (np.zeros(len(level)), top)

    def _flow(self, force: Floats) -> Floats:
        m = len(self.F)
        return np.asarray(np.bincount(self.pairs[:, 0], force, m) - np.bincount(self.pairs[:, 1], force, m))


def _slow_loss(counts: Counts, E: Floats, w: Floats, face: Face, at: Equilibrium) -> Exponentials:
    """Φ of a face.

    Args:
        counts: n documents over |S| types.
        E: embeddings, shape (|S|, r).
        w: values, shape (|S|,).
        face: the selection, its groups and its space.
        at: the minimum of L_S on V.
    """
    m, document = counts.matrix, documents_of(counts)
    u, y = E @ at.z, counts.signs
    _, lead = np.unique(face.group, return_index=True)
    own = own_groups(counts, face)
    rest = ~face.mask
    d, s = document[rest], m.indices[rest]
    log_weight = np.log(m.data[rest]) + u[s] - log_total(counts, u, face.mask)[d]
    pull = y[d] * (at.answers[d] - w[s])
    with np.errstate(divide="ignore"):
        log_size = (
            np.log(np.abs(pull)) - np.logaddexp(0.0, y[d] * at.answers[d]) + log_weight - math.log(counts.n_documents)
        )
    key = own[d] * np.int64(len(lead)) + face.group[s]
    order = np.argsort(key, kind="stable")
    found, starts = np.unique(key[order], return_index=True)
    if not len(found):
        none = np.zeros(0)
        return Exponentials(E[lead] @ face.outside, np.zeros((0, 2), np.int64), none, none, none, none)
    level, sign = log_size[order], np.sign(pull[order])
    top = np.maximum.reduceat(level, starts)
    which = np.repeat(np.arange(len(found)), np.diff(np.append(starts, len(order))))
    size = np.exp(level - np.where(np.isfinite(top), top, 0.0)[which])
    total, whole = np.bincount(which, sign * size, len(found)), np.bincount(which, size, len(found))
    with np.errstate(divide="ignore", invalid="ignore"):
        log_k = np.where(np.isfinite(top), top, 0.0) + np.log(np.abs(total))
        certainty = np.where(whole > 0, np.abs(total) / whole, 0.0)
    pairs = np.stack([found // len(lead), found % len(lead)], axis=1)
    return Exponentials(
        E[lead] @ face.outside, pairs, log_k, np.sign(total), np.maximum.reduceat(log_weight[order], starts), certainty
    )


def follow(
    phi: Exponentials,
    q: Floats,
    clock: float,
    log_time: float,
    far: float,
    deadline: float = math.inf,
) -> tuple[End, Floats, Floats, float]:
    """Follow dq/dt = −∇Φ until an unselected type comes near, log t reaches `far`, or nothing moves.

    Args:
        phi: Φ.
        q: the start, shape (r − k,).
        clock: log t at the start, counted from where the clock was last set back; −∞ to set it back here.
        log_time: log t at the start, counted from the start of the whole curve.
        far: log t at which to stop.
        deadline: by time.monotonic(): no step is begun after it.

    Returns:
        Why the slow flow was left; its points, shape (m, r − k); log t at them, shape (m,); and log t at the last point, counted
        from where the clock was last set back.
    """
    solver = Integrator(lambda q, clock, margin: _Live(phi, q, clock, margin), q, clock, log_time, (1e-9, 1e-5))
    points, times, before, end = [q], [log_time], phi.nearness(q), End.STEPS
    for _ in range(3000):
        if time.monotonic() > deadline:
            end = End.TIME
            break
        if phi.slope(solver.p)[1] == -math.inf:
            end = End.STILL
            break
        if not solver.step():
            # A gap closes faster than this clock can show, or has just been let go.
            if not solver.restart(*_pulled_shut(phi, solver.p)):
                break
            before = phi.nearness(solver.p)
            continue
        near = phi.nearness(solver.p)
        closing = (near > -NEAR) & (near > before)
        if closing.any():
            fresh = np.flatnonzero(closing & (before <= -NEAR))
            if len(fresh):
                solver.back_to(_rise(phi, fresh))
            end = End.NEAR
        before = near
        points.append(solver.p)
        times.append(solver.log_time)
        if end is End.STEPS and _at_rest(phi, solver.p, solver.clock):
            end = End.STILL
        if end is End.STEPS and solver.log_time >= far:
            end = End.FAR
        if end is not End.STEPS:
            break
    return end, np.array(points), np.array(times), solver.clock


def _rise(phi: Exponentials, pairs: Ints) -> Callable[[Floats], float]:
    """By how much the nearest of some pairs is too near."""
    return lambda q: float(phi.nearness(q)[pairs].max()) + NEAR


class _Live:
    """Φ on the span of the pairs whose force matters yet; the rest of q stands still."""

    def __init__(self, phi: Exponentials, q: Floats, clock: float, margin: float) -> None:
        level = phi.levels(q)
        self._all = phi
        self._live = level > min(-max(clock, 0.0), float(level.max(initial=-math.inf))) - margin
        pairs = phi.pairs[self._live]
        self._B = span_of(phi.F[pairs[:, 0]] - phi.F[pairs[:, 1]])
        self._rest = q - self._B @ (self._B.T @ q)
        still = phi.gaps(self._rest)
        inside = replace(phi, F=phi.F @ self._B, log_k=phi.log_k - still, log_weight=phi.log_weight - still)
        self.slope, self.hessian = inside.slope, inside.hessian

    def split(self, q: Floats) -> Floats:
        return np.asarray(self._B.T @ q)

    def joined(self, x: Floats) -> Floats:
        return np.asarray(self._rest + self._B @ x)

    def overlooked(self, x: Floats) -> float:
        return float(self._all.levels(self.joined(x))[~self._live].max(initial=-math.inf))


def _pulled_shut(phi: Exponentials, q: Floats) -> tuple[Floats | None, float]:
    """Where q is once a gap that is pulled shut has closed as far as no other force matters and no type is near, and log t passed.

    With K < 0 alone, d gap/dt = −|K| ‖D‖² e^{−gap} has a pole at t = e^{gap}/(|K| ‖D‖²): all but the first nats of a long gap
    close in no time, along D, and every other gap moves in proportion.

    Args:
        phi: Φ.
        q: the start, shape (r − k,); None is returned, after log t = −∞, where no such force moves it.
    """
    level = phi.levels(q)
    first = int(np.argmax(level))
    D = phi.F[phi.pairs[first, 0]] - phi.F[phi.pairs[first, 1]]
    length = float(D @ D)
    if phi.sign[first] > 0 or length == 0:
        return None, -math.inf
    rise, room = phi.gaps(D) / length, -NEAR - 1 - phi.nearness(q)
    others = np.arange(len(level)) != first
    behind, gain = (level[first] - 40.0 - level)[others], rise[others] - 1
    if behind.min(initial=0.0) < 0:
        return None, -math.inf
    limits = np.concatenate([behind[gain > 0] / gain[gain > 0], room[rise > 0] / rise[rise > 0]])
    by = float(limits.min())
    if by <= 1:
        return None, -math.inf
    passed = math.log(-math.expm1(-by)) - float(level[first]) - math.log(length)
    return np.asarray(q - D * (by / length)), passed


def _at_rest(phi: Exponentials, q: Floats, clock: float) -> bool:
    """Whether q has come to rest at a strict minimum of Φ: it hardly moves, and t · curvature is large wherever a gap can move."""
    if phi.slope(q)[1] + clock > math.log(1e-3):
        return False
    H, _, log_size = phi.hessian(q)
    B = span_of(phi.F[phi.pairs[:, 0]] - phi.F[phi.pairs[:, 1]])
    curvature = np.linalg.eigvalsh(B.T @ H @ B)
    return bool(curvature[0] > 0 and clock + log_size + math.log(curvature[0]) > SETTLED)


@dataclass(frozen=True)
class Phase:
    """The slow flow between two changes of the selection.

    Attributes:
        face, finite, slow: the selection, its finite part, and the slow flow's loss.
        end: why the slow flow was left.
        slow_path: its points on V^⊥, shape (j, r − k), the last of `points`.
        clock: log t at the last point, counted from where the clock was last set back.
        points: p in r coordinates along the local flow before it and along itself, shape (m, r).
        log_time: log t at them, shape (m,).
        changed: documents whose highest type is another than at the end of the phase before.
    """

    face: Face
    finite: Equilibrium
    slow: Exponentials
    end: End
    slow_path: Floats
    clock: float
    points: Floats
    log_time: Floats
    changed: Ints


class Prediction:
    """The phases from one point of a flow on; `extend` follows them further.

    Args:
        land: the loss in r coordinates.
        z: the point, shape (r,).
        log_time: log t there.

    Attributes:
        phases: what was followed so far.
        trouble: why it ended too early; "" where nothing is left to follow.
    """

    def __init__(self, land: Landscape, z: Floats, log_time: float) -> None:
        self.phases: list[Phase] = []
        self.trouble = ""
        self._land, self._z, self._clock, self._log_time = land, z, log_time, log_time
        self._between: list[tuple[Floats, float]] = []
        self._top = top_types(land.counts, land.E @ z)
        self._settled = _settle(land, z, settled_face(land.counts, land.E, land.w, z, log_time))
        if self._settled is None:
            self.trouble = "the tied gaps have not settled"

    @property
    def log_time(self) -> Floats:
        """log t of all points, shape (m,)."""
        return np.concatenate([phase.log_time for phase in self.phases])

    @property
    def points(self) -> Floats:
        """p in r coordinates, shape (m, r)."""
        return np.concatenate([phase.points for phase in self.phases])

    @property
    def changes(self) -> list[tuple[float, float, int]]:
        """Of each change of the selection ‖p‖, log t, and how many documents have another highest type."""
        return [
            (float(np.linalg.norm(after.points[0])), float(after.log_time[0]), len(after.changed))
            for before, after in itertools.pairwise(self.phases)
            if len(after.changed) or not np.array_equal(after.face.mask, before.face.mask)
        ]

    def extend(self, far: float, deadline: float = math.inf, progress: Progress | None = None) -> None:
        """Go on to a log t.

        Args:
            far: log t at which to stop.
            deadline: by time.monotonic(): what is being followed then is left off.
            progress: called with ("faces", share of `far` on a logarithmic scale).
        """
        while not self.trouble and self._log_time < far:
            end = self._slow(far, deadline)
            if progress is not None:
                progress("faces", min(1.0, math.log(max(self._log_time, 1.0)) / math.log(far)))
            last = self.phases[-10:]
            if len(last) == 10 and all(len(one.slow_path) <= 3 for one in last):
                self.trouble = f"the selection keeps changing at log t = {self._log_time:.4g}"
            elif len(self.phases) == 200:
                self.trouble = "the selection changed 200 times"
            elif end is End.NEAR:
                self._local(deadline)
            else:
                self.trouble = {End.STEPS: "the slow flow took too many steps", End.TIME: LATE}.get(end, "")
                return

    def distance(self, points: Floats) -> Floats:
        """Distance of some points to the predicted path, shape (m,): a shift in time along it is no error."""
        path, out = self.points, np.empty(len(points))
        chords = np.diff(path, axis=0)
        lengths = np.maximum(np.einsum("ij,ij->i", chords, chords), np.finfo(float).tiny)
        for row, point in enumerate(points):
            along = np.clip(np.einsum("ij,ij->i", point - path[:-1], chords) / lengths, 0.0, 1.0)
            out[row] = np.linalg.norm(point - path[:-1] - along[:, None] * chords, axis=1).min()
        return out

    def _slow(self, far: float, deadline: float) -> End:
        """One phase of the slow flow."""
        assert self._settled is not None
        face, finite, phi = self._settled
        end, q, times, clock = follow(phi, face.outside.T @ self._z, self._clock, self._log_time, far, deadline)
        points = q @ face.outside.T + finite.z
        top = top_types(self._land.counts, self._land.E @ points[0])
        changed = np.flatnonzero(top != self._top)
        if self._between:
            local, when = zip(*self._between, strict=True)
            points, times = np.concatenate([local, points]), np.concatenate([when, times])
            self._between = []
        self.phases.append(Phase(face, finite, phi, end, q, clock, points, times, changed))
        self._z, self._clock, self._log_time = points[-1], clock, float(times[-1])
        self._top = top_types(self._land.counts, self._land.E @ self._z)
        return end

    def _local(self, deadline: float) -> None:
        """The true flow in local time, until its ties have settled."""
        flow = SplitFlow(self._land, self._z, -math.inf, self._log_time, 1e-5, self.phases[-1].face)
        looked, self._settled = flow.looked, None
        while flow.solver.clock < 40.0 and flow.step():
            self._between.append((flow.solver.p, flow.solver.log_time))
            if time.monotonic() > deadline:
                self.trouble = LATE
                return
            if flow.looked != looked:
                looked = flow.looked
                self._settled = _settle(self._land, flow.solver.p, flow.face)
            if self._settled is not None:
                solver = flow.solver
                self._z, self._clock, self._log_time = solver.p, solver.clock, solver.log_time
                return
        self.trouble = f"a type came near at log t = {self._log_time:.4g}, and the ties did not settle"


def _settle(land: Landscape, z: Floats, face: Face) -> tuple[Face, Equilibrium, Exponentials] | None:
    """A face with its finite part and its slow loss, where all its ties have settled and no other type is near; else None.

    Args:
        land: the loss in r coordinates.
        z: the point, shape (r,).
        face: the ties there.
    """
    finite = equilibrium(land.counts, land.E, land.w, face, z)
    if finite is None or finite.moved > 0.1:
        return None
    phi = _slow_loss(land.counts, land.E, land.w, face, finite)
    near = phi.nearness(face.outside.T @ z).max(initial=-math.inf)
    return (face, finite, phi) if near <= -NEAR else None
