"""The loss as a function of the `<cls>` vector alone, in the log domain: nothing underflows at any ‖p‖.

With embeddings E and values w = E v fixed, L(p) = mean_X log(1 + e^{−y f_X}) depends on p through the scores u = E p only:

    ∇_p L = Eᵀa,   a_s = mean_X g_X t_{X,s},   t_{X,s} = q_{X,s}(w_s − f_X) = ∂f_X/∂u_s
    ∇²_p L = Eᵀ [ diag(a) + mean_X ( g'_X t_X t_Xᵀ − g_X (q_X t_Xᵀ + t_X q_Xᵀ) ) ] E,   g'_X = σ(f_X) σ(−f_X).

Once the softmax is nearly one-hot, t_X is as small as e^{−‖p‖}. Each document therefore keeps t_X relative to its own scale
e^{m_X}, the documents are summed relative to the largest |g_X| e^{m_X}, and the logarithm of that scale travels with the result.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numba
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tokensieve.arrays import Floats, Ints
from tokensieve.text.counts import Counts
from tokensieve.theory.geometry import laplacian_form, span_of

if TYPE_CHECKING:
    from tokensieve.theory.flow.split import Face

# Log t up to which a Jacobian in single precision serves: later its rounding error, times e^τ, makes Newton's method fail.
_ROUGH = 15.0
# A Jacobian leaves out what moves nothing by e^{−this}.
_JACOBIAN = 20.0
# Entries that are too weak are left out where that leaves out at least this fraction.
_WEAK = 0.2


@numba.njit(cache=True, parallel=True)
def _documents(
    indptr: Ints,
    indices: Ints,
    data: Floats,
    log_counts: Floats,
    signs: Floats,
    u: Floats,
    w: Floats,
) -> tuple[Floats, ...]:
    """For each entry, q and t e^{−m}; for each document, y f, its scale m and log|g| + m (−∞ where no score can change f)."""
    n = len(indptr) - 1
    most = u.max()
    near = (
        most - u.min() < 500.0
    )  # nothing underflows: one exponential for each type, not for each entry
    weights = np.exp(u - most) if near else u
    q, t = np.zeros(len(indices)), np.zeros(len(indices))
    answer, scale, weight = np.zeros(n), np.full(n, -np.inf), np.full(n, -np.inf)
    for k in numba.prange(n):
        start, end = indptr[k], indptr[k + 1]
        if start == end:
            continue
        top, peak, total, largest = start, -np.inf, 0.0, 0.0
        if not near:
            for i in range(start, end):
                peak = max(peak, u[indices[i]] + log_counts[i])
        base, peak = most if near else peak, -np.inf
        for i in range(start, end):
            q[i] = (
                weights[indices[i]] * data[i]
                if near
                else np.exp(u[indices[i]] + log_counts[i] - base)
            )
            total += q[i]
            if q[i] > peak:
                top, peak = i, q[i]
        highest_value = w[indices[top]]
        for i in range(start, end):
            t[i] = q[i] * (w[indices[i]] - highest_value)
            largest = max(largest, abs(t[i]))
        norm, highest, moved = base + np.log(total), -np.inf, 0.0
        if largest > max(
            1e-200 * peak, 1e-300
        ):  # what is lost beside larger terms is 1e-100 of them
            highest = np.log(largest / total)
            whole, part = 1 / total, 1 / largest
            for i in range(start, end):
                q[i] *= whole
                t[i] *= part
                moved += t[i]
        else:  # so far behind the top that the terms are no numbers but as logarithms
            for i in range(start, end):
                q[i] = u[indices[i]] + log_counts[i] - norm
                difference = abs(w[indices[i]] - w[indices[top]])
                if difference != 0.0:
                    highest = max(highest, q[i] + np.log(difference))
            for i in range(start, end):
                difference = w[indices[i]] - w[indices[top]]
                t[i] = np.exp(q[i] - highest) * difference if difference != 0.0 else 0.0
                moved += t[i]
                q[i] = np.exp(q[i])
        scale[k] = highest
        gap = moved * np.exp(highest)
        for i in range(start, end):
            t[i] -= q[i] * moved
        answer[k] = signs[k] * (w[indices[top]] + gap)
        weight[k] = highest - np.logaddexp(0.0, answer[k])
    return q, t, answer, scale, weight


@numba.njit(cache=True)
def _per_type(indptr: Ints, indices: Ints, g: Floats, t: Floats, types: int) -> Floats:
    """a_s = Σ_X g_X t_Xs, shape (types,)."""
    out = np.zeros(types)
    for k in range(len(indptr) - 1):
        for i in range(indptr[k], indptr[k + 1]):
            out[indices[i]] += g[k] * t[i]
    return out


@numba.njit(cache=True)
def _node_forces(
    indptr: Ints,
    indices: Ints,
    is_open: NDArray[np.bool_],
    own: Ints,
    group: Ints,
    g: Floats,
    t: Floats,
    groups: int,
) -> Floats:
    """Σ g t over the unselected entries: + for the group that their document selects, − for that of their type; shape (groups,)."""
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


def _times_differences(rows: Ints, pairs: Ints, values: Floats, F: Floats, height: int) -> Floats:
    """Σ value (F_b − F_a) in each of `height` rows, over pairs (a, b), shape (j, 2)."""
    sums = sp.coo_array(
        (np.concatenate([values, -values]), (np.tile(rows, 2), pairs.T[::-1].ravel())),
        shape=(height, len(F)),
    )
    return np.asarray(sums.tocsr() @ F)


class _Terms(NamedTuple):
    """q, t e^{−m} per entry; y f, n g e^{m−shift} and n g' e^{2m−shift} per document; n a e^{−shift} per type."""

    q: Floats
    t: Floats
    answer: Floats
    g: Floats
    bend: Floats
    a: Floats
    shift: float


class Landscape:
    """L(p) for embeddings E, shape (|S|, d), and values w = E v, shape (|S|,); a gradient of exactly zero has log‖∇L‖ = −∞."""

    def __init__(self, counts: Counts, E: Floats, w: Floats) -> None:
        self.counts = counts
        self.E = np.ascontiguousarray(E, dtype=np.float64)
        self.w = np.ascontiguousarray(w, dtype=np.float64)
        self._log_counts = np.log(counts.matrix.data)
        # Equal documents with different labels share one g: their forces cancel before the last digit, not in it.
        equal = counts.equal_documents
        share = np.bincount(equal, counts.labels) / np.bincount(equal)
        self._contradicted = np.flatnonzero(((share > 0) & (share < 1))[equal])
        self._equal = equal[self._contradicted]
        self._longest = float(np.linalg.norm(self.E, axis=1).max(initial=0.0)) or 1.0

        self._last: tuple[Floats, _Terms] | None = None

    @staticmethod
    def distinct(pairs: Ints, size: int) -> tuple[Ints, Ints]:
        """The distinct rows of pairs of numbers below `size`, shape (k, 2), and which of them each row is, shape (j,)."""
        numbers, which = np.unique(pairs @ [size, 1], return_inverse=True)
        return np.stack(np.divmod(numbers, size), axis=1), which

    def live(self, p: Floats, clock: float, margin: float) -> Landscape:
        """L without the entries that are too weak to matter; L itself if there are only a few of them."""
        kept = self.strong(p, clock, margin)
        return self if kept.mean() > 1 - _WEAK else _LiveEntries(self, kept, self.E @ p)

    def strong(self, p: Floats, clock: float, margin: float) -> NDArray[np.bool_]:
        """The entries whose weight could move something by e^{−margin} within e^clock of time, shape (nnz,)."""
        terms = self.at(p)
        strongest = float(self.logarithms(terms).max(initial=-math.inf))
        return np.asarray(self.strengths(terms) > min(-max(clock, 0.0), strongest) - margin)

    def strengths(self, terms: _Terms) -> Floats:
        """A bound on `logarithms`, whatever cancels: w − f is at most the range of values, shape (nnz,)."""
        with np.errstate(divide="ignore"):
            bound = np.log(terms.q) - np.logaddexp(0.0, terms.answer)[self.counts.entry_documents]
        return np.asarray(
            bound + math.log(np.ptp(self.w) or 1.0) - math.log(self.counts.n_documents)
        )

    def split(self, p: Floats) -> Floats:
        """The coordinates are p itself."""
        return p

    joined = split

    def left_out_force(self, p: Floats, enough: float) -> float:
        """Logarithm of the largest force that is left out, or a bound on it that is no more than `enough`: of none."""
        return -math.inf

    def logarithms(self, terms: _Terms) -> Floats:
        """Logarithm of the force of each entry on its type's score, shape (nnz,)."""
        with np.errstate(divide="ignore"):
            forces = np.log(np.abs(terms.g[self.counts.entry_documents] * terms.t))
        return np.asarray(forces + (terms.shift - math.log(self.counts.n_documents)))

    def at(self, p: Floats) -> _Terms:
        """The terms at a point, cached until another point is requested."""
        if self._last is None or not np.array_equal(self._last[0], p):
            self._last = p.copy(), self.terms(self.E @ p)
        return self._last[1]

    def top_types(self, p: Floats) -> Ints:
        """The type of highest score of each document, shape (n,); −1 for a document without types."""
        best, out = self.counts.top_mask(self.E @ p), np.full(self.counts.n_documents, -1, np.int64)
        out[self.counts.entry_documents[best]] = self.counts.matrix.indices[best]
        return out

    def slope(self, p: Floats) -> tuple[Floats, float]:
        """−∇L/‖∇L‖ and log‖∇L‖."""
        _, log_size, downhill = self._gradient(self.at(p))
        return downhill, log_size

    def point(self, p: Floats) -> tuple[float, float, float]:
        """L, log‖∇L‖, and ‖∇L‖ over the sum of the sizes of its terms: near rounding its direction is lost."""
        terms = self.at(p)
        size, log_size, _ = self._gradient(terms)
        loss = float(np.mean(np.logaddexp(0.0, -terms.answer)))
        if size == 0:
            return loss, -math.inf, 0.0
        parts = np.bincount(self.counts.entry_documents, np.abs(terms.t), self.counts.n_documents)
        return loss, log_size, size / (float(np.abs(terms.g) @ parts) * self._longest)

    def hessian(self, p: Floats, clock: float | None = None) -> tuple[Floats, Floats, float]:
        """∇²L/c (d, d), −∇L/c (d,) and log c, c = ‖∇L‖; where the gradient is exactly zero, c is a scale of its own.

        With a clock, as the Jacobian of a flow needs it there: without what could move nothing by e^{−_JACOBIAN} in e^clock of
        time, and early, where its rounding is small against one, in single precision.
        """
        terms = self.at(p)
        size, log_size, downhill = self._gradient(terms)
        log_size = log_size if size else terms.shift - math.log(self.counts.n_documents)
        A = self.E.astype(np.float32) if clock is not None and clock < _ROUGH else self.E
        out = self.curvature(terms, A, self.negligible(terms, clock)).astype(np.float64)
        return np.asarray((out + out.T) / (2 * (size or 1.0))), downhill, log_size

    def negligible(self, terms: _Terms, clock: float | None) -> float:
        """Force, relative to e^{shift}/n, that moves nothing by e^{−_JACOBIAN} in e^clock of time; 0 without a clock."""
        if clock is None:
            return 0.0
        return math.exp(
            min(math.log(self.counts.n_documents) - _JACOBIAN - clock - terms.shift, 0.0)
        )

    def curvature(
        self,
        terms: _Terms,
        A: NDArray[Any],
        least: float,
        apart: tuple[Ints, Ints, Floats] | None = None,
    ) -> NDArray[Any]:
        """n ∇²L e^{−shift} in coordinates where type s is A_s, shape (|S|, k), without its part Σ a D Dᵀ beyond them.

        Terms below `least` are left out. With `apart` (entries, shape (j,), rows of F, shape (j, 2), and F, shape (m, r)) these
        entries have the r coordinates D = F_b − F_a of their rows (a, b) more.
        """
        m, at, k = self.counts.matrix, self.counts.entry_documents, A.shape[1]
        strength, weight = (
            np.maximum(np.abs(terms.g), terms.bend),
            np.maximum(np.abs(terms.t), terms.q),
        )
        # Less than 1e-18 of the largest does not reach the last bit, but beyond V smaller forces count.
        counts = strength > (1e-18 if apart is None else 0.0)
        seen = np.flatnonzero(counts[at] & (weight > 1e-18) & (strength[at] * weight > least))
        active = np.zeros(m.shape[0], bool)
        active[at[seen]] = True
        if apart is not None:
            active[at[apart[0]]] = True
        ends = np.concatenate([[0], np.cumsum(np.bincount(at[seen], minlength=m.shape[0])[active])])
        sides = []
        for values in (terms.t, 0.5 * terms.bend[at] * terms.t - terms.g[at] * terms.q):
            kept = values[seen].astype(A.dtype)
            rows = (
                sp.csr_array((kept, m.indices[seen], ends), shape=(len(ends) - 1, m.shape[1])) @ A
            )
            if apart is not None:
                entries, pairs, F = apart
                rows = np.hstack(
                    [
                        rows,
                        _times_differences(at[entries], pairs, values[entries], F, m.shape[0])[
                            active
                        ],
                    ]
                )
            sides.append(rows)
        out = sides[0].T @ sides[1]
        out, moved = out + out.T, np.flatnonzero(np.abs(terms.a) > least)
        out[:k, :k] += (A[moved] * terms.a[moved, None].astype(A.dtype)).T @ A[moved]
        return np.asarray(out)

    def terms(self, u: Floats) -> _Terms:
        """At scores u = E p."""
        m, signs = self.counts.matrix, self.counts.signs
        q, t, answer, scale, weight = _documents(
            m.indptr, m.indices, m.data, self._log_counts, signs, u, self.w
        )
        shift = float(weight.max())
        if shift == -math.inf:
            zeros = np.zeros(len(signs))
            return _Terms(q, t, answer, zeros, zeros, np.zeros(len(self.w)), shift)
        share = np.exp(weight - shift)
        g = -signs * share
        bend = share * np.exp(scale - np.logaddexp(0.0, -answer))
        if len(self._equal):
            means = np.bincount(self._equal, g[self._contradicted]) / np.maximum(
                np.bincount(self._equal), 1
            )
            g[self._contradicted] = means[self._equal]
        return _Terms(
            q, t, answer, g, bend, _per_type(m.indptr, m.indices, g, t, m.shape[1]), shift
        )

    def _gradient(self, terms: _Terms) -> tuple[float, float, Floats]:
        """Norm relative to the shift, log of the true norm, and the unit vector downhill."""
        slope = self.E.T @ terms.a
        size = float(np.linalg.norm(slope))
        if size == 0:
            return 0.0, -math.inf, slope
        return size, math.log(size / self.counts.n_documents) + terms.shift, -slope / size


class _LiveEntries(Landscape):
    """A landscape with some of its entries alone, shape (nnz,), chosen at scores u."""

    def __init__(self, whole: Landscape, kept: NDArray[np.bool_], u: Floats) -> None:
        m = whole.counts.matrix
        part = sp.csr_array(
            (m.data * kept, m.indices.copy(), m.indptr.copy()), shape=m.shape
        )  # zeros go in place
        part.eliminate_zeros()
        super().__init__(replace(whole.counts, matrix=part), whole.E, whole.w)
        self._contradicted, self._equal = whole._contradicted, whole._equal
        self._whole, self._left_out = whole, ~kept
        self._weigh(u)

    def left_out_force(self, p: Floats, enough: float) -> float:
        return self.left_out(self.E @ p, self.at(p), enough)

    def left_out(self, u: Floats, terms: _Terms, enough: float) -> float:
        """A bound on the logarithm of the largest force that is left out, at scores u and these terms there."""
        # Since the last weighing a weight grew at most by e^{largest − smallest change of a score}, and σ(−y f) by e^{fall of y f}.
        bound = self._most + float(
            np.ptp(u - self._weighed) + np.max(self._answers - terms.answer, initial=0.0)
        )
        if bound <= enough:
            return bound
        self._weigh(u)
        return self._most

    def _weigh(self, u: Floats) -> None:
        terms = self._whole.terms(u)
        self._most = float(self._whole.strengths(terms)[self._left_out].max(initial=-math.inf))
        self._weighed, self._answers = u, terms.answer


class SplitLandscape:
    """L in the coordinates (ζ, q) of a face and of the pairs that are live at p (see `split`), with the interface of `Landscape`;
    forces `margin` nats weaker than those that move something, at e^clock of time, are left out."""

    def __init__(self, land: Landscape, face: Face, p: Floats, clock: float, margin: float) -> None:
        self._A, F, q = land.E @ face.inside, land.E[face.lead] @ face.outside, face.outside.T @ p
        u = self._A @ (face.inside.T @ p) + (F @ q)[face.group]
        level = np.where(face.mask, -math.inf, land.logarithms(land.terms(u)))
        moves = level > min(-max(clock, 0.0), float(level.max(initial=-math.inf))) - margin
        kept = moves | face.mask | land.strong(p, clock, margin)
        self.land = _LiveEntries(land, kept, u)
        self.face, counts, self._is_open = face, self.land.counts, ~face.mask[kept]
        self._open = np.flatnonzero(self._is_open)
        self._idle = np.flatnonzero(~moves[kept][self._open])
        self._open_documents = counts.entry_documents[self._open]
        # Of each entry the group that its document selects and its own; entries of one type with one such group share a number.
        self._ends = np.stack(
            [face.own[self._open_documents], face.group[counts.matrix.indices[self._open]]], axis=1
        )
        ties = self._ends[:, 0] * counts.n_types + counts.matrix.indices[self._open]
        self._first, self._pair = np.unique(ties, return_index=True, return_inverse=True)[1:]
        pairs = land.distinct(self._ends[moves[kept][self._open]], counts.n_types)[0]
        inside = span_of(F, pairs)
        self._W = face.outside @ inside
        self._rest = face.outside @ (q - inside @ (inside.T @ q))
        self._F = np.ascontiguousarray(F @ inside)
        self._base = (land.E[face.lead] @ self._rest)[face.group]
        self._last: tuple[Floats, _Terms, Floats] | None = None

    def split(self, p: Floats) -> Floats:
        return np.concatenate([self.face.inside.T @ p, self._W.T @ p])

    def joined(self, x: Floats) -> Floats:
        k = self.face.dimension
        return np.asarray(self.face.inside @ x[:k] + self._W @ x[k:] + self._rest)

    def left_out_force(self, x: Floats, enough: float) -> float:
        terms = self._at(x)[0]
        idle = float(np.abs(self._force(terms)[self._idle]).max(initial=0.0))
        return max(self._log(idle, terms), self.land.left_out(self._scores(x), terms, enough))

    def slope(self, x: Floats) -> tuple[Floats, float]:
        terms, downhill = self._at(x)
        size = float(np.linalg.norm(downhill))
        return (downhill / size, self._log(size, terms)) if size > 0 else (downhill, -math.inf)

    def outside(self, x: Floats) -> tuple[float, float, float]:
        """L; and of the gradient along V^⊥ the logarithm of its norm, and that norm over the sum of the sizes of its terms."""
        terms, downhill = self._at(x)
        loss = float(np.mean(np.logaddexp(0.0, -terms.answer)))
        size = float(np.linalg.norm(downhill[self.face.dimension :]))
        if size == 0:
            return loss, -math.inf, 1.0
        return loss, self._log(size, terms), size / float(np.abs(self._force(terms)).sum())

    def hessian(self, x: Floats, clock: float | None = None) -> tuple[Floats, Floats, float]:
        terms, downhill = self._at(x)
        force, least = self._force(terms), self.land.negligible(terms, clock)
        size = float(np.linalg.norm(downhill)) or 1.0
        m, k = self.land.counts.matrix, self.face.dimension
        strong = np.abs(force) > max(least, 1e-18 * float(np.abs(force).max(initial=0.0)))
        F, entries = self._F, self._open[strong]
        H = self.land.curvature(terms, self._A, least, (entries, self._ends[strong], F))
        # Forces of equal documents cancel exactly where they are summed first.
        f = np.bincount(self._pair[strong], force[strong], len(self._first))
        met = self._first[f != 0]
        f, pairs, types = f[f != 0], self._ends[met], m.indices[self._open[met]]
        H[k:, k:] += laplacian_form(F, pairs, f)
        mixed = self._A.T @ _times_differences(types, pairs, f, F, len(self._A))
        H[:k, k:] += mixed
        H[k:, :k] += mixed.T
        return np.asarray((H + H.T) / (2 * size)), downhill / size, self._log(size, terms)

    def _at(self, x: Floats) -> tuple[_Terms, Floats]:
        """The terms at a point, and −∇L relative to e^{shift}/n; kept until another point is asked for."""
        if self._last is None or not np.array_equal(self._last[0], x):
            m, face, terms = self.land.counts.matrix, self.face, self.land.terms(self._scores(x))
            node = _node_forces(
                m.indptr,
                m.indices,
                self._is_open,
                face.own,
                face.group,
                terms.g,
                terms.t,
                len(self._F),
            )
            self._last = x.copy(), terms, np.concatenate([-(self._A.T @ terms.a), node @ self._F])
        return self._last[1:]

    def _scores(self, x: Floats) -> Floats:
        """u of each type; those of one group agree to the last digit beyond V."""
        k = self.face.dimension
        return np.asarray(self._base + self._A @ x[:k] + (self._F @ x[k:])[self.face.group])

    def _force(self, terms: _Terms) -> Floats:
        """The force on each unselected entry, relative to e^{shift}/n."""
        return terms.g[self._open_documents] * terms.t[self._open]

    def _log(self, size: float, terms: _Terms) -> float:
        return (
            math.log(size / self.land.counts.n_documents) + terms.shift if size > 0 else -math.inf
        )
