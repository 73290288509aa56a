"""Every row of a table in its order, for prediction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from tokensieve.errors import InputError
from tokensieve.read.column_tokens import ColumnTokens
from tokensieve.read.columns import text_columns
from tokensieve.read.fields import ColumnKind
from tokensieve.read.table import Batch, SourceTable
from tokensieve.read.texts import joined_texts
from tokensieve.read.values import as_list, cell_text, text_series


def read_rows(
    table: SourceTable,
    text: str | Sequence[str] | None = None,
    label: str | None = None,
    keep: Sequence[str] = (),
    columns: Mapping[str, ColumnKind] | None = None,
) -> pl.DataFrame:
    """Read every row of a table.

    The columns are "row", from 1; "text", null where a row has none; "label", likewise, if a label
    column is given; and "kept", a struct of the columns carried along, as text.

    Args:
        table: the source.
        text: the columns of the text; the only plausible one if None.
        label: the column of the label, if it is read.
        keep: columns to carry along.
        columns: other columns that the model reads as tokens, and how; missing ones are left out.
    """
    texts = text_columns(table, text)
    labels = [] if label is None else [label]
    for name in (*labels, *keep):
        if name in texts and len(texts) > 1:
            raise InputError(f"{table.name}: {name!r} is a text field and cannot also be kept")
    labels = [table.checked_column(name, "label") for name in labels]
    carried = [table.checked_column(name, "results") for name in keep]
    token_fields = {name: (name,) for name in columns or {} if name in table.columns}
    tokens = ColumnTokens(table, token_fields, columns)

    frames = list[pl.DataFrame]()
    row = 1
    columns_read = dict.fromkeys([*texts, *labels, *carried, *token_fields])
    for batch in table.read(list(columns_read)):
        values = {"text": joined_texts(table, batch, texts, row, columns=tokens).series}
        for name in labels:
            advice = "choose another column with --label COLUMN"
            values["label"] = table.as_names(batch[name], row, "the label is", advice)
        if carried:
            values["kept"] = _written(batch, carried)
        frames.append(pl.DataFrame(values).with_row_index("row", row))
        row += frames[-1].height
    if row == 1:
        raise InputError(f"{table.name} has no rows")
    return pl.concat(frames).with_columns(pl.col("row").cast(pl.Int64))


def _written(batch: Batch, names: Sequence[str]) -> pl.Series:
    """Columns as text, in a struct."""
    written = {name: text_series(map(cell_text, as_list(batch[name]))) for name in names}
    return pl.DataFrame(written).to_struct("kept")
