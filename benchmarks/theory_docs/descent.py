"""Gradient descent on the `<cls>` vector in steps of fixed size, on all documents or on
minibatches, beside gradient flow.

    p ← p − η ∇L_B(p),   B all documents, or the next minibatch
    of a new random order of them in every epoch.

After k steps the time is t = η k (with minibatches too: each of them estimates the same gradient),
so a run is compared with the flow at the same log t.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tokensieve.arrays import Floats
from tokensieve.errors import InputError
from tokensieve.progress import Progress
from tokensieve.text.counts import Counts
from tokensieve.theory.flow.landscape import Landscape
from tokensieve.theory.flow.solve import Flow
from tokensieve.theory.geometry import coordinates


@dataclass(frozen=True)
class Descent:
    """A run, one row per recorded step.

    Attributes:
        step_size: η.
        batch: documents per step; None for all of them.
        steps: steps taken, shape (m,), increasing.
        coordinates: p after them, in the coordinates of `Flow`, shape (m, r).
        rest: length of the part of p that never moves.
        loss: L on all documents, shape (m,).
    """

    step_size: float
    batch: int | None
    steps: Floats
    coordinates: Floats
    rest: float
    loss: Floats

    @property
    def log_time(self) -> Floats:
        """log(η k), shape (m,)."""
        return np.asarray(np.log(self.step_size * self.steps))

    @property
    def norm(self) -> Floats:
        """‖p‖, shape (m,)."""
        return np.asarray(np.hypot(np.linalg.norm(self.coordinates, axis=1), self.rest))

    def beside(self, flow: Flow) -> tuple[Floats, Floats, Floats]:
        """log t of the rows in the flow's range, ‖p − p_flow‖/‖p_flow‖ there, and the angle between
        both in radians.

        The flow is taken linear in log t between its rows.
        """
        rows = np.flatnonzero(
            (self.log_time >= flow.log_time[1]) & (self.log_time <= flow.log_time[-1])
        )
        at, times = self.log_time[rows], flow.log_time[1:]
        place = np.clip(np.searchsorted(times, at), 1, len(times) - 1)
        share = ((at - times[place - 1]) / (times[place] - times[place - 1]))[:, None]
        points = flow.coordinates[1:]
        there, here = (
            (1 - share) * points[place - 1] + share * points[place],
            self.coordinates[rows],
        )
        sizes = [np.hypot(np.linalg.norm(x, axis=1), self.rest) for x in (there, here)]
        away = np.linalg.norm(here - there, axis=1)
        chord = np.linalg.norm(here / sizes[1][:, None] - there / sizes[0][:, None], axis=1)
        chord = np.hypot(chord, self.rest * (1 / sizes[1] - 1 / sizes[0]))
        return at, away / sizes[0], 2 * np.arcsin(np.minimum(chord / 2, 1.0))


def descend(
    counts: Counts,
    E: Floats,
    w: Floats,
    p: Floats,
    step_size: float,
    steps: int,
    batch: int | None = None,
    seed: int = 0,
    records: int = 60,
    progress: Progress | None = None,
) -> Descent:
    """Gradient descent of p from a start, the embeddings fixed.

    Args:
        counts: n documents of two classes over |S| types.
        E: embeddings, shape (|S|, d).
        w: values E v, shape (|S|,).
        p: the start, shape (d,).
        step_size: η > 0.
        steps: how many.
        batch: documents per step; None for all.
        seed: of the minibatches.
        records: rows of the result, evenly spaced in the logarithm of the steps.
        progress: called with ("descent", share done).

    Raises:
        InputError: a step size, a number of steps or a batch that is no positive number.
    """
    n = counts.n_documents
    if (
        not (math.isfinite(step_size) and step_size > 0)
        or steps < 1
        or (batch is not None and not 1 <= batch <= n)
    ):
        raise InputError(
            f"a step size and a number of steps above zero and a batch of 1 to {n} are needed, "
            f"not {step_size!r}, {steps!r} and {batch!r}"
        )
    reduced, basis = coordinates(E)
    z = p if basis is None else basis.T @ p
    rest = 0.0 if basis is None else float(np.linalg.norm(p - basis @ z))
    kept = set(np.unique(np.geomspace(1, steps, records).round().astype(int)).tolist())
    whole, rng = Landscape(counts, reduced, w), np.random.default_rng(seed)
    taken, points, losses = list[int](), list[Floats](), list[float]()
    order, at = rng.permutation(n), 0
    with Flow.one_thread():
        for step in range(1, steps + 1):
            land = whole
            if batch is not None:
                if at + batch > n:
                    order, at = rng.permutation(n), 0
                land, at = (
                    Landscape(counts.rows(np.sort(order[at : at + batch])), reduced, w),
                    at + batch,
                )
            downhill, log_size = land.slope(z)
            z = z + step_size * math.exp(log_size) * downhill
            if step in kept:
                taken.append(step)
                points.append(z)
                losses.append(whole.point(z)[0])
                if progress is not None:
                    progress("descent", step / steps)
    return Descent(
        step_size, batch, np.array(taken, float), np.array(points), rest, np.array(losses)
    )
