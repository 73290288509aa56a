"""Documents that seem to form groups although `--by` was not given."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from tokensieve.auditing.checks.base import AuditData, Check, Findings, Labels, Share
from tokensieve.auditing.findings import quoted
from tokensieve.escape import option, shown
from tokensieve.model.attention import probabilities
from tokensieve.text.counts import Ints
from tokensieve.wording import count, percent


class Groups(Check):
    """Documents by one author or from one thread are not independent evidence, and leak across a random split."""

    name = "groups"
    title = "Documents appear to be grouped"
    about = (
        "At least 10% of the training documents fall into groups of 3 to 30 that share three or more rare words, and two documents "
        "of a group have the same label at least 10 points more often than the model expects from their other words. Also reported "
        "if documents with the same value in an author-like column have the same label at least 10 points more often than by "
        "chance. Checked only without --by."
    )
    action = (
        "Name the column that groups them (author, thread, source) with --by, so that groups stay whole in the split."
    )
    tasks = (Labels,)
    size = (3, 30)  # of a group, and so of the documents that contain one of its words
    together = 0.5  # Jaccard index of the documents of two words of one group
    words, least, agree = 3, 0.1, 0.1

    def find(self, data: AuditData) -> Findings:
        if data.train.corpus.groups is not None:
            return
        train = data.train.counts
        if (known := data.train.corpus.intake.grouping) is not None:
            column, groups, agreement, expected, documents = known
            share = Share.count(documents, sum(data.figures["documents"].values()))
            name = shown(column, 40)
            yield self.finding(
                data,
                0.5 * share.value * (agreement - expected),
                f"Documents with the same value of the column “{name}” share a label in {percent(agreement, 0)} of pairs "
                f"({percent(expected, 0)} by chance)",
                total=documents,
                evidence={"documents": share},
                details=(f"{count(groups, 'value')} occur in two or more documents",),
                action="If these documents belong together (one author, thread or source), a random split puts parts of a group on "
                f"both sides and inflates the accuracy. Keep them whole: {option('--by', column)}",
            )
            return
        group, types = self._groups(train.matrix[:, : data.words])
        held = np.flatnonzero(group >= 0)
        share = Share.count(len(held), train.n_documents)
        if share.value < self.least:
            return
        # news of one event share names, and a label because of what they are about: only agreement beyond that is the group's
        ordinary = train.rows(held).matrix.copy()
        ordinary.data[np.bincount(train.matrix.indices)[ordinary.indices] <= self.size[1]] = 0
        ordinary.eliminate_zeros()
        chances = probabilities(data.learned.model.decide(ordinary))
        drawn = np.eye(train.n_classes)[train.labels[held]]
        member = sp.csr_array((np.ones(len(held)), (group[held], np.arange(len(held)))))
        # of the ordered pairs of a group, how many share a label, and how many should?
        agree, expect = (float(((member @ p) ** 2).sum() - (p**2).sum()) for p in (drawn, chances))
        n = np.asarray(member.sum(axis=1))
        pairs = max(float((n * (n - 1)).sum()), 1.0)
        agreement, expected = agree / pairs, expect / pairs
        if agreement < expected + self.agree:
            return
        tokens = tuple(str(train.tokens[s]) for s in types)
        yield self.finding(
            data,
            0.5 * share.value * (agreement - expected),
            f"{percent(share.value)} of training documents form small groups that share rare words; two documents of a group have "
            f"the same label {percent(agreement, 0)} of the time ({percent(expected, 0)} expected from their other words)",
            held,
            tokens=tokens,
            evidence={"documents": share},
            details=(f"{count(len(n))} groups; the largest shares words such as {quoted(tokens)}",),
        )

    def _groups(self, matrix: sp.csr_array) -> tuple[Ints, Ints]:
        """The group of each document (−1 for none), and some words of the largest group."""
        group = np.full(matrix.shape[0], -1, dtype=np.int64)
        documents = np.bincount(matrix.indices, minlength=matrix.shape[1])
        # bundles: rare words (20,000 at most) of much the same documents, linked to one another
        rare = np.flatnonzero((documents >= self.size[0]) & (documents <= self.size[1]))[:20_000]
        if not len(rare):
            return group, rare
        part = sp.csr_array(matrix[:, rare])  # a copy
        part.data[:] = 1
        both = sp.coo_array(part.T @ part)
        i, j = both.coords
        near = (i < j) & (both.data >= self.together * (documents[rare][i] + documents[rare][j] - both.data))
        graph = sp.coo_array((np.ones(int(near.sum())), (i[near], j[near])), shape=(len(rare), len(rare)))
        bundle = connected_components(graph, directed=False)[1]
        large = np.bincount(bundle) >= self.words
        kept = np.flatnonzero(large[bundle])
        member = sp.csr_array((np.ones(len(kept)), (np.arange(len(kept)), bundle[kept])), shape=(len(kept), len(large)))
        # a document belongs to the bundle of which it contains most words, two at least
        shared = sp.coo_array(sp.csr_array(part[:, kept]) @ member)
        rows, columns = shared.coords
        order = np.argsort(shared.data, kind="stable")
        enough = order[shared.data[order] >= 2]
        group[rows[enough]] = columns[enough]
        sizes = np.bincount(group[group >= 0], minlength=len(large))
        fits = (sizes >= self.size[0]) & (sizes <= self.size[1])
        group[~np.append(fits, False)[group]] = -1
        if not fits.any():
            return group, rare[:0]
        names, numbers = np.unique(group[group >= 0], return_inverse=True)
        group[group >= 0] = numbers
        return group, rare[bundle == names[np.bincount(numbers).argmax()]][:5]
