"""The flow of a loss in the clock log t, by steps of SciPy's BDF.

If it moves faster than double precision resolves (a gap that is pulled shut), the clock restarts at
zero: from there on it shows local time, and log t is the logarithm of the total time.
"""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from scipy.integrate import BDF
from scipy.linalg import LinAlgError, LinAlgWarning, solve
from scipy.optimize import brentq

from tokensieve.arrays import Floats

# A force counts when, times the time passed, it exceeds e^{−LIVE}: less moves nothing in 10 digits.
LIVE = 25.0
# Coordinates without a force are chosen anew when it exceeds e^{−STALE}: long before it matters.
STALE = 15.0
# A step after which a force that was left out exceeds e^{−SPOILT} is taken back.
SPOILT = 5.0
# A step is not taken back for forces left out with a margin beyond this: none is.
WIDEST_MARGIN = 1e6
# e^{STEEP} is as steep as a right-hand side needs to be for a step to be rejected.
STEEP = 300.0
# Entries that have become too weak are looked for once per so much of the clock.
LOOK = 0.5
# SciPy ends Newton's method at √rtol of the error that a step may have. Ten times that, 0.1 at
# 1e-4, is as accurate and faster.
LOOSER = 10.0
# Length of the first step, on the clock log t.
FIRST_STEP = 0.1
# A step that failed and was longer than this is tried again with FIRST_STEP.
LONG_STEP = 1.0
# A gradient step of this length, relative to the curvature, begins a clock at −∞.
GRADIENT_STEP = 1e-3


class Slope(NamedTuple):
    """−∇L/‖∇L‖ and log‖∇L‖; −∞ for a gradient of exactly zero."""

    downhill: Floats
    log_size: float


class Jacobian(NamedTuple):
    """∇²L/c, −∇L/c and log c."""

    H: Floats
    downhill: Floats
    log_size: float


class Coordinates(Protocol):
    """A loss in coordinates x of p.

    `left_out_force` bounds the logarithm of the largest force that they leave out, sharply where it
    exceeds `enough`.
    """

    def slope(self, x: Floats, /) -> Slope: ...
    def hessian(self, x: Floats, /, clock: float | None = None) -> Jacobian: ...
    def split(self, p: Floats, /) -> Floats: ...
    def joined(self, x: Floats, /) -> Floats: ...
    def left_out_force(self, x: Floats, enough: float, /) -> float: ...


class Integrator:
    """The flow dp/dt = −∇L(p), one `step` at a time; the caller checks for events and decides when
    to stop.

    Forces too weak to move anything yet are omitted from the coordinates, which are chosen again
    when such a force has grown.

    Args:
        coordinates: of a point, the log of the time passed there, and how many nats weaker a force
            may be to be left out.
        p: where to begin, shape (r,).
        clock: log t there, counted from where the clock was last set back; −∞ to set it back here.
        log_time: the same, counted from the start of the whole curve.
        tolerance: relative and absolute local error of a step.
        step: first step of the clock.
        is_plain: whether x is always p itself, so that a solver goes on in other coordinates.
    """

    def __init__(
        self,
        coordinates: Callable[[Floats, float, float], Coordinates],
        p: Floats,
        clock: float,
        log_time: float,
        tolerance: tuple[float, float],
        step: float = FIRST_STEP,
        is_plain: bool = False,
    ) -> None:
        self.p = p
        self.clock = clock
        self.last_step = step
        self._coordinates = coordinates
        self._tolerance = tolerance
        self._is_plain = is_plain
        # log(e^{log_time} − e^{clock}): what has passed before the clock was last set back.
        self._offset = -math.inf
        if clock < log_time:
            self._offset = log_time + math.log1p(-math.exp(clock - log_time))
        self._followed = False
        self._solver: BDF | None = None
        self._choose()

    @property
    def x(self) -> Floats:
        """The coordinates of p."""
        if self._solver is None:
            return self.here.split(self.p)
        return np.asarray(self._solver.y)

    @property
    def log_time(self) -> float:
        """log t, counted from the start of the whole curve."""
        return float(np.logaddexp(self._offset, self.clock))

    def step(self) -> bool:
        """One step; False if the clock cannot resolve it, in which case nothing has moved."""
        while True:
            if self._solver is None:
                self._solver = self._new_solver()
            solver = self._solver
            if not try_step(solver):
                self._solver = None
                # BDF keeps the Jacobian of a trial step that was too long, e^τ times too large, for
                # shorter ones, which fail too.
                if self.last_step > LONG_STEP:
                    self.last_step = FIRST_STEP
                    continue
                return False
            passed = max(float(solver.t), 0.0)
            grown = self.here.left_out_force(solver.y, -STALE - passed) + passed
            if grown <= -SPOILT or self._margin > WIDEST_MARGIN:
                break
            self._choose(4 * self._margin)
        self.p = self.here.joined(solver.y)
        self.clock = float(solver.t)
        self.last_step = float(solver.h_abs)
        self._followed = True
        if self._is_plain:
            if grown > -STALE or self.clock > self._chosen + LOOK:
                self._choose(keep=self._solver)
        elif grown > -STALE:
            self._choose()
        return True

    def restart(self, p: Floats | None = None, passed: float = -math.inf) -> bool:
        """Reset the clock to zero, here or at a p reached after e^{passed}; False without a step
        since."""
        if not self._followed and self.clock == -math.inf and p is None:
            return False
        self._offset = float(np.logaddexp(self.log_time, passed))
        self.p = self.p if p is None else p
        self.clock = -math.inf
        self.last_step = FIRST_STEP
        self._followed = False
        self._choose()
        return True

    def back_to(self, rises: Callable[[Floats], float]) -> None:
        """Return to where a function of p rose through zero within the last step; stay if it did
        not."""
        if self._solver is None:
            return
        path = self._solver.dense_output()
        low = float(self._solver.t_old)
        high = float(self._solver.t)

        def rise(at: float) -> float:
            return rises(self.here.joined(path(at)))

        if rise(low) < 0 < rise(high):
            self.clock = float(brentq(rise, low, high, xtol=1e-13 * max(1.0, abs(high))))
            self.p = self.here.joined(path(self.clock))
            self._solver = None

    def _choose(self, margin: float = LIVE, keep: BDF | None = None) -> None:
        """Choose coordinates anew at p."""
        self.here = self._coordinates(self.p, self.clock, margin)
        self._solver = keep
        self._margin = margin
        self._chosen = self.clock

    def _new_solver(self) -> BDF:
        """SciPy's solver of dx/dτ = −e^τ ∇L, τ = log t, from the present point on.

        Where gaps have settled, e^τ times their curvature is huge. So the exact Hessian is the
        Jacobian, and the first trial step is implicit.
        """

        def curve(tau: float, x: Floats) -> Floats:
            downhill, log_size = self.here.slope(x)
            return downhill * math.exp(min(tau + log_size, STEEP))

        def jacobian(tau: float, x: Floats) -> Floats:
            H, _, log_size = self.here.hessian(x, tau)
            return -math.exp(min(tau + log_size, STEEP)) * H

        clock = self.clock
        x = self.here.split(self.p)
        if clock == -math.inf:
            clock, x = first_gradient_step(self.here, x)
        relative, absolute = self._tolerance
        solver = BDF(
            curve,
            clock,
            x,
            math.inf,
            rtol=relative,
            atol=absolute,
            jac=jacobian,
            first_step=self.last_step,
        )
        solver.newton_tol *= LOOSER
        # BDF first predicts an explicit Euler step. Where gaps have settled, e^τ times their
        # rounding error would throw them far from the minimum, and no later trial finds back. A
        # linearly implicit one is the same where nothing is stiff.
        with contextlib.suppress(LinAlgError, ValueError), warnings.catch_warnings():
            warnings.simplefilter("ignore", LinAlgWarning)
            implicit = np.eye(len(x)) - solver.h_abs * solver.J
            solver.D[1] = solve(implicit, solver.D[1])
        return solver


def first_gradient_step(loss: Coordinates, x: Floats) -> tuple[float, Floats]:
    """A gradient step that is small against the curvature: log t after it, and the point."""
    H, downhill, log_size = loss.hessian(x)
    # ‖∇²L‖/‖∇L‖, at least one over the length of x, so that the step is short against both
    curvature = max(float(np.linalg.norm(H)), 1 / (1 + float(np.linalg.norm(x))))
    step = GRADIENT_STEP / curvature
    return math.log(step) - log_size, x + step * downhill


def try_step(solver: BDF) -> bool:
    """A step of BDF; False if it fails or overflows."""
    # BDF differences rows of its table that it has not filled yet; a trial step that is much too
    # long overflows.
    with np.errstate(invalid="ignore", over="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", LinAlgWarning)
        try:
            solver.step()
        except (ValueError, LinAlgError):
            return False
    return solver.status != "failed" and bool(np.isfinite(solver.y).all())
