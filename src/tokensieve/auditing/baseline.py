"""What a reader would try first: TF-IDF and logistic regression on the same token counts."""

from __future__ import annotations

import numpy as np
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from tokensieve.text.counts import Counts

STRENGTHS = (1.0, 10.0, 100.0)


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


def _fit_and_score(train: Counts, test: Counts, strength: float) -> float:
    tfidf = TfidfTransformer(sublinear_tf=True).fit(train.matrix)
    model = LogisticRegression(C=strength, max_iter=1000)
    with threadpool_limits(1):  # its small dense products gain nothing from threads, and lose tenfold on a busy machine
        model.fit(tfidf.transform(train.matrix), train.labels)
    return float(model.score(tfidf.transform(test.matrix), test.labels))
