"""Which other words predict the class of a candidate as reliably: its peers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from tokensieve.arrays import Ints
from tokensieve.auditing.artefacts.candidates import Candidate

NEARLY_AS_CERTAIN = 0.1  # of the way from neutral to certain: within chance for most words
SAME_DOCUMENTS = 0.5  # Jaccard index: two such words are one thing


def peers_of(candidates: Sequence[Candidate], n_documents: int) -> list[Ints]:
    """For each candidate, the places of the words that are as certain, but no part of the same thing.

    A peer is a single word that predicts a class of the candidate's group, is at most
    `NEARLY_AS_CERTAIN` less certain, shares no word with it, and occurs in other documents.
    """
    if not candidates:
        return []
    sizes = np.array([len(candidate.documents) for candidate in candidates])
    columns = np.repeat(np.arange(len(candidates)), sizes)
    rows = np.concatenate([candidate.documents for candidate in candidates])
    contains = sp.csc_array(
        (np.ones(len(rows)), (rows, columns)), shape=(n_documents, len(candidates))
    )
    both = (contains.T @ contains).toarray()
    has_same_documents = both >= SAME_DOCUMENTS * (sizes[:, None] + sizes - both)
    certainty = np.array([candidate.certainty for candidate in candidates])
    is_word = np.array([len(candidate.words) == 1 for candidate in candidates])
    is_as_certain = certainty >= certainty[:, None] - NEARLY_AS_CERTAIN
    may_be_peer = is_as_certain & is_word & ~has_same_documents
    groups = [set(candidate.classes) for candidate in candidates]
    words = [set(candidate.words) for candidate in candidates]
    peers = []
    for i in range(len(candidates)):
        places = np.flatnonzero(may_be_peer[i])
        kept = [j for j in places.tolist() if groups[i] & groups[j] and not words[i] & words[j]]
        peers.append(np.array(kept, dtype=np.int64))
    return peers
