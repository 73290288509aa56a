"""A budget for shortcuts: how much of the label one token alone may tell, and in how many documents."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from tokensieve.errors import InputError
from tokensieve.text.counts import Counts, Ints

_WRITTEN = re.compile(r"(?P<difference>\d*\.?\d+)(@(?P<share>\d*\.?\d+)(?P<percent>%?))?")


@dataclass(frozen=True)
class Budget:
    """No token type may have a posterior difference above `difference` for any class in more than `share` of the documents.

    Attributes:
        difference: P(class|token) − P(rest|token), between −1 and 1.
        share: of the training documents, between 0 and 1.
    """

    difference: float = 0.9
    share: float = 0.01

    @classmethod
    def parse(cls, written: str) -> Budget:
        """`0.9@1%`, `0.9@0.01`, or `0.9` alone (then the share is 1 %).

        Raises:
            InputError: not of that form, a difference of 1 or more, or a share above 1.
        """
        found = _WRITTEN.fullmatch(written.strip())
        if found:
            share = 0.01 if found["share"] is None else float(found["share"]) / (100 if found["percent"] else 1)
            if float(found["difference"]) < 1 and share <= 1:
                return cls(float(found["difference"]), share)
        raise InputError(
            f"--fail-on {written!r} is not of the form DIFFERENCE@SHARE with a difference below 1, for example 0.9@1%"
        )

    def __str__(self) -> str:
        return f"{self.difference:g}@{100 * self.share:g}%"

    def exceeding(self, tokens: pl.DataFrame, n: int) -> pl.DataFrame:
        """The rows of an audit's table that exceed the budget, largest posterior difference first.

        Args:
            tokens: a row per token type and class (`Audit.tokens`).
            n: training documents.
        """
        over = (pl.col("posterior_difference") > self.difference) & (pl.col("documents") > self.share * n)
        order = ["posterior_difference", "documents", "token"]
        return tokens.filter(over).sort(order, descending=[True, True, False])


def rows_to_review(tokens: pl.Series, parts: Mapping[str, tuple[Counts, Ints]]) -> pl.DataFrame:
    """Every document that holds one of the tokens: token, part, row, label; tokens in the order given, rows ascending.

    Args:
        tokens: token types.
        parts: "train" and "test" → the counts, and the row of each document in its source, shape (n,).
    """
    found = [pl.DataFrame(schema={"token": pl.String, "part": pl.String, "row": pl.Int64, "label": pl.String})]
    for part, (counts, rows) in parts.items() if len(tokens) else ():
        place = {str(token): s for s, token in enumerate(counts.tokens)}
        types = np.array([place[token] for token in tokens], dtype=np.int64)
        entries = np.flatnonzero(np.isin(counts.matrix.indices, types))
        documents = np.searchsorted(counts.matrix.indptr, entries, side="right") - 1
        rank = np.zeros(counts.n_types, np.int64)
        rank[types] = np.arange(len(types))
        which = rank[counts.matrix.indices[entries]]
        order = np.lexsort((rows[documents], which))
        labels = pl.Series([str(name) for name in counts.classes]).gather(counts.labels[documents[order]])
        columns = {"token": tokens.gather(which[order]), "row": rows[documents[order]], "label": labels}
        found.append(pl.DataFrame(columns).insert_column(1, pl.Series("part", [part] * len(order), dtype=pl.String)))
    return pl.concat(found)
