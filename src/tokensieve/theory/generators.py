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
    n_positive = (n_types - n_irrelevant) // 2
    rng = np.random.default_rng(seed)
    spread = np.linspace(1.0, delta_min, n_positive)
    delta = np.concatenate([spread, -spread, np.zeros(n_irrelevant)])
    labels = _labels(n, rng)
    matrix = np.zeros((n, n_types))
    for label, sign in ((0, -1), (1, 1)):
        weights = 1 + sign * delta
        is_of_class = labels == label
        matrix[is_of_class] = rng.multinomial(
            length, weights / weights.sum(), size=int(is_of_class.sum())
        )
    names = _names({"positive": n_positive, "negative": n_positive, "irrelevant": n_irrelevant})
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
    is_xor = label_rule == "xor"
    has_negator = label_rule == "negation"
    n_own = 2 if is_xor else relevant_per_document
    n_irrelevant = n_types - n_relevant - int(has_negator)
    _check(n, length, n_relevant, n_irrelevant, n_own)
    rng = np.random.default_rng(seed)
    labels = _labels(n, rng)
    shared = _shared_tokens(labels, n_irrelevant, length - n_own, rng)
    shared[shared != _EMPTY] += n_relevant
    if is_xor:
        relevant = _relevant_of_both_groups(labels, n_relevant // 2, rng)
    else:
        sides = _negate(labels, shared, n_types - 1) if has_negator else labels
        relevant = _relevant_of_one_side(sides, n_relevant, n_own, leak, rng)
    names, signs = _types(n_relevant // 2, n_irrelevant, is_xor, has_negator)
    matrix = _count(np.concatenate([relevant, shared], axis=1), n_types)
    return Counts.from_matrix(matrix, labels.tolist(), tokens=names), signs


def _partners(labels: Ints) -> tuple[Ints, Ints]:
    """The positive documents that have a negative partner, and these partners."""
    positive = np.flatnonzero(labels == 1)
    negative = np.flatnonzero(labels == 0)
    n_pairs = min(len(positive), len(negative))
    return positive[:n_pairs], negative[:n_pairs]


def _negate(labels: Ints, shared: Ints, negator: int) -> Ints:
    """Puts a negator into every fourth pair; the side of each document's relevant tokens."""
    negated = np.concatenate([partners[::4] for partners in _partners(labels)])
    shared[negated, :1] = negator
    sides = labels.copy()
    sides[negated] = 1 - labels[negated]
    return sides


def _shared_tokens(labels: Ints, n_irrelevant: int, size: int, rng: np.random.Generator) -> Ints:
    """Irrelevant tokens, equal within a ± pair; none in documents without a partner."""
    positive, negative = _partners(labels)
    hands = _deal_hands(n_irrelevant, len(positive), size, rng)
    shared = np.full((len(labels), size), _EMPTY, np.int64)
    shared[positive] = hands
    shared[negative] = hands
    return shared


def _relevant_of_both_groups(labels: Ints, half: int, rng: np.random.Generator) -> Ints:
    """One token of each group: the sign of a type is the parity of its number, and the label is the
    product of the two signs."""
    first = _deal_hands(half, len(labels), 1, rng)[:, 0]
    parity = (first + labels + 1) % 2
    second = 2 * rng.integers((half + 1) // 2, size=len(labels)) + parity
    second = np.where(second < half, second, parity)
    return np.stack([first, half + second], axis=1)


def _relevant_of_one_side(
    sides: Ints, n_relevant: int, n_own: int, leak: float, rng: np.random.Generator
) -> Ints:
    """The first half of the relevant types for positive documents, the second for negative ones."""
    half = n_relevant // 2
    relevant = np.empty((len(sides), n_own), np.int64)
    for side, first_type in ((0, half), (1, 0)):
        documents = np.flatnonzero(sides == side)
        relevant[documents] = _deal_hands(half, len(documents), n_own, rng) + first_type
    leaks = rng.random(relevant.shape) < leak
    return np.where(leaks, (relevant + half) % n_relevant, relevant)


def _count(tokens: Ints, n_types: int) -> sp.coo_array:
    """How often each document, a row of types, contains each type."""
    rows, places = np.nonzero(tokens != _EMPTY)
    entries = (rows, tokens[rows, places])
    return sp.coo_array((np.ones(len(rows)), entries), shape=(len(tokens), n_types))


def _types(
    half: int, n_irrelevant: int, is_xor: bool, has_negator: bool
) -> tuple[list[str], Floats]:
    """Names and signs of the types."""
    groups = {"first": 0.0, "second": 0.0} if is_xor else {"positive": 1.0, "negative": -1.0}
    names = _names(dict.fromkeys(groups, half) | {"irrelevant": n_irrelevant})
    if has_negator:
        names.append("negator")
    signs = np.zeros(len(names))
    signs[: 2 * half] = np.repeat(list(groups.values()), half)
    return names, signs


def _check(n: int, length: int, n_relevant: int, n_irrelevant: int, n_own: int) -> None:
    """Raises an `InputError` if some relevant or irrelevant type would have no place."""
    n_positive = int(_labels(n, np.random.default_rng(0)).sum())
    smaller = min(n_positive, n - n_positive)
    half = n_relevant // 2
    problem = ""
    if n_relevant < 2 or n_relevant % 2 or n_irrelevant < 0:
        problem = (
            f"{n_relevant} relevant types leave {n_irrelevant} others: "
            "use an even number ≥ 2, and more types"
        )
    elif not 1 <= n_own <= half:
        problem = (
            f"{n_own} relevant tokens per document: "
            f"use 1 to {half}, at most half of the relevant types"
        )
    elif not n_own <= length <= n_own + n_irrelevant:
        problem = (
            f"T = {length} with {n_own} relevant tokens and {n_irrelevant} irrelevant types: "
            f"use {n_own} ≤ T ≤ {n_own + n_irrelevant}"
        )
    elif smaller * n_own < half or smaller * (length - n_own) < n_irrelevant:
        problem = (
            f"{smaller} documents of the smaller class cannot use all {n_relevant} relevant and "
            f"{n_irrelevant} others: use more"
        )
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
        undealt = np.setdiff1d(np.arange(types), first, assume_unique=True)
        out[h] = np.concatenate([first, rng.choice(undealt, size - first.size, replace=False)])
    return out


def _names(kinds: dict[str, int]) -> list[str]:
    return [f"{kind}_{s}" for kind, size in kinds.items() for s in range(size)]
