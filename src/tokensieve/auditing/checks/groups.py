"""Documents that seem to form groups although `--by` was not given."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.special import expit, logit

from tokensieve.arrays import Ints
from tokensieve.auditing.checks.api import AuditContext, Check, Findings, Labels, Share
from tokensieve.auditing.phrases import quoted
from tokensieve.escape import for_display, option
from tokensieve.model.attention import probabilities
from tokensieve.text.counts import Counts
from tokensieve.wording import percent, plural


class Groups(Check):
    """Documents by one author or from one thread are not independent evidence, and leak across a random split."""

    name = "groups"
    title = "Documents appear to be grouped"
    about = (
        "At least 30% of the training documents share rare words with another one: words as rare together as three words in "
        "30 documents each, and more than a third of the rare words of one of the two. At least 90% of these pairs have the "
        "same label, 30 points more than the model expects from their other words, or than if each rare word told the label as it "
        "does between groups. Also reported if documents with the same value in an author-like column have the same label at "
        "least 10 points more often than by chance. Checked only without --by."
    )
    action = "Name the column that groups them (author, thread, source) with --by, so that groups stay whole in the split."
    tasks = (Labels,)
    descriptive = True
    # a word is rare in up to so many documents, or so much of all; as informative as so many words of the first kind must be what
    # two documents share, and so much of what one of them has
    few, rare, words, alike = 30, 0.05, 3, 0.35
    # of the documents; of their pairs; more than expected (news of one event share names, and a label through what they are about)
    least, agree, beyond = 0.3, 0.9, 0.3
    most = 2e6  # pairs of documents with a word in common

    def find(self, data: AuditContext) -> Findings:
        if data.train.corpus.groups is not None:
            return
        train = data.train.counts
        if (known := data.train.corpus.reading.likely_groups) is not None:
            column, groups, documents = known.column, known.n_groups, known.n_documents
            agreement, expected = known.agreement, known.expected_agreement
            share = Share.count(documents, sum(data.totals["documents"].values()))
            yield self.finding(
                data,
                0.5 * share.value * (agreement - expected),
                f"Documents with the same value of the column “{for_display(column, 40)}” share a label in "
                f"{percent(agreement, 0)} of pairs ({percent(expected, 0)} by chance)",
                n_documents=documents,
                evidence={"documents": share},
                details=(f"{plural(groups, 'value')} occur in two or more documents",),
                action="If these documents belong together (one author, thread or source), a random split puts parts of a group on "
                f"both sides and inflates the accuracy. Keep them whole: {option('--by', column)}",
            )
            return
        # pairs of documents that share rare words, each of which weighs log(documents / documents with it)
        n, documents = train.n_documents, train.present[: data.n_words].sum(axis=1)
        rare = np.flatnonzero((documents > 1) & (documents <= max(self.few, self.rare * n)))
        rare = rare[np.argsort(documents[rare], kind="stable")]
        rare = rare[np.cumsum(documents[rare].astype(np.float64) ** 2) <= self.most]
        present = sp.csr_array(train.matrix[:, rare], dtype=np.float64)  # a copy
        present.data[:] = 1
        weighed = sp.csr_array(present * np.sqrt(np.log(n / documents[rare])))
        shared, own = (
            sp.coo_array(weighed @ weighed.T),
            np.asarray(weighed.power(2).sum(axis=1)).ravel(),
        )
        i, j = shared.coords
        enough = np.maximum(
            self.words * np.log(n / self.few), self.alike * np.minimum(own[i], own[j])
        )
        i, j = np.array((i, j))[:, (i < j) & (shared.data >= enough)].astype(np.int64)
        held, among = np.unique([i, j], return_inverse=True)
        share = Share.count(len(held), train.n_documents)
        if share.value < self.least:
            return
        ordinary = train.rows(held).matrix.copy()
        ordinary.data[np.isin(ordinary.indices, rare)] = 0
        ordinary.eliminate_zeros()
        chances = probabilities(data.learned.model.logits(ordinary))
        same, (a, b) = train.labels[i] == train.labels[j], among.reshape(2, -1)
        agreement, expected = (
            float(same.mean()),
            float((chances[a] * chances[b]).sum(axis=1).mean()),
        )
        if agreement < max(
            self.agree, max(expected, self._told_by_words(i, j, present, train)) + self.beyond
        ):
            return
        both = np.flatnonzero(present[[i[0]]].toarray() * present[[j[0]]].toarray())
        tokens = tuple(str(train.tokens[s]) for s in rare[both][:5])
        yield self.finding(
            data,
            0.5 * share.value * (agreement - expected),
            f"{percent(share.value)} of training documents share rare words with another one; two such documents have the same "
            f"label {percent(agreement, 0)} of the time ({percent(expected, 0)} expected from their other words)",
            held,
            tokens=tokens,
            evidence={"documents": share},
            details=(
                f"{plural(len(i), 'pair')} of documents; in one of them, both contain {quoted(tokens)}",
            ),
        )

    @staticmethod
    def _told_by_words(i: Ints, j: Ints, present: sp.csr_array, train: Counts) -> float:
        """How often pairs would have the same label if each rare word that they share told it by itself, as well as one does that
        documents of different groups share: names of diseases are what diagnoses are about."""
        n, labels = train.n_documents, train.labels
        _, group = connected_components(
            sp.coo_array((np.ones(len(i)), (i, j)), shape=(n, n)), directed=False
        )
        both = sp.coo_array(sp.triu(present @ present.T, 1))
        a, b = (
            side[(both.data == 1) & (group[both.coords[0]] != group[both.coords[1]])]
            for side in both.coords
        )
        chance = logit(np.square(train.class_sizes / n).sum())
        told = logit(Share.count(int((labels[a] == labels[b]).sum()), len(a)).low) - chance
        return float(expit(chance + present[i].multiply(present[j]).sum(axis=1) * told).mean())
