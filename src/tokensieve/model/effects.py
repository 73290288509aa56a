"""What a token does to the trained model's answers, averaged over the documents that contain it.

The model's decision values are f_X = Σ_r q_{X,r} w_r (`tokensieve.model.attention`). Two exact measures, means over the
documents X ∋ s:

    contribution_s = mean q_{X,s} w_s               the token's term of the sum
    deletion_s     = mean (f_X − f_{X∖s})           what the answer loses when every s is deleted from X (leave-one-out)

    f_{X∖s} = (f_X − q_s w_s) / (1 − q_s)           the prior where X holds no other type
    f_X − f_{X∖s} = q_s Σ_{r≠s} q_r (w_s − w_r) / Σ_{r≠s} q_r = q_s (w_s − f_X) / (1 − q_s)

The second is the leave-one-out effect, or occlusion (Li, Monroe, Jurafsky 2016, arXiv:1612.08220), without answering a document
again. Contributions in a document add up to its answer; deletions do not.

1 − q_s is never formed where q_s is near one: with t the type of largest attention in X and p the attention in X∖t (its own
softmax), the loss without t is q_t Σ_r p_r (w_t − w_r); every other type has q_s ≤ 1/2, and w_s − f_X is formed relative to w_t.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from tokensieve.model.attention import Entries, above_answer, attention, blocks, largest, sum_by_type, with_sink
from tokensieve.text.counts import Floats, Ints


@dataclass(frozen=True)
class Effects:
    """Means over the documents that contain a type; NaN for a type that occurs in none.

    Attributes:
        documents: documents that contain each type, shape (|S|,).
        attention: mean q_{X,s} / (c_{X,s}/T_X), attention among the tokens (without the sink's) in units of that of uniform
            attention, shape (|S|,).
        contribution: mean q_{X,s} w_s, shape (|S|, H).
        deletion: mean f_X − f_{X∖s}, shape (|S|, H).
    """

    documents: Ints
    attention: Floats
    contribution: Floats
    deletion: Floats


def effects(matrix: sp.csr_array, u: Floats, w: Floats, prior: Floats, sink: float | None = None) -> Effects:
    """The formulas of this module in O(nonzeros · H).

    Args:
        matrix: counts of n documents over |S| types.
        u: scores, shape (|S|,).
        w: values, shape (|S|, H).
        prior: answer for a document without known tokens, shape (H,); value of the sink.
        sink: score of the sink, or None.
    """
    if sink is not None:
        u, w = np.append(u, sink), np.vstack([w, prior])
    n_types = matrix.shape[1]
    documents, relative = np.zeros(n_types, dtype=np.int64), np.zeros(n_types)
    sums, received = np.zeros(w.shape), np.zeros(len(w))
    for m in blocks(matrix):
        documents += np.bincount(m.indices, minlength=n_types)
        relative += _shares(m, attention(m, u[:n_types]))[2]
        full = m if sink is None else with_sink(m)
        q = attention(full, u)
        top = largest(full, q)[np.diff(full.indptr) > 0]
        others = attention(full, u, without=top)
        for h in range(w.shape[1]):
            sums[:, h] += sum_by_type(full, _losses(full, q, others, top, w[:, h], float(prior[h])))
        received += sum_by_type(full, q)
    n = np.where(documents > 0, documents, np.nan)
    contribution = w[:n_types] * (received[:n_types] / n)[:, None]
    return Effects(documents, relative / n, contribution, sums[:n_types] / n[:, None])


def attention_sums(matrix: sp.csr_array, u: Floats) -> Floats:
    """Sums over documents of q_{X,s} among the tokens, of uniform attention c_{X,s}/T_X, and of their ratio, shape (3, |S|)."""
    sums = np.zeros((3, matrix.shape[1]))
    for m in blocks(matrix):
        sums += _shares(m, attention(m, u))
    return sums


def _shares(matrix: sp.csr_array, q: Floats) -> list[Floats]:
    """The sums of `attention_sums` from the attention of every stored entry."""
    documents = Entries(matrix.indptr)
    uniform = matrix.data / documents.spread(documents.sum(matrix.data))
    return [sum_by_type(matrix, x) for x in (q, uniform, q / uniform)]


def _losses(matrix: sp.csr_array, q: Floats, others: Floats, top: Ints, w: Floats, prior: float) -> Floats:
    """f_X − f_{X∖s} of every stored entry, for one output.

    Args:
        matrix: counts.
        q: attention, shape (nnz,).
        others: attention in each document without its top type, shape (nnz,).
        top: positions of the top types of documents that hold any.
        w: values, shape (|S|,).
        prior: answer for a document that holds nothing.
    """
    documents, held = Entries(matrix.indptr), np.diff(matrix.indptr) > 0
    level = np.zeros(matrix.shape[0])
    level[held] = w[matrix.indices[top]]
    rest = documents.sum(others * (w[matrix.indices] - documents.spread(level)))[held]
    out = q * above_answer(matrix, q, w)
    q_top = q[top]
    q = q.copy()
    q[top] = 0.0
    out /= 1.0 - q
    out[top] = np.where(documents.sizes[held] > 1, -q_top * rest, level[held] - prior)
    return out
