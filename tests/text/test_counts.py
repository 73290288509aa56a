"""Documents × token types: what is accepted, what is refused, and the order by type."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from tokensieve.errors import InputError
from tokensieve.model.attention import logits
from tokensieve.text.counting import (
    count_types,
    document_frequencies,
    fill_ngrams,
    ngram_keys,
)
from tokensieve.text.counts import Counts

MATRIX = np.array([[1, 0, 2], [0, 0, 0], [0, 3, 1]])


def test_counts_of_a_dense_matrix() -> None:
    counts = Counts.from_matrix(MATRIX, [0, 1, 1], ("no", "yes"), ["a", "b", "c"])
    assert (counts.n_documents, counts.n_types, counts.n_classes) == (3, 3, 2)
    assert counts.lengths.tolist() == [3, 0, 4]
    assert counts.signs.tolist() == [-1, 1, 1] and counts.class_sizes.tolist() == [1, 2]
    assert counts.rows(np.array([False, True, True])).lengths.tolist() == [0, 4]


def test_duplicates_are_summed_and_zeros_dropped() -> None:
    twice = sp.coo_array(([1, 1, 0], ([0, 0, 1], [2, 2, 0])), shape=(2, 3))
    counts = Counts.from_matrix(twice, [0, 1])
    assert counts.matrix.nnz == 1 and counts.matrix[0, 2] == 2


@pytest.mark.parametrize(
    ("matrix", "labels", "tokens"),
    [
        (-MATRIX, [0, 1, 1], None), (MATRIX * np.nan, [0, 1, 1], None), (MATRIX, [0, 1], None), (MATRIX, [0, 1, 2], None),
        (MATRIX, [0, 1, 1], ["a"]),
    ],
)  # fmt: skip
def test_what_cannot_be_counts(matrix: Any, labels: list[int], tokens: list[str] | None) -> None:
    with pytest.raises(InputError):
        Counts.from_matrix(matrix, labels, ("no", "yes"), tokens)


def test_signs_need_two_classes() -> None:
    with pytest.raises(InputError, match="two classes"):
        _ = Counts.from_matrix(MATRIX, [0, 1, 2], ("a", "b", "c")).signs


# ---- counting the types of each document


def test_tally_by_hand() -> None:
    types = np.array([[2, -1], [0, 3], [2, 3], [1, -1]], dtype=np.int32)
    found = count_types(types, np.array([0, 0, 3, 3, 4]), 5)
    assert found.toarray().tolist() == [[0] * 5, [1, 0, 2, 2, 0], [0] * 5, [0, 1, 0, 0, 0]]
    assert found.indices.tolist() == [0, 2, 3, 1]
    assert found.indptr.dtype == found.indices.dtype == np.int32


@given(st.integers(0, 2**31), st.integers(1, 3), st.integers(1, 40))
@settings(deadline=None)
def test_as_scipy_adds_up_duplicates(seed: int, levels: int, n_types: int) -> None:
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(rng.integers(0, 12, rng.integers(0, 9)))]).astype(
        np.int64
    )
    types = rng.integers(-1, n_types, (starts[-1], levels)).astype(np.int32)
    others = rng.random((len(starts) - 1, rng.integers(0, 4))) < 0.5
    found = count_types(types, starts, n_types, others)
    rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts) * levels)
    known = types.ravel() >= 0
    entries = (np.ones(int(known.sum())), (rows[known], types.ravel()[known]))
    words = sp.coo_array(entries, shape=(len(starts) - 1, n_types))
    expected = sp.csr_array(sp.hstack([sp.csr_array(words), sp.csr_array(others.astype(float))]))
    for name in ("indptr", "indices", "data"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name
    assert found.has_canonical_format
    assert sp.csr_array(
        (found.data, found.indices, found.indptr), shape=found.shape
    ).has_canonical_format


def test_tally_of_nothing_known() -> None:
    assert count_types(np.full((3, 1), -1, np.int32), np.array([0, 3]), 0).shape == (1, 1)
    assert count_types(np.empty((0, 2), np.int32), np.array([0]), 4).shape == (0, 4)


@given(st.lists(st.lists(st.integers(-1, 3), max_size=9), max_size=6), st.integers(0, 2**31))
@settings(deadline=None)
def test_n_grams_are_found_where_they_end(documents: list[list[int]], seed: int) -> None:
    rng = np.random.default_rng(seed)
    pairs = np.flatnonzero(rng.random(16) < 0.7)  # keys of known 2-grams, and of known 3-grams
    triples = np.flatnonzero(rng.random(4 * len(pairs)) < 0.7)
    first = np.cumsum([0, 4, len(pairs), len(triples)])
    starts = np.cumsum([0, *map(len, documents)])
    types = np.full((starts[-1], 3), 9, np.int32)
    types[:, 0] = [word for document in documents for word in document]
    expected = []
    for document in documents:
        before = -1, -1  # the word and the 2-gram that end one token earlier, by position
        for word in document:
            key2, key3 = (place * 4 + word if place >= 0 and word >= 0 else -1 for place in before)
            two, three = (
                pairs.tolist().index(key2) if key2 in pairs else -1,
                np.flatnonzero(triples == key3),
            )
            expected.append(
                [
                    word,
                    two + 4 if two >= 0 else -1,
                    first[2] + three[0] if len(three) else -1,
                    key2,
                    key3,
                ]
            )
            before = word, two
    keys = []
    for level, known in enumerate((pairs, triples)):
        keys.append(ngram_keys(types, level, starts, first))
        fill_ngrams(types, level, starts, first, known)
    assert (
        np.column_stack([types, *keys]).tolist()
        == np.reshape(expected, (-1, 5)).astype(int).tolist()
    )


@pytest.mark.parametrize("large", [1, 2**53])
def test_document_frequencies_are_those_of_each_document_by_itself(large: int) -> None:
    rng = np.random.default_rng(1)
    starts = np.concatenate([[0], np.cumsum(rng.integers(0, 9, 300))]).astype(np.int64)
    keys = np.where(rng.random(starts[-1]) < 0.2, -1, rng.integers(0, 50, starts[-1]) * large)
    expected: Counter[int] = Counter()
    for k in range(300):
        expected.update({int(key) for key in keys[starts[k] : starts[k + 1]] if key >= 0})
    found = document_frequencies(keys, starts)
    pairs = list(zip(found.keys.tolist(), found.documents.tolist(), strict=True))
    assert pairs == sorted(expected.items())
    for nothing in (np.empty(0, np.int64), np.full(5, -1)):
        assert not len(document_frequencies(nothing, np.array([0, len(nothing)])).keys)


def test_any_number_of_threads_counts_to_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    starts = np.concatenate([[0], np.cumsum(rng.integers(0, 200, 1_500))]).astype(np.int64)
    n = int(starts[-1])
    words = (rng.pareto(1, n) * 20).astype(np.int32) % 5_000
    words[rng.random(n) < 0.1] = -1
    counts = Counts.from_matrix(count_types(words[:, None], starts, 5_000), np.arange(1_500) % 2)
    u, w = rng.standard_normal(5_000), rng.standard_normal((5_000, 1))
    monkeypatch.setattr("tokensieve.model.attention.CACHED_ENTRIES", 3_000)  # several blocks
    found = []
    for cores in (1, 2, 4):
        for module in ("tokensieve.arrays", "tokensieve.model.attention"):
            monkeypatch.setattr(f"{module}.n_threads", lambda cores=cores: cores)
        types = np.column_stack([words, words])
        first = np.array([0, 5_000])
        keys = ngram_keys(types, 0, starts, first)
        known = np.unique(keys[keys >= 0])[::2]
        fill_ngrams(types, 0, starts, np.append(first, 5_000 + len(known)), known)
        matrix = count_types(types, starts, 5_000 + len(known))
        assert matrix[:, 5_000:].nnz > 10_000
        frequencies = document_frequencies(keys, starts)
        parts = (
            keys,
            frequencies.keys,
            frequencies.documents,
            matrix.indptr,
            matrix.indices,
            matrix.data,
        )
        found.append([*(part.tobytes() for part in parts), logits(counts.matrix, u, w).tobytes()])
    assert found[0] == found[1] == found[2]
