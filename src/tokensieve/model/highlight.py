"""One text, cut into pieces that carry the model's contributions."""

from __future__ import annotations

import numpy as np

from tokensieve.model.attention import attention
from tokensieve.model.classifier import AttentionClassifier
from tokensieve.text.counts import Counts
from tokensieve.text.tokenizers import text_series
from tokensieve.text.tokens import tokenize

Piece = tuple[str, float, float, float]


def pieces(model: AttentionClassifier, text: str, k: int = 1) -> list[Piece]:
    """Cut a text into (piece, contribution, attention, value), in order; the pieces joined are the text.

    Each occurrence of a type carries q_s/c_s of the attention, shared equally among the words of an n-gram, so that
    attention sums to one and contributions to the answer f. Text between tokens and words that the model does not know
    carries zero, so a text without any known token carries none although the model answers it by its prior.

    Args:
        model: fitted on texts.
        text: any text.
        k: index of the class whose answer is taken apart.
    """
    assert model.vocabulary_ is not None
    stream = tokenize(text_series([text]), model.vocabulary_.tokenizer)
    spans = model.vocabulary_.tokenizer.spans(text)
    types = model.vocabulary_.positions(stream)
    matrix, _ = model.vocabulary_.count(stream)
    share, values = np.zeros(len(model.scores_)), model.class_values(k)
    counts = Counts(matrix, np.zeros(1, np.int64), ("",), model.vocabulary_.tokens)
    share[matrix.indices] = attention(counts, model.scores_) / matrix.data
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
