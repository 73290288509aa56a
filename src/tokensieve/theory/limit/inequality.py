"""The inequality of the theorem "from one point on" (docs/theory.md), in floating point.

`limit.proof` looks with it for a point and radii for which the inequality holds. The proof itself
is `limit.checker`'s, in ball arithmetic, with which this module shares no code.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tokensieve.arrays import Floats, Ints
from tokensieve.theory.flow.equilibrium import Equilibrium
from tokensieve.theory.flow.face import Face
from tokensieve.theory.flow.landscape import Landscape
from tokensieve.theory.flow.slow import UnselectedEntries
from tokensieve.theory.limit.balance import Balance

# Within the tube the Hessian of L_S changes by at most this fraction of itself; the theorem allows
# one half.
MAX_KAPPA = 0.3
# Within the tube no score gap of a document changes by more nats than this.
MAX_CHANGE = 0.01
# The push on V may use this fraction of what the tube withstands; the rest is room for rounding.
ALLOWED_PUSH = 0.8
# As many differences of embeddings are held at once.
DIFFERENCES_AT_ONCE = 20_000
# exp of more than this is as good as infinite: the inequality fails, and so it does within radii
# for which |D| r is larger. Cut at 100, exponentials made 1,000 reviews (seed 832) seem to be
# proved, and the checker refused them.
HUGE = 300.0
# Largest third derivative of log(1 + e^{−x}): 1/(6√3), rounded up.
MAX_THIRD_OF_LOSS = 0.09623


@dataclass(frozen=True)
class Basin:
    """L_S near z*, in the norm |ζ|² = ζᵀHζ of its Hessian H there, and the tube that is tried.

    Attributes:
        root: H^½ on V, shape (k, r), so that |ζ| is the length of root ζ; no rows where V = 0.
        basis: rows that span V and in which H is the identity, shape (k, r).
        kappa: κ, how much H changes within the tube.
        tube: a, its radius.
        longest: √Λ, the largest Euclidean length of a vector of norm 1.
    """

    root: Floats
    basis: Floats
    kappa: float = 0.0
    tube: float = 1.0
    longest: float = 0.0

    @classmethod
    def of(cls, land: Landscape, face: Face, finite: Equilibrium) -> Basin:
        """The basin around the finite equilibrium of a face.

        The tube is as wide as κ ≤ `MAX_KAPPA` allows, and so narrow that no attention within it
        changes by more than a factor e^`MAX_CHANGE`.
        """
        if not face.dimension:
            return cls(face.inside.T, face.inside.T)
        curvature, axes = np.linalg.eigh(hessian_on_ties(land, face, finite))
        axes = face.inside @ axes
        basis = (axes / np.sqrt(curvature)).T
        longest = 1 / math.sqrt(curvature[0])
        third = third_derivative(land, face, land.E @ basis.T)
        farthest = 2 * float(np.linalg.norm(land.E, axis=1).max())
        tube = min(MAX_KAPPA / third, MAX_CHANGE / (farthest * longest))
        root = (axes * np.sqrt(curvature)).T
        return cls(root, basis, third * tube, tube, longest)

    def distance(self, away: Floats) -> float:
        """The norm of a vector's part in V, shape (r,)."""
        return float(np.linalg.norm(self.root @ away))

    def integral(self, push: float, distance: float, log_time: float) -> float:
        """I = Λ/(1−κ) √((1+κ) |ζ₀|²_H e^{−τ₀} + B²), a bound on ∫|ζ| dτ in Euclidean length;
        infinite where the tube is left.

        Args:
            push: B; distance: |ζ₀|_H; log_time: τ₀.
        """
        if push * self.longest >= ALLOWED_PUSH * (1 - self.kappa) * self.tube:
            return math.inf
        start = (1 + self.kappa) * distance**2 * math.exp(-log_time)
        return self.longest**2 / (1 - self.kappa) * math.sqrt(start + push**2)


def hessian_on_ties(land: Landscape, face: Face, finite: Equilibrium) -> Floats:
    """The Hessian of L_S on V at z*, shape (k, k)."""
    inner = face.restricted(land.counts)
    loss = Landscape(inner, land.E @ face.inside, land.w)
    relative, _, log_size = loss.hessian(face.inside.T @ finite.z)
    return relative * (math.exp(log_size) * inner.n_documents / land.counts.n_documents)


def third_derivative(land: Landscape, face: Face, A: Floats) -> float:
    """M₃, a bound on the third derivatives of L_S along unit vectors (docs/theory.md, Theorem):

        (1/n) Σ_X 0.09623 (Δˢℓ̂/4)³ + ¾ (Δˢℓ̂/4)(Δˢℓ̂²/4) + (7/16) Δˢℓ̂³

    Args:
        A: the embeddings in coordinates in which the Hessian is the identity, shape (|S|, k).
    """
    inner = face.restricted(land.counts)
    total = 0.0
    for start, end in itertools.pairwise(inner.matrix.indptr.tolist()):
        types = inner.matrix.indices[start:end]
        values = float(np.ptp(land.w[types]))
        length = max(float(np.linalg.norm(A[types] - A[s], axis=1).max()) for s in types)
        first = values * length / 4
        second = values * length**2 / 4
        third = 7 / 16 * values * length**3
        total += MAX_THIRD_OF_LOSS * first**3 + 3 / 4 * first * second + third
    return total / land.counts.n_documents


@dataclass(frozen=True)
class DocumentSizes:
    """What the theorem needs of each document, shape (n,).

    Attributes:
        sigmoid: σ(−y f*)/n.
        values: Δ, the range of w.
        gamma: γ = Δℓ/4 of the selected types alone; 0 where one type is selected.
        spread: ℓ, the largest distance of an unselected embedding from a selected one.
    """

    sigmoid: Floats
    values: Floats
    gamma: Floats
    spread: Floats

    @classmethod
    def of(cls, land: Landscape, face: Face, finite: Equilibrium) -> DocumentSizes:
        n_documents = land.counts.n_documents
        document = land.counts.entry_documents
        values = land.w[land.counts.matrix.indices]
        selected = face.mask
        apart = distance_from_lead(land, face)
        to_selected = np.zeros(n_documents)
        to_others = np.zeros(n_documents)
        np.maximum.at(to_selected, document[selected], apart[selected])
        np.maximum.at(to_others, document[~selected], apart[~selected])
        within = 2 * to_selected  # two selected types are no further from each other
        selected_range = range_per_document(document[selected], values[selected], n_documents)
        return cls(
            sigmoid=np.exp(-np.logaddexp(0.0, land.counts.signs * finite.answers)) / n_documents,
            values=range_per_document(document, values, n_documents),
            gamma=selected_range * within / 4,
            spread=to_others + within,
        )


def distance_from_lead(land: Landscape, face: Face) -> Floats:
    """How far the embedding of each entry is from that of a selected type of its document."""
    types = land.counts.matrix.indices
    document = land.counts.entry_documents
    lead = np.zeros(land.counts.n_documents, np.int64)
    lead[document[face.mask]] = types[face.mask]
    apart = np.zeros(len(types))
    for first in range(0, len(types), DIFFERENCES_AT_ONCE):
        part = slice(first, first + DIFFERENCES_AT_ONCE)
        difference = land.E[types[part]] - land.E[lead[document[part]]]
        apart[part] = np.linalg.norm(difference, axis=1)
    return apart


def range_per_document(document: Ints, values: Floats, n_documents: int) -> Floats:
    """Largest less smallest value of each document, shape (n,); 0 without any."""
    largest = np.full(n_documents, -np.inf)
    smallest = np.full(n_documents, np.inf)
    np.maximum.at(largest, document, values)
    np.minimum.at(smallest, document, values)
    return np.asarray(np.maximum(largest - smallest, 0.0))


@dataclass(frozen=True)
class PairClasses:
    """The classes of entries with one D, one a row.

    Attributes:
        D: shape (classes, r − k); length: |D|; delta: D·p̂ − 1.
        is_tight: whether D·p̂ = 1.
    """

    D: Floats
    length: Floats
    delta: Floats
    is_tight: NDArray[np.bool_]


@dataclass(frozen=True)
class LinePlace:
    """A point p₀ beside the line.

    Attributes:
        point: p₀ without the part that never moves, shape (r,); log_time: τ₀.
        line: p̂τ₀ + ρ' in V^⊥, shape (r − k,).
        off_line: |R₀|; off_equilibrium: |ζ₀| in the norm of the Hessian.
        moved: how far the tied gaps of p₀ were moved to equilibrium; 0 if they were left alone.
    """

    point: Floats
    log_time: float
    line: Floats
    off_line: float = 0.0
    off_equilibrium: float = 0.0
    moved: float = 0.0


class Inequality:
    """The inequality at places beside the line p̂τ + ρ' + z*."""

    def __init__(
        self, land: Landscape, face: Face, finite: Equilibrium, balance: Balance, basin: Basin
    ) -> None:
        self._face = face
        self._finite = finite
        self._balance = balance
        self._basin = basin
        self._tube_length = basin.tube * basin.longest
        self._documents = DocumentSizes.of(land, face, finite)
        self._entries = UnselectedEntries.of(land, face, finite)
        self._classes = pair_classes(land, face, balance, self._entries.pairs)

    def beside(self, point: Floats) -> LinePlace:
        """A point of the curve, shape (r,), on the clock that makes |R₀| smallest.

        The flow is autonomous, so that the limit in terms of log t is the same on any clock. Tied
        gaps that are too far from equilibrium for the tube are moved to it.
        """
        face = self._face
        balance = self._balance
        q = face.outside.T @ point
        p_hat = balance.direction
        log_time = float(p_hat @ (q - balance.rho)) / float(p_hat @ p_hat)
        R = balance.span @ (balance.span.T @ (q - p_hat * log_time - balance.rho))
        place = LinePlace(point, log_time, line=q - R, off_line=float(np.linalg.norm(R)))
        tied_part = point - self._finite.z
        off_equilibrium = self._basin.distance(tied_part)
        if off_equilibrium <= self._basin.tube / 2:
            return replace(place, off_equilibrium=off_equilibrium)
        return replace(
            place,
            point=self._finite.z + face.outside @ q,
            moved=float(np.linalg.norm(face.inside.T @ tied_part)),
        )

    def on_line(self, log_time: float) -> LinePlace:
        line = self._balance.offset + self._balance.direction * log_time
        return LinePlace(self._finite.z + self._face.outside @ line, log_time, line)

    def left(self, place: LinePlace, radius: float) -> float:
        """½|R₀|² + Σ_{c∉T} max(b_c/e, −b_c v_c)/δ_c + Σ_c ε_c max(1/e, v_c); infinite where a
        condition of the theorem fails."""
        gaps = (self._classes.D @ place.line)[self._entries.pair]
        log_weight = self._entries.log_share - gaps
        reach = self._classes.length * radius
        H = self._largest_weight(log_weight, reach)
        integral = self._basin.integral(self._push(H), place.off_equilibrium, place.log_time)
        log_growth = self._log_growth(H)
        if integral == math.inf or max(reach.max(), log_growth.max()) > HUGE:
            return math.inf
        sigmoid = self._documents.sigmoid[self._entries.document]
        amount = np.exp(np.minimum(log_weight + place.log_time, HUGE)) * sigmoid
        force = self._per_class(self._entries.gain * amount)
        with np.errstate(over="ignore"):  # an infinite error is as good as a large one
            error = self._per_class(self._relative_errors(H, integral, np.exp(log_growth)) * amount)
            return place.off_line**2 / 2 + self._motion(force, error, reach)

    def _largest_weight(self, log_weight: Floats, reach: Floats) -> Floats:
        """H of each document: while |R| ≤ r, its unselected types weigh no more; shape (n,).

        H_X = e^{ℓa₂} Σ_r (c_r e^{E_r·z*}/Z_X(z*)) e^{−D_r·(p̂τ₀+ρ') + |D_r| r}
        """
        stretch = (self._documents.spread * self._tube_length)[self._entries.document]
        log_largest = log_weight + reach[self._entries.pair] + stretch
        largest = np.exp(np.minimum(log_largest, HUGE))
        n_documents = len(self._documents.spread)
        return np.asarray(np.bincount(self._entries.document, largest, n_documents), np.float64)

    def _push(self, H: Floats) -> float:
        """B = (1/n) Σ_X H_X (γ + Δℓ + Δγ/4), a bound on what unselected types add to the gradient
        on V at τ₀."""
        sizes = self._documents
        part = sizes.gamma + sizes.values * sizes.spread + sizes.values * sizes.gamma / 4
        return float(np.mean(H * part))

    def _log_growth(self, H: Floats) -> Floats:
        """log G = (γ + ℓ) a₂ + (Δ + 1) H of each document, shape (n,)."""
        sizes = self._documents
        return np.asarray((sizes.gamma + sizes.spread) * self._tube_length + (sizes.values + 1) * H)

    def _relative_errors(self, H: Floats, integral: float, growth: Floats) -> Floats:
        """A bound on ∫ |K̃ − K|/A dτ of each entry of an unselected type, shape (entries,).

        It is k I + θ = G [|f* − w_r| ((γ + ℓ) I + (Δ + 1) H) + γ I + Δ H].

        Args:
            H: the largest weight of each document's unselected types, shape (n,).
            integral: I, a bound on ∫|ζ| dτ.
            growth: G of each document, shape (n,).
        """
        sizes = self._documents
        document = self._entries.document
        logit_change = sizes.gamma * integral + sizes.values * H
        factor_change = logit_change + sizes.spread * integral + H
        gain = np.abs(self._entries.gain)
        by_factors = gain * (growth * factor_change)[document]
        by_logit = (growth * logit_change)[document]
        return np.asarray(by_factors + by_logit)

    def _motion(self, force: Floats, error: Floats, reach: Floats) -> float:
        """How far forces and their errors may move R, as ½|R|²; infinite if tight pairs do.

        With v = |D| r e^{|D| r} it is Σ_{c∉T} max(b_c/e, −b_c v_c)/δ_c + Σ_c ε_c max(1/e, v_c).

        Args:
            force, error, reach: b, ε and |D| r of each class, shape (classes,).
        """
        tight = self._classes.is_tight
        delta = self._classes.delta
        if not self._restores(force[tight], reach[tight]):
            return math.inf
        pulled = reach * np.exp(reach)
        moved = np.where(force > 0, force / math.e, -force * pulled)
        by_errors = error * np.maximum(pulled, 1 / math.e)
        by_forces = moved[~tight] / delta[~tight]
        return float(by_errors.sum() + by_forces.sum())

    def _restores(self, force: Floats, reach: Floats) -> bool:
        """Whether Σ_T λ (1 − e^{−x}) x ≥ 0 for all |R| ≤ r, where x = D·R.

        It is where Σ_T λ φ D Dᵀ is positive definite on span D_T, with φ the smallest value of
        (1 − e^{−x})/x for λ > 0 and the largest for λ < 0.
        """
        if (force > 0).all():
            return True
        change = np.where(force > 0, -np.expm1(-reach), np.expm1(reach))
        rows = self._classes.D[self._classes.is_tight] @ self._balance.span
        weighted = (force * change / reach)[:, None] * rows
        return bool(np.linalg.eigvalsh(rows.T @ weighted)[0] > 0)

    def _per_class(self, values: Floats) -> Floats:
        """The values of the entries of each class of pairs, added up, shape (classes,)."""
        n_classes = len(self._classes.length)
        return np.asarray(np.bincount(self._entries.pair, values, n_classes), np.float64)


def pair_classes(land: Landscape, face: Face, balance: Balance, ends: Ints) -> PairClasses:
    """The classes of pairs between groups (a, b), shape (classes, 2)."""
    F = land.E[face.lead] @ face.outside
    D = F[ends[:, 0]] - F[ends[:, 1]]
    one_number = np.array([len(face.lead), 1])  # for each (a, b) another
    return PairClasses(
        D=D,
        length=np.linalg.norm(D, axis=1),
        delta=D @ balance.direction - 1,
        is_tight=np.isin(ends @ one_number, balance.tight @ one_number),
    )
