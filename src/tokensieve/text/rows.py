"""Rows of a table → texts and labels, one row at a time, and an account of those that cannot be used."""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import polars as pl

from tokensieve.errors import InputError
from tokensieve.text.labels import label_name, missing
from tokensieve.text.spill import StoredTexts, TextWriter, digest
from tokensieve.text.table import Table, once

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Account:
    """What was found in the rows of a source, or of a part of it: `a + b` is that of both.

    Attributes:
        rows: rows in the source (in this part of it, where it is split).
        missing_text, missing_label: rows left out because they hold no text (no label).
        empty: rows left out because their text is white space only.
        replaced_surrogates: documents with lone surrogates, each now U+FFFD (no file can hold them).
    """

    rows: int = 0
    missing_text: int = 0
    missing_label: int = 0
    empty: int = 0
    replaced_surrogates: int = 0

    def __add__(self, other: Account) -> Account:
        return Account(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Account)))

    def lines(self) -> list[str]:
        """One plain sentence for each thing that a reader should know; nothing for what did not occur."""
        return [f"{note}: {count:,}" for count, note in [*self._left_out(), self._replaced()] if count]

    def _left_out(self) -> list[tuple[int, str]]:
        return [
            (self.missing_text, "rows without a text, left out"),
            (self.missing_label, "rows without a label, left out"),
            (self.empty, "empty documents (white space only), left out"),
        ]

    def _replaced(self) -> tuple[int, str]:
        return self.replaced_surrogates, "documents with lone surrogates, each replaced by U+FFFD"

    def check_kept(self, name: str, kept: int, dropped: int = 0) -> None:
        """Make sure that documents are left.

        Args:
            name: the source, for the message.
            kept: documents that are left.
            dropped: rows left out because the caller dropped their label.

        Raises:
            InputError: none is left.
        """
        if kept:
            return
        if not self.rows:
            raise InputError(f"{name}: has no rows")
        if self.empty == self.rows:
            raise InputError(
                f"{name}: all {self.rows:,} documents are empty (white space only); choose another column with --text COLUMN"
            )
        raise InputError(
            f"{name}: no document is left; of {self.rows:,} rows {self.missing_text:,} have no text, {self.missing_label:,} "
            f"no label, {self.empty:,} are empty, {dropped:,} were dropped; check --text, --label and --drop"
        )


class Rows:
    """Collects usable rows one at a time, and counts the others."""

    def __init__(
        self, name: str, columns: Sequence[str], stream: bool = False, more: Mapping[str, str] | None = None
    ) -> None:
        self.name, self.text_column, self.label_column = name, columns[0], "".join(columns[1:2])
        self.more = {kind: Named(f"{name}: the column {column!r} (--{kind})") for kind, column in (more or {}).items()}
        self.texts: list[str] | TextWriter = TextWriter() if stream else []
        self.labels, self.rows = array("l"), array("q")
        self.names: dict[str, int] = {}  # label → its number in `labels`
        self.total = self.missing_text = self.missing_label = self.empty = self.replaced = 0

    def add(self, row: int, text: Any, label: Any, *more: Any) -> None:
        """One more row; `more` are the values of the other columns, in their order.

        Raises:
            InputError: the text is not text, or the label a list or the like.
        """
        self.total += 1
        content = self.text_of(row, text)
        if content is None:
            self.missing_text += 1
            return
        try:
            name = label_name(label)
        except TypeError:
            raise InputError(
                f"{self.name}: row {row}: the label is a {type(label).__name__}; choose another column "
                "with --label COLUMN (tokensieve audit takes lists: an audit for each label)"
            ) from None
        if name is None:
            self.missing_label += 1
        elif not content or content.isspace():
            self.empty += 1
        else:
            self.texts.append(content)
            name = name if name.isascii() else _SURROGATE.sub("\ufffd", name)
            self.labels.append(self.names.setdefault(name, len(self.names)))
            self.rows.append(row)
            for named, value in zip(self.more.values(), more, strict=True):
                named.add(row, value)

    def label_names(self) -> list[str]:
        """The label of each usable row."""
        names = list(self.names)
        return [names[i] for i in self.labels]

    def account(self) -> Account:
        """What was found so far."""
        return Account(self.total, self.missing_text, self.missing_label, self.empty, self.replaced)

    def finish(self) -> tuple[pl.Series | StoredTexts, pl.DataFrame]:
        """The texts; and their keys, labels as given, rows, and the values of the other columns."""
        texts: pl.Series | StoredTexts
        if isinstance(self.texts, TextWriter):
            texts, keys = self.texts.finish()
        else:
            texts = pl.Series("text", self.texts, dtype=pl.String)
            keys = pl.Series([digest(text) for text in self.texts], dtype=pl.Binary)
        original = pl.Series(list(self.names), dtype=pl.String).gather(np.array(self.labels, dtype=np.int64))
        columns = {"key": keys, "original": original, "row": np.array(self.rows, dtype=np.int64)}
        return texts, pl.DataFrame(columns | {kind: named.series() for kind, named in self.more.items()})

    def text_of(self, row: int, value: Any) -> str | None:
        """The text with lone surrogates replaced; None where there is none."""
        if not isinstance(value, str):
            if missing(value):
                return None
            raise InputError(
                f"{self.name}: row {row}: column {self.text_column!r} holds {type(value).__name__} values, not text; "
                "choose another with --text COLUMN"
            )
        if value.isascii():
            return value
        clean, replaced = _SURROGATE.subn("\ufffd", value)
        self.replaced += replaced > 0
        return clean


class Named:
    """Values of a column as text, each distinct one held once; a missing value is a missing one."""

    def __init__(self, where: str) -> None:
        self.where, self.codes = where, array("l")
        self.names: dict[str | None, int] = {}

    def add(self, row: int, value: Any) -> None:
        """One more value.

        Raises:
            InputError: it is a list or the like.
        """
        try:
            name = label_name(value)
        except TypeError:
            raise InputError(f"{self.where} holds a {type(value).__name__} in row {row}; choose another") from None
        name = name if name is None or name.isascii() else _SURROGATE.sub("\ufffd", name)
        self.codes.append(self.names.setdefault(name, len(self.names)))

    def series(self) -> pl.Series:
        """All of them, String."""
        return pl.Series(list(self.names), dtype=pl.String).gather(np.array(self.codes, dtype=np.int64))


def collect(table: Table, columns: Sequence[int], stream: bool = False, more: Mapping[str, int] | None = None) -> Rows:
    """All rows of a table.

    Args:
        table: of any source.
        columns: positions of text and label.
        stream: keep the texts in files.
        more: positions of other columns whose values belong to the documents, by what they are.

    Raises:
        InputError: a row cannot be read, its text is not text, or its label a list or the like.
    """
    others = more or {}
    rows = Rows(
        table.name, [table.columns[i] for i in columns], stream, {kind: table.columns[i] for kind, i in others.items()}
    )
    for row, values in enumerate(once(table, [*columns, *others.values()]), 1):
        rows.add(row, *values)
    return rows
