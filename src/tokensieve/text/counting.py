"""Counting token ids: which types each document has, n-grams, and in how many documents each
occurs.

Loops over tokens are compiled by Numba. Each has a docstring that says what it computes, and a test
compares it with NumPy or plain Python (tests/text/test_counts.py). Arrays are made outside of
compiled code, because making one there doubles the time of compiling.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tokensieve.arrays import Floats, Ints, Positions, in_ranges, in_threads
from tokensieve.kernels import compiled

# 2⁶⁴ / golden ratio: its products spread neighbouring keys (Knuth 1973, 6.4)
GOLDEN_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
MIN_TABLE_BITS = 4  # of the hash table, so that a shift by 64 − bits is defined
LARGEST_INT = 2**63 - 1


@dataclass(frozen=True)
class _ListedByType:
    """The documents of every occurrence in a run of documents, type by type.

    Attributes:
        documents: the run.
        starts: where the occurrences of each type begin, shape (types + 1,).
        document_of: the document of each occurrence, from the run's first on, shape (occurrences,).
    """

    documents: slice
    starts: Ints
    document_of: Positions


def count_types(
    types: Positions, starts: Ints, n_types: int, others: NDArray[np.bool_] | None = None
) -> sp.csr_array:
    """Count the types of each document: CSR (n, types), indices sorted.

    It takes O(tokens · levels + n + types).

    Documents are listed under each type first; going through the types then fills each document's
    row without sorting.

    Args:
        types: type of what ends at each token, shape (tokens, levels); −1 for none.
        starts: where each document begins among the tokens, shape (n+1,).
        n_types: how many types there are in `types`; |S| if there are no others.
        others: further types, behind these, that each document has once or not at all, shape (n,
            |S| − n_types).
    """
    types = np.ascontiguousarray(types, dtype=np.int32)
    n = len(starts) - 1
    others = np.zeros((n, 0), np.bool_) if others is None else others
    n_others = others.sum(axis=1)
    row_ends = np.zeros(n + 1, np.int64)  # at first the size of each row, behind a 0

    def list_run(run: slice) -> _ListedByType:
        listed = _list_by_type(types, starts, run, n_types)
        row_ends[run.start + 1 : run.stop + 1] = list_frequencies(
            listed.document_of, listed.starts, run.stop - run.start
        )
        return listed

    runs = in_threads(list_run, n, types.size)
    row_ends[1:] += n_others
    np.cumsum(row_ends, out=row_ends)
    indices = np.empty(row_ends[-1], np.int32)
    data = np.empty(row_ends[-1])

    def fill(which: slice) -> None:
        for run in runs[which]:
            next_entry = row_ends[run.documents].copy()
            _fill_rows(run.starts, run.document_of, next_entry, indices, data)

    in_threads(fill, len(runs), types.size)
    is_other = _last_entries(row_ends, n_others)
    indices[is_other] = n_types + np.nonzero(others)[1]
    data[is_other] = 1.0

    index_type = np.int32 if types.size < 2**31 else np.int64
    arrays = (data, indices.astype(index_type, copy=False), row_ends.astype(index_type))
    matrix = sp.csr_array(arrays, shape=(n, max(n_types + others.shape[1], 1)))
    matrix.has_canonical_format = True
    return matrix


def _last_entries(row_ends: Ints, sizes: Ints) -> Ints:
    """Places of the last sizes[k] entries of each row k, which ends at row_ends[k + 1].

    Row after row, shape (Σ sizes,).
    """
    n_before = np.cumsum(sizes)
    first = np.repeat(row_ends[1:] - n_before, sizes)
    return first + np.arange(len(first))


def _list_by_type(types: Positions, starts: Ints, run: slice, n_types: int) -> _ListedByType:
    """The occurrences of every type in a run of documents, by a counting sort."""
    run_starts = starts[run.start : run.stop + 1]
    occurrences = types[run_starts[0] : run_starts[-1]].ravel()
    type_starts = np.zeros(n_types + 2, np.int64)
    document_of = np.empty(len(occurrences), np.int32)
    row_starts = (run_starts - run_starts[0]) * types.shape[1]
    _by_type(occurrences, row_starts, type_starts, document_of)
    return _ListedByType(run, type_starts[:-1], document_of)


def list_frequencies(ids: Positions, starts: Ints, n: int) -> Ints:
    """Count the lists in which each of n ids occurs, each list once, shape (n,).

    List k is ids[starts[k] : starts[k + 1]]; an id that it has twice counts once.
    """
    n_lists = np.zeros(n, np.int64)
    _count_lists(ids, starts, np.full(n, -1, np.int64), n_lists)
    return n_lists


def ngram_keys(types: Positions, level: int, starts: Ints, first: Ints) -> Ints:
    """Key of the n-gram of level + 2 words that ends at each token, shape (tokens,).

    The key is (place of the n-gram without the last word among those of its length) · (number of
    words) + (the last word); −1 where there is no such n-gram.

    Args:
        types: column n has the type of the n-gram of n + 1 words that ends at each token; −1 for
            unknown ones.
        level: the last column that is filled.
        starts: where each document begins among the tokens, shape (n+1,).
        first: where the types of each column begin; first[1] is the number of words.
    """
    keys = np.empty(len(types), np.int64)
    _go_through_ngrams(types, level, starts, first, np.empty(0, np.int64), keys)
    return keys


def fill_ngrams(types: Positions, level: int, starts: Ints, first: Ints, known: Ints) -> None:
    """Write the types of n-grams of level + 2 words into column level + 1 of `types`; −1 for
    unknown ones.

    They are found in a hash table with linear probing: six times as fast as a sorted search, twice
    as a join by Polars.

    Args:
        types, level, starts, first: as of `ngram_keys`.
        known: the distinct keys of the n-grams that are types.
    """
    # a copy is writable, so that the loop is compiled once
    _go_through_ngrams(types, level, starts, first, known.copy(), np.empty(0, np.int64))


def _go_through_ngrams(
    types: Positions, level: int, starts: Ints, first: Ints, known: Ints, keys: Ints
) -> None:
    """Find the n-grams of a level in parallel, either to number them or to write their keys.

    `known` are sorted keys; a hash table finds them in one look-up.
    """
    bits = max(MIN_TABLE_BITS, (2 * len(known)).bit_length())
    slots = np.full(1 << bits, -1, np.int32)
    _fill_slots(known, bits, slots)

    def go_through(run: slice) -> None:
        run_starts = starts[run.start : run.stop + 1]
        _ngrams(types, level, run_starts, first, known, slots, bits, keys)

    in_threads(go_through, len(starts) - 1, len(types))


@dataclass(frozen=True)
class KeyFrequencies:
    """Distinct keys, ascending, and the number of documents that contain each."""

    keys: Ints
    documents: Ints


def document_frequencies(keys: Ints, starts: Ints) -> KeyFrequencies:
    """Count the documents that contain each non-negative key of tokens.

    Args:
        keys: a key for each token; negative ones are ignored.
        starts: document k is the tokens from starts[k] to starts[k + 1].
    """
    n = len(starts) - 1
    names = None
    largest = int(keys.max(initial=0))
    if largest >= LARGEST_INT // max(n, 1) - 1:  # too large to join with the document
        names, places = np.unique(keys, return_inverse=True)
        keys = places - np.searchsorted(names, 0)
        names = names[names >= 0]

    def count(low: int, high: int) -> KeyFrequencies:
        # two arrays, of which only what is written takes memory
        pairs, sizes = np.empty((2, len(keys)), np.int64)
        n_pairs = _key_documents(keys, starts, max(low, 0), high, pairs)
        pairs = pairs[:n_pairs]
        pairs.sort()  # several times as fast as hashing
        n_keys = _count_runs(pairs, max(n, 1), sizes)
        return KeyFrequencies(pairs[:n_keys].copy(), sizes[:n_keys].copy())

    ranges = in_ranges(count, keys)
    found_keys = np.concatenate([part.keys for part in ranges])
    documents = np.concatenate([part.documents for part in ranges])
    return KeyFrequencies(found_keys if names is None else names[found_keys], documents)


@compiled(nogil=True)
def _count_lists(ids: Positions, starts: Ints, last: Ints, n_lists: Ints) -> None:
    """n_lists[s] = number of lists k with s in ids[starts[k] : starts[k + 1]].

    `last`, at first −1, has the last list of each id.
    """
    for k in range(len(starts) - 1):
        for s in ids[starts[k] : starts[k + 1]]:
            n_lists[s] += last[s] != k
            last[s] = k


@compiled(nogil=True)
def _key_documents(keys: Ints, starts: Ints, low: int, high: int, out: Ints) -> int:
    """Write key · n + document for each key from low to high − 1, in order of tokens; return how
    many there are."""
    n = len(starts) - 1
    size = 0
    for k in range(n):
        for i in range(starts[k], starts[k + 1]):
            if low <= keys[i] < high:
                out[size] = keys[i] * n + k
                size += 1
    return size


@compiled(nogil=True)
def _count_runs(pairs: Ints, n: int, sizes: Ints) -> int:
    """Replace sorted pairs, key · n + document, by their distinct keys; return how many keys there
    are.

    sizes[i] is the number of different documents of the i-th key.
    """
    previous = -1
    n_keys = 0
    end_of_key = 0
    for pair in pairs:
        if pair == previous:
            continue
        previous = pair
        if pair >= end_of_key:
            key = pair // n
            pairs[n_keys] = key
            sizes[n_keys] = 0
            n_keys += 1
            end_of_key = (key + 1) * n
        sizes[n_keys - 1] += 1
    return n_keys


@compiled(nogil=True)
def add_documents(
    starts: Ints, types: Positions, labels: Ints, weights: Floats, out: Floats
) -> None:
    """out[s, labels[k]] += weights[k] for each document k and each of its types s.

    Args:
        starts: document k has the types from starts[k] to starts[k + 1], shape (n + 1,).
        types: those of all documents, each once in a document.
        labels: from 0 to K − 1, shape (n,).
        weights: shape (n,).
        out: shape (types, K); changed.
    """
    for k in range(len(labels)):
        for s in types[starts[k] : starts[k + 1]]:
            out[s, labels[k]] += weights[k]


@compiled(nogil=True)
def _by_type(rows: Positions, starts: Ints, first: Ints, documents: Positions) -> None:
    """Sort the occurrences of types by type, keeping the order of documents: a counting sort.

    `documents` receives the document of each occurrence, first[s] where those of type s begin.
    `first` has two places more than types, at first 0, of which the last is not needed afterwards.
    """
    for s in rows:
        if s >= 0:
            first[s + 2] += 1
    for s in range(len(first) - 1):
        first[s + 1] += first[s]
    for k in range(len(starts) - 1):
        for s in rows[starts[k] : starts[k + 1]]:
            if s >= 0:
                # the next one of type s goes to first[s + 1], which ends where type s + 1 begins
                documents[first[s + 1]] = k
                first[s + 1] += 1


@compiled(nogil=True)
def _fill_rows(
    first: Ints, documents: Positions, next_entry: Ints, indices: Positions, data: Floats
) -> None:
    """Write types and their counts into the rows of documents, given the documents of each type
    (`_by_type`).

    Row k begins at next_entry[k]; afterwards next_entry[k] is where it ends.
    """
    for s in range(len(first) - 1):
        previous = -1
        for k in documents[first[s] : first[s + 1]]:
            if k == previous:
                data[next_entry[k] - 1] += 1.0
                continue
            indices[next_entry[k]] = s
            data[next_entry[k]] = 1.0
            next_entry[k] += 1
            previous = k


@compiled(nogil=True)
def _fill_slots(keys: Ints, bits: int, slots: Positions) -> None:
    """Fill the hash table, at first −1: the position of a key stands at the slot of its hash, or at
    the next free one."""
    mask = (1 << bits) - 1
    shift = np.uint64(64 - bits)
    for i in range(len(keys)):
        slot = np.int64((np.uint64(keys[i]) * GOLDEN_MULTIPLIER) >> shift)
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = i


@compiled(nogil=True)
def _ngrams(
    types: Positions,
    level: int,
    starts: Ints,
    first: Ints,
    known: Ints,
    slots: Positions,
    bits: int,
    keys: Ints,
) -> None:
    """Go through the n-grams of level + 2 words: write their keys or, if `keys` is empty, the next
    column of `types`.

    The n-gram that ends at token i consists of the shorter one that ends at i − 1 and the word at
    i.
    """
    mask = (1 << bits) - 1
    shift = np.uint64(64 - bits)
    for k in range(len(starts) - 1):
        shorter = np.int64(-1)  # place of the n-gram that ends one token earlier
        for i in range(starts[k], starts[k + 1]):
            key = np.int64(-1)
            if shorter >= 0 and types[i, 0] >= 0:
                key = shorter * first[1] + types[i, 0]
            shorter = types[i, level] - first[level]
            if len(keys):
                keys[i] = key
                continue
            types[i, level + 1] = -1
            slot = np.int64((np.uint64(key) * GOLDEN_MULTIPLIER) >> shift)
            while key >= 0 and slots[slot] >= 0:
                if known[slots[slot]] == key:
                    types[i, level + 1] = first[level + 1] + slots[slot]
                    break
                slot = (slot + 1) & mask
