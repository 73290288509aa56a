"""Parquet and Arrow files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

import polars as pl

from tokensieve.errors import one_line
from tokensieve.read.plain import PlainText, reading
from tokensieve.read.settings import SourceSettings
from tokensieve.read.table import (
    Batch,
    SourceTable,
    batch_height,
    check_all_rows,
    frame_batches,
)
from tokensieve.read.values import as_list

ARROW_SCHEMA_BYTES = 2**20  # at the beginning of a file; a schema takes some kilobytes
ALL_ROWS = slice(None)


def parquet_table(
    path: Path, name: str, settings: SourceSettings, rows: slice = ALL_ROWS
) -> SourceTable:
    """The rows of a Parquet file, or some of them."""

    def scan() -> pl.LazyFrame:
        frame = pl.scan_parquet(path, glob=False)
        return frame if rows == ALL_ROWS else frame.slice(rows.start, rows.stop - rows.start)

    return _scanned_table(scan, "Parquet", path, name, settings, _class_names_in(path))


def arrow_table(path: Path, name: str, settings: SourceSettings) -> SourceTable:
    """The rows of an Arrow file or stream."""

    def scan() -> pl.LazyFrame:
        with path.open("rb") as file:
            is_stream = file.read(6) != b"ARROW1"
        return pl.read_ipc_stream(path).lazy() if is_stream else pl.scan_ipc(path, glob=False)

    return _scanned_table(scan, "Arrow", path, name, settings, _class_names_in_arrow(path))


def _scanned_table(
    scan: Callable[[], pl.LazyFrame],
    kind: str,
    path: Path,
    name: str,
    settings: SourceSettings,
    class_names: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> SourceTable:
    """A table of a frame; `class_names` are those of columns of class indices."""

    def read(names: Sequence[str]) -> Iterator[Batch]:
        n_bytes = 0
        n_rows = 0
        for batch in guarded_batches(scan, names, name, kind):
            n_rows += batch_height(batch)
            # measured before it leaves Polars, where many cells may be one text
            columns = [values for values in batch.values() if isinstance(values, pl.Series)]
            n_bytes += sum(map(expanded_bytes, columns))
            PlainText.check_expansion(name, path, n_bytes, settings.limits)
            yield {
                column: with_class_names(as_list(values), class_names[column])
                if column in class_names
                else values
                for column, values in batch.items()
            }
        with reading(name, kind), one_line(f"{name} is not a readable {kind} file"):
            check_all_rows(scan(), n_rows, name)

    with reading(name, kind), one_line(f"{name} is not a readable {kind} file"):
        columns = scan().collect_schema().names()
    notes = [
        f"column {column!r}: class names of the file" for column in class_names if column in columns
    ]
    return SourceTable(name, columns, read, notes=notes)


def _class_names_in(path: Path) -> dict[str, list[str]]:
    """Column → the names of its classes, as the datasets library writes them to Parquet files."""
    with suppress(pl.exceptions.PolarsError, OSError, ValueError, KeyError):
        return _names_of_classes(json.loads(pl.read_parquet_metadata(path)["huggingface"]))
    return {}


def _class_names_in_arrow(path: Path) -> dict[str, list[str]]:
    """The same of an Arrow file, whose schema stands at its beginning."""
    with suppress(OSError, ValueError), path.open("rb") as file:
        schema = file.read(ARROW_SCHEMA_BYTES).decode("utf-8", "replace")
        if "huggingface" in schema:
            metadata, _ = json.JSONDecoder().raw_decode(schema, schema.index('{"info"'))
            return _names_of_classes(metadata)
    return {}


def _names_of_classes(metadata: Any) -> dict[str, list[str]]:
    """Column → class names, from what the datasets library writes to a schema."""
    with suppress(KeyError, TypeError, ValueError, AttributeError):
        features = metadata["info"]["features"]
        names = {column: _class_names(feature) for column, feature in features.items()}
        return {column: class_names for column, class_names in names.items() if class_names}
    return {}


def _class_names(feature: object) -> list[str]:
    """The class names of a feature, or of the entries of a list of them; none of any other."""
    if isinstance(feature, list) and feature:
        feature = feature[0]
    if not isinstance(feature, dict):
        return []
    if feature.get("_type") in ("Sequence", "LargeList", "List"):
        return _class_names(feature.get("feature"))
    if feature.get("_type") != "ClassLabel":
        return []
    names = feature["names"]
    if isinstance(names, dict):  # index → name
        names = [names[index] for index in sorted(names, key=int)]
    return list(names)


def with_class_names(values: Sequence[Any], names: Sequence[str]) -> list[Any]:
    """Class indices, also in lists, as their names; −1 means: no label."""
    named: list[Any] = []
    for value in values:
        if isinstance(value, list):
            named.append(with_class_names(value, names))
        else:
            is_known = value is not None and 0 <= value < len(names)
            named.append(names[value] if is_known else None)
    return named


def guarded_batches(
    scan: Callable[[], pl.LazyFrame], names: Sequence[str], name: str, kind: str
) -> Iterator[Batch]:
    """Batches of a frame; standard error is silenced only while Polars works."""
    batches: Iterator[Batch] | None = None
    while True:
        with reading(name, kind), one_line(f"{name} is not a readable {kind} file"):
            batches = batches or frame_batches(scan(), names)
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


def expanded_bytes(values: pl.Series) -> int:
    """The least memory that the values take, each on its own."""
    dtype = values.dtype
    own_bytes = 8 * len(values)
    if isinstance(dtype, pl.Struct):
        fields = (values.struct.field(field.name) for field in dtype.fields)
        return own_bytes + sum(map(expanded_bytes, fields))
    if isinstance(dtype, pl.List | pl.Array):
        return own_bytes + expanded_bytes(values.explode())
    if dtype in (pl.Categorical, pl.Enum):
        counts = values.value_counts()
        lengths = counts.to_series(0).cast(pl.String).str.len_bytes().cast(pl.Int64)
        return own_bytes + int((lengths * counts["count"]).sum())
    if dtype == pl.String:
        return own_bytes + int(values.str.len_bytes().cast(pl.Int64).sum())
    return own_bytes
