"""An audit of scores: reading, training, statistics of the tokens, findings and the baseline."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from tokensieve.arrays import Floats
from tokensieve.auditing.balance_plan import balance_plan
from tokensieve.auditing.result import Audit
from tokensieve.auditing.run import audit
from tokensieve.auditing.scores.context import ScoreContext
from tokensieve.auditing.scores.findings import KINDS, all_findings, score_issues
from tokensieve.auditing.scores.result import Baseline, ScoreAudit
from tokensieve.auditing.settings import Settings
from tokensieve.errors import InputError
from tokensieve.evidence.score_ranks import score_importance
from tokensieve.progress import Clock, Progress, check_not_forked, silent
from tokensieve.read.corpus import Corpus
from tokensieve.read.reader import read_corpus
from tokensieve.read.settings import ReadSettings
from tokensieve.read.sources import Source
from tokensieve.task.agreement import DIGITS
from tokensieve.task.ordinal import ordinal_predictions
from tokensieve.task.ridge import ridge_predictions
from tokensieve.task.score_measures import mae_difference
from tokensieve.task.tasks import CorpusModel, Scores, train_corpus


def audit_scores(
    source: Corpus | Source,
    settings: Settings | None = None,
    *,
    progress: Progress | None = None,
    seconds: dict[str, float] | None = None,
    **options: Any,
) -> ScoreAudit:
    """Audit documents whose labels are scores: stars, ratings, a toxicity from 0 to 1.

    Args:
        source: a corpus that was read with `task="scores"`, or anything that `read_corpus` reads.
        settings: of the audit; `task` need not be set.
        progress: called with (stage, fraction done).
        seconds: times of earlier stages, reported with the others.
        options: fields of `Settings` by name, in place of those in `settings`.

    Raises:
        InputError: the source cannot be read, a label is not a number, or an option needs classes.
    """
    check_not_forked()
    settings = (settings or Settings()).with_options(options | {"task": "scores"})
    check_settings(settings)
    clock = Clock(seconds)
    progress = progress or silent
    if not isinstance(source, Corpus):
        source = read_corpus(source, settings)
        clock.lap("reading")
    elif late := [name for name in options if name in ReadSettings.__dataclass_fields__]:
        raise InputError(
            f"{', '.join(late)}: the corpus has already been read; pass these to read_corpus"
        )
    if source.scores is None:
        raise InputError(f"{source.name} was read as classes: read it with task='scores'")
    learned = train_corpus(source, settings, progress, clock)
    return _audited(learned, settings, source.test is not None, progress, clock)


def check_settings(settings: Settings) -> None:
    """Refuse options that an audit of scores cannot follow, each in one line that says what
    works."""
    if settings.environments is not None:
        raise InputError(
            "--environments needs classes: leave it out, or in place of --task scores merge "
            "scores into classes, as in --group low=1,2 --group high=4,5"
        )
    budget = settings.budget
    if budget is None:
        return
    if budget.difference is not None:
        raise InputError(
            f"--fail-on {budget}: the limit on a token's P(class) − P(others) needs classes; with "
            "--task scores limit kinds of finding, as in --fail-on leak=0,labels=1%"
        )
    budget.check_kinds(KINDS)


def _audited(
    learned: CorpusModel, settings: Settings, test_given: bool, progress: Progress, clock: Clock
) -> ScoreAudit:
    """Run all checks on documents and a model of their scores; return the audit."""
    task = learned.task
    assert isinstance(task, Scores)
    importance = score_importance(learned.train.counts, task.units(learned.train.corpus))
    clock.lap("importance")
    progress("findings", 0.0)
    out_of_fold = None
    if settings.thorough:
        out_of_fold = task.out_of_fold_scores(learned.train, learned.model, settings)
    context = ScoreContext(
        learned=learned,
        settings=settings,
        test_given=test_given,
        importance=importance,
        out_of_fold=out_of_fold,
        of_halves=audit_of_halves(learned, settings),
    )
    findings = all_findings(context)
    shortcuts = [finding for finding in findings if finding.kind == "shortcut"]
    clock.lap("findings")
    predicted = learned.f[:, 0]
    measures = task.measures(predicted, learned.test, settings.seed)
    baseline = None
    ordinal = None
    if settings.baseline:
        progress("TF-IDF with ridge and logistic regression, for comparison", 0.0)
        data = task.baseline_data(learned.train, learned.test, settings.seed)
        baseline = _baseline(learned, task, ridge_predictions(data), settings.seed)
        middle_scores = ordinal_predictions(data)
        if middle_scores is not None:
            ordinal = _baseline(learned, task, middle_scores, settings.seed)
        clock.lap("baseline")
    return ScoreAudit(
        learned=learned,
        settings=settings,
        tokens=token_table(learned, importance.to_frame()),
        findings=findings,
        measures=measures,
        baseline=baseline,
        ordinal=ordinal,
        test_given=test_given,
        balance_plan=balance_plan(learned.train, shortcuts),
        label_issues=_rounded(score_issues(context).drop("document")),
        seconds=clock.seconds,
    )


def audit_of_halves(learned: CorpusModel, settings: Settings) -> Audit:
    """An audit of two classes: documents above the mean score, and the others."""
    train, test = learned.train.corpus, learned.test.corpus
    corpus = replace(
        train,
        frame=train.frame.drop("score"),
        test=replace(test, frame=test.frame.drop("score")),
    )
    of_classes = replace(settings, task="classes", budget=None, baseline=False, thorough=False)
    return audit(corpus, of_classes)


def _baseline(learned: CorpusModel, task: Scores, predicted: Floats, seed: int) -> Baseline:
    """Compare another model's predictions (`predicted`) with the model's, on the same test
    documents."""
    test = learned.test
    assert test.counts.numbers is not None
    difference = mae_difference(
        learned.f[:, 0], predicted, test.counts.numbers, seed, task.units(test.corpus)
    )
    return Baseline(task.measures(predicted, test, seed), difference)


def token_table(learned: CorpusModel, importance: pl.DataFrame) -> pl.DataFrame:
    """A row per token type: its statistics, then score u, value w and attention of the model."""
    model = learned.model
    sums = learned.task.attention_sums(learned.train, model)[2]
    n_documents = np.bincount(
        learned.train.counts.matrix.indices, minlength=learned.train.counts.n_types
    )
    table = importance.with_columns(
        score=pl.Series(model.scores),
        value=pl.Series(model.values[:, 0]),
        attention=pl.Series(sums / np.maximum(n_documents, 1)),
    )
    return _rounded(table)


def _rounded(table: pl.DataFrame) -> pl.DataFrame:
    """Numbers with as many digits as other tables have."""
    return table.with_columns(pl.col(pl.Float64).round_sig_figs(DIGITS))
