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
from scipy.special import expit, stdtrit  # scipy.stats has the same, and takes 0.7 s to import

from tokensieve.arrays import Floats, Ints
from tokensieve.ranking.battles import Battles

# λ: a strength of 5 costs as much as an eighth of a lost battle; only models that win or lose every
# battle, whose strength would be infinite, feel it
RIDGE = 0.01
MAX_STEPS = 50  # Newton needs five to ten
TOLERANCE = 1e-9  # of the largest change of a coefficient
SOLVER_TOLERANCE = 1e-12  # of a least-squares solution; near the rounding of its sums
MAX_ROUNDING = 1e-6  # of its residuals, which are far smaller where there is a solution
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
        scores: s_g of each prompt, shape (G, M + K).
        directions: H⁻¹ with the anchor's row subtracted from the rows of its models, shape
            (M + K, M + K): a row turns scores into influences on a coefficient.
        prompts: the prompts of its rows, sorted.
        n_models: M.
        converged: whether Newton's steps became small.
    """

    coefficients: Floats
    scores: sp.csr_array
    directions: Floats
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

    def influence(self, places: slice) -> Floats:
        """u_g of each prompt on some coefficients, shape (G, places); rows sum to about zero."""
        return np.asarray(self.scores @ self.directions[places].T)

    @cached_property
    def covariance(self) -> Floats:
        """The sandwich over prompts, shape (M + K, M + K)."""
        squares = (self.scores.T @ self.scores).toarray()
        sandwich: Floats = self.directions @ squares @ self.directions.T
        return self.correction * sandwich

    @property
    def errors(self) -> Floats:
        """Standard errors of all coefficients; 0 for anchors."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    @property
    def quantile(self) -> float:
        """The quantile of Student's t for intervals, with one degree of freedom fewer than
        prompts."""
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
    """The quantile of Student's t for 95% intervals from so many independent prompts."""
    return float(stdtrit(max(n_prompts - 1, 1), (1 + LEVEL) / 2))


def model_columns(battles: Battles) -> sp.csr_array:
    """A matrix with 1 for the first and −1 for the second model of each battle, shape (n, M)."""
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
    levels = lsqr(incidence, one_above, atol=SOLVER_TOLERANCE, btol=SOLVER_TOLERANCE)[0]
    misfit = np.abs(incidence @ levels - one_above).max()
    return bool(misfit > MAX_ROUNDING)


@dataclass(frozen=True, eq=False)
class Design:
    """The columns x_i of the model: 1 for the first model, −1 for the second, and the features.

    It is never stored as a matrix. Sums over battles are counts by model, which are exact whatever
    the number of threads.

    Attributes:
        first, second: the models of each battle, shape (n,).
        features: Δx of each battle, shape (n, K).
        n_models: M.
    """

    first: Ints
    second: Ints
    features: Floats
    n_models: int

    @property
    def n_coefficients(self) -> int:
        """M + K."""
        return self.n_models + int(self.features.shape[1])

    def only(self, rows: slice | Ints) -> Design:
        """Keep some of the battles."""
        return Design(self.first[rows], self.second[rows], self.features[rows], self.n_models)

    def predictor(self, coefficients: Floats) -> Floats:
        """x_iᵀ (θ, β) of each battle, shape (n,)."""
        theta = coefficients[: self.n_models]
        beta = coefficients[self.n_models :]
        of_features: Floats = np.einsum("nk,k->n", self.features, beta)
        return theta[self.first] - theta[self.second] + of_features

    def weighted_sum(self, weight: Floats) -> Floats:
        """Σ_i w_i x_i, shape (M + K,)."""
        of_features = np.einsum("nk,n->k", self.features, weight)
        return np.concatenate([self._sum_by_model(weight), of_features])

    def _sum_by_model(self, values: Floats) -> Floats:
        as_first = np.bincount(self.first, values, self.n_models)
        return np.asarray(as_first - np.bincount(self.second, values, self.n_models), np.float64)

    def weighted_squares(self, weight: Floats) -> Floats:
        """Σ_i w_i x_i x_iᵀ, shape (M + K, M + K)."""
        n_models = self.n_models
        pair = self.first * n_models + self.second
        of_pairs = np.bincount(pair, weight, n_models * n_models).reshape(n_models, n_models)
        of_pairs += of_pairs.T.copy()
        squares = np.zeros((self.n_coefficients, self.n_coefficients))
        squares[:n_models, :n_models] = np.diag(of_pairs.sum(axis=0)) - of_pairs
        weighted = weight[:, None] * self.features
        for k in range(self.features.shape[1]):
            of_models = self._sum_by_model(weighted[:, k])
            squares[:n_models, n_models + k] = of_models
            squares[n_models + k, :n_models] = of_models
        squares[n_models:, n_models:] = np.einsum("nk,nl->kl", weighted, self.features)
        return squares

    def sums_by_cluster(self, weight: Floats, cluster: Ints) -> sp.csr_array:
        """Σ_i∈g w_i x_i of each cluster g, numbered from 0, shape (G, M + K)."""
        n_clusters = int(cluster.max(initial=-1)) + 1
        signed = np.concatenate([weight, -weight])
        places = (np.tile(cluster, 2), np.concatenate([self.first, self.second]))
        of_models = sp.csr_array((signed, places), shape=(n_clusters, self.n_models))
        of_features = [np.bincount(cluster, weight * x, n_clusters) for x in self.features.T]
        if not of_features:
            return of_models
        return sp.csr_array(sp.hstack([of_models, sp.csr_array(np.stack(of_features, axis=1))]))


def fit(
    battles: Battles,
    features: Floats,
    components: Components,
    outcome: Floats | None = None,
    rows: Ints | None = None,
    start: Floats | None = None,
) -> Fit:
    """Estimate the strengths of the models and the effects of features.

    Args:
        battles: with M models.
        features: Δx of each battle, shape (n, K); K may be 0.
        components: sets of models that battles connect. In each, strengths are relative to one
            model, the anchor; before that, a small penalty makes the Hessian invertible.
        outcome: instead of the battles' own.
        rows: the battles to use; all if None.
        start: strengths to begin with, which changes the time and not the result.
    """
    n_models = len(battles.models)
    used: slice | Ints = slice(None) if rows is None else rows
    design = Design(battles.first, battles.second, features, n_models).only(used)
    y = (battles.outcome if outcome is None else outcome)[used]
    weight = battles.weight[used]
    solved = newton(design, y, weight, _first_guess(design, start))
    prompts, prompt_index = np.unique(battles.prompt[used], return_inverse=True)
    p = expit(design.predictor(solved.coefficients))
    scores = design.sums_by_cluster(weight * (y - p), prompt_index)
    directions: Floats = np.asarray(np.linalg.inv(solved.hessian), np.float64)
    return Fit(
        _anchored(solved.coefficients, components),
        scores,
        _anchored(directions, components),
        prompts,
        n_models,
        solved.converged,
    )


def _first_guess(design: Design, strengths: Floats | None) -> Floats:
    guess = np.zeros(design.n_coefficients)
    if strengths is not None:
        guess[: design.n_models] = strengths - strengths.mean()
    return guess


def _anchored(by_coefficient: Floats, components: Components) -> Floats:
    """Rows of models less the row of their anchor; rows of features as they are."""
    anchor_of_model = components.anchors[components.of_model]
    anchored = by_coefficient.copy()
    anchored[: len(anchor_of_model)] -= by_coefficient[anchor_of_model]
    return anchored


@dataclass(frozen=True, eq=False)
class Maximum:
    """Where the penalised likelihood is largest, with its negative Hessian there."""

    coefficients: Floats
    hessian: Floats
    converged: bool


def log_likelihood(design: Design, y: Floats, weight: Floats, coefficients: Floats) -> float:
    """Σ w [y log p + (1 − y) log(1 − p)] − λ/2 ‖β‖², without overflow."""
    f = design.predictor(coefficients)
    fit_of_data = np.sum(weight * (y * f - np.logaddexp(0.0, f)))
    return float(fit_of_data - RIDGE / 2 * coefficients @ coefficients)


def newton(design: Design, y: Floats, weight: Floats, start: Floats | None = None) -> Maximum:
    """Newton's method with halved steps where the likelihood would fall."""
    n_coefficients = design.n_coefficients
    coefficients = np.zeros(n_coefficients) if start is None else start
    value = log_likelihood(design, y, weight, coefficients)
    hessian = RIDGE * np.eye(n_coefficients)
    for _ in range(MAX_STEPS):
        p = expit(design.predictor(coefficients))
        gradient = design.weighted_sum(weight * (y - p)) - RIDGE * coefficients
        hessian = design.weighted_squares(weight * p * (1 - p)) + RIDGE * np.eye(n_coefficients)
        step = np.linalg.solve(hessian, gradient)
        if np.abs(step).max(initial=0.0) < TOLERANCE:
            return Maximum(coefficients, hessian, True)
        size = 1.0
        while size > TOLERANCE:
            moved = coefficients + size * step
            moved_value = log_likelihood(design, y, weight, moved)
            if moved_value >= value:
                break
            size /= 2
        else:  # no step of any size is uphill: rounding ends the search
            return Maximum(coefficients, hessian, True)
        coefficients = moved
        value = moved_value
    return Maximum(coefficients, hessian, False)
