"""Which column holds the text, which the label: as told, else by well-known names, else by how the values look."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from tokensieve.errors import InputError
from tokensieve.text.labels import listed
from tokensieve.text.table import Row, Table

TEXT_NAMES = ("text", "review", "sentence", "document", "content", "body", "message", "comment")
LABEL_NAMES = ("label", "labels", "class", "sentiment", "category", "target", "stars", "rating", "y")
SAMPLE_ROWS, SAMPLE_CHARACTERS = 200, 1_000_000


def choose_columns(table: Table, text: str | None, label: str | None, split: str | None) -> list[int]:
    """Positions of the text, the label and, if asked for, the split column."""
    sample = _sample(table)
    wanted = {"text": text, "label": label, "split": split}
    given = [None if name is None else position(table, name, what) for what, name in wanted.items()]
    open_columns = [c for i, c in enumerate(table.columns) if i not in given]
    text_at = given[0] if given[0] is not None else _guess_text(table, sample, open_columns, given[1] is None)
    others = [c for c in open_columns if c != table.columns[text_at]]
    label_at = given[1] if given[1] is not None else _guess_label(table, sample, others)
    chosen = [text_at, label_at] if given[2] is None else [text_at, label_at, given[2]]
    if len(set(chosen)) < len(chosen):
        raise InputError(f"{table.name}: text, label and split must be different columns")
    return chosen


def choose_text(table: Table, text: str | None) -> int:
    """Position of the text column, where labels do not matter."""
    sample = _sample(table)
    return _guess_text(table, sample, table.columns) if text is None else position(table, text, "text")


def _sample(table: Table) -> list[Row]:
    """The first rows, not more than the guesses need."""
    sample: list[Row] = []
    characters = 0
    for row in table.read(range(len(table.columns))):
        sample.append(row)
        characters += sum(len(value) for value in row if isinstance(value, str))
        if len(sample) == SAMPLE_ROWS or characters > SAMPLE_CHARACTERS:
            break
    if not sample:
        raise InputError(f"{table.name}: has no rows")
    return sample


def position(table: Table, name: str, what: str) -> int:
    if name in table.columns:
        return table.columns.index(name)
    near = get_close_matches(name.lower(), [c.lower() for c in table.columns], n=1)
    hint = next((f"; did you mean {c!r}?" for c in table.columns if near and c.lower() == near[0]), "")
    raise InputError(
        f"{table.name}: there is no column {name!r} for the {what}; the columns are {listed(table.columns)}{hint}"
    )


def _known(columns: Iterable[str], names: Sequence[str]) -> list[str]:
    """The columns with a well-known name; only the exact first name, where it occurs."""
    found = [c for c in columns if c.strip().lower() in names]
    exact = [c for c in found if c.strip().lower() == names[0]]
    return exact if len(exact) == 1 else found


def _guess_text(table: Table, sample: list[Row], columns: Sequence[str], label_open: bool = False) -> int:
    known = _known(columns, TEXT_NAMES)
    if not known and len(columns) <= 1 + label_open:
        known = [c for c in columns if _is_prose(table, sample, c)]
    if not known and len(columns) == 1 and not label_open:
        known = list(columns)
    if len(known) == 1:
        return table.columns.index(known[0])
    candidates = known or [c for c in columns if _is_prose(table, sample, c)] or list(columns)
    raise InputError(
        f"{table.name}: which column holds the text is not clear; say --text COLUMN --label COLUMN, "
        f"candidates for the text are {listed(candidates)}{_separator_hint(table)}"
    )


def _guess_label(table: Table, sample: list[Row], columns: Sequence[str]) -> int:
    known = _known(columns, LABEL_NAMES)
    if not known and len(columns) == 1 and not _is_prose(table, sample, columns[0]):
        known = list(columns)
    if len(known) == 1:
        return table.columns.index(known[0])
    if not columns:
        raise InputError(f"{table.name}: there is no label column beside the text{_separator_hint(table)}")
    candidates = known or [c for c in columns if not _is_prose(table, sample, c)] or list(columns)
    raise InputError(
        f"{table.name}: which column holds the label is not clear; say --text COLUMN --label COLUMN, "
        f"candidates for the label are {listed(candidates)}"
    )


def _is_prose(table: Table, sample: list[Row], column: str) -> bool:
    """Free text: three words or twenty characters a value, on average (no blanks in Chinese)."""
    at = table.columns.index(column)
    values = [row[at] for row in sample if isinstance(row[at], str) and row[at]]
    if not values:
        return False
    return sum(len(v.split()) for v in values) >= 3 * len(values) or sum(map(len, values)) >= 20 * len(values)


def _separator_hint(table: Table) -> str:
    odd = [mark for mark in ";\t|" if len(table.columns) == 1 and mark in table.columns[0]]
    return (
        f"; the columns seem to be separated by {odd[0]!r}, save the file with commas, or tabs as .tsv" if odd else ""
    )
