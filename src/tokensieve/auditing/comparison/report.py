"""What changed between two audits, as blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tokensieve.auditing.checks import registry
from tokensieve.auditing.report import file_name
from tokensieve.auditing.sentences import plural, quoted
from tokensieve.blocks import Block, Column, Facts, Picture, Report, Section, Table, Text
from tokensieve.escape import shown
from tokensieve.wording import count, percent, signed

if TYPE_CHECKING:
    from tokensieve.auditing.comparison.compare import AuditComparison
    from tokensieve.auditing.comparison.saved import Saved

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
        Section(finding.title, (Text(f"{finding.headline or finding.title}."),), level=finding.level.value)
        for finding in one.headlines
    ]
    return [Section(title, tuple(cards))] if cards else []
