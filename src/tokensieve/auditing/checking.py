"""Runs the checks of an audit, drops findings that others explain, and orders the rest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from tokensieve.auditing.checks.api import AuditContext, Check
from tokensieve.auditing.findings import Finding
from tokensieve.progress import in_background


@dataclass(frozen=True)
class _Reported:
    """A finding with the check that reported it."""

    check: Check
    finding: Finding


def find_all(audit: AuditContext, checks: Iterable[Check]) -> tuple[Finding, ...]:
    """The findings of all checks that apply, most serious first."""
    reported = _run([check for check in checks if _applies(check, audit)], audit)
    remaining = [
        candidate for candidate in reported if not _is_explained(candidate, reported, audit)
    ]
    remaining.sort(key=_rank)
    return tuple(candidate.finding for candidate in remaining)


def _applies(check: Check, audit: AuditContext) -> bool:
    is_for_task = isinstance(audit.task, check.tasks) and check.name not in audit.task.left_out
    return is_for_task and (audit.settings.thorough or not check.thorough)


def _run(checks: Sequence[Check], audit: AuditContext) -> list[_Reported]:
    """Run all checks in two threads; return the findings of each, in the order of the checks."""
    remaining = iter(enumerate(checks))

    def run_remaining() -> dict[int, list[Finding]]:
        """The findings of each remaining check, by its number; an error is noted with the name of
        the check.
        """
        findings = {}
        for number, check in remaining:
            try:
                findings[number] = list(check.find(audit))
            except Exception as error:
                error.add_note(f"in the check {check.name!r} of {type(check).__module__}")
                raise
        return findings

    second_thread = in_background(run_remaining)
    findings = run_remaining() | second_thread.result()
    return [
        _Reported(check, finding)
        for number, check in enumerate(checks)
        for finding in findings[number]
    ]


def _is_explained(one: _Reported, reported: Sequence[_Reported], audit: AuditContext) -> bool:
    """Whether a finding adds nothing to those that its check yields to (`Check.yields_to`)."""
    explaining = [rival.finding for rival in reported if rival.check.name in one.check.yields_to]
    if not explaining:
        return False
    token = one.finding.tokens[0]
    if any(token in finding.tokens for finding in explaining):
        return True
    counts = audit.train.counts
    types = np.flatnonzero(counts.tokens == token)
    if not len(types) or one.finding.label not in counts.classes:
        return False

    training = [finding.rows.filter(pl.col("part") == "train")["row"] for finding in explaining]
    is_covered = np.isin(audit.train.corpus.rows, pl.concat(training))
    label = counts.classes.index(one.finding.label)
    documents = counts.holders(types)[0]
    return not audit.predicts_beyond(documents, label, is_covered)


def _rank(one: _Reported) -> tuple[float, bool]:
    """Sorts by severity; of equally serious findings, what only describes the data comes last."""
    return -one.finding.severity, one.check.descriptive
