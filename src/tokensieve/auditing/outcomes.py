"""Which test items an audit predicted correctly: a file, by which two audits are compared item by
item."""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
import polars as pl

from tokensieve.evidence.paired import PairedDifference
from tokensieve.task.tasks import CorpusModel

FILE_NAME = "test-results.csv"
SCHEMA = {
    "row": pl.Int64,
    "label": pl.String,
    "right": pl.Float64,
    "group": pl.Int64,
    "text": pl.String,
}
DIGEST_CHARACTERS = 12  # of a text's digest: two of a million texts agree with a chance of 1 in 500


@dataclass(frozen=True)
class AccuracyChange:
    """How the accuracy changed from one audit to another.

    Attributes:
        value: after − before.
        low, high: its 95% interval.
        everywhere: the same test items compared one by one; None if the audits tested others.
        on_changed: the same among the items whose text changed; None if that is none or all.
    """

    value: float
    low: float
    high: float
    everywhere: PairedDifference | None = None
    on_changed: PairedDifference | None = None

    @property
    def is_within_chance(self) -> bool:
        """Whether the interval contains zero."""
        return self.low <= 0 <= self.high


def outcomes_table(learned: CorpusModel) -> pl.DataFrame | None:
    """A row per test item: row in the source, label, right (1, 0 or ½), group, digest of its text.

    None if the test documents at hand are a sample.
    """
    task = learned.task
    corpus = learned.test.corpus
    if task.known_totals:
        return None
    right = task.correct(learned.f, learned.test.counts)
    first_documents = task.items(len(corpus.labels))
    units = task.units(corpus)
    if units is None:
        units = np.arange(len(right))
    labels = [corpus.classes[k] for k in corpus.labels[first_documents].tolist()]
    digests = corpus.keys.bin.encode("hex").str.slice(0, DIGEST_CHARACTERS)
    texts = digests.gather_every(task.size)
    for place in range(1, task.size):  # the other answer of a pair
        texts = texts + digests.gather_every(task.size, place)
    return pl.DataFrame(
        {
            "row": corpus.rows[first_documents],
            "label": labels,
            "right": right,
            "group": units,
            "text": texts,
        },
        schema=SCHEMA,
    )


def read_outcomes(content: bytes) -> pl.DataFrame | None:
    """The table from its file; None if the file is not such a table."""
    try:
        table = pl.read_csv(io.BytesIO(content), schema=SCHEMA)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError):
        return None
    is_complete = table.null_count().sum_horizontal().item() == 0
    return table if is_complete and table["right"].is_between(0, 1).all() else None


def paired_change(before: pl.DataFrame, after: pl.DataFrame) -> AccuracyChange | None:
    """Compares two audits of the same test items; None if these differ in rows or labels."""
    if before.is_empty() or not before.select("row", "label").equals(after.select("row", "label")):
        return None
    everywhere = _difference(before, after)
    has_changed = before["text"] != after["text"]
    on_changed = None
    if 0 < has_changed.sum() < len(has_changed):
        on_changed = _difference(before.filter(has_changed), after.filter(has_changed))
    return AccuracyChange(
        value=everywhere.change,
        low=everywhere.low,
        high=everywhere.high,
        everywhere=everywhere,
        on_changed=on_changed,
    )


def _difference(before: pl.DataFrame, after: pl.DataFrame) -> PairedDifference:
    groups = before["group"].to_numpy()
    is_grouped = len(np.unique(groups)) < len(groups)
    return PairedDifference.of(
        before["right"].to_numpy(), after["right"].to_numpy(), groups if is_grouped else None
    )
