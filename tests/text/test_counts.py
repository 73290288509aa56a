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
from tokensieve.model.attention import answers
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
    found = Counts.tally(types, np.array([0, 0, 3, 3, 4]), 5)
    assert found.toarray().tolist() == [[0] * 5, [1, 0, 2, 2, 0], [0] * 5, [0, 1, 0, 0, 0]]
    assert found.indices.tolist() == [0, 2, 3, 1]
    assert found.indptr.dtype == found.indices.dtype == np.int32


@given(st.integers(0, 2**31), st.integers(1, 3), st.integers(1, 40))
@settings(deadline=None)
def test_as_scipy_adds_up_duplicates(seed: int, levels: int, n_types: int) -> None:
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(rng.integers(0, 12, rng.integers(0, 9)))]).astype(np.int64)
    types = rng.integers(-1, n_types, (starts[-1], levels)).astype(np.int32)
    found = Counts.tally(types, starts, n_types)
    rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts) * levels)
    known = types.ravel() >= 0
    entries = (np.ones(int(known.sum())), (rows[known], types.ravel()[known]))
    expected = sp.csr_array(sp.coo_array(entries, shape=(len(starts) - 1, n_types)))
    for name in ("indptr", "indices", "data"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name
    assert found.has_canonical_format
    assert sp.csr_array((found.data, found.indices, found.indptr), shape=found.shape).has_canonical_format


def test_tally_of_nothing_known() -> None:
    assert Counts.tally(np.full((3, 1), -1, np.int32), np.array([0, 3]), 0).shape == (1, 1)
    assert Counts.tally(np.empty((0, 2), np.int32), np.array([0]), 4).shape == (0, 4)


@given(st.lists(st.integers(0, 2**62), unique=True, max_size=50), st.integers(0, 2**31))
@settings(deadline=None)
def test_what_is_found_is_where_it_lies(keys: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    wanted = np.concatenate([rng.permutation(keys), rng.integers(-3, 2**62, 20)]).astype(np.int64)
    place = {key: i for i, key in enumerate(keys)}
    assert Counts.find(np.array(keys, dtype=np.int64), wanted).tolist() == [place.get(int(key), -1) for key in wanted]


@pytest.mark.parametrize("large", [1, 2**53])
def test_document_frequencies_are_those_of_each_document_by_itself(large: int) -> None:
    rng = np.random.default_rng(1)
    starts = np.concatenate([[0], np.cumsum(rng.integers(0, 9, 300))]).astype(np.int64)
    keys = np.where(rng.random(starts[-1]) < 0.2, -1, rng.integers(0, 50, starts[-1]) * large)
    expected: Counter[int] = Counter()
    for k in range(300):
        expected.update({int(key) for key in keys[starts[k] : starts[k + 1]] if key >= 0})
    found, sizes = Counts.document_frequencies(keys, starts)
    assert list(zip(found.tolist(), sizes.tolist(), strict=True)) == sorted(expected.items())
    for nothing in (np.empty(0, np.int64), np.full(5, -1)):
        assert not len(Counts.document_frequencies(nothing, np.array([0, len(nothing)]))[0])


def test_any_number_of_threads_counts_to_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    starts = np.concatenate([[0], np.cumsum(rng.integers(0, 200, 1_500))]).astype(np.int64)
    n = int(starts[-1])
    words = (rng.pareto(1, n) * 20).astype(np.int32) % 5_000
    words[rng.random(n) < 0.1] = -1
    known = np.unique(rng.integers(0, 5_000**2, 5_000))
    counts = Counts.from_matrix(Counts.tally(words[:, None], starts, 5_000), np.arange(1_500) % 2)
    u, w = rng.standard_normal(5_000), rng.standard_normal((5_000, 1))
    monkeypatch.setattr("tokensieve.model.attention.BLOCK", 50_000)  # several blocks
    found = []
    for cores in (1, 2, 4):
        for module in ("tokensieve.text.counts", "tokensieve.model.attention"):
            monkeypatch.setattr(f"{module}.cpu_count", lambda cores=cores: cores)
        keys = Counts.gram_keys(words, words, starts, 5_000)
        matrix = Counts.tally(np.column_stack([words, Counts.find(known, keys)]), starts, 5_000)
        parts = (keys, *Counts.document_frequencies(keys, starts), matrix.indptr, matrix.indices, matrix.data)
        found.append([*(part.tobytes() for part in parts), answers(counts.matrix, u, w).tobytes()])
    assert found[0] == found[1] == found[2]


def test_threads_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    keys = np.unique(rng.integers(0, 10**9, 5_000))
    wanted = np.where(rng.random(250_000) < 0.5, rng.choice(keys, 250_000), rng.integers(-1, 10**9, 250_000))
    found = []
    for cores in (1, 2, 3):
        monkeypatch.setattr("tokensieve.text.counts.cpu_count", lambda cores=cores: cores)
        found.append(Counts.find(keys, wanted).tobytes())
    assert found[0] == found[1] == found[2]
