"""One prediction explained: the contribution of each token type, which add up to the logit."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Self

import numpy as np
import polars as pl
import scipy.sparse as sp
from scipy.special import expit

from tokensieve.arrays import Ints
from tokensieve.errors import InputError
from tokensieve.escape import html_table
from tokensieve.model.attention import (
    Model,
    attention,
    decide,
    per_class,
    probabilities,
    with_sink,
)

SINK = "⟨sink⟩"
ROWS_SHOWN = 30  # of the table, in a notebook
RENAMED = "the logit of an explanation is now its `logit`, not its `answer`"


@dataclass(frozen=True, repr=False)
class Explanation:
    """One prediction as a sum: Σ contribution = logit, up to rounding; the sink is one of the
    terms.

    Attributes:
        predicted: the predicted class.
        explained: the class whose logit is explained.
        probability: of the explained class.
        logit: f_{X,k} of the explained class k (of two classes f_X for the second, −f_X for the
            first): the sum of the contributions.
        unknown: words of the text that the model has never seen.
        table: token, count, attention q, value w, contribution q·w, largest contribution first (by
            magnitude).
    """

    predicted: object
    explained: object
    probability: float
    logit: float
    unknown: int
    table: pl.DataFrame

    @classmethod
    def of(
        cls, model: Model, matrix: sp.csr_array, unknown: Ints, label: object = None
    ) -> list[Self]:
        """Explain the logit of each document.

        Args:
            model: trained.
            matrix: counts of n documents over the model's |S| types.
            unknown: unknown words of each document, shape (n,).
            label: the class to explain; if None, the second of two classes, or the predicted one of
                more.
        """
        f = model.logits(matrix)
        predicted = decide(f)
        explained = predicted
        if label is not None or f.shape[1] == 1:
            explained = np.full_like(predicted, _class_index(model, label))
        probability = probabilities(f)
        logit = per_class(f)
        tables = _tables(model, matrix, explained)
        explanations = []
        for i, k in enumerate(explained):
            explanation = cls(
                predicted=model.classes[predicted[i]],
                explained=model.classes[k],
                probability=float(probability[i, k]),
                logit=float(logit[i, k]),
                unknown=int(unknown[i]),
                table=tables[i],
            )
            explanations.append(explanation)
        return explanations

    @property
    def answer(self) -> float:
        """The old name of `logit`."""
        warnings.warn(RENAMED, DeprecationWarning, stacklevel=2)
        return self.logit

    def __repr__(self) -> str:
        return (
            f"Explanation({str(self.predicted)!r}; P({self.explained}) = {self.probability:.4f}, "
            f"logit {self.logit:+.4f}, the sum of {self.table.height} contributions, "
            f"{self.unknown} unknown words)"
        )

    def _repr_html_(self) -> str:
        title = repr(self)
        if self.table.height > ROWS_SHOWN:
            title += f"; the {ROWS_SHOWN} largest"
        return html_table(title, self.table.columns, self.table.head(ROWS_SHOWN).iter_rows())

    def to_dict(self) -> dict[str, object]:
        """All of it as JSON values; the logit is called answer, as in 0.1."""
        return {
            "predicted": str(self.predicted),
            "explained": str(self.explained),
            "probability": self.probability,
            "answer": self.logit,
            "unknown": self.unknown,
            "tokens": self.table.to_dicts(),
        }


def _class_index(model: Model, label: object) -> int:
    """The index of a class; 1, the second of two, if none is named."""
    if label is None:
        return 1
    classes = model.classes.tolist()
    if label not in classes:
        names = ", ".join(map(str, classes))
        raise InputError(f"the model has no class {label!r}; it has {names}")
    return int(classes.index(label))


def _tables(model: Model, matrix: sp.csr_array, explained: Ints) -> list[pl.DataFrame]:
    """`Explanation.table` of each document, for its explained class."""
    u, w = model.table
    if model.sink is not None:
        matrix = with_sink(matrix)
    q = attention(matrix, u)
    names = [*model.tokens.tolist(), SINK]
    tables = []
    for i, k in enumerate(explained):
        entries = slice(matrix.indptr[i], matrix.indptr[i + 1])
        types = matrix.indices[entries]
        value = per_class(w[types])[:, k]
        table = pl.DataFrame(
            {
                "token": pl.Series([names[s] for s in types], dtype=pl.String),
                "count": matrix.data[entries],
                "attention": q[entries],
                "value": value,
                "contribution": q[entries] * value,
            }
        )
        size = pl.col("contribution").abs()
        tables.append(table.sort(size, descending=True, maintain_order=True))
    return tables


@dataclass(frozen=True)
class PairExplanation:
    """Why one text is preferred to another: logit = first.logit − second.logit.

    Each of these is the sum of its contributions; σ(logit) is the probability that the first is
    preferred.
    """

    first: Explanation
    second: Explanation
    logit: float
    probability: float

    @property
    def answer(self) -> float:
        """The old name of `logit`."""
        warnings.warn(RENAMED, DeprecationWarning, stacklevel=2)
        return self.logit

    def to_dict(self) -> dict[str, object]:
        """All of it as JSON values; logits are called answer, as in 0.1."""
        return {
            "answer": self.logit,
            "probability": self.probability,
            "first": _side(self.first),
            "second": _side(self.second),
        }


def _side(explanation: Explanation) -> dict[str, object]:
    """One text of a pair as JSON values."""
    content = explanation.to_dict()
    return {name: content[name] for name in ("answer", "unknown", "tokens")}


def compare(model: Model, first: str, second: str) -> PairExplanation:
    """Explain both texts of a comparison as exact sums; the model must have been trained on
    pairs."""
    if not model.pairs:
        raise InputError(
            "this model classifies single texts; to compare two, train one with --pairs"
        )
    first_explanation, second_explanation = Explanation.of(model, *model.count([first, second]))
    logit = first_explanation.logit - second_explanation.logit
    return PairExplanation(first_explanation, second_explanation, logit, float(expit(logit)))
