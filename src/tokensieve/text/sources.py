"""Rows out of every kind of source: one `Table` with named columns, read as a stream, whatever the format.

Row numbers count the rows that hold data, from 1; a header and blank lines are not rows. Where a file has lines, an
error names the line too.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import polars as pl

from tokensieve.errors import InputError

if TYPE_CHECKING:
    import pandas

Source: TypeAlias = "str | Path | pl.DataFrame | pandas.DataFrame | tuple[Sequence[Any], Sequence[Any]]"
Row: TypeAlias = tuple[Any, ...]
Reader: TypeAlias = Callable[[Sequence[int]], Iterator[Row]]

BATCH = 10_000
KEY_ROWS = 1_000  # JSON lines from whose keys the columns are made
LAYOUTS = "a folder with one subfolder of .txt files per label, or train/LABEL/*.txt beside test/LABEL/*.txt"


@dataclass(frozen=True)
class Table:
    """Named columns, and a stream of rows that can be started again.

    Attributes:
        name: what to call the source in messages.
        columns: the column names, all different.
        read: positions of the wanted columns → iterator over rows of those values, in source order.

    Raises:
        InputError: a column name occurs twice.
    """

    name: str
    columns: tuple[str, ...]
    read: Reader

    def __post_init__(self) -> None:
        twice = sorted({c for c in self.columns if self.columns.count(c) > 1})
        if twice:
            raise InputError(f"{self.name}: the column name {twice[0]!r} occurs more than once; rename one of them")


@dataclass(frozen=True)
class Opened:
    """A source, opened: its training rows, its test rows where it has a split of its own, and what was left aside.

    Attributes:
        train: the rows to learn from (the only rows, where the source has no split).
        test: the source's own test rows, or None.
        ignored: parts of the source without labels → number of documents left aside there.
    """

    train: Table
    test: Table | None = None
    ignored: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Named:
    """A named data set: its id on the Hugging Face hub."""

    hub_id: str


NAMED: dict[str, Named] = {"imdb": Named("stanfordnlp/imdb"), "yelp": Named("Yelp/yelp_review_full")}


def open_source(source: Source, encoding: str = "utf-8", labelled: bool = True) -> Opened:
    """Open a file, a folder, a data frame, (texts, labels) lists or a named data set.

    An existing path wins over a data set of the same name.

    Args:
        source: see `tokensieve.text.corpus.read_corpus`.
        encoding: of text files; a UTF-8 byte order mark is accepted.
        labelled: False also takes a folder that holds .txt files and no label folders.

    Raises:
        InputError: the source is missing, of an unknown kind, or cannot be read.
    """
    if isinstance(source, pl.DataFrame):
        return Opened(_polars_table("the data frame", source))
    frames = sys.modules.get("pandas")  # a pandas frame exists only where pandas is loaded; do not load it for others
    if frames is not None and isinstance(source, frames.DataFrame):
        return Opened(_pandas_table(cast("pandas.DataFrame", source)))
    if isinstance(source, tuple):
        return Opened(_list_table(source))
    if not isinstance(source, str | Path):
        raise InputError(f"cannot read a {type(source).__name__}: give a path, a data frame or (texts, labels)")
    return _open_path(source, encoding, labelled)


def _open_path(source: str | Path, encoding: str, labelled: bool) -> Opened:
    path = Path(source)
    try:
        kind = "folder" if path.is_dir() else "file" if path.exists() else "none"
    except (OSError, ValueError) as problem:
        raise InputError(f"cannot open {str(source)[:80]!r}: {problem}") from None
    if kind == "folder":
        return _open_folder(path, encoding, labelled)
    if kind == "file":
        return Opened(_file_table(path, encoding))
    if str(source) in NAMED:
        return _open_named(str(source))
    near = get_close_matches(path.name, _names_beside(path), n=1)
    hint = f"did you mean {str(path.parent / near[0])!r}?" if near else "check the path"
    raise InputError(f"there is no file or folder {str(source)!r}; {hint} (data sets by name: {', '.join(NAMED)})")


def _names_beside(path: Path) -> list[str]:
    try:
        return sorted(p.name for p in path.parent.iterdir())
    except OSError:
        return []


# ---- data frames and lists


def _polars_rows(batches: Iterable[pl.DataFrame]) -> Iterator[Row]:
    for batch in batches:
        yield from zip(*(column.to_list() for column in batch.get_columns()), strict=True)


def _polars_table(name: str, frame: pl.DataFrame) -> Table:
    return Table(name, tuple(frame.columns), lambda which: _polars_rows(frame[:, list(which)].iter_slices(BATCH)))


def _pandas_table(frame: pandas.DataFrame) -> Table:
    def read(which: Sequence[int]) -> Iterator[Row]:
        for start in range(0, len(frame), BATCH):
            columns = (frame.iloc[start : start + BATCH, i] for i in which)
            # pandas has several missing values (None, nan, NA, NaT): make them one
            yield from zip(*(c.astype(object).where(c.notna(), None).tolist() for c in columns), strict=True)

    return Table("the data frame", tuple(str(c) for c in frame.columns), read)


def _list_table(lists: tuple[Sequence[Any], ...]) -> Table:
    if len(lists) != 2 or any(isinstance(part, str | bytes) or not hasattr(part, "__len__") for part in lists):
        raise InputError("give texts and labels as a pair of lists: (texts, labels)")
    if len(lists[0]) != len(lists[1]):
        raise InputError(f"{len(lists[0])} texts but {len(lists[1])} labels: give one label for each text")
    return Table("the lists", ("text", "label"), lambda which: zip(*(lists[i] for i in which), strict=True))


# ---- files


def _file_table(path: Path, encoding: str) -> Table:
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    if suffix not in FORMATS:
        raise InputError(
            f"{path.name}: cannot read a file {f'of kind {suffix!r}' if suffix else 'without an extension'}; "
            f"understood are {' '.join(FORMATS)} (each also with .gz)"
        )
    return FORMATS[suffix](path, encoding)


def _is_gzip(path: Path) -> bool:
    return path.name.lower().endswith(".gz")


def _open_bytes(path: Path) -> io.BufferedReader:
    # a GzipFile has all that is used of a BufferedReader: read, peek, close
    return cast("io.BufferedReader", gzip.open(path)) if _is_gzip(path) else path.open("rb")


@contextmanager
def _reading(path: Path) -> Iterator[None]:
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


class _BadText(Exception):
    """A line that is no text: (line number, what is wrong); whoever counts rows adds the row."""


def _lines(path: Path, encoding: str) -> Iterator[str]:
    """The lines of a text file with their endings, each checked to be text in the given encoding."""
    codec = _codec(encoding)
    with _reading(path), _open_bytes(path) as raw:
        if codec == "utf-8-sig" and raw.peek(2)[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise InputError(f"{path.name}: is UTF-16 text; say so with --encoding utf-16, or save it as UTF-8")
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


def _delimited_records(path: Path, encoding: str, delimiter: str) -> Iterator[list[str]]:
    """The header, then the rows, of a CSV or TSV file read strictly."""
    csv.field_size_limit(max(csv.field_size_limit(), 2**31 - 1))  # one document may have 50 MB
    reader = csv.reader(_lines(path, encoding), delimiter=delimiter, strict=True)
    row = width = 0
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
        if row and len(fields) != width:
            raise InputError(
                f"{where} (line {first}): {len(fields)} fields where the header has {width}; "
                "a field that holds the separator must stand in double quotes"
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


def _delimited_table(delimiter: str) -> Callable[[Path, str], Table]:
    def table(path: Path, encoding: str) -> Table:
        header = next(_delimited_records(path, encoding, delimiter), None)
        if header is None:
            raise InputError(f"{path.name}: is empty; the first line must name the columns")

        def read(which: Sequence[int]) -> Iterator[Row]:
            for fields in islice(_delimited_records(path, encoding, delimiter), 1, None):
                yield tuple([fields[i] for i in which])

        return Table(path.name, tuple(name.strip() for name in header), read)

    return table


def _json_records(path: Path, encoding: str) -> Iterator[dict[str, Any]]:
    try:
        for number, line in enumerate(_lines(path, encoding), 1):
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


def _json_table(path: Path, encoding: str) -> Table:
    keys: dict[str, None] = {}
    for record in islice(_json_records(path, encoding), KEY_ROWS):
        keys.update(dict.fromkeys(record))
    if not keys:
        raise InputError(f"{path.name}: has no rows; write one JSON object per line")
    columns = tuple(keys)

    def read(which: Sequence[int]) -> Iterator[Row]:
        names = [columns[i] for i in which]
        for record in _json_records(path, encoding):
            yield tuple([record.get(name) for name in names])

    return Table(path.name, columns, read)


def _parquet_table(path: Path, encoding: str) -> Table:
    def scan() -> pl.LazyFrame:
        if not _is_gzip(path):
            return pl.scan_parquet(path, glob=False)
        with _open_bytes(path) as raw:
            return pl.scan_parquet(io.BytesIO(raw.read()))

    with _reading(path):
        columns = tuple(scan().collect_schema().names())

    def read(which: Sequence[int]) -> Iterator[Row]:
        with _reading(path):
            wanted = scan().select([pl.col(columns[i]) for i in which])
            yield from _polars_rows(wanted.collect_batches(chunk_size=BATCH, lazy=True))

    return Table(path.name, columns, read)


FORMATS: dict[str, Callable[[Path, str], Table]] = {
    ".csv": _delimited_table(","),
    ".tsv": _delimited_table("\t"),
    ".jsonl": _json_table,
    ".ndjson": _json_table,
    ".parquet": _parquet_table,
}


# ---- folders


def _open_folder(path: Path, encoding: str, labelled: bool) -> Opened:
    with _reading(path):
        train = path / "train" if (path / "train").is_dir() else path
        files, ignored = _label_files(train)
        test_files, _ = _label_files(path / "test") if train != path and (path / "test").is_dir() else ({}, {})
        flat = sorted(path.glob("*.txt"))
    if not files and flat and not labelled:
        return Opened(_folder_table(path, {"": flat}, encoding, ("text",)))
    if not files:
        raise InputError(f"{str(path)!r} is a folder but no data set; understood are: {LAYOUTS}")
    test = _folder_table(path / "test", test_files, encoding) if test_files else None
    return Opened(_folder_table(train, files, encoding), test, ignored)


def _label_files(path: Path) -> tuple[dict[str, list[Path]], dict[str, int]]:
    """Label → its .txt files; and what is left aside: aclImdb's `unsup` holds reviews without a label."""
    found = {p.name: sorted(p.glob("*.txt")) for p in sorted(path.iterdir()) if p.is_dir()}
    files = {name: texts for name, texts in found.items() if texts}
    ignored = {"unsup": len(files.pop("unsup"))} if "unsup" in files else {}
    return files, ignored


def _folder_table(
    path: Path, files: Mapping[str, Sequence[Path]], encoding: str, columns: tuple[str, ...] = ("text", "label")
) -> Table:
    def read(which: Sequence[int]) -> Iterator[Row]:
        for label, texts in files.items():
            for file in texts:
                both = (_whole_text(file, encoding), label)
                yield tuple([both[i] for i in which])

    return Table(str(path), columns, read)


def _whole_text(path: Path, encoding: str) -> str:
    try:
        return "".join(_lines(path, encoding))
    except _BadText as problem:
        line, reason = problem.args
        raise InputError(f"{path}: line {line}: {reason}") from None


# ---- named data sets


def _open_named(name: str) -> Opened:
    hub_id = NAMED[name].hub_id
    try:
        import datasets
    except ImportError:
        raise InputError(
            f"the data set {name!r} needs the datasets library: pip install 'tokensieve[datasets]'"
        ) from None
    if not sys.stderr.isatty():
        datasets.disable_progress_bars()
    try:
        splits = datasets.load_dataset(hub_id)
    # the loader fails in many libraries' own ways (network, hub, disk, format); each is a reason to stop
    except Exception as problem:
        reason = (str(problem).splitlines() or [type(problem).__name__])[0]
        raise InputError(
            f"cannot load the data set {name!r} ({hub_id}): {reason}; check the network, or give a file"
        ) from None
    tables = {part: _dataset_table(f"{name} ({part})", data) for part, data in splits.items()}
    ignored = {part: data.num_rows for part, data in splits.items() if part not in ("train", "test")}
    return Opened(tables["train"], tables.get("test"), ignored)


def _dataset_table(name: str, data: Any) -> Table:
    columns = tuple(data.column_names)
    decoders = [getattr(data.features[c], "names", None) for c in columns]

    def read(which: Sequence[int]) -> Iterator[Row]:
        for batch in data.iter(batch_size=BATCH):
            yield from zip(*(_class_names(batch[columns[i]], decoders[i]) for i in which), strict=True)

    return Table(name, columns, read)


def _class_names(values: Sequence[Any], names: Sequence[str] | None) -> Sequence[Any]:
    """Class indices as their names; the library's −1 means: no label."""
    return values if names is None else [None if v is None or v < 0 else names[v] for v in values]
