"""A source that was opened: its tables for training and testing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tokensieve.errors import InputError
from tokensieve.read.part_column import recognised_part_column
from tokensieve.read.settings import ReadSettings
from tokensieve.read.table import Batch, Row, SourceTable


@dataclass(eq=False)
class OpenedSource:
    """The tables of a source.

    Attributes:
        train: the rows to learn from.
        test: the source's own test rows, if any.
        ignored: parts that are neither for training nor for testing → documents set aside there.
        hidden: test parts without labels → documents set aside there.
    """

    train: SourceTable
    test: SourceTable | None = None
    ignored: dict[str, int] = field(default_factory=dict)
    hidden: dict[str, int] = field(default_factory=dict)

    def part_column(self, settings: ReadSettings) -> str | None:
        """The column that marks each row as train or test: --split, or one that is recognised.

        One is looked for only if neither the source nor --test has test rows.
        """
        if settings.split:
            return self.train.checked_column(settings.split, "split")
        has_test_rows = settings.test is not None or self.test is not None
        if has_test_rows or len(settings.columns_of_pairs) not in (0, 2):
            return None
        column = recognised_part_column(self.train, settings)
        if column is not None:
            note = f"column {column!r} marks training and test rows (detected)"
            self.train.notes = (*self.train.notes, note)
        return column

    @property
    def held_out(self) -> SourceTable:
        """The test rows; all rows if the source has no split."""
        return self.train if self.test is None else self.test


def concatenated(tables: Sequence[SourceTable]) -> SourceTable:
    """Several tables as one; a column that one of them lacks is missing there."""
    first = tables[0]
    if len(tables) == 1:
        return first
    for table in tables[1:]:
        if not set(table.columns) & set(first.columns):
            raise InputError(
                f"{first.name} and {table.name} have no column in common; read them one by one"
            )

    def read(names: Sequence[str]) -> Iterator[Batch]:
        for table in tables:
            yield from _with_missing_columns(table, names)

    def records() -> Iterator[Row]:
        for table in tables:
            yield from table.records()

    name = " and ".join(table.name for table in tables)
    if len(tables) > 2:
        name = f"{len(tables)} files ({first.name}, …)"
    columns = dict.fromkeys(column for table in tables for column in table.columns)
    notes = dict.fromkeys(note for table in tables for note in table.notes)
    first_line = any(table.first_line for table in tables)
    return SourceTable(name, list(columns), read, records, first_line, list(notes))


def _with_missing_columns(table: SourceTable, names: Sequence[str]) -> Iterator[Batch]:
    """Batches of these columns; one that the table lacks is missing in every row."""
    present = [name for name in names if name in table.columns]
    for batch in table.read(present or table.columns[:1]):
        absent_values = [None] * len(next(iter(batch.values())))
        yield {name: batch.get(name, absent_values) for name in names}
