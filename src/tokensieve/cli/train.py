"""Train the classifier and save it, also as a table for other programming languages."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
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
from tokensieve.progress import Clock, Progress

if TYPE_CHECKING:
    import polars as pl

    from tokensieve.model.attention import Model
    from tokensieve.task.tasks import CorpusModel


def _public_name(source: str | list[str]) -> str:
    """The source for summary.json."""
    if isinstance(source, str):
        return public_address(source)
    return str([public_address(address) for address in source])


@dataclass(frozen=True)
class Trained:
    """A model, and what is written beside it.

    Attributes:
        summary: the content of summary.json, without seconds.
        tokens: the token table of an audit; None if it was not asked for.
    """

    model: Model
    summary: dict[str, Any]
    tokens: pl.DataFrame | None


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
    from tokensieve.cli.cluster import connected
    from tokensieve.files import check_writable

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
        if client is None:
            trained = _train_here(to_read, settings, table, progress, clock)
        else:
            trained = _train_on(client, to_read, settings, progress, clock)
        progress("writing", 0.0)
        _write(trained, out, clock)
    n_tokens = trained.summary["token_types"]
    say(quiet, f"{_test_result(trained.summary)}; {n_tokens:,} tokens; model in {out}")


def _train_here(
    source: str | list[str],
    settings: TrainSettings,
    with_tokens: bool,
    progress: Progress,
    clock: Clock,
) -> Trained:
    """Read the source and train on this machine."""
    from tokensieve.read.reader import read_corpus
    from tokensieve.task.tasks import train_corpus

    corpus = read_corpus(source, settings)
    clock.lap("reading")
    learned = train_corpus(corpus, settings, progress, clock)
    summary = learned.to_dict()
    summary["settings"] |= settings.source_options()
    tokens = _token_table(learned) if with_tokens else None
    return Trained(learned.model, summary, tokens)


def _train_on(
    client: Any,
    source: str | list[str],
    settings: TrainSettings,
    progress: Progress,
    clock: Clock,
) -> Trained:
    """Let the workers of a cluster read the source, and train on them."""
    from tokensieve.task.agreement import token_table
    from tokensieve.task.cluster import learn_on  # scikit-learn takes over a second to import

    learned = learn_on(client, source, settings, progress)
    model = learned.model.trained_
    summary = {"name": _public_name(source)} | learned.to_dict() | {"seed": settings.seed}
    summary["settings"] = settings.to_dict() | {"columns": list(learned.reading.columns)}
    clock.lap("total")
    return Trained(model, summary, token_table(learned.importance, model, learned.attention))


def _token_table(learned: CorpusModel) -> pl.DataFrame:
    """The token table that an audit of the same documents writes."""
    import numpy as np

    if learned.model.predicts_scores:
        from tokensieve.auditing.scores.run import token_table as table_of_scores
        from tokensieve.evidence.score_ranks import score_importance

        units = learned.task.units(learned.train.corpus)
        ranks = score_importance(learned.train.counts, units)
        return table_of_scores(learned, ranks.to_frame())
    from tokensieve.task.agreement import token_table

    importance = learned.task.importance(learned.train)
    sums = learned.task.attention_sums(learned.train, learned.model)[2]
    mean_attention = sums / np.maximum(importance.documents, 1)
    return token_table(importance, learned.model, mean_attention)


def _write(trained: Trained, out: Path, clock: Clock) -> None:
    """Write the model, summary.json and, if there is one, the token table."""
    from tokensieve.files import Content, csv_table, json_text, write_all
    from tokensieve.model.storage import model_files

    files: dict[str, Content] = dict(model_files(trained.model))
    if trained.tokens is not None:
        files["tokens.csv"] = csv_table(trained.tokens)
    if "total" not in clock.seconds:  # of a cluster it is known
        clock.lap("report")
        clock.seconds["total"] = sum(clock.seconds.values())
    files["summary.json"] = json_text(trained.summary | {"seconds": clock.seconds})
    write_all(out, files)


def _test_result(summary: Mapping[str, Any]) -> str:
    """A sentence that compares the test error with that of the simplest prediction."""
    if "test_accuracy" in summary:
        return (
            f"test accuracy {summary['test_accuracy']:.1%} "
            f"(largest class: {summary['majority_accuracy']:.1%})"
        )
    return (
        f"test documents: mean absolute error {summary['mae']:.3g} "
        f"(median score: {summary['median_score_mae']:.3g}), R² {summary['r2']:.3f}, "
        f"Spearman's ρ {summary['spearman']:.3f}"
    )
