"""Gradient flow in the clock log t, for any loss that gives its gradient and Hessian in the log domain.

The flow is autonomous. Where it moves faster than the clock can show (a gap that is pulled shut closes within a share of t that
double precision does not resolve), the clock is set back to zero: from there on it shows local time, and log t is the logarithm of
the sum.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Protocol

import numpy as np
from scipy.integrate import BDF
from scipy.linalg import LinAlgError, LinAlgWarning
from scipy.optimize import brentq

from tokensieve.text.counts import Floats

# A curve begins with a gradient step this small against the curvature.
FIRST = 1e-3
# A force counts when, times the time passed, it exceeds e^{−LIVE}. _Coordinates without it are chosen anew when it exceeds
# e^{−STALE}, and a step after which it exceeds e^{−SPOILT} is taken back.
LIVE, STALE, SPOILT = 25.0, 15.0, 5.0
# e^{STEEP} is as steep as a right-hand side needs to be for a step to be rejected.
STEEP = 300.0


class _Coordinates(Protocol):
    """A loss in coordinates x of p, with gradient and Hessian in the log domain."""

    def slope(self, x: Floats, /) -> tuple[Floats, float]:
        """−∇L/‖∇L‖, shape (k,), and log‖∇L‖."""

    def hessian(self, x: Floats, /) -> tuple[Floats, Floats, float]:
        """∇²L/‖∇L‖, shape (k, k), −∇L/‖∇L‖ and log‖∇L‖."""

    def split(self, p: Floats, /) -> Floats:
        """x of p."""

    def joined(self, x: Floats, /) -> Floats:
        """p of x."""

    def overlooked(self, x: Floats, /) -> float:
        """Logarithm of the largest force that the coordinates leave out."""


class Integrator:
    """The flow dp/dt = −∇L(p): `step` and look, until an event or an end that the caller decides on.

    Forces that are too weak to move anything yet are left out of the coordinates. They are chosen anew when one of the others has
    grown, and a long step that passed the time when it grew is taken back.

    Args:
        coordinates: of a point, the log of the time passed there, and how many nats weaker a force may be to be left out.
        p: where to begin, shape (r,).
        clock: log t there, counted from where the clock was last set back; −∞ to set it back here.
        log_time: log t there, counted from the start of the whole curve.
        tolerance: relative and absolute local error of a step.
        step: first step of the clock.
    """

    def __init__(
        self,
        coordinates: Callable[[Floats, float, float], _Coordinates],
        p: Floats,
        clock: float,
        log_time: float,
        tolerance: tuple[float, float],
        step: float = 0.1,
    ) -> None:
        self.p, self.clock = p, clock
        self._coordinates, self._tolerance, self.last_step = coordinates, tolerance, step
        self._offset = _log_difference(log_time, clock)
        self._followed, self._margin = False, LIVE
        self._solver: BDF | None = None
        self.here = coordinates(p, clock, LIVE)

    @property
    def log_time(self) -> float:
        """log t, counted from the start of the whole curve."""
        return float(np.logaddexp(self._offset, self.clock))

    def step(self) -> bool:
        """One step; False where the clock does not resolve it, and nothing has moved."""
        while True:
            if self._solver is None:
                self._solver = self._begin()
            solver = self._solver
            if not _advance(solver) or not np.isfinite(solver.y).all():
                self._solver = None
                return False
            grown = self.here.overlooked(solver.y) + max(float(solver.t), 0.0)
            if grown <= -SPOILT or self._margin > 1e6:
                break
            self._margin *= 4
            self.here, self._solver = self._coordinates(self.p, self.clock, self._margin), None
        self.p, self.clock, self._followed = self.here.joined(solver.y), float(solver.t), True
        self.last_step = float(solver.h_abs)
        if grown > -STALE:
            self.here, self._solver, self._margin = self._coordinates(self.p, self.clock, LIVE), None, LIVE
        return True

    def restart(self, p: Floats | None = None, passed: float = -math.inf) -> bool:
        """Set the clock back to zero, here or at a point reached after some local time; False if nothing was followed since.

        Args:
            p: the point; the present one if None.
            passed: log of the time until it is reached.
        """
        if not self._followed and self.clock == -math.inf and p is None:
            return False
        self._offset = float(np.logaddexp(self.log_time, passed))
        self.p = self.p if p is None else p
        self.clock, self._solver, self._followed, self.last_step = -math.inf, None, False, 0.1
        self.here, self._margin = self._coordinates(self.p, self.clock, LIVE), LIVE
        return True

    def back_to(self, rises: Callable[[Floats], float]) -> None:
        """Return to where, within the last step, a function of p rose through zero; stay where it did not."""
        if self._solver is None:
            return
        inside, low, high = self._solver.dense_output(), float(self._solver.t_old), float(self._solver.t)

        def rise(at: float) -> float:
            return rises(self.here.joined(inside(at)))

        if rise(low) < 0 < rise(high):
            self.clock = float(brentq(rise, low, high, xtol=1e-13 * max(1.0, abs(high))))
            self.p, self._solver = self.here.joined(inside(self.clock)), None

    def _begin(self) -> BDF:
        loss = self.here

        def curve(tau: float, x: Floats) -> Floats:
            downhill, log_size = loss.slope(x)
            return downhill * math.exp(min(tau + log_size, STEEP))

        def jacobian(tau: float, x: Floats) -> Floats:
            H, _, log_size = loss.hessian(x)
            return -math.exp(min(tau + log_size, STEEP)) * H

        clock, x = self.clock, loss.split(self.p)
        if clock == -math.inf:
            H, downhill, log_size = loss.hessian(x)
            bend = max(float(np.linalg.norm(H)), 1 / (1 + float(np.linalg.norm(x))))
            clock = math.log(FIRST / bend) - log_size
            x = x + FIRST / bend * downhill
        relative, absolute = self._tolerance
        return BDF(curve, clock, x, math.inf, rtol=relative, atol=absolute, jac=jacobian, first_step=self.last_step)


def _advance(solver: BDF) -> bool:
    """One step; whether it was accepted."""
    # BDF differences rows of its table that it has not filled yet; a trial step that is much too long overflows.
    with np.errstate(invalid="ignore", over="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", LinAlgWarning)
        try:
            solver.step()
        except (ValueError, LinAlgError):
            return False
    return bool(solver.status != "failed")


def _log_difference(whole: float, part: float) -> float:
    """log(e^whole − e^part); −∞ where nothing is left."""
    return whole + math.log1p(-math.exp(part - whole)) if part < whole else -math.inf
