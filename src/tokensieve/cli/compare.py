"""Compare two audits: tokens that appeared, disappeared or changed, and the accuracy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tokensieve.cli.command import command, out_option, quiet_option
from tokensieve.options import option


@command(
    before="Folder of an audit.", after="Folder of a later audit: of cleaned data, another month or another source."
)
def compare(
    before: Path,
    after: Path,
    fail_on: str | None = option(
        None, "Exit with status 3 if a limit is exceeded, such as appeared=0,sign=0,accuracy=1%.", metavar="LIMITS"
    ),
    out: Path = out_option("tokensieve-compare"),
    quiet: bool = quiet_option(),
) -> int:
    """Compare the audits in two folders."""
    from tokensieve.auditing.compare import change_limits, compare_audits
    from tokensieve.files import check_writable, csv_table, write_all
    from tokensieve.report.compare import render_comparison
    from tokensieve.report.terminal_compare import show_comparison

    limits = change_limits(fail_on)
    check_writable(out)
    found = compare_audits(before, after)
    exceeded = found.exceeded(limits)
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
        return 3
    return 0
