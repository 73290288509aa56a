"""Pairs of words whose order, or whose meeting, predicts the class: what single words do not show.

The model, and every other table of an audit, sees which words a document contains. Here two more
questions are asked about every pair of frequent words, with class k against the rest:

**Order.** Of the documents that contain both a and b, do those with a before b (within `WINDOW` words)
belong to a class more often than the others? Both words are present on either side of the comparison,
so that nothing that they say alone enters. Fisher's exact test.

**Joint presence.** Does a predict the class differently where b is present? With p_ij the fraction of
class k among the documents with (i) or without (j) each word, the interaction

    L = logit p_11 − logit p_10 − logit p_01 + logit p_00

is zero where the two words add up. Its z-score uses the delta method, half a document added to each
cell (Haldane 1956; Anscombe 1956).

For each pair the class with the largest deviation is tested and p is multiplied by the number of
classes. Over all pairs that enough documents contain, the false discovery rate is held at
`FALSE_DISCOVERIES` (Benjamini & Hochberg 1995). Then pairs are left out that something simpler
explains: a phrase (no effect without the documents where b directly follows a), or a stronger pair
in much the same documents.

Method of the counts: one pass over the words of each document, which keeps, for each pair, the last
document it was seen in, so that every document counts once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numba
import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import hypergeom

from tokensieve.arrays import Bools, Floats, Ints
from tokensieve.evidence.intervals import false_discovery

WINDOW = 10  # words from a to b: about half of a sentence
MAX_WORDS = 2_000  # the most frequent ones; the next bring pairs that too few documents contain
MAX_CELLS = 16_000_000  # pairs × classes that are counted together: 64 MB for each of four tables
MIN_WITH = 10  # documents with the pair, and without it
MIN_LIFT = 0.2  # of the way from the rate without the pair to certain (or to never)
FALSE_DISCOVERIES = 0.01
PHRASE_LEVEL = 0.05  # p without the phrase; above it the phrase explains the pair
SAME_DOCUMENTS = 0.5  # Jaccard index of the documents of two pairs that are one
EXACT_ABOVE = 8.0  # χ² from which Fisher's exact test is computed; below it no pair is a discovery
MAX_PAIRS = 20

Counts32 = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Pair:
    """Two words whose order or joint presence predicts a class.

    Attributes:
        kind: "order" or "joint".
        first, second: the words; a joint pair's in the order of their frequency.
        label: the class, as a number.
        documents: those with the pair: first before second, or both.
        n_right: how many of them are of the class.
        n_others: documents with both words in another order or further apart; for a joint pair, those
            with one of the words.
        n_others_right: how many of those are of the class.
        p_value: corrected for the choice of the class.
        q_value: over all pairs of this kind.
    """

    kind: Literal["order", "joint"]
    first: str
    second: str
    label: int
    documents: Ints
    n_right: int
    n_others: int
    n_others_right: int
    p_value: float
    q_value: float

    @property
    def rate(self) -> float:
        """The fraction of the pair's documents that are of the class."""
        return self.n_right / max(len(self.documents), 1)

    @property
    def rate_of_others(self) -> float:
        """The same of the documents it is compared with."""
        return self.n_others_right / max(self.n_others, 1)


@dataclass(frozen=True, eq=False)
class WordRuns:
    """Texts as runs of word numbers.

    Attributes:
        ids: the word at every position; −1 for a word that is not asked about.
        starts: where each run begins, shape (runs + 1,). A text of several fields is several runs.
        documents: the document of each run, ascending, shape (runs,).
        words: the words asked about, the most frequent first.
        labels: the class of each document.
        n_classes: K.
    """

    ids: Counts32
    starts: Ints
    documents: Ints
    words: list[str]
    labels: Ints
    n_classes: int


@dataclass(frozen=True, eq=False)
class PairCounts:
    """Documents of each class by pair of words (a, b), each of shape (K, V, V), and (K, V) of words.

    Attributes:
        before: a stands before b within the window.
        adjacent: b directly follows a.
        both: both are present, symmetric.
        present: a is present.
        class_sizes: shape (K,).
    """

    before: Counts32
    adjacent: Counts32
    both: Counts32
    present: Ints
    class_sizes: Ints


def largest_vocabulary(n_classes: int) -> int:
    """How many words are asked about: fewer if there are many classes."""
    return int(min(MAX_WORDS, (MAX_CELLS / n_classes) ** 0.5))


def count_pairs(runs: WordRuns) -> PairCounts:
    """How many documents of each class contain each pair."""
    n_words = len(runs.words)
    shape = (runs.n_classes, n_words, n_words)
    before = np.zeros(shape, np.int32)
    adjacent = np.zeros(shape, np.int32)
    both = np.zeros(shape, np.int32)
    present = np.zeros((runs.n_classes, n_words), np.int64)
    if n_words:
        _count(
            runs.ids, runs.starts, runs.documents, runs.labels, before, adjacent, both, present
        )
    sizes = np.bincount(runs.labels, minlength=runs.n_classes)
    return PairCounts(before, adjacent, both, present, sizes.astype(np.int64))


@numba.njit(cache=True)
def _count(ids, starts, documents, labels, before, adjacent, both, present):  # type: ignore[no-untyped-def]
    n_words = before.shape[1]
    last_before = np.full((n_words, n_words), -1, np.int32)
    last_adjacent = np.full((n_words, n_words), -1, np.int32)
    last_present = np.full(n_words, -1, np.int32)
    members = np.empty(n_words, np.int32)
    run = 0
    while run < len(documents):
        document = documents[run]
        label = labels[document]
        n_members = 0
        while run < len(documents) and documents[run] == document:
            for i in range(starts[run], starts[run + 1]):
                a = ids[i]
                if a < 0:
                    continue
                if last_present[a] != document:
                    last_present[a] = document
                    members[n_members] = a
                    n_members += 1
                for j in range(i + 1, min(i + WINDOW + 1, starts[run + 1])):
                    b = ids[j]
                    if b < 0 or b == a:
                        continue
                    if last_before[a, b] != document:
                        last_before[a, b] = document
                        before[label, a, b] += 1
                    if j == i + 1 and last_adjacent[a, b] != document:
                        last_adjacent[a, b] = document
                        adjacent[label, a, b] += 1
            run += 1
        for i in range(n_members):
            a = members[i]
            present[label, a] += 1
            for j in range(i):
                both[label, a, members[j]] += 1
                both[label, members[j], a] += 1


def predictive_pairs(runs: WordRuns) -> list[Pair]:
    """The pairs whose order or joint presence predicts a class, most significant first (module docstring)."""
    counts = count_pairs(runs)
    found = [*_order_pairs(counts, runs), *_joint_pairs(counts, runs)]
    found.sort(key=lambda pair: (pair.p_value, pair.first, pair.second))
    distinct: list[Pair] = []
    for pair in found:
        if not any(is_same(pair, stronger) for stronger in distinct):
            distinct.append(pair)
        if len(distinct) == MAX_PAIRS:
            break
    return distinct


def is_same(pair: Pair, stronger: Pair) -> bool:
    """Whether two pairs are in much the same documents, or are the two orders of the same words."""
    if {pair.first, pair.second} == {stronger.first, stronger.second}:
        return True
    both = len(np.intersect1d(pair.documents, stronger.documents, assume_unique=True))
    either = len(pair.documents) + len(stronger.documents) - both
    return both >= SAME_DOCUMENTS * either
