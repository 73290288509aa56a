"""Compare two audits: the tokens that appeared, disappeared or changed, and the two accuracies."""

from __future__ import annotations

from pathlib import Path

from tokensieve.auditing.settings import CompareSettings
from tokensieve.cli.command import QUIET, command, out_option
from tokensieve.escape import printable


@command(
    before="Folder of an audit.", after="Folder of a later audit, such as one of cleaned data."
)
def _compare(
    before: Path,
    after: Path,
    settings: CompareSettings,
    out: Path = out_option("tokensieve-compare"),
    quiet: bool = QUIET,
) -> int:
    """Compare the audits in two folders."""
    from tokensieve.auditing.compare import compare_audits
    from tokensieve.files import check_writable
    from tokensieve.report.terminal import show
    from tokensieve.report.writer import save

    check_writable(out)
    found = compare_audits(before, after, settings)
    save(found, out, pictures=False)
    if not quiet:
        show(found.report())
        print(f"report.html, compare.csv and summary.json are in {printable(str(out))}")
    return 3 if found.exceeded else 0
