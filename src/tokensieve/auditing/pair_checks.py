"""Checks of pairs that train models of their own: pairs preferred the wrong way, and accuracy without the shortcuts.

A pair is one document for confident learning twice over, its preferred answer of class "chosen" and the other of class "rejected";
by symmetry both have the same probability and the same threshold, the mean of σ(m) over the pairs, m being the margin given by a
model that never saw the pair's unit (`tokensieve.auditing.label_issues`). As only differences are seen, the scale of m, which a
model of half the pairs has not settled, is that of least loss over all of them: one number.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import scipy.sparse as sp

from tokensieve.auditing.findings import Finding, FindingKind, Share, rows_of
from tokensieve.auditing.label_issues import (
    AGAINST,
    CLEAR,
    EXAMPLES,
    FOLDS,
    LISTED,
    WEIGHT,
    confident_issues,
    first_words,
    issues_table,
)
from tokensieve.auditing.refit import refit_pairs
from tokensieve.auditing.shortcuts import types_without
from tokensieve.model.attention import attention, with_sink
from tokensieve.model.choice import best_scale
from tokensieve.model.decision import probabilities
from tokensieve.model.fit import FitSettings
from tokensieve.model.pairs import against_other, margins, named_rightly
from tokensieve.model.trained import Model
from tokensieve.model.training import CorpusModel, Part
from tokensieve.text.counts import Counts, Floats, Ints


def margins_of_others(train: Counts, units: Ints, model: Model, settings: FitSettings) -> Floats:
    """m of each pair by a model trained on the other half of the units, to scale, shape (n,).

    Args:
        train: 2n documents.
        units: unit of each pair, shape (n,), at least two different ones.
        model: trained on all of them.
        settings: with which it was.
    """
    names = np.random.default_rng(settings.seed).permutation(np.unique(units))
    m = np.zeros(len(units))
    for fold in range(FOLDS):
        outside = np.isin(units, names[fold::FOLDS])
        inside, held = (train.rows(np.repeat(part, 2)) for part in (~outside, outside))
        m[outside] = margins(refit_pairs(inside, model, train.n_documents, settings).decide(held.matrix))
    return m * best_scale(m[:, None], np.zeros(1), np.ones(len(m), dtype=np.int64))


def pair_issues(train: Part, model: Model, settings: FitSettings) -> tuple[Finding | None, pl.DataFrame]:
    """The finding, if there are clear issues, and a table of the thousand clearest pairs: row, label, looks_like, margin, against
    (tokens of either answer that speak most for the rejected one).

    Args:
        train: the training pairs.
        model: trained on them.
        settings: with which it was.
    """
    corpus, counts = train.corpus, train.counts
    assert corpus.pairs is not None
    if len(np.unique(corpus.pairs.units)) < FOLDS:
        return None, pl.DataFrame()
    m = margins_of_others(counts, corpus.pairs.units, model, settings)
    f = against_other(np.column_stack([m / 2, -m / 2]).ravel())
    issues = confident_issues(probabilities(f), counts.labels)
    first = issues.documents % 2 == 0  # the preferred answer stands for its pair
    documents, margin = issues.documents[first], issues.margin[first]
    listed = documents[:LISTED]
    against = [_against(counts, model, int(i)) for i in listed]
    preferred = np.ones(len(listed), dtype=np.int64)
    table = issues_table(corpus, listed, preferred, 1 - preferred, margin[:LISTED], against)
    clear = int(np.count_nonzero(margin >= CLEAR))
    if not clear:
        return None, table
    share = Share.over(np.isin(np.arange(len(m)), documents[:clear] // 2), corpus.pairs.units)
    examples = tuple(first_words(corpus, int(i), corpus.classes[0]) for i in documents[:EXAMPLES])
    finding = Finding(
        FindingKind.LABELS, WEIGHT * share.value, evidence={"pairs": share}, documents=clear,
        rows=rows_of(documents[:clear], corpus), examples=examples,
    )  # fmt: skip
    return finding, table


def _against(counts: Counts, model: Model, preferred: int) -> str:
    """The tokens that take most from the margin of a pair, whichever answer holds them."""
    u, w = model.table
    matrix = with_sink(sp.csr_array(counts.matrix[preferred : preferred + 2]))
    parts = attention(matrix, u) * w[matrix.indices, 0]
    parts[matrix.indptr[1] :] *= -1
    push = np.bincount(matrix.indices, parts, matrix.shape[1])[:-1]
    least = [s for s in np.argsort(push, kind="stable")[:AGAINST] if push[s] < 0]
    return ", ".join(str(counts.tokens[s]) for s in least)


def pair_accuracy_without(
    findings: list[Finding], learned: CorpusModel, settings: FitSettings
) -> tuple[Share, Share] | None:
    """Accuracy over test pairs with all token types, and of the same model trained without those of the shortcuts, bins of length
    included where length is one; None without shortcuts, or where nothing else is left.

    Args:
        findings: of kind shortcut.
        learned: the model, and what it was trained and tested on.
        settings: with which it was.
    """
    train, test = learned.train.counts, learned.test.counts
    tokens = {token for finding in findings for token in finding.tokens}
    if any(not finding.tokens for finding in findings):
        tokens |= {str(token) for token in train.tokens if str(token).startswith("⟨length ")}
    keep = types_without(train, tokens)
    if keep is None:
        return None
    part, held = (Counts(sp.csr_array(c.matrix[:, keep]), c.labels, c.classes, c.tokens[keep]) for c in (train, test))
    without = refit_pairs(part, learned.model, train.n_documents, settings)
    assert learned.test.corpus.pairs is not None
    units = learned.test.corpus.pairs.units
    right = named_rightly(learned.f[::2, 0]), named_rightly(margins(without.decide(held.matrix)))
    return Share.over(right[0], units), Share.over(right[1], units)
