"""An ordinal baseline for scores of which there are few: a logistic regression for each threshold.

Frank and Hall (2001): for scores v₁ < … < v_K, K − 1 models of P(score > v_k). The prediction is
the middle score: v₁ if no model says more than one half, and a step higher for each that does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tokensieve.arrays import Bools, Floats, Ints
from tokensieve.task.baseline import LogisticRegression, features, inverse_frequency
from tokensieve.task.ridge import RidgeData

MAX_SCORES = 10  # different ones; with more of them, each threshold parts few documents
STRENGTHS = (1.0, 10.0, 100.0)  # C, as for classes


def ordinal_predictions(data: RidgeData) -> Floats | None:
    """The predicted score of each test document, shape (n_test,); None for more than ten scores.

    C is the one that is most accurate at the middle threshold on held-out training documents.
    """
    values = np.unique(data.scores)
    if len(values) > MAX_SCORES:
        return None
    middle = values[(len(values) - 1) // 2]
    strength = _best_strength(data, data.scores > middle)
    idf = inverse_frequency(data.train)
    x = features(data.train, np.arange(data.train.shape[0]), idf, has_intercept=True)
    new = features(data.test, np.arange(data.test.shape[0]), idf, has_intercept=True)
    n_below = np.zeros(data.test.shape[0], dtype=np.int64)
    for value in values[:-1]:
        is_above = (data.scores > value).astype(np.int64)
        regression = LogisticRegression(x, is_above, data.weights, has_intercept=True)
        n_below += regression.predict(new, regression.fit(strength))
    return np.asarray(values[n_below])


def _best_strength(
    data: RidgeData, is_above: Bools, strengths: Sequence[float] = STRENGTHS
) -> float:
    """The C with which most held-out documents are put on the right side of a threshold."""
    learned: Ints = np.flatnonzero(~data.is_held_out)
    held_out: Ints = np.flatnonzero(data.is_held_out)
    labels = is_above.astype(np.int64)
    if len(np.unique(labels[learned])) < 2:
        return strengths[1]
    idf = inverse_frequency(data.train)
    x = features(data.train, learned, idf, has_intercept=True)
    new = features(data.train, held_out, idf, has_intercept=True)
    regression = LogisticRegression(x, labels[learned], data.weights[learned], has_intercept=True)
    n_right = [
        int((regression.predict(new, regression.fit(strength)) == labels[held_out]).sum())
        for strength in strengths
    ]
    return strengths[int(np.argmax(n_right))]
