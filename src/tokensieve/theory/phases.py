"""What p does after the curve that can be computed: finite gaps that stand, the slow flow, and the faces that they end on.

Once the finite gaps of a face (`reduced`) have settled at z*, the rest of p follows the slow flow (`slow`). An unselected type
whose weight rises to e^{−8} ends the face: the loss restricted to the selected types and the newcomers is followed from there, in
a clock of its own, until it is seen which of them are tied; then the slow flow goes on.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tokensieve.progress import Progress
from tokensieve.text.counts import Counts, Floats, Ints
from tokensieve.theory.curve import Flow, FlowSettings, Verdict
from tokensieve.theory.flow import gradient_flow
from tokensieve.theory.reduced import Equilibrium, Face, face_of, restricted, settled_face, tied_types
from tokensieve.theory.selection import documents_of, highest, top_types
from tokensieve.theory.slow import NEAR, End, Exponentials, SlowPath, follow, slow_loss

# log t between the two points whose gaps are compared.
LOOK_BACK = 2.0
# Tolerance and longest log t of the flow that decides which newcomers stay.
RELAX_TOLERANCE, RELAX = 1e-6, 24.0
# Faces before the prediction is given up.
FACES = 200
# So many faces in a row that end where they begin go round in a circle.
CIRCLE = 10
# log t up to which the slow flow is followed.
FAR = 1e5
# Why a prediction that was given up ended.
LATE = "the time for it ended: give more --max-seconds"
TROUBLE = {End.STEPS: "the slow flow took too many steps", End.TIME: LATE}


@dataclass(frozen=True)
class Phase:
    """The flow on one face.

    Attributes:
        face, finite, slow: the selection, its finite part, and the slow flow's loss.
        path: the slow flow.
        points: p along it in r coordinates, shape (m, r).
        changed: documents whose highest type is another than at the end of the phase before.
    """

    face: Face
    finite: Equilibrium
    slow: Exponentials
    path: SlowPath
    points: Floats
    changed: Ints


@dataclass(frozen=True)
class Prediction:
    """The phases from one point of a flow on, and why the last one ended ("" where nothing is left to follow)."""

    phases: list[Phase]
    trouble: str

    @property
    def log_time(self) -> Floats:
        """log t of all points, shape (m,)."""
        return np.concatenate([phase.path.log_time for phase in self.phases])

    @property
    def points(self) -> Floats:
        """p in r coordinates, shape (m, r)."""
        return np.concatenate([phase.points for phase in self.phases])

    def at(self, log_time: Floats) -> Floats:
        """p at some times of its range, linear in log t between its points, shape (len(log_time), r)."""
        times, points = self.log_time, self.points
        place = np.clip(np.searchsorted(times, log_time, side="right"), 1, len(times) - 1)
        width = times[place] - times[place - 1]
        share = np.clip((log_time - times[place - 1]) / np.where(width > 0, width, 1.0), 0.0, 1.0)[:, None]
        return np.asarray((1 - share) * points[place - 1] + share * points[place])


def predict(
    counts: Counts,
    E: Floats,
    w: Floats,
    start: tuple[Floats, NDArray[np.bool_], float],
    far: float = FAR,
    deadline: float = math.inf,
    progress: Progress | None = None,
) -> Prediction:
    """Follow the finite part and the slow flow from a point of the curve, through changes of face.

    Args:
        counts: n documents over |S| types.
        E: embeddings, shape (|S|, r).
        w: values, shape (|S|,).
        start: p, shape (r,); the entries tied there, shape (nnz,); log t there.
        far: log t at which to stop.
        deadline: by time.monotonic(): what is being followed then is left off.
        progress: called with ("faces", share of `far` on a logarithmic scale).
    """
    (z, mask, log_time), phases = start, list[Phase]()
    clock = stood = log_time
    top = top_types(counts, E @ z)
    for _ in range(FACES):
        settled = settled_face(counts, E, w, mask, z, stood)
        if settled is None:
            return Prediction(phases, "the tied gaps reach no strict minimum")
        face, finite = settled
        phi = slow_loss(counts, E, w, face, finite)
        path = follow(phi, face.outside.T @ z, clock, log_time, far, deadline=deadline)
        points = path.q @ face.outside.T + finite.z
        now = top_types(counts, E @ points[0])
        phases.append(Phase(face, finite, phi, path, points, np.flatnonzero(now != top)))
        z, log_time, clock = points[-1], float(path.log_time[-1]), path.clock
        top = top_types(counts, E @ z)
        if progress is not None:
            progress("faces", min(1.0, math.log(max(log_time, 1.0)) / math.log(far)))
        if len(phases) >= CIRCLE and all(len(one.path.q) <= 3 for one in phases[-CIRCLE:]):
            return Prediction(phases, f"the selection keeps changing at log t = {log_time:.4g}")
        if path.end is not End.NEAR:
            return Prediction(phases, TROUBLE.get(path.end, ""))
        found = _relax(counts, E, w, _with_near(counts, E, face.mask, z), z, min(RELAX, log_time - 1), deadline)
        if time.monotonic() > deadline:
            return Prediction(phases, LATE)
        if found is None:
            return Prediction(phases, "a type came near, and the flow among the tied types did not settle")
        z, mask, clock, stood = found
        log_time = float(np.logaddexp(log_time, clock))
    return Prediction(phases, f"the selection changed {FACES} times")


def _with_near(
    counts: Counts, E: Floats, mask: NDArray[np.bool_], z: Floats, nats: float = NEAR + 2
) -> NDArray[np.bool_]:
    """A selection and all types within some nats of it."""
    u, document = E @ z, documents_of(counts)
    behind = highest(counts, u)[document] - u[counts.matrix.indices] - np.log(counts.matrix.data)
    return np.asarray(mask | (behind < nats))


def _relax(
    counts: Counts, E: Floats, w: Floats, mask: NDArray[np.bool_], z: Floats, far: float, deadline: float
) -> tuple[Floats, NDArray[np.bool_], float, float] | None:
    """The flow of the loss restricted to some types, until it shows which of them are tied.

    Returns:
        p, the tied entries, log t passed, and the log t at which p is known to be there still.
    """
    for _ in range(20):
        face = face_of(counts, E, mask)
        inner = restricted(counts, face.mask)
        if not inner.n_documents:
            return z, face.mask, -math.inf, far
        V = face.inside
        left = deadline - time.monotonic()
        if left <= 0:
            return None
        settings = FlowSettings(1e9, RELAX_TOLERANCE, 20_000, left, far)
        flow = gradient_flow(inner, E @ V, w, V.T @ z, settings)
        end = flow.p if flow.limit is None else flow.limit
        later = z + V @ (end - V.T @ z)
        stood = float(flow.log_time[-1])
        if flow.verdict is Verdict.FINITE:
            tied, stood = face.mask, far  # where it has come to rest it stays
        else:
            row = int(np.searchsorted(flow.log_time, flow.log_time[-1] - LOOK_BACK))
            row = min(max(row, 1), len(flow.log_time) - 2)  # the last step alone may be longer
            if row < 1:
                return None
            before = E @ (z + V @ (flow.at(row) - V.T @ z))
            passed = float(flow.log_time[-1] - flow.log_time[row])
            tied = face.mask & tied_types(counts, before, E @ later, passed, float(flow.log_time[-1]))
        wider = _with_near(counts, E, tied, later, NEAR / 2) | face.mask
        if np.array_equal(wider, face.mask):
            return later, tied, float(flow.log_time[-1]), stood
        mask = wider
    return None


def start_at(counts: Counts, E: Floats, flow: Flow, aim: float) -> tuple[Floats, NDArray[np.bool_], float]:
    """A point of the curve at about some log t, before its last: p, the entries that may be tied there, log t."""
    times = flow.log_time
    row = min(max(int(np.searchsorted(times, aim)), 2), max(len(times) - 2, 1))
    before = min(int(np.searchsorted(times, times[row] - LOOK_BACK)), row - 1)
    z, passed = flow.coordinates[row], float(times[row] - times[before])
    return z, tied_types(counts, E @ flow.coordinates[before], E @ z, passed, float(times[row])), float(times[row])
