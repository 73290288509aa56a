"""Exact and near duplicates: documents that share most of their word sequences (MinHash, Broder 1997).

A document is the set of its runs of SHINGLE words. For a random hash function, two sets have the same minimum with a probability
equal to their Jaccard similarity J = |A ∩ B| / |A ∪ B|, so that the share of HASHES minima that agree estimates J with standard
error √(J(1−J)/HASHES), 0.05 at J = 0.8. Candidates are documents that agree in all ROWS minima of at least one band
(locality-sensitive hashing, Leskovec et al. 2020, section 3.4): a pair of J = 0.8 is missed once in 5,000 times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import chain

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from tokensieve.arrays import Ints, row_blocks
from tokensieve.files import Folder
from tokensieve.text.vocabulary import Chunks, TokenStream

SHINGLE, HASHES, ROWS = 3, 64, 4
BLOCK = 2**16  # shingles at a time, so that they stay in the processor's cache
SEED = 2021
Hashes = NDArray[np.uint32]


def near_duplicates(chunks: Iterable[Chunks], threshold: float = 0.8) -> Ints:
    """For each document, of one corpus after the other, the first whose word triples agree with its own, itself where there is
    none, shape (n,); documents of an estimated Jaccard similarity from `threshold` on are joined, chains included.
    """
    corpora, worded = list(chunks), [np.empty(0, bool)]

    def signed() -> Iterator[Hashes]:
        for stream in chain.from_iterable(corpora):
            minima, there = MinHash.signatures(stream)
            worded.append(there)
            yield minima

    if all(isinstance(corpus, TokenStream) for corpus in corpora):
        signatures = np.concatenate([np.empty((0, HASHES), np.uint32), *signed()])
    else:  # the tokens are in files, and so are 256 bytes for each document
        folder = Folder()
        signatures = np.memmap(
            folder.save(minima.tobytes() for minima in signed()), np.uint32, "r"
        ).reshape(-1, HASHES)
    n, there = len(signatures), np.flatnonzero(np.concatenate(worded))
    pairs = reduce(MinHash.merged, map(MinHash.candidates, MinHash.bands(signatures, there, there)))
    return MinHash.first(n, MinHash.alike(pairs, np.arange(n), signatures, threshold))


class MinHash:
    """The steps of `near_duplicates`, for documents that lie in several places."""

    @staticmethod
    def signatures(stream: TokenStream) -> tuple[Hashes, NDArray[np.bool_]]:
        """Minima of each document, shape (n, HASHES), and whether it has any word, shape (n,).

        A document of fewer than SHINGLE words is one shingle, padded.
        """
        rng = np.random.default_rng(SEED)
        factors = rng.integers(0, 2**63, (SHINGLE + 1), dtype=np.uint64) * np.uint64(2) + np.uint64(
            1
        )
        multipliers = rng.integers(0, 2**31, HASHES, dtype=np.uint32) * np.uint32(2) + np.uint32(1)
        offsets = rng.integers(0, 2**32, HASHES, dtype=np.uint32)
        words = (
            pl.Series(stream.words, dtype=pl.String).hash(SEED).to_numpy()[stream.ids]
            if stream.n_tokens
            else None
        )
        lengths = np.diff(stream.starts)
        out = np.zeros((stream.n_documents, HASHES), np.uint32)
        for rows in row_blocks(stream.starts, BLOCK):
            some = np.flatnonzero(lengths[rows]) + rows.start
            if len(some) and words is not None:
                shingles, starts = _shingles(words, stream.starts[some], lengths[some], factors)
                for h in range(HASHES):
                    out[some, h] = np.minimum.reduceat(
                        shingles * multipliers[h] ^ offsets[h], starts
                    )
        return out, lengths > 0

    @staticmethod
    def bands(
        signatures: Hashes, rows: NDArray[np.generic], documents: Ints
    ) -> Iterator[pl.DataFrame]:
        """For each band a row per document: band (from 1), its minima a, b, c and d, document. `rows` (places or a mask) says
        which signatures are theirs."""
        for start in range(0, HASHES, ROWS):
            minima = {name: signatures[rows, start + i] for i, name in enumerate("abcd")}
            band = pl.lit(1 + start // ROWS, pl.UInt8)
            yield pl.DataFrame(minima | {"document": documents}).with_columns(band=band)

    @staticmethod
    def candidates(bands: pl.DataFrame) -> Ints:
        """Pairs (earlier, later) of documents that agree in a band; each document with the first of its bucket; (pairs, 2)."""
        key = ["band", *"abcd"]
        buckets = (
            bands.group_by(key)
            .agg(first=pl.col("document").min(), size=pl.len())
            .filter(pl.col("size") > 1)
        )
        found = bands.join(buckets, on=key).filter(pl.col("first") != pl.col("document"))
        return found.select("first", "document").to_numpy()

    @staticmethod
    def alike(pairs: Ints, documents: Ints, signatures: Hashes, threshold: float = 0.8) -> Ints:
        """The candidates that are similar enough, given documents, in order, with their signatures."""
        agreeing = np.empty(len(pairs))
        for start in range(0, len(pairs), BLOCK):
            a, b = np.searchsorted(documents, pairs[start : start + BLOCK]).T
            agreeing[start : start + BLOCK] = (signatures[a] == signatures[b]).mean(axis=1)
        return pairs[agreeing >= threshold]

    @staticmethod
    def first(n: int, pairs: Ints) -> Ints:
        """The first of the n documents that each is joined with by pairs, chains included, shape (n,)."""
        a, b = pairs.T
        graph = sp.coo_array((np.ones(len(a), np.int8), (a, b)), shape=(n, n))
        group = connected_components(graph, directed=False)[1] if n else np.empty(0, np.int64)
        first = np.full(group.max(initial=-1) + 1, n, dtype=np.int64)
        np.minimum.at(first, group, np.arange(n))
        return np.asarray(first[group])

    @staticmethod
    def matched(found: pl.DataFrame, first_test: int) -> tuple[Counter[str], Ints]:
        """Numbers of documents of the same digest, and the candidates."""
        test, label = pl.col("document") >= first_test, pl.col("label")
        sums = found.filter(pl.col("band") == 0).group_by(*"abc")
        of = sums.agg(
            pl.col("words").first(),
            train=(~test).sum().cast(pl.Int64),
            test=test.sum().cast(pl.Int64),
            labels=label.n_unique(),
            kinds=label.filter(~test).n_unique().cast(pl.Int64),
        )
        mixed, leaked = of.filter(pl.col("kinds") > 1), of.filter(pl.col("train") > 0)
        opposed = of.filter(pl.col("labels") > 1)
        counts = {
            "duplicates": (leaked["train"] - leaked["kinds"]).sum(),
            "conflicts": mixed.height,
            "conflicting_documents": mixed["train"].sum(),
            "test_overlap": leaked["test"].sum(),
            "leaked_copies": leaked["test"].sum(),
            "leaked": leaked.filter(~pl.col("words"))[
                "test"
            ].sum(),  # the others have a signature (`counted`)
            "contradicting": (opposed["train"] + opposed["test"]).sum(),
        }
        bands = (found.filter(pl.col("band") == 1 + i) for i in range(HASHES // ROWS))
        return Counter(counts), reduce(MinHash.merged, map(MinHash.candidates, bands))

    @staticmethod
    def merged(pairs: Ints, others: Ints) -> Ints:
        """All of the pairs, each once."""
        return np.unique(np.concatenate([pairs, others]), axis=0)

    @staticmethod
    def counted(alike: Sequence[Ints], first_test: int) -> Counter[str]:
        """Numbers of documents that are copies or near copies of others."""
        pairs = np.concatenate([np.empty((0, 2), np.int64), *alike])
        documents = np.unique(pairs)
        first = MinHash.first(len(documents), np.searchsorted(documents, pairs))
        test = np.bincount(first[documents >= first_test], minlength=len(first))
        train = np.bincount(first[documents < first_test], minlength=len(first))
        return Counter(
            leaked=int(test[train > 0].sum()), repeated=int(np.maximum(train - 1, 0).sum())
        )


def _shingles(
    words: NDArray[np.uint64], starts: Ints, lengths: Ints, factors: NDArray[np.uint64]
) -> tuple[Hashes, Ints]:
    """Hashes of the runs of words of some documents, one after the other, and where each document begins."""
    counts = np.maximum(lengths - SHINGLE + 1, 1)
    ends = np.cumsum(counts)
    begins = ends - counts
    at = np.arange(ends[-1]) + np.repeat(starts - begins, counts)
    room = np.repeat(starts + lengths, counts)
    hashed = np.zeros(len(at), np.uint64)
    for i in range(SHINGLE):
        there = at + i < room
        hashed[there] = (hashed[there] ^ words[at[there] + i]) * factors[i]
        hashed ^= hashed >> np.uint64(29)
    hashed *= factors[SHINGLE]
    return (hashed >> np.uint64(32)).astype(np.uint32), begins
