"""Find tokens that give the label away, train a classifier and write an HTML report.

A shortcut is a token in at least 1% of a class's documents, with q < 0.05 and a conservative bound on its class association that is
more than halfway to certainty, that also looks like an artefact of how the data was collected. A label is worth checking if the
model predicts another class with a margin of 0.8. The glossary in the documentation lists all thresholds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tokensieve.cli.command import command, out_option, progress, quiet_option
from tokensieve.cli.labels import audit_labels, labels_to_audit
from tokensieve.cli.options import FORMATTING, MOST_SEED, SEED, SOURCE, Audited, Tokens
from tokensieve.options import option


@dataclass(frozen=True)
class Job:
    """An audit to run: what to read, how, and where to write it.

    Attributes:
        read: gives the corpus.
        tokens: options of tokens.
        out: folder for the results.
        quiet: nothing on the terminal.
        settings: of the audit, beside those of the tokens.
        documents: options that decide which documents are read.
        draw: write every picture as SVG and PNG, too.
        card: write card.md, too.
        name: of the corpus, where it is not that of its source.
    """

    read: Callable[[], Any]
    tokens: Tokens
    out: Path
    quiet: bool
    settings: dict[str, Any]
    documents: dict[str, Any]
    draw: bool = True
    card: bool = False
    name: str | None = None


@command(source=SOURCE)
def audit(
    source: str,
    documents: Audited,
    tokens: Tokens,
    baseline: bool = option(True, "Train TF-IDF + logistic regression for comparison."),
    fail_on: str | None = option(
        None,
        "Exit with status 3 if a limit is exceeded. 0.9@1% allows no token with P(class) − P(others) above 0.9 in more than 1% of "
        "documents; limits per kind of finding are written shortcut=0.9@3%,leak=0,labels=1%.",
        metavar="LIMITS",
    ),
    formatting: bool = option(True, FORMATTING),
    pictures: bool = option(True, "Write every picture as SVG and PNG."),
    card: bool = option(False, "Write card.md: the findings as a section of a dataset card."),
    seed: int = option(0, SEED, low=0, high=MOST_SEED),
    out: Path = out_option("tokensieve-audit"),
    quiet: bool = quiet_option(),
) -> int:
    """Audit one source."""
    from tokensieve.report.terminal_audit import show_over_budget

    documents = replace(documents, source=source)
    settings: dict[str, Any] = {"seed": seed, "baseline": baseline, "formatting": formatting}
    if fail_on is not None:
        from tokensieve.auditing.budget import Budget

        settings["budget"] = Budget.parse(fail_on)
    names = documents.label or []
    asked, left_out = labels_to_audit(documents)
    if asked:

        def run(one: Audited, more: dict[str, Any], folder: Path, name: str) -> Any:
            read = one.reader(**more)
            job = Job(read, tokens, folder, quiet, settings, one.as_given(), draw=pictures, card=card, name=name)
            return run_audit(job, show=False)

        return audit_labels(asked, left_out, documents, out, quiet, run)
    documents = replace(documents, label=names[0] if names else None)  # type: ignore[arg-type]
    read = documents.reader()
    documents.advise(quiet)
    found = run_audit(Job(read, tokens, out, quiet, settings, documents.as_given(), draw=pictures, card=card))
    if found.fails:
        if not quiet:
            show_over_budget(found, documents.source, out)
        return 3
    return 0


def run_audit(job: Job, show: bool = True) -> Any:
    """Read, audit, write everything or nothing, and show the result."""
    from tokensieve.auditing.result import Settings
    from tokensieve.auditing.run import audit as run
    from tokensieve.files import check_writable, write_all
    from tokensieve.report.dataset_card import dataset_card
    from tokensieve.report.save import OURS, audit_files
    from tokensieve.report.terminal_audit import show_audit

    start = time.perf_counter()
    splitter = job.tokens.splitter()
    how = {name: getattr(job.tokens, name) for name in ("ngrams", "min_documents", "value_rate")}
    settings = Settings(**how, **job.settings)
    check_writable(job.out)
    with progress(job.quiet) as tell:
        tell("reading", 0.0)
        corpus = job.read()
        if job.name:
            corpus = replace(corpus, name=job.name)
        result = run(corpus, settings, splitter, tell, {"reading": time.perf_counter() - start})
        result.settings.update(job.documents | job.tokens.as_given())
        tell("writing", 0.0)
        files = audit_files(result, job.draw, start)
        if job.card:
            files["card.md"] = dataset_card(result)
        write_all(job.out, files, ours=OURS)
    if show and not job.quiet:
        show_audit(result, job.out)
    return result
