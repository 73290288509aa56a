"""A class that is much smaller than the others."""

from __future__ import annotations

import numpy as np

from tokensieve.arrays import Ints
from tokensieve.auditing.checks.api import (
    AuditContext,
    Check,
    ConcernedDocuments,
    Findings,
    Labels,
    Share,
)
from tokensieve.escape import IN_SENTENCE, for_display
from tokensieve.wording import percent, plural

MIN_DOCUMENTS = 20  # of fewer, a 95% interval of the class's recall is wider than ±20 points
MAX_RATIO = 10  # largest to smallest class; beyond it, accuracy says little about the smallest
SEVERITY_PER_FRACTION = 0.3  # documents of a small class are not all predicted wrongly
MIN_SEVERITY = 0.005  # listed after every finding that concerns more documents
MAX_SEVERITY = 0.045  # stays below "high": only the small classes are affected


class Imbalance(Check):
    """A class with too few documents to learn it, or to judge how well it was learned."""

    name = "imbalance"
    title = "Small classes"
    about = (
        f"The smallest class has fewer than {MIN_DOCUMENTS} training documents, or at most a tenth "
        "as many as the largest."
    )
    action = (
        "Collect more documents of this class, merge it with another, or judge the model by the "
        "recall of this class instead of the accuracy."
    )
    tasks = (Labels,)
    descriptive = True

    def find(self, audit: AuditContext) -> Findings:
        sizes = audit.class_sizes
        smallest = int(np.argmin(sizes))
        is_small = sizes < MIN_DOCUMENTS
        is_unequal = sizes.max() >= MAX_RATIO * sizes[smallest]
        if not is_small.any() and not is_unequal:
            return

        fraction_in_small_classes = sizes[is_small].sum() / sizes.sum()
        severity = SEVERITY_PER_FRACTION * fraction_in_small_classes
        yield self.finding(
            audit,
            severity=np.clip(severity, MIN_SEVERITY, MAX_SEVERITY),
            headline=_headline(sizes, audit.class_names[smallest]),
            documents=ConcernedDocuments(
                audit.train.corpus.labels == smallest, total=int(sizes[smallest]), examples=()
            ),
            label=audit.class_names[smallest],
            evidence={"class": Share.count(int(sizes[smallest]), int(sizes.sum()))},
        )


def _headline(sizes: Ints, smallest_class: str) -> str:
    """Says how small the smallest class is, or how many are small."""
    n_smallest = int(sizes.min())
    n_small_classes = int((sizes < MIN_DOCUMENTS).sum())
    name = for_display(smallest_class, IN_SENTENCE)
    if n_small_classes <= 1:
        documents = plural(n_smallest, "training document")
        return f"Class {name} has only {documents} ({percent(n_smallest / sizes.sum())})"

    if n_small_classes < len(sizes):
        subject = f"{n_small_classes} of {len(sizes)}"
    elif n_small_classes == 2:
        subject = "Both"
    else:
        subject = f"All {n_small_classes}"
    if not smallest_class[:1].isalpha():
        name = f"class “{name}”"
    return (
        f"{subject} classes have fewer than {MIN_DOCUMENTS} training documents; {name} has the "
        f"fewest ({n_smallest:,})"
    )
