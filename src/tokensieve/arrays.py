"""Array types that every package uses, and how a sparse matrix is cut into blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Positions = NDArray[np.int32]

ENTRIES_PER_BLOCK = 2**22  # stored entries of a matrix that are in memory together: 32 MB of floats


def row_blocks(
    starts: NDArray[np.integer], entries: int = ENTRIES_PER_BLOCK, rows: int = 2**62
) -> Iterator[slice]:
    """Yield runs of rows that hold at most `entries` entries and `rows` rows together.

    A single row may exceed `entries`.

    Args:
        starts: where each row begins among the entries, shape (n + 1,); the `indptr` of a CSR matrix.
        entries: largest number of entries in a run of two rows or more.
        rows: largest number of rows in a run.
    """
    n_rows = len(starts) - 1
    first = 0
    while first < n_rows:
        limit = min(int(starts[first]) + entries, int(starts[-1]))
        last_that_fits = int(np.searchsorted(starts, starts.dtype.type(limit), side="right")) - 1
        end = min(max(last_that_fits, first + 1), first + rows)
        yield slice(first, end)
        first = end
