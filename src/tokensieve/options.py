"""Options of commands as fields of frozen dataclasses: one definition for the Python signature and
the command line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any


def option(
    default: Any,
    help: str,
    *,
    flag: str | None = None,
    metavar: str | None = None,
    low: float | None = None,
    high: float | None = None,
    default_text: str | None = None,
    parse: Callable[[Any], Any] | None = None,
) -> Any:
    """A field of a settings dataclass that is also an option of a command.

    Args:
        default: the default value in Python; a bool makes a flag with --NAME/--no-NAME.
        help: one line for `--help`.
        flag: the option's name, such as "--ngrams"; made from the field's name if None; "" for a
            field that only Python sets.
        metavar: what stands for the value in `--help`.
        low, high: of a number.
        default_text: the default as `--help` shows it, where it is not the value itself.
        parse: from what the command line gives (a string, or for a field of a sequence or mapping a
            list of them) to the value.
    """
    notes = {
        "help": help,
        "flag": flag,
        "metavar": metavar,
        "low": low,
        "high": high,
        "default_text": default_text,
    }
    return field(default=default, metadata={"option": notes | {"parse": parse}})
