"""Where the shortcuts of an audit mislead: the model there, the one trained without them, and any
other model whose predictions are given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray

from tokensieve.arrays import Floats, Ints
from tokensieve.auditing.broken_link import (
    ClassNames,
    Judge,
    Mark,
    documents_containing,
    judge_of_model,
    judge_of_predictions,
)
from tokensieve.auditing.findings import Finding
from tokensieve.auditing.link_report import (
    LinkDocuments,
    RepairEffect,
    class_predictor,
    link_effect,
    marks_of_several_classes,
)
from tokensieve.auditing.predictions import Predictions, read_predictions
from tokensieve.auditing.settings import Settings
from tokensieve.model.attention import decide
from tokensieve.read.corpus import Corpus
from tokensieve.task.refitted import RefitComparison
from tokensieve.task.tasks import CorpusModel

# Changed copies are split into words anew. So many of a group give an interval of ±6 points, and so
# many marks take less than a second; `compare --on` judges all copies of five marks.
MAX_COPIES = 300
MAX_MARKS = 3
THE_MODEL = "The model"


@dataclass(frozen=True)
class WhereMisleading:
    """The model beside others on test documents in which the shortcuts do not tell the class.

    Attributes:
        without_shortcuts: beside the model trained without them; None if there are none.
        other: beside predictions that were given; None without them.
    """

    without_shortcuts: RepairEffect | None = None
    other: RepairEffect | None = None


def where_misleading(
    learned: CorpusModel,
    tokens: pl.DataFrame,
    findings: Sequence[Finding],
    comparison: RefitComparison | None,
    settings: Settings,
) -> WhereMisleading:
    """Judge the models; nothing is judged on pairs, and where test texts are on other machines.

    Args:
        learned: the model and its documents.
        tokens: the table of tokens.
        findings: all.
        comparison: the model beside one without the shortcuts; None if there are none.
        settings: name the predictions, if any.
    """
    corpus = learned.test.corpus
    is_elsewhere = bool(learned.task.known_totals)  # on other machines
    if is_elsewhere or not learned.task.classifies:
        return WhereMisleading()
    documents = _documents(learned)
    marks = _marks(findings, tokens)[:MAX_MARKS]
    own = judge_of_model(class_predictor(learned.model), _class_names(learned, learned.f))
    without_shortcuts = None
    if comparison is not None and marks:
        refitted = _judge_of_refitted(learned, comparison)
        names = (THE_MODEL, "Without the shortcuts")
        without_shortcuts = link_effect(documents, marks, own, refitted, names)
    other = None
    if settings.predictions is not None:
        predictions = predictions_of(learned.train.corpus, corpus, settings)
        judge = judge_of_predictions(predictions.predicted)
        other = link_effect(documents, marks, judge, own, (predictions.name, THE_MODEL))
        other = replace(other, note=predictions.note)
    return WhereMisleading(without_shortcuts, other)


def predictions_of(train: Corpus, test: Corpus, settings: Settings) -> Predictions:
    """The predictions that the settings name."""
    assert settings.predictions is not None
    n_train_rows = int(train.reading.counts["rows"])
    test_file = settings.test if isinstance(settings.test, str) else None
    return read_predictions(
        settings.predictions, test, settings.predicted, n_train_rows, documents=test_file
    )


def _class_names(learned: CorpusModel, logits: Floats) -> ClassNames:
    """The classes that logits give."""
    names = np.array([str(name) for name in learned.model.classes])
    predicted: ClassNames = names[decide(logits)]
    return predicted


def _judge_of_refitted(learned: CorpusModel, comparison: RefitComparison) -> Judge:
    """The model without the shortcuts."""

    def classes_of(matrix: sp.csr_array) -> ClassNames:
        remaining = matrix[:, comparison.types]
        return _class_names(learned, comparison.refitted.logits(remaining))

    known = classes_of(learned.test.counts.matrix)
    return judge_of_model(lambda texts: classes_of(learned.model.count(texts)[0]), known)


def _documents(learned: CorpusModel) -> LinkDocuments:
    """The test documents, which were counted already."""
    test = learned.test
    corpus = test.corpus
    texts = corpus.texts
    assert learned.model.vocabulary is not None
    tokenizer = learned.model.vocabulary.tokenizer
    type_of = {str(token): number for number, token in enumerate(test.counts.tokens)}

    def containing(tokens: Sequence[str]) -> NDArray[np.bool_]:
        if not all(token in type_of for token in tokens):  # part of a phrase that was found later
            return documents_containing(texts, tokens, tokenizer)
        types: Ints = np.array([type_of[token] for token in tokens], dtype=np.int64)
        occurrences = test.counts.matrix[:, types].sum(axis=1)
        contains: NDArray[np.bool_] = np.asarray(occurrences).reshape(-1) > 0
        return contains

    return LinkDocuments(
        name=corpus.name,
        texts=texts,
        labels=np.array(list(map(str, corpus.classes)))[corpus.labels],
        units=corpus.units,
        tokenizer=tokenizer,
        containing=containing,
        max_copies=MAX_COPIES,
    )


def _marks(findings: Sequence[Finding], tokens: pl.DataFrame) -> list[Mark]:
    """The shortcuts as marks, most serious first."""
    marks: list[Mark] = []
    for finding in findings:
        if finding.kind != "shortcut" or not finding.tokens:
            continue
        if finding.label:
            marks.append(Mark(tuple(finding.tokens), finding.label))
        else:
            marks += marks_of_several_classes(finding.tokens, tokens)
    return marks
