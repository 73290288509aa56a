"""The limit of the flow on any data: a finite part, a diverging part, and the certificates of both.

On the last face that the flow reaches (`predict`),

    p = p̂ log t + ρ* + z* + c + o(1),     z* ∈ V,  p̂, ρ*, c ∈ V^⊥,

and three things are certified: (F1) z* is a strict local minimum of L_S on V; (F2) p̂ is the shortest p ∈ V^⊥ with
p·(E_s − E_r) ≥ 1 for s ∈ S_X, r ∈ X∖S_X; (F3) Ψ(ρ) = Σ_T K e^{−D·ρ} + p̂·ρ over the tight pairs T has a strict local minimum ρ* on
span D_T. Where tight pairs pull, (F3) may hold at another p̂ than that of (F2): the flow then diverges along a direction that is not
max margin. See docs/theory.md for the statement, its proof, and an example.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from tokensieve.progress import Progress
from tokensieve.text.counts import Counts, Floats, Ints
from tokensieve.theory.flow.landscape import Landscape
from tokensieve.theory.flow.solve import Flow, Verdict, few_threads, gradient_flow
from tokensieve.theory.flow.ties import Equilibrium, Face, equilibrium, face_of, restricted
from tokensieve.theory.geometry import coordinates, differences, laplacian_form, span_of
from tokensieve.theory.limit.margin import Margin, max_margin
from tokensieve.theory.limit.predict import LATE, End, Exponentials, Phase, Prediction
from tokensieve.theory.settings import FlowSettings

# Shorter curves decide nothing. A prediction begins this much log t before the end of the curve, to be compared with the rest.
EARLIEST, KEPT = 12.0, 4.0
# Log t from which on a prediction need not begin later, and up to which a curve is extended until one is met.
LATE_ENOUGH, LONGEST = 36.0, 60.0
# Log t up to which the limit is followed.
FAR = 1e5
# Distance of the curve to the predicted path, relative to ‖p‖, that is allowed.
ALLOWED = 2e-2
# A pair is tight where its margin is within this of one; a direction is confirmed where the slow flow is within this of it.
TIGHT, CONFIRMED = 1e-6, 1e-3
CERTIFIED = 1e-6
# Smallest over largest curvature of a strict minimum: rounding leaves some 1e-12 of the largest.
STRICT = 1e-9


class Fate(StrEnum):
    """What becomes of p."""

    POINT = "converges to a point"
    FINITE_GAPS = "diverges along p̂ with finite gaps"
    MAX_MARGIN = "diverges, Theorem 4.3"
    UNDECIDED = "not decided"


@dataclass(frozen=True)
class Balance:
    """Certificate (F3): a strict local minimum of Ψ.

    Attributes:
        rho: ρ* in the coordinates of V^⊥, shape (r − k,).
        tight: groups (a, b) of the pairs with margin one, shape (j, 2).
        pulling: how many of them have K < 0.
        certainty: smallest |Σ K| / Σ|K| of them: near zero a sign is a matter of rounding.
        curvature: smallest curvature of Ψ at ρ* on span D_T: the rate, per unit of log t, at which ρ settles.
        spread: the same relative to the largest curvature there.
        residual: ‖∇Ψ‖/‖p̂‖ there.
        direction: p̂ in the coordinates of V^⊥.
    """

    rho: Floats
    tight: Ints
    pulling: int
    certainty: float
    curvature: float
    spread: float
    residual: float
    direction: Floats


@dataclass(frozen=True, repr=False)
class FlowLimit:
    """What becomes of p, with the certificates.

    Attributes:
        fate, reason: the verdict, and why (for "not decided": and what would decide).
        flow: the curve, extended where a longer one was needed.
        face: the last face; None where none was reached.
        finite: certificate (F1); None where there is no face.
        margin: certificate (F2); None where p does not diverge.
        balance: certificate (F3); None where p does not diverge.
        is_max_margin: whether p̂ is the direction of (F2).
        direction: p̂, shape (d,); None where p does not diverge.
        angle_constant: limit of angle · ‖p‖; nan where p does not diverge.
        prediction: the phases, None for a finite limit that the flow itself reached.
        compared: first and last log t at which prediction and flow were compared, and the largest distance relative to ‖p‖.
        seconds: wall time, in all and of the margin problem ("limit", "margin").
    """

    fate: Fate
    reason: str
    flow: Flow
    face: Face | None = None
    finite: Equilibrium | None = None
    margin: Margin | None = None
    balance: Balance | None = None
    is_max_margin: bool = False
    direction: Floats | None = None
    angle_constant: float = math.nan
    prediction: Prediction | None = None
    compared: tuple[float, float, float] = (math.nan, math.nan, math.nan)
    seconds: dict[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"FlowLimit({self.fate.value}: {self.reason})"

    @property
    def changes(self) -> list[tuple[float, float, int]]:
        """Of each predicted change of the selection ‖p‖, log t, and how many documents have another highest type."""
        return [] if self.prediction is None else self.prediction.changes

    def to_dict(self) -> dict[str, Any]:
        """Verdict and certificates, ready for JSON (undefined figures are None)."""
        balance, margin, finite = self.balance, self.margin, self.finite
        figures: dict[str, float] = {
            "curvature_f1": math.nan if finite is None else finite.curvature,
            "curvature_f3": math.nan if balance is None else balance.curvature,
            "condition_f1": math.nan if finite is None or finite.curvature == math.inf else 1 / finite.spread,
            "condition_f3": math.nan if balance is None else 1 / balance.spread,
            "duality_gap": math.nan if margin is None else margin.duality_gap,
            "kkt_residual": math.nan if margin is None else margin.kkt_residual,
            "margin": math.nan if margin is None else margin.margin,
            "angle_times_norm": self.angle_constant,
            "compared_from": self.compared[0],
            "compared_to": self.compared[1],
            "prediction_error": self.compared[2],
        }
        return {
            "verdict": self.fate,
            "reason": self.reason,
            "dimension_v": None if self.face is None else self.face.dimension,
            "tied_documents": 0 if finite is None else finite.documents,
            "is_max_margin": self.is_max_margin,
            "tight_pairs": 0 if balance is None else len(balance.tight),
            "pulling_pairs": 0 if balance is None else balance.pulling,
            "selection_changes": [
                {"norm": norm, "log_time": log_time, "documents": documents}
                for norm, log_time, documents in self.changes
            ],
            "faces": 0 if self.prediction is None else len(self.prediction.phases),
            "seconds": self.seconds.get("limit", 0.0),
        } | {name: value if math.isfinite(value) else None for name, value in figures.items()}


def find_limit(
    counts: Counts, E: Floats, w: Floats, flow: Flow, seconds: float = math.inf, progress: Progress | None = None
) -> FlowLimit:
    """Decide what becomes of p from a curve that gradient flow has traced.

    The prediction begins late, is held against the rest of the curve, and is then extended. Where it is missed, or ties have not
    settled yet, the curve is followed further and the next one begins later.

    Args:
        counts: n documents of two classes over |S| types.
        E: embeddings, shape (|S|, d).
        w: values E v, shape (|S|,).
        flow: the curve; log t of 36 and more usually decides.
        seconds: wall time for the faces and the margin problem.
        progress: called with ("faces", share done).
    """
    started = time.monotonic()
    reduced = coordinates(E)[0]
    if flow.verdict is Verdict.FINITE:
        found = _point(counts, reduced, w, flow)
    elif not flow.log_time[-1] >= EARLIEST:
        found = FlowLimit(
            Fate.UNDECIDED,
            f"the curve ends at log t = {flow.log_time[-1]:.3g}, and about {LATE_ENOUGH:g} is needed; allow more "
            "with --max-norm or --max-seconds",
            flow,
        )
    else:
        with few_threads(counts.matrix.nnz, reduced.size):
            found = _diverging(Landscape(counts, reduced, w), E, flow, started + seconds, progress)
    return replace(found, seconds={"margin": 0.0} | found.seconds | {"limit": time.monotonic() - started})


def _point(counts: Counts, E: Floats, w: Floats, flow: Flow) -> FlowLimit:
    """The certificate of a finite limit that Newton's method found from the curve."""
    assert flow.limit is not None
    z = flow.limit if flow.basis is None else flow.basis.T @ flow.limit
    face = face_of(counts, E, np.ones(counts.matrix.nnz, bool))
    finite = equilibrium(counts, E, w, face, z) if face.dimension else None
    return FlowLimit(Fate.POINT, flow.reason, flow, face, finite)


def _diverging(land: Landscape, E: Floats, flow: Flow, deadline: float, progress: Progress | None) -> FlowLimit:
    """Predict from a late point of the curve, compare with the rest of it, follow to the end, certify."""
    latest = LATE_ENOUGH
    while True:
        last = float(flow.log_time[-1])
        start = min(last - KEPT, latest)
        row = min(max(int(np.searchsorted(flow.log_time, start)), 1), len(flow.log_time) - 2)
        prediction = Prediction(land, flow.coordinates[row], float(flow.log_time[row]))
        until = min(last, 4 * start)
        prediction.extend(until, deadline)
        compared = (float(flow.log_time[row]), last, _error(prediction, flow, row, until))
        if (prediction.phases and compared[2] <= ALLOWED) or time.monotonic() > deadline or not _can_go_on(flow):
            break
        flow, latest = _followed(land, E, flow, last + KEPT, deadline), LONGEST
        if flow.verdict is Verdict.FINITE:
            return _point(land.counts, land.E, land.w, flow)
        if flow.log_time[-1] < last + KEPT / 2:
            break
    if not prediction.phases:
        reason = (
            LATE
            if time.monotonic() > deadline or flow.track.seconds >= flow.settings.max_seconds
            else f"at log t = {last:.4g} some score gaps neither stand still nor grow; a longer flow would decide"
        )
        return FlowLimit(Fate.UNDECIDED, reason, flow, prediction=prediction)
    for far in (FAR, 4 * FAR, 16 * FAR):  # a direction may settle later
        if not prediction.trouble:
            prediction.extend(far, deadline, progress)
        limit = replace(_certified(land, flow, prediction, deadline), prediction=prediction, compared=compared)
        if prediction.trouble or limit.fate is not Fate.UNDECIDED:
            break
    if limit.fate is not Fate.UNDECIDED and not compared[2] <= ALLOWED:
        reason = f"the prediction from log t = {compared[0]:.4g} misses the flow by {compared[2]:.2g}; a longer flow would decide"
        return replace(limit, fate=Fate.UNDECIDED, reason=f"{reason} (otherwise: {limit.fate}, {limit.reason})")
    return limit


def _can_go_on(flow: Flow) -> bool:
    """Whether following the curve further makes sense: it ended because its ties had settled, and not too late."""
    return bool(flow.settings.max_log_time <= flow.log_time[-1] < LONGEST)


def _followed(land: Landscape, E: Floats, flow: Flow, log_time: float, deadline: float) -> Flow:
    """The curve up to a later log t."""
    settings: FlowSettings = replace(
        flow.settings, max_log_time=log_time, max_seconds=max(deadline - time.monotonic(), 0.0)
    )
    return gradient_flow(land.counts, E, land.w, flow.at(0), settings, after=flow)


def _error(prediction: Prediction, flow: Flow, row: int, until: float) -> float:
    """Largest distance of the curve to the predicted path, relative to ‖p‖; inf without a prediction."""
    if not prediction.phases:
        return math.inf
    rows = np.flatnonzero(flow.log_time <= min(until, float(prediction.log_time[-1])))
    there = flow.coordinates[rows[rows > row]]
    if not len(there):
        return math.inf
    return float(np.max(prediction.distance(there) / np.linalg.norm(there, axis=1)))


def _certified(land: Landscape, flow: Flow, prediction: Prediction, deadline: float) -> FlowLimit:
    """(F1), (F2) and (F3) on the last face."""
    phase = prediction.phases[-1]
    face, phi = phase.face, phase.slow
    limit = FlowLimit(Fate.UNDECIDED, prediction.trouble, flow, face, phase.finite)
    if prediction.trouble:
        return limit
    if not len(phi.pairs) or phase.end is End.STILL:
        norm = math.hypot(float(np.linalg.norm(phase.points[-1])), float(np.linalg.norm(flow.rest)))
        return replace(
            limit, fate=Fate.POINT, reason=f"the slow flow comes to rest at ‖p‖ = {norm:.6g}, a strict minimum of Φ"
        )
    begun = time.monotonic()
    margin = max_margin(land.counts, land.E, face.mask, near=phase.points[-1], max_seconds=max(deadline - begun, 1.0))
    limit = replace(
        limit,
        margin=margin if flow.basis is None else replace(margin, p=flow.basis @ margin.p),
        seconds={"margin": time.monotonic() - begun},
    )
    if margin.status == "stopped early":
        return replace(limit, reason=LATE if time.monotonic() > deadline else "the max-margin problem was not solved")
    velocity = _velocity(phase)
    balance = _balance(phi, face.outside.T @ margin.p, phase) if margin.status == "solved" else None
    is_max_margin = balance is not None
    if balance is None:
        found = _nearby_direction(phi, velocity)
        balance = None if found is None else _balance(phi, found, phase)
    if balance is None:
        unsolved = f"(F2) is {margin.status}"
        flat = "(F3) has no strict local minimum near the flow"
        return replace(limit, reason=f"{flat if margin.status == 'solved' else unsolved}; a longer flow would decide")
    away = _angle(velocity, balance.direction)
    if away > CONFIRMED:
        return replace(limit, balance=balance, reason=f"the slow flow is still {away:.2g} rad away from p̂")
    p_hat = face.outside @ balance.direction
    k = face.dimension
    gaps = f"{k} independent score gap{'s stay' if k != 1 else ' stays'} finite" if k else "no score gap stays finite"
    pulling = f"{balance.pulling} of them work{'s' * (balance.pulling == 1)}" if balance.pulling else "none works"
    words = f"{gaps}; {len(balance.tight)} constraints are active, {pulling} against convergence"
    if not is_max_margin:
        words += "; p̂ is not the max-margin direction, from which a pulling pair keeps the flow away"
    return replace(
        limit,
        fate=Fate.MAX_MARGIN if k == 0 and is_max_margin and balance.pulling == 0 else Fate.FINITE_GAPS,
        reason=words,
        balance=balance,
        is_max_margin=is_max_margin,
        direction=p_hat if flow.basis is None else flow.basis @ p_hat,
        angle_constant=_angle_constant(flow, phase, balance),
    )


def _velocity(phase: Phase) -> Floats:
    """dq/dlog t at the end of the slow flow."""
    unit, log_size = phase.slow.slope(phase.slow_path[-1])
    return np.asarray(unit * math.exp(min(phase.clock + log_size, 300.0)))


def _angle(one: Floats, two: Floats) -> float:
    unit = two / np.linalg.norm(two)
    along = float(one @ unit)
    return float(np.arctan2(np.linalg.norm(one - along * unit), along))


def _nearby_direction(phi: Exponentials, velocity: Floats) -> Floats | None:
    """The shortest p with margin one on the pairs that are tight along the slow flow, where every other margin is larger."""
    gaps = phi.gaps(velocity)
    tight = np.flatnonzero(gaps <= 1 + CONFIRMED)
    if not len(tight):
        return None
    D = phi.F[phi.pairs[tight, 0]] - phi.F[phi.pairs[tight, 1]]
    found, *_ = np.linalg.lstsq(D, np.ones(len(D)), rcond=1e-10)
    return found if phi.gaps(found).min() >= 1 - CERTIFIED else None


def _balance(phi: Exponentials, direction: Floats, phase: Phase) -> Balance | None:
    """(F3) by Newton's method from where the slow flow is; None where that reaches no strict minimum nearby."""
    gaps = phi.gaps(direction)
    tight = np.flatnonzero(gaps <= 1 + TIGHT)
    pairs, size = phi.pairs[tight], float(np.linalg.norm(direction))
    if not len(tight) or gaps.min() < 1 - TIGHT:
        return None
    m = len(phi.F)
    B = span_of(differences(phi.F, _components(phi, pairs)))
    q, log_time = phase.slow_path[-1], float(phase.log_time[-1])
    start = q - direction * log_time
    x = B.T @ start
    views = phi.F @ B
    for _ in range(50):
        rho = views @ x
        force = phi.sign[tight] * np.exp(np.minimum(phi.log_k[tight] - (rho[pairs[:, 0]] - rho[pairs[:, 1]]), 300.0))
        flow = np.bincount(pairs[:, 0], force, m) - np.bincount(pairs[:, 1], force, m)
        slope = B.T @ direction - flow @ views
        residual = float(np.linalg.norm(slope)) / size
        H = laplacian_form(views, pairs, force)
        curvature, axes = np.linalg.eigh(H)
        if residual < 1e-11 or curvature[0] <= 0:
            break
        step = axes @ ((axes.T @ -slope) / curvature)
        moved = float(np.abs((views @ step)[pairs[:, 0]] - (views @ step)[pairs[:, 1]]).max())
        x = x + step * min(1.0, 2.0 / moved)
    drift = views @ (x - B.T @ start)
    near = float(np.abs(drift[pairs[:, 0]] - drift[pairs[:, 1]]).max())
    if residual > CERTIFIED or curvature[0] <= STRICT * curvature[-1] or near > 1.0:
        return None
    certainty = float(phi.certainty[tight].min())
    pulling = int(np.sum(phi.sign[tight] < 0))
    least, spread = float(curvature[0]), float(curvature[0] / curvature[-1])
    return Balance(B @ x, pairs, pulling, certainty, least, spread, residual, direction)


def _angle_constant(flow: Flow, phase: Phase, balance: Balance) -> float:
    """Length of the part of ρ* + z* + c across p̂, the limit of angle · ‖p‖."""
    times = phase.log_time[-len(phase.slow_path) :]
    row = int(np.searchsorted(times, math.sqrt(times[0] * times[-1])))
    row = min(row, len(times) - 1)
    B = span_of(differences(phase.slow.F, _components(phase.slow, balance.tight)))
    offset = phase.slow_path[row] - balance.direction * times[row]
    offset = offset + B @ (B.T @ (balance.rho - offset))
    unit = balance.direction / np.linalg.norm(balance.direction)
    across = offset - (offset @ unit) * unit
    parts = (np.linalg.norm(across), np.linalg.norm(phase.finite.z), np.linalg.norm(flow.rest))
    return float(np.sqrt(sum(float(x) ** 2 for x in parts)))


def _components(phi: Exponentials, pairs: Ints) -> Ints:
    m = len(phi.F)
    beside = sp.csr_array((np.ones(len(pairs), np.int8), (pairs[:, 0], pairs[:, 1])), shape=(m, m))
    return np.asarray(connected_components(beside, directed=False)[1])


def finite_gaps(counts: Counts, E: Floats, limit: FlowLimit, most: int = 200) -> list[tuple[int, int, float, int]]:
    """The finite gaps of a limit: (type, type below it, gap in nats, documents that select both), most documents first.

    Args:
        counts: n documents over |S| types.
        E: embeddings in r coordinates, shape (|S|, r).
        limit: the limit.
        most: how many to list.
    """
    if limit.face is None or limit.finite is None:
        return []
    u, tied = E @ limit.finite.z, restricted(counts, limit.face.mask).matrix
    shared: dict[tuple[int, int], int] = {}
    for k in range(tied.shape[0]):
        held = tied.indices[tied.indptr[k] : tied.indptr[k + 1]]
        order = held[np.argsort(-u[held], kind="stable")]
        for s in order[1:]:
            key = (int(order[0]), int(s))
            shared[key] = shared.get(key, 0) + 1
    rows = sorted(shared.items(), key=lambda item: -item[1])[:most]
    return [(s, r, float(u[s] - u[r]), documents) for (s, r), documents in rows]
