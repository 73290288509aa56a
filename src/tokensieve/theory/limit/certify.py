"""The limit of the flow: a finite part, a diverging part, and the certificates of both.

What p does after the computed curve is predicted by the slow flow (`flow.split`). An unselected type that comes near ends it: from
there the true flow is followed in local time, until its ties have settled again. On the last face,

    p = p̂ log t + ρ* + z* + c + o(1),     z* ∈ V,  p̂, ρ*, c ∈ V^⊥,

and three things are certified: (F1) z* is a strict local minimum of L_S on V; (F2) p̂ is the shortest p ∈ V^⊥ with
p·(E_s − E_r) ≥ 1 for s ∈ S_X, r ∈ X∖S_X; (F3) Ψ(ρ) = Σ_T K e^{−D·ρ} + p̂·ρ over the tight pairs T has a strict local minimum ρ* on
span D_T. Where tight pairs pull, (F3) may hold at a p̂ that is not max margin. docs/theory.md has statement, proof and example.
"""

from __future__ import annotations

import itertools
import math
import time
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tokensieve.arrays import Floats, Ints
from tokensieve.progress import Progress
from tokensieve.text.counts import Counts
from tokensieve.theory.flow.integrator import STEEP
from tokensieve.theory.flow.landscape import Landscape
from tokensieve.theory.flow.solve import FINITE, Flow, SplitFlow, gradient_flow
from tokensieve.theory.flow.split import NEAR, End, Equilibrium, Exponentials, Face
from tokensieve.theory.geometry import coordinates, laplacian_form, span_of
from tokensieve.theory.limit.margin import Margin, max_margin
from tokensieve.wording import verb

# Why a prediction that was given up ended.
_LATE = "the time limit was reached; allow more with --max-seconds"
# A prediction begins this much log t before the end of the curve, to be compared with the rest.
_KEPT = 4.0
# Log t from which on a prediction need not begin later, and up to which a curve is extended until one is met.
LATE_ENOUGH, _LONGEST = 36.0, 60.0
# Distance of the curve to the predicted path, relative to ‖p‖, that is allowed.
_ALLOWED = 2e-2
# A direction is confirmed where the slow flow is within this of it; a certificate where its residual is within that.
_CONFIRMED, _CERTIFIED = 1e-3, 1e-6


# What becomes of p.
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
class _Phase:
    """The slow flow between two changes of the selection, and the local flow before it."""

    face: Face
    finite: Equilibrium
    slow: Exponentials
    end: End
    slow_path: Floats  # on V^⊥, shape (j, r − k), the last of `points`
    clock: float  # log t at the last point, counted from where the clock was last set back
    points: Floats  # p in r coordinates, shape (m, r)
    log_time: Floats
    changed: int  # documents whose highest type is another than at the end of the phase before


class _Prediction:
    """The phases from a point of a flow on; `extend` follows them further, and `trouble` is why they ended too early, or ""."""

    def __init__(self, land: Landscape, z: Floats, log_time: float) -> None:
        self.phases: list[_Phase] = []
        self._land, self._z, self._clock, self._log_time = land, z, log_time, log_time
        self._between: list[tuple[Floats, float]] = []
        self._settled = self._settled_ties(Face.settled(land, z, log_time))
        self.trouble = "" if self._settled else "the tied gaps have not settled"

    @property
    def log_time(self) -> Floats:
        return np.concatenate([phase.log_time for phase in self.phases])

    @property
    def points(self) -> Floats:
        return np.concatenate([phase.points for phase in self.phases])

    @property
    def changes(self) -> list[tuple[float, float, int]]:
        """For each change of the selection: ‖p‖, log t, and how many documents have another highest type."""
        return [
            (float(np.linalg.norm(after.points[0])), float(after.log_time[0]), after.changed)
            for before, after in itertools.pairwise(self.phases)
            if after.changed or not np.array_equal(after.face.mask, before.face.mask)
        ]

    def extend(
        self, far: float, deadline: float = math.inf, progress: Progress | None = None
    ) -> None:
        """Go on to a log t; by time.monotonic(), what is being followed at the deadline is left off."""
        while not self.trouble and self._log_time < far:
            end = self._slow_phase(far, deadline)
            if progress is not None:
                progress("faces", min(1.0, math.log(max(self._log_time, 1.0)) / math.log(far)))
            last = self.phases[-10:]
            if len(last) == 10 and all(len(one.slow_path) <= 3 for one in last):
                self.trouble = f"the selection keeps changing at log t = {self._log_time:.4g}"
            elif len(self.phases) == 200:
                self.trouble = "the selection changed 200 times"
            elif end == "near":
                self._follow_local_time(deadline)
            else:
                self.trouble = {"steps": "the slow flow took too many steps", "time": _LATE}.get(
                    end, ""
                )
                return

    def distance(self, points: Floats) -> Floats:
        """Distance of some points to the predicted path, shape (m,): a shift in time along it is no error."""
        path, out = self.points, np.empty(len(points))
        chords = np.diff(path, axis=0, append=path[-1:])  # a slow flow at rest at once is a point
        path = np.concatenate([path, path[-1:]])
        lengths = np.maximum(np.einsum("ij,ij->i", chords, chords), np.finfo(float).tiny)
        for row, point in enumerate(points):
            along = np.clip(np.einsum("ij,ij->i", point - path[:-1], chords) / lengths, 0.0, 1.0)
            out[row] = np.linalg.norm(point - path[:-1] - along[:, None] * chords, axis=1).min()
        return out

    def _slow_phase(self, far: float, deadline: float) -> End:
        """One phase of the slow flow."""
        assert self._settled is not None
        face, finite, phi = self._settled
        end, q, times, clock = phi.follow(
            face.outside.T @ self._z, self._clock, self._log_time, far, deadline
        )
        points = q @ face.outside.T + finite.z
        # Before the first phase stands the point that it began with.
        earlier = self.phases[-1].points[-1] if self.phases else self._z
        highest = [self._land.top_types(p) for p in (earlier, points[0])]
        if self._between:
            local, when = zip(*self._between, strict=True)
            points, times = np.concatenate([local, points]), np.concatenate([when, times])
            self._between = []
        changed = int(np.sum(highest[0] != highest[1]))
        self.phases.append(_Phase(face, finite, phi, end, q, clock, points, times, changed))
        self._z, self._clock, self._log_time = points[-1], clock, float(times[-1])
        return end

    def _follow_local_time(self, deadline: float) -> None:
        """The true flow in local time, until its ties have settled and the type that came near has moved away or is tied."""
        flow = SplitFlow(self._land, self._z, -math.inf, self._log_time, 1e-4, self.phases[-1].face)
        looked, self._settled, began = flow.looked, None, self._log_time
        while flow.solver.clock < 40.0 and flow.step():
            solver = flow.solver
            self._z, self._clock, self._log_time = solver.p, solver.clock, solver.log_time
            self._between.append((self._z, self._log_time))
            if time.monotonic() > deadline:
                self.trouble = _LATE
                return
            if flow.looked != looked and flow.face is not None:
                looked, self._settled = flow.looked, self._settled_ties(flow.face, NEAR + 0.5)
                if self._settled is not None:
                    return
        self.trouble = (
            f"another token came close to a tie at log t = {began:.4g}, and the ties did not settle"
        )

    def _settled_ties(
        self, face: Face, away: float = NEAR
    ) -> tuple[Face, Equilibrium, Exponentials] | None:
        """The ties at a point where all have settled and every other type weighs less than e^{−away}; else None."""
        finite = Equilibrium.near(self._land, face, self._z)
        if finite is None or finite.moved > 0.1:
            return None
        phi = Exponentials.of(self._land, face, finite)
        near = phi.nearness(face.outside.T @ self._z).max(initial=-math.inf)
        return (face, finite, phi) if near <= -away else None


@dataclass(frozen=True)
class Balance:
    """Certificate (F3): a strict local minimum ρ* of Ψ."""

    rho: Floats  # in the coordinates of V^⊥, shape (r − k,)
    tight: Ints  # groups (a, b) of the pairs with margin one, shape (j, 2)
    pulling: int  # how many of them have K < 0
    curvature: float  # smallest one of Ψ at ρ* on span D_T: the rate, per unit of log t, at which ρ settles
    spread: float  # the same relative to the largest one
    residual: float  # ‖∇Ψ‖/‖p̂‖
    direction: Floats  # p̂ in the coordinates of V^⊥
    slowest: float  # smallest D·p̂ of all pairs, those that feel no force included
    span: Floats  # orthonormal basis of span D_T, shape (r − k, l)
    offset: Floats  # ρ* + c, shape (r − k,)


@dataclass(frozen=True, repr=False)
class FlowLimit:
    """The limit of p, with its certificates.

    Attributes:
        fate, reason: the verdict, and why (for "not settled", also what would settle it).
        flow: the curve, extended where a longer one was needed.
        face, finite: the last face, and certificate (F1); None where none was reached.
        margin, balance: certificates (F2) and (F3); None where p does not diverge.
        is_max_margin: whether p̂ is the direction of (F2).
        direction, angle_constant: p̂, shape (d,), and the limit of angle · ‖p‖; None and nan where p does not diverge.
        prediction: the phases, None for a finite limit that the flow itself reached.
        compared: first and last log t at which prediction and flow were compared, and the largest distance relative to ‖p‖.
        seconds: wall time, in all and of the margin problem ("limit", "margin").
        unproved, proof: why it is not proved that p stays near this limit ("" if it is); and the figures (`limit.proof`).
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
    prediction: _Prediction | None = None
    compared: tuple[float, float, float] = (math.nan, math.nan, math.nan)
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
        """Determine the limit of p from a curve traced by gradient flow; log t of 36 or more usually suffices.

        The prediction begins late, is compared with the rest of the curve, and is then extended. If it misses the curve, or ties
        have not settled yet, the curve is followed further and the next one begins later. `seconds` is wall time for all of this.
        """
        started, land = time.monotonic(), Landscape(counts, coordinates(E)[0], w)
        if flow.verdict == FINITE:
            found = _certified_point(land, flow)
        elif flow.log_time[-1] >= 12:
            with Flow.one_thread():
                found = _diverging(land, E, flow, started + seconds, progress)
        else:
            ends = f"the curve ends at log t = {flow.log_time[-1]:.3g}, and about {LATE_ENOUGH:g} is needed"
            found = cls("not settled", f"{ends}; allow more with --max-norm or --max-seconds", flow)
        return replace(
            found, seconds={"margin": 0.0} | found.seconds | {"limit": time.monotonic() - started}
        )

    def __repr__(self) -> str:
        return f"FlowLimit({self.fate}: {self.reason})"

    @property
    def changes(self) -> list[tuple[float, float, int]]:
        """For each predicted change of the selection: ‖p‖, log t, and how many documents have another highest type."""
        return [] if self.prediction is None else self.prediction.changes

    def to_dict(self) -> dict[str, object]:
        """Verdict and certificates, ready for JSON (undefined figures are None)."""
        balance, margin, finite = self.balance, self.margin, self.finite
        figures = {"angle_times_norm": self.angle_constant}
        figures |= dict(
            zip(("compared_from", "compared_to", "prediction_error"), self.compared, strict=True)
        )
        figures["curvature_f1"] = math.nan if finite is None else finite.curvature
        figures["condition_f1"] = (
            math.nan if finite is None or finite.curvature == math.inf else 1 / finite.spread
        )
        figures["curvature_f3"] = math.nan if balance is None else balance.curvature
        figures["condition_f3"] = math.nan if balance is None else 1 / balance.spread
        for name in ("duality_gap", "kkt_residual", "margin"):
            figures[name] = math.nan if margin is None else getattr(margin, name)
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
            "selection_changes": [
                {"norm": norm, "log_time": at, "documents": n} for norm, at, n in self.changes
            ],
            "faces": 0 if self.prediction is None else len(self.prediction.phases),
            "seconds": self.seconds.get("limit", 0.0),
        }
        return out | {
            name: value if math.isfinite(value) else None for name, value in figures.items()
        }

    def finite_gaps(
        self, counts: Counts, E: Floats, most: int = 200
    ) -> list[tuple[int, int, float, int]]:
        """(Type, type below it, gap in nats, documents that select both), most documents first; E in r coordinates."""
        if self.face is None or self.finite is None:
            return []
        mask, u = self.face.mask, E @ self.finite.z
        document, types = counts.entry_documents[mask], counts.matrix.indices[mask]
        order = np.lexsort((-u[types], document))
        document, types = document[order], types[order]
        _, first, where = np.unique(document, return_index=True, return_inverse=True)
        below = np.flatnonzero(first[where] != np.arange(len(types)))
        pairs = np.stack([types[first[where[below]]], types[below]], axis=1)
        pairs, met, shared = np.unique(pairs, axis=0, return_index=True, return_counts=True)
        rows = np.lexsort((met, -shared))[:most]
        found = zip(pairs[rows].tolist(), shared[rows].tolist(), strict=True)
        return [(s, r, float(u[s] - u[r]), documents) for (s, r), documents in found]


def _certified_point(land: Landscape, flow: Flow) -> FlowLimit:
    """The certificate of a finite limit that Newton's method found from the curve."""
    assert flow.limit is not None
    z = flow.limit if flow.basis is None else flow.basis.T @ flow.limit
    face = Face.of(land.counts, land.E, np.ones(land.counts.matrix.nnz, bool))
    finite = Equilibrium.near(land, face, z) if face.dimension else None
    return FlowLimit("converges to a point", flow.reason, flow, face, finite)


def _diverging(
    land: Landscape, E: Floats, flow: Flow, deadline: float, progress: Progress | None
) -> FlowLimit:
    """Predict from a late point of the curve, compare with the rest of it, follow to the end, certify."""
    latest = LATE_ENOUGH
    while True:
        last = float(flow.log_time[-1])
        start = min(last - _KEPT, latest)
        row = min(max(int(np.searchsorted(flow.log_time, start)), 1), len(flow.log_time) - 2)
        prediction = _Prediction(land, flow.coordinates[row], float(flow.log_time[row]))
        # Steps of a flow without ties grow with log t, so that the next few may lie beyond that.
        until = min(
            last, max(4 * start, float(flow.log_time[min(row + 5, len(flow.log_time) - 1)]))
        )
        # It goes on beyond the curve: at a change of the selection a little time is a long way, which is no error.
        prediction.extend(until + 1, deadline)
        error = math.inf
        if prediction.phases:
            followed = flow.log_time <= min(until, float(prediction.log_time[-1]))
            there = flow.coordinates[row + 1 : int(followed.sum())]
            error = float(
                np.max(prediction.distance(there) / np.linalg.norm(there, axis=1), initial=-1.0)
            )
            error = error if len(there) else math.inf
        compared = (float(flow.log_time[row]), last, error)
        if (prediction.phases and error <= _ALLOWED) or time.monotonic() > deadline:
            break
        if last - _KEPT > start:  # the curve is long enough to begin later
            latest = 2 * start
            continue
        # Following the curve further makes sense where it ended because its ties had settled, and not too late.
        if not flow.settings.max_log_time <= last < _LONGEST:
            break
        left = max(deadline - time.monotonic(), 0.0)
        settings = replace(flow.settings, max_log_time=last + _KEPT, max_seconds=left)
        flow, latest = (
            gradient_flow(land.counts, E, land.w, flow.at(0), settings, after=flow),
            _LONGEST,
        )
        if flow.verdict == FINITE:
            return _certified_point(land, flow)
        if flow.log_time[-1] < last + _KEPT / 2:
            break
    if not prediction.phases:
        late = time.monotonic() > deadline or flow.seconds >= flow.settings.max_seconds
        words = f"at log t = {last:.4g} some score gaps neither settle nor grow like log t; a longer flow may decide"
        return FlowLimit("not settled", _LATE if late else words, flow, prediction=prediction)
    for far in (1e5, 4e5, 16e5):  # a direction may settle later
        if not prediction.trouble:
            prediction.extend(far, deadline, progress)
        limit = replace(
            _certified(land, flow, prediction, deadline), prediction=prediction, compared=compared
        )
        if prediction.trouble or limit.fate != "not settled":
            break
    if limit.fate != "not settled" and not error <= _ALLOWED:
        reason = f"the prediction from log t = {compared[0]:.4g} misses the flow by {error:.2g}; a longer flow would decide"
        return replace(
            limit,
            fate="not settled",
            reason=f"{reason} (apart from that: {limit.fate}, {limit.reason})",
        )
    return limit


def _certified(land: Landscape, flow: Flow, prediction: _Prediction, deadline: float) -> FlowLimit:
    """(F1), (F2) and (F3) on the last face."""
    phase = prediction.phases[-1]
    face, phi = phase.face, phase.slow
    limit = FlowLimit("not settled", prediction.trouble, flow, face, phase.finite)
    if prediction.trouble:
        return limit
    if len(phi.pairs) and (phi.without_force.all() or _second_order(land, phase)):
        words = "two documents have the same tied tokens but differ in a token whose forces cancel"
        return replace(
            limit,
            reason=f"{words}; only second-order terms act on that token, and these are not modelled",
        )
    if len(phi.pairs) and phase.finite.flat:
        # Other documents push p along the surface with a force of order one, and nothing restores it.
        return replace(
            limit,
            reason="the tied gaps are in balance on a whole surface, along which other documents move p",
        )
    if not len(phi.pairs) or phase.end == "still":
        norm = math.hypot(float(np.linalg.norm(phase.points[-1])), float(np.linalg.norm(flow.rest)))
        rests = f"the slow flow comes to rest at ‖p‖ = {norm:.6g}, a strict minimum of Φ"
        return replace(limit, fate="converges to a point", reason=rests)
    begun = time.monotonic()
    # Pairs that feel no force constrain nothing; they only have to separate.
    driven, left = (
        ~face.entries(land.counts, phi.pairs[phi.without_force]),
        max(deadline - begun, 1.0),
    )
    margin = max_margin(
        Face.only(land.counts, driven),
        land.E,
        face.mask[driven],
        near=phase.points[-1],
        max_seconds=left,
    )
    spent = {"margin": time.monotonic() - begun}
    limit = replace(limit, margin=replace(margin, p=flow.whole(margin.p)), seconds=spent)
    if margin.status == "stopped early":
        return replace(
            limit,
            reason=_LATE
            if time.monotonic() > deadline
            else "the max-margin problem was not solved",
        )
    # dq/dlog t at the end of the slow flow.
    unit, log_size = phi.slope(phase.slow_path[-1])
    velocity = unit * math.exp(min(phase.clock + log_size, STEEP))
    solved = margin.status == "solved"
    balance = _certify_balance(phi, face.outside.T @ margin.p, phase, velocity) if solved else None
    is_max_margin = balance is not None and balance.slowest > 1 - _CERTIFIED
    tight = np.flatnonzero((phi.gaps(velocity) <= 1 + _CONFIRMED) & ~phi.without_force)
    if balance is None and len(tight):
        # The shortest p with margin one on the pairs that are tight along the slow flow, if every other margin is larger.
        D = phi.F[phi.pairs[tight, 0]] - phi.F[phi.pairs[tight, 1]]
        nearby = np.linalg.lstsq(D, np.ones(len(D)), rcond=1e-10)[0]
        balance = _certify_balance(phi, nearby, phase, velocity)
    if balance is None:
        flat = "(F3) has no strict local minimum near the flow"
        why = flat if solved else f"(F2) is {margin.status}"
        return replace(limit, reason=f"{why}; a longer flow would decide")
    away = _angle(velocity, balance.direction)
    if away > _CONFIRMED:
        return replace(
            limit, balance=balance, reason=f"the slow flow is still {away:.2g} rad away from p̂"
        )
    k = face.dimension
    gaps = (
        f"{k} independent score gap{'s stay' if k != 1 else ' stays'} finite"
        if k
        else "no score gap stays finite"
    )
    pulling = (
        f"{balance.pulling} of them {verb(balance.pulling, 'work')}"
        if balance.pulling
        else "none works"
    )
    words = f"{gaps}; {len(balance.tight)} constraints are active, {pulling} against convergence"
    if balance.slowest <= 1 - _CERTIFIED:
        words += (
            f"; gaps on which no force acts grow more slowly, one like {balance.slowest:.3g} log t"
        )
    elif not is_max_margin:
        words += "; p̂ is not the max-margin direction: an active constraint works against convergence to it"
    # the part of ρ* + z* + c across p̂, whose length is the limit of angle · ‖p‖
    times, B = phase.log_time[-len(phase.slow_path) :], span_of(phi.F, balance.tight)
    row = min(int(np.searchsorted(times, math.sqrt(times[0] * times[-1]))), len(times) - 1)
    offset = phase.slow_path[row] - balance.direction * times[row]
    offset = offset + B @ (B.T @ (balance.rho - offset))
    balance = replace(balance, offset=offset)
    unit = balance.direction / np.linalg.norm(balance.direction)
    across = np.concatenate([offset - (offset @ unit) * unit, phase.finite.z, flow.rest])
    as_stated = k == 0 and is_max_margin and balance.pulling == 0
    return replace(
        limit,
        fate="diverges, Theorem 4.3" if as_stated else "diverges along p̂ with finite gaps",
        reason=words,
        balance=balance,
        is_max_margin=is_max_margin,
        direction=flow.whole(face.outside @ balance.direction),
        angle_constant=float(np.linalg.norm(across)),
    )


def _second_order(land: Landscape, phase: _Phase) -> bool:
    """Whether documents that agree on their selected types differ in a type on which forces cancel, whose value is not theirs."""
    # Cancelling forces of equal documents vanish to all orders: they have one f. These have several, which leaves weights squared.
    counts, face, pairs = land.counts, phase.face, phase.slow.pairs[phase.slow.without_force]
    other = (
        np.abs(land.w[counts.matrix.indices] - phase.finite.answers[counts.entry_documents]) > 1e-9
    )
    idle = face.entries(counts, pairs) & other
    documents = np.isin(face.own, pairs[:, 0])
    kinds = [
        Face.only(counts, mask).equal_documents[documents] for mask in (face.mask, face.mask | idle)
    ]
    return len(np.unique(kinds[0])) < len(np.unique(kinds[1]))


def _angle(p: Floats, direction: Floats) -> float:
    unit = direction / np.linalg.norm(direction)
    return math.atan2(float(np.linalg.norm(p - (p @ unit) * unit)), float(p @ unit))


def _certify_balance(
    phi: Exponentials, direction: Floats, phase: _Phase, velocity: Floats
) -> Balance | None:
    """(F3) by Newton's method from where the slow flow is; None where that reaches no strict minimum nearby."""
    gaps = phi.gaps(direction)
    tight = np.flatnonzero((gaps <= 1 + _CERTIFIED) & ~phi.without_force)
    pairs, m = phi.pairs[tight], len(phi.F)
    if not len(tight) or gaps[~phi.without_force].min() < 1 - _CERTIFIED or gaps.min() < _CONFIRMED:
        return None
    B = span_of(phi.F, pairs)
    begin = B.T @ (phase.slow_path[-1] - direction * float(phase.log_time[-1]))
    x, views = begin, phi.F @ B
    for _ in range(50):
        rho = views @ x
        force = phi.sign[tight] * np.exp(
            np.minimum(phi.log_k[tight] - (rho[pairs[:, 0]] - rho[pairs[:, 1]]), STEEP)
        )
        flow = np.bincount(pairs[:, 0], force, m) - np.bincount(pairs[:, 1], force, m)
        slope = B.T @ direction - flow @ views
        residual = float(np.linalg.norm(slope) / np.linalg.norm(direction))
        curvature, axes = np.linalg.eigh(laplacian_form(views, pairs, force))
        if residual < 1e-11 or curvature[0] <= 0:
            break
        step = axes @ ((axes.T @ -slope) / curvature)
        moved = views @ step
        x = x + step * min(1.0, 2.0 / float(np.abs(moved[pairs[:, 0]] - moved[pairs[:, 1]]).max()))
    drift, pulling = views @ (x - begin), int(np.sum(phi.sign[tight] < 0))
    # Where no pair pulls, Ψ is convex and has one minimum. With a weak force, a slow flow in its direction stays far away for long.
    near = float(np.abs(drift[pairs[:, 0]] - drift[pairs[:, 1]]).max())
    near = near if pulling or _angle(velocity, direction) > _CONFIRMED else 0.0
    # Rounding leaves some 1e-12 of the largest curvature.
    if residual > _CERTIFIED or curvature[0] <= 1e-9 * curvature[-1] or near > 1.0:
        return None
    least, spread = float(curvature[0]), float(curvature[0] / curvature[-1])
    slowest = float(gaps.min())
    return Balance(
        B @ x, pairs, pulling, least, spread, residual, direction, slowest, span=B, offset=B @ x
    )
