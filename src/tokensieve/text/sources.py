"""Every kind of source, opened: a file, a folder, a data frame, lists, or a data set by name."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from tokensieve.errors import InputError
from tokensieve.text.formats import check_regular, file_table, reading, whole_text
from tokensieve.text.settings import SourceSettings
from tokensieve.text.table import BATCH, ArrowStream, Row, Table, frame_table, list_table

if TYPE_CHECKING:
    import pandas

# also what gives Arrow data (`__arrow_c_stream__`: PyArrow, DuckDB, …), and a Dataset or DatasetDict of the datasets library
Frame: TypeAlias = "pl.DataFrame | pl.LazyFrame | pandas.DataFrame | ArrowStream"
Source: TypeAlias = "str | Path | Frame | Mapping[str, Any] | tuple[Sequence[Any], Sequence[Any]]"
LAYOUTS = "a folder with one subfolder of .txt files per label, or train/LABEL/*.txt beside test/LABEL/*.txt"


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


def open_source(source: Source, how: SourceSettings | None = None, labelled: bool = True) -> Opened:
    """Open a file, a folder, a data frame, (texts, labels) lists or a named data set.

    An existing path wins over a data set of the same name.

    Args:
        source: see `tokensieve.text.corpus.read_corpus`.
        how: text files are read; `SourceSettings()` if None.
        labelled: False also takes a folder that holds .txt files and no label folders.

    Raises:
        InputError: the source is missing, of an unknown kind, or cannot be read.
    """
    frame = frame_table(source)
    if frame is not None:
        return Opened(frame)
    if isinstance(source, tuple):
        return Opened(list_table(source))
    if not isinstance(source, str | Path):
        opened = _open_datasets(source)
        if opened is None:
            raise InputError(
                f"cannot read a {type(source).__name__}: give a path, a data frame, an Arrow table, a data set of the datasets "
                "library or (texts, labels)"
            )
        return opened
    return _open_path(source, how or SourceSettings(), labelled)


def _open_path(source: str | Path, how: SourceSettings, labelled: bool) -> Opened:
    path = Path(source)
    try:
        kind = "folder" if path.is_dir() else "file" if path.exists() else "none"
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise InputError(f"cannot open {str(source)[:80]!r}: {reason}; check the path") from None
    if kind == "folder":
        return _open_folder(path, how.encoding or "utf-8", labelled)
    if kind == "file":
        check_regular(path)
        return Opened(file_table(path, how))
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


# ---- folders


def _open_folder(path: Path, encoding: str, labelled: bool) -> Opened:
    with reading(path):
        train = path / "train" if (path / "train").is_dir() else path
        files, ignored = _label_files(train)
        test_files, _ = _label_files(path / "test") if train != path and (path / "test").is_dir() else ({}, {})
        flat = _texts_in(path)
    if not files and flat and not labelled:
        return Opened(_folder_table(path, {"": flat}, encoding, ("text",)))
    if not files:
        raise InputError(f"{str(path)!r} is a folder but no data set; understood are: {LAYOUTS}")
    test = _folder_table(path / "test", test_files, encoding) if test_files else None
    return Opened(_folder_table(train, files, encoding), test, ignored)


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
    path: Path, files: Mapping[str, Sequence[Path]], encoding: str, columns: tuple[str, ...] = ("text", "label")
) -> Table:
    def read(which: Sequence[int]) -> Iterator[Row]:
        for label, texts in files.items():
            for file in texts:
                both = (whole_text(file, encoding), label)
                yield tuple([both[i] for i in which])

    return Table(str(path), columns, read)


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


def _open_datasets(source: Any) -> Opened | None:
    """A `Dataset` or `DatasetDict` of the datasets library; None for anything else."""
    library = sys.modules.get(
        "datasets"
    )  # such an object exists only where the library is loaded; do not load it for others
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
