"""Audits of several labels of the same documents, side by side."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, ClassVar

import polars as pl

from tokensieve.auditing.report import file_name
from tokensieve.auditing.result import Audit
from tokensieve.auditing.sentences import plural
from tokensieve.blocks import Block, Column, Report, Table, Text
from tokensieve.escape import shown
from tokensieve.evidence.shares import Share
from tokensieve.files import Content, csv_table


@dataclass(frozen=True)
class LabelAudits:
    """All of them in short.

    Attributes:
        name: the source.
        version: of this package.
        rows: an entry of summary.json for each label (`label_row`).
        left_out: labels of too few documents, or of all but a few → documents that have them.
        seconds: of each stage.
    """

    own_files: ClassVar[str] = r"labels\.csv"
    name: str
    version: str
    rows: tuple[dict[str, Any], ...]
    left_out: dict[str, int]
    seconds: dict[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The content of summary.json."""
        return {"name": self.name, "version": self.version, "labels": list(self.rows), "left_out": self.left_out}

    def to_frame(self) -> pl.DataFrame:
        """The same as a table, a row per label."""
        return pl.DataFrame(self.rows, infer_schema_length=None)

    def files(self) -> dict[str, Content]:
        """File name → content of everything but the page."""
        summary = json.dumps(self.to_dict(), ensure_ascii=False, indent=1)
        return {"labels.csv": csv_table(self.to_frame()), "summary.json": summary}

    def report(self) -> Report:
        """A row for each label; their audits are in folders of their own."""
        n = sum(row["findings"] > 0 for row in self.rows)
        columns = (
            Column("Label"),
            Column("Base rate", "percent"),
            Column("Accuracy", "percent"),
            Column("Findings", "count"),
            Column("Most serious"),
            Column("Report", "link"),
        )
        rows = [
            (
                shown(row["label"], 40),
                row["base_rate"],
                row["test_accuracy"],
                row["findings"],
                shown(row["headline"], 200) + (" (over the limit of --fail-on)" if row["exceeded"] else ""),
                f"{row['folder']}/report.html",
            )
            for row in self.rows
        ]
        blocks: list[Block] = [
            Text("Open the report of a label, in the folder that the last column names."),
            Table("", columns, rows, first=30, searchable=True),
        ]
        if self.left_out:
            names = ", ".join(f"{shown(name, 20)} ({n:,})" for name, n in list(self.left_out.items())[:20])
            text = f"Not audited, because too few documents have them or lack them: {names}."
            blocks.append(Text(text, style="warning"))
        verdict = f"{plural(n, 'label')} of {len(self.rows):,} {'has' if n == 1 else 'have'} findings."
        return Report(
            "audit", f"Audits of {shown(file_name(self.name), 60)}", verdict, tuple(blocks), {"version": self.version}
        )


def label_row(label: str, folder: str, audit: Audit) -> dict[str, Any]:
    """One label's audit in short.

    Args:
        label: its name.
        folder: of its audit, beside the index.
        audit: of documents with and without it.
    """
    sizes = list(audit.class_documents.values())
    first = audit.findings[0] if audit.findings else None
    base = Share.count(sizes[1] if len(sizes) == 2 else max(sizes), sum(sizes))
    return {
        "label": label,
        "folder": folder,
        "documents": sum(audit.documents.values()),
        "base_rate": base.value,
        "test_accuracy": audit.accuracy.value,
        "majority_accuracy": audit.majority_accuracy,
        "findings": len(audit.findings),
        "first_finding": first and first.kind,
        "headline": first.headline if first else "",
        "exceeded": audit.fails,
    }
