"""The curve that gradient flow traced: its points and figures, its verdict, and its file."""

from __future__ import annotations

import io
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from tokensieve.errors import InputError
from tokensieve.files import write_all
from tokensieve.text.counts import Floats

DIVERGES, FINITE, UNDECIDED = "diverges", "finite limit", "undecided at the budget"


@dataclass(frozen=True)
class FlowSettings:
    """How far and how exactly to follow the curve.

    Attributes:
        max_norm: stop when ‖p‖ reaches this.
        tolerance: local error of a step relative to ‖p‖'s components; the curve moves in proportion to it.
        max_steps: accepted steps before the verdict is "undecided at the budget".
        max_seconds: wall time of one call before the same.
    """

    max_norm: float = 20_000.0
    tolerance: float = 1e-5
    max_steps: int = 3_000
    max_seconds: float = math.inf


@dataclass(frozen=True)
class Flow:
    """The curve followed so far, one row per accepted step (row 0 is the start), and what became of it.

    Attributes:
        verdict: "diverges", "finite limit", "undecided at the budget", or "running" for a state saved on the way.
        reason: the verdict in words.
        coordinates: points of the curve in an orthonormal basis of the span of E, shape (m, r).
        basis: that basis, shape (d, r), or None when the coordinates are p itself.
        rest: the part of p outside the span, which never moves, shape (d,).
        arc: s, shape (m,).
        log_time: log t, shape (m,); −∞ at the start.
        loss: L, shape (m,).
        log_gradient: log‖∇L‖, shape (m,).
        decay: −d log‖∇L‖/ds, shape (m,).
        limit: the finite point that p converges to, shape (d,), or None.
        limit_curvature: smallest curvature at the limit relative to the largest, where scores differ; nan without limit.
        leg: of the leg in progress: its first row, first step, gains of both clocks, number, and the rises before it.
        rises: steps at which the computed loss rose, by rounding: a step that raises it by more is taken back.
        seconds: wall time spent.
        settings: the settings.
        fingerprint: of data, embeddings, start and tolerance; resuming checks it.
    """

    verdict: str
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
    leg: Floats
    rises: int
    seconds: float
    settings: FlowSettings
    fingerprint: str

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

    def save(self, path: Path) -> None:
        """Write the whole state to an .npz file, whole or not at all."""
        arrays = {name: value for name, value in self.__dict__.items() if value is not None and name != "settings"}
        arrays |= {f"settings_{name}": value for name, value in asdict(self.settings).items()}
        content = io.BytesIO()
        np.savez(content, allow_pickle=False, **arrays)
        write_all(path.parent, {path.name: content.getvalue()})

    @classmethod
    def load(cls, path: Path) -> Flow:
        """Read a state written by `save`.

        Raises:
            InputError: not such a file.
        """
        try:
            with np.load(path, allow_pickle=False) as file:
                values = {name: file[name] if file[name].ndim else file[name].item() for name in file.files}
            chosen = {
                name.removeprefix("settings_"): values.pop(name)
                for name in list(values)
                if name.startswith("settings_")
            }
            return cls(**({"basis": None, "limit": None} | values), settings=FlowSettings(**chosen))
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
        except (ValueError, TypeError, KeyError, EOFError, BadZipFile) as error:
            raise InputError(f"{path} is not a saved flow, or is damaged: remove it to start again") from error
