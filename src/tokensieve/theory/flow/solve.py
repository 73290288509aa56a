"""Gradient flow of the `<cls>` vector with the embeddings fixed, followed in the clock τ = log t: dp/dτ = −e^τ ∇L(p).

A score gap that diverges grows like τ, so that norms in the ten thousands (t = e^{thousands}) are reached; e^τ and ‖∇L‖ meet as
logarithms only. What has settled is stiff, with curvatures of e^τ: SciPy's BDF follows it with the exact Hessian. Settled gaps
leave their rounding error in the gradient, which e^τ magnifies; from log t = 20 on the flow is therefore followed in the
coordinates of `split`, which change no term of it.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numba
import numpy as np
from scipy import stats
from threadpoolctl import threadpool_limits

from tokensieve import checkpoint as checkpoints
from tokensieve.arrays import Floats
from tokensieve.errors import InputError
from tokensieve.progress import Progress
from tokensieve.text.counts import Counts
from tokensieve.theory.flow.integrator import STEEP, Integrator
from tokensieve.theory.flow.landscape import Landscape, SplitLandscape
from tokensieve.theory.flow.split import Equilibrium, Face
from tokensieve.theory.geometry import coordinates
from tokensieve.theory.settings import VerifySettings
from tokensieve.wording import plural

# Log t from which on ties are split off.
_SPLIT = 20.0
# Steps between two checkpoints.
LEG = 50
# What a checkpoint keeps of a curve, one row per accepted step.
_COLUMNS = ("coordinates", "arc", "log_time", "loss", "log_gradient")
# A verdict; that p diverges is for `limit.certify` to say, no curve is long enough for that.
FINITE, UNDECIDED = "finite limit", "undecided at the budget"
# What a limit on a surface means.
_SURFACE = "for documents with the same tokens but different labels, the prediction is the frequency of their labels"


@dataclass(frozen=True)
class Flow:
    """The curve followed so far, one row per accepted step (row 0 is the start), and how it ended.

    Attributes:
        verdict, reason: whether p converges, and why.
        coordinates, basis: points of the curve in an orthonormal basis of the span of E, shape (m, r), and that basis, shape
            (d, r), or None when they are p itself.
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
        """Angle in radians between p and a direction of R^d along the curve, shape (m,); exact where its cosine rounds to one."""
        unit = direction / np.linalg.norm(direction)
        inside = unit if self.basis is None else self.basis.T @ unit
        outside = unit - self.whole(inside)
        dots = self.coordinates @ inside + float(self.rest @ unit)
        across = np.linalg.norm(self.coordinates - np.outer(dots, inside), axis=1)
        beyond = np.linalg.norm(self.rest - np.outer(dots, outside), axis=1)
        return np.asarray(np.arctan2(np.hypot(across, beyond), dots))

    def agreement(self, direction: Floats) -> tuple[float, float, float]:
        """The last angle, and the slope of log angle against log ‖p‖ over the last factor 30 of ‖p‖ with its standard error.

        With unique, strictly positive multipliers of the max-margin direction the theory has −1; nan with fewer than four points.
        """
        angle, norm = self.angle(direction), self.norm
        late = (norm >= norm[-1] / 30) & (angle > 1e-12)
        if late.sum() < 4:
            return float(angle[-1]), math.nan, math.nan
        fit = stats.linregress(np.log(norm[late]), np.log(angle[late]))
        return float(angle[-1]), float(fit.slope), float(fit.stderr)

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
        """One thread, so that sums keep their order whatever the machine; at 5,000 reviews a second one only waits."""
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
    """Follow gradient flow of p until ‖p‖ reaches settings.max_norm, p converges, its ties have settled, or the budget ends.

    Args:
        counts, E, w, p: documents of two classes, embeddings, shape (|S|, d), values E v, shape (|S|,), and the start, shape (d,).
        settings: the budget.
        checkpoint: file that keeps the curve, written every `LEG` steps; a curve found there is continued (its budget may
            have been another).
        progress: called with ("flow", share of the way) after each step.
        after: a curve from the same start to continue.

    Raises:
        InputError: shapes that do not agree, numbers that are not finite, settings out of range, or a checkpoint of another run.
    """
    settings = settings or VerifySettings()
    _check(counts, E, w, p)
    started, spent = time.monotonic(), 0.0
    reduced, basis = coordinates(E)
    z = p if basis is None else basis.T @ p
    rest = np.zeros_like(p) if basis is None else p - basis @ z
    mark = checkpoints.fingerprint(settings.tolerance, counts, E, w, p)
    kept = None
    if after is not None:
        kept, spent = {name: getattr(after, name) for name in _COLUMNS}, after.seconds
    elif checkpoint is not None and (found := checkpoints.load(checkpoint, mark)) is not None:
        kept, spent = found[0], float(found[1]["seconds"])
    with Flow.one_thread():
        curve = _Curve(
            Landscape(counts, reduced, w), z, float(np.linalg.norm(rest)), settings, kept
        )
        while (ending := curve.stop_reason()) is None:
            curve.step()
            if progress is not None:
                reached = max(
                    curve.norm(curve.z) / settings.max_norm, curve.log_time / settings.max_log_time
                )
                progress("flow", min(1.0, max(reached, 0.0)))
            if checkpoint is not None and len(curve.rows) % LEG == 1:
                checkpoints.save(
                    checkpoint,
                    mark,
                    curve.columns(),
                    {"seconds": spent + time.monotonic() - started},
                )
    seconds = spent + time.monotonic() - started
    if checkpoint is not None:
        checkpoints.save(checkpoint, mark, curve.columns(), {"seconds": seconds})
    limit = (
        None
        if curve.limit is None
        else rest + (curve.limit if basis is None else basis @ curve.limit)
    )
    verdict, reason = ending
    z, arc, log_time, loss, log_gradient = curve.columns().values()
    return Flow(
        verdict, reason, z, arc, log_time, loss, log_gradient, seconds, basis, rest, limit, settings
    )


class SplitFlow:
    """The true flow from a point, in coordinates that are chosen anew whenever ties settle or pairs become live.

    Arguments as those of `Integrator`; if `face` is None, ties are looked for from log t = 20 on, and p is its own coordinates
    before.
    """

    def __init__(
        self,
        land: Landscape,
        p: Floats,
        clock: float,
        log_time: float,
        tolerance: float,
        face: Face | None = None,
        step: float = 0.1,
    ) -> None:
        self._land, self._tolerance, self.looked = land, tolerance, clock
        self.face = Face.settled(land, p, clock) if face is None and clock >= _SPLIT else face
        self.solver = self._begin(p, clock, log_time, step if self.face is None else 0.1)

    def step(self) -> bool:
        """One step; if the clock cannot resolve it, ties are split and it is tried in local time. False if that fails too."""
        if self.face is None and self.solver.clock >= _SPLIT:
            self.refresh_ties()
        solver, split = self.solver, self.face is not None
        moved = solver.step() or (split and solver.restart() and solver.step())
        # In local time the ties from before serve until then: which ones count only decides what digits are lost.
        if split and moved and solver.clock >= _SPLIT and abs(solver.clock - self.looked) >= 1.5:
            self.refresh_ties()
        return moved

    def refresh_ties(self) -> bool:
        """Find the ties again; returns whether they changed."""
        solver, before = self.solver, self.face
        self.looked = solver.clock
        face = Face.settled(self._land, solver.p, solver.clock)
        if before is not None and np.array_equal(face.mask, before.mask):
            return False
        self.face = face
        # Where nothing moved for a while steps are many nats long, and the first one in other coordinates may fail because of that.
        step = 0.1 if before is None else min(solver.last_step, 1.0)
        self.solver = self._begin(solver.p, solver.clock, solver.log_time, step)
        return before is not None or face.dimension > 0

    def outside(self) -> tuple[float, float, float]:
        """`SplitLandscape.outside` at the last point."""
        assert isinstance(self.solver.here, SplitLandscape)
        return self.solver.here.outside(self.solver.x)

    def _begin(self, p: Floats, clock: float, log_time: float, step: float) -> Integrator:
        land, face, tolerance = self._land, self.face, (self._tolerance, self._tolerance)
        return Integrator(
            lambda *at: land.live(*at) if face is None else SplitLandscape(land, face, *at),
            p,
            clock,
            log_time,
            tolerance,
            step,
        )


class _Curve:
    """A curve in progress: its rows (point, length, log t, loss, log‖∇L‖), and what is integrated from the last of them; `rest` is
    the length of the part of p that never moves."""

    def __init__(
        self,
        land: Landscape,
        z: Floats,
        rest: float,
        settings: VerifySettings,
        kept: dict[str, Floats] | None,
    ) -> None:
        self._land, self._rest, self._settings, self._started = (
            land,
            rest,
            settings,
            time.monotonic(),
        )
        self.limit: Floats | None = None
        self._patience, self._failed = 20.0, False
        self.rows: list[tuple[Floats, float, float, float, float]] = [
            (z, 0.0, -math.inf, *land.point(z)[:2])
        ]
        if kept is not None:  # what is beyond `max_norm` is left off
            beyond = np.hypot(
                np.linalg.norm(kept["coordinates"], axis=1), rest
            ) > settings.max_norm * (1 + 1e-9)
            last = max(int(np.argmax(beyond)) if beyond.any() else len(beyond), 1)
            points, *numbers = (kept[name][:last] for name in _COLUMNS)
            self.rows = list(zip(points, *(column.tolist() for column in numbers), strict=True))
        self._coherence = land.point(self.z)[2]
        at, before = self.log_time, self.rows[-2][2] if len(self.rows) > 1 else -math.inf
        step = 0.1 * (at - before) if math.isfinite(before) else 0.1
        self._flow = SplitFlow(land, self.z, at, at, settings.tolerance, step=step)
        if self._flow.face is not None:  # a curve that goes on
            self._coherence = self._flow.outside()[2]

    @property
    def z(self) -> Floats:
        return self.rows[-1][0]

    @property
    def log_time(self) -> float:
        return self.rows[-1][2]

    def columns(self) -> dict[str, Floats]:
        """The rows as arrays."""
        return {
            name: np.array(column)
            for name, column in zip(_COLUMNS, zip(*self.rows, strict=True), strict=True)
        }

    def norm(self, z: Floats) -> float:
        return math.hypot(float(np.linalg.norm(z)), self._rest)

    def step(self) -> None:
        """One accepted step; at the norm where the curve is to end, the part of a step that leads there."""
        if not self._flow.step():
            self._failed = True
            return
        solver = self._flow.solver
        if self.norm(solver.p) > self._settings.max_norm:
            solver.back_to(lambda p: self.norm(p) - self._settings.max_norm)
        arc = self.rows[-1][1] + float(np.linalg.norm(solver.p - self.z))
        # Once ties are split off, the norm of the whole gradient is that of rounding; along V^⊥, where there is any, it is exact.
        here = solver.here
        figures = here.point(solver.p) if isinstance(here, Landscape) else self._flow.outside()
        loss, log_gradient, self._coherence = (
            figures if figures[1] > -math.inf else self._land.point(solver.p)
        )
        self.rows.append((solver.p, arc, solver.log_time, loss, log_gradient))

    def stop_reason(self) -> tuple[str, str] | None:
        """The verdict and its reason, or None while the curve goes on."""
        z, settings, steps, flow = self.z, self._settings, len(self.rows) - 1, self._flow
        log_gradient, norm = self.rows[-1][4], self.norm(z)
        if log_gradient == -math.inf:
            found = self._finite_limit()[0]
            self.limit = z if found is None else found
            return FINITE, "the gradient is exactly zero: no score can change the loss"
        at = f"at ‖p‖ = {norm:.6g}, log t = {self.log_time:.4g}"
        if norm >= (1 - 1e-7) * settings.max_norm:
            return UNDECIDED, f"the maximum norm was reached {at}"
        # A finite limit is looked for when p moves, per unit of log t, by less than 2 % of its norm, or by less than rounding.
        speed = math.exp(min(flow.solver.clock + log_gradient, STEEP))
        noise = speed * float(np.finfo(float).eps) / max(self._coherence, 1e-300)
        stuck = noise > settings.tolerance * (1 + norm) or self._failed
        if stuck or (steps >= self._patience and speed < 0.02 * (1 + norm)):
            self._patience = 1.25 * steps
            self.limit, flat = self._finite_limit()
            if self.limit is not None:
                distance = float(np.linalg.norm(self.limit - z))
                words = (
                    f"p converges to a finite point {distance:.3g} away from the last one computed"
                )
                if flat:
                    words += (
                        f", one of a surface of minima ({plural(flat, 'dimension')}): {_SURFACE}"
                    )
                return FINITE, words
        # Ties that have settled meanwhile may explain why the curve is stuck.
        if stuck and not flow.refresh_ties():
            return (
                UNDECIDED,
                f"the score gaps have settled and the gradient is down to rounding error {at}",
            )
        self._failed = False
        if time.monotonic() - self._started > settings.max_seconds or steps >= settings.max_steps:
            return (
                UNDECIDED,
                f"neither divergence nor convergence was seen within {steps} steps, {at}",
            )
        if (
            flow.face is not None
            and flow.face.dimension > 0
            and self.log_time >= settings.max_log_time
        ):
            words = (
                "score gaps have settled, and the curve was followed far enough to certify a limit"
            )
            return UNDECIDED, f"{words} {at}"
        return None

    def _finite_limit(self) -> tuple[Floats | None, int]:
        """A local minimum that Newton's method reaches, or None; and the dimension of the surface of minima through it."""
        land, (z, _, _, loss, _) = self._land, self.rows[-1]
        everything = Face.of(land.counts, land.E, np.ones(land.counts.matrix.nnz, bool))
        found = Equilibrium.near(land, everything, z) if everything.dimension else None
        # A gap that diverges asks for a step of one nat at any time: its gradient and its curvature are both e^{−gap}. The nearest
        # point of a surface is the limit up to the square of the distance.
        if found is None or found.moved > (1e-5 if found.flat else 0.1):
            return None, 0
        settled = self._flow.solver.clock + math.log(max(found.curvature, 1e-300)) > math.log(3.0)
        end = z - everything.inside @ (everything.inside.T @ z) + found.z
        return (
            (end, found.flat) if settled and land.point(end)[0] <= loss * (1 + 1e-12) else (None, 0)
        )


def _check(counts: Counts, E: Floats, w: Floats, p: Floats) -> None:
    types, classes = counts.n_types, counts.n_classes
    if E.shape != (types, p.size) or w.shape != (types,):
        raise InputError(
            f"embeddings {E.shape}, values {w.shape} and p {p.shape} do not fit {types} token types"
        )
    if not (np.isfinite(E).all() and np.isfinite(w).all() and np.isfinite(p).all()):
        raise InputError("embeddings, values or p are not finite: use a smaller step size")
    if np.abs(w).max(initial=0.0) > 300.0:
        raise InputError(
            f"values reach ±{np.abs(w).max():.3g}: beyond ±300 the loss is too flat to follow in double precision; "
            "use a smaller step size (--eta)"
        )
    if counts.n_documents == 0 or classes != 2:
        raise InputError(
            f"gradient flow needs documents of two classes, not {counts.n_documents} of {classes}"
        )
