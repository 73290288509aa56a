"""Two audits compared: which tokens predict the label in only one of them, or differently, and how
the accuracy changed.

For the effects e_A, e_B of a token with their 95 % intervals (l, h), from independent documents
(MOVER: Zou & Donner 2008):

    Δ = e_B − e_A
    low = Δ − √((e_B − l_B)² + (h_A − e_A)²),   high = Δ + √((h_B − e_B)² + (e_A − l_A)²)

so that the variances add. p is two-sided normal with z = 1.96 |Δ| / (the half-width towards zero):
p < 0.05 exactly where the interval excludes zero. q is Benjamini–Hochberg over all tokens and
classes compared; a token has changed if q < 0.05.

A token that only one audit contains occurred in at most m − 1 documents of the other, where m is
the minimum there. Its effect there is taken as 0 ± |e| · ((m − 1)/n_other)/(d/n): the effect of so
few documents if each weighed as much as those containing it.

Intervals of effects are not paired. Audits of the same or overlapping documents are not
independent: their differences vary less than these intervals allow, so changes that are found are
real, but some may be missed. Accuracies on the same test documents are paired.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
from scipy.special import ndtr

from tokensieve import __version__
from tokensieve.arrays import Floats
from tokensieve.auditing.compare_report import ComparedAudits, comparison_report
from tokensieve.auditing.outcomes import AccuracyChange, paired_change
from tokensieve.auditing.result import Audit
from tokensieve.auditing.saved_audit import SavedAudit
from tokensieve.auditing.settings import CHANGES, CompareSettings
from tokensieve.errors import InputError
from tokensieve.evidence.intervals import LEVEL, Z95, Interval, combined, false_discovery
from tokensieve.files import Content, csv_table, json_text
from tokensieve.report.blocks import Report
from tokensieve.wording import noun

DIGITS = 6  # of the numbers in compare.csv
MAX_TOKENS_IN_SUMMARY = 20
MAX_CLASSES_IN_ERROR = 5


@dataclass(frozen=True, repr=False)
class AuditComparison(ComparedAudits):
    """What changed from one audit to another.

    Attributes:
        version: of this package.
        fail_on: limits as they were given; None without.
        seconds: of each stage.
    """

    own_files: ClassVar[str] = (
        r"(compare|repair|repair-of-predictions)\.csv|pictures/compare\.(svg|png|pdf|csv)"
    )

    version: str = __version__
    fail_on: str | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{n:,} {change}" for change, n in self.counts.items() if n)
        names = f"{self.before.name!r} → {self.after.name!r}"
        changes = sizes or "no change"
        return f"AuditComparison({names}: {changes}; accuracy {self.accuracy.value:+.3f})"

    @property
    def exceeded(self) -> list[str]:
        """Names of the limits of `--fail-on` that are exceeded: kinds of changes, and
        "accuracy"."""
        amounts: dict[str, float] = {**self.counts, "accuracy": -self.accuracy.high}
        limits = CompareSettings(fail_on=self.fail_on).limits
        return [name for name, most in limits.items() if amounts[name] > most]

    def report(self) -> Report:
        """The comparison as terminal and page show it."""
        return comparison_report(self, self.exceeded, self.version)

    def files(self) -> dict[str, Content]:
        """File name → content of everything but the page and its picture."""
        summary = json_text(self.to_dict())
        files: dict[str, Content] = {"compare.csv": csv_table(self.table), "summary.json": summary}
        if self.repair is not None:
            files["repair.csv"] = csv_table(self.repair.to_frame())
        if self.repair_of_others is not None:
            files["repair-of-predictions.csv"] = csv_table(self.repair_of_others.to_frame())
        return files

    def to_frame(self) -> pl.DataFrame:
        """The content of compare.csv."""
        return self.table

    def to_dict(self) -> dict[str, Any]:
        """The content of summary.json."""
        sides = {"before": self.before, "after": self.after}
        summary: dict[str, Any] = {
            side: {
                "name": saved.name,
                "documents": {"train": saved.n_train, "test": saved.n_test},
                "findings": saved.findings,
            }
            for side, saved in sides.items()
        }
        summary["classes"] = list(self.classes)
        summary["changes"] = self.counts
        summary["tokens_compared"] = self.table.height
        summary["within_chance"] = {
            f"only_{side}": _most_frequent(self.only_in_one(side == "after")) for side in sides
        }
        summary["accuracy"] = self._accuracy_dict()
        summary["notes"] = list(self.notes)
        summary["version"] = self.version
        if self.repair is not None:
            summary["repair"] = {"source": self.repair.source, "headline": self.repair.headline}
        if self.repair_of_others is not None:
            summary["repair_of_predictions"] = {
                "models": list(self.repair_of_others.names),
                "headline": self.repair_of_others.headline,
            }
        summary["fail_on"] = self.fail_on
        summary["exceeded"] = self.exceeded
        return summary

    def _accuracy_dict(self) -> dict[str, Any]:
        """The accuracies of both audits and their difference, for summary.json."""
        change = self.accuracy
        return {
            "before": asdict(self.before.accuracy),
            "after": asdict(self.after.accuracy),
            "value": change.value,
            "low": change.low,
            "high": change.high,
            "paired": change.everywhere and change.everywhere.to_dict(),
            "changed_texts": change.on_changed and change.on_changed.to_dict(),
        }


def _most_frequent(tokens: pl.DataFrame) -> dict[str, Any]:
    """A summary of some tokens for summary.json: their number, and the most frequent ones."""
    return {
        "tokens": tokens.height,
        "most_frequent": tokens.head(MAX_TOKENS_IN_SUMMARY).to_dicts(),
    }


def compare_audits(
    before: Audit | str | Path, after: Audit | str | Path, settings: CompareSettings | None = None
) -> AuditComparison:
    """Compare two audits: before and after cleaning, two data sets, two months.

    Args:
        before, after: audits, or folders that `save` wrote.
        settings: limits of what may change.

    Raises:
        InputError: a limit has the wrong form, a folder contains no audit or a damaged one, or the
            audits share fewer than two classes.
    """
    settings = settings or CompareSettings()
    _ = settings.limits  # refused before anything is read
    first = _saved(before)
    second = _saved(after)
    shared = _shared_classes(first, second)
    have_same_classes = set(first.classes) == set(second.classes)
    classes = shared
    if have_same_classes and len(shared) == 2:
        classes = shared[1:]  # the first of two classes mirrors the second
    notes: tuple[str, ...] = ()
    if not have_same_classes:
        sizes = f"{len(shared)} of {len(first.classes)} and {len(second.classes)}"
        notes = (f"only the classes in both audits are compared: {sizes}",)
    return AuditComparison(
        before=first,
        after=second,
        classes=classes,
        table=token_differences(first, second, classes),
        accuracy=_accuracy_change(first, second),
        notes=notes,
        fail_on=settings.fail_on,
    )


def _saved(audit: Audit | str | Path) -> SavedAudit:
    return SavedAudit.of(audit) if isinstance(audit, Audit) else SavedAudit.read(audit)


def _shared_classes(before: SavedAudit, after: SavedAudit) -> tuple[str, ...]:
    """The classes that both audits have; an `InputError` if there are fewer than two."""
    shared = tuple(name for name in before.classes if name in after.classes)
    if len(shared) >= 2:
        return shared
    sides = "; ".join(
        f"{side}: {', '.join(saved.classes[:MAX_CLASSES_IN_ERROR])}"
        for side, saved in (("before", before), ("after", after))
    )
    n_shared = len(shared) or "no"
    raise InputError(
        f"the audits share {n_shared} {noun(len(shared), 'class', 'classes')} ({sides}), but a "
        "comparison needs two; audit both with the same --group and --drop"
    )


def _accuracy_change(before: SavedAudit, after: SavedAudit) -> AccuracyChange:
    """Item by item if both audits tested the same items, else as of independent test sets."""
    if before.outcomes is not None and after.outcomes is not None:
        change = paired_change(before.outcomes, after.outcomes)
        if change is not None:
            return change
    difference = difference_of(*(_as_interval(saved) for saved in (before, after))).interval
    return AccuracyChange(float(difference.estimate), float(difference.low), float(difference.high))


def _as_interval(saved: SavedAudit) -> Interval:
    accuracy = saved.accuracy
    return Interval(*(np.asarray(end) for end in (accuracy.value, accuracy.low, accuracy.high)))


@dataclass(frozen=True, eq=False)
class Difference:
    """after − before with its interval, and the p-value of no difference; arrays of one shape."""

    interval: Interval
    p_value: Floats


def difference_of(before: Interval, after: Interval) -> Difference:
    """The difference of estimates from independent documents, by the formula of this module."""
    sides = Interval(
        np.stack([before.estimate, after.estimate], axis=-1),
        np.stack([before.low, after.low], axis=-1),
        np.stack([before.high, after.high], axis=-1),
    )
    column = combined(np.array([[-1.0], [1.0]]), sides)
    interval = Interval(column.estimate[..., 0], column.low[..., 0], column.high[..., 0])
    delta = interval.estimate
    towards_zero = np.where(delta > 0, delta - interval.low, interval.high - delta)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(delta == 0, 0.0, Z95 * np.abs(delta) / towards_zero)
    return Difference(interval, 2 * ndtr(-z))


def token_differences(
    before: SavedAudit, after: SavedAudit, classes: Sequence[str]
) -> pl.DataFrame:
    """The table of a comparison (`AuditComparison.table`)."""
    in_classes = pl.col("class").is_in(classes)
    both = before.tokens.filter(in_classes).join(
        after.tokens.filter(in_classes),
        on=["token", "class"],
        how="full",
        suffix="_after",
        coalesce=True,
    )
    effect_before = _effects(both, before, after, "", "_after")
    effect_after = _effects(both, after, before, "_after", "")
    difference = difference_of(effect_before, effect_after)
    q_values = false_discovery(difference.p_value[:, None])[:, 0]
    kinds = _kinds_of_change(both, effect_before.estimate, effect_after.estimate)
    columns: dict[str, object] = {
        "token": both["token"],
        "class": both["class"],
        "change": pl.Series(np.where(q_values < LEVEL, kinds, ""), dtype=pl.String),
        "effect_before": both["effect"],
        "effect_after": both["effect_after"],
        "difference": difference.interval.estimate,
        "difference_low": difference.interval.low,
        "difference_high": difference.interval.high,
        "p_value": difference.p_value,
        "q_value": q_values,
    }
    for name, column in (
        ("documents", "documents"),
        ("posterior", "posterior_difference"),
        ("value", "value"),
    ):
        columns[f"{name}_before"] = both[column]
        columns[f"{name}_after"] = both[f"{column}_after"]
    order = [pl.col("change") == "", -pl.col("difference").abs(), "token", "class"]
    rounded = pl.selectors.float().round_sig_figs(DIGITS)
    return pl.DataFrame(columns).sort(order).with_columns(rounded)


def _effects(
    both: pl.DataFrame, own: SavedAudit, other: SavedAudit, suffix: str, other_suffix: str
) -> Interval:
    """The effects of one audit; of tokens that it does not contain, 0 with the widest interval."""
    fraction = pl.col(f"documents{other_suffix}") / other.n_train
    unseen_fraction = (own.min_documents - 1) / own.n_train
    bound = pl.col(f"effect{other_suffix}").abs() * unseen_fraction / fraction
    ends = both.select(
        estimate=pl.col(f"effect{suffix}").fill_null(0.0),
        low=pl.col(f"effect_low{suffix}").fill_null(-bound),
        high=pl.col(f"effect_high{suffix}").fill_null(bound),
    )
    return Interval(*(ends[name].to_numpy() for name in ("estimate", "low", "high")))


def _kinds_of_change(both: pl.DataFrame, effect_before: Floats, effect_after: Floats) -> Any:
    """The kind of change of each token, if it is significant, shape (n,), as an index into
    `CHANGES`."""
    predicts_before = both["q_value"].fill_null(1.0).to_numpy() < LEVEL
    predicts_after = both["q_value_after"].fill_null(1.0).to_numpy() < LEVEL
    predicts_always = predicts_before & predicts_after
    is_of_kind = {
        "appeared": ~predicts_before & predicts_after,
        "vanished": predicts_before & ~predicts_after,
        "sign": predicts_always & (effect_before * effect_after < 0),
        "stronger": predicts_always & (abs(effect_after) > abs(effect_before)),
        "weaker": predicts_always,
    }
    return np.select([is_of_kind[name] for name in CHANGES], list(CHANGES), "")
