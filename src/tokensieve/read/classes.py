"""Which values of a label column are classes, and in which order."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import NamedTuple

import polars as pl

from tokensieve.errors import InputError
from tokensieve.escape import option
from tokensieve.name_lists import joined_group, joined_names
from tokensieve.read.values import listed

MAX_CLASSES = 200
MAX_UNCHECKED_CLASSES = 50  # a column with more values may be text, an identifier or a measurement
MIN_MEAN_CLASS_SIZE = 10  # documents, if there are more than MAX_UNCHECKED_CLASSES values
MIN_SCORES = 3  # different numbers of a scale; two are two classes
MAX_CLASSES_OF_FRACTIONS = 20  # numbers such as 0.35; more of them are a measurement
MAX_CLASSES_OF_ONE = 20  # values that occur once; more of them look like identifiers


class LabelOrder(NamedTuple):
    """How labels are sorted: numbers first and by size, then text."""

    is_text: bool
    number: float
    name: str


class SingleDocument(NamedTuple):
    """The only document of a class: its label before grouping, and its row."""

    label: str
    row: int


def label_order(name: str) -> LabelOrder:
    """The sorting key of a label."""
    try:
        number = float(name)
    except ValueError:
        number = math.nan
    if math.isfinite(number):
        return LabelOrder(False, number, name)
    return LabelOrder(True, 0.0, name)


def check_labels_exist(source: str, asked: Iterable[str], known: Collection[str]) -> None:
    """Raise an `InputError` if the source lacks a label that --group or --drop names."""
    for name in asked:
        if name not in known:
            raise InputError(
                f"{source}: no document has the label {name!r} named in --group or --drop; "
                f"the labels are {listed(sorted(known, key=label_order))}"
            )


def class_names(
    sizes: Mapping[str, int],
    column: str,
    single_documents: Mapping[str, SingleDocument] | None = None,
) -> tuple[str, ...]:
    """The class names, sorted: numbers first and by size, then text.

    Args:
        sizes: label → documents.
        column: describes the label column, for messages.
        single_documents: label → its document, for the labels that occur once; for messages.

    Raises:
        InputError: there are fewer than two labels or more than 200, a label has a single document,
            or more than 50 labels have fewer than ten documents on average or are numbers that do
            not start at 0 or 1.
    """
    names = tuple(sorted(sizes, key=label_order))
    if len(names) > MAX_UNCHECKED_CLASSES or _are_many_fractions(names):
        _check_many_classes(names, sum(sizes.values()), column)
    if len(names) < 2:
        raise InputError(
            f"{column} has only one value, {names[0]!r}; at least two classes are needed: "
            "choose another with --label COLUMN, or check --group and --drop"
        )
    alone = [
        (single_documents or {}).get(name, SingleDocument(name, 0))
        for name in names
        if sizes[name] == 1
    ]
    if alone:
        frequent = [name for name in names if sizes[name] > 1]
        raise _classes_of_one(column, sorted(alone, key=lambda one: one.row), frequent)
    return names


def _are_many_fractions(names: Sequence[str]) -> bool:
    """Whether these are more numbers than classes would be, some of them not whole."""
    if len(names) <= MAX_CLASSES_OF_FRACTIONS:
        return False
    labels = [label_order(name) for name in names]
    are_numbers = not any(label.is_text for label in labels)
    return are_numbers and any(not label.number.is_integer() for label in labels)


def likely_scores(names: Sequence[str]) -> str | None:
    """The hint that these classes may be scores; None if they are not numbers on a scale.

    Three or more numbers with fractions may be, and whole numbers without a gap, such as stars.
    """
    labels = [label_order(name) for name in names]
    if len(names) < MIN_SCORES or any(label.is_text for label in labels):
        return None
    numbers = [label.number for label in labels]
    has_fractions = any(not number.is_integer() for number in numbers)
    is_scale = numbers[-1] - numbers[0] == len(names) - 1
    if not has_fractions and not is_scale:
        return None
    return (
        f"the labels are the numbers {names[0]} to {names[-1]}, read as {len(names)} classes; if "
        "they are ratings, add --task scores to predict the number itself"
    )


def score_numbers(labels: pl.DataFrame, column: str) -> pl.Series:
    """Labels as numbers.

    Args:
        labels: "label" and "row" of each document.
        column: describes the label column, for messages.

    Raises:
        InputError: a label is not a finite number.
    """
    numbers = labels["label"].cast(pl.Float64, strict=False)
    is_bad = ~numbers.is_finite().fill_null(False)
    for label, row in labels.filter(is_bad).select("label", "row").head(1).iter_rows():
        drop = option("--drop", joined_names([label]))
        raise InputError(
            f"{column}: {label[:40]!r} in row {row} is not a number, which --task scores needs; "
            f"leave it out with {drop}, or leave out --task"
        )
    return numbers


def _check_many_classes(names: Sequence[str], n_documents: int, column: str) -> None:
    """Refuse many values that are free text, identifiers, row numbers or measurements."""
    are_text = any(label_order(name).is_text for name in names)
    numbers = [] if are_text else [label_order(name).number for name in names]
    are_whole = all(number.is_integer() for number in numbers)
    # numbers of classes begin at 0 or 1 and leave few out; ages, years and measurements do not
    count_classes = not are_text and numbers[0] in (0, 1) and numbers[-1] < 2 * len(names)
    are_frequent = n_documents >= MIN_MEAN_CLASS_SIZE * len(names)
    are_classes = are_frequent and (are_text or (count_classes and are_whole))
    if are_classes and len(names) <= MAX_CLASSES:
        return
    advice = ""
    if are_classes:
        reason = f"exceeds the limit of {MAX_CLASSES} classes"
    elif are_text:
        reason = "looks like free text or an identifier"
    elif len(names) == n_documents and are_whole:
        reason = "looks like row numbers"
    else:
        reason = "looks like continuous numbers"
        advice = "if they are scores, add --task scores; or "
    raise InputError(
        f"{column} has {len(names):,} different values in {n_documents:,} documents, which "
        f"{reason}; {advice}choose another with --label COLUMN, merge values with --group, or "
        "leave some out with --drop"
    )


def _classes_of_one(
    column: str, alone: Sequence[SingleDocument], frequent: Sequence[str]
) -> InputError:
    """The error for labels that occur once, with the options that drop or merge them."""
    first = alone[0]
    further = [single.label for single in alone[1:]]
    if len(further) >= MAX_CLASSES_OF_ONE:
        n_values = len(alone) + len(frequent)
        return InputError(
            f"{column}: {len(alone):,} of {n_values:,} values occur once, like identifiers; "
            "choose another with --label COLUMN, or merge values with --group"
        )
    drop = " ".join(option("--drop", joined_names([label])) for label in (first.label, *further))
    place = f" (row {first.row})" if first.row else ""
    if further:
        return InputError(
            f"{column}: {first.label!r} occurs once{place} ({listed(further)} too); "
            f"each class needs two documents. Leave them out with {drop}"
        )
    by_lower_case: dict[str, str] = {}
    for name in frequent:
        by_lower_case.setdefault(name.lower(), name)
    similar = get_close_matches(first.label.lower(), by_lower_case, n=1)
    merge = ""
    if similar:
        partner = by_lower_case[similar[0]]
        merge = " or merge it: " + option("--group", joined_group(partner, [partner, first.label]))
    return InputError(
        f"{column}: {first.label!r} occurs once{place}; each class needs two documents. "
        f"Leave it out with {drop}{merge}"
    )
