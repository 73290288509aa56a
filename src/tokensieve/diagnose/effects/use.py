"""How much a model uses each word.

Of each word s, over the n inputs X that contain it, with e_X the effect of the word on the answer
(`tokensieve.diagnose.effects.measuring`):

    mean            ē = Σ e_X/n, for two classes signed towards the second, else towards the class predicted
    use             Σ |e_X|/n, mean magnitude: a word that works by context has a small mean and a large use
    share           Σ |e_X| over that of all words: the word's fraction of all use
    flipped         fraction of inputs in which another class is predicted without the word
    concentration   1 − (Σ |e_X|)²/(n Σ e_X²): 0 if all inputs owe it the same, near 1 if a few owe it everything
    helps           Σ h_X/n with h_X = e_X if the word speaks for the true class, −e_X if it speaks against it

Sizes are skewed, and Student's interval of their mean then lies too low: it misses the truth above far more often than below. Ours
inverts Hall's transformation of t (1992, section 2), with γ the skewness of the sample and k = γ/√n:

    g(T) = T + k T²/3 + k² T³/27 + k/6,        g⁻¹(y) = 3/k · (∛(1 + k (y − k/6)) − 1)

    [x̄ − s/√n · g⁻¹(t₀.₉₇₅),  x̄ − s/√n · g⁻¹(t₀.₀₂₅)]
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from tokensieve.diagnose.effects.measuring import Measured
from tokensieve.text.counts import Floats, Ints

Use = dict[str, Floats]
"""The numbers of the module's formulas by name, each of shape (|S|,), nan if a word was not measured: inputs, mean, use,
use_error (standard), use_low, use_high, share, flipped, concentration, helps, helps_low, helps_high; intervals 95 %."""


def use_of(types: Ints, effect: Floats, flipped: Floats, helps: Floats, n_types: int) -> Use:
    """The module's formulas, from one row per (word, input) pair.

    Args:
        types: word of each pair, shape (m,).
        effect: e_X, shape (m,); nan does not count.
        flipped: whether the prediction changes, shape (m,).
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
    sums, squares = total(size), total(size**2)
    middle, helping = sums / some, total(helps) / some
    low, high = mean_interval(n, middle, _spread(types, size, middle, n), _skewness(types, size, middle, n))
    half = np.where(n > 1, stats.t.isf(0.025, np.maximum(n - 1, 1)) * _spread(types, helps, helping, n), np.inf)
    half = half / np.sqrt(np.maximum(n, 1))
    return {
        "inputs": n.astype(np.float64),
        "mean": total(effect) / some,
        "use": middle,
        "use_error": _spread(types, size, middle, n) / np.sqrt(np.maximum(n, 1)),
        "use_low": np.maximum(low, 0.0),
        "use_high": high,
        "share": sums / max(float(sums.sum()), 1e-300),
        "flipped": total(flipped) / some,
        "concentration": 1 - sums**2 / np.where(squares > 0, some * squares, np.nan),
        "helps": helping,
        "helps_low": helping - half,
        "helps_high": helping + half,
    }


def mean_interval(n: Ints, mean: Floats, spread: Floats, skewness: Floats) -> tuple[Floats, Floats]:
    """95 % interval of the mean of n values with this standard deviation and skewness, by the module's formula."""
    k = skewness / np.sqrt(np.maximum(n, 1))
    y = stats.t.isf(0.025, np.maximum(n - 1, 1))
    plain = np.abs(k) < 1e-6
    k = np.where(plain, 1.0, k)
    ends = []
    for sign in (1, -1):
        back = 3 / k * (np.cbrt(1 + k * (sign * y - k / 6)) - 1)
        t = np.where(plain, sign * y, back)
        ends.append(np.where(n > 1, mean - t * spread / np.sqrt(np.maximum(n, 1)), -sign * np.inf))
    return ends[0], ends[1]


def _spread(types: Ints, x: Floats, middle: Floats, n: Ints) -> Floats:
    """Standard deviation of the values of each word."""
    squares = np.bincount(types, (x - middle[types]) ** 2, len(n))
    return np.asarray(np.sqrt(squares / np.maximum(n - 1, 1)))


def _skewness(types: Ints, x: Floats, middle: Floats, n: Ints) -> Floats:
    """Skewness of the values of each word, corrected for the size of the sample; at least zero, since sizes have no other."""
    apart = x - middle[types]
    m2, m3 = (np.bincount(types, apart**i, len(n)) / np.maximum(n, 1) for i in (2, 3))
    correction = np.where(n > 2, np.sqrt(n * np.maximum(n - 1.0, 1)) / np.maximum(n - 2, 1), 1.0)
    alike = m2 <= (1e-9 * np.nan_to_num(middle)) ** 2 + 1e-200  # all values are the same
    return np.where(alike, 0.0, np.maximum(correction * m3 / np.where(alike, 1.0, m2) ** 1.5, 0.0))


def estimated_use(measured: Measured, labels: Ints) -> Use:
    """From the effects of all words.

    With K > 2 classes the effect is on the predicted class's answer f_k = z_k − mean_j z_j; taking e from it moves the margin
    over each other class by e K/(K − 1) on average, by which flips are estimated.

    Args:
        measured: the model's effects.
        labels: true class of each input, shape (W,).
    """
    w, H = measured.windows, measured.answers.shape[1]
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
    return use_of(measured.types, effect, flipped.astype(float), helps, len(measured.value))
