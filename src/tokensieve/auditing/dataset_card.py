"""An audit as a section of a dataset card on the Hugging Face hub."""

from __future__ import annotations

from tokensieve.auditing.report import without_shortcuts_sentences
from tokensieve.auditing.result import Audit
from tokensieve.escape import for_display
from tokensieve.report.blocks import Block, Column, Section, Table, Text
from tokensieve.report.markdown import markdown
from tokensieve.wording import count, percent

NO_FINDINGS = (
    "The checks found no shortcut, leak or label problem, which does not show that there is none."
)


def dataset_card(audit: Audit) -> str:
    """An audit as a section of a dataset card on the Hugging Face hub: findings, accuracy, and each
    class's strongest predictors. Returns Markdown that starts with a level-two heading; names,
    labels and tokens are escaped and stay on one line."""

    train, test = count(audit.documents["train"]), count(audit.documents["test"])
    low, high = percent(audit.accuracy.low), percent(audit.accuracy.high)
    found = [
        Text(f"{one.title} ({one.level}): {one.headline}. {'; '.join(one.details)}. {one.action}")
        for one in audit.findings[:12]
    ]
    if len(audit.findings) > 12:
        found.append(Text(f"… and {len(audit.findings) - 12} more."))
    columns: tuple[Column, ...] = (
        Column("Class", "token"),
        Column("Token", "token"),
        Column("Documents", "count"),
    )
    columns += (Column("Posterior difference", "interval", unit="with 95% CI"),)
    columns += (Column("Attention", "plain", digits=1, unit="1 is average"),)
    interval = "posterior_difference", "posterior_low", "posterior_high"
    rows = [
        (
            label,
            row["token"],
            row["documents"],
            tuple(row[name] for name in interval),
            row["attention"],
        )
        for label in audit.classes[:12]
        for row in audit.top(label, 8).iter_rows(named=True)
    ]
    more = f"and {len(audit.classes) - 12} more classes" if len(audit.classes) > 12 else ""
    source = for_display(audit.name, 300, path=True)
    inside: list[Block] = [
        Text(
            f"Audited with tokensieve {audit.version}: {source}, {train} training and {test} test "
            f"documents, {len(audit.classes)} classes, {count(audit.token_types)} token types. A "
            f"model that ignores token order predicts {percent(audit.test_accuracy)} of the test "
            f"documents correctly (95% CI {low} to {high}); always predicting the largest class "
            f"gets {percent(audit.majority_accuracy)}."
        ),
        Text(" ".join(without_shortcuts_sentences(audit))),
        Section(
            "Findings",
            tuple(
                found
                or [
                    Text(
                        "The checks found no shortcut, leak or label problem, which does not show "
                        "that there is none."
                    )
                ]
            ),
        ),
        Section(
            "Strongest predictors of each class", (Table("", columns, rows, more, first=len(rows)),)
        ),
    ]
    if audit.notes:
        inside.append(Section("Notes", tuple(Text(note[:400]) for note in audit.notes[:8])))
    return markdown(Section("Tokens that give the label away", tuple(inside)))
