"""One file becomes a table, by its ending or, without a known one, by its first lines."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tokensieve.errors import InputError
from tokensieve.read.columnar import ALL_ROWS, arrow_table, parquet_table
from tokensieve.read.columns import KNOWN_NAMES
from tokensieve.read.delimited import check_table, delimited_table, first_lines, table_layout
from tokensieve.read.fasttext import fasttext_records, prefixes_of
from tokensieve.read.json_files import SAMPLE_LINES, json_lines_table, json_table
from tokensieve.read.plain import PACKINGS, PlainText, reading
from tokensieve.read.settings import SourceSettings
from tokensieve.read.table import SourceTable
from tokensieve.read.workbooks import workbook_table

UNPACK_COMMANDS = {"zip": "unzip", "7z": "7z x", "rar": "unrar x"}  # the others: tar -xf


class FileKind(NamedTuple):
    """A kind of file.

    Attributes:
        read: path, name and settings → its table.
        polars_method: the function of Polars that reads it, for the command that converts a file
            which workers of a cluster cannot divide; empty if there is none.
        begins: by which standard input is recognised.
        is_text: whether its lines are text.
        is_remote: whether it is read from an address.
    """

    read: Callable[..., SourceTable]
    polars_method: str = ""
    begins: bytes = b""
    is_text: bool = False
    is_remote: bool = True


_CSV = FileKind(partial(delimited_table, ","), "read_csv", is_text=True)
_JSON_LINES = FileKind(json_lines_table, "read_ndjson", is_text=True)
_ARROW = FileKind(arrow_table, "read_ipc", b"ARROW1")
_WORKBOOK = FileKind(workbook_table, "read_excel", b"PK\x03\x04", is_remote=False)
KINDS = {
    ".csv": _CSV,
    ".tsv": _CSV._replace(read=partial(delimited_table, "\t")),
    ".jsonl": _JSON_LINES,
    ".ndjson": _JSON_LINES,
    ".json": FileKind(json_table, "read_json", is_remote=False),
    ".parquet": FileKind(parquet_table, "read_parquet", b"PAR1"),
    ".arrow": _ARROW,
    ".feather": _ARROW,
    ".ipc": _ARROW,
    ".xlsx": _WORKBOOK,
    ".xls": _WORKBOOK,
    ".ods": _WORKBOOK._replace(polars_method="read_ods"),
}


def kind_of(name: str) -> str:
    """The suffix of a readable file, without that of its compression; "" for any other file."""
    suffix = _unpacked_suffix(name)
    return suffix if suffix in KINDS else ""


def _unpacked_suffix(name: str) -> str:
    path = Path(name.lower())
    return path.with_suffix("").suffix if path.suffix in PACKINGS else path.suffix


class _FileState(NamedTuple):
    """What changes if another process writes a file."""

    inode: int
    size: int
    changed: int

    @classmethod
    def of(cls, path: Path, name: str) -> _FileState:
        with reading(name):
            status = path.stat()
        return cls(status.st_ino, status.st_size, status.st_mtime_ns)


def _check_options(kind: FileKind | None, name: str, settings: SourceSettings) -> None:
    """Refuse options of tables or of workbooks for a file of another kind."""
    has_separator = kind is None or kind.polars_method == "read_csv"
    has_table_option = settings.separator is not None or not settings.header or not settings.quotes
    if has_table_option and not has_separator:
        raise InputError(
            f"{name}: --separator, --no-header and --no-quotes are for .csv and .tsv files: "
            "leave them out"
        )
    if settings.sheet is not None and (kind is None or kind.begins != _WORKBOOK.begins):
        raise InputError(f"{name}: --sheet is for workbooks: leave it out")


def file_table(
    path: Path, settings: SourceSettings, name: str | None = None, rows: slice = ALL_ROWS
) -> SourceTable:
    """The rows of a file.

    A file that another process changes meanwhile is refused after the last row, because two passes
    over it would not agree.

    Args:
        path: the file.
        settings: how it is read.
        name: what messages call it; its own name if None.
        rows: read only these, of Parquet.
    """
    PlainText.check_regular(path)
    name = name or path.name
    state = _FileState.of(path, name)
    if not state.size:  # also those in /proc and /sys, of which some have no end
        raise InputError(f"{name} is empty; it has no rows")
    _check_no_archive(path, name)
    suffix = _unpacked_suffix(path.name)
    kind = KINDS.get(suffix)
    _check_options(kind, name, settings)
    unpacked, folder = PlainText.unpacked(path, name, settings.limits)
    if kind is None:
        table = _unnamed_table(suffix, unpacked, name, settings)
    elif rows == ALL_ROWS:
        table = kind.read(unpacked, name, settings)
    else:
        table = parquet_table(unpacked, name, settings, rows)

    def check_unchanged() -> None:
        if _FileState.of(path, name) != state:
            raise InputError(f"{name} has changed while it was read; run the command again")

    table.keep_alive.append(folder)
    table.check_unchanged = check_unchanged
    return table


def _check_no_archive(path: Path, name: str) -> None:
    archive = re.search(r"\.(zip|tar|tgz|7z|rar|tar\.(gz|zst|bz2|xz))$", path.name.lower())
    if archive:
        command = UNPACK_COMMANDS.get(archive[1], "tar -xf")
        raise InputError(
            f"{name} is an archive; unpack it first: {command} {shlex.quote(str(path))}"
        )


def _unnamed_table(suffix: str, path: Path, name: str, settings: SourceSettings) -> SourceTable:
    """A file whose name does not reveal its kind: fastText, JSON, or a table with even rows."""
    if suffix in (".xml", ".html", ".htm"):
        raise _unknown_kind(name, suffix)
    text = PlainText(path, name, settings)
    start = first_lines(text)
    prefixes = prefixes_of(start)
    if prefixes:
        return SourceTable.of_records(
            name, lambda: fasttext_records(text, prefixes), SAMPLE_LINES, text.notes
        )
    first_character = start[0].lstrip()[:1] if start else ""
    if first_character == "{":
        return json_lines_table(path, name, settings)
    if first_character == "[":
        return json_table(path, name, settings)
    check_table(name, start)
    if settings.separator or _is_table(start, settings):
        return delimited_table("\t", path, name, settings)
    raise _unknown_kind(name, suffix)


def _is_table(start: Sequence[str], settings: SourceSettings) -> bool:
    """Whether all rows have as many fields; commas are in most prose, so they need a header."""
    layout = table_layout(start, settings, "\t")
    if not layout.is_even:
        return False
    header = [cell.strip().strip('"').lower() for cell in start[0].split(layout.separator)]
    has_known_name = not KNOWN_NAMES.isdisjoint(header)
    return has_known_name or (layout.separator != "," and len(start) > 2)


def _unknown_kind(name: str, suffix: str) -> InputError:
    description = f"a {suffix!r} file" if suffix else "a file without an extension"
    return InputError(
        f"{name}: cannot read {description}; supported: {' '.join(KINDS)} "
        f"(each also with {' or '.join(PACKINGS)}), lines that begin with __label__, "
        "and tables in any text file"
    )
