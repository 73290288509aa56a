"""Counting types per document: by hand, and beside SciPy's own sums of duplicates."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from tokensieve.text.tally import tally


def test_by_hand() -> None:
    types = np.array([[2, -1], [0, 3], [2, 3], [1, -1]], dtype=np.int32)
    found = tally(types, np.array([0, 0, 3, 3, 4]), 5)
    assert found.toarray().tolist() == [[0] * 5, [1, 0, 2, 2, 0], [0] * 5, [0, 1, 0, 0, 0]]
    assert found.indices.tolist() == [0, 2, 3, 1]
    assert found.indptr.dtype == found.indices.dtype == np.int32


@given(st.integers(0, 2**31), st.integers(1, 3), st.integers(1, 40))
@settings(max_examples=60, deadline=None)
def test_as_scipy_adds_up_duplicates(seed: int, levels: int, n_types: int) -> None:
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(rng.integers(0, 12, rng.integers(0, 9)))]).astype(np.int64)
    types = rng.integers(-1, n_types, (starts[-1], levels)).astype(np.int32)
    found = tally(types, starts, n_types)
    rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts) * levels)
    known = types.ravel() >= 0
    entries = (np.ones(int(known.sum())), (rows[known], types.ravel()[known]))
    expected = sp.csr_array(sp.coo_array(entries, shape=(len(starts) - 1, n_types)))
    for name in ("indptr", "indices", "data"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name
    assert found.has_canonical_format
    assert sp.csr_array((found.data, found.indices, found.indptr), shape=found.shape).has_canonical_format


def test_nothing_known() -> None:
    assert tally(np.full((3, 1), -1, np.int32), np.array([0, 3]), 0).shape == (1, 1)
    assert tally(np.empty((0, 2), np.int32), np.array([0]), 4).shape == (0, 4)
