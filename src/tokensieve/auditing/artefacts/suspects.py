"""Suspects: what an audit accuses, words and formatting alike, and which are one finding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tokensieve.arrays import Ints
from tokensieve.auditing.artefacts.candidates import MIN_DOCUMENTS
from tokensieve.auditing.artefacts.forms import LENGTH, Form
from tokensieve.auditing.artefacts.reasons import reasons
from tokensieve.auditing.artefacts.score import Scored
from tokensieve.auditing.artefacts.shapes import is_family, shape_of
from tokensieve.auditing.artefacts.splits import best_splits
from tokensieve.text.counts import Counts

FIXED_PHRASE = (
    "fixed phrase"  # the sign of a finding whose words are cut with the phrase around them
)
SAME_DOCUMENTS = 0.5  # Jaccard index of two suspects that are one finding
NEARLY_ALL = 0.9  # of a suspect's documents: it belongs to one that contains them
MAX_MEMBERS = 40  # of a family that are named


@dataclass(frozen=True, eq=False)
class Suspect:
    """A word, family, phrase or feature of formatting that looks like an artefact.

    Attributes:
        token: its name.
        type: its place in the vocabulary; −1 for what is no type by itself, such as a phrase.
        classes: the classes it points to.
        documents: the training documents that contain it, ascending.
        certainty: how far from neutral to certain it makes them.
        probability: how likely it is an artefact.
        reasons: why, as clauses.
        is_form: whether it is formatting.
        slot: the neighbours that nearly all its occurrences have, left and right.
        is_fixed_phrase: whether it stands in a fixed phrase at an edge of its texts.
    """

    token: str
    type: int
    classes: tuple[int, ...]
    documents: Ints
    certainty: float
    probability: float
    reasons: tuple[str, ...] = ()
    is_form: bool = False
    slot: tuple[str, str] = ("", "")
    is_fixed_phrase: bool = False

    @property
    def words(self) -> set[str]:
        """Its words; none if it is formatting."""
        return set() if self.is_form else set(self.token.split(" "))


def suspect_of(one: Scored, documents: Ints) -> Suspect:
    """An accused word or phrase; `documents` are those that contain it, copies included."""
    candidate = one.candidate
    return Suspect(
        token=candidate.token,
        type=candidate.type,
        classes=candidate.classes,
        documents=documents,
        certainty=candidate.certainty,
        probability=one.probability,
        reasons=tuple(reasons(one)),
        slot=one.observed.neighbours.slot,
        is_fixed_phrase=one.observed.neighbours.is_fixed_phrase,
    )


def suspect_form(form: Form) -> Suspect:
    """Suspicious formatting."""
    candidate = form.candidate
    return Suspect(
        token=candidate.token,
        type=candidate.type,
        classes=candidate.classes,
        documents=candidate.documents,
        certainty=candidate.certainty,
        probability=form.probability,
        is_form=True,
    )


def with_members(suspect: Suspect, counts: Counts) -> list[Suspect]:
    """A family as its members, each with the classes it points to itself; another suspect as it is.

    Of 7/10 the members are all ratings out of ten that five documents contain.
    """
    words = suspect.token.split(" ")
    shape = shape_of(words[0])
    if len(words) > 1 or suspect.is_form or not is_family((shape,)):
        return [suspect]
    types = np.flatnonzero([shape_of(str(word)) == shape for word in counts.tokens])
    types = types[counts.present[types].sum(axis=1) >= MIN_DOCUMENTS]
    if not len(types):
        return [suspect]
    most_frequent = np.argsort(-counts.present[types].sum(axis=1), kind="stable")[:MAX_MEMBERS]
    types = types[most_frequent]
    splits = best_splits(counts.present[types], counts.class_sizes)
    members = []
    for i, member_documents in enumerate(counts.holders(types)):
        members.append(
            Suspect(
                token=str(counts.tokens[types[i]]),
                type=int(types[i]),
                classes=tuple(np.flatnonzero(splits.is_inside[i]).tolist()),
                documents=member_documents,
                certainty=suspect.certainty,
                probability=suspect.probability,
                reasons=suspect.reasons,
                slot=suspect.slot,
                is_fixed_phrase=suspect.is_fixed_phrase,
            )
        )
    return members


def grouped(suspects: Sequence[Suspect]) -> list[list[Suspect]]:
    """Suspects that are one finding (`belong_together`), whatever their classes, largest first."""
    groups: list[list[Suspect]] = []
    for suspect in sorted(suspects, key=lambda one: -one.certainty * len(one.documents)):
        joined = [suspect]
        apart = []
        for group in groups:
            if any(belong_together(suspect, member) for member in group):
                joined = [*group, *joined]
            else:
                apart.append(group)
        groups = [*apart, joined]
    return groups


def belong_together(a: Suspect, b: Suspect) -> bool:
    """Whether two suspects share a word, a shape, a slot, or much the same documents."""
    if a.words & b.words:
        return True
    if not a.is_form and not b.is_form:
        shapes = tuple(map(shape_of, a.token.split(" ")))
        if shapes == tuple(map(shape_of, b.token.split(" "))) and is_family(shapes):
            return True
        if a.slot == b.slot and any(a.slot) and a.classes == b.classes:
            return True
    n_both = len(np.intersect1d(a.documents, b.documents, assume_unique=True))
    if n_both >= SAME_DOCUMENTS * (len(a.documents) + len(b.documents) - n_both):
        return True
    is_contained = n_both >= NEARLY_ALL * min(len(a.documents), len(b.documents))
    return is_contained and a.classes == b.classes and not (a.is_form and b.is_form)


def without_length(group: Sequence[Suspect]) -> list[Suspect]:
    """A finding without length, which any mark changes; length stands alone only."""
    return [suspect for suspect in group if LENGTH not in suspect.token] or list(group)
