"""The model: softmax attention over trained token embeddings, in its exact count form.

With c_{X,s} = how often type s occurs in document X, **score** u = E p and **value** w = E v (Wu, Shevchenko, Oymak,
Mondelli, NeurIPS 2025, section 3, rewritten per token type):

    q_{X,s} = c_{X,s} e^{u_s} / Σ_r c_{X,r} e^{u_r}          f_X = Σ_s q_{X,s} w_s
    g_X = ∂ℓ/∂f = −y σ(−y f_X)                               ℓ = log(1 + e^{−y f})
    b_s = ∂L/∂w_s = mean_X g_X q_{X,s}
    a_s = ∂L/∂u_s = mean_X g_X q_{X,s} (w_s − f_X)

With K classes the values are w ∈ R^{|S|×K}, f_X ∈ R^K, ℓ the cross-entropy of softmax(f_X), g_X = softmax(f_X) − 1[y],
and a_s sums g_{X,k} q_{X,s} (w_{s,k} − f_{X,k}) over k. A document without any known token has q = ∅ and f = 0.

A **sink** is one more type that occurs once in every document. Its score is trained; its value is the prior, the logit of the class
frequencies. The fewer and weaker a document's tokens, the more attention it takes; a document without a known token gets the prior
as its logit. If a function takes one number more than there are types, the last is the sink's.

w_s − f_X is never formed as such: with t the type of largest attention in X and D_s = w_s − w_t, it is
D_s − Σ_{r≠t} q_r D_r, which keeps full relative precision for the selected type when q_t is near one.

Everything here is plain NumPy over the stored entries of the count matrix, in one thread and one order, so results are
bit-identical. (Compiled kernels on two threads were not faster, and took seconds to compile.)
"""

from __future__ import annotations

import math
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray
from polars import thread_pool_size as n_threads
from scipy.special import expit

from tokensieve.arrays import ENTRIES_PER_BLOCK, Floats, Ints, matrix_blocks, row_blocks
from tokensieve.read.values import text_series
from tokensieve.text.counts import Counts
from tokensieve.text.vocabulary import TokenStream, Vocabulary

CACHED_ENTRIES = ENTRIES_PER_BLOCK // 16
Piece = tuple[str, float, float, float]  # text, contribution, attention, value


@dataclass(frozen=True)
class Gradient:
    """Loss and its exact gradient in scores and values.

    Attributes:
        loss: L, the mean of ℓ over documents.
        a: ∂L/∂u, shape (|S|,).
        b: ∂L/∂w, shape (|S|, H); H = 1 output for two classes, K outputs otherwise.
        f: the model's decision values, shape (n, H).
    """

    loss: float
    a: Floats
    b: Floats
    f: Floats


class _Entries:
    """Sums and maxima over the stored entries of each document, and numbers per document spread over its entries."""

    def __init__(self, indptr: Ints) -> None:
        self.sizes = np.diff(indptr)
        self._filled = np.flatnonzero(self.sizes)
        self._starts = np.asarray(indptr[:-1])[self._filled]

    def reduce(self, operation: np.ufunc, entries: Floats) -> Floats:
        """`operation` over each document's entries, shape (n,); 0 for a document without any."""
        out = np.zeros(len(self.sizes), entries.dtype)
        if len(self._filled):
            out[self._filled] = operation.reduceat(entries, self._starts)
        return out

    def sum(self, entries: Floats) -> Floats:
        """Σ over each document's entries, shape (n,)."""
        return self.reduce(np.add, entries)

    def spread(self, of_document: Floats) -> Floats:
        """A number per document at each of its entries, shape (nnz,)."""
        return np.repeat(of_document, self.sizes)


def attention(matrix: sp.csr_array, u: Floats, without: Ints | None = None) -> Floats:
    """Attention q_{X,s} of every stored entry, shape (nnz,), in its order; sums to one over each document.

    Entries at the positions `without` are left out of the softmax; they and what remains of an emptied document get 0.
    """
    documents = _Entries(matrix.indptr)
    q: Floats = np.asarray(u, dtype=np.float64)[matrix.indices]
    if without is not None:
        q[without] = -np.inf
    peak = documents.reduce(np.maximum, q)
    q -= documents.spread(np.where(np.isneginf(peak), 0.0, peak))
    np.exp(q, out=q)
    q *= matrix.data
    total = documents.sum(q)
    q /= documents.spread(np.where(total == 0.0, 1.0, total))
    return q


def _largest(matrix: sp.csr_array, q: Floats) -> Ints:
    """Position of the entry of largest attention q, the first of equals, for each document, shape (n,); 0 where there is none."""
    documents = _Entries(matrix.indptr)
    candidates = np.flatnonzero(q == documents.spread(documents.reduce(np.maximum, q)))[::-1]
    top = np.zeros(matrix.shape[0], dtype=np.int64)
    top[np.searchsorted(matrix.indptr, candidates, side="right") - 1] = candidates
    return top


def _above_answer(matrix: sp.csr_array, q: Floats, w: Floats) -> Floats:
    """w_s − f_X at every stored entry, shape (nnz,), for one output, formed relative to the type of largest attention q."""
    if not len(q):
        return np.zeros(0)
    documents = _Entries(matrix.indptr)
    out: Floats = w[matrix.indices]
    out -= documents.spread(out[_largest(matrix, q)])
    out -= documents.spread(documents.sum(q * out))
    return out


def logits(matrix: sp.csr_array, u: Floats, w: Floats) -> Floats:
    """Decision values f_X = Σ_s q_{X,s} w_s, shape (n, H), for scores u, shape (|S|,), and values w, shape (|S|,) or (|S|, H);
    with the sink, both have one more row."""
    w = _outputs(w)

    def some(rows: slice) -> Floats:
        m = matrix[rows]
        full = with_sink(m) if len(u) > m.shape[1] else m
        return np.asarray(_weighted(full, attention(full, u)) @ w)

    blocks = list(
        row_blocks(matrix.indptr, CACHED_ENTRIES)
    )  # 2 MB an array, in the cache: half the time of 16 MB
    if len(blocks) < 2:
        return some(slice(None))
    with ThreadPoolExecutor(n_threads()) as pool:
        return np.concatenate(list(pool.map(some, blocks)))


def with_sink(matrix: sp.csr_array) -> sp.csr_array:
    """The counts with one more type, once in every document, shape (n, |S|+1)."""
    ends, (n, types) = matrix.indptr[1:], matrix.shape
    indptr = matrix.indptr + np.arange(n + 1, dtype=matrix.indptr.dtype)
    indices, data = np.insert(matrix.indices, ends, types), np.insert(matrix.data, ends, 1.0)
    return sp.csr_array((data, indices, indptr), shape=(n, types + 1))


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


def gradient(counts: Counts, u: Floats, w: Floats, pairs: bool = False) -> Gradient:
    """The exact full-batch gradient in O(nonzeros of the count matrix · H).

    ∇_E L = a pᵀ + b vᵀ, ∇_p L = Eᵀ a and ∇_v L = Eᵀ b follow from it (the module's formulas).

    With `pairs` it is that of preferences (Bradley & Terry 1952), and the loss is the mean over pairs. Pair i is two documents,
    A (preferred) and B, rows 2i and 2i + 1 of the counts. With m = f_A − f_B

        P(A preferred to B) = σ(m)        ℓ = log(1 + e^{−m})        ∂ℓ/∂f_A = −σ(−m) = −∂ℓ/∂f_B

    so that scores and values get the gradients of both documents, with opposite g. Decision values are determined up to a
    constant, which the sink's value, 0, fixes. Attention is a mean and ignores length, but judges do not: with
    the sink, a longer answer gets more attention. Swapping A and B changes only the sign of m, so the order is not randomised.

    u has shape (|S|,), w (|S|,) or (|S|, 1) for two classes or pairs, else (|S|, K); `pairs`: rows 2i (preferred), 2i + 1 are one.
    """
    matrix, w = counts.matrix, _outputs(w)
    documents, q = _Entries(matrix.indptr), attention(matrix, u)
    weighted = _weighted(matrix, q)
    f = np.asarray(weighted @ w)
    if pairs:
        loss, slope = loss_and_slope(f[::2] - f[1::2], np.ones(len(f) // 2, dtype=np.int64))
        g = np.column_stack([slope, -slope]).reshape(-1, 1)
    else:
        loss, g = loss_and_slope(f, counts.labels)
    g /= len(loss)
    slopes = np.zeros(len(q))
    for h in range(w.shape[1]):
        slopes += documents.spread(g[:, h]) * _above_answer(matrix, q, w[:, h])
    return Gradient(
        float(np.mean(loss)), _sum_by_type(matrix, q * slopes), np.asarray(weighted.T @ g), f
    )


def _sum_by_type(matrix: sp.csr_array, entries: Floats) -> Floats:
    """Σ over documents of numbers that belong to the stored entries, in the order of the documents, shape (|S|,)."""
    return np.asarray(np.bincount(matrix.indices, entries, matrix.shape[1]), dtype=np.float64)


def _weighted(matrix: sp.csr_array, entries: Floats) -> sp.csr_array:
    return sp.csr_array((entries, matrix.indices, matrix.indptr), shape=matrix.shape)


def _outputs(w: Floats) -> Floats:
    w = np.ascontiguousarray(w, dtype=np.float64)
    return w[:, None] if w.ndim == 1 else w


def attention_sums(matrix: sp.csr_array, u: Floats) -> Floats:
    """Sums over documents of q_{X,s} among the tokens, of uniform attention c_{X,s}/T_X, and of their ratio, shape (3, |S|)."""
    sums = np.zeros((3, matrix.shape[1]))
    for _, m in matrix_blocks(matrix):
        q, documents = attention(m, u), _Entries(m.indptr)
        uniform = m.data / documents.spread(documents.sum(m.data))
        sums += [_sum_by_type(m, x) for x in (q, uniform, q / uniform)]
    return sums


def decide(f: Floats) -> Ints:
    """Index of the predicted class, shape (n,); f of shape (n, H), or (n,) for two classes."""
    if f.ndim == 2 and f.shape[1] > 1:
        return np.asarray(np.argmax(f, axis=1))
    return (f.reshape(len(f)) > 0).astype(np.int64)


def probabilities(f: Floats) -> Floats:
    """Class probabilities, shape (n, K): logistic for one head (shape (n,) or (n, 1)), softmax for K."""
    if f.ndim == 2 and f.shape[1] > 1:
        return np.asarray(np.exp(f - np.logaddexp.reduce(f, axis=1, keepdims=True)))
    f = f.reshape(len(f))
    return np.exp(-np.logaddexp(0.0, np.column_stack([f, -f])))


def per_class(x: Floats) -> Floats:
    """One column per class, shape (m, K): [−x, x] for one head, x itself for K heads."""
    return np.hstack([-x, x]) if x.shape[1] == 1 else x


def accuracy(f: Floats, labels: Ints) -> float:
    """Fraction of documents predicted correctly; nan without documents."""
    return float(np.mean(decide(f) == labels)) if len(labels) else math.nan


@dataclass(frozen=True)
class Model:
    """Softmax attention over token types; its predictions are exact sums over tokens (formulas in `tokensieve.model.attention`).

    Attributes:
        classes: the K labels, sorted, shape (K,).
        scores: u, shape (|S|,).
        values: w, shape (|S|, 1) for two classes (of the second), (|S|, K) otherwise.
        prior: logit of a document without a known token, shape (1,) or (K,).
        tokens: the |S| token types as text.
        vocabulary: how text becomes counts; None for a model of counts.
        steps: training steps taken.
        score_rate: initial step size of the scores that held-out documents chose; None after loading.
        validation: (steps, mean loss) on held-out documents, shape (checks, 2).
        sink: score of the sink (its value is the prior); None for a model without a sink.
        settings: parameters of `AttentionClassifier` that train the same model again from the same counts.
        pairs: whether it was trained on pairs; then only differences of decision values are meaningful.
    """

    classes: NDArray[Any]
    scores: Floats
    values: Floats
    prior: Floats
    tokens: NDArray[Any]
    vocabulary: Vocabulary | None = None
    steps: int = 0
    validation: Floats = field(default_factory=lambda: np.empty((0, 2)))
    sink: float | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    pairs: bool = False
    score_rate: float | None = None

    def count(self, texts: Any) -> tuple[sp.csr_array, Ints]:
        """Counts of texts, shape (n, |S|), and the unknown words of each, shape (n,)."""
        assert self.vocabulary is not None
        return self.vocabulary.read(texts)

    def logits(self, matrix: sp.csr_array) -> Floats:
        """Decision values f of counts, shape (n, H); the prior for documents without a known token."""
        f = logits(matrix, *self.table)
        f[np.diff(matrix.indptr) == 0] = self.prior  # what the sink answers to rounding
        return f

    def margins(self, matrix: sp.csr_array) -> Floats:
        """f_A − f_B of each pair, documents 2i and 2i + 1 of the counts, shape (n/2,)."""
        f = self.logits(matrix)[:, 0]
        return np.asarray(f[::2] - f[1::2])

    @property
    def table(self) -> tuple[Floats, Floats]:
        """(u, w), with the sink last if there is one."""
        if self.sink is None:
            return self.scores, self.values
        return np.append(self.scores, self.sink), np.vstack([self.values, self.prior])

    def answer(self, matrix: sp.csr_array, unknown: Ints) -> pl.DataFrame:
        """The old name of `predictions`."""
        warnings.warn("Model.answer is now Model.predictions", DeprecationWarning, stacklevel=2)
        return self.predictions(matrix, unknown)

    def predictions(self, matrix: sp.csr_array, unknown: Ints) -> pl.DataFrame:
        """One row per document: class, its probability, the decision value f of the second of two classes or of that class,
        and the number of unknown words. `matrix` and `unknown` are those of `count`."""
        f = self.logits(matrix)
        best, p, rows = decide(f), probabilities(f), np.arange(len(f))
        names = pl.Series(self.classes.tolist()).gather(best)
        value = f[:, 0] if f.shape[1] == 1 else f[rows, best]
        return pl.DataFrame(
            {
                "class": names,
                "probability": p[rows, best],
                "answer": value,
                "unknown_words": unknown,
            }
        )

    def pair_predictions(
        self, first: pl.Series, second: pl.Series, names: tuple[str, str]
    ) -> pl.DataFrame:
        """One row per pair: preferred (one of the names), probability of the first, answer f_first − f_second, unknown_words.

        The first three are null where a side is empty.
        """
        read = [self.count(side) for side in (first, second)]
        m = (self.logits(read[0][0]) - self.logits(read[1][0]))[:, 0]
        whole = pl.Series(
            [bool(a.strip() and b.strip()) for a, b in zip(first, second, strict=True)],
            dtype=pl.Boolean,
        )
        preferred = pl.Series(list(names), dtype=pl.String).gather((m < 0).astype(np.int64))
        numbers = {"probability": expit(m), "answer": m, "unknown_words": read[0][1] + read[1][1]}
        frame = pl.DataFrame({"preferred": preferred, **numbers})
        return frame.with_columns(
            pl.when(whole).then(pl.col(name)).alias(name) for name in frame.columns[:3]
        )

    def pieces(self, text: str, k: int = 1, row: sp.csr_array | None = None) -> list[Piece]:
        """Split a text into (piece, contribution, attention, value), in order; joined, the pieces are the text.

        Each occurrence of a type gets q_s/c_s of the attention, divided equally among the words of an n-gram. Attention adds up to
        one and contributions to the logit f, except for what the sink and formatting take. Text between tokens and unknown words
        get zero.

        Args:
            text: any text.
            k: index of the class whose logit is explained.
            row: the text's counts over the |S| types, CSR (1, |S|); counted here if None.
        """
        vocabulary = self.vocabulary
        assert vocabulary is not None
        stream = TokenStream.of(text_series([text]), vocabulary.tokenizer)
        spans = vocabulary.tokenizer.spans(text)
        types = vocabulary.positions(stream)
        matrix = vocabulary.read([text])[0] if row is None else row
        share, values = np.zeros(len(self.scores)), per_class(self.values)[:, k]
        full = matrix if self.sink is None else with_sink(matrix)
        share[matrix.indices] = attention(full, self.table[0])[: matrix.nnz] / matrix.data
        received, contributed = np.zeros(len(types)), np.zeros(len(types))
        for n in range(types.shape[1]):
            ends = np.flatnonzero(types[:, n] >= 0)
            q = share[types[ends, n]] / (n + 1)
            for back in range(n + 1):
                np.add.at(received, ends - back, q)
                np.add.at(contributed, ends - back, q * values[types[ends, n]])
        value = np.where(types[:, 0] >= 0, values[types[:, 0]], 0.0)
        out: list[Piece] = []
        at = 0
        for (start, end, _), f, q, w in zip(spans, contributed, received, value, strict=True):
            if start > at:
                out.append((text[at:start], 0.0, 0.0, 0.0))
            out.append((text[max(start, at) : end], float(f), float(q), float(w)))
            at = max(at, end)
        if at < len(text):
            out.append((text[at:], 0.0, 0.0, 0.0))
        return out

    def effects(self, matrix: sp.csr_array) -> dict[str, Floats]:
        """What each token does to the logits f_X = Σ_r q_{X,r} w_r: two exact measures, means over the documents X ∋ s.

            contribution_s = mean q_{X,s} w_s               the token's term of the sum
            deletion_s     = mean (f_X − f_{X∖s})           how much the logit drops when every s is deleted from X (leave-one-out)

            f_{X∖s} = (f_X − q_s w_s) / (1 − q_s)           the prior if X contains no other type
            f_X − f_{X∖s} = q_s Σ_{r≠s} q_r (w_s − w_r) / Σ_{r≠s} q_r = q_s (w_s − f_X) / (1 − q_s)

        The second is occlusion (Li, Monroe, Jurafsky 2016, arXiv:1612.08220), without predicting any document again. The
        contributions in a document add up to its logit; deletions do not. It takes O(nonzeros · H).

        1 − q_s is never formed where q_s is near one: with t the type of largest attention in X and p the attention in X∖t (its
        own softmax), the loss without t is q_t Σ_r p_r (w_t − w_r); every other type has q_s ≤ 1/2, and w_s − f_X is taken
        relative to w_t.

        Returns:
            A dictionary of arrays. `documents`: how many contain each type, shape (|S|,). `attention`: mean
            q_{X,s} / (c_{X,s}/T_X), attention among the tokens (without the sink's) in units of that of uniform attention, shape
            (|S|,). `contribution` and `deletion`: shape (|S|, H). The means are NaN for a type that occurs in no document.
        """
        n_types, (u, w) = matrix.shape[1], self.table
        relative = attention_sums(matrix, self.scores)[2]
        documents, sums, received = (
            np.zeros(n_types, dtype=np.int64),
            np.zeros(w.shape),
            np.zeros(len(w)),
        )
        for _, m in matrix_blocks(matrix):
            documents += np.bincount(m.indices, minlength=n_types)
            full = m if self.sink is None else with_sink(m)
            q, entries, held = attention(full, u), _Entries(full.indptr), np.diff(full.indptr) > 0
            received += _sum_by_type(full, q)
            top = _largest(full, q)[held]
            others, smaller = attention(full, u, without=top), q.copy()
            smaller[top] = 0.0
            for h in range(w.shape[1]):
                value, level = w[:, h], np.zeros(full.shape[0])
                level[held] = value[full.indices[top]]
                rest = entries.sum(others * (value[full.indices] - entries.spread(level)))[held]
                lost = q * _above_answer(full, q, value)
                lost /= 1.0 - smaller
                lost[top] = np.where(
                    entries.sizes[held] > 1, -q[top] * rest, level[held] - float(self.prior[h])
                )
                sums[:, h] += _sum_by_type(full, lost)
        n = np.where(documents > 0, documents, np.nan)
        contribution, deletion = (
            w[:n_types] * (received[:n_types] / n)[:, None],
            sums[:n_types] / n[:, None],
        )
        means = {"attention": relative / n, "contribution": contribution, "deletion": deletion}
        return {"documents": documents} | means
