"""One answer that stands for many prompts: an attack on a judge, or a fault of the data."""

from __future__ import annotations

import numpy as np
import polars as pl

from tokensieve.arrays import Ints
from tokensieve.auditing.checks.api import (
    AuditContext,
    Check,
    ConcernedDocuments,
    Finding,
    Findings,
    Preferences,
    Share,
)
from tokensieve.wording import percent, plural

MIN_PROMPTS = 10  # fewer may well have the same short answer, such as "Yes."
MIN_FRACTION = 0.01  # of the prompts
MAX_ANSWERS = 3  # reported; further ones are seldom of other kinds


class OneAnswer(Check):
    """A text that cannot answer all the prompts that it stands for, such as a null model's."""

    name = "one_answer"
    title = "One answer to many prompts"
    about = (
        f"A text that answers at least {MIN_PROMPTS} prompts, and at least {percent(MIN_FRACTION)} "
        "of them, word for word. Checked only if the prompts are known (--by, or messages)."
    )
    action = (
        "Read the text: if it answers none of the prompts, its wins say something about the judge, "
        "not about answers. Leave these pairs out, or judge them again."
    )
    tasks = (Preferences,)
    exploitable = True

    def find(self, audit: AuditContext) -> Findings:
        pairs = audit.train.corpus.pairs
        assert pairs is not None
        if pairs.group_column is None:  # the pairs may all be of one prompt
            return
        n_prompts = len(np.unique(pairs.units))
        least = max(MIN_PROMPTS, MIN_FRACTION * n_prompts)
        prompts = np.repeat(pairs.units, 2)
        frequent = (
            pl.DataFrame({"text": audit.train.corpus.keys, "prompt": prompts})
            .with_row_index("document")
            .group_by("text")
            .agg(pl.col("document"), n=pl.col("prompt").n_unique())
            .filter(pl.col("n") >= least)
            .sort("n", "text", descending=[True, False])
        )
        for documents in frequent["document"].head(MAX_ANSWERS).to_list():
            yield self._finding(audit, np.array(documents, dtype=np.int64), n_prompts)

    def _finding(self, audit: AuditContext, documents: Ints, n_prompts: int) -> Finding:
        """One text with the share of prompts that it answers, and how often it wins."""
        corpus = audit.train.corpus
        pairs = corpus.pairs
        assert pairs is not None
        own_prompts = pairs.units[documents // 2]
        answered = Share.count(len(np.unique(own_prompts)), n_prompts)
        # documents 2i are preferred; of a tie, which is there in both orders, one half is
        wins = Share.over(documents % 2 == 0, own_prompts)
        return self.finding(
            audit,
            severity=answered.value,
            headline=(
                f"One answer stands for {plural(answered.found, 'training prompt')} of "
                f"{n_prompts:,} and wins {percent(wins.value)} of its pairs"
            ),
            documents=ConcernedDocuments(documents, examples=[audit.excerpt(int(documents[0]))]),
            evidence={"documents": answered, "decides": wins},
            details=(f"it wins {wins} of the pairs in which it stands",),
        )
