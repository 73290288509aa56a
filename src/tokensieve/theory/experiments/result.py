"""The result of one experiment over its seeds and readings, as data."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import polars as pl

from tokensieve.evidence.intervals import Share
from tokensieve.theory.experiments.experiment import DEFAULT, FIXED, Experiment, SeedRun
from tokensieve.theory.experiments.measures import Measurement

REPRODUCED = "reproduced"
EXPLAINED = "explained"
NOT_REPRODUCED = "not reproduced"
NOT_RUN = "not run"
VERDICTS = (REPRODUCED, EXPLAINED, NOT_REPRODUCED, NOT_RUN)
MIN_FRACTION_OF_SEEDS = 0.5  # must be exceeded: half of the seeds are not most


@dataclass(frozen=True)
class FigureOverSeeds:
    """One figure of a reading over the seeds that finished.

    Attributes:
        figure: as the first seed has it: name, bounds, the paper's own.
        values: its value in every seed.
        n_passed: in how many seeds it lies within its bounds.
    """

    figure: Measurement
    values: tuple[float, ...]
    n_passed: int

    @property
    def median(self) -> float:
        """The median over seeds."""
        return float(np.median(self.values))

    @property
    def in_words(self) -> str:
        """The median over seeds with its range, to three digits: "0.968 [0.899, 0.975]"."""
        if len(self.values) == 1:
            return f"{self.median:.3f}"
        return f"{self.median:.3f} [{min(self.values):.3f}, {max(self.values):.3f}]"

    def to_dict(self) -> dict[str, object]:
        """The figure's row in the summary; `value` is the median."""
        return {
            "name": self.figure.name,
            "value": _or_none(self.median),
            "asked": self.figure.bounds,
            "paper": self.figure.paper,
            "ceiling": self.figure.ceiling,
            "passed": self.n_passed == len(self.values),
            "values": [_or_none(value) for value in self.values],
            "passed_seeds": self.n_passed,
        }


@dataclass(frozen=True)
class ExperimentResult:
    """An experiment over seeds and readings.

    Attributes:
        experiment: what was run.
        runs: reading → its runs, the default reading first; empty where nothing could be run.
        problem: why nothing could be run.
    """

    experiment: Experiment
    runs: Mapping[str, tuple[SeedRun, ...]] = field(default_factory=dict)
    problem: str = ""

    @property
    def id(self) -> str:
        """The experiment's name."""
        return self.experiment.id

    @property
    def other_readings(self) -> list[str]:
        """The readings that were run beside the default one."""
        return [name for name in self.runs if name != DEFAULT]

    def finished(self, reading: str = DEFAULT) -> list[SeedRun]:
        """The runs of a reading that did not fail."""
        return [run for run in self.runs.get(reading, ()) if not run.problem]

    def met(self, reading: str = DEFAULT) -> Share:
        """The number of seeds in which every figure of a reading passes, and of all seeds."""
        runs = self.runs[reading]
        return Share.count(sum(run.passed for run in runs), len(runs))

    def is_reproduced(self, reading: str = DEFAULT) -> bool:
        """Whether a reading meets every criterion in more than half of the seeds."""
        return self.met(reading).value > MIN_FRACTION_OF_SEEDS

    @property
    def explained_by(self) -> str | None:
        """The first other reading that is reproduced in more than half of the seeds."""
        for reading in self.other_readings:
            if self.is_reproduced(reading):
                return reading
        return None

    @property
    def verdict(self) -> str:
        """By the default reading; "explained" where only another is reproduced."""
        if not self.finished():
            return NOT_RUN
        if self.is_reproduced():
            return REPRODUCED
        return EXPLAINED if self.explained_by else NOT_REPRODUCED

    @property
    def verdict_cell(self) -> str:
        """The verdict for a table: "reproduced (4 of 5 seeds)"."""
        if self.verdict == NOT_RUN:
            return NOT_RUN
        if self.verdict == EXPLAINED:
            name = str(self.explained_by)
            seeds = f"{self.seeds_met(name)}; {self.seeds_met()} under the default"
            return f"reproduced under interpretation “{name}” ({seeds})"
        return f"{self.verdict} ({self.seeds_met()})"

    def seeds_met(self, reading: str = DEFAULT) -> str:
        """In how many seeds a reading meets every criterion: "4 of 5 seeds"."""
        met = self.met(reading)
        noun = "seed" if met.of == 1 else "seeds"
        return f"{met.as_counts} {noun}"

    def _seeds_with_interval(self, reading: str = DEFAULT) -> str:
        met = self.met(reading)
        return f"{self.seeds_met(reading)} (95% CI {met.low:.0%} to {met.high:.0%})"

    @property
    def verdict_in_words(self) -> str:
        """The verdict with its seeds: "reproduced in 4 of 5 seeds (95% CI 38% to 96%)"."""
        if self.verdict == NOT_RUN:
            return NOT_RUN
        default = f"in {self._seeds_with_interval()}"
        if self.verdict == EXPLAINED:
            name = str(self.explained_by)
            note = self.experiment.reading(name).note
            interpretation = f"“{name}” ({note}) in {self._seeds_with_interval(name)}"
            return f"reproduced under interpretation {interpretation}; under the default {default}"
        if self.verdict == NOT_REPRODUCED:
            return f"{NOT_REPRODUCED}: every criterion is met {default}"
        return f"{REPRODUCED} {default}"

    def over_seeds(self, reading: str = DEFAULT) -> list[FigureOverSeeds]:
        """Each measured figure of a reading over its seeds."""
        return _over_seeds([run.measurements for run in self.finished(reading)])

    def accuracy_over_seeds(self) -> list[FigureOverSeeds]:
        """Each test accuracy of the default reading over its seeds."""
        return _over_seeds([run.accuracy for run in self.finished()])

    def in_words(self, reading: str = DEFAULT) -> str:
        """What we see in a sentence, with medians over seeds; the problem where nothing was run."""
        if not self.finished(reading):
            return self.problem or self.runs[reading][0].problem
        figures = [row for row in self.over_seeds(reading) if row.figure.is_shown]
        try:
            sentence = self.experiment.sees.format(*(row.median for row in figures))
        except IndexError:  # a run of another version may have fewer figures than its sentence
            return "; ".join(f"{row.figure.name} {row.in_words}" for row in figures)
        return re.sub(r"(?<!\w)-(?=\d)", "−", sentence)

    @cached_property
    def tables(self) -> dict[str, pl.DataFrame]:
        """Tables of the default reading over seeds (see `join_seeds`), without those of types."""
        runs = self.finished()
        if not runs:
            return {}
        return {
            name: join_seeds({run.seed: run.tables[name] for run in runs}, name)
            for name, table in runs[0].tables.items()
            if "token" not in table.columns
        }

    @property
    def seconds(self) -> float:
        """Seconds of all runs added up."""
        return sum(run.seconds for run in self._all_runs())

    def _all_runs(self) -> list[SeedRun]:
        return [run for runs in self.runs.values() for run in runs]

    def to_dict(self) -> dict[str, object]:
        """The experiment's row in the summary."""
        experiment = self.experiment
        runs = self.finished()
        row: dict[str, object] = {
            "id": experiment.id,
            "claim": experiment.claim,
            "paper": experiment.paper,
            "ours": "",
            "verdict": self.verdict,
            "seconds": self.seconds,
            "criterion": experiment.criterion,
            "notes": [self.problem],
            "checks": [figure.to_dict() for figure in self.over_seeds()],
            "settings": {},
            "criterion_fixed": FIXED,
            "verdict_in_words": self.verdict_in_words,
            "megabytes": max((run.megabytes for run in self._all_runs()), default=0.0),
            "accuracy": [figure.to_dict() for figure in self.accuracy_over_seeds()],
            "readings": [self._reading_row(reading) for reading in self.runs],
        }
        if runs:
            row["ours"] = self.in_words()
            row["notes"] = list(experiment.notes)
            row["settings"] = dict(runs[0].settings)
        return row

    def _reading_row(self, reading: str) -> dict[str, object]:
        """A reading in the summary: in how many seeds it met every criterion, and each seed."""
        met = self.met(reading)
        return {
            "reading": reading,
            "met": met.found,
            "of": met.of,
            "interval": (met.low, met.high),
            "seeds": [self._seed_row(reading, run) for run in self.runs[reading]],
        }

    def _seed_row(self, reading: str, run: SeedRun) -> dict[str, object]:
        """One run in the summary: whether it passed, what it cost, and its figures."""
        row: dict[str, object] = {
            "seed": run.seed,
            "passed": run.passed,
            "seconds": run.seconds,
            "megabytes": run.megabytes,
            "problem": run.problem,
        }
        if not run.problem:
            alone = ExperimentResult(self.experiment, {reading: (run,)})
            figures = (*run.measurements, *run.accuracy)
            row["ours"] = alone.in_words(reading)
            row["figures"] = {figure.name: _or_none(figure.value) for figure in figures}
        return row


def _over_seeds(rows: Sequence[tuple[Measurement, ...]]) -> list[FigureOverSeeds]:
    """The figures of the first row, each with its values in all rows that have it."""
    if not rows:
        return []
    by_name = [{figure.name: figure for figure in row} for row in rows]
    joined = []
    for figure in rows[0]:
        same = [row[figure.name] for row in by_name if figure.name in row]
        values = tuple(figure_of_seed.value for figure_of_seed in same)
        joined.append(
            FigureOverSeeds(figure, values, sum(figure_of_seed.passed for figure_of_seed in same))
        )
    return joined


def join_seeds(tables: Mapping[int, pl.DataFrame], name: str) -> pl.DataFrame:
    """One table of several seeds.

    Tables of bins (names that begin with "bins") become one row per bin: x, seeds (in which it is
    not empty), types (the mean), few (in any seed), and for every other column its mean, with the
    lowest and highest bin mean of a seed as {quantity}_low and {quantity}_high. All others are
    stacked, with a column `seed`.

    Args:
        tables: by seed.
        name: of the table, the same in every seed.
    """
    parts = [table.select(pl.lit(seed).alias("seed"), pl.all()) for seed, table in tables.items()]
    stacked = pl.concat(parts, how="diagonal_relaxed")
    if not name.startswith("bins"):
        return stacked
    means = pl.selectors.ends_with("_mean")
    columns = [
        pl.len().alias("seeds"),
        pl.mean("types"),
        pl.any("few"),
        pl.exclude("seed", "x", "types", "few").mean(),
        means.min().name.replace("_mean$", "_low"),
        means.max().name.replace("_mean$", "_high"),
    ]
    return stacked.group_by("x").agg(columns).sort("x")


def _or_none(x: float) -> float | None:
    """The number, or None where JSON has none for it."""
    return float(x) if math.isfinite(x) else None
