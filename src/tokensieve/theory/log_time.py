"""Gradient flow in the clock log t, for any loss that gives its gradient and Hessian in the log domain."""

from __future__ import annotations

import math
import warnings
from typing import Protocol

import numpy as np
from scipy.integrate import BDF
from scipy.linalg import LinAlgError, LinAlgWarning

from tokensieve.text.counts import Floats

# The curve is begun where a gradient step is this small against the curvature.
FIRST = 1e-3
# e^{this} is as steep as a right-hand side needs to be for a step to be rejected.
STEEP = 300.0


class LogLoss(Protocol):
    """A loss whose gradient and Hessian come with the logarithm of their size."""

    def slope(self, p: Floats, /) -> tuple[Floats, float]:
        """−∇L/‖∇L‖, shape (r,), and log‖∇L‖."""

    def hessian(self, p: Floats, /) -> tuple[Floats, Floats, float]:
        """∇²L/‖∇L‖, shape (r, r), −∇L/‖∇L‖ and log‖∇L‖."""


def log_time_solver(loss: LogLoss, p: Floats, log_time: float, step: float, tolerance: tuple[float, float]) -> BDF:
    """SciPy's BDF for dp/dτ = −e^τ ∇L(p), τ = log t.

    Args:
        loss: L.
        p: where to begin, shape (r,).
        log_time: τ there; −∞ to begin at t = 0, with one short step of gradient descent.
        step: first step in τ.
        tolerance: relative and absolute local error of a step.
    """

    def curve(tau: float, x: Floats) -> Floats:
        downhill, log_size = loss.slope(x)
        return downhill * math.exp(min(tau + log_size, STEEP))

    def jacobian(tau: float, x: Floats) -> Floats:
        H, _, log_size = loss.hessian(x)
        return -math.exp(min(tau + log_size, STEEP)) * H

    if log_time == -math.inf:
        H, downhill, log_size = loss.hessian(p)
        bend = max(float(np.linalg.norm(H)), 1 / (1 + float(np.linalg.norm(p))))
        log_time = math.log(FIRST / bend) - log_size
        p = p + FIRST / bend * downhill
    return BDF(curve, log_time, p, math.inf, rtol=tolerance[0], atol=tolerance[1], jac=jacobian, first_step=step)


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
