"""Suspects: what an audit accuses, words and formatting alike, and which are one finding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tokensieve.arrays import Ints
from tokensieve.auditing.artefacts.candidates import MIN_DOCUMENTS
from tokensieve.auditing.artefacts.forms import LENGTH, Form
from tokensieve.auditing.artefacts.ratings import RatingScale
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
SPELLED_OTHERWISE = 0.1  # of a family's documents: then its members do not say what it is


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
        reasons: why, as clauses about `scored_token`.
        is_form: whether it is formatting.
        slot: the neighbours that nearly all its occurrences have, left and right.
        is_fixed_phrase: whether it stands in a fixed phrase at an edge of its texts.
        scored_token: whose probability and reasons these are; of 8/10 it may be 7/10.
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
    scored_token: str = ""

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
        scored_token=candidate.token,
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


def suspect_scale(scale: RatingScale) -> Suspect:
    """Ratings on a scale that nearly decide the label, as one family."""
    return Suspect(
        token=scale.shape,
        type=-1,
        classes=(),
        documents=scale.documents,
        certainty=scale.certainty,
        probability=scale.probability,
    )


def with_members(suspect: Suspect, counts: Counts) -> list[Suspect]:
    """A family as its members, each with the classes it points to itself; another suspect as it is.

    Of 7/10 the members are all ratings out of ten that five documents contain. The family stays one
    of them where much of it is spelled otherwise, as "seven out of ten".
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
    members = [
        replace(
            suspect,
            token=str(counts.tokens[types[i]]),
            type=int(types[i]),
            classes=tuple(np.flatnonzero(splits.is_inside[i]).tolist()),
            documents=member_documents,
        )
        for i, member_documents in enumerate(counts.holders(types))
    ]
    documents = np.unique(np.concatenate([member.documents for member in members]))
    n_spelled_otherwise = len(np.setdiff1d(suspect.documents, documents))
    if n_spelled_otherwise > SPELLED_OTHERWISE * len(suspect.documents):
        return [suspect, *members]
    return members


def grouped(suspects: Sequence[Suspect]) -> list[list[Suspect]]:
    """Group suspects into findings (`belong_together`), whatever their classes."""
    groups: list[list[Suspect]] = []
    by_size = sorted(suspects, key=lambda one: -one.certainty * len(one.documents))
    for suspect in by_size:
        joined = [suspect]
        apart = []
        for group in groups:
            if any(belong_together(suspect, member, suspects) for member in group):
                joined = [*group, *joined]
            else:
                apart.append(group)
        groups = [*apart, joined]
    return groups


def belong_together(a: Suspect, b: Suspect, suspects: Sequence[Suspect]) -> bool:
    """Whether two of some suspects share a word, a shape, a slot, or much the same documents."""
    if a.words & b.words:
        return True
    if not a.is_form and not b.is_form:
        shapes = tuple(map(shape_of, a.token.split(" ")))
        if shapes == tuple(map(shape_of, b.token.split(" "))) and is_family(shapes):
            return True
        if a.slot == b.slot and any(a.slot) and a.classes == b.classes:
            return True
    if has_same_documents(a.documents, b.documents):
        return True
    small, large = sorted((a, b), key=lambda one: len(one.documents))
    if a.classes != b.classes or (a.is_form and b.is_form) or not is_part(small, large):
        return False
    return not large.is_form or is_form_of_words(large, suspects)


def has_same_documents(a: Ints, b: Ints) -> bool:
    """Whether most documents that contain one of two suspects contain the other, too."""
    n_both = len(np.intersect1d(a, b, assume_unique=True))
    return n_both >= SAME_DOCUMENTS * (len(a) + len(b) - n_both)


def is_part(small: Suspect, large: Suspect) -> bool:
    """Whether nearly all documents of one suspect are among those of another."""
    n_both = len(np.intersect1d(small.documents, large.documents, assume_unique=True))
    return n_both >= NEARLY_ALL * len(small.documents)


def is_form_of_words(form: Suspect, suspects: Sequence[Suspect]) -> bool:
    """Whether most documents of a form have a suspicious word that never comes without it.

    A code begins with a bracket, whatever the code; but a full stop at the end is more than the
    signatures that end with one.
    """
    words = [one for one in suspects if not one.is_form and is_part(one, form)]
    documents = [one.documents for one in words if one.classes == form.classes]
    return bool(documents) and has_same_documents(
        np.unique(np.concatenate(documents)), form.documents
    )


def without_length(group: Sequence[Suspect]) -> list[Suspect]:
    """A finding without length, which any mark changes; length stands alone only."""
    return [suspect for suspect in group if LENGTH not in suspect.token] or list(group)
