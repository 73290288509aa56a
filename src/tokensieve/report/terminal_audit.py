"""Results as a short read in the terminal; the same numbers as in the files."""

from __future__ import annotations

import shlex
from pathlib import Path

import polars as pl
from rich.table import Table
from rich.text import Text

from tokensieve.auditing.demo import Reviews
from tokensieve.auditing.findings import Finding, Level
from tokensieve.auditing.preferences import PreferenceFacts
from tokensieve.auditing.result import Audit
from tokensieve.escape import shown
from tokensieve.model.explanation import Explanation, pieces
from tokensieve.model.trained import Model
from tokensieve.report import pairs
from tokensieve.report.console import Console
from tokensieve.report.sentences import honest, main_line
from tokensieve.wording import interval, percent, plain, signed

MANY, FOUND, NOTES = 6, 5, 3
LIKE_LENGTH = 30  # pairs that a share is shown of
LISTED = 20
BLUE, ORANGE = "#2a78c8", "#d2691e"


def show_audit(audit: Audit, out: Path) -> None:
    """Findings first, then accuracies, top tokens of each class and the files written: at most 40 lines of 80 columns."""
    console = Console(width=min(80, Console().width))
    train, test = audit.documents["train"], audit.documents["test"]
    line = f"{shown(audit.name, 40)}: {train:,} training and {test:,} test documents, {audit.token_types:,} token types"
    if audit.pairs is not None:
        line = f"{shown(audit.name, 40)}: {pairs.lead(audit)}"
    console.print(Text(line), no_wrap=audit.pairs is None, overflow="ellipsis")
    for finding in audit.findings[:FOUND]:
        console.print(_finding(finding))
    if len(audit.findings) > FOUND:
        console.print(Text(f"  … and {len(audit.findings) - FOUND} more findings in findings.json", style="dim"))
    if not audit.findings:
        console.print(Text(main_line(audit), style="bold"))
    if audit.honest_accuracy:
        console.print(Text(honest(audit), style=f"bold {ORANGE}"))
    console.print(_accuracies(audit))
    if audit.pairs is not None:
        console.print(_wins(audit.pairs))
    classes = audit.classes[:MANY] if audit.pairs is None else ()
    for label in classes:
        console.print(_top(audit, label, {2: 6, 3: 4}.get(len(classes), 2)))
    if len(audit.classes) > MANY:
        console.print(f"… and {len(audit.classes) - MANY} more classes in the files")
    for note in audit.notes[:NOTES]:
        console.print(Text(shown(note, 78), style="yellow"))
    if len(audit.notes) > NOTES:
        console.print(Text(f"… and {len(audit.notes) - NOTES} more notes in summary.json", style="yellow"))
    files = "report.html, findings.json, tokens.csv, summary.json and the model"
    console.print(Text(f"{audit.seconds['total']:.1f} s; {files} in {out}", style="dim"))


def _finding(finding: Finding) -> Text:
    """Its level and kind, and the headline, in two or three lines."""
    colour = {Level.HIGH: ORANGE, Level.MEDIUM: "yellow", Level.LOW: "default"}[finding.level]
    text = Text(f"{finding.title} ({finding.level.value}): ", style=f"bold {colour}")
    return text + Text(f"{finding.headline}.", style="default")


def show_over_budget(audit: Audit, source: str, out: Path) -> None:
    """The tokens that exceed the budget, where to look, and how to go on without them."""
    console = Console(soft_wrap=True)
    over, n, budget = audit.over_budget, audit.documents["train"], audit.settings.budget
    for kind in audit.exceeded:
        console.print(Text(f"over the budget {audit.settings.budget}: {kind}", style=f"bold {ORANGE}"))
    if over.is_empty():
        return
    console.print(
        Text(f"over the budget {budget}: {over['token'].n_unique():,} tokens", style=f"bold {ORANGE}")
        + Text(
            " with a larger posterior difference, P(class) − P(others) where the token occurs, in more documents than that"
        )
    )
    for row in over.head(LISTED).iter_rows(named=True):
        where = audit.to_review.filter(pl.col("token") == row["token"], pl.col("part") == "train")["row"]
        console.print(
            Text(f"  {shown(row['token'], 30)}", style="bold")
            + Text(
                f" {signed(row['posterior_difference'], 3)} for {shown(row['class'], 30)}, in {row['documents']:,} documents"
                f" ({percent(row['documents'] / n)}); rows {', '.join(map(str, where.head(5)))}{', …' if len(where) > 5 else ''}"
            )
        )
    if over.height > LISTED:
        console.print(f"  … and {over.height - LISTED} more in summary.json")
    console.print(Text(f"every row to review is in {out / 'over-budget.csv'}; the data without these tokens:"))
    console.print(Text(f"  tokensieve mask {shlex.quote(source)} --audit {shlex.quote(str(out))} --out masked.csv"))


def _wins(found: PreferenceFacts) -> Table:
    """What wins and what loses at equal length."""
    table = Table(box=None, pad_edge=False, expand=False)
    for i, name in enumerate(("wins at equal length", "pairs", "wins", "at equal length (95%)")):
        table.add_column(Text(name, style="bold" if i == 0 else "dim"), justify="right" if i else "left", no_wrap=True)
    for wins, rows in ((True, 9), (False, 4)):
        for row in pairs.win_rows(found, wins, rows):
            ends = f"{percent(row['equal_length_low'], 0)} to {percent(row['equal_length_high'], 0)}"
            rates = percent(row["wins"] / row["pairs"], 0), f"{percent(row['equal_length_win_rate'], 0)} ({ends})"
            table.add_row(Text(shown(row["token"], 30), style="" if wins else ORANGE), f"{row['pairs']:,}", *rates)
    return table


def _accuracies(audit: Audit) -> Text:
    if audit.pairs is not None:
        (model, longer), rows = audit.pairs.like_length, pairs.accuracies(audit)
        first = "  ".join(f"{name[0].lower()}{name[1:]} {percent(value)}" for name, value in rows[:-1])
        like = f"this model {percent(model.value)}, the longer answer {percent(longer.value)}"
        second = f"\nof {model.of:,} test pairs of like length: {like}" if model.of >= LIKE_LENGTH else ""
        return Text(f"preferred answer named: {first}", style="bold") + Text(second)
    parts = [f"test accuracy {percent(audit.test_accuracy)}", f"largest class {percent(audit.majority_accuracy)}"]
    if audit.baseline_accuracy is not None:
        parts.append(f"TF-IDF + logistic regression {percent(audit.baseline_accuracy)}")
    recall = [f"{shown(name, 20)} {'none' if r is None else percent(r)}" for name, r in audit.class_recall.items()][
        :MANY
    ]
    return Text("  ".join(parts), style="bold") + Text(f"\nright of each class: {', '.join(recall)}")


def _top(audit: Audit, label: str, rows: int) -> Table | Text:
    """The surest tokens of one class."""
    top = audit.top(label, rows)
    if top.is_empty():
        return Text(f"surest for {shown(label, 30)}: no token with q < 0.05 in at least 5 documents")
    table = Table(box=None, pad_edge=False, expand=False)
    heads = (f"surest for {shown(label, 20)}", "documents", "posterior difference (95%)", "attention")
    for i, name in enumerate(heads):
        table.add_column(Text(name, style="bold" if i == 0 else "dim"), justify="right" if i else "left", no_wrap=True)
    for row in top.iter_rows(named=True):
        table.add_row(
            Text(shown(row["token"], 24)),
            f"{row['documents']:,}",
            f"{signed(row['posterior_difference'])} {interval(row['posterior_low'], row['posterior_high'])}",
            f"{plain(row['attention'], 1)}×",
        )
    return table


def show_truth(audit: Audit, reviews: Reviews) -> None:
    """How much of the planted truth the audit found."""
    console = Console()
    measured = audit.tokens.filter(pl.col("class") == audit.classes[1])
    rows = {row["token"]: row for row in measured.iter_rows(named=True)}
    table = Table(title="the planted truth", title_justify="left", title_style="bold", box=None, pad_edge=False)
    for name in ("sentiment word", "true", "measured", "95 %", ""):
        table.add_column(name, justify="left" if name in ("sentiment word", "") else "right")
    found = inside = 0
    for word, true in reviews.strengths.items():
        row = rows.get(word)
        if row is None:
            table.add_row(word, signed(true), "not seen", "", "")
            continue
        ok, within = row["q_value"] < 0.05, row["posterior_low"] <= true <= row["posterior_high"]
        found, inside = found + ok, inside + within
        ends = interval(row["posterior_low"], row["posterior_high"])
        table.add_row(word, signed(true), signed(row["posterior_difference"]), ends, "found" if ok else "missed")
    console.print(table)
    n = len(reviews.strengths)
    console.print(f"{found} of {n} sentiment words found (q < 0.05); {inside} of {n} intervals hold the true strength")
    first = audit.suspicious[0][0] if audit.suspicious else None
    verdict = "is the first suspicious token" if first == reviews.shortcut else f"was not found first (first: {first})"
    console.print(Text(f"the planted shortcut {reviews.shortcut!r} {verdict}"))


def show_explanation(model: Model, text: str, found: Explanation) -> None:
    """The text shaded by contribution, the answer, and the sum."""
    unknown = f"unknown words: {found.unknown}"
    if model.pairs:
        head = Text(f"answer {signed(found.answer, 6)}, {unknown}; compare it with another answer: --against TEXT")
    else:
        numbers = f"P({shown(str(found.explained))}) = {found.probability:.4f}, answer {signed(found.answer, 6)}"
        head = Text(f"{shown(str(found.predicted))}  ", style="bold") + Text(f"{numbers}, {unknown}")
    show_sum(model, text, found, head)


def show_sum(model: Model, text: str, found: Explanation, head: Text) -> None:
    """The text shaded by contribution, a line on its answer, and the contributions with their sum."""
    console = Console()
    k = [str(c) for c in model.classes].index(str(found.explained))
    shares = pieces(model, text, k)
    largest = max((abs(share[1]) for share in shares), default=0.0) or 1.0
    line = Text()
    for piece, contribution, _, _ in shares:
        strong = abs(contribution) > 0.15 * largest
        line.append(shown(piece, 10_000) if piece.strip() else piece, style=_style(contribution) if strong else "")
    console.print(line)
    console.print(head)
    table = Table(box=None, pad_edge=False)
    for name in ("token", "count", "attention", "value", "contribution"):
        table.add_column(name, justify="left" if name == "token" else "right")
    for row in found.table.iter_rows(named=True):
        table.add_row(
            Text(shown(row["token"], 40)), f"{row['count']:g}", f"{row['attention']:.4f}", signed(row["value"], 3),
            Text(signed(row["contribution"], 6), style=_style(row["contribution"])),
        )  # fmt: skip
    if found.table.height:
        table.add_row(
            Text("sum", style="bold"),
            "",
            f"{found.table['attention'].sum():.4f}",
            "",
            signed(float(found.table["contribution"].sum()), 6),
        )
        console.print(table)
    else:
        console.print("no known token: the answer is that of the class frequencies")


def _style(contribution: float) -> str:
    return f"bold {BLUE}" if contribution > 0 else f"bold {ORANGE}"
