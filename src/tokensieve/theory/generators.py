"""Synthetic token data with known ground truth: the theory's two settings, and relaxations of
them."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from tokensieve.arrays import Floats, Ints
from tokensieve.errors import InputError
from tokensieve.text.counts import Counts

# What documents are called that `single_token` makes for `verify`.
GENERATED = "generated documents that satisfy Assumption 1"
# In a table of the types that each document holds: a place that is left empty.
_EMPTY = -1


def independent_tokens(
    n: int, n_types: int, length: int, n_irrelevant: int, delta_min: float = 0.1, seed: int = 0
) -> tuple[Counts, Floats]:
    """n ≥ 2 documents of T = `length` independent tokens given the label, P(s | y) ∝ 1 + y δ_s.

    Of |S| = `n_types` types `n_irrelevant` have δ_s = 0; the others come in ± pairs with |δ_s| from
    `delta_min` to 1. Under equal classes δ_s is the posterior difference P(1|s) − P(0|s). The
    paper's own generator (its equation 15) differs in detail.

    Returns:
        The documents, with classes "-1" and "+1", and δ, shape (|S|,).
    """
    relevant = n_types - n_irrelevant
    rng = np.random.default_rng(seed)
    spread = np.linspace(1.0, delta_min, relevant // 2)
    delta = np.concatenate([spread, -spread, np.zeros(n_irrelevant)])
    labels = _labels(n, rng)
    matrix = np.zeros((n, n_types))
    for k in (0, 1):
        weights = 1 + (2 * k - 1) * delta
        matrix[labels == k] = rng.multinomial(
            length, weights / weights.sum(), size=int(np.sum(labels == k))
        )
    names = _names(
        {"positive": relevant // 2, "negative": relevant // 2, "irrelevant": n_irrelevant}
    )
    return Counts.from_matrix(matrix, labels.tolist(), tokens=names), delta


def single_token(
    n: int,
    n_types: int,
    length: int,
    n_relevant: int,
    relevant_per_document: int = 1,
    leak: float = 0.0,
    label_rule: str = "token",
    seed: int = 0,
) -> tuple[Counts, Floats]:
    """Documents that satisfy Assumption 1 of Wu et al. (NeurIPS 2025) exactly, or relax one part of
    it.

    Document pairs (+, −) share length − m irrelevant tokens, all distinct, so those have α_s = 0
    exactly; each then holds its own m relevant ones.

    Args:
        n, length: documents, at least n_relevant because every relevant type is used; and T, tokens
            in each paired document.
        n_types: |S| = n_relevant + irrelevant types (+ 1 for the negator of label_rule "negation").
        n_relevant: even; half positive, half negative. With "xor": half in the first group, half in
            the second.
        relevant_per_document: m ≥ 1 distinct relevant tokens; 1 in Assumption 1.
        leak: chance, in [0, 0.5), that a relevant token is drawn from the other sign, which makes
            types partly relevant.
        label_rule: "token" (Assumption 1); "negation": every fourth pair holds a negator in place
            of one irrelevant token, which reverses the sign of its relevant token; "xor": a
            document holds one token of each group and the label is the product of their signs, so
            that every α_s is zero in expectation.

    Returns:
        The documents, and for each type +1, −1, or 0 (irrelevant, or carrying the label only
        jointly with another), shape (|S|,).

    Raises:
        InputError: sizes that cannot be met.
    """
    pair, half = label_rule == "xor", n_relevant // 2
    own = 2 if pair else relevant_per_document
    irrelevant = n_types - n_relevant - (label_rule == "negation")
    _check(n, length, n_relevant, irrelevant, own)
    rng = np.random.default_rng(seed)
    labels = _labels(n, rng)
    positive, negative = np.flatnonzero(labels == 1), np.flatnonzero(labels == 0)
    pairs = min(positive.size, negative.size)
    # Irrelevant tokens, equal within a ± pair; none in documents without a partner.
    shared = np.full((n, length - own), _EMPTY, np.int64)
    shared[positive[:pairs]] = shared[negative[:pairs]] = (
        _deal_hands(irrelevant, pairs, length - own, rng) + n_relevant
    )
    side = labels
    if label_rule == "negation":
        negated = np.concatenate([positive[:pairs:4], negative[:pairs:4]])
        side = labels.copy()
        side[negated] = 1 - labels[negated]
        shared[negated, :1] = n_types - 1
    if pair:  # the sign of a type is the parity of its number, the label the product of the signs
        first = _deal_hands(half, n, 1, rng)[:, 0]
        parity = (first + labels + 1) % 2
        second = 2 * rng.integers((half + 1) // 2, size=n) + parity
        relevant = np.stack([first, half + np.where(second < half, second, parity)], axis=1)
    else:  # types 0 … half−1 for positive documents, half … n_relevant−1 for negative ones
        relevant = np.empty((n, own), np.int64)
        for k in (0, 1):
            mine = np.flatnonzero(side == k)
            relevant[mine] = _deal_hands(half, mine.size, own, rng) + (0 if k else half)
        relevant = np.where(
            rng.random(relevant.shape) < leak, (relevant + half) % n_relevant, relevant
        )
    tokens = np.concatenate([relevant, shared], axis=1)
    rows, places = np.nonzero(tokens != _EMPTY)
    matrix = sp.coo_array((np.ones(rows.size), (rows, tokens[rows, places])), shape=(n, n_types))
    signs = np.repeat(
        [0.0 if pair else 1.0, 0.0 if pair else -1.0, 0.0], [half, half, n_types - n_relevant]
    )
    kinds = ("first", "second") if pair else ("positive", "negative")
    names = _names({kinds[0]: half, kinds[1]: half, "irrelevant": irrelevant})
    names += ["negator"] * (label_rule == "negation")
    return Counts.from_matrix(matrix, labels.tolist(), tokens=names), signs


def _check(n: int, length: int, n_relevant: int, irrelevant: int, own: int) -> None:
    smaller = int(_labels(n, np.random.default_rng(0)).sum())
    smaller = min(smaller, n - smaller)
    problem = ""
    if n_relevant < 2 or n_relevant % 2 or irrelevant < 0:
        problem = f"{n_relevant} relevant types leave {irrelevant} others: use an even number ≥ 2, and more types"
    elif not 1 <= own <= n_relevant // 2:
        problem = f"{own} relevant tokens per document: use 1 to {n_relevant // 2}, at most half of the relevant types"
    elif not own <= length <= own + irrelevant:
        problem = f"T = {length} with {own} relevant tokens and {irrelevant} irrelevant types: "
        problem += f"use {own} ≤ T ≤ {own + irrelevant}"
    elif smaller * own < n_relevant // 2 or smaller * (length - own) < irrelevant:
        problem = f"{smaller} documents of the smaller class cannot use all {n_relevant} relevant and {irrelevant} others: "
        problem += "use more"
    if problem:
        raise InputError(problem)


def _labels(n: int, rng: np.random.Generator) -> Ints:
    """Half of each class in random order, at least one of each where there are two documents."""
    labels = np.zeros(n, np.int64)
    labels[: max(round(n / 2), 1)] = 1
    return rng.permutation(labels)


def _deal_hands(types: int, hands: int, size: int, rng: np.random.Generator) -> Ints:
    """Hands of distinct types, shape (hands, size); the first hands together deal every type
    once."""
    out = np.empty((hands, size), np.int64)
    deck = rng.permutation(types)
    for h in range(hands):
        first = deck[h * size : (h + 1) * size]
        rest = np.setdiff1d(np.arange(types), first, assume_unique=True)
        out[h] = np.concatenate([first, rng.choice(rest, size - first.size, replace=False)])
    return out


def _names(kinds: dict[str, int]) -> list[str]:
    return [f"{kind}_{s}" for kind, size in kinds.items() for s in range(size)]
