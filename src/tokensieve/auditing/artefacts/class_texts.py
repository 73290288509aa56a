"""The documents of a class, and how well the words of each tell whether it contains another word.

The definition of the context AUC is in `context`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from tokensieve.arrays import Bools, Floats, Integers, Ints

MAX_DOCUMENTS = 6_000  # of a class; a draw of more moves an AUC by less than its standard error
MIN_EACH = 3  # documents with a word and without it, below which there is no AUC
COMES_WITH = 0.8  # of the candidate's documents
SAME_DOCUMENTS = 0.5  # Jaccard index
ROUNDING = 1e-9  # of sums of products of unit vectors
SCORE_DIGITS = 9  # of a document's score: copies of a text tie, whatever the order of sums
WORDS_AT_ONCE = 64  # columns of the dense matrices; bounds their memory


@dataclass(frozen=True)
class Area:
    """An area under the ROC curve.

    Attributes:
        auc: ½ if there are too few documents.
        error: its standard error where nothing tells; infinite if there are too few documents.
        n_with: documents that contain the word.
    """

    auc: float
    error: float
    n_with: int


@dataclass(frozen=True, eq=False)
class ClassTexts:
    """The documents of a class as unit vectors of their weighted words.

    Attributes:
        documents: the class's documents, or a draw of them, ascending, shape (n,).
        types: the types that occur in them, ascending, shape (s,): the columns.
        presence: 1 where one contains a word, shape (n, s).
        vectors: the same, weighted, each row of length 1.
    """

    documents: Ints
    types: Ints
    presence: sp.csr_array
    vectors: sp.csr_array

    @classmethod
    def of(cls, counts: sp.csr_array, weight: Floats, documents: Ints) -> ClassTexts:
        """Some of the documents that are counted, whose words have these weights."""
        if len(documents) > MAX_DOCUMENTS:
            drawn = np.random.default_rng(0).choice(documents, MAX_DOCUMENTS, replace=False)
            documents = np.sort(drawn)
        chosen = counts[documents]
        types = np.unique(chosen.indices)
        columns = np.searchsorted(types, chosen.indices).astype(chosen.indices.dtype)
        units = unit_rows(weight[chosen.indices], chosen.indptr)
        shape = (len(documents), len(types))
        return cls(
            documents,
            types.astype(np.int64),
            sp.csr_array((np.ones(chosen.nnz), columns, chosen.indptr), shape=shape),
            sp.csr_array((units, columns, chosen.indptr), shape=shape),
        )

    @cached_property
    def squares(self) -> sp.csr_array:
        """The squares of `vectors`."""
        vectors = self.vectors
        return sp.csr_array((vectors.data**2, vectors.indices, vectors.indptr), shape=vectors.shape)

    @cached_property
    def n_documents(self) -> Ints:
        """How many of the documents contain each type, shape (s,)."""
        return np.bincount(self.presence.indices, minlength=len(self.types))

    def areas(self, documents: Sequence[Ints], own_types: Sequence[Ints]) -> list[Area]:
        """The context AUC of words, given the documents and the types of each."""
        areas: list[Area] = []
        for i in range(0, len(documents), WORDS_AT_ONCE):
            areas += self._areas(documents[i : i + WORDS_AT_ONCE], own_types[i : i + WORDS_AT_ONCE])
        return areas

    def _areas(self, documents: Sequence[Ints], own_types: Sequence[Ints]) -> list[Area]:
        contains = marked(self.documents, documents)
        is_left_out = self._coming_with(contains) | marked(self.types, own_types)
        scores = np.round(self._scores(contains, is_left_out), SCORE_DIGITS)
        sums = rank_sums(np.ascontiguousarray(scores.T), np.ascontiguousarray(contains.T))
        n_with = contains.sum(axis=0)
        return [
            area_of_ranks(rank_sum, n, len(self.documents))
            for rank_sum, n in zip(sums.tolist(), n_with.tolist(), strict=True)
        ]

    def _scales(self, is_left_out: Bools) -> Floats:
        """What gives a document's vector length 1 without what is left out, or 0."""
        left_out = sp.csr_array(is_left_out.astype(float))  # few are: sparse is faster
        remaining = 1 - (self.squares @ left_out).toarray()
        has_words = remaining > ROUNDING
        return np.where(has_words, 1 / np.sqrt(np.where(has_words, remaining, 1.0)), 0.0)

    def _scores(self, contains: Bools, is_left_out: Bools) -> Floats:
        """Each document's score for each candidate (`context`), shape (n, candidates)."""
        scale = self._scales(is_left_out)
        is_kept = ~is_left_out
        # few documents contain a candidate: sparse, it is faster
        with_candidate = sp.csr_array((contains * scale).T)
        sum_with = (with_candidate @ self.vectors).toarray().T * is_kept
        sum_all = np.asarray(self.vectors.T @ scale) * is_kept
        near_with = np.asarray(self.vectors @ np.ascontiguousarray(sum_with)) * scale
        near_without = np.asarray(self.vectors @ sum_all) * scale - near_with

        # a document is left out of its own side: its product with itself is 1
        n_with = contains.sum(axis=0)
        n_without = len(contains) - n_with
        self_product = (scale > 0).astype(float)
        mean_with = (near_with - self_product * contains) / np.maximum(n_with - contains, 1)
        mean_without = (near_without - self_product * ~contains) / np.maximum(
            n_without - ~contains, 1
        )
        return np.asarray(mean_with - mean_without)

    def _coming_with(self, contains: Bools) -> Bools:
        """Which words come with each candidate nearly always, or have much the same documents."""
        candidates = sp.csr_array(contains.T.astype(float))
        n_both = (candidates @ self.presence).toarray().T
        n_with = contains.sum(axis=0)
        either = n_with + self.n_documents[:, None] - n_both
        return np.asarray((n_both >= COMES_WITH * n_with) | (n_both >= SAME_DOCUMENTS * either))


def unit_rows(data: Floats, starts: Integers) -> Floats:
    """The entries of a sparse matrix, each row divided by its length; `starts` as in CSR."""
    n_rows = len(starts) - 1
    row = np.repeat(np.arange(n_rows), np.diff(starts))
    lengths = np.sqrt(np.bincount(row, data**2, minlength=n_rows))
    return np.asarray((1 / np.maximum(lengths, 1e-12))[row] * data)


def marked(places: Ints, chosen: Sequence[Ints]) -> Bools:
    """Which of some ascending places each of several choices contains, shape (places, choices)."""
    marks = np.zeros((len(places), len(chosen)), dtype=bool)
    if not len(places) or not len(chosen):
        return marks
    wanted = np.concatenate(chosen)
    columns = np.repeat(np.arange(len(chosen)), [len(one) for one in chosen])
    rows = np.minimum(np.searchsorted(places, wanted), len(places) - 1)
    is_there = places[rows] == wanted
    marks[rows[is_there], columns[is_there]] = True
    return marks


def rank_sums(scores: Floats, contains: Bools) -> Floats:
    """The sum of the ranks of the documents with each candidate, shape (candidates,).

    Equal scores share the mean of their ranks, which is a half of a whole number, so that sums are
    exact.

    Args:
        scores: of each candidate's documents, shape (candidates, n).
        contains: whether they contain it, of the same shape.
    """
    by_score = np.argsort(scores, axis=1)
    in_order = np.take_along_axis(scores, by_score, axis=1)
    n = scores.shape[1]
    is_first = np.ones(scores.shape, dtype=bool)
    is_first[:, 1:] = in_order[:, 1:] != in_order[:, :-1]
    is_last = np.ones(scores.shape, dtype=bool)
    is_last[:, :-1] = is_first[:, 1:]
    places = np.arange(n)
    first = np.maximum.accumulate(np.where(is_first, places, 0), axis=1)
    from_behind = np.where(is_last, places, n - 1)[:, ::-1]
    last = np.minimum.accumulate(from_behind, axis=1)[:, ::-1]
    twice_ranks = first + last + 2
    with_candidate = np.take_along_axis(contains, by_score, axis=1)
    return np.asarray((twice_ranks * with_candidate).sum(axis=1) / 2)


def area_of_ranks(rank_sum: float, n_with: int, n_documents: int) -> Area:
    """The area under the ROC curve of a candidate's scores, by the ranks of its documents."""
    n_without = n_documents - n_with
    if min(n_with, n_without) < MIN_EACH:
        return Area(0.5, np.inf, n_with)
    n_pairs = n_with * n_without
    auc = (rank_sum - n_with * (n_with + 1) / 2) / n_pairs
    error = np.sqrt((n_documents + 1) / (12 * n_pairs))
    return Area(float(auc), float(error), n_with)
