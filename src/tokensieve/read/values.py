"""The content of a cell: nothing, a label, or text."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from tokensieve.arrays import Floats, Ints
from tokensieve.errors import InputError, one_line

Values: TypeAlias = "pl.Series | list[Any]"  # a series if typed, a list if types are mixed

SURROGATE = re.compile("[\ud800-\udfff]")
DIGEST_BYTES = 12  # among 10⁹ texts, two different ones share a digest with probability 10⁻¹¹
MAX_LISTED = 5  # values in a message
MAX_LISTED_COLUMNS = 20  # so that a person finds the one that is meant
MAX_NAME_LENGTH = 40  # characters of a name in a message
MAX_WEIGHT = 1e100  # sums and products of weights stay finite


def as_list(values: Values) -> list[Any]:
    """Values as Python objects; dates that Python cannot hold become their numbers."""
    if not isinstance(values, pl.Series):
        return values
    if values.dtype.is_temporal() or values.dtype.is_nested():
        with suppress(InputError), one_line("dates"):
            return values.to_list()
        return values.to_physical().to_list()
    return values.to_list()


def text_series(texts: Iterable[str | None] | pl.Series) -> pl.Series:
    """Strings with None for missing ones as a series; lone surrogates become U+FFFD."""
    if isinstance(texts, pl.Series):
        return texts
    return pl.Series([text and SURROGATE.sub("\ufffd", text) for text in texts], dtype=pl.String)


def text_digests(texts: Iterable[str]) -> pl.Series:
    """The digests by which texts are compared: BLAKE2b of their UTF-8."""
    digests = [hashlib.blake2b(text.encode(), digest_size=DIGEST_BYTES).digest() for text in texts]
    return pl.Series(digests, dtype=pl.Binary)


def missing(value: Any) -> bool:
    """Whether a value means "missing": None, NaN, pandas' NA or NaT."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, Real) and not isinstance(value, Integral) and math.isnan(value)


def only_entry(value: Any) -> Any:
    """The only entry of a list, possibly nested, as annotation tools write a single choice.

    None if the list is empty; any other value, and a list of several entries, as it is.
    """
    while isinstance(value, list | tuple) and len(value) < 2:
        value = value[0] if value else None
    return value


def label_name(value: Any) -> str | None:
    """The label as text without white space around it; None where it is missing.

    Raises:
        TypeError: the value is a list of several, an object or bytes.
    """
    value = only_entry(value)
    if isinstance(value, str):
        value = value.strip()
        if re.fullmatch(r"-?[0-9]{1,18}\.0+", value):  # "4.0" is the label "4"
            return str(int(value.partition(".")[0]))
        return value or None
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, Integral):  # before floats: whole numbers may have any size
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


def label_names(values: Iterable[object]) -> Iterator[str]:
    """The labels of the values that are single and not missing."""
    for value in values:
        with suppress(TypeError):
            name = label_name(value)
            if name is not None:
                yield name


def cell_text(value: object) -> str | None:
    """A value of any kind as text, to be written to a file; lists and objects as JSON."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def listed(names: Iterable[str], most: int = MAX_LISTED) -> str:
    """The first names, quoted and shortened, for a message of one line."""
    shortened = []
    for name in names:
        is_long = len(name) > MAX_NAME_LENGTH
        shortened.append(name[: MAX_NAME_LENGTH - 1] + "…" if is_long else name)
    n_more = len(shortened) - most
    ending = f" and {n_more} more" if n_more > 0 else ""
    return ", ".join(map(repr, shortened[:most])) + ending


def checked_weights(
    values: object, n: int, what: str = "sample_weight", rows: Ints | None = None
) -> Floats:
    """The training weight of each document, shape (n,); only the ratios matter.

    Args:
        values: n numbers from 0 to 1e100, not all of them 0, or one number for all.
        n: the number of documents.
        what: names the values in messages.
        rows: the documents' rows in their source, for messages.

    Raises:
        InputError: the values are anything else.
    """
    try:
        weights = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{what} must be numbers, one for each document") from None
    if weights.ndim == 0:
        weights = np.full(n, float(weights))
    if weights.shape != (n,):
        shape_text = (
            f"{len(weights):,}" if weights.ndim == 1 else f"an array of shape {weights.shape}"
        )
        raise InputError(
            f"{what}: {shape_text} for {n:,} documents: pass one number for each of them"
        )
    is_valid = (weights >= 0) & (weights <= MAX_WEIGHT)  # False for NaN
    invalid = np.flatnonzero(~is_valid)
    if len(invalid):
        first = invalid[0]
        place = f"place {first}" if rows is None else f"row {rows[first]}"
        raise InputError(
            f"{what} contains {weights[first]:g} in {place}: a weight is a number from 0 to 1e100"
        )
    if not weights.any():
        raise InputError(
            f"{what}: every weight is zero, so there is nothing to learn from: "
            "set a weight for some documents"
        )
    return weights
