"""Drift: found where shares change, not where only the mix of labels does; intervals and p-values
by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokensieve.errors import InputError
from tokensieve.evidence.drift import drift
from tokensieve.evidence.importance import token_importance
from tokensieve.text.counts import Counts


def documents(rng: np.random.Generator, rates: np.ndarray, sizes: tuple[int, int]) -> Counts:
    """Documents of 30 to 60 tokens; rates of each class, shape (2, S)."""
    labels = np.repeat([0, 1], sizes)
    chances = np.column_stack([rates, 1 - rates.sum(axis=1)])[labels]
    return Counts.from_matrix(rng.multinomial(rng.integers(30, 60, len(labels)), chances), labels)


def test_a_change_of_the_mix_of_labels_is_no_drift_and_a_change_of_share_is() -> None:
    rng = np.random.default_rng(1)
    rates = np.stack([np.full(20, 0.01), np.linspace(0.002, 0.03, 20)])
    before = documents(rng, rates, (900, 300))
    later = rates.copy()
    later[:, :3] *= 2.5
    after = documents(rng, later, (300, 900))
    found = drift(before, after)
    drifted = found["q_value"].to_numpy()[:20] < 0.05
    assert drifted[:3].all()
    assert drifted[3:].sum() <= 1
    sets = Counts.from_matrix(
        np.vstack([before.matrix.toarray(), after.matrix.toarray()]),
        np.repeat([0, 1], (1200, 1200)),
    )
    assert (
        token_importance(sets).q_value[3:20, 1] < 0.05
    ).sum() > 5  # without labels the mix shows


def test_without_labels_it_is_importance_of_the_set() -> None:
    rng = np.random.default_rng(2)
    rates = np.full((2, 15), 0.012)
    both = documents(rng, rates, (200, 100))
    none = [np.zeros(n, np.int64) for n in (200, 100)]
    before, after = (
        Counts(both.matrix[both.labels == k], none[k], ("text",), both.tokens) for k in (0, 1)
    )
    found, expected = drift(before, after), token_importance(both)
    np.testing.assert_allclose(
        found["difference"].to_numpy(), 2 * expected.effect[:, 1], atol=1e-15
    )
    np.testing.assert_allclose(
        found["difference_low"].to_numpy(), 2 * expected.effect_interval[0][:, 1], atol=1e-12
    )
    np.testing.assert_allclose(found["p_value"].to_numpy(), expected.p_value[:, 1], rtol=1e-9)
    np.testing.assert_allclose(found["q_value"].to_numpy(), expected.q_value[:, 1], rtol=1e-9)


def test_intervals_hold_and_equal_shares_are_not_drift() -> None:
    rng, inside, small = np.random.default_rng(3), [], []
    for _ in range(40):
        rates = np.exp(rng.uniform(np.log(0.0005), np.log(0.02), (2, 30)))
        later = rates * np.where(np.arange(30) < 15, 1.0, rng.uniform(0.5, 2.0, (2, 30)))
        before, after = documents(rng, rates, (200, 100)), documents(rng, later, (60, 120))
        found = drift(before, after).head(30)
        mix = np.array([260, 220]) / 480
        truth = mix @ (later - rates)
        inside.append(
            (found["difference_low"].to_numpy() <= truth)
            & (truth <= found["difference_high"].to_numpy())
        )
        small.append(found["p_value"].to_numpy()[:15] < 0.05)
    assert 0.93 < np.mean(inside) < 0.985
    assert 0.015 < np.mean(small) < 0.07


@given(st.integers(0, 10**6))
@settings(deadline=None, derandomize=True)
def test_before_and_after_exchanged_turn_the_sign(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = (
        documents(rng, rng.uniform(0.001, 0.02, (2, 6)), sizes) for sizes in ((12, 20), (25, 9))
    )
    there, back = drift(a, b), drift(b, a)
    np.testing.assert_allclose(
        there["difference"].to_numpy(), -back["difference"].to_numpy(), atol=1e-14
    )
    np.testing.assert_allclose(
        there["difference_low"].to_numpy(), -back["difference_high"].to_numpy(), atol=1e-12
    )
    np.testing.assert_allclose(there["p_value"].to_numpy(), back["p_value"].to_numpy(), rtol=1e-6)
    low, high = there["difference_low"].to_numpy(), there["difference_high"].to_numpy()
    np.testing.assert_array_equal((low > 0) | (high < 0), there["p_value"].to_numpy() < 0.05)


def test_sets_that_cannot_be_compared_are_refused() -> None:
    a = Counts.from_matrix(np.ones((3, 2)), [0, 0, 0])
    with pytest.raises(InputError, match="same types and classes"):
        drift(a, Counts.from_matrix(np.ones((3, 3)), [0, 0, 0]))
    with pytest.raises(InputError, match="no label occurs in both"):
        drift(a, Counts.from_matrix(np.ones((3, 2)), [1, 1, 1]))
