"""Other columns as tokens (`--columns source,date`), so that what they give away is found.

Each value becomes one word in its field, such as `source:twitter`. Numbers with more than 20 values
are divided into quarters, dates into months.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from tokensieve.read.fields import ColumnKind, Quartiles
from tokensieve.read.table import SourceTable
from tokensieve.read.values import Values

MAX_NUMBERS_AS_WORDS = 20  # different numbers; more of them are a measurement
_DATE = r"^\s*(\d{4})-(\d{1,2})-\d{1,2}([T ].*)?\s*$"
_NULL = pl.Series([None], dtype=pl.String)


class ColumnTokens:
    """How the values of other columns become words.

    Attributes:
        names: the fields; of documents each is a column, of pairs one column for each answer.
        kinds: field → "month", `Quartiles`, or None where each value is a word.
        notes: which were divided, and where.
    """

    def __init__(
        self,
        table: SourceTable,
        fields: Mapping[str, Sequence[str]],
        kinds: Mapping[str, ColumnKind] | None = None,
    ) -> None:
        """Look at all values of the columns of each field, unless `kinds` are given."""
        self.names = tuple(fields)
        self.kinds = dict(kinds or {})
        self.notes = list[str]()
        self._table = table
        columns = [
            table.checked_column(column, "columns")
            for columns_of_field in fields.values()
            for column in columns_of_field
        ]
        if not columns or kinds is not None:
            return
        batches = list(table.read(columns))
        for name in fields if batches else ():
            parts = [
                self._as_text(column, batch[column]) for batch in batches for column in fields[name]
            ]
            self.kinds[name] = self._recognised_kind(name, pl.concat(parts).drop_nulls())

    def _recognised_kind(self, name: str, values: pl.Series) -> ColumnKind:
        """Months if all values are dates, quartiles if they are many numbers; else None, and a note
        of either.
        """
        if len(values) and values.str.contains(_DATE).mean() == 1:
            self.notes.append(f"column {name!r} is grouped by month")
            return "month"
        numbers = values.cast(pl.Float64, strict=False).drop_nans()
        if numbers.null_count() or numbers.n_unique() <= MAX_NUMBERS_AS_WORDS:
            return None
        ends = Quartiles(*(float(numbers.quantile(q, "lower") or 0.0) for q in (0.25, 0.5, 0.75)))
        quarters = ", ".join(f"q{i} up to {end:g}" for i, end in enumerate(ends, 1))
        self.notes.append(f"column {name!r} is split into quartiles: {quarters}")
        return ends

    def words(self, name: str, values: Values) -> pl.Series:
        """One word for each value of a field; null for a missing value."""
        text = self._as_text(name, values)
        kind = self.kinds.get(name)
        if kind is None:
            return text.str.replace_all(r"[^\w]+", "_").str.strip_chars("_")
        if kind == "month":
            return text.str.replace(_DATE, "${1}_${2}")
        numbers = text.cast(pl.Float64, strict=False)
        quarter = (
            np.searchsorted(kind, numbers.to_numpy()) + 1
        )  # the first end that is not below it
        names = "q" + pl.Series(quarter).cast(pl.String)
        return names.zip_with(numbers.is_not_nan().fill_null(False), _NULL)

    def _as_text(self, name: str, values: Values) -> pl.Series:
        holds = f"column {name!r} (--columns) contains"
        return self._table.as_names(values, 1, holds, "leave it out")
