"""The text of each row: one column, or several fields as one text."""

from __future__ import annotations

from collections.abc import Sequence

from tokensieve.read.column_tokens import ColumnTokens
from tokensieve.read.fields import join_fields
from tokensieve.read.table import Batch, SourceTable, Texts


def joined_texts(
    table: SourceTable,
    batch: Batch,
    texts: Sequence[str],
    first_row: int,
    role: str | None = None,
    columns: ColumnTokens | None = None,
) -> Texts:
    """The text of each row of a batch; the value of another column alone is not a document.

    Args:
        table: the source.
        batch: its values.
        texts: the columns of the text.
        first_row: the row of the first value, for messages.
        role: of conversations read only the messages of this role.
        columns: those whose values are fields of the text, behind the others.
    """
    fields = [table.as_texts(batch[column], column, first_row, role) for column in texts]
    parts = [part.series for part in fields]
    names = () if columns is None else columns.names
    if columns is not None:
        parts += [columns.words(name, batch[name]) for name in names]
    joined = parts[0] if len(parts) == 1 else join_fields([*texts, *names], parts, len(texts))
    n_replaced = sum(part.n_replaced for part in fields)
    return Texts(joined, n_replaced, sum(part.n_numbers for part in fields))
