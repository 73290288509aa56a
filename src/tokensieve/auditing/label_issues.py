"""Documents that may carry the wrong label: answers of models that never saw them, and confident learning.

With out-of-fold probabilities p_i(k) and labels y_i, the threshold of class k is the mean of p_i(k) over the documents labelled k.
A document is an issue if some other class reaches its threshold, the largest such class being what it looks like; issues are ranked
by their margin p_i(looks like) − p_i(y_i)  (Northcutt, Jiang, Chuang 2021, section 3.1: the off-diagonal of the confident joint).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from tokensieve.auditing.context import AROUND, Passage
from tokensieve.auditing.findings import Finding, FindingKind, rows_of
from tokensieve.evidence.shares import Share
from tokensieve.model.settings import TrainSettings
from tokensieve.model.trained import Model
from tokensieve.task.interface import Part, Task
from tokensieve.text.corpus import Corpus
from tokensieve.text.counts import Floats, Ints

LISTED = 1_000
EXAMPLES = 5
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


def label_issues(task: Task, train: Part, model: Model, settings: TrainSettings) -> tuple[Finding | None, pl.DataFrame]:
    """The finding, if there are clear issues, and a table of the thousand clearest items.

    The table has a row per document (of pairs, per pair): row, label, looks_like, margin, against (the tokens that speak most
    against the label).

    A pair is one document twice over, its preferred answer of class "chosen" and the other of class "rejected"; by symmetry
    both have the same probability and the same threshold, so that the preferred answer stands for its pair.
    """
    counts, corpus = train.counts, train.corpus
    p = task.out_of_fold(train, model, settings)
    if p is None:
        return None, pl.DataFrame()
    issues = confident_issues(p, counts.labels)
    items = task.items(counts.n_documents)
    first = np.isin(issues.documents, items)
    documents, looks, margin = issues.documents[first], issues.looks_like[first], issues.margin[first]
    listed, others = documents[:LISTED], looks[:LISTED]
    names = pl.Series([str(name) for name in corpus.classes], dtype=pl.String)
    table = pl.DataFrame(
        {
            "row": corpus.rows[listed],
            "label": names.gather(counts.labels[listed]),
            "looks_like": names.gather(others),
            "margin": pl.Series(margin[:LISTED]).round(4),
            "against": pl.Series(task.against(counts, model, listed, others), dtype=pl.String),
        }
    )
    clear = int(np.count_nonzero(margin >= CLEAR))
    if not clear:
        return None, table
    share = Share.over(np.isin(items, documents[:clear]), None if task.single else task.units(corpus))
    found = documents[:clear]
    examples = tuple(
        first_words(corpus, int(i), corpus.classes[k]) for i, k in zip(found[:EXAMPLES], looks, strict=False)
    )
    finding = Finding(
        FindingKind.LABELS,
        WEIGHT * share.value,
        evidence={f"{task.noun}s": share},
        documents=clear,
        rows=rows_of(found, corpus),
        examples=examples,
    )
    return finding, table


def first_words(corpus: Corpus, i: int, looks_like: str) -> Passage:
    """The start of a document whose label is in doubt."""
    text = str(corpus.texts[i])
    cut = text if len(text) <= 3 * AROUND else text[: 3 * AROUND] + "…"
    return Passage(int(corpus.rows[i]), corpus.classes[corpus.labels[i]], "", "", cut, looks_like)
