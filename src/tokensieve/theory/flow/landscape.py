"""The loss as a function of the `<cls>` vector alone, in the log domain: nothing underflows at any ‖p‖.

With embeddings E and values w = E v fixed, L(p) = mean_X log(1 + e^{−y f_X}) depends on p through the scores u = E p only:

    ∇_p L = Eᵀa,   a_s = mean_X g_X t_{X,s},   t_{X,s} = q_{X,s}(w_s − f_X) = ∂f_X/∂u_s
    ∇²_p L = Eᵀ [ diag(a) + mean_X ( g'_X t_X t_Xᵀ − g_X (q_X t_Xᵀ + t_X q_Xᵀ) ) ] E,   g'_X = σ(f_X) σ(−f_X).

Once the softmax is nearly one-hot, t_X is as small as e^{−‖p‖}. Each document therefore keeps t_X relative to its own scale
e^{m_X}, the documents are summed relative to the largest |g_X| e^{m_X}, and the logarithm of that scale travels with the result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numba
import numpy as np

from tokensieve.model.attention import sum_by_type
from tokensieve.text.counts import Counts, Floats, Ints

# Documents whose weight is below this share of the largest do not reach the last bit of a Hessian.
NEGLIGIBLE = 1e-18
# Terms below this are formed as logarithms: what is lost beside larger ones is 1e-100 of them.
TINY = 1e-200


@numba.njit(cache=True, parallel=True)
def _documents(
    indptr: Ints, indices: Ints, log_counts: Floats, signs: Floats, u: Floats, w: Floats
) -> tuple[Floats, ...]:
    """Of each entry q and t e^{−m}; of each document y f, its scale m and log|g| + m (−∞ where no score can change f)."""
    n = len(indptr) - 1
    q, t = np.zeros(len(indices)), np.zeros(len(indices))
    answer, scale, weight = np.zeros(n), np.full(n, -np.inf), np.full(n, -np.inf)
    for k in numba.prange(n):
        start, end = indptr[k], indptr[k + 1]
        if start == end:
            continue
        top, peak = start, -np.inf
        for i in range(start, end):
            q[i] = u[indices[i]] + log_counts[i]
            if q[i] > peak:
                top, peak = i, q[i]
        total, largest = 0.0, 0.0
        for i in range(start, end):
            t[i] = np.exp(q[i] - peak)
            total += t[i]
            largest = max(largest, t[i] * abs(w[indices[i]] - w[indices[top]]))
        norm, highest, moved = peak + np.log(total), -np.inf, 0.0
        if largest > TINY:
            highest = np.log(largest / total)
            for i in range(start, end):
                q[i] = t[i] / total
                t[i] *= (w[indices[i]] - w[indices[top]]) / largest
                moved += t[i]
        else:  # so far behind the top that the terms are no numbers but as logarithms
            for i in range(start, end):
                q[i] -= norm
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


@numba.njit(cache=True, parallel=True)
def _along(indptr: Ints, indices: Ints, q: Floats, t: Floats, g: Floats, bend: Floats, du: Floats) -> Floats:
    """Each document's share of duᵀ M du, M the bracket of the Hessian."""
    n = len(indptr) - 1
    out = np.zeros(n)
    for k in numba.prange(n):
        square, mean_q, mean_t = 0.0, 0.0, 0.0
        for i in range(indptr[k], indptr[k + 1]):
            x = du[indices[i]]
            square += t[i] * x * x
            mean_q += q[i] * x
            mean_t += t[i] * x
        out[k] = g[k] * square + bend[k] * mean_t * mean_t - 2 * g[k] * mean_q * mean_t
    return out


@numba.njit(cache=True, parallel=True)
def _project(
    indptr: Ints, indices: Ints, q: Floats, t: Floats, g: Floats, bend: Floats, documents: Ints, E: Floats
) -> tuple[Floats, Floats]:
    """Rows t_XᵀE and ½ bend t_XᵀE − g q_XᵀE of the chosen documents."""
    r = E.shape[1]
    left, right = np.zeros((len(documents), r)), np.zeros((len(documents), r))
    for j in numba.prange(len(documents)):
        k = documents[j]
        for i in range(indptr[k], indptr[k + 1]):
            row = E[indices[i]]
            mixed = 0.5 * bend[k] * t[i] - g[k] * q[i]
            for c in range(r):
                left[j, c] += t[i] * row[c]
                right[j, c] += mixed * row[c]
    return left, right


@dataclass(frozen=True)
class Point:
    """The loss around one p.

    Attributes:
        p: shape (d,).
        loss: L(p).
        log_gradient: log‖∇L‖; −∞ where the gradient is exactly zero.
        decay: κ = ĝᵀ∇²L ĝ/‖∇L‖, the rate at which log‖∇L‖ falls along the curve, per unit of arc length.
        coherence: ‖∇L‖ over the sum of the sizes of its terms: near rounding, the documents cancel and the direction is lost.
    """

    p: Floats
    loss: float
    log_gradient: float
    decay: float
    coherence: float


class Landscape:
    """L(p) for fixed embeddings and values.

    Args:
        counts: n ≥ 1 documents of two classes over |S| types.
        E: embeddings, shape (|S|, d).
        w: values E v, shape (|S|,).
    """

    def __init__(self, counts: Counts, E: Floats, w: Floats) -> None:
        self.counts = counts
        self.E = np.ascontiguousarray(E, dtype=np.float64)
        self.w = np.ascontiguousarray(w, dtype=np.float64)
        self._log_counts = np.log(counts.matrix.data)
        self._longest = float(np.linalg.norm(self.E, axis=1).max(initial=0.0)) or 1.0

    def split(self, p: Floats) -> Floats:
        """p: its own coordinates."""
        return p

    joined = split

    def overlooked(self, p: Floats) -> float:
        """−∞: no force is left out."""
        return -math.inf

    def slope(self, p: Floats) -> tuple[Floats, float]:
        """−∇L/‖∇L‖ and log‖∇L‖ alone: what an integrator asks for most often."""
        _, log_size, downhill = self._gradient(self.terms(self.E @ p))
        return downhill, log_size

    def point(self, p: Floats) -> Point:
        """Loss, gradient and its decay at p."""
        terms = self.terms(self.E @ p)
        size, log_size, downhill = self._gradient(terms)
        loss = float(np.mean(np.logaddexp(0.0, -terms.answer)))
        if size == 0:
            return Point(p, loss, -math.inf, 0.0, 0.0)
        m = self.counts.matrix
        parts = float(np.sum(np.abs(np.repeat(terms.g, np.diff(m.indptr)) * terms.t)))
        along = _along(m.indptr, m.indices, terms.q, terms.t, terms.g, terms.bend, self.E @ downhill)
        return Point(p, loss, log_size, float(np.sum(along)) / size, size / (parts * self._longest))

    def hessian(self, p: Floats) -> tuple[Floats, Floats, float]:
        """∇²L/‖∇L‖ (d, d), −∇L/‖∇L‖ (d,) and log‖∇L‖; the plain Hessian where the gradient is zero."""
        terms = self.terms(self.E @ p)
        size, log_size, downhill = self._gradient(terms)
        m = self.counts.matrix
        active = np.flatnonzero(np.abs(terms.g) > NEGLIGIBLE)
        left, right = _project(m.indptr, m.indices, terms.q, terms.t, terms.g, terms.bend, active, self.E)
        half = left.T @ right
        moved = np.flatnonzero(terms.a)
        rows = self.E[moved]
        out = half + half.T + (rows * terms.a[moved, None]).T @ rows
        return np.asarray((out + out.T) / (2 * (size or 1.0))), downhill, log_size

    def terms(self, u: Floats) -> LossTerms:
        """What gradient and Hessian are sums of, at scores u = E p."""
        m, signs = self.counts.matrix, self.counts.signs
        q, t, answer, scale, weight = _documents(m.indptr, m.indices, self._log_counts, signs, u, self.w)
        shift = float(weight.max())
        if shift == -math.inf:
            zeros = np.zeros(len(signs))
            return LossTerms(q, t, answer, zeros, zeros, np.zeros(len(self.w)), shift)
        share = np.exp(weight - shift)
        g = -signs * share
        bend = share * np.exp(scale - np.logaddexp(0.0, -answer))
        a = sum_by_type(m, np.repeat(g, np.diff(m.indptr)) * t)
        return LossTerms(q, t, answer, g, bend, a, shift)

    def _gradient(self, terms: LossTerms) -> tuple[float, float, Floats]:
        """Norm relative to the shift, log of the true norm, and the unit vector downhill."""
        slope = self.E.T @ terms.a
        size = float(np.linalg.norm(slope))
        if size == 0:
            return 0.0, -math.inf, slope
        return size, math.log(size / self.counts.n_documents) + terms.shift, -slope / size


@dataclass(frozen=True)
class LossTerms:
    """q, t e^{−m} per entry; y f, n g e^{m−shift} and n g' e^{2m−shift} per document; n a e^{−shift} per type."""

    q: Floats
    t: Floats
    answer: Floats
    g: Floats
    bend: Floats
    a: Floats
    shift: float
