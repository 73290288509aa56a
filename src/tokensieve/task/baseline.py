"""What a reader would try first, for comparison: TF-IDF (sublinear) and logistic regression.

They are scikit-learn's `TfidfTransformer(sublinear_tf=True)` and `LogisticRegression` without its second of imports. TF-IDF is
equal to the last bit; L-BFGS solves the same problem, and stops by the same rule.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit

from tokensieve.model.attention import decide
from tokensieve.text.counts import Counts, Floats, Ints


def tfidf_accuracy(
    train: Counts, test: Counts, strengths: Sequence[float], pairs: bool = False, copy: bool = False
) -> list[float]:
    """Test accuracy with each inverse strength of the penalty.

    Args:
        train, test: counts, without weights that belong to tokens.
        strengths: C.
        pairs: it sees the differences of documents 2i and 2i + 1, in both orders, and has no intercept.
        copy: the counts are still needed; else their memory is used.
    """
    idf = np.log((1 + train.n_documents) / (1 + np.bincount(train.matrix.indices, minlength=train.n_types))) + 1
    x, y = (_weighed(counts.matrix, idf, copy) for counts in (train, test))
    labels, weights, out = train.labels, None if pairs else train.weights, list[float]()
    if pairs:
        difference = x[::2] - x[1::2]
        x, labels = sp.vstack([difference, -difference], format="csr"), np.repeat([1, 0], difference.shape[0])
    known, labels = np.unique(labels, return_inverse=True)
    for strength in strengths:
        w, b = _logistic_regression(x, labels, weights, strength, not pairs)
        f = y @ w + b
        right = f[::2] > f[1::2] if pairs else known[decide(f)] == test.labels
        out.append(float(np.mean(right)))
    return out


def _weighed(matrix: sp.csr_array, idf: Floats, copy: bool) -> sp.csr_array:
    """(1 + log c) idf, each document of length 1."""
    out = sp.csr_array(matrix, dtype=np.float64, copy=copy)
    np.log(out.data, out=out.data)
    out.data += 1
    out.data *= idf[out.indices]
    lengths = np.sqrt(np.bincount(np.repeat(np.arange(out.shape[0]), np.diff(out.indptr)), out.data**2, out.shape[0]))
    out.data /= np.repeat(lengths, np.diff(out.indptr))
    return out


def _logistic_regression(
    x: sp.csr_array, labels: Ints, weights: Floats | None, strength: float, intercept: bool
) -> tuple[Floats, Floats]:
    """(w, b), shapes (d, H) and (H,), that minimise Σ_i a_i ℓ_i / Σ_i a_i + |w|² / (2 C Σ_i a_i), by L-BFGS with scikit-learn's
    stopping rule; H is 1 of two classes, else K."""
    from scipy.optimize import minimize
    from threadpoolctl import threadpool_limits

    (n, d), classes = x.shape, int(labels.max()) + 1
    heads = 1 if classes == 2 else classes
    share = np.ones(n) if weights is None else weights
    penalty, share = 1 / (strength * share.sum()), (share / share.sum())[:, None]
    mine: NDArray[np.bool_] = labels[:, None] == (np.arange(heads) if heads > 1 else [1])

    def loss(theta: Floats) -> tuple[float, Floats]:
        w, b = theta[: d * heads].reshape(d, heads), theta[d * heads :]
        f = x @ w
        f += b if intercept else 0.0
        if heads == 1:
            losses, error = np.logaddexp(0.0, f) - f * mine, expit(f)
        else:
            f -= f.max(axis=1, keepdims=True)
            error = np.exp(f)
            total = error.sum(axis=1, keepdims=True)
            losses, error = np.log(total) - f[mine][:, None], error / total
        error = share * (error - mine)
        gradient = x.T @ error + penalty * w
        value = float(np.sum(share * losses) + penalty / 2 * np.vdot(w, w))
        return value, np.concatenate([gradient.ravel(), error.sum(axis=0)[: len(b)]])

    how = {"maxiter": 1000, "maxls": 50, "gtol": 1e-4, "ftol": 64 * np.finfo(float).eps}
    # small dense products gain nothing from threads, and lose tenfold on a busy machine
    with threadpool_limits(1):
        theta = minimize(loss, np.zeros((d + intercept) * heads), jac=True, method="L-BFGS-B", options=how).x
    return theta[: d * heads].reshape(d, heads), theta[d * heads :] if intercept else np.zeros(heads)
