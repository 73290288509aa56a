"""What the audits of classes and of scores have in common."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import polars as pl

from tokensieve import __version__
from tokensieve.auditing.balance_plan import BalancePlan
from tokensieve.auditing.findings import Finding, rows_of_findings
from tokensieve.auditing.limits import kinds_over
from tokensieve.auditing.settings import Settings
from tokensieve.task.tasks import OfCorpusModel


@dataclass(frozen=True)
class Invocation:
    """How a command was called: what it read (one source, or several) and the folder it wrote."""

    source: str | list[str]
    out: str


class AnyAudit(OfCorpusModel):
    """The findings of an audit, its limits and its settings."""

    own_files: ClassVar[str] = (  # of an earlier audit; others in the folder are the user's
        r"card\.md|findings\.(sarif|junit\.xml)|"
        r"review-(cleanlab\.csv|label-studio\.json|argilla\.jsonl|doccano\.jsonl)|"
        r"(over-budget|label-issues|environments|pairs|test-results|test-predictions)\.csv|"
        r"pictures/((headline|value|score|top|alarm)(-class-\d+)?|alignment)\.(svg|png|pdf|csv)"
    )
    settings: Settings
    tokens: pl.DataFrame
    findings: tuple[Finding, ...]
    label_issues: pl.DataFrame
    seconds: dict[str, float]
    invocation: Invocation | None
    test_given: bool
    balance_plan: BalancePlan

    @property
    def version(self) -> str:
        """The version of this package."""
        return __version__

    @property
    def notes(self) -> list[str]:
        """Sentences for the user on what happened while the source was read."""
        return self.learned.notes

    @property
    def shortcuts(self) -> list[Finding]:
        """The findings that are shortcuts, most serious first."""
        return [finding for finding in self.findings if finding.kind == "shortcut"]

    @cached_property
    def over_budget(self) -> pl.DataFrame:
        """The rows of `tokens` that exceed `settings.budget`; none where only kinds of findings
        have a limit."""
        return self.tokens.clear()

    @cached_property
    def finding_rows(self) -> pl.DataFrame:
        """A table of every document of every finding: finding (its place, from 1), kind, tokens,
        part, row, label."""
        return rows_of_findings(self.findings)

    @property
    def exceeded(self) -> tuple[str, ...]:
        """Kinds of findings that exceed `settings.budget`."""
        if self.settings.budget is None:
            return ()
        return kinds_over(self.settings.budget, self.findings)

    @property
    def fails(self) -> bool:
        """Whether a kind of finding exceeds its limit."""
        return bool(self.exceeded)

    def settings_dict(self) -> dict[str, Any]:
        """The settings, with the columns that were read and how the command was called.

        The folder is not named: the same data gives the same file, wherever it is written.
        """
        columns = list(self.learned.train.corpus.reading.columns)
        written = self.settings.to_dict() | {"columns": columns} | self.settings.source_options()
        if self.invocation is not None:
            written["source"] = self.invocation.source
        return written

    def small_print(self) -> dict[str, object]:
        """The last lines of a report: version, seed and settings."""
        return {
            "version": self.version,
            "seed": self.settings.seed,
            "settings": self.settings_dict(),
        }

    def findings_dict(self) -> dict[str, Any]:
        """The content of findings.json."""
        entries = []
        for finding in self.findings:
            entry = finding.to_dict()
            if finding.kind == "shortcut":
                entry["mask"] = list(finding.mask)
            entries.append(entry)
        return {"name": self.name, "version": self.version, "findings": entries}

    def to_frame(self) -> pl.DataFrame:
        """The table of tokens: a row per token type, and per class if there are classes."""
        return self.tokens
