"""The model: softmax attention over trained token embeddings, in its exact count form.

With c_{X,s} = how often type s stands in document X, **score** u = E p and **value** w = E v (Wu, Shevchenko, Oymak,
Mondelli, NeurIPS 2025, section 3, rewritten per token type):

    q_{X,s} = c_{X,s} e^{u_s} / Σ_r c_{X,r} e^{u_r}          f_X = Σ_s q_{X,s} w_s
    g_X = ∂ℓ/∂f = −y σ(−y f_X)                               ℓ = log(1 + e^{−y f})
    b_s = ∂L/∂w_s = mean_X g_X q_{X,s}
    a_s = ∂L/∂u_s = mean_X g_X q_{X,s} (w_s − f_X)

With K classes the values are w ∈ R^{|S|×K}, f_X ∈ R^K, ℓ the cross-entropy of softmax(f_X), g_X = softmax(f_X) − 1[y],
and a_s sums g_{X,k} q_{X,s} (w_{s,k} − f_{X,k}) over k. A document without any known token has q = ∅ and f = 0.

w_s − f_X is never formed as such: with t the type of largest attention in X and D_s = w_s − w_t, it is
D_s − Σ_{r≠t} q_r D_r, which keeps full relative precision for the selected type when q_t is near one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from tokensieve.text.counts import Counts, Floats, Ints

SHARED = 2**16


@dataclass(frozen=True)
class Gradient:
    """Loss and its exact gradient in scores and values.

    Attributes:
        loss: L, the mean of ℓ over documents.
        a: ∂L/∂u, shape (|S|,).
        b: ∂L/∂w, shape (|S|, H); H = 1 head for two classes, K heads otherwise.
        f: the model's answers, shape (n, H).
    """

    loss: float
    a: Floats
    b: Floats
    f: Floats


@numba.njit(cache=True)
def attend(types: Any, c: Any, u: Any, q: Any) -> int:
    """Write one document's softmax weights c e^u / Σ c e^u into q; return the position of the largest."""
    peak = -np.inf
    for i in range(len(types)):
        peak = max(peak, u[types[i]])
    total = 0.0
    top = 0
    for i in range(len(types)):
        q[i] = c[i] * np.exp(u[types[i]] - peak)
        total += q[i]
        if q[i] > q[top]:
            top = i
    for i in range(len(types)):
        q[i] /= total
    return top


@numba.njit(cache=True, parallel=True)
def _forward(indptr: Any, indices: Any, data: Any, u: Any, w: Any) -> Any:
    """q in the order of the stored entries, f (n, H), and the position of the largest weight of each document."""
    n = len(indptr) - 1
    heads = w.shape[1]
    q = np.empty(len(indices))
    f = np.zeros((n, heads))
    top = np.zeros(n, np.int64)
    for k in numba.prange(n):
        start, end = indptr[k], indptr[k + 1]
        if start == end:
            continue
        top[k] = start + attend(indices[start:end], data[start:end], u, q[start:end])
        for i in range(start, end):
            for h in range(heads):
                f[k, h] += q[i] * w[indices[i], h]
    return q, f, top


@numba.njit(cache=True, parallel=True)
def _score_terms(indptr: Any, indices: Any, q: Any, top: Any, g: Any, w: Any) -> Any:
    """Each stored entry's share of n·a: Σ_h g_{k,h} q_i (w_{s,h} − f_{k,h}), formed relative to the top type."""
    n = len(indptr) - 1
    heads = w.shape[1]
    terms = np.zeros(len(indices))
    for k in numba.prange(n):
        start, end = indptr[k], indptr[k + 1]
        if start == end:
            continue
        t = indices[top[k]]
        for h in range(heads):
            shift = 0.0
            for i in range(start, end):
                shift += q[i] * (w[indices[i], h] - w[t, h])
            for i in range(start, end):
                terms[i] += g[k, h] * q[i] * ((w[indices[i], h] - w[t, h]) - shift)
    return terms


@numba.njit(cache=True, parallel=True)
def _sum_by_type(starts: Any, positions: Any, terms: Any) -> Any:
    """Σ of terms over the documents of each type, always in the same order."""
    types = len(starts) - 1
    out = np.zeros(types)
    for s in numba.prange(types):
        total = 0.0
        for j in range(starts[s], starts[s + 1]):
            total += terms[positions[j]]
        out[s] = total
    return out


@numba.njit(cache=True, parallel=True)
def _value_sums(starts: Any, positions: Any, documents: Any, q: Any, g: Any) -> Any:
    """Σ_X g_{X,h} q_{X,s} for each type s and head h, always in the same order."""
    types = len(starts) - 1
    heads = g.shape[1]
    out = np.zeros((types, heads))
    for s in numba.prange(types):
        for j in range(starts[s], starts[s + 1]):
            i = positions[j]
            for h in range(heads):
                out[s, h] += q[i] * g[documents[i], h]
    return out


@contextmanager
def threads(entries: int) -> Iterator[None]:
    """Kernels inside run on one thread if there are fewer than SHARED entries: on a busy machine threads that wait for one
    another take a hundred times as long as so little work."""
    before = numba.get_num_threads()
    numba.set_num_threads(1 if entries < SHARED else before)
    try:
        yield
    finally:
        numba.set_num_threads(before)


def attention(counts: Counts, u: Floats) -> Floats:
    """Attention q_{X,s} of every stored entry of counts.matrix, shape (nnz,), in its order; sums to one per document.

    Args:
        counts: n documents over |S| types.
        u: scores, shape (|S|,).
    """
    m = counts.matrix
    with threads(m.nnz):
        q, _, _ = _forward(m.indptr, m.indices, m.data, _scores(u), np.zeros((counts.n_types, 1)))
    return np.asarray(q)


def answers(counts: Counts, u: Floats, w: Floats) -> Floats:
    """f_X = Σ_s q_{X,s} w_s, shape (n, H).

    Args:
        counts: n documents over |S| types.
        u: scores, shape (|S|,).
        w: values, shape (|S|,) or (|S|, H).
    """
    u, w = _scores(u), _heads(w)
    out = [np.empty((0, w.shape[1]))]
    for part in counts.blocks():
        m = part.matrix
        with threads(m.nnz):
            out.append(_forward(m.indptr, m.indices, m.data, u, w)[1])
    return np.concatenate(out)


def loss_and_slope(f: Floats, labels: Ints) -> tuple[Floats, Floats]:
    """ℓ of each document, shape (n,), and g = ∂ℓ/∂f, shape (n, H).

    H = 1: ℓ = log(1 + e^{−y f}), y = ±1 for label 1 / 0.  H = K: cross-entropy of softmax(f).
    """
    if f.shape[1] == 1:
        y = np.where(labels == 1, 1.0, -1.0)
        margin = y * f[:, 0]
        loss = np.logaddexp(0.0, -margin)
        return loss, (-y * np.exp(-margin - loss))[:, None]
    log_total = np.logaddexp.reduce(f, axis=1)
    rows = np.arange(len(f))
    g = np.exp(f - log_total[:, None])
    g[rows, labels] = 0.0
    g[rows, labels] = -g.sum(axis=1)  # softmax − 1 would cancel where the answer is certain
    return log_total - f[rows, labels], g


def gradient(counts: Counts, u: Floats, w: Floats) -> Gradient:
    """The exact full-batch gradient in O(nonzeros of the count matrix), the same bits for any thread count.

    ∇_E L = a pᵀ + b vᵀ, ∇_p L = Eᵀ a and ∇_v L = Eᵀ b follow from it (section 1 of the module's formulas).

    Args:
        counts: n ≥ 1 documents over |S| types.
        u: scores, shape (|S|,).
        w: values, shape (|S|,) or (|S|, 1) for two classes, (|S|, K) for K classes.
    """
    m, w = counts.matrix, _heads(w)
    with threads(m.nnz):
        q, f, top = _forward(m.indptr, m.indices, m.data, _scores(u), w)
    loss, g = loss_and_slope(f, counts.labels)
    g /= counts.n_documents
    starts, positions = counts.by_type
    documents = np.repeat(np.arange(counts.n_documents, dtype=np.int32), np.diff(m.indptr))
    with threads(m.nnz):
        a = _sum_by_type(starts, positions, _score_terms(m.indptr, m.indices, q, top, g, w))
        b = _value_sums(starts, positions, documents, q, g)
    return Gradient(float(np.mean(loss)), a, b, f)


def _scores(u: NDArray[Any]) -> Floats:
    return np.ascontiguousarray(u, dtype=np.float64)


def _heads(w: NDArray[Any]) -> Floats:
    w = np.ascontiguousarray(w, dtype=np.float64)
    return w[:, None] if w.ndim == 1 else w
