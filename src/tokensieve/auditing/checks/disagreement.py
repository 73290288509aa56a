"""Documents whose annotators chose different labels."""

from __future__ import annotations

import numpy as np
import polars as pl

from tokensieve.arrays import Ints
from tokensieve.auditing.checks.api import (
    AuditContext,
    Check,
    ConcernedDocuments,
    Findings,
    Labels,
    Share,
)
from tokensieve.wording import percent, plural

MIN_FRACTION = 0.01  # of the documents with several annotations; fewer are slips of the hand


class Disagreement(Check):
    """Documents that several annotators labelled, and not all in the same way."""

    name = "disagreement"
    title = "Annotators disagree"
    about = (
        f"At least {percent(MIN_FRACTION)} of the documents that several annotators labelled got "
        "different labels."
    )
    action = (
        "Read these texts: what annotators cannot agree on, a model cannot learn. Clarify the "
        "guidelines, let a third person decide, or audit the labels of one of them with "
        "--annotator NAME."
    )
    tasks = (Labels,)

    def find(self, audit: AuditContext) -> Findings:
        corpus = audit.train.corpus
        reading = corpus.reading
        n_annotated = reading.counts["annotated"]
        rows = np.array(reading.disagreements, dtype=np.int64)
        if not n_annotated or len(rows) < MIN_FRACTION * n_annotated:
            return
        share = Share.count(len(rows), n_annotated)
        n_documents = reading.counts["rows"] - reading.counts["further_annotations"]
        n_without_majority = reading.counts["no_majority"]
        details = [f"{share.as_counts} documents with several annotations got different labels"]
        if n_without_majority:
            left_out = plural(n_without_majority, "document")
            details.append(f"{left_out} without a majority, left out as without a label")
        in_training = np.flatnonzero(np.isin(corpus.rows, rows))
        yield self.finding(
            audit,
            # a disagreement leaves one of two labels in doubt
            severity=len(rows) / max(n_documents, 1) / 2,
            headline=(
                f"Annotators disagree on {len(rows):,} of the {n_annotated:,} documents with "
                f"several annotations ({percent(share.value)})"
            ),
            documents=ConcernedDocuments(in_training, total=len(rows), rows=_rows(audit, rows)),
            evidence={"documents": share},
            details=details,
        )


def _rows(audit: AuditContext, rows: Ints) -> pl.DataFrame:
    """The rows with different labels; those without a majority are in no part and have no label."""
    train, test = audit.train.corpus, audit.test.corpus
    parts = [
        train.rows_of(np.flatnonzero(np.isin(train.rows, rows))),
        test.rows_of(np.flatnonzero(np.isin(test.rows, rows)), "test"),
    ]
    used = pl.concat(parts)
    unused = np.setdiff1d(rows, used["row"].to_numpy())
    left_out = pl.DataFrame({"row": unused}, schema={"row": pl.Int64})
    return pl.concat([used, left_out], how="diagonal").with_columns(
        pl.col("token", "part", "label").fill_null("")
    )
