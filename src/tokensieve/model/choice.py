"""What held-out documents decide about a training: its length, the strength of its start, and the scale of its values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from joblib import cpu_count

from tokensieve.model.adam import Schedule, train
from tokensieve.model.attention import answers, loss_and_slope
from tokensieve.progress import Progress
from tokensieve.text.counts import Counts, Floats, Ints

CHECKS = 8
PATIENCE = 3
HELD_OUT = 50_000  # more documents than that add nothing to the choice of when to stop
FEW, FOLDS = 2_000, 5
Table: TypeAlias = tuple[Floats, Floats]
STRENGTHS: tuple[float, ...] = (0.25, 0.5, 1.0)
MOST_SCALE = 2.0  # a few held-out documents, all answered rightly, would ask for any certainty


@dataclass(frozen=True)
class Choice:
    """What was decided.

    Attributes:
        steps: of training.
        strength: of the start: what its scores, and the distance of its values from the prior, are multiplied by.
        scale: what the distance of the trained values from the prior is multiplied by. As attention adds up to one this does the
            same to every decision value, f ← prior + scale · (f − prior): 0 answers by the class frequencies, so that held-out
            documents are never answered worse than by them.
        validation: (steps, mean loss) of the chosen strength, shape (checks, 2).
        table: scores and values after `steps` of training on all documents, where that training ran side by side with the choice.
    """

    steps: int
    strength: float = 1.0
    scale: float = 1.0
    validation: Floats = field(default_factory=lambda: np.empty((0, 2)))
    table: Table | None = None


def choose(
    strengths: Sequence[float],
    steps: int,
    judged: Callable[[float], Iterable[tuple[int, float, float, Table | None]]],
    tell: Progress,
) -> Choice:
    """Length, strength and scale of smallest loss; a strength is left after three checks without a smaller one.

    Args:
        strengths: to be tried.
        steps: of a training that nothing stops.
        judged: for a strength, after each part of the schedule: steps, mean loss, best scale, and the table learned from all
            documents, if there is one.
        tell: called with (stage, share done).
    """
    best = math.inf, Choice(steps)
    for number, strength in enumerate(strengths):
        tell("choosing the length of training", number / len(strengths))
        checks, scales, at = list[tuple[int, float]](), list[float](), 0
        kept: Table | None = None
        for taken, loss, scale, table in judged(strength):
            checks.append((taken, loss))
            scales.append(scale)
            at = min(range(len(checks)), key=lambda i: checks[i][1])
            if at == len(checks) - 1:
                kept = table
            if len(checks) - at > PATIENCE:
                break
        if checks[at][1] < best[0]:
            best = checks[at][1], Choice(checks[at][0], strength, scales[at], np.array(checks), kept)
    return best[1]


def held_out_values(
    counts: Counts,
    start: Callable[[Counts | None], Table],
    schedule: Schedule,
    parts: list[tuple[Ints, Counts]],
) -> Iterator[tuple[int, Floats, Table | None]]:
    """After every eighth of the schedule: steps, the decision values of all held-out documents, part by part, and a table.

    The trainings run side by side, a thread each; every one of them has the bits that it has alone. Where one part is held out
    and a core would be idle, the training on all documents, which the choice is for, runs along. It saves the wait for it later.

    Args:
        counts: all documents.
        start: the table that a training without these held-out documents starts from; for None, that on all documents.
        schedule: of the trainings.
        parts: positions to learn from, and the documents held out.
    """
    pause = math.ceil(schedule.steps / CHECKS)
    runs = [train(counts, *start(held), schedule, pause, inside) for inside, held in parts]
    if len(parts) == 1 and cpu_count() > 1:
        runs.append(train(counts, *start(None), schedule, pause))
    with ThreadPoolExecutor(min(len(runs), cpu_count())) as pool:
        for _ in range(0, schedule.steps, pause):
            states = list(pool.map(next, runs))
            f = [answers(held.matrix, u, w) for (_, u, w), (_, held) in zip(states, parts, strict=False)]
            yield states[0][0], np.concatenate(f), states[-1][1:] if len(runs) > len(parts) else None


def best_scale(f: Floats, prior: Floats, labels: Ints, weights: Floats | None = None) -> float:
    """The factor t in [0, 2] of least mean loss of prior + t (f − prior), which is convex in t: by halving.

    Args:
        f: decision values, shape (n, H).
        prior: of the class frequencies, shape (H,).
        labels: class indices, shape (n,).
        weights: of the documents in the mean, shape (n,); None for equal ones.
    """
    low, high, away = 0.0, MOST_SCALE, f - prior
    for _ in range(20):
        middle = (low + high) / 2
        slopes = loss_and_slope(prior + middle * away, labels)[1] * away
        rises = float(np.sum(slopes if weights is None else slopes * weights[:, None])) > 0
        low, high = (low, middle) if rises else (middle, high)
    return low
