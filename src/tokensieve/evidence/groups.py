"""Units: documents that belong together (one source sentence, author, thread, template) are one piece of evidence.

Parts of one sentence share words and label; counted one by one they make chance look like evidence. Here the documents of a unit
with the same label are merged into one before anything is computed: c and T are sums over the unit, x = c/T is its share, and every
statistic, interval and q-value of `tokensieve.evidence.importance` is then over units. A unit whose documents have different labels
is one merged document in each of its classes; these share what the unit shares, which makes the test cautious, never bold.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from tokensieve.errors import InputError
from tokensieve.text.counts import Counts, Ints


def merged(counts: Counts, units: Ints) -> tuple[Counts, Ints]:
    """One document for every unit and label that occur together, in order of unit and label, its counts sums; and the number of
    documents that each is made of.

    Args:
        counts: n documents.
        units: the unit of each document, shape (n,), not negative.

    Raises:
        InputError: there is not one unit for each document.
    """
    cells, where = np.unique(_cells(counts, units), return_inverse=True)
    member = sp.csr_array((np.ones(len(where)), (where, np.arange(len(where)))), shape=(len(cells), len(where)))
    matrix = sp.csr_array(member @ counts.matrix)
    matrix.sort_indices()
    whole = Counts(matrix, cells % counts.n_classes, counts.classes, counts.tokens)
    return whole, np.bincount(where, minlength=len(cells)).astype(np.int64)


def _cells(counts: Counts, units: Ints) -> Ints:
    if units.shape != (counts.n_documents,):
        raise InputError(f"{counts.n_documents} documents, but {units.size} units: one is needed for each document")
    return units * np.int64(counts.n_classes) + counts.labels
