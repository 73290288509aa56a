"""Audits of several labels, in the terminal: a line for each."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table
from rich.text import Text

from tokensieve.auditing.labels import LabelAudits, LabelRow
from tokensieve.escape import shown
from tokensieve.report.console import Console, short
from tokensieve.report.labels import verdict
from tokensieve.wording import percent

SHOWN = 30


def show_labels(found: LabelAudits, out: Path) -> None:
    """The same as a table of the terminal."""
    console = Console(width=min(80, Console().width))
    console.print(Text(f"{shown(found.name, 40)}: {verdict(found)}", style="bold"))
    table = Table(box=None, pad_edge=False)
    for name in ("label", "base rate", "accuracy", "findings", "the first"):
        left = name in ("label", "the first")
        table.add_column(Text(name, style="dim"), justify="left" if left else "right", no_wrap=True)
    for row in found.rows[:SHOWN]:
        table.add_row(*_cells(row))
    console.print(table)
    if len(found.rows) > SHOWN:
        console.print(Text(f"… and {len(found.rows) - SHOWN} more in labels.csv", style="dim"))
    if found.left_out:
        names = ", ".join(shown(name, 20) for name in list(found.left_out)[:5])
        console.print(Text(f"left out, too few documents with or without them: {names}", style="yellow"))
    console.print(Text(f"report.html, labels.csv, summary.json and a folder for each label in {out}", style="dim"))


def _cells(row: LabelRow) -> tuple[Text | str, ...]:
    first = row.first
    about = "" if first is None else ", ".join(shown(token) for token in first.tokens[:2])
    kind = "" if first is None else f"{first.title}{': ' * bool(about)}{about}"
    name = short(shown(row.label), 20) + (" !" if row.exceeded else "")
    return Text(name), percent(row.base.value), percent(row.accuracy.value), str(row.findings), Text(short(kind, 26))
