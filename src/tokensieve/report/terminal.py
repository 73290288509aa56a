"""Reports and predictions in the terminal, as wide as the terminal is; the same numbers as on the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rich import console as rich_console
from rich.segment import Segment
from rich.table import Table as Grid
from rich.text import Text as Line

from tokensieve.escape import for_display, printable
from tokensieve.report import blocks
from tokensieve.report.blocks import (
    Block,
    Column,
    Picture,
    Report,
    Section,
    Table,
    Text,
    blocks_for,
    cell_text,
)
from tokensieve.wording import percent, plain, signed

if TYPE_CHECKING:
    from tokensieve.model.attention import Model
    from tokensieve.model.explanation import Explanation, PairExplanation
    from tokensieve.task.score import Score

BLUE, ORANGE = "#2a78c8", "#d2691e"
_STYLES = {"note": "dim", "good": BLUE, "warning": "yellow", "bad": ORANGE}
_LEVELS = {"high": f"bold {ORANGE}", "medium": "bold yellow", "low": "bold"}


class _Console(rich_console.Console):
    """Prints nothing that would steer the terminal, wherever in a text, a table or a title it occurs."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, **options)
        self.soft_wrap |= (
            not self.is_terminal
        )  # what another program or a file gets is not broken into lines

    def on_broken_pipe(self) -> None:
        """Rich would end the program with status 1."""
        raise BrokenPipeError

    def render(
        self, renderable: Any, options: rich_console.ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """As in rich; colours are its own and stay."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)


def show(report: Report, out: Path | None = None, seconds: float | None = None) -> None:
    """Print a report: title, verdict and blocks; pictures, texts and the small print are left to the page. The last line names
    `out`, the folder of its files, and the time taken."""
    console = _Console()
    console.print(Line(report.title, style="dim"))
    console.print(Line(report.verdict, style="bold"))
    console.print()
    _show(report.blocks, console)
    if out is not None:
        time = f"{seconds:.1f} s; " if seconds is not None else ""
        console.print(
            Line(f"{time}open {out / 'report.html'}; all files are in {out}", style="dim"),
            soft_wrap=True,
        )


def show_score(score: Score, brief: bool = False) -> None:
    """Accuracy, log loss and the confusion matrix; brief: a line on standard error, where standard output is for the answers."""
    right, loss = score.accuracy, f"log loss {plain(score.log_loss, 4)}"
    share = (
        f"accuracy {percent(right.value)} (95% CI {percent(right.low)} to {percent(right.high)})"
    )
    more = f" on {right.of:,} labelled documents"
    if brief:
        _Console(stderr=True, soft_wrap=True).print(
            Line(f"{share}{more}; {loss}; more with --out FOLDER")
        )
        return
    console = _Console()
    console.print(Line(share, style="bold") + Line(more))
    these: list[Block] = [
        Text(f"always predicting the largest class {percent(score.majority_accuracy)}; {loss}")
    ]
    for name, n in list(score.unknown_labels.items())[:3]:
        these.append(Text(f"{n:,} left out: the model has no label {for_display(name, 30)!r}"))
    these += [Text(f"{score.unlabelled:,} left out: no label")] * bool(score.unlabelled)
    heads = (
        Column("label ↓ prediction →"),
        *(Column(for_display(name, 14), "count") for name in score.classes),
    )
    rows = [
        (for_display(name, 24), *row)
        for name, row in zip(score.classes, score.confusion.tolist(), strict=True)
    ]
    if len(rows) > 8:
        these.append(Text(f"the confusion matrix of {len(rows)} classes is in summary.json"))
    else:
        these.append(Table("", heads, rows))
    _show(these, console)


def show_explanation(
    model: Model, texts: Sequence[str], found: Explanation | PairExplanation
) -> None:
    """A text shaded by contribution, a line on its answer, and the contributions with their sum; or two, and their difference."""
    from tokensieve.model.explanation import PairExplanation

    if not isinstance(found, PairExplanation):
        _show_sum(model, texts[0], found)
        return
    _show_sum(model, texts[0], found.first, "first")
    _show_sum(model, texts[1], found.second, "second")
    said = f"the first is preferred with probability {found.probability:.4f}"
    _Console().print(
        Line(f"first − second = {signed(found.logit, 6)}: ", style="bold") + Line(said)
    )


def _show_sum(model: Model, text: str, found: Explanation, name: str = "") -> None:
    """One text; `name` is that of one of two."""
    console = _Console()
    shares = model.pieces(text, [str(c) for c in model.classes].index(str(found.explained)))
    largest = max((abs(share[1]) for share in shares), default=0.0) or 1.0
    line = Line()
    for piece, contribution, _, _ in shares:
        style = _style(contribution) if abs(contribution) > 0.15 * largest else ""
        line.append(for_display(piece, 10_000) if piece.strip() else piece, style=style)
    console.print(line)
    answer = f"logit {signed(found.logit, 6)}"
    if name:
        console.print(Line(f"{name}: {answer}, unknown words: {found.unknown}", style="bold"))
    elif model.pairs:
        advice = "compare it with another answer: --against TEXT"
        console.print(Line(f"{answer}, unknown words: {found.unknown}; {advice}"))
    else:
        numbers = f"P({for_display(str(found.explained))}) = {found.probability:.4f}, {answer}, unknown words: {found.unknown}"
        console.print(Line(f"{for_display(str(found.predicted))}  ", style="bold") + Line(numbers))
    if found.table.is_empty():
        console.print("no known token: the prediction follows the class frequencies")
        return
    table = Grid(box=None, pad_edge=False)
    for column in ("token", "count", "attention", "value", "contribution"):
        table.add_column(column, justify="left" if column == "token" else "right")
    for row in found.table.iter_rows(named=True):
        added = Line(signed(row["contribution"], 6), style=_style(row["contribution"]))
        cells = f"{row['count']:g}", f"{row['attention']:.4f}", signed(row["value"], 3)
        table.add_row(Line(for_display(row["token"], 40)), *cells, added)
    sums = (
        f"{found.table['attention'].sum():.4f}",
        "",
        signed(float(found.table["contribution"].sum()), 6),
    )
    table.add_row(Line("sum", style="bold"), "", *sums)
    console.print(table)


def _style(contribution: float) -> str:
    return f"bold {BLUE}" if contribution > 0 else f"bold {ORANGE}"


def _show(these: Iterable[Block], console: _Console) -> None:
    for block in blocks_for(tuple(these), "terminal"):
        match block:
            case Text():
                console.print(Line(block.text, style=_STYLES.get(block.style, "")))
            case blocks.Facts():
                width = max(len(name) for name, _, _ in block.facts)
                for name, value, note in block.facts:
                    console.print(
                        Line(f"{name:<{width}}  {value}")
                        + Line(f"  {note}" if note else "", style="dim")
                    )
            case blocks.Tokens():
                more = f" and {block.more:,} more" if block.more else ""
                listed = ", ".join(for_display(token, 40) for token in block.tokens)
                console.print(
                    Line(f"{block.title}: " if block.title else "", style="dim")
                    + Line(listed + more)
                )
            case Table():
                _show_table(block, console)
            case blocks.Command():
                if block.purpose:
                    console.print(Line(block.purpose))
                console.print(Line(f"  {block.command}", style="bold"), soft_wrap=True)
            case Section():
                _show_section(block, console)


def _show_section(section: Section, console: _Console) -> None:
    """A finding begins with its level; other sections with an empty line and their title."""
    inside = blocks_for(section.blocks, "terminal")
    if section.level:
        head = Line(
            f"{section.title} ({section.level}): ", style=_LEVELS.get(section.level, "bold")
        )
        match inside:
            case [Text() as first, *inside]:
                head += Line(first.text)
        console.print(head)
    elif any(not isinstance(block, Picture) for block in inside):
        console.print()
        console.print(Line(section.title, style="bold"))
    _show(inside, console)


def _show_table(table: Table, console: _Console) -> None:
    if table.title:
        console.print(Line(table.title, style="dim"))
    drawn = Grid(box=None, pad_edge=False, expand=False)
    kept = [i for i, column in enumerate(table.columns) if not column.extra]
    for i in kept:
        column = table.columns[i]
        side: Literal["left", "right"] = "left" if column.format in ("text", "token") else "right"
        head = Line(f"{column.name} {column.unit}".rstrip(), style="dim")
        drawn.add_column(head, justify=side, overflow="fold", no_wrap=column.format != "text")
    for row in table.rows[: table.first]:
        cells = [cell_text(table.columns[i], row[i]) for i in kept]
        drawn.add_row(
            *(
                Line(value) + Line(f" {between}" if between else "", style="dim")
                for value, between in cells
            )
        )
    console.print(drawn)
    if len(table.rows) > table.first:
        console.print(Line(f"… and {len(table.rows) - table.first:,} more", style="dim"))
    if table.note:
        console.print(Line(table.note, style="dim"))
