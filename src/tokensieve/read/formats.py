"""One file → a table, with every fault named by row and line.

Of CSV Polars would fill short rows up, keep blank lines and accept stray quotes, so a file that may have any of these is parsed row
by row, which names the fault. Row numbers count the rows that hold data, from 1; a header and blank lines are not rows.
"""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl

from tokensieve.errors import InputError, one_line
from tokensieve.files import Folder
from tokensieve.read.plain import BLOCK, PACKED, PlainText, reading
from tokensieve.read.settings import SourceSettings
from tokensieve.read.table import BATCH, KNOWN_NAMES, MOST_COLUMNS, Batch, SourceTable


def kind_of(name: str) -> str:
    """The suffix of a readable file, without that of its compression; "" for any other file."""
    suffix = _unpacked_suffix(name)
    return suffix if suffix in KINDS else ""


def _unpacked_suffix(name: str) -> str:
    path = Path(name.lower())
    return (path.with_suffix("") if path.suffix in PACKED else path).suffix


def file_table(
    path: Path, settings: SourceSettings, name: str | None = None, rows: slice = slice(None)
) -> SourceTable:
    """The rows of a file (of Parquet some of them), called by its own name in messages if no other is given.

    A file that another process changes meanwhile is refused after the last row: two passes over it would not agree.
    """
    PlainText.check_regular(path)
    name = name or path.name

    def state() -> tuple[int, int, int]:
        with reading(name):
            found = path.stat()
        return found.st_ino, found.st_size, found.st_mtime_ns

    def check() -> None:
        if state() != before:
            raise InputError(f"{name} has changed while it was read; run the command again")

    before = state()
    if not before[1]:  # also those in /proc and /sys, of which some have no end
        raise InputError(f"{name} is empty; it has no rows")
    unpack = re.search(r"\.(zip|tar|tgz|7z|rar|tar\.(gz|zst|bz2|xz))$", path.name.lower())
    if unpack:
        command = {"zip": "unzip", "7z": "7z x", "rar": "unrar x"}.get(unpack[1], "tar -xf")
        raise InputError(
            f"{name} is an archive; unpack it first: {command} {shlex.quote(str(path))}"
        )
    ending = _unpacked_suffix(path.name)
    kind = KINDS.get(ending)
    if (
        kind
        and kind.method != "read_csv"
        and (settings.separator is not None or not settings.header)
    ):
        raise InputError(
            f"{name}: --separator and --no-header are for .csv and .tsv files: leave them out"
        )
    whole, folder = PlainText.unpacked(path, name, settings.limits)
    some = {} if rows == slice(None) else {"rows": rows}
    table = (
        kind.read(whole, name, settings, **some)
        if kind
        else _unnamed_table(ending, whole, name, settings)
    )
    table.kept.append(folder)
    table.check_same = check
    return table


def _unnamed_table(ending: str, path: Path, name: str, settings: SourceSettings) -> SourceTable:
    """A file whose name does not reveal its kind: fastText lines, JSON, or a table whose rows have the same number of fields."""
    unknown = InputError(
        f"{name}: cannot read {f'a {ending!r} file' if ending else 'a file without an extension'}; supported: "
        f"{' '.join(KINDS)} (each also with {' or '.join(PACKED)}), lines that begin with __label__, and tables in any text file"
    )
    if ending in (".xml", ".html", ".htm"):
        raise unknown
    text = PlainText(path, name, settings)
    start = _first_lines(text)
    if any(line.startswith("__label__") for line in start):
        return SourceTable.of_records(name, lambda: _fasttext_records(text), 1_000, text.notes)
    if start and start[0].lstrip()[:1] in ("{", "["):
        return _json_table(start[0].lstrip()[:1] == "[", path, name, settings)
    _check_table(name, start)
    even, mark, _ = _layout(start, settings, "\t")
    named = start and KNOWN_NAMES & {
        cell.strip().strip('"').lower() for cell in start[0].split(mark)
    }
    # commas are in most prose: only a header shows that they separate
    if settings.separator or (even and (named or (mark != "," and len(start) > 2))):
        return _delimited_table("\t", path, name, settings)
    raise unknown


def _fasttext_records(text: PlainText) -> Iterator[dict[str, Any]]:
    """Lines of fastText, "__label__a __label__b text"; a label alone is text, several are a list."""
    for line in text.lines():
        words = re.sub(r"^(__label__\S*\s*)+", "", line)
        labels = re.findall(r"__label__(\S*)", line.removesuffix(words))
        if line.strip():
            yield {"text": words.strip(), "label": labels if len(labels) != 1 else labels[0]}


# ---- CSV and TSV


def _delimited_table(usual: str, path: Path, name: str, settings: SourceSettings) -> SourceTable:
    text = PlainText(path, name, settings)
    start, header = _first_lines(text), settings.header
    _check_table(text.name, start)
    _, mark, skip = _layout(start, settings, usual)
    columns = [
        name.strip()
        for name in next(_delimited_records(text, mark, header, skip), [])[: MOST_COLUMNS + 1]
    ]
    if not columns:
        raise InputError(f"{text.name} is empty; the first line must name the columns")
    if not header or columns.count("") > 1:
        columns = [name * header or f"column {i}" for i, name in enumerate(columns, 1)]
    place = {name: i for i, name in enumerate(columns)}

    @cache
    def trusted() -> pl.LazyFrame | None:
        with one_line(f"{text.name} is not a readable CSV file"):
            return _polars_frame(text, mark, columns, header) if text.is_utf8 and not skip else None

    def read(names: Sequence[str]) -> Iterator[Batch]:
        frame = trusted()
        if frame is not None:
            yield from _guarded(lambda: frame, names, text.name, "CSV")
            return
        records = islice(_delimited_records(text, mark, header, skip), int(header), None)
        while rows := list(islice(records, BATCH)):
            yield {
                name: pl.Series([row[place[name]] for row in rows], dtype=pl.String)
                for name in names
            }

    detected = () if settings.separator or mark == usual else (f"separator {mark!r} (detected)",)
    title = [line.strip() for line in start[:skip] if line.strip() and not _EXCEL.match(line)]
    skipped = [f"lines before the header, skipped: {' / '.join(title)[:80]!r}"] if title else []
    return SourceTable(
        text.name, columns, read, first_line=header, notes=(*text.notes, *detected, *skipped)
    )


def _polars_frame(
    text: PlainText, mark: str, columns: Sequence[str], header: bool
) -> pl.LazyFrame | None:
    """The rows as Polars reads them, all of it text, if it reads them as strictly as `_delimited_records` does; else None.

    Polars itself refuses long rows and most broken quotes. Quotes are sound if each one that opens follows a separator, a line's
    end or a quote, and each one that closes precedes one. Then all rows have w fields if the separators outside quotes are (w − 1)
    times the rows, which need not be counted where no last field is empty.
    """
    try:  # the header is a row like any other: Polars need not understand it
        frame = pl.scan_csv(
            text.path, separator=mark, has_header=False, infer_schema=False, glob=False
        )
        own = frame.collect_schema().names()
        if len(own) != len(columns):
            return None
        last_empty = (pl.col(own[-1]).fill_null("") == "").sum().alias("empty")
        lengths = [
            pl.col(name).str.len_bytes().sum() for name in own
        ]  # Polars checks only what it parses
        rows, empty, *_ = (
            frame.select(pl.len(), last_empty, *lengths).collect(engine="streaming").row(0)
        )
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        return None
    separators, quotes = 0, 0
    content = np.memmap(text.path, np.uint8, "r")
    end = len(content) - 1
    neighbours = np.frombuffer(f'{mark}\n\r"'.encode(), np.uint8)
    for start in range(0, len(content), BLOCK):
        block = content[start : start + BLOCK]
        returns, places = (np.flatnonzero(block == ord(character)) + start for character in '\r"')
        # a carriage return alone ends a line for csv only; a line that fills a block may be one that does not end
        lone = (content[np.minimum(returns + 1, end)] != ord("\n")).any()
        if lone or (len(block) == BLOCK and not (block == ord("\n")).any()):
            return None
        closing = (np.arange(len(places)) + quotes) % 2 == 1
        before = np.where(places > 0, content[np.maximum(places - 1, 0)], ord("\n"))
        after = np.where(places < end, content[np.minimum(places + 1, end)], ord("\n"))
        if not np.isin(np.where(closing, after, before), neighbours).all():
            return None
        if empty:
            quoted = np.bitwise_xor.accumulate(block == ord('"')) ^ (quotes % 2 == 1)
            separators += int(((block == ord(mark)) & ~quoted).sum())
        quotes += len(places)
    # where there is one column, an empty row looks like an empty field
    if empty and (len(own) == 1 or separators != (len(own) - 1) * rows):
        return None
    texts = [
        pl.col(mine).fill_null("").alias(name) for mine, name in zip(own, columns, strict=True)
    ]
    return frame.select(texts).slice(int(header))


def _check_table(name: str, start: Sequence[str]) -> None:
    """Refuse text that is not a table of texts."""
    if start and re.match(r"[+-]?\d+(\.\d+)?( \d+:[\d.eE+-]+)+\s*$", start[0]):
        raise InputError(f"{name} contains numeric features (SVMlight), not text")
    if start and re.match(r"\s*<(!doctype|html|\?xml)", start[0].lower()):
        raise InputError(
            f"{name} is a page of HTML or XML, not a table; download the file itself, or export it as CSV"
        )


def _first_lines(text: PlainText) -> list[str]:
    """The first 50 lines, or those up to one that is not text."""
    start = list[str]()
    with suppress(PlainText.NotText), closing(text.lines()) as lines:
        for line in islice(lines, 50):
            start.append(line[:1_000_000])
            if sum(map(len, start)) > 1_000_000:
                break
    return start


_EXCEL = re.compile(
    r'\ufeff?"?sep=(.)"?\r?\n', re.IGNORECASE
)  # the first line of CSV that Excel is to open


def _layout(start: Sequence[str], settings: SourceSettings, usual: str) -> tuple[bool, str, int]:
    """Whether all rows have the same number of fields, more than one; the separator; and the lines before the header.

    The separator is the mark that splits the first rows into the same number of fields, the usual one before others. A line
    `sep=;` names it. Up to five lines with one field are a title where the line below them has a well-known name of a column
    and all rows have as many fields as that line.
    """
    excel = _EXCEL.match(start[0]) if start else None
    first = 1 if excel else 0
    given = settings.separator or (excel[1] if excel else None)
    marks = [given] if given else list(dict.fromkeys(usual + ",;\t|"))

    def rows_of(mark: str, skip: int) -> list[list[str]]:
        try:
            rows = [
                row
                for row in csv.reader(
                    io.StringIO("".join(start[skip:]), newline=""), delimiter=mark
                )
                if row
            ]
        except csv.Error:
            return []
        return (
            rows[:-1] if len(rows) > 2 and len(start) == 50 else rows
        )  # the last row may be cut off

    def score(mark: str, skip: int) -> tuple[Any, ...]:
        counts = [len(row) for row in rows_of(mark, skip)] or [1]
        even, several = len(set(counts)) == 1, counts[0] > 1
        return even and several, mark == usual and several, several, even, counts[0], mark == usual

    best = max(marks, key=lambda mark: score(mark, first))
    even = bool(score(best, first)[0])
    for skip in range(
        first + 1, 0 if even or not settings.header else min(first + 6, len(start) - 1)
    ):
        mark = max(marks, key=lambda mark: score(mark, skip))
        names = [{cell.strip().lower() for cell in row} for row in rows_of(mark, skip)[:1]]
        above = {cell.strip().lower() for line in start[:skip] for cell in line.split(mark)} - {""}
        short = all(
            sum(bool(cell.strip()) for cell in line.split(mark)) <= 1 for line in start[:skip]
        )
        if score(mark, skip)[0] and short and names[0] & KNOWN_NAMES and not above & KNOWN_NAMES:
            return True, mark, skip
    return even, best, first


def _delimited_records(text: PlainText, mark: str, header: bool, skip: int) -> Iterator[list[str]]:
    """The header, if there is one, then the rows, read strictly."""
    csv.field_size_limit(max(csv.field_size_limit(), 2**31 - 1))  # one document may have 50 MB
    where = ""
    with closing(text.lines(lambda line: f"{where} (line {line})")) as lines:
        reader = csv.reader(islice(lines, skip, None), delimiter=mark, strict=True)
        row, width = 1 - header, 0
        while True:
            first = skip + reader.line_num + 1
            where = f"{text.name}: row {row}" if row else f"{text.name}: header"
            try:
                fields = next(reader)
            except StopIteration:
                return
            except csv.Error as problem:
                said, inside = str(problem), 'inside quotes write each quote as ""'
                reason = f"broken quoting ({said}); put each field that contains quotes in double quotes; {inside}"
                if "end of data" in said:
                    reason = f"a double quote is opened and never closed; close it; {inside}"
                if "expected after" in said:
                    reason = f"stray characters after a closing double quote; {inside}"
                raise InputError(f"{where} (line {first}): {reason}") from None
            if not fields:
                continue
            if width and len(fields) != width:
                raise InputError(
                    f"{where} (line {first}): {len(fields)} fields where the {'header' if header else 'first row'} has {width}; "
                    "a field that contains the separator must be in double quotes"
                )
            width = len(fields)
            row += 1
            yield fields


# ---- JSON


def _json_table(array: bool, path: Path, name: str, settings: SourceSettings) -> SourceTable:
    """The objects of a document (`array`), with all their keys; or JSON lines, whose columns are the keys of the first thousand."""
    text = PlainText(path, name, settings)
    found = _json_array(text) if array else None
    if not array and "".join(_first_lines(text)[:2]).lstrip().startswith("["):
        with suppress(InputError):  # a line is named then
            found = _json_array(text)
    if found is not None:
        return SourceTable.of_records(text.name, lambda: iter(found), None, text.notes)
    form = "write one object {…} with named fields per line"

    def records() -> Iterator[dict[str, Any]]:
        for number, line in enumerate(text.lines(), 1):
            if not line.isspace():
                where = f"{text.name}: line {number}:"
                yield _object(_decoded(where, line, form), where, form)

    return SourceTable.of_records(text.name, records, 1_000, text.notes)


def _decoded(where: str, content: str, form: str) -> object:
    """The value that msgspec reads, or Python's reader, which also accepts NaN, lone surrogates and numbers of any size."""
    try:
        return msgspec.json.decode(content)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as problem:
            raise InputError(
                f"{where} is not JSON ({str(problem).partition(';')[0]}); {form}"
            ) from None


def _object(record: object, where: str, form: str) -> dict[str, Any]:
    if not isinstance(record, dict):
        raise InputError(f"{where} is a JSON {type(record).__name__}; {form}")
    return record


def _json_array(text: PlainText) -> list[dict[str, Any]] | None:
    """The rows of a JSON document (see `_json_rows`); None for JSON lines and anything else."""
    content, form = text.full_text(), "write a list of objects [{…}, …]"
    first = content.lstrip()[:1]
    if first == "[":
        records: Any = _decoded(f"{text.name}:", content, form)
    elif first == "{" and "\n{" not in content:
        try:
            whole = _decoded(f"{text.name}:", content, form)
        except InputError:
            return None
        records = _json_rows(text.name, whole)
    else:
        records = None
    return records and [
        _object(record, f"{text.name}: row {i}", form) for i, record in enumerate(records, 1)
    ]


def _json_rows(name: str, whole: Any) -> list[Any] | None:
    """The rows in an object: a list of objects under some key, at any depth; columns of values; or objects by their names."""
    lists = {key: value for key, value in whole.items() if isinstance(value, list)}
    maps = {key: value for key, value in whole.items() if isinstance(value, dict)}
    objects = {
        key: rows for key, rows in lists.items() if any(isinstance(row, dict) for row in rows[:5])
    }
    if {"columns", "data"} <= set(lists) and all(
        isinstance(row, list) for row in lists["data"][:5]
    ):  # pandas, "split"
        return [dict(zip(lists["columns"], row, strict=False)) for row in lists["data"]]
    if (
        len(maps) == len(whole) > max((len(value) for value in maps.values()), default=0)
    ):  # pandas, "index"
        return list(maps.values())
    columns: Mapping[str, list[Any]] = lists if len(lists) == len(whole) else {}
    columns = (
        {key: list(value.values()) for key, value in maps.items()}
        if len(maps) == len(whole)
        else columns
    )
    plain = not any(isinstance(x, dict) for values in columns.values() for x in values[:5])
    if len(columns) > 1 and len({len(values) for values in columns.values()}) == 1 and plain:
        return [
            dict(zip(columns, values, strict=True))
            for values in zip(*columns.values(), strict=True)
        ]
    if {"train", "test"} <= set(objects):
        raise InputError(
            f"{name} contains the parts {', '.join(map(repr, objects))}; write each to its own file"
        )
    usual = [
        key for key in ("data", "rows", "items", "examples", "records", "results") if key in objects
    ]
    found = usual[:1] if len(objects) > 1 else list(objects)
    if found:
        return objects[found[0]]
    return _json_rows(name, next(iter(maps.values()))) if len(maps) == 1 and not lists else None


# ---- Parquet, Arrow and workbooks


def _columnar_table(
    kind: str, path: Path, name: str, settings: SourceSettings, rows: slice = slice(None)
) -> SourceTable:
    def scan() -> pl.LazyFrame:
        if kind == "Parquet":
            whole = pl.scan_parquet(path, glob=False)
            return whole if rows == slice(None) else whole.slice(rows.start, rows.stop - rows.start)
        with path.open("rb") as file:
            stream = file.read(6) != b"ARROW1"
        return pl.read_ipc_stream(path).lazy() if stream else pl.scan_ipc(path, glob=False)

    def read(names: Sequence[str]) -> Iterator[Batch]:
        size = 0
        for batch in _guarded(scan, names, name, kind):
            # measured before it leaves Polars, where many cells may be one text
            size += sum(
                _bytes(values) for values in batch.values() if isinstance(values, pl.Series)
            )
            PlainText.check_expansion(name, path, size, settings.limits)
            yield batch

    with reading(name, kind), one_line(f"{name} is not a readable {kind} file"):
        columns = scan().collect_schema().names()
    return SourceTable(name, columns, read)


def _guarded(
    scan: Callable[[], pl.LazyFrame], names: Sequence[str], name: str, kind: str
) -> Iterator[Batch]:
    """Batches of a frame; standard error is silenced only while Polars works, not while a batch is used."""
    batches: Iterator[Batch] | None = None
    while True:
        with reading(name, kind), one_line(f"{name} is not a readable {kind} file"):
            batches = batches or SourceTable.frame_batches(scan(), names)
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


def _bytes(values: pl.Series) -> int:
    """The least memory that the values take, each on its own."""
    dtype, own = values.dtype, 8 * len(values)
    if isinstance(dtype, pl.Struct):
        return own + sum(_bytes(values.struct.field(field.name)) for field in dtype.fields)
    if isinstance(dtype, pl.List | pl.Array):
        return own + _bytes(values.explode())
    if dtype in (pl.Categorical, pl.Enum):
        found = values.value_counts()
        lengths = found.to_series(0).cast(pl.String).str.len_bytes().cast(pl.Int64)
        return own + int((lengths * found["count"]).sum())
    return own + (int(values.str.len_bytes().cast(pl.Int64).sum()) if dtype == pl.String else 0)


_WORKBOOK = (
    "4000000000",
    "60",
)  # bytes of address space, and seconds: a million rows of prose took 0.5 GB and 2 s


def _workbook_table(path: Path, name: str, settings: SourceSettings) -> SourceTable:
    """The first sheet of a workbook."""
    folder = Folder()
    child, out = Path(__file__).with_name("workbook.py"), folder.new()
    given = [
        sys.executable,
        "-P",
        str(child),
        str(path),
        str(out),
        *(_WORKBOOK if settings.limits else "00"),
    ]
    done = subprocess.run(given, capture_output=True)
    if done.returncode:  # Rust ends the process where it gets no memory
        raise InputError(
            f"reading {name} takes over 4 GB or over a minute; export it as CSV, or pass --no-limits"
        )
    sheets = json.loads(done.stdout)
    if isinstance(sheets, str):
        raise InputError(f"{name} is not a readable workbook: {sheets[:200]}")
    table = SourceTable.of_frame(pl.scan_ipc(out, glob=False), name)
    assert table is not None, "it is a frame"
    table.first_line = True
    table.kept.append(folder)
    table.notes = () if len(sheets) == 1 else (f"sheet {sheets[0]!r}, the first of {len(sheets)}",)
    return table


class _Kind(NamedTuple):
    """A kind of file."""

    read: Callable[..., SourceTable]
    method: str  # of Polars, to read it
    begins: bytes = b""  # by which standard input is recognised
    lists: bool = True  # whether a cell may be one
    remote: bool = True  # whether it is read from an address


_LINES = _Kind(partial(_json_table, False), "read_ndjson")
_ARROW = _Kind(partial(_columnar_table, "Arrow"), "read_ipc", b"ARROW1")
_SHEET = _Kind(_workbook_table, "read_excel", b"PK\x03\x04", lists=False, remote=False)
KINDS = {
    ".csv": _Kind(partial(_delimited_table, ","), "read_csv", lists=False),
    ".tsv": _Kind(partial(_delimited_table, "\t"), "read_csv", lists=False),
    ".jsonl": _LINES,
    ".ndjson": _LINES,
    ".json": _Kind(partial(_json_table, True), "read_json", remote=False),
    ".parquet": _Kind(partial(_columnar_table, "Parquet"), "read_parquet", b"PAR1"),
    ".arrow": _ARROW,
    ".feather": _ARROW,
    ".ipc": _ARROW,
    ".xlsx": _SHEET,
    ".xls": _SHEET,
    ".ods": _SHEET._replace(method="read_ods"),
}
