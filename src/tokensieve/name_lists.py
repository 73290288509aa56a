"""Lists of names in one option, as `--pairs chosen,rejected`: commas separate, quotes enclose."""

from __future__ import annotations

import re
from collections.abc import Iterable

# a name in double quotes, in which "" is one quote, or anything up to the next comma
_NAME = re.compile(r'\s*(?:"((?:[^"]|"")*)"\s*(?=,|$)|([^,]*))(?:,|$)')


def split_names(written: str) -> list[str]:
    """The names in a list; one that contains a comma stands in double quotes.

    White space around a name without quotes is not part of it, and an empty name is none.
    """
    names = []
    end = 0
    while end < len(written):
        match = _NAME.match(written, end)
        assert match is not None, "anything up to a comma is a name"
        quoted, bare = match.groups()
        name = bare.strip() if quoted is None else quoted.replace('""', '"')
        if name:
            names.append(name)
        end = match.end()
    return names


def joined_names(names: Iterable[object]) -> str:
    """The names as one list, from which `split_names` reads the same names."""
    return ",".join(map(_written, map(str, names)))


def split_group(written: str) -> tuple[str, list[str]] | None:
    """The new label and the old ones of NEW=OLD,OLD; None if the text has another form."""
    quoted = re.match(r'"((?:[^"]|"")*)"=', written)
    if quoted:
        new = quoted[1].replace('""', '"')
        old = written[quoted.end() :]
    else:
        new, _, old = written.partition("=")
    names = split_names(old)
    return (new, names) if new and names else None


def joined_group(new: str, old: Iterable[object]) -> str:
    """NEW=OLD,OLD, from which `split_group` reads the same labels."""
    name = f'"{_doubled(new)}"' if "=" in new else _written(new)
    return f"{name}={joined_names(old)}"


def _written(name: str) -> str:
    """A name as a list takes it: in quotes where it could be read as something else."""
    if "," in name or name.startswith('"') or name != name.strip():
        return f'"{_doubled(name)}"'
    return name


def _doubled(name: str) -> str:
    return name.replace('"', '""')
