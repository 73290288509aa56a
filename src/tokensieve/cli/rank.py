"""Rank models by pairwise preferences, with and without the style of their answers held fixed.

Every row is a battle: two models, two answers, and which of them was preferred. Length, lists, bold
and headings are held fixed, and forms that are found to be rewarded. Names models that give one
answer to many prompts, and those that cannot be compared at equal length.
"""

from __future__ import annotations

import time
from pathlib import Path

from tokensieve.cli.command import QUIET, SOURCES, command, out_option, progress_bar
from tokensieve.escape import printable
from tokensieve.options import option
from tokensieve.ranking.settings import RankSettings


@command(without="text label label_separator annotator annotated_by group drop", source=SOURCES)
def _rank(
    source: list[str],
    settings: RankSettings,
    out: Path = out_option("tokensieve-rank"),
    draw: bool = option(True, "Write pictures.", flag="--pictures"),
    quiet: bool = QUIET,
) -> None:
    """Rank the models of one source."""
    from tokensieve.files import check_writable
    from tokensieve.ranking.run import rank
    from tokensieve.report.terminal import show
    from tokensieve.report.writer import save

    start = time.perf_counter()
    check_writable(out)
    with progress_bar(quiet) as progress:
        ranking = rank(source if len(source) > 1 else source[0], settings, progress)
        progress("writing", 0.9)
        save(ranking, out, pictures=draw, start=start)
    if not quiet:
        show(ranking.report())
        print(f"report.html, ranks.csv and features.csv are in {printable(str(out))}")
