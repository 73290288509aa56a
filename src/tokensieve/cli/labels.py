"""audit, where documents have several labels: an audit of each in a folder of its own, and an index."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokensieve.cli.command import say
from tokensieve.errors import InputError

if TYPE_CHECKING:
    from tokensieve.cli.options import Audited

LISTS = (".jsonl", ".ndjson", ".json", ".parquet")  # files whose cells may be lists


def folder_name(label: str) -> str:
    """A name for the folder of a label: letters, digits, dot, dash and underscore."""
    return re.sub(r"[^\w.-]+", "-", label, flags=re.ASCII).strip("-.")[:60] or "label"


def labels_to_audit(documents: Audited) -> tuple[list[Any], dict[str, int]]:
    """The audits that are asked for, where it is more than one, and labels left out; nothing where one label is read as it is.

    Raises:
        InputError: the source cannot be read, or an option is given that several labels have no use for.
    """
    names = [documents.label] if isinstance(documents.label, str) else documents.label or []
    suffix = Path(documents.source.removesuffix(".gz")).suffix.lower()
    if documents.pairs or not (len(names) > 1 or documents.label_separator or suffix in LISTS):
        return [], {}
    from tokensieve.text.multilabel import label_settings
    from tokensieve.text.settings import ReadSettings

    how = ReadSettings(text=documents.text, label=names, label_separator=documents.label_separator, **documents.form())
    asked, left_out = label_settings(documents.source, how)
    if asked and (documents.group or documents.drop):
        raise InputError("--group and --drop are for one label column of one value: leave them out for several labels")
    return asked, left_out


def audit_labels(
    asked: list[Any], left_out: dict[str, int], documents: Audited, out: Path, quiet: bool, run: Callable[..., Any]
) -> int:
    """Audit each label, write its folder when it is done, and the index at the end.

    Args:
        asked, left_out: of `labels_to_audit`.
        documents: the options.
        out: folder for all.
        quiet: nothing on the terminal.
        run: (documents of one label, the rest of its reading, its folder, its name) → audit.

    Raises:
        InputError: one of the audits cannot be made.
    """
    from tokensieve import __version__
    from tokensieve.auditing.labels import LabelAudits, LabelRow
    from tokensieve.files import check_writable, csv_table, write_all
    from tokensieve.report.labels import render_labels
    from tokensieve.report.terminal_labels import show_labels

    check_writable(out)
    out.mkdir(parents=True, exist_ok=True)
    rows: list[LabelRow] = []
    taken: set[str] = set()
    for number, (label, how) in enumerate(asked, 1):
        folder = folder_name(label)
        folder = folder if folder.lower() not in taken else f"{folder}-{number}"
        taken.add(folder.lower())
        say(quiet, f"label {number} of {len(asked)}: {label}")
        more = {} if how.having is None else {"having": how.having, "label_separator": how.label_separator}
        found = run(replace(documents, label=how.label), more, out / folder, f"{documents.source}: {label}")
        rows.append(LabelRow.of(label, folder, found))
    found = LabelAudits(documents.source, __version__, tuple(rows), left_out)
    files: dict[str, Any] = {
        "report.html": render_labels(found),
        "labels.csv": csv_table(found.to_frame()),
        "summary.json": json.dumps(found.to_dict(), ensure_ascii=False, indent=1),
    }
    write_all(out, files)
    if not quiet:
        show_labels(found, out)
    over = [row.label for row in rows if row.exceeded]
    if over:
        say(quiet, f"over the limit of --fail-on: {', '.join(over)}; each folder has its over-budget.csv")
        return 3
    return 0
