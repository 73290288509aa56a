"""A reproduction as a short read in the terminal; the same words and numbers as in the files."""

from __future__ import annotations

from pathlib import Path

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tokensieve.escape import shown
from tokensieve.report.console import Console
from tokensieve.report.reproduce import accuracy
from tokensieve.report.terminal_audit import BLUE, ORANGE
from tokensieve.reproduce.result import FIXED, Experiment
from tokensieve.reproduce.seeds import EXPLAINED, NOT_REPRODUCED, NOT_RUN, REPRODUCED
from tokensieve.reproduce.study import Reproduction

COLOURS = {REPRODUCED: BLUE, EXPLAINED: BLUE, NOT_REPRODUCED: ORANGE, NOT_RUN: "yellow"}


def show_reproduction(study: Reproduction, out: Path) -> None:
    """Each experiment's verdict, the paper's figures and ours, the checks that failed, and the files written."""
    console = Console()
    for result in study.results:
        console.print(
            Text(result.id, style="bold")
            + Text(f"  {result.verdict_in_words}", style=f"bold {COLOURS[result.verdict]}")
            + Text(f"  {result.seconds:,.0f} s", style="dim")
        )
        spreads = result.default.figures if result.default else ()
        missed = [
            f"{f.check} in {len(f.values) - f.passed} of {len(f.values)}" for f in spreads if f.passed < len(f.values)
        ]
        lines = {
            "paper": result.experiment.paper,
            "ours": result.problem if result.default is None else result.ours,
            "accuracy": accuracy(result),
            "missed": "; ".join(missed),
        }
        block = Table.grid(padding=(0, 2))
        for name, text in lines.items():
            if text:
                block.add_row(Text(name, style=ORANGE if name == "missed" else "dim"), Text(shown(text, 2000)))
        console.print(Padding(block, (0, 0, 1, 2)))
    tally = ", ".join(f"{count} {verdict}" for verdict, count in study.tally().items() if count)
    n = len(study.results)
    console.print(Text(f"{n} experiment{'s' * (n != 1)}: {tally}", style="bold"))
    console.print(
        Text(
            f"{study.seconds['total']:.0f} s at scale {study.settings['scale']}, seeds {study.settings['seeds']}",
            style="dim",
        )
    )
    made = " and ".join(name for name in ("tables", "pictures") if (out / name).is_dir())
    console.print(Text(f"report.html, summary.json, table.md{', ' * bool(made)}{made} in {out}"))


def show_experiments(experiments: list[Experiment]) -> None:
    """What each experiment claims, needs and asks for."""
    console = Console()
    for experiment in experiments:
        needs = [*experiment.needs, *(["PyTorch"] if experiment.torch else [])]
        about = ", ".join(f"{scale} about {_long(s)}" for scale, s in experiment.seconds.items())
        console.print(
            Text(experiment.id, style="bold") + Text(f"  needs {', '.join(needs) or 'nothing'}; {about}", style="dim")
        )
        readings = [f"reading {reading.name}: {reading.in_words()}" for reading in experiment.readings]
        criterion = f"criterion, fixed on {FIXED}: {experiment.criterion}"
        for line in (experiment.claim, f"paper: {experiment.paper}", criterion, *readings):
            console.print(Padding(Text(line), (0, 0, 0, 2)))


def _long(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
