"""Short documents that are the same but for one word.

Three-word sequences tell near duplicates among long texts only: one word removed from ten changes
half of them. Here each document of moderate length is compared as a whole: it is a near copy of
another if removing one word from either gives the other (a word was added or removed), and, from
`MIN_WORDS_MOVED` words on, if removing one word from both leaves the same (a word was replaced or
moved). The minima were chosen on sets and kinds of edits that `benchmarks/near_duplicates.py` does
not report.

The hash of a document without word i is had from sums, as in the algorithm of Karp & Rabin (1987):

    h(X) = Σ_j w_j B^j       h(X without i) = Σ_{j<i} w_j B^j + B⁻¹ Σ_{j>i} w_j B^j       (mod 2⁶⁴)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tokensieve.arrays import Ints
from tokensieve.text.vocabulary import Chunks, TokenStream

MIN_WORDS_ADDED = 6  # of the longer text: "turn the lights on" has natural neighbours
MIN_WORDS_MOVED = 15  # shorter sentences made from one template differ in a name or a number
MAX_WORDS = 60  # of longer texts, three-word sequences tell
BASE = 0x9E3779B97F4A7C15  # odd, so that it has an inverse modulo 2⁶⁴
SEED = 2021  # of the hashes of words
MAX_VARIANTS = 20_000_000  # at a time: about 500 MB


def one_word_pairs(corpora: Sequence[Chunks]) -> Ints:
    """Pairs (earlier, later) of documents that differ in one word, shape (pairs, 2).

    The documents of all corpora are numbered together. Their variants are compared in parts, so
    that the memory does not grow with the corpora.
    """
    n_words = sum(_compared(stream).stream.n_tokens for corpus in corpora for stream in corpus)
    n_parts = 1 + n_words // MAX_VARIANTS
    pairs = [np.empty((0, 2), np.int64)]
    for part in range(n_parts):
        frames = []
        n_before = 0
        for stream in chain.from_iterable(corpora):
            variants = _variants(stream).filter(pl.col("hash") % n_parts == part)
            frames.append(variants.with_columns(pl.col("document") + n_before))
            n_before += stream.n_documents
        if frames:
            pairs.append(_pairs_of(pl.concat(frames)))
    return np.unique(np.concatenate(pairs), axis=0)


def _pairs_of(variants: pl.DataFrame) -> Ints:
    """Pairs of documents of which one is what is left of the other without a word, and so on."""
    buckets = variants.group_by("hash", "words").agg(
        first=pl.col("document").min(),
        first_whole=pl.col("document").filter(pl.col("is_whole")).min(),
        n=pl.col("document").n_unique(),
    )
    buckets = buckets.filter(pl.col("n") > 1)
    members = variants.join(buckets, on=["hash", "words"])
    # two documents that are equal without a word of each are near copies only if they are long
    is_long = pl.col("words") + 1 >= MIN_WORDS_MOVED
    partner = pl.coalesce("first_whole", pl.when(is_long).then("first"))
    pairs = members.with_columns(partner=partner).filter(
        pl.col("partner").is_not_null(), pl.col("partner") != pl.col("document")
    )
    return pairs.select(
        earlier=pl.min_horizontal("partner", "document"),
        later=pl.max_horizontal("partner", "document"),
    ).to_numpy()


def document_hashes(stream: TokenStream) -> NDArray[np.uint64]:
    """One hash of the words of each document, shape (n,)."""
    sums = _prefix_sums(stream)
    return np.asarray(sums[stream.starts[1:]] - sums[stream.starts[:-1]])


@dataclass(frozen=True)
class _Compared:
    """The documents of a stream that are long enough to be compared, and not too long.

    Attributes:
        stream: these documents.
        documents: their numbers, ascending.
    """

    stream: TokenStream
    documents: Ints


def _compared(stream: TokenStream) -> _Compared:
    """The documents that may be one word longer or shorter than another."""
    lengths = np.diff(stream.starts)
    is_compared = (lengths >= MIN_WORDS_ADDED - 1) & (lengths <= MAX_WORDS)
    starts = np.append(0, np.cumsum(lengths[is_compared]))
    part = TokenStream(stream.ids[np.repeat(is_compared, lengths)], starts, stream.words)
    return _Compared(part, np.flatnonzero(is_compared))


def _prefix_sums(stream: TokenStream) -> NDArray[np.uint64]:
    """Σ w_j B^j over all words before each place, modulo 2⁶⁴; j counts within a document."""
    lengths = np.diff(stream.starts)
    position = np.arange(stream.n_tokens) - np.repeat(stream.starts[:-1], lengths)
    hashes = pl.Series(stream.words, dtype=pl.String).hash(SEED).to_numpy()
    powers = np.ones(max(int(lengths.max(initial=0)), 1), dtype=np.uint64)
    powers[1:] = np.uint64(BASE)
    powers = np.cumprod(powers)
    terms = hashes[stream.ids] * powers[position]
    return np.append(np.uint64(0), np.cumsum(terms))


def _variants(stream: TokenStream) -> pl.DataFrame:
    """A row per document as a whole, and per word that could be removed from it.

    Columns: hash, words (how many it has), document, is_whole.
    """
    compared = _compared(stream)
    sums = _prefix_sums(compared.stream)
    return pl.concat([_whole_documents(compared, sums), _without_each_word(compared, sums)])


def _whole_documents(compared: _Compared, sums: NDArray[np.uint64]) -> pl.DataFrame:
    """A row per document, with the hash of all its words."""
    starts = compared.stream.starts
    return pl.DataFrame(
        {
            "hash": sums[starts[1:]] - sums[starts[:-1]],
            "words": np.diff(starts),
            "document": compared.documents,
            "is_whole": np.ones(len(compared.documents), dtype=np.bool_),
        }
    )


def _without_each_word(compared: _Compared, sums: NDArray[np.uint64]) -> pl.DataFrame:
    """A row per word of each document, with the hash of the document without that word.

    The hash of words 1 … m is Σ word_i BASE^i modulo 2⁶⁴ (`_prefix_sums`): those behind the removed
    word move one place forward, so that their part is divided by BASE.
    """
    starts = compared.stream.starts
    lengths = np.diff(starts)
    n_words = np.repeat(lengths, lengths)
    document = np.repeat(compared.documents, lengths)
    before = sums[:-1] - np.repeat(sums[starts[:-1]], lengths)
    after = np.repeat(sums[starts[1:]], lengths) - sums[1:]
    inverse = np.uint64(pow(BASE, -1, 2**64))  # moves the words after it one place forward
    hashes = before + after * inverse
    is_removable = n_words >= MIN_WORDS_ADDED
    return pl.DataFrame(
        {
            "hash": hashes[is_removable],
            "words": n_words[is_removable] - 1,
            "document": document[is_removable],
            "is_whole": np.zeros(int(is_removable.sum()), dtype=np.bool_),
        }
    )
