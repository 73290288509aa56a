"""Reproduce the paper's experiments: its claims and figures next to ours, each with a verdict.

Finished runs stay in the output folder. After an interruption, run the same command again and it
continues.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tokensieve.cli.command import QUIET, command, out_option, progress_bar, say
from tokensieve.options import option
from tokensieve.theory.experiments.settings import ReproduceSettings

if TYPE_CHECKING:
    from tokensieve.theory.experiments.experiment import SeedRun


@command(experiments="Experiments to run; all by default (see --list).")
def _reproduce(
    settings: ReproduceSettings,
    experiments: tuple[str, ...] = (),
    listing: bool = option(False, "Describe the experiments and stop.", flag="--list"),
    out: Path = out_option("tokensieve-reproduce"),
    quiet: bool = QUIET,
) -> None:
    """Run experiments and write their results."""
    from tokensieve.files import check_writable
    from tokensieve.report.markdown import markdown
    from tokensieve.report.terminal import show
    from tokensieve.report.writer import save
    from tokensieve.theory.experiments.catalogue import select_experiments
    from tokensieve.theory.experiments.reproduction import describe
    from tokensieve.theory.experiments.run import reproduce

    chosen = select_experiments(experiments, settings.readings)
    if listing:
        show(describe(chosen))
        return
    check_writable(out)

    def say_ended(experiment: str, reading: str, run: SeedRun, reused: bool) -> None:
        say(quiet, _run_in_words(experiment, reading, run, reused))

    with progress_bar(quiet) as progress:
        reproduction = reproduce(chosen, settings, out, progress, say_ended)
        report = reproduction.report()
        save(reproduction, out, for_print=True, also={"table.md": markdown(report)})
    if not quiet:
        show(report)


def _run_in_words(experiment: str, reading: str, run: SeedRun, reused: bool) -> str:
    """A line about one finished run, such as "mlp, seed 3: every criterion met (12 s)"."""
    if run.problem:
        outcome = run.problem
    elif run.passed:
        outcome = "every criterion met"
    else:
        outcome = "not every criterion met"
    interpretation = "" if reading == "default" else f", interpretation {reading}"
    origin = "from an earlier run" if reused else f"{run.seconds:.0f} s"
    return f"{experiment}{interpretation}, seed {run.seed}: {outcome} ({origin})"
