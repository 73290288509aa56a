"""The stratified draw: scikit-learn's rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import train_test_split

from tokensieve.read.split import folds, stratified


@settings(deadline=None)
@given(
    st.lists(st.integers(2, 40), min_size=1, max_size=6),
    st.floats(0.05, 0.95),
    st.integers(0, 2**32 - 1),
)
def test_the_rows_are_those_of_scikit_learn(sizes: list[int], share: float, seed: int) -> None:
    labels = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)) * 3, sizes))
    n, k = len(labels), len(sizes)
    size = min(max(round(share * n), k), n - k)
    kept, drawn = stratified(labels, size, seed)
    theirs = train_test_split(np.arange(n), test_size=size, stratify=labels, random_state=seed)
    np.testing.assert_array_equal(kept, theirs[0])
    np.testing.assert_array_equal(drawn, theirs[1])


@pytest.mark.parametrize("size", [2, 10, 58])
def test_nothing_is_lost_and_proportions_are_kept(size: int) -> None:
    labels = np.repeat([0, 1], [20, 40])
    kept, drawn = stratified(labels, size, 0)
    assert sorted([*kept, *drawn]) == list(range(60)) and len(drawn) == size
    assert abs(np.count_nonzero(labels[drawn] == 0) - size / 3) < 1


def test_folds_hold_each_item_once_and_keep_proportions() -> None:
    labels = np.random.default_rng(0).permutation(np.repeat([0, 1, 2], [50, 20, 13]))
    parts = folds(labels, 5, seed=1)
    assert sorted(np.concatenate([part for _, part in parts])) == list(range(83))
    for rest, part in parts:
        assert sorted([*rest, *part]) == list(range(83))
        assert (abs(np.bincount(labels[part]) - np.array([10, 4, 2.6])) <= 1).all()
