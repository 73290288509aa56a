"""Whether a model relies on the order of two words, and not only on their presence.

Two words that stand in many documents change places: what the answer loses is the effect of their
order. Everything else in the document stays, so that no word is gained or lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from tokensieve.arrays import Floats, Ints
from tokensieve.diagnose.effects.confirming import FIRST, Trials
from tokensieve.diagnose.effects.estimates import Sizes, mean_sizes
from tokensieve.diagnose.effects.forms import signed_towards, target_class
from tokensieve.diagnose.effects.measuring import Measured
from tokensieve.diagnose.subjects.passages import kind_of

N_WORDS = 16  # the words of largest total effect; pairs of others move less
MIN_TOGETHER = 10  # inputs with both words, in either order
MIN_EITHER_ORDER = 0.1  # of these: an order that hardly varies is a phrase
N_SCREENED = 24  # pairs that are swapped in few inputs first
SCREENING_INPUTS = 6
N_MEASURED = 8


@dataclass(frozen=True)
class OrderEffect:
    """What it does that one word stands before another.

    Attributes:
        first, second: word types.
        n_inputs: inputs with both.
        swapped: sizes of the changes when they change places, signed towards the class that the
            order is evidence for.
        target: that class.
    """

    first: int
    second: int
    n_inputs: int
    swapped: Sizes
    target: int


def probe_orders(measured: Measured, trials: Trials, tokens: Sequence[str]) -> list[OrderEffect]:
    """Swap pairs of the words with the largest effects, in inputs that contain both.

    Marks are left out: in the place of a word, and a word in theirs, they join other words.
    """
    has_letters = np.array(
        [tokens[s][-1].isalnum() or kind_of(tokens[s]) != "word" for s in trials.words]
    )
    words = trials.words[has_letters]
    sizes = np.nan_to_num(trials.removed(measured).mean[has_letters])
    totals = sizes * measured.inputs_with()[words]
    largest = words[np.argsort(-totals, kind="stable")[:N_WORDS]]
    pairs = _varying_pairs(measured, np.sort(largest))
    if not pairs:
        return []
    screened = _swap(measured, pairs, SCREENING_INPUTS, "model: swapping words")
    size = np.array([np.abs(change).mean() for change in screened])
    best = np.argsort(-size, kind="stable")[:N_MEASURED]
    chosen = [pairs[i] for i in best]
    changes = _swap(measured, chosen, FIRST, "model: orders of words")
    return [_effect(pair, change) for pair, change in zip(chosen, changes, strict=True)]


@dataclass(frozen=True)
class _Pair:
    """Two words, and the inputs in which the first stands before the second, and the reverse."""

    first: int
    second: int
    forward: Ints
    backward: Ints

    @property
    def n_inputs(self) -> int:
        """Inputs with both words."""
        return len(self.forward) + len(self.backward)

    def drawn_inputs(self, n: int, seed: int) -> Ints:
        """At most n random inputs with both words; more begin with the same ones."""
        rng = np.random.default_rng([seed, self.first, self.second])
        return rng.permutation(np.r_[self.forward, self.backward])[:n]

    def as_if_forward(self, inputs: Ints, lost: Floats) -> Floats:
        """What answers lose by the swap, (n, H), with the sign turned where it was backward."""
        sign = np.where(np.isin(inputs, self.forward), 1.0, -1.0)
        return np.asarray(sign[:, None] * lost)


def _varying_pairs(measured: Measured, words: Ints) -> list[_Pair]:
    """Pairs of words that stand together in many inputs, in both orders; the commonest first."""
    inputs_of = {int(s): measured.windows[measured.types == s] for s in words}
    pairs = []
    for first, second in combinations(inputs_of, 2):
        inputs = np.intersect1d(inputs_of[first], inputs_of[second])
        if len(inputs) < MIN_TOGETHER:
            continue
        is_forward = np.array([_stands_before(measured, int(w), first, second) for w in inputs])
        pair = _Pair(first, second, inputs[is_forward], inputs[~is_forward])
        n_rarer = min(len(pair.forward), len(pair.backward))
        if n_rarer >= MIN_EITHER_ORDER * pair.n_inputs:
            pairs.append(pair)
    pairs.sort(key=lambda pair: -pair.n_inputs)
    return pairs[:N_SCREENED]


def _stands_before(measured: Measured, window: int, first: int, second: int) -> bool:
    order = measured.subject.word_order(window).tolist()
    return bool(order.index(first) < order.index(second))


def _swap(measured: Measured, pairs: list[_Pair], n_inputs: int, stage: str) -> list[Floats]:
    """For each pair, what the answers lose by the reverse order, signed as if all were forward."""
    drawn = [pair.drawn_inputs(n_inputs, measured.work.seed) for pair in pairs]
    n_drawn = [len(inputs) for inputs in drawn]
    first = np.repeat([pair.first for pair in pairs], n_drawn)
    second = np.repeat([pair.second for pair in pairs], n_drawn)
    lost = measured.swap(first, second, np.concatenate(drawn), stage)
    by_pair = np.split(lost, np.cumsum(n_drawn)[:-1])
    return [
        pair.as_if_forward(inputs, change)
        for pair, inputs, change in zip(pairs, drawn, by_pair, strict=True)
    ]


def _effect(pair: _Pair, change: Floats) -> OrderEffect:
    """The effect of an order, named so that it is evidence for the class that gains most."""
    target = target_class(change)
    towards = signed_towards(change, target)
    sizes = mean_sizes(np.zeros(len(towards), dtype=np.int64), towards, 1)
    return OrderEffect(pair.first, pair.second, pair.n_inputs, sizes, target)
