"""Test documents taken apart, as an audit carries a few along."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import polars as pl
from scipy.stats import entropy

from tokensieve.model.classifier import AttentionClassifier
from tokensieve.model.decision import decide, probabilities
from tokensieve.model.explanation import Piece, pieces
from tokensieve.task.training import CorpusModel
from tokensieve.text.counts import Ints


class Kind(StrEnum):
    """How a document was predicted, or OTHER for one that is there for the tokens in it."""

    RIGHT_CERTAIN = "right and certain"
    RIGHT_UNCERTAIN = "right and uncertain"
    WRONG_CERTAIN = "wrong and certain"
    WRONG_UNCERTAIN = "wrong and uncertain"
    OTHER = ""


@dataclass(frozen=True)
class Example:
    """One test document with its prediction taken apart.

    Attributes:
        kind: why it is shown.
        row: its row in the source, from 1.
        label, predicted: class names.
        probability: of the predicted class.
        answer: f_X of the second of two classes, or of the predicted class.
        pieces: the text in order as (piece, contribution, attention, value); contributions add up to the answer.
        tokens: token, count, attention, value, contribution.
    """

    kind: Kind
    row: int
    label: str
    predicted: str
    probability: float
    answer: float
    pieces: list[Piece]
    tokens: pl.DataFrame


def by_certainty(learned: CorpusModel) -> tuple[Ints, Ints]:
    """Test documents with a known token, the most certain prediction first: those predicted correctly, and the others."""
    counts = learned.test.counts
    order = np.argsort(entropy(probabilities(learned.f), axis=1), kind="stable")
    order = order[np.diff(counts.matrix.indptr)[order] > 0]
    right = decide(learned.f)[order] == counts.labels[order]
    return order[right], order[~right]


def examples(model: AttentionClassifier, learned: CorpusModel) -> list[Example]:
    """Ten test documents: of those predicted correctly three certain and two uncertain ones, and as many of the others."""
    chosen: list[tuple[Kind, int]] = []
    kinds = (Kind.RIGHT_CERTAIN, Kind.RIGHT_UNCERTAIN), (Kind.WRONG_CERTAIN, Kind.WRONG_UNCERTAIN)
    for (certain, uncertain), group in zip(kinds, by_certainty(learned), strict=True):
        chosen += [(certain, int(i)) for i in group[:3]] + [(uncertain, int(i)) for i in group[3:][::-1][:2]]
    if not chosen:
        return []
    test, f = learned.test, learned.f
    documents = [i for _, i in chosen]
    p, names, trained = probabilities(f[documents]), test.corpus.classes, model.trained_
    predicted, out = decide(f), []
    for (kind, i), chances, explained in zip(chosen, p, model.explain(test.counts.matrix[documents]), strict=True):
        k, text = int(predicted[i]), test.corpus.texts[i]
        shares = pieces(trained, text, 1 if f.shape[1] == 1 else k, test.counts.matrix[[i]])
        labels = names[test.counts.labels[i]], names[k]
        row = int(test.corpus.rows[i])
        out.append(Example(kind, row, *labels, float(chances[k]), explained.answer, shares, explained.table))
    return out
