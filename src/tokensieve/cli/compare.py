"""Compare two audits: the tokens that appeared, disappeared or changed, and the two accuracies."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tokensieve.auditing.settings import CompareSettings
from tokensieve.cli.command import QUIET, command, out_option, say
from tokensieve.escape import printable
from tokensieve.options import option


@command(
    before="Folder of an audit.", after="Folder of a later audit, such as one of cleaned data."
)
def _compare(
    before: Path,
    after: Path,
    settings: CompareSettings,
    on: str | None = option(
        None,
        "Labelled test documents: compare the models where the first audit's shortcuts mislead.",
        metavar="SOURCE",
    ),
    out: Path = out_option("tokensieve-compare"),
    quiet: bool = QUIET,
) -> int:
    """Compare the audits in two folders."""
    from tokensieve.auditing.compare import compare_audits
    from tokensieve.auditing.link_report import repair_effect
    from tokensieve.files import check_writable
    from tokensieve.report.terminal import show
    from tokensieve.report.writer import save

    check_writable(out)
    comparison = compare_audits(before, after, settings)
    if on is not None:
        comparison = replace(comparison, repair=repair_effect(before, after, on))
    save(comparison, out, pictures=False)
    if not quiet:
        show(comparison.report())
        print(f"report.html, compare.csv and summary.json are in {printable(str(out))}")
    if comparison.exceeded and quiet:  # a status of 3 is never silent
        limits = ", ".join(comparison.exceeded)
        say(
            False,
            f"this comparison exceeds the --fail-on limit: {limits}. {comparison.report().verdict}",
        )
    return 3 if comparison.exceeded else 0
