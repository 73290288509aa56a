"""Train the classifier and save it, with its table for other languages."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from tokensieve.cli.audit import Job
from tokensieve.cli.command import command, out_option, progress, quiet_option, say
from tokensieve.cli.options import FORMATTING, MOST_SEED, SEED, SOURCE, Intake, Tokens
from tokensieve.errors import InputError
from tokensieve.options import option
from tokensieve.progress import Clock


@command(source=SOURCE)
def train(
    source: str,
    documents: Intake,
    tokens: Tokens,
    cluster: str | None = option(None, "Train on the Dask cluster at tcp://HOST:PORT.", metavar="ADDRESS"),
    formatting: bool | None = option(None, FORMATTING, default_text="on for --pairs only"),
    table: bool = option(False, "Write tokens.csv, the token table of an audit.", flag="--tokens"),
    seed: int = option(0, SEED, low=0, high=MOST_SEED),
    out: Path = out_option("tokensieve-model"),
    quiet: bool = quiet_option(),
) -> None:
    """Train on one source."""
    documents = replace(documents, source=source)
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
    _train(Job(read, tokens, out, quiet, settings, documents.as_given()), table)


def _train(job: Job, table: bool) -> None:
    """Read, train, write everything or nothing."""
    from tokensieve.files import check_writable, csv_table, write_all
    from tokensieve.model.settings import TrainSettings
    from tokensieve.model.storage import model_files
    from tokensieve.task.training import train_corpus

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
            from tokensieve.auditing.run import token_frame

            files["tokens.csv"] = csv_table(token_frame(learned.task.importance(learned.train), learned)[0])
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
