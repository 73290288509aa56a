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

import numba
import numpy as np
from numpy.typing import NDArray

from tokensieve.arrays import Floats, Ints
from tokensieve.text.counts import Counts

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8
CONSTANTS = (1 - BETA1, BETA2, 1 - BETA2, EPSILON)
_HALVINGS, _TAYLOR = (
    0.5 ** np.arange(1100.0),
    tuple(1 / math.factorial(k) for k in range(13, -1, -1)),
)


@dataclass(frozen=True)
class Schedule:
    """How the table is trained.

    Attributes:
        steps: length of the schedule; step t of it uses the rates times 1 − t / steps.
        batch_size: documents per step.
        score_rate: initial step size for u.
        value_rate: initial step size for w.
        seed: order of the documents.
        pairs: whether a step takes pairs, documents 2k (preferred) and 2k + 1 (`tokensieve.model.attention`).
    """

    steps: int
    batch_size: int = 64
    score_rate: float = 0.01
    value_rate: float = 0.1
    seed: int = 0
    pairs: bool = False


@numba.njit(cache=True)
def adam_step(
    g: Floats,
    m: Floats,
    r: Floats,
    rate: Floats | float,
    root: Floats | float,
    constants: tuple[float, ...],
) -> tuple[Floats, Floats, Floats]:
    """The new moments m and r, and the amount to subtract from x: for numbers when compiled, for arrays through
    `adam_step.py_func`. g is the gradient, `rate` η/(1 − β₁ᵗ), `root` 1/√(1 − β₂ᵗ), and `constants` are `CONSTANTS` in the
    precision of the arithmetic."""
    new1, kept2, new2, epsilon = constants
    m = m + new1 * (g - m)
    r = kept2 * r + new2 * g * g
    return m, r, rate * m / (np.sqrt(r) * root + epsilon)


def train(
    counts: Counts, u: Floats, w: Floats, schedule: Schedule, pause: int, rows: Ints | None = None
) -> Iterator[tuple[int, Floats, Floats]]:
    """Train from (u, w); yield (steps done, u, w) every `pause` steps, each time as new arrays.

    Args:
        counts: n documents with labels, and weights of mean 1, if any; the two documents of a pair have the same.
        u: initial scores, shape (|S|,); with one more, the sink's, which is in every document once.
        w: initial values, shape (|S|, 1) for two classes or (|S|, K), likewise; the sink's stay as they are.
        schedule: the settings.
        pause: steps between two yields; the schedule's end yields too.
        rows: the documents (or pairs) to train on (None: all). They are read where they lie, so that counts in files stay there.
    """
    m = counts.matrix
    rows = np.arange(counts.n_documents // (1 + schedule.pairs)) if rows is None else rows
    indptr, labels = (
        m.indptr.astype(np.int64),
        counts.labels.copy(),
    )  # one type and writable, so one compilation
    sink = m.shape[1] if len(u) > m.shape[1] else -1
    table, longest = _packed(u, w), int(np.diff(m.indptr).max(initial=1))
    room = (
        np.empty(2 * longest),
        np.empty((4, w.shape[1])),
        np.empty(len(u), np.int64),
        np.zeros(len(u), np.bool_),
    )
    weights = np.ones(counts.n_documents) if counts.weights is None else counts.weights
    rng = np.random.default_rng(schedule.seed)
    per_step = min(schedule.batch_size, len(rows))
    queue = np.empty(0, dtype=np.int64)
    for start in range(0, schedule.steps, pause):
        steps = np.arange(start, min(start + pause, schedule.steps))
        while len(queue) < len(steps) * per_step:
            queue = np.concatenate([queue, rng.permutation(rows)])
        order, queue = queue[: len(steps) * per_step], queue[len(steps) * per_step :]
        t = steps + 1.0
        rate, root = 1 / (1 - BETA1**t), 1 / np.sqrt(1 - BETA2**t)
        rates = np.outer(
            rate * (1 - steps / schedule.steps), [schedule.score_rate, schedule.value_rate]
        )
        batches = order.reshape(-1, per_step)
        _adam(
            indptr,
            m.indices,
            m.data,
            labels,
            weights,
            batches,
            rates,
            root,
            sink,
            schedule.pairs or None,
            table,
            *room,
        )
        yield int(steps[-1]) + 1, table[:, 0].copy(), table[:, 4::4].copy()


def _packed(u: Floats, w: Floats) -> Floats:
    """Everything that training stores about a type, in one row: u with its moments and gradient, then each w with its own. With two
    classes, a row is one cache line (64 bytes, aligned), so a type costs one memory access instead of eight."""
    columns = 4 * (1 + w.shape[1])
    memory = np.zeros(len(u) * columns + 8)
    first = (-memory.ctypes.data // 8) % 8
    table = memory[first : first + len(u) * columns].reshape(len(u), columns)
    table[:, 0], table[:, 4::4] = u, w
    return table


@numba.njit(cache=True, error_model="numpy", nogil=True)
def _adam(
    indptr: Ints,
    indices: Ints,
    data: Floats,
    labels: Ints,
    weights: Floats,
    batches: Ints,
    rates: Floats,
    roots: Floats,
    sink: int,
    pairs: bool | None,  # None rather than False: what is for pairs is not compiled
    table: Floats,
    q: Floats,
    fg: Floats,
    touched: Ints,
    marked: NDArray[np.bool_],
) -> None:
    """A step of Adam on the table, in place, for each row of `batches`; its gradients and `marked` are zero before and after."""
    size = batches.shape[1]
    for step in range(batches.shape[0]):
        n_touched = 0
        if sink >= 0:
            touched[0], n_touched = sink, 1
        for j in range(size):
            k = batches[step, j]
            if pairs is None:
                first, last = indptr[k], indptr[k + 1]
                if first < last:
                    _document(
                        indices[first:last],
                        data[first:last],
                        labels[k],
                        weights[k],
                        sink,
                        table,
                        q,
                        fg,
                    )
            else:
                first, middle, last = indptr[2 * k], indptr[2 * k + 1], indptr[2 * k + 2]
                _pair(
                    middle - first,
                    indices[first:last],
                    data[first:last],
                    weights[2 * k],
                    sink,
                    table,
                    q,
                    fg,
                )
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
            for at in range(0, table.shape[1], 4):
                rate = value_rate if at else score_rate
                g, m, r = table[s, at + 3] / size, table[s, at + 1], table[s, at + 2]
                table[s, at + 1], table[s, at + 2], change = adam_step(
                    g, m, r, rate, root, CONSTANTS
                )
                table[s, at] -= change
                table[s, at + 3] = 0.0


@numba.njit(error_model="numpy")
def _document(
    types: Ints,
    data: Floats,
    label: int,
    weight: float,
    sink: int,
    table: Floats,
    q: Floats,
    fg: Floats,
) -> None:
    """Add the gradient of one document and the sink, times its weight (tokensieve.model.attention)."""
    heads = table.shape[1] // 4 - 1
    top, drained = _read(types, data, sink, table, q, fg[0])
    if heads == 1:
        y = 1.0 if label == 1 else -1.0
        fg[1, 0] = -y / (1.0 + math.exp(y * (fg[0, 0] + table[top, 4])))
    else:
        largest, total = -math.inf, 0.0
        for h in range(heads):
            largest = max(largest, fg[0, h] + table[top, 4 * h + 4])
        for h in range(heads):
            fg[1, h] = math.exp(fg[0, h] + table[top, 4 * h + 4] - largest)
            total += fg[1, h]
        for h in range(heads):
            fg[1, h] /= total
        fg[1, label] -= 1.0
    for h in range(heads):
        fg[1, h] *= weight
    _learn(types, sink, table, q, fg[0], fg[1], top, drained)


@numba.njit(error_model="numpy")
def _pair(
    m: int,
    types: Ints,
    data: Floats,
    weight: float,
    sink: int,
    table: Floats,
    q: Floats,
    fg: Floats,
) -> None:
    """Add the gradient of a pair, entries 0 … m − 1 (preferred) and the others, each with the sink (tokensieve.model.attention)."""
    top, drained = _read(types[:m], data[:m], sink, table, q[:m], fg[0])
    other, poured = _read(types[m:], data[m:], sink, table, q[m:], fg[2])
    margin = (fg[0, 0] + table[top, 4]) - (fg[2, 0] + table[other, 4])
    fg[1, 0] = -weight / (1.0 + math.exp(margin))
    fg[3, 0] = -fg[1, 0]
    _learn(types[:m], sink, table, q[:m], fg[0], fg[1], top, drained)
    _learn(types[m:], sink, table, q[m:], fg[2], fg[3], other, poured)


@numba.njit(error_model="numpy")
def _exp(x: float) -> float:
    """e^x of x ≤ 0, to the last bit or two: 2^−k times a Taylor series, |r| ≤ ln 2 / 2. Unlike `math.exp`, several at a time."""
    x = max(x, -760.0)  # whose power is 0
    k = math.floor(0.5 - x / math.log(2))
    r = (
        x + k * 6.93147180369123816490e-01
    ) + k * 1.90821492927058770002e-10  # ln 2 in two parts (Cody & Waite 1980)
    series = 0.0
    for term in _TAYLOR:
        series = series * r + term
    return float(series * _HALVINGS[np.uint64(k)])


@numba.njit(error_model="numpy")
def _read(
    types: Ints, data: Floats, sink: int, table: Floats, q: Floats, f: Floats
) -> tuple[int, float]:
    """Write attention into q, and f minus the value of the type of largest attention into f; return that type and the sink's
    attention."""
    peak = table[sink if sink >= 0 else types[0], 0]
    for i in range(len(types)):
        q[i] = table[types[i], 0]
        peak = max(peak, q[i])
    for i in range(len(types)):
        q[i] = data[i] * _exp(q[i] - peak)
    top, drained = (sink, _exp(table[sink, 0] - peak)) if sink >= 0 else (types[0], 0.0)
    most = total = drained
    for i in range(len(types)):
        total += q[i]
        if q[i] > most:
            top, most = types[i], q[i]
    drained /= total
    for i in range(len(types)):
        q[i] /= total
    for at in range(4, table.shape[1], 4):
        total = drained * (table[sink, at] - table[top, at])
        for i in range(len(types)):
            total += q[i] * (table[types[i], at] - table[top, at])
        f[at // 4 - 1] = total
    return top, drained


@numba.njit(error_model="numpy")
def _learn(
    types: Ints, sink: int, table: Floats, q: Floats, f: Floats, g: Floats, top: int, drained: float
) -> None:
    """Add g times the derivatives of f to the gradients, given what `_read` found and g = ∂ℓ/∂f."""
    heads, g0, f0, w0 = table.shape[1] // 4 - 1, g[0], f[0], table[top, 4]
    for i in range(len(types)):
        s, slope = types[i], 0.0
        if heads == 1:  # numbers in registers: a quarter less time
            table[s, 7] += g0 * q[i]
            table[s, 3] += g0 * ((table[s, 4] - w0) - f0) * q[i]
            continue
        for h in range(heads):
            slope += g[h] * ((table[s, 4 * h + 4] - table[top, 4 * h + 4]) - f[h])
            table[s, 4 * h + 7] += g[h] * q[i]
        table[s, 3] += slope * q[i]
    for h in range(heads):
        table[sink, 3] += drained * g[h] * ((table[sink, 4 * h + 4] - table[top, 4 * h + 4]) - f[h])
