"""The main job: labelled text in; the tokens that decide the label, those the model looks at, and whether they agree, out."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from tokensieve import __version__
from tokensieve.auditing.agreement import QUADRANTS, token_table
from tokensieve.auditing.baseline import baseline_accuracy
from tokensieve.auditing.budget import rows_to_review
from tokensieve.auditing.documents import Answered, examples, sample
from tokensieve.auditing.findings import FindingKind
from tokensieve.auditing.inspection import inspect
from tokensieve.auditing.result import Audit, Settings
from tokensieve.auditing.shortcuts import suspicious_tokens
from tokensieve.data.importance import Importance, token_importance
from tokensieve.model.classifier import AttentionClassifier
from tokensieve.model.decision import accuracy, decide
from tokensieve.model.effects import attention_sums
from tokensieve.progress import Clock, Progress, silent
from tokensieve.text.corpus import Corpus, split_corpus
from tokensieve.text.counts import Counts, Ints
from tokensieve.text.spill import StoredTexts
from tokensieve.text.tokenizers import Tokenizer, WordTokenizer
from tokensieve.text.vocabulary import learn_vocabulary, tokenize

FEW = 20


@dataclass(frozen=True)
class _Part:
    """One side of the split, as counts."""

    corpus: Corpus
    counts: Counts
    unknown: Ints
    words: int


def audit(
    corpus: Corpus,
    settings: Settings | None = None,
    tokenizer: Tokenizer | None = None,
    progress: Progress | None = None,
    seconds: dict[str, float] | None = None,
) -> Audit:
    """Importance, classifier, selection and their agreement on one corpus.

    Args:
        corpus: with its test set, or without: then a seeded, stratified share is set aside.
        settings: `Settings()` if None.
        tokenizer: words if None.
        progress: called with (stage, share done).
        seconds: times of earlier stages, to be reported with the others.

    Raises:
        InputError: the corpus cannot be split, or no token is frequent enough.
    """
    settings, tell = settings or Settings(), progress or silent
    clock = Clock(seconds)
    notes = corpus.intake.lines()
    if corpus.test is not None:
        notes += [f"of the test documents: {line}" for line in corpus.test.intake.lines()]
    else:
        corpus = split_corpus(corpus, share=settings.test_share, seed=settings.seed)
    train, test, vocabulary = _count(corpus, settings, tokenizer or WordTokenizer(), tell)
    clock.lap("tokenizing")
    tell("importance", 0.0)
    importance = token_importance(train.counts)
    clock.lap("importance")
    tell("training", 0.0)
    model = AttentionClassifier(settings.ngrams, settings.min_documents, random_state=settings.seed)
    model.fit_counts(train.counts, vocabulary)
    f = model.decision_function(test.counts.matrix)
    clock.lap("training")
    baseline = None
    if settings.baseline and isinstance(corpus.texts, StoredTexts):
        notes.append("TF-IDF + logistic regression is not trained beside the model: it needs all counts in memory")
    elif settings.baseline:
        tell("TF-IDF + logistic regression, for comparison", 0.0)
        baseline = baseline_accuracy(train.counts, test.counts, settings.seed)
        clock.lap("baseline")
    tell("agreement", 0.0)
    table, shares = _table(importance, model, train.counts)
    answered = Answered(test.corpus, test.counts, f, decide(f))
    sizes, budget = train.counts.class_sizes, settings.budget
    class_documents = dict(zip(corpus.classes, sizes.tolist(), strict=True))
    over = table.clear() if budget is None else budget.exceeding(table, class_documents)
    clock.lap("agreement")
    tell("findings", 0.0)
    found = inspect(
        table, {"train": train.counts, "test": test.counts}, {"train": train.corpus, "test": test.corpus}, model,
        settings.seed, settings.thorough,
    )  # fmt: skip
    clock.lap("findings")
    parts = {"train": (train.counts, train.corpus.rows), "test": (test.counts, test.corpus.rows)}
    result = Audit(
        name=corpus.name,
        classes=corpus.classes,
        version=__version__,
        seed=settings.seed,
        settings=asdict(settings)
        | {"budget": budget and str(budget), "columns": [corpus.intake.text_column, corpus.intake.label_column]},
        documents={"train": train.counts.n_documents, "test": test.counts.n_documents},
        class_documents=class_documents,
        token_types=train.counts.n_types,
        test_accuracy=accuracy(f, test.counts.labels),
        majority_accuracy=float(np.mean(test.counts.labels == sizes.argmax())),
        class_recall=_recall(answered.predicted, test.counts),
        baseline_accuracy=baseline,
        unknown_share=float(test.unknown.sum() / max(test.words, 1)),
        seconds=clock.seconds,
        notes=notes + _warnings(test.counts),
        tokens=table,
        neutral=dict(zip(corpus.classes, importance.neutral.tolist(), strict=True)),
        examples=examples(model, answered),
        attention_share=shares,
        suspicious=suspicious_tokens(found.of(FindingKind.SHORTCUT), table, train.counts.n_documents),
        model=model,
        sample=sample(model, answered, table, settings.seed),
        over_budget=over,
        to_review=rows_to_review(over["token"].unique(maintain_order=True), parts),
        findings=found.findings,
        label_issues=found.label_issues,
        honest_accuracy=found.honest,
        exceeded=() if budget is None else budget.exceeded(found.findings),
    )
    clock.lap("agreement")
    return result


def _count(corpus: Corpus, settings: Settings, tokenizer: Tokenizer, tell: Progress) -> tuple[_Part, _Part, Any]:
    assert corpus.test is not None
    total = len(corpus.texts) + len(corpus.test.texts)
    stream = tokenize(corpus.texts, tokenizer, lambda done: tell("tokenizing", done / total))
    vocabulary = learn_vocabulary(stream, tokenizer, settings.ngrams, settings.min_documents)
    parts = []
    for part in (corpus, corpus.test):
        if part is corpus.test:
            stream = tokenize(
                part.texts, tokenizer, lambda done: tell("tokenizing", (len(corpus.texts) + done) / total)
            )
        matrix, unknown = vocabulary.count(stream)
        counts = Counts(matrix, part.labels, corpus.classes, vocabulary.tokens)
        parts.append(_Part(part, counts, unknown, stream.n_tokens))
    return parts[0], parts[1], vocabulary


def _recall(predicted: Ints, test: Counts) -> dict[str, float | None]:
    right = np.bincount(test.labels[predicted == test.labels], minlength=test.n_classes)
    sizes = test.class_sizes
    return {name: float(right[k] / sizes[k]) if sizes[k] else None for k, name in enumerate(test.classes)}


def _warnings(test: Counts) -> list[str]:
    """What the numbers of test documents do not allow to be judged."""
    few = [f"{name!r} ({size})" for name, size in zip(test.classes, test.class_sizes, strict=True) if size < FEW]
    return [f"fewer than {FEW} test documents, so accuracy says little: {', '.join(few)}"] if few else []


def _table(
    importance: Importance, model: AttentionClassifier, counts: Counts
) -> tuple[pl.DataFrame, dict[str, tuple[float, float]]]:
    """The table, and the quadrants' shares of attention and of uniform attention."""
    sums = attention_sums(counts, model.scores_)
    table, which = token_table(importance, model, sums[2] / np.maximum(importance.documents, 1))
    masses = [np.bincount(which, x, 4) / np.sum(x) for x in sums[:2]]
    return table, dict(zip(QUADRANTS, zip(*(m.tolist() for m in masses), strict=True), strict=True))
