"""Two audits compared: which tokens carry the label in one and not in the other, or differently, and what became of the accuracy.

For the effects e_A, e_B of a token with their 95 % intervals (l, h), from independent documents (MOVER: Zou & Donner 2008):

    Δ = e_B − e_A,   low = Δ − √((e_B − l_B)² + (h_A − e_A)²),   high = Δ + √((h_B − e_B)² + (e_A − l_A)²)

so that the variances add. p is two-sided normal with z = 1.96 |Δ| / (the half-width towards zero): p < 0.05 exactly where the
interval excludes zero. q is Benjamini–Hochberg over all tokens and classes compared; a token has changed where q < 0.05.

A token that only one audit knows occurred in at most m − 1 documents of the other, m being that audit's floor. Its effect there
is taken as 0 ± |e| · ((m − 1)/n_other)/(d/n): what so few documents would give if each weighed as much as those that hold it.

Audits of the same documents, or of documents shared in part, are not independent: their differences vary less than these intervals
allow, so that what is found is found a fortiori and something may be missed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
from scipy.stats import false_discovery_control, norm

from tokensieve import __version__
from tokensieve.auditing.checks import registry
from tokensieve.auditing.findings import plural, quoted
from tokensieve.auditing.limits import Limit, parse_limits
from tokensieve.auditing.report import file_name
from tokensieve.auditing.result import Audit
from tokensieve.auditing.saved import Saved
from tokensieve.auditing.settings import CompareSettings
from tokensieve.blocks import Block, Column, Facts, Picture, Report, Section, Table, Text
from tokensieve.errors import InputError
from tokensieve.escape import shown
from tokensieve.evidence.intervals import LEVEL, Z95
from tokensieve.evidence.shares import Share
from tokensieve.files import Content, csv_table
from tokensieve.text.counts import Floats
from tokensieve.wording import count, percent, signed


class Change(StrEnum):
    """What became of a token; the values stand in compare.csv and are names that `--fail-on` knows."""

    APPEARED = "appeared"
    VANISHED = "vanished"
    SIGN = "sign"
    STRONGER = "stronger"
    WEAKER = "weaker"


@dataclass(frozen=True)
class Difference:
    """A difference of two shares with its 95 % interval.

    Attributes:
        before, after: the shares.
        value, low, high: of after − before.
    """

    before: Share
    after: Share
    value: float
    low: float
    high: float

    def to_dict(self) -> dict[str, Any]:
        """All of it, as JSON values."""
        shares = {"before": self.before.to_dict(), "after": self.after.to_dict()}
        return shares | {"value": self.value, "low": self.low, "high": self.high}


@dataclass(frozen=True, repr=False)
class AuditComparison:
    """What changed from one audit to another.

    Attributes:
        before, after: the audits.
        classes: those that both have and that are compared; of two classes the second (the first mirrors it).
        table: a row per token and class: token, class, change ("" where none is shown), effects, difference with interval, p and q,
            documents, posterior differences and values of both (null where only the other audit knows the token); changed tokens
            first, the largest difference first.
        accuracy: of the test documents.
        notes: what a reader should know.
        version: of this package.
        fail_on: limits as they were given; None without.
        seconds: of each stage.
    """

    own_files: ClassVar[str] = r"compare\.csv|pictures/compare\.(svg|png|pdf|csv)"

    before: Saved
    after: Saved
    classes: tuple[str, ...]
    table: pl.DataFrame
    accuracy: Difference
    notes: tuple[str, ...]
    version: str = __version__
    fail_on: str | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{n:,} {change.value}" for change, n in self.counts.items() if n) or "no change"
        return (
            f"AuditComparison({self.before.name!r} → {self.after.name!r}: {sizes}; accuracy {self.accuracy.value:+.3f})"
        )

    @property
    def counts(self) -> dict[Change, int]:
        """How many tokens changed, by kind."""
        sizes = dict(self.changed().group_by("change").agg(pl.col("token").n_unique()).iter_rows())
        return {change: sizes.get(change.value, 0) for change in Change}

    def changed(self, change: Change | None = None) -> pl.DataFrame:
        """The tokens that changed, of one kind or of all."""
        return self.table.filter(pl.col("change") != "" if change is None else pl.col("change") == change.value)

    def alone(self, after: bool) -> pl.DataFrame:
        """Tokens that only the earlier (later) audit contains and that changed significantly for no class: token and documents,
        most frequent first."""
        mine, other = ("after", "before") if after else ("before", "after")
        rows = self.table.filter(
            pl.col(f"documents_{other}").is_null(), ~pl.col("token").is_in(self.changed()["token"].implode())
        )
        named = rows.group_by("token").agg(pl.col(f"documents_{mine}").first().alias("documents"))
        return named.sort("documents", "token", descending=[True, False])

    def kept(self) -> list[str]:
        """Tokens that carry the label in both audits without having changed, those of largest effect first."""
        sides = [
            one.tokens.filter(pl.col("class").is_in(self.classes) & (pl.col("q_value") < LEVEL))
            for one in (self.before, self.after)
        ]
        both = sides[0].join(sides[1], on=["token", "class"], suffix="_after")
        same = both.join(self.changed(), on=["token", "class"], how="anti")
        return same.sort(pl.col("effect_after").abs(), descending=True)["token"].unique(maintain_order=True).to_list()

    @property
    def exceeded(self) -> list[str]:
        """What goes beyond `fail_on`: names of changes, and "accuracy"."""
        counts: dict[str, float] = {change.value: n for change, n in self.counts.items()}
        limits = change_limits(self.fail_on)
        return [limit.name for limit in limits if counts.get(limit.name, -self.accuracy.high) > limit.amount]

    def report(self) -> Report:
        """What terminal and page show."""

        return comparison_report(self)

    def files(self) -> dict[str, Content]:
        """File name → content of everything but the page and its picture."""
        summary = json.dumps(self.to_dict(), ensure_ascii=False, indent=1)
        return {"compare.csv": csv_table(self.table), "summary.json": summary}

    def to_frame(self) -> pl.DataFrame:
        """The content of compare.csv."""
        return self.table

    def to_dict(self) -> dict[str, Any]:
        """The content of summary.json."""
        sides = {
            side: {"name": one.name, "documents": {"train": one.train, "test": one.test}, "findings": one.findings}
            for side, one in (("before", self.before), ("after", self.after))
        }
        return sides | {
            "classes": list(self.classes),
            "changes": {change.value: n for change, n in self.counts.items()},
            "tokens_compared": self.table.height,
            "within_chance": {
                side: {"tokens": rows.height, "most_frequent": rows.head(20).to_dicts()}
                for side, rows in (("only_before", self.alone(False)), ("only_after", self.alone(True)))
            },
            "accuracy": self.accuracy.to_dict(),
            "notes": list(self.notes),
            "version": self.version,
            "fail_on": self.fail_on,
            "exceeded": self.exceeded,
        }


def compare_audits(
    before: Audit | str | Path, after: Audit | str | Path, settings: CompareSettings | None = None
) -> AuditComparison:
    """What changed from one audit to another: before and after cleaning, two data sets, two months.

    Args:
        before, after: audits, or folders that `tokensieve audit` or `save` wrote.
        settings: limits of what may change.

    Raises:
        InputError: a limit has the wrong form, a folder holds no audit or a damaged one, or the two share no two classes.
    """
    fail_on = None if settings is None else settings.fail_on
    change_limits(fail_on)
    a, b = (Saved.of(one) if isinstance(one, Audit) else Saved.read(one) for one in (before, after))
    shared = [name for name in a.classes if name in b.classes]
    if len(shared) < 2:
        raise InputError(
            f"the audits have {len(shared)} classes in common, {', '.join(map(repr, a.classes[:5]))} and "
            f"{', '.join(map(repr, b.classes[:5]))}: two are needed; name them alike with --group"
        )
    classes = tuple(shared[1:] if len(a.classes) == len(b.classes) == len(shared) == 2 else shared)
    notes = []
    if set(a.classes) != set(b.classes):
        notes.append(
            f"compared are the classes that both audits have: {len(shared)} of {len(a.classes)} and {len(b.classes)}"
        )
    table, accuracy = _differences(a, b, classes), _accuracy(a, b)
    return AuditComparison(a, b, classes, table, accuracy, tuple(notes), fail_on=fail_on)


def _differences(a: Saved, b: Saved, classes: tuple[str, ...]) -> pl.DataFrame:
    key = ["token", "class"]
    sides = [one.tokens.filter(pl.col("class").is_in(classes)) for one in (a, b)]
    both = sides[0].join(sides[1], on=key, how="full", suffix="_after", coalesce=True)
    effects = []
    for suffix, other, mine, theirs in (("", "_after", a, b), ("_after", "", b, a)):
        bound = (
            pl.col(f"effect{other}").abs()
            * (mine.floor - 1)
            / mine.train
            / (pl.col(f"documents{other}") / theirs.train)
        )
        known = [pl.col(f"{name}{suffix}") for name in ("effect", "effect_low", "effect_high")]
        filled = [column.fill_null(rest) for column, rest in zip(known, (pl.lit(0.0), -bound, bound), strict=True)]
        effects.append(both.select(filled).to_numpy().T)
    (e, low, high), (f, lower, higher) = effects
    delta, ends = _mover((e, low, high), (f, lower, higher))
    p = _p_value(delta, *ends)
    q = false_discovery_control(p) if len(p) else p
    columns = {
        "token": both["token"],
        "class": both["class"],
        "effect_before": both["effect"],
        "effect_after": both["effect_after"],
        "difference": delta,
        "difference_low": ends[0],
        "difference_high": ends[1],
        "p_value": p,
        "q_value": q,
        "documents_before": both["documents"],
        "documents_after": both["documents_after"],
        "posterior_before": both["posterior_difference"],
        "posterior_after": both["posterior_difference_after"],
        "value_before": both["value"],
        "value_after": both["value_after"],
    }
    carries = [both[f"q_value{suffix}"].fill_null(1.0).to_numpy() < LEVEL for suffix in ("", "_after")]
    kinds = np.select(
        [
            ~carries[0] & carries[1],
            carries[0] & ~carries[1],
            carries[0] & carries[1] & (e * f < 0),
            carries[0] & carries[1] & (np.abs(f) > np.abs(e)),
            carries[0] & carries[1],
        ],
        [change.value for change in Change],
        "",
    )
    change = np.where(q < LEVEL, kinds, "")
    table = pl.DataFrame(columns).insert_column(2, pl.Series("change", change, dtype=pl.String))
    order = [pl.col("change") == "", -pl.col("difference").abs(), "token", "class"]
    return table.sort(order).with_columns(pl.selectors.float().round_sig_figs(6))


def _mover(
    before: tuple[Floats, Floats, Floats], after: tuple[Floats, Floats, Floats]
) -> tuple[Floats, tuple[Floats, Floats]]:
    """after − before with its interval (module formula); each side as (estimate, low, high)."""
    (e, low, high), (f, lower, higher) = before, after
    delta = f - e
    down = np.hypot(np.maximum(f - lower, 0.0), np.maximum(high - e, 0.0))
    up = np.hypot(np.maximum(higher - f, 0.0), np.maximum(e - low, 0.0))
    return delta, (delta - down, delta + up)


def _p_value(delta: Floats, low: Floats, high: Floats) -> Floats:
    half = np.where(delta > 0, delta - low, high - delta)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(delta == 0, 0.0, Z95 * np.abs(delta) / half)
    return np.asarray(2 * norm.sf(z))


def _accuracy(a: Saved, b: Saved) -> Difference:
    """Newcombe's interval of the difference of two shares: MOVER on those of the audits, over units where they have them."""
    shares = [one.accuracy for one in (a, b)]
    before, after = ((np.array([s.value]), np.array([s.low]), np.array([s.high])) for s in shares)
    delta, (low, high) = _mover(before, after)
    return Difference(shares[0], shares[1], float(delta[0]), float(low[0]), float(high[0]))


def change_limits(written: str | None) -> tuple[Limit, ...]:
    """`--fail-on appeared=0,sign=0,accuracy=1%`: tokens that may appear, vanish, change sign, become stronger or weaker; and by how
    much accuracy may fall, which it does only where the interval of the difference lies beyond.

    Raises:
        InputError: not of that form.
    """
    if written is None:
        return ()
    given = parse_limits(written, [*(change.value for change in Change), "accuracy"], "change")
    limits = tuple(Limit.parse(name, amount, written) for name, amount in given.items())
    for limit in limits:
        whole = not limit.relative and limit.amount == int(limit.amount)
        if (limit.name == "accuracy" and limit.amount > 1) or (limit.name != "accuracy" and not whole):
            raise InputError(
                f"--fail-on {written!r}: write a number of tokens, as in sign=0, and for accuracy a fraction, as in accuracy=1%"
            )
    return limits


DRAWN, NAMED, ROWS = 16, 8, 1_000
WORDS = {
    "appeared": "new",
    "vanished": "gone",
    "sign": "other class",
    "stronger": "stronger",
    "weaker": "weaker",
}


def comparison_report(found: AuditComparison) -> Report:
    """The report of a comparison."""
    blocks: list[Block] = []
    if found.exceeded:
        blocks.append(Text(f"Over the limit of --fail-on: {', '.join(found.exceeded)}.", style="bad"))
    d = found.accuracy
    blocks.append(
        Facts(
            (
                (
                    "Test accuracy before",
                    percent(d.before.value),
                    f"95% CI {percent(d.before.low)} to {percent(d.before.high)}",
                ),
                ("after", percent(d.after.value), f"95% CI {percent(d.after.low)} to {percent(d.after.high)}"),
                (
                    "change in points",
                    signed(100 * d.value, 1),
                    f"95% CI {signed(100 * d.low, 1)} to {signed(100 * d.high, 1)}",
                ),
            )
        )
    )
    changed = found.changed()
    if not changed.is_empty():
        blocks.append(_slopes(found, changed))
    kept = found.kept()
    if kept:
        verb = "predicts" if len(kept) == 1 else "predict"
        text = f"{plural(len(kept), 'token')} {verb} the label in both audits alike, such as {quoted(tuple(kept), 6)}."
        blocks.append(Text(text, only=("html", "markdown")))
    blocks.append(Text("Next, open the report of each audit to see the documents behind a change.", only=("html",)))
    blocks += [Text(f"{shown(note[:1].upper() + note[1:], 400)}.", style="warning") for note in found.notes]
    blocks.append(Section("Tokens that changed", tuple(_changes(found)), anchor="changed"))
    blocks.append(
        Section("Findings before and after", tuple(_findings(found)), anchor="found", only=("html", "markdown"))
    )
    names = [shown(file_name(one.name), 40) for one in (found.before, found.after)]
    documents = {
        f"{side} documents": f"{one.train:,} training, {one.test:,} test"
        for side, one in (("earlier", found.before), ("later", found.after))
    }
    return Report(
        "compare", f"{names[0]} → {names[1]}", verdict(found), tuple(blocks), {"version": found.version} | documents
    )


def verdict(found: AuditComparison) -> str:
    """What changed, in one sentence: the result first."""
    d = found.accuracy
    before, after = percent(d.before.value), percent(d.after.value)
    if d.low <= 0 <= d.high:
        accuracy = f"Accuracy {before} → {after}; the difference is within chance."
    else:
        accuracy = f"Accuracy {'rose' if d.value > 0 else 'fell'} from {before} to {after}."
    n = {change.value: size for change, size in found.counts.items()}
    parts = [
        f"{plural(size, 'predictive token')} {words}"
        for size, words in (
            (n["vanished"], "is gone" if n["vanished"] == 1 else "are gone"),
            (n["appeared"], "is new" if n["appeared"] == 1 else "are new"),
            (n["sign"], "now predicts the other class" if n["sign"] == 1 else "now predict the other class"),
            (n["stronger"] + n["weaker"], "changed in strength"),
        )
        if size
    ]
    if not parts:
        return f"No token's association with the label changed significantly. {accuracy}"
    head = f"{', '.join(parts[:-1])}{' and ' * (len(parts) > 1)}{parts[-1]}"
    return f"{head}. {accuracy}"


def _slopes(found: AuditComparison, changed: pl.DataFrame) -> Picture:
    """The largest changes as lines from before to after; what one audit does not know is at 0 there."""
    rows = changed.head(DRAWN).select(
        "token",
        before=pl.col("effect_before").fill_null(0.0) * 1000,
        after=pl.col("effect_after").fill_null(0.0) * 1000,
        kind=pl.col("change").replace_strict(WORDS),
    )
    names = tuple(shown(file_name(one.name), 24) for one in (found.before, found.after))
    sides = names if names[0] != names[1] else ("before", "after")
    listing = ", ".join(shown(token, 24) for token in rows["token"].head(10))
    return Picture(
        "compare",
        "audit-slopes",
        {"changes": rows, "names": sides, "axis": "effect per 1,000 tokens"},
        "The largest changes",
        f"{count(rows.height)} of {count(changed.height)} changes drawn.",
        f"Effects before and after of {listing}.",
        wide=True,
    )


def _changes(found: AuditComparison) -> list[Block]:
    out: list[Block] = []
    changed, several = found.changed(), len(found.classes) > 1
    if not changed.is_empty():
        columns = [Column("Token", "token"), Column("Change")]
        columns += [Column("Class")] if several else []
        columns += [
            Column("Before", "signed", 2),
            Column("After", "signed", 2),
            Column("Difference", "interval", 2),
            Column("Documents before", "count", extra=True),
            Column("Documents after", "count", extra=True),
        ]
        rows = []
        for row in changed.head(ROWS).iter_rows(named=True):
            effects = [
                None if row[f"effect_{side}"] is None else 1000 * row[f"effect_{side}"] for side in ("before", "after")
            ]
            ends = tuple(1000 * row[name] for name in ("difference", "difference_low", "difference_high"))
            label = [shown(row["class"], 30)] * several
            rows.append(
                (
                    row["token"],
                    WORDS[row["change"]],
                    *label,
                    *effects,
                    ends,
                    row["documents_before"],
                    row["documents_after"],
                )
            )
        note = f"{count(changed.height - ROWS)} more are in compare.csv." if changed.height > ROWS else ""
        out.append(Table("Effects per 1,000 tokens", tuple(columns), rows, note=note, first=20, searchable=True))
    for after, words in ((False, "only in the earlier audit"), (True, "only in the later audit")):
        alone = found.alone(after)
        if alone.height:
            listed = ", ".join(f"{shown(token, 24)} ({count(n)})" for token, n in alone.head(NAMED).iter_rows())
            more = f" and {count(alone.height - NAMED)} more" if alone.height > NAMED else ""
            text = f"Tokens {words}, in too few documents for a significant difference: {listed}{more}."
            out.append(Text(text, style="note"))
    return out


def _findings(found: AuditComparison) -> list[Block]:
    titles = {check.name: check.title for check in registry()}
    kinds = dict.fromkeys([*found.before.findings, *found.after.findings])
    rows = [
        (titles.get(kind, kind), found.before.findings.get(kind, 0), found.after.findings.get(kind, 0))
        for kind in kinds
    ]
    columns = (Column("Findings"), Column("Before", "count"), Column("After", "count"))
    table: list[Block] = [Table("", columns, rows)] if rows else [Text("Neither audit has findings.")]
    return [*table, *_headlines("Before", found.before), *_headlines("After", found.after)]


def _headlines(title: str, one: Saved) -> list[Block]:
    """The most serious findings of one side, as cards."""
    cards = [
        Section(finding.title, (Text(f"{finding.headline or finding.title}."),), level=finding.level)
        for finding in one.headlines
    ]
    return [Section(title, tuple(cards))] if cards else []
