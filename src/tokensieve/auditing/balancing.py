"""Weights under which chosen features no longer predict the label (entropy balancing).

A trainer that uses the weights sees every class contain the features equally often, so it gains
nothing by relying on them. Among all such weights, these stay closest to 1 in relative entropy
(Hainmueller 2012, eq. 3 and 4, with the common rates left free instead of fixed in advance):

    minimise   Σ_k w_k (log w_k − 1)      over 0 ≤ w_k ≤ MAX_WEIGHT
    subject to Σ_{k in class c} w_k = n_c                                  for every class c
               Σ_{k in class c} w_k z_kj / n_c  the same for all classes   for every feature j

z_kj is 1 if document k has feature j. For preference pairs there is one class, z_kj is +1 if only
the chosen answer has the feature, −1 if only the rejected one has it, and its weighted sum is 0:
each feature wins half of the pairs in which the answers differ.

If documents can have several labels, each label splits them into two classes, those with it and
those without, and the constraints hold for every label.

Documents of one class with the same features get the same weight, so the problem is solved for such
cells. Its dual is smooth and convex: with the constraints written as Σ_i N_i A_ri w_i = b_r,

    minimise   Σ_i N_i φ(Σ_r μ_r A_ri) − μ·b      over μ

with w_i = min(exp(Σ_r μ_r A_ri), MAX_WEIGHT), where φ(η) = exp(η) up to log MAX_WEIGHT, and goes on
linearly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tokensieve.arrays import Floats, Ints
from tokensieve.errors import InputError
from tokensieve.text.formatting import is_formatting

# One document never counts as more than 20: surveys cap raked weights at 5 to 20 times the mean,
# because beyond that a few documents decide the result (Potter & Zheng 2015).
MAX_WEIGHT = 20.0
# With an effective sample size below a quarter of the documents, standard errors more than double.
MIN_EFFECTIVE_FRACTION = 0.25
LENGTH_NAMES = ("⟨length ", "longer answer")  # of features of documents and of pairs
TOLERANCE = 1e-6  # largest difference between classes in how often they contain a feature


@dataclass(frozen=True)
class Balance:
    """Weights that balance features, and what could not be balanced.

    Attributes:
        weights: of each document, shape (n,); they sum to n, and to n_c within each class.
        balanced: whether each feature is balanced, shape (J,); the others are left as they are.
        effective_size: Kish's effective sample size, (Σ w)² / Σ w².
    """

    weights: Floats
    balanced: NDArray[np.bool_]
    effective_size: float

    @property
    def effective_fraction(self) -> float:
        """The effective sample size as a fraction of the documents."""
        return self.effective_size / len(self.weights)


@dataclass(frozen=True)
class _Cells:
    """Documents that have the same class and the same features.

    Attributes:
        cell: the cell of each document, shape (n,).
        sizes: N, documents in each cell, shape (C,).
        features: z of each cell, shape (C, J).
        classes: class of each cell, shape (C, L): one column, or one for each of several labels.
    """

    cell: Ints
    sizes: Floats
    features: Floats
    classes: Ints


@dataclass(frozen=True)
class _Constraints:
    """Σ_i N_i A_ri w_i = b_r, with A of shape (R, C) and b of shape (R,)."""

    matrix: Floats
    targets: Floats


def balance(features: NDArray[np.number], labels: Ints) -> Balance:
    """Compute weights under which the features are equally frequent in every class.

    A feature that no weights can balance, alone or beside those before it, is left out and marked
    in `Balance.balanced`: one that occurs in a single class, for example. Put the features that
    matter most first.

    Args:
        features: z, shape (n, J).
        labels: class of each document, shape (n,), values 0 … K−1. All 0 for pairs: then the
            weighted sum of every feature becomes 0. If documents can have several labels, shape
            (n, L): whether each has the label, 0 or 1; the features are balanced for each of them.
    """
    n_documents = len(features)
    cells = _group_by_features(features.astype(np.float64), labels.reshape(n_documents, -1))
    is_balanced = _can_be_balanced(cells)
    chosen = np.flatnonzero(is_balanced)
    if not len(chosen):
        return Balance(np.ones(n_documents), is_balanced, float(n_documents))
    weights = _closest_weights(cells, _constraints(cells, chosen))[cells.cell]
    return Balance(weights, is_balanced, _effective_size(weights))


def _can_be_balanced(cells: _Cells) -> NDArray[np.bool_]:
    """Whether weights balance each feature besides those before it that they can balance, (J,)."""
    n_features = cells.features.shape[1]
    everything = np.ones(n_features, dtype=np.bool_)
    if n_features and _is_feasible(cells, _constraints(cells, np.flatnonzero(everything))):
        return everything
    is_balanced = np.zeros(n_features, dtype=np.bool_)
    for feature in range(n_features):
        tried = np.append(np.flatnonzero(is_balanced), feature)
        is_balanced[feature] = _is_feasible(cells, _constraints(cells, tried))
    return is_balanced


def _effective_size(weights: Floats) -> float:
    """Kish's effective sample size of weights, shape (n,)."""
    return float(weights.sum() ** 2 / (weights**2).sum())


def require_enough_documents(
    result: Balance, names: Sequence[str], features: NDArray[np.number], labels: Ints
) -> None:
    """Raise an `InputError` if the weights leave too few effective documents to train on.

    The message names the feature whose absence leaves most, which is found by leaving out each.
    """
    if result.effective_fraction >= MIN_EFFECTIVE_FRACTION:
        return
    cells = _group_by_features(features.astype(np.float64), labels.reshape(len(labels), -1))
    balanced = np.flatnonzero(result.balanced)
    sizes_without = {}
    for j in balanced.tolist():
        without = _closest_weights(cells, _constraints(cells, balanced[balanced != j]))
        sizes_without[names[j]] = _effective_size(without[cells.cell])
    costliest = max(sizes_without, key=lambda name: sizes_without[name])
    advice = f"leave out {costliest!r}, or remove it from the texts with `tokensieve mask` instead"
    if is_formatting(costliest):
        advice = f"leave out {costliest!r}"
    if any(name in costliest for name in LENGTH_NAMES):
        advice = "leave out --length"
    raise InputError(
        f"these weights would leave the evidence of {result.effective_size:,.0f} of "
        f"{len(result.weights):,} rows, which is less than {MIN_EFFECTIVE_FRACTION:.0%}: {advice}"
    )


def _group_by_features(features: Floats, labels: Ints) -> _Cells:
    """The cells of rows that have the same labels and features, and which cell each row is in.

    Args:
        features: shape (rows, J).
        labels: shape (rows, L).
    """
    n_labels = labels.shape[1]
    rows = np.column_stack([labels, features])
    distinct, cell, sizes = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    return _Cells(
        cell=cell.reshape(-1),
        sizes=sizes.astype(np.float64),
        features=distinct[:, n_labels:],
        classes=distinct[:, :n_labels].astype(np.int64),
    )


def _constraints(cells: _Cells, chosen: Ints) -> _Constraints:
    """The constraints of some features: class sizes stay, and rates agree with the last class."""
    rows = []
    targets = []
    for classes in cells.classes.T:
        sizes = np.bincount(classes, weights=cells.sizes)
        n_classes = len(sizes)
        is_in_class = np.arange(n_classes)[:, None] == classes  # (K, C)
        within_class = is_in_class / sizes[:, None]
        rows.append(within_class)
        targets.append(np.ones(n_classes))
        for feature in chosen:
            rates = within_class * cells.features[:, feature]
            difference = rates if n_classes == 1 else rates[:-1] - rates[-1]
            rows.append(difference)
            targets.append(np.zeros(len(difference)))
    return _Constraints(np.concatenate(rows), np.concatenate(targets))


def _is_feasible(cells: _Cells, constraints: _Constraints) -> bool:
    """Whether weights from 0 to MAX_WEIGHT satisfy the constraints, by linear programming.

    Weights that are all 0 where a feature occurs would satisfy every constraint, but they remove
    documents instead of balancing them. So only weights of 1 / MAX_WEIGHT or more count here. The
    weights closest to 1, which are taken then, can be smaller in a few cells.
    """
    from scipy.optimize import linprog

    solution = linprog(
        np.zeros(len(cells.sizes)),
        A_eq=constraints.matrix * cells.sizes,
        b_eq=constraints.targets,
        bounds=(1 / MAX_WEIGHT, MAX_WEIGHT),
        method="highs",
    )
    return bool(solution.status == 0)


def _closest_weights(cells: _Cells, constraints: _Constraints) -> Floats:
    """The weight of each cell, shape (C,): the minimiser of the dual in the module's docstring."""
    from scipy.optimize import minimize

    largest_exponent = np.log(MAX_WEIGHT)

    def weights_of(multipliers: Floats) -> Floats:
        return np.exp(np.minimum(multipliers @ constraints.matrix, largest_exponent))

    def dual(multipliers: Floats) -> float:
        exponent = multipliers @ constraints.matrix
        beyond = np.maximum(exponent - largest_exponent, 0.0)
        conjugate = np.exp(exponent - beyond) + MAX_WEIGHT * beyond
        return float(cells.sizes @ conjugate - multipliers @ constraints.targets)

    def gradient(multipliers: Floats) -> Floats:
        reached: Floats = constraints.matrix @ (cells.sizes * weights_of(multipliers))
        return reached - constraints.targets

    def hessian(multipliers: Floats) -> Floats:
        is_free = multipliers @ constraints.matrix < largest_exponent
        curvature = cells.sizes * weights_of(multipliers) * is_free
        second_derivatives: Floats = (constraints.matrix * curvature) @ constraints.matrix.T
        return second_derivatives

    n_constraints = len(constraints.targets)
    solution = minimize(
        dual,
        np.zeros(n_constraints),
        jac=gradient,
        hess=hessian,
        method="trust-exact",
        options={"gtol": TOLERANCE / 100, "maxiter": 1000},
    )
    largest_error = np.abs(gradient(solution.x)).max()
    if largest_error > TOLERANCE:
        raise InputError(
            f"no weights up to {MAX_WEIGHT:g} balance these features to {TOLERANCE:g} (reached "
            f"{largest_error:.1g}): choose fewer features"
        )
    return weights_of(solution.x)
