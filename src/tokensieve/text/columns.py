"""Which column holds the text, which the label: as named, else by well-known names, else by how the values look."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from tokensieve.errors import InputError
from tokensieve.text.labels import label_name, listed, missing
from tokensieve.text.table import Sample, SourceTable, chat_text

TEXT_NAMES = "text review sentence document content body message messages comment tweet conversation".split()
_LABEL_NAMES = "label labels class sentiment category target stars rating y".split()


def text_columns(table: SourceTable, text: str | Sequence[str] | None) -> tuple[str, ...]:
    """The columns of the text: those named, else the one that it can only be; an `InputError` where that is not clear."""
    if text:
        names = [str(text)] if isinstance(text, str) or not isinstance(text, Sequence) else [str(name) for name in text]
        for name in names:
            table.position(name, "text")
        if len(set(names)) < len(names):
            raise InputError(f"{table.name}: a field is named twice: {listed(names)}; name each once with --text")
        return tuple(names)
    sample = table.sample()
    name = _guessed_text(table, sample, table.columns, "")
    _check_header(table, sample, [name])
    return (name,)


def labelled_columns(
    table: SourceTable, text: str | Sequence[str] | None, label: str | None, taken: Sequence[str]
) -> tuple[tuple[str, ...], str]:
    """The columns of the text (None: the one that it can only be) and that of the label, which are none of those taken.

    Raises:
        InputError: a column is not there, or it is not clear which one is meant.
    """
    texts = text_columns(table, text) if text else None
    if label is not None:
        label = table.position(label, "label")
    if texts is None or label is None:
        sample, guessed = table.sample(), []
        command = preference_options(table.columns)
        if label is None and command:
            raise InputError(f"{table.name}: this looks like preference data; for pairs of answers give {command}")
        if texts is None:
            left = [c for c in table.columns if c not in (label, *taken)]
            texts = (_guessed_text(table, sample, left, "" if label else " --label COLUMN"),)
            guessed.append(texts[0])
        if label is None:
            bases = {table.base(name) for name in texts}
            left = [c for c in table.columns if c not in bases and c not in taken]
            label = _guessed_label(table, sample, left, texts)
            guessed.append(label)
        _check_header(table, sample, guessed)
    if label in texts:
        raise InputError(f"{table.name}: text, label and split must be different columns")
    return texts, label


def _check_header(table: SourceTable, sample: Sample, guessed: Sequence[str]) -> None:
    """Refuse a first line that is taken for column names but looks like the rows below it."""
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
        first = {c: next((value for value in sample[c] if value is not None), None) for c in columns}
        nested = [f"{c}.{key}" for c, value in first.items() if isinstance(value, dict) for key in value]
        known = [name for name in nested if name.rpartition(".")[2].lower() in TEXT_NAMES] or list(columns)
    raise InputError(
        f"{table.name}: cannot tell which column holds the text: {listed(known)}? Give --text {shlex.quote(known[0])}{more}"
        f"{_hint(table)}"
    )


def _guessed_label(table: SourceTable, sample: Sample, columns: Sequence[str], texts: Sequence[str]) -> str:
    known = _known(columns, _LABEL_NAMES) or [c for c in columns if not _is_prose(sample[c])]
    if len(known) > 1 and not _known(columns, _LABEL_NAMES):
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


def _is_prose(values: Sequence[object]) -> bool:
    """Free text or chat: on average three words with letters, or twenty characters of a script without spaces."""
    texts = [text for value in values if isinstance(text := chat_text(value), str) and text]
    if not texts or (len(texts) >= 20 and len(set(texts)) < len(texts) / 10):
        return False
    words = sum(len(re.findall(r"[^\W\d_]+", text[:2000])) for text in texts if not re.match(r"\S+$", text))
    unspaced = sum(len(text) for text in texts if sum(not c.isascii() for c in text[:200]) > len(text[:200]) / 2)
    return words >= 3 * len(texts) or unspaced >= 20 * len(texts)


def _could_be_classes(values: Sequence[object]) -> bool:
    """Few different values that repeat, unlike an identifier, a date or a measurement."""
    try:
        names = [name for value in values if not missing(value) and (name := label_name(value)) is not None]
    except TypeError:
        return isinstance(next((v for v in values if v is not None), None), list)
    if len(names) < 8:
        return len(set(names)) > 1
    dates = all(re.fullmatch(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T].*)?", name) for name in names)
    return 1 < len(set(names)) <= min(50, len(names) / 2) and not dates


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
    for first, second in (("a", "b"), ("0", "1"), ("1", "2"), ("left", "right"), ("first", "second")):
        sides = {name: name.removesuffix(first) + second for name in lower if name.endswith(first)}
        both = [(name, other) for name, other in sides.items() if other in lower]
        kinds = r"(response|answer|output|completion|conversation|summary|text|candidate|reply|generation)"
        answers = [f"{lower[name]},{lower[other]}" for name, other in both if re.match(kinds, name)]
        scores = [f"{lower[name]},{lower[other]}" for name, other in both if re.match(r"(score|rating|rank)", name)]
        if answers and (winner or scores):
            judged = f"--winner {shlex.quote(winner)}" if winner else f"--scores {scores[0]}"
            return f"--pairs {shlex.quote(answers[0])} {judged}"
    return None


def winner_column(columns: Sequence[str]) -> str | None:
    """A column that is named like one that says which answer won."""
    pattern = r"winner\w*|winning\w*|prefer\w*|overall_preference|better\w*|best\w*|(human_)?choice|judge?ment"
    return next((column for column in columns if re.fullmatch(pattern, column.strip().lower())), None)
