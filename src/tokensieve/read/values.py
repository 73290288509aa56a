"""The content of a cell: nothing, a label, or text."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np
import polars as pl

from tokensieve.arrays import Floats, Ints
from tokensieve.errors import InputError

SURROGATE = re.compile("[\ud800-\udfff]")


def text_series(texts: Iterable[str | None] | pl.Series) -> pl.Series:
    """Any sequence of strings (None: a missing one) as a Polars series; lone surrogates, which UTF-8 cannot hold, become U+FFFD."""
    if isinstance(texts, pl.Series):
        return texts
    return pl.Series([text and SURROGATE.sub("\ufffd", text) for text in texts], dtype=pl.String)


def missing(value: Any) -> bool:
    """Whether a value means "missing": None, NaN, pandas' NA or NaT."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, Real) and not isinstance(value, Integral) and math.isnan(value)


def only_entry(value: Any) -> Any:
    """The only entry of a list, possibly nested, as annotation tools write a single choice; None if the list is empty."""
    while isinstance(value, list | tuple) and len(value) < 2:
        value = value[0] if value else None
    return value


def label_name(value: Any) -> str | None:
    """The label as text without white space around it; None where it is missing. A list of several, an object or bytes is a
    TypeError."""
    value = only_entry(value)
    if isinstance(value, str):
        value = value.strip()
        if re.fullmatch(r"-?[0-9]{1,18}\.0+", value):
            return str(int(value.partition(".")[0]))
        return value or None
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(
        value, Integral
    ):  # before anything that would make a float of it: whole numbers have any size
        try:
            return str(int(value))
        except ValueError:  # Python refuses to write more than 4,300 digits
            return hex(int(value))
    if missing(value):
        return None
    if isinstance(value, Real) and float(value).is_integer():
        return str(int(float(value)))
    if isinstance(value, list | tuple | dict | set | bytes | np.ndarray | pl.Series):
        raise TypeError
    return label_name(str(value))


def listed(names: Iterable[str]) -> str:
    """Up to twenty names, quoted and shortened, for a message of one line."""
    names = [n if len(n) <= 40 else n[:39] + "…" for n in names]
    return ", ".join(map(repr, names[:20])) + (
        f" and {len(names) - 20} more" if len(names) > 20 else ""
    )


def checked_weights(
    values: object, n: int, what: str = "sample_weight", rows: Ints | None = None
) -> Floats:
    """The training weight of each document, shape (n,); only the ratios matter.

    `values` are n numbers from 0 to 1e100, not all of them 0, or one for all; anything else is an `InputError`. For its
    message, `what` names the values and `rows` has the documents' rows in their source.
    """
    try:
        weights = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{what} must be numbers, one for each document") from None
    weights = np.full(n, float(weights)) if weights.ndim == 0 else weights
    if weights.shape != (n,):
        given = f"{len(weights):,}" if weights.ndim == 1 else f"an array of shape {weights.shape}"
        raise InputError(f"{what}: {given} for {n:,} documents: pass one number for each of them")
    wrong = np.flatnonzero(~((weights >= 0) & (weights <= 1e100)))  # sums and products stay finite
    if len(wrong):
        place = f"place {wrong[0]}" if rows is None else f"row {rows[wrong[0]]}"
        raise InputError(
            f"{what} contains {weights[wrong[0]]:g} in {place}: a weight is a number from 0 to 1e100"
        )
    if not weights.any():
        raise InputError(
            f"{what}: every weight is zero, so there is nothing to learn from: set a weight for some"
        )
    return weights
