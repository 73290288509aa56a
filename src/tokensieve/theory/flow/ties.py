"""The finite part of a limit: which types stay tied, the loss L_S with every softmax restricted to them, and its minimum.

In the clock log t a score gap of the flow grows at rate zero (a *tie*) or at rate one and more. Let S_X be the types of document X
that stay tied at its top, closed under ties of other documents, and V = span{E_s − E_{s'} : s, s' ∈ S_X, all X}. On V^⊥ all types
of one S_X have the same score, so that L_S, the loss with every softmax restricted to S_X, depends on the part of p in V only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tokensieve.text.counts import Counts, Floats, Ints
from tokensieve.theory.flow.landscape import Landscape
from tokensieve.theory.geometry import complement, differences, documents_of, linked, span_of, spread, top_types

# A gap below this share of log t may be tied.
SHARE = 0.5
# Types whose embeddings differ by less than this outside V, relative to the largest, coincide there.
COINCIDE = 1e-9
# A direction of V has settled where t times its curvature exceeds e^{this}; where a gap diverges the product is about one.
SETTLED = 5.0
# A tie whose embeddings differ by this share along directions that have not settled is none.
LOOSE = 1e-4
# Newton's method on V may move a score gap by this many nats in all.
REACH = 1.0
# Pairs of types whose embeddings are held at once.
BLOCK = 20_000


@dataclass(frozen=True)
class Face:
    """A selection with ties, and the space that the ties span.

    Attributes:
        mask: for each stored entry of counts.matrix, whether its type is in S_X, shape (nnz,).
        group: number of the set of types that ties link, shape (|S|,); a type without ties is alone in its own.
        inside: orthonormal basis of V, shape (r, k).
    """

    mask: NDArray[np.bool_]
    group: Ints
    inside: Floats

    @cached_property
    def outside(self) -> Floats:
        """Orthonormal basis of V^⊥, shape (r, r − k)."""
        return complement(self.inside)

    @property
    def dimension(self) -> int:
        """dim V."""
        return int(self.inside.shape[1])


@dataclass(frozen=True)
class Equilibrium:
    """The minimum z* of L_S on V, with its certificate (F1).

    Attributes:
        z: shape (r,), in V.
        answers: f*_X, shape (n,).
        curvature: smallest curvature of L_S on V; inf where V = 0.
        spread: the same relative to the largest curvature.
        residual: ‖∇L_S‖ over the smallest curvature: how far, to first order, z still is from the minimum.
        moved: largest change of a score gap on the way from the curve to z*, in nats.
        documents: how many select two or more types.
    """

    z: Floats
    answers: Floats
    curvature: float
    spread: float
    residual: float
    moved: float
    documents: int


def face_of(counts: Counts, E: Floats, mask: NDArray[np.bool_]) -> Face:
    """Close a selection under ties, and find the space that it spans.

    Args:
        counts: n documents over |S| types.
        E: embeddings, shape (|S|, r).
        mask: types tied at the top of each document, shape (nnz,); at least one of each document that holds any.
    """
    m, document = counts.matrix, documents_of(counts)
    group = linked(counts, mask)
    inside = span_of(differences(E, group))
    # Types that coincide outside V are tied there, even where no document links them.
    lead = np.zeros(counts.n_documents, np.int64)
    lead[document[mask]] = m.indices[mask]
    directions = np.random.default_rng(0).standard_normal((E.shape[1], 3))
    views = E @ (directions - inside @ (inside.T @ directions))
    apart = np.abs(views[m.indices] - views[lead[document]]).max(axis=1)
    same = (apart <= COINCIDE * float(np.linalg.norm(E, axis=1).max())) | (group[m.indices] == group[lead[document]])
    if (same & ~mask).any():
        group = linked(counts, same)
    return Face(same, np.unique(group, return_inverse=True)[1], inside)


def _near_top(counts: Counts, u: Floats, nats: float) -> NDArray[np.bool_]:
    """Entries of counts.matrix whose weight in their document is within e^{−nats} of its largest, shape (nnz,).

    Args:
        counts: n documents over |S| types.
        u: scores, shape (|S|,).
        nats: how far below.
    """
    level = u[counts.matrix.indices] + np.log(counts.matrix.data)
    peak = np.full(counts.n_documents, -np.inf)
    np.maximum.at(peak, documents_of(counts), level)
    return np.asarray(level > peak[documents_of(counts)] - nats)


def restricted(counts: Counts, mask: NDArray[np.bool_]) -> Counts:
    """The documents with two or more types of a selection, with these types alone."""
    m = counts.matrix
    kept = sp.csr_array((m.data * mask, m.indices.copy(), m.indptr.copy()), shape=m.shape)  # zeros go in place
    kept.eliminate_zeros()
    return Counts(kept, counts.labels, counts.classes, counts.tokens).rows(np.flatnonzero(np.diff(kept.indptr) > 1))


def settled_face(counts: Counts, E: Floats, w: Floats, z: Floats, log_time: float) -> Face:
    """The ties that have settled at a point of the curve: those that are near enough to be tied, less every direction of V in which
    time times curvature is below e^{SETTLED}.

    A gap that grows like log t has a product of about one at any time.

    Args:
        counts: n documents over |S| types.
        E: embeddings, shape (|S|, r).
        w: values, shape (|S|,).
        z: the point, shape (r,).
        log_time: log t there.
    """
    m, document, u = counts.matrix, documents_of(counts), E @ z
    top = top_types(counts, u)[document]
    mask = _near_top(counts, u, SHARE * log_time) | (m.indices == top)
    for _ in range(50):
        face = face_of(counts, E, mask)
        if face.dimension == 0:
            return face
        inner = restricted(counts, face.mask)
        H, _, log_size = Landscape(inner, E @ face.inside, w).hessian(face.inside.T @ z)
        curvature, axes = np.linalg.eigh(H)
        log_size = log_time + max(log_size, -1e3) + math.log(inner.n_documents / counts.n_documents)
        loose = np.log(np.maximum(curvature, 1e-300)) + log_size < SETTLED
        if not loose.any():
            return face
        tied = np.flatnonzero(face.mask)
        stays = _along(E, face.inside @ axes[:, loose], m.indices[tied], top[tied]) <= LOOSE
        if stays.all():  # rounding alone is loose
            return face
        mask = face.mask.copy()
        mask[tied[~stays]] = False
    return face


def _along(E: Floats, directions: Floats, types: Ints, others: Ints) -> Floats:
    """Share of each ‖E_s − E_r‖ that lies along some orthonormal directions, shape (m,); zero for a type and itself."""
    pairs, where = np.unique(np.stack([types, others], axis=1), axis=0, return_inverse=True)
    share = np.zeros(len(pairs))
    for first in range(0, len(pairs), BLOCK):
        part = slice(first, first + BLOCK)
        apart = E[pairs[part, 0]] - E[pairs[part, 1]]
        length = np.linalg.norm(apart, axis=1)
        share[part] = np.linalg.norm(apart @ directions, axis=1) / np.where(length > 0, length, 1.0)
    return share[where.ravel()]


def _nothing_finite(counts: Counts, E: Floats, w: Floats, face: Face) -> Equilibrium:
    z = np.zeros(E.shape[1])
    return Equilibrium(z, _answers(counts, E @ z, w, face.mask), math.inf, 1.0, 0.0, 0.0, 0)


def equilibrium(counts: Counts, E: Floats, w: Floats, face: Face, z: Floats) -> Equilibrium | None:
    """(F1): the strict local minimum of L_S on V that Newton's method reaches from a point of the curve, or None.

    Args:
        counts: n documents over |S| types.
        E: embeddings, shape (|S|, r).
        w: values, shape (|S|,).
        face: the selection and its space.
        z: the point, shape (r,).
    """
    if face.dimension == 0:
        return _nothing_finite(counts, E, w, face)
    V, start = face.inside, face.inside @ (face.inside.T @ z)
    inner = restricted(counts, face.mask)
    land = Landscape(inner, E @ V, w)
    share = inner.n_documents / counts.n_documents
    x, scores = V.T @ z, E @ start
    for _ in range(30):
        H, downhill, log_size = land.hessian(x)
        curvature, axes = np.linalg.eigh(H)
        if curvature[0] <= 1e-13 * curvature[-1]:
            return None
        step = axes @ ((axes.T @ downhill) / curvature)
        x = x + step
        moved = spread(inner, E @ (V @ x) - scores)
        if moved > REACH:
            return None
        size = float(np.linalg.norm(step))
        if size <= 1e-11 * (1 + float(np.linalg.norm(x))) or log_size == -math.inf:
            break
    else:
        if size > 1e-7 * (1 + float(np.linalg.norm(x))):
            return None
    scale = math.exp(log_size) * share if log_size > -math.inf else share
    found = V @ x
    return Equilibrium(
        found,
        _answers(counts, E @ found, w, face.mask),
        float(curvature[0]) * scale,
        float(curvature[0] / curvature[-1]),
        size,
        moved,
        inner.n_documents,
    )


def _answers(counts: Counts, u: Floats, w: Floats, mask: NDArray[np.bool_]) -> Floats:
    """f_X with every softmax restricted to a selection, shape (n,)."""
    q, document = weights(counts, u, mask), documents_of(counts)
    return np.asarray(np.bincount(document, q * w[counts.matrix.indices], counts.n_documents), dtype=np.float64)


def weights(counts: Counts, u: Floats, mask: NDArray[np.bool_]) -> Floats:
    """Softmax weights restricted to a selection, shape (nnz,); zero outside it."""
    m, document = counts.matrix, documents_of(counts)
    total = log_total(counts, u, mask)
    with np.errstate(divide="ignore"):
        return np.asarray(np.where(mask, np.exp(np.log(m.data) + u[m.indices] - total[document]), 0.0))


def log_total(counts: Counts, u: Floats, mask: NDArray[np.bool_]) -> Floats:
    """log Σ_{s ∈ S_X} c_s e^{u_s} of each document, shape (n,); zero for a document without types."""
    m, document = counts.matrix, documents_of(counts)
    level = np.where(mask, u[m.indices], -np.inf)
    peak = np.full(counts.n_documents, -np.inf)
    np.maximum.at(peak, document, level)
    peak[np.isneginf(peak)] = 0.0
    total = np.bincount(document, m.data * np.exp(level - peak[document]), counts.n_documents)
    return np.asarray(peak + np.log(np.where(total > 0, total, 1.0)))
