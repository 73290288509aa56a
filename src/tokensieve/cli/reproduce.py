"""Reproduce the paper's experiments: its claims and figures beside ours, each with a verdict.

Finished runs stay in the output folder. After an interruption, run the same command again and it continues.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokensieve import __version__
from tokensieve.cli.command import command, out_option, progress, quiet_option, say
from tokensieve.cli.options import MOST_SEED, SEED
from tokensieve.errors import InputError
from tokensieve.options import option

PAPER = "Attention with Trained Embeddings Provably Selects Important Tokens"


@dataclass(frozen=True, kw_only=True)
class Repeats:
    """Repetitions."""

    seed: int = option(0, SEED, low=0, high=MOST_SEED)
    seeds: int | None = option(
        None, "Number of seeds, counted from --seed.", low=1, high=1000, default_text="5; 3 at scale paper"
    )
    reading: list[str] | None = option(
        None,
        "Another reading of what the paper leaves open, or all (repeatable; see --list).",
        metavar="NAME",
        parse=list,
    )
    jobs: int | None = option(None, "Runs at the same time.", low=1, default_text="one per core")


@command(experiments="Experiments to run; all by default (see --list).")
def reproduce(
    repeats: Repeats,
    experiments: tuple[str, ...] = (),
    data: Path | None = option(
        None,
        "Folder of imdb_train.parquet, imdb_test.parquet and yelp.parquet.",
        metavar="FOLDER",
        default_text="$TOKENSIEVE_DATA",
    ),
    scale: str = option(
        "quick", "quick takes minutes; paper has the paper's sizes and takes hours.", metavar="quick|paper"
    ),
    limit: int | None = option(
        None, "Use at most this many documents of each data set, for a trial.", flag="--documents", low=200
    ),
    listing: bool = option(False, "Describe the experiments and stop.", flag="--list"),
    out: Path = out_option("tokensieve-reproduce"),
    quiet: bool = quiet_option(),
) -> None:
    """Run experiments and write their results."""
    from tokensieve.report.terminal_reproduce import show_experiments
    from tokensieve.reproduce.data import data_folder
    from tokensieve.reproduce.registry import check_readings, select
    from tokensieve.reproduce.result import SCALES, SEEDS
    from tokensieve.reproduce.runner import Plan

    chosen = select(list(experiments))
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
