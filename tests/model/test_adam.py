"""Minibatch Adam on the two-numbers-per-type table: against PyTorch's Adam, a plain loop, and
itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokensieve.model.adam import BETA1, BETA2, EPSILON, Schedule, train
from tokensieve.model.attention import gradient, logits, loss_and_slope, with_sink
from tokensieve.model.fit import fit
from tokensieve.text.counts import Counts

HEADS = [1, 3]


def problem(
    seed: int, heads: int, n: int = 40, types: int = 10
) -> tuple[Counts, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    classes = max(heads, 2)
    labels = np.arange(n) % classes
    matrix = rng.poisson(0.5 + (np.arange(types) % classes == labels[:, None]), size=(n, types))
    matrix[3] = 0
    counts = Counts.from_matrix(matrix, labels, [str(k) for k in range(classes)])
    return counts, rng.normal(scale=0.5, size=types), rng.normal(scale=0.5, size=(types, heads))


def last(
    counts: Counts, u: np.ndarray, w: np.ndarray, schedule: Schedule, pause: int = 10**6
) -> tuple[np.ndarray, np.ndarray]:
    found = [
        (scores.copy(), values.copy()) for _, scores, values in train(counts, u, w, schedule, pause)
    ]
    return found[-1]


@pytest.mark.slow
@pytest.mark.parametrize("heads", HEADS)
def test_whole_data_batches_are_torch_adam_on_the_exact_gradient(heads: int) -> None:
    torch = pytest.importorskip("torch")
    counts, u0, w0 = problem(1, heads)
    steps = 12
    u, w = torch.tensor(u0, requires_grad=True), torch.tensor(w0, requires_grad=True)
    optimizer = torch.optim.Adam([{"params": [u], "lr": 0.03}, {"params": [w], "lr": 0.2}])
    rates = [group["lr"] for group in optimizer.param_groups]
    for t in range(steps):
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate * (1 - t / steps)
        exact = gradient(counts, u.detach().numpy(), w.detach().numpy())
        u.grad, w.grad = torch.tensor(exact.a), torch.tensor(exact.b)
        optimizer.step()
    scores, values = last(counts, u0, w0, Schedule(steps, 10**6, 0.03, 0.2))
    np.testing.assert_allclose(scores, u.detach().numpy(), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(values, w.detach().numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("heads", HEADS)
@pytest.mark.parametrize("batch", [1, 7])
def test_small_batches_are_a_plain_loop_in_which_untouched_types_rest(
    heads: int, batch: int
) -> None:
    counts, u, w = problem(2, heads)
    schedule = Schedule(25, batch, 0.05, 0.1, seed=4)
    scores, values = last(counts, u, w, schedule)
    rng, n = np.random.default_rng(4), counts.n_documents
    order = np.concatenate([rng.permutation(n) for _ in range(-(-25 * batch // n))])
    mean_u, square_u, mean_w, square_w = (
        np.zeros_like(u),
        np.zeros_like(u),
        np.zeros_like(w),
        np.zeros_like(w),
    )
    for t in range(25):
        part = counts.rows(order[t * batch : (t + 1) * batch])
        exact, seen = gradient(part, u, w), np.unique(part.matrix.indices)
        for x, mean, square, g, rate in (
            (u, mean_u, square_u, exact.a, 0.05),
            (w, mean_w, square_w, exact.b, 0.1),
        ):
            mean[seen] = BETA1 * mean[seen] + (1 - BETA1) * g[seen]
            square[seen] = BETA2 * square[seen] + (1 - BETA2) * g[seen] ** 2
            step = (
                mean / (1 - BETA1 ** (t + 1)) / (np.sqrt(square / (1 - BETA2 ** (t + 1))) + EPSILON)
            )
            x[seen] -= rate * (1 - t / 25) * step[seen]
    np.testing.assert_allclose(scores, u, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(values, w, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("heads", HEADS)
def test_the_sink_is_a_type_of_every_document_whose_value_stays(heads: int) -> None:
    counts, u, w = problem(6, heads)
    counts = counts.rows(np.diff(counts.matrix.indptr) > 0)
    full = replace(counts, matrix=with_sink(counts.matrix), tokens=np.append(counts.tokens, "sink"))
    u, w = np.append(u, 0.7), np.vstack([w, np.full(heads, 0.2)])
    exact, (scores, values) = (
        gradient(full, u, w),
        last(counts, u, w, Schedule(1, 10**6, 0.03, 0.2)),
    )
    np.testing.assert_allclose(scores, u - 0.03 * exact.a / (abs(exact.a) + EPSILON), rtol=1e-9)
    moved = w - 0.2 * exact.b / (abs(exact.b) + EPSILON)
    np.testing.assert_allclose(values[:-1], moved[:-1], rtol=1e-9)
    np.testing.assert_array_equal(values[-1], w[-1])
    before, after = (
        gradient(full, *table).loss for table in ((u, w), last(counts, u, w, Schedule(300, 8)))
    )
    assert after < before


@settings(deadline=None, derandomize=True, max_examples=20)
@given(
    st.integers(0, 10**6),
    st.sampled_from(HEADS),
    st.integers(1, 60),
    st.integers(1, 40),
    st.integers(1, 50),
)
def test_pauses_change_no_bit_and_every_pause_is_reported(
    seed: int, heads: int, steps: int, batch: int, pause: int
) -> None:
    counts, u, w = problem(seed, heads)
    kept = u.copy(), w.copy()
    schedule = Schedule(steps, batch, seed=seed)
    whole, cut = last(counts, u, w, schedule), last(counts, u, w, schedule, pause)
    assert [x.tobytes() for x in whole] == [x.tobytes() for x in cut]
    reported = [done for done, _, _ in train(counts, u, w, schedule, pause)]
    assert reported == [*range(pause, steps, pause), steps]
    np.testing.assert_array_equal(kept[0], u)
    np.testing.assert_array_equal(kept[1], w)


def test_the_same_seed_gives_the_same_bits_and_another_seed_another_order() -> None:
    counts, u, w = problem(3, 1)
    runs = [last(counts, u, w, Schedule(60, 8, seed=seed))[0].tobytes() for seed in (0, 0, 1)]
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.parametrize("heads", HEADS)
def test_the_loss_falls(heads: int) -> None:
    counts, u, w = problem(5, heads)
    trail = []
    for _, scores, values in train(counts, u, w, Schedule(200, 8, 0.02, 0.1), 50):
        trail.append(
            float(np.mean(loss_and_slope(logits(counts.matrix, scores, values), counts.labels)[0]))
        )
    start = gradient(counts, u, w).loss
    assert trail[-1] < 0.5 * start
    assert trail[-1] < trail[0]


def test_empty_documents_pass_and_huge_values_stay_finite() -> None:
    nothing = Counts.from_matrix(np.zeros((5, 3)), [0, 1, 0, 1, 1])
    scores, values = last(nothing, np.ones(3), np.ones((3, 1)), Schedule(10, 2))
    np.testing.assert_array_equal(scores, 1.0)
    np.testing.assert_array_equal(values, 1.0)
    counts, u, w = problem(6, 3)
    scores, values = last(counts, 1e3 * u, 1e3 * w, Schedule(20, 4))
    assert np.isfinite(scores).all()
    assert np.isfinite(values).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    "n", [60, 2_400]
)  # cross-validation in five parts; one part, and the training on all beside it
def test_trainings_side_by_side_have_the_bits_that_they_have_alone(
    monkeypatch: pytest.MonkeyPatch, n: int
) -> None:
    counts, _, _ = problem(5, 1, n)
    tables = []
    for cores in (1, 2, 4):
        monkeypatch.setattr("tokensieve.model.choice.n_threads", lambda cores=cores: cores)
        model = fit(counts)
        tables.append((model.steps, model.scores.tobytes(), model.values.tobytes()))
    assert tables[0] == tables[1] == tables[2]
