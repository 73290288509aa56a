"""Texts to be answered: every row of a source in its order, with what shall stay beside the answers."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tokensieve.errors import InputError
from tokensieve.text.columns import choose_text, one_text, position
from tokensieve.text.counts import Ints
from tokensieve.text.formats import file_table
from tokensieve.text.labels import label_name
from tokensieve.text.rows import Rows
from tokensieve.text.settings import SourceSettings
from tokensieve.text.sources import Source, open_source
from tokensieve.text.table import Table
from tokensieve.text.tokenizers import text_series

IDS = ("id", "_id", "uid", "uuid")


@dataclass(frozen=True, eq=False)
class Texts:
    """Documents that are to be answered: every row of the source, in its order.

    Attributes:
        texts: n texts, String; a missing text is "".
        rows: row number of each document in its source, shape (n,): 1 … n.
        name: the source, for messages.
        missing: rows that hold no text.
        replaced_surrogates: documents with lone surrogates, each now U+FFFD.
        labels: the label of each document, null where it has none; None where no label column was read.
        kept: columns that are carried along, as text.
    """

    texts: pl.Series
    rows: Ints
    name: str
    missing: int
    replaced_surrogates: int
    labels: pl.Series | None = None
    kept: pl.DataFrame = field(default_factory=pl.DataFrame)


def table_of(source: Source, how: SourceSettings) -> Table:
    """The rows to answer: of a source with a train and a test part those for testing."""
    opened = open_source(source, how, labelled=False)
    return opened.train if opened.test is None else opened.test


def texts_of(
    table: Table, text: str | Sequence[str] | None = None, label: str | None = None, keep: Sequence[str] = ()
) -> Texts:
    """Every row of a table.

    Args:
        table: of any source.
        text: the column of the texts, or several fields; guessed when there is one good candidate.
        label: the column of the labels, or None.
        keep: columns to carry along.

    Raises:
        InputError: there are no rows, a column is not there, or a row's text is no text or its label a list or the like.
    """
    whole, one, fields = one_text(table, text)
    wanted = [(name, "label") for name in [label] if name is not None] + [(name, "answers") for name in keep]
    for name, _ in wanted:
        if name in fields:
            raise InputError(f"{table.name}: {name!r} is a field of the text and cannot be kept beside it")
    at = [choose_text(whole, one), *(position(whole, name, what) for name, what in wanted)]
    documents = Rows(table.name, (whole.columns[at[0]],))
    columns: list[list[Any]] = [[] for _ in at]
    for row, values in enumerate(whole.read(at), 1):
        columns[0].append(documents.text_of(row, values[0]))
        for column, value in zip(columns[1:], values[1:], strict=True):
            column.append(value)
    first = 1 + (label is not None)
    return Texts(
        pl.Series("text", ["" if t is None else t for t in columns[0]], dtype=pl.String),
        np.arange(1, len(columns[0]) + 1),
        table.name,
        columns[0].count(None),
        documents.replaced,
        None if label is None else _labels(table, columns[1]),
        pl.DataFrame({name: _written(column) for name, column in zip(keep, columns[first:], strict=True)}),
    )


def _labels(table: Table, values: list[Any]) -> pl.Series:
    names: list[str | None] = []
    for row, value in enumerate(values, 1):
        try:
            names.append(label_name(value))
        except TypeError:
            raise InputError(
                f"{table.name}: row {row}: the label is a {type(value).__name__}; choose another column with --label COLUMN"
            ) from None
    return text_series(names)


def _written(values: list[Any]) -> pl.Series:
    """Values of any kind as text; those that are no single value as JSON."""
    return text_series(
        [
            value if value is None or isinstance(value, str)
            else json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, list | dict)
            else str(value)
            for value in values
        ]
    )  # fmt: skip


@contextmanager
def standard_input(how: SourceSettings, columns: Sequence[str]) -> Iterator[Table]:
    """What comes through standard input as a table, readable as long as the context lasts.

    JSON, JSON lines, Parquet and gzip are recognised by how they begin. Text whose first line names one of `columns` is CSV
    (TSV, where a tab separates the names); any other text is one document a line, in a column named text.

    Args:
        how: text is read.
        columns: names that the text may have.

    Raises:
        InputError: nothing comes, or what comes cannot be read.
    """
    content = sys.stdin.buffer.read()
    if not content.strip():
        raise InputError("standard input is empty: pipe texts into the command, or name a file")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "stdin" + _suffix(content, how, columns))
        if path.suffix:
            path.write_bytes(content)
            yield replace(file_table(path, how), name="standard input")
        else:
            yield _line_table(content, how)


def _suffix(content: bytes, how: SourceSettings, columns: Sequence[str]) -> str:
    if content[:4] == b"PAR1":
        return ".parquet"
    if content[:2] == b"\x1f\x8b":
        raise InputError("standard input is compressed: decompress it first, for example with zcat")
    start = content.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if start in (b"{", b"["):
        return ".jsonl" if start == b"{" else ".json"
    first = content.lstrip(b"\xef\xbb\xbf").partition(b"\n")[0].decode(errors="replace").strip()
    for suffix, mark in ((".csv", how.separator or ","), (".tsv", "\t")):
        if set(columns) & {name.strip().strip('"') for name in first.split(mark)}:
            return suffix
    return ".csv" if how.separator or not how.header else ""


def _line_table(content: bytes, how: SourceSettings) -> Table:
    try:
        lines = (
            content.decode("utf-8-sig" if how.encoding in (None, "utf-8") else how.encoding)
            .removesuffix("\n")
            .split("\n")
        )
    except (LookupError, UnicodeError) as problem:
        raise InputError(f"standard input is no {how.encoding} text ({problem}); check --encoding") from None
    return Table("standard input", ("text",), lambda which: ((line.removesuffix("\r"),) * len(which) for line in lines))
