"""Tokens that predict the label in some environments and not in others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tokensieve.arrays import Floats, Ints
from tokensieve.auditing.checks.api import AuditContext, Check, ConcernedDocuments, Findings, Share
from tokensieve.auditing.environments import environment_effects
from tokensieve.auditing.phrases import quoted
from tokensieve.escape import IN_CELL, IN_SENTENCE, for_display
from tokensieve.evidence.environments import Environments
from tokensieve.evidence.intervals import LEVEL
from tokensieve.task.agreement import FLOOR
from tokensieve.wording import percent, plural

MIN_COVERAGE = 0.01  # of the documents of an environment of mean size; rarer tokens are ignored
MIN_DIFFERENCE = 0.3  # between the largest and the smallest lean (effect in units of its reach)
MAX_TOKENS = 50
WEIGHT = 0.5  # such a token misleads in some environments only


@dataclass(frozen=True, eq=False)
class _Unstable:
    """Types and classes whose association differs between environments, most clearly first.

    Attributes:
        types, classes: places, shape (m,).
        leans: by environment, type and class, shape (E, types, K), of the environments with an
            effect.
    """

    types: Ints
    classes: Ints
    leans: Floats


class Unstable(Check):
    """Tokens that mislead outside the environment in which they predict the label."""

    name = "unstable"
    title = "Unstable tokens"
    about = (
        "Tokens that predict the label in some environments (--environments) and fail to predict "
        "it, or predict the opposite, in others. The association differs between environments by "
        "at least 0.3 (q < 0.05)."
    )
    action = "Do not rely on these tokens outside the environment in which they predict the label."
    exploitable = True

    def find(self, audit: AuditContext) -> Findings:
        environments = environment_effects(audit)
        if environments is None:
            return
        unstable = _unstable(environments.effects, audit)
        if not len(unstable.types):
            return
        names = [str(audit.importance.tokens[s]) for s in unstable.types]
        tokens = list(dict.fromkeys(names))[:MAX_TOKENS]
        first = int(unstable.types[0])
        label = int(unstable.classes[0])
        extremes = _extreme_environments(environments.effects, unstable.leans, first, label)
        noun = "documents" if audit.task.classifies else "answers"
        coverage = Share.count(int(audit.importance.documents[first]), int(audit.class_sizes.sum()))
        holders = audit.train.counts.holders(np.array([first]))[0]
        yield self.finding(
            audit,
            severity=WEIGHT * coverage.value,
            headline=_headline(tokens, extremes, noun, audit.class_names[label]),
            documents=ConcernedDocuments(
                holders,
                total=coverage.found,
                rows=audit.train.corpus.rows_of(holders, token=tokens[0]),
                examples=(),
            ),
            label=audit.class_names[label],
            tokens=tokens,
            evidence={"documents": coverage} | extremes,
            details=(f"{coverage.as_counts} {noun} contain {quoted(tokens[:1])}",),
        )


def _headline(tokens: list[str], extremes: dict[str, Share], noun: str, label: str) -> str:
    """A sentence on the effect of the first token in two environments, and the number of other
    tokens that vary."""
    places = [
        f"{percent(share.value, 0)} of {noun} containing it in {for_display(name, IN_CELL)}"
        for name, share in extremes.items()
    ]
    headline = (
        f"{quoted(tokens[:1])} predicts the label differently in different environments: "
        f"{' but only '.join(places)} are {for_display(label, IN_SENTENCE)}"
    )
    n_more = len(tokens) - 1
    if not n_more:
        return headline
    vary = "also vary" if n_more > 1 else "also varies"
    return f"{headline}; {plural(n_more, 'more token')} {vary} between environments"


def _unstable(effects: Environments, audit: AuditContext) -> _Unstable:
    """The types that predict a class in some environment and clearly less in another."""
    measured = [effect for effect in effects.within if effect is not None]
    leans = np.stack([effect.lean for effect in measured])
    predicts_somewhere = np.stack([effect.q_value < LEVEL for effect in measured]).any(axis=0)
    mean_size = audit.class_sizes.sum() / max(len(effects.names), 1)
    is_frequent = audit.importance.documents >= max(FLOOR, MIN_COVERAGE * mean_size)
    largest = leans.max(axis=0)
    differs = largest - leans.min(axis=0) >= MIN_DIFFERENCE
    is_unstable = (
        (effects.stability == "unstable") & predicts_somewhere & is_frequent[:, None] & differs
    )
    types, classes = np.nonzero(is_unstable)
    # of two classes, the one that the type predicts where it predicts anything
    order = np.lexsort(
        (-largest[types, classes], types, -effects.q_statistic[types, classes].round(6))
    )
    return _Unstable(types[order], classes[order], leans)


def _extreme_environments(
    effects: Environments, leans: Floats, token_type: int, label: int
) -> dict[str, Share]:
    """The environments in which documents with the type are most and least often of the class, with
    these fractions."""
    measured = [
        (name, effect)
        for name, effect in zip(effects.names, effects.within, strict=True)
        if effect is not None
    ]
    lean = leans[:, token_type, label]
    shares = {}
    for place in (int(np.argmax(lean)), int(np.argmin(lean))):
        name, effect = measured[place]
        shares[name] = Share.count(
            int(effect.class_documents[token_type, label]), int(effect.documents[token_type])
        )
    return shares
