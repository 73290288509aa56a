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
# e^{STEEP} is as steep as a right-hand side needs to be for a step to be rejected.
STEEP = 300.0


class LogLoss(Protocol):
    """A loss whose gradient and Hessian come with the logarithm of their size."""

    def slope(self, p: Floats, /) -> tuple[Floats, float]:
        """−∇L/‖∇L‖, shape (r,), and log‖∇L‖."""

    def hessian(self, p: Floats, /) -> tuple[Floats, Floats, float]:
        """∇²L/‖∇L‖, shape (r, r), −∇L/‖∇L‖ and log‖∇L‖."""


class Integrator:
    """The flow dp/dt = −∇L(p): `step` and look, until an event or an end that the caller decides on.

    Args:
        loss: L.
        x: where to begin, shape (r,).
        clock: log t there, counted from where the clock was last set back; −∞ to set it back here.
        log_time: log t there, counted from the start of the whole curve.
        tolerance: relative and absolute local error of a step.
        step: first step of the clock.
    """

    def __init__(
        self, loss: LogLoss, x: Floats, clock: float, log_time: float, tolerance: tuple[float, float], step: float = 0.1
    ) -> None:
        self.loss, self.x, self.clock = loss, x, clock
        self.offset = log_difference(log_time, clock)
        self._tolerance, self._step, self._fresh = tolerance, step, True
        self._solver: BDF | None = None

    @property
    def log_time(self) -> float:
        """log t, counted from the start of the whole curve."""
        return float(np.logaddexp(self.offset, self.clock))

    def step(self) -> bool:
        """One step; False where the clock does not resolve it, and nothing has moved."""
        if self._solver is None:
            self._solver = self._begin()
        if not advance(self._solver) or not np.isfinite(self._solver.y).all():
            return False
        self.x, self.clock, self._fresh = self._solver.y, float(self._solver.t), False
        return True

    def restart(self, x: Floats | None = None, passed: float = -math.inf) -> bool:
        """Set the clock back to zero, here or at a point reached after some local time; False if nothing was followed since.

        Args:
            x: the point; the present one if None.
            passed: log of the time until it is reached.
        """
        if self._fresh and self.clock == -math.inf and x is None:
            return False
        self.offset = float(np.logaddexp(self.log_time, passed))
        self.x = self.x if x is None else x
        self.clock, self._solver, self._fresh = -math.inf, None, True
        return True

    @property
    def last_step(self) -> float:
        """Size of the last step of the clock."""
        return 0.1 if self._solver is None else float(self._solver.h_abs)

    def back_to(self, rises: Callable[[Floats], float]) -> None:
        """Return to where, within the last step, a function of x rose through zero; stay where it did not."""
        assert self._solver is not None
        inside, low, high = self._solver.dense_output(), float(self._solver.t_old), float(self._solver.t)
        if rises(inside(low)) < 0 < rises(inside(high)):
            self.clock = float(brentq(lambda at: rises(inside(at)), low, high, xtol=1e-13 * max(1.0, abs(high))))
            self.x, self._solver = inside(self.clock), None

    def _begin(self) -> BDF:
        def curve(tau: float, x: Floats) -> Floats:
            downhill, log_size = self.loss.slope(x)
            return downhill * math.exp(min(tau + log_size, STEEP))

        def jacobian(tau: float, x: Floats) -> Floats:
            H, _, log_size = self.loss.hessian(x)
            return -math.exp(min(tau + log_size, STEEP)) * H

        clock, x = self.clock, self.x
        if clock == -math.inf:
            H, downhill, log_size = self.loss.hessian(x)
            bend = max(float(np.linalg.norm(H)), 1 / (1 + float(np.linalg.norm(x))))
            clock = math.log(FIRST / bend) - log_size
            x = x + FIRST / bend * downhill
        relative, absolute = self._tolerance
        return BDF(curve, clock, x, math.inf, rtol=relative, atol=absolute, jac=jacobian, first_step=self._step)


def advance(solver: BDF) -> bool:
    """One step; whether it was accepted."""
    # BDF differences rows of its table that it has not filled yet; a trial step that is much too long overflows.
    with np.errstate(invalid="ignore", over="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", LinAlgWarning)
        try:
            solver.step()
        except (ValueError, LinAlgError):
            return False
    return bool(solver.status != "failed")


def log_difference(whole: float, part: float) -> float:
    """log(e^whole − e^part); −∞ where nothing is left."""
    return whole + math.log1p(-math.exp(part - whole)) if part < whole else -math.inf
