"""Several labels for one document: lists of labels, or labels between separators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, NamedTuple, TypeVar

import polars as pl

from tokensieve.errors import InputError
from tokensieve.read.columns import labelled_columns
from tokensieve.read.settings import ReadSettings
from tokensieve.read.sources import Source, open_source
from tokensieve.read.table import SAMPLE_ROWS, SourceTable
from tokensieve.read.values import Values, as_list, label_name, listed, missing

MIN_DOCUMENTS_PER_LABEL = 20  # with a label, and without it
MAX_AUDITS = 50

S = TypeVar("S", bound=ReadSettings)


@dataclass(frozen=True)
class LabelAudits(Generic[S]):
    """The audits that a source with several labels needs; none if it has one label per document.

    Attributes:
        settings: label → how to read the source for it, the most frequent label first.
        too_few: labels of too few (or nearly all) documents → their documents.
        past_limit: labels that follow the most frequent fifty → their documents.
    """

    settings: dict[str, S] = field(default_factory=dict)
    too_few: dict[str, int] = field(default_factory=dict)
    past_limit: dict[str, int] = field(default_factory=dict)


class _LabelSet(NamedTuple):
    """A cell, and the labels in it; None if the cell is missing."""

    cell: object
    labels: set[str] | None


def _label_sets(
    values: Values, separator: str | None, name: str, first_row: int
) -> Iterator[_LabelSet]:
    """Each cell with its labels: the entries of a list, or the parts between separators."""
    for row, cell in enumerate(as_list(values), first_row):
        if missing(cell):
            yield _LabelSet(cell, None)
            continue
        try:
            names = [label_name(entry) for entry in _entries(cell, separator)]
        except TypeError:
            raise InputError(
                f"{name}: row {row}: the labels are a {type(cell).__name__}, not a list; "
                "pass --label-separator"
            ) from None
        yield _LabelSet(cell, {name for name in names if name is not None})


def _entries(cell: object, separator: str | None) -> Sequence[object]:
    """The entries of a cell; a TypeError if it is no list."""
    if isinstance(cell, str) and separator is not None:
        return cell.split(separator)
    entries = cell.tolist() if hasattr(cell, "tolist") else cell
    if not isinstance(entries, list | tuple):
        raise TypeError
    return entries


def has_label(
    values: Values, label: str, separator: str | None, name: str, first_row: int
) -> pl.Series:
    """Whether each cell has a label: "yes", "no", or null where the cell is missing."""
    answers = list[str | None]()
    for found in _label_sets(values, separator, name, first_row):
        if found.labels is None:
            answers.append(None)
        else:
            answers.append("yes" if label in found.labels else "no")
    return pl.Series(answers, dtype=pl.String)


def label_audits(source: Source, settings: S) -> LabelAudits[S]:
    """The audits that a source with several labels needs.

    A column of lists gives one audit per label, several columns one each, an ordinary column none.
    """
    names = [settings.label] if isinstance(settings.label, str) else list(settings.label or ())
    separator = settings.label_separator
    table = open_source(source, settings).train
    if len(names) > 1:
        return _audit_per_column(table, names, settings)
    taken = [settings.split, settings.by, settings.environments]
    column = labelled_columns(
        table,
        settings.text,
        names[0] if names else None,
        [name for name in taken if name is not None],
    ).label
    counted = _count_labels(table, column, separator)
    if counted is None or not counted.has_several:
        return LabelAudits()
    sizes = counted.sizes
    order = sorted(sizes, key=lambda name: (-sizes[name], name))
    limit = counted.n_documents - MIN_DOCUMENTS_PER_LABEL
    frequent = [name for name in order if MIN_DOCUMENTS_PER_LABEL <= sizes[name] <= limit]
    audited = frequent[:MAX_AUDITS]
    if not audited:
        raise InputError(
            f"{table.name}: no label in column {column!r} occurs in at least "
            f"{MIN_DOCUMENTS_PER_LABEL} documents and is absent from at least "
            f"{MIN_DOCUMENTS_PER_LABEL}; the labels are {listed(order)}"
        )
    return LabelAudits(
        {name: replace(settings, label=column, having=name) for name in audited},
        too_few={name: sizes[name] for name in order if name not in frequent},
        past_limit={name: sizes[name] for name in frequent[MAX_AUDITS:]},
    )


def _audit_per_column(table: SourceTable, names: Sequence[str], settings: S) -> LabelAudits[S]:
    if settings.label_separator is not None:
        raise InputError("--label-separator is for one label column: name one with --label")
    if len(set(names)) < len(names):
        raise InputError(f"--label names a column twice: {listed(names)}")
    columns = [table.checked_column(name, "label") for name in names]
    return LabelAudits({name: replace(settings, label=name) for name in columns})


@dataclass(frozen=True)
class _LabelCounts:
    """Documents of each label, and whether any document has none or several."""

    sizes: Counter[str]
    n_documents: int
    has_several: bool


def _count_labels(table: SourceTable, column: str, separator: str | None) -> _LabelCounts | None:
    """Count the labels of a column of lists or of separated labels; None for any other column."""
    sizes = Counter[str]()
    n_documents = 0
    row = 1
    has_separator = False
    has_several = separator is not None
    for batch in table.read([column]):
        if row == 1 and separator is None and not _has_lists(batch[column]):
            return None
        for cell, labels in _label_sets(batch[column], separator, table.name, row):
            row += 1
            if labels is None:
                continue
            n_documents += 1
            sizes.update(labels)
            has_separator |= separator is not None and separator in str(cell)
            has_several |= len(labels) != 1
    if separator is not None and not has_separator:
        raise InputError(
            f"{table.name}: column {column!r} never contains {separator!r}; check --label-separator"
        )
    return _LabelCounts(sizes, n_documents, has_several)


def _has_lists(values: Values) -> bool:
    return any(isinstance(cell, list) for cell in as_list(values[:SAMPLE_ROWS]))
