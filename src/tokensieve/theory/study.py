"""A verification with the data that it was run on: its summary and its tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from tokensieve.text.counts import Counts, Floats, Ints
from tokensieve.theory.selection import one_sided
from tokensieve.theory.verify import Verification

# |α| below this share of the largest is rounding.
ROUNDING = 1e-12
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
        whose important types score above all others), cosine and angle to the max-margin direction (missing where there is
        none); log t is missing at the start, where it is −∞."""
        flow, found = self.found.flow, self.found
        columns: dict[str, Any] = {
            "length": flow.arc, "log_time": flow.log_time, "norm": flow.norm, "loss": flow.loss, "log_gradient": flow.log_gradient,
            "selected_fraction": found.selected_fraction,
        }  # fmt: skip
        for name in ("cosine", "angle"):
            solved = found.agreement is not None and found.margin is not None
            values = getattr(flow, name)(found.margin.p) if solved and found.margin else [None] * len(flow.arc)
            columns[name] = pl.Series(values, dtype=pl.Float64)
        finite = pl.col(pl.Float64)
        return pl.DataFrame(columns).with_columns(pl.when(finite.is_finite()).then(finite))

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
