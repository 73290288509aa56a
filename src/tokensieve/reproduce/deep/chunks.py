"""Documents in padded chunks of bounded size, answered and differentiated side by side.

Every chunk is computed on one thread, several chunks at a time, and their gradients are added in the order of the chunks:
the bits do not depend on how many threads there are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from tokensieve.errors import InputError
from tokensieve.model.attention import loss_and_slope
from tokensieve.reproduce.deep.models import SELF_ATTENTION, Chunk, Parameters, answers
from tokensieve.text.counts import Counts, Floats, Ints

MAX_TYPES = 2**13
CPU_BUDGET, GPU_BUDGET = 2**18, 2**25

Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]


@contextmanager
def workers(device: torch.device) -> Iterator[Map]:
    """A `map` that works on as many chunks at a time as PyTorch has threads, each of them on one thread."""
    before = torch.get_num_threads()
    if device.type != "cpu":
        yield map
        return
    torch.set_num_threads(1)
    try:
        with ThreadPoolExecutor(before) as pool:
            yield lambda one, items: _in_order(pool, 2 * before, one, items)
    finally:
        torch.set_num_threads(before)


def _in_order(pool: ThreadPoolExecutor, ahead: int, one: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    """Like `pool.map`, with at most `ahead` results waiting to be taken: they would fill the memory."""
    waiting: deque[Future[Any]] = deque()
    for item in items:
        waiting.append(pool.submit(one, item))
        if len(waiting) == ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def check_lengths(counts: Counts, kind: str, part: str) -> None:
    """The first layer holds m² numbers for a document of m distinct types, several times over.

    Args:
        counts: the documents.
        kind: which model.
        part: what the documents are called in the error.

    Raises:
        InputError: a document has more than MAX_TYPES distinct types.
    """
    sizes = np.diff(counts.matrix.indptr)
    if kind in SELF_ATTENTION and sizes.size and sizes.max() > MAX_TYPES:
        row = int(sizes.argmax())
        raise InputError(
            f"document {row + 1} of the {part} part has {sizes[row]:,} distinct token types, {kind} takes at most "
            f"{MAX_TYPES:,}: split it, or keep fewer token types"
        )


def plan(counts: Counts, documents: Ints, kind: str, d: int, device: torch.device) -> list[Ints]:
    """Split documents, longest first, so that a chunk holds few padded entries; documents without any type are left out.

    A chunk of B documents of at most m types holds B·m·d numbers, and B·m² in a first layer: at most a budget of either
    that suits the CPU's cache, unless a single document is larger.
    """
    sizes = np.diff(counts.matrix.indptr)[documents].astype(np.int64)
    order = np.argsort(-sizes, kind="stable")
    order = order[: np.count_nonzero(sizes)]
    budget = CPU_BUDGET if device.type == "cpu" else GPU_BUDGET
    found, first = [], 0
    while first < len(order):
        m = int(sizes[order[first]])
        many = max(1, budget // (m * max(d, m if kind in SELF_ATTENTION else 0)))
        found.append(documents[order[first : first + many]])
        first += many
    return found


def pad(counts: Counts, documents: Ints, device: torch.device, precision: torch.dtype) -> Chunk:
    """Put documents side by side; each has at least one type."""
    m = counts.matrix
    starts, sizes = m.indptr[documents], np.diff(m.indptr)[documents]
    inside = np.arange(sizes.max()) < sizes[:, None]
    entries = (starts[:, None] + np.arange(sizes.max()))[inside]
    types, places = np.unique(m.indices[entries], return_inverse=True)
    ids, log_counts = np.zeros(inside.shape, np.int64), np.full(inside.shape, -np.inf)
    ids[inside], log_counts[inside] = places, np.log(m.data[entries])
    return Chunk(
        torch.from_numpy(types.astype(np.int64)).to(device),
        torch.from_numpy(ids).to(device),
        torch.from_numpy(log_counts).to(device, precision),
    )


def answer_all(kind: str, parameters: Parameters, counts: Counts, run: Map) -> Floats:
    """f of every document, shape (n, H); zero for a document without any known type."""
    E = parameters["E"]

    def one(documents: Ints) -> tuple[Ints, Floats]:
        with torch.inference_mode():
            chunk = pad(counts, documents, E.device, E.dtype)
            f = answers(kind, {**parameters, "E": E[chunk.types]}, chunk)
        return documents, _finite(f)

    out = np.zeros((counts.n_documents, parameters["v"].shape[1]))
    for documents, f in run(one, plan(counts, np.arange(counts.n_documents), kind, E.shape[1], E.device)):
        out[documents] = f
    return out


def add_gradient(kind: str, parameters: Parameters, counts: Counts, batch: Ints, run: Map) -> float:
    """Set each parameter's `.grad` to that of the batch's mean loss; return the sum of the batch's losses.

    ℓ and ∂ℓ/∂f are those of `tokensieve.model.attention.loss_and_slope`; a document without any known type has f = 0 always.
    """
    names = list(parameters)
    whole = [parameters[name].detach() for name in names]
    E = whole[names.index("E")]

    def one(documents: Ints) -> tuple[float, torch.Tensor, tuple[torch.Tensor, ...]]:
        chunk = pad(counts, documents, E.device, E.dtype)
        leaves = [(x[chunk.types] if x is E else x.detach()).requires_grad_() for x in whole]
        f = answers(kind, dict(zip(names, leaves, strict=True)), chunk)
        loss, slope = loss_and_slope(_finite(f), counts.labels[documents])
        slopes = torch.from_numpy(slope / len(batch)).to(f)
        return float(loss.sum()), chunk.types, torch.autograd.grad(f, leaves, slopes)

    sums = [torch.zeros_like(x) for x in whole]
    empty = np.diff(counts.matrix.indptr)[batch] == 0
    heads = parameters["v"].shape[1]
    total = float(loss_and_slope(np.zeros((int(empty.sum()), heads)), counts.labels[batch[empty]])[0].sum())
    for loss, types, gradients in run(one, plan(counts, batch, kind, E.shape[1], E.device)):
        total += loss
        for name, into, gradient in zip(names, sums, gradients, strict=True):
            if name == "E":
                into.index_add_(0, types, gradient)
            else:
                into += gradient
    for parameter, gradient in zip(parameters.values(), sums, strict=True):
        parameter.grad = gradient
    return total


def _finite(f: torch.Tensor) -> Floats:
    found: Floats = f.detach().double().cpu().numpy()
    if not np.isfinite(found).all():
        raise InputError("training diverged, the model's answers are no finite numbers: use a smaller learning_rate")
    return found
