"""The baseline against scikit-learn, which it does without."""

import logging
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.special
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression

from tokensieve import arrays
from tokensieve.arrays import Bools, Floats, Ints
from tokensieve.progress import Helper
from tokensieve.task import baseline, lbfgs
from tokensieve.task.baseline import BaselineData


def correct_with(data: BaselineData, strengths: tuple[float, ...]) -> list[Floats]:
    """What all training documents say of the test documents, with each strength."""
    everything = np.arange(data.train.shape[0])
    test = baseline._Documents(data.test, np.arange(data.test.shape[0]), data.truth)
    return baseline._correct(data, everything, test, strengths)


def data_of(
    train: sp.csr_array, test: sp.csr_array, labels: Ints, truth: Ints, held_out: Bools
) -> BaselineData:
    return BaselineData(
        train=train,
        test=test,
        n_words=train.shape[1],
        labels=labels,
        weights=np.ones(len(labels)),
        truth=truth,
        is_held_out=held_out,
        strengths=(0.3, 1.0, 30.0),
        are_pairs=False,
    )


def random_data() -> BaselineData:
    """Counts of 50 types in 300 and 200 documents of three classes, a tenth of them held out."""
    rng = np.random.default_rng(1)
    labels, truth = rng.integers(0, 3, 300), rng.integers(0, 3, 200)
    leaning = np.exp(rng.normal(0, 0.6, (3, 50)))
    train, test = (sp.csr_array(rng.poisson(leaning[y] / 4).astype(float)) for y in (labels, truth))
    return data_of(train, test, labels, truth, np.arange(300) % 10 == 0)


@pytest.mark.parametrize(("classes", "weighted"), [(2, False), (2, True), (3, False)])
def test_predicts_as_scikit_learn_does(
    classes: int, weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lbfgs, "MAX_SLOPE", 1e-8)  # both so close to the minimum that none differs
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
        model = LogisticRegression(C=strength, max_iter=1000, tol=1e-8)
        model.fit(tfidf.transform(train), labels + 5, sample_weight=weights)
        expected.append(float(np.mean(model.predict(tfidf.transform(test)) == truth + 5)))
    assert len(set(expected)) > 1  # strengths differ, so that equal accuracies mean something
    nothing = np.zeros(300, dtype=bool)
    data = replace(data_of(train, test, labels + 5, truth + 5, nothing), weights=weights)
    assert [correct.mean() for correct in correct_with(data, strengths)] == expected


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
    data = replace(data_of(train, test, nothing, nothing, nothing > 0), are_pairs=True)
    assert correct_with(data, (1.0,))[0].mean() == expected


def test_blocks_of_any_size_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_data()
    pairs = replace(data, are_pairs=True, is_held_out=np.arange(300) % 10 < 2)
    expected = [baseline.baseline_correct(data), baseline.baseline_correct(pairs)]
    rows = np.flatnonzero(~data.is_held_out)
    idf = baseline.inverse_frequency(data.train)[:40]
    whole = baseline.features(data.train, rows, idf, has_intercept=True)
    assert whole.shape == (270, 41)
    assert (whole[:, [40]].toarray() == 1).all()

    small_blocks = partial(arrays.row_blocks, entries=100)
    monkeypatch.setattr(baseline, "row_blocks", small_blocks)
    assert np.array_equal(baseline.baseline_correct(data), expected[0])
    assert np.array_equal(baseline.baseline_correct(pairs), expected[1])
    in_blocks = baseline.features(data.train, rows, idf, has_intercept=True)
    for name in ("data", "indices", "indptr"):
        assert np.array_equal(getattr(in_blocks, name), getattr(whole, name))


def test_formatting_is_not_read() -> None:
    data = random_data()
    more = np.random.default_rng(2).random((300, 2)) < 0.5
    with_forms = sp.csr_array(sp.hstack([data.train, sp.csr_array(more.astype(float))]))
    same_words = replace(
        data, train=with_forms, test=sp.csr_array(sp.hstack([data.test, np.ones((200, 2))]))
    )
    assert np.array_equal(baseline.baseline_correct(same_words), baseline.baseline_correct(data))


@pytest.mark.slow
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


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("has_intercept", [True, False])
def test_the_loss_has_the_gradient_of_its_values(n_classes: int, has_intercept: bool) -> None:
    rng = np.random.default_rng(n_classes)
    x = sp.csr_array(rng.poisson(0.5, (40, 6)).astype(float))
    if has_intercept:
        x = sp.csr_array(sp.hstack([x, np.ones((40, 1))]))
    labels = np.arange(40) % n_classes
    weights = rng.uniform(0, 2, 40)
    regression = baseline.LogisticRegression(x, labels, weights, has_intercept)
    point = rng.normal(size=x.shape[1] * regression.n_outputs)
    value, gradient = regression._loss(point, 0.1)

    coefficients = point.reshape(-1, regression.n_outputs)
    scores = x @ coefficients
    if n_classes == 2:
        scores = np.hstack([np.zeros_like(scores), scores])
    log_p = scipy.special.log_softmax(scores, axis=1)[np.arange(40), labels]
    penalised = coefficients[: x.shape[1] - has_intercept]
    expected = 0.05 * (penalised**2).sum() - (weights * log_p).sum() / weights.sum()
    assert value == pytest.approx(expected, rel=1e-12)
    for direction in np.eye(len(point)):
        above, _ = regression._loss(point + 1e-5 * direction, 0.1)
        below, _ = regression._loss(point - 1e-5 * direction, 0.1)
        assert gradient @ direction == pytest.approx((above - below) / 2e-5, abs=1e-8)
