"""Rows of a table → usable documents in one frame, and a count of every row that cannot be used."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tokensieve.errors import InputError
from tokensieve.text.columns import has_label, text_columns
from tokensieve.text.counts import Floats, Ints
from tokensieve.text.formatting import BLANK, join_fields
from tokensieve.text.labels import listed
from tokensieve.text.settings import SourceSettings
from tokensieve.text.spill import DIGEST, StoredTexts, TextWriter
from tokensieve.text.table import Batch, SourceTable, Values, as_names, as_texts
from tokensieve.text.tokenizers import text_series

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


FEW = 20  # different numbers that are classes of their own; more are divided into quarters
_DATE = r"^\s*(\d{4})-(\d{1,2})-\d{1,2}([T ].*)?\s*$"


class ColumnTokens:
    """How the values of some columns become words.

    Args:
        table: of any source.
        names: the columns.

    Attributes:
        names: the columns.
        notes: which were divided, and where.

    Raises:
        InputError: a column is not there, or holds lists or the like.
    """

    def __init__(self, table: SourceTable, names: Sequence[str]) -> None:
        self.names = tuple(table.position(name, "columns") for name in names)
        self._table, self._ends, self._dates = table.name, dict[str, list[float]](), set[str]()
        self.notes: list[str] = []
        batches = list(table.read(self.names)) if self.names else []
        for name in self.names:
            values = pl.concat([self._as_text(name, batch[name]) for batch in batches]).drop_nulls()
            numbers = values.cast(pl.Float64, strict=False)
            if len(values) and values.str.contains(_DATE).mean() == 1:
                self._dates.add(name)
                self.notes.append(f"column {name!r}: by month")
            elif numbers.null_count() == 0 and numbers.n_unique() > FEW:
                ends = [float(numbers.quantile(q, "lower") or 0.0) for q in (0.25, 0.5, 0.75)]
                self._ends[name] = ends
                shown = ", ".join(f"q{i} up to {end:g}" for i, end in enumerate(ends, 1))
                self.notes.append(f"column {name!r}: in quarters, {shown}")

    def words(self, name: str, values: Values) -> pl.Series:
        """One word for each value; null where there is none."""
        text = self._as_text(name, values)
        if name in self._dates:
            return text.str.replace(_DATE, "${1}_${2}")
        if name in self._ends:
            number = text.cast(pl.Float64, strict=False)
            quarter = sum(((number > end).cast(pl.Int64) for end in self._ends[name]), pl.Series([1] * len(number)))
            return (
                pl.select(pl.format("q{}", quarter))
                .to_series()
                .zip_with(text.is_not_null(), pl.Series([None], dtype=pl.String))
            )
        return text.str.replace_all(r"[^\w]+", "_").str.strip_chars("_")

    def _as_text(self, name: str, values: Values) -> pl.Series:
        def wrong(row: int, value: Any) -> InputError:
            return InputError(
                f"{self._table}: row {row}: column {name!r} (--columns) holds a {type(value).__name__}; leave it out"
            )

        return as_names(values, wrong, 1)


def is_of_column(token: str, columns: Sequence[str]) -> bool:
    """Whether a token is a value of one of the columns, or what it looks like."""
    return any(re.match(re.escape(name) + ":", token) for name in columns)


IDS = ("id", "_id", "uid", "uuid")


def read_rows(
    table: SourceTable,
    text: str | Sequence[str] | None = None,
    label: str | None = None,
    keep: Sequence[str] = (),
    role: str | None = None,
) -> tuple[pl.DataFrame, int]:
    """Every row of a table; and how many texts had lone surrogates, each of which is now U+FFFD.

    Args:
        table: of any source.
        text: the column of the texts, or several fields; guessed when there is one good candidate.
        label: the column of the labels, or None.
        keep: columns to carry along.
        role: of chat messages, those of this role.

    Returns:
        Columns "row", from 1; "text", null where a row has none; "label", null where a row has none, if a label column is given;
        and "kept", a struct of the columns carried along, as text.

    Raises:
        InputError: there are no rows, a column is not there, or a row's text is no text or its label a list or the like.
    """
    names = text_columns(table, text)
    for name in (*([label] if label else []), *keep):
        if name in names and len(names) > 1:
            raise InputError(f"{table.name}: {name!r} is a field of the text and cannot be kept beside it")
    labels = [] if label is None else [table.position(label, "label")]
    kept = [table.position(name, "results") for name in keep]
    frames, replaced, row = [], 0, 1

    def wrong(number: int, value: Any) -> InputError:
        return InputError(
            f"{table.name}: row {number}: the label is a {type(value).__name__}; choose another column with --label COLUMN"
        )

    for batch in table.read([*names, *labels, *kept]):
        texts = []
        for name in names:
            part, found = as_texts(batch[name], table.name, name, row, role)
            texts.append(part)
            replaced += found
        columns = {"text": texts[0] if len(names) == 1 else join_fields(names, texts)}
        if labels:
            columns["label"] = as_names(batch[labels[0]], wrong, row)
        beside = pl.DataFrame({name: _written(batch[name]) for name in kept})
        if kept:
            columns["kept"] = beside.to_struct("kept")
        frames.append(pl.DataFrame(columns).with_row_index("row", row))
        row += len(frames[-1])
    if row == 1:
        raise InputError(f"{table.name}: has no rows")
    return pl.concat(frames).with_columns(pl.col("row").cast(pl.Int64)), replaced


def _written(values: Values) -> pl.Series:
    """Values of any kind as text; those that are no single value as JSON."""
    if isinstance(values, pl.Series):
        if values.dtype == pl.String:
            return values
        values = values.to_list()
    written: list[str | None] = []
    for value in values:
        if value is None or isinstance(value, str):
            written.append(value)
        else:
            nested = isinstance(value, list | dict)
            written.append(json.dumps(value, ensure_ascii=False, default=str) if nested else str(value))
    return text_series(written)


def checked_weights(values: Any, documents: int, what: str = "sample_weight") -> Floats:
    """One number for each document, shape (n,).

    Args:
        values: n numbers, or one for all of them.
        documents: n.
        what: to call them in messages.

    Raises:
        InputError: there are more or fewer than n, one is no finite number of at least 0, or all are 0.
    """
    if isinstance(values, pl.Series):
        values = values.to_numpy()
    try:
        weights = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{what}: must be numbers, one for each document") from None
    if weights.ndim == 0:
        weights = np.full(documents, float(weights))
    if weights.shape != (documents,):
        given = f"{len(weights):,}" if weights.ndim == 1 else f"an array of shape {weights.shape}"
        raise InputError(f"{what}: {given} for {documents:,} documents: give one number for each of them")
    _check(weights, np.arange(documents), what, "place")
    return weights


def weights_of_column(values: pl.Series, rows: Ints, where: str) -> Floats:
    """The numbers in a column that was read as text.

    Args:
        values: String with nulls, n.
        rows: of the documents in their source, shape (n,).
        where: the source and the column, for messages.

    Raises:
        InputError: one is missing or no finite number of at least 0, or all are 0.
    """
    weights = values.str.strip_chars().cast(pl.Float64, strict=False)
    wrong = weights.is_null().arg_true()
    if len(wrong):
        given = values[wrong[0]]
        held = "no number" if given is None else repr(given[:40])
        raise InputError(f"{where} holds {held} in row {rows[wrong[0]]}: give every document a number of at least 0")
    _check(weights.to_numpy(), rows, where, "row")
    return weights.to_numpy()


def _check(weights: Floats, places: NDArray[Any], where: str, place: str) -> None:
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(wrong):
        raise InputError(
            f"{where} holds {weights[wrong[0]]:g} in {place} {places[wrong[0]]}: a weight is a finite number of at least 0"
        )
    if not weights.any():
        raise InputError(
            f"{where}: every weight is zero, so there is nothing to learn from: give some documents a weight"
        )
