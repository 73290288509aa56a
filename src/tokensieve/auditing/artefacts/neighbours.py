"""Was a word put between words that are neighbours elsewhere? And how constant are its neighbours?

**Looks inserted.** Take a word, or the run of words that it always stands in, out of its text, and
its left and right neighbours meet. If it was put into a finished text, they are a pair that other
texts have about as often as they have any pair; if it was written there, about as seldom as any two
words with one word between them. With h the fraction of meeting pairs that occur elsewhere, r the
fraction of all pairs of these classes that occur twice, and s the fraction of words whose
neighbours are themselves a pair elsewhere,

    inserted = (h − s)/(r − s)

is 1 for what was put in and 0 for what was written. The edges of a text are neighbours, too,
compared with edges. Few occurrences, or r near s, say little, so that the estimate is drawn to 0:
with x = Σ(h − s), i = Σ(r − s), the variance v = Σ s(1 − s) of x if nothing was inserted, and a
prior variance τ² around 0, it is x i/(i² + v/τ²).

**The less constant neighbour.** The fraction of a word's occurrences with the most frequent left
neighbour of its fixed run, or the same on the right, whichever is smaller: near 1 in templates,
small for a word, or a phrase at an edge, that stands beside whatever the text has there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tokensieve.arrays import Bools, Floats, Integers, Ints
from tokensieve.auditing.artefacts.candidates import Candidate
from tokensieve.auditing.artefacts.shapes import is_family
from tokensieve.auditing.artefacts.use import WordOrder

MOST_TEXTS = 0.5  # with one of its kind: what stands around it elsewhere is hardly to be seen
NOT_TOLD = 0.4  # between 0, of what was written there, and 1, of what was inserted
MAX_OCCURRENCES = 2_000  # of a word; more change nothing
CONSTANT = 0.8  # of the occurrences: a neighbour that frequent is part of a fixed run
MAX_RUN = 12  # words of a fixed run on either side
PRIOR_VARIANCE = 0.5  # τ²: values from 0, of what was written there, to 1 are as likely
MAX_DISTANCE = 4  # words; a name and what follows it
MIN_AT_DISTANCE = 3  # occurrences; of fewer the distance is the same by chance
INSIDE, AT_START, AT_END = 0, 1, 2  # where a pair of neighbours stands
POSITIONS_AT_ONCE = 2**19  # of the texts, in each of which neighbours are compared: 30 MB


@dataclass(frozen=True)
class Neighbours:
    """How a word stands between its neighbours.

    Attributes:
        inserted: about 1 if it was put into finished texts, about 0 if it was written there.
        constancy: the less constant neighbour's share of its occurrences.
        slot: the neighbours that nearly all of them have, left and right; empty where they vary.
        is_fixed_phrase: whether it stands in a fixed run of words at the start or end of its texts.
        run_length: words of the fixed run that it nearly always stands in, its own among them.
        place: the largest fraction of its occurrences at one distance from an edge of their texts.
    """

    inserted: float
    constancy: float
    slot: tuple[str, str] = ("", "")
    is_fixed_phrase: bool = False
    run_length: float = 1.0
    place: float = 0.0


@dataclass(frozen=True)
class PairRates:
    """How often pairs recur in the texts of some classes, inside and at the edges, each of shape
    (3,).

    Attributes:
        recurring: of neighbours, the fraction that is a pair elsewhere, too.
        skipped: of words, the fraction whose neighbours are a pair elsewhere.
    """

    recurring: Floats
    skipped: Floats


def pair_rates(order: WordOrder, labels: Ints, n_classes: int) -> list[PairRates]:
    """The rates of each class; the last entry is of all together."""
    recurring = RatesByClass.of_none(n_classes)
    skipped = RatesByClass.of_none(n_classes)
    for first in range(0, len(order.ids), POSITIONS_AT_ONCE):
        last = min(first + POSITIONS_AT_ONCE, len(order.ids) - 1)  # the last one has no next
        _add_neighbours(recurring, order, labels, slice(first, last))
        _add_skipped(skipped, order, labels, slice(max(first, 1), last))
    of_classes = zip(recurring.means(), skipped.means(), strict=True)
    return [
        PairRates(recurring=of_neighbours, skipped=of_words)
        for of_neighbours, of_words in of_classes
    ]


def _add_neighbours(rates: RatesByClass, order: WordOrder, labels: Ints, places: slice) -> None:
    """Count how often some positions and the next ones are pairs elsewhere."""
    following = slice(places.start + 1, places.stop + 1)
    edges = edge_of(order, order.ids[places], order.ids[following])
    is_elsewhere = order.is_recurring_pair[places]
    rates.add(is_elsewhere, edges, edges >= 0, labels[order.documents[places]])


def _add_skipped(rates: RatesByClass, order: WordOrder, labels: Ints, places: slice) -> None:
    """Count how often the neighbours of some words are pairs elsewhere."""
    before = slice(places.start - 1, places.stop - 1)
    following = slice(places.start + 1, places.stop + 1)
    edges = edge_of(order, order.ids[before], order.ids[following])
    is_word = order.ids[places] < len(order.words)
    is_elsewhere = order.is_skipped_pair[places]
    rates.add(is_elsewhere, edges, is_word & (edges >= 0), labels[order.documents[places]])


def edge_of(order: WordOrder, left: Integers, right: Integers) -> Ints:
    """INSIDE, AT_START or AT_END for each pair; −1 for pairs over two texts, or of edges only."""
    starts = left == order.start_mark
    ends = right == order.end_mark
    place = np.where(starts, AT_START, np.where(ends, AT_END, INSIDE))
    is_none = (starts & ends) | (left == order.end_mark) | (right == order.start_mark)
    return np.where(is_none, -1, place)


@dataclass(frozen=True)
class RatesByClass:
    """How often something holds of the positions of each class and place, shape (K, 3).

    Attributes:
        n: positions.
        hits: those of which it holds.
    """

    n: Ints
    hits: Ints

    @classmethod
    def of_none(cls, n_classes: int) -> RatesByClass:
        """Before any position is counted."""
        return cls(np.zeros((n_classes, 3), np.int64), np.zeros((n_classes, 3), np.int64))

    def add(self, values: Bools, edges: Ints, is_used: Bools, labels: Ints) -> None:
        """Count some positions."""
        cells = labels[is_used] * 3 + edges[is_used]
        self.n[:] += np.bincount(cells, minlength=self.n.size).reshape(self.n.shape)
        hits = cells[values[is_used]]
        self.hits[:] += np.bincount(hits, minlength=self.n.size).reshape(self.n.shape)

    def means(self) -> list[Floats]:
        """The fraction for each class and place, and over all classes."""
        n = np.vstack([self.n, self.n.sum(axis=0)])
        hits = np.vstack([self.hits, self.hits.sum(axis=0)])
        return list(hits / np.maximum(n, 1))


def neighbours_of(
    order: WordOrder, candidate: Candidate, labels: Ints, rates: list[PairRates]
) -> Neighbours:
    """How a candidate stands between its neighbours, in documents of its classes."""
    begins = order.begins(candidate.words)
    begins = begins[np.isin(labels[order.documents[begins]], candidate.classes)]
    if not len(begins):
        return Neighbours(inserted=0.0, constancy=1.0)
    begins = begins[:: len(begins) // MAX_OCCURRENCES + 1]
    left = begins - 1
    right = begins + len(candidate.words)
    outer_left = beyond_fixed_run(order, left, -1)
    outer_right = beyond_fixed_run(order, right, 1)
    class_rates = rates[candidate.classes[0] if len(candidate.classes) == 1 else -1]
    inserted = inserted_between(order, outer_left, outer_right, class_rates)
    run = FixedRun(left, right, outer_left, outer_right)
    is_phrase = reaches_edge(order, run)
    if len(candidate.words) == 1 and is_in_most_texts(order, begins, is_phrase):
        inserted = NOT_TOLD
    return Neighbours(
        inserted=inserted,
        constancy=min(
            most_frequent_share(order.spelled[outer_left]),
            most_frequent_share(order.spelled[outer_right]),
        ),
        slot=(constant_word(order, left), constant_word(order, right)),
        is_fixed_phrase=is_phrase,
        run_length=float(np.mean(outer_right - outer_left)) - 1,
        place=max(
            usual_distance(distances_to_edge(order, left, -1)).share,
            usual_distance(distances_to_edge(order, right, 1)).share,
        ),
    )


def is_at_edge(order: WordOrder, places: Ints) -> Bools:
    """Which places are edges of texts."""
    return np.asarray(order.ids[places] >= len(order.words))


def inserted_between(order: WordOrder, left: Ints, right: Ints, rates: PairRates) -> float:
    """How much what stands between these places looks inserted (module docstring)."""
    left_words = order.ids[left]
    right_words = order.ids[right]
    edges = edge_of(order, left_words, right_words)
    is_pair = edges >= 0
    is_elsewhere = order.n_occurrences(left_words, right_words)[is_pair] >= 1
    return shrunk_excess(
        is_elsewhere, rates.recurring[edges[is_pair]], rates.skipped[edges[is_pair]]
    )


def shrunk_excess(is_elsewhere: Bools, recurring: Floats, skipped: Floats) -> float:
    """(h − s)/(r − s), drawn to 0 where it is uncertain (module docstring)."""
    excess = float((is_elsewhere - skipped).sum())
    informative = float(np.maximum(recurring - skipped, 0.0).sum())
    variance = float((skipped * (1 - skipped)).sum())
    scale = informative**2 + variance / PRIOR_VARIANCE
    return excess * informative / scale if scale > 0 else 0.0


def stands_in_fixed_phrase(order: WordOrder, words: tuple[str, ...]) -> bool:
    """Whether a word or phrase nearly always stands in one run of words at the start or end of
    texts.
    """
    begins = order.begins(words)[:MAX_OCCURRENCES]
    if not len(begins):
        return False
    left = begins - 1
    right = begins + len(words)
    return is_fixed_phrase(order, left, right)


@dataclass(frozen=True, eq=False)
class FixedRun:
    """The runs of words that nearly always stand around some positions.

    Attributes:
        left, right: the neighbours of the positions.
        outer_left, outer_right: the places beyond the runs.
    """

    left: Ints
    right: Ints
    outer_left: Ints
    outer_right: Ints


def is_fixed_phrase(order: WordOrder, left: Ints, right: Ints) -> bool:
    """Whether fixed words reach from the neighbours of a word to an edge of its texts."""
    outer_left = beyond_fixed_run(order, left, -1)
    outer_right = beyond_fixed_run(order, right, 1)
    return reaches_edge(order, FixedRun(left, right, outer_left, outer_right))


def reaches_edge(order: WordOrder, run: FixedRun) -> bool:
    """Whether a fixed run is longer than the positions that it is around, and ends at an edge."""
    is_longer = (run.outer_left != run.left).any() or (run.outer_right != run.right).any()
    ends_at_edge = is_edge(order, run.outer_left) or is_edge(order, run.outer_right)
    return bool(is_longer and ends_at_edge)


def beyond_fixed_run(order: WordOrder, places: Ints, step: int) -> Ints:
    """The places beyond the words that nearly always stand beside these; at an edge they stay.

    What nearly always stands as far from an edge as these do is part of the run, though words in it
    may vary, such as names.
    """
    distances = distances_to_edge(order, places, step)
    usual = usual_distance(distances)
    if usual.share >= CONSTANT:
        return np.where(distances == usual.distance, order.edge_beyond(places, step), places)
    for _ in range(MAX_RUN):
        words = order.ids[places]
        is_there = is_at_edge(order, places)
        is_constant = np.mean(words == middle_word(words)) >= CONSTANT
        if is_there.mean() > 1 - CONSTANT or not is_constant:
            break
        places = np.where(is_there, places, places + step)
    return places


def distances_to_edge(order: WordOrder, places: Ints, step: int) -> Ints:
    """How many words stand between each place and the edge of its text, its own among them."""
    distances: Ints = np.abs(order.edge_beyond(places, step) - places)
    return distances


@dataclass(frozen=True)
class UsualDistance:
    """The most frequent distance from an edge, and the fraction of places that have it."""

    distance: int
    share: float


def usual_distance(distances: Ints) -> UsualDistance:
    """The most frequent of some distances, of those of a few words at most."""
    n_at = np.bincount(distances[distances <= MAX_DISTANCE], minlength=1)
    most_frequent = int(np.argmax(n_at))
    return UsualDistance(most_frequent, float(n_at[most_frequent] / len(distances)))


def is_edge(order: WordOrder, places: Ints) -> bool:
    """Whether nearly all of these places are edges of texts."""
    return bool(is_at_edge(order, places).mean() >= CONSTANT)


def constant_word(order: WordOrder, places: Ints) -> str:
    """The word at nearly all of these places; empty if there is none, or if they are edges."""
    words = order.ids[places]
    middle = middle_word(words)
    is_constant = np.count_nonzero(words == middle) >= CONSTANT * len(places)
    return order.words[middle] if is_constant and middle < len(order.words) else ""


def middle_word(words: Integers) -> int:
    """The median: of all words, the only one that can be at more than half of the places."""
    middle = len(words) // 2
    return int(np.partition(words, middle)[middle])


def most_frequent_share(words: Integers) -> float:
    """The fraction of the most frequent of some words."""
    in_order = np.sort(words)
    ends = np.append(np.flatnonzero(in_order[1:] != in_order[:-1]), len(words) - 1)
    return float(np.diff(ends, prepend=-1).max() / len(words))


def slot_rivals(order: WordOrder, candidate: Candidate) -> list[str]:
    """The other words that fill a word's place in its fixed phrase, such as "web" for "tablet" in
    "posted via tablet".

    A text with one of them does not contain the word, whatever the text is about, so they may not
    tell where it stands.
    """
    if len(candidate.words) > 1:
        return []
    begins = order.begins(candidate.words)[:MAX_OCCURRENCES]
    if not len(begins):
        return []
    if not is_fixed_phrase(order, begins - 1, begins + 1):
        return []
    fillers = np.unique(order.spelled[same_slots(order, begins)])
    words = [order.spellings[filler] for filler in fillers[fillers >= 0].tolist()]
    return [word for word in words if word not in candidate.words]


def same_slots(order: WordOrder, begins: Ints) -> Ints:
    """All positions between the neighbours that nearly always stand beside some positions; none if
    their neighbours vary.
    """
    is_same = np.ones(len(order.ids), dtype=bool)
    is_same[[0, -1]] = False
    has_neighbour = False
    for step in (-1, 1):
        neighbours = order.ids[begins + step]
        middle = middle_word(neighbours)
        if np.count_nonzero(neighbours == middle) >= CONSTANT * len(begins):
            is_same &= np.roll(order.ids, -step) == middle
            has_neighbour = True
    return np.flatnonzero(is_same & has_neighbour)


def is_in_most_texts(order: WordOrder, begins: Ints, is_phrase: bool) -> bool:
    """Whether most texts have a word of the same family, or the fixed phrase around some positions,
    if there is one (`is_phrase`), whatever fills its slot.
    """
    shape = order.ids[begins[0]]
    if is_phrase:
        alike = same_slots(order, begins)
    elif is_family((order.words[shape],)):
        alike = np.flatnonzero(order.ids == shape)
    else:
        return False
    return len(np.unique(order.documents[alike])) >= MOST_TEXTS * order.n_texts


def words_at_one_distance(order: WordOrder, candidate: Candidate) -> list[str]:
    """Words that mostly stand at one distance from a candidate, as what fills a slot beside it.

    Distances are in words, up to `MAX_DISTANCE` before and behind the candidate.
    """
    begins = order.begins(candidate.words)[:MAX_OCCURRENCES]
    n_words = len(candidate.words)
    behind = range(n_words, n_words + MAX_DISTANCE)
    distances = np.array([*range(-MAX_DISTANCE, 0), *behind])
    places = np.clip(begins[:, None] + distances, 0, len(order.ids) - 1)
    words = order.spelled[places]
    is_same_text = order.documents[places] == order.documents[begins][:, None]
    occurrence, column = np.nonzero(is_same_text & (words >= 0))
    fixed = _fixed_words(words[occurrence, column], column, len(distances))
    return [order.spellings[word] for word in fixed.tolist()]


def _fixed_words(words: Integers, columns: Ints, n_columns: int) -> Integers:
    """The words that mostly stand at one distance, ascending, given the distance of each."""
    distinct, number = np.unique(words, return_inverse=True)
    cells = np.bincount(number * n_columns + columns, minlength=len(distinct) * n_columns)
    counts = cells.reshape(len(distinct), n_columns)
    total = counts.sum(axis=1)
    most_at_one_distance = counts.max(axis=1, initial=0)
    is_fixed = (total >= MIN_AT_DISTANCE) & (most_at_one_distance >= CONSTANT * total)
    return np.asarray(distinct[is_fixed])
