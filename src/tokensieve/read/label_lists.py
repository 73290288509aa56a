"""Several labels for one document: lists of labels, or labels between separators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, NamedTuple, TypeVar

import polars as pl

from tokensieve.errors import InputError
from tokensieve.read.columns import labelled_columns
from tokensieve.read.label_column import LabelColumn
from tokensieve.read.settings import ReadSettings
from tokensieve.read.sources import Source, open_source
from tokensieve.read.table import SourceTable
from tokensieve.read.values import Values, as_list, label_name, listed, missing

MIN_DOCUMENTS_PER_LABEL = 20  # with a label, and without it
MAX_AUDITS = 50

S = TypeVar("S", bound=ReadSettings)


@dataclass(frozen=True)
class SettingsPerLabel(Generic[S]):
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
    """Yield each cell with its labels: the entries of a list, or the parts between separators."""
    for row, cell in enumerate(as_list(values), first_row):
        if missing(cell):
            yield _LabelSet(cell, None)
            continue
        names = list[str | None]()
        for entry in _entries(cell, separator):
            try:
                names.append(label_name(entry))
            except TypeError:
                raise InputError(
                    f"{name}: row {row}: the labels contain {_kind(entry)}, such as "
                    f"{str(entry)[:40]!r}; a label is a name for the whole document, so choose "
                    "another column with --label COLUMN"
                ) from None
        yield _LabelSet(cell, {name for name in names if name is not None})


def _entries(cell: object, separator: str | None) -> Sequence[object]:
    """The labels of a cell: a text without a separator, or any single value, is a list of one."""
    if isinstance(cell, str) and separator is not None:
        return cell.split(separator)
    entries = cell
    if hasattr(cell, "tolist"):
        entries = cell.tolist()
    if isinstance(entries, list | tuple):
        return entries
    return [entries]


def _kind(entry: object) -> str:
    """The type of a value that cannot be a label, in words."""
    if isinstance(entry, list | tuple):
        return "lists (of marked parts of the text, perhaps)"
    if isinstance(entry, dict):
        return "objects"
    return f"{type(entry).__name__} values"


def has_label(
    values: Values, label: str, separator: str | None, name: str, first_row: int
) -> pl.Series:
    """Whether each cell has a label: "yes", "no", or null where the cell is missing."""
    answers = list[str | None]()
    for labels in _label_sets(values, separator, name, first_row):
        if labels.labels is None:
            answers.append(None)
        else:
            answers.append("yes" if label in labels.labels else "no")
    return pl.Series(answers, dtype=pl.String)


def settings_per_label(source: Source, settings: S) -> SettingsPerLabel[S]:
    """The audits that a source with several labels needs.

    A column of lists gives one audit per label, several columns one each, an ordinary column none.
    """
    names = settings.label_columns()
    table = open_source(source, settings).train
    if len(names) > 1:
        return _audit_per_column(table, names, settings)
    taken = [settings.split, settings.by, settings.environments, settings.row_annotator]
    column = labelled_columns(
        table,
        settings.text,
        names[0] if names else None,
        [name for name in taken if name is not None],
    ).label
    counted = _count_labels(table, column, settings)
    if counted is None or not counted.has_several:
        return SettingsPerLabel()
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
    return SettingsPerLabel(
        {name: replace(settings, label=column, having=name) for name in audited},
        too_few={name: sizes[name] for name in order if name not in frequent},
        past_limit={name: sizes[name] for name in frequent[MAX_AUDITS:]},
    )


def _audit_per_column(table: SourceTable, names: Sequence[str], settings: S) -> SettingsPerLabel[S]:
    if settings.label_separator is not None:
        raise InputError("--label-separator is for one label column: name one with --label")
    if len(set(names)) < len(names):
        raise InputError(f"--label names a column twice: {listed(names)}")
    columns = [table.checked_column(name, "label") for name in names]
    return SettingsPerLabel({name: replace(settings, label=name) for name in columns})


@dataclass(frozen=True)
class _LabelCounts:
    """Documents of each label, and whether any document has none or several."""

    sizes: Counter[str]
    n_documents: int
    has_several: bool


def _count_labels(table: SourceTable, column: str, settings: ReadSettings) -> _LabelCounts | None:
    """Count the labels of a column of lists or of separated labels; None for any other column."""
    reader = LabelColumn(table, column, settings)
    separator = settings.label_separator
    sizes = Counter[str]()
    n_documents = 0
    row = 1
    has_lists = separator is not None
    has_separator = False
    has_several = separator is not None
    for batch in table.read(reader.wanted):
        cells = reader.cells(batch, row)
        if _cannot_be_lists(cells) and not has_lists:
            return None
        has_lists = has_lists or any(isinstance(cell, list) for cell in as_list(cells))
        for cell, labels in _label_sets(cells, separator, table.name, row):
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
    if has_lists:
        return _LabelCounts(sizes, n_documents, has_several)
    return None


def _cannot_be_lists(cells: Values) -> bool:
    """Whether a column of one type holds single values, here and in all other batches."""
    return isinstance(cells, pl.Series) and not cells.dtype.is_nested() and cells.dtype != pl.Object
