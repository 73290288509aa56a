"""Findings that need no model: the same text on both sides of the split or under two labels, unequal classes, empty texts."""

from __future__ import annotations

import numpy as np
import polars as pl

from tokensieve.auditing.context import AROUND, Passage
from tokensieve.auditing.findings import Finding, FindingKind, Share, rows_of
from tokensieve.text.corpus import Corpus
from tokensieve.text.counts import Counts

FEW = 20  # documents of a class, of which no accuracy can be told
UNEQUAL = 10  # times the smallest class
EXAMPLES = 3


def data_checks(train: Corpus, test: Corpus, counts: dict[str, Counts]) -> list[Finding]:
    """Leaks, contradictions, imbalance, empty texts: those that there are.

    Args:
        train, test: the two sides of the split.
        counts: "train" and "test" → their counts.
    """
    found = [
        leak(train, test),
        contradictions(train, test),
        imbalance(train),
        empty({"train": train, "test": test}, counts),
    ]
    return [finding for finding in found if finding]


def leak(train: Corpus, test: Corpus) -> Finding | None:
    """Test documents whose very text is among the training documents."""
    known = test.keys.is_in(train.keys.implode()).to_numpy()
    if not known.any():
        return None
    rows = np.flatnonzero(known)
    twins = np.flatnonzero(train.keys.is_in(test.keys.implode()).to_numpy())
    listed = pl.concat([rows_of(rows, test, "test"), rows_of(twins, train)])
    share = Share.count(len(rows), len(test.texts))
    examples = tuple(_start(test, int(i)) for i in rows[:EXAMPLES])
    return Finding(
        FindingKind.LEAK, share.value, evidence={"test": share}, documents=len(rows), rows=listed, examples=examples
    )


def contradictions(train: Corpus, test: Corpus) -> Finding | None:
    """Documents whose very text occurs with another label too."""
    sizes = len(train.texts), len(test.texts)
    frame = pl.DataFrame(
        {"key": pl.concat([train.keys, test.keys]), "label": np.concatenate([train.labels, test.labels])}
    ).with_row_index("i")
    odd = frame.filter(pl.col("label").n_unique().over("key") > 1).sort("key", "i")
    if odd.is_empty():
        return None
    i = odd["i"].to_numpy().astype(np.int64)
    sides = i[i < sizes[0]], i[i >= sizes[0]] - sizes[0]
    rows = pl.concat([rows_of(sides[0], train), rows_of(sides[1], test, "test")])
    share = Share.count(len(i), sum(sizes))
    examples = tuple(
        _start(train, int(k)) if k < sizes[0] else _start(test, int(k - sizes[0])) for k in i[: 2 * (EXAMPLES - 1)]
    )
    return Finding(
        FindingKind.CONTRADICTION,
        share.value,
        evidence={"documents": share},
        documents=len(i),
        rows=rows,
        examples=examples,
    )


def imbalance(train: Corpus) -> Finding | None:
    """The smallest class has fewer than 20 training documents, or a tenth of the largest or less."""
    sizes = np.bincount(train.labels, minlength=len(train.classes))
    least = int(np.argmin(sizes))
    if sizes[least] >= FEW and sizes.max() < UNEQUAL * sizes[least]:
        return None
    share = Share.count(int(sizes[least]), int(sizes.sum()))
    tiny = sizes[least] < FEW
    label, documents = train.classes[least], int(sizes[least])
    return Finding(
        FindingKind.IMBALANCE, 0.02 if tiny else 0.01, label, evidence={"class": share}, documents=documents,
        rows=rows_of(np.flatnonzero(train.labels == least), train),
    )  # fmt: skip


def empty(parts: dict[str, Corpus], counts: dict[str, Counts]) -> Finding | None:
    """Documents without a single token that the model knows: they are answered by the class frequencies alone."""
    nothing = {part: np.flatnonzero(np.diff(c.matrix.indptr) == 0) for part, c in counts.items()}
    documents = sum(len(rows) for rows in nothing.values())
    if not documents:
        return None
    share = Share.count(documents, sum(c.n_documents for c in counts.values()))
    rows = pl.concat([rows_of(nothing[part], corpus, part) for part, corpus in parts.items()])
    examples = tuple(_start(parts[part], int(i)) for part in parts for i in nothing[part][:EXAMPLES])[:EXAMPLES]
    return Finding(
        FindingKind.EMPTY,
        0.5 * share.value,
        evidence={"documents": share},
        documents=documents,
        rows=rows,
        examples=examples,
    )


def _start(corpus: Corpus, i: int) -> Passage:
    text = str(corpus.texts[i])
    cut = text if len(text) <= 2 * AROUND else text[: 2 * AROUND] + "…"
    return Passage(int(corpus.rows[i]), corpus.classes[corpus.labels[i]], "", "", cut)
