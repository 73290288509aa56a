"""Formatting that predicts a class: a rule, as it has no neighbours and no vocabulary of its own.

Formatting that no one chooses, such as double spaces, is an artefact wherever it predicts a class.
Formatting that writers choose, such as a final exclamation mark, may be their way to write about
the subject: it counts only if it nearly decides the class, and less.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from tokensieve.arrays import Ints
from tokensieve.auditing.artefacts.candidates import (
    Candidate,
    candidates_among,
    eligible,
    within_budget,
)
from tokensieve.auditing.artefacts.splits import best_splits
from tokensieve.text.counts import Counts

# formatting that follows from what a text says, or from the habits of its writer
CHOSEN = re.compile(
    r'.*⟨(length |ends "[.!?:]"|ends with a (quote|digit)|no (final|capitals)|'
    r"starts (in|with a (quote|digit))|number|percentage|sum of|!!|[?][?!]|[.]{3}|"
    r"— |; |: |[(]parenth|"
    r"\"quotes|repeated)"
)
LEANING = 0.2  # of the way to certain: what an artefact reaches at least
NEARLY_DECIDING = 0.5  # the same, of a form that writers choose
UNCHOSEN_PROBABILITY = 0.95  # of a form that no one chooses; a judgement, not measured
CHOSEN_PROBABILITY = 0.5  # may as well be the subject
HABIT = 0.01  # of the other classes' documents: from there on it is a habit of writers
LENGTH = "⟨length "


@dataclass(frozen=True, eq=False)
class Form:
    """Formatting that predicts a group of classes, and how likely it is an artefact."""

    candidate: Candidate
    probability: float


def is_chosen(token: str) -> bool:
    """Whether writers choose a feature of formatting by what they say."""
    return CHOSEN.match(token) is not None


def suspicious_forms(counts: Counts, first: int, units: Ints | None = None) -> list[Form]:
    """The formatting that counts as an artefact; its types are those from `first` on."""
    columns = np.arange(first, counts.n_types)
    forms = Counts(counts.matrix[:, columns], counts.labels, counts.classes, counts.tokens[columns])
    if not forms.n_types:
        return []
    splits = best_splits(forms.present, forms.class_sizes)
    chosen = within_budget(splits, eligible(splits, forms, units), forms)
    forms_found = []
    for candidate in candidates_among(splits, chosen, forms, first):
        least_certainty = NEARLY_DECIDING if is_chosen(candidate.token) else LEANING
        if candidate.certainty > least_certainty:
            forms_found.append(Form(candidate, probability_of(candidate, counts.n_documents)))
    return forms_found


def probability_of(candidate: Candidate, n_documents: int) -> float:
    """How likely a form is an artefact, by whether writers choose it and how many do elsewhere."""
    if not is_chosen(candidate.token):
        return UNCHOSEN_PROBABILITY
    n_outside = len(candidate.documents) - candidate.n_inside
    rate_outside = n_outside / max(n_documents - candidate.group_size, 1)
    if rate_outside > HABIT:
        return CHOSEN_PROBABILITY / 2
    return CHOSEN_PROBABILITY
