"""What another model predicts for test documents: a file, matched to the documents by row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from tokensieve.arrays import Floats, Ints
from tokensieve.auditing.broken_link import ClassNames
from tokensieve.errors import InputError
from tokensieve.escape import for_display
from tokensieve.read.corpus import Corpus
from tokensieve.read.sources import open_source
from tokensieve.read.table import SourceTable
from tokensieve.read.values import as_list, listed
from tokensieve.wording import plural, verb

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
OWN_COLUMNS = {ROW_COLUMN, "class", "probability"}  # of a file that `predict` writes
MAX_NAMED_CLASSES = 5  # in an error
# a model may know further classes, or give no answer to some documents; these count as wrong
MIN_CLASSES = 0.5
MAX_ROUNDING = 0.01  # of the sum of a row's probabilities; files often have two or three digits


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predicted class names.

    Attributes:
        name: of the file, and of its column if it was named.
        predicted: the class of each test document, shape (n,); "" where the file has none.
        note: what a reader should know about them, such as names that are no classes; or "".
    """

    name: str
    predicted: ClassNames
    note: str = ""


def read_predictions(
    source: str,
    corpus: Corpus,
    column: str | None = None,
    n_train_rows: int = 0,
    documents: str | None = None,
) -> Predictions:
    """Read the predictions of the documents of a corpus.

    Args:
        source: a file with a row for each row of the corpus's source, in the same order, or with a
            column "row" that numbers these rows from 1, or with a column of the documents' own file
            whose values are all different.
        corpus: the documents.
        column: of the predictions; None to recognise it by its name, or to take the most probable
            class where each class has a column of probabilities.
        n_train_rows: rows of the training documents, which may be in the same file.
        documents: the file of the documents, whose columns show whether the order is the same; None
            if they are part of another file.

    Raises:
        InputError: there is no such column, the rows cannot be matched, or the values are other
            names than those of the classes.
    """
    if Path(source).is_dir():
        raise InputError(
            f"--predictions {source!r} is a folder: name a file of predictions; `tokensieve "
            "compare --on` also takes the folder of a transformers classifier"
        )
    table = open_source(source, labelled=False).held_out
    written, own = _read_classes(table, corpus, column)
    if ROW_COLUMN in table.columns and column != ROW_COLUMN:
        predicted = _by_row_number(table, written, _cells(table, ROW_COLUMN), corpus)
    else:
        places = None
        if documents is not None:
            places = _places_by_shared_column(table, documents, own, corpus)
        if places is None:
            predicted = _in_order(table, written, corpus, n_train_rows)
        else:
            predicted = written[places]
    _check_classes(table, own, predicted, corpus)
    name = table.name if column is None else f"{column} of {table.name}"
    return Predictions(name, predicted, _note(name, predicted, corpus))


class _WrittenClasses(NamedTuple):
    """The class in each row of a file, and the column that it was read from ("" of several)."""

    classes: ClassNames
    column: str


def _read_classes(table: SourceTable, corpus: Corpus, column: str | None) -> _WrittenClasses:
    """The predicted class of each row of the file, in its order; "" where there is none."""
    chosen = _prediction_column(table, corpus) if column is None else column
    if chosen is None:
        return _WrittenClasses(_most_probable(table, list(map(str, corpus.classes))), "")
    table.checked_column(chosen, "predictions")
    parts = [pl.Series([], dtype=pl.String)]
    first_row = 1
    for batch in table.read([chosen]):
        holds = f"column {chosen!r} contains"
        parts.append(
            table.as_names(batch[chosen], first_row, holds, "choose a column of class names")
        )
        first_row += len(parts[-1])
    names = pl.concat(parts).fill_null("").to_numpy().astype(np.str_)
    return _WrittenClasses(names, chosen)


def _cells(table: SourceTable, column: str) -> list[object]:
    """A column as it is, in the order of the file."""
    return [cell for batch in table.read([column]) for cell in as_list(batch[column])]


def _prediction_column(table: SourceTable, corpus: Corpus) -> str | None:
    """The column with a name that programs give it, or the only one that holds class names.

    None if each class has a column, of its probability.
    """
    if set(table.columns) >= OWN_COLUMNS:
        return "class"
    by_lower_case = {name.lower(): name for name in table.columns}
    for name in COLUMN_NAMES:
        if name in by_lower_case:
            return by_lower_case[name]
    classes = set(map(str, corpus.classes))
    if classes <= set(table.columns):
        return None
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


def _most_probable(table: SourceTable, classes: list[str]) -> ClassNames:
    """The class with the highest probability in each row, of a file with a column per class.

    Raises:
        InputError: the columns are no probabilities.
    """
    columns = [
        pl.Series(_cells(table, name), strict=False).cast(pl.Float64, strict=False)
        for name in classes
    ]
    probabilities: Floats = np.column_stack([column.to_numpy() for column in columns])
    sums = probabilities.sum(axis=1)
    # NaN is no probability: it fails each of these
    is_valid = (np.abs(sums - 1) <= MAX_ROUNDING) & (probabilities >= 0).all(axis=1)
    if not is_valid.all():
        row = int(np.argmin(is_valid))
        numbers = ", ".join(f"{number:.3g}" for number in probabilities[row, :MAX_NAMED_CLASSES])
        raise InputError(
            f"{table.name}: row {row + 1} of the columns {listed(classes[:MAX_NAMED_CLASSES])} "
            f"holds {numbers}, no probabilities that sum to 1; write these, or a column of class "
            "names and its name after --predicted"
        )
    names: ClassNames = np.array(classes)
    most_probable: ClassNames = names[probabilities.argmax(axis=1)]
    return most_probable


def _places_by_shared_column(
    table: SourceTable, documents: str, predicted_column: str, corpus: Corpus
) -> Ints | None:
    """The row of the file for each document, by a column that the documents' own file has, too.

    None where no such column has other values, or the same ones in another order: then the rows are
    taken as they come.

    Raises:
        InputError: the order differs, and no column says which row is of which document.
    """
    try:
        own_table = open_source(documents, labelled=False).held_out
    except InputError:  # it was read with options that are not known here
        return None
    shared = [
        name for name in table.columns if name in own_table.columns and name != predicted_column
    ]
    differing = ""
    for name in shared:
        of_source = list(map(str, _cells(own_table, name)))
        if len(of_source) < corpus.rows.max(initial=0):
            return None
        wanted = [of_source[row - 1] for row in corpus.rows.tolist()]
        given = list(map(str, _cells(table, name)))
        if given in (of_source, wanted):
            continue
        place_of_value = dict(zip(given, range(len(given)), strict=True))
        is_identifier = len(set(wanted)) == len(wanted) and len(place_of_value) == len(given)
        if is_identifier and place_of_value.keys() >= set(wanted):
            return np.array([place_of_value[value] for value in wanted], dtype=np.int64)
        if Counter(given) in (Counter(of_source), Counter(wanted)):
            differing = name
    if differing:
        raise InputError(
            f"{table.name}: column {differing!r} has the values of {own_table.name} in another "
            f"order; write the predictions in that file's order, or add a column {ROW_COLUMN!r} "
            "with the number of the row there, from 1"
        )
    return None


def _by_row_number(
    table: SourceTable, written: ClassNames, rows: Sequence[object], corpus: Corpus
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
    if n_missing and 0 in place_of_row:
        raise InputError(
            f"{table.name}: column {ROW_COLUMN!r} counts from 0; the documents' first row is 1"
        )
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
    """Raise an `InputError` if most predictions are no classes, or one is written differently."""
    classes = list(map(str, corpus.classes))
    is_class = np.isin(predicted, classes)
    others = list(dict.fromkeys(predicted[~is_class].tolist()))
    class_of_lower_case = {name.casefold(): name for name in classes}
    for name in others:
        meant = class_of_lower_case.get(name.casefold())
        if meant is not None:
            raise InputError(
                f"{table.name}: column {column!r} contains {name!r}, but the class is {meant!r}; "
                "write the names of the classes as the documents do"
            )
    if is_class.mean() >= MIN_CLASSES:
        return
    raise InputError(
        f"{table.name}: column {column!r} contains {listed(others[:MAX_NAMED_CLASSES])}, but the "
        f"classes are {listed(classes[:MAX_NAMED_CLASSES])}; write the names of the classes, or "
        "name another column with --predicted"
    )


def _note(name: str, predicted: ClassNames, corpus: Corpus) -> str:
    """How many predictions cannot be right, because there are none or they name no class; or ""."""
    classes = list(map(str, corpus.classes))
    is_missing = predicted == ""
    others = predicted[~np.isin(predicted, classes) & ~is_missing]
    parts = []
    if len(others):
        example = for_display(str(others[0]), 40)
        parts.append(
            f"{plural(len(others), 'prediction')} {verb(len(others), 'name')} no class of these "
            f"documents, such as “{example}”"
        )
    if is_missing.any():
        n_missing = int(is_missing.sum())
        parts.append(f"{plural(n_missing, 'document')} {verb(n_missing, 'have', 'has')} none")
    if not parts:
        return ""
    return f"{for_display(name, 60, path=True)}: {', and '.join(parts)}; these count as wrong."
