"""The documents of a diagnosis: all of them as counts, and those that the model reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tokensieve.diagnose.subjects.windows import SEPARATOR
from tokensieve.errors import InputError
from tokensieve.text.corpus import Corpus, read_corpus
from tokensieve.text.counts import Counts, Ints
from tokensieve.text.formatting import split_fields
from tokensieve.text.pairs import read_pairs
from tokensieve.text.tokenizers import Tokenizer
from tokensieve.text.vocabulary import count_texts

_GROUPS = 50  # of documents, for jackknives
_RARE = 5_000  # rare words that are looked at, the most frequent first


def corpus_of(texts: Sequence[Any], labels: Sequence[Any] | None, name: str) -> Corpus:
    """Texts with labels, pairs of texts with labels, or (chosen, rejected) pairs without, as a corpus.

    Raises:
        InputError: a text or label cannot be used, or there are neither labels nor pairs.
    """
    paired = len(texts) > 0 and not isinstance(texts[0], str) and len(texts[0]) == 2
    if labels is None:
        if not paired:
            raise InputError("without labels the documents must be pairs (chosen, rejected): give labels, or pairs")
        sides = pl.DataFrame({side: [str(pair[i]) for pair in texts] for i, side in enumerate(("chosen", "rejected"))})
        corpus = read_pairs(sides, pairs=("chosen", "rejected"))
    elif paired:
        sides = pl.DataFrame({side: [str(pair[i]) for pair in texts] for i, side in enumerate(("first", "second"))})
        corpus = read_corpus(sides.with_columns(label=pl.Series(labels)), text=["first", "second"], label="label")
    else:
        corpus = read_corpus((texts, labels))
    return replace(corpus, name=name)


@dataclass(frozen=True)
class Sample:
    """All documents as counts, and those that the model reads.

    Attributes:
        corpus: all documents; of pairs of texts each holds both, with SEPARATOR between.
        counts: of all documents over `words`.
        words: the frequent words, then rare ones, each in alphabetical order.
        frequent: which of `words` occur in enough of the documents read.
        splitter: what a word is.
        texts, labels: the documents read, and their classes.
        groups: group of every document.
        read: index of those read, ascending.
        order: places among those read, such that every beginning holds the classes in proportion, shape (n read,).
        paired: whether documents are pairs of texts.
        partner: of preference data, the place among those read of each one's partner; else None.
        prompts: what the model reads before each document read; its words are never measured. None without.
        distinct: distinct words in all documents.
        notes: what a reader should know.
    """

    corpus: Corpus
    counts: Counts
    words: tuple[str, ...]
    frequent: NDArray[np.bool_]
    splitter: Tokenizer
    texts: pl.Series
    labels: Ints
    groups: Ints
    read: Ints
    order: Ints
    paired: bool
    partner: Ints | None
    prompts: pl.Series | None
    distinct: int
    notes: tuple[str, ...]

    @classmethod
    def draw(
        cls,
        corpus: Corpus,
        splitter: Tokenizer,
        min_documents: int,
        max_documents: int,
        seed: int,
        prompted: bool = False,
    ) -> Sample:
        """Draw the documents that the model reads, and assign all documents to groups, both in proportion to the classes.

        Args:
            corpus: texts, two fields, or preference pairs; of one with a test part that part is used.
            splitter: what a word is.
            min_documents: a frequent word occurs in this many of the documents read.
            max_documents: the model reads at most this many.
            seed: of the draw.
            prompted: of preference pairs, whether the model reads their unit, the prompt, before each answer.

        Raises:
            InputError: fewer than eight documents of two classes, texts of three fields, or no word is frequent enough.
        """
        corpus, partner, prompts, notes = _as_read(corpus, prompted)
        paired = prompts is not None or len(corpus.fields) == 2
        if corpus.fields:
            sides = [_joined(corpus.fields, text) for text in corpus.texts.to_list()]
            corpus = corpus.with_texts(pl.Series("text", sides, dtype=pl.String))
        n = len(corpus.labels)
        order = _order(corpus.labels, partner, seed)
        read = np.sort(order[: max_documents - (max_documents % 2 if partner is not None else 0)])
        n_groups = min(_GROUPS, len(read) // 2)
        if len(np.unique(corpus.labels[read])) < 2 or n_groups < 4:
            raise InputError(f"{len(read)} documents are too few to diagnose a model: give at least 8, of two classes")
        groups = np.empty(n, dtype=np.int64)
        groups[order] = (np.arange(n) // (1 if partner is None else 2)) % n_groups
        chosen = corpus.texts.filter(pl.Series(np.isin(np.arange(n), read)))
        counted = count_texts(corpus.texts, tokenizer=splitter)
        there = counted.matrix[read]
        held = np.bincount(there.indices, minlength=there.shape[1])
        often = np.bincount(counted.matrix.indices, minlength=there.shape[1])
        frequent = np.flatnonzero(held >= min_documents)
        if not len(frequent):
            raise InputError(
                f"no word occurs in {min_documents} of the {len(read):,} documents read: lower --min-documents, or, if words are "
                "not separated by spaces (Chinese, Japanese, Thai), take the model's pieces as words with --tokenizer model"
            )
        rare = np.flatnonzero((held < min_documents) & (held > 0) & (often >= 2))
        rare = np.sort(rare[np.argsort(-often[rare], kind="stable")[:_RARE]])
        kept = np.r_[frequent, rare]
        words = tuple(np.asarray(counted.vocabulary.words, dtype=object)[kept].tolist())
        tokens = np.asarray(words, dtype=object)
        matrix = counted.matrix[:, kept]
        matrix.sort_indices()
        if len(read) < n:
            drawn = f"the model reads {len(read):,} of {n:,} documents, drawn at random (--max-documents)"
            notes += (f"{drawn}; importance in the data comes from all",)
        return cls(
            corpus=corpus,
            counts=Counts(matrix, corpus.labels, corpus.classes, tokens),
            words=words,
            frequent=np.arange(len(kept)) < len(frequent),
            splitter=splitter,
            # also if a large source keeps its texts in a file
            texts=pl.Series("text", chosen.to_list(), dtype=pl.String),
            labels=corpus.labels[read],
            groups=groups,
            read=read,
            order=np.searchsorted(read, order[: len(read)]),
            paired=paired,
            partner=None if partner is None else np.searchsorted(read, partner[read]),
            prompts=None if prompts is None else prompts.gather(read),
            distinct=int((often > 0).sum()),
            notes=notes,
        )

    @property
    def n_groups(self) -> int:
        """G."""
        return int(self.groups.max()) + 1

    @property
    def inputs(self) -> pl.Series:
        """What the model reads, prompts included."""
        return self.texts if self.prompts is None else self.prompts + SEPARATOR + self.texts

    @property
    def identity(self) -> tuple[Any, ...]:
        """What of the documents decides the result."""
        return (*self.counts.identity, self.groups, self.read, self.inputs.to_list())

    def of_words(self, kept: Ints) -> Sample:
        """The same with some of the words."""
        words = tuple(self.words[s] for s in kept)
        matrix = self.counts.matrix[:, kept]
        matrix.sort_indices()
        counts = Counts(matrix, self.counts.labels, self.counts.classes, np.asarray(words, dtype=object))
        return replace(self, words=words, counts=counts, frequent=self.frequent[kept])


def _as_read(corpus: Corpus, prompted: bool) -> tuple[Corpus, Ints | None, pl.Series | None, tuple[str, ...]]:
    """The part that is used, partners and prompts of its documents, and what a reader should know."""
    notes: tuple[str, ...] = ()
    if corpus.test is not None:
        corpus = corpus.test
        notes = ("only the test part of the source is used; the model may know the other",)
    notes = (*corpus.intake.lines(), *notes)
    if len(corpus.fields) > 2:
        raise InputError(
            f"a transformer reads one text, or two together, not {len(corpus.fields)} fields: give --text once or twice"
        )
    if corpus.pairs is None:
        return corpus, None, None, notes
    names, units = corpus.pairs.names, np.repeat(corpus.pairs.units, 2)
    prompts = pl.Series([_one_side(names[unit]) for unit in units], dtype=pl.String) if prompted else None
    return corpus, np.arange(len(corpus.labels)) ^ 1, prompts, notes


def _one_side(text: Any) -> str:
    return str(text).replace(SEPARATOR, " ")


def _joined(fields: Sequence[str], text: str) -> str:
    """Two fields, read as one text, as a pair."""
    parts = [text[start:end] for _, start, end in split_fields(fields, text)[-2:]]
    return SEPARATOR.join(_one_side(part).strip() for part in parts)


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
