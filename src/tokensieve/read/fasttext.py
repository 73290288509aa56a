"""Lines of fastText: `__label__spam win a prize`, the labels first or last.

A label may have another prefix than `__label__`, and a line may have labels of several prefixes:
`__topic__food __tone__angry text`. Each prefix is then a column.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from tokensieve.read.plain import PlainText
from tokensieve.read.table import Row

LABEL = "label"  # the usual prefix; without any other, the column of the labels
_FIRST_LABELS = re.compile(r"(?:__[^\W_][^\W_]*__\S+[\s,]*)+")
_LAST_LABEL = re.compile(r"\s__label__\S+$")
_PREFIX = re.compile(r"__([^\W_][^\W_]*)__")


def prefixes_of(start: Sequence[str]) -> list[str]:
    """The prefixes of labels by the first lines, in their order; none if this is not fastText.

    One line with `__label__` is enough. Another prefix must begin every line.
    """
    prefixes: list[str] = []
    has_usual = False
    all_begin_with_labels = True
    for line in start:
        content = line.strip()
        if not content:
            continue
        labels = _FIRST_LABELS.match(content)
        if labels is None:
            all_begin_with_labels = False
        else:
            prefixes += _PREFIX.findall(labels[0])
        if _LAST_LABEL.search(content):
            has_usual = True
    if has_usual or LABEL in prefixes:
        return list(dict.fromkeys([*prefixes, LABEL]))
    if all_begin_with_labels:
        return list(dict.fromkeys(prefixes))
    return []


def fasttext_records(text: PlainText, prefixes: Sequence[str]) -> Iterator[Row]:
    """A row per line: one label of a prefix is text, several are a list.

    Commas between labels are left out.
    """
    columns = prefixes if len(prefixes) > 1 else [LABEL]
    names = "|".join(map(re.escape, prefixes))
    label = rf"__(?:{names})__\S*"
    outside = re.compile(rf"^({label}[\s,]*)+|(\s+{label})+$")
    parts = re.compile(rf"__({names})__((?:(?!,?__(?:{names})__)\S)*)")
    for line in text.lines():
        content = line.strip()
        if not content:
            continue
        words = outside.sub("", content)
        before, _, after = content.partition(words)
        values: dict[str, list[str]] = {column: [] for column in columns}
        for prefix, name in parts.findall(before + after):
            values[prefix if len(prefixes) > 1 else LABEL].append(name.strip(","))
        yield {"text": words.strip(), **{name: _cell(labels) for name, labels in values.items()}}


def _cell(labels: list[str]) -> Any:
    return labels[0] if len(labels) == 1 else labels
