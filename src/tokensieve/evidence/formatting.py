"""Formatting in the importance table, beside words (`tokensieve.text.formatting` has the features).

A feature enters as a presence: its test, q-value and posterior difference are those of a type with c = 1 in the documents that
have it; its α and effect are its difference in share of documents divided by the mean length T̄ in words, i.e. it weighs as one
token of a document of average length, so that one table can hold both. The lengths T_X of documents, and with them every number
of a word but its q-value, do not change. In the model it is one more column with count 1: a token like any other, so that an
answer is still an exact sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tokensieve.evidence.groups import merged
from tokensieve.evidence.importance import Importance, importance_of, token_importance
from tokensieve.evidence.intervals import false_discovery
from tokensieve.evidence.sums import TokenSums
from tokensieve.text.counts import Counts, Ints
from tokensieve.text.formatting import FORMATTING, formatting

__all__ = ["FORMATTING", "beside", "formatting", "formatting_importance", "importance_of_all", "with_formatting"]


def with_formatting(
    counts: Counts, present: sp.csr_array, min_documents: int = 3, names: Sequence[str] = FORMATTING
) -> tuple[Counts, NDArray[np.int64]]:
    """The counts with one more column, count 1, for each feature in at least `min_documents` documents, for the model.

    Args:
        counts: n documents.
        present: from `formatting`, shape (n, len(names)).
        min_documents: a feature must hold for that many of them.
        names: of the features.

    Returns:
        The counts, and which of `names` their last columns are (to be taken from the features of new texts).
    """
    kept = np.flatnonzero(np.asarray(present.sum(axis=0)).ravel() >= min_documents)
    matrix = sp.csr_array(sp.hstack([counts.matrix, present[:, kept]], format="csr"))
    tokens = np.concatenate([counts.tokens.astype(object), np.asarray(names, dtype=object)[kept]])
    return Counts(matrix, counts.labels, counts.classes, tokens), kept


def importance_of_all(counts: Counts, features: int, units: Ints | None = None) -> Importance:
    """Importance of words and n-grams and, behind them, of formatting (module docstring), a block of documents at a time.

    Args:
        counts: n documents; the last columns are formatting.
        features: how many of them.
        units: the unit of each document, where documents belong together: then every statistic but the numbers of documents and
            occurrences is over units; a feature's share of a unit is that of its documents.

    Raises:
        InputError: fewer than two classes have documents.
    """
    if units is not None:
        return _of_units(counts, features, units)
    if not features:
        return token_importance(counts)
    words, k = counts.n_types - features, counts.n_classes
    sums, marks, length = TokenSums.zero(words, k), TokenSums.zero(features, k), 0.0
    for part in counts.blocks():
        rest = sp.csr_array(part.matrix[:, :words])
        sums += TokenSums.of(rest, part.labels, k)
        present = sp.csr_array(part.matrix[:, words:])
        marks += TokenSums.of(present, part.labels, k, lengths=np.ones(part.n_documents))
        length += float(rest.sum())
    found = importance_of(sums, counts.tokens[:words], counts.classes)
    mean = length / max(counts.n_documents, 1)
    return beside(found, _scaled(importance_of(marks, counts.tokens[words:], counts.classes), mean))


def _of_units(counts: Counts, features: int, units: Ints) -> Importance:
    whole, sizes = merged(counts, units)
    words, k, n = counts.n_types - features, counts.n_classes, max(counts.n_documents, 1)
    rest = sp.csr_array(whole.matrix[:, :words])
    found = importance_of(TokenSums.of(rest, whole.labels, k), counts.tokens[:words], counts.classes)
    if features:
        present = sp.csr_array(whole.matrix[:, words:])
        sums = TokenSums.of(present, whole.labels, k, lengths=sizes.astype(np.float64))
        marks = importance_of(sums, counts.tokens[words:], counts.classes)
        found = beside(found, _scaled(marks, float(rest.sum()) / n))
    present_in = counts.present
    return replace(
        found,
        documents=present_in.sum(axis=1),
        class_documents=present_in,
        neutral=2 * counts.class_sizes / n - 1,
        units=found.documents,
    )


def formatting_importance(
    present: sp.csr_array, labels: NDArray[np.int64], classes: tuple[str, ...], length: float
) -> Importance:
    """Importance of the features that hold for some documents, as presences (module docstring).

    Args:
        present: from `formatting`, shape (n, len(FORMATTING)).
        labels: class index of each document, shape (n,).
        classes: the K class names.
        length: T̄, tokens of a document in the mean.

    Raises:
        InputError: fewer than two classes have documents.
    """
    kept = np.flatnonzero(np.asarray(present.sum(axis=0)).ravel())
    sums = TokenSums.of(sp.csr_array(present[:, kept]), labels, len(classes), lengths=np.ones(present.shape[0]))
    return _scaled(importance_of(sums, np.asarray(FORMATTING, dtype=object)[kept], classes), length)


def _scaled(found: Importance, length: float) -> Importance:
    """Presences in units of one token of a document of `length` tokens."""
    scale = 1.0 / max(length, 1.0)
    scaled: dict[str, Any] = {
        f"{name}{end}": getattr(found, f"{name}{end}") * scale
        for name in ("alpha", "effect")
        for end in ("", "_low", "_high")
    }
    return replace(found, reach=found.reach * scale, **scaled)


def beside(words: Importance, others: Importance) -> Importance:
    """Both tables in one, words first; q-values are over all types of both."""
    both: dict[str, Any] = {
        f.name: np.concatenate([getattr(words, f.name), getattr(others, f.name)])
        for f in fields(Importance)
        if f.name not in ("classes", "neutral", "units")
    }
    both["q_value"] = false_discovery(both["p_value"])
    return replace(words, **both)
