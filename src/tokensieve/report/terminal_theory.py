"""A verification as a short read in the terminal; the same words and numbers as in the files."""

from __future__ import annotations

from pathlib import Path

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tokensieve.escape import shown
from tokensieve.report.console import Console
from tokensieve.report.sentences import MORE_TIME
from tokensieve.report.terminal_audit import BLUE, ORANGE
from tokensieve.theory.assumptions import Assumption
from tokensieve.theory.claims import Outcome
from tokensieve.theory.faces import Fate
from tokensieve.theory.study import Study

COLOURS = {Outcome.HOLDS: BLUE, Outcome.FAILS: ORANGE, Outcome.UNMET: "dim", Outcome.LONGER: "yellow"}


def show_study(study: Study, out: Path) -> None:
    """Every claim with its reason, the hypotheses that fail with witnesses, and the files written."""
    console = Console()
    counts, found = study.counts, study.found
    d, eta = found.step.start.p.size, found.step.eta
    console.print(
        Text(
            f"{shown(study.name)}: {counts.n_documents:,} documents, {counts.n_types:,} token types, d = {d:,}, η = {eta:.4g}"
        )
    )
    for note in study.notes:
        console.print(Text(f"  {shown(note, 200)}", style="yellow"))
    table = Table.grid(padding=(0, 2))
    for claim in found.claims:
        table.add_row(Text(claim.outcome, style=f"bold {COLOURS[claim.outcome]}"), Text(claim.name, style="bold"))
        table.add_row("", Text(shown(claim.verdict, 600)))
    console.print(table)
    show_limit(console, study)
    failing = [item for item in found.assumptions if not item.holds]
    if not failing:
        console.print(Text(f"all {len(found.assumptions)} hypotheses of the theory hold on this data", style="bold"))
    else:
        head = f"{len(failing)} of {len(found.assumptions)} hypotheses of the theory fail on this data:"
        console.print(Text(head, style="bold"))
    for item in failing:
        console.print(Padding(Text(f"{item.name}: ", style=ORANGE) + Text(_reason(study, item)), (0, 0, 0, 2)))
    if found.limit.fate is Fate.UNDECIDED and found.flow.seconds >= found.flow.settings.max_seconds:
        console.print(Text(MORE_TIME))
    seconds = ", ".join(f"{stage} {s:.1f}" for stage, s in study.seconds.items() if stage != "total")
    console.print(Text(f"{study.seconds['total']:.1f} s ({seconds})", style="dim"))
    console.print(Text(f"report.html, pictures, tokens.csv, flow.csv, support.csv, gaps.csv and summary.json in {out}"))


def show_limit(console: Console, study: Study) -> None:
    """What becomes of p, with its certificates."""
    limit = study.found.limit
    console.print(
        Text(f"p {limit.fate}" if limit.fate is not Fate.UNDECIDED else "the limit of p is not decided", style="bold")
    )
    for line in study.limit_lines():
        console.print(Padding(Text(shown(line, 600)), (0, 0, 0, 2)))


def _reason(study: Study, item: Assumption) -> str:
    """The counts, and a few rows or tokens that break it."""
    parts = [shown(item.detail, 600)]
    if item.documents:
        parts.append(
            f"row{'s' * (len(item.documents) > 1)} {', '.join(f'{row}' for row in study.rows_of(item.documents))}"
        )
    if item.types:
        parts.append(f"tokens {', '.join(shown(word, 30) for word in item.types)}")
    return "; for example ".join([parts[0], "; ".join(parts[1:])]) if len(parts) > 1 else parts[0]
