"""A report in the terminal, as wide as the terminal is; the same numbers as on the page."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from rich import table as rich_table
from rich.padding import Padding
from rich.text import Text as Line

from tokensieve import blocks
from tokensieve.blocks import Block, Report
from tokensieve.escape import shown
from tokensieve.report.cells import for_medium, written
from tokensieve.report.console import Console

BLUE, ORANGE = "#2a78c8", "#d2691e"
_STYLES = {"lead": "", "note": "dim", "good": BLUE, "warning": "yellow", "bad": ORANGE}
_LEVELS = {"high": f"bold {ORANGE}", "medium": "bold yellow", "low": "bold"}


def show(report: Report, out: Path | None = None, seconds: float | None = None, console: Console | None = None) -> None:
    """Print a report: its title and verdict, then its blocks; pictures and the small print are for the page.

    Args:
        report: of any result.
        out: the folder that its files are in, which the last line names.
        seconds: that it took, for the last line.
        console: where to; standard output if None.
    """
    console = console or Console()
    console.print(Line(report.title, style="dim"))
    console.print(Line(report.verdict, style="bold"))
    for block in report.blocks:
        _show(block, console)
    if out is not None:
        time = f"{seconds:.1f} s; " if seconds is not None else ""
        console.print(Line(f"{time}open {out / 'report.html'}; all files are in {out}", style="dim"), soft_wrap=True)


def _show(block: Block, console: Console) -> None:
    if not for_medium(block, "terminal"):
        return
    match block:
        case blocks.Text():
            console.print(Line(block.text, style=_STYLES.get(block.style, "")))
        case blocks.Facts():
            width = max(len(name) for name, _, _ in block.facts)
            for name, value, note in block.facts:
                console.print(Line(f"{name:<{width}}  {value}") + Line(f"  {note}" if note else "", style="dim"))
        case blocks.Tokens():
            more = f" and {block.more:,} more" if block.more else ""
            listed = ", ".join(shown(token, 40) for token in block.tokens)
            console.print(Line(f"{block.title}: " if block.title else "", style="dim") + Line(listed + more))
        case blocks.Terms():
            for term, meaning in block.terms:
                console.print(Line(f"{term}: ", style="bold") + Line(meaning))
        case blocks.Columns():
            for column in block.columns:
                for inner in column:
                    _show(inner, console)
        case blocks.Table():
            _show_table(block, console)
        case blocks.Passages():
            _show_passages(block, console)
        case blocks.Command():
            if block.purpose:
                console.print(Line(block.purpose))
            console.print(Line(f"  {block.command}", style="bold"), soft_wrap=True)
        case blocks.Live():
            for inner in block.instead:
                _show(inner, console)
        case blocks.Section():
            _show_section(block, console)


def _show_section(section: blocks.Section, console: Console) -> None:
    """A finding begins with its level; other sections with an empty line and their title."""
    if section.level:
        level = Line(f"{section.title} ({section.level}): ", style=_LEVELS.get(section.level, "bold"))
        first, rest = section.blocks[:1], section.blocks[1:]
        if first and isinstance(first[0], blocks.Text) and for_medium(first[0], "terminal"):
            console.print(level + Line(first[0].text))
        else:
            console.print(level)
            rest = section.blocks
    else:
        shown_blocks = [block for block in section.blocks if for_medium(block, "terminal")]
        if all(isinstance(block, blocks.Picture) for block in shown_blocks):
            return
        console.print()
        console.print(Line(section.title, style="bold"))
        rest = section.blocks
    for block in rest:
        _show(block, console)


def _show_table(table: blocks.Table, console: Console) -> None:
    if table.title:
        console.print(Line(table.title, style="dim"))
    drawn = rich_table.Table(box=None, pad_edge=False, expand=False)
    kept = [i for i, column in enumerate(table.columns) if not column.extra]
    for i in kept:
        column = table.columns[i]
        side: Literal["left", "right"] = "left" if column.format in ("text", "token") else "right"
        head = f"{column.name} {column.unit}".rstrip()
        drawn.add_column(Line(head, style="dim"), justify=side, overflow="fold", no_wrap=column.format != "text")
    for row in table.rows[: table.first]:
        cells = [written(table.columns[i], row[i]) for i in kept]
        drawn.add_row(*(Line(value) + Line(f" {between}" if between else "", style="dim") for value, between in cells))
    console.print(drawn)
    if len(table.rows) > table.first:
        console.print(Line(f"… and {len(table.rows) - table.first:,} more", style="dim"))
    if table.note:
        console.print(Line(table.note, style="dim"))


def _show_passages(found: blocks.Passages, console: Console) -> None:
    if found.title:
        console.print(Line(found.title, style="bold"))
    for passage in found.passages:
        head = [f"row {passage.row}" if passage.row is not None else "", passage.label, passage.note]
        line = Line(", ".join(part for part in head if part), style="dim")
        line.append(": " if line.plain else "")
        for text, weight in passage.pieces:
            colour = BLUE if weight > 0 else ORANGE
            line.append(" ".join(text.split("\n")), style=f"bold {colour}" if weight else "not dim")
        console.print(Padding(line, (0, 0, 0, 2)))
