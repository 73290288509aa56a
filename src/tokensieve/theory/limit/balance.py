"""Certificate (F3): a strict local minimum ρ* of Ψ(ρ) = Σ_T K e^{−D·ρ} + p̂·ρ on the span of the
tight D."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tokensieve.arrays import Floats, Ints
from tokensieve.theory.flow.integrator import STEEP
from tokensieve.theory.flow.slow import Exponentials
from tokensieve.theory.geometry import laplacian_form, span_of
from tokensieve.theory.limit.prediction import Phase

# A direction is confirmed where the slow flow is within this angle of it; a gap on which no force
# acts has to grow at least at this rate.
CONFIRMED = 1e-3
# Relative residual at which a certificate counts, and how far a margin may be from 1 to be tight.
CERTIFIED = 1e-6
# Newton's method ends at this residual, or after so many steps.
NEWTON_RESIDUAL = 1e-11
NEWTON_STEPS = 50
# No step moves a gap by more nats: forces are exponential in gaps, so that a longer one overshoots.
LONGEST_STEP = 2.0
# Rounding leaves some 1e-12 of the largest curvature.
FLAT = 1e-9
# ρ* belongs to this flow if no tight gap is further from it than this many nats.
NEARBY = 1.0


@dataclass(frozen=True)
class Balance:
    """Certificate (F3).

    Attributes:
        direction: p̂ in the coordinates of V^⊥, shape (r − k,).
        rho: ρ*, in the same coordinates.
        offset: ρ* + c.
        tight: groups (a, b) of the pairs with margin one, shape (j, 2); span: orthonormal basis of
            their differences, shape (r − k, l).
        pulling: how many of them have K < 0.
        curvature: smallest one of Ψ at ρ*: the rate, per unit of log t, at which ρ settles.
        spread: the same relative to the largest one.
        residual: ‖∇Ψ‖/‖p̂‖.
        slowest: smallest D·p̂ of all pairs, those that feel no force included.
    """

    direction: Floats
    rho: Floats
    offset: Floats
    tight: Ints
    span: Floats
    pulling: int
    curvature: float
    spread: float
    residual: float
    slowest: float

    @property
    def is_max_margin(self) -> bool:
        """Whether pairs without a force have margin one, too."""
        return self.slowest > 1 - CERTIFIED


def angle_between(p: Floats, direction: Floats) -> float:
    """The angle between two vectors of shape (d,), in radians; exact where its cosine rounds to
    one."""
    unit = direction / np.linalg.norm(direction)
    along = float(p @ unit)
    return math.atan2(float(np.linalg.norm(p - along * unit)), along)


@dataclass(frozen=True)
class TightPairs:
    """Ψ(ρ) = Σ_T K e^{−D·ρ} + p̂·ρ on the span of the tight differences, ρ = span x.

    Attributes:
        pairs: groups (a, b), shape (j, 2).
        log_k, sign: log|K| and the sign of K, shape (j,).
        span: orthonormal basis of that span, shape (r − k, l).
        views: embeddings of the groups in a basis of that span, shape (m, l).
        direction: p̂ in it, shape (l,).
    """

    pairs: Ints
    log_k: Floats
    sign: Floats
    span: Floats
    views: Floats
    direction: Floats

    @classmethod
    def of(cls, slow: Exponentials, is_tight: NDArray[np.bool_], direction: Floats) -> TightPairs:
        """The tight pairs of a direction, in coordinates of the span of their differences."""
        pairs = slow.pairs[is_tight]
        span = span_of(slow.F, pairs)
        return cls(
            pairs=pairs,
            log_k=slow.log_k[is_tight],
            sign=slow.sign[is_tight],
            span=span,
            views=slow.F @ span,
            direction=span.T @ direction,
        )

    def gaps(self, x: Floats) -> Floats:
        """D·ρ of each pair, shape (pairs,), for the ρ with coordinates x."""
        scores = self.views @ x
        return np.asarray(scores[self.pairs[:, 0]] - scores[self.pairs[:, 1]])

    def slope(self, x: Floats) -> Floats:
        """∇Ψ = p̂ − Σ_T K e^{−D·ρ} D at x, in the same coordinates, shape (l,)."""
        force = self.forces(x)
        n_groups = len(self.views)
        pushed = np.bincount(self.pairs[:, 0], force, n_groups)
        pushed_back = np.bincount(self.pairs[:, 1], force, n_groups)
        return np.asarray(self.direction - (pushed - pushed_back) @ self.views)

    def forces(self, x: Floats) -> Floats:
        """K e^{−D·ρ} of each pair at x, shape (pairs,), with the sign of its effect."""
        return np.asarray(self.sign * np.exp(np.minimum(self.log_k - self.gaps(x), STEEP)))

    def curvature(self, x: Floats) -> tuple[Floats, Floats]:
        """Eigenvalues, ascending, and eigenvectors of ∇²Ψ = Σ_T K e^{−D·ρ} D Dᵀ, shapes (l,) and
        (l, l)."""
        return np.linalg.eigh(laplacian_form(self.views, self.pairs, self.forces(x)))


def certify_balance(
    slow: Exponentials, direction: Floats, phase: Phase, velocity: Floats
) -> Balance | None:
    """(F3) from where the slow flow is; None if Newton's method finds no strict minimum nearby."""
    gaps = slow.gaps(direction)
    has_force = ~slow.without_force
    is_tight = (gaps <= 1 + CERTIFIED) & has_force
    if not is_tight.any() or gaps[has_force].min() < 1 - CERTIFIED or gaps.min() < CONFIRMED:
        return None
    psi = TightPairs.of(slow, is_tight, direction)
    start = psi.span.T @ (phase.slow_path[-1] - direction * float(phase.log_time[-1]))
    x, residual = minimise(psi, start, float(np.linalg.norm(direction)))
    eigenvalues, _ = psi.curvature(x)
    # Where no pair pulls, Ψ is convex and has one minimum. With a weak force, a slow flow in its
    # direction stays far away for long.
    n_pulling = int(np.sum(psi.sign < 0))
    is_convex = not n_pulling and angle_between(velocity, direction) <= CONFIRMED
    if not is_convex and float(np.abs(psi.gaps(x - start)).max()) > NEARBY:
        return None
    if residual > CERTIFIED or eigenvalues[0] <= FLAT * eigenvalues[-1]:
        return None
    return Balance(
        direction=direction,
        rho=psi.span @ x,
        offset=psi.span @ x,
        tight=psi.pairs,
        span=psi.span,
        pulling=n_pulling,
        curvature=float(eigenvalues[0]),
        spread=float(eigenvalues[0] / eigenvalues[-1]),
        residual=residual,
        slowest=float(gaps.min()),
    )


def minimise(psi: TightPairs, x: Floats, length: float) -> tuple[Floats, float]:
    """Newton's method on Ψ: the point that it reaches, and ‖∇Ψ‖/length there.

    It ends early where the curvature is not positive: the caller refuses such a point.

    Args:
        psi: Ψ.
        x: where to begin, shape (l,).
        length: ‖p̂‖.
    """
    for _ in range(NEWTON_STEPS):
        slope = psi.slope(x)
        residual = float(np.linalg.norm(slope) / length)
        eigenvalues, axes = psi.curvature(x)
        if residual < NEWTON_RESIDUAL or eigenvalues[0] <= 0:
            break
        step = axes @ ((axes.T @ -slope) / eigenvalues)
        longest = float(np.abs(psi.gaps(step)).max())
        x = x + step * min(1.0, LONGEST_STEP / longest)
    return x, residual
