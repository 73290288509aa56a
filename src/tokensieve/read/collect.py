"""Rows of a table become documents in a frame, and every row that cannot be used is counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import polars as pl

from tokensieve.read.column_tokens import ColumnTokens
from tokensieve.read.columns import verdict_column
from tokensieve.read.fields import BLANK
from tokensieve.read.label_column import LabelColumn
from tokensieve.read.label_lists import has_label
from tokensieve.read.part_column import TEST_NAMES, TRAIN_NAMES, check_parts, part_names
from tokensieve.read.settings import ReadSettings
from tokensieve.read.stored_texts import StoredTexts
from tokensieve.read.table import Batch, SourceTable
from tokensieve.read.texts import joined_texts
from tokensieve.read.values import as_list, text_digests

PLACEHOLDERS = ["nan", "NaN", "None", "null", "NULL", "<NA>", "N/A"]  # for a missing text
OPTION_OF_KIND = {"group": "by", "environment": "environments", "weight": "weight", "part": "split"}
NO_OPTION = "annotated-by"  # of the columns that tell annotators and their documents apart


@dataclass(frozen=True, eq=False)
class CollectedDocuments:
    """The usable rows of a table, as documents.

    Attributes:
        frame: a row per document, with its digest "key"; without the column "text" if `stored`.
        stored: the texts, if they are in a file.
        counts: rows of the table, and those that could not be used, by reason.
        disagreements: rows of the table whose annotators chose different labels.
    """

    frame: pl.DataFrame
    stored: StoredTexts | None
    counts: Counter[str]
    disagreements: tuple[int, ...] = ()


class DocumentCollector:
    """Collects documents for training or testing batch by batch.

    Attributes:
        counts: rows so far, and those that could not be used, by reason.
    """

    def __init__(self, schema: Mapping[str, type[pl.DataType]], stream: bool) -> None:
        """Collect documents with these columns.

        Args:
            schema: the columns, "text" among them.
            stream: keep the texts in a file.
        """
        self.counts = Counter[str](rows=0)
        self._stored = StoredTexts() if stream else None
        self._frames: list[pl.DataFrame] = []
        self.keep(pl.DataFrame(schema={**schema, "key": pl.Binary}))

    def add(self, frame: pl.DataFrame) -> None:
        """Keep the rows that have a text and a label, and count the others by what is missing."""
        has_text = pl.col("text").is_not_null()
        has_name = pl.col("label").is_not_null()
        is_blank = pl.col("text").str.contains(BLANK)
        counts = frame.select(
            rows=pl.len(),
            missing_text=(~has_text).sum(),
            missing_label=(has_text & ~has_name).sum(),
            empty=(has_text & has_name & is_blank).sum(),
            placeholders=(has_name & pl.col("text").is_in(PLACEHOLDERS)).sum(),
        )
        self.counts.update(counts.row(0, named=True))
        usable = frame.filter(has_name & ~is_blank)
        self.keep(usable.with_columns(key=text_digests(usable["text"])))

    def keep(self, usable: pl.DataFrame) -> None:
        """Keep these documents, which have their digests."""
        if self._stored is not None:
            self._stored.extend(usable["text"].to_list())
            usable = usable.drop("text")
        self._frames.append(usable)

    def documents(self) -> CollectedDocuments:
        """Everything that was kept."""
        return CollectedDocuments(pl.concat(self._frames), self._stored, self.counts)


class CollectedParts(NamedTuple):
    """The documents for training, and those that a column marks for testing."""

    train: CollectedDocuments
    test: CollectedDocuments


def collect_documents(
    table: SourceTable,
    texts: Sequence[str],
    label: str,
    settings: ReadSettings,
    *,
    other_columns: Mapping[str, str],
    part: str | None = None,
    columns: ColumnTokens | None = None,
) -> CollectedParts:
    """All usable rows of a table.

    The counts are rows, missing_text, missing_label, not_accepted, empty, replaced_surrogates and
    trimmed (labels with spaces).

    Args:
        table: the source.
        texts: the columns of the text.
        label: the column of the label.
        settings: how rows are read.
        other_columns: name in the frame → column of the table whose values belong to documents.
        part: the column that holds train or test, if any.
        columns: those whose values are fields of the text, behind the others.
    """
    reader = _RowReader(table, tuple(texts), label, settings, dict(other_columns), columns)
    schema = {
        "text": pl.String,
        "label": pl.String,
        **dict.fromkeys(other_columns, pl.String),
        "row": pl.Int64,
    }
    train = DocumentCollector(schema, settings.stream)
    test = DocumentCollector(schema, settings.stream)
    names_seen = set[str]()
    row = 1
    for batch in table.read(reader.wanted(part)):
        frame = reader.read(batch, row, train.counts)
        row += frame.height
        if part is not None:
            frame = frame.with_columns(part_names(batch[part]).alias("\0part"))
            names_seen |= set(frame["\0part"])
        frame = reader.accepted(batch, frame, train.counts)
        frame = reader.without_headers(frame, train.counts)
        if part is None:
            train.add(frame)
        else:
            name = pl.col("\0part")
            train.add(frame.filter(name.is_in(TRAIN_NAMES)).drop("\0part"))
            test.add(frame.filter(name.is_in(TEST_NAMES)).drop("\0part"))
    if part is not None:
        check_parts(table, part, names_seen)
    reader.label_column.check_annotator()
    train.counts.update(reader.label_column.counts)
    disagreements = tuple(reader.label_column.disagreements)
    return CollectedParts(replace(train.documents(), disagreements=disagreements), test.documents())


class _RowReader:
    """Reads the rows of one table as text, label and other values."""

    def __init__(
        self,
        table: SourceTable,
        texts: tuple[str, ...],
        label: str,
        settings: ReadSettings,
        other_columns: Mapping[str, str],
        columns: ColumnTokens | None,
    ) -> None:
        self.table = table
        self.texts = texts
        self.label = label
        self.settings = settings
        self.other_columns = other_columns
        self.columns = columns
        self.verdict = verdict_column(table)
        self.label_column = LabelColumn(table, label, settings)

    def wanted(self, part: str | None) -> list[str]:
        """The columns to read, each once."""
        token_columns = () if self.columns is None else self.columns.names
        names = [
            *self.texts,
            *self.label_column.wanted,
            *self.other_columns.values(),
            *token_columns,
        ]
        names += [name for name in (part, self.verdict) if name is not None]
        return list(dict.fromkeys(names))

    def read(self, batch: Batch, first_row: int, counts: Counter[str]) -> pl.DataFrame:
        """A row per row of the batch, null where text or label is missing."""
        settings = self.settings
        texts = joined_texts(self.table, batch, self.texts, first_row, settings.role, self.columns)
        counts["replaced_surrogates"] += texts.n_replaced
        counts["numbers_as_text"] += texts.n_numbers
        values = {"text": texts.series, "label": self._labels(batch, first_row, counts)}
        for kind, name in self.other_columns.items():
            holds = f"the column {name!r} (--{OPTION_OF_KIND.get(kind, NO_OPTION)}) contains"
            values[kind] = self.table.as_names(batch[name], first_row, holds, "choose another")
        frame = pl.DataFrame(values)
        rows = pl.int_range(first_row, first_row + frame.height, dtype=pl.Int64)
        return frame.with_columns(row=rows)

    def _labels(self, batch: Batch, first_row: int, counts: Counter[str]) -> pl.Series:
        """The label of each row as text, null where it is missing; "yes" or "no" where one label is
        audited.
        """
        cells = self.label_column.cells(batch, first_row)
        required_label = self.settings.having
        if required_label is not None:
            separator = self.settings.label_separator
            return has_label(cells, required_label, separator, self.table.name, first_row)
        advice = (
            "choose another column with --label COLUMN, or, if documents have several labels, "
            "run `tokensieve audit` on a file: it audits each label"
        )
        labels = self.table.as_names(cells, first_row, "the label is", advice)
        counts["trimmed"] += sum(map(_is_padded, as_list(cells)))
        return labels

    def without_headers(self, frame: pl.DataFrame, counts: Counter[str]) -> pl.DataFrame:
        """Leave out rows that repeat the names of the columns, as in files that were joined."""
        if not self.table.first_line or len(self.texts) > 1:
            return frame
        is_header = (pl.col("label") == self.label) & (pl.col("text") == self.texts[0])
        n_headers = frame.select(is_header.sum()).item()
        if not n_headers:
            return frame
        counts.update(rows=n_headers, repeated_headers=n_headers)
        return frame.filter(~is_header.fill_null(False))

    def accepted(self, batch: Batch, frame: pl.DataFrame, counts: Counter[str]) -> pl.DataFrame:
        """The rows whose label the annotator accepted; the others are counted."""
        if self.verdict is None:
            return frame
        verdicts = pl.Series(as_list(batch[self.verdict]), dtype=pl.String)
        is_accepted = verdicts == "accept"
        if self.label == self.verdict:  # the verdict itself is the label
            is_accepted |= verdicts == "reject"
        n_refused = int((~is_accepted).sum())
        counts.update(rows=n_refused, not_accepted=n_refused)
        return frame.filter(is_accepted)


def _is_padded(value: object) -> bool:
    """Whether a label has white space around it."""
    return isinstance(value, str) and value != value.strip() and not value.isspace()
