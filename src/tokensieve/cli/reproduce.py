"""reproduce: every figure and table of the paper."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from tokensieve import __version__
from tokensieve.cli.options import QuietOption, SeedOption, command, out_option, progress, say
from tokensieve.errors import InputError


@command
def reproduce(
    experiments: Annotated[list[str] | None, typer.Argument(help="Which; all if none is named (see --list).")] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of imdb_train.parquet, imdb_test.parquet, yelp.parquet.", metavar="FOLDER",
                     show_default="TOKENSIEVE_DATA"),
    ] = None,
    scale: Annotated[str, typer.Option(help="quick: minutes; paper: the paper's sizes, about two hours.")] = "quick",
    limit: Annotated[
        int | None, typer.Option("--documents", help="At most so many documents of each data set, for a trial.", min=200)
    ] = None,
    seed: SeedOption = 0,
    listing: Annotated[bool, typer.Option("--list", help="Describe the experiments and stop.")] = False,
    out: Annotated[Path, out_option("tokensieve-reproduce")] = Path("tokensieve-reproduce"),
    quiet: QuietOption = False,
) -> None:  # fmt: skip
    """The paper's experiments: its claims and figures beside ours, each with a verdict.

    What is finished stays in the folder: run the same command again after an interruption and it goes on.
    """
    from tokensieve.report.terminal_reproduce import show_experiments
    from tokensieve.reproduce.registry import select
    from tokensieve.reproduce.result import SCALES

    chosen = select(experiments or [])
    if scale not in SCALES:
        raise InputError(f"--scale {scale!r} is not one of {', '.join(SCALES)}")
    if listing:
        return show_experiments(chosen)
    _reproduce(chosen, data, limit, scale, seed, out, quiet)


def _reproduce(
    chosen: list[Any], folder: Path | None, limit: int | None, scale: str, seed: int, out: Path, quiet: bool
) -> None:
    """Run, write everything that shows the whole, and show it."""
    from tokensieve.files import check_writable, write_all
    from tokensieve.report.reproduce import Reproduction, picture_files, render_reproduction
    from tokensieve.report.terminal_reproduce import show_reproduction
    from tokensieve.reproduce.data import Data, data_folder
    from tokensieve.reproduce.runner import run_all

    data = Data(data_folder(folder), limit)
    check_writable(out)
    out.mkdir(exist_ok=True)
    with progress(quiet) as tell:

        def done(result: Any, taken_over: bool) -> None:
            how = "taken over from an earlier run" if taken_over else f"{result.seconds:.0f} s"
            say(quiet, f"{result.id}: {result.verdict} ({how})")

        start = time.perf_counter()
        results = run_all(chosen, data, scale, seed, out, tell, done)
        seconds = {"experiments": sum(result.seconds for result in results)}
        seconds["total"] = seconds["experiments"]
        settings = {"scale": scale, "experiments": " ".join(e.id for e in chosen), "data": str(data.folder or "none")}
        settings |= {} if limit is None else {"documents_at_most": str(limit)}
        settings["this_run_seconds"] = f"{time.perf_counter() - start:.0f}"
        name = "Attention with Trained Embeddings Provably Selects Important Tokens"
        date = time.strftime("%Y-%m-%d %H:%M")
        study = Reproduction(name, results, settings, seed, __version__, date, seconds)
        files: dict[str, Any] = {"report.html": render_reproduction(study), "table.md": study.markdown()}
        files["summary.json"] = json.dumps(study.to_dict(), ensure_ascii=False, indent=1, allow_nan=False)
        files |= {f"pictures/{picture}": content for picture, content in picture_files(study).items()}
        write_all(out, files)
    if not quiet:
        show_reproduction(study, out)
