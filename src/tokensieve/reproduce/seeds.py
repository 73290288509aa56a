"""An experiment over seeds and readings: shares of seeds with intervals, figures with their range, tables with bands."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from scipy.stats import binomtest

from tokensieve.reproduce.result import FIXED, Check, Experiment, Finding

REPRODUCED, EXPLAINED, NOT_REPRODUCED, NOT_RUN = "reproduced", "explained", "not reproduced", "not run"
VERDICTS = (REPRODUCED, EXPLAINED, NOT_REPRODUCED, NOT_RUN)


@dataclass(frozen=True)
class Run:
    """One run of an experiment under one reading with one seed.

    Attributes:
        reading, seed, settings: what was run.
        finding: what came out; None where the run failed.
        seconds: wall time.
        megabytes: the largest memory that its process had held by then.
        problem: why it failed; empty where it did not.
    """

    reading: str
    seed: int
    settings: dict[str, Any]
    finding: Finding | None
    seconds: float
    megabytes: float
    problem: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The run's row in the summary."""
        found = self.finding
        row: dict[str, Any] = {"seed": self.seed, "passed": found is not None and found.passed}
        row |= {"seconds": self.seconds, "megabytes": self.megabytes, "problem": self.problem}
        if found is not None:
            row["ours"] = found.ours
            row["figures"] = {check.name: finite(check.value) for check in (*found.checks, *found.accuracy)}
        return row


@dataclass(frozen=True)
class Spread:
    """One figure over seeds.

    Attributes:
        check: the figure of the first seed: its name, bounds, the paper's figure and the ceiling.
        values: the figure of each seed.
        passed: seeds in which it lies within its bounds.
    """

    check: Check
    values: tuple[float, ...]
    passed: int

    @property
    def middle(self) -> float:
        """The median over seeds; nan if any is."""
        return float(np.median(self.values))

    def in_words(self) -> str:
        """Median and range, to three digits."""
        if len(self.values) == 1:
            return f"{self.middle:.3f}"
        return f"{self.middle:.3f} [{min(self.values):.3f}, {max(self.values):.3f}]"

    def to_dict(self) -> dict[str, Any]:
        """The figure's row in the summary; `value` is the median over seeds."""
        c = self.check
        return {
            "name": c.name, "value": finite(self.middle), "asked": c.asked, "paper": c.paper, "ceiling": c.ceiling,
            "passed": self.passed == len(self.values), "values": [finite(x) for x in self.values], "passed_seeds": self.passed,
        }  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """An experiment under one reading, over seeds."""

    reading: str
    runs: tuple[Run, ...]

    @property
    def findings(self) -> list[Finding]:
        """Of the runs that did not fail."""
        return [run.finding for run in self.runs if run.finding is not None]

    @property
    def met(self) -> int:
        """Seeds in which every check passes."""
        return sum(found.passed for found in self.findings)

    @property
    def mostly(self) -> bool:
        """Whether that is in more than half of the seeds."""
        return 2 * self.met > len(self.runs)

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval of the share of seeds."""
        found = binomtest(self.met, len(self.runs)).proportion_ci(method="wilson")
        return float(found.low), float(found.high)

    def in_words(self) -> str:
        """ "in 4 of 5 seeds (95 % interval 38 to 96 %)"."""
        low, high = self.interval
        return f"in {self.met} of {len(self.runs)} seeds (95 % interval {low:.0%} to {high:.0%})"

    @cached_property
    def figures(self) -> tuple[Spread, ...]:
        """Every check over seeds."""
        return _spreads([found.checks for found in self.findings])

    @property
    def main_figures(self) -> str:
        """The judged and the prominent figures, in words."""
        return "; ".join(f"{f.check.name} {f.in_words()}" for f in self.figures if f.check.judged or f.check.prominent)

    @cached_property
    def accuracy(self) -> tuple[Spread, ...]:
        """Every accuracy over seeds."""
        return _spreads([found.accuracy for found in self.findings])

    @cached_property
    def tables(self) -> dict[str, pl.DataFrame]:
        """Tables over seeds (see `over_seeds`), without those of token types."""
        if not self.findings:
            return {}
        first = self.findings[0].tables
        kept = [(run.seed, run.finding.tables) for run in self.runs if run.finding is not None]
        return {
            name: over_seeds([(seed, tables[name]) for seed, tables in kept], name)
            for name in first if "token" not in first[name].columns
        }  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """The reading's row in the summary."""
        runs = [run.to_dict() for run in self.runs]
        return {
            "reading": self.reading,
            "met": self.met,
            "of": len(self.runs),
            "interval": self.interval,
            "seeds": runs,
        }


@dataclass(frozen=True)
class Result:
    """An experiment over seeds and readings: the row of the summary, and everything behind it.

    Attributes:
        experiment: what was run.
        outcomes: the default reading first; empty where nothing could be run.
        problem: why nothing could be run.
    """

    experiment: Experiment
    outcomes: tuple[Outcome, ...] = ()
    problem: str = ""

    @property
    def id(self) -> str:
        """The experiment's name."""
        return self.experiment.id

    @property
    def default(self) -> Outcome | None:
        """Under the default reading; None where nothing could be run."""
        return self.outcomes[0] if self.outcomes and self.outcomes[0].findings else None

    @property
    def explained_by(self) -> Outcome | None:
        """The first other reading that is reproduced in most seeds."""
        return next((one for one in self.outcomes[1:] if one.mostly), None)

    @property
    def verdict(self) -> str:
        """By the default reading, "explained" where another is reproduced in most seeds and the default is not."""
        if self.default is None:
            return NOT_RUN
        if self.default.mostly:
            return REPRODUCED
        return EXPLAINED if self.explained_by else NOT_REPRODUCED

    @property
    def verdict_in_words(self) -> str:
        """The verdict with its share of seeds."""
        if self.default is None:
            return NOT_RUN
        text = f"{self.verdict} {self.default.in_words()}"
        if other := self.explained_by if self.verdict == EXPLAINED else None:
            return f"{NOT_REPRODUCED}: {self.default.in_words()}; {EXPLAINED}: reading “{other.reading}” {other.in_words()}"
        return text if self.verdict == REPRODUCED else f"{NOT_REPRODUCED}: {self.default.in_words()}"

    @property
    def ours(self) -> str:
        """The sentence of the only seed, or the judged figures over seeds."""
        if self.default is None:
            return ""
        found = self.default.findings
        if len(found) == 1:
            return found[0].ours
        return self.default.main_figures

    @property
    def runs(self) -> list[Run]:
        """Of all readings."""
        return [run for one in self.outcomes for run in one.runs]

    @property
    def seconds(self) -> float:
        """Of all runs, one after the other."""
        return sum(run.seconds for run in self.runs)

    @property
    def megabytes(self) -> float:
        """The largest memory that a process of it held."""
        return max((run.megabytes for run in self.runs), default=0.0)

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes of the default reading, or why nothing could be run."""
        return self.default.findings[0].notes if self.default else tuple(filter(None, [self.problem]))

    def to_dict(self) -> dict[str, Any]:
        """The summary's row: the keys of 0.1, and what the seeds and readings gave."""
        e, one = self.experiment, self.default
        row = {"id": e.id, "claim": e.claim, "paper": e.paper, "ours": self.ours, "verdict": self.verdict}
        row |= {"seconds": self.seconds, "criterion": e.criterion, "notes": list(self.notes)}  # type: ignore[dict-item]
        return row | {
            "checks": [f.to_dict() for f in one.figures] if one else [],
            "settings": one.runs[0].settings if one else {},
            "criterion_fixed": FIXED, "verdict_in_words": self.verdict_in_words, "megabytes": self.megabytes,
            "accuracy": [f.to_dict() for f in one.accuracy] if one else [],
            "readings": [outcome.to_dict() for outcome in self.outcomes],
        }  # fmt: skip


def over_seeds(tables: list[tuple[int, pl.DataFrame]], name: str) -> pl.DataFrame:
    """One table of several seeds.

    Tables of bins (names that begin with "bins") become one row per bin: x, seeds (in which it is not empty), types (the mean),
    few (in any seed), and for every other column its mean, with the least and the largest bin mean of a seed as {of}_low and
    {of}_high. All others are put below each other behind a column `seed`.
    """
    parts = [table.select(pl.lit(seed).alias("seed"), pl.all()) for seed, table in tables]
    together = pl.concat(parts, how="diagonal_relaxed")
    if not name.startswith("bins"):
        return together
    means = [c for c in together.columns if c not in ("seed", "x", "types", "few")]
    ends = [c for c in means if c.endswith("_mean")]
    return together.group_by("x").agg(
        pl.len().alias("seeds"), pl.mean("types"), pl.any("few"), pl.mean(*means),
        *(pl.min(c).alias(c.replace("_mean", "_low")) for c in ends),
        *(pl.max(c).alias(c.replace("_mean", "_high")) for c in ends),
    ).sort("x")  # fmt: skip


def finite(x: float) -> float | None:
    """The number, or None where JSON has none for it."""
    return float(x) if math.isfinite(x) else None


def _spreads(rows: list[tuple[Check, ...]]) -> tuple[Spread, ...]:
    """The checks of each seed, by name; all seeds have the same ones."""
    by_name = [{check.name: check for check in row} for row in rows]
    out = []
    for check in rows[0] if rows else ():
        these = [row[check.name] for row in by_name if check.name in row]
        out.append(Spread(check, tuple(c.value for c in these), sum(c.passed for c in these)))
    return tuple(out)
