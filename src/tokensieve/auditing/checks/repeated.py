"""Training documents that repeat one another."""

from __future__ import annotations

import numpy as np

from tokensieve.arrays import Ints
from tokensieve.auditing.checks.api import (
    MAX_EXAMPLES,
    AuditContext,
    Check,
    ConcernedDocuments,
    Findings,
    Labels,
    Share,
)
from tokensieve.auditing.copies import originals, removal_advice, text_fields
from tokensieve.wording import percent, plural, verb

MIN_FRACTION = 0.01  # of the training documents
MIN_FIELDS_OF_CONTRASTS = 2  # of texts: one is shared, and the other one differs
MOST = 0.5
WEIGHT = 0.3  # of a document whose prediction is in doubt: a copy is usually predicted correctly


class Repeated(Check):
    """Copies: if each counts as separate evidence, chance differences look significant."""

    name = "repeated"
    title = "Repeated texts"
    about = (
        "Training documents that repeat or nearly repeat an earlier one in every text field, if "
        "these make up at least 1% and no groups were given."
    )
    action = (
        "Copies are not independent evidence. --duplicates=drop removes exact copies; remove near "
        "copies by hand, or keep them together with --by COLUMN if a column tells which documents "
        "belong together."
    )
    tasks = (Labels,)
    descriptive = True

    def find(self, audit: AuditContext) -> Findings:
        repeated = originals(audit)
        corpus = audit.train.corpus
        if repeated is None or corpus.groups is not None:
            return
        first = repeated[: len(corpus.texts)]
        repeats = _without_contrasts(audit, np.flatnonzero(first >= 0), first)
        n_repeats = audit.total("repeated", len(repeats))
        share = Share.count(n_repeats, int(audit.class_sizes.sum()))
        if share.value < MIN_FRACTION:
            return
        has_other_label = corpus.labels[repeats] != corpus.labels[first[repeats]]
        is_sample = bool(audit.task.known_totals)
        n_other_label = 0 if is_sample else int(has_other_label.sum())
        n_exact = int((~corpus.keys.is_first_distinct()).sum())
        advice = removal_advice(audit, n_exact, max(len(repeats) - n_exact, 0))
        other_labels_first = repeats[np.argsort(~has_other_label, kind="stable")]
        yield self.finding(
            audit,
            severity=WEIGHT * share.value,
            headline=_headline(share, n_other_label),
            documents=ConcernedDocuments(
                repeats,
                total=n_repeats,
                examples=[audit.excerpt(i) for i in _with_originals(other_labels_first, first)],
            ),
            evidence={"documents": share},
            details=(
                f"{share.as_counts} training documents {verb(n_repeats, 'repeat')} an earlier one, "
                "word for word or nearly",
            ),
            action=f"Copies are not independent evidence. {advice}",
        )


def _without_contrasts(audit: AuditContext, repeats: Ints, first: Ints) -> Ints:
    """The repeats without near copies that were written to differ, as one premise has hypotheses.

    Copies share their label. Where most near copies of texts in several fields have another one,
    the word in which they differ is what the label is about.
    """
    corpus = audit.train.corpus
    if len(text_fields(audit)) < MIN_FIELDS_OF_CONTRASTS:
        return repeats
    keys = corpus.keys.to_numpy()
    is_exact = keys[repeats] == keys[first[repeats]]
    near = repeats[~is_exact]
    has_other_label = corpus.labels[near] != corpus.labels[first[near]]
    if not len(near) or has_other_label.mean() <= MOST:
        return repeats
    exact: Ints = repeats[is_exact]
    return exact


def _with_originals(repeats: Ints, first: Ints) -> list[int]:
    """Rows of the first repeats, each after the document that it repeats; none twice."""
    rows: list[int] = []
    for document in repeats[:MAX_EXAMPLES].tolist():
        rows += [int(first[document]), document]
    return list(dict.fromkeys(rows))[:MAX_EXAMPLES]


def _headline(share: Share, n_other_label: int) -> str:
    """A sentence with the number of documents that repeat an earlier one, and of those with another
    label."""
    repeat = verb(share.found, "repeat")
    headline = (
        f"{plural(share.found, 'training document')} ({percent(share.value)}) {repeat} or nearly "
        f"{repeat} an earlier one"
    )
    if not n_other_label:
        return headline
    have = verb(n_other_label, "have", "has")
    return f"{headline}; {n_other_label:,} of them {have} a different label"
