"""From counts to trained scores and values: initialisation, choices by held-out documents, and training on all documents.

Held-out documents decide how long to train, of few documents how strong the start is, of many short ones how fast attention moves
away from the start, and the scale of the values: as attention adds up to one, multiplying the distance of all values from the prior
by t does the same to every decision value, f ← prior + t (f − prior). t = 0 predicts the class frequencies, so predictions for
held-out documents are never worse than that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp
from polars import thread_pool_size as cpu_count
from scipy.sparse.csgraph import connected_components

from tokensieve.arrays import Floats, Ints
from tokensieve.errors import InputError
from tokensieve.model.adam import Schedule, train
from tokensieve.model.attention import Model, logits, loss_and_slope
from tokensieve.model.settings import FEW, TrainSettings
from tokensieve.progress import Progress, silent
from tokensieve.read.split import folds, split_units, stratified
from tokensieve.text.counts import Counts
from tokensieve.text.vocabulary import Vocabulary

Table: TypeAlias = tuple[Floats, Floats]
_Run: TypeAlias = Iterator[
    tuple[int, Table, Floats]
]  # steps, table, decision values of what is held out
LEAST_STEPS = 500
CAUTION = 0.7  # of 0, 0.35, 0.5, 0.7 and 1: least log loss for 50 to 1,000 documents of four sets (benchmarks/small.py)
FOLDS = 5  # parts in which few documents are each held out once
SHORT = 50  # token types per document, on average, up to which documents are short
RATES = (
    1.0,
    0.1,
)  # of the scores, relative to the settings, that are tried on many short documents
PAIRS = (
    10**7
)  # of documents that share a rare type, up to which they are compared: half a second and 250 MB
# Share of the documents within others, or around others, from which on they stay together: at most 0.56 on seven data sets of short
# texts as they are, at least 0.75 where spans of their sentences were added.
OVERLAP = 2 / 3
HELD_OUT = 50_000  # more documents than that add nothing to the choice of when to stop


class _Trial:
    """A training run with one strength and rate, and the length and scale with the smallest loss on held-out documents."""

    def __init__(
        self, steps: int, score_rate: float, strength: float = 1.0, runs: Sequence[_Run] = ()
    ) -> None:
        self.steps = steps  # of training
        self.score_rate = score_rate  # initial step size of the scores
        self.strength = strength  # of the start
        self.runs = runs  # one for each part that is held out
        self.loss, self.scale = math.inf, 1.0  # after so many steps, with that scale of the values
        self.table: Table | None = (
            None  # after so many steps on all documents, if that training runs along
        )
        self.checks: list[tuple[int, float]] = []  # (steps, mean loss)
        self.worse = 0  # checks since the best


def fit(
    counts: Counts,
    settings: TrainSettings | None = None,
    vocabulary: Vocabulary | None = None,
    progress: Progress | None = None,
    units: Ints | None = None,
    pairs: bool = False,
) -> Model:
    """Learn scores and values; the same seed gives bit-identical results.

    Args:
        counts: n labelled documents over |S| types, of at least two classes. Weights, if any, apply to the loss in training, in
            validation and at the start. Only ratios matter; a document of weight 0 is left out.
        settings: `TrainSettings()` if None; for pairs `batch_size` counts pairs, and an epoch is as many pairs as there are
            documents.
        vocabulary: how text becomes these counts, for a model that reads texts.
        progress: called with (stage, share done).
        units: the group of each document (or pair), shape (n,); no group is both trained on and held out.
        pairs: rows 2i (preferred) and 2i + 1 are a pair (`tokensieve.model.attention`).
    """
    settings = (settings or TrainSettings()).of_documents(counts.n_documents)
    progress = progress or silent
    if units is not None and units.shape != (counts.n_documents // (1 + pairs),):
        raise InputError(
            f"{counts.n_documents} documents, but {units.size} groups: one is needed for each document"
        )
    if counts.weights is not None:  # both sides of a pair weigh the same
        part, kept = counts.of_positive_weight()
        for name, before, after in zip(
            counts.classes, counts.class_sizes, part.class_sizes, strict=True
        ):
            if before and not after:
                raise InputError(
                    f"every document of class {name!r} has weight 0: set a weight for one, or leave the class out"
                )
        counts, units = part, None if units is None else units[kept[:: 1 + pairs] // (1 + pairs)]
    prior = np.zeros(1) if pairs else prior_of(counts.weighted_class_sizes)
    schedule = _schedule(counts.n_documents, settings, pairs)
    held_out = (
        _held_out_pairs(counts, settings, units) if pairs else _held_out(counts, settings, units)
    )
    best = _choose(counts, prior, schedule, settings, held_out, progress)
    progress("training", 0.0)
    table = best.table
    if table is None:
        rated = replace(schedule, score_rate=best.score_rate)
        table = next(
            train(counts, *_first_table(counts, prior, best.strength, pairs), rated, best.steps)
        )[1:]
    u, w = table
    return Model(
        classes=np.asarray(counts.classes),
        scores=u[:-1],
        values=prior + best.scale * (w[:-1] - prior),
        prior=prior,
        tokens=counts.tokens,
        vocabulary=vocabulary,
        steps=best.steps,
        score_rate=best.score_rate,
        validation=np.array(best.checks).reshape(-1, 2),
        sink=float(u[-1]),
        settings=settings.parameters(),
        pairs=pairs,
    )


def refit(counts: Counts, model: Model, of: int, settings: TrainSettings) -> Model:
    """Scores and values learned from `counts`, of documents over any token types, as fast and in as many passes as `model`
    took over its `of` documents with these settings, so that no length of training has to be chosen again."""
    if counts.weights is not None:
        counts = counts.of_positive_weight()[0]
    n = counts.n_documents
    prior = model.prior if model.pairs else prior_of(counts.weighted_class_sizes)
    schedule = _schedule(n, settings, model.pairs)
    schedule = (
        schedule if model.score_rate is None else replace(schedule, score_rate=model.score_rate)
    )
    stop = min(
        schedule.steps, max(1, round(model.steps * (n / of if model.steps > LEAST_STEPS else 1)))
    )
    steps, u, w = next(
        train(counts, *_first_table(counts, prior, 1.0, model.pairs), schedule, stop)
    )
    found = replace(model, scores=u[:-1], values=w[:-1], sink=float(u[-1]), prior=prior)
    return replace(found, tokens=counts.tokens, vocabulary=None, steps=steps)


def best_scale(
    f: Floats, prior: Floats, labels: Ints, weights: Floats | None = None, caution: float = 0.0
) -> float:
    """The factor t in [0, 2] of least L(t) + caution · SE(t), by halving: L is the mean of the losses ℓ of prior + t (f − prior),
    which is convex in t, and SE(t)² = Σ s_X² (d_X − d)², with d_X(t) = ℓ_X(t) − ℓ_X(0), their mean d, and shares s of the weights.

    f has shape (n, H) and the prior of the class frequencies (H,); labels are class indices, and weights those of the documents
    in the mean. `caution` is how many standard errors an improvement on the class frequencies must exceed.
    """
    # With few held-out documents, all predicted correctly, the loss would keep falling as confidence grows beyond 2.
    low, high, away = 0.0, 2.0, f - prior
    share = np.full(len(f), 1 / len(f)) if weights is None else weights / weights.sum()
    start = loss_and_slope(prior + 0 * away, labels)[0]
    for _ in range(20):
        middle = (low + high) / 2
        losses, slopes = loss_and_slope(prior + middle * away, labels)
        rise, more = share * (slopes * away).sum(axis=1), share * (losses - start)
        above = more - share * more.sum()
        error = math.sqrt(above @ above)
        slower = caution * (above @ (rise - share * rise.sum())) / error if error > 0 else 0.0
        low, high = (low, middle) if rise.sum() + slower > 0 else (middle, high)
    return low


def _weighted_median(x: Floats, weights: Floats | None) -> float:
    """The weighted median: half of the weight lies on either side."""
    if weights is None:
        return float(np.median(x))
    order = np.argsort(x, kind="stable")
    below = np.cumsum(weights[order])
    ends = np.searchsorted(below, below[-1] / 2 * np.array([1 - 1e-12, 1 + 1e-12]))
    return float(x[order][ends].mean())


def _schedule(documents: int, settings: TrainSettings, pairs: bool) -> Schedule:
    return Schedule(
        steps=max(settings.max_epochs * math.ceil(documents / settings.batch_size), LEAST_STEPS),
        batch_size=settings.batch_size,
        score_rate=settings.score_rate,
        # f of a difference has twice the range; chosen on held-out prompts
        value_rate=settings.value_rate * (2.0 if pairs else 1),
        seed=settings.seed,
        pairs=pairs,
    )


def _first_table(
    counts: Counts, prior: Floats, strength: float, pairs: bool, without: Counts | None = None
) -> Table:
    """The table that training starts from, and in its last row the sink: as much as a document of median length that says
    nothing (of pairs e³ times as much), predicted by the prior. Documents that are also in `without` do not count.

    Of 0 to 5 in the log, 3 has the least log loss on held-out prompts of benchmarks/pairs.py; 2 to 4 are alike.
    """
    present = counts.weighted_present
    sizes = counts.weighted_class_sizes
    if without is not None:
        present = present - without.weighted_present
        sizes = sizes - without.weighted_class_sizes
    u, w = initial_table(present, sizes, prior)
    sink = math.log(max(_weighted_median(counts.lengths, counts.weights), 1.0)) + 3.0 * pairs
    return np.append(strength * u, sink), np.vstack([prior + strength * (w - prior), prior])


def _held_out(
    counts: Counts, settings: TrainSettings, units: Ints | None
) -> list[tuple[Ints, Ints]]:
    """Pairs of positions, those to learn from and those to choose on. With few documents, each is held out once; with many, a
    fraction is."""
    n, labels, seed = counts.n_documents, counts.labels, settings.seed
    # Of many documents a share is held out once; of few, a part of each class is in every fold, and from 40 on folds may lack a
    # class: the scale that they choose is still better than none.
    least = 10 if n > FEW else 2 if n >= 40 else FOLDS
    alone = units is not None and len(np.unique(units)) < 2
    if settings.validation_share <= 0 or counts.class_sizes.min() < least or alone:
        return []
    family = _families(counts) if units is None else None
    if n <= FEW:
        return folds(
            labels,
            FOLDS,
            seed,
            units if family is None else np.where(family < 0, np.arange(n, 2 * n), family),
        )
    share = min(settings.validation_share, HELD_OUT / n)
    if family is not None:
        known = np.flatnonzero(family >= 0)
        heads = known[np.unique(family[known], return_index=True)[1]]
        size = math.ceil(max(share, counts.n_classes / len(heads)) * len(heads))
        chosen = np.isin(family, family[heads[stratified(labels[heads], size, seed)[1]]])
        return [(np.flatnonzero(~chosen), np.flatnonzero(chosen))]
    if units is None:
        return [stratified(labels, math.ceil(max(share, counts.n_classes / n) * n), seed)]
    chosen = split_units(units, labels, share, seed)
    return [(np.flatnonzero(~chosen), np.flatnonzero(chosen))]


def _families(counts: Counts) -> Ints | None:
    """Of short documents that mostly overlap, such as the phrases of sentences: a number for each, shape (n,), the same for those
    that are parts of one another, and −1 where that cannot be told; None for other documents, and for too many to compare.

    A document is part of another that contains 80% of its rare types, at least two; rare are those of 2 to 50 documents. Without
    this, what is held out has been learned from, and training goes on for too long.
    """
    m, n = counts.matrix, counts.n_documents
    if m.nnz > SHORT * n:
        return None
    frequency = np.bincount(m.indices, minlength=m.shape[1])
    rare = np.flatnonzero((frequency >= 2) & (frequency <= 50))
    if np.square(frequency[rare]).sum() > PAIRS:
        return None
    held = sp.csr_array((np.ones(m.nnz, np.int32), m.indices, m.indptr), shape=m.shape)[:, rare]
    own, shared = np.diff(held.indptr), (held @ held.T).tocoo()
    part, whole = shared.coords
    near = (part != whole) & (own[part] >= 2) & (shared.data >= 0.8 * own[part])
    links = sp.coo_array(
        (np.ones(int(near.sum()), np.int8), (part[near], whole[near])), shape=(n, n)
    )
    family = connected_components(links, directed=False)[1].astype(np.int64)
    known = own >= 2
    overlapping = np.count_nonzero((np.bincount(family)[family] > 1) & known)
    heads = np.unique(family[known], return_index=True)[1]
    least = np.bincount(counts.labels[known][heads], minlength=counts.n_classes).min()
    enough = least >= (10 if n > FEW else 2)
    return (
        np.where(known, family, -1)
        if enough and overlapping > OVERLAP * np.count_nonzero(known)
        else None
    )


def _held_out_pairs(
    counts: Counts, settings: TrainSettings, units: Ints | None
) -> list[tuple[Ints, Ints]]:
    """The same for pairs, in whole groups (prompts); with fewer than 20 pairs nothing is chosen."""
    n = counts.n_documents // 2
    groups = np.arange(n) if units is None else units
    names = np.random.default_rng(settings.seed).permutation(np.unique(groups))
    if settings.validation_share <= 0 or n < 20 or len(names) < FOLDS:
        return []
    drawn = [names[i::FOLDS] for i in range(FOLDS)]
    if n > 20_000:  # too many to hold out each once
        drawn = [names[: max(round(min(settings.validation_share, HELD_OUT / n) * len(names)), 1)]]
    held = [np.isin(groups, some) for some in drawn]
    return [(np.flatnonzero(~part), np.flatnonzero(part)) for part in held]


def _choose(
    counts: Counts,
    prior: Floats,
    schedule: Schedule,
    settings: TrainSettings,
    parts: list[tuple[Ints, Ints]],
    progress: Progress,
) -> _Trial:
    """The length, strength, rate and scale with the smallest loss on held-out documents or pairs. A training run is stopped after
    three checks without improvement. With many documents, held out in one part, only the full strength is tried."""
    if not parts:
        if settings.validation_share > 0 and counts.n_documents <= FEW and not schedule.pairs:
            # too few of a class for folds: a quarter of the full length, half of the start; least log loss of nine settings
            return _Trial(math.ceil(schedule.steps / 4), schedule.score_rate, strength=0.5)
        return _Trial(schedule.steps, schedule.score_rate)
    pairs, cores = schedule.pairs, cpu_count()
    held = []
    for inside, outside in parts:
        documents = np.column_stack([2 * outside, 2 * outside + 1]).ravel() if pairs else outside
        held.append((inside, counts.rows(documents)))
    labels = np.concatenate(
        [np.ones(len(out), np.int64) if pairs else counts.labels[out] for _, out in parts]
    )
    weights = (
        None
        if counts.weights is None
        else np.concatenate([counts.weights[:: 1 + pairs][out] for _, out in parts])
    )
    several = counts.n_documents // (1 + pairs) <= FEW and (pairs or len(parts) > 1)
    short = (
        counts.n_documents > FEW and counts.matrix.nnz <= SHORT * counts.n_documents and not pairs
    )
    pause = math.ceil(schedule.steps / 8)

    def run(
        strength: float, rated: Schedule, inside: Ints | None = None, out: Counts | None = None
    ) -> _Run:
        table = _first_table(counts, prior, strength, pairs, out)
        for steps, u, w in train(counts, *table, rated, pause, inside):
            yield steps, (u, w), np.empty(0) if out is None else logits(out.matrix, u, w)

    trials = []
    for strength, rate in product(
        (0.25, 0.5, 1.0) if several else (1.0,), RATES if short else RATES[:1]
    ):
        rated = replace(schedule, score_rate=schedule.score_rate * rate)
        runs = [run(strength, rated, *part) for part in held]
        # if one part is held out and a core would be idle, the training on all documents, which the choice is for, runs along
        runs += [run(strength, rated)] * (len(held) == 1 and cores > 1)
        trials.append(_Trial(schedule.steps, rated.score_rate, strength, runs))
    # Trainings run side by side, a thread each; every one of them has the bits that it has alone. Where tables are small, all do.
    together = len(trials) if counts.n_types <= 100_000 else 1
    with ThreadPoolExecutor(cores) as pool:
        for first, check in product(
            range(0, len(trials), together), range(0, schedule.steps, pause)
        ):
            progress(
                "choosing the length of training",
                (first + together * check / schedule.steps) / len(trials),
            )
            going = [trial for trial in trials[first : first + together] if trial.worse < 3]
            found = pool.map(next, [run for trial in going for run in trial.runs])
            for trial in going:
                states = [next(found) for _ in trial.runs]
                values = np.concatenate([values for _, _, values in states[: len(held)]])
                f = (values[::2] - values[1::2]) if pairs else values
                scale = best_scale(f, prior, labels, weights, CAUTION * several)
                losses = loss_and_slope(prior + scale * (f - prior), labels)[0]
                trial.checks.append((states[0][0], float(np.average(losses, weights=weights))))
                trial.worse += 1
                if trial.checks[-1][1] < trial.loss:
                    (trial.steps, trial.loss), trial.scale, trial.worse = trial.checks[-1], scale, 0
                    trial.table = states[-1][1] if len(states) > len(held) else None
                if trial.worse == 3 or states[0][0] == schedule.steps:
                    trial.runs = ()  # frees their tables
    return min(trials, key=lambda trial: trial.loss)


def prior_of(sizes: Ints | Floats) -> Floats:
    """The prediction for a document without known tokens, from the (weighted) documents of each class: shape (1,) or (K,)."""
    share = np.maximum(sizes, 0.5)
    log_share = np.log(share / share.sum())
    return np.asarray(
        log_share[1:] - log_share[0] if len(sizes) == 2 else log_share - log_share.mean()
    )


def initial_table(present: Ints | Floats, sizes: Ints | Floats, prior: Floats) -> Table:
    """Where training starts: (u, w) from token importance.

    With r_{s,k} = log(1 + n/K · share of class k's documents that contain s), centred over classes:
    w_s = 8/K · r_{s,k} + prior (two classes: the difference of the two), u_s = (max_k r − min_k r)/4. The factors were
    chosen on validation documents of IMDB and Yelp. `present`, shape (|S|, K), and `sizes`, shape (K,), count the documents of
    each class that contain each type, and all of them, each as often as it weighs.
    """
    k = len(sizes)
    r = np.log1p(present * (sizes.sum() / k / np.maximum(sizes, 1)))
    u = (r.max(axis=1) - r.min(axis=1)) / 4
    if k == 2:
        return u, 4 * (r[:, 1:] - r[:, :1]) + prior
    return u, 8 / k * (r - r.mean(axis=1, keepdims=True)) + prior
