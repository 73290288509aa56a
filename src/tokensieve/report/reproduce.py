"""The reproduction of the paper: its summary, its Markdown table and its page."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from tokensieve.report.page import environment, source
from tokensieve.reproduce.result import NOT_REPRODUCED, NOT_RUN, REPRODUCED, Result

LISTED = 100
TABLE_ROWS = 60  # of a table on the page; the whole is in its CSV file


@dataclass(frozen=True)
class Reproduction:
    """Everything that the files, the page and the terminal show of one `reproduce`.

    Attributes:
        name: what was reproduced, for people.
        results: one per experiment, in the paper's order.
        settings: name → value of every option that decides the results.
        seed: of every draw.
        version: of tokensieve.
        date: when it was finished, as ISO 8601.
        seconds: wall time of each stage; of the experiments the sum, also of those that an earlier run finished.
    """

    name: str
    results: list[Result]
    settings: dict[str, Any]
    seed: int
    version: str
    date: str
    seconds: dict[str, float]

    def tally(self) -> dict[str, int]:
        """Verdict → number of experiments."""
        count = Counter(result.verdict for result in self.results)
        return {verdict: count[verdict] for verdict in (REPRODUCED, NOT_REPRODUCED, NOT_RUN)}

    def to_dict(self) -> dict[str, Any]:
        """The summary: a row per experiment, and how it was made."""
        return {
            "experiments": [result.to_dict() for result in self.results], "verdicts": self.tally(), "settings": self.settings,
            "seed": self.seed, "version": self.version, "date": self.date, "seconds": self.seconds,
        }  # fmt: skip

    def markdown(self) -> str:
        """A table for a README: experiment, the paper's figures, ours, verdict, seconds."""
        rows = [("Experiment", "The paper", "Ours", "Verdict", "Seconds"), ("---", "---", "---", "---", "---:")]
        rows += [(r.id, r.paper, outcome(r), r.verdict, f"{r.seconds:.0f}") for r in self.results]
        lines = ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in rows]
        most = self.settings.get("documents_at_most")
        capped = f" (a trial: at most {most} documents of each set)" if most else ""
        made = f"tokensieve {self.version}, scale {self.settings['scale']}{capped}, seed {self.seed}, {self.date}, "
        return "\n".join([*lines, "", f"{made}{self.seconds['total']:.0f} s in all."]) + "\n"


def outcome(result: Result) -> str:
    """What we found, or why nothing was run."""
    return result.ours or (result.notes[0] if result.notes else "")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def render_reproduction(study: Reproduction) -> str:
    """The reproduction as one HTML page without scripts or requests: verdicts, figures, bins, notes, settings, citation."""
    return environment().get_template("reproduce.html").render(
        study=study,
        command="reproduce",
        outcome=outcome,
        marks={REPRODUCED: ("right", "✓"), NOT_REPRODUCED: ("wrong", "✗"), NOT_RUN: ("open", "–")},
        tally=study.tally(),
        figures={r.id: [{"source": source(p), "picture": p} for p in r.pictures] for r in study.results},
        tables={r.id: _short_tables(r) for r in study.results},
        listed=LISTED,
    )  # fmt: skip


def _short_tables(result: Result) -> list[dict[str, Any]]:
    """The tables of an experiment that fit a page; tables of token types are in files only."""
    return [
        {"name": name, "columns": table.columns, "rows": table.rows()}
        for name, table in result.tables.items()
        if 0 < table.height <= TABLE_ROWS and "token" not in table.columns
    ]
