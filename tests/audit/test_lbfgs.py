"""L-BFGS against SciPy's, and on functions whose minimum is known."""

import numpy as np
import pytest
import scipy.optimize

from tokensieve.arrays import Floats
from tokensieve.task import lbfgs


def quadratic(eigenvalues: Floats) -> tuple[lbfgs.Function, Floats]:
    """½ (x − m)ᵀ A (x − m) with these eigenvalues of A, and its minimum m."""
    rng = np.random.default_rng(0)
    n = len(eigenvalues)
    rotation, _ = np.linalg.qr(rng.normal(size=(n, n)))
    matrix = rotation * eigenvalues @ rotation.T
    best = rng.normal(size=n)

    def function(x: Floats) -> lbfgs.Value:
        slope = matrix @ (x - best)
        return float((x - best) @ slope / 2), slope

    return function, best


@pytest.mark.parametrize("largest", [1.0, 1e-3, 1e3])
def test_finds_the_minimum_of_a_quadratic(largest: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lbfgs, "MAX_SLOPE", 1e-9)
    function, best = quadratic(largest * np.geomspace(1, 0.01, 30))
    start = np.zeros(30)
    assert np.allclose(lbfgs.minimum(function, start), best, atol=1e-4)
    assert not start.any()


def test_agrees_with_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lbfgs, "MAX_SLOPE", 1e-8)
    rng = np.random.default_rng(1)
    x = rng.normal(size=(200, 40)) * np.geomspace(1, 0.05, 40)
    signs = np.sign(x @ rng.normal(size=40) + rng.normal(size=200))

    def loss(w: Floats) -> lbfgs.Value:
        margins = signs * (x @ w)
        slope = -signs / (1 + np.exp(margins)) / 200
        value = np.logaddexp(0, -margins).mean() + 5e-4 * (w @ w)
        return float(value), x.T @ slope + 1e-3 * w

    expected = scipy.optimize.minimize(
        loss, np.zeros(40), jac=True, method="L-BFGS-B", options={"gtol": 1e-8, "ftol": 1e-15}
    )
    found = lbfgs.minimum(loss, np.zeros(40))
    assert loss(found)[0] == pytest.approx(expected.fun, rel=1e-10)
    assert np.allclose(found, expected.x, atol=1e-4)


def test_needs_hardly_more_evaluations_than_scipy() -> None:
    function, _ = quadratic(np.geomspace(1, 1e-3, 100))
    calls = []

    def counted(x: Floats) -> lbfgs.Value:
        calls.append(x)
        return function(x)

    lbfgs.minimum(counted, np.zeros(100))
    expected = scipy.optimize.minimize(
        function, np.zeros(100), jac=True, method="L-BFGS-B", options={"gtol": lbfgs.MAX_SLOPE}
    )
    assert len(calls) <= 1.5 * expected.nfev


def test_stops_where_there_is_nothing_to_gain() -> None:
    flat = lbfgs.minimum(lambda x: (0.0, np.zeros_like(x)), np.ones(3))
    assert np.array_equal(flat, np.ones(3))
    # a slope that no value confirms: no length is accepted
    assert np.array_equal(
        lbfgs.minimum(lambda x: (float(x @ x), -np.ones(3)), np.zeros(3)), np.zeros(3)
    )
