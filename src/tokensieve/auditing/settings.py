"""What an audit, a comparison and the cleaning of data can be given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tokensieve.model.settings import TrainSettings
from tokensieve.options import option


def _limits(written: str) -> Any:
    from tokensieve.auditing.limits import Budget

    return Budget.parse(written)


@dataclass(frozen=True, kw_only=True)
class Settings(TrainSettings):
    """The audit.

    Attributes:
        min_documents: a type must occur in that many training documents: rarer ones cannot be significant, and testing them costs
            the others some of their significance.
        formatting: what a text looks like is a token type, too (`tokensieve.text.formatting`).
        baseline: whether TF-IDF + logistic regression is trained for comparison.
        budget: what no token and no finding may exceed (`Audit.over_budget`, `Audit.exceeded`), or None.
        thorough: also look for near duplicates and wrong labels, and measure accuracy without the shortcuts: about three more
            trainings.
    """

    min_documents: int | None = option(3, "A token must occur in at least this many documents.", low=1)
    formatting: bool = option(True, "Treat formatting and length as tokens.")
    baseline: bool = option(True, "Train TF-IDF + logistic regression for comparison.")
    budget: Any = option(
        None,
        "Exit 3 beyond it: 0.9@1% is P(class) − P(others) above 0.9 for one token in over 1% of the documents; or per kind of "
        "finding: shortcut=0.9@3%,leak=0,labels=1%.",
        flag="--fail-on",
        metavar="LIMITS",
        parse=_limits,
    )
    thorough: bool = option(True, "", flag="")

    def to_dict(self) -> dict[str, Any]:
        """As of training, with the budget as it is written on the command line."""
        return super().to_dict() | {"budget": self.budget and str(self.budget), "thorough": self.thorough}


@dataclass(frozen=True, kw_only=True)
class CompareSettings:
    """The comparison."""

    fail_on: str | None = option(
        None, "Exit with status 3 if a limit is exceeded, such as appeared=0,sign=0,accuracy=1%.", metavar="LIMITS"
    )
