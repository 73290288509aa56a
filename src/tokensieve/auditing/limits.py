"""`--fail-on`: how much of each finding, and how much of each change between two audits, is allowed.

One grammar, NAME=AMOUNT,NAME=AMOUNT,…, where a plain number counts documents (of a change tokens) and one with % is a fraction of
them. For audits `shortcut` takes DIFFERENCE@FRACTION, which may also be given alone.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from tokensieve.auditing.findings import Finding
from tokensieve.blocks import Block, Column, Command, Report, Table, Text
from tokensieve.errors import InputError
from tokensieve.escape import shown
from tokensieve.text.counts import Counts, Ints

if TYPE_CHECKING:
    from tokensieve.auditing.result import Audit

_AMOUNT = re.compile(r"(?P<amount>\d{0,9}\.?\d{1,9})(?P<percent>%?)")
_TOKEN = re.compile(r"(?P<difference>\d*\.?\d+)(@(?P<share>\d*\.?\d+)(?P<percent>%?))?")


@dataclass(frozen=True)
class Limit:
    """How much there may be of something.

    Attributes:
        name: of a check or a change.
        amount: a number of documents or tokens, or a fraction where `relative`.
        relative: whether `amount` is a fraction.
    """

    name: str
    amount: float
    relative: bool

    def __str__(self) -> str:
        return f"{self.name}={100 * self.amount:g}%" if self.relative else f"{self.name}={self.amount:g}"


def parse_limits(written: str, known: Sequence[str], what: str) -> dict[str, str]:
    """NAME=AMOUNT,… as a dictionary.

    Args:
        written: by the user.
        known: names that are allowed.
        what: they are, for messages.

    Raises:
        InputError: a name is unknown or given twice.
    """
    given: dict[str, str] = {}
    for item in written.split(","):
        name, _, amount = (part.strip() for part in item.partition("="))
        if name not in known:
            raise InputError(f"--fail-on {written!r}: {name!r} is not a {what}; choose from {', '.join(known)}")
        if name in given:
            raise InputError(f"--fail-on {written!r}: {name!r} is given twice")
        given[name] = amount
    return given


def parse_amount(name: str, amount: str, written: str) -> Limit:
    """One limit.

    Raises:
        InputError: it is neither a number nor a percentage of at most 100.
    """
    found = _AMOUNT.fullmatch(amount)
    if not found or (found["percent"] and float(found["amount"]) > 100):
        raise InputError(f"--fail-on {written!r}: {name} takes a number or a percentage, such as {name}=0 or {name}=1%")
    relative = bool(found["percent"])
    return Limit(name, float(found["amount"]) / (100 if relative else 1), relative)


@dataclass(frozen=True)
class Budget:
    """No token type may have a posterior difference above `difference` for any class in more than `share` of the documents.

    Attributes:
        difference: P(class|token) − P(rest|token), between −1 and 1; None where tokens are not limited.
        share: a fraction of the training documents.
        of_class: the fraction is one of the class's documents that contain the token, not of all documents.
        limits: of other findings.
    """

    difference: float | None = 0.9
    share: float = 0.01
    of_class: bool = False
    limits: tuple[Limit, ...] = ()

    @classmethod
    def parse(cls, written: str) -> Budget:
        """`0.9@1%`, `0.9@0.01` or `0.9` alone (then 1% of all documents); or a limit per kind of finding,
        `shortcut=0.9@3%,leak=0,labels=1%`, where the fraction of `shortcut` is one of the class's documents.

        Raises:
            InputError: not of that form, a difference of 1 or more, or a fraction above 1.
        """
        if "=" not in written:
            return cls(*_token_limit(written))
        from tokensieve.auditing.checks import check_names

        given = parse_limits(written, check_names(), "kind of finding")
        shortcut = given.pop("shortcut", None)
        limits = tuple(parse_amount(name, amount, written) for name, amount in given.items())
        if shortcut is None:
            return cls(None, limits=limits)
        return cls(*_token_limit(shortcut), of_class=True, limits=limits)

    def __str__(self) -> str:
        token = f"{self.difference:g}@{100 * self.share:g}%" if self.difference is not None else ""
        if not (self.of_class or self.limits):
            return token
        return ",".join([*([f"shortcut={token}"] if token else []), *map(str, self.limits)])

    def exceeding(self, tokens: pl.DataFrame, class_documents: Mapping[str, int]) -> pl.DataFrame:
        """The rows of an audit's table that exceed the limit on tokens, largest posterior difference first.

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

    def exceeded(self, findings: Iterable[Finding]) -> tuple[str, ...]:
        """The kinds of finding, but for tokens, of which there is more than is allowed."""
        found = list(findings)
        return tuple(limit.name for limit in self.limits if any(_over(limit, f) for f in found if f.kind == limit.name))


def _over(limit: Limit, finding: Finding) -> bool:
    if not limit.relative:
        return finding.documents > limit.amount
    return any(share.value > limit.amount for share in finding.evidence.values())


def _token_limit(written: str) -> tuple[float, float]:
    found = _TOKEN.fullmatch(written.strip())
    if found:
        share = 0.01 if found["share"] is None else float(found["share"]) / (100 if found["percent"] else 1)
        if float(found["difference"]) < 1 and share <= 1:
            return float(found["difference"]), share
    raise InputError(
        f"--fail-on {written!r} is not of the form DIFFERENCE@FRACTION with a difference below 1; 0.9@1% allows no token a "
        "posterior difference, P(class) − P(others), above 0.9 in more than 1% of the documents"
    )


def rows_to_review(tokens: pl.Series, parts: Mapping[str, tuple[Counts, Ints]]) -> pl.DataFrame:
    """Every document that contains one of the tokens: token, part, row, label; tokens in the order given, rows ascending.

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


def exceeded_report(audit: Audit, source: str, out: Path) -> Report:
    """What exceeds the limits, which rows to review, and how to go on without these tokens.

    Args:
        audit: that fails.
        source: of its data.
        out: the folder that it was written to.
    """
    over, n, budget = audit.over_budget, audit.documents["train"], audit.settings.budget
    blocks: list[Block] = [Text(f"Too many findings of this kind: {kind}.", style="bad") for kind in audit.exceeded]
    if not over.is_empty():
        rows = []
        for row in over.iter_rows(named=True):
            where = audit.to_review.filter(pl.col("token") == row["token"], pl.col("part") == "train")["row"]
            listed = ", ".join(map(str, where.head(5))) + (", …" if len(where) > 5 else "")
            cells = row["posterior_difference"], row["documents"], row["documents"] / n, listed
            rows.append((row["token"], shown(row["class"], 30), *cells))
        columns = (
            Column("Token", "token"),
            Column("Class"),
            Column("Posterior difference", "signed", digits=3),
            Column("Documents", "count"),
            Column("Of all", "percent"),
            Column("Rows"),
        )
        command = f"tokensieve mask {shlex.quote(source)} --audit {shlex.quote(str(out))} --out masked.csv"
        blocks += [
            Table("", columns, rows, first=20),
            Text(f"Every row to review is in {out / 'over-budget.csv'}."),
            Command(command, "Copy the data without these tokens:"),
        ]
    tokens = 0 if over.is_empty() else over["token"].n_unique()
    what = [f"{tokens:,} token{'s' * (tokens != 1)}"] * bool(tokens)
    what += [f"{len(audit.exceeded)} kind{'s' * (len(audit.exceeded) != 1)} of findings"] * bool(audit.exceeded)
    one = tokens + len(audit.exceeded) == 1
    verdict = f"{' and '.join(what)} exceed{'s' * one} the limit {budget}."
    return Report("audit", "--fail-on", verdict, tuple(blocks))
