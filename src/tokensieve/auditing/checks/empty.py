"""Documents without a word that the model knows."""

from __future__ import annotations

import numpy as np
import polars as pl

from tokensieve.arrays import Ints
from tokensieve.auditing.checks.api import (
    MAX_EXAMPLES,
    AuditContext,
    Check,
    ConcernedDocuments,
    Findings,
    Labels,
    Share,
)
from tokensieve.text.vocabulary import CountedCorpus
from tokensieve.wording import percent, plural, verb

WEIGHT = 0.5  # such a document is still predicted by its formatting, or as the largest class


class Empty(Check):
    """For such a document, only the class frequencies and formatting predict the label."""

    name = "empty"
    title = "No known words"
    about = "Training or test documents that contain no word of the vocabulary."
    action = (
        "Look at these rows: the text may be missing, in another column, or in another language or "
        "script."
    )
    tasks = (Labels,)
    descriptive = True

    def find(self, audit: AuditContext) -> Findings:
        sides = {"train": audit.train, "test": audit.test}
        n = sum(audit.task.total(part, _n_without_words) for part in sides.values())
        if not n:
            return
        share = Share.count(n, sum(audit.totals["documents"].values()))
        rows = []
        examples = []
        for name, part in sides.items():
            documents = _without_words(part)
            rows.append(part.corpus.rows_of(documents, name))
            examples += [audit.excerpt(i, name) for i in documents[:MAX_EXAMPLES].tolist()]
        contain = verb(n, "contain")
        yield self.finding(
            audit,
            severity=WEIGHT * share.value,
            headline=(
                f"{plural(n, 'document')} ({percent(share.value)}) {contain} no word that the "
                "model knows"
            ),
            evidence={"documents": share},
            documents=ConcernedDocuments(
                total=n, rows=pl.concat(rows), examples=examples[:MAX_EXAMPLES]
            ),
            details=(f"{share.as_counts} documents contain no known word",),
        )


def _without_words(part: CountedCorpus) -> Ints:
    """Documents without a word. The types of a row are sorted, words before formatting."""
    matrix = part.counts.matrix
    n_words = part.counts.n_types - part.n_formatting
    first_types = np.append(matrix.indices, n_words)[matrix.indptr[:-1]]
    is_empty = np.diff(matrix.indptr) == 0
    return np.flatnonzero((first_types >= n_words) | is_empty)


def _n_without_words(part: CountedCorpus) -> int:
    return len(_without_words(part))
