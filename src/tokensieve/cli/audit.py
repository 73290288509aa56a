"""Find tokens that give the label away, train a classifier and write an HTML report.

A shortcut is a token that predicts a class and looks like an artefact of how the data was
collected. It appears in at least 1% of the class's documents (q < 0.05), and the conservative bound
on its class association is more than halfway to certainty. A label is worth checking if the model
gives another class a probability at least 0.8 higher. The documentation lists all thresholds.

If documents have several labels, each label gets an audit in a folder of its own, and an index
leads to them.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tokensieve.auditing.settings import Settings
from tokensieve.cli.command import (
    QUIET,
    SOURCES,
    checked_source,
    command,
    out_option,
    progress_bar,
    say,
)
from tokensieve.errors import InputError
from tokensieve.escape import HIDDEN, public_address
from tokensieve.options import option
from tokensieve.progress import DRAWING, Progress

if TYPE_CHECKING:
    from tokensieve.auditing.any_audit import AnyAudit
    from tokensieve.auditing.result import Audit
    from tokensieve.auditing.scores.result import ScoreAudit
    from tokensieve.files import Content
    from tokensieve.read.label_lists import SettingsPerLabel

EXCEEDED = 3  # exit status: a finding exceeds --fail-on
TEXTS_FILE = "reviews.csv"  # of texts in memory, so that commands on the page have a source
MAX_FOLDER_NAME = 60  # characters, of the 255 bytes that file systems allow

PipelineFormat = Literal["sarif", "junit", "github"]
ReviewTool = Literal["cleanlab", "label-studio", "argilla", "doccano"]


@dataclass(frozen=True)
class AuditOutputs:
    """What an audit writes besides its page, tables and model.

    Attributes:
        pictures: every picture as SVG and PNG.
        card: the findings as a section of a dataset card.
        formats: of pipelines; the annotations of GitHub are printed.
        exports: tools for which the rows to review are written.
    """

    pictures: bool = True
    card: bool = False
    formats: tuple[PipelineFormat, ...] = ()
    exports: tuple[ReviewTool, ...] = ()


@command(source=SOURCES)
def _audit(
    source: list[str],
    settings: Settings,
    pictures: bool = option(True, "Write every picture as SVG and PNG."),
    cluster: str | None = option(
        None,
        "Audit on the Dask cluster at tcp://HOST:PORT, or on all cores of this machine: local.",
        metavar="ADDRESS",
    ),
    card: bool = option(False, "Write card.md: the findings as a section of a dataset card."),
    formats: tuple[Literal["sarif", "junit", "github"], ...] = option(
        (),
        "Also write the findings for a pipeline (repeatable): findings.sarif, findings.junit.xml, "
        "or annotations for GitHub on standard output.",
        flag="--format",
    ),
    exports: tuple[Literal["cleanlab", "label-studio", "argilla", "doccano"], ...] = option(
        (), "Write the rows to review, with reasons, for a tool (repeatable).", flag="--export"
    ),
    out: Path = out_option("tokensieve-audit"),
    quiet: bool = QUIET,
) -> int:
    """Audit one source, or each of its labels."""
    from tokensieve.auditing.checks.registry import kinds_of_finding

    outputs = AuditOutputs(pictures, card, tuple(formats), tuple(exports))
    if settings.task == "scores":
        if cluster is not None:
            raise InputError("--cluster needs classes: leave it out with --task scores")
        return _audit_of_scores(source, settings, out, quiet, outputs)
    if settings.budget is not None:  # before anything is read
        settings.budget.check_kinds(kinds_of_finding())
    if exports and settings.pairs is not None:
        raise InputError("--export is for labelled documents: leave it out with --pairs")
    to_read = checked_source(source, settings, quiet or cluster is not None)
    if cluster is None:
        per_label = _several_labels(to_read, settings)
        if per_label.settings:
            if settings.predictions is not None:
                raise InputError(
                    "--predictions is for documents with one label each: leave it out, or name the "
                    "column of one label with --label"
                )
            name = " ".join(public_address(address) for address in source)
            return _audit_each_label(to_read, name, per_label, out, quiet, outputs)
    result = run_audit(to_read, settings, out, quiet, outputs, cluster=cluster)
    return _show_audit(result, out, quiet)


def _show_audit(result: Audit, out: Path, quiet: bool) -> int:
    """Show an audit, and the limits that it exceeds; return the exit status."""
    if quiet and not result.fails:
        return 0  # nothing is shown, so that nothing is imported for it
    from tokensieve.auditing.report import exceeded_report, exceeded_summary
    from tokensieve.report.terminal import show

    if not quiet:
        show(result.report(), out, result.seconds["total"])
    if not result.fails:
        return 0
    exceeded = exceeded_report(result, out)
    if quiet:  # a status of 3 is never silent
        say(False, f"{exceeded.verdict} {exceeded_summary(result, out)}")
    else:
        show(exceeded)
    return EXCEEDED


def _audit_each_label(
    source: str | list[str],
    name: str,
    per_label: SettingsPerLabel[Settings],
    out: Path,
    quiet: bool,
    outputs: AuditOutputs,
) -> int:
    """Write an audit of each label into a folder of its own, and an index; return the exit status.

    `name` is the source as the index and the audits name it.
    """
    from tokensieve import __version__
    from tokensieve.auditing.label_audits import LabelAudits, label_row
    from tokensieve.files import check_writable
    from tokensieve.report.terminal import show
    from tokensieve.report.writer import save

    check_writable(out, audit=True)
    out.mkdir(parents=True, exist_ok=True)
    folders = folder_names(per_label.settings)
    rows = []
    # each label's folder is written when its audit is done
    for number, (label, settings) in enumerate(per_label.settings.items(), 1):
        say(quiet, f"label {number} of {len(folders)}: {label}")
        folder = folders[label]
        title = f"{name}: {label}"
        result = run_audit(source, settings, out / folder, quiet, outputs, title)
        rows.append(label_row(label, folder, result))
    index = LabelAudits(name, __version__, tuple(rows), per_label.too_few, per_label.past_limit)
    save(index, out, pictures=False)
    if not quiet:
        show(index.report(), out)
    over = [row["label"] for row in rows if row["exceeded"]]
    if not over:
        return 0
    where = "see over-budget.csv and findings.csv in each folder"
    say(False, f"audits that exceed the --fail-on limit: {', '.join(over)}; {where}")
    return EXCEEDED


def folder_names(labels: Iterable[str]) -> dict[str, str]:
    """A folder for each label, in which only letters, digits, dot, dash and underscore occur.

    A name that differs from an earlier one by capitals alone, or not at all, gets a number: some
    file systems take both for one folder.
    """
    folders: dict[str, str] = {}
    taken: set[str] = set()
    for number, label in enumerate(labels, 1):
        folder = re.sub(r"[^\w.-]+", "-", label, flags=re.ASCII)
        folder = folder.strip("-.")[:MAX_FOLDER_NAME] or "label"
        if folder.lower() in taken:
            folder = f"{folder}-{number}"
        taken.add(folder.lower())
        folders[label] = folder
    return folders


def _audit_of_scores(
    source: list[str], settings: Settings, out: Path, quiet: bool, outputs: AuditOutputs
) -> int:
    """Audit documents with scores and write the results; return the exit status."""
    from tokensieve.auditing.any_audit import Invocation
    from tokensieve.auditing.scores.run import audit_scores, check_settings
    from tokensieve.files import check_writable
    from tokensieve.read.reader import read_corpus
    from tokensieve.report.terminal import show
    from tokensieve.report.writer import save

    start = time.perf_counter()
    check_settings(settings)  # before anything is read
    to_read = checked_source(source, settings, quiet)
    check_writable(out, audit=True)
    with progress_bar(quiet) as progress:
        progress("reading", 0.0)
        corpus = read_corpus(to_read, settings)
        seconds = {"reading": time.perf_counter() - start}
        result = audit_scores(corpus, settings, progress=progress, seconds=seconds)
        result = replace(result, invocation=Invocation(_public_source(to_read, out), str(out)))
        progress("writing", 0.0)
        also = _further_files(result, to_read, outputs)
        save(result, out, outputs.pictures, start, also=also)
    if not quiet:
        show(result.report(), out, result.seconds["total"])
    if result.fails:  # a status of 3 is never silent
        say(False, f"exceeds the --fail-on limit: {', '.join(result.exceeded)}; see findings.csv")
        return EXCEEDED
    return 0


def run_audit(
    source: str | list[str] | tuple[list[str], list[str]],
    settings: Settings,
    out: Path,
    quiet: bool,
    outputs: AuditOutputs | None = None,
    name: str = "",
    cluster: str | None = None,
) -> Audit:
    """Read, audit, and write everything or nothing.

    Args:
        source: what is to be read, or texts and labels in memory; of the latter reviews.csv is
            written too, which the commands on the page name.
        name: of the corpus, if it is not that of its source.
        cluster: the address of a Dask cluster that does the work; None for this machine.
    """
    outputs = outputs or AuditOutputs()
    from tokensieve.auditing.any_audit import Invocation
    from tokensieve.auditing.run import audit
    from tokensieve.cli.cluster import connected
    from tokensieve.files import check_writable
    from tokensieve.report.writer import save

    start = time.perf_counter()
    check_writable(out, audit=True)
    with (
        nullcontext() if cluster is None else connected(cluster, quiet, settings) as client,
        progress_bar(quiet) as progress,
    ):
        progress("reading", 0.0)
        if client is None:
            result = _audit_here(source, settings, name, progress, start)
        else:
            result = audit(source, settings, progress=progress, client=client)
        result = replace(result, invocation=Invocation(_public_source(source, out), str(out)))
        progress("writing", 0.0)
        if not outputs.pictures:  # nobody asked for them, so that nobody misses those of the page
            logging.getLogger("tokensieve").setLevel(logging.ERROR)
        also = _further_files(result, source, outputs)
        save(result, out, outputs.pictures, start, also=also)
    return result


def _audit_here(
    source: str | list[str] | tuple[list[str], list[str]],
    settings: Settings,
    name: str,
    progress: Progress,
    start: float,
) -> Audit:
    """Read and audit on this machine; the time since `start` counts as reading."""
    from tokensieve.auditing.run import audit
    from tokensieve.read.reader import read_corpus

    corpus = read_corpus(source, settings)
    if name:
        corpus = replace(corpus, name=name)
    DRAWING.start()  # now that all is imported: it loads Vega for half a second
    seconds = {"reading": time.perf_counter() - start}
    return audit(corpus, settings, progress=progress, seconds=seconds)


def _further_files(
    result: Audit | ScoreAudit,
    source: str | list[str] | tuple[list[str], list[str]],
    outputs: AuditOutputs,
) -> dict[str, Content]:
    """The files for dataset cards, pipelines and reviewers, and texts that no file holds.

    Annotations for GitHub are printed.
    """
    files: dict[str, Content] = {}
    if outputs.card:
        from tokensieve.auditing.dataset_card import dataset_card

        files["card.md"] = dataset_card(result).encode()
    if outputs.exports:
        from tokensieve.auditing.review_export import export_file_name, export_rows

        for tool in outputs.exports:
            files[export_file_name(tool)] = export_rows(result, tool)
    if outputs.formats:
        named_source = None if isinstance(source, tuple) else source
        files |= _pipeline_files(result, named_source, outputs.formats)
    if isinstance(source, tuple):
        import polars as pl

        from tokensieve.files import csv_table

        texts, labels = source
        files[TEXTS_FILE] = csv_table(pl.DataFrame({"text": texts, "label": labels}))
    return files


def _pipeline_files(
    result: AnyAudit, source: str | Sequence[str] | None, formats: Sequence[PipelineFormat]
) -> dict[str, Content]:
    """The files for pipelines; GitHub reads its annotations from standard output."""
    from tokensieve.auditing.pipelines.github import github_annotations
    from tokensieve.auditing.pipelines.junit import junit
    from tokensieve.auditing.pipelines.problems import problems_of
    from tokensieve.auditing.pipelines.sarif import sarif

    problems = problems_of(result, source)
    files: dict[str, Content] = {}
    if "sarif" in formats:
        files["findings.sarif"] = sarif(problems)
    if "junit" in formats:
        files["findings.junit.xml"] = junit(result, problems)
    if "github" in formats:
        for annotation in github_annotations(problems):
            print(annotation)
    return files


def _public_source(
    source: str | list[str] | tuple[list[str], list[str]], out: Path
) -> str | list[str]:
    """The source as the commands on the page name it; they need a file for texts in memory."""
    if isinstance(source, tuple):
        return str(out / TEXTS_FILE)
    if isinstance(source, list):
        return [public_address(address, HIDDEN) for address in source]
    return public_address(source, HIDDEN)


def _several_labels(source: str | list[str], settings: Settings) -> SettingsPerLabel[Settings]:
    """The audits to make, if documents can have several labels."""
    from tokensieve.read.label_lists import SettingsPerLabel, settings_per_label

    if settings.pairs or source == "-":  # standard input can be read only once
        return SettingsPerLabel()
    audits = settings_per_label(source, settings)
    if audits.settings and (settings.group or settings.drop):
        raise InputError(
            "--group and --drop need one label column with one value per document; leave them out"
        )
    return audits
