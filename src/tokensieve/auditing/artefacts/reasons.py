"""The reasons of a score, in words: what its largest terms say."""

from __future__ import annotations

import math

from tokensieve.auditing.artefacts.score import Scored
from tokensieve.wording import percent, plural

MAX_REASONS = 4
SMALLEST_TERM = 0.5  # of the log-odds; less is no reason


def reasons(one: Scored) -> list[str]:
    """What speaks for an artefact, then what speaks against it, strongest first; clauses without a full stop."""
    order = sorted(one.terms, key=lambda name: -abs(one.terms[name]))
    large = [name for name in order if abs(one.terms[name]) >= SMALLEST_TERM]
    speaks_for = [name for name in large if one.terms[name] > 0]
    speaks_against = [name for name in large if one.terms[name] < 0]
    clauses = [reason(one, name) for name in [*speaks_for, *speaks_against]]
    return [clause for clause in clauses if clause][:MAX_REASONS]


def reason(one: Scored, trait: str) -> str:
    """What one trait says about a candidate; empty if it says nothing by itself."""
    is_for = one.terms[trait] > 0
    n_peers = round(math.expm1(one.observed.traits.peers))
    n_relatives = round(math.expm1(one.observed.traits.relatives))
    if trait == "apart":
        if is_for:
            return "the other words of these documents do not tell which contain it"
        return "the other words of these documents tell which contain it"
    if trait == "inserted":
        if is_for:
            return (
                "it stands between words that are neighbours elsewhere, as if it had been inserted"
            )
        return "its neighbours are not neighbours without it, so it was written there"
    if trait == "peers":
        if not is_for:
            return f"{plural(n_peers, 'other word')} predict this class as reliably"
        if n_peers == 0:
            return "no other word predicts this class as reliably"
        return f"only {plural(n_peers, 'other word')} predict this class as reliably"
    if trait == "constancy":
        if is_for:
            return "its neighbours vary"
        return "it always stands between the same words"
    if trait == "coverage" and is_for:
        return f"it is in {percent(one.observed.traits.coverage, 0)} of the documents of the class"
    if trait == "certainty" and is_for:
        return "it hardly ever occurs in other classes"
    if trait == "kinship" and one.observed.traits.kinship:
        return "it is related to the name of the class"
    if trait == "repeated" and not is_for:
        return "it is repeated within a document, as words of the subject are"
    if trait == "joined" and is_for:
        return "it is part of a code, an address or markup"
    if trait == "relatives" and n_relatives:
        words = plural(n_relatives, "other word")
        return f"{words} of the same stem also lean to this class"
    return ""
