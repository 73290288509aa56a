"""The position of the answer, if it predicts which one won."""

from __future__ import annotations

import numpy as np

from tokensieve.auditing.checks.api import AuditContext, Check, Findings, Preferences, Share
from tokensieve.wording import percent

MIN_DECIDED_PAIRS = 20  # of fewer the interval says nothing
FIRST, SECOND = 0, 1  # positions of the preferred answer; ties and unknown ones have others
WEIGHT = 0.3  # answers of unequal quality are often shown in a fixed order


class Position(Check):
    """A judge that prefers the first answer, or the second, regardless of content."""

    name = "position"
    title = "Position of the answer"
    about = (
        "The fraction of decided pairs in which the first answer wins, if its 95% interval over "
        "prompts excludes 50%. Checked only if a winner column, scores or ranks determine which "
        "answer won."
    )
    action = (
        "Show the answers in random order, or ask twice with the answers swapped and keep the "
        "judgements that agree."
    )
    tasks = (Preferences,)
    exploitable = True

    def find(self, audit: AuditContext) -> Findings:
        pairs = audit.train.corpus.pairs
        assert pairs is not None
        if pairs.position is None:
            return
        decided = np.flatnonzero(np.isin(pairs.position, (FIRST, SECOND)))
        if len(decided) < MIN_DECIDED_PAIRS:
            return
        first_won = pairs.position[decided] == FIRST
        share = Share.over(first_won, pairs.units[decided])
        if share.low <= 0.5 <= share.high:
            return

        if share.value > 0.5:
            side, column, has_won = "first", pairs.columns[FIRST], first_won
        else:
            side, column, has_won = "second", pairs.columns[SECOND], ~first_won
        rate = max(share.value, 1 - share.value)
        yield self.finding(
            audit,
            severity=WEIGHT * 2 * abs(share.value - 0.5),
            headline=(
                f"The {side} answer wins {percent(rate)} of the training pairs (50% expected if "
                "the order did not matter)"
            ),
            documents=2 * decided[has_won],
            evidence={"first": share},
            details=(f"the {side} answer is the one in the column {column!r}",),
        )
