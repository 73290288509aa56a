"""compare: what changed from one audit to another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from tokensieve.cli.options import QuietOption, command, out_option


@command
def compare(
    before: Annotated[Path, typer.Argument(help="Folder that `tokensieve audit` wrote.")],
    after: Annotated[
        Path, typer.Argument(help="Folder of another audit: cleaned data, another month, another source.")
    ],
    fail_on: Annotated[
        str | None,
        typer.Option("--fail-on", help="Exit 3 beyond it: appeared=0,sign=0,accuracy=1%.", metavar="LIMITS"),
    ] = None,
    out: Annotated[Path, out_option("tokensieve-compare")] = Path("tokensieve-compare"),
    quiet: QuietOption = False,
) -> None:
    """What changed between two audits: tokens that appeared, vanished or changed sign or strength, and the accuracy."""
    from tokensieve.auditing.compare import ChangeLimits, compare_audits
    from tokensieve.files import check_writable, csv_table, write_all
    from tokensieve.report.compare import render_comparison
    from tokensieve.report.terminal_compare import show_comparison

    limits = ChangeLimits({}) if fail_on is None else ChangeLimits.parse(fail_on)
    check_writable(out)
    found = compare_audits(before, after)
    exceeded = limits.exceeded(found)
    summary = found.to_dict() | {"fail_on": fail_on, "exceeded": exceeded}
    files: dict[str, Any] = {
        "compare.csv": csv_table(found.table),
        "summary.json": json.dumps(summary, ensure_ascii=False, indent=1),
        "report.html": render_comparison(found),
    }
    write_all(out, files)
    if not quiet:
        show_comparison(found, out, exceeded)
    if exceeded:
        raise typer.Exit(3)
