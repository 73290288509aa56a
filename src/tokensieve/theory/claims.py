"""The claims of the theory on one data set, each with one of four outcomes and its reason in words.

An asymptotic claim is decided by the certified limit (`faces`), never refuted by a curve that is too short. Where a hypothesis of a
claim does not hold, the claim is neither confirmed nor refuted: what is true instead is stated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from tokensieve.theory.assumptions import Hypothesis
from tokensieve.theory.faces import BEGIN, Fate

if TYPE_CHECKING:
    from tokensieve.theory.verify import Verification

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


def check_claims(found: Verification) -> list[Claim]:
    """Every claim, in the order of the paper.

    Args:
        found: all that was computed, without its claims.
    """
    held = {item.hypothesis: item.holds for item in found.assumptions}
    large_d = held[Hypothesis.DIMENSION]
    # Assumption 1 and a first step that is large enough: the hypotheses of Lemmas 4.4 and 4.5 and of Theorem 4.3.
    exact = all(
        held[x] for x in (Hypothesis.CHOICE, Hypothesis.ONE_RELEVANT, Hypothesis.IRRELEVANT, Hypothesis.LARGE_STEP)
    )
    return [
        _one_step(found), _norm(found, large_d), _answers(found, exact), _important(found, exact), _direction(found, exact),
    ]  # fmt: skip


def _one_step(found: Verification) -> Claim:
    step = found.step
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


def _norm(found: Verification, large_d: bool) -> Claim:
    name, limit = "‖p‖ grows without bound (Lemma 4.2)", found.limit
    words = f"{found.flow.verdict}: {found.flow.reason}"
    if limit.fate is Fate.UNDECIDED:
        return Claim(name, Outcome.LONGER, limit.reason)
    if limit.fate is not Fate.POINT:
        return Claim(name, Outcome.HOLDS, words)
    if not large_d:
        return Claim(name, Outcome.UNMET, f"d is not large; instead p converges to a finite point: {found.flow.reason}")
    return Claim(name, Outcome.FAILS, words)


def _answers(found: Verification, exact: bool) -> Claim:
    name, limit, selection = "only selected tokens matter in the limit (Lemma 4.4)", found.limit, found.selection
    if selection is None:
        return Claim(name, Outcome.LONGER, limit.reason)
    if limit.fate is Fate.POINT:
        return Claim(name, Outcome.UNMET, "p does not diverge: every token keeps a share of the attention")
    words = f"answers are within {found.limit_error:.3g} of the mean value of selected tokens"
    k = 0 if limit.face is None else limit.face.dimension
    if k:
        instead = f"{words}; {selection.ties} documents select several types, which keep finite score gaps and shares of their own"
        return Claim(name, Outcome.FAILS if exact else Outcome.UNMET, instead)
    if found.limit_error < CLOSE:
        return Claim(name, Outcome.HOLDS, words)
    wait = float(found.flow.log_time[-1]) + math.log(found.limit_error / CLOSE)
    return Claim(name, Outcome.LONGER, f"{words}, and fall like 1/t: follow the flow to log t ≈ {wait:.3g}")


def _important(found: Verification, exact: bool) -> Claim:
    name = "important tokens are selected (Lemma 4.5)"
    if found.selection is None:
        return Claim(name, Outcome.LONGER, found.limit.reason)
    if not found.important_documents:
        return Claim(name, Outcome.UNMET, "no document holds an important token")
    words = f"{found.important_share:.1%} of the {found.important_documents} documents with important tokens select all of them"
    if found.limit.fate is Fate.POINT:
        return Claim(name, Outcome.UNMET, f"p does not diverge; at its limit {words}")
    if found.important_share == 1.0:
        return Claim(name, Outcome.HOLDS, f"{words}, at ‖p‖ = {found.flow.norm[-1]:.5g}")
    if exact:
        return Claim(name, Outcome.FAILS, words)
    return Claim(name, Outcome.UNMET, f"{words}; {found.any_important_share:.1%} select at least one")


def _direction(found: Verification, exact: bool) -> Claim:
    name = "p/‖p‖ converges to the max-margin direction of its selection (Theorem 4.3)"
    limit, margin, agreement = found.limit, found.margin, found.agreement
    if limit.fate is Fate.UNDECIDED:
        return Claim(name, Outcome.LONGER, limit.reason)
    if limit.fate is Fate.POINT or margin is None or agreement is None:
        return Claim(name, Outcome.UNMET, "p converges to a finite point; the max-margin statement does not apply")
    exponent = f"{agreement.exponent:.2f}".replace("-", "−")
    words = f"angle {agreement.angle:.3g} rad at ‖p‖ = {found.flow.norm[-1]:.5g}, "
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
    return Claim(name, Outcome.LONGER, f"{words}; follow the flow to log t > {BEGIN[0]:g}, or to twice its norm")
