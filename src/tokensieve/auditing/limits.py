"""`--fail-on`: how much of each finding, and how much of each change between two audits, is allowed.

One grammar, NAME=AMOUNT,NAME=AMOUNT,…, where a plain number counts documents (of a change tokens) and one with % is a fraction of
them. For audits `shortcut` takes DIFFERENCE@FRACTION, which may also be given alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from tokensieve.auditing.findings import Finding
from tokensieve.errors import InputError

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

    @classmethod
    def parse(cls, name: str, amount: str, written: str) -> Limit:
        """One limit.

        Raises:
            InputError: it is neither a number nor a percentage of at most 100.
        """
        found = _AMOUNT.fullmatch(amount)
        if not found or (found["percent"] and float(found["amount"]) > 100):
            message = f"{name} takes a number or a percentage, such as {name}=0 or {name}=1%"
            raise InputError(f"--fail-on {written!r}: {message}")
        relative = bool(found["percent"])
        return cls(name, float(found["amount"]) / (100 if relative else 1), relative)

    def exceeded(self, finding: Finding) -> bool:
        """Whether there is more of a finding than that."""
        found = [share.value for share in finding.evidence.values()] if self.relative else [finding.documents]
        return finding.kind == self.name and max(found, default=0) > self.amount


def parse_limits(written: str, known: Sequence[str], what: str) -> dict[str, str]:
    """NAME=AMOUNT,… as a dictionary; `what` the known names are goes into messages.

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
        given: dict[str, str] = {"shortcut": written}
        if "=" in written:
            from tokensieve.auditing.checks import registry

            names = dict.fromkeys(check.name for check in registry())
            given = parse_limits(written, list(names), "kind of finding")
        token = given.pop("shortcut", None)
        limits = tuple(Limit.parse(name, amount, written) for name, amount in given.items())
        if token is None:
            return cls(None, limits=limits)
        found = _TOKEN.fullmatch(token.strip())
        if found:
            share = 0.01 if found["share"] is None else float(found["share"]) / (100 if found["percent"] else 1)
            if float(found["difference"]) < 1 and share <= 1:
                return cls(float(found["difference"]), share, "=" in written, limits)
        raise InputError(
            f"--fail-on {token!r} is not of the form DIFFERENCE@FRACTION with a difference below 1; 0.9@1% allows no token a "
            "posterior difference, P(class) − P(others), above 0.9 in more than 1% of the documents"
        )

    def __str__(self) -> str:
        token = f"{self.difference:g}@{100 * self.share:g}%" if self.difference is not None else ""
        if not (self.of_class or self.limits):
            return token
        return ",".join([*([f"shortcut={token}"] if token else []), *map(str, self.limits)])

    def exceeding(self, tokens: pl.DataFrame, class_documents: Mapping[str, int]) -> pl.DataFrame:
        """The rows of `Audit.tokens` that exceed the limit on tokens, largest posterior difference first."""
        if self.difference is None:
            return tokens.clear()
        over = pl.col("documents") > self.share * sum(class_documents.values())
        if self.of_class:
            size = pl.col("class").replace_strict(dict(class_documents), return_dtype=pl.Int64)
            over = pl.col("class_documents") > self.share * size
        order = ["posterior_difference", "documents", "token"]
        found = tokens.filter(over & (pl.col("posterior_difference") > self.difference))
        return found.sort(order, descending=[True, True, False])

    def exceeded(self, findings: Iterable[Finding]) -> tuple[str, ...]:
        """The kinds of finding, but for tokens, of which there is more than is allowed."""
        found = list(findings)
        return tuple(limit.name for limit in self.limits if any(map(limit.exceeded, found)))
