"""What a winner column says of each battle, as the fraction of a win that the first answer gets."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np

from tokensieve.arrays import Floats
from tokensieve.errors import InputError
from tokensieve.read.corpus import Outcome
from tokensieve.read.values import label_name
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
    cells: Sequence[object],
    answers: tuple[str, ...],
    models: tuple[str, ...],
    names_of_models: Sequence[Sequence[str | None]],
) -> Floats:
    """The fraction of a win that the first answer of each row gets; nan where nothing is said.

    Args:
        source: for messages.
        column: the winner column.
        cells: its values.
        answers, models: the columns of the answers and of the models.
        names_of_models: the first and the second model of each row, which a cell may name.
    """
    winner = WinnerColumn.of(source, column, answers)
    names = [_name(source, column, row, cell) for row, cell in enumerate(cells, start=1)]
    numbers = _as_numbers(names)
    if numbers is not None and len(set(numbers[~np.isnan(numbers)])) >= MIN_CONTINUOUS:
        return _continuous(winner, numbers)
    reader = OutcomeReader(winner, models, tie=None)
    reader.learn({name for name in names if name is not None})
    fractions = np.empty(len(names))
    for i, name in enumerate(names):
        values = {column: name, **dict(zip(models, names_of_models[i], strict=True))}
        fractions[i] = FRACTIONS[reader.outcome(i + 1, values)]
    return fractions


def score_fractions(first: Sequence[object], second: Sequence[object]) -> Floats:
    """1 where the first score is higher, 0 where the second is, ½ for equal ones; nan for none."""
    fractions = np.full(len(first), math.nan)
    for i, (one, other) in enumerate(zip(first, second, strict=True)):
        numbers = _as_numbers([label_name(one), label_name(other)])
        if numbers is not None and not np.isnan(numbers).any():
            fractions[i] = (np.sign(numbers[0] - numbers[1]) + 1) / 2
    return fractions


def _name(source: str, column: str, row: int, cell: object) -> str | None:
    try:
        return label_name(cell)
    except TypeError:
        raise InputError(
            f"{source}: row {row}: column {column!r} contains a {type(cell).__name__}, which does "
            "not say which answer won; choose another with --winner"
        ) from None


def _as_numbers(names: Sequence[str | None]) -> Floats | None:
    """The values as numbers, nan where missing; None if any is not a number."""
    numbers = np.full(len(names), math.nan)
    for i, name in enumerate(names):
        if name is None:
            continue
        try:
            numbers[i] = float(name)
        except ValueError:
            return None
        if not math.isfinite(numbers[i]):
            return None
    return numbers


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
