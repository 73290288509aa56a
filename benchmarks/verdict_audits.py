"""Findings of audits of labels: shortcuts and their absence, predictors, wrong labels, drift."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl

from tokensieve.auditing.artefacts.shapes import shape_of
from tokensieve.auditing.result import Audit
from tokensieve.auditing.run import audit
from tokensieve.auditing.settings import Settings
from tokensieve.text.tokenizers import WordTokenizer
from verdict_data import Documents, Outcome, Verdict, insert, quick, shuffled

TURNED_FRACTION = 0.05  # of the labels
UNLEARNABLE_FRACTION = 0.03  # of the documents
# new to all sets, and none of them a kind that a rule of the audit was written for
PLANTS: dict[str, str] = {
    "word": "cantilever",
    "hashtag": "#saltmarsh",
    "price": "$47",
    "name": "Ostrowski",
}


# ---- no shortcut was found


def missed_although_it_would_be_found(documents: Documents, seed: int) -> Outcome:
    """A new word in as many documents of one class as the audit names, and no more.

    An audit counts if it says that it would have found a new word in that part of the class. The
    sentence is false if no shortcut that it reports is the word.
    """
    claim = Claim.drawn(documents, seed)
    if claim is None:
        return Outcome(0, 0)
    said = 0
    false = 0
    for number, planted in enumerate(PLANTS.values()):
        rng = np.random.default_rng([seed, number])
        texts = _planted(documents, claim, planted, rng)
        found = audit((texts, documents.labels), quick(seed))
        if claim.is_made_by(found):
            said += 1
            false += not _is_accused(planted, found)
    return Outcome(said, false)


@dataclass(frozen=True)
class Claim:
    """ "They would have found a new word in …% or more of this class."

    Attributes:
        label: of the documents.
        class_name: the same as an audit writes it: 1 for 1.0.
        rate: the smallest of which the audit says so.
    """

    label: str
    class_name: str
    rate: float

    @classmethod
    def drawn(cls, documents: Documents, seed: int) -> Claim | None:
        """What an audit of the documents says of one class; None if it says so of none."""
        clean = audit(documents.pair, quick(seed))
        assert clean.controls is not None
        claims = []
        for label in sorted(set(documents.labels)):
            class_name = label if label in clean.classes else label.removesuffix(".0")
            rate = clean.controls.found_from(class_name)
            if rate is not None:
                claims.append(cls(label, class_name, rate))
        return claims[seed % len(claims)] if claims else None

    def is_made_by(self, found: Audit) -> bool:
        """Whether an audit names this rate of the class, or a smaller one."""
        assert found.controls is not None
        smallest = found.controls.found_from(self.class_name)
        return smallest is not None and smallest <= self.rate


def _planted(
    documents: Documents, claim: Claim, planted: str, rng: np.random.Generator
) -> list[str]:
    """The texts with a mark in the claimed part of one class."""
    own = [place for place, name in enumerate(documents.labels) if name == claim.label]
    chosen = set(rng.permutation(own)[: math.ceil(claim.rate * len(own))].tolist())
    return [
        insert(text, planted, rng) if place in chosen else text
        for place, text in enumerate(documents.texts)
    ]


def _is_accused(planted: str, found: Audit) -> bool:
    """Whether a shortcut of an audit is the planted word, or a part of the planted code."""
    tokens = {token for one in found.shortcuts for token in one.tokens}
    words = WordTokenizer().split(pl.Series([planted]))[0].to_list()
    return bool(tokens.intersection([*words, shape_of(planted)]))


# ---- shuffled labels


def shortcut_in_shuffled_labels(documents: Documents, seed: int) -> Outcome:
    found = audit_of_shuffled(documents, seed)
    return Outcome(1, int(any(one.kind == "shortcut" for one in found.findings)))


def token_in_shuffled_labels(documents: Documents, seed: int) -> Outcome:
    found = audit_of_shuffled(documents, seed)
    return Outcome(1, int(found.n_predictive > 0))


def alone_in_shuffled_labels(documents: Documents, seed: int) -> Outcome:
    found = audit_of_shuffled(documents, seed)
    return Outcome(1, int(any(one.kind == "alone" for one in found.findings)))


_latest_shuffled: dict[tuple[str, int, int], Audit] = {}


def audit_of_shuffled(documents: Documents, seed: int) -> Audit:
    """The audit of texts with the labels of others; three verdicts are read from each."""
    key = (documents.set_name, len(documents.texts), seed)
    if key not in _latest_shuffled:
        _latest_shuffled.clear()
        pair = shuffled(documents, seed).pair
        _latest_shuffled[key] = audit(pair, Settings(baseline=False, seed=seed))
    return _latest_shuffled[key]


# ---- wrong labels


def _turned_at_random(labels: list[str], rng: np.random.Generator) -> list[str]:
    """Labels of which one in twenty is another class."""
    names = sorted(set(labels))
    is_turned = rng.random(len(labels)) < TURNED_FRACTION
    return [
        str(rng.choice([name for name in names if name != own])) if turned else own
        for own, turned in zip(labels, is_turned, strict=True)
    ]


def _turned_one_way(labels: list[str], rng: np.random.Generator) -> list[str]:
    """Labels in which a tenth of one class is called a second one, as by a careless annotator."""
    names = sorted(set(labels), key=labels.count)
    mistaken, taken_for = rng.permutation(names[-3:])[:2].tolist()
    return [
        taken_for if own == mistaken and rng.random() < 2 * TURNED_FRACTION else own
        for own in labels
    ]


TURNS: tuple[Callable[[list[str], np.random.Generator], list[str]], ...] = (
    _turned_at_random,
    _turned_one_way,
)


def wrong_label_although_right(documents: Documents, seed: int) -> Outcome:
    """Some labels are turned; an accused document that was not turned counts as false."""
    rng = np.random.default_rng(seed)
    labels = TURNS[seed % len(TURNS)](documents.labels, rng)
    rows = _accused_rows(audit((documents.texts, labels), Settings(baseline=False, seed=seed)))
    false = sum(labels[row - 1] == documents.labels[row - 1] for row in rows)
    return Outcome(len(rows), false)


def accused_in_unlearnable_class(documents: Documents, seed: int) -> Outcome:
    """A class of 3 % whose words do not depend on the label: none of its labels can be judged."""
    rng = np.random.default_rng(seed)
    labels = list(documents.labels)
    chosen = rng.permutation(len(labels))[: round(UNLEARNABLE_FRACTION * len(labels))].tolist()
    for place in chosen:
        labels[place] = "other"
    rows = _accused_rows(audit((documents.texts, labels), Settings(baseline=False, seed=seed)))
    return Outcome(len(chosen), sum(place + 1 in rows for place in chosen))


def _accused_rows(found: Audit) -> set[int]:
    """The rows whose label the models contradict."""
    return {
        row for one in found.findings if one.kind == "labels" for row in one.rows["row"].to_list()
    }


# ---- drift


def drift_in_random_split(documents: Documents, seed: int) -> Outcome:
    order = np.random.default_rng(seed).permutation(len(documents.texts))
    frame = pl.DataFrame({"text": documents.texts, "label": documents.labels})[order.tolist()]
    n_train = round(0.7 * frame.height)
    train, test = frame[:n_train], frame[n_train:]
    found = audit(train, quick(seed), test=test, text="text", label="label")
    return Outcome(1, int(any(one.kind == "drift" for one in found.findings)))


VERDICTS = (
    Verdict(
        "The checks found no shortcut (they would have found a new word in …% or more of …)",
        "a word, name, hashtag or price that is new to the set is at random places of exactly that "
        "part of the class, and no shortcut is it",
        "planted word",
        missed_although_it_would_be_found,
    ),
    Verdict(
        "This is a shortcut (any finding of this kind)",
        "labels are shuffled",
        "audit",
        shortcut_in_shuffled_labels,
        n_generated=40,
    ),
    Verdict(
        "A token predicts the label (q < 0.05; any)",
        "labels are shuffled",
        "audit",
        token_in_shuffled_labels,
        n_generated=40,
    ),
    Verdict(
        "… alone predicts … of test labels",
        "labels are shuffled",
        "audit",
        alone_in_shuffled_labels,
        n_generated=40,
    ),
    Verdict(
        "… a label that models trained without them contradict: labels that were right",
        "one label in twenty is turned, or a tenth of one class is called another; labels that "
        "were wrong before count as right, so this is an upper bound",
        "accused document",
        wrong_label_although_right,
        n_generated=20,
    ),
    Verdict(
        "… a label that models … contradict, of a class that cannot be predicted",
        "3% of documents of all classes are called “other”",
        "document of that class",
        accused_in_unlearnable_class,
    ),
    Verdict(
        "Drift (any finding of this kind)",
        "the given split is random",
        "audit",
        drift_in_random_split,
        n_generated=40,
    ),
)
