"""What TF-IDF and logistic regression predict correctly: the baseline that everybody knows.

The model is that of scikit-learn's `TfidfTransformer(sublinear_tf=True)` and
`LogisticRegression(max_iter=1000)`, by the same method with the same limits (`lbfgs`); importing
scikit-learn takes longer than the fit.

Of the counts, which other parts of an audit hold, a few million entries at a time are copied; the
only large array is that of the features that the regression is fitted to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from tokensieve.arrays import Bools, Floats, Ints, row_blocks
from tokensieve.task import lbfgs


@dataclass(frozen=True)
class BaselineData:
    """Counts of training and test documents.

    Attributes:
        train, test: shape (n, types); of pairs, rows 2i (preferred) and 2i + 1.
        n_words: how many types the baseline reads: the first ones, which are no formatting.
        labels, weights: of the training documents, shape (n,).
        truth: labels of the test documents.
        is_held_out: training documents on which the strength is chosen, shape (n,).
        strengths: values of scikit-learn's C, the inverse of the penalty, to choose from; the
            second is taken where nothing can be chosen.
        are_pairs: the model sees differences, each in both orders, and has no intercept.
    """

    train: sp.csr_array
    test: sp.csr_array
    n_words: int
    labels: Ints
    weights: Floats
    truth: Ints
    is_held_out: Bools
    strengths: Sequence[float]
    are_pairs: bool


@dataclass(frozen=True)
class _Documents:
    """Some rows of a matrix of counts, and their labels, shape (rows,)."""

    counts: sp.csr_array
    rows: Ints
    labels: Ints


def baseline_correct(data: BaselineData) -> Floats:
    """Fit the baseline and test it: 1 for each correct prediction, ½ for a tie, else 0.

    An item is a test document, or a pair of them; shape (items,). The strength is the one that is
    most accurate on held-out documents.
    """
    strength = data.strengths[1]
    learned = np.flatnonzero(~data.is_held_out)
    if len(np.unique(data.labels[learned])) == len(np.unique(data.labels)):
        held_out = np.flatnonzero(data.is_held_out)
        judged = _Documents(data.train, held_out, data.labels[held_out])
        accuracies = [correct.mean() for correct in _correct(data, learned, judged, data.strengths)]
        strength = data.strengths[int(np.argmax(accuracies))]
    every_row = np.arange(data.train.shape[0])
    test = _Documents(data.test, np.arange(data.test.shape[0]), data.truth)
    return _correct(data, every_row, test, [strength])[0]


def _correct(
    data: BaselineData, learned: Ints, judged: _Documents, strengths: Sequence[float]
) -> list[Floats]:
    """Fit the baseline with each regularisation strength; mark which items it predicts correctly,
    shape (items,) each.

    Args:
        learned: the rows of the training documents that are learned from.
        judged: the documents that are predicted.
    """
    idf = _inverse_frequency_of_rows(data.train, learned, data.n_words)
    if data.are_pairs:
        regression = _regression_of_pairs(features(data.train, learned, idf))
    else:
        x = features(data.train, learned, idf, has_intercept=True)
        regression = LogisticRegression(
            x, data.labels[learned], data.weights[learned], has_intercept=True
        )

    fitted = [regression.fit(strength) for strength in strengths]
    outcomes: list[list[Floats]] = [[] for _ in strengths]
    # features of a few million entries at a time
    for rows in _blocks(judged.counts, judged.rows, in_pairs=data.are_pairs):
        x = features(judged.counts, judged.rows[rows], idf, has_intercept=not data.are_pairs)
        for coefficients, of_strength in zip(fitted, outcomes, strict=True):
            if data.are_pairs:
                of_strength.append(_preferred(x @ coefficients[:, 0]))
            else:
                is_correct = regression.predict(x, coefficients) == judged.labels[rows]
                of_strength.append(is_correct.astype(np.float64))
    return [np.concatenate(blocks) for blocks in outcomes]


def _regression_of_pairs(x: sp.csr_array) -> LogisticRegression:
    """The regression of differences, each in both orders, without an intercept."""
    difference = x[::2] - x[1::2]
    both_orders = sp.csr_array(sp.vstack([difference, -difference]))
    labels = np.repeat([1, 0], difference.shape[0])
    return LogisticRegression(both_orders, labels, np.ones(len(labels)), has_intercept=False)


def _preferred(scores: Floats) -> Floats:
    """Judge each pair: 1 if its first answer has the higher score, ½ for a tie, else 0; shape
    (pairs,).

    `scores` has those of answers 2i and 2i + 1 of pair i.
    """
    margins = scores[::2] - scores[1::2]
    return np.asarray((margins > 0) + 0.5 * (margins == 0))


def inverse_frequency(counts: sp.csr_array) -> Floats:
    """The weight of rare types: 1 + log((n + 1) / (documents that contain the type + 1)), shape
    (types,)."""
    every_row = np.arange(counts.shape[0])
    return _inverse_frequency_of_rows(counts, every_row, counts.shape[1])


def _inverse_frequency_of_rows(counts: sp.csr_array, rows: Ints, n_words: int) -> Floats:
    """`inverse_frequency` of some documents, for the first types, shape (n_words,)."""
    documents = np.zeros(counts.shape[1], np.int64)
    for block in _blocks(counts, rows):
        documents += np.bincount(counts[rows[block]].indices, minlength=counts.shape[1])
    return np.asarray(1 + np.log((len(rows) + 1) / (documents[:n_words] + 1.0)))


def tf_idf(counts: sp.csr_array, idf: Floats) -> sp.csr_array:
    """(1 + log c) · idf, each row of norm 1, as of `TfidfTransformer(sublinear_tf=True)`."""
    data = (1 + np.log(counts.data)) * idf[counts.indices]
    sizes = np.diff(counts.indptr)
    is_filled = sizes > 0
    if is_filled.any():
        squared_norms = np.add.reduceat(data**2, counts.indptr[:-1][is_filled])
        data /= np.repeat(np.sqrt(squared_norms), sizes[is_filled])
    return sp.csr_array((data, counts.indices, counts.indptr), shape=counts.shape)


def features(
    counts: sp.csr_array, rows: Ints, idf: Floats, has_intercept: bool = False
) -> sp.csr_array:
    """`tf_idf` of some documents and the first types, shape (rows, types of idf); with an
    intercept, one more column that is 1."""
    n_words = len(idf)
    n_columns = n_words + has_intercept
    most_entries = int(np.diff(counts.indptr)[rows].sum()) + len(rows) * has_intercept
    data = np.empty(most_entries)
    indices = np.empty(most_entries, counts.indices.dtype)
    row_ends = np.zeros(len(rows) + 1, counts.indptr.dtype)
    size = 0
    for block in _blocks(counts, rows):
        part = tf_idf(counts[rows[block]][:, :n_words], idf)
        if has_intercept:
            part = _with_ones(part)
        data[size : size + part.nnz] = part.data
        indices[size : size + part.nnz] = part.indices
        row_ends[block.start + 1 : block.stop + 1] = size + part.indptr[1:]
        size += part.nnz
    return sp.csr_array((data[:size], indices[:size], row_ends), shape=(len(rows), n_columns))


def _blocks(counts: sp.csr_array, rows: Ints, in_pairs: bool = False) -> Iterator[slice]:
    """Cut some rows into consecutive runs that hold a few million entries each.

    With `in_pairs`, rows 2i and 2i + 1 stay in one run.
    """
    sizes = np.diff(counts.indptr)[rows].astype(np.int64)
    if in_pairs:
        sizes = sizes.reshape(-1, 2).sum(axis=1)
    factor = 2 if in_pairs else 1
    for run in row_blocks(np.append(0, np.cumsum(sizes))):
        yield slice(factor * run.start, factor * run.stop)


def _with_ones(x: sp.csr_array) -> sp.csr_array:
    """Append a column of ones for the intercept."""
    return sp.csr_array(sp.hstack([x, np.ones((x.shape[0], 1))]))


class LogisticRegression:
    """Multinomial logistic regression; with two classes, coefficients are those of the second."""

    def __init__(self, x: sp.csr_array, labels: Ints, weights: Floats, has_intercept: bool) -> None:
        """Prepare a logistic regression.

        Args:
            x: n rows; the last column is 1 everywhere and not penalised if
                `has_intercept`.
            labels: shape (n,).
            weights: of the rows, shape (n,), not all 0.
            has_intercept: see `x`.
        """
        self.x = x
        self.classes, positions = np.unique(labels, return_inverse=True)
        self.of_label = (np.arange(len(labels)), positions)
        self.total_weight = weights.sum()
        self.shares = weights / self.total_weight
        self.n_outputs = len(self.classes) if len(self.classes) > 2 else 1
        self.n_penalised = x.shape[1] - has_intercept

    def fit(self, strength: float) -> Floats:
        """Coefficients, shape (columns, outputs)."""
        penalty = 1 / (strength * self.total_weight)

        def loss(flat: Floats) -> lbfgs.Value:
            return self._loss(flat, penalty)

        start = np.zeros(self.x.shape[1] * self.n_outputs)
        return lbfgs.minimum(loss, start).reshape(-1, self.n_outputs)

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
        penalised = penalty * coefficients
        penalised[self.n_penalised :] = 0.0
        scores = self._scores(self.x, coefficients)
        scores -= scores.max(axis=1, keepdims=True)
        score_of_label = scores[self.of_label]
        exponentials = np.exp(scores, out=scores)
        totals = exponentials.sum(axis=1)
        cross_entropy = self.shares @ (np.log(totals) - score_of_label)
        loss = cross_entropy + (penalised.ravel() @ flat) / 2

        slope_of_scores = exponentials
        slope_of_scores *= (self.shares / totals)[:, None]
        slope_of_scores[self.of_label] -= self.shares
        # of two classes only the second has a score of its own
        slope = self.x.T @ slope_of_scores[:, -self.n_outputs :] + penalised
        return float(loss), slope.ravel()
