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
from tokensieve.theory.settings import FlowSettings


class Verdict(StrEnum):
    """What became of a curve."""

    DIVERGES = "diverges"
    FINITE = "finite limit"
    UNDECIDED = "undecided at the budget"


@dataclass(frozen=True)
class Track:
    """The rows of a curve, one per accepted step (row 0 is the start): what a checkpoint keeps.

    Attributes:
        coordinates: points of the curve in an orthonormal basis of the span of E, shape (m, r).
        arc: length of the curve, summed over its chords, shape (m,).
        log_time: log t, shape (m,); −∞ at the start.
        loss: L, shape (m,).
        log_gradient: log‖∇L‖, shape (m,); where ties have settled, of its part along V^⊥.
        decay: −d log‖∇L‖/ds, s the length, shape (m,).
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


@dataclass(frozen=True)
class Flow:
    """The curve followed so far, and what became of it.

    Attributes:
        verdict: whether p diverges, converges, or neither was seen.
        reason: the verdict in words.
        track: the rows of the curve.
        basis: of their coordinates, shape (d, r), or None when the coordinates are p itself.
        rest: the part of p outside the span of E, which never moves, shape (d,).
        limit: the finite point that p converges to, shape (d,), or None.
        limit_curvature: smallest curvature at the limit relative to the largest, where score gaps move; nan without limit.
        settings: the settings.
    """

    verdict: Verdict
    reason: str
    track: Track
    basis: Floats | None
    rest: Floats
    limit: Floats | None
    limit_curvature: float
    settings: FlowSettings

    @property
    def coordinates(self) -> Floats:
        """Points of the curve, shape (m, r)."""
        return self.track.coordinates

    @property
    def log_time(self) -> Floats:
        """log t, shape (m,)."""
        return self.track.log_time

    @property
    def rises(self) -> int:
        """Steps at which the computed loss rose."""
        return int(np.sum(np.diff(self.track.loss) > 0))

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
            "verdict": self.verdict, "reason": self.reason, "norm": float(self.norm[-1]), "arc": float(self.track.arc[-1]),
            "log_time": last if math.isfinite(last) else None, "loss": float(self.track.loss[-1]), "steps": len(self.track.arc) - 1,
            "limit_norm": None if self.limit is None else float(np.linalg.norm(self.limit)), "rises": self.rises,
            "seconds": self.track.seconds,
        }  # fmt: skip
