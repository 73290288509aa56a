"""Documents that may carry the wrong label: answers of models that never saw them, and confident learning.

With out-of-fold probabilities p_i(k) and labels y_i, the threshold of class k is the mean of p_i(k) over the documents labelled k.
A document is an issue if some other class reaches its threshold, the largest such class being what it looks like; issues are ranked
by their margin p_i(looks like) − p_i(y_i)  (Northcutt, Jiang, Chuang 2021, section 3.1: the off-diagonal of the confident joint).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from sklearn.model_selection import StratifiedKFold

from tokensieve.auditing.context import AROUND, Passage
from tokensieve.auditing.findings import Finding, FindingKind, Share, rows_of
from tokensieve.auditing.refit import refit
from tokensieve.model.attention import attention
from tokensieve.model.choice import best_scale
from tokensieve.model.decision import both, probabilities
from tokensieve.model.fit import FitSettings
from tokensieve.model.start import prior_of
from tokensieve.model.trained import Model
from tokensieve.text.corpus import Corpus
from tokensieve.text.counts import Counts, Floats, Ints
from tokensieve.text.split import unit_folds

FOLDS, MORE_FOLDS = 2, 5
FEW = 5_000  # documents, up to which the larger number of parts takes seconds
LISTED = 1_000
EXAMPLES = 5
AGAINST = 4  # tokens named
CLEAR = 0.8  # margin of an issue that is counted; the others are only documents that are hard to answer
WEIGHT = 0.3  # of an issue beside a document that a shortcut answers


@dataclass(frozen=True)
class LabelIssues:
    """Documents whose label the others contradict, the clearest first.

    Attributes:
        documents: indices into the training documents, shape (m,).
        looks_like: class index that each looks like, shape (m,).
        margin: by how much its probability exceeds that of the label, shape (m,).
    """

    documents: Ints
    looks_like: Ints
    margin: Floats


def out_of_fold(train: Counts, model: Model, settings: FitSettings, units: Ints | None = None) -> Floats:
    """Probabilities, shape (n, K), of each document by a model trained on the other half (of up to 5,000 documents on the other
    four fifths), as long as `model` was. Their scale, one number that was chosen for `model` alone, is that of least loss over all.

    Args:
        train: the documents.
        model: trained on all of them.
        settings: with which it was.
        units: the unit of each document, where documents belong together; whole units are in one part.
    """
    f = np.zeros((train.n_documents, model.values.shape[1]))
    k = MORE_FOLDS if train.n_documents <= FEW and _divisible(train, units, MORE_FOLDS) else FOLDS
    parts = unit_folds(units, train.labels, k, settings.seed) if units is not None else None
    for inside, outside in parts or StratifiedKFold(k, shuffle=True, random_state=settings.seed).split(f, train.labels):
        other = refit(train.rows(inside), model, train.n_documents, settings)
        f[outside] = other.decide(train.rows(outside).matrix)
    prior = prior_of(train.weighed[1])
    return probabilities(prior + best_scale(f, prior, train.labels, train.weights) * (f - prior))


def _divisible(train: Counts, units: Ints | None, k: int) -> bool:
    """Whether every class has k documents, and of at least k units, so that a model of one part can know it."""
    pairs = train.labels if units is None else np.unique(np.stack([train.labels, units]), axis=1)[0]
    return int(np.bincount(pairs, minlength=train.n_classes)[train.class_sizes > 0].min()) >= k


def confident_issues(p: Floats, labels: Ints) -> LabelIssues:
    """The issues among documents (module formula).

    Args:
        p: out-of-fold probabilities, shape (n, K).
        labels: class indices, shape (n,); every class has a document.
    """
    k = p.shape[1]
    threshold = np.array([p[labels == j, j].mean() if (labels == j).any() else np.inf for j in range(k)])
    others = np.where((p >= threshold) & (np.arange(k) != labels[:, None]), p, -1.0)
    looks_like = others.argmax(axis=1)
    margin = others.max(axis=1) - p[np.arange(len(p)), labels]
    found = np.flatnonzero((others.max(axis=1) >= 0) & (margin > 0))
    order = found[np.argsort(-margin[found], kind="stable")]
    return LabelIssues(order, looks_like[order], margin[order])


def label_issues(
    train: Counts, corpus: Corpus, model: Model, settings: FitSettings
) -> tuple[Finding | None, pl.DataFrame]:
    """The finding, if there are clear issues, and a table of the thousand clearest documents.

    The table has a row per document: row, label, looks_like, margin, against (the tokens that speak most against the label).
    """
    if not _divisible(train, corpus.units, FOLDS):
        return None, pl.DataFrame()
    issues = confident_issues(out_of_fold(train, model, settings, corpus.units), train.labels)
    table = _table(issues, train, corpus, model)
    clear = int(np.count_nonzero(issues.margin >= CLEAR))
    if not clear:
        return None, table
    share = Share.count(clear, train.n_documents)
    documents = issues.documents[:clear]
    pairs = zip(documents[:EXAMPLES], issues.looks_like, strict=False)
    examples = tuple(first_words(corpus, int(i), corpus.classes[k]) for i, k in pairs)
    rows, evidence = rows_of(documents, corpus), {"documents": share}
    finding = Finding(
        FindingKind.LABELS, WEIGHT * share.value, evidence=evidence, documents=clear, rows=rows, examples=examples
    )
    return finding, table


def _table(issues: LabelIssues, train: Counts, corpus: Corpus, model: Model) -> pl.DataFrame:
    documents, looks = issues.documents[:LISTED], issues.looks_like[:LISTED]
    part = train.rows(documents)
    q, values, m = attention(part.matrix, model.scores), both(model.values), part.matrix
    against = []
    for i, (label, other) in enumerate(zip(part.labels, looks, strict=True)):
        inside = slice(m.indptr[i], m.indptr[i + 1])
        types = m.indices[inside]
        push = q[inside] * (values[types, other] - values[types, label])
        against.append(", ".join(str(train.tokens[types[t]]) for t in np.argsort(-push)[:AGAINST]))
    return issues_table(corpus, documents, part.labels, looks, issues.margin[:LISTED], against)


def issues_table(
    corpus: Corpus, documents: Ints, labels: Ints, looks: Ints, margin: Floats, against: list[str]
) -> pl.DataFrame:  # fmt: skip
    """A row per document (of pairs, per pair): row, label, looks_like, margin, against.

    Args:
        corpus: the documents.
        documents: which of them, shape (m,).
        labels, looks: class indices, shape (m,).
        margin: shape (m,).
        against: the tokens that speak most against the label, m of them.
    """
    names = pl.Series([str(name) for name in corpus.classes], dtype=pl.String)
    return pl.DataFrame(
        {
            "row": corpus.rows[documents],
            "label": names.gather(labels),
            "looks_like": names.gather(looks),
            "margin": pl.Series(margin).round(4),
            "against": pl.Series(against, dtype=pl.String),
        }
    )


def first_words(corpus: Corpus, i: int, looks_like: str) -> Passage:
    """The start of a document whose label is in doubt."""
    text = str(corpus.texts[i])
    cut = text if len(text) <= 3 * AROUND else text[: 3 * AROUND] + "…"
    return Passage(int(corpus.rows[i]), corpus.classes[corpus.labels[i]], "", "", cut, looks_like)
