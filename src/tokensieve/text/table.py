"""Named columns in batches: what every source becomes before its documents are chosen.

A batch holds a column as a Polars series where the source is typed (CSV, Parquet, Arrow, frames), and as a list of Python values
where one column may mix types (JSON, lists). The functions at the end turn either into text.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import Any, TypeAlias

import polars as pl

from tokensieve.errors import InputError
from tokensieve.text.labels import label_name, listed, missing

Values: TypeAlias = "pl.Series | list[Any]"
Batch: TypeAlias = dict[str, Values]
Sample: TypeAlias = dict[str, list[Any]]
BATCH = 10_000
_SURROGATE = re.compile("[\ud800-\udfff]")


class SourceTable:
    """Named columns, readable again and again in batches.

    Args:
        name: what to call the source in messages.
        columns: the column names, all different.
        read: column names → batches of them, in source order.
        records: the rows with all their fields, where `columns` need not name every one (JSON); None where it does.
        first_line: whether the names come from a first line, which may be data.
        notes: what was detected, such as the separator.

    Raises:
        InputError: a column name occurs twice.
    """

    def __init__(
        self,
        name: str,
        columns: Sequence[str],
        read: Callable[[Sequence[str]], Iterator[Batch]],
        records: Callable[[], Iterator[dict[str, Any]]] | None = None,
        first_line: bool = False,
        notes: Sequence[str] = (),
    ) -> None:
        twice = sorted(column for column, n in Counter(columns).items() if n > 1)
        if twice:
            raise InputError(f"{name}: the column name {twice[0][:80]!r} occurs more than once; rename one of them")
        self.name, self.columns, self._read, self._records = name, tuple(columns), read, records
        self.first_line, self.notes = first_line, tuple(notes)
        self.kept: object = None  # what must live as long as the table, such as a folder of temporary files

    @classmethod
    def of_records(
        cls, name: str, records: Callable[[], Iterator[dict[str, Any]]], sample: int | None, notes: Sequence[str] = ()
    ) -> SourceTable:
        """A table of JSON objects; its columns are the keys of the first `sample` of them (None: of all)."""
        keys = {key: None for record in islice(records(), sample) for key in record}
        if not keys:
            raise InputError(f"{name}: has no rows; write JSON objects {{…}} with named fields")

        def read(names: Sequence[str]) -> Iterator[Batch]:
            remaining = records()
            while rows := list(islice(remaining, BATCH)):
                yield {name: [row.get(name) for row in rows] for name in names}

        return cls(name, list(keys), read, records, notes=notes)

    @classmethod
    def of_lists(cls, lists: tuple[Sequence[Any], ...], name: str = "the lists") -> SourceTable:
        """A pair of lists of one length, texts and labels, as a table."""
        if len(lists) != 2 or any(isinstance(part, str | bytes) or not hasattr(part, "__len__") for part in lists):
            raise InputError("give texts and labels as a pair of lists: (texts, labels)")
        if len(lists[0]) != len(lists[1]):
            raise InputError(f"{len(lists[0])} texts but {len(lists[1])} labels: give one label for each text")
        parts: list[Any] = list(lists)
        columns: Batch = {
            key: part if isinstance(part, pl.Series) else list(part)
            for key, part in zip(("text", "label"), parts, strict=True)
        }
        return cls(name, ("text", "label"), lambda names: iter([{key: columns[key] for key in names}]))

    @classmethod
    def of_frame(cls, source: object, name: str = "the data frame") -> SourceTable | None:
        """A data frame as a table: of Polars or pandas, or anything that gives Arrow data; None for anything else."""
        # a pandas frame exists only where pandas is loaded; do not load it for others
        pandas = sys.modules.get("pandas")
        if pandas is not None and isinstance(source, pandas.DataFrame):
            frame, places = source, {str(column): i for i, column in enumerate(source.columns)}

            def read(names: Sequence[str]) -> Iterator[Batch]:
                # pandas has several missing values (None, nan, NA, NaT): make them one
                columns = {key: frame.iloc[:, places[key]] for key in names}
                yield {key: c.astype(object).where(c.notna(), None).tolist() for key, c in columns.items()}

            return cls(name, [str(column) for column in source.columns], read)
        if isinstance(source, pl.Series) or (
            not hasattr(source, "__arrow_c_stream__") and not isinstance(source, pl.LazyFrame)
        ):
            return None
        what = "the lazy frame" if isinstance(source, pl.LazyFrame) else "the Arrow table"
        try:
            if isinstance(source, pl.LazyFrame | pl.DataFrame):
                polars: pl.LazyFrame | pl.DataFrame = source
            else:
                polars, name = pl.DataFrame(source), what
            columns = polars.collect_schema().names()
        # two columns of one name, for example
        except (pl.exceptions.PolarsError, OSError, TypeError, ValueError) as problem:
            reason = (str(problem).splitlines() or [type(problem).__name__])[0][:200]
            raise InputError(f"{what} cannot be read: {reason}") from None
        return cls(name, columns, lambda names: frame_batches(polars, names))

    def read(self, names: Sequence[str]) -> Iterator[Batch]:
        """Batches of columns; a name with dots (`data.text`) may lead into nested values."""
        base = {name: self.base(name) for name in names}
        for batch in self._read(list(dict.fromkeys(base.values()))):
            yield {
                name: batch[column] if name == column else _nested(batch[column], name[len(column) + 1 :].split("."))
                for name, column in base.items()
            }

    def base(self, name: str) -> str:
        """The column that a name is or leads into; the name itself where there is none."""
        if name in self.columns:
            return name
        parts = name.split(".")
        starts = (".".join(parts[:n]) for n in range(len(parts) - 1, 0, -1))
        return next((start for start in starts if start in self.columns), name)

    def position(self, name: str, what: str) -> str:
        """The name, if it is a column's or leads into one; else an `InputError` that says what the column was for."""
        name = str(name)  # pandas' columns may be numbers
        if self.base(name) in self.columns:
            return name
        lower = {column.strip().lower(): column for column in reversed(self.columns)}
        near = get_close_matches(name.strip().lower(), list(lower), n=1)
        hint = f"; did you mean {lower[near[0]]!r}?" if near else ""
        raise InputError(
            f"{self.name}: there is no column {name!r} for the {what}; the columns are {listed(self.columns)}{hint}"
        )

    def records(self) -> Iterator[dict[str, Any]]:
        """Every row with all its fields, by name."""
        if self._records is not None:
            yield from self._records()
            return
        for batch in self._read(self.columns):
            lists = [as_list(values) for values in batch.values()]
            for row in zip(*lists, strict=True):
                yield dict(zip(batch, row, strict=True))

    def sample(self, rows: int = 200, characters: int = 1_000_000) -> dict[str, list[Any]]:
        """The first values of every column, not more than guessing needs; an `InputError` where there are no rows."""
        for batch in self._read(self.columns):
            out = {name: list(values[:rows]) for name, values in batch.items()}
            n = len(next(iter(out.values()), []))
            if n:
                size = sum(len(value) for values in out.values() for value in values if isinstance(value, str))
                kept = n if size <= characters else max(1, n * characters // size)
                return {name: values[:kept] for name, values in out.items()}
        raise InputError(f"{self.name}: has no rows")


def frame_batches(frame: pl.DataFrame | pl.LazyFrame, names: Sequence[str]) -> Iterator[Batch]:
    """Columns of a frame; of a lazy one in batches, so that it need not fit into memory."""
    if isinstance(frame, pl.DataFrame):
        yield {name: frame[name] for name in names}
        return
    for part in frame.select(pl.col(name) for name in names).collect_batches(chunk_size=BATCH, lazy=True):
        yield {name: part[name] for name in names}


# ---- values as text


def as_list(values: Values) -> list[Any]:
    """Values as Python objects."""
    return values.to_list() if isinstance(values, pl.Series) else values


def _nested(values: Values, path: Sequence[str]) -> Values:
    """What lies at a path of keys in every value; of a list, what lies there in each of its entries."""

    def within(value: object, keys: Sequence[str]) -> object:
        for place, key in enumerate(keys):
            if isinstance(value, list):
                return [within(entry, keys[place:]) for entry in value]
            value = value.get(key) if isinstance(value, dict) else None
        return value

    return [within(value, path) for value in (as_list(values))]


def chat_text(value: object, role: str | None = None) -> object:
    """Chat messages (`role` and `content`, or `from` and `value`) of one role or all as one text; any other value as it is."""
    if not (isinstance(value, list) and value and all(isinstance(entry, dict) for entry in value)):
        return value
    key = next((key for key in ("content", "value", "text") if key in value[0]), None)
    if key is None:
        return value
    said = {"assistant": ("assistant", "gpt", "bot", "model"), "user": ("user", "human", "prompter")}
    parts = []
    for entry in value:
        content = entry.get(key)
        if role is not None and (entry.get("role") or entry.get("from")) not in said.get(role, (role,)):
            continue
        if isinstance(content, list):  # parts of a multimodal message
            found = [x["text"] for x in content if isinstance(x, dict) and x.get("text") is not None]
            content = "\n".join(map(str, found))
        if content is not None:
            parts.append(str(content))
    return "\n".join(parts) if parts else None


def as_texts(
    values: Values, where: str, column: str, first_row: int, role: str | None = None, flag: str = "--text COLUMN"
) -> tuple[pl.Series, int]:
    """Values as text with nulls, and how many had lone surrogates, each of which becomes U+FFFD (no file can hold them).

    Args:
        values: of a column.
        where, column, first_row, flag: for the message where a value is not text.
        role: of chat messages, those of this role.
    """
    if isinstance(values, pl.Series):
        if values.dtype == pl.String:
            return values, 0
        if values.dtype in (pl.Categorical, pl.Enum, pl.Null):
            return values.cast(pl.String), 0
        values = values.to_list()
    texts: list[str | None] = []
    replaced = 0
    for row, value in enumerate(values, first_row):
        text = chat_text(value, role) if isinstance(value, list) else value
        if not isinstance(text, str):
            if not missing(text):
                raise InputError(
                    f"{where}: row {row}: column {column!r} holds {type(value).__name__} values, not text; "
                    f"choose another with {flag}"
                )
            text = None
        elif not text.isascii():
            text, found = _SURROGATE.subn("\ufffd", text)
            replaced += found > 0
        texts.append(text)
    return pl.Series(texts, dtype=pl.String), replaced


def as_names(values: Values, where: str, first_row: int, holds: str, advice: str) -> pl.Series:
    """Values as names (labels, groups), trimmed, with nulls; each distinct value is looked at once.

    A list or the like is an `InputError`, "where: row 1: the label is a list; advice".
    """
    known: dict[tuple[type, object], str | None] = {}
    out: list[str | None] = []
    for row, value in enumerate(as_list(values), first_row):
        key = (type(value), value)
        try:
            if key not in known:
                name = label_name(value)
                known[key] = name and _SURROGATE.sub("\ufffd", name)
        except TypeError:
            raise InputError(f"{where}: row {row}: {holds} a {type(value).__name__}; {advice}") from None
        out.append(known[key])
    return pl.Series(out, dtype=pl.String)


def text_series(texts: Iterable[str | None] | pl.Series) -> pl.Series:
    """Any sequence of strings (None: a missing one) as a Polars series; lone surrogates, which UTF-8 cannot hold, become U+FFFD."""
    if isinstance(texts, pl.Series):
        return texts
    return pl.Series([text and _SURROGATE.sub("\ufffd", text) for text in texts], dtype=pl.String)
