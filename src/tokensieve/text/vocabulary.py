"""The vocabulary: which words, n-grams and features of formatting are token types, and how often each occurs in each document.

Everything is sorting and look-ups of integer ids. A corpus is a run of chunks, in memory, in files or on a cluster: document
frequencies are sums over them, and counts are blocks of rows.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from typing import Any, TypeVar

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray

from tokensieve.arrays import Ints, in_threads, select
from tokensieve.errors import InputError
from tokensieve.files import Folder
from tokensieve.progress import prefetch
from tokensieve.read.corpus import Corpus
from tokensieve.read.stored_texts import StoredTexts
from tokensieve.read.values import text_series
from tokensieve.text.counts import Counts
from tokensieve.text.formatting import Bits, Formatting, is_formatting
from tokensieve.text.frequencies import Frequencies
from tokensieve.text.tokenizers import FieldTokenizer, Tokenizer, WordTokenizer

CHUNK = 4096  # documents
S = TypeVar("S")
R = TypeVar("R")
Progress = Callable[[int], None]


class Chunks:
    """A corpus as `TokenStream`s, wherever they are stored."""

    def __iter__(self) -> Iterator[TokenStream]:
        raise NotImplementedError

    def total(self, of: Callable[..., S], *common: object, then: Callable[[S], R]) -> R:
        """`then` applied to the sum of `of(chunk, *common)` over all chunks."""
        return then(reduce(operator.add, (of(chunk, *common) for chunk in self)))


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
        """Texts in memory, split (`tokenize`)."""
        category = pl.Categorical(pl.Categories.random())
        ids, lengths = [np.empty(0, np.int32)], [np.zeros(1, np.int64)]
        words, position = (
            pl.Series([], dtype=category),
            np.empty(0, np.int32),
        )  # of each category among the words

        chunks = (
            tokenizer.split(texts[start : start + CHUNK]) for start in range(0, len(texts), CHUNK)
        )
        for done, lists in enumerate(prefetch(chunks), start=1):
            lengths.append(lists.list.len().to_numpy().astype(np.int64))
            flat = lists.explode().drop_nulls().cast(category)
            codes = flat.to_physical().to_numpy()
            more = int(codes.max(initial=0)) + 1 - len(position)
            position = np.append(position, np.full(max(more, 0), -1, np.int32))
            new = flat.filter(position[codes] < 0).unique()
            position[new.to_physical().to_numpy()] = np.arange(len(words), len(words) + len(new))
            words = words.append(new)
            ids.append(position[codes])
            if progress:
                progress(min(done * CHUNK, len(texts)))
        return cls(
            np.concatenate(ids), np.cumsum(np.concatenate(lengths)), words.cast(pl.String).to_list()
        )

    def __iter__(self) -> Iterator[TokenStream]:
        yield self

    @property
    def n_documents(self) -> int:
        """n."""
        return len(self.starts) - 1

    @property
    def n_tokens(self) -> int:
        """Tokens of all documents."""
        return len(self.ids)


class _StoredTokens(Chunks):
    """A corpus as token ids in files beside its texts: chunks with words of their own, of which one at a time is in memory."""

    def __init__(self, texts: StoredTexts, tokenizer: Tokenizer, progress: Progress | None) -> None:
        self.folder, self.n_tokens, self.n_documents = texts.folder, 0, 0
        self._paths = []
        for batch in texts.batches():
            stream = TokenStream.of(batch, tokenizer)
            words = pl.Series(stream.words, dtype=pl.String)
            columns = {
                "ids": pl.Series(stream.ids),
                "starts": pl.Series(stream.starts),
                "words": words,
            }
            part = pl.DataFrame({name: [column] for name, column in columns.items()})
            self._paths.append(self.folder.new())
            with Folder.storing():
                part.write_ipc(self._paths[-1])
            self.n_tokens += stream.n_tokens
            self.n_documents += len(batch)
            if progress:
                progress(self.n_documents)

    def __iter__(self) -> Iterator[TokenStream]:
        for path in self._paths:
            ids, starts, words = (column[0] for column in pl.read_ipc(path))
            yield TokenStream(ids.to_numpy(), starts.to_numpy(), words.to_list())


def tokenize(
    texts: pl.Series | StoredTexts, tokenizer: Tokenizer, progress: Progress | None = None
) -> TokenStream | _StoredTokens:
    """Split every text; if the texts are stored on disk, so are the ids, with a few thousand documents in memory at a time.

    `progress` is called with the number of documents done.
    """
    if isinstance(texts, StoredTexts):
        return _StoredTokens(texts, tokenizer, progress)
    return TokenStream.of(texts, tokenizer, progress)


@dataclass(frozen=True)
class Vocabulary:
    """The token types seen in training: words first, then 2-grams, 3-grams, …, then features of formatting.

    Attributes:
        words: the 1-gram types, sorted.
        grams: for n = 2, 3, …: sorted keys (index of the (n−1)-gram of the first n−1 words) · |words| + (index of the last).
        tokenizer: how text becomes words.
        formatting: the features that are types (`tokensieve.text.formatting`), in the order of `Formatting.names`.
    """

    words: tuple[str, ...]
    grams: tuple[Ints, ...]
    tokenizer: Tokenizer
    formatting: tuple[str, ...] = ()

    @property
    def n_types(self) -> int:
        """|S|."""
        return self.n_words + len(self.formatting)

    @property
    def n_words(self) -> int:
        """The number of types that are words or n-grams; these come first."""
        return len(self.words) + sum(len(keys) for keys in self.grams)

    @cached_property
    def tokens(self) -> NDArray[np.object_]:
        """All types as names, n-grams joined by a space, shape (|S|,): no two are equal, as a word that looks like a feature of
        formatting has its first bracket twice."""
        names = self.runs
        if self.formatting:
            names = np.array(
                ["⟨" + name if is_formatting(name) else name for name in names], dtype=object
            )
        return np.concatenate([names, np.asarray(self.formatting, dtype=object)])

    @cached_property
    def runs(self) -> NDArray[np.object_]:
        """The types that are words or n-grams, as they are found in a text, shape (n_words,)."""
        words = pl.Series(self.words, dtype=pl.String)
        levels = [words]
        for keys in self.grams:
            first, last = np.divmod(keys, max(len(words), 1))
            levels.append(levels[-1].gather(first) + " " + words.gather(last))
        return np.asarray(pl.concat(levels).to_numpy(), dtype=object)

    @cached_property
    def _index(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.words)}

    def positions(self, stream: TokenStream) -> NDArray[np.int32]:
        """Type of the n-gram that ends at every token, shape (tokens, levels); −1 where it is not in the vocabulary."""
        words = np.array([self._index.get(word, -1) for word in stream.words], dtype=np.int32)
        types = np.empty((stream.n_tokens, 1 + len(self.grams)), np.int32)
        types[:, 0] = words[stream.ids]
        for level, keys in enumerate(self.grams):
            Counts.grams(types, level, stream.starts, self._first, keys)
        return types

    @property
    def _first(self) -> Ints:
        """Where the words, the 2-grams, … begin among the types, and where the last of them end."""
        return np.cumsum([0, len(self.words), *map(len, self.grams)], dtype=np.int64)

    def longer(self, stream: TokenStream) -> Ints:
        """Key of the n-gram one word longer than those of the vocabulary that ends at every token; −1 where there is none."""
        keys = Counts.grams(
            types := self.positions(stream), len(self.grams), stream.starts, self._first
        )
        if isinstance(self.tokenizer, FieldTokenizer):
            of_word = np.array([self.tokenizer.field_of(word) for word in self.words])
            field = of_word[types[:, 0]]  # of unknown words it does not matter
            keys[1:][field[1:] != field[:-1]] = -1
        return keys

    def read(self, texts: Sequence[str] | pl.Series) -> tuple[sp.csr_array, Ints]:
        """Counts of texts, CSR (n, |S|), and the unknown words of each, shape (n,)."""
        texts = text_series(texts)
        return self.count(TokenStream.of(texts, self.tokenizer), self.bits(texts))

    def with_formatting(self, held: Ints, documents: int, least: int) -> Vocabulary:
        """The same with the formatting features found in at least `least` documents but not in all of them; `held` counts the
        documents with each of `Formatting.names`, shape (features,) or longer."""
        names = Formatting(self.tokenizer).names
        frequent = [name for name, n in zip(names, held, strict=False) if least <= n < documents]
        # the formatting of values of other columns means nothing
        if isinstance(self.tokenizer, FieldTokenizer):
            begin = tuple(self.tokenizer.prefixes[column] for column, _ in self.tokenizer.columns)
            frequent = [name for name in frequent if not name.startswith(begin)]
        return replace(self, formatting=tuple(frequent))

    def bits(self, texts: pl.Series | StoredTexts) -> Bits | None:
        """The formatting of texts as `count` requires it; None if no feature is a type."""
        return Formatting(self.tokenizer).bits(texts) if self.formatting else None

    def count(self, stream: Chunks, bits: Bits | None = None) -> tuple[sp.csr_array, Ints]:
        """How often each type occurs in each document, CSR (n, |S|), and the unknown words of each document, (n,).

        If the tokens are stored on disk, so is the matrix, mapped into memory. `bits` are those of the texts, if formatting counts.
        """
        if isinstance(stream, _StoredTokens):
            most = stream.n_tokens * (1 + len(self.grams)) + stream.n_documents * len(
                self.formatting
            )
            strange = [np.empty(0, np.int64)]

            def blocks() -> Iterator[sp.csr_array]:
                first = 0
                for part in stream:
                    block, new = self.count(
                        part, None if bits is None else bits[first : first + part.n_documents]
                    )
                    first += part.n_documents
                    strange.append(new)
                    yield block

            return stream.folder.matrix(blocks(), max(self.n_types, 1), most), np.concatenate(
                strange
            )
        assert isinstance(stream, TokenStream)
        types = self.positions(stream)
        unknown = np.searchsorted(np.flatnonzero(types[:, 0] < 0), stream.starts)
        features = None
        if self.formatting:
            assert bits is not None
            place = {name: i for i, name in enumerate(Formatting(self.tokenizer).names)}
            features = np.unpackbits(bits, axis=1)[
                :, [place[name] for name in self.formatting]
            ].astype(np.bool_)
        counts = Counts.tally(types, stream.starts, self.n_words, features)
        return counts, np.diff(unknown).astype(np.int64)


def learn_vocabulary(
    chunks: Chunks, tokenizer: Tokenizer, ngrams: int = 1, min_documents: int = 1
) -> Vocabulary:
    """All n-grams of up to `ngrams` words that occur in at least `min_documents` documents.

    An n-gram is at most as frequent as the words in it, so rare words are left out before n-grams are formed. Document
    frequencies that do not fit into memory are added up in files. An `InputError` if nothing is frequent enough.
    """
    if not all(
        isinstance(number, int | np.integer) and number >= 1 for number in (ngrams, min_documents)
    ):
        raise InputError(
            f"ngrams and min_documents must be positive whole numbers, not {ngrams!r} and {min_documents!r}"
        )
    frequent = partial(Frequencies.frequent, minimum=min_documents)
    words = tuple(chunks.total(_word_frequencies, then=frequent).to_list())
    if not words:
        raise InputError(
            f"no token occurs in {min_documents} documents or more: lower --min-documents"
        )
    grams: tuple[Ints, ...] = ()
    for _ in range(ngrams - 1):
        known = Vocabulary(words, grams, tokenizer)
        grams = (*grams, chunks.total(_gram_frequencies, known, then=frequent).to_numpy())
    return Vocabulary(words, grams, tokenizer)


def _word_frequencies(stream: TokenStream) -> Frequencies:
    """The number of documents that contain each word."""
    ids, starts, n = stream.ids, stream.starts, len(stream.words)
    found = in_threads(
        lambda part: Counts.list_frequencies(ids, starts[part.start : part.stop + 1], n),
        len(starts) - 1,
        len(ids),
    )
    return Frequencies(pl.Series(stream.words, dtype=pl.String), np.sum(found, axis=0))


def _gram_frequencies(stream: TokenStream, known: Vocabulary) -> Frequencies:
    """The number of documents that contain each n-gram one word longer than those of `known`."""
    keys, found = Counts.document_frequencies(known.longer(stream), stream.starts)
    return Frequencies(pl.Series(keys, dtype=pl.Int64), found)


@dataclass(frozen=True, eq=False)
class _Counted:
    """Texts, counted.

    Attributes:
        matrix: how often each type occurs in each document, CSR (n, |S|); of texts in files it is in a file too.
        unknown: words of each document that are outside the vocabulary, shape (n,).
        stream: the words of all documents.
    """

    matrix: sp.csr_array
    vocabulary: Vocabulary
    unknown: Ints
    stream: TokenStream | _StoredTokens


@dataclass(frozen=True, eq=False)
class CountedCorpus(_Counted):
    """A counted corpus, or one side of a corpus that was split."""

    corpus: Corpus

    @cached_property
    def counts(self) -> Counts:
        """The matrix with the documents' labels and weights."""
        c, matrix = self.corpus, self.matrix.astype(np.float64, copy=False)
        return Counts(matrix, c.labels, c.classes, self.vocabulary.tokens, c.weights)

    @property
    def n_formatting(self) -> int:
        """How many types, the last ones, are formatting."""
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

        def contains(token: str) -> bool:
            if is_formatting(token):
                return token in tokens
            words = token.split(" ")
            runs = (
                " ".join(words[i:j])
                for i in range(len(words))
                for j in range(i + 1, len(words) + 1)
            )
            return any(run in tokens for run in runs)

        every = pl.Series(self.counts.tokens, dtype=pl.String)
        # as text first: of half a million types a few are left to be looked into
        likely = np.flatnonzero(every.str.contains_any(list(tokens)).to_numpy())
        gone = [i for i in likely.tolist() if contains(every[i])]
        keep = np.setdiff1d(np.arange(self.counts.n_types), gone)
        return None if len(keep) in (0, self.counts.n_types) else keep

    def group_notes(self, test: CountedCorpus) -> list[str]:
        """Notes on the groups of training and test documents, and on classes with few test documents."""
        notes, train, groups = list[str](), self.corpus.groups, test.corpus.groups
        if train is not None:
            notes.append(
                f"training documents form {train.n_unique():,} groups; statistics count groups, not documents"
            )
            shared = 0 if groups is None else int(groups.is_in(train.unique().implode()).sum())
            notes += [
                f"{shared:,} test documents belong to groups that are also in training"
            ] * bool(shared)
        sizes = zip(test.counts.classes, test.counts.class_sizes, strict=True)
        few = ", ".join(f"{name!r} ({size})" for name, size in sizes if size < 20)
        return notes + [f"too few test documents (under 20) to judge the accuracy of {few}"] * bool(
            few
        )


def count_texts(
    texts: pl.Series | StoredTexts,
    vocabulary: Vocabulary | None = None,
    *,
    tokenizer: Tokenizer | None = None,
    ngrams: int = 1,
    min_documents: int = 1,
    formatting: bool = False,
    progress: Progress | None = None,
) -> _Counted:
    """Tokenize texts, learn their vocabulary (or use a given one), and count.

    Args:
        texts: n texts, in memory or in files.
        vocabulary: of other documents, such as those of training; None to learn it from these.
        tokenizer, ngrams, min_documents: for learning one (`learn_vocabulary`); the tokenizer is words if None.
        formatting: learn which features of formatting are types, too: those of at least `min_documents` texts, but not of all.
        progress: called with the number of documents tokenized.
    """
    splitter = vocabulary.tokenizer if vocabulary else tokenizer or WordTokenizer()
    stream = tokenize(texts, splitter, progress)
    if stream.n_tokens == 0 and vocabulary is None:
        raise InputError(
            "the texts contain no words, only punctuation or white space: check --text or --pattern"
        )
    if vocabulary is None:
        vocabulary = learn_vocabulary(stream, splitter, ngrams, min_documents)
        bits = Formatting(splitter).bits(texts) if formatting else None
        if bits is not None:
            held = np.unpackbits(bits, axis=1).sum(axis=0, dtype=np.int64)
            vocabulary = vocabulary.with_formatting(held, len(bits), min_documents)
    else:
        bits = vocabulary.bits(texts)
    matrix, unknown = vocabulary.count(stream, bits)
    return _Counted(matrix, vocabulary, unknown, stream)


def count_corpus(
    corpus: Corpus, vocabulary: Vocabulary | None = None, **options: Any
) -> CountedCorpus:
    """`count_texts` for labelled documents, with the same options; words of different fields are distinguished."""
    if vocabulary is None and corpus.fields:
        splitter = options.get("tokenizer") or WordTokenizer()
        options["tokenizer"] = FieldTokenizer.over(splitter, corpus.fields, corpus.columns)
    found = count_texts(corpus.texts, vocabulary, **options)
    return CountedCorpus(found.matrix, found.vocabulary, found.unknown, found.stream, corpus)
