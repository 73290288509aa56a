"""How words are used: which documents contain them, and between which neighbours they stand."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from tokensieve.arrays import Bools, Floats, Integers, Ints, Positions, select
from tokensieve.auditing.artefacts.class_texts import ClassTexts
from tokensieve.auditing.artefacts.shapes import shaped, without_field
from tokensieve.text.counts import Counts
from tokensieve.text.tokenizers import FieldTokenizer, Tokenizer
from tokensieve.text.vocabulary import Chunks, CountedCorpus, TokenStream

MAX_TOKENS = 8_000_000  # of the texts that are searched: about 35,000 long reviews
MAX_ENTRIES_KEPT = 1_000_000  # of all classes' vectors: 30 MB, made once rather than three times
RUN_WORDS = 4  # of a run whose repetition is measured; shorter ones recur in any texts
MAX_WORDS_OF_RUNS = 1_000_000  # more take time and change little
# odd and without pattern, so that the sum over a run mixes its words (Knuth's multiplicative hash)
HASH_MULTIPLIER = np.uint64(11_400_714_819_323_198_485)


@dataclass(frozen=True, eq=False)
class WordUse:
    """Labelled texts as the score reads them.

    Attributes:
        counts: how often each document contains each word; no formatting, shape (n, |S|).
        shapes: the shapes of the words in their order, of all documents or of the first ones.
        order: the same with the words and the edges of texts.
        tokenizer: by which the texts were split.
    """

    counts: Counts
    shapes: TokenStream
    order: WordOrder
    tokenizer: Tokenizer

    @classmethod
    def of(cls, counts: Counts, stream: TokenStream, tokenizer: Tokenizer) -> WordUse:
        """The use of the words of some counted texts."""
        shapes = shaped(stream)
        return cls(counts, shapes, WordOrder.of(stream, shapes, tokenizer), tokenizer)

    @cached_property
    def type_of(self) -> dict[str, int]:
        """The place of each word among the types."""
        return {str(word): i for i, word in enumerate(self.counts.tokens)}

    @cached_property
    def n_documents(self) -> Ints:
        """How many documents contain each word, shape (|S|,)."""
        return np.asarray(self.counts.present.sum(axis=1))

    @cached_property
    def has_digit(self) -> Bools:
        """Which words contain a digit, apart from the names of their fields, shape (|S|,)."""
        bare = [without_field(str(token)) for token in self.counts.tokens]
        return pl.Series(bare, dtype=pl.String).str.contains(r"\d").to_numpy()

    @cached_property
    def weight(self) -> Floats:
        """log(n/documents that contain the word); 0 of numbers, shape (|S|,)."""
        weight = np.log(self.counts.n_documents / np.maximum(self.n_documents, 1))
        return np.asarray(np.where(self.has_digit, 0.0, weight))

    def occurrences_of(self, word_type: int, documents: Ints) -> float:
        """How often a word occurs in some documents."""
        word_types = np.full(len(documents), word_type)
        return float(self.counts.matrix[documents, word_types].sum())

    def documents_of_class(self, label: int) -> Ints:
        """The documents of one class."""
        return np.flatnonzero(self.counts.labels == label)

    @cached_property
    def _class_texts(self) -> dict[int, ClassTexts]:
        return {}

    def class_texts(self, label: int) -> ClassTexts:
        """The documents of one class as vectors; kept for the next call, unless they are many."""
        kept = self._class_texts.get(label)
        if kept is not None:
            return kept
        texts = ClassTexts.of(self.counts.matrix, self.weight, self.documents_of_class(label))
        if self.counts.matrix.nnz <= MAX_ENTRIES_KEPT:
            self._class_texts[label] = texts
        return texts


@dataclass(frozen=True, eq=False)
class WordOrder:
    """Texts as one run of word ids, with a mark before and behind every text (every field of one).

    Attributes:
        ids: the shape of the word at every position (`shapes`), by which neighbours are compared;
            `start_mark` and `end_mark` stand for the edges of texts.
        spelled: the word itself, as a place in `spellings`; −1 at an edge.
        documents: the document of every position.
        words: the distinct shapes.
        spellings: the distinct words.
    """

    ids: Positions
    spelled: Positions
    documents: Positions
    words: list[str]
    spellings: list[str]

    @classmethod
    def of(cls, stream: TokenStream, shapes: TokenStream, tokenizer: Tokenizer) -> WordOrder:
        """The words of a stream and their shapes; the fields of a text are texts of their own."""
        documents = np.arange(stream.n_documents, dtype=np.int32)
        token_documents = np.repeat(documents, np.diff(stream.starts))
        first_tokens = stream.starts[:-1][np.diff(stream.starts) > 0]
        if isinstance(tokenizer, FieldTokenizer):
            fields = np.array([tokenizer.field_of(word) for word in stream.words])
            _, field_of_word = np.unique(fields, return_inverse=True)
            field = field_of_word[stream.ids]
            first_tokens = np.union1d(first_tokens, np.flatnonzero(field[1:] != field[:-1]) + 1)

        def with_marks(values: Positions, end: Integers, start: Integers) -> Positions:
            """Values with two marks before each text; the end mark before the first goes last."""
            marks = np.column_stack([end, start]).ravel()
            marked = np.insert(values, np.repeat(first_tokens, 2), marks)
            return np.append(marked[1:], marked[:1])

        n_words = len(shapes.words)
        edge = np.full(len(first_tokens), n_words)
        nothing = np.full(len(first_tokens), -1)
        own_documents = token_documents[first_tokens]
        previous_documents = np.roll(own_documents, 1)
        return cls(
            ids=with_marks(shapes.ids.astype(np.int32), edge + 1, edge),
            spelled=with_marks(stream.ids.astype(np.int32), nothing, nothing),
            documents=with_marks(token_documents, previous_documents, own_documents),
            words=shapes.words,
            spellings=stream.words,
        )

    @cached_property
    def edges(self) -> Ints:
        """The positions of the edges of texts, ascending."""
        return np.flatnonzero(self.ids >= len(self.words))

    def edge_beyond(self, places: Ints, step: int) -> Ints:
        """The edge of the text of each place, at its start (step −1) or its end (1)."""
        if step > 0:
            return self.edges[np.searchsorted(self.edges, places)]
        return self.edges[np.searchsorted(self.edges, places, side="right") - 1]

    @cached_property
    def repetition(self) -> float:
        """The fraction of runs of four words that occur twice or more: near 1 of filled templates.

        Of long corpora only the first words are read.
        """
        ids = self.ids[:MAX_WORDS_OF_RUNS]
        windows = np.lib.stride_tricks.sliding_window_view(ids, RUN_WORDS)
        runs = windows[(windows < len(self.words)).all(axis=1)]
        if not len(runs):
            return 0.0
        powers = HASH_MULTIPLIER ** np.arange(RUN_WORDS, dtype=np.uint64)
        hashes = (runs.astype(np.uint64) * powers).sum(axis=1, dtype=np.uint64)
        _, n_of_run = np.unique(hashes, return_counts=True)
        return float(n_of_run[n_of_run >= 2].sum() / n_of_run.sum())

    @cached_property
    def n_texts(self) -> int:
        """How many documents have a word."""
        return len(np.unique(self.documents))

    @property
    def start_mark(self) -> int:
        """The id that stands before every text."""
        return len(self.words)

    @property
    def end_mark(self) -> int:
        """The id that stands behind every text."""
        return len(self.words) + 1

    @cached_property
    def pair_counts(self) -> tuple[Ints, Positions]:
        """The distinct pairs of neighbours, sorted, and how often each occurs."""
        pairs, n_pairs = np.unique(self.pairs_of(self.ids[:-1], self.ids[1:]), return_counts=True)
        return pairs, n_pairs.astype(np.int32)

    def pairs_of(self, left: Integers, right: Integers) -> Ints:
        """One number for each pair of words; of two 32-bit numbers, one of 64 bits."""
        return np.asarray(left * np.int64(len(self.words) + 2) + right, dtype=np.int64)

    def n_occurrences(self, left: Integers, right: Integers) -> Positions:
        """How often the words of each pair are neighbours."""
        pairs, n_pairs = self.pair_counts
        pair_numbers = self.pairs_of(left, right)
        places = np.minimum(np.searchsorted(pairs, pair_numbers), len(pairs) - 1)
        return np.where(pairs[places] == pair_numbers, n_pairs[places], 0)

    @cached_property
    def _by_word(self) -> _Places:
        return _Places.of(self.spelled, self.spellings)

    @cached_property
    def _by_shape(self) -> _Places:
        return _Places.of(self.ids, self.words)

    def begins(self, words: tuple[str, ...]) -> Ints:
        """Where a word stands, or where a run of shapes begins, in ascending order."""
        if len(words) == 1 and words[0] in self._by_word.numbers:
            return self._by_word.of_word(words[0])
        if not all(word in self._by_shape.numbers for word in words):
            return np.empty(0, np.int64)
        shapes = [self._by_shape.numbers[word] for word in words]
        rarest = int(np.argmin(np.diff(self._by_shape.starts)[shapes]))
        begins = self._by_shape.of_word(words[rarest]) - rarest
        begins = begins[(begins >= 0) & (begins <= len(self.ids) - len(words))]
        for step, shape in enumerate(shapes):
            begins = begins[self.ids[begins + step] == shape]
        return begins

    @cached_property
    def is_recurring_pair(self) -> Bools:
        """Whether a position and the next one are a pair that occurs twice or more."""
        pairs, n_pairs = self.pair_counts
        neighbours = self.pairs_of(self.ids[:-1], self.ids[1:])
        return np.append(is_among(neighbours, pairs[n_pairs >= 2]), False)

    @cached_property
    def is_skipped_pair(self) -> Bools:
        """Whether the neighbours of a position are neighbours of each other elsewhere."""
        pairs, _ = self.pair_counts
        around = self.pairs_of(self.ids[:-2], self.ids[2:])
        return np.concatenate([[False], is_among(around, pairs), [False]])


def is_among(numbers: Ints, known: Ints) -> Bools:
    """Whether each number is one of those known; hashing is ten times as fast as sorted search."""
    is_known = pl.Series(numbers).is_in(pl.Series(known, dtype=pl.Int64).implode())
    return np.asarray(is_known.to_numpy(), dtype=np.bool_)


@dataclass(frozen=True, eq=False)
class _Places:
    """Where each word stands.

    Attributes:
        positions: all of them, sorted by word, as 32-bit numbers.
        starts: where each word's begin.
        numbers: the number of each word.
    """

    positions: Positions
    starts: Ints
    numbers: dict[str, int]

    @classmethod
    def of(cls, ids: Integers, words: list[str]) -> _Places:
        positions = np.argsort(ids, kind="stable").astype(np.int32)
        starts = np.searchsorted(ids[positions], np.arange(len(words) + 1))
        return cls(positions, starts, {word: i for i, word in enumerate(words)})

    def of_word(self, word: str) -> Ints:
        """The places of a word, ascending; none if it is unknown."""
        if word not in self.numbers:
            return np.empty(0, np.int64)
        i = self.numbers[word]
        return self.positions[self.starts[i] : self.starts[i + 1]].astype(np.int64)


@dataclass(frozen=True, eq=False)
class SearchedTexts:
    """The training texts that are searched for artefacts: one of each, of large corpora an even
    sample.

    Attributes:
        use: their words.
        texts: themselves.
        documents: their places among the training documents, ascending.
        units: the group of each, if documents belong together.
    """

    use: WordUse
    texts: pl.Series
    documents: Ints
    units: Ints | None


def first_texts(train: CountedCorpus, is_first: Bools, units: Ints | None) -> SearchedTexts:
    """The texts to search, given which documents are the first of their text."""
    n_all = train.counts.n_documents
    step = max(1, math.ceil(train.stream.n_tokens / MAX_TOKENS))
    is_chosen = is_first & (np.arange(n_all) % step == 0)
    documents = np.flatnonzero(is_chosen)
    n_single = len(train.vocabulary.words)
    counts = train.counts
    words = Counts(
        select(counts.matrix, documents, slice(n_single)),
        counts.labels[documents],
        counts.classes,
        counts.tokens[:n_single],
    )
    stream = chosen_part(train.stream, is_chosen)
    texts = pl.Series(train.corpus.texts.gather(documents), dtype=pl.String)
    use = WordUse.of(words, stream, train.vocabulary.tokenizer)
    return SearchedTexts(use, texts, documents, None if units is None else units[documents])


def chosen_part(chunks: Chunks, is_chosen: Bools) -> TokenStream:
    """The words of some documents of a stream, in one piece."""
    numbers: dict[str, int] = {}
    ids = [np.empty(0, np.int32)]
    lengths = [np.zeros(1, np.int64)]
    first = 0
    for chunk in chunks:
        is_kept = is_chosen[first : first + chunk.n_documents]
        first += chunk.n_documents
        n_tokens = np.diff(chunk.starts)
        number = [numbers.setdefault(word, len(numbers)) for word in chunk.words]
        of_chunk = np.array(number, dtype=np.int32)
        ids.append(of_chunk[chunk.ids[np.repeat(is_kept, n_tokens)]])
        lengths.append(n_tokens[is_kept])
    return TokenStream(np.concatenate(ids), np.cumsum(np.concatenate(lengths)), list(numbers))
