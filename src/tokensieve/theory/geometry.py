"""Geometry of embeddings that every part of the theory uses."""

from __future__ import annotations

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from tokensieve.arrays import Floats, Ints


def coordinates(E: Floats) -> tuple[Floats, Floats | None]:
    """E in an orthonormal basis of its row space when d > |S|: (coordinates (|S|, r), basis (d, r)
    or None if E is kept).

    Inner products and norms are the same, and r = min(|S|, d) columns are all that a flow or a
    margin problem has to move in.
    """
    if E.shape[1] <= E.shape[0]:
        return np.ascontiguousarray(E), None
    Q, R = np.linalg.qr(E.T)
    return np.ascontiguousarray(R.T), Q


def span_of(F: Floats, pairs: Ints) -> Floats:
    """Orthonormal basis of the span of F_a − F_b over pairs, shape (r, k); rank by singular values,
    relative to the largest."""
    links = sp.csr_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(len(F), len(F)))
    group = connected_components(links, directed=False)[1]
    lead = np.unique(group, return_index=True)[1][group]
    others = np.flatnonzero(lead != np.arange(len(F)))
    rows = F[others] - F[lead[others]]  # they span the same, and are no more than the nodes
    if not len(rows):
        return np.zeros((rows.shape[1], 0))
    triangle = np.linalg.qr(rows, mode="r") if len(rows) > rows.shape[1] else rows
    try:
        _, sizes, axes = la.svd(triangle, full_matrices=False)
    except la.LinAlgError:  # divide and conquer may fail where QR iteration does not
        _, sizes, axes = la.svd(triangle, full_matrices=False, lapack_driver="gesvd")
    if sizes[0] == 0:
        return np.zeros((rows.shape[1], 0))
    return np.ascontiguousarray(axes[sizes > 1e-12 * sizes[0]].T)  # what is smaller is rounding


def laplacian_form(F: Floats, pairs: Ints, weight: Floats) -> Floats:
    """Σ_j weight_j D_j D_jᵀ with D_j = F_a − F_b, through the groups' weighted Laplacian."""
    present = np.zeros(len(F), bool)
    present[pairs] = True
    nodes, ends = np.flatnonzero(present), (np.cumsum(present) - 1)[pairs]
    size = len(nodes)
    a, b = ends[:, 0], ends[:, 1]
    rows, columns = np.concatenate([a, b, a, b]), np.concatenate([a, b, b, a])
    values = np.concatenate([weight, weight, -weight, -weight])
    part = F[nodes]
    out = part.T @ (sp.csr_array((values, (rows, columns)), shape=(size, size)) @ part)
    return np.asarray((out + out.T) / 2)
