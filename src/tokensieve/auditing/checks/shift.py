"""Formatting that differs between classes without giving the label away."""

from __future__ import annotations

import numpy as np

from tokensieve.auditing.checks.api import AuditContext, Check, Findings, Labels, Share
from tokensieve.auditing.phrases import form_clause, of_class
from tokensieve.wording import percent, plural, verb


class Shift(Check):
    """A trailing mark in a tenth of one class is worth a look even where other classes have it too."""

    name = "shift"
    title = "Formatting differs between classes"
    about = (
        "Formatting (apart from length) that is at least 3 points more frequent in a class than in the others, with "
        "q < 0.001; one finding for each of the eight classes that differ most."
    )
    action = (
        "Look at the documents: a source, a form or an editor may have left this mark. If it is an artefact of data "
        "collection, clean the texts, or ignore formatting with --no-formatting."
    )
    tasks = (Labels,)
    descriptive = True
    yields_to = ("shortcut",)
    apart, sure = 0.03, 0.001
    weight = 0.01  # of the difference: it decides nothing

    def find(self, data: AuditContext) -> Findings:
        train, found, sizes = data.train.counts, data.importance, data.class_sizes
        n, types = int(sizes.sum()), np.arange(data.n_words, train.n_types)
        types = types[["⟨length " not in name for name in train.tokens[types].astype(str).tolist()]]
        inside, documents = found.class_documents[types], found.documents[types, None]
        outside = (documents - inside) / np.maximum(n - sizes, 1)
        apart, rate = inside / np.maximum(sizes, 1) - outside, documents / n
        # in standard deviations: 10% against 1% is more of a mark than 60% against 45%
        strength = apart / np.sqrt(np.maximum(rate * (1 - rate), 1 / n**2))
        strength[(found.q_value[types] >= self.sure) | (apart < self.apart)] = 0
        for k in np.argsort(-strength.max(axis=0, initial=0), kind="stable")[:8].tolist():
            rows = [
                i for i in np.argsort(-strength[:, k], kind="stable").tolist() if strength[i, k] > 0
            ]
            if not rows:
                return
            label, names = train.classes[k], train.tokens[types[rows]].astype(str).tolist()
            rates = [
                _rates(label, name, apart[i, k], outside[i, k])
                for i, name in zip(rows, names, strict=True)
            ]
            held = train.holders(types[rows[:1]])[0]
            more = len(rows) - 1
            others = (
                f"; {plural(more, 'other feature')} also {verb(more, 'differ')}" if more else ""
            )
            share = Share.count(int(inside[rows[0], k]), int(sizes[k]))
            yield self.finding(
                data,
                self.weight * apart[rows[0], k],
                rates[0] + others,
                held[train.labels[held] == k],
                n_documents=share.found,
                label=label,
                tokens=tuple(names),
                signs=("formatting",),
                evidence={"class": share},
                details=tuple(rates[1:6]),
            )


def _rates(label: str, token: str, apart: float, outside: float) -> str:
    """How often a class has a feature, and the others."""
    own = f"{percent(outside + apart)} of {of_class(label, 'documents')}"
    return f"{own} {form_clause(token)} ({percent(outside)} of the others)"
