"""A copy of a source: its rows with all their fields, and how they are written again.

The commands that change data (`mask`, `balance`) read rows here, change some of their values, and
write all the others as they were.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokensieve.errors import InputError
from tokensieve.read.chats import has_role, text_key, written_chat
from tokensieve.read.table import SourceTable, is_number, written_object
from tokensieve.read.values import cell_text

if TYPE_CHECKING:
    import polars as pl

    from tokensieve.read.opened import OpenedSource

Row = dict[str, Any]
WRITTEN_SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet")
# Parquet stores each level of nesting as columns of its own, so a value nested a thousand deep
# takes minutes; people's chat messages and annotations are nested less than ten deep.
MAX_PARQUET_DEPTH = 30


@dataclass(frozen=True)
class CopyTarget:
    """Where a copy is written.

    Attributes:
        folder: the folder to write into.
        name: the name of the copy in it.
        is_folder: whether the user named the folder rather than the file.
    """

    folder: Path
    name: str
    is_folder: bool

    @property
    def path(self) -> Path:
        """The path of the copy."""
        return self.folder / self.name

    def beside(self, suffix: str) -> str:
        """The name of another file of the same format, such as `masked-wrong-label.csv`."""
        path = Path(self.name)
        return f"{path.stem}-{suffix}{path.suffix}"

    def check_is_free(self, sources: Sequence[str], overwrite: bool) -> None:
        """Raise an `InputError` if the copy would replace a file.

        It never replaces one of its sources, and another file only with `--overwrite`.
        """
        if not self.path.exists():
            return
        for source in sources:
            if Path(source).exists() and self.path.samefile(source):
                raise InputError(
                    f"--out {str(self.path)!r} is the source itself and would overwrite it; name "
                    "another file"
                )
        if not overwrite:
            raise InputError(
                f"{str(self.path)!r} exists already; name another file with --out, or replace it "
                "with --overwrite"
            )


def copy_target(out: Path, source: str, stem: str) -> CopyTarget:
    """The file that `--out` names for a copy, or `stem` in the source's format inside the folder
    that it names."""
    if out.suffix.lower() in WRITTEN_SUFFIXES and not out.is_dir():
        return CopyTarget(out.parent, out.name, is_folder=False)
    if re.fullmatch(r"\.[A-Za-z]{2,7}", out.suffix) and not out.is_dir():
        raise InputError(
            f"--out {out.name!r} must end in .csv, .tsv, .jsonl or .parquet, or name a folder"
        )
    from tokensieve.read.formats import kind_of

    kind = kind_of(source)
    if kind in (".ndjson", ".json"):
        suffix = ".jsonl"
    elif kind in WRITTEN_SUFFIXES:
        suffix = str(kind)
    else:
        suffix = ".csv"
    return CopyTarget(out, f"{stem}{suffix}", is_folder=True)


def parts_of(opened: OpenedSource) -> dict[str, SourceTable]:
    """The tables of a source, by the `split` that their rows get; "" if there is one table."""
    if opened.test is None:
        return {"": opened.train}
    return {"train": opened.train, "test": opened.test}


def part_rows(part: str, table: SourceTable) -> list[Row]:
    """The rows of one table, with a column `split` if the source has two."""
    rows = list(table.records())
    if not part:
        return rows
    return [row | {"split": part} for row in rows]


@dataclass(frozen=True)
class TextCell:
    """A text in a row: `holder[key]`, where the holder is the row, or an object or a list in it."""

    row: int
    holder: Any
    key: str | int


def text_cells(rows: Sequence[Row], column: str, role: str | None) -> Iterator[TextCell]:
    """Yield every text of a column.

    A row has one in the column itself or in what is nested in it (`data.body`), one in each text of
    a list, or one in each of its chat messages, or in those of a role. Messages and objects that
    are written in a cell are taken apart in place.
    """
    for number, row in enumerate(rows):
        for cell in _cells_at(number, row, column):
            text = cell.holder[cell.key]
            cell.holder[cell.key] = written_chat(text) or text
            yield from _cells_in(cell, role)


def _cells_at(row: int, value: Any, path: str) -> Iterator[TextCell]:
    """The cells at a path of keys; of a list, in each entry. The longest keys come first.

    In a conversation, a key may be the role whose messages are meant.
    """
    if isinstance(value, list):
        is_chat = text_key(value) is not None
        for place, entry in enumerate(value):
            if is_chat and has_role(entry, path):
                yield TextCell(row, value, place)
            else:
                yield from _cells_at(row, entry, path)
    elif isinstance(value, dict) and path in value:
        yield TextCell(row, value, path)
    elif isinstance(value, dict):
        ends = [at for at in range(len(path), 0, -1) if path[at : at + 1] == "."]
        outer = next((path[:at] for at in ends if path[:at] in value), None)
        if outer is not None:
            value[outer] = _taken_apart(value[outer])
            yield from _cells_at(row, value[outer], path[len(outer) + 1 :])


def _taken_apart(value: Any) -> Any:
    """A conversation or an object that is written in a cell; any other value as it is."""
    return written_chat(value) or written_object(value) or value


def _cells_in(cell: TextCell, role: str | None) -> Iterator[TextCell]:
    """The texts in a cell: in a list, a message, or a part of a multimodal message."""
    value = cell.holder[cell.key]
    if isinstance(value, list):
        for place in range(len(value)):
            yield from _cells_in(TextCell(cell.row, value, place), role)
        return
    if not isinstance(value, dict):
        yield cell
        return
    key = text_key([value])
    if key is not None and (role is None or has_role(value, role)):
        yield from _cells_in(TextCell(cell.row, value, key), role)
    elif key is None and isinstance(value.get("text"), str):
        yield TextCell(cell.row, value, "text")
    elif key is None and not isinstance(cell.holder, list):
        yield cell  # an object where a text belongs, which `cell_texts` refuses


def cell_texts(source: str, cells: Sequence[TextCell], column: str) -> pl.Series:
    """The texts of cells, null where a row has none.

    Raises:
        InputError: a cell holds something else than text.
    """
    from tokensieve.read.values import text_series

    values = [cell.holder[cell.key] for cell in cells]
    has_texts = any(isinstance(value, str) for value in values)
    texts = []
    for cell, value in zip(cells, values, strict=True):
        text = value
        if has_texts and is_number(value):
            text = str(value)
        if not (text is None or isinstance(text, str)):
            raise InputError(
                f"{source}: row {cell.row + 1}: {column!r} is {text!r:.40}, not text; choose "
                "another with --text"
            )
        texts.append(text)
    return text_series(texts)


def write_rows(rows: Sequence[Row], name: str, source: str) -> bytes:
    """The rows as a file in the format that the ending of `name` says.

    Raises:
        InputError: Parquet cannot hold the rows.
    """
    suffix = Path(name).suffix.lower()
    if suffix == ".parquet":
        return _parquet(rows, source)
    out = io.StringIO(newline="")
    if suffix == ".jsonl":
        out.writelines(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows)
    else:
        columns = list(dict.fromkeys(key for row in rows for key in row))
        separator = "\t"
        if suffix == ".csv":
            separator = ","
        writer = csv.DictWriter(out, columns, delimiter=separator)
        writer.writeheader()
        writer.writerows({key: _csv_cell(value) for key, value in row.items()} for row in rows)
    return out.getvalue().encode(errors="replace")


def _csv_cell(value: object) -> object:
    """A value as a cell: lists and objects as JSON, which every command reads again."""
    if isinstance(value, list | dict):
        return cell_text(value)
    return value


def _parquet(rows: Sequence[Row], source: str) -> bytes:
    """Parquet with the types of the source's columns, if the source is Parquet too."""
    import polars as pl

    is_parquet = Path(source).suffix.lower() == ".parquet" and Path(source).is_file()
    types = {}
    if is_parquet:
        types = dict(pl.read_parquet_schema(source))
    flat = [{key: _without_depth(value) for key, value in row.items()} for row in rows]
    columns = dict.fromkeys(key for row in flat for key in row)
    schema: Mapping[str, Any] | None = None
    if types:
        schema = {key: types.get(key) for key in columns}
    binary = io.BytesIO()
    try:
        frame = pl.DataFrame(flat, schema=schema, infer_schema_length=None)
        frame.write_parquet(binary)
    except (pl.exceptions.PolarsError, TypeError, OverflowError, ValueError) as problem:
        reason = str(problem).splitlines()[0][:100]
        raise InputError(f"{source} cannot be written as Parquet: {reason}; use .jsonl") from None
    return binary.getvalue()


def _without_depth(value: Any) -> Any:
    """The value, as JSON text if it is nested too deeply for Parquet."""
    if _is_deeper_than(value, MAX_PARQUET_DEPTH):
        return json.dumps(value, default=str)
    return value


def _is_deeper_than(value: object, limit: int) -> bool:
    children = value
    if isinstance(value, dict):
        children = list(value.values())
    if not isinstance(children, list):
        return False
    return limit == 0 or any(_is_deeper_than(child, limit - 1) for child in children)
