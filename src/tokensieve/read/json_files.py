"""JSON documents and JSON lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from tokensieve.errors import InputError
from tokensieve.read.delimited import first_lines
from tokensieve.read.plain import PlainText
from tokensieve.read.settings import SourceSettings
from tokensieve.read.table import Row, SourceTable, written_object

SAMPLE_LINES = 1_000  # whose keys are the columns of JSON lines
_LINE_FORM = "write one object {…} with named fields per line"
_LIST_FORM = "write a list of objects [{…}, …]"
_USUAL_KEYS = ("data", "rows", "items", "examples", "records", "results")


def json_lines_table(path: Path, name: str, settings: SourceSettings) -> SourceTable:
    """JSON lines, whose columns are the keys of the first thousand; or a list of objects."""
    text = PlainText(path, name, settings)
    if "".join(first_lines(text)[:2]).lstrip().startswith("["):
        with suppress(InputError):  # the line with the fault is named instead
            return _rows_table(text, _document_rows(text))
    return _lines_table(text)


def json_table(path: Path, name: str, settings: SourceSettings) -> SourceTable:
    """The objects of a document, with all their keys; or JSON lines in spite of the name."""
    text = PlainText(path, name, settings)
    return _rows_table(text, _document_rows(text))


def _rows_table(text: PlainText, rows: list[Row] | None) -> SourceTable:
    """The rows of a document; without them, the lines of the file are rows."""
    if rows is None:
        return _lines_table(text)
    return SourceTable.of_records(text.name, lambda: iter(rows), None, text.notes)


def _lines_table(text: PlainText) -> SourceTable:
    def records() -> Iterator[Row]:
        for number, line in enumerate(text.lines(), 1):
            if not line.isspace():
                where = f"{text.name}: line {number}:"
                yield _as_object(_decoded(where, line, _LINE_FORM), where, _LINE_FORM)

    return SourceTable.of_records(text.name, records, SAMPLE_LINES, text.notes)


def json_row_lines(path: Path, settings: SourceSettings) -> Iterator[int]:
    """The line of each row of JSON lines, from 1; none of a list of objects."""
    text = PlainText(path, path.name, settings)
    if "".join(first_lines(text)[:2]).lstrip().startswith("["):
        return
    for number, line in enumerate(text.lines(), 1):
        if not line.isspace():
            yield number


def _decoded(where: str, content: str, form: str) -> object:
    """The value that msgspec reads, or else Python's reader.

    The latter also accepts NaN, lone surrogates and numbers of any size.
    """
    try:
        return msgspec.json.decode(content)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        pass  # Python's reader decides, and its message is the one that people know
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as problem:
        reason = str(problem).partition(";")[0]
        raise InputError(f"{where} is not JSON ({reason}); {form}") from None


def _as_object(record: object, where: str, form: str) -> Row:
    """The object; also one that is written as JSON in a JSON string, as programs do by mistake."""
    record = written_object(record) or record
    if not isinstance(record, dict):
        raise InputError(f"{where} is {_kind(record)}; {form}")
    return record


def _kind(record: object) -> str:
    """The type of a JSON value, in words."""
    kinds = {list: "a JSON list", str: "a JSON string", type(None): "null"}
    return kinds.get(type(record), f"the JSON value {str(record)[:20]}")


def _document_rows(text: PlainText) -> list[Row] | None:
    """The rows of a JSON document; None for JSON lines and anything else."""
    content = text.full_text()
    start = content.lstrip()[:1]
    rows: Any = None
    if start == "[":
        rows = _decoded(f"{text.name}:", content, _LIST_FORM)
    elif start == "{" and "\n{" not in content:
        try:
            document = _decoded(f"{text.name}:", content, _LIST_FORM)
        except InputError:
            return None
        rows = _rows_in(text.name, document)
    if rows is None:
        return None
    return [
        _as_object(row, f"{text.name}: row {number}", _LIST_FORM)
        for number, row in enumerate(rows, 1)
    ]


def _rows_in(name: str, document: Any) -> list[Any] | None:
    """The rows in an object, by the first layout that recognises it; None if none does."""
    for layout in _DOCUMENT_LAYOUTS:
        rows = layout(document)
        if rows is not None:
            return rows
    _check_no_lists_of_lists(name, document)
    lists = _lists_of_objects(document)
    if {"train", "test"} <= set(lists):
        raise InputError(
            f"{name} contains the parts {', '.join(map(repr, lists))}; write each to its own file"
        )
    if len(lists) == 1:
        return next(iter(lists.values()))
    for key in _USUAL_KEYS:
        if key in lists:
            return lists[key]
    inner = [value for value in document.values() if isinstance(value, dict)]
    has_lists = any(isinstance(value, list) for value in document.values())
    return _rows_in(name, inner[0]) if len(inner) == 1 and not has_lists else None


def _check_no_lists_of_lists(name: str, document: Mapping[str, Any]) -> None:
    """Refuse parts whose rows are lists, such as [text, label], which name no columns."""
    for key, rows in document.items():
        if isinstance(rows, list) and rows and all(isinstance(row, list) for row in rows[:5]):
            raise InputError(
                f"{name}: {key!r} contains lists such as {str(rows[0])[:60]}; write each row as an "
                'object with named fields, such as {"text": …, "label": …}, one part per file'
            )


def _lists_of_objects(document: Mapping[str, Any]) -> dict[str, list[Any]]:
    return {
        key: value
        for key, value in document.items()
        if isinstance(value, list) and any(isinstance(row, dict) for row in value[:5])
    }


def _split_frame(document: Mapping[str, Any]) -> list[Any] | None:
    """pandas' to_json(orient="split"): columns, and lists of values."""
    columns = document.get("columns")
    data = document.get("data")
    if not isinstance(columns, list) or not isinstance(data, list):
        return None
    if not all(isinstance(row, list) for row in data[:5]):
        return None
    return [dict(zip(columns, row, strict=False)) for row in data]


def _objects_by_name(document: Mapping[str, Any]) -> list[Any] | None:
    """pandas' to_json(orient="index"): more objects than any of them has fields."""
    objects = list(document.values())
    if not objects or not all(isinstance(value, dict) for value in objects):
        return None
    return objects if len(objects) > max(map(len, objects)) else None


def _columns_of_values(document: Mapping[str, Any]) -> list[Any] | None:
    """Columns: lists of one length, or pandas' to_json() with an object per column."""
    values = list(document.values())
    if all(isinstance(value, list) for value in values):
        columns = dict(document)
    elif all(isinstance(value, dict) for value in values):
        columns = {key: list(value.values()) for key, value in document.items()}
    else:
        return None
    has_objects = any(isinstance(cell, dict) for cells in columns.values() for cell in cells[:5])
    has_one_length = len({len(cells) for cells in columns.values()}) == 1
    if len(columns) < 2 or has_objects or not has_one_length:
        return None
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


_DOCUMENT_LAYOUTS: tuple[Callable[[Mapping[str, Any]], list[Any] | None], ...] = (
    _split_frame,
    _objects_by_name,
    _columns_of_values,
)
