"""Training documents that repeat one another."""

from __future__ import annotations

import numpy as np

from tokensieve.auditing.checks.api import (
    MAX_EXAMPLES,
    AuditContext,
    Check,
    Findings,
    Labels,
    Share,
)
from tokensieve.auditing.copies import near_duplicates, removal_advice
from tokensieve.wording import percent, plural, verb


class Repeated(Check):
    """Copies: if each counts as separate evidence, chance differences look significant."""

    name = "repeated"
    title = "Repeated texts"
    about = "Training documents that repeat or nearly repeat an earlier one, if these make up at least 1% and no groups were given."
    action = (
        "Copies are not independent evidence. --duplicates=drop removes exact copies; remove near copies by hand, or keep them "
        "together with --by COLUMN if a column tells which documents belong together."
    )
    tasks = (Labels,)
    descriptive = True
    least = 0.01  # of the training documents
    weight = 0.3  # of a document whose prediction is in doubt: a copy is usually right

    def find(self, data: AuditContext) -> Findings:
        near = near_duplicates(data)
        if near is None or data.train.corpus.groups is not None:
            return
        n = len(data.train.corpus.texts)
        again = np.flatnonzero(near[:n] != np.arange(n))
        share = Share.count(data.total("repeated", len(again)), int(data.class_sizes.sum()))
        if share.value < self.least:
            return
        labels = data.train.corpus.labels
        differ = int(np.count_nonzero(labels[again] != labels[near[again]]))
        opposed = f"; {differ:,} of them {verb(differ, 'have', 'has')} a different label"
        exact = int((~data.train.corpus.keys.is_first_distinct()).sum())
        advice = removal_advice(data, exact, max(len(again) - exact, 0))
        both = list(
            dict.fromkeys(i for k in again[:MAX_EXAMPLES].tolist() for i in (int(near[k]), k))
        )
        repeat = verb(share.found, "repeat")
        yield self.finding(
            data,
            self.weight * share.value,
            f"{plural(share.found, 'training document')} ({percent(share.value)}) {repeat} or nearly {repeat} an earlier one"
            + opposed * (differ > 0 and not data.task.known_totals),
            again,
            n_documents=share.found,
            evidence={"documents": share},
            examples=tuple(data.excerpt(i) for i in both[:MAX_EXAMPLES]),
            details=(
                f"{share.as_counts} training documents {repeat} an earlier one, word for word or nearly",
            ),
            action=f"Copies are not independent evidence. {advice}",
        )
