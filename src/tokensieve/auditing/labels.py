"""Audits of several labels of the same documents, side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from tokensieve.auditing.findings import Finding
from tokensieve.auditing.result import Audit
from tokensieve.evidence.shares import Share


@dataclass(frozen=True)
class LabelRow:
    """One label's audit in short.

    Attributes:
        label: its name.
        folder: of its audit, beside the index.
        documents: training and test documents.
        base: share of the training documents of the second of two classes ("yes"), or of the largest of more.
        accuracy: test documents answered right.
        majority: share of them that the largest class is.
        findings: how many.
        first: the gravest.
        exceeded: whether it exceeds what `--fail-on` allows.
    """

    label: str
    folder: str
    documents: int
    base: Share
    accuracy: Share
    majority: float
    findings: int
    first: Finding | None
    exceeded: bool

    @classmethod
    def of(cls, label: str, folder: str, audit: Audit) -> LabelRow:
        """What an audit says in short."""
        sizes = list(audit.class_documents.values())
        train, test = audit.documents["train"], audit.documents["test"]
        return cls(
            label, folder, train + test, Share.count(sizes[1] if len(sizes) == 2 else max(sizes), sum(sizes)),
            audit.accuracy, audit.majority_accuracy, len(audit.findings),
            audit.findings[0] if audit.findings else None, audit.fails,
        )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """An entry of summary.json."""
        return {
            "label": self.label, "folder": self.folder, "documents": self.documents, "base_rate": self.base.value,
            "test_accuracy": self.accuracy.value, "majority_accuracy": self.majority, "findings": self.findings,
            "first_finding": None if self.first is None else self.first.kind, "exceeded": self.exceeded,
        }  # fmt: skip


@dataclass(frozen=True)
class LabelAudits:
    """All of them.

    Attributes:
        name: the source.
        version: of this package.
        rows: one per label.
        left_out: labels of too few documents, or of all but a few → documents that have them.
    """

    name: str
    version: str
    rows: tuple[LabelRow, ...]
    left_out: dict[str, int]

    def to_dict(self) -> dict[str, Any]:
        """The content of summary.json."""
        rows = [row.to_dict() for row in self.rows]
        return {"name": self.name, "version": self.version, "labels": rows, "left_out": self.left_out}

    def to_frame(self) -> pl.DataFrame:
        """The same as a table, a row per label."""
        return pl.DataFrame([row.to_dict() for row in self.rows], infer_schema_length=None)
