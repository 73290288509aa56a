"""The documents of a diagnosis: all of them as counts, and those that the model reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from tokensieve.diagnose.encoding import SEPARATOR
from tokensieve.errors import InputError
from tokensieve.text.corpus import Corpus, read_corpus
from tokensieve.text.counts import Counts, Ints
from tokensieve.text.fields import split_fields
from tokensieve.text.pairs import read_pairs
from tokensieve.text.tokenizers import Tokenizer
from tokensieve.text.vocabulary import count_corpus, count_texts

GROUPS = 50


@dataclass(frozen=True)
class Documents:
    """A corpus as a model is diagnosed on it.

    Attributes:
        corpus: of pairs of texts each document holds both, with SEPARATOR between.
        paired: whether documents are pairs of texts.
        partner: of preference data, the other document of each one's pair, shape (n,); else None.
        prompts: what the model reads before each document, shape (n,); its words are never measured. None without.
        notes: what a reader should know.
    """

    corpus: Corpus
    paired: bool = False
    partner: Ints | None = None
    prompts: pl.Series | None = None
    notes: tuple[str, ...] = ()


def documents_of(texts: Sequence[Any], labels: Sequence[Any] | None, name: str) -> Documents:
    """Texts with labels; pairs of texts with labels; or (chosen, rejected) pairs without.

    Args:
        texts: n texts, or n pairs of texts.
        labels: n labels; None for preference pairs.
        name: of the source, for people.

    Raises:
        InputError: a text or label cannot be used, or there are neither labels nor pairs.
    """
    paired = len(texts) > 0 and not isinstance(texts[0], str) and len(texts[0]) == 2
    if labels is None:
        if not paired:
            raise InputError("without labels the documents must be pairs (chosen, rejected): give labels, or pairs")
        sides = pl.DataFrame({side: [str(pair[i]) for pair in texts] for i, side in enumerate(("chosen", "rejected"))})
        corpus = read_pairs(sides, pairs=("chosen", "rejected"))
        return documents_from(replace(corpus, name=name))
    if paired:
        joined = [SEPARATOR.join(_one_side(side) for side in pair) for pair in texts]
        return Documents(replace(read_corpus((joined, labels)), name=name), True)
    return documents_from(replace(read_corpus((texts, labels)), name=name))


def documents_from(corpus: Corpus, prompted: bool = False) -> Documents:
    """A corpus that was read from a source: of one with a test part that part, two fields as pairs of texts.

    Args:
        corpus: of texts, of two fields, or of preference pairs.
        prompted: of preference pairs, whether the model reads their unit, the prompt, before each answer.

    Raises:
        InputError: texts of three fields or more.
    """
    notes: tuple[str, ...] = ()
    if corpus.test is not None:
        corpus = corpus.test
        notes = ("only the test part of the source is used; the model may know the other",)
    notes = (*corpus.intake.lines(), *notes)
    if corpus.pairs is not None:
        names, units = corpus.pairs.names, np.repeat(corpus.pairs.units, 2)
        prompts = pl.Series([_one_side(names[unit]) for unit in units], dtype=pl.String) if prompted else None
        return Documents(corpus, prompts is not None, np.arange(len(corpus.labels)) ^ 1, prompts, notes)
    if not corpus.fields:
        return Documents(corpus, notes=notes)
    if len(corpus.fields) > 2:
        raise InputError(
            f"a transformer reads one text, or two together, not {len(corpus.fields)} fields: give --text once or twice"
        )
    texts = pl.Series("text", [_joined(corpus.fields, text) for text in corpus.texts.to_list()], dtype=pl.String)
    return Documents(corpus.with_texts(texts), True, notes=notes)


def _one_side(text: Any) -> str:
    return str(text).replace(SEPARATOR, " ")


def _joined(fields: Sequence[str], text: str) -> str:
    """Two fields, read as one text, as a pair."""
    parts = [text[start:end] for _, start, end in split_fields(fields, text)[-2:]]
    return SEPARATOR.join(_one_side(part).strip() for part in parts)


@dataclass(frozen=True)
class Sample:
    """All documents as counts, and those that the model reads.

    Attributes:
        counts: all documents over the words frequent enough in those read.
        words: those words.
        splitter: what a word is.
        texts, labels, rows: the documents read, their classes and rows in the source.
        groups: group of every document.
        n_groups: G.
        read: index of those read, ascending.
        order: places among those read, such that every beginning holds the classes in proportion, shape (n read,).
        partner: of preference data, the place among those read of each one's partner; else None.
        prompts: what the model reads before each document read; None without.
        notes: what a reader should know.
    """

    counts: Counts
    words: tuple[str, ...]
    splitter: Tokenizer
    texts: pl.Series
    labels: Ints
    rows: Ints
    groups: Ints
    n_groups: int
    read: Ints
    order: Ints
    partner: Ints | None
    prompts: pl.Series | None
    notes: list[str]

    @property
    def inputs(self) -> pl.Series:
        """What the model reads, prompts included."""
        return self.texts if self.prompts is None else self.prompts + SEPARATOR + self.texts

    def identity(self) -> list[Any]:
        """What of the documents decides the result."""
        return [self.counts, self.groups, self.read, self.inputs.to_list()]

    def few(self, most: int) -> Ints:
        """Places among the documents read of at most this many, the classes in proportion."""
        return self.order[:most]


def draw_sample(documents: Documents, splitter: Tokenizer, min_documents: int, max_documents: int, seed: int) -> Sample:
    """Draw the documents that the model reads, and deal all documents into groups, both in proportion to the classes.

    Args:
        documents: all of them.
        splitter: what a word is.
        min_documents: a word must occur in this many of the documents read.
        max_documents: the model reads at most this many.
        seed: of the draw.

    Raises:
        InputError: fewer than eight documents of two classes, or no word is frequent enough.
    """
    corpus, partner = documents.corpus, documents.partner
    n = len(corpus.labels)
    order = _order(corpus.labels, partner, seed)
    read = np.sort(order[: max_documents - (max_documents % 2 if partner is not None else 0)])
    n_groups = min(GROUPS, len(read) // 2)
    if len(np.unique(corpus.labels[read])) < 2 or n_groups < 4:
        raise InputError(f"{len(read)} documents are too few to diagnose a model: give at least 8, of two classes")
    groups = np.empty(n, dtype=np.int64)
    groups[order] = (np.arange(n) // (1 if partner is None else 2)) % n_groups
    chosen = corpus.texts.filter(pl.Series(np.isin(np.arange(n), read)))
    texts = pl.Series("text", chosen.to_list(), dtype=pl.String)  # also where a large source keeps its texts in a file
    try:
        vocabulary = count_texts(texts, tokenizer=splitter, min_documents=min_documents).vocabulary
    except InputError:
        raise InputError(
            f"no word occurs in {min_documents} of the {len(read):,} documents read: lower --min-documents, or, where words are "
            "not written apart (Chinese, Japanese, Thai), take the model's pieces as words with --tokenizer model"
        ) from None
    counts = count_corpus(corpus, vocabulary).counts
    notes = []
    if len(read) < n:
        notes.append(
            f"the model reads {len(read):,} of {n:,} documents, drawn at random (--max-documents); importance in the "
            "data comes from all"
        )
    mates = None if partner is None else np.searchsorted(read, partner[read])
    prompts = None if documents.prompts is None else documents.prompts.gather(read)
    return Sample(
        counts, vocabulary.words, splitter, texts, corpus.labels[read], corpus.rows[read], groups, n_groups, read,
        np.searchsorted(read, order[: len(read)]), mates, prompts, notes,
    )  # fmt: skip


def _order(labels: Ints, partner: Ints | None, seed: int) -> Ints:
    """Documents in an order of which every beginning holds the classes in proportion, and pairs together."""
    rng, n = np.random.default_rng(seed), len(labels)
    if partner is not None:
        first = 2 * rng.permutation(n // 2)
        return np.column_stack([first, first + 1]).ravel()
    place = np.empty(n)
    for k in range(int(labels.max()) + 1):
        of_class = np.flatnonzero(labels == k)
        place[of_class] = (rng.permutation(len(of_class)) + 0.5) / max(len(of_class), 1)
    return np.argsort(place, kind="stable")
