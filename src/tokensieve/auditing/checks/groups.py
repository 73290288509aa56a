"""Documents that seem to come in groups, although no groups were named."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from tokensieve.auditing.checks.base import AuditData, Check
from tokensieve.auditing.findings import Finding, quoted
from tokensieve.evidence.shares import Share
from tokensieve.task.tasks import Labels
from tokensieve.text.counts import Ints
from tokensieve.wording import count, percent


class Groups(Check):
    """Documents of one author or thread are no independent evidence, and leak across a random split."""

    name = "groups"
    title = "Documents seem to come in groups"
    about = (
        "At least 10% of the training documents fall into groups of 3 to 30 that share three or more rare words, and the documents "
        "of a group share a label more often than by chance; checked only without --by."
    )
    action = (
        "Name the column that groups them (author, thread, source) with --by, so that groups stay whole in the split."
    )
    tasks = (Labels,)
    rare = (3, 30)  # documents that contain a word
    together = 0.5  # Jaccard index of the documents of two words of one group
    words, least, agree = 3, 0.1, 0.1
    most = 20_000  # rare words looked into

    def find(self, data: AuditData) -> Iterator[Finding]:
        if data.train.corpus.by is not None:
            return
        train = data.train.counts
        group, types = self._groups(train.matrix[:, : data.words])
        held = np.flatnonzero(group >= 0)
        share = Share.count(len(held), train.n_documents)
        if share.value < self.least:
            return
        sizes = train.class_sizes / train.n_documents
        expected = float((sizes**2).sum())
        table = np.zeros((group.max() + 1, train.n_classes))
        np.add.at(table, (group[held], train.labels[held]), 1)
        n = table.sum(axis=1)
        pairs, same = float((n * (n - 1)).sum()), float((table * (table - 1)).sum())
        agreement = same / max(pairs, 1.0)
        if agreement < expected + self.agree:
            return
        tokens = tuple(str(train.tokens[s]) for s in types)
        yield self.finding(
            data,
            0.5 * share.value * (agreement - expected),
            f"{percent(share.value)} of training documents share rare words with a few others, which have the same label in "
            f"{percent(agreement, 0)} of pairs ({percent(expected, 0)} by chance)",
            held,
            tokens=tokens,
            evidence={"documents": share},
            details=(f"{count(int(group.max()) + 1)} groups; the largest shares words such as {quoted(tokens)}",),
        )

    def _groups(self, matrix: sp.csr_array) -> tuple[Ints, Ints]:
        """The group of each document (−1 for none), and some words of the largest group."""
        present = sp.csc_array(matrix, copy=True)
        present.data = np.ones_like(present.data)
        documents = np.diff(present.indptr)
        rare = np.flatnonzero((documents >= self.rare[0]) & (documents <= self.rare[1]))[: self.most]
        nothing = np.full(matrix.shape[0], -1, dtype=np.int64), rare[:0]
        if not len(rare):
            return nothing
        part = sp.csr_array(present[:, rare])
        both = sp.coo_array(part.T @ part)
        i, j = both.coords
        size = documents[rare]
        near = (i < j) & (both.data >= self.together * (size[i] + size[j] - both.data))
        graph = sp.coo_array((np.ones(int(near.sum())), (i[near], j[near])), shape=(len(rare), len(rare)))
        bundle = connected_components(graph, directed=False)[1]
        large = np.flatnonzero(np.bincount(bundle) >= self.words)
        if not len(large):
            return nothing
        place = np.full(bundle.max() + 1, -1, dtype=np.int64)
        place[large] = np.arange(len(large))
        kept = np.flatnonzero(place[bundle] >= 0)
        member = sp.csr_array(
            (np.ones(len(kept)), (np.arange(len(kept)), place[bundle[kept]])), shape=(len(kept), len(large))
        )
        shared = sp.csr_array(part[:, kept]) @ member
        group = np.full(matrix.shape[0], -1, dtype=np.int64)
        dense = sp.coo_array(shared)
        rows, columns = dense.coords
        order = np.argsort(dense.data, kind="stable")
        enough = order[dense.data[order] >= 2]
        group[rows[enough]] = columns[enough]
        held, numbers = np.unique(group[group >= 0], return_inverse=True)
        if not len(held):
            return nothing
        group[group >= 0] = numbers
        sizes = np.bincount(numbers)
        small = (sizes < self.rare[0]) | (sizes > self.rare[1])
        group[np.isin(group, np.flatnonzero(small))] = -1
        if not (group >= 0).any():
            return nothing
        names, numbers = np.unique(group[group >= 0], return_inverse=True)
        group[group >= 0] = numbers
        largest = held[names[np.bincount(numbers).argmax()]]
        return group, rare[kept[place[bundle[kept]] == largest]][:5]
