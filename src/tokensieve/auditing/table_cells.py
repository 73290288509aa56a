"""Rows of a table of tokens as the cells of a report's table."""

from __future__ import annotations

import polars as pl

from tokensieve.report.blocks import Column, Mark
from tokensieve.task.agreement import QUADRANTS

# how a page names the quadrants, in their order, and marks them
MARKS: dict[str, Mark] = {
    "predictive, high attention": "full",
    "predictive, low attention": "open",
    "high attention, no evidence": "alarm",
    "neither": "none",
    "too rare to tell": "dotted",
}
TOKEN_COLUMNS = (
    Column("Token", "token"),
    Column("Effect per 1,000 tokens", "interval", bar=True, unit="with 95% CI"),
    Column("Documents", "count"),
    Column("Posterior difference", "interval", unit="with 95% CI"),
    Column("Attention", "plain", digits=1, unit="1 is average", extra=True),
    Column("Data and model", "text", marks=MARKS),
)
_EFFECT = ("effect", "effect_low", "effect_high")
_POSTERIOR = ("posterior_difference", "posterior_low", "posterior_high")


def token_rows(tokens: pl.DataFrame) -> list[tuple[object, ...]]:
    """Rows of `Audit.tokens` under `TOKEN_COLUMNS`."""
    names = dict(zip(QUADRANTS, MARKS, strict=True))
    per_1000 = tokens.with_columns(pl.col(_EFFECT) * 1000, pl.col("quadrant").replace(names))
    return cells_of(per_1000, "token", _EFFECT, "documents", _POSTERIOR, "attention", "quadrant")


def cells_of(table: pl.DataFrame, *columns: str | tuple[str, ...]) -> list[tuple[object, ...]]:
    """The rows of a table, cell by cell; several columns may make up one cell."""
    rows = []
    for row in table.iter_rows(named=True):
        cells = [
            row[column] if isinstance(column, str) else tuple(row[name] for name in column)
            for column in columns
        ]
        rows.append(tuple(cells))
    return rows
