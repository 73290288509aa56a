"""Selections: by definition on small documents, the limit of the answers, and along a curve."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokensieve.arrays import Floats
from tokensieve.model.attention import logits
from tokensieve.text.counts import Counts
from tokensieve.theory.claims import Attended
from tokensieve.theory.flow.solve import gradient_flow
from tokensieve.theory.settings import VerifySettings


def described(
    counts: Counts, u: Floats, w: Floats, important: np.ndarray | None = None
) -> Attended:
    """The highest types at scores u: embeddings are the scores, one step of a curve that begins at p = 1."""
    E = u[:, None]
    flow = gradient_flow(counts, E, w, np.ones(1), VerifySettings(max_seconds=1e-9))
    chosen = np.zeros(counts.n_types, bool) if important is None else important
    return Attended.of(counts, E, w, flow, counts.top_mask(u), chosen)


@settings(deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6))
def test_selection_is_the_argmax_of_each_document(seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = rng.integers(0, 3, size=(8, 6))
    counts = Counts.from_matrix(matrix, rng.integers(2, size=8))
    u = rng.integers(0, 4, size=6) / 2.0
    found = described(counts, u, rng.standard_normal(6))
    chosen = np.zeros_like(matrix, dtype=bool)
    rows = np.repeat(np.arange(8), np.diff(counts.matrix.indptr))
    chosen[rows, counts.matrix.indices] = found.mask
    ties = 0
    for k in range(8):
        held = np.flatnonzero(matrix[k])
        expected = {s for s in held if u[s] == u[held].max()} if held.size else set()
        assert set(np.flatnonzero(chosen[k])) == expected
        ties += len(expected) > 1
    assert found.ties == ties


def test_the_limit_of_the_answers_counts_repeats() -> None:
    counts = Counts.from_matrix([[2, 1, 1], [0, 0, 3], [0, 0, 0]], [1, 0, 1])
    u, w = np.array([1.0, 1.0, 0.0]), np.array([3.0, 0.0, -2.0])
    errors = [described(counts, scale * u, w).limit_error for scale in (1.0, 10.0, 100.0)]
    assert errors[0] > errors[1] > errors[2] and errors[2] < 1e-12
    np.testing.assert_allclose(
        logits(counts.matrix, 100 * u, w)[:, 0], [2.0, -2.0, 0.0], atol=1e-12
    )


def test_one_sided_types_and_the_share_that_is_selected() -> None:
    counts = Counts.from_matrix(
        [[1, 0, 1, 0], [1, 0, 1, 0], [0, 1, 1, 0], [0, 0, 1, 0]], [1, 1, 0, 0]
    )
    np.testing.assert_array_equal(counts.one_sided, [1, -1, 0, 0])
    u = np.array([2.0, 0.0, 1.0, 0.0])
    found = described(counts, u, np.arange(4.0), counts.one_sided != 0)
    assert (found.all_share, found.any_share) == (pytest.approx(2 / 3), pytest.approx(2 / 3))
    assert found.important_documents == 3 and found.one_sided_share == pytest.approx(2 / 3)
    none = described(counts, u, np.arange(4.0))
    assert math.isnan(none.all_share) and none.important_documents == 0
