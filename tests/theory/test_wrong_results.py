"""Verdicts that were wrong once, each on the smallest problem that showed it."""

from __future__ import annotations

import numpy as np

from tokensieve.text.counts import Counts
from tokensieve.theory.flow.solve import gradient_flow
from tokensieve.theory.limit.certify import FlowLimit


def test_a_gap_that_drifts_along_a_surface_of_minima_is_not_called_finite() -> None:
    """The first two documents are equal and have both labels: L_S is least on a line of V, and the
    third document pushes p along it, so that the "finite" gap grows like 0.0375 log t."""
    counts = Counts.from_matrix([[1, 1, 1, 0, 0], [1, 1, 1, 0, 0], [0, 0, 0, 1, 1]], [1, 0, 1])
    E = np.array([[-0.96, 0.57, 0], [-2.11, -0.33, 0], [-0.3, 0.31, 0], [0.3, 0.02, 1], [0, 0, 0]])
    w = np.array([-0.4, -0.8, 0.5, 1.0, 0.0])
    limit = FlowLimit.find(counts, E, w, gradient_flow(counts, E, w, np.array([0.11, 0.31, 0.0])))
    assert limit.fate == "not settled"
