"""Audits of several labels: one page that leads to each."""

from __future__ import annotations

from tokensieve.auditing.labels import LabelAudits
from tokensieve.report.page import environment
from tokensieve.report.script import sortable
from tokensieve.wording import count


def render_labels(found: LabelAudits) -> str:
    """The index as one HTML page without requests; its links lead to the pages beside it."""
    rows = [(row, "" if row.first is None else f"{row.first.title}: {row.first.headline}.") for row in found.rows]
    return environment().get_template("labels.html").render(
        study={"name": found.name, "version": found.version}, command="audit", **sortable(), found=found, rows=rows,
        verdict=verdict(found),
    )  # fmt: skip


def verdict(found: LabelAudits) -> str:
    """In how many labels something was found."""
    n = sum(row.first is not None for row in found.rows)
    return f"{count(len(found.rows))} labels audited; {count(n) if n else 'none'} with findings"
