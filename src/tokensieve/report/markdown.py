"""A report as GitHub-flavoured Markdown in which text from the data is escaped."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tokensieve.escape import for_display, visible
from tokensieve.report import blocks
from tokensieve.report.blocks import (
    Block,
    Report,
    Section,
    Table,
    blocks_for,
    cell_text,
)

_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"}
_LINK = re.compile(r"(?i)\bwww\.|[a-z]:(?=//)|\b(?:mailto|xmpp):|^\d+\.(?=\s)")


def markdown(report: Report | Section) -> str:
    """A report, or a section for a card of the hub, as Markdown that ends with a line break; hostile text cannot become a link, an
    image, HTML or a heading."""
    if isinstance(report, Section):
        return "\n\n".join(part for part in _parts([report], 2) if part) + "\n"
    parts = [f"# {_safe(report.title)}", f"**{_safe(report.verdict)}**", *_parts(report.blocks, 2)]
    plain = {
        name: value for name, value in report.about.items() if isinstance(value, str | int | float)
    }
    parts.append("; ".join(f"{_safe(name)} {_safe(str(value))}" for name, value in plain.items()))
    return "\n\n".join(part for part in parts if part) + "\n"


def _safe(text: str) -> str:
    """Text as Markdown that shows it as it is, on one line."""
    escaped = re.sub(r"([\\`*_{}\[\]()#+!|~$^=-])", r"\\\1", visible(" ".join(text.split())))
    escaped = re.sub("[&<>@]", lambda found: _ENTITIES[found[0]], escaped)
    # the last sign of what would make a bare address a link, or a number a list, as an entity
    return _LINK.sub(lambda found: f"{found[0][:-1]}&#{ord(found[0][-1])};", escaped)


def _parts(these: Sequence[Block], depth: int) -> list[str]:
    """Paragraphs of the blocks."""
    out: list[str] = []
    for block in blocks_for(these, "markdown"):
        match block:
            case blocks.Text():
                out.append(_safe(block.text))
            case blocks.Facts():
                lines = [
                    f"- {_safe(name)}: **{_safe(value)}** {_safe(note)}".rstrip()
                    for name, value, note in block.facts
                ]
                out.append("\n".join(lines))
            case blocks.Tokens():
                listed = ", ".join(_safe(for_display(token, 40)) for token in block.tokens)
                title = f"{_safe(block.title)}: " if block.title else ""
                out.append(title + listed + (f" and {block.more:,} more" if block.more else ""))
            case blocks.Terms():
                out.append(
                    "\n".join(
                        f"- **{_safe(term)}**: {_safe(meaning)}" for term, meaning in block.terms
                    )
                )
            case blocks.Table():
                out += _table(block)
            case blocks.Picture():
                name = _safe(block.description or block.title)
                out += [f"![{name}](<pictures/{block.name}.svg>)", _safe(block.caption)]
            case blocks.Passages():
                out += [
                    f"**{_safe(block.title)}**" if block.title else "",
                    "\n".join(map(_passage, block.passages)),
                ]
            case blocks.Command():
                line = " ".join(block.command.split())
                fence = "`" * max(
                    3, 1 + max((len(run) for run in re.findall("`+", line)), default=0)
                )
                out += [_safe(block.purpose), f"{fence}sh\n{visible(line)}\n{fence}"]
            case blocks.Section():
                level = f" ({block.level})" if block.level else ""
                out += [
                    f"{'#' * depth} {_safe(block.title)}{level}",
                    *_parts(block.blocks, min(depth + 1, 6)),
                ]
    return out


def _table(table: Table) -> list[str]:
    head = " | ".join(
        _safe(f"{column.name} {column.unit}".rstrip()) or " " for column in table.columns
    )
    rules = " | ".join(
        "---" if column.format in ("text", "token") else "--:" for column in table.columns
    )
    lines = [f"| {head} |", f"| {rules} |"]
    for row in table.rows[: table.first]:
        cells = (cell_text(column, value) for column, value in zip(table.columns, row, strict=True))
        lines.append(f"| {' | '.join(_safe(' '.join(cell).rstrip()) for cell in cells)} |")
    more = f"… and {len(table.rows) - table.first:,} more" if len(table.rows) > table.first else ""
    return [
        f"**{_safe(table.title)}**" if table.title else "",
        "\n".join(lines),
        more,
        _safe(table.note),
    ]


def _passage(passage: blocks.Passage) -> str:
    """A line of a list, with marked pieces in bold, the spaces around them outside of it."""
    head = [
        f"row {passage.row}" if passage.row is not None else "",
        _safe(passage.label),
        _safe(passage.note),
    ]
    out = "".join([", ".join(part for part in head if part), ": " if any(head) else ""])
    for text, weight in passage.pieces:
        inner, left, right = _safe(text), " " * text[:1].isspace(), " " * text[-1:].isspace()
        bold = "**" if weight else ""
        out += f"{left}{bold}{inner}{bold}{right}" if inner else left
    return f"- {out}"
