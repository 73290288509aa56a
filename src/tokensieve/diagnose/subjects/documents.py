"""The documents of a diagnosis: all of them as counts, and those that the model reads.

A **passage** is a run of tokens that many documents repeat, such as a disclaimer, a signature or a template. A model learns it as
a whole, and no single word of it shows that: it is therefore one word here, counted, removed and inserted whole, and its words
are not counted where they are part of it. Of 1,000 documents read, passages are maximal runs in which every GRAM tokens follow each
other in `min_documents` of them and in 1 %; they hold four different words at least, occur so often themselves, and belong
together: 80 % of the documents that contain the first or the last four tokens contain the whole.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import polars as pl

from tokensieve.arrays import Ints
from tokensieve.diagnose.subjects.windows import SEPARATOR, SPLITTER
from tokensieve.errors import InputError
from tokensieve.read.corpus import Corpus
from tokensieve.read.fields import split_fields
from tokensieve.text.counts import Counts
from tokensieve.text.tokenizers import Tokenizer
from tokensieve.text.vocabulary import count_texts

_GRAM = 6  # tokens of the shortest passage; ordinary phrases that many documents share are shorter
_WHOLE = (
    0.8  # of the documents that contain its first or last four tokens contain the whole passage
)


class Sample:
    """All documents as counts, and those that the model reads, drawn in proportion to the classes.

    A frequent word occurs in `min_documents` of at most `max_documents` read. Of a corpus with a test part that part is used; of
    preference pairs the model may be prompted: read their unit before each answer. Fewer than eight documents of two classes, texts
    of three fields, or no frequent word are an InputError.

    Attributes:
        corpus: all documents; of pairs of texts (`paired`) each holds both, with SEPARATOR between.
        counts: of all documents over `words`: the frequent, then the rare, each in alphabetical order; `frequent` tells which.
        groups, n_groups: group of every document, for jackknives, and their number.
        read, texts, labels: index of those read, ascending, and what they are.
        order: places among those read, such that every beginning holds the classes in proportion, shape (n read,).
        partner: of preference data, the place among those read of each one's partner; else None.
        prompts: what the model reads before each document read; its words are never measured. None without.
        distinct: distinct words in all documents. notes: what a reader should know.
    """

    def __init__(
        self,
        corpus: Corpus,
        splitter: Tokenizer,
        min_documents: int,
        max_documents: int,
        seed: int,
        prompted: bool = False,
    ) -> None:
        notes: list[str] = []
        if corpus.test is not None:
            corpus = corpus.test
            notes.append("only the test rows are used; the model may have seen the training rows")
        notes = [*corpus.intake.lines(), *notes]
        if corpus.columns:
            raise InputError(
                "--columns is for audit and train: a transformer reads the text alone; leave it out"
            )
        if len(corpus.fields) > 2:
            raise InputError(
                f"a transformer reads one text, or two together, not {len(corpus.fields)} fields: pass --text once or twice"
            )
        rng, n, pairs = np.random.default_rng(seed), len(corpus.labels), corpus.pairs
        step = 2 if pairs else 1  # documents that stay together: the two answers of a pair
        self.paired = len(corpus.fields) == 2 or (step == 2 and prompted)
        if corpus.fields:
            sides = [
                [_one_side(text[a:z]).strip() for _, a, z in split_fields(corpus.fields, text)[-2:]]
                for text in corpus.texts.to_list()
            ]
            corpus = corpus.with_texts(
                pl.Series("text", map(SEPARATOR.join, sides), dtype=pl.String)
            )
        # an order of which every beginning holds the classes in proportion, and pairs together
        if step == 2:
            order = np.add.outer(2 * rng.permutation(n // 2), [0, 1]).ravel()
        else:
            place = np.empty(n)
            for k in range(int(corpus.labels.max()) + 1):
                of_class = np.flatnonzero(corpus.labels == k)
                place[of_class] = (rng.permutation(len(of_class)) + 0.5) / max(len(of_class), 1)
            order = np.argsort(place, kind="stable")
        read = np.sort(order[: max_documents - max_documents % step])
        self.n_groups = min(50, len(read) // 2)
        if len(np.unique(corpus.labels[read])) < 2 or self.n_groups < 4:
            raise InputError(
                f"{len(read)} documents are too few to diagnose a model: pass at least 8, from two classes"
            )
        self.groups = np.empty(n, dtype=np.int64)
        self.groups[order] = np.arange(n) // step % self.n_groups
        if (
            splitter is SPLITTER and not self.paired
        ):  # a passage must not reach from one text of a pair into the other
            some = order[: min(len(read), 1000)]
            splitter = _PassageSplitter.with_passages(
                corpus.texts.gather(some), max(min_documents, len(some) // 100)
            )
        counted = count_texts(corpus.texts, tokenizer=splitter)
        in_read = np.bincount(counted.matrix[read].indices, minlength=counted.matrix.shape[1])
        in_all = np.bincount(counted.matrix.indices, minlength=len(in_read))
        frequent = np.flatnonzero(in_read >= min_documents)
        if not len(frequent):
            raise InputError(
                f"no word occurs in {min_documents} of the {len(read):,} documents read: lower --min-documents, or, if words are "
                "not separated by spaces (Chinese, Japanese, Thai), use the model's own tokens as words with --tokenizer model"
            )
        rare = np.flatnonzero((in_read < min_documents) & (in_read > 0) & (in_all >= 2))
        rare = np.sort(
            rare[np.argsort(-in_all[rare], kind="stable")[:5_000]]
        )  # the most frequent of them
        if len(read) < n:
            notes.append(
                f"the model reads {len(read):,} of {n:,} documents, drawn at random (--max-documents); word importance in the "
                "data is computed from all of them"
            )
        tokens = np.asarray(counted.vocabulary.words, dtype=object)
        self.corpus, self.splitter, self.notes, self.distinct = (
            corpus,
            splitter,
            notes,
            int((in_all > 0).sum()),
        )
        self.frequent = np.arange(len(frequent) + len(rare)) < len(frequent)
        self._keep_words(
            Counts(counted.matrix, corpus.labels, corpus.classes, tokens), np.r_[frequent, rare]
        )
        chosen = corpus.texts.filter(pl.Series(np.isin(np.arange(n), read)))
        # copied, since a large source keeps its texts in a file
        self.texts = pl.Series("text", chosen.to_list(), dtype=pl.String)
        self.labels, self.read, self.order = (
            corpus.labels[read],
            read,
            np.searchsorted(read, order[: len(read)]),
        )
        self.partner = np.searchsorted(read, read ^ 1) if pairs else None
        self.prompts: pl.Series | None = None
        if pairs and prompted:
            units = np.repeat(pairs.units, 2)[read]
            self.prompts = pl.Series(
                [_one_side(str(pairs.names[unit])) for unit in units], dtype=pl.String
            )

    @property
    def inputs(self) -> pl.Series:
        """The model's inputs, including prompts."""
        return self.texts if self.prompts is None else self.prompts + SEPARATOR + self.texts

    @property
    def identity(self) -> tuple[object, ...]:
        """The properties of the documents that affect the result."""
        return (*self.counts.identity, self.groups, self.read, self.inputs.to_list())

    def of_words(self, kept: Ints) -> Sample:
        """The same with some of the words."""
        out = copy.copy(self)
        out._keep_words(self.counts, kept)
        out.frequent = self.frequent[kept]
        return out

    def _keep_words(self, counts: Counts, kept: Ints) -> None:
        tokens, matrix = counts.tokens[kept], counts.matrix[:, kept]
        matrix.sort_indices()
        self.words: tuple[str, ...] = tuple(tokens.tolist())
        self.counts = Counts(matrix, counts.labels, counts.classes, tokens)


def _one_side(text: str) -> str:
    return text.replace(SEPARATOR, " ")


class _PassageSplitter:
    """Words and punctuation of a text, with passages (tuples of tokens → how they are written) as one token each."""

    def __init__(self, passages: dict[tuple[str, ...], str]) -> None:
        self._written, self._by_first = passages, dict[str, list[tuple[str, ...]]]()
        for passage in sorted(passages, key=len, reverse=True):
            self._by_first.setdefault(passage[0], []).append(passage)

    @classmethod
    def with_passages(cls, texts: pl.Series, least: int) -> Tokenizer:
        """A splitter with the passages that at least this many of the texts share; the plain splitter if there are none."""
        documents, seen = SPLITTER.split(texts).to_list(), dict[tuple[str, ...], set[int]]()

        def document_frequencies(n: int) -> Counter[tuple[str, ...]]:
            runs = (set(zip(*(tokens[i:] for i in range(n)), strict=False)) for tokens in documents)
            return Counter(run for some in runs for run in some)

        grams, fours = document_frequencies(_GRAM), document_frequencies(4)
        for k, tokens in enumerate(documents):
            often = [
                grams[run] >= least
                for run in zip(*(tokens[i:] for i in range(_GRAM)), strict=False)
            ]
            for frequent, places in groupby(range(len(often)), often.__getitem__):
                # frequent runs, one after the other, without the marks around them
                run = list(places)
                words = [
                    i for i in range(run[0], run[-1] + _GRAM) if frequent and tokens[i][0].isalnum()
                ]
                if len({tokens[i] for i in words}) >= 4 and words[-1] - words[0] >= _GRAM - 1:
                    seen.setdefault(tuple(tokens[words[0] : words[-1] + 1]), set()).add(k)
        lines = {passage: f" {' '.join(passage)} " for passage in seen}
        found: dict[tuple[str, ...], str] = {}
        for passage in sorted(
            (x for x in seen if len(seen[x]) >= least), key=lambda x: (-len(seen[x]), x)
        ):
            everywhere = set[int]().union(
                *(seen[other] for other in seen if lines[passage] in lines[other])
            )
            whole = len(everywhere) >= _WHOLE * max(fours[passage[:4]], fours[passage[-4:]])
            if whole and not any(lines[other] in lines[passage] for other in found):
                text = texts[min(seen[passage])]
                spans = cls({passage: lines[passage]}).spans(text)
                start, end = next(span[:2] for span in spans if span[2] == lines[passage])
                found[passage] = " ".join(text[start:end].lower().split())
        return cls(found) if found else SPLITTER

    def _runs(self, tokens: Sequence[str]) -> Iterator[tuple[int, int, str]]:
        """Each token or passage with its place among the tokens."""
        at = 0
        while at < len(tokens):
            of_first = self._by_first.get(tokens[at], ())
            passage = next(
                (one for one in of_first if tuple(tokens[at : at + len(one)]) == one), (tokens[at],)
            )
            yield at, at + len(passage), self._written.get(passage, tokens[at])
            at += len(passage)

    def split(self, texts: pl.Series) -> pl.Series:
        """As `Tokenizer.split`."""
        lists = [
            [token for _, _, token in self._runs(tokens)]
            for tokens in SPLITTER.split(texts).to_list()
        ]
        return pl.Series(texts.name, lists, dtype=pl.List(pl.String))

    def spans(self, text: str) -> list[tuple[int, int, str]]:
        """As `Tokenizer.spans`."""
        places = SPLITTER.spans(text)
        runs = self._runs([token for _, _, token in places])
        return [(places[first][0], places[last - 1][1], token) for first, last, token in runs]

    def to_dict(self) -> dict[str, Any]:
        """As `Tokenizer.to_dict`; passages are found again in the documents."""
        return SPLITTER.to_dict()
