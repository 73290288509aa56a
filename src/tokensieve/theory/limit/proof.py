"""Numbers from which a certified limit is proved: a point, and radii for which the theorem's
inequality holds.

The theorem (docs/theory.md, "What is proved from one point on") says that the flow from a point p₀
stays near the line p̂ log t + ρ' + z* for ever if an inequality holds. This module looks for such a
point and such radii in floating point. `limit.checker` proves the inequality in ball arithmetic and
shares no code with the search. Two points are tried:

- the last point of the computed curve ("proved from this point on");
- a point further out on the predicted line ("proved attractor"): the limit exists and attracts an
open
  set, and that the curve arrives there is computed.
"""

from __future__ import annotations

import itertools
import math
import time
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tokensieve.arrays import Floats, Ints
from tokensieve.text.counts import Counts
from tokensieve.theory.flow.equilibrium import Equilibrium
from tokensieve.theory.flow.face import Face
from tokensieve.theory.flow.landscape import Landscape
from tokensieve.theory.flow.solve import FINITE, Flow, gradient_flow
from tokensieve.theory.limit.balance import Balance
from tokensieve.theory.limit.certify import FlowLimit

# Radii r that are tried. Below 0.05 the pushing terms alone exceed ½r² on text.
RADII = np.geomspace(0.02, 100.0, 30)
# log t of points on the predicted line that are tried, relative to the end of the curve.
LATER = np.geomspace(1.0, 1e4, 40)
# Within the tube the Hessian of L_S changes by at most this fraction of itself; the theorem allows
# ½.
MAX_KAPPA = 0.3
# Within the tube no score gap of a document changes by more nats than this.
MAX_CHANGE = 0.01
# The search leaves this factor of the inequality to the rounding of both computations.
ENOUGH = 0.8
# More entries than this take more than a minute in ball arithmetic.
MOST_ENTRIES = 1_000_000
# What the curve itself is accurate to, in nats: its tied gaps may be set to z* if that moves them
# less.
CURVE_ACCURACY = 1e-3
# The curve is followed by so much log t at a time, and no further than this: beyond, rounding moves
# its tied gaps by more than CURVE_ACCURACY (benchmarks/limits.py: SNLI, 1,000 documents).
FURTHER = 5.0
FURTHEST = 75.0
# As many differences of embeddings are held at once.
DIFFERENCES_AT_ONCE = 20_000
# exp of more than this is as good as infinite.
HUGE = 100.0


@dataclass(frozen=True)
class Attempt:
    """A point of the line and the radii that fit it best; `left` < `right` is the inequality.

    Attributes:
        point: p₀ without the part that never moves, shape (r,).
        log_time: τ₀.
        radius: r; 0 if unselected tokens have too much weight for every r.
        moved: how far the tied gaps of p₀ were moved to equilibrium; 0 if they were left alone.
    """

    point: Floats
    log_time: float
    radius: float
    left: float
    right: float
    moved: float = 0.0

    @property
    def holds(self) -> bool:
        return self.left < ENOUGH * self.right and self.moved < CURVE_ACCURACY

    @property
    def failure(self) -> str:
        """Why it does not hold."""
        if not self.radius:
            return "unselected tokens have too much weight at the end of the curve"
        if self.left >= ENOUGH * self.right:
            return (
                f"at the end of the curve the inequality fails: {self.left:.3g} is not below "
                f"{self.right:.3g}"
            )
        return f"the tied gaps at the end of the curve are {self.moved:.2g} away from equilibrium"

    def figures(self) -> dict[str, float]:
        """Ready for JSON."""
        names = ("log_time", "radius", "left", "right", "moved")
        figures = {name: float(getattr(self, name)) for name in names}
        return {name: value for name, value in figures.items() if math.isfinite(value)}


@dataclass(frozen=True)
class Documents:
    """What the theorem needs of each document, shape (n,).

    Attributes:
        sigmoid: σ(−y f*)/n.
        value_range: Δ, the range of w.
        gamma: Δℓ/4 of the selected types alone; 0 where one type is selected.
        spread: ℓ, the largest distance of an unselected embedding from a selected one.
    """

    sigmoid: Floats
    value_range: Floats
    gamma: Floats
    spread: Floats


@dataclass(frozen=True)
class Entries:
    """The pairs (X, r) of a document and an unselected type, shape (entries,).

    Attributes:
        document: number of X; pair_class: number of the class, the set of entries with one D.
        log_share: log of c_r e^{E_r·z*}/Z_X(z*).
        value_gap: f* − w_r.
        sign: y.
    """

    document: Ints
    pair_class: Ints
    log_share: Floats
    value_gap: Floats
    sign: Floats


@dataclass(frozen=True)
class Classes:
    """The classes of entries, shape (classes,).

    Attributes:
        D: shape (classes, r − k); length: |D|; delta: D·p̂ − 1.
        is_tight: whether D·p̂ = 1.
    """

    D: Floats
    length: Floats
    delta: Floats
    is_tight: NDArray[np.bool_]

    def sums(self, entries: Entries, values: Floats) -> Floats:
        """The sum of the values of each class's entries."""
        return np.asarray(np.bincount(entries.pair_class, values, len(self.length)), np.float64)


@dataclass(frozen=True)
class ErrorBounds:
    """k and θ of each entry, and the push B on V, for one radius."""

    k: Floats
    theta: Floats
    push: float


class Inequality:
    """The theorem's inequality along the line p̂τ + ρ', in floating point."""

    def __init__(
        self, land: Landscape, face: Face, finite: Equilibrium, balance: Balance, basin: Basin
    ) -> None:
        self._basin, self._face, self._finite, self._balance = basin, face, finite, balance
        self._tube = basin.tube * basin.length
        counts = land.counts
        unselected = np.flatnonzero(~face.mask)
        document = counts.entry_documents[unselected]
        types = counts.matrix.indices[unselected]
        ends = np.stack([face.own[document], face.group[types]], axis=1)
        pairs, pair_class = Landscape.distinct(ends, len(face.lead))
        self._classes = classes_of(land, face, balance, pairs)
        self._documents = documents_of(land, face, finite, unselected)
        scores = (land.E @ finite.z)[types] + np.log(counts.matrix.data[unselected])
        self._entries = Entries(
            document=document,
            pair_class=pair_class,
            log_share=scores - finite.log_total[document],
            value_gap=finite.answers[document] - land.w[types],
            sign=counts.signs[document],
        )

    def last_attempt(self, point: Floats) -> Attempt:
        """The inequality at the end of the curve, shape (r,), on the clock that makes |R₀|
        smallest.

        The flow is autonomous, so that τ₀ is free: the limit in terms of log t is the same on any
            clock.
        """
        face, finite, balance = self._face, self._finite, self._balance
        q = face.outside.T @ point
        B, direction = balance.span, balance.direction
        log_time = float(direction @ (q - balance.rho) / (direction @ direction))
        R = B @ (B.T @ (q - direction * log_time - balance.rho))
        away = point - finite.z
        distance = float(np.linalg.norm(self._basin.root @ away))
        moved = 0.0
        if distance > 0.5 * self._basin.tube:
            point = finite.z + face.outside @ q
            moved, distance = float(np.linalg.norm(face.inside.T @ away)), 0.0
        attempt = self._attempt(point, q - R, log_time, float(np.linalg.norm(R)), distance)
        return replace(attempt, moved=moved)

    def first_on_line(self, log_time: float) -> Attempt:
        """The first of the later points on the line p̂τ + ρ' + z* at which it holds, or the last
        one tried."""
        for tau in (log_time * LATER).tolist():
            line = self._balance.offset + self._balance.direction * tau
            point = self._finite.z + self._face.outside @ line
            attempt = self._attempt(point, line, tau, 0.0, 0.0)
            if attempt.holds:
                break
        return attempt

    def _attempt(
        self, point: Floats, line: Floats, log_time: float, start: float, distance: float
    ) -> Attempt:
        """The best radius at a point, with `line` = p̂τ₀ + ρ' in V^⊥, |R₀| and |ζ₀|."""
        gaps = (self._classes.D @ line)[self._entries.pair_class]
        log_weight = self._entries.log_share - gaps
        best = Attempt(point, log_time, 0.0, math.inf, 1.0)
        for radius in RADII.tolist():
            left = self._left(log_weight, log_time, radius, distance) + start**2 / 2
            right = radius**2 / 2
            if left / right < best.left / best.right:
                best = Attempt(point, log_time, radius, left, right)
            if best.holds:
                break
        return best

    def _left(self, log_weight: Floats, log_time: float, radius: float, distance: float) -> float:
        """The left side without ½|R₀|²; infinite where a condition of the theorem fails."""
        entries, classes = self._entries, self._classes
        bounds = self._bounds(log_weight, radius)
        integral = self._basin.integral(bounds.push, distance, log_time)
        if integral == math.inf:
            return math.inf
        sigma = self._documents.sigmoid[entries.document]
        amount = np.exp(np.minimum(log_weight + log_time, HUGE)) * sigma
        force = classes.sums(entries, entries.sign * entries.value_gap * amount)
        largest = classes.sums(entries, (bounds.k * self._tube + bounds.theta) * amount)
        error = classes.sums(entries, (bounds.k * integral + bounds.theta) * amount)
        return self._total(force, largest, error, radius)

    def _bounds(self, log_weight: Floats, radius: float) -> ErrorBounds:
        """k, θ and B."""
        sizes, entries = self._documents, self._entries
        document = entries.document
        reach = (self._classes.length * radius)[entries.pair_class]
        stretched = log_weight + reach + (sizes.spread * self._tube)[document]
        H = np.bincount(document, np.exp(np.minimum(stretched, HUGE)), len(sizes.spread))
        ranges, gamma, spread = sizes.value_range, sizes.gamma, sizes.spread
        exponent = (gamma + spread) * self._tube + (ranges + 1) * H
        growth = np.exp(np.minimum(exponent, HUGE))
        value_gap = np.abs(entries.value_gap)
        k = value_gap * (growth * (gamma + spread))[document] + (growth * gamma)[document]
        theta = value_gap * (growth * H * (ranges + 1))[document] + (growth * H * ranges)[document]
        push = float(np.mean(H * (gamma + ranges * spread + ranges * gamma / 4)))
        return ErrorBounds(k, theta, push)

    def _total(self, force: Floats, largest: Floats, error: Floats, radius: float) -> float:
        """The costs of all classes, given Σ b, the largest error of a force and its integral."""
        classes, tight = self._classes, self._classes.is_tight
        reach = classes.length * radius
        pulled = reach * np.exp(np.minimum(reach, HUGE))
        costs = error * np.maximum(pulled, 1 / math.e)
        if (force[tight] <= 0).any():
            if not self._restores(force[tight], reach[tight]):
                return math.inf
        elif (2 * largest[tight] >= force[tight]).any():
            return math.inf
        else:
            costs[tight] = error[tight] / math.e
        moved = np.where(force > 0, force / math.e, -force * pulled)[~tight]
        return float(costs.sum() + (moved / classes.delta[~tight]).sum())

    def _restores(self, force: Floats, reach: Floats) -> bool:
        """Whether Σ_T λ (1 − e^{−x}) x ≥ 0 for all |R| ≤ r although some tight pairs pull."""
        change = np.where(force > 0, -np.expm1(-reach), np.expm1(np.minimum(reach, HUGE)))
        rows = self._classes.D[self._classes.is_tight] @ self._balance.span
        H = rows.T @ ((force * change / reach)[:, None] * rows)
        return bool(np.linalg.eigvalsh(H)[0] > 0)


def classes_of(land: Landscape, face: Face, balance: Balance, pairs: Ints) -> Classes:
    """The classes with these groups (a, b), shape (j, 2)."""
    n_groups = len(face.lead)
    F = land.E[face.lead] @ face.outside
    D = F[pairs[:, 0]] - F[pairs[:, 1]]
    numbers = np.array([n_groups, 1])
    return Classes(
        D=D,
        length=np.linalg.norm(D, axis=1),
        delta=D @ balance.direction - 1,
        is_tight=np.isin(pairs @ numbers, balance.tight @ numbers),
    )


def documents_of(land: Landscape, face: Face, finite: Equilibrium, unselected: Ints) -> Documents:
    """The documents' figures, from all entries and from the unselected ones alone."""
    counts, w = land.counts, land.w
    n, types, document = counts.n_documents, counts.matrix.indices, counts.entry_documents
    apart = distance_from_lead(land, face)
    to_others, to_selected = np.zeros(n), np.zeros(n)
    np.maximum.at(to_others, document[unselected], apart[unselected])
    np.maximum.at(to_selected, document[face.mask], apart[face.mask])
    selected_range = range_per_document(document[face.mask], w[types[face.mask]], n)
    within = 2 * to_selected  # two selected types are no further from each other
    return Documents(
        sigmoid=np.exp(-np.logaddexp(0.0, counts.signs * finite.answers)) / n,
        value_range=range_per_document(document, w[types], n),
        gamma=selected_range * within / 4,
        spread=to_others + within,
    )


def distance_from_lead(land: Landscape, face: Face) -> Floats:
    """Of each entry the distance of its embedding from that of a selected type of its document."""
    types, document = land.counts.matrix.indices, land.counts.entry_documents
    lead = np.zeros(land.counts.n_documents, np.int64)
    lead[document[face.mask]] = types[face.mask]
    apart = np.zeros(len(types))
    for first in range(0, len(types), DIFFERENCES_AT_ONCE):
        part = slice(first, first + DIFFERENCES_AT_ONCE)
        difference = land.E[types[part]] - land.E[lead[document[part]]]
        apart[part] = np.linalg.norm(difference, axis=1)
    return apart


def range_per_document(document: Ints, values: Floats, n: int) -> Floats:
    """Largest less smallest value of each document, shape (n,); 0 without any."""
    largest, smallest = np.full(n, -np.inf), np.full(n, np.inf)
    np.maximum.at(largest, document, values)
    np.minimum.at(smallest, document, values)
    return np.asarray(np.maximum(largest - smallest, 0.0))


@dataclass(frozen=True)
class Basin:
    """L_S near z*, in the norm |ζ|² = ζᵀHζ of its Hessian H there.

    Attributes:
        root: H^½ on V, shape (k, r), so that |ζ| is the length of root ζ; no rows where V = 0.
        third: M₃, a bound on the third derivatives along vectors of norm 1.
        tube: a, the radius of the tube that is tried.
        length: largest Euclidean length of a vector of norm 1.
        shortest: the smallest.
    """

    root: Floats
    third: float
    tube: float
    length: float
    shortest: float

    @classmethod
    def of(cls, land: Landscape, face: Face, finite: Equilibrium) -> Basin:
        if not face.dimension:
            return cls(face.inside.T, 0.0, 0.0, 0.0, 0.0)
        curvature, axes = hessian_on_ties(land, face, finite)
        third = third_derivative(land, face, land.E @ axes / np.sqrt(curvature))
        length = 1 / math.sqrt(curvature[0])
        farthest = 2 * float(np.linalg.norm(land.E, axis=1).max())
        tube = min(MAX_KAPPA / third, MAX_CHANGE / (farthest * length))
        root = np.sqrt(curvature)[:, None] * axes.T
        return cls(root, third, tube, length, 1 / math.sqrt(curvature[-1]))

    def integral(self, push: float, distance: float, log_time: float) -> float:
        """I, a bound on ∫|ζ| dτ in Euclidean length; infinite where the tube is left."""
        if not len(self.root):
            return 0.0
        kappa = self.third * self.tube
        if push >= ENOUGH * (1 - kappa) * self.tube / self.length:
            return math.inf
        rate = (1 - kappa) / self.length**2
        pushed = (1 + kappa) / math.sqrt(1 - kappa) / self.shortest * push
        begins = math.sqrt(1 + kappa) * distance * math.exp(-log_time)
        return self.length / math.sqrt(1 - kappa) * (begins + pushed) / rate


def hessian_on_ties(land: Landscape, face: Face, finite: Equilibrium) -> tuple[Floats, Floats]:
    """Eigenvalues of the Hessian of L_S on V at z*, and its eigenvectors, shape (r, k)."""
    inner = face.restricted(land.counts)
    loss = Landscape(inner, land.E @ face.inside, land.w)
    relative, _, log_size = loss.hessian(face.inside.T @ finite.z)
    scale = math.exp(log_size) * inner.n_documents / land.counts.n_documents
    curvature, axes = np.linalg.eigh(relative * scale)
    return np.asarray(curvature, np.float64), np.asarray(face.inside @ axes, np.float64)


def third_derivative(land: Landscape, face: Face, A: Floats) -> float:
    """M₃, for embeddings in coordinates in which the Hessian is 1, shape (|S|, k)."""
    inner = face.restricted(land.counts)
    total = 0.0
    for start, end in itertools.pairwise(inner.matrix.indptr.tolist()):
        types = inner.matrix.indices[start:end]
        values = float(np.ptp(land.w[types]))
        spread = max(float(np.linalg.norm(A[types] - A[s], axis=1).max()) for s in types)
        first, second = values * spread / 4, values * spread**2 / 4
        total += 0.09623 * first**3 + 3 / 4 * first * second + 7 / 16 * values * spread**3
    return total / land.counts.n_documents


def prove(
    limit: FlowLimit, counts: Counts, E: Floats, w: Floats, seconds: float = math.inf
) -> FlowLimit:
    """A certified limit with its certificate and the result of the proof.

    The proof is about exactly these embeddings, shape (|S|, d), and values, shape (|S|,). The curve
    is followed further, within `seconds` of wall time, if a later point of it may satisfy the
    inequality. `unproved` is why it is not proved from the last point of the curve on, and `proof`
    has the figures.
    """
    deadline = time.monotonic() + seconds
    limit = replace(limit, proved="", unproved="", proof={}, certificate={})
    face, finite, balance = limit.face, limit.finite, limit.balance
    if limit.fate == "not settled" or face is None or finite is None:
        return replace(limit, unproved="nothing is certified that could be proved")
    arrays = selection_arrays(limit, counts, E, w)
    if finite.flat:
        return replace(limit, certificate=arrays, unproved="no minimum on a surface is strict")
    if counts.matrix.nnz > MOST_ENTRIES:
        return replace(limit, certificate=arrays, unproved="too many entries for ball arithmetic")
    land = Landscape(counts, E if limit.flow.basis is None else E @ limit.flow.basis, w)
    basin = Basin.of(land, face, finite)
    if balance is None:
        return prove_point(limit, arrays, basin.tube)
    arrays |= {
        "p_hat": limit.flow.whole(face.outside @ balance.direction),
        "rho": limit.flow.whole(face.outside @ balance.rho),
        "tight": independent_pairs(balance.tight, face),
    }
    inequality = Inequality(land, face, finite, balance, basin)
    with Flow.one_thread():
        limit = follow_further(limit, inequality, counts, E, w, deadline)
    return prove_divergence(limit, inequality, arrays, basin.tube)


def follow_further(
    limit: FlowLimit, inequality: Inequality, counts: Counts, E: Floats, w: Floats, deadline: float
) -> FlowLimit:
    """The limit with its curve followed until the inequality holds at its end, if that is soon."""
    flow = limit.flow
    changes = [change.log_time for change in limit.changes]
    if max(changes, default=0.0) > FURTHEST:
        return limit
    while not inequality.last_attempt(flow.coordinates[-1]).holds:
        log_time = float(flow.log_time[-1]) + FURTHER
        left = deadline - time.monotonic()
        if log_time > FURTHEST or left <= 0:
            return limit
        settings = replace(flow.settings, max_log_time=log_time, max_seconds=left)
        longer = gradient_flow(counts, E, w, flow.at(0), settings, after=flow)
        if longer.verdict == FINITE or longer.log_time[-1] < log_time - 1e-9:
            return limit
        flow = longer
    return replace(limit, flow=flow)


def selection_arrays(
    limit: FlowLimit, counts: Counts, E: Floats, w: Floats
) -> dict[str, NDArray[np.generic]]:
    """The documents, the selection and z*."""
    assert limit.face is not None
    assert limit.finite is not None
    return {
        "indptr": counts.matrix.indptr,
        "indices": counts.matrix.indices,
        "counts": counts.matrix.data,
        "labels": counts.signs,
        "E": E,
        "w": w,
        "selected": limit.face.mask,
        "z": limit.flow.whole(limit.finite.z),
    }


def prove_point(limit: FlowLimit, arrays: dict[str, NDArray[np.generic]], tube: float) -> FlowLimit:
    """A limit in which every type keeps weight: from the last point on, or else from the limit
    itself."""
    flow = limit.flow
    here = arrays | {"point": flow.p, "tube": np.array(tube)}
    refusal, figures = ask_checker(here)
    limit = replace(limit, certificate=here, unproved=refusal, proof=figures)
    if not refusal:
        return replace(limit, proved="from this point on")
    if flow.limit is None:
        return limit
    there = here | {"point": flow.limit}
    further, figures = ask_checker(there)
    if further:
        return limit
    return replace(limit, certificate=there, proof=figures, proved="attractor")


def prove_divergence(
    limit: FlowLimit, inequality: Inequality, arrays: dict[str, NDArray[np.generic]], tube: float
) -> FlowLimit:
    """From the last point of the curve on if that holds, else from a later point of the line."""
    here = inequality.last_attempt(limit.flow.coordinates[-1])
    limit = replace(limit, proof=here.figures())
    if here.holds:
        stated = arrays | place(here, limit.flow, tube)
        refusal, figures = ask_checker(stated)
        limit = replace(limit, certificate=stated, unproved=refusal, proof=limit.proof | figures)
        if not refusal:
            return replace(limit, proved="from this point on")
    else:
        limit = replace(limit, unproved=here.failure)

    later = inequality.first_on_line(here.log_time)
    stated = arrays | place(later, limit.flow, tube)
    limit = replace(limit, certificate=stated)
    if not later.holds:
        return limit
    refusal, figures = ask_checker(stated)
    if refusal:
        return replace(limit, unproved=f"{limit.unproved}; further out, {refusal}")
    figures |= {"attractor_log_time": later.log_time}
    return replace(limit, proof=limit.proof | figures, proved="attractor")


def place(attempt: Attempt, flow: Flow, tube: float) -> dict[str, NDArray[np.generic]]:
    """The arrays that state the point and the radii."""
    return {
        "point": flow.whole(attempt.point) + flow.rest,
        "log_time": np.array(attempt.log_time),
        "radius": np.array(attempt.radius),
        "tube": np.array(tube),
    }


def ask_checker(arrays: dict[str, NDArray[np.generic]]) -> tuple[str, dict[str, float]]:
    """Why the checker refuses a certificate ("" if it accepts), and the figures that it proved."""
    try:
        from tokensieve.theory.limit import checker
    except ImportError:
        return "a proof needs ball arithmetic: pip install python-flint", {}
    try:
        proof = checker.check(arrays)
    except checker.Refused as refusal:
        return str(refusal), {}
    return "", {name: x for name, x in vars(proof).items() if math.isfinite(x)}


def independent_pairs(pairs: Ints, face: Face) -> Ints:
    """Types (s, r) of a spanning forest of some pairs of groups: their differences span the
    same."""
    root = np.arange(len(face.lead))
    kept = []
    for a, b in pairs.tolist():
        if root[a] != root[b]:
            root[root == root[b]] = root[a]
            kept.append((face.lead[a], face.lead[b]))
    return np.array(kept, np.int64)
