"""What an audit's headline claims, shown first on its page: a picture, or places in the texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from tokensieve.auditing.checks.alone import part_of_headline
from tokensieve.auditing.data import AuditData
from tokensieve.auditing.findings import Finding
from tokensieve.auditing.phrases import form_clause, quoted
from tokensieve.auditing.preferences import PreferenceFacts
from tokensieve.auditing.report_cards import example_passages
from tokensieve.auditing.report_tokens import largest_classes, strongest_picture
from tokensieve.escape import IN_TITLE, for_display
from tokensieve.report.blocks import PAGE, Block, Passages, Picture
from tokensieve.text.formatting import is_formatting
from tokensieve.wording import percent, plural

NAME = "headline"  # of the picture's file
MAX_CLASSES_IN_BAR = 3  # the others are one part of the bar
MAX_TOKENS_IN_BARS = 5  # of a finding whose tokens predict different classes
MAX_WINNERS = 7
MAX_LOSERS = 4
MAX_CLASSES_IN_LIST = 10
OTHER_CLASSES = "other classes"
# findings about documents rather than tokens: their examples say more than any chart
TITLES_OF_EXAMPLES = {
    "leak": "Test documents and their copies in the training data",
    "repeated": "Documents that repeat others",
    "contradiction": "The same text with different labels",
    "labels": "Documents whose label the models contradict",
}


def headline_blocks(audit: AuditData) -> list[Block]:
    """The passages, picture or bars that show the claim of the page's verdict."""
    first = audit.findings[0] if audit.findings else None
    if first is not None and first.kind in TITLES_OF_EXAMPLES and first.examples:
        passages = tuple(example_passages(first))
        examples = Passages(TITLES_OF_EXAMPLES[first.kind], passages, only=PAGE)
        return [examples, _strongest_of_all(audit)] if len(audit.classes) > 2 else [examples]
    if audit.pairs is not None:
        return [_wins_picture(audit.pairs)]
    if first is not None and first.kind == "shortcut" and not audit.learned.task.known_totals:
        return [_evidence_picture(audit, first)]
    if first is not None and first.kind == "alone":
        return [_accuracies_picture(audit, first)]
    return [_strongest_of_all(audit)]


@dataclass(frozen=True)
class _Bar:
    """Documents by class.

    Attributes:
        name: of these documents.
        by_class: class → how many.
    """

    name: str
    by_class: Mapping[str, int]

    @property
    def heading(self) -> str:
        """The text above the bar."""
        return f"{self.name}: {plural(sum(self.by_class.values()), 'training document')}"

    def shares(self, shown: Sequence[str]) -> dict[str, float]:
        """The fraction of each class to show, and of all other classes together."""
        n_documents = max(sum(self.by_class.values()), 1)
        shares = {label: self.by_class.get(label, 0) / n_documents for label in shown}
        n_others = sum(n for label, n in self.by_class.items() if label not in shares)
        if n_others:
            shares[OTHER_CLASSES] = n_others / n_documents
        return {for_display(label, IN_TITLE): share for label, share in shares.items()}


def _evidence_picture(audit: AuditData, finding: Finding) -> Picture:
    """The classes of the documents with the finding's tokens, and of all other documents."""
    in_training = finding.rows.filter(pl.col("part") == "train").unique("row")
    with_any: dict[str, int] = dict(in_training.group_by("label").len().iter_rows())
    without = {label: n - with_any.get(label, 0) for label, n in audit.class_documents.items()}
    bars = [] if finding.label else _bars_of_tokens(audit, finding.tokens)
    bars = bars or [_Bar(_with_tokens(finding.tokens), with_any)]
    others = "all others"
    title = "Classes of the documents with it and without it"
    if len(finding.tokens) > 1:
        others = f"with none of the {len(finding.tokens)} tokens"
        title = "Classes of the documents with these tokens and without them"
    bars.append(_Bar(others, without))

    shown = _classes_shown(audit, finding, with_any)
    rows = [
        {"heading": bar.heading, "class": label, "share": share}
        for bar in bars
        for label, share in bar.shares(shown).items()
    ]
    description = "; ".join(
        f"{bar.heading}, "
        + ", ".join(f"{percent(share, 0)} {label}" for label, share in bar.shares(shown).items())
        for bar in bars
    )
    return Picture(
        name=NAME,
        chart="audit-evidence",
        data={"shares": pl.DataFrame(rows), "colours": _in_order_of_colours(audit, shown)},
        title=title,
        caption="Each bar is 100% of the documents named above it.",
        description=description,
    )


def _with_tokens(tokens: Sequence[str]) -> str:
    """Names documents by what they contain: "with “tablet”", "that end in “!”"."""
    first = tokens[0]
    named = f"that {form_clause(first)}" if is_formatting(first) else f"with {quoted([first])}"
    if len(tokens) > 1:
        named += f", or {plural(len(tokens) - 1, 'more mark')}"
    return named


def _bars_of_tokens(audit: AuditData, tokens: Sequence[str]) -> list[_Bar]:
    """A bar for each of the most frequent tokens that have rows of their own in the table."""
    bars = []
    for token in tokens:
        rows = audit.tokens.filter(pl.col("token") == token)
        by_class = dict(rows.select("class", "class_documents").iter_rows())
        if by_class:
            bars.append(_Bar(_with_tokens([token]), by_class))
    bars.sort(key=lambda bar: -sum(bar.by_class.values()))
    return bars[:MAX_TOKENS_IN_BARS]


def _classes_shown(
    audit: AuditData, finding: Finding, with_any: Mapping[str, int]
) -> Sequence[str]:
    """The classes with a part of their own: both of two, else the most frequent ones."""
    if len(audit.classes) <= MAX_CLASSES_IN_BAR:
        first = [finding.label] if finding.label else []
        return [*first, *(label for label in audit.classes if label not in first)]
    most_frequent = sorted(with_any, key=lambda label: -with_any[label])
    n_shown = 1 if finding.label else MAX_CLASSES_IN_BAR
    return most_frequent[:n_shown]


def _in_order_of_colours(audit: AuditData, shown: Sequence[str]) -> list[str]:
    """The classes as `shares` names them; of two the second is blue, as on the map."""
    names = audit.classes[::-1] if len(audit.classes) == 2 else [*shown, OTHER_CLASSES]
    return [for_display(name, IN_TITLE) for name in names]


def _wins_picture(facts: PreferenceFacts) -> Picture:
    """A picture of win rates, as they are and with the length of both answers held fixed."""
    rates = [
        {
            "text": "the longer answer",
            "overall": facts.longer["train"].value,
            "rate": None,
            "low": None,
            "high": None,
        }
    ]
    for wins, most in ((True, MAX_WINNERS), (False, MAX_LOSERS)):
        rows = facts.top(wins, most)
        if not wins:
            rows = rows.reverse()  # the strongest loser is last
        rates += [
            {
                "text": _in_answers(row["token"]),
                "overall": row["win_rate"],
                "rate": row["equal_length_win_rate"],
                "low": row["equal_length_low"],
                "high": row["equal_length_high"],
            }
            for row in rows.iter_rows(named=True)
        ]
    schema: dict[str, type[pl.DataType]] = {"text": pl.String}
    schema |= dict.fromkeys(("overall", "rate", "low", "high"), pl.Float64)
    table = pl.DataFrame(rates, schema=schema)
    listed = ", ".join(
        f"{row['text']} {percent(row['overall'], 0)}" for row in table.iter_rows(named=True)
    )
    return Picture(
        name=NAME,
        chart="audit-wins",
        data={"rates": table},
        title="How often an answer with it wins",
        caption=(
            "Training pairs in which only one answer contains the token. A dot at 50% makes no "
            "difference; bars are 95% intervals."
        ),
        description=f"Fraction of pairs won: {listed}.",
    )


def _in_answers(token: str) -> str:
    """The name of a token type as a row of answers that contain it: “crucial”, a bullet list."""
    if is_formatting(token):
        return form_clause(token).removeprefix("contain ")
    return quoted([token])


def _accuracies_picture(audit: AuditData, finding: Finding) -> Picture:
    """The accuracy of one part alone, beside that of everything and that of no text at all."""
    majority = audit.majority_accuracy
    rows: list[dict[str, Any]] = []
    for name, key in (
        (f"{part_of_headline(finding.headline)} alone", "alone"),
        (f"its {len(finding.tokens)} most informative features alone", "informative"),
        ("everything together", "all"),
    ):
        share = finding.evidence.get(key)
        if share is not None:
            rows.append(
                {"heading": name, "share": share.value, "low": share.low, "high": share.high}
            )
    heading = "no text: always the largest class"
    rows.append({"heading": heading, "share": majority, "low": majority, "high": majority})
    listed = "; ".join(f"{row['heading']} {percent(row['share'])}" for row in rows)
    return Picture(
        name=NAME,
        chart="audit-intervals",
        data={"rows": pl.DataFrame(rows), "axis": "test labels predicted correctly"},
        title="How many labels each part predicts",
        caption="Bars are 95% intervals. All were measured on the same test documents.",
        description=f"Test labels predicted correctly: {listed}.",
    )


def _strongest_of_all(audit: AuditData) -> Picture:
    """The strongest predictors of both classes, or the strongest one of each of many classes."""
    if len(audit.classes) == 2:
        return strongest_picture(audit, audit.classes[1], NAME)
    labels = largest_classes(audit, MAX_CLASSES_IN_LIST)
    strongest = pl.concat(
        [audit.top(label, 1).with_columns(label=pl.lit(label)) for label in labels]
    )
    strongest = strongest.sort("posterior_low", descending=True)
    rows: list[dict[str, Any]] = [
        {
            "heading": f"{quoted([row['token']])} in {for_display(row['label'], IN_TITLE)}",
            "share": _share_of_uses(row["posterior_difference"]),
            "low": _share_of_uses(row["posterior_low"]),
            "high": _share_of_uses(row["posterior_high"]),
        }
        for row in strongest.iter_rows(named=True)
    ]
    title = "The strongest predictor of each class"
    if len(labels) < len(audit.classes):
        title = f"The strongest predictors of the {len(labels)} largest classes"
    schema: dict[str, type[pl.DataType]] = {"heading": pl.String}
    schema |= dict.fromkeys(("share", "low", "high"), pl.Float64)
    listed = ", ".join(row["heading"] for row in rows)
    return Picture(
        name=NAME,
        chart="audit-intervals",
        data={
            "rows": pl.DataFrame(rows, schema=schema),
            "axis": "of the token's uses are in this class",
        },
        title=title,
        caption="Bars are 95% intervals. A token that occurs in its class only is at 100%.",
        description=f"Strongest predictors: {listed}.",
    )


def _share_of_uses(posterior_difference: float) -> float:
    """The fraction of a token's occurrences in its class: (uses in it − elsewhere) / all is d."""
    return min(1.0, max(0.0, (1 + posterior_difference) / 2))
