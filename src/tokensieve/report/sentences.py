"""Sentences about a whole audit, for page, terminal and dataset card."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from tokensieve.escape import shown
from tokensieve.wording import count, percent

if TYPE_CHECKING:
    from tokensieve.auditing.result import Audit

MORE_TIME = "to decide more, give more time with --max-seconds; --resume FILE goes on where a run stopped"


def file_name(text: str) -> str:
    """The last part of a path: where a reader keeps files is no part of a page that is shared."""
    return PurePath(text).name if "/" in text or "\\" in text else text


def main_line(audit: Audit) -> str:
    """The sentence that page and terminal begin with: the most serious finding, or that there is none."""
    if audit.findings:
        return audit.findings[0].headline
    if not audit.over_budget.is_empty():
        n = audit.over_budget["token"].n_unique()
        return f"{count(n)} token{'s' * (n != 1)} exceed{'s' * (n == 1)} the limit {audit.settings.budget}"
    return f"No shortcut, leak or label problem found in {shown(file_name(audit.name), 60)}"


def honest(audit: Audit) -> str:
    """Accuracy with and without the shortcuts; nothing where there are none."""
    if audit.honest_accuracy is None:
        return ""
    whole, without = audit.honest_accuracy
    chance = "; the difference is within chance" if without.low <= whole.value <= without.high else ""
    return f"Accuracy {percent(whole.value)} → {without} without the shortcuts{chance}"
