"""Rows that are annotations: one text, or one id, with a row for each of its annotators.

Such rows become one document with the label that most annotators chose, as lists of annotations do
(`annotations.py`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import polars as pl

from tokensieve.errors import InputError
from tokensieve.escape import option
from tokensieve.name_lists import joined_names
from tokensieve.read.annotation_columns import ANNOTATOR, AnnotationColumns
from tokensieve.read.collect import CollectedDocuments, CollectedParts
from tokensieve.read.table import SourceTable
from tokensieve.read.values import listed
from tokensieve.wording import plural

# writers repeat each other's texts now and then; of annotated data this is usual
MIN_SHARED_FRACTION = 0.5


def merge_annotations(
    parts: CollectedParts, columns: AnnotationColumns, table: SourceTable, annotator: str | None
) -> CollectedParts:
    """One document for all rows of one text, where several annotators labelled texts.

    Args:
        parts: the rows of the table, as documents.
        columns: where annotator and document may be named.
        table: gets a note that says what was merged.
        annotator: the only one whose labels count; the majority's do if None.
    """
    frames = [_with_units(parts, side.frame, columns) for side in parts]
    everything = pl.concat([frame.select("unit", ANNOTATOR) for frame in frames])
    if annotator is None:
        n_annotators = _annotators_per_unit(everything)
        n_shared = int((n_annotators > 1).sum())
        if not n_shared:
            return _without_columns(parts, columns)
        is_identified = _unit_column(parts, columns) is not None
        is_usual = n_shared >= MIN_SHARED_FRACTION * len(n_annotators)
        if not (columns.is_certain or is_identified or is_usual):
            table.notes = (*table.notes, _hint(n_shared, columns))
            return _without_columns(parts, columns)
    _check_annotator(everything[ANNOTATOR], annotator, columns, table)
    table.notes = (*table.notes, _note(everything, columns, annotator))
    merged = [_merged(side, frame, annotator) for side, frame in zip(parts, frames, strict=True)]
    return _without_columns(CollectedParts(*merged), columns)


def _with_units(
    parts: CollectedParts, frame: pl.DataFrame, columns: AnnotationColumns
) -> pl.DataFrame:
    """The frame with the document of each row as "unit": its id, or the digest of its text."""
    unit = _unit_column(parts, columns)
    if unit is None:
        return frame.with_columns(unit="key")
    own_unit = pl.format("\0{}", "row")  # NUL prevents collisions with ids
    return frame.with_columns(unit=pl.col(unit).fill_null(own_unit).cast(pl.Binary))


def _unit_column(parts: CollectedParts, columns: AnnotationColumns) -> str | None:
    """The column whose values stand for one text each, several rows of some; the finest one."""
    names = list(columns.by_name)[1:]
    frame = pl.concat([side.frame.select("key", *names) for side in parts])
    best = None
    most_units = 0
    for name in names:
        known = frame.drop_nulls(name)
        n_units = known[name].n_unique()
        n_texts_of_units = known.select(name, "key").n_unique()
        is_unit = n_units == n_texts_of_units and n_units < known.height
        if is_unit and n_units > most_units:
            best = name
            most_units = n_units
    return best


def _annotators_per_unit(rows: pl.DataFrame) -> pl.Series:
    distinct = rows.drop_nulls().unique()
    return distinct.group_by("unit").len()["len"]


def _check_annotator(
    annotators: pl.Series, annotator: str | None, columns: AnnotationColumns, table: SourceTable
) -> None:
    """Refuse the name of an annotator who has no annotation."""
    names = annotators.drop_nulls().unique().sort().to_list()
    if annotator is not None and annotator not in names:
        raise InputError(
            f"{table.name}: column {columns.annotator!r} has no annotation by {annotator!r}; "
            f"the annotators are {listed(names)}"
        )


def _note(rows: pl.DataFrame, columns: AnnotationColumns, annotator: str | None) -> str:
    """A sentence that the table has a row for each annotation, and how to read each row as a
    document."""
    if annotator is not None:
        return f"only the labels of annotator {annotator!r} are read"
    n_documents = rows["unit"].n_unique()
    annotators = plural(rows[ANNOTATOR].drop_nulls().n_unique(), "annotator")
    alone = option("--annotated-by", "")
    return (
        f"{plural(rows.height, 'row')} by {annotators} (column {columns.annotator!r}) label "
        f"{plural(n_documents, 'document')}; the majority counts (to read each row as a "
        f"document, pass {alone})"
    )


def _hint(n_shared: int, columns: AnnotationColumns) -> str:
    """A sentence that tells what to do if the column of writers names annotators."""
    name = columns.annotator
    return (
        f"{plural(n_shared, 'text')} with rows by several values of {name!r}; if these labelled "
        f"the texts, pass {option('--annotated-by', joined_names([name]))}"
    )


def _merged(
    side: CollectedDocuments, frame: pl.DataFrame, annotator: str | None
) -> CollectedDocuments:
    """The documents of one side, each in its first row with the label that it gets."""
    rows = frame.with_row_index("at").with_columns(pl.col(ANNOTATOR).fill_null(""))
    if annotator is not None:
        rows = rows.filter(pl.col(ANNOTATOR) == annotator)
    votes = rows.unique(["unit", ANNOTATOR, "label"], keep="first", maintain_order=True)
    n_votes = votes.group_by("unit", "label").agg(
        votes=pl.len(), at=pl.col("at").min(), row=pl.col("row").min()
    )
    leading = n_votes.filter(pl.col("votes") == pl.col("votes").max().over("unit"))
    decided = leading.filter(pl.len().over("unit") == 1)
    by_unit = n_votes.group_by("unit").agg(
        votes=pl.col("votes").sum(), labels=pl.len(), first_row=pl.col("row").min()
    )
    disputed = by_unit.filter(pl.col("labels") > 1).join(
        decided.select("unit", "row"), on="unit", how="left"
    )
    disputed_rows = disputed.select(pl.coalesce("row", "first_row")).to_series()
    counts = Counter(side.counts)
    counts["annotated"] = by_unit.filter(pl.col("votes") > 1).height
    counts["no_majority"] = by_unit.height - decided.height
    counts["further_annotations"] = frame.height - by_unit.height
    is_kept = np.zeros(frame.height, dtype=np.bool_)
    is_kept[decided["at"].to_numpy()] = True
    mask = pl.Series(is_kept)
    return replace(
        side,
        frame=frame.drop("unit").filter(mask),
        stored=None if side.stored is None else side.stored.filter(mask),
        counts=counts,
        disagreements=tuple(disputed_rows.sort().to_list()),
    )


def _without_columns(parts: CollectedParts, columns: AnnotationColumns) -> CollectedParts:
    """The documents without what tells annotators and documents apart."""
    names = list(columns.by_name)
    train = replace(parts.train, frame=parts.train.frame.drop(names))
    test = replace(parts.test, frame=parts.test.frame.drop(names))
    return CollectedParts(train, test)
