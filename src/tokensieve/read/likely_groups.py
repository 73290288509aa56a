"""A column that nobody named and whose values look like authors, threads or identifiers."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

import numpy as np
import polars as pl

from tokensieve.arrays import Ints
from tokensieve.read.reading_report import LikelyGroups
from tokensieve.read.table import SourceTable
from tokensieve.read.values import as_list

MIN_GROUPS = 10  # of two or more documents; and twice as many as classes
MIN_FRACTION_IN_GROUPS = 0.5  # of all documents
MAX_FRACTION_IN_ONE = 0.2  # of all documents, in the largest group
MIN_EXCESS_AGREEMENT = 0.1  # of pairs of a group, beyond the mean of the shuffles
N_SHUFFLES = 20  # and more agreement than in any of them
CELLS_IN_MEMORY = 2_000_000  # of the columns that one pass over the source reads
_IDENTIFIER = re.compile(
    r"(^|_|\b)(id|user|author|speaker|writer|account|thread|source|file|session)s?($|_|\b)",
    re.IGNORECASE,
)


def likely_groups(
    table: SourceTable, taken: Collection[str | None], rows: Ints, labels: Ints
) -> LikelyGroups | None:
    """Find the column whose groups of documents share a label most beyond chance.

    Args:
        table: the source.
        taken: columns that have another purpose.
        rows: the row of each document, from 1, shape (n,).
        labels: class index of each document, shape (n,).
    """
    columns = [name for name in _columns_of_names(table) if name not in taken]
    shuffled = [np.random.default_rng(seed).permutation(labels) for seed in range(N_SHUFFLES)]
    candidates = [
        groups
        for name, cells in _read_columns(table, columns, len(labels))
        if (groups := _as_groups(name, cells.gather(rows - 1), labels, shuffled)) is not None
    ]
    return max(
        candidates, key=lambda groups: groups.agreement - groups.expected_agreement, default=None
    )


def _columns_of_names(table: SourceTable) -> Iterator[str]:
    """Columns of text, and of whole numbers if they are named like identifiers."""
    for name, values in table.sample.items():
        types = {type(value) for value in values if value is not None}
        if types == {str} or (types == {int} and _IDENTIFIER.search(name)):
            yield name


def _read_columns(
    table: SourceTable, columns: Sequence[str], n_documents: int
) -> Iterator[tuple[str, pl.Series]]:
    """Yield each column as text, a few of them in memory at a time."""
    at_once = max(1, CELLS_IN_MEMORY // n_documents)
    for start in range(0, len(columns), at_once):
        cells: dict[str, list[object]] = {name: [] for name in columns[start : start + at_once]}
        for batch in table.read(list(cells)):
            for name, values in batch.items():
                cells[name] += as_list(values)
        for name, values in cells.items():
            yield name, pl.Series("value", values, dtype=pl.String, strict=False)


def _as_groups(
    name: str, cells: pl.Series, labels: Ints, shuffled: Sequence[Ints]
) -> LikelyGroups | None:
    """The groups of a column's values; None if these are too few, too large or agree by chance."""
    n_classes = int(labels.max()) + 1
    min_groups = max(MIN_GROUPS, 2 * n_classes)
    if cells.n_unique() < min_groups:
        return None
    members = cells.to_frame().with_row_index("document").drop_nulls()
    members = members.filter(pl.len().over("value") >= 2)
    group = members["value"].rank("dense").to_numpy().astype(np.int64) - 1
    sizes = np.bincount(group)
    n_documents = len(labels)
    is_too_small = len(sizes) < min_groups or sizes.sum() < MIN_FRACTION_IN_GROUPS * n_documents
    if is_too_small or sizes.max() > MAX_FRACTION_IN_ONE * n_documents:
        return None
    documents = members["document"].to_numpy()
    agreement = _agreement(group, labels[documents], n_classes)
    by_chance = [_agreement(group, order[documents], n_classes) for order in shuffled]
    expected = float(np.mean(by_chance))
    if agreement < expected + MIN_EXCESS_AGREEMENT or agreement <= max(by_chance):
        return None
    return LikelyGroups(name, len(sizes), agreement, expected, int(sizes.sum()))


def _agreement(group: Ints, labels: Ints, n_classes: int) -> float:
    """The fraction of pairs of documents of one group that share a label, the mean over groups."""
    counts = np.zeros((group.max() + 1, n_classes))
    np.add.at(counts, (group, labels), 1)
    sizes = counts.sum(axis=1)
    same = (counts * (counts - 1)).sum(axis=1)
    return float((same / (sizes * (sizes - 1))).mean())
