"""Formatting that differs between classes without giving the label away."""

from __future__ import annotations

import numpy as np

from tokensieve.auditing.checks.base import AuditData, Check, Findings, Labels, Share
from tokensieve.auditing.findings import form_clause
from tokensieve.text.counts import Counts
from tokensieve.wording import count, percent


class Shift(Check):
    """A trailing mark in a tenth of one class is worth a look even where other classes have it too."""

    name = "shift"
    title = "Formatting differs between classes"
    about = (
        "Formatting (apart from length) that is at least 3 points more frequent in a class than in the others, with "
        "q < 0.001."
    )
    action = (
        "Look at the documents: a source, a form or an editor may have left this mark. If it is an artefact of data "
        "collection, clean the texts, or ignore formatting with --no-formatting."
    )
    tasks = (Labels,)
    apart, sure = 0.03, 0.001
    weight = 0.01  # of the difference: it decides nothing

    def find(self, data: AuditData) -> Findings:
        train, found, sizes = data.train.counts, data.importance, data.class_sizes
        rows: list[tuple[float, float, int, int]] = []  # difference, rate elsewhere, type, class
        for s in range(data.words, train.n_types):
            inside = found.class_documents[s]
            outside = (found.documents[s] - inside) / np.maximum(sizes.sum() - sizes, 1)
            apart = inside / np.maximum(sizes, 1) - outside
            chosen = (found.q_value[s] < self.sure) & (apart >= self.apart) & ("⟨length " not in str(train.tokens[s]))
            rows += [(float(apart[k]), float(outside[k]), s, k) for k in np.flatnonzero(chosen).tolist()]
        rows.sort(key=lambda row: -row[0])
        if not rows:
            return
        difference, _, s, k = rows[0]
        label = train.classes[k]
        inside_share = Share.count(int(found.class_documents[s][k]), int(sizes[k]))
        held = train.holders(np.array([s]))[0]
        held = held[train.labels[held] == k]
        tokens = tuple(dict.fromkeys(str(train.tokens[row[2]]) for row in rows))
        more = len(tokens) - 1
        others = f"; {count(more, 'other feature')} also differ{'s' * (more == 1)}" if more else ""
        yield self.finding(
            data,
            self.weight * difference,
            f"{_rates(train, *rows[0])}{others}",
            held,
            inside_share.found,
            label=label,
            tokens=tokens,
            signs=("formatting",),
            evidence={"class": inside_share},
            details=tuple(_rates(train, *row) for row in rows[1:6]),
        )


def _rates(train: Counts, apart: float, outside: float, s: int, k: int) -> str:
    """How often a class has a feature, and the others."""
    own = f"{percent(outside + apart)} of {Check.are(train.classes[k], 'documents')}"
    return f"{own} {form_clause(str(train.tokens[s]))} ({percent(outside)} of the others)"
