"""A face: which types stay tied at the top of each document, and the space that the ties span.

In the clock log t a score gap of the flow stays finite (a *tie*) or grows, at rate one or more
where a force acts. Let S_X be the types of document X that stay tied at its top, closed under ties
of other documents, and V = span{E_s − E_{s'} : s, s' ∈ S_X, all X}. On V^⊥ all types of one S_X
have one embedding F_X, so that L_S, the loss with every softmax restricted to S_X, depends on the
part of p in V only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from tokensieve.arrays import Floats, Ints
from tokensieve.text.counts import Counts
from tokensieve.theory.flow.landscape import Landscape
from tokensieve.theory.geometry import span_of

# A direction of V has settled where t times its curvature exceeds e^{this}; where a gap diverges
# the product is about one.
SETTLED = 5.0
# A weight that is behind the largest of its document by less than this share of log t may be tied.
MAYBE_TIED = 0.5
# Types whose embeddings agree outside V up to this fraction of the longest one are tied there.
COINCIDES = 1e-9
# A tie is none where this share of its difference lies along loose directions; less is rounding.
LOOSE_SHARE = 1e-4
# Embeddings are not orthogonal, so that one loose tie gives many others a share: those with at
# least this fraction of the largest share go first.
FIRST_TO_LEAVE = 0.5
# More rounds than this have not been seen.
MAX_ROUNDS = 50
# As many differences of embeddings are held at once.
DIFFERENCES_AT_ONCE = 20_000


@dataclass(frozen=True)
class Face:
    """A selection with ties, and the space that the ties span.

    Attributes:
        mask: for each stored entry of counts.matrix, whether its type is in S_X, shape (nnz,).
        group: number of the set of types that ties link, shape (|S|,); a type without ties is
            alone.
        selected_group: the group that each document selects, shape (n,); 0 for a document without
            types.
        inside: orthonormal basis of V, shape (r, k).
    """

    mask: NDArray[np.bool_]
    group: Ints
    selected_group: Ints
    inside: Floats

    @classmethod
    def of(cls, counts: Counts, E: Floats, mask: NDArray[np.bool_]) -> Face:
        """The face of a selection, shape (nnz,), closed under ties; every document with types
        selects one."""
        types = counts.matrix.indices
        document = counts.entry_documents
        group = cls.ties(counts, mask)
        basis = span_of(E, np.stack([np.arange(len(E)), group], axis=1))
        selected = cls._closed(counts, E, mask, group, basis)
        if (selected & ~mask).any():
            group = cls.ties(counts, selected)
        group = np.unique(group, return_inverse=True)[1]
        selected_group = np.zeros(counts.n_documents, np.int64)
        selected_group[document[selected]] = group[types[selected]]
        return cls(selected, group, selected_group, basis)

    @staticmethod
    def _closed(
        counts: Counts, E: Floats, mask: NDArray[np.bool_], group: Ints, inside: Floats
    ) -> NDArray[np.bool_]:
        """The selection with all types that coincide with a selected one outside V, linked or not.

        Three random views of the embeddings show which do; the first one rules most of them out.
        """
        types = counts.matrix.indices
        document = counts.entry_documents
        lead_of_document = np.zeros(counts.n_documents, np.int64)
        lead_of_document[document[mask]] = types[mask]
        leads = lead_of_document[document]
        views = random_views(E, inside)
        near = COINCIDES * float(np.linalg.norm(E, axis=1).max())

        is_linked = group[types] == group[leads]
        closed = is_linked | (np.abs(views[types, 0] - views[leads, 0]) <= near)
        candidates = np.flatnonzero(closed)
        apart = np.abs(views[types[candidates]] - views[leads[candidates]]).max(axis=1)
        closed[candidates] = is_linked[candidates] | (apart <= near)
        return np.asarray(closed)

    @staticmethod
    def ties(counts: Counts, mask: NDArray[np.bool_]) -> Ints:
        """The first type that a selection, shape (nnz,), ties each type to, shape (|S|,)."""
        document = counts.entry_documents[mask]
        types = counts.matrix.indices[mask]
        last = np.zeros(counts.n_documents, int)
        last[document] = types
        ends = (types, last[document])
        shape = (counts.n_types, counts.n_types)
        links = sp.csr_array((np.ones(len(types)), ends), shape=shape)
        group = connected_components(links, directed=False)[1]
        return np.asarray(np.unique(group, return_index=True)[1][group])

    @classmethod
    def settled(cls, land: Landscape, z: Floats, log_time: float) -> Face:
        """The ties that have settled at a point.

        They are those that are near enough, less every direction of V in which time times curvature
        is below e^{SETTLED}. A gap that grows like log t has a product of about one at any time.
        """
        counts = land.counts
        document = land.counts.entry_documents
        entry_types = counts.matrix.indices
        top = land.top_types(z)[document]
        log_weight = (land.E @ z)[entry_types] + np.log(counts.matrix.data)
        lowest = counts.largest_per_document(log_weight)[document] - MAYBE_TIED * log_time
        mask = (log_weight > lowest) | (entry_types == top)
        before = np.zeros(0, bool)
        for _ in range(MAX_ROUNDS):
            face = cls.of(counts, land.E, mask)
            along = face.loose_directions(land, z, log_time)
            if not along.shape[1]:
                return face
            is_repeated = np.array_equal(face.mask, before)
            before = face.mask
            leaving = face.loose_entries(land, top, along, is_repeated)
            if not len(leaving):
                return face
            mask = face.mask.copy()
            mask[still_leaving(leaving, log_weight, document, is_repeated)] = False
        return face

    def loose_directions(self, land: Landscape, z: Floats, log_time: float) -> Floats:
        """Coordinates in V of the directions that have not settled, shape (k, j)."""
        if not self.dimension:
            return np.zeros((0, 0))
        inner = self.restricted(land.counts)
        restricted_loss = Landscape(inner, land.E @ self.inside, land.w)
        H, _, log_size = restricted_loss.hessian(self.inside.T @ z)
        curvature, axes = np.linalg.eigh(H)
        log_tied = math.log(inner.n_documents / land.counts.n_documents)
        log_scale = log_time + max(log_size, -1e3) + log_tied  # finite where the gradient is 0
        # 1e-300: where a curvature is 0 or, by rounding, less, its direction is loose
        is_loose = np.log(np.maximum(curvature, 1e-300)) + log_scale < SETTLED
        return np.asarray(axes[:, is_loose])

    def loose_entries(self, land: Landscape, top: Ints, along: Floats, is_repeated: bool) -> Ints:
        """Selected entries whose difference to the top type lies along loose directions."""
        tied = np.flatnonzero(self.mask)
        ends = np.stack([land.counts.matrix.indices[tied], top[tied]], axis=1)
        pairs, pair_of_entry = Landscape.distinct(ends, land.counts.n_types)
        share = share_along(land.E @ self.inside, pairs, along)
        threshold = LOOSE_SHARE
        if not is_repeated:
            threshold = max(LOOSE_SHARE, FIRST_TO_LEAVE * float(share.max()))
        leaves = share > threshold
        return np.asarray(tied[leaves[pair_of_entry]])

    @cached_property
    def outside(self) -> Floats:
        """Orthonormal basis of V^⊥, shape (r, r − k)."""
        all_axes = np.linalg.qr(self.inside, mode="complete")[0]
        return np.ascontiguousarray(all_axes[:, self.dimension :])

    @cached_property
    def lead(self) -> Ints:
        """The first type of each group, shape (groups,)."""
        return np.unique(self.group, return_index=True)[1]

    def entries(self, counts: Counts, pairs: Ints) -> NDArray[np.bool_]:
        """The unselected entries whose pair of groups is among the given ones, as a mask, shape
        (nnz,)."""
        size = len(self.group)
        pair_number = (
            self.selected_group[counts.entry_documents] * size + self.group[counts.matrix.indices]
        )
        return ~self.mask & np.isin(pair_number, pairs[:, 0] * size + pairs[:, 1])

    @property
    def dimension(self) -> int:
        """dim V."""
        return int(self.inside.shape[1])

    @staticmethod
    def only(counts: Counts, mask: NDArray[np.bool_]) -> Counts:
        """The documents reduced to some of their stored entries, shape (nnz,)."""
        m = counts.matrix
        # Zeros are eliminated in place, hence the copies.
        part = sp.csr_array((m.data * mask, m.indices.copy(), m.indptr.copy()), shape=m.shape)
        part.eliminate_zeros()
        return replace(counts, matrix=part)

    def restricted(self, counts: Counts) -> Counts:
        """The documents with two or more selected types, reduced to these types."""
        tied = self.only(counts, self.mask)
        return tied.rows(np.flatnonzero(np.diff(tied.matrix.indptr) > 1))


def random_views(E: Floats, inside: Floats) -> Floats:
    """E along three random directions outside V, shape (|S|, 3): equal for types that coincide
    there, and for no others in practice."""
    directions = np.random.default_rng(0).standard_normal((E.shape[1], 3))
    return np.asarray(E @ (directions - inside @ (inside.T @ directions)))


def share_along(A: Floats, pairs: Ints, directions: Floats) -> Floats:
    """Which fraction of the length of A_a − A_b lies along some orthonormal directions, per pair.

    Args:
        A: embeddings in k coordinates, shape (|S|, k).
        pairs: types (a, b), shape (m, 2).
        directions: one a column, shape (k, j).
    """
    share = np.zeros(len(pairs))
    for first in range(0, len(pairs), DIFFERENCES_AT_ONCE):
        part = slice(first, first + DIFFERENCES_AT_ONCE)
        apart = A[pairs[part, 0]] - A[pairs[part, 1]]
        # equal embeddings have no direction: their share is 0, not nan
        lengths = np.maximum(np.linalg.norm(apart, axis=1), 1e-300)
        share[part] = np.linalg.norm(apart @ directions, axis=1) / lengths
    return share


def still_leaving(leaving: Ints, level: Floats, document: Ints, is_repeated: bool) -> Ints:
    """The loose types that leave first: of each document all but the highest, which may be tied
    without the others.

    If no document has several, or the same face came up before because others are tied again
    through V, all of them leave.
    """
    leaving = leaving[np.lexsort((level[leaving], document[leaving]))]
    has_higher = document[leaving[:-1]] == document[leaving[1:]]
    behind = leaving[:-1][has_higher]
    return leaving if is_repeated or not len(behind) else behind
