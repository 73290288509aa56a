"""Bradley–Terry with covariates: the models' strengths, with features of the battles held fixed.

    P(a beats b) = σ(θ_a − θ_b + Σ_k β_k Δx_k + γ)

θ are the models' strengths, Δx_k by how much the first answer exceeds the second in feature k, and
γ the advantage of the first place. An outcome y may be any fraction of a win (½ for a tie, a
chance, a continuous preference): the estimate maximises

    Σ_i w_i [y_i log p_i + (1 − y_i) log(1 − p_i)] − λ/2 ‖(θ, β, γ)‖²

which is consistent whenever E[y] = p (a quasi-likelihood: Papke & Wooldridge 1996). Its covariance
is the sandwich over prompts g (Liang & Zeger 1986), with H the Hessian:

    V = G/(G − 1) Σ_g u_g u_gᵀ,   u_g = H⁻¹ s_g,      s_g = Σ_{i∈g} w_i (y_i − p_i) x_i

Only differences of strengths are defined, within models that are connected by battles. The small
penalty makes the estimate unique; then the model with most battles of each component gets θ = 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import lsqr
from scipy.special import expit
from scipy.stats import t as student

from tokensieve.arrays import Floats, Ints
from tokensieve.ranking.battles import Battles

# λ: a strength of 5 costs as much as an eighth of a lost battle; only models that win or lose every
# battle, whose strength would be infinite, feel it
RIDGE = 0.01
MAX_STEPS = 50  # Newton needs five to ten
TOLERANCE = 1e-9  # of the largest change of a coefficient
LEVEL = 0.95  # of the intervals


@dataclass(frozen=True, eq=False)
class Components:
    """Which models are connected by battles.

    Attributes:
        of_model: the component of each model, shape (M,).
        anchors: the model with most battles of each component, whose strength is zero.
        main: the component with most battles.
    """

    of_model: Ints
    anchors: Ints
    main: int


def components_of(battles: Battles) -> Components:
    """Find the components of the graph of battles."""
    n_models = len(battles.models)
    edges = sp.csr_array(
        (np.ones(battles.n), (battles.first, battles.second)), shape=(n_models, n_models)
    )
    n_components, of_model = connected_components(edges, directed=False)
    games = battles.games()
    anchors = np.zeros(n_components, np.int64)
    totals = np.zeros(n_components)
    for component in range(n_components):
        members = np.flatnonzero(of_model == component)
        anchors[component] = members[np.argmax(games[members])]
        totals[component] = games[members].sum()
    return Components(of_model.astype(np.int64), anchors, int(np.argmax(totals)))


@dataclass(frozen=True)
class Estimate:
    """A number with its 95% interval."""

    value: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """Whether zero is outside of the interval."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, eq=False)
class Fit:
    """Estimated strengths and effects.

    Attributes:
        coefficients: strengths of all models (0 for anchors), then effects, shape (M + K,).
        influence: of each prompt on each coefficient, shape (G, M + K); 0 for anchors. The rows sum
            to about zero, and the sum of their squares is the sandwich.
        prompts: the prompts of its rows, sorted.
        n_models: M.
        converged: whether Newton's steps became small.
    """

    coefficients: Floats
    influence: Floats
    prompts: Ints
    n_models: int
    converged: bool

    @property
    def strengths(self) -> Floats:
        """θ of each model, shape (M,)."""
        return self.coefficients[: self.n_models]

    @property
    def effects(self) -> Floats:
        """β of each feature, and γ last if it was estimated, shape (K,)."""
        return self.coefficients[self.n_models :]

    @property
    def correction(self) -> float:
        """G/(G − 1)."""
        return len(self.prompts) / max(len(self.prompts) - 1, 1)

    @cached_property
    def covariance(self) -> Floats:
        """The sandwich over prompts, shape (M + K, M + K)."""
        squares: Floats = self.influence.T @ self.influence
        return self.correction * squares

    @cached_property
    def errors(self) -> Floats:
        """Standard errors of all coefficients."""
        squares: Floats = np.einsum("gp,gp->p", self.influence, self.influence)
        return np.sqrt(self.correction * squares)

    @property
    def quantile(self) -> float:
        """Of Student's t with one degree of freedom fewer than prompts, for intervals."""
        return t_quantile(len(self.prompts))

    def estimate(self, place: int) -> Estimate:
        """A coefficient with its interval."""
        value = float(self.coefficients[place])
        half = self.quantile * float(self.errors[place])
        return Estimate(value, value - half, value + half)

    def effect(self, feature: int) -> Estimate:
        """The effect of a feature with its interval."""
        return self.estimate(self.n_models + feature)


def t_quantile(n_prompts: int) -> float:
    """Of Student's t, for 95% intervals from so many independent prompts."""
    return float(student.ppf((1 + LEVEL) / 2, max(n_prompts - 1, 1)))


def model_columns(battles: Battles) -> sp.csr_array:
    """1 for the first and −1 for the second model of each battle, shape (n, M)."""
    return _signed_columns(battles.first, battles.second, len(battles.models))


def _signed_columns(first: Ints, second: Ints, n_columns: int) -> sp.csr_array:
    """A row with 1 in one column and −1 in another for each pair of columns."""
    n = len(first)
    rows = np.arange(n)
    data = np.concatenate([np.ones(n), -np.ones(n)])
    places = (np.concatenate([rows, rows]), np.concatenate([first, second]))
    return sp.csr_array((data, places), shape=(n, n_columns))


def position_is_identified(battles: Battles) -> bool:
    """Whether the advantage of the first place can be told from the models' strengths.

    It cannot if levels can be given to the models such that the first is always one above the
    second: then γ and the strengths say the same. With one reference that is always first, for
    example, every model has the same level below it.
    """
    pairs = np.unique(np.stack([battles.first, battles.second], axis=1), axis=0)
    incidence = _signed_columns(pairs[:, 0], pairs[:, 1], len(battles.models))
    one_above = np.ones(len(pairs))
    levels = lsqr(incidence, one_above, atol=1e-12, btol=1e-12)[0]
    misfit = np.abs(incidence @ levels - one_above).max()
    return bool(misfit > 1e-6)  # rounding of a least-squares solution is far smaller


def fit(
    battles: Battles,
    features: Floats | sp.csr_array,
    components: Components,
    outcome: Floats | None = None,
    rows: Ints | None = None,
    start: Floats | None = None,
) -> Fit:
    """Estimate the strengths of the models and the effects of features.

    Args:
        battles: with M models.
        features: Δx of each battle, shape (n, K); K may be 0.
        components: of all battles.
        outcome: instead of the battles' own.
        rows: the battles to use; all if None.
        start: strengths to begin with, which changes the time and not the result.
    """
    n_models = len(battles.models)
    X = sp.csr_array(sp.hstack([model_columns(battles), sp.csr_array(features)]))
    y = battles.outcome if outcome is None else outcome
    weight = battles.weight
    prompt = battles.prompt
    if rows is not None:
        X, y, weight, prompt = X[rows], y[rows], weight[rows], prompt[rows]
    first_guess = np.zeros(X.shape[1])
    if start is not None:
        first_guess[:n_models] = start - start.mean()
    solved = newton(X, y, weight, first_guess)
    prompts, place = np.unique(prompt, return_inverse=True)
    influence = influence_of_clusters(X, y, weight, place, solved)
    anchor_of_model = components.anchors[components.of_model]
    coefficients = solved.coefficients.copy()
    coefficients[:n_models] -= solved.coefficients[anchor_of_model]
    influence[:, :n_models] -= influence[:, anchor_of_model]
    return Fit(coefficients, influence, prompts, n_models, solved.converged)


@dataclass(frozen=True, eq=False)
class Maximum:
    """Where the penalised likelihood is largest, with its negative Hessian there."""

    coefficients: Floats
    hessian: Floats
    converged: bool


def log_likelihood(X: sp.csr_array, y: Floats, weight: Floats, coefficients: Floats) -> float:
    """Σ w [y log p + (1 − y) log(1 − p)] − λ/2 ‖β‖², without overflow."""
    f = X @ coefficients
    fit_of_data = weight @ (y * f - np.logaddexp(0.0, f))
    return float(fit_of_data - RIDGE / 2 * coefficients @ coefficients)


def newton(X: sp.csr_array, y: Floats, weight: Floats, start: Floats | None = None) -> Maximum:
    """Newton's method with halved steps where the likelihood would fall."""
    n_coefficients = X.shape[1]
    coefficients = np.zeros(n_coefficients) if start is None else start
    value = log_likelihood(X, y, weight, coefficients)
    hessian = RIDGE * np.eye(n_coefficients)
    for _ in range(MAX_STEPS):
        p = expit(X @ coefficients)
        gradient = X.T @ (weight * (y - p)) - RIDGE * coefficients
        curvature = weight * p * (1 - p)
        hessian = (X.T @ (X.multiply(curvature[:, None]))).toarray()
        hessian += RIDGE * np.eye(n_coefficients)
        step = np.linalg.solve(hessian, gradient)
        if np.abs(step).max(initial=0.0) < TOLERANCE:
            return Maximum(coefficients, hessian, True)
        size = 1.0
        while size > TOLERANCE:
            moved = coefficients + size * step
            moved_value = log_likelihood(X, y, weight, moved)
            if moved_value >= value:
                break
            size /= 2
        else:  # no step of any size is uphill: rounding ends the search
            return Maximum(coefficients, hessian, True)
        coefficients = moved
        value = moved_value
    return Maximum(coefficients, hessian, False)


def influence_of_clusters(
    X: sp.csr_array, y: Floats, weight: Floats, cluster: Ints, at: Maximum
) -> Floats:
    """H⁻¹ s_g of each cluster g, numbered from 0, shape (G, coefficients)."""
    residual = weight * (y - expit(X @ at.coefficients))
    n_clusters = int(cluster.max(initial=-1)) + 1
    membership = sp.csr_array(
        (np.ones(len(cluster)), (cluster, np.arange(len(cluster)))),
        shape=(n_clusters, len(cluster)),
    )
    scores = sp.csr_array(membership @ X.multiply(residual[:, None])).toarray()
    return np.linalg.solve(at.hessian, scores.T).T
