"""A report as GitHub-flavoured Markdown, in which text of the data stays text."""

from __future__ import annotations

import re

from tokensieve import blocks
from tokensieve.blocks import Block, Report
from tokensieve.escape import named, shown
from tokensieve.report.cells import for_medium, written

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~$^=-])")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"}
_ENTITY = re.compile("[&<>@]")
_LINK = re.compile(r"(?i)\bwww\.|[a-z]:(?=//)|\b(?:mailto|xmpp):|^\d+\.(?=\s)")


def markdown(report: Report) -> str:
    """The report as Markdown that ends with a line break; hostile text cannot become a link, an image, HTML or a heading."""
    parts = [f"# {safe(report.title)}", f"**{safe(report.verdict)}**"]
    for block in report.blocks:
        parts += _parts(block, 2)
    plain = {name: value for name, value in report.about.items() if isinstance(value, str | int | float)}
    if plain:
        parts.append("; ".join(f"{safe(name)} {safe(str(value))}" for name, value in plain.items()))
    return "\n\n".join(part for part in parts if part) + "\n"


def section_markdown(section: blocks.Section) -> str:
    """One section as Markdown, from a heading of level two on."""
    return "\n\n".join(part for part in _parts(section, 2) if part) + "\n"


def safe(text: str) -> str:
    """Text as Markdown that shows it as it is, on one line."""
    escaped = _SPECIAL.sub(r"\\\1", named(" ".join(text.split())))
    return _LINK.sub(_no_link, _ENTITY.sub(lambda found: _ENTITIES[found[0]], escaped))


def _no_link(found: re.Match[str]) -> str:
    """The text of a bare address or of a list's number, with its sign as an entity."""
    sign = found[0][-1]
    return f"{found[0][:-1]}&#{ord(sign)};"


def _parts(block: Block, depth: int) -> list[str]:
    """Paragraphs of one block."""
    if not for_medium(block, "markdown"):
        return []
    match block:
        case blocks.Text():
            return [safe(block.text)]
        case blocks.Facts():
            lines = [f"- {safe(name)}: **{safe(value)}** {safe(note)}".rstrip() for name, value, note in block.facts]
            return ["\n".join(lines)]
        case blocks.Tokens():
            listed = ", ".join(safe(shown(token, 40)) for token in block.tokens)
            more = f" and {block.more:,} more" if block.more else ""
            return [f"{safe(block.title)}: {listed}{more}" if block.title else listed + more]
        case blocks.Terms():
            return ["\n".join(f"- **{safe(term)}**: {safe(meaning)}" for term, meaning in block.terms)]
        case blocks.Columns():
            return [part for column in block.columns for inner in column for part in _parts(inner, depth)]
        case blocks.Table():
            return _table(block)
        case blocks.Picture():
            name = safe(block.description or block.title)
            return [f"![{name}](<pictures/{block.name}.svg>)", safe(block.caption)]
        case blocks.Passages():
            return [f"**{safe(block.title)}**" if block.title else "", "\n".join(map(_passage, block.passages))]
        case blocks.Command():
            line = " ".join(block.command.split())
            fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", line)), default=0))
            return [safe(block.purpose), f"{fence}sh\n{named(line)}\n{fence}"]
        case blocks.Live():
            return [part for inner in block.instead for part in _parts(inner, depth)]
        case blocks.Section():
            level = f" ({block.level})" if block.level else ""
            inner = [part for one in block.blocks for part in _parts(one, min(depth + 1, 6))]
            return [f"{'#' * depth} {safe(block.title)}{level}", *inner]


def _table(table: blocks.Table) -> list[str]:
    head = " | ".join(safe(f"{column.name} {column.unit}".rstrip()) or " " for column in table.columns)
    rules = " | ".join("---" if column.format in ("text", "token") else "--:" for column in table.columns)
    lines = [f"| {head} |", f"| {rules} |"]
    for row in table.rows[: table.first]:
        cells = (written(column, value) for column, value in zip(table.columns, row, strict=True))
        lines.append(f"| {' | '.join(safe(' '.join(cell).rstrip()) for cell in cells)} |")
    more = len(table.rows) - table.first
    return [
        f"**{safe(table.title)}**" if table.title else "",
        "\n".join(lines),
        f"… and {more:,} more" if more > 0 else "",
        safe(table.note),
    ]


def _passage(passage: blocks.Passage) -> str:
    """A line of a list, with marked pieces in bold."""
    where = [f"row {passage.row}" if passage.row is not None else "", safe(passage.label), safe(passage.note)]
    text = "".join(_piece(text, weight) for text, weight in passage.pieces)
    head = ", ".join(part for part in where if part)
    return f"- {head}: {text}" if head else f"- {text}"


def _piece(text: str, weight: float) -> str:
    """A piece with the spaces around it kept outside of the bold."""
    inner = safe(text)
    left, right = " " * text[:1].isspace(), " " * text[-1:].isspace()
    if not inner:
        return left
    return f"{left}**{inner}**{right}" if weight else f"{left}{inner}{right}"
