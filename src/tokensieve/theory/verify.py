"""All claims of the theory on one data set: initialise → one step → gradient flow → limit → selection → claims."""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from tokensieve import __version__
from tokensieve.blocks import Report
from tokensieve.errors import InputError, check_memory
from tokensieve.evidence.importance import signed_frequency
from tokensieve.files import Content
from tokensieve.model.embeddings import initialise
from tokensieve.progress import Progress
from tokensieve.text.corpus import Corpus
from tokensieve.text.counts import Counts, Floats, Ints
from tokensieve.text.vocabulary import count_corpus
from tokensieve.theory.claims import Agreement, Assumption, Claim, check_assumptions, check_claims
from tokensieve.theory.flow.solve import Flow, Verdict, gradient_flow
from tokensieve.theory.generators import single_token
from tokensieve.theory.limit.certify import Fate, FlowLimit, find_limit
from tokensieve.theory.limit.margin import Margin
from tokensieve.theory.limit.selection import Attended, attended, one_sided, select, selected_fraction
from tokensieve.theory.one_step import OneStep, one_step
from tokensieve.theory.settings import VerifySettings

# After the default first step, a document read with equal attention has a logit of ± this, on average.
TYPICAL_LOGIT = 1.0
# Fraction of the time that the flow may take: a curve without its limit decides nothing.
FLOW_SHARE = 2 / 3


@dataclass(frozen=True, repr=False)
class Verification:
    """Everything that `verify` found, with the data that it was found on.

    Attributes:
        name: the source, for people.
        counts: the documents; of its two classes the second is y = +1.
        rows: row number of each document in its source, from 1, shape (n,).
        notes: what was unusual about the data as read.
        settings: as given, with the dimension and first step that were used.
        step: the first gradient step.
        embeddings: E¹, shape (|S|, d).
        limit: what becomes of p, with the flow.
        attended: what the limit selects; None where it is not decided.
        selected_fraction: at each point of the flow, the fraction of documents whose important types score above all others.
        agreement: the direction of p against the limit's; None where there is none.
        assumptions: which hypotheses hold.
        claims: each claim and what was found.
        seconds: wall time of each stage.
    """

    name: str
    counts: Counts
    rows: Ints
    notes: list[str]
    settings: VerifySettings
    step: OneStep
    embeddings: Floats
    limit: FlowLimit
    attended: Attended | None
    selected_fraction: Floats
    agreement: Agreement | None
    assumptions: list[Assumption]
    claims: list[Claim]
    seconds: dict[str, float]

    def __repr__(self) -> str:
        return f"Verification({'; '.join(f'{claim.name}: {claim.outcome.value}' for claim in self.claims)}; {self.limit!r})"

    @property
    def flow(self) -> Flow:
        """The curve."""
        return self.limit.flow

    @property
    def values(self) -> Floats:
        """w = E¹v, shape (|S|,)."""
        return np.asarray(self.embeddings @ self.step.start.v)

    @property
    def margin(self) -> Margin | None:
        """The max-margin solution of the selection; None where it does not apply."""
        return self.limit.margin

    def to_dict(self) -> dict[str, Any]:
        """All figures, and how they were made, ready for JSON."""
        from tokensieve.theory.tables import finite_gap_table

        found = self.attended
        agreement = asdict(self.agreement) if self.agreement else {}
        shares: dict[str, float | None] = {
            "important_selected": None if found is None else found.all_share,
            "important_documents": 0 if found is None else found.important_documents,
            "limit_error": None if found is None else found.limit_error,
        }
        for name in ("cosine", "angle", "exponent", "standard_error"):
            shares[name] = agreement.get(name)
        nothing = dict.fromkeys(("duality_gap", "kkt_residual", "smallest_margin")) | {"support_pairs": 0}
        limit = self.limit.to_dict() | {"finite_gaps": finite_gap_table(self).head(50).to_dicts()}
        limit["one_sided_selected"] = None if found is None else _finite(found.one_sided_share)
        assumptions = [item.to_dict() for item in self.assumptions]
        for item in assumptions:
            item["rows"] = self.rows_of(item.pop("documents"))
        counts, final = self.counts, math.nan if found is None else found.final_from
        return {
            "one_step": self.step.to_dict(),
            "flow": self.flow.to_dict() | {name: _finite(value) for name, value in shares.items()},
            "selection": found and found.selection.to_dict() | {"final_from_log_time": _finite(final)},
            "margin": self.margin.to_dict() if self.margin else {"status": "not applicable"} | nothing,
            "assumptions": assumptions,
            "claims": [claim.to_dict() for claim in self.claims],
            "limit": limit,
            "seconds": self.seconds,
            "source": self.name,
            "documents": counts.n_documents,
            "token_types": counts.n_types,
            "classes": dict(zip(counts.classes, counts.class_sizes.tolist(), strict=True)),
            "notes": self.notes,
            "settings": self.settings_used(),
            "seed": self.settings.seed,
            "version": __version__,
        }

    def rows_of(self, documents: Any) -> list[int]:
        """Row numbers in the source of documents given by index."""
        return [int(self.rows[k]) for k in documents]

    def settings_used(self) -> dict[str, Any]:
        """Name → value of every option that decides the result."""
        names = ["ngrams", "min_documents", "documents", "types", "relevant", "length", "d", "eta", "max_norm"]
        names += ["tolerance", "max_steps", "max_seconds", "max_log_time"]
        return {name: x for name in names if (x := getattr(self.settings, name)) is not None and math.isfinite(x)}

    def report(self) -> Report:
        """The verdicts, hypotheses, pictures and certificates."""
        from tokensieve.theory.report import report_of

        return report_of(self)

    own_files = (
        r"(tokens|flow|support|gaps)\.csv|certificate\.(json|npz)|verdicts\.tex|"
        r"pictures/(alignment|norm|loss|angle|gaps|score-[a-z]+|selected)\.(svg|png|pdf|csv)"
    )

    def files(self) -> dict[str, Content]:
        """summary.json, the certificate and the tables."""
        from tokensieve.theory.tables import files_of

        return files_of(self)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def default_step_size(counts: Counts) -> float:
    """η₀ such that mean_X |Σ_s (c_{X,s}/T_X) (η₀/2) α_s| = 1: documents read with equal attention have logits of ±1.

    Much below, a sign may give up its documents and select in the other's only; much above, the curve takes longer to settle.

    Raises:
        InputError: every α_s is zero, so no first step carries a signal.
    """
    alpha = signed_frequency(counts)
    typical = float(np.mean(np.abs(counts.matrix @ alpha / np.maximum(counts.lengths, 1.0)))) if alpha.size else 0.0
    if typical < 1e-15:
        raise InputError(
            "every token type is equally frequent in both classes, so there is no signal to verify; choose the first step yourself"
            " (--eta)"
        )
    return 2 * TYPICAL_LOGIT / typical


def verify(
    source: Counts | Corpus | None = None,
    settings: VerifySettings | None = None,
    important: NDArray[np.bool_] | None = None,
    progress: Progress | None = None,
) -> Verification:
    """Check every claim on a data set.

    Args:
        source: documents of two classes; generated documents that satisfy Assumption 1 if None.
        settings: see `VerifySettings`.
        important: the types that a document's selection is judged by, shape (|S|,); completely positive and negative ones if None.
        progress: called with (stage, share done).

    Raises:
        InputError: not two classes, or see the functions that it calls.
    """
    settings, clock = settings or VerifySettings(), _Clock(progress)
    d = settings.d or (1024 if source is None else 512)
    clock.start("counting")
    name, counts, rows, notes = _data(source, settings, progress)
    check_memory(4 * 8 * counts.n_types * d, f"--d {d:,} with {counts.n_types:,} token types")
    clock.start("one step")
    eta = default_step_size(counts) if settings.eta is None else settings.eta
    settings = replace(settings, d=d, eta=eta)
    step = one_step(counts, *initialise(counts.n_types, d, seed=settings.seed), eta)
    E = step.embeddings()
    w = E @ step.start.v
    clock.start("flow")
    begun = time.monotonic()
    followed = replace(settings, max_seconds=FLOW_SHARE * settings.max_seconds)
    flow = gradient_flow(counts, E, w, step.start.p, followed, settings.resume, progress)
    clock.start("faces")
    limit = find_limit(counts, E, w, flow, begun + settings.max_seconds - time.monotonic(), progress)
    limit = replace(limit, flow=_agreed(limit))
    clock.start("selection")
    important = one_sided(counts) != 0 if important is None else important
    mask = _selected(counts, E, limit)
    found = None if mask is None else attended(counts, E, w, limit.flow, mask, important)
    if found is not None:
        # Where the last document settles: on the curve, or at the last change that is predicted beyond it.
        final = max([found.final_from, *(log_time for _, log_time, _ in limit.changes)])
        found = replace(found, final_from=final)
    clock.start("assumptions")
    agreement = None if limit.direction is None else agree(limit.flow, limit.direction)
    assumptions = check_assumptions(counts, step)
    fractions = selected_fraction(counts, E, limit.flow, important)
    claims = check_claims(step, limit, found, agreement, assumptions)
    clock.start("done")
    seconds = clock.seconds | {"margin": limit.seconds["margin"]}
    seconds["faces"] -= seconds["margin"]
    return Verification(
        name, counts, rows, notes, settings, step, E, limit, found, fractions, agreement, assumptions, claims, seconds
    )


def _data(
    source: Counts | Corpus | None, settings: VerifySettings, progress: Progress | None
) -> tuple[str, Counts, Ints, list[str]]:
    """Name, counts, rows and notes of the documents."""
    if source is None:
        n, types = settings.documents, settings.types
        tokens = n * settings.length
        check_memory(60 * tokens + 200 * types, f"{tokens:,} tokens of {types:,} types")
        counts = single_token(n, types, settings.length, settings.relevant, seed=settings.seed).counts
        return "generated documents that satisfy Assumption 1", counts, np.arange(1, n + 1), []
    if isinstance(source, Counts):
        return "documents", source, np.arange(1, source.n_documents + 1), []
    if len(source.classes) != 2:
        raise InputError(
            f"the theory is about two classes, and {source.name} has {len(source.classes)}: "
            "merge them with --group NEW=OLD,OLD or leave some out with --drop"
        )
    counted = count_corpus(
        source,
        ngrams=settings.ngrams,
        min_documents=settings.min_documents,
        progress=None if progress is None else lambda done: progress("tokenizing", done / len(source.texts)),
    )
    return source.name, counted.counts, np.asarray(source.rows), source.intake.lines()


def agree(flow: Flow, direction: Floats) -> Agreement:
    """Cosine, angle and the rate at which the angle falls with ‖p‖."""
    angle, norm = flow.angle(direction), flow.norm
    late = (norm >= norm[-1] / 30) & (angle > 1e-12)
    exponent, error = math.nan, math.nan
    if late.sum() >= 4:
        fit = stats.linregress(np.log(norm[late]), np.log(angle[late]))
        exponent, error = float(fit.slope), float(fit.stderr)
    return Agreement(float(flow.cosine(direction)[-1]), float(angle[-1]), exponent, error)


def _selected(counts: Counts, E: Floats, limit: FlowLimit) -> NDArray[np.bool_] | None:
    """The selection in the limit: the highest types of a finite one, the tied types of a diverging one; None while undecided."""
    if limit.fate is Fate.UNDECIDED:
        return None
    if limit.fate is Fate.POINT:
        return select(counts, E @ (limit.flow.p if limit.flow.limit is None else limit.flow.limit)).mask
    assert limit.face is not None
    return limit.face.mask


def _agreed(limit: FlowLimit) -> Flow:
    """The curve with the verdict of the limit: a curve alone shows neither, however long it is."""
    flow = limit.flow
    verdict = {Fate.UNDECIDED: Verdict.UNDECIDED, Fate.POINT: Verdict.FINITE}.get(limit.fate, Verdict.DIVERGES)
    if flow.verdict is verdict:
        return flow
    reason = limit.reason
    if verdict is Verdict.DIVERGES:
        reason += f"; followed to {flow.reason.split(' at ')[-1]}"
    return replace(flow, verdict=verdict, reason=reason)


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
