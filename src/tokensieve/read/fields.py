"""Texts of several fields as one text, in which a mark begins each field."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, TypeAlias

import polars as pl

BLANK = r"^[\s\x1c-\x1f]*$"  # what Python's isspace takes for white space
ColumnKind: TypeAlias = Literal["month"] | tuple[float, float, float] | None


def join_fields(
    fields: Sequence[str], parts: Sequence[pl.Series], own: int | None = None
) -> pl.Series:
    """One text of all parts, row by row; null where all are missing, and white space only where all are that (of `own` parts:
    where the first ones are). A mark inside a part is no mark: its brackets become [ and ]."""
    columns = [pl.col(str(i)) for i in range(len(parts))]
    whole = pl.concat_str([column.fill_null("") for column in columns[:own]])
    marked = []
    for name, column in zip(fields, columns, strict=True):
        part = column.fill_null("")
        for other in fields:
            part = part.str.replace_all(f"⟦{other}⟧", f"[{other}]", literal=True)
        marked.append(pl.lit(f"⟦{name}⟧ ") + part)
    text = (
        pl.when(whole.str.contains(BLANK))
        .then(whole)
        .otherwise(pl.concat_str(marked, separator="\n"))
    )
    absent = pl.all_horizontal(column.is_null() for column in columns[:own])
    frame = pl.DataFrame({str(i): part for i, part in enumerate(parts)})
    return frame.select(pl.when(~absent).then(text).alias("text"))["text"]


def split_fields(fields: Sequence[str], text: str) -> list[tuple[str, int, int]]:
    """The parts of a text: (field, start, end). What precedes the first mark belongs to the first field."""
    marks = re.compile("⟦(" + "|".join(map(re.escape, fields)) + ")⟧")
    found = [(fields[0], 0, 0), *((m[1], m.start(), m.end()) for m in marks.finditer(text))]
    ends = [*(start for _, start, _ in found[1:]), len(text)]
    return [(name, end, stop) for (name, _, end), stop in zip(found, ends, strict=True)]
