"""The position of the answer, if it predicts which one won."""

from __future__ import annotations

import numpy as np

from tokensieve.auditing.checks.api import AuditContext, Check, Findings, Preferences, Share
from tokensieve.wording import percent


class Position(Check):
    """A judge that prefers the first answer, or the second, regardless of content."""

    name = "position"
    title = "Position of the answer"
    about = (
        "The fraction of decided pairs in which the first answer wins, if its 95% interval over prompts excludes 50%. Checked "
        "only if a winner column, scores or ranks determine which answer won."
    )
    action = "Show the answers in random order, or ask twice with the answers swapped and keep the judgements that agree."
    tasks = (Preferences,)

    def find(self, data: AuditContext) -> Findings:
        corpus = data.train.corpus
        assert corpus.pairs is not None
        if corpus.pairs.position is None:
            return
        decided = np.flatnonzero(np.isin(corpus.pairs.position, (0, 1)))
        if len(decided) < 20:  # of fewer the interval says nothing
            return
        first = corpus.pairs.position[decided] == 0
        share = Share.over(first, corpus.pairs.units[decided])
        if share.low <= 0.5 <= share.high:
            return
        side, column = ("first", 0) if share.value > 0.5 else ("second", 1)
        often = max(share.value, 1 - share.value)
        yield self.finding(
            data,
            2
            * abs(share.value - 0.5)
            * 0.3,  # answers of other quality are often shown in a fixed order
            f"The {side} answer wins {percent(often)} of the training pairs (50% expected if the order did not matter)",
            2 * decided[first if column == 0 else ~first],
            evidence={"first": share},
            details=(
                f"the {side} answer is the one in the column {corpus.pairs.columns[column]!r}",
            ),
        )
