"""Do the other words of a document tell whether it contains a word? Words of a subject keep
company.

**Context AUC.** Among the documents of a class, a classifier is asked which contain the candidate,
from their other words alone. It is the centroid classifier (Rocchio 1971), as it has a closed form
for leaving one document out and so needs no folds: with x̃_i the unit vector of document i's other
words, each weighing log(n/documents with it),

    score_i = x̃_i · (mean of x̃ over the other documents with the candidate
                     − mean of x̃ over the other documents without it)

and the context AUC is the area under the ROC curve of these scores. Of a word put in at random it
is 1/2 up to chance. Left out of x̃ are the candidate and what comes with it nearly always (in 80 %
of its documents, or with half of both's documents in common), as the rest of a phrase does, and
numbers. So is what mostly stands at one distance from it, as the names that fill a slot beside it
do.

**What is usual.** In short texts even words of the subject keep little company, and in long ones
ordinary words keep some. So the same is measured of ordinary words of each class, which are not
significantly more frequent in it, and a straight line over the logarithm of their number of
documents says what is usual. Where ordinary words keep no company, as in texts whose words are
drawn independently, its absence tells nothing (`traits.apart_of`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tokensieve.arrays import Ints
from tokensieve.auditing.artefacts.candidates import Candidate, wilson_lower
from tokensieve.auditing.artefacts.class_texts import Area
from tokensieve.auditing.artefacts.use import WordUse

ORDINARY_PER_CLASS = 24
ORDINARY_IN_ALL = 400
MIN_ORDINARY_DOCUMENTS = 5
MIN_ORDINARY_WORDS = 8  # of fewer, no line shows what is usual
LEAST_COMPANY = 0.6  # of an area: where most words keep less, its absence says nothing
NORMAL_SPREAD = 1.4826  # the standard deviation of a normal law, in median absolute deviations
MAX_USUAL = 0.9  # of an area: ordinary words keep less company than a template
ROUNDING = 1e-9  # of sums of products of unit vectors


@dataclass(frozen=True)
class UsualArea:
    """What the context AUC of an ordinary word is, by the logarithm of its documents.

    Attributes:
        intercept, slope: of the straight line.
        spread: standard deviation of ordinary words around it, beyond chance.
        most_documents: of an ordinary word; the line is not followed beyond.
    """

    intercept: float
    slope: float
    spread: float
    most_documents: int

    def at(self, n_with: int) -> float:
        """The usual area for a number of documents."""
        n = min(max(n_with, 1), self.most_documents)
        return float(np.clip(self.intercept + self.slope * np.log(n), 0.5, MAX_USUAL))


UNKNOWN_AREA = UsualArea(intercept=0.5, slope=0.0, spread=0.0, most_documents=1)


def context_areas(
    use: WordUse, candidates: Sequence[Candidate], left_out: Sequence[Ints]
) -> list[Area]:
    """The context AUC of each candidate, within the class of its group that has most documents of
    it.

    `left_out` has the types that may not tell about each candidate, beside its own words.
    """
    areas: list[Area | None] = [None] * len(candidates)
    by_class: dict[int, list[int]] = {}
    for i, candidate in enumerate(candidates):
        by_class.setdefault(main_class(use, candidate), []).append(i)
    for label, places in by_class.items():
        texts = use.class_texts(label)
        documents = [candidates[i].documents for i in places]
        own_types = [np.append(types_of(use, candidates[i]), left_out[i]) for i in places]
        for i, area in zip(places, texts.areas(documents, own_types), strict=True):
            areas[i] = area
    return [area for area in areas if area is not None]


def main_class(use: WordUse, candidate: Candidate) -> int:
    """The class of a candidate's group with most of its documents."""
    sizes = np.bincount(use.counts.labels[candidate.documents], minlength=use.counts.n_classes)
    return max(candidate.classes, key=lambda label: int(sizes[label]))


def types_of(use: WordUse, candidate: Candidate) -> Ints:
    """The places of a candidate's words among the types."""
    types = [use.type_of[word] for word in candidate.words if word in use.type_of]
    return np.array(types, dtype=np.int64)


def usual_area(use: WordUse, ordinary: Sequence[Ints]) -> UsualArea:
    """The context AUC of ordinary words (module docstring), given those of each class."""
    counts = use.counts
    n_each = max(2, min(ORDINARY_PER_CLASS, ORDINARY_IN_ALL // counts.n_classes))
    areas: list[Area] = []
    for label, words in enumerate(ordinary):
        chosen = spread_over_frequency(words, counts.present[:, label], n_each)
        own_types = [np.array([word]) for word in chosen.tolist()]
        areas += use.class_texts(label).areas(counts.holders(chosen), own_types)
    return fitted_line([area for area in areas if np.isfinite(area.error)])


def ordinary_words(use: WordUse, label: int) -> Ints:
    """Words not significantly more frequent in a class."""
    counts = use.counts
    present = counts.present[:, label]
    n_documents = use.n_documents
    share = counts.class_sizes[label] / counts.n_documents
    is_ordinary = (
        (present >= MIN_ORDINARY_DOCUMENTS)
        & (present <= counts.class_sizes[label] / 2)
        & (wilson_lower(present, n_documents) <= share)
        & ~use.has_digit
    )
    return np.flatnonzero(is_ordinary)


def spread_over_frequency(words: Ints, present: Ints, n_words: int) -> Ints:
    """Some of these words, evenly spread over the logarithm of their number of documents."""
    if not len(words):
        return words
    by_frequency = words[np.argsort(present[words], kind="stable")]
    log_frequency = np.log(present[by_frequency])
    levels = np.linspace(np.log(MIN_ORDINARY_DOCUMENTS), log_frequency[-1], n_words)
    places = np.searchsorted(log_frequency, levels - ROUNDING)
    return np.unique(by_frequency[np.minimum(places, len(words) - 1)])


def fitted_line(areas: Sequence[Area]) -> UsualArea:
    """A straight line through areas, each weighing 1/error²."""
    if len(areas) < MIN_ORDINARY_WORDS:
        return UNKNOWN_AREA
    x = np.log([area.n_with for area in areas])
    y = np.array([area.auc for area in areas])
    error = np.array([area.error for area in areas])
    slope, intercept = np.polyfit(x, y, 1, w=1 / error)
    residual = y - intercept - slope * x
    beyond_chance = max(float(np.mean(residual**2) - np.mean(error**2)), 0.0)
    most_documents = max(area.n_with for area in areas)
    return UsualArea(float(intercept), float(slope), float(np.sqrt(beyond_chance)), most_documents)


def area_of_most(areas: Sequence[Area]) -> UsualArea:
    """The median context AUC of candidates, most of which are words of the subject; unknown if they
    are few or keep no company.
    """
    known = np.array([area.auc for area in areas if np.isfinite(area.error)])
    if len(known) < MIN_ORDINARY_WORDS or np.median(known) < LEAST_COMPANY:
        return UNKNOWN_AREA
    spread = NORMAL_SPREAD * np.median(np.abs(known - np.median(known)))
    return UsualArea(float(np.median(known)), 0.0, float(spread), most_documents=1)
