"""Test documents that occur in the training data."""

from __future__ import annotations

import numpy as np
import polars as pl

from tokensieve.auditing.checks.api import AuditContext, Check, Findings, Labels, Preferences, Share
from tokensieve.auditing.copies import near_duplicates, removal_advice
from tokensieve.wording import percent, plural, verb


class Leak(Check):
    """Test documents whose text, or nearly their text, is among the training documents."""

    name = "leak"
    title = "Leak across the split"
    about = (
        "Test documents that also occur in the training data, word for word or with at least 80% of their three-word sequences in "
        "common (MinHash)."
    )
    action = (
        "Where the split is given, remove the copies from one side. Otherwise --duplicates=drop removes exact copies; remove near "
        "copies by hand, or keep all copies on one side with --by COLUMN if a column tells which documents belong together. Until "
        "then, the test accuracy may be inflated."
    )
    tasks = (Labels,)

    def find(self, data: AuditContext) -> Findings:
        train, test, near = data.train.corpus, data.test.corpus, near_duplicates(data)
        same = test.keys.is_in(train.keys.implode()).to_numpy()
        known, twin = same.copy(), train.keys.is_in(test.keys.implode()).to_numpy()
        n = len(train.texts)
        if near is not None:
            known |= np.isin(near[n:], near[:n])
            twin |= np.isin(near[:n], near[n:])
        rows = np.flatnonzero(known)
        leaked, total = data.total("leaked", len(rows)), data.totals["documents"]["test"]
        if not leaked:
            return
        share = Share.count(leaked, total)
        identical = Share.count(data.total("leaked_copies", int(same.sum())), total)
        verb = "duplicate or nearly duplicate" if identical.found < leaked else "duplicate"
        verb = verb if leaked > 1 else verb.replace("duplicate", "duplicates")
        n_rows, copies = plural(leaked, "test document"), identical.found
        alike = f"at least 80% of {'their' if leaked > 1 else 'its'} three-word sequences with"
        said = f"it is not an exact copy; it shares {alike} a training document"
        if copies:
            these = f"all {n_rows}" if leaked > 1 else "it"
            these = f"{copies:,} of {n_rows}" if copies < leaked else these
            said = f"{these} {'is an exact copy' if copies == 1 else 'are exact copies'} of a training document"
            said += f"; the others share {alike} one" * (copies < leaked)
        elif leaked > 1:
            said = f"none is an exact copy of a training document; all {leaked:,} share {alike} one"
        details, pairs = [said], list[tuple[int, int]]()
        action = removal_advice(data, copies, leaked - copies)
        until = "Until then, the test accuracy may be inflated."
        if data.test_given:  # each side is read on its own
            action = "Remove these documents from the test data or their copies from training; findings.csv lists both."
        if (
            not data.task.known_totals and not known.all()
        ):  # else the documents at hand are a sample
            correct = data.task.correct(data.learned.f, data.test.counts)
            rest, every = Share.over(correct[~known], None), percent(float(correct.mean()))
            details.append(
                f"the accuracy is {rest} on the other test documents and {every} on all test documents"
            )
            until = f"Until then, use the accuracy on the other test documents: {percent(rest.value)}, not {every}."
            if abs(rest.value - correct.mean()) < 0.005:
                until = f"Without them the accuracy is nearly the same ({percent(rest.value)})."
        if near is not None:  # each with its twin
            first = rows[np.argsort(same[rows], kind="stable")][:2].tolist()
            pairs = [(i, int(near[n + i])) for i in first if near[n + i] < n]
        yield self.finding(
            data,
            share.value,
            f"{n_rows} ({percent(share.value)}) {verb} training documents",
            evidence={"test": share, "identical": identical},
            n_documents=leaked,
            rows=pl.concat([test.rows_of(rows, "test"), train.rows_of(np.flatnonzero(twin))]),
            examples=tuple(
                one for i, j in pairs for one in (data.excerpt(i, "test"), data.excerpt(j))
            ),
            details=tuple(details),
            action=f"{action} {until}",
        )


class PairLeak(Check):
    """Test pairs whose prompt, or both answers, are among the training pairs."""

    name = "leak"
    title = "Leak across the split"
    about = "Test pairs that share their prompt, or both answers, with training pairs."
    action = "Put all pairs of a prompt on one side of the split (--by). Until then, the test accuracy may be inflated."
    tasks = (Preferences,)

    def find(self, data: AuditContext) -> Findings:
        intake, n = data.train.corpus.reading, len(data.test.corpus.labels) // 2
        shared = max(intake.counts.get("shared_units", 0), intake.counts["test_overlap"])
        if not shared:
            return
        share, identical = Share.count(shared, n), Share.count(intake.counts["test_overlap"], n)
        yield self.finding(
            data,
            share.value,
            f"{plural(shared, 'test pair')} ({percent(share.value)}) {verb(shared, 'share')} the prompt, or both answers, "
            "with training pairs",
            evidence={"pairs": share, "identical": identical},
            n_documents=shared,
            details=(
                f"{identical.found:,} of {plural(shared, 'test pair')} share both answers with a training pair",
            ),
        )
