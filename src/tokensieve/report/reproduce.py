"""The reproduction of the paper: its page and its Markdown table."""

from __future__ import annotations

from typing import Any

from tokensieve.report.charts import Picture
from tokensieve.report.page import environment, source
from tokensieve.report.reproduce_pictures import SHEETS, draw
from tokensieve.reproduce.result import FIXED
from tokensieve.reproduce.seeds import EXPLAINED, NOT_REPRODUCED, NOT_RUN, REPRODUCED, Outcome, Result, Spread
from tokensieve.reproduce.study import Reproduction
from tokensieve.wording import percent, subscripts

LISTED = 100
TABLE_ROWS = 60  # of a table on the page; the whole is in its CSV file
MARKS = {REPRODUCED: ("right", "✓"), EXPLAINED: ("open", "≈"), NOT_REPRODUCED: ("wrong", "✗"), NOT_RUN: ("open", "–")}
HEAD = ("Experiment", "Criterion", "The paper", "Ours over seeds", "Ceiling", "Verdict", "Reading", "Seconds, MB")


INTRODUCTION = f"""\
Criteria and readings were fixed on {FIXED}, when version 0.1's figures for seed 0 were known and before any of the runs below; a
reading that was thought of later says so. A verdict is the share of seeds in which every criterion of an experiment is met, with
Wilson's 95 % interval: *reproduced* where that is more than half, *explained* where the default reading of the paper is not and
another documented reading is, else *not reproduced*. Figures are medians over seeds with the least and the largest. The ceiling is
the correlation that the best smooth curve without any noise has with the paper's own noisy row (values: a line, sign(x), tanh(x/s);
scores: |x − c|^γ); a correlation must reach nine tenths of it. Bins are the paper's own (20 over about [−1, 0.94]); bins of fewer
than three types count for no criterion but those of table C. `tables/` and `runs/` have every bin, with the paper's numbers beside
ours, and every seed.
"""


def markdown(study: Reproduction) -> str:
    """A document with one table: experiment × (criterion, the paper, ours over seeds, ceiling, verdict, reading).

    Each reading other than the default has a row of its own below its experiment's.
    """
    rows = [HEAD, ("---",) * len(HEAD)]
    for result in study.results:
        e, size = result.experiment, f"{result.seconds:.0f}, {result.megabytes:.0f}"
        rows.append(
            (
                e.id,
                e.criterion,
                e.paper,
                outcome(result),
                ceilings(result),
                result.verdict_in_words,
                chosen(result),
                size,
            )
        )
        whys = {reading.name: reading.in_words() for reading in e.readings}
        rows += [
            (f"– {one.reading}", "the same", whys[one.reading], figures(one), "", one.in_words(), one.reading, "")
            for one in result.outcomes[1:]
        ]
    lines = ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in rows]
    most = study.settings.get("documents_at_most")
    capped = f" (a trial: at most {most} documents of each set)" if most else ""
    title = f"# The paper's experiments at scale {study.settings['scale']}{capped}"
    made = f"tokensieve {study.version}, seeds {study.settings['seeds']}, {study.date}, {study.seconds['total']:.0f} s in all runs."
    return "\n".join([title, "", INTRODUCTION, *lines, "", made, ""])


def outcome(result: Result) -> str:
    """What we found, accuracy last, or why nothing was run."""
    if result.default is None:
        return result.problem
    return "; ".join(filter(None, [result.ours, accuracy(result) if len(result.default.findings) > 1 else ""]))


def figures(one: Outcome) -> str:
    """The judged figures of a reading, or why it failed."""
    return one.main_figures or one.runs[0].problem


def accuracy(result: Result) -> str:
    """Test accuracies over seeds, at the least validation loss and at the end of training."""
    spreads = result.default.accuracy if result.default else ()
    return "; ".join(f"{spread.check.name} {_percents(spread)}" for spread in spreads)


def ceilings(result: Result) -> str:
    """What each correlation with a row of the paper can reach."""
    spreads = result.default.figures if result.default else ()
    return ", ".join(f"{f.check.ceiling:.3f}" for f in spreads if f.check.ceiling is not None and f.check.judged)


def chosen(result: Result) -> str:
    """The reading that the verdict rests on."""
    other = result.explained_by if result.verdict == EXPLAINED else None
    return other.reading if other else "default"


def render_reproduction(study: Reproduction, pictures: dict[str, list[Picture]] | None = None) -> str:
    """The reproduction as one HTML page without scripts or requests: verdicts, figures, bins, notes, settings, citation.

    Args:
        study: the reproduction.
        pictures: of `draw`, where they are drawn already.
    """
    pictures = draw(study) if pictures is None else pictures
    page = environment().get_template("reproduce.html").render(
        study=study,
        command="reproduce",
        headline=headline(study),
        outcome=outcome,
        accuracy=accuracy,
        ceilings=ceilings,
        figures_of=figures,
        fixed=FIXED,
        marks=MARKS,
        tally={verdict: count for verdict, count in study.tally().items() if count},
        figures={
            id: [{"source": source(p), "picture": p} for p in these]
            for id, these in pictures.items() if id not in ("", *SHEETS)
        },
        sheets=[{"source": source(p), "picture": p} for p in pictures[""]],
        tables={r.id: _short_tables(r) for r in study.results},
        listed=LISTED,
    )  # fmt: skip
    return subscripts(page)


def headline(study: Reproduction) -> str:
    """How many experiments are reproduced, and what became of the others."""
    tally = {verdict: n for verdict, n in study.tally().items() if n}
    all_of = sum(tally.values())
    parts = [f"{n} {verdict}" for verdict, n in tally.items()]
    if len(parts) == 1:
        return f"{'All ' if all_of > 1 else ''}{all_of} experiment{'s' * (all_of != 1)} {next(iter(tally))}"
    return f"Of {all_of} experiments {', '.join(parts[:-1])} and {parts[-1]}"


def _percents(spread: Spread) -> str:
    ends = f" [{percent(min(spread.values))}, {percent(max(spread.values))}]" if len(spread.values) > 1 else ""
    return f"{percent(spread.middle)}{ends}"


def _short_tables(result: Result) -> list[dict[str, Any]]:
    """The tables of an experiment that fit a page."""
    tables = result.default.tables if result.default else {}
    return [
        {"name": name, "columns": table.columns, "rows": table.rows()}
        for name, table in tables.items() if 0 < table.height <= TABLE_ROWS
    ]  # fmt: skip


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
