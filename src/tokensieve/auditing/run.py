"""The main job: labelled text in; the tokens that decide the label, those the model looks at, and whether they agree, out."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from tokensieve.auditing.agreement import QUADRANTS, token_table
from tokensieve.auditing.budget import rows_to_review
from tokensieve.auditing.card import learning_curve, model_card
from tokensieve.auditing.concordance import concordance
from tokensieve.auditing.documents import Answered, examples, sample
from tokensieve.auditing.findings import FindingKind, ranked
from tokensieve.auditing.inspection import Inspection, inspect
from tokensieve.auditing.pairs import PreferenceFacts, inspect_pairs
from tokensieve.auditing.result import Audit, Settings
from tokensieve.auditing.shortcuts import suspicious_tokens
from tokensieve.auditing.stability import stability
from tokensieve.errors import InputError
from tokensieve.evidence.importance import Importance
from tokensieve.model.classifier import AttentionClassifier
from tokensieve.model.decision import decide
from tokensieve.model.effects import attention_sums
from tokensieve.progress import Clock, Progress, silent
from tokensieve.task.training import CorpusModel, train_corpus
from tokensieve.text.corpus import Corpus, read_corpus
from tokensieve.text.pairs import read_pairs
from tokensieve.text.sources import Source
from tokensieve.text.spill import StoredTexts
from tokensieve.text.tokenizers import Tokenizer

SHARED = (
    "name classes version seed documents class_documents token_types test_accuracy majority_accuracy class_recall unknown_share"
).split()


def audit(
    corpus: Corpus | Source,
    settings: Settings | None = None,
    tokenizer: Tokenizer | None = None,
    progress: Progress | None = None,
    seconds: dict[str, float] | None = None,
    **reading: Any,
) -> Audit:
    """Importance, classifier, selection and their agreement on one corpus.

    Args:
        corpus: with its test set (else a seeded, stratified share is set aside), or what `read_corpus` reads: a frame, a file, …
        settings: `Settings()` if None.
        tokenizer: words if None.
        progress: called with (stage, share done).
        seconds: times of earlier stages, to be reported with the others.
        reading: text, label, test and whatever else `read_corpus` takes, where it is to read; with `pairs`, `read_pairs`.

    Raises:
        InputError: the source cannot be read or the corpus be split, or no token is frequent enough.
    """
    settings, tell, clock = settings or Settings(), progress or silent, Clock(seconds)
    corpus = _read(corpus, reading, clock)
    learned = train_corpus(corpus, settings, tokenizer, tell, clock)
    train, test, task, notes = learned.train, learned.test, learned.task, list(learned.notes)
    f = learned.f if learned.f.shape[1] > 1 else learned.f[:, 0]
    assert learned.model.vocabulary is not None
    model = AttentionClassifier.of(learned.model, tokenizer=learned.model.vocabulary.tokenizer)
    importance = task.importance(train)
    clock.lap("importance")
    baseline, missing = _baseline(learned, settings, tell, clock)
    notes += missing
    tell("agreement and findings", 0.0)
    table, shares = token_frame(importance, learned)
    stable = stability(train, importance)
    table = table if stable is None else table.with_columns(stable.columns)
    answered, summary, budget = Answered(test.corpus, test.counts, f, decide(f)), learned.to_dict(), settings.budget
    over = table.clear() if budget is None else budget.exceeding(table, summary["class_documents"])
    clock.lap("agreement")
    pairs, found = _inspected(learned, table, settings, corpus.test is not None)
    findings = ranked([*found.findings, *([stable.finding] if stable and stable.finding else [])])
    clock.lap("findings")
    tell("learning curve", 0.0)
    fit_again = settings.thorough and task.single
    curve = learning_curve(train.counts, test.counts, learned.model, settings) if fit_again else None
    clock.lap("learning curve")
    parts = {"train": (train.counts, train.corpus.rows), "test": (test.counts, test.corpus.rows)}
    result = Audit(
        **{name: summary[name] for name in SHARED},
        accuracy=task.accuracy(learned.f, test),
        settings=settings.to_dict() | {"budget": budget and str(budget), "columns": summary["settings"]["columns"]},
        baseline_accuracy=baseline,
        seconds=clock.seconds,
        notes=notes,
        tokens=table,
        neutral=dict(zip(corpus.classes, importance.neutral.tolist(), strict=True)),
        examples=examples(model, answered),
        attention_share=shares,
        suspicious=suspicious_tokens(found.of(FindingKind.SHORTCUT), table, train.counts.n_documents),
        model=model,
        sample=sample(model, answered, table, settings.seed),
        over_budget=over,
        to_review=rows_to_review(over["token"].unique(maintain_order=True), parts),
        findings=findings,
        environments=pl.DataFrame() if stable is None else stable.table,
        label_issues=found.label_issues,
        honest_accuracy=found.honest,
        lines=concordance(table, findings, train.counts, train.corpus, model.tokenizer, settings.seed),
        card=None if not task.single else model_card(f, test.plain, train.counts.class_sizes, curve),
        exceeded=() if budget is None else budget.exceeded(findings),
        pairs=pairs,
    )
    clock.lap("agreement")
    return result


def _read(source: Corpus | Source, reading: dict[str, Any], clock: Clock) -> Corpus:
    """The corpus, read where it is not yet."""
    if not isinstance(source, Corpus):
        corpus = (read_pairs if "pairs" in reading else read_corpus)(source, **reading)
        clock.lap("reading")
        return corpus
    if reading:
        raise InputError(f"{', '.join(reading)}: the corpus is read already; give these to read_corpus")
    return source


def _baseline(
    learned: CorpusModel, settings: Settings, tell: Progress, clock: Clock
) -> tuple[float | None, list[str]]:  # fmt: skip
    """Accuracy of TF-IDF + logistic regression, and why it is missing where it was asked for."""
    if not settings.baseline:
        return None, []
    if isinstance(learned.train.corpus.texts, StoredTexts):
        return None, ["TF-IDF + logistic regression is not trained beside the model: it needs all counts in memory"]
    tell("TF-IDF + logistic regression, for comparison", 0.0)
    found = learned.task.baseline(learned.train, learned.test, settings.seed)
    clock.lap("baseline")
    return found, []


def _inspected(
    learned: CorpusModel, table: pl.DataFrame, settings: Settings, test_given: bool
) -> tuple[PreferenceFacts | None, Inspection]:
    """What someone should look into, and for pairs what wins them."""
    if not learned.task.single:
        return inspect_pairs(learned, settings, settings.thorough, test_given)
    return None, inspect(table, learned, settings, settings.thorough, test_given)


def token_frame(importance: Importance, learned: CorpusModel) -> tuple[pl.DataFrame, dict[str, tuple[float, float]]]:
    """The table `Audit.tokens`, and the quadrants' shares of attention and of uniform attention."""
    sums = attention_sums(learned.train.counts.matrix, learned.model.scores)
    table, which = token_table(importance, learned.model, sums[2] / np.maximum(importance.documents, 1))
    masses = [np.bincount(which, x, len(QUADRANTS)) / np.sum(x) for x in sums[:2]]
    return table, dict(zip(QUADRANTS, zip(*(m.tolist() for m in masses), strict=True), strict=True))
