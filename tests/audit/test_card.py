"""The model card: every number counted again by other means."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix, log_loss, precision_score, recall_score

from tokensieve.auditing.model_card import BINS, ModelCard, learning_curve
from tokensieve.model.attention import decide, probabilities
from tokensieve.model.fit import fit
from tokensieve.model.settings import TrainSettings
from tokensieve.text.counts import Counts


def made(classes: int, n: int = 300, seed: int = 0) -> tuple[Counts, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, n)
    matrix = rng.poisson(1.0, (n, 8)) * rng.integers(0, 2, (n, 1))
    matrix[np.arange(n), labels] += 1
    f = rng.normal(size=(n, classes)) + 1.5 * np.eye(classes)[labels]
    counts = Counts.from_matrix(matrix, labels, [f"c{k}" for k in range(classes)])
    return counts, f[:, 1] - f[:, 0] if classes == 2 else f


@pytest.mark.parametrize("classes", [2, 4])
def test_the_card_is_what_scikit_learn_counts(classes: int) -> None:
    test, f = made(classes)
    card = ModelCard.of(f, test, np.asarray([3, 1, 2, 2][:classes]))
    y, said, p = test.labels, decide(f), probabilities(f)
    assert (card.confusion == confusion_matrix(y, said)).all()
    np.testing.assert_allclose(
        [s.value for s in card.precision], precision_score(y, said, average=None)
    )
    np.testing.assert_allclose([s.value for s in card.recall], recall_score(y, said, average=None))
    assert card.log_loss == pytest.approx(log_loss(y, p))
    prior = np.asarray([3, 1, 2, 2][:classes]) / sum([3, 1, 2, 2][:classes])
    assert card.base_log_loss == pytest.approx(log_loss(y, np.tile(prior, (len(y), 1))))
    sure, error = p.max(axis=1), 0.0
    for row in card.calibration.iter_rows(named=True):
        inside = (sure >= row["low"]) & ((sure < row["high"]) | (row["high"] == 1))
        assert row["documents"] == inside.sum() and row["confidence"] == pytest.approx(
            sure[inside].mean()
        )
        assert row["accuracy"] == pytest.approx((y == said)[inside].mean())
        error += abs(sure[inside].mean() - (y == said)[inside].mean()) * inside.sum() / len(y)
    assert card.calibration_error == pytest.approx(error) and card.calibration.height <= BINS
    length = test.matrix.sum(axis=1)
    for row in card.lengths.iter_rows(named=True):
        inside = (length >= row["low"]) & (length <= row["high"])
        assert row["documents"] == inside.sum() and row["accuracy"] == pytest.approx(
            (y == said)[inside].mean()
        )
    assert card.lengths["documents"].sum() == card.calibration["documents"].sum() == len(y)
    assert card.curve.is_empty()


def test_no_test_documents() -> None:
    test, f = made(2)
    none = Counts(test.matrix[:0], test.labels[:0], test.classes, test.tokens)
    card: ModelCard = ModelCard.of(f[:0], none, np.asarray([1, 1]))
    assert np.isnan(card.log_loss) and card.calibration.is_empty() and card.confusion.sum() == 0


def test_the_curve_ends_at_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    train, test, settings = made(2)[0], made(2, seed=1)[0], TrainSettings()
    model = fit(train, settings)
    curve = learning_curve(train, test, model, settings)
    assert curve["documents"].to_list() == [38, 75, 150, 300]
    assert curve["accuracy"][-1] == np.mean(decide(model.logits(test.matrix)) == test.labels)
    monkeypatch.setattr("tokensieve.auditing.model_card.MAX_COUNTS_FOR_CURVE", 0)
    assert learning_curve(train, test, model, settings).is_empty()
