"""The two-numbers-per-type table (u, w) trained by minibatch Adam.

Only the types of a batch are touched at each step (their moments do not decay in between), so an epoch costs
O(nonzeros of the count matrix). One thread and one order of documents: the same seed gives the same bits.

Adam: Kingma & Ba 2015; the gradients are those of `tokensieve.model.attention`, and the step sizes fall linearly to zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from tokensieve.model.attention import attend
from tokensieve.text.counts import Counts, Floats, Ints

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


@dataclass(frozen=True)
class Schedule:
    """How the table is trained.

    Attributes:
        steps: length of the schedule; step t of it uses the rates times 1 − t / steps.
        batch_size: documents per step.
        score_rate: initial step size for u.
        value_rate: initial step size for w.
        seed: order of the documents.
    """

    steps: int
    batch_size: int = 64
    score_rate: float = 0.01
    value_rate: float = 0.1
    seed: int = 0


def train(
    counts: Counts, u: Floats, w: Floats, schedule: Schedule, pause: int, rows: Ints | None = None
) -> Iterator[tuple[int, Floats, Floats]]:
    """Train from (u, w); yield (steps done, u, w) every `pause` steps, always the same two arrays, updated in place.

    Args:
        counts: n documents with labels.
        u: initial scores, shape (|S|,).
        w: initial values, shape (|S|, 1) for two classes or (|S|, K).
        schedule: the settings.
        pause: steps between two yields; the schedule's end yields too.
        rows: the documents to train on (None: all). They are read where they lie, so that counts in files stay there.
    """
    m, rows = counts.matrix, np.arange(counts.n_documents) if rows is None else rows
    n = len(rows)
    u, w = u.copy(), w.copy()
    mu, vu, mw, vw = (np.zeros_like(x) for x in (u, u, w, w))
    rng = np.random.default_rng(schedule.seed)
    per_step = min(schedule.batch_size, n)
    queue = np.empty(0, dtype=np.int64)
    for start in range(0, schedule.steps, pause):
        steps = min(pause, schedule.steps - start)
        while len(queue) < steps * per_step:
            queue = np.concatenate([queue, rng.permutation(rows)])
        order, queue = queue[: steps * per_step], queue[steps * per_step :]
        _adam(
            m.indptr, m.indices, m.data, counts.labels, order, per_step, u, w, mu, vu, mw, vw,
            start, schedule.steps, schedule.score_rate, schedule.value_rate,
        )  # fmt: skip
        yield start + steps, u, w


@numba.njit(cache=True)
def _document(types: Any, c: Any, label: int, u: Any, w: Any, q: Any, f: Any, g: Any, gu: Any, gw: Any) -> None:
    """Add one document's gradient to gu, gw (formulas in tokensieve.model.attention)."""
    heads = w.shape[1]
    top = types[attend(types, c, u, q)]
    f[:] = 0.0
    for i in range(len(types)):
        for h in range(heads):
            f[h] += q[i] * (w[types[i], h] - w[top, h])
    if heads == 1:
        y = 1.0 if label == 1 else -1.0
        g[0] = -y / (1.0 + np.exp(y * (f[0] + w[top, 0])))
    else:
        peak, total = -np.inf, 0.0
        for h in range(heads):
            peak = max(peak, f[h] + w[top, h])
        for h in range(heads):
            g[h] = np.exp(f[h] + w[top, h] - peak)
            total += g[h]
        for h in range(heads):
            g[h] /= total
        g[label] -= 1.0
    for i in range(len(types)):
        s = types[i]
        slope = 0.0
        for h in range(heads):
            slope += g[h] * ((w[s, h] - w[top, h]) - f[h])
            gw[s, h] += g[h] * q[i]
        gu[s] += slope * q[i]


@numba.njit(cache=True)
def _adam(
    indptr: Any, indices: Any, data: Any, labels: Any, order: Any, per_step: int,
    u: Any, w: Any, mu: Any, vu: Any, mw: Any, vw: Any,
    done: int, horizon: int, score_rate: float, value_rate: float,
) -> None:  # fmt: skip
    """len(order) / per_step steps of Adam on (u, w), in place; `done` steps of `horizon` came before."""
    heads = w.shape[1]
    gu, gw = np.zeros(len(u)), np.zeros(w.shape)
    marked, touched = np.zeros(len(u), np.bool_), np.empty(len(u), np.int64)
    q, f, g = np.empty(np.max(np.diff(indptr)) + 1), np.empty(heads), np.empty(heads)
    for step in range(len(order) // per_step):
        n_touched = 0
        for k in order[step * per_step : (step + 1) * per_step]:
            types = indices[indptr[k] : indptr[k + 1]]
            if len(types) == 0:
                continue
            _document(types, data[indptr[k] : indptr[k + 1]], labels[k], u, w, q, f, g, gu, gw)
            for s in types:
                if not marked[s]:
                    marked[s] = True
                    touched[n_touched] = s
                    n_touched += 1
        t = done + step + 1
        decay = 1.0 - (t - 1) / horizon
        fix1, fix2 = 1.0 - BETA1**t, 1.0 - BETA2**t
        for s in touched[:n_touched]:
            marked[s] = False
            d = gu[s] / per_step
            gu[s] = 0.0
            mu[s] = BETA1 * mu[s] + (1.0 - BETA1) * d
            vu[s] = BETA2 * vu[s] + (1.0 - BETA2) * d * d
            u[s] -= score_rate * decay * (mu[s] / fix1) / (np.sqrt(vu[s] / fix2) + EPSILON)
            for h in range(heads):
                d = gw[s, h] / per_step
                gw[s, h] = 0.0
                mw[s, h] = BETA1 * mw[s, h] + (1.0 - BETA1) * d
                vw[s, h] = BETA2 * vw[s, h] + (1.0 - BETA2) * d * d
                w[s, h] -= value_rate * decay * (mw[s, h] / fix1) / (np.sqrt(vw[s, h] / fix2) + EPSILON)
