"""Rows of a source for prediction: every row in its order, with what shall stay beside the predictions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import polars as pl

from tokensieve.errors import InputError
from tokensieve.text.columns import text_columns
from tokensieve.text.fields import join_fields
from tokensieve.text.table import SourceTable, Values, as_names, as_texts
from tokensieve.text.tokenizers import text_series

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
