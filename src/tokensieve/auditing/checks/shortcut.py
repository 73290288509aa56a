"""Shortcuts: tokens that all but decide a class and bear the sign of an artefact, grouped by what belongs together.

A token is a candidate for a class if it is in at least 1 % of the class's documents, carries the label (q < 0.05), and is either
*pure* (the cautious end of its posterior difference lies more than half of the way from neutral to certain) or *informative*
(among the thirty of most information about the class, at least 0.02 bits, and a fifth of that way). Many candidates are ordinary
words of the class ("awful" in bad reviews). What makes one a shortcut is a sign that no writer chose it for its meaning: it is
formatting, a number, part of an address, or always in the same place; or it is nearly certain while the class has next to no
other words of that certainty.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from tokensieve.auditing.agreement import FLOOR
from tokensieve.auditing.checks.base import EXAMPLES, AuditData, Check, named
from tokensieve.auditing.context import Sign, holders, passage, sign_of
from tokensieve.auditing.findings import Finding
from tokensieve.auditing.sentences import form_clause, plural, quoted
from tokensieve.errors import InputError
from tokensieve.evidence.importance import token_importance
from tokensieve.evidence.intervals import LEVEL
from tokensieve.evidence.shares import Share
from tokensieve.task.labels import Labels
from tokensieve.text.corpus import Corpus
from tokensieve.text.counts import Counts, Floats, Ints
from tokensieve.text.formatting import is_formatting
from tokensieve.text.tokenizers import Tokenizer
from tokensieve.text.vocabulary import count_texts
from tokensieve.wording import percent

COVERAGE = 0.01  # of the class's documents
COMMON = 0.8  # of all documents: what is in more is the usual state, and its absence the sign
PURE, CERTAIN, CERTAIN_PHRASE = 0.5, 0.85, 0.95  # of the way from neutral to certain, at the cautious end
INFORMATIVE, BITS, LESS_PURE = 30, 0.02, 0.2  # types, of how much information, and how far on that way
VOCABULARY = 3  # a class with more groups of certain words than that has a vocabulary, not a shortcut
LONGEST = 3  # words of a phrase that is looked for beside single words
DECIDED = (
    0.985  # of the documents with such a phrase; of the film reviews with "well worth", no artefact, 0.96 are good ones
)
LOOKED_INTO = 160  # candidates whose documents are read
TOGETHER = 0.5  # Jaccard index of the documents of two tokens that are one finding
MOST = 12  # findings


@dataclass(frozen=True)
class _Candidate:
    token: str
    type: int
    label: int
    way: float
    sign: Sign | None
    documents: Ints


def information(documents: Floats, inside: Floats, size: float, n: int) -> Floats:
    """Mutual information, in bits, between "the document contains the type" and "the document is of the class".

    Args:
        documents, inside: documents, and documents of the class, that contain each type, shape (|S|,).
        size: documents of the class.
        n: documents.
    """
    cells = [
        (inside, documents, size), (documents - inside, documents, n - size),
        (size - inside, n - documents, size), (n - size - documents + inside, n - documents, n - size),
    ]  # fmt: skip
    total = np.zeros(len(documents))
    for both, row, column in cells:
        with np.errstate(divide="ignore", invalid="ignore"):
            total += np.where(both > 0, both / n * np.log2(both * n / (row * column)), 0.0)
    return total


class Shortcut(Check):
    """Groups of tokens, and of formatting, that nearly decide a class and bear the sign of an artefact."""

    name = "shortcut"
    title = "Shortcut"
    about = (
        "Tokens or formatting in at least 1% of a class (q < 0.05) whose conservative bound on the class association is more than "
        "halfway to certainty, or that are among the most informative, and that look like an artefact: a number, markup, always in "
        "the same place of the text, or far more certain than the other words of the class."
    )
    action = (
        "Ask whether these will be there when the model is used. If not, mask them and audit again: what remains is the accuracy "
        "without the shortcuts."
    )
    action_on_form = (
        "Ask where this difference in form comes from, and whether it will be there when the model is used. If not, clean the "
        "texts, or leave formatting out with --no-formatting, and audit again."
    )
    tasks = (Labels,)

    def find(self, data: AuditData) -> list[Finding]:
        train, corpus, tokenizer = data.train.counts, data.train.corpus, data.tokenizer
        vocabulary = data.learned.model.vocabulary
        assert vocabulary is not None
        found = _with_signs(_candidates(data.tokens, train, 0, data.words), corpus, tokenizer)
        forms = _candidates(data.tokens, train, data.words, train.n_types)
        found += [replace(c, sign=Sign.FORMATTING) for c in forms]
        if not vocabulary.grams:
            found += _phrases(train, corpus, tokenizer)
        groups = _grouped(found)
        certain = Counter(group[0].label for group in groups if all(c.sign is Sign.ALONE for c in group))
        kept = [g for g in groups if certain[g[0].label] <= VOCABULARY or any(c.sign is not Sign.ALONE for c in g)]
        findings = [self._about(group, data) for group in kept]
        return sorted(findings, key=lambda f: -f.severity)[:MOST]

    def _about(self, group: list[_Candidate], data: AuditData) -> Finding:
        """The group as one finding: each of its documents is predicted by the strongest token in it."""
        train, corpus = data.train.counts, data.train.corpus
        order = sorted(group, key=lambda c: (list(Sign).index(c.sign) if c.sign else len(Sign), -c.way, len(c.token)))
        answer = np.full(train.n_documents, -1)
        for c in sorted(group, key=lambda c: c.way):
            answer[c.documents] = c.label
        held = np.flatnonzero(answer >= 0)
        right = held[answer[held] == train.labels[held]]
        labels = sorted({c.label for c in group})
        size = int(train.class_sizes[labels].sum())
        evidence = {
            "documents": Share.count(len(held), train.n_documents),
            "decides": Share.count(len(right), len(held)),
            "class": Share.count(int(np.isin(train.labels[held], labels).sum()), size),
        }
        label = train.classes[order[0].label] if len(labels) == 1 else ""
        if label:  # without a class of its own there is no rate that it would have anyway
            evidence["base"] = Share.count(size, train.n_documents)
        base = float(train.class_sizes.max()) / train.n_documents
        tokens = tuple(dict.fromkeys(c.token for c in order))
        signs = tuple(dict.fromkeys(c.sign.value for c in order if c.sign))
        examples = right[:: max(1, len(right) // EXAMPLES)][:EXAMPLES]
        return self.finding(
            data,
            evidence["class"].value * (max(0.0, evidence["decides"].low - base) / (1 - base)) ** 2,
            _headline(tokens, label, evidence),
            held,
            label=label,
            tokens=tokens,
            signs=signs,
            evidence=evidence,
            examples=tuple(passage(corpus, int(i), tokens, data.tokenizer) for i in examples),
            details=_details(label, signs, evidence),
            action=self.action_on_form if all(map(is_formatting, tokens)) else self.action,
        )


def _candidates(table: pl.DataFrame, train: Counts, start: int, stop: int) -> list[_Candidate]:
    """Those to look into among the types from `start` to `stop`, the surest of each class first."""
    n, types = train.n_documents, train.n_types
    out: list[_Candidate] = []
    for k, size in enumerate(train.class_sizes.tolist()):
        rows = table[k * types + start : k * types + stop]
        column = {name: rows[name].to_numpy().astype(float) for name in ("documents", "class_documents", "effect")}
        way = _way(rows, size / n)
        bits = information(column["documents"], column["class_documents"], size, n)
        fits = (column["class_documents"] >= max(FLOOR, COVERAGE * size)) & (rows["q_value"].to_numpy() < LEVEL)
        fits &= (column["effect"] > 0) & (column["documents"] <= COMMON * n)
        told = np.zeros(stop - start, dtype=bool)
        told[np.argsort(-np.where(fits, bits, 0.0), kind="stable")[:INFORMATIVE]] = True
        chosen = np.flatnonzero(fits & ((way > PURE) | (told & (bits >= BITS) & (way > LESS_PURE))))
        chosen = chosen[np.argsort(-way[chosen], kind="stable")][: math.ceil(LOOKED_INTO / train.n_classes)]
        tokens, documents = rows["token"], holders(train, start + chosen)
        out += [
            _Candidate(tokens[int(s)], start + int(s), k, float(way[s]), None, held)
            for s, held in zip(chosen, documents, strict=True)
        ]
    return out


def _phrases(train: Counts, corpus: Corpus, tokenizer: Tokenizer) -> list[_Candidate]:
    """Candidates that are runs of two or three words, for an audit of single words: those in 1 % of the smallest class, none of
    whose words leans to the class alone, so that it is their meeting which decides."""
    least = max(FLOOR, math.ceil(COVERAGE * int(train.class_sizes.min())))
    try:
        found = count_texts(corpus.texts, tokenizer=tokenizer, ngrams=LONGEST, min_documents=least)
    except InputError:  # no word is as frequent
        return []
    counts = Counts(found.matrix, train.labels, train.classes, found.vocabulary.tokens)
    table, words = token_importance(counts).to_frame(), len(found.vocabulary.words)
    leans = [
        {
            str(counts.tokens[s])
            for s in np.flatnonzero(_way(table[k * counts.n_types :][:words], size / len(corpus.labels)) > LESS_PURE)
        }
        for k, size in enumerate(train.class_sizes.tolist())
    ]
    phrases = [
        c for c in _candidates(table, counts, words, counts.n_types) if not leans[c.label] & set(c.token.split(" "))
    ]
    signed = _with_signs(phrases, corpus, tokenizer, CERTAIN)
    right = counts.present
    return [c for c in signed if c.sign is not Sign.ALONE or right[c.type, c.label] >= DECIDED * len(c.documents)]


def _way(rows: pl.DataFrame, share: float) -> Floats:
    """How far from neutral to certain the cautious end of each posterior difference lies.

    Args:
        rows: of one class.
        share: of the documents that are of the class.
    """
    neutral = 2 * share - 1
    way: Floats = (rows["posterior_low"].to_numpy().astype(float) - neutral) / (1 - neutral)
    return way


def _with_signs(
    candidates: list[_Candidate], corpus: Corpus, tokenizer: Tokenizer, phrase: float = CERTAIN_PHRASE
) -> list[_Candidate]:
    """The candidates that bear a sign of an artefact; for a run of words without another one the way must be at least `phrase`."""
    out = []
    for c in candidates:
        sign = sign_of(c.token, c.documents, corpus, tokenizer)
        if sign is None and c.way >= (phrase if " " in c.token else CERTAIN):
            sign = Sign.ALONE
        if sign is not None:
            out.append(replace(c, sign=sign))
    return out


def _grouped(candidates: list[_Candidate]) -> list[list[_Candidate]]:
    """Tokens that share a word, or occur in much the same documents, are one finding, whatever their classes."""
    groups: list[list[_Candidate]] = []
    for c in sorted(candidates, key=lambda c: -c.way * len(c.documents)):
        near = [group for group in groups if any(_belong(c, other) for other in group)]
        groups = [group for group in groups if all(group is not one for one in near)]
        groups.append([c, *(other for group in near for other in group)])
    return groups


def _belong(a: _Candidate, b: _Candidate) -> bool:
    words = not (is_formatting(a.token) or is_formatting(b.token))
    return (words and bool(set(a.token.split(" ")) & set(b.token.split(" ")))) or _jaccard(
        a.documents, b.documents
    ) >= TOGETHER


def _jaccard(a: Ints, b: Ints) -> float:
    if min(len(a), len(b)) < TOGETHER * max(len(a), len(b)):
        return 0.0
    both = len(np.intersect1d(a, b, assume_unique=True))
    return both / (len(a) + len(b) - both)


_SIGNS = {
    Sign.FORMATTING.value: "formatting, not a word",
    Sign.NUMBER.value: "a number",
    Sign.MARKUP.value: "part of an address or of markup",
    Sign.EDGE.value: "always in the same place of the text",
    Sign.ALONE.value: "almost no other word predicts this class as reliably",
}


def _headline(tokens: tuple[str, ...], label: str, e: dict[str, Share]) -> str:
    """How often, then how strong, then the base rate."""
    share, right = percent(e["documents"].value), percent(e["decides"].value, 0)
    base = f" ({percent(e['base'].value, 0)} overall)" if "base" in e else ""
    of = f"of class {named(label)}{base}" if label else "predicted correctly by them"
    if len(tokens) > 3:
        some = f"one of {plural(len(tokens), 'token')} such as {quoted(tokens[:2])}"
        return f"{share} of documents contain {some}; {right} of those are {of}"
    if is_formatting(tokens[0]):
        return f"{share} of documents {form_clause(tokens[0])}; {right} of those are {of}"
    appear = "appears" if len(tokens) == 1 else "appear"
    return f"{quoted(tokens)} {appear} in {share} of documents; {right} of those are {of}"


def _details(label: str, signs: tuple[str, ...], e: dict[str, Share]) -> tuple[str, ...]:
    where = f"{named(label)} documents" if label else "the documents of their classes"
    predicted = f"are {named(label)}" if label else "have the class that it points to"
    return (
        f"{e['decides'].counted} training documents containing it {predicted} ({e['decides']})",
        f"it appears in {e['class']} of {where}",
        *(_SIGNS[sign] for sign in signs),
    )
