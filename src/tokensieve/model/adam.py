"""Adam's rule, and the two-numbers-per-type table (u, w) trained by it on minibatches.

    m ← m + (1 − β₁)(g − m)        r ← β₂ r + (1 − β₂) g²        x ← x − η/(1 − β₁ᵗ) · m / (√r / √(1 − β₂ᵗ) + ε)

with β = (0.9, 0.999), ε = 1e-8 (Kingma & Ba 2015, ordered as PyTorch does it). Of the table only the types of a batch are touched
at each step (their moments do not decay in between), so an epoch costs O(nonzeros of the count matrix); its step sizes fall
linearly to zero. One thread and one order of documents: the same seed gives the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from tokensieve.text.counts import Counts, Floats, Ints

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8
CONSTANTS = (1 - BETA1, BETA2, 1 - BETA2, EPSILON)


@dataclass(frozen=True)
class Schedule:
    """How the table is trained.

    Attributes:
        steps: length of the schedule; step t of it uses the rates times 1 − t / steps.
        batch_size: documents per step.
        score_rate: initial step size for u.
        value_rate: initial step size for w.
        seed: order of the documents.
        pairs: whether what a step takes is a pair, documents 2k (preferred) and 2k + 1 (`tokensieve.model.pairs`).
    """

    steps: int
    batch_size: int = 64
    score_rate: float = 0.01
    value_rate: float = 0.1
    seed: int = 0
    pairs: bool = False


def corrections(t: Any) -> tuple[Any, Any]:
    """1/(1 − β₁ᵗ) and 1/√(1 − β₂ᵗ) for the t-th step, from 1 (or an array of steps)."""
    return 1 / (1 - BETA1**t), 1 / np.sqrt(1 - BETA2**t)


@numba.njit(cache=True)
def adam_step(g: Any, m: Any, r: Any, rate: Any, root: Any, constants: Any) -> Any:
    """New m, new r, and what to take off x; of numbers when compiled, of arrays by `adam_step.py_func`.

    Args:
        g: gradient.
        m, r: first and second moments.
        rate: η/(1 − β₁ᵗ).
        root: 1/√(1 − β₂ᵗ).
        constants: `CONSTANTS` in the type of the arithmetic.
    """
    new1, kept2, new2, epsilon = constants
    m = m + new1 * (g - m)
    r = kept2 * r + new2 * g * g
    return m, r, rate * m / (np.sqrt(r) * root + epsilon)


def train(
    counts: Counts, u: Floats, w: Floats, schedule: Schedule, pause: int, rows: Ints | None = None
) -> Iterator[tuple[int, Floats, Floats]]:
    """Train from (u, w); yield (steps done, u, w) every `pause` steps, always the same two arrays, updated in place.

    Args:
        counts: n documents with labels, and weights of mean 1, if any; of pairs none has one.
        u: initial scores, shape (|S|,); with one more, the sink's, which is in every document once.
        w: initial values, shape (|S|, 1) for two classes or (|S|, K), likewise; the sink's stay as they are.
        schedule: the settings.
        pause: steps between two yields; the schedule's end yields too.
        rows: the documents (or pairs) to train on (None: all). They are read where they lie, so that counts in files stay there.
    """
    m = counts.matrix
    rows = np.arange(counts.n_documents // (1 + schedule.pairs)) if rows is None else rows
    indptr, longest = m.indptr.astype(np.int64), int(np.diff(m.indptr).max(initial=1))  # one type, so one compilation
    u, w = u.copy(), w.copy()
    sink = m.shape[1] if len(u) > m.shape[1] else -1
    table: tuple[Any, ...] = (u, w, *(np.zeros_like(x) for x in (u, u, w, w, u, w)))
    table += np.empty(2 * longest), np.empty((4, w.shape[1])), np.empty(len(u), np.int64), np.zeros(len(u), np.bool_)
    weights = np.ones(counts.n_documents) if counts.weights is None else counts.weights
    rng = np.random.default_rng(schedule.seed)
    per_step = min(schedule.batch_size, len(rows))
    queue = np.empty(0, dtype=np.int64)
    for start in range(0, schedule.steps, pause):
        steps = np.arange(start, min(start + pause, schedule.steps))
        while len(queue) < len(steps) * per_step:
            queue = np.concatenate([queue, rng.permutation(rows)])
        order, queue = queue[: len(steps) * per_step], queue[len(steps) * per_step :]
        rate, root = corrections(steps + 1.0)
        rates = np.outer(rate * (1 - steps / schedule.steps), [schedule.score_rate, schedule.value_rate])
        batches = order.reshape(-1, per_step)
        _adam(indptr, m.indices, m.data, counts.labels, weights, batches, rates, root, sink, schedule.pairs, *table)
        yield int(steps[-1]) + 1, u, w


@numba.njit(cache=True, error_model="numpy")
def _adam(
    indptr: Any, indices: Any, data: Any, labels: Any, weights: Any, batches: Any, rates: Any, roots: Any, sink: int, pairs: bool,
    u: Any, w: Any, mu: Any, ru: Any, mw: Any, rw: Any, gu: Any, gw: Any, q: Any, fg: Any, touched: Any, marked: Any,
) -> None:  # fmt: skip
    """A step of Adam on (u, w), in place, for each row of `batches`; gu, gw and marked are zero before and after."""
    size = batches.shape[1]
    for step in range(batches.shape[0]):
        n_touched = 0
        if sink >= 0:
            touched[0], n_touched = sink, 1
        for j in range(size):
            k = batches[step, j]
            first, last = (indptr[2 * k], indptr[2 * k + 2]) if pairs else (indptr[k], indptr[k + 1])
            if pairs:
                _pair(k, indptr, indices, data, sink, u, w, q, fg, gu, gw)
            elif first < last:
                _document(first, last, indices, data, labels[k], weights[k], sink, u, w, q, fg, gu, gw)
            for i in range(first, last):
                s = indices[i]
                if not marked[s]:
                    marked[s] = True
                    touched[n_touched] = s
                    n_touched += 1
        score_rate, value_rate, root = rates[step, 0], rates[step, 1], roots[step]
        for i in range(n_touched):
            s = touched[i]
            marked[s] = False
            mu[s], ru[s], change = adam_step(gu[s] / size, mu[s], ru[s], score_rate, root, CONSTANTS)
            u[s] -= change
            gu[s] = 0.0
            for h in range(w.shape[1]):
                mw[s, h], rw[s, h], change = adam_step(gw[s, h] / size, mw[s, h], rw[s, h], value_rate, root, CONSTANTS)
                w[s, h] -= change
                gw[s, h] = 0.0


@numba.njit(cache=True, error_model="numpy")
def _document(
    first: int, last: int, indices: Any, data: Any, label: int, weight: float, sink: int,
    u: Any, w: Any, q: Any, fg: Any, gu: Any, gw: Any,
) -> None:  # fmt: skip
    """Add the gradient of one document, entries first … last − 1 and the sink, times its weight to gu, gw
    (tokensieve.model.attention)."""
    heads = w.shape[1]
    top, drained = _read(first, last, indices, data, sink, u, w, q, fg[0])
    if heads == 1:
        y = 1.0 if label == 1 else -1.0
        fg[1, 0] = -y / (1.0 + math.exp(y * (fg[0, 0] + w[top, 0])))
    else:
        largest, total = -math.inf, 0.0
        for h in range(heads):
            largest = max(largest, fg[0, h] + w[top, h])
        for h in range(heads):
            fg[1, h] = math.exp(fg[0, h] + w[top, h] - largest)
            total += fg[1, h]
        for h in range(heads):
            fg[1, h] /= total
        fg[1, label] -= 1.0
    for h in range(heads):
        fg[1, h] *= weight
    _learn(first, last, indices, sink, w, q, fg[0], fg[1], top, drained, gu, gw)


@numba.njit(cache=True, error_model="numpy")
def _pair(
    k: int, indptr: Any, indices: Any, data: Any, sink: int, u: Any, w: Any, q: Any, fg: Any, gu: Any, gw: Any
) -> None:
    """Add the gradient of pair k, documents 2k (preferred) and 2k + 1, each with the sink, to gu, gw (tokensieve.model.pairs)."""
    first, middle, last = indptr[2 * k], indptr[2 * k + 1], indptr[2 * k + 2]
    m = middle - first
    top, drained = _read(first, middle, indices, data, sink, u, w, q[:m], fg[0])
    other, poured = _read(middle, last, indices, data, sink, u, w, q[m:], fg[2])
    margin = (fg[0, 0] + w[top, 0]) - (fg[2, 0] + w[other, 0])
    fg[1, 0] = -1.0 / (1.0 + math.exp(margin))
    fg[3, 0] = -fg[1, 0]
    _learn(first, middle, indices, sink, w, q[:m], fg[0], fg[1], top, drained, gu, gw)
    _learn(middle, last, indices, sink, w, q[m:], fg[2], fg[3], other, poured, gu, gw)


@numba.njit(cache=True, error_model="numpy")
def _read(first: int, last: int, indices: Any, data: Any, sink: int, u: Any, w: Any, q: Any, f: Any) -> Any:
    """Attention into q, and f less the value of the type of largest attention into f; that type, and the sink's attention."""
    heads, most, total = w.shape[1], 0.0, 0.0
    top = sink if sink >= 0 else indices[first]
    for i in range(first, last):
        if u[indices[i]] > u[top]:
            top = indices[i]
    peak = u[top]
    if sink >= 0:
        most = math.exp(u[sink] - peak)
        total, top = most, sink
    drained = most
    for i in range(first, last):
        s = indices[i]
        mass = data[i] * math.exp(u[s] - peak)
        q[i - first] = mass
        total += mass
        if mass > most:
            top, most = s, mass
    drained /= total
    for h in range(heads):
        f[h] = drained * (w[sink, h] - w[top, h])
    for i in range(last - first):
        q[i] /= total
        for h in range(heads):
            f[h] += q[i] * (w[indices[first + i], h] - w[top, h])
    return top, drained


@numba.njit(cache=True, error_model="numpy")
def _learn(
    first: int, last: int, indices: Any, sink: int, w: Any, q: Any, f: Any, g: Any, top: int, drained: float, gu: Any, gw: Any
) -> None:  # fmt: skip
    """Add g times the derivatives of f to gu, gw; what `_read` found, and g = ∂ℓ/∂f."""
    heads = w.shape[1]
    for i in range(last - first):
        s, slope = indices[first + i], 0.0
        for h in range(heads):
            slope += g[h] * ((w[s, h] - w[top, h]) - f[h])
            gw[s, h] += g[h] * q[i]
        gu[s] += slope * q[i]
    for h in range(heads):
        gu[sink] += drained * g[h] * ((w[sink, h] - w[top, h]) - f[h])
