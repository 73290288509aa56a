"""Array types that every package uses, and how work on rows and sparse matrices is divided."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from polars import thread_pool_size as n_threads

from tokensieve.files import Folder

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Positions = NDArray[np.int32]
Integers = NDArray[np.signedinteger]  # either of these two
T = TypeVar("T")

ENTRIES_PER_BLOCK = 2**22  # stored entries of a matrix that are in memory together: 32 MB of floats
MIN_SIZE_FOR_THREADS = 100_000  # less work than that is done before the threads have started
MIN_IDS_FOR_RANGES = 1_000  # distinct samples, so that ranges hold about as many ids each
MAX_ID = 2**63 - 1
MAX_SAMPLED_IDS = 10_000  # ids that are sorted to find ranges of equal size


def row_blocks(
    starts: NDArray[np.integer], entries: int = ENTRIES_PER_BLOCK, rows: int = 2**62
) -> Iterator[slice]:
    """Yield runs of rows that hold at most `entries` entries and `rows` rows together.

    A single row may exceed `entries`.

    Args:
        starts: where each row begins among the entries, shape (n + 1,); the `indptr` of a CSR
            matrix.
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


def matrix_blocks(matrix: sp.csr_array) -> Iterator[tuple[slice, sp.csr_array]]:
    """Yield the rows of a matrix in order, a few million stored entries at a time.

    Temporary arrays of the caller then stay small. A matrix that fits into one block is not copied.
    """
    every_row = slice(0, matrix.shape[0])
    for rows in row_blocks(matrix.indptr, ENTRIES_PER_BLOCK):
        yield rows, matrix if rows == every_row else matrix[rows]


def select(
    matrix: sp.csr_array,
    rows: NDArray[np.generic] | slice,
    columns: Ints | slice = slice(None),
) -> sp.csr_array:
    """Return some rows and columns of a matrix.

    If the matrix is stored in files, and the rows are more than a block of it, the result is too.
    """
    row_numbers = np.arange(matrix.shape[0])[rows]
    row_sizes = np.diff(matrix.indptr)[row_numbers]
    starts = np.append(0, np.cumsum(row_sizes, dtype=np.int64))
    n_entries = int(starts[-1])
    if n_entries <= ENTRIES_PER_BLOCK or not Folder.holds(matrix.data):
        return matrix[rows, columns]
    blocks = (
        matrix[row_numbers[block], :][:, columns] for block in row_blocks(starts, ENTRIES_PER_BLOCK)
    )
    n_columns = matrix[:0, columns].shape[1]
    return Folder().matrix(blocks, n_columns, n_entries)


def sum_by_group(rows: sp.csr_array, groups: Ints) -> sp.csr_array:
    """Sum the rows of each group, groups in ascending order, shape (distinct groups, columns).

    Args:
        rows: n rows.
        groups: a number for each row, shape (n,).
    """
    names, group_index = np.unique(groups, return_inverse=True)
    membership = sp.csr_array(
        (np.ones(len(groups)), (group_index, np.arange(len(groups)))),
        shape=(len(names), len(groups)),
    )
    return sp.csr_array(membership @ rows)


def pair_differences(matrix: sp.csr_array) -> sp.csr_array:
    """For pairs of documents, return row 2i minus row 2i + 1, without stored zeros."""
    differences = sp.csr_array(matrix[::2] - matrix[1::2])
    differences.eliminate_zeros()
    return differences


def in_threads(work: Callable[[slice], T], n: int, size: int) -> list[T]:
    """Call `work` on consecutive runs of 0 … n − 1, one run for each core, and return the results
    in order.

    If `size`, the amount of work, is small, there is a single run and no thread.
    """
    if size <= MIN_SIZE_FOR_THREADS or n_threads() == 1:
        return [work(slice(0, n))]
    boundaries = np.linspace(0, n, n_threads() + 1).astype(np.int64).tolist()
    runs = [slice(start, stop) for start, stop in pairwise(boundaries)]
    with ThreadPoolExecutor(len(runs)) as pool:
        return list(pool.map(work, runs))


def in_ranges(work: Callable[[int, int], T], ids: NDArray[np.integer]) -> list[T]:
    """Call `work(low, high)` on ranges low ≤ id < high that hold about as many of the ids each.

    There is one range for each core, but a single one for few ids, and results are in order. The
    first range begins at −1, the last ends at 2⁶³ − 1.
    """
    step = max(len(ids) // MAX_SAMPLED_IDS, 1)
    sample = np.sort(ids[::step])
    sample = sample[sample >= 0]
    n_samples = len(sample)
    # range i … j − 1 of the sample holds the ids from limits[i] to below limits[j]
    limits = [-1, *sample[1:].tolist(), MAX_ID]

    def work_on(run: slice) -> T:
        return work(limits[run.start], limits[run.stop])

    if n_samples > MIN_IDS_FOR_RANGES:
        return in_threads(work_on, n_samples, size=len(ids))
    return [work(-1, MAX_ID)]
