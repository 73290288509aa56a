"""Sums over documents: exact to the last bit of fixed point, and the same for every way to cut the
corpus."""

from __future__ import annotations

from dataclasses import fields
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from tokensieve.arrays import Ints
from tokensieve.evidence.sums import BITS_PER_WORD, TokenSums
from tokensieve.text.counts import Counts


def made(seed: int, n: int = 200, types: int = 9, classes: int = 3) -> Counts:
    rng = np.random.default_rng(seed)
    matrix = rng.poisson(rng.gamma(0.5, 2.0, size=(n, 1)) * rng.gamma(1.0, 1.0, size=types))
    return Counts.from_matrix(matrix, np.arange(n) % classes, [str(k) for k in range(classes)])


def exactly(words: Ints) -> Fraction:
    return sum(
        (Fraction(int(word), 2 ** (BITS_PER_WORD * (i + 1))) for i, word in enumerate(words)),
        Fraction(0),
    )


def test_fixed_point_sums_are_exact() -> None:
    counts = made(5)
    sums, dense = TokenSums.of(counts.matrix, counts.labels, 3), counts.matrix.toarray()
    lengths = np.maximum(dense.sum(axis=1), 1)
    for s in range(counts.n_types):
        x = dense[:, s] / lengths
        for k in range(3):
            mine = x[counts.labels == k]
            for power, terms in enumerate((mine, mine * mine, mine * mine * mine)):
                exact = sum(Fraction(float(v)) for v in terms)
                assert abs(exactly(sums.shares[s, k, power]) - exact) < Fraction(200, 2**93)
    for k in range(3):
        exact = sum(
            Fraction(float(v)) for v in 1 / lengths[(counts.labels == k) & (dense.sum(axis=1) > 0)]
        )
        assert abs(exactly(sums.inverse_lengths[k]) - exact) < Fraction(200, 2**93)


def test_whole_numbers_by_brute_force() -> None:
    counts = made(6)
    sums, dense = TokenSums.of(counts.matrix, counts.labels, 3), counts.matrix.toarray()
    for k in range(3):
        mine = dense[counts.labels == k]
        assert sums.class_sizes[k] == len(mine)
        np.testing.assert_array_equal(sums.present[:, k], (mine > 0).sum(axis=0))
        np.testing.assert_array_equal(sums.count[:, k], mine.sum(axis=0))
        np.testing.assert_array_equal(sums.squares[:, k], (mine**2).sum(axis=0))


def test_lengths_given_from_outside_take_the_place_of_row_sums() -> None:
    counts = made(7)
    presence = (counts.matrix > 0).astype(np.float64)
    sums = TokenSums.of(presence, counts.labels, 3, lengths=np.ones(counts.n_documents))
    np.testing.assert_array_equal(sums.first, sums.present)
    np.testing.assert_array_equal(sums.second, sums.present)
    np.testing.assert_array_equal(sums.inverse, sums.class_sizes)


def test_any_number_of_threads_adds_up_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    one_type = sp.csr_array(np.ones((101_000, 1)))  # every thread's range begins with it
    many = sp.csr_array(rng.poisson(0.6, (3_000, 120)).astype(float))
    for matrix in (one_type, many):
        labels, found = rng.integers(0, 2, matrix.shape[0]), []
        for cores in (1, 2, 3):
            monkeypatch.setattr("tokensieve.arrays.n_threads", lambda cores=cores: cores)
            sums = TokenSums.of(matrix, labels, 2)
            found.append([getattr(sums, field.name).tobytes() for field in fields(sums)])
        assert found[0] == found[1] == found[2]
        assert int(sums.present.sum()) == matrix.nnz > 100_000
