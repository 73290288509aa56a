"""A cell of a table as text: its number, and its interval in smaller print where it has one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tokensieve import wording
from tokensieve.blocks import Block, Column, Columns, Live, Medium, Section
from tokensieve.escape import shown

MISSING = "–"
DIGITS = {"percent": 1, "signed": 2, "plain": 2, "milli": 2, "interval": 2, "rate": 1, "cell": 0}


def written(column: Column, value: Any) -> tuple[str, str]:
    """The cell, and its interval ("" where it has none)."""
    if value is None:
        return MISSING, ""
    digits = DIGITS.get(column.format, 0) if column.digits is None else column.digits
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
            between = "" if low is None else wording.interval(low, high, digits)
            return wording.signed(x, digits), between
        case "rate":
            x, low, high = value
            if low is None:
                return wording.percent(x, digits), ""
            ends = (wording.percent(end, digits).removesuffix("%") for end in (low, high))
            return wording.percent(x, digits), f"({' to '.join(ends)})"
        case "cell":
            n, fraction = value
            return wording.count(n), f"({wording.percent(fraction, digits)})"
    write = {
        "percent": wording.percent,
        "signed": wording.signed,
        "plain": wording.plain,
        "milli": wording.milli,
    }[column.format]
    return write(value, digits), ""


def number(column: Column, value: Any) -> float | None:
    """What a cell is sorted and drawn by; None for text."""
    if column.format in ("interval", "rate", "cell") and value is not None:
        value = value[0]
    return None if value is None or column.format in ("text", "token", "link") else float(value)


def for_medium(block: Block, medium: Medium) -> bool:
    """Whether the medium shows the block."""
    return medium in getattr(block, "only", (medium,))


def walk(these: Sequence[Block]) -> Iterator[Block]:
    """All blocks, those within others too."""
    for block in these:
        yield block
        if isinstance(block, Section):
            yield from walk(block.blocks)
        elif isinstance(block, Columns):
            for column in block.columns:
                yield from walk(column)
        elif isinstance(block, Live):
            yield from walk(block.instead)


def opening(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """The blocks of the first screen: those before the first section and before what is interactive."""
    first = next((i for i, block in enumerate(blocks) if isinstance(block, Section | Live)), len(blocks))
    return blocks[:first]
