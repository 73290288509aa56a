"""One file → a table, with every fault named by row and line.

Polars reads CSV, Parquet, Arrow and Excel files. Where it refuses a CSV file, or where it may have read one less strictly than we
promise (it fills short rows up, keeps blank lines and takes a lone carriage return for text), Python's `csv` reads the file row by
row and names the fault. JSON lines are decoded line by line, since Polars turns numbers into text where a column mixes types.

Row numbers count the rows that hold data, from 1; a header and blank lines are not rows. Where a file has lines, an
error names the line too.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import os
import zipfile
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

import msgspec
import numpy as np
import polars as pl

from tokensieve.errors import InputError
from tokensieve.text.encodings import codec_of, detected_encoding
from tokensieve.text.settings import SourceSettings
from tokensieve.text.spill import Folder, storing
from tokensieve.text.table import BATCH, Batch, Table, frame_batches, record_table

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
PACKED = (".gz", ".zst")
MARKS = ",;\t|"  # separators that are recognised
BLOCK = 2**22
LONGEST = 100_000_000  # bytes of a line or cell; the longest real documents (books, logs) have about a tenth of it
EXPANSION, LARGE = (
    200,
    500_000_000,
)  # ordinary text packs 3 to 20 times; smaller results are harmless whatever the ratio
_BINARY = {  # how files begin that are no text, whatever their name says
    b"PK\x03\x04": "a workbook or ZIP archive: name a workbook .xlsx, or unpack the archive",
    b"\xd0\xcf\x11\xe0": "a workbook of old Excel: name it .xls",
    b"PAR1": "Parquet: name it .parquet",
    b"ARROW1": "Arrow: name it .arrow",
    b"\x1f\x8b": "gzip: name it .gz, after the name of its kind",
    b"\x28\xb5\x2f\xfd": "zstd: name it .zst, after the name of its kind",
    b"%PDF": "PDF: export its text as CSV",
    b"\x89PNG": "a picture",
    b"SQLite format 3": "a database: export the table as CSV",
}


def check_regular(path: Path) -> None:
    """Make sure that reading comes to an end.

    Raises:
        InputError: the path leads to a device, a pipe or a socket.
    """
    if path.exists() and not path.is_file():
        raise InputError(
            f"{str(path)[-80:]!r} is no regular file (a device, pipe or socket): save its content in a file"
        )


def kind_of(name: str) -> str:
    """The suffix of a file that can be read, without that of packing; "" for any other."""
    lower = name.lower()
    for packed in PACKED:
        lower = lower.removesuffix(packed)
    suffix = Path(lower).suffix
    return suffix if suffix in KINDS else ""


def file_table(path: Path, settings: SourceSettings, name: str | None = None) -> Table:
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


@contextmanager
def reading(name: str, kind: str = "Parquet") -> Iterator[None]:
    """Turn what the operating system, gzip, zstd or Polars say into one line.

    Args:
        name: of the file.
        kind: what Polars takes it for.
    """
    import zstandard

    try:
        yield
    except UnicodeError as problem:  # encodings of more than one byte a character, where bad bytes cannot be marked
        raise InputError(f"{name}: is not in the encoding given ({problem}); check --encoding") from None
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise InputError(f"{name}: is damaged or no gzip file; make or download it again") from None
    except zstandard.ZstdError:
        raise InputError(f"{name}: is damaged or no zstd file; make or download it again") from None
    except OSError as problem:
        raise InputError(f"cannot read {name!r}: {problem.strerror or problem}") from None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as problem:
        reason = (str(problem).splitlines() or ["damaged"])[0][:200]
        raise InputError(f"{name}: is no readable {kind} file ({reason})") from None


# ---- bytes


def _open_bytes(path: Path) -> IO[bytes]:
    suffix = path.suffix.lower()
    opened: Any = None
    if suffix == ".gz":
        opened = gzip.open(path)  # noqa: SIM115  # the caller closes it
        return cast("IO[bytes]", opened)
    if suffix == ".zst":
        import zstandard

        opened = zstandard.open(path, "rb")
        return cast("IO[bytes]", opened)
    return path.open("rb")


def _blocks(path: Path, name: str, limits: bool) -> Iterator[bytes]:
    """The bytes of a file, unpacked.

    Raises:
        InputError: it expands beyond what real text does.
    """
    size, total = max(path.stat().st_size, 1), 0
    with _open_bytes(path) as file:
        while block := file.read(BLOCK):
            total += len(block)
            if limits and path.suffix.lower() in PACKED and total > LARGE and total > EXPANSION * size:
                raise InputError(
                    f"{name}: expands more than {EXPANSION}-fold, to over {total / 1e9:.1f} GB: if it is meant to, give --no-limits"
                )
            yield block


def unpacked(path: Path, name: str, folder: Folder, limits: bool) -> Path:
    """A packed file, unpacked into a folder.

    Raises:
        InputError: it is damaged, or expands beyond what real text does.
    """
    out = folder.new()
    with reading(name), out.open("wb") as file:
        for block in _blocks(path, name, limits):
            with storing():
                file.write(block)
    return out


class _BadText(Exception):
    """A line that is no text: (line number, what is wrong); whoever counts rows adds the row."""


class PlainText:
    """A text file as UTF-8 on disk: itself where it is that, else a copy that goes with this object.

    Attributes:
        name: for messages.
        path: of the UTF-8 text; of the file as it is where a byte is at fault.
        encoding: of `path`.
        sound: every byte was looked at and is text: no NUL, no broken encoding.
        lone_returns: whether a carriage return stands without a line feed.
        notes: what was detected.
    """

    def __init__(self, path: Path, name: str, settings: SourceSettings, packed: bool = False) -> None:
        self.name, self.path, self.limits = name, path, settings.limits
        self.encoding, self.notes = settings.encoding or "utf-8", tuple[str, ...]()
        self.sound, self.lone_returns = False, False
        codec = codec_of(self.encoding)
        with reading(name):
            start = next(_blocks(path, name, self.limits), b"")
            kind = next((kind for begins, kind in _BINARY.items() if start.startswith(begins)), None)
            if kind is not None:
                raise InputError(f"{name}: is no text but {kind}")
            if codec != "utf-8-sig":
                self._take(_recoded(_blocks(path, name, self.limits), codec), copy=True)
                return
            odd = self._take(_blocks(path, name, self.limits), copy=packed)
            found = detected_encoding(start, odd) if settings.encoding is None and not self.sound else None
            if found is not None:
                self._take(_recoded(_blocks(path, name, self.limits), codec_of(found)), copy=True)
                self.notes = (f"encoding {found} (detected)",) if self.sound else ()

    def _take(self, blocks: Iterator[bytes], copy: bool) -> list[bytes]:
        """Look at every byte up to the first fault, and copy if asked; returns lines around a byte that is not UTF-8."""
        decoder, block = codecs.getincrementaldecoder("utf-8")(), b""
        line, returns, pairs, last = 0, 0, 0, b""
        folder = Folder() if copy else None
        with storing():
            out = (folder.new() if folder else Path(os.devnull)).open("wb")
        with closing(out):
            try:
                for block in blocks:
                    if b"\0" in block:
                        return []
                    line = self._line_length(line, block)
                    returns, pairs = returns + block.count(b"\r"), pairs + (last + block).count(b"\r\n")
                    last = block[-1:] if block.endswith(b"\r") else b""
                    if not block.isascii() or decoder.getstate()[0]:
                        decoder.decode(block)
                    if copy:
                        with storing():
                            out.write(block)
                decoder.decode(b"", final=True)
            except UnicodeError:
                return [part for part in block.split(b"\n") if not part.isascii()]
        if folder:
            self._folder, self.path, self.encoding = folder, Path(out.name), "utf-8"
        self.sound, self.lone_returns = True, returns > pairs
        return []

    def _line_length(self, before: int, block: bytes) -> int:
        """Bytes of the last line so far, `before` of them in earlier blocks.

        Raises:
            InputError: a line does not end.
        """
        first, last = block.find(b"\n"), block.rfind(b"\n")
        if self.limits and before + (len(block) if first < 0 else first) > LONGEST:
            raise InputError(_endless(self.name))
        return before + len(block) if last < 0 else len(block) - last - 1

    def lines(self) -> Generator[str]:
        """The lines with their endings, each checked to be text.

        Raises:
            _BadText: a line is not.
        """
        # surrogateescape, not strict: strict fails for a whole block of lines, and the bad line could not be named
        with reading(self.name), _open_bytes(self.path) as raw:
            text = io.TextIOWrapper(raw, codec_of(self.encoding), "surrogateescape", newline="")
            number, line = 1, ""
            while part := text.readline(BLOCK):
                if "\0" in part:
                    raise _BadText(
                        number, "there is a NUL byte, so this is no text; remove it or export the file again"
                    )
                line += part
                if not part.endswith(("\n", "\r")) and len(part) == BLOCK:
                    if self.limits and len(line) > LONGEST:
                        raise InputError(_endless(self.name))
                    continue
                if not line.isascii():
                    _check_decoded(number, line, self.encoding)
                yield line
                number, line = number + 1, ""
            if line:
                yield line

    def whole(self) -> str:
        """All of it.

        Raises:
            InputError: it is not text.
        """
        try:
            return "".join(self.lines())
        except _BadText as problem:
            line, reason = problem.args
            raise InputError(f"{self.name}: line {line}: {reason}") from None


def _endless(name: str) -> str:
    return f"{name}: a line has more than {LONGEST / 1e6:,.0f} MB: if it is one document, give --no-limits"


def _recoded(blocks: Iterator[bytes], codec: str) -> Iterator[bytes]:
    """Text of any encoding as UTF-8."""
    decoder = codecs.getincrementaldecoder(codec)()
    for block in blocks:
        yield decoder.decode(block).encode()
    yield decoder.decode(b"", final=True).encode()


def _check_decoded(number: int, line: str, encoding: str) -> None:
    try:
        line.encode("utf-8")
    except UnicodeEncodeError as problem:
        byte = ord(line[problem.start]) & 0xFF
        reason = f"byte 0x{byte:02x} is not {encoding} text; give the right encoding, for example --encoding latin-1"
        raise _BadText(number, reason) from None


# ---- CSV and TSV


def _delimited_table(text: PlainText, settings: SourceSettings, usual: str) -> Table:
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
    return Table(text.name, columns, read, first_line=header, notes=(*text.notes, *detected))


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
    except _BadText:
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
            except _BadText as problem:
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


def _json_table(text: PlainText) -> Table:
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
    except _BadText as problem:
        bad, reason = problem.args
        raise InputError(f"{text.name}: line {bad}: {reason}") from None


def _decoded(where: str, content: str, form: str) -> Any:
    """What Python's reader makes of it, which also takes NaN, lone surrogates and numbers of any size."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as problem:
        raise InputError(f"{where}: is not JSON ({problem}); write {form}") from None


def _json_array_table(text: PlainText) -> Table:
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


def _columnar_table(path: Path, name: str, suffix: str, folder: Folder | None, limits: bool) -> Table:
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

    return Table(name, columns, read)


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


def _workbook_table(path: Path, name: str, limits: bool) -> Table:
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
    return Table(name, frame.columns, lambda names: frame_batches(frame, names), first_line=True, notes=notes)
