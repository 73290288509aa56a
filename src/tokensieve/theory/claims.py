"""Which hypotheses of the theory hold on a data set, and what was found about each of its claims, with the reason in words.

Assumption 1 of Wu et al. (NeurIPS 2025): every document holds exactly one completely positive or completely negative token, and
all its other tokens are irrelevant (α_s = 0). Lemma 4.1 needs a large d; Theorem 4.3 needs a large first step as well.

An asymptotic claim is decided by the certified limit (`limit.certify`), never refuted by a curve that is too short. Where a
hypothesis of a claim does not hold, the claim is neither confirmed nor refuted: what is true instead is stated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokensieve.text.counts import Counts, Floats, Ints
from tokensieve.theory.geometry import documents_of
from tokensieve.theory.limit.certify import LATE_ENOUGH, Fate, FlowLimit
from tokensieve.theory.limit.selection import Attended, one_sided
from tokensieve.theory.one_step import OneStep

WITNESSES = 5
# An angle and an exponent of its fall that confirm a direction; an error of the answers that confirms their limit.
AGREES, FALLING, CLOSE = 0.01, -0.5, 1e-3


class Outcome(StrEnum):
    """What was found about a claim."""

    HOLDS = "holds"
    FAILS = "fails"
    UNMET = "hypothesis not met"
    LONGER = "needs a longer run"


@dataclass(frozen=True)
class Agreement:
    """The direction of p against the max-margin direction.

    Attributes:
        cosine, angle: at the end of the curve; angle in radians.
        exponent: fitted slope of log angle against log ‖p‖ over the last factor 30 of ‖p‖ (theory with unique, strictly positive
            multipliers: −1); nan with fewer than four points.
        standard_error: of the exponent, over the points of the curve.
    """

    cosine: float
    angle: float
    exponent: float
    standard_error: float


@dataclass(frozen=True)
class Claim:
    """One claim, what was found about it, and the reason in words."""

    name: str
    outcome: Outcome
    verdict: str

    @property
    def holds(self) -> bool | None:
        """True or False where the claim was decided, None where it was not, or its hypothesis does not hold."""
        return {Outcome.HOLDS: True, Outcome.FAILS: False}.get(self.outcome)

    def to_dict(self) -> dict[str, Any]:
        """The claim, ready for JSON."""
        return {"name": self.name, "holds": self.holds, "outcome": self.outcome, "verdict": self.verdict}


class Hypothesis(StrEnum):
    """What is assumed, in words."""

    CHOICE = "every document holds at least two token types"
    LENGTHS = "all documents have the same length T"
    ONE_RELEVANT = "every document holds exactly one completely positive or completely negative token"
    IRRELEVANT = "all other tokens are irrelevant (α = 0 exactly)"
    DIMENSION = "d ≥ 20 log|S| (initial scores and answers are small)"
    REMAINDER = "the first step is mostly (η/2) α v (remainder below one half)"
    LARGE_STEP = "η₀ is large enough: the important token has the best value of its document"


@dataclass(frozen=True)
class Assumption:
    """One hypothesis.

    Attributes:
        hypothesis: what is assumed.
        holds: whether it does.
        detail: the counts behind it, in words.
        documents: indices of up to five documents that break it.
        types: up to five token types that break it.
    """

    hypothesis: Hypothesis
    holds: bool
    detail: str
    documents: tuple[int, ...] = ()
    types: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The hypothesis in words."""
        return self.hypothesis.value

    def to_dict(self) -> dict[str, Any]:
        """The hypothesis, ready for JSON."""
        return {
            "name": self.name,
            "holds": self.holds,
            "detail": self.detail,
            "documents": list(self.documents),
            "types": list(self.types),
        }


def check_assumptions(counts: Counts, step: OneStep) -> list[Assumption]:
    """Every hypothesis of Lemma 4.1 and Theorem 4.3 that data and start decide.

    Args:
        counts: n documents of two classes over |S| types.
        step: the first gradient step on this data.
    """
    sides = one_sided(counts)
    return [
        _something_to_choose(counts),
        _equal_lengths(counts),
        _one_relevant(counts, sides),
        _irrelevant_rest(counts, sides, step.alpha),
        _dimension(counts, step),
        _remainder(step),
        _large_step(counts, sides, step),
    ]


def _something_to_choose(counts: Counts) -> Assumption:
    held = np.diff(counts.matrix.indptr)
    bad = np.flatnonzero(held < 2)
    detail = f"{np.sum(held == 0)} documents have no known token and {np.sum(held == 1)} hold a single token type, of {held.size}"
    return Assumption(Hypothesis.CHOICE, bad.size == 0, detail, _first(bad))


def _equal_lengths(counts: Counts) -> Assumption:
    lengths = counts.lengths
    common = np.bincount(lengths.astype(np.int64)).argmax()
    detail = f"lengths {lengths.min():.0f} to {lengths.max():.0f}, most often {common}"
    return Assumption(Hypothesis.LENGTHS, bool(np.ptp(lengths) == 0), detail, _first(lengths != common))


def _one_relevant(counts: Counts, sides: NDArray[np.int64]) -> Assumption:
    relevant = np.bincount(
        documents_of(counts), counts.matrix.data * (sides != 0)[counts.matrix.indices], counts.n_documents
    )
    detail = (
        f"{np.sum(relevant == 1)} of {relevant.size} documents hold exactly one completely positive or negative token, "
        f"{np.sum(relevant == 0)} none, {np.sum(relevant > 1)} several; {np.sum(sides > 0)} types are completely positive, "
        f"{np.sum(sides < 0)} completely negative"
    )
    return Assumption(Hypothesis.ONE_RELEVANT, bool(np.all(relevant == 1)), detail, _first(relevant != 1))


def _irrelevant_rest(counts: Counts, sides: NDArray[np.int64], alpha: Floats) -> Assumption:
    # α sums n fractions: below n·eps of a type's own frequency it is zero as far as the arithmetic can tell.
    share = np.asarray(counts.matrix.T @ (1 / (np.maximum(counts.lengths, 1) * counts.n_documents)))
    bad = (sides == 0) & (np.abs(alpha) > counts.n_documents * np.finfo(float).eps * share)
    order = np.flatnonzero(bad)[np.argsort(-np.abs(alpha[bad]), kind="stable")]
    detail = f"{bad.sum()} of the {np.sum(sides == 0)} token types that occur in both classes have α ≠ 0"
    if order.size:
        detail += f"; the largest is {alpha[order[0]]:.3g} ({counts.tokens[order[0]]})"
    holders = np.bincount(documents_of(counts), bad[counts.matrix.indices], counts.n_documents) > 0
    types = tuple(str(counts.tokens[s]) for s in order[:WITNESSES])
    return Assumption(Hypothesis.IRRELEVANT, not bad.any(), detail, _first(holders), types)


def _dimension(counts: Counts, step: OneStep) -> Assumption:
    d, size = step.start.p.size, max(counts.n_types, 2)
    ratio = d / math.log(size)
    detail = f"d = {d} is {ratio:.1f} · log|S|; initial scores span ±{step.score_range:.3g}, answers ±{step.answer_range:.3g}"
    return Assumption(Hypothesis.DIMENSION, ratio >= 20, detail)


def _remainder(step: OneStep) -> Assumption:
    detail = (
        f"the remainder of the step is {step.relative_remainder:.3g} of the predicted step, its bound {step.bound:.3g}"
    )
    return Assumption(Hypothesis.REMAINDER, step.relative_remainder < 0.5, detail)


def _large_step(counts: Counts, sides: NDArray[np.int64], step: OneStep) -> Assumption:
    """η₀ is large enough when the value of a document's important token beats every other in the direction of its label."""
    w = step.start.E @ step.start.v + step.alignment
    document, m = documents_of(counts), counts.matrix
    signed = counts.signs[document] * w[m.indices]
    important = (sides != 0)[m.indices]
    best = np.full((2, counts.n_documents), -np.inf)
    for row, which in enumerate((important, ~important)):
        np.maximum.at(best[row], document[which], signed[which])
    concerned = np.isfinite(best[0])
    bad = concerned & (best[0] <= best[1])
    good = concerned.sum() - bad.sum()
    detail = f"in {good} of the {concerned.sum()} documents with such a token its value is the best for the label"
    return Assumption(Hypothesis.LARGE_STEP, bool(concerned.any() and not bad.any()), detail, _first(bad))


def _first(which: Ints | NDArray[np.bool_]) -> tuple[int, ...]:
    """The first few documents of a mask or an index array."""
    places = np.flatnonzero(which) if which.dtype == bool else which
    return tuple(int(k) for k in places[:WITNESSES])


def check_claims(
    step: OneStep,
    limit: FlowLimit,
    attended: Attended | None,
    agreement: Agreement | None,
    assumptions: list[Assumption],
) -> list[Claim]:
    """Every claim, in the order of the paper.

    Args:
        step: the first gradient step.
        limit: what becomes of p.
        attended: what the limit selects; None while it is not decided.
        agreement: the direction of p against the limit's; None where there is none.
        assumptions: of the data and the start.
    """
    held = {item.hypothesis: item.holds for item in assumptions}
    # Assumption 1 and a first step that is large enough: the hypotheses of Lemmas 4.4 and 4.5 and of Theorem 4.3.
    exact = all(
        held[x] for x in (Hypothesis.CHOICE, Hypothesis.ONE_RELEVANT, Hypothesis.IRRELEVANT, Hypothesis.LARGE_STEP)
    )
    return [
        _one_step(step),
        _norm(limit, held[Hypothesis.DIMENSION]),
        _answers(limit, attended, exact),
        _important(limit, attended, exact),
        _direction(limit, agreement, exact),
    ]


def _one_step(step: OneStep) -> Claim:
    name = "one step aligns each embedding with v in proportion to α (Lemma 4.1)"
    if not math.isfinite(step.r2):
        return Claim(name, Outcome.UNMET, "α is the same for every token type, so there is no line to fit")
    words = (
        f"(E¹−E⁰)ᵀv against α: slope {step.slope:.4g} (expected {step.expected_slope:.4g}), R² {step.r2:.4f}; remainder "
        f"{step.relative_remainder:.3g} of the predicted step, bound {step.bound:.3g} {'holds' if step.bound_holds else 'FAILS'}"
    )
    if not step.bound_holds:
        return Claim(name, Outcome.FAILS, words)
    if step.relative_remainder < 0.5 and step.r2 > 0.9:
        return Claim(name, Outcome.HOLDS, words)
    return Claim(
        name, Outcome.UNMET, f"d is not large enough for the remainder to be small; what holds is its bound: {words}"
    )


def _norm(limit: FlowLimit, large_d: bool) -> Claim:
    name = "‖p‖ grows without bound (Lemma 4.2)"
    words = f"{limit.flow.verdict}: {limit.flow.reason}"
    if limit.fate is Fate.UNDECIDED:
        return Claim(name, Outcome.LONGER, limit.reason)
    if limit.fate is not Fate.POINT:
        return Claim(name, Outcome.HOLDS, words)
    if not large_d:
        return Claim(name, Outcome.UNMET, f"d is not large; instead p converges to a finite point: {limit.flow.reason}")
    return Claim(name, Outcome.FAILS, words)


def _answers(limit: FlowLimit, attended: Attended | None, exact: bool) -> Claim:
    name = "only selected tokens matter in the limit (Lemma 4.4)"
    if attended is None:
        return Claim(name, Outcome.LONGER, limit.reason)
    if limit.fate is Fate.POINT:
        return Claim(name, Outcome.UNMET, "p does not diverge: every token keeps some of the attention")
    words = f"predictions are within {attended.limit_error:.3g} of the mean value of selected tokens"
    k = 0 if limit.face is None else limit.face.dimension
    if k:
        instead = f"{words}; {attended.selection.ties} documents select several types, which keep finite score gaps"
        return Claim(name, Outcome.FAILS if exact else Outcome.UNMET, instead)
    if attended.limit_error < CLOSE:
        return Claim(name, Outcome.HOLDS, words)
    wait = float(limit.flow.log_time[-1]) + math.log(attended.limit_error / CLOSE)
    return Claim(name, Outcome.LONGER, f"{words}, and fall like 1/t: follow the flow to log t ≈ {wait:.3g}")


def _important(limit: FlowLimit, attended: Attended | None, exact: bool) -> Claim:
    name = "important tokens are selected (Lemma 4.5)"
    if attended is None:
        return Claim(name, Outcome.LONGER, limit.reason)
    if not attended.important_documents:
        return Claim(name, Outcome.UNMET, "no document holds an important token")
    words = f"{attended.all_share:.1%} of the {attended.important_documents} documents with important tokens select all of them"
    if limit.fate is Fate.POINT:
        return Claim(name, Outcome.UNMET, f"p does not diverge; at its limit {words}")
    if attended.all_share == 1.0:
        return Claim(name, Outcome.HOLDS, f"{words}, at ‖p‖ = {limit.flow.norm[-1]:.5g}")
    if exact:
        return Claim(name, Outcome.FAILS, words)
    return Claim(name, Outcome.UNMET, f"{words}; {attended.any_share:.1%} select at least one")


def _direction(limit: FlowLimit, agreement: Agreement | None, exact: bool) -> Claim:
    name = "p/‖p‖ converges to the max-margin direction of its selection (Theorem 4.3)"
    margin = limit.margin
    if limit.fate is Fate.UNDECIDED:
        return Claim(name, Outcome.LONGER, limit.reason)
    if limit.fate is Fate.POINT or margin is None or agreement is None:
        return Claim(name, Outcome.UNMET, "p converges to a finite point; the max-margin statement does not apply")
    exponent = f"{agreement.exponent:.2f}".replace("-", "−")
    words = f"angle {agreement.angle:.3g} rad at ‖p‖ = {limit.flow.norm[-1]:.5g}, "
    if math.isfinite(agreement.exponent):
        words += f"falling like ‖p‖^({exponent} ± {agreement.standard_error:.2f}); "
    words += (
        f"angle·‖p‖ tends to {limit.angle_constant:.4g}; margin {margin.margin:.4g}, duality gap {margin.duality_gap:.1e}, "
        f"KKT residual {margin.kkt_residual:.1e}"
    )
    if not limit.is_max_margin:
        return Claim(name, Outcome.FAILS if exact else Outcome.UNMET, f"{limit.reason}; to that direction: {words}")
    if limit.face is not None and limit.face.dimension:
        words = f"{limit.face.dimension} finite gaps, which the margin problem keeps equal; {words}"
    falls = agreement.angle <= AGREES and agreement.exponent < FALLING
    certified = limit.compared[2] < AGREES
    if falls or certified:
        return Claim(name, Outcome.HOLDS, words)
    return Claim(name, Outcome.LONGER, f"{words}; follow the flow to log t > {LATE_ENOUGH:g}, or to twice its norm")
