"""A proof that p stays within a ball of p̂ log t + ρ' for ever, from the last computed point on.

Let every document select one type (V = 0), let p̂ be the shortest vector with D·p̂ = 1 on the tight pairs, and let ρ' be such that
their forces λ = K e^{−D·ρ'} > 0 add up to p̂. The exact flow is dp/dτ = e^τ Σ κ(p) e^{−D·p} D over all pairs, and κ = K (1 + ε) with
|ε| ≤ θ e^{τ₀−τ} where unselected weights are small. With R = p − p̂τ − ρ', b = K e^{−δτ−D·ρ'}, δ = D·p̂ − 1 and x e^{−x} ≤ 1/e,

    d/dτ ½|R|² ≤ θ e^{τ₀−τ} Σ_T λ + 1.5/e Σ_push b + 1.5 Σ_pull |b| |D| r e^{|D| r}        as long as |R| ≤ r,

so that |R| < r for ever if ½|R₀|² and the integral of the right side from τ₀ on are together less than ½r² (docs/theory.md). Linear
algebra is bounded by a-priori rounding errors, the inequality evaluated in interval arithmetic (mpmath).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray

from tokensieve.arrays import Floats, Ints
from tokensieve.text.counts import Counts
from tokensieve.theory.flow.split import Exponentials
from tokensieve.theory.geometry import span_of
from tokensieve.theory.limit.certify import FlowLimit

# Radii that are tried.
_RADII = np.geomspace(1.0, 300.0, 40)
# Covers the rounding of the error bounds themselves, which are sums of positive numbers.
_ABOVE = 1 + 1e-9
# More pairs than this take too long in interval arithmetic.
_MOST = 20_000


class _Inequality:
    """The inequality at a point of the split flow, in floating point: `left` < `right` at the best r, `radius` (0 if unselected
    weights are too large), and `needed`, the log t from which on it would hold at the best of points (R₀ = 0)."""

    def __init__(self, phi: Exponentials, balance: Any, q: Floats, log_time: float) -> None:
        D = phi.F[phi.pairs[:, 0]] - phi.F[phi.pairs[:, 1]]
        self._delta, self._size = D @ balance.direction - 1, np.linalg.norm(D, axis=1)
        tight = (self._delta <= 1e-6) & ~phi.without_force
        self._push, self._pull = (
            ~tight & ~phi.without_force & (phi.sign == side) for side in (1, -1)
        )
        offset, B = q - balance.direction * log_time, span_of(phi.F, phi.pairs[tight])
        toward = B @ (B.T @ (offset - balance.rho))
        self._at, self._log_k, self._weight = D @ (offset - toward), phi.log_k, phi.log_weight
        self.left, self.right, self.radius = self._best(log_time, float(np.linalg.norm(toward)))
        times = (float(t) for t in log_time * np.geomspace(1.0, 1e4, 200))
        self.needed = next((t for t in times if np.less(*self._best(t, 0.0)[:2])), math.inf)
        self.log_time = log_time

    def _best(self, tau: float, start: float) -> tuple[float, float, float]:
        """Both sides and r."""
        log_b = self._log_k - self._at - self._delta * tau
        best, pull, push = (math.inf, 1.0, 0.0), self._pull, self._push
        pushed = np.exp(np.minimum(log_b[push] - 1, 300.0)) / self._delta[push]
        for r in _RADII.tolist():
            reach = self._size * r
            if (self._weight - self._at - (1 + self._delta) * tau + reach).max() > -8.0:
                break
            pulled = (
                np.exp(np.minimum(log_b[pull] + reach[pull], 300.0))
                * reach[pull]
                / self._delta[pull]
            )
            left = 0.5 * start**2 + 1.5 * float(pushed.sum() + pulled.sum())
            if left / (r * r / 2) < best[0] / best[1]:
                best = (left, r * r / 2, r)
            if best[0] < 0.5 * best[1]:
                break
        return best

    @property
    def words(self) -> str:
        """Whether it holds, and else by how much it fails and from where on it can hold."""
        at = f"at the end of the curve, log t = {self.log_time:.4g}"
        if self.left < self.right:
            return f"its inequality holds {at}"
        words = f"its inequality fails {at}: {self.left:.3g} must be below {self.right:.3g}"
        if not self.radius:
            words = f"unselected tokens have too much weight for its inequality {at}"
        later = (
            f"it can hold from log t = {self.needed:.4g} on"
            if math.isfinite(self.needed)
            else "no log t suffices"
        )
        return f"{words}; {later}"


def prove(limit: FlowLimit, counts: Counts, E: Floats, w: Floats) -> FlowLimit:
    """A certified limit with the result of the proof: `unproved` is "" where it succeeds, else why it does not.

    Embeddings E, shape (|S|, d), and values w, shape (|S|,), are those of the flow: the proof is about exactly these numbers.
    """
    face, balance, direction, flow = limit.face, limit.balance, limit.direction, limit.flow
    if limit.prediction is None or face is None or balance is None or direction is None:
        return replace(limit, unproved="the proof covers limits in which p grows without end")
    log_time = float(flow.log_time[-1])
    entry = _Inequality(
        limit.prediction.phases[-1].slow, balance, face.outside.T @ flow.coordinates[-1], log_time
    )
    if face.dimension:
        why = f"the proof does not cover finite score gaps; even without them {entry.words}"
        why = why.replace(
            "even without them its inequality holds", "without them its inequality holds"
        )
    elif entry.left >= entry.right:
        why = entry.words
    else:
        why = _inequality(counts, E, w, face.mask, flow.p, (direction, log_time, entry.radius))
    figures = {
        "log_time": log_time,
        "radius": entry.radius,
        "left": entry.left,
        "right": entry.right,
    }
    figures |= {"needed_log_time": entry.needed} if entry.left >= entry.right else {}
    return replace(
        limit, unproved=why, proof={name: x for name, x in figures.items() if math.isfinite(x)}
    )


def _gamma(n: int) -> float:
    """Relative error of a sum of n products of rounded numbers."""
    return (n + 4) * 2.0**-53 * _ABOVE


def _inverse_norm(G: Floats, error: Floats) -> tuple[Floats, float]:
    """An approximate inverse of a symmetric matrix known up to `error`, and a bound on the norm of the exact one."""
    X = np.linalg.inv(G)
    off = (
        np.abs(np.eye(len(G)) - X @ G)
        + 1e-15
        + _gamma(len(G)) * (np.abs(X) @ np.abs(G))
        + np.abs(X) @ error
    )
    rest = float(off.sum(axis=1).max()) * _ABOVE
    return np.asarray(X), float(np.abs(X).sum(axis=1).max()) * _ABOVE / (
        1 - rest
    ) if rest < 1 else math.inf


def _inequality(
    counts: Counts,
    E: Floats,
    w: Floats,
    selected: NDArray[np.bool_],
    p: Floats,
    at: tuple[Floats, float, float],
) -> str:
    """Why the inequality is not proved, "" where it is, with `at` = (p̂ as computed, log t at the point p, r)."""
    direction, tau, r = at
    try:
        from mpmath import iv  # type: ignore[import-untyped]
    except ImportError:
        return "a proof needs interval arithmetic: pip install mpmath"
    m, document, y = counts.matrix, counts.entry_documents, counts.signs
    rest = np.flatnonzero(~selected)
    if (np.bincount(document[selected], minlength=counts.n_documents) > 1).any():
        return "some document selects several types"
    lead, held = np.zeros((2, counts.n_documents), np.int64)
    lead[document[selected]], held[document[selected]] = m.indices[selected], m.data[selected]
    d, other = document[rest], m.indices[rest]
    s = lead[d]
    pairs, which = np.unique(np.stack([s, other], axis=1), axis=0, return_inverse=True)
    if len(pairs) > _MOST:
        return f"{len(pairs):,} pairs are too many for interval arithmetic"
    tree = _Forest(E, pairs, direction)
    delta, certain = tree.excess()
    if not certain:
        return "a margin is indistinguishable from 1 in double precision"
    tight = delta == 0
    # K of each entry, and b = K e^{−n·y} of the tight ones.
    apart = [iv.mpf(float(w[a])) - float(w[b]) for a, b in zip(s, other, strict=True)]
    K = [
        float(y[x])
        * gap
        * float(m.data[i])
        / (counts.n_documents * int(held[x]) * (1 + iv.exp(float(y[x]) * iv.mpf(float(w[a])))))
        for x, a, i, gap in zip(d.tolist(), s, rest, apart, strict=True)
    ]
    if any(gap.a <= 0 <= gap.b for gap in apart):
        return "an unselected token has the value of the selected one"
    which = which.ravel()
    if any(k.a <= 0 for k, j in zip(K, which, strict=True) if tight[j]):
        return "an active constraint works against convergence"
    if not tree.balanced(iv, K, which, tight):
        return "the active constraints do not balance p̂"
    start, below = tree.start(p, tau)
    # The inequality itself.
    size = tree.size
    log_b = [-(iv.mpf(float(delta[j])) * tau + float(below[j])) for j in range(len(pairs))]
    reach = [iv.exp(iv.mpf(float(size[j])) * r) for j in range(len(pairs))]
    weight = [iv.exp(log_b[j] - tau) * reach[j] for j in range(len(pairs))]
    eta: dict[int, Any] = dict.fromkeys(d.tolist(), iv.mpf(0))
    wide, narrow = dict.fromkeys(d.tolist(), 0.0), dict.fromkeys(d.tolist(), math.inf)
    for x, i, j, gap in zip(d.tolist(), rest, which, apart, strict=True):
        eta[x] += weight[j] * float(m.data[i]) / int(held[x])
        wide[x], narrow[x] = max(wide[x], float(abs(gap).b)), min(narrow[x], float(abs(gap).a))
    theta = max(
        ((eta[x] * (2 * wide[x] * (1 + 1 / iv.mpf(narrow[x])) + 1)).b for x in eta), default=0
    )
    if theta > 0.5:
        return "unselected tokens still have too much weight"
    total = iv.mpf(float(start)) ** 2 / 2
    for k, j in zip(K, which, strict=True):
        force = abs(k) * iv.exp(log_b[j])
        if tight[j]:
            total += theta * force
        elif k.a > 0:
            total += 1.5 * force / iv.e / float(delta[j])
        else:
            total += 1.5 * force * reach[j] * float(size[j]) * r / float(delta[j])
    most = f"½|R₀|² and all later forces are {float(total.b):.3g}, ½r² is {r * r / 2:.3g}"
    return "" if total < iv.mpf(r) ** 2 / 2 else most


class _Forest:
    """Tight pairs A with independent differences, of which every other tight pair is an integer combination, and exact p̂ and ρ'.

    p̂ = Dᵀ_A λ is the shortest vector with D_A·p̂ = 1; ρ' is known by y = D_A·ρ'. Both are enclosed: a computed vector, and how far
    the exact one may be from it.
    """

    def __init__(self, E: Floats, pairs: Ints, direction: Floats) -> None:
        D = E[pairs[:, 0]] - E[pairs[:, 1]]
        self.size = np.linalg.norm(D, axis=1) * _ABOVE
        incidence = np.zeros((len(pairs), len(E)))
        rows = np.arange(len(pairs))
        incidence[rows, pairs[:, 0]], incidence[rows, pairs[:, 1]] = 1.0, -1.0
        near = np.flatnonzero(D @ direction <= 1 + 1e-6)
        triangle, order = la.qr(incidence[near].T, mode="r", pivoting=True)
        chosen = near[order[: int(np.sum(np.abs(np.diag(triangle)) > 1e-8))]]
        self._N = np.rint(incidence @ np.linalg.pinv(incidence[chosen]))
        self._joined = (self._N @ incidence[chosen] == incidence).all(axis=1)
        self._D, self._A = D, D[chosen]
        A, k = self._A, len(chosen)
        self._long = float(np.linalg.norm(A)) * _ABOVE
        self._X, self._inverse = _inverse_norm(
            A @ A.T, _gamma(E.shape[1]) * (np.abs(A) @ np.abs(A).T)
        )
        self._lam = self._X @ np.ones(k)
        self._lam = self._lam + self._X @ (1 - A @ (A.T @ self._lam))
        self._p = A.T @ self._lam
        lost = _gamma(k) * (np.abs(A).T @ np.abs(self._lam))
        short = (
            np.abs(1 - A @ self._p)
            + np.abs(A) @ lost
            + _gamma(E.shape[1]) * (np.abs(A) @ np.abs(self._p))
        )
        self._lam_error = self._inverse * math.sqrt(k) * float(short.max()) * _ABOVE
        self._p_error = (self._long * self._lam_error + float(np.linalg.norm(lost))) * _ABOVE
        # Of D·x per unit of |x|: rounding of D and of the product.
        self._loss = _gamma(E.shape[1]) * 2 * float(np.linalg.norm(E, axis=1).max()) * _ABOVE

    def excess(self) -> tuple[Floats, bool]:
        """δ = D·p̂ − 1 of each pair, exact for combinations of A, else a lower bound; and whether it is certainly ≥ 0 for all."""
        size = self.size * self._p_error + self._loss * float(np.linalg.norm(self._p))
        apart = (self._D @ self._p - 1 - size) * (1 - 1e-9)
        delta = np.where(self._joined, self._N.sum(axis=1) - 1, apart)
        return delta, bool(
            math.isfinite(self._p_error) and (np.where(self._joined, delta >= 0, delta > 0)).all()
        )

    def balanced(self, iv: Any, K: list[Any], which: Ints, tight: NDArray[np.bool_]) -> bool:
        """Enclose y, where Σ_T K e^{−n·y} n = λ, by Newton's method and convexity; whether that succeeds."""
        N = self._N
        total = np.bincount(which, [float(k.mid) for k in K], len(N)) * tight
        x = np.zeros(len(self._lam))
        for _ in range(200):
            b = np.where(tight, total * np.exp(np.minimum(-N @ x, 300.0)), 0.0)
            step = np.linalg.lstsq(N.T @ (b[:, None] * N), N.T @ b - self._lam, rcond=None)[0]
            x = x + step * min(1.0, 2.0 / max(float(np.abs(N[tight] @ step).max()), 1e-300))
            if np.abs(step).max() < 1e-13:
                break
        b = np.where(tight, total * np.exp(-N @ x), 0.0)
        sums = [iv.mpf(float(-one)) for one in self._lam]
        for k, j in zip(K, which, strict=True):
            if tight[j]:
                path = np.flatnonzero(N[j])
                force = k * iv.exp(
                    -sum((int(N[j, a]) * iv.mpf(float(x[a])) for a in path), iv.mpf(0))
                )
                for a in path:
                    sums[a] += int(N[j, a]) * force
        miss = math.sqrt(sum(float(abs(one).b) ** 2 for one in sums)) * _ABOVE + self._lam_error
        bend = N.T @ (b[:, None] * N)
        inverse = _inverse_norm(bend, 1e-11 * (np.abs(N).T @ (b[:, None] * np.abs(N))))[1]
        self._x, self._x_error = x, 2 * miss * inverse * _ABOVE
        longest = float(np.linalg.norm(N[tight], axis=1).max())
        return longest * self._x_error < 0.6

    def start(self, p: Floats, tau: float) -> tuple[float, Floats]:
        """A bound on |R₀|, and lower bounds on D·ρ'."""
        A, offset = self._A, p - tau * self._p
        rho = offset + A.T @ (self._X @ (self._x - A @ offset))
        left = np.abs(self._x - A @ rho) + _gamma(A.shape[1]) * (np.abs(A) @ np.abs(rho))
        error = self._long * self._inverse * (float(np.linalg.norm(left)) + self._x_error) * _ABOVE
        lost = (
            8
            * 2.0**-53
            * float(np.linalg.norm(p) + tau * np.linalg.norm(self._p) + np.linalg.norm(rho))
        )
        first = (
            float(np.linalg.norm(p - tau * self._p - rho)) + tau * self._p_error + error + lost
        ) * _ABOVE
        return first, self._D @ rho - (
            self.size * error + self._loss * float(np.linalg.norm(rho))
        ) * _ABOVE
