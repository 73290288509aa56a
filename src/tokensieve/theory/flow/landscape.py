"""The loss as a function of the `<cls>` vector alone, in the log domain: nothing underflows at any
‖p‖.

With embeddings E and values w = E v fixed, L(p) = mean_X log(1 + e^{−y f_X}) depends on p through
the scores u = E p only:

    ∇_p L = Eᵀa,   a_s = mean_X g_X t_{X,s},   t_{X,s} = q_{X,s}(w_s − f_X) = ∂f_X/∂u_s
    ∇²_p L = Eᵀ [ diag(a) + mean_X ( g'_X t_X t_Xᵀ − g_X (q_X t_Xᵀ + t_X q_Xᵀ) ) ] E,   g'_X =
    σ(f_X) σ(−f_X).

Once the softmax is nearly one-hot, t_X is as small as e^{−‖p‖}. Each document therefore keeps t_X
relative to its own scale e^{m_X}, the documents are summed relative to the largest |g_X| e^{m_X},
and the logarithm of that scale travels with the result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numba
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tokensieve.arrays import Floats, Ints
from tokensieve.kernels import compiled
from tokensieve.text.counts import Counts
from tokensieve.theory.flow.integrator import Jacobian, Slope

# Log t up to which a Jacobian in single precision serves: later its rounding error, times e^τ,
# makes Newton's method fail.
ROUGH = 15.0
# A Jacobian leaves out what moves nothing by e^{−this}.
NEGLIGIBLE = 20.0
# Entries that are too weak are left out where that leaves out at least this fraction.
WEAK_FRACTION = 0.2
# Scores that differ by less have exponentials that do not underflow: e^{−500} = 7e-218.
NO_UNDERFLOW = 500.0
# Less than this fraction of the largest term does not reach the last bit.
LAST_BIT = 1e-18


@compiled()
def relative_weights(
    types: Ints,
    counts: Floats,
    log_counts: Floats,
    u: Floats,
    highest: float,
    exponentials: Floats,
    q: Floats,
) -> float:
    """Fills q with c e^{u − base} of a document's entries, and returns base.

    Where nothing underflows, base is the highest score of all types, and `exponentials` has
    e^{u − base} of each: one exponential for each type, not for each entry.
    """
    if len(exponentials):
        for i in range(len(types)):
            q[i] = exponentials[types[i]] * counts[i]
        return highest
    base = -np.inf
    for i in range(len(types)):
        base = max(base, u[types[i]] + log_counts[i])
    for i in range(len(types)):
        q[i] = np.exp(u[types[i]] + log_counts[i] - base)
    return base


@compiled()
def distant_terms(values: Floats, level: Floats, q: Floats, t: Floats) -> float:
    """As `value_terms`, for `level` = log q and values less that of the top type, where all others
    are so far behind that their terms are no numbers but as logarithms."""
    scale = -np.inf
    for i in range(len(q)):
        if values[i] != 0.0:
            scale = max(scale, level[i] + np.log(abs(values[i])))
    for i in range(len(q)):
        t[i] = np.exp(level[i] - scale) * values[i] if values[i] != 0.0 else 0.0
        q[i] = np.exp(level[i])
    return scale


@compiled()
def value_terms(
    types: Ints, log_counts: Floats, u: Floats, w: Floats, base: float, q: Floats, t: Floats
) -> tuple[float, float]:
    """Makes the weights q of a document's entries sum to one, and fills t with ∂f/∂u e^{−m}.

    Args:
        types, log_counts: of the entries, shape (entries,).
        u, w: scores and values of all types, shape (|S|,).
        base: what `relative_weights` returned.
        q: what it filled; changed.
        t: of the same shape; filled.

    Returns:
        The logit f, and the scale m.
    """
    top, total, largest = 0, 0.0, 0.0
    for i in range(len(q)):
        total += q[i]
        if q[i] > q[top]:
            top = i
    top_value = w[types[top]]
    for i in range(len(q)):
        t[i] = q[i] * (w[types[i]] - top_value)
        largest = max(largest, abs(t[i]))
    # What is lost beside larger terms is 1e-100 of them.
    if largest > max(1e-200 * q[top], 1e-300):
        scale = np.log(largest / total)
        whole, part = 1 / total, 1 / largest
        for i in range(len(q)):
            q[i] *= whole
            t[i] *= part
    else:
        level = u[types] + log_counts - (base + np.log(total))
        scale = distant_terms(w[types] - top_value, level, q, t)
    moved = 0.0
    for i in range(len(q)):
        moved += t[i]
    for i in range(len(q)):
        t[i] -= q[i] * moved
    return top_value + moved * np.exp(scale), scale


@compiled(parallel=True)
def document_terms(
    indptr: Ints,
    indices: Ints,
    data: Floats,
    log_counts: Floats,
    u: Floats,
    w: Floats,
    q: Floats,
    t: Floats,
) -> tuple[Floats, Floats]:
    """Fills q and t e^{−m} of each entry; returns each document's f and its scale m (−∞ where no
    score can change f)."""
    highest = u.max()
    exponentials = np.exp(u - highest) if highest - u.min() < NO_UNDERFLOW else np.zeros(0)
    f = np.zeros(len(indptr) - 1)
    scale = np.full(len(indptr) - 1, -np.inf)
    for k in numba.prange(len(indptr) - 1):
        row = slice(indptr[k], indptr[k + 1])
        if row.start == row.stop:
            continue
        types = indices[row]
        logs = log_counts[row]
        base = relative_weights(types, data[row], logs, u, highest, exponentials, q[row])
        f[k], scale[k] = value_terms(types, logs, u, w, base, q[row], t[row])
    return f, scale


@compiled()
def sum_per_type(indptr: Ints, indices: Ints, g: Floats, t: Floats, types: int) -> Floats:
    """a_s = Σ_X g_X t_Xs, shape (types,)."""
    out = np.zeros(types)
    for k in range(len(indptr) - 1):
        for i in range(indptr[k], indptr[k + 1]):
            out[indices[i]] += g[k] * t[i]
    return out


@compiled()
def node_forces(
    indptr: Ints,
    indices: Ints,
    is_open: NDArray[np.bool_],
    own: Ints,
    group: Ints,
    g: Floats,
    t: Floats,
    groups: int,
) -> Floats:
    """Σ g t over the unselected entries: + for the group that their document selects, − for that of
    their type; shape (groups,)."""
    node = np.zeros(groups)
    for k in range(len(indptr) - 1):
        moved = 0.0
        for i in range(indptr[k], indptr[k + 1]):
            if is_open[i]:
                force = g[k] * t[i]
                moved += force
                node[group[indices[i]]] -= force
        node[own[k]] += moved
    return node


def times_differences(rows: Ints, pairs: Ints, values: Floats, F: Floats, height: int) -> Floats:
    """Σ value (F_b − F_a) in each of `height` rows, over pairs (a, b), shape (j, 2)."""
    signed = np.concatenate([values, -values])
    groups = pairs.T[::-1].ravel()
    sums = sp.coo_array((signed, (np.tile(rows, 2), groups)), shape=(height, len(F)))
    return np.asarray(sums.tocsr() @ F)


class Terms(NamedTuple):
    """The parts of the loss and its derivatives at a point.

    The symbols are those of this module's first lines. Numbers that may underflow are stated
    relative to a scale: m is a document's own, and `shift` is common to all.

    Attributes:
        q, t: attention q, and t e^{−m} with t = ∂f/∂u, of each entry.
        answer: y f of each document; its loss is log(1 + e^{−y f}).
        g, dg: the first and second derivative of each document's loss in f, as n g e^{m−shift} and
            n g' e^{2m−shift}.
        a: n a e^{−shift} of each type, where a = ∂L/∂u.
        shift: the logarithm of the common scale.
    """

    q: Floats
    t: Floats
    answer: Floats
    g: Floats
    dg: Floats
    a: Floats
    shift: float


class PointFigures(NamedTuple):
    """L, log‖∇L‖, and ‖∇L‖ over the sum of the sizes of its terms: near rounding its direction is
    lost."""

    loss: float
    log_gradient: float
    coherence: float


@dataclass(frozen=True)
class OpenEntries:
    """Entries that have coordinates D = F_b − F_a beyond those of their types.

    Attributes:
        entries: numbers of the entries, shape (j,).
        pairs: the groups (a, b), rows of F, of each, shape (j, 2).
        F: shape (m, r).
    """

    entries: Ints
    pairs: Ints
    F: Floats


@dataclass(frozen=True)
class SeenEntries:
    """Entries that are not left out of a Hessian.

    Attributes:
        entries: their numbers; is_active: whether a document has any, shape (n,).
        starts: where each active document's begin among them, and where the last one's end.
    """

    entries: Ints
    is_active: NDArray[np.bool_]
    starts: Ints


class Landscape:
    """L(p) for embeddings E, shape (|S|, d), and values w = E v, shape (|S|,).

    A gradient of exactly zero has log‖∇L‖ = −∞.
    """

    def __init__(self, counts: Counts, E: Floats, w: Floats) -> None:
        self.counts = counts
        self.E = np.ascontiguousarray(E, dtype=np.float64)
        self.w = np.ascontiguousarray(w, dtype=np.float64)
        self._log_counts = np.log(counts.matrix.data)
        # Equal documents with different labels share one g: their forces cancel before the last
        # digit.
        equal = counts.equal_documents
        share = np.bincount(equal, counts.labels) / np.bincount(equal)
        self._contradicted = np.flatnonzero(((share > 0) & (share < 1))[equal])
        self._equal = equal[self._contradicted]
        self._longest = float(np.linalg.norm(self.E, axis=1).max(initial=0.0)) or 1.0
        self._last_point: Floats = np.zeros(0)
        self._last_terms: Terms | None = None

    @staticmethod
    def distinct(pairs: Ints, size: int) -> tuple[Ints, Ints]:
        """Distinct rows of pairs of numbers below `size`, shape (k, 2), and which one each row is,
        (j,)."""
        numbers, row_of_pair = np.unique(pairs @ [size, 1], return_inverse=True)
        return np.stack(np.divmod(numbers, size), axis=1), row_of_pair

    def live(self, p: Floats, clock: float, margin: float) -> Landscape:
        """L without the entries that are too weak to matter; L itself if there are only a few of
        them."""
        is_strong = self.strong(p, clock, margin)
        if is_strong.mean() > 1 - WEAK_FRACTION:
            return self
        return LiveEntries(self, is_strong, self.E @ p)

    def strong(self, p: Floats, clock: float, margin: float) -> NDArray[np.bool_]:
        """The entries that could move something by e^{−margin} within e^clock of time, shape
        (nnz,)."""
        terms = self.at(p)
        strongest = float(self.logarithms(terms).max(initial=-math.inf))
        return np.asarray(self.strengths(terms) > min(-max(clock, 0.0), strongest) - margin)

    def strengths(self, terms: Terms) -> Floats:
        """A bound on `logarithms`, whatever cancels: w − f is at most the range of values, shape
        (nnz,)."""
        log_sigma = -np.logaddexp(0.0, terms.answer)
        with np.errstate(divide="ignore"):
            bound = np.log(terms.q) + log_sigma[self.counts.entry_documents]
        log_range = math.log(np.ptp(self.w) or 1.0)
        return np.asarray(bound + log_range - math.log(self.counts.n_documents))

    def split(self, p: Floats) -> Floats:
        """The coordinates are p itself."""
        return p

    joined = split

    def left_out_force(self, p: Floats, enough: float) -> float:
        """Logarithm of the largest force that is left out: of none."""
        return -math.inf

    def logarithms(self, terms: Terms) -> Floats:
        """Logarithm of the force of each entry on its type's score, shape (nnz,)."""
        with np.errstate(divide="ignore"):
            forces = np.log(np.abs(terms.g[self.counts.entry_documents] * terms.t))
        return np.asarray(forces + (terms.shift - math.log(self.counts.n_documents)))

    def at(self, p: Floats) -> Terms:
        """The terms at a point, kept until another point is requested."""
        if self._last_terms is None or not np.array_equal(self._last_point, p):
            self._last_point = p.copy()
            self._last_terms = self.terms(self.E @ p)
        return self._last_terms

    def top_types(self, p: Floats) -> Ints:
        """The type of highest score of each document, shape (n,); −1 for a document without
        types."""
        best = self.counts.top_mask(self.E @ p)
        top = np.full(self.counts.n_documents, -1, np.int64)
        top[self.counts.entry_documents[best]] = self.counts.matrix.indices[best]
        return top

    def slope(self, p: Floats) -> Slope:
        gradient = self._gradient(self.at(p))
        return Slope(gradient.downhill, gradient.log_size)

    def point(self, p: Floats) -> PointFigures:
        """The loss at a point, its gradient, and how much of the forces does not cancel."""
        terms = self.at(p)
        gradient = self._gradient(terms)
        loss = float(np.mean(np.logaddexp(0.0, -terms.answer)))
        if gradient.size == 0:
            return PointFigures(loss, -math.inf, 0.0)
        parts = np.bincount(self.counts.entry_documents, np.abs(terms.t), self.counts.n_documents)
        without_cancelling = float(np.abs(terms.g) @ parts) * self._longest
        return PointFigures(loss, gradient.log_size, gradient.size / without_cancelling)

    def hessian(self, p: Floats, clock: float | None = None) -> Jacobian:
        """With c = ‖∇L‖; where the gradient is exactly zero, c is a scale of its own.

        With a clock, as the Jacobian of a flow needs it there: without what could move nothing by
        e^{−NEGLIGIBLE} in e^clock of time, and early, where its rounding is small against one, in
        single precision.
        """
        terms = self.at(p)
        gradient = self._gradient(terms)
        log_size = gradient.log_size
        if gradient.size == 0:
            log_size = terms.shift - math.log(self.counts.n_documents)
        is_rough = clock is not None and clock < ROUGH
        A = self.E.astype(np.float32) if is_rough else self.E
        H = self.curvature(terms, A, self.negligible(terms, clock)).astype(np.float64)
        return Jacobian(
            np.asarray((H + H.T) / (2 * (gradient.size or 1.0))), gradient.downhill, log_size
        )

    def negligible(self, terms: Terms, clock: float | None) -> float:
        """Force, relative to e^{shift}/n, that moves nothing by e^{−NEGLIGIBLE} in e^clock; 0
        without a clock."""
        if clock is None:
            return 0.0
        log_force = math.log(self.counts.n_documents) - NEGLIGIBLE - clock - terms.shift
        return math.exp(min(log_force, 0.0))

    def curvature(
        self,
        terms: Terms,
        A: NDArray[Any],
        least: float,
        open_entries: OpenEntries | None = None,
    ) -> NDArray[Any]:
        """The Hessian n ∇²L e^{−shift} in other coordinates than p.

        Args:
            terms: at the point.
            A: the coordinates of each type, shape (|S|, k).
            least: terms below it are left out.
            open_entries: entries with further coordinates, which follow the k; Σ a D Dᵀ of these
                is left to the caller.
        """
        seen = self._seen(terms, least, open_entries)
        document = self.counts.entry_documents
        half_weight = terms.dg[document] / 2 * terms.t - terms.g[document] * terms.q
        slopes = self._per_document(terms.t, A, seen, open_entries)
        half = slopes.T @ self._per_document(half_weight, A, seen, open_entries)
        H = half + half.T
        k = A.shape[1]
        moved = np.flatnonzero(np.abs(terms.a) > least)
        H[:k, :k] += (A[moved] * terms.a[moved, None].astype(A.dtype)).T @ A[moved]
        return np.asarray(H)

    def _seen(self, terms: Terms, least: float, open_entries: OpenEntries | None) -> SeenEntries:
        """The entries whose terms reach `least` and the last bit, and their documents."""
        document = self.counts.entry_documents
        n_documents = self.counts.n_documents
        strength = np.maximum(np.abs(terms.g), terms.dg)
        weight = np.maximum(np.abs(terms.t), terms.q)
        # Beyond V forces count that do not reach the last bit of the others.
        matters = strength > (LAST_BIT if open_entries is None else 0.0)
        is_seen = matters[document] & (weight > LAST_BIT) & (strength[document] * weight > least)
        entries = np.flatnonzero(is_seen)
        is_active = np.zeros(n_documents, bool)
        is_active[document[entries]] = True
        if open_entries is not None:
            is_active[document[open_entries.entries]] = True
        sizes = np.bincount(document[entries], minlength=n_documents)[is_active]
        return SeenEntries(entries, is_active, np.concatenate([[0], np.cumsum(sizes)]))

    def _per_document(
        self,
        values: Floats,
        A: NDArray[Any],
        seen: SeenEntries,
        open_entries: OpenEntries | None,
    ) -> NDArray[Any]:
        """Σ value × coordinates over the entries of each active document."""
        m = self.counts.matrix
        stored = (values[seen.entries].astype(A.dtype), m.indices[seen.entries], seen.starts)
        rows = sp.csr_array(stored, shape=(len(seen.starts) - 1, m.shape[1])) @ A
        if open_entries is None:
            return np.asarray(rows)
        entries = open_entries.entries
        document = self.counts.entry_documents[entries]
        further = times_differences(
            document, open_entries.pairs, values[entries], open_entries.F, m.shape[0]
        )
        return np.hstack([rows, further[seen.is_active]])

    def terms(self, u: Floats) -> Terms:
        """What gradient and Hessian are made of, at scores u = E p.

        The weights of documents are relative to the largest, e^{shift}, because all underflow where
        ‖p‖ is in the thousands.
        """
        m = self.counts.matrix
        q = np.zeros(m.nnz)
        t = np.zeros(m.nnz)
        f, scale = document_terms(m.indptr, m.indices, m.data, self._log_counts, u, self.w, q, t)
        answer = self.counts.signs * f
        weight = scale - np.logaddexp(0.0, answer)
        shift = float(weight.max())
        if shift == -math.inf:
            g = np.zeros_like(answer)
            return Terms(q, t, answer, g, g, np.zeros_like(self.w), shift)
        share = np.exp(weight - shift)
        g = self._shared_by_equals(-self.counts.signs * share)
        dg = share * np.exp(scale - np.logaddexp(0.0, -answer))
        a = sum_per_type(m.indptr, m.indices, g, t, m.shape[1])
        return Terms(q, t, answer, g, dg, a, shift)

    def _shared_by_equals(self, g: Floats) -> Floats:
        """Slopes of documents; equal ones with different labels all get their mean."""
        if len(self._equal):
            sizes = np.maximum(np.bincount(self._equal), 1)
            means = np.bincount(self._equal, g[self._contradicted]) / sizes
            g[self._contradicted] = means[self._equal]
        return g

    def _gradient(self, terms: Terms) -> Gradient:
        """∇L from its terms; exactly zero where all forces cancel."""
        slope = self.E.T @ terms.a
        size = float(np.linalg.norm(slope))
        if size == 0:
            return Gradient(0.0, -math.inf, slope)
        log_size = math.log(size / self.counts.n_documents) + terms.shift
        return Gradient(size, log_size, -slope / size)


class Gradient(NamedTuple):
    """Norm of ∇L relative to the shift, log of the true norm, and the unit vector downhill."""

    size: float
    log_size: float
    downhill: Floats


class LiveEntries(Landscape):
    """A landscape with some of its entries alone, shape (nnz,), chosen at scores u."""

    def __init__(self, whole: Landscape, kept: NDArray[np.bool_], u: Floats) -> None:
        m = whole.counts.matrix
        # Zeros are eliminated in place, hence the copies.
        part = sp.csr_array((m.data * kept, m.indices.copy(), m.indptr.copy()), shape=m.shape)
        part.eliminate_zeros()
        super().__init__(replace(whole.counts, matrix=part), whole.E, whole.w)
        self._contradicted = whole._contradicted
        self._equal = whole._equal
        self._whole = whole
        self._left_out = ~kept
        self._weigh(u)

    def left_out_force(self, p: Floats, enough: float) -> float:
        return self.left_out(self.E @ p, self.at(p), enough)

    def left_out(self, u: Floats, terms: Terms, enough: float) -> float:
        """A bound on the logarithm of the largest force that is left out, at scores u and these
        terms.

        Since the last weighing a weight grew at most by e^{largest − smallest change of a score},
        and σ(−y f) by e^{fall of y f}.
        """
        fall = float(np.max(self._answers - terms.answer, initial=0.0))
        bound = self._most + float(np.ptp(u - self._weighed) + fall)
        if bound <= enough:
            return bound
        self._weigh(u)
        return self._most

    def _weigh(self, u: Floats) -> None:
        terms = self._whole.terms(u)
        self._most = float(self._whole.strengths(terms)[self._left_out].max(initial=-math.inf))
        self._weighed = u
        self._answers = terms.answer
