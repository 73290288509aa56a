"""Labels by several annotators, as doccano, Label Studio and Argilla export them.

Such a document holds a list of objects, one for each annotator: [{"label": "spam", "user": 1}, …].
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any, NamedTuple

from tokensieve.read.table import value_at
from tokensieve.read.values import label_name, label_names

# where an annotation says whose it is; an object may name or describe the annotator
ANNOTATOR_KEYS = (
    "annotator annotator_id user user_id username created_by created_username completed_by "
    "worker worker_id rater judge"
).split()
# a submitted annotation has none of these
SET_ASIDE = {"was_cancelled": (True,), "status": ("discarded", "draft", "pending")}
NAME_KEYS = ("username", "email", "name", "id")


class Annotation(NamedTuple):
    """What one annotator chose: the labels, of which an exclusive choice has one."""

    annotator: str
    labels: tuple[str, ...]


class Agreement(Enum):
    """Whether the annotators of a document agree."""

    AGREE = "agree"
    MAJORITY = "majority"
    NO_MAJORITY = "no majority"


class Vote(NamedTuple):
    """The labels that annotators chose together; none without a majority."""

    labels: tuple[str, ...]
    agreement: Agreement


def leads_to_annotations(values: Sequence[object], keys: Sequence[str]) -> bool:
    """Whether a path leads through lists of annotations, by the first values of its column."""
    return any(_annotation_list(value, keys) is not None for value in values)


class _AnnotationList(NamedTuple):
    """The objects of all annotators of a document, and the path to the label within each."""

    entries: list[dict[str, Any]]
    keys: Sequence[str]


def _annotation_list(value: object, keys: Sequence[str]) -> _AnnotationList | None:
    """The first list of annotations on a path; None if there is none, or it is empty."""
    for place in range(len(keys) + 1):
        if isinstance(value, list):
            entries = [entry for entry in value if isinstance(entry, dict)]
            has_annotators = any(_annotator(entry) is not None for entry in entries)
            return _AnnotationList(entries, keys[place:]) if has_annotators else None
        if place == len(keys) or not isinstance(value, dict):
            return None
        value = value.get(keys[place])
    return None


def _annotator(entry: dict[str, Any]) -> str | None:
    """The name of the annotator of one annotation; None if the object does not say."""
    for key in ANNOTATOR_KEYS:
        person = entry.get(key)
        if isinstance(person, dict):
            person = next((person[name] for name in NAME_KEYS if person.get(name)), None)
        if person not in (None, "") and not isinstance(person, list | dict):
            return str(person)
    return None


def annotations_at(value: object, keys: Sequence[str]) -> list[Annotation]:
    """The choice of each annotator of a document; annotations that are withdrawn do not count."""
    listed_annotations = _annotation_list(value, keys)
    if listed_annotations is None:
        return []
    annotations = []
    for entry in listed_annotations.entries:
        if any(entry.get(key) in values for key, values in SET_ASIDE.items()):
            continue
        labels = tuple(_labels_in(value_at(entry, listed_annotations.keys)))
        if labels:
            annotations.append(Annotation(_annotator(entry) or "", labels))
    return annotations


def annotations_beside(labels: object, users: object, statuses: object) -> list[Annotation]:
    """The choice of each annotator, from lists of labels and of users, as Argilla exports them."""
    if not isinstance(labels, list) or not isinstance(users, list):
        return []
    states = statuses if isinstance(statuses, list) else [None] * len(labels)
    annotations = []
    for label, user, status in zip(labels, users, states, strict=False):
        chosen = tuple(_labels_in(label))
        if chosen and status not in SET_ASIDE["status"]:
            annotations.append(Annotation(str(user), chosen))
    return annotations


def annotations_in_columns(columns: Sequence[str], cells: Sequence[object]) -> list[Annotation]:
    """The choice of each annotator, where each has a column."""
    annotations = []
    for column, cell in zip(columns, cells, strict=True):
        chosen = tuple(_labels_in(cell))
        if chosen:
            annotations.append(Annotation(column, chosen))
    return annotations


def _labels_in(value: object) -> Iterator[str]:
    """The labels in a value or in nested lists, each once."""
    if isinstance(value, list):
        yield from dict.fromkeys(label for entry in value for label in _labels_in(entry))
    elif isinstance(value, dict):
        label_name(value)  # a TypeError: the path leads to an object
    else:
        yield from label_names([value])


def vote(annotations: Sequence[Annotation], is_exclusive: bool) -> Vote:
    """The labels that most annotators chose.

    Of an exclusive choice that is the one label that is chosen most often; of others, every label
    that more than half of the annotators chose.
    """
    votes = Counter(label for annotation in annotations for label in annotation.labels)
    choices = {frozenset(annotation.labels) for annotation in annotations}
    if len(choices) <= 1:
        return Vote(tuple(votes), Agreement.AGREE)
    if not is_exclusive:
        chosen = [label for label, n in votes.items() if n > len(annotations) / 2]
        return Vote(tuple(chosen), Agreement.MAJORITY)
    (first, n_first), (_, n_second) = votes.most_common(2)
    if n_first == n_second:
        return Vote((), Agreement.NO_MAJORITY)
    return Vote((first,), Agreement.MAJORITY)
