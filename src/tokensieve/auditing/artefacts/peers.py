"""Which other words predict the class of a candidate as reliably: its peers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from tokensieve.arrays import Bools, Floats, Ints
from tokensieve.auditing.artefacts.candidates import Candidate
from tokensieve.auditing.artefacts.shapes import is_family, shape_of

NEARLY_AS_CERTAIN = 0.1  # of the way from neutral to certain: within chance for most words
SAME_DOCUMENTS = 0.5  # Jaccard index: two such words are one thing


def peers_of(
    candidates: Sequence[Candidate], pool: Sequence[Candidate], n_documents: int
) -> list[Ints]:
    """For each candidate, the places in the pool of words that are as certain, but no part of the
    same thing.

    A peer is a single word that predicts a class of the candidate's group, is at most
    `NEARLY_AS_CERTAIN` less certain, shares no word with it, and occurs in other documents.
    """
    if not candidates:
        return []
    is_word = np.array([len(candidate.words) == 1 for candidate in pool])
    least_certainty = certainties_of(candidates)[:, None] - NEARLY_AS_CERTAIN
    may_be_peer = is_word & (certainties_of(pool) >= least_certainty)
    may_be_peer &= shares_class(candidates, pool)
    may_be_peer &= ~has_same_documents(candidates, pool, n_documents)
    places_of_words = places_by([candidate.words for candidate in pool])
    places_of_family = places_by([(family_of(candidate),) for candidate in pool])
    for row, candidate in zip(may_be_peer, candidates, strict=True):
        for word in candidate.words:
            row[places_of_words.get(word, [])] = False
        family = family_of(candidate)
        if family:
            row[places_of_family.get(family, [])] = False
    return [np.flatnonzero(row) for row in may_be_peer]


def places_by(names: Sequence[Sequence[str]]) -> dict[str, list[int]]:
    """The places of the items that have each name."""
    places: dict[str, list[int]] = {}
    for place, names_of_item in enumerate(names):
        for name in names_of_item:
            places.setdefault(name, []).append(place)
    return places


def family_of(candidate: Candidate) -> str:
    """The shapes of a candidate's words, if they stand for several spellings; empty if not."""
    shapes = tuple(map(shape_of, candidate.words))
    return " ".join(shapes) if is_family(shapes) else ""


def shares_class(candidates: Sequence[Candidate], pool: Sequence[Candidate]) -> Bools:
    """Whether two point to a class of both their groups, shape (candidates, pool)."""
    n_classes = 1 + max(max(one.classes) for one in [*candidates, *pool])
    groups = [
        np.array([np.isin(np.arange(n_classes), one.classes) for one in side], dtype=float)
        for side in (candidates, pool)
    ]
    return np.asarray(groups[0] @ groups[1].T > 0)


def certainties_of(candidates: Sequence[Candidate]) -> Floats:
    """The certainty of each."""
    return np.array([candidate.certainty for candidate in candidates])


def has_same_documents(
    candidates: Sequence[Candidate], pool: Sequence[Candidate], n_documents: int
) -> Bools:
    """Whether two are in much the same documents, shape (candidates, pool)."""
    n_both = (incidence(candidates, n_documents).T @ incidence(pool, n_documents)).toarray()
    sizes = np.array([len(candidate.documents) for candidate in candidates])[:, None]
    pool_sizes = np.array([len(candidate.documents) for candidate in pool])
    return np.asarray(n_both >= SAME_DOCUMENTS * (sizes + pool_sizes - n_both))


def incidence(candidates: Sequence[Candidate], n_documents: int) -> sp.csc_array:
    """1 where a document contains a candidate, shape (documents, candidates)."""
    sizes = [len(candidate.documents) for candidate in candidates]
    columns = np.repeat(np.arange(len(candidates)), sizes)
    rows = np.concatenate([candidate.documents for candidate in candidates])
    shape = (n_documents, len(candidates))
    return sp.csc_array((np.ones(len(rows)), (rows, columns)), shape=shape)
