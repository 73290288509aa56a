"""Gradient flow of the `<cls>` vector with the embeddings fixed, followed in arc length.

dp/dt = −∇L(p) and dp/ds = −∇L/‖∇L‖ trace the same curve; s is the length travelled, and dt = ds/‖∇L‖ gives the time back. In
s the right-hand side has unit length however small the gradient is, so that ‖p‖ = 20,000 (t = e^{thousands}) is reached.

The curve is stiff: after a large first step the embeddings have one direction that is larger than all others by orders, and scores
that have settled hold the curve in a narrow valley. SciPy's BDF (implicit, orders 1 to 5, error-controlled) follows it with the
exact Hessian: a gradient flow has real eigenvalues, where BDF is stable. In a valley its Newton iteration only converges within
‖∇L‖/curvature in s, but anywhere in t; on a straight diverging curve steps grow with ‖p‖ in s, but not in t. So the curve is
followed in legs, each on the clock that has lately gained more length per step. A resumed run goes on from a leg's start, and
takes the very same steps as an uninterrupted one.

Where p converges to a finite point, ‖∇L‖ → 0 at finite s and arc length is singular. Newton's method is then tried from the
curve: quadratic convergence to a point of zero gradient with no direction of negative curvature is the verdict "finite limit".
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy.integrate import BDF
from scipy.interpolate import CubicHermiteSpline
from scipy.special import logsumexp
from threadpoolctl import threadpool_limits

from tokensieve.checkpoint import fingerprint
from tokensieve.errors import InputError
from tokensieve.progress import Progress
from tokensieve.text.counts import Counts, Floats
from tokensieve.theory.curve import DIVERGES, FINITE, UNDECIDED, Flow, FlowSettings
from tokensieve.theory.landscape import Landscape, Point, coordinates

TIME, ARC = 0, 1
LEG, TRIAL, TRY_EVERY = 50, 15, 5
# Where ‖∇L‖ is this share of its terms, rounding has taken its direction.
INCOHERENT = 1e-12
# Relative rise of the loss that is rounding, and the shortest step, relative to ‖p‖, after one that raised it.
ROUNDING, SHORTEST = 1e-13, 1e-10
# Up to this many stored counts and embedding coordinates, one thread is fastest.
SMALL = 500_000
# Above this share, rounding is far from the direction, and a limit may be looked for.
COHERENT = 1e-9
# Share of max_norm that counts as having reached it.
LANDED = 1 - 1e-7
LARGEST_VALUE = 300.0
NOT_MOVING = "some score gaps have settled while others grow, and the gradient has sunk to the rounding error of the settled ones,"


class _Leg(NamedTuple):
    """Everything that decides the steps of a leg, beside the point where it starts."""

    row: int
    step: float
    gains: tuple[float, float]
    number: int
    rises: int

    @property
    def clock(self) -> int:
        """The clock of larger gain, or now and then the other one."""
        best = int(self.gains[ARC] > self.gains[TIME])
        return 1 - best if self.number % TRY_EVERY == 1 else best

    @property
    def length(self) -> int:
        return TRIAL if self.number % TRY_EVERY == 1 else LEG


@dataclass
class _Run:
    """The growing curve of one call."""

    land: Landscape
    rest: float
    settings: FlowSettings
    rows: list[tuple[Point, float, float]] = field(default_factory=list)
    rises: int = 0
    leg: _Leg = field(default_factory=lambda: _Leg(0, 1e-3, (math.inf, math.inf), 0, 0))

    @property
    def here(self) -> Point:
        return self.rows[-1][0]

    @property
    def arc(self) -> float:
        return self.rows[-1][1]

    @property
    def steps(self) -> int:
        return len(self.rows) - 1

    def norm(self) -> float:
        return math.hypot(float(np.linalg.norm(self.here.p)), self.rest)


def gradient_flow(
    counts: Counts,
    E: Floats,
    w: Floats,
    p: Floats,
    settings: FlowSettings | None = None,
    resume: Flow | None = None,
    checkpoint: Path | None = None,
    progress: Progress | None = None,
) -> Flow:
    """Follow gradient flow of p from a start until ‖p‖ reaches settings.max_norm, p converges, or the budget ends.

    Args:
        counts: n documents of two classes over |S| types.
        E: embeddings, shape (|S|, d).
        w: values E v, shape (|S|,).
        p: the start, shape (d,).
        settings: see `FlowSettings`.
        resume: a flow of the same data, embeddings, start and tolerance to go on from; its budget may differ.
        checkpoint: file that receives the state after every leg (at most `LEG` steps).
        progress: called with ("flow", share of the way) after each step.

    Raises:
        InputError: shapes that do not agree, numbers that are not finite, settings out of range, or a flow to resume that was
            run with other data or another tolerance.
    """
    settings = settings or FlowSettings()
    _check(counts, E, w, p, settings)
    started = time.monotonic()
    reduced, basis = coordinates(E)
    z = p if basis is None else basis.T @ p
    rest = np.zeros_like(p) if basis is None else p - basis @ z
    land = Landscape(counts, reduced, w)
    print_ = fingerprint(settings.tolerance, counts, E, w, p)
    run = _Run(land, float(np.linalg.norm(rest)), settings)
    if resume is None:
        run.rows.append((land.point(z), 0.0, -math.inf))
    else:
        _refill(run, resume, print_)
    spent = resume.seconds if resume else 0.0

    def state(verdict: str, reason: str, limit: tuple[Floats, float] | None = None) -> Flow:
        points, arc, log_time = zip(*run.rows, strict=True)
        found = None if limit is None else rest + (limit[0] if basis is None else basis @ limit[0])
        return Flow(
            verdict, reason, np.array([x.p for x in points]), basis, rest, np.array(arc), np.array(log_time),
            np.array([x.loss for x in points]), np.array([x.log_gradient for x in points]), np.array([x.decay for x in points]),
            found, math.nan if limit is None else limit[1],
            np.array([*run.leg[:2], *run.leg.gains, *run.leg[3:]], dtype=np.float64), run.rises,
            spent + time.monotonic() - started, settings, print_,
        )  # fmt: skip

    with _threads(counts.matrix.nnz, reduced.size):
        return _follow(run, state, started, checkpoint, progress)


@contextlib.contextmanager
def _threads(entries: int, size: int) -> Iterator[None]:
    """One thread for a small problem: there, waking others costs more than they do, and sums keep one order on any machine."""
    if entries > SMALL or size > SMALL:
        yield
        return
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        numba.set_num_threads(before)


def _follow(
    run: _Run, state: Callable[..., Flow], started: float, checkpoint: Path | None, progress: Progress | None
) -> Flow:
    """Legs until there is a verdict."""
    settings, patience = run.settings, 30
    while True:
        if run.here.log_gradient == -math.inf:
            return state(FINITE, "the gradient is exactly zero: no score can change the loss", (run.here.p, 0.0))
        if run.norm() >= LANDED * settings.max_norm:
            return state(*_at_the_end(run))
        if run.steps >= settings.max_steps or time.monotonic() - started > settings.max_seconds:
            return state(
                UNDECIDED, f"‖p‖ = {run.norm():.4g} after {run.steps} steps, with neither divergence nor a limit"
            )
        finished = _leg(run, started, progress)
        if finished and checkpoint is not None:
            state("running", "saved on the way").save(checkpoint)
        stuck = max(run.leg.gains) == 0
        if stuck or run.steps >= patience:
            limit = _limit(run)
            if limit is not None:
                distance = float(np.linalg.norm(limit[0] - run.here.p))
                return state(FINITE, f"p converges to a finite point {distance:.3g} away from the last one", limit)
            patience = run.steps + max(run.steps // 2, LEG)
        if stuck:
            return state(UNDECIDED, f"{NOT_MOVING} at ‖p‖ = {run.norm():.6g}")


def _leg(run: _Run, started: float, progress: Progress | None) -> bool:
    """The steps of one leg; whether it was finished, so that the next one can start."""
    settings, leg, clock = run.settings, run.leg, run.leg.clock
    solver = _solver(run, clock, leg.step, math.inf)
    while run.steps - leg.row < leg.length:
        # BDF differences rows of its table that it has not filled yet.
        with np.errstate(invalid="ignore", over="ignore"):
            solver.step()
        if solver.status == "failed" or _lost(run, clock, solver):
            return _give_up(run, clock)
        if math.hypot(float(np.linalg.norm(solver.y)), run.rest) > settings.max_norm:
            # ‖p‖ grows no faster than s, so this bound is not overstepped.
            left = settings.max_norm - run.norm()
            clock, solver = ARC, _solver(run, ARC, 0.9 * left, run.arc + left)
            continue
        here = run.land.point(solver.y)
        if not here.loss <= run.here.loss * (1 + ROUNDING):
            return _shorten(run, clock)
        _accept(run, clock, solver, here)
        if progress is not None:
            progress("flow", min(1.0, run.norm() / settings.max_norm))
        spent = time.monotonic() - started > settings.max_seconds or run.steps >= settings.max_steps
        if spent or solver.status == "finished" or run.here.log_gradient == -math.inf:
            return False
    middle = run.rows[leg.row + leg.length // 2][1]
    gain = (run.arc - middle) / (leg.length - leg.length // 2)
    step = 0.3 * (run.arc - run.rows[-2][1])
    run.leg = _Leg(run.steps, step, _put(leg.gains, clock, gain), leg.number + 1, run.rises)
    return True


def _give_up(run: _Run, clock: int) -> bool:
    """End a leg whose clock does not get any further."""
    leg = run.leg
    run.leg = leg._replace(row=run.steps, gains=_put(leg.gains, clock, 0.0), number=leg.number + 1, rises=run.rises)
    return True


def _shorten(run: _Run, clock: int) -> bool:
    """End a leg at a step that raised the loss, which the flow cannot do, and begin the next with a shorter one."""
    leg = run.leg
    step = 0.1 * (run.arc - run.rows[-2][1] if run.steps > leg.row else leg.step)
    if step < SHORTEST * (1 + run.norm()):
        return _give_up(run, clock)
    run.leg = leg._replace(row=run.steps, step=step, rises=run.rises)
    return True


def _put(gains: tuple[float, float], clock: int, gain: float) -> tuple[float, float]:
    return (gain, gains[ARC]) if clock == TIME else (gains[TIME], gain)


def _solver(run: _Run, clock: int, step: float, bound: float) -> BDF:
    """A fresh solver at the last point, on one clock; time is scaled to start at unit speed."""
    land, unit, tolerance = run.land, run.here.log_gradient, run.settings.tolerance

    def curve(_: float, z: Floats) -> Floats:
        downhill, log_size = land.slope(z)
        return downhill if clock == ARC else downhill * math.exp(log_size - unit)

    def jacobian(_: float, z: Floats) -> Floats:
        H, downhill, log_size = land.hessian(z)
        if clock == ARC:
            return np.asarray(np.outer(downhill, downhill @ H) - H)
        return np.asarray(-math.exp(log_size - unit) * H)

    origin = run.arc if clock == ARC else 0.0
    return BDF(curve, origin, run.here.p, bound, rtol=tolerance, atol=tolerance, jac=jacobian, first_step=step)


def _lost(run: _Run, clock: int, solver: BDF) -> bool:
    """Whether rounding decides where the curve goes: on the arc clock, rounding of p times curvature; on both, cancellation."""
    J: Any = solver.J
    if clock == ARC and float(np.linalg.norm(J)) * np.finfo(float).eps * run.norm() > run.settings.tolerance:
        return True
    return 0 < run.here.coherence < INCOHERENT


def _accept(run: _Run, clock: int, solver: BDF, here: Point) -> None:
    before, arc, log_time = run.rows[-1]
    run.rises += here.loss > before.loss
    if clock == ARC:
        length = solver.t - arc
        passed = _log_duration(before, here, length)
    else:
        length = float(np.linalg.norm(here.p - before.p))
        unit = run.rows[run.leg.row][0].log_gradient
        passed = math.log(solver.t - solver.t_old) - unit
    run.rows.append((here, arc + length, float(np.logaddexp(log_time, passed))))


def _at_the_end(run: _Run) -> tuple[str, str]:
    """Verdict at max_norm: divergence shows in log‖∇L‖ falling in proportion to ‖p‖, at a rate that has settled."""
    here, arc, _ = run.rows[-1]
    half = next(row for row in run.rows if row[1] >= arc / 2)
    rate = (half[0].log_gradient - here.log_gradient) / (arc - half[1]) if arc > half[1] else here.decay
    if here.decay > 0 and here.decay * run.norm() > 10 and abs(rate - here.decay) < 0.1 * here.decay:
        return (
            DIVERGES,
            f"‖p‖ reached {run.norm():.6g}, and log‖∇L‖ falls steadily, by {here.decay:.4g} per unit of ‖p‖",
        )
    return (
        UNDECIDED,
        f"‖p‖ reached {run.norm():.6g}, but log‖∇L‖ does not fall at a steady rate yet ({rate:.3g}, now {here.decay:.3g})",
    )


def _log_duration(before: Point, after: Point, length: float) -> float:
    """log ∫ ds/‖∇L‖ over one step, with log‖∇L‖ interpolated by the cubic through its values and slopes at both ends.

    Slopes are held to three times the mean slope (Fritsch & Carlson), or three per step where that is less than one: at a
    sharp turn the cubic would overshoot.
    """
    if after.log_gradient == -math.inf:
        return math.inf
    rise = before.log_gradient - after.log_gradient
    steepest = 3 * max(abs(rise), 1.0) / length
    slopes = np.clip([before.decay, after.decay], -steepest, steepest)
    line = CubicHermiteSpline([0, length], [-before.log_gradient, -after.log_gradient], slopes)
    pieces = 1 + int(min(3 * abs(rise), 4e4) / 4)
    nodes, weights = leggauss(8)
    edges = np.linspace(0, length, pieces + 1)[:-1, None]
    inner = edges + (nodes + 1) * length / (2 * pieces)
    return float(logsumexp(line(inner), b=weights * length / (2 * pieces)))


def _limit(run: _Run) -> tuple[Floats, float] | None:
    """A point of zero gradient and no negative curvature that Newton's method reaches from the curve, with its curvature.

    Directions without curvature may only be those in which no score difference moves: a gradient along them that is more than
    rounding belongs to gaps that still grow.
    """
    if run.here.coherence < COHERENT:
        return None
    z, loss = run.here.p, run.here.loss
    reach = 0.5 * (1 + float(np.linalg.norm(z)))
    last = math.inf
    for _ in range(15):
        H, downhill, _ = run.land.hessian(z)
        if not _convex(H):
            return None
        curvature, axes = np.linalg.eigh(H)
        steep = curvature > 1e-11 * curvature[-1]
        if curvature[-1] <= 0:
            return None
        if last == math.inf and float(np.linalg.norm(axes[:, ~steep].T @ downhill)) > 1e-4:
            return None
        step = axes[:, steep] @ ((axes[:, steep].T @ downhill) / curvature[steep])
        size = float(np.linalg.norm(step))
        if size > reach or size > 0.7 * last:
            return None
        z = z + step
        if size <= 1e-8 * reach:
            fell = run.land.point(z).loss <= loss * (1 + 1e-13)
            return (z, float(curvature[steep].min() / curvature[-1])) if fell else None
        last = size
    return None


def _convex(H: Floats) -> bool:
    """Whether no curvature is negative beyond rounding: a Cholesky factorisation, at a fraction of the cost of eigenvalues."""
    try:
        np.linalg.cholesky(H + 1e-9 * float(np.linalg.norm(H)) * np.eye(len(H)))
    except np.linalg.LinAlgError:
        return False
    return True


def _check(counts: Counts, E: Floats, w: Floats, p: Floats, settings: FlowSettings) -> None:
    if E.shape != (counts.n_types, p.size) or w.shape != (counts.n_types,):
        raise InputError(
            f"embeddings {E.shape}, values {w.shape} and p {p.shape} do not fit {counts.n_types} token types"
        )
    if not (np.isfinite(E).all() and np.isfinite(w).all() and np.isfinite(p).all()):
        raise InputError("embeddings, values or p are not finite: use a smaller step size")
    if np.abs(w).max(initial=0.0) > LARGEST_VALUE:
        raise InputError(
            f"values reach ±{np.abs(w).max():.3g}: beyond ±{LARGEST_VALUE:g} the loss is too flat to follow in double precision; "
            "use a smaller step size (--eta)"
        )
    if counts.n_documents == 0 or counts.n_classes != 2:
        raise InputError(
            f"gradient flow needs documents of two classes, not {counts.n_documents} of {counts.n_classes}"
        )
    if not (
        settings.max_norm > 0 and 0 < settings.tolerance < 0.1 and settings.max_steps >= 1 and settings.max_seconds > 0
    ):
        raise InputError(f"{settings}: norm, steps and seconds must be positive, the tolerance between 0 and 0.1")


def _refill(run: _Run, saved: Flow, expected: str) -> None:
    """Take over the rows of finished legs: the steps of a leg depend on where its solver started."""
    if saved.fingerprint != expected:
        raise InputError("the saved flow was run with other data, embeddings, start or tolerance: start a new one")
    row, step, time_gain, arc_gain, number, rises = saved.leg.tolist()
    run.leg = _Leg(int(row), step, (time_gain, arc_gain), int(number), int(rises))
    run.rises = run.leg.rises
    for k in range(run.leg.row + 1):
        run.rows.append((run.land.point(saved.coordinates[k]), float(saved.arc[k]), float(saved.log_time[k])))
