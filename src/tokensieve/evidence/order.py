"""Pairs of words whose order, or whose meeting, predicts the class: what single words do not show.

The model, and every other table of an audit, sees which words a document contains. Here two more
questions are asked about every pair of frequent words, with class k against the rest:

**Order.** Of the documents that contain both a and b, do those with a before b (within `WINDOW`
words) belong to a class more often than the others? Both words are present on either side of the
comparison, so that nothing that they say alone enters. Fisher's exact test.

**Joint presence.** Does a predict the class differently where b is present? With p_ij the fraction
of class k among the documents with (i) or without (j) each word, the interaction

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

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, ndtr

from tokensieve.arrays import Bools, Floats, Ints
from tokensieve.evidence.intervals import false_discovery
from tokensieve.kernels import compiled

WINDOW = 10  # words from a to b: about half of a sentence
MAX_WORDS = 2_000  # the most frequent ones; the next bring pairs that too few documents contain
MAX_CELLS = 16_000_000  # pairs × classes that are counted together: 64 MB for each of four tables
PAIRS_AT_ONCE = 2**17  # whose z is computed: 40 MB
MIN_WITH = 10  # documents with the pair, and without it
MIN_LIFT = 0.2  # of the way from the rate without the pair to certain (or to never)
FALSE_DISCOVERIES = 0.01  # level of q: of a hundred pairs listed, one by chance
PHRASE_LEVEL = 0.05  # p without the phrase; above it the phrase explains the pair
SAME_DOCUMENTS = 0.5  # Jaccard index of the documents of two pairs that are one
NEGLIGIBLE = 1e-17  # of a sum: less than half a unit in the last place of a double
EXACT_ABOVE = 8.0  # χ² from which Fisher's exact test is computed; below it no pair is a discovery
MAX_PAIRS = 20
HALF_A_DOCUMENT = 0.5  # added to each cell, so that its logarithm is finite (Haldane 1940)

Counts32 = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Pair:
    """Two words whose order or joint presence predicts a class.

    Attributes:
        kind: "order" or "joint".
        first, second: the words; a joint pair's in the order of their frequency.
        label: the class, as a number.
        documents: those with the pair: first before second, or both.
        n_of_class: how many of them are of the class.
        n_others: documents with both words in another order or further apart; for a joint pair,
            those with one of the words.
        n_others_of_class: how many of those are of the class.
        p_value: corrected for the choice of the class.
        q_value: over all pairs of this kind.
    """

    kind: Literal["order", "joint"]
    first: str
    second: str
    label: int
    documents: Ints
    n_of_class: int
    n_others: int
    n_others_of_class: int
    p_value: float
    q_value: float

    @property
    def rate(self) -> float:
        """The fraction of the pair's documents that are of the class."""
        return self.n_of_class / max(len(self.documents), 1)

    @property
    def rate_of_others(self) -> float:
        """The fraction of the class among the documents that the pair is compared with."""
        return self.n_others_of_class / max(self.n_others, 1)


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
    """Documents of each class by pair of words (a, b), each of shape (K, V, V), and (K, V) of
    words.

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
    """The number of words whose order is examined: fewer if there are many classes."""
    return int(min(MAX_WORDS, (MAX_CELLS / n_classes) ** 0.5))


def count_pairs(runs: WordRuns) -> PairCounts:
    """Count the documents of each class that contain each ordered pair of words."""
    n_words = len(runs.words)
    shape = (runs.n_classes, n_words, n_words)
    before = np.zeros(shape, np.int32)
    adjacent = np.zeros(shape, np.int32)
    n_both = np.zeros(shape, np.int32)
    present = np.zeros((runs.n_classes, n_words), np.int64)
    if n_words:
        _count(
            runs.ids, runs.starts, runs.documents, runs.labels, before, adjacent, n_both, present
        )
    sizes = np.bincount(runs.labels, minlength=runs.n_classes)
    return PairCounts(before, adjacent, n_both, present, sizes.astype(np.int64))


@compiled()
def _count(
    ids: Any,
    starts: Any,
    documents: Any,
    labels: Any,
    before: Any,
    adjacent: Any,
    both: Any,
    present: Any,
) -> None:
    """Add the documents of each class to the tables of `PairCounts`, each document once.

    The first four are fields of `WordRuns`; the runs of one document follow each other.
    """
    n_words = before.shape[1]
    last_before = np.full((n_words, n_words), -1, np.int32)
    last_adjacent = np.full((n_words, n_words), -1, np.int32)
    last_present = np.full(n_words, -1, np.int32)
    members = np.empty(n_words, np.int32)
    n_members = 0
    for run in range(len(documents)):
        document = documents[run]
        label = labels[document]
        words = ids[starts[run] : starts[run + 1]]
        _count_run(words, document, before[label], adjacent[label], last_before, last_adjacent)
        for word in words:
            if word >= 0 and last_present[word] != document:
                last_present[word] = document
                members[n_members] = word
                n_members += 1
        is_last_of_document = run + 1 == len(documents) or documents[run + 1] != document
        if is_last_of_document:
            _count_members(members[:n_members], both[label], present[label])
            n_members = 0


@compiled()
def _count_run(
    words: Any, document: int, before: Any, adjacent: Any, last_before: Any, last_adjacent: Any
) -> None:
    """Count a document under each ordered pair of words of one of its runs, the first time only.

    `last_before` and `last_adjacent` hold the last document that was counted for each pair.
    """
    for i in range(len(words)):
        a = words[i]
        if a < 0:
            continue
        for j in range(i + 1, min(i + WINDOW + 1, len(words))):
            b = words[j]
            if b < 0 or b == a:
                continue
            if last_before[a, b] != document:
                last_before[a, b] = document
                before[a, b] += 1
            if j == i + 1 and last_adjacent[a, b] != document:
                last_adjacent[a, b] = document
                adjacent[a, b] += 1


@compiled()
def _count_members(members: Any, both: Any, present: Any) -> None:
    """Count a document under each of its distinct words, and under each two of them."""
    for i in range(len(members)):
        a = members[i]
        present[a] += 1
        for j in range(i):
            both[a, members[j]] += 1
            both[members[j], a] += 1


def predictive_pairs(runs: WordRuns) -> list[Pair]:
    """The pairs whose order or joint presence predicts a class, most significant first (module
    docstring).
    """
    counts = count_pairs(runs)
    pairs = [*_order_pairs(counts, runs), *_joint_pairs(counts, runs)]
    pairs.sort(key=lambda pair: (pair.p_value, pair.first, pair.second))
    distinct: list[Pair] = []
    for pair in pairs:
        if not any(is_same(pair, stronger) for stronger in distinct):
            distinct.append(pair)
        if len(distinct) == MAX_PAIRS:
            break
    return distinct


def is_same(pair: Pair, stronger: Pair) -> bool:
    """Whether two pairs are in much the same documents, or are the two orders of the same words."""
    if {pair.first, pair.second} == {stronger.first, stronger.second}:
        return True
    n_shared = len(np.intersect1d(pair.documents, stronger.documents, assume_unique=True))
    either = len(pair.documents) + len(stronger.documents) - n_shared
    return n_shared >= SAME_DOCUMENTS * either


@dataclass(frozen=True, eq=False)
class Tested:
    """Pairs with their tests, each of shape (pairs,).

    Attributes:
        first, second: numbers of the words.
        label: the class that each points to.
        n_with, n_of_class: documents with the pair, and those of the class among them.
        n_others, n_others_of_class: the same of the documents it is compared with.
        p_value: corrected for the choice of the class.
    """

    first: Ints
    second: Ints
    label: Ints
    n_with: Ints
    n_of_class: Ints
    n_others: Ints
    n_others_of_class: Ints
    p_value: Floats

    @property
    def lift(self) -> Floats:
        """How far the pair's rate lies on the way from the rate of the others (0) to certainty
        (1)."""
        rate_of_others = self.n_others_of_class / self.n_others
        rate = self.n_of_class / self.n_with
        return np.asarray((rate - rate_of_others) / np.maximum(1 - rate_of_others, 1e-12))


def _order_pairs(counts: PairCounts, runs: WordRuns) -> list[Pair]:
    """Pairs whose order predicts a class among the documents that contain both words."""
    n_with_order = counts.before.sum(axis=0, dtype=np.int32)
    n_others = counts.both.sum(axis=0, dtype=np.int32) - n_with_order
    first, second = np.nonzero((n_with_order >= MIN_WITH) & (n_others >= MIN_WITH))
    if not len(first):
        return []
    tested = tested_orders(counts, first, second)
    return _discoveries("order", tested, ~is_phrase(counts, tested), runs)


def tested_orders(counts: PairCounts, first: Ints, second: Ints) -> Tested:
    """The tests of ordered pairs among the documents that contain both words."""
    with_order = counts.before[:, first, second].astype(np.int64)
    with_both = counts.both[:, first, second].astype(np.int64)
    n_with = with_order.sum(axis=0)
    n_both = with_both.sum(axis=0)
    label = most_deviating_class(with_order, n_with, with_both, n_both)
    pairs = np.arange(len(first))
    n_of_class = with_order[label, pairs]
    n_both_of_class = with_both[label, pairs]
    return Tested(
        first=first,
        second=second,
        label=label,
        n_with=n_with,
        n_of_class=n_of_class,
        n_others=n_both - n_with,
        n_others_of_class=n_both_of_class - n_of_class,
        p_value=fisher_p(n_of_class, n_with, n_both_of_class, n_both, len(with_order)),
    )


def is_phrase(counts: PairCounts, tested: Tested) -> Bools:
    """Whether each ordered pair (a, b) is a phrase: the words predict the class only side by side.

    Fisher's test of the pair is repeated without the documents in which b directly follows a. Where
    it is no longer significant, at `PHRASE_LEVEL`, the phrase "a b" explains the pair. The class
    was chosen among all, so p is multiplied by their number.
    """
    n_adjacent = counts.adjacent[:, tested.first, tested.second].sum(axis=0).astype(np.int64)
    adjacent_of_class = counts.adjacent[tested.label, tested.first, tested.second]
    n_apart = tested.n_with - n_adjacent
    n_apart_of_class = tested.n_of_class - adjacent_of_class.astype(np.int64)
    n_compared = n_apart + tested.n_others
    n_compared_of_class = n_apart_of_class + tested.n_others_of_class
    n_classes = len(counts.class_sizes)
    p_apart = fisher_p(n_apart_of_class, n_apart, n_compared_of_class, n_compared, n_classes)
    return np.asarray(p_apart >= PHRASE_LEVEL)


def _joint_pairs(counts: PairCounts, runs: WordRuns) -> list[Pair]:
    """Pairs whose joint presence predicts a class beyond what the two words add up to."""
    n_both = counts.both.sum(axis=0, dtype=np.int32)
    present = counts.present.sum(axis=0).astype(np.int32)
    n_one = present[:, None] + present[None, :] - 2 * n_both
    n_none = np.int32(counts.class_sizes.sum()) - n_both - n_one
    is_frequent = (n_both >= MIN_WITH) & (n_one >= MIN_WITH) & (n_none >= MIN_WITH)
    first, second = np.nonzero(np.triu(is_frequent, 1))
    if not len(first):
        return []
    n_with = n_both[first, second].astype(np.int64)
    n_others = n_one[first, second].astype(np.int64)
    del n_both, n_one, n_none  # 16 MB each
    tested = tested_interactions(counts, first, second, n_with, n_others)
    # the phrase "a b" or "b a" explains a pair that mostly occurs as one
    adjacent = counts.adjacent.sum(axis=0, dtype=np.int32)
    n_phrase = adjacent[first, second] + adjacent[second, first]
    return _discoveries("joint", tested, n_phrase <= n_with / 2, runs)


def tested_interactions(
    counts: PairCounts, first: Ints, second: Ints, n_with: Ints, n_others: Ints
) -> Tested:
    """The tests of pairs, given the documents with both words, and with one of them."""
    z, label = strongest_interaction(counts, first, second)
    n_of_class = counts.both[label, first, second].astype(np.int64)
    n_of_either = counts.present[label, first] + counts.present[label, second]
    n_tests = len(counts.class_sizes)
    return Tested(
        first=first,
        second=second,
        label=label,
        n_with=n_with,
        n_of_class=n_of_class,
        n_others=n_others,
        n_others_of_class=n_of_either - 2 * n_of_class,
        p_value=np.minimum(1.0, n_tests * ndtr(-z)),
    )


def strongest_interaction(counts: PairCounts, first: Ints, second: Ints) -> tuple[Floats, Ints]:
    """The largest z of L over the classes, and its class, each of shape (pairs,)."""
    largest = np.full(len(first), -np.inf)
    label = np.zeros(len(first), dtype=np.int64)
    n_both = counts.both.sum(axis=0, dtype=np.int32)
    present = counts.present.sum(axis=0)
    n_all = int(counts.class_sizes.sum())
    terms = CellTerms.of(n_all)
    for start in range(0, len(first), PAIRS_AT_ONCE):
        some = slice(start, start + PAIRS_AT_ONCE)
        sizes = presence_cells(n_both, present, first[some], second[some])
        for k in range(len(counts.class_sizes)):
            cells = presence_cells(counts.both[k], counts.present[k], first[some], second[some])
            z = interaction_z(cells, sizes, int(counts.class_sizes[k]), n_all, terms)
            is_larger = z > largest[some]
            largest[some][is_larger] = z[is_larger]
            label[some][is_larger] = k
    return largest, label


def presence_cells(both: Counts32, present: Ints, first: Ints, second: Ints) -> Ints:
    """Documents with both words, the first only and the second only, shape (3, pairs)."""
    n_both = both[first, second].astype(np.int64)
    return np.stack([n_both, present[first] - n_both, present[second] - n_both])


def _discoveries(
    kind: Literal["order", "joint"], tested: Tested, is_allowed: Bools, runs: WordRuns
) -> list[Pair]:
    """The most significant of the pairs that are discoveries, large enough and allowed."""
    q_value = q_values_below(FALSE_DISCOVERIES, tested.p_value)
    is_found = (q_value < FALSE_DISCOVERIES) & (tested.lift >= MIN_LIFT) & is_allowed
    places = np.flatnonzero(is_found)
    places = places[np.argsort(tested.p_value[places], kind="stable")][: 3 * MAX_PAIRS]
    holders = documents_in_order if kind == "order" else documents_with_both
    return [
        Pair(
            kind=kind,
            first=runs.words[tested.first[i]],
            second=runs.words[tested.second[i]],
            label=int(tested.label[i]),
            documents=holders(runs, int(tested.first[i]), int(tested.second[i])),
            n_of_class=int(tested.n_of_class[i]),
            n_others=int(tested.n_others[i]),
            n_others_of_class=int(tested.n_others_of_class[i]),
            p_value=float(tested.p_value[i]),
            q_value=float(q_value[i]),
        )
        for i in places.tolist()
    ]


def q_values_below(level: float, p_value: Floats) -> Floats:
    """Benjamini–Hochberg q-values, shape (pairs,), as far as they are below `level`; else 1.

    q is the least of p′ m/rank(p′) over all p′ ≥ p, and at least p′ for each. A p′ of `level` or
    more thus decides no q below it, and of millions of pairs only the few below it are sorted.
    """
    is_small = p_value < level
    q_value = np.ones(len(p_value))
    of_small = false_discovery(p_value[is_small][:, None], len(p_value))[:, 0]
    q_value[is_small] = np.where(of_small < level, of_small, 1.0)
    return q_value


def most_deviating_class(inside: Ints, n_with: Ints, inside_all: Ints, n_all: Ints) -> Ints:
    """The class furthest above expectation, in standard deviations, shape (pairs,)."""
    expected = inside_all * (n_with / n_all)
    variance = expected * (1 - inside_all / n_all) * (1 - n_with / n_all)
    # a variance of zero comes with a deviation of zero
    deviation = (inside - expected) / np.sqrt(np.maximum(variance, 1e-12))
    return np.asarray(np.argmax(deviation, axis=0), dtype=np.int64)


def fisher_p(of_class: Ints, n_with: Ints, of_class_all: Ints, n_all: Ints, n_tests: int) -> Floats:
    """One-sided p of Fisher's exact test for too many of a class, corrected for several tests.

    It is computed only where χ² is large enough to matter, and 1 elsewhere. All arrays have the
    shape (pairs,).

    Args:
        of_class: documents of the class among those with the order.
        n_with: documents with the order.
        of_class_all: documents of the class among all that are compared.
        n_all: all that are compared.
        n_tests: by which p is multiplied (Bonferroni), up to 1.
    """
    n = np.maximum(n_all, 1)
    expected = of_class_all * (n_with / n)
    variance = expected * (1 - of_class_all / n) * (1 - n_with / n)
    excess = of_class - expected
    is_tested = (excess > 0) & (excess**2 > EXACT_ABOVE * variance)
    tail = hypergeometric_tail(
        of_class[is_tested], n_all[is_tested], of_class_all[is_tested], n_with[is_tested]
    )
    p_value = np.ones(len(of_class))
    p_value[is_tested] = np.minimum(1.0, n_tests * tail)
    return p_value


def hypergeometric_tail(fewest: Ints, n_all: Ints, n_marked: Ints, n_drawn: Ints) -> Floats:
    """P(X ≥ fewest) for the number X of marked items among some drawn from all, shape of fewest.

    `fewest` is at least the expected number, so that the terms of the sum fall and it can end where
    they no longer change it. `scipy.stats.hypergeom.sf` agrees to ten digits; importing scipy.stats
    takes 0.7 s.
    """
    n_unmarked = n_all - n_marked
    log_term = (
        log_choose(n_marked, fewest)
        + log_choose(n_unmarked, n_drawn - fewest)
        - log_choose(n_all, n_drawn)
    )
    hits = fewest.astype(np.float64)
    term = np.ones(len(fewest))  # relative to the first
    total = np.ones(len(fewest))
    while np.any(term > NEGLIGIBLE * total):
        # P(X = k + 1)/P(X = k), which reaches 0 with the last possible k
        growth = (n_marked - hits) * (n_drawn - hits)
        term = term * np.maximum(growth, 0.0) / ((hits + 1) * (n_unmarked - n_drawn + hits + 1))
        total += term
        hits += 1
    return np.asarray(np.exp(log_term) * total)


def log_choose(n: Ints, k: Ints) -> Floats:
    """The logarithm of the number of ways to choose k of n items."""
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


@dataclass(frozen=True, eq=False)
class CellTerms:
    """What a cell of n documents adds to L and to its variance, for n = 0, …, all documents.

    There are millions of cells and thousands of values, so looking them up takes a third of the
    time of computing them.

    Attributes:
        log: log(n + ½), shape (documents + 1,).
        inverse: 1/(n + ½), of the same shape.
    """

    log: Floats
    inverse: Floats

    @classmethod
    def of(cls, n_documents: int) -> CellTerms:
        """The terms of up to so many documents."""
        cell = np.arange(n_documents + 1) + HALF_A_DOCUMENT
        return cls(np.log(cell), 1 / cell)


def interaction_z(
    cells: Ints, sizes: Ints, class_size: int, n_all: int, terms: CellTerms
) -> Floats:
    """z of L for one class, shape (pairs,).

    Args:
        cells: the class's documents with both words, the first only and the second only.
        sizes: the same of all documents.
        class_size: the class's documents.
        n_all: all documents.
        terms: of up to `n_all` documents.
    """
    others = sizes - cells
    with_neither = class_size - cells.sum(axis=0)
    others_with_neither = n_all - class_size - others.sum(axis=0)
    log_odds = np.zeros(cells.shape[1])
    variance = np.zeros(cells.shape[1])
    in_class = (*cells, with_neither)
    in_others = (*others, others_with_neither)
    for sign, of_class, of_others in zip((1, -1, -1, 1), in_class, in_others, strict=True):
        log_odds += sign * (terms.log[of_class] - terms.log[of_others])
        variance += terms.inverse[of_class] + terms.inverse[of_others]
    return np.asarray(log_odds / np.sqrt(variance))


def documents_in_order(runs: WordRuns, a: int, b: int) -> Ints:
    """The documents where a stands before b within the window."""
    return np.unique(runs.documents[_runs_of(runs, places_in_order(runs, a, b))])


def places_in_order(runs: WordRuns, a: int, b: int) -> Ints:
    """Positions of a with b behind it within the window, in the same run."""
    places_a = np.flatnonzero(runs.ids == a)
    places_b = np.flatnonzero(runs.ids == b)
    next_b = np.searchsorted(places_b, places_a, side="right")
    has_b = next_b < len(places_b)
    places_a = places_a[has_b]
    distance = places_b[next_b[has_b]] - places_a
    ends = runs.starts[_runs_of(runs, places_a) + 1]
    return places_a[(distance <= WINDOW) & (places_a + distance < ends)]


def documents_with_both(runs: WordRuns, a: int, b: int) -> Ints:
    """The documents that contain both words."""
    with_a = np.unique(runs.documents[_runs_of(runs, np.flatnonzero(runs.ids == a))])
    with_b = np.unique(runs.documents[_runs_of(runs, np.flatnonzero(runs.ids == b))])
    documents: Ints = np.intersect1d(with_a, with_b, assume_unique=True)
    return documents


def _runs_of(runs: WordRuns, positions: Ints) -> Ints:
    """The run that each position in the stream of words lies in, of the same shape."""
    return np.searchsorted(runs.starts, positions, side="right") - 1
