"""A class that is much smaller than the others."""

from __future__ import annotations

import numpy as np

from tokensieve.auditing.checks.api import AuditContext, Check, Findings, Labels, Share
from tokensieve.escape import for_display
from tokensieve.wording import percent, plural


class Imbalance(Check):
    """A class with too few documents to learn it, or to judge how well it was learned."""

    name = "imbalance"
    title = "Small classes"
    about = "The smallest class has fewer than 20 training documents, or at most a tenth as many as the largest."
    action = (
        "Collect more documents of this class, merge it with another, or judge the model by the recall of this class instead of "
        "the accuracy."
    )
    tasks = (Labels,)
    descriptive = True
    few = 20  # no accuracy can be judged from fewer
    unequal = 10  # times the smallest class

    def find(self, data: AuditContext) -> Findings:
        train = data.train.corpus
        sizes = data.class_sizes
        least = int(np.argmin(sizes))
        tiny = bool(sizes[least] < self.few)
        if not tiny and sizes.max() < self.unequal * sizes[least]:
            return
        share, label = Share.count(int(sizes[least]), int(sizes.sum())), train.classes[least]
        name = (
            for_display(label, 40) if label[:1].isalpha() else f"class “{for_display(label, 40)}”"
        )
        size, small = plural(int(sizes[least]), "training document"), int((sizes < self.few).sum())
        headline = f"Class {for_display(label, 40)} has only {size} ({percent(share.value)})"
        if small > 1:
            which = (
                f"{small} of {len(sizes)}"
                if small < len(sizes)
                else "Both"
                if small == 2
                else f"All {small}"
            )
            headline = f"{which} classes have fewer than {self.few} training documents"
            headline += f"; {name} has the fewest ({int(sizes[least]):,})"
        yield self.finding(
            data,
            # of the predictions of other classes it says nothing
            float(np.clip(0.3 * sizes[sizes < self.few].sum() / sizes.sum(), 0.005, 0.045)),
            headline,
            np.flatnonzero(train.labels == least),
            n_documents=int(sizes[least]),
            label=label,
            evidence={"class": share},
            examples=(),
        )
