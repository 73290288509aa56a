"""What p does after the curve that was computed: the slow flow, and the changes of the selection on its way.

Once the finite gaps have settled at z*, the rest of p follows the slow flow (`slow`). An unselected type whose weight rises to
e^{−8} ends it: from there the true flow is followed in local time (`flow.split`), until its ties have settled again.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from tokensieve.progress import Progress
from tokensieve.text.counts import Floats, Ints
from tokensieve.theory.flow.landscape import Landscape
from tokensieve.theory.flow.split import SplitFlow
from tokensieve.theory.flow.ties import Equilibrium, Face, equilibrium, settled_face
from tokensieve.theory.geometry import top_types
from tokensieve.theory.limit.slow import NEAR, End, Exponentials, SlowPath, follow, slow_loss

# Faces before a prediction is given up; and so many in a row that end where they begin go round in a circle.
FACES, CIRCLE = 200, 10
# The true flow in local time: tolerance of a step, and the longest clock.
TOLERANCE, LONGEST = 1e-5, 40.0
# Newton's method may move a score gap by so many nats where ties count as settled.
SETTLED_WITHIN = 0.1
# Why a prediction that was given up ended.
LATE = "the time limit was reached; allow more with --max-seconds"
TROUBLE = {End.STEPS: "the slow flow took too many steps", End.TIME: LATE}


@dataclass(frozen=True)
class Phase:
    """The slow flow between two changes of the selection.

    Attributes:
        face, finite, slow: the selection, its finite part, and the slow flow's loss.
        path: the slow flow.
        points: p in r coordinates along the local flow before it and along itself, shape (m, r).
        log_time: log t at them, shape (m,).
        changed: documents whose highest type is another than at the end of the phase before.
    """

    face: Face
    finite: Equilibrium
    slow: Exponentials
    path: SlowPath
    points: Floats
    log_time: Floats
    changed: Ints


class Prediction:
    """The phases from one point of a flow on; `extend` follows them further.

    Args:
        land: the loss in r coordinates.
        z: the point, shape (r,).
        log_time: log t there.

    Attributes:
        phases: what was followed so far.
        trouble: why it ended too early; "" where nothing is left to follow.
    """

    def __init__(self, land: Landscape, z: Floats, log_time: float) -> None:
        self.phases: list[Phase] = []
        self.trouble = ""
        self._land, self._z, self._clock, self._log_time = land, z, log_time, log_time
        self._between: list[tuple[Floats, float]] = []
        self._top = top_types(land.counts, land.E @ z)
        self._settled = settle(land, z, settled_face(land.counts, land.E, land.w, z, log_time))
        if self._settled is None:
            self.trouble = "the tied gaps have not settled"

    @property
    def log_time(self) -> Floats:
        """log t of all points, shape (m,)."""
        return np.concatenate([phase.log_time for phase in self.phases])

    @property
    def points(self) -> Floats:
        """p in r coordinates, shape (m, r)."""
        return np.concatenate([phase.points for phase in self.phases])

    @property
    def changes(self) -> list[tuple[float, float, int]]:
        """Of each change of the selection ‖p‖, log t, and how many documents have another highest type."""
        return [(float(np.linalg.norm(x.points[0])), float(x.log_time[0]), len(x.changed)) for x in self.phases[1:]]

    def extend(self, far: float, deadline: float = math.inf, progress: Progress | None = None) -> None:
        """Go on to a log t.

        Args:
            far: log t at which to stop.
            deadline: by time.monotonic(): what is being followed then is left off.
            progress: called with ("faces", share of `far` on a logarithmic scale).
        """
        while not self.trouble and self._log_time < far:
            end = self._slow(far, deadline)
            if progress is not None:
                progress("faces", min(1.0, math.log(max(self._log_time, 1.0)) / math.log(far)))
            last = self.phases[-CIRCLE:]
            if len(last) == CIRCLE and all(len(one.path.q) <= 3 for one in last):
                self.trouble = f"the selection keeps changing at log t = {self._log_time:.4g}"
            elif len(self.phases) == FACES:
                self.trouble = f"the selection changed {FACES} times"
            elif end is End.NEAR:
                self._local(deadline)
            else:
                self.trouble = TROUBLE.get(end, "")
                return

    def distance(self, points: Floats) -> Floats:
        """Distance of some points to the predicted path, shape (m,): a shift in time along it is no error."""
        path, out = self.points, np.empty(len(points))
        chords = np.diff(path, axis=0)
        lengths = np.maximum(np.einsum("ij,ij->i", chords, chords), np.finfo(float).tiny)
        for row, point in enumerate(points):
            along = np.clip(np.einsum("ij,ij->i", point - path[:-1], chords) / lengths, 0.0, 1.0)
            out[row] = np.linalg.norm(point - path[:-1] - along[:, None] * chords, axis=1).min()
        return out

    def _slow(self, far: float, deadline: float) -> End:
        """One phase of the slow flow."""
        assert self._settled is not None
        face, finite, phi = self._settled
        path = follow(phi, face.outside.T @ self._z, self._clock, self._log_time, far, deadline)
        points = path.q @ face.outside.T + finite.z
        top = top_types(self._land.counts, self._land.E @ points[0])
        changed = np.flatnonzero(top != self._top)
        times = path.log_time
        if self._between:
            local, when = zip(*self._between, strict=True)
            points, times = np.concatenate([local, points]), np.concatenate([when, times])
            self._between = []
        self.phases.append(Phase(face, finite, phi, path, points, times, changed))
        self._z, self._clock, self._log_time = points[-1], path.clock, float(path.log_time[-1])
        self._top = top_types(self._land.counts, self._land.E @ self._z)
        return path.end

    def _local(self, deadline: float) -> None:
        """The true flow in local time, until its ties have settled."""
        flow = SplitFlow(self._land, self._z, -math.inf, self._log_time, TOLERANCE, self.phases[-1].face)
        looked, self._settled = flow.looked, None
        while flow.solver.clock < LONGEST and flow.step():
            self._between.append((flow.solver.p, flow.solver.log_time))
            if time.monotonic() > deadline:
                self.trouble = LATE
                return
            if flow.looked != looked:
                looked = flow.looked
                self._settled = settle(self._land, flow.solver.p, flow.face)
            if self._settled is not None:
                solver = flow.solver
                self._z, self._clock, self._log_time = solver.p, solver.clock, solver.log_time
                return
        self.trouble = f"a type came near at log t = {self._log_time:.4g}, and the ties did not settle"


def settle(land: Landscape, z: Floats, face: Face) -> tuple[Face, Equilibrium, Exponentials] | None:
    """A face with its finite part and its slow loss, where all its ties have settled and no other type is near; else None.

    Args:
        land: the loss in r coordinates.
        z: the point, shape (r,).
        face: the ties there.
    """
    finite = equilibrium(land.counts, land.E, land.w, face, z)
    if finite is None or finite.moved > SETTLED_WITHIN:
        return None
    phi = slow_loss(land.counts, land.E, land.w, face, finite)
    near = phi.nearness(face.outside.T @ z).max(initial=-math.inf)
    return (face, finite, phi) if near <= -NEAR else None
