"""One file → a table, with every fault named by row and line.

Polars reads CSV, Parquet, Arrow and Excel files. Where it refuses a CSV file, or where it may have read one less strictly than we
promise (it fills short rows up, keeps blank lines and takes a lone carriage return for text), Python's `csv` reads the file row by
row and names the fault. JSON lines are decoded line by line, since Polars turns numbers into text where a column mixes types.

Row numbers count the rows that hold data, from 1; a header and blank lines are not rows. Where a file has lines, an
error names the line too.
"""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from tokensieve.errors import InputError
from tokensieve.text.plain_text import (
    BLOCK,
    EXPANSION,
    LARGE,
    LONGEST,
    PACKED,
    BadText,
    PlainText,
    check_regular,
    reading,
    unpacked,
)
from tokensieve.text.settings import SourceSettings
from tokensieve.text.spill import Folder
from tokensieve.text.table import BATCH, Batch, SourceTable, frame_batches, record_table

KINDS = (
    ".csv",
    ".tsv",
    ".jsonl",
    ".ndjson",
    ".json",
    ".parquet",
    ".arrow",
    ".feather",
    ".ipc",
    ".xlsx",
    ".xls",
    ".ods",
)
MARKS = ",;\t|"  # separators that are recognised


def kind_of(name: str) -> str:
    """The suffix of a file that can be read, without that of packing; "" for any other."""
    lower = name.lower()
    for packed in PACKED:
        lower = lower.removesuffix(packed)
    suffix = Path(lower).suffix
    return suffix if suffix in KINDS else ""


def file_table(path: Path, settings: SourceSettings, name: str | None = None) -> SourceTable:
    """The rows of a file.

    Args:
        path: of the file.
        settings: how it is read.
        name: what to call it in messages; its own name if None.

    Raises:
        InputError: its kind is unknown, it cannot be read, or a setting does not apply to it.
    """
    name, suffix = name or path.name, kind_of(path.name)
    if not suffix:
        ending = Path(path.name.lower().removesuffix(".gz")).suffix
        raise InputError(
            f"{name}: cannot read a file {f'of kind {ending!r}' if ending else 'without an extension'}; "
            f"understood are {' '.join(KINDS)} (each also with .gz or .zst)"
        )
    if suffix not in (".csv", ".tsv") and (settings.separator is not None or not settings.header):
        raise InputError(f"{name}: --separator and --no-header are for .csv and .tsv files: leave them out")
    check_regular(path)
    packed = path.suffix.lower() in PACKED
    if suffix in (".csv", ".tsv", ".jsonl", ".ndjson", ".json"):
        text = PlainText(path, name, settings, packed)
        if suffix in (".csv", ".tsv"):
            return _delimited_table(text, settings, "," if suffix == ".csv" else "\t")
        return _json_array_table(text) if suffix == ".json" else _json_table(text)
    folder = None
    if packed:
        folder = Folder()
        path = unpacked(path, name, folder, settings.limits)
    if suffix in (".xlsx", ".xls", ".ods"):
        return _workbook_table(path, name, settings.limits)
    return _columnar_table(path, name, suffix, folder, settings.limits)


def _delimited_table(text: PlainText, settings: SourceSettings, usual: str) -> SourceTable:
    mark = settings.separator or _detected_separator(text, usual)
    top = next(_delimited_records(text, mark, settings.header), None)
    if top is None:
        raise InputError(f"{text.name}: is empty; the first line must name the columns")
    header = settings.header
    columns = [name.strip() for name in top] if header else [f"column {i}" for i in range(1, len(top) + 1)]
    place = {name: i for i, name in enumerate(columns)}
    trusted: list[bool] = []

    def read(names: Sequence[str]) -> Iterator[Batch]:
        if not trusted:
            trusted.append(_polars_agrees(text, mark, len(top)))
        if trusted[0]:
            frame, own = _scanned(text, mark)
            wanted = frame.select(pl.col(own[place[name]]).fill_null("").alias(name) for name in names)
            yield from frame_batches(wanted.slice(int(header)), names)
            return
        records = islice(_delimited_records(text, mark, header), int(header), None)
        while rows := list(islice(records, BATCH)):
            yield {name: pl.Series([row[place[name]] for row in rows], dtype=pl.String) for name in names}

    detected = () if settings.separator or mark == usual else (f"separator {mark!r} (detected)",)
    return SourceTable(text.name, columns, read, first_line=header, notes=(*text.notes, *detected))


def _scanned(text: PlainText, mark: str) -> tuple[pl.LazyFrame, list[str]]:
    """The file as Polars reads it, all of it text, the header a row like any other; and Polars' names of the columns."""
    frame = pl.scan_csv(text.path, separator=mark, has_header=False, infer_schema=False, glob=False)
    return frame, frame.collect_schema().names()


def _polars_agrees(text: PlainText, mark: str, width: int) -> bool:
    """Whether Polars reads the file as strictly as `_delimited_records`: see the top of this module.

    Polars itself refuses long rows and most broken quotes. Quotes are sound if each one that opens follows a separator, a line's
    end or a quote, and each one that closes precedes one. Then all rows have `width` fields if the separators outside quotes are
    (width − 1) times the rows.
    """
    if not text.sound or text.lone_returns or not mark.isascii() or width > 1_000:
        return False
    try:
        frame, own = _scanned(text, mark)
        if len(own) != width:
            return False
        empty = (pl.col(own[-1]).fill_null("") == "").sum().alias("empty")
        all_of_it = [
            pl.col(name).str.len_bytes().sum().alias(f"bytes of {name}") for name in own
        ]  # Polars checks what it parses
        rows, empty, *_ = frame.select(pl.len(), empty, *all_of_it).collect(engine="streaming").row(0)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        return False
    if width == 1 and empty:  # an empty row or an empty field
        return False
    separators, quotes = 0, 0
    content = np.memmap(text.path, np.uint8, "r")
    ends = np.frombuffer(f'{mark}\n\r"'.encode(), np.uint8)
    for start in range(0, len(content), BLOCK):
        block = content[start : start + BLOCK]
        places = np.flatnonzero(block == ord('"')) + start
        closing = (np.arange(len(places)) + quotes) % 2 == 1
        before = np.where(places > 0, content[np.maximum(places - 1, 0)], ord("\n"))
        after = np.where(places < len(content) - 1, content[np.minimum(places + 1, len(content) - 1)], ord("\n"))
        if not np.isin(np.where(closing, after, before), ends).all():
            return False
        if empty:
            quoted = np.bitwise_xor.accumulate(block == ord('"')) ^ (quotes % 2 == 1)
            separators += int(((block == ord(mark)) & ~quoted).sum())
        quotes += len(places)
    return not empty or bool(separators == (width - 1) * rows)


def _detected_separator(text: PlainText, usual: str) -> str:
    """The mark that splits the first rows into the same number of fields, the usual one before others."""
    try:
        start = "".join(islice(text.lines(), 50))
    except BadText:
        return usual
    widths: dict[str, tuple[bool, int]] = {}
    for mark in dict.fromkeys(usual + MARKS):
        counts = []
        try:
            counts = [len(row) for row in csv.reader(io.StringIO(start[:1_000_000], newline=""), delimiter=mark) if row]
        except csv.Error:
            counts = []
        top = counts[0] if counts else 1
        # the last row may be cut off
        widths[mark] = (len(set(counts[:-1] or counts)) == 1, top)
    if widths[usual][1] > 1:
        others = [mark for mark, (even, top) in widths.items() if even and top > 1]
        return usual if widths[usual][0] or not others else max(others, key=lambda mark: widths[mark][1])
    return max(widths, key=lambda mark: (widths[mark][1] > 1, widths[mark][0], widths[mark][1], mark == usual))


def _delimited_records(text: PlainText, mark: str, header: bool) -> Iterator[list[str]]:
    """The header, if there is one, then the rows, read strictly."""
    csv.field_size_limit(max(csv.field_size_limit(), 2**31 - 1))  # one document may have 50 MB
    with closing(text.lines()) as lines:
        reader = csv.reader(lines, delimiter=mark, strict=True)
        row, width = 1 - header, 0
        while True:
            first = reader.line_num + 1
            where = f"{text.name}: row {row}" if row else f"{text.name}: header"
            try:
                fields = next(reader)
            except StopIteration:
                return
            except csv.Error as problem:
                raise InputError(f"{where} (line {first}): {_quoting_problem(str(problem))}") from None
            except BadText as problem:
                line, reason = problem.args
                raise InputError(f"{where} (line {line}): {reason}") from None
            if not fields:
                continue
            if width and len(fields) != width:
                top = "header" if header else "first row"
                raise InputError(
                    f"{where} (line {first}): {len(fields)} fields where the {top} has {width}; "
                    "a field that holds the separator must be in double quotes"
                )
            width = len(fields)
            row += 1
            yield fields


def _quoting_problem(said: str) -> str:
    if "end of data" in said:
        return 'a double quote is opened and never closed; close it, or write a quote inside a quoted field as ""'
    if "expected after" in said:
        return 'stray characters after a closing double quote; inside a quoted field write each quote as ""'
    return f'broken quoting ({said}); write each field that holds quotes in double quotes, with inner quotes as ""'


# ---- JSON


def _json_table(text: PlainText) -> SourceTable:
    """JSON lines; its columns are the keys of the first thousand."""
    return record_table(text.name, lambda: _json_records(text), 1_000, text.notes)


def _json_records(text: PlainText) -> Iterator[dict[str, Any]]:
    decode = msgspec.json.Decoder().decode
    try:
        with closing(text.lines()) as lines:
            for number, line in enumerate(lines, 1):
                if line.isspace():
                    continue
                try:
                    record = decode(line)
                except (msgspec.MsgspecError, RecursionError, UnicodeError):
                    record = _decoded(f"{text.name}: line {number}", line, "one object {…} per line")
                if type(record) is not dict:
                    raise InputError(
                        f"{text.name}: line {number}: is a JSON {type(record).__name__}; write one object {{…}} with named "
                        "fields per line"
                    )
                yield record
    except BadText as problem:
        bad, reason = problem.args
        raise InputError(f"{text.name}: line {bad}: {reason}") from None


def _decoded(where: str, content: str, form: str) -> Any:
    """What Python's reader makes of it, which also takes NaN, lone surrogates and numbers of any size."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as problem:
        raise InputError(f"{where}: is not JSON ({problem}); write {form}") from None


def _json_array_table(text: PlainText) -> SourceTable:
    """A list of objects, also under one key (`{"data": […]}`); columns of values; or JSON lines under this name."""
    name, content = text.name, text.whole()
    form = "a list of objects [{…}, …]"
    records: Any = None
    if content.lstrip()[:1] == "[":
        records = _loaded(name, content, form)
    elif content.lstrip()[:1] == "{" and "\n{" not in content:
        try:
            records = _loaded(name, content, form)
        except InputError:
            return _json_table(text)
        lists = {key: value for key, value in records.items() if isinstance(value, list)}
        maps = {key: list(value.values()) for key, value in records.items() if isinstance(value, dict)}
        columns = lists if len(lists) == len(records) else maps if len(maps) == len(records) else {}
        if len(columns) > 1 and len({len(values) for values in columns.values()}) == 1 and not _objects(columns):
            size = len(next(iter(columns.values())))
            records = [{key: values[i] for key, values in columns.items()} for i in range(size)]
        elif len(lists) == 1 and _objects(lists):
            records = next(iter(lists.values()))
        else:
            return _json_table(text)
    else:
        return _json_table(text)
    for row, record in enumerate(records, 1):
        if not isinstance(record, dict):
            raise InputError(f"{name}: row {row} is a JSON {type(record).__name__}; write {form}")
    return record_table(name, lambda: iter(records), None, text.notes)


def _loaded(name: str, content: str, form: str) -> Any:
    try:
        return msgspec.json.decode(content)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return _decoded(name, content, form)


def _objects(columns: dict[str, list[Any]]) -> bool:
    return any(isinstance(value, dict) for values in columns.values() for value in values[:5])


# ---- Parquet, Arrow and workbooks


def _columnar_table(path: Path, name: str, suffix: str, folder: Folder | None, limits: bool) -> SourceTable:
    kind = "Parquet" if suffix == ".parquet" else "Arrow"

    def scan() -> pl.LazyFrame:
        assert folder is None or folder.path.exists()  # keeps an unpacked copy alive
        if kind == "Parquet":
            return pl.scan_parquet(path, glob=False)
        with path.open("rb") as file:
            stream = file.read(6) != b"ARROW1"
        return pl.read_ipc_stream(path).lazy() if stream else pl.scan_ipc(path, glob=False)

    with reading(name, kind):
        columns = scan().collect_schema().names()

    def read(names: Sequence[str]) -> Iterator[Batch]:
        with reading(name, kind):
            if limits:
                _check_expansion(scan(), names, path, name)
            yield from frame_batches(scan(), names)

    return SourceTable(name, columns, read)


def _check_expansion(frame: pl.LazyFrame, names: Sequence[str], path: Path, name: str) -> None:
    """Refuse a file of few bytes whose cells, by a look at three rows, would fill the memory.

    Raises:
        InputError: it expands beyond what real text does.
    """
    texts = [n for n, dtype in frame.select(names).collect_schema().items() if dtype == pl.String]
    if not texts:
        return
    rows = frame.select(pl.len()).collect().item()
    sizes = [
        frame.select(texts).slice(at, 1).collect().select(pl.sum_horizontal(pl.all().str.len_bytes())).sum().item() or 0
        for at in {0, rows // 2, max(rows - 1, 0)}
    ]
    size, packed = rows * sum(sizes) / len(sizes), max(path.stat().st_size, 1)
    if max(sizes) > LONGEST or (size > LARGE and size > EXPANSION * packed):
        raise InputError(
            f"{name}: expands more than {EXPANSION}-fold, to about {size / 1e9:.1f} GB: if it is meant to, give --no-limits"
        )


def _workbook_table(path: Path, name: str, limits: bool) -> SourceTable:
    """The first sheet of a workbook."""
    if limits and zipfile.is_zipfile(path):
        with reading(name), zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        if size > LARGE and size > EXPANSION * path.stat().st_size:
            raise InputError(f"{name}: expands more than {EXPANSION}-fold: if it is meant to, give --no-limits")
    import fastexcel

    try:
        sheets = fastexcel.read_excel(str(path)).sheet_names
        frame = pl.read_excel(path, engine="calamine", sheet_id=1, infer_schema_length=None)
    except Exception as problem:  # the library raises errors of its own for every kind of bad file
        reason = (str(problem).splitlines() or ["damaged"])[0][:200]
        raise InputError(f"{name}: is no readable workbook ({reason})") from None
    notes = () if len(sheets) == 1 else (f"sheet {sheets[0]!r}, the first of {len(sheets)}",)
    return SourceTable(name, frame.columns, lambda names: frame_batches(frame, names), first_line=True, notes=notes)
