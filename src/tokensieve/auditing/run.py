"""The audit: from labelled text to the tokens that predict the label, those the model attends to, and whether they agree."""

from __future__ import annotations

import json
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import polars as pl

from tokensieve.auditing.checking import find_all
from tokensieve.auditing.checks.alone import Alone
from tokensieve.auditing.checks.label_issues import label_issues
from tokensieve.auditing.checks.registry import all_checks, kinds_of_finding
from tokensieve.auditing.context import AuditContext
from tokensieve.auditing.environments import environment_effects
from tokensieve.auditing.model_card import ModelCard
from tokensieve.auditing.preferences import preference_facts
from tokensieve.auditing.result import Audit
from tokensieve.auditing.settings import Settings
from tokensieve.errors import InputError
from tokensieve.escape import for_display
from tokensieve.evidence.intervals import Share
from tokensieve.files import Content, csv_table
from tokensieve.model.settings import FEW
from tokensieve.progress import Clock, Progress, in_background, silent
from tokensieve.read.corpus import Corpus
from tokensieve.read.reader import read_corpus
from tokensieve.read.settings import ReadSettings
from tokensieve.read.sources import Source
from tokensieve.read.stored_texts import StoredTexts
from tokensieve.report.blocks import Block, Column, Report, Table, Text
from tokensieve.task.agreement import DIGITS, QUADRANTS, token_table
from tokensieve.task.tasks import CorpusModel, Task, train_corpus
from tokensieve.text.vocabulary import CountedCorpus
from tokensieve.wording import plural, verb


def audit(
    corpus: Corpus | Source,
    settings: Settings | None = None,
    *,
    progress: Progress | None = None,
    seconds: dict[str, float] | None = None,
    client: Any = None,
    **options: Any,
) -> Audit:
    """Audit a corpus: token importance, a trained classifier, findings, and where data and model agree.

    Args:
        corpus: documents with their test set (if it has none, a seeded, stratified fraction is set aside), or anything that
        `read_corpus` reads: a frame, a file, …
        progress: called with (stage, fraction done).
        seconds: times of earlier stages, reported with the others.
        client: a `dask.distributed.Client`, whose workers read the source (`learn_on`); for a Dask bag or data frame the default
            one if None. Texts and counts stay there: save the result before the client is closed.
        options: fields of `Settings` by name, such as text, label, pairs, ngrams or tokenizer, in place of those in `settings`.

    Raises:
        InputError: the source cannot be read, the corpus cannot be split, or no token is frequent enough."""
    if not isinstance(settings, Settings | None):
        raise InputError(
            "the second argument must be Settings(…); pass texts and labels as a pair: audit((texts, labels))"
        )
    settings, progress, clock = (
        (settings or Settings()).with_options(options),
        progress or silent,
        Clock(seconds),
    )
    if settings.budget is not None:
        settings.budget.check_kinds(kinds_of_finding())
    if client is not None or hasattr(corpus, "to_delayed"):
        from tokensieve.task.cluster import train_remote

        learned = train_remote(client, corpus, settings, progress, clock)
        given = settings.test is not None or settings.split is not None
        return _audited(learned, settings, progress, clock, given)
    if not isinstance(corpus, Corpus):
        corpus = read_corpus(corpus, settings)
        clock.lap("reading")
    elif late := [name for name in options if name in ReadSettings.__dataclass_fields__]:
        raise InputError(
            f"{', '.join(late)}: the corpus has already been read; pass these to read_corpus"
        )
    baselines: list[Future[float | None]] = []

    def start_baseline(task: Task, train: CountedCorpus, test: CountedCorpus) -> None:
        """TF-IDF + logistic regression keep one core; the rest of the audit has the others."""
        if settings.baseline and not isinstance(train.corpus.texts, StoredTexts):
            baselines.append(in_background(lambda: task.baseline(train, test, settings.seed)))

    few = len(corpus.texts) <= FEW  # training on them takes all cores
    learned = train_corpus(corpus, settings, progress, clock, None if few else start_baseline)
    if few:
        start_baseline(learned.task, learned.train, learned.test)
    return _audited(learned, settings, progress, clock, corpus.test is not None, *baselines)


def _audited(
    learned: CorpusModel,
    settings: Settings,
    progress: Progress,
    clock: Clock,
    test_given: bool,
    baseline: Future[float | None] | None = None,
) -> Audit:
    """What the documents and the model of them show."""
    task, train, test = learned.task, learned.train, learned.test
    importance = task.importance(train)
    clock.lap("importance")
    if settings.baseline and baseline is None:
        learned.notes.append(
            "TF-IDF + logistic regression was not trained for comparison: it needs all counts in memory"
        )
    sums = task.attention_sums(train, learned.model)
    table = token_table(importance, learned.model, sums[2] / np.maximum(importance.documents, 1))
    which = np.array(
        list(map(QUADRANTS.index, table["quadrant"][: train.counts.n_types])), dtype=np.int64
    )
    attended, uniform = (
        (np.bincount(which, x, len(QUADRANTS)) / np.sum(x)).tolist() for x in sums[:2]
    )
    data = AuditContext(learned, importance, table, settings, test_given)
    stable = pl.DataFrame()
    environments = environment_effects(data)
    if environments is not None:
        stable = environments.effects.to_frame(data.importance)
        q = pl.Series("heterogeneity_q", stable["q_value"]).round_sig_figs(DIGITS)
        table = table.with_columns(stable["stability"], q)
    clock.lap("agreement")
    progress("agreement and findings", 0.0)
    curve = None
    if settings.thorough and task.classifies and "curve" not in task.left_out:
        curve = in_background(
            lambda: ModelCard.learning_curve(train.counts, test.counts, learned.model, settings)
        )
    findings = find_all(data, all_checks())
    clock.lap("findings")
    progress("learning curve", 0.0)
    honest = few = None
    if settings.thorough:
        shortcuts = [finding for finding in findings if finding.kind == "shortcut"]
        gone = {token for finding in shortcuts for token in finding.tokens}
        if not all(
            finding.tokens for finding in shortcuts
        ):  # one of them is length, with all its bins
            gone |= {str(token) for token in train.counts.tokens if "⟨length " in str(token)}
        honest = task.accuracy_without(gone, train, test, learned.model, learned.f, settings)
        few = Alone.few_words(data) if task.classifies else None
    if curve:
        curve.exception()  # waits
    clock.lap("learning curve")
    if baseline:
        progress("TF-IDF + logistic regression, for comparison", 0.0)
        baseline.exception()  # waits
        clock.lap("baseline")
    return Audit(
        learned=learned,
        settings=settings,
        tokens=table,
        neutral=dict(zip(train.counts.classes, importance.neutral.tolist(), strict=True)),
        attention_share=dict(zip(QUADRANTS, zip(attended, uniform, strict=True), strict=True)),
        findings=findings,
        baseline_accuracy=baseline.result() if baseline else None,
        honest_accuracy=honest,
        few_words=few,
        label_issues=label_issues(data)[2] if settings.thorough else pl.DataFrame(),
        environments=stable,
        curve=curve.result() if curve else pl.DataFrame(),
        pairs=None if task.classifies else preference_facts(data),
        seconds=clock.seconds,
    )


@dataclass(frozen=True)
class LabelAudits:
    """Audits of several labels of the same documents, side by side and in short."""

    own_files: ClassVar[str] = r"labels\.csv"
    name: str  # the source
    version: str  # of this package
    rows: tuple[dict[str, Any], ...]  # an entry of summary.json for each label (`label_row`)
    left_out: dict[
        str, int
    ]  # labels of too few documents, or of all but a few → documents that have them
    seconds: dict[str, float] = field(default_factory=dict)  # of each stage

    @staticmethod
    def label_row(label: str, folder: str, audit: Audit) -> dict[str, Any]:
        """One label's audit in short: of documents with and without it, in a folder beside the index."""
        sizes = list(audit.class_documents.values())
        first = audit.findings[0] if audit.findings else None
        return {
            "label": label,
            "folder": folder,
            "documents": sum(audit.documents.values()),
            "base_rate": Share.count(sizes[1] if len(sizes) == 2 else max(sizes), sum(sizes)).value,
            "test_accuracy": audit.accuracy.value,
            "majority_accuracy": audit.majority_accuracy,
            "findings": len(audit.findings),
            "first_finding": first and first.kind,
            "headline": first.headline if first else audit.report().verdict.removesuffix("."),
            "exceeded": audit.fails,
        }

    def to_dict(self) -> dict[str, object]:
        """The content of summary.json."""
        return {
            "name": self.name,
            "version": self.version,
            "labels": list(self.rows),
            "left_out": self.left_out,
        }

    def to_frame(self) -> pl.DataFrame:
        """The same as a table, a row per label."""
        return pl.DataFrame(self.rows, infer_schema_length=None)

    def files(self) -> dict[str, Content]:
        """File name → content of everything but the page."""
        summary = json.dumps(self.to_dict(), ensure_ascii=False, indent=1)
        return {"labels.csv": csv_table(self.to_frame()), "summary.json": summary}

    def report(self) -> Report:
        """A row for each label; their audits are in folders of their own."""
        columns: tuple[Column, ...] = (
            Column("Label"),
            Column("Base rate", "percent"),
            Column("Accuracy", "percent"),
        )
        columns += (
            Column("Largest class", "percent", extra=True),
            Column("Findings", "count"),
            Column("In short"),
        )
        columns += (Column("Report", "link"),)
        rows = []
        for row in self.rows:
            headline = (
                for_display(row["headline"], 200)
                + " (exceeds the --fail-on limit)" * row["exceeded"]
            )
            numbers = (
                row["base_rate"],
                row["test_accuracy"],
                row["majority_accuracy"],
                row["findings"],
            )
            rows.append(
                (for_display(row["label"], 40), *numbers, headline, f"{row['folder']}/report.html")
            )
        blocks: list[Block] = [
            Text("The last column has the path of each report."),
            Table("", columns, rows, first=30, searchable=True),
        ]
        if self.left_out:
            names = ", ".join(
                f"{for_display(name, 20)} ({n:,})" for name, n in list(self.left_out.items())[:20]
            )
            text = f"Not audited, because too few documents have them or lack them: {names}."
            blocks.append(Text(text, style="warning"))
        n = sum(row["findings"] > 0 for row in self.rows)
        verdict = f"{n:,} of {plural(len(self.rows), 'label')} {verb(n, 'have', 'has')} findings."
        title = f"Audits of {for_display(self.name, 60, path=True)}"
        return Report("audit", title, verdict, tuple(blocks), {"version": self.version})
