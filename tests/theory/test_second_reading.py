"""A second reading of the proof in docs/theory.md: each of its inequalities on random problems, in 50 digits.

Nothing here is taken from the package: values are computed from the definitions of the loss and of the bounds.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mpf

mpmath.mp.dps = 50
exponential = np.frompyfunc(mpmath.exp, 1, 1)
logarithm = np.frompyfunc(mpmath.log, 1, 1)

N_TYPES = 6
DIMENSION = 4
SEEDS = st.integers(0, 2**32 - 1)


def exact(values: np.ndarray) -> np.ndarray:
    return np.frompyfunc(mpf, 1, 1)(values)


def length(vector: np.ndarray) -> mpf:
    return mpmath.sqrt(np.sum(vector * vector, initial=mpf(0)))


def spread(rows: np.ndarray) -> mpf:
    """The largest distance between two rows."""
    return max(length(a - b) for a in rows for b in rows)


@dataclass(frozen=True)
class Text:
    """A document: its types, the first of which are selected, their counts and the label."""

    types: np.ndarray
    counts: np.ndarray
    n_selected: int
    label: int


@dataclass(frozen=True)
class Problem:
    """Documents, embeddings and values, with projections on V and across it."""

    texts: list[Text]
    E: np.ndarray
    w: np.ndarray
    onto: np.ndarray

    @property
    def across(self) -> np.ndarray:
        return exact(np.eye(DIMENSION)) - self.onto

    def softmax(self, text: Text, p: np.ndarray, n: int) -> np.ndarray:
        """Attention at p among the first n types."""
        weights = exact(text.counts[:n]) * exponential(self.E[text.types[:n]] @ p)
        return weights / weights.sum()

    def gradient(self, text: Text, p: np.ndarray, n: int) -> np.ndarray:
        """∇L of one document whose softmax is over its first n types."""
        q, types = self.softmax(text, p, n), text.types[:n]
        f = q @ self.w[types]
        g = -text.label / (1 + mpmath.exp(text.label * f))
        return g * ((q * (self.w[types] - f)) @ self.E[types])


def problem(seed: int) -> Problem:
    """Three documents; V is the span of the differences of their selected types."""
    rng = np.random.default_rng(seed)
    texts, ties = [], []
    E = exact(rng.standard_normal((N_TYPES, DIMENSION)) * rng.choice([0.3, 1.0, 3.0]))
    for n_selected in (2, 1, int(rng.integers(1, 3))):
        size = int(rng.integers(n_selected + 1, N_TYPES))
        types = rng.choice(N_TYPES, size, replace=False)
        texts.append(Text(types, rng.integers(1, 4, size), n_selected, int(rng.choice([-1, 1]))))
        ties += [E[types[0]] - E[s] for s in types[1:n_selected]]
    basis: list[np.ndarray] = []
    for tie in ties:  # Gram and Schmidt
        rest = tie - sum((b * (b @ tie) for b in basis), exact(np.zeros(DIMENSION)))
        if length(rest) > 1e-20:
            basis.append(rest / length(rest))
    onto = sum((np.outer(b, b) for b in basis), exact(np.zeros((DIMENSION, DIMENSION))))
    return Problem(texts, E, exact(rng.standard_normal(N_TYPES)), onto)


@dataclass(frozen=True)
class Sizes:
    """Δ, ℓ and γ of a document."""

    values: mpf
    spread: mpf
    gamma: mpf


def sizes(given_problem: Problem, text: Text) -> Sizes:
    E, w, selected = given_problem.E, given_problem.w, text.types[: text.n_selected]
    to_others = max(length(E[s] - E[r]) for s in selected for r in text.types[text.n_selected :])
    selected_range = max(w[selected]) - min(w[selected])
    gamma = selected_range * spread(E[selected]) / 4
    return Sizes(max(w[text.types]) - min(w[text.types]), to_others, gamma)


def places(given_problem: Problem, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """z* and ζ in V, and q across it, at which unselected types weigh about e^{−4} to e^4."""
    rng = np.random.default_rng([seed, 1])
    z = given_problem.onto @ exact(rng.standard_normal(DIMENSION))
    zeta = given_problem.onto @ exact(rng.standard_normal(DIMENSION) * 10 ** rng.uniform(-6, 0))
    q = given_problem.across @ exact(rng.standard_normal(DIMENSION) * 10 ** rng.uniform(-1, 1))
    return z, zeta, q


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_forces_and_pushes_differ_by_no_more_than_the_proof_says(seed: int) -> None:
    """Steps 1 to 4: |f − f*|, |K̃ − K| of every pair, and |Π_V∇L − ∇L_S|, at any η and ζ."""
    given_problem = problem(seed)
    z, zeta, q = places(given_problem, seed)
    E, w = given_problem.E, given_problem.w
    for text in given_problem.texts:
        bounds, lead = sizes(given_problem, text), text.types[0]
        selected, others = text.types[: text.n_selected], text.types[text.n_selected :]
        counts = exact(text.counts[text.n_selected :])
        at_star = given_problem.softmax(text, z, text.n_selected)
        f_star = at_star @ w[selected]
        total_star = (exact(text.counts[: text.n_selected]) * exponential(E[selected] @ z)).sum()
        near = z + zeta
        total = (exact(text.counts[: text.n_selected]) * exponential(E[selected] @ near)).sum()
        gaps = (E[lead] - E[others]) @ given_problem.across @ q
        etas = counts * exponential(E[others] @ near - gaps) / total
        eta, p = etas.sum(), near + q
        attention = given_problem.softmax(text, p, len(text.types))
        f = attention @ w[text.types]

        phi = bounds.gamma * length(zeta) + bounds.values * eta
        assert abs(f - f_star) <= phi
        m = phi + bounds.spread * length(zeta) + eta
        for r, count, gap, weight in zip(others, counts, gaps, etas, strict=True):
            A = count * mpmath.exp(E[r] @ z) / total_star / (1 + mpmath.exp(text.label * f_star))
            K = text.label * (f_star - w[r]) * A
            K_here = text.label * (f - w[r]) * weight * mpmath.exp(gap)
            K_here /= (1 + eta) * (1 + mpmath.exp(text.label * f))
            error = A * mpmath.exp(m) * (abs(f_star - w[r]) * m + phi)
            assert abs(K_here - K) <= error * (1 + mpf(10) ** -40)

        whole = given_problem.onto @ given_problem.gradient(text, p, len(text.types))
        tied = given_problem.onto @ given_problem.gradient(text, near, text.n_selected)
        push = bounds.gamma + bounds.values * (bounds.spread + bounds.gamma / 4)
        assert length(whole - tied) <= eta * push


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_the_flow_across_V_is_the_sum_over_unselected_types_alone(seed: int) -> None:
    """Step 2: −Π∇L = Σ K̃ e^{−D·q} D exactly, whatever the ties do."""
    given_problem = problem(seed)
    z, zeta, q = places(given_problem, seed)
    E, w, p = given_problem.E, given_problem.w, z + zeta + q
    for text in given_problem.texts:
        attention = given_problem.softmax(text, p, len(text.types))
        f = attention @ w[text.types]
        sigma = 1 / (1 + mpmath.exp(text.label * f))
        expected = exact(np.zeros(DIMENSION))
        for r, weight in list(zip(text.types, attention, strict=True))[text.n_selected :]:
            D = given_problem.across @ (E[text.types[0]] - E[r])
            expected = expected + text.label * sigma * (f - w[r]) * weight * D
        whole = given_problem.gradient(text, p, len(text.types))
        assert length(given_problem.across @ whole + expected) < mpf(10) ** -40


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_third_derivatives_are_no_larger_than_their_bound(seed: int) -> None:
    """The term of M₃, at any point along any direction."""
    rng = np.random.default_rng(seed)
    n_types = int(rng.integers(2, 6))
    counts, label = exact(rng.integers(1, 4, n_types)), int(rng.choice([-1, 1]))
    w = exact(rng.standard_normal(n_types) * 10 ** rng.uniform(-1, 1))
    along = exact(rng.standard_normal(n_types) * 10 ** rng.uniform(-1, 1))
    start = exact(rng.standard_normal(n_types))

    def loss(x: mpf) -> mpf:
        weights = counts * exponential(start + x * along)
        return mpmath.log(1 + mpmath.exp(-label * (weights @ w) / weights.sum()))

    values, reach = max(w) - min(w), max(along) - min(along)
    first, second = values * reach / 4, values * reach**2 / 4
    bound = mpf("0.09623") * first**3 + 3 * first * second / 4 + 7 * values * reach**3 / 16
    assert abs(mpmath.diff(loss, 0, 3)) <= bound


@pytest.mark.slow
@settings(max_examples=5, deadline=None)
@given(SEEDS)
def test_the_way_of_the_tied_gaps_is_no_longer_than_its_bound(seed: int) -> None:
    """Step 5: h = s² with h' = −m² h + B²(t₀/t)² and ∫ √h dt/t, in closed form by quadrature."""
    rng = np.random.default_rng(seed)
    m, B, t_0, h_0 = (mpf(10) ** rng.uniform(-2, 1) for _ in range(4))

    def h(t: mpf) -> mpf:
        grown = mpmath.quad(
            lambda x: mpmath.exp(m**2 * (x - t)) * (B * t_0 / x) ** 2, [t_0, (t_0 + t) / 2, t]
        )
        return h_0 * mpmath.exp(-(m**2) * (t - t_0)) + grown

    with mpmath.workdps(12):
        times = [t_0 * mpf(10) ** (k / mpf(4)) for k in range(17)]
        way = sum(
            (b - a) / max(a, b) * mpmath.sqrt(min(h(a), h(b)))  # no more than the integral
            for a, b in itertools.pairwise(times)
            if h(a) >= h(b)
        )
        assert way <= mpmath.sqrt(h_0 / t_0 + B**2) / m


@pytest.mark.parametrize("reach", [0.01, 0.5, 3.0, 20.0])
def test_forces_move_R_no_further_than_the_proof_says(reach: float) -> None:
    """Step 6, on a fine grid of −|D| r ≤ x ≤ |D| r."""
    x = np.linspace(-reach, reach, 20_001)
    x = x[x != 0]
    pulled = reach * np.exp(reach)
    assert (x * np.exp(-x)).max() <= 1 / np.e + 1e-15
    assert (-x * np.exp(-x)).max() <= pulled * (1 + 1e-12)
    assert (np.abs(x) * np.exp(-x)).max() <= max(1 / np.e, pulled) * (1 + 1e-12)
    ratio = -np.expm1(-x) / x
    assert ratio.min() >= -np.expm1(-reach) / reach * (1 - 1e-12)
    assert ratio.max() <= np.expm1(reach) / reach * (1 + 1e-12)


def gradient_of_balance(x: mpf, classes: list[tuple[int, mpf]], target: mpf) -> mpf:
    """Ψ'(x) on a line: Ψ = Σ λ e^{−n x} + target x."""
    return target - sum(n * size * mpmath.exp(-n * x) for n, size in classes)


def curvature_of_balance(x: mpf, classes: list[tuple[int, mpf]]) -> mpf:
    return sum(n * n * size * mpmath.exp(-n * x) for n, size in classes)


@settings(max_examples=30, deadline=None)
@given(SEEDS)
def test_the_balance_is_enclosed_as_the_proof_says(seed: int) -> None:
    """Newton and Kantorovich for Ψ, with forces of both signs: a strict minimum within ϱ."""
    rng = np.random.default_rng(seed)
    classes = [(1, mpf(1)), (int(rng.integers(2, 9)), mpf(rng.uniform(-0.02, 1.0)))]
    nu = curvature_of_balance(mpf(0), classes)
    third = sum(abs(size) * n**3 for n, size in classes)
    largest = min(nu**2 / (4 * third), nu / (4 * max(n for n, _ in classes)))
    slope = mpf(rng.uniform(-0.999, 0.999)) * largest
    target = slope + sum(n * size for n, size in classes)
    near = 2 * abs(slope) / nu
    ends = [gradient_of_balance(x, classes, target) for x in (-near, near)]
    assert ends[0] < 0 < ends[1]
    for k in range(-10, 11):
        assert curvature_of_balance(near * k / 10, classes) > mpf("0.17") * nu


def test_the_balance_needs_short_steps_for_long_classes() -> None:
    """Without |n| ϱ ≤ ½, the curvature within ϱ has no bound: an earlier checker left this out."""
    classes = [(1, mpf(1)), (100, mpf("1e-8"))]
    nu = curvature_of_balance(mpf(0), classes)
    slope = mpf("0.2")
    assert 4 * slope * sum(size * n**3 for n, size in classes) < nu**2
    assert curvature_of_balance(-2 * slope / nu, classes) > 1e6 * nu
