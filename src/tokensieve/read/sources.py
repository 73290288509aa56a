"""Open a source of any kind: files, folders, standard input, addresses, frames, data sets."""

from __future__ import annotations

import glob
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from tokensieve.errors import InputError
from tokensieve.read.addresses import address_table
from tokensieve.read.folders import open_folder
from tokensieve.read.formats import file_table
from tokensieve.read.hub import DATA_SETS, open_data_set, open_data_set_by_name
from tokensieve.read.opened import OpenedSource, concatenated
from tokensieve.read.settings import SourceSettings
from tokensieve.read.standard_input import standard_input_table
from tokensieve.read.table import SourceTable

if TYPE_CHECKING:
    import pandas
    from polars._typing import ArrowStreamExportable

# also what gives Arrow data (`__arrow_c_stream__`: PyArrow, DuckDB, …), and a Dataset or
# DatasetDict of the datasets library
Frame: TypeAlias = "pl.DataFrame | pl.LazyFrame | pandas.DataFrame | ArrowStreamExportable"
Source: TypeAlias = "str | Path | Sequence[Any] | Frame | Mapping[str, Any]"


def open_source(
    source: Source | SourceTable,
    settings: SourceSettings | None = None,
    labelled: bool = True,
    columns: Sequence[str] = (),
) -> OpenedSource:
    """Open a source of any kind; see `read_corpus`.

    Args:
        source: an existing path wins over a data set of the same name.
        settings: how it is read; `SourceSettings()` if None.
        labelled: False also takes a folder that holds .txt files and no label folders, and lines of
            text from standard input.
        columns: names that text from standard input may have in its first line.
    """
    settings = settings or SourceSettings()
    if isinstance(source, SourceTable):
        return OpenedSource(source)
    if isinstance(source, str | Path):
        return _open_path(str(source), settings, labelled, columns)
    if type(source) is dict:  # a DatasetDict is a dict, too
        return _open_frame(_frame_of(source))
    if isinstance(source, tuple):
        return OpenedSource(SourceTable.of_lists(source))
    if isinstance(source, list) and _holds_only(source, (str, Path)):
        tables = [open_source(entry, settings, labelled, columns).train for entry in source]
        return OpenedSource(concatenated(tables))
    if isinstance(source, list) and _holds_only(source, (dict,)):
        records = source
        return OpenedSource(SourceTable.of_records("the list", lambda: iter(records), None))
    return _open_frame(source)


def _holds_only(entries: list[Any], types: tuple[type, ...]) -> bool:
    return bool(entries) and all(isinstance(entry, types) for entry in entries)


def _frame_of(columns: Mapping[str, Any]) -> pl.DataFrame:
    """A dict of columns as a frame; an `InputError` if they differ in length."""
    try:
        return pl.DataFrame(columns, strict=False)
    except (pl.exceptions.PolarsError, TypeError, ValueError) as problem:
        reason = str(problem).splitlines()[0][:200]
        raise InputError(
            "the columns of a dict must have the same length, "
            f"{{'text': […], 'label': […]}}: {reason}"
        ) from None


def _open_frame(source: object) -> OpenedSource:
    """A data frame, or a `Dataset` or `DatasetDict` of the datasets library."""
    table = SourceTable.of_frame(source)
    if table is not None:
        return OpenedSource(table)
    opened = open_data_set(source)
    if opened is None:
        raise InputError(
            f"cannot read a {type(source).__name__}: pass a path, a data frame, an Arrow table, "
            "a data set of the datasets library, a list of dicts, a dict of columns or "
            "(texts, labels)"
        )
    return opened


def _open_path(
    source: str, settings: SourceSettings, labelled: bool, columns: Sequence[str]
) -> OpenedSource:
    """A file, a folder, a glob, an address, standard input, or a data set by name."""
    if source == "-":
        return OpenedSource(standard_input_table(settings, labelled, columns))
    if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]+://", source):
        return OpenedSource(address_table(source, settings))
    path = Path(source)
    try:
        is_folder = path.is_dir()
        is_there = path.exists()
        has_pattern = not is_there and re.search(r"[*?\[]", source)
        matches = sorted(glob.glob(source)) if has_pattern else []
    except (OSError, ValueError, re.error) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise InputError(f"cannot open {source[:80]!r}: {reason}; check the path") from None
    if is_folder:
        return open_folder(path, settings, labelled)
    if is_there:
        return OpenedSource(file_table(path, settings))
    if matches:
        return OpenedSource(concatenated([file_table(Path(name), settings) for name in matches]))
    if source in DATA_SETS:
        return open_data_set_by_name(source)
    raise _no_such_file(path)


def _no_such_file(path: Path) -> InputError:
    """The error for a path that does not exist, with a similar one beside it."""
    neighbours = sorted(p.name for p in path.parent.iterdir()) if path.parent.is_dir() else []
    by_stem = {Path(name).stem.lower(): name for name in neighbours}  # nearly all names end alike
    similar = get_close_matches(path.stem.lower(), by_stem, n=1)
    hint = "check the path"
    if similar:
        hint = f"did you mean {str(path.parent / by_stem[similar[0]])!r}?"
    return InputError(
        f"there is no file or folder {str(path)!r}; {hint} "
        f"(data sets by name: {', '.join(DATA_SETS)})"
    )
