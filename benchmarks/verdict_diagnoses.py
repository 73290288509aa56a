"""Diagnoses of a classifier of words: has it learned to predict the label, or has it not?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

from tokensieve.arrays import Floats
from tokensieve.diagnose import DiagnoseSettings, Diagnosis, diagnose
from verdict_data import Documents, Outcome, Verdict, generated, shuffled

N_TRAIN = 600
N_TEST = 200


@dataclass(frozen=True, eq=False)
class WordsClassifier:
    """A classifier of texts by their words, as a function of texts."""

    pipeline: Pipeline

    def __call__(self, texts: list[str]) -> Floats:
        scores = np.asarray(self.pipeline.decision_function(texts), dtype=np.float64)
        return np.stack([-scores / 2, scores / 2], axis=1)

    @classmethod
    def fitted(cls, documents: Documents) -> WordsClassifier:
        """Logistic regression on word counts."""
        pipeline = make_pipeline(CountVectorizer(), LogisticRegression(max_iter=1000))
        pipeline.fit(documents.texts, [label == "good" for label in documents.labels])
        return cls(pipeline)


def learned_although_random(documents: Documents, seed: int) -> Outcome:
    """The model was trained on shuffled labels: it has learned nothing about them."""
    found = _diagnosed(shuffled(generated(seed, N_TRAIN), seed), seed)
    return Outcome(1, int(found.learned is True))


def not_learned_although_it_has(documents: Documents, seed: int) -> Outcome:
    """The model was trained on the labels of 600 reviews."""
    found = _diagnosed(generated(seed, N_TRAIN), seed)
    return Outcome(1, int(found.learned is False))


def _diagnosed(training: Documents, seed: int) -> Diagnosis:
    """Diagnoses a classifier of words on reviews that it has not seen."""
    test = generated(300_000 + seed, N_TEST)
    settings = DiagnoseSettings(min_documents=5, max_documents=100, seed=seed, untrained=False)
    classes = ["bad", "good"]
    model = WordsClassifier.fitted(training)
    return diagnose(model, None, test.texts, test.labels, settings, classes=classes)


VERDICTS = (
    Verdict(
        "A diagnosis: the model has learned to predict the label",
        "a model of words was trained on shuffled labels",
        "diagnosis",
        learned_although_random,
        on_real_sets=False,
        n_generated=100,
    ),
    Verdict(
        "A diagnosis: there is no evidence that this model has learned",
        "a model of words was trained on the labels of 600 reviews",
        "diagnosis",
        not_learned_although_it_has,
        on_real_sets=False,
        n_generated=76,
    ),
)
