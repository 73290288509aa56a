"""A report as GitHub-flavoured Markdown in which text from the data is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tokensieve.escape import IN_SENTENCE, for_display, visible
from tokensieve.report import blocks
from tokensieve.report.blocks import Block, Column, Report, Section, Table, blocks_for, cell_text

DEEPEST_HEADING = 6  # levels that Markdown has
MIN_FENCE = 3  # backticks around a code block
_MARKUP = re.compile(r"([\\`*_{}\[\]()#+!|~$^=-])")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"}
# what would make a bare address a link, or a number at the beginning a list
_LINK = re.compile(r"(?i)\bwww\.|[a-z]:(?=//)|\b(?:mailto|xmpp):|^\d+\.(?=\s)")


def markdown(report: Report | Section) -> str:
    """A report, or a section for a card of the hub, as Markdown that ends with a line break.

    Hostile text cannot become a link, an image, HTML or a heading.
    """
    if isinstance(report, Section):
        return _joined(_paragraphs([report], depth=2))
    about = [
        f"{_safe(name)} {_safe(str(value))}"
        for name, value in report.about.items()
        if isinstance(value, str | int | float)
    ]
    return _joined(
        [
            f"# {_safe(report.title)}",
            f"**{_safe(report.verdict)}**",
            *_paragraphs(report.blocks, depth=2),
            "; ".join(about),
        ]
    )


def _joined(paragraphs: Iterable[str]) -> str:
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph) + "\n"


def _safe(text: str) -> str:
    """Text as Markdown that shows it as it is, on one line."""
    escaped = _MARKUP.sub(r"\\\1", visible(" ".join(text.split())))
    escaped = re.sub("[&<>@]", lambda found: _ENTITIES[found[0]], escaped)
    # the last character of what would become a link or a list, as an entity
    return _LINK.sub(lambda found: f"{found[0][:-1]}&#{ord(found[0][-1])};", escaped)


def _bold(text: str) -> str:
    return f"**{_safe(text)}**" if text else ""


def _paragraphs(content: Sequence[Block], depth: int) -> list[str]:
    """Paragraphs of the blocks; `depth` is the level of headings of their sections."""
    paragraphs: list[str] = []
    for block in blocks_for(content, "markdown"):
        if isinstance(block, Section):
            level = f" ({block.level})" if block.level else ""
            paragraphs.append(f"{'#' * depth} {_safe(block.title)}{level}")
            paragraphs += _paragraphs(block.blocks, min(depth + 1, DEEPEST_HEADING))
        else:
            paragraphs += _block(block)
    return paragraphs


def _block(block: Block) -> list[str]:
    """The paragraphs of a block that holds no others."""
    match block:
        case blocks.Text():
            return [_safe(block.text)]
        case blocks.Facts():
            return [_facts(block)]
        case blocks.Tokens():
            return [_tokens(block)]
        case blocks.Terms():
            lines = [f"- **{_safe(term)}**: {_safe(meaning)}" for term, meaning in block.terms]
            return ["\n".join(lines)]
        case blocks.Table():
            return _table(block)
        case blocks.Picture():
            name = _safe(block.description or block.title)
            return [f"![{name}](<pictures/{block.name}.svg>)", _safe(block.caption)]
        case blocks.Passages():
            return [_bold(block.title), "\n".join(map(_passage, block.passages))]
        case blocks.Command():
            return [_safe(block.purpose), _fenced(block.command)]
    raise TypeError(f"a {type(block).__name__} has no Markdown")


def _facts(block: blocks.Facts) -> str:
    lines = []
    for fact in block.facts:
        line = f"- {_safe(fact.label)}: **{_safe(fact.value)}** {_safe(fact.note)}"
        lines.append(line.rstrip())
    return "\n".join(lines)


def _tokens(block: blocks.Tokens) -> str:
    line = ", ".join(_safe(for_display(token, IN_SENTENCE)) for token in block.tokens)
    if block.title:
        line = f"{_safe(block.title)}: {line}"
    if block.more:
        line += f" and {block.more:,} more"
    return line


def _fenced(command: str) -> str:
    """A code block, with more backticks around it than the command has in a row."""
    line = " ".join(command.split())
    longest_run = max((len(run) for run in re.findall("`+", line)), default=0)
    fence = "`" * max(MIN_FENCE, longest_run + 1)
    return f"{fence}sh\n{visible(line)}\n{fence}"


def _table(table: Table) -> list[str]:
    """Title, rows, how many more there are, and the note; empty where there is none."""
    heads = [_safe(f"{column.name} {column.unit}".rstrip()) or " " for column in table.columns]
    lines = [_row(heads), _row(map(_rule, table.columns))]
    for row in table.rows[: table.n_shown]:
        cells = [
            cell_text(column, value).on_one_line
            for column, value in zip(table.columns, row, strict=True)
        ]
        lines.append(_row(map(_safe, cells)))
    n_left_out = len(table.rows) - table.n_shown
    omission = f"… and {n_left_out:,} more" if n_left_out > 0 else ""
    return [_bold(table.title), "\n".join(lines), omission, _safe(table.note)]


def _rule(column: Column) -> str:
    """The line below a heading; it aligns numbers to the right."""
    return "---" if column.format in ("text", "token") else "--:"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _passage(passage: blocks.Passage) -> str:
    """A line of a list, with marked pieces in bold."""
    where = [_safe(passage.label), _safe(passage.note)]
    if passage.row is not None:
        where.insert(0, f"row {passage.row}")
    head = ", ".join(part for part in where if part)
    text = "".join(_piece(text, weight) for text, weight in passage.pieces)
    if head:
        return f"- {head}: {text}"
    return f"- {text}"


def _piece(text: str, weight: float) -> str:
    """A piece in bold if it has weight, with the spaces around it outside of the bold."""
    inner = _safe(text)
    left = " " if text[:1].isspace() else ""
    if not inner:
        return left
    right = " " if text[-1:].isspace() else ""
    if weight:
        inner = f"**{inner}**"
    return f"{left}{inner}{right}"
