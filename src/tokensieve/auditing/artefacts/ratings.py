"""Ratings in texts, such as 7/10: together they may say what the label is.

Asked about one by one, each rating of a few thousand reviews is in a dozen documents, which show
little. Together they show more: how many of the documents with a rating have the label that the
other documents with the same rating have. As formatting, they count as an artefact by a rule, not
by the score: a rating is no word of the subject, and where it nearly decides the label, the writer
has written the label into the text.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tokensieve.arrays import Ints
from tokensieve.auditing.artefacts.candidates import MIN_COVERAGE, MIN_DOCUMENTS
from tokensieve.auditing.artefacts.forms import NEARLY_DECIDING, UNCHOSEN_PROBABILITY
from tokensieve.auditing.artefacts.shapes import shape_of, without_field
from tokensieve.evidence.intervals import Share
from tokensieve.text.counts import Counts


@dataclass(frozen=True, eq=False)
class RatingScale:
    """Ratings on one scale that nearly decide the label.

    Attributes:
        shape: of all of them: n/10 of 7/10.
        documents: those that contain one, ascending.
        certainty: how far from neutral to certain they make the label.
        probability: how likely they are an artefact.
    """

    shape: str
    documents: Ints
    certainty: float
    probability: float = UNCHOSEN_PROBABILITY


def deciding_scales(counts: Counts, n_words: int, units: Ints | None = None) -> list[RatingScale]:
    """The scales whose ratings nearly decide the label.

    Args:
        counts: of all documents.
        n_words: the first types, which are words.
        units: the group of documents that belong together, shape (n,): evidence is one for each.
    """
    types_of_shape: dict[str, list[int]] = {}
    for place, token in enumerate(counts.tokens[:n_words]):
        shape = shape_of(str(token)) if "/" in str(token) else ""
        if without_field(shape).startswith("n/"):
            types_of_shape.setdefault(shape, []).append(place)
    if not types_of_shape:
        return []
    evidence = counts if units is None else counts.merge_groups(units)[0]
    scales = []
    for shape, types in types_of_shape.items():
        certainty = certainty_of(evidence.present[types], evidence.class_sizes)
        is_frequent = counts.present[types].sum(axis=1).max() >= MIN_DOCUMENTS
        if certainty > NEARLY_DECIDING and is_frequent:
            documents = np.unique(np.concatenate(counts.holders(np.array(types))))
            scales.append(RatingScale(shape, documents, certainty))
    return scales


def certainty_of(present: Ints, class_sizes: Ints) -> float:
    """How far from neutral to certain the ratings make the label; 0 of too few documents.

    A document counts as right if its label is the most frequent one of the other documents with
    its rating.

    Args:
        present: documents of each class with each rating, shape (ratings, classes).
        class_sizes: documents of each class.
    """
    n_documents = int(present.sum())
    if n_documents < MIN_COVERAGE * int(class_sizes.min()) or n_documents < MIN_DOCUMENTS:
        return 0.0
    n_right = 0
    for label in range(present.shape[1]):
        others = present.copy()
        others[:, label] -= 1  # the document itself
        best_of_rest = np.delete(others, label, axis=1).max(axis=1)
        n_right += int(present[others[:, label] > best_of_rest, label].sum())
    neutral = float(class_sizes.max() / class_sizes.sum())
    lower = Share.count(n_right, n_documents).low
    return float((lower - neutral) / max(1 - neutral, 1e-12))
