"""One gradient step on the embeddings, its exact remainder, and an a-priori bound on that
remainder.

Lemma 4.1 of Wu, Shevchenko, Oymak, Mondelli (NeurIPS 2025), for any data: from E⁰, p ~ N(0, I/d)
and a unit vector v, one full-batch step of size η on E gives

    E¹_s = E⁰_s + (η/2) α_s v + R_s,            α_s = mean_X y c_{X,s}/T_X.

The gradient is ∇_E L = a pᵀ + b vᵀ exactly (see `tokensieve.model.attention`), so the remainder is
known exactly and not just up to a constant:  R_s = −η (a_s p + (b_s + α_s/2) v).

With K classes, heads V = [v_1 … v_K] and α_{s,k} = mean_X (1[y=k] − 1/K) c_{X,s}/T_X, the step is η
Σ_k α_{s,k} v_k and R_s = −η (a_s p + V (b_s + α_s)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from tokensieve.arrays import Floats
from tokensieve.errors import InputError
from tokensieve.model.attention import Gradient, gradient
from tokensieve.text.counts import Counts
from tokensieve.theory.embeddings import Start

# A mean logit of the first step below this is rounding: no type differs between the classes.
NO_SIGNAL = 1e-15
# What rounding may add to the norm of a remainder, relative to it.
ROUNDING = 1e-12
# The numbers of a step in summary.json.
FIGURES = "slope expected_slope r2 relative_remainder bound eta score_range answer_range".split()


@dataclass(frozen=True)
class OneStep:
    """How one gradient step changed the embeddings, compared with Lemma 4.1.

    Attributes:
        start, eta: the embeddings and vectors before the step, and its size η.
        alpha: average signed frequency, shape (|S|,), or (|S|, K) with K heads.
        a, b: ∂L/∂u, shape (|S|,), and ∂L/∂w, the shape of alpha, at the start.
        alignment: (E¹_s − E⁰_s)ᵀv, the shape of alpha.
        slope, r2: least-squares slope of alignment against alpha (with intercept, all heads
            together) and squared correlation; nan if alpha is constant. expected_slope is η/2 for
            two classes, η for K heads.
        remainder_norms, bound_norms: ‖R_s‖ of each type, and the a-priori bound on it (see
            `one_step`), shape (|S|,).
        relative_remainder, bound: ‖R‖_F / ‖E¹ − E⁰ − R‖_F, inf if every alpha is zero; and with
            bound_norms in the numerator.
        score_range, answer_range: U = (max_s u_s − min_s u_s)/2, which the bound uses, and F =
            max_X |f_X| over all heads.
    """

    start: Start
    eta: float
    alpha: Floats
    a: Floats
    b: Floats
    alignment: Floats
    slope: float
    expected_slope: float
    r2: float
    remainder_norms: Floats
    bound_norms: Floats
    relative_remainder: float
    bound: float
    score_range: float
    answer_range: float

    @staticmethod
    def default_size(counts: Counts) -> float:
        """η₀ such that mean_X |Σ_s (c_{X,s}/T_X) (η₀/2) α_s| = 1: documents read with equal
        attention have logits of about ±1.

        With a much smaller step p may select important tokens in the documents of one class only;
        with a much larger one the curve takes longer to settle.

        Raises:
            InputError: every α_s is zero, so no first step carries a signal.
        """
        signal = counts.matrix @ counts.signed_frequency() / np.maximum(counts.lengths, 1.0)
        typical = float(np.abs(signal).mean()) if signal.size else 0.0
        if typical < NO_SIGNAL:
            raise InputError(
                "every token type is equally frequent in both classes, so there is no signal to "
                "verify; choose the first step yourself (--eta)"
            )
        return 2 / typical

    @property
    def bound_holds(self) -> bool:
        """Whether ‖R_s‖ is within its bound for every type, up to rounding."""
        return bool(np.all(self.remainder_norms <= self.bound_norms * (1 + ROUNDING)))

    def embeddings(self) -> Floats:
        """E¹ = E⁰ − η (a pᵀ + b vᵀ), shape (|S|, d)."""
        E, p, v = self.start
        step = np.column_stack([self.a, self.b]) * self.eta
        return np.asarray(E - step @ np.column_stack([p, v]).T)

    def to_dict(self) -> dict[str, float | bool | None]:
        """The figures of the step, ready for JSON (undefined ones are None)."""
        figures: dict[str, float | bool | None] = {"bound_holds": self.bound_holds}
        for name in FIGURES:
            value = float(getattr(self, name))
            figures[name] = value if math.isfinite(value) else None
        return figures


def one_step(counts: Counts, E: Floats, p: Floats, v: Floats, eta: float) -> OneStep:
    """One full-batch gradient step of size η on E, in O(nonzeros + |S|·d), with its exact remainder
    and a bound.

    The bound needs only U = half the range of the scores u = E⁰p, F = max_X |f_X| and φ_s = mean_X
    c_{X,s}/T_X. A softmax weight is within e^{±2U} of c_{X,s}/T_X, and |σ(−yf) − 1/2| ≤
    tanh(F/2)/2, so

        |b_s + α_s/2| ≤ φ_s [ tanh(F/2)/2 · e^{2U} + (e^{2U} − 1)/2 ]
        |a_s|         ≤ φ_s (1 + tanh(F/2))/2 · e^{2U} (|w_s| + F)
        ‖R_s‖         ≤ η (|a_s| ‖p‖ + |b_s + α_s/2| ‖v‖).

    With K heads there is no bound: it is infinite.

    E has shape (|S|, d), p (d,), and v (d,) for two classes or (d, K) for K classes.

    Raises:
        InputError: shapes that do not agree, no documents, a step size that is not positive, or one
            that overflows.
    """
    _check(counts, E, p, v, eta)
    V = v[:, None] if v.ndim == 1 else v
    has_one_head = V.shape[1] == 1
    u = E @ p
    w = E @ V
    slope = gradient(counts, u, w)
    alpha = counts.signed_frequency(V.shape[1])
    alignment = _alignment(slope, p, V, eta)
    line = stats.linregress(alpha.ravel(), alignment.ravel()) if np.ptp(alpha) else None
    remainder = _remainder(slope, alpha[:, None] / 2 if has_one_head else alpha, p, V)
    bound = np.full(len(w), math.inf)
    if has_one_head:
        bound = _bound(counts, slope, E, p, v)
    return OneStep(
        start=Start(E, p, v),
        eta=float(eta),
        alpha=alpha,
        a=slope.a,
        b=slope.b[:, 0] if has_one_head else slope.b,
        alignment=alignment[:, 0] if has_one_head else alignment,
        slope=float(line.slope) if line else math.nan,
        expected_slope=eta / 2 if has_one_head else eta,
        r2=float(line.rvalue) ** 2 if line else math.nan,
        remainder_norms=eta * remainder.norms,
        bound_norms=eta * bound,
        relative_remainder=remainder.relative(remainder.norms),
        bound=remainder.relative(bound),
        score_range=float(np.ptp(u)) / 2,
        answer_range=float(np.abs(slope.f).max()),
    )


def _check(counts: Counts, E: Floats, p: Floats, v: Floats, eta: float) -> None:
    """Raise an `InputError` for shapes that disagree, no documents, or an unusable step size."""
    if counts.n_documents == 0:
        raise InputError("there are no documents: a gradient step needs at least one")
    if E.shape != (counts.n_types, p.size) or v.shape[:1] != p.shape:
        shapes = f"embeddings {E.shape}, p {p.shape} and v {v.shape}"
        raise InputError(f"{shapes} do not fit {counts.n_types} token types")
    if v.ndim == 2 and v.shape[1] != counts.n_classes:
        raise InputError(
            f"{v.shape[1]} heads for {counts.n_classes} classes: use one head per class"
        )
    if not (math.isfinite(eta) and eta > 0):
        raise InputError(f"step size {eta} is not a positive number; use 1, for example")


def _alignment(slope: Gradient, p: Floats, V: Floats, eta: float) -> Floats:
    """(E¹_s − E⁰_s)ᵀ V of each type, shape (|S|, K)."""
    with np.errstate(over="ignore", invalid="ignore"):
        alignment = -eta * (np.outer(slope.a, p @ V) + slope.b @ (V.T @ V))
        if not math.isfinite(float(np.sum(alignment**2))):
            raise InputError(f"a step of size {eta:g} overflows: use a smaller step size")
    return alignment


@dataclass(frozen=True)
class _Remainder:
    """‖R_s‖/η of each type, and the norm of the whole step without R, over η."""

    norms: Floats
    step_norm: float

    def relative(self, norms: Floats) -> float:
        """The norm of some remainders relative to the step; inf if there is no step."""
        return float(np.linalg.norm(norms)) / self.step_norm if self.step_norm > 0 else math.inf


def _remainder(slope: Gradient, signal: Floats, p: Floats, V: Floats) -> _Remainder:
    """R_s = −η (a_s p + V (b_s + signal_s)), through the triangular factor of [p V]: never |S| ×
    d."""
    factor = np.asarray(np.linalg.qr(np.column_stack([p, V]), mode="r")).T
    rows = np.column_stack([slope.a, slope.b + signal]) @ factor
    step_norm = float(np.linalg.norm(signal @ factor[1:]))
    return _Remainder(np.linalg.norm(rows, axis=1), step_norm)


def _bound(counts: Counts, slope: Gradient, E: Floats, p: Floats, v: Floats) -> Floats:
    """The bound on ‖R_s‖/η of each type, shape (|S|,), for one head.

    R_s = −η (a_s p + V (b_s + signal_s)), so what bounds |a_s| and |b_s + signal_s| bounds it. With
    equal scores, attention is the share c/T of a type; with scores within U of each other it is at
    most e^{2U} times as much. With φ_s = (1/n) Σ_X c_{X,s}/T_X, G = e^{2U} − 1, F = max |f| and
    λ = ½ tanh(F/2), which bounds |σ(−y f) − ½|,

        |a_s| ≤ φ_s (½ + λ)(1 + G)(|w_s| + F),    |b_s + signal_s| ≤ φ_s (λ (1 + G) + G/2).
    """
    document_weights = 1.0 / (np.maximum(counts.lengths, 1.0) * counts.n_documents)
    mean_share = counts.matrix.T @ document_weights  # φ
    scores = E @ p
    growth = math.expm1(float(np.ptp(scores)))  # e^{2U} − 1
    largest_logit = float(np.abs(slope.f).max())  # F
    lean = math.tanh(largest_logit / 2) / 2  # at most |σ(−y f) − ½|
    largest_value = np.abs(E @ v) + largest_logit
    a_bound = mean_share * (0.5 + lean) * (1 + growth) * largest_value
    b_bound = mean_share * (lean * (1 + growth) + growth / 2)
    return np.asarray(a_bound * np.linalg.norm(p) + b_bound * np.linalg.norm(v))
