"""The limit of the flow on any data: a finite part, a diverging part, and the certificates of both.

On the last face that the flow reaches (`phases`),

    p = p̂ log t + ρ* + z* + c + o(1),     z* ∈ V,  p̂, ρ*, c ∈ V^⊥,

and three things are certified: (F1) z* is a strict local minimum of L_S on V; (F2) p̂ is the shortest p ∈ V^⊥ with
p·(E_s − E_r) ≥ 1 for s ∈ S_X, r ∈ X∖S_X; (F3) Ψ(ρ) = Σ_T K e^{−D·ρ} + p̂·ρ over the tight pairs T has a strict local minimum ρ* on
span D_T. Where tight pairs pull, (F3) may hold at another p̂ than that of (F2): the flow then diverges along a direction that is not
max margin. See docs/theory.md for the statement, its proof, and an example.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from tokensieve.progress import Progress
from tokensieve.text.counts import Counts, Floats, Ints
from tokensieve.theory.curve import Flow, Verdict
from tokensieve.theory.landscape import coordinates, differences, span_of
from tokensieve.theory.margin import Margin, max_margin
from tokensieve.theory.phases import FAR, LATE, Phase, Prediction, predict, start_at
from tokensieve.theory.reduced import Equilibrium, Face, equilibrium, face_of, restricted
from tokensieve.theory.selection import documents_of, one_sided
from tokensieve.theory.slow import End, Exponentials, laplacian_form

# Predictions begin at one of these log t, the first from which the rest of the curve is met; shorter curves decide nothing.
BEGIN = (20.0, 22.0, 24.0, 26.0, 28.0)
EARLIEST = 12.0
# log t of the curve that is kept to compare with.
KEPT = 1.0
# Relative error of a prediction that counts as met, and that makes a verdict.
MET, WRONG = 1e-3, 2e-2
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
class Limit:
    """What becomes of p, with the certificates.

    Attributes:
        fate, reason: the verdict, and why (for "not decided": and what would decide).
        face: the last face; None where none was reached.
        finite: certificate (F1); None likewise.
        margin: certificate (F2); None where p does not diverge.
        balance: certificate (F3); None likewise.
        is_max_margin: whether p̂ is the direction of (F2).
        direction: p̂, shape (d,); None where p does not diverge.
        tied_documents: documents with two or more selected types.
        changes: of each predicted change of the selection, ‖p‖, log t, and the documents whose highest type changed.
        angle_constant: limit of angle · ‖p‖; nan where p does not diverge.
        one_sided_selected: share of the documents that hold completely positive or negative types in which one is selected.
        prediction: the phases, None for a finite limit that the flow itself reached.
        basis, rest: of the prediction's coordinates, as in `Flow`.
        compared: first and last log t at which prediction and flow were compared, and the largest relative error.
        seconds, margin_seconds: wall time, and what the margin problem took of it.
    """

    fate: Fate
    reason: str
    face: Face | None = None
    finite: Equilibrium | None = None
    margin: Margin | None = None
    balance: Balance | None = None
    is_max_margin: bool = False
    direction: Floats | None = None
    tied_documents: int = 0
    changes: tuple[tuple[float, float, int], ...] = ()
    angle_constant: float = math.nan
    one_sided_selected: float = math.nan
    prediction: Prediction | None = None
    basis: Floats | None = None
    rest: Floats | None = None
    compared: tuple[float, float, float] = (math.nan, math.nan, math.nan)
    seconds: float = 0.0
    margin_seconds: float = 0.0

    def __repr__(self) -> str:
        return f"Limit({self.fate.value}: {self.reason})"

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
            "one_sided_selected": self.one_sided_selected,
            "compared_from": self.compared[0],
            "compared_to": self.compared[1],
            "prediction_error": self.compared[2],
        }
        return {
            "verdict": self.fate, "reason": self.reason, "dimension_v": None if self.face is None else self.face.dimension,
            "tied_documents": self.tied_documents, "is_max_margin": self.is_max_margin,
            "tight_pairs": 0 if balance is None else len(balance.tight), "pulling_pairs": 0 if balance is None else balance.pulling,
            "selection_changes": [
                {"norm": norm, "log_time": log_time, "documents": documents} for norm, log_time, documents in self.changes
            ],
            "faces": 0 if self.prediction is None else len(self.prediction.phases), "seconds": self.seconds,
        } | {name: value if math.isfinite(value) else None for name, value in figures.items()}  # fmt: skip


def find_limit(
    counts: Counts, E: Floats, w: Floats, flow: Flow, seconds: float = math.inf, progress: Progress | None = None
) -> Limit:
    """Decide what becomes of p from a curve that gradient flow has traced.

    Args:
        counts: n documents of two classes over |S| types.
        E: embeddings, shape (|S|, d).
        w: values E v, shape (|S|,).
        flow: the curve; log t of 20 and more usually decides.
        seconds: wall time for the faces and the margin problem.
        progress: called with ("faces", share done).
    """
    started = time.monotonic()
    reduced = coordinates(E)[0]
    if flow.verdict is Verdict.FINITE:
        found = _point(counts, reduced, w, flow)
    elif not flow.log_time[-1] >= EARLIEST:
        found = Limit(
            Fate.UNDECIDED,
            f"the curve ends at log t = {flow.log_time[-1]:.3g}, and about {BEGIN[0]:g} is needed: give a larger --max-norm or "
            "more --max-seconds",
        )
    else:
        found = _diverging(counts, reduced, w, flow, started + seconds, progress)
    return replace(found, basis=flow.basis, rest=flow.rest, seconds=time.monotonic() - started)


def _point(counts: Counts, E: Floats, w: Floats, flow: Flow) -> Limit:
    """The certificate of a finite limit that Newton's method found from the curve."""
    assert flow.limit is not None
    z = flow.limit if flow.basis is None else flow.basis.T @ flow.limit
    held = np.diff(counts.matrix.indptr)
    face = face_of(counts, E, np.ones(counts.matrix.nnz, bool))
    finite = equilibrium(counts, E, w, face, z) if face.dimension else None
    return Limit(
        Fate.POINT, flow.reason, face, finite, tied_documents=int(np.sum(held > 1)),
        one_sided_selected=_one_sided_share(counts, face),
    )  # fmt: skip


def _diverging(counts: Counts, E: Floats, w: Floats, flow: Flow, deadline: float, progress: Progress | None) -> Limit:
    """Predict from a point of the curve, compare with the rest of it, follow to the end, certify."""
    best: tuple[float, float, Prediction] | None = None
    last = float(flow.log_time[-1])
    for aim in [x for x in BEGIN if x <= last - KEPT] or [last - KEPT]:
        start = start_at(counts, E, flow, aim)
        trial = predict(counts, E, w, start, min(last, 4 * aim), deadline)
        error = _error(trial, flow)
        if trial.phases and (best is None or error < best[1]):
            best = (aim, error, trial)
        if error < MET or time.monotonic() > deadline:
            break
    if best is None and time.monotonic() > deadline:
        return Limit(Fate.UNDECIDED, LATE)
    if best is None:
        return Limit(
            Fate.UNDECIDED,
            f"up to log t = {last:.4g} some score gaps neither stand still nor grow; a later start would decide, which needs "
            "more than double precision for the flow",
        )
    aim, error, trial = best
    prediction = predict(counts, E, w, start_at(counts, E, flow, aim), FAR, deadline, progress)
    error = max(error, _error(prediction, flow))
    limit = (
        _certified(counts, E, w, flow, prediction, deadline)
        if prediction.phases
        else Limit(Fate.UNDECIDED, prediction.trouble)
    )
    limit = replace(limit, prediction=prediction, compared=(aim, last, error))
    if limit.fate is not Fate.UNDECIDED and not error <= WRONG:
        reason = (
            f"the prediction from log t = {aim:g} misses the flow by {error:.2g}: a longer flow, or a smaller tolerance"
        )
        return replace(limit, fate=Fate.UNDECIDED, reason=f"{reason} (otherwise: {limit.fate}, {limit.reason})")
    return limit


def _error(prediction: Prediction, flow: Flow) -> float:
    """Relative error of a prediction at the end of the curve, or where it was left off; inf without one."""
    if not prediction.phases:
        return math.inf
    times = prediction.log_time
    rows = np.flatnonzero((flow.log_time > times[0]) & (flow.log_time <= times[-1]))
    if not len(rows):
        return math.inf
    # At a change of face p moves at once: a share of a nat of log t is no error there, so the later half counts.
    rows = rows[flow.log_time[rows] >= (flow.log_time[rows[0]] + flow.log_time[rows[-1]]) / 2]
    there = flow.coordinates[rows]
    return float(
        np.max(np.linalg.norm(prediction.at(flow.log_time[rows]) - there, axis=1) / np.linalg.norm(there, axis=1))
    )


def _certified(counts: Counts, E: Floats, w: Floats, flow: Flow, prediction: Prediction, deadline: float) -> Limit:
    """(F1), (F2) and (F3) on the last face."""
    phase = prediction.phases[-1]
    face, phi = phase.face, phase.slow
    limit = Limit(
        Fate.UNDECIDED, prediction.trouble, face, phase.finite,
        tied_documents=restricted(counts, face.mask).n_documents,
        changes=tuple(
            (float(np.linalg.norm(x.points[0])), float(x.path.log_time[0]), len(x.changed)) for x in prediction.phases[1:]
        ),
        one_sided_selected=_one_sided_share(counts, face),
    )  # fmt: skip
    if prediction.trouble:
        return limit
    if not len(phi.pairs) or phase.path.end is End.STILL:
        norm = math.hypot(float(np.linalg.norm(phase.points[-1])), float(np.linalg.norm(flow.rest)))
        return replace(
            limit, fate=Fate.POINT, reason=f"the slow flow comes to rest at ‖p‖ = {norm:.6g}, a strict minimum"
        )
    begun = time.monotonic()
    margin = max_margin(counts, E, face.mask, near=phase.points[-1], max_seconds=max(deadline - begun, 1.0))
    limit = replace(limit, margin_seconds=time.monotonic() - begun)
    limit = replace(limit, margin=margin if flow.basis is None else replace(margin, p=flow.basis @ margin.p))
    velocity = _velocity(phase)
    aimed = face.outside.T @ margin.p
    balance = _balance(phi, aimed, phase) if margin.status == "solved" else None
    is_max_margin = balance is not None
    if balance is None:
        found = _nearby_direction(phi, velocity)
        balance = None if found is None else _balance(phi, found, phase)
    if balance is None:
        why = (
            f"(F2) is {margin.status}"
            if margin.status != "solved"
            else "(F3) has no strict local minimum near the flow"
        )
        return replace(limit, reason=f"{why}: a later start would decide")
    away = _angle(velocity, balance.direction)
    if away > CONFIRMED:
        return replace(limit, balance=balance, reason=f"the slow flow is still {away:.2g} rad away from p̂")
    p_hat = face.outside @ balance.direction
    k = face.dimension
    fate = Fate.MAX_MARGIN if k == 0 and is_max_margin and balance.pulling == 0 else Fate.FINITE_GAPS
    words = f"{k} finite gap{'s' * (k != 1)}; {len(balance.tight)} tight pairs, {balance.pulling} of them pull"
    if not is_max_margin:
        words += "; p̂ is not the max-margin direction, from which a pulling pair keeps the flow away"
    return replace(
        limit, fate=fate, reason=words, balance=balance, is_max_margin=is_max_margin,
        direction=p_hat if flow.basis is None else flow.basis @ p_hat,
        angle_constant=_angle_constant(flow, phase, balance),
    )  # fmt: skip


def _velocity(phase: Phase) -> Floats:
    """dq/dlog t at the end of the slow flow."""
    unit, log_size = phase.slow.slope(phase.path.q[-1])
    return np.asarray(unit * math.exp(min(phase.path.clock + log_size, 300.0)))


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
    q, log_time = phase.path.q[-1], float(phase.path.log_time[-1])
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
    times = phase.path.log_time
    row = int(np.searchsorted(times, math.sqrt(times[0] * times[-1])))
    row = min(row, len(times) - 1)
    B = span_of(differences(phase.slow.F, _components(phase.slow, balance.tight)))
    offset = phase.path.q[row] - balance.direction * times[row]
    offset = offset + B @ (B.T @ (balance.rho - offset))
    unit = balance.direction / np.linalg.norm(balance.direction)
    across = offset - (offset @ unit) * unit
    parts = (np.linalg.norm(across), np.linalg.norm(phase.finite.z), np.linalg.norm(flow.rest))
    return float(np.sqrt(sum(float(x) ** 2 for x in parts)))


def _components(phi: Exponentials, pairs: Ints) -> Ints:
    m = len(phi.F)
    beside = sp.csr_array((np.ones(len(pairs), np.int8), (pairs[:, 0], pairs[:, 1])), shape=(m, m))
    return np.asarray(connected_components(beside, directed=False)[1])


def _one_sided_share(counts: Counts, face: Face) -> float:
    """Share of the documents that hold completely positive or negative types in which one of them is selected."""
    which = (one_sided(counts) != 0)[counts.matrix.indices]
    document, n = documents_of(counts), counts.n_documents
    held = np.bincount(document, which, n) > 0
    chosen = np.bincount(document, which & face.mask, n) > 0
    return float(chosen[held].mean()) if held.any() else math.nan


def finite_gaps(counts: Counts, E: Floats, limit: Limit, most: int = 200) -> list[tuple[int, int, float, int]]:
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
