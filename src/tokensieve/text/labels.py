"""Labels as text: one name for each whatever its type, their order, and what grouping and dropping make of them."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

import numpy as np
import polars as pl

from tokensieve.errors import InputError


def missing(value: Any) -> bool:
    """Whether it is one of the values that stand for none: None, NaN, pandas' NA and NaT."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, Real) and not isinstance(value, Integral) and math.isnan(value)


def label_name(value: Any) -> str | None:
    """The label as text without white space around it; None where it is missing. A list, an object or bytes is a TypeError."""
    if isinstance(value, str):
        value = value.strip()
        if re.fullmatch(r"-?[0-9]{1,18}\.0+", value):
            return str(int(value.partition(".")[0]))
        return value or None
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, Integral):  # before anything that would make a float of it: whole numbers have any size
        return _digits(int(value))
    if missing(value):
        return None
    if isinstance(value, Real) and float(value).is_integer():
        return _digits(int(float(value)))
    if isinstance(value, list | tuple | dict | set | bytes | np.ndarray | pl.Series):
        raise TypeError
    return label_name(str(value))


def _digits(number: int) -> str:
    try:
        return str(number)
    except ValueError:  # Python refuses to write more than 4,300 digits
        return hex(number)


def in_order(name: str) -> tuple[bool, float, str]:
    """Numbers first and by size, then text."""
    try:
        number = float(name)
    except ValueError:
        number = math.nan
    return (False, number, name) if math.isfinite(number) else (True, 0.0, name)


def classes_of(
    sizes: Mapping[str, int], column: str, single: Mapping[str, tuple[str, int]] | None = None
) -> tuple[str, ...]:
    """The classes in order, numbers by size first.

    Args:
        sizes: label → its documents.
        column: what to call the label column in messages.
        single: label of one document → (that label as it was before grouping, the row), for the message.

    Raises:
        InputError: they cannot be classes: fewer than two, more than 50, or one with a single document.
    """
    names, n = tuple(sorted(sizes, key=in_order)), sum(sizes.values())
    if len(names) > 50:
        numbers = not any(in_order(name)[0] for name in names)
        looks = "continuous numbers" if numbers else "free text or an identifier"
        raise InputError(
            f"{column} has {len(names):,} different values in {n:,} documents, which looks like {looks}; "
            "choose another with --label COLUMN, or join values with --group"
        )
    if len(names) < 2:
        raise InputError(
            f"{column} has one value only, {names[0]!r}, in all {n:,} documents; two classes are needed: "
            "choose another with --label COLUMN, or check --group and --drop"
        )
    alone = [(single or {}).get(name, (name, 0)) for name in names if sizes[name] == 1]
    if alone:
        (name, row), *more = sorted(alone, key=lambda found: found[1])
        others = f" ({listed(other for other, _ in more)} too)" if more else ""
        frequent = [other for other in names if sizes[other] > 1]
        near = get_close_matches(name.lower(), [other.lower() for other in frequent], n=1)
        partner = next((other for other in frequent if near and other.lower() == near[0]), None)
        merge = f" or merge it: --group {shlex.quote(f'{partner}={partner},{name}')}" if partner else ""
        raise InputError(
            f"{column}: {name!r} occurs once{f' (row {row})' * bool(row)}{others}; each class needs two documents. "
            f"Leave it out with --drop {shlex.quote(name)}{merge}"
        )
    return names


def listed(names: Iterable[str]) -> str:
    """Up to twenty names, quoted and shortened, for a message of one line."""
    names = [n if len(n) <= 40 else n[:39] + "…" for n in names]
    return ", ".join(map(repr, names[:20])) + (f" and {len(names) - 20} more" if len(names) > 20 else "")


def destinations(group: Mapping[str, Sequence[str]], drop: Sequence[str]) -> dict[str, str | None]:
    """Original label → final label, or None where its documents are left out.

    Raises:
        InputError: labels are not given as a list, or one label is named for two ends.
    """
    asked = [*group.items(), (None, drop)]
    for new, names in asked:
        if isinstance(names, str):
            raise InputError(f"{'drop' if new is None else f'group {new!r}'}: give a list of labels, not {names!r}")
    result: dict[str, str | None] = {}
    for name, new in [(label_name(name) or "", new) for new, names in asked for name in names]:
        if result.setdefault(name, new) != new:
            raise InputError(f"the label {name!r} is grouped or dropped in two ways; name it once")
    return result
