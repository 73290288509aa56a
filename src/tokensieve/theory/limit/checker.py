"""Prove the limit that a certificate states, in ball arithmetic: python checker.py certificate.npz

This file needs NumPy and python-flint alone and trusts nothing of the package that wrote the
certificate. It proves the theorem of docs/theory.md, "What is proved from one point on", whose
symbols it uses, for exactly the numbers in the file: the documents, E and w. Everything else in the
file (the selection, z*, p̂, ρ', the tight pairs, a point p₀, the radii a and r) is a claim that is
proved or refused. Every ball is an enclosure. Only lengths are computed in double precision, and
rounded up: a sum of d squares has a relative error of at most (d + 3) 2⁻⁵³ in any order.
"""

from __future__ import annotations

import sys
import zipfile
from dataclasses import dataclass

import numpy as np
from flint import arb, arb_mat, ctx

BITS = 192  # 58 digits: a condition number of 10¹² leaves more than 40
ROUNDED_UP = 1 + 1e-9  # covers the rounding of a sum of d < 10⁵ positive numbers
ROUNDING = 1e-12  # covers that of rows rounded to double, 2⁻⁵³, and of their difference
AGREES = 1e-6  # relative difference allowed between a vector in the file and the proved one
BY_E = (-arb(1)).exp()  # largest value of x e^{−x}
NO_MINIMUM = "(F1) fails: L_S has no strict minimum near z"
NO_BALANCE = "(F3) fails: the tight pairs do not balance p̂ at a strict minimum of Ψ"
DEPENDENT = "differences of tied and tight embeddings are not provably independent"
NEWTON_STEPS = 4  # from 10⁻⁶, each doubles the digits
HUGE = 300.0  # exponents in the floating-point search for ρ' stop here
SHAPES = {  # n documents, e entries, m token types, d dimensions, t tight pairs
    "indptr": "n+1", "indices": "e", "counts": "e", "labels": "n", "selected": "e", "E": "m d",
    "w": "m", "z": "d", "point": "d", "tube": "",
}  # fmt: skip
DIVERGING = {"p_hat": "d", "rho": "d", "tight": "t 2", "log_time": "", "radius": ""}


class Refused(Exception):
    """The certificate is damaged, or what it states is not proved."""


def require(condition: bool, reason: str) -> None:
    if not condition:
        raise Refused(reason)


@dataclass(frozen=True)
class Proof:
    """What was proved: bounds that hold for the exact numbers.

    Attributes:
        curvature: lower bound on the smallest curvature of L_S on V at z*; inf where V = 0.
        distance: upper bound on |ζ₀|, in the norm of the Hessian.
        left, right: the sides of the inequality; 0 for a finite limit.
    """

    curvature: float
    distance: float
    left: float = 0.0
    right: float = 0.0


@dataclass(frozen=True)
class Document:
    """A document with token types."""

    selected: list[int]
    selected_counts: list[int]
    others: list[int]
    other_counts: list[int]
    label: int


class Certificate:
    """The arrays of a file, checked for damage, and the documents that contain a type."""

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self.diverges = any(name in arrays for name in DIVERGING)
        shapes = SHAPES | DIVERGING if self.diverges else SHAPES
        missing = [name for name in shapes if name not in arrays]
        require(not missing, f"the certificate lacks {', '.join(missing)}")
        self.arrays = {name: arrays[name] for name in shapes}
        require(self["E"].ndim == 2, "E is not a matrix")
        sizes = {"n": len(self["labels"]), "e": self["indices"].size, "2": 2}
        sizes |= {"n+1": len(self["labels"]) + 1, "m": len(self["E"]), "d": self["E"].shape[1]}
        sizes["t"] = len(self["tight"]) if self.diverges else 0
        for name, symbols in shapes.items():
            expected = tuple(sizes[symbol] for symbol in symbols.split())
            require(self[name].shape == expected, f"{name} has the wrong shape")
            require(self[name].dtype.kind in "biuf", f"{name} is not numeric")
            require(bool(np.isfinite(self[name]).all()), f"{name} is not finite")
            is_exact = self[name].dtype.kind != "f" or self[name].dtype == np.float64
            require(is_exact, f"{name} is not in double precision")
        self.n = sizes["n"]
        self._check_numbers(sizes["m"])
        self.documents = [x for k in range(self.n) if (x := self._document(k)) is not None]
        self.E = arb_mat(self["E"].astype(float).tolist())
        self.w = [arb(float(value)) for value in self["w"]]

    def __getitem__(self, name: str) -> np.ndarray:
        return self.arrays[name]

    def number(self, name: str) -> arb:
        return arb(float(self[name]))

    def vector(self, name: str) -> arb_mat:
        return column([arb(float(value)) for value in self[name]])

    def value_range(self, types: list[int]) -> arb:
        return arb(float(np.ptp(self["w"][types]) * ROUNDED_UP))

    def differences(self, pairs: list[tuple[int, int]]) -> arb_mat:
        """E_s − E_r of each pair, shape (pairs, d)."""
        d = self.E.ncols()
        return arb_mat([[self.E[s, k] - self.E[r, k] for k in range(d)] for s, r in pairs])

    def _check_numbers(self, n_types: int) -> None:
        indptr, indices, counts = self["indptr"], self["indices"], self["counts"]
        for name in ("indptr", "indices", "tight") if self.diverges else ("indptr", "indices"):
            require(self[name].dtype.kind in "iu", f"{name} has no integers")
        in_order = indptr[0] == 0 and indptr[-1] == len(indices) and (np.diff(indptr) >= 0).all()
        require(bool(in_order), "indptr does not divide the entries")
        types = np.concatenate([indices, self["tight"].ravel()]) if self.diverges else indices
        require(bool(((types >= 0) & (types < n_types)).all()), "a token type is unknown")
        require(bool(((counts > 0) & (counts == np.rint(counts))).all()), "a count is wrong")
        require(self["E"].dtype == np.float64, "E is not in double precision")
        require(set(np.unique(self["labels"])) <= {-1, 1}, "a label is not ±1")
        require(self["selected"].dtype == bool, "the selection is not a mask")

    def _document(self, k: int) -> Document | None:
        row = slice(int(self["indptr"][k]), int(self["indptr"][k + 1]))
        types, is_selected = self["indices"][row], self["selected"][row]
        counts = self["counts"][row].astype(np.int64)
        if not len(types):
            return None
        require(len(np.unique(types)) == len(types), "a document lists a type twice")
        require(bool(is_selected.any()), "a document selects nothing")
        return Document(
            types[is_selected].tolist(), counts[is_selected].tolist(),
            types[~is_selected].tolist(), counts[~is_selected].tolist(), int(self["labels"][k]),
        )  # fmt: skip


class Forest:
    """Ties and tight pairs as a forest over types: margins between linked types are exact integers.

    Attributes:
        rows: type pairs (s, r), first n_ties ties with (E_s − E_r)·p̂ = 0, then tight pairs with 1.
        root, tie_root: a type of each type's component, with and without the tight pairs.
        path: signed tight edges between each type and its root, shape (types, tight edges).
    """

    def __init__(self, certificate: Certificate) -> None:
        tight = certificate["tight"].tolist() if certificate.diverges else []
        self.root = np.arange(len(certificate.w))
        ties = [(x.selected[0], s) for x in certificate.documents for s in x.selected[1:]]
        self.rows = [pair for pair in ties if self._join(*pair).any()]
        self.n_ties = len(self.rows)
        self.tie_root = self.root.copy()
        self.path = np.zeros((len(self.root), len(tight)), np.int64)
        for edge, (s, r) in enumerate(tight):
            offset = self.path[s] - self.path[r]
            offset[edge] -= 1
            moved = self._join(s, r)
            require(bool(moved.any()), "a tight pair follows from the others")
            self.path[moved] += offset
            self.rows.append((s, r))

    def _join(self, s: int, r: int) -> np.ndarray:
        """Link two types; the mask of types whose root changed, nowhere true if they were
        linked."""
        moved = (self.root == self.root[r]) & (self.root[s] != self.root[r])
        self.root[moved] = self.root[s]
        return np.asarray(moved)


def lengths(rows: np.ndarray, pairs: list[tuple[int, int]]) -> np.ndarray:
    """Upper bounds on |row_a − row_b|, for rows that are exact or rounded once to double."""
    ends = np.array(pairs, np.int64).reshape(-1, 2)
    a, b = rows[ends[:, 0]], rows[ends[:, 1]]
    rounding = ROUNDING * (np.linalg.norm(a, axis=1) + np.linalg.norm(b, axis=1))
    return np.asarray((np.linalg.norm(a - b, axis=1) + rounding) * ROUNDED_UP)


def column(values: list[arb]) -> arb_mat:
    return arb_mat([[value] for value in values])


def norm(values: arb_mat) -> arb:
    return sum((x * x for x in values.entries()), arb(0)).upper().sqrt().upper()


def floats(matrix: arb_mat) -> np.ndarray:
    return np.array([[float(x.mid()) for x in row] for row in matrix.tolist()])


def diagonal(size: int, value: float | arb = 1) -> arb_mat:
    return arb_mat([[value if k == j else 0 for k in range(size)] for j in range(size)])


def inverse_factor(A: arb_mat, reason: str) -> arb_mat:
    """X with X A Xᵀ nearly the identity."""
    try:
        return arb_mat(np.linalg.inv(np.linalg.cholesky(floats(A))).tolist())
    except np.linalg.LinAlgError:
        raise Refused(reason) from None


def require_positive(A: arb_mat, reason: str) -> None:
    """Proves that A is positive definite: some X A Xᵀ is within 1 of the identity."""
    X = inverse_factor(A, reason)
    require(norm(X * A * X.transpose() - diagonal(A.nrows())) < 1, reason)


def smallest_eigenvalue(A: arb_mat, reason: str) -> arb:
    """A positive lower bound."""
    bound = 0.9 * float(np.linalg.eigvalsh(floats(A))[0])  # 0.9 is room for rounding
    require(bound > 0, reason)
    require_positive(A - diagonal(A.nrows(), bound), reason)
    return arb(bound)


def largest_eigenvalue(A: arb_mat, reason: str) -> arb:
    """An upper bound."""
    bound = 1.1 * float(np.linalg.eigvalsh(floats(A))[-1])
    require_positive(diagonal(A.nrows(), bound) - A, reason)
    return arb(bound)


def solve(A: arb_mat, right: arb_mat, reason: str) -> arb_mat:
    """Encloses A⁻¹ right, and proves that A is invertible."""
    try:
        return A.solve(right)
    except ZeroDivisionError:
        raise Refused(reason) from None


@dataclass(frozen=True)
class Softmax:
    """The selected types of a document among themselves: q_s, f^S and Z; and σ(−y f^S)."""

    q: list[arb]
    f: arb
    total: arb
    sigma: arb


def softmax(document: Document, u: dict[int, arb] | list[arb], w: list[arb]) -> Softmax:
    counts = zip(document.selected, document.selected_counts, strict=True)
    weights = [count * u[s].exp() for s, count in counts]
    total = sum(weights, arb(0))
    q = [weight / total for weight in weights]
    f = sum((x * w[s] for x, s in zip(q, document.selected, strict=True)), arb(0))
    return Softmax(q, f, total, 1 / (1 + (document.label * f).exp()))


@dataclass(frozen=True)
class TiedLoss:
    """L_S in coordinates y of V, in which type types[k] is A_k."""

    certificate: Certificate
    documents: list[Document]
    types: list[int]
    A: arb_mat

    @staticmethod
    def of(certificate: Certificate, documents: list[Document], basis: arb_mat) -> TiedLoss:
        types = sorted({s for x in documents for s in x.selected})
        rows = arb_mat([certificate.E.table()[s] for s in types])
        return TiedLoss(certificate, documents, types, rows * basis.transpose())

    def derivatives(self, y: arb_mat) -> tuple[arb_mat, arb_mat]:
        """Gradient and Hessian."""
        n_types = len(self.types)
        number = {s: k for k, s in enumerate(self.types)}
        u = dict(zip(self.types, (self.A * y).entries(), strict=True))
        slope = [arb(0)] * n_types
        bend = [[arb(0)] * n_types for _ in self.types]
        for x in self.documents:
            attention = softmax(x, u, self.certificate.w)
            rows = [number[s] for s in x.selected]
            part = document_derivatives(x, attention, self.certificate)
            for a, row in enumerate(rows):
                slope[row] += part[0][a]
                for b, other in enumerate(rows):
                    bend[row][other] += part[1][a][b]
        return self.A.transpose() * column(slope), self.A.transpose() * arb_mat(bend) * self.A

    def third_derivative(self) -> arb:
        """M₃: L_S has third derivatives of at most this along unit vectors y."""
        rows = floats(self.A)
        number = {s: k for k, s in enumerate(self.types)}
        total = arb(0)
        for x in self.documents:
            values = self.certificate.value_range(x.selected)
            longest = arb(farthest(rows, [number[s] for s in x.selected]))
            first = values * longest / 4
            second = values * longest**2 / 4
            total += arb("0.09623") * first**3 + first * second * 3 / 4
            total += arb(7) / 16 * values * longest**3
        return (total / self.certificate.n).upper()


def document_derivatives(
    x: Document, attention: Softmax, certificate: Certificate
) -> tuple[list[arb], list[list[arb]]]:
    """First and second derivatives of a document's part of L_S in the scores of its selected
    types."""
    q, sigma = attention.q, attention.sigma
    t = [q_s * (certificate.w[s] - attention.f) for q_s, s in zip(q, x.selected, strict=True)]
    g = -x.label * sigma / certificate.n
    g_prime = sigma * (1 - sigma) / certificate.n
    size = range(len(q))
    bend = [[g_prime * t[a] * t[b] - g * (q[a] * t[b] + t[a] * q[b]) for b in size] for a in size]
    for a in size:
        bend[a][a] += g * t[a]
    return [g * t_s for t_s in t], bend


def farthest(rows: np.ndarray, numbers: list[int]) -> float:
    """An upper bound on the distances of some rows; 0 for a single one."""
    pairs = [(a, b) for a in numbers for b in numbers if a < b]
    return float(lengths(rows, pairs).max(initial=0.0))


@dataclass(frozen=True)
class Minimum:
    """(F1): z̄ within ε of the exact z*, in the norm of a basis in which the Hessian is nearly 1.

    Attributes:
        basis: rows that span V, shape (k, d); the norm of z = Σ y_i basis_i is |y|. No rows where V
            = 0.
        z: z̄, shape (d, 1); error: ε.
        spread: a bound on |H − 1| at z*; third: M₃.
        shortest, longest: bounds on |z|²/|y|².
        scores: E_s·z* of each type; softmaxes: of each document, at z*.
        outside: ΠE_s, the parts of the embeddings across V, rounded to double, shape (m, d).
    """

    basis: arb_mat
    z: arb_mat
    error: arb
    spread: arb
    third: arb
    shortest: arb
    longest: arb
    scores: list[arb]
    softmaxes: list[Softmax]
    outside: np.ndarray

    @property
    def gram(self) -> arb_mat:
        return self.basis * self.basis.transpose()

    def inside(self, vector: arb_mat) -> arb_mat:
        """Coordinates of a vector's part in V."""
        return solve(self.gram, self.basis * vector, "V is degenerate")


def find_minimum(certificate: Certificate, forest: Forest) -> Minimum:
    """Proves (F1)."""
    tied = [x for x in certificate.documents if len(x.selected) > 1]
    if not tied:
        require(not certificate["z"].any(), "z is not 0 although nothing is tied")
        scores = [arb(0)] * certificate.E.nrows()
        softmaxes = [softmax(x, scores, certificate.w) for x in certificate.documents]
        origin = arb_mat(certificate.E.ncols(), 1)
        no_basis = arb_mat(0, certificate.E.ncols())
        zero = arb(0)
        return Minimum(
            no_basis, origin, zero, zero, zero, zero, zero, scores, softmaxes, certificate["E"]
        )

    basis = certificate.differences(forest.rows[: forest.n_ties])
    basis = inverse_factor(basis * basis.transpose(), DEPENDENT) * basis
    loss = TiedLoss.of(certificate, tied, basis)
    y = (basis * certificate.vector("z")).mid()
    for _ in range(NEWTON_STEPS):
        slope, H = loss.derivatives(y)
        y = (y - solve(H.mid(), slope.mid(), NO_MINIMUM)).mid()
    turn = inverse_factor(loss.derivatives(y)[1], NO_MINIMUM)
    y = solve(turn.transpose(), y, NO_MINIMUM)
    basis = turn * basis
    return proved_minimum(certificate, TiedLoss.of(certificate, tied, basis), basis, y)


def proved_minimum(certificate: Certificate, loss: TiedLoss, basis: arb_mat, y: arb_mat) -> Minimum:
    """2 M₃ |∇L_S(z̄)| < λ² gives a strict minimum within ε = 2 |∇L_S(z̄)|/λ of z̄, λ = 1 − |H −
    1|."""
    slope, H = loss.derivatives(y)
    third = loss.third_derivative()
    spread = norm(H - diagonal(H.nrows()))
    require(spread < 1, NO_MINIMUM)
    require(2 * third * norm(slope) < (1 - spread) ** 2, NO_MINIMUM)
    error = (2 * norm(slope) / (1 - spread)).upper()
    z = basis.transpose() * y
    is_near = norm(certificate.vector("z") - z) < AGREES * (1 + norm(z))
    require(is_near, "z is not the minimum of L_S")

    gram = basis * basis.transpose()
    longest = largest_eigenvalue(gram, NO_MINIMUM)
    scores = enclosed_scores(certificate, z, (error * longest.sqrt()).upper())
    inside = certificate.E * basis.transpose() * solve(gram, basis, NO_MINIMUM)
    return Minimum(
        basis=basis,
        z=z,
        error=error,
        spread=(spread + third * error).upper(),
        third=third,
        shortest=smallest_eigenvalue(gram, NO_MINIMUM),
        longest=longest,
        scores=scores,
        softmaxes=[softmax(x, scores, certificate.w) for x in certificate.documents],
        outside=floats(certificate.E - inside),
    )


def enclosed_scores(certificate: Certificate, z: arb_mat, shift: arb) -> list[arb]:
    """E_s·z* of each type, for |z* − z| ≤ shift."""
    sizes = np.linalg.norm(certificate["E"], axis=1) * ROUNDED_UP
    radii = sizes * float(shift) * ROUNDED_UP
    centers = (certificate.E * z).entries()
    return [center + arb(0, float(radius)) for center, radius in zip(centers, radii, strict=True)]


@dataclass(frozen=True)
class Tube:
    """The trap for the tied gaps: they stay within a of z*.

    Attributes:
        length: a bound on |ζ| in the tube.
        kappa: the Hessian is within κ < ½ of 1 there.
        distance: a bound on |y₀|, the point's distance from z* in the norm of the Hessian.
        largest_push: a push on V weaker than this does not drive ζ out of the tube.
    """

    minimum: Minimum
    length: arb
    kappa: arb
    distance: arb
    largest_push: arb

    @staticmethod
    def of(certificate: Certificate, minimum: Minimum) -> Tube:
        if not minimum.basis.nrows():
            return Tube(minimum, arb(0), arb(0), arb(0), arb("inf"))
        a = certificate.number("tube")
        away = minimum.inside(certificate.vector("point") - minimum.z)
        distance = (norm(away) + minimum.error).upper()
        kappa = (minimum.spread + minimum.third * a).upper()
        require(a > 0 and kappa < arb(0.5), "the tube is too wide for the curvature")
        inside = a * ((1 - kappa) / (1 + kappa)).sqrt()
        require(distance < inside, "the tied gaps of the point are too far from z*")
        longest = minimum.longest.sqrt()
        return Tube(minimum, (a * longest).upper(), kappa, distance, (1 - kappa) * a / longest)

    def integral(self, push: arb, tau: arb) -> arb:
        """I, a bound on ∫|ζ| dτ from τ₀ on, for a push on V of at most `push` e^{τ₀−τ}."""
        if not self.minimum.basis.nrows():
            return arb(0)
        require(push < self.largest_push, "unselected tokens push the tied gaps too far")
        kappa, longest = self.kappa, self.minimum.longest
        pushed = (1 + kappa) / ((1 - kappa) * self.minimum.shortest).sqrt() * push
        begins = (1 + kappa).sqrt() * self.distance * (-tau).exp()
        rate = (1 - kappa) / longest
        return (longest / (1 - kappa)).sqrt() * (begins + pushed) / rate


@dataclass
class PairClass:
    """All (X, r) with one D: the same two tied sets of types. Sums are over them, at τ₀.

    Attributes:
        path: the integers n with D = Σ n_e D_e over tight edges e; None if the two are not linked.
        delta: D·p̂ − 1, exact where they are linked.
        length: upper bound on |D|.
        strength: Σ K.
        force: Σ K e^{−D·ρ' − δτ₀}.
        error_k, error_theta: Σ A k e^{…} and Σ A θ e^{…}.
    """

    path: np.ndarray | None
    delta: arb
    length: float
    strength: arb
    force: arb
    error_k: arb
    error_theta: arb

    @property
    def is_tight(self) -> bool:
        return self.path is not None and bool(self.delta == 0)


Classes = dict[tuple[int, int], PairClass]


@dataclass(frozen=True)
class Divergence:
    """(F2), (F3) and the inequality for a limit in which p diverges."""

    certificate: Certificate
    forest: Forest
    tube: Tube

    def prove(self) -> Proof:
        """(F2): p̂ = Rᵀx with R p̂ = (0 for ties, 1 for tight pairs) is the shortest such
        vector."""
        R = self.certificate.differences(self.forest.rows)
        gram = R * R.transpose()
        n_ties = self.forest.n_ties
        margins = column([arb(int(k >= n_ties)) for k in range(R.nrows())])
        x = solve(gram, margins, DEPENDENT)
        p_hat = R.transpose() * x
        agrees = norm(self.certificate.vector("p_hat") - p_hat) < AGREES * norm(p_hat)
        require(agrees, "p_hat is not the shortest vector with these margins")
        classes = self._classes((self.certificate.E * p_hat).entries())
        rho = floats(R * self.certificate.vector("rho"))[n_ties:, 0]
        edges = balance(classes, column(x.entries()[n_ties:]), rho)

        # p₀ = (part in V) + q + R₀ with q = p̂τ₀ + ρ': D_e·q = τ₀ + D_e·ρ' for every tight edge e.
        tau = self.certificate.number("log_time")
        target = column([arb(0)] * n_ties + [tau + edge for edge in edges])
        away = target - R * self.certificate.vector("point")
        q = self.certificate.vector("point") + R.transpose() * solve(gram, away, DEPENDENT)
        return self._compared(q, classes)

    def _compared(self, q: arb_mat, classes: Classes) -> Proof:
        """The inequality, with q = p̂τ₀ + ρ'."""
        minimum, radius = self.tube.minimum, self.certificate.number("radius")
        point = self.certificate.vector("point")
        R_0 = point - q
        curvature = arb("inf")
        if minimum.basis.nrows():
            R_0 = R_0 - minimum.basis.transpose() * minimum.inside(point)
            curvature = (1 - minimum.spread) / minimum.longest
        rest = self._forces((self.certificate.E * q).entries(), classes)
        left = (norm(R_0) ** 2 / 2 + rest).upper()
        right = (radius**2 / 2).lower()
        fails = f"the inequality fails: {float(left):.3g} is not below {float(right):.3g}"
        require(radius > 0 and left < right, fails)
        return Proof(float(curvature), float(self.tube.distance), float(left), float(right))

    def _key(self, x: Document, r: int) -> tuple[int, int]:
        return int(self.forest.tie_root[x.selected[0]]), int(self.forest.tie_root[r])

    def _classes(self, scores: list[arb]) -> Classes:
        """Every class with its margin and strength; the scores are E_s·p̂."""
        classes: Classes = {}
        minimum = self.tube.minimum
        for x, attention in zip(self.certificate.documents, minimum.softmaxes, strict=True):
            bounds = lengths(minimum.outside, [(x.selected[0], r) for r in x.others]).tolist()
            for r, count, length in zip(x.others, x.other_counts, bounds, strict=True):
                key = self._key(x, r)
                if key not in classes:
                    classes[key] = self._new_class(x.selected[0], r, scores)
                share = count * minimum.scores[r].exp() / attention.total
                classes[key].length = min(length, classes[key].length)
                classes[key].strength += self._pull(x, attention, r) * share
        return classes

    def _pull(self, x: Document, attention: Softmax, r: int) -> arb:
        """σ(−y f*) y (f* − w_r)/n."""
        value_gap = attention.f - self.certificate.w[r]
        return x.label * value_gap * attention.sigma / self.certificate.n

    def _new_class(self, s: int, r: int, scores: list[arb]) -> PairClass:
        """Refuses margins that are not proved to be 1 or more."""
        forest, path = self.forest, None
        is_tied = forest.tie_root[s] == forest.tie_root[r]
        require(not is_tied, "a token is tied with the selected ones but not selected")
        delta = scores[s] - scores[r] - 1
        if forest.root[s] == forest.root[r]:
            path = forest.path[s] - forest.path[r]
            delta = arb(int(path.sum()) - 1)
        is_wide = delta > 0 or (path is not None and delta == 0)
        require(is_wide, "(F2) fails: a margin is not provably 1 or more")
        return PairClass(path, delta, np.inf, *[arb(0)] * 4)

    def _forces(self, scores: list[arb], classes: Classes) -> arb:
        """The left side without ½|R₀|²; the scores are E_s·(p̂τ₀ + ρ')."""
        push = arb(0)
        documents = zip(self.certificate.documents, self.tube.minimum.softmaxes, strict=True)
        for x, attention in documents:
            if x.others:
                push += self._add_document(x, attention, scores, classes) / self.certificate.n
        integral = self.tube.integral(push, self.certificate.number("log_time"))
        tight = [pair for pair in classes.values() if pair.is_tight]
        some_pull = not all(pair.force > 0 for pair in tight)
        radius, left = self.certificate.number("radius"), arb(0)
        if some_pull:
            require_restoring(tight, radius)
        for pair in classes.values():
            error = pair.error_k * integral + pair.error_theta
            reach = pair.length * radius
            pulled = reach * reach.exp()
            if not pair.is_tight:
                moved = (pair.force.upper() * BY_E).max(-pair.force.lower() * pulled).max(arb(0))
                left += moved / pair.delta + error * pulled.max(BY_E)
            elif some_pull:
                left += error * pulled.max(BY_E)
            else:
                largest = pair.error_k * self.tube.length + pair.error_theta
                require(2 * largest < pair.force, "unselected tokens have too much weight")
                left += error * BY_E
        return left

    def _add_document(
        self, x: Document, attention: Softmax, scores: list[arb], classes: Classes
    ) -> arb:
        """Adds a document's forces to the classes; returns n times its part of B."""
        sizes = DocumentSizes.of(x, self.certificate)
        minimum = self.tube.minimum
        pairs = [(x.selected[0], r) for r in x.others]
        weights = [
            count * (minimum.scores[r] - scores[s] + scores[r]).exp() / attention.total
            for (s, r), count in zip(pairs, x.other_counts, strict=True)
        ]
        bounds = lengths(minimum.outside, pairs).tolist()
        radius = self.certificate.number("radius")
        reached = (sizes.spread * self.tube.length).exp() * sum(
            (
                weight * (length * radius).exp()
                for weight, length in zip(weights, bounds, strict=True)
            ),
            arb(0),
        )
        reached = reached.upper()  # H
        time = self.certificate.number("log_time").exp()
        for r, weight in zip(x.others, weights, strict=True):
            pair = classes[self._key(x, r)]
            pull = self._pull(x, attention, r) * time * weight
            amount = attention.sigma * time * weight / self.certificate.n
            pair.force += pull
            pair.error_k += sizes.error_k(abs(pull), amount, reached, self.tube.length)
            pair.error_theta += sizes.error_theta(abs(pull), amount, reached, self.tube.length)
        return sizes.push(reached)


@dataclass(frozen=True)
class DocumentSizes:
    """ℓ, Δ and γ of a document; `pull` is A |f* − w_r| and `amount` A, times the weight at τ₀."""

    spread: arb
    values: arb
    gamma: arb

    @staticmethod
    def of(x: Document, certificate: Certificate) -> DocumentSizes:
        E, lead = certificate["E"], x.selected[0]
        within = farthest(E, x.selected)
        to_others = float(lengths(E, [(lead, r) for r in x.others]).max())
        values = certificate.value_range(x.selected + x.others)
        gamma = certificate.value_range(x.selected) * within / 4
        return DocumentSizes(arb(to_others) + within, values, gamma)

    def growth(self, reached: arb, a: arb) -> arb:
        """G."""
        return ((self.gamma + self.spread) * a + (self.values + 1) * reached).exp()

    def error_k(self, pull: arb, amount: arb, reached: arb, a: arb) -> arb:
        """A k."""
        relative = pull * (self.gamma + self.spread) + amount * self.gamma
        return self.growth(reached, a) * relative

    def error_theta(self, pull: arb, amount: arb, reached: arb, a: arb) -> arb:
        """A θ."""
        relative = pull * (self.values + 1) + amount * self.values
        return self.growth(reached, a) * reached * relative

    def push(self, reached: arb) -> arb:
        """n times the document's part of B."""
        gamma, spread, values = self.gamma, self.spread, self.values
        return reached * (gamma + values * spread + values * gamma / 4)


def balance(classes: Classes, x: arb_mat, stated: np.ndarray) -> list[arb]:
    """Proves (F3): encloses y_e = D_e·ρ', where Σ_T K e^{−n·y} n = x, a strict minimum of Ψ.

    It lies within ϱ of ȳ if |∇Ψ(ȳ)| < νϱ/2 and the Hessian stays above ν/2 within ϱ.
    """
    tight = [pair for pair in classes.values() if pair.is_tight]
    require(bool(tight), NO_BALANCE)
    N = np.array([pair.path for pair in tight])
    K = floats(column([pair.strength for pair in tight]))[:, 0]
    y = balanced(N, K, floats(x)[:, 0], stated)
    require(np.abs(y - stated).max() < AGREES * (1 + np.abs(y).max()), "rho is not balanced")

    center = column([arb(float(value)) for value in y])
    radius = balance_radius(tight, N, center, x)
    return [value + arb(0, float(radius) * ROUNDED_UP) for value in center.entries()]


def balance_radius(tight: list[PairClass], N: np.ndarray, center: arb_mat, x: arb_mat) -> arb:
    """ϱ, from the slope of Ψ and its Hessian at ȳ."""
    powers = (arb_mat(N.tolist()) * center).entries()
    force = [pair.strength * (-power).exp() for pair, power in zip(tight, powers, strict=True)]
    slope = norm(x - arb_mat(N.T.tolist()) * column(force))
    nu = smallest_eigenvalue(weighted_gram(N, force), NO_BALANCE)
    total = norm(weighted_gram(N, [abs(f) for f in force]))
    radius = (4 * slope / nu).upper()
    change = (radius * float(np.linalg.norm(N, axis=1).max() * ROUNDED_UP)).expm1()
    require(change * total < nu / 2, NO_BALANCE)
    return radius


def balanced(N: np.ndarray, K: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """y with Σ K e^{−N·y} N = x, by damped Newton steps in double precision."""
    for _ in range(200):
        force = K * np.exp(np.minimum(-N @ y, HUGE))
        bend = N.T @ (force[:, None] * N)
        step = np.linalg.lstsq(bend, N.T @ force - x, rcond=None)[0]
        y = y + step * min(1.0, 2.0 / max(float(np.abs(N @ step).max()), 1e-300))
        if np.abs(step).max() < 1e-14 * (1 + np.abs(y).max()):
            break
    return y


def weighted_gram(N: np.ndarray, weights: list[arb]) -> arb_mat:
    """Σ weight n nᵀ."""
    rows = [[weight * int(k) for k in n] for weight, n in zip(weights, N, strict=True)]
    return arb_mat(N.T.tolist()) * arb_mat(rows)


def require_restoring(tight: list[PairClass], radius: arb) -> None:
    """Where tight pairs pull: Σ λ (1 − e^{−x}) x ≥ 0 for all |R| ≤ r, as a positive definite
    form."""
    weights = []
    for pair in tight:
        reach = (pair.length * radius).upper()
        force = pair.force.lower()
        change = 1 - (-reach).exp() if force > 0 else reach.expm1()
        weights.append((force * change / reach).lower())
    H = weighted_gram(np.array([pair.path for pair in tight]), weights)
    require_positive(H, "tight pairs that pull are too strong within r")


def check(arrays: dict[str, np.ndarray]) -> Proof:
    """Proves what a certificate states.

    Raises:
        Refused: a claim that is not proved, or a damaged certificate; the reason says which.
    """
    ctx.prec = BITS
    certificate = Certificate(arrays)
    forest = Forest(certificate)
    minimum = find_minimum(certificate, forest)
    tube = Tube.of(certificate, minimum)
    if certificate.diverges:
        return Divergence(certificate, forest, tube).prove()
    stays = all(not x.others for x in certificate.documents)
    is_point = stays and minimum.basis.nrows() > 0
    require(is_point, "the certificate lacks p_hat although tokens are left out")
    return Proof(float((1 - minimum.spread) / minimum.longest), float(tube.distance))


def main(arguments: list[str]) -> int:
    """Check a file; exit status 0 if it is proved, 1 if it is refused."""
    if len(arguments) != 1:
        sys.stdout.write("usage: python checker.py certificate.npz\n")
        return 2
    try:
        with open(arguments[0], "rb") as file, np.load(file) as archive:
            arrays = {name: archive[name] for name in archive.files}
        proof = check(arrays)
    except (Refused, OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        sys.stdout.write(f"refused: {error}\n")
        return 1
    sys.stdout.write(
        f"proved: L_S has a strict minimum on V, with curvature at least {proof.curvature:.3g}\n"
        f"proved: the point's tied gaps are within {proof.distance:.3g} of it\n"
    )
    if proof.right:
        words = "p stays within r of the line for ever, for"
        sys.stdout.write(f"proved: {words} {proof.left:.6g} < {proof.right:.6g}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
