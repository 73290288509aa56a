"""The main job: labelled text in; the tokens that decide the label, those the model looks at, and whether they agree, out."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

import numpy as np
import polars as pl

from tokensieve.auditing.agreement import QUADRANTS, token_table
from tokensieve.auditing.baseline import baseline_accuracy, pair_baseline
from tokensieve.auditing.budget import rows_to_review
from tokensieve.auditing.card import learning_curve, model_card
from tokensieve.auditing.concordance import concordance
from tokensieve.auditing.documents import Answered, examples, sample
from tokensieve.auditing.findings import FindingKind, Share, ranked
from tokensieve.auditing.inspection import Inspection, inspect
from tokensieve.auditing.pairs import Preferences, inspect_pairs
from tokensieve.auditing.result import Audit, Settings
from tokensieve.auditing.shortcuts import suspicious_tokens
from tokensieve.auditing.stability import stability
from tokensieve.errors import InputError
from tokensieve.evidence.formatting import importance_of_all
from tokensieve.evidence.importance import Importance
from tokensieve.evidence.pairs import pair_importance
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
    how = {field.name: getattr(settings, field.name) for field in fields(TrainSettings)}
    learned = train_corpus(corpus, TrainSettings(**how), tokenizer, tell, clock)
    train, test, notes = learned.train, learned.test, list(learned.notes)
    f = learned.f if learned.f.shape[1] > 1 else learned.f[:, 0]
    assert learned.model.vocabulary is not None
    model = AttentionClassifier.of(learned.model, tokenizer=learned.model.vocabulary.tokenizer)
    importance = importance_in(train)
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
    fitting = FitSettings(value_rate=settings.value_rate, seed=settings.seed)
    pairs, found = _inspected(learned, table, fitting, settings.thorough, corpus.test is not None)
    findings = ranked([*found.findings, *([stable.finding] if stable and stable.finding else [])])
    clock.lap("findings")
    tell("learning curve", 0.0)
    fit_again = settings.thorough and pairs is None
    curve = learning_curve(train.counts, test.counts, learned.model, fitting) if fit_again else None
    clock.lap("learning curve")
    parts = {"train": (train.counts, train.corpus.rows), "test": (test.counts, test.corpus.rows)}
    result = Audit(
        **{name: summary[name] for name in SHARED},
        accuracy=Share.over(decide(f) == test.counts.labels, test.corpus.units) if pairs is None else pairs.accuracy,
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
        lines=concordance(table, findings, train.counts, train.corpus, model.tokenizer, settings.seed),
        card=None if pairs else model_card(f, test.plain, train.counts.class_sizes, curve),
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
    found = baseline_in(learned.train, learned.test, settings.seed)
    clock.lap("baseline")
    return found, []


def _inspected(
    learned: CorpusModel, table: pl.DataFrame, fitting: FitSettings, thorough: bool, test_given: bool
) -> tuple[Preferences | None, Inspection]:
    """What someone should look into, and for pairs what wins them."""
    if learned.train.corpus.pairs is not None:
        return inspect_pairs(learned, fitting, thorough, test_given)
    parts = {"train": learned.train, "test": learned.test}
    counts, texts = ({name: getattr(part, of) for name, part in parts.items()} for of in ("counts", "corpus"))
    return None, inspect(table, counts, texts, learned.model, fitting, thorough, test_given)


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
