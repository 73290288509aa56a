"""Selections: by definition on small documents, ties along a curve, the limit of the answers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokensieve.errors import InputError
from tokensieve.model.attention import answers
from tokensieve.text.counts import Counts
from tokensieve.theory.flow.solve import gradient_flow
from tokensieve.theory.generators import single_token
from tokensieve.theory.limit.selection import (
    _important_selected,
    _limit_answers,
    _limit_error,
    one_sided,
    select,
    selected_fraction,
)
from tokensieve.theory.settings import FlowSettings


@settings(deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), slack=st.sampled_from([0.0, 0.3]))
def test_selection_is_the_argmax_of_each_document(seed: int, slack: float) -> None:
    rng = np.random.default_rng(seed)
    matrix = rng.integers(0, 3, size=(8, 6))
    counts = Counts.from_matrix(matrix, rng.integers(2, size=8))
    u = rng.integers(0, 4, size=6) / 2.0
    found = select(counts, u, slack)
    chosen = np.zeros_like(matrix, dtype=bool)
    rows = np.repeat(np.arange(8), np.diff(counts.matrix.indptr))
    chosen[rows, counts.matrix.indices] = found.mask
    ties = everything = 0
    for k in range(8):
        held = np.flatnonzero(matrix[k])
        expected = {s for s in held if u[s] >= u[held].max() - slack} if held.size else set()
        assert set(np.flatnonzero(chosen[k])) == expected
        ties += len(expected) > 1
        everything += 0 < len(expected) == held.size
    assert (found.ties, found.everything) == (ties, everything)
    assert found.widest_tie <= slack < found.closest_other


def test_the_limit_of_the_answers_counts_repeats() -> None:
    counts = Counts.from_matrix([[2, 1, 1], [0, 0, 3], [0, 0, 0]], [1, 0, 1])
    u, w = np.array([1.0, 1.0, 0.0]), np.array([3.0, 0.0, -2.0])
    mask = select(counts, u).mask
    np.testing.assert_allclose(_limit_answers(counts, mask, w), [2.0, -2.0, 0.0])
    errors = [_limit_error(counts, mask, scale * u, w) for scale in (1.0, 10.0, 100.0)]
    assert errors[0] > errors[1] > errors[2] and errors[2] < 1e-12
    np.testing.assert_allclose(answers(counts.matrix, 100 * u, w)[:, 0], [2.0, -2.0, 0.0], atol=1e-12)


def test_one_sided_types_and_the_share_that_is_selected() -> None:
    counts = Counts.from_matrix([[1, 0, 1, 0], [1, 0, 1, 0], [0, 1, 1, 0], [0, 0, 1, 0]], [1, 1, 0, 0])
    np.testing.assert_array_equal(one_sided(counts), [1, -1, 0, 0])
    mask = select(counts, np.array([2.0, 0.0, 1.0, 0.0])).mask
    share, some, total = _important_selected(counts, mask, one_sided(counts) != 0)
    assert (share, some, total) == (pytest.approx(2 / 3), pytest.approx(2 / 3), 3)
    share, _, total = _important_selected(counts, mask, np.zeros(4, bool))
    assert math.isnan(share) and total == 0


def test_bad_input_is_named() -> None:
    counts = Counts.from_matrix([[1, 1, 1]], [1])
    with pytest.raises(InputError, match="finite numbers"):
        select(counts, np.array([1.0, np.nan, 0.0]))
    with pytest.raises(InputError, match="slack"):
        select(counts, np.zeros(3), -1.0)


def test_selected_fraction_along_a_curve_by_brute_force() -> None:
    data = single_token(12, 20, 5, 6, relevant_per_document=2, seed=2)
    counts, important = data.counts, data.relevance != 0
    E = np.random.default_rng(3).standard_normal((20, 25))
    w = E @ np.eye(25)[0]
    flow = gradient_flow(counts, E, w, E[0] * 0.1, FlowSettings(max_norm=20.0))
    found = selected_fraction(counts, E, flow, important)
    dense = counts.matrix.toarray() > 0
    for row in range(len(flow.log_time)):
        u = E @ flow.at(row)
        first = [u[held & important].min() > u[held & ~important].max() for held in dense]
        assert found[row] == np.mean(first)
    assert found.max() > 0
    assert np.isnan(selected_fraction(counts, E, flow, np.zeros(20, bool))).all()
