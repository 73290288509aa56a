"""Several labels for one document: each is a question of its own, whether the document has it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import polars as pl

from tokensieve.errors import InputError
from tokensieve.text.columns import labelled_columns
from tokensieve.text.labels import label_name, listed, missing
from tokensieve.text.settings import ReadSettings
from tokensieve.text.sources import Source, open_source
from tokensieve.text.table import Values

NO, YES = "no", "yes"  # in this order, so that to have a label is class 1
LEAST = 20  # documents with the label, and without it
MOST = 50  # labels of one column


def labels_of(cell: Any, separator: str | None) -> list[str]:
    """The labels in a cell: of a list its entries, of a text the parts between separators; of an empty one none.

    Raises:
        TypeError: an entry is a list or the like, or the cell neither.
    """
    if isinstance(cell, str) and separator is not None:
        return [name for part in cell.split(separator) if (name := label_name(part.strip())) is not None]
    if isinstance(cell, list | tuple) or hasattr(cell, "tolist"):
        return [name for entry in cell if (name := label_name(entry)) is not None]
    raise TypeError


def has_label(values: Values, label: str, separator: str | None, name: str, first_row: int) -> pl.Series:
    """ "yes" where the label is among those of a cell, "no" elsewhere, and null where a cell is missing.

    Args:
        values: cells with several labels.
        label: the one that is asked for.
        separator: between the labels of a text cell.
        name, first_row: for messages.

    Raises:
        InputError: a cell holds no list, and no text to be split.
    """
    answers: list[str | None] = []
    for row, cell in enumerate(_cells(values), first_row):
        try:
            answers.append(None if missing(cell) else YES if label in labels_of(cell, separator) else NO)
        except TypeError:
            raise InputError(
                f"{name}: row {row}: the labels are a {type(cell).__name__}, not a list; for text give --label-separator"
            ) from None
    return pl.Series(answers, dtype=pl.String)


def label_settings(source: Source, settings: ReadSettings) -> tuple[list[tuple[str, Any]], dict[str, int]]:
    """The audits that a source with several labels needs: (label, how to read the source for it); and the labels of too few (or
    all) documents, with their numbers.

    A column of lists gives one audit per label, the most frequent first; several columns one each. An ordinary label column
    gives none.

    Args:
        source: as for `read_corpus`.
        settings: with the label columns, if they are given.

    Raises:
        InputError: the source cannot be read, several columns are named where labels are lists, or none has enough documents.
    """
    names = [settings.label] if isinstance(settings.label, str) else list(settings.label or ())
    separator = settings.label_separator
    if len(names) > 1 and separator is not None:
        raise InputError("--label-separator is for one label column: name one with --label")
    table = open_source(source, settings).train
    if len(names) > 1:
        if len(set(names)) < len(names):
            raise InputError(f"--label names a column twice: {listed(names)}")
        return [(table.position(name, "label"), replace(settings, label=name)) for name in names], {}
    taken = [c for c in (settings.split, settings.by, settings.environments) if c is not None]
    column = labelled_columns(table, settings.text, names[0] if names else None, taken)[1]
    first = next(iter(table.read([column])), {column: []})[column]
    if separator is None and not any(isinstance(cell, list) for cell in islice(_cells(first), 200)):
        return [], {}
    rows, split, found = 0, False, Counter[str]()
    number = 0
    for batch in table.read([column]):
        for cell in _cells(batch[column]):
            number += 1
            if missing(cell):
                continue
            rows += 1
            split |= separator is None or separator in str(cell)
            try:
                found.update(set(labels_of(cell, separator)))
            except TypeError:
                raise InputError(
                    f"{table.name}: row {number}: the labels in column {column!r} are a {type(cell).__name__}, not a list; for "
                    "text give --label-separator"
                ) from None
    if not split:
        raise InputError(
            f"{table.name}: column {column!r} nowhere holds the separator {separator!r}: check --label-separator"
        )
    order = sorted(found, key=lambda name: (-found[name], name))
    kept = [name for name in order if LEAST <= found[name] <= rows - LEAST][:MOST]
    if not kept:
        raise InputError(
            f"{table.name}: no label in column {column!r} has {LEAST} documents with it and {LEAST} without: "
            f"there are {listed(order)}"
        )
    asked = [(name, replace(settings, label=column, having=name)) for name in kept]
    return asked, {name: found[name] for name in order if name not in kept}


def _cells(values: Values) -> Sequence[Any]:
    return values.to_list() if isinstance(values, pl.Series) else values
