"""All experiments of one `reproduce`: their summary, their tables and the report."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from tokensieve.files import Content, csv_table, json_text
from tokensieve.report.blocks import PAGE, Block, Column, Picture, Report, Section, Table, Text
from tokensieve.theory.experiments.bench import Values
from tokensieve.theory.experiments.experiment import DEFAULT, FIXED, Experiment
from tokensieve.theory.experiments.result import EXPLAINED, VERDICTS, ExperimentResult
from tokensieve.theory.experiments.section import experiment_section
from tokensieve.wording import subscripts

PAPER_TITLE = (
    "Attention with Trained Embeddings Provably Selects Important Tokens (Wu et al., NeurIPS 2025)"
)
HOW_TO_READ = (
    f"The criteria and interpretations were fixed on {FIXED}, when only version 0.1's results for "
    "seed 0 were known. Interpretations added later are marked. An experiment counts as reproduced "
    "if more than half of the seeds meet every criterion. Figures are medians over seeds, with the "
    "minimum and maximum in brackets.",
    "The posterior difference P(1|s) − P(0|s) of a token type is how much more often it occurs in "
    "documents of the second class. E_sᵀv, its value, is what it adds to the prediction where it "
    "is attended to; E_sᵀp, its score, decides how much it is attended to. Bins are the paper's "
    "own; bins of fewer than three types count only for table C.",
    "The paper's rows are themselves noisy. The best possible correlation is that of the best "
    "smooth curve (a line, a sign or a tanh for values, |x − c|^γ for scores) with the paper's "
    "row; a correlation must reach nine tenths of it.",
)
MAX_MARKS = 20  # seeds of an experiment that the picture of verdicts has room for
SECONDS_SHOWN = 90  # longer times are given in minutes


@dataclass(frozen=True)
class Reproduction:
    """All experiments of one `reproduce`, and how they were run.

    Attributes:
        results: one per experiment, in the paper's order.
        settings: name → value of every option that decides the results.
        version: of tokensieve.
        date: when it was finished, as ISO 8601.
        seconds: by name, wall time; "experiments" is that of all runs one after the other, also of
            those that an earlier command finished.
    """

    results: tuple[ExperimentResult, ...]
    settings: Values
    version: str
    date: str
    seconds: dict[str, float]

    own_files = (  # what an earlier result may have left
        r"table\.md|tables/[^/]+\.csv|pictures/(synthetic|one-layer|two-layer|key-query|mlp|"
        r"multi-class|frozen|one-step-only|diagnosis|dimension|beyond|verdicts)\.(svg|png|pdf|csv)"
    )

    def tally(self) -> dict[str, int]:
        """Verdict → number of experiments."""
        counts = Counter(result.verdict for result in self.results)
        return {verdict: counts[verdict] for verdict in VERDICTS}

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
        """summary.json, and tables/EXPERIMENT-NAME.csv over seeds.

        Tables of token types stay with their runs.
        """
        summary = json_text(self.to_dict())
        content: dict[str, Content] = {"summary.json": summary}
        for result in self.results:
            for name, table in result.tables.items():
                content[f"tables/{result.id}-{name}.csv"] = csv_table(table)
        return content

    def report(self) -> Report:
        """A table of verdicts, and a short section for each experiment."""
        blocks: list[Block] = [Text(self._lead(), "lead"), *self._verdict_picture()]
        blocks.append(Text(self._next_step(), only=PAGE))
        blocks.append(self._verdict_table())
        blocks += [experiment_section(result) for result in self.results]
        if len(self.results) > 1:
            blocks.append(self.reviewers())
        explained = tuple(Text(subscripts(text)) for text in HOW_TO_READ)
        blocks.append(Section("How to read this page", explained, folded=True, only=PAGE))
        about = {
            **self.settings,
            "version": self.version,
            "date": self.date,
            "seconds": self.seconds,
        }
        return Report("reproduce", PAPER_TITLE, self._headline(), tuple(blocks), about)

    def _headline(self) -> str:
        """How many experiments have which verdict, in one sentence."""
        words = {EXPLAINED: "reproduced under another interpretation"}
        tally = {words.get(name, name): n for name, n in self.tally().items() if n}
        total = len(self.results)
        if len(tally) == 1:
            [verdict] = tally
            if total == 1:
                return f"The experiment was {verdict}."
            return f"All {total} experiments were {verdict}."
        parts = [f"{n} {'was' if n == 1 else 'were'} {verdict}" for verdict, n in tally.items()]
        return f"Of {total} experiments, {', '.join(parts[:-1])} and {parts[-1]}."

    def _lead(self) -> str:
        """Scale and seeds, and whether this is only a trial."""
        seeds = self.settings["seeds"].split()
        noun = "seed" if len(seeds) == 1 else "seeds"
        lead = f"Scale {self.settings['scale']}, {noun} {', '.join(seeds)}."
        limit = self.settings.get("documents_at_most")
        if limit:
            lead += f" This is a trial with at most {limit} documents of each data set."
        return lead

    def _next_step(self) -> str:
        step = "Next, read the section of an experiment: it shows the paper's figures beside ours."
        if self.settings["scale"] == "quick":
            step += (
                " For the paper's sizes, run the same command with --scale paper; it takes hours."
            )
        return step

    def _verdict_picture(self) -> list[Picture]:
        """One mark for each experiment and seed; none if nothing was run."""
        marks = []
        n_passed = 0
        for result in self.results:
            for run in result.runs.get(DEFAULT, ())[:MAX_MARKS]:
                outcome = "every criterion met" if run.passed else "not met"
                marks.append({"experiment": result.id, "seed": run.seed, "outcome": outcome})
                n_passed += run.passed
        if not marks:
            return []
        caption = (
            "One mark for each experiment and seed: "
            f"{n_passed} of {len(marks)} runs meet every criterion."
        )
        title = "Which experiments meet their criteria"
        data = {"runs": marks}
        return [Picture("verdicts", "reproduce-verdicts", data, title, caption, caption)]

    def _verdict_table(self) -> Section:
        """What the paper shows, what we see, and the verdict, one row per experiment."""
        heads = ("Experiment", "The paper shows", "We see", "Verdict")
        rows = [
            (
                result.id,
                subscripts(result.experiment.paper_shows),
                subscripts(result.in_words()),
                result.verdict_cell,
            )
            for result in self.results
        ]
        symbols = "E_sᵀp is the attention score of a token type s, and E_sᵀv its value."
        table = Table("", tuple(map(Column, heads)), rows)
        note = Text(subscripts(symbols), "note")
        return Section("What holds", (table, note), anchor="verdicts")

    def reviewers(self) -> Section:
        """Each question of the reviewers, the authors' answer, and ours.

        Questions whose experiment was not among those run are left out.
        """
        text = files("tokensieve.theory.experiments").joinpath("reviews.toml").read_text("utf-8")
        results = {result.id: result for result in self.results}
        rows = []
        for asked in tomllib.loads(text)["asked"]:
            experiment = asked.get("experiment")
            if "ours" in asked:
                ours = asked["ours"]
            elif experiment in results:
                result = results[experiment]
                ours = f"{result.verdict_cell}: {result.in_words()}"
            else:
                continue
            row = (asked["who"], asked["question"], asked["answer"], experiment, subscripts(ours))
            rows.append(row)
        heads = (
            "Reviewer",
            "Asked",
            "The authors' answer, in our words",
            "Our experiment",
            "Our result",
        )
        table = Table("", tuple(map(Column, heads)), rows, n_shown=30)
        return Section("What the reviewers asked", (table,), only=PAGE)


def describe(experiments: Sequence[Experiment]) -> Report:
    """What each experiment claims, needs and takes, and its readings."""
    blocks: list[Text] = []
    for experiment in experiments:
        lines = [
            f"The paper: {experiment.claim}; {experiment.paper}.",
            f"Criterion, fixed on {FIXED}: {experiment.criterion}.",
        ]
        lines += [f"Interpretation {r.name}: {r.note}." for r in experiment.readings]
        blocks.append(Text(subscripts(_needs_and_time(experiment)), "lead"))
        blocks += [Text(subscripts(line)) for line in lines]
    return Report("reproduce", PAPER_TITLE, f"{len(experiments)} experiments.", tuple(blocks))


def _needs_and_time(experiment: Experiment) -> str:
    """Its name, title, data and time: "mlp: Table B. Needs imdb, PyTorch; quick about 20 s …"."""
    needs = list(experiment.needs)
    if experiment.torch:
        needs.append("PyTorch")
    needed = ", ".join(needs) or "no data"
    times = [f"{scale} about {_time(s)}" for scale, s in experiment.seconds.items()]
    return f"{experiment.id}: {experiment.title}. Needs {needed}; {', '.join(times)} per seed."


def _time(seconds: float) -> str:
    if seconds < SECONDS_SHOWN:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min"
