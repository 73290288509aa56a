"""The column that marks each row as training or test."""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from tokensieve.errors import InputError
from tokensieve.read.settings import ReadSettings
from tokensieve.read.table import SourceTable
from tokensieve.read.values import Values, as_list, listed

TEST_NAMES = ("test", "testing")
TRAIN_NAMES = ("train", "training", "dev", "validation", "val")
COLUMN_NAMES = ("split", "set", "fold", "partition", "subset")


def part_names(values: Values) -> pl.Series:
    """The part that each value names, in lower case."""
    return pl.Series([str(value).strip().lower() for value in as_list(values)], dtype=pl.String)


def marks_parts(names: Collection[str]) -> bool:
    """Whether names are those of training and test rows, both of them, and no others."""
    has_train = any(name in TRAIN_NAMES for name in names)
    has_test = any(name in TEST_NAMES for name in names)
    return has_train and has_test and not unknown_parts(names)


def unknown_parts(names: Collection[str]) -> set[str]:
    """Names that are neither those of training nor those of test rows."""
    return {*names} - {*TEST_NAMES, *TRAIN_NAMES}


def not_parts(table: SourceTable, column: str, names: Collection[str]) -> InputError:
    """The error for a column that does not mark training and test rows."""
    return InputError(
        f"{table.name}: column {column!r} must contain 'test' for test rows and one of "
        f"{listed(TRAIN_NAMES)} for the others; "
        f"it contains {listed(sorted(names))}"
    )


def check_parts(table: SourceTable, column: str, names: Collection[str]) -> None:
    """Raise an `InputError` unless a column contains names of both parts, and nothing else."""
    if not marks_parts(names):
        raise not_parts(table, column, names)


def recognised_part_column(table: SourceTable, settings: ReadSettings) -> str | None:
    """A column with a well-known name that contains train and test and nothing else, if any."""
    for column in table.columns:
        has_name = column.strip().lower() in COLUMN_NAMES
        if not has_name or settings.uses(column):
            continue
        names = set[str]()
        for batch in table.read([column]):
            names.update(part_names(batch[column]))
        if marks_parts(names):
            return column
    return None
