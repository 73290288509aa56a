"""Test accuracy of TF-IDF and logistic regression: a program of its own, whose imports and fit have a core to themselves.

Reads arrays (.npz), writes the accuracy as JSON. The model is that of scikit-learn's `TfidfTransformer(sublinear_tf=True)` and
`LogisticRegression(max_iter=1000)`, by the same optimizer with the same limits; importing scikit-learn takes longer than the fit.
"""

import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from tempfile import TemporaryFile

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax


def _accuracies(
    train: sp.csr_array,
    test: sp.csr_array,
    labels: NDArray[np.int64],
    truth: NDArray[np.int64],
    weights: NDArray[np.float64],
    strengths: Sequence[float],
    single: bool,
) -> Iterator[float]:
    """Accuracy on `test` with each strength C; both matrices are overwritten. For pairs (not `single`) the model sees the
    differences, each in both orders, and has no intercept."""
    documents = np.bincount(train.indices, minlength=train.shape[1]) + 1.0
    for counts in (train, test):
        counts.data = (1 + np.log(counts.data)) * (1 + np.log((train.shape[0] + 1) / documents))[
            counts.indices
        ]
        norms = np.sqrt(np.add.reduceat(np.append(counts.data**2, 0.0), counts.indptr[:-1]))
        counts.data /= np.repeat(norms, np.diff(counts.indptr))
    if single:
        x, y = (sp.csr_array(sp.hstack([m, np.ones((m.shape[0], 1))])) for m in (train, test))
    else:
        difference = train[::2] - train[1::2]
        x, y = sp.vstack([difference, -difference]), test
        labels, weights = np.repeat([1, 0], difference.shape[0]), np.ones(x.shape[0])
    names, labels = np.unique(labels, return_inverse=True)
    heads, own, share = (
        len(names) if len(names) > 2 else 1,
        np.eye(len(names))[labels],
        weights / weights.sum(),
    )
    penalised = np.arange(x.shape[1])[:, None] < train.shape[1]  # all but the intercept

    def both(f: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.hstack([np.zeros_like(f), f]) if heads == 1 else f

    def loss(flat: NDArray[np.float64], penalty: float) -> tuple[float, NDArray[np.float64]]:
        """Mean cross-entropy + ½ penalty |coefficients|², and its gradient."""
        table = flat.reshape(-1, heads)
        log_p, inner = log_softmax(both(x @ table), axis=1), penalty * penalised * table
        slope = (share[:, None] * (np.exp(log_p) - own))[:, -heads:]
        value = (inner * table).sum() / 2 - share @ (log_p * own).sum(axis=1)
        return value, (x.T @ slope + inner).ravel()

    limits = {"maxiter": 1000, "maxls": 50, "gtol": 1e-4, "ftol": 64 * np.finfo(float).eps}
    for strength in strengths:
        penalty = 1 / (strength * weights.sum())
        best = minimize(
            loss, np.zeros(x.shape[1] * heads), (penalty,), "L-BFGS-B", jac=True, options=limits
        ).x
        f = y @ best.reshape(-1, heads)
        yield float(
            np.mean(names[both(f).argmax(axis=1)] == truth if single else f[::2, 0] > f[1::2, 0])
        )


if __name__ == "__main__":
    file = TemporaryFile()  # noqa: SIM115 (a pipe cannot be read in any order)
    shutil.copyfileobj(sys.stdin.buffer, file)
    file.seek(0)
    given = np.load(file, allow_pickle=False)
    words, test = (
        sp.csr_array(
            tuple(given[f"{part}_{name}"] for name in ("data", "indices", "indptr")),
            given[f"{part}_shape"],
        )
        for part in ("train", "test")
    )
    labels, held, strengths, single = (
        given["labels"],
        given["held"],
        given["strengths"],
        bool(given["single"]),
    )
    weights, best = given["weights"], strengths[1]
    if len(np.unique(labels[~held])) == len(np.unique(labels)):
        chosen_on = words[~held], words[held], labels[~held], labels[held], weights[~held]
        best = strengths[int(np.argmax(list(_accuracies(*chosen_on, strengths, single))))]
    json.dump(
        next(_accuracies(words, test, labels, given["truth"], weights, [best], single)), sys.stdout
    )
