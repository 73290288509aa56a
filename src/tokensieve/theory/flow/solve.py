"""Gradient flow of the `<cls>` vector with the embeddings fixed, followed in the logarithm of time.

In the clock τ = log t the flow dp/dt = −∇L(p) is dp/dτ = −e^τ ∇L(p). A score gap that diverges grows like τ, so that the
right-hand side stays of the size of p/τ however small the gradient is: the step sizes do not have to grow with t, and norms in
the ten thousands (t = e^{thousands}) are reached. e^τ and ‖∇L‖ meet as logarithms only; neither is ever formed.

What has settled is stiff, with curvatures of e^τ. SciPy's BDF (implicit, orders 1 to 5, error-controlled) follows it with the
exact Hessian: a gradient flow has real eigenvalues, where BDF is stable. Settled gaps leave their rounding error in the gradient,
which e^τ magnifies; from log t = 20 on the flow is therefore followed in the coordinates of `split`, whose basis is chosen anew
whenever other ties have settled. The basis changes no term of the flow, only the digits that are lost.

Where p converges to a finite point, Newton's method from the curve finds it: quadratic convergence, a Hessian that is positive
wherever a score gap can move, no gap moved by more than a tenth of a nat (a gap that diverges asks for a step of one nat at any
time, since its gradient and its curvature are both e^{−gap}), and t·curvature > 3 are the verdict "finite limit".
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import numba
import numpy as np
from threadpoolctl import threadpool_limits

from tokensieve import checkpoint as checkpoints
from tokensieve.errors import InputError
from tokensieve.progress import Progress
from tokensieve.text.counts import Counts, Floats
from tokensieve.theory.flow.landscape import Landscape, Point
from tokensieve.theory.flow.log_time import STEEP, Integrator
from tokensieve.theory.flow.split import SplitFlow
from tokensieve.theory.geometry import coordinates, differences, linked, span_of, spread
from tokensieve.theory.settings import FlowSettings

# Steps between two checkpoints.
LEG = 50
# Steps before a finite limit is looked for, and the growth of the count between two tries.
PATIENCE, GROWTH = 20, 1.25
# A finite limit is looked for when p moves, per unit of log t, by less than this share of its norm.
SLOW = 0.02
# A finite limit: largest move of a score gap (nats), and time times smallest curvature.
NEAR, SETTLED = 0.1, 3.0
# Share of max_norm that counts as having reached it.
LANDED = 1 - 1e-7
# Up to this many stored counts and embedding coordinates, one thread is fastest.
SMALL = 2_000_000
LARGEST_VALUE = 300.0
# log t from which the flow is split.
SPLIT_FROM = 20.0


class Verdict(StrEnum):
    """What became of a curve."""

    DIVERGES = "diverges"
    FINITE = "finite limit"
    UNDECIDED = "undecided at the budget"


@dataclass(frozen=True)
class _Track:
    """The rows of a curve, one per accepted step (row 0 is the start): what a checkpoint keeps.

    Attributes:
        coordinates: points of the curve in an orthonormal basis of the span of E, shape (m, r).
        arc: length of the curve, summed over its chords, shape (m,).
        log_time: log t, shape (m,); −∞ at the start.
        loss: L, shape (m,).
        log_gradient: log‖∇L‖, shape (m,); where ties have settled, of its part along V^⊥.
        decay: −d log‖∇L‖/ds, s the length, shape (m,).
        coherence: ‖∇L‖ over the sum of the sizes of its terms, shape (m,).
        seconds: wall time spent on them.
    """

    coordinates: Floats
    arc: Floats
    log_time: Floats
    loss: Floats
    log_gradient: Floats
    decay: Floats
    coherence: Floats
    seconds: float

    def save(self, path: Path, mark: str) -> None:
        """Write the rows as a checkpoint of the run with this fingerprint."""
        arrays = {name: value for name, value in self.__dict__.items() if name != "seconds"}
        checkpoints.save(path, mark, arrays, {"seconds": self.seconds})

    @classmethod
    def load(cls, path: Path, mark: str) -> _Track | None:
        """The rows of a checkpoint of this run; None where there is no file.

        Raises:
            InputError: the file is damaged, no checkpoint, or of another run.
        """
        found = checkpoints.load(path, mark)
        return None if found is None else cls(**found[0], seconds=float(found[1]["seconds"]))


@dataclass(frozen=True)
class Flow:
    """The curve followed so far, and what became of it.

    Attributes:
        verdict: whether p diverges, converges, or neither was seen.
        reason: the verdict in words.
        track: the rows of the curve.
        basis: of their coordinates, shape (d, r), or None when the coordinates are p itself.
        rest: the part of p outside the span of E, which never moves, shape (d,).
        limit: the finite point that p converges to, shape (d,), or None.
        limit_curvature: smallest curvature at the limit relative to the largest, where score gaps move; nan without limit.
        settings: the settings.
    """

    verdict: Verdict
    reason: str
    track: _Track
    basis: Floats | None
    rest: Floats
    limit: Floats | None
    limit_curvature: float
    settings: FlowSettings

    @property
    def coordinates(self) -> Floats:
        """Points of the curve, shape (m, r)."""
        return self.track.coordinates

    @property
    def log_time(self) -> Floats:
        """log t, shape (m,)."""
        return self.track.log_time

    @property
    def rises(self) -> int:
        """Steps at which the computed loss rose."""
        return int(np.sum(np.diff(self.track.loss) > 0))

    @property
    def norm(self) -> Floats:
        """‖p‖ along the curve, shape (m,)."""
        return np.asarray(np.hypot(np.linalg.norm(self.coordinates, axis=1), np.linalg.norm(self.rest)))

    @property
    def p(self) -> Floats:
        """The last point, shape (d,)."""
        return self.at(-1)

    def at(self, row: int) -> Floats:
        """p at a row of the curve, shape (d,)."""
        z = self.coordinates[row]
        return np.asarray(self.rest + (z if self.basis is None else self.basis @ z))

    def cosine(self, direction: Floats) -> Floats:
        """Cosine of p and a direction of R^d along the curve, shape (m,)."""
        inside = direction if self.basis is None else self.basis.T @ direction
        dots = self.coordinates @ inside + float(self.rest @ direction)
        return np.asarray(dots / (self.norm * np.linalg.norm(direction)))

    def angle(self, direction: Floats) -> Floats:
        """Angle in radians between p and a direction along the curve, shape (m,); exact also where the cosine rounds to one."""
        unit = direction / np.linalg.norm(direction)
        inside = unit if self.basis is None else self.basis.T @ unit
        outside = unit - (inside if self.basis is None else self.basis @ inside)
        dots = self.coordinates @ inside + float(self.rest @ unit)
        across = np.linalg.norm(self.coordinates - np.outer(dots, inside), axis=1)
        beyond = np.linalg.norm(self.rest - np.outer(dots, outside), axis=1)
        return np.asarray(np.arctan2(np.hypot(across, beyond), dots))

    def to_dict(self) -> dict[str, Any]:
        """Verdict and last figures, ready for JSON."""
        last = float(self.log_time[-1])
        return {
            "verdict": self.verdict,
            "reason": self.reason,
            "norm": float(self.norm[-1]),
            "arc": float(self.track.arc[-1]),
            "log_time": last if math.isfinite(last) else None,
            "loss": float(self.track.loss[-1]),
            "steps": len(self.track.arc) - 1,
            "limit_norm": None if self.limit is None else float(np.linalg.norm(self.limit)),
            "rises": self.rises,
            "seconds": self.track.seconds,
        }


@dataclass
class _FlowState:
    """Where the curve is: its rows (point, length, log t), and what is integrated from the last of them."""

    land: Landscape
    rest: float
    settings: FlowSettings
    rows: list[tuple[Point, float, float]]
    flow: Integrator | SplitFlow | None = None
    patience: float = PATIENCE
    limit: tuple[Floats, float] | None = None
    failed: bool = False
    seconds: float = 0.0
    started: float = field(default_factory=lambda: time.monotonic())  # looked up now, so that a test's clock counts

    @property
    def here(self) -> Point:
        return self.rows[-1][0]

    @property
    def log_time(self) -> float:
        return self.rows[-1][2]

    @property
    def steps(self) -> int:
        return len(self.rows) - 1

    @property
    def solver(self) -> Integrator:
        assert self.flow is not None
        return self.flow if isinstance(self.flow, Integrator) else self.flow.solver

    def norm(self, z: Floats) -> float:
        return math.hypot(float(np.linalg.norm(z)), self.rest)


def gradient_flow(
    counts: Counts,
    E: Floats,
    w: Floats,
    p: Floats,
    settings: FlowSettings | None = None,
    checkpoint: Path | None = None,
    progress: Progress | None = None,
    after: Flow | None = None,
) -> Flow:
    """Follow gradient flow of p from a start until ‖p‖ reaches settings.max_norm, p converges, its ties have settled, or the
    budget ends.

    Args:
        counts: n documents of two classes over |S| types.
        E: embeddings, shape (|S|, d).
        w: values E v, shape (|S|,).
        p: the start, shape (d,).
        settings: see `FlowSettings`.
        checkpoint: file that keeps the curve, written every `LEG` steps; a curve found there is continued (its budget may
            have been another).
        progress: called with ("flow", share of the way) after each step.
        after: a curve from the same start to continue.

    Raises:
        InputError: shapes that do not agree, numbers that are not finite, settings out of range, or a checkpoint of another run.
    """
    settings = settings or FlowSettings()
    _check(counts, E, w, p, settings)
    reduced, basis = coordinates(E)
    z = p if basis is None else basis.T @ p
    rest = np.zeros_like(p) if basis is None else p - basis @ z
    mark = checkpoints.fingerprint(settings.tolerance, counts, E, w, p)
    with few_threads(counts.matrix.nnz, reduced.size):
        land = Landscape(counts, reduced, w)
        kept = None if checkpoint is None else _Track.load(checkpoint, mark)
        kept = after.track if after is not None else kept
        state = _init(land, z, float(np.linalg.norm(rest)), settings, kept)
        while (ending := _terminate(state)) is None:
            _step(state)
            if progress is not None:
                reached = max(state.norm(state.here.p) / settings.max_norm, state.log_time / settings.max_log_time)
                progress("flow", min(1.0, max(reached, 0.0)))
            if checkpoint is not None and state.steps % LEG == 0:
                _track(state).save(checkpoint, mark)
        track = _track(state)
        if checkpoint is not None:
            track.save(checkpoint, mark)
    limit = state.limit
    found = None if limit is None else rest + (limit[0] if basis is None else basis @ limit[0])
    curvature = math.nan if limit is None else limit[1]
    return Flow(*ending, track, basis, rest, found, curvature, settings)


@contextlib.contextmanager
def few_threads(entries: int, size: int) -> Iterator[None]:
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


def _init(land: Landscape, z: Floats, rest: float, settings: FlowSettings, kept: _Track | None) -> _FlowState:
    """The start, or the rows of a curve that are within this call's budget."""
    if kept is None:
        return _FlowState(land, rest, settings, [(land.point(z), 0.0, -math.inf)])
    norm = np.hypot(np.linalg.norm(kept.coordinates, axis=1), rest)
    beyond = np.flatnonzero(norm > settings.max_norm * (1 + 1e-9))
    last = int(beyond[0]) if beyond.size else len(norm)
    columns = (kept.coordinates, kept.loss, kept.log_gradient, kept.decay, kept.coherence, kept.arc, kept.log_time)
    rows = [
        (Point(p, float(loss), float(slope), float(decay), float(coherence)), float(arc), float(t))
        for p, loss, slope, decay, coherence, arc, t in zip(
            *(column[: max(last, 1)] for column in columns), strict=True
        )
    ]
    state = _FlowState(land, rest, settings, rows, seconds=kept.seconds)
    if state.log_time >= SPLIT_FROM:
        state.flow = _split(state)
    return state


def _step(state: _FlowState) -> None:
    """One accepted step; at the norm where the curve is to end, the part of a step that leads there."""
    flow = state.flow = state.flow or _plain(state)
    if isinstance(flow, Integrator) and flow.clock >= SPLIT_FROM:
        flow = state.flow = _split(state)
    if not flow.step():
        state.failed = True
        return
    solver = state.solver
    if state.norm(solver.p) > state.settings.max_norm:
        solver.back_to(lambda p: state.norm(p) - state.settings.max_norm)
    arc = float(np.linalg.norm(solver.p - state.here.p))
    point = state.land.point(solver.p)
    if isinstance(flow, SplitFlow):
        # The norm of the whole gradient is that of rounding by now; along V^⊥ it is exact.
        log_gradient, coherence = flow.outside()
        decay = (state.here.log_gradient - log_gradient) / arc if arc > 0 else state.here.decay
        point = Point(solver.p, point.loss, log_gradient, decay, coherence)
    state.rows.append((point, state.rows[-1][1] + arc, solver.log_time))


def _terminate(state: _FlowState) -> tuple[Verdict, str] | None:
    """The verdict and its reason, or None while the curve goes on."""
    here, settings, clock = state.here, state.settings, state.log_time if state.flow is None else state.solver.clock
    norm = state.norm(here.p)
    if here.log_gradient == -math.inf:
        state.limit = _finite_limit(state.land, here.p, clock) or (here.p, 0.0)
        return Verdict.FINITE, "the gradient is exactly zero: no score can change the loss"
    if norm >= LANDED * settings.max_norm:
        return _at_the_end(state, norm)
    speed = math.exp(min(clock + here.log_gradient, STEEP))
    noise = speed * float(np.finfo(float).eps) / max(here.coherence, 1e-300)
    stuck = noise > settings.tolerance * (1 + norm) or state.failed
    if stuck or (state.steps >= state.patience and speed < SLOW * (1 + norm)):
        state.patience = GROWTH * state.steps
        state.limit = _finite_limit(state.land, here.p, clock)
        if state.limit is not None:
            distance = float(np.linalg.norm(state.limit[0] - here.p))
            return Verdict.FINITE, f"p converges to a finite point {distance:.3g} away from the last one"
    at = f"at ‖p‖ = {norm:.6g}, log t = {state.log_time:.4g}"
    if stuck and not _looked_again(state):
        return Verdict.UNDECIDED, f"the gradient has sunk to the rounding error of score gaps that have settled {at}"
    state.failed = False
    spent = time.monotonic() - state.started > settings.max_seconds or state.steps >= settings.max_steps
    if spent:
        return Verdict.UNDECIDED, f"neither divergence nor a limit was seen up to {state.steps} steps, {at}"
    ties = isinstance(state.flow, SplitFlow) and state.flow.face.dimension > 0
    if ties and state.log_time >= settings.max_log_time:
        return (
            Verdict.UNDECIDED,
            f"score gaps have settled, and the curve was followed far enough to certify a limit {at}",
        )
    return None


def _looked_again(state: _FlowState) -> bool:
    """Whether ties that have settled meanwhile explain why the curve is stuck."""
    if isinstance(state.flow, SplitFlow):
        return state.flow.look()
    state.flow = _split(state)
    return state.flow.face.dimension > 0


def _at_the_end(state: _FlowState, norm: float) -> tuple[Verdict, str]:
    """Verdict at max_norm: divergence shows in log‖∇L‖ falling in proportion to ‖p‖, at a rate that has settled."""
    here, arc, _ = state.rows[-1]
    half = next(row for row in state.rows if row[1] >= arc / 2)
    rate = (half[0].log_gradient - here.log_gradient) / (arc - half[1]) if arc > half[1] else here.decay
    if here.decay > 0 and here.decay * norm > 10 and abs(rate - here.decay) < 0.1 * here.decay:
        return (
            Verdict.DIVERGES,
            f"‖p‖ reached {norm:.6g}, and log‖∇L‖ falls steadily, by {here.decay:.4g} per unit of ‖p‖",
        )
    return (
        Verdict.UNDECIDED,
        f"‖p‖ reached {norm:.6g}, but log‖∇L‖ does not fall at a steady rate yet ({rate:.3g}, now {here.decay:.3g})",
    )


def _plain(state: _FlowState) -> Integrator:
    """The plain flow from the last row."""
    before = state.rows[-2][2] if state.steps else -math.inf
    step = 0.1 * (state.log_time - before) if math.isfinite(before) else 0.1
    tolerance = state.settings.tolerance
    return Integrator(lambda *_: state.land, state.here.p, state.log_time, state.log_time, (tolerance, tolerance), step)


def _split(state: _FlowState) -> SplitFlow:
    """The split flow from the last row."""
    return SplitFlow(state.land, state.here.p, state.log_time, state.log_time, state.settings.tolerance)


def _finite_limit(land: Landscape, z: Floats, log_time: float) -> tuple[Floats, float] | None:
    """A strict local minimum that Newton's method reaches from a point of the curve, or None.

    Args:
        land: the loss in r coordinates.
        z: the point, shape (r,).
        log_time: log t there.

    Returns:
        The minimum, shape (r,), and its smallest curvature relative to the largest, among directions in which score gaps move.
    """
    everything = np.ones(land.counts.matrix.nnz, bool)
    W = span_of(differences(land.E, linked(land.counts, everything)))
    first, start, loss, log_curvature = math.inf, z, land.point(z).loss, -math.inf
    for _ in range(20):
        H, downhill, log_size = land.hessian(z)
        curvature, axes = np.linalg.eigh(W.T @ H @ W)
        if not curvature.size or curvature[0] <= 1e-13 * curvature[-1]:
            return None
        if log_size > -math.inf:
            log_curvature = log_size + math.log(curvature[0])
        step = W @ (axes @ ((axes.T @ (W.T @ downhill)) / curvature))
        size = float(np.linalg.norm(step))
        z = z + step
        if spread(land.counts, land.E @ (z - start)) > NEAR or size > 0.7 * first:
            return None
        if size <= 1e-9 * (1 + float(np.linalg.norm(z))):
            settled = log_time + log_curvature > math.log(SETTLED)
            fell = land.point(z).loss <= loss * (1 + 1e-12)
            return (z, float(curvature[0] / curvature[-1])) if settled and fell else None
        first = max(size, 1e-6) if first == math.inf else first
    return None


def _track(state: _FlowState) -> _Track:
    points, arc, log_time = zip(*state.rows, strict=True)
    return _Track(
        np.array([x.p for x in points]),
        np.array(arc),
        np.array(log_time),
        np.array([x.loss for x in points]),
        np.array([x.log_gradient for x in points]),
        np.array([x.decay for x in points]),
        np.array([x.coherence for x in points]),
        state.seconds + time.monotonic() - state.started,
    )


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
