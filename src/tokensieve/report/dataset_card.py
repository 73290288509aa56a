"""An audit as a section of a dataset card on the Hugging Face hub: Markdown, in which nothing of the data is markup."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tokensieve.auditing.findings import Finding
from tokensieve.escape import named, visible
from tokensieve.report.sentences import file_name, honest
from tokensieve.wording import count, interval, percent, plain, signed

if TYPE_CHECKING:
    from tokensieve.auditing.result import Audit

FOUND, ROWS, CLASSES = 12, 8, 12
LONGEST = 400  # characters of one item
_MARKS = "\\`*_{}[]#!|~$^@"  # each may begin markup, a mention or an address


def dataset_card(audit: Audit) -> str:
    """What was found, the accuracy that a model of tokens alone reaches, and the surest tokens of each class.

    Args:
        audit: the result of `tokensieve.audit`.

    Returns:
        Markdown, from a heading of level two on. Names, labels and tokens are escaped and stay on one line.
    """
    train, test = count(audit.documents["train"]), count(audit.documents["test"])
    low, high = audit.accuracy.low, audit.accuracy.high
    source = f"Audited with tokensieve {text(audit.version)}: {text(file_name(audit.name))}"
    size = f"{len(audit.classes)} classes, {count(audit.token_types)} token types"
    lines = [
        "## What tokens give away", "",
        f"{source}, {train} training and {test} test documents, {size}. A model that sees tokens without their order answers "
        f"{percent(audit.test_accuracy)} of the test documents right (95% interval {percent(low)} to {percent(high)}); always "
        f"naming the largest class, {percent(audit.majority_accuracy)}.",
    ]  # fmt: skip
    if honest(audit):
        lines += ["", f"{text(honest(audit))}."]
    lines += ["", "### Findings", ""]
    lines += [_finding(finding) for finding in audit.findings[:FOUND]]
    if not audit.findings:
        lines.append("No shortcut, leak or label problem was found.")
    elif len(audit.findings) > FOUND:
        lines.append(f"- and {len(audit.findings) - FOUND} more")
    lines += ["", *_surest(audit)]
    if audit.notes:
        lines += ["### Notes", "", *(f"- {text(note)}" for note in audit.notes[:ROWS]), ""]
    return "\n".join(lines)


def text(content: str, limit: int = LONGEST) -> str:
    """Text of the data on one line of Markdown, none of it markup: every mark that could begin some has a backslash."""
    one = named(visible(" ".join(content.split())))
    one = one if len(one) <= limit else f"{one[: limit - 1]}…"
    escaped = "".join(f"\\{c}" if c in _MARKS else c for c in one)
    escaped = re.sub(r"(?i)\b(www)\.", r"\1\\.", escaped.replace("://", r"\://"))  # no addresses that become links
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _finding(finding: Finding) -> str:
    shares = "; ".join(finding.details)
    return (
        f"- **{finding.title}** ({finding.level.value}): {text(finding.headline)}."
        + (f" Evidence: {text(shares)}." if shares else "")
        + f" {text(finding.action)}"
    )


def _surest(audit: Audit) -> list[str]:
    """A table of each class's surest tokens."""
    lines = [
        "### Tokens that carry the label", "",
        "| class | token | documents | posterior difference, 95% interval | attention |", "|---|---|---:|---|---:|",
    ]  # fmt: skip
    for label in audit.classes[:CLASSES]:
        lines += [_row(label, row) for row in audit.top(label, ROWS).iter_rows(named=True)]
    more = len(audit.classes) - CLASSES
    return [*lines, *([f"| and {more} more classes | | | | |"] if more > 0 else []), ""]


def _row(label: str, row: dict[str, Any]) -> str:
    between = interval(row["posterior_low"], row["posterior_high"])
    cells = text(label, 40), text(row["token"], 40), count(row["documents"])
    return f"| {' | '.join(cells)} | {signed(row['posterior_difference'])} {between} | {plain(row['attention'], 1)}× |"
