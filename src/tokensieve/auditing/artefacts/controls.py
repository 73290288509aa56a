"""Controls: could the search have found an artefact, and does it find one where there is none?

**Limit of detection.** A word is put, in counts and not in texts, at random places of random
documents of one class, and goes through the search. How many of such words are found, at several
rates, says what "no shortcut was found" is worth for this class.

**False alarms.** The labels are shuffled, and the same search is made again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tokensieve.arrays import Ints
from tokensieve.auditing.artefacts.candidates import (
    MIN_COVERAGE,
    MIN_DOCUMENTS,
    Candidate,
    candidate_words,
    wilson_lower,
)
from tokensieve.auditing.artefacts.class_texts import Area
from tokensieve.auditing.artefacts.neighbours import (
    PairRates,
    distances_to_edge,
    edge_of,
    most_frequent_share,
    shrunk_excess,
    usual_distance,
)
from tokensieve.auditing.artefacts.peers import NEARLY_AS_CERTAIN
from tokensieve.auditing.artefacts.score import ACCUSED, fitted_model, scored
from tokensieve.auditing.artefacts.search import ArtefactSearch
from tokensieve.auditing.artefacts.traits import (
    INSERTED_RANGE,
    MAX_COVERAGE,
    Asked,
    Traits,
    Usual,
    apart_of,
    observe,
    types_of_peers,
)
from tokensieve.auditing.artefacts.use import WordUse
from tokensieve.evidence.intervals import LEVEL

RATES = (0.02, 0.05, 0.1, 0.2)  # of a class's documents
MAX_TRIALS = 20  # for each class and rate
MIN_TRIALS = 5
TRIALS_IN_ALL = 160  # for each rate; keeps the cost below 15 % of an audit
MAX_CLASSES = 40  # the largest; of a smaller class the audit says nothing
N_SHUFFLES = 2
# of the words put into a class: from here an audit says that such a word would have been found
# (benchmarks/verdicts.py counts how often that is false)
FOUND_OFTEN = 0.95
MIN_TRIALS_OF_CLAIM = 10  # of a class; with fewer, those of all classes are taken together


@dataclass(frozen=True)
class DetectionLimit:
    """How many words that were put into a class would have been found.

    Attributes:
        label: the class.
        rate: of its documents that got the word.
        n_found: words found.
        n_trials: words tried.
    """

    label: str
    rate: float
    n_found: int
    n_trials: int


@dataclass(frozen=True)
class Controls:
    """What the search finds where the truth is known.

    Attributes:
        limits: by class and rate.
        false_alarms: words accused with shuffled labels, in all shuffles.
        n_shuffles: how often the labels were shuffled.
    """

    limits: tuple[DetectionLimit, ...]
    false_alarms: int
    n_shuffles: int

    def of_class(self, label: str) -> list[DetectionLimit]:
        """The limits of one class, by rate."""
        return [limit for limit in self.limits if limit.label == label]

    def found_from(self, label: str) -> float | None:
        """The smallest rate from which on nearly all words put into a class were found; None if
        too many were missed at every rate, or the class is one of the smallest of many."""
        limits = self.of_class(label)
        if limits and limits[0].n_trials < MIN_TRIALS_OF_CLAIM:
            limits = list(self.limits)  # of so many classes, one by one would claim too much
        smallest: float | None = None
        for rate in sorted({limit.rate for limit in limits}, reverse=True):
            at_rate = [limit for limit in limits if limit.rate == rate]
            n_found = sum(limit.n_found for limit in at_rate)
            n_trials = sum(limit.n_trials for limit in at_rate)
            if n_found < FOUND_OFTEN * n_trials:
                break
            smallest = rate
        return smallest

    def found_from_rates(self, labels: Sequence[str]) -> dict[str, float | None]:
        """`found_from` of some classes."""
        return {label: self.found_from(label) for label in labels}

    def to_dict(self) -> dict[str, object]:
        """The content of "controls" in summary.json."""
        labels = list(dict.fromkeys(limit.label for limit in self.limits))
        return {
            "found_from_rate": self.found_from_rates(labels),
            "words_found_when_inserted": [
                {
                    "class": limit.label,
                    "rate": limit.rate,
                    "found": limit.n_found,
                    "of": limit.n_trials,
                }
                for limit in self.limits
            ],
            "false_alarms_with_shuffled_labels": self.false_alarms,
            "shuffles": self.n_shuffles,
        }


def run_controls(found: ArtefactSearch, seed: int) -> Controls:
    """Both controls for a search that was made."""
    rng = np.random.default_rng(seed)
    counts = found.use.counts
    largest = np.argsort(-counts.class_sizes, kind="stable")[:MAX_CLASSES]
    n_trials = int(np.clip(TRIALS_IN_ALL // max(len(largest), 1), MIN_TRIALS, MAX_TRIALS))
    gaps = Gaps.of(found.use)
    limits: list[DetectionLimit] = []
    for label in sorted(largest.tolist()):
        limits += limits_of_class(found, label, gaps, n_trials, rng)
    alarms = [false_alarms(found, rng) for _ in range(N_SHUFFLES)]
    return Controls(tuple(limits), sum(alarms), N_SHUFFLES)


def limits_of_class(
    found: ArtefactSearch, label: int, gaps: Gaps, n_trials: int, rng: np.random.Generator
) -> list[DetectionLimit]:
    """How many words put into a class are found, at each rate."""
    use = found.use
    documents = use.documents_of_class(label)
    inserted: list[InsertedWord] = []
    for rate in RATES:
        n_documents = round(rate * len(documents))
        if is_candidate(found, label, n_documents):
            words = [
                inserted_word(use, label, rng.choice(documents, n_documents, replace=False))
                for _ in range(n_trials)
            ]
            inserted += [InsertedWord(word, gaps.draw(word.documents, rng), rate) for word in words]
    rates_of_accused = [
        one.rate
        for one, is_found in zip(inserted, are_accused(inserted, label, found), strict=True)
        if is_found
    ]
    name = use.counts.classes[label]
    return [DetectionLimit(name, rate, rates_of_accused.count(rate), n_trials) for rate in RATES]


@dataclass(frozen=True, eq=False)
class InsertedWord:
    """A word that was put into documents of a class.

    Attributes:
        candidate: the word.
        places: the gaps that it stands in.
        rate: of the class's documents that got it.
    """

    candidate: Candidate
    places: Ints
    rate: float


def is_candidate(found: ArtefactSearch, label: int, n_documents: int) -> bool:
    """Whether the search would consider a word that so many documents of one class, and no other,
    contain.

    With false discoveries controlled, what is no less certain than a word that is significant is
    significant itself; without such a word, Bonferroni's limit holds.
    """
    counts = found.use.counts
    share = counts.class_sizes[label] / counts.n_documents
    n_choices = counts.n_classes * (counts.n_classes - 1)
    n_tests = int((found.use.n_documents >= MIN_DOCUMENTS).sum())
    p_value = share**n_documents * n_choices
    p_of_significant = [candidate.candidate.p_value for candidate in found.scored]
    is_significant = p_value * n_tests < LEVEL or p_value <= max(p_of_significant, default=0.0)
    fewest_documents = max(MIN_DOCUMENTS, MIN_COVERAGE * counts.class_sizes[label])
    return bool(n_documents >= fewest_documents and is_significant)


def inserted_word(use: WordUse, label: int, documents: Ints) -> Candidate:
    """A word that only these documents contain."""
    counts = use.counts
    size = int(counts.class_sizes[label])
    neutral = size / counts.n_documents
    n_documents = np.array([len(documents)])
    lower = float(wilson_lower(n_documents, n_documents)[0])
    return Candidate(
        words=("",),
        type=-1,
        classes=(label,),
        documents=np.sort(documents),
        n_inside=len(documents),
        group_size=size,
        certainty=(lower - neutral) / (1 - neutral),
        p_value=0.0,
    )


def are_accused(inserted: Sequence[InsertedWord], label: int, found: ArtefactSearch) -> list[bool]:
    """Which of some words that were put into a class the score accuses."""
    if not inserted:
        return []
    use = found.use
    pool = [
        rival.candidate
        for rival in found.scored
        if label in rival.candidate.classes and len(rival.candidate.words) == 1
    ]
    peers = [peers_among(pool, word.candidate.certainty) for word in inserted]
    left_out = [types_of_peers(of_word, np.arange(len(of_word))) for of_word in peers]
    documents = [word.candidate.documents for word in inserted]
    areas = use.class_texts(label).areas(documents, left_out)
    traits = [
        traits_of_inserted(found, word, area, len(of_word))
        for word, area, of_word in zip(inserted, areas, peers, strict=True)
    ]
    is_accused = fitted_model().probabilities(traits) >= ACCUSED
    return [bool(one) for one in is_accused]


def peers_among(pool: Sequence[Candidate], certainty: float) -> list[Candidate]:
    """The words that predict a class about as reliably as an inserted one, or better."""
    return [rival for rival in pool if rival.certainty >= certainty - NEARLY_AS_CERTAIN]


def traits_of_inserted(
    found: ArtefactSearch, word: InsertedWord, area: Area, n_peers: int
) -> Traits:
    """The traits of an inserted word, given its context AUC and the number of its peers."""
    use = found.use
    label = word.candidate.classes[0]
    return Traits(
        apart=apart_of(area, found.usual, label),
        inserted=inserted_at(use, word.places, found.usual.pairs[label]),
        peers=float(np.log1p(n_peers)),
        constancy=constancy_at(use, word.places),
        coverage=min(word.candidate.coverage, MAX_COVERAGE),
        certainty=word.candidate.certainty,
        kinship=0.0,
        repeated=0.0,
        joined=0.0,
        relatives=0.0,
        phrase=0.0,
        group=0.0,
        edge=0.0,
        run=0.0,
        place=place_at(use, word.places),
    )


@dataclass(frozen=True, eq=False)
class Gaps:
    """Where a word can be put into texts: between two words, or at an edge.

    Attributes:
        places: the positions before which it can stand, ascending.
        documents: the document of each of them, ascending.
    """

    places: Ints
    documents: Ints

    @classmethod
    def of(cls, use: WordUse) -> Gaps:
        """All gaps of all documents."""
        order = use.order
        is_in_text = edge_of(order, order.ids[:-1], order.ids[1:]) >= 0
        places = np.flatnonzero(is_in_text) + 1
        return cls(places, order.documents[places].astype(np.int64))

    def draw(self, documents: Ints, rng: np.random.Generator) -> Ints:
        """A random gap of each document; none of a document without a word."""
        first = np.searchsorted(self.documents, documents, side="left")
        n_gaps = np.searchsorted(self.documents, documents, side="right") - first
        has_gap = n_gaps > 0
        places: Ints = self.places[first[has_gap] + rng.integers(0, n_gaps[has_gap])]
        return places


def inserted_at(use: WordUse, places: Ints, rates: PairRates) -> float:
    """How much a word at these gaps looks inserted."""
    order = use.order
    is_elsewhere = order.is_recurring_pair[places - 1]
    edges = edge_of(order, order.ids[places - 1], order.ids[places])
    excess = shrunk_excess(is_elsewhere, rates.recurring[edges], rates.skipped[edges])
    return float(np.clip(excess, *INSERTED_RANGE))


def place_at(use: WordUse, places: Ints) -> float:
    """The largest fraction of these gaps at one distance from an edge of their texts."""
    if not len(places):
        return 0.0
    before = usual_distance(distances_to_edge(use.order, places - 1, -1))
    behind = usual_distance(distances_to_edge(use.order, places, 1))
    return max(before.share, behind.share)


def constancy_at(use: WordUse, places: Ints) -> float:
    """The less constant neighbour's share of a word at these gaps."""
    if not len(places):
        return 0.0
    spelled = use.order.spelled
    return min(most_frequent_share(spelled[places - 1]), most_frequent_share(spelled[places]))


def false_alarms(found: ArtefactSearch, rng: np.random.Generator) -> int:
    """How many words are accused if the labels are shuffled."""
    use = found.use
    shuffled = replace(use.counts, labels=rng.permutation(use.counts.labels))
    mixed = WordUse(shuffled, use.shapes, use.order, use.tokenizer)
    candidates = candidate_words(mixed)
    if not candidates:
        return 0
    asked = Asked.all_of(mixed, candidates)
    observed = observe(asked, Usual.of(asked), found.texts)
    return sum(candidate.probability >= ACCUSED for candidate in scored(observed))
