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
    may_be_peer &= ~has_same_documents(candidates, pool, n_documents)
    return [
        np.array(
            [place for place in np.flatnonzero(row).tolist() if is_rival(one, pool[place])],
            dtype=np.int64,
        )
        for one, row in zip(candidates, may_be_peer, strict=True)
    ]


def is_rival(candidate: Candidate, other: Candidate) -> bool:
    """Whether a word points to a class of the candidate's, and is no word of it or of its
    family.
    """
    shapes = tuple(map(shape_of, candidate.words))
    is_of_family = is_family(shapes) and shapes == tuple(map(shape_of, other.words))
    shares_class = bool(set(candidate.classes) & set(other.classes))
    return shares_class and not is_of_family and not set(candidate.words) & set(other.words)


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
