"""One gradient step: against automatic differentiation, its exact remainder, its bound, and its decay in d."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calls import later
from tokensieve.errors import InputError
from tokensieve.model.attention import loss_and_slope
from tokensieve.text.counts import Counts
from tokensieve.theory.embeddings import Start, initialise
from tokensieve.theory.one_step import one_step

torch = later("torch")


def random_counts(
    seed: int, n: int = 30, types: int = 12, classes: int = 2, empty: int = 0
) -> Counts:
    rng = np.random.default_rng(seed)
    matrix = rng.poisson(0.8, size=(n, types))
    matrix[np.arange(n), rng.integers(types, size=n)] += 1
    matrix[:empty] = 0
    names = [str(k) for k in range(classes)]
    return Counts.from_matrix(matrix, rng.integers(classes, size=n), names)


def torch_step(counts: Counts, start: Start, eta: float) -> np.ndarray:
    """E¹ by automatic differentiation over explicit token sequences."""
    E = torch.tensor(start.E, requires_grad=True)
    p, v = torch.tensor(start.p), torch.tensor(start.v)
    dense = counts.matrix.toarray().astype(int)
    losses = []
    for row, label in zip(dense, counts.labels, strict=True):
        tokens = E[np.repeat(np.arange(row.size), row)]
        f = torch.softmax(tokens @ p, 0) @ tokens @ v
        if v.ndim == 1:
            losses.append(torch.nn.functional.softplus(-(2 * int(label) - 1) * f))
        else:
            losses.append(torch.nn.functional.cross_entropy(f[None], torch.tensor([int(label)])))
    torch.stack(losses).mean().backward()
    assert E.grad is not None
    return (E - eta * E.grad).detach().numpy()


@pytest.mark.parametrize(("classes", "heads"), [(2, 1), (2, 2), (4, 4)])
def test_embeddings_are_the_autograd_step_and_split_into_prediction_and_remainder(
    classes: int, heads: int
) -> None:
    counts = random_counts(1, classes=classes, empty=2)
    start = initialise(counts.n_types, 6, heads, seed=2)
    step = one_step(counts, *start, eta=3.0)
    expected = torch_step(counts, start, 3.0)
    np.testing.assert_allclose(step.embeddings(), expected, rtol=0, atol=1e-13)
    V = start.v.reshape(6, -1)
    predicted = step.expected_slope * step.alpha.reshape(-1, V.shape[1]) @ V.T
    remainder = expected - start.E - predicted
    np.testing.assert_allclose(step.remainder_norms, np.linalg.norm(remainder, axis=1), rtol=1e-10)
    assert step.relative_remainder == pytest.approx(
        np.linalg.norm(remainder) / np.linalg.norm(predicted), rel=1e-10
    )
    aligned = (expected - start.E) @ start.v
    np.testing.assert_allclose(step.alignment, aligned, atol=1e-13)
    slope, _ = np.polyfit(step.alpha.ravel(), aligned.ravel(), 1)
    assert step.slope == pytest.approx(slope, rel=1e-9)
    assert step.r2 == pytest.approx(
        np.corrcoef(step.alpha.ravel(), aligned.ravel())[0, 1] ** 2, rel=1e-9
    )


def test_signed_frequency_by_hand() -> None:
    counts = Counts.from_matrix([[2, 1, 0], [0, 1, 1], [0, 0, 0]], [1, 0, 1])
    np.testing.assert_allclose(counts.signed_frequency(), [2 / 9, 1 / 9 - 1 / 6, -1 / 6])
    K = 3
    many = Counts.from_matrix([[2, 1, 0], [0, 1, 1], [1, 0, 3]], [2, 0, 1], ["a", "b", "c"])
    share = many.matrix.toarray() / many.lengths[:, None]
    paper = [
        [
            np.mean(
                [
                    (K - 1) / K * x if y == k else -x / K
                    for x, y in zip(share[:, s], many.labels, strict=True)
                ]
            )
            for k in range(K)
        ]
        for s in range(3)
    ]
    np.testing.assert_allclose(many.signed_frequency(3), paper)


@settings(deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10**6), d=st.integers(4, 40), scale=st.floats(0.01, 6.0), empty=st.integers(0, 3),
)  # fmt: skip
def test_the_bound_holds_at_any_scale(seed: int, d: int, scale: float, empty: int) -> None:
    counts = random_counts(seed, classes=2, empty=empty)
    E, p, v = initialise(counts.n_types, d, 1, seed)
    step = one_step(counts, scale * E, p, v, eta=1.0)
    assert step.bound_holds
    assert step.relative_remainder <= step.bound * (1 + 1e-12)


def test_the_bound_is_attained_in_its_leading_term() -> None:
    """Two documents of one token each with equal scores: R = −η (b + α/2) v, and the bound's tanh term is the remainder."""
    counts = Counts.from_matrix(np.eye(2), [1, 0])
    v = np.array([1.0, 0.0])
    E = np.array([[0.3, 0.0], [-0.3, 0.0]])
    step = one_step(counts, E, np.zeros(2), v, eta=2.0)
    np.testing.assert_allclose(
        step.remainder_norms, 2 * 0.5 * math.tanh(0.15) / 2 * np.ones(2), rtol=1e-12
    )
    np.testing.assert_allclose(step.bound_norms, step.remainder_norms, rtol=1e-12)


def test_remainder_decays_like_the_inverse_root_of_d() -> None:
    counts = random_counts(5, n=60, types=20)
    dimensions = np.array([128, 512, 2048, 8192])
    remainder = [
        np.mean(
            [
                one_step(counts, *initialise(20, int(d), seed=seed), eta=1.0).relative_remainder
                for seed in range(8)
            ]
        )
        for d in dimensions
    ]
    exponent = np.polyfit(np.log(dimensions), np.log(remainder), 1)[0]
    assert exponent == pytest.approx(-0.5, abs=0.1)


def test_slopes_at_large_d() -> None:
    binary = random_counts(7, n=80)
    step = one_step(binary, *initialise(12, 8192, seed=1), eta=4.0)
    assert step.slope == pytest.approx(2.0, rel=0.05) and step.r2 > 0.99
    many = random_counts(8, n=80, classes=4)
    step = one_step(many, *initialise(12, 8192, heads=4, seed=1), eta=4.0)
    assert step.slope == pytest.approx(4.0, rel=0.05) and step.r2 > 0.99


@settings(deadline=None, derandomize=True, max_examples=20)
@given(seed=st.integers(0, 10**6), eta=st.floats(0.01, 100.0))
def test_flipping_labels_and_the_output_vector_flips_nothing_else(seed: int, eta: float) -> None:
    counts = random_counts(seed)
    E, p, v = initialise(counts.n_types, 5, seed=seed)
    flipped = Counts(counts.matrix, 1 - counts.labels, counts.classes, counts.tokens)
    here, there = one_step(counts, E, p, v, eta), one_step(flipped, E, p, -v, eta)
    np.testing.assert_allclose(there.alpha, -here.alpha, atol=1e-15)
    np.testing.assert_allclose(there.embeddings(), here.embeddings(), atol=1e-12 * eta)


def test_permuting_documents_and_types_permutes_the_result() -> None:
    counts = random_counts(11)
    E, p, v = initialise(counts.n_types, 5)
    rng = np.random.default_rng(3)
    rows, types = rng.permutation(counts.n_documents), rng.permutation(counts.n_types)
    shuffled = Counts.from_matrix(counts.matrix.toarray()[rows][:, types], counts.labels[rows])
    np.testing.assert_allclose(
        one_step(shuffled, E[types], p, v, 2.0).embeddings(),
        one_step(counts, E, p, v, 2.0).embeddings()[types],
        atol=1e-14,
    )


def test_start_has_the_right_law_and_is_seeded() -> None:
    E, p, v = initialise(400, 300, seed=9)
    assert np.std(E) * math.sqrt(300) == pytest.approx(1.0, abs=0.02)
    assert float(p @ p) == pytest.approx(1.0, abs=0.3) and float(v @ v) == pytest.approx(1.0)
    np.testing.assert_array_equal(initialise(400, 300, seed=9).E, E)
    assert not np.array_equal(initialise(400, 300, seed=10).E, E)
    heads = initialise(3, 7, heads=4).v
    np.testing.assert_allclose(heads.T @ heads, np.eye(4), atol=1e-14)


def test_data_without_any_signal_gives_undefined_figures_not_wrong_ones() -> None:
    counts = Counts.from_matrix([[3], [3]], [1, 0])
    step = one_step(counts, *initialise(1, 4), eta=1.0)
    assert math.isnan(step.slope) and math.isinf(step.relative_remainder)
    figures = step.to_dict()
    assert (
        figures["slope"] is None
        and figures["relative_remainder"] is None
        and figures["bound_holds"] is True
    )


def test_bad_input_is_named() -> None:
    counts = random_counts(1)
    E, p, v = initialise(counts.n_types, 4)
    for eta in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(InputError, match="step size"):
            one_step(counts, E, p, v, eta)
    with pytest.raises(InputError, match="overflows"):
        one_step(counts, E, p, v, 1e308)
    with pytest.raises(InputError, match="do not fit"):
        one_step(counts, E[1:], p, v, 1.0)
    with pytest.raises(InputError, match="heads for 2 classes"):
        one_step(counts, E, p, np.eye(4)[:, :3], 1.0)
    with pytest.raises(InputError, match="no documents"):
        one_step(counts.rows(np.zeros(counts.n_documents, bool)), E, p, v, 1.0)
    for sizes in ((0, 4, 1), (3, 0, 1), (3, 2, 4)):
        with pytest.raises(InputError, match="cannot draw"):
            initialise(*sizes)


def test_a_certain_answer_keeps_the_digits_of_its_gradient() -> None:
    """Three classes, an answer of 50 for the right one: softmax − 1 is −2e^{−50}, which 1 − 1 would lose."""
    _, g = loss_and_slope(np.array([[50.0, 0.0, 0.0], [0.0, 0.0, 45.0]]), np.array([0, 2]))
    assert g[0, 0] == pytest.approx(-2 * math.exp(-50), rel=1e-12) and g[1, 2] == pytest.approx(
        -2 * math.exp(-45), rel=1e-12
    )
    np.testing.assert_allclose(g.sum(axis=1), 0, atol=1e-30)
