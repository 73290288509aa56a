"""Results: one run, an experiment over seeds and readings, and all experiments of one `reproduce`, with their report."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files

import numpy as np
import polars as pl

from tokensieve.evidence.intervals import Share
from tokensieve.files import Content, csv_table
from tokensieve.report.blocks import Block, Column, Picture, Report, Section, Style, Table, Text
from tokensieve.theory.experiments.bench import TITLES
from tokensieve.theory.experiments.experiment import DEFAULT, FIXED, Experiment, Values
from tokensieve.theory.experiments.measures import SYMBOLS, Measurement
from tokensieve.wording import subscripts

REPRODUCED, EXPLAINED, NOT_REPRODUCED, NOT_RUN = (
    "reproduced",
    "explained",
    "not reproduced",
    "not run",
)
_PAPER = (
    "Attention with Trained Embeddings Provably Selects Important Tokens (Wu et al., NeurIPS 2025)"
)
HOW_TO_READ = (
    f"The criteria and interpretations were fixed on {FIXED}, when only version 0.1's results for seed 0 were known. "
    "Interpretations added later are marked. An experiment counts as reproduced if more than half of the seeds meet every "
    "criterion. Figures are medians over seeds, with the minimum and maximum in brackets.",
    "The posterior difference P(1|s) − P(0|s) of a token type is how much more often it occurs in documents of the second class. "
    "E_sᵀv, its value, is what it adds to the prediction where it is attended to; E_sᵀp, its score, decides how much it is "
    "attended to. Bins are the paper's own; bins of fewer than three types count only for table C.",
    "The paper's rows are themselves noisy. The best possible correlation is that of the best smooth curve (a line, a sign or a "
    "tanh for values, |x − c|^γ for scores) with the paper's row; a correlation must reach nine tenths of it.",
)


@dataclass(frozen=True)
class SeedRun:
    """What one run of an experiment measured, under one reading with one seed."""

    # the figures that decide the verdict, and those reported beside them; the same names for every seed
    measurements: tuple[Measurement, ...]
    # name → table; "bins…" and "tokens…" where bins and token types are measured
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    accuracy: tuple[
        Measurement, ...
    ] = ()  # test accuracies, at the least validation loss and at the end of training
    seed: int = 0  # what was run
    settings: Values = field(default_factory=dict)
    seconds: float = 0.0  # wall time
    megabytes: float = 0.0  # the largest memory that its process had held by then
    problem: str = ""  # why it failed; empty where it did not

    @property
    def passed(self) -> bool:
        """Whether every measurement lies within its bounds; a run that failed does not pass."""
        return not self.problem and all(one.passed for one in self.measurements)


@dataclass(frozen=True)
class ExperimentResult:
    """An experiment over seeds and readings."""

    experiment: Experiment  # what was run
    # reading → its runs, the default reading first; empty where nothing could be run
    runs: Mapping[str, tuple[SeedRun, ...]] = field(default_factory=dict)
    problem: str = ""  # why nothing could be run

    @property
    def id(self) -> str:
        """The experiment's name."""
        return self.experiment.id

    def finished(self, reading: str = DEFAULT) -> list[SeedRun]:
        """The runs of a reading that did not fail."""
        return [run for run in self.runs.get(reading, ()) if not run.problem]

    def met(self, reading: str = DEFAULT) -> Share:
        """The number of seeds in which every measurement of a reading passes, and the number of all seeds."""
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
    def verdict_cell(self) -> str:
        """The verdict for a table: "reproduced (4 of 5 seeds)"."""
        if self.verdict == EXPLAINED:
            name = str(self.explained_by)
            return f"reproduced under interpretation “{name}” ({self._seeds(name)}; {self._seeds()} under the default)"
        return NOT_RUN if self.verdict == NOT_RUN else f"{self.verdict} ({self._seeds()})"

    def _seeds(self, reading: str = DEFAULT, interval: bool = False) -> str:
        """In how many seeds a reading meets every criterion: "4 of 5 seeds (95% CI 38% to 96%)"."""
        met = self.met(reading)
        ends = f" (95% CI {met.low:.0%} to {met.high:.0%})" if interval else ""
        return f"{met.as_counts} seed{'s' * (met.of != 1)}{ends}"

    @property
    def verdict_in_words(self) -> str:
        """The verdict, with the seeds in which it holds: "reproduced in 4 of 5 seeds (95% CI 38% to 96%)"."""
        if self.verdict == NOT_RUN:
            return NOT_RUN
        default = f"in {self._seeds(interval=True)}"
        if self.verdict == EXPLAINED:
            name = str(self.explained_by)
            other = f"“{name}” ({self.experiment.reading_note(name)}) in {self._seeds(name, interval=True)}"
            return f"reproduced under interpretation {other}; under the default {default}"
        return f"{self.verdict}{': every criterion is met' * (self.verdict == NOT_REPRODUCED)} {default}"

    def over_seeds(
        self, reading: str = DEFAULT, accuracy: bool = False
    ) -> list[tuple[Measurement, list[float], int]]:
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
        shown = [
            (one, values)
            for one, values, _ in self.over_seeds(reading)
            if one.has_bounds or one.prominent
        ]
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
        names = [
            name
            for name, table in (done[0].tables if done else {}).items()
            if "token" not in table.columns
        ]
        return {
            name: _join_seeds([(run.seed, run.tables[name]) for run in done], name)
            for name in names
        }

    @property
    def seconds(self) -> float:
        """Seconds of all runs added up."""
        return sum(run.seconds for runs in self.runs.values() for run in runs)

    def section(self) -> Section:
        """What the paper says, what we see, what decides, and the other readings, in at most 200 words."""
        e = self.experiment
        style: Style = "bad" if self.verdict == NOT_REPRODUCED else "good"
        blocks: list[Block] = [Text(subscripts(f"The paper: {e.claim} ({e.paper})."))]
        if self.verdict == NOT_RUN:
            blocks.append(Text(f"Not run: {self.problem}.", "warning"))
            return Section(e.title, tuple(blocks), anchor=e.id, only=("html", "markdown"))
        verdict = self.verdict_in_words
        blocks.append(
            Text(subscripts(f"{verdict[0].upper()}{verdict[1:]}. We see {self.in_words()}."), style)
        )
        name = str(self.explained_by)
        if self.verdict == EXPLAINED and self.in_words(name) != self.in_words():
            blocks.append(
                Text(subscripts(f"Under interpretation “{name}” we see {self.in_words(name)}."))
            )
        blocks += [Text(subscripts(f"Criterion: {e.criterion}.")), *self.pictures()]
        rows: list[tuple[object, ...]] = [
            (
                subscripts(one.name),
                self.spread(values),
                one.bounds,
                one.paper,
                one.ceiling,
                f"{passed} of {len(values)}",
            )
            for one, values, passed in self.over_seeds()
            if one.has_bounds
        ]
        paper, best = Column("The paper", "plain"), Column("Best possible", "plain", 3)
        columns = (
            Column("Figure"),
            Column("Ours"),
            Column("Criterion"),
            paper,
            best,
            Column("Seeds that meet it"),
        )
        blocks.append(Table("What decides", columns, rows, only=("html",)))
        if len(self.runs) > 1:
            rows = [
                (name, subscripts(e.reading_note(name)), self._seeds(name))
                for name in list(self.runs)[1:]
            ]
            heads = (Column("Interpretation"), Column("What changes"), Column("Reproduced in"))
            blocks.append(Table("Other interpretations of what the paper leaves open", heads, rows))
        blocks += [Text(subscripts(note), "note") for note in e.notes]
        blocks.append(
            Text(f"Every bin and every seed: tables/{e.id}-*.csv and runs/{e.id}/.", "note")
        )
        return Section(e.title, tuple(blocks), anchor=e.id, only=("html", "markdown"))

    def pictures(self) -> list[Picture]:
        """One picture: panels of bins over token types, or lines, from the tables of the default reading."""
        first, tables = self.finished()[0].tables, self.tables
        rows: list[list[Values]] = []
        for name, table in tables.items():
            points = first.get("tokens" + name.removeprefix("bins"))
            if name.startswith("bins") and points is not None:
                part = name.removeprefix("bins").strip("-")
                part = TITLES.get(part, part.replace("-", " "))
                rows.append(
                    [
                        _panel(part, of, table, points)
                        for of in ("score", "value")
                        if of in points.columns
                    ]
                )
        if rows and max(map(len, rows)) == 1:
            rows = [[panel for row in rows for panel in row]]
        lines = next((table for table in tables.values() if "by" in table.columns), None)
        if lines is not None:  # against steps or dimensions: means over seeds with their range
            x, y = ("step", "test_accuracy") if "step" in lines.columns else ("d", "value")
            over = lines.group_by("by", x, maintain_order=True).agg(
                mean=pl.mean(y), least=pl.min(y), most=pl.max(y)
            )
            names = {f"{of}_spearman": f"Spearman of {symbol}" for of, symbol in SYMBOLS.items()}
            by = (
                pl.col("by")
                .cast(pl.String)
                .str.replace_many(names | {"test_accuracy": "test accuracy"})
            )
            drawn = over.select("mean", "least", "most", x=x, by=by).to_dicts()
            label = "test accuracy" if y == "test_accuracy" else "Spearman, accuracy"
            rows = [
                [
                    {
                        "kind": "lines",
                        "title": "",
                        "x": x,
                        "y": label,
                        "lines": drawn,
                        "log": x == "d",
                    }
                ]
            ]
        if not rows:
            return []
        seeds = len(self.finished())
        caption = f"lines: range over {seeds} seeds" if seeds > 1 else "one seed"
        if lines is None:
            caption = "bin means and standard deviations over token types; grey: types"
            caption += f"; band: range of the means over {seeds} seeds" if seeds > 1 else ""
            if any("paper" in panel for row in rows for panel in row):
                caption += "; orange: the paper's means, on the right axis"
        title = self.experiment.title
        description = subscripts(f"{title}. {self.in_words()}.")
        return [Picture(self.id, "reproduce-panels", {"rows": rows}, title, caption, description)]

    def to_dict(self) -> dict[str, object]:
        """The experiment's row in the summary."""
        e, done, readings = self.experiment, self.finished(), []
        for name, runs in self.runs.items():
            met, seeds = self.met(name), list[dict[str, object]]()
            for run in runs:
                seeds.append(
                    {
                        key: getattr(run, key)
                        for key in ("seed", "passed", "seconds", "megabytes", "problem")
                    }
                )
                if not run.problem:
                    figures = {
                        one.name: _finite(one.value) for one in (*run.measurements, *run.accuracy)
                    }
                    seeds[-1] |= {
                        "ours": ExperimentResult(e, {name: (run,)}).in_words(name),
                        "figures": figures,
                    }
            interval = met.low, met.high
            readings.append(
                {
                    "reading": name,
                    "met": met.found,
                    "of": met.of,
                    "interval": interval,
                    "seeds": seeds,
                }
            )
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
            "megabytes": max(
                (run.megabytes for runs in self.runs.values() for run in runs), default=0.0
            ),
            "accuracy": [_figure_row(*row) for row in self.over_seeds(accuracy=True)],
            "readings": readings,
        }


@dataclass(frozen=True)
class Reproduction:
    """All experiments of one `reproduce`, and how they were run."""

    results: tuple[ExperimentResult, ...]  # one per experiment, in the paper's order
    settings: Values  # name → value of every option that decides the results
    version: str  # of tokensieve
    date: str  # when it was finished, as ISO 8601
    # by name, wall time; "experiments" is that of all runs one after the other, also of those that an earlier command
    # finished
    seconds: dict[str, float]

    own_files = (  # what an earlier result may have left
        r"table\.md|tables/[^/]+\.csv|pictures/(synthetic|one-layer|two-layer|key-query|mlp|multi-class|frozen|one-step-only|"
        r"diagnosis|dimension|beyond|verdicts)\.(svg|png|pdf|csv)"
    )

    @staticmethod
    def describe(experiments: Sequence[Experiment]) -> Report:
        """What each experiment claims, needs and takes, and its readings."""
        blocks: list[Text] = []
        for e in experiments:
            needs = ", ".join([*e.needs, *["PyTorch"] * e.torch]) or "no data"
            times = {
                scale: f"{s:.0f} s" if s < 90 else f"{s / 60:.0f} min"
                for scale, s in e.seconds.items()
            }
            takes = ", ".join(f"{scale} about {time}" for scale, time in times.items())
            blocks.append(
                Text(subscripts(f"{e.id}: {e.title}. Needs {needs}; {takes} per seed."), "lead")
            )
            said = [
                f"The paper: {e.claim}; {e.paper}.",
                f"Criterion, fixed on {FIXED}: {e.criterion}.",
            ]
            said += [
                f"Interpretation {one['name']}: {e.reading_note(one['name'])}."
                for one in e.readings
            ]
            blocks += [Text(subscripts(text)) for text in said]
        return Report("reproduce", _PAPER, f"{len(experiments)} experiments.", tuple(blocks))

    def tally(self) -> dict[str, int]:
        """Verdict → number of experiments."""
        count = Counter(result.verdict for result in self.results)
        return {
            verdict: count[verdict] for verdict in (REPRODUCED, EXPLAINED, NOT_REPRODUCED, NOT_RUN)
        }

    def report(self) -> Report:
        """The report: a table of verdicts, and a short section for each experiment."""
        scale, seeds = self.settings["scale"], self.settings["seeds"].split()
        most = self.settings.get("documents_at_most")
        trial = f" This is a trial with at most {most} documents of each data set." if most else ""
        lead = f"Scale {scale}, seed{'s' * (len(seeds) > 1)} {', '.join(seeds)}.{trial}"
        runs = [
            {
                "experiment": result.id,
                "seed": run.seed,
                "outcome": "every criterion met" if run.passed else "not met",
            }
            for result in self.results
            for run in result.runs.get(DEFAULT, ())[:20]  # as many as fit
        ]
        met = sum(run["outcome"] != "not met" for run in runs)
        caption = f"One mark for each experiment and seed: {met} of {len(runs)} runs meet every criterion."
        title = "Which experiments meet their criteria"
        picture = Picture("verdicts", "reproduce-verdicts", {"runs": runs}, title, caption, caption)
        longer = (
            " For the paper's sizes, run the same command with --scale paper; it takes hours."
            * (scale == "quick")
        )
        next_step = f"Next, read the section of an experiment: it shows the paper's figures beside ours.{longer}"
        rows = [
            (
                result.id,
                subscripts(result.experiment.paper_shows),
                subscripts(result.in_words()),
                result.verdict_cell,
            )
            for result in self.results
        ]
        heads = ("Experiment", "The paper shows", "We see", "Verdict")
        words = Text(
            subscripts("E_sᵀp is the attention score of a token type s, and E_sᵀv its value."),
            "note",
        )
        said = tuple(Text(subscripts(text)) for text in HOW_TO_READ)
        blocks: tuple[Block, ...] = (
            Text(lead, "lead"),
            *[picture] * bool(runs),
            Text(next_step, only=("html", "markdown")),
            Section(
                "What holds", (Table("", tuple(map(Column, heads)), rows), words), anchor="verdicts"
            ),
            *(result.section() for result in self.results),
            *([self.reviewers()] if len(self.results) > 1 else []),
            Section("How to read this page", said, folded=True, only=("html", "markdown")),
        )
        about = {
            **self.settings,
            "version": self.version,
            "date": self.date,
            "seconds": self.seconds,
        }
        return Report("reproduce", _PAPER, self._headline(), blocks, about)

    def _headline(self) -> str:
        said, total = {EXPLAINED: "reproduced under another interpretation"}, len(self.results)
        counted = [(n, said.get(verdict, verdict)) for verdict, n in self.tally().items() if n]
        parts = [f"{n} {'was' if n == 1 else 'were'} {verdict}" for n, verdict in counted]
        if len(parts) > 1:
            return f"Of {total} experiments, {', '.join(parts[:-1])} and {parts[-1]}."
        name = parts[0].partition(" ")[2]
        return f"All {total} experiments {name}." if total > 1 else f"The experiment {name}."

    def reviewers(self) -> Section:
        """Each question of the reviewers, the authors' answer, and ours."""
        asked = tomllib.loads(
            files("tokensieve.theory.experiments").joinpath("reviews.toml").read_text("utf-8")
        )["asked"]
        by_id = {result.id: result for result in self.results}
        rows = []
        for one in asked:
            result = by_id.get(one.get("experiment", ""))
            if result is None and "ours" not in one:
                continue
            ours = one.get("ours") or (
                f"{result.verdict_cell}: {result.in_words()}" if result else ""
            )
            rows.append(
                (
                    one["who"],
                    one["question"],
                    one["answer"],
                    one.get("experiment"),
                    subscripts(ours),
                )
            )
        heads = (
            "Reviewer",
            "Asked",
            "The authors' answer, in our words",
            "Our experiment",
            "Our result",
        )
        table = Table("", tuple(map(Column, heads)), rows, first=30)
        return Section("What the reviewers asked", (table,), only=("html", "markdown"))

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
            found |= {
                f"tables/{result.id}-{name}.csv": csv_table(table)
                for name, table in result.tables.items()
            }
        return found


def _join_seeds(tables: list[tuple[int, pl.DataFrame]], name: str) -> pl.DataFrame:
    """One table of several seeds. Tables of bins (names that begin with "bins") become one row per bin: x, seeds (in which it is
    not empty), types (the mean), few (in any seed), and for every other column its mean, with the lowest and highest bin mean of a
    seed as {of}_low and {of}_high. All others are stacked, with a column `seed`."""
    parts = [table.select(pl.lit(seed).alias("seed"), pl.all()) for seed, table in tables]
    together = pl.concat(parts, how="diagonal_relaxed")
    if not name.startswith("bins"):
        return together
    ends = pl.selectors.ends_with("_mean")
    low, high = (
        end.name.replace("_mean$", suffix)
        for end, suffix in ((ends.min(), "_low"), (ends.max(), "_high"))
    )
    others = pl.exclude("seed", "x", "types", "few").mean()
    return (
        together.group_by("x")
        .agg(pl.len().alias("seeds"), pl.mean("types"), pl.any("few"), others, low, high)
        .sort("x")
    )


def _figure_row(one: Measurement, values: list[float], passed: int) -> dict[str, object]:
    """A figure's row in the summary; `value` is the median over seeds."""
    row: dict[str, object] = {
        "name": one.name,
        "value": _finite(float(np.median(values))),
        "asked": one.bounds,
    }
    row |= {"paper": one.paper, "ceiling": one.ceiling, "passed": passed == len(values)}
    return row | {"values": [_finite(x) for x in values], "passed_seeds": passed}


def _finite(x: float) -> float | None:
    """The number, or None where JSON has none for it."""
    return float(x) if math.isfinite(x) else None


def _panel(part: str, of: str, table: pl.DataFrame, tokens: pl.DataFrame) -> Values:
    """Bin means with their spread over a sample of the types, and the paper's means beside them."""
    x = "importance" if "importance" in tokens.columns else "posterior_difference"
    mean, sd = pl.col(f"{of}_mean"), pl.col(f"{of}_sd")
    shown = table.select(
        "x", "few", mean=mean, low=mean - sd, high=mean + sd, least=f"{of}_low", most=f"{of}_high"
    )
    sample = tokens.gather_every(max(1, -(-tokens.height // 300)))  # 300 types fill a panel
    panel: dict[str, object] = {
        "kind": "bins",
        "title": part,
        "x": x.replace("_", " "),
        "y": SYMBOLS[of],
    }
    panel |= {"bins": shown.to_dicts()}
    panel |= {
        "points": sample.select(x=pl.col(x).round(5), y=pl.col(of).round(4)).drop_nans().to_dicts()
    }
    if f"paper_{of}" in table.columns:
        panel["paper"] = table.select("x", y=f"paper_{of}").to_dicts()
    return panel
