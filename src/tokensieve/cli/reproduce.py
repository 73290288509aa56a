"""reproduce: every figure and table of the paper."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from tokensieve import __version__
from tokensieve.cli.options import QuietOption, SeedOption, command, out_option, progress, say
from tokensieve.errors import InputError

PAPER = "Attention with Trained Embeddings Provably Selects Important Tokens"


@dataclass(frozen=True, kw_only=True)
class Repeats:
    """How often each experiment is run, and under which readings of the paper."""

    seed: SeedOption = 0
    seeds: Annotated[
        int | None,
        typer.Option(
            "--seeds", help="How many seeds, from --seed up.", min=1, max=1000, show_default="5, or 3 at scale paper"
        ),
    ] = None
    reading: Annotated[
        list[str] | None,
        typer.Option(
            "--reading",
            metavar="NAME",
            help="Another reading of what the paper leaves open, or all (repeatable; see --list).",
        ),
    ] = None
    jobs: Annotated[int | None, typer.Option("--jobs", help="Runs at a time.", min=1, show_default="one per core")] = (
        None
    )  # fmt: skip


@command
def reproduce(
    repeats: Repeats,
    experiments: Annotated[list[str] | None, typer.Argument(help="Which; all if none is named (see --list).")] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of imdb_train.parquet, imdb_test.parquet, yelp.parquet.", metavar="FOLDER",
                     show_default="TOKENSIEVE_DATA"),
    ] = None,
    scale: Annotated[str, typer.Option(help="quick: minutes; paper: the paper's sizes, hours.")] = "quick",
    limit: Annotated[
        int | None, typer.Option("--documents", help="At most this many documents of each data set, for a trial.", min=200)
    ] = None,
    listing: Annotated[bool, typer.Option("--list", help="Describe the experiments and stop.")] = False,
    out: Annotated[Path, out_option("tokensieve-reproduce")] = Path("tokensieve-reproduce"),
    quiet: QuietOption = False,
) -> None:  # fmt: skip
    """The paper's experiments: its claims and figures beside ours over seeds, each with a verdict.

    What is finished stays in the folder: run the same command again after an interruption and it goes on.
    """
    from tokensieve.report.terminal_reproduce import show_experiments
    from tokensieve.reproduce.data import data_folder
    from tokensieve.reproduce.registry import check_readings, select
    from tokensieve.reproduce.result import SCALES, SEEDS
    from tokensieve.reproduce.runner import Plan

    chosen = select(experiments or [])
    readings = repeats.reading or []
    check_readings(chosen, readings)
    if scale not in SCALES:
        raise InputError(f"--scale {scale!r} is not one of {', '.join(SCALES)}")
    if listing:
        return show_experiments(chosen)
    seeds = range(repeats.seed, repeats.seed + (repeats.seeds or SEEDS[scale]))
    jobs = repeats.jobs or os.cpu_count() or 1
    _reproduce(Plan(chosen, scale, seeds, readings, data_folder(data), limit, out, jobs), quiet)


def _reproduce(plan: Any, quiet: bool) -> None:
    """Run, write everything that shows the whole, and show it."""
    from tokensieve.files import check_writable, csv_table, write_all
    from tokensieve.report.charts import drawn
    from tokensieve.report.reproduce import markdown, render_reproduction
    from tokensieve.report.reproduce_pictures import draw
    from tokensieve.report.terminal_reproduce import show_reproduction
    from tokensieve.reproduce.runner import run_all
    from tokensieve.reproduce.study import Reproduction

    check_writable(plan.out)
    plan.out.mkdir(parents=True, exist_ok=True)
    with progress(quiet) as tell:

        def done(id: str, run: Any, taken_over: bool) -> None:
            met = run.problem or ("every criterion met" if run.finding.passed else "not every criterion met")
            how = "taken over from an earlier run" if taken_over else f"{run.seconds:.0f} s"
            reading = "" if run.reading == "default" else f", reading {run.reading}"
            say(quiet, f"{id}{reading}, seed {run.seed}: {met} ({how})")

        start = time.perf_counter()
        results = run_all(plan, tell, done)
        seconds = {"experiments": sum(result.seconds for result in results)}
        seconds["total"] = seconds["experiments"]
        settings = {"scale": plan.scale, "experiments": " ".join(e.id for e in plan.experiments)}
        settings |= {"data": str(plan.folder or "none"), "seeds": " ".join(map(str, plan.seeds))}
        settings |= {"readings": " ".join(plan.readings)} if plan.readings else {}
        settings |= {} if plan.limit is None else {"documents_at_most": str(plan.limit)}
        settings["this_run_seconds"] = f"{time.perf_counter() - start:.0f}"
        date = time.strftime("%Y-%m-%d %H:%M")
        study = Reproduction(PAPER, results, settings, plan.seeds[0], __version__, date, seconds)
        pictures = draw(study)
        files: dict[str, Any] = {"report.html": render_reproduction(study, pictures), "table.md": markdown(study)}
        files["summary.json"] = json.dumps(study.to_dict(), ensure_ascii=False, indent=1, allow_nan=False)
        files |= {f"tables/{name}.csv": csv_table(table) for name, table in study.tables().items()}
        every = [picture for these in pictures.values() for picture in these]
        files |= {f"pictures/{name}": content for name, content in drawn(every, for_print=True).items()}
        write_all(plan.out, files)
    if not quiet:
        show_reproduction(study, plan.out)
