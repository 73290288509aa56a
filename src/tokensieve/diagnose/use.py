"""How much a model uses each word.

Of each word s, over the n inputs X that hold it, with e_X the effect of the word on the answer (`tokensieve.diagnose.measuring`):

    mean            ē = Σ e_X/n, for two classes signed towards the second, else towards the class predicted
    use             Σ |e_X|/n, mean magnitude: a word that works by context has a small mean and a large use
    share           Σ |e_X| over that of all words: the word's share of all use
    flipped         share of inputs whose answer names another class without the word
    concentration   1 − (Σ |e_X|)²/(n Σ e_X²): 0 where all inputs owe it the same, near 1 where a few owe it everything
    helps           Σ h_X/n with h_X = e_X where the word speaks for the true class, −e_X where it speaks against it
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from tokensieve.diagnose.measuring import Measured
from tokensieve.text.counts import Floats, Ints


@dataclass(frozen=True)
class Use:
    """The numbers of the module's formulas, each of shape (|S|,), nan where a word was not measured.

    Attributes:
        inputs: inputs in which the word was measured.
        mean, use, use_low, use_high, share, flipped, concentration, helps, helps_low, helps_high: as above; intervals 95 %.
    """

    inputs: Ints
    mean: Floats
    use: Floats
    use_low: Floats
    use_high: Floats
    share: Floats
    flipped: Floats
    concentration: Floats
    helps: Floats
    helps_low: Floats
    helps_high: Floats


def use_of(types: Ints, effect: Floats, flipped: Floats, helps: Floats, n_types: int) -> Use:
    """The module's formulas, from one row per (word, input) pair.

    Args:
        types: word of each pair, shape (m,).
        effect: e_X, shape (m,); nan does not count.
        flipped: whether the answer changes, shape (m,).
        helps: h_X, shape (m,).
        n_types: |S|.
    """
    there = np.isfinite(effect)
    types, effect, flipped, helps = types[there], effect[there], flipped[there], helps[there]

    def total(x: Floats) -> Floats:
        return np.bincount(types, x, n_types).astype(np.float64)

    n = np.bincount(types, minlength=n_types)
    some = np.where(n > 0, n, np.nan)
    size = np.abs(effect)

    def interval(x: Floats) -> tuple[Floats, Floats]:
        middle = total(x) / some
        variance = np.maximum(total(x**2) / some - middle**2, 0.0) * some / np.maximum(some - 1, 1)
        half = np.where(n > 1, stats.t.isf(0.025, np.maximum(n - 1, 1)) * np.sqrt(variance / some), np.inf)
        return middle - half, middle + half

    sums, squares = total(size), total(size**2)
    low, high = interval(size)
    helps_low, helps_high = interval(helps)
    return Use(
        n, total(effect) / some, sums / some, np.maximum(low, 0.0), high, sums / max(float(sums.sum()), 1e-300),
        total(flipped) / some, 1 - sums**2 / np.where(squares > 0, some * squares, np.nan), total(helps) / some,
        helps_low, helps_high,
    )  # fmt: skip


def estimated(measured: Measured, labels: Ints) -> Use:
    """From the effects of all words.

    With K > 2 classes the effect is on the predicted class's answer f_k = z_k − mean_j z_j; taking e from it moves the margin
    over each other class by e K/(K − 1) on average, by which flips are estimated.

    Args:
        measured: the model's effects.
        labels: true class of each input, shape (W,).
    """
    w, H = measured.pairs.windows, measured.answers.shape[1]
    answers, effect = measured.decisive, measured.effect
    if H == 1:
        f = answers[w, 0]
        flipped = (f > 0) != (f - effect > 0)
        helps = np.where(labels[w] == 1, effect, -effect)
    else:
        top = np.sort(answers, axis=1)
        margin = (top[:, -1] - top[:, -2])[w]
        flipped = effect * H / (H - 1) > margin
        helps = np.where(labels[w] == measured.heads[w], effect, -effect)
    return use_of(measured.pairs.types, effect, flipped.astype(float), helps, len(measured.value))
