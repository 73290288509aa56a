"""Findings that need no model: the same text on both sides of the split or under two labels, unequal classes, empty texts."""

from __future__ import annotations

import numpy as np
import polars as pl
import scipy.sparse as sp

from tokensieve.auditing.context import AROUND, Passage
from tokensieve.auditing.findings import Finding, FindingKind, rows_of
from tokensieve.evidence.drift import drift
from tokensieve.evidence.duplicates import Duplicates, near_duplicates
from tokensieve.evidence.importance import merged
from tokensieve.evidence.intervals import LEVEL
from tokensieve.evidence.shares import Share
from tokensieve.text.corpus import Corpus
from tokensieve.text.counts import Counts, Ints
from tokensieve.text.tokenizers import Tokenizer
from tokensieve.text.tokens import tokenize

FEW = 20  # documents of a class, of which no accuracy can be told
UNEQUAL = 10  # times the smallest class
EXAMPLES = 3
COPIES = 0.01  # of the training documents
UNSURE = 0.3  # of the weight of a document whose answer is in doubt
MOVED, TWICE = 0.01, 2.0  # share of the documents of one side, and how many times the other's share of the text
SIDES = ("before", "after")


def data_checks(
    parts: dict[str, Corpus], counts: dict[str, Counts], words: int, near: Duplicates | None = None
) -> list[Finding]:
    """Leaks, contradictions, imbalance, empty and repeated texts: those that there are.

    Args:
        parts: "train" and "test" → the two sides of the split.
        counts: their counts.
        words: types that are words or n-grams, the others being formatting.
        near: near duplicates among the documents of both, training first; None to look for identical texts only.
    """
    train, test = parts["train"], parts["test"]
    found = [leak(train, test, near), contradictions(train, test), imbalance(train), empty(parts, counts, words)]
    found += [repeated(train, near)] if near is not None and train.by is None else []
    return [finding for finding in found if finding]


def near_copies(parts: dict[str, Corpus], tokenizer: Tokenizer) -> Duplicates:
    """Near duplicates among the training documents and, behind them, the test documents."""
    streams = (stream for name in ("train", "test") for stream in tokenize(parts[name].texts, tokenizer))
    return near_duplicates(streams)


def leak(train: Corpus, test: Corpus, near: Duplicates | None = None) -> Finding | None:
    """Test documents whose text, or nearly their text, is among the training documents."""
    same = test.keys.is_in(train.keys.implode()).to_numpy()
    twin = train.keys.is_in(test.keys.implode()).to_numpy()
    known = same.copy()
    if near is not None:
        n = len(train.texts)
        inside = np.arange(len(near.first)) >= n
        known[near.across(inside) - n] = True
        twin[near.across(~inside)] = True
    if not known.any():
        return None
    rows = np.flatnonzero(known)
    listed = pl.concat([rows_of(rows, test, "test"), rows_of(np.flatnonzero(twin), train)])
    share = Share.count(len(rows), len(test.texts))
    evidence = {"test": share, "identical": Share.count(int(same.sum()), len(test.texts))}
    examples = tuple(_start(test, int(i)) for i in rows[:EXAMPLES])
    return Finding(
        FindingKind.LEAK, share.value, evidence=evidence, documents=len(rows), rows=listed, examples=examples
    )


def repeated(train: Corpus, near: Duplicates) -> Finding | None:
    """Training documents that repeat an earlier one, nearly or word for word, if they are 1 % or more: counted as evidence of their
    own, they make chance look like evidence.

    Args:
        train: the training documents, of which no units are known.
        near: near duplicates among the training documents and, behind them, others.
    """
    n = len(train.texts)
    again = np.flatnonzero(near.first[:n] != np.arange(n))
    share = Share.count(len(again), n)
    if share.value < COPIES:
        return None
    pairs = [i for k in again[:EXAMPLES].tolist() for i in (int(near.first[k]), k)]
    examples = tuple(_start(train, i) for i in dict.fromkeys(pairs))[:EXAMPLES]
    return Finding(
        FindingKind.REPEATED, UNSURE * share.value, evidence={"documents": share}, documents=len(again),
        rows=rows_of(again, train), examples=examples,
    )  # fmt: skip


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


def empty(parts: dict[str, Corpus], counts: dict[str, Counts], words: int) -> Finding | None:
    """Documents without a single word that the model knows: they are answered by the class frequencies, and formatting, alone."""
    nothing = {part: _wordless(c.matrix, words) for part, c in counts.items()}
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


def _wordless(matrix: sp.csr_array, words: int) -> Ints:
    """Documents whose first type, in a row of sorted types, is none of the `words` first ones."""
    first = np.append(matrix.indices, words)[matrix.indptr[:-1]]
    return np.flatnonzero((np.diff(matrix.indptr) == 0) | (first >= words))


def _start(corpus: Corpus, i: int) -> Passage:
    text = str(corpus.texts[i])
    cut = text if len(text) <= 2 * AROUND else text[: 2 * AROUND] + "…"
    return Passage(int(corpus.rows[i]), corpus.classes[corpus.labels[i]], "", "", cut)


def drifted(
    before: Counts, after: Counts, words: int, units: tuple[Ints | None, Ints | None] = (None, None)
) -> Finding | None:
    """Tokens that are at least twice as frequent on one side as on the other, in at least 1 % of its documents.

    Only for a test set that was given: of a split by chance it could find nothing but chance.

    Args:
        before, after: training and test documents.
        words: types that are words or n-grams, the others being formatting.
        units: the unit of each document of either side, where documents belong together: the units are what is compared.
    """
    sides = [c if of is None else merged(c, of)[0] for c, of in zip((before, after), units, strict=True)]
    table = drift(sides[0], sides[1], before.n_types - words).filter(pl.col("q_value") < LEVEL)
    sizes = sides[0].n_documents, sides[1].n_documents
    often = (pl.col("documents_before") >= MOVED * sizes[0]) | (pl.col("documents_after") >= MOVED * sizes[1])
    low, high = (
        pl.min_horizontal(f"share_{side}" for side in SIDES),
        pl.max_horizontal(f"share_{side}" for side in SIDES),
    )
    table = table.filter(often, high >= TWICE * low).sort(pl.col("difference").abs(), descending=True)
    if table.is_empty():
        return None
    first = table.row(0, named=True)
    at = int(np.flatnonzero(before.tokens == first["token"])[0])
    holders = [np.unique(c.matrix[:, [at]].nonzero()[0]) for c in (before, after)]
    evidence = {
        side: Share.over(np.isin(np.arange(c.n_documents), held), of)
        for side, c, held, of in zip(SIDES, (before, after), holders, units, strict=True)
    }
    severity = min(0.05, 0.1 * max(share.value for share in evidence.values()))
    documents = sum(map(len, holders))
    return Finding(
        FindingKind.DRIFT, severity, tokens=tuple(table["token"].head(50)), evidence=evidence, documents=documents
    )
