"""Answers, loss and gradients: against token sequences, finite differences, automatic
differentiation and exact fractions."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokensieve.model.attention import attention, gradient, logits, loss_and_slope
from tokensieve.text.counts import Counts

QUIET = settings(deadline=None, derandomize=True)
HEADS = [1, 3]


def problem(
    seed: int, heads: int = 1, n: int = 12, types: int = 9, empty: int = 1
) -> tuple[Counts, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    matrix = rng.poisson(0.7, size=(n, types))
    matrix[:empty] = 0
    classes = max(heads, 2)
    labels = rng.integers(classes, size=n)
    counts = Counts.from_matrix(matrix, labels, [str(k) for k in range(classes)])
    return counts, rng.normal(scale=1.5, size=types), rng.normal(scale=2.0, size=(types, heads))


def sequence_gradients(
    documents: list[list[int]], labels: np.ndarray, E: np.ndarray, p: np.ndarray, V: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """Loss, ∇_E, ∇_p, ∇_V, token by token: no counts, no types, the derivative of softmax written
    out as a Jacobian."""
    loss, gE, gp, gV = 0.0, np.zeros_like(E), np.zeros_like(p), np.zeros_like(V)
    for tokens, label in zip(documents, labels, strict=True):
        X = E[tokens]
        weights = np.exp(X @ p)
        q = weights / weights.sum()
        pooled = q @ X
        f = pooled @ V
        if V.shape[1] == 1:
            y = 2 * label - 1
            loss += np.log1p(np.exp(-y * f[0]))
            g = np.array([-y / (1 + np.exp(y * f[0]))])
        else:
            share = np.exp(f) / np.exp(f).sum()
            loss -= np.log(share[label])
            g = share - np.eye(V.shape[1])[label]
        logits = (np.diag(q) - np.outer(q, q)) @ (X @ V @ g)
        gV += np.outer(pooled, g)
        for i, token in enumerate(tokens):
            gE[token] += q[i] * (V @ g) + logits[i] * p
            gp += logits[i] * E[token]
    n = len(documents)
    return loss / n, gE / n, gp / n, gV / n


def as_documents(counts: Counts) -> list[list[int]]:
    dense = counts.matrix.toarray().astype(int)
    return [np.repeat(np.arange(row.size), row).tolist() for row in dense]


@pytest.mark.parametrize("heads", HEADS)
def test_gradients_in_E_p_v_are_those_of_the_token_sequences(heads: int) -> None:
    counts, _, _ = problem(1, heads, empty=0)
    rng = np.random.default_rng(2)
    E, p, V = rng.normal(size=(counts.n_types, 5)), rng.normal(size=5), rng.normal(size=(5, heads))
    documents = [rng.permutation(d).tolist() for d in as_documents(counts)]
    loss, gE, gp, gV = sequence_gradients(documents, counts.labels, E, p, V)
    found = gradient(counts, E @ p, E @ V)
    assert found.loss == pytest.approx(loss, rel=1e-13)
    np.testing.assert_allclose(np.outer(found.a, p) + found.b @ V.T, gE, atol=1e-14)
    np.testing.assert_allclose(E.T @ found.a, gp, atol=1e-14)
    np.testing.assert_allclose(E.T @ found.b, gV, atol=1e-14)
    assert np.linalg.matrix_rank(gE, tol=1e-10) <= 1 + heads


@pytest.mark.parametrize("heads", HEADS)
def test_gradient_is_the_finite_difference_of_the_loss(heads: int) -> None:
    counts, u, w = problem(3, heads)
    found, h = gradient(counts, u, w), 1e-5

    def loss(u: np.ndarray, w: np.ndarray) -> float:
        return float(np.mean(loss_and_slope(logits(counts.matrix, u, w), counts.labels)[0]))

    for s in range(counts.n_types):
        step = h * np.eye(counts.n_types)[s]
        assert found.a[s] == pytest.approx(
            (loss(u + step, w) - loss(u - step, w)) / (2 * h), abs=1e-9
        )
        for k in range(heads):
            nudge = np.outer(step, np.eye(heads)[k])
            assert found.b[s, k] == pytest.approx(
                (loss(u, w + nudge) - loss(u, w - nudge)) / (2 * h), abs=1e-9
            )


@pytest.mark.parametrize("heads", HEADS)
def test_gradient_is_that_of_automatic_differentiation(heads: int) -> None:
    torch = pytest.importorskip("torch")
    counts, u0, w0 = problem(4, heads, n=30, types=20, empty=3)
    u = torch.tensor(u0, dtype=torch.float64, requires_grad=True)
    w = torch.tensor(w0, dtype=torch.float64, requires_grad=True)
    c = torch.tensor(counts.matrix.toarray())
    rows = c.sum(1) > 0
    f = torch.zeros(len(c), heads, dtype=torch.float64)
    f[rows] = torch.softmax(torch.log(c[rows]) + u, dim=1) @ w
    labels = torch.tensor(counts.labels)
    if heads == 1:
        loss = torch.nn.functional.binary_cross_entropy_with_logits(f[:, 0], labels.double())
    else:
        loss = torch.nn.functional.cross_entropy(f, labels)
    loss.backward()
    assert u.grad is not None
    assert w.grad is not None
    found = gradient(counts, u0, w0)
    assert found.loss == pytest.approx(loss.item(), rel=1e-14)
    np.testing.assert_allclose(found.f, f.detach().numpy(), atol=1e-14)
    np.testing.assert_allclose(found.a, u.grad.numpy(), rtol=1e-10, atol=1e-16)
    np.testing.assert_allclose(found.b, w.grad.numpy(), rtol=1e-10, atol=1e-16)


def exact_a(c: np.ndarray, u: np.ndarray, w: np.ndarray, y: int) -> list[Decimal]:
    """a of one document in 400 digits, by its definition g q_s (w_s − f)."""
    with localcontext() as context:
        context.prec = 400
        weights = [Decimal(int(k)) * Decimal(float(x)).exp() for k, x in zip(c, u, strict=True)]
        total = sum(weights)
        q = [x / total for x in weights]
        values = [Decimal(float(x)) for x in w]
        f = sum(a * b for a, b in zip(q, values, strict=True))
        g = -y / (1 + (y * f).exp())
        return [g * a * (b - f) for a, b in zip(q, values, strict=True)]


@pytest.mark.parametrize("gap", [0.0, 5.0, 50.0, 300.0])
@pytest.mark.parametrize("y", [-1, 1])
def test_score_gradient_keeps_relative_precision_when_one_type_takes_all_attention(
    gap: float, y: int
) -> None:
    c = np.array([[2, 1, 3, 1]])
    u, w = np.array([gap, 0.3, -0.2, 0.0]), np.array([0.7, -1.1, 0.4, 0.25])
    found = gradient(Counts.from_matrix(c, [(y + 1) // 2]), u, w).a
    expected = exact_a(c[0], u, w, y)
    for mine, true in zip(found, expected, strict=True):
        assert abs(Decimal(float(mine)) / true - 1) < Decimal("1e-13")
    if gap >= 50:
        q = attention(Counts.from_matrix(c, [0]).matrix, u)
        assert (q * (w - q @ w))[0] == 0.0  # the textbook form has lost the selected type entirely


def test_loss_and_slope_survive_extreme_answers() -> None:
    loss, g = loss_and_slope(np.array([[800.0], [-800.0]]), np.array([0, 0]))
    np.testing.assert_array_equal(loss, [800.0, 0.0])
    np.testing.assert_array_equal(g, [[1.0], [0.0]])
    loss, g = loss_and_slope(np.array([[900.0, 0.0, -900.0]] * 2), np.array([0, 2]))
    np.testing.assert_array_equal(loss, [0.0, 1800.0])
    np.testing.assert_array_equal(g, [[0.0, 0.0, 0.0], [1.0, 0.0, -1.0]])
    counts = Counts.from_matrix(np.array([[1, 2]]), [1])
    far = gradient(counts, np.array([5000.0, -5000.0]), np.array([1.0, -1.0]))
    assert far.f[0, 0] == 1.0
    assert np.isfinite(far.a).all()


@QUIET
@given(st.integers(0, 10**6), st.sampled_from(HEADS))
def test_attention_sums_to_one_and_answers_are_sums_of_contributions(seed: int, heads: int) -> None:
    counts, u, w = problem(seed, heads, empty=2)
    q, m = attention(counts.matrix, u), counts.matrix
    dense = m.copy()
    dense.data = q
    assert (q > 0).all()
    np.testing.assert_allclose(dense.sum(axis=1)[counts.lengths > 0], 1.0, rtol=1e-13)
    np.testing.assert_allclose(dense @ w, logits(counts.matrix, u, w), atol=1e-13)
    np.testing.assert_array_equal(logits(counts.matrix, u, w)[:2], 0.0)
    np.testing.assert_array_equal(
        logits(counts.matrix, u, w[:, 0]), logits(counts.matrix, u, w[:, :1])
    )


@QUIET
@given(st.integers(0, 10**6), st.sampled_from(HEADS))
def test_the_order_of_documents_and_types_does_not_matter(seed: int, heads: int) -> None:
    counts, u, w = problem(seed, heads)
    rng = np.random.default_rng(seed)
    rows, types = rng.permutation(counts.n_documents), rng.permutation(counts.n_types)
    base = gradient(counts, u, w)
    other = Counts.from_matrix(
        counts.matrix.toarray()[rows][:, types], counts.labels[rows], counts.classes
    )
    found = gradient(other, u[types], w[types])
    assert found.loss == pytest.approx(base.loss, rel=1e-13)
    np.testing.assert_allclose(found.a, base.a[types], atol=1e-14)
    np.testing.assert_allclose(found.b, base.b[types], atol=1e-14)
    np.testing.assert_allclose(found.f, base.f[rows], atol=1e-13)


@QUIET
@given(st.integers(0, 10**6), st.sampled_from(HEADS), st.integers(2, 4), st.floats(-30, 30))
def test_duplicated_documents_and_a_constant_in_the_scores_change_nothing(
    seed: int, heads: int, times: int, constant: float
) -> None:
    counts, u, w = problem(seed, heads)
    base = gradient(counts, u, w)
    twice = gradient(counts.rows(np.tile(np.arange(counts.n_documents), times)), u, w)
    moved = gradient(counts, u + constant, w)
    for found in (twice, moved):
        assert found.loss == pytest.approx(base.loss, rel=1e-12)
        np.testing.assert_allclose(found.a, base.a, atol=1e-13)
        np.testing.assert_allclose(found.b, base.b, atol=1e-13)


@QUIET
@given(st.integers(0, 10**6))
def test_swapping_the_classes_mirrors_the_values(seed: int) -> None:
    counts, u, w = problem(seed)
    base = gradient(counts, u, w)
    found = gradient(replace(counts, labels=1 - counts.labels), u, -w)
    assert found.loss == pytest.approx(base.loss, rel=1e-14)
    np.testing.assert_allclose(found.a, base.a, atol=1e-15)
    np.testing.assert_allclose(found.b, -base.b, atol=1e-15)
    np.testing.assert_array_equal(found.f, -base.f)


@QUIET
@given(st.integers(0, 10**6))
def test_two_heads_are_one_head_of_their_difference(seed: int) -> None:
    counts, u, w = problem(seed)
    one, two = gradient(counts, u, w), gradient(counts, u, np.hstack([-w / 2, w / 2]))
    assert two.loss == pytest.approx(one.loss, rel=1e-13)
    np.testing.assert_allclose(two.a, one.a, atol=1e-14)
    np.testing.assert_allclose(two.b, np.hstack([-one.b, one.b]), atol=1e-14)


@QUIET
@given(st.integers(0, 10**6), st.sampled_from(HEADS))
def test_score_gradients_sum_to_zero_and_repeats_act_as_log_counts(seed: int, heads: int) -> None:
    counts, u, w = problem(seed, heads)
    assert abs(gradient(counts, u, w).a.sum()) < 1e-14
    tripled = Counts.from_matrix(
        counts.matrix.toarray() * np.r_[3, np.ones(counts.n_types - 1)],
        counts.labels,
        counts.classes,
    )
    shifted = u + np.r_[np.log(3), np.zeros(counts.n_types - 1)]
    np.testing.assert_allclose(
        logits(tripled.matrix, u, w), logits(counts.matrix, shifted, w), atol=1e-13
    )


def test_empty_documents_count_in_the_mean_and_answer_zero() -> None:
    counts = Counts.from_matrix(np.array([[0, 0], [1, 1]]), [1, 0])
    found = gradient(counts, np.zeros(2), np.array([2.0, 4.0]))
    assert found.f[0, 0] == 0.0
    assert found.loss == pytest.approx((np.log(2) + np.log1p(np.exp(3))) / 2, rel=1e-14)
    np.testing.assert_allclose(found.b[:, 0], np.full(2, 0.25 / (1 + np.exp(-3))), rtol=1e-14)
    nothing = gradient(Counts.from_matrix(np.zeros((3, 2)), [0, 1, 1]), np.zeros(2), np.zeros(2))
    assert nothing.loss == pytest.approx(np.log(2))
    np.testing.assert_array_equal(nothing.a, 0.0)
    np.testing.assert_array_equal(nothing.b, 0.0)
