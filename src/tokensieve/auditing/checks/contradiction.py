"""The same text with two labels."""

from __future__ import annotations

import numpy as np
import polars as pl

from tokensieve.auditing.checks.api import AuditContext, Check, Findings, Labels, Preferences, Share
from tokensieve.wording import percent, plural


class Contradiction(Check):
    """Documents whose exact text occurs with another label too."""

    name = "contradiction"
    title = "Same text, different labels"
    about = "Training or test documents whose exact text also occurs with another label."
    action = "Decide on one label for each of these texts, or remove them."
    tasks = (Labels,)

    def find(self, data: AuditContext) -> Findings:
        train, test = data.train.corpus, data.test.corpus
        n = len(train.texts)
        keys = pl.concat([train.keys, test.keys])
        frame = pl.DataFrame(
            {"key": keys, "label": np.concatenate([train.labels, test.labels])}
        ).with_row_index("i")
        opposed = frame.filter(pl.col("label").n_unique().over("key") > 1).sort("key", "i")
        i = opposed["i"].to_numpy().astype(np.int64)
        total = data.total("contradicting", len(i))
        if not total:
            return
        share = Share.count(total, sum(data.totals["documents"].values()))
        yield self.finding(
            data,
            share.value,
            f"{plural(total, 'document')} ({percent(share.value)}) have the same text as a document with a different label",
            evidence={"documents": share},
            n_documents=total,
            rows=pl.concat([train.rows_of(i[i < n]), test.rows_of(i[i >= n] - n, "test")]),
            examples=tuple(
                data.excerpt(k) if k < n else data.excerpt(k - n, "test") for k in i[:4].tolist()
            ),
            details=(f"{share.as_counts} documents have a copy with another label",),
        )


class OpposedPairs(Check):
    """Training pairs that also occur with the other answer preferred."""

    name = "contradiction"
    title = "Same pair, opposite preference"
    about = "Training pairs that also occur with the other answer preferred."
    action = "Decide which answer is better, or remove these pairs."
    tasks = (Preferences,)

    def find(self, data: AuditContext) -> Findings:
        keys = data.train.corpus.keys
        sides = pl.DataFrame(
            {"a": keys.gather_every(2), "b": keys.gather_every(2, 1)}
        ).with_row_index("pair")
        sides = sides.filter(
            ~data.train.corpus.tied[::2]
        )  # a tie stands in both orders by intention
        turned = (
            sides.join(sides, left_on=["a", "b"], right_on=["b", "a"], how="semi")["pair"]
            .sort()
            .to_numpy()
        )
        if not len(turned):
            return
        share = Share.count(len(turned), sides.height)
        yield self.finding(
            data,
            share.value,
            f"{plural(len(turned), 'pair')} ({percent(share.value)}) also occur with the other answer preferred",
            2 * turned.astype(np.int64),
            evidence={"pairs": share},
            details=(f"{share.as_counts} pairs have a copy with the other answer preferred",),
            examples=(),
        )
