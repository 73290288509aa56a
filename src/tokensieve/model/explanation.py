"""One prediction explained: a table of contributions per token type, and the text split into pieces with their contributions."""

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
from tokensieve.model.attention import Model, attention, decide, per_class, probabilities, with_sink

SINK = "⟨sink⟩"
RENAMED = "the logit of an explanation is now its `logit`, not its `answer`"


@dataclass(frozen=True, repr=False)
class Explanation:
    """One prediction as a sum: Σ contribution = logit, up to rounding; the sink is one of the terms.

    Attributes:
        predicted: the predicted class.
        explained: the class whose logit is explained.
        probability: of the explained class.
        logit: f_{X,k} of the explained class k (of two classes f_X for the second, −f_X for the first): the sum of the
            contributions.
        unknown: words of the text that the model has never seen.
        table: token, count, attention q, value w, contribution q·w, largest contribution first (by magnitude).
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
        """Each logit as a sum over the document's token types.

        Args:
            model: trained.
            matrix: counts of n documents over the model's |S| types.
            unknown: unknown words of each document, shape (n,).
            label: the class to explain; if None, the second of two classes, or the predicted one of more.
        """
        classes = model.classes.tolist()
        if label is not None and label not in classes:
            raise InputError(
                f"the model has no class {label!r}; it has {', '.join(map(str, classes))}"
            )
        f = model.logits(matrix)
        p, best, mirrored = probabilities(f), decide(f), per_class(f)
        u, w = model.table
        names = np.append(model.tokens, SINK)
        matrix = matrix if model.sink is None else with_sink(matrix)
        q = attention(matrix, u)
        out: list[Self] = []
        for i in range(len(f)):
            k = (
                classes.index(label)
                if label is not None
                else 1
                if f.shape[1] == 1
                else int(best[i])
            )
            entries = slice(matrix.indptr[i], matrix.indptr[i + 1])
            types = matrix.indices[entries]
            value = per_class(w[types])[:, k]
            columns = {
                "token": pl.Series(names[types].tolist(), dtype=pl.String),
                "count": matrix.data[entries],
            }
            columns |= {"attention": q[entries], "value": value, "contribution": q[entries] * value}
            size = pl.col("contribution").abs()
            table = pl.DataFrame(columns).sort(size, descending=True, maintain_order=True)
            numbers = float(p[i, k]), float(mirrored[i, k]), int(unknown[i])
            out.append(cls(model.classes[best[i]], model.classes[k], *numbers, table))
        return out

    @property
    def answer(self) -> float:
        """The old name of `logit`."""
        warnings.warn(RENAMED, DeprecationWarning, stacklevel=2)
        return self.logit

    def __repr__(self) -> str:
        return (
            f"Explanation({str(self.predicted)!r}; P({self.explained}) = {self.probability:.4f}, logit {self.logit:+.4f}, "
            f"the sum of {self.table.height} contributions, {self.unknown} unknown words)"
        )

    def _repr_html_(self) -> str:
        more = "; the 30 largest" if self.table.height > 30 else ""
        return html_table(repr(self) + more, self.table.columns, self.table.head(30).iter_rows())

    def to_dict(self) -> dict[str, object]:
        """All of it as JSON values."""
        names = {"predicted": str(self.predicted), "explained": str(self.explained)}
        numbers = {"probability": self.probability, "answer": self.logit, "unknown": self.unknown}
        return names | numbers | {"tokens": self.table.to_dicts()}


@dataclass(frozen=True)
class PairExplanation:
    """Why one text is preferred to another: logit = first.logit − second.logit, each the sum of its contributions; σ(logit) is
    the probability that the first is preferred."""

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
        """All of it as JSON values."""
        names = "answer", "unknown", "tokens"
        sides = {
            side: {name: getattr(self, side).to_dict()[name] for name in names}
            for side in ("first", "second")
        }
        return {"answer": self.logit, "probability": self.probability, **sides}


def compare(model: Model, first: str, second: str) -> PairExplanation:
    """Both sides of a comparison as exact sums; the model must have been trained on pairs."""
    if not model.pairs:
        raise InputError(
            "this model classifies single texts; to compare two, train one with --pairs"
        )
    a, b = Explanation.of(model, *model.count([first, second]))
    return PairExplanation(a, b, a.logit - b.logit, float(expit(a.logit - b.logit)))
