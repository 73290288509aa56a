"""Tokens that predict the label in some environments and not in others."""

from __future__ import annotations

import numpy as np

from tokensieve.auditing.checks.api import AuditContext, Check, Findings, Share
from tokensieve.auditing.environments import environment_effects
from tokensieve.auditing.phrases import quoted
from tokensieve.escape import for_display
from tokensieve.evidence.intervals import LEVEL
from tokensieve.task.agreement import FLOOR
from tokensieve.wording import count, percent


class Unstable(Check):
    """Tokens that mislead outside the environment in which they predict the label."""

    name = "unstable"
    title = "Unstable tokens"
    about = (
        "Tokens that predict the label in some environments (--environments) and fail to predict it, or predict the opposite, in "
        "others. The association differs between environments by at least 0.3 (q < 0.05)."
    )
    action = "Do not rely on these tokens outside the environment in which they predict the label."
    coverage = 0.01  # of the documents of an environment of mean size: rarer tokens are no finding
    apart = 0.3  # between the largest and the smallest lean (effect in units of its reach)
    listed = 50
    weight = 0.5  # such a token misleads in some environments only

    def find(self, data: AuditContext) -> Findings:
        environments = environment_effects(data)
        if environments is None:
            return
        found = environments.effects
        overall, train = data.importance, data.train
        leans = np.stack([x.lean for x in found.within if x is not None])
        predicts = np.stack([x.q_value < LEVEL for x in found.within if x is not None])
        least = max(FLOOR, self.coverage * data.class_sizes.sum() / max(len(found.names), 1))
        chosen = found.stability == "unstable"
        chosen &= predicts.any(axis=0) & (overall.documents >= least)[:, None]
        chosen &= leans.max(axis=0) - leans.min(axis=0) >= self.apart
        if not chosen.any():
            return
        types, classes = np.nonzero(chosen)
        most = leans.max(axis=0)[
            types, classes
        ]  # of two classes the one that it predicts where it predicts
        order = np.lexsort((-most, types, -found.q_statistic[types, classes].round(6)))
        tokens = tuple(dict.fromkeys(str(overall.tokens[s]) for s in types[order]))[: self.listed]
        first, k = int(types[order[0]]), int(classes[order[0]])
        held = train.counts.holders(np.array([first]))[0]
        usable = [
            (name, x) for name, x in zip(found.names, found.within, strict=True) if x is not None
        ]
        ends = dict.fromkeys(
            (int(np.argmax(leans[:, first, k])), int(np.argmin(leans[:, first, k])))
        )
        evidence = {
            name: Share.count(int(x.class_documents[first, k]), int(x.documents[first]))
            for name, x in (usable[e] for e in ends)
        }
        noun = "documents" if data.task.classifies else "answers"
        places = [
            f"{percent(share.value, 0)} of {noun} containing it in {for_display(name, 30)}"
            for name, share in evidence.items()
        ]
        label, others = train.counts.classes[k], len(tokens) - 1
        vary = "s also vary" if others > 1 else " also varies"
        also = f"; {count(others)} more token{vary} between environments" * bool(others)
        whole = Share.count(int(overall.documents[first]), int(data.class_sizes.sum()))
        yield self.finding(
            data,
            self.weight * whole.value,
            f"{quoted(tokens[:1])} predicts the label differently in different environments: {' but only '.join(places)} "
            f"are {for_display(label, 40)}{also}",
            held,
            n_documents=whole.found,
            label=label,
            tokens=tokens,
            evidence={"documents": whole} | evidence,
            rows=train.corpus.rows_of(held, token=tokens[0]),
            examples=(),
            details=(f"{whole.as_counts} {noun} contain {quoted(tokens[:1])}",),
        )
