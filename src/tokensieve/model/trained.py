"""A trained model: two numbers per token type, the prior, and the vocabulary; everything that answering and explaining need.

NumPy and Polars only: `tokensieve.model.classifier` is the same behind scikit-learn's interface.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray

from tokensieve.model.attention import answers
from tokensieve.model.decision import both, decide, probabilities
from tokensieve.text.counts import Floats, Ints
from tokensieve.text.vocabulary import Vocabulary


@dataclass(frozen=True)
class Model:
    """Softmax attention over token types, with exact sums as answers (formulas in `tokensieve.model.attention`).

    Attributes:
        classes: the K labels, sorted, shape (K,).
        scores: u, shape (|S|,).
        values: w, shape (|S|, 1) for two classes (of the second), (|S|, K) otherwise.
        prior: decision value of a document without a known token, shape (1,) or (K,).
        tokens: the |S| token types as text.
        vocabulary: how text becomes counts; None for a model of counts.
        steps: training steps taken.
        validation: (steps, mean loss) on held-out documents, shape (checks, 2).
        sink: score of the sink, whose value is the prior; None for a model without one.
        settings: parameters of `AttentionClassifier` that train the same model again from the same counts.
        pairs: whether it was trained on pairs, so that only differences of decision values mean anything.
    """

    classes: NDArray[Any]
    scores: Floats
    values: Floats
    prior: Floats
    tokens: NDArray[Any]
    vocabulary: Vocabulary | None = None
    steps: int = 0
    validation: Floats = field(default_factory=lambda: np.empty((0, 2)))
    sink: float | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    pairs: bool = False

    def count(self, texts: Any) -> tuple[sp.csr_array, Ints]:
        """Counts of texts, shape (n, |S|), and the unknown words of each, shape (n,)."""
        assert self.vocabulary is not None
        return self.vocabulary.read(texts)

    def decide(self, matrix: sp.csr_array) -> Floats:
        """Decision values f, shape (n, H), of counts; the prior where nothing known is in a document."""
        f = answers(matrix, *self.table)
        f[np.diff(matrix.indptr) == 0] = self.prior  # what the sink answers to rounding
        return f

    @property
    def table(self) -> tuple[Floats, Floats]:
        """(u, w) with the sink's, if there is one, in the last place."""
        if self.sink is None:
            return self.scores, self.values
        return np.append(self.scores, self.sink), np.vstack([self.values, self.prior])

    def class_values(self, k: int) -> Floats:
        """Values that speak for class index k, shape (|S|,); with two classes those of the first are −w."""
        return both(self.values)[:, k]

    def answer(self, matrix: sp.csr_array, unknown: Ints) -> pl.DataFrame:
        """One row per document: class, its probability, the decision value f of the second of two classes or of that class,
        and the number of unknown words.

        Args:
            matrix, unknown: of `count`.
        """
        f = self.decide(matrix)
        best, p, rows = decide(f), probabilities(f), np.arange(len(f))
        names = pl.Series(self.classes.tolist()).gather(best)
        value = f[:, 0] if f.shape[1] == 1 else f[rows, best]
        return pl.DataFrame({"class": names, "probability": p[rows, best], "answer": value, "unknown_words": unknown})
