"""The audit: from labelled text to the tokens that predict the label, those the model attends to,
and whether they agree."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from threadpoolctl import threadpool_limits

from tokensieve.arrays import Floats
from tokensieve.auditing.balance_plan import BalancePlan, balance_plan
from tokensieve.auditing.checking import find_all
from tokensieve.auditing.checks.alone import few_words
from tokensieve.auditing.checks.label_issues import label_issues
from tokensieve.auditing.checks.registry import all_checks, kinds_of_finding
from tokensieve.auditing.checks.shortcut import (
    artefact_controls,
    artefact_search,
    searched_texts,
)
from tokensieve.auditing.context import AuditContext, forget
from tokensieve.auditing.environments import environment_effects
from tokensieve.auditing.findings import Finding
from tokensieve.auditing.misleading import predictions_of, where_misleading
from tokensieve.auditing.model_card import learning_curve
from tokensieve.auditing.preferences import preference_facts
from tokensieve.auditing.removal import with_removal
from tokensieve.auditing.result import Audit
from tokensieve.auditing.settings import Settings
from tokensieve.errors import InputError
from tokensieve.evidence.importance import Importance
from tokensieve.evidence.paired import PairedDifference
from tokensieve.model.settings import FEW
from tokensieve.progress import Clock, Progress, check_not_forked, in_background, silent
from tokensieve.read.corpus import Corpus
from tokensieve.read.reader import read_corpus
from tokensieve.read.settings import ReadSettings
from tokensieve.read.sources import Source
from tokensieve.read.stored_texts import StoredTexts
from tokensieve.task.agreement import DIGITS, QUADRANTS, token_table
from tokensieve.task.refitted import RefitComparison, compare_outcomes, compare_refit
from tokensieve.task.tasks import CorpusModel, Task, train_corpus
from tokensieve.text.vocabulary import CountedCorpus


@dataclass
class _Run:
    """An audit under way.

    Attributes:
        baseline: what TF-IDF + logistic regression predict correctly, once it is known; None
            without it.
    """

    settings: Settings
    progress: Progress
    clock: Clock
    baseline: Future[Floats] | None = field(default=None)

    def start_baseline(self, task: Task, train: CountedCorpus, test: CountedCorpus) -> None:
        """TF-IDF + logistic regression keep one core; the rest of the audit has the others."""
        if self.settings.baseline and not isinstance(train.corpus.texts, StoredTexts):
            self.baseline = in_background(lambda: task.baseline(train, test, self.settings.seed))

    def finished_baseline(self, learned: CorpusModel) -> PairedDifference | None:
        """The baseline beside the model, waited for; None without one."""
        if self.baseline is None:
            return None
        self.progress("TF-IDF + logistic regression, for comparison", 0.0)
        is_right = learned.task.correct(learned.f, learned.test.counts)
        baseline_is_right = self.baseline.result()
        comparison = compare_outcomes(learned.task, learned.test, baseline_is_right, is_right)
        self.clock.lap("baseline")
        return comparison


def audit(
    corpus: Corpus | Source,
    settings: Settings | None = None,
    *,
    progress: Progress | None = None,
    seconds: dict[str, float] | None = None,
    client: Any = None,
    **options: Any,
) -> Audit:
    """Audit a corpus: token importance, a trained classifier, findings, and where data and model
    agree.

    Args:
        corpus: documents with their test set (if it has none, a seeded, stratified fraction is set
            aside), or anything that `read_corpus` reads: a frame, a file, …
        progress: called with (stage, fraction done).
        seconds: times of earlier stages, reported with the others.
        client: a `dask.distributed.Client`, whose workers read the source (`learn_on`); for a Dask
            bag or data frame the default one if None. Texts and counts stay there: save the result
            before the client is closed.
        options: fields of `Settings` by name, such as text, label, pairs, ngrams or tokenizer, in
            place of those in `settings`.

    Raises:
        InputError: the source cannot be read, the corpus cannot be split, or no token is frequent
            enough.
    """
    if not isinstance(settings, Settings | None):
        raise InputError(
            "the second argument must be Settings(…); pass texts and labels as a pair: "
            "audit((texts, labels))"
        )
    check_not_forked()
    settings = (settings or Settings()).with_options(options)
    if settings.budget is not None:
        settings.budget.check_kinds(kinds_of_finding())
    run = _Run(settings, progress or silent, Clock(seconds))
    if client is not None or hasattr(corpus, "to_delayed"):
        from tokensieve.task.cluster import train_remote  # Dask is optional

        learned = train_remote(client, corpus, settings, run.progress, run.clock)
        test_given = settings.test is not None or settings.split is not None
        with _one_blas_thread():
            return _audited(learned, run, test_given)

    if not isinstance(corpus, Corpus):
        corpus = read_corpus(corpus, settings)
        run.clock.lap("reading")
    else:
        _refuse_reading_options(options)
    if corpus.scores is not None:
        raise InputError("labels are scores: call tokensieve.audit_scores instead of audit")
    if settings.predictions is not None and corpus.test is not None:
        predictions_of(corpus, corpus.test, settings)  # a wrong file is refused before training
    with _one_blas_thread():
        return _audited(_trained(corpus, run), run, test_given=corpus.test is not None)


def _one_blas_thread() -> threadpool_limits:
    """While an audit runs, dense sums of vectors keep to the thread that asks for them.

    The vectors of the baseline's optimizer are so short that further threads mostly wait for the
    next one, busily: on IMDB the baseline takes a fifth of the CPU seconds without them.
    """
    return threadpool_limits(1, user_api="blas")


def _refuse_reading_options(options: dict[str, Any]) -> None:
    """Raises an `InputError` for options that come too late for a corpus."""
    late = [name for name in options if name in ReadSettings.__dataclass_fields__]
    if late:
        raise InputError(
            f"{', '.join(late)}: the corpus has already been read; pass these to read_corpus"
        )


def _trained(corpus: Corpus, run: _Run) -> CorpusModel:
    """The trained model; the baseline runs beside the training, which for few documents would need
    all cores."""
    is_small = len(corpus.texts) <= FEW
    start = None if is_small else run.start_baseline
    learned = train_corpus(corpus, run.settings, run.progress, run.clock, start)
    if is_small:
        run.start_baseline(learned.task, learned.train, learned.test)
    return learned


def _audited(learned: CorpusModel, run: _Run, test_given: bool) -> Audit:
    """Run all checks on documents and a model trained on them; return the audit."""
    task = learned.task
    importance = task.importance(learned.train)
    run.clock.lap("importance")
    if run.settings.baseline and run.baseline is None:
        learned.notes.append(
            "TF-IDF + logistic regression was not trained for comparison: it needs all counts in "
            "memory"
        )
    agreement = _agreement(learned, importance)
    context = AuditContext(learned, importance, agreement.tokens, run.settings, test_given)
    tokens, environments = _with_environments(context)
    run.clock.lap("agreement")

    run.progress("agreement and findings", 0.0)
    curve = _start_curve(context)
    findings = [with_removal(finding, learned.train) for finding in find_all(context, all_checks())]
    run.clock.lap("findings")
    plan = _balance_plan(context, findings)
    controls = artefact_controls(context) if task.classifies else None
    forget(context, searched_texts, artefact_search)  # the order of all words, and tables of pairs
    run.clock.lap("controls")
    run.progress("learning curve", 0.0)
    details = _details(context, findings) if run.settings.thorough else {}
    curve_table = pl.DataFrame() if curve is None else curve.result()
    run.clock.lap("learning curve")
    return Audit(
        learned=learned,
        settings=run.settings,
        tokens=tokens,
        neutral=dict(zip(learned.train.counts.classes, importance.neutral.tolist(), strict=True)),
        attention_share=agreement.attention_share,
        findings=tuple(findings),
        baseline=run.finished_baseline(learned),
        balance_plan=plan,
        controls=controls,
        environments=environments,
        curve=curve_table,
        pairs=None if task.classifies else preference_facts(context),
        seconds=run.clock.seconds,
        test_given=test_given,
        **details,
    )


def _balance_plan(context: AuditContext, findings: list[Finding]) -> BalancePlan:
    """Plan how to weight rows so that the shortcuts no longer predict; empty where only a sample of
    the documents is at hand."""
    if context.task.known_totals:
        return BalancePlan()
    shortcuts = [finding for finding in findings if finding.kind == "shortcut"]
    return balance_plan(context.train, shortcuts)


def _details(context: AuditContext, findings: list[Finding]) -> dict[str, Any]:
    """The fields of `Audit` that only a thorough audit has."""
    issues = label_issues(context)
    comparison = _without_shortcuts(context, findings)
    return {
        "without_shortcuts": comparison,
        "misleading": where_misleading(
            context.learned, context.tokens, findings, comparison, context.settings
        ),
        "few_words": few_words(context) if context.task.classifies else None,
        "label_issues": issues.listed,
        "labels_not_judged": issues.not_judged,
    }


@dataclass(frozen=True)
class _Agreement:
    """How data and model compare.

    Attributes:
        tokens: the table of tokens.csv.
        attention_share: quadrant → (fraction of all attention, fraction of uniform attention).
    """

    tokens: pl.DataFrame
    attention_share: dict[str, tuple[float, float]]


def _agreement(learned: CorpusModel, importance: Importance) -> _Agreement:
    """Compares each token's association with the label and the attention that it gets."""
    attention, uniform, relative = learned.task.attention_sums(learned.train, learned.model)
    mean_relative = relative / np.maximum(importance.documents, 1)
    tokens = token_table(importance, learned.model, mean_relative)
    n_types = learned.train.counts.n_types
    places = {quadrant: place for place, quadrant in enumerate(QUADRANTS)}
    quadrant_of_type = np.array(
        [places[name] for name in tokens["quadrant"][:n_types]], dtype=np.int64
    )

    def by_quadrant(sums: np.ndarray) -> list[float]:
        shares = np.bincount(quadrant_of_type, sums, len(QUADRANTS)) / np.sum(sums)
        return [float(share) for share in shares]

    pairs = zip(by_quadrant(attention), by_quadrant(uniform), strict=True)
    return _Agreement(tokens, dict(zip(QUADRANTS, pairs, strict=True)))


def _with_environments(context: AuditContext) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The table of tokens with its columns about environments, and the table of
    environments.csv."""
    environments = environment_effects(context)
    if environments is None:
        return context.tokens, pl.DataFrame()
    table = environments.effects.to_frame(context.importance)
    q_value = pl.Series("heterogeneity_q", table["q_value"]).round_sig_figs(DIGITS)
    return context.tokens.with_columns(table["stability"], q_value), table


def _start_curve(context: AuditContext) -> Future[pl.DataFrame] | None:
    """Begins to measure the learning curve in the background, where it is asked for."""
    task = context.task
    if not context.settings.thorough or not task.classifies or "curve" in task.left_out:
        return None
    train = context.train.counts
    test = context.test.counts
    model = context.learned.model
    units = context.task.units(context.test.corpus)
    return in_background(lambda: learning_curve(train, test, model, context.settings, units))


def _without_shortcuts(context: AuditContext, findings: list[Finding]) -> RefitComparison | None:
    """The model beside one trained without the shortcuts; None if there are none."""
    shortcuts = [finding for finding in findings if finding.kind == "shortcut"]
    tokens = {token for finding in shortcuts for token in finding.tokens}
    is_about_length = any(not finding.tokens for finding in shortcuts)
    if is_about_length:
        names = [str(token) for token in context.train.counts.tokens]
        tokens |= {name for name in names if "⟨length " in name}
    # "gave 4 10" goes with "4 10", of which nothing shall be left
    remaining = context.train.types_not_containing(tokens)
    if remaining is None:
        return None
    return compare_refit(context.learned, remaining, context.settings)
