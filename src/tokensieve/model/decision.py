"""From answers to decisions: the class that is answered, its probability, and how often it is right.

Answers f have shape (n, H): H = 1 head for two classes, where f > 0 answers class 1, and H = K heads otherwise, where the
largest answers. With two classes the answers for class 0 are −f: `both` writes the mirrored column.
"""

from __future__ import annotations

import math

import numpy as np

from tokensieve.text.counts import Floats, Ints


def decide(f: Floats) -> Ints:
    """Index of the class answered, shape (n,); f of shape (n, H), or (n,) for two classes."""
    if f.ndim == 2 and f.shape[1] > 1:
        return np.asarray(np.argmax(f, axis=1))
    return (f.reshape(len(f)) > 0).astype(np.int64)


def probabilities(f: Floats) -> Floats:
    """Class probabilities, shape (n, K): logistic for one head (shape (n,) or (n, 1)), softmax for K."""
    if f.ndim == 2 and f.shape[1] > 1:
        return np.asarray(np.exp(f - np.logaddexp.reduce(f, axis=1, keepdims=True)))
    f = f.reshape(len(f))
    return np.exp(-np.logaddexp(0.0, np.column_stack([f, -f])))


def both(x: Floats) -> Floats:
    """One column per class, shape (m, K): [−x, x] for one head, x itself for K heads."""
    return np.hstack([-x, x]) if x.shape[1] == 1 else x


def accuracy(f: Floats, labels: Ints) -> float:
    """Share of documents answered rightly; nan without documents."""
    return float(np.mean(decide(f) == labels)) if len(labels) else math.nan
