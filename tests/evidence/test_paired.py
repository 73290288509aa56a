"""Paired differences of accuracies: the test against enumeration, the interval against a
likelihood."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import binom, binomtest

from tokensieve.arrays import Floats
from tokensieve.evidence.paired import (
    PairedDifference,
    _score,
    coin_tosses,
    difference_interval,
    sign_flip_p,
)


def two_models(
    rng: np.random.Generator, n: int, only_before: float, only_after: float
) -> tuple[Floats, Floats]:
    """Right or wrong predictions of n items; both models are right on most of the others."""
    kind = rng.choice(
        4,
        n,
        p=[
            only_before,
            only_after,
            0.9 * (1 - only_before - only_after),
            0.1 * (1 - only_before - only_after),
        ],
    )
    return np.isin(kind, (0, 2)).astype(float), np.isin(kind, (1, 2)).astype(float)


@pytest.mark.parametrize("seed", range(5))
def test_random_signs_against_all_of_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sums = rng.integers(-4, 5, 10) / 2
    observed = abs(sums.sum())
    extreme = [
        abs(np.dot(signs, sums)) >= observed - 1e-9
        for signs in itertools.product((-1, 1), repeat=len(sums))
    ]
    assert sign_flip_p(sums) == pytest.approx(np.mean(extreme))


@pytest.mark.parametrize("n", [1, 2, 7, 100, 25_001])
def test_coin_tosses_are_scipys_binomial(n: int) -> None:
    expected = binom.pmf(np.arange(n + 1), n, 0.5)
    np.testing.assert_allclose(coin_tosses(n), expected, rtol=1e-11, atol=1e-300)


def test_single_items_are_mcnemars_exact_test() -> None:
    # IMDB with and without its ratings: marginal intervals called this "within chance"
    before = np.repeat([1.0, 0.0, 1.0], [135, 57, 808])
    after = np.repeat([0.0, 1.0, 1.0], [135, 57, 808])
    difference = PairedDifference.of(before, after)
    expected = binomtest(57, 192).pvalue
    assert difference.p_value == pytest.approx(expected) and difference.is_significant
    assert difference.high < 0
    counted = PairedDifference.of_counts(1000, 943, 135, 57)
    assert counted.to_dict() == pytest.approx(difference.to_dict())


@pytest.mark.parametrize("difference", [-0.3, -0.05, 0.0, 0.04, 0.2])
@pytest.mark.parametrize(("only_before", "only_after"), [(12, 5), (0, 7), (3, 3)])
def test_the_variance_is_that_of_the_likeliest_probabilities(
    difference: float, only_before: int, only_after: int
) -> None:
    n = 60

    def loss(q: float) -> float:
        probabilities = np.array([q, q + difference, 1 - 2 * q - difference])
        counts = np.array([only_before, only_after, n - only_before - only_after])
        return -float(counts @ np.log(np.maximum(probabilities, 1e-300)))

    lowest, highest = max(0.0, -difference), (1 - difference) / 2
    q = minimize_scalar(loss, bounds=(lowest, highest), options={"xatol": 1e-12}).x
    spread = np.sqrt(n * (2 * q + difference * (1 - difference)))
    expected = (only_after - only_before - n * difference) / spread
    assert _score(difference, n, only_before, only_after) == pytest.approx(expected, rel=1e-3)


def test_of_many_items_the_interval_is_walds() -> None:
    n, b, c = 1_000_000, 30_000, 31_000
    low, high = difference_interval(n, b, c)
    half = 1.959964 * np.sqrt((b + c) / n - ((c - b) / n) ** 2) / np.sqrt(n)
    assert (low, high) == pytest.approx(((c - b) / n - half, (c - b) / n + half), rel=1e-3)


@pytest.mark.parametrize(("only_before", "only_after"), [(0.0, 0.0), (0.05, 0.05), (0.1, 0.02)])
def test_the_interval_covers_the_true_difference(only_before: float, only_after: float) -> None:
    rng = np.random.default_rng(0)
    true = only_after - only_before
    covered = []
    for _ in range(300):
        found = PairedDifference.of(*two_models(rng, 150, only_before, only_after))
        covered.append(found.low <= true <= found.high)
        assert (found.low <= 0 <= found.high) == (found.p_value >= 0.05)
    assert np.mean(covered) >= 0.92


def test_groups_that_agree_count_once() -> None:
    rng = np.random.default_rng(1)
    false_alarms = {"items": 0, "groups": 0}
    covered = 0
    for _ in range(200):
        before, after = two_models(rng, 40, 0.15, 0.15)
        units = np.repeat(np.arange(40), 10)
        before, after = np.repeat(before, 10), np.repeat(after, 10)
        false_alarms["items"] += PairedDifference.of(before, after).is_significant
        grouped = PairedDifference.of(before, after, units)
        false_alarms["groups"] += grouped.is_significant
        covered += grouped.low <= 0 <= grouped.high
    assert false_alarms["groups"] <= 15 < 60 < false_alarms["items"]
    assert covered >= 185


def test_ties_count_half_and_equal_predictions_are_no_difference() -> None:
    same = PairedDifference.of(np.array([1.0, 0.0, 0.5]), np.array([1.0, 0.0, 0.5]))
    assert same.p_value == 1 and same.low < 0 < same.high
    tie = PairedDifference.of(np.array([0.5] * 20), np.array([1.0] * 20))
    assert tie.only_after == 10 and tie.change == 0.5 and tie.is_significant
    none = PairedDifference.of(np.array([]), np.array([]))
    assert none.n == 0 and not none.is_significant
