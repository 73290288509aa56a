"""Named columns in batches: every source is read into this form before documents are selected.

A batch holds a column as a Polars series where the source is typed, and as a list where one column
may mix types (JSON, lists).
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

import polars as pl

from tokensieve.errors import InputError
from tokensieve.read.chats import chat_text, text_key, written_chat
from tokensieve.read.values import (
    MAX_LISTED_COLUMNS,
    SURROGATE,
    Values,
    as_list,
    label_name,
    listed,
    missing,
    only_entry,
)
from tokensieve.read.written_lists import literal_list

Batch: TypeAlias = dict[str, Values]
Row: TypeAlias = dict[str, Any]

BATCH_ROWS = 10_000
MAX_COLUMNS = 20_000  # a spreadsheet has at most 16,384
SAMPLE_ROWS = 200  # rows by which columns are recognised
SAMPLE_CHARACTERS = 1_000_000


class SourceTable:
    """Named columns, readable again and again in batches.

    Attributes:
        name: the source, for messages.
        columns: the column names, all different.
        first_line: whether the names come from a first line, which may be data.
        header_hint: what to do if the first line is data.
        cause: says what may be wrong if the columns are not clear, such as that another sheet is
            meant.
        notes: what was detected, such as the separator.
        keep_alive: what must live as long as the table, such as a folder of temporary files.
        check_unchanged: called after the last row; raises if the source changed meanwhile.
    """

    def __init__(
        self,
        name: str,
        columns: Sequence[str],
        read: Callable[[Sequence[str]], Iterator[Batch]],
        records: Callable[[], Iterator[Row]] | None = None,
        first_line: bool = False,
        notes: Sequence[str] = (),
    ) -> None:
        """Make a table of a source.

        Args:
            name: see the attributes, like `columns`, `first_line` and `notes`.
            read: column names → batches of these columns, in source order.
            records: the rows with all their fields, where `columns` may lack some (JSON).
        """
        if len(columns) > MAX_COLUMNS:
            raise InputError(
                f"{name} has over {MAX_COLUMNS:,} columns; "
                "write a file with only the columns you need"
            )
        repeated = sorted(column for column, n in Counter(columns).items() if n > 1)
        if repeated:
            raise InputError(
                f"{name}: the column name {repeated[0][:80]!r} occurs more than once; "
                "rename one of them"
            )
        self.name = name
        self.columns = tuple(columns)
        self.first_line = first_line
        self.header_hint = "pass --no-header"
        self.cause: Callable[[], str] = str
        self.notes = tuple(notes)
        self.keep_alive: list[object] = []
        self.check_unchanged: Callable[[], None] = lambda: None
        self._read = read
        self._records = records

    @classmethod
    def of_records(
        cls,
        name: str,
        records: Callable[[], Iterator[Row]],
        sample_size: int | None,
        notes: Sequence[str] = (),
    ) -> SourceTable:
        """A table of JSON objects.

        Its columns are the keys of the first `sample_size` objects (None: of all).
        """
        columns = list({key: None for record in islice(records(), sample_size) for key in record})
        if not columns:
            raise InputError(f"{name} has no rows; write JSON objects {{…}} with named fields")

        def read(names: Sequence[str]) -> Iterator[Batch]:
            remaining = records()
            while rows := list(islice(remaining, BATCH_ROWS)):
                yield {name: [row.get(name) for row in rows] for name in names}

        return cls(name, columns, read, records, notes=notes)

    @classmethod
    def of_lists(cls, lists: tuple[Any, ...], name: str = "the lists") -> SourceTable:
        """A pair of lists of one length, texts and labels, as a table."""
        if len(lists) != 2 or not all(map(_is_list_like, lists)):
            raise InputError("pass texts and labels as a pair of lists: (texts, labels)")
        texts, labels = lists
        if len(texts) != len(labels):
            raise InputError(
                f"{len(texts)} texts but {len(labels)} labels: pass one label for each text"
            )
        columns: Batch = {
            "text": texts if isinstance(texts, pl.Series) else list(texts),
            "label": labels if isinstance(labels, pl.Series) else list(labels),
        }
        return cls(name, tuple(columns), lambda names: iter([{key: columns[key] for key in names}]))

    @classmethod
    def of_frame(cls, source: Any, name: str = "the data frame") -> SourceTable | None:
        """A data frame as a table: of Polars or pandas, or anything that gives Arrow data.

        None for anything else.
        """
        pandas = sys.modules.get("pandas")  # a frame of pandas exists only where it is loaded
        if pandas is not None and isinstance(source, pandas.DataFrame):
            return cls._of_pandas(source, name)
        if isinstance(source, pl.LazyFrame):
            kind = "the lazy frame"
        elif hasattr(source, "__arrow_c_stream__") and not isinstance(source, pl.Series):
            kind = "the Arrow table"
        else:
            return None
        try:
            if isinstance(source, pl.LazyFrame | pl.DataFrame):
                frame: pl.LazyFrame | pl.DataFrame = source
            else:
                frame = pl.DataFrame(source)
                name = kind
            columns = frame.collect_schema().names()
        # two columns of one name, for example
        except (pl.exceptions.PolarsError, OSError, TypeError, ValueError) as problem:
            reason = (str(problem).splitlines() or [type(problem).__name__])[0][:200]
            raise InputError(f"{kind} cannot be read: {reason}") from None
        return cls(name, columns, lambda names: frame_batches(frame, names))

    @classmethod
    def _of_pandas(cls, frame: Any, name: str) -> SourceTable:
        columns = [str(column) for column in frame.columns]
        places = {column: i for i, column in enumerate(columns)}

        def read(names: Sequence[str]) -> Iterator[Batch]:
            batch: Batch = {}
            for name in names:
                column = frame.iloc[:, places[name]]
                # pandas has several missing values (None, nan, NA, NaT): make them one
                batch[name] = column.astype(object).where(column.notna(), None).tolist()
            yield batch

        return cls(name, columns, read)

    def read(self, names: Sequence[str]) -> Iterator[Batch]:
        """Batches of columns; a name with dots (`data.text`) may lead into nested values."""
        base = {name: self.top_level_column(name) for name in names}
        for batch in self._read(list(dict.fromkeys(base.values()))):
            yield {name: _inside(batch[column], name, column) for name, column in base.items()}
        self.check_unchanged()

    def records(self) -> Iterator[Row]:
        """Yield every row with all its fields, by name."""
        if self._records is not None:
            yield from self._records()
        else:
            for batch in self._read(self.columns):
                for row in zip(*map(as_list, batch.values()), strict=True):
                    yield dict(zip(batch, row, strict=True))
        self.check_unchanged()

    def height(self) -> int:
        """The number of rows."""
        first = self.columns[0]
        return sum(len(batch[first]) for batch in self._read([first]))

    @cached_property
    def sample(self) -> dict[str, list[Any]]:
        """The first values of every column, as many as recognition needs.

        Raises:
            InputError: there are no rows.
        """
        for batch in self._read(self.columns):
            columns = {name: as_list(values[:SAMPLE_ROWS]) for name, values in batch.items()}
            n_rows = len(next(iter(columns.values()), []))
            if n_rows:
                cells = (value for values in columns.values() for value in values)
                characters = sum(len(value) for value in cells if isinstance(value, str))
                n_kept = n_rows * SAMPLE_CHARACTERS // max(characters, SAMPLE_CHARACTERS)
                n_kept = max(1, n_kept)
                return {name: values[:n_kept] for name, values in columns.items()}
        raise InputError(f"{self.name} has no rows")

    def sample_of(self, name: str) -> list[Any]:
        """The first values of a column, or of what a name with dots leads to."""
        column = self.top_level_column(name)
        return as_list(_inside(self.sample[column], name, column))

    def has_chats(self, name: str) -> bool:
        """Whether the first values of a column are conversations."""
        values = self.sample_of(name)
        return any(text_key(value) or written_chat(value) for value in values)

    def top_level_column(self, name: str) -> str:
        """The column that a name refers to or leads into; the name itself if there is none."""
        start = name
        while start and start not in self.columns:
            start = start.rpartition(".")[0]
        return start or name

    def checked_column(self, name: str, purpose: str) -> str:
        """The name, if it refers to a column or leads into one.

        Raises:
            InputError: there is no such column; states what the column was for.
        """
        name = str(name)  # pandas' columns may be numbers
        if self.top_level_column(name) in self.columns:
            return name
        hint = ""
        by_lower_case = {column.strip().lower(): column for column in reversed(self.columns)}
        similar = get_close_matches(name.strip().lower(), list(by_lower_case), n=1)
        if similar:
            hint = f"; did you mean {by_lower_case[similar[0]]!r}?"
        if "," in name and all(part.strip() in self.columns for part in name.split(",")):
            hint = "; name one column at a time and repeat the option"
        raise InputError(
            f"{self.name}: there is no column {name!r} for the {purpose}; "
            f"the columns are {listed(self.columns, MAX_LISTED_COLUMNS)}{hint}"
        )

    def as_texts(
        self,
        values: Values,
        column: str,
        first_row: int,
        role: str | None = None,
        flag: str = "--text COLUMN",
    ) -> Texts:
        """Values as text with nulls.

        Args:
            values: texts, or conversations as lists of messages.
            column: where they stand, for messages, as are `first_row` and `flag`.
            first_row: the row of the first value.
            role: of conversations read only the messages of this role.
            flag: the option that names another column.
        """
        if isinstance(values, pl.Series):
            if values.dtype in (pl.String, pl.Categorical, pl.Enum, pl.Null):
                strings = values.cast(pl.String)
                if not strings.str.contains(_MAY_BE_CHAT).any():
                    return Texts(strings, 0)
                values = strings
            values = as_list(values)
        texts = list[str | None]()
        n_replaced = 0
        n_numbers = 0
        has_texts = any(isinstance(value, str) for value in values)
        for row, value in enumerate(values, first_row):
            text = self._decoded_text(chat_text(value, role), column, row)
            if has_texts and is_number(text):
                text = str(text)
                n_numbers += 1
            elif not isinstance(text, str):
                if not missing(text):
                    raise InputError(
                        f"{self.name}: row {row}: column {column!r} contains {_kind(text)}, not "
                        f"text; choose another with {flag}"
                    )
                text = None
            elif not text.isascii():
                text, n_surrogates = SURROGATE.subn("\ufffd", text)
                n_replaced += n_surrogates > 0
            texts.append(text)
        return Texts(pl.Series(texts, dtype=pl.String), n_replaced, n_numbers)

    def _decoded_text(self, value: object, column: str, row: int) -> object:
        """Bytes as text; any other value as it is."""
        if not isinstance(value, bytes):
            return value
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise InputError(
                f"{self.name}: row {row}: column {column!r} contains bytes that are not UTF-8; "
                "write the column as text"
            ) from None

    def as_names(self, values: Values, first_row: int, holds: str, advice: str) -> pl.Series:
        """Values as names (labels, groups), trimmed, with nulls.

        Raises:
            InputError: a value is a list of several or the like: "source: row 1: the label is a
                list; advice", where `holds` is "the label is".
        """
        if isinstance(values, pl.Series) and values.dtype.is_integer():
            return values.cast(pl.String)
        if isinstance(values, pl.Series) and values.dtype == pl.String:
            return _names_of_strings(values)
        name_of_value: dict[tuple[type, object], str | None] = {}
        names: list[str | None] = []
        for row, item in enumerate(as_list(values), first_row):
            value = item
            if isinstance(item, list):
                value = only_entry(item)
            key = (type(value), value)
            try:
                if key not in name_of_value:
                    name = label_name(value)
                    name_of_value[key] = name and SURROGATE.sub("\ufffd", name)
            except TypeError:
                raise InputError(
                    f"{self.name}: row {row}: {holds} a {type(value).__name__}; {advice}"
                ) from None
            names.append(name_of_value[key])
        return pl.Series(names, dtype=pl.String)


_MAY_BE_CHAT = r"^\s*\[\s*\{"  # as JSON or Python write a list of messages


def _names_of_strings(values: pl.Series) -> pl.Series:
    """The name of each value, found once for each different one."""
    distinct = values.drop_nulls().unique()
    names = pl.Series([label_name(value) for value in distinct], dtype=pl.String)
    return values.replace_strict(distinct, names, default=None, return_dtype=pl.String)


class Texts(NamedTuple):
    """The texts of a batch.

    Attributes:
        series: the texts, with nulls.
        n_replaced: how many had lone surrogates, which no file can hold, replaced by U+FFFD.
        n_numbers: how many are numbers among texts.
    """

    series: pl.Series
    n_replaced: int
    n_numbers: int = 0


def frame_batches(frame: pl.DataFrame | pl.LazyFrame, names: Sequence[str]) -> Iterator[Batch]:
    """Columns of a frame; a lazy frame comes in batches, so it need not fit into memory."""
    if isinstance(frame, pl.DataFrame):
        yield {name: _decoded(frame[name]) for name in names}
        return
    selected = frame.select(pl.col(name) for name in names)
    for part in selected.collect_batches(chunk_size=BATCH_ROWS, lazy=True):
        yield {name: _decoded(part[name]) for name in names}


def batch_height(batch: Batch) -> int:
    """The number of rows of a batch; 0 without columns."""
    return len(next(iter(batch.values()), ()))


def check_all_rows(frame: pl.LazyFrame, n_read: int, name: str) -> None:
    """Refuse a file of which fewer rows were read than it says it has.

    Polars ends as if nothing were wrong where one of its threads fails, as on a Parquet file whose
    middle is missing.
    """
    n_rows = frame.select(pl.len()).collect().item()
    if n_read < n_rows:
        raise InputError(
            f"{name} is damaged: only {n_read:,} of its {n_rows:,} rows can be read; create or "
            "download it again"
        )


def _decoded(values: pl.Series) -> pl.Series:
    """Bytes as text if they are UTF-8, as Spark and Hive store it; other values as they are."""
    if values.dtype == pl.Binary:
        with suppress(pl.exceptions.PolarsError):
            return values.cast(pl.String)
    return values


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and not missing(value)


def _kind(value: object) -> str:
    """The type of a value that is no text, in words."""
    if isinstance(value, list):
        entries = {type(entry) for entry in value}
        if entries == {str}:
            return "lists of texts (join each into one text)"
        return "lists"
    if isinstance(value, dict):
        return "objects"
    return f"{type(value).__name__} values"


def _is_list_like(part: object) -> bool:
    return hasattr(part, "__len__") and not isinstance(part, str | bytes)


def _inside(values: Values, name: str, column: str) -> Values:
    """The values at the end of a dotted name, in each value of its column; the values themselves at
    its last part."""
    if name == column:
        return values
    keys = name[len(column) + 1 :].split(".")
    return [value_at(value, keys) for value in as_list(values)]


def value_at(value: object, keys: Sequence[str]) -> object:
    """The value at a path of keys; None if nothing is there.

    Of a list, what lies there in each entry. Of a conversation, a key may be the role whose
    messages are meant.
    """
    for place, key in enumerate(keys):
        if isinstance(value, list):
            text = chat_text(value, role=key)
            if isinstance(text, str):
                return text
            return [value_at(entry, keys[place:]) for entry in value]
        if isinstance(value, str):
            value = written_object(value) or literal_list(value.strip())
        if isinstance(value, list):
            return value_at(value, keys[place:])
        if isinstance(value, dict):
            value = value.get(key)
        else:
            value = None
    return value


def written_object(value: object) -> Row | None:
    """An object that is written as JSON in a cell; None for anything else."""
    if not isinstance(value, str) or not value.lstrip().startswith("{"):
        return None
    with suppress(ValueError, RecursionError):
        parsed_value = json.loads(value)
        if isinstance(parsed_value, dict):
            return parsed_value
        return None
    return None
