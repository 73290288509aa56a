"""Reproduce the paper's experiments: its claims and figures next to ours, each with a verdict.

Finished runs stay in the output folder. After an interruption, run the same command again and it continues.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tokensieve.cli.command import QUIET, command, out_option, progress_bar, say
from tokensieve.options import option
from tokensieve.theory.experiments.experiment import Experiment, ReproduceSettings

if TYPE_CHECKING:
    from tokensieve.theory.experiments.result import SeedRun


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
    from tokensieve.theory.experiments.result import Reproduction
    from tokensieve.theory.experiments.run import reproduce

    chosen = Experiment.select(experiments, settings.readings)
    if listing:
        show(Reproduction.describe(chosen))
        return
    check_writable(out)

    def done(id: str, reading: str, found: SeedRun, taken_over: bool) -> None:
        met = found.problem or (
            "every criterion met" if found.passed else "not every criterion met"
        )
        how = "from an earlier run" if taken_over else f"{found.seconds:.0f} s"
        under = "" if reading == "default" else f", interpretation {reading}"
        say(quiet, f"{id}{under}, seed {found.seed}: {met} ({how})")

    with progress_bar(quiet) as progress:
        study = reproduce(chosen, settings, out, progress, done)
        save(study, out, for_print=True, also={"table.md": markdown(study.report())})
    if not quiet:
        show(study.report())
