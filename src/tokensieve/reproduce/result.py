"""What comes out: one run, an experiment over seeds and readings, and all experiments of one `reproduce`."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from tokensieve.evidence.shares import Share
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
        measurements: the figures that decide the verdict, and those reported beside them; the same names for every seed.
        tables: name → table; "bins…" and "tokens…" where bins and token types are measured.
        accuracy: test accuracies, at the least validation loss and at the end of training.
        seed, settings: what was run.
        seconds: wall time.
        megabytes: the largest memory that its process had held by then.
        problem: why it failed; empty where it did not.
    """

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

    def met(self, reading: str = DEFAULT) -> Share:
        """Seeds in which every measurement of a reading passes, of all."""
        return Share.count(sum(run.passed for run in self.runs[reading]), len(self.runs[reading]))

    @property
    def explained_by(self) -> str | None:
        """The first other reading that is reproduced in more than half of the seeds."""
        return next((name for name in list(self.runs)[1:] if self.met(name).value > 0.5), None)

    @property
    def verdict(self) -> str:
        """By the default reading; "explained" where another is reproduced in most seeds and the default is not."""
        if not self.finished():
            return NOT_RUN
        if self.met().value > 0.5:
            return REPRODUCED
        return EXPLAINED if self.explained_by else NOT_REPRODUCED

    @property
    def verdict_in_words(self) -> str:
        """The verdict, with the seeds in which it holds: "reproduced in 4 of 5 seeds (95% CI 38% to 96%)"."""

        def seeds(reading: str) -> str:
            met = self.met(reading)
            return f"in {met.counted} seed{'s' * (met.of != 1)} (95% CI {met.low:.0%} to {met.high:.0%})"

        if self.verdict == EXPLAINED:
            name = str(self.explained_by)
            why = self.experiment.why(name)
            return f"reproduced under reading “{name}” ({why}) {seeds(name)}; as first read {seeds(DEFAULT)}"
        return f"{self.verdict} {seeds(DEFAULT)}" if self.finished() else NOT_RUN

    def over_seeds(self, reading: str = DEFAULT, accuracy: bool = False) -> list[tuple[Measurement, list[float], int]]:
        """Each figure of a reading: as in the first seed, its value in every seed, and in how many seeds it passes."""
        rows = [run.accuracy if accuracy else run.measurements for run in self.finished(reading)]
        by_name = [{one.name: one for one in row} for row in rows]
        out = []
        for one in rows[0] if rows else ():
            these = [row[one.name] for row in by_name if one.name in row]
            out.append((one, [x.value for x in these], sum(x.passed for x in these)))
        return out

    def in_words(self, reading: str = DEFAULT) -> str:
        """What we see in a sentence, the experiment's own with medians over seeds; the problem where nothing was run."""
        if not self.finished(reading):
            return self.problem or self.runs[reading][0].problem
        shown = [(one, values) for one, values, _ in self.over_seeds(reading) if one.judged or one.prominent]
        try:
            said = self.experiment.sees.format(*(float(np.median(values)) for _, values in shown))
        except IndexError:
            return "; ".join(f"{one.name} {self.spread(values)}" for one, values in shown)
        return re.sub(r"(?<!\w)-(?=\d)", "−", said)

    @staticmethod
    def spread(values: Sequence[float]) -> str:
        """The median of a figure over seeds with its range, to three digits: "0.968 [0.899, 0.975]"."""
        middle = f"{np.median(values):.3f}"
        return middle if len(values) == 1 else f"{middle} [{min(values):.3f}, {max(values):.3f}]"

    @cached_property
    def tables(self) -> dict[str, pl.DataFrame]:
        """Tables over seeds of the default reading (see `_join_seeds`), without those of token types."""
        done = self.finished()
        names = [name for name, table in (done[0].tables if done else {}).items() if "token" not in table.columns]
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
            met, seeds = self.met(name), []
            for run in runs:
                row: dict[str, object] = {"seed": run.seed, "passed": run.passed, "seconds": run.seconds}
                row |= {"megabytes": run.megabytes, "problem": run.problem}
                if not run.problem:
                    row["ours"] = ExperimentResult(e, {name: (run,)}).in_words(name)
                    row["figures"] = {one.name: _finite(one.value) for one in (*run.measurements, *run.accuracy)}
                seeds.append(row)
            interval = met.low, met.high
            readings.append({"reading": name, "met": met.found, "of": met.of, "interval": interval, "seeds": seeds})
        return {
            "id": e.id,
            "claim": e.claim,
            "paper": e.paper,
            "ours": self.in_words() if done else "",
            "verdict": self.verdict,
            "seconds": self.seconds,
            "criterion": e.criterion,
            "notes": list(e.notes) if done else [self.problem],
            "checks": [_figure_row(*row) for row in self.over_seeds()],
            "settings": dict(done[0].settings) if done else {},
            "criterion_fixed": FIXED,
            "verdict_in_words": self.verdict_in_words,
            "megabytes": max((run.megabytes for runs in self.runs.values() for run in runs), default=0.0),
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
        summary = json.dumps(self.to_dict(), ensure_ascii=False, indent=1, allow_nan=False)
        found: dict[str, Content] = {"summary.json": summary}
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
    row: dict[str, object] = {
        "name": one.name,
        "value": _finite(float(np.median(values))),
        "asked": one.bounds,
        "paper": one.paper,
    }
    row |= {"ceiling": one.ceiling, "passed": passed == len(values), "values": [_finite(x) for x in values]}
    return row | {"passed_seeds": passed}


def _finite(x: float) -> float | None:
    """The number, or None where JSON has none for it."""
    return float(x) if math.isfinite(x) else None
