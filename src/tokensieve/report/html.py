"""A report as one offline HTML page that can be read without its scripts, or for a notebook.

All text is escaped and isolated in its own writing direction. The page's Content-Security-Policy
allows only its own script, by hash, and no requests.
"""

from __future__ import annotations

import math
import re
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from textwrap import shorten
from typing import Any, NamedTuple
from urllib.parse import quote

import jinja2
from markupsafe import Markup, escape

from tokensieve import __version__, wording
from tokensieve.escape import for_display, visible
from tokensieve.progress import in_background
from tokensieve.report import blocks, live
from tokensieve.report.blocks import (
    Block,
    Column,
    InteractiveAudit,
    Picture,
    Report,
    Section,
    blocks_for,
    cell_text,
    walk,
)
from tokensieve.report.pictures import Drawings, draw, themed

FOLDER = Path(__file__).parent
PAGE_BYTES = 4_950_000  # mail and review tools take 5 MB
NOTEBOOK_BYTES = 1_500_000  # of the page in a notebook, which stores it with every output
SCRIPTS = (  # of the folder live, in order
    "codec format words formatting model state address axis points map hand lines card panel "
    "decisions theme table whatif shade documents box search main"
)
LONGEST_LINK = 36  # letters of a section's title in the navigation

# Documents longer than this are shown as two ends with what is between in words.
MAX_CHARACTERS = 3_000
MAX_PIECES = 800
END_CHARACTERS = 1_500
END_PIECES = 400

_CODE = re.compile(r"`([^`]+)`|(?<![\w-])(--[a-z][a-z-]*(?:=[a-z]+)?)")
_TEXT_FORMATS = ("text", "token", "link")


def render(result: Any, notebook: bool = False) -> str:
    """The HTML page for the result of any command, as `save` writes it to report.html.

    Args:
        result: anything with a method `report`.
        notebook: an element for a notebook instead, with the first screen, the first section and,
            of an audit, the interactive page in a frame of its own.
    """
    report: Report = result.report()
    if not notebook:
        return page(report)
    interactive = ""
    if _interactive_block(report) is not None:
        interactive = page(report, n_bytes=NOTEBOOK_BYTES)
    first = report.blocks[: _first_screen_size(report) + 1]
    without_pictures = tuple(block for block in first if not isinstance(block, Picture))
    report = replace(report, blocks=without_pictures)
    style = re.sub(r":root(?![-\w])", ":host", _read("page.css"))
    style += ":host { display: block; } header { max-width: none; padding: 0; }"
    variables = _context(report, {}) | {"whole": False}
    body = _environment().get_template("page.jinja").render(variables)
    name = f"tokensieve-{sha256(body.encode()).hexdigest()[:12]}"
    template = _environment().get_template("notebook.jinja")
    return template.render(
        report=report, style=Markup(style), body=Markup(body), name=name, interactive=interactive
    )


def page(
    report: Report,
    drawings: Drawings | Future[Drawings] | None = None,
    n_bytes: int | None = None,
) -> str:
    """The report as one page of less than 5 MB: a function of the report alone.

    The data of the interactive part take what room the rest leaves, and are cut to it. They are
    made while the pictures are being drawn. `drawings` are the pictures, if they are drawn
    elsewhere, and `n_bytes` is the largest size of the page, `PAGE_BYTES` if None.
    """
    if drawings is None:
        drawings = in_background(lambda: draw(report.blocks))
    interactive = _interactive_block(report)
    if interactive is None:
        return _static_page(report, drawings, None)

    @cache
    def without_data() -> str:
        """The page before its data; the first call waits for the pictures."""
        return _static_page(report, drawings, interactive)

    def room_for_data() -> int:
        most = PAGE_BYTES if n_bytes is None else n_bytes
        return most - len(without_data().encode())

    data = live.data_blocks(interactive, room_for_data)
    tags = [
        f'<script type="text/plain" id="block-{name}">{block}</script>\n'
        for name, block in data.items()
    ]
    return without_data().replace("<!--blocks-->\n", "".join(tags))


def _interactive_block(report: Report) -> InteractiveAudit | None:
    for block in walk(report.blocks):
        if isinstance(block, InteractiveAudit):
            return block
    return None


def _static_page(
    report: Report,
    drawings: Drawings | Future[Drawings],
    interactive: InteractiveAudit | None,
) -> str:
    """The page without the data that its scripts read."""
    script = _read("page.js")
    style = _read("page.css")
    if interactive is not None:
        modules = "\n".join(_read(f"live/{name}.js") for name in SCRIPTS.split())
        script += f'(() => {{\n"use strict";\n{modules}}})();\n'  # in a scope of their own
        style += _read("live/live.css")
    finished = drawings.result() if isinstance(drawings, Future) else drawings
    variables = _context(report, finished)
    if interactive is not None:
        template = _environment().get_template("live/audit.jinja")
        macros = template.make_module(live.context(interactive))
        variables["live"] = {
            name: Markup(getattr(macros, name)()) for name in ("controls", "panel", "sections")
        }
    variables["whole"] = True
    variables["style"] = Markup(style)
    variables["script"] = Markup(script)
    variables["hashes"] = {"script": _digest(script), "style": _digest(style)}
    rendered = _environment().get_template("page.jinja").render(variables)
    if interactive is None:
        return rendered.replace("<!--blocks-->\n", "")
    return rendered


def _digest(text: str) -> str:
    """SHA-256 as the Content-Security-Policy writes it."""
    return b64encode(sha256(text.encode()).digest()).decode()


def _first_screen_size(report: Report) -> int:
    """The number of blocks before the first section and before the interactive part."""
    for i, block in enumerate(report.blocks):
        if isinstance(block, Section | InteractiveAudit):
            return i
    return len(report.blocks)


def _context(report: Report, drawings: Drawings) -> dict[str, Any]:
    """The variables of the template."""
    anchors = _anchors(report.blocks)
    n_first = _first_screen_size(report)
    first = blocks_for(report.blocks[:n_first], "html")
    leads = [block for block in first if isinstance(block, blocks.Text) and block.style == "lead"]
    left = [block for block in first if isinstance(block, Picture | blocks.Passages)]
    return {
        "report": report,
        "version": __version__,
        "above": leads,
        "hero": left,
        "beside": [block for block in first if block not in leads and block not in left],
        "rest": report.blocks[n_first:],
        "anchors": anchors,
        "links": _links(report, anchors),
        "images": {name: _data_address(files["svg"]) for name, files in drawings.items()},
        "about_it": {
            name: value for name, value in report.about.items() if value not in (None, "", [], {})
        },
        "live": {"controls": "", "panel": "", "sections": ""},
    }


def _data_address(svg: bytes) -> str:
    """A picture as a data address: nothing in it can touch the page."""
    return "data:image/svg+xml;base64," + b64encode(themed(svg).encode()).decode()


def _links(report: Report, anchors: Mapping[int, str]) -> list[tuple[str, str]]:
    """(address, words) of each part of the page, for the navigation."""
    links: list[tuple[str, str]] = []
    for block in report.blocks:
        if isinstance(block, InteractiveAudit):
            links += live.LINKS
        elif isinstance(block, Section) and _has_content(block):
            before_comma_or_colon = re.split(r"[,:(]| of each ", block.title)[0]
            words = shorten(before_comma_or_colon, LONGEST_LINK, placeholder=" …")
            links.append((anchors[id(block)], words))
    return [*links, ("about", "Settings")]


def _anchors(content: Sequence[Block]) -> dict[int, str]:
    """Identity of a section → its address, no two alike.

    Addresses that the scripts and the small print use are taken.
    """
    taken = {"main", "about", "decisions", *(name for name, _ in live.LINKS)}
    anchors: dict[int, str] = {}
    for section in walk(content):
        if isinstance(section, Section):
            from_title = re.sub("[^a-z0-9]+", "-", section.title.lower()).strip("-")
            name = _free_name(section.anchor or from_title or "section", taken)
            taken.add(name)
            anchors[id(section)] = name
    return anchors


def _free_name(wanted: str, taken: set[str]) -> str:
    """The name, with a number behind it if it is taken."""
    name = wanted
    number = 2
    while name in taken:
        name = f"{wanted}-{number}"
        number += 1
    return name


def _has_content(block: Block) -> bool:
    """Whether a page shows the block: a section only with something in it."""
    if not blocks_for([block], "html"):
        return False
    return not isinstance(block, Section) or any(map(_has_content, block.blocks))


class _Group(NamedTuple):
    """Neighbours that are drawn together."""

    kind: str
    members: list[Block]


def _neighbour_groups(content: Sequence[Block]) -> list[_Group]:
    """Findings are drawn as cards, pictures side by side."""
    groups: list[_Group] = []
    for block in filter(_has_content, content):
        if isinstance(block, Section):
            kind = "cards" if block.level else "sections"
        elif isinstance(block, Picture):
            kind = "pictures"
        else:
            kind = "other"
        if not groups or groups[-1].kind != kind:
            groups.append(_Group(kind, []))
        groups[-1].members.append(block)
    return groups


@cache
def _environment() -> jinja2.Environment:
    """The templates of this folder, with everything escaped; compiled once."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Callable[..., Any]] = {
        "kind": lambda block: type(block).__name__,
        "identity": id,
        "grouped": _neighbour_groups,
        "grid": _table_grid,
        "cut": _shortened_passage,
        "peak": _largest_weight,
        "one_line": _on_one_line,
        "code": _with_code,
        "heading": _breakable,
        "address": quote,
        "piece": _visible_piece,
        "shown": for_display,
        "setting": _setting_text,
        "count": wording.count,
        "signed": wording.signed,
    }
    environment.filters |= filters
    return environment


@cache
def _read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def _with_code(text: str) -> Markup:
    """Text between backticks, and options, in the type of code."""
    return Markup(_CODE.sub(r"<code>\1\2</code>", str(escape(text))))


def _breakable(text: str) -> Markup:
    """A heading that may break after an underscore."""
    return Markup(str(escape(text)).replace("_", "_<wbr>"))


def _visible_piece(text: str) -> str:
    """A piece of a document; control characters other than line breaks and tabs are visible."""
    lines = text.replace("\r\n", "\n")
    return re.sub(r"[^\n\t]+", lambda part: visible(part[0]), lines)


def _largest_weight(passage: blocks.Passage) -> float:
    """The largest size of a piece's weight; 1 if none has any."""
    return max((abs(weight) for _, weight in passage.pieces), default=0.0) or 1.0


def _setting_text(value: object) -> str:
    """A setting or a figure in words."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return wording.plain(value, 2)
    if isinstance(value, int):
        return wording.count(value)
    if isinstance(value, list | tuple):
        value = ", ".join(map(str, value))
    return for_display(str(value), 200)


def _on_one_line(text: str) -> str:
    """Text of a document on one line; nothing in it turns the direction or is invisible."""
    words = visible(" ".join(text.split()))
    if not words:
        return " " if text else ""
    left = " " if text[:1].isspace() else ""
    right = " " if text[-1:].isspace() else ""
    return f"{left}{words}{right}"


def _shortened_passage(pieces: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """The pieces of a document to show: all, or both ends and how much is between."""
    ends = list(accumulate(len(text) for text, _ in pieces))
    n_characters = ends[-1] if ends else 0
    if n_characters <= MAX_CHARACTERS and len(pieces) <= MAX_PIECES:
        return list(pieces)
    head_end, tail_start = _gap(ends)
    head = []
    tail = []
    for (text, weight), end in zip(pieces, ends, strict=True):
        start = end - len(text)
        if start < head_end:
            head.append((text[: head_end - start], weight))
        if end > tail_start:
            tail.append((text[max(0, tail_start - start) :], weight))
    if tail_start > head_end:
        head.append((f" [{tail_start - head_end:,} characters omitted] ", 0.0))
    return head + tail


def _gap(ends: Sequence[int]) -> tuple[int, int]:
    """The characters between the two ends that are shown, from the end of each piece."""
    head_end = min(END_CHARACTERS, ends[min(END_PIECES, len(ends)) - 1])
    tail_start = max(ends[-1] - END_CHARACTERS, head_end)
    if len(ends) > END_PIECES:
        tail_start = max(tail_start, ends[-END_PIECES - 1])
    return head_end, tail_start


def _table_grid(table: blocks.Table) -> dict[str, Any]:
    """Heads and cells of a table, as the template writes them."""
    heads = [_head(column) for column in table.columns]
    columns = [
        _cells(column, [row[i] for row in table.rows]) for i, column in enumerate(table.columns)
    ]
    rows = [list(zip(table.columns, heads, row, strict=True)) for row in zip(*columns, strict=True)]
    # the same in every run, so that a page is a function of its report
    identity = repr((table.title, heads, len(table.rows), table.rows[:1]))
    return {
        "heads": heads,
        "rows": rows,
        "id": f"t-{sha256(identity.encode()).hexdigest()[:8]}",
        "extra": any(column.extra for column in table.columns),
    }


def _head(column: Column) -> dict[str, str]:
    """A head with its classes: n for columns of numbers, extra for those shown on request."""
    is_number = not column.bar and column.format not in _TEXT_FORMATS
    classes = ["n"] if is_number else []
    if column.extra:
        classes.append("extra")
    return {"name": column.name, "unit": column.unit, "class": " ".join(classes)}


@dataclass
class _Cell:
    """A cell: what it says, the number it is sorted by, its shade, and its bar as CSS."""

    text: str
    interval: str
    number: float | None = None
    style: str = ""
    bar: str = ""
    against: bool = False


class _BarAxis(NamedTuple):
    """The axis on which the bars of a column are drawn; it has zero on it."""

    start: float
    width: float

    def percent(self, x: float) -> float:
        """The place of a number on the axis, in percent of its length."""
        return 100 * (x - self.start) / self.width


def _bar_axis(column: Column, values: Sequence[Any]) -> _BarAxis:
    """Choose the ends of an axis: 0 and 1 for percentages and rates, else as far as the numbers
    go."""
    if not column.bar or column.format in ("percent", "rate"):
        return _BarAxis(0.0, 1.0)
    ends = [0.0]
    for value in values:
        if value is not None:
            ends += [x for x in _numbers(column, value) if math.isfinite(x)]
    return _BarAxis(min(ends), (max(ends) - min(ends)) or 1.0)


def _numbers(column: Column, value: Any) -> list[float]:
    """The numbers of a cell; nan for those that are missing."""
    numbers = value if column.format in ("interval", "rate", "cell") else (value,)
    return [math.nan if x is None else float(x) for x in numbers]


def _cells(column: Column, values: Sequence[Any]) -> list[_Cell]:
    """The cells of a column, with bars where it has them."""
    axis = _bar_axis(column, values)
    cells = []
    for value in values:
        cell = _Cell(*cell_text(column, value))
        cells.append(cell)
        if value is None or column.format in _TEXT_FORMATS:
            continue
        if column.format == "cell":
            _, shade = value
            cell.style = f"--s:{shade:.2f}"
        numbers = _numbers(column, value)
        sorted_by = numbers[0]
        if math.isfinite(sorted_by):
            cell.number = sorted_by
            if column.bar:
                _draw_bar(cell, axis, numbers)
    return cells


def _draw_bar(cell: _Cell, axis: _BarAxis, numbers: Sequence[float]) -> None:
    """A bar from zero to the first number, and an interval between the other two."""
    zero = axis.percent(0.0)
    end = axis.percent(numbers[0])
    cell.bar = f"--a:{min(zero, end):.1f}%;--b:{abs(end - zero):.1f}%"
    cell.against = end < zero
    if len(numbers) == 3 and math.isfinite(sum(numbers[1:])):
        low = axis.percent(numbers[1])
        high = axis.percent(numbers[2])
        cell.bar += f";--c:{low:.1f}%;--d:{high - low:.1f}%"
