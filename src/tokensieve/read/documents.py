"""Rows of a table → documents in a frame, and a count of every row that cannot be used; other columns as tokens; weights."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias, TypeVar

import numpy as np
import polars as pl

from tokensieve.arrays import Ints
from tokensieve.errors import InputError
from tokensieve.read.fields import BLANK, ColumnKind, join_fields
from tokensieve.read.settings import ReadSettings
from tokensieve.read.sources import Source, open_source
from tokensieve.read.stored_texts import StoredTexts
from tokensieve.read.table import TEST_NAMES, TRAIN_NAMES, Batch, SourceTable, Values
from tokensieve.read.values import label_name, listed, missing, text_series

R = TypeVar("R", bound=ReadSettings)
# a column, its groups, how often two documents of one share a label, and how often they would by chance, documents in them
Grouping: TypeAlias = tuple[str, int, float, float, int]
_IDENTIFIER = re.compile(
    r"(^|_|\b)(id|user|author|speaker|writer|account|thread|source|file|session)s?($|_|\b)",
    re.IGNORECASE,
)
_DATE = r"^\s*(\d{4})-(\d{1,2})-\d{1,2}([T ].*)?\s*$"
_NULL = pl.Series([None], dtype=pl.String)
# the documents, without the column "text" where their texts are in a file; that file; and counts of the rows
Usable: TypeAlias = tuple[pl.DataFrame, StoredTexts | None, Counter[str]]


def collect(
    table: SourceTable,
    texts: Sequence[str],
    label: str,
    settings: ReadSettings,
    *,
    more: Mapping[str, str],
    part: str | None = None,
    columns: ColumnTokens | None = None,
) -> tuple[Usable, Usable]:
    """All usable rows of a table: those for training, and those that a column marks for testing.

    The counts are rows, missing_text, missing_label, not_accepted, empty, replaced_surrogates and trimmed (labels with spaces).

    Args:
        more: other columns whose values belong to the documents: the column's name in the frame → in the table.
        part: the column that holds train or test, if any.
        columns: whose values are fields of the text, behind the others.
    """
    flags = {"group": "by", "environment": "environments"}
    schema = {
        "text": pl.String,
        "label": pl.String,
        **dict.fromkeys(more, pl.String),
        "row": pl.Int64,
    }
    train, test = Collected(schema, settings.stream), Collected(schema, settings.stream)
    found, row = set[str](), 1
    others = () if columns is None else columns.names
    verdict = table.verdict()
    wanted = [*texts, label, *more.values(), *others, part, verdict]
    for batch in table.read(list(dict.fromkeys(name for name in wanted if name))):
        joined, replaced = _joined(table, batch, texts, row, settings.role, columns)
        train.counts["replaced_surrogates"] += replaced
        if settings.having is not None:
            labels = _has_label(
                batch[label], settings.having, settings.label_separator, table.name, row
            )
        else:
            advice = "choose another column with --label COLUMN (tokensieve audit accepts lists and runs one audit per label)"
            labels = table.as_names(batch[label], row, "the label is", advice)
            given = table.as_list(batch[label])
            padded = (
                value != value.strip() and not value.isspace()
                for value in given
                if isinstance(value, str)
            )
            train.counts["trimmed"] += sum(padded)
        values = {"text": joined, "label": labels}
        for kind, name in more.items():
            holds = f"the column {name!r} (--{flags.get(kind, kind)}) contains"
            values[kind] = table.as_names(batch[name], row, holds, "choose another")
        frame = pl.DataFrame(values)
        frame = frame.with_columns(row=pl.int_range(row, row + frame.height, dtype=pl.Int64))
        row += frame.height
        if verdict:
            accepted = pl.Series(table.as_list(batch[verdict]), dtype=pl.String) == "accept"
            accepted |= pl.Series(
                label == verdict and value == "reject" for value in batch[verdict]
            )
            train.counts.update(rows=(aside := int((~accepted).sum())), not_accepted=aside)
            frame = frame.filter(accepted)
        if part is None:
            train.add(frame)
        else:
            names = pl.Series(
                [str(value).strip().lower() for value in batch[part]], dtype=pl.String
            )
            found |= set(names)
            train.add(frame.filter(names.is_in(TRAIN_NAMES)))
            test.add(frame.filter(names.is_in(TEST_NAMES)))
    if part is not None:
        table.check_sides(part, found)
    return train.finish(), test.finish()


class Collected:
    """Documents for training or testing, collected batch by batch, with the digests of their texts."""

    def __init__(self, schema: Mapping[str, type[pl.DataType]], stream: bool) -> None:
        self.counts, self._stored = Counter[str](rows=0), StoredTexts() if stream else None
        self._frames: list[pl.DataFrame] = []
        self.keep(pl.DataFrame(schema={**schema, "key": pl.Binary}))

    def add(self, frame: pl.DataFrame) -> None:
        """Keep the rows that have a text and a label, and count the others by what is missing."""
        has_text, has_name = pl.col("text").is_not_null(), pl.col("label").is_not_null()
        blank = pl.col("text").str.contains(BLANK)
        unusable = {
            "missing_text": ~has_text,
            "missing_label": has_text & ~has_name,
            "empty": has_text & has_name & blank,
        }
        found = frame.select(rows=pl.len(), **{name: rows.sum() for name, rows in unusable.items()})
        self.counts.update(found.row(0, named=True))
        usable = frame.filter(has_name & ~blank)
        self.keep(usable.with_columns(key=self.digests(usable["text"])))

    def keep(self, usable: pl.DataFrame) -> None:
        """Keep these documents; their texts go into a file, if there is one."""
        if self._stored is not None:
            self._stored.extend(usable["text"].to_list())
            usable = usable.drop("text")
        self._frames.append(usable)

    @staticmethod
    def digests(texts: Iterable[str]) -> pl.Series:
        """The digests by which texts are compared: BLAKE2b of their UTF-8, 12 bytes. Among 10⁹ texts, two different ones share a
        digest with probability 10⁻¹¹."""
        return pl.Series(
            [hashlib.blake2b(text.encode(), digest_size=12).digest() for text in texts],
            dtype=pl.Binary,
        )

    def finish(self) -> Usable:
        """Everything that was kept."""
        return pl.concat(self._frames), self._stored, self.counts


def _joined(
    table: SourceTable,
    batch: Batch,
    texts: Sequence[str],
    row: int,
    role: str | None,
    columns: ColumnTokens | None,
) -> tuple[pl.Series, int]:
    """The text of each row, and how many lone surrogates were replaced. The value of another column alone is not a document."""
    found = [table.as_texts(batch[column], column, row, role) for column in texts]
    parts, names = [part for part, _ in found], () if columns is None else columns.names
    parts += [columns.words(name, batch[name]) for name in names] if columns else []
    joined = parts[0] if len(parts) == 1 else join_fields([*texts, *names], parts, len(texts))
    return joined, sum(n for _, n in found)


def read_rows(
    table: SourceTable,
    text: str | Sequence[str] | None = None,
    label: str | None = None,
    keep: Sequence[str] = (),
    columns: Mapping[str, ColumnKind] | None = None,
) -> pl.DataFrame:
    """Every row of a table in its order, for prediction.
    `columns` are other columns that the model reads as tokens, and how (`ColumnTokens.kinds`); missing ones are left out.

    The columns are "row", from 1; "text", null where a row has none; "label", likewise, if a label column is given; and "kept", a
    struct of the columns carried along, as text.
    """
    names = table.text_columns(text)
    for name in (*([label] if label else []), *keep):
        if name in names and len(names) > 1:
            raise InputError(f"{table.name}: {name!r} is a text field and cannot also be kept")
    labels = [] if label is None else [table.checked_column(label, "label")]
    kept = [table.checked_column(name, "results") for name in keep]
    found = {name: (name,) for name in columns or {} if name in table.columns}
    others = ColumnTokens(table, found, columns)
    frames, row = [], 1
    for batch in table.read(list(dict.fromkeys([*names, *labels, *kept, *found]))):
        values = {"text": _joined(table, batch, names, row, None, others)[0]}
        if labels:
            advice = "choose another column with --label COLUMN"
            values["label"] = table.as_names(batch[labels[0]], row, "the label is", advice)
        if kept:
            copied = {name: text_series(map(_written, table.as_list(batch[name]))) for name in kept}
            values["kept"] = pl.DataFrame(copied).to_struct("kept")
        frames.append(pl.DataFrame(values).with_row_index("row", row))
        row += len(frames[-1])
    if row == 1:
        raise InputError(f"{table.name} has no rows")
    return pl.concat(frames).with_columns(pl.col("row").cast(pl.Int64))


def _written(value: object) -> str | None:
    """A value of any kind as text; a value that is not a single one as JSON."""
    if value is None or isinstance(value, str):
        return value
    return (
        json.dumps(value, ensure_ascii=False, default=str)
        if isinstance(value, list | dict)
        else str(value)
    )


class ColumnTokens:
    """Other columns as tokens (`--columns source,annotator,date`), so that what they give away is found like any shortcut.

    Each value becomes one word in its field, such as `source:twitter`. Numbers with more than 20 values are divided into quarters,
    dates into months.

    Attributes:
        names: the fields; of documents each is a column, of pairs one column for each answer.
        kinds: field → "month", the ends of the first three quarters, or None where each value is a word; those given, if any.
        notes: which were divided, and where.
    """

    def __init__(
        self,
        table: SourceTable,
        fields: Mapping[str, Sequence[str]],
        kinds: Mapping[str, ColumnKind] | None = None,
    ) -> None:
        self.names, self._table, self.kinds, self.notes = (
            tuple(fields),
            table,
            dict(kinds or {}),
            list[str](),
        )
        read = [
            table.checked_column(column, "columns")
            for columns in fields.values()
            for column in columns
        ]
        batches = list(table.read(read)) if read and kinds is None else []
        for name in fields if batches else ():
            parts = [
                self._as_text(column, batch[column]) for batch in batches for column in fields[name]
            ]
            values = pl.concat(parts).drop_nulls()
            numbers = values.cast(pl.Float64, strict=False).drop_nans()
            self.kinds[name] = None
            if len(values) and values.str.contains(_DATE).mean() == 1:
                self.kinds[name] = "month"
                self.notes.append(f"column {name!r} is grouped by month")
            elif numbers.null_count() == 0 and numbers.n_unique() > 20:
                one, two, three = (
                    float(numbers.quantile(q, "lower") or 0.0) for q in (0.25, 0.5, 0.75)
                )
                self.kinds[name] = ends = (one, two, three)
                shown = ", ".join(f"q{i} up to {end:g}" for i, end in enumerate(ends, 1))
                self.notes.append(f"column {name!r} is split into quartiles: {shown}")

    def words(self, name: str, values: Values) -> pl.Series:
        """One word for each value of a field; null for a missing value."""
        text, kind = self._as_text(name, values), self.kinds.get(name)
        if kind == "month":
            return text.str.replace(_DATE, "${1}_${2}")
        if kind is not None:
            number = text.cast(pl.Float64, strict=False)
            quarter = (
                np.searchsorted(kind, number.to_numpy()) + 1
            )  # the first end that is not below it
            return ("q" + pl.Series(quarter).cast(pl.String)).zip_with(
                number.is_not_nan().fill_null(False), _NULL
            )
        return text.str.replace_all(r"[^\w]+", "_").str.strip_chars("_")

    def _as_text(self, name: str, values: Values) -> pl.Series:
        return self._table.as_names(
            values, 1, f"column {name!r} (--columns) contains", "leave it out"
        )

    @staticmethod
    def likely_groups(
        table: SourceTable, taken: Collection[str | None], rows: Ints, labels: Ints
    ) -> Grouping | None:
        """Of the columns that nobody named, the one whose values look like authors, threads or identifiers of documents (in these
        `rows`) that share a label: at least ten groups of two or more documents, none with over a fifth of all, half of the
        documents in them, and a label in common 10 points more often than by chance and than in any of twenty shuffles."""
        best, n, classes = None, len(labels), int(labels.max()) + 1
        shuffled = [
            labels,
            *(np.random.default_rng(seed).permutation(labels) for seed in range(20)),
        ]
        kinds = {
            name: {type(value) for value in values if value is not None}
            for name, values in table.sample.items()
        }
        names = [
            k for k, of in kinds.items() if of == {str} or (of == {int} and _IDENTIFIER.search(k))
        ]
        names = [name for name in names if name not in taken]
        at_once = max(1, 2_000_000 // n)  # columns that one pass over the file keeps in memory

        def columns() -> Iterator[tuple[str, pl.Series]]:
            for i in range(0, len(names), at_once):
                cells: dict[str, list[object]] = {name: [] for name in names[i : i + at_once]}
                for batch in table.read(list(cells)):
                    for name, values in batch.items():
                        cells[name] += table.as_list(values)
                for name, column in cells.items():
                    yield (
                        name,
                        pl.Series("value", column, dtype=pl.String, strict=False).gather(rows - 1),
                    )

        for name, column in columns():
            if column.n_unique() < max(10, 2 * classes):
                continue
            held = (
                column.to_frame()
                .with_row_index("i")
                .drop_nulls()
                .filter(pl.len().over("value") >= 2)
            )
            group = held["value"].rank("dense").to_numpy().astype(np.int64) - 1
            sizes = np.bincount(group)
            if len(sizes) < max(10, 2 * classes) or sizes.sum() < n / 2 or sizes.max() > n / 5:
                continue
            chances = []  # that two documents of a group share a label, the mean over groups; the first is that of the labels
            for given in shuffled:
                inside = np.zeros((len(sizes), classes))
                np.add.at(inside, (group, given[held["i"]]), 1)
                chances.append(
                    float(((inside * (inside - 1)).sum(axis=1) / (sizes * (sizes - 1))).mean())
                )
            found, expected = chances[0], float(np.mean(chances[1:]))
            beyond = found >= expected + 0.1 and found > max(chances[1:])
            if beyond and (best is None or found - expected > best[2] - best[3]):
                best = name, len(sizes), found, expected, int(sizes.sum())
        return best


# ---- several labels for one document

LEAST = 20  # documents with a label, and without it


def _label_sets(
    values: Values, separator: str | None, name: str, first_row: int
) -> Iterator[tuple[object, set[str] | None]]:
    """Each cell with its labels: the entries of a list, or the parts of a text between separators; None if it is missing."""
    for row, cell in enumerate(SourceTable.as_list(values), first_row):
        entries = cell.split(separator) if isinstance(cell, str) and separator is not None else cell
        entries = entries.tolist() if hasattr(entries, "tolist") else entries
        if missing(cell):
            yield cell, None
            continue
        try:
            if not isinstance(entries, list | tuple):
                raise TypeError
            yield cell, {label for entry in entries if (label := label_name(entry)) is not None}
        except TypeError:
            raise InputError(
                f"{name}: row {row}: the labels are a {type(cell).__name__}, not a list; pass --label-separator"
            ) from None


def _has_label(
    values: Values, label: str, separator: str | None, name: str, first_row: int
) -> pl.Series:
    """ "yes" where the label is among those of a cell, "no" elsewhere, and null where a cell is missing."""
    sets = [labels for _, labels in _label_sets(values, separator, name, first_row)]
    # in this order, so that to have a label is class 1
    return pl.Series(
        [None if x is None else ("no", "yes")[label in x] for x in sets], dtype=pl.String
    )


def label_settings(source: Source, settings: R) -> tuple[list[tuple[str, R]], dict[str, int]]:
    """The audits that a source with several labels needs: (label, how to read the source for it); and the labels of too few (or
    all) documents, with their numbers.

    A column of lists gives one audit per label, the most frequent first; several columns one each; an ordinary one none.
    """
    names = [settings.label] if isinstance(settings.label, str) else list(settings.label or ())
    separator = settings.label_separator
    if len(names) > 1 and separator is not None:
        raise InputError("--label-separator is for one label column: name one with --label")
    table = open_source(source, settings).train
    if len(names) > 1:
        if len(set(names)) < len(names):
            raise InputError(f"--label names a column twice: {listed(names)}")
        return [
            (table.checked_column(name, "label"), replace(settings, label=name)) for name in names
        ], {}
    taken = [c for c in (settings.split, settings.by, settings.environments) if c is not None]
    column = table.labelled_columns(settings.text, names[0] if names else None, taken)[1]
    rows, number, split, several, found = 0, 1, False, False, Counter[str]()
    for batch in table.read([column]):
        first = table.as_list(batch[column][:200]) if number == 1 and separator is None else [[]]
        if not any(isinstance(cell, list) for cell in first):
            return [], {}
        for cell, labels in _label_sets(batch[column], separator, table.name, number):
            number += 1
            if labels is not None:
                rows += 1
                split |= separator is None or separator in str(cell)
                several |= separator is not None or len(labels) != 1
                found.update(labels)
    if not split:
        raise InputError(
            f"{table.name}: column {column!r} never contains {separator!r}; check --label-separator"
        )
    if not several:  # a list of one label in every row
        return [], {}
    order = sorted(found, key=lambda name: (-found[name], name))
    kept = [name for name in order if LEAST <= found[name] <= rows - LEAST][:50]
    if not kept:
        least = f"occurs in at least {LEAST} documents and is absent from at least {LEAST}"
        raise InputError(
            f"{table.name}: no label in column {column!r} {least}; the labels are {listed(order)}"
        )
    asked = [(name, replace(settings, label=column, having=name)) for name in kept]
    return asked, {name: found[name] for name in order if name not in kept}
