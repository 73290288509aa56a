"""Documents that may carry the wrong label, and preferences that may be reversed.

`tokensieve.evidence.label_issues` has the formula. A pair is one document twice over, its preferred
answer of class "chosen" and the other of class "rejected"; by symmetry both have the same
probability and the same threshold, the mean of σ(m) over the pairs, m being the margin given by a
model that never saw the pair's group. As only differences are seen, the scale of m, which a model
of half the pairs has not settled, is that of least loss over all of them: one number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tokensieve.arrays import Floats
from tokensieve.auditing.checks.api import (
    AuditContext,
    Check,
    ConcernedDocuments,
    Excerpt,
    Findings,
    Labels,
    Preferences,
    Share,
    computed_once,
)
from tokensieve.evidence.label_issues import LabelIssues, OwnProbabilities, find_label_issues
from tokensieve.model.attention import Model
from tokensieve.read.corpus import Corpus
from tokensieve.task.tasks import Task
from tokensieve.text.vocabulary import CountedCorpus
from tokensieve.wording import percent, plural, verb

MAX_LISTED = 1000  # rows of label-issues.csv
MAX_EXAMPLES = 5
EXAMPLE_CHARACTERS = 210  # whether a label is wrong takes more reading than another finding
# margin of an issue that is counted; the others are only documents that are hard to predict
CLEAR_MARGIN = 0.8
WEIGHT = 0.3  # of a document whose prediction is in doubt
MARGIN_DIGITS = 4

ProbabilitiesOf = Callable[[CountedCorpus], Floats]
"""Out-of-fold probabilities of some documents."""


@dataclass(frozen=True, eq=False)
class AuditLabelIssues:
    """The label issues of an audit.

    Attributes:
        at_hand: those among the documents at hand.
        n_clear: how many issues are clear, among all documents.
        listed: row, label, looks_like, margin, against (the tokens that speak most against the
            label) of the first thousand.
        not_judged: classes whose labels were not judged, because the models cannot predict them.
    """

    at_hand: LabelIssues
    n_clear: int
    listed: pl.DataFrame
    not_judged: tuple[str, ...] = ()


@computed_once
def label_issues(audit: AuditContext) -> AuditLabelIssues:
    """Training documents that may have the wrong label.

    `task.total` computes a number (or a table) of each part of the documents and adds them up;
    on a cluster the parts are on other machines, and only one of them is at hand here.
    """
    task = audit.task
    train = audit.train
    model = audit.learned.model
    probabilities_of = task.folds(train, model, audit.learned.settings)
    if probabilities_of is None:  # too few documents for models that did not see some of them
        return AuditLabelIssues(LabelIssues.none(), 0, pl.DataFrame())

    # how sure the models usually are of each class: the threshold of an issue
    thresholds = task.total(train, _own_probabilities, probabilities_of)
    small_model = replace(model, vocabulary=None)  # it may travel to other machines
    clearest = task.total(train, _clearest, probabilities_of, thresholds, task, small_model)
    at_hand = find_label_issues(probabilities_of(train), train.counts.labels, thresholds, task.size)
    listed = clearest.table.with_columns(pl.col("margin").round(MARGIN_DIGITS))
    not_judged = np.flatnonzero(~thresholds.is_learned).tolist()
    return AuditLabelIssues(
        at_hand, clearest.n_clear, listed, tuple(audit.class_names[k] for k in not_judged)
    )


@dataclass(frozen=True, eq=False)
class _Clearest:
    """The clearest issues of some documents; `a + b` are those of both.

    Attributes:
        n_clear: how many are clear.
        table: the first of them, by margin.
    """

    n_clear: int
    table: pl.DataFrame

    def __add__(self, other: _Clearest) -> _Clearest:
        rows = pl.concat([self.table, other.table])
        ordered = rows.sort("margin", descending=True, maintain_order=True)
        return _Clearest(self.n_clear + other.n_clear, ordered.head(MAX_LISTED))


def _own_probabilities(part: CountedCorpus, probabilities_of: ProbabilitiesOf) -> OwnProbabilities:
    return OwnProbabilities.of(probabilities_of(part), part.counts.labels)


def _clearest(
    part: CountedCorpus,
    probabilities_of: ProbabilitiesOf,
    thresholds: OwnProbabilities,
    task: Task,
    model: Model,
) -> _Clearest:
    """The clearest issues among some documents."""
    counts = replace(part.counts, tokens=model.tokens)
    issues = find_label_issues(probabilities_of(part), counts.labels, thresholds, task.size)
    documents = issues.documents[:MAX_LISTED]
    looks_like = issues.looks_like[:MAX_LISTED]
    class_names = pl.Series(list(map(str, counts.classes)), dtype=pl.String)
    against = task.opposing_tokens(counts, model, documents, looks_like)
    table = part.corpus.rows_of(documents).select(
        "row",
        "label",
        looks_like=class_names.gather(looks_like),
        margin=issues.margin[:MAX_LISTED],
        against=pl.Series(against, dtype=pl.String),
    )
    return _Clearest(int(_is_clear(issues, part.corpus).sum()), table)


def _is_clear(issues: LabelIssues, corpus: Corpus) -> NDArray[np.bool_]:
    """Mark the issues that are clear; of a tie, either order of the answers is right."""
    return (issues.margin >= CLEAR_MARGIN) & ~corpus.tied[issues.documents]


class WrongLabels(Check):
    """Training documents whose label the others contradict."""

    name = "labels"
    title = "Labels to check"
    about = (
        "Training documents for which cross-validated models confidently predict another class: "
        f"its probability is at least {CLEAR_MARGIN} higher than that of the label (confident "
        "learning). Labels of a class that these models predict for less than half of its "
        "documents, or by chance, are not judged."
    )
    action = (
        "Read the rows in label-issues.csv from the top and correct those that are wrong. A label "
        "can be right although its text is unusual for its class."
    )
    tasks: ClassVar[tuple[type[Task], ...]] = (Labels,)
    thorough = True
    noun: ClassVar[str] = "document"

    def find(self, audit: AuditContext) -> Findings:
        issues = label_issues(audit)
        if not issues.n_clear:
            return
        clear = issues.at_hand.where(_is_clear(issues.at_hand, audit.train.corpus))
        share = self.share(audit, clear, issues.n_clear)
        yield self.finding(
            audit,
            severity=WEIGHT * share.value,
            headline=self.headline(issues.n_clear, share),
            documents=ConcernedDocuments(
                clear.documents, total=issues.n_clear, examples=_excerpts(audit, clear)
            ),
            evidence={f"{self.noun}s": share},
            action=_action(self.action, issues),
            details=(self.reason(issues.n_clear),),
        )

    def headline(self, n: int, share: Share) -> str:
        """A sentence with the number of labels that cross-validated models contradict."""
        documents = plural(n, "training document")
        have = verb(n, "have", "has")
        them = "it" if n == 1 else "them"
        return (
            f"{documents} ({percent(share.value)}) {have} a label that models trained without "
            f"{them} contradict"
        )

    def share(self, audit: AuditContext, clear: LabelIssues, n_clear: int) -> Share:
        """The fraction of training documents concerned."""
        return Share.count(n_clear, int(audit.class_sizes.sum()))

    def reason(self, n: int) -> str:
        """A sentence that says why these documents are listed."""
        subject = "this document" if n == 1 else f"these {n:,} documents"
        return (
            f"models trained without {subject} give another class a probability at least "
            f"{CLEAR_MARGIN} higher than that of the given label"
        )


class ReversedPairs(WrongLabels):
    """Training pairs that look as if the rejected answer were the better one."""

    title = "Preferences to check"
    about = (
        "Training pairs in which a model trained without the pairs of their prompt prefers the "
        "rejected answer with a probability of at least 0.9."
    )
    action = (
        "Read the rows in label-issues.csv from the top, and reverse or remove those that are "
        "wrong."
    )
    tasks = (Preferences,)
    noun = "pair"

    def headline(self, n: int, share: Share) -> str:
        """A sentence with the number of preferences that cross-validated models contradict."""
        pairs = plural(n, "training pair")
        have = verb(n, "have", "has")
        return (
            f"{pairs} ({percent(share.value)}) {have} a preference that models trained without "
            "their prompts contradict"
        )

    def share(self, audit: AuditContext, clear: LabelIssues, n_clear: int) -> Share:
        """The fraction of training pairs concerned, with an interval over prompts."""
        corpus = audit.train.corpus
        first_answers = audit.task.items(len(corpus.labels))
        return Share.over(np.isin(first_answers, clear.documents), audit.task.units(corpus))

    def reason(self, n: int) -> str:
        """A sentence that says why these pairs are listed."""
        subject = "this pair" if n == 1 else f"these {n:,} pairs"
        return (
            f"for {subject}, models trained without the pairs of their prompt prefer the rejected "
            "answer with a probability of at least 0.9"
        )


def _action(action: str, issues: AuditLabelIssues) -> str:
    """The action, and which rows of the file it is about, if the file has more."""
    n_listed_clear = int((issues.listed["margin"] >= CLEAR_MARGIN).sum())
    all_are_first = issues.n_clear == n_listed_clear  # else ties are among them
    if not all_are_first or n_listed_clear == issues.listed.height:
        return action
    rows_phrase = (
        "This is the first" if issues.n_clear == 1 else f"These are the first {issues.n_clear:,}"
    )
    return (
        f"{action} {rows_phrase} of its {issues.listed.height:,} rows; the others are less certain."
    )


def _excerpts(audit: AuditContext, clear: LabelIssues) -> list[Excerpt]:
    """The beginnings of the clearest documents, with the class that each looks like."""
    class_names = audit.class_names
    return [
        audit.excerpt(document, looks_like=class_names[k], characters=EXAMPLE_CHARACTERS)
        for document, k in zip(
            clear.documents[:MAX_EXAMPLES].tolist(),
            clear.looks_like[:MAX_EXAMPLES].tolist(),
            strict=True,
        )
    ]
