"""One file → a table, with every fault named by row and line.

Polars reads all kinds but JSON, of which it turns numbers into text where a column mixes types. Of CSV it would fill short rows up,
keep blank lines and accept stray quotes, so a file that may have any of these is parsed row by row, which names the fault.

Row numbers count the rows that hold data, from 1; a header and blank lines are not rows. Errors name the line too, if there is one.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import zipfile
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cache
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

import msgspec
import numpy as np
import polars as pl

from tokensieve.errors import InputError, one_line
from tokensieve.text.settings import SourceSettings
from tokensieve.text.spill import Folder
from tokensieve.text.table import BATCH, Batch, SourceTable

KINDS = ".csv .tsv .jsonl .ndjson .json .parquet .arrow .feather .ipc .xlsx .xls .ods".split()
PACKED = (".gz", ".zst")
BLOCK = 2**22
LONGEST = 100_000_000  # bytes of a line or cell; the longest real documents (books, logs) have about a tenth of it
EXPANSION = 200  # ordinary text packs 3 to 20 times
LARGE = 500_000_000  # bytes; smaller results are harmless whatever the ratio
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


def kind_of(name: str) -> str:
    """The suffix of a file that can be read, without that of packing; "" for any other."""
    suffix = Path(name.lower().removesuffix(".gz").removesuffix(".zst")).suffix
    return suffix if suffix in KINDS else ""


def file_table(path: Path, settings: SourceSettings, name: str | None = None) -> SourceTable:
    """The rows of a file, called by its own name in messages if no other is given.

    Raises:
        InputError: its kind is unknown, it cannot be read, or a setting does not apply to it.
    """
    _check_regular(path)
    name, suffix = name or path.name, kind_of(path.name)
    if not suffix:
        ending = Path(path.name.lower().removesuffix(".gz")).suffix
        raise InputError(
            f"{name}: cannot read a file {f'of kind {ending!r}' if ending else 'without an extension'}; "
            f"supported: {' '.join(KINDS)} (each also with .gz or .zst); rename a table of text to .csv or .tsv"
        )
    if suffix not in (".csv", ".tsv") and (settings.separator is not None or not settings.header):
        raise InputError(f"{name}: --separator and --no-header are for .csv and .tsv files: leave them out")
    if suffix in (".csv", ".tsv"):
        return _delimited_table(PlainText(path, name, settings), settings, "," if suffix == ".csv" else "\t")
    if suffix in (".jsonl", ".ndjson", ".json"):
        text = PlainText(path, name, settings)
        return _json_table(text, _json_array(text) if suffix == ".json" else None)
    folder = Folder() if path.suffix.lower() in PACKED else None
    if folder is not None:
        path = PlainText.unpacked(path, name, folder, settings.limits)
    if suffix in (".xlsx", ".xls", ".ods"):
        return _workbook_table(path, name, settings.limits)
    table = _columnar_table(path, name, "Parquet" if suffix == ".parquet" else "Arrow", settings.limits)
    table.kept = folder
    return table


def _check_regular(path: Path) -> None:
    """Make sure that reading comes to an end."""
    if path.exists() and not path.is_file():
        raise InputError(f"{str(path)[-80:]!r} is not a regular file but a device, pipe or socket: copy it to a file")


@contextmanager
def reading(name: str, kind: str = "Parquet") -> Iterator[None]:
    """Turn what the operating system, gzip, zstd or Polars (which takes a file for some kind) say into one line."""
    import zstandard

    try:
        yield
    except UnicodeError as problem:  # encodings of more than one byte a character, where bad bytes cannot be marked
        raise InputError(f"{name}: is not in the encoding given ({problem}); check --encoding") from None
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise InputError(f"{name}: is damaged or not a gzip file; create or download it again") from None
    except zstandard.ZstdError:
        raise InputError(f"{name}: is damaged or not a zstd file; create or download it again") from None
    except OSError as problem:
        raise InputError(f"cannot read {name!r}: {problem.strerror or problem}") from None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as problem:
        reason = (str(problem).splitlines() or ["damaged"])[0][:200]
        raise InputError(f"{name}: is not a readable {kind} file ({reason})") from None


def _check_expansion(name: str, path: Path, size: float, limits: bool) -> None:
    """Refuse a file that expands beyond what real text does."""
    if limits and size > LARGE and size > EXPANSION * path.stat().st_size:
        raise InputError(
            f"{name}: expands more than {EXPANSION}-fold, to over {size / 1e9:.1f} GB: if that is intended, pass --no-limits"
        )


# ---- text


class _BadText(Exception):
    """A line that is no text: (line number, what is wrong); whoever counts rows adds the row."""


class PlainText:
    """A text file, unpacked (`path`), in the encoding given or, if none is, the one detected; `notes` say what was detected."""

    def __init__(self, path: Path, name: str, settings: SourceSettings) -> None:
        self.name, self.path, self._limits, self.notes = name, path, settings.limits, tuple[str, ...]()
        _check_regular(path)
        encoding = self._encoding = settings.encoding or "utf-8"
        if path.suffix.lower() in PACKED:
            self._folder = Folder()  # lives as long as this object
            self.path = PlainText.unpacked(path, name, self._folder, self._limits)
        try:
            io.TextIOWrapper(io.BytesIO(), self._encoding)
        except (LookupError, ValueError):
            raise InputError(f"unknown text encoding {encoding[:40]!r}; try utf-8, latin-1 or cp1252") from None
        with reading(name):
            with self.path.open("rb") as file:
                start = file.read(64)
            kind = next((kind for begins, kind in _BINARY.items() if start.startswith(begins)), None)
            if kind is not None:
                raise InputError(f"{name}: is not text but {kind}")
            odd = self._undecodable("utf-8") if encoding.lower() == "utf-8" else []
            self.is_utf8 = odd is None
            found = None if settings.encoding or odd is None else _detected_encoding(start, odd)
            if found is not None and self._undecodable(found) is None:
                self._encoding, self.notes = found, (f"encoding {found} (detected)",)

    @staticmethod
    def unpacked(path: Path, name: str, folder: Folder, limits: bool) -> Path:
        """A file packed by gzip or zstd, unpacked into a folder, unless it expands beyond what real text does."""
        import zstandard

        out, total = folder.new(), 0
        with reading(name):
            opened = gzip.open(path) if path.suffix.lower() == ".gz" else zstandard.open(path, "rb")  # noqa: SIM115
            with cast("IO[bytes]", opened) as packed, out.open("wb") as file:
                while block := packed.read(BLOCK):
                    total += len(block)
                    _check_expansion(name, path, total, limits)
                    with Folder.storing():
                        file.write(block)
        return out

    def _undecodable(self, encoding: str) -> list[bytes] | None:
        """Lines around the first bytes that are not of the encoding; none around a NUL byte; None where all are text."""
        decoder = codecs.getincrementaldecoder(encoding)()
        block = b""
        with self.path.open("rb") as file:
            try:
                for block in iter(lambda: file.read(BLOCK), b""):
                    if "\0" in decoder.decode(block):
                        return []
                decoder.decode(b"", final=True)
            except UnicodeError:
                return [part for part in block.split(b"\n") if not part.isascii()]
        return None

    def lines(self) -> Generator[str]:
        """The lines with their endings, each checked to be text (else `_BadText`)."""
        codec = "utf-8-sig" if self._encoding.lower().replace("_", "-") in ("utf-8", "utf8") else self._encoding
        # surrogateescape, not strict: strict fails for a whole block of lines, and the bad line could not be named
        with reading(self.name), self.path.open("r", encoding=codec, errors="surrogateescape", newline="") as text:
            number, line = 1, ""
            while part := text.readline(BLOCK):
                if "\0" in part:
                    raise _BadText(number, "it contains a NUL byte, so it is not text; export the file again")
                line += part
                if not part.endswith(("\n", "\r")) and len(part) == BLOCK:
                    if self._limits and len(line) > LONGEST:
                        raise InputError(
                            f"{self.name}: a line has more than {LONGEST / 1e6:,.0f} MB: if it is one document, pass "
                            "--no-limits"
                        )
                    continue
                if not line.isascii():
                    try:
                        line.encode("utf-8")
                    except UnicodeEncodeError as problem:
                        byte = f"byte 0x{ord(line[problem.start]) & 0xFF:02x} is not {self._encoding} text"
                        raise _BadText(number, f"{byte}; give the right one, such as --encoding latin-1") from None
                yield line
                number, line = number + 1, ""
            if line:
                yield line

    def whole(self) -> str:
        """All of it."""
        try:
            return "".join(self.lines())
        except _BadText as problem:
            line, reason = problem.args
            raise InputError(f"{self.name}: line {line}: {reason}") from None


def _detected_encoding(start: bytes, lines: Sequence[bytes]) -> str | None:
    """The encoding of a file by its beginning and some lines beyond ASCII; None where it is damaged UTF-8, or nothing is likely."""
    if start.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):  # first: its mark begins with that of UTF-16
        return "utf-32"
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    odd = []
    for line in lines[:2000]:
        try:
            line.decode()
        except UnicodeDecodeError:
            odd.append(line)
    if len(odd) <= min(len(lines), 2000) / 2:
        return None
    from charset_normalizer import from_bytes

    # those that spreadsheets and old systems write; between others a guess would be too uncertain
    likely = "cp1252 cp1250 cp1251 cp1253 cp1254 cp1255 cp1256 shift_jis euc_jp gb18030 big5 euc_kr".split()
    # a signature of the file would be looked for in vain, as these are lines out of its middle
    best = from_bytes(b"\n".join(odd)[:50_000], cp_isolation=likely, preemptive_behaviour=False).best()
    if best is None:
        return None
    # Western European text is by far the most frequent: take it where it is as plausible
    try:
        western = b"\n".join(odd).decode("cp1252")
    except UnicodeDecodeError:
        return best.encoding
    beyond = [c for c in western if not c.isascii()]
    plain = sum(c.isascii() and c.isalpha() for c in western)
    plausible = sum(map(str.isalpha, beyond)) >= 0.5 * len(beyond) and plain > 3 * len(beyond)
    return "cp1252" if plausible else best.encoding


# ---- CSV and TSV


def _delimited_table(text: PlainText, settings: SourceSettings, usual: str) -> SourceTable:
    mark, header = settings.separator or _detected_separator(text, usual), settings.header
    columns = [name.strip() for name in next(_delimited_records(text, mark, header), [])]
    if not columns:
        raise InputError(f"{text.name}: is empty; the first line must name the columns")
    if not header or columns.count("") > 1:
        columns = [name * header or f"column {i}" for i, name in enumerate(columns, 1)]
    place = {name: i for i, name in enumerate(columns)}

    @cache
    def trusted() -> pl.LazyFrame | None:
        return _polars_frame(text, mark, columns, header) if text.is_utf8 else None

    def read(names: Sequence[str]) -> Iterator[Batch]:
        frame = trusted()
        if frame is not None:
            with reading(text.name, "CSV"):
                yield from SourceTable.frame_batches(frame, names)
            return
        records = islice(_delimited_records(text, mark, header), int(header), None)
        while rows := list(islice(records, BATCH)):
            yield {name: pl.Series([row[place[name]] for row in rows], dtype=pl.String) for name in names}

    detected = () if settings.separator or mark == usual else (f"separator {mark!r} (detected)",)
    return SourceTable(text.name, columns, read, first_line=header, notes=(*text.notes, *detected))


def _polars_frame(text: PlainText, mark: str, columns: Sequence[str], header: bool) -> pl.LazyFrame | None:
    """The rows as Polars reads them, all of it text, if it reads them as strictly as `_delimited_records` does; else None.

    Polars itself refuses long rows and most broken quotes. Quotes are sound if each one that opens follows a separator, a line's
    end or a quote, and each one that closes precedes one. Then all rows have w fields if the separators outside quotes are (w − 1)
    times the rows, which need not be counted where no last field is empty.
    """
    try:  # the header is a row like any other: Polars need not understand it
        frame = pl.scan_csv(text.path, separator=mark, has_header=False, infer_schema=False, glob=False)
        own = frame.collect_schema().names()
        if len(own) != len(columns):
            return None
        last_empty = (pl.col(own[-1]).fill_null("") == "").sum().alias("empty")
        lengths = [pl.col(name).str.len_bytes().sum() for name in own]  # Polars checks only what it parses
        rows, empty, *_ = frame.select(pl.len(), last_empty, *lengths).collect(engine="streaming").row(0)
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
    texts = [pl.col(mine).fill_null("").alias(name) for mine, name in zip(own, columns, strict=True)]
    return frame.select(texts).slice(int(header))


def _detected_separator(text: PlainText, usual: str) -> str:
    """The mark that splits the first rows into the same number of fields, the usual one before others."""
    try:
        with closing(text.lines()) as lines:
            start = "".join(islice(lines, 50))[:1_000_000]
    except _BadText:
        return usual
    scores = {}
    for mark in dict.fromkeys(usual + ",;\t|"):
        try:
            counts = [len(row) for row in csv.reader(io.StringIO(start, newline=""), delimiter=mark) if row] or [1]
        except csv.Error:
            counts = [1]
        even, several = len(set(counts[:-1] or counts)) == 1, counts[0] > 1  # the last row may be cut off
        scores[mark] = (even and several, mark == usual and several, several, even, counts[0], mark == usual)
    return max(scores, key=lambda mark: scores[mark])


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
                said = str(problem)
                reason = f'broken quoting ({said}); put each field that contains quotes in double quotes, with inner quotes as ""'
                if "end of data" in said:
                    reason = 'a double quote is opened and never closed; close it, or write a quote inside a quoted field as ""'
                if "expected after" in said:
                    reason = 'stray characters after a closing double quote; inside quotes write each quote as ""'
                raise InputError(f"{where} (line {first}): {reason}") from None
            except _BadText as problem:
                line, reason = problem.args
                raise InputError(f"{where} (line {line}): {reason}") from None
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


def _json_table(text: PlainText, array: list[dict[str, Any]] | None) -> SourceTable:
    """The objects of an array, with all their keys; or JSON lines, whose columns are the keys of the first thousand."""
    if array is not None:
        return SourceTable.of_records(text.name, lambda: iter(array), None, text.notes)
    form = "write one object {…} with named fields per line"

    def records() -> Iterator[dict[str, Any]]:
        try:
            with closing(text.lines()) as lines:
                for number, line in enumerate(lines, 1):
                    if not line.isspace():
                        where = f"{text.name}: line {number}:"
                        yield _object(_decoded(where, line, form), where, form)
        except _BadText as problem:
            bad, reason = problem.args
            raise InputError(f"{text.name}: line {bad}: {reason}") from None

    return SourceTable.of_records(text.name, records, 1_000, text.notes)


def _decoded(where: str, content: str, form: str) -> object:
    """What msgspec makes of it, or Python's reader, which also takes NaN, lone surrogates and numbers of any size."""
    try:
        return msgspec.json.decode(content)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as problem:
            raise InputError(f"{where} is not JSON ({problem}); {form}") from None


def _object(record: object, where: str, form: str) -> dict[str, Any]:
    if not isinstance(record, dict):
        raise InputError(f"{where} is a JSON {type(record).__name__}; {form}")
    return record


def _json_array(text: PlainText) -> list[dict[str, Any]] | None:
    """A list of objects, also under one key (`{"data": […]}`), or columns of values; None for anything else."""
    content, form = text.whole(), "write a list of objects [{…}, …]"
    first = content.lstrip()[:1]
    if first == "[":
        records = _decoded(f"{text.name}:", content, form)
    elif first == "{" and "\n{" not in content:
        try:
            whole = cast("dict[str, Any]", _decoded(f"{text.name}:", content, form))
        except InputError:
            return None
        lists = {key: value for key, value in whole.items() if isinstance(value, list)}
        maps = {key: list(value.values()) for key, value in whole.items() if isinstance(value, dict)}
        columns = lists if len(lists) == len(whole) else maps if len(maps) == len(whole) else {}
        objects = {key for key, values in (lists | columns).items() if any(isinstance(x, dict) for x in values[:5])}
        if len(columns) > 1 and len({len(values) for values in columns.values()}) == 1 and not objects:
            records = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        elif len(lists) == 1 and objects & set(lists):
            records = next(iter(lists.values()))
        else:
            return None
    else:
        return None
    return [_object(record, f"{text.name}: row {i}", form) for i, record in enumerate(cast("list[object]", records), 1)]


# ---- Parquet, Arrow and workbooks


def _columnar_table(path: Path, name: str, kind: str, limits: bool) -> SourceTable:
    def scan() -> pl.LazyFrame:
        if kind == "Parquet":
            return pl.scan_parquet(path, glob=False)
        with path.open("rb") as file:
            stream = file.read(6) != b"ARROW1"
        return pl.read_ipc_stream(path).lazy() if stream else pl.scan_ipc(path, glob=False)

    def checked(names: Sequence[str]) -> Iterator[Batch]:
        frame = scan()
        texts = [n for n, dtype in frame.select(names).collect_schema().items() if dtype == pl.String]
        if limits and texts:  # a file of few bytes whose cells, by a look at three rows, would fill the memory
            rows = frame.select(pl.len()).collect().item()
            some = [frame.select(texts).slice(at, 1) for at in {0, rows // 2, max(rows - 1, 0)}]
            size = pl.sum_horizontal(pl.all().str.len_bytes()).sum()
            cells = [row.collect().select(size).item() or 0 for row in some]
            size_of_all = float("inf") if max(cells) > LONGEST else rows * sum(cells) / len(cells)
            _check_expansion(name, path, size_of_all, limits)
        yield from SourceTable.frame_batches(frame, names)

    def read(names: Sequence[str]) -> Iterator[Batch]:
        batches = checked(names)
        while True:  # standard error is silenced only while Polars works, not while a batch is used
            with reading(name), one_line(f"{name}: is not a readable {kind} file"):
                batch = next(batches, None)
            if batch is None:
                return
            yield batch

    with reading(name), one_line(f"{name}: is not a readable {kind} file"):
        return SourceTable(name, scan().collect_schema().names(), read)


def _workbook_table(path: Path, name: str, limits: bool) -> SourceTable:
    """The first sheet of a workbook."""
    import fastexcel

    with reading(name), one_line(f"{name}: is not a readable workbook"):
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                _check_expansion(name, path, sum(entry.file_size for entry in archive.infolist()), limits)
        sheets = fastexcel.read_excel(str(path)).sheet_names
        frame = pl.read_excel(path, engine="calamine", sheet_id=1, infer_schema_length=None)
    notes = () if len(sheets) == 1 else (f"sheet {sheets[0]!r}, the first of {len(sheets)}",)
    return SourceTable(
        name, frame.columns, lambda names: SourceTable.frame_batches(frame, names), first_line=True, notes=notes
    )
