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
    "apart": "apart from it, texts of the class with it hardly differ from those without it",
    "inserted": "the words on both sides of it often stand side by side in other texts, as if it "
    "had been inserted",
    "constancy": "the words beside it vary",
    "joined": "it is part of a code, an address or markup",
    "edge": "it stands in a fixed phrase at the start or end of its texts",
    "run": "it nearly always stands in the same run of words",
    "place": "it nearly always stands as far from the start or the end of its text",
}
AGAINST = {
    "apart": "texts of the class with it differ from those without it in other words, too, as they "
    "do with a word of the subject",
    "inserted": "the words on both sides of it seldom stand side by side in other texts, so it was "
    "written there",
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
    clauses_for = [reason(one, name) for name in speaks_for]
    clauses_against = [reason(one, name) for name in speaks_against]
    said = [clause for clause in clauses_for if clause]
    said += [f"but {clause}" for clause in clauses_against if clause]
    return said[:MAX_REASONS]


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
    if trait == "certainty" and is_for:
        return certainty_clause(one)
    if trait == "constancy" and not is_for:
        share = percent(one.observed.traits.constancy, 0)
        return f"on each side of it, one word stands in at least {share} of the cases"
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


def certainty_clause(one: Scored) -> str:
    """How few of its documents are of other classes."""
    candidate = one.candidate
    n_documents = len(candidate.documents)
    n_outside = n_documents - candidate.n_inside
    if n_outside == 0:
        return "it occurs in no other class"
    are = verb(n_outside, "are", "is")
    return f"only {n_outside:,} of its {n_documents:,} documents {are} of other classes"


def peers_clause(n_peers: int, is_for: bool) -> str:
    """How many words are as certain."""
    words = plural(n_peers, "other word")
    if not is_for:
        return f"{words} predict this class as reliably"
    if n_peers == 0:
        return "no other word predicts this class as reliably"
    return f"only {words} {verb(n_peers, 'predict')} this class as reliably"
