"""Every kind of source, opened: files, folders, standard input, addresses, data frames, lists, or a data set by name."""

from __future__ import annotations

import glob
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from tokensieve.errors import InputError
from tokensieve.text.formats import file_table, kind_of
from tokensieve.text.plain_text import PACKED, PlainText, check_regular, reading, unpacked
from tokensieve.text.settings import SourceSettings
from tokensieve.text.spill import Folder, storing
from tokensieve.text.table import BATCH, ArrowStream, Batch, SourceTable, frame_batches, frame_table, list_table

if TYPE_CHECKING:
    import pandas

# also what gives Arrow data (`__arrow_c_stream__`: PyArrow, DuckDB, …), and a Dataset or DatasetDict of the datasets library
Frame: TypeAlias = "pl.DataFrame | pl.LazyFrame | pandas.DataFrame | ArrowStream"
Source: TypeAlias = (
    "str | Path | Sequence[str | Path] | Frame | Mapping[str, Any] | tuple[Sequence[Any], Sequence[Any]]"
)
LAYOUTS = "data files, one subfolder of .txt files per label, or train/LABEL/*.txt beside test/LABEL/*.txt"
NAMED = {
    "imdb": "stanfordnlp/imdb",
    "yelp": "Yelp/yelp_review_full",
}  # data sets by name: their ids on the Hugging Face hub
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)


class Opened:
    """A source, opened.

    Args:
        train: the rows to learn from (the only rows, where the source has no split).
        test: the source's own test rows, or None.
        ignored: parts of the source without labels → number of documents left aside there.
    """

    def __init__(
        self, train: SourceTable, test: SourceTable | None = None, ignored: Mapping[str, int] | None = None
    ) -> None:
        self.train, self.test, self.ignored = train, test, dict(ignored or {})

    @property
    def held_out(self) -> SourceTable:
        """The test rows; all rows where the source has no split."""
        return self.train if self.test is None else self.test


def open_source(
    source: Source, settings: SourceSettings | None = None, labelled: bool = True, columns: Sequence[str] = ()
) -> Opened:
    """Open a source of any kind; an existing path wins over a data set of the same name.

    Args:
        source: see `tokensieve.text.corpus.read_corpus`.
        settings: how it is read; `SourceSettings()` if None.
        labelled: False also takes a folder that holds .txt files and no label folders, and lines of text from standard input.
        columns: names that text from standard input may have in its first line.

    Raises:
        InputError: the source is missing, of an unknown kind, or cannot be read.
    """
    how = settings or SourceSettings()
    frame = frame_table(source)
    if frame is not None:
        return Opened(frame)
    if isinstance(source, tuple):
        return Opened(list_table(source))
    if isinstance(source, list) and source and all(isinstance(one, str | Path) for one in source):
        return Opened(_together([open_source(one, how, labelled, columns).train for one in source]))
    if not isinstance(source, str | Path):
        opened = _open_datasets(source)
        if opened is None:
            raise InputError(
                f"cannot read a {type(source).__name__}: give a path, a data frame, an Arrow table, a data set of the datasets "
                "library or (texts, labels)"
            )
        return opened
    if str(source) == "-":
        return Opened(_standard_input(how, labelled, columns))
    if _ADDRESS.match(str(source)):
        return Opened(_address_table(str(source), how))
    return _open_path(source, how, labelled)


def _open_path(source: str | Path, how: SourceSettings, labelled: bool) -> Opened:
    path = Path(source)
    try:
        kind = "folder" if path.is_dir() else "file" if path.exists() else "none"
        found = sorted(glob.glob(str(source))) if kind == "none" and re.search(r"[*?\[]", str(source)) else []
    except (OSError, ValueError, re.error) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise InputError(f"cannot open {str(source)[:80]!r}: {reason}; check the path") from None
    if kind == "folder":
        return _open_folder(path, how, labelled)
    if kind == "file":
        check_regular(path)
        return Opened(file_table(path, how))
    if found:
        return Opened(_together([file_table(Path(name), how) for name in found]))
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


def _together(tables: Sequence[SourceTable]) -> SourceTable:
    """Several tables as one; a column that one of them lacks is missing there.

    Raises:
        InputError: they have no column in common.
    """
    if len(tables) == 1:
        return tables[0]
    columns = list(dict.fromkeys(column for table in tables for column in table.columns))
    for table in tables[1:]:
        if not set(table.columns) & set(tables[0].columns):
            raise InputError(
                f"{tables[0].name} and {table.name} have no column in common: read files of one kind together"
            )

    def read(names: Sequence[str]) -> Iterator[Batch]:
        for table in tables:
            there = [name for name in names if name in table.columns]
            for batch in table.read(there or table.columns[:1]):
                size = len(next(iter(batch.values())))
                yield {name: batch[name] if name in there else [None] * size for name in names}

    def records() -> Iterator[dict[str, Any]]:
        for table in tables:
            yield from table.records()

    names = [table.name for table in tables]
    name = f"{len(tables)} files ({names[0]}, …)" if len(names) > 2 else " and ".join(names)
    notes = dict.fromkeys(note for table in tables for note in table.notes)
    return SourceTable(name, columns, read, records, any(table.first_line for table in tables), list(notes))


# ---- folders


def _open_folder(path: Path, how: SourceSettings, labelled: bool) -> Opened:
    with reading(str(path)):
        train = path / "train" if (path / "train").is_dir() else path
        files, ignored = _label_files(train)
        test_files, _ = _label_files(path / "test") if train != path and (path / "test").is_dir() else ({}, {})
        flat = _texts_in(path)
        data = sorted(p for p in (*path.glob("*"), *path.glob("data/*")) if p.is_file() and kind_of(p.name))
    if not files and flat and not labelled:
        return Opened(_folder_table(path, {"": flat}, how, ("text",)))
    if files:
        test = _folder_table(path / "test", test_files, how) if test_files else None
        return Opened(_folder_table(train, files, how), test, ignored)
    if not data:
        raise InputError(f"{str(path)!r} is a folder but no data set; understood are: {LAYOUTS}")
    parts: dict[str, list[SourceTable]] = {}
    for file in data:
        found = re.match(r"(train|test|dev|validation|valid|val)(?![a-z])", file.name.lower())
        parts.setdefault(found[1] if found else "", []).append(file_table(file, how))
    named = "train" in parts
    held = _together(parts["test"]) if named and "test" in parts else None
    used = parts["train"] if named else [table for tables in parts.values() for table in tables]
    aside = {part: 1 for part in parts if named and part not in ("train", "test")}
    for part in aside:
        first = parts[part][0].columns[0]
        aside[part] = sum(len(batch[first]) for table in parts[part] for batch in table.read([first]))
    return Opened(_together(used), held, aside)


def _label_files(path: Path) -> tuple[dict[str, list[Path]], dict[str, int]]:
    """Label → its .txt files; and what is left aside: aclImdb's `unsup` holds reviews without a label."""
    found = {p.name: _texts_in(p) for p in sorted(path.iterdir()) if p.is_dir()}
    files = {name: texts for name, texts in found.items() if texts}
    ignored = {"unsup": len(files.pop("unsup"))} if "unsup" in files else {}
    return files, ignored


def _texts_in(path: Path) -> list[Path]:
    files = sorted(path.glob("*.txt"))
    for file in files:
        check_regular(file)
    return files


def _folder_table(
    path: Path, files: Mapping[str, Sequence[Path]], how: SourceSettings, columns: tuple[str, ...] = ("text", "label")
) -> SourceTable:
    def read(names: Sequence[str]) -> Iterator[Batch]:
        for label, paths in files.items():
            for start in range(0, len(paths), BATCH):
                some = paths[start : start + BATCH]
                texts = [whole_text(file, how) for file in some] if "text" in names else []
                yield {name: texts if name == "text" else [label] * len(some) for name in names}

    return SourceTable(str(path), columns, read)


def whole_text(path: Path, how: SourceSettings) -> str:
    """All of a text file, in the encoding given or, if none is, the one detected.

    Raises:
        InputError: it cannot be read, or is not text.
    """
    if how.encoding is None:
        try:
            with path.open(encoding="utf-8-sig", newline="") as file:
                content = file.read(10_000_000)
                if "\0" not in content and not file.read(1):
                    return content
        except (OSError, UnicodeError):
            pass  # read with care below
    return PlainText(path, str(path), how).whole()


# ---- standard input and addresses


def _standard_input(how: SourceSettings, labelled: bool, columns: Sequence[str]) -> SourceTable:
    """What comes through standard input; its kind is recognised by how it begins.

    Text whose first line names one of `columns`, or that must have labels, is CSV (TSV, where a tab separates the names); any
    other text is one document per line, in a column named text.

    Raises:
        InputError: nothing comes, or what comes cannot be read.
    """
    name, folder = "standard input", Folder()
    path = folder.new()
    stream = sys.stdin.buffer
    start = stream.read(2**16)
    with path.open("wb") as file:
        block = start
        while block:
            with storing():
                file.write(block)
            block = stream.read(2**22)
    if not start.strip():
        raise InputError("standard input is empty: pipe texts into the command, or name a file")
    packed = {b"\x1f\x8b": ".gz", b"\x28\xb5": ".zst"}.get(start[:2])
    if packed:
        path = unpacked(path.rename(f"{path}{packed}"), name, folder, how.limits)
        with path.open("rb") as file:
            start = file.read(2**16)
    suffix = _stdin_suffix(start, how, labelled, columns)
    path = path.rename(f"{path}{suffix or '.txt'}")
    if suffix:
        table = file_table(path, how, name)
    else:
        table = _line_table(PlainText(path, name, how))
    table.kept = folder
    return table


def _stdin_suffix(content: bytes, how: SourceSettings, labelled: bool, columns: Sequence[str]) -> str:
    binary = {b"PAR1": ".parquet", b"ARRO": ".arrow", b"PK\x03\x04": ".xlsx"}.get(content[:4])
    if binary:
        return binary
    start = content.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if start in (b"{", b"["):
        return ".jsonl" if start == b"{" else ".json"
    first = content.lstrip(b"\xef\xbb\xbf").partition(b"\n")[0].decode(errors="replace").strip()
    for suffix, marks in ((".tsv", "\t"), (".csv", how.separator or ",;|")):
        if any(set(columns) & {name.strip().strip('"') for name in first.split(mark)} for mark in marks):
            return suffix
    if labelled:
        return ".tsv" if "\t" in first else ".csv"
    return ".csv" if how.separator or not how.header else ""


def _line_table(text: PlainText) -> SourceTable:
    lines = text.whole().removesuffix("\n").split("\n")
    texts = pl.Series([line.removesuffix("\r") for line in lines], dtype=pl.String)
    return SourceTable(text.name, ("text",), lambda names: iter([dict.fromkeys(names, texts)]), notes=text.notes)


def shown_address(address: str) -> str:
    """An address for messages, without user, password and query."""
    scheme, _, rest = address.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{re.split('[?#]', path)[0]}"


def _address_table(address: str, how: SourceSettings) -> SourceTable:
    """A file, or files by a glob, anywhere that Polars reads; text files are copied here first, to be checked like any other."""
    name = shown_address(address)
    kind = kind_of(name)
    if kind not in (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".arrow", ".ipc", ".feather"):
        raise InputError(f"{name}: of addresses .csv .tsv .jsonl .parquet and .arrow files are read; download it first")
    try:
        if kind in (".csv", ".tsv", ".jsonl", ".ndjson"):
            folder = Folder()
            path = folder.path / f"copy{kind}"
            with path.open("wb") as file:
                for block in _downloaded(address, name):
                    with storing():
                        file.write(block)
            table = file_table(path, how, name)
            table.kept = folder
            return table
        scan = pl.scan_parquet if kind == ".parquet" else pl.scan_ipc
        columns = scan(address).collect_schema().names()
    except InputError:
        raise
    except Exception as problem:  # every cloud has errors of its own
        raise InputError(f"cannot read {name}: {_without_secrets(problem, address)}") from None

    def read(names: Sequence[str]) -> Iterator[Batch]:
        try:
            yield from frame_batches(scan(address), names)
        except Exception as problem:
            raise InputError(f"cannot read {name}: {_without_secrets(problem, address)}") from None

    return SourceTable(name, columns, read)


def _downloaded(address: str, name: str) -> Iterator[bytes]:
    """The lines of a text file at an address, in blocks."""
    if address.lower().startswith(("http://", "https://")):
        from urllib.request import urlopen

        if name.lower().endswith(PACKED):
            raise InputError(f"{name}: download packed files first")
        with urlopen(address, timeout=60) as response:
            while block := response.read(2**22):
                yield block
        return
    if not hasattr(pl, "scan_lines"):
        raise InputError(f"{name}: this version of Polars reads only .parquet and .arrow there; download it first")
    for part in pl.scan_lines(address).collect_batches(chunk_size=BATCH, lazy=True):
        yield ("\n".join(part.to_series().fill_null("").to_list()) + "\n").encode()


def _without_secrets(problem: Exception, address: str) -> str:
    """The first line of an error, without the parts of the address that may be secret."""
    said = (str(problem).splitlines() or [type(problem).__name__])[0]
    said = said.replace(address, shown_address(address))
    said = re.sub(r"://[^/\s@]*@", "://", said)
    return re.sub(r"[?&][^\s'\"]*", "", said)[:300] + "; check the address and the credentials"


# ---- data sets of the datasets library


def _open_named(name: str) -> Opened:
    hub_id = NAMED[name]
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


def _open_datasets(source: Any) -> Opened | None:
    """A `Dataset` or `DatasetDict` of the datasets library; None for anything else."""
    # such an object exists only where the library is loaded; do not load it for others
    library = sys.modules.get("datasets")
    if library is None:
        return None
    if isinstance(source, library.Dataset):
        return Opened(_dataset_table("the data set", source))
    if not isinstance(source, library.DatasetDict):
        return None
    parts = dict(source)
    train = "train" if "train" in parts else next(iter(parts), None)
    if train is None or (train != "train" and len(parts) > 1):
        raise InputError(
            f"a DatasetDict needs a part 'train'; it has {', '.join(map(repr, parts)) or 'none'}: pass one part"
        )
    ignored = {part: data.num_rows for part, data in parts.items() if part not in (train, "test")}
    tables = {part: _dataset_table(f"the data set ({part})", data) for part, data in parts.items()}
    return Opened(tables[train], tables.get("test") if train != "test" else None, ignored)


def _dataset_table(name: str, data: Any) -> SourceTable:
    decoders = {column: getattr(data.features[column], "names", None) for column in data.column_names}

    def read(names: Sequence[str]) -> Iterator[Batch]:
        for batch in data.iter(batch_size=BATCH):
            yield {column: _class_names(batch[column], decoders[column]) for column in names}

    return SourceTable(name, list(data.column_names), read)


def _class_names(values: Iterable[Any], names: Sequence[str] | None) -> list[Any]:
    """Class indices as their names; the library's −1 means: no label."""
    return list(values) if names is None else [None if v is None or v < 0 else names[v] for v in values]
