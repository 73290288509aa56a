"""The limit of the flow: a finite part, a diverging part, and the certificates of both.

What p does after the computed curve is predicted (`limit.prediction`). On the last face,

    p = p̂ log t + ρ* + z* + c + o(1),     z* ∈ V,  p̂, ρ*, c ∈ V^⊥,

and three things are certified: (F1) z* is a strict local minimum of L_S on V; (F2) p̂ is the
shortest p ∈ V^⊥ with p·(E_s − E_r) ≥ 1 for s ∈ S_X, r ∈ X∖S_X; (F3) Ψ(ρ) = Σ_T K e^{−D·ρ} + p̂·ρ
over the tight pairs T has a strict local minimum ρ* on span D_T. Where tight pairs pull, (F3) may
hold at a p̂ that is not max margin. docs/theory.md has statement, proof and example.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tokensieve.arrays import Floats, Ints
from tokensieve.progress import Progress
from tokensieve.text.counts import Counts
from tokensieve.theory.flow.equilibrium import Equilibrium
from tokensieve.theory.flow.face import Face
from tokensieve.theory.flow.integrator import STEEP
from tokensieve.theory.flow.landscape import Landscape
from tokensieve.theory.flow.solve import FINITE, Flow, gradient_flow
from tokensieve.theory.geometry import coordinates
from tokensieve.theory.limit.balance import (
    CONFIRMED,
    Balance,
    angle_between,
    certify_balance,
)
from tokensieve.theory.limit.margin import Margin, max_margin
from tokensieve.theory.limit.prediction import OUT_OF_TIME, Phase, Prediction, SelectionChange
from tokensieve.wording import noun, verb

# A prediction begins this much log t before the end of the curve, to be compared with the rest.
COMPARED_LENGTH = 4.0
# It is compared over at least so many steps: those of a flow without ties grow with log t.
COMPARED_STEPS = 5
# It goes on so far beyond the curve: at a change of the selection a little time is a long way.
BEYOND = 1.0
# log t from which on a prediction need not begin later.
LATE_ENOUGH = 36.0
# log t up to which a curve is extended where no prediction from LATE_ENOUGH fits.
LONGEST_CURVE = 60.0
# A shorter curve predicts nothing.
SHORTEST_CURVE = 12.0
# Distance of the curve to the predicted path, relative to ‖p‖, that is allowed.
MAX_DISTANCE = 2e-2
# A prediction goes on to these log t, one after the other, until its direction has settled.
PREDICTED_TO = (1e5, 4e5, 16e5)
# A value differs from the prediction of its document if it does so by more than this.
DIFFERENT_VALUE = 1e-9

Fate = Literal[
    "converges to a point",
    "diverges along p̂ with finite gaps",
    "diverges, Theorem 4.3",
    "not settled",
]

# What is proved of a limit: nothing, that it attracts an open set, or that the curve stays near it.
Proved = Literal["", "attractor", "from this point on"]
GRADES: dict[Proved, str] = {
    "": "numerically certified attractor",
    "attractor": "proved attractor",
    "from this point on": "proved from this point on",
}


@dataclass(frozen=True)
class Comparison:
    """How far a prediction is from the rest of the curve.

    Attributes:
        begins, ends: the first and the last log t that are compared.
        error: the largest distance, relative to ‖p‖.
    """

    begins: float = math.nan
    ends: float = math.nan
    error: float = math.nan


@dataclass(frozen=True)
class FiniteGap:
    """A gap in nats that stays finite, between a token type and one below it, in documents that
    select both."""

    above: int
    below: int
    gap: float
    documents: int


@dataclass(frozen=True, repr=False)
class FlowLimit:
    """The limit of p, with its certificates.

    Attributes:
        fate, reason: the verdict, and why (for "not settled", also what would settle it).
        flow: the curve, extended where a longer one was needed.
        face, finite: the last face, and certificate (F1); None where none was reached.
        margin, balance: certificates (F2) and (F3); None where p does not diverge.
        is_max_margin: whether p̂ is the direction of (F2).
        direction, angle_constant: p̂, shape (d,), and the limit of angle · ‖p‖; None and nan where
            p does not diverge.
        prediction: the phases, None for a finite limit that the flow itself reached.
        compared: prediction and flow.
        seconds: wall time, in all and of the margin problem ("limit", "margin").
        proved, unproved: what is proved, and why not more ("" if all is); proof: its figures.
        certificate: the arrays from which `limit.checker` proves it.
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
    compared: Comparison = Comparison()
    seconds: dict[str, float] = field(default_factory=dict)
    proved: Proved = ""
    unproved: str = "no proof was attempted"
    proof: dict[str, float] = field(default_factory=dict)
    certificate: dict[str, NDArray[np.generic]] = field(default_factory=dict)

    @property
    def grade(self) -> str:
        """How certain the verdict is."""
        if self.fate == "not settled":
            return "not settled"
        return GRADES[self.proved]

    @classmethod
    def find(
        cls,
        counts: Counts,
        E: Floats,
        w: Floats,
        flow: Flow,
        seconds: float = math.inf,
        progress: Progress | None = None,
    ) -> FlowLimit:
        """Determine the limit of p from a curve of gradient flow; log t of 36 or more usually
        suffices.

        The prediction begins late, is compared with the rest of the curve, and is then extended. If
        it misses the curve, or ties have not settled yet, the curve is followed further and the
        next one begins later. `seconds` is wall time for all of this.
        """
        started = time.monotonic()
        land = Landscape(counts, coordinates(E)[0], w)
        if flow.verdict == FINITE:
            limit = finite_limit(land, flow)
        elif flow.log_time[-1] >= SHORTEST_CURVE:
            with Flow.one_thread():
                limit = Search(land, E, started + seconds, progress).diverging(flow)
        else:
            reason = (
                f"the curve ends at log t = {flow.log_time[-1]:.3g}, and about {LATE_ENOUGH:g} is "
                "needed; allow more with --max-norm or --max-seconds"
            )
            limit = cls("not settled", reason, flow)
        spent = {"limit": time.monotonic() - started}
        return replace(limit, seconds={"margin": 0.0} | limit.seconds | spent)

    def __repr__(self) -> str:
        return f"FlowLimit({self.fate}: {self.reason})"

    @property
    def changes(self) -> list[SelectionChange]:
        """The predicted changes of the selection."""
        return [] if self.prediction is None else self.prediction.changes

    def to_dict(self) -> dict[str, object]:
        """Verdict and certificates, ready for JSON (undefined figures are None)."""
        balance = self.balance
        finite = self.finite
        out: dict[str, object] = {
            "verdict": self.fate,
            "grade": self.grade,
            "reason": self.reason,
            "proof": {"missing": self.unproved} | self.proof,
            "dimension_v": None if self.face is None else self.face.dimension,
            "tied_documents": 0 if finite is None else finite.documents,
            "is_max_margin": self.is_max_margin,
            "tight_pairs": 0 if balance is None else len(balance.tight),
            "pulling_pairs": 0 if balance is None else balance.pulling,
            "selection_changes": [vars(change) for change in self.changes],
            "faces": 0 if self.prediction is None else len(self.prediction.phases),
            "seconds": self.seconds.get("limit", 0.0),
        }
        for name, value in self._figures().items():
            out[name] = value if math.isfinite(value) else None
        return out

    def _figures(self) -> dict[str, float]:
        """Numbers, nan or inf where they are undefined."""
        balance = self.balance
        finite = self.finite
        margin = self.margin
        has_ties = finite is not None and finite.curvature < math.inf
        return {
            "angle_times_norm": self.angle_constant,
            "compared_from": self.compared.begins,
            "compared_to": self.compared.ends,
            "prediction_error": self.compared.error,
            "curvature_f1": math.nan if finite is None else finite.curvature,
            "condition_f1": 1 / finite.spread if finite is not None and has_ties else math.nan,
            "curvature_f3": math.nan if balance is None else balance.curvature,
            "condition_f3": math.nan if balance is None else 1 / balance.spread,
            "duality_gap": math.nan if margin is None else margin.duality_gap,
            "kkt_residual": math.nan if margin is None else margin.kkt_residual,
            "margin": math.nan if margin is None else margin.margin,
        }

    def finite_gaps(self, counts: Counts, E: Floats, most: int = 200) -> list[FiniteGap]:
        """The gaps below each document's highest type, most documents first; E in r coordinates."""
        if self.face is None or self.finite is None:
            return []
        u = E @ self.finite.z
        mask = self.face.mask
        pairs = below_top(counts.entry_documents[mask], counts.matrix.indices[mask], u)
        pairs, first, n_documents = np.unique(pairs, axis=0, return_index=True, return_counts=True)
        gaps = []
        for row in np.lexsort((first, -n_documents))[:most].tolist():
            above, below = pairs[row].tolist()
            size = float(u[above] - u[below])
            gaps.append(FiniteGap(above, below, size, int(n_documents[row])))
        return gaps


def below_top(document: Ints, types: Ints, u: Floats) -> Ints:
    """The highest type and each lower one of every document, by falling score, shape (j, 2).

    Args:
        document, types: of each entry, shape (entries,).
        u: the score of each type, shape (|S|,).
    """
    order = np.lexsort((-u[types], document))
    _, first, row = np.unique(document[order], return_index=True, return_inverse=True)
    types = types[order]
    is_below = first[row] != np.arange(len(types))
    return np.stack([types[first[row[is_below]]], types[is_below]], axis=1)


def finite_limit(land: Landscape, flow: Flow) -> FlowLimit:
    """The certificate of a finite limit that Newton's method found from the curve."""
    assert flow.limit is not None
    z = flow.limit if flow.basis is None else flow.basis.T @ flow.limit
    face = Face.of(land.counts, land.E, np.ones(land.counts.matrix.nnz, bool))
    finite = Equilibrium.near(land, face, z) if face.dimension else None
    return FlowLimit("converges to a point", flow.reason, flow, face, finite)


@dataclass(frozen=True)
class ComparedPrediction:
    """A prediction that begins at log t = `start`, compared with the curve."""

    prediction: Prediction
    start: float
    compared: Comparison

    @property
    def fits(self) -> bool:
        return bool(self.prediction.phases) and self.compared.error <= MAX_DISTANCE


@dataclass(frozen=True)
class Search:
    """The search for a diverging limit: what does not change in it. E has shape (|S|, d)."""

    land: Landscape
    E: Floats
    deadline: float
    progress: Progress | None

    @property
    def is_late(self) -> bool:
        return time.monotonic() > self.deadline

    def diverging(self, flow: Flow) -> FlowLimit:
        """The limit of a curve that does not converge to a point within it.

        A prediction begins at a late point of the curve and is compared with the rest. If it does
        not fit, the next one begins later, on a longer curve where this one is too short. The first
        that fits is followed to its end, and certified there.
        """
        latest = LATE_ENOUGH
        while True:
            last = float(flow.log_time[-1])
            attempt = self._attempt(flow, min(last - COMPARED_LENGTH, latest))
            if attempt.fits or self.is_late:
                break
            if last - COMPARED_LENGTH > attempt.start:  # the curve is long enough to begin later
                latest = 2 * attempt.start
                continue
            # A longer curve helps where it ended because its ties had settled, and not too late.
            if not flow.settings.max_log_time <= last < LONGEST_CURVE:
                break
            flow = self._longer(flow, last + COMPARED_LENGTH)
            latest = LONGEST_CURVE
            if flow.verdict == FINITE:
                return finite_limit(self.land, flow)
            if flow.log_time[-1] < last + COMPARED_LENGTH / 2:
                break
        if not attempt.prediction.phases:
            return self._unsettled(flow, attempt.prediction, last)
        return self._followed(flow, attempt)

    def _attempt(self, flow: Flow, start: float) -> ComparedPrediction:
        """A prediction from log t = `start`, compared with the rest of the curve.

        The error is the largest distance of a point of the curve from the predicted path, relative
        to ‖p‖; infinite where no later point is covered.
        """
        times = flow.log_time
        last_row = len(times) - 1
        row = min(max(int(np.searchsorted(times, start)), 1), last_row - 1)
        prediction = Prediction(self.land, flow.coordinates[row], float(times[row]))
        some_steps_on = float(times[min(row + COMPARED_STEPS, last_row)])
        until = min(float(times[-1]), max(4 * start, some_steps_on))
        prediction.extend(until + BEYOND, self.deadline)
        error = math.inf
        if prediction.phases:
            n_followed = int((times <= min(until, float(prediction.log_time[-1]))).sum())
            points = flow.coordinates[row + 1 : n_followed]
            if len(points):
                distances = prediction.distance(points) / np.linalg.norm(points, axis=1)
                error = float(np.max(distances))
        return ComparedPrediction(
            prediction, start, Comparison(float(times[row]), float(times[-1]), error)
        )

    def _longer(self, flow: Flow, log_time: float) -> Flow:
        """The curve followed on to a later log t, in the time that is left."""
        left = max(self.deadline - time.monotonic(), 0.0)
        settings = replace(flow.settings, max_log_time=log_time, max_seconds=left)
        start = flow.at(0)
        return gradient_flow(self.land.counts, self.E, self.land.w, start, settings, after=flow)

    def _unsettled(self, flow: Flow, prediction: Prediction, last: float) -> FlowLimit:
        """The result where no prediction could begin: a longer curve or more time is missing."""
        reason = (
            f"at log t = {last:.4g} some score gaps neither settle nor grow like log t; "
            "a longer flow may decide"
        )
        if self.is_late or flow.seconds >= flow.settings.max_seconds:
            reason = OUT_OF_TIME
        return FlowLimit("not settled", reason, flow, prediction=prediction)

    def _followed(self, flow: Flow, attempt: ComparedPrediction) -> FlowLimit:
        """The prediction to its end, with certificates; a direction may settle late."""
        prediction = attempt.prediction
        compared = attempt.compared
        for far in PREDICTED_TO:
            if not prediction.trouble:
                prediction.extend(far, self.deadline, self.progress)
            limit = certified(self.land, flow, prediction, self.deadline)
            if prediction.trouble or limit.fate != "not settled":
                break
        limit = replace(limit, prediction=prediction, compared=compared)
        if limit.fate == "not settled" or compared.error <= MAX_DISTANCE:
            return limit
        reason = (
            f"the prediction from log t = {compared.begins:.4g} misses the flow by "
            f"{compared.error:.2g}; a longer flow would decide (apart from that: {limit.fate}, "
            f"{limit.reason})"
        )
        return replace(limit, fate="not settled", reason=reason)


def certified(land: Landscape, flow: Flow, prediction: Prediction, deadline: float) -> FlowLimit:
    """(F1), (F2) and (F3) on the last face."""
    phase = prediction.phases[-1]
    finite = phase.ties.finite
    slow = phase.ties.slow
    limit = FlowLimit("not settled", prediction.trouble, flow, phase.ties.face, finite)
    if prediction.trouble:
        return limit
    has_pairs = len(slow.pairs) > 0
    if has_pairs and finite.flat:
        # Other documents push p along the surface with a force of order one, and nothing restores
        # it.
        reason = (
            "the tied gaps are in balance on a whole surface, along which other documents move p"
        )
        return replace(limit, reason=reason)
    if has_pairs and (slow.without_force.all() or has_second_order_forces(land, phase)):
        reason = (
            "two documents have the same tied tokens but differ in a token whose forces cancel; "
            "only second-order terms act on that token, and these are not modelled"
        )
        return replace(limit, reason=reason)
    if not has_pairs or phase.end == "still":
        norm = math.hypot(float(np.linalg.norm(phase.points[-1])), float(np.linalg.norm(flow.rest)))
        reason = f"the slow flow comes to rest at ‖p‖ = {norm:.6g}, a strict minimum of Φ"
        return replace(limit, fate="converges to a point", reason=reason)
    return certified_divergence(land, limit, phase, deadline)


def certified_divergence(
    land: Landscape, limit: FlowLimit, phase: Phase, deadline: float
) -> FlowLimit:
    """(F2) and (F3) on a face on which p diverges."""
    begun = time.monotonic()
    margin = margin_of(land, phase, max(deadline - begun, 1.0))
    limit = replace(
        limit,
        margin=replace(margin, p=limit.flow.whole(margin.p)),
        seconds={"margin": time.monotonic() - begun},
    )
    if margin.status == "stopped early":
        is_late = time.monotonic() > deadline
        reason = OUT_OF_TIME if is_late else "the max-margin problem was not solved"
        return replace(limit, reason=reason)

    velocity = last_velocity(phase)
    balance = None
    if margin.status == "solved":
        direction = phase.ties.face.outside.T @ margin.p
        balance = certify_balance(phase.ties.slow, direction, phase, velocity)
    is_max_margin = balance is not None and balance.is_max_margin
    if balance is None:
        balance = balance_along_flow(phase, velocity)
    if balance is None:
        reason = "(F3) has no strict local minimum near the flow"
        if margin.status != "solved":
            reason = f"(F2) is {margin.status}"
        return replace(limit, reason=f"{reason}; a longer flow would decide")
    away = angle_between(velocity, balance.direction)
    if away > CONFIRMED:
        reason = f"the slow flow is still {away:.2g} rad away from p̂"
        return replace(limit, balance=balance, reason=reason)
    balance = replace(balance, offset=settled_offset(phase, balance))
    return with_direction(replace(limit, balance=balance, is_max_margin=is_max_margin), phase)


def last_velocity(phase: Phase) -> Floats:
    """dq/dlog t at the end of a phase."""
    unit, log_size = phase.ties.slow.slope(phase.slow_path[-1])
    return unit * math.exp(min(phase.clock + log_size, STEEP))


def margin_of(land: Landscape, phase: Phase, max_seconds: float) -> Margin:
    """(F2) over the pairs that feel a force; the others constrain nothing, they only have to
    separate."""
    face = phase.ties.face
    slow = phase.ties.slow
    is_driven = ~face.entries(land.counts, slow.pairs[slow.without_force])
    counts = Face.only(land.counts, is_driven)
    selected = face.mask[is_driven]
    return max_margin(counts, land.E, selected, near=phase.points[-1], max_seconds=max_seconds)


def balance_along_flow(phase: Phase, velocity: Floats) -> Balance | None:
    """(F3) at the shortest p with margin one on the pairs that are tight along the slow flow."""
    slow = phase.ties.slow
    is_tight = (slow.gaps(velocity) <= 1 + CONFIRMED) & ~slow.without_force
    if not is_tight.any():
        return None
    pairs = slow.pairs[is_tight]
    D = slow.F[pairs[:, 0]] - slow.F[pairs[:, 1]]
    # rcond: what is smaller is rounding, as differences of tied types repeat one another
    direction = np.linalg.lstsq(D, np.ones(len(D)), rcond=1e-10)[0]
    return certify_balance(slow, np.asarray(direction, np.float64), phase, velocity)


def settled_offset(phase: Phase, balance: Balance) -> Floats:
    """ρ* + c, from the middle of the slow path: at its end rounding has grown, at its start it
    settles."""
    times = phase.log_time[-len(phase.slow_path) :]
    middle = math.sqrt(times[0] * times[-1])
    row = min(int(np.searchsorted(times, middle)), len(times) - 1)
    offset = phase.slow_path[row] - balance.direction * times[row]
    B = balance.span
    return np.asarray(offset + B @ (B.T @ (balance.rho - offset)))


def with_direction(limit: FlowLimit, phase: Phase) -> FlowLimit:
    """The verdict, p̂ and the limit of angle · ‖p‖: the length of the part of ρ* + z* + c across
    p̂."""
    balance = limit.balance
    face = phase.ties.face
    assert balance is not None
    unit = balance.direction / np.linalg.norm(balance.direction)
    offset = balance.offset - (balance.offset @ unit) * unit
    across = np.concatenate([offset, phase.ties.finite.z, limit.flow.rest])
    is_as_stated = face.dimension == 0 and limit.is_max_margin and balance.pulling == 0
    fate: Fate = "diverges along p̂ with finite gaps"
    return replace(
        limit,
        fate="diverges, Theorem 4.3" if is_as_stated else fate,
        reason=summary(face.dimension, balance, limit.is_max_margin),
        direction=limit.flow.whole(face.outside @ balance.direction),
        angle_constant=float(np.linalg.norm(across)),
    )


def summary(dimension: int, balance: Balance, is_max_margin: bool) -> str:
    """The certificates in a sentence."""
    gaps = "no score gap stays finite"
    if dimension:
        stay = verb(dimension, "stay")
        gaps = f"{dimension} independent score {noun(dimension, 'gap')} {stay} finite"
    pulling = "none works"
    if balance.pulling:
        pulling = f"{balance.pulling} of them {verb(balance.pulling, 'work')}"
    active = f"{len(balance.tight)} constraints are active, {pulling} against convergence"
    words = f"{gaps}; {active}"
    if not balance.is_max_margin:
        slowest = f"{balance.slowest:.3g} log t"
        return f"{words}; gaps on which no force acts grow more slowly, one like {slowest}"
    if not is_max_margin:
        return (
            f"{words}; p̂ is not the max-margin direction: an active constraint works against "
            "convergence to it"
        )
    return words


def has_second_order_forces(land: Landscape, phase: Phase) -> bool:
    """Whether documents with equal selected types differ in a type on which forces cancel.

    Documents with equal selected types have one prediction f, and forces of theirs that cancel
    vanish to all orders. If they also contain types that are not selected, whose values differ from
    f, their predictions differ in the second order, and the forces no longer cancel there.
    """
    counts = land.counts
    face = phase.ties.face
    slow = phase.ties.slow
    pairs_without_force = slow.pairs[slow.without_force]
    f = phase.ties.finite.answers[counts.entry_documents]
    changes_f = np.abs(land.w[counts.matrix.indices] - f) > DIFFERENT_VALUE
    changes_f &= face.entries(counts, pairs_without_force)

    concerned = np.isin(face.selected_group, pairs_without_force[:, 0])
    by_selection = Face.only(counts, face.mask).equal_documents[concerned]
    by_all = Face.only(counts, face.mask | changes_f).equal_documents[concerned]
    return len(np.unique(by_selection)) < len(np.unique(by_all))
