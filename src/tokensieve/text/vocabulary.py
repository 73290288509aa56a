"""Tokens → ids, the vocabulary, word n-grams, and the documents × types matrix.

Splitting runs in Polars' regular-expression and categorical kernels, a few thousand documents at a time; everything after
it is sorting and binary search over integer ids. A corpus in files (`tokensieve.text.spill`) goes the same way part by part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray

from tokensieve.errors import InputError
from tokensieve.text.counts import Ints
from tokensieve.text.frequencies import Frequencies
from tokensieve.text.spill import MatrixWriter, Shards, StoredTexts
from tokensieve.text.tally import tally
from tokensieve.text.tokenizers import Tokenizer

CHUNK = 4096


@dataclass(frozen=True)
class TokenStream:
    """A corpus as one run of token ids.

    Attributes:
        ids: index into `words` of every token, documents one after the other, shape (tokens,).
        starts: where each document begins in `ids`, shape (n+1,).
        words: the distinct tokens, in no particular order.
    """

    ids: NDArray[np.int32]
    starts: Ints
    words: list[str]

    @cached_property
    def documents(self) -> Ints:
        """The document of every token, shape (tokens,)."""
        return np.repeat(np.arange(self.n_documents), np.diff(self.starts))

    @property
    def n_documents(self) -> int:
        """n."""
        return len(self.starts) - 1

    @property
    def n_tokens(self) -> int:
        """Tokens of all documents."""
        return len(self.ids)


class StoredTokens:
    """A corpus as token ids in files: a re-startable run of `TokenStream`s, each with words of its own, of which one at a time
    is in memory.

    Args:
        texts: the documents; the files lie beside theirs.
        tokenizer: how to split one.
        progress: called with the number of documents done.
    """

    def __init__(self, texts: StoredTexts, tokenizer: Tokenizer, progress: Callable[[int], None] | None = None) -> None:
        self._shards, self.n_tokens, self.n_documents = Shards(texts.folder), 0, 0
        for batch in texts.batches():
            stream = _tokenize(batch, tokenizer)
            self._shards.write(ids=stream.ids, starts=stream.starts, words=pl.Series(stream.words, dtype=pl.String))
            self.n_tokens += stream.n_tokens
            self.n_documents += len(batch)
            if progress:
                progress(self.n_documents)

    def __iter__(self) -> Iterator[TokenStream]:
        for part in self._shards:
            yield TokenStream(part["ids"].to_numpy(), part["starts"].to_numpy(), part["words"].to_list())

    def writer(self, levels: int) -> MatrixWriter:
        """Files for the counts of these documents, n-grams of up to `levels` words."""
        return MatrixWriter(self._shards.folder, self.n_tokens * levels)


@overload
def tokenize(texts: pl.Series, tokenizer: Tokenizer, progress: Callable[[int], None] | None = None) -> TokenStream: ...
@overload
def tokenize(
    texts: StoredTexts, tokenizer: Tokenizer, progress: Callable[[int], None] | None = None
) -> StoredTokens: ...
def tokenize(
    texts: pl.Series | StoredTexts, tokenizer: Tokenizer, progress: Callable[[int], None] | None = None
) -> TokenStream | StoredTokens:
    """Split every text; memory beyond the ids themselves is that of a few thousand documents.

    Args:
        texts: n strings; of texts in files the ids are kept in files too.
        tokenizer: how to split one.
        progress: called with the number of documents done.
    """
    if isinstance(texts, StoredTexts):
        return StoredTokens(texts, tokenizer, progress)
    return _tokenize(texts, tokenizer, progress)


def _tokenize(texts: pl.Series, tokenizer: Tokenizer, progress: Callable[[int], None] | None = None) -> TokenStream:
    category = pl.Categorical(pl.Categories.random())
    ids, lengths = [np.empty(0, np.int32)], [np.empty(0, np.int64)]
    seen = pl.Series([], dtype=category)
    for start in range(0, len(texts), CHUNK):
        lists = tokenizer.split(texts[start : start + CHUNK])
        lengths.append(lists.list.len().to_numpy().astype(np.int64))
        flat = lists.explode().drop_nulls().cast(category)
        seen = seen.append(flat.unique()).unique()
        ids.append(flat.to_physical().to_numpy().astype(np.int32))
        if progress:
            progress(min(start + CHUNK, len(texts)))
    codes = seen.to_physical().to_numpy()
    position = np.zeros(int(codes.max(initial=0)) + 1, dtype=np.int32)
    position[codes] = np.arange(len(codes))
    starts = np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(np.int64)
    return TokenStream(position[np.concatenate(ids)], starts, seen.cast(pl.String).to_list())


@dataclass(frozen=True)
class Vocabulary:
    """The token types seen in training: words first, then 2-grams, 3-grams, ….

    Attributes:
        words: the 1-gram types, sorted.
        grams: for n = 2, 3, …: sorted keys (index of the (n−1)-gram of the first n−1 words) · |words| + (index of the last).
        tokenizer: how text becomes words.
    """

    words: tuple[str, ...]
    grams: tuple[Ints, ...]
    tokenizer: Tokenizer

    @property
    def n_types(self) -> int:
        """|S|."""
        return len(self.words) + sum(len(keys) for keys in self.grams)

    @cached_property
    def tokens(self) -> NDArray[np.object_]:
        """All types as text, n-grams joined by a space, shape (|S|,)."""
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
        out = np.full((len(stream.ids), 1 + len(self.grams)), -1, dtype=np.int32)
        out[:, 0], base = self._words_of(stream), len(self.words)
        level: NDArray[Any] = out[:, 0]
        for n, keys in enumerate(self.grams, start=1):
            level = _find(keys, _gram_keys(level, out[:, 0], stream.documents, len(self.words)))
            out[:, n] = np.where(level >= 0, level + base, -1)
            base += len(keys)
        return out

    def gram_frequencies(self, stream: TokenStream) -> tuple[pl.Series, Ints]:
        """Key of every n-gram one word longer than those of the vocabulary, and the number of documents that contain it."""
        ids = self._words_of(stream)
        level: NDArray[Any] = ids
        for keys in self.grams:
            level = _find(keys, _gram_keys(level, ids, stream.documents, len(self.words)))
        return _document_frequencies(
            _gram_keys(level, ids, stream.documents, len(self.words)), stream.documents, stream.n_documents
        )

    def _words_of(self, stream: TokenStream) -> NDArray[np.int32]:
        return np.array([self._index.get(word, -1) for word in stream.words], dtype=np.int32)[stream.ids]

    def count(self, stream: TokenStream | StoredTokens) -> tuple[sp.csr_array, Ints]:
        """How often each type stands in each document, CSR (n, |S|), and the unknown words of each document, (n,).

        Of tokens in files the matrix is in files too, mapped into memory.
        """
        if isinstance(stream, StoredTokens):
            matrix, strange = stream.writer(1 + len(self.grams)), [np.empty(0, np.int64)]
            for part in stream:
                block, new = self.count(part)
                matrix.append(block)
                strange.append(new)
            return matrix.finish(max(self.n_types, 1)), np.concatenate(strange)
        types = self.positions(stream)
        unknown = np.concatenate([[0], np.cumsum(types[:, 0] < 0)])[stream.starts]
        return tally(types, stream.starts, self.n_types), np.diff(unknown).astype(np.int64)


def learn_vocabulary(
    stream: TokenStream | StoredTokens, tokenizer: Tokenizer, ngrams: int = 1, min_documents: int = 1
) -> Vocabulary:
    """All n-grams of up to `ngrams` words that stand in at least `min_documents` documents.

    An n-gram is at most as frequent as the words in it, so rare words are left out before n-grams are formed. Document
    frequencies that do not fit into memory are added up in files (`tokensieve.text.frequencies`).

    Raises:
        InputError: ngrams or min_documents below one, or nothing is frequent enough.
    """
    if ngrams < 1 or min_documents < 1:
        raise InputError(f"n-grams and minimum documents must be at least 1, not {ngrams} and {min_documents}")
    parts: Iterable[TokenStream] = [stream] if isinstance(stream, TokenStream) else stream
    seen = Frequencies(pl.String)
    for part in parts:
        seen.add(*word_frequencies(part))
    frequent = seen.frequent(min_documents)
    if not len(frequent):
        raise InputError(f"no token stands in {min_documents} documents or more: lower --min-documents")
    words = tuple(frequent.to_list())
    grams: tuple[Ints, ...] = ()
    for _ in range(ngrams - 1):
        seen, known = Frequencies(pl.Int64), Vocabulary(words, grams, tokenizer)
        for part in parts:
            seen.add(*known.gram_frequencies(part))
        grams = (*grams, seen.frequent(min_documents).to_numpy())
    return Vocabulary(words, grams, tokenizer)


def word_frequencies(stream: TokenStream) -> tuple[pl.Series, Ints]:
    """Every word, and the number of documents that contain it."""
    matrix = tally(stream.ids[:, None], stream.starts, len(stream.words))
    found = np.bincount(matrix.indices, minlength=len(stream.words))
    return pl.Series(stream.words, dtype=pl.String), found.astype(np.int64)


def _gram_keys(prefix: NDArray[Any], ids: NDArray[Any], documents: Ints, n_words: int) -> Ints:
    """Key of the n-gram ending at each token: prefix ending one token earlier · n_words + word; −1 where there is none."""
    keys = np.full(len(ids), -1, dtype=np.int64)
    there = (prefix[:-1] >= 0) & (ids[1:] >= 0) & (documents[:-1] == documents[1:])
    keys[1:][there] = prefix[:-1][there].astype(np.int64) * n_words + ids[1:][there]
    return keys


def _document_frequencies(keys: Ints, documents: Ints, n: int) -> tuple[pl.Series, Ints]:
    """Distinct non-negative keys, sorted, and how many of the n documents each stands in."""
    there = keys >= 0
    values, distinct = keys[there], None
    if len(values) and int(values.max()) >= (2**63 - 1) // max(n, 1) - 1:
        distinct, values = np.unique(values, return_inverse=True)
    pairs = np.sort(values * n + documents[there])  # sorting beats the hashing of np.unique here
    in_document = pairs[_changes(pairs)] // max(n, 1)
    first = np.flatnonzero(_changes(in_document))
    kept = in_document[first]
    found = np.diff(np.append(first, len(in_document))).astype(np.int64)
    return pl.Series(kept if distinct is None else distinct[kept], dtype=pl.Int64), found


def _changes(ordered: Ints) -> NDArray[np.bool_]:
    """Where a sorted array starts a new value."""
    new = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return new


def _find(keys: Ints, wanted: Ints) -> Ints:
    """Position of each wanted value in sorted `keys`, −1 where it is not there."""
    table = pl.DataFrame({"key": keys, "at": np.arange(len(keys), dtype=np.int64)})
    query = pl.DataFrame({"key": wanted})
    return query.join(table, on="key", how="left", maintain_order="left")["at"].fill_null(-1).to_numpy()
