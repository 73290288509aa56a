"""Verdicts on small random problems, beside an independent integration in high precision.

    python benchmarks/small_problems.py --seeds 70001-70125 --rows rows.jsonl --out small.json

Each seed draws one problem of each of eight kinds. A run that was interrupted goes on where its
rows end. The tests compare the same problems (tests/theory/test_small_problems.py).

The integration knows nothing of the package: implicit Euler steps in log t with Newton's method, in
200 bits, from the definition of the loss alone. It goes from log t = −6 to 30; where it disagrees
with the verdict, to 60, and past the end of the computed flow. Its gaps decide what "stays finite"
and "grows like log t" should mean.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import polars as pl
from flint import arb, arb_mat, ctx

from machine import described
from tokensieve import __version__
from tokensieve.text.counts import Counts
from tokensieve.theory.flow.solve import gradient_flow
from tokensieve.theory.limit.certify import FlowLimit
from tokensieve.theory.limit.proof import prove
from tokensieve.theory.settings import VerifySettings

KINDS = (
    "both labels",
    "repeated tokens",
    "equal documents",
    "ties in w",
    "dependent embeddings",
    "near-degenerate margins",
    "push nearly orthogonal to V",
    "Assumption 1",
)
N_TYPES = 5
DIMENSION = 3

BITS = 200  # e^60 takes 87 of them
BEGINS = -6.0  # log t; nothing has moved yet
ENDS = 30.0
LATER = 60.0  # a curve that contradicts the verdict is followed to here, and to the flow's end
BETWEEN = 4.0  # log t between the three points that speeds are taken from
FIRST_STEP = 0.1
TOLERANCE = 1e-4  # of a step, relative to p
MAX_STEPS = 2000  # implicit steps of one curve; two that were counted took 180 and 247
NEWTON_STEPS = 30
CONVERGED = 1e-14  # a step of Newton's method this short leaves an error of about its square
TOO_FAR = 1e6  # a step of Newton's method beyond this does not come back
UNSTABLE = -0.5  # an implicit step may not be longer against an eigenvalue below zero
STEADY = 0.1  # relative change of a speed that counts as none
# Difference of speeds that counts as agreement. One over log t is what the offset may still cost,
# and Euler's steps are long.
SPEED_ERROR = 0.15


RIGHT = "right"
RIGHT_LATER = f"right later than log t = {ENDS:g}"
UNDECIDED = "not settled"
CURVE_UNDECIDED = "the independent curve has not settled"
WRONG = "wrong"


@dataclass(frozen=True)
class Problem:
    """Documents, embeddings, values, and where the flow begins."""

    counts: Counts
    E: np.ndarray
    w: np.ndarray
    p: np.ndarray


def problem(kind: str, seed: int) -> Problem:
    """Three to five documents over five token types in three dimensions."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    n_documents = int(rng.integers(3, 6))
    held = (rng.random((n_documents, N_TYPES)) < 0.5).astype(int)
    for row in held:
        row[rng.choice(N_TYPES, 2, replace=False)] = 1
    labels = rng.integers(0, 2, n_documents)
    E = rng.standard_normal((N_TYPES, DIMENSION))
    w = 1.5 * rng.standard_normal(N_TYPES)
    if kind == "repeated tokens":
        held *= rng.integers(1, 4, held.shape)
    elif kind == "equal documents":
        held[1] = held[0]
        labels[:2] = [0, 1]
    elif kind == "ties in w":
        w[1] = w[0]
    elif kind == "dependent embeddings":
        E[4] = E[0] + E[1] - E[2]
    elif kind == "near-degenerate margins":
        E[1] = E[0] + 1e-2 * rng.standard_normal(DIMENSION)
    elif kind == "push nearly orthogonal to V":
        held = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 0, 0], [0, 0, 0, 1, 1]])
        labels = np.array([1, 0, 1])
        E[:3, 2] = 0
        E[3] = [*0.1 * rng.standard_normal(2), 1.0]
        E[4] = 0
    elif kind == "Assumption 1":
        held = np.array([[1, 0, 1, 0, 0], [1, 0, 0, 1, 0], [0, 1, 1, 0, 0], [0, 1, 0, 1, 0]])
        labels = np.array([1, 1, 0, 0])
        w = np.array([1.0, -1.0, 0.0, 0.0, 0.0])
    counts = Counts.from_matrix(held, labels)
    return Problem(counts, E, w, 0.3 * rng.standard_normal(DIMENSION))


@dataclass(frozen=True)
class Derivatives:
    """∇L, shape (d, 1), and ∇²L, shape (d, d)."""

    gradient: arb_mat
    hessian: arb_mat


class HighPrecision:
    """The flow of L(p) = (1/n) Σ_X log(1 + e^{−y f_X}) in 200 bits, from its definition alone."""

    def __init__(self, given: Problem) -> None:
        ctx.prec = BITS
        self.d = given.E.shape[1]
        self.n = given.counts.n_documents
        self.labels = given.counts.signs.tolist()
        self.C = arb_mat(given.counts.matrix.toarray().tolist())
        self.E = arb_mat(given.E.tolist())
        self.w = diagonal(given.w.tolist())
        self.ones = arb_mat([[1]] * len(given.w))

    def attention(self, p: arb_mat) -> arb_mat:
        """q = c e^{E p}/Z, shape (n, types).

        An `arb` has an exponent of any size, so that no weight is lost.
        """
        weights = self.C * diagonal([score.exp() for score in (self.E * p).entries()])
        Z = (weights * self.ones).entries()
        return diagonal([1 / total for total in Z]) * weights

    def derivatives(self, p: arb_mat) -> Derivatives:
        """With q the attention of a document, f = Σ q w, t = q (w − f), s = Σ t E and m = Σ q E,

        ∇f = s,    ∇²f = Σ t E Eᵀ − m sᵀ − s mᵀ,
        ∇L = −Σ a s,    ∇²L = Σ b s sᵀ − Σ a ∇²f,    a = y σ(−y f)/n,    b = σ (1 − σ)/n.
        """
        q = self.attention(p)
        f = (q * self.w * self.ones).entries()
        sigma = [1 / (1 + (y * x).exp()) for y, x in zip(self.labels, f, strict=True)]
        a = diagonal([y * x / self.n for y, x in zip(self.labels, sigma, strict=True)])
        b = diagonal([x * (1 - x) / self.n for x in sigma])

        t = q * self.w - diagonal(f) * q
        s = t * self.E
        m = q * self.E
        a_by_type = t.transpose() * a * arb_mat([[1]] * self.n)
        gradient = -(self.E.transpose() * a_by_type)
        mixed = s.transpose() * a * m
        hessian = s.transpose() * b * s + mixed + mixed.transpose()
        hessian -= self.E.transpose() * diagonal(a_by_type.entries()) * self.E
        return Derivatives(gradient.mid(), hessian.mid())

    def followed(
        self, p: np.ndarray, times: list[float], begins: float = BEGINS
    ) -> list[np.ndarray] | None:
        """p at some log t after a first one; None if that takes more than `MAX_STEPS` steps.

        Implicit Euler steps of dp/dlog t = −e^{log t} ∇L are compared with two of half the length,
        and extrapolated. An implicit step that is long against an unstable direction would stay on
        it for ever, so that steps are short where the Hessian has a negative eigenvalue.
        """
        z = arb_mat([[x] for x in p.tolist()])
        at = begins
        step = FIRST_STEP
        points = []
        n_steps = 0
        for until in times:
            while at < until - 1e-9:
                n_steps += 1
                if n_steps > MAX_STEPS:
                    return None
                step = min(step, until - at)
                whole = self.euler(z, z, at + step, step)
                halves = None if whole is None else self.two_halves(z, whole, at, step)
                if whole is None or halves is None:
                    step /= 4
                    continue
                error = longest(whole - halves) / (1 + longest(z))
                if error <= TOLERANCE:
                    at += step
                    z = (halves * 2 - whole).mid()
                growth = 0.9 * (TOLERANCE / max(error, 1e-300)) ** 0.5
                step *= min(2.0, max(0.2, growth))
            points.append(np.array([float(x) for x in z.entries()]))
        return points

    def two_halves(self, before: arb_mat, whole: arb_mat, at: float, step: float) -> arb_mat | None:
        """Two steps of half the length; None if one is too long."""
        middle = self.euler(before, (before + whole) / 2, at + step / 2, step / 2)
        if middle is None:
            return None
        return self.euler(middle, whole, at + step, step / 2)

    def euler(self, before: arb_mat, guess: arb_mat, at: float, step: float) -> arb_mat | None:
        """One implicit step that ends at log t = `at`; None if it is too long."""
        z = guess
        scale = step * arb(at).exp()
        one = arb_mat(np.eye(self.d).tolist())
        for _ in range(NEWTON_STEPS):
            here = self.derivatives(z)
            move = (one + here.hessian * scale).solve(before - z - here.gradient * scale).mid()
            z = (z + move).mid()
            size = longest(move)
            if size > TOO_FAR:
                return None
            if size < CONVERGED:
                H = np.array([[float(x) for x in row] for row in (here.hessian * scale).table()])
                return z if np.linalg.eigvalsh(H)[0] > UNSTABLE else None
        return None


def diagonal(values: list[arb]) -> arb_mat:
    """The matrix with these numbers on its diagonal."""
    size = len(values)
    matrix = arb_mat(size, size)
    for place, value in enumerate(values):
        matrix[place, place] = value
    return matrix


def longest(vector: arb_mat) -> float:
    """The largest absolute value."""
    return max(abs(float(x)) for x in vector.entries())


def verdict(given: Problem) -> FlowLimit:
    """What the package says about a problem."""
    settings = VerifySettings(max_norm=1e4, max_seconds=60.0)
    flow = gradient_flow(given.counts, given.E, given.w, given.p, settings)
    limit = FlowLimit.find(given.counts, given.E, given.w, flow, 60.0)
    return prove(limit, given.counts, given.E, given.w, 60.0)


@dataclass(frozen=True)
class Outcome:
    """A verdict beside the independent curve.

    Attributes:
        fate: the verdict; grade: how far it is proved.
        comparison: `RIGHT`, `RIGHT_LATER`, `UNDECIDED`, `CURVE_UNDECIDED` or `WRONG`.
    """

    fate: str
    grade: str
    comparison: str


def compare(kind: str, seed: int) -> Outcome:
    """The verdict of a problem, compared with the independent curve."""
    given = problem(kind, seed)
    limit = verdict(given)
    if limit.fate == "not settled":
        return Outcome(limit.fate, limit.grade, UNDECIDED)
    return Outcome(limit.fate, limit.grade, comparison(given, limit))


def comparison(given: Problem, limit: FlowLimit) -> str:
    """What the independent curve says about a verdict."""
    curve = HighPrecision(given)
    points = curve.followed(given.p, [ENDS - 2 * BETWEEN, ENDS - BETWEEN, ENDS])
    changes_late = any(change.log_time > ENDS - BETWEEN for change in limit.changes)
    if points is None or not is_steady(points) or changes_late:
        return CURVE_UNDECIDED
    expected = np.zeros(DIMENSION) if limit.direction is None else limit.direction
    if agree(given, points, expected):
        return RIGHT
    # A selection may look settled for long and change later; a point may be far, and reached only
    # where the flow that was computed ends.
    begins = ENDS
    for later in (LATER, limit.flow.log_time[-1] + 3 * BETWEEN):
        if later <= begins + 2 * BETWEEN:
            continue
        times = [later - 2 * BETWEEN, later - BETWEEN, later]
        points = curve.followed(points[-1], times, begins=begins)
        if points is None:
            return CURVE_UNDECIDED
        if agree(given, points, expected):
            return RIGHT_LATER
        begins = later
    return WRONG


def speeds(points: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """How fast p moves, in log t, between the first two and the last two of three points."""
    early, middle, late = points
    return (middle - early) / BETWEEN, (late - middle) / BETWEEN


def is_steady(points: list[np.ndarray]) -> bool:
    """Whether p moves as fast at the end as before."""
    before, after = speeds(points)
    return bool(np.abs(after - before).max() <= STEADY * (1 + np.abs(after).max()))


def agree(given: Problem, points: list[np.ndarray], expected: np.ndarray) -> bool:
    """Whether the gaps of every document grow as the verdict says."""
    _, speed = speeds(points)
    matrix = given.counts.matrix
    for first, end in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
        E = given.E[matrix.indices[first:end]]
        gaps = (E[1:] - E[0]) @ (speed - expected)
        if np.abs(gaps).max(initial=0.0) > SPEED_ERROR:
            return False
    return True


def compare_missing(seeds: range, rows: Path, seconds: float) -> None:
    """Adds a row to a file of JSON lines for every problem that it lacks, while time is left."""
    done = set()
    if rows.exists():
        done = {(row["kind"], row["seed"]) for row in map(json.loads, rows.open())}
    begun = time.monotonic()
    for seed, kind in itertools.product(seeds, KINDS):
        if (kind, seed) in done or time.monotonic() - begun > seconds:
            continue
        cpu = time.process_time()
        row = {"kind": kind, "seed": seed} | asdict(compare(kind, seed))
        row["seconds"] = round(time.process_time() - cpu, 2)
        with rows.open("a") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def summary(rows: pl.DataFrame) -> pl.DataFrame:
    """How often each comparison and each grade occurs, by kind."""
    columns = [rows.group_by("kind").len("problems")]
    for name in ("comparison", "grade"):
        counted = rows.group_by("kind", name).len()
        columns.append(counted.pivot(name, index="kind", values="len").fill_null(0))
    table = columns[0]
    for more in columns[1:]:
        table = table.join(more, on="kind", how="left")
    return table.sort("kind")


def main() -> None:
    """Compare, then count all rows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", default="70001-70125")
    parser.add_argument("--rows", type=Path, required=True, help="one JSON line a problem")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=1200.0)
    options = parser.parse_args()
    first, last = map(int, options.seeds.split("-"))
    compare_missing(range(first, last + 1), options.rows, options.seconds)
    rows = pl.read_ndjson(options.rows)
    table = summary(rows)
    whole = {
        "version": __version__,
        "machine": described("scipy"),
        "command": " ".join(sys.argv),
        "problems": rows.height,
        "wrong": int((rows["comparison"] == WRONG).sum()),
        "processor_seconds": round(float(rows["seconds"].sum()), 1),
        "by_kind": table.to_dicts(),
        "not_right": rows.filter(pl.col("comparison") != RIGHT).drop("seconds").to_dicts(),
    }
    options.out.write_text(json.dumps(whole, indent=1, ensure_ascii=False), encoding="utf-8")
    with pl.Config(tbl_cols=-1, tbl_width_chars=200):
        print(table)


if __name__ == "__main__":
    main()
