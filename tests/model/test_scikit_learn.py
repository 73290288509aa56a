"""The classifier where scikit-learn's users meet it: pipelines, searches, routing of metadata."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.calibration import CalibratedClassifierCV
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.feature_selection import SelectKBest, chi2
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

from tokensieve.model.classifier import AttentionClassifier

TEXTS = ["good film", "fine plot", "good scene", "fine actor", "good", "fine"] * 5
TEXTS += ["bad film", "poor plot", "bad scene", "poor actor", "bad", "poor"] * 5
LABELS = np.repeat(["yes", "no"], 30)


def classifier(**parameters: object) -> AttentionClassifier:
    return AttentionClassifier(min_documents=1, max_epochs=1, **parameters)


def counts() -> pd.DataFrame:
    vectorizer = CountVectorizer()
    matrix = vectorizer.fit_transform(TEXTS)
    return pd.DataFrame(matrix.toarray(), columns=vectorizer.get_feature_names_out())


@pytest.fixture
def routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_log_probabilities_are_finite_where_probabilities_are_zero() -> None:
    model = classifier().fit(TEXTS, LABELS)
    plain = model.predict_proba(TEXTS[:3])
    np.testing.assert_allclose(model.predict_log_proba(TEXTS[:3]), np.log(plain))
    model.trained_.values[:] *= 1e4
    assert model.predict_proba(["good"]).min() == 0
    assert np.isfinite(model.predict_log_proba(["good"])).all()


@pytest.mark.slow
def test_the_middle_class_has_the_smallest_expected_error() -> None:
    stars = np.tile([1, 1, 2, 4, 5, 5], 10)
    model = classifier().fit(TEXTS, stars)
    middle = model.predict_median(TEXTS)
    distance = np.abs(model.classes_[:, None] - model.classes_)
    expected = model.predict_proba(TEXTS) @ distance
    chosen = np.searchsorted(model.classes_, middle)
    rows = np.arange(len(TEXTS))
    np.testing.assert_allclose(expected[rows, chosen], expected.min(axis=1), rtol=1e-12)
    np.testing.assert_array_equal(model.predict_median(TEXTS, exact=1e6), model.predict(TEXTS))
    with pytest.raises(ValueError, match="numbers"):
        classifier().fit(TEXTS, LABELS).predict_median(TEXTS)


def test_features_of_texts_are_tokens_and_have_no_number_of_columns() -> None:
    model = classifier(ngrams=2).fit(TEXTS, LABELS)
    names = model.get_feature_names_out()
    assert "good film" in names and len(names) == len(model.scores_)
    assert not hasattr(model, "n_features_in_") and not hasattr(model, "feature_names_in_")


@pytest.mark.slow
def test_features_of_counts_are_their_columns() -> None:
    X = counts()
    model = classifier().fit(X, LABELS)
    assert model.n_features_in_ == X.shape[1]
    assert model.get_feature_names_out().tolist() == X.columns.tolist()
    with pytest.raises(ValueError, match="feature_names_in_"):
        model.get_feature_names_out([*X.columns[1:], "other"])
    without_names = classifier().fit(X.to_numpy(), LABELS)
    assert without_names.get_feature_names_out()[0] == "x0"
    assert without_names.get_feature_names_out(X.columns).tolist() == X.columns.tolist()


@pytest.mark.slow
def test_texts_after_counts_leave_nothing_of_the_columns() -> None:
    model = classifier().fit(counts(), LABELS).fit(TEXTS, LABELS)
    assert not hasattr(model, "n_features_in_") and not hasattr(model, "feature_names_in_")
    assert not hasattr(model.fit(TEXTS, LABELS), "feature_names_in_")
    assert model.fit(counts(), LABELS).n_features_in_ == counts().shape[1]


def test_a_pipeline_with_a_vectorizer() -> None:
    pipeline = make_pipeline(CountVectorizer(), classifier()).fit(TEXTS, LABELS)
    assert pipeline.score(TEXTS, LABELS) == 1


def test_names_reach_the_classifier_through_a_pipeline_whose_output_is_a_frame() -> None:
    pipeline = make_pipeline(SelectKBest(chi2, k=3), classifier()).set_output(transform="pandas")
    model = pipeline.fit(counts(), LABELS)[-1]
    assert set(model.tokens_) <= set(counts().columns) and len(model.tokens_) == 3


@pytest.mark.slow
def test_weights_and_groups_are_routed_to_where_they_are_asked_for(routing: None) -> None:
    weights = np.where(np.arange(60) % 2, 1.0, 0.0)
    groups = np.arange(60) % 6
    model = classifier().set_fit_request(sample_weight=True, groups=True)
    model = model.set_score_request(sample_weight=True)
    found = cross_validate(
        model,
        TEXTS,
        LABELS,
        params={"sample_weight": weights, "groups": groups},
        cv=GroupKFold(3),
        return_estimator=True,
        return_indices=True,
    )
    for estimator, train in zip(found["estimator"], found["indices"]["train"], strict=True):
        texts = [TEXTS[i] for i in train]
        by_hand = classifier().fit(texts, LABELS[train], weights[train], groups[train])
        np.testing.assert_array_equal(estimator.values_, by_hand.values_)


def test_a_request_that_nobody_made_is_an_error(routing: None) -> None:
    with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError):
        cross_validate(classifier(), TEXTS, LABELS, params={"sample_weight": np.ones(60)})


@pytest.mark.slow
def test_parameters_are_searched_and_probabilities_calibrated() -> None:
    search = GridSearchCV(
        classifier(), {"ngrams": [1, 2], "class_weight": [None, "balanced"]}, cv=2
    )
    assert search.fit(TEXTS, LABELS).best_score_ == 1
    calibrated = CalibratedClassifierCV(classifier(), cv=2).fit(counts(), LABELS)
    assert calibrated.predict_proba(counts()).shape == (60, 2)
    one_against_rest = OneVsRestClassifier(classifier()).fit(counts(), LABELS)
    assert one_against_rest.score(counts(), LABELS) == 1
