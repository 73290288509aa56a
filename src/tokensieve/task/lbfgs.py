"""Minimising a smooth convex function with L-BFGS (Nocedal & Wright 2006, algorithm 7.4).

`scipy.optimize.minimize(method="L-BFGS-B")` finds the same minimum (tests/audit/test_lbfgs.py), and
its import takes as long as the smallest fits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tokensieve.arrays import Floats

# What stops it, as in scikit-learn's LogisticRegression with its default tolerance
MAX_SLOPE = 1e-4  # of any coordinate
MIN_DECREASE = 64 * np.finfo(float).eps  # of the value in one iteration, relative to it
MAX_ITERATIONS = 1000
MAX_TRIALS = 50  # of lengths along one direction

# From which the curvature is estimated; 10 need up to twice as many evaluations (on snli).
N_STEPS_KEPT = 20
# The Wolfe conditions, with the usual constants: of the decrease that the slope promises, this much
# must come true, and this much of the slope may be left.
SUFFICIENT_DECREASE = 1e-4
SLOPE_LEFT = 0.9
LONGEST = 10.0  # times the last length that was too short

Value = tuple[float, Floats]  # and the gradient
Function = Callable[[Floats], Value]


@dataclass(frozen=True, eq=False)
class _Point:
    """A place with the function's value and gradient there."""

    x: Floats
    value: float
    gradient: Floats


@dataclass(frozen=True, eq=False)
class _Step:
    """A step s between two points, and the change y of the gradient."""

    s: Floats
    y: Floats
    inverse_curvature: float  # 1 / sᵀy


def minimum(function: Function, start: Floats) -> Floats:
    """Where the function is smallest, of the shape of `start`, which is not changed."""
    point = _Point(start, *function(start))
    steps: deque[_Step] = deque(maxlen=N_STEPS_KEPT)
    for _ in range(MAX_ITERATIONS):
        if np.abs(point.gradient).max() <= MAX_SLOPE:
            break
        reached = _next_point(function, point, _direction(point.gradient, steps))
        if reached is None:
            break
        s = reached.x - point.x
        y = reached.gradient - point.gradient
        curvature = float(s @ y)
        if curvature > 0:
            steps.append(_Step(s, y, 1 / curvature))
        decrease = point.value - reached.value
        is_flat = decrease <= MIN_DECREASE * max(abs(point.value), abs(reached.value), 1.0)
        point = reached
        if is_flat:
            break
    return point.x


def _direction(gradient: Floats, steps: deque[_Step]) -> Floats:
    """−Hg, with H the inverse of the Hessian as the last steps estimate it (two-loop recursion)."""
    if not steps:
        length = float(np.linalg.norm(gradient))
        return -gradient / max(length, 1e-300)  # a first step of length 1
    direction = -gradient
    weights = []
    for step in reversed(steps):
        weight = step.inverse_curvature * float(step.s @ direction)
        direction -= weight * step.y
        weights.append(weight)
    last = steps[-1]
    direction /= last.inverse_curvature * float(last.y @ last.y)
    for step, weight in zip(steps, reversed(weights), strict=True):
        direction += (weight - step.inverse_curvature * float(step.y @ direction)) * step.s
    return direction


def _next_point(function: Function, point: _Point, direction: Floats) -> _Point | None:
    """A point along a direction that satisfies the weak Wolfe conditions; None if none is found.

    The slope of a convex function rises along the way, so a length is either too short or too long
    if it does not satisfy them. The first one tried, 1, nearly always does.
    """
    first = _Trial(0.0, float(point.gradient @ direction))
    too_short = first
    too_long: _Trial | None = None
    length = 1.0
    for _ in range(MAX_TRIALS):
        x = point.x + length * direction
        reached = _Point(x, *function(x))
        trial = _Trial(length, float(reached.gradient @ direction))
        promised = SUFFICIENT_DECREASE * length * first.slope
        if not reached.value <= point.value + promised:
            too_long = trial
        elif trial.slope < SLOPE_LEFT * first.slope:
            too_short = trial
        else:
            return reached
        if too_long is None:
            length = float(np.clip(_flat_length(first, trial), 2 * length, LONGEST * length))
        else:
            margin = (too_long.length - too_short.length) / 10
            flat = _flat_length(too_short, too_long)
            length = float(np.clip(flat, too_short.length + margin, too_long.length - margin))
    return None


@dataclass(frozen=True)
class _Trial:
    """A length along a direction, and the function's slope there."""

    length: float
    slope: float


def _flat_length(one: _Trial, longer: _Trial) -> float:
    """Where the slope would be zero if it rose evenly; infinite if it does not rise."""
    rise = longer.slope - one.slope
    if rise <= 0:
        return np.inf
    return one.length - one.slope * (longer.length - one.length) / rise
