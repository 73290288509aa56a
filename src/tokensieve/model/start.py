"""Where training starts: a table of scores and values from token importance, and the prior."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np

from tokensieve.arrays import Floats, Ints
from tokensieve.text.counts import Counts

Table: TypeAlias = tuple[Floats, Floats]  # scores u and values w

# Chosen on validation documents of IMDB and Yelp: scores of a quarter of the range of log-ratios,
# values of eight times the log-ratios, divided among the classes
SCORE_PER_RANGE = 1 / 4
VALUE_PER_RATIO = 8
# Of 0 to 5, 3 has the least log loss on held-out prompts of benchmarks/pairs.py; 2 to 4 are alike
LOG_SINK_OF_PAIRS = 3.0
# Of scores in standard deviations, a type's value starts at this multiple of the mean score of its
# documents; SMOOTHING_OF_SCORES documents of the mean score are added to them, as to two classes
VALUE_PER_MEAN_SCORE = 4
SCORE_PER_MEAN_SCORE = 1 / 2
SMOOTHING_OF_SCORES = 2
MIN_CLASS_SIZE = 0.5  # documents that an empty class counts as, so that its prior is finite


def prior_of(sizes: Ints | Floats) -> Floats:
    """The logit of a document without known tokens, from the (weighted) documents of each class.

    Its shape is (1,) for two classes and (K,) otherwise.
    """
    share = np.maximum(sizes, MIN_CLASS_SIZE)
    log_share = np.log(share / share.sum())
    if len(sizes) == 2:
        return np.asarray(log_share[1:] - log_share[0])
    return np.asarray(log_share - log_share.mean())


def initial_table(present: Ints | Floats, sizes: Ints | Floats, prior: Floats) -> Table:
    """Scores and values from token importance.

    With r_{s,k} = log(1 + n/K · share of class k's documents that contain s), centred over classes:
    w_s = 8/K · r_{s,k} + prior (two classes: the difference of the two), u_s = (max_k r − min_k
    r)/4.

    Args:
        present: how many documents of each class contain each type, weighted, shape (types, K).
        sizes: how many documents each class has, weighted, shape (K,).
        prior: the logit of the class frequencies (`prior_of`), shape (1,) or (K,).

    Returns:
        u of shape (types,), and w of shape (types, 1) for two classes, (types, K) otherwise.
    """
    n_classes = len(sizes)
    mean_size = sizes.sum() / n_classes
    documents_at_mean_size = present * (mean_size / np.maximum(sizes, 1))
    r = np.log1p(documents_at_mean_size)
    u = (r.max(axis=1) - r.min(axis=1)) * SCORE_PER_RANGE
    if n_classes == 2:
        differences = r[:, 1:] - r[:, :1]
        return u, VALUE_PER_RATIO / 2 * differences + prior
    centred = r - r.mean(axis=1, keepdims=True)
    return u, VALUE_PER_RATIO / n_classes * centred + prior


def initial_table_of_scores(sums: Floats, sizes: Floats) -> Table:
    """Scores u and values from the mean label of each type's documents, in standard deviations.

    With m_s = Σ label / (documents + 2): w_s = 4 m_s, u_s = |m_s|/2.

    Args:
        sums: the labels of the documents that contain each type, added up, shape (types,).
        sizes: those documents, each as often as it weighs, shape (types,).
    """
    means = sums / (sizes + SMOOTHING_OF_SCORES)
    return SCORE_PER_MEAN_SCORE * np.abs(means), VALUE_PER_MEAN_SCORE * means[:, None]


def table_with_sink(
    counts: Counts, prior: Floats, strength: float, pairs: bool, without: Counts | None = None
) -> Table:
    """The table that training starts from, with the sink in its last row.

    The sink has the attention of a document of median length that says nothing (of pairs e³ times
    as much), and predicts the prior.

    Args:
        counts: the documents; rows 2i and 2i + 1 are a pair if `pairs`.
        prior: of the class frequencies.
        strength: factor of the scores and of the values' distance from the prior.
        pairs: whether documents are pairs.
        without: documents that do not count, although they are among the others.
    """
    present = counts.weighted_present
    sizes = counts.weighted_class_sizes
    if without is not None:
        present = present - without.weighted_present
        sizes = sizes - without.weighted_class_sizes
    if counts.numbers is None:
        u, w = initial_table(present, sizes, prior)
    else:
        sums = counts.sums_of_numbers
        if without is not None:
            sums = sums - without.sums_of_numbers
        u, w = initial_table_of_scores(sums, np.asarray(present.sum(axis=1), dtype=np.float64))
    sink = math.log(max(_weighted_median(counts.lengths, counts.weights), 1.0))
    if pairs:
        sink += LOG_SINK_OF_PAIRS
    scores = np.append(strength * u, sink)
    values = np.vstack([prior + strength * (w - prior), prior])
    return scores, values


def _weighted_median(x: Floats, weights: Floats | None) -> float:
    """The weighted median: half of the weight lies on either side."""
    if weights is None:
        return float(np.median(x))
    order = np.argsort(x, kind="stable")
    weight_so_far = np.cumsum(weights[order])
    # up to rounding, as the median of equal weights is the mean of two numbers
    halves = weight_so_far[-1] / 2 * np.array([1 - 1e-12, 1 + 1e-12])
    middle = np.searchsorted(weight_so_far, halves)
    return float(x[order][middle].mean())
