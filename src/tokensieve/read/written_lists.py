"""Lists that are written as text in a cell, as pandas, databases and annotation tools export them.

A form is a row of `FORMS`: a function that returns the entries of such a text, or None.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from tokensieve.read.values import Values, as_list, missing

Entries = list[Any]


class ListForm(NamedTuple):
    """A form in which a list is written.

    Attributes:
        read: a text → the entries of the list, or None if the text has another form.
        is_unmistakable: whether no ordinary label looks like this, so that one cell decides for its
            column; otherwise all cells must have the form.
    """

    read: Callable[[str], Entries | None]
    is_unmistakable: bool

    def reads(self, text: str) -> bool:
        """Whether a text has this form."""
        return self.read(text) is not None


def literal_list(text: str) -> Entries | None:
    """["a", "b"] as JSON, or ['a', 'b'] as Python writes it."""
    if not re.match(r"\[\s*([\[{\"'\d.-]|\])", text) or not text.rstrip().endswith("]"):
        return None
    if re.search(r"(['\"])\s+\1", text):  # of numpy: Python would join the texts
        return None
    for parse in (json.loads, ast.literal_eval):
        with suppress(ValueError, SyntaxError, RecursionError):
            entries = parse(text)
            if isinstance(entries, list):
                return entries
            return None
    return None


def _python_collection(text: str) -> Entries | None:
    """('a', 'b'), {'a', 'b'}, frozenset(…) or array([…], dtype=object), as Python prints them."""
    match = re.fullmatch(
        r"(?:frozenset|set|tuple|array|list)\((.*?)(?:,\s*dtype=[\w<>.']+)?\)", text, re.DOTALL
    )
    content = text
    if match:
        content = match[1]
    if content.startswith("[") and match is None:  # `literal_list` and `_numpy_array` read these
        return None
    if not re.match(r"[(\[{]\s*([\"'\d-]|\))", content):
        return None
    with suppress(ValueError, SyntaxError, RecursionError, TypeError):
        entries = ast.literal_eval(content)
        if isinstance(entries, set):
            return sorted(entries, key=str)
        if isinstance(entries, tuple | list):
            return list(entries)
        return None
    return None


def _choices_object(text: str) -> Entries | None:
    """{"choices": ["a", "b"]}, as Label Studio's CSV has it."""
    if not re.match(r'\{\s*"choices"\s*:', text):
        return None
    with suppress(ValueError, RecursionError):
        choices = json.loads(text)["choices"]
        if isinstance(choices, list):
            return choices
        return None
    return None


def _numpy_array(text: str) -> Entries | None:
    """[1 3] or ['a' 'b'], as numpy prints an array."""
    content = re.fullmatch(r"\[([^\[\]{},]*)\]", text)
    if content is None:
        return None
    quoted = re.findall(r"'([^']*)'|\"([^\"]*)\"", content[1])
    if quoted:
        return [single or double for single, double in quoted]
    words = content[1].split()
    if all(re.fullmatch(r"-?\d+(\.\d*)?", word) for word in words):
        return words
    return None


def _postgres_array(text: str) -> Entries | None:
    """{a,"b c"}, as PostgreSQL writes an array."""
    content = re.fullmatch(r"\{([^{}:]*)\}", text)
    if content is None:
        return None
    entries = re.findall(r'"((?:[^"\\]|\\.)*)"|([^,"]+)', content[1])
    return [quoted or bare.strip() for quoted, bare in entries]


def _bare_words(text: str) -> Entries | None:
    """[a, b c], words without quotes, as people type a list."""
    content = re.fullmatch(r"\[([^\[\]{}\"']+)\]", text)
    if content is None:
        return None
    return [word.strip() for word in content[1].split(",")]


FORMS = (
    ListForm(literal_list, is_unmistakable=True),
    ListForm(_python_collection, is_unmistakable=True),
    ListForm(_choices_object, is_unmistakable=True),
    ListForm(_numpy_array, is_unmistakable=False),
    ListForm(_postgres_array, is_unmistakable=False),
    ListForm(_bare_words, is_unmistakable=False),
)


def column_form(values: Sequence[object]) -> ListForm | None:
    """The form in which a column holds lists, by its first values; None if it holds none."""
    texts = [value.strip() for value in values if isinstance(value, str) and value.strip()]
    if not texts or any(not isinstance(value, str) and not missing(value) for value in values):
        return None
    for form in FORMS:
        if all(map(form.reads, texts)):
            return form
    for form in FORMS:
        if form.is_unmistakable and any(map(form.reads, texts)):
            return form
    return None


def with_lists(values: Values, form: ListForm) -> list[Any]:
    """The values, with lists instead of their texts; another text stays as it is."""
    parsed = []
    for value in as_list(values):
        entries = None
        if isinstance(value, str):
            entries = form.read(value.strip())
        parsed.append(value if entries is None else entries)
    return parsed
