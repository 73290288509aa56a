"""The test documents that an audit carries along: a few taken apart, and a sample for the page."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp
from scipy.special import logsumexp
from scipy.stats import entropy

from tokensieve.model.classifier import AttentionClassifier
from tokensieve.model.decision import probabilities
from tokensieve.model.explanation import Piece, pieces
from tokensieve.text.corpus import Corpus
from tokensieve.text.counts import Counts, Floats, Ints
from tokensieve.text.spill import characters

SAMPLE_CHARACTERS = 400_000  # of test documents that an audit carries along
LONGEST_SAMPLED = 6_000
OF_EACH_KIND = 8


class Kind(StrEnum):
    """How a document was answered, or OTHER for one that is there for the tokens in it."""

    RIGHT_CERTAIN = "right and certain"
    RIGHT_UNCERTAIN = "right and uncertain"
    WRONG_CERTAIN = "wrong and certain"
    WRONG_UNCERTAIN = "wrong and uncertain"
    OTHER = ""


@dataclass(frozen=True)
class Example:
    """One test document with its answer taken apart.

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


@dataclass(frozen=True)
class Sampled:
    """One test document as text, with its answer.

    Attributes:
        row: its row in the source, from 1.
        label: index of its class.
        kind: how it was answered, or OTHER.
        text: all of it.
        answer: f_X, shape (1,) for two classes, (K,) otherwise.
        log_total: log Σ_s c_{X,s} e^{u_s}, the logarithm of what attention is divided by.
    """

    row: int
    label: int
    kind: Kind
    text: str
    answer: Floats
    log_total: float


@dataclass(frozen=True)
class Answered:
    """The test documents, their counts and the model's answers.

    Attributes:
        corpus: the test documents.
        counts: of them.
        f: decision values, shape (n,) for two classes, (n, K) otherwise.
        predicted: index of the class answered, shape (n,).
    """

    corpus: Corpus
    counts: Counts
    f: Floats
    predicted: Ints

    def by_certainty(self) -> tuple[Ints, Ints]:
        """Documents with a known token, the most certain answer first: those answered rightly, those wrongly."""
        order = np.argsort(entropy(probabilities(self.f), axis=1), kind="stable")
        order = order[np.diff(self.counts.matrix.indptr)[order] > 0]
        right = self.predicted[order] == self.counts.labels[order]
        return order[right], order[~right]


def examples(model: AttentionClassifier, test: Answered) -> list[Example]:
    """Ten test documents: three right and certain, two right and uncertain, three wrong and certain, two wrong and uncertain."""
    chosen: list[tuple[Kind, int]] = []
    kinds = (Kind.RIGHT_CERTAIN, Kind.RIGHT_UNCERTAIN), (Kind.WRONG_CERTAIN, Kind.WRONG_UNCERTAIN)
    for (certain, uncertain), group in zip(kinds, test.by_certainty(), strict=True):
        chosen += [(certain, int(i)) for i in group[:3]] + [(uncertain, int(i)) for i in group[3:][::-1][:2]]
    if not chosen:
        return []
    documents = [i for _, i in chosen]
    p, names, trained = probabilities(test.f[documents]), test.corpus.classes, model.trained_
    out = []
    for (kind, i), chances, explained in zip(chosen, p, model.explain(test.counts.matrix[documents]), strict=True):
        k, text = int(test.predicted[i]), test.corpus.texts[i]
        shares = pieces(trained, text, 1 if test.f.ndim == 1 else k, test.counts.matrix[[i]])
        labels = names[test.counts.labels[i]], names[k]
        row = int(test.corpus.rows[i])
        out.append(Example(kind, row, *labels, float(chances[k]), explained.answer, shares, explained.table))
    return out


def sample(model: AttentionClassifier, test: Answered, table: pl.DataFrame, seed: int) -> list[Sampled]:
    """Up to 400,000 characters of test documents, none longer than 6,000: eight of each kind, then the shortest that hold the
    most telling tokens, then others by chance.

    Args:
        model: that answered them.
        test: the documents.
        table: `Audit.tokens`.
        seed: of the choice by chance.
    """
    m, size = test.counts.matrix, characters(test.corpus.texts)
    fits = (size <= LONGEST_SAMPLED) & (np.diff(m.indptr) > 0)
    kinds: dict[int, Kind] = {}
    right, wrong = (group[fits[group]] for group in test.by_certainty())
    for certain, uncertain, group in (
        (Kind.RIGHT_CERTAIN, Kind.RIGHT_UNCERTAIN, right), (Kind.WRONG_CERTAIN, Kind.WRONG_UNCERTAIN, wrong),
    ):  # fmt: skip
        kinds |= dict.fromkeys(group[OF_EACH_KIND:][::-1][:OF_EACH_KIND].tolist(), uncertain)
        kinds |= dict.fromkeys(group[:OF_EACH_KIND].tolist(), certain)
    others = np.random.default_rng(seed).permutation(np.flatnonzero(fits)).tolist()
    wanted = list(dict.fromkeys([*kinds, *_holders(test.counts, table, size, fits), *others]))
    rows = np.asarray(wanted, dtype=np.int64)
    rows = rows[: np.searchsorted(np.cumsum(size[rows]), SAMPLE_CHARACTERS)]
    out, sink = [], [] if model.sink_ is None else [model.sink_]
    for i in rows.tolist():
        inside = slice(m.indptr[i], m.indptr[i + 1])
        sums = [*model.scores_[m.indices[inside]], *sink]
        total = float(logsumexp(sums, b=[*m.data[inside], *np.ones(len(sink))]))
        text, answer = str(test.corpus.texts[i]), np.atleast_1d(test.f[i]).astype(np.float64)
        label, kind = int(test.counts.labels[i]), kinds.get(i, Kind.OTHER)
        out.append(Sampled(int(test.corpus.rows[i]), label, kind, text, answer, total))
    return out


def _holders(test: Counts, table: pl.DataFrame, size: Ints, fits: Any, types: int = 600, each: int = 2) -> list[int]:
    """For each of the types of extreme effect, score or value: the shortest test documents that hold it, best-known types first."""
    n = test.n_types
    rank = np.full(n, n)
    for by in ("effect", "score", "value"):
        best = table[by].abs().to_numpy().reshape(-1, n).max(axis=0)
        order = np.argsort(-best, kind="stable")
        rank[order] = np.minimum(rank[order], np.arange(n))
    chosen = np.argsort(rank, kind="stable")[:types]
    columns = sp.csc_array(test.matrix[:, chosen])
    out: list[int] = []
    for t in range(len(chosen)):
        documents = columns.indices[columns.indptr[t] : columns.indptr[t + 1]]
        documents = documents[fits[documents]]
        out += documents[np.argsort(size[documents], kind="stable")[:each]].tolist()
    return out
