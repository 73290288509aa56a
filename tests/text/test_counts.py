"""Documents × token types: what is accepted, what is refused, and the order by type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from tokensieve.errors import InputError
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
