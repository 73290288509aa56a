"""What TF-IDF and ridge regression predict: the baseline for scores that everybody knows.

The model is that of scikit-learn's `TfidfTransformer(sublinear_tf=True)` and `Ridge(alpha)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, lsqr

from tokensieve.arrays import Floats
from tokensieve.task.baseline import inverse_frequency, tf_idf

ALPHAS = (0.1, 0.3, 1.0, 3.0, 10.0)  # to choose from; texts of unit length need about 1
TOLERANCE = 1e-8  # of the solution; scikit-learn's is 1e-4
MAX_ITERATIONS = 1000


@dataclass(frozen=True)
class Ridge:
    """Least squares with a penalty alpha |coefficients|², and an intercept without one."""

    coefficients: Floats
    intercept: float

    @classmethod
    def fit(cls, x: sp.csr_array, scores: Floats, weights: Floats, alpha: float) -> Ridge:
        """Fit documents x, shape (n, types), to their scores, each as often as it weighs."""
        share = weights / weights.sum()
        means = np.asarray(x.T @ share)
        mean_score = float(share @ scores)
        root = np.sqrt(weights)
        # the columns without their means, which would make the matrix dense
        centred = LinearOperator(
            x.shape,
            matvec=lambda v: root * (x @ v - means @ v),
            rmatvec=lambda v: x.T @ (root * v) - means * (root @ v),
        )
        coefficients = lsqr(
            centred,
            root * (scores - mean_score),
            damp=np.sqrt(alpha),
            atol=TOLERANCE,
            btol=TOLERANCE,
            iter_lim=MAX_ITERATIONS,
        )[0]
        return cls(coefficients, mean_score - float(means @ coefficients))

    def predict(self, x: sp.csr_array) -> Floats:
        """The score of each document, shape (n,)."""
        return np.asarray(x @ self.coefficients) + self.intercept


@dataclass(frozen=True)
class RidgeData:
    """Word counts of training and test documents, shape (n, types), and the training scores.

    Attributes:
        train, test: counts.
        scores, weights: of the training documents, shape (n,).
        is_held_out: training documents on which alpha is chosen, shape (n,).
    """

    train: sp.csr_array
    test: sp.csr_array
    scores: Floats
    weights: Floats
    is_held_out: NDArray[np.bool_]


def ridge_predictions(data: RidgeData, alphas: Sequence[float] = ALPHAS) -> Floats:
    """The predicted score of each test document, shape (n_test,).

    Alpha is the one with the least squared error on held-out training documents.
    """
    idf = inverse_frequency(data.train)
    x = tf_idf(data.train, idf)
    is_in = ~data.is_held_out
    errors = []
    for alpha in alphas:
        model = Ridge.fit(x[is_in], data.scores[is_in], data.weights[is_in], alpha)
        error = model.predict(x[data.is_held_out]) - data.scores[data.is_held_out]
        errors.append(float(error @ error))
    alpha = alphas[int(np.argmin(errors))]
    return Ridge.fit(x, data.scores, data.weights, alpha).predict(tf_idf(data.test, idf))
