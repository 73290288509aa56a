"""Texts → token ids: in memory one chunk, streamed many; what is learned of a corpus is a sum over its chunks.

Splitting runs in Polars' regular-expression and categorical kernels, a few thousand documents at a time.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, TypeVar, overload

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tokensieve.text.counts import Ints
from tokensieve.text.spill import MatrixWriter, Shards, StoredTexts
from tokensieve.text.tokenizers import Tokenizer

CHUNK = 4096
S = TypeVar("S")
R = TypeVar("R")


class Chunks:
    """A corpus as `TokenStream`s, wherever they lie."""

    def __iter__(self) -> Iterator[TokenStream]:
        raise NotImplementedError

    def total(self, of: Callable[..., S], *common: Any, then: Callable[[S], R]) -> R:
        """What `then` makes of the sum of `of(chunk, *common)` over all chunks."""
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

    def __iter__(self) -> Iterator[TokenStream]:
        yield self

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


class StoredTokens(Chunks):
    """A corpus as token ids in files: chunks with words of their own, of which one at a time is in memory.

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

    def writer(self, levels: int, others: int = 0) -> MatrixWriter:
        """Files for the counts of these documents: n-grams of up to `levels` words, and up to `others` more types in each."""
        return MatrixWriter(self._shards.folder, self.n_tokens * levels + self.n_documents * others)


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
