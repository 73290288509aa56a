"""What all renderers share: a cell of a table as text, and which blocks a medium shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tokensieve import wording
from tokensieve.blocks import Block, Column, Live, Medium, Section
from tokensieve.escape import shown


def cell_text(column: Column, value: Any) -> tuple[str, str]:
    """The cell, and its interval in smaller print ("" where it has none)."""
    if value is None:
        return "–", ""
    digits = {"percent": 1, "rate": 1, "cell": 0}.get(column.format, 2) if column.digits is None else column.digits
    match column.format:
        case "text" | "link":
            return str(value), ""
        case "token":
            return shown(str(value)), ""
        case "count":
            return wording.count(value), ""
        case "chance":
            return wording.chance(value), ""
        case "interval":
            x, low, high = value
            return wording.signed(x, digits), "" if low is None else wording.interval(low, high, digits)
        case "rate":
            x, low, high = value
            low, high = (wording.percent(end, digits).removesuffix("%") for end in (low, high))
            return wording.percent(x, digits), "" if value[1] is None else f"({low} to {high})"
        case "cell":
            return wording.count(value[0]), f"({wording.percent(value[1], digits)})"
        case form:
            return getattr(wording, form)(value, digits), ""  # percent, signed, plain


def blocks_for(these: Sequence[Block], medium: Medium) -> list[Block]:
    """The blocks that a medium shows; where it is not a page, those instead of scripts."""
    out: list[Block] = []
    for block in these:
        if medium not in getattr(block, "only", (medium,)):
            continue
        if medium != "html" and isinstance(block, Live):
            out += blocks_for(block.instead, medium)
        else:
            out.append(block)
    return out


def walk(these: Sequence[Block]) -> Iterator[Block]:
    """All blocks, those within others too."""
    for block in these:
        yield block
        match block:
            case Section():
                yield from walk(block.blocks)
            case Live():
                yield from walk(block.instead)
