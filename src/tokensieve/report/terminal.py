"""Reports and predictions in the terminal, as wide as it is; the same numbers as on the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rich import console as rich_console
from rich.segment import Segment
from rich.table import Table as Grid
from rich.text import Text as Line

from tokensieve.escape import IN_CELL, IN_LIST, IN_SENTENCE, for_display, printable
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

BLUE = "#2a78c8"
ORANGE = "#d2691e"
_STYLES = {"note": "dim", "good": BLUE, "warning": "yellow", "bad": ORANGE}
_LEVELS = {"high": f"bold {ORANGE}", "medium": "bold yellow", "low": "bold"}
MIN_SHADED = 0.15  # of the largest contribution; weaker words stay plain
MAX_CLASSES = 8  # whose confusion matrix fits the width of a terminal
MAX_UNKNOWN_LABELS = 3


class _Console(rich_console.Console):
    """Prints nothing that would steer the terminal, wherever in a text or table it occurs."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, **options)
        if not self.is_terminal:  # a file or another program gets unbroken lines
            self.soft_wrap = True

    def on_broken_pipe(self) -> None:
        """Rich would end the program with status 1."""
        raise BrokenPipeError

    def render(
        self, renderable: Any, options: rich_console.ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """The segments that rich draws; their own colours stay."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(printable(segment.text), segment.style)


def show(report: Report, out: Path | None = None, seconds: float | None = None) -> None:
    """Print a report: title, verdict and blocks.

    Pictures, texts and the small print are left to the page. The last line names `out`, the folder
    of its files, and the time taken.
    """
    console = _Console()
    console.print(Line(report.title, style="dim"))
    console.print(Line(report.verdict, style="bold"))
    console.print()
    _show(report.blocks, console)
    if out is not None:
        time = f"{seconds:.1f} s; " if seconds is not None else ""
        last = f"{time}open {out / 'report.html'}; all files are in {out}"
        console.print(Line(last, style="dim"), soft_wrap=True)


def show_score(score: Score, brief: bool = False) -> None:
    """Print accuracy, log loss and the confusion matrix.

    Brief: one line on standard error, where standard output is for the predictions.
    """
    accuracy = score.accuracy
    interval = f"95% CI {percent(accuracy.low)} to {percent(accuracy.high)}"
    figure = f"accuracy {percent(accuracy.value)} ({interval})"
    documents = f" on {accuracy.of:,} labelled documents"
    loss = f"log loss {plain(score.log_loss, 4)}"
    if brief:
        line = Line(f"{figure}{documents}; {loss}; more with --out FOLDER")
        _Console(stderr=True, soft_wrap=True).print(line)
        return
    console = _Console()
    console.print(Line(figure, style="bold") + Line(documents))
    majority = f"always predicting the largest class {percent(score.majority_accuracy)}"
    _show([Text(f"{majority}; {loss}"), *_left_out(score), _confusion(score)], console)


def _left_out(score: Score) -> list[Text]:
    """Documents that could not be scored, by reason."""
    unknown = list(score.unknown_labels.items())[:MAX_UNKNOWN_LABELS]
    texts = [
        Text(f"{n:,} left out: the model has no label {for_display(name, IN_CELL)!r}")
        for name, n in unknown
    ]
    if score.unlabelled:
        texts.append(Text(f"{score.unlabelled:,} left out: no label"))
    return texts


def _confusion(score: Score) -> Block:
    """The confusion matrix, or where it is."""
    if len(score.classes) > MAX_CLASSES:
        n = len(score.classes)
        return Text(f"the confusion matrix of {n} classes is in summary.json")
    heads = [Column(for_display(name, 14), "count") for name in score.classes]
    rows = [
        (for_display(name, IN_LIST), *row)
        for name, row in zip(score.classes, score.confusion.tolist(), strict=True)
    ]
    return Table("", (Column("label ↓ prediction →"), *heads), rows)


def show_explanation(
    model: Model, texts: Sequence[str], explained: Explanation | PairExplanation
) -> None:
    """Print a text shaded by contribution, its prediction, and the contributions with their sum.

    Of a pair, print both texts and their difference.
    """
    from tokensieve.model.explanation import PairExplanation

    if not isinstance(explained, PairExplanation):
        _show_text(model, texts[0], explained)
        return
    _show_text(model, texts[0], explained.first, "first")
    _show_text(model, texts[1], explained.second, "second")
    difference = Line(f"first − second = {signed(explained.logit, 6)}: ", style="bold")
    chance = f"the first is preferred with probability {explained.probability:.4f}"
    _Console().print(difference + Line(chance))


def _show_text(model: Model, text: str, explained: Explanation, name: str = "") -> None:
    """One text with its prediction and contributions; `name` is that of one of two."""
    console = _Console()
    console.print(_shaded(model, text, explained))
    console.print(_prediction(model, explained, name))
    if explained.table.is_empty():
        console.print("no known token: the prediction follows the class frequencies")
    else:
        console.print(_contributions(explained))


def _shaded(model: Model, text: str, explained: Explanation) -> Line:
    """The text, its words coloured by their contributions."""
    classes = [str(name) for name in model.classes]
    pieces = model.pieces(text, classes.index(str(explained.explained)))
    largest = max((abs(piece[1]) for piece in pieces), default=0.0) or 1.0
    line = Line()
    for piece, contribution, *_ in pieces:
        is_strong = abs(contribution) > MIN_SHADED * largest
        style = _style(contribution) if is_strong else ""
        # white space keeps its line breaks
        line.append(for_display(piece, 10_000) if piece.strip() else piece, style=style)
    return line


def _prediction(model: Model, explained: Explanation, name: str) -> Line:
    """A line on what the model predicts for a text."""
    logit = f"logit {signed(explained.logit, 6)}, unknown words: {explained.unknown}"
    if name:
        return Line(f"{name}: {logit}", style="bold")
    if model.pairs:
        return Line(f"{logit}; compare it with another answer: --against TEXT")
    predicted = Line(f"{for_display(str(explained.predicted))}  ", style="bold")
    probability = f"P({for_display(str(explained.explained))}) = {explained.probability:.4f}"
    return predicted + Line(f"{probability}, {logit}")


def _contributions(explained: Explanation) -> Grid:
    """Attention × value of each token, and their sum."""
    grid = Grid(box=None, pad_edge=False)
    grid.add_column("token", justify="left")
    for column in ("count", "attention", "value", "contribution"):
        grid.add_column(column, justify="right")
    for row in explained.table.iter_rows(named=True):
        contribution = row["contribution"]
        grid.add_row(
            Line(for_display(row["token"], IN_SENTENCE)),
            f"{row['count']:g}",
            f"{row['attention']:.4f}",
            signed(row["value"], 3),
            Line(signed(contribution, 6), style=_style(contribution)),
        )
    attention = f"{explained.table['attention'].sum():.4f}"
    total = signed(float(explained.table["contribution"].sum()), 6)
    grid.add_row(Line("sum", style="bold"), "", attention, "", total)
    return grid


def _style(contribution: float) -> str:
    return f"bold {BLUE}" if contribution > 0 else f"bold {ORANGE}"


def _show(content: Iterable[Block], console: _Console) -> None:
    """Print blocks in order, each kind in its own way; pictures and the like are for pages."""
    for block in blocks_for(tuple(content), "terminal"):
        match block:
            case Text():
                console.print(Line(block.text, style=_STYLES.get(block.style, "")))
            case blocks.Facts():
                _show_facts(block, console)
            case blocks.Tokens():
                _show_tokens(block, console)
            case Table():
                _show_table(block, console)
            case blocks.Command():
                if block.purpose:
                    console.print(Line(block.purpose))
                console.print(Line(f"  {block.command}", style="bold"), soft_wrap=True)
            case Section():
                _show_section(block, console)


def _show_facts(facts: blocks.Facts, console: _Console) -> None:
    width = max(len(fact.label) for fact in facts.facts)
    for fact in facts.facts:
        line = Line(f"{fact.label:<{width}}  {fact.value}")
        if fact.note:
            line += Line(f"  {fact.note}", style="dim")
        console.print(line)


def _show_tokens(tokens: blocks.Tokens, console: _Console) -> None:
    title = f"{tokens.title}: " if tokens.title else ""
    listed = ", ".join(for_display(token, IN_SENTENCE) for token in tokens.tokens)
    if tokens.more:
        listed += f" and {tokens.more:,} more"
    console.print(Line(title, style="dim") + Line(listed))


def _show_section(section: Section, console: _Console) -> None:
    """A finding begins with its level; other sections with an empty line and their title."""
    content = blocks_for(section.blocks, "terminal")
    if section.level:
        style = _LEVELS.get(section.level, "bold")
        head = Line(f"{section.title} ({section.level}): ", style=style)
        if content and isinstance(content[0], Text):
            head += Line(content[0].text)
            content = content[1:]
        console.print(head)
    elif any(not isinstance(block, Picture) for block in content):
        console.print()
        console.print(Line(section.title, style="bold"))
    _show(content, console)


def _show_table(table: Table, console: _Console) -> None:
    """A table without the columns that a page shows on request only."""
    if table.title:
        console.print(Line(table.title, style="dim"))
    grid = Grid(box=None, pad_edge=False, expand=False)
    for column in table.columns:
        if not column.extra:
            side: Literal["left", "right"] = "right"
            if column.format in ("text", "token"):
                side = "left"
            head = Line(f"{column.name} {column.unit}".rstrip(), style="dim")
            is_whole = column.format != "text"
            grid.add_column(head, justify=side, overflow="fold", no_wrap=is_whole)
    for row in table.rows[: table.n_shown]:
        cells = zip(table.columns, row, strict=True)
        grid.add_row(*(_cell(column, value) for column, value in cells if not column.extra))
    console.print(grid)
    n_left_out = len(table.rows) - table.n_shown
    if n_left_out > 0:
        console.print(Line(f"… and {n_left_out:,} more", style="dim"))
    if table.note:
        console.print(Line(table.note, style="dim"))


def _cell(column: Column, value: object) -> Line:
    cell = cell_text(column, value)
    if not cell.interval:
        return Line(cell.text)
    return Line(cell.text) + Line(f" {cell.interval}", style="dim")
