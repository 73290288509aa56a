"""Train the classifier and save it, also as a table for other programming languages."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokensieve.cli.command import (
    QUIET,
    SOURCES,
    checked_source,
    command,
    out_option,
    progress_bar,
    say,
)
from tokensieve.escape import public_address
from tokensieve.model.settings import TrainSettings
from tokensieve.options import option
from tokensieve.progress import Clock

if TYPE_CHECKING:
    from tokensieve.task.tasks import CorpusModel


def _public_name(source: str | list[str]) -> str:
    """The source for summary.json."""
    if isinstance(source, str):
        return public_address(source)
    return str([public_address(address) for address in source])


@command(source=SOURCES)
def _train(
    source: list[str],
    settings: TrainSettings,
    formatting: bool | None = option(
        None, "Treat formatting and length as tokens.", default_text="for --pairs only"
    ),
    cluster: str | None = option(
        None,
        "Train on the Dask cluster at tcp://HOST:PORT, or on all cores of this machine: local.",
        metavar="ADDRESS",
    ),
    table: bool = option(False, "Write tokens.csv, the token table of an audit.", flag="--tokens"),
    out: Path = out_option("tokensieve-model"),
    quiet: bool = QUIET,
) -> None:
    """Train on a source and write the model."""
    import numpy as np

    from tokensieve.cli.cluster import connected
    from tokensieve.files import check_writable, csv_table, write_all
    from tokensieve.model.attention import attention_sums
    from tokensieve.model.storage import model_files
    from tokensieve.read.reader import read_corpus
    from tokensieve.task.tasks import train_corpus

    settings = replace(
        settings, formatting=bool(settings.pairs) if formatting is None else formatting
    )
    to_read = checked_source(source, settings, quiet)
    settings.make_tokenizer()  # what is wrong with it is said before the work
    clock = Clock()
    check_writable(out, model=True)
    with (
        nullcontext() if cluster is None else connected(cluster, quiet, settings) as client,
        progress_bar(quiet) as progress,
    ):
        progress("reading", 0.0)
        if client is not None:
            from tokensieve.task.cluster import (
                learn_on,  # scikit-learn takes over a second to import
            )

            trained = learn_on(client, to_read, settings, progress)
            importance, model, attended = (
                trained.importance,
                trained.model.trained_,
                trained.attention,
            )
            summary = {"name": _public_name(to_read)} | trained.to_dict() | {"seed": settings.seed}
            summary["settings"] = settings.to_dict() | {"columns": list(trained.reading.columns)}
            clock.lap("total")
        else:
            corpus = read_corpus(to_read, settings)
            clock.lap("reading")
            learned = train_corpus(corpus, settings, progress, clock)
            model, summary = learned.model, learned.to_dict()
            summary["settings"] |= settings.source_options()
            if learned.model.predicts_scores:
                _write_scores(learned, summary, out, table, quiet, clock)
                return
            if table:
                importance = learned.task.importance(learned.train)
                sums = attention_sums(learned.train.counts.matrix, model.scores)[2]
                attended = sums / np.maximum(importance.documents, 1)
        progress("writing", 0.0)
        files: dict[str, Any] = dict(model_files(model))
        if table or client is not None:
            from tokensieve.task.agreement import token_table

            files["tokens.csv"] = csv_table(token_table(importance, model, attended))
        if client is None:
            clock.lap("report")
            clock.seconds["total"] = sum(clock.seconds.values())
        summary["seconds"] = clock.seconds
        files["summary.json"] = json.dumps(summary, ensure_ascii=False, indent=1)
        write_all(out, files)
    say(
        quiet,
        f"test accuracy {summary['test_accuracy']:.1%} (largest class: "
        f"{summary['majority_accuracy']:.1%}); {summary['token_types']:,} tokens; model in {out}",
    )


def _write_scores(
    learned: CorpusModel,
    summary: dict[str, Any],
    out: Path,
    with_tokens: bool,
    quiet: bool,
    clock: Clock,
) -> None:
    """Write a model of scores, and say how well it predicts."""
    from tokensieve.files import csv_table, write_all
    from tokensieve.model.storage import model_files

    files: dict[str, Any] = dict(model_files(learned.model))
    if with_tokens:
        from tokensieve.auditing.scores.run import token_table
        from tokensieve.evidence.score_ranks import score_importance

        units = learned.task.units(learned.train.corpus)
        importance = score_importance(learned.train.counts, units)
        files["tokens.csv"] = csv_table(token_table(learned, importance.to_frame()))
    clock.lap("report")
    clock.seconds["total"] = sum(clock.seconds.values())
    summary["seconds"] = clock.seconds
    files["summary.json"] = json.dumps(summary, ensure_ascii=False, indent=1)
    write_all(out, files)
    say(
        quiet,
        f"test documents: mean absolute error {summary['mae']:.3g} (median score: "
        f"{summary['median_score_mae']:.3g}), R² {summary['r2']:.3f}, Spearman's ρ "
        f"{summary['spearman']:.3f}; {summary['token_types']:,} tokens; model in {out}",
    )
