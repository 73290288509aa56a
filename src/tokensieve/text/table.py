"""Named columns and a stream of rows: what every source becomes, and how data frames and lists do."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

import polars as pl

from tokensieve.errors import InputError
from tokensieve.text.fields import join_fields

if TYPE_CHECKING:
    import pandas

Row: TypeAlias = tuple[Any, ...]
Reader: TypeAlias = Callable[[Sequence[int]], Iterator[Row]]

BATCH = 10_000


class ArrowStream(Protocol):
    """Whatever gives its rows as an Arrow stream."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The PyCapsule of Arrow's C stream interface."""
        ...


@dataclass(frozen=True)
class Table:
    """Named columns, and a stream of rows that can be started again.

    Attributes:
        name: what to call the source in messages.
        columns: the column names, all different.
        read: positions of the wanted columns → iterator over rows of those values, in source order.
        whole: the rows as they are, with all their fields, where `columns` need not name every one (JSON); None where it does.
        first_line: whether the names come from a first line, which may be data.

    Raises:
        InputError: a column name occurs twice.
    """

    name: str
    columns: tuple[str, ...]
    read: Reader
    whole: Callable[[], Iterator[dict[str, Any]]] | None = None
    first_line: bool = False

    def __post_init__(self) -> None:
        twice = sorted(name for name, n in Counter(self.columns).items() if n > 1)
        if twice:
            raise InputError(
                f"{self.name}: the column name {twice[0][:80]!r} occurs more than once; rename one of them"
            )

    def records(self) -> Iterator[dict[str, Any]]:
        """Every row with all its fields, by name."""
        if self.whole is not None:
            return self.whole()
        return (dict(zip(self.columns, row, strict=True)) for row in self.read(range(len(self.columns))))


def polars_rows(batches: Iterable[pl.DataFrame]) -> Iterator[Row]:
    for batch in batches:
        yield from zip(*(column.to_list() for column in batch.get_columns()), strict=True)


def frame_table(source: Any, name: str = "the data frame") -> Table | None:
    """A data frame as a table: of Polars or pandas, or anything that gives Arrow data; None for anything else.

    Raises:
        InputError: a column name occurs twice, or the data cannot be read.
    """
    if isinstance(source, pl.LazyFrame):
        source = source.collect()
    if isinstance(source, pl.DataFrame):
        return _polars_table(name, source)
    frames = sys.modules.get("pandas")  # a pandas frame exists only where pandas is loaded; do not load it for others
    if frames is not None and isinstance(source, frames.DataFrame):
        return _pandas_table(name, cast("pandas.DataFrame", source))
    if hasattr(source, "__arrow_c_stream__") and not isinstance(source, pl.Series):
        try:
            return _polars_table("the Arrow table", pl.DataFrame(source))
        except (
            pl.exceptions.PolarsError,
            TypeError,
            ValueError,
        ) as problem:  # DuplicateError is Polars' for two like names
            reason = (str(problem).splitlines() or [type(problem).__name__])[0]
            raise InputError(f"the Arrow table cannot be read: {reason[:200]}") from None
    return None


def _polars_table(name: str, frame: pl.DataFrame) -> Table:
    return Table(name, tuple(frame.columns), lambda which: polars_rows(frame[:, list(which)].iter_slices(BATCH)))


def _pandas_table(name: str, frame: pandas.DataFrame) -> Table:
    def read(which: Sequence[int]) -> Iterator[Row]:
        for start in range(0, len(frame), BATCH):
            columns = (frame.iloc[start : start + BATCH, i] for i in which)
            # pandas has several missing values (None, nan, NA, NaT): make them one
            yield from zip(*(c.astype(object).where(c.notna(), None).tolist() for c in columns), strict=True)

    return Table(name, tuple(str(c) for c in frame.columns), read)


def list_table(lists: tuple[Sequence[Any], ...], name: str = "the lists") -> Table:
    if len(lists) != 2 or any(isinstance(part, str | bytes) or not hasattr(part, "__len__") for part in lists):
        raise InputError("give texts and labels as a pair of lists: (texts, labels)")
    if len(lists[0]) != len(lists[1]):
        raise InputError(f"{len(lists[0])} texts but {len(lists[1])} labels: give one label for each text")
    return Table(name, ("text", "label"), lambda which: zip(*(lists[i] for i in which), strict=True))


def once(table: Table, at: Sequence[int]) -> Iterator[Row]:
    """Rows of the wanted columns, each column read once even where it is wanted twice."""
    wanted = list(dict.fromkeys(at))
    place = [wanted.index(i) for i in at]
    rows = table.read(wanted)
    return rows if len(wanted) == len(at) else (tuple(values[i] for i in place) for values in rows)


def joined(table: Table, fields: Sequence[int]) -> Table:
    """The table with several fields joined into one text (`tokensieve.text.fields`), in one column named after them all.

    Raises:
        InputError: while reading, where a field holds something other than text.
    """
    names = [table.columns[i] for i in fields]
    others = [i for i in range(len(table.columns)) if i not in fields]
    columns = (*(table.columns[i] for i in others), " + ".join(names))

    def read(which: Sequence[int]) -> Iterator[Row]:
        n = len(fields)
        for row, values in enumerate(table.read([*fields, *(others[i] for i in which if i < len(others))]), 1):
            for name, value in zip(names, values[:n], strict=True):
                if not (value is None or isinstance(value, str) or value != value):
                    raise InputError(
                        f"{table.name}: row {row}: column {name!r} holds {type(value).__name__} values, not text; choose "
                        "other fields with --text COLUMN"
                    )
            text = join_fields(names, [value if isinstance(value, str) else None for value in values[:n]])
            rest = iter(values[n:])
            yield tuple([next(rest) if i < len(others) else text for i in which])

    return Table(table.name, columns, read)
