"""Names and codes that are linked to a class, without deciding it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tokensieve.arrays import Ints
from tokensieve.auditing.artefacts.neighbours import stands_in_fixed_phrase
from tokensieve.auditing.artefacts.traits import joined_fraction, joined_fractions
from tokensieve.auditing.checks.api import (
    AuditContext,
    Check,
    ConcernedDocuments,
    Findings,
    Labels,
    Share,
    computed_once,
)
from tokensieve.auditing.checks.shortcut import Shortcut, artefact_search, searched_texts
from tokensieve.auditing.copies import without_copies
from tokensieve.auditing.phrases import of_class, quoted
from tokensieve.wording import percent, plural, verb

MIN_DOCUMENTS = 20
MAX_Q_VALUE = 0.001  # of the link to the class
MIN_LIFT = 1.5  # how many times as likely the class is
# from here on a token nearly decides the class, and the check of shortcuts looks at it
MAX_RATE = 0.8
MAX_LOOKED_INTO = 60  # the most significant ones
WEIGHT = 0.1  # it decides nothing
JOINED = 0.8  # of a token's texts where it is part of a code, an address or markup
USUALLY_JOINED = 0.15  # of frequent words; from there on, as in program code, it means nothing
N_FREQUENT = 80  # words that show what is usual


@dataclass(frozen=True, eq=False)
class _Link:
    """A token that makes a class more likely.

    Attributes:
        token: its name.
        type: its place among the token types.
        label: the class.
        documents: training documents that contain it.
        is_value: whether it is a value of another column.
    """

    token: str
    type: int
    label: int
    documents: Ints
    is_value: bool


class Association(Check):
    """For example, the agent's name at the end of every ticket, which shows who replied but not
    what the ticket was about."""

    name = "association"
    title = "Name or code linked to a class"
    about = (
        "Tokens in at least 20 documents that are part of a code, an address or a fixed phrase at "
        "the start or end of the text, or values of another column, and make one class at least "
        "1.5 times as likely (q < 0.001), but not nearly certain."
    )
    action = (
        "Find out why it is associated with the label (author, system, date). Mask it if the "
        "association will not hold where your model is used."
    )
    action_on_values = Shortcut.action_on_values
    tasks = (Labels,)
    yields_to = ("shortcut",)
    exploitable = True

    def find(self, audit: AuditContext) -> Findings:
        links = _links(audit)
        if not links:
            return
        first = links[0]
        label = audit.class_names[first.label]
        base = audit.class_sizes[first.label] / audit.class_sizes.sum()
        importance = audit.importance
        in_class = Share.count(
            int(importance.class_documents[first.type, first.label]),
            int(importance.documents[first.type]),
        )
        headline = (
            f"{percent(in_class.value, 0)} of documents containing {quoted([first.token])} are "
            f"{of_class(label)} ({percent(base, 0)} overall)"
        )
        if len(links) > 1:
            n_more = len(links) - 1
            linked = verb(n_more, "are", "is")
            headline += f"; {plural(n_more, 'more token')} {linked} linked to a class"
        origin = (
            "a value of another column" if first.is_value else "part of a code or a fixed phrase"
        )
        yield self.finding(
            audit,
            severity=WEIGHT * in_class.of / audit.class_sizes.sum() * (in_class.low - base),
            headline=headline,
            documents=ConcernedDocuments(first.documents, total=in_class.of),
            label=label,
            tokens=list(dict.fromkeys(link.token for link in links)),
            evidence={
                "decides": in_class,
                "base": Share.count(
                    int(audit.class_sizes[first.label]), int(audit.class_sizes.sum())
                ),
            },
            details=(
                f"{in_class.as_counts} documents containing {quoted([first.token])} are "
                f"{of_class(label)}: {in_class}",
                f"it is {origin}",
            ),
            action=self.action_on_values if first.is_value else self.action,
        )


def _links(audit: AuditContext) -> list[_Link]:
    """The tokens with a sign of an artefact that are linked to a class, most significant first."""
    types, labels = _linked_types(audit)
    counts = audit.train.counts
    links = []
    for s, label, documents in zip(types, labels, counts.holders(types), strict=True):
        name = str(counts.tokens[s])
        is_value = audit.fields is not None and audit.fields.is_value(name)
        if len(without_copies(audit, documents)) < MIN_DOCUMENTS:
            continue
        if is_value or is_name_or_code(audit, name, documents):
            links.append(_Link(name, int(s), int(label), documents, is_value))
    return links


def _linked_types(audit: AuditContext) -> tuple[Ints, Ints]:
    """The words that make a class likely, and that class, most significant first."""
    importance = audit.importance
    n_words = audit.n_words
    documents = importance.documents[:n_words, None]
    rate = importance.class_documents[:n_words] / np.maximum(documents, 1)
    base = audit.class_sizes / audit.class_sizes.sum()
    is_linked = (
        (importance.q_value[:n_words] < MAX_Q_VALUE)
        & (importance.effect[:n_words] > 0)
        & (documents >= MIN_DOCUMENTS)
        & (rate >= MIN_LIFT * base)
        & (rate < MAX_RATE)
    )
    types, labels = np.nonzero(is_linked)
    order = np.argsort(importance.p_value[types, labels], kind="stable")[:MAX_LOOKED_INTO]
    return types[order], labels[order]


def is_name_or_code(audit: AuditContext, token: str, documents: Ints) -> bool:
    """Whether a token is part of a code, an address, or a fixed phrase at an edge of its texts."""
    words = tuple(token.split(" "))
    if stands_in_fixed_phrase(artefact_search(audit).use.order, words):
        return True
    texts = audit.train.corpus.texts
    return joined_fraction(texts, words, documents) >= JOINED and not is_usually_joined(audit)


@computed_once
def is_usually_joined(audit: AuditContext) -> bool:
    """Whether frequent words of these texts are joined to others, as in program code."""
    searched = searched_texts(audit)
    counts = searched.use.counts
    frequent = np.argsort(-counts.present.sum(axis=1), kind="stable")[:N_FREQUENT]
    words = [(str(counts.tokens[word_type]),) for word_type in frequent.tolist()]
    fractions = joined_fractions(searched.texts, words, counts.holders(frequent))
    return bool(np.mean(fractions >= JOINED) > USUALLY_JOINED)
