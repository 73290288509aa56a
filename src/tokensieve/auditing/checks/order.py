"""Pairs of words whose order or joint presence predicts the label: what no single word shows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tokensieve.arrays import Ints
from tokensieve.auditing.artefacts.use import SearchedTexts
from tokensieve.auditing.checks.api import (
    AuditContext,
    Check,
    ConcernedDocuments,
    Findings,
    Labels,
    Share,
    computed_once,
)
from tokensieve.auditing.checks.shortcut import searched_texts
from tokensieve.auditing.phrases import of_class
from tokensieve.escape import IN_SENTENCE, for_display
from tokensieve.evidence.order import (
    WINDOW,
    Pair,
    WordRuns,
    documents_with_both,
    largest_vocabulary,
    predictive_pairs,
)
from tokensieve.text.excerpts import Excerpt
from tokensieve.wording import percent, plural

MAX_LISTED = 8  # pairs in the details
WEIGHT = 0.2  # of the documents: the order of words is mostly how the subject is written
TITLE_OF_JOINT_PAIRS = "Two words together predict the label"
EXAMPLES_EACH = 2  # with the pair, and without it, side by side


class Order(Check):
    """For example "not … good", or a source that always writes two words in one order."""

    name = "order"
    title = "Word order predicts the label"
    about = (
        f"Pairs of frequent words: one before the other within {WINDOW} words predicts a class "
        "among the documents that contain both, or both together predict what neither does alone "
        "(false discovery rate 1%, at least a fifth of the way to certain). Pairs that a phrase "
        "explains are left out."
    )
    action = (
        "A model that reads words in order can use this, and no list of words shows it. Compare "
        "the two contexts: is this how the subject is written, or how one source writes? "
        "If it is a source, balance the sources or leave one out."
    )
    tasks = (Labels,)
    descriptive = True
    signs = ("order",)

    def find(self, audit: AuditContext) -> Findings:
        pairs = pairs_of(audit)
        if not pairs:
            return
        first = pairs[0]
        searched = searched_texts(audit)
        n_all = len(searched.documents)
        decides = Share.count(first.n_of_class, len(first.documents))
        label = audit.class_names[first.label]
        lift = max(0.0, decides.low - first.rate_of_others)
        headline = sentence(first, label)
        if len(pairs) > 1:
            headline += f"; {plural(len(pairs) - 1, 'more pair')} like it"
        documents = searched.documents[first.documents]
        finding = self.finding(
            audit,
            severity=WEIGHT * len(documents) / n_all * lift**2,
            headline=headline,
            documents=ConcernedDocuments(documents, examples=side_by_side(audit, searched, first)),
            label=label,
            tokens=(f"{first.first} {first.second}",),
            evidence={
                "documents": Share.count(len(documents), n_all),
                "decides": decides,
                "others": Share.count(first.n_others_of_class, first.n_others),
            },
            details=[sentence(pair, audit.class_names[pair.label]) for pair in pairs[1:MAX_LISTED]],
        )
        if first.kind == "order":
            yield finding
        else:
            yield replace(finding, title=TITLE_OF_JOINT_PAIRS)


@computed_once
def pairs_of(audit: AuditContext) -> list[Pair]:
    """The predictive pairs of the training texts that are searched."""
    return predictive_pairs(word_runs(searched_texts(audit)))


def word_runs(searched: SearchedTexts) -> WordRuns:
    """The texts as runs of their most frequent words."""
    use = searched.use
    counts = use.counts
    n_words = largest_vocabulary(counts.n_classes)
    frequent = np.argsort(-counts.present.sum(axis=1), kind="stable")[:n_words]
    words = [str(counts.tokens[word_type]) for word_type in frequent.tolist()]
    place = {word: i for i, word in enumerate(words)}
    places = [place.get(word, -1) for word in use.order.spellings]
    place_of_spelling = np.array([*places, -1], dtype=np.int32)
    starts = np.flatnonzero(use.order.ids == use.order.start_mark)
    return WordRuns(
        ids=place_of_spelling[use.order.spelled],
        starts=np.append(starts, len(use.order.ids)),
        documents=use.order.documents[starts].astype(np.int64),
        words=words,
        labels=counts.labels,
        n_classes=counts.n_classes,
    )


def sentence(pair: Pair, label: str) -> str:
    """A sentence on how often each order of two words has the label; no full stop."""
    first = for_display(pair.first, IN_SENTENCE)
    second = for_display(pair.second, IN_SENTENCE)
    rate = f"{percent(pair.rate, 0)} are {of_class(label)}"
    rate_elsewhere = percent(pair.rate_of_others, 0)
    documents = plural(len(pair.documents), "document")
    if pair.kind == "order":
        return (
            f"Of {documents} with “{first}” up to {WINDOW} words before “{second}”, {rate}; of the "
            f"other documents with both words, {rate_elsewhere}"
        )
    return (
        f"Of {documents} with both “{first}” and “{second}”, {rate}; of those with only one, "
        f"{rate_elsewhere}"
    )


def side_by_side(audit: AuditContext, searched: SearchedTexts, pair: Pair) -> list[Excerpt]:
    """Documents of the class with the pair, and other documents with both words, in turn."""
    runs = word_runs(searched)
    first = runs.words.index(pair.first)
    second = runs.words.index(pair.second)
    labels = searched.use.counts.labels
    examples = pair.documents[labels[pair.documents] == pair.label][:EXAMPLES_EACH]
    counterexamples = np.setdiff1d(documents_with_both(runs, first, second), pair.documents)
    counterexamples = counterexamples[labels[counterexamples] != pair.label][:EXAMPLES_EACH]
    documents = interleaved(examples, counterexamples)
    corpus = audit.train.corpus
    return [
        Excerpt.of(corpus, int(searched.documents[document]), (pair.first,), audit.tokenizer)
        for document in documents
    ]


def interleaved(own: Ints, others: Ints) -> list[int]:
    """One of each in turn."""
    in_turn = []
    for place in range(max(len(own), len(others))):
        in_turn += own[place : place + 1].tolist()
        in_turn += others[place : place + 1].tolist()
    return in_turn
