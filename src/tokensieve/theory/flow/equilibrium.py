"""The point z* at which the finite gaps of a face settle: certificate (F1)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tokensieve.arrays import Floats, Ints
from tokensieve.text.counts import Counts
from tokensieve.theory.flow.face import Face
from tokensieve.theory.flow.landscape import Landscape

# Where curvatures differ by more than this, L_S may be least on a surface.
MAYBE_FLAT = 1e-6
# Below this fraction of the largest a curvature is rounding.
ROUNDING = 1e-13
# Newton's method ends at a step of this length, relative to x, and takes at most so many. It fails
# if the last step is longer than LONGEST_LAST_STEP.
SHORT_STEP = 1e-11
NEWTON_STEPS = 30
# Steps that stop shrinking here still have half of the digits of double precision.
LONGEST_LAST_STEP = 1e-7
# It fails if a gap moves by more nats: the minimum is another one than that of the flow.
MAX_MOVED = 1.0


@dataclass(frozen=True)
class Equilibrium:
    """The minimum z* of L_S on V, with its certificate (F1).

    Where equal documents have both labels, L_S may be least on a whole surface: every f_X is the
    logit of its label frequency. L is analytic, so that the flow of these documents alone converges
    to a point of it nearby (Absil & Kurdyka 2006), though no minimum is strict.

    Attributes:
        z: shape (r,), in V.
        answers: f*_X, shape (n,).
        log_total: log Σ_{s ∈ S_X} c_s e^{E_s·z*} of each document, shape (n,); zero without types.
        curvature: smallest curvature of L_S on V; inf where V = 0.
        spread: the same relative to the largest curvature.
        moved: largest change of a score gap on the way from the curve to z*, in nats.
        documents: how many select two or more types.
        flat: dimension of the surface of minima through z*; 0 where the minimum is strict.
    """

    z: Floats
    answers: Floats
    log_total: Floats
    curvature: float
    spread: float
    moved: float
    documents: int
    flat: int = 0

    @classmethod
    def near(cls, land: Landscape, face: Face, z: Floats) -> Equilibrium | None:
        """The local minimum that Newton's method reaches without moving any gap by more than a
        nat."""
        answers_at = RestrictedSoftmax(land, face)
        if not face.dimension:
            origin = np.zeros(land.E.shape[1])
            return cls(origin, *answers_at(origin), math.inf, spread=1.0, moved=0.0, documents=0)
        minimum = newton(land, face, face.inside.T @ z)
        if minimum is None:
            return None
        at = face.inside @ minimum.x
        log_tied = math.log(minimum.documents / land.counts.n_documents)
        return cls(
            at,
            *answers_at(at),
            curvature=math.exp(minimum.log_curvature + log_tied),
            spread=minimum.spread,
            moved=minimum.moved,
            documents=minimum.documents,
            flat=minimum.flat,
        )


@dataclass(frozen=True)
class RestrictedSoftmax:
    """f*_X and log Z_X of each document, shapes (n,), with every softmax restricted to S_X.

    Z_X = Σ_{s∈S_X} c_s e^{E_s·z} and f*_X = Σ_{s∈S_X} c_s e^{E_s·z} w_s / Z_X; both results are 0
    for a document without types.
    """

    land: Landscape
    face: Face

    def __call__(self, z: Floats) -> tuple[Floats, Floats]:
        counts = self.land.counts
        types = counts.matrix.indices
        document = counts.entry_documents
        u = np.where(self.face.mask, (self.land.E @ z)[types], -np.inf)
        # an empty document has no highest type: a finite number avoids ∞ − ∞
        highest = np.maximum(counts.largest_per_document(u), -1e300)
        weight = counts.matrix.data * np.exp(u - highest[document])
        total = np.bincount(document, weight, counts.n_documents)
        divisor = np.where(total > 0, total, 1.0)
        weighted_values = np.bincount(document, weight * self.land.w[types], counts.n_documents)
        log_total = np.where(total > 0, highest + np.log(divisor), 0.0)
        return weighted_values / divisor, log_total


@dataclass(frozen=True)
class NewtonMinimum:
    """A minimum of L_S over the tied documents alone, in coordinates x of V."""

    x: Floats
    log_curvature: float
    spread: float
    moved: float
    documents: int
    flat: int


@dataclass(frozen=True)
class NewtonStep:
    """A step to a minimum, or to a surface of minima of dimension `flat`, and the curvatures before
    it."""

    step: Floats
    curvature: Floats
    log_size: float
    flat: int = 0


def newton(land: Landscape, face: Face, x: Floats) -> NewtonMinimum | None:
    """Newton's method on V; None if it fails, or leaves the start by more than a nat."""
    inner = face.restricted(land.counts)
    loss = Landscape(inner, land.E @ face.inside, land.w)
    scores = loss.E @ x
    moved = 0.0
    size = math.inf
    for _ in range(NEWTON_STEPS):
        step = newton_step(loss, x)
        if step.curvature[0] <= ROUNDING * step.curvature[-1]:
            return None
        x = x + step.step
        moved = largest_gap_change(inner, loss.E @ x - scores)
        if moved > MAX_MOVED:
            return None
        size = float(np.linalg.norm(step.step)) / (1 + float(np.linalg.norm(x)))
        if size <= SHORT_STEP:
            break
    if size > LONGEST_LAST_STEP:
        return None
    return NewtonMinimum(
        x=x,
        log_curvature=step.log_size + math.log(step.curvature[0]),
        spread=float(step.curvature[0] / step.curvature[-1]),
        moved=moved,
        documents=inner.n_documents,
        flat=step.flat,
    )


def largest_gap_change(counts: Counts, score_changes: Floats) -> float:
    """The largest change of a score gap within a document, in nats; no document may be empty."""
    changes = score_changes[counts.matrix.indices]
    starts = counts.matrix.indptr[:-1]
    gap_changes = np.maximum.reduceat(changes, starts) - np.minimum.reduceat(changes, starts)
    return float(np.max(gap_changes))


def newton_step(loss: Landscape, x: Floats) -> NewtonStep:
    """Towards a strict minimum, or, if curvatures differ much, the nearest point of a surface of
    minima.

    The first step is −H⁻¹∇L_S. On a surface every set of equal documents has the logit of its label
    frequency: the step is the shortest that mends all their misses to the first order.
    """
    H, downhill, log_size = loss.hessian(x)
    curvature, axes = np.linalg.eigh(H)
    if curvature[0] <= MAYBE_FLAT * curvature[-1]:
        surface = LabelFrequencies.at(loss, x)
        if surface is not None and 0 < len(surface.misses) < len(x):
            across = np.sqrt(np.outer(surface.curvatures, surface.curvatures))
            curvature, _ = np.linalg.eigh(across * (surface.slopes @ surface.slopes.T))
            step = np.linalg.pinv(surface.slopes) @ surface.misses
            return NewtonStep(
                np.asarray(step, np.float64), curvature, 0.0, len(x) - len(surface.misses)
            )
    with np.errstate(divide="ignore", invalid="ignore"):  # the caller refuses zero curvatures
        step = axes @ ((axes.T @ downhill) / curvature)
    return NewtonStep(step, curvature, log_size)


@dataclass(frozen=True)
class LabelFrequencies:
    """Sets of equal documents whose logit x can change, and which have both labels.

    Attributes:
        slopes: ∂f/∂x of each set, shape (m, k).
        misses: the logit of its label frequency less f, shape (m,).
        curvatures: second derivative of the loss in f at that logit, shape (m,).
    """

    slopes: Floats
    misses: Floats
    curvatures: Floats

    @classmethod
    def at(cls, loss: Landscape, x: Floats) -> LabelFrequencies | None:
        """None where such a set has one label, which no finite logit predicts best."""
        slopes = []
        misses = []
        curvatures = []
        for equal in equal_documents(loss.counts):
            values = loss.w[equal.types]
            if np.ptp(values) == 0:
                continue
            if equal.share in (0.0, 1.0):
                return None
            q, f = softmax_mean(loss, equal, x)
            slopes.append((q * (values - f)) @ loss.E[equal.types])
            misses.append(math.log(equal.share / (1 - equal.share)) - f)
            curvatures.append(equal.fraction * equal.share * (1 - equal.share))
        return cls(np.array(slopes).reshape(-1, len(x)), np.array(misses), np.array(curvatures))


@dataclass(frozen=True)
class EqualDocuments:
    """Documents with the same types, equally often.

    Attributes:
        types, counts: of each of them.
        share: of them, how many have the label +1; fraction: of all documents, how many they are.
    """

    types: Ints
    counts: Floats
    share: float
    fraction: float


def equal_documents(counts: Counts) -> Iterator[EqualDocuments]:
    """All sets of equal documents, of which some have one member."""
    m = counts.matrix
    _, first, sizes = np.unique(counts.equal_documents, return_index=True, return_counts=True)
    shares = np.bincount(counts.equal_documents, counts.labels) / sizes
    for k, share, size in zip(first.tolist(), shares.tolist(), sizes.tolist(), strict=True):
        row = slice(*m.indptr[k : k + 2])
        yield EqualDocuments(m.indices[row], m.data[row], share, size / counts.n_documents)


def softmax_mean(loss: Landscape, equal: EqualDocuments, x: Floats) -> tuple[Floats, float]:
    """The attention q of documents, and their logit."""
    u = loss.E[equal.types] @ x + np.log(equal.counts)
    q = np.exp(u - u.max())
    q /= q.sum()
    return q, float(q @ loss.w[equal.types])
