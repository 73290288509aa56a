"""What comes out: one run, an experiment over seeds and readings, and all experiments of one `reproduce`."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from scipy.stats import binomtest

from tokensieve.files import Content, csv_table
from tokensieve.reproduce.experiment import DEFAULT, FIXED, Experiment, Values
from tokensieve.reproduce.measures import Measurement

if TYPE_CHECKING:
    from tokensieve.blocks import Report

REPRODUCED, EXPLAINED, NOT_REPRODUCED, NOT_RUN = "reproduced", "explained", "not reproduced", "not run"


@dataclass(frozen=True)
class SeedRun:
    """What one run of an experiment measured, under one reading with one seed.

    Attributes:
        ours: the result in a sentence.
        measurements: the figures that decide the verdict, and those reported beside them; the same names for every seed.
        tables: name → table; "bins…" and "tokens…" where bins and token types are measured.
        accuracy: test accuracies, at the least validation loss and at the end of training.
        seed, settings: what was run.
        seconds: wall time.
        megabytes: the largest memory that its process had held by then.
        problem: why it failed; empty where it did not.
    """

    ours: str
    measurements: tuple[Measurement, ...]
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    accuracy: tuple[Measurement, ...] = ()
    seed: int = 0
    settings: Values = field(default_factory=dict)
    seconds: float = 0.0
    megabytes: float = 0.0
    problem: str = ""

    @property
    def passed(self) -> bool:
        """Whether every measurement lies within its bounds; a run that failed does not pass."""
        return not self.problem and all(one.passed for one in self.measurements)

    def to_dict(self) -> dict[str, object]:
        """The run's row in the summary."""
        row: dict[str, object] = {"seed": self.seed, "passed": self.passed, "seconds": self.seconds}
        row |= {"megabytes": self.megabytes, "problem": self.problem}
        if not self.problem:
            row["ours"] = self.ours
            row["figures"] = {one.name: _finite(one.value) for one in (*self.measurements, *self.accuracy)}
        return row


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

    def finished(self, reading: str = DEFAULT) -> list[SeedRun]:
        """The runs of a reading that did not fail."""
        return [run for run in self.runs.get(reading, ()) if not run.problem]

    def met(self, reading: str = DEFAULT) -> int:
        """Seeds in which every measurement of a reading passes."""
        return sum(run.passed for run in self.runs[reading])

    @property
    def explained_by(self) -> str | None:
        """The first other reading that is reproduced in more than half of the seeds."""
        return next((name for name in list(self.runs)[1:] if 2 * self.met(name) > len(self.runs[name])), None)

    @property
    def verdict(self) -> str:
        """By the default reading; "explained" where another is reproduced in most seeds and the default is not."""
        if not self.finished():
            return NOT_RUN
        if 2 * self.met() > len(self.runs[DEFAULT]):
            return REPRODUCED
        return EXPLAINED if self.explained_by else NOT_REPRODUCED

    @property
    def verdict_in_words(self) -> str:
        """The verdict, with the seeds in which it holds."""
        if self.verdict == EXPLAINED:
            name = str(self.explained_by)
            first = f"reproduced under reading “{name}” ({self.experiment.why(name)}) {self.seeds_in_words(name)}"
            return f"{first}; as first read {self.seeds_in_words()}"
        return f"{self.verdict} {self.seeds_in_words()}" if self.finished() else NOT_RUN

    def seeds_in_words(self, reading: str = DEFAULT) -> str:
        """In how many seeds a reading is reproduced, with Wilson's 95% interval: "in 4 of 5 seeds (95% CI 38% to 96%)"."""
        met, of = self.met(reading), len(self.runs[reading])
        found = binomtest(met, of).proportion_ci(method="wilson")
        return f"in {met} of {of} seed{'s' * (of != 1)} (95% CI {found.low:.0%} to {found.high:.0%})"

    def over_seeds(self, reading: str = DEFAULT, accuracy: bool = False) -> list[tuple[Measurement, list[float], int]]:
        """Each figure of a reading: as in the first seed, its value in every seed, and in how many seeds it passes."""
        rows = [run.accuracy if accuracy else run.measurements for run in self.finished(reading)]
        by_name = [{one.name: one for one in row} for row in rows]
        out = []
        for one in rows[0] if rows else ():
            these = [row[one.name] for row in by_name if one.name in row]
            out.append((one, [x.value for x in these], sum(x.passed for x in these)))
        return out

    def figures_in_words(self, reading: str = DEFAULT) -> str:
        """The judged and the prominent figures: median and range over seeds, or the sentence of the only one."""
        done = self.finished(reading)
        if len(done) == 1 and reading == DEFAULT:
            return done[0].ours
        figures = self.over_seeds(reading)
        return "; ".join(f"{m.name} {self.spread(values)}" for m, values, _ in figures if m.judged or m.prominent)

    @staticmethod
    def spread(values: Sequence[float]) -> str:
        """The median of a figure over seeds with its range, to three digits: "0.968 [0.899, 0.975]"."""
        middle = f"{np.median(values):.3f}"
        return middle if len(values) == 1 else f"{middle} [{min(values):.3f}, {max(values):.3f}]"

    @cached_property
    def tables(self) -> dict[str, pl.DataFrame]:
        """Tables over seeds of the default reading (see `_join_seeds`), without those of token types."""
        done = self.finished()
        names = [name for name in (done[0].tables if done else {}) if "token" not in done[0].tables[name].columns]
        return {name: _join_seeds([(run.seed, run.tables[name]) for run in done], name) for name in names}

    @property
    def seconds(self) -> float:
        """Of all runs, one after the other."""
        return sum(run.seconds for runs in self.runs.values() for run in runs)

    def to_dict(self) -> dict[str, object]:
        """The experiment's row in the summary."""
        e, done = self.experiment, self.finished()
        readings = []
        for name, runs in self.runs.items():
            found = binomtest(self.met(name), len(runs)).proportion_ci(method="wilson")
            row = {"reading": name, "met": self.met(name), "of": len(runs), "interval": (found.low, found.high)}
            readings.append(row | {"seeds": [run.to_dict() for run in runs]})
        megabytes = max((run.megabytes for runs in self.runs.values() for run in runs), default=0.0)
        return {
            "id": e.id,
            "claim": e.claim,
            "paper": e.paper,
            "ours": self.figures_in_words() if done else "",
            "verdict": self.verdict,
            "seconds": self.seconds,
            "criterion": e.criterion,
            "notes": list(e.notes) if done else [self.problem],
            "checks": [_figure_row(*row) for row in self.over_seeds()],
            "settings": dict(done[0].settings) if done else {},
            "criterion_fixed": FIXED,
            "verdict_in_words": self.verdict_in_words,
            "megabytes": megabytes,
            "accuracy": [_figure_row(*row) for row in self.over_seeds(accuracy=True)],
            "readings": readings,
        }


@dataclass(frozen=True)
class Reproduction:
    """All experiments of one `reproduce`, and how they were run.

    Attributes:
        results: one per experiment, in the paper's order.
        settings: name → value of every option that decides the results.
        version: of tokensieve.
        date: when it was finished, as ISO 8601.
        seconds: by name, wall time; "experiments" is that of all runs one after the other, also of those that an earlier
            command finished.
    """

    results: tuple[ExperimentResult, ...]
    settings: Values
    version: str
    date: str
    seconds: dict[str, float]

    own_files = (  # what an earlier result may have left
        r"table\.md|tables/[^/]+\.csv|pictures/(synthetic|one-layer|two-layer|key-query|mlp|multi-class|frozen|one-step-only|"
        r"diagnosis|dimension|beyond)\.(svg|png|pdf|csv)"
    )

    def tally(self) -> dict[str, int]:
        """Verdict → number of experiments."""
        count = Counter(result.verdict for result in self.results)
        return {verdict: count[verdict] for verdict in (REPRODUCED, EXPLAINED, NOT_REPRODUCED, NOT_RUN)}

    def report(self) -> Report:
        """The report: a table of verdicts, and a short section for each experiment."""
        from tokensieve.reproduce.report import compose_report

        return compose_report(self)

    def to_dict(self) -> dict[str, object]:
        """The summary: a row per experiment, and how it was made."""
        return {
            "experiments": [result.to_dict() for result in self.results],
            "verdicts": self.tally(),
            "settings": dict(self.settings),
            "seed": self.settings["seed"],
            "version": self.version,
            "date": self.date,
            "seconds": self.seconds,
        }

    def files(self) -> dict[str, Content]:
        """summary.json, and tables/EXPERIMENT-NAME.csv over seeds; those of token types stay with their runs."""
        found: dict[str, Content] = {
            "summary.json": json.dumps(self.to_dict(), ensure_ascii=False, indent=1, allow_nan=False)
        }
        for result in self.results:
            found |= {f"tables/{result.id}-{name}.csv": csv_table(table) for name, table in result.tables.items()}
        return found


def _join_seeds(tables: list[tuple[int, pl.DataFrame]], name: str) -> pl.DataFrame:
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
    columns = [pl.len().alias("seeds"), pl.mean("types"), pl.any("few"), pl.mean(*means)]
    columns += [pl.min(c).alias(c.replace("_mean", "_low")) for c in ends]
    columns += [pl.max(c).alias(c.replace("_mean", "_high")) for c in ends]
    return together.group_by("x").agg(columns).sort("x")


def _figure_row(one: Measurement, values: list[float], passed: int) -> dict[str, object]:
    """A figure's row in the summary; `value` is the median over seeds."""
    return {
        "name": one.name,
        "value": _finite(float(np.median(values))),
        "asked": one.bounds,
        "paper": one.paper,
        "ceiling": one.ceiling,
        "passed": passed == len(values),
        "values": [_finite(x) for x in values],
        "passed_seeds": passed,
    }


def _finite(x: float) -> float | None:
    """The number, or None where JSON has none for it."""
    return float(x) if math.isfinite(x) else None
