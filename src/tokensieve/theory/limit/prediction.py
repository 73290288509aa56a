"""What p does after the computed curve: phases of the slow flow, and the true flow between them.

While every unselected type is far below the selected ones, p follows the slow flow (`flow.slow`).
A type that comes near ends such a phase. From there the true flow is followed in local time, until
its ties have settled again.
"""

from __future__ import annotations

import itertools
import math
import time
from dataclasses import dataclass

import numpy as np

from tokensieve.arrays import Floats
from tokensieve.progress import Progress
from tokensieve.theory.flow.equilibrium import Equilibrium
from tokensieve.theory.flow.face import Face
from tokensieve.theory.flow.landscape import Landscape
from tokensieve.theory.flow.slow import NEAR, End, Exponentials
from tokensieve.theory.flow.solve import SplitFlow

# Why a prediction that ran out of time ended.
OUT_OF_TIME = "the time limit was reached; allow more with --max-seconds"
# More phases than this are no way to a limit; the longest on reviews had 69.
MAX_PHASES = 200
# If each of the last ten phases ended within two steps, the selection keeps changing.
RECENT_PHASES = 10
SHORT_PATH = 3
# Local time e^40 later the ties should have settled.
MAX_LOCAL_CLOCK = 40.0
# The local flow is short, so that it can afford the accuracy of the curve.
LOCAL_TOLERANCE = 1e-4
# A type that came near has moved away when it is this many nats further off.
AWAY = 0.5
# Newton's method may move a settled gap by this many nats.
MAX_MOVED = 0.1


@dataclass(frozen=True)
class SettledTies:
    """A face whose finite gaps have settled, and the slow flow on it."""

    face: Face
    finite: Equilibrium
    slow: Exponentials


@dataclass(frozen=True)
class SelectionChange:
    """A change of the selection: where, when, and in how many documents the highest type is
    another."""

    norm: float
    log_time: float
    documents: int


@dataclass(frozen=True)
class Phase:
    """The slow flow between two changes of the selection, and the local flow before it.

    Attributes:
        ties: the face and the slow flow.
        end: why the phase ended.
        slow_path: its path on V^⊥, shape (j, r − k); they are the last of `points`.
        clock: log t at the last point, counted from where the clock was last set back.
        points, log_time: p in r coordinates, shape (m, r), and log t there.
        n_changed: documents whose highest type is another than at the end of the phase before.
    """

    ties: SettledTies
    end: End
    slow_path: Floats
    clock: float
    points: Floats
    log_time: Floats
    n_changed: int


class Prediction:
    """The phases from a point on. `extend` follows them; `trouble` is why they ended early, or
    ""."""

    def __init__(self, land: Landscape, z: Floats, log_time: float) -> None:
        self.phases: list[Phase] = []
        self._land = land
        self._z = z
        self._clock = log_time
        self._log_time = log_time
        self._local_points: list[Floats] = []
        self._local_times: list[float] = []
        self._ties = settled_ties(land, Face.settled(land, z, log_time), z)
        self.trouble = "" if self._ties else "the tied gaps have not settled"

    @property
    def log_time(self) -> Floats:
        return np.concatenate([phase.log_time for phase in self.phases])

    @property
    def points(self) -> Floats:
        return np.concatenate([phase.points for phase in self.phases])

    @property
    def changes(self) -> list[SelectionChange]:
        """Where the predicted path goes over to another selection, in order of time."""
        changes = []
        for before, after in itertools.pairwise(self.phases):
            is_same_face = np.array_equal(after.ties.face.mask, before.ties.face.mask)
            if after.n_changed or not is_same_face:
                norm = float(np.linalg.norm(after.points[0]))
                changes.append(SelectionChange(norm, float(after.log_time[0]), after.n_changed))
        return changes

    def extend(
        self, far: float, deadline: float = math.inf, progress: Progress | None = None
    ) -> None:
        """Go on to a log t; what is being followed at the deadline, by time.monotonic(), is
        dropped."""
        while not self.trouble and self._log_time < far:
            end = self._slow_phase(far, deadline)
            if progress is not None:
                share = math.log(max(self._log_time, 1.0)) / math.log(far)
                progress("faces", min(1.0, share))
            if self._keeps_changing():
                self.trouble = f"the selection keeps changing at log t = {self._log_time:.4g}"
            elif len(self.phases) == MAX_PHASES:
                self.trouble = f"the selection changed {MAX_PHASES} times"
            elif end == "near":
                self._follow_local_time(deadline)
            else:
                if end == "steps":
                    self.trouble = "the slow flow took too many steps"
                elif end == "time":
                    self.trouble = OUT_OF_TIME
                return

    def distance(self, points: Floats) -> Floats:
        """Distance of points to the predicted path, shape (m,): a shift in time along it is no
        error.

        The path is the polygon through its points. The nearest point of a chord a b to p is
        a + s (b − a), with s = (p − a)·(b − a)/|b − a|² cut to [0, 1].

        Args:
            points: shape (m, r).
        """
        path = self.points
        chords = np.diff(path, axis=0, append=path[-1:])  # a slow flow at rest at once is a point
        path = np.concatenate([path, path[-1:]])
        squares = np.einsum("ij,ij->i", chords, chords)
        squares = np.maximum(squares, np.finfo(float).tiny)
        distances = np.empty(len(points))
        for row, point in enumerate(points):
            from_start = point - path[:-1]
            share = np.clip(np.einsum("ij,ij->i", from_start, chords) / squares, 0.0, 1.0)
            across = from_start - share[:, None] * chords
            distances[row] = np.linalg.norm(across, axis=1).min()
        return distances

    def _keeps_changing(self) -> bool:
        recent = self.phases[-RECENT_PHASES:]
        if len(recent) < RECENT_PHASES:
            return False
        return all(len(phase.slow_path) <= SHORT_PATH for phase in recent)

    def _slow_phase(self, far: float, deadline: float) -> End:
        """One phase of the slow flow."""
        assert self._ties is not None
        face = self._ties.face
        finite = self._ties.finite
        start = face.outside.T @ self._z
        slow = self._ties.slow.follow(start, self._clock, self._log_time, far, deadline)
        points = slow.points @ face.outside.T + finite.z
        # Before the first phase stands the point that it began with.
        earlier = self.phases[-1].points[-1] if self.phases else self._z
        n_changed = int(np.sum(self._land.top_types(earlier) != self._land.top_types(points[0])))
        log_time = slow.log_time
        if self._local_points:
            points = np.concatenate([self._local_points, points])
            log_time = np.concatenate([self._local_times, log_time])
            self._local_points = []
            self._local_times = []
        self.phases.append(
            Phase(self._ties, slow.end, slow.points, slow.clock, points, log_time, n_changed)
        )
        self._z = points[-1]
        self._clock = slow.clock
        self._log_time = float(log_time[-1])
        return slow.end

    def _follow_local_time(self, deadline: float) -> None:
        """The true flow, until its ties have settled and the near type has moved away or is
        tied."""
        face = self.phases[-1].ties.face
        flow = SplitFlow(self._land, self._z, -math.inf, self._log_time, LOCAL_TOLERANCE, face)
        looked = flow.looked
        began = self._log_time
        self._ties = None
        while flow.solver.clock < MAX_LOCAL_CLOCK and flow.step():
            solver = flow.solver
            self._z = solver.p
            self._clock = solver.clock
            self._log_time = solver.log_time
            self._local_points.append(self._z)
            self._local_times.append(self._log_time)
            if time.monotonic() > deadline:
                self.trouble = OUT_OF_TIME
                return
            if flow.looked != looked and flow.face is not None:
                looked = flow.looked
                self._ties = settled_ties(self._land, flow.face, self._z, NEAR + AWAY)
                if self._ties is not None:
                    return
        self.trouble = (
            f"another token came close to a tie at log t = {began:.4g}, and the ties did not settle"
        )


def settled_ties(land: Landscape, face: Face, z: Floats, away: float = NEAR) -> SettledTies | None:
    """The ties at a point if all have settled and every other type weighs less than e^{−away}."""
    finite = Equilibrium.near(land, face, z)
    if finite is None or finite.moved > MAX_MOVED:
        return None
    slow = Exponentials.of(land, face, finite)
    largest = slow.log_weights(face.outside.T @ z).max(initial=-math.inf)
    return SettledTies(face, finite, slow) if largest <= -away else None
