"""The files of a verification: summary.json, its certificate, and its tables."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from tokensieve.files import Content, csv_table
from tokensieve.text.counts import Counts, Floats, Ints
from tokensieve.theory.limit.certify import Fate, FlowLimit, finite_gaps
from tokensieve.theory.limit.selection import one_sided

if TYPE_CHECKING:
    from tokensieve.theory.verify import Verification

# |α| below this share of the largest is rounding.
ROUNDING = 1e-12
# Gaps of each kind in the picture.
DRAWN_GAPS = 6
# What a type is by its α, from the positive end.
KINDS = ("completely positive", "positive", "irrelevant", "negative", "completely negative")


def files_of(found: Verification) -> dict[str, Content]:
    """Every file but page and pictures."""
    tables = {
        "tokens.csv": token_table(found),
        "flow.csv": flow_table(found),
        "support.csv": _support_table(found),
        "gaps.csv": gap_curves(found),
    }
    summary = json.dumps(found.to_dict(), ensure_ascii=False, indent=1, allow_nan=False)
    files: dict[str, Content] = {"summary.json": summary}
    files |= {name: csv_table(table) for name, table in tables.items()}
    return files | _certificate(found.counts, found.embeddings, found.values, found.limit)


def token_table(found: Verification) -> pl.DataFrame:
    """One row per token type.

    Columns: token; documents that hold it; alpha, α_s; category; alignment, (E¹_s − E⁰_s)ᵀv; score_before and
    score_after, E¹_sᵀp at the start and the end of the flow; value, E¹_sᵀv; selected_in, documents that select it
    (missing where the selection is not decided).
    """
    counts, alpha = found.counts, found.step.alpha
    chosen = None
    if found.attended is not None:
        mask = found.attended.selection.mask
        chosen = np.bincount(counts.matrix.indices[mask], minlength=counts.n_types)
    return pl.DataFrame(
        {
            "token": pl.Series([str(token) for token in counts.tokens], dtype=pl.String),
            "documents": np.bincount(counts.matrix.indices, minlength=counts.n_types),
            "alpha": alpha,
            "category": _categories(one_sided(counts), alpha),
            "alignment": found.step.alignment,
            "score_before": found.embeddings @ found.flow.at(0),
            "score_after": found.embeddings @ found.flow.p,
            "value": found.values,
            "selected_in": pl.Series([None] * counts.n_types if chosen is None else chosen, dtype=pl.Int64),
        }
    )


def flow_table(found: Verification) -> pl.DataFrame:
    """One row per step of the flow: length s, log_time, norm ‖p‖, loss, log_gradient, selected_fraction (documents
    whose important types score above all others), cosine and angle to the limit direction p̂ (missing where there is
    none); log t is missing at the start, where it is −∞."""
    flow, direction = found.flow, found.limit.direction
    columns: dict[str, Any] = {
        "length": flow.track.arc,
        "log_time": flow.log_time,
        "norm": flow.norm,
        "loss": flow.track.loss,
        "log_gradient": flow.track.log_gradient,
        "selected_fraction": found.selected_fraction,
    }
    for name in ("cosine", "angle"):
        values = [None] * len(flow.log_time) if direction is None else getattr(flow, name)(direction)
        columns[name] = pl.Series(values, dtype=pl.Float64)
    finite = pl.col(pl.Float64)
    return pl.DataFrame(columns).with_columns(pl.when(finite.is_finite()).then(finite))


def finite_gap_table(found: Verification) -> pl.DataFrame:
    """The finite score gaps: token, below (the one below it), gap in nats, documents that select both; most documents first."""
    limit, names = found.limit, [str(token) for token in found.counts.tokens]
    gaps = [] if limit.fate is Fate.POINT else finite_gaps(found.counts, _coordinates(found), limit)
    columns = {
        "token": pl.Series([names[s] for s, *_ in gaps], dtype=pl.String),
        "below": pl.Series([names[r] for _, r, *_ in gaps], dtype=pl.String),
        "gap": pl.Series([gap for *_, gap, _ in gaps], dtype=pl.Float64),
        "documents": pl.Series([documents for *_, documents in gaps], dtype=pl.Int64),
    }
    return pl.DataFrame(columns)


def gap_curves(found: Verification) -> pl.DataFrame:
    """Score gaps against log_time, as the flow and as the prediction have them: pair, kind ("finite" or "tight"), source
    ("flow" or "prediction"), log_time, gap. No rows without a prediction."""
    limit, flow, names = found.limit, found.flow, [str(token) for token in found.counts.tokens]
    schema = {"pair": pl.String, "kind": pl.String, "source": pl.String, "log_time": pl.Float64, "gap": pl.Float64}
    prediction = limit.prediction
    if prediction is None or not prediction.phases or limit.margin is None:
        return pl.DataFrame(schema=schema)
    E = _coordinates(found)
    pairs = [(s, r, "finite") for s, r, *_ in finite_gaps(found.counts, E, limit, DRAWN_GAPS)]
    order = np.argsort(-limit.margin.multipliers, kind="stable")[:DRAWN_GAPS]
    pairs += [(int(s), int(r), "tight") for s, r in limit.margin.pairs[order]]
    until = 3 * float(prediction.log_time[0])
    shown = np.isfinite(flow.log_time) & (flow.log_time <= until)
    later = prediction.log_time <= until
    sources = {
        "flow": (flow.log_time[shown], flow.coordinates[shown]),
        "prediction": (prediction.log_time[later], prediction.points[later]),
    }
    parts = []
    for s, r, kind in pairs:
        for source, (times, points) in sources.items():
            labels = {"pair": f"{names[s]} − {names[r]}", "kind": kind, "source": source}
            table = pl.DataFrame({"log_time": times, "gap": points @ (E[s] - E[r])})
            parts.append(table.select(*(pl.lit(x).alias(name) for name, x in labels.items()), "log_time", "gap"))
    return pl.concat(parts) if parts else pl.DataFrame(schema=schema)


def _support_table(found: Verification) -> pl.DataFrame:
    """Pairs (selected, other) of token names with their multipliers, largest first; no rows without a margin problem.

    Where the problem is infeasible the multipliers are the proof of that (they sum to one).
    """
    margin, names = found.margin, [str(token) for token in found.counts.tokens]
    pairs = np.zeros((0, 2), np.int64) if margin is None else margin.pairs
    columns = {
        "selected": pl.Series([names[s] for s in pairs[:, 0]], dtype=pl.String),
        "other": pl.Series([names[r] for r in pairs[:, 1]], dtype=pl.String),
        "multiplier": pl.Series([] if margin is None else margin.multipliers, dtype=pl.Float64),
    }
    return pl.DataFrame(columns).sort("multiplier", descending=True, maintain_order=True)


def _coordinates(found: Verification) -> Floats:
    basis = found.flow.basis
    return found.embeddings if basis is None else np.asarray(found.embeddings @ basis)


def _categories(sides: Ints, alpha: Floats) -> list[str]:
    """The paper's categories: one-sided types are "completely" theirs, the others go by the sign of α."""
    floor = ROUNDING * float(np.abs(alpha).max(initial=0.0))
    sign = np.where(np.abs(alpha) <= floor, 0, np.sign(alpha)).astype(np.int64)
    return [KINDS[2 - step] for step in np.where(sides != 0, 2 * sides, sign).tolist()]


def _certificate(counts: Counts, E: Floats, w: Floats, limit: FlowLimit) -> dict[str, Content]:
    """certificate.npz (arrays) and certificate.json (what they mean); nothing where no limit is certified.

    Args:
        counts: n documents over |S| types.
        E: embeddings, shape (|S|, d).
        w: values, shape (|S|,).
        limit: the limit.
    """
    face, finite, balance = limit.face, limit.finite, limit.balance
    if limit.fate is Fate.UNDECIDED or face is None or finite is None:
        return {}
    basis = limit.flow.basis
    m = counts.matrix
    arrays = {
        "indptr": m.indptr,
        "indices": m.indices,
        "counts": m.data,
        "labels": counts.signs,
        "E": E,
        "w": w,
        "selected": face.mask,
        "z": finite.z if basis is None else basis @ finite.z,
    }
    meaning = {
        "indptr, indices, counts": "documents × token types, compressed rows: document X holds type s counts times",
        "labels": "y, ±1",
        "E, w": "embeddings after one step, and their products with v",
        "selected": "for each entry of the matrix, whether the type is in S_X",
        "z": "z*, the strict minimum of L_S on V = span{E_s − E_s' : s, s' ∈ S_X}",
    }
    if limit.direction is not None and balance is not None:
        rho = face.outside @ balance.rho
        arrays |= {"p_hat": limit.direction, "rho": rho if basis is None else basis @ rho}
        meaning |= {
            "p_hat": "p̂: p grows like p̂ log t, with margin one on every pair of a selected and another type of a document",
            "rho": "ρ*, the strict minimum of Ψ on the span of the tight pairs",
        }
        if limit.is_max_margin and limit.margin is not None:
            arrays |= {"pairs": limit.margin.pairs, "multipliers": limit.margin.multipliers}
            meaning["pairs, multipliers"] = "types (s, r) and λ ≥ 0 with p̂ = Σ λ (E_s − E_r) up to V: p̂ is the shortest"
    kept = io.BytesIO()
    np.savez_compressed(kept, **arrays)
    about = {
        "verdict": limit.fate,
        "reason": limit.reason,
        "is_max_margin": limit.is_max_margin,
        "dimension_v": face.dimension,
        "arrays": meaning,
    }
    return {
        "certificate.json": json.dumps(about, ensure_ascii=False, indent=1),
        "certificate.npz": kept.getvalue(),
    }
