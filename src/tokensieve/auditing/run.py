"""The main job: labelled text in; the tokens that decide the label, those the model looks at, and whether they agree, out."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import polars as pl

from tokensieve.auditing.agreement import QUADRANTS, token_table
from tokensieve.auditing.baseline import baseline_accuracy, pair_baseline
from tokensieve.auditing.budget import rows_to_review
from tokensieve.auditing.card import learning_curve, model_card
from tokensieve.auditing.concordance import concordance
from tokensieve.auditing.documents import Answered, examples, sample
from tokensieve.auditing.findings import FindingKind, ranked
from tokensieve.auditing.inspection import inspect
from tokensieve.auditing.pairs import inspect_pairs
from tokensieve.auditing.result import Audit, Settings
from tokensieve.auditing.shortcuts import suspicious_tokens
from tokensieve.auditing.stability import stability
from tokensieve.data.formatting import importance_of_all
from tokensieve.data.importance import Importance
from tokensieve.data.pairs import pair_importance
from tokensieve.errors import InputError
from tokensieve.model.classifier import AttentionClassifier
from tokensieve.model.decision import decide
from tokensieve.model.effects import attention_sums
from tokensieve.model.fit import FitSettings
from tokensieve.model.training import CorpusModel, Part, TrainSettings, train_corpus
from tokensieve.progress import Clock, Progress, silent
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
        corpus: with its test set, or without: then a seeded, stratified share is set aside. Or what `read_corpus` reads: a data
            frame, an Arrow table, a data set, a file, (texts, labels).
        settings: `Settings()` if None.
        tokenizer: words if None.
        progress: called with (stage, share done).
        seconds: times of earlier stages, to be reported with the others.
        reading: text, label, test and whatever else `read_corpus` takes, where it is to read; with `pairs`, `read_pairs`.

    Raises:
        InputError: the source cannot be read or the corpus be split, or no token is frequent enough.
    """
    settings, tell, clock = settings or Settings(), progress or silent, Clock(seconds)
    if not isinstance(corpus, Corpus):
        corpus = (read_pairs if "pairs" in reading else read_corpus)(corpus, **reading)
        clock.lap("reading")
    elif reading:
        raise InputError(f"{', '.join(reading)}: the corpus is read already; give these to read_corpus")
    how = TrainSettings(
        settings.ngrams,
        settings.min_documents,
        settings.seed,
        settings.value_rate,
        settings.test_share,
        settings.formatting,
    )
    learned = train_corpus(corpus, how, tokenizer, tell, clock)
    train, test, notes = learned.train, learned.test, list(learned.notes)
    f = learned.f if learned.f.shape[1] > 1 else learned.f[:, 0]
    assert learned.model.vocabulary is not None
    splitter = learned.model.vocabulary.tokenizer
    model = AttentionClassifier.of(learned.model, tokenizer=splitter)
    tell("importance", 0.0)
    importance = importance_in(train)
    clock.lap("importance")
    baseline = None
    if settings.baseline and isinstance(corpus.texts, StoredTexts):
        notes.append("TF-IDF + logistic regression is not trained beside the model: it needs all counts in memory")
    elif settings.baseline:
        tell("TF-IDF + logistic regression, for comparison", 0.0)
        baseline = baseline_in(train, test, settings.seed)
        clock.lap("baseline")
    tell("agreement", 0.0)
    table, shares = token_frame(importance, learned)
    stable = stability(train, importance)
    if stable is not None:
        table = table.with_columns(stable.columns)
    answered, summary = Answered(test.corpus, test.counts, f, decide(f)), learned.to_dict()
    budget = settings.budget
    over = table.clear() if budget is None else budget.exceeding(table, summary["class_documents"])
    clock.lap("agreement")
    tell("findings", 0.0)
    pairs, curve = None, None
    fitting = FitSettings(value_rate=settings.value_rate, seed=settings.seed)
    if corpus.pairs is None:
        found = inspect(
            table, {"train": train.counts, "test": test.counts}, {"train": train.corpus, "test": test.corpus}, learned.model,
            fitting, settings.thorough, corpus.test is not None,
        )  # fmt: skip
    else:
        pairs, found = inspect_pairs(learned)
    findings = ranked([*found.findings, *([stable.finding] if stable and stable.finding else [])])
    clock.lap("findings")
    tell("learning curve", 0.0)
    if settings.thorough and pairs is None:
        curve = learning_curve(train.counts, test.counts, learned.model, fitting)
    clock.lap("learning curve")
    parts = {"train": (train.counts, train.corpus.rows), "test": (test.counts, test.corpus.rows)}
    result = Audit(
        **{name: summary[name] for name in SHARED},
        settings=asdict(settings) | {"budget": budget and str(budget), "columns": summary["settings"]["columns"]},
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
        lines=concordance(table, findings, train.counts, train.corpus, splitter, settings.seed),
        card=None if pairs else model_card(f, test.plain, train.counts.class_sizes, curve),
        exceeded=() if budget is None else budget.exceeded(findings),
        pairs=pairs,
    )
    clock.lap("agreement")
    return result


def importance_in(part: Part) -> Importance:
    """Importance in the documents of one side of a split; in pairs by turning them round."""
    if part.corpus.pairs is None:
        return importance_of_all(part.counts, part.features, part.corpus.units)
    return pair_importance(part.counts, part.corpus.pairs.units, part.features)


def baseline_in(train: Part, test: Part, seed: int) -> float:
    """Test accuracy of TF-IDF + logistic regression on the same counts; of pairs on their differences."""
    if train.corpus.pairs is None:
        return baseline_accuracy(train.plain, test.plain, seed)
    return pair_baseline(train.plain, test.plain, train.corpus.pairs.units, seed)


def token_frame(importance: Importance, learned: CorpusModel) -> tuple[pl.DataFrame, dict[str, tuple[float, float]]]:
    """The table `Audit.tokens`, and the quadrants' shares of attention and of uniform attention."""
    sums = attention_sums(learned.train.counts.matrix, learned.model.scores)
    table, which = token_table(importance, learned.model, sums[2] / np.maximum(importance.documents, 1))
    masses = [np.bincount(which, x, len(QUADRANTS)) / np.sum(x) for x in sums[:2]]
    return table, dict(zip(QUADRANTS, zip(*(m.tolist() for m in masses), strict=True), strict=True))
