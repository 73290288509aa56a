"""A report as one offline HTML page that can be read without its scripts, or as an element for a notebook. All text is escaped and
isolated in its own writing direction. The page's Content-Security-Policy allows only its own script, by hash, and no requests."""

from __future__ import annotations

import math
import re
from base64 import b64encode
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import cache
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from textwrap import shorten
from typing import Any
from urllib.parse import quote

import jinja2
import numpy as np
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
PAGE_BYTES = 4_950_000
_CODE = re.compile(r"`([^`]+)`|(?<![\w-])(--[a-z][a-z-]*(?:=[a-z]+)?)")
SCRIPTS = (  # of the folder live, in order
    "codec format words formatting model state address axis points map hand lines card panel decisions theme table whatif shade "
    "documents box search main"
)


def render(result: Any, notebook: bool = False) -> str:
    """The HTML page for the result of any command (anything with a method `report`), or with `notebook` an element for a notebook;
    `save` writes the page as report.html."""
    report: Report = result.report()
    if not notebook:
        return page(report)
    # the first screen and the first section; pictures are for pages
    first = report.blocks[: _first_screen_size(report) + 1]
    report = replace(
        report, blocks=tuple(block for block in first if not isinstance(block, Picture))
    )
    style = re.sub(r":root(?![-\w])", ":host", _read("page.css"))
    style += ":host { display: block; } header { max-width: none; padding: 0; }"
    body = _environment().get_template("page.jinja").render(_context(report, {}) | {"whole": False})
    name = f"tokensieve-{sha256(body.encode()).hexdigest()[:12]}"
    template = _environment().get_template("notebook.jinja")
    return template.render(report=report, style=Markup(style), body=Markup(body), name=name)


def page(report: Report, drawings: Drawings | Future[Drawings] | None = None) -> str:
    """The report as one page of less than 5 MB: a function of the report alone, and of its pictures, if drawn elsewhere."""
    drawings = in_background(lambda: draw(report.blocks)) if drawings is None else drawings
    interactive = next(
        (block for block in walk(report.blocks) if isinstance(block, InteractiveAudit)), None
    )
    code, style = _read("page.js"), _read("page.css")
    if interactive:
        inside = "\n".join(
            _read(f"live/{name}.js") for name in SCRIPTS.split()
        )  # in one scope of their own
        code += f'(() => {{\n"use strict";\n{inside}}})();\n'
        style += _read("live/live.css")
    hashes = {"script": code, "style": style}
    hashes = {
        name: b64encode(sha256(text.encode()).digest()).decode() for name, text in hashes.items()
    }
    template = _environment().get_template("page.jinja")

    @cache
    def rendered() -> str:
        out = _context(report, drawings.result() if isinstance(drawings, Future) else drawings)
        if interactive:
            parts = (
                _environment()
                .get_template("live/audit.jinja")
                .make_module(live.context(interactive))
            )
            out |= {
                "live": {
                    name: Markup(getattr(parts, name)())
                    for name in ("controls", "panel", "sections")
                }
            }
        out |= {"whole": True, "style": Markup(style), "script": Markup(code), "hashes": hashes}
        return template.render(out)

    data = {}
    if interactive:  # the room is asked for last: until then the pictures may be drawn
        data = live.data_blocks(interactive, lambda: PAGE_BYTES - len(rendered().encode()))
    tags = (
        f'<script type="text/plain" id="block-{name}">{block}</script>\n'
        for name, block in data.items()
    )
    return rendered().replace("<!--blocks-->\n", "".join(tags))


def _first_screen_size(report: Report) -> int:
    """How many blocks the first screen has: those before the first section and before what is interactive."""
    kinds = [isinstance(block, Section | InteractiveAudit) for block in report.blocks]
    return kinds.index(True) if True in kinds else len(kinds)


def _context(report: Report, drawings: Drawings) -> dict[str, Any]:
    """The variables of the template."""
    anchors = _anchors(report.blocks)
    links: list[tuple[str, str]] = []
    for block in report.blocks:
        if isinstance(block, InteractiveAudit):
            links += live.LINKS
        elif isinstance(block, Section) and _has_content(block):
            short = re.split(r"[,:(]| of each ", block.title)[
                0
            ]  # what stands before a comma or a colon
            links.append((anchors[id(block)], shorten(short, 36, placeholder=" …")))
    first = blocks_for(report.blocks[: _first_screen_size(report)], "html")
    leads = [block for block in first if isinstance(block, blocks.Text) and block.style == "lead"]
    pictured = [block for block in first if isinstance(block, Picture)]
    return {
        "report": report,
        "version": __version__,
        "above": leads,
        "hero_pictures": pictured,
        "beside": [block for block in first if block not in leads and block not in pictured],
        "rest": report.blocks[_first_screen_size(report) :],
        "anchors": anchors,
        "links": [*links, ("about", "Settings")],
        # as data addresses: nothing in a picture can touch the page
        "images": {
            name: "data:image/svg+xml;base64," + b64encode(themed(files["svg"]).encode()).decode()
            for name, files in drawings.items()
        },
        "about_it": {
            name: value for name, value in report.about.items() if value not in (None, "", [], {})
        },
        "live": {"controls": "", "panel": "", "sections": ""},
    }


def _anchors(these: Sequence[Block]) -> dict[int, str]:
    """Section → its address, no two alike; those that the scripts and the small print use are taken."""
    taken = {"main", "about", "decisions", *(name for name, _ in live.LINKS)}
    out: dict[int, str] = {}
    for section in walk(these):
        if isinstance(section, Section):
            wanted = (
                section.anchor
                or re.sub("[^a-z0-9]+", "-", section.title.lower()).strip("-")
                or "section"
            )
            name, i = wanted, 2
            while name in taken:
                name, i = f"{wanted}-{i}", i + 1
            taken.add(name)
            out[id(section)] = name
    return out


def _has_content(block: Block) -> bool:
    """Whether a page shows the block: a section only with something in it."""
    return bool(blocks_for([block], "html")) and (
        not isinstance(block, Section) or any(map(_has_content, block.blocks))
    )


def _neighbour_groups(these: Sequence[Block]) -> list[tuple[str, list[Block]]]:
    """Neighbours that are drawn together: findings as cards, pictures side by side."""
    out: list[tuple[str, list[Block]]] = []
    for block in filter(_has_content, these):
        kind = "other"
        if isinstance(block, Section):
            kind = "cards" if block.level else "sections"
        elif isinstance(block, Picture):
            kind = "pictures"
        if not out or out[-1][0] != kind:
            out.append((kind, []))
        out[-1][1].append(block)
    return out


@cache
def _environment() -> jinja2.Environment:
    """The template of this folder, with everything escaped; compiled once."""
    out = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    out.filters |= {
        "kind": lambda block: type(block).__name__,
        "identity": id,
        "grouped": _neighbour_groups,
        "grid": _table_grid,
        "cut": _shortened_passage,
        "peak": lambda passage: (
            max((abs(weight) for _, weight in passage.pieces), default=0.0) or 1.0
        ),
        "one_line": _on_one_line,
        # options such as --seed, and what stands between backticks
        "code": lambda text: Markup(_CODE.sub(r"<code>\1\2</code>", str(escape(text)))),
        "heading": lambda text: Markup(
            str(escape(text)).replace("_", "_<wbr>")
        ),  # where a long name may break
        # line breaks and tabs stay, other control characters are made visible
        "address": quote,
        "piece": lambda text: re.sub(
            r"[^\n\t]+", lambda part: visible(part[0]), text.replace("\r\n", "\n")
        ),
        "shown": for_display,
        "setting": _setting_text,
        "count": wording.count,
        "signed": wording.signed,
    }
    return out


@cache
def _read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def _setting_text(value: object) -> str:
    """A setting or a figure in words."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return wording.plain(value, 2)
    if isinstance(value, int):
        return wording.count(value)
    return for_display(
        ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value), 200
    )


def _on_one_line(text: str) -> str:
    """Text of a document on one line, with nothing in it that turns the writing direction or cannot be seen."""
    words = visible(" ".join(text.split()))
    return (
        f"{' ' * text[:1].isspace()}{words}{' ' * text[-1:].isspace()}" if words else text and " "
    )


def _shortened_passage(pieces: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """The pieces of a document to show: all, or 1,500 characters (at most 400 pieces) of each end and what is between in words."""
    ends = list(accumulate(len(text) for text, _ in pieces))
    total = ends[-1] if ends else 0
    if total <= 3_000 and len(pieces) <= 800:
        return list(pieces)
    first = min(1_500, ends[min(400, len(ends)) - 1])
    last = max(total - 1_500, ends[-401] if len(ends) > 400 else 0, first)
    head, tail = [], []
    for (text, weight), end in zip(pieces, ends, strict=True):
        start = end - len(text)
        if start < first:
            head.append((text[: first - start], weight))
        if end > last:
            tail.append((text[max(0, last - start) :], weight))
    between = [(f" [{last - first:,} characters omitted] ", 0.0)] if last > first else []
    return head + between + tail


def _table_grid(table: blocks.Table) -> dict[str, Any]:
    """Heads and cells of a table, as the template writes them."""
    columns = [
        _cells(column, [row[i] for row in table.rows]) for i, column in enumerate(table.columns)
    ]
    heads = []
    for column in table.columns:
        side = "" if column.bar or column.format in ("text", "token", "link") else "n"
        classes = f"{side} {'extra' if column.extra else ''}".strip()
        heads.append({"name": column.name, "unit": column.unit, "class": classes})
    identity = sha256(
        repr((table.title, heads, len(table.rows), table.rows[:1])).encode()
    ).hexdigest()[:8]
    rows = [list(zip(table.columns, heads, row, strict=True)) for row in zip(*columns, strict=True)]
    return {
        "heads": heads,
        "rows": rows,
        "id": f"t-{identity}",
        "extra": any(c.extra for c in table.columns),
    }


def _cells(column: Column, values: Sequence[Any]) -> list[dict[str, Any]]:
    """The cells of a column: what they say, the number they are sorted and drawn by, and bars on an axis with zero on it."""
    several = column.format in ("interval", "rate", "cell")
    ends = [0.0, 1.0]
    if column.bar and column.format not in ("percent", "rate"):
        bounds = np.array([value for value in values if value is not None], dtype=np.float64)
        ends = [0.0, *bounds[np.isfinite(bounds)].tolist()]
    start, width = min(ends), (max(ends) - min(ends)) or 1.0
    cells = []
    for value in values:
        text, between = cell_text(column, value)
        cell: dict[str, Any] = {
            "text": text,
            "between": between,
            "number": None,
            "style": "",
            "bar": "",
            "against": False,
        }
        cells.append(cell)
        if value is None or column.format in ("text", "token", "link"):
            continue
        if column.format == "cell":
            cell["style"] = f"--s:{value[1]:.2f}"
        numbers = [math.nan if x is None else float(x) for x in (value if several else (value,))]
        if not math.isfinite(numbers[0]):
            continue
        cell["number"] = numbers[0]
        if column.bar:
            zero, end, *interval = (100 * (x - start) / width for x in (0.0, *numbers))
            cell |= {
                "bar": f"--a:{min(zero, end):.1f}%;--b:{abs(end - zero):.1f}%",
                "against": end < zero,
            }
            if several and math.isfinite(sum(interval)):
                cell["bar"] += f";--c:{interval[0]:.1f}%;--d:{interval[1] - interval[0]:.1f}%"
    return cells
