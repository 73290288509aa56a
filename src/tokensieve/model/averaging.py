"""Training over partitions by averaging, and the sums that it takes: what runs on a cluster and what is brought here.

See `tokensieve.model.cluster` for the method.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tokensieve.model.adam import Schedule, train
from tokensieve.model.attention import answers, decide, loss_and_slope
from tokensieve.model.classifier import AttentionClassifier
from tokensieve.model.explanation import attention_sums
from tokensieve.model.fit import prior_of, start_of
from tokensieve.progress import Progress
from tokensieve.text.counts import Counts, Floats, Ints
from tokensieve.text.vocabulary import Chunks

ROUNDS, PATIENCE = 8, 2
LOCAL_STEPS = 2_000
Parameters = tuple[Floats, Floats]


class Cluster:
    """Tasks on a cluster; nothing is scattered, so that all can be computed again when a worker dies."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self.client.submit(function, *arguments, pure=False)

    def each(self, function: Callable[..., Any], parts: Sequence[Any], *common: Any) -> list[Any]:
        return [self.run(function, part, *common) for part in parts]

    def tree(self, parts: Sequence[Any]) -> Any:
        """The sum, pair by pair in a fixed order, still on the cluster."""
        while len(parts) > 1:
            pairs = [self.run(operator.add, *parts[i : i + 2]) for i in range(0, len(parts) - 1, 2)]
            parts = pairs + list(parts[2 * len(pairs) :])
        return parts[0]


class Partitions(Chunks):
    """Chunks that lie on a cluster; what is computed of them is computed there."""

    def __init__(self, cluster: Cluster, parts: list[Any]) -> None:
        self.cluster, self.parts = cluster, parts

    def total(self, of: Callable[..., Any], *common: Any, then: Callable[[Any], Any]) -> Any:
        """What `then` makes of the sum, brought here."""
        sent = [self.cluster.run(same, value) for value in common]
        return self.cluster.run(then, self.cluster.tree(self.cluster.each(of, self.parts, *sent))).result()


def same(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class CountedPart:
    """Documents of a partition, counted; their groups, and words that are no token type, or words of all kinds."""

    counts: Counts
    units: Ints | None
    unknown: int
    words: int


class Sums(tuple[Any, ...]):
    """Numbers that add up one by one."""

    def __add__(self, other: Any) -> Sums:
        return Sums(a + b for a, b in zip(self, other, strict=True))


def train_by_averaging(
    counts: Partitions, sizes: Ints, model: AttentionClassifier, seed: int, tell: Progress
) -> tuple[Any, int, list[float]]:
    """Choose the number of rounds on held-out documents, then train on all; write (u, w) into the model.

    Returns:
        (u, w) on the cluster, the number of rounds, and the held-out losses.
    """
    cluster = counts.cluster
    model.prior_, model.validation_ = prior_of(sizes), np.empty((0, 2))
    losses: list[float] = []
    rounds = ROUNDS
    if sizes.min() >= 10:
        held = {
            held_out: [
                cluster.run(_held, part, model.validation_share, seed, p, held_out)
                for p, part in enumerate(counts.parts)
            ]
            for held_out in (False, True)
        }
        inside, outside = Partitions(cluster, held[False]), Partitions(cluster, held[True])
        state = _start(inside, model.prior_)
        for number in range(ROUNDS):
            tell("choosing the number of rounds", number / ROUNDS)
            state, _ = _round(inside, state, number, model, seed)
            loss, n = outside.total(_loss, state, model.prior_, then=same)
            losses.append(float(loss / max(n, 1)))
            if number - int(np.argmin(losses)) >= PATIENCE:
                break
        rounds = int(np.argmin(losses)) + 1
    state, steps = _start(counts, model.prior_), []
    for number in range(rounds):
        tell("training", number / rounds)
        state, taken = _round(counts, state, number, model, seed)
        steps.append(taken)
    model.scores_, model.values_ = state.result()
    model.n_steps_ = sum(cluster.client.gather(steps))
    return state, rounds, losses


def _start(counts: Partitions, prior: Floats) -> Any:
    cluster = counts.cluster
    return cluster.run(_first, cluster.tree(cluster.each(_presence, counts.parts)), prior)


def _round(counts: Partitions, state: Any, number: int, model: AttentionClassifier, seed: int) -> tuple[Any, Any]:
    """(u, w) after one more round, and the steps that all partitions took in it, both on the cluster."""
    cluster, p = counts.cluster, len(counts.parts)
    share = 1 - number / ROUNDS
    rates = model.batch_size, model.score_rate * share, model.value_rate * share
    moved = [
        cluster.run(_local, part, state, math.ceil(math.sqrt(p)), rates, seed + p * number + i)
        for i, part in enumerate(counts.parts)
    ]
    total = cluster.tree(moved)
    return cluster.run(_average, total), cluster.run(operator.itemgetter(3), total)


def _held(part: CountedPart, share: float, seed: int, number: int, held_out: bool) -> CountedPart:
    """The documents of a partition that the number of rounds is chosen on, in whole groups, or all others."""
    n = part.counts.n_documents
    units = np.arange(n) if part.units is None else part.units
    names = np.random.default_rng([seed, number]).permutation(np.unique(units))
    chosen = np.isin(units, names[: round(share * len(names))])
    return replace(part, counts=part.counts.rows(chosen if held_out else ~chosen), units=None)


def _presence(part: CountedPart) -> Sums:
    return Sums((part.counts.present, part.counts.class_sizes))


def _first(found: Sums, prior: Floats) -> Parameters:
    return start_of(found[0], found[1], prior)


def _local(part: CountedPart, state: Parameters, passes: int, rates: tuple[int, float, float], seed: int) -> Sums:
    """n·u, n·w, n and the steps taken after some passes of minibatch Adam over the partition's n documents."""
    n = part.counts.n_documents
    if not n:
        return Sums((0 * state[0], 0 * state[1], 0, 0))
    per_pass = math.ceil(n / rates[0])
    steps = per_pass * max(min(passes, LOCAL_STEPS // per_pass), 1)
    endless = Schedule(steps * 10**6, *rates, seed)  # within a round the rates stay as they are
    _, u, w = next(train(part.counts, *state, endless, steps))
    return Sums((n * u, n * w, n, steps))


def _average(total: Sums) -> Parameters:
    return total[0] / total[2], total[1] / total[2]


def _decisions(part: CountedPart, state: Parameters, prior: Floats) -> Floats:
    f = answers(part.counts.matrix, *state)
    f[np.diff(part.counts.matrix.indptr) == 0] = prior
    return f


def _loss(part: CountedPart, state: Parameters, prior: Floats) -> Sums:
    """Sum of the losses of the partition's documents, and how many there are."""
    counts = part.counts
    return Sums((loss_and_slope(_decisions(part, state, prior), counts.labels)[0].sum(), counts.n_documents))


def tested_part(part: CountedPart, state: Parameters, prior: Floats) -> Sums:
    """Documents predicted correctly, by class; words that are no token; all words."""
    labels = part.counts.labels
    hits = labels[decide(_decisions(part, state, prior)) == labels]
    return Sums((np.bincount(hits, minlength=part.counts.n_classes), part.unknown, part.words))


def attention_of(part: CountedPart, state: Parameters) -> Floats:
    """Σ over the partition's documents of q_{X,s} / (c_{X,s}/T_X), shape (|S|,)."""
    sums: Floats = attention_sums(part.counts.matrix, state[0])[2]
    return sums
