"""What documents weigh in training: numbers that are checked once, of which only the ratios matter."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tokensieve.errors import InputError
from tokensieve.text.counts import Floats, Ints


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
