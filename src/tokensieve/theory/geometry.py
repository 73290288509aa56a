"""Geometry of embeddings and sums over documents that every part of the theory uses."""

from __future__ import annotations

import numba
import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from tokensieve.text.counts import Counts, Floats, Ints

# A singular value below this share of the largest is rounding.
RANK = 1e-12


def coordinates(E: Floats) -> tuple[Floats, Floats | None]:
    """E in an orthonormal basis of its row space when d > |S|: (coordinates (|S|, r), basis (d, r) or None if E is kept).

    Inner products and norms are the same, and r = min(|S|, d) columns are all that a flow or a margin problem has to move in.
    """
    if E.shape[1] <= E.shape[0]:
        return np.ascontiguousarray(E), None
    Q, R = np.linalg.qr(E.T)
    return np.ascontiguousarray(R.T), Q


def linked(counts: Counts, mask: NDArray[np.bool_]) -> Ints:
    """A number for each type, the same for types that some document's selection links, shape (|S|,).

    Args:
        counts: n documents over |S| types.
        mask: a selection, shape (nnz,).
    """
    m = counts.matrix
    rows, types = np.repeat(np.arange(m.shape[0]), np.diff(m.indptr))[mask], m.indices[mask]
    beside = sp.csr_array((np.ones(len(rows), np.int8), (rows, types + m.shape[0])), shape=(sum(m.shape),) * 2)
    return np.asarray(connected_components(beside, directed=False)[1][m.shape[0] :], dtype=np.int64)


def differences(E: Floats, group: Ints) -> Floats:
    """E_s minus the embedding of the first type of its group, for every other type of it, shape (m, r).

    Args:
        E: embeddings, shape (|S|, r).
        group: a number for each type, shape (|S|,).
    """
    _, first, where = np.unique(group, return_index=True, return_inverse=True)
    lead = first[where]
    others = np.flatnonzero(lead != np.arange(len(group)))
    return np.asarray(E[others] - E[lead[others]])


def span_of(rows: Floats) -> Floats:
    """Orthonormal basis of the span of some rows, shape (r, k); rank by singular values, relative to the largest."""
    if not len(rows):
        return np.zeros((rows.shape[1], 0))
    triangle = np.linalg.qr(rows, mode="r") if len(rows) > rows.shape[1] else rows
    try:
        _, sizes, axes = la.svd(triangle, full_matrices=False)
    except la.LinAlgError:  # divide and conquer may fail where QR iteration does not
        _, sizes, axes = la.svd(triangle, full_matrices=False, lapack_driver="gesvd")
    return np.ascontiguousarray(axes[sizes > RANK * sizes[0]].T) if sizes[0] > 0 else np.zeros((rows.shape[1], 0))


def complement(inside: Floats) -> Floats:
    """Orthonormal basis of the orthogonal complement, shape (r, r − k), of an orthonormal basis of shape (r, k)."""
    r, k = inside.shape
    return np.eye(r) if k == 0 else np.ascontiguousarray(np.linalg.qr(inside, mode="complete")[0][:, k:])


@numba.njit(cache=True)
def extremes(indptr: Ints, indices: Ints, selected: NDArray[np.bool_], u: Floats) -> tuple[Ints, Ints]:
    """Of each document, the selected type of lowest score and the unselected type of highest; −1 where there is none."""
    n = len(indptr) - 1
    low = np.full(n, -1, np.int64)
    high = np.full(n, -1, np.int64)
    for k in range(n):
        for i in range(indptr[k], indptr[k + 1]):
            s = indices[i]
            if selected[i]:
                if low[k] < 0 or u[s] < u[low[k]]:
                    low[k] = s
            elif high[k] < 0 or u[s] > u[high[k]]:
                high[k] = s
    return low, high


def documents_of(counts: Counts) -> Ints:
    """The document of each stored entry, shape (nnz,)."""
    return np.repeat(np.arange(counts.n_documents), np.diff(counts.matrix.indptr))


def highest(counts: Counts, scores: Floats) -> Floats:
    """Highest score of each document, shape (n,); −∞ for a document without types."""
    out = np.full(counts.n_documents, -np.inf)
    np.maximum.at(out, documents_of(counts), scores[counts.matrix.indices])
    return out


def top_types(counts: Counts, u: Floats) -> Ints:
    """The type of highest score of each document, shape (n,); −1 for a document without types."""
    out = np.full(counts.n_documents, -1, np.int64)
    document = documents_of(counts)
    best = np.flatnonzero(u[counts.matrix.indices] == highest(counts, u)[document])
    out[document[best]] = counts.matrix.indices[best]
    return out


def laplacian_form(F: Floats, pairs: Ints, weight: Floats) -> Floats:
    """Σ_j weight_j D_j D_jᵀ with D_j = F_a − F_b, through the groups' weighted Laplacian."""
    nodes, ends = np.unique(pairs, return_inverse=True)
    ends, size = ends.reshape(pairs.shape), len(nodes)
    a, b = ends[:, 0], ends[:, 1]
    rows, columns = np.concatenate([a, b, a, b]), np.concatenate([a, b, b, a])
    values = np.concatenate([weight, weight, -weight, -weight])
    part = F[nodes]
    out = part.T @ (sp.csr_array((values, (rows, columns)), shape=(size, size)) @ part)
    return np.asarray((out + out.T) / 2)


def spread(counts: Counts, change: Floats) -> float:
    """Largest change of a score gap within a document, for a change of every score, shape (|S|,)."""
    m = counts.matrix
    held = np.diff(m.indptr) > 0
    starts = m.indptr[:-1][held]
    if not starts.size:
        return 0.0
    moved = change[m.indices]
    return float(np.max(np.maximum.reduceat(moved, starts) - np.minimum.reduceat(moved, starts)))
