"""Settings of an audit and of a comparison.

`--fail-on` limits each kind of finding of an audit, or each change between two audits:
NAME=AMOUNT,NAME=AMOUNT,…, where a plain number counts documents (for a change, tokens) and a
percentage is a fraction of them. For audits, `shortcut` also takes DIFFERENCE@FRACTION, a limit on
every token, which may be given alone.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from tokensieve.errors import InputError
from tokensieve.model.settings import TrainSettings
from tokensieve.options import option

DEFAULT_FRACTION = 0.01  # of DIFFERENCE alone: one document in a hundred
_AMOUNT = re.compile(r"(?P<amount>\d{0,9}\.?\d{1,9})(?P<percent>%?)")
_TOKEN_LIMIT = re.compile(r"(?P<difference>\d*\.?\d+)(@(?P<fraction>\d*\.?\d+)(?P<percent>%?))?")
# kinds of change of a token: the name in compare.csv and for `--fail-on` → what a reader sees
CHANGES = {
    "appeared": "now predicts",
    "vanished": "no longer predicts",
    "sign": "other class",
    "stronger": "stronger",
    "weaker": "weaker",
}


@dataclass(frozen=True)
class Limit:
    """How much there may be of something: a number of documents or tokens, or a fraction of
    them."""

    amount: float
    is_fraction: bool = False

    @classmethod
    def parse(cls, name: str, written: str, option_value: str) -> Limit:
        """Reads a number, or a percentage of at most 100."""
        match = _AMOUNT.fullmatch(written)
        if not match or (match["percent"] and float(match["amount"]) > 100):
            raise InputError(
                f"--fail-on {option_value!r}: {name} takes a number or a percentage, such as "
                f"{name}=0 or {name}=1%"
            )
        if match["percent"]:
            return cls(float(match["amount"]) / 100, is_fraction=True)
        return cls(float(match["amount"]))

    def __str__(self) -> str:
        if self.is_fraction:
            return f"{100 * self.amount:g}%"
        return f"{self.amount:g}"


@dataclass(frozen=True)
class Budget:
    """What `--fail-on` allows: a limit on every token, and one for each kind of finding
    (`limits.py` compares).

    No token type may have a posterior difference above `difference` for any class in more than
    `share` of the documents.

    Attributes:
        difference: P(class|token) − P(rest|token), from −1 to 1; None if tokens are not limited.
        share: a fraction of the training documents.
        of_class: whether `share` refers to the documents of the class instead of all documents.
        limits: other kinds of finding → how much is allowed.
    """

    difference: float | None = 0.9  # a class nearly certain
    share: float = DEFAULT_FRACTION
    of_class: bool = False
    limits: dict[str, Limit] = field(default_factory=dict)

    @classmethod
    def parse(cls, written: str) -> Budget:
        """Reads the value of `--fail-on`.

        `0.9@1%`, `0.9@0.01`, or `0.9` alone (then 1% of all documents); or a limit per kind of
        finding, `leak=0,labels=1%`, where `leak` alone is `leak=0`. In `shortcut=0.9@3%` the
        fraction is one of the class's documents. Whether such kinds exist is left to `check_kinds`.

        Raises:
            InputError: anything else, a difference of 1 or more, or a fraction above 1.
        """
        names_kinds = re.search("[A-Za-z_=]", written) is not None
        if not names_kinds:
            return cls._with_token_limit(written, of_class=False, limits={})
        amounts = _amounts(written)
        token_limit = None
        counts_documents = re.fullmatch(r"\d+|[\d.]+%", amounts.get("shortcut", "0")) is not None
        if not counts_documents:
            token_limit = amounts.pop("shortcut")
        limits = {name: Limit.parse(name, amount, written) for name, amount in amounts.items()}
        if token_limit is None:
            return cls(difference=None, limits=limits)
        return cls._with_token_limit(token_limit, of_class=True, limits=limits)

    @classmethod
    def _with_token_limit(cls, written: str, of_class: bool, limits: dict[str, Limit]) -> Budget:
        """Reads DIFFERENCE@FRACTION."""
        match = _TOKEN_LIMIT.fullmatch(written.strip())
        if match:
            fraction = DEFAULT_FRACTION
            if match["fraction"] is not None:
                fraction = float(match["fraction"])
                if match["percent"]:
                    fraction /= 100
            if float(match["difference"]) < 1 and fraction <= 1:
                return cls(float(match["difference"]), fraction, of_class, limits)
        raise InputError(
            f"--fail-on {written!r} is not of the form DIFFERENCE@FRACTION with a difference below "
            "1; 0.9@1% allows no token a posterior difference, P(class) − P(others), above 0.9 in "
            "more than 1% of the documents"
        )

    def check_kinds(self, known: Collection[str]) -> None:
        """Raises an `InputError` if a limit is on a kind of finding that no check reports."""
        for name in self.limits:
            if name not in known:
                raise _unknown_name(str(self), name, "kind of finding", known)

    def __str__(self) -> str:
        token_limit = ""
        if self.difference is not None:
            token_limit = f"{self.difference:g}@{100 * self.share:g}%"
        if not self.of_class and not self.limits:
            return token_limit
        parts = [f"{name}={limit}" for name, limit in self.limits.items()]
        if token_limit:
            parts.insert(0, f"shortcut={token_limit}")
        return ",".join(parts)


def _amounts(written: str) -> dict[str, str]:
    """NAME=AMOUNT,… as a dictionary; a name alone is NAME=0."""
    amounts: dict[str, str] = {}
    for item in written.split(","):
        name, sign, amount = (part.strip() for part in item.partition("="))
        if not re.fullmatch(r"[A-Za-z_][\w-]*", name):
            raise InputError(
                f"--fail-on {written!r}: {name!r} is not a name; write NAME=AMOUNT, as in leak=0, "
                "or 0.9@1%"
            )
        if name in amounts:
            raise InputError(f"--fail-on {written!r}: {name!r} is given twice")
        amounts[name] = amount if sign else "0"
    return amounts


def _unknown_name(written: str, name: str, noun: str, known: Collection[str]) -> InputError:
    return InputError(
        f"--fail-on {written!r}: {name!r} is not a {noun}; choose from {', '.join(known)}"
    )


@dataclass(frozen=True, kw_only=True)
class Settings(TrainSettings):
    """The audit.

    Attributes:
        min_documents: a token must occur in at least this many training documents. Rarer ones
            cannot be significant, and testing them would make the others less significant.
        budget: the limits of `--fail-on` (`Audit.over_budget`, `Audit.exceeded`), or None.
        fail_on: another name for `budget`, that of the command's option; becomes `budget`.
        thorough: also look for near duplicates and wrong labels, and measure accuracy without the
            shortcuts: about three more trainings.
        predictions: a file of another model's predictions of the test documents; a row for each row
            of the test source, or with a column `row`.
        predicted: the column of the predictions; None to recognise it.
    """

    min_documents: int | None = option(
        3, "A token must occur in at least this many documents.", low=1
    )
    formatting: bool = option(True, "Treat formatting and length as tokens.")
    baseline: bool = option(True, "Train TF-IDF + logistic regression for comparison.")
    budget: Budget | None = option(
        None,
        "Exit with status 3 if a limit is exceeded. 0.9@1%: no token in more than 1% of "
        "documents may have P(class) − P(others) above 0.9. leak=0,labels=1%,shortcut=0: a limit "
        "for each kind of finding.",
        flag="--fail-on",
        metavar="LIMITS",
        parse=Budget.parse,
    )
    fail_on: Budget | str | None = option(None, "", flag="")
    thorough: bool = option(True, "", flag="")
    predictions: str | None = option(
        None,
        "Another model's predictions of the test documents: how good they are where the shortcuts "
        "mislead. Rows in the order of the test source, or with its `id`, or numbered by `row`.",
        metavar="FILE",
    )
    predicted: str | None = option(
        None, "Column of --predictions.", metavar="COLUMN", default_text="recognised"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_predictions()
        if self.fail_on is not None:
            object.__setattr__(self, "budget", self.fail_on)
            object.__setattr__(self, "fail_on", None)
        budget: object = self.budget
        if isinstance(budget, str):  # as on the command line
            object.__setattr__(self, "budget", Budget.parse(budget))

    def _check_predictions(self) -> None:
        """Raises an `InputError` if there is nothing that predictions could be compared with."""
        if self.predicted is not None and self.predictions is None:
            raise InputError("--predicted names a column of --predictions FILE: add the file")
        if self.predictions is not None and (self.pairs is not None or self.task == "scores"):
            raise InputError("--predictions is for documents with classes: leave it out")

    def to_dict(self) -> dict[str, Any]:
        """The settings as JSON values, with the budget as written on the command line."""
        budget = None if self.budget is None else str(self.budget)
        return super().to_dict() | {"budget": budget, "thorough": self.thorough}


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
        """The limits of `--fail-on`: the number of tokens that may change in each way, and the fall
        of the accuracy.

        Accuracy counts as fallen only if the whole interval of the difference is beyond its limit.

        Raises:
            InputError: an unknown change, or an amount that does not fit it.
        """
        if self.fail_on is None:
            return {}
        kinds = [*CHANGES, "accuracy"]
        limits = {}
        for name, amount in _amounts(self.fail_on).items():
            if name not in kinds:
                raise _unknown_name(self.fail_on, name, "change", kinds)
            limit = Limit.parse(name, amount, self.fail_on)
            if name == "accuracy":
                fits = limit.amount <= 1
            else:
                fits = not limit.is_fraction and limit.amount == int(limit.amount)
            if not fits:
                raise InputError(
                    f"--fail-on {self.fail_on!r}: write a number of tokens, as in sign=0, and for "
                    "accuracy a fraction, as in accuracy=1%"
                )
            limits[name] = limit.amount
        return limits
