"""Texts of several fields as one text, in which a mark begins each field."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Literal, NamedTuple, TypeAlias

import polars as pl

BLANK = r"^[\s\x1c-\x1f]*$"  # what Python's isspace takes for white space


class Quartiles(NamedTuple):
    """The ends of the first three quarters of a column of numbers."""

    first: float
    second: float
    third: float


# how the values of another column become words: months, quarters, or each value a word (None)
ColumnKind: TypeAlias = Literal["month"] | Quartiles | None


class FieldPart(NamedTuple):
    """The part of a joined text that belongs to one field."""

    field: str
    start: int
    end: int


def join_fields(
    fields: Sequence[str], parts: Sequence[pl.Series], n_texts: int | None = None
) -> pl.Series:
    """Join all parts into one text, row by row.

    The text is null where all parts are missing, and white space only where all parts are that.
    A mark inside a part is no mark: its brackets become [ and ].

    Args:
        fields: the name of each part.
        parts: the texts of each field.
        n_texts: if given, only so many first parts decide whether a row is missing or blank.
    """
    columns = [pl.col(str(i)) for i in range(len(parts))]
    deciding = columns[:n_texts]
    marked = []
    for name, column in zip(fields, columns, strict=True):
        part = column.fill_null("")
        for other_name in fields:
            part = part.str.replace_all(f"⟦{other_name}⟧", f"[{other_name}]", literal=True)
        marked.append(pl.lit(f"⟦{name}⟧ ") + part)
    bare_text = pl.concat_str([column.fill_null("") for column in deciding])
    joined = pl.concat_str(marked, separator="\n")
    text = pl.when(bare_text.str.contains(BLANK)).then(bare_text).otherwise(joined)
    is_missing = pl.all_horizontal(column.is_null() for column in deciding)
    frame = pl.DataFrame({str(i): part for i, part in enumerate(parts)})
    return frame.select(pl.when(~is_missing).then(text).alias("text"))["text"]


@cache
def _mark_of(fields: tuple[str, ...]) -> re.Pattern[str]:
    """What begins each of these fields in a joined text."""
    return re.compile("⟦(" + "|".join(map(re.escape, fields)) + ")⟧")


def split_fields(fields: Sequence[str], text: str) -> list[FieldPart]:
    """The parts of a joined text; what precedes the first mark belongs to the first field."""
    parts = []
    name, start = fields[0], 0
    for match in _mark_of(tuple(fields)).finditer(text):
        parts.append(FieldPart(name, start, match.start()))
        name, start = match[1], match.end()
    parts.append(FieldPart(name, start, len(text)))
    return parts
