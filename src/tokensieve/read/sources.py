"""Every kind of source, opened: files, folders, standard input, addresses, data frames, lists, or a data set by name."""

from __future__ import annotations

import glob
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from tokensieve.errors import InputError
from tokensieve.files import Folder
from tokensieve.read.formats import KINDS, file_table, kind_of
from tokensieve.read.plain import LONGEST, PACKED, PlainText, reading
from tokensieve.read.settings import ReadSettings, SourceSettings
from tokensieve.read.table import BATCH, TEST_NAMES, TRAIN_NAMES, Batch, SourceTable
from tokensieve.read.values import listed

if TYPE_CHECKING:
    import pandas
    from polars._typing import ArrowStreamExportable

# also what gives Arrow data (`__arrow_c_stream__`: PyArrow, DuckDB, …), and a Dataset or DatasetDict of the datasets library
Frame: TypeAlias = "pl.DataFrame | pl.LazyFrame | pandas.DataFrame | ArrowStreamExportable"
Source: TypeAlias = "str | Path | Sequence[Any] | Frame | Mapping[str, Any]"
COPIED = 10_000_000_000  # bytes of standard input or of a URL that are copied to a temporary file
# data sets by name: their ids on Hugging Face's hub
NAMED = {"imdb": "stanfordnlp/imdb", "yelp": "Yelp/yelp_review_full"}


class _Opened:
    """A source: the rows to learn from, its own test rows if any, and parts without labels → documents left aside there."""

    def __init__(
        self, train: SourceTable, test: SourceTable | None = None, ignored: Mapping[str, int] = {}
    ) -> None:
        self.train, self.test, self.ignored = train, test, dict(ignored)

    def split_column(self, how: ReadSettings) -> str | None:
        """The column that marks each row as train or test: --split, or one with such a name and no other values.

        One is looked for only where neither the source nor --test has test rows.
        """
        if (
            how.split
            or how.test is not None
            or self.test is not None
            or len(how.columns_of_pairs) not in (0, 2)
        ):
            return how.split and self.train.checked_column(how.split, "split")
        for name in self.train.columns:
            if name.strip().lower() not in (
                "split",
                "set",
                "fold",
                "partition",
                "subset",
            ) or how.uses(name):
                continue
            found = (
                value
                for batch in self.train.read([name])
                for value in SourceTable.as_list(batch[name])
            )
            values = {str(value).strip().lower() for value in found}
            if (
                values <= {*TRAIN_NAMES, *TEST_NAMES}
                and values & {*TRAIN_NAMES}
                and values & {*TEST_NAMES}
            ):
                self.train.notes += (f"column {name!r} marks training and test rows (detected)",)
                return name
        return None

    @property
    def held_out(self) -> SourceTable:
        """The test rows; all rows if the source has no split."""
        return self.train if self.test is None else self.test


def open_source(
    source: Source | SourceTable,
    settings: SourceSettings | None = None,
    labelled: bool = True,
    columns: Sequence[str] = (),
) -> _Opened:
    """Open a source of any kind (see `read_corpus`); an existing path wins over a data set of the same name.

    Args:
        source: see `tokensieve.read.corpus.read_corpus`.
        settings: how it is read; `SourceSettings()` if None.
        labelled: False also takes a folder that holds .txt files and no label folders, and lines of text from standard input.
        columns: names that text from standard input may have in its first line.
    """
    how = settings or SourceSettings()
    if type(source) is dict:  # of columns; a DatasetDict is a dict, too
        try:
            source = pl.DataFrame(source, strict=False)
        except (pl.exceptions.PolarsError, TypeError, ValueError) as problem:
            said = str(problem).splitlines()[0][:200]
            raise InputError(
                f"the columns of a dict must have the same length, {{'text': […], 'label': […]}}: {said}"
            ) from None
    frame = source if isinstance(source, SourceTable) else SourceTable.of_frame(source)
    if frame is not None:
        return _Opened(frame)
    if isinstance(source, tuple):
        return _Opened(SourceTable.of_lists(source))
    if isinstance(source, list) and source and all(isinstance(one, str | Path) for one in source):
        return _Opened(
            _concatenated([open_source(one, how, labelled, columns).train for one in source])
        )
    if isinstance(source, list) and source and all(isinstance(one, dict) for one in source):
        return _Opened(SourceTable.of_records("the list", lambda: iter(source), None))
    if not isinstance(source, str | Path):
        return _open_datasets(source)
    if str(source) == "-":
        return _Opened(_standard_input(how, labelled, columns))
    if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]+://", str(source)):
        return _Opened(_address_table(str(source), how))
    path = Path(source)
    try:
        kind = "folder" if path.is_dir() else "file" if path.exists() else "none"
        found = (
            sorted(glob.glob(str(source)))
            if kind == "none" and re.search(r"[*?\[]", str(source))
            else []
        )
    except (OSError, ValueError, re.error) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise InputError(f"cannot open {str(source)[:80]!r}: {reason}; check the path") from None
    if kind == "folder":
        return _open_folder(path, how, labelled)
    if kind == "file":
        return _Opened(file_table(path, how))
    if found:
        return _Opened(_concatenated([file_table(Path(name), how) for name in found]))
    if str(source) in NAMED:
        return _open_named(str(source))
    beside = sorted(p.name for p in path.parent.iterdir()) if path.parent.is_dir() else []
    stems = {Path(name).stem.lower(): name for name in beside}  # nearly all names end alike
    near = get_close_matches(path.stem.lower(), stems, n=1)
    hint = f"did you mean {str(path.parent / stems[near[0]])!r}?" if near else "check the path"
    raise InputError(
        f"there is no file or folder {str(source)!r}; {hint} (data sets by name: {', '.join(NAMED)})"
    )


def _concatenated(tables: Sequence[SourceTable]) -> SourceTable:
    """Several tables as one; a column that one of them lacks is missing there."""
    if len(tables) == 1:
        return tables[0]
    columns = list(dict.fromkeys(column for table in tables for column in table.columns))
    for table in tables[1:]:
        if not set(table.columns) & set(tables[0].columns):
            raise InputError(
                f"{tables[0].name} and {table.name} have no column in common; read them one by one"
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
    return SourceTable(
        name, columns, read, records, any(table.first_line for table in tables), list(notes)
    )


# ---- folders


_PART = re.compile(r"(?:^|[^a-z])(train|training|test|testing|dev|validation|valid|val)(?![a-z])")
_ABOUT = (  # files beside data, which hold none
    "dataset_dict.json dataset_info.json dataset_infos.json state.json sample_submission.csv samplesubmission.csv"
).split()


def _open_folder(path: Path, how: SourceSettings, labelled: bool) -> _Opened:
    with reading(str(path)):
        below = [p for p in sorted(path.iterdir()) if p.is_dir() and p.name[0] not in "._"]
        parts = {
            found[1]: p
            for p in below
            if (found := re.fullmatch(r"(?:.*[^a-z])?(train|test)", p.name.lower()))
        }
        train = parts.get("train", path)
        files, table = _label_files(train), _data_files(train)
        flat = sorted(path.glob("*.txt"))
    if flat and not labelled and not (files or table):
        return _Opened(_folder_table(path, {"": flat}, how, ("text",)))
    ignored = (
        {"unsup": len(files.pop("unsup"))} if "unsup" in files else {}
    )  # aclImdb's reviews without a label
    if files and not (table and any(p.suffix != ".txt" for paths in files.values() for p in paths)):
        test_files = _label_files(parts["test"]) if train != path and "test" in parts else {}
        test = _folder_table(parts["test"], test_files, how) if test_files else None
        return _Opened(_folder_table(train, files, how), test, ignored)
    if table:
        if not (train != path and "test" in parts and (test_data := _data_files(parts["test"]))):
            return _open_files(table, how)
        own, held = (
            _concatenated([file_table(file, how) for file in some]) for some in (table, test_data)
        )
        return _Opened(own, held)
    if len(below) == 1:  # a folder that holds nothing else
        return _open_folder(below[0], how, labelled)
    raise InputError(
        f"{str(path)!r} is a folder but not a data set; supported are data files, one subfolder of .txt files per label, or "
        "train/LABEL/*.txt beside test/LABEL/*.txt"
    )


def _open_files(files: Sequence[Path], how: SourceSettings) -> _Opened:
    """Data files of one folder, divided by their names."""
    parts: dict[str, list[SourceTable]] = {}
    for file in files:
        found = _PART.findall(file.name.lower())
        part = {"training": "train", "testing": "test"}.get(found[-1], found[-1]) if found else ""
        parts.setdefault(part, []).append(file_table(file, how))
    if "train" not in parts:
        return _Opened(_concatenated([table for tables in parts.values() for table in tables]))
    held = _concatenated(parts["test"]) if "test" in parts else None
    aside = [(name or table.name, table) for name, some in parts.items() for table in some]
    sizes = {
        one: sum(table.height() for name, table in aside if name == one) for one in dict(aside)
    }
    return _Opened(
        _concatenated(parts.pop("train")),
        held,
        {n: sizes[n] for n in sizes if n not in ("train", "test")},
    )


def _data_files(path: Path) -> list[Path]:
    """Tables in a folder or its folder `data`."""
    found = sorted(
        p for p in (*path.glob("*"), *path.glob("data/*")) if p.is_file() and kind_of(p.name)
    )
    return [p for p in found if p.name[0] not in "._" and p.name.lower() not in _ABOUT]


def _label_files(path: Path) -> dict[str, list[Path]]:
    """Label → its texts: the .txt files of each subfolder; where none has any, all files but tables."""
    below = [p for p in sorted(path.iterdir()) if p.is_dir() and p.name[0] not in "._"]
    found = {p.name: sorted(p.glob("*.txt")) for p in below}
    if not any(found.values()):
        found = {
            p.name: sorted(x for x in p.glob("[!._]*") if x.is_file() and not kind_of(x.name))
            for p in below
        }
    return {name: texts for name, texts in found.items() if texts}


def _folder_table(
    path: Path,
    files: Mapping[str, Sequence[Path]],
    how: SourceSettings,
    columns: tuple[str, ...] = ("text", "label"),
) -> SourceTable:
    def read(names: Sequence[str]) -> Iterator[Batch]:
        notes = Counter[str]()
        for label, paths in files.items():
            for start in range(0, len(paths), BATCH):
                some = paths[start : start + BATCH]
                texts = (
                    [PlainText(file, str(file), how) for file in some] if "text" in names else []
                )
                notes.update(note for text in texts for note in text.notes)
                whole = [text.full_text() for text in texts]
                yield {name: whole if name == "text" else [label] * len(some) for name in names}
        table.notes = tuple(f"{note}: {n:,} files" for note, n in notes.items())

    table = SourceTable(str(path), columns, read)
    return table


# ---- standard input and addresses


def _standard_input(how: SourceSettings, labelled: bool, columns: Sequence[str]) -> SourceTable:
    """What comes through standard input; its kind is recognised by how it begins.

    Text whose first line names one of `columns`, or that must have labels, is CSV (TSV, where a tab separates the names); any
    other text is one document per line, in a column named text.
    """
    name, folder = "standard input", Folder()
    endings = {begins: ending for ending, (_, _, begins, _) in PACKED.items()}
    endings |= {kind.begins: ending for ending, kind in reversed(KINDS.items()) if kind.begins}

    def recognised(start: bytes) -> str:
        return next((ending for begins, ending in endings.items() if start.startswith(begins)), "")

    blocks = iter(lambda: sys.stdin.buffer.read(2**22), b"")
    path = folder.save(_limited(blocks, name, how.limits, tuple(endings)))
    start = _beginning(path)
    if not start.strip():
        raise InputError("standard input is empty: pipe texts into the command, or name a file")
    path, unpacked = PlainText.unpacked(path.rename(f"{path}{recognised(start)}"), name, how.limits)
    start = _beginning(path)
    text = start.lstrip(b"\xef\xbb\xbf \t\r\n")
    first = text.partition(b"\n")[0].decode(errors="replace").strip()
    suffix = recognised(start) or {b"{": ".jsonl", b"[": ".json"}.get(text[:1], "")
    named = set(columns) & {
        column.strip().strip('"')
        for column in re.split(f"[{re.escape(how.separator or ',;|')}\t]", first)
    }
    if not suffix and (named or labelled or how.separator or not how.header):
        suffix = ".tsv" if "\t" in first else ".csv"
    path = path.rename(path.with_suffix(suffix or ".txt"))
    if suffix:
        table = file_table(path, how, name)
    else:
        plain = PlainText(path, name, how)
        lines = [
            line.removesuffix("\r") for line in plain.full_text().removesuffix("\n").split("\n")
        ]
        texts = pl.Series(lines, dtype=pl.String)
        table = SourceTable(
            name, ("text",), lambda names: iter([dict.fromkeys(names, texts)]), notes=plain.notes
        )
    table.kept += folder, unpacked
    return table


def _limited(
    blocks: Iterable[bytes], name: str, limits: bool, packed: tuple[bytes, ...] = ()
) -> Iterator[bytes]:
    """Blocks of a source of unknown size, until they or one of their lines become too large, so that they cannot fill the disk."""
    start, line, total = b"", 0, 0
    for block in blocks:
        start, total = start or block[:8], total + len(block)
        if limits and total > COPIED:
            raise InputError(
                f"{name} is over {COPIED / 1e9:,.0f} GB; save it to a file first, or pass --no-limits"
            )
        line = len(block) - block.rfind(b"\n") - 1 if b"\n" in block else line + len(block)
        if limits and line > LONGEST and not start.startswith(packed):
            raise PlainText.too_long_line(name)
        yield block


def _beginning(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(2**16)


def shown_address(address: str) -> str:
    """An address for messages, without user, password and query."""
    scheme, _, rest = address.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{re.split('[?#]', path)[0]}"


def _address_table(address: str, how: SourceSettings) -> SourceTable:
    """A file, or files by a glob, anywhere that Polars reads; text files are copied here first, to be checked like any other."""
    name = shown_address(address)
    kind = kind_of(name)
    if not kind or not KINDS[kind].remote:
        raise InputError(
            f"{name}: only .csv, .tsv, .jsonl, .parquet and .arrow files can be read from a URL; download it"
        )
    scan = pl.scan_parquet if kind == ".parquet" else pl.scan_ipc

    def failed(problem: Exception) -> InputError:
        """One line, without the parts of the address that may be secret."""
        said = (str(problem).splitlines() or [type(problem).__name__])[0].replace(address, name)
        said = re.sub(r"[?&#][^\s'\"]*", "", re.sub(r"://[^/\s@]*@", "://", said))[:300]
        return InputError(f"cannot read {name}: {said}; check the address and the credentials")

    def read(names: Sequence[str]) -> Iterator[Batch]:
        try:
            yield from SourceTable.frame_batches(scan(address), names)
        except Exception as problem:
            raise failed(problem) from None

    try:
        if KINDS[kind].method in ("read_csv", "read_ndjson"):
            folder = Folder()
            copy = folder.save(_limited(_downloaded(address, name), name, how.limits))
            table = file_table(copy.rename(f"{copy}{kind}"), how, name)
            table.kept.append(folder)
            return table
        return SourceTable(name, scan(address).collect_schema().names(), read)
    except InputError:
        raise
    except Exception as problem:  # every cloud has errors of its own
        raise failed(problem) from None


def _downloaded(address: str, name: str) -> Iterator[bytes]:
    """The lines of a text file at an address, in blocks."""
    if address.lower().startswith(("http://", "https://")):
        from urllib.request import urlopen

        if name.lower().endswith(tuple(PACKED)):
            raise InputError(
                f"{name}: compressed files cannot be read from a URL; download it first"
            )
        with urlopen(address, timeout=60) as response:
            yield from iter(lambda: response.read(2**22), b"")
        return
    if not hasattr(pl, "scan_lines"):
        raise InputError(
            f"{name}: this version of Polars downloads only .parquet and .arrow files; download it first"
        )
    for part in pl.scan_lines(address).collect_batches(chunk_size=BATCH, lazy=True):
        yield ("\n".join(part.to_series().fill_null("").to_list()) + "\n").encode()


# ---- data sets of the datasets library


def _open_named(name: str) -> _Opened:
    try:
        import datasets
    except ImportError:
        raise InputError(
            f"the data set {name!r} needs datasets: pip install 'tokensieve[datasets]'"
        ) from None
    if not sys.stderr.isatty():
        datasets.disable_progress_bars()
    try:
        splits = datasets.load_dataset(NAMED[name])
    # the loader fails in many libraries' own ways (network, hub, disk, format); each is a reason to stop
    except Exception as problem:
        reason = (str(problem).splitlines() or [type(problem).__name__])[0]
        raise InputError(
            f"cannot load the data set {name!r} ({NAMED[name]}): {reason}; check the network"
        ) from None
    return _splits(splits, name)


def _open_datasets(source: object) -> _Opened:
    """A `Dataset` or `DatasetDict` of the datasets library."""
    # such an object exists only where the library is loaded; do not load it for others
    library = sys.modules.get("datasets")
    if library is not None and isinstance(source, library.Dataset):
        return _Opened(_dataset_table("the data set", source))
    if library is not None and isinstance(source, library.DatasetDict):
        return _splits(source, "the data set")
    raise InputError(
        f"cannot read a {type(source).__name__}: pass a path, a data frame, an Arrow table, a data set of the datasets "
        "library, a list of dicts, a dict of columns or (texts, labels)"
    )


def _splits(parts: Mapping[str, Any], name: str) -> _Opened:
    train = "train" if "train" in parts else next(iter(parts), None)
    if train is None or (train != "train" and len(parts) > 1):
        raise InputError(
            f"a DatasetDict needs a split 'train'; it has {listed(parts) or 'none'}; pass one split"
        )
    tables = {part: _dataset_table(f"{name} ({part})", data) for part, data in parts.items()}
    ignored = {part: data.num_rows for part, data in parts.items() if part not in (train, "test")}
    return _Opened(tables[train], tables.get("test") if train != "test" else None, ignored)


def _dataset_table(name: str, data: Any) -> SourceTable:
    """Its rows, class indices as their names; the library's −1 means: no label."""

    def decoded(column: str, values: Iterable[Any]) -> list[Any]:
        names = getattr(data.features[column], "names", None)
        return (
            list(values)
            if names is None
            else [None if v is None or v < 0 else names[v] for v in values]
        )

    def read(names: Sequence[str]) -> Iterator[Batch]:
        for batch in data.iter(batch_size=BATCH):
            yield {column: decoded(column, batch[column]) for column in names}

    return SourceTable(name, list(data.column_names), read)
