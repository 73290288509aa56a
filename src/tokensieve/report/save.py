"""An audit as files: what `tokensieve audit` writes, also from Python."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokensieve.files import Content, csv_table, write_all
from tokensieve.model.storage import model_files
from tokensieve.report import charts
from tokensieve.report.page import render

if TYPE_CHECKING:
    from tokensieve.auditing.result import Audit

OURS = (
    r"card\.md|(over-budget|label-issues|environments|pairs)\.csv|"
    r"pictures/((value|score|top)(-class-\d+)?|alignment)\.(svg|png)"
)


def save(audit: Audit, folder: str | Path, pictures: bool = True) -> list[Path]:
    """Write tables, model, page and summary of an audit into a folder: all files, or none.

    Files of an earlier audit that would contradict this one are removed; others stay.

    Args:
        audit: the result of `tokensieve.audit`.
        folder: made if missing.
        pictures: also each picture as SVG and PNG.

    Returns:
        The paths written.

    Raises:
        InputError: the folder cannot be written.
    """
    return write_all(Path(folder), audit_files(audit, pictures), ours=OURS)


def audit_files(audit: Audit, pictures: bool = True, start: float | None = None) -> dict[str, Content]:
    """File name → content.

    Args:
        audit: the result of `tokensieve.audit`; its `seconds` gain those spent here.
        pictures: also each picture as SVG and PNG.
        start: when all began (`time.perf_counter`), for the total of seconds; the sum of the stages if None.
    """
    lap = time.perf_counter()
    files: dict[str, Any] = {"tokens.csv": csv_table(audit.tokens)} | model_files(audit.model)
    figures = charts.draw(audit)
    files["report.html"] = render(audit, figures)
    drawn = charts.drawn(figures if pictures else [])
    files |= {f"pictures/{name}": picture for name, picture in drawn.items()}
    files["findings.json"] = json.dumps(audit.findings_dict(), ensure_ascii=False, indent=1)
    files["findings.csv"] = csv_table(audit.finding_rows())
    if not audit.label_issues.is_empty():
        files["label-issues.csv"] = csv_table(audit.label_issues)
    if not audit.environments.is_empty():
        files["environments.csv"] = csv_table(audit.environments)
    if audit.pairs is not None:
        files["pairs.csv"] = csv_table(audit.pairs.wins)
    if audit.settings["budget"]:
        files["over-budget.csv"] = csv_table(audit.to_review)
    seconds = {name: s for name, s in audit.seconds.items() if name not in ("report", "total")}
    now = time.perf_counter()
    seconds["report"] = now - lap
    seconds["total"] = sum(seconds.values()) if start is None else now - start
    audit.seconds.update(seconds)
    files["summary.json"] = json.dumps(audit.to_dict(), ensure_ascii=False, indent=1)
    return files
