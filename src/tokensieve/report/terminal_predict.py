"""How well new documents were answered, in the terminal."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from tokensieve.auditing.score import Score
from tokensieve.escape import shown
from tokensieve.report.console import Console
from tokensieve.wording import percent, plain

SHOWN = 8  # classes of the table


def show_score(score: Score, brief: bool = False) -> None:
    """Accuracy, log loss and the confusion matrix; brief: a line on standard error, where standard output is for the answers."""
    right = score.accuracy
    share = f"accuracy {percent(right.value)} ({percent(right.low)} to {percent(right.high)})"
    more = f" of {right.of:,} labelled documents answered right"
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
    table.add_column(Text("label ↓ answer →", style="dim"))
    for name in score.classes:
        table.add_column(Text(shown(name, 14)), justify="right")
    for name, row in zip(score.classes, score.confusion.tolist(), strict=True):
        table.add_row(Text(shown(name, 24)), *(f"{n:,}" for n in row))
    console.print(table)
