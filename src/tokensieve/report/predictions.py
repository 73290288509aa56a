"""Predictions in the terminal: how well documents were predicted, and single texts taken apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from rich.table import Table
from rich.text import Text

from tokensieve.auditing.score import Score
from tokensieve.escape import shown
from tokensieve.evidence.shares import Share
from tokensieve.model.attention import Model
from tokensieve.model.explanation import Explanation, PairExplanation, pieces
from tokensieve.report.console import Console
from tokensieve.report.terminal import BLUE, ORANGE
from tokensieve.wording import percent, plain, signed

SHOWN = 8  # classes of the table


def show_score(score: Score, brief: bool = False) -> None:
    """Accuracy, log loss and the confusion matrix; brief: a line on standard error, where standard output is for the answers."""
    right = score.accuracy
    share = f"accuracy {percent(right.value)} ({percent(right.low)} to {percent(right.high)})"
    more = f" of {right.of:,} labelled documents predicted correctly"
    if brief:
        loss = f"; log loss {plain(score.log_loss, 4)}; more with --out FOLDER"
        Console(stderr=True, soft_wrap=True).print(Text(share + more + loss))
        return
    console = Console()
    console.print(Text(share, style="bold") + Text(more))
    console.print(f"always the largest class {percent(score.majority)}; log loss {plain(score.log_loss, 4)}")
    for name, n in list(score.unknown.items())[:3]:
        console.print(Text(f"left out, {n:,}: label {shown(name, 30)!r} is none of the model's"))
    if score.unlabelled:
        console.print(Text(f"left out, {score.unlabelled:,}: no label"))
    if len(score.classes) > SHOWN:
        console.print(Text(f"the confusion matrix of {len(score.classes)} classes is in summary.json"))
        return
    table = Table(box=None, pad_edge=False)
    table.add_column(Text("label ↓ prediction →", style="dim"))
    for name in score.classes:
        table.add_column(Text(shown(name, 14)), justify="right")
    for name, row in zip(score.classes, score.confusion.tolist(), strict=True):
        table.add_row(Text(shown(name, 24)), *(f"{n:,}" for n in row))
    console.print(table)


def show_explanation(model: Model, text: str, found: Explanation) -> None:
    """The text shaded by contribution, the answer, and the sum."""
    unknown = f"unknown words: {found.unknown}"
    if model.pairs:
        head = Text(f"answer {signed(found.answer, 6)}, {unknown}; compare it with another answer: --against TEXT")
    else:
        numbers = f"P({shown(str(found.explained))}) = {found.probability:.4f}, answer {signed(found.answer, 6)}"
        head = Text(f"{shown(str(found.predicted))}  ", style="bold") + Text(f"{numbers}, {unknown}")
    _show_sum(model, text, found, head)


def show_pair(model: Model, texts: tuple[str, str], found: PairExplanation) -> None:
    """Both texts taken apart, and the difference of their sums."""
    console = Console()
    for name, text, side in zip(("first", "second"), texts, (found.first, found.second), strict=True):
        head = Text(f"{name}: answer {signed(side.answer, 6)}, unknown words: {side.unknown}", style="bold")
        _show_sum(model, text, side, head)
    console.print(
        Text(f"first − second = {signed(found.answer, 6)}: ", style="bold")
        + Text(f"the first is preferred with probability {found.probability:.4f}")
    )


def score_lines(frame: pl.DataFrame, columns: tuple[str, str]) -> tuple[list[str], dict[str, Any]]:
    """How often the first answer is the preferred one, in words and as JSON values.

    Args:
        frame: of `tokensieve.model.explanation.answer_pairs`.
        columns: of the two answers.
    """
    known = frame.drop_nulls("answer")["answer"].to_numpy()
    right = (known > 0) + 0.5 * (known == 0)
    share = Share.over(right, np.arange(len(known)))
    loss = float(np.mean(np.logaddexp(0.0, -known))) if len(known) else None
    left = len(frame) - len(known)
    lines = [f"{left:,} pairs without two answers: none is named"] if left else []
    if len(known):
        lines.append(
            f"{shown(columns[0], 40)} is named as preferred in {_interval(share)} of {len(known):,} pairs; log loss {loss:.4f} "
            "(the accuracy, where that column holds the preferred answers)"
        )
    return lines, {"first_preferred": share.to_dict(), "log_loss": loss, "without_two_answers": left}


def _show_sum(model: Model, text: str, found: Explanation, head: Text) -> None:
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
            Text(shown(row["token"], 40)),
            f"{row['count']:g}",
            f"{row['attention']:.4f}",
            signed(row["value"], 3),
            Text(signed(row["contribution"], 6), style=_style(row["contribution"])),
        )
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


def _interval(share: Share) -> str:
    return f"{percent(share.value)} ({percent(share.low)} to {percent(share.high)})"
