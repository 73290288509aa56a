"""Do the other words of a document tell whether it contains a word? Subject words keep company.

Among the documents of a class, a classifier is asked which contain the candidate, from their other
words alone. It is the centroid classifier (Rocchio 1971), which has a closed form for leaving one
document out. With x_i the unit vector of document i's other words, each weighing log(n/documents
with it),

    score_i = x_i · (mean of x over the other documents with the candidate
                     − mean of x over the other documents without it)

and the **context AUC** is the area under the ROC curve of these scores, over the classes. Of a word
that was put in at random it is 1/2 up to chance. The candidate and what mostly comes with it are
left out of x.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.stats import rankdata

from tokensieve.arrays import Floats, Ints
from tokensieve.text.counts import Counts

Bools = NDArray[np.bool_]
MIN_EACH = 3  # documents with a candidate and without it, below which a class says nothing
SAME_DOCUMENTS = 0.5  # Jaccard index: words so often together are parts of one thing
SMALLEST_NORM = 1e-12  # a document without any other word has the norm zero
NO_INFORMATION = 0.5  # AUC of an uninformative predictor


class Company:
    """The words of all documents, as vectors in which candidates are looked for."""

    def __init__(self, counts: Counts) -> None:
        self.counts = counts
        present = counts.matrix.copy().astype(np.float64)
        present.data = np.ones_like(present.data)
        self._present = sp.csr_array(present)
        self._n_with = np.asarray(present.sum(axis=0)).ravel()
        self._labels = counts.labels
        self._n_classes = counts.n_classes
        weights = np.log(counts.n_documents / np.maximum(self._n_with, 1.0))
        self._weighted = sp.csr_array(self._present @ sp.diags_array(weights))
        self._squares = self._weighted.multiply(self._weighted)

    def contains_all(self, words: Ints) -> Bools:
        """Which documents contain all of some words, shape (n,)."""
        columns = self._present[:, words].toarray()
        return np.asarray(columns.all(axis=1))

    def auc(self, is_with: Bools) -> float:
        """The context AUC of what some documents have, shape (n,); 1/2 if too few have it."""
        informative = self._informative(is_with)
        norms = np.sqrt(self._squares @ informative)
        areas = []
        weights = []
        for k in range(self._n_classes):
            of_class = np.flatnonzero(self._labels == k)
            is_with_of_class = is_with[of_class]
            n_with = int(is_with_of_class.sum())
            n_without = len(is_with_of_class) - n_with
            if min(n_with, n_without) < MIN_EACH:
                continue
            areas.append(
                _area(
                    self._scores(of_class, is_with_of_class, informative, norms), is_with_of_class
                )
            )
            weights.append(n_with * n_without / (n_with + n_without))
        if not areas:
            return NO_INFORMATION
        return float(np.average(areas, weights=weights))

    def _informative(self, is_with: Bools) -> Floats:
        """1 for each word that may tell about the candidate, 0 for what mostly comes with it."""
        n_together = self._present.T @ is_with.astype(np.float64)
        either = np.maximum(self._n_with + is_with.sum() - n_together, 1.0)
        return np.where(n_together / either >= SAME_DOCUMENTS, 0.0, 1.0)

    def _scores(self, of_class: Ints, inside: Bools, kept: Floats, norms: Floats) -> Floats:
        """The module's scores of the documents of a class."""
        rows = self._weighted[of_class] @ sp.diags_array(kept)
        unit = sp.diags_array(1.0 / np.maximum(norms[of_class], SMALLEST_NORM)) @ rows
        towards_with = unit @ (inside.astype(np.float64) @ unit)
        towards_without = unit @ ((~inside).astype(np.float64) @ unit)
        # x_i · x_i, which is left out of the sum that a document itself is part of
        itself = np.where(norms[of_class] > 0, 1.0, 0.0)
        others_with = np.where(inside, towards_with - itself, towards_with)
        others_without = np.where(inside, towards_without, towards_without - itself)
        n_others_with = inside.sum() - inside
        n_others_without = (~inside).sum() - ~inside
        return np.asarray(others_with / n_others_with - others_without / n_others_without)


def _area(scores: Floats, inside: Bools) -> float:
    """Area under the ROC curve."""
    n_inside = int(inside.sum())
    n_outside = len(inside) - n_inside
    ranks = rankdata(scores)[inside].sum()
    return float((ranks - n_inside * (n_inside + 1) / 2) / (n_inside * n_outside))
