"""What a reader would try first: TF-IDF and logistic regression on the same token counts."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from tokensieve.text.counts import Counts, Ints
from tokensieve.text.pairs import draw_units

STRENGTHS = (1.0, 10.0, 100.0)
PAIR_STRENGTHS = (0.3, 1.0, 3.0)  # of differences, which are longer than a text and say less


def baseline_accuracy(train: Counts, test: Counts, seed: int) -> float:
    """Test accuracy of TF-IDF (sublinear) + logistic regression, its C chosen out of 1, 10, 100 on held-out training documents.

    Args:
        train, test: counts of the same token types.
        seed: of the held-out tenth.
    """
    rng = np.random.default_rng(seed)
    held_out = np.zeros(train.n_documents, dtype=bool)
    held_out[rng.permutation(train.n_documents)[: max(train.n_documents // 10, 1)]] = True
    part, rest = train.rows(~held_out), train.rows(held_out)
    best = STRENGTHS[1]
    if np.count_nonzero(part.class_sizes) == train.n_classes:
        best = STRENGTHS[int(np.argmax([_fit_and_score(part, rest, c) for c in STRENGTHS]))]
    return _fit_and_score(train, test, best)


def pair_baseline(train: Counts, test: Counts, units: Ints, seed: int) -> float:
    """Accuracy over test pairs of logistic regression on differences of TF-IDF (sublinear), C chosen on held-out training pairs.

    Args:
        train, test: counts of the same token types, two documents to a pair, the preferred one first.
        units: unit of each training pair, shape (n,).
        seed: of the held-out tenth of the units.
    """
    held = draw_units(units, 0.1, seed)
    part, rest = train.rows(np.repeat(~held, 2)), train.rows(np.repeat(held, 2))
    best = PAIR_STRENGTHS[int(np.argmax([_fit_and_compare(part, rest, c) for c in PAIR_STRENGTHS]))]
    return _fit_and_compare(train, test, best)


def _fit_and_compare(train: Counts, test: Counts, strength: float) -> float:
    tfidf = TfidfTransformer(sublinear_tf=True).fit(train.matrix)
    sides = tfidf.transform(train.matrix)
    difference = sides[::2] - sides[1::2]
    model = LogisticRegression(C=strength, max_iter=1000, fit_intercept=False)
    with threadpool_limits(1):
        model.fit(sp.vstack([difference, -difference]), np.repeat([1, 0], difference.shape[0]))
    f = model.decision_function(tfidf.transform(test.matrix))
    return float(np.mean(f[::2] > f[1::2]))


def _fit_and_score(train: Counts, test: Counts, strength: float) -> float:
    tfidf = TfidfTransformer(sublinear_tf=True).fit(train.matrix)
    model = LogisticRegression(C=strength, max_iter=1000)
    with threadpool_limits(1):  # its small dense products gain nothing from threads, and lose tenfold on a busy machine
        model.fit(tfidf.transform(train.matrix), train.labels, sample_weight=train.weights)
    return float(model.score(tfidf.transform(test.matrix), test.labels))
