"""Test accuracy of TF-IDF and logistic regression: a program of its own, whose imports and fit have a core to themselves.

Reads arrays (.npz), writes the accuracy as JSON. scikit-learn takes 100 MB, and loads pandas: Polars fails where it is half loaded.
"""

import json
import sys
from collections.abc import Iterator, Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression


def _accuracies(
    train: sp.csr_array,
    test: sp.csr_array,
    labels: NDArray[np.int64],
    truth: NDArray[np.int64],
    weights: NDArray[np.float64],
    strengths: Sequence[float],
    single: bool,
) -> Iterator[float]:
    """Accuracy on `test` with each strength C; both matrices are written over.

    Of pairs (not `single`) the model sees the differences, each in both orders, and has no intercept.
    """
    tfidf = TfidfTransformer(sublinear_tf=True).fit(train)
    x, y = (tfidf.transform(counts, copy=False) for counts in (train, test))
    if not single:
        difference = x[::2] - x[1::2]
        x, labels = sp.vstack([difference, -difference]), np.repeat([1, 0], difference.shape[0])
        weights = np.ones(len(labels))
    for strength in strengths:
        model = LogisticRegression(C=strength, max_iter=1000, fit_intercept=single)
        model.fit(x, labels, sample_weight=weights)
        f = model.decision_function(y)
        yield float(np.mean(model.predict(y) == truth if single else f[::2] > f[1::2]))


if __name__ == "__main__":
    given = np.load(sys.stdin.buffer, allow_pickle=False)
    words, test = (
        sp.csr_array(tuple(given[f"{part}_{name}"] for name in ("data", "indices", "indptr")), given[f"{part}_shape"])
        for part in ("train", "test")
    )
    labels, held, strengths, single = given["labels"], given["held"], given["strengths"], bool(given["single"])
    weights, best = given["weights"], strengths[1]
    if len(np.unique(labels[~held])) == len(np.unique(labels)):
        chosen_on = words[~held], words[held], labels[~held], labels[held], weights[~held]
        best = strengths[int(np.argmax(list(_accuracies(*chosen_on, strengths, single))))]
    json.dump(next(_accuracies(words, test, labels, given["truth"], weights, [best], single)), sys.stdout)
