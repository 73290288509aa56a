"""A report is data: every result returns a `Report`, and renderers write it for a medium.

Strings in blocks are plain text. Renderers escape them for their medium (terminal, HTML, Markdown);
nobody else does. Text that comes from data (tokens, labels, file names) goes through
`tokensieve.escape.for_display` first, so that it is short and nothing in it is invisible.
`only` names the media that show a block.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import polars as pl

from tokensieve import wording
from tokensieve.arrays import Ints
from tokensieve.escape import for_display
from tokensieve.task.tasks import CorpusModel, OfCorpusModel

Style = Literal["plain", "lead", "next", "note", "good", "warning", "bad"]
Format = Literal[
    "text",
    "token",
    "count",
    "percent",
    "signed",
    "plain",
    "chance",
    "interval",
    "rate",
    "cell",
    "link",
]
Medium = Literal["terminal", "html", "markdown"]
Mark = Literal["full", "open", "alarm", "dotted", "none"]
EVERYWHERE: tuple[Medium, ...] = ("terminal", "html", "markdown")
PAGE: tuple[Medium, ...] = ("html", "markdown")  # not in a terminal


@dataclass(frozen=True)
class Text:
    """A paragraph.

    Of its styles, `lead` is larger, `next` comes first on a phone, `note` is small print, and the
    last three are coloured.
    """

    text: str
    style: Style = "plain"
    only: tuple[Medium, ...] = EVERYWHERE


class ValueAndInterval(NamedTuple):
    """A cell of a column of format interval or rate."""

    value: float
    low: float
    high: float


class Fact(NamedTuple):
    """A figure with its label; the note may be empty."""

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Facts:
    """A few figures side by side."""

    facts: tuple[Fact, ...]
    only: tuple[Medium, ...] = EVERYWHERE


@dataclass(frozen=True)
class Tokens:
    """A row of tokens as they are, and how many more there are; on a page a click opens one.

    Renderers call `for_display`.
    """

    title: str
    tokens: tuple[str, ...]
    more: int = 0
    only: tuple[Medium, ...] = EVERYWHERE


@dataclass(frozen=True)
class Terms:
    """Definitions: (term, what it means)."""

    terms: tuple[tuple[str, str], ...]
    only: tuple[Medium, ...] = PAGE


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        format: how cells are written (`tokensieve.wording`). A cell of format `interval` is
            (value, low, high), written "+0.42 [+0.31, +0.53]"; one of format `rate` is the same,
            written "83.0% (79.1 to 86.4)", or the value alone where low is None. One of format
            `cell` is (count, fraction), written "107 (97%)" and shaded by the fraction.
        digits: decimals of numbers; None for the default of the format.
        unit: small print beside the head, such as "× 1,000".
        bar: on a page, numbers, intervals and rates are drawn as bars, too: percentages from 0 to
            100, others from zero.
        marks: for a column of a few known texts, which dot stands before each: "full" and "open"
            are blue, "alarm" is orange, "dotted" and "none" are grey.
        extra: on a page, shown only when the reader asks for all columns.
    """

    name: str
    format: Format = "text"
    digits: int | None = None
    unit: str = ""
    bar: bool = False
    marks: Mapping[str, Mark] = field(default_factory=dict)
    extra: bool = False


@dataclass(frozen=True)
class Table:
    """Rows under heads: a cell for each column, None shown as –. The note is small print below.

    Attributes:
        title: above the table; "" for none.
        n_shown: how many rows the terminal and Markdown show, the first ones; they say how many
            more there are.
        searchable: on a page, the table sorts by a click on a head and has a search box.
    """

    title: str
    columns: tuple[Column, ...]
    rows: Sequence[Sequence[object]]
    note: str = ""
    n_shown: int = 12
    searchable: bool = False
    only: tuple[Medium, ...] = EVERYWHERE


@dataclass(frozen=True)
class Picture:
    """A chart: what it shows, and the data for it.

    Attributes:
        name: of its file, without ending; subfolders by "/".
        chart: which chart of `tokensieve.report.pictures` draws it; up to the first "-" the name
            of its module.
        data: what that chart takes: numbers, texts, lists and frames.
        title, caption: one line above it, and one below.
        description: what it shows, in words, for those who cannot see it.
    """

    name: str
    chart: str
    data: Mapping[str, Any]
    title: str
    caption: str = ""
    description: str = ""


@dataclass(frozen=True)
class Passage:
    """A text with marked pieces.

    Attributes:
        pieces: (text, weight): weights above zero are marked blue, below zero orange, zero not
            at all.
        row: row in the source, from 1; None where it has none.
        note: what to see in it.
        style: "good" or "bad" sets the note in a badge.
        part: "train" where the audit's page shall ask whether the label of this training document
            is wrong.
    """

    pieces: tuple[tuple[str, float], ...]
    label: str = ""
    row: int | None = None
    note: str = ""
    style: Style = "plain"
    part: Literal["", "train"] = ""


@dataclass(frozen=True)
class Passages:
    """Texts of the data with marked pieces; `short` ones are a line each, others documents."""

    title: str
    passages: tuple[Passage, ...]
    short: bool = True
    only: tuple[Medium, ...] = EVERYWHERE


@dataclass(frozen=True)
class Command:
    """A shell command that works when pasted, and what it does."""

    command: str
    purpose: str = ""
    only: tuple[Medium, ...] = EVERYWHERE


@dataclass(frozen=True, eq=False)
class FindingTokens:
    """The tokens of a finding, with the training documents that contain each.

    Attributes:
        label: the class concerned, or "".
        tokens: at most eight, the one that the headline names first.
        rows: token, part ("train" or "test"), row, label of the documents concerned.
    """

    label: str
    tokens: tuple[str, ...]
    rows: pl.DataFrame


@dataclass(frozen=True, eq=False)
class InteractiveAudit(OfCorpusModel):
    """The interactive part of an audit's page: a map and a table of all tokens, documents, a box.

    The scripts in `report/live` draw it.

    Attributes:
        learned: the trained model, and the documents it was trained and tested on.
        tokens: the table of tokens.csv, a row per token type and class.
        neutral: class → posterior difference of a token that predicts nothing.
        seed: of the audit; what the page samples follows from it.
        first_class: the class that the page shows first.
        findings: their tokens, most serious finding first.
        top_tokens: class → its strongest predictors, at most 25.
        disagreeing: tokens on which data and model disagree, as the page lists them.
        maskable: of each finding, the first token that `mask` can cut from texts.
        right, wrong: test documents predicted correctly and wrongly, most confident first.
        instead: what other media show, and pages in a browser without scripts.
    """

    learned: CorpusModel
    tokens: pl.DataFrame
    neutral: Mapping[str, float]
    seed: int
    first_class: str
    findings: tuple[FindingTokens, ...]
    top_tokens: Mapping[str, list[str]]
    disagreeing: tuple[str, ...]
    maskable: tuple[str, ...]
    right: Ints
    wrong: Ints
    instead: tuple[Block, ...] = ()


@dataclass(frozen=True)
class Section:
    """Blocks under a title; of a finding the title is its kind.

    Attributes:
        anchor: its address on a page; made from the title if empty.
        level: of a finding, how serious it is: "high", "medium" or "low"; else empty.
        folded: on a page, closed until a click.
    """

    title: str
    blocks: tuple[Block, ...]
    anchor: str = ""
    level: str = ""
    folded: bool = False
    only: tuple[Medium, ...] = EVERYWHERE


Block = (
    Text
    | Facts
    | Tokens
    | Terms
    | Table
    | Picture
    | Passages
    | Command
    | InteractiveAudit
    | Section
)


@dataclass(frozen=True)
class Report:
    """The report of a result.

    Attributes:
        command: the subcommand that makes such results, such as "audit".
        title: what was done to what, such as "Audit of tickets.csv".
        verdict: one sentence, the first thing that a reader sees.
        blocks: everything else, in order. What comes before the first `Section` is the first screen
            of the page; it ends with a `Command` or a `Text` that says what to do next.
        about: version, settings, seconds and the like by name, for the small print at the end; a
            mapping becomes a table.
    """

    command: str
    title: str
    verdict: str
    blocks: tuple[Block, ...]
    about: Mapping[str, object] = field(default_factory=dict)


class CellText(NamedTuple):
    """What a cell says, and its interval in smaller print ("" where it has none)."""

    text: str
    interval: str = ""

    @property
    def on_one_line(self) -> str:
        """The text and its interval, with a space between."""
        return f"{self.text} {self.interval}".rstrip()


DEFAULT_DIGITS = {"percent": 1, "rate": 1, "cell": 0}  # two for all other formats


def cell_text(column: Column, value: Any) -> CellText:
    """A cell as its column's format writes it; – for None."""
    if value is None:
        return CellText("–")
    digits = column.digits
    if digits is None:
        digits = DEFAULT_DIGITS.get(column.format, 2)
    match column.format:
        case "text" | "link":
            return CellText(str(value))
        case "token":
            return CellText(for_display(str(value)))
        case "interval" | "rate" | "cell":
            return _cell_with_interval(column.format, value, digits)
        case "count":
            return CellText(wording.count(value))
        case "chance":
            return CellText(wording.chance(value))
        case "percent":
            return CellText(wording.percent(value, digits))
        case "signed":
            return CellText(wording.signed(value, digits))
        case "plain":
            return CellText(wording.plain(value, digits))


def _cell_with_interval(form: Format, value: Any, digits: int) -> CellText:
    """Cells of several numbers; see `Column` for what they hold."""
    if form == "cell":
        n, fraction = value
        return CellText(wording.count(n), f"({wording.percent(fraction, digits)})")
    x, low, high = value
    write = wording.signed if form == "interval" else wording.percent
    text = write(x, digits)
    if low is None:
        return CellText(text)
    if form == "interval":
        return CellText(text, wording.interval(low, high, digits))
    first = wording.percent(low, digits).removesuffix("%")
    last = wording.percent(high, digits).removesuffix("%")
    return CellText(text, f"({first} to {last})")


def blocks_for(blocks: Sequence[Block], medium: Medium) -> list[Block]:
    """The blocks that a medium shows; where it is not a page, those instead of scripts."""
    shown: list[Block] = []
    for block in blocks:
        if medium not in getattr(block, "only", (medium,)):
            continue
        if medium != "html" and isinstance(block, InteractiveAudit):
            shown += blocks_for(block.instead, medium)
        else:
            shown.append(block)
    return shown


def walk(blocks: Sequence[Block]) -> Iterator[Block]:
    """All blocks, those within others too."""
    for block in blocks:
        yield block
        match block:
            case Section():
                yield from walk(block.blocks)
            case InteractiveAudit():
                yield from walk(block.instead)
