"""The flow of a loss in the clock log t, by steps of SciPy's BDF.

If it moves faster than double precision resolves (a gap that is pulled shut), the clock restarts at zero: from there on it shows
local time, and log t is the logarithm of the total time.
"""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable
from typing import Protocol

import numpy as np
from scipy.integrate import BDF
from scipy.linalg import LinAlgError, LinAlgWarning, solve
from scipy.optimize import brentq

from tokensieve.arrays import Floats
from tokensieve.theory.flow.landscape import Landscape

# A force counts when, times the time passed, it exceeds e^{−LIVE}. Coordinates without it are chosen anew when it exceeds
# e^{−STALE}, and a step after which it exceeds e^{−SPOILT} is taken back.
_LIVE, _STALE, _SPOILT = 25.0, 15.0, 5.0
# e^{STEEP} is as steep as a right-hand side needs to be for a step to be rejected.
STEEP = 300.0
# Entries that have become too weak are looked for once per so much of the clock.
_LOOK = 0.5
# SciPy ends Newton's method at √rtol of the error that a step may have. Ten times that, 0.1 at 1e-4, is as accurate and faster.
_LOOSER = 10.0


class _Coordinates(Protocol):
    """A loss in coordinates x of p; `left_out_force` bounds the logarithm of the largest force that they leave out, sharply
    where it exceeds `enough`."""

    def slope(self, x: Floats, /) -> tuple[Floats, float]: ...
    def hessian(self, x: Floats, /, clock: float | None = None) -> tuple[Floats, Floats, float]: ...
    def split(self, p: Floats, /) -> Floats: ...
    def joined(self, x: Floats, /) -> Floats: ...
    def left_out_force(self, x: Floats, enough: float, /) -> float: ...


class Integrator:
    """The flow dp/dt = −∇L(p), one `step` at a time; the caller checks for events and decides when to stop.

    Forces too weak to move anything yet are omitted from the coordinates, which are chosen again when such a force has grown.

    Args:
        coordinates: of a point, the log of the time passed there, and how many nats weaker a force may be to be left out.
        p: where to begin, shape (r,).
        clock: log t there, counted from where the clock was last set back; −∞ to set it back here.
        log_time: the same, counted from the start of the whole curve.
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
        # log(e^{log_time} − e^{clock}): what has passed before the clock was last set back.
        self._offset = (
            log_time + math.log1p(-math.exp(clock - log_time)) if clock < log_time else -math.inf
        )
        self._followed = False
        self._solver: BDF | None = None
        self._choose()

    @property
    def x(self) -> Floats:
        """The coordinates of p."""
        return self.here.split(self.p) if self._solver is None else np.asarray(self._solver.y)

    @property
    def log_time(self) -> float:
        """log t, counted from the start of the whole curve."""
        return float(np.logaddexp(self._offset, self.clock))

    def step(self) -> bool:
        """One step; False if the clock cannot resolve it, in which case nothing has moved."""
        while True:
            if self._solver is None:
                self._solver = self._begin()
            solver = self._solver
            # BDF differences rows of its table that it has not filled yet; a trial step that is much too long overflows.
            with np.errstate(invalid="ignore", over="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore", LinAlgWarning)
                try:
                    solver.step()
                except (ValueError, LinAlgError):
                    solver.status = "failed"
            if solver.status == "failed" or not np.isfinite(solver.y).all():
                self._solver = None
                # BDF keeps the Jacobian of a trial step that was too long, e^τ times too large, for shorter ones, which fail too.
                if self.last_step > 1.0:
                    self.last_step = 0.1
                    continue
                return False
            passed = max(float(solver.t), 0.0)
            grown = self.here.left_out_force(solver.y, -_STALE - passed) + passed
            if grown <= -_SPOILT or self._margin > 1e6:
                break
            self._choose(4 * self._margin)
        self.p, self.clock, self._followed = self.here.joined(solver.y), float(solver.t), True
        self.last_step = float(solver.h_abs)
        if isinstance(self.here, Landscape):  # p is its own coordinates, and the solver goes on
            if grown > -_STALE or self.clock > self._chosen + _LOOK:
                self._choose(keep=self._solver)
        elif grown > -_STALE:
            self._choose()
        return True

    def restart(self, p: Floats | None = None, passed: float = -math.inf) -> bool:
        """Reset the clock to zero, here or at a p reached after e^{passed} of time; False if no step was taken since."""
        if not self._followed and self.clock == -math.inf and p is None:
            return False
        self._offset = float(np.logaddexp(self.log_time, passed))
        self.p = self.p if p is None else p
        self.clock, self._followed, self.last_step = -math.inf, False, 0.1
        self._choose()
        return True

    def back_to(self, rises: Callable[[Floats], float]) -> None:
        """Return to the point within the last step where a function of p rose through zero; stay here if it did not."""
        if self._solver is None:
            return
        inside, low, high = (
            self._solver.dense_output(),
            float(self._solver.t_old),
            float(self._solver.t),
        )

        def rise(at: float) -> float:
            return rises(self.here.joined(inside(at)))

        if rise(low) < 0 < rise(high):
            self.clock = float(brentq(rise, low, high, xtol=1e-13 * max(1.0, abs(high))))
            self.p, self._solver = self.here.joined(inside(self.clock)), None

    def _choose(self, margin: float = _LIVE, keep: BDF | None = None) -> None:
        """Choose coordinates anew at p."""
        self.here, self._solver = self._coordinates(self.p, self.clock, margin), keep
        self._margin, self._chosen = margin, self.clock

    def _begin(self) -> BDF:
        loss = self.here

        def curve(tau: float, x: Floats) -> Floats:
            downhill, log_size = self.here.slope(x)
            return downhill * math.exp(min(tau + log_size, STEEP))

        def jacobian(tau: float, x: Floats) -> Floats:
            H, _, log_size = self.here.hessian(x, tau)
            return -math.exp(min(tau + log_size, STEEP)) * H

        clock, x = self.clock, loss.split(self.p)
        if clock == -math.inf:  # begin with a gradient step that is small against the curvature
            H, downhill, log_size = loss.hessian(x)
            first = 1e-3
            bend = max(float(np.linalg.norm(H)), 1 / (1 + float(np.linalg.norm(x))))
            clock = math.log(first / bend) - log_size
            x = x + first / bend * downhill
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
        solver.newton_tol *= _LOOSER
        # BDF first predicts an explicit Euler step. Where gaps have settled, e^τ times their rounding error would throw them far
        # from the minimum, and no later trial finds back. A linearly implicit one is the same where nothing is stiff.
        with contextlib.suppress(LinAlgError, ValueError), warnings.catch_warnings():
            warnings.simplefilter("ignore", LinAlgWarning)
            solver.D[1] = solve(np.eye(len(x)) - solver.h_abs * solver.J, solver.D[1])
        return solver
