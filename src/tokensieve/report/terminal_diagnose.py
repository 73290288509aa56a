"""A diagnosis as a short read in the terminal; the same words and numbers as in the files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl
from rich.table import Table
from rich.text import Text

from tokensieve.diagnose.agreement import Correlation
from tokensieve.diagnose.comparing import Comparison
from tokensieve.diagnose.judging import Status
from tokensieve.diagnose.result import Diagnosis
from tokensieve.diagnose.verdict import Learning
from tokensieve.escape import shown
from tokensieve.report.console import Console
from tokensieve.report.terminal_audit import BLUE, ORANGE
from tokensieve.wording import percent, signed

ROWS = 12
OTHERS = 3  # words listed whose use is not shown
MOST = 8
LEARNED = {
    str(Learning.LEARNED): "yes", str(Learning.BARELY): "barely", str(Learning.NOT_SHOWN): "not shown", str(Learning.OPEN): "–",
}  # fmt: skip
SHORT = {
    str(Status.CARRIES): "carries it", str(Status.CONTEXT): "in context", str(Status.UNSUPPORTED): "no support",
    str(Status.RARE): "too rare", str(Status.OTHER): "used", str(Status.NOT_SHOWN): "use not shown",
}  # fmt: skip


def show_diagnosis(found: Diagnosis, out: Path, files: Sequence[str]) -> None:
    """What the model uses most with the data's evidence beside it, the verdict, the correlations, and the files written."""
    console = Console()
    read, of_all = found.documents["read"], found.documents["all"]
    console.print(
        Text(
            f"{shown(found.model)} ({found.family}) on {shown(found.name)}: {read:,} of {of_all:,} documents read, "
            f"{found.token_types:,} words"
        )
    )
    for note in found.notes:
        console.print(Text(f"  {shown(note, 300)}", style="yellow"))
    console.print(Text(f"  {length_line(found)}", style="dim"))
    if found.uses.height:
        console.print(_uses(found))
    colour = {Learning.LEARNED: BLUE, Learning.NOT_SHOWN: ORANGE}.get(found.learning, "yellow")
    for i, sentence in enumerate(found.verdict):
        console.print(Text(shown(sentence, 600), style=f"bold {colour}" if i == 0 else ""))
    console.print(_confusion(found))
    console.print(_correlations(found))
    seconds = ", ".join(f"{stage} {s:.1f}" for stage, s in found.seconds.items() if stage != "total")
    console.print(Text(f"{found.seconds['total']:.1f} s ({seconds})", style="dim"))
    console.print(Text(f"in {out}: {', '.join(files)}"))


def length_line(found: Diagnosis) -> str:
    """How many documents were longer than an input, and what became of them."""
    n = found.documents["read"]
    if not found.all_pieces:
        return "the model reads whole texts itself; whether it cuts any off cannot be seen from here"
    if found.settings["long"] == "windows":
        return (
            f"{found.long_documents:,} of {n:,} documents ({found.long_documents / n:.1%}) are longer than one input and were read "
            f"in windows, {found.windows:,} inputs in all; nothing was cut off"
        )
    return (
        f"{found.truncated_documents:,} of {n:,} documents ({found.truncated_share:.1%}) were truncated, which lost "
        f"{found.lost_pieces:,} of {found.all_pieces:,} word pieces ({found.lost_share:.1%})"
    )


def _correlations(found: Diagnosis) -> Table:
    table = _table("correlation with importance in the data")
    for name in ("measure", "this model (95 %)", "untrained", "shuffled", "frequency"):
        table.add_column(name, justify="left" if name == "measure" else "right", no_wrap=True)
    for name, one in found.correlation.items():
        kind = "attention_importance" if name.startswith("attention") else "value_importance"
        low, high = found.shuffled_labels.get(name, (float("nan"),) * 2)
        other = found.untrained.get(name)
        table.add_row(
            measure_name(name), said(one), "–" if other is None else signed(other.rho),
            f"{signed(low)}…{signed(high)}" if name in found.shuffled_labels else "", signed(found.frequency[kind].rho),
        )  # fmt: skip
    return table


def _uses(found: Diagnosis) -> Table:
    table = _table("what this model uses most, and what the data says of it")
    left = ("word", "for", "data")
    for name in ("word", "for", "use (95 %)", "flips", "posterior diff. (95 %)", "data"):
        table.add_column(name, justify="left" if name in left else "right", no_wrap=True)
    styles = {str(Status.UNSUPPORTED): f"bold {ORANGE}", str(Status.CARRIES): BLUE, str(Status.CONTEXT): BLUE}
    is_used = pl.col("status") != str(Status.NOT_SHOWN)
    listed = pl.concat([found.uses.filter(is_used).head(ROWS), found.uses.filter(~is_used).head(OTHERS)])
    for row in listed.iter_rows(named=True):
        table.add_row(
            Text(_short(row["token"], 16)), Text(_short(row["class"], 9)),
            f"{row['use']:.2f} ({row['use_low']:.2f}…{row['use_high']:.2f})", percent(row["flipped"], 0),
            f"{signed(row['posterior_difference'])} ({signed(row['posterior_low'])}…{signed(row['posterior_high'])})",
            Text(SHORT[row["status"]], style=styles.get(row["status"], "dim")),
        )  # fmt: skip
    return table


def last_names(models: Sequence[str]) -> dict[str, str]:
    """Models' folders without those that they lie in, where that still tells them apart."""
    last = [model.rstrip("/").rpartition("/")[2] for model in models]
    return dict(zip(models, last if len(set(last)) == len(models) else models, strict=True))


def _short(text: str, limit: int) -> str:
    """For a narrow column: the beginning of a longer text."""
    return shown(text) if len(text) <= limit else f"{shown(text[: limit - 1])}…"


def _end(text: str, limit: int) -> str:
    """For a narrow column: the end of a longer text."""
    return shown(text) if len(text) <= limit else f"…{shown(text[1 - limit :])}"


def _confusion(found: Diagnosis) -> Table:
    table = _table("documents by label (rows) and answer")
    table.add_column("label")
    labels = found.classes[:MOST]
    for label in labels:
        table.add_column(shown(label, 16), justify="right")
    for label, row in zip(labels, found.skill.confusion, strict=False):
        table.add_row(Text(shown(label, 20)), *[f"{int(n):,}" for n in row[: len(labels)]])
    return table


def _table(title: str) -> Table:
    return Table(title=Text(title), title_justify="left", title_style="bold", box=None, pad_edge=False)


def measure_name(name: str) -> str:
    """attention_layer_2_importance → attention, layer 2."""
    names = {
        "value_importance": "value", "gradient_importance": "effect", "deletion_importance": "leaving out",
        "attention_importance": "attention, rolled out",
    }  # fmt: skip
    return names.get(name) or f"attention, layer {name.split('_')[2]}"


def said(one: Correlation) -> str:
    """ρ with its interval."""
    return f"{signed(one.rho)} ({signed(one.low)}…{signed(one.high)})"


def show_comparison(found: Comparison, out: Path, files: Sequence[str]) -> None:
    """A row per model, the words that gained and lost most, and the files written."""
    console = Console()
    table, short = _table("models on the same documents"), last_names(found.models["model"].to_list())
    leaning = found.models["unsupported"].sum() > 0  # else a column of zeros
    for name in ("model", "right (95 %)", "AUC", "words", "learned", *["no support"] * leaning, "uses most"):
        table.add_column(name, justify="left" if name in ("model", "uses most") else "right", no_wrap=True)
    for row in found.models.iter_rows(named=True):
        learned, most = LEARNED[row["learning"]], Text(_short(row["most_used"], 10))
        table.add_row(
            Text(_end(short[row["model"]], 16)), f"{row['accuracy']:.1%} ({row['accuracy_low']:.1%}…{row['accuracy_high']:.1%})",
            f"{row['auc']:.2f}", signed(row["value"]), learned, *[str(row["unsupported"])] * leaning, most,
        )  # fmt: skip
    console.print(table)
    for note in found.notes:
        console.print(Text(f"  {note}", style="dim"))
    for (before, after), rows in found.words.group_by("before", "after", maintain_order=True):
        console.print(Text(f"from {_end(short[str(before)], 40)} to {_end(short[str(after)], 40)}", style="bold"))
        for title, some in (("gained", rows.filter(pl.col("change") > 0)), ("lost", rows.filter(pl.col("change") < 0))):
            names = [
                f"{shown(token, 20)} {signed(change)} ({signed(low)}…{signed(high)})"
                for token, change, low, high in some.select("token", "change", "low", "high").head(ROWS).iter_rows()
            ]
            console.print(Text(f"  {title}: {', '.join(names) or 'none'}"))
    console.print(Text(f"in {out}: {', '.join(files)}"))
