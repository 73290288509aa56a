"""Measures of predicted scores, and the ridge baseline, against SciPy and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.stats import spearmanr
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.linear_model import Ridge as SklearnRidge
from sklearn.metrics import mean_absolute_error, r2_score

from tokensieve.task import ordinal
from tokensieve.task.ridge import Ridge, RidgeData, ridge_predictions
from tokensieve.task.score_measures import ScoreMeasures, mae_difference, spearman


def predictions(seed: int, n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    scores = rng.integers(1, 6, n).astype(float)
    return scores + rng.normal(0, 1, n), scores


def test_measures_are_those_of_others() -> None:
    predicted, scores = predictions(0)
    found = ScoreMeasures.of(predicted, scores, seed=0)
    assert found.r2.value == pytest.approx(r2_score(scores, predicted))
    assert found.mae.value == pytest.approx(mean_absolute_error(scores, predicted))
    assert found.spearman.value == pytest.approx(spearmanr(predicted, scores).statistic)
    for measure in (found.r2, found.mae, found.spearman):
        assert measure.low < measure.value < measure.high


@pytest.mark.slow
def test_intervals_contain_the_truth() -> None:
    """The mean absolute error of normal noise of size 1 is √(2/π)."""
    truth = np.sqrt(2 / np.pi)
    found = [ScoreMeasures.of(*predictions(seed, 100), seed=seed).mae for seed in range(60)]
    inside = np.mean([measure.low <= truth <= measure.high for measure in found])
    assert inside >= 0.85


def test_copies_in_groups_widen_nothing() -> None:
    predicted, scores = predictions(1, 100)
    once = ScoreMeasures.of(predicted, scores, seed=0)
    units = np.repeat(np.arange(100), 3)
    copied = ScoreMeasures.of(np.repeat(predicted, 3), np.repeat(scores, 3), 0, units)
    assert_allclose(list(copied.mae.to_dict().values()), list(once.mae.to_dict().values()))
    assert_allclose(copied.spearman.low, once.spearman.low)


def test_a_difference_is_paired() -> None:
    predicted, scores = predictions(2)
    same = mae_difference(predicted, predicted, scores, seed=0)
    assert (same.value, same.low, same.high) == (0, 0, 0)
    better = mae_difference(predicted, predicted + 3, scores, seed=0)
    assert better.high < 0


def test_constant_predictions_have_no_rank_correlation() -> None:
    _, scores = predictions(3)
    assert spearman(np.full(len(scores), 2.0), scores) == 0


@pytest.mark.parametrize("alpha", [0.1, 3.0])
def test_ridge_is_that_of_scikit_learn(alpha: float) -> None:
    rng = np.random.default_rng(0)
    x = sp.csr_array(rng.poisson(0.3, (80, 30)).astype(float))
    scores = rng.normal(3, 1, 80)
    weights = rng.uniform(0.5, 2, 80)
    ours = Ridge.fit(x, scores, weights, alpha)
    theirs = SklearnRidge(alpha=alpha).fit(x.toarray(), scores, sample_weight=weights)
    assert_allclose(ours.predict(x), theirs.predict(x.toarray()), rtol=1e-5)


def test_the_baseline_is_tf_idf_and_ridge() -> None:
    rng = np.random.default_rng(1)
    counts = sp.csr_array(rng.poisson(0.5, (120, 20)).astype(float))
    scores = counts.toarray()[:, 0] + rng.normal(0, 0.1, 120)
    train, test = counts[:100], counts[100:]
    held_out = np.arange(100) < 10
    data = RidgeData(train, test, scores[:100], np.ones(100), held_out)
    tf_idf = TfidfTransformer(sublinear_tf=True).fit(train)
    model = SklearnRidge(alpha=1.0).fit(tf_idf.transform(train).toarray(), scores[:100])
    expected = model.predict(tf_idf.transform(test).toarray())
    assert_allclose(ridge_predictions(data, alphas=[1.0]), expected, rtol=1e-5)


def test_the_ordinal_baseline_is_a_logistic_regression_for_each_threshold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ordinal, "_best_strength", lambda data, is_above: 10.0)
    rng = np.random.default_rng(3)
    counts = rng.poisson(0.4, (400, 30)).astype(float)
    hidden = counts[:, :4] @ [1.0, 1.0, -1.0, -1.0] + rng.normal(0, 0.5, 400)
    scores = np.clip(np.rint(hidden), -1, 2)
    train, test = sp.csr_array(counts[:300]), sp.csr_array(counts[300:])
    data = RidgeData(train, test, scores[:300], np.ones(300), np.arange(300) < 30)
    predicted = ordinal.ordinal_predictions(data)
    assert predicted is not None
    weighting = TfidfTransformer(sublinear_tf=True).fit(train)
    x, new = weighting.transform(train), weighting.transform(test)
    n_below = np.zeros(100, dtype=int)
    for threshold in (-1, 0, 1):
        model = LogisticRegression(C=10.0, max_iter=1000).fit(x, scores[:300] > threshold)
        n_below += model.predict(new)
    assert (predicted == np.array([-1, 0, 1, 2])[n_below]).mean() >= 0.99
    assert np.abs(predicted - scores[300:]).mean() < np.abs(scores[300:]).mean()
    many = RidgeData(train, test, hidden[:300], np.ones(300), np.arange(300) < 30)
    assert ordinal.ordinal_predictions(many) is None
