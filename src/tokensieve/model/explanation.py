"""One answer taken apart: as a table of contributions per token type, and as the text cut into pieces that carry them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
import scipy.sparse as sp
from scipy.special import expit

from tokensieve.errors import InputError
from tokensieve.escape import html_table
from tokensieve.model.attention import Model, attention, both, decide, probabilities, with_sink
from tokensieve.text.counts import Ints
from tokensieve.text.table import text_series
from tokensieve.text.vocabulary import TokenStream

SINK = "⟨sink⟩"
Piece = tuple[str, float, float, float]


@dataclass(frozen=True, repr=False)
class Explanation:
    """One answer as a sum: Σ contribution = answer, to rounding; the sink is a term of its own.

    Attributes:
        predicted: the class that the model answers.
        explained: the class whose answer is explained.
        probability: of the explained class.
        answer: f_{X,k} of the explained class k (of two classes f_X for the second, −f_X for the first): the sum of the
            contributions.
        unknown: words of the text that the model has never seen.
        table: token, count, attention q, value w, contribution q·w, largest contribution first (by magnitude).
    """

    predicted: object
    explained: object
    probability: float
    answer: float
    unknown: int
    table: pl.DataFrame

    def __repr__(self) -> str:
        return (
            f"Explanation({str(self.predicted)!r}; P({self.explained}) = {self.probability:.4f}, answer {self.answer:+.4f}, "
            f"the sum of {self.table.height} contributions, {self.unknown} unknown words)"
        )

    def _repr_html_(self) -> str:
        more = "; the 30 largest" if self.table.height > 30 else ""
        return html_table(repr(self) + more, self.table.columns, self.table.head(30).iter_rows())

    def to_dict(self) -> dict[str, object]:
        """All of it as JSON values."""
        names = {"predicted": str(self.predicted), "explained": str(self.explained)}
        numbers = {"probability": self.probability, "answer": self.answer, "unknown": self.unknown}
        return names | numbers | {"tokens": self.table.to_dicts()}


def explain(model: Model, matrix: sp.csr_array, unknown: Ints, label: object = None) -> list[Explanation]:
    """Each answer as a sum over the document's token types.

    Args:
        model: trained.
        matrix: counts of n documents over the model's |S| types.
        unknown: unknown words of each document, shape (n,).
        label: the class to explain; if None, the second of two classes, or the predicted one of more.

    Raises:
        InputError: `label` is none of the classes.
    """
    classes = model.classes.tolist()
    if label is not None and label not in classes:
        raise InputError(f"the model has no class {label!r}: it knows {', '.join(map(str, classes))}")
    f = model.decide(matrix)
    p, best, mirrored = probabilities(f), decide(f), both(f)
    u, w = model.table
    matrix, names = (matrix, model.tokens) if model.sink is None else (with_sink(matrix), np.append(model.tokens, SINK))
    q = attention(matrix, u)
    out = []
    for i in range(len(f)):
        k = classes.index(label) if label is not None else 1 if f.shape[1] == 1 else int(best[i])
        entries = slice(matrix.indptr[i], matrix.indptr[i + 1])
        types = matrix.indices[entries]
        value = both(w[types])[:, k]
        table = pl.DataFrame(
            {
                "token": pl.Series(names[types].tolist(), dtype=pl.String),
                "count": matrix.data[entries],
                "attention": q[entries],
                "value": value,
                "contribution": q[entries] * value,
            }
        ).sort(pl.col("contribution").abs(), descending=True, maintain_order=True)
        numbers = float(p[i, k]), float(mirrored[i, k]), int(unknown[i])
        out.append(Explanation(model.classes[best[i]], model.classes[k], *numbers, table))
    return out


def pieces(model: Model, text: str, k: int = 1, row: sp.csr_array | None = None) -> list[Piece]:
    """Cut a text into (piece, contribution, attention, value), in order; the pieces joined are the text.

    Each occurrence of a type carries q_s/c_s of the attention, shared equally among the words of an n-gram, so that
    attention and contributions add up to one and to the answer f, less what the sink and formatting take. Text between tokens and
    words that the model does not know carries zero, so a text without any known token carries none although it is answered, by the
    prior.

    Args:
        model: trained on texts.
        text: any text.
        k: index of the class whose answer is taken apart.
        row: the text's counts over the |S| types, CSR (1, |S|), where they are known; counted here if None.
    """
    vocabulary = model.vocabulary
    assert vocabulary is not None
    stream = TokenStream.of(text_series([text]), vocabulary.tokenizer)
    spans = vocabulary.tokenizer.spans(text)
    types = vocabulary.positions(stream)
    matrix = vocabulary.read([text])[0] if row is None else row
    share, values = np.zeros(len(model.scores)), both(model.values)[:, k]
    full = matrix if model.sink is None else with_sink(matrix)
    share[matrix.indices] = attention(full, model.table[0])[: matrix.nnz] / matrix.data
    received, contributed = np.zeros(len(types)), np.zeros(len(types))
    for n in range(types.shape[1]):
        ends = np.flatnonzero(types[:, n] >= 0)
        q = share[types[ends, n]] / (n + 1)
        for back in range(n + 1):
            np.add.at(received, ends - back, q)
            np.add.at(contributed, ends - back, q * values[types[ends, n]])
    value = np.where(types[:, 0] >= 0, values[types[:, 0]], 0.0)
    out: list[Piece] = []
    at = 0
    for (start, end, _), f, q, w in zip(spans, contributed, received, value, strict=True):
        if start > at:
            out.append((text[at:start], 0.0, 0.0, 0.0))
        out.append((text[max(start, at) : end], float(f), float(q), float(w)))
        at = max(at, end)
    if at < len(text):
        out.append((text[at:], 0.0, 0.0, 0.0))
    return out


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

    def to_dict(self) -> dict[str, object]:
        """All of it as JSON values."""
        first, second = (
            {"answer": side.answer, "unknown": side.unknown, "tokens": side.table.to_dicts()}
            for side in (self.first, self.second)
        )
        return {"answer": self.answer, "probability": self.probability, "first": first, "second": second}


def compare(model: Model, first: str, second: str) -> PairExplanation:
    """Both sides of a comparison as exact sums.

    Raises:
        InputError: the model was not trained on pairs.
    """
    if not model.pairs:
        raise InputError("this model answers single texts: to compare two, train one with --pairs")
    a, b = explain(model, *model.count([first, second]))
    return PairExplanation(a, b, a.answer - b.answer, float(expit(a.answer - b.answer)))
