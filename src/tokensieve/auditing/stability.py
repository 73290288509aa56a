"""Do tokens carry the label everywhere, or in some environments only? The test of the data room, for an audit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from tokensieve.auditing.agreement import DIGITS, FLOOR
from tokensieve.auditing.findings import Finding, FindingKind, rows_of
from tokensieve.errors import InputError
from tokensieve.evidence.environments import Environments, Stability, environments
from tokensieve.evidence.importance import Importance
from tokensieve.evidence.intervals import LEVEL
from tokensieve.evidence.shares import Share
from tokensieve.task.interface import Part
from tokensieve.text.counts import Ints

MOST_ENVIRONMENTS = 100
COVERAGE = 0.01  # of the documents of an environment of mean size: a token in fewer is no finding
APART = 0.3  # between the largest and the smallest lean (effect in units of its reach), for a finding
LISTED = 50
EVERYWHERE = 0.5  # of the weight of a share of the documents: such a token misleads in some environments only


@dataclass(frozen=True)
class Stable:
    """What the environments show.

    Attributes:
        table: token, class, effect, ratio, q_statistic, p_value, q_value, degrees, stability and a lean per environment.
        finding: tokens that carry the label in some environments and not, or the other way round, in others.
    """

    table: pl.DataFrame
    finding: Finding | None

    @property
    def columns(self) -> list[pl.Series]:
        """What the table of tokens gains: stability, and the q-value of the test that the ratio is the same everywhere."""
        q = pl.Series("heterogeneity_q", self.table["q_value"]).round_sig_figs(DIGITS)
        return [self.table["stability"], q]


def stability(train: Part, overall: Importance) -> Stable | None:
    """The test and its finding; None where no environments were read.

    Args:
        train: the training documents.
        overall: importance of their types.

    Raises:
        InputError: fewer than two environments have documents of two classes, or there are more than a hundred.
    """
    names = train.corpus.environments
    if names is None:
        return None
    known = tuple(sorted(names.drop_nulls().unique().to_list()))
    if len(known) > MOST_ENVIRONMENTS:
        raise InputError(
            f"{train.corpus.name}: {len(known):,} different values in the column of --environments, {MOST_ENVIRONMENTS} are the "
            "most: choose another, or join values (months to years, say)"
        )
    of = names.replace_strict(list(known), list(range(len(known))), default=-1, return_dtype=pl.Int64).to_numpy()
    found = environments(train.counts, of, known, overall, train.features, train.corpus.units)
    return Stable(found.to_frame(overall), _finding(found, overall, train, of))


def _finding(found: Environments, overall: Importance, train: Part, of: Ints) -> Finding | None:
    """Tokens that carry the label in some environment, with leans that are far apart, the most telling first."""
    leans = np.stack([x.effect / np.where(x.reach > 0, x.reach, 1.0) for x in found.within if x is not None])
    carries = np.stack([x.q_value < LEVEL for x in found.within if x is not None])
    least = max(FLOOR, COVERAGE * train.counts.n_documents / max(len(found.names), 1))
    chosen = (found.stability == Stability.UNSTABLE.value) & carries.any(axis=0) & (overall.documents >= least)[:, None]
    chosen &= leans.max(axis=0) - leans.min(axis=0) >= APART
    if not chosen.any():
        return None
    types, classes = np.nonzero(chosen)
    most = leans.max(axis=0)[types, classes]  # of two classes the one that it speaks for where it speaks
    order = np.lexsort((-most, types, -found.q_statistic[types, classes].round(6)))
    tokens = tuple(dict.fromkeys(str(overall.tokens[s]) for s in types[order]))[:LISTED]
    first, k = int(types[order[0]]), int(classes[order[0]])
    held = np.flatnonzero(np.asarray(train.counts.matrix[:, [first]].sum(axis=1)).ravel() > 0)
    share = Share.count(len(held), train.counts.n_documents)
    evidence = {"documents": share}
    inside = train.counts.labels == k
    usable = [name for name, x in zip(found.names, found.within, strict=True) if x is not None]
    for e in dict.fromkeys((int(np.argmax(leans[:, first, k])), int(np.argmin(leans[:, first, k])))):
        here = held[of[held] == found.names.index(usable[e])]
        evidence[usable[e]] = Share.count(int(np.count_nonzero(inside[here])), len(here))
    severity = EVERYWHERE * share.value
    label = train.counts.classes[k]
    return Finding(
        FindingKind.UNSTABLE, severity, label, tokens, evidence=evidence, documents=len(held),
        rows=rows_of(held, train.corpus, token=tokens[0]),
    )  # fmt: skip
