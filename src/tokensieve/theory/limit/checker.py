"""Prove the limit that a certificate states, in ball arithmetic: python checker.py certificate.npz

This file needs NumPy and python-flint alone and trusts nothing of the package that wrote the
certificate. It proves the theorem of docs/theory.md, "What is proved from one point on", whose
symbols it uses, for exactly the documents, E and w in the file. Everything else in the file is a
claim that is proved or refused. An `arb` is a ball around the exact number; a comparison is true
only if it holds for all of both balls. Double precision serves for starting values, and for
lengths and ranges, which are rounded up. Arrays of balls have one value for each document, entry,
token type or class.
"""

from __future__ import annotations

import sys
import zipfile
from dataclasses import dataclass

import numpy as np
from flint import arb, arb_mat, ctx

BITS = 192  # 58 digits: a condition number of 10¹² leaves more than 40
STEPS = 5  # Newton steps in 192 bits from a start in double precision
ROUNDED_UP = 1 + 1e-9  # covers the rounding of a sum of fewer than 10⁵ squares
TINY = 1e-150  # covers squares that are too small for double precision
AGREES = 1e-6  # relative difference allowed between a vector in the file and the proved one
ZERO, BY_E = arb(0), (-arb(1)).exp()  # x e^{−x} is at most 1/e
MAX_THIRD_OF_LOSS = arb("0.09623")  # of log(1 + e^{−x}): 1/(6√3), rounded up
DEPENDENT = "tied and tight differences are not provably independent"
NO_BALANCE = "(F3) fails: the tight pairs do not balance p̂ at a strict minimum of Ψ"
ARRAYS = {  # dtypes, and shape: n documents, e entries, m token types, d dimensions, k = dim V, t
    "labels": "if n", "indptr": "iu n+1", "indices": "iu e", "counts": "iuf e", "selected": "b e",
    "E": "f m d", "w": "f m", "basis": "f k d", "z": "f d", "tight": "iu t 2", "p_hat": "f d",
    "rho": "f d", "point": "f d", "log_time": "f", "radius": "f", "tube": "f",
}  # fmt: skip
larger = np.frompyfunc(lambda x, y: x.max(y), 2, 1)  # of two balls


class Refused(Exception):
    """The certificate is damaged, or what it states is not proved."""


@dataclass(frozen=True)
class Proof:
    """Proved bounds: the curvature of L_S on V at z*, |y₀ − y*|, both sides of the inequality."""

    curvature: float
    distance: float
    left: float
    right: float


def require(condition: object, reason: str) -> None:
    if not condition:
        raise Refused(reason)


def exact(values: np.ndarray) -> arb_mat:
    """A matrix of these numbers or balls; a column if there is one axis."""
    n_columns = values.shape[1] if values.ndim == 2 else 1
    return arb_mat(len(values), n_columns, values.ravel().tolist())


def balls(A: arb_mat) -> np.ndarray:
    return np.array(A.entries(), dtype=object)


def floats(A: arb_mat) -> np.ndarray:
    return np.array([float(x.mid()) for x in A.entries()]).reshape(A.nrows(), A.ncols())


def norm(A: arb_mat) -> arb:
    """An upper bound on the Frobenius norm."""
    return sum((x * x for x in A.entries()), ZERO).upper().sqrt().upper()


def around(A: arb_mat, error: arb) -> arb_mat:
    """A, of which every entry is known up to an error."""
    return exact((balls(A) + arb(0, 1) * error.upper()).reshape(A.nrows(), A.ncols()))


def lengths(rows: np.ndarray) -> np.ndarray:
    """Upper bounds on the lengths of vectors in double precision."""
    return np.asarray(np.linalg.norm(rows, axis=1) * ROUNDED_UP + TINY)


def rounded(A: arb_mat) -> tuple[np.ndarray, float]:
    """A in double precision, and a bound on the error of its rows."""
    values = floats(A)
    return values, float(norm(A - exact(values))) * ROUNDED_UP


def gram(N: np.ndarray, weights: np.ndarray) -> arb_mat:
    """Σ weight n nᵀ over the rows n."""
    return exact(1.0 * N.T) * exact(weights[:, None] * N)


def newton_step(H: arb_mat, slope: arb_mat) -> arb_mat:
    """About −H⁻¹ slope."""
    return exact(-np.linalg.solve(floats(H), floats(slope)))


def least_eigenvalue(A: arb_mat, reason: str) -> arb:
    """A positive lower bound for a symmetric A; if |L A Lᵀ − 1| < 1, A is positive definite."""
    L = exact(np.linalg.inv(np.linalg.cholesky(floats(A))))
    missing = norm(L * A * L.transpose() - exact(np.eye(A.nrows())))
    require(missing < 1, reason)
    return (1 - missing) / (norm(L) ** 2).max(arb(TINY))


def solve(A: arb_mat, right: arb_mat, smallest: arb) -> arb_mat:
    """Encloses A⁻¹ right, where no eigenvalue of A is below `smallest`."""
    x = exact(np.zeros((right.nrows(), right.ncols())))
    for _ in range(STEPS):
        x = (x + newton_step(A, A * x - right)).mid()
    return around(x, norm(A * x - right) / smallest)


@dataclass(frozen=True)
class Entries:
    """Some entries of the count matrix."""

    document: np.ndarray
    type: np.ndarray
    count: np.ndarray

    def where(self, mask: np.ndarray) -> Entries:
        return Entries(self.document[mask], self.type[mask], self.count[mask])


@dataclass(frozen=True)
class Softmax:
    """Attention q of entries; f^S, Z and σ(−y f^S)/n of documents."""

    q: np.ndarray
    f: np.ndarray
    Z: np.ndarray
    sigma: np.ndarray


class Certificate:
    """The arrays of a file, checked for damage.

    Attributes:
        selected, others: entries; tied: those of documents that select more than one type.
        lead: a selected type of each document.
    """

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self.arrays, sizes = arrays, {"2": 2}
        for name, description in ARRAYS.items():
            kinds, *axes = description.split()
            require(name in arrays, f"the certificate lacks {name}")
            array = arrays[name]
            is_exact = array.dtype.kind in kinds.replace("f", "") or array.dtype == np.float64
            require(is_exact and np.isfinite(array).all(), f"{name} has no exact numbers")
            shape = tuple(sizes.setdefault(*size) for size in zip(axes, array.shape, strict=False))
            require(len(axes) == array.ndim and shape == array.shape, f"{name} has another shape")
            sizes["n+1"] = sizes["n"] + 1
        self.n, self.n_types = sizes["n"], sizes["m"]
        self._read_entries(arrays["indptr"].astype(int), arrays["indices"].astype(int))
        require((np.abs(arrays["labels"]) == 1).all(), "a label is not ±1")
        self.label = arrays["labels"].astype(int).astype(object)
        self.E, self.w = exact(arrays["E"]), balls(exact(arrays["w"]))

    def _read_entries(self, starts: np.ndarray, types: np.ndarray) -> None:
        is_divided = starts[0] == 0 and starts[-1] == len(types) and (np.diff(starts) >= 0).all()
        require(is_divided, "indptr does not divide the entries")
        stated = np.append(types, self.arrays["tight"].astype(int))
        require(((stated >= 0) & (stated < self.n_types)).all(), "a token type is unknown")
        counts, selected = self.arrays["counts"], self.arrays["selected"]
        require(((counts > 0) & (counts == np.rint(counts))).all(), "a count is wrong")
        document = np.repeat(np.arange(self.n), np.diff(starts))
        is_once = len(np.unique(document * self.n_types + types)) == len(types)
        n_selected = np.bincount(document[selected], minlength=self.n)
        is_proper = is_once and n_selected[document].all()
        require(is_proper, "a document lists a type twice or selects nothing")
        self.entries = Entries(document, types, counts.astype(object))
        self.selected, self.others = self.entries.where(selected), self.entries.where(~selected)
        self.tied = self.entries.where(selected & (n_selected[document] > 1))
        self.lead = np.zeros(self.n, int)
        self.lead[self.selected.document[::-1]] = self.selected.type[::-1]

    def number(self, name: str) -> arb:
        return arb(float(self.arrays[name]))

    def ranges(self, entries: Entries) -> np.ndarray:
        """Upper bounds on the range of w in each document, and 0 without entries."""
        w = self.arrays["w"][entries.type]
        high, low = np.full((2, self.n), [[-np.inf], [np.inf]])
        np.maximum.at(high, entries.document, w)
        np.minimum.at(low, entries.document, w)
        return np.where(high >= low, (high - low) * ROUNDED_UP, 0.0).astype(object)

    def widths(self, rows: np.ndarray) -> np.ndarray:
        """Upper bounds on the distances between vectors of tied types, of each document."""
        widest = np.zeros(self.n)
        for k in np.unique(self.tied.document).tolist():
            own = rows[self.tied.type[self.tied.document == k]]
            widest[k] = max(lengths(own - row).max() for row in own)
        return widest.astype(object)

    def total(self, documents: np.ndarray, values: np.ndarray) -> np.ndarray:
        return added(np.full(self.n, ZERO), documents, values)

    def softmax(self, entries: Entries, scores: np.ndarray) -> Softmax:
        weights = entries.count * np.exp(scores[entries.type])
        Z = self.total(entries.document, weights)
        q = weights / Z[entries.document]
        f = self.total(entries.document, q * self.w[entries.type])
        return Softmax(q, f, Z, 1 / (1 + np.exp(self.label * f)) / self.n)

    def differences(self, edges: list[tuple[int, int]]) -> arb_mat:
        ends, E = np.array(edges, int).reshape(-1, 2), self.arrays["E"]
        return exact(E[ends[:, 0]]) - exact(E[ends[:, 1]])

    def check_stated(self, name: str, proved: arb_mat) -> None:
        distance = norm(exact(self.arrays[name]) - proved)
        is_stated = distance <= AGREES * (1 + norm(proved))
        require(is_stated, f"{name} is not what follows from the selection")


def added(total: np.ndarray, places: np.ndarray, values: np.ndarray) -> np.ndarray:
    np.add.at(total, places, values)
    return total


class Forest:
    """Ties and tight pairs as edges between token types, none of which closes a circle.

    Attributes:
        ties: (s, r) with (E_s − E_r)·p̂ = 0; tight: pairs where it is 1.
        node: the tied set of each type; tree: what tight pairs link, too.
        path: D_e of tight edges that add up to E_s less that of its tree, shape (types, tight).
    """

    def __init__(self, certificate: Certificate) -> None:
        tied, self.tight = certificate.tied, certificate.arrays["tight"].astype(int).tolist()
        self.tree = np.arange(certificate.n_types)
        ties = zip(certificate.lead[tied.document].tolist(), tied.type.tolist(), strict=True)
        self.ties = [(s, r) for s, r in ties if self._join(s, r).any()]
        self.node = self.tree.copy()
        self.path = np.zeros((certificate.n_types, len(self.tight)), np.int64)
        for edge, (s, r) in enumerate(self.tight):
            offset = self.path[s] - self.path[r]
            offset[edge] -= 1
            moved = self._join(s, r)
            require(moved.any(), "a tight pair follows from the others")
            self.path[moved] += offset

    def _join(self, s: int, r: int) -> np.ndarray:
        """Links two types; a mask of those that are in another tree now, empty if none is."""
        moved = (self.tree == self.tree[r]) & (self.tree[s] != self.tree[r])
        self.tree[moved] = self.tree[s]
        return np.asarray(moved)


class TiedLoss:
    """L_S as a function of y, where z = Σ y_i b_i for some rows b_i that span V."""

    def __init__(self, certificate: Certificate, basis: arb_mat) -> None:
        self.certificate, tied = certificate, certificate.tied
        self.types, self.row = np.unique(tied.type, return_inverse=True)
        self.E = exact(certificate.arrays["E"][self.types]) * basis.transpose()
        self.parts = [np.flatnonzero(tied.document == k) for k in np.unique(tied.document)]

    def derivatives(self, y: arb_mat) -> tuple[arb_mat, arb_mat]:
        """Gradient and Hessian."""
        x, tied = self.certificate, self.certificate.tied
        scores = np.full(x.n_types, ZERO)
        scores[self.types] = balls(self.E * y)
        attention = x.softmax(tied, scores)
        t = attention.q * (x.w[tied.type] - attention.f[tied.document])
        g = (-x.label * attention.sigma)[tied.document]
        bend = (attention.sigma * (1 - x.n * attention.sigma))[tied.document]
        slope = added(np.full(len(self.types), ZERO), self.row, g * t)
        inner = np.diag(slope)
        for part in self.parts:
            mixed = np.outer(attention.q[part], t[part])
            H = np.outer(bend[part] * t[part], t[part]) - g[part][:, None] * (mixed + mixed.T)
            inner[np.ix_(self.row[part], self.row[part])] += H
        return self.E.transpose() * exact(slope), self.E.transpose() * exact(inner) * self.E

    def third_derivative(self) -> arb:
        """M₃: no third derivative along unit vectors y is larger."""
        rows = np.zeros((self.certificate.n_types, self.E.ncols()))
        rows[self.types], error = rounded(self.E)
        length = balls(exact(self.certificate.widths(rows))) + 2 * error
        values = self.certificate.ranges(self.certificate.tied)
        first: np.ndarray = values * length / 4
        second: np.ndarray = values * length**2 / 4
        third = first**3 * MAX_THIRD_OF_LOSS + first * second * 3 / 4 + values * length**3 * 7 / 16
        return (sum(third, ZERO) / self.certificate.n).upper()


class Minimum:
    """(F1) and the tube around it: z* = Σ y*_i b_i for rows b_i that span V.

    By Kantorovich's theorem, L_S has a strict minimum near the stated z: with H within ε of 1 and
    third derivatives of at most M₃, 2 M₃ |slope| < (1 − ε)² suffices, and the minimum is within
    2 |slope|/(1 − ε).

    Attributes:
        dual: the part of v in V is Σ y_i b_i for y = dual v; longest: √Λ ≥ |z| for |y| = 1.
        spread: the Hessian at y* is within this of 1, and in the tube within kappa < ½.
        place: y₀ of the point; distance: a bound on |y₀ − y*|; length: √Λ a.
    """

    def __init__(self, x: Certificate, ties: arb_mat) -> None:
        stated = x.arrays["basis"]
        require(len(stated) == ties.nrows(), "the basis does not have a vector for every tie")
        self.basis = exact(stated @ np.linalg.pinv(floats(ties))) * ties  # exactly in V
        squares = self.basis * self.basis.transpose()
        smallest = least_eigenvalue(squares, "the basis does not span V")
        self.dual, self.longest = solve(squares, self.basis, smallest), norm(squares).sqrt()
        loss = TiedLoss(x, self.basis)
        y = (self.dual * exact(x.arrays["z"])).mid()
        for _ in range(STEPS):
            slope, H = loss.derivatives(y)
            y = (y + newton_step(H, slope)).mid()
        slope, H = loss.derivatives(y)
        missing, third = norm(H - exact(np.eye(len(stated)))), loss.third_derivative()
        is_strict = missing < 1 and 2 * third * norm(slope) < (1 - missing) ** 2
        require(is_strict, "(F1) fails: L_S has no strict minimum near z")
        error = (2 * norm(slope) / (1 - missing)).upper()
        self.y, self.spread = around(y, error), missing + third * error
        x.check_stated("z", self.basis.transpose() * self.y)

        self.a, self.place = x.number("tube"), self.dual * exact(x.arrays["point"])
        self.kappa = (self.spread + third * self.a).upper()
        self.distance, self.length = norm(self.place - self.y), self.longest * self.a
        require(self.a > 0 and self.kappa < 0.5, "the tube is too wide for the curvature")
        is_inside = self.distance < self.a * ((1 - self.kappa) / (1 + self.kappa)).sqrt()
        require(is_inside, "the tied gaps of the point are too far from z*")

    def integral(self, push: arb, log_time: arb) -> arb:
        """I, a bound on ∫|ζ| dτ from τ₀ on, for a push on V of at most `push` e^{τ₀−τ}."""
        is_held = push * self.longest < (1 - self.kappa) * self.a
        require(is_held, "the push on V is too strong")
        start = (1 + self.kappa) * self.distance**2 * (-log_time).exp()
        return self.longest**2 / (1 - self.kappa) * (start + push**2).sqrt()


@dataclass(frozen=True)
class Bounds:
    """γ, Δ and ℓ of each document."""

    gamma: np.ndarray
    values: np.ndarray
    spread: np.ndarray

    @staticmethod
    def of(x: Certificate) -> Bounds:
        E, to_others, others = x.arrays["E"], np.zeros(x.n), x.others
        distances = lengths(E[x.lead[others.document]] - E[others.type])
        np.maximum.at(to_others, others.document, distances)
        within = x.widths(E)
        spread = within + to_others.astype(object)
        return Bounds(x.ranges(x.tied) * within / 4, x.ranges(x.entries), spread)


class Divergence:
    """(F2), (F3) and the inequality; p̂ = Σ x_e (E_s − E_r) over the edges e of the forest.

    Attributes, of pairs (X, r): document: X; type: r; lead: a selected type; pair_class: its class;
        share: c_r e^{E_r·z*}/Z; gain: y (f* − w_r); sigma: σ(−y f*)/n.
        Of classes, which are the pairs of two tied sets: delta: D·p̂ − 1; length: |D|;
        is_tight: whether δ = 0; path: D as a sum of D_e over tight edges, if it is one.
    """

    def __init__(self, x: Certificate) -> None:
        self.x, self.forest, self.radius = x, Forest(x), x.number("radius")
        self.document, self.type = x.others.document, x.others.type
        self.lead, self.n_ties = x.lead[self.document], len(self.forest.ties)
        self.rows = x.differences(self.forest.ties + self.forest.tight)
        self.squares = self.rows * self.rows.transpose()
        self.smallest = least_eigenvalue(self.squares, DEPENDENT)
        self.minimum = Minimum(x, x.differences(self.forest.ties))
        self.bounds = Bounds.of(x)

    def prove(self) -> Proof:
        self.collect_pairs()
        left, right = self.left_side(self.line()).upper(), (self.radius**2 / 2).lower()
        failure = f"the inequality fails: {float(left):.3g} is not below {float(right):.3g}"
        require(self.radius > 0 and left < right, failure)
        lowest = (1 - self.minimum.spread) / self.minimum.longest**2
        curvature = float(lowest) if self.n_ties else np.inf
        return Proof(curvature, float(self.minimum.distance), float(left), float(right))

    def in_span(self, products: arb_mat) -> tuple[arb_mat, arb_mat]:
        """The vector Σ x_e (E_s − E_r) with these products with the edges, and x."""
        x = solve(self.squares, products, self.smallest)
        return self.rows.transpose() * x, x

    def line(self) -> arb_mat:
        """(F2) and (F3): the products of p̂τ₀ + ρ' with the edges."""
        x, n_ties = self.x, self.n_ties
        margins = exact(1.0 * (np.arange(self.rows.nrows()) >= n_ties))
        p_hat, weights = self.in_span(margins)
        x.check_stated("p_hat", p_hat)
        self.collect_classes(balls(x.E * p_hat))
        tight_gaps = self.balance(balls(weights)[n_ties:])
        offsets = exact(np.append(np.full(n_ties, ZERO), tight_gaps))
        x.check_stated("rho", self.in_span(offsets)[0])
        return margins * x.number("log_time") + offsets

    def left_side(self, gaps: arb_mat) -> arb:
        point = exact(self.x.arrays["point"])
        away, _ = self.in_span(self.rows * point - gaps)  # R₀ and the point's part in V
        off_line = norm(away - self.minimum.basis.transpose() * self.minimum.place)
        return off_line**2 / 2 + self.motion(balls(self.x.E * (point - away)))

    def collect_pairs(self) -> None:
        x, V = self.x, self.minimum.basis
        z_scores = balls(x.E * (V.transpose() * self.minimum.y))
        attention = x.softmax(x.selected, z_scores)
        share = x.others.count * np.exp(z_scores[self.type])
        self.share, self.sigma = share / attention.Z[self.document], attention.sigma[self.document]
        self.gain = x.label[self.document] * (attention.f[self.document] - x.w[self.type])
        across, error = rounded(x.E - x.E * V.transpose() * self.minimum.dual)
        self.distances = lengths(across[self.lead] - across[self.type]) + 2 * error

    def collect_classes(self, p_scores: np.ndarray) -> None:
        """(F2): no margin is below 1, and margins of linked types are integers."""
        forest = self.forest
        number = forest.node[self.lead] * self.x.n_types + forest.node[self.type]
        _, first, self.pair_class = np.unique(number, return_index=True, return_inverse=True)
        s, r = self.lead[first], self.type[first]
        is_apart = (forest.node[s] != forest.node[r]).all()
        require(is_apart, "a token is tied with the selected ones but not selected")
        self.path, is_linked = forest.path[s] - forest.path[r], forest.tree[s] == forest.tree[r]
        self.delta = np.where(is_linked, self.path.sum(1) - 1, p_scores[s] - p_scores[r] - 1)
        self.is_tight = is_linked & (self.path.sum(1) == 1)
        is_wide = (self.is_tight | (self.delta > 0).astype(bool)).all()
        require(is_wide, "(F2) fails: a margin is not provably 1 or more")
        self.length = np.full(len(first), np.inf)
        np.minimum.at(self.length, self.pair_class, self.distances)

    def per_class(self, values: np.ndarray) -> np.ndarray:
        return added(np.full(len(self.delta), ZERO), self.pair_class, values)

    def balance(self, target: np.ndarray) -> np.ndarray:
        """(F3): encloses D_e·ρ' of each tight edge, at a strict minimum of Ψ: Σ_T λ_c n_c = target.

        By Newton and Kantorovich, there is one within ϱ = 2 |∇Ψ|/ν if 4 |∇Ψ| Σ|λ_c| |n_c|³ < ν²
        and |n_c| ϱ ≤ ½.
        """
        if not len(target):
            return target
        N = 1.0 * self.path[self.is_tight]
        strengths = self.per_class(self.sigma * self.share * self.gain)[self.is_tight]
        y = exact(balls(self.rows * exact(self.x.arrays["rho"]))[self.n_ties :]).mid()
        for step in range(STEPS + 1):
            forces = strengths * np.exp(-balls(exact(N) * y))
            slope, H = exact(target) - exact(N.T) * exact(forces), gram(N, forces)
            if step < STEPS:
                y = (y + newton_step(H, slope)).mid()
        nu, sizes = least_eigenvalue(H, NO_BALANCE), lengths(N)
        third = sum(abs(forces) * (sizes**3 * ROUNDED_UP).astype(object), ZERO)
        error = (2 * norm(slope) / nu).upper()
        is_near = 2 * error * third < nu and 2 * error * float(sizes.max()) < 1
        require(is_near, NO_BALANCE)
        return balls(around(y, error))

    def motion(self, scores: np.ndarray) -> arb:
        """The left side without ½|R₀|²; the scores are E_s·(p̂τ₀ + ρ').

        Tight pairs are proved not to push R outwards.
        """
        reach = self.length.astype(object) * self.radius
        force, error = self.forces(scores, reach)
        pulled = reach * np.exp(reach)
        total = sum(error * larger(pulled, BY_E), ZERO)
        moved = larger(larger(force * BY_E, -force * pulled), ZERO)
        change = np.where((force > 0).astype(bool), 1 - np.exp(-reach), np.expm1(reach))
        restoring = gram(self.path[self.is_tight], (force * change / reach)[self.is_tight])
        least_eigenvalue(restoring, "tight pairs that pull are too strong within r")
        return total + sum((moved / self.delta)[~self.is_tight], ZERO)

    def forces(self, scores: np.ndarray, reach: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """b and ε of each class."""
        log_time, spread = self.x.number("log_time"), self.bounds.spread
        weight = self.share * np.exp(scores[self.type] - scores[self.lead])
        largest = self.x.total(self.document, weight * np.exp(reach)[self.pair_class])
        logit, moved = self.changes(largest * np.exp(spread * self.minimum.length), log_time)
        change = abs(self.gain) * moved[self.document] + logit[self.document]
        A = weight * self.sigma * log_time.exp()
        return self.per_class(A * self.gain), self.per_class(A * change)

    def changes(self, H: np.ndarray, log_time: arb) -> tuple[np.ndarray, np.ndarray]:
        """Of each document, x and z with k I + θ = |f* − w_r| z + x."""
        minimum, bounds = self.minimum, self.bounds
        gamma, values, spread = bounds.gamma, bounds.values, bounds.spread
        push = sum(H * (gamma + values * spread + values * gamma / 4), ZERO) / self.x.n
        integral = minimum.integral(push, log_time)
        growth = np.exp((gamma + spread) * minimum.length + (values + 1) * H)
        logit = gamma * integral + values * H
        return growth * logit, growth * (logit + spread * integral + H)


def check(arrays: dict[str, np.ndarray]) -> Proof:
    """Proves what a certificate states.

    Raises:
        Refused: a claim that is not proved, or a damaged certificate; the reason says which.
    """
    ctx.prec = BITS
    try:
        return Divergence(Certificate(arrays)).prove()
    except np.linalg.LinAlgError:
        raise Refused("a Hessian or a Gram matrix is not positive definite") from None


def main(arguments: list[str]) -> int:
    """Check a file; exit status 0 if it is proved, 1 if it is refused."""
    if len(arguments) != 1:
        sys.stdout.write("usage: python checker.py certificate.npz\n")
        return 2
    try:
        with open(arguments[0], "rb") as file, np.load(file) as archive:
            proof = check(dict(archive))
    except (Refused, OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        sys.stdout.write(f"refused: {error}\n")
        return 1
    sys.stdout.write(
        f"proved: L_S has a strict minimum on V, with curvature at least {proof.curvature:.3g}\n"
        f"proved: the point's tied gaps are within {proof.distance:.3g} of it\n"
        f"proved: p stays within r of the line for ever, for {proof.left:.6g} < {proof.right:.6g}\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
