"""Audits of several labels of the same documents, side by side and in short."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import polars as pl

from tokensieve.auditing.result import Audit
from tokensieve.escape import IN_SENTENCE, IN_TITLE, for_display
from tokensieve.evidence.intervals import Share
from tokensieve.files import Content, csv_table, json_text
from tokensieve.report.blocks import Block, Column, Report, Table, Text
from tokensieve.wording import plural, verb

MAX_LEFT_OUT_NAMED = 20
_COLUMNS = (
    Column("Label"),
    Column("Base rate", "percent"),
    Column("Accuracy", "percent"),
    Column("Largest class", "percent", extra=True),
    Column("Findings", "count"),
    Column("In short"),
    Column("Report", "link"),
)


def label_row(label: str, folder: str, audit: Audit) -> dict[str, Any]:
    """One label's audit in short: of documents with and without it, in a folder beside the
    index."""
    sizes = list(audit.class_documents.values())
    n_with_label = sizes[1] if len(sizes) == 2 else max(sizes)
    first = audit.findings[0] if audit.findings else None
    return {
        "label": label,
        "folder": folder,
        "documents": sum(audit.documents.values()),
        "base_rate": Share.count(n_with_label, sum(sizes)).value,
        "test_accuracy": audit.accuracy.value,
        "majority_accuracy": audit.majority_accuracy,
        "findings": len(audit.findings),
        "first_finding": first.kind if first else None,
        "headline": first.headline if first else audit.report().verdict.removesuffix("."),
        "exceeded": audit.fails,
    }


@dataclass(frozen=True)
class LabelAudits:
    """Audits of several labels of the same documents.

    Attributes:
        name: the source.
        version: of this package.
        rows: an entry of summary.json for each label (`label_row`).
        left_out: labels of too few documents, or of all but a few → documents that have them.
        not_reached: labels that follow the most frequent fifty → documents that have them.
        seconds: of each stage.
    """

    own_files: ClassVar[str] = r"labels\.csv"
    name: str
    version: str
    rows: tuple[dict[str, Any], ...]
    left_out: dict[str, int]
    not_reached: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, object]:
        """The content of summary.json."""
        return {
            "name": self.name,
            "version": self.version,
            "labels": list(self.rows),
            "left_out": self.left_out,
            "not_reached": self.not_reached,
        }

    def to_frame(self) -> pl.DataFrame:
        """The audits as a table, a row per label."""
        return pl.DataFrame(self.rows, infer_schema_length=None)

    def files(self) -> dict[str, Content]:
        """File name → content of everything but the page."""
        summary = json_text(self.to_dict())
        return {"labels.csv": csv_table(self.to_frame()), "summary.json": summary}

    def report(self) -> Report:
        """A row for each label; their audits are in folders of their own."""
        blocks: list[Block] = [
            Text("The last column has the path of each report."),
            Table("", _COLUMNS, [_cells(row) for row in self.rows], n_shown=30, searchable=True),
        ]
        if self.left_out:
            names = _named_sizes(self.left_out)
            text = f"Not audited, because too few documents have them or lack them: {names}."
            blocks.append(Text(text, style="warning"))
        if self.not_reached:
            text = (
                f"Only the {len(self.rows)} most frequent labels were audited. To audit another "
                f"one, name it in a column of its own: {_named_sizes(self.not_reached)}."
            )
            blocks.append(Text(text, style="warning"))
        n_with_findings = sum(row["findings"] > 0 for row in self.rows)
        labels = plural(len(self.rows), "label")
        have = verb(n_with_findings, "have", "has")
        return Report(
            "audit",
            f"Audits of {for_display(self.name, IN_TITLE, path=True)}",
            f"{n_with_findings:,} of {labels} {have} findings.",
            tuple(blocks),
            {"version": self.version},
        )


def _named_sizes(labels: dict[str, int]) -> str:
    """Labels with their numbers of documents, the first of them by name."""
    listed = list(labels.items())[:MAX_LEFT_OUT_NAMED]
    names = ", ".join(f"{for_display(name, 20)} ({n:,})" for name, n in listed)
    n_more = len(labels) - len(listed)
    return f"{names} and {n_more:,} more" if n_more else names


def _cells(row: dict[str, Any]) -> tuple[object, ...]:
    """The row of the index's table for one label's audit."""
    headline = for_display(row["headline"], 200)
    if row["exceeded"]:
        headline += " (exceeds the --fail-on limit)"
    return (
        for_display(row["label"], IN_SENTENCE),
        row["base_rate"],
        row["test_accuracy"],
        row["majority_accuracy"],
        row["findings"],
        headline,
        f"{row['folder']}/report.html",
    )
