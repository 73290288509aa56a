"""Check all claims of the theory on one data set: initialise → one step → gradient flow → limit →
selection → claims."""

from __future__ import annotations

import contextlib
import io
import math
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tokensieve import __version__
from tokensieve.arrays import Floats, Ints
from tokensieve.errors import InputError
from tokensieve.files import Content, csv_table, json_text
from tokensieve.progress import Progress
from tokensieve.read.corpus import Corpus
from tokensieve.read.reader import read_corpus
from tokensieve.read.settings import SourceSettings
from tokensieve.read.sources import Source
from tokensieve.report.blocks import Report
from tokensieve.text.counts import Counts
from tokensieve.text.vocabulary import count_corpus
from tokensieve.theory.claims import Attended, Claim
from tokensieve.theory.embeddings import initialise
from tokensieve.theory.flow.solve import (
    FINITE,
    UNDECIDED,
    Agreement,
    Flow,
    gradient_flow,
)
from tokensieve.theory.generators import GENERATED, single_token
from tokensieve.theory.limit.certify import FlowLimit
from tokensieve.theory.limit.margin import Margin
from tokensieve.theory.limit.proof import prove
from tokensieve.theory.one_step import OneStep, one_step
from tokensieve.theory.settings import VerifySettings

# Dimension of the embeddings where none is given.
TEXT_DIMENSION = 512
GENERATED_DIMENSION = 1024
# The flow may take this share of the time; the rest certifies its limit.
FLOW_SHARE = 2 / 3
# What the arrays of certificate.npz are.
MEANING = {
    "indptr": "compressed rows, one a document: X has the entries indptr[X] to indptr[X + 1]",
    "indices": "the token type of each entry",
    "counts": "how often the document contains it",
    "labels": "y, ±1",
    "E": "embeddings after one step",
    "w": "their products with v",
    "selected": "for each entry, whether the type is in S_X",
    "basis": "rows that span V, in which the Hessian of L_S at z* is nearly the identity",
    "z": "z*, the strict minimum of L_S on V = span{E_s − E_s' : s, s' ∈ S_X}",
    "p_hat": "p̂: p grows like p̂ log t, with margins of at least one over every type left out",
    "rho": "ρ*, the strict minimum of Ψ on the span of the tight pairs",
    "tight": "token types (s, r) of independent tight pairs",
    "point": "p₀, the point from which on the limit is proved",
    "log_time": "τ₀, log t there on the clock of the proof",
    "radius": "r: p stays within r of the line",
    "tube": "a: the tied gaps stay within a of z*",
}


# What summary.json says of the margin where p does not diverge.
NO_MARGIN = {
    "status": "not applicable",
    "duality_gap": None,
    "kkt_residual": None,
    "smallest_margin": None,
    "support_pairs": 0,
}
# Options that affect the result.
DECISIVE_SETTINGS = (
    "ngrams min_documents documents types relevant length d eta max_norm tolerance max_steps "
    "max_seconds max_log_time"
).split()
# So many finite gaps stand in summary.json, and so many of each kind in gaps.csv.
LISTED_GAPS = 50
DRAWN_GAPS = 6
# gaps.csv ends at this multiple of the log t from which the prediction begins.
DRAWN_UNTIL = 3.0
GAP_COLUMNS = {
    "pair": pl.String,
    "kind": pl.String,
    "source": pl.String,
    "log_time": pl.Float64,
    "gap": pl.Float64,
}


# Names of the paper: twice the class of a type of one class only, else the sign of α.
CATEGORIES = {
    -2: "completely negative",
    -1: "negative",
    0: "irrelevant",
    1: "positive",
    2: "completely positive",
}
ROUNDING = 1e-12  # α below this fraction of the largest one is zero


@dataclass(frozen=True, repr=False)
class Verification:
    """The results of `verify`, with the data they were computed from.

    Attributes:
        name, notes: the source, for display, and anything unusual noticed while reading the data.
        counts, rows: the documents (the second class is y = +1), and the row number of each, from
            1, shape (n,).
        settings: as given, with the dimension and first step that were used.
        step, embeddings: the first gradient step, and E¹, shape (|S|, d).
        limit: what becomes of p, with the flow.
        attended: what the limit selects; None where it is not decided.
        assumptions, claims: each hypothesis and each claim, and what was found.
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
    assumptions: list[Claim]
    claims: list[Claim]
    seconds: dict[str, float]

    def __repr__(self) -> str:
        claims = "; ".join(f"{claim.name}: {claim.outcome}" for claim in self.claims)
        return f"Verification({claims}; {self.limit!r})"

    @property
    def flow(self) -> Flow:
        return self.limit.flow

    @property
    def agreement(self) -> Agreement | None:
        """`Flow.agreement` of p with the limit's direction; None if there is no such direction."""
        direction = self.limit.direction
        return None if direction is None else self.flow.agreement(direction)

    @property
    def values(self) -> Floats:
        """w = E¹v, shape (|S|,)."""
        return np.asarray(self.embeddings @ self.step.start.v)

    @property
    def margin(self) -> Margin | None:
        """The max-margin solution of the selection; None where it does not apply."""
        return self.limit.margin

    def finite_gaps(self) -> pl.DataFrame:
        """The finite score gaps: token, below (the one below it), gap in nats, documents that
        select both; most documents first."""
        schema = {"token": pl.String, "below": pl.String, "gap": pl.Float64, "documents": pl.Int64}
        if self.limit.fate == "converges to a point":
            return pl.DataFrame(schema=schema)
        names = self.counts.tokens
        rows = [
            (str(names[gap.above]), str(names[gap.below]), gap.gap, gap.documents)
            for gap in self.limit.finite_gaps(self.counts, self._embeddings_of_flow())
        ]
        return pl.DataFrame(rows, schema=schema, orient="row")

    def to_dict(self) -> dict[str, object]:
        """All figures, and the settings that produced them, ready for JSON."""
        counts = self.counts
        attended = self.attended
        limit = self.limit.to_dict()
        limit["finite_gaps"] = self.finite_gaps().head(LISTED_GAPS).to_dicts()
        limit["one_sided_selected"] = attended and _finite(attended.one_sided_share)
        return {
            "one_step": self.step.to_dict(),
            "flow": self.flow.to_dict() | self._figures_of_attention(),
            "selection": attended
            and {
                "documents_with_ties": attended.ties,
                "final_from_log_time": _finite(attended.final_from),
            },
            "margin": NO_MARGIN if self.margin is None else self.margin.to_dict(),
            "assumptions": [
                {
                    "name": item.name,
                    "holds": item.holds,
                    "detail": item.verdict,
                    "types": list(item.types),
                    "rows": self.rows[list(item.documents)].tolist(),
                }
                for item in self.assumptions
            ],
            "claims": [
                {
                    "name": claim.name,
                    "holds": claim.holds,
                    "outcome": claim.outcome,
                    "verdict": claim.verdict,
                }
                for claim in self.claims
            ],
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

    def _figures_of_attention(self) -> dict[str, object]:
        """What the limit selects, and how near p is to its direction; None where undecided."""
        attended = self.attended
        agreement = self.agreement
        return {
            "important_selected": attended and _finite(attended.all_share),
            "important_documents": attended.important_documents if attended else 0,
            "limit_error": attended and _finite(attended.limit_error),
            "cosine": agreement and _finite(math.cos(agreement.angle)),
            "angle": agreement and _finite(agreement.angle),
            "exponent": agreement and _finite(agreement.exponent),
            "standard_error": agreement and _finite(agreement.standard_error),
        }

    def settings_used(self) -> dict[str, object]:
        """Name → value of every option that affects the result."""
        values = {name: getattr(self.settings, name) for name in DECISIVE_SETTINGS}
        return {
            name: value
            for name, value in values.items()
            if value is not None and math.isfinite(value)
        }

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
        files: dict[str, Content] = {
            "summary.json": json_text(self.to_dict()),
            "tokens.csv": csv_table(self.token_table()),
            "flow.csv": csv_table(self.flow_table()),
            "support.csv": csv_table(self._support_table()),
            "gaps.csv": csv_table(self.gap_curves()),
        }
        return files | self._certificate()

    def _support_table(self) -> pl.DataFrame:
        """The pairs of the max-margin problem that carry a multiplier, the largest first.

        Where the problem is infeasible the multipliers are the proof of that (they sum to one).
        """
        pairs = np.zeros((0, 2), np.int64)
        multipliers = np.zeros(0)
        if self.margin is not None:
            pairs = self.margin.pairs
            multipliers = self.margin.multipliers
        names = self.counts.tokens.astype(str)
        columns = {
            "selected": pl.Series(names[pairs[:, 0]].tolist(), dtype=pl.String),
            "other": pl.Series(names[pairs[:, 1]].tolist(), dtype=pl.String),
            "multiplier": pl.Series(multipliers, dtype=pl.Float64),
        }
        return pl.DataFrame(columns).sort("multiplier", descending=True, maintain_order=True)

    def token_table(self) -> pl.DataFrame:
        """One row per token type: alignment is (E¹_s − E⁰_s)ᵀv, scores are E¹_sᵀp before and after,
        the value is E¹_sᵀv, and selected_in counts documents that select it (missing where the
        selection is not decided)."""
        counts = self.counts
        selected_in = pl.Series([None] * counts.n_types, dtype=pl.Int64)
        if self.attended is not None:
            selected_types = counts.matrix.indices[self.attended.mask]
            n_documents = np.bincount(selected_types, minlength=counts.n_types)
            selected_in = pl.Series(n_documents, dtype=pl.Int64)
        columns = {
            "token": pl.Series([str(token) for token in counts.tokens], dtype=pl.String),
            "documents": np.bincount(counts.matrix.indices, minlength=counts.n_types),
            "alpha": self.step.alpha,
            "category": categories(counts, self.step.alpha),
            "alignment": self.step.alignment,
            "score_before": self.embeddings @ self.flow.at(0),
            "score_after": self.embeddings @ self.flow.p,
            "value": self.values,
            "selected_in": selected_in,
        }
        return pl.DataFrame(columns)

    def flow_table(self) -> pl.DataFrame:
        """One row per step of the flow; cosine and angle to p̂ are missing where there is none, log
        t is missing at the start."""
        flow = self.flow
        direction = self.limit.direction
        angle = np.full(len(flow.arc), math.nan) if direction is None else flow.angle(direction)
        columns = {
            "length": flow.arc,
            "log_time": flow.log_time,
            "norm": flow.norm,
            "loss": flow.loss,
            "log_gradient": flow.log_gradient,
            "cosine": np.cos(angle),
            "angle": angle,
        }
        finite = pl.col(pl.Float64)
        return pl.DataFrame(columns).with_columns(pl.when(finite.is_finite()).then(finite))

    def gap_curves(self) -> pl.DataFrame:
        """Six score gaps of each kind against log t, as the flow and as the prediction have them;
        no rows without a prediction."""
        prediction = self.limit.prediction
        if prediction is None or not prediction.phases or self.limit.margin is None:
            return pl.DataFrame(schema=GAP_COLUMNS)
        E = self._embeddings_of_flow()
        until = DRAWN_UNTIL * float(prediction.log_time[0])
        parts = [pl.DataFrame(schema=GAP_COLUMNS)]
        for pair in self._drawn_pairs(self.limit.margin, E):
            name = f"{self.counts.tokens[pair.above]} − {self.counts.tokens[pair.below]}"
            labels = {"pair": name, "kind": pair.kind}
            apart = E[pair.above] - E[pair.below]
            followed = gap_curve(self.flow.log_time, self.flow.coordinates @ apart, until)
            predicted = gap_curve(prediction.log_time, prediction.points @ apart, until)
            parts.append(with_labels(followed, {**labels, "source": "flow"}))
            parts.append(with_labels(predicted, {**labels, "source": "prediction"}))
        return pl.concat(parts)

    def _drawn_pairs(self, margin: Margin, E: Floats) -> list[Pair]:
        """The finite gaps of most documents, and the tight pairs with the largest multipliers."""
        finite = self.limit.finite_gaps(self.counts, E, DRAWN_GAPS)
        pairs = [Pair("finite", gap.above, gap.below) for gap in finite]
        strongest = np.argsort(-margin.multipliers, kind="stable")[:DRAWN_GAPS]
        return pairs + [Pair("tight", s, r) for s, r in margin.pairs[strongest].tolist()]

    def _embeddings_of_flow(self) -> Floats:
        """E¹ in the coordinates of the flow, shape (|S|, r)."""
        if self.flow.basis is None:
            return self.embeddings
        return np.asarray(self.embeddings @ self.flow.basis)

    def _certificate(self) -> dict[str, Content]:
        """certificate.npz (arrays) and certificate.json (what they mean); nothing where no limit is
        certified."""
        limit = self.limit
        face = self.limit.face
        if limit.fate == "not settled" or face is None or not limit.certificate:
            return {}
        arrays = limit.certificate
        meaning = {name: MEANING[name] for name in arrays}
        archive = io.BytesIO()
        np.savez_compressed(archive, allow_pickle=False, **arrays)
        about: dict[str, object] = {
            "verdict": limit.fate,
            "grade": limit.grade,
            "proof": {"missing": limit.unproved} | limit.proof,
            "reason": limit.reason,
            "is_max_margin": limit.is_max_margin,
            "dimension_v": face.dimension,
            "arrays": meaning,
        }
        explanation = json_text(about)
        return {"certificate.json": explanation, "certificate.npz": archive.getvalue()}


def categories(counts: Counts, alpha: Floats) -> list[str]:
    """The paper's category of each type.

    Types of one class only are "completely" positive or negative; the others go by the sign of α,
    and are irrelevant where it is rounding.
    """
    rounding = ROUNDING * float(np.abs(alpha).max(initial=0.0))
    sign = np.where(np.abs(alpha) <= rounding, 0, np.sign(alpha))
    level = np.where(counts.one_sided != 0, 2 * counts.one_sided, sign).astype(np.int64)
    return [CATEGORIES[k] for k in level.tolist()]


@dataclass(frozen=True)
class Pair:
    """Two token types whose score gap is drawn: a finite gap, or a tight pair."""

    kind: str
    above: int
    below: int


def gap_curve(times: Floats, gaps: Floats, until: float) -> pl.DataFrame:
    """The points of a curve up to a log t, with columns log_time and gap.

    Args:
        times: log t of each point, −∞ at the start, shape (m,).
        gaps: a difference of scores at each point, shape (m,).
        until: the last log t that is shown.
    """
    is_shown = np.isfinite(times) & (times <= until)
    return pl.DataFrame({"log_time": times[is_shown], "gap": gaps[is_shown]})


def with_labels(rows: pl.DataFrame, labels: Mapping[str, str]) -> pl.DataFrame:
    """The rows in the columns of gaps.csv, with pair, kind and source the same in all."""
    return rows.with_columns(**{name: pl.lit(label) for name, label in labels.items()}).select(
        list(GAP_COLUMNS)
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def verify(
    source: Counts | Corpus | Source | None = None,
    settings: VerifySettings | None = None,
    important: NDArray[np.bool_] | None = None,
    progress: Progress | None = None,
) -> Verification:
    """Check every claim on a data set.

    Args:
        source: documents of two classes, or what `read_corpus` reads; generated documents that
            satisfy Assumption 1 if None.
        settings: see `VerifySettings`.
        important: the types that a document should select, shape (|S|,); completely positive and
            negative ones if None.
        progress: called with (stage, share done).

    Raises:
        InputError: not two classes, or see the functions that it calls.
    """
    settings = settings or VerifySettings()
    if source is not None and not isinstance(source, Counts | Corpus):
        options = {field.name: getattr(settings, field.name) for field in fields(SourceSettings)}
        source = read_corpus(source, **options)
    stages = Stages(progress)
    with stages.run("counting", one_thread=False):
        data = _data(source, settings, progress)
        settings = _completed(settings, data.counts, source is None)
    counts = data.counts
    with stages.run("one step"):
        step = _first_step(counts, settings)
        E = step.embeddings()
    limit = _limit(counts, E, step, settings, stages)
    with stages.run("selection"):
        important = counts.one_sided != 0 if important is None else important
        attended = _attended(counts, E, E @ step.start.v, limit, important)
    with stages.run("assumptions"):
        assumptions = Claim.hypotheses(counts, step)
    if progress is not None:
        progress("done", 0.0)
    stages.seconds["margin"] = limit.seconds["margin"]
    stages.seconds["faces"] -= limit.seconds["margin"]
    return Verification(
        name=data.name,
        counts=counts,
        rows=data.rows,
        notes=data.notes,
        settings=settings,
        step=step,
        embeddings=E,
        limit=limit,
        attended=attended,
        assumptions=assumptions,
        claims=Claim.of_theory(step, limit, attended, assumptions),
        seconds=stages.seconds,
    )


def _first_step(counts: Counts, settings: VerifySettings) -> OneStep:
    assert settings.d is not None
    assert settings.eta is not None
    start = initialise(counts.n_types, settings.d, seed=settings.seed)
    return one_step(counts, *start, settings.eta)


def _completed(settings: VerifySettings, counts: Counts, is_generated: bool) -> VerifySettings:
    """The settings with the dimension and the first step that are used."""
    d = settings.d or (GENERATED_DIMENSION if is_generated else TEXT_DIMENSION)
    _check_memory(4 * 8 * counts.n_types * d, f"--d {d:,} with {counts.n_types:,} token types")
    eta = OneStep.default_size(counts) if settings.eta is None else settings.eta
    return replace(settings, d=d, eta=eta)


class Stages:
    """Reports each stage as it begins, and keeps the wall time that it took."""

    def __init__(self, progress: Progress | None) -> None:
        self.progress = progress
        self.seconds: dict[str, float] = {}

    @contextlib.contextmanager
    def run(self, name: str, one_thread: bool = True) -> Iterator[None]:
        if self.progress is not None:
            self.progress(name, 0.0)
        begun = time.monotonic()
        with Flow.one_thread() if one_thread else contextlib.nullcontext():
            yield
        self.seconds[name] = time.monotonic() - begun


def _limit(
    counts: Counts, E: Floats, step: OneStep, settings: VerifySettings, stages: Stages
) -> FlowLimit:
    """What becomes of p, followed, certified and proved as far as the time allows."""
    ends = time.monotonic() + settings.max_seconds
    with stages.run("flow"):
        w = E @ step.start.v  # in one thread, so that its sums keep their order
        # A curve without its limit decides nothing: the flow may take two thirds of the time.
        followed = replace(settings, max_seconds=FLOW_SHARE * settings.max_seconds)
        flow = gradient_flow(counts, E, w, step.start.p, followed, settings.resume, stages.progress)
    with stages.run("faces"):
        limit = FlowLimit.find(counts, E, w, flow, ends - time.monotonic(), stages.progress)
        if limit.fate != "not settled":
            limit = prove(limit, counts, E, w, ends - time.monotonic())
    return _with_verdict(limit)


def _with_verdict(limit: FlowLimit) -> FlowLimit:
    """The verdict of the curve: it alone shows neither divergence nor convergence, however long it
    is."""
    flow = limit.flow
    verdict = "diverges"
    reason = limit.reason
    if limit.fate == "not settled":
        verdict = UNDECIDED
    elif limit.fate == "converges to a point":
        verdict = FINITE
    else:
        reason = f"{reason}; followed to {flow.reason.split(' at ')[-1]}"
    if verdict == flow.verdict:
        return limit
    return replace(limit, flow=replace(flow, verdict=verdict, reason=reason))


def _attended(
    counts: Counts, E: Floats, w: Floats, limit: FlowLimit, important: NDArray[np.bool_]
) -> Attended | None:
    """What the limit selects: the highest types of a finite one, the tied types of a diverging
    one."""
    if limit.fate == "not settled":
        return None
    if limit.face is not None and limit.fate != "converges to a point":
        mask = limit.face.mask
    else:
        end = limit.flow.p if limit.flow.limit is None else limit.flow.limit
        mask = counts.top_mask(E @ end)
    attended = Attended.of(counts, E, w, limit.flow, mask, important)
    # Where the last document settles: on the curve, or at the last change predicted beyond it.
    final = max([attended.final_from, *(change.log_time for change in limit.changes)])
    return replace(attended, final_from=final)


@dataclass(frozen=True)
class Data:
    """Name, counts, row numbers and notes of the documents."""

    name: str
    counts: Counts
    rows: Ints
    notes: list[str]


def _data(
    source: Counts | Corpus | None, settings: VerifySettings, progress: Progress | None
) -> Data:
    """The documents to verify on: given counts, a corpus to be counted, or generated ones."""
    if source is None:
        n = settings.documents
        types = settings.types
        tokens = n * settings.length
        _check_memory(60 * tokens + 200 * types, f"{tokens:,} tokens of {types:,} types")
        counts = single_token(n, types, settings.length, settings.relevant, seed=settings.seed)[0]
        return Data(GENERATED, counts, np.arange(1, n + 1), [])
    if isinstance(source, Counts):
        return Data("documents", source, np.arange(1, source.n_documents + 1), [])
    if len(source.classes) != 2:
        raise InputError(
            f"the theory is about two classes, and {source.name} has {len(source.classes)}: "
            "merge them with --group NEW=OLD,OLD or leave some out with --drop"
        )
    n_texts = len(source.texts)

    def tokenizing(done: int) -> None:
        if progress is not None:
            progress("tokenizing", done / n_texts)

    counted = count_corpus(
        source,
        ngrams=settings.ngrams,
        min_documents=settings.min_documents,
        progress=None if progress is None else tokenizing,
    )
    return Data(source.name, counted.counts, np.asarray(source.rows), source.reading.lines())


def _check_memory(needed: float, what: str) -> None:
    """Refuse, before anything is allocated, what cannot fit into this machine: bytes, roughly, and
    the options that decide it."""
    if not hasattr(os, "sysconf"):  # not on Windows
        return
    present = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > present:
        raise InputError(
            f"{what} would need about {needed / 1e9:,.0f} GB of memory, but this machine has "
            f"{present / 1e9:,.0f} GB; use less"
        )
