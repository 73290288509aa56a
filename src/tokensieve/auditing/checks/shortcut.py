"""Shortcuts: words, phrases and formatting that give a class away and look like artefacts.

Most words that predict a class are what the labels are about: "awful" in bad reviews, "alarm" in
requests to set one. Which of them look like artefacts instead is decided by one score for words and
phrases (`tokensieve.auditing.artefacts.score`) and a rule for formatting (`artefacts.forms`). Here
suspects that belong together become one finding with its evidence and its severity.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import scipy.sparse as sp

from tokensieve.arrays import Bools, Ints
from tokensieve.auditing.artefacts.controls import Controls, run_controls
from tokensieve.auditing.artefacts.forms import NEARLY_DECIDING, is_chosen, suspicious_forms
from tokensieve.auditing.artefacts.ratings import deciding_scales
from tokensieve.auditing.artefacts.score import ACCUSED, LIKELY, POSSIBLE, Scored
from tokensieve.auditing.artefacts.search import ArtefactSearch, search
from tokensieve.auditing.artefacts.shapes import common_beginning, without_field
from tokensieve.auditing.artefacts.suspects import (
    FIXED_PHRASE,
    Suspect,
    grouped,
    suspect_form,
    suspect_of,
    suspect_scale,
    with_members,
    without_length,
)
from tokensieve.auditing.artefacts.use import SearchedTexts, first_texts
from tokensieve.auditing.checks.api import (
    MAX_EXAMPLES,
    AuditContext,
    Check,
    ConcernedDocuments,
    Finding,
    Findings,
    Labels,
    Share,
    computed_once,
)
from tokensieve.auditing.copies import first_copies
from tokensieve.auditing.environments import environment_effects
from tokensieve.auditing.findings import MEDIUM_SEVERITY, PROBABLE_SHORTCUT
from tokensieve.auditing.phrases import form_clause, is_unspecific, of_class, quoted
from tokensieve.auditing.unspaced_phrases import is_letter_of_words, whole_unspaced
from tokensieve.escape import IN_SENTENCE, for_display
from tokensieve.model.attention import decide
from tokensieve.text.excerpts import Excerpt
from tokensieve.text.formatting import is_formatting
from tokensieve.text.tokenizers import Tokenizer
from tokensieve.text.vocabulary import CountedCorpus
from tokensieve.wording import percent, plural, verb

MAX_FINDINGS = 12  # a page with more is not read
# with some formatting: what ten documents of a corpus have in common is a habit of few writers, and
# no accuracy could show what it is worth
MIN_FORM_DOCUMENTS = 12
MAX_CLASSES_NAMED = 4  # in a headline; of more, what their names have in common, or the first
CHOSEN_LATER = 0.1  # of the way to certain: formatting that writers choose is named after other
MOST_OF_ENVIRONMENT = 0.9  # of a finding's documents in one environment
MAX_CLASSES_LISTED = 12  # in a detail
MOST_OF_FINDING = 0.95  # of its documents: then one token names them all
MAX_TOKENS_NAMED = 3  # in a headline; of more, two examples
CONTAIN = "contain "  # begins a clause about documents
MIN_SHARED_LETTERS = 3  # of class names, to say what they have in common
MAX_DOCUMENTS_DECIDED = 2_000  # of a finding, to measure what the model loses
# a word that may belong to the subject stays of low severity, just below medium
MOST_IF_UNLIKELY = float(np.nextafter(MEDIUM_SEVERITY, 0))
USUAL_OF_ENVIRONMENT = 0.7  # of all documents: nearly every token is then mostly there, too


class Shortcut(Check):
    """Words, phrases and formatting that give a class away and look like artefacts."""

    name = "shortcut"
    title = "Shortcut"
    about = (
        "Strong predictors that look like artefacts. A word or short phrase in at least 1% of a "
        "class, or of a group of classes, that predicts it (q < 0.05) gets a probability of being "
        "an artefact from a score that was fitted on many data sets: whether the other words tell "
        "which documents contain it, whether it stands between words that are neighbours "
        "elsewhere, how many words are as reliable, and a few more. From 50% on it is reported, "
        f"with the reasons; below {LIKELY:.0%} it is a probable shortcut, of low severity. "
        "Formatting counts if nobody chooses it, or if it nearly decides the class. Other strong "
        "predictors are listed apart, as what labels are about."
    )
    action = (
        "Will these also appear where your model is used? If not, mask them and audit again to see "
        "what accuracy remains."
    )
    action_on_form = (
        "Find out why the formatting differs, and whether it will differ where your model is used. "
        "If not, clean the texts, or ignore formatting with --no-formatting, and audit again."
    )
    action_on_passage = (
        "Will this phrase also appear where your model is used? If not, remove the whole phrase "
        "from every document, in all its variants. If you mask only one word, the rest of the "
        "phrase still gives the label away. Then audit again."
    )
    action_on_values = (
        "Find out why the label depends on another column, and whether that will hold where your "
        "model is used. If not, balance the classes across the values of that column."
    )
    tasks = (Labels,)

    def find(self, audit: AuditContext) -> Findings:
        accused = [suspect for suspect in suspects_of(audit) if is_accused(suspect)]
        return self._findings(audit, accused)

    def _findings(self, audit: AuditContext, suspects: Sequence[Suspect]) -> list[Finding]:
        """The suspects that belong together as one finding each, most serious first."""
        groups = [without_length(group) for group in grouped(suspects)]
        findings = [self._finding(audit, group) for group in groups]
        findings.sort(key=lambda finding: -finding.severity)
        return findings[:MAX_FINDINGS]

    def _finding(self, audit: AuditContext, group: Sequence[Suspect]) -> Finding:
        """The group as one finding; its most certain suspect predicts each document."""
        group = without_letters(without_explained(audit, group), audit.tokenizer)
        evidence = GroupEvidence.of(audit, group)
        group = meaningful_first(group, len(evidence.documents))
        tokens = tuple(suspect.token for suspect in group)
        main = max(group, key=lambda suspect: suspect.probability)
        told = told_of_class(len(evidence.classes), len(audit.class_names))
        examples = evidence.right[:: max(1, len(evidence.right) // MAX_EXAMPLES)][:MAX_EXAMPLES]
        classes = [audit.class_names[label] for label in evidence.classes]
        corpus = audit.train.corpus
        finding = self.finding(
            audit,
            severity=min(
                severity(main.probability, evidence, loss_without(audit, group), told),
                1.0 if is_likely(audit, main) else MOST_IF_UNLIKELY,
            ),
            headline=headline_of_group(audit, group, evidence),
            documents=ConcernedDocuments(
                evidence.documents,
                total=evidence.shares["documents"].found,
                examples=[
                    Excerpt.of(corpus, document, tokens, audit.tokenizer)
                    for document in examples.tolist()
                ],
            ),
            label=classes[0] if len(classes) == 1 else "",
            tokens=tokens,
            evidence=evidence.shares,
            details=[
                *details(tokens, classes, evidence, len(audit.class_names)),
                *probability_details(main, tokens),
                *one_environment(audit, evidence.documents),
            ],
            action=self._action(audit, group),
        )
        scored = replace(
            finding,
            signs=signs_of(audit, group),
            probability=main.probability,
            reasons=main.reasons,
        )
        if is_accused(main) and not is_likely(audit, main):
            return replace(scored, title=PROBABLE_SHORTCUT)
        return scored

    def _action(self, audit: AuditContext, group: Sequence[Suspect]) -> str:
        if audit.fields and all(audit.fields.is_value(suspect.token) for suspect in group):
            return self.action_on_values
        if any(suspect.is_fixed_phrase for suspect in group):
            return self.action_on_passage
        if all(suspect.is_form for suspect in group):
            return self.action_on_form
        return self.action


@computed_once
def searched_texts(audit: AuditContext) -> SearchedTexts:
    """The training texts that are searched: a text that is repeated counts once."""
    is_first = first_copies(audit) == np.arange(audit.train.counts.n_documents)
    return first_texts(audit.train, is_first, audit.task.units(audit.train.corpus))


@computed_once
def artefact_search(audit: AuditContext) -> ArtefactSearch:
    """The score of every word and phrase that predicts a class."""
    searched = searched_texts(audit)
    return search(searched.use, searched.texts, searched.units)


@computed_once
def artefact_controls(audit: AuditContext) -> Controls:
    """Run the search for artefacts again with inserted words and with shuffled labels; see
    `Controls`."""
    return run_controls(artefact_search(audit), audit.settings.seed)


def probability_details(suspect: Suspect, tokens: Sequence[str]) -> list[str]:
    """Sentences with the probability that a word is an artefact, and the reasons.

    Of formatting there are none.

    Where the finding is not of that word alone, it is named: the reasons hold of no other.
    """
    if suspect.is_form or not suspect.reasons:
        return []
    is_alone = list(tokens) == [suspect.scored_token]
    subject = "it" if is_alone else quoted([suspect.scored_token])
    probability = percent(suspect.probability, 0)
    return [f"the probability that {subject} is an artefact is {probability}", *suspect.reasons]


def is_accused(suspect: Suspect) -> bool:
    """Whether it is at least as likely an artefact as not, or formatting, which has a rule of its
    own.
    """
    if suspect.is_form:
        return len(suspect.documents) >= MIN_FORM_DOCUMENTS
    return suspect.probability >= ACCUSED


@computed_once
def suspects_of(audit: AuditContext) -> list[Suspect]:
    """The words, families, phrases and formatting that are or may be artefacts."""
    counts = audit.train.counts
    copies = first_copies(audit)
    searched = searched_texts(audit).documents
    suspects: list[Suspect] = []
    for scored in artefact_search(audit).scored:
        probability = artefact_probability(audit, scored)
        if probability >= POSSIBLE:
            documents = searched[scored.candidate.documents]
            if scored.candidate.type < 0:
                documents = np.flatnonzero(np.isin(copies, documents))
            else:
                documents = counts.holders(np.array([scored.candidate.type]))[0]
            suspect = replace(suspect_of(scored, documents), probability=probability)
            suspects += with_members(suspect, counts)
    units = audit.task.units(audit.train.corpus)
    suspects += [suspect_form(form) for form in suspicious_forms(counts, audit.n_words, units)]
    for scale in deciding_scales(counts, audit.n_words, units):
        members = with_members(suspect_scale(scale), counts)
        suspects += [member for member in members if member.type >= 0]
    best: dict[str, Suspect] = {}
    for suspect in suspects:
        earlier = best.get(suspect.token)
        if earlier is None or suspect.probability > earlier.probability:
            best[suspect.token] = suspect
    return list(best.values())


def artefact_probability(audit: AuditContext, scored: Scored) -> float:
    """The probability, by the score, that a token is an artefact; at least one half for a value of
    another column.

    The score is of words, and such a value is no word of the subject.
    """
    candidate = scored.candidate
    is_value = audit.fields is not None and audit.fields.is_value(candidate.words[0])
    if is_value and candidate.certainty > NEARLY_DECIDING:
        return max(scored.probability, ACCUSED)
    return scored.probability


def without_explained(audit: AuditContext, group: Sequence[Suspect]) -> list[Suspect]:
    """The suspects of a finding that predict their classes beyond the more certain ones."""
    is_covered = np.zeros(audit.train.counts.n_documents, dtype=bool)
    unexplained: list[Suspect] = []
    for suspect in sorted(group, key=rank_in_finding):
        if not unexplained or predicts_beyond(audit, suspect, is_covered):
            unexplained.append(suspect)
            is_value = audit.fields is not None and audit.fields.is_value(suspect.token)
            if not is_value:  # words stay a shortcut without the column
                is_covered[suspect.documents] = True
    return unexplained


def without_letters(group: Sequence[Suspect], tokenizer: Tokenizer) -> list[Suspect]:
    """A finding's suspects without single letters of a script without spaces, if there are others.

    Such a letter is a piece of a phrase that the lexicon does not know as one word.
    """
    words = [one for one in group if one.is_form or not is_letter_of_words(one.token, tokenizer)]
    return words or list(group)


def rank_in_finding(suspect: Suspect) -> tuple[float, ...]:
    """Sorts the most certain first, formatting that writers choose later, words before phrases."""
    later = CHOSEN_LATER if is_chosen(suspect.token) else 0.0
    return later - suspect.certainty, suspect.type < 0, -len(suspect.token)


def predicts_beyond(audit: AuditContext, suspect: Suspect, is_covered: Bools) -> bool:
    """Whether a suspect predicts its classes at least half as well where others do not cover it."""
    in_classes = np.isin(audit.train.counts.labels, suspect.classes)
    uncovered = suspect.documents[~is_covered[suspect.documents]]
    if not len(uncovered):
        return True
    excess = in_classes[suspect.documents].mean() - in_classes.mean()
    uncovered_excess = in_classes[uncovered].mean() - in_classes[~is_covered].mean()
    return bool(uncovered_excess >= excess / 2)


def meaningful_first(group: Sequence[Suspect], n_documents: int) -> list[Suspect]:
    """The suspects of a finding with those first that a reader can make something of.

    An HTML tag comes before the symbol that it ends with, what is in nearly all documents of the
    finding before what is in some, what decides many documents before what decides few, and
    "regards" before the "k" of the same signature.
    """

    def rank(suspect: Suspect) -> tuple[float, ...]:
        n_decided = suspect.certainty * len(suspect.documents)
        is_partial = not is_in_most(suspect, n_documents)
        return is_vague(suspect.token), is_partial, -n_decided

    words = sorted((one for one in group if not one.is_form), key=lambda one: -len(one.token))
    longest_first = iter(words)
    in_order = [one if one.is_form else next(longest_first) for one in group]
    return sorted(in_order, key=rank)


def is_in_most(suspect: Suspect, n_documents: int) -> bool:
    """Whether nearly all of a finding's documents contain the suspect."""
    return len(suspect.documents) >= MOST_OF_FINDING * n_documents


def is_vague(token: str) -> bool:
    """Whether a feature only says which signs occur, or how a text starts or ends."""
    return is_unspecific(token) or "⟨starts " in token


@dataclass(frozen=True, eq=False)
class GroupEvidence:
    """What the documents of a finding show.

    Attributes:
        documents: training documents that contain one of its suspects, ascending.
        right: those of the classes that their most certain suspect points to.
        classes: the classes that all its suspects point to; none if they point to different ones.
        shares: "documents" of all; "decides" of these; "class": of the documents of the classes;
            "base": the classes, of all documents, if the suspects point to the same.
    """

    documents: Ints
    right: Ints
    classes: tuple[int, ...]
    shares: dict[str, Share]

    @classmethod
    def of(cls, audit: AuditContext, group: Sequence[Suspect]) -> GroupEvidence:
        """The evidence of suspects that are one finding."""
        counts = audit.train.counts
        suspects = sorted(group, key=lambda suspect: suspect.certainty)
        targets = [suspect.classes for suspect in suspects]
        predicted = Predicted.of(
            counts.labels, [suspect.documents for suspect in suspects], targets
        )
        types = [suspect.type for suspect in suspects]
        classes = common_classes(suspects)
        own_classes = all_classes(suspects)
        if min(types) >= 0:
            totals = audit.task.total(audit.train, predicted_totals, types, targets)
            shares = shares_of(totals, audit.class_sizes, own_classes)
        else:  # phrases are known of the documents at hand alone
            shares = shares_of(predicted.totals, counts.class_sizes, own_classes)
        if not classes:
            del shares["base"]
        return cls(predicted.documents, predicted.right, classes, shares)

    @property
    def base(self) -> float:
        """The fraction of documents that have the predicted label anyway; 0 if the suspects predict
        different labels."""
        return self.shares["base"].value if "base" in self.shares else 0.0


def shares_of(totals: Ints, class_sizes: Ints, classes: list[int]) -> dict[str, Share]:
    """The shares of a finding, from `Predicted.totals`."""
    n_held, n_right, n_inside = totals.tolist()
    n_all = int(class_sizes.sum())
    n_of_classes = int(class_sizes[classes].sum())
    return {
        "documents": Share.count(n_held, n_all),
        "decides": Share.count(n_right, n_held),
        "class": Share.count(n_inside, n_of_classes),
        "base": Share.count(n_of_classes, n_all),
    }


def all_classes(suspects: Sequence[Suspect]) -> list[int]:
    """The classes that any of the suspects points to, ascending."""
    return sorted({label for suspect in suspects for label in suspect.classes})


def common_classes(suspects: Sequence[Suspect]) -> tuple[int, ...]:
    """All classes of the suspects, if each shares some with the one with most documents; or none.

    All, and not those of the largest alone: what a finding says of "these classes" is counted over
    the classes of every suspect.
    """
    largest = max(suspects, key=lambda suspect: len(suspect.documents) * suspect.certainty)
    is_common = all(set(suspect.classes) & set(largest.classes) for suspect in suspects)
    return tuple(all_classes(suspects)) if is_common else ()


@dataclass(frozen=True, eq=False)
class Predicted:
    """The documents that contain one of several suspects, each predicted by the last of them.

    Attributes:
        documents: those that contain one.
        right: those of a class that their suspect points to.
        totals: numbers of both, and of documents of any of the classes, shape (3,).
    """

    documents: Ints
    right: Ints
    totals: Ints

    @classmethod
    def of(
        cls, labels: Ints, documents: Sequence[Ints], targets: Sequence[tuple[int, ...]]
    ) -> Predicted:
        """Add up what is predicted of the documents of each suspect, and the classes that it points
        to."""
        suspect = np.full(len(labels), -1)
        is_right = np.zeros(len(labels), dtype=bool)
        for number, (with_token, target) in enumerate(zip(documents, targets, strict=True)):
            suspect[with_token] = number
            is_right[with_token] = np.isin(labels[with_token], target)
        predicted_documents = np.flatnonzero(suspect >= 0)
        any_class = sorted({label for target in targets for label in target})
        n_inside = int(np.isin(labels[predicted_documents], any_class).sum())
        right = np.flatnonzero(is_right)
        return cls(
            predicted_documents, right, np.array([len(predicted_documents), len(right), n_inside])
        )


def predicted_totals(
    part: CountedCorpus, types: Sequence[int], targets: Sequence[tuple[int, ...]]
) -> Ints:
    """`Predicted.totals` of some documents."""
    documents = part.counts.holders(np.array(types))
    return Predicted.of(part.counts.labels, documents, targets).totals


def is_likely(audit: AuditContext, suspect: Suspect) -> bool:
    """Whether a suspect may be of more than low severity.

    The score is of words: formatting has its own rule, and a value of another column is no word of
    the subject anyway.
    """
    if suspect.is_form:
        return True
    is_value = audit.fields is not None and audit.fields.is_value(suspect.token)
    return suspect.probability >= (ACCUSED if is_value else LIKELY)


def told_of_class(n_group: int, n_classes: int) -> float:
    """The fraction of a class's information that is known once it is one of a group of classes.

    It is 1 for one class (or none, where each token predicts its own), 0 for all of them, and 0.18
    for 35 of 77: a mark of half the classes hardly predicts any of them.
    """
    if n_group <= 1 or n_classes <= 1:
        return 1.0
    return math.log(n_classes / n_group) / math.log(n_classes)


def severity(probability: float, evidence: GroupEvidence, loss: float, told: float) -> float:
    """Roughly the fraction of documents whose prediction a finding puts in doubt.

    The probability that it is an artefact, times its reach, times how much of the prediction
    depends on it: the square of the way from the base rate to certain (at the lower bound of its
    interval), as far as the class is `told` by its group, and of the rest the fraction of
    predictions that the model changes without it.
    """
    shares = evidence.shares
    # the class alone would make much of a small one, and all documents little
    reach = math.sqrt(shares["class"].value * shares["documents"].value)
    base = evidence.base
    # 1e-12: no division by zero where every document is of the class
    lift = max(0.0, shares["decides"].low - base) / max(1 - base, 1e-12)
    decided = told * lift**2
    depends = decided + loss * (1 - decided)
    return probability * reach * depends


def loss_without(audit: AuditContext, group: Sequence[Suspect]) -> float:
    """The fraction of a finding's training documents whose predicted class changes without its
    tokens.
    """
    types = [suspect.type for suspect in group if suspect.type >= 0]
    if not types:
        return 0.0
    counts = audit.train.counts
    documents = np.unique(
        np.concatenate([suspect.documents for suspect in group if suspect.type >= 0])
    )
    documents = documents[:: max(1, len(documents) // MAX_DOCUMENTS_DECIDED)]
    matrix = sp.csr_array(counts.matrix[documents])
    is_kept = np.ones(counts.n_types)
    is_kept[types] = 0.0
    without = sp.csr_array(matrix @ sp.diags_array(is_kept))
    without.eliminate_zeros()
    model = audit.learned.model
    before = decide(audit.task.decide(model, matrix))
    after = decide(audit.task.decide(model, without))
    return float((before != after).mean())


def signs_of(audit: AuditContext, group: Sequence[Suspect]) -> tuple[str, ...]:
    """Words for how the tokens of a finding differ from ordinary words, for findings.json."""
    tokens = [suspect.token for suspect in group]
    words = [without_field(suspect.token) for suspect in group if not suspect.is_form]
    fields = audit.fields
    has_value = fields is not None and any(map(fields.is_value, tokens))
    has_phrase = any(" " in token for token in tokens)
    has_sign = {
        FIXED_PHRASE: any(suspect.is_fixed_phrase for suspect in group),
        "formatting": len(words) < len(group),
        "number": any(map(str.isdigit, "".join(words))),
        "word": bool(words) and not has_phrase,
        "phrase": bool(words) and has_phrase,
        "value": has_value,
    }
    return tuple(sign for sign, holds in has_sign.items() if holds)


def headline_of_group(
    audit: AuditContext, group: Sequence[Suspect], evidence: GroupEvidence
) -> str:
    """The headline of a finding: it names all of its suspects, and counts what it names.

    One suspect that is in nearly all documents of the finding says what it is.
    """
    named = whole_phrases_of(audit, group)
    if is_in_most(named[0], len(evidence.documents)):
        named = named[:1]
    if named != group:
        evidence = GroupEvidence.of(audit, named)
    group = named
    names = audit.class_names
    classes = [names[label] for label in evidence.classes]
    return headline([suspect.token for suspect in group], classes, evidence, len(names))


def whole_phrases_of(audit: AuditContext, group: Sequence[Suspect]) -> list[Suspect]:
    """A finding's suspects, with a whole phrase in place of those that are pieces of it.

    Where no space parts words, a piece of an unknown phrase says nothing to a reader.
    """
    whole: dict[str, Suspect] = {}
    for suspect in group:
        named = suspect
        if not suspect.is_form and not suspect.token.isascii():
            texts = audit.train.corpus.texts.gather(suspect.documents)
            named = as_whole_phrase(suspect, pl.Series(texts, dtype=pl.String), audit.tokenizer)
        whole.setdefault(named.token, named)
    return list(whole.values())


def as_whole_phrase(suspect: Suspect, texts: pl.Series, tokenizer: Tokenizer) -> Suspect:
    """The phrase without spaces that nearly all texts of a suspect have around it, or itself.

    Args:
        suspect: a word or phrase.
        texts: those that contain it.
        tokenizer: the one of the training documents.
    """
    phrases = whole_unspaced([suspect.token], texts, tokenizer)
    if not phrases or phrases[0] == suspect.token:
        return suspect
    (phrase,) = phrases
    contain_it = texts.str.to_lowercase().str.contains(without_field(phrase), literal=True)
    documents = suspect.documents[contain_it.to_numpy()]
    if not len(documents):  # its letters are written otherwise in the texts
        return suspect
    return replace(suspect, token=phrase, type=-1, documents=documents)


def headline(
    tokens: Sequence[str], classes: Sequence[str], evidence: GroupEvidence, n_classes: int
) -> str:
    """A sentence on some tokens: how often documents contain any of them, how strongly that
    predicts the classes, and the base rate; no full stop."""
    shares = evidence.shares
    documents = percent(shares["documents"].value)
    right = percent(shares["decides"].value, 0)
    if classes:
        named_classes = of_classes(classes)
        if len(classes) > MAX_CLASSES_LISTED:  # four names of thirty say nothing
            named_classes = f"in {len(classes)} of the {n_classes} classes"
        rate = f"{right} of those are {named_classes} ({percent(evidence.base, 0)} overall)"
    else:
        rate = f"they predict the label {right} of the time"
    forms = [token for token in tokens if is_formatting(token)]
    words = [token for token in tokens if not is_formatting(token)]
    if len(tokens) > MAX_TOKENS_NAMED:
        one_of = f"one of {plural(len(tokens), 'token')} such as {quoted(tokens[:2])}"
        return f"{documents} of documents contain {one_of}; {rate}"
    if not forms:
        appear = verb(len(tokens), "appear")
        return f"{quoted(tokens)} {appear} in {documents} of documents; {rate}"
    clauses = [f"contain {quoted([word])}" for word in words] + [form_clause(one) for one in forms]
    return f"{documents} of documents {either(clauses)}; {rate}"


def either(clauses: Sequence[str]) -> str:
    """Clauses joined by "or"; what follows "contain" comes first and shares the verb."""
    contained = [clause.removeprefix(CONTAIN) for clause in clauses if clause.startswith(CONTAIN)]
    others = [clause for clause in clauses if not clause.startswith(CONTAIN)]
    parts = [*contained, *others]
    if contained:
        parts[0] = CONTAIN + parts[0]
    if len(parts) == 1:
        return parts[0]
    return f"{', '.join(parts[:-1])} or {parts[-1]}"


def of_classes(classes: Sequence[str], noun: str = "") -> str:
    """Names the members of a class, or of several."""
    if len(classes) == 1:
        return of_class(classes[0], noun)
    shared = shared_name(classes)
    if shared:
        in_classes = (
            f"in {len(classes)} classes whose names begin with “{for_display(shared, IN_SENTENCE)}”"
        )
    else:
        named = quoted(list(classes), MAX_CLASSES_NAMED)
        in_classes = f"in {len(classes)} classes ({named})"
    return f"{noun} {in_classes}".strip()


def shared_name(classes: Sequence[str]) -> str:
    """The word that all names of classes begin with, if it has at least three letters; else ""."""
    shared = common_beginning(classes)
    is_word = sum(map(str.isalpha, shared)) >= MIN_SHARED_LETTERS
    ends_word = bool(shared) and not shared[-1].isalnum()
    return shared if is_word and ends_word else ""


def details(
    tokens: Sequence[str], classes: Sequence[str], evidence: GroupEvidence, n_classes: int
) -> Iterator[str]:
    """The numbers behind the headline, as clauses."""
    decides = evidence.shares["decides"]
    them = quoted(tokens) if len(tokens) == 1 else f"one of these {len(tokens)} tokens"
    if classes:
        predicted = f"are {of_classes(classes)}"
    else:
        predicted = "belong to the class that their token predicts"
    yield f"{decides.as_counts} training documents containing {them} {predicted}: {decides}"
    appear = f"{them} appears"
    where = (
        of_classes(classes, "documents") if classes else "the documents of the predicted classes"
    )
    yield f"{appear} in {evidence.shares['class']} of {where}"
    if len(classes) > 1:
        class_list = quoted(list(classes), MAX_CLASSES_LISTED)
        it = "it" if len(tokens) == 1 else "them"
        yield f"the {len(classes)} of {n_classes} classes that have {it} more often: {class_list}"
    if any("0" in token and not is_formatting(token) for token in tokens if " " in token):
        yield "0 stands for any digits"


def one_environment(audit: AuditContext, documents: Ints) -> list[str]:
    """The environment that contains nearly all of some documents, as a clause; none if there is
    none.
    """
    environments = environment_effects(audit)
    if environments is None:
        return []
    names = environments.effects.names
    numbers = environments.document_environments
    n_by_environment = np.bincount(
        numbers[documents][numbers[documents] >= 0], minlength=len(names)
    )
    everywhere = np.bincount(numbers[numbers >= 0], minlength=len(names))
    largest = int(n_by_environment.argmax())
    is_concentrated = n_by_environment[largest] >= max(
        1, MOST_OF_ENVIRONMENT * n_by_environment.sum()
    )
    is_usual = everywhere[largest] > USUAL_OF_ENVIRONMENT * everywhere.sum()
    if not is_concentrated or is_usual:
        return []
    share = Share.count(int(n_by_environment[largest]), int(n_by_environment.sum()))
    name = for_display(names[largest], IN_SENTENCE)
    return [
        f"{share.as_counts} of these documents are in environment {name}, so the other "
        "environments cannot confirm it"
    ]
