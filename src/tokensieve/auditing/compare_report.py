"""What the comparison of two audits says, as blocks for page, terminal and Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import polars as pl

from tokensieve.auditing.checks.registry import all_checks
from tokensieve.auditing.findings import PROBABLE_SHORTCUT
from tokensieve.auditing.link_report import RepairEffect
from tokensieve.auditing.outcomes import AccuracyChange
from tokensieve.auditing.phrases import change_clause, quoted
from tokensieve.auditing.saved_audit import SavedAudit
from tokensieve.auditing.settings import CHANGES
from tokensieve.escape import IN_CELL, IN_LIST, IN_SENTENCE, WHOLE_SENTENCE, for_display
from tokensieve.evidence.intervals import LEVEL
from tokensieve.report.blocks import (
    Block,
    Column,
    Fact,
    Facts,
    Picture,
    Report,
    Section,
    Table,
    Text,
)
from tokensieve.task.tasks import Labels, Preferences
from tokensieve.wording import count, percent, plural, signed

FEW_CHANGES = 8  # with fewer, the picture also shows tokens that stayed
MAX_CHANGES_DRAWN = 16
MAX_STAYED_DRAWN = 12
MAX_ROWS = 1000  # of the table on the page; compare.csv has all
MAX_TOKENS_NAMED = 3  # in the verdict; of more, how many
UNCHANGED = "no significant change"
# what the verdict says of the tokens of each kind: of one, and of several
SENTENCES = {
    ("vanished",): ("no longer predicts the label", "no longer predict the label"),
    ("appeared",): ("now predicts the label", "now predict the label"),
    ("sign",): ("now predicts another class", "now predict another class"),
    ("stronger", "weaker"): ("changed in strength", "changed in strength"),
}


@dataclass(frozen=True, repr=False)
class ComparedAudits:
    """The numbers of a comparison.

    Attributes:
        before, after: the audits.
        classes: the classes that both audits have; of two classes only the second, because the
            first mirrors it.
        table: a row per token and class: token, class, change ("" if there is none), effects,
            difference with interval, p and q, documents, posterior differences and values of both
            (null if only the other audit contains the token); changed tokens first, the largest
            difference first.
        accuracy: of the test documents. If both audits tested the same ones, they are compared one
            by one; else the interval is Newcombe's (MOVER on the intervals of the accuracies, which
            are over groups if there are any).
        notes: notes for the reader.
        repair: both models where the shortcuts of the first audit mislead, if documents were given.
        repair_of_others: the same for two other models, if their predictions were given.
    """

    before: SavedAudit
    after: SavedAudit
    classes: tuple[str, ...]
    table: pl.DataFrame
    accuracy: AccuracyChange
    notes: tuple[str, ...] = ()
    repair: RepairEffect | None = field(default=None)
    repair_of_others: RepairEffect | None = field(default=None)

    @property
    def counts(self) -> dict[str, int]:
        """The number of tokens that changed in each way, by the names of `--fail-on`."""
        by_change = self.changed().group_by("change").agg(pl.col("token").n_unique())
        sizes = dict(by_change.iter_rows())
        return {change: sizes.get(change, 0) for change in CHANGES}

    def changed(self, change: str | None = None) -> pl.DataFrame:
        """The tokens that changed, of one kind or of all."""
        if change is None:
            return self.table.filter(pl.col("change") != "")
        return self.table.filter(pl.col("change") == change)

    def only_in_one(self, after: bool) -> pl.DataFrame:
        """Tokens in only the earlier (later) audit without a significant change.

        Columns: token and documents; most frequent first.
        """
        own = "after" if after else "before"
        other = "before" if after else "after"
        rows = self.table.filter(
            pl.col(f"documents_{other}").is_null(),
            ~pl.col("token").is_in(self.changed()["token"].implode()),
        )
        named = rows.group_by("token").agg(documents=pl.col(f"documents_{own}").first())
        return named.sort("documents", "token", descending=[True, False])

    def still_predictive(self) -> list[str]:
        """Tokens that predict the label equally in both audits, largest effect first."""
        predicts = pl.col("class").is_in(self.classes) & (pl.col("q_value") < LEVEL)
        both = self.before.tokens.filter(predicts).join(
            self.after.tokens.filter(predicts), on=["token", "class"], suffix="_after"
        )
        same = both.join(self.changed(), on=["token", "class"], how="anti")
        by_effect = same.sort(pl.col("effect_after").abs(), descending=True)
        return by_effect["token"].unique(maintain_order=True).to_list()

    @property
    def identical(self) -> bool:
        """Whether both audits have the same numbers."""
        is_same = self.table["effect_before"] == self.table["effect_after"]
        return self.accuracy.value == 0 and bool(is_same.fill_null(False).all())


def comparison_report(found: ComparedAudits, exceeded: Sequence[str], version: str) -> Report:
    """The report of a comparison; `exceeded` are the limits of --fail-on that it exceeds."""
    blocks: list[Block] = []
    if exceeded:
        text = f"This comparison exceeds the --fail-on limit: {', '.join(exceeded)}."
        blocks.append(Text(text, style="bad"))
    for effect in (found.repair, found.repair_of_others):
        if effect is not None:
            blocks += effect.blocks()
    blocks += [Facts(_accuracy_facts(found)), *_picture(found)]
    blocks.append(Text(_next_step(found), only=("html",)))
    for note in found.notes:
        sentence = f"{note[:1].upper()}{note[1:]}"
        blocks.append(Text(f"{for_display(sentence, WHOLE_SENTENCE)}.", style="warning"))
    blocks.append(Section("Tokens that changed", tuple(_changes(found)), anchor="changed"))
    findings = tuple(_findings(found))
    title = "Findings before and after"
    blocks.append(Section(title, findings, anchor="found", only=("html", "markdown")))
    about = {
        "version": version,
        "earlier documents": _sizes(found.before),
        "later documents": _sizes(found.after),
    }
    names = [
        for_display(saved.name, IN_SENTENCE, path=True) for saved in (found.before, found.after)
    ]
    return Report("compare", " → ".join(names), _verdict(found), tuple(blocks), about)


def _sizes(saved: SavedAudit) -> str:
    return f"{saved.n_train:,} training, {saved.n_test:,} test"


def _accuracy_facts(found: ComparedAudits) -> tuple[Fact, ...]:
    """The accuracies of both audits, and the change unless the audits are the same."""
    facts = []
    for name, saved in (("Test accuracy before", found.before), ("After", found.after)):
        accuracy = saved.accuracy
        interval = f"95% CI {percent(accuracy.low)} to {percent(accuracy.high)}"
        facts.append(Fact(name, percent(accuracy.value), interval))
    if found.identical:
        return tuple(facts)
    return (*facts, _change_fact(found))


def _change_fact(found: ComparedAudits) -> Fact:
    """The change of the accuracy in points, and which documents it was measured on."""
    change = found.accuracy
    digits = _digits_of_change(found)
    low = signed(100 * change.low, digits)
    high = signed(100 * change.high, digits)
    how = "the audits tested different documents"
    if change.everywhere is not None:
        how = "the same test documents, one by one"
    value = signed(100 * change.value, digits)
    return Fact("Change in points", value, f"95% CI {low} to {high}; {how}")


def _digits_of_change(found: ComparedAudits) -> int:
    """One digit, or two where the rounded accuracies would contradict the rounded difference."""
    before = round(100 * found.before.accuracy.value, 1)
    after = round(100 * found.after.accuracy.value, 1)
    agrees = signed(after - before, 1) == signed(100 * found.accuracy.value, 1)
    return 1 if agrees else 2


def _next_step(found: ComparedAudits) -> str:
    if found.after.findings:
        page = found.after.page
        return f"Next, open {page}: the findings of the later audit still need a decision."
    if any(found.counts.values()):
        return "The later audit has no findings, so nothing is left to act on."
    return "Nothing here needs action."


def _picture(found: ComparedAudits) -> list[Block]:
    """Lines from before to after: the largest changes, and where there are few also what stayed."""
    changed = found.changed()
    stayed = found.table.clear()
    if changed.height < FEW_CHANGES:
        strongest = found.still_predictive()[:MAX_STAYED_DRAWN]
        has_changed = pl.col("token").is_in(changed["token"].implode())
        stayed = found.table.filter(pl.col("token").is_in(strongest), ~has_changed)
        stayed = stayed.unique("token", maintain_order=True).head(MAX_STAYED_DRAWN)
    drawn = pl.concat([changed.head(MAX_CHANGES_DRAWN), stayed])
    if drawn.is_empty():
        return []
    lines = drawn.select(  # what one audit does not know is at 0 there
        "token",
        before=pl.col("effect_before").fill_null(0.0) * 1000,
        after=pl.col("effect_after").fill_null(0.0) * 1000,
        kind=pl.col("change").replace_strict(CHANGES | {"": UNCHANGED}),
    )
    listing = ", ".join(for_display(token, IN_LIST) for token in drawn["token"].head(10))
    return [
        Picture(
            name="compare",
            chart="audit-slopes",
            data={
                "changes": lines,
                "names": _names_of_sides(found),
                "axis": "effect per 1,000 tokens",
            },
            title=_title_of_picture(changed.height),
            caption=_caption_of_picture(changed.height),
            description=f"Effects of {listing}, before and after.",
        )
    ]


def _names_of_sides(found: ComparedAudits) -> tuple[str, str]:
    """The names of both sources, or "before" and "after" if they are the same."""
    before = for_display(found.before.name, IN_LIST, path=True)
    after = for_display(found.after.name, IN_LIST, path=True)
    if before == after:
        return "before", "after"
    return before, after


def _title_of_picture(n_changes: int) -> str:
    if n_changes == 0:
        return "The strongest predictors, before and after"
    if n_changes < FEW_CHANGES:
        return "Changes, and the strongest unchanged tokens"
    return "The largest changes"


def _caption_of_picture(n_changes: int) -> str:
    if n_changes == 0:
        return "None of these differences is significant."
    if n_changes > MAX_CHANGES_DRAWN:
        return f"The {MAX_CHANGES_DRAWN} largest of {count(n_changes)} changes."
    return ""


def _verdict(found: ComparedAudits) -> str:
    """One sentence on the result of the comparison, the result first."""
    if found.identical:
        return "The two audits are identical."
    sentences = f"{_accuracy_sentences(found)}{_remaining_shortcut(found)}"
    clauses = []
    for kinds, (of_one, of_several) in SENTENCES.items():
        rows = found.table.filter(pl.col("change").is_in(kinds))
        tokens = rows["token"].unique(maintain_order=True).to_list()
        if tokens:
            subject = quoted(tokens)
            if len(tokens) > MAX_TOKENS_NAMED:
                subject = plural(len(tokens), "token")
            clauses.append(f"{subject} {of_one if len(tokens) == 1 else of_several}")
    if not clauses:
        return f"No token's association with the label changed significantly. {sentences}"
    listed = clauses[-1]
    if len(clauses) > 1:
        listed = f"{', '.join(clauses[:-1])} and {listed}"
    return f"{listed[:1].upper()}{listed[1:]}. {sentences}"


def _accuracy_sentences(found: ComparedAudits) -> str:
    """Sentences on the change in accuracy: first where texts changed, then everywhere."""
    change = found.accuracy
    sentences = []
    where = "Accuracy"
    if change.on_changed is not None:
        part = change.on_changed
        where = "On all test texts, accuracy"
        sentences.append(
            f"On the {plural(part.n, 'test text')} that changed, accuracy went from "
            f"{percent(part.before)} to {percent(part.after)} ({change_clause(part)})."
        )
    before = percent(found.before.accuracy.value)
    after = percent(found.after.accuracy.value)
    if change.is_within_chance:
        sentences.append(f"{where}: {before} → {after}; the difference is within chance.")
    else:
        verb = "rose" if change.value > 0 else "fell"
        sentences.append(f"{where} {verb} from {before} to {after}.")
    return " ".join(sentences)


def _remaining_shortcut(found: ComparedAudits) -> str:
    """The first shortcut of the later audit: what is left of a phrase gives the label away too."""
    for finding in found.after.headlines:
        if finding.title in ("Shortcut", PROBABLE_SHORTCUT):
            finds = "still finds" if "shortcut" in found.before.findings else "finds"
            return f" The later audit {finds} a {finding.title.lower()}: {finding.headline}."
    return ""


def _changes(found: ComparedAudits) -> list[Block]:
    """The table of what changed; nothing where nothing did."""
    changed = found.changed()
    if changed.is_empty():
        return []
    has_several_classes = len(found.classes) > 1
    columns = [Column("Token", "token"), Column("Change")]
    if has_several_classes:
        columns.append(Column("Class"))
    columns += [
        Column("Before", "signed", 2),
        Column("After", "signed", 2),
        Column("Difference", "interval", 2),
        Column("Documents before", "count", extra=True),
        Column("Documents after", "count", extra=True),
    ]
    per_1000 = pl.selectors.starts_with("effect", "difference") * 1000
    shown = changed.head(MAX_ROWS).with_columns(per_1000)
    rows = [_row(row, has_several_classes) for row in shown.iter_rows(named=True)]
    note = ""
    if changed.height > MAX_ROWS:
        note = f"compare.csv lists {count(changed.height - MAX_ROWS)} more."
    title = "Effects per 1,000 tokens"
    return [Table(title, tuple(columns), rows, note=note, n_shown=20, searchable=True)]


def _row(change: dict[str, object], has_several_classes: bool) -> tuple[object, ...]:
    """A row of the table of changes."""
    cells = [change["token"], CHANGES[str(change["change"])]]
    if has_several_classes:
        cells.append(for_display(str(change["class"]), IN_CELL))
    difference = (change["difference"], change["difference_low"], change["difference_high"])
    cells += [change["effect_before"], change["effect_after"], difference]
    cells += [change["documents_before"], change["documents_after"]]
    return tuple(cells)


def _finding_counts(found: ComparedAudits) -> list[tuple[object, ...]]:
    """The title of each kind of finding, and how many of it each audit has."""
    titles = _titles_of_checks(is_for_pairs=set(found.before.classes) == {"chosen", "rejected"})
    before = found.before.findings
    after = found.after.findings
    kinds = dict.fromkeys([*before, *after])
    return [(titles.get(kind, kind), before.get(kind, 0), after.get(kind, 0)) for kind in kinds]


def _titles_of_checks(is_for_pairs: bool) -> dict[str, str]:
    """The title of each check of a task, by its name; two checks of different tasks may share
    one.
    """
    task = Preferences if is_for_pairs else Labels
    return {check.name: check.title for check in all_checks() if task in check.tasks}


def _findings(found: ComparedAudits) -> list[Block]:
    """A table of the number of findings of each kind in both audits, and the most serious ones."""
    rows = _finding_counts(found)
    columns = (Column("Findings"), Column("Before", "count"), Column("After", "count"))
    blocks: list[Block] = [Text("Neither audit has findings.")]
    if rows:
        blocks = [Table("", columns, rows)]
    for title, saved in (("Before", found.before), ("After", found.after)):
        cards = [
            Section(finding.title, (Text(f"{finding.headline}."),), level=finding.level)
            for finding in saved.headlines
        ]
        if cards:
            blocks.append(Section(title, tuple(cards)))
    return blocks
