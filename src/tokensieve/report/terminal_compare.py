"""Two audits compared, in the terminal: the verdict and the largest changes, at most 40 lines of 80 columns."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table
from rich.text import Text

from tokensieve.auditing.compare import AuditComparison, Change
from tokensieve.escape import shown
from tokensieve.report.compare import WORDS, alone_lines, title, verdict
from tokensieve.report.console import Console, short
from tokensieve.wording import milli

ROWS = 20


def show_comparison(found: AuditComparison, out: Path, exceeded: list[str]) -> None:
    """What changed, the largest difference first, and the files written."""
    console = Console(width=min(80, Console().width))
    console.print(Text(title(found)), no_wrap=True, overflow="ellipsis")
    console.print(Text(f"{verdict(found)}.", style="bold"))
    for note in found.notes[:2]:
        console.print(Text(shown(note, 78), style="yellow"))
    changed, several = found.changed(), len(found.classes) > 1
    if not changed.is_empty():
        table = Table(box=None, pad_edge=False)
        for name in ("token", "change", *(["class"] * several), "effect ×1000", "after", "difference (95%)"):
            left = name in ("token", "change", "class")
            table.add_column(Text(name, style="dim"), justify="left" if left else "right", no_wrap=True)
        for row in changed.head(ROWS).iter_rows(named=True):
            ends = f"[{milli(row['difference_low'], 3)}, {milli(row['difference_high'], 3)}]"
            label = [Text(short(shown(row["class"]), 10))] * several
            table.add_row(
                Text(short(shown(row["token"]), 22)), WORDS[Change(row["change"])], *label,
                milli(row["effect_before"], 3), milli(row["effect_after"], 3), ends,
            )  # fmt: skip
        console.print(table)
    if changed.height > ROWS:
        console.print(Text(f"… and {changed.height - ROWS:,} more in compare.csv", style="dim"))
    for line in alone_lines(found, 4):
        console.print(Text(f"tokens {line}", style="dim"))
    for name in exceeded:
        console.print(Text(f"over the limit of --fail-on: {name}", style="bold"))
    console.print(Text(f"report.html, compare.csv and summary.json in {out}", style="dim"))
