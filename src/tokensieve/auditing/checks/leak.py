"""Test documents that training has seen."""

from __future__ import annotations

import numpy as np
import polars as pl

from tokensieve.auditing.checks.base import EXAMPLES, AuditData, Check, Findings, Labels, Preferences, Share
from tokensieve.wording import count, percent


class Leak(Check):
    """Test documents whose text, or nearly their text, is among the training documents."""

    name = "leak"
    title = "Leak across the split"
    about = (
        "Test documents that also occur in the training data, word for word or with at least 80% of their word triples in common "
        "(MinHash)."
    )
    action = "Keep each text on one side of the split; until then, test accuracy is too high."
    tasks = (Labels,)

    def find(self, data: AuditData) -> Findings:
        train, test, near = data.train.corpus, data.test.corpus, data.near_duplicates
        same = test.keys.is_in(train.keys.implode()).to_numpy()
        known, twin = same.copy(), train.keys.is_in(test.keys.implode()).to_numpy()
        if near is not None:
            n = len(train.texts)
            known |= np.isin(near[n:], near[:n])
            twin |= np.isin(near[:n], near[n:])
        rows = np.flatnonzero(known)
        if not len(rows):
            return
        share, identical = Share.count(len(rows), len(test.texts)), Share.count(int(same.sum()), len(test.texts))
        nearly = "duplicate or nearly duplicate" if identical.found < len(rows) else "duplicate"
        verb = nearly if len(rows) > 1 else nearly.replace("duplicate", "duplicates")
        exact = f"{count(identical.found, 'exact copy', 'exact copies')} of training documents"
        near_copies = (
            f"{count(len(rows) - identical.found, 'near copy', 'near copies')} (at least 80% of word triples in common)"
        )
        yield self.finding(
            data,
            share.value,
            f"{count(len(rows), 'test document')} ({percent(share.value)}) {verb} training documents",
            evidence={"test": share, "identical": identical},
            total=len(rows),
            rows=pl.concat([test.rows_of(rows, "test"), train.rows_of(np.flatnonzero(twin))]),
            examples=tuple(data.start_of(int(i), "test") for i in rows[:EXAMPLES]),
            details=tuple(line for line in (exact, near_copies) if not line.startswith("0 ")),
        )


class PairLeak(Check):
    """Test pairs whose prompt, or both answers, are among the training pairs."""

    name = "leak"
    title = "Leak across the split"
    about = "Test pairs that share their prompt, or both answers, with training pairs."
    action = "Keep each prompt on one side of the split; until then, test accuracy is too high."
    tasks = (Preferences,)

    def find(self, data: AuditData) -> Findings:
        intake, n = data.train.corpus.intake, len(data.test.corpus.labels) // 2
        shared = max(intake.counts.get("shared_units", 0), intake.counts["test_overlap"])
        if not shared:
            return
        share, identical = Share.count(shared, n), Share.count(intake.counts["test_overlap"], n)
        yield self.finding(
            data,
            share.value,
            f"{count(shared, 'test pair')} ({percent(share.value)}) share{'s' * (shared == 1)} the prompt, or both answers, "
            "with training pairs",
            evidence={"pairs": share, "identical": identical},
            total=shared,
            details=(f"{share.counted} test pairs", f"{identical.found:,} of them with both answers"),
        )
