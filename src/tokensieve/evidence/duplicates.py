"""Exact and near duplicates: documents that share most of their word sequences (Broder 1997).

A document is the set of its runs of three words (shingles). For a random hash function, two sets
have the same minimum with a probability equal to their Jaccard similarity J = |A ∩ B| / |A ∪ B|, so
that the share of 64 minima that agree estimates J with standard error √(J(1−J)/64), 0.05 at J =
0.8. Candidates are documents that agree in all four minima of at least one band (locality-sensitive
hashing, Leskovec et al. 2020, section 3.4): a pair of J = 0.8 is missed once in 5,000 times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from tokensieve.arrays import Ints, row_blocks
from tokensieve.evidence.word_edits import one_word_pairs
from tokensieve.files import Folder
from tokensieve.text.vocabulary import Chunks, TokenStream

SHINGLE = 3  # words
HASHES = 64
ROWS_PER_BAND = 4
BANDS = HASHES // ROWS_PER_BAND
ROW_NAMES = "abcd"  # columns of a band's minima
MIN_JACCARD = 0.8  # of the shingles of two documents that are nearly the same
BLOCK = 2**16  # shingles at a time, so that they stay in the processor's cache
SEED = 2021  # of the hash functions: signatures of one version can be compared
MIX_SHIFT = 29  # bits; spreads the high bits of a product, as in SplitMix64

Hashes = NDArray[np.uint32]
Bools = NDArray[np.bool_]
DIGEST = 0  # the number of the "band" that holds a document's digest instead of minima


def near_duplicates(chunks: Iterable[Chunks]) -> Ints:
    """Find for each document the first one that it copies or nearly copies; itself if there is
    none.

    Documents are those of one corpus after the other; the result has shape (n,). Documents of an
    estimated similarity from `MIN_JACCARD` on are joined, and those of up to 60 words that differ
    in one (`word_edits`), chains included.
    """
    corpora = list(chunks)
    has_words = [np.empty(0, bool)]

    def minima() -> Iterator[Hashes]:
        for stream in chain.from_iterable(corpora):
            has_words.append(np.diff(stream.starts) > 0)
            yield signatures(stream)

    no_documents = np.empty((0, HASHES), np.uint32)
    if all(isinstance(corpus, TokenStream) for corpus in corpora):
        stored = np.concatenate([no_documents, *minima()])
    else:  # the tokens are in files, and so are 256 bytes for each document
        folder = Folder()  # it is removed with this object
        path = folder.save(block.tobytes() for block in minima())
        stored = np.memmap(path, np.uint32, "r").reshape(-1, HASHES)
    documents = np.flatnonzero(np.concatenate(has_words))
    pairs = candidates_of_bands(bands(stored, documents, documents))
    pairs = similar(pairs, np.arange(len(stored)), stored)
    return first_of_group(len(stored), merged(pairs, one_word_pairs(corpora)))


@dataclass(frozen=True)
class HashFunctions:
    """What is random in the signatures.

    Attributes:
        factors: of the words of a shingle and of the whole, odd, shape (SHINGLE + 1,).
        multipliers, offsets: of each hash function, multipliers odd, shape (HASHES,).
    """

    factors: NDArray[np.uint64]
    multipliers: Hashes
    offsets: Hashes

    @classmethod
    def seeded(cls) -> HashFunctions:
        """The same in every process."""
        rng = np.random.default_rng(SEED)
        factors = rng.integers(0, 2**63, SHINGLE + 1, dtype=np.uint64)
        multipliers = rng.integers(0, 2**31, HASHES, dtype=np.uint32)
        offsets = rng.integers(0, 2**32, HASHES, dtype=np.uint32)
        odd_factors = factors * np.uint64(2) + np.uint64(1)
        return cls(odd_factors, multipliers * np.uint32(2) + np.uint32(1), offsets)


def signatures(stream: TokenStream) -> Hashes:
    """Minima of each document, shape (n, HASHES); 0 for one without words.

    A document of fewer than SHINGLE words is one shingle, padded.
    """
    minima = np.zeros((stream.n_documents, HASHES), np.uint32)
    if not stream.n_tokens:
        return minima
    functions = HashFunctions.seeded()
    hash_of_word = pl.Series(stream.words, dtype=pl.String).hash(SEED).to_numpy()
    lengths = np.diff(stream.starts)
    for rows in row_blocks(stream.starts, BLOCK):
        documents = np.flatnonzero(lengths[rows]) + rows.start
        if not len(documents):
            continue
        first_token = stream.starts[rows.start]
        words = hash_of_word[stream.ids[first_token : stream.starts[rows.stop]]]
        starts = stream.starts[documents] - first_token
        shingles = _shingles(words, starts, lengths[documents], functions.factors)
        for h in range(HASHES):
            hashed = shingles.hashes * functions.multipliers[h] ^ functions.offsets[h]
            minima[documents, h] = np.minimum.reduceat(hashed, shingles.starts)
    return minima


@dataclass(frozen=True)
class Shingles:
    """Hashes of the runs of words of some documents, and where each document begins among them."""

    hashes: Hashes
    starts: Ints


def _shingles(
    words: NDArray[np.uint64], starts: Ints, lengths: Ints, factors: NDArray[np.uint64]
) -> Shingles:
    """The shingles of documents that begin at `starts` among the hashed words."""
    counts = np.maximum(lengths - SHINGLE + 1, 1)
    ends = np.cumsum(counts)
    begins = ends - counts
    positions = np.arange(ends[-1]) + np.repeat(starts - begins, counts)
    document_ends = np.repeat(starts + lengths, counts)
    hashed = np.zeros(len(positions), np.uint64)
    for i in range(SHINGLE):
        is_inside = positions + i < document_ends
        hashed[is_inside] = (hashed[is_inside] ^ words[positions[is_inside] + i]) * factors[i]
        hashed ^= hashed >> np.uint64(MIX_SHIFT)
    hashed *= factors[SHINGLE]
    return Shingles((hashed >> np.uint64(32)).astype(np.uint32), begins)


def bands(minima: Hashes, rows: NDArray[np.generic], documents: Ints) -> Iterator[pl.DataFrame]:
    """Tables, one for each band, with a row per document: band (from 1), its minima a, b, c and d,
    document.

    `rows` (places or a mask) says which of the signatures are those of the documents.
    """
    for number in range(BANDS):
        first = number * ROWS_PER_BAND
        columns = {name: minima[rows, first + i] for i, name in enumerate(ROW_NAMES)}
        band = pl.lit(1 + number, pl.UInt8)
        yield pl.DataFrame(columns | {"document": documents}).with_columns(band=band)


def candidates(band: pl.DataFrame) -> Ints:
    """Pairs (earlier, later) of documents that agree in a band, shape (pairs, 2).

    Each document is paired with the first of its bucket.
    """
    key = ["band", *ROW_NAMES]
    buckets = band.group_by(key).agg(first=pl.col("document").min(), size=pl.len())
    buckets = buckets.filter(pl.col("size") > 1)
    pairs = band.join(buckets, on=key).filter(pl.col("first") != pl.col("document"))
    return pairs.select("first", "document").to_numpy()


def similar(pairs: Ints, documents: Ints, minima: Hashes) -> Ints:
    """The candidate pairs of an estimated Jaccard index of at least `MIN_JACCARD`, in order.

    The estimate is the fraction of hashes whose minimum both documents share.

    Args:
        pairs: row numbers of documents, shape (m, 2).
        documents: the row numbers that have a signature, ascending.
        minima: their signatures, shape (len(documents), HASHES).
    """
    agreement = np.empty(len(pairs))
    for start in range(0, len(pairs), BLOCK):
        block = slice(start, start + BLOCK)
        a, b = np.searchsorted(documents, pairs[block]).T
        agreement[block] = (minima[a] == minima[b]).mean(axis=1)
    return pairs[agreement >= MIN_JACCARD]


def candidates_of_bands(frames: Iterable[pl.DataFrame]) -> Ints:
    """The candidates of several bands, merged one by one, so that few are in memory."""
    pairs = np.empty((0, 2), np.int64)
    for band in frames:
        pairs = merged(pairs, candidates(band))
    return pairs


def merged(pairs: Ints, others: Ints) -> Ints:
    """All pairs of two arrays of shape (m, 2), each once, in ascending order."""
    return np.unique(np.concatenate([pairs, others]), axis=0)


def first_of_group(n: int, pairs: Ints) -> Ints:
    """The first of the documents that each is joined with by pairs, chains included.

    Args:
        n: how many documents there are.
        pairs: the numbers of two documents in each row, shape (m, 2).

    Returns:
        For each document the smallest number in its group, itself if it is in no pair; shape (n,).
    """
    if not n:
        return np.empty(0, np.int64)
    a, b = pairs.T
    graph = sp.coo_array((np.ones(len(a), np.int8), (a, b)), shape=(n, n))
    group = connected_components(graph, directed=False)[1]
    first = np.full(group.max() + 1, n, dtype=np.int64)
    np.minimum.at(first, group, np.arange(n))
    return np.asarray(first[group])


def count_exact_copies(marks: pl.DataFrame, first_test: int) -> Counter[str]:
    """Numbers of documents of the same digest.

    Args:
        marks: a row for each document and band, and one with its digest (band 0); columns band, a
            to d, document, label, and words, whether it has any.
        first_test: number of the first test document.
    """
    is_test = pl.col("document") >= first_test
    label = pl.col("label")
    groups = (
        marks.filter(pl.col("band") == DIGEST)
        .group_by(*"abc")
        .agg(
            pl.col("words").first(),
            train=(~is_test).sum().cast(pl.Int64),
            test=is_test.sum().cast(pl.Int64),
            labels=label.n_unique(),
            train_labels=label.filter(~is_test).n_unique().cast(pl.Int64),
        )
    )
    mixed = groups.filter(pl.col("train_labels") > 1)
    leaked = groups.filter(pl.col("train") > 0)
    contradicting = groups.filter(pl.col("labels") > 1)
    # those with words have a signature, and are counted with the near copies
    leaked_without_words = leaked.filter(~pl.col("words"))
    return Counter(
        {
            "duplicates": (leaked["train"] - leaked["train_labels"]).sum(),
            "conflicts": mixed.height,
            "conflicting_documents": mixed["train"].sum(),
            "test_overlap": leaked["test"].sum(),
            "leaked_copies": leaked["test"].sum(),
            "leaked": leaked_without_words["test"].sum(),
            "contradicting": (contradicting["train"] + contradicting["test"]).sum(),
        }
    )


def candidates_of_marks(marks: pl.DataFrame) -> Ints:
    """The candidates of all bands, of the same `marks` as for `count_exact_copies`."""
    return candidates_of_bands(
        marks.filter(pl.col("band") == 1 + number) for number in range(BANDS)
    )


def count_near_copies(pairs: Sequence[Ints], first_test: int) -> Counter[str]:
    """Numbers of documents that are copies or near copies of others, from similar pairs.

    Args:
        pairs: arrays of shape (m, 2) with the numbers of two similar documents in each row.
        first_test: the number of the first test document; those below it are for training.

    Returns:
        "leaked": test documents in a group with a training document; "repeated": training documents
        without the first one of each group.
    """
    no_pairs = np.empty((0, 2), np.int64)
    all_pairs = np.concatenate([no_pairs, *pairs])
    documents = np.unique(all_pairs)
    places = np.searchsorted(documents, all_pairs)
    group = first_of_group(len(documents), places)
    is_test = documents >= first_test
    n_test = np.bincount(group[is_test], minlength=len(group))
    n_train = np.bincount(group[~is_test], minlength=len(group))
    leaked = n_test[n_train > 0].sum()
    repeated = np.maximum(n_train - 1, 0).sum()
    return Counter(leaked=int(leaked), repeated=int(repeated))
