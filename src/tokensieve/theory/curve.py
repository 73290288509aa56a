"""The curve that gradient flow traced: its points and figures, its verdict, and its checkpoint."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np

from tokensieve import checkpoint
from tokensieve.text.counts import Floats


class Verdict(StrEnum):
    """What became of a curve."""

    DIVERGES = "diverges"
    FINITE = "finite limit"
    UNDECIDED = "undecided at the budget"


@dataclass(frozen=True)
class FlowSettings:
    """How far and how exactly to follow the curve.

    Attributes:
        max_norm: stop when ‖p‖ reaches this.
        tolerance: local error of a step relative to ‖p‖'s components; the curve moves in proportion to it.
        max_steps: accepted steps before the verdict is "undecided at the budget".
        max_seconds: wall time of one call before the same.
        max_log_time: log t before the same.
    """

    max_norm: float = 20_000.0
    tolerance: float = 1e-5
    max_steps: int = 3_000
    max_seconds: float = math.inf
    max_log_time: float = math.inf


@dataclass(frozen=True)
class Flow:
    """The curve followed so far, one row per accepted step (row 0 is the start), and what became of it.

    Attributes:
        verdict: whether p diverges, converges, or neither was seen.
        reason: the verdict in words.
        coordinates: points of the curve in an orthonormal basis of the span of E, shape (m, r).
        basis: that basis, shape (d, r), or None when the coordinates are p itself.
        rest: the part of p outside the span, which never moves, shape (d,).
        arc: length of the curve, summed over its chords, shape (m,).
        log_time: log t, shape (m,); −∞ at the start.
        loss: L, shape (m,).
        log_gradient: log‖∇L‖, shape (m,).
        decay: −d log‖∇L‖/ds, s the length, shape (m,).
        limit: the finite point that p converges to, shape (d,), or None.
        limit_curvature: smallest curvature at the limit relative to the largest, where score gaps move; nan without limit.
        rises: steps at which the computed loss rose.
        seconds: wall time spent.
        settings: the settings.
    """

    verdict: Verdict
    reason: str
    coordinates: Floats
    basis: Floats | None
    rest: Floats
    arc: Floats
    log_time: Floats
    loss: Floats
    log_gradient: Floats
    decay: Floats
    limit: Floats | None
    limit_curvature: float
    rises: int
    seconds: float
    settings: FlowSettings

    @property
    def norm(self) -> Floats:
        """‖p‖ along the curve, shape (m,)."""
        return np.asarray(np.hypot(np.linalg.norm(self.coordinates, axis=1), np.linalg.norm(self.rest)))

    @property
    def p(self) -> Floats:
        """The last point, shape (d,)."""
        return self.at(-1)

    def at(self, row: int) -> Floats:
        """p at a row of the curve, shape (d,)."""
        z = self.coordinates[row]
        return np.asarray(self.rest + (z if self.basis is None else self.basis @ z))

    def cosine(self, direction: Floats) -> Floats:
        """Cosine of p and a direction of R^d along the curve, shape (m,)."""
        inside = direction if self.basis is None else self.basis.T @ direction
        dots = self.coordinates @ inside + float(self.rest @ direction)
        return np.asarray(dots / (self.norm * np.linalg.norm(direction)))

    def angle(self, direction: Floats) -> Floats:
        """Angle in radians between p and a direction along the curve, shape (m,); exact also where the cosine rounds to one."""
        unit = direction / np.linalg.norm(direction)
        inside = unit if self.basis is None else self.basis.T @ unit
        outside = unit - (inside if self.basis is None else self.basis @ inside)
        dots = self.coordinates @ inside + float(self.rest @ unit)
        across = np.linalg.norm(self.coordinates - np.outer(dots, inside), axis=1)
        beyond = np.linalg.norm(self.rest - np.outer(dots, outside), axis=1)
        return np.asarray(np.arctan2(np.hypot(across, beyond), dots))

    def to_dict(self) -> dict[str, Any]:
        """Verdict and last figures, ready for JSON."""
        last = float(self.log_time[-1])
        return {
            "verdict": self.verdict, "reason": self.reason, "norm": float(self.norm[-1]), "arc": float(self.arc[-1]),
            "log_time": last if math.isfinite(last) else None, "loss": float(self.loss[-1]), "steps": len(self.arc) - 1,
            "limit_norm": None if self.limit is None else float(np.linalg.norm(self.limit)), "rises": self.rises,
            "seconds": self.seconds,
        }  # fmt: skip


@dataclass(frozen=True)
class Track:
    """The rows of a curve that is being followed: what a checkpoint keeps.

    Attributes:
        coordinates, arc, log_time, loss, log_gradient, decay: as in `Flow`.
        coherence: ‖∇L‖ over the sum of the sizes of its terms, shape (m,).
        seconds: wall time spent on them.
    """

    coordinates: Floats
    arc: Floats
    log_time: Floats
    loss: Floats
    log_gradient: Floats
    decay: Floats
    coherence: Floats
    seconds: float

    def save(self, path: Path, mark: str) -> None:
        """Write the rows as a checkpoint of the run with this fingerprint."""
        arrays = {name: value for name, value in self.__dict__.items() if name != "seconds"}
        checkpoint.save(path, mark, arrays, {"seconds": self.seconds})

    @classmethod
    def load(cls, path: Path, mark: str) -> Track | None:
        """The rows of a checkpoint of this run; None where there is no file.

        Raises:
            InputError: the file is damaged, no checkpoint, or of another run.
        """
        found = checkpoint.load(path, mark)
        return None if found is None else cls(**found[0], seconds=float(found[1]["seconds"]))
