"""What another model predicts for test documents: a file, matched to the documents by row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from tokensieve.auditing.broken_link import ClassNames
from tokensieve.errors import InputError
from tokensieve.read.corpus import Corpus
from tokensieve.read.sources import open_source
from tokensieve.read.table import SourceTable
from tokensieve.read.values import as_list, listed

# what programs call this column, most explicit first
COLUMN_NAMES = (
    "prediction",
    "predicted",
    "predicted_label",
    "predicted_class",
    "label_pred",
    "y_pred",
    "pred",
)
ROW_COLUMN = "row"  # from 1, as `predict` writes it
MAX_NAMED_CLASSES = 5  # in an error
# a model may know further classes, or give no answer to some documents; these count as wrong
MIN_CLASSES = 0.5


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predicted class names.

    Attributes:
        name: of the file, and of its column if it was named.
        predicted: the class of each test document, shape (n,); "" where the file has none.
    """

    name: str
    predicted: ClassNames


def read_predictions(
    source: str, corpus: Corpus, column: str | None = None, n_train_rows: int = 0
) -> Predictions:
    """Read the predictions of the documents of a corpus.

    Args:
        source: a file with a row for each row of the corpus's source, in the same order, or with a
            column "row" that numbers these rows from 1.
        corpus: the documents.
        column: of the predictions; None to recognise it by its name.
        n_train_rows: rows of the training documents, which may be in the same file.

    Raises:
        InputError: there is no such column, the rows cannot be matched, or the values are other
            names than those of the classes.
    """
    table = open_source(source, labelled=False).held_out
    own = _prediction_column(table, corpus) if column is None else column
    table.checked_column(own, "predictions")
    cells = _read_cells(table, own)
    written = cells.values.fill_null("").to_numpy().astype(np.str_)
    if cells.rows is None:
        predicted = _in_order(table, written, corpus, n_train_rows)
    else:
        predicted = _by_row_number(table, written, cells.rows, corpus)
    _check_classes(table, own, predicted, corpus)
    name = table.name if column is None else f"{column} of {table.name}"
    return Predictions(name, predicted)


class _Cells(NamedTuple):
    """The predictions as they are written, and the rows that they are of, if the file has them."""

    values: pl.Series
    rows: list[object] | None


def _read_cells(table: SourceTable, column: str) -> _Cells:
    """The predictions of a column as text, in the order of the source, and their row numbers if it
    has any.
    """
    has_rows = ROW_COLUMN in table.columns and column != ROW_COLUMN
    parts = [pl.Series([], dtype=pl.String)]
    rows: list[object] = []
    first_row = 1
    for batch in table.read([column, ROW_COLUMN] if has_rows else [column]):
        holds = f"column {column!r} contains"
        advice = "choose a column of class names"
        parts.append(table.as_names(batch[column], first_row, holds, advice))
        if has_rows:
            rows += as_list(batch[ROW_COLUMN])
        first_row += len(parts[-1])
    return _Cells(pl.concat(parts), rows if has_rows else None)


def _prediction_column(table: SourceTable, corpus: Corpus) -> str:
    """The column with a name that programs give it, or the only one that holds class names."""
    by_lower_case = {name.lower(): name for name in table.columns}
    for name in COLUMN_NAMES:
        if name in by_lower_case:
            return by_lower_case[name]
    classes = set(map(str, corpus.classes))
    fitting = [
        name
        for name in table.columns
        if {str(cell) for cell in table.sample[name] if cell is not None} <= classes
    ]
    if len(fitting) == 1:
        return fitting[0]
    raise InputError(
        f"{table.name}: cannot tell which column holds the predictions; name it with --predicted: "
        f"the columns are {listed(table.columns)}"
    )


def _by_row_number(
    table: SourceTable, written: ClassNames, rows: list[object], corpus: Corpus
) -> ClassNames:
    """The prediction of each document by the row that the file names."""
    numbers = pl.Series(rows, strict=False).cast(pl.Int64, strict=False)
    if numbers.null_count() or numbers.n_unique() < len(numbers):
        raise InputError(
            f"{table.name}: column {ROW_COLUMN!r} must name each row of the documents once, as a "
            "number from 1"
        )
    place_of_row = dict(zip(numbers.to_list(), range(len(numbers)), strict=True))
    places = [place_of_row.get(row) for row in corpus.rows.tolist()]
    n_missing = sum(place is None for place in places)
    if n_missing:
        raise InputError(
            f"{table.name}: {n_missing:,} of {len(places):,} test documents have no row there; "
            "predict all of them"
        )
    return written[np.array(places, dtype=np.int64)]


def _in_order(
    table: SourceTable, written: ClassNames, corpus: Corpus, n_train_rows: int
) -> ClassNames:
    """The prediction of each document where the file has a row for every row of the source."""
    n_source = int(corpus.reading.counts["rows"])
    if n_source < corpus.rows.max(initial=0):  # a column says which rows are test documents
        n_source += n_train_rows
    n_documents = len(corpus.labels)
    if len(written) == n_source:
        return written[corpus.rows - 1]
    if len(written) == n_documents:
        return written
    sizes = f"{n_source:,} rows"
    if n_source != n_documents:
        sizes += f", of which {n_documents:,} are test documents"
    raise InputError(
        f"{table.name} has {len(written):,} predictions, but {corpus.name} has {sizes}; write one "
        f"for each row, or add a column {ROW_COLUMN!r} with the number of the row, from 1"
    )


def _check_classes(table: SourceTable, column: str, predicted: ClassNames, corpus: Corpus) -> None:
    """Raise an `InputError` if most predictions are no classes of the documents."""
    classes = list(map(str, corpus.classes))
    is_class = np.isin(predicted, classes)
    if is_class.mean() >= MIN_CLASSES:
        return
    others = list(dict.fromkeys(predicted[~is_class].tolist()))
    raise InputError(
        f"{table.name}: column {column!r} contains {listed(others[:MAX_NAMED_CLASSES])}, but the "
        f"classes are {listed(classes[:MAX_NAMED_CLASSES])}; write the names of the classes, or "
        "name another column with --predicted"
    )
