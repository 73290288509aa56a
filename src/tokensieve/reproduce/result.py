"""What an experiment is, and what comes out of one run of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from tokensieve.progress import Progress, part
from tokensieve.reproduce.data import Data

SCALES = ("quick", "paper")
SEEDS = {"quick": 5, "paper": 3}  # how many, unless the caller chooses
DEFAULT = "default"  # the reading of the paper that an experiment takes unless another is named
FIXED = "2026-11-21"  # when the criteria and readings were written down: 0.1's figures for seed 0 were known, no others


@dataclass(frozen=True)
class Check:
    """One figure against the bounds that its experiment declares.

    Attributes:
        name: what is measured.
        value: the figure; nan fails.
        low, high: bounds; None where there is none. A figure without bounds is stated beside the others and decides nothing.
        paper: the paper's own figure, where it gives one.
        ceiling: the most that the figure can reach, where that is less than it seems (see `shape.ceilings`).
        prominent: whether it belongs in the one sentence of the outcome although it may decide nothing.
    """

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    paper: float | None = None
    ceiling: float | None = None
    prominent: bool = False

    @property
    def judged(self) -> bool:
        """Whether the figure has bounds."""
        return self.low is not None or self.high is not None

    @property
    def passed(self) -> bool:
        """Whether the figure lies within its bounds."""
        low = -math.inf if self.low is None else self.low
        high = math.inf if self.high is None else self.high
        return not self.judged or low <= self.value <= high

    @property
    def asked(self) -> str:
        """The bounds in words."""
        if self.low is None and self.high is None:
            return "stated"
        if self.low is not None and self.high is not None:
            return f"{self.low:.3g} to {self.high:.3g}"
        return f"at least {self.low:.3g}" if self.low is not None else f"at most {self.high:.3g}"

    def __str__(self) -> str:
        beside = "" if self.paper is None else f"; paper {self.paper:g}"
        return f"{self.name} {self.value:.3g} ({self.asked}{beside})"


@dataclass(frozen=True)
class View:
    """What may be drawn of a finding's tables: names only, nothing drawn.

    Attributes:
        name: of the file, without its ending.
        title: what is shown, for people.
        table: of bins (columns x, types, few, {y}_mean, {y}_sd, and paper_{y} where the paper gives means), or of
            measurements to be joined by lines.
        y: "value" or "score" for bins; the column of the measurements for lines.
        x: what is on the horizontal axis: for bins the column of `points` that they are bins of, for lines a column.
        points: table of token types with the columns x and y, drawn behind the bins; empty for lines.
        by: column that tells the lines apart; empty for bins.
        log_x: whether x is best shown as a logarithm.
    """

    name: str
    title: str
    table: str
    y: str
    x: str = "posterior_difference"
    points: str = ""
    by: str = ""
    log_x: bool = False


@dataclass(frozen=True)
class Finding:
    """What one run of an experiment measured.

    Attributes:
        ours: the outcome in a sentence.
        checks: the figures that decide the verdict, and those stated beside them; the same names for every seed.
        tables: name → table; "bins" and "tokens" where bins and token types are measured.
        views: what may be drawn of the tables.
        notes: what was tried, and which settings are ours.
        accuracy: test accuracies, at the least validation loss and at the end of training.
    """

    ours: str
    checks: tuple[Check, ...]
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    views: tuple[View, ...] = ()
    notes: tuple[str, ...] = ()
    accuracy: tuple[Check, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every check passes."""
        return all(check.passed for check in self.checks)

    def kept(self) -> dict[str, Any]:
        """All but the tables, in plain types; `from_kept` is the inverse."""
        plain = asdict(self)
        del plain["tables"]
        return plain

    @classmethod
    def from_kept(cls, kept: Mapping[str, Any], tables: Mapping[str, pl.DataFrame]) -> Finding:
        """The finding that `kept` and its tables came from."""
        return cls(
            kept["ours"],
            tuple(Check(**check) for check in kept["checks"]),
            dict(tables),
            tuple(View(**view) for view in kept["views"]),
            tuple(kept["notes"]),
            tuple(Check(**check) for check in kept["accuracy"]),
        )


@dataclass(frozen=True)
class Reading:
    """Another way to read what the paper leaves open.

    Attributes:
        name: on the command line.
        why: what is read otherwise, and what it might explain.
        settings: what it changes.
        later: whether it was thought of after figures of the default reading had been seen.
    """

    name: str
    why: str
    settings: Mapping[str, Any]
    later: bool = False

    def in_words(self) -> str:
        """What is read otherwise, and whether that was thought of before the runs."""
        return self.why + (" (added after figures of the default reading had been seen)" if self.later else "")


@dataclass(frozen=True)
class Bench:
    """What an experiment works with.

    Attributes:
        data: the real data sets.
        settings: the experiment's settings at its scale, under its reading.
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

    @property
    def start_seed(self) -> int:
        """Of the model's random start: the seed, unless a reading holds it fixed."""
        return int(self.settings.get("start_seed", self.seed))

    @property
    def data_seed(self) -> int:
        """Of the draw of documents: the seed, unless a reading holds it fixed."""
        return int(self.settings.get("data_seed", self.seed))


@dataclass(frozen=True)
class Experiment:
    """One experiment of the paper.

    Attributes:
        id: its name on the command line.
        claim: what the paper says.
        paper: the paper's figures, in a sentence.
        criterion: what "reproduced" means, fixed on `FIXED`.
        settings: scale → settings.
        seconds: scale → about how long one seed takes on two cores.
        run: measures.
        needs: the data sets it reads.
        torch: whether it needs PyTorch.
        readings: other ways to read what the paper leaves open.
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
    readings: tuple[Reading, ...] = ()
