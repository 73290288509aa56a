"""The checks of an audit: a file for each, in the order of the documentation.

    from tokensieve.auditing.checks import Check

Another package adds its own through the entry point group `tokensieve.checks`.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points

from tokensieve.auditing.checks.alone import Alone
from tokensieve.auditing.checks.association import Association
from tokensieve.auditing.checks.base import AuditData, Check, Finding, Labels, Preferences, Share
from tokensieve.auditing.checks.contradiction import Contradiction, OpposedPairs
from tokensieve.auditing.checks.drift import Drift
from tokensieve.auditing.checks.empty import Empty
from tokensieve.auditing.checks.groups import Groups
from tokensieve.auditing.checks.imbalance import Imbalance
from tokensieve.auditing.checks.label_issues import LabelIssues, ReversedPairs
from tokensieve.auditing.checks.leak import Leak, PairLeak
from tokensieve.auditing.checks.position import Position
from tokensieve.auditing.checks.repeated import Repeated
from tokensieve.auditing.checks.shift import Shift
from tokensieve.auditing.checks.shortcut import Shortcut
from tokensieve.auditing.checks.unstable import Unstable
from tokensieve.auditing.checks.wins import AnswerLength, Wins
from tokensieve.errors import InputError

__all__ = ["AuditData", "Check", "Finding", "Labels", "Preferences", "Share"]
# what predicts the label, then what is wrong with documents or with the split
OWN: tuple[type[Check], ...] = (Shortcut, AnswerLength, Position, Wins, Alone, Association, Shift)
OWN += (Leak, PairLeak, Contradiction, OpposedPairs, LabelIssues, ReversedPairs, Groups, Repeated)
OWN += (Unstable, Drift, Imbalance, Empty)


@cache
def registry() -> tuple[Check, ...]:
    """All checks: ours, then those of other packages; an `InputError` if one cannot be loaded, or lacks its name or texts."""
    checks = [check() for check in OWN]
    for entry in entry_points(group="tokensieve.checks"):
        try:
            checks.append(entry.load()())
            assert checks[-1].entry
        except Exception as error:
            of = entry.dist.name if entry.dist else entry.value
            message = (
                f"the check {entry.name!r} of {of} cannot be used: {error}; fix or uninstall {of}"
            )
            raise InputError(message) from error
    return tuple(checks)
