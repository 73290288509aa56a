"""Documents that seem to form groups although `--by` was not given."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.special import expit, logit

from tokensieve.arrays import Ints
from tokensieve.auditing.checks.api import (
    AuditContext,
    Check,
    ConcernedDocuments,
    Finding,
    Findings,
    Labels,
    Share,
)
from tokensieve.auditing.copies import field_values, text_fields
from tokensieve.auditing.phrases import quoted
from tokensieve.escape import IN_SENTENCE, for_display, option
from tokensieve.model.attention import probabilities
from tokensieve.read.reading_report import LikelyGroups
from tokensieve.text.counts import Counts
from tokensieve.wording import percent, plural

MAX_RARE_DOCUMENTS = 30  # in which a rare word occurs,
MAX_RARE_FRACTION = 0.05  # or this fraction of all, where that is more
# two documents must share the evidence of three words in `MAX_RARE_DOCUMENTS` documents each
MIN_SHARED_RARE_WORDS = 3
# and this much of the rare words of the one that has fewer
MIN_SHARED_FRACTION = 0.35
MAX_PAIRS = 2e6  # of documents that share a word: more would take minutes
MIN_DOCUMENTS = 0.3  # fraction of documents that share words with another one
MIN_AGREEMENT = 0.9  # of the pairs
# news of one event share names, and a label through what they are about
MIN_EXCESS_AGREEMENT = 0.3
MIN_VALUES = 20  # of a text field: fewer are categories, or one boilerplate sentence
FIELD_WEIGHT = 0.02  # sharing one field does not reveal the label; the other fields differ
WEIGHT = 0.5  # only some predictions profit from a group on both sides of the split
MAX_TOKENS = 5


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Pairs of training documents that share rare words.

    Attributes:
        first, second: places of the documents, shape (p,).
        rare: the token types that are rare, shape (r,).
        present: which document contains which of them, (documents, r).
    """

    first: Ints
    second: Ints
    rare: Ints
    present: sp.csr_array


class Groups(Check):
    """Documents by one author or from one thread are not independent evidence, and leak across a
    random split."""

    name = "groups"
    title = "Documents appear to be grouped"
    about = (
        "At least 30% of the training documents share rare words with another one: words as rare "
        "together as three words in 30 documents each, and more than a third of the rare words of "
        "one of the two. At least 90% of these pairs have the same label, 30 points more than the "
        "model expects from their other words, or than if each rare word told the label as it does "
        "between groups. Also reported if documents with the same value in an author-like column "
        "have the same label at least 10 points more often than by chance, or if at least 30% of "
        "documents share one of several text fields with another one. Checked only without --by."
    )
    action = (
        "Name the column that groups them (author, thread, source) with --by, so that groups stay "
        "whole in the split."
    )
    tasks = (Labels,)
    descriptive = True

    def find(self, audit: AuditContext) -> Findings:
        corpus = audit.train.corpus
        if corpus.groups is not None:
            return
        if corpus.reading.likely_groups is not None:
            yield self._of_column(audit, corpus.reading.likely_groups)
            return
        repeated = _repeated_field(audit)
        if repeated is not None:
            yield self._of_field(audit, repeated)
            return
        pairs = _pairs_with_rare_words(audit)
        documents = np.unique(np.append(pairs.first, pairs.second))
        share = Share.count(len(documents), audit.train.counts.n_documents)
        if share.value < MIN_DOCUMENTS:
            return
        labels = audit.train.counts.labels
        agreement = float((labels[pairs.first] == labels[pairs.second]).mean())
        expected = _agreement_by_other_words(pairs, documents, audit)
        by_words = _agreement_by_single_words(pairs, audit.train.counts)
        if agreement < max(MIN_AGREEMENT, max(expected, by_words) + MIN_EXCESS_AGREEMENT):
            return

        tokens = _shared_tokens(pairs, audit.train.counts)
        yield self.finding(
            audit,
            severity=WEIGHT * share.value * (agreement - expected),
            headline=(
                f"{percent(share.value)} of training documents share rare words with another one; "
                f"two such documents have the same label {percent(agreement, 0)} of the time "
                f"({percent(expected, 0)} expected from their other words)"
            ),
            documents=documents,
            tokens=tokens,
            evidence={"documents": share},
            details=(
                f"{plural(len(pairs.first), 'pair')} of documents share such words; in one pair, "
                f"both contain {quoted(tokens)}",
            ),
        )

    def _of_field(self, audit: AuditContext, field: _RepeatedField) -> Finding:
        """The finding about a text field that repeats by design."""
        share = Share.count(len(field.documents), audit.train.counts.n_documents)
        name = for_display(field.name, IN_SENTENCE)
        return self.finding(
            audit,
            severity=FIELD_WEIGHT * share.value,
            headline=(
                f"{percent(share.value)} of training documents share their {name} with another one"
            ),
            documents=field.documents,
            evidence={"documents": share},
            details=(
                f"{plural(field.n_values, f'different {name}')} occur in two or more documents, "
                f"so a random split puts the same {name} on both sides",
            ),
            action=(
                f"Keep documents of one {name} on one side of the split: "
                f"{option('--by', field.name)}"
            ),
        )

    def _of_column(self, audit: AuditContext, groups: LikelyGroups) -> Finding:
        """The finding about a column that looks like an author or a thread."""
        share = Share.count(groups.n_documents, sum(audit.totals["documents"].values()))
        excess = groups.agreement - groups.expected_agreement
        column = for_display(groups.column, IN_SENTENCE)
        return self.finding(
            audit,
            severity=WEIGHT * share.value * excess,
            headline=(
                f"Documents with the same value of the column “{column}” "
                f"share a label in {percent(groups.agreement, 0)} of pairs "
                f"({percent(groups.expected_agreement, 0)} by chance)"
            ),
            documents=ConcernedDocuments(total=groups.n_documents),
            evidence={"documents": share},
            details=(f"{plural(groups.n_groups, 'value')} occur in two or more documents",),
            action=(
                "If these documents belong together (one author, thread or source), a random split "
                "puts parts of a group on both sides and inflates the accuracy. Keep them whole: "
                f"{option('--by', groups.column)}"
            ),
        )


@dataclass(frozen=True, eq=False)
class _RepeatedField:
    """A text field whose values repeat by design, as a premise with several hypotheses.

    Attributes:
        name: of the field.
        documents: training documents that share their value with another one.
        n_values: distinct values of these documents.
    """

    name: str
    documents: Ints
    n_values: int


def _repeated_field(audit: AuditContext) -> _RepeatedField | None:
    """The text field that repeats most, if that is systematic; None if there is none."""
    fields = text_fields(audit)
    if audit.fields is None or len(fields) < 2:
        return None
    best = None
    for field in fields:
        values = field_values(audit, field)
        documents = np.flatnonzero(values.is_duplicated().to_numpy())
        n_values = values.gather(documents).n_unique()
        is_systematic = len(documents) >= MIN_DOCUMENTS * len(values) and n_values >= MIN_VALUES
        if is_systematic and (best is None or len(documents) > len(best.documents)):
            best = _RepeatedField(field, documents, n_values)
    return best


def _pairs_with_rare_words(audit: AuditContext) -> _Pairs:
    """Pairs that share enough rare words, each of which weighs log(documents / documents with
    it)."""
    counts = audit.train.counts
    n = counts.n_documents
    documents = counts.present[: audit.n_words].sum(axis=1)
    rare = _rare_words(documents, n)
    present = sp.csr_array(counts.matrix[:, rare], dtype=np.float64)  # a copy
    present.data[:] = 1
    weighted = sp.csr_array(present * np.sqrt(np.log(n / documents[rare])))
    shared = sp.coo_array(weighted @ weighted.T)
    evidence = np.asarray(weighted.power(2).sum(axis=1)).ravel()
    first, second = shared.coords
    needed = np.maximum(
        MIN_SHARED_RARE_WORDS * np.log(n / MAX_RARE_DOCUMENTS),
        MIN_SHARED_FRACTION * np.minimum(evidence[first], evidence[second]),
    )
    is_pair = (first < second) & (shared.data >= needed)
    return _Pairs(
        first=first[is_pair].astype(np.int64),
        second=second[is_pair].astype(np.int64),
        rare=rare,
        present=present,
    )


def _rare_words(documents: Ints, n: int) -> Ints:
    """The word types that are rare among n documents, rarest first, and few enough to pair."""
    is_rare = (documents > 1) & (documents <= max(MAX_RARE_DOCUMENTS, MAX_RARE_FRACTION * n))
    rare = np.flatnonzero(is_rare)
    rare = rare[np.argsort(documents[rare], kind="stable")]
    n_pairs = np.cumsum(documents[rare].astype(np.float64) ** 2)
    return rare[n_pairs <= MAX_PAIRS]


def _agreement_by_other_words(pairs: _Pairs, documents: Ints, audit: AuditContext) -> float:
    """The fraction of pairs that a model expects to share a label, judged by their words that are
    not rare."""
    ordinary = audit.train.counts.rows(documents).matrix.copy()
    ordinary.data[np.isin(ordinary.indices, pairs.rare)] = 0
    ordinary.eliminate_zeros()
    chances = probabilities(audit.learned.model.logits(ordinary))
    first = chances[np.searchsorted(documents, pairs.first)]
    second = chances[np.searchsorted(documents, pairs.second)]
    return float((first * second).sum(axis=1).mean())


def _agreement_by_single_words(pairs: _Pairs, counts: Counts) -> float:
    """The fraction of pairs that would share a label if each of their rare words told it by itself.

    How much a word tells is measured on documents of different groups that share one: names of
    diseases are what diagnoses are about, and say so whoever writes them. The log-odds of words
    add up.
    """
    chance = logit(np.square(counts.class_sizes / counts.n_documents).sum())
    evidence_of_word = logit(_agreement_between_groups(pairs, counts).low) - chance
    shared_words = pairs.present[pairs.first].multiply(pairs.present[pairs.second])
    n_shared = shared_words.sum(axis=1)
    return float(expit(chance + n_shared * evidence_of_word).mean())


def _agreement_between_groups(pairs: _Pairs, counts: Counts) -> Share:
    """The fraction of pairs of documents from different groups that share a label, among those that
    share one rare word."""
    group = _linked_groups(pairs, counts.n_documents)
    n_shared = sp.coo_array(sp.triu(pairs.present @ pairs.present.T, 1))
    first, second = n_shared.coords
    is_between_groups = (n_shared.data == 1) & (group[first] != group[second])
    first_label = counts.labels[first[is_between_groups]]
    second_label = counts.labels[second[is_between_groups]]
    return Share.count(int((first_label == second_label).sum()), len(first_label))


def _linked_groups(pairs: _Pairs, n: int) -> Ints:
    """The connected component of each of n documents, with the pairs as links, shape (n,)."""
    links = sp.coo_array((np.ones(len(pairs.first)), (pairs.first, pairs.second)), shape=(n, n))
    _, group = connected_components(links, directed=False)
    return np.asarray(group)


def _shared_tokens(pairs: _Pairs, counts: Counts) -> tuple[str, ...]:
    """Rare words that the two documents of the first pair share."""
    first = pairs.present[[pairs.first[0]]].toarray()
    second = pairs.present[[pairs.second[0]]].toarray()
    places = np.flatnonzero(first * second)
    return tuple(str(counts.tokens[s]) for s in pairs.rare[places][:MAX_TOKENS])
