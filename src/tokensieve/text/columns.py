"""Which column holds the text, which the label: as named, else by well-known names, else by how the values look."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from tokensieve.errors import InputError
from tokensieve.text.labels import listed
from tokensieve.text.table import Row, Table, joined

TEXT_NAMES = ("text", "review", "sentence", "document", "content", "body", "message", "comment")
LABEL_NAMES = ("label", "labels", "class", "sentiment", "category", "target", "stars", "rating", "y")
SAMPLE_ROWS, SAMPLE_CHARACTERS = 200, 1_000_000


def one_text(table: Table, text: str | Sequence[str] | None) -> tuple[Table, str | None, tuple[str, ...]]:
    """The table with its text in one column, that column's name (None where it is not named), and its fields if there are several.

    Args:
        table: of any source.
        text: name of the text column, or of several fields.

    Raises:
        InputError: a field is not there, or named twice.
    """
    names = [] if text is None else list(text) if isinstance(text, list | tuple) else [str(text)]
    if len(names) < 2:
        return table, names[0] if names else None, ()
    at = [position(table, name, "text") for name in names]
    if len(set(at)) < len(at):
        raise InputError(f"{table.name}: a field is named twice: {listed(names)}; name each once with --text")
    whole = joined(table, at)
    return whole, whole.columns[-1], tuple(names)


def choose_columns(table: Table, text: str | None, label: str | None, split: str | None) -> list[int]:
    """Positions of the text, the label and, where one is named, the split column."""
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
    guessed = [at for at, named in zip((text_at, label_at), given, strict=False) if named is None]
    _check_header(table, sample, guessed)
    return chosen


def choose_text(table: Table, text: str | None) -> int:
    """Position of the text column, where labels do not matter."""
    if text is not None:
        return position(table, text, "text")
    sample = _sample(table)
    at = _guess_text(table, sample, table.columns)
    _check_header(table, sample, [at])
    return at


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
    name = str(name)  # pandas' columns may be numbers
    if name in table.columns:
        return table.columns.index(name)
    near = get_close_matches(name.strip().lower(), [c.strip().lower() for c in table.columns], n=1)
    hint = next((f"; did you mean {c!r}?" for c in table.columns if near and c.strip().lower() == near[0]), "")
    raise InputError(
        f"{table.name}: there is no column {name!r} for the {what}; the columns are {listed(table.columns)}{hint}"
    )


def _check_header(table: Table, sample: list[Row], guessed: Sequence[int]) -> None:
    """Refuse a first line that is taken for column names but looks like the rows below it.

    Raises:
        InputError: a guessed column is named like free text, or like one of its own values.
    """
    for at in guessed if table.first_line else ():
        name = table.columns[at]
        if len(name.split()) >= 4 or len(name) > 60 or any(row[at] == name for row in sample):
            raise InputError(
                f"{table.name}: the first line looks like data, not like column names ({name[:40]!r}); give --no-header, or "
                "name the columns with --text and --label"
            )


def _known(columns: Iterable[str], names: Sequence[str]) -> list[str]:
    """The columns with a well-known name; only the exact first name, where it occurs."""
    found = [c for c in columns if c.strip().lower() in names]
    exact = [c for c in found if c.strip().lower() == names[0]]
    return exact if len(exact) == 1 else found


def _guess_text(table: Table, sample: list[Row], columns: Sequence[str], label_open: bool = False) -> int:
    at = {name: i for i, name in enumerate(table.columns)}
    known = _known(columns, TEXT_NAMES)
    if not known and len(columns) <= 1 + label_open:
        known = [c for c in columns if _is_prose(sample, at[c])]
    if not known and len(columns) == 1 and not label_open:
        known = list(columns)
    if len(known) == 1:
        return at[known[0]]
    candidates = known or [c for c in columns if _is_prose(sample, at[c])] or list(columns)
    raise InputError(
        f"{table.name}: which column holds the text is not clear; give --text COLUMN --label COLUMN, "
        f"candidates for the text are {listed(candidates)}{_hint(table)}"
    )


def _guess_label(table: Table, sample: list[Row], columns: Sequence[str]) -> int:
    at = {name: i for i, name in enumerate(table.columns)}
    known = _known(columns, LABEL_NAMES)
    if not known and len(columns) == 1 and not _is_prose(sample, at[columns[0]]):
        known = list(columns)
    if len(known) == 1:
        return at[known[0]]
    if not columns:
        raise InputError(f"{table.name}: there is no label column beside the text{_hint(table)}")
    candidates = known or [c for c in columns if not _is_prose(sample, at[c])] or list(columns)
    raise InputError(
        f"{table.name}: which column holds the label is not clear; give --text COLUMN --label COLUMN, "
        f"candidates for the label are {listed(candidates)}{_hint(table)}"
    )


def _is_prose(sample: list[Row], at: int) -> bool:
    """Free text: three words or twenty characters a value, on average (no blanks in Chinese)."""
    values = [row[at] for row in sample if isinstance(row[at], str) and row[at]]
    if not values:
        return False
    return sum(len(v.split()) for v in values) >= 3 * len(values) or sum(map(len, values)) >= 20 * len(values)


def _hint(table: Table) -> str:
    """What else may be wrong with a file whose columns are not clear."""
    if {"chosen", "rejected"} <= set(table.columns):
        return "; for pairs of answers give --pairs chosen,rejected"
    odd = [mark for mark in ";\t|" if len(table.columns) == 1 and mark in table.columns[0]]
    if odd:
        return f"; the columns seem to be separated by {odd[0]!r}: give --separator {odd[0]!r}"
    if table.first_line and any(len(name.split()) >= 4 or len(name) > 60 for name in table.columns):
        return "; the first line looks like data: if the file has no header, give --no-header"
    return ""
