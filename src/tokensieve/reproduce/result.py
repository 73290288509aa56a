"""What an experiment is, and what comes out of one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from tokensieve.progress import Progress, part
from tokensieve.reproduce.data import Data

REPRODUCED, NOT_REPRODUCED, NOT_RUN = "reproduced", "not reproduced", "not run"
SCALES = ("quick", "paper")


@dataclass(frozen=True)
class Check:
    """One figure against the bounds that its experiment declares.

    Attributes:
        name: what is measured.
        value: the figure; nan fails.
        low, high: bounds; None where there is none. A figure without bounds is stated beside the others and decides nothing.
        paper: the paper's own figure, where it gives one.
    """

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    paper: float | None = None

    @property
    def passed(self) -> bool:
        """Whether the figure lies within its bounds."""
        low = -math.inf if self.low is None else self.low
        high = math.inf if self.high is None else self.high
        return low <= self.value <= high

    @property
    def asked(self) -> str:
        """The bounds in words."""
        if self.low is None and self.high is None:
            return "stated"
        if self.low is not None and self.high is not None:
            return f"{self.low:g} to {self.high:g}"
        return f"at least {self.low:g}" if self.low is not None else f"at most {self.high:g}"

    def __str__(self) -> str:
        beside = "" if self.paper is None else f"; paper {self.paper:g}"
        return f"{self.name} {self.value:.3g} ({self.asked}{beside})"


@dataclass(frozen=True)
class View:
    """What may be drawn of a finding's tables: names only, nothing drawn.

    Attributes:
        name: of the file, without its ending.
        title: what is shown, for people.
        table: of bins (columns x, types, {y}_mean, {y}_sd), or of measurements to be joined by lines.
        y: "value" or "score" for bins; the column of the measurements for lines.
        x: what is on the horizontal axis: for bins the column of `points` that they are bins of, for lines a column.
        points: table of token types with the columns x and y, drawn behind the bins; empty for lines.
        paper: table of the paper's means, with the columns x and y; empty where the paper gives none.
        by: column that tells the lines apart; empty for bins.
        log_x: whether x is best shown as a logarithm.
    """

    name: str
    title: str
    table: str
    y: str
    x: str = "posterior_difference"
    points: str = ""
    paper: str = ""
    by: str = ""
    log_x: bool = False


@dataclass(frozen=True)
class Finding:
    """What one run of an experiment measured.

    Attributes:
        ours: the outcome in a sentence.
        checks: the figures that decide the verdict.
        tables: name → table; "bins" and "tokens" where bins and token types are measured.
        views: what may be drawn of the tables.
        notes: what was tried, and which settings are ours.
    """

    ours: str
    checks: tuple[Check, ...]
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    views: tuple[View, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Result:
    """A finding with what it belongs to: the row of the summary, and everything behind it.

    Attributes:
        id, claim, paper, ours: the experiment, what the paper says, its figures, and ours.
        verdict: "reproduced" if every check passes, "not reproduced" if one does not, or "not run".
        seconds: wall time; 0 where it was not run.
        criterion: how the verdict is reached.
        settings: everything that decides the outcome, the seed too.
        checks, tables, views, notes: as in `Finding`; for "not run" the reason is the first note.
    """

    id: str
    claim: str
    paper: str
    ours: str
    verdict: str
    seconds: float
    criterion: str
    settings: dict[str, Any]
    checks: tuple[Check, ...] = ()
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    views: tuple[View, ...] = ()
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The summary's row: id, claim, paper, ours, verdict, seconds, and how the verdict was reached."""
        names = ("id", "claim", "paper", "ours", "verdict", "seconds", "criterion")
        checks = [
            {"name": c.name, "value": c.value if math.isfinite(c.value) else None, "asked": c.asked,
             "paper": c.paper, "passed": c.passed} for c in self.checks
        ]  # fmt: skip
        row: dict[str, Any] = {name: getattr(self, name) for name in names}
        return row | {"checks": checks, "notes": list(self.notes), "settings": self.settings}

    def kept(self) -> dict[str, Any]:
        """All but the tables, in plain types; `from_kept` is the inverse."""
        plain = asdict(self)
        del plain["tables"]
        return plain

    @classmethod
    def from_kept(cls, kept: Mapping[str, Any], tables: Mapping[str, pl.DataFrame]) -> Result:
        """The result that `kept` and its tables came from."""
        lists: dict[str, Any] = {
            "checks": tuple(Check(**check) for check in kept["checks"]),
            "views": tuple(View(**view) for view in kept["views"]),
            "notes": tuple(kept["notes"]),
        }
        return cls(**{**kept, **lists}, tables=dict(tables))


@dataclass(frozen=True)
class Bench:
    """What an experiment works with.

    Attributes:
        data: the real data sets.
        settings: the experiment's settings at the scale asked for.
        seed: of every draw.
        tell: receives what is being done and the share of this experiment that is done.
        folder: keeps states on the way, so that an interrupted run goes on; an empty or fitting one.
    """

    data: Data
    settings: Mapping[str, Any]
    seed: int
    tell: Progress
    folder: Path

    def part(self, low: float, high: float) -> Progress:
        """A receiver for one part of the experiment: its 0 … 1 is shown as low … high."""
        return part(self.tell, low, high)


@dataclass(frozen=True)
class Experiment:
    """One experiment of the paper.

    Attributes:
        id: its name on the command line.
        claim: what the paper says.
        paper: the paper's figures, in a sentence.
        criterion: what "reproduced" asks for.
        settings: scale → settings.
        seconds: scale → about how long it takes on two cores.
        run: measures.
        needs: the data sets it reads.
        torch: whether it needs PyTorch.
    """

    id: str
    claim: str
    paper: str
    criterion: str
    settings: Mapping[str, Mapping[str, Any]]
    seconds: Mapping[str, float]
    run: Callable[[Bench], Finding]
    needs: tuple[str, ...] = ()
    torch: bool = False
