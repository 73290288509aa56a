"""Which hypotheses of the theorems hold on a data set and a start: by name, with counts and documents that show it.

Assumption 1 of Wu et al. (NeurIPS 2025): every document holds exactly one completely positive or completely negative token, and
all its other tokens are irrelevant (α_s = 0). Lemma 4.1 needs a large d; Theorem 4.3 needs a large first step as well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokensieve.text.counts import Counts, Floats
from tokensieve.theory.one_step import OneStep
from tokensieve.theory.selection import documents_of, one_sided

WITNESSES = 5


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
            "name": self.name, "holds": self.holds, "detail": self.detail, "documents": list(self.documents),
            "types": list(self.types),
        }  # fmt: skip


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


def _first(which: NDArray[Any]) -> tuple[int, ...]:
    """The first few documents of a mask or an index array."""
    places = np.flatnonzero(which) if which.dtype == bool else which
    return tuple(int(k) for k in places[:WITNESSES])
