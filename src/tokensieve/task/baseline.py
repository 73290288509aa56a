"""What a reader would try first: TF-IDF and logistic regression on the same token counts."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from tokensieve.text.counts import Counts


def logistic_accuracy(train: Counts, test: Counts, strength: float) -> float:
    """Accuracy on test documents of TF-IDF (sublinear) and logistic regression with C = `strength`."""
    tfidf = TfidfTransformer(sublinear_tf=True).fit(train.matrix)
    model = LogisticRegression(C=strength, max_iter=1000)
    with threadpool_limits(1):  # its small dense products gain nothing from threads, and lose tenfold on a busy machine
        model.fit(tfidf.transform(train.matrix), train.labels, sample_weight=train.weights)
    return float(model.score(tfidf.transform(test.matrix), test.labels))


def logistic_pair_accuracy(train: Counts, test: Counts, strength: float) -> float:
    """The same on pairs: of differences of TF-IDF, each pair in both orders, without an intercept."""
    tfidf = TfidfTransformer(sublinear_tf=True).fit(train.matrix)
    sides = tfidf.transform(train.matrix)
    difference = sides[::2] - sides[1::2]
    model = LogisticRegression(C=strength, max_iter=1000, fit_intercept=False)
    with threadpool_limits(1):
        model.fit(sp.vstack([difference, -difference]), np.repeat([1, 0], difference.shape[0]))
    f = model.decision_function(tfidf.transform(test.matrix))
    return float(np.mean(f[::2] > f[1::2]))
