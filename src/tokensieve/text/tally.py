"""Token types in order of appearance → how often each stands in each document."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tokensieve.text.counts import Ints


def tally(types: NDArray[np.int32], starts: Ints, n_types: int) -> sp.csr_array:
    """Count the types of each document: CSR (n, |S|), indices sorted, O(tokens · levels + n + |S|).

    Documents are listed under each type first, where the same document stands in a run; going through the types then fills each
    document's row in order, without sorting.

    Args:
        types: type of what ends at each token, shape (tokens, levels); −1 for none.
        starts: where each document begins among the tokens, shape (n+1,).
        n_types: |S|.
    """
    rows, n = np.ascontiguousarray(types, dtype=np.int32).ravel(), len(starts) - 1
    of_type, documents = _by_type(rows, starts.astype(np.int64) * types.shape[1], n_types)
    kind = np.int32 if len(rows) < 2**31 else np.int64
    ends = np.zeros(n + 1, dtype=kind)
    np.cumsum(_distinct(of_type, documents, n), out=ends[1:])
    indices, data = _rows(of_type, documents, ends)
    matrix = sp.csr_array((data, indices.astype(kind, copy=False), ends), shape=(n, max(n_types, 1)))
    matrix.has_canonical_format = True
    return matrix


@numba.njit(cache=True)
def _by_type(rows: Any, starts: Any, n_types: int) -> Any:
    """Where each type's documents begin, and the document of every occurrence, types in order, documents in order."""
    first = np.zeros(n_types + 1, np.int64)
    for s in rows:
        if s >= 0:
            first[s + 1] += 1
    for s in range(n_types):
        first[s + 1] += first[s]
    documents, at = np.empty(first[-1], np.int32), first[:-1].copy()
    for k in range(len(starts) - 1):
        for s in rows[starts[k] : starts[k + 1]]:
            if s >= 0:
                documents[at[s]] = k
                at[s] += 1
    return first, documents


@numba.njit(cache=True)
def _distinct(first: Any, documents: Any, n: int) -> Any:
    """How many types each document holds."""
    out = np.zeros(n, np.int64)
    for s in range(len(first) - 1):
        before = -1
        for k in documents[first[s] : first[s + 1]]:
            if k != before:
                out[k] += 1
                before = k
    return out


@numba.njit(cache=True)
def _rows(first: Any, documents: Any, ends: Any) -> Any:
    """Types and their counts, document by document."""
    indices, data, at = np.empty(ends[-1], np.int32), np.empty(ends[-1]), ends[:-1].astype(np.int64)
    for s in range(len(first) - 1):
        before = -1
        for k in documents[first[s] : first[s + 1]]:
            if k == before:
                data[at[k] - 1] += 1.0
                continue
            indices[at[k]], data[at[k]], before = s, 1.0, k
            at[k] += 1
    return indices, data
