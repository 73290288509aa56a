"""Test documents that occur in the training data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tokensieve.auditing.checks.api import (
    AuditContext,
    Check,
    ConcernedDocuments,
    Excerpt,
    Findings,
    Labels,
    Preferences,
    Share,
)
from tokensieve.auditing.copies import near_duplicates, originals, removal_advice
from tokensieve.wording import noun, percent, plural, verb

MAX_TWINS = 2  # pairs of copies shown
NEARLY_THE_SAME = 0.005  # accuracies that a page shows as the same, or nearly


@dataclass(frozen=True, eq=False)
class _Leaks:
    """Which documents occur on both sides.

    Attributes:
        is_exact: test documents whose text is also a training document, shape (n_test,).
        is_leaked: the same, near copies included, shape (n_test,).
        is_source: training documents that a test document repeats, shape (n_train,).
        n_leaked, n_exact: how many test documents, over all of them.
    """

    is_exact: NDArray[np.bool_]
    is_leaked: NDArray[np.bool_]
    is_source: NDArray[np.bool_]
    n_leaked: int
    n_exact: int


class Leak(Check):
    """Test documents whose text, or nearly their text, is among the training documents."""

    name = "leak"
    title = "Leak across the split"
    about = (
        "Test documents that also occur in the training data, in every text field: word for word, "
        "with one word added or removed (from 6 words on) or replaced or moved (from 15 words on), "
        "or with at least 80% of their three-word sequences in common (MinHash)."
    )
    action = (
        "Where the split is given, remove the copies from one side. Otherwise --duplicates=drop "
        "removes exact copies; remove near copies by hand, or keep all copies on one side with "
        "--by COLUMN if a column tells which documents belong together. Until then, the test "
        "accuracy may be inflated."
    )
    tasks = (Labels,)

    def find(self, audit: AuditContext) -> Findings:
        leaks = _leaks(audit)
        if not leaks.n_leaked:
            return
        n_test = audit.totals["documents"]["test"]
        share = Share.count(leaks.n_leaked, n_test)
        duplicate = verb(leaks.n_leaked, "duplicate")
        if leaks.n_exact < leaks.n_leaked:
            duplicate += f" or nearly {duplicate}"
        details = [_copies_sentence(leaks)]
        action = removal_advice(audit, leaks.n_exact, leaks.n_leaked - leaks.n_exact)
        if audit.test_given:  # each side is read on its own, and `--duplicates` drops within a side
            action = (
                "Remove these documents from the test data or their copies from training; "
                "findings.csv lists both."
            )
            if leaks.n_leaked == n_test:
                action = "Choose other test data: nothing would remain without the copies."
        until = "Until then, the test accuracy may be inflated."
        is_sample = bool(audit.task.known_totals)
        if not is_sample and not leaks.is_leaked.all():
            accuracy = _accuracy_on_others(audit, leaks)
            details.append(accuracy.detail)
            until = accuracy.advice
        rows = [
            audit.test.corpus.rows_of(np.flatnonzero(leaks.is_leaked), "test"),
            audit.train.corpus.rows_of(np.flatnonzero(leaks.is_source)),
        ]
        yield self.finding(
            audit,
            severity=share.value,
            headline=(
                f"{plural(leaks.n_leaked, 'test document')} ({percent(share.value)}) {duplicate} "
                "training documents"
            ),
            evidence={"test": share, "identical": Share.count(leaks.n_exact, n_test)},
            documents=ConcernedDocuments(
                total=leaks.n_leaked, rows=pl.concat(rows), examples=_twins(audit, leaks)
            ),
            details=details,
            action=f"{action} {until}",
        )


@dataclass(frozen=True)
class _AccuracyOnOthers:
    """What the accuracy on the test documents without copies says, and what to do until then."""

    detail: str
    advice: str


def _leaks(audit: AuditContext) -> _Leaks:
    """The copies across the split."""
    train, test = audit.train.corpus, audit.test.corpus
    n_train = len(train.texts)
    is_exact = test.keys.is_in(train.keys.implode()).to_numpy()
    is_leaked = is_exact.copy()
    is_source = train.keys.is_in(test.keys.implode()).to_numpy()
    near = near_duplicates(audit)
    repeated = originals(audit)
    if near is not None and repeated is not None:
        is_leaked |= repeated[n_train:] >= 0
        is_source = is_source | np.isin(near[:n_train], near[n_train:][is_leaked])
    return _Leaks(
        is_exact=is_exact,
        is_leaked=is_leaked,
        is_source=is_source,
        n_leaked=audit.total("leaked", int(is_leaked.sum())),
        n_exact=audit.total("leaked_copies", int(is_exact.sum())),
    )


def _copies_sentence(leaks: _Leaks) -> str:
    """A sentence with the number of exact copies, and how near copies resemble their source."""
    n_near = leaks.n_leaked - leaks.n_exact
    documents = plural(leaks.n_leaked, "test document")
    if not leaks.n_exact:
        if n_near == 1:
            return f"this test document {_nearly_the_same(1)}; it is no exact copy"
        return f"these {documents} {_nearly_the_same(n_near)}; none is an exact copy"
    are = verb(leaks.n_exact, "are exact copies", "is an exact copy")
    if not n_near:
        subject = noun(leaks.n_exact, "this test document", f"these {documents}")
        return f"{subject} {are} of a training document"
    others = noun(n_near, "the other", "the others")
    return (
        f"{leaks.n_exact:,} of these {documents} {are} of a training document; {others} "
        f"{_nearly_the_same(n_near)}"
    )


def _nearly_the_same(n: int) -> str:
    """What n near copies have in common with a training document."""
    have = verb(n, "have", "has")
    differ = verb(n, "differ")
    share = verb(n, "share")
    their = noun(n, "its", "their")
    return (
        f"{have} the same words as a training document (but other capitals or punctuation), "
        f"{differ} from one in one word, or {share} at least 80% of {their} three-word sequences "
        "with one"
    )


def _accuracy_on_others(audit: AuditContext, leaks: _Leaks) -> _AccuracyOnOthers:
    """The accuracy on the test documents without copies, beside that on all."""
    is_right = audit.task.correct(audit.learned.f, audit.test.counts)
    unaffected = Share.over(is_right[~leaks.is_leaked], None)
    everywhere = float(is_right.mean())
    detail = (
        f"the accuracy is {unaffected} on the other test documents and {percent(everywhere)} on "
        "all test documents"
    )
    if abs(unaffected.value - everywhere) < NEARLY_THE_SAME:
        return _AccuracyOnOthers(
            detail, f"Without them the accuracy is nearly the same ({percent(unaffected.value)})."
        )
    return _AccuracyOnOthers(
        detail,
        "Until then, use the accuracy on the other test documents: "
        f"{percent(unaffected.value)}, not {percent(everywhere)}.",
    )


def _twins(audit: AuditContext, leaks: _Leaks) -> list[Excerpt]:
    """Test documents, each followed by the training document it repeats; near copies first."""
    repeated = originals(audit)
    if repeated is None:
        return []
    n_train = len(audit.train.corpus.texts)
    leaked = np.flatnonzero(leaks.is_leaked)
    near_first = leaked[np.argsort(leaks.is_exact[leaked], kind="stable")]
    excerpts: list[Excerpt] = []
    for document in near_first[:MAX_TWINS].tolist():
        source = int(repeated[n_train + document])
        excerpts += [audit.excerpt(document, "test"), audit.excerpt(source)]
    return excerpts


class PairLeak(Check):
    """Test pairs whose prompt, or both answers, are among the training pairs."""

    name = "leak"
    title = "Leak across the split"
    about = "Test pairs that share their prompt, or both answers, with training pairs."
    action = (
        "Put all pairs of a prompt on one side of the split (--by). Until then, the test accuracy "
        "may be inflated."
    )
    tasks = (Preferences,)

    def find(self, audit: AuditContext) -> Findings:
        counts = audit.train.corpus.reading.counts
        n_pairs = len(audit.test.corpus.labels) // 2
        n_identical = counts["test_overlap"]
        n_shared = max(counts.get("shared_units", 0), n_identical)
        if not n_shared:
            return
        share = Share.count(n_shared, n_pairs)
        identical = Share.count(n_identical, n_pairs)
        pairs = plural(n_shared, "test pair")
        yield self.finding(
            audit,
            severity=share.value,
            headline=(
                f"{pairs} ({percent(share.value)}) {verb(n_shared, 'share')} the prompt, or both "
                "answers, with training pairs"
            ),
            evidence={"pairs": share, "identical": identical},
            documents=ConcernedDocuments(total=n_shared),
            details=(
                f"{identical.found:,} of these {pairs} share both answers with a training pair",
            ),
        )
