"""The estimate, checked by finite differences, scikit-learn and the delete-one jackknife."""

from __future__ import annotations

import numpy as np
import pytest
from arenas import battles_of
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from tokensieve.ranking import bradley_terry
from tokensieve.ranking.bradley_terry import (
    Design,
    components_of,
    fit,
    log_likelihood,
    model_columns,
    newton,
    position_is_identified,
)


def drawn(n: int = 400, n_models: int = 4, seed: int = 0, fractional: bool = True):
    rng = np.random.default_rng(seed)
    first = rng.integers(0, n_models, n)
    second = (first + rng.integers(1, n_models, n)) % n_models
    features = rng.standard_normal((n, 2))
    strengths = np.linspace(0.8, -0.8, n_models)
    p = expit(strengths[first] - strengths[second] + features @ [0.7, -0.3])
    outcome = (rng.random(n) < p).astype(float)
    if fractional:
        outcome = 0.8 * outcome + 0.2 * rng.random(n)
    weight = rng.choice([0.5, 1.0, 2.0], n)
    prompt = rng.integers(0, 60, n)
    battles = battles_of(first.tolist(), second.tolist(), outcome.tolist(), prompt.tolist(), weight)
    return battles, features


def test_the_gradient_is_zero_and_the_hessian_is_that_of_finite_differences() -> None:
    battles, features = drawn()
    design = Design(battles.first, battles.second, features, len(battles.models))
    found = newton(design, battles.outcome, battles.weight)

    def value(coefficients):
        return log_likelihood(design, battles.outcome, battles.weight, coefficients)

    h = 1e-4
    unit = np.eye(design.n_coefficients) * h
    at = found.coefficients
    gradient = [(value(at + e) - value(at - e)) / (2 * h) for e in unit]
    np.testing.assert_allclose(gradient, 0, atol=1e-6)
    for i, e in enumerate(unit):
        for j, d in enumerate(unit):
            second = value(at + e + d) - value(at + e - d) - value(at - e + d) + value(at - e - d)
            assert -second / (4 * h * h) == pytest.approx(found.hessian[i, j], abs=1e-3)


def test_it_is_scikit_learns_logistic_regression_where_outcomes_are_wins() -> None:
    battles, features = drawn(fractional=False)
    found = fit(battles, features, components_of(battles))
    anchor = int(components_of(battles).anchors[0])
    X = np.hstack([model_columns(battles).toarray(), features])
    peer = LogisticRegression(C=1 / bradley_terry.RIDGE, fit_intercept=False, tol=1e-10)
    peer.fit(X, battles.outcome, sample_weight=battles.weight)
    strengths = peer.coef_[0][:4] - peer.coef_[0][anchor]
    np.testing.assert_allclose(found.strengths, strengths, atol=1e-5)
    np.testing.assert_allclose(found.effects, peer.coef_[0][4:], atol=1e-5)
    assert found.strengths[anchor] == 0.0


def test_a_tie_is_half_a_win_and_half_a_loss() -> None:
    one = battles_of([0, 0, 1], [1, 1, 2], [0.5, 1.0, 0.0], [0, 1, 2])
    two = battles_of(
        [0, 0, 0, 1], [1, 1, 1, 2], [0.0, 1.0, 1.0, 0.0], [0, 0, 1, 2], np.array([0.5, 0.5, 1, 1])
    )
    none = np.zeros((3, 0)), np.zeros((4, 0))
    first = fit(one, none[0], components_of(one))
    second = fit(two, none[1], components_of(two))
    anchored = first.strengths - first.strengths[0]
    np.testing.assert_allclose(anchored, second.strengths - second.strengths[0], atol=1e-6)
    spread = first.covariance - second.covariance
    if components_of(one).anchors[0] == components_of(two).anchors[0]:
        np.testing.assert_allclose(spread, 0, atol=1e-6)


def test_the_sandwich_is_about_the_jackknife_over_prompts() -> None:
    battles, features = drawn(n=900, seed=3)
    components = components_of(battles)
    found = fit(battles, features, components)
    left_out = []
    for prompt in np.unique(battles.prompt):
        rows = np.flatnonzero(battles.prompt != prompt)
        left_out.append(fit(battles, features, components, rows=rows).coefficients)
    n_prompts = len(left_out)
    deviations = np.array(left_out) - np.mean(left_out, axis=0)
    jackknife = (n_prompts - 1) / n_prompts * (deviations**2).sum(axis=0)
    is_free = found.errors > 0
    ratio = found.errors[is_free] / np.sqrt(jackknife[is_free])
    assert np.all(np.abs(ratio - 1) < 0.1)


@given(st.permutations(range(4)), st.integers(0, 20))
def test_names_and_order_of_rows_change_nothing(order: list[int], seed: int) -> None:
    battles, features = drawn(n=200, seed=seed)
    found = fit(battles, features, components_of(battles))
    shuffled = np.random.default_rng(seed).permutation(battles.n)
    renamed = battles_of(
        np.array(order)[battles.first[shuffled]].tolist(),
        np.array(order)[battles.second[shuffled]].tolist(),
        battles.outcome[shuffled].tolist(),
        battles.prompt[shuffled].tolist(),
        battles.weight[shuffled],
    )
    other = fit(renamed, features[shuffled], components_of(renamed))
    theta = other.strengths[np.array(order)]
    np.testing.assert_allclose(theta - theta[0], found.strengths - found.strengths[0], atol=1e-6)
    np.testing.assert_allclose(other.effects, found.effects, atol=1e-6)


def test_a_model_that_always_wins_has_a_finite_strength() -> None:
    battles = battles_of([0] * 10, [1] * 10, [1.0] * 10)
    found = fit(battles, np.zeros((10, 0)), components_of(battles))
    assert found.converged and 2 < abs(found.strengths).max() < 20


def test_components_are_found_and_anchored() -> None:
    battles = battles_of([0, 0, 2, 0], [1, 1, 3, 1], [1.0, 0.0, 1.0, 1.0])
    components = components_of(battles)
    assert components.of_model[0] == components.of_model[1] != components.of_model[2]
    assert components.main == components.of_model[0]
    found = fit(battles, np.zeros((4, 0)), components)
    assert np.count_nonzero(found.strengths == 0) == 2


def test_position_is_told_only_where_models_change_places() -> None:
    star = battles_of([0, 0, 0], [1, 2, 3], [1.0, 0.0, 0.5])
    assert not position_is_identified(star)
    chain = battles_of([0, 1, 0], [1, 2, 2], [1.0, 0.0, 0.5])
    assert position_is_identified(chain), "0 before 1 before 2, and 0 before 2: no levels fit"
    swapped = battles_of([0, 1], [1, 0], [1.0, 0.0])
    assert position_is_identified(swapped)


def test_sums_over_battles_are_those_of_the_matrix_of_all_columns() -> None:
    battles, features = drawn(n=300, n_models=6)
    design = Design(battles.first, battles.second, features, len(battles.models))
    X = np.hstack([model_columns(battles).toarray(), features])
    weight = battles.weight
    coefficients = np.arange(8.0)
    np.testing.assert_allclose(design.predictor(coefficients), X @ coefficients)
    np.testing.assert_allclose(design.weighted_sum(weight), X.T @ weight, atol=1e-12)
    np.testing.assert_allclose(
        design.weighted_squares(weight), X.T @ (weight[:, None] * X), atol=1e-10
    )
    membership = np.eye(60)[battles.prompt].T
    sums = design.sums_by_cluster(weight, battles.prompt).toarray()
    np.testing.assert_allclose(sums, membership @ (weight[:, None] * X), atol=1e-12)
