"""Prove the limit that a certificate states, in ball arithmetic: python checker.py certificate.npz

This file needs NumPy and python-flint alone and trusts nothing of the package that wrote the
certificate. It proves the theorem of docs/theory.md, "What is proved from one point on", whose
symbols it uses, for exactly the documents, E and w in the file. Everything else in the file is a
claim that is proved or refused.

A ball, flint's `arb`, is an interval around the exact number; a comparison is true only if it holds
for all of both balls. Double precision serves for starting values, and for lengths and ranges,
which are rounded up. Shapes: n documents, m token types, d dimensions, k of them in V, t tight
pairs.
"""

from __future__ import annotations

import sys
import zipfile
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb, arb_mat, ctx

BITS = 192  # 58 digits: a condition number of 10¹² leaves more than 40
NEWTON_STEPS = 5  # in 192 bits, from a start in double precision
ROUNDED_UP = 1 + 1e-9  # covers the rounding of a sum of fewer than 10⁵ squares
TINY = 1e-150  # covers squares that are too small for double precision
AGREES = 1e-6  # relative difference allowed between a vector in the file and the proved one
MAX_KAPPA = 0.5  # the theorem's bound on κ
MAX_BYTES = 4 * 2**30  # of all arrays; those of 25,000 reviews have 0.1 GB
MAX_THIRD_OF_LOSS = arb("0.09623")  # of log(1 + e^{−x}): 1/(6√3), rounded up
ONE_OVER_E = (-arb(1)).exp()  # x e^{−x} is at most this
ARRAYS = {  # kinds of dtype, and axes of n documents, e entries, m types, d, k, t tight pairs
    "labels": "if n", "indptr": "iu n+1", "indices": "iu e", "counts": "iuf e", "selected": "b e",
    "E": "f m d", "w": "f m", "basis": "f k d", "z": "f d", "tight": "iu t 2", "p_hat": "f d",
    "rho": "f d", "point": "f d", "log_time": "f", "radius": "f", "tube": "f",
}  # fmt: skip
Balls = Any  # an array of `arb`; no type checker knows their arithmetic
to_balls = np.frompyfunc(arb, 1, 1)
midpoints = np.frompyfunc(arb.mid, 1, 1)
larger: Any = np.frompyfunc(arb.max, 2, 1)


class Refused(Exception):
    """The certificate is damaged, or what it states is not proved."""


@dataclass(frozen=True)
class Proof:
    """Proved bounds: the curvature of L_S on V at z*, |ζ₀|_H, both sides of the inequality."""

    curvature: float
    distance: float
    left: float
    right: float


def require(condition: object, reason: str) -> None:
    if not condition:
        raise Refused(reason)


def matrix(values: Balls) -> arb_mat:
    """Balls or numbers as a matrix; a column if there is one axis."""
    if isinstance(values, arb_mat):
        return values
    n_columns = values.shape[1] if values.ndim == 2 else 1
    return arb_mat(len(values), n_columns, values.ravel().tolist())


def product(A: Balls, B: Balls) -> Balls:
    """A times a matrix or vector B."""
    result = matrix(A) * matrix(B)
    return np.array(result.entries(), object).reshape(result.nrows(), *B.shape[1:])


def norm(values: Balls) -> arb:
    """An upper bound on the Frobenius norm."""
    squares = (values * values).ravel()  # a power of a ball around 0 is nan
    return sum(squares, arb(0)).upper().sqrt().upper()


def within(radius: arb) -> arb:
    """The ball around 0."""
    return arb(0, 1) * radius.upper()


def rounded(values: Balls) -> tuple[np.ndarray, float]:
    """Values in double precision, and a bound on the error of every row."""
    floats = values.astype(float)
    return floats, float(norm(values - floats)) * ROUNDED_UP


def lengths(rows: np.ndarray) -> np.ndarray:
    """Upper bounds on the lengths of rows in double precision."""
    return np.asarray(np.linalg.norm(rows, axis=1) * ROUNDED_UP + TINY)


def diameter(rows: np.ndarray) -> float:
    """An upper bound on the distance between two rows in double precision; 0 without any."""
    return max((float(lengths(rows - row).max()) for row in rows), default=0.0)


def added(total: Balls, places: np.ndarray, values: Balls) -> Balls:
    """The total with each value added at its place."""
    np.add.at(total, places, values)
    return total


def gram(rows: Balls, weights: Balls) -> Balls:
    """Σ weight row rowᵀ."""
    return product(rows.T, weights[:, None] * rows)


def newton_step(H: Balls, slope: Balls) -> np.ndarray:
    """−H⁻¹ slope in double precision; the next step, or the enclosure, makes good the error."""
    return -np.linalg.solve(H.astype(float), slope.astype(float))


def least_eigenvalue(A: Balls, reason: str) -> arb:
    """A positive lower bound for a symmetric A; if |L A Lᵀ − 1| < 1, A is positive definite."""
    L = np.linalg.inv(np.linalg.cholesky(A.astype(float)))
    missing = norm(product(product(L, A), L.T) - np.eye(len(A)))
    require(missing < 1, reason)
    return (1 - missing) / (norm(to_balls(L)) ** 2).max(arb(TINY))


def solve(A: Balls, right: Balls, smallest: arb) -> Balls:
    """Encloses A⁻¹ right, where no eigenvalue of A is below `smallest`."""
    x = np.full(right.shape, arb(0))
    for _ in range(NEWTON_STEPS):
        x = midpoints(x + newton_step(A, product(A, x) - right))
    return x + within(norm(product(A, x) - right) / smallest)


@dataclass(frozen=True)
class Entries:
    """Some entries of the count matrix."""

    document: np.ndarray
    type: np.ndarray
    count: Balls

    def where(self, mask: np.ndarray) -> Entries:
        return Entries(self.document[mask], self.type[mask], self.count[mask])


@dataclass(frozen=True)
class Softmax:
    """Attention q of entries; f, Z and σ(−y f)/n of documents."""

    q: Balls
    f: Balls
    Z: Balls
    sigma: Balls


class Certificate:
    """The arrays of a file, checked for damage.

    Attributes:
        y: the labels, ±1; E, w: in balls.
        entries: all; selected, others: some; tied: of documents that select more than one type.
        lead: a selected type of each document.
        log_time, radius, tube: τ₀, r and a.
    """

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self.arrays = arrays
        self.check_shapes()
        self.n = len(arrays["labels"])
        self.m = len(arrays["w"])
        self.y = arrays["labels"].astype(int).astype(object)
        require(self.n > 0 and self.m > 0, "there are no documents or no token types")
        require((np.abs(arrays["labels"]) == 1).all(), "a label is not ±1")
        self.E = matrix(arrays["E"])
        self.w = to_balls(arrays["w"])
        self.read_entries()
        self.log_time = arb(float(arrays["log_time"]))
        self.radius = arb(float(arrays["radius"]))
        self.tube = arb(float(arrays["tube"]))

    def check_shapes(self) -> None:
        sizes = {"2": 2}
        for name, layout in ARRAYS.items():
            kinds, *axes = layout.split()
            require(name in self.arrays, f"the certificate lacks {name}")
            array = self.arrays[name]
            kind = array.dtype.kind
            is_exact = kind in kinds and (kind != "f" or array.dtype == np.float64)
            require(is_exact and np.isfinite(array).all(), f"{name} has no exact numbers")
            require(len(axes) == array.ndim, f"{name} has another shape")
            for axis, size in zip(axes, array.shape, strict=True):
                require(sizes.setdefault(axis, size) == size, f"{name} has another shape")
            sizes["n+1"] = sizes["n"] + 1

    def read_entries(self) -> None:
        starts = self.arrays["indptr"].astype(int)
        types = self.arrays["indices"].astype(int)
        counts = self.arrays["counts"]
        is_selected = self.arrays["selected"]
        is_divided = starts[0] == 0 and starts[-1] == len(types) and (np.diff(starts) >= 0).all()
        require(is_divided, "indptr does not divide the entries")
        for stated_types in (types, self.arrays["tight"].astype(int)):
            require(
                ((stated_types >= 0) & (stated_types < self.m)).all(), "a token type is unknown"
            )
        require(((counts > 0) & (counts == np.rint(counts))).all(), "a count is wrong")
        document = np.repeat(np.arange(self.n), np.diff(starts))
        is_once = len(np.unique(document * self.m + types)) == len(types)
        require(is_once, "a document lists a type twice")
        n_selected = np.bincount(document[is_selected], minlength=self.n)
        require(n_selected[document].all(), "a document selects nothing")

        self.entries = Entries(document, types, counts.astype(object))
        self.selected = self.entries.where(is_selected)
        self.others = self.entries.where(~is_selected)
        self.tied = self.entries.where(is_selected & (n_selected[document] > 1))
        self.lead = np.zeros(self.n, int)
        self.lead[self.selected.document] = self.selected.type

    def total(self, entries: Entries, values: Balls) -> Balls:
        """The sum over the entries of each document."""
        return added(np.full((self.n, *values.shape[1:]), arb(0)), entries.document, values)

    def softmax(self, entries: Entries, scores: Balls) -> Softmax:
        """q = c e^{score}/Z and f = Σ q w, where only these entries are in the documents."""
        weights = entries.count * np.exp(scores[entries.type])
        Z = self.total(entries, weights)
        q = weights / Z[entries.document]
        f = self.total(entries, q * self.w[entries.type])
        return Softmax(q, f, Z, sigma=1 / (1 + np.exp(self.y * f)) / self.n)

    def types_by_document(self, entries: Entries) -> list[np.ndarray]:
        ends = np.cumsum(np.bincount(entries.document, minlength=self.n))
        return np.split(entries.type, ends[:-1])

    def ranges(self, entries: Entries) -> Balls:
        """Upper bounds on the range of w in each document."""
        values = [self.arrays["w"][types] for types in self.types_by_document(entries)]
        return to_balls([np.ptp(w) * ROUNDED_UP if len(w) else 0.0 for w in values])

    def widths(self, rows: np.ndarray) -> Balls:
        """Upper bounds on the distance between the rows of two tied types of each document."""
        return to_balls([diameter(rows[types]) for types in self.types_by_document(self.tied)])

    def check_stated(self, name: str, proved: Balls) -> None:
        is_stated = norm(proved - self.arrays[name]) <= AGREES * (1 + norm(proved))
        require(is_stated, f"{name} is not what follows from the selection")


class Forest:
    """Ties and tight pairs as edges (s, r) between token types, none of which closes a circle.

    Attributes:
        ties: edges whose differences E_s − E_r span V.
        tight: edges with (E_s − E_r)·p̂ = 1, which the certificate states.
        tied_set: a number that types linked by ties share.
        tree: a number that types linked by ties and tight edges share.
        path: D_{s,r} = Σ_e (path_s − path_r)_e D_e over tight edges e, for types of one tree;
            shape (m, t).
    """

    def __init__(self, certificate: Certificate) -> None:
        tied = certificate.tied
        self.tree = np.arange(certificate.m)
        stated_ties = np.column_stack([certificate.lead[tied.document], tied.type])
        is_new = [self.link(s, r).any() for s, r in stated_ties]
        self.ties = stated_ties[np.array(is_new, bool)]
        self.tied_set = self.tree.copy()

        self.tight = certificate.arrays["tight"].astype(int)
        self.path = np.zeros((certificate.m, len(self.tight)), int)
        for edge, (s, r) in enumerate(self.tight):
            change = self.path[s] - self.path[r]
            change[edge] -= 1
            moved = self.link(s, r)
            require(moved.any(), "a tight pair follows from the others")
            self.path[moved] += change

    def link(self, s: int, r: int) -> np.ndarray:
        """Joins the trees of two types; a mask of the types whose tree has changed."""
        moved: np.ndarray = (self.tree == self.tree[r]) & (self.tree[s] != self.tree[r])
        self.tree[moved] = self.tree[s]
        return moved


class Edges:
    """E_s − E_r of ties and of tight pairs, proved to be linearly independent; their span.

    Attributes:
        ties: shape (k, d); rows: ties and then tight pairs, shape (k + t, d).
        is_tight: which rows are tight pairs; margins: their products with p̂, which are 0 and 1.
    """

    def __init__(self, certificate: Certificate, forest: Forest) -> None:
        E = certificate.arrays["E"]
        ends = np.concatenate([forest.ties, forest.tight])
        self.rows = to_balls(E[ends[:, 0]]) - E[ends[:, 1]]
        self.ties = self.rows[: len(forest.ties)]
        self.is_tight = np.arange(len(ends)) >= len(forest.ties)
        self.margins = self.is_tight.astype(float)
        self.squares = product(self.rows, self.rows.T)
        reason = "tied and tight differences are not provably independent"
        self.smallest = least_eigenvalue(self.squares, reason)

    def weights(self, products: Balls) -> Balls:
        """x, where Σ x_e (E_s − E_r) has these products with the rows."""
        return solve(self.squares, products, self.smallest)

    def vector(self, products: Balls) -> Balls:
        """The vector of the span that has these products with the rows."""
        return product(self.rows.T, self.weights(products))


class Subspace:
    """V, spanned by rows b_i, in which the Hessian of L_S at z* is about 1.

    Attributes:
        basis: b_i, shape (k, d); longest: √Λ, at least |Σ y_i b_i| for |y| = 1.
        dual: the part of v in V is Σ y_i b_i for y = dual v, shape (k, d).
        a: a_s = (E_s·b_i)_i of each type, shape (m, k).
    """

    def __init__(self, certificate: Certificate, ties: Balls) -> None:
        stated = certificate.arrays["basis"]
        require(len(stated) == len(ties), "the basis does not have a vector for every tie")
        self.basis = product(stated @ np.linalg.pinv(ties.astype(float)), ties)  # exactly in V
        squares = product(self.basis, self.basis.T)
        smallest = least_eigenvalue(squares, "the basis does not span V")
        self.longest = norm(squares).sqrt()
        self.dual = solve(squares, self.basis, smallest)
        self.a = product(certificate.E, self.basis.T)

    def vector(self, y: Balls) -> Balls:
        return product(self.basis.T, y)


class TiedLoss:
    """L_S as a function of y, where z = Σ y_i b_i; `a` are rows a_s of tied entries."""

    def __init__(self, certificate: Certificate, V: Subspace) -> None:
        self.certificate = certificate
        self.scores = V.a
        self.a = V.a[certificate.tied.type]

    def gradient(self, y: Balls) -> Balls:
        """∇L_S = Σ_X g ∇f, where g = −y_X σ(−y_X f)/n, ∇f = Σ_s t_s a_s and t_s = q_s (w_s − f)."""
        softmax = self.softmax(y)
        g = -self.certificate.y * softmax.sigma
        return product(self.a.T, g[self.certificate.tied.document] * self.t(softmax))

    def hessian(self, y: Balls) -> Balls:
        """∇²L_S = Σ_X g′ ∇f ∇fᵀ + g ∇²f, where ∇²f = Σ t_s (a_s − ā)(a_s − ā)ᵀ, ā = Σ q_s a_s."""
        certificate = self.certificate
        tied = certificate.tied
        softmax = self.softmax(y)
        t = self.t(softmax)
        mean = certificate.total(tied, softmax.q[:, None] * self.a)
        centred = self.a - mean[tied.document]
        slopes = certificate.total(tied, t[:, None] * centred)
        g = -certificate.y * softmax.sigma
        dg = softmax.sigma * (1 - certificate.n * softmax.sigma)
        return gram(slopes, dg) + gram(centred, g[tied.document] * t)

    def softmax(self, y: Balls) -> Softmax:
        return self.certificate.softmax(self.certificate.tied, product(self.scores, y))

    def t(self, softmax: Softmax) -> Balls:
        tied = self.certificate.tied
        return softmax.q * (self.certificate.w[tied.type] - softmax.f[tied.document])

    def third_derivative(self) -> arb:
        """M₃: no third derivative along unit vectors y is larger."""
        a, error = rounded(self.scores)
        length = self.certificate.widths(a) + 2 * error
        values = self.certificate.ranges(self.certificate.tied)
        first = values * length / 4
        second = values * length**2 / 4
        third = values * length**3 * 7 / 16
        terms = MAX_THIRD_OF_LOSS * first**3 + first * second * 3 / 4 + third
        mean: arb = terms.sum() / self.certificate.n
        return mean.upper()


class FinitePart:
    """(F1) and the tube |ζ|_H ≤ a around z* = Σ y*_i b_i, where |ζ|_H = |y − y*|.

    The Hessian is within ε of 1, so that a step of Newton's method is −∇L_S. By Kantorovich's
    theorem, L_S has a strict minimum near the last y if 2 M₃ |∇L_S| < (1 − ε)²; it is within
    2 |∇L_S|/(1 − ε).

    Attributes:
        z: z*; curvature: a lower bound on that of L_S at z*.
        longest: √Λ; tube: a; kappa: κ, how far the Hessian is from 1 in the tube.
        start: the part of the point in V; distance: a bound on |ζ₀|_H.
    """

    def __init__(self, certificate: Certificate, V: Subspace) -> None:
        loss = TiedLoss(certificate, V)
        y = product(V.dual, certificate.arrays["z"])
        for _ in range(NEWTON_STEPS):
            y = midpoints(y - loss.gradient(y))
        slope = norm(loss.gradient(y))
        missing = norm(loss.hessian(y) - np.eye(len(y)))
        third = loss.third_derivative()
        is_strict = missing < 1 and 2 * third * slope < (1 - missing) ** 2
        require(is_strict, "(F1) fails: L_S has no strict minimum near z")
        error = (2 * slope / (1 - missing)).upper()
        y = y + within(error)
        missing += third * error
        self.z = V.vector(y)
        certificate.check_stated("z", self.z)
        self.longest = V.longest
        self.curvature = (1 - missing) / V.longest**2

        self.tube = certificate.tube
        self.kappa = (missing + third * self.tube).upper()
        is_narrow = self.tube > 0 and self.kappa < MAX_KAPPA
        require(is_narrow, "the tube is too wide for the curvature")
        start = product(V.dual, certificate.arrays["point"])
        self.start = V.vector(start)
        self.distance = norm(start - y)
        is_inside = self.distance < self.tube * ((1 - self.kappa) / (1 + self.kappa)).sqrt()
        require(is_inside, "the tied gaps of the point are too far from z*")

    def integral(self, B: arb, log_time: arb) -> arb:
        """I = Λ/(1−κ) √((1+κ) |ζ₀|_H² e^{−τ₀} + B²), a bound on ∫|ζ| dτ from τ₀ on."""
        is_held = B * self.longest < (1 - self.kappa) * self.tube
        require(is_held, "the push on V is too strong")
        start = (1 + self.kappa) * self.distance**2 * (-log_time).exp()
        return self.longest**2 / (1 - self.kappa) * (start + B**2).sqrt()


class Pairs:
    """The pairs (X, r) of a document and a type that it does not select.

    Attributes:
        document: X; type: r; lead: s, a selected type of X.
        gain: y (f* − w_r); share: c_r e^{E_r·z*}/Z_X(z*); A: σ(−y f*)/n times that.
        length: upper bounds on |Π (E_s − E_r)|, in double precision.
    """

    def __init__(self, certificate: Certificate, V: Subspace, z: Balls) -> None:
        entries = certificate.others
        self.document = entries.document
        self.type = entries.type
        self.lead = certificate.lead[self.document]
        scores = product(certificate.E, z)
        softmax = certificate.softmax(certificate.selected, scores)
        f = softmax.f[self.document]
        self.gain = certificate.y[self.document] * (f - certificate.w[self.type])
        self.share = entries.count * np.exp(scores[self.type]) / softmax.Z[self.document]
        self.A = softmax.sigma[self.document] * self.share
        across, error = rounded(certificate.arrays["E"] - product(V.a, V.dual))
        self.length = lengths(across[self.lead] - across[self.type]) + 2 * error


class Classes:
    """(F2): no margin is below 1, in all classes of pairs with one D.

    Those are the pairs between the same two tied sets. A margin between types of one tree is an
    integer.

    Attributes:
        of_pair: the class of each pair.
        delta: D·p̂ − 1; is_tight: whether it is 0; length: an upper bound on |D|.
        path: D = Σ path_e D_e, for tight classes; shape (classes, t).
    """

    def __init__(
        self, certificate: Certificate, forest: Forest, pairs: Pairs, p_hat: Balls
    ) -> None:
        sets = forest.tied_set[pairs.lead] * certificate.m + forest.tied_set[pairs.type]
        _, first, self.of_pair = np.unique(sets, return_index=True, return_inverse=True)
        s = pairs.lead[first]
        r = pairs.type[first]
        is_apart = forest.tied_set[s] != forest.tied_set[r]
        require(is_apart.all(), "a token is tied with the selected ones but not selected")
        self.path = forest.path[s] - forest.path[r]
        is_linked = forest.tree[s] == forest.tree[r]
        scores = product(certificate.E, p_hat)
        margin = np.where(is_linked, self.path.sum(axis=1), scores[s] - scores[r])
        self.delta = margin - 1
        self.is_tight = is_linked & (margin == 1)
        is_wide = self.is_tight | (self.delta > 0)
        require(is_wide.all(), "(F2) fails: a margin is not provably 1 or more")
        self.length = np.full(len(first), np.inf)
        np.minimum.at(self.length, self.of_pair, pairs.length)

    def total(self, values: Balls) -> Balls:
        """The sum over the pairs of each class."""
        return added(np.full(len(self.delta), arb(0)), self.of_pair, values)


def balance(n: np.ndarray, K: Balls, target: Balls, start: Balls) -> Balls:
    """(F3): encloses y_e = D_e·ρ' at a strict minimum of Ψ, where Σ_T λ_c n_c = target.

    Here D_c = Σ_e n_{c,e} D_e, and λ_c = K_c e^{−n_c·y}. By Newton and Kantorovich there is such a
    minimum within ϱ = 2 |∇Ψ|/ν if the Hessian is at least ν, 4 |∇Ψ| Σ |λ_c| |n_c|³ < ν², and
    |n_c| ϱ ≤ ½.
    """
    if len(target) == 0:
        return target
    y = midpoints(start)
    for step in range(NEWTON_STEPS + 1):
        forces = K * np.exp(-product(n, y))
        slope = target - product(n.T, forces)
        hessian = gram(n, forces)
        if step < NEWTON_STEPS:
            y = midpoints(y + newton_step(hessian, slope))

    reason = "(F3) fails: the tight pairs do not balance p̂ at a strict minimum of Ψ"
    smallest = least_eigenvalue(hessian, reason)
    third = (np.abs(forces) * lengths(n) ** 3 * ROUNDED_UP).sum()
    error = (2 * norm(slope) / smallest).upper()
    is_near = 2 * error * third < smallest and 2 * error * float(lengths(n).max()) < 1
    require(is_near, reason)
    return y + within(error)


class Inequality:
    """½|R₀|² + Σ_{c∉T} max(b_c/e, −b_c v_c)/δ_c + Σ_c ε_c max(1/e, v_c) < ½r².

    Attributes:
        Delta, gamma, ell: Δ, γ and ℓ of each document.
        decay: e^{−D·(p̂τ₀+ρ')} of each pair.
        reach: |D_c| r of each class.
    """

    def __init__(
        self, certificate: Certificate, pairs: Pairs, classes: Classes, scores: Balls
    ) -> None:
        """The scores are E_s·(p̂τ₀ + ρ')."""
        self.certificate = certificate
        self.pairs = pairs
        self.classes = classes
        self.decay = np.exp(scores[pairs.type] - scores[pairs.lead])
        self.reach = to_balls(classes.length) * certificate.radius
        E = certificate.arrays["E"]
        to_others = np.zeros(certificate.n)
        distances = lengths(E[pairs.lead] - E[pairs.type])
        np.maximum.at(to_others, pairs.document, distances)
        tied_width = certificate.widths(E)
        self.Delta = certificate.ranges(certificate.entries)
        self.gamma = certificate.ranges(certificate.tied) * tied_width / 4
        self.ell = tied_width + to_others

    def motion(self, finite: FinitePart) -> arb:
        """The left side without ½|R₀|²; tight pairs are proved not to push R outwards."""
        classes = self.classes
        strength = self.pairs.A * self.decay * self.certificate.log_time.exp()
        b = classes.total(strength * self.pairs.gain)
        self.require_restoring(b)
        epsilon = classes.total(strength * self.relative_errors(finite))
        v = self.reach * np.exp(self.reach)
        moved = larger(b * ONE_OVER_E, -b * v)
        wide = ~classes.is_tight
        by_forces: arb = (moved[wide] / classes.delta[wide]).sum()
        by_errors: arb = (epsilon * larger(v, ONE_OVER_E)).sum()
        return by_forces + by_errors

    def relative_errors(self, finite: FinitePart) -> Balls:
        """k I + θ of each pair, with H, B and G of each document."""
        n = self.certificate.n
        Delta = self.Delta
        gamma = self.gamma
        ell = self.ell
        a_2 = finite.longest * finite.tube
        H = np.exp(ell * a_2) * self.largest_weight()
        B = (H * (gamma + Delta * ell + Delta * gamma / 4)).sum() / n
        G = np.exp((gamma + ell) * a_2 + (Delta + 1) * H)
        zeta_integral = finite.integral(B, self.certificate.log_time)
        per_gain = G * ((gamma + ell) * zeta_integral + (Delta + 1) * H)
        without_gain = G * (gamma * zeta_integral + Delta * H)
        X = self.pairs.document
        return np.abs(self.pairs.gain) * per_gain[X] + without_gain[X]

    def largest_weight(self) -> Balls:
        """Σ_r c_r e^{E_r·z*}/Z_X(z*) e^{−D_r·(p̂τ₀+ρ') + |D_r| r} of each document."""
        growth = np.exp(self.reach)[self.classes.of_pair]
        weight = self.pairs.share * self.decay * growth
        return self.certificate.total(self.certificate.others, weight)

    def require_restoring(self, b: Balls) -> None:
        """Σ_T λ_c φ_c (D_c·R)² is positive definite; of tight classes b_c is λ_c."""
        is_tight = self.classes.is_tight
        reach = self.reach[is_tight]
        force = b[is_tight]
        change = np.where(force > 0, -np.expm1(-reach), np.expm1(reach))
        restoring = gram(self.classes.path[is_tight], force * change / reach)
        least_eigenvalue(restoring, "tight pairs that pull are too strong within r")


class LimitLine:
    """The line p̂τ + ρ', by (F2) and (F3).

    Attributes:
        classes: of pairs with one D.
        away: R₀ and the point's part in V.
        scores: E_s·(p̂τ₀ + ρ').
    """

    def __init__(
        self, certificate: Certificate, forest: Forest, edges: Edges, pairs: Pairs
    ) -> None:
        p_hat = edges.vector(edges.margins)
        certificate.check_stated("p_hat", p_hat)
        self.classes = Classes(certificate, forest, pairs, p_hat)
        gaps = self.tight_gaps(certificate, edges, pairs)
        certificate.check_stated("rho", edges.vector(gaps))
        point = certificate.arrays["point"]
        line_products = edges.margins * certificate.log_time + gaps
        self.away = edges.vector(product(edges.rows, point) - line_products)
        self.scores = product(certificate.E, point - self.away)

    def tight_gaps(self, certificate: Certificate, edges: Edges, pairs: Pairs) -> Balls:
        """The products of ρ' with the edges, 0 with ties."""
        is_tight = edges.is_tight
        stated_gaps = product(edges.rows, certificate.arrays["rho"])
        K = self.classes.total(pairs.A * pairs.gain)
        gaps = np.full(len(is_tight), arb(0))
        gaps[is_tight] = balance(
            n=self.classes.path[self.classes.is_tight],
            K=K[self.classes.is_tight],
            target=edges.weights(edges.margins)[is_tight],
            start=stated_gaps[is_tight],
        )
        return gaps


def prove(certificate: Certificate) -> Proof:
    """(F1) to (F3) and the inequality, in this order."""
    forest = Forest(certificate)
    edges = Edges(certificate, forest)
    V = Subspace(certificate, edges.ties)
    finite = FinitePart(certificate, V)
    pairs = Pairs(certificate, V, finite.z)
    line = LimitLine(certificate, forest, edges, pairs)
    inequality = Inequality(certificate, pairs, line.classes, line.scores)
    left = (norm(line.away - finite.start) ** 2 / 2 + inequality.motion(finite)).upper()
    right = (certificate.radius**2 / 2).lower()
    failure = f"the inequality fails: {float(left):.3g} is not below {float(right):.3g}"
    require(certificate.radius > 0 and left < right, failure)
    curvature = float(finite.curvature) if len(edges.ties) else np.inf
    return Proof(curvature, float(finite.distance), float(left), float(right))


def check(arrays: dict[str, np.ndarray]) -> Proof:
    """Proves that the flow from the certificate's point tends to the limit that it states.

    (F1) to (F3) say that there is such a limit, the inequality that the flow from this point stays
    beside the limit line for ever. Both are proved for exactly these documents, E and w.

    Args:
        arrays: those of `ARRAYS`, as a file of `verify` has them.

    Raises:
        Refused: a claim that is not proved, or a damaged certificate; the reason says which.
    """
    ctx.prec = BITS
    try:
        return prove(Certificate(arrays))
    except np.linalg.LinAlgError:
        raise Refused("a Hessian or a Gram matrix is not positive definite") from None


def read(path: str) -> dict[str, np.ndarray]:
    """The arrays of a file that a certificate consists of; others are not looked at.

    Raises:
        Refused: it is not a file of arrays, or they are too large.
        OSError, ValueError, EOFError, RuntimeError, MemoryError, BadZipFile, zlib.error: damage.
    """
    with zipfile.ZipFile(path) as archive:
        n_bytes = sum(member.file_size for member in archive.infolist())
    require(n_bytes <= MAX_BYTES, "the arrays are too large")
    with np.load(path, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in ARRAYS if f"{name}.npy" in arrays.zip.namelist()}


DAMAGE = (OSError, ValueError, EOFError, RuntimeError, MemoryError, zipfile.BadZipFile, zlib.error)


def main(arguments: list[str]) -> int:
    """Check a file; exit status 0 if it is proved, 1 if it is refused, 2 without a file."""
    if len(arguments) != 1:
        sys.stdout.write("usage: python checker.py certificate.npz\n")
        return 2
    try:
        proof = check(read(arguments[0]))
    except (Refused, *DAMAGE) as error:
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
