"""Geometry of embeddings that every part of the theory uses."""

from __future__ import annotations

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from tokensieve.arrays import Floats, Ints

ROUNDING = 1e-12  # a singular value below this fraction of the largest is zero


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
    """Orthonormal basis of the span of F_a − F_b over pairs (a, b), shape (r, k).

    Singular values below `ROUNDING` of the largest do not count towards its dimension k.
    """
    links = sp.csr_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(len(F), len(F)))
    group = connected_components(links, directed=False)[1]
    lead = np.unique(group, return_index=True)[1][group]
    linked = np.flatnonzero(lead != np.arange(len(F)))
    rows = F[linked] - F[lead[linked]]  # they span the same, and are no more than the nodes
    if not len(rows):
        return np.zeros((rows.shape[1], 0))
    if len(rows) > rows.shape[1]:
        rows = np.linalg.qr(rows, mode="r")  # the triangle spans the same, in fewer rows
    try:
        _, sizes, axes = la.svd(rows, full_matrices=False)
    except la.LinAlgError:  # divide and conquer may fail where QR iteration does not
        _, sizes, axes = la.svd(rows, full_matrices=False, lapack_driver="gesvd")
    if sizes[0] == 0:
        return np.zeros((rows.shape[1], 0))
    return np.ascontiguousarray(axes[sizes > ROUNDING * sizes[0]].T)


def laplacian_form(F: Floats, pairs: Ints, weight: Floats) -> Floats:
    """Σ_j weight_j D_j D_jᵀ with D_j = F_a − F_b for the j-th pair (a, b), shape (r, r).

    It is Fᵀ L F, L the weighted Laplacian of the graph that has the pairs as edges: the
    differences D_j are never written down.
    """
    is_node = np.zeros(len(F), bool)
    is_node[pairs] = True
    nodes = np.flatnonzero(is_node)
    a, b = (np.cumsum(is_node) - 1)[pairs].T  # the ends of each edge, as numbers of nodes
    # weight at (a, a) and (b, b), and −weight at (a, b) and (b, a)
    values = np.concatenate([weight, weight, -weight, -weight])
    row = np.concatenate([a, b, a, b])
    column = np.concatenate([a, b, b, a])
    laplacian = sp.csr_array((values, (row, column)), shape=(len(nodes), len(nodes)))
    form = F[nodes].T @ (laplacian @ F[nodes])
    return np.asarray((form + form.T) / 2)  # exactly symmetric
