"""Which other words predict the class of a candidate as reliably: its peers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from tokensieve.arrays import Ints
from tokensieve.auditing.artefacts.candidates import Candidate

NEARLY_AS_CERTAIN = 0.1  # of the way from neutral to certain: within chance for most words
SAME_DOCUMENTS = 0.5  # Jaccard index: two such words are one thing


def peers_of(
    candidates: Sequence[Candidate], pool: Sequence[Candidate], n_documents: int
) -> list[Ints]:
    """For each candidate, the places in the pool of words that are as certain, but no part of the same thing.

    A peer is a single word that predicts a class of the candidate's group, is at most
    `NEARLY_AS_CERTAIN` less certain, shares no word with it, and occurs in other documents.
    """
    if not candidates:
        return []
    own = incidence(candidates, n_documents)
    others = incidence(pool, n_documents)
    both = (own.T @ others).toarray()
    own_sizes = np.array([len(candidate.documents) for candidate in candidates])[:, None]
    sizes = np.array([len(candidate.documents) for candidate in pool])
    has_same_documents = both >= SAME_DOCUMENTS * (own_sizes + sizes - both)
    own_certainty = np.array([candidate.certainty for candidate in candidates])[:, None]
    certainty = np.array([candidate.certainty for candidate in pool])
    is_word = np.array([len(candidate.words) == 1 for candidate in pool])
    is_as_certain = certainty >= own_certainty - NEARLY_AS_CERTAIN
    may_be_peer = is_as_certain & is_word & ~has_same_documents
    groups = [set(candidate.classes) for candidate in pool]
    words = [set(candidate.words) for candidate in pool]
    peers = []
    for i, candidate in enumerate(candidates):
        own_group = set(candidate.classes)
        own_words = set(candidate.words)
        places = np.flatnonzero(may_be_peer[i]).tolist()
        kept = [j for j in places if own_group & groups[j] and not own_words & words[j]]
        peers.append(np.array(kept, dtype=np.int64))
    return peers


def incidence(candidates: Sequence[Candidate], n_documents: int) -> sp.csc_array:
    """1 where a document contains a candidate, shape (documents, candidates)."""
    sizes = [len(candidate.documents) for candidate in candidates]
    columns = np.repeat(np.arange(len(candidates)), sizes)
    rows = np.concatenate([candidate.documents for candidate in candidates])
    shape = (n_documents, len(candidates))
    return sp.csc_array((np.ones(len(rows)), (rows, columns)), shape=shape)
