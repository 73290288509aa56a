"""The model of scores: scikit-learn's contract, exact sums, and what must not change it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.utils.estimator_checks import parametrize_with_checks

from tokensieve import AttentionClassifier, AttentionRegressor, InputError, load_model
from tokensieve.model.attention import gradient, loss_and_slope
from tokensieve.read.corpus import SCORE_SIDES
from tokensieve.text.counts import Counts, score_sides

FILLER = [f"word{i}" for i in range(30)]


def rated_texts(seed: int, n: int = 150) -> tuple[list[str], np.ndarray]:
    """Filler words and one that raises or lowers the score."""
    rng = np.random.default_rng(seed)
    effect = {"good": 1.0, "bad": -1.0, "plain": 0.0}
    texts = []
    scores = []
    for _ in range(n):
        mark = str(rng.choice(list(effect)))
        words = [*rng.choice(FILLER, 8).tolist(), mark]
        texts.append(" ".join(rng.permutation(words)))
        scores.append(3 + effect[mark] + rng.normal(0, 0.2))
    return texts, np.array(scores)


# as for scikit-learn's own SGDRegressor; `fit` says so, and tests below what weights do
DRAWN_IN_STEPS = {
    f"check_sample_weight_equivalence_on_{kind}_data": "a document is drawn for a step as often as "
    "it is there, whatever it weighs"
    for kind in ("dense", "sparse")
}


@parametrize_with_checks([AttentionRegressor()], expected_failed_checks=lambda _: DRAWN_IN_STEPS)
def test_scikit_learns_contract(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


@pytest.mark.slow
def test_it_fits_into_scikit_learns_tools() -> None:
    """Weights and groups are routed, columns keep their names, and parameters are searched."""
    texts, scores = rated_texts(2, 60)
    vectorizer = CountVectorizer()
    matrix = vectorizer.fit_transform(texts)
    names = vectorizer.get_feature_names_out()
    frame = pd.DataFrame(matrix.toarray(), columns=names)
    model = AttentionRegressor(max_epochs=1)
    assert model.fit(frame, scores).get_feature_names_out().tolist() == names.tolist()
    assert model.n_features_in_ == len(names)
    search = GridSearchCV(model, {"ngrams": [1, 2]}, cv=2).fit(texts, scores)
    assert hasattr(search.best_estimator_, "vocabulary_")
    weights = np.where(np.arange(60) % 2, 1.0, 0.5)
    groups = np.arange(60) % 6
    with sklearn.config_context(enable_metadata_routing=True):
        routed = model.set_fit_request(sample_weight=True, groups=True)
        found = cross_validate(
            routed.set_score_request(sample_weight=True),
            texts,
            scores,
            params={"sample_weight": weights, "groups": groups},
            cv=GroupKFold(3),
            return_estimator=True,
            return_indices=True,
        )
    for estimator, train in zip(found["estimator"], found["indices"]["train"], strict=True):
        by_hand = AttentionRegressor(max_epochs=1)
        by_hand.fit([texts[i] for i in train], scores[train], weights[train], groups[train])
        assert_array_equal(estimator.values_, by_hand.values_)


def test_the_slope_is_that_of_the_loss() -> None:
    rng = np.random.default_rng(0)
    matrix = rng.poisson(1.0, (12, 5))
    numbers = rng.normal(size=12)
    plain = Counts.from_matrix(matrix, score_sides(numbers), SCORE_SIDES)
    counts = Counts(plain.matrix, plain.labels, SCORE_SIDES, plain.tokens, None, numbers)
    u, w = rng.normal(size=5), rng.normal(size=5)
    found = gradient(counts, u, w)

    def loss(u: np.ndarray, w: np.ndarray) -> float:
        weights = matrix * np.exp(u)
        f = weights @ w / weights.sum(axis=1)
        return float(np.mean((f - numbers) ** 2) / 2)

    assert found.loss == pytest.approx(loss(u, w))
    step = 1e-6
    for i in range(5):
        e = step * np.eye(5)[i]
        assert found.a[i] == pytest.approx((loss(u + e, w) - loss(u - e, w)) / (2 * step), abs=1e-8)
        of_value = (loss(u, w + e) - loss(u, w - e)) / (2 * step)
        assert found.b[i, 0] == pytest.approx(of_value, abs=1e-8)
    losses, slopes = loss_and_slope(found.f, numbers)
    assert losses.mean() == pytest.approx(found.loss)
    assert_allclose(slopes[:, 0], found.f[:, 0] - numbers)


def test_predictions_are_exact_sums_and_follow_the_score() -> None:
    texts, scores = rated_texts(0)
    model = AttentionRegressor().fit(texts, scores)
    new_texts, new_scores = rated_texts(1)
    predicted = model.predict(new_texts)
    assert model.score(new_texts, new_scores) > 0.8
    explained = model.explain(new_texts)
    sums = [float(frame["contribution"].sum()) for frame in explained]
    assert_allclose(model.prior_[0] + np.array(sums), predicted, rtol=1e-12)
    marked = [
        frame["token"][0] in ("good", "bad")
        for frame, text in zip(explained, new_texts, strict=True)
        if "good" in text or "bad" in text
    ]
    assert np.mean(marked) > 0.9
    assert model.predict(["unknown"])[0] == pytest.approx(scores.mean(), rel=1e-12)


@pytest.mark.slow
def test_unit_and_sign_of_the_scores_change_nothing_else() -> None:
    texts, scores = rated_texts(2)
    predicted = AttentionRegressor().fit(texts, scores).predict(texts)
    scaled = AttentionRegressor().fit(texts, 20 * scores - 7).predict(texts)
    assert_allclose(scaled, 20 * predicted - 7, rtol=1e-4)


@pytest.mark.slow
def test_the_order_of_documents_and_equal_weights_change_nothing() -> None:
    texts, scores = rated_texts(3)
    order = np.random.default_rng(0).permutation(len(texts))
    model = AttentionRegressor().fit(texts, scores)
    shuffled = AttentionRegressor().fit([texts[i] for i in order], scores[order])
    weighted = AttentionRegressor().fit(texts, scores, sample_weight=np.full(len(texts), 3.0))
    assert_array_equal(np.sort(model.scores_), np.sort(shuffled.scores_))
    assert_array_equal(model.values_, weighted.values_)


@pytest.mark.slow
def test_a_document_of_weight_zero_has_no_effect() -> None:
    texts, scores = rated_texts(4)
    weights = np.ones(len(texts))
    weights[:10] = 0
    changed = scores.copy()
    changed[:10] = 1000.0
    model = AttentionRegressor().fit(texts, scores, sample_weight=weights)
    other = AttentionRegressor().fit(texts, changed, sample_weight=weights)
    assert_array_equal(model.predict(texts), other.predict(texts))


def test_constant_scores_are_predicted() -> None:
    texts, _ = rated_texts(5, 20)
    assert_allclose(AttentionRegressor().fit(texts, np.full(20, 4.0)).predict(texts), 4.0)


def test_a_saved_model_predicts_the_same(tmp_path: Path) -> None:
    texts, scores = rated_texts(6)
    model = AttentionRegressor(ngrams=2, min_documents=2).fit(texts, scores)
    model.save(tmp_path / "model")
    loaded = AttentionRegressor.load(tmp_path / "model")
    assert_array_equal(loaded.predict(texts), model.predict(texts))
    assert loaded.get_params()["ngrams"] == 2
    with pytest.raises(InputError, match="AttentionRegressor"):
        load_model(tmp_path / "model")
    AttentionClassifier().fit(texts, score_sides(scores)).save(tmp_path / "classes")
    with pytest.raises(InputError, match="load_model"):
        AttentionRegressor.load(tmp_path / "classes")


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_score_that_is_no_number_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="label 1 is"):
        AttentionRegressor().fit(["a b", "a c", "b c"], [1.0, bad, 2.0])
