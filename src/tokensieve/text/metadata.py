"""Other columns as tokens (`--columns source,annotator,date`), so that what they give away is found like any shortcut.

Each value becomes one word in a field of the column's name, such as `source:twitter`. Numbers with many values are divided into
quarters, dates into months.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import polars as pl

from tokensieve.errors import InputError
from tokensieve.text.table import SourceTable, Values, as_names

FEW = 20  # different numbers that are classes of their own; more are divided into quarters
_DATE = r"^\s*(\d{4})-(\d{1,2})-\d{1,2}([T ].*)?\s*$"


class ColumnTokens:
    """How the values of some columns become words.

    Args:
        table: of any source.
        names: the columns.

    Attributes:
        names: the columns.
        notes: which were divided, and where.

    Raises:
        InputError: a column is not there, or holds lists or the like.
    """

    def __init__(self, table: SourceTable, names: Sequence[str]) -> None:
        self.names = tuple(table.position(name, "columns") for name in names)
        self._table, self._ends, self._dates = table.name, dict[str, list[float]](), set[str]()
        self.notes: list[str] = []
        batches = list(table.read(self.names)) if self.names else []
        for name in self.names:
            values = pl.concat([self._as_text(name, batch[name]) for batch in batches]).drop_nulls()
            numbers = values.cast(pl.Float64, strict=False)
            if len(values) and values.str.contains(_DATE).mean() == 1:
                self._dates.add(name)
                self.notes.append(f"column {name!r}: by month")
            elif numbers.null_count() == 0 and numbers.n_unique() > FEW:
                ends = [float(numbers.quantile(q, "lower") or 0.0) for q in (0.25, 0.5, 0.75)]
                self._ends[name] = ends
                shown = ", ".join(f"q{i} up to {end:g}" for i, end in enumerate(ends, 1))
                self.notes.append(f"column {name!r}: in quarters, {shown}")

    def words(self, name: str, values: Values) -> pl.Series:
        """One word for each value; null where there is none."""
        text = self._as_text(name, values)
        if name in self._dates:
            return text.str.replace(_DATE, "${1}_${2}")
        if name in self._ends:
            number = text.cast(pl.Float64, strict=False)
            quarter = sum(((number > end).cast(pl.Int64) for end in self._ends[name]), pl.Series([1] * len(number)))
            return (
                pl.select(pl.format("q{}", quarter))
                .to_series()
                .zip_with(text.is_not_null(), pl.Series([None], dtype=pl.String))
            )
        return text.str.replace_all(r"[^\w]+", "_").str.strip_chars("_")

    def _as_text(self, name: str, values: Values) -> pl.Series:
        def wrong(row: int, value: Any) -> InputError:
            return InputError(
                f"{self._table}: row {row}: column {name!r} (--columns) holds a {type(value).__name__}; leave it out"
            )

        return as_names(values, wrong, 1)


def is_of_column(token: str, columns: Sequence[str]) -> bool:
    """Whether a token is a value of one of the columns, or what it looks like."""
    return any(re.match(re.escape(name) + ":", token) for name in columns)
