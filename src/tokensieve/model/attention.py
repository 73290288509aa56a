"""The model: softmax attention over trained token embeddings, in its exact count form.

With c_{X,s} = how often type s occurs in document X, **score** u = E p and **value** w = E v (Wu,
Shevchenko, Oymak, Mondelli, NeurIPS 2025, section 3, rewritten per token type):

    q_{X,s} = c_{X,s} e^{u_s} / Σ_r c_{X,r} e^{u_r}          f_X = Σ_s q_{X,s} w_s
    g_X = ∂ℓ/∂f = −y σ(−y f_X)                               ℓ = log(1 + e^{−y f})
    b_s = ∂L/∂w_s = mean_X g_X q_{X,s}
    a_s = ∂L/∂u_s = mean_X g_X q_{X,s} (w_s − f_X)

With **scores** as labels f_X is the predicted score, ℓ = (f_X − label)²/2 and g_X = f_X − label.

With K classes the values are w ∈ R^{|S|×K}, f_X ∈ R^K, ℓ the cross-entropy of softmax(f_X), g_X =
softmax(f_X) − 1[y], and a_s sums g_{X,k} q_{X,s} (w_{s,k} − f_{X,k}) over k. A document without any
known token has q = ∅ and f = 0.

A **sink** is one more type that occurs once in every document. Its score is trained; its value is
the prior, the logit of the class frequencies. The fewer and weaker a document's tokens, the more
attention it takes; a document without a known token gets the prior as its logit. If a function
takes one number more than there are types, the last is the sink's.

w_s − f_X is never formed as such: with t the type of largest attention in X and D_s = w_s − w_t, it
is D_s − Σ_{r≠t} q_r D_r, which keeps full relative precision for the selected type when q_t is near
one.

Shapes are written with n documents, |S| token types, K classes and H outputs: one output for two
classes and for scores, else one per class. A **logit** (decision value) is an f_X.

Everything here is plain NumPy over the stored entries of the count matrix, in one thread and one
order, so results are bit-identical. (Compiled kernels on two threads were not faster, and took
seconds to compile.)
"""

from __future__ import annotations

import math
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

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

# 2 MB an array, which stays in the cache: half the time of the 32 MB of a block
CACHED_ENTRIES = ENTRIES_PER_BLOCK // 16


class TextPiece(NamedTuple):
    """A part of a text, and what it contributes to the logit (`Model.pieces`)."""

    text: str
    contribution: float
    attention: float
    value: float


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
    """Sums and maxima over the stored entries of each document, and the way back to entries."""

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
    """Attention q_{X,s} of every stored entry, in its order, shape (nnz,); each document sums to 1.

    Entries at the positions `without` are left out of the softmax; they, and what remains of an
    emptied document, get 0.
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
    """Position of each document's entry of largest attention, shape (n,); 0 where there is none.

    Of equal entries it is the first.
    """
    documents = _Entries(matrix.indptr)
    is_largest = q == documents.spread(documents.reduce(np.maximum, q))
    positions = np.flatnonzero(is_largest)[::-1]  # the first of equals is written last
    top = np.zeros(matrix.shape[0], dtype=np.int64)
    document_of = np.searchsorted(matrix.indptr, positions, side="right") - 1
    top[document_of] = positions
    return top


def _above_logit(matrix: sp.csr_array, q: Floats, w: Floats) -> Floats:
    """w_s − f_X at every stored entry, shape (nnz,), for one output.

    It is formed relative to the type of largest attention q.
    """
    if not len(q):
        return np.zeros(0)
    documents = _Entries(matrix.indptr)
    out: Floats = w[matrix.indices]
    out -= documents.spread(out[_largest(matrix, q)])
    out -= documents.spread(documents.sum(q * out))
    return out


def logits(matrix: sp.csr_array, u: Floats, w: Floats) -> Floats:
    """Decision values f_X = Σ_s q_{X,s} w_s, shape (n, H).

    Args:
        matrix: counts of n documents, CSR (n, |S|).
        u: scores, shape (|S|,); with one more number, the last is the sink's.
        w: values, shape (|S|,) or (|S|, H), or with one more row likewise.
    """
    w = _as_outputs(w)

    def of_rows(rows: slice) -> Floats:
        part = matrix[rows]
        if len(u) > part.shape[1]:
            part = with_sink(part)
        return np.asarray(_with_entries(part, attention(part, u)) @ w)

    blocks = list(row_blocks(matrix.indptr, CACHED_ENTRIES))
    if len(blocks) < 2:
        return of_rows(slice(None))
    with ThreadPoolExecutor(n_threads()) as pool:
        return np.concatenate(list(pool.map(of_rows, blocks)))


def with_sink(matrix: sp.csr_array) -> sp.csr_array:
    """The counts with one more type, once in every document, shape (n, |S|+1)."""
    n, n_types = matrix.shape
    row_ends = matrix.indptr[1:]
    indptr = matrix.indptr + np.arange(n + 1, dtype=matrix.indptr.dtype)
    indices = np.insert(matrix.indices, row_ends, n_types)
    data = np.insert(matrix.data, row_ends, 1.0)
    return sp.csr_array((data, indices, indptr), shape=(n, n_types + 1))


def loss_and_slope(f: Floats, labels: Ints | Floats) -> tuple[Floats, Floats]:
    """ℓ of each document, shape (n,), and g = ∂ℓ/∂f, shape (n, H).

    H = 1: ℓ = log(1 + e^{−y f}), y = ±1 for label 1 / 0.  H = K: cross-entropy of softmax(f).
    Of labels that are floating-point numbers, which are scores: ℓ = (f − label)²/2.
    """
    if np.issubdtype(labels.dtype, np.floating):
        residuals = f - labels[:, None]
        return residuals[:, 0] ** 2 / 2, residuals
    if f.shape[1] == 1:
        y = np.where(labels == 1, 1.0, -1.0)
        margin = y * f[:, 0]
        loss = np.logaddexp(0.0, -margin)
        g = -y * np.exp(-margin - loss)
        return loss, g[:, None]
    rows = np.arange(len(f))
    index = labels.astype(np.int64, copy=False)
    below_largest = f - f.max(axis=1, keepdims=True)
    exponentials = np.exp(below_largest)
    total = exponentials.sum(axis=1)
    loss = np.log(total) - below_largest[rows, index]
    g = exponentials / total[:, None]
    g[rows, index] = 0.0
    g[rows, index] = -g.sum(axis=1)  # softmax − 1 would cancel where the prediction is certain
    return loss, g


def _pair_loss_and_slope(f: Floats) -> tuple[Floats, Floats]:
    """ℓ of each pair, rows 2i (preferred) and 2i + 1 of f, (n/2,), and ∂ℓ/∂f, shape (n, 1)."""
    always_first = np.ones(len(f) // 2, dtype=np.int64)
    loss, slope = loss_and_slope(f[::2] - f[1::2], always_first)
    return loss, np.column_stack([slope, -slope]).reshape(-1, 1)


def gradient(counts: Counts, u: Floats, w: Floats, pairs: bool = False) -> Gradient:
    """The exact full-batch gradient in O(nonzeros of the count matrix · H).

    ∇_E L = a pᵀ + b vᵀ, ∇_p L = Eᵀ a and ∇_v L = Eᵀ b follow from it (the module's formulas).

    With `pairs` it is that of preferences (Bradley & Terry 1952), and the loss is the mean over
    pairs. Pair i is two documents, A (preferred) and B, rows 2i and 2i + 1. With m = f_A − f_B

        P(A preferred to B) = σ(m)        ℓ = log(1 + e^{−m})        ∂ℓ/∂f_A = −σ(−m) = −∂ℓ/∂f_B

    so that scores and values get the gradients of both documents, with opposite g. Decision values
    are determined up to a constant, which the sink's value, 0, fixes. Attention is a mean and
    ignores length, but judges do not: with the sink, a longer answer gets more attention. Swapping
    A and B changes only the sign of m, so the order is not randomised.

    Args:
        counts: n documents with labels.
        u: scores, shape (|S|,).
        w: values, shape (|S|,) or (|S|, 1) for two classes or pairs, else (|S|, K).
        pairs: whether rows 2i (preferred) and 2i + 1 are a pair.
    """
    matrix = counts.matrix
    w = _as_outputs(w)
    documents = _Entries(matrix.indptr)
    q = attention(matrix, u)
    weighted = _with_entries(matrix, q)
    f = np.asarray(weighted @ w)
    loss, g = _pair_loss_and_slope(f) if pairs else loss_and_slope(f, counts.targets)
    g /= len(loss)
    slopes = np.zeros(len(q))
    for h in range(w.shape[1]):
        slopes += documents.spread(g[:, h]) * _above_logit(matrix, q, w[:, h])
    a = _sum_by_type(matrix, q * slopes)
    b = np.asarray(weighted.T @ g)
    return Gradient(float(np.mean(loss)), a, b, f)


def _sum_by_type(matrix: sp.csr_array, entries: Floats) -> Floats:
    """Σ over documents of numbers that belong to the stored entries, in their order, (|S|,)."""
    return np.asarray(np.bincount(matrix.indices, entries, matrix.shape[1]), dtype=np.float64)


def _with_entries(matrix: sp.csr_array, entries: Floats) -> sp.csr_array:
    """The same matrix with other numbers at its stored entries."""
    return sp.csr_array((entries, matrix.indices, matrix.indptr), shape=matrix.shape)


def _as_outputs(w: Floats) -> Floats:
    """Values of one output as a column, shape (|S|, H)."""
    w = np.ascontiguousarray(w, dtype=np.float64)
    return w[:, None] if w.ndim == 1 else w


def attention_sums(matrix: sp.csr_array, u: Floats) -> Floats:
    """Sums over documents of attention, of uniform attention and of their ratio, shape (3, |S|).

    Attention q_{X,s} is that among the tokens, without the sink; uniform attention is c_{X,s}/T_X.
    """
    sums = np.zeros((3, matrix.shape[1]))
    for _, block in matrix_blocks(matrix):
        documents = _Entries(block.indptr)
        q = attention(block, u)
        uniform = block.data / documents.spread(documents.sum(block.data))
        sums[0] += _sum_by_type(block, q)
        sums[1] += _sum_by_type(block, uniform)
        sums[2] += _sum_by_type(block, q / uniform)
    return sums


def decide(f: Floats) -> Ints:
    """Index of the predicted class, shape (n,); f of shape (n, H), or (n,) for two classes."""
    if f.ndim == 2 and f.shape[1] > 1:
        return np.asarray(np.argmax(f, axis=1))
    return (f.reshape(len(f)) > 0).astype(np.int64)


def probabilities(f: Floats) -> Floats:
    """Class probabilities, shape (n, K): logistic for one head (shape (n,) or (n, 1)), or
    softmax."""
    return np.exp(log_probabilities(f))


def log_probabilities(f: Floats) -> Floats:
    """Logarithms of the class probabilities, shape (n, K); f as of `probabilities`."""
    if f.ndim == 2 and f.shape[1] > 1:
        return np.asarray(f - np.logaddexp.reduce(f, axis=1, keepdims=True))
    f = f.reshape(len(f))
    return np.asarray(-np.logaddexp(0.0, np.column_stack([f, -f])))


def per_class(x: Floats) -> Floats:
    """One column per class, shape (m, K): [−x, x] for one head, x itself for K heads."""
    return np.hstack([-x, x]) if x.shape[1] == 1 else x


def accuracy(f: Floats, labels: Ints) -> float:
    """Fraction of documents predicted correctly, from 0 to 1; nan without documents.

    Args:
        f: decision values, shape (n,) or (n, 1) for two classes, (n, K) for K.
        labels: the number of each document's class, shape (n,).
    """
    return float(np.mean(decide(f) == labels)) if len(labels) else math.nan


@dataclass(frozen=True)
class Model:
    """Softmax attention over token types; its predictions are exact sums over tokens.

    Attributes:
        classes: the K labels, sorted, shape (K,).
        scores: u, shape (|S|,).
        values: w, shape (|S|, 1) for two classes (of the second), (|S|, K) otherwise.
        prior: logit of a document without a known token, shape (1,) or (K,).
        tokens: the |S| token types as text.
        vocabulary: how text becomes counts; None for a model of counts.
        steps: training steps taken.
        score_rate: initial step size of the scores that held-out documents chose; None after
            loading.
        strength, scale: what they chose for the initial values and for the final ones
            (`tokensieve.model.choice`); both are 1 after loading.
        validation: (steps, mean loss) on held-out documents, shape (checks, 2).
        sink: score of the sink (its value is the prior); None for a model without a sink.
        settings: parameters of `AttentionClassifier` that train the same model again from the same
            counts.
        pairs: whether it was trained on pairs; then only differences of decision values are
            meaningful.
        predicts_scores: whether it was trained on scores; a decision value is then the predicted
            score, and `classes` say whether that is above the mean, which is the prior.
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
    strength: float = 1.0
    scale: float = 1.0
    predicts_scores: bool = False

    def count(self, texts: Any) -> tuple[sp.csr_array, Ints]:
        """Counts of texts, shape (n, |S|), and the unknown words of each, shape (n,)."""
        assert self.vocabulary is not None
        return self.vocabulary.read(texts)

    def logits(self, matrix: sp.csr_array) -> Floats:
        """Decision values f of counts, shape (n, H); the prior for one without a known token."""
        f = logits(matrix, *self.table)
        f[np.diff(matrix.indptr) == 0] = self.prior  # which the sink gives up to rounding
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
        """Predict the class of each document.

        Args:
            matrix, unknown: as `count` returns them.

        Returns:
            A row per document: class, its probability, answer (the logit of the second of two
            classes, or of that class) and unknown_words.
        """
        f = self.logits(matrix)
        rows = np.arange(len(f))
        best = decide(f)
        logit = f[:, 0] if f.shape[1] == 1 else f[rows, best]
        return pl.DataFrame(
            {
                "class": pl.Series(self.classes.tolist()).gather(best),
                "probability": probabilities(f)[rows, best],
                "answer": logit,
                "unknown_words": unknown,
            }
        )

    def pair_predictions(
        self, first: pl.Series, second: pl.Series, names: tuple[str, str]
    ) -> pl.DataFrame:
        """Predict which text of each pair is preferred.

        Returns:
            A row per pair: preferred (one of the names), probability (of the first), answer
            (f_first − f_second) and unknown_words; the first three are null where a side is empty.
        """
        first_counts, first_unknown = self.count(first)
        second_counts, second_unknown = self.count(second)
        m = (self.logits(first_counts) - self.logits(second_counts))[:, 0]
        has_both = pl.Series(
            [bool(a.strip() and b.strip()) for a, b in zip(first, second, strict=True)],
            dtype=pl.Boolean,
        )
        is_second_preferred = (m < 0).astype(np.int64)
        frame = pl.DataFrame(
            {
                "preferred": pl.Series(list(names), dtype=pl.String).gather(is_second_preferred),
                "probability": expit(m),
                "answer": m,
                "unknown_words": first_unknown + second_unknown,
            }
        )
        predicted = ("preferred", "probability", "answer")
        return frame.with_columns(
            pl.when(has_both).then(pl.col(name)).alias(name) for name in predicted
        )

    def contributions(self, matrix: sp.csr_array) -> list[pl.DataFrame]:
        """The part of each document's logit that each of its token types adds, for one output.

        Returns:
            A frame per document, the largest contribution first: type, attention q_s (with the
            sink) and contribution q_s (w_s − prior), which add up to f − prior.
        """
        full = matrix if self.sink is None else with_sink(matrix)
        q = attention(full, self.table[0])
        frames = []
        for start, end in pairwise(full.indptr):
            types = full.indices[start:end]
            is_token = types < matrix.shape[1]
            types = types[is_token]
            share = q[start:end][is_token]
            part = share * (self.values[types, 0] - self.prior[0])
            order = np.argsort(-np.abs(part), kind="stable")
            frames.append(
                pl.DataFrame(
                    {
                        "type": types[order].astype(np.int64),
                        "attention": share[order],
                        "contribution": part[order],
                    }
                )
            )
        return frames

    def pieces(self, text: str, k: int = 1, row: sp.csr_array | None = None) -> list[TextPiece]:
        """Split a text into pieces, in order; joined, they are the text.

        Each occurrence of a type gets q_s/c_s of the attention, divided equally among the words of
        an n-gram. Attention adds up to one and contributions to the logit f, except for what the
        sink and formatting take. Text between tokens and unknown words get zero.

        Args:
            text: any text.
            k: index of the class whose logit is explained.
            row: the text's counts over the |S| types, CSR (1, |S|); counted here if None.
        """
        assert self.vocabulary is not None
        tokenizer = self.vocabulary.tokenizer
        types = self.vocabulary.positions(TokenStream.of(text_series([text]), tokenizer))
        if row is None:
            row = self.vocabulary.read([text])[0]
        values = per_class(self.values)[:, k]
        q, contribution = self._by_token(types, row, values)
        value = np.where(types[:, 0] >= 0, values[types[:, 0]], 0.0)

        pieces: list[TextPiece] = []
        done = 0
        for i, (start, end, _) in enumerate(tokenizer.spans(text)):
            if start > done:
                pieces.append(TextPiece(text[done:start], 0.0, 0.0, 0.0))
            numbers = float(contribution[i]), float(q[i]), float(value[i])
            pieces.append(TextPiece(text[max(start, done) : end], *numbers))
            done = max(done, end)
        if done < len(text):
            pieces.append(TextPiece(text[done:], 0.0, 0.0, 0.0))
        return pieces

    def _by_token(
        self, types: NDArray[np.int32], row: sp.csr_array, values: Floats
    ) -> tuple[Floats, Floats]:
        """Attention and contribution of each token of a text, shapes (tokens,).

        Args:
            types: type of the n-gram of each length that ends at each token (`positions`).
            row: counts of the text.
            values: value of each type for one class, shape (|S|,).
        """
        full_row = row if self.sink is None else with_sink(row)
        u, _ = self.table
        share = np.zeros(len(self.scores))
        share[row.indices] = attention(full_row, u)[: row.nnz] / row.data
        q = np.zeros(len(types))
        contribution = np.zeros(len(types))
        for level in range(types.shape[1]):
            ends = np.flatnonzero(types[:, level] >= 0)
            ngrams = types[ends, level]
            share_of_word = share[ngrams] / (level + 1)
            for back in range(level + 1):
                np.add.at(q, ends - back, share_of_word)
                np.add.at(contribution, ends - back, share_of_word * values[ngrams])
        return q, contribution

    def effects(self, matrix: sp.csr_array) -> dict[str, Floats]:
        """Two exact measures of the effect of each token on the logits f_X = Σ_r q_{X,r} w_r.

        Both are means over the documents X ∋ s:

            contribution_s = mean q_{X,s} w_s         the token's term of the sum
            deletion_s     = mean (f_X − f_{X∖s})     how much the logit drops when every s is
                                                      deleted from X (leave-one-out)

            f_{X∖s} = (f_X − q_s w_s) / (1 − q_s)     the prior if X contains no other type
            f_X − f_{X∖s} = q_s Σ_{r≠s} q_r (w_s − w_r) / Σ_{r≠s} q_r = q_s (w_s − f_X) / (1 − q_s)

        The second is occlusion (Li, Monroe, Jurafsky 2016, arXiv:1612.08220), without predicting
        any document again. The contributions in a document add up to its logit; deletions do not.
        It takes O(nonzeros · H).

        Returns:
            A dictionary of arrays. `documents`: how many contain each type, shape (|S|,).
            `attention`: mean q_{X,s} / (c_{X,s}/T_X), attention among the tokens (without the
            sink's) in units of that of uniform attention, shape (|S|,). `contribution` and
            `deletion`: shape (|S|, H). The means are NaN for a type that occurs in no document.
        """
        n_types = matrix.shape[1]
        u, w = self.table
        documents = np.zeros(n_types, dtype=np.int64)
        received = np.zeros(len(w))
        lost = np.zeros(w.shape)
        for _, block in matrix_blocks(matrix):
            documents += np.bincount(block.indices, minlength=n_types)
            full = block if self.sink is None else with_sink(block)
            q = attention(full, u)
            received += _sum_by_type(full, q)
            lost += self._deletions(full, q)
        n = np.where(documents > 0, documents, np.nan)
        return {
            "documents": documents,
            "attention": attention_sums(matrix, self.scores)[2] / n,
            "contribution": w[:n_types] * (received[:n_types] / n)[:, None],
            "deletion": lost[:n_types] / n[:, None],
        }

    def _deletions(self, matrix: sp.csr_array, q: Floats) -> Floats:
        """Σ over documents of f_X − f_{X∖s} for every type s (with the sink), shape (|S|+1, H).

        1 − q_s is never formed where q_s is near one: with t the type of largest attention in X and
        p the attention in X∖t (its own softmax), the loss without t is q_t Σ_r p_r (w_t − w_r).
        Every other type has q_s ≤ 1/2, and w_s − f_X is taken relative to w_t.
        """
        scores, w = self.table
        entries = _Entries(matrix.indptr)
        is_filled = entries.sizes > 0
        top = _largest(matrix, q)[is_filled]
        q_without_top = attention(matrix, scores, without=top)
        q_of_others = q.copy()
        q_of_others[top] = 0.0
        sums = np.zeros(w.shape)
        for h, value in enumerate(w.T):
            top_value = value[matrix.indices[top]]
            below_top = value[matrix.indices] - np.repeat(top_value, entries.sizes[is_filled])
            remaining = entries.sum(q_without_top * below_top)[is_filled]
            lost = q * _above_logit(matrix, q, value)
            lost /= 1.0 - q_of_others
            lost[top] = np.where(
                entries.sizes[is_filled] > 1,
                -q[top] * remaining,
                top_value - float(self.prior[h]),
            )
            sums[:, h] = _sum_by_type(matrix, lost)
        return sums
