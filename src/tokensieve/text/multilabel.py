"""Several labels for one document: each is a question of its own, whether the document has it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from tokensieve.errors import InputError
from tokensieve.text.columns import choose_columns, one_text, position
from tokensieve.text.labels import label_name, listed, missing
from tokensieve.text.sources import Source, open_source
from tokensieve.text.table import Row, Table

NO, YES = "no", "yes"  # in this order, so that to have a label is class 1
LEAST = 20  # documents with the label, and without it
MOST = 50  # labels of one column
SAMPLE = 200


@dataclass(frozen=True)
class Having:
    """A label among those of each document.

    Attributes:
        label: which.
        separator: between the labels of a text cell; None where cells hold lists.
    """

    label: str
    separator: str | None = None


@dataclass(frozen=True)
class Asked:
    """One audit to make.

    Attributes:
        label: its name.
        column: the label column.
        having: the label of a list, or None where the column is the label.
        documents: rows that have it; 0 where that was not counted.
    """

    label: str
    column: str
    having: Having | None = None
    documents: int = 0

    @property
    def folder(self) -> str:
        """A name for its folder: letters, digits, dot, dash and underscore."""
        return re.sub(r"[^\w.-]+", "-", self.label, flags=re.ASCII).strip("-.")[:60] or "label"


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


def having(table: Table, column: str, wanted: Having) -> Table:
    """The table with "yes" in the label column where the label is among the row's, "no" elsewhere, and nothing where nothing is.

    Raises:
        InputError: while reading, where a cell holds no list, and no text to be split.
    """
    at = position(table, column, "label")

    def read(which: Sequence[int]) -> Iterator[Row]:
        for row, values in enumerate(table.read(which), 1):
            yield tuple(
                _answer(table.name, row, x, wanted) if i == at else x for i, x in zip(which, values, strict=True)
            )

    return replace(table, read=read, whole=None)


def _answer(name: str, row: int, cell: Any, wanted: Having) -> str | None:
    if missing(cell):
        return None
    try:
        return YES if wanted.label in labels_of(cell, wanted.separator) else NO
    except TypeError:
        raise InputError(
            f"{name}: row {row}: the labels are a {type(cell).__name__}, not a list; for text give --label-separator"
        ) from None


def asked_labels(
    source: Source, how: Any, names: Sequence[str] = (), separator: str | None = None
) -> tuple[list[Asked], dict[str, int]]:
    """The audits that a source with several labels needs, and the labels of too few (or all) documents, with their numbers.

    A column of lists gives one audit per label, the most frequent first; several columns one each. An ordinary label column
    gives none.

    Args:
        source: as for `read_corpus`.
        how: its `Reading`.
        names: label columns, if given.
        separator: between the labels of a text cell.

    Raises:
        InputError: the source cannot be read, several columns are named where labels are lists, or none has enough documents.
    """
    if len(names) > 1 and separator is None:
        if len(set(names)) < len(names):
            raise InputError(f"--label names a column twice: {listed(names)}")
        table = open_source(source, how).train
        return [Asked(table.columns[position(table, name, "label")], name) for name in names], {}
    if len(names) > 1:
        raise InputError("--label-separator is for one label column: name one with --label")
    table = open_source(source, how).train
    table, text, _ = one_text(table, how.text)
    at = choose_columns(table, text, names[0] if names else None, None)[1]
    first = (row[0] for row in islice(table.read([at]), SAMPLE))
    if separator is None and not any(isinstance(cell, list) for cell in first):
        return [], {}
    column, rows, split, found = table.columns[at], 0, False, Counter[str]()
    for row, (cell,) in enumerate(table.read([at]), 1):
        if missing(cell):
            continue
        rows += 1
        split |= separator is None or separator in str(cell)
        try:
            found.update(set(labels_of(cell, separator)))
        except TypeError:
            raise InputError(
                f"{table.name}: row {row}: the labels in column {column!r} are a {type(cell).__name__}, not a list; for text give "
                "--label-separator"
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
    asked = [Asked(name, column, Having(name, separator), found[name]) for name in kept]
    return asked, {name: found[name] for name in order if name not in kept}
