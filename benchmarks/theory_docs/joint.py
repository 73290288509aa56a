"""Gradient flow with any number of classes, and with v trained beside the `<cls>` vector, the
embeddings fixed.

    dp/dt = −∇_p L = −Eᵀ a,      dv/dt = −∇_v L = −Eᵀ b,
    a = ∂L/∂u, b = ∂L/∂w at u = E p, w = E v.

`flow` follows two classes with v fixed into the tens of thousands of ‖p‖, with certificates of the
limit. Here there is no theorem to certify: the curve is followed in log t by SciPy's BDF, and its
end is compared with the max-margin direction of its own selection (`own_margin`), which Theorem 4.3
would predict from the selection alone, whatever the number of classes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.integrate import BDF

from tokensieve.arrays import Floats
from tokensieve.errors import InputError
from tokensieve.model.attention import gradient
from tokensieve.progress import Progress
from tokensieve.text.counts import Counts
from tokensieve.theory.flow.integrator import STEEP
from tokensieve.theory.flow.solve import Flow
from tokensieve.theory.geometry import coordinates
from tokensieve.theory.limit.margin import Margin, max_margin

# The first step is so short that what moves changes by this share.
FIRST = 1e-5


@dataclass(frozen=True, repr=False)
class JointFlow:
    """A curve, one row per step.

    Attributes:
        log_time: log t, shape (m,); −∞ at the start.
        coordinates: p in the row space of E, shape (m, r); `rest` is the length of what never
            moves.
        rest: length of the part of p outside it.
        scores: u = E p, shape (m, |S|).
        values: w = E v, shape (m, |S|, H); constant where v is fixed.
        loss: L, shape (m,).
    """

    log_time: Floats
    coordinates: Floats
    rest: float
    scores: Floats
    values: Floats
    loss: Floats

    def __repr__(self) -> str:
        return (
            f"JointFlow(to log t = {self.log_time[-1]:.4g}: ‖p‖ = {self.norm[-1]:.4g}, loss "
            f"{self.loss[-1]:.4g}, {len(self.loss)} rows)"
        )

    @property
    def norm(self) -> Floats:
        """‖p‖, shape (m,)."""
        return np.asarray(np.hypot(np.linalg.norm(self.coordinates, axis=1), self.rest))


def joint_flow(
    counts: Counts,
    E: Floats,
    v: Floats,
    p: Floats,
    train_v: bool = False,
    log_time: float = 12.0,
    tolerance: float = 1e-6,
    progress: Progress | None = None,
) -> JointFlow:
    """Follow gradient flow of p, or of p and v, from t = 0 to a log t.

    The cost of a step grows with r² |S| (r² H² |S| with v trained), r the rank of E: meant for up
    to a few hundred types.

    Args:
        counts: n documents of K classes over |S| types.
        E: embeddings, shape (|S|, d).
        v: the readout, shape (d,) for two classes, (d, K) for K.
        p: the start, shape (d,).
        train_v: whether v moves too.
        log_time: where to stop; beyond 25 the gradient is rounding.
        tolerance: relative local error of a step.
        progress: called with ("flow", share done).

    Raises:
        InputError: shapes that do not agree, numbers that are not finite, or a curve that cannot be
            followed.
    """
    v = v[:, None] if v.ndim == 1 else v
    _check_shapes(counts, E, v, p)
    moving = _Moving.of(counts, E, v, p, train_v)
    with Flow.one_thread():
        points = _follow(moving, log_time, tolerance, progress)
        tables = [moving.table(x) for _, x in points]
        losses = [gradient(counts, u, w).loss for u, w in tables]
    return JointFlow(
        log_time=np.array([t for t, _ in points]),
        coordinates=np.array([x[: moving.rank] for _, x in points]),
        rest=moving.rest,
        scores=np.array([u for u, _ in tables]),
        values=np.array([w for _, w in tables]),
        loss=np.array(losses),
    )


def _check_shapes(counts: Counts, E: Floats, v: Floats, p: Floats) -> None:
    """Raise an InputError if embeddings, readout and start do not fit, or are not finite."""
    outputs = 1 if counts.n_classes == 2 and v.shape[1] == 1 else counts.n_classes
    if E.shape != (counts.n_types, p.size) or v.shape != (p.size, outputs):
        raise InputError(
            f"embeddings {E.shape}, v {v.shape} and p {p.shape} do not fit {counts.n_types} types "
            f"of {counts.n_classes} classes"
        )
    if not (np.isfinite(E).all() and np.isfinite(v).all() and np.isfinite(p).all()):
        raise InputError("embeddings, v or p are not finite: use a smaller step size")


@dataclass(frozen=True)
class _Moving:
    """What moves, as one vector x: p in the row space of E, then v there if it is trained.

    Attributes:
        embeddings: E in coordinates of its row space, shape (|S|, r).
        readout: v in these coordinates, shape (r, H).
        start: x at t = 0.
        rest: length of the part of p outside of the row space, which never moves.
    """

    counts: Counts
    embeddings: Floats
    readout: Floats
    start: Floats
    rest: float
    train_v: bool

    @classmethod
    def of(cls, counts: Counts, E: Floats, v: Floats, p: Floats, train_v: bool) -> _Moving:
        """The arguments are those of `joint_flow`, with v of shape (d, H)."""
        embeddings, basis = coordinates(E)
        inner = p
        readout = v
        rest = 0.0
        if basis is not None:
            inner = basis.T @ p
            readout = basis.T @ v
            rest = float(np.linalg.norm(p - basis @ inner))
        start = np.concatenate([inner, readout.ravel()]) if train_v else inner
        return cls(counts, embeddings, readout, start, rest, train_v)

    @property
    def rank(self) -> int:
        """r, the rank of E."""
        return self.embeddings.shape[1]

    def table(self, x: Floats) -> tuple[Floats, Floats]:
        """The scores u, shape (|S|,), and values w, shape (|S|, H), at x."""
        readout = self.readout
        if self.train_v:
            readout = x[self.rank :].reshape(readout.shape)
        return self.embeddings @ x[: self.rank], self.embeddings @ readout

    def downhill(self, x: Floats) -> Floats:
        """dx/dt, minus the gradient of the loss."""
        slope = gradient(self.counts, *self.table(x))
        parts = [self.embeddings.T @ slope.a]
        if self.train_v:
            parts.append((self.embeddings.T @ slope.b).ravel())
        return np.asarray(-np.concatenate(parts))

    def downhill_in_log_time(self, log_t: float, x: Floats) -> Floats:
        """dx/d log t."""
        return np.asarray(self.downhill(x) * math.exp(min(log_t, STEEP)))


def _follow(
    moving: _Moving, log_time: float, tolerance: float, progress: Progress | None
) -> list[tuple[float, Floats]]:
    """log t and x of the start, of a first short step, and of every step of the solver."""
    x = moving.start
    slope = moving.downhill(x)
    steepness = float(np.linalg.norm(slope))
    if steepness == 0.0:
        raise InputError("the gradient is zero at the start: nothing moves")
    begin = math.log(FIRST * (1 + float(np.linalg.norm(x))) / steepness)
    after_first_step = x + math.exp(begin) * slope
    points = [(-math.inf, x), (begin, after_first_step)]
    solver = BDF(
        moving.downhill_in_log_time,
        begin,
        after_first_step,
        log_time,
        rtol=tolerance,
        atol=tolerance,
        first_step=0.1,
    )
    while solver.status == "running":
        solver.step()
        if solver.status == "failed":
            raise InputError(
                f"the flow cannot be followed beyond log t = {solver.t:.4g}: give a larger "
                "tolerance"
            )
        points.append((float(solver.t), solver.y.copy()))
        if progress is not None:
            progress("flow", (solver.t - begin) / (log_time - begin))
    return points


def own_margin(counts: Counts, E: Floats, flow: JointFlow) -> tuple[Margin, float]:
    """The max-margin problem of the types that the end of a curve has on top, and the angle of p to
    its direction in radians.

    Args:
        counts, E: as `joint_flow`.
        flow: the curve.

    Returns:
        The margin problem on the coordinates of the curve, and the angle; nan where the problem is
            not solved.
    """
    reduced, _ = coordinates(E)
    found = max_margin(counts, reduced, counts.top_mask(flow.scores[-1]))
    if found.status != "solved":
        return found, math.nan
    along = float(flow.coordinates[-1] @ found.p) / float(np.linalg.norm(found.p))
    across = math.sqrt(max(float(flow.norm[-1]) ** 2 - along**2, 0.0))
    return found, math.atan2(across, along)
