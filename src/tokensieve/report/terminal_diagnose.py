"""A diagnosis as a short read in the terminal; the same words and numbers as in the files."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table
from rich.text import Text

from tokensieve.diagnose.agreement import Correlation
from tokensieve.diagnose.diagnosing import Diagnosis
from tokensieve.diagnose.verdict import signed
from tokensieve.escape import shown
from tokensieve.report.console import Console
from tokensieve.report.terminal import BLUE, ORANGE

ROWS = 8


def show_diagnosis(found: Diagnosis, out: Path) -> None:
    """The verdict, the correlations beside their baselines, what was cut off, words leant on, and the files written."""
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
    colour = {True: BLUE, False: ORANGE, None: "yellow"}[found.learned]
    for i, sentence in enumerate(found.verdict):
        console.print(Text(shown(sentence, 600), style=f"bold {colour}" if i == 0 else ""))
    console.print(_correlations(found))
    if found.leaning.height:
        console.print(_leaning(found))
    seconds = ", ".join(f"{stage} {s:.1f}" for stage, s in found.seconds.items() if stage != "total")
    console.print(Text(f"{found.seconds['total']:.1f} s ({seconds})", style="dim"))
    console.print(Text(f"report.html, pictures, tokens.csv and summary.json in {out}"))


def length_line(found: Diagnosis) -> str:
    """How many documents were longer than an input, and what became of them."""
    n = found.documents["read"]
    if found.reads is None:
        return "documents are read whole by predict_proba, as far as can be seen from here"
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


def _leaning(found: Diagnosis) -> Table:
    table = _table("leans on, without support in these documents")
    for name in ("word", "for", "strength", "documents", "posterior difference (95 %)"):
        table.add_column(name, justify="left" if name in ("word", "for") else "right", no_wrap=True)
    for row in found.leaning.head(ROWS).iter_rows(named=True):
        table.add_row(
            Text(shown(row["token"], 24)), Text(shown(row["class"], 20)), f"{row['strength']:.1f}×", f"{row['documents']:,}",
            f"{signed(row['posterior_difference'])} ({signed(row['posterior_low'])} … {signed(row['posterior_high'])})",
        )  # fmt: skip
    return table


def _table(title: str) -> Table:
    return Table(title=Text(title), title_justify="left", title_style="bold", box=None, pad_edge=False)


def measure_name(name: str) -> str:
    """attention_layer_2_importance → attention, layer 2."""
    names = {
        "value_importance": "value", "gradient_importance": "first-order effect", "deletion_importance": "deletion",
        "attention_importance": "attention, rolled out",
    }  # fmt: skip
    return names.get(name) or f"attention, layer {name.split('_')[2]}"


def said(one: Correlation) -> str:
    """ρ with its interval."""
    return f"{signed(one.rho)} ({signed(one.low)}…{signed(one.high)})"
