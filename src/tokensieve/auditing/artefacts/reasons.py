"""The reasons of a score, in words: what its largest terms say."""

from __future__ import annotations

import math

from tokensieve.auditing.artefacts.neighbours import CONSTANT, NOT_TOLD
from tokensieve.auditing.artefacts.score import Scored
from tokensieve.wording import percent, plural, verb

MAX_REASONS = 4
SMALLEST_TERM = 0.5  # of the log-odds; less is no reason
FIXED_RUN = 3.0  # words; two that stand together are no phrase
FOR = {
    "apart": "the other words of these documents do not tell which contain it",
    "inserted": "it stands between words that are neighbours elsewhere, as if inserted",
    "constancy": "its neighbours vary",
    "certainty": "it hardly ever occurs in other classes",
    "joined": "it is part of a code, an address or markup",
    "edge": "it stands in a fixed phrase at the start or end of its texts",
    "run": "it stands in a fixed run of words",
    "place": "it nearly always stands as far from the start or the end of its text",
}
AGAINST = {
    "apart": "the other words of these documents tell which contain it",
    "inserted": "its neighbours are seldom neighbours without it, so it was written there",
    "constancy": "it always stands between the same words",
    "kinship": "it is related to the name of the class",
    "repeated": "it is repeated within a document, as words of the subject are",
}


def reasons(one: Scored) -> list[str]:
    """What speaks for an artefact, then what speaks against it, strongest first; clauses without a
    full stop.
    """
    order = sorted(one.terms, key=lambda name: -abs(one.terms[name]))
    large = [name for name in order if abs(one.terms[name]) >= SMALLEST_TERM]
    speaks_for = [name for name in large if one.terms[name] > 0]
    speaks_against = [name for name in large if one.terms[name] < 0]
    clauses = [reason(one, name) for name in [*speaks_for, *speaks_against]]
    return [clause for clause in clauses if clause][:MAX_REASONS]


def reason(one: Scored, trait: str) -> str:
    """What one trait says about a candidate; empty if it says nothing by itself."""
    is_for = one.terms[trait] > 0
    clauses = FOR if is_for else AGAINST
    if trait == "peers":
        return peers_clause(round(math.expm1(one.observed.traits.peers)), is_for)
    if trait == "coverage" and is_for:
        # not the trait, which ends at one half
        share = percent(one.observed.candidate.coverage, 0)
        owner = "class" if len(one.observed.candidate.classes) == 1 else "classes"
        return f"it is in {share} of the documents of the {owner}"
    if trait == "relatives":
        n_relatives = round(math.expm1(one.observed.traits.relatives))
        if n_relatives == 0:
            return ""
        return f"{plural(n_relatives, 'other word')} of the same stem also lean to this class"
    if trait == "inserted" and one.observed.neighbours.inserted == NOT_TOLD:
        return ""
    if trait == "kinship" and not one.observed.traits.kinship:
        return ""
    if trait == "run" and one.observed.neighbours.run_length < FIXED_RUN:
        return ""
    if trait == "place" and one.observed.traits.place < CONSTANT:
        return ""
    return clauses.get(trait, "")


def peers_clause(n_peers: int, is_for: bool) -> str:
    """How many words are as certain."""
    words = plural(n_peers, "other word")
    if not is_for:
        return f"{words} predict this class as reliably"
    if n_peers == 0:
        return "no other word predicts this class as reliably"
    return f"only {words} {verb(n_peers, 'predict')} this class as reliably"
