"""Documents of several fields as one text: each part follows the mark of its field, as in `⟦title⟧ Refund ⟦body⟧ I paid`."""

from __future__ import annotations

import re
from collections.abc import Sequence


def mark(field: str) -> str:
    """What precedes a part of this field."""
    return f"⟦{field}⟧"


def join_fields(fields: Sequence[str], parts: Sequence[str | None]) -> str | None:
    """One text of all parts; None where all are missing, and white space only where all are that.

    A mark inside a part is no mark: its brackets become [ and ].

    Args:
        fields: the names.
        parts: the text of each, or None.
    """
    if all(part is None for part in parts):
        return None
    whole = "".join(part or "" for part in parts)
    if not whole or whole.isspace():
        return whole
    inside = _marks(fields)
    clean = [inside.sub(lambda found: f"[{found[1]}]", part or "") for part in parts]
    return "\n".join(f"{mark(name)} {part}" for name, part in zip(fields, clean, strict=True))


def split_fields(fields: Sequence[str], text: str) -> list[tuple[str, int, int]]:
    """The parts of a text: (field, start, end). What precedes the first mark belongs to the first field."""
    found = [(fields[0], 0, 0), *((m[1], m.start(), m.end()) for m in _marks(fields).finditer(text))]
    ends = [*(start for _, start, _ in found[1:]), len(text)]
    return [(name, end, stop) for (name, _, end), stop in zip(found, ends, strict=True)]


def _marks(fields: Sequence[str]) -> re.Pattern[str]:
    return re.compile("⟦(" + "|".join(map(re.escape, fields)) + ")⟧")
