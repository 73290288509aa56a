"""The pairwise loss: gradients against finite differences and PyTorch, exact sums, swaps, and what
training finds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calls import later
from tokensieve.arrays import Floats, Ints
from tokensieve.auditing.demo import demo_pairs
from tokensieve.errors import InputError
from tokensieve.model.adam import Schedule, train
from tokensieve.model.attention import gradient, logits
from tokensieve.model.explanation import compare
from tokensieve.model.fit import fit
from tokensieve.model.settings import TrainSettings
from tokensieve.model.storage import model_files, read_model
from tokensieve.read.pairs import read_pairs
from tokensieve.task.tasks import Preferences, train_corpus
from tokensieve.text.counts import Counts

torch = later("torch")


def random_pairs(n: int, types: int, seed: int) -> tuple[Counts, Floats, Floats]:
    rng = np.random.default_rng(seed)
    matrix = rng.poisson(0.7, (2 * n, types)) * 1.0
    counts = Counts.from_matrix(matrix, np.tile([1, 0], n), ("rejected", "chosen"))
    return counts, rng.normal(size=types), rng.normal(size=(types, 1))


def loss_of(counts: Counts, u: Floats, w: Floats) -> float:
    """The definition: the mean of log(1 + e^(f_B − f_A))."""
    f = logits(counts.matrix, u, w)[:, 0]
    return float(np.mean([np.log1p(np.exp(f[i + 1] - f[i])) for i in range(0, len(f), 2)]))


@pytest.mark.parametrize("seed", range(3))
def test_the_gradient_is_that_of_finite_differences(seed: int) -> None:
    counts, u, w = random_pairs(7, 5, seed)
    found, h = gradient(counts, u, w, pairs=True), 1e-6
    assert found.loss == pytest.approx(loss_of(counts, u, w), rel=1e-12)
    for s in range(5):
        step = np.eye(5)[s] * h
        assert found.a[s] == pytest.approx(
            (loss_of(counts, u + step, w) - loss_of(counts, u - step, w)) / (2 * h), abs=1e-8
        )
        wide = step[:, None]
        assert found.b[s, 0] == pytest.approx(
            (loss_of(counts, u, w + wide) - loss_of(counts, u, w - wide)) / (2 * h), abs=1e-8
        )


def test_the_gradient_is_pytorchs() -> None:
    counts, u, w = random_pairs(20, 12, 5)
    c = torch.tensor(counts.matrix.toarray())
    tu, tw = (torch.tensor(x, requires_grad=True) for x in (u, w[:, 0]))
    weights = c * torch.exp(tu)
    total = weights.sum(1)
    f = torch.where(total > 0, (weights @ tw) / torch.where(total > 0, total, 1.0), 0.0)
    loss = torch.nn.functional.softplus(f[1::2] - f[::2]).mean()
    loss.backward()  # type: ignore[no-untyped-call]
    found = gradient(counts, u, w, pairs=True)
    assert found.loss == pytest.approx(loss.item(), rel=1e-12)
    assert np.allclose(found.a, np.asarray(tu.grad), atol=1e-14)
    assert np.allclose(found.b[:, 0], np.asarray(tw.grad), atol=1e-14)


@pytest.mark.parametrize("sink", [False, True])
def test_a_step_of_training_follows_the_gradient(sink: bool) -> None:
    """One full batch: Adam's first step is rate · sign of the gradient, which is known exactly."""
    counts, u, w = random_pairs(12, 6, 9)
    whole = counts
    if sink:
        extended = np.hstack([counts.matrix.toarray(), np.ones((24, 1))])
        whole = Counts.from_matrix(extended, counts.labels, counts.classes)
        u, w = np.append(u, 0.3), np.vstack([w, [[0.0]]])
    exact = gradient(whole, u, w, pairs=True)
    _, after, values = next(train(counts, u, w, Schedule(1, 12, 0.01, 0.1, 0, pairs=True), 1))
    assert np.allclose(u - after, 0.01 * np.sign(exact.a), atol=1e-5)
    assert np.allclose((w - values)[:6], 0.1 * np.sign(exact.b)[:6], atol=1e-5)
    if sink:
        assert values[6, 0] == 0.0


@given(st.integers(0, 1000))
@settings(deadline=None)
def test_swapping_the_sides_turns_the_margin_and_moving_all_values_does_nothing(seed: int) -> None:
    counts, u, w = random_pairs(6, 4, seed)
    u, w = np.append(u, 0.5), np.vstack([w, [[0.0]]])
    swapped = counts.matrix[np.arange(12).reshape(-1, 2)[:, ::-1].ravel()]
    here, there, moved = (
        logits(*of)[:, 0]
        for of in ((counts.matrix, u, w), (swapped, u, w), (counts.matrix, u, w + 3.0))
    )
    m = here[::2] - here[1::2]
    assert np.allclose(there[::2] - there[1::2], -m, atol=1e-12)
    assert np.allclose(moved[::2] - moved[1::2], m, atol=1e-9)
    right = [Preferences().correct(side.repeat(2)[:, None], counts).mean() for side in (m, -m)]
    assert sum(right) == pytest.approx(1.0)


def planted(n: int = 200, seed: int = 0) -> tuple[Counts, Ints]:
    rng = np.random.default_rng(seed)
    matrix = rng.poisson(0.5, (2 * n, 8)) * 1.0
    matrix[::2, 0] += rng.random(n) < 0.8
    return Counts.from_matrix(matrix, np.tile([1, 0], n), ("rejected", "chosen")), np.arange(n) // 4


def test_training_finds_the_planted_type_and_gives_the_same_bits() -> None:
    counts, units = planted()
    models = [fit(counts, TrainSettings(seed=1), units=units, pairs=True) for _ in range(2)]
    assert models[0].pairs
    assert np.array_equal(models[0].values, models[1].values)
    assert models[0].values[:, 0].argmax() == 0
    other, _ = planted(seed=1)
    assert np.mean(models[0].margins(other.matrix) > 0) > 0.75


def test_without_a_signal_probabilities_are_nearly_even() -> None:
    rng = np.random.default_rng(0)
    counts = Counts.from_matrix(
        rng.poisson(0.7, (600, 30)) * 1.0, np.tile([1, 0], 300), ("rejected", "chosen")
    )
    model = fit(counts, units=np.arange(300), pairs=True)
    m = model.margins(
        Counts.from_matrix(rng.poisson(0.7, (600, 30)) * 1.0, np.tile([1, 0], 300)).matrix
    )
    assert float(np.logaddexp(0, -m).mean()) < np.log(2) + 0.02


@pytest.mark.parametrize("n", [1, 2, 6])
def test_a_handful_of_pairs_is_learned_without_choosing(n: int) -> None:
    counts, u, _ = random_pairs(n, 4, 3)
    model = fit(counts, units=np.arange(n), pairs=True)
    assert model.scores.shape == u.shape
    assert len(model.validation) == 0


@pytest.mark.slow
def test_a_model_of_pairs_is_saved_as_one_and_compares_two_texts(tmp_path: object) -> None:
    from pathlib import Path

    learned = train_corpus(
        read_pairs(demo_pairs(300), pairs=("chosen", "rejected")), TrainSettings()
    )
    folder = Path(str(tmp_path))
    for name, content in model_files(learned.model).items():
        (folder / name).write_bytes(content)
    model = read_model(folder)
    assert model.pairs
    assert b"preference model" in (folder / "table.json").read_bytes()
    first, second = "The plot was red. It is a tapestry.", "The plot was red."
    found = compare(model, first, second)
    f = model.logits(model.count([first, second])[0])[:, 0]
    assert found.logit == f[0] - f[1]
    for side, answer in ((found.first, f[0]), (found.second, f[1])):
        assert side.table["contribution"].sum() == pytest.approx(answer, abs=1e-12)
    assert found.probability > 0.5
    import polars as pl

    rows = model.pair_predictions(
        pl.Series([first, second, ""]), pl.Series([second, first, "x"]), ("a", "b")
    )
    assert rows["preferred"].to_list() == ["a", "b", None]
    assert rows["probability"][0] == pytest.approx(1 - rows["probability"][1])
    assert rows["answer"][0] == found.logit


def test_a_model_of_labels_compares_nothing() -> None:
    from tokensieve.model.classifier import AttentionClassifier

    model = AttentionClassifier().fit(["good film", "bad film"] * 20, ["a", "b"] * 20).trained_
    with pytest.raises(InputError, match="train one with --pairs"):
        compare(model, "good", "bad")
