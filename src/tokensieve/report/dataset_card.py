"""An audit as a section of a dataset card on the Hugging Face hub: Markdown, in which nothing of the data is markup."""

from __future__ import annotations

from tokensieve.auditing.report import file_name, without_shortcuts
from tokensieve.auditing.result import Audit
from tokensieve.blocks import Block, Column, Section, Table, Text
from tokensieve.report.markdown import section_markdown
from tokensieve.wording import count, percent

FOUND, ROWS, CLASSES = 12, 8, 12


def dataset_card(audit: Audit) -> str:
    """What was found, the accuracy that a model of tokens alone reaches, and the strongest predictors of each class.

    Args:
        audit: the result of `tokensieve.audit`.

    Returns:
        Markdown, from a heading of level two on. Names, labels and tokens are escaped and stay on one line.
    """
    train, test = count(audit.documents["train"]), count(audit.documents["test"])
    low, high = percent(audit.accuracy.low), percent(audit.accuracy.high)
    blocks: list[Block] = [
        Text(
            f"Audited with tokensieve {audit.version}: {file_name(audit.name)}, {train} training and {test} test documents, "
            f"{len(audit.classes)} classes, {count(audit.token_types)} token types. A model that sees tokens without their order "
            f"predicts {percent(audit.test_accuracy)} of the test documents correctly (95% CI {low} to {high}); always naming the "
            f"largest class, {percent(audit.majority_accuracy)}."
        ),
        Text(without_shortcuts(audit)),
        Section("Findings", tuple(_findings(audit))),
        Section("Strongest predictors of each class", (_predictors(audit),)),
    ]
    if audit.notes:
        blocks.append(Section("Notes", tuple(Text(note[:400]) for note in audit.notes[:ROWS])))
    return section_markdown(Section("What tokens give away", tuple(blocks)))


def _findings(audit: Audit) -> list[Block]:
    out: list[Block] = [
        Text(f"{one.title} ({one.level.value}): {one.headline}. {'; '.join(one.details)}. {one.action}")
        for one in audit.findings[:FOUND]
    ]
    more = len(audit.findings) - FOUND
    if not out:
        out.append(Text("No shortcut, leak or label problem was found."))
    return [*out, Text(f"… and {more} more.")] if more > 0 else out


def _predictors(audit: Audit) -> Table:
    columns = (
        Column("Class", "token"),
        Column("Token", "token"),
        Column("Documents", "count"),
        Column("Posterior difference", "interval", unit="with 95% CI"),
        Column("Attention", "plain", digits=1, unit="1 is average"),
    )
    rows = [
        (
            label,
            row["token"],
            row["documents"],
            (row["posterior_difference"], row["posterior_low"], row["posterior_high"]),
            row["attention"],
        )
        for label in audit.classes[:CLASSES]
        for row in audit.top(label, ROWS).iter_rows(named=True)
    ]
    more = len(audit.classes) - CLASSES
    return Table("", columns, rows, f"and {more} more classes" if more > 0 else "", first=CLASSES * ROWS)
