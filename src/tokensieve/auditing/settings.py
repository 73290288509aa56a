"""Settings of an audit and of a comparison. `--fail-on` limits each kind of finding, or each change between two audits:
NAME=AMOUNT,NAME=AMOUNT,…, where a plain number counts documents (for a change, tokens) and a percentage is a fraction of them. For
audits, `shortcut` also takes DIFFERENCE@FRACTION, a limit on every token, which may be given alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tokensieve.errors import InputError
from tokensieve.model.settings import TrainSettings
from tokensieve.options import option

if TYPE_CHECKING:
    import polars as pl

    from tokensieve.auditing.findings import Finding


_AMOUNT = re.compile(r"(?P<amount>\d{0,9}\.?\d{1,9})(?P<percent>%?)")
_TOKEN = re.compile(r"(?P<difference>\d*\.?\d+)(@(?P<share>\d*\.?\d+)(?P<percent>%?))?")
_Limit = tuple[float, bool]  # how much there may be of something, and whether that is a fraction
# what became of a token: the names stand in compare.csv and `--fail-on` knows them; and what a reader sees
CHANGES = {
    "appeared": "new",
    "vanished": "gone",
    "sign": "other class",
    "stronger": "stronger",
    "weaker": "weaker",
}


def _amounts(written: str, known: Sequence[str], what: str) -> dict[str, str]:
    """NAME=AMOUNT,… as a dictionary, a name alone as NAME=0; `what` the known names are goes into messages."""
    given: dict[str, str] = {}
    for item in written.split(","):
        name, sign, amount = (part.strip() for part in item.partition("="))
        if name not in known:
            raise InputError(
                f"--fail-on {written!r}: {name!r} is not a {what}; choose from {', '.join(known)}"
            )
        if name in given:
            raise InputError(f"--fail-on {written!r}: {name!r} is given twice")
        given[name] = amount if sign else "0"
    return given


def _limit(name: str, amount: str, written: str) -> _Limit:
    """One limit: a number, or a percentage of at most 100."""
    found = _AMOUNT.fullmatch(amount)
    if not found or (found["percent"] and float(found["amount"]) > 100):
        message = f"{name} takes a number or a percentage, such as {name}=0 or {name}=1%"
        raise InputError(f"--fail-on {written!r}: {message}")
    relative = bool(found["percent"])
    return float(found["amount"]) / (100 if relative else 1), relative


@dataclass(frozen=True)
class Budget:
    """No token type may have a posterior difference above `difference` for any class in more than `share` of the documents.

    Attributes:
        difference: P(class|token) − P(rest|token), between −1 and 1; None if tokens are not limited.
        share: a fraction of the training documents.
        of_class: the fraction refers to the documents of the class, not to all documents.
        limits: other kinds of finding → the number allowed, and whether it is a fraction.
    """

    difference: float | None = 0.9
    share: float = 0.01
    of_class: bool = False
    limits: dict[str, _Limit] = field(default_factory=dict)

    @classmethod
    def parse(cls, written: str) -> Budget:
        """`0.9@1%`, `0.9@0.01` or `0.9` alone (then 1% of all documents); or a limit per kind of finding,
        `leak=0,labels=1%`, where `leak` alone is `leak=0`; in `shortcut=0.9@3%` the fraction is one of the class's documents.
        An `InputError` for anything else, a difference of 1 or more, or a fraction above 1."""
        given: dict[str, str] = {"shortcut": written}
        if re.search("[A-Za-z_=]", written):
            from tokensieve.auditing.checks import registry

            names = dict.fromkeys(check.name for check in registry())
            given = _amounts(written, list(names), "kind of finding")
        counted = written != given.get("shortcut") and re.fullmatch(
            r"\d+|[\d.]+%", given.get("shortcut", "")
        )
        token = None if counted else given.pop("shortcut", None)
        limits = {name: _limit(name, amount, written) for name, amount in given.items()}
        if token is None:
            return cls(None, limits=limits)
        found = _TOKEN.fullmatch(token.strip())
        if found:
            share = (
                0.01
                if found["share"] is None
                else float(found["share"]) / (100 if found["percent"] else 1)
            )
            if float(found["difference"]) < 1 and share <= 1:
                return cls(float(found["difference"]), share, written != token, limits)
        raise InputError(
            f"--fail-on {token!r} is not of the form DIFFERENCE@FRACTION with a difference below 1; 0.9@1% allows no token a "
            "posterior difference, P(class) − P(others), above 0.9 in more than 1% of the documents"
        )

    def __str__(self) -> str:
        token = f"{self.difference:g}@{100 * self.share:g}%" if self.difference is not None else ""
        if not (self.of_class or self.limits):
            return token
        others = [
            f"{name}={100 * most:g}%" if part else f"{name}={most:g}"
            for name, (most, part) in self.limits.items()
        ]
        return ",".join([*([f"shortcut={token}"] if token else []), *others])

    def exceeding(self, tokens: pl.DataFrame, class_documents: Mapping[str, int]) -> pl.DataFrame:
        """The rows of `Audit.tokens` that exceed the limit on tokens, largest posterior difference first."""
        import polars as pl  # not for --help

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
        """The kinds of finding, apart from tokens, that exceed their limit."""
        out = dict.fromkeys(self.limits, False)
        for finding in findings:
            if finding.kind in self.limits:
                most, relative = self.limits[finding.kind]
                found = (
                    [share.value for share in finding.evidence.values()]
                    if relative
                    else [finding.documents]
                )
                out[finding.kind] |= max(found, default=0) > most
        return tuple(name for name, over in out.items() if over)


@dataclass(frozen=True, kw_only=True)
class Settings(TrainSettings):
    """The audit.

    Attributes:
        min_documents: a token must occur in at least this many training documents. Rarer ones cannot be significant, and testing
            them would make the others less significant.
        budget: the limits of `--fail-on` (`Audit.over_budget`, `Audit.exceeded`), or None.
        thorough: also look for near duplicates and wrong labels, and measure accuracy without the shortcuts: about three more
            trainings.
    """

    min_documents: int | None = option(
        3, "A token must occur in at least this many documents.", low=1
    )
    formatting: bool = option(True, "Treat formatting and length as tokens.")
    baseline: bool = option(True, "Train TF-IDF + logistic regression for comparison.")
    budget: Budget | None = option(
        None,
        "Exit with status 3 if a limit is exceeded. 0.9@1%: no token in more than 1% of documents may have P(class) − P(others) "
        "above 0.9. leak=0,labels=1%,shortcut=0: a limit for each kind of finding.",
        flag="--fail-on",
        metavar="LIMITS",
        parse=Budget.parse,
    )
    thorough: bool = option(True, "", flag="")

    def __post_init__(self) -> None:
        super().__post_init__()
        given: object = self.budget
        if isinstance(given, str):  # as on the command line
            object.__setattr__(self, "budget", Budget.parse(given))

    def to_dict(self) -> dict[str, Any]:
        """The settings as JSON values, with the budget as written on the command line."""
        return super().to_dict() | {
            "budget": self.budget and str(self.budget),
            "thorough": self.thorough,
        }


@dataclass(frozen=True, kw_only=True)
class CompareSettings:
    """The comparison."""

    fail_on: str | None = option(
        None,
        "Exit with status 3 if a limit is exceeded, such as appeared=0,sign=0,accuracy=1%.",
        metavar="LIMITS",
    )

    @property
    def limits(self) -> dict[str, float]:
        """How many tokens may appear, vanish, change sign, become stronger or weaker; and by how much accuracy may fall (exceeded
        only if the whole interval of the difference is beyond it); an `InputError` for anything else."""
        written = self.fail_on
        given = {} if written is None else _amounts(written, [*CHANGES, "accuracy"], "change")
        limits = {name: _limit(name, amount, str(written)) for name, amount in given.items()}
        for name, (most, relative) in limits.items():
            whole = not relative and most == int(most)
            if (name == "accuracy" and most > 1) or (name != "accuracy" and not whole):
                advice = "write a number of tokens, as in sign=0, and for accuracy a fraction, as in accuracy=1%"
                raise InputError(f"--fail-on {written!r}: {advice}")
        return {name: most for name, (most, _) in limits.items()}
