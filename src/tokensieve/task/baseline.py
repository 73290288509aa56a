"""What TF-IDF and logistic regression predict correctly: the baseline that everybody knows.

The model is that of scikit-learn's `TfidfTransformer(sublinear_tf=True)` and
`LogisticRegression(max_iter=1000)`, by the same optimizer with the same limits; importing
scikit-learn takes longer than the fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import log_softmax

from tokensieve.arrays import Floats, Ints

# scikit-learn's
OPTIONS = {"maxiter": 1000, "maxls": 50, "gtol": 1e-4, "ftol": 64 * np.finfo(float).eps}


@dataclass(frozen=True)
class BaselineData:
    """Word counts of training and test documents.

    Attributes:
        train, test: shape (n, |S|); of pairs, rows 2i (preferred) and 2i + 1.
        labels, weights: of the training documents, shape (n,).
        truth: labels of the test documents.
        is_held_out: training documents on which the strength is chosen, shape (n,).
        strengths: C, to choose from; the second is taken where nothing can be chosen.
        are_pairs: the model sees differences, each in both orders, and has no intercept.
    """

    train: sp.csr_array
    test: sp.csr_array
    labels: Ints
    weights: Floats
    truth: Ints
    is_held_out: NDArray[np.bool_]
    strengths: Sequence[float]
    are_pairs: bool


def baseline_correct(data: BaselineData) -> Floats:
    """1 for each test item that it predicts correctly, ½ for a tie, else 0, shape (items,).

    The strength is the one that is most accurate on held-out documents.
    """
    is_in = ~data.is_held_out
    strength = data.strengths[1]
    if len(np.unique(data.labels[is_in])) == len(np.unique(data.labels)):
        choosing = replace(
            data,
            train=data.train[is_in],
            test=data.train[data.is_held_out],
            labels=data.labels[is_in],
            weights=data.weights[is_in],
            truth=data.labels[data.is_held_out],
        )
        accuracies = [correct.mean() for correct in _correct(choosing, data.strengths)]
        strength = data.strengths[int(np.argmax(accuracies))]
    return _correct(data, [strength])[0]


def _correct(data: BaselineData, strengths: Sequence[float]) -> list[Floats]:
    """What is predicted correctly with each strength, shape (items,) each."""
    idf = inverse_frequency(data.train)
    train = tf_idf(data.train, idf)
    test = tf_idf(data.test, idf)
    if data.are_pairs:
        difference = train[::2] - train[1::2]
        x = sp.csr_array(sp.vstack([difference, -difference]))
        labels = np.repeat([1, 0], difference.shape[0])
        regression = LogisticRegression(x, labels, np.ones(x.shape[0]), has_intercept=False)
    else:
        regression = LogisticRegression(_with_ones(train), data.labels, data.weights, True)

    outcomes = []
    for strength in strengths:
        coefficients = regression.fit(strength)
        if data.are_pairs:
            outcomes.append(_preferred(test @ coefficients[:, 0]))
        else:
            predicted = regression.predict(_with_ones(test), coefficients)
            outcomes.append(np.asarray(predicted == data.truth, dtype=np.float64))
    return outcomes


def _preferred(scores: Floats) -> Floats:
    """1 for each pair whose first answer has the higher score, ½ for a tie, else 0; shape (pairs,).

    `scores` has those of answers 2i and 2i + 1 of pair i.
    """
    margins = scores[::2] - scores[1::2]
    return np.asarray((margins > 0) + 0.5 * (margins == 0))


def inverse_frequency(counts: sp.csr_array) -> Floats:
    """1 + log((n + 1) / (documents that contain the type + 1)), shape (|S|,)."""
    document_frequency = np.bincount(counts.indices, minlength=counts.shape[1]) + 1.0
    return np.asarray(1 + np.log((counts.shape[0] + 1) / document_frequency))


def tf_idf(counts: sp.csr_array, idf: Floats) -> sp.csr_array:
    """(1 + log c) · idf, each row of norm 1, as of `TfidfTransformer(sublinear_tf=True)`."""
    data = (1 + np.log(counts.data)) * idf[counts.indices]
    norms = np.sqrt(np.add.reduceat(np.append(data**2, 0.0), counts.indptr[:-1]))
    data /= np.repeat(norms, np.diff(counts.indptr))
    return sp.csr_array((data, counts.indices, counts.indptr), shape=counts.shape)


def _with_ones(x: sp.csr_array) -> sp.csr_array:
    """With a last column for the intercept."""
    return sp.csr_array(sp.hstack([x, np.ones((x.shape[0], 1))]))


class LogisticRegression:
    """Multinomial logistic regression; with two classes, coefficients are those of the second."""

    def __init__(self, x: sp.csr_array, labels: Ints, weights: Floats, has_intercept: bool) -> None:
        self.x = x
        self.classes, positions = np.unique(labels, return_inverse=True)
        self.targets = np.eye(len(self.classes))[positions]
        self.total_weight = weights.sum()
        self.shares = weights / self.total_weight
        self.n_outputs = len(self.classes) if len(self.classes) > 2 else 1
        n_penalised = x.shape[1] - has_intercept
        self.is_penalised = np.arange(x.shape[1])[:, None] < n_penalised

    def fit(self, strength: float) -> Floats:
        """Coefficients, shape (columns, outputs)."""
        from scipy.optimize import minimize  # a tenth of a second, which `train` does not need

        penalty = 1 / (strength * self.total_weight)
        start = np.zeros(self.x.shape[1] * self.n_outputs)
        solution = minimize(
            self._loss, start, (penalty,), method="L-BFGS-B", jac=True, options=OPTIONS
        )
        return np.asarray(solution.x).reshape(-1, self.n_outputs)

    def predict(self, x: sp.csr_array, coefficients: Floats) -> Ints:
        """The class of each row of x, shape (n,), as a value of the labels that were fitted."""
        return np.asarray(self.classes[self._scores(x, coefficients).argmax(axis=1)])

    def _scores(self, x: sp.csr_array, coefficients: Floats) -> Floats:
        """The score of each class, shape (n, K); of two classes, 0 and that of the second."""
        scores = np.asarray(x @ coefficients)
        if self.n_outputs == 1:
            return np.hstack([np.zeros_like(scores), scores])
        return scores

    def _loss(self, flat: Floats, penalty: float) -> tuple[float, Floats]:
        """Mean cross-entropy + ½ penalty |coefficients|², and its gradient."""
        coefficients = flat.reshape(-1, self.n_outputs)
        log_p = log_softmax(self._scores(self.x, coefficients), axis=1)
        log_p_of_label = (log_p * self.targets).sum(axis=1)
        penalised = penalty * self.is_penalised * coefficients
        loss = (penalised * coefficients).sum() / 2
        loss -= self.shares @ log_p_of_label

        slope_of_scores = self.shares[:, None] * (np.exp(log_p) - self.targets)
        # of two classes only the second has a score of its own
        slope = self.x.T @ slope_of_scores[:, -self.n_outputs :] + penalised
        return float(loss), slope.ravel()
