"""The checks of an audit, a file for each; what another package needs to add its own.

    from tokensieve.auditing.checks import AuditContext, Check, Finding, Share

Such a package names its checks in the entry point group `tokensieve.checks`.
"""

from tokensieve.auditing.checks.api import (
    AuditContext,
    Check,
    ConcernedDocuments,
    Excerpt,
    Finding,
    Labels,
    Preferences,
    Share,
    computed_once,
)

__all__ = [
    "AuditContext",
    "Check",
    "ConcernedDocuments",
    "Excerpt",
    "Finding",
    "Labels",
    "Preferences",
    "Share",
    "computed_once",
]
