"""An audit as files: what `tokensieve audit` writes, also from Python."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokensieve.files import Content, write_all
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
    figures = charts.draw(audit)
    files: dict[str, Any] = {"report.html": render(audit, figures)}
    drawn = charts.drawn(figures if pictures else [])
    files |= {f"pictures/{name}": picture for name, picture in drawn.items()}
    now = time.perf_counter()
    seconds = {name: s for name, s in audit.seconds.items() if name not in ("report", "total")} | {"report": now - lap}
    seconds["total"] = sum(seconds.values()) if start is None else now - start
    audit.seconds.update(seconds)
    return audit.files() | files
