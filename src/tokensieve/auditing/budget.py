"""What `--fail-on` allows: how much of the label one token alone may carry, and how much of each other finding there may be."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from tokensieve.auditing.findings import Finding, FindingKind
from tokensieve.errors import InputError
from tokensieve.text.counts import Counts, Ints

_WRITTEN = re.compile(r"(?P<difference>\d*\.?\d+)(@(?P<share>\d*\.?\d+)(?P<percent>%?))?")
_AMOUNT = re.compile(r"(?P<amount>\d*\.?\d+)(?P<percent>%?)")


@dataclass(frozen=True)
class Limit:
    """How much of one kind of finding there may be.

    Attributes:
        kind: of the findings.
        amount: of documents, or their share where `relative`.
        relative: whether `amount` is a share.
    """

    kind: FindingKind
    amount: float
    relative: bool

    def __str__(self) -> str:
        return f"{self.kind.value}={100 * self.amount:g}%" if self.relative else f"{self.kind.value}={self.amount:g}"

    def exceeded(self, findings: tuple[Finding, ...]) -> bool:
        """Whether one of the findings exceeds it."""
        mine = [f for f in findings if f.kind is self.kind]
        if not self.relative:
            return any(f.documents > self.amount for f in mine)
        return any(share.value > self.amount for f in mine for share in f.evidence.values())


@dataclass(frozen=True)
class Budget:
    """No token type may have a posterior difference above `difference` for any class in more than `share` of the documents.

    Attributes:
        difference: P(class|token) − P(rest|token), between −1 and 1; None where tokens are not limited.
        share: of the training documents, between 0 and 1.
        of_class: the share is one of the class's documents that the token is in, not of all documents.
        limits: of the other findings.
    """

    difference: float | None = 0.9
    share: float = 0.01
    of_class: bool = False
    limits: tuple[Limit, ...] = ()

    @classmethod
    def parse(cls, written: str) -> Budget:
        """`0.9@1%`, `0.9@0.01` or `0.9` alone (then the share is 1 %), of all documents; or a limit per kind of finding,
        `shortcut=0.9@3%,leak=0,labels=1%`, where the share of `shortcut` is one of the class's documents, a plain number
        counts documents and one with % is a share of them.

        Raises:
            InputError: not of that form, a difference of 1 or more, or a share above 1.
        """
        if "=" not in written:
            return cls(*_token_limit(written))
        given: dict[str, str] = {}
        for item in written.split(","):
            kind, _, amount = (part.strip() for part in item.partition("="))
            if kind in given or kind not in {kind.value for kind in FindingKind}:
                known = ", ".join(kind.value for kind in FindingKind)
                raise InputError(
                    f"--fail-on {written!r}: {kind!r} is no kind of finding, or stands twice; known are {known}"
                )
            given[kind] = amount
        shortcut = given.pop(FindingKind.SHORTCUT.value, None)
        limits = tuple(_limit(kind, amount, written) for kind, amount in given.items())
        if shortcut is None:
            return cls(None, limits=limits)
        return cls(*_token_limit(shortcut), of_class=True, limits=limits)

    def __str__(self) -> str:
        token = f"{self.difference:g}@{100 * self.share:g}%" if self.difference is not None else ""
        if not (self.of_class or self.limits):
            return token
        return ",".join([*([f"shortcut={token}"] if token else []), *map(str, self.limits)])

    def exceeding(self, tokens: pl.DataFrame, class_documents: Mapping[str, int]) -> pl.DataFrame:
        """The rows of an audit's table that exceed the budget, largest posterior difference first.

        Args:
            tokens: a row per token type and class (`Audit.tokens`).
            class_documents: class → its training documents.
        """
        if self.difference is None:
            return tokens.clear()
        over = pl.col("posterior_difference") > self.difference
        if self.of_class:
            size = pl.col("class").replace_strict(dict(class_documents), return_dtype=pl.Int64)
            over &= pl.col("class_documents") > self.share * size
        else:
            over &= pl.col("documents") > self.share * sum(class_documents.values())
        order = ["posterior_difference", "documents", "token"]
        return tokens.filter(over).sort(order, descending=[True, True, False])

    def exceeded(self, findings: tuple[Finding, ...]) -> tuple[FindingKind, ...]:
        """The kinds of finding, but for tokens, of which there is more than the budget allows."""
        return tuple(limit.kind for limit in self.limits if limit.exceeded(findings))


def _token_limit(written: str) -> tuple[float, float]:
    found = _WRITTEN.fullmatch(written.strip())
    if found:
        share = 0.01 if found["share"] is None else float(found["share"]) / (100 if found["percent"] else 1)
        if float(found["difference"]) < 1 and share <= 1:
            return float(found["difference"]), share
    raise InputError(
        f"--fail-on {written!r} is not of the form DIFFERENCE@SHARE with a difference below 1; 0.9@1% allows no token a posterior "
        "difference, P(class) − P(others), above 0.9 in more than 1% of the documents"
    )


def _limit(kind: str, written: str, whole: str) -> Limit:
    found = _AMOUNT.fullmatch(written)
    if not found or (found["percent"] and float(found["amount"]) > 100):
        raise InputError(f"--fail-on {whole!r}: {kind} takes documents or a share, for example {kind}=0 or {kind}=1%")
    relative = bool(found["percent"])
    return Limit(FindingKind(kind), float(found["amount"]) / (100 if relative else 1), relative)


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
