"""What a winner column says of each battle, as the fraction of a win that the first answer gets."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from tokensieve.arrays import Floats
from tokensieve.errors import InputError
from tokensieve.read.corpus import Outcome
from tokensieve.read.winners import LIKERT_SIZES, OutcomeReader, WinnerColumn

FRACTIONS = {  # of a battle that the first model wins
    Outcome.FIRST: 1.0,
    Outcome.SECOND: 0.0,
    Outcome.TIE: 0.5,
    Outcome.UNKNOWN: math.nan,
}
# Numbers of fewer values are codes, such as 0 and 1, or 1, 2 and 3 for a tie; `OutcomeReader` knows
# what they mean.
MIN_CONTINUOUS = 4
# columns of the frame that is read row by row; no source has columns of these names
MODEL_NAMES = ("\0first model", "\0second model")
TIE_NAME = "\0tie"


@dataclass(frozen=True, eq=False)
class Verdicts:
    """The cells of a winner column, and what stands beside them.

    Attributes:
        column: the winner column.
        cells: its values as names.
        models: the first and the second model of each row, which a cell may name.
        tie: the cells of a column that marks ties; None if there is none.
    """

    column: WinnerColumn
    cells: pl.Series
    models: tuple[pl.Series, pl.Series]
    tie: pl.Series | None = None


class Fractions(NamedTuple):
    """The fraction of a win that the first answer of each row gets; nan where nothing is said.

    `notes` say how numbers were read.
    """

    values: Floats
    notes: list[str]


def winner_fractions(verdicts: Verdicts) -> Fractions:
    """Translate a winner column: the fraction of each row's win that goes to either answer."""
    numbers = _as_numbers(verdicts.cells)
    if numbers is not None and len(set(numbers[~np.isnan(numbers)])) >= MIN_CONTINUOUS:
        return _continuous(verdicts.column, numbers)
    name = verdicts.column.name
    columns = {name: verdicts.cells}
    columns |= dict(zip(MODEL_NAMES, verdicts.models, strict=True))
    if verdicts.tie is not None:
        columns[TIE_NAME] = verdicts.tie
    reader = OutcomeReader(verdicts.column, MODEL_NAMES, tie=None)
    if verdicts.tie is not None:
        reader.tie = TIE_NAME
    reader.learn(set(verdicts.cells.drop_nulls()))
    rows = pl.DataFrame(columns)
    # each different row is read once
    numbered = rows.with_row_index("row", offset=1)
    distinct = numbered.group_by(rows.columns).agg(pl.min("row")).sort("row")
    fractions = [
        FRACTIONS[reader.outcome(values["row"], values)]
        for values in distinct.iter_rows(named=True)
    ]
    distinct = distinct.with_columns(fraction=pl.Series(fractions, dtype=pl.Float64))
    joined = rows.join(
        distinct, on=rows.columns, how="left", nulls_equal=True, maintain_order="left"
    )
    return Fractions(joined["fraction"].to_numpy(), reader.notes)


def contradictions(outcome: Floats, scored: Floats) -> Contradictions:
    """Count the rows in which scores contradict the winner, where neither sees a tie."""
    agreement = winner(outcome) * winner(scored)
    n_contradictions = int((agreement < 0).sum())
    return Contradictions(n_contradictions, n_contradictions + int((agreement > 0).sum()))


def winner(outcome: Floats) -> Floats:
    """The sign of each outcome: 1 where the first model wins, −1 where the second does, 0 for a
    tie, nan if unknown."""
    return np.asarray(np.sign(outcome - FRACTIONS[Outcome.TIE]))


class Contradictions(NamedTuple):
    """Rows in which the scores contradict the winner, and all rows that both decide."""

    n_contradictions: int
    n_scored: int


def score_fractions(first: pl.Series, second: pl.Series, lower_is_better: bool = False) -> Floats:
    """The fraction of a win that scores give to the first answer: 1, 0, or ½ for equal ones; nan
    without scores."""
    first_score = first.cast(pl.Float64, strict=False).fill_null(math.nan).to_numpy()
    second_score = second.cast(pl.Float64, strict=False).fill_null(math.nan).to_numpy()
    fractions: Floats = (np.sign(first_score - second_score) + 1) / 2
    return 1 - fractions if lower_is_better else fractions


def _as_numbers(cells: pl.Series) -> Floats | None:
    """The values as numbers, nan where missing; None if any is not a finite number."""
    numbers = cells.cast(pl.Float64, strict=False)
    if numbers.null_count() > cells.null_count():
        return None
    if not numbers.drop_nulls().is_finite().all():
        return None
    return numbers.fill_null(math.nan).to_numpy()


def _continuous(column: WinnerColumn, numbers: Floats) -> Fractions:
    """Translate the numbers of a scale, which its range identifies, into fractions of a win.

    Raises:
        InputError: the range is that of no scale whose middle is known.
    """
    low = float(np.nanmin(numbers))
    high = float(np.nanmax(numbers))
    if low >= 0 and high <= 1:
        return _chances(column, numbers)
    first, second = map(repr, column.answers)
    if low >= 1 and high <= 2:
        note = f"a winner of 1 means {first}, 2 means {second}, and what lies between a fraction"
        return Fractions(2.0 - numbers, [note])
    if low < 0:
        largest = max(-low, high)
        note = f"a winner of {-largest:g} means {first}, 0 a tie and {largest:g} {second}"
        return Fractions(0.5 - numbers / (2 * largest), [note])
    known = numbers[~np.isnan(numbers)]
    if low == 1 and high in LIKERT_SIZES and bool((known == np.floor(known)).all()):
        note = f"a winner of 1 means {first}, {(1 + high) / 2:g} a tie and {high:g} {second}"
        return Fractions((high - numbers) / (high - 1), [note])
    raise InputError(
        f"{column.source}: column {column.name!r} contains numbers from {low:g} to {high:g}, whose "
        "middle is unclear; write them from 0 to 1, from 1 to 2, or with 0 in the middle"
    )


def _chances(column: WinnerColumn, numbers: Floats) -> Fractions:
    """Chances from 0 to 1, of the answer that the column's name mentions."""
    if column.side is None:
        raise InputError(
            f"{column.source}: {column.name!r} looks like a win probability, but it is unclear for "
            f"which answer; rename it, for example p_{_last_word(column.answers[0])}_wins"
        )
    if column.side == Outcome.SECOND:
        return Fractions(1.0 - numbers, [])
    return Fractions(numbers, [])


def _last_word(name: str) -> str:
    return re.sub(r".*[_\W]", "", name.lower())
