"""Which column holds the text, which the label: as named, else by well-known names, else by how the values look."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import polars as pl

from tokensieve.errors import InputError
from tokensieve.text.labels import label_name, listed, missing
from tokensieve.text.settings import ReadSettings
from tokensieve.text.sources import Source, open_source
from tokensieve.text.table import SourceTable, Values, chat_text

TEXT_NAMES = (
    "text",
    "review",
    "sentence",
    "document",
    "content",
    "body",
    "message",
    "messages",
    "comment",
    "tweet",
    "conversation",
)
LABEL_NAMES = ("label", "labels", "class", "sentiment", "category", "target", "stars", "rating", "y")
_WINNER_NAMES = re.compile(
    r"winner\w*|winning\w*|prefer\w*|overall_preference|better\w*|best\w*|(human_)?choice|judge?ment"
)
_SIDES = (("a", "b"), ("0", "1"), ("1", "2"), ("left", "right"), ("first", "second"))
_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T].*)?")

Sample = dict[str, list[Any]]


def text_columns(table: SourceTable, text: str | Sequence[str] | None, taken: Sequence[str] = ()) -> tuple[str, ...]:
    """The columns of the text: those named, else the one that it can only be.

    Args:
        table: of any source.
        text: the text column, several fields, or None.
        taken: columns that hold something else.

    Raises:
        InputError: a column is not there, a field is named twice, or it is not clear which column it is.
    """
    if text:
        names = [str(text)] if isinstance(text, str) or not isinstance(text, Sequence) else [str(name) for name in text]
        for name in names:
            table.position(name, "text")
        if len(set(names)) < len(names):
            raise InputError(f"{table.name}: a field is named twice: {listed(names)}; name each once with --text")
        return tuple(names)
    sample = table.sample()
    name = _guessed_text(table, sample, [column for column in table.columns if column not in taken], "")
    _check_header(table, sample, [name])
    return (name,)


def labelled_columns(
    table: SourceTable, text: str | Sequence[str] | None, label: str | None, taken: Sequence[str]
) -> tuple[tuple[str, ...], str]:
    """The columns of the text and that of the label.

    Args:
        table: of any source.
        text: the text column, several fields, or None.
        label: the label column, or None.
        taken: columns that hold something else, such as the split.

    Raises:
        InputError: a column is not there, or it is not clear which one is meant.
    """
    texts = text_columns(table, text) if text else None
    if label is not None:
        label = table.position(label, "label")
    if texts is None or label is None:
        sample = table.sample()
        guessed = []
        if label is None:
            stop_for_preferences(table)
        if texts is None:
            open_columns = [c for c in table.columns if c not in (label, *taken)]
            texts = (_guessed_text(table, sample, open_columns, "" if label else " --label COLUMN"),)
            guessed.append(texts[0])
        if label is None:
            bases = {table.base(name) for name in texts}
            label = _guessed_label(
                table, sample, [c for c in table.columns if c not in bases and c not in taken], texts
            )
            guessed.append(label)
        _check_header(table, sample, guessed)
    if label in texts:
        raise InputError(f"{table.name}: text, label and split must be different columns")
    return texts, label


def _check_header(table: SourceTable, sample: Sample, guessed: Sequence[str]) -> None:
    """Refuse a first line that is taken for column names but looks like the rows below it.

    Raises:
        InputError: a guessed column is named like free text, or like one of its own values.
    """
    for name in guessed if table.first_line else ():
        if len(name.split()) >= 4 or len(name) > 60 or name in sample[name]:
            raise InputError(
                f"{table.name}: the first line looks like data, not like column names ({name[:40]!r}); give --no-header, or "
                "name the columns with --text and --label"
            )


def _known(columns: Sequence[str], names: Sequence[str]) -> list[str]:
    """The columns with a well-known name; only the exact first name, where it occurs."""
    found = [c for c in columns if c.strip().lower() in names]
    exact = [c for c in found if c.strip().lower() == names[0]]
    return exact if len(exact) == 1 else found


def _guessed_text(table: SourceTable, sample: Sample, columns: Sequence[str], more: str) -> str:
    known = _known(columns, TEXT_NAMES)
    prose = [c for c in columns if _is_prose(sample[c])]
    if len(known) > 1 and len(set(known) & set(prose)) == 1:
        known = [c for c in known if c in prose]
    if not known:
        known = prose or (list(columns) if len(columns) == 1 and not more else [])
    if len(known) == 1:
        return known[0]
    if not known:
        nested = [f"{c}.{key}" for c in columns for key in _keys(sample[c])]
        known = [name for name in nested if name.rpartition(".")[2].lower() in TEXT_NAMES] or list(columns)
    raise InputError(
        f"{table.name}: cannot tell which column holds the text: {listed(known)}? Give --text {shlex.quote(known[0])}{more}"
        f"{_hint(table)}"
    )


def _guessed_label(table: SourceTable, sample: Sample, columns: Sequence[str], texts: Sequence[str]) -> str:
    known = _known(columns, LABEL_NAMES)
    if not known:
        known = [c for c in columns if not _is_prose(sample[c])]
        if len(known) > 1:
            known = [c for c in known if _could_be_classes(sample[c])] or known
    if len(known) == 1:
        return known[0]
    if not columns:
        raise InputError(f"{table.name}: there is no label column beside the text{_hint(table)}")
    candidates = known or list(columns)
    named = " ".join(f"--text {shlex.quote(name)}" for name in texts)
    raise InputError(
        f"{table.name}: cannot tell which column holds the label: {listed(candidates)}? Give {named} --label "
        f"{shlex.quote(candidates[0])}{_hint(table)}"
    )


def _is_prose(values: Sequence[Any]) -> bool:
    """Free text or chat: on average three words with letters, or twenty characters of a script without spaces."""
    texts = [chat_text(value) for value in values]
    texts = [text for text in texts if isinstance(text, str) and text]
    if not texts or (len(texts) >= 20 and len(set(texts)) < len(texts) / 10):
        return False
    words = sum(len(re.findall(r"[^\W\d_]+", text[:2000])) for text in texts if not re.match(r"\S+$", text))
    unspaced = sum(len(text) for text in texts if sum(not c.isascii() for c in text[:200]) > len(text[:200]) / 2)
    return words >= 3 * len(texts) or unspaced >= 20 * len(texts)


def _could_be_classes(values: Sequence[Any]) -> bool:
    """Few different values that repeat, unlike an identifier, a date or a measurement."""
    try:
        names = [name for value in values if not missing(value) and (name := label_name(value)) is not None]
    except TypeError:
        return isinstance(next((v for v in values if v is not None), None), list)
    different = len(set(names))
    if len(names) < 8:
        return different > 1
    return 1 < different <= min(50, len(names) / 2) and not all(_DATE.fullmatch(name) for name in names)


def _keys(values: Sequence[Any]) -> list[str]:
    """Keys of nested values."""
    first = next((value for value in values if value is not None), None)
    return list(first) if isinstance(first, dict) else []


def _hint(table: SourceTable) -> str:
    """What else may be wrong with a file whose columns are not clear."""
    command = preference_options(table.columns)
    if command:
        return f"; for preference data give {command}"
    if table.first_line and any(len(name.split()) >= 4 or len(name) > 60 for name in table.columns):
        return "; the first line looks like data: if the file has no header, give --no-header"
    return ""


# ---- preference data


def preference_options(columns: Sequence[str]) -> str | None:
    """The options that read a table of preference data, by the names of its columns; None where it does not look like one."""
    lower = {column.lower(): column for column in columns}
    if "chosen" in lower and "rejected" in lower:
        return f"--pairs {lower['chosen']},{lower['rejected']}"
    winner = winner_column(columns)
    for first, second in _SIDES:
        for name in lower:
            stem = name.removesuffix(first)
            other = stem + second
            if (
                stem
                and name.endswith(first)
                and other in lower
                and re.match(
                    r"(response|answer|output|completion|conversation|summary|text|candidate|reply|generation)", stem
                )
            ):
                both = shlex.quote(f"{lower[name]},{lower[other]}")
                scores = [
                    f"{lower[score + side]}" for score in _score_stems(lower, first, second) for side in (first, second)
                ]
                judged = (
                    f" --winner {shlex.quote(winner)}"
                    if winner
                    else f" --scores {','.join(scores[:2])}"
                    if scores
                    else ""
                )
                if judged:
                    return f"--pairs {both}{judged}"
    return None


def _score_stems(lower: dict[str, str], first: str, second: str) -> list[str]:
    stems = [name.removesuffix(first) for name in lower if name.endswith(first)]
    return [stem for stem in stems if re.match(r"(score|rating|rank)", stem) and stem + second in lower]


def winner_column(columns: Sequence[str]) -> str | None:
    """A column that is named like one that says which answer won."""
    found = [column for column in columns if _WINNER_NAMES.fullmatch(column.strip().lower())]
    return found[0] if found else None


def stop_for_preferences(table: SourceTable) -> None:
    """Refuse to read preference data as labelled documents.

    Raises:
        InputError: the columns are those of preference data; the message has the options to give.
    """
    command = preference_options(table.columns)
    if command:
        raise InputError(f"{table.name}: this looks like preference data; for pairs of answers give {command}")


NO, YES = "no", "yes"  # in this order, so that to have a label is class 1
LEAST = 20  # documents with the label, and without it
MOST = 50  # labels of one column


def labels_of(cell: Any, separator: str | None) -> list[str]:
    """The labels in a cell: of a list its entries, of a text the parts between separators; of an empty one none.

    Raises:
        TypeError: an entry is a list or the like, or the cell neither.
    """
    if isinstance(cell, str) and separator is not None:
        return [name for part in cell.split(separator) if (name := label_name(part.strip())) is not None]
    if isinstance(cell, list | tuple) or hasattr(cell, "tolist"):
        return [name for entry in cell if (name := label_name(entry)) is not None]
    raise TypeError


def has_label(values: Values, label: str, separator: str | None, name: str, first_row: int) -> pl.Series:
    """ "yes" where the label is among those of a cell, "no" elsewhere, and null where a cell is missing.

    Args:
        values: cells with several labels.
        label: the one that is asked for.
        separator: between the labels of a text cell.
        name, first_row: for messages.

    Raises:
        InputError: a cell holds no list, and no text to be split.
    """
    answers: list[str | None] = []
    for row, cell in enumerate(_cells(values), first_row):
        try:
            answers.append(None if missing(cell) else YES if label in labels_of(cell, separator) else NO)
        except TypeError:
            raise InputError(
                f"{name}: row {row}: the labels are a {type(cell).__name__}, not a list; for text give --label-separator"
            ) from None
    return pl.Series(answers, dtype=pl.String)


def label_settings(source: Source, settings: ReadSettings) -> tuple[list[tuple[str, Any]], dict[str, int]]:
    """The audits that a source with several labels needs: (label, how to read the source for it); and the labels of too few (or
    all) documents, with their numbers.

    A column of lists gives one audit per label, the most frequent first; several columns one each. An ordinary label column
    gives none.

    Args:
        source: as for `read_corpus`.
        settings: with the label columns, if they are given.

    Raises:
        InputError: the source cannot be read, several columns are named where labels are lists, or none has enough documents.
    """
    names = [settings.label] if isinstance(settings.label, str) else list(settings.label or ())
    separator = settings.label_separator
    if len(names) > 1 and separator is not None:
        raise InputError("--label-separator is for one label column: name one with --label")
    table = open_source(source, settings).train
    if len(names) > 1:
        if len(set(names)) < len(names):
            raise InputError(f"--label names a column twice: {listed(names)}")
        return [(table.position(name, "label"), replace(settings, label=name)) for name in names], {}
    taken = [c for c in (settings.split, settings.by, settings.environments) if c is not None]
    column = labelled_columns(table, settings.text, names[0] if names else None, taken)[1]
    first = next(iter(table.read([column])), {column: []})[column]
    if separator is None and not any(isinstance(cell, list) for cell in islice(_cells(first), 200)):
        return [], {}
    rows, split, found = 0, False, Counter[str]()
    number = 0
    for batch in table.read([column]):
        for cell in _cells(batch[column]):
            number += 1
            if missing(cell):
                continue
            rows += 1
            split |= separator is None or separator in str(cell)
            try:
                found.update(set(labels_of(cell, separator)))
            except TypeError:
                raise InputError(
                    f"{table.name}: row {number}: the labels in column {column!r} are a {type(cell).__name__}, not a list; for "
                    "text give --label-separator"
                ) from None
    if not split:
        raise InputError(
            f"{table.name}: column {column!r} nowhere holds the separator {separator!r}: check --label-separator"
        )
    order = sorted(found, key=lambda name: (-found[name], name))
    kept = [name for name in order if LEAST <= found[name] <= rows - LEAST][:MOST]
    if not kept:
        raise InputError(
            f"{table.name}: no label in column {column!r} has {LEAST} documents with it and {LEAST} without: "
            f"there are {listed(order)}"
        )
    asked = [(name, replace(settings, label=column, having=name)) for name in kept]
    return asked, {name: found[name] for name in order if name not in kept}


def _cells(values: Values) -> Sequence[Any]:
    return values.to_list() if isinstance(values, pl.Series) else values
