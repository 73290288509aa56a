"""Compare two audits: the tokens that appeared, disappeared or changed, and the two accuracies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tokensieve.auditing.settings import CompareSettings
from tokensieve.cli.command import QUIET, command, out_option, say
from tokensieve.errors import InputError
from tokensieve.escape import printable
from tokensieve.options import option

if TYPE_CHECKING:
    from tokensieve.auditing.link_report import NamedJudge, RepairJudgement


@command(
    before="Folder of an audit.", after="Folder of a later audit, such as one of cleaned data."
)
def _compare(
    before: Path,
    after: Path,
    settings: CompareSettings,
    on: str | None = option(
        None,
        "Labelled test documents: compare the models where the first audit's shortcuts mislead.",
        metavar="SOURCE",
    ),
    predictions: list[str] | None = option(
        None,
        "Of other models trained on the data before and after (give it twice, with --on): a file "
        "of predictions for the rows of SOURCE, or the folder of a transformers classifier.",
        metavar="FILE",
        parse=list,
    ),
    predicted: list[str] | None = option(
        None,
        "Column of the predictions; of two in one file, give it twice.",
        metavar="COLUMN",
        default_text="recognised",
        parse=list,
    ),
    out: Path = out_option("tokensieve-compare"),
    quiet: bool = QUIET,
) -> int:
    """Compare the audits in two folders."""
    from tokensieve.auditing.compare import compare_audits
    from tokensieve.auditing.link_report import RepairJudgement
    from tokensieve.files import check_writable
    from tokensieve.report.terminal import show
    from tokensieve.report.writer import save

    check_writable(out)
    others = _other_models(predictions or [], predicted or [], on)
    comparison = compare_audits(before, after, settings)
    if on is not None:
        judgement = RepairJudgement.of(before, after, on)
        comparison = replace(comparison, repair=judgement.of_audits)
        if others:
            first, second = (_judge(model, judgement, on) for model in others)
            comparison = replace(comparison, repair_of_others=judgement.of_others(first, second))
    save(comparison, out, pictures=False)
    if not quiet:
        show(comparison.report())
        print(f"report.html, compare.csv and summary.json are in {printable(str(out))}")
    if comparison.exceeded and quiet:  # a status of 3 is never silent
        limits = ", ".join(comparison.exceeded)
        say(
            False,
            f"this comparison exceeds the --fail-on limit: {limits}. {comparison.report().verdict}",
        )
    return 3 if comparison.exceeded else 0


class _OtherModel(NamedTuple):
    """A file of predictions, with the column if it is named, or the folder of a transformer."""

    source: str
    column: str | None


def _other_models(
    files: Sequence[str], columns: Sequence[str], on: str | None
) -> list[_OtherModel]:
    """The models before and after; none if no predictions are given.

    Raises:
        InputError: there is no --on, or they are not two.
    """
    if not files and not columns:
        return []
    if on is None:
        raise InputError("--predictions needs --on SOURCE, the documents that were predicted")
    if not files:
        raise InputError("--predicted names a column of the file that --predictions names: add it")
    named: list[str | None] = [*columns] or [None]
    n_models = max(len(files), len(named))
    if n_models != 2 or len(files) > 2 or len(named) > 2:
        raise InputError(
            "--predictions compares two models: give it twice (before and after), or once with "
            "--predicted BEFORE --predicted AFTER"
        )
    all_files = [*files, *files][:2]
    all_columns = [*named, *named][:2]
    return [_OtherModel(*pair) for pair in zip(all_files, all_columns, strict=True)]


def _judge(model: _OtherModel, judgement: RepairJudgement, documents: str) -> NamedJudge:
    """A transformer also classifies changed copies of the documents; a file cannot.

    `documents` is the source of the documents.
    """
    from tokensieve.auditing.broken_link import judge_of_model, judge_of_predictions
    from tokensieve.auditing.link_report import NamedJudge
    from tokensieve.auditing.predictions import read_predictions

    if Path(model.source).is_dir():
        from tokensieve.diagnose.classify import text_classifier

        predict = text_classifier(model.source, judgement.corpus)
        known = predict(judgement.documents.texts[:])
        return NamedJudge(Path(model.source).name, judge_of_model(predict, known))
    read = read_predictions(model.source, judgement.corpus, model.column, documents=documents)
    return NamedJudge(read.name, judge_of_predictions(read.predicted), read.note)
