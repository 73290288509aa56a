"""A report is data: every result returns a `Report`, and one renderer each turns it into terminal text, HTML or Markdown.

Strings in blocks are plain text. Renderers escape them for their medium; nobody else does. Text that comes from data (tokens,
labels, file names) goes through `tokensieve.escape.shown` first, so that it is short and nothing in it is invisible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Style = Literal["plain", "lead", "note", "good", "warning", "bad"]
Format = Literal["text", "token", "count", "percent", "signed", "plain", "milli", "chance", "interval", "rate"]
Medium = Literal["terminal", "html", "markdown"]


@dataclass(frozen=True)
class Text:
    """A paragraph.

    Attributes:
        text: one or more sentences.
        style: how it is set: `lead` is larger, `note` is small print, the last three are coloured.
        only: the media that show it.
    """

    text: str
    style: Style = "plain"
    only: tuple[Medium, ...] = ("terminal", "html", "markdown")


@dataclass(frozen=True)
class Facts:
    """A few figures side by side: (label, value, note); the note may be empty."""

    facts: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        name: its head.
        format: how cells are written (`tokensieve.wording`). A cell of format `interval` is (value, low, high), written
            "+0.42 [+0.31, +0.53]"; one of format `rate` is the same, written "83.0% (95% CI 79.1 to 86.4)".
        digits: decimals of numbers; None for the default of the format.
        unit: small print beside the head, such as "× 1,000".
    """

    name: str
    format: Format = "text"
    digits: int | None = None
    unit: str = ""


@dataclass(frozen=True)
class Table:
    """Rows under heads.

    Attributes:
        title: a caption.
        columns: one for each cell of a row.
        rows: the cells; None is shown as –.
        note: small print below.
        first: rows that the terminal and Markdown show; they say how many more there are.
        searchable: on a page, the table sorts by a click on a head and has a search box.
        only: the media that show it.
    """

    title: str
    columns: tuple[Column, ...]
    rows: Sequence[Sequence[Any]]
    note: str = ""
    first: int = 12
    searchable: bool = False
    only: tuple[Medium, ...] = ("terminal", "html", "markdown")


@dataclass(frozen=True)
class Picture:
    """A chart: what it shows, and the data for it.

    Attributes:
        name: of its file, without ending; subfolders by "/".
        chart: which chart of `tokensieve.report.pictures` draws it.
        data: what that chart takes.
        title: one line above it.
        caption: one line below it.
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
        pieces: (text, weight): weights above zero are marked blue, below zero orange, zero not at all.
        label: its label.
        row: row in the source, from 1; None where it has none.
        note: what to see in it.
    """

    pieces: tuple[tuple[str, float], ...]
    label: str = ""
    row: int | None = None
    note: str = ""


@dataclass(frozen=True)
class Passages:
    """Texts of the data with marked pieces."""

    title: str
    passages: tuple[Passage, ...]


@dataclass(frozen=True)
class Command:
    """A shell command that works when pasted, and what it does."""

    command: str
    purpose: str = ""


@dataclass(frozen=True)
class Live:
    """The interactive part of a page, drawn by the scripts in `report/live` from a whole result; other media leave it out."""

    kind: Literal["audit"]
    result: Any


@dataclass(frozen=True)
class Section:
    """Blocks under a title.

    Attributes:
        title: of the section; of a finding, its kind.
        blocks: what is in it.
        anchor: its address on a page; made from the title if empty.
        level: of a finding, how serious it is: "high", "medium" or "low"; else empty.
        folded: on a page, closed until a click.
        only: the media that show it.
    """

    title: str
    blocks: tuple[Block, ...]
    anchor: str = ""
    level: str = ""
    folded: bool = False
    only: tuple[Medium, ...] = ("terminal", "html", "markdown")


Block = Text | Facts | Table | Picture | Passages | Command | Live | Section


@dataclass(frozen=True)
class Report:
    """What a result says.

    Attributes:
        command: the subcommand that makes such results, such as "audit".
        title: what was done to what, such as "Audit of tickets.csv".
        verdict: one sentence, the first thing that a reader sees.
        blocks: everything else, in order.
        about: settings, version, seconds and the like by name, for the small print at the end.
    """

    command: str
    title: str
    verdict: str
    blocks: tuple[Block, ...]
    about: Mapping[str, Any] = field(default_factory=dict)
