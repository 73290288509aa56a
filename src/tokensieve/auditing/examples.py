"""Test documents as examples of what the model predicts well and badly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import entr

from tokensieve.arrays import Ints
from tokensieve.escape import IN_CELL, for_display
from tokensieve.model.attention import decide, probabilities
from tokensieve.report.blocks import Passage
from tokensieve.task.tasks import CorpusModel
from tokensieve.wording import percent


@dataclass(frozen=True, eq=False)
class RankedPredictions:
    """Test documents with a known token, most confident prediction first.

    Attributes:
        right: places of those predicted correctly.
        wrong: places of the others.
    """

    right: Ints
    wrong: Ints


def rank_predictions(learned: CorpusModel) -> RankedPredictions:
    """The test documents by the entropy of their predictions."""
    counts = learned.test.counts
    entropy = entr(probabilities(learned.f)).sum(axis=1)
    order = np.argsort(entropy, kind="stable")
    n_known_tokens = np.diff(counts.matrix.indptr)
    order = order[n_known_tokens[order] > 0]
    is_right = decide(learned.f)[order] == counts.labels[order]
    return RankedPredictions(order[is_right], order[~is_right])


def sample_passages(learned: CorpusModel, ranked: RankedPredictions) -> list[Passage]:
    """Ten test documents in pieces with their contributions to the prediction.

    Three confident and two uncertain correct predictions, and as many wrong ones.
    """
    logits = learned.f
    chosen = np.concatenate(
        [_most_and_least_sure(ranked.right), _most_and_least_sure(ranked.wrong)]
    )
    predicted = decide(logits)
    passages: list[Passage] = []
    for document, chances in zip(chosen.tolist(), probabilities(logits[chosen]), strict=True):
        passages.append(_passage(learned, document, int(predicted[document]), chances.tolist()))
    return passages


def _most_and_least_sure(documents: Ints) -> Ints:
    """The first three of some documents, and the last two of the others."""
    first = documents[:3]
    last = documents[3:][::-1][:2]
    return np.append(first, last).astype(np.int64)


def _passage(learned: CorpusModel, document: int, predicted: int, chances: list[float]) -> Passage:
    """A test document with the contribution of each piece to the predicted class."""
    test = learned.test
    class_names = test.counts.classes
    label = int(test.counts.labels[document])
    output = 1 if learned.f.shape[1] == 1 else predicted
    row = test.counts.matrix[[document]]
    pieces = learned.model.pieces(test.corpus.texts[document], output, row)
    class_name = for_display(class_names[predicted], IN_CELL)
    return Passage(
        pieces=tuple((piece[0], piece[1]) for piece in pieces),
        label=for_display(class_names[label], IN_CELL),
        row=int(test.corpus.rows[document]),
        note=f"predicted {class_name} with probability {percent(float(chances[predicted]))}",
        style="good" if predicted == label else "bad",
    )
