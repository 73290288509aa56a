"""Rows of a table → usable documents in one frame, and a count of every row that cannot be used."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from tokensieve.errors import InputError
from tokensieve.text.fields import BLANK, join_fields
from tokensieve.text.labels import listed
from tokensieve.text.metadata import ColumnTokens
from tokensieve.text.multilabel import has_label
from tokensieve.text.settings import SourceSettings
from tokensieve.text.spill import DIGEST, StoredTexts, TextWriter
from tokensieve.text.table import Batch, SourceTable, Values, as_names, as_texts

TEST_NAMES = ("test", "testing")
TRAIN_NAMES = ("train", "training", "dev", "validation", "val")


def digest(text: str) -> bytes:
    """The digest by which texts are compared: BLAKE2b of its UTF-8, 12 bytes."""
    return hashlib.blake2b(text.encode(), digest_size=DIGEST).digest()


class UsableRows:
    """Usable documents, collected batch by batch.

    Args:
        name: the source, for messages.
        stream: keep the texts in a file.

    Attributes:
        counts: rows, missing_text, missing_label, empty, replaced_surrogates and trimmed (labels that had spaces around them).
    """

    def __init__(self, name: str, stream: bool = False) -> None:
        self.name, self.counts = name, Counter[str](rows=0)
        self._writer = TextWriter() if stream else None
        self._frames: list[pl.DataFrame] = []

    def add(self, frame: pl.DataFrame) -> None:
        """More rows: columns "text" and "label" with nulls, "row", and others that belong to the documents."""
        text, label = pl.col("text"), pl.col("label")
        blank = text.str.contains(BLANK)
        found = frame.select(
            rows=pl.len(),
            missing_text=text.is_null().sum(),
            missing_label=(text.is_not_null() & label.is_null()).sum(),
            empty=(text.is_not_null() & label.is_not_null() & blank).sum(),
        )
        self.counts.update(found.row(0, named=True))
        kept = frame.filter(label.is_not_null() & ~blank)
        texts = kept["text"].to_list()
        kept = kept.with_columns(key=pl.Series([digest(t) for t in texts], dtype=pl.Binary))
        if self._writer is not None:
            self._writer.extend(texts)
            kept = kept.drop("text")
        self._frames.append(kept)

    def finish(self) -> tuple[pl.DataFrame, StoredTexts | None]:
        """The documents; without the column "text" where their texts are in a file, which then comes with them."""
        if not self._frames:
            empty = {"text": pl.String, "label": pl.String, "row": pl.Int64, "key": pl.Binary}
            self._frames.append(pl.DataFrame(schema=empty))
        stored = None if self._writer is None else self._writer.finish()
        return pl.concat(self._frames, how="vertical_relaxed"), stored


def check_kept(name: str, counts: Mapping[str, int], kept: int, dropped: int = 0) -> None:
    """Make sure that documents are left.

    Args:
        name: the source, for the message.
        counts: of its rows (`UsableRows.counts`).
        kept: documents that are left.
        dropped: rows left out because the caller dropped their label.

    Raises:
        InputError: none is left.
    """
    rows, empty = counts.get("rows", 0), counts.get("empty", 0)
    if kept:
        return
    if not rows:
        raise InputError(f"{name}: has no rows")
    if empty == rows:
        raise InputError(
            f"{name}: all {rows:,} documents are empty (white space only); choose another column with --text COLUMN"
        )
    raise InputError(
        f"{name}: no document is left; of {rows:,} rows {counts.get('missing_text', 0):,} have no text, "
        f"{counts.get('missing_label', 0):,} no label, {empty:,} are empty, {dropped:,} were dropped; "
        "check --text, --label and --drop"
    )


def left_out_lines(counts: Mapping[str, int]) -> list[str]:
    """One plain sentence for each kind of row that was left out or changed; nothing for what did not occur."""
    notes = {
        "missing_text": "rows without a text, left out",
        "missing_label": "rows without a label, left out",
        "empty": "empty documents (white space only), left out",
        "replaced_surrogates": "documents with lone surrogates, each replaced by U+FFFD",
        "trimmed": "labels with spaces around them, trimmed",
    }
    return [f"{note}: {counts[key]:,}" for key, note in notes.items() if counts.get(key)]


def collect(
    table: SourceTable,
    texts: Sequence[str],
    label: str,
    settings: SourceSettings,
    *,
    having: str | None = None,
    more: Mapping[str, str] | None = None,
    part: str | None = None,
    stream: bool = False,
    columns: ColumnTokens | None = None,
) -> tuple[UsableRows, UsableRows]:
    """All rows of a table: those for training, and those for testing where a column says so.

    Args:
        table: of any source.
        texts: the text column, or several fields.
        label: the label column.
        settings: how its values are read.
        having: of several labels per document, the one that is asked for.
        more: other columns whose values belong to the documents: the column's name in the frame → in the table.
        part: the column that holds train or test, if any.
        stream: keep the texts in files.
        columns: whose values are fields of the text, behind the others.

    Raises:
        InputError: a row cannot be read, its text is not text, or its label a list or the like.
    """
    more = dict(more or {})
    train, test = UsableRows(table.name, stream), UsableRows(f"{table.name} (test rows)", stream)
    found, row = Counter[str](), 1
    others = () if columns is None else columns.names
    wanted = [*texts, label, *more.values(), *others, *([part] if part else [])]
    for batch in table.read(list(dict.fromkeys(wanted))):
        whole, replaced = _text_of(table.name, batch, texts, row, settings.role, columns)
        train.counts["replaced_surrogates"] += replaced
        values = {"text": whole, "label": _labels_of(table.name, batch[label], label, row, settings, having)}
        train.counts["trimmed"] += _spaces_around(batch[label])
        for kind, name in more.items():
            values[kind] = as_names(batch[name], _wrong(table.name, name, kind), row)
        frame = pl.DataFrame(values)
        frame = frame.with_columns(row=pl.int_range(row, row + frame.height, dtype=pl.Int64))
        row += frame.height
        if part is None:
            train.add(frame)
            continue
        sides = _sides(batch[part])
        found.update(dict(sides.value_counts().iter_rows()))
        train.add(frame.filter(sides.is_in(TRAIN_NAMES)))
        test.add(frame.filter(sides.is_in(TEST_NAMES)))
    if part is not None:
        check_sides(table.name, part, set(found))
    return train, test


def check_sides(name: str, part: str, found: set[str]) -> None:
    """Make sure that a column holds train and test.

    Raises:
        InputError: it holds something else, or only one of them.
    """
    if not found <= {*TEST_NAMES, *TRAIN_NAMES} or not found & {*TEST_NAMES} or not found & {*TRAIN_NAMES}:
        raise InputError(
            f"{name}: column {part!r} must hold 'test' for test rows and one of {listed(TRAIN_NAMES)} for "
            f"the others; it holds {listed(sorted(found))}"
        )


def _sides(values: Values) -> pl.Series:
    names = pl.Series(
        [str(value) for value in (values.to_list() if isinstance(values, pl.Series) else values)], dtype=pl.String
    )
    return names.str.strip_chars().str.to_lowercase()


def _text_of(
    name: str, batch: Batch, texts: Sequence[str], row: int, role: str | None, columns: ColumnTokens | None
) -> tuple[pl.Series, int]:
    parts, replaced = [], 0
    for column in texts:
        part, found = as_texts(batch[column], name, column, row, role)
        parts.append(part)
        replaced += found
    if columns is None:
        return (parts[0] if len(parts) == 1 else join_fields(texts, parts)), replaced
    words = [columns.words(column, batch[column]) for column in columns.names]
    joined = join_fields([*texts, *columns.names], [*parts, *words])
    there = pl.select(pl.any_horizontal(part.is_not_null() for part in parts)).to_series()
    blank = pl.select(pl.concat_str([part.fill_null("") for part in parts]).str.contains(BLANK)).to_series()
    joined = joined.zip_with(~blank, pl.Series([""], dtype=pl.String))  # a column alone is no document
    return joined.zip_with(there, pl.Series([None], dtype=pl.String)), replaced


def _labels_of(
    name: str, values: Values, column: str, row: int, settings: SourceSettings, having: str | None
) -> pl.Series:
    if having is not None:
        return has_label(values, having, settings.label_separator, name, row)

    def wrong(number: int, value: Any) -> InputError:
        return InputError(
            f"{name}: row {number}: the label is a {type(value).__name__}; choose another column "
            "with --label COLUMN (tokensieve audit takes lists: an audit for each label)"
        )

    return as_names(values, wrong, row)


def _wrong(name: str, column: str, kind: str) -> Any:
    flag = {"group": "by", "environment": "environments"}.get(kind, kind)

    def wrong(number: int, value: Any) -> InputError:
        return InputError(
            f"{name}: the column {column!r} (--{flag}) holds a {type(value).__name__} in row {number}; choose another"
        )

    return wrong


def _spaces_around(values: Values) -> int:
    if isinstance(values, pl.Series):
        return int((values.str.strip_chars() != values).sum()) if values.dtype == pl.String else 0
    return sum(isinstance(value, str) and value.strip() != value and not value.isspace() for value in values)
