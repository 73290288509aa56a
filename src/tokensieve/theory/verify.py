"""All claims of the theory on one data set: initialise → one step → gradient flow → selection → max margin → agreement.

Each part is a function of its own module; this file runs them in order and puts each result into words.
"""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from tokensieve.errors import InputError
from tokensieve.evidence.importance import signed_frequency
from tokensieve.model.start import initialise
from tokensieve.progress import Progress
from tokensieve.text.counts import Counts, Floats
from tokensieve.theory.assumptions import Assumption, check_assumptions
from tokensieve.theory.claims import Agreement, Claim, check_claims
from tokensieve.theory.curve import Flow, FlowSettings, Verdict
from tokensieve.theory.faces import Fate, Limit, find_limit
from tokensieve.theory.flow import gradient_flow
from tokensieve.theory.margin import Margin
from tokensieve.theory.one_step import OneStep, one_step
from tokensieve.theory.selection import (
    Selection,
    describe,
    documents_of,
    final_from,
    important_selected,
    limit_error,
    one_sided,
    select,
    selected_fraction,
)

# After the default first step, a document read with equal attention is answered by ± this, on average.
TYPICAL_ANSWER = 1.0
# Share of the time that the flow may take: a curve without its faces decides nothing.
FLOW_SHARE = 2 / 3


@dataclass(frozen=True, repr=False)
class Verification:
    """Everything that `verify` found.

    `embeddings` is E¹, `values` E¹v, `selected_fraction` that of each point of the flow; `important_share` of the documents with
    important types selects all of them, `any_important_share` at least one; `final_from` is log t from which on every document's
    highest type is one that it selects in the limit; margin and agreement are None where they do not apply.
    """

    step: OneStep
    embeddings: Floats
    values: Floats
    flow: Flow
    limit: Limit
    selection: Selection | None
    important_share: float
    important_documents: int
    any_important_share: float
    selected_fraction: Floats
    final_from: float
    limit_error: float
    margin: Margin | None
    agreement: Agreement | None
    assumptions: list[Assumption]
    claims: list[Claim]
    seconds: dict[str, float]

    def __repr__(self) -> str:
        return f"Verification({'; '.join(f'{claim.name}: {claim.outcome.value}' for claim in self.claims)}; {self.limit!r})"

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
        selection = None
        if self.selection is not None:
            final = self.final_from if math.isfinite(self.final_from) else None
            selection = self.selection.to_dict() | {"final_from_log_time": final}
        return {
            "one_step": self.step.to_dict(), "flow": flow, "selection": selection,
            "margin": self.margin.to_dict() if self.margin else none, "assumptions": [x.to_dict() for x in self.assumptions],
            "claims": [x.to_dict() for x in self.claims], "limit": self.limit.to_dict(), "seconds": self.seconds,
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
        settings: of the flow; of its max_seconds the flow takes two thirds at most, faces and the margin problem the rest.
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
    settings, begun = settings or FlowSettings(), time.monotonic()
    followed = replace(settings, max_seconds=FLOW_SHARE * settings.max_seconds)
    flow = gradient_flow(counts, E, w, step.start.p, followed, checkpoint, progress)
    clock.start("faces")
    limit = find_limit(counts, E, w, flow, begun + settings.max_seconds - time.monotonic(), progress)
    flow = _agreed(flow, limit)
    clock.start("selection")
    important = one_sided(counts) != 0 if important is None else important
    selection = _selected(counts, E, flow, limit)
    share, concerned = important_selected(counts, selection.mask, important) if selection else (math.nan, 0)
    error = limit_error(counts, selection.mask, E @ flow.p, w) if selection else math.nan
    clock.start("assumptions")
    found = Verification(
        step=step, embeddings=E, values=w, flow=flow, limit=limit, selection=selection, important_share=share,
        important_documents=concerned, any_important_share=_any_important(counts, selection, important),
        selected_fraction=selected_fraction(counts, E, flow, important), final_from=_final_from(counts, E, flow, limit, selection),
        limit_error=error, margin=limit.margin,
        agreement=None if limit.direction is None else agree(flow, limit.direction),
        assumptions=check_assumptions(counts, step), claims=[], seconds=clock.seconds,
    )  # fmt: skip
    clock.start("done")
    clock.seconds["margin"] = limit.margin_seconds
    clock.seconds["faces"] -= limit.margin_seconds
    return replace(found, claims=check_claims(found))


def _any_important(counts: Counts, selection: Selection | None, important: NDArray[np.bool_]) -> float:
    """Share of the documents with important types that select at least one of them."""
    if selection is None:
        return math.nan
    document, n, matter = documents_of(counts), counts.n_documents, important[counts.matrix.indices]
    held = np.bincount(document, matter, n) > 0
    return float(np.mean(np.bincount(document, matter & selection.mask, n)[held] > 0)) if held.any() else math.nan


def _final_from(counts: Counts, E: Floats, flow: Flow, limit: Limit, selection: Selection | None) -> float:
    """Where the last document settles: on the curve, or at the last change that is predicted beyond it."""
    if selection is None:
        return math.nan
    return max([final_from(counts, E, flow, selection.mask), *(log_time for _, log_time, _ in limit.changes)])


def agree(flow: Flow, direction: Floats) -> Agreement:
    """Cosine, angle and the rate at which the angle falls with ‖p‖."""
    angle, norm = flow.angle(direction), flow.norm
    late = (norm >= norm[-1] / 30) & (angle > 1e-12)
    exponent, error = math.nan, math.nan
    if late.sum() >= 4:
        fit = stats.linregress(np.log(norm[late]), np.log(angle[late]))
        exponent, error = float(fit.slope), float(fit.stderr)
    return Agreement(float(flow.cosine(direction)[-1]), float(angle[-1]), exponent, error)


def _selected(counts: Counts, E: Floats, flow: Flow, limit: Limit) -> Selection | None:
    """The selection in the limit: the highest types of a finite one, the tied types of a diverging one; None while undecided."""
    if limit.fate is Fate.UNDECIDED:
        return None
    if limit.fate is Fate.POINT:
        return select(counts, E @ (flow.p if flow.limit is None else flow.limit))
    assert limit.face is not None
    return describe(counts, limit.face.mask, E @ flow.p)


def _agreed(flow: Flow, limit: Limit) -> Flow:
    """The curve with the verdict of the limit: a curve alone shows neither, however long it is."""
    if limit.fate is Fate.UNDECIDED:
        return (
            flow if flow.verdict is Verdict.UNDECIDED else replace(flow, verdict=Verdict.UNDECIDED, reason=limit.reason)
        )
    if limit.fate is Fate.POINT:
        return flow if flow.verdict is Verdict.FINITE else replace(flow, verdict=Verdict.FINITE, reason=limit.reason)
    if flow.verdict is Verdict.DIVERGES:
        return flow
    return replace(
        flow, verdict=Verdict.DIVERGES, reason=f"{limit.reason}; followed to {flow.reason.split(' at ')[-1]}"
    )


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
