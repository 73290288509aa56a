"""The vocabulary: which words, n-grams and features of formatting are types, and their counts.

Everything is sorting and look-ups of integer ids. A corpus is a run of chunks, in memory, in files
or on a cluster: document frequencies are sums over them, and counts are blocks of rows.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from typing import TypeVar

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray

from tokensieve.arrays import Ints, Positions, in_threads, select
from tokensieve.errors import InputError
from tokensieve.files import Folder
from tokensieve.progress import prefetch
from tokensieve.read.corpus import Corpus
from tokensieve.read.stored_texts import StoredTexts
from tokensieve.read.values import text_series
from tokensieve.text.counting import (
    count_types,
    document_frequencies,
    fill_ngrams,
    list_frequencies,
    ngram_keys,
)
from tokensieve.text.counts import Counts
from tokensieve.text.formatting import Bits, Formatting, is_formatting
from tokensieve.text.frequencies import Frequencies
from tokensieve.text.lexicon import with_lexicon
from tokensieve.text.tokenizers import FieldTokenizer, Tokenizer, WordTokenizer, tokenizer_of_fields

DOCUMENTS_PER_CHUNK = 4096  # that are split together, while the ids of those before are looked up
# of a class in the test set: with fewer, a 95% interval of its recall is wider than ±20 points
MIN_TEST_DOCUMENTS = 20
S = TypeVar("S")
R = TypeVar("R")
Progress = Callable[[int], None]


class Chunks:
    """A corpus as `TokenStream`s, wherever they are stored."""

    def __iter__(self) -> Iterator[TokenStream]:
        raise NotImplementedError

    def total(self, function: Callable[..., S], *arguments: object, then: Callable[[S], R]) -> R:
        """Add up `function(chunk, *arguments)` over all chunks, and apply `then` to the sum."""
        return then(reduce(operator.add, (function(chunk, *arguments) for chunk in self)))


@dataclass(frozen=True)
class TokenStream(Chunks):
    """A corpus, or a chunk of one, as one run of token ids.

    Attributes:
        ids: index into `words` of every token, documents one after the other, shape (tokens,).
        starts: where each document begins in `ids`, shape (n+1,).
        words: the distinct tokens, in no particular order.
    """

    ids: NDArray[np.int32]
    starts: Ints
    words: list[str]

    @classmethod
    def of(
        cls, texts: pl.Series, tokenizer: Tokenizer, progress: Progress | None = None
    ) -> TokenStream:
        """Split texts in memory (`tokenize`)."""
        words = _DistinctWords()
        ids = [np.empty(0, np.int32)]
        lengths = [np.zeros(1, np.int64)]
        firsts = range(0, len(texts), DOCUMENTS_PER_CHUNK)
        chunks = (tokenizer.split(texts[first : first + DOCUMENTS_PER_CHUNK]) for first in firsts)
        for n_chunks, lists in enumerate(prefetch(chunks), start=1):
            lengths.append(lists.list.len().to_numpy().astype(np.int64))
            ids.append(words.ids_of(lists.explode().drop_nulls()))
            if progress:
                progress(min(n_chunks * DOCUMENTS_PER_CHUNK, len(texts)))
        starts = np.cumsum(np.concatenate(lengths))
        return cls(np.concatenate(ids), starts, words.words.cast(pl.String).to_list())

    def __iter__(self) -> Iterator[TokenStream]:
        yield self

    @property
    def n_documents(self) -> int:
        """The number of documents, n."""
        return len(self.starts) - 1

    @property
    def n_tokens(self) -> int:
        """Tokens of all documents."""
        return len(self.ids)


class _DistinctWords:
    """Numbers words in the order in which chunks bring them.

    Polars turns a word into the number of a category with one look-up, faster than a dict of
    Python. Its numbers are those of the whole process, so that `_id_of_category` translates them:
    our number of the word of each category, or −1 for a category that is none of our words.
    """

    def __init__(self) -> None:
        self._category = pl.Categorical(pl.Categories.random())
        self._id_of_category = np.empty(0, np.int32)
        self.words = pl.Series([], dtype=self._category)

    def ids_of(self, tokens: pl.Series) -> NDArray[np.int32]:
        """The number of each token; words that are new get the next numbers."""
        words = tokens.cast(self._category)
        categories = words.to_physical().to_numpy()
        self._make_room_for(int(categories.max(initial=0)))
        new_words = words.filter(self._id_of_category[categories] < 0).unique()
        n_known = len(self.words)
        new_ids = np.arange(n_known, n_known + len(new_words))
        self._id_of_category[new_words.to_physical().to_numpy()] = new_ids
        self.words = self.words.append(new_words)
        ids: NDArray[np.int32] = self._id_of_category[categories]
        return ids

    def _make_room_for(self, category: int) -> None:
        """Extend `_id_of_category` to this category, which may be one that Polars just added."""
        n_missing = category + 1 - len(self._id_of_category)
        if n_missing > 0:
            unknown = np.full(n_missing, -1, np.int32)
            self._id_of_category = np.append(self._id_of_category, unknown)


class StoredTokens(Chunks):
    """A corpus as token ids in files beside its texts.

    Each chunk has words of its own, and one chunk at a time is in memory.
    """

    def __init__(self, texts: StoredTexts, tokenizer: Tokenizer, progress: Progress | None) -> None:
        self.folder = texts.folder
        self.n_tokens = 0
        self.n_documents = 0
        self._paths = []
        for batch in texts.batches():
            stream = TokenStream.of(batch, tokenizer)
            chunk = pl.DataFrame(
                {
                    "ids": [pl.Series(stream.ids)],
                    "starts": [pl.Series(stream.starts)],
                    "words": [pl.Series(stream.words, dtype=pl.String)],
                }
            )
            path = self.folder.new()
            with Folder.storing():
                chunk.write_ipc(path)
            self._paths.append(path)
            self.n_tokens += stream.n_tokens
            self.n_documents += len(batch)
            if progress:
                progress(self.n_documents)

    def __iter__(self) -> Iterator[TokenStream]:
        for path in self._paths:
            chunk = pl.read_ipc(path)
            ids = chunk["ids"][0].to_numpy()
            starts = chunk["starts"][0].to_numpy()
            yield TokenStream(ids, starts, chunk["words"][0].to_list())


def tokenize(
    texts: pl.Series | StoredTexts, tokenizer: Tokenizer, progress: Progress | None = None
) -> TokenStream | StoredTokens:
    """Split every text.

    If the texts are stored on disk, so are the ids, and a few thousand documents are in memory at a
    time. `progress` is called with the number of documents done.
    """
    if isinstance(texts, StoredTexts):
        return StoredTokens(texts, tokenizer, progress)
    return TokenStream.of(texts, tokenizer, progress)


@dataclass(frozen=True)
class Vocabulary:
    """The token types seen in training: words first, then 2-grams, 3-grams, …, then features of
    formatting.

    Attributes:
        words: the 1-gram types, sorted.
        grams: for n = 2, 3, …: sorted keys (index of the (n−1)-gram of the first n−1 words) ·
            |words| + (index of the last).
        tokenizer: how text becomes words.
        formatting: the features that are types (`tokensieve.text.formatting`), in the order of
            `Formatting.names`.
    """

    words: tuple[str, ...]
    grams: tuple[Ints, ...]
    tokenizer: Tokenizer
    formatting: tuple[str, ...] = ()

    @property
    def n_types(self) -> int:
        """The number of token types, |S|."""
        return self.n_words + len(self.formatting)

    @property
    def n_words(self) -> int:
        """The number of types that are words or n-grams; these come first."""
        return len(self.words) + sum(len(keys) for keys in self.grams)

    @cached_property
    def tokens(self) -> NDArray[np.object_]:
        """All types as names, n-grams joined by a space, shape (types,).

        No two are equal: a word that looks like a feature of formatting has its first bracket
            twice.
        """
        names = self.runs
        if self.formatting:
            distinct = ["⟨" + name if is_formatting(name) else name for name in names]
            names = np.array(distinct, dtype=object)
        return np.concatenate([names, np.asarray(self.formatting, dtype=object)])

    @cached_property
    def runs(self) -> NDArray[np.object_]:
        """The types that are words or n-grams, as they are found in a text, shape (n_words,)."""
        words = pl.Series(self.words, dtype=pl.String)
        levels = [words]
        for keys in self.grams:
            shorter, last = np.divmod(keys, max(len(words), 1))
            levels.append(levels[-1].gather(shorter) + " " + words.gather(last))
        return np.asarray(pl.concat(levels).to_numpy(), dtype=object)

    @cached_property
    def _index(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.words)}

    @property
    def _level_starts(self) -> Ints:
        """The places among the types where the words, the 2-grams, … begin, and where the last of
        them end."""
        sizes = [len(self.words), *map(len, self.grams)]
        return np.cumsum([0, *sizes], dtype=np.int64)

    def positions(self, stream: TokenStream) -> Positions:
        """Type of the n-gram that ends at every token, shape (tokens, levels); −1 if it is not in
        the vocabulary."""
        word_types = np.array([self._index.get(word, -1) for word in stream.words], dtype=np.int32)
        types = np.empty((stream.n_tokens, 1 + len(self.grams)), np.int32)
        types[:, 0] = word_types[stream.ids]
        for level, keys in enumerate(self.grams):
            fill_ngrams(types, level, stream.starts, self._level_starts, keys)
        return types

    def longer(self, stream: TokenStream) -> Ints:
        """Key of the n-gram one word longer than those of the vocabulary that ends at every token;
        −1 for none."""
        types = self.positions(stream)
        keys = ngram_keys(types, len(self.grams), stream.starts, self._level_starts)
        if isinstance(self.tokenizer, FieldTokenizer):
            field_of_word = np.array([self.tokenizer.field_of(word) for word in self.words])
            field = field_of_word[types[:, 0]]  # of unknown words, which have no key, any will do
            crosses_fields = field[1:] != field[:-1]
            keys[1:][crosses_fields] = -1
        return keys

    def read(self, texts: Sequence[str] | pl.Series) -> tuple[sp.csr_array, Ints]:
        """Counts of texts, CSR (n, types), and the unknown words of each, shape (n,)."""
        texts = text_series(texts)
        return self.count(TokenStream.of(texts, self.tokenizer), self.bits(texts))

    def with_formatting(self, held: Ints, documents: int, least: int) -> Vocabulary:
        """The same with the formatting features found in at least `least` documents but not in all
        of them.

        Args:
            held: the documents with each of `Formatting.names`, shape (features,) or longer.
            documents: n.
            least: smallest number of documents.
        """
        names = Formatting(self.tokenizer).names
        frequent = [name for name, n in zip(names, held, strict=False) if least <= n < documents]
        # the formatting of values of other columns means nothing
        if isinstance(self.tokenizer, FieldTokenizer):
            of_values = tuple(
                self.tokenizer.prefixes[column] for column, _ in self.tokenizer.columns
            )
            frequent = [name for name in frequent if not name.startswith(of_values)]
        return replace(self, formatting=tuple(frequent))

    def bits(self, texts: pl.Series | StoredTexts) -> Bits | None:
        """The formatting of texts as `count` requires it; None if no feature is a type."""
        return Formatting(self.tokenizer).bits(texts) if self.formatting else None

    def count(
        self, stream: TokenStream | StoredTokens, bits: Bits | None = None
    ) -> tuple[sp.csr_array, Ints]:
        """Count each type in each document, CSR (n, types), and the unknown words of each document,
        (n,).

        If the tokens are stored on disk, so is the matrix, mapped into memory. `bits` are those of
        the texts, if formatting counts.
        """
        if isinstance(stream, StoredTokens):
            return self._count_stored(stream, bits)
        types = self.positions(stream)
        unknown_places = np.flatnonzero(types[:, 0] < 0)
        n_unknown = np.diff(np.searchsorted(unknown_places, stream.starts))
        features = None
        if self.formatting:
            assert bits is not None
            names = Formatting(self.tokenizer).names
            columns = [names.index(name) for name in self.formatting]
            features = np.unpackbits(bits, axis=1)[:, columns].astype(np.bool_)
        matrix = count_types(types, stream.starts, self.n_words, features)
        return matrix, n_unknown.astype(np.int64)

    def _count_stored(self, stream: StoredTokens, bits: Bits | None) -> tuple[sp.csr_array, Ints]:
        """Count tokens in files, a chunk at a time (see `count`); the matrix is in files too."""
        unknown = [np.empty(0, np.int64)]

        def blocks() -> Iterator[sp.csr_array]:
            first = 0
            for chunk in stream:
                end = first + chunk.n_documents
                block, n_unknown = self.count(chunk, None if bits is None else bits[first:end])
                first = end
                unknown.append(n_unknown)
                yield block

        n_levels = 1 + len(self.grams)
        max_entries = stream.n_tokens * n_levels + stream.n_documents * len(self.formatting)
        matrix = stream.folder.matrix(blocks(), max(self.n_types, 1), max_entries)
        return matrix, np.concatenate(unknown)


def learn_vocabulary(
    chunks: Chunks, tokenizer: Tokenizer, ngrams: int = 1, min_documents: int = 1
) -> Vocabulary:
    """All n-grams of up to `ngrams` words that occur in at least `min_documents` documents.

    An n-gram is at most as frequent as the words in it, so rare words are left out before n-grams
    are formed. Document frequencies that do not fit into memory are added up in files
    (`Frequencies`).

    Raises:
        InputError: nothing is frequent enough, or a number is not positive.
    """
    for number in (ngrams, min_documents):
        if not isinstance(number, int | np.integer) or number < 1:
            raise InputError(
                "ngrams and min_documents must be positive whole numbers, "
                f"not {ngrams!r} and {min_documents!r}"
            )
    frequent = partial(Frequencies.frequent, minimum=min_documents)
    words = tuple(chunks.total(_word_frequencies, then=frequent).to_list())
    if not words:
        raise InputError(
            f"no token occurs in {min_documents} documents or more: lower --min-documents"
        )
    grams: tuple[Ints, ...] = ()
    for _ in range(ngrams - 1):
        words_only = Vocabulary(words, grams, tokenizer)
        keys = chunks.total(_gram_frequencies, words_only, then=frequent).to_numpy()
        grams = (*grams, keys)
    return Vocabulary(words, grams, tokenizer)


def _word_frequencies(stream: TokenStream) -> Frequencies:
    """The number of documents that contain each word."""
    n_words = len(stream.words)

    def of_run(run: slice) -> Ints:
        return list_frequencies(stream.ids, stream.starts[run.start : run.stop + 1], n_words)

    of_runs = in_threads(of_run, stream.n_documents, stream.n_tokens)
    return Frequencies(pl.Series(stream.words, dtype=pl.String), np.sum(of_runs, axis=0))


def _gram_frequencies(stream: TokenStream, known: Vocabulary) -> Frequencies:
    """The number of documents that contain each n-gram one word longer than those of `known`."""
    frequencies = document_frequencies(known.longer(stream), stream.starts)
    return Frequencies(pl.Series(frequencies.keys, dtype=pl.Int64), frequencies.documents)


@dataclass(frozen=True, eq=False)
class CountedTexts:
    """Texts, counted.

    Attributes:
        matrix: how often each type occurs in each document, CSR (n, types); of texts in files it is
            in a file too.
        vocabulary: the types.
        unknown: words of each document that are outside the vocabulary, shape (n,).
        stream: the words of all documents.
    """

    matrix: sp.csr_array
    vocabulary: Vocabulary
    unknown: Ints
    stream: TokenStream | StoredTokens


@dataclass(frozen=True, eq=False)
class CountedCorpus(CountedTexts):
    """A counted corpus, or one side of a corpus that was split."""

    corpus: Corpus

    @cached_property
    def counts(self) -> Counts:
        """The matrix with the documents' labels and weights."""
        corpus = self.corpus
        matrix = self.matrix.astype(np.float64, copy=False)
        counts = Counts(
            matrix, corpus.labels, corpus.classes, self.vocabulary.tokens, corpus.weights
        )
        return counts if corpus.scores is None else replace(counts, numbers=corpus.scores)

    @property
    def n_formatting(self) -> int:
        """The number of types, the last ones, that are formatting."""
        return len(self.vocabulary.formatting)

    @property
    def word_counts(self) -> Counts:
        """The counts without formatting."""
        return self.with_types(slice(self.vocabulary.n_words)) if self.n_formatting else self.counts

    def with_types(self, kept: Ints | slice) -> Counts:
        """The counts of some of the token types."""
        matrix = select(self.counts.matrix, slice(None), kept)
        return replace(self.counts, matrix=matrix, tokens=self.counts.tokens[kept])

    def types_not_containing(self, tokens: set[str]) -> Ints | None:
        """The token types that contain none of the tokens; None if that is all of them, or none."""
        if not tokens:
            return None
        names = pl.Series(self.counts.tokens, dtype=pl.String)
        # as text first: of half a million types a few are left to be looked into
        candidates = np.flatnonzero(names.str.contains_any(list(tokens)).to_numpy())
        removed = [i for i in candidates.tolist() if _contains_token(names[i], tokens)]
        remaining = np.setdiff1d(np.arange(self.counts.n_types), removed)
        return None if len(remaining) in (0, self.counts.n_types) else remaining

    def group_notes(self, test: CountedCorpus) -> list[str]:
        """Notes on the groups of training and test documents, and on classes with few test
        documents."""
        notes = []
        groups = self.corpus.groups
        test_groups = test.corpus.groups
        if groups is not None:
            notes.append(
                f"training documents form {groups.n_unique():,} groups; "
                "statistics count groups, not documents"
            )
        if groups is not None and test_groups is not None:
            n_shared = int(test_groups.is_in(groups.unique().implode()).sum())
            if n_shared:
                notes.append(
                    f"{n_shared:,} test documents belong to groups that are also in training"
                )
        if test.counts.numbers is not None:  # there are no classes to judge
            return notes
        sizes = zip(test.counts.classes, test.counts.class_sizes, strict=True)
        small = [f"{name!r} ({size})" for name, size in sizes if size < MIN_TEST_DOCUMENTS]
        if small:
            notes.append(
                f"too few test documents (under {MIN_TEST_DOCUMENTS}) to judge the accuracy of "
                + ", ".join(small)
            )
        return notes


def _contains_token(name: str, tokens: set[str]) -> bool:
    """Whether a token type is one of the tokens, or an n-gram that contains one."""
    if is_formatting(name):
        return name in tokens
    words = name.split(" ")
    for start in range(len(words)):
        for end in range(start + 1, len(words) + 1):
            if " ".join(words[start:end]) in tokens:
                return True
    return False


def count_texts(
    texts: pl.Series | StoredTexts,
    vocabulary: Vocabulary | None = None,
    *,
    tokenizer: Tokenizer | None = None,
    ngrams: int = 1,
    min_documents: int = 1,
    formatting: bool = False,
    progress: Progress | None = None,
) -> CountedTexts:
    """Tokenize texts, learn their vocabulary (or use a given one), and count.

    Args:
        texts: n texts, in memory or in files.
        vocabulary: of other documents, such as those of training; None to learn it from these.
        tokenizer, ngrams, min_documents: for learning one (`learn_vocabulary`); the tokenizer is
            words if None.
        formatting: learn which features of formatting are types, too: those of at least
            `min_documents` texts, but not of all.
        progress: called with the number of documents tokenized.
    """
    if vocabulary is not None:
        stream = tokenize(texts, vocabulary.tokenizer, progress)
        matrix, unknown = vocabulary.count(stream, vocabulary.bits(texts))
        return CountedTexts(matrix, vocabulary, unknown, stream)

    tokenizer = with_lexicon(tokenizer or WordTokenizer(), texts)
    stream = tokenize(texts, tokenizer, progress)
    if stream.n_tokens == 0:
        raise InputError(
            "the texts contain no words, only punctuation or white space: check --text or --pattern"
        )
    vocabulary = learn_vocabulary(stream, tokenizer, ngrams, min_documents)
    bits = None
    if formatting:
        bits = Formatting(tokenizer).bits(texts)
        n_with_feature = np.unpackbits(bits, axis=1).sum(axis=0, dtype=np.int64)
        vocabulary = vocabulary.with_formatting(n_with_feature, len(bits), min_documents)
    matrix, unknown = vocabulary.count(stream, bits)
    return CountedTexts(matrix, vocabulary, unknown, stream)


def count_corpus(
    corpus: Corpus,
    vocabulary: Vocabulary | None = None,
    *,
    tokenizer: Tokenizer | None = None,
    ngrams: int = 1,
    min_documents: int = 1,
    formatting: bool = False,
    progress: Progress | None = None,
) -> CountedCorpus:
    """`count_texts` for labelled documents, with the same arguments; words of different fields are
    distinguished."""
    if vocabulary is None and corpus.fields:
        tokenizer = tokenizer_of_fields(tokenizer or WordTokenizer(), corpus.fields, corpus.columns)
    counted = count_texts(
        corpus.texts,
        vocabulary,
        tokenizer=tokenizer,
        ngrams=ngrams,
        min_documents=min_documents,
        formatting=formatting,
        progress=progress,
    )
    return CountedCorpus(
        counted.matrix, counted.vocabulary, counted.unknown, counted.stream, corpus
    )
