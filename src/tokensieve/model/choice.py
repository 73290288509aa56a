"""What held-out documents choose: length and rate of training, strength of the start, and scale.

As attention adds up to one, multiplying the distance of all values from the prior by t does the
same to every decision value, f ← prior + t (f − prior). The **scale** t = 0 predicts the class
frequencies, so predictions for held-out documents are never worse than that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np
from polars import thread_pool_size as n_threads

from tokensieve.arrays import Floats, Ints
from tokensieve.model.adam import Schedule, train
from tokensieve.model.attention import logits, loss_and_slope
from tokensieve.model.held_out import SHORT, Part
from tokensieve.model.settings import FEW
from tokensieve.model.start import Table, table_with_sink
from tokensieve.progress import Progress
from tokensieve.text.counts import Counts

STRENGTHS = (0.25, 0.5, 1.0)  # of the start, that are tried if documents are few
RATES = (1.0, 0.1)  # of the scores, relative to the settings, for many short documents
CHECKS = 8  # of the held-out loss while training
PATIENCE = 3  # checks without improvement, after which a training stops
# standard errors by which an improvement on the class frequencies must exceed 0; of 0, 0.35, 0.5,
# 0.7 and 1: least log loss for 50 to 1,000 documents of four sets (benchmarks/small.py)
CAUTION = 0.7
# Without held-out documents, because a class has too few: least log loss of nine settings
FRACTION_OF_LENGTH_UNCHOSEN = 1 / 4
STRENGTH_UNCHOSEN = 0.5  # of the start
MAX_TYPES_SIDE_BY_SIDE = 100_000  # larger tables of several trainings do not fit into the cache
# With few held-out documents, all predicted correctly, the loss would keep falling as confidence
# grows beyond 2. A step is 2e-6.
MAX_SCALE = 2.0
SCALE_STEPS = 2**20


@dataclass(frozen=True)
class Choice:
    """How to train on all documents.

    Attributes:
        steps: length of training.
        score_rate: initial step size of the scores.
        strength: of the start (`table_with_sink`).
        scale: factor of the values' distance from the prior.
        table: after so many steps on all documents, if that training ran along; else None.
        checks: (steps, mean loss on held-out documents) during training.
    """

    steps: int
    score_rate: float
    strength: float = 1.0
    scale: float = 1.0
    table: Table | None = None
    checks: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class _State:
    """A training after some steps: its table, and the decision values of what it held out."""

    steps: int
    table: Table
    f: Floats


class _Trial:
    """Trainings with one strength and rate, one for each part that is held out.

    Attributes:
        runs: the trainings; each item is a state.
        n_parts: how many of them hold a part out. One more is on all documents, which the choice is
            for; it runs along where a core would be idle.
        best: the choice with the smallest loss so far.
        loss: that loss.
        n_worse: checks since then.
    """

    def __init__(self, start: Choice, runs: Sequence[Iterator[_State]], n_parts: int) -> None:
        self.runs = runs
        self.n_parts = n_parts
        self.best = start
        self.loss = math.inf
        self.n_worse = 0

    def check(self, states: list[_State], held_out: _HeldOut) -> None:
        """Judge the trainings after the next few steps, and keep these as best if the loss fell.

        Args:
            states: the state of each run, all after the same number of steps.
            held_out: the documents that each of them holds out, on which the loss is taken.
        """
        f = np.concatenate([state.f for state in states[: self.n_parts]])
        scale, loss = held_out.best_scale_and_loss(f)
        steps = states[0].steps
        checks = (*self.best.checks, (steps, loss))
        self.n_worse += 1
        self.best = replace(self.best, checks=checks)
        if loss < self.loss:
            # the last run, if there is one beyond the parts, is the one on all documents
            table = states[-1].table if len(states) > self.n_parts else None
            self.best = replace(self.best, steps=steps, scale=scale, table=table)
            self.loss = loss
            self.n_worse = 0

    @property
    def goes_on(self) -> bool:
        """Whether it still improves."""
        return self.n_worse < PATIENCE

    def end(self) -> None:
        """Free the tables of its runs."""
        self.runs = ()


class _HeldOut:
    """The documents (or pairs) that are held out, part after part, and how their loss is judged."""

    def __init__(self, counts: Counts, prior: Floats, pairs: bool, parts: Sequence[Part]) -> None:
        positions = [part.held_out for part in parts]
        per_example = 2 if pairs else 1
        n_examples = counts.n_documents // per_example
        self.prior = prior
        self.pairs = pairs
        # each is held out once, and rare types count
        self.is_few = n_examples <= FEW and (pairs or len(parts) > 1)
        self.labels = counts.targets[np.concatenate(positions)]
        if pairs:
            self.labels = np.ones(sum(map(len, positions)), np.int64)
        self.weights = None
        if counts.weights is not None:
            self.weights = counts.weights[::per_example][np.concatenate(positions)]
        self.counts = []
        for examples in positions:
            documents = examples
            if pairs:
                documents = np.column_stack([2 * examples, 2 * examples + 1]).ravel()
            self.counts.append(counts.rows(documents))

    def best_scale_and_loss(self, f: Floats) -> tuple[float, float]:
        """The scale of least loss, given the decision values of the documents, and that loss."""
        if self.pairs:
            f = f[::2] - f[1::2]
        caution = CAUTION if self.is_few else 0.0
        scale = best_scale(f, self.prior, self.labels, self.weights, caution)
        losses, _ = loss_and_slope(self.prior + scale * (f - self.prior), self.labels)
        return scale, float(np.average(losses, weights=self.weights))


def choose(
    counts: Counts, prior: Floats, schedule: Schedule, parts: Sequence[Part], progress: Progress
) -> Choice:
    """The length, strength, rate and scale with the smallest loss on held-out documents or pairs.

    A training is stopped after three checks without improvement. With many documents, held out in
    one part, only the full strength is tried. Trainings run side by side, a thread each; results
    are identical to those of sequential runs.

    Args:
        counts: n documents; rows 2i and 2i + 1 are a pair if the schedule is for pairs.
        prior: of the class frequencies.
        schedule: the longest training.
        parts: what is held out, at least one part.
        progress: is told how far the choice is.
    """
    held_out = _HeldOut(counts, prior, schedule.pairs, parts)
    pause = math.ceil(schedule.steps / CHECKS)
    trials = _trials(counts, prior, schedule, parts, held_out)
    n_side_by_side = len(trials) if counts.n_types <= MAX_TYPES_SIDE_BY_SIDE else 1
    with ThreadPoolExecutor(n_threads()) as pool:
        for first, done in product(
            range(0, len(trials), n_side_by_side), range(0, schedule.steps, pause)
        ):
            fraction = (first + n_side_by_side * done / schedule.steps) / len(trials)
            progress("choosing the length of training", fraction)
            running = [trial for trial in trials[first : first + n_side_by_side] if trial.goes_on]
            states = pool.map(next, [run for trial in running for run in trial.runs])
            for trial in running:
                of_trial = [next(states) for _ in trial.runs]
                trial.check(of_trial, held_out)
                if not trial.goes_on or of_trial[0].steps == schedule.steps:
                    trial.end()
    return min(trials, key=lambda trial: trial.loss).best


def _trials(
    counts: Counts,
    prior: Floats,
    schedule: Schedule,
    parts: Sequence[Part],
    held_out: _HeldOut,
) -> list[_Trial]:
    """A trial for each strength and rate that is worth it; none has begun."""
    n = counts.n_documents
    is_many_short = n > FEW and counts.matrix.nnz <= SHORT * n and not schedule.pairs
    strengths = STRENGTHS if held_out.is_few else (1.0,)
    rates = RATES if is_many_short else RATES[:1]
    trains_final_model = len(parts) == 1 and n_threads() > 1
    trials = []
    for strength, rate in product(strengths, rates):
        trial_schedule = replace(schedule, score_rate=schedule.score_rate * rate)
        runs = []
        for part, left_out in zip(parts, held_out.counts, strict=True):
            table = partial(table_with_sink, counts, prior, strength, schedule.pairs, left_out)
            runs.append(_run(counts, table, trial_schedule, part.learned, left_out))
        if trains_final_model:
            table = partial(table_with_sink, counts, prior, strength, schedule.pairs)
            runs.append(_run(counts, table, trial_schedule, None, None))
        start = Choice(schedule.steps, trial_schedule.score_rate, strength)
        trials.append(_Trial(start, runs, len(parts)))
    return trials


def _run(
    counts: Counts,
    make_table: Callable[[], Table],
    schedule: Schedule,
    learned: Ints | None,
    left_out: Counts | None,
) -> Iterator[_State]:
    """Train step by step, and pause where the runs of all parts are compared.

    Args:
        make_table: makes the scores and values to start from, when the run begins.
        learned: the documents (or pairs) to train on; None for all.
        left_out: the documents whose decision values each state has; None for none.
    """
    pause = math.ceil(schedule.steps / CHECKS)
    for steps, u, w in train(counts, *make_table(), schedule, pause, learned):
        f = np.empty(0) if left_out is None else logits(left_out.matrix, u, w)
        yield _State(steps, (u, w), f)


def choice_without_held_out(counts: Counts, schedule: Schedule, validates: bool) -> Choice:
    """The choice of training if nothing can be held out, or if that is not asked for
    (`validates`)."""
    if validates and counts.n_documents <= FEW and not schedule.pairs:
        steps = math.ceil(schedule.steps * FRACTION_OF_LENGTH_UNCHOSEN)
        return Choice(steps, schedule.score_rate, STRENGTH_UNCHOSEN)
    return Choice(schedule.steps, schedule.score_rate)


def best_scale(
    f: Floats,
    prior: Floats,
    labels: Ints | Floats,
    weights: Floats | None = None,
    caution: float = 0.0,
) -> float:
    """The factor t in [0, 2] of least L(t) + caution · SE(t), a multiple of 2⁻¹⁹.

    L is the mean of the losses ℓ of prior + t (f − prior), which is convex in t, and
    SE(t)² = Σ s_X² (d_X − d)², with d_X(t) = ℓ_X(t) − ℓ_X(0), their mean d, and shares s of the
    weights.

    Args:
        f: decision values, shape (n, outputs).
        prior: of the class frequencies, shape (outputs,).
        labels: class indices, or scores, shape (n,).
        weights: those of the documents in the mean, shape (n,); all equal if None.
        caution: how many standard errors an improvement on the class frequencies must exceed.
    """
    away = f - prior
    share = np.full(len(f), 1 / len(f)) if weights is None else weights / weights.sum()
    start, _ = loss_and_slope(prior + 0 * away, labels)

    def slope_at(t: float) -> float:
        losses, slopes = loss_and_slope(prior + t * away, labels)
        rise = share * (slopes * away).sum(axis=1)  # derivatives of the terms of L
        return float(rise.sum()) + caution * _slope_of_error(share, losses - start, rise)

    return _last_step_before_rise(slope_at, MAX_SCALE, SCALE_STEPS)


def _last_step_before_rise(slope_at: Callable[[float], float], end: float, n_steps: int) -> float:
    """The last of the points 0, end/n, 2 end/n, … below `end` that lies before the slope's change
    of sign from − to +.

    Halving finds it after log₂ n slopes. Most of them are saved by trying the points next to where
    the slope would be zero if it rose evenly from one end of the interval to the other (regula
    falsi; the slope of an end that stays twice is halved, after "Illinois").
    """
    low = 0
    high = n_steps
    slope_low = slope_at(0.0)
    slope_high = slope_at(end)
    if slope_low > 0:
        return 0.0
    if slope_high <= 0:
        return end * (n_steps - 1) / n_steps
    last_moved = ""
    while high - low > 1:
        fraction = slope_low / (slope_low - slope_high)
        tried = low + round(fraction * (high - low))
        tried = min(max(tried, low + 1), high - 1)
        slope = slope_at(end * tried / n_steps)
        if slope > 0:
            if last_moved == "high":
                slope_low /= 2
            high = tried
            slope_high = slope
            last_moved = "high"
        else:
            if last_moved == "low":
                slope_high /= 2
            low = tried
            slope_low = slope
            last_moved = "low"
    return end * low / n_steps


def _slope_of_error(share: Floats, d: Floats, rise: Floats) -> float:
    """d SE/dt, given d_X and the terms s_X d_X'(t); 0 where SE is."""
    terms = share * d
    deviations = terms - share * terms.sum()
    error = math.sqrt(deviations @ deviations)
    if error == 0:
        return 0.0
    return float(deviations @ (rise - share * rise.sum()) / error)
