"""What a token does to the trained model's answers, averaged over the documents that contain it.

The model's answers are f_X = Σ_r q_{X,r} w_r (`tokensieve.model.attention`). Two exact measures, means over the documents X ∋ s:

    contribution_s = mean q_{X,s} w_s               the token's term of the sum
    deletion_s     = mean (f_X − f_{X∖s})           what the answer loses when every s is deleted from X

    f_{X∖s} = (f_X − q_s w_s) / (1 − q_s)           the prior where X holds no other type
    f_X − f_{X∖s} = q_s Σ_{r≠s} q_r (w_s − w_r) / Σ_{r≠s} q_r = q_s (w_s − f_X) / (1 − q_s)

The second is what leave-one-out, or occlusion, measures (Li, Monroe, Jurafsky 2016, arXiv:1612.08220), without answering a
document again. Contributions in a document add up to its answer; deletions do not.

1 − q_s is never formed where q_s is near one: with t the type of largest attention in X and p the attention in X∖t (its own
softmax), the loss without t is q_t Σ_r p_r (w_t − w_r); every other type has q_s ≤ 1/2, and w_s − f_X is formed relative to w_t.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import scipy.sparse as sp

from tokensieve.model.attention import attend, attention, threads
from tokensieve.text.counts import Counts, Floats, Ints


@dataclass(frozen=True)
class Effects:
    """Means over the documents that contain a type; NaN for a type that stands in none.

    Attributes:
        documents: documents that contain each type, shape (|S|,).
        attention: mean q_{X,s} / (c_{X,s}/T_X), attention in units of that of uniform attention, shape (|S|,).
        contribution: mean q_{X,s} w_s, shape (|S|, H).
        deletion: mean f_X − f_{X∖s}, shape (|S|, H).
    """

    documents: Ints
    attention: Floats
    contribution: Floats
    deletion: Floats


def effects(counts: Counts, u: Floats, w: Floats, prior: Floats) -> Effects:
    """The formulas of this module in O(nonzeros · H), the same bits for any thread count.

    Args:
        counts: n documents over |S| types.
        u: scores, shape (|S|,).
        w: values, shape (|S|, H).
        prior: answer for a document without known tokens, shape (H,).
    """
    u, w = (np.ascontiguousarray(x, dtype=np.float64) for x in (u, w))
    sums, documents = np.zeros(w.shape), np.zeros(counts.n_types, dtype=np.int64)
    shares = np.zeros((3, counts.n_types))
    for part in counts.blocks():
        m = part.matrix
        documents += np.bincount(m.indices, minlength=counts.n_types)
        with threads(m.nnz):
            q, others, top = _attention_twice(m.indptr, m.indices, m.data, u)
            for h in range(w.shape[1]):
                terms = _losses(m.indptr, m.indices, q, others, top, np.ascontiguousarray(w[:, h]), float(prior[h]))
                sums[:, h] += _sum_by_type(part, terms)
        shares += _shares(part, q)
    received, _, relative = shares
    n = np.where(documents > 0, documents, np.nan)
    return Effects(documents, relative / n, w * (received / n)[:, None], sums / n[:, None])


def attention_sums(counts: Counts, u: Floats) -> Floats:
    """Sums over documents of q_{X,s}, of uniform attention c_{X,s}/T_X, and of their ratio, shape (3, |S|)."""
    sums = np.zeros((3, counts.n_types))
    for part in counts.blocks():
        sums += _shares(part, attention(part, u))
    return sums


def _shares(counts: Counts, q: Floats) -> list[Floats]:
    """The sums of `attention_sums` from the attention of every stored entry."""
    uniform = counts.matrix.data / np.repeat(counts.lengths, np.diff(counts.matrix.indptr))
    return [_sum_by_type(counts, x) for x in (q, uniform, q / uniform)]


def _sum_by_type(counts: Counts, entries: Floats) -> Floats:
    """Sums of numbers that belong to the stored entries of the matrix, shape (|S|,)."""
    m = counts.matrix
    return np.asarray(sp.csr_array((entries, m.indices, m.indptr), shape=m.shape).sum(axis=0)).ravel()


@numba.njit(cache=True, parallel=True)
def _attention_twice(indptr: Any, indices: Any, data: Any, u: Any) -> Any:
    """q of every stored entry; the attention p in the document without its top type t (p_t = 0); the position of t."""
    n = len(indptr) - 1
    q, p = np.empty(len(indices)), np.zeros(len(indices))
    top = np.zeros(n, np.int64)
    for k in numba.prange(n):
        start, end = indptr[k], indptr[k + 1]
        if start == end:
            continue
        t = start + attend(indices[start:end], data[start:end], u, q[start:end])
        top[k] = t
        peak, total = -np.inf, 0.0
        for i in range(start, end):
            if i != t:
                peak = max(peak, u[indices[i]])
        for i in range(start, end):
            if i != t:
                p[i] = data[i] * np.exp(u[indices[i]] - peak)
                total += p[i]
        if end - start > 1:
            for i in range(start, end):
                p[i] /= total
    return q, p, top


@numba.njit(cache=True, parallel=True)
def _losses(indptr: Any, indices: Any, q: Any, p: Any, top: Any, w: Any, prior: Any) -> Any:
    """f_X − f_{X∖s} of every stored entry, for one head."""
    n = len(indptr) - 1
    out = np.empty(len(indices))
    for k in numba.prange(n):
        start, end = indptr[k], indptr[k + 1]
        if start == end:
            continue
        t = top[k]
        if end - start == 1:
            out[t] = w[indices[t]] - prior
            continue
        level, shift, without = w[indices[t]], 0.0, 0.0
        for i in range(start, end):
            shift += q[i] * (w[indices[i]] - level)
            without += p[i] * (w[indices[i]] - level)
        for i in range(start, end):
            out[i] = q[i] * ((w[indices[i]] - level) - shift) / (1.0 - q[i]) if i != t else -q[t] * without
    return out
