"""A report as one offline HTML page, which can be read without its scripts, and as a piece of a notebook.

All text is escaped and isolated in its own writing direction. A Content-Security-Policy in the page lets its own script run, by
its hash, and forbids every other script and every request.
"""

from __future__ import annotations

import math
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2
from markupsafe import Markup

from tokensieve import __version__, blocks, wording
from tokensieve.blocks import Block, Column, Report, Section
from tokensieve.escape import named, shown, visible
from tokensieve.report import live
from tokensieve.report.cells import for_medium, number, opening, walk, written
from tokensieve.report.pictures import Drawings, draw, pictures_of, themed

FOLDER = Path(__file__).parent
PAGE_BYTES = 4_950_000
CHARACTERS, PIECES = 3_000, 800  # of a document
_OUTER = re.compile(r"[^a-z0-9]+")
_ROOT = re.compile(r":root(?![-\w])")


def page(report: Report, drawings: Drawings | None = None) -> str:
    """The report as one page of less than 5 MB: a function of the report alone.

    Args:
        report: of any result.
        drawings: of its pictures, where they are drawn already.

    Returns:
        HTML, complete.
    """
    drawings = draw(pictures_of(report)) if drawings is None else drawings
    interactive = next((block for block in walk(report.blocks) if isinstance(block, blocks.Live)), None)
    code = _read("page.js") + (live.script() if interactive else "")
    style = _read("page.css") + (live.style() if interactive else "")
    context = _context(report, drawings) | {
        "whole": True,
        "style": Markup(style),
        "script": Markup(code),
        "policy": Markup(_policy(style, code)),
    }
    template = _environment().get_template("page.jinja")
    if interactive is None:
        return template.render(context)
    context |= {"live": live.html(interactive.result)}
    room = PAGE_BYTES - len(template.render(context).encode())
    return template.render(context | {"live_blocks": live.data_blocks(interactive.result, room)})


def render(result: Any, notebook: bool = False) -> str:
    """The page of a result of any command, such as that of `tokensieve.audit`: what `save` writes as report.html.

    Args:
        result: with a method `report`.
        notebook: instead of a page, its text as an element for a notebook.
    """
    return _snippet(result.report()) if notebook else page(result.report())


def _snippet(report: Report) -> str:
    """The first screen and the first section for a notebook, whose styles cannot reach them and which theirs do not reach.

    They are in a shadow tree that a script opens; where scripts do not run, title and verdict stay.
    """
    first = opening(report.blocks)
    short = [
        block
        for block in (*first, *report.blocks[len(first) : len(first) + 1])
        if not isinstance(block, blocks.Picture)
    ]
    report = replace(report, blocks=tuple(short))
    style = _ROOT.sub(":host", _read("page.css")) + ":host { display: block; } header { max-width: none; padding: 0; }"
    context = _context(report, {}) | {"whole": False}
    body = _environment().get_template("page.jinja").render(context)
    name = f"tokensieve-{sha256(body.encode()).hexdigest()[:12]}"
    plain = jinja2.Template("<p><b>{{ title }}</b><br>{{ verdict }}</p>", autoescape=True)
    code = (
        f'for (const host of document.querySelectorAll("#{name}:not([data-open])")) {{ host.dataset.open = "";'
        ' const inside = host.querySelector("template").content.cloneNode(true);'
        ' host.attachShadow({ mode: "open" }).append(inside); }'
    )
    shadow = f"<template><style>{style}</style>{body}</template>"
    instead = plain.render(title=report.title, verdict=report.verdict)
    return f'<div id="{name}">{instead}{shadow}</div><script>{code}</script>'


def _context(report: Report, drawings: Drawings) -> dict[str, Any]:
    """What the template needs of the report."""
    first = [block for block in opening(report.blocks) if for_medium(block, "html")]
    leads = [block for block in first if isinstance(block, blocks.Text) and block.style == "lead"]
    pictured = [block for block in first if isinstance(block, blocks.Picture)]
    anchors = _anchors(report.blocks)
    links: list[tuple[str, str]] = []
    for block in report.blocks:
        if isinstance(block, blocks.Live):
            links += live.LINKS
        elif isinstance(block, Section) and _visible(block):
            links.append((anchors[id(block)], _short(block.title)))
    about = {name: value for name, value in report.about.items() if value not in (None, "", [], {})}
    return {
        "report": report,
        "version": __version__,
        "above": leads,
        "hero_pictures": pictured,
        "beside": [block for block in first if block not in leads and block not in pictured],
        "rest": report.blocks[len(opening(report.blocks)) :],
        "anchors": anchors,
        "links": [*links, ("about", "Settings")],
        "images": {name: _source(themed(files["svg"])) for name, files in drawings.items()},
        "plain_facts": [
            (shown(name), _setting(value)) for name, value in about.items() if not isinstance(value, Mapping)
        ],
        "fact_tables": [
            (
                shown(name.capitalize()),
                [(shown(key.replace("_", " ")), _setting(one)) for key, one in value.items() if one != []],
            )
            for name, value in about.items()
            if isinstance(value, Mapping)
        ],
        "live": {"controls": "", "panel": "", "sections": ""},
        "live_blocks": {},
    }


def _short(title: str) -> str:
    """A section's title for the bar: what stands before a comma or a colon."""
    return re.split("[,:]| of each ", title)[0][:32]


def _anchors(these: Sequence[Block]) -> dict[int, str]:
    """Section → its address, no two alike; those that the scripts and the small print use are taken."""
    taken = {"main", "about", "decisions", *(name for name, _ in live.LINKS)}
    out: dict[int, str] = {}
    for section in walk(these):
        if not isinstance(section, Section):
            continue
        wanted = section.anchor or _OUTER.sub("-", section.title.lower()).strip("-") or "section"
        name, i = wanted, 2
        while name in taken:
            name, i = f"{wanted}-{i}", i + 1
        taken.add(name)
        out[id(section)] = name
    return out


def _visible(block: Block) -> bool:
    """Whether a page shows the block: a section only with something in it."""
    return for_medium(block, "html") and (not isinstance(block, Section) or any(map(_visible, block.blocks)))


def _grouped(these: Sequence[Block]) -> list[dict[str, Any]]:
    """Neighbours that are drawn together: findings as cards, pictures side by side."""
    out: list[dict[str, Any]] = []
    for block in these:
        if not _visible(block):
            continue
        kind = "other"
        if isinstance(block, Section):
            kind = "cards" if block.level else "sections"
        elif isinstance(block, blocks.Picture):
            kind = "pictures"
        if out and out[-1]["kind"] == kind:
            out[-1]["blocks"].append(block)
        else:
            out.append({"kind": kind, "blocks": [block]})
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
        "grouped": _grouped,
        "grid": _grid,
        "cut": _cut,
        "peak": lambda passage: max((abs(weight) for _, weight in passage.pieces), default=0.0) or 1.0,
        "one_line": one_line,
        "piece": piece,
        "shown": shown,
        "count": wording.count,
        "signed": wording.signed,
    }
    return out


@cache
def _read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """A Content-Security-Policy: this style and script, style attributes and images within the page, and no request at all."""
    hashes = {name: b64encode(sha256(text.encode()).digest()).decode() for name, text in (("c", script), ("s", style))}
    return (
        f"default-src 'none'; script-src 'sha256-{hashes['c']}'; style-src 'sha256-{hashes['s']}'; "
        "style-src-attr 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    )


def _source(svg: str) -> str:
    """A picture as a data address: nothing in it can touch the page."""
    return "data:image/svg+xml;base64," + b64encode(svg.encode()).decode()


def _setting(value: Any) -> str:
    """A setting or a figure in words."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return wording.plain(value, 2)
    if isinstance(value, int):
        return wording.count(value)
    listed = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return shown(listed, 200)


def one_line(text: str) -> str:
    """Text of a document on one line, with nothing in it that turns the writing direction or cannot be seen."""
    words = named(" ".join(text.split()))
    return f"{' ' * text[:1].isspace()}{words}{' ' * text[-1:].isspace()}" if words else text and " "


def piece(text: str) -> str:
    """A piece of a document: line breaks and tabs stay, other control characters are made visible."""
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join("\t".join(named(visible(part)) for part in line.split("\t")) for line in lines)


def _cut(pieces: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """The pieces of a document to show: all, or 1,500 characters (at most 400 pieces) of each end and what is between in words."""
    ends = list(accumulate(len(text) for text, _ in pieces))
    total = ends[-1] if ends else 0
    if total <= CHARACTERS and len(pieces) <= PIECES:
        return list(pieces)
    first = min(CHARACTERS // 2, ends[min(PIECES // 2, len(ends)) - 1])
    last = max(total - CHARACTERS // 2, ends[-PIECES // 2 - 1] if len(ends) > PIECES // 2 else 0, first)
    head, tail = [], []
    for (text, weight), end in zip(pieces, ends, strict=True):
        start = end - len(text)
        if start < first:
            head.append((text[: first - start], weight))
        if end > last:
            tail.append((text[max(0, last - start) :], weight))
    between = [(f" [{last - first:,} characters left out here] ", 0.0)] if last > first else []
    return head + between + tail


def _grid(table: blocks.Table) -> dict[str, Any]:
    """Heads and cells of a table, as the template writes them."""
    ends = [_ends(column, [row[i] for row in table.rows]) for i, column in enumerate(table.columns)]
    rows = [
        [_cell(column, row[i], ends[i], i) for i, column in enumerate(table.columns)]  # one cell for each head
        for row in table.rows
    ]
    heads = [{"name": column.name, "unit": column.unit, "class": _class(column)} for column in table.columns]
    identity = sha256(repr((table.title, heads, len(rows), rows[:1])).encode()).hexdigest()[:8]
    return {"heads": heads, "rows": rows, "id": f"t-{identity}", "extra": any(c.extra for c in table.columns)}


def _class(column: Column) -> str:
    side = "" if column.format in ("text", "token", "link") else "n"
    return f"{side} {'extra' if column.extra else ''}".strip()


def _ends(column: Column, values: Sequence[Any]) -> tuple[float, float]:
    """Start and width of the axis on which a column's bars are drawn; zero is on it."""
    if not column.bar or column.format in ("percent", "rate"):
        return 0.0, 1.0
    known = [
        float(x)
        for value in values
        if value is not None
        for x in (value if isinstance(value, tuple | list) else [value])
    ]
    finite = [x for x in known if math.isfinite(x)]
    start, end = min([0.0, *finite]), max([0.0, *finite])
    return start, (end - start) or 1.0


def _cell(column: Column, value: Any, ends: tuple[float, float], place: int) -> dict[str, Any]:
    text, between = written(column, value)
    x = number(column, value)
    cell: dict[str, Any] = {
        "text": text,
        "between": between,
        "number": x if x is None or math.isfinite(x) else None,
        "token": column.format == "token",
        "link": quote(text) if column.format == "link" else "",
        "plain": column.format == "text",
        "mark": column.marks.get(text, ""),
        "class": _class(column),
        "head": f"{column.name} {column.unit}".strip() if place else "",
        "style": "",
        "bar": "",
        "against": False,
    }
    if column.format == "cell" and value is not None:
        cell["class"] += " shaded"
        cell["style"] = f"--s:{value[1]:.2f}"
    if column.bar and cell["number"] is not None:
        start, width = ends
        zero, end = (100 * (at - start) / width for at in (0.0, float(x or 0.0)))
        cell["bar"] = f"--a:{min(zero, end):.1f}%;--b:{abs(end - zero):.1f}%"
        cell["against"] = end < zero
        if isinstance(value, tuple | list) and value[1] is not None and math.isfinite(value[1] + value[2]):
            low, high = (100 * (bound - start) / width for bound in value[1:])
            cell["bar"] += f";--c:{low:.1f}%;--d:{high - low:.1f}%"
    return cell
