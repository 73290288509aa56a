"""Adam's rule, and the two-numbers-per-type table (u, w) trained by it on minibatches.

    m ← m + (1 − β₁)(g − m)
    r ← β₂ r + (1 − β₂) g²
    x ← x − η/(1 − β₁ᵗ) · m / (√r / √(1 − β₂ᵗ) + ε)

with β = (0.9, 0.999), ε = 1e-8 (Kingma & Ba 2015, ordered as PyTorch does it). Of the table only
the types of a batch are touched at each step (their moments do not decay in between), so an epoch
costs O(nonzeros of the count matrix); its step sizes fall linearly to zero. One thread and one
order of documents: the same seed gives the same bits.

The compiled loops work on a **table** with a row per type: u with its two moments and its gradient,
then each w with its own (`_packed`). A test compares them with `attention.gradient` and a step of
Adam in NumPy (tests/model/test_adam.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from tokensieve.arrays import Floats, Ints
from tokensieve.kernels import compiled
from tokensieve.text.counts import Counts

BETA1 = 0.9  # this and the next two: the usual ones (Kingma & Ba 2015)
BETA2 = 0.999  # of the second moment
EPSILON = 1e-8  # added to its root
CONSTANTS = (1 - BETA1, BETA2, 1 - BETA2, EPSILON)  # as `adam_step` takes them
# columns of the table for each number that is trained
VALUE = 0
MOMENT1 = 1
MOMENT2 = 2
GRADIENT = 3
PER_NUMBER = 4
# the columns of a token type are those of its score u, then those of its value w for each output
FIRST_W = PER_NUMBER
BYTES_PER_FLOAT = 8
FLOATS_PER_CACHE_LINE = 8
# e^x = 2^−k · series(r): powers of two down to the smallest number, and the series to its last bit
_HALVINGS = 0.5 ** np.arange(1100.0)
_TAYLOR = tuple(1 / math.factorial(k) for k in range(13, -1, -1))
# ln 2 in two parts, of which the first has few bits (Cody & Waite 1980)
_LN2_HIGH = 6.93147180369123816490e-01
# the rest of it
_LN2_LOW = 1.90821492927058770002e-10
_LOWEST_EXPONENT = -760.0  # whose power is 0


@dataclass(frozen=True)
class Schedule:
    """How the table is trained.

    Attributes:
        steps: length of the schedule; step t of it uses the rates times 1 − t / steps.
        batch_size: documents per step.
        score_rate: initial step size for u.
        value_rate: initial step size for w.
        seed: order of the documents.
        pairs: whether a step takes pairs, documents 2k (preferred) and 2k + 1
            (`tokensieve.model.attention`).
    """

    steps: int
    batch_size: int = 64
    score_rate: float = 0.01
    value_rate: float = 0.1
    seed: int = 0
    pairs: bool = False


@compiled()
def adam_step(
    g: Floats,
    m: Floats,
    r: Floats,
    rate: Floats | float,
    root: Floats | float,
    constants: tuple[float, ...],
) -> tuple[Floats, ...]:
    """The new moments m and r, and the amount to subtract from x.

    Compiled it is for numbers; `adam_step.py_func` is for arrays.

    Args:
        g: the gradient.
        m, r: the moments.
        rate: η/(1 − β₁ᵗ).
        root: 1/√(1 − β₂ᵗ).
        constants: `CONSTANTS` in the precision of the arithmetic.
    """
    new1, kept2, new2, epsilon = constants
    m = m + new1 * (g - m)
    r = kept2 * r + new2 * g * g
    return m, r, rate * m / (np.sqrt(r) * root + epsilon)


class TrainState(NamedTuple):
    """Scores and values after so many steps."""

    steps: int
    u: Floats
    w: Floats


def train(
    counts: Counts, u: Floats, w: Floats, schedule: Schedule, pause: int, rows: Ints | None = None
) -> Iterator[TrainState]:
    """Train from (u, w); yield the state every `pause` steps, each time as new arrays.

    Args:
        counts: n documents with labels or scores, and weights of mean 1, if any; the two documents
            of a pair have the same.
        u: initial scores, shape (types,); with one more, the sink's, which is in every document
            once.
        w: initial values, shape (types, 1) for two classes or (types, K), likewise; the sink's stay
            as they are.
        schedule: the settings.
        pause: steps between two yields; the schedule's end yields too.
        rows: the documents (or pairs) to train on (None: all). They are read where they lie, so
            that counts in files stay there.
    """
    matrix = counts.matrix
    if rows is None:
        rows = np.arange(counts.n_documents // (2 if schedule.pairs else 1))
    sink = matrix.shape[1] if len(u) > matrix.shape[1] else -1
    table = _packed(u, w)
    room = _room(int(np.diff(matrix.indptr).max(initial=1)), len(u), w.shape[1])
    documents = _documents_for_loop(counts)
    pairs = schedule.pairs or None  # None rather than False: what is for pairs is not compiled
    done = 0
    for batches in _batches(rows, schedule, pause):
        sizes = _step_sizes(np.arange(done, done + len(batches)), schedule)
        arguments: list[Any] = [*documents, batches, *sizes, sink, pairs, table, *room]
        _adam(*arguments)
        done += len(batches)
        w = table[:, PER_NUMBER::PER_NUMBER].copy()
        yield TrainState(done, table[:, VALUE].copy(), w)


def _documents_for_loop(counts: Counts) -> list[Any]:
    """Documents as the first arguments of `_adam`.

    Integers are of one type and arrays are writable, so that the loop is compiled once.
    """
    matrix = counts.matrix
    weights = counts.document_weights
    starts = matrix.indptr.astype(np.int64)
    # None of classes: what is for scores is not compiled
    numbers = None if counts.numbers is None else np.array(counts.numbers, dtype=np.float64)
    return [starts, matrix.indices, matrix.data, counts.labels.copy(), numbers, weights]


def _batches(rows: Ints, schedule: Schedule, pause: int) -> Iterator[Ints]:
    """The documents of the steps from one yield to the next, shape (steps, per step).

    They are drawn from permutations of all rows, one after the other.
    """
    per_step = min(schedule.batch_size, len(rows))
    rng = np.random.default_rng(schedule.seed)
    queue = np.empty(0, dtype=np.int64)
    for first_step in range(0, schedule.steps, pause):
        n_steps = min(pause, schedule.steps - first_step)
        n_rows = n_steps * per_step
        while len(queue) < n_rows:
            queue = np.concatenate([queue, rng.permutation(rows)])
        yield queue[:n_rows].reshape(-1, per_step)
        queue = queue[n_rows:]


def _step_sizes(steps: Ints, schedule: Schedule) -> tuple[Floats, Floats]:
    """η/(1 − β₁ᵗ) of scores and values in each step, shape (steps, 2), and 1/√(1 − β₂ᵗ)."""
    t = steps + 1.0
    decay = 1 / (1 - BETA1**t) * (1 - steps / schedule.steps)
    rates = np.outer(decay, [schedule.score_rate, schedule.value_rate])
    return rates, 1 / np.sqrt(1 - BETA2**t)


def _packed(u: Floats, w: Floats) -> Floats:
    """Everything that training stores about a type, in one row.

    That is u with its moments and gradient, then each w with its own.

    With two classes, a row is one cache line (64 bytes, aligned), so a type costs one memory access
    instead of eight.
    """
    n_columns = PER_NUMBER * (1 + w.shape[1])
    memory = np.zeros(len(u) * n_columns + FLOATS_PER_CACHE_LINE)
    first = (-memory.ctypes.data // BYTES_PER_FLOAT) % FLOATS_PER_CACHE_LINE
    table = memory[first : first + len(u) * n_columns].reshape(len(u), n_columns)
    table[:, VALUE] = u
    table[:, PER_NUMBER::PER_NUMBER] = w
    return table


def _room(longest: int, n_types: int, n_outputs: int) -> list[Any]:
    """Arrays that `_adam` writes to: q, f and g of a document or pair, and the types touched."""
    q = np.empty(2 * longest)
    fg = np.empty((4, n_outputs))
    touched = np.empty(n_types, np.int64)
    is_touched = np.zeros(n_types, np.bool_)
    return [q, fg, touched, is_touched]


@compiled(error_model="numpy", nogil=True)
def _adam(
    indptr: Ints,
    indices: Ints,
    data: Floats,
    labels: Ints,
    numbers: Floats | None,
    weights: Floats,
    batches: Ints,
    rates: Floats,
    roots: Floats,
    sink: int,
    pairs: bool | None,
    table: Floats,
    q: Floats,
    fg: Floats,
    touched: Ints,
    is_touched: NDArray[np.bool_],
) -> None:
    """A step of Adam on the table, in place, for each row of `batches`.

    The gradients in the table and `is_touched` are zero before and after.

    Args:
        indptr, indices, data: the counts of n documents as a CSR matrix.
        labels, numbers, weights: of each document, shape (n,); `numbers` are scores, or None.
        batches: the documents (or pairs) of each step, shape (steps, batch size).
        sink: the row of the sink in the table, or −1.
        table: a row for each type (`_packed`).
        q, fg, touched, is_touched: room for intermediate results.
    """
    size = batches.shape[1]
    for step in range(batches.shape[0]):
        n_touched = 0
        if sink >= 0:
            touched[0] = sink
            n_touched = 1
        for j in range(size):
            k = batches[step, j]
            if pairs is None:
                types = indices[indptr[k] : indptr[k + 1]]
                counts = data[indptr[k] : indptr[k + 1]]
                if len(types):
                    if numbers is None:
                        _document(types, counts, labels[k], None, weights[k], sink, table, q, fg)
                    else:
                        number = numbers[k]
                        _document(types, counts, labels[k], number, weights[k], sink, table, q, fg)
            else:
                types = indices[indptr[2 * k] : indptr[2 * k + 2]]
                counts = data[indptr[2 * k] : indptr[2 * k + 2]]
                n_preferred = indptr[2 * k + 1] - indptr[2 * k]
                _pair(n_preferred, types, counts, weights[2 * k], sink, table, q, fg)
            for s in types:
                if not is_touched[s]:
                    is_touched[s] = True
                    touched[n_touched] = s
                    n_touched += 1
        for i in range(n_touched):
            is_touched[touched[i]] = False
        _update(table, touched[:n_touched], size, rates[step, 0], rates[step, 1], roots[step])


@numba.njit(error_model="numpy")
def _update(
    table: Floats, types: Ints, size: int, score_rate: float, value_rate: float, root: float
) -> None:
    """A step of Adam for all numbers of some types, whose gradients end as zero.

    The gradients in the table are sums over `size` documents.
    """
    for i in range(len(types)):
        s = types[i]
        for at in range(0, table.shape[1], PER_NUMBER):
            rate = value_rate if at else score_rate
            g = table[s, at + GRADIENT] / size
            m, r, change = adam_step(
                g, table[s, at + MOMENT1], table[s, at + MOMENT2], rate, root, CONSTANTS
            )
            table[s, at + MOMENT1] = m
            table[s, at + MOMENT2] = r
            table[s, at] -= change
            table[s, at + GRADIENT] = 0.0


@numba.njit(error_model="numpy")
def _document(
    types: Ints,
    data: Floats,
    label: int,
    number: float | None,
    weight: float,
    sink: int,
    table: Floats,
    q: Floats,
    fg: Floats,
) -> None:
    """Add the gradient of one document and the sink, times its weight, to the table.

    The formulas are those of tokensieve.model.attention. `fg` has room for f − w_top and g.
    """
    n_outputs = table.shape[1] // PER_NUMBER - 1
    f = fg[0]
    g = fg[1]
    top, drained = _read(types, data, sink, table, q, f)
    if number is not None:
        g[0] = (f[0] + table[top, FIRST_W]) - number
    elif n_outputs == 1:
        y = 1.0 if label == 1 else -1.0
        g[0] = -y / (1.0 + math.exp(y * (f[0] + table[top, FIRST_W])))
    else:
        largest = -math.inf
        for h in range(n_outputs):
            largest = max(largest, f[h] + table[top, PER_NUMBER * h + FIRST_W])
        total = 0.0
        for h in range(n_outputs):
            g[h] = math.exp(f[h] + table[top, PER_NUMBER * h + FIRST_W] - largest)
            total += g[h]
        for h in range(n_outputs):
            g[h] /= total
        g[label] -= 1.0
    for h in range(n_outputs):
        g[h] *= weight
    _learn(types, sink, table, q, f, g, top, drained)


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
    """Add the gradient of a pair, each side with the sink, times its weight, to the table.

    Entries 0 … m − 1 are the preferred text, the others the rejected one. `fg` has room for
    f − w_top and g of both.
    """
    top, drained = _read(types[:m], data[:m], sink, table, q[:m], fg[0])
    other_top, other_drained = _read(types[m:], data[m:], sink, table, q[m:], fg[2])
    margin = (fg[0, 0] + table[top, FIRST_W]) - (fg[2, 0] + table[other_top, FIRST_W])
    fg[1, 0] = -weight / (1.0 + math.exp(margin))
    fg[3, 0] = -fg[1, 0]
    _learn(types[:m], sink, table, q[:m], fg[0], fg[1], top, drained)
    _learn(types[m:], sink, table, q[m:], fg[2], fg[3], other_top, other_drained)


@numba.njit(error_model="numpy")
def _exp(x: float) -> float:
    """e^x of x ≤ 0, to the last bit or two: 2^−k times a Taylor series, |r| ≤ ln 2 / 2.

    Unlike `math.exp`, it is computed for several numbers at a time.
    """
    x = max(x, _LOWEST_EXPONENT)
    k = math.floor(0.5 - x / math.log(2))
    r = (x + k * _LN2_HIGH) + k * _LN2_LOW
    series = 0.0
    for term in _TAYLOR:
        series = series * r + term
    return float(series * _HALVINGS[np.uint64(k)])


@numba.njit(error_model="numpy")
def _read(
    types: Ints, data: Floats, sink: int, table: Floats, q: Floats, f: Floats
) -> tuple[int, float]:
    """Write attention into q, and f minus the value of the type of largest attention into f.

    Returns:
        That type, and the sink's attention.
    """
    peak = table[sink if sink >= 0 else types[0], VALUE]
    for i in range(len(types)):
        q[i] = table[types[i], VALUE]
        peak = max(peak, q[i])
    for i in range(len(types)):
        q[i] = data[i] * _exp(q[i] - peak)
    top = types[0] if sink < 0 else sink
    drained = 0.0 if sink < 0 else _exp(table[sink, VALUE] - peak)
    largest = drained
    total = drained
    for i in range(len(types)):
        total += q[i]
        if q[i] > largest:
            top = types[i]
            largest = q[i]
    drained /= total
    for i in range(len(types)):
        q[i] /= total
    for at in range(PER_NUMBER, table.shape[1], PER_NUMBER):
        total = drained * (table[sink, at] - table[top, at])
        for i in range(len(types)):
            total += q[i] * (table[types[i], at] - table[top, at])
        f[at // PER_NUMBER - 1] = total
    return top, drained


@numba.njit(error_model="numpy")
def _learn(
    types: Ints, sink: int, table: Floats, q: Floats, f: Floats, g: Floats, top: int, drained: float
) -> None:
    """Add g times the derivatives of f to the gradients, given what `_read` found and g = ∂ℓ/∂f.

    ∂f/∂w_s = q_s and ∂f/∂u_s = q_s (w_s − f), where f is less the value of `top`.
    """
    n_outputs = table.shape[1] // PER_NUMBER - 1
    g0 = g[0]
    f0 = f[0]
    w0 = table[top, FIRST_W]
    for i in range(len(types)):
        s = types[i]
        if n_outputs == 1:  # numbers in registers: a quarter less time
            table[s, FIRST_W + GRADIENT] += g0 * q[i]
            table[s, GRADIENT] += g0 * ((table[s, FIRST_W] - w0) - f0) * q[i]
            continue
        slope = 0.0
        for h in range(n_outputs):
            above_top = table[s, PER_NUMBER * h + FIRST_W] - table[top, PER_NUMBER * h + FIRST_W]
            slope += g[h] * (above_top - f[h])
            table[s, PER_NUMBER * h + FIRST_W + GRADIENT] += g[h] * q[i]
        table[s, GRADIENT] += slope * q[i]
    for h in range(n_outputs):
        above_top = table[sink, PER_NUMBER * h + FIRST_W] - table[top, PER_NUMBER * h + FIRST_W]
        table[sink, 3] += drained * g[h] * (above_top - f[h])
