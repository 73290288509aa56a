"""demo, audit, train."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from tokensieve.cli.labels import audit_labels, labels_to_audit
from tokensieve.cli.options import (
    FORMATTING,
    Audited,
    Intake,
    NgramsOption,
    QuietOption,
    SeedOption,
    Tokens,
    command,
    out_option,
    progress,
    say,
)
from tokensieve.errors import InputError
from tokensieve.progress import Clock


@dataclass(frozen=True)
class _Job:
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


@command
def demo(
    out: Annotated[Path, out_option("tokensieve-demo")] = Path("tokensieve-demo"),
    seed: SeedOption = 0,
    ngrams: NgramsOption = 1,
    quiet: QuietOption = False,
) -> None:
    """The main job on built-in generated reviews whose truth is known, offline."""
    from tokensieve.auditing.demo import demo_reviews
    from tokensieve.report.terminal import show_truth
    from tokensieve.text.corpus import read_corpus

    reviews = demo_reviews(seed=seed)
    names = ["negative" if label == 0 else "positive" for label in reviews.labels]
    read: Callable[[], Any] = lambda: read_corpus((reviews.texts.to_list(), names))  # noqa: E731
    result = _audit(_Job(read, Tokens(ngrams=ngrams), out, quiet, {"seed": seed}, {}, name="2,000 generated reviews"))
    if not quiet:
        show_truth(result, reviews)


@command
def audit(
    documents: Audited,
    tokens: Tokens,
    baseline: Annotated[
        bool, typer.Option("--baseline/--no-baseline", help="Train TF-IDF + logistic regression for comparison.")
    ] = True,
    fail_on: Annotated[
        str | None,
        typer.Option(
            "--fail-on",
            help="Exit 3 beyond it: 0.9@1% is P(class) − P(others) above 0.9 for one token in over 1% of the documents; or per "
            "kind of finding shortcut=0.9@3%,leak=0,labels=1%.",
            metavar="LIMITS",
        ),
    ] = None,
    formatting: Annotated[bool, typer.Option("--formatting/--no-formatting", help=FORMATTING)] = True,
    pictures: Annotated[
        bool, typer.Option("--pictures/--no-pictures", help="Write every picture as SVG and PNG too.")
    ] = True,
    card: Annotated[
        bool, typer.Option("--card", help="Write card.md too: the findings as a section of a dataset card.")
    ] = False,
    seed: SeedOption = 0,
    out: Annotated[Path, out_option("tokensieve-audit")] = Path("tokensieve-audit"),
    quiet: QuietOption = False,
) -> None:
    """The main job: importance of every token, the classifier, what it selects, and a page that shows it all.

    A shortcut is a token in 1 % of a class's documents or more, with q < 0.05 and the cautious end of its posterior difference
    more than half of the way to certain (or among the most informative), that looks like an artefact; a label to check is answered
    otherwise with a margin of 0.8. All thresholds: docs/glossary.md.
    """
    from tokensieve.report.terminal import show_over_budget

    settings: dict[str, Any] = {"seed": seed, "baseline": baseline, "formatting": formatting}
    if fail_on is not None:
        from tokensieve.auditing.budget import Budget

        settings["budget"] = Budget.parse(fail_on)
    names = documents.label or []
    asked, left_out = labels_to_audit(documents)
    if asked:

        def run(one: Audited, more: dict[str, Any], folder: Path, name: str) -> Any:
            read = one.reader(**more)
            job = _Job(read, tokens, folder, quiet, settings, one.as_given(), draw=pictures, card=card, name=name)
            return _audit(job, show=False)

        return audit_labels(asked, left_out, documents, out, quiet, run)
    documents = replace(documents, label=names[0] if names else None)  # type: ignore[arg-type]
    read = documents.reader()
    documents.advise(quiet)
    found = _audit(_Job(read, tokens, out, quiet, settings, documents.as_given(), draw=pictures, card=card))
    if found.fails:
        if not quiet:
            show_over_budget(found, documents.source, out)
        raise typer.Exit(3)


@command
def train(
    documents: Intake,
    tokens: Tokens,
    cluster: Annotated[
        str | None,
        typer.Option("--cluster", help="Learn on the Dask cluster there (tcp://HOST:PORT).", metavar="ADDRESS"),
    ] = None,
    formatting: Annotated[
        bool | None,
        typer.Option("--formatting/--no-formatting", help=f"{FORMATTING} On in audit, here only for --pairs."),
    ] = None,
    table: Annotated[bool, typer.Option("--tokens", help="Write tokens.csv, the table of an audit, too.")] = False,
    seed: SeedOption = 0,
    out: Annotated[Path, out_option("tokensieve-model")] = Path("tokensieve-model"),
    quiet: QuietOption = False,
) -> None:
    """Train the classifier and save it (no pickle), with its table for other languages."""
    read = documents.reader()
    documents.advise(quiet)
    if cluster is not None and formatting:
        raise InputError("--formatting needs the texts here: leave out --cluster or --formatting")
    if cluster is not None and documents.weight:
        raise InputError("--weight is for training here, not on a cluster: leave out --cluster or --weight")
    if cluster is not None and documents.pairs:
        raise InputError("--pairs are learned here, not on a cluster: leave out --cluster")
    if cluster is not None:
        from tokensieve.cli.cluster import train_on_cluster

        train_on_cluster(
            read, cluster, out, quiet, tokens.splitter(), tokens.ngrams, tokens.min_documents, seed, tokens.value_rate
        )
        return
    asked = bool(documents.pairs) if formatting is None else formatting
    settings: dict[str, Any] = {"seed": seed, "formatting": asked}
    _train(_Job(read, tokens, out, quiet, settings, documents.as_given()), table)


def _train(job: _Job, table: bool) -> None:
    """Read, train, write everything or nothing."""
    from tokensieve.files import check_writable, csv_table, write_all
    from tokensieve.model.storage import model_files
    from tokensieve.model.training import TrainSettings, train_corpus

    clock = Clock()
    splitter = job.tokens.splitter()
    how = {name: getattr(job.tokens, name) for name in ("ngrams", "min_documents", "value_rate")}
    check_writable(job.out)
    if (job.out / "findings.json").exists():
        raise InputError(f"--out {str(job.out)!r} holds an audit, which has its model already: name another folder")
    with progress(job.quiet) as tell:
        tell("reading", 0.0)
        corpus = job.read()
        clock.lap("reading")
        learned = train_corpus(corpus, TrainSettings(**how, **job.settings), splitter, tell, clock)
        tell("writing", 0.0)
        files: dict[str, Any] = dict(model_files(learned.model))
        if table:
            from tokensieve.auditing.run import importance_in, token_frame

            files["tokens.csv"] = csv_table(token_frame(importance_in(learned.train), learned)[0])
        clock.lap("report")
        summary = learned.to_dict()
        summary["settings"] |= job.documents | job.tokens.as_given()
        summary["seconds"] = clock.seconds | {"total": sum(clock.seconds.values())}
        files["summary.json"] = json.dumps(summary, ensure_ascii=False, indent=1)
        write_all(job.out, files)
    say(
        job.quiet,
        f"test accuracy {summary['test_accuracy']:.4f} (always the largest class: {summary['majority_accuracy']:.4f}); "
        f"{summary['token_types']:,} token types; all in {job.out}",
    )


def _audit(job: _Job, show: bool = True) -> Any:
    """Read, audit, write everything or nothing, and show the result."""
    from tokensieve.auditing.result import Settings
    from tokensieve.auditing.run import audit as run
    from tokensieve.files import check_writable, write_all
    from tokensieve.report.dataset_card import dataset_card
    from tokensieve.report.save import OURS, audit_files
    from tokensieve.report.terminal import show_audit

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
