"""CSV, TSV and tables like them, read strictly, with every fault named by row and line.

Polars would fill short rows up, keep blank lines and accept stray quotes, so a file that may have
any of these is parsed row by row, which names the fault. Row numbers count the rows that hold data,
from 1; a header and blank lines are not rows.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice, takewhile
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tokensieve.arrays import Ints
from tokensieve.errors import InputError, one_line
from tokensieve.read.columnar import guarded_batches
from tokensieve.read.columns import KNOWN_NAMES
from tokensieve.read.plain import READ_BYTES, PlainText
from tokensieve.read.settings import SourceSettings
from tokensieve.read.table import BATCH_ROWS, MAX_COLUMNS, Batch, SourceTable
from tokensieve.wording import plural

Bytes = NDArray[np.uint8]

HIDDEN_RETURN = "\ue00d"  # for private use: stands for a carriage return inside a row
HIDDEN_QUOTE = "\ue00e"  # stands for a quote behind a backslash, if that makes it no end of a field
CHECKED_ROWS = 100_000  # by which it is decided whether backslashes escape quotes
FIRST_LINES = 50  # by which the separator is recognised
FIRST_CHARACTERS = 1_000_000
EXAMINED_BYTES = 2**24  # for rows inside quotes; arrays of their positions are in memory
EXAMINED_LINES = 100_000  # the same of a file in UTF-16
MIN_HIDING_ROWS = {"\t": 1}  # fields that hide rows; prose has next to no tabs
MIN_HIDING_ROWS_ELSEWHERE = 3  # by chance, lines of prose with commas look like rows
MAX_TITLE_LINES = 5  # above the header
SEPARATORS = ",;\t|"
# the first line of CSV that Excel is to open
_EXCEL_LINE = re.compile(r'\ufeff?"?sep=(.)"?\r?\n', re.IGNORECASE)


def first_lines(text: PlainText, only_feeds: bool = False) -> list[str]:
    """The first 50 lines, or those up to one that is not text; see `PlainText.lines`."""
    start = list[str]()
    n_characters = 0
    with suppress(PlainText.NotText), closing(text.lines(None, only_feeds)) as lines:
        for line in islice(lines, FIRST_LINES):
            start.append(line[:FIRST_CHARACTERS])
            n_characters += len(start[-1])
            if n_characters > FIRST_CHARACTERS:
                break
    return start


def check_table(name: str, start: Sequence[str]) -> None:
    """Refuse text that is not a table of texts."""
    if start and re.match(r"[+-]?\d+(\.\d+)?( \d+:[\d.eE+-]+)+\s*$", start[0]):
        raise InputError(f"{name} contains numeric features (SVMlight), not text")
    if start and re.match(r"\s*<(!doctype|html|\?xml)", start[0].lower()):
        raise InputError(
            f"{name} is a page of HTML or XML, not a table; "
            "download the file itself, or export it as CSV"
        )


# ---- the separator and the header


class TableLayout(NamedTuple):
    """How the lines of a file form a table.

    Attributes:
        is_even: whether all rows have the same number of fields, more than one.
        separator: between the fields.
        n_lines_above: lines before the header.
    """

    is_even: bool
    separator: str
    n_lines_above: int


class _Start(NamedTuple):
    """The first lines of a file, and whether double quotes enclose fields."""

    lines: Sequence[str]
    has_quotes: bool

    def rows(self, mark: str, skip: int) -> list[list[str]]:
        """The first rows without blank lines; none if the mark cannot separate them."""
        content = io.StringIO("".join(self.lines[skip:]), newline="")
        try:
            reader = csv.reader(content, delimiter=mark, quoting=_quoting(self.has_quotes))
            rows = [row for row in reader if row]
        except csv.Error:
            return []
        may_be_cut_off = len(rows) > 2 and len(self.lines) == FIRST_LINES
        if may_be_cut_off:
            return rows[:-1]
        return rows


def _quoting(has_quotes: bool) -> Literal[0, 3]:
    """The rule of the csv module."""
    if has_quotes:
        return csv.QUOTE_MINIMAL
    return csv.QUOTE_NONE


class _Fit(NamedTuple):
    """How well a separator fits; the largest fits best."""

    is_even_and_several: bool
    is_usual_and_several: bool
    has_several: bool
    is_even: bool
    n_fields: int
    is_usual: bool


def table_layout(start: Sequence[str], settings: SourceSettings, usual: str) -> TableLayout:
    """Recognise the separator and the lines above the header by the first lines.

    The separator is the mark that splits the first rows into the same number of fields, the usual
    one before others. A line `sep=;` names it. Up to five lines with one field are a title if the
    line below them has a well-known name of a column and all rows have as many fields as that line.
    """
    excel_line = None
    if start:
        excel_line = _EXCEL_LINE.match(start[0])
    n_above = 0
    if excel_line:
        n_above = 1
    separator = settings.separator or (excel_line[1] if excel_line else None)
    if separator:
        marks = [separator]
    else:
        marks = list(dict.fromkeys(usual + SEPARATORS))
    lines = _Start(start, settings.quotes)
    if settings.header:
        n_comments = len(list(takewhile(_is_comment, start[n_above:])))
        below = _layout_below(lines, marks, usual, n_above + n_comments)
        if n_comments and below is not None and below.has_known_name:
            return below.layout
    first = _layout_below(lines, marks, usual, n_above)
    if first is None and settings.header:
        first = _layout_below_title(lines, marks, usual, n_above, len(start))
    if first is not None:
        return first.layout
    return TableLayout(False, _best_mark(lines, marks, usual, n_above), n_above)


def _layout_below_title(
    lines: _Start, marks: Sequence[str], usual: str, n_above: int, n_lines: int
) -> _LayoutBelow | None:
    """The table below a title of up to five lines; None if there is none.

    Args:
        lines: the beginning of the file.
        marks: what may separate the fields.
        usual: the mark that the file's ending promises.
        n_above: lines that were skipped already.
        n_lines: lines of the beginning.
    """
    # a header and one row must remain
    last = min(n_above + MAX_TITLE_LINES, n_lines - 2)
    for skip in range(n_above + 1, last + 1):
        below = _layout_below(lines, marks, usual, skip)
        if below is not None and below.has_known_name and below.has_title:
            return below
    return None


class _LayoutBelow(NamedTuple):
    """A table below some lines.

    Attributes:
        layout: the table.
        has_known_name: whether its header has a well-known name of a column, and no line above.
        has_title: whether each line above has at most one field.
    """

    layout: TableLayout
    has_known_name: bool
    has_title: bool


def _layout_below(
    start: _Start, marks: Sequence[str], usual: str, skip: int
) -> _LayoutBelow | None:
    """The table below the first `skip` lines; None if its rows are not even."""
    mark = _best_mark(start, marks, usual, skip)
    if not _fit(start, mark, usual, skip).is_even_and_several:
        return None
    header = [cell.strip().lower() for cell in next(iter(start.rows(mark, skip)), [])]
    cells_above = [
        [cell.strip().lower() for cell in line.split(mark)] for line in start.lines[:skip]
    ]
    is_known_above = any(cell in KNOWN_NAMES for cells in cells_above for cell in cells)
    return _LayoutBelow(
        TableLayout(True, mark, skip),
        not is_known_above and not KNOWN_NAMES.isdisjoint(header),
        all(sum(map(bool, cells)) <= 1 for cells in cells_above),
    )


def _is_comment(line: str) -> bool:
    return line.startswith("#") or not line.strip()


def _best_mark(start: _Start, marks: Sequence[str], usual: str, skip: int) -> str:
    return max(marks, key=lambda mark: _fit(start, mark, usual, skip))


def _fit(start: _Start, mark: str, usual: str, skip: int) -> _Fit:
    """Measure how well a separator divides the first rows below `skip` lines."""
    sizes = [len(row) for row in start.rows(mark, skip)] or [1]
    is_even = len(set(sizes)) == 1
    has_several = sizes[0] > 1
    is_usual = mark == usual
    return _Fit(
        is_even and has_several, is_usual and has_several, has_several, is_even, sizes[0], is_usual
    )


# ---- rows


class _OpenedTable(NamedTuple):
    """A file as rows of fields, the layout by which it is read, and its first lines."""

    file: _DelimitedFile
    layout: TableLayout
    start: list[str]


def _opened_table(usual: str, path: Path, name: str, settings: SourceSettings) -> _OpenedTable:
    """A table, whose quotes may be escaped with backslashes."""
    text = PlainText(path, name, settings)
    start = [_hide_returns(line) for line in first_lines(text, text.has_line_feeds)]
    check_table(text.name, start)
    layout = table_layout(start, settings, usual)
    file = _DelimitedFile(
        text, layout.separator, settings.header, settings.quotes, layout.n_lines_above
    )
    if settings.quotes and _may_escape_quotes(text) and not file.is_sound():
        hidden_start = [_hide_quotes(line) for line in start]
        escaped_layout = table_layout(hidden_start, settings, usual)
        escaped_file = replace(
            file,
            separator=escaped_layout.separator,
            n_lines_above=escaped_layout.n_lines_above,
            has_escapes=True,
        )
        if escaped_file.is_sound():
            return _OpenedTable(escaped_file, escaped_layout, hidden_start)
        return _OpenedTable(file, layout, hidden_start)
    return _OpenedTable(file, layout, start)


def delimited_row_lines(usual: str, path: Path, settings: SourceSettings) -> Iterator[int]:
    """The line in which each row of a table begins, from 1; the arguments of `delimited_table`."""
    file = _opened_table(usual, path, path.name, settings).file
    for record in islice(file.records(), int(file.has_header), None):
        yield record.line


def delimited_table(usual: str, path: Path, name: str, settings: SourceSettings) -> SourceTable:
    """A table with a separator, `usual` unless another one is given or detected."""
    file, layout, start = _opened_table(usual, path, name, settings)
    text = file.text
    columns = file.columns()

    @cache
    def trusted_frame() -> pl.LazyFrame | None:
        if not text.is_utf8 or layout.n_lines_above or file.has_escapes:
            return None
        with one_line(f"{text.name} is not a readable CSV file"):
            return _polars_frame(file, columns)

    def read(names: Sequence[str]) -> Iterator[Batch]:
        frame = trusted_frame()
        if frame is None:
            return _parsed_batches(file, columns, names)
        return guarded_batches(lambda: frame, names, text.name, "CSV")

    notes = [*text.notes, *_layout_notes(start, layout, settings, usual)]
    notes += _hidden_row_notes(file, len(columns))
    if file.has_escapes:
        notes.append("quotes inside fields are escaped by a backslash (detected)")
    return SourceTable(text.name, columns, read, first_line=settings.header, notes=notes)


def _layout_notes(
    start: Sequence[str], layout: TableLayout, settings: SourceSettings, usual: str
) -> Iterator[str]:
    if not settings.separator and layout.separator != usual:
        yield f"separator {layout.separator!r} (detected)"
    above = start[: layout.n_lines_above]
    title = [line.strip() for line in above if line.strip() and not _EXCEL_LINE.match(line)]
    if title:
        yield f"lines before the header, skipped: {' / '.join(title)[:80]!r}"


class _Record(NamedTuple):
    """The fields of a row, and the line in which it begins, from 1."""

    line: int
    fields: list[str]


@dataclass(frozen=True, eq=False)
class _DelimitedFile:
    """A text whose lines are rows of fields.

    Attributes:
        text: the file.
        separator: between the fields.
        has_header: whether the first row names the columns.
        has_quotes: whether double quotes enclose fields.
        n_lines_above: lines before that row.
        has_escapes: whether a backslash before a quote makes it a part of the field, as MySQL and
            Spark write it.
    """

    text: PlainText
    separator: str
    has_header: bool
    has_quotes: bool
    n_lines_above: int
    has_escapes: bool = False

    def is_sound(self) -> bool:
        """Whether the first rows can be read strictly and have several fields."""
        try:
            rows = [len(record.fields) for record in islice(self.records(), CHECKED_ROWS)]
        except InputError:
            return False
        return bool(rows) and rows[0] > 1

    def columns(self) -> list[str]:
        """The names of the columns; numbers where the file has none."""
        first_record = next(self.records(), None)
        first_row = []
        if first_record is not None:
            first_row = first_record.fields[: MAX_COLUMNS + 1]
        if not first_row:
            raise InputError(f"{self.text.name} is empty; the first line must name the columns")
        names = [name.strip() for name in first_row]
        if not self.has_header:
            return [f"column {i}" for i in range(1, len(names) + 1)]
        if names.count("") > 1:
            return [name or f"column {i}" for i, name in enumerate(names, 1)]
        return names

    def records(self) -> Iterator[_Record]:
        """The header, if there is one, then the rows, read strictly."""
        csv.field_size_limit(max(csv.field_size_limit(), 2**31 - 1))  # a document may have 50 MB
        row = 1
        if self.has_header:
            row = 0
        n_fields = 0
        where = ""
        quoting = _quoting(self.has_quotes)
        only_feeds = self.text.has_line_feeds
        with closing(self.text.lines(lambda line: f"{where} (line {line})", only_feeds)) as lines:
            below = map(_hide_returns, islice(lines, self.n_lines_above, None))
            if self.has_escapes:
                below = map(_hide_quotes, below)
            reader = csv.reader(below, delimiter=self.separator, quoting=quoting, strict=True)
            while True:
                first_line = self.n_lines_above + reader.line_num + 1
                where = f"{self.text.name}: {f'row {row}' if row else 'header'}"
                place = f"{where} (line {first_line})"
                try:
                    fields = next(reader)
                except StopIteration:
                    return
                except csv.Error as problem:
                    raise InputError(f"{place}: {_quoting_fault(str(problem))}") from None
                if not fields:
                    continue
                if n_fields and len(fields) != n_fields:
                    raise self._uneven(place, fields, n_fields)
                n_fields = len(fields)
                row += 1
                yield _Record(first_line, [_as_written(field) for field in fields])

    def _uneven(self, place: str, fields: Sequence[str], n_expected: int) -> InputError:
        first = "first row"
        if self.has_header:
            first = "header"
        advice = "a field that contains the separator must be in double quotes"
        if len(fields) == n_expected + 1 and not fields[-1]:
            advice = f"it ends with a separator, and the {first} does not: make them alike"
        return InputError(
            f"{place}: {len(fields)} fields where the {first} has {n_expected}; {advice}"
        )


def _hide_returns(line: str) -> str:
    """A line in which the csv module takes no carriage return for the end of the row."""
    if "\r" in line:
        return re.sub(r"\r(?!\n|\Z)", HIDDEN_RETURN, line)
    return line


def _hide_quotes(line: str) -> str:
    """A line in which the csv module takes no quote behind a backslash for the end of a field.

    Other backslashes stay, as in C:\\new.
    """
    if '\\"' in line:
        return re.sub(r'(?<!\\)((?:\\\\)*)\\"', rf"\1{HIDDEN_QUOTE}", line)
    return line


def _as_written(field: str) -> str:
    """A field with what was hidden from the csv module."""
    return field.replace(HIDDEN_RETURN, "\r").replace(HIDDEN_QUOTE, '"')


def _may_escape_quotes(text: PlainText) -> bool:
    """Whether a backslash stands before a quote, near the beginning of the file."""
    with text.path.open("rb") as file:
        return b'\\"' in file.read(EXAMINED_BYTES)


def _quoting_fault(problem: str) -> str:
    """A clause on what is wrong with the quotes of a row, and how they must be."""
    is_inside = (
        'inside quotes write each quote as "", or pass --no-quotes if quotes are ordinary '
        "characters in this file"
    )
    if "expected after" in problem:
        return f"stray characters after a closing double quote; {is_inside}"
    if "end of data" in problem:
        return f"a double quote is opened and never closed; close it; {is_inside}"
    around = "put each field that contains quotes in double quotes"
    return f"broken quoting ({problem}); {around}; {is_inside}"


def _parsed_batches(
    file: _DelimitedFile, columns: Sequence[str], names: Sequence[str]
) -> Iterator[Batch]:
    """The named columns in batches of text, read strictly, without the header."""
    place = {name: i for i, name in enumerate(columns)}
    records = islice(file.records(), int(file.has_header), None)
    while rows := [record.fields for record in islice(records, BATCH_ROWS)]:
        yield {
            name: pl.Series([row[place[name]] for row in rows], dtype=pl.String) for name in names
        }


# ---- rows that quotes hide


class _RowsOfLines(NamedTuple):
    """How the lines of a file form rows.

    Attributes:
        row_of_line: number of the row that each line belongs to.
        n_lines: lines of each row.
        n_whole: those that have as many fields as a row.
    """

    row_of_line: Ints
    n_lines: Ints
    n_whole: Ints


def _first_bytes(text: PlainText) -> Bytes:
    """The beginning of a file in an encoding that contains ASCII."""
    if text.is_ascii_compatible:
        # read, not mapped: a mapped file that is cut ends the process
        return np.fromfile(text.path, np.uint8, count=EXAMINED_BYTES)
    with suppress(PlainText.NotText), closing(text.lines()) as lines:
        beginning = "".join(islice(lines, EXAMINED_LINES))
        return np.frombuffer(beginning.encode("utf-8", "replace"), np.uint8)
    return np.empty(0, np.uint8)


def _rows_of_lines(file: _DelimitedFile, n_columns: int) -> _RowsOfLines | None:
    """The rows of the first lines; None if each line is a row."""
    content = _first_bytes(file.text)
    ends = np.flatnonzero(content == ord("\n"))
    n_quotes_before = np.searchsorted(np.flatnonzero(content == ord('"')), ends)
    ends_row = n_quotes_before % 2 == 0
    if ends_row.all():
        return None
    row_of_line = np.cumsum(ends_row) - ends_row
    separators = np.flatnonzero(content == ord(file.separator))
    n_separators = np.diff(np.searchsorted(separators, ends), prepend=0)
    is_whole = n_separators == n_columns - 1
    n_whole = np.bincount(row_of_line, weights=is_whole).astype(np.int64)
    return _RowsOfLines(row_of_line, np.bincount(row_of_line), n_whole)


def _hidden_row_notes(file: _DelimitedFile, n_columns: int) -> Iterator[str]:
    """Say so if lines inside quoted fields look like whole rows.

    That is the case if quotes are ordinary characters: one that begins a field hides the rows up to
    one that ends a field.
    """
    if not file.has_quotes or file.has_escapes or n_columns < 2:
        return
    rows = _rows_of_lines(file, n_columns)
    if rows is None:
        return
    has_several = rows.n_lines > 1
    hides_rows = np.flatnonzero(has_several & (rows.n_whole == rows.n_lines))
    minimum = MIN_HIDING_ROWS.get(file.separator, MIN_HIDING_ROWS_ELSEWHERE)
    if len(hides_rows) < minimum or len(hides_rows) <= has_several.sum() / 2:
        return
    first = int(np.searchsorted(rows.row_of_line, hides_rows[0])) + 1
    last = first + int(rows.n_lines[hides_rows[0]]) - 1
    n_more = len(hides_rows) - 1
    further = ""
    if n_more:
        further = f", and so do those in {plural(n_more, 'other field')}"
    yield (
        f"lines {first} to {last} are one row with a quoted field, but look like rows themselves"
        f"{further}; if quotes are ordinary characters in this file, pass --no-quotes"
    )


# ---- files that Polars reads as strictly


def _polars_frame(file: _DelimitedFile, columns: Sequence[str]) -> pl.LazyFrame | None:
    """The rows as Polars reads them, all of it text, if it reads them as strictly; else None.

    Polars itself refuses long rows and most broken quotes. The others are found by
    `_checked_separators`. All rows have w fields if the separators outside quotes are (w − 1) times
    the rows, which need not be counted if no last field is empty.
    """
    try:  # the header is a row like any other: Polars need not understand it
        frame = pl.scan_csv(
            file.text.path,
            separator=file.separator,
            quote_char='"' if file.has_quotes else None,
            has_header=False,
            infer_schema=False,
            glob=False,
        )
        own_names = frame.collect_schema().names()
        if len(own_names) != len(columns):
            return None
        has_empty_end = (pl.col(own_names[-1]).fill_null("") == "").sum()
        # Polars checks only what it parses
        lengths = [pl.col(name).str.len_bytes().sum() for name in own_names]
        checked = frame.select(pl.len(), has_empty_end.alias("empty"), *lengths)
        n_rows, n_empty_ends, *_ = checked.collect(engine="streaming").row(0)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        return None
    n_separators = _checked_separators(file, must_count=n_empty_ends > 0)
    if n_separators is None:
        return None
    if n_empty_ends:
        # if there is one column, an empty row looks like an empty field
        n_expected = (len(columns) - 1) * n_rows
        if len(columns) == 1 or n_separators != n_expected:
            return None
    renamed = [
        pl.col(raw_name).fill_null("").alias(name)
        for raw_name, name in zip(own_names, columns, strict=True)
    ]
    return frame.select(renamed).slice(int(file.has_header))


def _checked_separators(file: _DelimitedFile, must_count: bool) -> int | None:
    """The separators outside quotes (0 unless they must be counted); None if quotes are unsound."""
    content = np.memmap(file.text.path, np.uint8, "r")
    n_separators = 0
    n_quotes = 0
    for start in range(0, len(content), READ_BYTES):
        block = content[start : start + READ_BYTES]
        may_be_endless = len(block) == READ_BYTES and not (block == ord("\n")).any()
        if may_be_endless or _has_lone_return(content, start, block):
            return None
        is_quote = (block == ord('"')) & file.has_quotes
        quotes = np.flatnonzero(is_quote) + start
        if not _are_sound(content, quotes, n_quotes, file.separator):
            return None
        if must_count:
            starts_inside = n_quotes % 2 == 1
            is_inside = np.bitwise_xor.accumulate(is_quote) ^ starts_inside
            is_separator = block == ord(file.separator)
            n_separators += int((is_separator & ~is_inside).sum())
        n_quotes += len(quotes)
    return n_separators


def _has_lone_return(content: Bytes, start: int, block: Bytes) -> bool:
    """Whether a carriage return stands without a line feed: it ends a line for csv only."""
    returns = np.flatnonzero(block == ord("\r")) + start
    after = content[np.minimum(returns + 1, len(content) - 1)]
    return bool((after != ord("\n")).any())


def _are_sound(content: Bytes, quotes: Ints, n_before: int, separator: str) -> bool:
    """Whether quotes stand at the ends of fields only.

    Each one that opens follows a separator, a line's end or a quote, and each one that closes
    precedes one.
    """
    last = len(content) - 1
    neighbours = np.frombuffer(f'{separator}\n\r"'.encode(), np.uint8)
    is_closing = (np.arange(len(quotes)) + n_before) % 2 == 1
    before = np.where(quotes > 0, content[np.maximum(quotes - 1, 0)], ord("\n"))
    after = np.where(quotes < last, content[np.minimum(quotes + 1, last)], ord("\n"))
    return bool(np.isin(np.where(is_closing, after, before), neighbours).all())
