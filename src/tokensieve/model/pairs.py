"""Preference pairs: the same model, of which only differences are seen (Bradley & Terry 1952).

Pair i is two documents, A (preferred) and B, rows 2i and 2i + 1 of the counts. With m = f_A − f_B of `tokensieve.model.attention`

    P(A preferred to B) = σ(m)        ℓ = log(1 + e^{−m})        ∂ℓ/∂f_A = −σ(−m) = −∂ℓ/∂f_B

so that scores and values get the gradients of both documents, with opposite g. A decision value is known up to a constant, which
is settled by the sink's value, 0. Attention is a mean and does not see length, but a judge does: the sink, which takes e^{u_sink} /
(e^{u_sink} + Σ c e^u) of the attention, leaves more of it to a longer answer. It starts LONGER in the log above its start in
classification, where f is nearly a sum over tokens; how far it falls from there is learned.

A swap of A and B turns the sign of m and nothing else, so no orientation is drawn, in training or in evaluation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy.special import expit

from tokensieve.errors import InputError
from tokensieve.model.attention import (
    Entries,
    Gradient,
    above_answer,
    answers,
    attention,
    loss_and_slope,
    sum_by_type,
)
from tokensieve.model.explanation import Explanation, explain
from tokensieve.model.fit import fit
from tokensieve.model.settings import TrainSettings
from tokensieve.model.trained import Model
from tokensieve.progress import Progress
from tokensieve.text.counts import Counts, Floats, Ints
from tokensieve.text.vocabulary import Vocabulary


def margins(f: Floats) -> Floats:
    """f_A − f_B of each pair, shape (n,), from the decision values of its documents, shape (2n,) or (2n, 1)."""
    f = f.reshape(-1)
    return np.asarray(f[::2] - f[1::2])


def against_other(f: Floats) -> Floats:
    """f of each document less that of the other side of its pair, shape (2n, 1): its class is "chosen" with probability σ(this)."""
    m = margins(f)
    return np.column_stack([m, -m]).reshape(-1, 1)


def named_rightly(m: Floats) -> Floats:
    """1 for each pair whose preferred answer has the larger decision value, ½ for a tie, else 0, shape (n,)."""
    return np.asarray((m > 0) + 0.5 * (m == 0))


def pair_gradient(counts: Counts, u: Floats, w: Floats) -> Gradient:
    """Loss and exact full-batch gradient in scores and values, in O(nonzeros) (formulas above).

    Args:
        counts: 2n documents, n ≥ 1 pairs.
        u: scores, shape (|S|,).
        w: values, shape (|S|, 1).

    Returns:
        loss: mean of ℓ over pairs; a and b: its derivatives in u and w; f: decision values of the documents, shape (2n, 1).
    """
    matrix = counts.matrix
    documents, q = Entries(matrix.indptr), attention(matrix, u)
    f = answers(matrix, u, w)
    m = margins(f)
    loss, g = loss_and_slope(m[:, None], np.ones(len(m), dtype=np.int64))
    slope = g[:, 0]
    g = np.column_stack([slope, -slope]).ravel() / len(slope)
    at_entries = q * documents.spread(g)
    a = sum_by_type(matrix, at_entries * above_answer(matrix, q, w[:, 0]))
    return Gradient(float(np.mean(loss)), a, sum_by_type(matrix, at_entries)[:, None], f)


def fit_pairs(
    counts: Counts,
    units: Ints,
    settings: TrainSettings | None = None,
    vocabulary: Vocabulary | None = None,
    progress: Progress | None = None,
) -> Model:
    """Learn scores and values from pairs; the same seed gives the same bits.

    Args:
        counts: 2n documents over |S| types.
        units: group (prompt) of each pair, shape (n,): the length of training is chosen on whole groups held out.
        settings, vocabulary, progress: as for `tokensieve.model.fit.fit`.
    """
    return fit(counts, settings, vocabulary, progress, units, pairs=True)


def answer_pairs(model: Model, first: pl.Series, second: pl.Series, names: tuple[str, str]) -> pl.DataFrame:
    """One row per pair: preferred (one of the names), probability (that the first is), answer f_first − f_second, unknown_words.

    The first three are null where a side is empty.

    Args:
        model: of pairs.
        first, second: n texts each, String; an empty one is no answer.
        names: of the two.
    """
    read = [model.count(side) for side in (first, second)]
    m = (model.decide(read[0][0]) - model.decide(read[1][0]))[:, 0]
    whole = pl.Series(
        [bool(a.strip()) and bool(b.strip()) for a, b in zip(first, second, strict=True)], dtype=pl.Boolean
    )
    frame = pl.DataFrame(
        {
            "preferred": pl.Series(list(names), dtype=pl.String).gather((m < 0).astype(np.int64)),
            "probability": expit(m),
            "answer": m,
            "unknown_words": read[0][1] + read[1][1],
        }
    )
    return frame.with_columns(pl.when(whole).then(pl.col(name)).alias(name) for name in frame.columns[:3])


@dataclass(frozen=True)
class PairExplanation:
    """Why one text is preferred to another: answer = first.answer − second.answer, each the sum of its contributions.

    Attributes:
        first, second: the two, taken apart.
        answer: f_first − f_second.
        probability: that the first is preferred, σ(answer).
    """

    first: Explanation
    second: Explanation
    answer: float
    probability: float

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON values."""
        sides = {}
        for name, side in (("first", self.first), ("second", self.second)):
            whole = side.to_dict()
            sides[name] = {key: whole[key] for key in ("answer", "unknown", "tokens")}
        return {"answer": self.answer, "probability": self.probability, **sides}


def compare(model: Model, first: str, second: str) -> PairExplanation:
    """Both sides of a comparison as exact sums.

    Args:
        model: of pairs.
        first, second: the texts.

    Raises:
        InputError: the model was not trained on pairs.
    """
    if not model.pairs:
        raise InputError("this model answers single texts: to compare two, train one with --pairs")
    a, b = explain(model, *model.count([first, second]))
    return PairExplanation(a, b, a.answer - b.answer, float(expit(a.answer - b.answer)))
