"""Which shortcuts weights can balance: those that `mask` cannot cut out of the texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tokensieve.auditing.balance_features import LENGTH_FORM, RowFeatures, counted_features
from tokensieve.auditing.balancing import MIN_EFFECTIVE_FRACTION, balance
from tokensieve.auditing.findings import Finding
from tokensieve.errors import InputError
from tokensieve.text.vocabulary import CountedCorpus

MAX_BALANCED = 6  # features: each one more costs evidence, and a command with more is hard to read


@dataclass(frozen=True)
class BalancePlan:
    """What `balance` can make uninformative with weights that keep enough evidence.

    Attributes:
        tokens: forms and values of columns.
        with_length: also the length of texts.
        lengths: the lengths that tell a class (⟨length 20–50⟩); none for pairs.
    """

    tokens: tuple[str, ...] = ()
    with_length: bool = False
    lengths: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to balance."""
        return not self.tokens and not self.with_length


def balance_plan(train: CountedCorpus, shortcuts: Sequence[Finding]) -> BalancePlan:
    """Choose among the shortcuts without words to cut, most serious first.

    A feature is taken if it can be balanced together with those before it, and if the weights keep
    the evidence of a quarter of the documents, as the command `balance` requires.
    """
    findings = [finding for finding in shortcuts if not finding.maskable and finding.level != "low"]
    lengths = [token for finding in findings for token in finding.tokens if LENGTH_FORM in token]
    plan = BalancePlan()
    for finding in findings:
        plan = _extended(train, plan, finding, tuple(lengths))
    return plan


def _extended(
    train: CountedCorpus, plan: BalancePlan, finding: Finding, lengths: tuple[str, ...]
) -> BalancePlan:
    """The plan with as much of a finding as can be balanced besides what it has.

    `lengths` are those of all findings: if one of them cannot be balanced, length is left as it is,
    because it would still tell the class.
    """
    is_of_length = not finding.tokens or any(LENGTH_FORM in token for token in finding.tokens)
    if is_of_length and not plan.with_length:
        longer = replace(plan, with_length=True, lengths=lengths)
        if _is_possible(train, longer):
            plan = longer
    for token in finding.tokens:
        if LENGTH_FORM in token or token in plan.tokens or len(plan.tokens) == MAX_BALANCED:
            continue
        larger = replace(plan, tokens=(*plan.tokens, token))
        if _is_possible(train, larger):
            plan = larger
    return plan


def _is_possible(train: CountedCorpus, plan: BalancePlan) -> bool:
    """Whether weights balance everything in the plan and keep enough evidence."""
    try:
        data = counted_features(train, plan.tokens, plan.with_length)
        if not _varies_in_every_class(data, len(plan.tokens)):
            return False
        result = balance(data.features, data.labels)
    except InputError:  # a token of a phrase that is not counted by itself, or no such weights
        return False
    # some other length may be too rare to be balanced, but not one that tells a class
    balanced = {
        name for name, is_balanced in zip(data.names, result.balanced, strict=True) if is_balanced
    }
    is_length_balanced = not plan.with_length or len(balanced) > len(plan.tokens)
    is_enough = result.effective_fraction >= MIN_EFFECTIVE_FRACTION
    return balanced.issuperset([*plan.tokens, *plan.lengths]) and is_length_balanced and is_enough


def _varies_in_every_class(data: RowFeatures, n_tokens: int) -> bool:
    """Whether every class has documents with each token and without it; quick to see."""
    labels = data.labels[:, 0]  # an audit is of one label
    for label in np.unique(labels):
        of_class = data.features[labels == label, :n_tokens]
        if (of_class.max(axis=0) == of_class.min(axis=0)).any():
            return False
    return True
