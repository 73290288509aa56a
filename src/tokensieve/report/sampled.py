"""The test documents that a page holds: some of each kind, and some that contain the strongest predictors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import scipy.sparse as sp
from scipy.special import logsumexp

from tokensieve.auditing.documents import Kind, by_certainty
from tokensieve.text.counts import Counts, Floats, Ints
from tokensieve.text.spill import characters

if TYPE_CHECKING:
    from tokensieve.auditing.result import Audit

SAMPLE_CHARACTERS = 400_000  # of test documents that a page holds
LONGEST_SAMPLED = 6_000
OF_EACH_KIND = 8


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


def sample(audit: Audit) -> list[Sampled]:
    """Up to 400,000 characters of test documents, none longer than 6,000: eight of each kind, then the shortest that hold the
    most telling tokens, then others by chance.
    """
    model, learned, test = audit.model, audit.learned, audit.learned.test
    m, size = test.counts.matrix, characters(test.corpus.texts)
    fits = (size <= LONGEST_SAMPLED) & (np.diff(m.indptr) > 0)
    kinds: dict[int, Kind] = {}
    right, wrong = (group[fits[group]] for group in by_certainty(learned))
    for certain, uncertain, group in (
        (Kind.RIGHT_CERTAIN, Kind.RIGHT_UNCERTAIN, right), (Kind.WRONG_CERTAIN, Kind.WRONG_UNCERTAIN, wrong),
    ):  # fmt: skip
        kinds |= dict.fromkeys(group[OF_EACH_KIND:][::-1][:OF_EACH_KIND].tolist(), uncertain)
        kinds |= dict.fromkeys(group[:OF_EACH_KIND].tolist(), certain)
    others = np.random.default_rng(audit.seed).permutation(np.flatnonzero(fits)).tolist()
    wanted = list(dict.fromkeys([*kinds, *_holders(test.counts, audit.tokens, size, fits), *others]))
    rows = np.asarray(wanted, dtype=np.int64)
    rows = rows[: np.searchsorted(np.cumsum(size[rows]), SAMPLE_CHARACTERS)]
    out, sink = [], [] if model.sink_ is None else [model.sink_]
    for i in rows.tolist():
        inside = slice(m.indptr[i], m.indptr[i + 1])
        sums = [*model.scores_[m.indices[inside]], *sink]
        total = float(logsumexp(sums, b=[*m.data[inside], *np.ones(len(sink))]))
        text, answer = str(test.corpus.texts[i]), np.atleast_1d(learned.f[i]).astype(np.float64)
        label, kind = int(test.counts.labels[i]), kinds.get(i, Kind.OTHER)
        out.append(Sampled(int(test.corpus.rows[i]), label, kind, text, answer, total))
    return out


def _holders(test: Counts, table: pl.DataFrame, size: Ints, fits: Any, types: int = 600, each: int = 2) -> list[int]:
    """For each of the types of extreme effect, score or value: the shortest test documents that hold it, best-known types first."""
    n = test.n_types
    if not n or table.is_empty():
        return []
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
