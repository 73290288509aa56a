"""Gradient flow of the `<cls>` vector with the embeddings fixed, in the clock τ = log t: dp/dτ =
−e^τ ∇L(p).

A score gap that diverges grows like τ, so that norms in the ten thousands (t = e^{thousands}) are
reached; e^τ and ‖∇L‖ meet as logarithms only. What has settled is stiff, with curvatures of e^τ:
SciPy's BDF follows it with the exact Hessian. Settled gaps leave their rounding error in the
gradient, which e^τ magnifies; from log t = 20 on the flow is therefore followed in the coordinates
of `split`, which change no term of it.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
from scipy import stats
from threadpoolctl import threadpool_limits

from tokensieve import checkpoint as checkpoints
from tokensieve.arrays import Floats
from tokensieve.errors import InputError
from tokensieve.progress import Progress
from tokensieve.text.counts import Counts
from tokensieve.theory.flow.equilibrium import Equilibrium
from tokensieve.theory.flow.face import Face
from tokensieve.theory.flow.integrator import FIRST_STEP, STEEP, Integrator
from tokensieve.theory.flow.landscape import Landscape, PointFigures
from tokensieve.theory.flow.split import SplitLandscape
from tokensieve.theory.geometry import coordinates
from tokensieve.theory.settings import VerifySettings
from tokensieve.wording import noun

# Log t from which on ties are split off.
SPLIT_FROM = 20.0
# Ties are looked for again after so much of the clock.
LOOK_AGAIN = 1.5
# The first step in the coordinates of other ties may be no longer than this: where nothing moved
# for a while steps are many nats long, and such a step may fail.
LONGEST_FIRST_STEP = 1.0
# Steps between two checkpoints.
LEG = 50
# What a checkpoint keeps of a curve, one row per accepted step.
COLUMNS = ("coordinates", "arc", "log_time", "loss", "log_gradient")
# A verdict; that p diverges is for `limit.certify` to say, no curve is long enough for that.
FINITE = "finite limit"
UNDECIDED = "undecided at the budget"
# What a limit on a surface means.
SURFACE = (
    "for documents with the same tokens but different labels, the prediction is the frequency of "
    "their labels"
)
# Beyond this value the loss is too flat to follow in double precision.
LARGEST_VALUE = 300.0
# An exponent is fitted to the last so large a factor of ‖p‖.
FITTED_FACTOR = 30
# Radians; smaller angles are rounding and are not fitted.
SMALLEST_ANGLE = 1e-12
# Points that the fit of a line needs, to leave two degrees of freedom for its error.
MIN_FITTED = 4
# A finite limit is looked for when p moves, per unit of log t, by less than this fraction of its
# norm.
SLOW = 0.02
# Steps before the first look.
FIRST_LOOK = 20.0
# The next look is after so many times the steps: the number of looks grows with their logarithm.
LOOK_FACTOR = 1.25
# Newton's method may move a gap by this many nats to a strict minimum.
MAX_MOVED = 0.1
# The nearest point of a surface is the limit up to the square of the distance, so that it has to
# be much nearer: the square is then rounding.
MAX_MOVED_TO_SURFACE = 1e-5
# Relative; a mean of thousands of terms is exact to a few 1e-16.
ROUNDING_OF_LOSS = 1e-12
# A gap that diverges asks for a step of one nat at any time, because its gradient and its curvature
# are both e^{−gap}; one that settles has a larger product of time and curvature.
SETTLED_PRODUCT = 3.0


class Agreement(NamedTuple):
    """How a curve approaches a direction: its last angle, and the slope of log angle over log ‖p‖.

    With unique, strictly positive multipliers of the max-margin direction the theory has −1; nan
    with fewer than four points.
    """

    angle: float
    exponent: float
    standard_error: float


class Ending(NamedTuple):
    """A verdict of a curve, and its reason."""

    verdict: str
    reason: str


@dataclass(frozen=True)
class Flow:
    """The curve followed so far, one row per accepted step (row 0 is the start), and how it ended.

    Attributes:
        verdict, reason: whether p converges, and why.
        coordinates, basis: points of the curve in an orthonormal basis of the span of E, shape (m,
            r), and that basis, shape (d, r), or None when they are p itself.
        arc, log_time, loss: length, log t (−∞ at the start) and L, shape (m,).
        log_gradient: log‖∇L‖, shape (m,); where ties have settled, of its part along V^⊥.
        rest: the part of p outside the span of E, which never moves, shape (d,).
        limit: the finite point that p converges to, shape (d,), or None.
    """

    verdict: str
    reason: str
    coordinates: Floats
    arc: Floats
    log_time: Floats
    loss: Floats
    log_gradient: Floats
    seconds: float
    basis: Floats | None
    rest: Floats
    limit: Floats | None
    settings: VerifySettings

    @property
    def norm(self) -> Floats:
        """‖p‖ along the curve, shape (m,)."""
        return np.asarray(
            np.hypot(np.linalg.norm(self.coordinates, axis=1), np.linalg.norm(self.rest))
        )

    @property
    def p(self) -> Floats:
        """The last point, shape (d,)."""
        return self.at(-1)

    def at(self, row: int) -> Floats:
        """p at a row of the curve, shape (d,)."""
        return self.whole(self.coordinates[row]) + self.rest

    def whole(self, z: Floats) -> Floats:
        """The vector in R^d with these r coordinates, shape (d,)."""
        return z if self.basis is None else np.asarray(self.basis @ z)

    def angle(self, direction: Floats) -> Floats:
        """Angle between p and a direction of R^d in radians, shape (m,).

        It is the arc tangent of the part of p across the direction and of that along it, so it is
        exact where the cosine rounds to one. The part across is measured within the span of the
        basis and outside it.
        """
        unit = direction / np.linalg.norm(direction)
        unit_coordinates = unit if self.basis is None else self.basis.T @ unit
        unit_rest = unit - self.whole(unit_coordinates)
        along = self.coordinates @ unit_coordinates + float(self.rest @ unit)
        across_in_span = self.coordinates - np.outer(along, unit_coordinates)
        across_in_rest = self.rest - np.outer(along, unit_rest)
        across = np.hypot(
            np.linalg.norm(across_in_span, axis=1), np.linalg.norm(across_in_rest, axis=1)
        )
        return np.asarray(np.arctan2(across, along))

    def agreement(self, direction: Floats) -> Agreement:
        """The last angle to a direction and the rate at which it falls."""
        angle = self.angle(direction)
        norm = self.norm
        is_late = (norm >= norm[-1] / FITTED_FACTOR) & (angle > SMALLEST_ANGLE)
        if is_late.sum() < MIN_FITTED:
            return Agreement(float(angle[-1]), math.nan, math.nan)
        fit = stats.linregress(np.log(norm[is_late]), np.log(angle[is_late]))
        return Agreement(float(angle[-1]), float(fit.slope), float(fit.stderr))

    def to_dict(self) -> dict[str, str | float | None]:
        """Verdict and last figures, ready for JSON."""
        last = float(self.log_time[-1])
        return {
            "verdict": self.verdict,
            "reason": self.reason,
            "norm": float(self.norm[-1]),
            "arc": float(self.arc[-1]),
            "log_time": last if math.isfinite(last) else None,
            "loss": float(self.loss[-1]),
            "steps": len(self.arc) - 1,
            "limit_norm": None if self.limit is None else float(np.linalg.norm(self.limit)),
            "rises": int(np.sum(np.diff(self.loss) > 0)),  # steps at which the computed loss rose
            "seconds": self.seconds,
        }

    @staticmethod
    @contextlib.contextmanager
    def one_thread() -> Iterator[None]:
        """One thread, so that sums keep their order whatever the machine; at 5,000 reviews a second
        one only waits."""
        before = numba.get_num_threads()
        numba.set_num_threads(1)
        try:
            with threadpool_limits(1):
                yield
        finally:
            numba.set_num_threads(before)


def gradient_flow(
    counts: Counts,
    E: Floats,
    w: Floats,
    p: Floats,
    settings: VerifySettings | None = None,
    checkpoint: Path | None = None,
    progress: Progress | None = None,
    after: Flow | None = None,
) -> Flow:
    """Follow gradient flow of p until ‖p‖ reaches settings.max_norm, p converges, its ties have
    settled, or the budget ends.

    Args:
        counts, E, w, p: documents of two classes, embeddings, shape (|S|, d), values E v, shape
            (|S|,), and the start, shape (d,).
        settings: the budget.
        checkpoint: file that keeps the curve, written every `LEG` steps; a curve found there is
            continued (its budget may have been another).
        progress: called with ("flow", share of the way) after each step.
        after: a curve from the same start to continue.

    Raises:
        InputError: shapes that do not agree, numbers that are not finite, settings out of range, or
            a checkpoint of another run.
    """
    settings = settings or VerifySettings()
    check_problem(counts, E, w, p)
    reduced, basis = coordinates(E)
    z = p if basis is None else basis.T @ p
    outside_span = np.zeros_like(p) if basis is None else p - basis @ z
    store = Store(checkpoint, checkpoints.fingerprint(settings.tolerance, counts, E, w, p))
    earlier = store.earlier(after)
    with Flow.one_thread():
        curve = Curve(
            Landscape(counts, reduced, w),
            z,
            float(np.linalg.norm(outside_span)),
            settings,
            earlier.rows,
        )
        while (ending := curve.stop_reason()) is None:
            curve.step()
            if progress is not None:
                progress("flow", curve.share())
            if len(curve.rows) % LEG == 1:
                store.save(curve, earlier.seconds + curve.seconds)
    seconds = earlier.seconds + curve.seconds
    store.save(curve, seconds)
    limit = curve.limit
    if limit is not None:
        limit = outside_span + (limit if basis is None else basis @ limit)
    return Flow(
        ending.verdict,
        ending.reason,
        **curve.columns(),
        seconds=seconds,
        basis=basis,
        rest=outside_span,
        limit=limit,
        settings=settings,
    )


@dataclass(frozen=True)
class Earlier:
    """Columns of a curve that is continued, if any, and the seconds that it took."""

    rows: dict[str, Floats] | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class Store:
    """The checkpoint of a curve, if there is one, and the mark of the problem."""

    path: Path | None
    mark: str

    def earlier(self, after: Flow | None) -> Earlier:
        """What is continued: a given curve, or that of the file."""
        if after is not None:
            rows = {name: getattr(after, name) for name in COLUMNS}
            return Earlier(rows, after.seconds)
        if self.path is None:
            return Earlier()
        stored = checkpoints.load(self.path, self.mark)
        if stored is None:
            return Earlier()
        rows, figures = stored
        return Earlier(rows, float(figures["seconds"]))

    def save(self, curve: Curve, seconds: float) -> None:
        if self.path is not None:
            checkpoints.save(self.path, self.mark, curve.columns(), {"seconds": seconds})


class SplitFlow:
    """The true flow from a point, in coordinates chosen anew whenever ties settle or pairs become
    live.

    Arguments as those of `Integrator`; if `face` is None, ties are looked for from log t = 20 on,
    and p is its own coordinates before.
    """

    def __init__(
        self,
        land: Landscape,
        p: Floats,
        clock: float,
        log_time: float,
        tolerance: float,
        face: Face | None = None,
        step: float = FIRST_STEP,
    ) -> None:
        self._land = land
        self._tolerance = tolerance
        self.looked = clock
        self.face = face
        if face is None and clock >= SPLIT_FROM:
            self.face = Face.settled(land, p, clock)
        self.solver = self._integrator_from(
            p, clock, log_time, step if self.face is None else FIRST_STEP
        )

    def step(self) -> bool:
        """One step; if the clock cannot resolve it, in local time. False if that fails, too."""
        if self.face is None and self.solver.clock >= SPLIT_FROM:
            self.refresh_ties()
        solver = self.solver
        is_split = self.face is not None
        has_moved = solver.step()
        if not has_moved and is_split:
            has_moved = solver.restart() and solver.step()
        # In local time the ties from before serve until then: they only decide what digits are
        # lost.
        is_due = solver.clock >= SPLIT_FROM and abs(solver.clock - self.looked) >= LOOK_AGAIN
        if is_split and has_moved and is_due:
            self.refresh_ties()
        return has_moved

    def refresh_ties(self) -> bool:
        """Find the ties again; returns whether they changed."""
        solver = self.solver
        before = self.face
        self.looked = solver.clock
        face = Face.settled(self._land, solver.p, solver.clock)
        if before is not None and np.array_equal(face.mask, before.mask):
            return False
        self.face = face
        step = FIRST_STEP if before is None else min(solver.last_step, LONGEST_FIRST_STEP)
        self.solver = self._integrator_from(solver.p, solver.clock, solver.log_time, step)
        return before is not None or face.dimension > 0

    def outside(self) -> PointFigures:
        """`SplitLandscape.outside` at the last point."""
        assert isinstance(self.solver.here, SplitLandscape)
        return self.solver.here.outside(self.solver.x)

    def _integrator_from(self, p: Floats, clock: float, log_time: float, step: float) -> Integrator:
        """An integrator that goes on from p, in the coordinates of the present face.

        While no ties are known, p is its own coordinates, and only entries of too little weight are
        left out. Afterwards p = Vζ + Wq (`split`): the tied gaps and all others apart.
        """
        land = self._land
        face = self.face

        def coordinates_at(p: Floats, clock: float, margin: float) -> Landscape | SplitLandscape:
            if face is None:
                return land.live(p, clock, margin)
            return SplitLandscape(land, face, p, clock, margin)

        tolerance = (self._tolerance, self._tolerance)
        is_plain = face is None
        return Integrator(coordinates_at, p, clock, log_time, tolerance, step, is_plain)


class CurveRow(NamedTuple):
    """An accepted step: p in r coordinates, the length so far, log t, L and log‖∇L‖."""

    z: Floats
    arc: float
    log_time: float
    loss: float
    log_gradient: float


class Curve:
    """A curve in progress, and what is integrated from its last row.

    `rest` is the length of the part of p that never moves, and `earlier` the columns of a curve
    that goes on.
    """

    def __init__(
        self,
        land: Landscape,
        z: Floats,
        rest: float,
        settings: VerifySettings,
        earlier: dict[str, Floats] | None,
    ) -> None:
        self._land = land
        self._rest = rest
        self._settings = settings
        self._started = time.monotonic()
        self._next_look = FIRST_LOOK
        self._has_failed = False
        self.limit: Floats | None = None
        start = land.point(z)
        self.rows = [CurveRow(z, 0.0, -math.inf, start.loss, start.log_gradient)]
        if earlier is not None:
            self.rows = self._within_norm(earlier)
        self._coherence = land.point(self.z).coherence
        before = self.rows[-2].log_time if len(self.rows) > 1 else -math.inf
        step = FIRST_STEP
        if math.isfinite(before):
            step = FIRST_STEP * (self.log_time - before)
        self._flow = SplitFlow(
            land, self.z, self.log_time, self.log_time, settings.tolerance, step=step
        )
        if self._flow.face is not None:  # a curve that goes on
            self._coherence = self._flow.outside().coherence

    @property
    def z(self) -> Floats:
        return self.rows[-1].z

    @property
    def log_time(self) -> float:
        return self.rows[-1].log_time

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    def columns(self) -> dict[str, Floats]:
        """The rows as arrays."""
        columns = zip(*self.rows, strict=True)
        return {name: np.array(column) for name, column in zip(COLUMNS, columns, strict=True)}

    def norm(self, z: Floats) -> float:
        return math.hypot(float(np.linalg.norm(z)), self._rest)

    def share(self) -> float:
        """How much of the way is done, 0 to 1."""
        settings = self._settings
        by_norm = self.norm(self.z) / settings.max_norm
        by_time = self.log_time / settings.max_log_time
        return min(1.0, max(by_norm, by_time, 0.0))

    def step(self) -> None:
        """One accepted step; at the norm where the curve is to end, the part of a step that leads
        there."""
        if not self._flow.step():
            self._has_failed = True
            return
        solver = self._flow.solver
        max_norm = self._settings.max_norm
        if self.norm(solver.p) > max_norm:
            solver.back_to(lambda p: self.norm(p) - max_norm)
        arc = self.rows[-1].arc + float(np.linalg.norm(solver.p - self.z))
        # Once ties are split off, the norm of the whole gradient is that of rounding; along V^⊥,
        # where there is any, it is exact.
        here = solver.here
        figures = here.point(solver.p) if isinstance(here, Landscape) else self._flow.outside()
        if figures.log_gradient == -math.inf:
            figures = self._land.point(solver.p)
        self._coherence = figures.coherence
        self.rows.append(
            CurveRow(solver.p, arc, solver.log_time, figures.loss, figures.log_gradient)
        )

    def stop_reason(self) -> Ending | None:
        """The verdict and its reason, or None while the curve goes on."""
        settings = self._settings
        flow = self._flow
        n_steps = len(self.rows) - 1
        norm = self.norm(self.z)
        at = f"at ‖p‖ = {norm:.6g}, log t = {self.log_time:.4g}"
        if self.rows[-1].log_gradient == -math.inf:
            minimum = self._finite_limit()
            self.limit = self.z if minimum is None else minimum.point
            return Ending(FINITE, "the gradient is exactly zero: no score can change the loss")
        if norm >= (1 - 1e-7) * settings.max_norm:
            return Ending(UNDECIDED, f"the maximum norm was reached {at}")
        is_stuck = self._is_rounding(norm) or self._has_failed
        if is_stuck or (n_steps >= self._next_look and self._speed() < SLOW * (1 + norm)):
            self._next_look = LOOK_FACTOR * n_steps
            minimum = self._finite_limit()
            if minimum is not None:
                return self._converged(minimum)
        # Ties that have settled meanwhile may explain why the curve is stuck.
        if is_stuck and not flow.refresh_ties():
            words = "the score gaps have settled and the gradient is down to rounding error"
            return Ending(UNDECIDED, f"{words} {at}")
        self._has_failed = False
        if self.seconds > settings.max_seconds or n_steps >= settings.max_steps:
            words = f"neither divergence nor convergence was seen within {n_steps} steps"
            return Ending(UNDECIDED, f"{words}, {at}")
        has_ties = flow.face is not None and flow.face.dimension > 0
        if has_ties and self.log_time >= settings.max_log_time:
            words = (
                "score gaps have settled, and the curve was followed far enough to certify a limit"
            )
            return Ending(UNDECIDED, f"{words} {at}")
        return None

    def _within_norm(self, earlier: dict[str, Floats]) -> list[CurveRow]:
        """The rows of an earlier curve up to the largest norm; at least one."""
        norms = np.hypot(np.linalg.norm(earlier["coordinates"], axis=1), self._rest)
        # the curve ended at this norm up to rounding, and goes on from there
        is_beyond = norms > self._settings.max_norm * (1 + 1e-9)
        n_rows = int(np.argmax(is_beyond)) if is_beyond.any() else len(norms)
        points, *numbers = (earlier[name][: max(n_rows, 1)] for name in COLUMNS)
        columns = [column.tolist() for column in numbers]
        return [CurveRow(*row) for row in zip(points, *columns, strict=True)]

    def _speed(self) -> float:
        """How far p moves per unit of log t."""
        return math.exp(min(self._flow.solver.clock + self.rows[-1].log_gradient, STEEP))

    def _is_rounding(self, norm: float) -> bool:
        """Whether the rounding of the gradient moves p by more than the local error allows."""
        # 1e-300: where the gradient is nothing but rounding, the noise is as good as infinite
        noise = self._speed() * float(np.finfo(float).eps) / max(self._coherence, 1e-300)
        return noise > self._settings.tolerance * (1 + norm)

    def _converged(self, minimum: FiniteMinimum) -> Ending:
        """The verdict that p converges to a point, which becomes the limit."""
        self.limit = minimum.point
        distance = float(np.linalg.norm(minimum.point - self.z))
        words = f"p converges to a finite point {distance:.3g} away from the last one computed"
        if minimum.flat:
            size = f"{minimum.flat} {noun(minimum.flat, 'dimension')}"
            words = f"{words}, one of a surface of minima ({size}): {SURFACE}"
        return Ending(FINITE, words)

    def _finite_limit(self) -> FiniteMinimum | None:
        """A local minimum that Newton's method reaches, and in which the curve has settled."""
        land = self._land
        z = self.z
        everything = Face.of(land.counts, land.E, np.ones(land.counts.matrix.nnz, bool))
        if not everything.dimension:
            return None
        minimum = Equilibrium.near(land, everything, z)
        if minimum is None:
            return None
        if minimum.moved > (MAX_MOVED_TO_SURFACE if minimum.flat else MAX_MOVED):
            return None
        positive_curvature = max(minimum.curvature, 1e-300)  # its logarithm is finite
        if self._flow.solver.clock + math.log(positive_curvature) <= math.log(SETTLED_PRODUCT):
            return None
        V = everything.inside
        end = z - V @ (V.T @ z) + minimum.z
        is_uphill = land.point(end).loss > self.rows[-1].loss * (1 + ROUNDING_OF_LOSS)
        return None if is_uphill else FiniteMinimum(end, minimum.flat)


@dataclass(frozen=True)
class FiniteMinimum:
    """A minimum of L, shape (r,), and the dimension of the surface of minima through it."""

    point: Floats
    flat: int


def check_problem(counts: Counts, E: Floats, w: Floats, p: Floats) -> None:
    """Refuses what gradient flow cannot follow.

    Args:
        E: embeddings, shape (|S|, d).
        w: values, shape (|S|,).
        p: the start, shape (d,).

    Raises:
        InputError: the shapes do not agree, there are more than two classes, or numbers are not
        finite
            or too large.
    """
    types = counts.n_types
    classes = counts.n_classes
    if E.shape != (types, p.size) or w.shape != (types,):
        raise InputError(
            f"embeddings {E.shape}, values {w.shape} and p {p.shape} do not fit {types} token types"
        )
    if not (np.isfinite(E).all() and np.isfinite(w).all() and np.isfinite(p).all()):
        raise InputError("embeddings, values or p are not finite: use a smaller step size")
    largest = np.abs(w).max(initial=0.0)
    if largest > LARGEST_VALUE:
        raise InputError(
            f"values reach ±{largest:.3g}: beyond ±{LARGEST_VALUE:.0f} the loss is too flat to "
            "follow in double precision; use a smaller step size (--eta)"
        )
    if counts.n_documents == 0 or classes != 2:
        raise InputError(
            f"gradient flow needs documents of two classes, not {counts.n_documents} of {classes}"
        )
