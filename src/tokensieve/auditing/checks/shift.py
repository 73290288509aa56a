"""Formatting that differs between classes without giving the label away."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tokensieve.arrays import Floats, Ints
from tokensieve.auditing.checks.api import (
    AuditContext,
    Check,
    ConcernedDocuments,
    Finding,
    Findings,
    Labels,
    Share,
)
from tokensieve.auditing.phrases import form_clause, is_unspecific, of_class
from tokensieve.wording import percent, plural, verb

MIN_DIFFERENCE = 0.03  # of the fractions of documents in a class and in the others
MAX_Q_VALUE = 0.001  # of the difference
MAX_CLASSES = 8  # with a finding each: those whose formatting differs most
MAX_DETAILS = 5
NEARLY_AS_STRONG = 0.8  # of the strongest feature: a clearer name is worth a fifth of it
WEIGHT = 0.01  # of the difference: it decides nothing


@dataclass(frozen=True, eq=False)
class _Features:
    """How frequent formatting features are in and outside each class.

    Attributes:
        types: their places among the token types, shape (m,).
        inside: documents of each class that have the feature, shape (m, K).
        outside_rate: fraction of the documents of other classes that have it, shape (m, K).
        difference: fraction inside minus fraction outside, shape (m, K).
        strength: the difference in standard deviations; 0 if it is small or not significant.
    """

    types: Ints
    inside: Ints
    outside_rate: Floats
    difference: Floats
    strength: Floats


class Shift(Check):
    """A trailing mark in a tenth of one class is worth a look even where other classes have it
    too."""

    name = "shift"
    title = "Formatting differs between classes"
    about = (
        "Formatting (apart from length) that is at least 3 points more frequent in a class than in "
        "the others, with q < 0.001; one finding for each of the eight classes that differ most."
    )
    action = (
        "Look at the documents: a source, a form or an editor may have left this mark. If it is an "
        "artefact of data collection, clean the texts, or ignore formatting with --no-formatting."
    )
    tasks = (Labels,)
    descriptive = True
    signs = ("formatting",)
    yields_to = ("shortcut",)

    def find(self, audit: AuditContext) -> Findings:
        features = _features(audit)
        strongest = features.strength.max(axis=0, initial=0)
        for label in np.argsort(-strongest, kind="stable")[:MAX_CLASSES].tolist():
            if strongest[label] == 0:
                return
            yield self._of_class(audit, features, label)

    def _named_first(
        self, rows: list[int], features: _Features, label: int, audit: AuditContext
    ) -> list[int]:
        """Puts a feature first that names a thing ("HTML tag"), if it is nearly as strong as the
        strongest, which may only say that there is a symbol."""
        strongest = features.strength[rows[0], label]
        for row in rows:
            is_strong = features.strength[row, label] >= NEARLY_AS_STRONG * strongest
            if is_strong and not is_unspecific(str(audit.train.counts.tokens[features.types[row]])):
                return [row, *(type_row for type_row in rows if type_row != row)]
        return rows

    def _of_class(self, audit: AuditContext, features: _Features, label: int) -> Finding:
        """The features of one class, strongest first."""
        order = np.argsort(-features.strength[:, label], kind="stable")
        rows = [row for row in order.tolist() if features.strength[row, label] > 0]
        rows = self._named_first(rows, features, label, audit)
        class_name = audit.class_names[label]
        names = [str(audit.train.counts.tokens[features.types[row]]) for row in rows]
        sentences = [
            _rates(
                class_name, name, features.difference[row, label], features.outside_rate[row, label]
            )
            for row, name in zip(rows, names, strict=True)
        ]
        headline = sentences[0]
        n_more = len(rows) - 1
        if n_more:
            differ = verb(n_more, "differ")
            headline += f"; {plural(n_more, 'other feature')} also {differ}"
        holders = audit.train.counts.holders(features.types[rows[:1]])[0]
        n_inside = int(features.inside[rows[0], label])
        share = Share.count(n_inside, int(audit.class_sizes[label]))
        return self.finding(
            audit,
            severity=WEIGHT * features.difference[rows[0], label],
            headline=headline,
            documents=ConcernedDocuments(
                holders[audit.train.counts.labels[holders] == label], total=share.found
            ),
            label=class_name,
            tokens=names,
            evidence={"class": share},
            details=sentences[1 : MAX_DETAILS + 1],
        )


def _features(audit: AuditContext) -> _Features:
    """All formatting features apart from length."""
    importance = audit.importance
    sizes = audit.class_sizes
    n_documents = int(sizes.sum())
    types = _formatting_types(audit)
    class_documents = importance.class_documents[types]
    documents = importance.documents[types, None]
    outside_rate = (documents - class_documents) / np.maximum(n_documents - sizes, 1)
    difference = class_documents / np.maximum(sizes, 1) - outside_rate
    # 10% against 1% is more of a mark than 60% against 45%
    rate = documents / n_documents
    deviation = np.sqrt(np.maximum(rate * (1 - rate), 1 / n_documents**2))
    strength = difference / deviation
    is_weak = (importance.q_value[types] >= MAX_Q_VALUE) | (difference < MIN_DIFFERENCE)
    strength[is_weak] = 0
    return _Features(types, class_documents, outside_rate, difference, strength)


def _formatting_types(audit: AuditContext) -> Ints:
    names = audit.train.counts.tokens
    formatting = range(audit.n_words, len(names))
    return np.array([s for s in formatting if "⟨length " not in str(names[s])], dtype=np.int64)


def _rates(label: str, token: str, difference: float, outside_rate: float) -> str:
    """A clause that compares the rate of a feature in one class with that in the others."""
    class_rate = f"{percent(outside_rate + difference)} of {of_class(label, 'documents')}"
    return f"{class_rate} {form_clause(token)} ({percent(outside_rate)} of the others)"
