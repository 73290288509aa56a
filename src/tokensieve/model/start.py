"""Where training starts: random embeddings as in the theory, or a table of scores and values from token importance."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tokensieve.errors import InputError
from tokensieve.text.counts import Counts, Floats, Ints


class Start(NamedTuple):
    """The random start of Lemma 4.1.

    Attributes:
        E: embeddings E⁰, shape (|S|, d), entries N(0, 1/d).
        p: `<cls>` vector, shape (d,), entries N(0, 1/d).
        v: output vector of unit norm, shape (d,); with several heads orthonormal columns, shape (d, K).
    """

    E: Floats
    p: Floats
    v: Floats


def initialise(n_types: int, d: int, heads: int = 1, seed: int = 0) -> Start:
    """Draw E⁰, p ~ N(0, I/d) and v: a uniformly random unit vector, or K orthonormal columns.

    Args:
        n_types: |S| ≥ 1.
        d: embedding dimension, at least the number of heads.
        heads: 1 for two classes with one output vector, K for K classes.
        seed: the same seed gives the same bits.

    Raises:
        InputError: a size below one, or more heads than dimensions.
    """
    if n_types < 1 or heads < 1 or d < heads:
        raise InputError(
            f"cannot draw {n_types} embeddings of dimension {d} with {heads} heads: use at least one type and d ≥ heads"
        )
    rng = np.random.default_rng(seed)
    p = rng.standard_normal(d) / math.sqrt(d)
    directions = rng.standard_normal((d, heads))
    v = directions[:, 0] / np.linalg.norm(directions) if heads == 1 else np.linalg.qr(directions)[0]
    E = rng.standard_normal((n_types, d))
    E /= math.sqrt(d)
    return Start(E, p, v)


def prior_of(sizes: Ints | Floats) -> Floats:
    """What a document without known tokens is answered, from the (weighed) documents of each class: shape (1,) or (K,)."""
    share = np.maximum(sizes, 0.5)
    log_share = np.log(share / share.sum())
    return np.asarray(log_share[1:] - log_share[0] if len(sizes) == 2 else log_share - log_share.mean())


def initial_table(counts: Counts, prior: Floats, without: Counts | None = None) -> tuple[Floats, Floats]:
    """Where training starts: (u, w) from token importance.

    With r_{s,k} = log(1 + n/K · share of class k's documents that contain s), centred over classes:
    w_s = 8/K · r_{s,k} + prior (two classes: the difference of the two), u_s = (max_k r − min_k r)/4. The factors were
    chosen on validation documents of IMDB and Yelp. Documents of `counts` that are also in `without` do not count; one with
    a weight counts that often.
    """
    present, sizes = counts.weighed
    if without is not None:
        present, sizes = present - without.weighed[0], sizes - without.weighed[1]
    return start_of(present, sizes, prior)


def start_of(present: Ints | Floats, sizes: Ints | Floats, prior: Floats) -> tuple[Floats, Floats]:
    """(u, w) of `initial_table` from the documents of each class that contain each type, (|S|, K), and class sizes, (K,)."""
    k = len(sizes)
    r = np.log1p(present * (sizes.sum() / k / np.maximum(sizes, 1)))
    u = (r.max(axis=1) - r.min(axis=1)) / 4
    if k == 2:
        return u, 4 * (r[:, 1:] - r[:, :1]) + prior
    return u, 8 / k * (r - r.mean(axis=1, keepdims=True)) + prior
