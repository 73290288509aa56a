"""Words and short phrases that predict a class, or a group of classes: what the score is asked
about.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tokensieve.arrays import Bools, Floats, Ints
from tokensieve.auditing.artefacts.shapes import is_family
from tokensieve.auditing.artefacts.splits import Splits, best_splits
from tokensieve.auditing.artefacts.use import WordUse
from tokensieve.errors import InputError
from tokensieve.evidence.intervals import LEVEL, Share, false_discovery, wilson
from tokensieve.text.counts import Counts
from tokensieve.text.vocabulary import Vocabulary, learn_vocabulary

MIN_DOCUMENTS = 5  # of the group; fewer show no company and no neighbours
MIN_COVERAGE = 0.01  # of the group's documents: what is rarer matters to few of them
MAX_FREQUENCY = 0.8  # of all documents: what is in more is the usual state
MIN_CERTAINTY = 0.1  # of the way from neutral to certain; less gives no label away
MAX_CANDIDATES = 480  # of all classes; each takes a few milliseconds
MIN_CANDIDATES = 12  # of each class, however many classes there are
MAX_PHRASE = 3  # words
CERTAIN_WORD = 0.2  # of the way to certain: a word that leans so far alone explains its phrase


@dataclass(frozen=True, eq=False)
class Candidate:
    """A word or phrase that predicts a group of classes.

    Attributes:
        words: one, or two or three that follow each other.
        type: its place in the vocabulary; −1 for a phrase.
        classes: the group, as places in `Counts.classes`.
        documents: those that contain it, in ascending order.
        n_inside: how many of them are of the group.
        group_size: documents of the group.
        certainty: how far from neutral (0) to certain (1) the lower bound of P(group | word) lies.
        p_value: that so many of its documents are of the group by chance, corrected for the choice.
    """

    words: tuple[str, ...]
    type: int
    classes: tuple[int, ...]
    documents: Ints
    n_inside: int
    group_size: int
    certainty: float
    p_value: float

    @property
    def token(self) -> str:
        """The word, or the words with spaces between them."""
        return " ".join(self.words)

    @property
    def coverage(self) -> float:
        """The fraction of the group's documents that contain it."""
        return self.n_inside / max(self.group_size, 1)


def candidate_words(use: WordUse, units: Ints | None = None) -> list[Candidate]:
    """The words that predict a group of classes, each class's most certain and most significant
    first.

    `units` has the group of documents that belong together, shape (n,): evidence is one for each.
    """
    counts = use.counts
    splits = best_splits(counts.present, counts.class_sizes)
    is_eligible = eligible(splits, counts, units)
    chosen = within_budget(splits, is_eligible, counts)
    return candidates_among(splits, chosen, counts)


def candidates_among(
    splits: Splits, chosen: Ints, counts: Counts, first: int = 0
) -> list[Candidate]:
    """The candidates of some types; `first` is the place of the first of these types in the
    vocabulary.
    """
    return [
        _candidate(
            splits,
            place,
            (str(counts.tokens[place]),),
            first + place,
            documents,
            counts.n_documents,
        )
        for place, documents in zip(chosen.tolist(), counts.holders(chosen), strict=True)
    ]


def candidate_phrases(use: WordUse, units: Ints | None = None) -> list[Candidate]:
    """Families of words of one shape, and runs of two or three words none of which explains it.

    Runs are of shapes (`shapes`), too, so that "chapter 5" and "chapter 7" are one.
    """
    counts = use.counts
    n_documents = max(MIN_DOCUMENTS, math.ceil(MIN_COVERAGE * int(counts.class_sizes.min())))
    try:
        vocabulary = learn_vocabulary(use.shapes, use.tokenizer, MAX_PHRASE, n_documents)
    except InputError:  # no word is as frequent
        return []
    matrix, _ = vocabulary.count(use.shapes)
    runs = Counts(matrix, counts.labels, counts.classes, vocabulary.tokens)
    n_single = len(vocabulary.words)
    splits = best_splits(runs.present, runs.class_sizes)
    is_eligible = eligible(splits, runs, units)
    is_eligible[:n_single] &= [is_family((word,)) for word in vocabulary.words]
    chosen = within_budget(splits, is_eligible, runs)
    explained = explained_runs(splits, chosen[chosen >= n_single], runs, vocabulary)
    unexplained = np.setdiff1d(chosen, explained)
    return [
        replace(candidate, type=-1, words=words_of_run(candidate.token, place >= n_single))
        for place, candidate in zip(
            unexplained.tolist(), candidates_among(splits, unexplained, runs), strict=True
        )
    ]


def words_of_run(name: str, is_run: bool) -> tuple[str, ...]:
    """The words of a run; a single word may contain a space if its tokenizer says so."""
    return tuple(name.split(" ")) if is_run else (name,)


def explained_runs(splits: Splits, places: Ints, runs: Counts, vocabulary: Vocabulary) -> list[int]:
    """The runs one of whose words leans to the same classes outside the run, too."""
    place_of = {word: i for i, word in enumerate(vocabulary.words)}
    explained = []
    for place in places.tolist():
        words = str(runs.tokens[place]).split(" ")
        beyond = [runs.present[place_of[word]] - runs.present[place] for word in words]
        is_inside = splits.is_inside[place]
        if any(leans(documents, is_inside, runs.class_sizes) for documents in beyond):
            explained.append(place)
    return explained


def eligible(splits: Splits, counts: Counts, units: Ints | None) -> Bools:
    """Which words are frequent enough and predict their group beyond chance."""
    fewest_documents = np.maximum(MIN_DOCUMENTS, MIN_COVERAGE * splits.group_sizes)
    is_frequent = (splits.n_inside >= fewest_documents) & (
        splits.n_documents <= MAX_FREQUENCY * counts.n_documents
    )
    p_value = splits.p_value
    if units is not None:
        merged, _ = counts.merge_groups(units)
        p_value = best_splits(merged.present, merged.class_sizes).p_value
    is_significant = np.zeros(len(is_frequent), dtype=bool)
    if is_frequent.any():
        q_value = false_discovery(p_value[is_frequent, None])[:, 0]
        is_significant[is_frequent] = q_value < LEVEL
    certainty = certainties(splits, counts.n_documents)
    return np.asarray(is_significant & (certainty >= MIN_CERTAINTY))


def certainties(splits: Splits, n_all: int) -> Floats:
    """How far from neutral to certain the lower bound of P(group | word) lies, shape (|S|,)."""
    neutral = splits.group_sizes / n_all
    lower = wilson_lower(splits.n_inside, splits.n_documents)
    return np.asarray((lower - neutral) / np.maximum(1 - neutral, 1e-12))


def wilson_lower(n_inside: Ints, n_documents: Ints) -> Floats:
    """The lower end of Wilson's 95 % interval of each fraction; 0 of no documents."""
    n = np.maximum(n_documents, 1)
    return np.asarray(np.where(n_documents > 0, wilson(n_inside / n, n).low, 0.0))


def within_budget(splits: Splits, is_eligible: Bools, counts: Counts) -> Ints:
    """The most certain and most significant eligible words of each class, in ascending order."""
    main_class = np.argmax(np.where(splits.is_inside, counts.present, -1), axis=1)
    words_of_class = [
        np.flatnonzero(is_eligible & (main_class == label)) for label in range(counts.n_classes)
    ]
    budget = budget_of_class(np.array([len(words) for words in words_of_class]))
    certainty = certainties(splits, counts.n_documents)
    chosen: set[int] = set()
    for words in words_of_class:
        for rank in (certainty[words], splits.g_squared[words]):
            chosen |= set(words[np.argsort(-rank, kind="stable")[: budget // 2]].tolist())
    return np.array(sorted(chosen), dtype=np.int64)


def budget_of_class(n_eligible: Ints) -> int:
    """How many words of each class can be looked at, given how many of each are eligible.

    What classes with fewer words leave goes to the others.
    """
    n_remaining = MAX_CANDIDATES
    budget = 0
    for n_classes, n_words in zip(
        range(len(n_eligible), 0, -1), np.sort(n_eligible).tolist(), strict=True
    ):
        budget = n_remaining // n_classes
        if n_words > budget:
            break
        n_remaining -= n_words
    return max(MIN_CANDIDATES, budget)


def leans(documents: Ints, is_inside: Bools, class_sizes: Ints) -> bool:
    """Whether documents, given their number in each class, lean to a group; too few count as
    leaning.
    """
    n_documents = int(documents.sum())
    if n_documents < MIN_DOCUMENTS:
        return True
    neutral = class_sizes[is_inside].sum() / class_sizes.sum()
    lower = Share.count(int(documents[is_inside].sum()), n_documents).low
    return bool((lower - neutral) / (1 - neutral) > CERTAIN_WORD)


def _candidate(
    splits: Splits, place: int, words: Sequence[str], word_type: int, documents: Ints, n_all: int
) -> Candidate:
    """One row of the splits as a candidate.

    Its certainty is the excess of the lower bound of its share in the group over the group's share
    of all documents: 1 at most, and negative without evidence.
    """
    neutral = splits.group_sizes[place] / n_all
    lower = Share.count(int(splits.n_inside[place]), int(splits.n_documents[place])).low
    return Candidate(
        words=tuple(words),
        type=word_type,
        classes=tuple(np.flatnonzero(splits.is_inside[place]).tolist()),
        documents=documents,
        n_inside=int(splits.n_inside[place]),
        group_size=int(splits.group_sizes[place]),
        certainty=float((lower - neutral) / (1 - neutral)),
        p_value=float(splits.p_value[place]),
    )
