"""The slow flow: what moves once the finite gaps of a face have settled.

At z* tied types coincide *exactly* on V^⊥, and to first order in the weights of unselected types the loss is L_S(z*) + Φ(q) with

    Φ(q) = Σ_{(a,b)} K_{ab} e^{−(F_a − F_b)·q},     K_{ab} = Σ σ(−y f*) y (f* − w_r) c_r e^{E_r·z*} / (n Z_X(z*)),

summed over the documents X whose selected types are group a and their unselected types r of group b; F_a are embeddings on V^⊥
(all types of one group have the same). A pair with K > 0 pushes its gap open, one with K < 0 *pulls*. No term is formed but as a
logarithm, and no settled term is subtracted from another: dq/dt = −∇Φ can be followed to any norm.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from tokensieve.text.counts import Floats, Ints
from tokensieve.theory.flow.landscape import Integrator, Landscape
from tokensieve.theory.flow.split import SETTLED, Equilibrium, Face
from tokensieve.theory.geometry import documents_of, laplacian_form, span_of

# An unselected type whose weight in its document rises to e^{−NEAR} ends the face.
NEAR = 8.0
# Why the slow flow was left: an unselected type comes near, log t is as far as was wanted, nothing moves, or the budget ended.
End = Literal["near", "far", "still", "steps", "time"]


@dataclass(frozen=True)
class Exponentials:
    """Φ, with the interface of `Landscape`.

    Attributes:
        F: embeddings of the groups on V^⊥, shape (m, r − k).
        pairs: groups (a, b), shape (j, 2).
        log_k: log|K|, shape (j,).
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
        d, s = documents_of(counts)[rest], m.indices[rest]
        log_weight = np.log(m.data[rest]) + (land.E @ at.z)[s] - at.log_total[d]
        pull = y[d] * (at.answers[d] - land.w[s])
        pairs, which = np.unique(np.stack([face.own[d], face.group[s]], axis=1), axis=0, return_inverse=True)
        which = which.ravel()
        with np.errstate(divide="ignore"):
            level = np.log(np.abs(pull)) - np.logaddexp(0.0, y[d] * at.answers[d])
            level += log_weight - math.log(counts.n_documents)
            # Σ K of each pair, relative to its largest term.
            top, nearest = np.full((2, len(pairs)), -np.inf)
            np.maximum.at(top, which, level)
            np.maximum.at(nearest, which, log_weight)
            top[np.isneginf(top)] = 0.0
            total = np.bincount(which, np.sign(pull) * np.exp(level - top[which]), len(pairs))
            return cls(F, pairs, top + np.log(np.abs(total)), np.sign(total), nearest)

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
        _, downhill, top = self._at(q)
        size = float(np.linalg.norm(downhill))
        return (downhill / size, math.log(size) + top) if size > 0 else (downhill, -math.inf)

    def hessian(self, q: Floats) -> tuple[Floats, Floats, float]:
        """∇²Φ/‖∇Φ‖, −∇Φ/‖∇Φ‖ and log‖∇Φ‖."""
        force, downhill, top = self._at(q)
        size = float(np.linalg.norm(downhill)) or 1.0
        live = np.abs(force) > 1e-17  # less does not reach the last bit
        return laplacian_form(self.F, self.pairs[live], force[live]) / size, downhill / size, math.log(size) + top

    def _at(self, q: Floats) -> tuple[Floats, Floats, float]:
        """K e^{−gap} of each pair and −∇Φ, relative to the largest force, and the logarithm of that."""
        level, m = self.levels(q), len(self.F)
        top = float(level.max(initial=-math.inf))
        force = self.sign * np.exp(level - top) if top > -math.inf else np.zeros(len(level))
        node = np.bincount(self.pairs[:, 0], force, m) - np.bincount(self.pairs[:, 1], force, m)
        return force, node @ self.F, top


class _Live:
    """Φ on the span of the pairs whose force matters yet; the rest of q stands still."""

    def __init__(self, phi: Exponentials, q: Floats, clock: float, margin: float) -> None:
        level = phi.levels(q)
        self._all = phi
        self._live = level > min(-max(clock, 0.0), float(level.max(initial=-math.inf))) - margin
        pairs = phi.pairs[self._live]
        self._B = span_of(phi.F[pairs[:, 0]] - phi.F[pairs[:, 1]])
        self._rest = q - self._B @ (self._B.T @ q)
        inside = replace(phi, F=phi.F @ self._B, log_k=phi.log_k - phi.gaps(self._rest))
        self.slope, self.hessian = inside.slope, inside.hessian

    def split(self, q: Floats) -> Floats:
        return np.asarray(self._B.T @ q)

    def joined(self, x: Floats) -> Floats:
        return np.asarray(self._rest + self._B @ x)

    def overlooked(self, x: Floats) -> float:
        return float(self._all.levels(self.joined(x))[~self._live].max(initial=-math.inf))


def follow(
    phi: Exponentials, q: Floats, clock: float, log_time: float, far: float, deadline: float = math.inf
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
    points, times, before = [q], [log_time], phi.nearness(q)
    end: End = "steps"
    fresh = np.zeros(len(phi.pairs), bool)

    def too_near(q: Floats) -> float:
        return float(phi.nearness(q)[fresh].max()) + NEAR

    for _ in range(3000):
        if time.monotonic() > deadline:
            end = "time"
        elif phi.slope(solver.p)[1] == -math.inf:
            end = "still"
        if end != "steps":
            break
        if not solver.step():
            # A gap closes faster than this clock can show, or has just been let go.
            if not solver.restart(*_pulled_shut(phi, solver.p)):
                break
            before = phi.nearness(solver.p)
            continue
        near = phi.nearness(solver.p)
        closing = (near > -NEAR) & (near > before)
        fresh = closing & (before <= -NEAR)
        if fresh.any():
            solver.back_to(too_near)
        before = near
        points.append(solver.p)
        times.append(solver.log_time)
        if closing.any():
            end = "near"
        elif _at_rest(phi, solver.p, solver.clock):
            end = "still"
        elif solver.log_time >= far:
            end = "far"
    return end, np.array(points), np.array(times), solver.clock


def _pulled_shut(phi: Exponentials, q: Floats) -> tuple[Floats | None, float]:
    """Where q is once a gap that is pulled shut has closed as far as no other force matters and no type is near, and log t passed.

    With K < 0 alone, d gap/dt = −|K| ‖D‖² e^{−gap} has a pole at t = e^{gap}/(|K| ‖D‖²): all but the first nats of a long gap
    close in no time, along D, and every other gap moves in proportion. (None, −∞) where no such force moves q.
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
    B = span_of(phi.F[phi.pairs[:, 0]] - phi.F[phi.pairs[:, 1]])
    curvature = np.linalg.eigvalsh(B.T @ H @ B)
    return bool(curvature[0] > 0 and clock + log_size + math.log(curvature[0]) > SETTLED)
