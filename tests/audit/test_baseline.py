"""The baseline against scikit-learn, which it does without."""

import logging

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression

from tokensieve.progress import Helper
from tokensieve.task.baseline import BaselineData, _correct


@pytest.mark.parametrize(("classes", "weighted"), [(2, False), (2, True), (3, False)])
def test_predicts_as_scikit_learn_does(classes: int, weighted: bool) -> None:
    rng = np.random.default_rng(classes)
    labels, truth = rng.integers(0, classes, 300), rng.integers(0, classes, 200)
    leaning = np.exp(rng.normal(0, 0.6, (classes, 50)))
    words = labels[:, None] >= 0, np.arange(200)[:, None] != 7  # the eighth test document has none
    train, test = (
        sp.csr_array(rng.poisson(leaning[y] / 4) * some.astype(float))
        for y, some in zip((labels, truth), words, strict=True)
    )
    weights = rng.uniform(0, 2, 300) if weighted else np.ones(300)
    tfidf = TfidfTransformer(sublinear_tf=True).fit(train)
    strengths, expected = (0.3, 1.0, 30.0), []
    for strength in strengths:
        model = LogisticRegression(C=strength, max_iter=1000)
        model.fit(tfidf.transform(train), labels + 5, sample_weight=weights)
        expected.append(float(np.mean(model.predict(tfidf.transform(test)) == truth + 5)))
    assert len(set(expected)) > 1  # strengths differ, so that equal accuracies mean something
    nothing = np.zeros(300, dtype=bool)
    data = BaselineData(train, test, labels + 5, weights, truth + 5, nothing, strengths, False)
    assert [correct.mean() for correct in _correct(data, strengths)] == expected


def test_prefers_as_scikit_learn_does() -> None:
    rng = np.random.default_rng(0)
    leaning = np.exp(rng.normal(0, 0.5, (2, 50)))
    train, test = (
        sp.csr_array(rng.poisson(leaning[np.arange(n) % 2] / 4).astype(float)) for n in (300, 200)
    )
    tfidf = TfidfTransformer(sublinear_tf=True).fit(train)
    x, y = (tfidf.transform(counts) for counts in (train, test))
    difference = x[::2] - x[1::2]
    model = LogisticRegression(C=1.0, max_iter=1000, fit_intercept=False)
    model.fit(sp.vstack([difference, -difference]), np.repeat([1, 0], 150))
    expected = float(np.mean(model.decision_function(y[::2] - y[1::2]) > 0))
    nothing = np.zeros(300, dtype=np.int64)
    data = BaselineData(train, test, nothing, np.ones(300), nothing, nothing > 0, [1.0], True)
    assert _correct(data, [1.0])[0].mean() == expected


def test_a_helper_started_early_answers_once_and_ends_with_us(
    caplog: pytest.LogCaptureFixture,
) -> None:
    # a quiet command that ran before in this process has raised the level
    caplog.set_level(logging.WARNING, logger="tokensieve")
    helper = Helper("report/pictures/child.py", "no pictures")
    helper.start()
    first = helper._waiting
    helper.start()
    assert first and helper._waiting is first and first.poll() is None
    assert helper.answer(lambda file: file.write(b"not JSON")) is None
    assert "no pictures: its process ended with status 1" in caplog.text and first.returncode == 1
    helper.start()
    second = helper._waiting
    helper._end()
    assert second and second is not first and second.returncode not in (None, 0)
