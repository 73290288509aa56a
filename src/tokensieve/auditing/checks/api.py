"""What a check is written against: `AuditContext` is what it reads, `Finding` what it yields.

A check is a file in this folder with a subclass of `Check`; the registry finds it there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tokensieve.arrays import Ints
from tokensieve.auditing.context import AuditContext, computed_once
from tokensieve.auditing.findings import Finding
from tokensieve.evidence.intervals import Share
from tokensieve.task.tasks import Labels, Preferences, Task
from tokensieve.text.excerpts import Excerpt

__all__ = [
    "MAX_EXAMPLES",
    "AuditContext",
    "Check",
    "ConcernedDocuments",
    "Excerpt",
    "Finding",
    "Findings",
    "Labels",
    "Preferences",
    "Share",
    "computed_once",
]
MAX_EXAMPLES = 3  # of a finding
Findings = Iterable[Finding]
Places = Ints | NDArray[np.bool_] | Sequence[int]


@dataclass(frozen=True, eq=False)
class ConcernedDocuments:
    """The documents that a finding is about, and what a report shows of them.

    Attributes:
        training: those of the training documents, as their places or a mask over all of them.
        total: how many documents are concerned, if `training` does not hold them all: because some
            are test documents, or because the documents at hand are a sample.
        rows: a table of token, part, row and label, instead of one made from `training`.
        examples: texts to show (`AuditContext.excerpt`), instead of the first of `training`.
    """

    training: Places = ()
    total: int | None = None
    rows: pl.DataFrame | None = None
    examples: Iterable[Excerpt] | None = None


class Check(ABC):
    """One kind of finding, from its detection to its wording.

    A subclass sets the attributes below and implements `find`.

    Attributes:
        name: the kind of its findings in findings.json, and the name for `--fail-on NAME=…`.
        title: its heading.
        about: what it looks for, with its thresholds, in one or two sentences; its glossary entry.
        action: what to do about its findings.
        tasks: the tasks that it applies to.
        thorough: whether it is slow because it trains models; `Settings.thorough=False` skips it.
        descriptive: whether it describes the data or habits of its writers, and names nothing that
            a model can exploit or a person should correct. Of equally serious findings, its own
            come last.
        exploitable: whether its findings name something by which a model can predict the label
            without the subject. Beside one, no report says that no shortcut was found.
        signs: how the tokens of all its findings differ from ordinary words (`Finding.signs`).
        yields_to: names of checks whose findings explain this one's. A finding is dropped if one of
            those is about its first token, or about documents without which that token would
            predict its class less than half as well.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    about: ClassVar[str]
    action: ClassVar[str]
    tasks: ClassVar[tuple[type[Task], ...]] = (Labels, Preferences)
    thorough: ClassVar[bool] = False
    descriptive: ClassVar[bool] = False
    exploitable: ClassVar[bool] = False
    signs: ClassVar[tuple[str, ...]] = ()
    yields_to: ClassVar[tuple[str, ...]] = ()

    @property
    def glossary_entry(self) -> str:
        """Its entry in the documentation, in Markdown."""
        tasks = ""
        if len(self.tasks) == 1:
            tasks = f" ({self.tasks[0].__name__.lower()} only)"
        return f"**{self.title}**{tasks}, `{self.name}`\n: {self.about} {self.action}\n"

    @abstractmethod
    def find(self, audit: AuditContext) -> Findings:
        """Search the audited data; yield a `Finding` for each thing to act on."""

    def finding(
        self,
        audit: AuditContext,
        severity: float,
        headline: str,
        documents: ConcernedDocuments | Places = (),
        *,
        label: str = "",
        tokens: Sequence[str] = (),
        evidence: Mapping[str, Share] | None = None,
        details: Sequence[str] = (),
        action: str = "",
    ) -> Finding:
        """A finding of this check about some documents.

        Args:
            audit: what was checked.
            severity: roughly the fraction of documents whose prediction the finding puts in doubt:
                documents concerned × how much of their prediction depends on it. From 0.05 a
                finding is "high", below 0.01 it is "low"; within a level it decides the order.
            headline: one sentence with its number, without a full stop.
            documents: the training documents concerned, as their places or a mask over all of them;
                a `ConcernedDocuments` if there are others, or other examples are to be shown.
            label: the class concerned.
            tokens: the tokens concerned, the one that the headline names first.
            evidence: name → fraction, with its interval; `--fail-on NAME=5%` compares the largest.
            details: further sentences without a full stop, listed below the headline.
            action: instead of that of the check.
        """
        if not isinstance(documents, ConcernedDocuments):
            documents = ConcernedDocuments(documents)
        places = _as_places(documents.training)
        total = documents.total
        if total is None:
            total = len(places)
        rows = documents.rows
        if rows is None:
            rows = audit.train.corpus.rows_of(places)
        examples = documents.examples
        if examples is None:
            examples = _excerpts(audit, places[:MAX_EXAMPLES], tokens[:1])
        return Finding(
            kind=self.name,
            severity=float(severity),
            label=label,
            tokens=tuple(tokens),
            signs=self.signs,
            evidence=dict(evidence or {}),
            documents=total,
            rows=rows,
            examples=tuple(examples),
            title=self.title,
            headline=headline,
            details=tuple(details),
            action=action or self.action,
            exploitable=self.exploitable,
        )


def _as_places(documents: Places) -> Ints:
    """Places of documents, ascending if they were given as a mask."""
    places = np.asarray(documents)
    if places.dtype == np.bool_:
        places = np.flatnonzero(places)
    return places.astype(np.int64)


def _excerpts(audit: AuditContext, documents: Ints, tokens: Sequence[str]) -> list[Excerpt]:
    """The places of a token in training documents; of no token, the beginnings of the documents."""
    if not tokens:
        return [audit.excerpt(i) for i in documents.tolist()]
    corpus = audit.train.corpus
    return [Excerpt.of(corpus, i, tokens, audit.tokenizer) for i in documents.tolist()]
