"""audit, if documents have several labels: an audit of each in a folder of its own, and an index."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tokensieve.cli.command import say
from tokensieve.errors import InputError
from tokensieve.text.settings import ReadSettings

LISTS = (".jsonl", ".ndjson", ".json", ".parquet", ".arrow", ".feather", ".ipc")  # files whose cells may be lists


def folder_name(label: str) -> str:
    """A name for the folder of a label: letters, digits, dot, dash and underscore."""
    return re.sub(r"[^\w.-]+", "-", label, flags=re.ASCII).strip("-.")[:60] or "label"


def labels_to_audit(source: str | list[str], settings: ReadSettings) -> tuple[list[Any], dict[str, int]]:
    """The audits to make, if there are several, and the labels that are left out; nothing for one ordinary label column.

    Raises:
        InputError: the source cannot be read, or an option does not apply to several labels.
    """
    from tokensieve.text.formats import kind_of

    names = [settings.label] if isinstance(settings.label, str) else list(settings.label or [])
    suffix = kind_of(source if isinstance(source, str) else source[0])
    if settings.pairs or not (len(names) > 1 or settings.label_separator or suffix in LISTS):
        return [], {}
    from tokensieve.text.multilabel import label_settings

    asked, left_out = label_settings(source, settings)
    if asked and (settings.group or settings.drop):
        raise InputError("--group and --drop need one label column with one value per document; leave them out")
    return asked, left_out


def audit_labels(
    asked: list[Any],
    left_out: dict[str, int],
    source: str,
    out: Path,
    quiet: bool,
    run: Callable[..., Any],
) -> int:
    """Audit each label, write its folder when it is done, and the index at the end; gives the exit status.

    Args:
        asked, left_out: of `labels_to_audit`.
        source: as for one label.
        out: folder for all.
        quiet: nothing on the terminal.
        run: (settings of one label, its folder, its name) → audit.

    Raises:
        InputError: one of the audits cannot be made.
    """
    from tokensieve import __version__
    from tokensieve.auditing.labels import LabelAudits, label_row
    from tokensieve.files import check_writable
    from tokensieve.report.terminal import show
    from tokensieve.report.writer import save

    check_writable(out)
    out.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    taken: set[str] = set()
    for number, (label, how) in enumerate(asked, 1):
        folder = folder_name(label)
        folder = folder if folder.lower() not in taken else f"{folder}-{number}"
        taken.add(folder.lower())
        say(quiet, f"label {number} of {len(asked)}: {label}")
        rows.append(label_row(label, folder, run(how, out / folder, f"{source}: {label}")))
    index = LabelAudits(source, __version__, tuple(rows), left_out)
    save(index, out, pictures=False)
    if not quiet:
        show(index.report())
        print(f"report.html, labels.csv, summary.json and a folder for each label are in {out}")
    over = [row["label"] for row in rows if row["exceeded"]]
    if over:
        say(quiet, f"over the limit of --fail-on: {', '.join(over)}; each folder has its over-budget.csv")
    return 3 if over else 0
