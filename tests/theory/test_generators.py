"""Generated data keeps the promises of its docstring, exactly where it says exactly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tokensieve.errors import InputError
from tokensieve.text.counts import Counts
from tokensieve.theory.generators import independent_tokens, single_token


def dense(counts: Counts) -> np.ndarray:
    return counts.matrix.toarray()


@settings(deadline=None, derandomize=True)
@given(
    pairs=st.integers(10, 40), half=st.integers(1, 5), irrelevant=st.integers(4, 20), length=st.integers(2, 5),
    seed=st.integers(0, 10**6),
)  # fmt: skip
def test_assumption_one_holds_exactly(
    pairs: int, half: int, irrelevant: int, length: int, seed: int
) -> None:
    n = 4 * pairs
    assume(n // 2 * (length - 1) >= irrelevant)  # else refused: not every type could occur
    counts, relevance = single_token(n, 2 * half + irrelevant, length, 2 * half, seed=seed)
    c, y = dense(counts), counts.signs
    assert np.sum(y > 0) == n // 2
    assert set(np.unique(c)) <= {0.0, 1.0} and np.all(c.sum(axis=0) > 0)
    for sign in (1, -1):
        own = c[:, relevance == sign]
        np.testing.assert_array_equal(own.sum(axis=1), (y == sign).astype(float))
    alpha = counts.signed_frequency()
    np.testing.assert_allclose(alpha[relevance == 0], 0, atol=1e-16)
    np.testing.assert_array_equal(np.sign(alpha[relevance != 0]), relevance[relevance != 0])
    np.testing.assert_array_equal(counts.lengths, length)


def test_pairs_share_all_irrelevant_tokens() -> None:
    counts, _ = single_token(40, 30, 5, 6, seed=3)
    rest = dense(counts)[:, 6:]
    positive, negative = rest[counts.labels == 1], rest[counts.labels == 0]
    np.testing.assert_array_equal(positive, negative)


def test_independent_tokens_have_the_stated_posterior_difference() -> None:
    counts, relevance = independent_tokens(4000, 20, 30, 8, delta_min=0.2, seed=1)
    c, y = dense(counts), counts.signs
    np.testing.assert_array_equal(counts.lengths, 30)
    assert relevance.sum() == pytest.approx(0, abs=1e-12) and np.abs(relevance).max() == 1
    difference = (c.T @ y) / c.sum(axis=0)
    np.testing.assert_allclose(difference, relevance, atol=4 / np.sqrt(4000 * 30 / 20))
    assert np.all(c[y < 0][:, relevance == 1] == 0)
    np.testing.assert_allclose(c.sum(axis=0), 4000 * 30 / 20, rtol=0.1)


def test_several_relevant_tokens() -> None:
    counts, _ = single_token(80, 40, 8, 10, relevant_per_document=3, seed=2)
    c = dense(counts)[:, :10]
    np.testing.assert_array_equal(c.sum(axis=1), 3)
    assert c.max() == 1
    np.testing.assert_allclose(counts.signed_frequency()[10:], 0, atol=1e-16)


def test_leak_makes_types_partly_relevant() -> None:
    counts, relevance = single_token(4000, 40, 6, 10, leak=0.2, seed=2)
    c, y = dense(counts)[:, :10], counts.signs
    difference = (c.T @ y) / c.sum(axis=0)
    np.testing.assert_allclose(difference, 0.6 * relevance[:10], atol=0.12)


def test_a_negator_reverses_the_relevant_token() -> None:
    counts, relevance = single_token(80, 31, 6, 10, label_rule="negation", seed=4)
    c, y = dense(counts), counts.signs
    negator = c[:, 30]
    assert counts.tokens[30] == "negator" and negator.sum() == 20
    sign = c[:, :10] @ relevance[:10]
    np.testing.assert_array_equal(sign * (1 - 2 * negator), y)
    alpha = counts.signed_frequency()
    np.testing.assert_allclose(alpha[10:], 0, atol=1e-16)


def test_xor_labels_are_products_and_carry_no_first_order_signal() -> None:
    counts, _ = single_token(2000, 40, 6, 8, label_rule="xor", seed=4)
    c, y = dense(counts), counts.signs
    parity = np.tile([1.0, -1.0], 2)
    np.testing.assert_array_equal(c[:, :4].sum(axis=1), 1)
    np.testing.assert_array_equal(c[:, 4:8].sum(axis=1), 1)
    np.testing.assert_array_equal((c[:, :4] @ parity) * (c[:, 4:8] @ parity), y)
    difference = (c.T @ y) / c.sum(axis=0)
    assert np.abs(difference[:8]).max() < 0.2


def test_the_seed_decides() -> None:
    one, two, other = (single_token(40, 30, 5, 6, seed=s)[0].matrix.toarray() for s in (1, 1, 2))
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"n": 40, "n_types": 30, "length": 26, "n_relevant": 6}, "T = 26"),
        ({"n": 40, "n_types": 30, "length": 0, "n_relevant": 6}, "T = 0"),
        ({"n": 40, "n_types": 5, "length": 3, "n_relevant": 6}, "more types"),
        ({"n": 40, "n_types": 30, "length": 5, "n_relevant": 3}, "even number"),
        ({"n": 4, "n_types": 30, "length": 5, "n_relevant": 6}, "cannot use all"),
        (
            {"n": 40, "n_types": 30, "length": 5, "n_relevant": 6, "relevant_per_document": 4},
            "relevant tokens per document",
        ),
    ],
)
def test_impossible_sizes_are_named(sizes: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        single_token(**sizes)
