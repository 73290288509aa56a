"""Data sets of the datasets library."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tokensieve.errors import InputError
from tokensieve.read.columnar import with_class_names
from tokensieve.read.opened import OpenedSource
from tokensieve.read.table import BATCH_ROWS, Batch, SourceTable
from tokensieve.read.values import listed

# data sets by name: their ids on Hugging Face's hub
DATA_SETS = {"imdb": "stanfordnlp/imdb", "yelp": "Yelp/yelp_review_full"}


def open_data_set_by_name(name: str) -> OpenedSource:
    """Download one of `DATA_SETS`."""
    try:
        import datasets
    except ImportError:
        raise InputError(
            f"the data set {name!r} needs datasets: pip install 'tokensieve[datasets]'"
        ) from None
    if not sys.stderr.isatty():
        datasets.disable_progress_bars()
    try:
        parts = datasets.load_dataset(DATA_SETS[name])
    # the loader fails in many libraries' own ways (network, hub, disk, format)
    except Exception as problem:
        reason = (str(problem).splitlines() or [type(problem).__name__])[0]
        raise InputError(
            f"cannot load the data set {name!r} ({DATA_SETS[name]}): {reason}; check the network"
        ) from None
    return _open_parts(parts, name)


def open_data_set(source: object) -> OpenedSource | None:
    """A `Dataset` or `DatasetDict`; None for anything else."""
    library = sys.modules.get("datasets")  # such an object exists only where it is loaded
    if library is None:
        return None
    if isinstance(source, library.Dataset):
        return OpenedSource(_table("the data set", source))
    if isinstance(source, library.DatasetDict):
        return _open_parts(source, "the data set")
    return None


def _open_parts(parts: Mapping[str, Any], name: str) -> OpenedSource:
    """The split "train", or the only one, and "test" if there is one; other splits are set aside
    and counted.

    Raises:
        InputError: there are several splits, and none is "train".
    """
    if "train" in parts:
        train = "train"
    elif len(parts) == 1:
        train = next(iter(parts))
    else:
        raise InputError(
            f"a DatasetDict needs a split 'train'; it has {listed(parts) or 'none'}; pass one split"
        )
    tables = {part: _table(f"{name} ({part})", data) for part, data in parts.items()}
    test = tables.get("test") if train != "test" else None
    ignored = {part: data.num_rows for part, data in parts.items() if part not in (train, "test")}
    return OpenedSource(tables[train], test, ignored)


def _table(name: str, data: Any) -> SourceTable:
    """The rows of a `Dataset`, class indices as their names."""

    def read(names: Sequence[str]) -> Iterator[Batch]:
        for batch in data.iter(batch_size=BATCH_ROWS):
            yield {column: _decoded(batch[column], data.features[column]) for column in names}

    return SourceTable(name, list(data.column_names), read)


def _decoded(values: Sequence[Any], feature: Any) -> list[Any]:
    """The values of a column; class indices, also in lists, as their names."""
    class_label = getattr(feature, "feature", feature)
    names = getattr(class_label, "names", None)
    return list(values) if names is None else with_class_names(values, names)
