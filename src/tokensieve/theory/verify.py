"""All claims of the theory on one data set: initialise → one step → gradient flow → selection → max margin → agreement.

Each part is a function of its own module; this file runs them in order and puts each result into words.
"""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from tokensieve.data.importance import signed_frequency
from tokensieve.errors import InputError
from tokensieve.model.start import initialise
from tokensieve.progress import Progress
from tokensieve.text.counts import Counts, Floats
from tokensieve.theory.assumptions import Assumption, check_assumptions
from tokensieve.theory.curve import Flow, FlowSettings, Verdict
from tokensieve.theory.flow import gradient_flow
from tokensieve.theory.margin import Margin, max_margin
from tokensieve.theory.one_step import OneStep, one_step
from tokensieve.theory.selection import (
    Selection,
    important_selected,
    limit_error,
    one_sided,
    select,
    select_along,
    selected_fraction,
)

# After the default first step, a document read with equal attention is answered by ± this, on average.
TYPICAL_ANSWER = 1.0
AGREES = 0.01


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
    """One claim, its outcome (True, False, or None where it does not apply or is undecided), and the reason in words."""

    name: str
    holds: bool | None
    verdict: str


@dataclass(frozen=True)
class Verification:
    """Everything that `verify` found.

    `embeddings` is E¹, `values` E¹v, `selected_fraction` that of each point of the flow; margin and agreement are None where they
    do not apply.
    """

    step: OneStep
    embeddings: Floats
    values: Floats
    flow: Flow
    selection: Selection | None
    important_share: float
    important_documents: int
    selected_fraction: Floats
    limit_error: float
    margin: Margin | None
    agreement: Agreement | None
    assumptions: list[Assumption]
    claims: list[Claim]
    seconds: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        """`one_step`, `flow`, `selection`, `margin`, `assumptions`, `claims` and `seconds`, ready for JSON."""
        agreement = (
            asdict(self.agreement)
            if self.agreement
            else dict.fromkeys(("cosine", "angle", "exponent", "standard_error"))
        )
        agreement = {name: x if x is not None and math.isfinite(x) else None for name, x in agreement.items()}
        share = self.important_share if math.isfinite(self.important_share) else None
        flow = (
            self.flow.to_dict()
            | agreement
            | {"important_selected": share, "important_documents": self.important_documents}
        )
        flow["limit_error"] = self.limit_error if math.isfinite(self.limit_error) else None
        none = {
            "status": "not applicable",
            "duality_gap": None,
            "kkt_residual": None,
            "smallest_margin": None,
            "support_pairs": 0,
        }
        return {
            "one_step": self.step.to_dict(), "flow": flow, "selection": self.selection.to_dict() if self.selection else None,
            "margin": self.margin.to_dict() if self.margin else none, "assumptions": [x.to_dict() for x in self.assumptions],
            "claims": [asdict(x) for x in self.claims], "seconds": self.seconds,
        }  # fmt: skip


def default_step_size(counts: Counts) -> float:
    """η₀ such that mean_X |Σ_s (c_{X,s}/T_X) (η₀/2) α_s| = 1: documents read with equal attention are answered by ±1.

    Much below, a sign may give up its documents and select in the other's only; much above, the curve takes longer to settle.

    Raises:
        InputError: every α_s is zero, so no first step carries a signal.
    """
    alpha = signed_frequency(counts)
    typical = float(np.mean(np.abs(counts.matrix @ alpha / np.maximum(counts.lengths, 1.0)))) if alpha.size else 0.0
    if typical < 1e-15:
        raise InputError(
            "every token type is equally frequent in both classes: there is no signal to verify; choose the first step yourself"
            " (--eta)"
        )
    return 2 * TYPICAL_ANSWER / typical


def verify(
    counts: Counts,
    d: int = 512,
    eta: float | None = None,
    seed: int = 0,
    settings: FlowSettings | None = None,
    important: NDArray[np.bool_] | None = None,
    checkpoint: Path | None = None,
    progress: Progress | None = None,
) -> Verification:
    """Check every claim on a data set.

    Args:
        counts: n documents of two classes over |S| types.
        d: embedding dimension.
        eta: size of the first step; `default_step_size` if None.
        seed: of the random start.
        settings: of the flow.
        important: the types that a document's selection is judged by, shape (|S|,); completely positive and negative ones if None.
        checkpoint: file that keeps the flow; a flow found there is resumed.
        progress: called with (stage, share done).

    Raises:
        InputError: see the functions that it calls.
    """
    clock = _Clock(progress)
    clock.start("one step")
    eta = default_step_size(counts) if eta is None else eta
    step = one_step(counts, *initialise(counts.n_types, d, seed=seed), eta)
    E = step.embeddings()
    w = E @ step.start.v
    clock.start("flow")
    flow = gradient_flow(counts, E, w, step.start.p, settings, checkpoint, progress)
    clock.start("selection")
    important = one_sided(counts) != 0 if important is None else important
    fraction = selected_fraction(counts, E, flow, important)
    selection, share, concerned, error = _selected(counts, E, w, flow, important)
    clock.start("margin")
    margin = None
    if selection is not None and flow.verdict == Verdict.DIVERGES:
        margin = max_margin(counts, E, selection.mask, near=flow.p, max_seconds=flow.settings.max_seconds)
    agreement = agree(flow, margin.p) if margin is not None and margin.status == "solved" else None
    clock.start("assumptions")
    assumptions = check_assumptions(counts, step)
    clock.start("done")
    claims = [
        _one_step_claim(step), _norm_claim(flow), _limit_claim(flow, selection, error),
        _selection_claim(share, concerned, error, flow), _margin_claim(flow, margin, agreement),
    ]  # fmt: skip
    return Verification(
        step,
        E,
        w,
        flow,
        selection,
        share,
        concerned,
        fraction,
        error,
        margin,
        agreement,
        assumptions,
        claims,
        clock.seconds,
    )


def agree(flow: Flow, direction: Floats) -> Agreement:
    """Cosine, angle and the rate at which the angle falls with ‖p‖."""
    angle, norm = flow.angle(direction), flow.norm
    late = (norm >= norm[-1] / 30) & (angle > 1e-12)
    exponent, error = math.nan, math.nan
    if late.sum() >= 4:
        fit = stats.linregress(np.log(norm[late]), np.log(angle[late]))
        exponent, error = float(fit.slope), float(fit.stderr)
    return Agreement(float(flow.cosine(direction)[-1]), float(angle[-1]), exponent, error)


def _selected(
    counts: Counts, E: Floats, w: Floats, flow: Flow, important: NDArray[np.bool_]
) -> tuple[Selection | None, float, int, float]:
    """Selection, share of documents that select what is important, how many have it, and the error of the limit of f."""
    u = E @ flow.p
    try:
        selection = select(counts, u) if flow.verdict == Verdict.FINITE else select_along(counts, E, flow)
    except InputError:
        return None, math.nan, 0, math.nan
    share, concerned = important_selected(counts, selection.mask, important)
    return selection, share, concerned, limit_error(counts, selection.mask, u, w)


def _one_step_claim(step: OneStep) -> Claim:
    close = step.relative_remainder < 0.5 and step.r2 > 0.9 and step.bound_holds
    name = "one step aligns each embedding with v in proportion to α (Lemma 4.1)"
    if not math.isfinite(step.r2):
        return Claim(name, None, "does not apply: α is the same for every token type, so there is no line to fit")
    words = (
        f"(E¹−E⁰)ᵀv against α: slope {step.slope:.4g} (expected {step.expected_slope:.4g}), R² {step.r2:.4f}; remainder "
        f"{step.relative_remainder:.3g} of the predicted step, bound {step.bound:.3g} {'holds' if step.bound_holds else 'FAILS'}"
    )
    return Claim(name, bool(close), words)


def _norm_claim(flow: Flow) -> Claim:
    holds = {Verdict.DIVERGES: True, Verdict.FINITE: False}.get(flow.verdict)
    return Claim("‖p‖ grows without bound (Lemma 4.2)", holds, f"{flow.verdict}: {flow.reason}")


def _limit_claim(flow: Flow, selection: Selection | None, error: float) -> Claim:
    name = "only selected tokens matter in the limit (Lemma 4.4)"
    if selection is None or flow.verdict == Verdict.FINITE:
        why = (
            "does not apply: p does not diverge"
            if flow.verdict == Verdict.FINITE
            else "undecided: the curve is too short"
        )
        return Claim(name, None, why)
    words = f"answers are within {error:.3g} of the mean value of selected tokens; {selection.ties} documents select several types"
    # Inside a tie the softmax keeps a ratio of its own: only without ties does the mean have to be met.
    failed = False if flow.verdict == Verdict.DIVERGES and not selection.ties else None
    return Claim(name, True if error < 1e-3 else failed, words)


def _selection_claim(share: float, concerned: int, error: float, flow: Flow) -> Claim:
    name = "important tokens are selected (Lemma 4.5)"
    if math.isnan(share):
        why = "no document holds an important token" if not math.isnan(error) else "undecided: the curve is too short"
        return Claim(name, None, why)
    words = f"{share:.1%} of the {concerned} documents with important tokens select all of them, at ‖p‖ = {flow.norm[-1]:.5g}"
    settled = flow.verdict == Verdict.DIVERGES
    return Claim(name, share == 1.0 if settled else None, words if settled else f"{words} ({flow.verdict})")


def _margin_claim(flow: Flow, margin: Margin | None, agreement: Agreement | None) -> Claim:
    name = "p/‖p‖ converges to the max-margin direction of its selection (Theorem 4.3)"
    if flow.verdict == Verdict.FINITE:
        return Claim(name, None, "p converges to a finite point; the max-margin statement does not apply")
    if margin is None or agreement is None:
        why = "divergence is not shown" if margin is None else f"the max-margin problem is {margin.status}"
        return Claim(name, None, f"undecided: {why}")
    exponent = f"{agreement.exponent:.2f}".replace("-", "−")
    words = (
        f"angle {agreement.angle:.3g} rad at ‖p‖ = {flow.norm[-1]:.5g}, falling like ‖p‖^({exponent} ± "
        f"{agreement.standard_error:.2f}); margin {margin.margin:.4g}, duality gap {margin.duality_gap:.1e}, "
        f"KKT residual {margin.kkt_residual:.1e}"
    )
    falling = agreement.exponent < -0.5
    disagrees = False if flow.verdict == Verdict.DIVERGES and not falling else None
    return Claim(name, True if agreement.angle <= AGREES else disagrees, words)


class _Clock:
    """Wall time of each stage."""

    def __init__(self, progress: Progress | None) -> None:
        self.seconds: dict[str, float] = {}
        self._progress, self._stage, self._since = progress, "", time.monotonic()

    def start(self, stage: str) -> None:
        now = time.monotonic()
        if self._stage:
            self.seconds[self._stage] = now - self._since
        if self._progress is not None:
            self._progress(stage, 0.0)
        self._stage, self._since = stage, now
