"""What an audit says, as blocks for page, terminal and Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokensieve.blocks import Report

if TYPE_CHECKING:
    from tokensieve.auditing.result import Audit


def audit_report(audit: Audit) -> Report:
    """The report of an audit."""
    raise NotImplementedError
