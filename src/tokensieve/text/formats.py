"""One file → a table: CSV, TSV, JSON lines, JSON arrays and Parquet, each also compressed, with every fault named by row and line.

Row numbers count the rows that hold data, from 1; a header and blank lines are not rows. Where a file has lines, an
error names the line too.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, cast

import polars as pl

from tokensieve.errors import InputError
from tokensieve.text.settings import SourceSettings
from tokensieve.text.table import BATCH, Row, Table, polars_rows

KEY_ROWS = 1_000  # JSON lines from whose keys the columns are made


def check_regular(path: Path) -> None:
    """Make sure that reading comes to an end.

    Raises:
        InputError: the path leads to a device, a pipe or a socket.
    """
    if path.exists() and not path.is_file():
        raise InputError(
            f"{str(path)[-80:]!r} is no regular file (a device, pipe or socket): save its content in a file"
        )


def file_table(path: Path, how: SourceSettings) -> Table:
    """The rows of a file.

    Raises:
        InputError: its kind is unknown, it cannot be read, or a setting does not apply to it.
    """
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    if suffix not in FORMATS:
        raise InputError(
            f"{path.name}: cannot read a file {f'of kind {suffix!r}' if suffix else 'without an extension'}; "
            f"understood are {' '.join(FORMATS)} (each also with .gz)"
        )
    if suffix not in (".csv", ".tsv") and (how.separator is not None or not how.header):
        raise InputError(f"{path.name}: --separator and --no-header are for .csv and .tsv files: leave them out")
    return FORMATS[suffix](path, how)


def _is_gzip(path: Path) -> bool:
    return path.name.lower().endswith(".gz")


def _open_bytes(path: Path) -> io.BufferedReader:
    # a GzipFile has all that is used of a BufferedReader: read, peek, close
    return cast("io.BufferedReader", gzip.open(path)) if _is_gzip(path) else path.open("rb")


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what the operating system, gzip or Polars say into one line."""
    try:
        yield
    except UnicodeError as problem:  # encodings of more than one byte a character, where bad bytes cannot be marked
        raise InputError(f"{path.name}: is not in the encoding given ({problem}); check --encoding") from None
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise InputError(f"{path.name}: is damaged or no gzip file; make or download it again") from None
    except OSError as problem:
        raise InputError(f"cannot read {str(path)!r}: {problem.strerror or problem}") from None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as problem:
        raise InputError(f"{path.name}: is no readable Parquet file ({str(problem).splitlines()[0]})") from None


BINARY = {  # how files begin that are no text, whatever their name says
    b"PK\x03\x04": "a workbook or ZIP archive: export the sheet as CSV, or unpack it",
    b"\xd0\xcf\x11\xe0": "a workbook of old Excel: export the sheet as CSV",
    b"PAR1": "Parquet: name it .parquet",
    b"\x1f\x8b": "gzip: name it .gz, after the name of its kind",
    b"%PDF": "PDF: export its text as CSV",
    b"\x89PNG": "a picture",
    b"SQLite format 3": "a database: export the table as CSV",
}


class _BadText(Exception):
    """A line that is no text: (line number, what is wrong); whoever counts rows adds the row."""


def _lines(path: Path, encoding: str) -> Generator[str]:
    """The lines of a text file with their endings, each checked to be text in the given encoding."""
    codec = _codec(encoding)
    with reading(path), _open_bytes(path) as raw:
        start = raw.peek(8)
        kind = next((kind for begins, kind in BINARY.items() if start.startswith(begins)), None)
        if kind is not None:
            raise InputError(f"{path.name}: is no text but {kind}")
        if codec == "utf-8-sig" and start[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise InputError(f"{path.name}: is UTF-16 text; give --encoding utf-16, or save it as UTF-8")
        # surrogateescape, not strict: strict fails for a whole block of lines, and the bad line could not be named
        with io.TextIOWrapper(raw, codec, "surrogateescape", newline="") as text:
            for number, line in enumerate(text, 1):
                if "\0" in line:
                    raise _BadText(
                        number, "there is a NUL byte, so this is no text; remove it or export the file again"
                    )
                if not line.isascii():
                    _check_decoded(number, line, encoding)
                yield line


def whole_text(path: Path, encoding: str) -> str:
    """All of a text file.

    Raises:
        InputError: it cannot be read, or is not text in this encoding.
    """
    try:
        return "".join(_lines(path, encoding))
    except _BadText as problem:
        line, reason = problem.args
        raise InputError(f"{path}: line {line}: {reason}") from None


def _codec(encoding: str) -> str:
    try:
        io.TextIOWrapper(io.BytesIO(), encoding)
    except LookupError:
        raise InputError(f"there is no text encoding {encoding!r}; try utf-8, latin-1 or cp1252") from None
    return "utf-8-sig" if encoding.lower().replace("_", "-") in ("utf-8", "utf8") else encoding


def _check_decoded(number: int, line: str, encoding: str) -> None:
    try:
        line.encode("utf-8")
    except UnicodeEncodeError as problem:
        byte = ord(line[problem.start]) & 0xFF
        reason = f"byte 0x{byte:02x} is not {encoding} text; give the right encoding, for example --encoding latin-1"
        raise _BadText(number, reason) from None


def _delimited_records(path: Path, how: SourceSettings, delimiter: str) -> Iterator[list[str]]:
    """The header, if there is one, then the rows, of a CSV or TSV file read strictly."""
    csv.field_size_limit(max(csv.field_size_limit(), 2**31 - 1))  # one document may have 50 MB
    with closing(_lines(path, how.encoding or "utf-8")) as lines:
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        row, width = 1 - how.header, 0
        while True:
            first = reader.line_num + 1
            where = f"{path.name}: row {row}" if row else f"{path.name}: header"
            try:
                fields = next(reader)
            except StopIteration:
                return
            except csv.Error as problem:
                raise InputError(f"{where} (line {first}): {_quoting_problem(str(problem))}") from None
            except _BadText as problem:
                line, reason = problem.args
                raise InputError(f"{where} (line {line}): {reason}") from None
            if not fields:
                continue
            if width and len(fields) != width:
                top = "header" if how.header else "first row"
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


def _delimited_table(usual: str) -> Callable[[Path, SourceSettings], Table]:
    def table(path: Path, how: SourceSettings) -> Table:
        delimiter = how.separator or usual
        first = next(_delimited_records(path, how, delimiter), None)
        if first is None:
            raise InputError(f"{path.name}: is empty; the first line must name the columns")

        def read(which: Sequence[int]) -> Iterator[Row]:
            for fields in islice(_delimited_records(path, how, delimiter), int(how.header), None):
                yield tuple([fields[i] for i in which])

        names = [name.strip() for name in first] if how.header else [f"column {i}" for i in range(1, len(first) + 1)]
        return Table(path.name, tuple(names), read, first_line=how.header)

    return table


def _json_records(path: Path, encoding: str) -> Iterator[dict[str, Any]]:
    try:
        with closing(_lines(path, encoding)) as lines:
            for number, line in enumerate(lines, 1):
                if not line.isspace():
                    yield _json_object(f"{path.name}: line {number}", line)
    except _BadText as problem:
        bad, reason = problem.args
        raise InputError(f"{path.name}: line {bad}: {reason}") from None


def _json_object(where: str, line: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as problem:
        raise InputError(f"{where}: is not JSON ({problem}); write one object {{…}} per line") from None
    if not isinstance(record, dict):
        raise InputError(
            f"{where}: is a JSON {type(record).__name__}; write one object {{…}} with named fields per line"
        )
    return record


def _json_table(path: Path, how: SourceSettings) -> Table:
    return _record_table(path.name, lambda: _json_records(path, how.encoding or "utf-8"), KEY_ROWS)


def _json_array_table(path: Path, how: SourceSettings) -> Table:
    """A list of objects; or JSON lines under this name."""
    content = whole_text(path, how.encoding or "utf-8")
    if not content.lstrip().startswith("["):
        return _json_table(path, how)
    try:
        records = json.loads(content)
    except (ValueError, RecursionError) as problem:
        raise InputError(f"{path.name}: is not JSON ({problem}); write a list of objects [{{…}}, …]") from None
    for row, record in enumerate(records, 1):
        if not isinstance(record, dict):
            raise InputError(
                f"{path.name}: row {row} is a JSON {type(record).__name__}; write a list of objects [{{…}}, …]"
            )
    return _record_table(path.name, lambda: iter(records), None)


def _record_table(name: str, records: Callable[[], Iterator[dict[str, Any]]], sample: int | None) -> Table:
    columns = tuple(dict.fromkeys(key for record in islice(records(), sample) for key in record))
    if not columns:
        raise InputError(f"{name}: has no rows; write JSON objects {{…}} with named fields")

    def read(which: Sequence[int]) -> Iterator[Row]:
        names = [columns[i] for i in which]
        for record in records():
            yield tuple([record.get(name) for name in names])

    return Table(name, columns, read, records)


def _parquet_table(path: Path, how: SourceSettings) -> Table:
    def scan() -> pl.LazyFrame:
        if not _is_gzip(path):
            return pl.scan_parquet(path, glob=False)
        with _open_bytes(path) as raw:
            return pl.scan_parquet(io.BytesIO(raw.read()))

    with reading(path):
        columns = tuple(scan().collect_schema().names())

    def read(which: Sequence[int]) -> Iterator[Row]:
        with reading(path):
            wanted = scan().select([pl.col(columns[i]) for i in which])
            yield from polars_rows(wanted.collect_batches(chunk_size=BATCH, lazy=True))

    return Table(path.name, columns, read)


FORMATS: dict[str, Callable[[Path, SourceSettings], Table]] = {
    ".csv": _delimited_table(","),
    ".tsv": _delimited_table("\t"),
    ".jsonl": _json_table,
    ".ndjson": _json_table,
    ".json": _json_array_table,
    ".parquet": _parquet_table,
}
