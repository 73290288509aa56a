"""A verification with the data that it was run on: its summary and its tables."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from tokensieve.text.counts import Counts, Floats, Ints
from tokensieve.theory.faces import Fate, finite_gaps
from tokensieve.theory.selection import one_sided
from tokensieve.theory.verify import Verification

# |α| below this share of the largest is rounding.
ROUNDING = 1e-12
# Finite gaps in the summary, and gaps of each kind in the picture.
LISTED_GAPS, DRAWN_GAPS = 50, 6
# What a type is by its α, from the positive end.
KINDS = ("completely positive", "positive", "irrelevant", "negative", "completely negative")


@dataclass(frozen=True)
class Study:
    """Everything that the files, the page and the terminal show of one `verify`.

    Attributes:
        name: the source, for people.
        counts: the documents; of its two classes the second is y = +1.
        rows: row number of each document in its source, from 1, shape (n,).
        found: the verification.
        notes: what was odd about the data as read.
        settings: name → value of every option that decides the result.
        seed: of data (where generated) and start.
        version: of tokensieve.
        seconds: wall time of each stage.
    """

    name: str
    counts: Counts
    rows: Ints
    found: Verification
    notes: list[str]
    settings: dict[str, Any]
    seed: int
    version: str
    seconds: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        """What `Verification.to_dict` gives, the documents that break a hypothesis by row, and how it was made."""
        whole = self.found.to_dict()
        for item in whole["assumptions"]:
            item["rows"] = self.rows_of(item.pop("documents"))
        whole["limit"]["finite_gaps"] = self.gaps().head(LISTED_GAPS).to_dicts()
        sizes = dict(zip(self.counts.classes, self.counts.class_sizes.tolist(), strict=True))
        return whole | {
            "source": self.name, "documents": self.counts.n_documents, "token_types": self.counts.n_types, "classes": sizes,
            "notes": self.notes, "settings": self.settings, "seed": self.seed, "version": self.version, "seconds": self.seconds,
        }  # fmt: skip

    def rows_of(self, documents: Any) -> list[int]:
        """Row numbers in the source of documents given by index."""
        return [int(self.rows[k]) for k in documents]

    def tokens(self) -> pl.DataFrame:
        """One row per token type.

        Columns: token; documents that hold it; alpha, α_s; category; alignment, (E¹_s − E⁰_s)ᵀv; score_before and
        score_after, E¹_sᵀp at the start and the end of the flow; value, E¹_sᵀv; selected_in, documents that select it
        (missing where the selection is not decided).
        """
        counts, found = self.counts, self.found
        alpha = found.step.alpha
        chosen = None
        if found.selection is not None:
            chosen = np.bincount(counts.matrix.indices[found.selection.mask], minlength=counts.n_types)
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

    def curve(self) -> pl.DataFrame:
        """One row per step of the flow: length s, log_time, norm ‖p‖, loss, log_gradient, selected_fraction (documents
        whose important types score above all others), cosine and angle to the limit direction p̂ (missing where there is
        none); log t is missing at the start, where it is −∞."""
        flow, found = self.found.flow, self.found
        columns: dict[str, Any] = {
            "length": flow.arc, "log_time": flow.log_time, "norm": flow.norm, "loss": flow.loss, "log_gradient": flow.log_gradient,
            "selected_fraction": found.selected_fraction,
        }  # fmt: skip
        for name in ("cosine", "angle"):
            solved = found.agreement is not None and found.limit.direction is not None
            values = getattr(flow, name)(found.limit.direction) if solved else [None] * len(flow.arc)
            columns[name] = pl.Series(values, dtype=pl.Float64)
        finite = pl.col(pl.Float64)
        return pl.DataFrame(columns).with_columns(pl.when(finite.is_finite()).then(finite))

    def gaps(self) -> pl.DataFrame:
        """The finite score gaps: token, below (the one below it), gap in nats, documents that select both; most documents first."""
        limit, names = self.found.limit, [str(token) for token in self.counts.tokens]
        found = [] if limit.fate is Fate.POINT else finite_gaps(self.counts, self._coordinates(), limit)
        columns = {
            "token": pl.Series([names[s] for s, *_ in found], dtype=pl.String),
            "below": pl.Series([names[r] for _, r, *_ in found], dtype=pl.String),
            "gap": pl.Series([gap for *_, gap, _ in found], dtype=pl.Float64),
            "documents": pl.Series([documents for *_, documents in found], dtype=pl.Int64),
        }
        return pl.DataFrame(columns)

    def gap_curves(self) -> pl.DataFrame:
        """Score gaps against log_time, as the flow and as the prediction have them: pair, kind ("finite" or "tight"), source
        ("flow" or "prediction"), log_time, gap. No rows without a prediction."""
        limit, flow, names = self.found.limit, self.found.flow, [str(token) for token in self.counts.tokens]
        schema = {"pair": pl.String, "kind": pl.String, "source": pl.String, "log_time": pl.Float64, "gap": pl.Float64}
        prediction = limit.prediction
        if prediction is None or not prediction.phases or limit.margin is None:
            return pl.DataFrame(schema=schema)
        E = self._coordinates()
        pairs = [(s, r, "finite") for s, r, *_ in finite_gaps(self.counts, E, limit, DRAWN_GAPS)]
        order = np.argsort(-limit.margin.multipliers, kind="stable")[:DRAWN_GAPS]
        pairs += [(int(s), int(r), "tight") for s, r in limit.margin.pairs[order]]
        start = float(prediction.log_time[0])
        shown = np.isfinite(flow.log_time) & (flow.log_time <= 3 * start)
        later = prediction.log_time <= 3 * start
        parts = []
        for s, r, kind in pairs:
            apart = E[s] - E[r]
            for source, times, points in (
                ("flow", flow.log_time[shown], flow.coordinates[shown]),
                ("prediction", prediction.log_time[later], prediction.points[later]),
            ):
                row = {"pair": f"{names[s]} − {names[r]}", "kind": kind, "source": source}
                parts.append(pl.DataFrame({"log_time": times, "gap": points @ apart}).select(
                    *(pl.lit(value).alias(name) for name, value in row.items()), "log_time", "gap"
                ))  # fmt: skip
        return pl.concat(parts) if parts else pl.DataFrame(schema=schema)

    def limit_lines(self) -> list[str]:
        """The certificates of the limit in words, one line each."""
        limit = self.found.limit
        lines = [limit.reason] if limit.reason else []
        if limit.face is not None and limit.finite is not None and limit.face.dimension:
            lines.append(
                f"(F1) dim V = {limit.face.dimension}, {limit.tied_documents:,} documents with tied tokens; smallest curvature "
                f"{limit.finite.curvature:.3g} > 0"
            )
        if limit.margin is not None and limit.direction is not None:
            lines.append(
                f"(F2) p̂ {'is' if limit.is_max_margin else 'is not'} the max-margin direction with equalities: margin "
                f"{limit.margin.margin:.4g}, duality gap {limit.margin.duality_gap:.1e}, "
                f"KKT residual {limit.margin.kkt_residual:.1e}"
            )
        if limit.balance is not None:
            lines.append(
                f"(F3) {len(limit.balance.tight)} tight pairs, {limit.balance.pulling} of them pull; smallest curvature "
                f"{limit.balance.curvature:.3g} > 0, residual {limit.balance.residual:.1e}; angle·‖p‖ tends to "
                f"{limit.angle_constant:.4g}"
            )
        if self.found.selection is not None and math.isfinite(self.found.final_from):
            lines.append(self._conditioning())
        if limit.changes:
            at = ", ".join(f"{norm:,.0f} ({documents})" for norm, _, documents in limit.changes[:10])
            lines.append(f"predicted changes of the face at ‖p‖ (documents whose highest token changes): {at}")
        if math.isfinite(limit.compared[2]):
            lines.append(
                f"predicted from log t = {limit.compared[0]:.3g}, the flow was met up to log t = {limit.compared[1]:.4g} with a "
                f"relative error of {limit.compared[2]:.1e}"
            )
        if math.isfinite(limit.one_sided_selected):
            lines.append(
                f"{limit.one_sided_selected:.1%} of the documents that hold completely positive or negative tokens select one"
            )
        return lines

    def _conditioning(self) -> str:
        """How hard the data set is: where the selection is final, and the condition numbers of (F1) and (F3)."""
        limit = self.found.limit
        words = f"every document's highest token is final from log t = {self.found.final_from:.3g}"
        parts = []
        if limit.finite is not None and math.isfinite(limit.finite.curvature):
            parts.append(f"{1 / limit.finite.spread:.3g} (F1)")
        if limit.balance is not None:
            parts.append(f"{1 / limit.balance.spread:.3g} (F3)")
        return words + (f"; condition numbers {' and '.join(parts)}" if parts else "")

    def _coordinates(self) -> Floats:
        basis = self.found.flow.basis
        return self.found.embeddings if basis is None else np.asarray(self.found.embeddings @ basis)

    def support(self) -> pl.DataFrame:
        """Pairs (selected, other) of token names with their multipliers, largest first; no rows without a margin problem.

        Where the problem is infeasible the multipliers are the proof of that (they sum to one).
        """
        margin, names = self.found.margin, [str(token) for token in self.counts.tokens]
        pairs = np.zeros((0, 2), np.int64) if margin is None else margin.pairs
        columns = {
            "selected": pl.Series([names[s] for s in pairs[:, 0]], dtype=pl.String),
            "other": pl.Series([names[r] for r in pairs[:, 1]], dtype=pl.String),
            "multiplier": pl.Series([] if margin is None else margin.multipliers, dtype=pl.Float64),
        }
        return pl.DataFrame(columns).sort("multiplier", descending=True, maintain_order=True)


def _categories(sides: Ints, alpha: Floats) -> list[str]:
    """The paper's categories: one-sided types are "completely" theirs, the others go by the sign of α."""
    floor = ROUNDING * float(np.abs(alpha).max(initial=0.0))
    sign = np.where(np.abs(alpha) <= floor, 0, np.sign(alpha)).astype(np.int64)
    return [KINDS[2 - step] for step in np.where(sides != 0, 2 * sides, sign).tolist()]
