"""Prove the limit that a certificate states, in ball arithmetic: python checker.py certificate.npz

This file needs NumPy and python-flint alone and trusts nothing of the package that wrote the
certificate. It proves the theorem of docs/theory.md, "What is proved from one point on", whose
symbols it uses, for exactly the documents, E and w in the file. Everything else in the file is a
claim that is proved or refused. An `arb` is a ball around the exact number; a comparison is true
only if it holds for all of both balls. Double precision serves for starting values, and for
lengths, which are rounded up: a sum of d squares has a relative error of at most (d + 3) 2⁻⁵³.
"""

from __future__ import annotations

import sys
import zipfile
from dataclasses import dataclass

import numpy as np
from flint import arb, arb_mat, ctx

BITS = 192  # 58 digits: a condition number of 10¹² leaves more than 40
ROUNDED_UP = 1 + 1e-9  # covers the rounding of a sum of fewer than 10⁵ squares
AGREES = 1e-6  # relative difference allowed between a vector in the file and the proved one
TINY = arb(1e-300)  # in place of the norm of a matrix without entries
ZERO = arb(0)
BY_E = (-arb(1)).exp()  # largest value of x e^{−x}
MAX_THIRD_OF_LOSS = arb("0.09623")  # of log(1 + e^{−x}): 1/(6√3), rounded up
NO_BALANCE = "(F3) fails: the tight pairs do not balance p̂ at a strict minimum of Ψ"
DEPENDENT = "tied and tight differences are not provably independent"
PULLED = "tight pairs that pull are too strong within r"
STEPS = 5  # Newton steps in 192 bits from a start in double precision
ARRAYS = {  # dtypes, and shape: n documents, e entries, m token types, d dimensions, k = dim V, t
    "labels": "if n", "indptr": "iu n+1", "indices": "iu e", "counts": "iuf e", "selected": "b e",
    "E": "f m d", "w": "f m", "basis": "f k d", "z": "f d", "tight": "iu t 2", "p_hat": "f d",
    "rho": "f d", "point": "f d", "log_time": "f", "radius": "f", "tube": "f",
}  # fmt: skip


class Refused(Exception):
    """The certificate is damaged, or what it states is not proved."""


@dataclass(frozen=True)
class Proof:
    """Proved bounds: the curvature of L_S on V at z*, |y₀ − y*|, both sides of the inequality."""

    curvature: float
    distance: float
    left: float
    right: float


def require(condition: bool, reason: str) -> None:
    if not condition:
        raise Refused(reason)


def exact(values: np.ndarray) -> arb_mat:
    """A matrix of these numbers."""
    n_rows, n_columns = values.shape
    numbers: list[float] = values.ravel().tolist()
    return arb_mat(n_rows, n_columns, numbers)


def floats(A: arb_mat) -> np.ndarray:
    return np.array([float(x.mid()) for x in A.entries()]).reshape(A.nrows(), A.ncols())


def norm(A: arb_mat) -> arb:
    """An upper bound on the Frobenius norm."""
    return sum((x * x for x in A.entries()), arb(0)).upper().sqrt().upper()


def around(A: arb_mat, error: arb) -> arb_mat:
    """A, of which every entry is known up to an error."""
    ball = arb(0, float(error.upper()) * ROUNDED_UP)
    return arb_mat(A.nrows(), A.ncols(), [x + ball for x in A.entries()])


def newton_step(H: arb_mat, slope: arb_mat) -> arb_mat:
    """About −H⁻¹ slope."""
    return exact(-np.linalg.solve(floats(H), floats(slope)))


class PositiveDefinite:
    """A symmetric matrix that is proved to be positive definite: |L A Lᵀ − 1| < 1 for some L.

    Attributes:
        smallest: a positive lower bound on its eigenvalues.
    """

    def __init__(self, A: arb_mat, reason: str) -> None:
        L = exact(np.linalg.inv(np.linalg.cholesky(floats(A))))
        missing = norm(L * A * L.transpose() - exact(np.eye(A.nrows())))
        require(missing < 1, reason)
        self.A = A
        self.smallest = (1 - missing) / (norm(L) ** 2).max(TINY)

    def solve(self, right: arb_mat) -> arb_mat:
        """Encloses A⁻¹ right."""
        x = exact(np.zeros((right.nrows(), right.ncols())))
        for _ in range(STEPS):
            x = (x + newton_step(self.A, self.A * x - right)).mid()
        return around(x, norm(self.A * x - right) / self.smallest)


@dataclass(frozen=True)
class Rows:
    """Vectors in double precision, each within `error` of the exact one."""

    values: np.ndarray
    error: float = 0.0

    @staticmethod
    def of(A: arb_mat) -> Rows:
        values = floats(A)
        return Rows(values, float(norm(A - exact(values))) * ROUNDED_UP)

    def distances(self, row: int, others: list[int]) -> list[float]:
        """Upper bounds on the distances of some vectors from one of them."""
        rounded = np.linalg.norm(self.values[others] - self.values[row], axis=1)
        bounds: list[float] = ((rounded + 2 * self.error) * ROUNDED_UP).tolist()
        return bounds

    def widest(self, rows: list[int]) -> arb:
        """An upper bound on the distances between some vectors."""
        return arb(max(max(self.distances(row, rows)) for row in rows))


@dataclass(frozen=True)
class Document:
    """The label ±1, and how often each selected and each other token type occurs."""

    label: int
    selected: dict[int, int]
    others: dict[int, int]


def checked_sizes(arrays: dict[str, np.ndarray]) -> dict[str, int]:
    """The length of each axis of `ARRAYS`, the same in all arrays; each holds exact numbers."""
    sizes = {"2": 2}
    for name, description in ARRAYS.items():
        kinds, *axes = description.split()
        require(name in arrays, f"the certificate lacks {name}")
        array = arrays[name]
        is_exact = array.dtype.kind in kinds.replace("f", "") or array.dtype == np.float64
        require(is_exact and bool(np.isfinite(array).all()), f"{name} has no exact numbers")
        require(array.ndim == len(axes), f"{name} has the wrong shape")
        for axis, length in zip(axes, array.shape, strict=True):
            require(sizes.setdefault(axis, length) == length, f"{name} has the wrong shape")
        sizes["n+1"] = sizes["n"] + 1
    return sizes


class Certificate:
    """The arrays of a file, checked for damage."""

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self.arrays = arrays
        sizes = checked_sizes(arrays)
        self.n = sizes["n"]
        self.n_types = sizes["m"]
        self._check_values(sizes["e"])
        n_entries = np.diff(arrays["indptr"].astype(int))
        self.documents = [self._document(k) for k in np.flatnonzero(n_entries).tolist()]
        self.E = exact(arrays["E"])
        self.w = arb_mat([arrays["w"].tolist()]).entries()

    def _check_values(self, n_entries: int) -> None:
        starts = self.arrays["indptr"].astype(int)
        is_whole = starts[0] == 0 and starts[-1] == n_entries
        is_ascending = (np.diff(starts) >= 0).all()
        require(bool(is_whole and is_ascending), "indptr does not divide the entries")
        types = np.append(self.arrays["indices"], self.arrays["tight"])
        is_known = (types >= 0) & (types < self.n_types)
        require(bool(is_known.all()), "a token type is unknown")
        counts = self.arrays["counts"]
        is_count = (counts > 0) & (counts == np.rint(counts))
        require(bool(is_count.all()), "a count is wrong")
        require(bool((np.abs(self.arrays["labels"]) == 1).all()), "a label is not ±1")

    def _document(self, k: int) -> Document:
        first, end = self.arrays["indptr"][k : k + 2].tolist()
        types = self.arrays["indices"][first:end].tolist()
        counts = self.arrays["counts"][first:end].tolist()
        is_selected = self.arrays["selected"][first:end].tolist()
        selected: dict[int, int] = {}
        others: dict[int, int] = {}
        for s, count, is_own in zip(types, counts, is_selected, strict=True):
            (selected if is_own else others)[s] = int(count)
        n_different = len(selected.keys() | others.keys())
        is_proper = n_different == len(types) and bool(selected)
        require(is_proper, "a document lists a type twice or selects nothing")
        return Document(int(self.arrays["labels"][k]), selected, others)

    def number(self, name: str) -> arb:
        return arb(float(self.arrays[name]))

    def vector(self, name: str) -> arb_mat:
        return exact(self.arrays[name].reshape(-1, 1))

    def values_differ(self, types: list[int]) -> arb:
        """An upper bound on the range of w."""
        return arb(float(np.ptp(self.arrays["w"][types])) * ROUNDED_UP)

    def differences(self, edges: list[tuple[int, int]]) -> arb_mat:
        rows = self.E.table()
        parts = [x - y for s, r in edges for x, y in zip(rows[s], rows[r], strict=True)]
        return arb_mat(len(edges), self.E.ncols(), parts)

    def check_stated(self, name: str, proved: arb_mat) -> None:
        distance, size = norm(self.vector(name) - proved), norm(proved)
        require(distance <= AGREES * (1 + size), f"{name} is not what follows from the selection")


class Forest:
    """Ties and tight pairs as edges between token types, none of which closes a circle.

    Attributes:
        ties, edges: (s, r) with (E_s − E_r)·p̂ = 0; these, and the tight pairs, where it is 1.
        node: the tied set of each type; tree: what tight pairs link, too.
        path: D_e of tight edges that add up to E_s less that of its tree, shape (types, tight).
    """

    def __init__(self, certificate: Certificate) -> None:
        tight = certificate.arrays["tight"].tolist()
        self.tree = np.arange(certificate.n_types)
        ties = [(min(x.selected), s) for x in certificate.documents for s in x.selected]
        self.ties = [(s, r) for s, r in ties if self._join(s, r).any()]
        self.edges = self.ties + [(s, r) for s, r in tight]
        self.node = self.tree.copy()
        self.path = np.zeros((certificate.n_types, len(tight)), np.int64)
        for edge, (s, r) in enumerate(tight):
            offset = self.path[s] - self.path[r]
            offset[edge] -= 1
            moved = self._join(s, r)
            require(bool(moved.any()), "a tight pair follows from the others")
            self.path[moved] += offset

    def _join(self, s: int, r: int) -> np.ndarray:
        """Links two types; a mask of those that are in another tree now, empty if none is."""
        moved = (self.tree == self.tree[r]) & (self.tree[s] != self.tree[r])
        self.tree[moved] = self.tree[s]
        return np.asarray(moved)


@dataclass(frozen=True)
class Softmax:
    """The selected types of a document among themselves: q_s, f^S, Z; and σ(−y f^S)."""

    q: list[arb]
    f: arb
    total: arb
    sigma: arb


def softmax(x: Document, u: dict[int, arb] | list[arb], w: list[arb]) -> Softmax:
    weights = [count * u[s].exp() for s, count in x.selected.items()]
    total = sum(weights, arb(0))
    q = [weight / total for weight in weights]
    f = sum((q_s * w[s] for q_s, s in zip(q, x.selected, strict=True)), arb(0))
    return Softmax(q, f, total, 1 / (1 + (x.label * f).exp()))


class TiedLoss:
    """L_S as a function of y, where z = Σ y_i b_i for some rows b_i that span V."""

    def __init__(self, certificate: Certificate, basis: arb_mat) -> None:
        self.certificate = certificate
        self.documents = [x for x in certificate.documents if len(x.selected) > 1]
        self.types = sorted({s for x in self.documents for s in x.selected})
        rows = [value for s in self.types for value in certificate.E.table()[s]]
        self.A = arb_mat(len(self.types), certificate.E.ncols(), rows) * basis.transpose()

    def derivatives(self, y: arb_mat) -> tuple[arb_mat, arb_mat]:
        """Gradient and Hessian."""
        row = {s: k for k, s in enumerate(self.types)}
        slope, bend = arb_mat(len(row), 1), arb_mat(len(row), len(row))
        u = dict(zip(self.types, (self.A * y).entries(), strict=True))
        for x in self.documents:
            attention = softmax(x, u, self.certificate.w)
            g = -x.label * attention.sigma / self.certificate.n
            g_prime = attention.sigma * (1 - attention.sigma) / self.certificate.n
            parts = [
                (row[s], q, q * (self.certificate.w[s] - attention.f))
                for s, q in zip(x.selected, attention.q, strict=True)
            ]
            for a, q_a, t_a in parts:
                slope[a, 0] += g * t_a
                bend[a, a] += g * t_a
                for b, q_b, t_b in parts:
                    bend[a, b] += g_prime * t_a * t_b - g * (q_a * t_b + t_a * q_b)
        return self.A.transpose() * slope, self.A.transpose() * bend * self.A

    def nearest_minimum(self, y: arb_mat) -> arb_mat:
        """Where Newton's method from y leads: a value to prove things of, nothing proved itself."""
        for _ in range(STEPS):
            slope, H = self.derivatives(y)
            y = (y + newton_step(H, slope)).mid()
        return y

    def third_derivative(self) -> arb:
        """M₃: no third derivative along unit vectors y is larger."""
        row, rows, total = {s: k for k, s in enumerate(self.types)}, Rows.of(self.A), ZERO
        for x in self.documents:
            values = self.certificate.values_differ(list(x.selected))
            length = rows.widest([row[s] for s in x.selected])
            first, second = values * length / 4, values * length**2 / 4
            total += MAX_THIRD_OF_LOSS * first**3 + first * second * 3 / 4
            total += values * length**3 * 7 / 16
        return (total / self.certificate.n).upper()


@dataclass(frozen=True)
class Minimum:
    """(F1): encloses y*, where z* = Σ y*_i b_i for rows b_i that span V.

    Attributes:
        basis: b; dual: the part of a vector v in V is Σ y_i b_i for y = dual v.
        spread: the Hessian at y* is within this of 1; third: M₃; longest: √Λ ≥ |z| for |y| = 1.
    """

    basis: arb_mat
    dual: arb_mat
    y: arb_mat
    spread: arb
    third: arb
    longest: arb

    @staticmethod
    def of(certificate: Certificate, ties: arb_mat) -> Minimum:
        """Proves by Kantorovich's theorem that L_S has a strict minimum near the stated z.

        `ties` are differences of tied types that span V, one a row. With H within ε of 1 and third
        derivatives of at most M₃, 2 M₃ |slope| < (1 − ε)² suffices, and the minimum is within
        2 |slope|/(1 − ε).
        """
        stated = certificate.arrays["basis"]
        require(len(stated) == ties.nrows(), "the basis does not have a vector for every tie")
        basis = exact(stated @ np.linalg.pinv(floats(ties))) * ties  # exactly in V
        gram = basis * basis.transpose()
        dual = PositiveDefinite(gram, "the basis does not span V").solve(basis)
        loss = TiedLoss(certificate, basis)
        y = loss.nearest_minimum((dual * certificate.vector("z")).mid())
        slope, H = loss.derivatives(y)
        missing = norm(H - exact(np.eye(len(stated))))
        third = loss.third_derivative()
        is_strict = missing < 1 and 2 * third * norm(slope) < (1 - missing) ** 2
        require(is_strict, "(F1) fails: L_S has no strict minimum near z")
        certificate.check_stated("z", basis.transpose() * y)
        error = (2 * norm(slope) / (1 - missing)).upper()
        y = around(y, error)
        return Minimum(basis, dual, y, missing + third * error, third, norm(gram).sqrt())

    @property
    def curvature(self) -> float:
        """A lower bound on the curvature of L_S on V at z*."""
        return float((1 - self.spread) / self.longest**2) if self.basis.nrows() else np.inf


@dataclass(frozen=True)
class Tube:
    """A trap for the tied gaps: |y − y*| < a for ever if the push on V is weak.

    Attributes:
        kappa: within it the Hessian is within κ < ½ of 1; length: √Λ a.
        place: y₀ of the point; distance: a bound on |y₀ − y*|.
    """

    minimum: Minimum
    a: arb
    kappa: arb
    length: arb
    place: arb_mat
    distance: arb

    @staticmethod
    def of(certificate: Certificate, minimum: Minimum) -> Tube:
        a, place = certificate.number("tube"), minimum.dual * certificate.vector("point")
        kappa, distance = (minimum.spread + minimum.third * a).upper(), norm(place - minimum.y)
        require(a > 0 and kappa < 0.5, "the tube is too wide for the curvature")
        is_inside = distance < a * ((1 - kappa) / (1 + kappa)).sqrt()
        require(is_inside, "the tied gaps of the point are too far from z*")
        return Tube(minimum, a, kappa, minimum.longest * a, place, distance)

    def integral(self, push: arb, log_time: arb) -> arb:
        """I, a bound on ∫|ζ| dτ from τ₀ on, for a push on V of at most `push` e^{τ₀−τ}."""
        longest, rate = self.minimum.longest, 1 - self.kappa
        require(push * longest < rate * self.a, "the push on V is too strong")
        start = (1 + self.kappa) * self.distance**2 * (-log_time).exp()
        return longest**2 / rate * (start + push**2).sqrt()


@dataclass
class PairClass:
    """All pairs (X, r) with one D: the same two tied sets of types.

    Attributes:
        delta: D·p̂ − 1; path: D as a sum of D_e over tight edges, None if it is none.
        length: a bound on |D|; strength: Σ K; force: b; error: ε.
    """

    delta: arb
    path: np.ndarray | None
    length: float = np.inf
    strength: arb = ZERO
    force: arb = ZERO
    error: arb = ZERO

    @property
    def is_tight(self) -> bool:
        return self.path is not None and bool(self.delta == 0)


@dataclass(frozen=True)
class Pair:
    """An unselected type r of X: c_r e^{E_r·z*}/Z, A over that, y (f* − w_r), and its class."""

    r: int
    share: arb
    per_share: arb
    gain: arb
    pair_class: PairClass


@dataclass(frozen=True)
class Reach:
    """Bounds of a document: γ, ℓ, Δ, and H on the weight of its pairs, which weigh this at τ₀."""

    gamma: arb
    spread: arb
    values: arb
    H: arb
    weights: list[arb]

    def push(self) -> arb:
        """The document's part of B, times n."""
        part = self.gamma + self.values * self.spread + self.values * self.gamma / 4
        return self.H * part

    def growth(self, zeta: arb) -> arb:
        """G, for |ζ| of at most `zeta`."""
        return ((self.gamma + self.spread) * zeta + (self.values + 1) * self.H).exp()

    def change(self, gain: arb, zeta: arb) -> arb:
        """|K̃ − K|/(A G), integrated over time, for ∫|ζ| dτ of at most `zeta`."""
        logit = self.gamma * zeta + self.values * self.H
        return abs(gain) * (logit + self.spread * zeta + self.H) + logit


@dataclass(frozen=True)
class BalancePoint:
    """Ψ at y = D·ρ': the force λ_c e^{−n_c·y} of each tight class, −∇Ψ, and the curvature."""

    forces: list[arb]
    slope: arb_mat
    H: arb_mat


def balance_at(y: arb_mat, N: np.ndarray, strengths: list[arb], target: arb_mat) -> BalancePoint:
    """Ψ at a point; the rows of N are n_c, and at the minimum Σ_c force_c n_c is the target."""
    paths = exact(N)
    gaps = (paths * y).entries()
    forces = [strength * (-gap).exp() for strength, gap in zip(strengths, gaps, strict=True)]
    slope = target - paths.transpose() * arb_mat(len(forces), 1, forces)
    return BalancePoint(forces, slope, weighted_gram(N, forces))


class Divergence:
    """(F2), (F3) and the inequality; p̂ = Σ x_e (E_s − E_r) over the edges e of the forest."""

    def __init__(self, certificate: Certificate) -> None:
        self.certificate, self.forest = certificate, Forest(certificate)
        self.rows = certificate.differences(self.forest.edges)
        self.gram = PositiveDefinite(self.rows * self.rows.transpose(), DEPENDENT)
        self.minimum = Minimum.of(certificate, certificate.differences(self.forest.ties))
        self.tube = Tube.of(certificate, self.minimum)
        self.radius = certificate.number("radius")
        self.documents = [x for x in certificate.documents if x.others]
        self.pairs: list[list[Pair]] = []
        self.classes: dict[tuple[int, int], PairClass] = {}

    def prove(self) -> Proof:
        certificate, n_ties = self.certificate, len(self.forest.ties)
        margins = exact(1.0 * (np.arange(self.rows.nrows()).reshape(-1, 1) >= n_ties))
        x = self.gram.solve(margins)
        p_hat = self.rows.transpose() * x
        certificate.check_stated("p_hat", p_hat)
        self.collect((certificate.E * p_hat).entries())
        offsets = arb_mat(x.nrows(), 1, [ZERO] * n_ties + self.balance(x.entries()[n_ties:]))
        certificate.check_stated("rho", self.rows.transpose() * self.gram.solve(offsets))

        gaps = margins * certificate.number("log_time") + offsets  # of p̂τ₀ + ρ'
        left = (self.cost_from(gaps) + self.motion()).upper()
        right = (self.radius**2 / 2).lower()
        failure = f"the inequality fails: {float(left):.3g} is not below {float(right):.3g}"
        require(self.radius > 0 and left < right, failure)
        return Proof(self.minimum.curvature, float(self.tube.distance), float(left), float(right))

    def cost_from(self, gaps: arb_mat) -> arb:
        """½|R₀|², after the forces are added up; p̂τ₀ + ρ' has these gaps along the edges."""
        point = self.certificate.vector("point")
        away = self.gram.solve(self.rows * point - gaps)
        apart = self.rows.transpose() * away  # R₀ and the point's part in V
        self.add_forces((self.certificate.E * (point - apart)).entries())
        return norm(apart - self.minimum.basis.transpose() * self.tube.place) ** 2 / 2

    def collect(self, p_scores: list[arb]) -> None:
        """Every pair (X, r), with K; the scores are E_s·p̂."""
        certificate, basis = self.certificate, self.minimum.basis
        z_scores = (certificate.E * (basis.transpose() * self.minimum.y)).entries()
        across = Rows.of(certificate.E - certificate.E * basis.transpose() * self.minimum.dual)
        for x in self.documents:
            attention, lead = softmax(x, z_scores, certificate.w), min(x.selected)
            bounds = across.distances(lead, list(x.others))
            pairs = []
            for (r, count), length in zip(x.others.items(), bounds, strict=True):
                pair_class = self.class_of(lead, r, p_scores)
                share = count * z_scores[r].exp() / attention.total
                gain = x.label * (attention.f - certificate.w[r])
                pairs.append(Pair(r, share, attention.sigma / certificate.n, gain, pair_class))
                pair_class.strength += attention.sigma / certificate.n * share * gain
                pair_class.length = min(pair_class.length, length)
            self.pairs.append(pairs)

    def class_of(self, s: int, r: int, p_scores: list[arb]) -> PairClass:
        """(F2): no margin is below 1, and margins of linked types are integers."""
        forest, ends = self.forest, (int(self.forest.node[s]), int(self.forest.node[r]))
        require(ends[0] != ends[1], "a token is tied with the selected ones but not selected")
        if ends not in self.classes:
            delta, path = p_scores[s] - p_scores[r] - 1, None
            if forest.tree[s] == forest.tree[r]:
                path = forest.path[s] - forest.path[r]
                delta = arb(int(path.sum()) - 1)
            is_wide = delta > 0 or (path is not None and delta == 0)
            require(is_wide, "(F2) fails: a margin is not provably 1 or more")
            self.classes[ends] = PairClass(delta, path)
        return self.classes[ends]

    def balance(self, x: list[arb]) -> list[arb]:
        """(F3): encloses D_e·ρ' of each tight edge, at a strict minimum of Ψ: Σ_T λ_c n_c = x.

        By Newton and Kantorovich, there is one within 2 |∇Ψ|/ν if 4 |∇Ψ| Σ|λ_c| |n_c|³ < ν².
        """
        tight = [pair_class for pair_class in self.classes.values() if pair_class.is_tight]
        N = np.array([pair_class.path for pair_class in tight], float).reshape(len(tight), len(x))
        strengths = [pair_class.strength for pair_class in tight]
        target = arb_mat(len(x), 1, x)
        stated = (self.rows * self.certificate.vector("rho")).entries()
        y = arb_mat(len(x), 1, stated[len(self.forest.ties) :]).mid()
        for _ in range(STEPS):
            point = balance_at(y, N, strengths, target)
            y = (y + newton_step(point.H, point.slope)).mid()
        point = balance_at(y, N, strengths, target)
        nu = PositiveDefinite(point.H, NO_BALANCE).smallest
        cubes = ((np.linalg.norm(N, axis=1) * ROUNDED_UP) ** 3).tolist()
        terms = [abs(force) * cube for force, cube in zip(point.forces, cubes, strict=True)]
        third = sum(terms, ZERO)
        require(4 * norm(point.slope) * third < nu**2 or not x, NO_BALANCE)
        return around(y, 2 * norm(point.slope) / nu).entries()

    def add_forces(self, scores: list[arb]) -> None:
        """Adds b and ε to the classes; the scores are E_s·(p̂τ₀ + ρ')."""
        log_time = self.certificate.number("log_time")
        reaches = [
            self.reach(x, pairs, scores)
            for x, pairs in zip(self.documents, self.pairs, strict=True)
        ]
        push = sum((reach.push() for reach in reaches), ZERO) / self.certificate.n
        integral = self.tube.integral(push, log_time)
        for pairs, reach in zip(self.pairs, reaches, strict=True):
            growth = reach.growth(self.tube.length)
            for pair, weight in zip(pairs, reach.weights, strict=True):
                A = weight * pair.per_share * log_time.exp()
                pair.pair_class.force += A * pair.gain
                pair.pair_class.error += A * growth * reach.change(pair.gain, integral)

    def reach(self, x: Document, pairs: list[Pair], scores: list[arb]) -> Reach:
        E, lead = Rows(self.certificate.arrays["E"]), min(x.selected)
        within = E.widest(list(x.selected))
        spread = within + max(E.distances(lead, list(x.others)))
        gamma = self.certificate.values_differ(list(x.selected)) * within / 4
        values = self.certificate.values_differ([*x.selected, *x.others])
        weights = [pair.share * (scores[pair.r] - scores[lead]).exp() for pair in pairs]
        lengthened = [
            weight * (pair.pair_class.length * self.radius).exp()
            for pair, weight in zip(pairs, weights, strict=True)
        ]
        H = sum(lengthened, ZERO) * (spread * self.tube.length).exp()
        return Reach(gamma, spread, values, H.upper(), weights)

    def motion(self) -> arb:
        """The left side without ½|R₀|²; proves that tight pairs do not push R outwards."""
        total, restoring, paths = ZERO, [], []
        for pair_class in self.classes.values():
            reach = (pair_class.length * self.radius).upper()
            pulled, force = reach * reach.exp(), pair_class.force
            total += pair_class.error * pulled.max(BY_E)
            if pair_class.is_tight:
                change = 1 - (-reach).exp() if force > 0 else reach.expm1()
                restoring.append((force * change / reach).lower())
                paths.append(pair_class.path)
            else:
                moved = (force * BY_E).max(-force * pulled).upper().max(ZERO)
                total += moved / pair_class.delta
        if not all(weight > 0 for weight in restoring):
            PositiveDefinite(weighted_gram(np.array(paths, float), restoring), PULLED)
        return total


def weighted_gram(N: np.ndarray, weights: list[arb]) -> arb_mat:
    """Σ weight n nᵀ."""
    weighted = [weight * n_k for weight, n in zip(weights, N.tolist(), strict=True) for n_k in n]
    n_rows, n_columns = N.shape
    return exact(N.T) * arb_mat(n_rows, n_columns, weighted)


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
