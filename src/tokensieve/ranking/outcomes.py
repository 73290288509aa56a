"""What a winner column says of each battle, as the fraction of a win that the first answer gets."""

from __future__ import annotations

import math
import re

import numpy as np
import polars as pl

from tokensieve.arrays import Floats
from tokensieve.errors import InputError
from tokensieve.read.corpus import Outcome
from tokensieve.read.winners import OutcomeReader, WinnerColumn

FRACTIONS = {
    Outcome.FIRST: 1.0,
    Outcome.SECOND: 0.0,
    Outcome.TIE: 0.5,
    Outcome.UNKNOWN: math.nan,
}
# Numbers of fewer values are codes, such as 0 and 1, or 1, 2 and 3 for a tie; `OutcomeReader` knows
# what they mean.
MIN_CONTINUOUS = 4


def winner_fractions(
    source: str,
    column: str,
    cells: pl.Series,
    answers: tuple[str, ...],
    models: tuple[pl.Series, pl.Series],
) -> Floats:
    """The fraction of a win that the first answer of each row gets; nan where nothing is said.

    Args:
        source: for messages.
        column: the winner column.
        cells: its values as names.
        answers: the columns of the answers.
        models: the first and the second model of each row, which a cell may name.
    """
    winner = WinnerColumn.of(source, column, answers)
    numbers = _as_numbers(cells)
    if numbers is not None and len(set(numbers[~np.isnan(numbers)])) >= MIN_CONTINUOUS:
        return _continuous(winner, numbers)
    sides = ("first model", "second model")
    reader = OutcomeReader(winner, sides, tie=None)
    reader.learn(set(cells.drop_nulls()))
    rows = pl.DataFrame({column: cells, sides[0]: models[0], sides[1]: models[1]})
    # each different row is read once
    distinct = rows.with_row_index("row", offset=1).group_by(rows.columns).agg(pl.min("row"))
    fractions = [
        FRACTIONS[reader.outcome(values["row"], values)]
        for values in distinct.iter_rows(named=True)
    ]
    distinct = distinct.with_columns(fraction=pl.Series(fractions, dtype=pl.Float64))
    joined = rows.join(
        distinct, on=rows.columns, how="left", nulls_equal=True, maintain_order="left"
    )
    return joined["fraction"].to_numpy()


def score_fractions(first: pl.Series, second: pl.Series) -> Floats:
    """1 where the first score is higher, 0 where the second is, ½ for equal ones; nan for none."""
    first_score = first.cast(pl.Float64, strict=False).fill_null(math.nan).to_numpy()
    second_score = second.cast(pl.Float64, strict=False).fill_null(math.nan).to_numpy()
    fractions: Floats = (np.sign(first_score - second_score) + 1) / 2
    return fractions


def _as_numbers(cells: pl.Series) -> Floats | None:
    """The values as numbers, nan where missing; None if any is not a finite number."""
    numbers = cells.cast(pl.Float64, strict=False)
    if numbers.null_count() > cells.null_count():
        return None
    if not numbers.drop_nulls().is_finite().all():
        return None
    return numbers.fill_null(math.nan).to_numpy()


def _continuous(column: WinnerColumn, numbers: Floats) -> Floats:
    """What the numbers of a continuous scale mean, by their range.

    Raises:
        InputError: the range is that of no scale whose middle is known.
    """
    low = float(np.nanmin(numbers))
    high = float(np.nanmax(numbers))
    if low >= 0 and high <= 1:
        if column.side == Outcome.SECOND:
            return 1.0 - numbers
        if column.side == Outcome.FIRST:
            return numbers
        raise InputError(
            f"{column.source}: {column.name!r} looks like a win probability, but it is unclear for "
            f"which answer; rename it, for example p_{_last_word(column.answers[0])}_wins"
        )
    if low >= 1 and high <= 2:
        return 2.0 - numbers
    if low < 0:
        largest = max(-low, high)
        return 0.5 - numbers / (2 * largest)
    raise InputError(
        f"{column.source}: column {column.name!r} contains numbers from {low:g} to {high:g}, whose "
        "middle is unclear; write them from 0 to 1, from 1 to 2, or with 0 in the middle"
    )


def _last_word(name: str) -> str:
    return re.sub(r".*[_\W]", "", name.lower())
