"""Documents without a word that the model knows."""

from __future__ import annotations

import numpy as np
import polars as pl

from tokensieve.arrays import Ints
from tokensieve.auditing.checks.api import (
    MAX_EXAMPLES,
    AuditContext,
    Check,
    Findings,
    Labels,
    Share,
)
from tokensieve.text.vocabulary import CountedCorpus
from tokensieve.wording import percent, plural, verb


class Empty(Check):
    """For such a document, only the class frequencies and formatting predict the label."""

    name = "empty"
    title = "No known words"
    about = "Training or test documents that contain no word of the vocabulary."
    action = "Look at these rows: the text may be missing, in another column, or in another language or script."
    tasks = (Labels,)
    descriptive = True

    def find(self, data: AuditContext) -> Findings:
        parts = {"train": data.train, "test": data.test}
        wordless = {name: _wordless(part) for name, part in parts.items()}
        n = sum(data.task.total(part, lambda some: len(_wordless(some))) for part in parts.values())
        if not n:
            return
        share = Share.count(n, sum(data.totals["documents"].values()))
        starts = [
            data.excerpt(int(i), name) for name in parts for i in wordless[name][:MAX_EXAMPLES]
        ]
        yield self.finding(
            data,
            0.5 * share.value,
            f"{plural(n, 'document')} ({percent(share.value)}) {verb(n, 'contain')} no word that the model knows",
            evidence={"documents": share},
            n_documents=n,
            rows=pl.concat(
                [part.corpus.rows_of(wordless[name], name) for name, part in parts.items()]
            ),
            examples=tuple(starts[:MAX_EXAMPLES]),
            details=(f"{share.as_counts} documents contain no known word",),
        )


def _wordless(part: CountedCorpus) -> Ints:
    """Documents without a word: in rows of sorted types the first is none of the words."""
    matrix, words = part.counts.matrix, part.counts.n_types - part.n_formatting
    first = np.append(matrix.indices, words)[matrix.indptr[:-1]]
    return np.flatnonzero((first >= words) | (np.diff(matrix.indptr) == 0))
